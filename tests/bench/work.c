// SPDX-License-Identifier: GPL-2.0
/* The works: one kind of operation each. */
#include <linux/string.h>

#include "bench.h"

static struct bench_head *head(struct bench_slot *slot, u32 i)
{
	return slot->local.va + (size_t)i * slot->conn->bench->params.size;
}

static int post(struct bench_slot *slot, struct ib_send_wr *wr)
{
	return ib_post_send(slot->conn->a.qp, wr, NULL);
}

/* --- messages: one post of a batch; over when it is sent and has arrived */

static int send_begin(struct bench_slot *slot)
{
	atomic_set(&slot->waits, 2);
	return post(slot, &slot->wr[0].wr);
}

static void send_arrived(struct bench_recv *recv)
{
	struct bench_conn *conn = recv->end->conn;
	const struct bench_head head = *recv->message;

	bench_recv_again(recv);
	if (head.last)
		bench_slot_done(&conn->slots[head.slot]);
}

/* --- ping-pong: over when the answer has come */

static void answer(struct bench_recv *recv)
{
	int ret = ib_post_send(recv->end->qp, &recv->reply, NULL);

	if (ret)
		bench_fail(recv->end->conn->bench, ret);
}

static void ping_arrived(struct bench_recv *recv)
{
	*recv->words = *recv->message;
	bench_recv_again(recv);
	answer(recv);
}

/* --- register, send the key, have it invalidated by the answer */

static void next_key(struct bench_slot *slot)
{
	struct ib_mr *mr = slot->local.mr;

	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey) & 0xff);
	slot->reg.key = mr->rkey;
	slot->inv.ex.invalidate_rkey = mr->rkey;
}

static int map(struct bench_slot *slot)
{
	int n = ib_map_mr_sg(slot->local.mr, &slot->local.sg, 1, NULL, PAGE_SIZE);

	return n == 1 ? 0 : -EINVAL;
}

static int cycle_begin(struct bench_slot *slot)
{
	int ret = map(slot);

	if (ret)
		return ret;
	next_key(slot);
	head(slot, 0)->rkey = slot->local.mr->rkey;
	atomic_set(&slot->waits, 2);
	slot->reg.wr.next = &slot->wr[0].wr;
	return post(slot, &slot->reg.wr);
}

static void cycle_asked(struct bench_recv *recv)
{
	recv->reply.ex.invalidate_rkey = recv->message->rkey;
	ping_arrived(recv);
}

/* --- register and invalidate at once, without a peer */

static int local_begin(struct bench_slot *slot)
{
	int ret = map(slot);

	if (ret)
		return ret;
	next_key(slot);
	atomic_set(&slot->waits, 1);
	slot->reg.wr.next = &slot->inv;
	return post(slot, &slot->reg.wr);
}

/* --- RDMA: one transfer to or from the slot's own region at the peer */

static int rdma_begin(struct bench_slot *slot)
{
	atomic_set(&slot->waits, 1);
	return post(slot, &slot->wr[0].wr);
}

static const struct bench_work works[] = {
	{
		.name = "send",
		.depth = 128,
		.receives = true,
		.begin = send_begin,
		.passive = send_arrived,
	},
	{
		.name = "pingpong",
		.depth = 1,
		.receives = true,
		.answer = IB_WR_SEND,
		.begin = send_begin,
		.passive = ping_arrived,
		.active = send_arrived,
	},
	{
		.name = "reg_send_inv",
		.depth = 16,
		.local_mr = true,
		.receives = true,
		.answer = IB_WR_SEND_WITH_INV,
		.begin = cycle_begin,
		.passive = cycle_asked,
		.active = send_arrived,
	},
	{
		.name = "reg_local_inv",
		.depth = 16,
		.local_mr = true,
		.begin = local_begin,
	},
	{
		.name = "write",
		.depth = 16,
		.remote_mr = true,
		.begin = rdma_begin,
	},
	{
		.name = "read",
		.depth = 16,
		.local_mr = true,
		.register_local = true,
		.remote_mr = true,
		.begin = rdma_begin,
	},
};

const struct bench_work *bench_find_work(const char *name)
{
	for (int i = 0; i < ARRAY_SIZE(works); i++)
		if (!strcmp(works[i].name, name))
			return &works[i];
	return NULL;
}

static void init_registration(struct bench_slot *slot)
{
	slot->reg.wr.opcode = IB_WR_REG_MR;
	slot->reg.wr.wr_cqe = &slot->cqe;
	slot->reg.mr = slot->local.mr;
	slot->reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			   IB_ACCESS_REMOTE_WRITE;
	slot->inv.opcode = IB_WR_LOCAL_INV;
	slot->inv.wr_cqe = &slot->cqe;
	slot->inv.send_flags = IB_SEND_SIGNALED;
}

/* An iWARP device needs a region for the data of a read. */
static u32 local_key(const struct bench_slot *slot)
{
	if (slot->conn->bench->work->register_local)
		return slot->local.mr->lkey;
	return slot->conn->bench->pd->local_dma_lkey;
}

static u64 local_addr(const struct bench_slot *slot, u32 i)
{
	if (slot->conn->bench->work->register_local)
		return slot->local.mr->iova;
	return slot->local.dma + (u64)i * slot->conn->bench->params.size;
}

/**
 * bench_slot_init - lay out the work requests that a slot posts
 * @slot: with its buffers and regions
 */
void bench_slot_init(struct bench_slot *slot)
{
	const struct bench *b = slot->conn->bench;
	u32 n = b->params.batch;

	slot->cqe.done = bench_slot_cqe;
	if (slot->local.mr)
		init_registration(slot);
	for (u32 i = 0; i < n; i++) {
		struct ib_rdma_wr *wr = &slot->wr[i];

		slot->sge[i] = (struct ib_sge){
			.addr = local_addr(slot, i),
			.length = b->params.size,
			.lkey = local_key(slot),
		};
		wr->wr.wr_cqe = &slot->cqe;
		wr->wr.sg_list = &slot->sge[i];
		wr->wr.num_sge = 1;
		wr->wr.opcode = IB_WR_SEND;
		if (slot->remote.mr) {
			wr->wr.opcode = strcmp(b->work->name, "read") ?
				IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
			wr->remote_addr = slot->remote.mr->iova;
			wr->rkey = slot->remote.mr->rkey;
		}
		if (i + 1 < n)
			wr->wr.next = &slot->wr[i + 1].wr;
		else
			wr->wr.send_flags = IB_SEND_SIGNALED;
		if (b->work->receives)
			*head(slot, i) = (struct bench_head){
				.slot = slot->index,
				.last = i + 1 == n,
			};
	}
}
