// SPDX-License-Identifier: GPL-2.0
/*
 * Draining: when ib_drain_qp() returns, every request has completed, and its
 * memory may be freed. core/verbs.c waits without limit, so a thread of its own
 * runs each call here.
 */
#include <linux/kthread.h>

#include "fixture.h"

#define DEPTH	12

struct outstanding {
	struct ndkc_op *send[DEPTH];
	struct ndkc_op *recv[DEPTH];
};

/* Posts sends without a receive, and receives without a send. */
static struct outstanding post_both(struct kunit *test, struct ndkc_ep *ep)
{
	struct ndkc_buf *buf = ndkc_buf(test, NDKC_BUF_SIZE);
	struct outstanding o;
	int i;

	for (i = 0; i < DEPTH; i++) {
		o.send[i] = ndkc_op(test);
		o.recv[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv(ep, o.recv[i], buf, 0,
						     4096), 0);
		KUNIT_ASSERT_EQ(test, ndkc_post_send(ep, o.send[i], i & 1 ?
						     IB_SEND_SIGNALED : 0, buf,
						     8192, 4096), 0);
	}
	return o;
}

static void expect_flushed(struct kunit *test, struct ndkc_op **op)
{
	int i;

	for (i = 0; i < DEPTH; i++) {
		/* No waiting here: the drain is over. */
		KUNIT_EXPECT_EQ(test, atomic_read(&op[i]->count), 1);
		KUNIT_EXPECT_EQ(test, (int)op[i]->wc.status,
				IB_WC_WR_FLUSH_ERR);
		if (i)
			KUNIT_EXPECT_GT(test, op[i]->order, op[i - 1]->order);
	}
}

static const enum ib_poll_context contexts[] = {
	IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE,
	IB_POLL_DIRECT,
};

static void context_desc(const enum ib_poll_context *ctx, char *desc)
{
	static const char * const name[] = {
		[IB_POLL_SOFTIRQ] = "softirq",
		[IB_POLL_WORKQUEUE] = "workqueue",
		[IB_POLL_UNBOUND_WORKQUEUE] = "unbound workqueue",
		[IB_POLL_DIRECT] = "direct",
	};

	strscpy(desc, name[*ctx], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(context, contexts, context_desc);

static void drain_completes_everything(struct kunit *test)
{
	const struct ndkc_ep_attr attr = {
		.poll = *(const enum ib_poll_context *)test->param_value,
	};
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, &attr);
	struct outstanding o = post_both(test, p->a);

	KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
	expect_flushed(test, o.send);
	expect_flushed(test, o.recv);
}

static void queues_drain_one_by_one(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct outstanding o = post_both(test, p->a);

	KUNIT_ASSERT_EQ(test, ndkc_drain_sq(p->a), 0);
	expect_flushed(test, o.send);
	KUNIT_ASSERT_EQ(test, ndkc_drain_rq(p->a), 0);
	expect_flushed(test, o.recv);
}

static void drain_after_the_peer_has_disconnected(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct outstanding o = post_both(test, p->a);

	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->b->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
	expect_flushed(test, o.recv);
	KUNIT_EXPECT_EQ(test, atomic_read(&o.send[DEPTH - 1]->count), 1);
	KUNIT_ASSERT_EQ(test, ndkc_drain(p->b), 0);
}

static void drain_after_the_own_disconnect(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct outstanding o = post_both(test, p->a);

	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->a->cm->id), 0);
	KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
	expect_flushed(test, o.recv);
	KUNIT_EXPECT_EQ(test, atomic_read(&o.send[DEPTH - 1]->count), 1);
}

static void drain_twice(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct outstanding o = post_both(test, p->a);

	KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
	KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
	expect_flushed(test, o.send);
	expect_flushed(test, o.recv);
}

static void drain_both_ends_at_once(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct outstanding a = post_both(test, p->a);
	struct outstanding b = post_both(test, p->b);

	/* The receives of each end take the sends of the other. */
	KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
	KUNIT_ASSERT_EQ(test, ndkc_drain(p->b), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&a.recv[DEPTH - 1]->count), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&b.recv[DEPTH - 1]->count), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&a.send[DEPTH - 1]->count), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&b.send[DEPTH - 1]->count), 1);
}

static void drain_before_the_connection(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_op *recv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(a, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_drain(a), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&recv->count), 1);
	KUNIT_EXPECT_EQ(test, (int)recv->wc.status, IB_WC_WR_FLUSH_ERR);
}

/* The consumer keeps exactly one slot for the drain. */
static void drain_with_a_full_queue(struct kunit *test)
{
	const struct ndkc_ep_attr attr = { .send_wr = DEPTH + 1,
					   .recv_wr = DEPTH + 1 };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, NULL);
	struct outstanding o = post_both(test, p->a);

	KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
	expect_flushed(test, o.send);
	expect_flushed(test, o.recv);
}

/* 9p: without a drain the QP goes, and then the CQ. */
static void destroy_flushes_like_a_drain(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct outstanding o = post_both(test, p->a);
	int i;

	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->a->cm->id), 0);
	KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(p->a), 0);
	for (i = 0; i < DEPTH; i++) {
		NDKC_EXPECT_WC(test, o.send[i], IB_WC_WR_FLUSH_ERR);
		NDKC_EXPECT_WC(test, o.recv[i], IB_WC_WR_FLUSH_ERR);
	}
}

struct traffic {
	struct ndkc_pair *p;
	struct ndkc_buf *buf;
	struct ndkc_mr *mr;
	struct ndkc_op *op[16];
	bool stop;
};

static int traffic_thread(void *data)
{
	struct traffic *t = data;
	int i = 0, status = IB_WC_SUCCESS;

	while (!READ_ONCE(t->stop) && status == IB_WC_SUCCESS) {
		ndkc_op_reset(t->op[i]);
		if (ndkc_post_rdma(t->p->a, t->op[i], i & 1 ? IB_WR_RDMA_WRITE :
				   IB_WR_RDMA_READ, t->buf, 0, 32768,
				   t->mr->mr->iova, t->mr->mr->rkey))
			break;
		status = ndkc_wait(t->op[i]);
		i = (i + 1) % ARRAY_SIZE(t->op);
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return status;
}

/* The passive end is drained while the active end reads and writes. */
static void drain_under_load(struct kunit *test)
{
	struct traffic *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct task_struct *task;
	int i, status;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->p = ndkc_pair(test);
	t->buf = ndkc_buf(test, NDKC_BUF_SIZE);
	t->mr = ndkc_registered(test, t->p->b, ndkc_buf(test, NDKC_BUF_SIZE),
				NDKC_REMOTE_ALL);
	for (i = 0; i < ARRAY_SIZE(t->op); i++)
		t->op[i] = ndkc_op(test);
	task = kthread_run(traffic_thread, t, "ndkc_traffic");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	schedule_timeout_interruptible(msecs_to_jiffies(50));
	KUNIT_EXPECT_EQ(test, ndkc_drain(t->p->b), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(t->p->a->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	WRITE_ONCE(t->stop, true);
	status = kthread_stop(task);
	/* The last request was flushed or failed; it was not lost. */
	KUNIT_EXPECT_TRUE(test, ndkc_in_time(status != NDKC_NO_COMPLETION));
}

static struct kunit_case drain_cases[] = {
	KUNIT_CASE_PARAM(drain_completes_everything, context_gen_params),
	KUNIT_CASE(queues_drain_one_by_one),
	KUNIT_CASE(drain_after_the_peer_has_disconnected),
	KUNIT_CASE(drain_after_the_own_disconnect),
	KUNIT_CASE(drain_twice),
	KUNIT_CASE(drain_both_ends_at_once),
	KUNIT_CASE(drain_before_the_connection),
	KUNIT_CASE(drain_with_a_full_queue),
	KUNIT_CASE(destroy_flushes_like_a_drain),
	KUNIT_CASE(drain_under_load),
	{}
};

static struct kunit_suite drain_suite = {
	.name = "ndk_consumer_drain",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = drain_cases,
};

kunit_test_suite(drain_suite);
