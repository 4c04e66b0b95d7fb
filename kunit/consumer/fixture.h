/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture library of the consumer tests.
 *
 * The library uses only interfaces that every RDMA consumer has: the verbs
 * (rdma/ib_verbs.h), the connection manager (rdma/rdma_cm.h) and, in one suite,
 * the read/write contexts (rdma/rw.h). The provider under test is the ib_device
 * that address resolution of ndkc_address() leads to.
 *
 * Ownership: each test case has one struct ndkc_env. Each object of a helper is
 * on a list of it and goes away when the case ends, in the order of a careful
 * consumer, whether the case passed, failed or was aborted by an assertion.
 * Work requests refer to memory of the environment only, so a late completion
 * never lands on a dead stack.
 *
 * Each wait has a limit: helpers wait for ndkc_timeout() at most, which only
 * ends a hang, and calls into the provider that may block run in a helper
 * thread (ndkc_bounded()). After a blocked call the provider counts as wedged,
 * its objects are leaked and the remaining cases fail at once.
 */
#ifndef NDKC_FIXTURE_H
#define NDKC_FIXTURE_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define NDKC_NR_EVENTS		16
#define NDKC_BUF_SIZE		(64 * 1024)
/* Returned by ndkc_wait() when no completion came; no ib_wc_status. */
#define NDKC_NO_COMPLETION	(-ETIMEDOUT)

extern struct ib_device *ndkc_dev;

/**
 * struct ndkc_event - a CM handler's event, kept for the test case
 * @type: the event
 * @status: its status
 * @initiator_depth: as reported
 * @responder_resources: as reported
 * @priv_len: length of the private data, 0 if none
 * @reject_data: rdma_consumer_reject_data() gave data
 * @priv: the private data (of a reject: what the peer's consumer gave)
 */
struct ndkc_event {
	enum rdma_cm_event_type type;
	int status;
	u8 initiator_depth;
	u8 responder_resources;
	u8 priv_len;
	bool reject_data;
	u8 priv[256];
};

/**
 * struct ndkc_cm - an rdma_cm_id and the events it has seen
 * @env: owner
 * @id: the id; NULL once destroyed
 * @child: made by a connection request
 * @entry: link in the environment
 * @pending: of a listener: children not yet taken by the test case
 * @pending_entry: link in @pending of the listener
 * @lock: protects @ev, @nr and the pending list
 * @wait: woken at each event
 * @nr: number of events seen, may exceed NDKC_NR_EVENTS
 * @ev: the first events
 * @hook: runs in the handler after the event was stored; its return value is
 *	the handler's, so non-zero destroys the id
 * @hook_arg: for @hook
 */
struct ndkc_cm {
	struct ndkc_env *env;
	struct rdma_cm_id *id;
	bool child;
	struct list_head entry;
	struct list_head pending;
	struct list_head pending_entry;
	/* protects the members named above */
	spinlock_t lock;
	wait_queue_head_t wait;
	unsigned int nr;
	struct ndkc_event ev[NDKC_NR_EVENTS];
	int (*hook)(struct ndkc_cm *cm, struct rdma_cm_event *event);
	void *hook_arg;
};

/**
 * struct ndkc_cq - a completion queue
 * @cq: the queue; NULL once freed
 * @entry: link in the environment
 * @raw: made by ib_create_cq(), the test case polls
 * @self: polled by the waiter (IB_POLL_DIRECT, or raw)
 */
struct ndkc_cq {
	struct ib_cq *cq;
	struct list_head entry;
	bool raw;
	bool self;
};

/**
 * struct ndkc_op - one work request and its completion
 * @cqe: for wr_cqe
 * @entry: link in the environment
 * @done: completed at the first completion
 * @cq: where the completion is expected
 * @wc: the completion
 * @count: how many completions there were; more than one is a bug
 * @order: position among all completions of the environment
 * @ctx_irqs_off: the done callback ran with interrupts disabled
 * @ctx_softirq: the done callback ran in softirq context
 * @ctx_cpu: CPU of the done callback
 */
struct ndkc_op {
	struct ib_cqe cqe;
	struct list_head entry;
	struct ndkc_env *env;
	struct completion done;
	struct ndkc_cq *cq;
	struct ib_wc wc;
	atomic_t count;
	int order;
	bool ctx_irqs_off;
	bool ctx_softirq;
	int ctx_cpu;
};

/**
 * struct ndkc_buf - DMA-mapped memory
 * @entry: link in the environment
 * @va: kernel address
 * @dma: for ib_sge.addr
 * @len: length in bytes
 */
struct ndkc_buf {
	struct list_head entry;
	u8 *va;
	u64 dma;
	size_t len;
};

/**
 * struct ndkc_mr - a fast registration region over (part of) a buffer
 * @mr: the region
 * @entry: link in the environment
 * @sgt: DMA-mapped scatterlist of the last map
 * @mapped: @sgt is in use
 */
struct ndkc_mr {
	struct ib_mr *mr;
	struct list_head entry;
	struct sg_table sgt;
	bool mapped;
};

/**
 * struct ndkc_srq - a shared receive queue
 * @srq: the queue
 * @entry: link in the environment
 * @limit: completed by IB_EVENT_SRQ_LIMIT_REACHED
 * @limits: number of these events
 */
struct ndkc_srq {
	struct ib_srq *srq;
	struct list_head entry;
	struct completion limit;
	atomic_t limits;
};

/**
 * struct ndkc_ep_attr - how to make an end; zero means default
 * @poll: poll context, IB_POLL_SOFTIRQ by default
 * @send_wr: SQ depth (64)
 * @recv_wr: RQ depth (64)
 * @send_sge: SGEs of a send (4)
 * @recv_sge: SGEs of a receive (4)
 * @inline_data: bytes of inline data (0)
 * @rdma_ctxs: contexts for rdma_rw (0)
 * @comp_vector: of both CQs (0)
 * @sig_all: IB_SIGNAL_ALL_WR instead of IB_SIGNAL_REQ_WR
 * @pd: use this PD instead of a new one
 * @scq: use this CQ instead of a new one
 * @rcq: use this CQ instead of a new one
 * @srq: receive from here
 */
struct ndkc_ep_attr {
	enum ib_poll_context poll;
	u32 send_wr;
	u32 recv_wr;
	u32 send_sge;
	u32 recv_sge;
	u32 inline_data;
	u32 rdma_ctxs;
	int comp_vector;
	bool sig_all;
	struct ib_pd *pd;
	struct ndkc_cq *scq;
	struct ndkc_cq *rcq;
	struct ib_srq *srq;
};

/**
 * struct ndkc_ep - one end of a connection
 * @env: owner
 * @entry: link in the environment
 * @attr: how it was made
 * @cm: its id
 * @pd: protection domain
 * @scq: send CQ
 * @rcq: receive CQ
 * @qp: the QP (also cm->id->qp); NULL once destroyed
 * @last_wqe: completed by IB_EVENT_QP_LAST_WQE_REACHED
 * @fatal: number of other QP events
 */
struct ndkc_ep {
	struct ndkc_env *env;
	struct list_head entry;
	struct ndkc_ep_attr attr;
	struct ndkc_cm *cm;
	struct ib_pd *pd;
	struct ndkc_cq *scq;
	struct ndkc_cq *rcq;
	struct ib_qp *qp;
	struct completion last_wqe;
	atomic_t fatal;
};

/**
 * struct ndkc_pair - two connected ends
 * @listener: listening id
 * @a: the active side
 * @b: the passive side
 */
struct ndkc_pair {
	struct ndkc_cm *listener;
	struct ndkc_ep *a;
	struct ndkc_ep *b;
};

/**
 * struct ndkc_env - everything one test case has created
 * @test: the case
 * @lock: protects the lists of children made in handlers
 * @order: counts completions
 */
struct ndkc_env {
	struct kunit *test;
	/* the device of PDs and CQs, if not ndkc_dev; ndkc_ep() takes that of the id */
	struct ib_device *dev;
	/* the addresses of the two ends, if not that under test */
	const char *active;
	const char *passive;
	/* protects @cms, which CM handlers add to */
	spinlock_t lock;
	atomic_t order;
	struct list_head cms;
	struct list_head eps;
	struct list_head cqs;
	struct list_head srqs;
	struct list_head mrs;
	struct list_head bufs;
	struct list_head ops;
	struct list_head pds;
	/* requests and their lists are posted this many bytes off alignment */
	unsigned int odd;
};

/*
 * Suite hooks: every suite uses these four, except for ndkc_nd_exit() in
 * fixture_ndk.h and ndkc_init_odd().
 */
int ndkc_suite_init(struct kunit_suite *suite);
void ndkc_suite_exit(struct kunit_suite *suite);
int ndkc_init(struct kunit *test);
int ndkc_init_odd(struct kunit *test);
void ndkc_exit(struct kunit *test);

unsigned int ndkc_timeout_ms(void);
unsigned long ndkc_timeout(void);
bool ndkc_in_time(bool so);
bool ndkc_completes(struct completion *done, unsigned int waits);
int ndkc_bounded(const char *what, void (*fn)(void *arg), void *arg);
void ndkc_address(struct sockaddr_storage *ss, u16 port);
const char *ndkc_peer(void);
bool ndkc_is_peer(const struct ib_device *device);

/* fixture_link.c: the device */
int ndkc_link_add(const char *name, const char *netdev);
int ndkc_link_delete(const char *netdev);

/* fixture.c: objects */
struct ib_pd *ndkc_pd(struct kunit *test);
struct ndkc_cq *ndkc_cq(struct kunit *test, int nr, int vector,
			enum ib_poll_context poll);
struct ndkc_cq *ndkc_raw_cq(struct kunit *test, int nr, int vector,
			    ib_comp_handler handler, void *context);
void ndkc_cq_free(struct ndkc_cq *cq);
struct ndkc_buf *ndkc_buf(struct kunit *test, size_t len);
struct ndkc_op *ndkc_op(struct kunit *test);
void ndkc_op_reset(struct ndkc_op *op);
struct ndkc_srq *ndkc_srq(struct kunit *test, struct ib_pd *pd, u32 max_wr,
			  u32 max_sge);
void ndkc_fill(struct ndkc_buf *buf, u8 seed);
bool ndkc_is_filled(const u8 *p, size_t len, u8 value);
bool ndkc_matches(const struct ndkc_buf *buf, size_t off, size_t len, u8 seed,
		  size_t seed_off);
void ndkc_reap(struct ndkc_cq *cq);
int ndkc_wait(struct ndkc_op *op);
bool ndkc_stays_incomplete(struct ndkc_op *op, unsigned int ms);
bool ndkc_is_local_error(int status);
bool ndkc_is_remote_error(int status);

/* fixture_cm.c: connections */
struct ndkc_cm *ndkc_cm(struct kunit *test);
struct ndkc_cm *ndkc_cm_in(struct kunit *test, struct net *net);
void ndkc_cm_destroy(struct ndkc_cm *cm);
int ndkc_bind(struct ndkc_cm *cm);
u16 ndkc_port(struct ndkc_cm *cm);
struct ndkc_cm *ndkc_listener(struct kunit *test, int backlog);
int ndkc_resolve(struct ndkc_cm *cm, u16 port);
struct ndkc_cm *ndkc_take_child(struct ndkc_cm *listener);
const struct ndkc_event *ndkc_await(struct ndkc_cm *cm,
				    enum rdma_cm_event_type type);
const struct ndkc_event *ndkc_wait_index(struct ndkc_cm *cm, unsigned int n);
unsigned int ndkc_count(struct ndkc_cm *cm, enum rdma_cm_event_type type);
struct ndkc_ep *ndkc_ep_prepare(struct kunit *test,
				const struct ndkc_ep_attr *attr);
int ndkc_ep_attach(struct ndkc_ep *ep, struct ndkc_cm *cm,
		   struct rdma_cm_id *id);
struct ndkc_ep *ndkc_ep(struct kunit *test, struct ndkc_cm *cm,
			const struct ndkc_ep_attr *attr);
struct ndkc_ep *ndkc_active(struct kunit *test, u16 port,
			    const struct ndkc_ep_attr *attr);
int ndkc_connect(struct ndkc_ep *ep, const void *priv, u8 len);
int ndkc_accept(struct ndkc_ep *ep, const void *priv, u8 len);
struct ndkc_pair *ndkc_pair_attr(struct kunit *test,
				 const struct ndkc_ep_attr *a,
				 const struct ndkc_ep_attr *b);
struct ndkc_pair *ndkc_pair(struct kunit *test);
int ndkc_drain(struct ndkc_ep *ep);
int ndkc_drain_sq(struct ndkc_ep *ep);
int ndkc_drain_rq(struct ndkc_ep *ep);
int ndkc_destroy_qp(struct ndkc_ep *ep);
int ndkc_set_state(struct ndkc_ep *ep, enum ib_qp_state state);

/* fixture_wr.c: work requests */
struct ib_sge ndkc_sge(const struct ndkc_ep *ep, const struct ndkc_buf *buf,
		       size_t off, u32 len);
int ndkc_post_chain(struct ndkc_ep *ep, const struct ib_send_wr *wr, size_t size,
		    const struct ib_send_wr **bad);
int ndkc_post_recv_chain(struct ndkc_ep *ep, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad);
int ndkc_post_recv_sge(struct ndkc_ep *ep, struct ndkc_op *op,
		       struct ib_sge *sge, int num);
int ndkc_post_recv(struct ndkc_ep *ep, struct ndkc_op *op,
		   const struct ndkc_buf *buf, size_t off, u32 len);
int ndkc_post_send_sge(struct ndkc_ep *ep, struct ndkc_op *op, int flags,
		       struct ib_sge *sge, int num);
int ndkc_post_send(struct ndkc_ep *ep, struct ndkc_op *op, int flags,
		   const struct ndkc_buf *buf, size_t off, u32 len);
int ndkc_post_send_op(struct ndkc_ep *ep, struct ndkc_op *op,
		      enum ib_wr_opcode opcode, int flags, struct ib_sge *sge,
		      int num, u32 imm_or_rkey);
int ndkc_post_rdma_sge(struct ndkc_ep *ep, struct ndkc_op *op,
		       enum ib_wr_opcode opcode, int flags, struct ib_sge *sge,
		       int num, u64 raddr, u32 rkey, u32 imm_or_rkey);
int ndkc_post_rdma(struct ndkc_ep *ep, struct ndkc_op *op,
		   enum ib_wr_opcode opcode, const struct ndkc_buf *buf,
		   size_t off, u32 len, u64 raddr, u32 rkey);
int ndkc_post_atomic(struct ndkc_ep *ep, struct ndkc_op *op,
		     enum ib_wr_opcode opcode, const struct ndkc_buf *buf,
		     u64 raddr, u32 rkey, u64 compare_add, u64 swap);
struct ndkc_mr *ndkc_mr(struct kunit *test, struct ib_pd *pd,
			enum ib_mr_type type, u32 pages);
int ndkc_map(struct ndkc_mr *mr, struct ndkc_buf *buf, size_t off, size_t len);
int ndkc_post_reg(struct ndkc_ep *ep, struct ndkc_op *op, struct ndkc_mr *mr,
		  u32 key, int access, int flags);
int ndkc_post_inv(struct ndkc_ep *ep, struct ndkc_op *op, u32 key, int flags);
struct ndkc_mr *ndkc_registered(struct kunit *test, struct ndkc_ep *ep,
				struct ndkc_buf *buf, int access);

#define NDKC_REMOTE_ALL							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |		\
	 IB_ACCESS_REMOTE_WRITE)

/* Waits until @so; false after the limit. */
#define NDKC_WAIT_UNTIL(so)						\
({									\
	unsigned long until_ = jiffies + ndkc_timeout();		\
	bool so_;							\
									\
	while (!(so_ = (so)) && time_before(jiffies, until_))		\
		usleep_range(100, 200);					\
	ndkc_in_time(so_);						\
})

/* Expect that @op completes with @wanted (an ib_wc_status). */
#define NDKC_EXPECT_WC(test, op, wanted)				\
	KUNIT_EXPECT_EQ(test, ndkc_wait(op), (int)(wanted))
#define NDKC_ASSERT_WC(test, op, wanted)				\
	KUNIT_ASSERT_EQ(test, ndkc_wait(op), (int)(wanted))

#endif /* NDKC_FIXTURE_H */
