// SPDX-License-Identifier: GPL-2.0
/*
 * The calls that consumers make from atomic context: post_send, post_recv,
 * poll_cq, req_notify_cq and map_mr_sg. The test thread judges the results
 * afterwards; lockdep and the might_sleep() checks watch the rest.
 */
#include <linux/timer.h>

#include "fixture.h"

struct work {
	struct ndkc_pair *p;
	struct ndkc_op *recv;
	struct ndkc_op *send;
	struct ndkc_op *reg;
	struct ndkc_mr *mr;
	struct ndkc_cq *cq;
	/* held around all calls, for atomic context */
	spinlock_t lock;
	struct timer_list timer;
	struct completion done;
	int recv_ret;
	int send_ret;
	int reg_ret;
	int map_ret;
	int arm_ret;
	int polled;
};

static void on_completion(struct ib_cq *cq, void *context)
{
}

static struct work *make_work(struct kunit *test)
{
	struct work *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct ndkc_ep_attr attr = {};
	struct ndkc_buf *buf;

	KUNIT_ASSERT_NOT_NULL(test, w);
	spin_lock_init(&w->lock);
	init_completion(&w->done);
	w->cq = ndkc_raw_cq(test, 64, 0, on_completion, NULL);
	attr.rcq = w->cq;
	w->p = ndkc_pair_attr(test, NULL, &attr);
	w->recv = ndkc_op(test);
	w->send = ndkc_op(test);
	w->reg = ndkc_op(test);
	buf = ndkc_buf(test, 4 * PAGE_SIZE);
	w->mr = ndkc_mr(test, w->p->a->pd, IB_MR_TYPE_MEM_REG, 4);
	KUNIT_ASSERT_EQ(test, ndkc_map(w->mr, buf, 0, buf->len), 0);
	return w;
}

static void call_everything(struct work *w)
{
	struct ndkc_mr *mr = w->mr;

	w->arm_ret = ib_req_notify_cq(w->cq->cq, IB_CQ_NEXT_COMP |
				      IB_CQ_REPORT_MISSED_EVENTS);
	w->recv_ret = ndkc_post_recv_sge(w->p->b, w->recv, NULL, 0);
	w->map_ret = ib_map_mr_sg(mr->mr, mr->sgt.sgl, mr->sgt.orig_nents, NULL,
				  PAGE_SIZE);
	w->reg_ret = ndkc_post_reg(w->p->a, w->reg, mr, mr->mr->rkey,
				   NDKC_REMOTE_ALL, IB_SEND_SIGNALED);
	w->send_ret = ndkc_post_send_sge(w->p->a, w->send, IB_SEND_SIGNALED,
					 NULL, 0);
	ndkc_reap(w->cq);
}

static void expect_all_done(struct kunit *test, struct work *w)
{
	KUNIT_EXPECT_EQ(test, w->arm_ret, 0);
	KUNIT_EXPECT_EQ(test, w->recv_ret, 0);
	KUNIT_EXPECT_EQ(test, w->map_ret, 4);
	KUNIT_EXPECT_EQ(test, w->reg_ret, 0);
	KUNIT_EXPECT_EQ(test, w->send_ret, 0);
	NDKC_EXPECT_WC(test, w->reg, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, w->send, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, w->recv, IB_WC_SUCCESS);
}

static void timer_fn(struct timer_list *timer)
{
	struct work *w = container_of(timer, struct work, timer);

	call_everything(w);
	complete(&w->done);
}

static void everything_from_a_timer(struct kunit *test)
{
	struct work *w = make_work(test);

	timer_setup(&w->timer, timer_fn, 0);
	mod_timer(&w->timer, jiffies + 1);
	KUNIT_EXPECT_TRUE(test, ndkc_completes(&w->done, 1));
	timer_shutdown_sync(&w->timer);
	expect_all_done(test, w);
}

/* SRP polls its send CQ this way. */
static void everything_with_interrupts_off(struct kunit *test)
{
	struct work *w = make_work(test);
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	call_everything(w);
	spin_unlock_irqrestore(&w->lock, flags);
	expect_all_done(test, w);
}

/* iser posts under a lock that disables bottom halves. */
static void everything_with_bottom_halves_off(struct kunit *test)
{
	struct work *w = make_work(test);

	spin_lock_bh(&w->lock);
	call_everything(w);
	spin_unlock_bh(&w->lock);
	expect_all_done(test, w);
}

/* nvme maps and posts under RCU. */
static void everything_under_rcu(struct kunit *test)
{
	struct work *w = make_work(test);

	rcu_read_lock();
	call_everything(w);
	rcu_read_unlock();
	expect_all_done(test, w);
}

#define ROUNDS	100

struct echo {
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
	struct ndkc_ep *ep;
	struct completion *done;
	atomic_t *rounds;
	int failed;
};

static int echo_recv(struct echo *e)
{
	struct ib_recv_wr wr = { .wr_cqe = &e->recv_cqe };

	return ib_post_recv(e->ep->qp, &wr, NULL);
}

static int echo_send(struct echo *e)
{
	struct ib_send_wr wr = {
		.wr_cqe = &e->send_cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	return ib_post_send(e->ep->qp, &wr, NULL);
}

static void echo_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct echo *e = container_of(wc->wr_cqe, struct echo, send_cqe);

	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		e->failed++;
}

static void echo_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct echo *e = container_of(wc->wr_cqe, struct echo, recv_cqe);

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (wc->status || atomic_inc_return(e->rounds) >= ROUNDS) {
		e->failed += wc->status != IB_WC_SUCCESS;
		complete(e->done);
		return;
	}
	if (echo_recv(e) || echo_send(e)) {
		e->failed++;
		complete(e->done);
	}
}

/* nvme and iser answer a completion with a post, in softirq. */
static void completions_post_the_next_requests(struct kunit *test)
{
	struct echo *e = kunit_kcalloc(test, 2, sizeof(*e), GFP_KERNEL);
	struct ndkc_pair *p = ndkc_pair(test);
	struct completion *done;
	atomic_t *rounds;
	int i;

	done = kunit_kzalloc(test, sizeof(*done), GFP_KERNEL);
	rounds = kunit_kzalloc(test, sizeof(*rounds), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_ASSERT_NOT_NULL(test, done);
	KUNIT_ASSERT_NOT_NULL(test, rounds);
	init_completion(done);
	e[0].ep = p->a;
	e[1].ep = p->b;
	for (i = 0; i < 2; i++) {
		e[i].recv_cqe.done = echo_received;
		e[i].send_cqe.done = echo_sent;
		e[i].done = done;
		e[i].rounds = rounds;
		KUNIT_ASSERT_EQ(test, echo_recv(&e[i]), 0);
	}
	KUNIT_ASSERT_EQ(test, echo_send(&e[0]), 0);
	KUNIT_EXPECT_TRUE(test, ndkc_completes(done, 4));
	KUNIT_EXPECT_EQ(test, atomic_read(rounds), ROUNDS);
	KUNIT_EXPECT_EQ(test, e[0].failed + e[1].failed, 0);
}

static struct kunit_case context_cases[] = {
	KUNIT_CASE(everything_from_a_timer),
	KUNIT_CASE(everything_with_interrupts_off),
	KUNIT_CASE(everything_with_bottom_halves_off),
	KUNIT_CASE(everything_under_rcu),
	KUNIT_CASE(completions_post_the_next_requests),
	{}
};

static struct kunit_suite context_suite = {
	.name = "ndk_consumer_context",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = context_cases,
};

kunit_test_suite(context_suite);
