// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of queue pairs: the changes that are allowed, and the values that
 * are reported.
 */
#include "fixture.h"

static struct ib_qp_attr query(struct kunit *test, struct ndkc_ep *ep)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	KUNIT_ASSERT_EQ(test, ib_query_qp(ep->qp, &attr, IB_QP_STATE, &init), 0);
	return attr;
}

static int state(struct kunit *test, struct ndkc_ep *ep)
{
	return query(test, ep).qp_state;
}

static void write_arrives(struct kunit *test, struct ndkc_ep *from, struct ndkc_ep *to)
{
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE), *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, to, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *op = ndkc_op(test);

	ndkc_fill(src, 3);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(from, op, IB_WR_RDMA_WRITE, src, 0, 100,
					     mr->mr->iova, mr->mr->rkey), 0);
	NDKC_EXPECT_WC(test, op, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, 100, 3, 0));
}

static void the_state_is_reported(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	KUNIT_ASSERT_EQ(test, ib_query_qp(p->a->qp, &attr,
					  IB_QP_STATE | IB_QP_CAP, &init), 0);
	KUNIT_EXPECT_EQ(test, (int)attr.qp_state, IB_QPS_RTS);
	KUNIT_EXPECT_GE(test, attr.cap.max_send_wr, 64);
	KUNIT_EXPECT_GE(test, attr.cap.max_recv_sge, 4);
	KUNIT_EXPECT_EQ(test, ndkc_set_state(p->a, IB_QPS_ERR), 0);
	KUNIT_EXPECT_EQ(test, state(test, p->a), IB_QPS_ERR);
	/* A drain repeats this, from any state. */
	KUNIT_EXPECT_EQ(test, ndkc_set_state(p->a, IB_QPS_ERR), 0);
}

/* nldev shows each field to all users. */
static void nothing_is_left_as_it_was_before_the_query(struct kunit *test)
{
	struct ndkc_ep *a = ndkc_active(test, 1, NULL);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	memset(&init, 0xa5, sizeof(init));
	memset(&attr, 0xa5, sizeof(attr));
	KUNIT_ASSERT_EQ(test, ib_query_qp(a->qp, &attr, IB_QP_STATE | IB_QP_CAP, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.qkey, 0);
	KUNIT_EXPECT_EQ(test, attr.rq_psn, 0);
	KUNIT_EXPECT_EQ(test, attr.sq_psn, 0);
	KUNIT_EXPECT_EQ(test, attr.dest_qp_num, 0);
	KUNIT_EXPECT_EQ(test, attr.pkey_index, 0);
	KUNIT_EXPECT_EQ(test, attr.en_sqd_async_notify, 0);
	KUNIT_EXPECT_EQ(test, attr.min_rnr_timer, 0);
	KUNIT_EXPECT_EQ(test, attr.timeout, 0);
	KUNIT_EXPECT_EQ(test, attr.retry_cnt, 0);
	KUNIT_EXPECT_EQ(test, attr.rnr_retry, 0);
	KUNIT_EXPECT_EQ(test, attr.alt_timeout, 0);
	KUNIT_EXPECT_EQ(test, attr.rate_limit, 0);
	KUNIT_EXPECT_EQ(test, attr.ah_attr.sl, 0);
	KUNIT_EXPECT_EQ(test, init.create_flags, 0);
	KUNIT_EXPECT_EQ(test, init.source_qpn, 0);
	KUNIT_EXPECT_EQ(test, init.cap.max_rdma_ctxs, 0);
	KUNIT_EXPECT_EQ(test, init.cap.max_send_wr, attr.cap.max_send_wr);
}

/* IBTA 10.3.1: a send queue is drained from RTS alone. */
static void only_a_connected_queue_pair_is_drained(struct kunit *test)
{
	static const enum ib_qp_state states[] = {
		IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR, IB_QPS_ERR, IB_QPS_RESET, IB_QPS_INIT,
	};
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL), *b;
	struct ndkc_cm *child;
	int i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		KUNIT_ASSERT_EQ(test, ndkc_set_state(a, states[i]), 0);
		KUNIT_EXPECT_EQ(test, ndkc_set_state(a, IB_QPS_SQD), -EINVAL);
		KUNIT_EXPECT_EQ(test, state(test, a), states[i]);
	}
	/* The refused drains do not disturb a connection. */
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	b = ndkc_ep(test, child, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_accept(b, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(b->cm, RDMA_CM_EVENT_ESTABLISHED));
	write_arrives(test, a, b);
	KUNIT_EXPECT_EQ(test, ndkc_set_state(a, IB_QPS_SQD), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(b->cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, state(test, a), IB_QPS_ERR);
}

static void what_is_refused_changes_nothing(struct kunit *test)
{
	struct ib_qp_attr refused[] = {
		{ .qp_state = IB_QPS_RTR },
		{ .qp_state = IB_QPS_INIT },
		{ .qp_state = IB_QPS_RESET },
		{ .qp_state = IB_QPS_SQE },
		{ .qp_state = IB_QPS_RTS, .max_rd_atomic = 255 },
		{ .qp_state = IB_QPS_RTS, .max_dest_rd_atomic = 255 },
	};
	struct ndkc_pair *p = ndkc_pair(test);
	struct ib_qp_attr before = query(test, p->b), after;
	int i;

	KUNIT_ASSERT_NE(test, before.qp_access_flags & IB_ACCESS_REMOTE_WRITE, 0);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		/* No access flags: the peer would lose its rights. */
		KUNIT_EXPECT_EQ(test, ib_modify_qp(p->b->qp, &refused[i],
						   IB_QP_STATE | IB_QP_ACCESS_FLAGS |
						   IB_QP_MAX_QP_RD_ATOMIC |
						   IB_QP_MAX_DEST_RD_ATOMIC), -EINVAL);
		after = query(test, p->b);
		KUNIT_EXPECT_EQ(test, (int)after.qp_state, IB_QPS_RTS);
		KUNIT_EXPECT_EQ(test, after.qp_access_flags, before.qp_access_flags);
		KUNIT_EXPECT_EQ(test, after.max_rd_atomic, before.max_rd_atomic);
		KUNIT_EXPECT_EQ(test, after.max_dest_rd_atomic, before.max_dest_rd_atomic);
	}
	write_arrives(test, p->a, p->b);
}

static void limits_asked_for_are_kept_through_a_refusal(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ib_qp_attr attr = { .max_rd_atomic = 3, .max_dest_rd_atomic = 5 };
	int mask = IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC;

	KUNIT_ASSERT_EQ(test, ib_modify_qp(a->qp, &attr, mask), 0);
	attr = (struct ib_qp_attr){ .qp_state = IB_QPS_RTS, .max_rd_atomic = 7,
				    .max_dest_rd_atomic = 9 };
	KUNIT_EXPECT_EQ(test, ib_modify_qp(a->qp, &attr, mask | IB_QP_STATE), -EINVAL);
	attr = query(test, a);
	KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 3);
	KUNIT_EXPECT_EQ(test, attr.max_dest_rd_atomic, 5);
}

static struct kunit_case qp_cases[] = {
	KUNIT_CASE(the_state_is_reported),
	KUNIT_CASE(nothing_is_left_as_it_was_before_the_query),
	KUNIT_CASE(only_a_connected_queue_pair_is_drained),
	KUNIT_CASE(what_is_refused_changes_nothing),
	KUNIT_CASE(limits_asked_for_are_kept_through_a_refusal),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "ndk_consumer_qp",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = qp_cases,
};

kunit_test_suite(qp_suite);
