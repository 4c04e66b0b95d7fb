// SPDX-License-Identifier: GPL-2.0
/*
 * A consumer of the NDK face at one end of a connection, a consumer of the
 * kernel's own interface at the other.
 */
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "fixture_ndk.h"

/* A connection; @listener belongs to the verbs end, if that is passive. */
struct mixed {
	struct ndkc_nd *nd;
	struct ndkc_ep *ep;
	struct ndkc_cm *listener;
};

struct side {
	const char *name;
	bool ndk_is_active;
};

static const struct side sides[] = {
	{ "NDK connects to rdma_cm", true },
	{ "rdma_cm connects to NDK", false },
};

KUNIT_ARRAY_PARAM_DESC(side, sides, name);

static bool ndk_is_active(struct kunit *test)
{
	const struct side *side = test->param_value;

	return side->ndk_is_active;
}

static struct mixed *new_mixed(struct kunit *test)
{
	struct mixed *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->nd = ndkc_nd(test);
	return m;
}

/* The NDK end has sent a request to a listener of rdma_cm. */
static struct mixed *ndk_asks(struct kunit *test, const void *priv, u32 len,
			      const struct ndkc_ep_attr *attr)
{
	struct mixed *m = new_mixed(test);
	struct ndkc_cm *child;

	m->listener = ndkc_listener(test, 4);
	ndkc_nd_connect(m->nd, ndkc_port(m->listener), priv, len);
	child = ndkc_take_child(m->listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	m->ep = ndkc_ep(test, child, attr);
	return m;
}

/* The verbs end has sent a request to a listener of NDK. */
static struct mixed *verbs_asks(struct kunit *test, const void *priv, u8 len,
				const struct ndkc_ep_attr *attr)
{
	struct mixed *m = new_mixed(test);

	m->ep = ndkc_active(test, ndkc_nd_listen(m->nd), attr);
	KUNIT_ASSERT_EQ(test, ndkc_connect(m->ep, priv, len), 0);
	ndkc_nd_take(m->nd);
	return m;
}

static s32 complete_connect(struct ndkc_nd *nd)
{
	return NDKC_ND_REQUEST(nd, nd->connector->dispatch->complete_connect, nd->connector,
			       ndkc_nd_gone, nd);
}

/* Expect that the peer's private data is @wanted. */
static void expect_words(struct kunit *test, struct ndkc_nd *nd, const void *wanted, u32 len)
{
	u8 words[256] = {};
	u32 room = sizeof(words);
	s32 status;

	status = nd->connector->dispatch->get_connection_data(nd->connector, NULL, NULL, words,
							      &room);
	KUNIT_EXPECT_EQ(test, status, NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, words, wanted, len);
}

/* A connection in the direction of the case; private data goes both ways. */
static struct mixed *mixed_attr(struct kunit *test, const struct ndkc_ep_attr *attr)
{
	const struct ndkc_event *e;
	struct mixed *m;

	if (ndk_is_active(test)) {
		m = ndk_asks(test, "from ndk", 8, attr);
		KUNIT_EXPECT_EQ(test, m->ep->cm->ev[0].priv_len, 8);
		KUNIT_EXPECT_MEMEQ(test, m->ep->cm->ev[0].priv, "from ndk", 8);
		KUNIT_ASSERT_EQ(test, ndkc_accept(m->ep, "from verbs", 10), 0);
		KUNIT_ASSERT_EQ(test, ndkc_nd_connected(m->nd), NDK_STATUS_SUCCESS);
		expect_words(test, m->nd, "from verbs", 11);
		KUNIT_ASSERT_EQ(test, complete_connect(m->nd), NDK_STATUS_SUCCESS);
		KUNIT_ASSERT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_ESTABLISHED));
		return m;
	}
	m = verbs_asks(test, "from verbs", 10, attr);
	expect_words(test, m->nd, "from verbs", 11);
	ndkc_nd_accept(m->nd, "from ndk", 8);
	KUNIT_ASSERT_EQ(test, ndkc_nd_connected(m->nd), NDK_STATUS_SUCCESS);
	e = ndkc_await(m->ep->cm, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_EXPECT_EQ(test, e->priv_len, 8);
	KUNIT_EXPECT_MEMEQ(test, e->priv, "from ndk", 8);
	return m;
}

static struct mixed *mixed(struct kunit *test)
{
	return mixed_attr(test, NULL);
}

/* Expect the NDK end's next result to be the success of a request of @type. */
static struct ndk_result_ex expect_result(struct kunit *test, struct ndkc_nd *nd, u32 type)
{
	struct ndk_result_ex result = {};

	KUNIT_EXPECT_EQ(test, ndkc_nd_result(nd, &result), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, result.type, type);
	KUNIT_EXPECT_PTR_EQ(test, result.qp_context, (void *)nd);
	return result;
}

static void messages_go_both_ways(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndk_sge into = ndkc_nd_sge(nd, 0, 1000), from = ndkc_nd_sge(nd, PAGE_SIZE, 700);
	struct ndkc_buf *buf = ndkc_buf(test, 2 * PAGE_SIZE);
	struct ndkc_op *recv = ndkc_op(test), *send = ndkc_op(test);
	struct ndk_result_ex result;

	memset(nd->mem + PAGE_SIZE, 0x5a, 700);
	memset(buf->va + PAGE_SIZE, 0xa5, 900);
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->receive(nd->qp, NULL, &into, 1),
			NDK_STATUS_SUCCESS);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(m->ep, recv, buf, 0, 1000), 0);

	KUNIT_EXPECT_EQ(test, nd->qp->dispatch->send(nd->qp, NULL, &from, 1, 0),
			NDK_STATUS_SUCCESS);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, 700);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, 700, 0x5a));
	expect_result(test, nd, NDK_OPERATION_TYPE_SEND);

	KUNIT_EXPECT_EQ(test, ndkc_post_send(m->ep, send, IB_SEND_SIGNALED, buf, PAGE_SIZE, 900),
			0);
	NDKC_EXPECT_WC(test, send, IB_WC_SUCCESS);
	result = expect_result(test, nd, NDK_OPERATION_TYPE_RECEIVE);
	KUNIT_EXPECT_EQ(test, result.bytes_transferred, 900);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem, 900, 0xa5));
	KUNIT_EXPECT_TRUE(test, ndkc_nd_is_idle(nd));
}

static void ndk_end_reads_and_writes(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndk_sge sge = ndkc_nd_sge(nd, 10, 4000);
	struct ndkc_buf *buf = ndkc_buf(test, 3 * PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, m->ep, buf, NDKC_REMOTE_ALL);
	u64 addr = mr->mr->iova;

	ndkc_fill(buf, 3);
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->read(nd->qp, NULL, &sge, 1, addr + 500,
						     mr->mr->rkey, 0), NDK_STATUS_SUCCESS);
	expect_result(test, nd, NDK_OPERATION_TYPE_READ);
	KUNIT_EXPECT_MEMEQ(test, nd->mem + 10, buf->va + 500, 4000);

	memset(nd->mem + 10, 0x77, 4000);
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->write(nd->qp, NULL, &sge, 1, addr + 5000,
						      mr->mr->rkey, 0), NDK_STATUS_SUCCESS);
	expect_result(test, nd, NDK_OPERATION_TYPE_WRITE);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va + 5000, 4000, 0x77));
	KUNIT_EXPECT_TRUE(test, ndkc_matches(buf, 0, 5000, 3, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_matches(buf, 9000, buf->len - 9000, 3, 9000));
}

static void verbs_end_reads_and_writes(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndkc_buf *buf = ndkc_buf(test, 2 * PAGE_SIZE);
	struct ndkc_op *read = ndkc_op(test), *write = ndkc_op(test);
	/* A normal registration and a fast one. */
	u32 token = nd->mr->dispatch->get_remote_token(nd->mr);
	u32 fast = ndkc_nd_open(nd, NDK_OP_FLAG_ALLOW_REMOTE_READ);
	u64 addr = (uintptr_t)nd->mem;

	memset(nd->mem, 0x31, NDKC_ND_SIZE);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(m->ep, read, IB_WR_RDMA_READ, buf, 0, 5000,
					     addr + 100, fast), 0);
	NDKC_EXPECT_WC(test, read, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, 5000, 0x31));

	memset(buf->va, 0x13, 5000);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(m->ep, write, IB_WR_RDMA_WRITE, buf, 0, 5000,
					     addr + 100, token), 0);
	NDKC_EXPECT_WC(test, write, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem, 100, 0x31));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem + 100, 5000, 0x13));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem + 5100, NDKC_ND_SIZE - 5100, 0x31));
	/* The peer's accesses give this end no result. */
	KUNIT_EXPECT_TRUE(test, ndkc_nd_is_idle(nd));
}

static void ndk_end_invalidates_a_registration(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndk_sge sge = ndkc_nd_sge(nd, 0, 64);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, m->ep, buf, NDKC_REMOTE_ALL);
	struct ndkc_op *recv = ndkc_op(test);
	struct ndk_result_ex result;

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(m->ep, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->send_and_invalidate(nd->qp, NULL, NULL, 0, 0,
								    mr->mr->rkey),
			NDK_STATUS_SUCCESS);
	expect_result(test, nd, NDK_OPERATION_TYPE_SEND);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, recv->wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, recv->wc.ex.invalidate_rkey, mr->mr->rkey);

	memset(nd->mem, 0x99, 64);
	KUNIT_EXPECT_EQ(test, nd->qp->dispatch->write(nd->qp, NULL, &sge, 1, mr->mr->iova,
						      mr->mr->rkey, 0), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, ndkc_nd_result(nd, &result), NDK_STATUS_REMOTE_RESOURCES);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, 64, 0));
}

static void verbs_end_invalidates_a_registration(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send = ndkc_op(test), *write = ndkc_op(test);
	u32 token = ndkc_nd_open(nd, NDK_OP_FLAG_ALLOW_REMOTE_WRITE);
	struct ndk_result_ex result;

	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->receive(nd->qp, NULL, NULL, 0),
			NDK_STATUS_SUCCESS);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_op(m->ep, send, IB_WR_SEND_WITH_INV,
						IB_SEND_SIGNALED, NULL, 0, token), 0);
	NDKC_EXPECT_WC(test, send, IB_WC_SUCCESS);
	result = expect_result(test, nd, NDK_OPERATION_TYPE_RECEIVE_AND_INVALIDATE);
	KUNIT_EXPECT_EQ(test, result.type_specific_completion_output, token);

	memset(buf->va, 0x99, 64);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(m->ep, write, IB_WR_RDMA_WRITE, buf, 0, 64,
					     (uintptr_t)nd->mem, token), 0);
	KUNIT_EXPECT_TRUE(test, ndkc_is_remote_error(ndkc_wait(write)));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem, 64, 0));
}

static void ndk_end_is_solicited(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndkc_op *plain = ndkc_op(test), *solicited = ndkc_op(test);
	int i;

	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, nd->qp->dispatch->receive(nd->qp, NULL, NULL, 0),
				NDK_STATUS_SUCCESS);
	nd->cq->dispatch->arm_cq(nd->cq, NDK_CQ_NOTIFY_SOLICITED);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(m->ep, plain, IB_SEND_SIGNALED, NULL, 0), 0);
	NDKC_EXPECT_WC(test, plain, IB_WC_SUCCESS);
	expect_result(test, nd, NDK_OPERATION_TYPE_RECEIVE);
	msleep(20);
	KUNIT_EXPECT_FALSE(test, completion_done(&nd->notified));
	KUNIT_ASSERT_EQ(test, ndkc_post_send_sge(m->ep, solicited,
						 IB_SEND_SIGNALED | IB_SEND_SOLICITED, NULL, 0),
			0);
	KUNIT_EXPECT_TRUE(test, ndkc_completes(&nd->notified, 1));
	expect_result(test, nd, NDK_OPERATION_TYPE_RECEIVE);
}

static void count_call(struct ib_cq *cq, void *context)
{
	complete(context);
}

static void verbs_end_is_solicited(struct kunit *test)
{
	struct completion *called = kunit_kzalloc(test, sizeof(*called), GFP_KERNEL);
	struct ndkc_ep_attr attr = {};
	struct ndkc_op *recv[2];
	struct mixed *m;
	struct ndkc_nd *nd;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, called);
	init_completion(called);
	attr.rcq = ndkc_raw_cq(test, 64, 0, count_call, called);
	m = mixed_attr(test, &attr);
	nd = m->nd;
	for (i = 0; i < 2; i++) {
		recv[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(m->ep, recv[i], NULL, 0), 0);
	}
	KUNIT_ASSERT_EQ(test, ib_req_notify_cq(attr.rcq->cq, IB_CQ_SOLICITED), 0);
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->send(nd->qp, NULL, NULL, 0, 0),
			NDK_STATUS_SUCCESS);
	expect_result(test, nd, NDK_OPERATION_TYPE_SEND);
	NDKC_EXPECT_WC(test, recv[0], IB_WC_SUCCESS);
	msleep(20);
	KUNIT_EXPECT_FALSE(test, completion_done(called));
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->send(nd->qp, NULL, NULL, 0,
						     NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_completes(called, 1));
	NDKC_EXPECT_WC(test, recv[1], IB_WC_SUCCESS);
}

static s32 disconnect(struct ndkc_nd *nd)
{
	return NDKC_ND_REQUEST(nd, nd->connector->dispatch->disconnect, nd->connector);
}

static void ndk_end_disconnects(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndkc_op *recv = ndkc_op(test);
	struct ndk_result_ex result;

	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(m->ep, recv, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->receive(nd->qp, NULL, NULL, 0),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, disconnect(nd), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, ndkc_nd_result(nd, &result), NDK_STATUS_CANCELLED);
	/* Verbs flush a queue pair after the peer has gone. */
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_DISCONNECTED));
	NDKC_EXPECT_WC(test, recv, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(m->ep->cm->id), 0);
	KUNIT_EXPECT_EQ(test, disconnect(nd), NDK_STATUS_CONNECTION_INVALID);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->connector), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_read(&nd->nr_gone), 0);
	KUNIT_EXPECT_EQ(test, ndkc_count(m->ep->cm, RDMA_CM_EVENT_DISCONNECTED), 1);
}

static void verbs_end_disconnects(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndk_result_ex result;

	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->receive(nd->qp, NULL, NULL, 0),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(m->ep->cm->id), 0);
	KUNIT_ASSERT_TRUE(test, ndkc_completes(&nd->gone, 1));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_DISCONNECTED));
	/* Posted requests stay until this end has them flushed. */
	KUNIT_EXPECT_TRUE(test, ndkc_nd_is_idle(nd));
	KUNIT_EXPECT_EQ(test, nd->qp->dispatch->send(nd->qp, NULL, NULL, 0, 0),
			NDK_STATUS_CONNECTION_INVALID);
	KUNIT_EXPECT_EQ(test, disconnect(nd), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, ndkc_nd_result(nd, &result), NDK_STATUS_CANCELLED);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->connector), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_read(&nd->nr_gone), 1);
}

static void verbs_end_rejects(struct kunit *test)
{
	struct mixed *m = ndk_asks(test, "please", 6, NULL);
	struct ndkc_cm *child;

	KUNIT_EXPECT_EQ(test, rdma_reject(m->ep->cm->id, "no", 2, 0), 0);
	KUNIT_EXPECT_EQ(test, ndkc_nd_connected(m->nd), NDK_STATUS_CONNECTION_REFUSED);
	/* The same connector and queue pair may try again. */
	ndkc_nd_connect(m->nd, ndkc_port(m->listener), NULL, 0);
	child = ndkc_take_child(m->listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	KUNIT_ASSERT_EQ(test, ndkc_accept(ndkc_ep(test, child, NULL), NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, ndkc_nd_connected(m->nd), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, complete_connect(m->nd), NDK_STATUS_SUCCESS);
}

static void ndk_end_rejects(struct kunit *test)
{
	struct mixed *m = verbs_asks(test, "please", 6, NULL);
	struct ndkc_nd *nd = m->nd;
	const struct ndkc_event *e;

	KUNIT_EXPECT_EQ(test, nd->connector->dispatch->reject(nd->connector, "no", 2),
			NDK_STATUS_SUCCESS);
	e = ndkc_await(m->ep->cm, RDMA_CM_EVENT_REJECTED);
	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_EXPECT_TRUE(test, e->reject_data);
	KUNIT_EXPECT_EQ(test, e->priv_len, 2);
	KUNIT_EXPECT_MEMEQ(test, e->priv, "no", 2);
}

/* rdma_cm has no complete_connect(): its end connects, and then disconnects. */
static void ndk_end_rejects_what_verbs_accepted(struct kunit *test)
{
	struct mixed *m = ndk_asks(test, NULL, 0, NULL);
	struct ndkc_nd *nd = m->nd;

	KUNIT_ASSERT_EQ(test, ndkc_accept(m->ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, ndkc_nd_connected(nd), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_EXPECT_EQ(test, nd->connector->dispatch->reject(nd->connector, "no", 2),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, complete_connect(nd), NDK_STATUS_CONNECTION_INVALID);
}

static void verbs_end_goes_before_the_last_word(struct kunit *test)
{
	struct mixed *m = ndk_asks(test, NULL, 0, NULL);

	KUNIT_ASSERT_EQ(test, ndkc_accept(m->ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, ndkc_nd_connected(m->nd), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_EXPECT_EQ(test, rdma_disconnect(m->ep->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, complete_connect(m->nd), NDK_STATUS_CONNECTION_ABORTED);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->nd->nr_gone), 0);
}

static void connector_closed_undecided_rejects(struct kunit *test)
{
	struct mixed *m = verbs_asks(test, NULL, 0, NULL);

	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(m->nd, m->nd->connector), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_REJECTED));
}

static int wait_hook(struct ndkc_cm *cm, struct rdma_cm_event *event)
{
	wait_for_completion_timeout(cm->hook_arg, 2 * ndkc_timeout());
	return 0;
}

static bool is_answered(struct ndkc_nd *nd)
{
	return completion_done(&nd->connecting->done);
}

/* Returns the first of @nd that was answered, or NULL. */
static struct ndkc_nd *first_answered(struct ndkc_nd *nd[], int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (is_answered(nd[i]))
			return nd[i];
	return NULL;
}

static const char again[] = "again";

/* Connects again after each refusal; true once the listener has the request. */
static bool connects_again(struct ndkc_nd *nd, struct ndkc_cm *listener)
{
	struct ndkc_cm *child;
	bool has_come = false;

	if (is_answered(nd))
		ndkc_nd_connect(nd, ndkc_port(listener), again, sizeof(again));
	spin_lock(&listener->lock);
	list_for_each_entry(child, &listener->pending, pending_entry)
		has_come |= !memcmp(child->ev[0].priv, again, sizeof(again));
	spin_unlock(&listener->lock);
	return has_come;
}

/* While its worker is busy, iw_cm has room for the backlog's requests. */
static void ndk_conn_02_a_full_backlog_refuses(struct kunit *test)
{
	struct completion *go_on = kunit_kzalloc(test, sizeof(*go_on), GFP_KERNEL);
	struct ndkc_cm *listener = ndkc_listener(test, 1);
	struct ndkc_nd *nd[4], *answered = NULL;
	u16 port = ndkc_port(listener);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, go_on);
	init_completion(go_on);
	listener->hook_arg = go_on;
	listener->hook = wait_hook;
	for (i = 0; i < ARRAY_SIZE(nd); i++)
		nd[i] = ndkc_nd(test);
	for (i = 0; i < ARRAY_SIZE(nd); i++)
		ndkc_nd_connect(nd[i], port, NULL, 0);
	NDKC_WAIT_UNTIL((answered = first_answered(nd, ARRAY_SIZE(nd))));
	complete_all(go_on);
	KUNIT_ASSERT_NOT_NULL(test, answered);
	KUNIT_EXPECT_EQ(test, answered->connecting->status, NDK_STATUS_CONNECTION_REFUSED);
	/* There is room again, also for the same connector and queue pair. */
	KUNIT_EXPECT_NOT_NULL(test, ndkc_take_child(listener));
	KUNIT_EXPECT_TRUE(test, NDKC_WAIT_UNTIL(connects_again(answered, listener)));
	KUNIT_EXPECT_FALSE(test, is_answered(answered));
}

static void ndk_conn_12_the_room_needed_is_reported_and_a_short_buffer_is_filled(struct kunit *test)
{
	struct mixed *m = verbs_asks(test, "fourteen bytes", 14, NULL);
	struct ndk_connector *c = m->nd->connector;
	const struct ndk_connector_dispatch *d = c->dispatch;
	struct ndk_adapter *a = m->nd->adapter;
	struct ndk_adapter_info info = {};
	u8 words[256] = {};
	u32 info_size = sizeof(info), in = 99, out = 99, len;

	KUNIT_ASSERT_EQ(test, a->dispatch->query_adapter_info(a, &info, &info_size),
			NDK_STATUS_SUCCESS);
	/* The size for any peer's private data, not for this peer's. */
	len = 0;
	KUNIT_EXPECT_EQ(test, d->get_connection_data(c, &in, &out, NULL, &len),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, len, info.max_caller_data);
	KUNIT_EXPECT_NE(test, len, 14);
	KUNIT_EXPECT_LE(test, in, 16);
	KUNIT_EXPECT_LE(test, out, 16);

	KUNIT_ASSERT_LE(test, len, sizeof(words));
	KUNIT_EXPECT_EQ(test, d->get_connection_data(c, NULL, NULL, words, &len),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, len, info.max_caller_data);
	KUNIT_EXPECT_MEMEQ(test, words, "fourteen bytes", 15);

	/* The call writes no byte more. */
	memset(words, 0xee, sizeof(words));
	len = 5;
	KUNIT_EXPECT_EQ(test, d->get_connection_data(c, NULL, NULL, words, &len),
			NDK_STATUS_BUFFER_TOO_SMALL);
	KUNIT_EXPECT_EQ(test, len, info.max_caller_data);
	KUNIT_EXPECT_MEMEQ(test, words, "fourt\xee", 6);

	/* A buffer without room is too short, too. */
	memset(words, 0xee, sizeof(words));
	len = 0;
	KUNIT_EXPECT_EQ(test, d->get_connection_data(c, &in, &out, words, &len),
			NDK_STATUS_BUFFER_TOO_SMALL);
	KUNIT_EXPECT_EQ(test, len, info.max_caller_data);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(words, sizeof(words), 0xee));

	/* The limits alone. */
	KUNIT_EXPECT_EQ(test, d->get_connection_data(c, &in, &out, NULL, NULL),
			NDK_STATUS_SUCCESS);

	/* Contradictory arguments change no output. */
	in = 99;
	out = 99;
	len = 5;
	KUNIT_EXPECT_EQ(test, d->get_connection_data(c, &in, &out, NULL, &len),
			NDK_STATUS_INVALID_PARAMETER);
	KUNIT_EXPECT_EQ(test, len, 5);
	KUNIT_EXPECT_EQ(test, d->get_connection_data(c, &in, &out, words, NULL),
			NDK_STATUS_INVALID_PARAMETER);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(words, sizeof(words), 0xee));
	KUNIT_EXPECT_EQ(test, in, 99);
	KUNIT_EXPECT_EQ(test, out, 99);
}

typedef s32 (*get_address)(void *object, struct sockaddr *at, u32 *len);

static s32 own_address(void *object, struct sockaddr *at, u32 *len)
{
	struct ndk_connector *connector = object;

	return connector->dispatch->get_local_address(connector, at, len);
}

static s32 peer_address(void *object, struct sockaddr *at, u32 *len)
{
	struct ndk_connector *connector = object;

	return connector->dispatch->get_peer_address(connector, at, len);
}

static s32 listener_address(void *object, struct sockaddr *at, u32 *len)
{
	struct ndk_listener *listener = object;

	return listener->dispatch->get_local_address(listener, at, len);
}

static s32 endpoint_address(void *object, struct sockaddr *at, u32 *len)
{
	struct ndk_shared_endpoint *endpoint = object;

	return endpoint->dispatch->get_local_address(endpoint, at, len);
}

/* Expect only the size in a short buffer. Returns the port in a full one. */
static u16 expect_address(struct kunit *test, void *object, get_address get)
{
	struct sockaddr_storage at;
	u32 len = 0;

	KUNIT_EXPECT_EQ(test, get(object, NULL, &len), NDK_STATUS_BUFFER_TOO_SMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(struct sockaddr_in));
	memset(&at, 0xee, sizeof(at));
	KUNIT_EXPECT_EQ(test, get(object, (struct sockaddr *)&at, NULL),
			NDK_STATUS_INVALID_PARAMETER);
	len = 0;
	KUNIT_EXPECT_EQ(test, get(object, (struct sockaddr *)&at, &len),
			NDK_STATUS_BUFFER_TOO_SMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(struct sockaddr_in));
	len--;
	KUNIT_EXPECT_EQ(test, get(object, (struct sockaddr *)&at, &len),
			NDK_STATUS_BUFFER_TOO_SMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(struct sockaddr_in));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled((u8 *)&at, sizeof(at), 0xee));
	KUNIT_EXPECT_EQ(test, get(object, (struct sockaddr *)&at, &len), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, len, sizeof(struct sockaddr_in));
	KUNIT_EXPECT_EQ(test, at.ss_family, AF_INET);
	KUNIT_EXPECT_EQ(test, ((u8 *)&at)[len], 0xee);
	return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

static void ndk_conn_13_a_short_buffer_learns_the_size(struct kunit *test)
{
	struct mixed *m = new_mixed(test);
	u16 port = ndkc_nd_listen(m->nd);

	m->ep = ndkc_active(test, port, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(m->ep, NULL, 0), 0);
	ndkc_nd_take(m->nd);
	KUNIT_EXPECT_EQ(test, expect_address(test, m->nd->connector, own_address), port);
	KUNIT_EXPECT_EQ(test, expect_address(test, m->nd->connector, peer_address),
			ndkc_port(m->ep->cm));
}

/* The event of a listener that does not listen. */
static void unexpected(void *context, struct ndk_connector *connector)
{
	WARN_ON(true);
}

static void ndk_lstn_03_a_short_buffer_learns_the_size(struct kunit *test)
{
	struct ndkc_nd *nd = ndkc_nd(test);
	const struct ndk_adapter_dispatch *d = nd->adapter->dispatch;
	u16 port = ndkc_nd_listen(nd);
	struct ndk_shared_endpoint *e = NULL;
	struct ndk_listener *idle = NULL;
	struct sockaddr_storage any;
	u32 len = sizeof(any);

	KUNIT_EXPECT_EQ(test, expect_address(test, nd->listener, listener_address), port);

	ndkc_address(&any, 0);
	KUNIT_ASSERT_EQ(test, NDKC_ND_CREATE(nd, &e, d->create_shared_endpoint, nd->adapter,
					     (struct sockaddr *)&any, sizeof(struct sockaddr_in)),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_GE(test, expect_address(test, e, endpoint_address), 49152);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, e), NDK_STATUS_SUCCESS);

	KUNIT_ASSERT_EQ(test, NDKC_ND_CREATE(nd, &idle, d->create_listener, nd->adapter,
					     unexpected, NULL), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, listener_address(idle, (struct sockaddr *)&any, &len),
			NDK_STATUS_INVALID_DEVICE_STATE);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, idle), NDK_STATUS_SUCCESS);
}

static s32 complete_connect_ex(struct ndkc_nd *nd)
{
	return NDKC_ND_REQUEST(nd, nd->connector->dispatch->complete_connect_ex, nd->connector,
			       ndkc_nd_gone_ex, nd);
}

static s32 accept_ex(struct ndkc_nd *nd, u32 len)
{
	static const u8 words[256];

	return NDKC_ND_REQUEST(nd, nd->connector->dispatch->accept_ex, nd->connector, nd->qp, 4, 4,
			       words, len, ndkc_nd_gone_ex, nd);
}

static void ndk_conn_19_the_disconnect_event_carries_no_reason(struct kunit *test)
{
	struct mixed *m;
	struct ndkc_nd *nd;

	/* These functions refuse as the base functions do. */
	if (ndk_is_active(test)) {
		m = ndk_asks(test, NULL, 0, NULL);
		nd = m->nd;
		KUNIT_EXPECT_EQ(test, complete_connect_ex(nd), NDK_STATUS_CONNECTION_INVALID);
		KUNIT_ASSERT_EQ(test, ndkc_accept(m->ep, NULL, 0), 0);
		KUNIT_ASSERT_EQ(test, ndkc_nd_connected(nd), NDK_STATUS_SUCCESS);
		KUNIT_ASSERT_EQ(test, complete_connect_ex(nd), NDK_STATUS_SUCCESS);
	} else {
		m = verbs_asks(test, NULL, 0, NULL);
		nd = m->nd;
		KUNIT_EXPECT_EQ(test, accept_ex(nd, 256), NDK_STATUS_INVALID_BUFFER_SIZE);
		KUNIT_ASSERT_EQ(test, accept_ex(nd, 100), NDK_STATUS_SUCCESS);
	}
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(m->ep->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_EXPECT_EQ(test, nd->reason, U32_MAX);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(m->ep->cm->id), 0);
	KUNIT_EXPECT_TRUE(test, ndkc_completes(&nd->gone, 1));
	KUNIT_EXPECT_EQ(test, nd->reason, 0);
	KUNIT_EXPECT_EQ(test, disconnect(nd), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->connector), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_read(&nd->nr_gone), 1);
}

/* @len bytes at an odd address, copied from @from unless it is NULL. */
static void *odd(struct kunit *test, const void *from, size_t len)
{
	u8 *mem = kunit_kzalloc(test, len + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	if (from)
		memcpy(mem + 1, from, len);
	return mem + 1;
}

/* Waits for one result, at an odd address. */
static struct ndk_result odd_result(struct kunit *test, struct ndkc_nd *nd)
{
	struct ndk_result *at = odd(test, NULL, sizeof(*at)), result;

	KUNIT_EXPECT_TRUE(test, NDKC_WAIT_UNTIL(nd->cq->dispatch->get_cq_results(nd->cq, at, 1)));
	memcpy(&result, at, sizeof(result));
	KUNIT_EXPECT_EQ(test, result.status, NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_PTR_EQ(test, result.qp_context, (void *)nd);
	return result;
}

static void lists_and_results_may_lie_at_odd_addresses(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndk_sge into[] = { ndkc_nd_sge(nd, 0, 300), ndkc_nd_sge(nd, 400, 600) };
	struct ndk_sge from[] = { ndkc_nd_sge(nd, PAGE_SIZE, 300),
				  ndkc_nd_sge(nd, PAGE_SIZE + 300, 400) };
	struct ndk_result_ex *at = odd(test, NULL, sizeof(*at)), result;
	struct ndkc_buf *buf = ndkc_buf(test, 2 * PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, m->ep, buf, NDKC_REMOTE_ALL);
	struct ndkc_op *recv = ndkc_op(test), *send = ndkc_op(test);
	void *sink = odd(test, into, sizeof(into)), *source = odd(test, from, sizeof(from));

	memset(nd->mem + PAGE_SIZE, 0x5a, 700);
	memset(buf->va + PAGE_SIZE, 0xa5, 900);
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->receive(nd->qp, NULL, sink, 2),
			NDK_STATUS_SUCCESS);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(m->ep, recv, buf, 0, 1000), 0);

	KUNIT_EXPECT_EQ(test, nd->qp->dispatch->send(nd->qp, NULL, source, 2, 0),
			NDK_STATUS_SUCCESS);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, 700);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, 700, 0x5a));
	KUNIT_EXPECT_EQ(test, odd_result(test, nd).bytes_transferred, 700);

	KUNIT_EXPECT_EQ(test, ndkc_post_send(m->ep, send, IB_SEND_SIGNALED, buf, PAGE_SIZE, 900),
			0);
	KUNIT_EXPECT_TRUE(test, NDKC_WAIT_UNTIL(nd->cq->dispatch->get_cq_results_ex(nd->cq, at,
										    1)));
	memcpy(&result, at, sizeof(result));
	KUNIT_EXPECT_EQ(test, result.type, NDK_OPERATION_TYPE_RECEIVE);
	KUNIT_EXPECT_EQ(test, result.bytes_transferred, 900);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem, 300, 0xa5));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem + 400, 600, 0xa5));

	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->write(nd->qp, NULL, source, 2, mr->mr->iova,
						      mr->mr->rkey, 0), NDK_STATUS_SUCCESS);
	odd_result(test, nd);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, 700, 0x5a));
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->read(nd->qp, NULL, sink, 1, mr->mr->iova,
						     mr->mr->rkey, 0), NDK_STATUS_SUCCESS);
	odd_result(test, nd);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(nd->mem, 300, 0x5a));
}

static s32 build_lam(struct ndkc_nd *nd, struct ndk_mdl *mdl,
		     struct ndk_logical_address_mapping *lam, u32 *size, u32 *fbo)
{
	const struct ndk_adapter_dispatch *adapter = nd->adapter->dispatch;
	struct ndkc_call *call = ndkc_nd_call(nd);

	return ndkc_nd_wait(call, adapter->build_lam(nd->adapter, mdl, NDKC_ND_SIZE,
						     ndkc_nd_completed, call, lam, size, fbo));
}

static void memory_may_be_described_at_odd_addresses(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	struct ndk_logical_address_mapping *lam = odd(test, NULL, 256), head;
	struct page **pages = odd(test, NULL, 4 * sizeof(*pages)), *aligned[4];
	u32 *size = odd(test, NULL, sizeof(*size)), *fbo = odd(test, NULL, sizeof(*fbo));
	struct ndkc_buf *buf = ndkc_buf(test, 2 * PAGE_SIZE);
	struct ndk_mdl mdl, *odd_mdl = odd(test, NULL, sizeof(mdl));
	struct ndkc_op *read = ndkc_op(test);
	struct ndk_mr *mr = NULL;

	memset(nd->mem, 0x31, NDKC_ND_SIZE);
	KUNIT_ASSERT_EQ(test, ndk_mdl_init(&mdl, nd->mem, NDKC_ND_SIZE, aligned, 4), 0);
	memcpy(pages, aligned, sizeof(aligned));
	mdl.pages = pages;
	memcpy(odd_mdl, &mdl, sizeof(mdl));

	put_unaligned(256, size);
	KUNIT_ASSERT_EQ(test, build_lam(nd, odd_mdl, lam, size, fbo),
			NDK_STATUS_SUCCESS);
	memcpy(&head, lam, sizeof(head));
	KUNIT_EXPECT_EQ(test, head.adapter_page_count,
			DIV_ROUND_UP(offset_in_page(nd->mem) + NDKC_ND_SIZE, PAGE_SIZE));
	KUNIT_ASSERT_EQ(test, nd->qp->dispatch->fast_register(nd->qp, NULL, nd->fast,
							      head.adapter_page_count,
							      (u64 *)((u8 *)lam + sizeof(head)),
							      get_unaligned(fbo), NDKC_ND_SIZE,
							      (uintptr_t)nd->mem,
							      NDK_OP_FLAG_ALLOW_REMOTE_READ),
			NDK_STATUS_SUCCESS);
	odd_result(test, nd);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(m->ep, read, IB_WR_RDMA_READ, buf, 0, 5000,
					     (uintptr_t)nd->mem + 100,
					     nd->fast->dispatch->get_remote_token(nd->fast)), 0);
	NDKC_EXPECT_WC(test, read, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, 5000, 0x31));

	KUNIT_ASSERT_EQ(test, NDKC_ND_CREATE(nd, &mr, nd->pd->dispatch->create_mr, nd->pd, false),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, NDKC_ND_REQUEST(nd, mr->dispatch->register_mr, mr, odd_mdl,
					      NDKC_ND_SIZE, NDK_MR_FLAG_ALLOW_REMOTE_READ),
			NDK_STATUS_SUCCESS);
	memset(nd->mem, 0x32, NDKC_ND_SIZE);
	read = ndkc_op(test);
	KUNIT_EXPECT_EQ(test, ndkc_post_rdma(m->ep, read, IB_WR_RDMA_READ, buf, 0, 5000,
					     (uintptr_t)nd->mem + 100,
					     mr->dispatch->get_remote_token(mr)), 0);
	NDKC_EXPECT_WC(test, read, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(buf->va, 5000, 0x32));
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, mr), NDK_STATUS_SUCCESS);
}

static void arguments_may_lie_at_odd_addresses(struct kunit *test)
{
	struct mixed *m = mixed(test);
	struct ndkc_nd *nd = m->nd;
	const struct ndk_adapter_dispatch *adapter = nd->adapter->dispatch;
	const struct ndk_connector_dispatch *connector = nd->connector->dispatch;
	u32 *len = odd(test, NULL, sizeof(*len)), *reads = odd(test, NULL, sizeof(*reads));
	struct ndk_adapter_info *at = odd(test, NULL, sizeof(*at)), info, same;
	struct ndk_adapter **out = odd(test, NULL, sizeof(*out));
	void *words = odd(test, NULL, 256);
	struct ndk_open_params params = {
		.name = odd(test, dev_name(&ndkc_dev->dev), strlen(dev_name(&ndkc_dev->dev)) + 1),
		.version = { NDK_VERSION_MAJOR, NDK_VERSION_MINOR },
	};
	struct sockaddr_storage local;
	u32 size = sizeof(same), token;

	ndkc_address(&local, 0);
	params.local_address = odd(test, &local, sizeof(local));
	params.net = &init_net;
	KUNIT_ASSERT_EQ(test, ndk_open_adapter(odd(test, &params, sizeof(params)), out),
			NDK_STATUS_SUCCESS);
	ndk_close_adapter(get_unaligned(out));

	put_unaligned(sizeof(*at), len);
	KUNIT_EXPECT_EQ(test, adapter->query_adapter_info(nd->adapter, at, len),
			NDK_STATUS_SUCCESS);
	memcpy(&info, at, sizeof(info));
	KUNIT_EXPECT_EQ(test, adapter->query_adapter_info(nd->adapter, &same, &size),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, &info, &same, sizeof(info));

	nd->pd->dispatch->get_privileged_memory_region_token(nd->pd, len);
	nd->pd->dispatch->get_privileged_memory_region_token(nd->pd, &token);
	KUNIT_EXPECT_EQ(test, get_unaligned(len), token);

	put_unaligned(256, len);
	KUNIT_EXPECT_EQ(test, connector->get_connection_data(nd->connector, reads, NULL, words,
							     len), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, get_unaligned(reads), 4);
	KUNIT_EXPECT_MEMEQ(test, words, "from verbs", 11);

	put_unaligned(256, len);
	KUNIT_EXPECT_EQ(test, connector->get_local_address(nd->connector, words, len),
			NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, get_unaligned(len), sizeof(struct sockaddr_in));
	memcpy(&local, words, sizeof(struct sockaddr_in));
	KUNIT_EXPECT_EQ(test, local.ss_family, AF_INET);
}

static struct kunit_case mixed_cases[] = {
	KUNIT_CASE_PARAM(messages_go_both_ways, side_gen_params),
	KUNIT_CASE_PARAM(lists_and_results_may_lie_at_odd_addresses, side_gen_params),
	KUNIT_CASE_PARAM(memory_may_be_described_at_odd_addresses, side_gen_params),
	KUNIT_CASE_PARAM(arguments_may_lie_at_odd_addresses, side_gen_params),
	KUNIT_CASE_PARAM(ndk_end_reads_and_writes, side_gen_params),
	KUNIT_CASE_PARAM(verbs_end_reads_and_writes, side_gen_params),
	KUNIT_CASE_PARAM(ndk_end_invalidates_a_registration, side_gen_params),
	KUNIT_CASE_PARAM(verbs_end_invalidates_a_registration, side_gen_params),
	KUNIT_CASE_PARAM(ndk_end_is_solicited, side_gen_params),
	KUNIT_CASE_PARAM(verbs_end_is_solicited, side_gen_params),
	KUNIT_CASE_PARAM(ndk_end_disconnects, side_gen_params),
	KUNIT_CASE_PARAM(verbs_end_disconnects, side_gen_params),
	KUNIT_CASE(verbs_end_rejects),
	KUNIT_CASE(ndk_end_rejects),
	KUNIT_CASE(ndk_end_rejects_what_verbs_accepted),
	KUNIT_CASE(verbs_end_goes_before_the_last_word),
	KUNIT_CASE(connector_closed_undecided_rejects),
	KUNIT_CASE(ndk_conn_02_a_full_backlog_refuses),
	KUNIT_CASE(ndk_conn_12_the_room_needed_is_reported_and_a_short_buffer_is_filled),
	KUNIT_CASE(ndk_conn_13_a_short_buffer_learns_the_size),
	KUNIT_CASE(ndk_lstn_03_a_short_buffer_learns_the_size),
	KUNIT_CASE_PARAM(ndk_conn_19_the_disconnect_event_carries_no_reason, side_gen_params),
	{}
};

static struct kunit_suite mixed_suite = {
	.name = "ndk_consumer_mixed",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_nd_exit,
	.test_cases = mixed_cases,
};

kunit_test_suite(mixed_suite);
