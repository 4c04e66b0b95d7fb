// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests that succeed: every opcode, gather and scatter, signalling,
 * order, and the fields of the completions.
 */
#include "fixture.h"

static void expect_wc(struct kunit *test, struct ndkc_op *op,
		      struct ndkc_ep *ep, enum ib_wc_opcode opcode)
{
	NDKC_ASSERT_WC(test, op, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)op->wc.opcode, opcode);
	KUNIT_EXPECT_PTR_EQ(test, op->wc.qp, ep->qp);
}

static void send_fills_the_receive(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	ndkc_fill(src, 1);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv, dst, 16, 1024), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send(p->a, send, IB_SEND_SIGNALED, src,
					     0, 777), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, 777);
	KUNIT_EXPECT_EQ(test, recv->wc.wc_flags & (IB_WC_WITH_IMM |
						   IB_WC_WITH_INVALIDATE), 0);
	expect_wc(test, send, p->a, IB_WC_SEND);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 16, 777, 1, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va, 16, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va + 16 + 777, 1024, 0));
}

static void send_with_immediate(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ib_sge sge = ndkc_sge(p->a, buf, 0, 100);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv, buf, 2048, 128), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_op(p->a, send, IB_WR_SEND_WITH_IMM,
						IB_SEND_SIGNALED, &sge, 1,
						0x12345678), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_TRUE(test, recv->wc.wc_flags & IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(recv->wc.ex.imm_data), 0x12345678);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, 100);
	expect_wc(test, send, p->a, IB_WC_SEND);
}

static void send_with_invalidate(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, buf, NDKC_REMOTE_ALL);
	struct ndkc_buf *other = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ndkc_op *late = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv, other, 0, 128), 0);
	/* RTRS: no data at all. */
	KUNIT_ASSERT_EQ(test, ndkc_post_send_op(p->a, send, IB_WR_SEND_WITH_INV,
						IB_SEND_SIGNALED, NULL, 0,
						mr->mr->rkey), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_TRUE(test, recv->wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, recv->wc.ex.invalidate_rkey, mr->mr->rkey);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, 0);
	expect_wc(test, send, p->a, IB_WC_SEND);

	ndkc_fill(other, 9);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, late, IB_WR_RDMA_WRITE,
					     other, 0, 64, mr->mr->iova,
					     mr->mr->rkey), 0);
	ndkc_wait(late);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, buf->len, 0));
}

static void write_places_the_data(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *write = ndkc_op(test);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	ndkc_fill(src, 5);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv, src, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, write, IB_WR_RDMA_WRITE, src,
					     0, src->len - 3, mr->mr->iova + 3,
					     mr->mr->rkey), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	/* The data is there before a later send is received. */
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 3, src->len - 3, 5, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va, 3, 0));
	expect_wc(test, write, p->a, IB_WC_RDMA_WRITE);
	expect_wc(test, send, p->a, IB_WC_SEND);
}

static void write_with_immediate(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *write = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ib_sge sge = ndkc_sge(p->a, src, 0, 300);

	ndkc_fill(src, 6);
	/* RTRS: the receive has no buffer. */
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, write,
						 IB_WR_RDMA_WRITE_WITH_IMM,
						 IB_SEND_SIGNALED, &sge, 1,
						 mr->mr->iova, mr->mr->rkey,
						 0xcafe0001), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_TRUE(test, recv->wc.wc_flags & IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(recv->wc.ex.imm_data), 0xcafe0001);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, 300, 6, 0));
	expect_wc(test, write, p->a, IB_WC_RDMA_WRITE);
}

/* RTRS heartbeat: neither data nor a valid key. */
static void empty_write_with_immediate(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_op *write = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, write,
						 IB_WR_RDMA_WRITE_WITH_IMM,
						 IB_SEND_SIGNALED, NULL, 0, 0,
						 0, 7), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(recv->wc.ex.imm_data), 7);
	expect_wc(test, write, p->a, IB_WC_RDMA_WRITE);
}

static void read_fetches_the_data(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *remote = ndkc_registered(test, p->b, src,
						 IB_ACCESS_REMOTE_READ);
	struct ndkc_mr *sink = ndkc_registered(test, p->a, dst,
					       NDKC_REMOTE_ALL);
	struct ndkc_op *read = ndkc_op(test);
	struct ib_sge sge = {
		.addr = sink->mr->iova + 5,
		.length = dst->len - 5,
		.lkey = sink->mr->lkey,
	};

	ndkc_fill(src, 7);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, read, IB_WR_RDMA_READ,
						 IB_SEND_SIGNALED, &sge, 1,
						 remote->mr->iova,
						 remote->mr->rkey, 0), 0);
	expect_wc(test, read, p->a, IB_WC_RDMA_READ);
	KUNIT_EXPECT_EQ(test, read->wc.byte_len, dst->len - 5);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 5, dst->len - 5, 7, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va, 5, 0));
}

/*
 * The key of the local element names the sink. ex.invalidate_rkey does not
 * matter: rdma_rw puts a key of the sink there, other consumers leave it unset.
 */
static void read_with_invalidate(struct kunit *test, u32 (*named)(u32 sink))
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *remote = ndkc_registered(test, p->b, src,
						 IB_ACCESS_REMOTE_READ);
	struct ndkc_mr *sink = ndkc_registered(test, p->a, dst,
					       IB_ACCESS_LOCAL_WRITE |
					       IB_ACCESS_REMOTE_WRITE);
	struct ndkc_op *read = ndkc_op(test);
	struct ndkc_op *late = ndkc_op(test);
	struct ib_sge sge = {
		.addr = sink->mr->iova,
		.length = dst->len,
		.lkey = sink->mr->lkey,
	};

	ndkc_fill(src, 8);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, read,
						 IB_WR_RDMA_READ_WITH_INV,
						 IB_SEND_SIGNALED, &sge, 1,
						 remote->mr->iova,
						 remote->mr->rkey,
						 named(sink->mr->lkey)), 0);
	expect_wc(test, read, p->a, IB_WC_RDMA_READ);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, dst->len, 8, 0));

	/* The peer cannot write through the sink any more. */
	memset(dst->va, 0, dst->len);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->b, late, IB_WR_RDMA_WRITE, src,
					     0, 64, sink->mr->iova,
					     sink->mr->rkey), 0);
	NDKC_ASSERT_WC(test, late, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va, dst->len, 0));
}

static u32 sink_named(u32 sink)
{
	return sink;
}

static u32 nothing_named(u32 sink)
{
	return 0;
}

static void read_with_invalidate_revokes_its_sink(struct kunit *test)
{
	read_with_invalidate(test, sink_named);
}

static void read_with_invalidate_needs_no_rkey(struct kunit *test)
{
	read_with_invalidate(test, nothing_named);
}

/* Another region of the same domain, named by mistake, stays as it is. */
static void read_with_invalidate_spares_what_rkey_names(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *third = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *remote = ndkc_registered(test, p->b, src,
						 IB_ACCESS_REMOTE_READ);
	struct ndkc_mr *sink = ndkc_registered(test, p->a, dst,
					       NDKC_REMOTE_ALL);
	struct ndkc_mr *other = ndkc_registered(test, p->a, third,
						NDKC_REMOTE_ALL);
	struct ndkc_op *read = ndkc_op(test);
	struct ndkc_op *write = ndkc_op(test);
	struct ib_sge sge = {
		.addr = sink->mr->iova,
		.length = dst->len,
		.lkey = sink->mr->lkey,
	};

	ndkc_fill(src, 9);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, read,
						 IB_WR_RDMA_READ_WITH_INV,
						 IB_SEND_SIGNALED, &sge, 1,
						 remote->mr->iova,
						 remote->mr->rkey,
						 other->mr->lkey), 0);
	expect_wc(test, read, p->a, IB_WC_RDMA_READ);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->b, write, IB_WR_RDMA_WRITE, src,
					     0, 64, other->mr->iova,
					     other->mr->rkey), 0);
	expect_wc(test, write, p->b, IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(third, 0, 64, 9, 0));
}

/* Without a sink the request has no key to invalidate. */
static void read_with_invalidate_needs_a_sink(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *remote = ndkc_registered(test, p->b, src,
						 IB_ACCESS_REMOTE_READ);

	KUNIT_EXPECT_EQ(test, ndkc_post_rdma_sge(p->a, ndkc_op(test),
						 IB_WR_RDMA_READ_WITH_INV,
						 IB_SEND_SIGNALED, NULL, 0,
						 remote->mr->iova,
						 remote->mr->rkey, 0), -EINVAL);
}

static void many_reads_queue_behind_the_limit(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *remote = ndkc_registered(test, p->b, src,
						 IB_ACCESS_REMOTE_READ);
	struct ndkc_op *read[48];
	int i;

	ndkc_fill(src, 11);
	/* 16 were negotiated, see conn_param(). */
	for (i = 0; i < ARRAY_SIZE(read); i++) {
		read[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, read[i],
						     IB_WR_RDMA_READ, dst,
						     i * 1000, 1000,
						     remote->mr->iova +
						     i * 1000,
						     remote->mr->rkey), 0);
	}
	for (i = 0; i < ARRAY_SIZE(read); i++) {
		expect_wc(test, read[i], p->a, IB_WC_RDMA_READ);
		if (i)
			KUNIT_EXPECT_GT(test, read[i]->order,
					read[i - 1]->order);
	}
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, 48000, 11, 0));
}

static void fetch_and_add(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *remote = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *old = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *op = ndkc_op(test);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, remote,
					     NDKC_REMOTE_ALL |
					     IB_ACCESS_REMOTE_ATOMIC);
	u64 *value = (u64 *)(remote->va + 16);

	*value = 40;
	KUNIT_ASSERT_EQ(test, ndkc_post_atomic(p->a, op,
					       IB_WR_ATOMIC_FETCH_AND_ADD, old,
					       mr->mr->iova + 16, mr->mr->rkey,
					       2, 0), 0);
	expect_wc(test, op, p->a, IB_WC_FETCH_ADD);
	KUNIT_EXPECT_EQ(test, *value, 42);
	KUNIT_EXPECT_EQ(test, *(u64 *)old->va, 40);
}

static void compare_and_swap(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *remote = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *old = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *hit = ndkc_op(test);
	struct ndkc_op *miss = ndkc_op(test);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, remote,
					     NDKC_REMOTE_ALL |
					     IB_ACCESS_REMOTE_ATOMIC);
	u64 *value = (u64 *)remote->va;

	*value = 1;
	KUNIT_ASSERT_EQ(test, ndkc_post_atomic(p->a, hit,
					       IB_WR_ATOMIC_CMP_AND_SWP, old,
					       mr->mr->iova, mr->mr->rkey, 1,
					       77), 0);
	expect_wc(test, hit, p->a, IB_WC_COMP_SWAP);
	KUNIT_EXPECT_EQ(test, *value, 77);
	KUNIT_EXPECT_EQ(test, *(u64 *)old->va, 1);

	KUNIT_ASSERT_EQ(test, ndkc_post_atomic(p->a, miss,
					       IB_WR_ATOMIC_CMP_AND_SWP, old,
					       mr->mr->iova, mr->mr->rkey, 1,
					       99), 0);
	expect_wc(test, miss, p->a, IB_WC_COMP_SWAP);
	KUNIT_EXPECT_EQ(test, *value, 77);
	KUNIT_EXPECT_EQ(test, *(u64 *)old->va, 77);
}

static void registration_and_invalidation_complete(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_mr(test, p->b->pd, IB_MR_TYPE_MEM_REG, 2);
	struct ndkc_op *reg = ndkc_op(test);
	struct ndkc_op *inv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_map(mr, buf, 0, buf->len), 0);
	KUNIT_EXPECT_EQ(test, mr->mr->length, buf->len);
	KUNIT_ASSERT_EQ(test, ndkc_post_reg(p->b, reg, mr, mr->mr->rkey,
					    NDKC_REMOTE_ALL, IB_SEND_SIGNALED),
			0);
	KUNIT_ASSERT_EQ(test, ndkc_post_inv(p->b, inv, mr->mr->rkey,
					    IB_SEND_SIGNALED), 0);
	expect_wc(test, reg, p->b, IB_WC_REG_MR);
	expect_wc(test, inv, p->b, IB_WC_LOCAL_INV);
	KUNIT_EXPECT_LT(test, reg->order, inv->order);
}

static void zero_length_requests_work(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, buf, NDKC_REMOTE_ALL);
	struct ndkc_op *write = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *read = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, 0);
	expect_wc(test, send, p->a, IB_WC_SEND);

	/* srpt: rkey 0, no SGE */
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, write, IB_WR_RDMA_WRITE,
						 IB_SEND_SIGNALED, NULL, 0, 0,
						 0, 0), 0);
	expect_wc(test, write, p->a, IB_WC_RDMA_WRITE);

	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, read, IB_WR_RDMA_READ,
						 IB_SEND_SIGNALED, NULL, 0,
						 mr->mr->iova, mr->mr->rkey, 0),
			0);
	expect_wc(test, read, p->a, IB_WC_RDMA_READ);
}

static const u32 odd_lengths[] = { 1, 3, 7, 63, 4095, 4096, 4097, 65535 };

static void length_desc(const u32 *len, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u bytes", *len);
}

KUNIT_ARRAY_PARAM(odd, odd_lengths, length_desc);

/* Cut @len bytes into up to four pieces with awkward borders. */
static int cut(struct ndkc_ep *ep, struct ndkc_buf *buf, u32 len,
	       const u32 *borders, struct ib_sge *sge)
{
	u32 start = 0, end;
	int i, n = 0;

	for (i = 0; i < 4 && start < len; i++) {
		end = i == 3 ? len : min(len, borders[i]);
		/* Pieces lie apart, so that a wrong border shows. */
		sge[n++] = ndkc_sge(ep, buf, start + i * 8192, end - start);
		start = end;
	}
	return n;
}

static bool cut_matches(struct ndkc_buf *buf, u32 len, const u32 *borders,
			struct ndkc_buf *src, const u32 *src_borders)
{
	u32 i, d = 0, s = 0;

	for (i = 0; i < len; i++) {
		while (d < 3 && i >= borders[d])
			d++;
		while (s < 3 && i >= src_borders[s])
			s++;
		if (buf->va[i + d * 8192] != src->va[i + s * 8192])
			return false;
	}
	return true;
}

static const u32 borders_out[] = { 1, 4, 4098 };
static const u32 borders_in[] = { 3, 66, 4095 };

static void send_gathers_and_scatters(struct kunit *test)
{
	u32 len = *(const u32 *)test->param_value;
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, 2 * NDKC_BUF_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, 2 * NDKC_BUF_SIZE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ib_sge out[4], in[4];

	ndkc_fill(src, 21);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, in,
						 cut(p->b, dst, len,
						     borders_in, in)), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 out, cut(p->a, src, len,
							  borders_out, out)),
			0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, len);
	expect_wc(test, send, p->a, IB_WC_SEND);
	KUNIT_EXPECT_TRUE(test, cut_matches(dst, len, borders_in, src,
					    borders_out));
}

static void write_gathers(struct kunit *test)
{
	static const u32 whole[] = { U32_MAX, U32_MAX, U32_MAX };
	u32 len = *(const u32 *)test->param_value;
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, 2 * NDKC_BUF_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *op = ndkc_op(test);
	struct ndkc_op *read = ndkc_op(test);
	struct ib_sge out[4];

	ndkc_fill(src, 22);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, op, IB_WR_RDMA_WRITE,
						 IB_SEND_SIGNALED, out,
						 cut(p->a, src, len,
						     borders_out, out),
						 mr->mr->iova, mr->mr->rkey, 0),
			0);
	expect_wc(test, op, p->a, IB_WC_RDMA_WRITE);
	/* A read behind the write proves that it was placed. */
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, read, IB_WR_RDMA_READ, src,
					     0, 1, mr->mr->iova, mr->mr->rkey),
			0);
	expect_wc(test, read, p->a, IB_WC_RDMA_READ);
	KUNIT_EXPECT_TRUE(test, cut_matches(dst, len, whole, src, borders_out));
}

static void all_send_sges_can_be_used(struct kunit *test)
{
	u32 n = min_t(u32, ndkc_dev->attrs.max_send_sge, 32);
	u32 m = min_t(u32, ndkc_dev->attrs.max_recv_sge, 32);
	const struct ndkc_ep_attr attr = { .send_sge = n, .recv_sge = m };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, &attr);
	struct ndkc_buf *src = ndkc_buf(test, 2 * NDKC_BUF_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, 2 * NDKC_BUF_SIZE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ib_sge sge[32];
	u32 i;

	ndkc_fill(src, 23);
	for (i = 0; i < m; i++)
		sge[i] = ndkc_sge(p->b, dst, i * n * 3, n * 3);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, sge, m), 0);
	for (i = 0; i < n; i++)
		sge[i] = ndkc_sge(p->a, src, i * m * 3, m * 3);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 sge, n), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, n * m * 3);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, n * m * 3, 23, 0));
}

/* The call copies inline data, whose key does not matter. */
static void inline_data_may_be_reused_at_once(struct kunit *test)
{
	const struct ndkc_ep_attr attr = { .inline_data = 64 };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, NULL);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ib_sge sge = {
		.addr = (uintptr_t)src->va, .length = 64, .lkey = 0xdeadbeef,
	};

	ndkc_fill(src, 31);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv, dst, 0, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send,
						 IB_SEND_SIGNALED |
						 IB_SEND_INLINE, &sge, 1), 0);
	memset(src->va, 0, src->len);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, 64, 31, 0));
	expect_wc(test, send, p->a, IB_WC_SEND);
}

static void inline_data_beyond_the_limit_is_refused(struct kunit *test)
{
	const struct ndkc_ep_attr attr = { .inline_data = 64 };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, NULL);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send = ndkc_op(test);

	KUNIT_EXPECT_NE(test, ndkc_post_send(p->a, send, IB_SEND_SIGNALED |
					     IB_SEND_INLINE, src, 0, 4096), 0);
	KUNIT_EXPECT_TRUE(test, ndkc_stays_incomplete(send, 50));
}

static void chain_is_posted_up_to_the_bad_entry(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ib_sge sge[5] = {};
	struct ndkc_op *recv[4], *op[4];
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr wr[4] = {};
	int i;

	for (i = 0; i < 4; i++) {
		recv[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv[i], buf, 0, 64),
				0);
		op[i] = ndkc_op(test);
		op[i]->cq = p->a->scq;
		wr[i].wr_cqe = &op[i]->cqe;
		wr[i].opcode = IB_WR_SEND;
		wr[i].send_flags = IB_SEND_SIGNALED;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	/* Entry 2 has more SGEs than the QP allows. */
	for (i = 0; i < 5; i++)
		sge[i] = ndkc_sge(p->a, buf, i, 1);
	wr[2].sg_list = sge;
	wr[2].num_sge = 5;

	KUNIT_EXPECT_EQ(test, ndkc_post_chain(p->a, &wr[0], sizeof(wr[0]), &bad), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_send_wr *)&wr[2]);
	expect_wc(test, op[0], p->a, IB_WC_SEND);
	expect_wc(test, op[1], p->a, IB_WC_SEND);
	KUNIT_EXPECT_TRUE(test, ndkc_stays_incomplete(op[2], 20));
	KUNIT_EXPECT_TRUE(test, ndkc_stays_incomplete(op[3], 20));
	NDKC_EXPECT_WC(test, recv[1], IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_read(&recv[2]->count), 0);
	/* The queue still works. */
	KUNIT_ASSERT_EQ(test, ndkc_post_chain(p->a, &wr[3], sizeof(wr[0]), &bad), 0);
	expect_wc(test, op[3], p->a, IB_WC_SEND);
}

/* The value of a counter of the device. */
static u64 counted(struct kunit *test, const char *name)
{
	struct rdma_hw_stats *stats;
	u64 value = 0;
	int i;

	stats = ndkc_dev->ops.alloc_hw_port_stats(ndkc_dev, 1);
	KUNIT_ASSERT_NOT_NULL(test, stats);
	ndkc_dev->ops.get_hw_stats(ndkc_dev, stats, 1, 0);
	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, name))
			value = stats->value[i];
	rdma_free_hw_stats_struct(stats);
	return value;
}

/* The doorbell rings once, behind the last entry or at the failing entry. */
static void ndk_face_03_list_is_one_batch_and_names_the_bad_entry(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *recv[7], *op[7];
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr wr[7] = {};
	struct ib_sge sge[5] = {};
	u64 passes;
	int i;

	for (i = 0; i < 7; i++) {
		recv[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv[i], buf, 0, 64),
				0);
		op[i] = ndkc_op(test);
		op[i]->cq = p->a->scq;
		wr[i].wr_cqe = &op[i]->cqe;
		wr[i].opcode = IB_WR_SEND;
		wr[i].send_flags = IB_SEND_SIGNALED;
		wr[i].next = i != 0 && i != 3 && i < 6 ? &wr[i + 1] : NULL;
	}
	/* After this request both ends are up. */
	KUNIT_ASSERT_EQ(test, ndkc_post_chain(p->a, &wr[0], sizeof(wr[0]), &bad), 0);
	expect_wc(test, op[0], p->a, IB_WC_SEND);
	NDKC_EXPECT_WC(test, recv[0], IB_WC_SUCCESS);

	passes = counted(test, "passes");
	KUNIT_ASSERT_GT(test, passes, 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_chain(p->a, &wr[1], sizeof(wr[0]), &bad), 0);
	for (i = 1; i < 4; i++)
		expect_wc(test, op[i], p->a, IB_WC_SEND);
	KUNIT_EXPECT_EQ(test, counted(test, "passes"), passes + 1);

	/* Of three entries the last one has more SGEs than the QP allows. */
	for (i = 0; i < 5; i++)
		sge[i] = ndkc_sge(p->a, buf, i, 1);
	wr[6].sg_list = sge;
	wr[6].num_sge = 5;
	KUNIT_EXPECT_EQ(test, ndkc_post_chain(p->a, &wr[4], sizeof(wr[0]), &bad), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_send_wr *)&wr[6]);
	expect_wc(test, op[4], p->a, IB_WC_SEND);
	expect_wc(test, op[5], p->a, IB_WC_SEND);
	KUNIT_EXPECT_EQ(test, counted(test, "passes"), passes + 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&op[6]->count), 0);
}

static void receive_chain_reports_the_bad_entry(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr[3] = {};
	struct ib_sge sge[5];
	struct ndkc_op *op[3];
	int i;

	for (i = 0; i < 5; i++)
		sge[i] = ndkc_sge(p->b, buf, i, 1);
	for (i = 0; i < 3; i++) {
		op[i] = ndkc_op(test);
		op[i]->cq = p->b->rcq;
		wr[i].wr_cqe = &op[i]->cqe;
		wr[i].sg_list = sge;
		wr[i].num_sge = i == 1 ? 5 : 1;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	KUNIT_EXPECT_NE(test, ndkc_post_recv_chain(p->b, &wr[0], &bad), 0);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_recv_wr *)&wr[1]);
	KUNIT_ASSERT_EQ(test, ndkc_drain(p->b), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&op[0]->count), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&op[1]->count), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&op[2]->count), 0);
}

/* nvme: an unsignalled REG_MR chained before the SEND. */
static void unsignalled_requests_stay_silent(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *quiet[8], *recv[9];
	struct ndkc_op *last = ndkc_op(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(recv); i++) {
		recv[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv[i], buf, 0, 64),
				0);
	}
	for (i = 0; i < ARRAY_SIZE(quiet); i++) {
		quiet[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_send(p->a, quiet[i], 0, buf,
						     128, 32), 0);
	}
	KUNIT_ASSERT_EQ(test, ndkc_post_send(p->a, last, IB_SEND_SIGNALED, buf,
					     128, 32), 0);
	expect_wc(test, last, p->a, IB_WC_SEND);
	NDKC_EXPECT_WC(test, recv[8], IB_WC_SUCCESS);
	for (i = 0; i < ARRAY_SIZE(quiet); i++)
		KUNIT_EXPECT_EQ(test, atomic_read(&quiet[i]->count), 0);
}

static void sig_all_signals_everything(struct kunit *test)
{
	const struct ndkc_ep_attr attr = { .sig_all = true };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, NULL);
	struct ndkc_op *recv = ndkc_op(test);
	struct ndkc_op *send = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, 0, NULL, 0), 0);
	expect_wc(test, send, p->a, IB_WC_SEND);
}

static void completions_keep_the_posting_order(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, buf, NDKC_REMOTE_ALL);
	struct ndkc_buf *local = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_op *op[24], *recv[8];
	int i, r = 0, ret;

	for (i = 0; i < ARRAY_SIZE(recv); i++) {
		recv[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv[i], NULL,
							 0), 0);
	}
	for (i = 0; i < ARRAY_SIZE(op); i++) {
		op[i] = ndkc_op(test);
		/* Large reads first: a send must not overtake them. */
		if (i % 3 == 0)
			ret = ndkc_post_rdma(p->a, op[i], IB_WR_RDMA_READ,
					     local, 0, 32768, mr->mr->iova,
					     mr->mr->rkey);
		else if (i % 3 == 1)
			ret = ndkc_post_rdma(p->a, op[i], IB_WR_RDMA_WRITE,
					     local, 32768, 5000, mr->mr->iova,
					     mr->mr->rkey);
		else
			ret = ndkc_post_send_sge(p->a, op[i], IB_SEND_SIGNALED,
						 NULL, 0);
		KUNIT_ASSERT_EQ(test, ret, 0);
	}
	for (i = 0; i < ARRAY_SIZE(op); i++) {
		NDKC_EXPECT_WC(test, op[i], IB_WC_SUCCESS);
		if (i)
			KUNIT_EXPECT_GT(test, op[i]->order, op[i - 1]->order);
	}
	for (r = 0; r < ARRAY_SIZE(recv); r++) {
		NDKC_EXPECT_WC(test, recv[r], IB_WC_SUCCESS);
		if (r)
			KUNIT_EXPECT_GT(test, recv[r]->order,
					recv[r - 1]->order);
	}
}

/* The write behind the fence sends the data of the read. */
static void fence_waits_for_reads(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_buf *mid = ndkc_buf(test, NDKC_BUF_SIZE);
	struct ndkc_mr *from = ndkc_registered(test, p->b, src,
					       IB_ACCESS_REMOTE_READ);
	struct ndkc_mr *to = ndkc_registered(test, p->b, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *read = ndkc_op(test);
	struct ndkc_op *write = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ndkc_op *send = ndkc_op(test);
	struct ib_sge sge = ndkc_sge(p->a, mid, 0, mid->len);

	ndkc_fill(src, 41);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(p->a, read, IB_WR_RDMA_READ, mid,
					     0, mid->len, from->mr->iova,
					     from->mr->rkey), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, write, IB_WR_RDMA_WRITE,
						 IB_SEND_SIGNALED |
						 IB_SEND_FENCE, &sge, 1,
						 to->mr->iova, to->mr->rkey, 0),
			0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, read, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, write, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, dst->len, 41, 0));
}

static void one_megabyte_in_one_message(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *src = ndkc_buf(test, SZ_1M);
	struct ndkc_buf *dst = ndkc_buf(test, SZ_1M);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	ndkc_fill(src, 51);
	/* 9p: one receive SGE of msize */
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv, dst, 0, SZ_1M), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send(p->a, send, IB_SEND_SIGNALED, src,
					     0, SZ_1M), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, SZ_1M);
	expect_wc(test, send, p->a, IB_WC_SEND);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, SZ_1M, 51, 0));
}

static void two_qps_share_their_cqs(struct kunit *test)
{
	struct ndkc_cq *cq = ndkc_cq(test, 512, 0, IB_POLL_WORKQUEUE);
	const struct ndkc_ep_attr attr = { .scq = cq, .rcq = cq };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, &attr);
	struct ndkc_pair *q = ndkc_pair_attr(test, &attr, &attr);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	expect_wc(test, recv, p->b, IB_WC_RECV);
	expect_wc(test, send, p->a, IB_WC_SEND);

	send = ndkc_op(test);
	recv = ndkc_op(test);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(q->a, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(q->b, send, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	expect_wc(test, recv, q->a, IB_WC_RECV);
	expect_wc(test, send, q->b, IB_WC_SEND);
}

static struct kunit_case wr_cases[] = {
	KUNIT_CASE(send_fills_the_receive),
	KUNIT_CASE(send_with_immediate),
	KUNIT_CASE(send_with_invalidate),
	KUNIT_CASE(write_places_the_data),
	KUNIT_CASE(write_with_immediate),
	KUNIT_CASE(empty_write_with_immediate),
	KUNIT_CASE(read_fetches_the_data),
	KUNIT_CASE(read_with_invalidate_revokes_its_sink),
	KUNIT_CASE(read_with_invalidate_needs_no_rkey),
	KUNIT_CASE(read_with_invalidate_spares_what_rkey_names),
	KUNIT_CASE(read_with_invalidate_needs_a_sink),
	KUNIT_CASE(many_reads_queue_behind_the_limit),
	KUNIT_CASE(fetch_and_add),
	KUNIT_CASE(compare_and_swap),
	KUNIT_CASE(registration_and_invalidation_complete),
	KUNIT_CASE(zero_length_requests_work),
	KUNIT_CASE_PARAM(send_gathers_and_scatters, odd_gen_params),
	KUNIT_CASE_PARAM(write_gathers, odd_gen_params),
	KUNIT_CASE(all_send_sges_can_be_used),
	KUNIT_CASE(inline_data_may_be_reused_at_once),
	KUNIT_CASE(inline_data_beyond_the_limit_is_refused),
	KUNIT_CASE(chain_is_posted_up_to_the_bad_entry),
	KUNIT_CASE(ndk_face_03_list_is_one_batch_and_names_the_bad_entry),
	KUNIT_CASE(receive_chain_reports_the_bad_entry),
	KUNIT_CASE(unsignalled_requests_stay_silent),
	KUNIT_CASE(sig_all_signals_everything),
	KUNIT_CASE(completions_keep_the_posting_order),
	KUNIT_CASE(fence_waits_for_reads),
	KUNIT_CASE(one_megabyte_in_one_message),
	KUNIT_CASE(two_qps_share_their_cqs),
	{}
};

static struct kunit_suite wr_suite = {
#ifdef NDKC_ODD
	.name = "ndk_consumer_wr_odd",
	.init = ndkc_init_odd,
#else
	.name = "ndk_consumer_wr",
	.init = ndkc_init,
#endif
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.exit = ndkc_exit,
	.test_cases = wr_cases,
};

kunit_test_suite(wr_suite);
