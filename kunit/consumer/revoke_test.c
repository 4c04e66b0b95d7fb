// SPDX-License-Identifier: GPL-2.0
/*
 * Revocation seen from outside: after the completion of an invalidation no
 * access of the peer reaches the memory. The owner then fills the memory with a
 * pattern that must neither change nor be read.
 */
#include <linux/kthread.h>

#include "fixture.h"

#define ROUNDS	6
#define OWNER	0xee
#define PEER	0x11

/**
 * struct intruder - a thread that uses a region until it is refused
 * @ep: posts here
 * @iova: start of the region under attack
 * @key: its key
 * @buf: source of writes or sink of reads
 * @opcode: IB_WR_RDMA_WRITE or IB_WR_RDMA_READ
 * @op: requests in flight
 * @done: number of successful requests
 * @over: a request was refused: no more requests come
 * @saw_owner: a read has returned the pattern of after the invalidation
 */
struct intruder {
	struct ndkc_ep *ep;
	u64 iova;
	u32 key;
	struct ndkc_buf *buf;
	enum ib_wr_opcode opcode;
	struct ndkc_op *op[4];
	int done;
	bool over;
	bool saw_owner;
};

static int intruder_thread(void *data)
{
	struct intruder *t = data;
	int i, n, status = IB_WC_SUCCESS;

	while (status == IB_WC_SUCCESS && !kthread_should_stop()) {
		for (n = 0; n < ARRAY_SIZE(t->op); n++) {
			ndkc_op_reset(t->op[n]);
			if (ndkc_post_rdma(t->ep, t->op[n], t->opcode, t->buf,
					   0, 16384, t->iova, t->key))
				break;
		}
		for (i = 0; i < n; i++) {
			status = ndkc_wait(t->op[i]);
			WRITE_ONCE(t->done, t->done + (status == IB_WC_SUCCESS));
		}
		if (t->opcode == IB_WR_RDMA_READ &&
		    memchr(t->buf->va, OWNER, 16384))
			t->saw_owner = true;
		if (n < ARRAY_SIZE(t->op))
			break;
	}
	WRITE_ONCE(t->over, true);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return status;
}

struct scene {
	struct ndkc_pair *p;
	struct ndkc_buf *buf;
	struct ndkc_mr *mr;
	struct intruder *t;
	struct task_struct *task;
};

static struct scene begin(struct kunit *test, struct ib_pd *pd,
			  enum ib_wr_opcode opcode)
{
	const struct ndkc_ep_attr attr = { .pd = pd };
	struct scene s;
	int i;

	s.p = ndkc_pair_attr(test, NULL, &attr);
	s.buf = ndkc_buf(test, 16384);
	s.mr = ndkc_registered(test, s.p->b, s.buf, NDKC_REMOTE_ALL);
	s.t = kunit_kzalloc(test, sizeof(*s.t), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s.t);
	s.t->ep = s.p->a;
	s.t->iova = s.mr->mr->iova;
	s.t->key = s.mr->mr->rkey;
	s.t->buf = ndkc_buf(test, 16384);
	s.t->opcode = opcode;
	memset(s.t->buf->va, PEER, s.t->buf->len);
	memset(s.buf->va, PEER, s.buf->len);
	for (i = 0; i < ARRAY_SIZE(s.t->op); i++)
		s.t->op[i] = ndkc_op(test);
	s.task = kthread_run(intruder_thread, s.t, "ndkc_intruder");
	KUNIT_ASSERT_FALSE(test, IS_ERR(s.task));
	get_task_struct(s.task);
	/* Let the thread begin; every round has another phase. */
	KUNIT_EXPECT_TRUE(test, NDKC_WAIT_UNTIL(READ_ONCE(s.t->done) > 0));
	usleep_range(100, 20000);
	return s;
}

/* The region has just been invalidated. */
static void end(struct kunit *test, struct scene *s)
{
	int status;

	memset(s->buf->va, OWNER, s->buf->len);
	msleep(30);
	/* On a busy machine the thread may not have run since. */
	KUNIT_EXPECT_TRUE(test, NDKC_WAIT_UNTIL(READ_ONCE(s->t->over)));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(s->buf->va, s->buf->len, OWNER));
	status = kthread_stop(s->task);
	put_task_struct(s->task);
	KUNIT_EXPECT_NE(test, status, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_in_time(status != NDKC_NO_COMPLETION));
	KUNIT_EXPECT_FALSE(test, s->t->saw_owner);
}

static void local_invalidation(struct kunit *test, enum ib_wr_opcode opcode)
{
	struct ib_pd *pd = ndkc_pd(test);
	struct ndkc_op *inv;
	struct scene s;
	int i, ret, status;

	for (i = 0; i < ROUNDS; i++) {
		inv = ndkc_op(test);
		s = begin(test, pd, opcode);
		ret = ndkc_post_inv(s.p->b, inv, s.mr->mr->rkey,
				    IB_SEND_SIGNALED);
		status = ret ?: ndkc_wait(inv);
		KUNIT_EXPECT_EQ(test, status, IB_WC_SUCCESS);
		end(test, &s);
	}
}

static void local_invalidation_stops_writes(struct kunit *test)
{
	local_invalidation(test, IB_WR_RDMA_WRITE);
}

static void local_invalidation_stops_reads(struct kunit *test)
{
	local_invalidation(test, IB_WR_RDMA_READ);
}

/* The invalidation comes over a second connection of the same PD. */
static void remote_invalidation_stops_writes(struct kunit *test)
{
	struct ib_pd *pd = ndkc_pd(test);
	const struct ndkc_ep_attr attr = { .pd = pd };
	struct ndkc_pair *q = ndkc_pair_attr(test, NULL, &attr);
	struct ndkc_op *recv, *send;
	struct scene s;
	int i, status;

	for (i = 0; i < ROUNDS; i++) {
		recv = ndkc_op(test);
		send = ndkc_op(test);
		status = ndkc_post_recv_sge(q->b, recv, NULL, 0);
		KUNIT_ASSERT_EQ(test, status, 0);
		s = begin(test, pd, IB_WR_RDMA_WRITE);
		status = ndkc_post_send_op(q->a, send, IB_WR_SEND_WITH_INV,
					   IB_SEND_SIGNALED, NULL, 0,
					   s.mr->mr->rkey);
		status = status ?: ndkc_wait(recv);
		KUNIT_EXPECT_EQ(test, status, IB_WC_SUCCESS);
		end(test, &s);
	}
}

/* The error path of every consumer: the QP is drained, memory is freed. */
static void drain_stops_writes(struct kunit *test)
{
	struct ib_pd *pd = ndkc_pd(test);
	struct scene s;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		s = begin(test, pd, IB_WR_RDMA_WRITE);
		KUNIT_EXPECT_EQ(test, ndkc_drain(s.p->b), 0);
		end(test, &s);
	}
}

static void dereg(void *arg)
{
	ib_dereg_mr(arg);
}

/* Deregistration of a live region while the peer writes. */
static void deregistration_stops_writes(struct kunit *test)
{
	struct ib_pd *pd = ndkc_pd(test);
	struct scene s;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		s = begin(test, pd, IB_WR_RDMA_WRITE);
		list_del(&s.mr->entry);
		KUNIT_EXPECT_EQ(test, ndkc_bounded("ib_dereg_mr", dereg,
						   s.mr->mr), 0);
		end(test, &s);
		sg_free_table(&s.mr->sgt);
		kfree(s.mr);
	}
}

static struct kunit_case revoke_cases[] = {
	KUNIT_CASE(local_invalidation_stops_writes),
	KUNIT_CASE(local_invalidation_stops_reads),
	KUNIT_CASE(remote_invalidation_stops_writes),
	KUNIT_CASE(drain_stops_writes),
	KUNIT_CASE(deregistration_stops_writes),
	{}
};

static struct kunit_suite revoke_suite = {
	.name = "ndk_consumer_revoke",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = revoke_cases,
};

kunit_test_suite(revoke_suite);
