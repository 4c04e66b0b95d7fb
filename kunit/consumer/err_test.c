// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests that must fail: the status, the untouched memory, and the end
 * of the connection.
 */

#include "fixture.h"

/* The active side attacks a region of the passive side. */
struct target {
	struct ndkc_pair *p;
	struct ndkc_buf *src;
	struct ndkc_buf *dst;
	struct ndkc_mr *mr;
};

static struct target make_target(struct kunit *test, int access)
{
	struct target t;

	t.p = ndkc_pair(test);
	t.src = ndkc_buf(test, 4 * PAGE_SIZE);
	t.dst = ndkc_buf(test, 4 * PAGE_SIZE);
	t.mr = ndkc_registered(test, t.p->b, t.dst, access);
	ndkc_fill(t.src, 77);
	return t;
}

static void expect_connection_lost(struct kunit *test, struct ndkc_pair *p)
{
	struct ndkc_op *late = ndkc_op(test);

	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->b->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, ndkc_post_send_sge(p->a, late, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	NDKC_EXPECT_WC(test, late, IB_WC_WR_FLUSH_ERR);
}

/**
 * struct attack - one way to abuse a remote region of 4 pages
 * @name: what is wrong
 * @access: rights of the region
 * @opcode: operation
 * @key_xor: applied to the key
 * @offset: added to the start of the region
 * @len: bytes
 * @absolute: @offset is the whole address
 */
struct attack {
	const char *name;
	int access;
	enum ib_wr_opcode opcode;
	u32 key_xor;
	u64 offset;
	u32 len;
	bool absolute;
};

#define END (4 * PAGE_SIZE)

static const struct attack attacks[] = {
	{ "write, wrong index", NDKC_REMOTE_ALL, IB_WR_RDMA_WRITE, 0x5a5a00, 0,
	  64 },
	{ "write, wrong key byte", NDKC_REMOTE_ALL, IB_WR_RDMA_WRITE, 1, 0,
	  64 },
	{ "write, no right", IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	  IB_WR_RDMA_WRITE, 0, 0, 64 },
	{ "write, local right only", IB_ACCESS_LOCAL_WRITE, IB_WR_RDMA_WRITE,
	  0, 0, 64 },
	{ "write, one byte behind", NDKC_REMOTE_ALL, IB_WR_RDMA_WRITE, 0,
	  END - 63, 64 },
	{ "write, one byte before", NDKC_REMOTE_ALL, IB_WR_RDMA_WRITE, 0, -1ULL,
	  64 },
	{ "write, far behind", NDKC_REMOTE_ALL, IB_WR_RDMA_WRITE, 0, 1ULL << 40,
	  64 },
	{ "write, address wraps", NDKC_REMOTE_ALL, IB_WR_RDMA_WRITE, 0, -32ULL,
	  64, true },
	{ "read, wrong index", NDKC_REMOTE_ALL, IB_WR_RDMA_READ, 0x5a5a00, 0,
	  64 },
	{ "read, wrong key byte", NDKC_REMOTE_ALL, IB_WR_RDMA_READ, 1, 0, 64 },
	{ "read, no right", IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	  IB_WR_RDMA_READ, 0, 0, 64 },
	{ "read, one byte behind", NDKC_REMOTE_ALL, IB_WR_RDMA_READ, 0,
	  END - 63, 64 },
	{ "read, one byte before", NDKC_REMOTE_ALL, IB_WR_RDMA_READ, 0, -1ULL,
	  64 },
	{ "read, address wraps", NDKC_REMOTE_ALL, IB_WR_RDMA_READ, 0, -32ULL,
	  64, true },
};

static void attack_desc(const struct attack *a, char *desc)
{
	strscpy(desc, a->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(attack, attacks, attack_desc);

static void remote_access_is_refused(struct kunit *test)
{
	const struct attack *a = test->param_value;
	struct target t = make_target(test, a->access);
	u64 base = a->absolute ? 0 : t.mr->mr->iova;
	struct ndkc_op *op = ndkc_op(test);
	int status;

	memset(t.dst->va, 0x11, t.dst->len);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(t.p->a, op, a->opcode, t.src, 0,
					     a->len, base + a->offset,
					     t.mr->mr->rkey ^ a->key_xor), 0);
	status = ndkc_wait(op);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0x11));
	KUNIT_EXPECT_TRUE(test, ndkc_matches(t.src, 0, t.src->len, 77, 0));
	expect_connection_lost(test, t.p);
}

static void region_of_another_pd_is_refused(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_pair *q = ndkc_pair(test);
	struct ndkc_op *op = ndkc_op(test);
	int status;

	/* A valid key, but of the PD of the other connection. */
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(q->a, op, IB_WR_RDMA_WRITE, t.src,
					     0, 64, t.mr->mr->iova,
					     t.mr->mr->rkey), 0);
	status = ndkc_wait(op);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0));
	expect_connection_lost(test, q);
}

static void local_dma_key_is_no_remote_key(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_op *op = ndkc_op(test);
	int status;

	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(t.p->a, op, IB_WR_RDMA_WRITE,
					     t.src, 0, 64, t.dst->dma,
					     t.p->b->pd->local_dma_lkey), 0);
	status = ndkc_wait(op);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0));
}

static void send_with_a_bad_local_key_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ib_sge sge = ndkc_sge(t.p->a, t.src, 0, 64);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	int status;

	sge.lkey = t.mr->mr->lkey ^ 0x333300;
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(t.p->b, recv, t.dst, 0, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(t.p->a, send, IB_SEND_SIGNALED,
						 &sge, 1), 0);
	status = ndkc_wait(send);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_local_error(status), "status %d",
			      status);
	NDKC_EXPECT_WC(test, recv, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0));
}

/* An error completes even if success would have been silent. */
static void silent_request_reports_its_error(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ib_sge sge = ndkc_sge(t.p->a, t.src, 0, 64);
	struct ndkc_op *op = ndkc_op(test);
	int status;

	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(t.p->a, op, IB_WR_RDMA_WRITE,
						 0, &sge, 1, t.mr->mr->iova,
						 t.mr->mr->rkey ^ 1, 0), 0);
	status = ndkc_wait(op);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
}

static void receive_with_a_bad_local_key_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ib_sge sge = ndkc_sge(t.p->b, t.dst, 0, 64);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	int status;

	sge.lkey = t.mr->mr->lkey ^ 0x333300;
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(t.p->b, recv, &sge, 1), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send(t.p->a, send, IB_SEND_SIGNALED,
					     t.src, 0, 64), 0);
	status = ndkc_wait(recv);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_local_error(status), "status %d",
			      status);
	KUNIT_EXPECT_NE(test, ndkc_wait(send), NDKC_NO_COMPLETION);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0));
}

/* NFS marks read-side regions REMOTE_READ only. */
static void read_into_a_read_only_sink_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *sink = ndkc_registered(test, t.p->a, buf,
					       IB_ACCESS_REMOTE_READ);
	struct ib_sge sge = {
		.addr = sink->mr->iova, .length = 64, .lkey = sink->mr->lkey,
	};
	struct ndkc_op *op = ndkc_op(test);
	int status;

	memset(t.dst->va, 0x22, t.dst->len);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(t.p->a, op, IB_WR_RDMA_READ,
						 IB_SEND_SIGNALED, &sge, 1,
						 t.mr->mr->iova,
						 t.mr->mr->rkey, 0), 0);
	status = ndkc_wait(op);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_local_error(status), "status %d",
			      status);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, buf->len, 0));
}

static void local_range_beyond_the_region_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, t.p->a, buf,
					     NDKC_REMOTE_ALL);
	struct ib_sge sge = {
		.addr = mr->mr->iova + PAGE_SIZE - 63, .length = 64,
		.lkey = mr->mr->lkey,
	};
	struct ndkc_op *op = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	int status;

	KUNIT_ASSERT_EQ(test, ndkc_post_recv(t.p->b, recv, t.dst, 0, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(t.p->a, op, IB_SEND_SIGNALED,
						 &sge, 1), 0);
	status = ndkc_wait(op);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_local_error(status), "status %d",
			      status);
}

static void receive_that_is_too_short_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	int status;

	KUNIT_ASSERT_EQ(test, ndkc_post_recv(t.p->b, recv, t.dst, 0, 63), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send(t.p->a, send, IB_SEND_SIGNALED,
					     t.src, 0, 64), 0);
	NDKC_EXPECT_WC(test, recv, IB_WC_LOC_LEN_ERR);
	status = ndkc_wait(send);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va + 63,
					       t.dst->len - 63, 0));
	expect_connection_lost(test, t.p);
}

static void bogus_invalidation(struct kunit *test, struct target *t, u32 key)
{
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	int status;

	KUNIT_ASSERT_EQ(test, ndkc_post_recv(t->p->b, recv, t->dst, 0, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_op(t->p->a, send,
						IB_WR_SEND_WITH_INV,
						IB_SEND_SIGNALED, NULL, 0, key),
			0);
	status = ndkc_wait(recv);
	KUNIT_EXPECT_NE(test, status, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, status, NDKC_NO_COMPLETION);
	status = ndkc_wait(send);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
	expect_connection_lost(test, t->p);
}

static void invalidation_with_a_wrong_index_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);

	bogus_invalidation(test, &t, t.mr->mr->rkey ^ 0x5a5a00);
}

static void invalidation_with_a_wrong_key_byte_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);

	bogus_invalidation(test, &t, t.mr->mr->rkey ^ 1);
}

static void invalidation_of_the_dma_key_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);

	bogus_invalidation(test, &t, t.p->b->pd->local_dma_lkey);
}

/* A peer must not be able to kill the regions of another connection. */
static void invalidation_across_pds_fails(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_op *op = ndkc_op(test);
	struct ndkc_pair *own = t.p;

	t.p = ndkc_pair(test);
	bogus_invalidation(test, &t, t.mr->mr->rkey);
	/* The region still works for its own peer. */
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(own->a, op, IB_WR_RDMA_WRITE,
					     t.src, 0, 64, t.mr->mr->iova,
					     t.mr->mr->rkey), 0);
	NDKC_EXPECT_WC(test, op, IB_WC_SUCCESS);
}

/* On a lossless same-host path a late receive loses no message. */
static void late_receive_is_waited_for(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_send(t.p->a, send, IB_SEND_SIGNALED,
					     t.src, 0, 64), 0);
	msleep(100);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(t.p->b, recv, t.dst, 0, 64), 0);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, send, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(t.dst, 0, 64, 77, 0));
}

static void post_before_rts_is_refused(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_op *op = ndkc_op(test);

	KUNIT_EXPECT_EQ(test, ndkc_post_send_sge(a, op, IB_SEND_SIGNALED, NULL,
						 0), -EINVAL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_take_child(listener));
	KUNIT_EXPECT_EQ(test, ndkc_post_send_sge(a, op, IB_SEND_SIGNALED, NULL,
						 0), -EINVAL);
	KUNIT_EXPECT_TRUE(test, ndkc_stays_incomplete(op, 20));
}

static void posts_in_the_error_state_are_flushed_in_order(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send[3], *recv[3];
	int i;

	recv[0] = ndkc_op(test);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->a, recv[0], buf, 0, 64), 0);
	/* No receive at the peer: this send is still outstanding. */
	send[0] = ndkc_op(test);
	KUNIT_ASSERT_EQ(test, ndkc_post_send(p->a, send[0], 0, buf, 0, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_set_state(p->a, IB_QPS_ERR), 0);
	for (i = 1; i < 3; i++) {
		send[i] = ndkc_op(test);
		recv[i] = ndkc_op(test);
		KUNIT_EXPECT_EQ(test, ndkc_post_send(p->a, send[i], 0, buf, 0,
						     64), 0);
		KUNIT_EXPECT_EQ(test, ndkc_post_recv(p->a, recv[i], buf, 0, 64),
				0);
	}
	for (i = 0; i < 3; i++) {
		NDKC_EXPECT_WC(test, send[i], IB_WC_WR_FLUSH_ERR);
		NDKC_EXPECT_WC(test, recv[i], IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_PTR_EQ(test, send[i]->wc.qp, p->a->qp);
		if (!i)
			continue;
		KUNIT_EXPECT_GT(test, send[i]->order, send[i - 1]->order);
		KUNIT_EXPECT_GT(test, recv[i]->order, recv[i - 1]->order);
	}
}

static u32 real_send_wr(struct kunit *test, struct ndkc_ep *ep, u32 *recv_wr)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	KUNIT_ASSERT_EQ(test, ib_query_qp(ep->qp, &attr, IB_QP_CAP, &init), 0);
	*recv_wr = attr.cap.max_recv_wr;
	return attr.cap.max_send_wr;
}

static void full_send_queue_refuses(struct kunit *test)
{
	const struct ndkc_ep_attr attr = {
		.scq = ndkc_cq(test, 4096, 0, IB_POLL_DIRECT), .send_wr = 16,
	};
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, NULL);
	struct ndkc_op *op = NULL, *first = NULL;
	u32 n, depth, unused;
	int ret = 0;

	depth = real_send_wr(test, p->a, &unused);
	/* No poll: a slot stays taken until its completion is polled. */
	for (n = 0; n <= depth; n++) {
		op = ndkc_op(test);
		ret = ndkc_post_send_sge(p->a, op, IB_SEND_SIGNALED, NULL, 0);
		if (ret)
			break;
		first = first ?: op;
	}
	KUNIT_EXPECT_EQ(test, ret, -ENOMEM);
	KUNIT_EXPECT_GE(test, n, 16);
	/* In the error state a post is taken, and flushed. */
	KUNIT_EXPECT_EQ(test, ndkc_set_state(p->a, IB_QPS_ERR), 0);
	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_EXPECT_NE(test, ndkc_wait(first), NDKC_NO_COMPLETION);
	op = ndkc_op(test);
	KUNIT_EXPECT_EQ(test, ndkc_post_send_sge(p->a, op, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	NDKC_EXPECT_WC(test, op, IB_WC_WR_FLUSH_ERR);
}

static void send_queue_slots_come_back(struct kunit *test)
{
	const struct ndkc_ep_attr attr = { .send_wr = 8, .recv_wr = 8 };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, &attr);
	struct ndkc_op *send, *recv;
	int i;

	/* Each fourth is signalled; its completion frees the slots before. */
	for (i = 0; i < 64; i++) {
		recv = ndkc_op(test);
		send = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0),
				0);
		KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, i % 4 == 3 ?
							 IB_SEND_SIGNALED : 0,
							 NULL, 0), 0);
		NDKC_ASSERT_WC(test, recv, IB_WC_SUCCESS);
		if (i % 4 == 3)
			NDKC_ASSERT_WC(test, send, IB_WC_SUCCESS);
	}
}

static void full_receive_queue_refuses(struct kunit *test)
{
	const struct ndkc_ep_attr attr = { .recv_wr = 8 };
	struct ndkc_pair *p = ndkc_pair_attr(test, NULL, &attr);
	struct ndkc_op *send;
	u32 n, depth = 0;
	int ret = 0;

	real_send_wr(test, p->b, &depth);
	for (n = 0; n <= depth; n++) {
		ret = ndkc_post_recv_sge(p->b, ndkc_op(test), NULL, 0);
		if (ret)
			break;
	}
	KUNIT_EXPECT_EQ(test, ret, -ENOMEM);
	KUNIT_EXPECT_GE(test, n, 8);
	/* The teardown needs a slot to drain the queue. */
	send = ndkc_op(test);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED, NULL, 0), 0);
	NDKC_EXPECT_WC(test, send, IB_WC_SUCCESS);
}

static void too_many_sges_are_refused(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *op = ndkc_op(test);
	struct ib_sge sge[5];
	int i;

	for (i = 0; i < 5; i++)
		sge[i] = ndkc_sge(p->a, buf, i, 1);
	KUNIT_EXPECT_EQ(test, ndkc_post_send_sge(p->a, op, IB_SEND_SIGNALED,
						 sge, 5), -EINVAL);
	KUNIT_EXPECT_EQ(test, ndkc_post_rdma_sge(p->a, op, IB_WR_RDMA_WRITE,
						 IB_SEND_SIGNALED, sge, 5, 0, 0,
						 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, ndkc_post_recv_sge(p->a, op, sge, 5), -EINVAL);
}

static void unknown_opcodes_are_refused(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_op *op = ndkc_op(test);

	KUNIT_EXPECT_NE(test, ndkc_post_send_op(p->a, op, IB_WR_LSO,
						IB_SEND_SIGNALED, NULL, 0, 0),
			0);
	KUNIT_EXPECT_NE(test, ndkc_post_send_op(p->a, op, 0x7f,
						IB_SEND_SIGNALED, NULL, 0, 0),
			0);
	KUNIT_EXPECT_TRUE(test, ndkc_stays_incomplete(op, 20));
	/* The QP still works. */
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, ndkc_op(test), NULL, 0),
			0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, op, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	NDKC_EXPECT_WC(test, op, IB_WC_SUCCESS);
}

static void misaligned_atomic_is_refused(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL |
					    IB_ACCESS_REMOTE_ATOMIC);
	struct ndkc_op *op = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_atomic(t.p->a, op,
					       IB_WR_ATOMIC_FETCH_AND_ADD,
					       t.src, t.mr->mr->iova + 4,
					       t.mr->mr->rkey, 1, 0), 0);
	NDKC_EXPECT_WC(test, op, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0));
}

static void atomic_without_the_right_is_refused(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ndkc_op *op = ndkc_op(test);
	int status;

	KUNIT_ASSERT_EQ(test, ndkc_post_atomic(t.p->a, op,
					       IB_WR_ATOMIC_FETCH_AND_ADD,
					       t.src, t.mr->mr->iova,
					       t.mr->mr->rkey, 1, 0), 0);
	status = ndkc_wait(op);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0));
}

/* Requests behind a failing request must not be executed. */
static void requests_behind_an_error_are_flushed(struct kunit *test)
{
	struct target t = make_target(test, NDKC_REMOTE_ALL);
	struct ib_sge sge = ndkc_sge(t.p->a, t.src, 0, 64);
	const struct ib_send_wr *bad;
	struct ndkc_op *op[3];
	struct ib_rdma_wr wr[3] = {};
	int i, status;

	for (i = 0; i < 3; i++) {
		op[i] = ndkc_op(test);
		op[i]->cq = t.p->a->scq;
		wr[i].wr.wr_cqe = &op[i]->cqe;
		wr[i].wr.opcode = IB_WR_RDMA_WRITE;
		wr[i].wr.sg_list = &sge;
		wr[i].wr.num_sge = 1;
		wr[i].wr.next = i < 2 ? &wr[i + 1].wr : NULL;
		wr[i].remote_addr = t.mr->mr->iova + i * 64;
		wr[i].rkey = t.mr->mr->rkey ^ (i == 0 ? 1 : 0);
	}
	KUNIT_ASSERT_EQ(test, ib_post_send(t.p->a->qp, &wr[0].wr, &bad), 0);
	status = ndkc_wait(op[0]);
	KUNIT_EXPECT_TRUE_MSG(test, ndkc_is_remote_error(status), "status %d",
			      status);
	NDKC_EXPECT_WC(test, op[1], IB_WC_WR_FLUSH_ERR);
	NDKC_EXPECT_WC(test, op[2], IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(t.dst->va, t.dst->len, 0));
}

static struct kunit_case err_cases[] = {
	KUNIT_CASE_PARAM(remote_access_is_refused, attack_gen_params),
	KUNIT_CASE(region_of_another_pd_is_refused),
	KUNIT_CASE(local_dma_key_is_no_remote_key),
	KUNIT_CASE(send_with_a_bad_local_key_fails),
	KUNIT_CASE(silent_request_reports_its_error),
	KUNIT_CASE(receive_with_a_bad_local_key_fails),
	KUNIT_CASE(read_into_a_read_only_sink_fails),
	KUNIT_CASE(local_range_beyond_the_region_fails),
	KUNIT_CASE(receive_that_is_too_short_fails),
	KUNIT_CASE(invalidation_with_a_wrong_index_fails),
	KUNIT_CASE(invalidation_with_a_wrong_key_byte_fails),
	KUNIT_CASE(invalidation_of_the_dma_key_fails),
	KUNIT_CASE(invalidation_across_pds_fails),
	KUNIT_CASE(late_receive_is_waited_for),
	KUNIT_CASE(post_before_rts_is_refused),
	KUNIT_CASE(posts_in_the_error_state_are_flushed_in_order),
	KUNIT_CASE(full_send_queue_refuses),
	KUNIT_CASE(send_queue_slots_come_back),
	KUNIT_CASE(full_receive_queue_refuses),
	KUNIT_CASE(too_many_sges_are_refused),
	KUNIT_CASE(unknown_opcodes_are_refused),
	KUNIT_CASE(misaligned_atomic_is_refused),
	KUNIT_CASE(atomic_without_the_right_is_refused),
	KUNIT_CASE(requests_behind_an_error_are_flushed),
	{}
};

static struct kunit_suite err_suite = {
	.name = "ndk_consumer_err",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = err_cases,
};

kunit_test_suite(err_suite);
