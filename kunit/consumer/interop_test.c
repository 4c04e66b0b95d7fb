// SPDX-License-Identifier: GPL-2.0
/*
 * Two devices, of which the other may be of another provider: what both agree on,
 * each way round. The module parameter `peer` names the other device's address.
 * For another provider the routes have to lead from one to the other and not through
 * the loopback device (selftests/interop.sh). Without a peer these cases are skipped.
 */
#include "fixture.h"

#define LARGE		(1024 * 1024)
#define REGION		(256 * 1024)
#define READS		24
/* Of no region. */
#define WRONG_KEY	0x7fffff01

struct way {
	const char *name;
	bool from_peer;
};

static const struct way ways[] = {
	{ "to the peer", false },
	{ "from the peer", true },
};

KUNIT_ARRAY_PARAM_DESC(way, ways, name);

/* Says which end of the next connection is the peer's, or skips the case. */
static void take_way(struct kunit *test)
{
	const struct way *way = test->param_value;
	struct ndkc_env *env = test->priv;

	if (!ndkc_peer())
		kunit_skip(test, "no peer");
	if (way->from_peer)
		env->active = ndkc_peer();
	else
		env->passive = ndkc_peer();
}

static bool is_siw(const struct ndkc_ep *ep)
{
	return ep->qp->device->ops.driver_id == RDMA_DRIVER_SIW;
}

static struct ndkc_pair *joined(struct kunit *test)
{
	const struct way *way = test->param_value;
	struct ndkc_pair *p;

	take_way(test);
	p = ndkc_pair(test);
	KUNIT_ASSERT_TRUE(test, ndkc_is_peer((way->from_peer ? p->a : p->b)->qp->device));
	return p;
}

/* Expect that a write of the region's key from its peer changes nothing. */
static void expect_invalid(struct kunit *test, struct ndkc_ep *from, struct ndkc_mr *mr,
			   const struct ndkc_buf *region, u8 seed)
{
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *write = ndkc_op(test);
	struct ndkc_cm *cm = from->cm;

	KUNIT_ASSERT_EQ(test, ndkc_post_rdma(from, write, IB_WR_RDMA_WRITE, src, 0, 64,
					     mr->mr->iova, mr->mr->rkey), 0);
	/* The refusal ends the connection. */
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_TRUE(test, ndkc_matches(region, 0, region->len, seed, 0));
}

/* A message of @len bytes from @from, received by @to. */
static void send_one(struct kunit *test, struct ndkc_ep *from, struct ndkc_ep *to,
		     int flags, u32 len)
{
	struct ndkc_buf *src = ndkc_buf(test, LARGE);
	struct ndkc_buf *dst = ndkc_buf(test, LARGE);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	ndkc_fill(src, 3);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(to, recv, dst, 0, len), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send(from, send, flags | IB_SEND_SIGNALED, src, 0, len), 0);
	NDKC_ASSERT_WC(test, recv, IB_WC_SUCCESS);
	NDKC_ASSERT_WC(test, send, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)recv->wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, len);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, len, 3, 0));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va + len, LARGE - len, 0));
}

static void messages_of_all_sizes_arrive(struct kunit *test)
{
	static const u32 sizes[] = { 0, 1, 3, 4, 1000, 1460, 4096, 65535, 65536, 100001, LARGE };
	struct ndkc_pair *p = joined(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		/* The initiator's is the first. */
		send_one(test, p->a, p->b, 0, sizes[i]);
		send_one(test, p->b, p->a, IB_SEND_SOLICITED, sizes[i]);
	}
}

/* As many as the queue holds, both ways at once. */
static void many_messages_arrive_in_order(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);
	struct ndkc_ep *ends[] = { p->a, p->b };
	struct ndkc_buf *src = ndkc_buf(test, 64 * 1024);
	struct ndkc_buf *dst[] = { ndkc_buf(test, 64 * 1024), ndkc_buf(test, 64 * 1024) };
	struct ndkc_op *sends[2][32], *recvs[2][32];
	int i, end;

	ndkc_fill(src, 4);
	send_one(test, p->a, p->b, 0, 8);
	for (end = 0; end < 2; end++) {
		for (i = 0; i < 32; i++) {
			recvs[end][i] = ndkc_op(test);
			KUNIT_ASSERT_EQ(test, ndkc_post_recv(ends[end], recvs[end][i], dst[end],
							     i * 2048, 2048), 0);
		}
	}
	for (i = 0; i < 32; i++) {
		for (end = 0; end < 2; end++) {
			sends[end][i] = ndkc_op(test);
			KUNIT_ASSERT_EQ(test, ndkc_post_send(ends[end], sends[end][i],
							     IB_SEND_SIGNALED, src, i * 2048,
							     1000 + i), 0);
		}
	}
	for (i = 0; i < 32; i++) {
		for (end = 0; end < 2; end++) {
			NDKC_ASSERT_WC(test, sends[end][i], IB_WC_SUCCESS);
			NDKC_ASSERT_WC(test, recvs[end][i], IB_WC_SUCCESS);
			KUNIT_EXPECT_EQ(test, recvs[end][i]->wc.byte_len, 1000 + i);
			KUNIT_EXPECT_TRUE(test, ndkc_matches(dst[end], i * 2048, 1000 + i, 4,
							     i * 2048));
		}
	}
}

/* The region of @to's, and what a send of @from says of it. */
static void invalidates(struct kunit *test, struct ndkc_ep *from, struct ndkc_ep *to)
{
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *msg = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, to, buf, NDKC_REMOTE_ALL);
	struct ib_sge sge = ndkc_sge(from, msg, 0, 200);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	ndkc_fill(buf, 8);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(to, recv, msg, 1024, 256), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_op(from, send, IB_WR_SEND_WITH_INV,
						IB_SEND_SIGNALED | IB_SEND_SOLICITED, &sge, 1,
						mr->mr->rkey), 0);
	NDKC_ASSERT_WC(test, recv, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, recv->wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, recv->wc.ex.invalidate_rkey, mr->mr->rkey);
	KUNIT_EXPECT_EQ(test, recv->wc.byte_len, 200);
	NDKC_ASSERT_WC(test, send, IB_WC_SUCCESS);
	expect_invalid(test, from, mr, buf, 8);
}

static void initiator_invalidates_at_its_peer(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	invalidates(test, p->a, p->b);
}

static void responder_invalidates_at_its_peer(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	send_one(test, p->a, p->b, 0, 8);
	invalidates(test, p->b, p->a);
}

static void writes(struct kunit *test, struct ndkc_ep *from, struct ndkc_ep *to)
{
	static const u32 sizes[] = { 0, 1, 777, 4096, 65536, REGION - 5 };
	struct ndkc_buf *src = ndkc_buf(test, REGION);
	struct ndkc_buf *dst = ndkc_buf(test, REGION);
	struct ndkc_mr *mr = ndkc_registered(test, to, dst, NDKC_REMOTE_ALL);
	int i;

	ndkc_fill(src, 5);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ndkc_op *write = ndkc_op(test);

		memset(dst->va, 0, REGION);
		KUNIT_ASSERT_EQ(test, ndkc_post_rdma(from, write, IB_WR_RDMA_WRITE, src, 1,
						     sizes[i], mr->mr->iova + 3, mr->mr->rkey), 0);
		/* It is there before a later message. */
		send_one(test, from, to, 0, 16);
		NDKC_ASSERT_WC(test, write, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 3, sizes[i], 5, 1));
		KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va, 3, 0));
		KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va + 3 + sizes[i],
						       REGION - 3 - sizes[i], 0));
	}
}

static void writes_place_their_bytes(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	writes(test, p->a, p->b);
	writes(test, p->b, p->a);
}

static void reads(struct kunit *test, struct ndkc_ep *from, struct ndkc_ep *to)
{
	static const u32 sizes[] = { 1, 777, 4096, 65536, REGION - 5 };
	struct ndkc_buf *src = ndkc_buf(test, REGION);
	struct ndkc_buf *dst = ndkc_buf(test, REGION);
	struct ndkc_mr *mr = ndkc_registered(test, to, src, NDKC_REMOTE_ALL);
	/* For iWARP a read's buffer is a region that the peer may write to. */
	struct ndkc_mr *sink = ndkc_registered(test, from, dst, NDKC_REMOTE_ALL);
	int i;

	ndkc_fill(src, 6);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ndkc_op *read = ndkc_op(test);
		struct ib_sge sge = {
			.addr = sink->mr->iova + 1,
			.length = sizes[i],
			.lkey = sink->mr->lkey,
		};

		memset(dst->va, 0, REGION);
		KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(from, read, IB_WR_RDMA_READ,
							 IB_SEND_SIGNALED, &sge, 1,
							 mr->mr->iova + 3, mr->mr->rkey, 0), 0);
		NDKC_ASSERT_WC(test, read, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, (int)read->wc.opcode, IB_WC_RDMA_READ);
		KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 1, sizes[i], 6, 3));
		KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va + 1 + sizes[i],
						       REGION - 1 - sizes[i], 0));
	}
}

static void reads_fetch_their_bytes(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	reads(test, p->a, p->b);
	reads(test, p->b, p->a);
}

/* More than are served at once, which is 16 here (conn_param()). */
static void many_reads_take_turns(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);
	struct ndkc_buf *src = ndkc_buf(test, REGION);
	struct ndkc_buf *dst = ndkc_buf(test, REGION);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, src, NDKC_REMOTE_ALL);
	struct ndkc_mr *sink = ndkc_registered(test, p->a, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *reads[READS];
	int i;

	ndkc_fill(src, 7);
	for (i = 0; i < READS; i++) {
		struct ib_sge sge = {
			.addr = sink->mr->iova + i * 8192,
			.length = 8192,
			.lkey = sink->mr->lkey,
		};

		reads[i] = ndkc_op(test);
		KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, reads[i], IB_WR_RDMA_READ,
							 IB_SEND_SIGNALED, &sge, 1,
							 mr->mr->iova + i * 8192, mr->mr->rkey,
							 0), 0);
	}
	for (i = 0; i < READS; i++)
		NDKC_ASSERT_WC(test, reads[i], IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, READS * 8192, 7, 0));
}

static void reads_and_invalidates(struct kunit *test, struct ndkc_ep *from, struct ndkc_ep *to)
{
	struct ndkc_buf *src = ndkc_buf(test, REGION);
	struct ndkc_buf *dst = ndkc_buf(test, REGION);
	struct ndkc_mr *mr = ndkc_registered(test, to, src, NDKC_REMOTE_ALL);
	struct ndkc_mr *sink = ndkc_registered(test, from, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *read = ndkc_op(test);
	struct ib_sge sge = {
		.addr = sink->mr->iova,
		.length = REGION,
		.lkey = sink->mr->lkey,
	};

	ndkc_fill(src, 9);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(from, read, IB_WR_RDMA_READ_WITH_INV,
						 IB_SEND_SIGNALED, &sge, 1, mr->mr->iova,
						 mr->mr->rkey, sink->mr->lkey), 0);
	NDKC_ASSERT_WC(test, read, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(dst, 0, REGION, 9, 0));
	expect_invalid(test, to, sink, dst, 9);
}

static void initiator_reads_and_invalidates(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	/* The responder sends nothing before the initiator has. */
	send_one(test, p->a, p->b, 0, 8);
	reads_and_invalidates(test, p->a, p->b);
}

static void responder_reads_and_invalidates(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	send_one(test, p->a, p->b, 0, 8);
	reads_and_invalidates(test, p->b, p->a);
}

/* An error at the reader. siw gives what may not be read, but not what is not there. */
static void a_read_without_a_right_fails(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);
	struct ndkc_buf *src = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_buf *dst = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_mr *mr = ndkc_registered(test, p->b, src, IB_ACCESS_LOCAL_WRITE |
					     IB_ACCESS_REMOTE_WRITE);
	struct ndkc_mr *sink = ndkc_registered(test, p->a, dst, NDKC_REMOTE_ALL);
	struct ndkc_op *read = ndkc_op(test);
	struct ib_sge sge = {
		.addr = sink->mr->iova,
		.length = 64,
		.lkey = sink->mr->lkey,
	};

	ndkc_fill(src, 2);
	KUNIT_ASSERT_EQ(test, ndkc_post_rdma_sge(p->a, read, IB_WR_RDMA_READ, IB_SEND_SIGNALED,
						 &sge, 1, mr->mr->iova,
						 is_siw(p->b) ? WRONG_KEY : mr->mr->rkey, 0), 0);
	KUNIT_EXPECT_NE(test, ndkc_wait(read), (int)IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ndkc_wait(read), 0);
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(dst->va, PAGE_SIZE, 0));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->b->cm, RDMA_CM_EVENT_DISCONNECTED));
}

/* A message with a wrong key to invalidate is not received. siw leaves the connection up. */
static void an_invalidation_without_a_right_fails(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);
	struct ndkc_buf *msg = ndkc_buf(test, PAGE_SIZE);
	struct ib_sge sge = ndkc_sge(p->a, msg, 0, 200);
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);

	KUNIT_ASSERT_EQ(test, ndkc_post_recv(p->b, recv, msg, 1024, 256), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_send_op(p->a, send, IB_WR_SEND_WITH_INV,
						IB_SEND_SIGNALED, &sge, 1, WRONG_KEY), 0);
	KUNIT_EXPECT_NE(test, ndkc_wait(recv), (int)IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ndkc_wait(recv), 0);
	KUNIT_EXPECT_GE(test, ndkc_wait(send), 0);
	if (is_siw(p->b))
		return;
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->b->cm, RDMA_CM_EVENT_DISCONNECTED));
}

/* Private data of @len bytes, both ways, and the limits of the reads. */
static void connect_with(struct kunit *test, u8 len)
{
	struct rdma_conn_param param = {
		.initiator_depth = 8, .responder_resources = 4, .private_data_len = len,
	};
	struct ndkc_cm *listener = ndkc_listener(test, 4);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(listener), NULL);
	u8 *data = kunit_kzalloc(test, 256, GFP_KERNEL);
	const struct ndkc_event *asked, *told;
	struct ndkc_cm *child;
	struct ndkc_ep *b;
	int i, ret;

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < 256; i++)
		data[i] = i + len;
	param.private_data = data;
	KUNIT_ASSERT_EQ(test, rdma_connect(a->cm->id, &param), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	asked = &child->ev[0];
	KUNIT_EXPECT_EQ(test, asked->initiator_depth, 4);
	KUNIT_EXPECT_EQ(test, asked->responder_resources, 8);
	KUNIT_ASSERT_EQ(test, asked->priv_len, len);
	KUNIT_EXPECT_MEMEQ(test, asked->priv, data, len);

	b = ndkc_ep(test, child, NULL);
	param.initiator_depth = 2;
	param.responder_resources = 6;
	rdma_lock_handler(child->id);
	ret = rdma_accept(child->id, &param);
	rdma_unlock_handler(child->id);
	KUNIT_ASSERT_EQ(test, ret, 0);
	told = ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_ASSERT_NOT_NULL(test, told);
	KUNIT_ASSERT_EQ(test, told->priv_len, len);
	KUNIT_EXPECT_MEMEQ(test, told->priv, data, len);
	KUNIT_ASSERT_NOT_NULL(test, ndkc_await(b->cm, RDMA_CM_EVENT_ESTABLISHED));
	send_one(test, a, b, 0, 100);
	send_one(test, b, a, 0, 100);
}

static void private_data_and_read_depths_arrive(struct kunit *test)
{
	static const u8 lengths[] = { 0, 1, 4, 56, 196, 232 };
	int i;

	take_way(test);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		connect_with(test, lengths[i]);
}

/* siw calls a reject a reset, for which rdma_cm has no data. */
static void a_reject_carries_its_data(struct kunit *test)
{
	static const u8 why[] = { 1, 2, 3, 4, 5 };
	const struct ndkc_event *told;
	struct ndkc_cm *listener, *child;
	struct ndkc_ep *a;

	take_way(test);
	listener = ndkc_listener(test, 4);
	a = ndkc_active(test, ndkc_port(listener), NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, "please", 6), 0);
	child = ndkc_take_child(listener);
	KUNIT_ASSERT_NOT_NULL(test, child);
	KUNIT_EXPECT_EQ(test, rdma_reject(child->id, why, sizeof(why), 0), 0);
	told = ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED);
	KUNIT_ASSERT_NOT_NULL(test, told);
	if (is_siw(a)) {
		KUNIT_EXPECT_EQ(test, told->status, -ECONNRESET);
		return;
	}
	KUNIT_EXPECT_EQ(test, told->status, -ECONNREFUSED);
	KUNIT_ASSERT_EQ(test, told->priv_len, sizeof(why));
	KUNIT_EXPECT_MEMEQ(test, told->priv, why, sizeof(why));
}

static void nobody_listens(struct kunit *test)
{
	const struct ndkc_event *told;
	struct ndkc_cm *bound;
	struct ndkc_ep *a;
	int ret;

	take_way(test);
	bound = ndkc_cm(test);
	KUNIT_ASSERT_EQ(test, ndkc_bind(bound), 0);
	a = ndkc_active(test, ndkc_port(bound), NULL);
	/* The call itself may return the error. */
	ret = ndkc_connect(a, NULL, 0);
	if (!ret) {
		told = ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED);
		KUNIT_ASSERT_NOT_NULL(test, told);
		ret = told->status;
	}
	KUNIT_EXPECT_EQ(test, ret, -ECONNREFUSED);
}

/* The other end learns of a disconnect, and what was posted ends at both. */
static void expect_end(struct kunit *test, struct ndkc_ep *first, struct ndkc_ep *second)
{
	struct ndkc_buf *buf = ndkc_buf(test, PAGE_SIZE);
	struct ndkc_op *recvs[2] = { ndkc_op(test), ndkc_op(test) };

	KUNIT_ASSERT_EQ(test, ndkc_post_recv(first, recvs[0], buf, 0, 64), 0);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv(second, recvs[1], buf, 64, 64), 0);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(first->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(second->cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, rdma_disconnect(second->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(first->cm, RDMA_CM_EVENT_DISCONNECTED));
	NDKC_EXPECT_WC(test, recvs[0], IB_WC_WR_FLUSH_ERR);
	NDKC_EXPECT_WC(test, recvs[1], IB_WC_WR_FLUSH_ERR);
}

static void initiator_disconnects(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	send_one(test, p->a, p->b, 0, 1000);
	expect_end(test, p->a, p->b);
}

static void responder_disconnects(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	send_one(test, p->a, p->b, 0, 1000);
	expect_end(test, p->b, p->a);
}

static void both_disconnect_at_once(struct kunit *test)
{
	struct ndkc_pair *p = joined(test);

	send_one(test, p->a, p->b, 0, 1000);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->a->cm->id), 0);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(p->b->cm->id), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->a->cm, RDMA_CM_EVENT_DISCONNECTED));
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(p->b->cm, RDMA_CM_EVENT_DISCONNECTED));
}

static struct kunit_case interop_cases[] = {
	KUNIT_CASE_PARAM(private_data_and_read_depths_arrive, way_gen_params),
	KUNIT_CASE_PARAM(a_reject_carries_its_data, way_gen_params),
	KUNIT_CASE_PARAM(nobody_listens, way_gen_params),
	KUNIT_CASE_PARAM(messages_of_all_sizes_arrive, way_gen_params),
	KUNIT_CASE_PARAM(many_messages_arrive_in_order, way_gen_params),
	KUNIT_CASE_PARAM(initiator_invalidates_at_its_peer, way_gen_params),
	KUNIT_CASE_PARAM(responder_invalidates_at_its_peer, way_gen_params),
	KUNIT_CASE_PARAM(writes_place_their_bytes, way_gen_params),
	KUNIT_CASE_PARAM(reads_fetch_their_bytes, way_gen_params),
	KUNIT_CASE_PARAM(many_reads_take_turns, way_gen_params),
	KUNIT_CASE_PARAM(initiator_reads_and_invalidates, way_gen_params),
	KUNIT_CASE_PARAM(responder_reads_and_invalidates, way_gen_params),
	KUNIT_CASE_PARAM(a_read_without_a_right_fails, way_gen_params),
	KUNIT_CASE_PARAM(an_invalidation_without_a_right_fails, way_gen_params),
	KUNIT_CASE_PARAM(initiator_disconnects, way_gen_params),
	KUNIT_CASE_PARAM(responder_disconnects, way_gen_params),
	KUNIT_CASE_PARAM(both_disconnect_at_once, way_gen_params),
	{}
};

static struct kunit_suite interop_suite = {
	.name = "ndk_consumer_interop",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = interop_cases,
};

kunit_test_suite(interop_suite);
