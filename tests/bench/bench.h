/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verbs benchmark: both ends of each connection are in this module, on any
 * ib_device that serves the address, and only the kernel's consumer interface
 * is used.
 *
 * A connection has slots. A slot has one operation under way, which ends with a
 * fixed number of events (a completion, a message that arrived); the last event
 * counts it and begins the next, in the context that the completion queue is
 * polled in. So a slot belongs to one processor at a time, and slots share no
 * lock and no data except in the provider.
 */
#ifndef NDK_BENCH_H
#define NDK_BENCH_H

#include <linux/completion.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define BENCH_MAX_QPS		16
#define BENCH_MAX_BATCH		64
#define BENCH_MAX_SIZE		SZ_1M
/* Messages of a header alone. */
#define BENCH_MIN_SIZE		16
#define BENCH_WAIT_MS		120000

/**
 * struct bench_params - parameters of a measurement
 * @work: name of the work
 * @dev: name of the ib_device that must serve @addr
 * @addr: IPv4 address to listen at and connect to
 * @port: TCP port
 * @size: bytes of a message or transfer
 * @batch: work requests of one post
 * @qps: connections
 * @poll: context of the completion queues
 * @ms: the time to measure, after a tenth of it to warm up; or
 * @ops: the number of operations to measure
 */
struct bench_params {
	char work[16];
	char dev[32];
	char addr[16];
	u16 port;
	u32 size;
	u32 batch;
	u32 qps;
	enum ib_poll_context poll;
	u32 ms;
	u64 ops;
};

/**
 * struct bench_result - result of a measurement
 * @ops: operations in the measured time
 * @ns: that time
 * @idle_ns: idle time of all processors in it, added up
 * @total: all operations, the warm-up included
 */
struct bench_result {
	u64 ops;
	u64 ns;
	u64 idle_ns;
	u64 total;
};

/**
 * struct bench_buf - memory of one slot at one end
 * @va: kernel address
 * @dma: for ib_sge.addr
 * @len: bytes
 * @sg: the same for ib_map_mr_sg()
 * @mr: NULL where the work needs none
 */
struct bench_buf {
	void *va;
	u64 dma;
	u32 len;
	struct scatterlist sg;
	struct ib_mr *mr;
};

/* The header of a message. */
struct bench_head {
	u32 slot;
	u32 rkey;
	/* the slot waits for this message */
	u32 last;
	u32 unused;
};

struct bench_end;
struct bench_conn;

struct bench_slot {
	struct bench_conn *conn;
	u32 index;
	/* events to come until the operation is over */
	atomic_t waits;
	u64 done;
	/* operations left; U64_MAX for no limit */
	u64 left;
	struct ib_cqe cqe;
	struct bench_buf local;
	struct bench_buf remote;
	struct ib_sge *sge;
	struct ib_rdma_wr *wr;
	struct ib_reg_wr reg;
	struct ib_send_wr inv;
} ____cacheline_aligned;

/* A receive, posted again and again. */
struct bench_recv {
	struct bench_end *end;
	struct ib_cqe cqe;
	struct ib_recv_wr wr;
	struct ib_sge sge;
	struct bench_head *message;
	/* the answer to the message, if the work has one */
	struct bench_head *words;
	struct ib_cqe reply_cqe;
	struct ib_send_wr reply;
	struct ib_sge reply_sge;
};

struct bench_end {
	struct bench_conn *conn;
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct completion event;
	enum rdma_cm_event_type last_event;
	/* receives, the memory of their messages, and that of the answers */
	struct bench_recv *recvs;
	struct bench_buf messages;
	struct bench_buf answers;
	/* receives to be posted again */
	struct ib_recv_wr *again;
	u32 again_nr;
	/* of a registration at set-up */
	struct ib_cqe reg_cqe;
	struct completion registered;
	int reg_status;
};

struct bench_conn {
	struct bench *bench;
	u32 index;
	struct bench_end a;
	struct bench_end b;
	struct bench_slot *slots;
	atomic_t running;
	struct completion idle;
};

struct bench_work;

struct bench {
	struct bench_params params;
	const struct bench_work *work;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct rdma_cm_id *listener;
	/* the end of the next connection request */
	struct bench_end *accepting;
	struct bench_conn *conns;
	u32 nr_conns;
	u32 nr_slots;
	u32 nr_recvs;
	bool stop;
	/* the first failure: an ib_wc_status, or a negative errno */
	int error;
};

/**
 * struct bench_work - one kind of operation
 * @name: as in struct bench_params
 * @depth: operations under way on each connection; a slot has a batch of them
 * @local_mr: slots have regions at the active end
 * @remote_mr: slots have regions at the passive end, registered at set-up
 * @register_local: those at the active end are registered at set-up, too
 * @receives: the work has messages
 * @begin: posts the next operation of a slot; -errno ends the run
 * @answer: opcode of the passive end's answer; 0 (which is no send) for none
 * @passive: handles a message at the passive end
 * @active: handles a message at the active end
 */
struct bench_work {
	const char *name;
	u32 depth;
	bool local_mr;
	bool remote_mr;
	bool register_local;
	bool receives;
	enum ib_wr_opcode answer;
	int (*begin)(struct bench_slot *slot);
	void (*passive)(struct bench_recv *recv);
	void (*active)(struct bench_recv *recv);
};

const struct bench_work *bench_find_work(const char *name);

/* conn.c */
int bench_open(struct bench *b);
void bench_close(struct bench *b);
void bench_fail(struct bench *b, int error);
void bench_slot_done(struct bench_slot *slot);
void bench_slot_cqe(struct ib_cq *cq, struct ib_wc *wc);
void bench_recv_again(struct bench_recv *recv);
int bench_begin(struct bench *b, u64 ops_per_slot);
int bench_await_idle(struct bench *b, unsigned long timeout);

/* work.c */
void bench_slot_init(struct bench_slot *slot);

#endif /* NDK_BENCH_H */
