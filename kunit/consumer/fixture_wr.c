// SPDX-License-Identifier: GPL-2.0
/*
 * Fixture of the consumer tests: building and posting work requests.
 *
 * Posting functions return the provider's result. The struct ndkc_op has the
 * completion of the request, if one comes.
 */
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "fixture.h"

/* Both kinds of requests begin with these members. */
static_assert(offsetof(struct ib_send_wr, next) == offsetof(struct ib_recv_wr, next));
static_assert(offsetof(struct ib_send_wr, sg_list) == offsetof(struct ib_recv_wr, sg_list));
static_assert(offsetof(struct ib_send_wr, num_sge) == offsetof(struct ib_recv_wr, num_sge));

/* Bytes of a request of @size bytes and its list. */
static size_t copy_size(const struct ib_recv_wr *wr, size_t size)
{
	return size + wr->num_sge * sizeof(*wr->sg_list);
}

/* Copies a chain, all of it @odd bytes off alignment; the caller frees it. */
static u8 *odd_chain(const struct ib_recv_wr *first, size_t size, unsigned int odd)
{
	const struct ib_recv_wr *wr;
	size_t len = odd;
	u8 *mem, *at;

	for (wr = first; wr; wr = wr->next)
		len += copy_size(wr, size);
	mem = kmalloc(len, GFP_ATOMIC);
	if (!mem)
		return NULL;
	at = mem + odd;
	for (wr = first; wr; wr = wr->next) {
		u8 *next = at + copy_size(wr, size), *list = at + size;

		memcpy(at, wr, size);
		memcpy(list, wr->sg_list, next - list);
		put_unaligned(list, (u8 **)(at + offsetof(struct ib_recv_wr, sg_list)));
		if (wr->next)
			put_unaligned(next, (u8 **)(at + offsetof(struct ib_recv_wr, next)));
		at = next;
	}
	return mem;
}

/* The request whose copy is at @bad. */
static const struct ib_recv_wr *original(const struct ib_recv_wr *first, size_t size,
					 const u8 *at, const u8 *bad)
{
	const struct ib_recv_wr *wr;

	for (wr = first; wr && at != bad; wr = wr->next)
		at += copy_size(wr, size);
	return wr;
}

/**
 * ndkc_post_chain - ib_post_send(), from odd addresses if the suite wants that
 * @ep: the sender
 * @wr: the chain
 * @size: bytes of the structure that begins with each request
 * @bad: receives the failed request, or NULL
 */
int ndkc_post_chain(struct ndkc_ep *ep, const struct ib_send_wr *wr, size_t size,
		    const struct ib_send_wr **bad)
{
	const struct ib_recv_wr *first = (const void *)wr;
	u8 place[2 * sizeof(*bad)] __aligned(8);
	unsigned int odd = ep->env->odd;
	u8 *mem;
	int ret;

	if (!odd)
		return ib_post_send(ep->qp, wr, bad);
	mem = odd_chain(first, size, odd);
	if (!mem)
		return -ENOMEM;
	ret = ib_post_send(ep->qp, (void *)(mem + odd),
			   bad ? (const struct ib_send_wr **)(place + odd) : NULL);
	if (ret && bad)
		*bad = (const void *)original(first, size, mem + odd,
					      get_unaligned((u8 **)(place + odd)));
	kfree(mem);
	return ret;
}

/* The same for receives; to the shared queue, if there is one. */
int ndkc_post_recv_chain(struct ndkc_ep *ep, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	const struct ib_recv_wr *first = wr, *failed = NULL;
	u8 place[2 * sizeof(*bad)] __aligned(8);
	unsigned int odd = ep->env->odd;
	u8 *mem = NULL;
	int ret;

	if (odd) {
		mem = odd_chain(first, sizeof(*wr), odd);
		if (!mem)
			return -ENOMEM;
		wr = (void *)(mem + odd);
	}
	ret = ep->qp->srq ? ib_post_srq_recv(ep->qp->srq, wr, (void *)(place + odd)) :
			    ib_post_recv(ep->qp, wr, (void *)(place + odd));
	if (ret) {
		failed = get_unaligned((const struct ib_recv_wr **)(place + odd));
		if (odd)
			failed = original(first, sizeof(*wr), mem + odd, (const u8 *)failed);
	}
	if (ret && bad)
		*bad = failed;
	kfree(mem);
	return ret;
}

struct ib_sge ndkc_sge(const struct ndkc_ep *ep, const struct ndkc_buf *buf,
		       size_t off, u32 len)
{
	return (struct ib_sge) {
		.addr = buf->dma + off,
		.length = len,
		.lkey = ep->pd->local_dma_lkey,
	};
}

int ndkc_post_recv_sge(struct ndkc_ep *ep, struct ndkc_op *op,
		       struct ib_sge *sge, int num)
{
	struct ib_recv_wr wr = {
		.wr_cqe = &op->cqe,
		.sg_list = sge,
		.num_sge = num,
	};

	op->cq = ep->rcq;
	return ndkc_post_recv_chain(ep, &wr, NULL);
}

int ndkc_post_recv(struct ndkc_ep *ep, struct ndkc_op *op,
		   const struct ndkc_buf *buf, size_t off, u32 len)
{
	struct ib_sge sge = ndkc_sge(ep, buf, off, len);

	return ndkc_post_recv_sge(ep, op, &sge, 1);
}

/**
 * ndkc_post_send_op - any of the untagged operations
 * @ep: the sender
 * @op: the request
 * @opcode: IB_WR_SEND and its variants
 * @flags: IB_SEND_*
 * @sge: the data
 * @num: number of @sge
 * @imm_or_rkey: immediate data (host order) or the key to invalidate
 */
int ndkc_post_send_op(struct ndkc_ep *ep, struct ndkc_op *op,
		      enum ib_wr_opcode opcode, int flags, struct ib_sge *sge,
		      int num, u32 imm_or_rkey)
{
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe,
		.sg_list = sge,
		.num_sge = num,
		.opcode = opcode,
		.send_flags = flags,
	};

	if (opcode == IB_WR_SEND_WITH_INV)
		wr.ex.invalidate_rkey = imm_or_rkey;
	else
		wr.ex.imm_data = cpu_to_be32(imm_or_rkey);
	op->cq = ep->scq;
	return ndkc_post_chain(ep, &wr, sizeof(wr), NULL);
}

int ndkc_post_send_sge(struct ndkc_ep *ep, struct ndkc_op *op, int flags,
		       struct ib_sge *sge, int num)
{
	return ndkc_post_send_op(ep, op, IB_WR_SEND, flags, sge, num, 0);
}

int ndkc_post_send(struct ndkc_ep *ep, struct ndkc_op *op, int flags,
		   const struct ndkc_buf *buf, size_t off, u32 len)
{
	struct ib_sge sge = ndkc_sge(ep, buf, off, len);

	return ndkc_post_send_sge(ep, op, flags, &sge, 1);
}

int ndkc_post_rdma_sge(struct ndkc_ep *ep, struct ndkc_op *op,
		       enum ib_wr_opcode opcode, int flags, struct ib_sge *sge,
		       int num, u64 raddr, u32 rkey, u32 imm_or_rkey)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &op->cqe,
			.sg_list = sge,
			.num_sge = num,
			.opcode = opcode,
			.send_flags = flags,
		},
		.remote_addr = raddr,
		.rkey = rkey,
	};

	if (opcode == IB_WR_RDMA_READ_WITH_INV)
		wr.wr.ex.invalidate_rkey = imm_or_rkey;
	else
		wr.wr.ex.imm_data = cpu_to_be32(imm_or_rkey);
	op->cq = ep->scq;
	return ndkc_post_chain(ep, &wr.wr, sizeof(wr), NULL);
}

int ndkc_post_rdma(struct ndkc_ep *ep, struct ndkc_op *op,
		   enum ib_wr_opcode opcode, const struct ndkc_buf *buf,
		   size_t off, u32 len, u64 raddr, u32 rkey)
{
	struct ib_sge sge = ndkc_sge(ep, buf, off, len);

	return ndkc_post_rdma_sge(ep, op, opcode, IB_SEND_SIGNALED, &sge, 1,
				  raddr, rkey, 0);
}

/**
 * ndkc_post_atomic - fetch-and-add or compare-and-swap on 8 remote bytes
 * @ep: the requester
 * @op: the request
 * @opcode: which
 * @buf: the old value goes to its start
 * @raddr: remote address
 * @rkey: remote key
 * @compare_add: value to compare with or to add
 * @swap: new value
 */
int ndkc_post_atomic(struct ndkc_ep *ep, struct ndkc_op *op,
		     enum ib_wr_opcode opcode, const struct ndkc_buf *buf,
		     u64 raddr, u32 rkey, u64 compare_add, u64 swap)
{
	struct ib_sge sge = ndkc_sge(ep, buf, 0, sizeof(u64));
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_cqe = &op->cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = raddr,
		.compare_add = compare_add,
		.swap = swap,
		.rkey = rkey,
	};

	op->cq = ep->scq;
	return ndkc_post_chain(ep, &wr.wr, sizeof(wr), NULL);
}

struct ndkc_mr *ndkc_mr(struct kunit *test, struct ib_pd *pd,
			enum ib_mr_type type, u32 pages)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_mr *mr = kzalloc_obj(*mr);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	mr->mr = ib_alloc_mr(pd, type, pages);
	if (IS_ERR(mr->mr)) {
		kfree(mr);
		KUNIT_FAIL_AND_ABORT(test, "ib_alloc_mr");
	}
	list_add_tail(&mr->entry, &env->mrs);
	return mr;
}

static int fill_sgt(struct sg_table *sgt, struct ndkc_buf *buf, size_t off,
		    size_t len)
{
	struct scatterlist *sg;
	size_t chunk;
	int i, ret;

	ret = sg_alloc_table(sgt, DIV_ROUND_UP(offset_in_page(off) + len,
					       PAGE_SIZE), GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sgtable_sg(sgt, sg, i) {
		chunk = min(len, PAGE_SIZE - offset_in_page(off));
		sg_set_buf(sg, buf->va + off, chunk);
		off += chunk;
		len -= chunk;
	}
	return 0;
}

/**
 * ndkc_map - ib_map_mr_sg() of part of a buffer, page by page
 * @mr: the region; a previous map is replaced, registered or not
 * @buf: the buffer
 * @off: first byte
 * @len: bytes
 *
 * Return: 0 if all was mapped.
 */
int ndkc_map(struct ndkc_mr *mr, struct ndkc_buf *buf, size_t off, size_t len)
{
	int n, ret;

	if (mr->mapped)
		sg_free_table(&mr->sgt);
	mr->mapped = false;
	ret = fill_sgt(&mr->sgt, buf, off, len);
	if (ret)
		return ret;
	mr->mapped = true;
	/* Never unmapped: the tests are for software devices only. */
	n = ib_dma_map_sg(ndkc_dev, mr->sgt.sgl, mr->sgt.orig_nents,
			  DMA_BIDIRECTIONAL);
	if (n <= 0)
		return -EIO;
	ret = ib_map_mr_sg(mr->mr, mr->sgt.sgl, n, NULL, PAGE_SIZE);
	if (ret < 0)
		return ret;
	return ret == n ? 0 : -ENOSPC;
}

int ndkc_post_reg(struct ndkc_ep *ep, struct ndkc_op *op, struct ndkc_mr *mr,
		  u32 key, int access, int flags)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &op->cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = flags,
		},
		.mr = mr->mr,
		.key = key,
		.access = access,
	};

	op->cq = ep->scq;
	return ndkc_post_chain(ep, &wr.wr, sizeof(wr), NULL);
}

int ndkc_post_inv(struct ndkc_ep *ep, struct ndkc_op *op, u32 key, int flags)
{
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = flags,
		.ex.invalidate_rkey = key,
	};

	op->cq = ep->scq;
	return ndkc_post_chain(ep, &wr, sizeof(wr), NULL);
}

/**
 * ndkc_registered - a region over a whole buffer, live when this returns
 * @test: the case
 * @ep: posts the registration
 * @buf: the buffer
 * @access: IB_ACCESS_*
 */
struct ndkc_mr *ndkc_registered(struct kunit *test, struct ndkc_ep *ep,
				struct ndkc_buf *buf, int access)
{
	struct ndkc_mr *mr = ndkc_mr(test, ep->pd, IB_MR_TYPE_MEM_REG,
				     DIV_ROUND_UP(buf->len, PAGE_SIZE) + 1);
	struct ndkc_op *op = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf, 0, buf->len), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(ep, op, mr, mr->mr->rkey, access,
					    IB_SEND_SIGNALED), 0);
	NDKC_ASSERT_WC(test, op, IB_WC_SUCCESS);
	return mr;
}
