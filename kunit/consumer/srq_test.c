// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues.
 */

#include "fixture.h"

struct shared {
	struct ib_pd *pd;
	struct ndkc_srq *srq;
	struct ndkc_cq *cq;
	struct ndkc_pair *p[2];
};

/* Two connections whose passive ends receive from one queue. */
static struct shared make_shared(struct kunit *test)
{
	struct ndkc_ep_attr attr = {};
	struct shared s;
	int i;

	s.pd = ndkc_pd(test);
	s.cq = ndkc_cq(test, 256, 0, IB_POLL_SOFTIRQ);
	s.srq = ndkc_srq(test, s.pd, 32, 2);
	attr.pd = s.pd;
	attr.rcq = s.cq;
	attr.srq = s.srq->srq;
	for (i = 0; i < 2; i++)
		s.p[i] = ndkc_pair_attr(test, NULL, &attr);
	return s;
}

static struct ndkc_op *post(struct kunit *test, struct shared *s)
{
	struct ndkc_op *op = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(s->p[0]->b, op, NULL, 0), 0);
	return op;
}

static void send_to(struct kunit *test, struct shared *s, int i)
{
	struct ndkc_op *op = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(s->p[i]->a, op,
						 IB_SEND_SIGNALED, NULL, 0), 0);
	NDKC_ASSERT_WC(test, op, IB_WC_SUCCESS);
}

static void device_offers_shared_queues(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, ndkc_dev->attrs.max_srq, 64);
	KUNIT_EXPECT_GE(test, ndkc_dev->attrs.max_srq_wr, 4096);
	KUNIT_EXPECT_GE(test, ndkc_dev->attrs.max_srq_sge, 2);
}

static void attributes_are_kept(struct kunit *test)
{
	struct ndkc_srq *srq = ndkc_srq(test, ndkc_pd(test), 32, 2);
	struct ib_srq_attr attr = {};

	KUNIT_ASSERT_EQ(test, ib_query_srq(srq->srq, &attr), 0);
	KUNIT_EXPECT_GE(test, attr.max_wr, 32);
	KUNIT_EXPECT_GE(test, attr.max_sge, 2);
	KUNIT_EXPECT_EQ(test, attr.srq_limit, 0);
	attr.srq_limit = 5;
	KUNIT_ASSERT_EQ(test, ib_modify_srq(srq->srq, &attr, IB_SRQ_LIMIT), 0);
	memset(&attr, 0, sizeof(attr));
	KUNIT_ASSERT_EQ(test, ib_query_srq(srq->srq, &attr), 0);
	/* The queue is empty, but only a fall fires the limit: still armed. */
	KUNIT_EXPECT_LE(test, attr.srq_limit, 5);
}

static void limits_are_enforced(struct kunit *test)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = ndkc_dev->attrs.max_srq_wr + 1,
			  .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ndkc_srq *srq;
	struct ib_srq *bad;
	struct ib_pd *pd;
	struct ib_srq_attr attr = {};

	pd = ndkc_pd(test);
	bad = ib_create_srq(pd, &init);
	KUNIT_EXPECT_TRUE(test, IS_ERR(bad));
	if (!IS_ERR(bad))
		ib_destroy_srq(bad);
	srq = ndkc_srq(test, pd, 32, 2);
	attr.srq_limit = ndkc_dev->attrs.max_srq_wr + 1;
	KUNIT_EXPECT_NE(test, ib_modify_srq(srq->srq, &attr, IB_SRQ_LIMIT), 0);
	/* A refused change leaves all attributes. */
	attr.max_wr = 64;
	attr.srq_limit = 65;
	KUNIT_EXPECT_EQ(test, ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR | IB_SRQ_LIMIT),
			-EINVAL);
	KUNIT_ASSERT_EQ(test, ib_query_srq(srq->srq, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.max_wr, 32);
	KUNIT_EXPECT_EQ(test, attr.srq_limit, 0);
	attr.max_wr = 64;
	attr.srq_limit = 64;
	KUNIT_EXPECT_EQ(test, ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR | IB_SRQ_LIMIT), 0);
	KUNIT_ASSERT_EQ(test, ib_query_srq(srq->srq, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.max_wr, 64);
}

static void several_qps_receive_from_one_queue(struct kunit *test)
{
	struct shared s = make_shared(test);
	struct ndkc_op *op[6];
	int i;

	for (i = 0; i < 6; i++)
		op[i] = post(test, &s);
	for (i = 0; i < 6; i++) {
		send_to(test, &s, i & 1);
		NDKC_ASSERT_WC(test, op[i], IB_WC_SUCCESS);
		KUNIT_EXPECT_PTR_EQ(test, op[i]->wc.qp, s.p[i & 1]->b->qp);
		KUNIT_EXPECT_EQ(test, (int)op[i]->wc.opcode, IB_WC_RECV);
	}
}

static void receives_may_lie_at_odd_addresses(struct kunit *test)
{
	struct ndkc_env *env = test->priv;

	env->odd = 1;
	several_qps_receive_from_one_queue(test);
}

static void full_queue_refuses(struct kunit *test)
{
	struct ndkc_srq *srq = ndkc_srq(test, ndkc_pd(test), 8, 1);
	struct ib_srq_attr attr = {};
	struct ib_recv_wr wr = {};
	int ret = 0;
	u32 n;

	KUNIT_ASSERT_EQ(test, ib_query_srq(srq->srq, &attr), 0);
	for (n = 0; n <= attr.max_wr && !ret; n++) {
		wr.wr_cqe = &ndkc_op(test)->cqe;
		ret = ib_post_srq_recv(srq->srq, &wr, NULL);
	}
	KUNIT_EXPECT_EQ(test, ret, -ENOMEM);
}

static void receive_on_the_qp_itself_is_refused(struct kunit *test)
{
	struct shared s = make_shared(test);
	struct ib_recv_wr wr = { .wr_cqe = &ndkc_op(test)->cqe };

	KUNIT_EXPECT_NE(test, ib_post_recv(s.p[0]->b->qp, &wr, NULL), 0);
}

/* The core counts the uses; an object in use stays, and works. */
static void ndk_face_10_destroying_what_is_in_use_fails(struct kunit *test)
{
	struct shared s = make_shared(test);
	struct ndkc_op *op = post(test, &s);

	KUNIT_EXPECT_EQ(test, ib_destroy_srq_user(s.srq->srq, NULL),
			-EBUSY);
	send_to(test, &s, 0);
	NDKC_EXPECT_WC(test, op, IB_WC_SUCCESS);
}

static void limit_event_comes_once(struct kunit *test)
{
	struct ib_srq_attr attr = { .srq_limit = 3 };
	struct shared s = make_shared(test);
	int i;

	for (i = 0; i < 6; i++)
		post(test, &s);
	KUNIT_ASSERT_EQ(test, ib_modify_srq(s.srq->srq, &attr, IB_SRQ_LIMIT),
			0);
	for (i = 0; i < 3; i++)
		send_to(test, &s, i & 1);
	/* Three left: not below the limit yet. */
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&s.srq->limits), 0);
	send_to(test, &s, 0);
	KUNIT_EXPECT_TRUE(test, ndkc_completes(&s.srq->limit, 1));
	send_to(test, &s, 0);
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&s.srq->limits), 1);
}

static void empty_queue_makes_the_sender_wait(struct kunit *test)
{
	struct shared s = make_shared(test);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv;

	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(s.p[0]->a, send,
						 IB_SEND_SIGNALED, NULL, 0), 0);
	msleep(100);
	recv = post(test, &s);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, send, IB_WC_SUCCESS);
}

/* Without this event ib_drain_qp() would wait a minute. */
static void last_wqe_event_lets_the_drain_end(struct kunit *test)
{
	struct shared s = make_shared(test);
	struct ndkc_op *left[3];
	int i;

	for (i = 0; i < 3; i++)
		left[i] = post(test, &s);
	KUNIT_ASSERT_EQ(test, ndkc_set_state(s.p[0]->b, IB_QPS_ERR), 0);
	KUNIT_ASSERT_TRUE(test, ndkc_completes(&s.p[0]->b->last_wqe, 1));
	KUNIT_ASSERT_EQ(test, ndkc_drain(s.p[0]->b), 0);
	KUNIT_EXPECT_EQ(test, ndkc_destroy_qp(s.p[0]->b), 0);

	/* The queued receives belong to the other queue pairs. */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, atomic_read(&left[i]->count), 0);
	send_to(test, &s, 1);
	NDKC_EXPECT_WC(test, left[0], IB_WC_SUCCESS);
}

static void peer_disconnect_raises_last_wqe_too(struct kunit *test)
{
	struct shared s = make_shared(test);

	post(test, &s);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(s.p[0]->a->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(s.p[0]->b->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_ASSERT_EQ(test, ndkc_set_state(s.p[0]->b, IB_QPS_ERR), 0);
	KUNIT_EXPECT_TRUE(test, ndkc_completes(&s.p[0]->b->last_wqe, 1));
}

static struct kunit_case srq_cases[] = {
	KUNIT_CASE(device_offers_shared_queues),
	KUNIT_CASE(attributes_are_kept),
	KUNIT_CASE(limits_are_enforced),
	KUNIT_CASE(several_qps_receive_from_one_queue),
	KUNIT_CASE(receives_may_lie_at_odd_addresses),
	KUNIT_CASE(full_queue_refuses),
	KUNIT_CASE(receive_on_the_qp_itself_is_refused),
	KUNIT_CASE(ndk_face_10_destroying_what_is_in_use_fails),
	KUNIT_CASE(limit_event_comes_once),
	KUNIT_CASE(empty_queue_makes_the_sender_wait),
	KUNIT_CASE(last_wqe_event_lets_the_drain_end),
	KUNIT_CASE(peer_disconnect_raises_last_wqe_too),
	{}
};

static struct kunit_suite srq_suite = {
	.name = "ndk_consumer_srq",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = srq_cases,
};

kunit_test_suite(srq_suite);
