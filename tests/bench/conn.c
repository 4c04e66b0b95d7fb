// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of the benchmark, their memory and their slots.
 *
 * All but the callbacks runs in the thread of one measurement, and may sleep.
 */
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/slab.h>

#include "bench.h"

/* More than any other request of an end: a drain's marker, a registration. */
#define SPARE_WR		8

/**
 * bench_fail - remember the first failure and stop
 * @b: the measurement
 * @error: an ib_wc_status, or a negative errno
 *
 * Any context.
 */
void bench_fail(struct bench *b, int error)
{
	cmpxchg(&b->error, 0, error);
	WRITE_ONCE(b->stop, true);
}

/* --- slots */

static void slot_ends(struct bench_slot *slot)
{
	if (atomic_dec_and_test(&slot->conn->running))
		complete(&slot->conn->idle);
}

static void slot_begin(struct bench_slot *slot)
{
	struct bench *b = slot->conn->bench;
	int ret = b->work->begin(slot);

	if (ret)
		bench_fail(b, ret);
}

/**
 * bench_slot_done - one of the events that a slot waits for has come
 * @slot: the slot; the last event begins its next operation
 *
 * Any context.
 */
void bench_slot_done(struct bench_slot *slot)
{
	struct bench *b = slot->conn->bench;
	u32 n = b->params.batch;

	if (!atomic_dec_and_test(&slot->waits))
		return;
	WRITE_ONCE(slot->done, slot->done + n);
	slot->left = slot->left > n ? slot->left - n : 0;
	if (!slot->left || READ_ONCE(b->stop))
		slot_ends(slot);
	else
		slot_begin(slot);
}

/**
 * bench_slot_cqe - the completion of a slot's last work request
 * @cq: the queue
 * @wc: the completion
 */
void bench_slot_cqe(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_slot *slot = container_of(wc->wr_cqe, struct bench_slot, cqe);

	if (wc->status)
		bench_fail(slot->conn->bench, wc->status);
	else
		bench_slot_done(slot);
}

/**
 * bench_begin - let all slots run
 * @b: the measurement
 * @ops_per_slot: operations until a slot stops; U64_MAX: until @b->stop
 *
 * Return: 0, or the first error of a post.
 */
int bench_begin(struct bench *b, u64 ops_per_slot)
{
	b->stop = false;
	for (u32 i = 0; i < b->nr_conns; i++) {
		atomic_set(&b->conns[i].running, b->nr_slots);
		reinit_completion(&b->conns[i].idle);
	}
	/* First slots of all connections, then second ones: all run at once. */
	for (u32 s = 0; s < b->nr_slots; s++) {
		for (u32 i = 0; i < b->nr_conns; i++) {
			b->conns[i].slots[s].left = ops_per_slot;
			slot_begin(&b->conns[i].slots[s]);
		}
	}
	return b->error;
}

/**
 * bench_await_idle - wait until no slot runs
 * @b: the measurement
 * @timeout: in jiffies, for all
 *
 * Return: 0, the measurement's error, or -ETIME.
 */
int bench_await_idle(struct bench *b, unsigned long timeout)
{
	unsigned long end = jiffies + timeout;

	for (u32 i = 0; i < b->nr_conns; i++) {
		/* A failed slot may never end. */
		while (!wait_for_completion_timeout(&b->conns[i].idle, HZ / 20)) {
			if (b->error)
				return b->error;
			if (time_after(jiffies, end))
				return -ETIME;
		}
	}
	return b->error;
}

/* --- receives */

/**
 * bench_recv_again - post the receive of a handled message again
 * @recv: the receive; a post has a whole batch
 */
void bench_recv_again(struct bench_recv *recv)
{
	struct bench_end *end = recv->end;
	int ret;

	recv->wr.next = end->again;
	end->again = &recv->wr;
	if (++end->again_nr < end->conn->bench->params.batch)
		return;
	ret = ib_post_recv(end->qp, end->again, NULL);
	if (ret)
		bench_fail(end->conn->bench, ret);
	end->again = NULL;
	end->again_nr = 0;
}

static void recv_cqe(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_recv *recv = container_of(wc->wr_cqe, struct bench_recv, cqe);
	struct bench_end *end = recv->end;
	struct bench *b = end->conn->bench;

	if (wc->status)
		bench_fail(b, wc->status);
	else if (end == &end->conn->a)
		b->work->active(recv);
	else
		b->work->passive(recv);
}

static void reply_cqe(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_recv *recv = container_of(wc->wr_cqe, struct bench_recv, reply_cqe);

	if (wc->status)
		bench_fail(recv->end->conn->bench, wc->status);
}

/* --- memory */

static int buf_alloc(struct bench *b, struct bench_buf *buf, u32 len)
{
	len = PAGE_ALIGN(len);
	buf->va = alloc_pages_exact(len, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!buf->va)
		return -ENOMEM;
	buf->len = len;
	sg_init_one(&buf->sg, buf->va, len);
	if (ib_dma_map_sg(b->dev, &buf->sg, 1, DMA_BIDIRECTIONAL) != 1) {
		free_pages_exact(buf->va, len);
		buf->va = NULL;
		return -EIO;
	}
	buf->dma = sg_dma_address(&buf->sg);
	return 0;
}

static int buf_region(struct bench *b, struct bench_buf *buf)
{
	struct ib_mr *mr;

	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, buf->len / PAGE_SIZE);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	buf->mr = mr;
	return ib_map_mr_sg(mr, &buf->sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EINVAL;
}

static void buf_free(struct bench *b, struct bench_buf *buf)
{
	if (buf->mr)
		ib_dereg_mr(buf->mr);
	if (buf->va) {
		ib_dma_unmap_sg(b->dev, &buf->sg, 1, DMA_BIDIRECTIONAL);
		free_pages_exact(buf->va, buf->len);
	}
}

static void registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_end *end = container_of(wc->wr_cqe, struct bench_end, reg_cqe);

	end->reg_status = wc->status;
	complete(&end->registered);
}

static int buf_register(struct bench_end *end, struct bench_buf *buf)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.wr_cqe = &end->reg_cqe,
		.wr.send_flags = IB_SEND_SIGNALED,
		.mr = buf->mr,
		.key = buf->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_REMOTE_WRITE,
	};
	int ret;

	end->reg_cqe.done = registered;
	reinit_completion(&end->registered);
	ret = ib_post_send(end->qp, &wr.wr, NULL);
	if (ret)
		return ret;
	if (!wait_for_completion_timeout(&end->registered, msecs_to_jiffies(BENCH_WAIT_MS)))
		return -ETIME;
	return end->reg_status;
}

/* --- an end: its queue, its queue pair, its receives */

static int end_queues(struct bench_end *end)
{
	struct bench *b = end->conn->bench;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = 2 * max(b->nr_slots * b->params.batch, b->nr_recvs) +
				       SPARE_WR,
			.max_recv_wr = b->nr_recvs + SPARE_WR,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	int entries = attr.cap.max_send_wr + attr.cap.max_recv_wr;
	int vector = end->conn->index % b->dev->num_comp_vectors, ret;

	end->cq = ib_alloc_cq(b->dev, end, entries, vector, b->params.poll);
	if (IS_ERR(end->cq)) {
		ret = PTR_ERR(end->cq);
		end->cq = NULL;
		return ret;
	}
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	ret = rdma_create_qp(end->id, b->pd, &attr);
	if (!ret)
		end->qp = end->id->qp;
	return ret;
}

static void recv_init(struct bench_end *end, u32 i)
{
	struct bench *b = end->conn->bench;
	struct bench_recv *recv = &end->recvs[i];
	size_t at = (size_t)i * b->params.size;

	recv->end = end;
	recv->message = end->messages.va + at;
	recv->words = end->answers.va + at;
	recv->cqe.done = recv_cqe;
	recv->wr.wr_cqe = &recv->cqe;
	recv->wr.sg_list = &recv->sge;
	recv->wr.num_sge = 1;
	recv->sge.addr = end->messages.dma + at;
	recv->sge.length = b->params.size;
	recv->sge.lkey = b->pd->local_dma_lkey;
	recv->reply_cqe.done = reply_cqe;
	recv->reply.wr_cqe = &recv->reply_cqe;
	recv->reply.opcode = b->work->answer;
	recv->reply.send_flags = IB_SEND_SIGNALED;
	recv->reply.sg_list = &recv->reply_sge;
	recv->reply.num_sge = 1;
	recv->reply_sge = recv->sge;
	recv->reply_sge.addr = end->answers.dma + at;
}

static int end_receives(struct bench_end *end)
{
	struct bench *b = end->conn->bench;
	size_t len = (size_t)b->nr_recvs * b->params.size;
	int ret;

	if (!b->work->receives)
		return 0;
	end->recvs = kvzalloc_objs(*end->recvs, b->nr_recvs);
	if (!end->recvs)
		return -ENOMEM;
	ret = buf_alloc(b, &end->messages, len) ?: buf_alloc(b, &end->answers, len);
	for (u32 i = 0; !ret && i < b->nr_recvs; i++) {
		recv_init(end, i);
		ret = ib_post_recv(end->qp, &end->recvs[i].wr, NULL);
	}
	return ret;
}

static int end_init(struct bench_end *end)
{
	return end_queues(end) ?: end_receives(end);
}

static void end_close(struct bench_end *end)
{
	if (end->qp)
		rdma_destroy_qp(end->id);
	if (end->cq)
		ib_free_cq(end->cq);
	buf_free(end->conn->bench, &end->messages);
	buf_free(end->conn->bench, &end->answers);
	kvfree(end->recvs);
}

/* --- a connection's slots */

static int slot_alloc(struct bench_slot *slot)
{
	struct bench *b = slot->conn->bench;
	u32 n = b->params.batch;
	int ret;

	slot->sge = kzalloc_objs(*slot->sge, n);
	slot->wr = kzalloc_objs(*slot->wr, n);
	if (!slot->sge || !slot->wr)
		return -ENOMEM;
	ret = buf_alloc(b, &slot->local, n * b->params.size);
	if (!ret && b->work->local_mr)
		ret = buf_region(b, &slot->local);
	if (!ret && b->work->register_local)
		ret = buf_register(&slot->conn->a, &slot->local);
	if (!ret && b->work->remote_mr)
		ret = buf_alloc(b, &slot->remote, b->params.size) ?:
		      buf_region(b, &slot->remote) ?:
		      buf_register(&slot->conn->b, &slot->remote);
	return ret;
}

static int conn_slots(struct bench_conn *conn)
{
	struct bench *b = conn->bench;
	int ret = 0;

	conn->slots = kvzalloc_objs(*conn->slots, b->nr_slots);
	if (!conn->slots)
		return -ENOMEM;
	for (u32 i = 0; !ret && i < b->nr_slots; i++) {
		conn->slots[i].conn = conn;
		conn->slots[i].index = i;
		ret = slot_alloc(&conn->slots[i]);
		if (!ret)
			bench_slot_init(&conn->slots[i]);
	}
	return ret;
}

static void conn_free_slots(struct bench_conn *conn)
{
	struct bench *b = conn->bench;

	for (u32 i = 0; conn->slots && i < b->nr_slots; i++) {
		struct bench_slot *slot = &conn->slots[i];

		buf_free(b, &slot->local);
		buf_free(b, &slot->remote);
		kfree(slot->sge);
		kfree(slot->wr);
	}
	kvfree(conn->slots);
}

/* --- connecting */

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct bench_end *end;

	/* The listener gets it, too. The removal waits until the run ends. */
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct bench *b = id->context;

		/* One connection is made at a time. */
		end = READ_ONCE(b->accepting);
		if (!end || end->id)
			return -ECONNREFUSED;
		end->id = id;
		id->context = end;
	} else {
		end = id->context;
	}
	end->last_event = event->event;
	complete(&end->event);
	return 0;
}

static int end_await(struct bench_end *end, enum rdma_cm_event_type type)
{
	if (!wait_for_completion_timeout(&end->event, msecs_to_jiffies(BENCH_WAIT_MS)))
		return -ETIME;
	if (end->last_event == type)
		return 0;
	pr_err("%s instead of %s\n", rdma_event_msg(end->last_event), rdma_event_msg(type));
	return -ECONNREFUSED;
}

static struct rdma_cm_id *new_id(void *context)
{
	return rdma_create_id(&init_net, on_event, context, RDMA_PS_TCP, IB_QPT_RC);
}

static struct sockaddr_in address(const struct bench *b, u16 port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = in_aton(b->params.addr),
		.sin_port = htons(port),
	};
}

static int resolve(struct bench_end *end)
{
	struct bench *b = end->conn->bench;
	struct sockaddr_in from = address(b, 0), to = address(b, b->params.port);
	struct rdma_cm_id *id = new_id(end);
	int ret;

	if (IS_ERR(id))
		return PTR_ERR(id);
	end->id = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to,
				BENCH_WAIT_MS) ?:
	      end_await(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (ret)
		return ret;
	return rdma_resolve_route(id, BENCH_WAIT_MS) ?:
	       end_await(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int connect(struct bench_conn *conn)
{
	struct bench *b = conn->bench;
	struct rdma_conn_param param = {
		.responder_resources = min_t(int, b->dev->attrs.max_qp_rd_atom, 16),
		.initiator_depth = min_t(int, b->dev->attrs.max_qp_init_rd_atom, 16),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int ret;

	WRITE_ONCE(b->accepting, &conn->b);
	ret = rdma_connect(conn->a.id, &param) ?:
	      end_await(&conn->b, RDMA_CM_EVENT_CONNECT_REQUEST) ?:
	      end_init(&conn->b);
	WRITE_ONCE(b->accepting, NULL);
	if (ret)
		return ret;
	rdma_lock_handler(conn->b.id);
	ret = rdma_accept(conn->b.id, &param);
	rdma_unlock_handler(conn->b.id);
	return ret ?: end_await(&conn->b, RDMA_CM_EVENT_ESTABLISHED) ?:
		      end_await(&conn->a, RDMA_CM_EVENT_ESTABLISHED);
}

/* The first connection finds the device: a listener at a loopback address has none. */
static int take_device(struct bench *b, struct ib_device *dev)
{
	if (!dev || strcmp(dev_name(&dev->dev), b->params.dev))
		return -ENODEV;
	if (b->pd)
		return 0;
	b->dev = dev;
	b->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(b->pd)) {
		int ret = PTR_ERR(b->pd);

		b->pd = NULL;
		return ret;
	}
	return 0;
}

static int conn_open(struct bench_conn *conn)
{
	int ret = resolve(&conn->a) ?: take_device(conn->bench, conn->a.id->device);

	return ret ?: end_init(&conn->a) ?: connect(conn) ?: conn_slots(conn);
}

/* Closes all but the ids, which keep the device from going. */
static void conn_close(struct bench_conn *conn)
{
	if (conn->a.qp) {
		rdma_disconnect(conn->a.id);
		ib_drain_qp(conn->a.qp);
	}
	if (conn->b.qp)
		ib_drain_qp(conn->b.qp);
	/* A message that end b still had may have begun an operation. */
	if (conn->a.qp)
		ib_drain_qp(conn->a.qp);
	/* Regions go before the queue pairs that they were registered through. */
	conn_free_slots(conn);
	end_close(&conn->a);
	end_close(&conn->b);
}

static void close_ids(struct bench_conn *conn)
{
	if (conn->a.id)
		rdma_destroy_id(conn->a.id);
	if (conn->b.id)
		rdma_destroy_id(conn->b.id);
}

static int listen(struct bench *b)
{
	struct sockaddr_in at = address(b, b->params.port);
	struct rdma_cm_id *id = new_id(b);
	int ret;

	if (IS_ERR(id))
		return PTR_ERR(id);
	b->listener = id;
	ret = rdma_bind_addr(id, (struct sockaddr *)&at);
	return ret ?: rdma_listen(id, 16);
}

static void count_slots(struct bench *b)
{
	b->nr_slots = max(b->work->depth / b->params.batch, 1u);
	/* Large transfers: sixteen slots would need too much memory. */
	if (b->params.size > SZ_256K)
		b->nr_slots = min(b->nr_slots, 4);
	/* Receives under way, and as many that wait to be posted again. */
	if (b->work->receives)
		b->nr_recvs = 2 * b->nr_slots * b->params.batch;
}

/**
 * bench_open - make the connections of a measurement, and all that they need
 * @b: the measurement, with parameters and work
 *
 * Return: 0, or an error; call bench_close() in any case.
 */
int bench_open(struct bench *b)
{
	int ret = listen(b);

	if (ret)
		return ret;
	count_slots(b);
	b->conns = kvzalloc_objs(*b->conns, b->params.qps);
	if (!b->conns)
		return -ENOMEM;
	for (u32 i = 0; !ret && i < b->params.qps; i++) {
		struct bench_conn *conn = &b->conns[i];

		conn->bench = b;
		conn->index = i;
		conn->a.conn = conn;
		conn->b.conn = conn;
		init_completion(&conn->idle);
		init_completion(&conn->a.event);
		init_completion(&conn->b.event);
		init_completion(&conn->a.registered);
		init_completion(&conn->b.registered);
		b->nr_conns++;
		ret = conn_open(conn);
	}
	return ret;
}

/**
 * bench_close - undo bench_open()
 * @b: the measurement
 */
void bench_close(struct bench *b)
{
	WRITE_ONCE(b->stop, true);
	/* From here on no request comes for an abandoned connection. */
	if (b->listener)
		rdma_destroy_id(b->listener);
	for (u32 i = 0; i < b->nr_conns; i++)
		conn_close(&b->conns[i]);
	if (b->pd)
		ib_dealloc_pd(b->pd);
	for (u32 i = 0; i < b->nr_conns; i++)
		close_ids(&b->conns[i]);
	kvfree(b->conns);
}
