// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: poll contexts, arming, and the context of the provider's
 * calls.
 */
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/group_cpus.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/workqueue.h>

#include "fixture.h"

/**
 * struct upcall - the record of a comp_handler
 * @calls: number of calls
 * @called: completed at each call
 * @poster: the task that is inside a post right now
 * @from_poster: calls on the stack of @poster
 * @irqs_off: calls with interrupts disabled or from hard interrupt
 * @unarmed: calls without a preceding arm
 * @cpu: of the last call
 * @polls: the handler polls and arms, as a consumer may
 * @armed: the CQ is armed
 */
struct upcall {
	atomic_t calls;
	struct completion called;
	struct task_struct *poster;
	atomic_t from_poster;
	atomic_t irqs_off;
	atomic_t unarmed;
	atomic_t armed;
	int cpu;
	bool polls;
};

static void on_completion(struct ib_cq *cq, void *context)
{
	struct upcall *u = context;
	struct ib_wc wc;

	atomic_inc(&u->calls);
	if (READ_ONCE(u->poster) == current && !in_serving_softirq())
		atomic_inc(&u->from_poster);
	if (irqs_disabled() || in_hardirq())
		atomic_inc(&u->irqs_off);
	if (atomic_xchg(&u->armed, 0) == 0)
		atomic_inc(&u->unarmed);
	u->cpu = raw_smp_processor_id();
	if (u->polls) {
		/* Deadlocks if the provider holds the CQ's lock. */
		while (ib_poll_cq(cq, 1, &wc) > 0)
			wc.wr_cqe->done(cq, &wc);
		atomic_set(&u->armed, 1);
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	}
	complete(&u->called);
}

static int arm(struct ndkc_cq *cq, struct upcall *u,
	       enum ib_cq_notify_flags flags)
{
	atomic_set(&u->armed, 1);
	return ib_req_notify_cq(cq->cq, flags);
}

struct fixture {
	struct upcall u;
	struct ndkc_cq *cq;
	struct ndkc_pair *p;
};

/* A pair whose passive side receives into a raw CQ. */
static struct fixture *make_fixture(struct kunit *test, int vector)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct ndkc_ep_attr attr = {};

	KUNIT_ASSERT_NOT_NULL(test, f);
	init_completion(&f->u.called);
	f->cq = ndkc_raw_cq(test, 256, vector, on_completion, &f->u);
	attr.rcq = f->cq;
	f->p = ndkc_pair_attr(test, NULL, &attr);
	return f;
}

static struct ndkc_op *message(struct kunit *test, struct fixture *f, int flags)
{
	struct ndkc_op *recv = ndkc_op(test);
	struct ndkc_op *send = ndkc_op(test);
	int ret;

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(f->p->b, recv, NULL, 0), 0);
	WRITE_ONCE(f->u.poster, current);
	ret = ndkc_post_send_sge(f->p->a, send, flags | IB_SEND_SIGNALED, NULL,
				 0);
	WRITE_ONCE(f->u.poster, NULL);
	KUNIT_ASSERT_EQ(test, ret, 0);
	NDKC_ASSERT_WC(test, send, IB_WC_SUCCESS);
	return recv;
}

static bool called(struct fixture *f)
{
	return ndkc_completes(&f->u.called, 1);
}

static bool stays_uncalled(struct fixture *f)
{
	return !wait_for_completion_timeout(&f->u.called,
					    msecs_to_jiffies(100));
}

/* One message over queues that are polled in the same way. */
struct message {
	struct ndkc_op *send;
	struct ndkc_op *recv;
};

static struct message send_message(struct kunit *test, enum ib_poll_context poll)
{
	const struct ndkc_ep_attr attr = { .poll = poll };
	struct ndkc_pair *p = ndkc_pair_attr(test, &attr, &attr);
	struct message m = { .send = ndkc_op(test), .recv = ndkc_op(test) };

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, m.recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, m.send,
						 IB_SEND_SIGNALED, NULL, 0), 0);
	return m;
}

static void softirq_cq_polls_in_softirq(struct kunit *test)
{
	struct message m = send_message(test, IB_POLL_SOFTIRQ);

	NDKC_EXPECT_WC(test, m.recv, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, m.send, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, m.recv->ctx_softirq);
	KUNIT_EXPECT_TRUE(test, m.send->ctx_softirq);
	KUNIT_EXPECT_FALSE(test, m.recv->ctx_irqs_off);
}

static void workqueue_cq_polls_in_process_context(struct kunit *test)
{
	struct message m = send_message(test, IB_POLL_WORKQUEUE);

	NDKC_EXPECT_WC(test, m.recv, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, m.send, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, m.recv->ctx_softirq);
	KUNIT_EXPECT_FALSE(test, m.send->ctx_softirq);
}

/* core/cq.c warns when a direct CQ is notified; that would taint the log. */
static void direct_cq_waits_to_be_polled(struct kunit *test)
{
	struct message m = send_message(test, IB_POLL_DIRECT);

	NDKC_EXPECT_WC(test, m.send, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_read(&m.recv->count), 0);
	NDKC_EXPECT_WC(test, m.recv, IB_WC_SUCCESS);
}

static void unarmed_cq_never_calls(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);

	NDKC_EXPECT_WC(test, message(test, f, 0), IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, message(test, f, IB_SEND_SOLICITED),
		       IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, stays_uncalled(f));
}

static void every_arm_gives_one_call(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);

	arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
	arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_TRUE(test, stays_uncalled(f));
	message(test, f, 0);
	KUNIT_EXPECT_TRUE(test, called(f));
	message(test, f, 0);
	KUNIT_EXPECT_TRUE(test, stays_uncalled(f));
	arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
	message(test, f, 0);
	KUNIT_EXPECT_TRUE(test, called(f));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->u.calls), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->u.unarmed), 0);
}

/* Neither on the stack of the post, nor in an interrupt. */
static void call_comes_from_a_context_of_its_own(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	int i;

	for (i = 0; i < 20; i++) {
		arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
		NDKC_ASSERT_WC(test, message(test, f, 0), IB_WC_SUCCESS);
		KUNIT_ASSERT_TRUE(test, called(f));
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&f->u.from_poster), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->u.irqs_off), 0);
}

static void handler_may_poll_and_arm(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	struct ndkc_op *recv;
	int i;

	f->u.polls = true;
	f->cq->self = false;
	arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
	for (i = 0; i < 20; i++) {
		recv = message(test, f, 0);
		NDKC_ASSERT_WC(test, recv, IB_WC_SUCCESS);
	}
	f->u.polls = false;
}

static void solicited_arm_ignores_plain_receives(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);

	arm(f->cq, &f->u, IB_CQ_SOLICITED);
	NDKC_EXPECT_WC(test, message(test, f, 0), IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, stays_uncalled(f));
	NDKC_EXPECT_WC(test, message(test, f, IB_SEND_SOLICITED),
		       IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, called(f));
}

static void solicited_arm_takes_errors(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	struct ndkc_op *recv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(f->p->b, recv, NULL, 0), 0);
	arm(f->cq, &f->u, IB_CQ_SOLICITED);
	KUNIT_ASSERT_EQ(test, ndkc_set_state(f->p->b, IB_QPS_ERR), 0);
	KUNIT_EXPECT_TRUE(test, called(f));
	NDKC_EXPECT_WC(test, recv, IB_WC_WR_FLUSH_ERR);
}

/* A second arm widens the first and never narrows it. */
static void solicited_arm_does_not_weaken_an_arm(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);

	arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
	arm(f->cq, &f->u, IB_CQ_SOLICITED);
	NDKC_EXPECT_WC(test, message(test, f, 0), IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, called(f));
}

static void missed_events_are_reported(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	struct ndkc_op *recv;

	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(f->cq->cq, IB_CQ_NEXT_COMP |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
	atomic_set(&f->u.armed, 1);
	recv = message(test, f, 0);
	KUNIT_ASSERT_TRUE(test, called(f));
	/* Not polled yet: the entry is still there. */
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(f->cq->cq, IB_CQ_NEXT_COMP |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
	atomic_set(&f->u.armed, 1);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(f->cq->cq, IB_CQ_NEXT_COMP |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
}

/* Vectors and block queues use the same spread over the processors. */
static void vectors_are_respected(struct kunit *test)
{
	struct cpumask *masks __free(kfree) = NULL;
	struct fixture *f;
	unsigned int n, vector, cpu;

	masks = group_cpus_evenly(ndkc_dev->num_comp_vectors, &n);
	KUNIT_ASSERT_NOT_NULL(test, masks);
	for (vector = 0; vector < n && vector < 4; vector++) {
		cpu = cpumask_first(&masks[vector]);
		if (!cpu_online(cpu))
			continue;
		f = make_fixture(test, vector);
		arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
		message(test, f, 0);
		if (!called(f))
			break;
		KUNIT_EXPECT_EQ(test, f->u.cpu, cpu);
	}
	KUNIT_EXPECT_EQ(test, vector, min(n, 4));
}

static void polling_takes_what_is_asked_for(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	struct ndkc_op *recv[5];
	struct ib_wc wc[8];
	int i, n = 0;

	KUNIT_EXPECT_EQ(test, ib_poll_cq(f->cq->cq, 8, wc), 0);
	for (i = 0; i < 5; i++)
		recv[i] = message(test, f, 0);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(f->cq->cq, 2, wc), 2);
	n = ib_poll_cq(f->cq->cq, 6, wc + 2);
	KUNIT_ASSERT_EQ(test, n, 3);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_PTR_EQ(test, wc[i].wr_cqe, &recv[i]->cqe);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(f->cq->cq, 8, wc), 0);
}

/* Polls into @at, where @n of @most entries are.  Returns the number added. */
static int poll_at(struct fixture *f, u8 *at, int n, int most)
{
	return ib_poll_cq(f->cq->cq, most - n, (void *)(at + n * sizeof(struct ib_wc)));
}

static void polling_fills_an_array_at_any_address(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	u8 *mem = kunit_kzalloc(test, 3 * sizeof(struct ib_wc) + 8, GFP_KERNEL);
	struct ib_wc wc[2];
	struct ndkc_op *recv[2];
	int i, n, odd;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	for (odd = 1; odd < 8; odd++) {
		memset(mem, 0xee, 3 * sizeof(*wc) + 8);
		for (i = 0; i < 2; i++)
			recv[i] = message(test, f, 0);
		n = 0;
		KUNIT_ASSERT_TRUE(test, NDKC_WAIT_UNTIL((n += poll_at(f, mem + odd, n, 2)) == 2));
		memcpy(wc, mem + odd, sizeof(wc));
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_PTR_EQ(test, wc[i].wr_cqe, &recv[i]->cqe);
			KUNIT_EXPECT_EQ(test, (int)wc[i].status, IB_WC_SUCCESS);
			KUNIT_EXPECT_EQ(test, (int)wc[i].opcode, IB_WC_RECV);
			KUNIT_EXPECT_PTR_EQ(test, wc[i].qp, f->p->b->qp);
		}
		KUNIT_EXPECT_TRUE(test, ndkc_is_filled(mem, odd, 0xee));
		KUNIT_EXPECT_TRUE(test, ndkc_is_filled(mem + odd + sizeof(wc), sizeof(*wc), 0xee));
	}
}

#define LOAD	500

struct load {
	struct ndkc_ep *ep;
	struct ndkc_op *op[LOAD];
	int sent;
	int status;
};

static int load_thread(void *data)
{
	struct load *load = data;

	while (load->sent < LOAD && !load->status) {
		struct ndkc_op *op = load->op[load->sent];

		load->status = ndkc_post_send_sge(load->ep, op,
						  IB_SEND_SIGNALED, NULL, 0);
		if (!load->status)
			load->status = ndkc_wait(op);
		load->sent += !load->status;
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* The classic loop: wait, poll until empty, arm, poll again if told so. */
static void no_wakeup_is_lost_under_load(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	struct load *load = kunit_kzalloc(test, sizeof(*load), GFP_KERNEL);
	struct task_struct *task;
	struct ndkc_op *recv;
	int i, n, done = 0, posted = 0;
	struct ib_wc wc[4];
	bool lost = false;

	KUNIT_ASSERT_NOT_NULL(test, load);
	load->ep = f->p->a;
	for (i = 0; i < LOAD; i++)
		load->op[i] = ndkc_op(test);
	arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
	for (; posted < 60; posted++) {
		recv = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(f->p->b, recv, NULL,
							 0), 0);
	}
	task = kthread_run(load_thread, load, "ndkc_load");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (done < LOAD && !lost) {
		if (!called(f)) {
			lost = true;
			break;
		}
		do {
			while ((n = ib_poll_cq(f->cq->cq, 4, wc)) > 0) {
				for (i = 0; i < n; i++)
					wc[i].wr_cqe->done(f->cq->cq, &wc[i]);
				done += n;
				for (i = 0; i < n && posted < LOAD; i++) {
					recv = ndkc_op(test);
					if (ndkc_post_recv_sge(f->p->b, recv,
							       NULL, 0))
						lost = true;
					posted++;
				}
			}
		} while (arm(f->cq, &f->u, IB_CQ_NEXT_COMP |
			     IB_CQ_REPORT_MISSED_EVENTS) > 0 && !lost);
	}
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, done, LOAD);
	KUNIT_EXPECT_EQ(test, load->sent, LOAD);
	KUNIT_EXPECT_TRUE(test, ndkc_in_time(load->status != NDKC_NO_COMPLETION));
	KUNIT_EXPECT_EQ(test, load->status, 0);
}

/* The longest moderation period, in microseconds. */
#define PERIOD	U16_MAX

/* Moves the case to another CPU than that of vector 0; false without one. */
static bool leave_cpu_of_vector_0(struct kunit *test)
{
	struct cpumask *masks __free(kfree) = NULL;
	unsigned int n, here;

	masks = group_cpus_evenly(ndkc_dev->num_comp_vectors, &n);
	KUNIT_ASSERT_NOT_NULL(test, masks);
	here = cpumask_any_but(cpu_online_mask, cpumask_first(&masks[0]));
	return here < nr_cpu_ids && !set_cpus_allowed_ptr(current, cpumask_of(here));
}

/* Sends a message that another CPU completes; for atomic context. */
static int message_from_here(struct fixture *f, struct ndkc_op *send)
{
	return ndkc_post_send_sge(f->p->a, send, 0, NULL, 0);
}

/* As called(), for atomic context: the call comes from another CPU. */
static bool called_elsewhere(struct fixture *f, int calls)
{
	ktime_t end = ktime_add_ms(ktime_get(), ndkc_timeout_ms());

	while (atomic_read(&f->u.calls) < calls && ktime_before(ktime_get(), end))
		cpu_relax();
	return atomic_read(&f->u.calls) == calls;
}

static struct ndkc_op *posted_receive(struct kunit *test, struct fixture *f)
{
	struct ndkc_op *recv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(f->p->b, recv, NULL, 0), 0);
	return recv;
}

/*
 * The period ends in a softirq of this CPU, which adds the completions.  No
 * softirq runs before the second completion: the period cannot end first,
 * however long that takes.  The calls come on the CPU of vector 0.
 */
static void moderated_cq_waits_for_the_count(struct kunit *test)
{
	struct fixture *prompt = make_fixture(test, 0);
	struct fixture *f = make_fixture(test, 0);
	struct ndkc_op *send[3] = { ndkc_op(test), ndkc_op(test), ndkc_op(test) };
	struct ndkc_op *recv[2] = { posted_receive(test, f), posted_receive(test, f) };
	bool in_time, late;
	int early, ret;

	posted_receive(test, prompt);
	KUNIT_ASSERT_EQ(test, rdma_set_cq_moderation(f->cq->cq, 2, PERIOD), 0);
	if (!leave_cpu_of_vector_0(test)) {
		kunit_skip(test, "there is one processor");
		return;
	}
	arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
	arm(prompt->cq, &prompt->u, IB_CQ_NEXT_COMP);
	local_bh_disable();
	ret = message_from_here(f, send[0]);
	/* An immediate call comes before a call that is due later. */
	ret = ret ?: message_from_here(prompt, send[1]);
	in_time = called_elsewhere(prompt, 1);
	early = atomic_read(&f->u.calls);
	ret = ret ?: message_from_here(f, send[2]);
	late = called_elsewhere(f, 1);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_TRUE(test, ndkc_in_time(in_time));
	KUNIT_EXPECT_EQ(test, early, 0);
	KUNIT_EXPECT_TRUE(test, ndkc_in_time(late));
	KUNIT_EXPECT_TRUE(test, called(f));
	/* The end of the period makes no second call. */
	KUNIT_EXPECT_TRUE(test, stays_uncalled(f));
	NDKC_EXPECT_WC(test, recv[0], IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, recv[1], IB_WC_SUCCESS);
}

static void moderated_cq_waits_for_the_period_at_most(struct kunit *test)
{
	struct fixture *f = make_fixture(test, 0);
	const u16 periods[] = { 1, 1000, PERIOD };
	int i;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		KUNIT_ASSERT_EQ(test, rdma_set_cq_moderation(f->cq->cq, 100, periods[i]),
				0);
		arm(f->cq, &f->u, IB_CQ_NEXT_COMP);
		NDKC_ASSERT_WC(test, message(test, f, 0), IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, called(f));
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&f->u.calls), ARRAY_SIZE(periods));
}

/* Moderation that ib_core adjusts to the load: off by default. */
static void cq_is_moderated_as_the_core_finds_best(struct kunit *test)
{
	struct ndkc_ep_attr attr = {};
	struct ndkc_op *send, *recv;
	struct ndkc_pair *p;
	int i;

	KUNIT_EXPECT_FALSE(test, ndkc_dev->use_cq_dim);
	attr.rcq = ndkc_cq(test, 256, 0, IB_POLL_SOFTIRQ);
	KUNIT_EXPECT_NULL(test, attr.rcq->cq->dim);
	ndkc_dev->use_cq_dim = true;
	attr.rcq = ndkc_cq(test, 256, 0, IB_POLL_SOFTIRQ);
	attr.scq = ndkc_cq(test, 256, 0, IB_POLL_WORKQUEUE);
	ndkc_dev->use_cq_dim = false;
	KUNIT_ASSERT_NOT_NULL(test, attr.rcq->cq->dim);
	KUNIT_ASSERT_NOT_NULL(test, attr.scq->cq->dim);
	p = ndkc_pair_attr(test, &attr, &attr);
	send = ndkc_op(test);
	recv = ndkc_op(test);
	/* Enough for some steps of 64 calls. */
	for (i = 0; i < 1000; i++) {
		KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
		KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
							 NULL, 0), 0);
		NDKC_ASSERT_WC(test, recv, IB_WC_SUCCESS);
		NDKC_ASSERT_WC(test, send, IB_WC_SUCCESS);
		ndkc_op_reset(recv);
		ndkc_op_reset(send);
	}
	KUNIT_EXPECT_GT(test, attr.rcq->cq->dim->measuring_sample.comp_ctr, 0);
}

/* nvme and nvmet take their CQs from the pool of the device. */
static void cq_pool_serves_a_queue_pair(struct kunit *test)
{
	struct ndkc_op *recv = ndkc_op(test);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	struct ndkc_ep_attr attr = { .rcq = cq };
	struct ndkc_pair *p;

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->cq = ib_cq_pool_get(ndkc_dev, 128, -1, IB_POLL_SOFTIRQ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq->cq));
	p = ndkc_pair_attr(test, NULL, &attr);
	KUNIT_EXPECT_EQ(test, ndkc_post_recv_sge(p->b, recv, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, ndkc_post_send_sge(p->a, send, IB_SEND_SIGNALED,
						 NULL, 0), 0);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	ndkc_drain(p->b);
	KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(p->b), 0);
	ib_cq_pool_put(cq->cq, 128);
}

/*
 * core/cq.c ends a queue that it polls in three steps: the provider's calls,
 * then the polling that they start, then the queue.  A call that runs or begins
 * after the second step starts the polling of a freed queue.  The third step is
 * one of two operations of the device, which set @stopped here.
 */
static struct {
	int (*destroy_cq)(struct ib_cq *cq, struct ib_udata *udata);
	void (*post_destroy_cq)(struct ib_cq *cq);
	ib_comp_handler handler;
	/* the handler waits for the free of the queue, and LINGER_MS more */
	bool slow;
	bool entered;
	bool freeing;
	bool stopped;
	struct completion called;
	atomic_t running;
	atomic_t late;
} watch;

static void polling_has_stopped(void)
{
	WRITE_ONCE(watch.stopped, true);
	/* pairs with the full barrier of the handler's first step */
	smp_mb();
	if (atomic_read(&watch.running))
		atomic_inc(&watch.late);
}

static int watched_destroy(struct ib_cq *cq, struct ib_udata *udata)
{
	polling_has_stopped();
	return watch.destroy_cq(cq, udata);
}

static void watched_post_destroy(struct ib_cq *cq)
{
	polling_has_stopped();
	watch.post_destroy_cq(cq);
}

#define LINGER_MS	20

/* Waits for the free to begin, and then for a step that comes too early. */
static void linger(void)
{
	ktime_t end = ktime_add_ms(ktime_get(), ndkc_timeout_ms());

	while (!READ_ONCE(watch.freeing) && ktime_before(ktime_get(), end))
		cpu_relax();
	end = ktime_add_ms(ktime_get(), LINGER_MS);
	while (!READ_ONCE(watch.stopped) && ktime_before(ktime_get(), end))
		cpu_relax();
}

static void watched_call(struct ib_cq *cq, void *private)
{
	atomic_inc_return(&watch.running);
	WRITE_ONCE(watch.entered, true);
	complete(&watch.called);
	if (watch.slow)
		linger();
	if (READ_ONCE(watch.stopped))
		atomic_inc(&watch.late);
	else
		watch.handler(cq, private);
	atomic_dec_return(&watch.running);
}

static struct ndkc_cq *watched_cq(struct kunit *test, int vector, bool slow)
{
	struct ndkc_cq *cq = ndkc_cq(test, 256, vector, IB_POLL_WORKQUEUE);

	watch.slow = slow;
	watch.entered = false;
	watch.freeing = false;
	watch.stopped = false;
	atomic_set(&watch.running, 0);
	atomic_set(&watch.late, 0);
	init_completion(&watch.called);
	watch.handler = cq->cq->comp_handler;
	cq->cq->comp_handler = watched_call;
	return cq;
}

/* Returns the number of late calls. */
static int free_watched(struct ndkc_cq *cq)
{
	struct ib_device *device = cq->cq->device;

	watch.destroy_cq = device->ops.destroy_cq;
	watch.post_destroy_cq = device->ops.post_destroy_cq;
	device->ops.destroy_cq = watched_destroy;
	if (device->ops.post_destroy_cq)
		device->ops.post_destroy_cq = watched_post_destroy;
	WRITE_ONCE(watch.freeing, true);
	ndkc_cq_free(cq);
	device->ops.destroy_cq = watch.destroy_cq;
	device->ops.post_destroy_cq = watch.post_destroy_cq;
	return atomic_read(&watch.late);
}

/*
 * If core/cq.c polls a queue, the queue's handler only schedules that polling:
 * the provider calls the handler where the completion is added.
 */
static void polling_is_scheduled_where_a_completion_is_added(struct kunit *test)
{
	struct cpumask *masks __free(kfree) = NULL;
	struct ndkc_ep_attr attr = {};
	struct ndkc_pair *p;
	struct ndkc_op *op;
	struct ndkc_op *send;
	unsigned int n;
	bool called;
	int ret;

	masks = group_cpus_evenly(ndkc_dev->num_comp_vectors, &n);
	KUNIT_ASSERT_NOT_NULL(test, masks);
	ret = set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(&masks[0])));
	KUNIT_ASSERT_EQ(test, ret, 0);
	attr.rcq = watched_cq(test, 0, false);
	p = ndkc_pair_attr(test, NULL, &attr);
	op = ndkc_op(test);
	send = ndkc_op(test);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, op, NULL, 0), 0);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&watch.called));
	/* No softirq runs before the end of this section. */
	local_bh_disable();
	ret = ndkc_post_send_sge(p->a, send, 0, NULL, 0);
	called = try_wait_for_completion(&watch.called);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_EXPECT_TRUE(test, called);
	NDKC_EXPECT_WC(test, op, IB_WC_SUCCESS);
}

struct elsewhere {
	struct work_struct work;
	struct ndkc_ep *ep;
	struct ndkc_op *op;
	int ret;
};

/*
 * The timer interrupts this work after the post.  If it interrupted the idle
 * task, the CPU would count as idle, and get tasks that cannot run there.
 */
static void post_elsewhere(struct work_struct *work)
{
	struct elsewhere *post = container_of(work, struct elsewhere, work);
	ktime_t end = ktime_add_ms(ktime_get(), ndkc_timeout_ms());

	local_bh_disable();
	post->ret = ndkc_post_send_sge(post->ep, post->op, IB_SEND_SIGNALED, NULL, 0);
	local_bh_enable();
	while (!READ_ONCE(watch.entered) && !post->ret && ktime_before(ktime_get(), end))
		cpu_relax();
}

/*
 * Moderation leaves the call to a timer, on the CPU that has added the
 * completion: the call still runs when this CPU frees the queue.  The timer
 * interrupts the worker that has posted, so the worker ends after the queue.
 */
static void calls_end_before_the_polling_that_they_start(struct kunit *test)
{
	struct elsewhere *post = kunit_kzalloc(test, sizeof(*post), GFP_KERNEL);
	struct ndkc_ep_attr attr = {};
	unsigned int here, other;
	struct ndkc_pair *p;
	bool called;

	KUNIT_ASSERT_NOT_NULL(test, post);
	here = raw_smp_processor_id();
	other = cpumask_any_but(cpu_online_mask, here);
	if (other >= nr_cpu_ids) {
		kunit_skip(test, "there is one processor");
		return;
	}
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(here)), 0);
	attr.scq = watched_cq(test, 0, true);
	KUNIT_ASSERT_EQ(test, rdma_set_cq_moderation(attr.scq->cq, 100, 1000), 0);
	p = ndkc_pair_attr(test, &attr, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->b, ndkc_op(test), NULL, 0), 0);
	post->ep = p->a;
	post->op = ndkc_op(test);
	INIT_WORK(&post->work, post_elsewhere);
	queue_work_on(other, system_percpu_wq, &post->work);
	called = ndkc_completes(&watch.called, 1);
	KUNIT_EXPECT_TRUE(test, called);
	KUNIT_EXPECT_EQ(test, ndkc_destroy_qp(p->a), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&watch.running), 1);
	KUNIT_EXPECT_EQ(test, free_watched(attr.scq), 0);
	flush_work(&post->work);
	KUNIT_EXPECT_EQ(test, post->ret, 0);
}

static void cq_may_be_freed_right_after_a_drain(struct kunit *test)
{
	struct ndkc_ep_attr attr = {};
	struct ndkc_pair *p;
	int round, i;

	for (round = 0; round < 20; round++) {
		attr.scq = watched_cq(test, round % ndkc_dev->num_comp_vectors, false);
		attr.rcq = attr.scq;
		p = ndkc_pair_attr(test, &attr, NULL);
		for (i = 0; i < 8; i++)
			KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(p->a, ndkc_op(test), NULL,
								 0), 0);
		KUNIT_ASSERT_EQ(test, ndkc_drain(p->a), 0);
		KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(p->a), 0);
		KUNIT_ASSERT_EQ(test, free_watched(attr.scq), 0);
	}
}

struct softirq {
	struct completion inside;
	bool left;
};

/* Acts as a slow handler in softirq. */
static int softirq_thread(void *data)
{
	struct softirq *s = data;

	local_bh_disable();
	complete(&s->inside);
	mdelay(20);
	WRITE_ONCE(s->left, true);
	local_bh_enable();
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/*
 * ib_poll_handler() arms a queue after irq_poll_complete(): from there on
 * irq_poll_disable() of ib_free_cq() does not wait for the handler.
 */
static void cq_is_freed_behind_softirqs(struct kunit *test)
{
	struct softirq *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct task_struct *task;
	struct ib_cq *cq;

	KUNIT_ASSERT_NOT_NULL(test, s);
	init_completion(&s->inside);
	cq = ib_alloc_cq(ndkc_dev, NULL, 4, 0, IB_POLL_SOFTIRQ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	task = kthread_run(softirq_thread, s, "ndkc_softirq");
	if (IS_ERR(task)) {
		ib_free_cq(cq);
		KUNIT_FAIL_AND_ABORT(test, "no thread");
	}
	wait_for_completion(&s->inside);
	ib_free_cq(cq);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(s->left));
	kthread_stop(task);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(softirq_cq_polls_in_softirq),
	KUNIT_CASE(workqueue_cq_polls_in_process_context),
	KUNIT_CASE(direct_cq_waits_to_be_polled),
	KUNIT_CASE(unarmed_cq_never_calls),
	KUNIT_CASE(every_arm_gives_one_call),
	KUNIT_CASE(call_comes_from_a_context_of_its_own),
	KUNIT_CASE(handler_may_poll_and_arm),
	KUNIT_CASE(solicited_arm_ignores_plain_receives),
	KUNIT_CASE(solicited_arm_takes_errors),
	KUNIT_CASE(solicited_arm_does_not_weaken_an_arm),
	KUNIT_CASE(missed_events_are_reported),
	KUNIT_CASE(vectors_are_respected),
	KUNIT_CASE(polling_takes_what_is_asked_for),
	KUNIT_CASE(polling_fills_an_array_at_any_address),
	KUNIT_CASE(no_wakeup_is_lost_under_load),
	KUNIT_CASE(moderated_cq_waits_for_the_count),
	KUNIT_CASE(moderated_cq_waits_for_the_period_at_most),
	KUNIT_CASE(cq_is_moderated_as_the_core_finds_best),
	KUNIT_CASE(cq_pool_serves_a_queue_pair),
	KUNIT_CASE(polling_is_scheduled_where_a_completion_is_added),
	KUNIT_CASE(calls_end_before_the_polling_that_they_start),
	KUNIT_CASE(cq_may_be_freed_right_after_a_drain),
	KUNIT_CASE(cq_is_freed_behind_softirqs),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "ndk_consumer_cq",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
