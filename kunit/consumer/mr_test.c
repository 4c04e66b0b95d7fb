// SPDX-License-Identifier: GPL-2.0
/*
 * Fast registration, in the sequences the kernel's consumers use.
 *
 * The owner of the regions is the passive side @b; the active side @a is the
 * peer that reads and writes through them.
 */
#include <linux/slab.h>

#include "fixture.h"

/* Expect that the peer reads the pattern of @seed through (@addr, @key). */
static void expect_readable(struct kunit *test, struct ndkc_pair *p, u64 addr,
			    u32 key, u32 len, u8 seed, size_t seed_off)
{
	struct ndkc_buf *buf = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_op *read = ndkc_op(test);

	KUNIT_ASSERT_LE(test, len, buf->len);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, read, IB_WR_RDMA_READ, buf,
					     0, len, addr, key), 0);
	NDKC_ASSERT_WC(test, read, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(buf, 0, len, seed, seed_off));
}

/* Ends the connection. */
static void expect_dead(struct kunit *test, struct ndkc_pair *p, u64 addr,
			u32 key)
{
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *read = ndkc_op(test);
	int status;

	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, read, IB_WR_RDMA_READ, buf,
					     0, 16, addr, key), 0);
	status = ndkc_wait(read);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
}

/* One round trip: @b sends, @a receives. */
struct message {
	struct ndkc_op *recv;
	struct ndkc_op *send;
};

static struct message expect_message(struct kunit *test, struct ndkc_pair *p)
{
	struct message m = { ndkc_op(test), ndkc_op(test) };

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->a, m.recv, NULL, 0), 0);
	m.send->cq = p->b->scq;
	return m;
}

static struct ib_reg_wr reg_request(struct ndkc_op *op, struct ndkc_mr *mr,
				    int access)
{
	return (struct ib_reg_wr) {
		.wr = { .wr_cqe = &op->cqe, .opcode = IB_WR_REG_MR },
		.mr = mr->mr,
		.key = mr->mr->rkey,
		.access = access,
	};
}

static struct ib_send_wr send_request(struct ndkc_op *op)
{
	return (struct ib_send_wr) {
		.wr_cqe = &op->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
}

/*
 * nvme: map, bump the key, chain the silent REG_MR before the SEND; the
 * target invalidates with its answer, and a late LOCAL_INV must not hurt.
 */
static void nvme_sequence(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_MEM_REG, 17);
	struct ndkc_op *answer, *inv;
	struct ib_send_wr send;
	struct ib_reg_wr reg;
	struct message m;
	int i;

	for (i = 0; i < 4; i++) {
		ndkc_fill(buf, 60 + i);
		KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf, i * 512, 20000), 0);
		ib_update_fast_reg_key(mr->mr, ib_inc_rkey(mr->mr->rkey));
		m = expect_message(test, p);
		reg = reg_request(ndkc_op(test), mr, NDKC_REMOTE_ALL);
		send = send_request(m.send);
		reg.wr.next = &send;
		KUNIT_ASSERT_EQ(test, ib_post_send(p->b->qp, &reg.wr, NULL), 0);
		NDKC_ASSERT_WC(test, m.recv, IB_WC_SUCCESS);
		NDKC_ASSERT_WC(test, m.send, IB_WC_SUCCESS);
		expect_readable(test, p, mr->mr->iova, mr->mr->rkey, 20000,
				60 + i, i * 512);

		answer = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, answer, NULL, 0),
				0);
		KUNIT_ASSERT_EQ(test, ndkc_post_send_op(p->a, ndkc_op(test),
							IB_WR_SEND_WITH_INV, 0,
							NULL, 0, mr->mr->rkey),
				0);
		NDKC_ASSERT_WC(test, answer, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, answer->wc.ex.invalidate_rkey,
				mr->mr->rkey);
		inv = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_inv(p->b, inv, mr->mr->rkey,
						    IB_SEND_SIGNALED), 0);
		NDKC_ASSERT_WC(test, inv, IB_WC_SUCCESS);
	}
	expect_dead(test, p, mr->mr->iova, mr->mr->rkey);
}

/*
 * iser: maps and bumps the key while the previous registration is live, then
 * posts LOCAL_INV (old), REG_MR (new) and SEND in one chain.
 */
static void iser_sequence(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *one = ndkc_buf(test, 8192);
	struct ndkc_buf *two = ndkc_buf(test, 8192);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, one, NDKC_REMOTE_ALL);
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV };
	u64 old_iova = mr->mr->iova;
	u32 old_key = mr->mr->rkey;
	struct ib_send_wr send;
	struct ib_reg_wr reg;
	struct message m;

	ndkc_fill(one, 1);
	ndkc_fill(two, 2);
	KUNIT_ASSERT_EQ(test, ndkc_map(mr, two, 0, two->len), 0);
	/* Mapping is preparation: the live registration is not touched. */
	expect_readable(test, p, old_iova, old_key, 8192, 1, 0);

	ib_update_fast_reg_key(mr->mr, ib_inc_rkey(mr->mr->rkey));
	expect_readable(test, p, old_iova, old_key, 8192, 1, 0);

	m = expect_message(test, p);
	inv.wr_cqe = &ndkc_op(test)->cqe;
	inv.ex.invalidate_rkey = old_key;
	reg = reg_request(ndkc_op(test), mr, NDKC_REMOTE_ALL);
	send = send_request(m.send);
	inv.next = &reg.wr;
	reg.wr.next = &send;
	KUNIT_ASSERT_EQ(test, ib_post_send(p->b->qp, &inv, NULL), 0);
	NDKC_ASSERT_WC(test, m.recv, IB_WC_SUCCESS);
	expect_readable(test, p, mr->mr->iova, mr->mr->rkey, 8192, 2, 0);
	expect_dead(test, p, old_iova, old_key);
}

/*
 * SRP: an unsignalled LOCAL_INV, and the region goes straight back to the
 * pool, where the next user maps it before the LOCAL_INV has run.
 */
static void srp_sequence(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf[2] = { ndkc_buf(test, 8192),
				    ndkc_buf(test, 8192) };
	struct ndkc_mr *mr = ndkc_registered(test, p->b, buf[0],
					     NDKC_REMOTE_ALL);
	struct message m;
	int i;

	ndkc_fill(buf[0], 10);
	ndkc_fill(buf[1], 11);
	for (i = 1; i < 12; i++) {
		KUNIT_ASSERT_EQ(test, ndkc_post_inv(p->b, ndkc_op(test),
						    mr->mr->rkey, 0), 0);
		ib_update_fast_reg_key(mr->mr, ib_inc_rkey(mr->mr->rkey));
		KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf[i & 1], 0, 8192), 0);
		KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, ndkc_op(test), mr,
						    mr->mr->rkey,
						    NDKC_REMOTE_ALL, 0), 0);
		m = expect_message(test, p);
		KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->b, m.send,
							 IB_SEND_SIGNALED, NULL,
							 0), 0);
		NDKC_ASSERT_WC(test, m.recv, IB_WC_SUCCESS);
		expect_readable(test, p, mr->mr->iova, mr->mr->rkey, 8192,
				10 + (i & 1), 0);
	}
}

/* NFS client: the XID goes to the top half of the address after the map. */
static void nfs_sequence(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_MEM_REG, 17);
	struct ndkc_op *op = ndkc_op(test);
	struct ndkc_op *write = ndkc_op(test);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);

	ndkc_fill(buf, 14);
	ndkc_fill(src, 15);
	KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf, 100, 12000), 0);
	mr->mr->iova &= 0x00000000ffffffffULL;
	mr->mr->iova |= (u64)0xfeedbeef << 32;
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, op, mr, mr->mr->rkey,
					    NDKC_REMOTE_ALL, IB_SEND_SIGNALED),
			0);
	NDKC_ASSERT_WC(test, op, IB_WC_SUCCESS);
	expect_readable(test, p, mr->mr->iova, mr->mr->rkey, 12000, 14, 100);
	expect_readable(test, p, mr->mr->iova + 5001, mr->mr->rkey, 6999, 14,
			5101);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, write, IB_WR_RDMA_WRITE, src,
					     0, 1000, mr->mr->iova + 3500,
					     mr->mr->rkey), 0);
	NDKC_ASSERT_WC(test, write, IB_WC_SUCCESS);
	/* A read behind the write shows that the write was placed. */
	expect_readable(test, p, mr->mr->iova + 3500, mr->mr->rkey, 1000, 15,
			0);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(buf, 3600, 1000, 15, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_matches(buf, 0, 3600, 14, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_matches(buf, 4600, 9000, 14, 4600));
}

/* NFS marks regions REMOTE_READ only; no LOCAL_WRITE needed for that. */
static void read_only_region_registers(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, buf,
					     IB_ACCESS_REMOTE_READ);

	ndkc_fill(buf, 16);
	expect_readable(test, p, mr->mr->iova, mr->mr->rkey, 4096, 16, 0);
}

/*
 * RTRS server: maps 128 KiB once, with that page size; per request
 * LOCAL_INV, and later REG_MR with a new key and no new map.
 */
static void rtrs_server_sequence(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, SZ_128K);
	struct ndkc_mr *mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_MEM_REG, 1);
	struct ndkc_op *reg, *inv;
	int i;

	KUNIT_ASSERT_EQ(test, sg_alloc_table(&mr->sgt, 1, GFP_KERNEL), 0);
	mr->mapped = true;
	sg_set_buf(mr->sgt.sgl, buf->va, buf->len);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(ndkc_dev, mr->sgt.sgl, 1,
					    DMA_BIDIRECTIONAL), 1);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr->mr, mr->sgt.sgl, 1, NULL,
					   SZ_128K), 1);
	ndkc_fill(buf, 18);
	for (i = 0; i < 5; i++) {
		reg = ndkc_op(test);
		inv = ndkc_op(test);
		ib_update_fast_reg_key(mr->mr, ib_inc_rkey(mr->mr->rkey));
		KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, reg, mr, mr->mr->rkey,
						    NDKC_REMOTE_ALL,
						    IB_SEND_SIGNALED), 0);
		NDKC_ASSERT_WC(test, reg, IB_WC_SUCCESS);
		expect_readable(test, p, mr->mr->iova + 70000, mr->mr->rkey,
				50000, 18, 70000);
		KUNIT_ASSERT_EQ(test, ndkc_post_inv(p->b, inv, mr->mr->rkey,
						    IB_SEND_SIGNALED), 0);
		NDKC_ASSERT_WC(test, inv, IB_WC_SUCCESS);
	}
	expect_dead(test, p, mr->mr->iova, mr->mr->rkey);
}

/* SMB waits for REG_MR and LOCAL_INV, and takes the largest depth. */
static void deepest_region_works_whole(struct kunit *test)
{
	u32 pages = min_t(u32, ndkc_dev->attrs.max_fast_reg_page_list_len, 512);
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_mr *mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_MEM_REG, pages);
	struct ndkc_buf *buf = ndkc_buf(test, pages * PAGE_SIZE);
	struct ndkc_op *reg = ndkc_op(test);
	size_t tail = buf->len - 9000;

	ndkc_fill(buf, 19);
	KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf, 0, buf->len), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, reg, mr, mr->mr->rkey,
					    NDKC_REMOTE_ALL, IB_SEND_SIGNALED),
			0);
	NDKC_ASSERT_WC(test, reg, IB_WC_SUCCESS);
	expect_readable(test, p, mr->mr->iova + tail, mr->mr->rkey, 9000, 19,
			tail);
	expect_readable(test, p, mr->mr->iova, mr->mr->rkey, 9000, 19, 0);
}

/* isert and rdma_rw start inside the first entry. */
static void sg_offset_is_honoured(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, 4 * PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_MEM_REG, 4);
	struct ndkc_op *reg = ndkc_op(test);
	struct scatterlist *sg;
	unsigned int off = 1234;
	int i;

	KUNIT_ASSERT_EQ(test, sg_alloc_table(&mr->sgt, 4, GFP_KERNEL), 0);
	mr->mapped = true;
	for_each_sgtable_sg(&mr->sgt, sg, i)
		sg_set_buf(sg, buf->va + i * PAGE_SIZE, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(ndkc_dev, mr->sgt.sgl, 4,
					    DMA_BIDIRECTIONAL), 4);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr->mr, mr->sgt.sgl, 4, &off,
					   PAGE_SIZE), 4);
	KUNIT_EXPECT_EQ(test, off, 0);
	KUNIT_EXPECT_EQ(test, mr->mr->length, 4 * PAGE_SIZE - 1234);
	KUNIT_EXPECT_EQ(test, mr->mr->iova, buf->dma + 1234);

	ndkc_fill(buf, 20);
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, reg, mr, mr->mr->rkey,
					    NDKC_REMOTE_ALL, IB_SEND_SIGNALED),
			0);
	NDKC_ASSERT_WC(test, reg, IB_WC_SUCCESS);
	expect_readable(test, p, mr->mr->iova, mr->mr->rkey,
			4 * PAGE_SIZE - 1234, 20, 1234);
	expect_dead(test, p, mr->mr->iova - 1, mr->mr->rkey);
}

static void map_takes_the_prefix_that_fits(struct kunit *test)
{
	struct ib_pd *pd = ndkc_pd(test);
	struct ndkc_buf *buf = ndkc_buf(test, 8 * PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_mr(test, pd, IB_MR_TYPE_MEM_REG, 4);
	struct scatterlist *sg;
	int i, n;

	KUNIT_ASSERT_EQ(test, sg_alloc_table(&mr->sgt, 4, GFP_KERNEL), 0);
	mr->mapped = true;
	/* Every other page: no two pages can be merged. */
	for_each_sgtable_sg(&mr->sgt, sg, i)
		sg_set_buf(sg, buf->va + 2 * i * PAGE_SIZE, PAGE_SIZE);
	ib_dma_map_sg(ndkc_dev, mr->sgt.sgl, 4, DMA_BIDIRECTIONAL);
	n = ib_map_mr_sg(mr->mr, mr->sgt.sgl, 4, NULL, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, n, 4);
	KUNIT_EXPECT_EQ(test, mr->mr->length, 4 * PAGE_SIZE);

	/* A gap inside a page ends the prefix. */
	mr->sgt.sgl[1].length -= 100;
	if (sg_dma_len(&mr->sgt.sgl[1]) != mr->sgt.sgl[1].length)
		sg_dma_len(&mr->sgt.sgl[1]) = mr->sgt.sgl[1].length;
	n = ib_map_mr_sg(mr->mr, mr->sgt.sgl, 4, NULL, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, n, 2);
	KUNIT_EXPECT_EQ(test, mr->mr->length, 2 * PAGE_SIZE - 100);
}

/* nvme, NFS, iser, SRP and RTRS use gaps where the device has them. */
static void gaps_are_registered(struct kunit *test)
{
	static const unsigned int start[] = { 100, 4096, 9000, 20001 };
	static const unsigned int len[] = { 33, 5000, 1, 7777 };
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_op *reg = ndkc_op(test);
	struct scatterlist *sg;
	struct ndkc_mr *mr;
	unsigned int off = 0;
	int i;

	KUNIT_ASSERT_TRUE(test, ndkc_dev->attrs.kernel_cap_flags &
				IBK_SG_GAPS_REG);
	mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_SG_GAPS, 8);
	KUNIT_ASSERT_EQ(test, sg_alloc_table(&mr->sgt, 4, GFP_KERNEL), 0);
	mr->mapped = true;
	for_each_sgtable_sg(&mr->sgt, sg, i)
		sg_set_buf(sg, buf->va + start[i], len[i]);
	ib_dma_map_sg(ndkc_dev, mr->sgt.sgl, 4, DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr->mr, mr->sgt.sgl, 4, NULL,
					   PAGE_SIZE), 4);
	ndkc_fill(buf, 24);
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, reg, mr, mr->mr->rkey,
					    NDKC_REMOTE_ALL, IB_SEND_SIGNALED),
			0);
	NDKC_ASSERT_WC(test, reg, IB_WC_SUCCESS);
	for (i = 0; i < 4; i++) {
		expect_readable(test, p, mr->mr->iova + off, mr->mr->rkey,
				len[i], 24, start[i]);
		off += len[i];
	}
	KUNIT_EXPECT_EQ(test, mr->mr->length, off);
}

static void invalidating_twice_succeeds(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, buf, NDKC_REMOTE_ALL);
	struct ndkc_op *one = ndkc_op(test);
	struct ndkc_op *two = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_inv(p->b, one, mr->mr->rkey,
					    IB_SEND_SIGNALED), 0);
	NDKC_EXPECT_WC(test, one, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, ndkc_post_inv(p->b, two, mr->mr->rkey,
					    IB_SEND_SIGNALED), 0);
	NDKC_EXPECT_WC(test, two, IB_WC_SUCCESS);
}

static void foreign_key_cannot_be_invalidated(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, buf, NDKC_REMOTE_ALL);
	struct ndkc_pair *q = ndkc_pair(test);
	struct ndkc_op *inv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_inv(q->b, inv, mr->mr->rkey,
					    IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_NE(test, ndkc_wait(inv), IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, ndkc_wait(inv), NDKC_NO_COMPLETION);
	ndkc_fill(buf, 25);
	expect_readable(test, p, mr->mr->iova, mr->mr->rkey, 64, 25, 0);
}

static void foreign_region_cannot_be_registered(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_mr(test, p->a->pd, IB_MR_TYPE_MEM_REG, 2);
	struct ndkc_op *reg = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf, 0, buf->len), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, reg, mr, mr->mr->rkey,
					    NDKC_REMOTE_ALL, IB_SEND_SIGNALED),
			0);
	NDKC_EXPECT_WC(test, reg, IB_WC_LOC_QP_OP_ERR);
}

static void key_is_that_of_the_work_request(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_MEM_REG, 2);
	struct ndkc_op *reg = ndkc_op(test);
	u32 key = (mr->mr->rkey & ~0xff) | 0x5e;

	ndkc_fill(buf, 26);
	KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf, 0, buf->len), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, reg, mr, key, NDKC_REMOTE_ALL,
					    IB_SEND_SIGNALED), 0);
	NDKC_ASSERT_WC(test, reg, IB_WC_SUCCESS);
	expect_readable(test, p, mr->mr->iova, key, 4096, 26, 0);
	expect_dead(test, p, mr->mr->iova, key ^ 0xff);
}

static void region_serves_as_local_memory(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, 3 * PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, 3 * PAGE_SIZE);
	struct ndkc_mr *from = ndkc_registered(test, p->a, src,
					       IB_ACCESS_LOCAL_WRITE);
	struct ndkc_mr *to = ndkc_registered(test, p->b, dst,
					     IB_ACCESS_LOCAL_WRITE);
	struct ib_sge out = {
		.addr = from->mr->iova + 10, .length = 9999,
		.lkey = from->mr->lkey,
	};
	struct ib_sge in = {
		.addr = to->mr->iova + 20, .length = 10000,
		.lkey = to->mr->lkey,
	};
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	ndkc_fill(src, 27);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, &in, 1), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 &out, 1), 0);
	NDKC_ASSERT_WC(test, recv, IB_WC_SUCCESS);
	NDKC_ASSERT_WC(test, send, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 20, 9999, 27, 10));
}

/* nvme register_always=N */
static void global_rkey_reaches_all_memory(struct kunit *test)
{
	struct ndkc_ep_attr attr = {};
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_pair *p;
	struct ib_pd *pd;

	pd = ib_alloc_pd(ndkc_dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	attr.pd = pd;
	p = ndkc_pair_attr(test, NULL, &attr);
	ndkc_fill(buf, 28);
	expect_readable(test, p, buf->dma + 8, pd->unsafe_global_rkey, 1000, 28,
			8);
	ndkc_drain(p->a);
	ndkc_drain(p->b);
	KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(p->b), 0);
	ib_dealloc_pd(pd);
}

/* The kernel's text is read-only memory. */
static void global_rkey_does_not_write_what_is_read_only(struct kunit *test)
{
	u64 text = (uintptr_t)dereference_function_descriptor(schedule);
	struct ndkc_op *write = ndkc_op(test), *read = ndkc_op(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_ep_attr attr = {};
	struct ndkc_pair *p;
	struct ib_pd *pd;

	if (!virt_addr_valid((void *)text))
		kunit_skip(test, "it is not in the direct map here");
	pd = ib_alloc_pd(ndkc_dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	attr.pd = pd;
	p = ndkc_pair_attr(test, NULL, &attr);
	KUNIT_EXPECT_EQ(test, ndkc_post_rdma(p->a, read, IB_WR_RDMA_READ, buf, 0, 64, text,
					     pd->unsafe_global_rkey), 0);
	NDKC_EXPECT_WC(test, read, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, buf->va, (void *)text, 64);
	/* A module for User Mode Linux has no fixups for its faults. */
	if (!IS_ENABLED(CONFIG_UML)) {
		memset(buf->va, 0xcc, 64);
		KUNIT_EXPECT_EQ(test, ndkc_post_rdma(p->a, write, IB_WR_RDMA_WRITE, buf, 0, 64,
						     text, pd->unsafe_global_rkey), 0);
		NDKC_EXPECT_WC(test, write, IB_WC_REM_ACCESS_ERR);
	}
	ndkc_drain(p->a);
	ndkc_drain(p->b);
	KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(p->b), 0);
	ib_dealloc_pd(pd);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(nvme_sequence),
	KUNIT_CASE(iser_sequence),
	KUNIT_CASE(srp_sequence),
	KUNIT_CASE(nfs_sequence),
	KUNIT_CASE(read_only_region_registers),
	KUNIT_CASE(rtrs_server_sequence),
	KUNIT_CASE(deepest_region_works_whole),
	KUNIT_CASE(sg_offset_is_honoured),
	KUNIT_CASE(map_takes_the_prefix_that_fits),
	KUNIT_CASE(gaps_are_registered),
	KUNIT_CASE(invalidating_twice_succeeds),
	KUNIT_CASE(foreign_key_cannot_be_invalidated),
	KUNIT_CASE(foreign_region_cannot_be_registered),
	KUNIT_CASE(key_is_that_of_the_work_request),
	KUNIT_CASE(region_serves_as_local_memory),
	KUNIT_CASE(global_rkey_reaches_all_memory),
	KUNIT_CASE(global_rkey_does_not_write_what_is_read_only),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "ndk_consumer_mr",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = mr_cases,
};

kunit_test_suite(mr_suite);
