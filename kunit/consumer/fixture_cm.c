// SPDX-License-Identifier: GPL-2.0
/*
 * Fixture of the consumer tests: ids, events, connected pairs.
 *
 * CM handlers only take notes and wake the test case, which then acts in its
 * own thread; a test sets a hook to act inside the handler.
 */
#include <linux/slab.h>

#include "fixture.h"

static void note_private_data(struct ndkc_event *e, struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	const void *data = event->param.conn.private_data;
	u8 len = event->param.conn.private_data_len;

	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		data = rdma_consumer_reject_data(id, event, &len);
		e->reject_data = data;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_ESTABLISHED:
		break;
	default:
		return;
	}
	if (!data)
		return;
	memcpy(e->priv, data, len);
	e->priv_len = len;
}

static void note_event(struct ndkc_cm *cm, struct rdma_cm_id *id,
		       struct rdma_cm_event *event)
{
	struct ndkc_event *e;

	spin_lock(&cm->lock);
	if (cm->nr < NDKC_NR_EVENTS) {
		e = &cm->ev[cm->nr];
		e->type = event->event;
		e->status = event->status;
		e->initiator_depth = event->param.conn.initiator_depth;
		e->responder_resources = event->param.conn.responder_resources;
		note_private_data(e, id, event);
	}
	cm->nr++;
	spin_unlock(&cm->lock);
	wake_up_all(&cm->wait);
}

static struct ndkc_cm *new_cm(struct ndkc_env *env)
{
	struct ndkc_cm *cm = kzalloc_obj(*cm);

	if (!cm)
		return NULL;
	cm->env = env;
	INIT_LIST_HEAD(&cm->pending);
	INIT_LIST_HEAD(&cm->pending_entry);
	spin_lock_init(&cm->lock);
	init_waitqueue_head(&cm->wait);
	return cm;
}

static void add_cm(struct ndkc_cm *cm)
{
	spin_lock(&cm->env->lock);
	list_add_tail(&cm->entry, &cm->env->cms);
	spin_unlock(&cm->env->lock);
}

static int new_child(struct ndkc_cm *listener, struct rdma_cm_id *id,
		     struct rdma_cm_event *event)
{
	struct ndkc_cm *child = new_cm(listener->env);

	if (!child)
		return -ENOMEM;
	child->id = id;
	child->child = true;
	child->hook_arg = listener->hook_arg;
	note_event(child, id, event);
	if (listener->hook && listener->hook(child, event)) {
		kfree(child);
		return -ECONNABORTED;
	}
	id->context = child;
	add_cm(child);

	spin_lock(&listener->lock);
	list_add_tail(&child->pending_entry, &listener->pending);
	listener->nr++;
	spin_unlock(&listener->lock);
	wake_up_all(&listener->wait);
	return 0;
}

static int cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ndkc_cm *cm = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return new_child(cm, id, event);
	note_event(cm, id, event);
	return cm->hook ? cm->hook(cm, event) : 0;
}

struct ndkc_cm *ndkc_cm(struct kunit *test)
{
	return ndkc_cm_in(test, &init_net);
}

/**
 * ndkc_cm_in - an id of a network namespace
 * @test: the case
 * @net: the namespace
 */
struct ndkc_cm *ndkc_cm_in(struct kunit *test, struct net *net)
{
	struct ndkc_cm *cm = new_cm(test->priv);
	struct rdma_cm_id *id;

	KUNIT_ASSERT_NOT_NULL(test, cm);
	id = rdma_create_id(net, cm_handler, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		kfree(cm);
		KUNIT_FAIL_AND_ABORT(test, "rdma_create_id");
	}
	cm->id = id;
	add_cm(cm);
	return cm;
}

/**
 * ndkc_cm_destroy - destroy an id ahead of the end of the case
 * @cm: the id; its notes stay
 *
 * May block: a test of that calls it through ndkc_bounded().
 */
void ndkc_cm_destroy(struct ndkc_cm *cm)
{
	struct rdma_cm_id *id = cm->id;

	if (id)
		rdma_destroy_id(id);
	cm->id = NULL;
}

/* The address of an end, which is that under test unless the environment has @addr. */
static void end_address(struct sockaddr_storage *ss, const char *addr, u16 port)
{
	ndkc_address(ss, port);
	if (addr)
		((struct sockaddr_in *)ss)->sin_addr.s_addr = in_aton(addr);
}

int ndkc_bind(struct ndkc_cm *cm)
{
	struct sockaddr_storage ss;

	end_address(&ss, cm->env->passive, 0);
	return rdma_bind_addr(cm->id, (struct sockaddr *)&ss);
}

u16 ndkc_port(struct ndkc_cm *cm)
{
	struct sockaddr_in *sin;

	sin = (struct sockaddr_in *)&cm->id->route.addr.src_addr;
	return ntohs(sin->sin_port);
}

/**
 * ndkc_listener - listen on the address, on a port of the kernel's choice
 * @test: the case
 * @backlog: as for rdma_listen()
 */
struct ndkc_cm *ndkc_listener(struct kunit *test, int backlog)
{
	struct ndkc_cm *cm;
	int ret = 0;
	int try;

	/* rdma_cm does not know which ports TCP has in use: try again. */
	for (try = 0; try < 5; try++) {
		cm = ndkc_cm(test);
		ret = ndkc_bind(cm);
		KUNIT_ASSERT_EQ(test, ret, 0);
		ret = rdma_listen(cm->id, backlog);
		if (ret != -EADDRINUSE)
			break;
		ndkc_cm_destroy(cm);
	}
	KUNIT_ASSERT_EQ(test, ret, 0);
	return cm;
}

/**
 * ndkc_resolve - address and route, from the active end's address to the passive one's
 * @cm: the id
 * @port: TCP port of the peer
 */
int ndkc_resolve(struct ndkc_cm *cm, u16 port)
{
	unsigned int ms = ndkc_timeout_ms();
	struct sockaddr_storage src, dst;
	int ret;

	end_address(&src, cm->env->active, 0);
	end_address(&dst, cm->env->passive, port);
	ret = rdma_resolve_addr(cm->id, (struct sockaddr *)&src,
				(struct sockaddr *)&dst, ms);
	if (ret)
		return ret;
	if (!ndkc_await(cm, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -EHOSTUNREACH;
	ret = rdma_resolve_route(cm->id, ms);
	if (ret)
		return ret;
	if (!ndkc_await(cm, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return -EHOSTUNREACH;
	return 0;
}

static struct ndkc_cm *pop_child(struct ndkc_cm *listener)
{
	struct ndkc_cm *child;

	spin_lock(&listener->lock);
	child = list_first_entry_or_null(&listener->pending, struct ndkc_cm,
					 pending_entry);
	if (child)
		list_del_init(&child->pending_entry);
	spin_unlock(&listener->lock);
	return child;
}

/**
 * ndkc_take_child - wait for a connection request
 * @listener: where it comes in
 *
 * Return: the new id, neither accepted nor rejected, or NULL.
 */
struct ndkc_cm *ndkc_take_child(struct ndkc_cm *listener)
{
	struct ndkc_cm *child = NULL;

	wait_event_timeout(listener->wait, (child = pop_child(listener)),
			   ndkc_timeout());
	ndkc_in_time(child);
	return child;
}

static bool is_final(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return true;
	default:
		return false;
	}
}

static const struct ndkc_event *find_event(struct ndkc_cm *cm,
					   enum rdma_cm_event_type type,
					   bool *over)
{
	const struct ndkc_event *found = NULL;
	unsigned int i;

	spin_lock(&cm->lock);
	for (i = 0; i < min(cm->nr, NDKC_NR_EVENTS) && !found; i++) {
		if (cm->ev[i].type == type)
			found = &cm->ev[i];
		else if (is_final(cm->ev[i].type))
			*over = true;
	}
	spin_unlock(&cm->lock);
	return found;
}

/**
 * ndkc_await - wait for an event
 * @cm: the id
 * @type: the event
 *
 * Return: the first event of this type, or NULL after the limit or after an
 * event that excludes it.
 */
const struct ndkc_event *ndkc_await(struct ndkc_cm *cm,
				    enum rdma_cm_event_type type)
{
	const struct ndkc_event *e = NULL;
	bool over = false;

	wait_event_timeout(cm->wait, (e = find_event(cm, type, &over)) || over,
			   ndkc_timeout());
	ndkc_in_time(e || over);
	return e;
}

/**
 * ndkc_wait_index - wait for an event of any type
 * @cm: the id
 * @n: number of the event, from 0, below NDKC_NR_EVENTS
 */
const struct ndkc_event *ndkc_wait_index(struct ndkc_cm *cm, unsigned int n)
{
	wait_event_timeout(cm->wait, READ_ONCE(cm->nr) > n, ndkc_timeout());
	return ndkc_in_time(READ_ONCE(cm->nr) > n) ? &cm->ev[n] : NULL;
}

unsigned int ndkc_count(struct ndkc_cm *cm, enum rdma_cm_event_type type)
{
	unsigned int i, n = 0;

	spin_lock(&cm->lock);
	for (i = 0; i < min(cm->nr, NDKC_NR_EVENTS); i++)
		n += cm->ev[i].type == type;
	spin_unlock(&cm->lock);
	return n;
}

static void qp_event(struct ib_event *event, void *context)
{
	struct ndkc_ep *ep = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		complete(&ep->last_wqe);
	else
		atomic_inc(&ep->fatal);
}

/**
 * ndkc_ep_prepare - PD and CQs of an end whose id comes later
 * @test: the case
 * @attr: how, NULL for the defaults
 */
struct ndkc_ep *ndkc_ep_prepare(struct kunit *test,
				const struct ndkc_ep_attr *attr)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_ep *ep = kzalloc_obj(*ep);

	KUNIT_ASSERT_NOT_NULL(test, ep);
	ep->env = env;
	if (attr)
		ep->attr = *attr;
	attr = &ep->attr;
	init_completion(&ep->last_wqe);
	list_add_tail(&ep->entry, &env->eps);

	ep->pd = attr->pd ?: ndkc_pd(test);
	ep->scq = attr->scq ?: ndkc_cq(test, (attr->send_wr ?: 64) +
				       4 * attr->rdma_ctxs + 8,
				       attr->comp_vector, attr->poll);
	ep->rcq = attr->rcq ?: ndkc_cq(test, (attr->recv_wr ?: 64) + 8,
				       attr->comp_vector, attr->poll);
	return ep;
}

/**
 * ndkc_ep_attach - make the QP of a prepared end
 * @ep: the end
 * @cm: for the end
 * @id: its id, which @cm may not carry yet
 *
 * Asserts nothing, so a CM handler may call it.
 */
int ndkc_ep_attach(struct ndkc_ep *ep, struct ndkc_cm *cm,
		   struct rdma_cm_id *id)
{
	const struct ndkc_ep_attr *attr = &ep->attr;
	struct ib_qp_init_attr qp = {
		.event_handler = qp_event,
		.qp_context = ep,
		.send_cq = ep->scq->cq,
		.recv_cq = ep->rcq->cq,
		.srq = attr->srq,
		.sq_sig_type = attr->sig_all ? IB_SIGNAL_ALL_WR :
					       IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = attr->send_wr ?: 64,
			.max_recv_wr = attr->srq ? 0 : attr->recv_wr ?: 64,
			.max_send_sge = attr->send_sge ?: 4,
			.max_recv_sge = attr->srq ? 0 : attr->recv_sge ?: 4,
			.max_inline_data = attr->inline_data,
			.max_rdma_ctxs = attr->rdma_ctxs,
		},
	};
	int ret;

	ep->cm = cm;
	ret = rdma_create_qp(id, ep->pd, &qp);
	if (!ret)
		ep->qp = id->qp;
	return ret;
}

/**
 * ndkc_ep - make PD, CQs and QP for an id that has a device
 * @test: the case
 * @cm: the id
 * @attr: how, NULL for the defaults
 */
struct ndkc_ep *ndkc_ep(struct kunit *test, struct ndkc_cm *cm,
			const struct ndkc_ep_attr *attr)
{
	struct ndkc_env *env = test->priv;
	struct ndkc_ep *ep;

	env->dev = cm->id->device;
	ep = ndkc_ep_prepare(test, attr);
	KUNIT_ASSERT_EQ_MSG(test, ndkc_ep_attach(ep, cm, cm->id), 0,
			    "rdma_create_qp");
	return ep;
}

/**
 * ndkc_active - an end that is ready to connect
 * @test: the case
 * @port: TCP port of the listener
 * @attr: see ndkc_ep()
 */
struct ndkc_ep *ndkc_active(struct kunit *test, u16 port,
			    const struct ndkc_ep_attr *attr)
{
	struct ndkc_cm *cm = ndkc_cm(test);

	KUNIT_ASSERT_EQ(test, ndkc_resolve(cm, port), 0);
	return ndkc_ep(test, cm, attr);
}

static struct rdma_conn_param conn_param(const void *priv, u8 len)
{
	u8 depth = min_t(u32, ndkc_dev->attrs.max_qp_rd_atom, 16);

	return (struct rdma_conn_param) {
		.private_data = priv,
		.private_data_len = len,
		.responder_resources = depth,
		.initiator_depth = depth,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

int ndkc_connect(struct ndkc_ep *ep, const void *priv, u8 len)
{
	struct rdma_conn_param param = conn_param(priv, len);

	return rdma_connect(ep->cm->id, &param);
}

int ndkc_accept(struct ndkc_ep *ep, const void *priv, u8 len)
{
	struct rdma_conn_param param = conn_param(priv, len);
	int ret;

	rdma_lock_handler(ep->cm->id);
	ret = rdma_accept(ep->cm->id, &param);
	rdma_unlock_handler(ep->cm->id);
	return ret;
}

/**
 * ndkc_pair_attr - a connection with both ends in this kernel
 * @test: the case
 * @a: the active end, NULL for the defaults
 * @b: the passive end, NULL for the defaults
 */
struct ndkc_pair *ndkc_pair_attr(struct kunit *test,
				 const struct ndkc_ep_attr *a,
				 const struct ndkc_ep_attr *b)
{
	struct ndkc_pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	struct ndkc_cm *child;

	KUNIT_ASSERT_NOT_NULL(test, pair);
	pair->listener = ndkc_listener(test, 4);
	pair->a = ndkc_active(test, ndkc_port(pair->listener), a);
	KUNIT_ASSERT_EQ(test, ndkc_connect(pair->a, NULL, 0), 0);
	child = ndkc_take_child(pair->listener);
	KUNIT_ASSERT_NOT_NULL_MSG(test, child, "no connection request");
	pair->b = ndkc_ep(test, child, b);
	KUNIT_ASSERT_EQ(test, ndkc_accept(pair->b, NULL, 0), 0);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(pair->a->cm,
					       RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(pair->b->cm,
					       RDMA_CM_EVENT_ESTABLISHED));
	return pair;
}

struct ndkc_pair *ndkc_pair(struct kunit *test)
{
	return ndkc_pair_attr(test, NULL, NULL);
}

static void drain_both(void *arg)
{
	ib_drain_qp(arg);
}

static void drain_send(void *arg)
{
	ib_drain_sq(arg);
}

static void drain_recv(void *arg)
{
	ib_drain_rq(arg);
}

int ndkc_drain(struct ndkc_ep *ep)
{
	return ndkc_bounded("ib_drain_qp", drain_both, ep->qp);
}

int ndkc_drain_sq(struct ndkc_ep *ep)
{
	return ndkc_bounded("ib_drain_sq", drain_send, ep->qp);
}

int ndkc_drain_rq(struct ndkc_ep *ep)
{
	return ndkc_bounded("ib_drain_rq", drain_recv, ep->qp);
}

static void destroy_qp(void *arg)
{
	struct ndkc_ep *ep = arg;

	if (ep->cm->id)
		rdma_destroy_qp(ep->cm->id);
	else
		ib_destroy_qp(ep->qp);
}

/**
 * ndkc_destroy_qp - destroy a QP ahead of the end of the case
 * @ep: its end; the id may be gone already
 */
int ndkc_destroy_qp(struct ndkc_ep *ep)
{
	int ret = ndkc_bounded("ib_destroy_qp", destroy_qp, ep);

	ep->qp = NULL;
	return ret;
}

int ndkc_set_state(struct ndkc_ep *ep, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
}
