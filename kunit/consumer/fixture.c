// SPDX-License-Identifier: GPL-2.0
/*
 * Fixture of the consumer tests: the device, the environment of a case, and
 * the objects that need no connection. See fixture.h for the rules.
 */
#include <kunit/test-bug.h>
#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "fixture.h"

static char *dev = "ndk0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "ib_device that must serve the address (empty: any)");

static char *addr = "127.0.0.1";
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "IPv4 address the tests connect to");

static char *peer = "";
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IPv4 address of another device, for the tests of two devices (empty: none)");

static char *peer_dev = "";
module_param(peer_dev, charp, 0444);
MODULE_PARM_DESC(peer_dev, "ib_device that must serve that address (empty: any)");

static char *netdev = "lo";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "where to add the device if nothing serves the address (empty: nowhere)");

static unsigned int timeout_ms = 20000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "limit of each wait");

static unsigned int slow = 1;
module_param(slow, uint, 0444);
MODULE_PARM_DESC(slow, "factor of each limit of a wait");

struct ib_device *ndkc_dev;

static struct rdma_cm_id *probe_id;
static struct completion probe_done;
static int probe_status;
static bool wedged;
/* The suite has added the device, and deletes it. */
static bool added;

/**
 * ndkc_timeout_ms - the limit of a wait, which only ends a hang
 *
 * Return: milliseconds, for calls that take these.
 */
unsigned int ndkc_timeout_ms(void)
{
	return timeout_ms * max(slow, 1);
}

unsigned long ndkc_timeout(void)
{
	return msecs_to_jiffies(ndkc_timeout_ms());
}

/**
 * ndkc_in_time - say in the log that a wait reached its limit
 * @so: true if the wait ended before
 *
 * A test with these words in its log is not run again. Only the task of the
 * test logs them. May sleep.
 *
 * Return: @so.
 */
bool ndkc_in_time(bool so)
{
	struct kunit *test = kunit_get_current_test();

	if (!so && test)
		kunit_info(test, "waited in vain\n");
	return so;
}

/**
 * ndkc_completes - wait for a completion
 * @done: the completion
 * @waits: number of waits that it may need, one after the other
 *
 * Return: true if it came before the limit.
 */
bool ndkc_completes(struct completion *done, unsigned int waits)
{
	return ndkc_in_time(wait_for_completion_timeout(done, waits * ndkc_timeout()));
}

/**
 * ndkc_address - the address under test
 * @ss: filled in
 * @port: TCP port, host order
 */
void ndkc_address(struct sockaddr_storage *ss, u16 port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = in_aton(addr);
	sin->sin_port = htons(port);
}

/**
 * ndkc_peer - the address of the other device
 *
 * Return: the address, or NULL if there is none.
 */
const char *ndkc_peer(void)
{
	return *peer ? peer : NULL;
}

/**
 * ndkc_is_peer - true if that may be the other device
 * @device: the device
 */
bool ndkc_is_peer(const struct ib_device *device)
{
	return !*peer_dev || !strcmp(dev_name(&device->dev), peer_dev);
}

struct bounded {
	struct kref ref;
	struct completion done;
	void (*fn)(void *arg);
	void *arg;
};

static void bounded_release(struct kref *ref)
{
	kfree(container_of(ref, struct bounded, ref));
}

static int bounded_thread(void *data)
{
	struct bounded *b = data;

	b->fn(b->arg);
	complete(&b->done);
	kref_put(&b->ref, bounded_release);
	return 0;
}

/**
 * ndkc_bounded - run a call that a broken provider might never return from
 * @what: for the log
 * @fn: the call
 * @arg: its argument; must outlive the call even if @fn never returns
 *
 * Return: 0, or -ETIMEDOUT when @fn is still running. Then the provider
 * counts as wedged, and this module can no longer be unloaded.
 */
int ndkc_bounded(const char *what, void (*fn)(void *arg), void *arg)
{
	struct task_struct *task;
	struct bounded *b;
	int ret = 0;

	b = kzalloc_obj(*b);
	if (!b)
		return -ENOMEM;
	kref_init(&b->ref);
	init_completion(&b->done);
	b->fn = fn;
	b->arg = arg;

	kref_get(&b->ref);
	task = kthread_run(bounded_thread, b, "ndkc_bounded");
	if (IS_ERR(task)) {
		kref_put(&b->ref, bounded_release);
		ret = PTR_ERR(task);
	} else if (!ndkc_completes(&b->done, 3)) {
		pr_err("%s does not return, the provider is wedged\n", what);
		if (!wedged)
			__module_get(THIS_MODULE);
		wedged = true;
		ret = -ETIMEDOUT;
	}
	kref_put(&b->ref, bounded_release);
	return ret;
}

static int probe_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED ||
	    event->event == RDMA_CM_EVENT_ADDR_ERROR) {
		probe_status = event->status;
		complete(&probe_done);
	}
	return 0;
}

static int probe_resolve(struct rdma_cm_id *id)
{
	struct sockaddr_storage src, dst;
	int ret;

	ndkc_address(&src, 0);
	ndkc_address(&dst, 1);
	ret = rdma_resolve_addr(id, (struct sockaddr *)&src,
				(struct sockaddr *)&dst, ndkc_timeout_ms());
	if (ret)
		return ret;
	if (!wait_for_completion_timeout(&probe_done, ndkc_timeout()))
		return -ETIMEDOUT;
	if (probe_status)
		return probe_status;
	if (!id->device)
		return -ENODEV;
	if (*dev && strcmp(dev_name(&id->device->dev), dev)) {
		pr_err("%s is served by %s, not by %s\n", addr,
		       dev_name(&id->device->dev), dev);
		return -ENODEV;
	}
	return 0;
}

static int probe(void)
{
	int ret;

	init_completion(&probe_done);
	probe_id = rdma_create_id(&init_net, probe_handler, NULL, RDMA_PS_TCP,
				  IB_QPT_RC);
	if (IS_ERR(probe_id)) {
		ret = PTR_ERR(probe_id);
		goto out;
	}
	ret = probe_resolve(probe_id);
	if (ret) {
		rdma_destroy_id(probe_id);
		goto out;
	}
	ndkc_dev = probe_id->device;
	return 0;
out:
	probe_id = NULL;
	return ret;
}

/**
 * ndkc_suite_init - find the device as every consumer does, by its address
 * @suite: unused
 *
 * Without one, as in a kernel that runs its tests before user space, the
 * function adds one for the suite.
 *
 * Return: 0, or an error that fails the whole suite.
 */
int ndkc_suite_init(struct kunit_suite *suite)
{
	int ret = probe();

	if (ret && *dev && *netdev) {
		ret = ndkc_link_add(dev, netdev);
		added = !ret;
		if (ret)
			pr_err("%s cannot be added on %s: %d\n", dev, netdev, ret);
		else
			ret = probe();
	}
	if (ret) {
		pr_err("no device for %s: %d\n", addr, ret);
		ndkc_suite_exit(suite);
	}
	return ret;
}

void ndkc_suite_exit(struct kunit_suite *suite)
{
	int ret;

	if (probe_id)
		rdma_destroy_id(probe_id);
	probe_id = NULL;
	ndkc_dev = NULL;
	if (!added || wedged)
		return;
	added = false;
	ret = ndkc_link_delete(netdev);
	if (ret)
		pr_err("%s cannot be deleted: %d\n", dev, ret);
}

int ndkc_init(struct kunit *test)
{
	struct ndkc_env *env;

	if (wedged || !ndkc_dev)
		return -ENODEV;
	env = kzalloc_obj(*env);
	if (!env)
		return -ENOMEM;
	env->test = test;
	spin_lock_init(&env->lock);
	INIT_LIST_HEAD(&env->cms);
	INIT_LIST_HEAD(&env->eps);
	INIT_LIST_HEAD(&env->cqs);
	INIT_LIST_HEAD(&env->srqs);
	INIT_LIST_HEAD(&env->mrs);
	INIT_LIST_HEAD(&env->bufs);
	INIT_LIST_HEAD(&env->ops);
	INIT_LIST_HEAD(&env->pds);
	test->priv = env;
	return 0;
}

/* As ndkc_init(); the fixture's functions post requests at odd addresses. */
int ndkc_init_odd(struct kunit *test)
{
	struct ndkc_env *env;
	int ret = ndkc_init(test);

	if (ret)
		return ret;
	env = test->priv;
	env->odd = 1;
	return 0;
}

struct env_pd {
	struct ib_pd *pd;
	struct list_head entry;
};

static void free_connections(struct ndkc_env *env)
{
	struct ndkc_ep *ep;
	struct ndkc_mr *mr;

	list_for_each_entry(ep, &env->eps, entry)
		if (ep->qp && ep->cm->id)
			rdma_disconnect(ep->cm->id);
	list_for_each_entry(ep, &env->eps, entry) {
		if (!ep->qp)
			continue;
		/* Draining needs CQs that core/cq.c polls. */
		if (!ep->scq->raw && !ep->rcq->raw && !ep->qp->srq)
			ib_drain_qp(ep->qp);
	}
	list_for_each_entry(mr, &env->mrs, entry)
		ib_dereg_mr(mr->mr);
	list_for_each_entry(ep, &env->eps, entry) {
		if (!ep->qp)
			continue;
		if (ep->cm->id)
			rdma_destroy_qp(ep->cm->id);
		else
			ib_destroy_qp(ep->qp);
	}
}

static void free_queues(struct ndkc_env *env)
{
	struct ndkc_srq *srq, *next_srq;
	struct ndkc_cq *cq, *next_cq;

	list_for_each_entry_safe(srq, next_srq, &env->srqs, entry) {
		ib_destroy_srq(srq->srq);
		kfree(srq);
	}
	list_for_each_entry_safe(cq, next_cq, &env->cqs, entry) {
		ndkc_cq_free(cq);
		kfree(cq);
	}
}

static struct ndkc_cm *next_id(struct ndkc_env *env, bool unanswered)
{
	struct ndkc_cm *cm, *found = NULL;

	spin_lock(&env->lock);
	list_for_each_entry(cm, &env->cms, entry) {
		if (cm->id && (!unanswered || (cm->child && !cm->id->qp))) {
			found = cm;
			break;
		}
	}
	spin_unlock(&env->lock);
	return found;
}

/*
 * Unanswered requests go first: iw_cm blocks in every call on the active id
 * until the peer has decided.
 */
static void free_requests(struct ndkc_env *env)
{
	struct ndkc_cm *cm;

	while ((cm = next_id(env, true)))
		ndkc_cm_destroy(cm);
}

static void free_ids(struct ndkc_env *env)
{
	struct ndkc_cm *cm, *next;

	while ((cm = next_id(env, false)))
		ndkc_cm_destroy(cm);
	list_for_each_entry_safe(cm, next, &env->cms, entry)
		kfree(cm);
}

static void free_memory(struct ndkc_env *env)
{
	struct ndkc_buf *buf, *next_buf;
	struct ndkc_ep *ep, *next_ep;
	struct ndkc_mr *mr, *next_mr;
	struct ndkc_op *op, *next_op;
	struct env_pd *pd, *next_pd;

	list_for_each_entry_safe(mr, next_mr, &env->mrs, entry) {
		if (mr->mapped)
			sg_free_table(&mr->sgt);
		kfree(mr);
	}
	list_for_each_entry_safe(ep, next_ep, &env->eps, entry)
		kfree(ep);
	list_for_each_entry_safe(pd, next_pd, &env->pds, entry) {
		ib_dealloc_pd(pd->pd);
		kfree(pd);
	}
	list_for_each_entry_safe(buf, next_buf, &env->bufs, entry) {
		ib_dma_unmap_single(ndkc_dev, buf->dma, buf->len,
				    DMA_BIDIRECTIONAL);
		free_pages_exact(buf->va, buf->len);
		kfree(buf);
	}
	list_for_each_entry_safe(op, next_op, &env->ops, entry)
		kfree(op);
}

static void free_env(void *arg)
{
	struct ndkc_env *env = arg;

	free_requests(env);
	free_connections(env);
	/*
	 * Ids go before the CQs: a handler that still runs may use a QP, and
	 * a listener may still hand out children.
	 */
	free_ids(env);
	free_queues(env);
	free_memory(env);
	kfree(env);
}

void ndkc_exit(struct kunit *test)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_op *op;

	if (!env)
		return;
	list_for_each_entry(op, &env->ops, entry)
		KUNIT_EXPECT_LE_MSG(test, atomic_read(&op->count), 1,
				    "a work request completed twice");
	test->priv = NULL;
	if (ndkc_bounded("tearing down a test case", free_env, env))
		KUNIT_FAIL(test, "teardown hangs");
}

struct ib_pd *ndkc_pd(struct kunit *test)
{
	struct ndkc_env *env = test->priv;
	struct env_pd *e = kzalloc_obj(*e);

	KUNIT_ASSERT_NOT_NULL(test, e);
	e->pd = ib_alloc_pd(env->dev ?: ndkc_dev, 0);
	if (IS_ERR(e->pd)) {
		kfree(e);
		KUNIT_FAIL_AND_ABORT(test, "ib_alloc_pd");
	}
	list_add_tail(&e->entry, &env->pds);
	return e->pd;
}

struct ndkc_cq *ndkc_cq(struct kunit *test, int nr, int vector,
			enum ib_poll_context poll)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_cq *cq = kzalloc_obj(*cq);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->cq = ib_alloc_cq(env->dev ?: ndkc_dev, NULL, nr, vector, poll);
	if (IS_ERR(cq->cq)) {
		kfree(cq);
		KUNIT_FAIL_AND_ABORT(test, "ib_alloc_cq of %d", nr);
	}
	cq->self = poll == IB_POLL_DIRECT;
	list_add_tail(&cq->entry, &env->cqs);
	KUNIT_EXPECT_GE(test, cq->cq->cqe, nr);
	return cq;
}

/**
 * ndkc_raw_cq - a CQ without the help of core/cq.c
 * @test: the case
 * @nr: entries
 * @vector: completion vector
 * @handler: completion handler
 * @context: its second argument
 */
struct ndkc_cq *ndkc_raw_cq(struct kunit *test, int nr, int vector,
			    ib_comp_handler handler, void *context)
{
	const struct ib_cq_init_attr attr = {
		.cqe = nr,
		.comp_vector = vector,
	};
	struct ndkc_env *env = test->priv;
	struct ndkc_cq *cq = kzalloc_obj(*cq);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->cq = ib_create_cq(ndkc_dev, handler, NULL, context, &attr);
	if (IS_ERR(cq->cq)) {
		kfree(cq);
		KUNIT_FAIL_AND_ABORT(test, "ib_create_cq of %d", nr);
	}
	cq->raw = true;
	cq->self = true;
	list_add_tail(&cq->entry, &env->cqs);
	KUNIT_EXPECT_GE(test, cq->cq->cqe, nr);
	return cq;
}

void ndkc_cq_free(struct ndkc_cq *cq)
{
	if (!cq->cq)
		return;
	if (cq->raw)
		ib_destroy_cq(cq->cq);
	else
		ib_free_cq(cq->cq);
	cq->cq = NULL;
}

struct ndkc_buf *ndkc_buf(struct kunit *test, size_t len)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_buf *buf = kzalloc_obj(*buf);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	buf->len = len;
	buf->va = alloc_pages_exact(len, GFP_KERNEL | __GFP_ZERO);
	if (!buf->va) {
		kfree(buf);
		KUNIT_FAIL_AND_ABORT(test, "no memory");
	}
	buf->dma = ib_dma_map_single(ndkc_dev, buf->va, len, DMA_BIDIRECTIONAL);
	list_add_tail(&buf->entry, &env->bufs);
	return buf;
}

static void op_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ndkc_op *op = container_of(wc->wr_cqe, struct ndkc_op, cqe);

	op->order = atomic_inc_return(&op->env->order);
	op->wc = *wc;
	op->ctx_irqs_off = irqs_disabled();
	op->ctx_softirq = in_softirq();
	op->ctx_cpu = raw_smp_processor_id();
	atomic_inc(&op->count);
	complete(&op->done);
}

struct ndkc_op *ndkc_op(struct kunit *test)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_op *op = kzalloc_obj(*op);

	KUNIT_ASSERT_NOT_NULL(test, op);
	op->cqe.done = op_done;
	op->env = env;
	init_completion(&op->done);
	list_add_tail(&op->entry, &env->ops);
	return op;
}

/**
 * ndkc_op_reset - use a completed request again
 * @op: the request
 */
void ndkc_op_reset(struct ndkc_op *op)
{
	reinit_completion(&op->done);
	atomic_set(&op->count, 0);
}

static void srq_event(struct ib_event *event, void *context)
{
	struct ndkc_srq *srq = context;

	if (event->event != IB_EVENT_SRQ_LIMIT_REACHED)
		return;
	atomic_inc(&srq->limits);
	complete(&srq->limit);
}

struct ndkc_srq *ndkc_srq(struct kunit *test, struct ib_pd *pd, u32 max_wr,
			  u32 max_sge)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_srq *srq = kzalloc_obj(*srq);
	struct ib_srq_init_attr attr = {
		.event_handler = srq_event,
		.srq_context = srq,
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
		.srq_type = IB_SRQT_BASIC,
	};

	KUNIT_ASSERT_NOT_NULL(test, srq);
	init_completion(&srq->limit);
	srq->srq = ib_create_srq(pd, &attr);
	if (IS_ERR(srq->srq)) {
		kfree(srq);
		KUNIT_FAIL_AND_ABORT(test, "ib_create_srq");
	}
	list_add_tail(&srq->entry, &env->srqs);
	return srq;
}

static u8 pattern(u8 seed, size_t i)
{
	return seed + i + (i >> 8) * 7;
}

/**
 * ndkc_fill - write a pattern that differs in every page and every seed
 * @buf: filled whole
 * @seed: which pattern
 */
void ndkc_fill(struct ndkc_buf *buf, u8 seed)
{
	size_t i;

	for (i = 0; i < buf->len; i++)
		buf->va[i] = pattern(seed, i);
}

bool ndkc_is_filled(const u8 *p, size_t len, u8 value)
{
	return !memchr_inv(p, value, len);
}

/**
 * ndkc_matches - return true if a part of a buffer has another's pattern
 * @buf: the buffer
 * @off: offset of the part
 * @len: bytes
 * @seed: of ndkc_fill() on the source
 * @seed_off: offset of the first byte in the source
 */
bool ndkc_matches(const struct ndkc_buf *buf, size_t off, size_t len, u8 seed,
		  size_t seed_off)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf->va[off + i] != pattern(seed, seed_off + i))
			return false;
	return true;
}

/**
 * ndkc_reap - poll a CQ that has no other poller
 * @cq: the CQ; no effect if core/cq.c polls it
 */
void ndkc_reap(struct ndkc_cq *cq)
{
	struct ib_wc wc[4];
	int i, n;

	if (!cq->self)
		return;
	if (!cq->raw) {
		ib_process_cq_direct(cq->cq, 64);
		return;
	}
	while ((n = ib_poll_cq(cq->cq, ARRAY_SIZE(wc), wc)) > 0)
		for (i = 0; i < n; i++)
			if (wc[i].wr_cqe)
				wc[i].wr_cqe->done(cq->cq, &wc[i]);
}

/**
 * ndkc_wait - wait for the completion of a work request
 * @op: the request; may be waited for again
 *
 * Return: the ib_wc_status, or NDKC_NO_COMPLETION.
 */
int ndkc_wait(struct ndkc_op *op)
{
	unsigned long end = jiffies + ndkc_timeout();

	if (!op->cq || !op->cq->self) {
		wait_for_completion_timeout(&op->done, ndkc_timeout());
	} else {
		ndkc_reap(op->cq);
		while (!atomic_read(&op->count) && time_before(jiffies, end)) {
			usleep_range(50, 500);
			ndkc_reap(op->cq);
		}
	}
	if (!ndkc_in_time(atomic_read(&op->count)))
		return NDKC_NO_COMPLETION;
	complete_all(&op->done);
	return op->wc.status;
}

/**
 * ndkc_stays_incomplete - return true if a request does not complete
 * @op: the request
 * @ms: how long
 */
bool ndkc_stays_incomplete(struct ndkc_op *op, unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);

	do {
		if (op->cq)
			ndkc_reap(op->cq);
		if (atomic_read(&op->count))
			return false;
		usleep_range(500, 2000);
	} while (time_before(jiffies, end));
	return true;
}

bool ndkc_is_local_error(int status)
{
	return status == IB_WC_LOC_PROT_ERR || status == IB_WC_LOC_ACCESS_ERR ||
	       status == IB_WC_LOC_QP_OP_ERR || status == IB_WC_LOC_LEN_ERR;
}

bool ndkc_is_remote_error(int status)
{
	return status == IB_WC_REM_ACCESS_ERR || status == IB_WC_REM_OP_ERR ||
	       status == IB_WC_REM_INV_REQ_ERR;
}

MODULE_DESCRIPTION("tests of an RDMA provider through the consumer interfaces");
MODULE_LICENSE("GPL");
