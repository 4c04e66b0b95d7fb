// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: set-up, negotiation, refusal, teardown in every order.
 */
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include <rdma/iw_cm.h>

#include "fixture.h"

static void ping(struct kunit *test, struct ndkc_ep *from, struct ndkc_ep *to)
{
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	ndkc_fill(src, 3);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(to, recv, dst, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send(from, send, IB_SEND_SIGNALED, src,
					     0, 100), 0);
	NDKC_EXPECT_WC(test, recv, IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, send, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, 100, 3, 0));
}

static void connect_and_exchange(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	ping(test, p->a, p->b);
	ping(test, p->b, p->a);
}

/* No source address: cma_bind_loopback() picks the device. */
static void loopback_without_a_source_resolves(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_cm *cm = ndkc_cm(test);
	struct sockaddr_storage dst;
	struct ndkc_ep *a, *b;

	ndkc_address(&dst, ndkc_port(listener));
	KUNIT_ASSERT_EQ(test, rdma_resolve_addr(cm->id, NULL,
						(struct sockaddr *)&dst, 2000),
			0);
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(cm, RDMA_CM_EVENT_ADDR_RESOLVED));
	KUNIT_ASSERT_PTR_EQ(test, cm->id->device, ndkc_dev);
	KUNIT_ASSERT_EQ(test, rdma_resolve_route(cm->id, 2000), 0);
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(cm, RDMA_CM_EVENT_ROUTE_RESOLVED));
	a = ndkc_ep(test, cm, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	cm = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, cm);
	b = ndkc_ep(test, cm, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_accept(b, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
	ping(test, a, b);
}

static const u8 private_data_lengths[] = { 0, 1, 4, 56, 196, 251, 255 };

static void private_data_desc(const u8 *len, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u bytes", *len);
}

KUNIT_ARRAY_PARAM(private_data, private_data_lengths, private_data_desc);

static void private_data_arrives_both_ways(struct kunit *test)
{
	u8 len = *(const u8 *)test->param_value;
	const struct ndkc_event *e;
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_cm *child;
	struct ndkc_ep *b;
	u8 *there = kunit_kzalloc(test, 256, GFP_KERNEL);
	u8 *back = kunit_kzalloc(test, 256, GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, there);
	KUNIT_ASSERT_NOT_NULL(test, back);
	for (i = 0; i < 256; i++) {
		there[i] = i + 1;
		back[i] = 255 - i;
	}

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, there, len), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	KUNIT_ASSERT_EQ(test, child->ev[0].priv_len, len);
	KUNIT_EXPECT_MEMEQ(test, child->ev[0].priv, there, len);

	b = ndkc_ep(test, child, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_accept(b, back, len), 0);
	e = ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_ASSERT_EQ(test, e->priv_len, len);
	KUNIT_EXPECT_MEMEQ(test, e->priv, back, len);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(b->cm,
					       RDMA_CM_EVENT_ESTABLISHED));
}

static void read_depths_are_negotiated(struct kunit *test)
{
	struct rdma_conn_param param = {
		.initiator_depth = 8, .responder_resources = 4,
	};
	const struct ndkc_event *req, *act, *pas;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_cm *child;
	struct ndkc_ep *b;
	int ret;

	KUNIT_ASSERT_EQ(test, rdma_connect(a->cm->id, &param), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	/* SMB compares these with its private data: never clamped. */
	req = &child->ev[0];
	KUNIT_EXPECT_EQ(test, req->initiator_depth, 4);
	KUNIT_EXPECT_EQ(test, req->responder_resources, 8);

	b = ndkc_ep(test, child, NULL);
	param.initiator_depth = 2;
	param.responder_resources = 6;
	rdma_lock_handler(child->id);
	ret = rdma_accept(child->id, &param);
	rdma_unlock_handler(child->id);
	KUNIT_ASSERT_EQ(test, ret, 0);

	/* In these two events initiator_depth carries IRD. */
	act = ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_ASSERT_NOT_NULL(test, act);
	KUNIT_EXPECT_GE(test, act->initiator_depth, 2);
	KUNIT_EXPECT_LE(test, act->initiator_depth, 4);
	KUNIT_EXPECT_GE(test, act->responder_resources, 1);
	KUNIT_EXPECT_LE(test, act->responder_resources, 6);
	pas = ndkc_await(b->cm, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_ASSERT_NOT_NULL(test, pas);
	KUNIT_EXPECT_GE(test, pas->initiator_depth, 6);
	KUNIT_EXPECT_LE(test, pas->initiator_depth, 8);
	KUNIT_EXPECT_EQ(test, pas->responder_resources, 2);

	/* No side has more reads outstanding than the other side serves. */
	KUNIT_ASSERT_EQ(test, ib_query_qp(a->qp, &attr, IB_QP_MAX_QP_RD_ATOMIC, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 6);
	KUNIT_EXPECT_EQ(test, attr.max_dest_rd_atomic, 2);
	KUNIT_ASSERT_EQ(test, ib_query_qp(b->qp, &attr, IB_QP_MAX_QP_RD_ATOMIC, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 2);
	KUNIT_EXPECT_EQ(test, attr.max_dest_rd_atomic, 6);
}

static int accept_hook(struct ndkc_cm *cm, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = {
		.initiator_depth = 1, .responder_resources = 1,
	};
	struct ndkc_ep *ep = cm->hook_arg;
	int ret;

	ret = ndkc_ep_attach(ep, cm, cm->id);
	if (ret)
		return ret;
	ret = rdma_accept(cm->id, &param);
	if (ret) {
		rdma_destroy_qp(cm->id);
		ep->qp = NULL;
	}
	return ret;
}

/* nvmet, isert and srpt accept where the request is reported. */
static void accept_inside_the_handler(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_ep *b = ndkc_ep_prepare(test, NULL);

	listener->hook_arg = b;
	listener->hook = accept_hook;
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_take_child(listener));
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(b->cm, RDMA_CM_EVENT_ESTABLISHED));
	ping(test, a, b);
}

static void accept_may_take_its_time(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_cm *child;

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	msleep(1000);
	KUNIT_EXPECT_EQ(test, a->cm->nr, 2);
	KUNIT_ASSERT_EQ(test, ndkc_accept(ndkc_ep(test, child, NULL), NULL, 0),
			0);
	KUNIT_EXPECT_NOT_NULL(test,
			      ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
}

static void reject_carries_the_consumers_data(struct kunit *test)
{
	static const u8 why[] = { 0xde, 0xad, 0xbe, 0xef };
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	const struct ndkc_event *e;
	struct ndkc_cm *child;

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	KUNIT_EXPECT_EQ(test, rdma_reject(child->id, why, sizeof(why),
					  IB_CM_REJ_CONSUMER_DEFINED), 0);
	e = ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED);
	KUNIT_ASSERT_NOT_NULL(test, e);
	/* The status rdma_consumer_reject_data() asks for on iWARP. */
	KUNIT_EXPECT_EQ(test, e->status, -ECONNREFUSED);
	KUNIT_EXPECT_TRUE(test, e->reject_data);
	KUNIT_ASSERT_EQ(test, e->priv_len, sizeof(why));
	KUNIT_EXPECT_MEMEQ(test, e->priv, why, sizeof(why));
}

static void connect_to_nobody_is_refused(struct kunit *test)
{
	struct ndkc_cm *nobody = ndkc_cm(test);
	const struct ndkc_event *e;
	struct ndkc_ep *a;
	int ret;

	KUNIT_ASSERT_EQ(test, ndkc_bind(nobody), 0);
	a = ndkc_active(test, ndkc_port(nobody), NULL);
	/* The call itself may return the error. */
	ret = ndkc_connect(a, NULL, 0);
	if (!ret) {
		e = ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED);
		KUNIT_ASSERT_NOT_NULL(test, e);
		ret = e->status;
	}
	KUNIT_EXPECT_EQ(test, ret, -ECONNREFUSED);
}

/* Resolves an address other than the one under test: 0 or an error. */
static int resolve(struct kunit *test, struct ndkc_cm *cm, const char *addr)
{
	struct sockaddr_storage ss = {};
	struct sockaddr_in *sin = (struct sockaddr_in *)&ss;
	const struct ndkc_event *e;
	int ret;

	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = in_aton(addr);
	sin->sin_port = htons(4420);
	ret = rdma_resolve_addr(cm->id, NULL, (struct sockaddr *)sin, ndkc_timeout_ms());
	if (ret)
		return ret;
	e = ndkc_wait_index(cm, 0);
	KUNIT_ASSERT_NOT_NULL(test, e);
	if (e->type == RDMA_CM_EVENT_ADDR_RESOLVED)
		return 0;
	KUNIT_EXPECT_EQ(test, (int)e->type, RDMA_CM_EVENT_ADDR_ERROR);
	return e->status;
}

/*
 * 198.51.100.0/24 is reserved for documentation: no route leads there.  The
 * wait in resolve() is the bound.
 */
static void foreign_address_fails_in_bounded_time(struct kunit *test)
{
	struct ndkc_cm *cm = ndkc_cm(test);

	KUNIT_EXPECT_EQ(test, resolve(test, cm, "198.51.100.77"), -ENETUNREACH);
}

/*
 * A neighbour that no device of this host serves. The runner of the suites
 * makes a net for it: a device of the same kind at 192.0.2.1. Suites that run
 * before user space have no such net.
 */
static void neighbour_of_another_host_is_unreachable(struct kunit *test)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_cm *cm = ndkc_cm(test);
	const struct ndkc_event *e;
	struct ndkc_ep *ep;
	unsigned int next;
	int ret;

	ret = resolve(test, cm, "192.0.2.77");
	if (ret == -ENETUNREACH)
		kunit_skip(test, "no device of another net, at 192.0.2.1");
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_ASSERT_EQ(test, rdma_resolve_route(cm->id, ndkc_timeout_ms()), 0);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(cm, RDMA_CM_EVENT_ROUTE_RESOLVED));
	env->dev = cm->id->device;
	ep = ndkc_ep(test, cm, NULL);
	next = cm->nr;
	KUNIT_ASSERT_EQ(test, ndkc_connect(ep, NULL, 0), 0);
	e = ndkc_wait_index(cm, next);
	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_EXPECT_EQ(test, (int)e->type, RDMA_CM_EVENT_UNREACHABLE);
	KUNIT_EXPECT_EQ(test, e->status, -ETIMEDOUT);
}

#define MANY 16

static void sixteen_connect_at_once(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, MANY);
	struct ndkc_ep *a[MANY], *b[MANY];
	struct ndkc_cm *child;
	int i;

	for (i = 0; i < MANY; i++)
		a[i] = ndkc_active(test, ndkc_port(listener), NULL);
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, ndkc_connect(a[i], &i, 1), 0);
	for (i = 0; i < MANY; i++) {
		child = ndkc_take_child(listener);
		KUNIT_ASSERT_NOT_NULL_MSG(test, child, "request %d", i);
		b[i] = ndkc_ep(test, child, NULL);
		KUNIT_EXPECT_EQ(test, ndkc_accept(b[i], NULL, 0), 0);
	}
	for (i = 0; i < MANY; i++) {
		KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a[i]->cm,
						       RDMA_CM_EVENT_ESTABLISHED));
		KUNIT_EXPECT_NOT_NULL(test, ndkc_await(b[i]->cm,
						       RDMA_CM_EVENT_ESTABLISHED));
	}
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_LT(test, b[i]->cm->ev[0].priv[0], MANY);
}

static int wait_hook(struct ndkc_cm *cm, struct rdma_cm_event *event)
{
	wait_for_completion_timeout(cm->hook_arg, 2 * ndkc_timeout());
	return 0;
}

/*
 * As with nconnect=16, or when a server comes back: iw_cm has room for as many
 * requests as the backlog says, and its worker is busy with the first.
 */
static void more_than_the_backlog_connect_at_once(struct kunit *test)
{
	struct completion *go_on = kunit_kzalloc(test, sizeof(*go_on), GFP_KERNEL);
	struct ndkc_cm *listener = ndkc_listener(test, 1);
	struct ndkc_ep *a[MANY];
	struct ndkc_cm *child;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, go_on);
	init_completion(go_on);
	listener->hook_arg = go_on;
	listener->hook = wait_hook;
	for (i = 0; i < MANY; i++)
		a[i] = ndkc_active(test, ndkc_port(listener), NULL);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, ndkc_connect(a[i], NULL, 0), 0);
	msleep(100);
	complete_all(go_on);
	for (i = 0; i < MANY; i++) {
		child = ndkc_take_child(listener);
		KUNIT_ASSERT_NOT_NULL_MSG(test, child, "request %d", i);
		KUNIT_EXPECT_EQ(test, ndkc_accept(ndkc_ep(test, child, NULL), NULL, 0), 0);
	}
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a[i]->cm,
						       RDMA_CM_EVENT_ESTABLISHED));
}

static void expect_one_disconnect(struct kunit *test, struct ndkc_ep *first,
				  struct ndkc_ep *second)
{
	KUNIT_EXPECT_EQ(test, rdma_disconnect(first->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(second->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, rdma_disconnect(second->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(first->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	msleep(100);
	KUNIT_EXPECT_EQ(test, ndkc_count(first->cm,
					 RDMA_CM_EVENT_DISCONNECTED), 1);
	KUNIT_EXPECT_EQ(test, ndkc_count(second->cm,
					 RDMA_CM_EVENT_DISCONNECTED), 1);
}

static void active_side_disconnects(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	expect_one_disconnect(test, p->a, p->b);
}

static void passive_side_disconnects(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	expect_one_disconnect(test, p->b, p->a);
}

static void both_sides_disconnect_at_once(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->a->cm->id), 0);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->b->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->b->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	msleep(100);
	KUNIT_EXPECT_EQ(test, ndkc_count(p->a->cm, RDMA_CM_EVENT_DISCONNECTED),
			1);
	KUNIT_EXPECT_EQ(test, ndkc_count(p->b->cm, RDMA_CM_EVENT_DISCONNECTED),
			1);
}

/* A consumer that fails moves its QP to ERR; the peer must notice. */
static void error_state_disconnects_both_sides(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	KUNIT_EXPECT_EQ(test, ndkc_set_state(p->a, IB_QPS_ERR), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->b->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
}

static void destroy_id(void *arg)
{
	ndkc_cm_destroy(arg);
}

/* svcrdma and SRP destroy the QP first. The peer is told of it. */
static void qp_destroyed_before_the_id(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(p->a), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->b->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_ASSERT_EQ(test, ndkc_bounded("rdma_destroy_id", destroy_id,
					   p->a->cm), 0);
}

/* The id goes while the connection is up; the QP goes later. */
static void id_destroyed_before_the_qp(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	KUNIT_ASSERT_EQ(test, ndkc_bounded("rdma_destroy_id", destroy_id,
					   p->b->cm), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm,
					       RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(p->b), 0);
}

static void listener_destroyed_before_its_children(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);

	KUNIT_ASSERT_EQ(test, ndkc_bounded("rdma_destroy_id", destroy_id,
					   p->listener), 0);
	ping(test, p->a, p->b);
	expect_one_disconnect(test, p->a, p->b);
}

/* Milliseconds that unanswered requests outlive their listener. */
#define ORPHAN_MS 3000

/*
 * Answers three requests whose listener has gone. Returns false, and has judged
 * nothing, if that has taken longer than requests without a listener last.
 */
static bool answers_orphans(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 8);
	u16 port = ndkc_port(listener);
	int accepted, rejected, dropped, i;
	struct ndkc_cm *child[3];
	struct ndkc_ep *a[3], *b;
	ktime_t begin;

	for (i = 0; i < ARRAY_SIZE(a); i++) {
		a[i] = ndkc_active(test, port, NULL);
		KUNIT_ASSERT_EQ(test, ndkc_connect(a[i], NULL, 0), 0);
		child[i] = ndkc_take_child(listener);
		KUNIT_ASSERT_NOT_NULL(test, child[i]);
	}
	b = ndkc_ep(test, child[2], NULL);
	begin = ktime_get();
	KUNIT_ASSERT_EQ(test, ndkc_bounded("rdma_destroy_id", destroy_id,
					   listener), 0);
	/* One is accepted, one rejected, one dropped. */
	accepted = ndkc_accept(b, NULL, 0);
	rejected = rdma_reject(child[0]->id, NULL, 0, 0);
	dropped = ndkc_bounded("rdma_destroy_id", destroy_id, child[1]);
	KUNIT_ASSERT_EQ(test, dropped, 0);
	if (ktime_ms_delta(ktime_get(), begin) >= ORPHAN_MS)
		return false;
	KUNIT_EXPECT_EQ(test, accepted, 0);
	KUNIT_EXPECT_EQ(test, rejected, 0);
	KUNIT_EXPECT_NOT_NULL(test,
			      ndkc_await(a[0]->cm, RDMA_CM_EVENT_REJECTED));
	KUNIT_EXPECT_NOT_NULL(test,
			      ndkc_await(a[1]->cm, RDMA_CM_EVENT_REJECTED));
	KUNIT_EXPECT_NOT_NULL(test,
			      ndkc_await(a[2]->cm, RDMA_CM_EVENT_ESTABLISHED));
	return true;
}

/* A machine that stands still for so long gets another try. */
static void listener_destroyed_while_requests_wait(struct kunit *test)
{
	int tries = 0;

	while (!answers_orphans(test))
		KUNIT_ASSERT_LT(test, ++tries, 20);
}

static void id_destroyed_instead_of_accepted(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_cm *child;

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	KUNIT_ASSERT_EQ(test, ndkc_bounded("rdma_destroy_id", destroy_id,
					   child), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED));
}

static int refuse_hook(struct ndkc_cm *cm, struct rdma_cm_event *event)
{
	return -EPERM;
}

/* rdma_cm destroys the id of a handler that returns an error. */
static void handler_refuses_the_request(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);

	listener->hook = refuse_hook;
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED));
}

/* The peer gives up between request and accept. */
static void accept_after_the_peer_has_gone(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_cm *child;
	struct ndkc_ep *b;
	int ret;

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	b = ndkc_ep(test, child, NULL);
	/*
	 * The active id cannot be destroyed while it connects (iw_cm waits),
	 * but its QP can be moved to ERR.
	 */
	KUNIT_EXPECT_EQ(test, ndkc_set_state(a, IB_QPS_ERR), 0);
	ret = ndkc_accept(b, NULL, 0);
	if (ret) {
		KUNIT_EXPECT_EQ(test, ret, -ECONNABORTED);
		return;
	}
	/* Accepted: then ESTABLISHED must come, and DISCONNECTED after it. */
	KUNIT_EXPECT_NOT_NULL(test,
			      ndkc_await(b->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_EXPECT_NOT_NULL(test,
			      ndkc_await(b->cm, RDMA_CM_EVENT_DISCONNECTED));
}

/* NFS server, SMB server: one listener for all addresses. */
static void wildcard_listener_is_reached(struct kunit *test)
{
	struct sockaddr_storage any = {};
	struct ndkc_cm *listener = ndkc_cm(test);
	struct ndkc_cm *child;
	struct ndkc_ep *a, *b;

	any.ss_family = AF_INET;
	KUNIT_ASSERT_EQ(test, rdma_bind_addr(listener->id,
					     (struct sockaddr *)&any), 0);
	KUNIT_ASSERT_EQ(test, rdma_listen(listener->id, 4), 0);
	a = ndkc_active(test, ndkc_port(listener), NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	b = ndkc_ep(test, child, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_accept(b, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
	ping(test, a, b);
}

static struct ndkc_cm *listen_at_the_ipv6_wildcard(struct kunit *test, int afonly)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct ndkc_cm *listener = ndkc_cm(test);

	KUNIT_ASSERT_EQ(test, rdma_set_afonly(listener->id, afonly), 0);
	KUNIT_ASSERT_EQ(test, rdma_bind_addr(listener->id, (struct sockaddr *)&any), 0);
	KUNIT_ASSERT_EQ(test, rdma_listen(listener->id, 4), 0);
	return listener;
}

/* RTRS and SRP servers: one listener for both families. */
static void ipv6_wildcard_is_reached_over_ipv4(struct kunit *test)
{
	struct ndkc_cm *listener = listen_at_the_ipv6_wildcard(test, 0);
	struct sockaddr_in *src, *dst;
	struct ndkc_cm *child;
	struct ndkc_ep *a, *b;

	a = ndkc_active(test, ndkc_port(listener), NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	/* Plain IPv4 addresses, not IPv4-mapped IPv6 ones. */
	src = (struct sockaddr_in *)&child->id->route.addr.src_addr;
	dst = (struct sockaddr_in *)&child->id->route.addr.dst_addr;
	KUNIT_EXPECT_EQ(test, src->sin_family, AF_INET);
	KUNIT_EXPECT_EQ(test, ntohs(src->sin_port), ndkc_port(listener));
	KUNIT_EXPECT_EQ(test, dst->sin_family, AF_INET);
	KUNIT_EXPECT_EQ(test, ntohs(dst->sin_port), ndkc_port(a->cm));
	b = ndkc_ep(test, child, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_accept(b, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
	ping(test, a, b);
}

static void ipv6_wildcard_may_want_ipv6_only(struct kunit *test)
{
	struct ndkc_cm *listener = listen_at_the_ipv6_wildcard(test, 1);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED));
	KUNIT_EXPECT_EQ(test, listener->nr, 0);
}

static void second_listener_on_a_port_is_refused(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_cm *second = ndkc_cm(test);
	struct sockaddr_storage ss;
	int ret;

	ndkc_address(&ss, ndkc_port(listener));
	ret = rdma_bind_addr(second->id, (struct sockaddr *)&ss);
	if (!ret)
		ret = rdma_listen(second->id, 4);
	/* -EADDRNOTAVAIL at a loopback address, which rdma_cm counts as any. */
	KUNIT_EXPECT_TRUE_MSG(test, ret == -EADDRINUSE ||
			      ret == -EADDRNOTAVAIL, "%d", ret);
}

static void port_is_free_after_the_listener(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_cm *second = ndkc_cm(test);
	struct sockaddr_storage ss;

	ndkc_address(&ss, ndkc_port(listener));
	KUNIT_ASSERT_EQ(test, ndkc_bounded("rdma_destroy_id", destroy_id,
					   listener), 0);
	KUNIT_ASSERT_EQ(test, rdma_bind_addr(second->id,
					     (struct sockaddr *)&ss), 0);
	KUNIT_EXPECT_EQ(test, rdma_listen(second->id, 4), 0);
}

static int drain_hook(struct ndkc_cm *cm, struct rdma_cm_event *event)
{
	struct ndkc_ep *ep = cm->hook_arg;

	if (event->event != RDMA_CM_EVENT_DISCONNECTED)
		return 0;
	ib_drain_qp(ep->qp);
	rdma_destroy_qp(cm->id);
	ep->qp = NULL;
	complete(&ep->last_wqe);
	return 0;
}

/* NFS client, iser, isert and SMB do this on the one iw_cm workqueue. */
static void qp_drained_and_destroyed_in_the_handler(struct kunit *test)
{
	struct ndkc_pair *p = ndkc_pair(test);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *recv[4];
	int i;

	for (i = 0; i < ARRAY_SIZE(recv); i++) {
		recv[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv[i], buf, 0, 64),
				0);
	}
	p->b->cm->hook_arg = p->b;
	/* needs no barrier: events of @b come only after the disconnect */
	WRITE_ONCE(p->b->cm->hook, drain_hook);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->a->cm->id), 0);
	KUNIT_ASSERT_TRUE(test, ndkc_completes(&p->b->last_wqe, 2));
	for (i = 0; i < ARRAY_SIZE(recv); i++)
		NDKC_EXPECT_WC(test, recv[i], IB_WC_WR_FLUSH_ERR);
	/* The workqueue still works. */
	p = ndkc_pair(test);
	ping(test, p->a, p->b);
}

static void receives_are_taken_before_the_connection(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *recv[2] = { ndkc_op(test), ndkc_op(test) };
	struct ndkc_op *send[2] = { ndkc_op(test), ndkc_op(test) };
	struct ndkc_cm *child;
	struct ndkc_ep *b;

	KUNIT_EXPECT_EQ(test, ndkc_post_recv(a, recv[0], buf, 0, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	b = ndkc_ep(test, child, NULL);
	KUNIT_EXPECT_EQ(test, ndkc_post_recv(b, recv[1], buf, 64, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_accept(b, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_ASSERT_NOT_NULL(test,
			      ndkc_await(b->cm, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_EXPECT_EQ(test, ndkc_post_send(a, send[0], IB_SEND_SIGNALED, buf,
					     128, 64), 0);
	KUNIT_EXPECT_EQ(test, ndkc_post_send(b, send[1], IB_SEND_SIGNALED, buf,
					     192, 64), 0);
	NDKC_EXPECT_WC(test, recv[0], IB_WC_SUCCESS);
	NDKC_EXPECT_WC(test, recv[1], IB_WC_SUCCESS);
}

static void many_short_connections(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_cm *child;
	struct ndkc_ep *a, *b;
	int i;

	for (i = 0; i < 20; i++) {
		a = ndkc_active(test, ndkc_port(listener), NULL);
		KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
		child = ndkc_take_child(listener);
		KUNIT_ASSERT_NOT_NULL(test, child);
		b = ndkc_ep(test, child, NULL);
		KUNIT_ASSERT_EQ(test, ndkc_accept(b, NULL, 0), 0);
		KUNIT_ASSERT_NOT_NULL(test, ndkc_await(a->cm,
						       RDMA_CM_EVENT_ESTABLISHED));
		rdma_disconnect(a->cm->id);
		KUNIT_ASSERT_NOT_NULL(test, ndkc_await(b->cm,
						       RDMA_CM_EVENT_DISCONNECTED));
		KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(a), 0);
		KUNIT_ASSERT_EQ(test, ndkc_destroy_qp(b), 0);
		ndkc_bounded("rdma_destroy_id", destroy_id, a->cm);
		ndkc_bounded("rdma_destroy_id", destroy_id, b->cm);
	}
}

static int ignore_event(struct iw_cm_id *id, struct iw_cm_event *event)
{
	return 0;
}

/* The claims of an rdma_cm identifier about itself. */
struct claim {
	struct ib_qp *qp;
	struct ib_device *device;
};

/* The last step of rdma_connect(), for an identifier with these claims. */
static int connect_as(struct kunit *test, const struct claim *says, struct ndkc_ep *ep)
{
	struct rdma_cm_id *client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);
	struct iw_cm_conn_param param = { .qpn = ep->qp->qp_num };
	struct iw_cm_id *id;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, client);
	client->qp = says->qp;
	client->device = says->device;
	client->ps = RDMA_PS_TCP;
	client->route.addr.dev_addr.net = &init_net;
	id = iw_create_cm_id(ndkc_dev, ignore_event, client);
	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	id->local_addr = ep->cm->id->route.addr.src_addr;
	id->remote_addr = ep->cm->id->route.addr.dst_addr;
	ret = iw_cm_connect(id, &param);
	/* Waits for the answer, if one comes. */
	iw_destroy_cm_id(id);
	return ret;
}

static int make_ready(struct ndkc_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask, ret;

	ret = rdma_init_qp_attr(ep->cm->id, &attr, &mask);
	return ret ?: ib_modify_qp(ep->qp, &attr, mask);
}

/* With rdma_ucm a program names any number, for an identifier without a QP. */
static void only_its_own_identifier_connects_a_qp(struct kunit *test)
{
	struct ndkc_ep *a = ndkc_active(test, 1, NULL);
	struct ndkc_ep *b = ndkc_active(test, 1, NULL);
	struct claim own = { .qp = a->qp, .device = ndkc_dev };
	struct claim no_qp = { .device = ndkc_dev };
	struct claim others_qp = { .qp = b->qp, .device = ndkc_dev };
	struct claim no_device = { .qp = a->qp };

	/* The owner has not moved the QP to RTR yet. */
	KUNIT_EXPECT_EQ(test, connect_as(test, &own, a), -EINVAL);
	KUNIT_ASSERT_EQ(test, make_ready(a), 0);
	KUNIT_EXPECT_EQ(test, connect_as(test, &no_qp, a), -EINVAL);
	KUNIT_EXPECT_EQ(test, connect_as(test, &others_qp, a), -EINVAL);
	KUNIT_EXPECT_EQ(test, connect_as(test, &no_device, a), -EINVAL);
	/* The port has no listener. */
	KUNIT_EXPECT_EQ(test, connect_as(test, &own, a), 0);
}

/* Returns true if iw_cm finds the queue pair by its number. */
static bool is_found(struct ndkc_ep *ep)
{
	struct ib_qp *qp = ndkc_dev->ops.iw_get_qp(ndkc_dev, ep->qp->qp_num);

	if (qp)
		ndkc_dev->ops.iw_rem_ref(qp);
	return qp;
}

struct look {
	struct work_struct work;
	struct ndkc_ep *ep;
	bool found;
};

static void look_up(struct work_struct *work)
{
	struct look *look = container_of(work, struct look, work);

	look->found = is_found(look->ep);
}

/* The same in another task. */
static bool is_found_elsewhere(struct ndkc_ep *ep)
{
	struct look look = { .ep = ep };

	INIT_WORK_ONSTACK(&look.work, look_up);
	schedule_work(&look.work);
	flush_work(&look.work);
	destroy_work_on_stack(&look.work);
	return look.found;
}

/* iw_cm holds the QP while it asks the port mapper: a destroy waits as long. */
static void only_a_qp_that_waits_to_be_connected_is_found(struct kunit *test)
{
	struct ndkc_ep *a = ndkc_active(test, 1, NULL);
	struct ndkc_pair *p = ndkc_pair(test);

	KUNIT_EXPECT_FALSE(test, is_found(a));
	KUNIT_ASSERT_EQ(test, make_ready(a), 0);
	KUNIT_EXPECT_TRUE(test, is_found(a));
	KUNIT_EXPECT_FALSE(test, is_found_elsewhere(a));
	KUNIT_EXPECT_FALSE(test, is_found(p->a));
	KUNIT_EXPECT_FALSE(test, is_found(p->b));
	KUNIT_ASSERT_EQ(test, ndkc_set_state(a, IB_QPS_ERR), 0);
	KUNIT_EXPECT_FALSE(test, is_found(a));
}

static void a_stranger_does_not_disturb_the_owner(struct kunit *test)
{
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	struct claim no_qp = { .device = ndkc_dev };

	KUNIT_EXPECT_EQ(test, connect_as(test, &no_qp, a), -EINVAL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, connect_as(test, &no_qp, a), -EINVAL);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_take_child(listener));
	KUNIT_EXPECT_EQ(test, listener->nr, 1);
}

struct stranger {
	struct rdma_cm_id client;
	struct iw_cm_id *request;
	struct completion asked;
};

static int keep_request(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct stranger *s = container_of(id->context, struct stranger, client);

	if (event->event == IW_CM_EVENT_CONNECT_REQUEST) {
		s->request = id;
		complete(&s->asked);
	}
	return 0;
}

static void stop_listening(void *id)
{
	iw_destroy_cm_id(id);
}

/* A stranger that listens on iw_cm at the address of @bound. */
static struct stranger *stranger_at(struct kunit *test, struct ndkc_cm *bound)
{
	struct stranger *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct iw_cm_id *id;

	KUNIT_ASSERT_NOT_NULL(test, s);
	init_completion(&s->asked);
	s->client.ps = RDMA_PS_TCP;
	s->client.route.addr.dev_addr.net = &init_net;
	id = iw_create_cm_id(ndkc_dev, keep_request, &s->client);
	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_listening, id), 0);
	ndkc_address(&id->local_addr, ndkc_port(bound));
	KUNIT_ASSERT_EQ(test, iw_cm_listen(id, 4), 0);
	return s;
}

/* The last step of rdma_accept() with the QP of @ep; @bound has the address. */
static int accept_as(struct kunit *test, struct stranger *s, struct ndkc_cm *bound,
		     const struct claim *says, struct ndkc_ep *ep)
{
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(bound), NULL);
	struct iw_cm_conn_param param = { .qpn = ep->qp->qp_num };
	int ret;

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_ASSERT_TRUE(test, ndkc_completes(&s->asked, 1));
	s->client.qp = says->qp;
	s->client.device = says->device;
	ret = iw_cm_accept(s->request, &param);
	if (ret)
		iw_cm_reject(s->request, NULL, 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a->cm, ret ? RDMA_CM_EVENT_REJECTED :
							    RDMA_CM_EVENT_ESTABLISHED));
	iw_destroy_cm_id(s->request);
	return ret;
}

static void only_its_own_identifier_accepts_with_a_qp(struct kunit *test)
{
	struct ndkc_cm *bound = ndkc_cm(test);
	struct ndkc_ep *b = ndkc_active(test, 1, NULL), *c = ndkc_active(test, 1, NULL);
	struct claim own = { .qp = b->qp, .device = ndkc_dev };
	struct claim no_qp = { .device = ndkc_dev };
	struct claim others_qp = { .qp = c->qp, .device = ndkc_dev };
	struct claim no_device = { .qp = b->qp };
	struct stranger *s;

	KUNIT_ASSERT_EQ(test, ndkc_bind(bound), 0);
	s = stranger_at(test, bound);
	/* The owner has not moved the QP to RTR yet. */
	KUNIT_EXPECT_EQ(test, accept_as(test, s, bound, &own, b), -EINVAL);
	KUNIT_ASSERT_EQ(test, make_ready(b), 0);
	KUNIT_EXPECT_EQ(test, accept_as(test, s, bound, &no_qp, b), -EINVAL);
	KUNIT_EXPECT_EQ(test, accept_as(test, s, bound, &others_qp, b), -EINVAL);
	KUNIT_EXPECT_EQ(test, accept_as(test, s, bound, &no_device, b), -EINVAL);
	KUNIT_EXPECT_EQ(test, accept_as(test, s, bound, &own, b), 0);
}

static struct kunit_case cm_cases[] = {
	KUNIT_CASE(connect_and_exchange),
	KUNIT_CASE(loopback_without_a_source_resolves),
	KUNIT_CASE_PARAM(private_data_arrives_both_ways,
			 private_data_gen_params),
	KUNIT_CASE(read_depths_are_negotiated),
	KUNIT_CASE(accept_inside_the_handler),
	KUNIT_CASE(accept_may_take_its_time),
	KUNIT_CASE(reject_carries_the_consumers_data),
	KUNIT_CASE(connect_to_nobody_is_refused),
	KUNIT_CASE(foreign_address_fails_in_bounded_time),
	KUNIT_CASE(neighbour_of_another_host_is_unreachable),
	KUNIT_CASE(sixteen_connect_at_once),
	KUNIT_CASE(more_than_the_backlog_connect_at_once),
	KUNIT_CASE(active_side_disconnects),
	KUNIT_CASE(passive_side_disconnects),
	KUNIT_CASE(both_sides_disconnect_at_once),
	KUNIT_CASE(error_state_disconnects_both_sides),
	KUNIT_CASE(qp_destroyed_before_the_id),
	KUNIT_CASE(id_destroyed_before_the_qp),
	KUNIT_CASE(listener_destroyed_before_its_children),
	KUNIT_CASE(listener_destroyed_while_requests_wait),
	KUNIT_CASE(id_destroyed_instead_of_accepted),
	KUNIT_CASE(handler_refuses_the_request),
	KUNIT_CASE(accept_after_the_peer_has_gone),
	KUNIT_CASE(wildcard_listener_is_reached),
	KUNIT_CASE(ipv6_wildcard_is_reached_over_ipv4),
	KUNIT_CASE(ipv6_wildcard_may_want_ipv6_only),
	KUNIT_CASE(second_listener_on_a_port_is_refused),
	KUNIT_CASE(port_is_free_after_the_listener),
	KUNIT_CASE(qp_drained_and_destroyed_in_the_handler),
	KUNIT_CASE(receives_are_taken_before_the_connection),
	KUNIT_CASE(many_short_connections),
	KUNIT_CASE(only_its_own_identifier_connects_a_qp),
	KUNIT_CASE(only_its_own_identifier_accepts_with_a_qp),
	KUNIT_CASE(only_a_qp_that_waits_to_be_connected_is_found),
	KUNIT_CASE(a_stranger_does_not_disturb_the_owner),
	{}
};

static struct kunit_suite cm_suite = {
	.name = "ndk_consumer_cm",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = cm_cases,
};

kunit_test_suite(cm_suite);
