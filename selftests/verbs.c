// SPDX-License-Identifier: GPL-2.0
/*
 * verbs TEST DEVICE ADDRESS: one test of the promises to a program on
 * libibverbs and librdmacm, about its memory and its events.
 *
 * A test has two processes, children of this one. For tests of memory the peer
 * writes into the owner's memory, over and over, while the owner takes that
 * memory away in some way. Exit 0, or 1 with a line that names the error, or 77
 * if this machine lacks what the test needs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

#define SIZE		(64UL << 10)
#define HUGE_SIZE	(2UL << 20)
#define DEPTH		8
#define PORT		"7191"
#define WATCH_MS	200
#define SKIPPED		77
#define REMOTE_WRITE	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define ANONYMOUS	(MAP_PRIVATE | MAP_ANONYMOUS)

#define die(...)	do { printf(__VA_ARGS__); puts(""); fflush(stdout); _exit(1); } while (0)
#define need(what)	do { if (!(what)) die("%s: %s", #what, strerror(errno)); } while (0)
#define load(from)	__atomic_load_n(&(from), __ATOMIC_ACQUIRE)
#define store(to, n)	__atomic_store_n(&(to), n, __ATOMIC_RELEASE)

/* The memory that the processes share. */
static struct shared {
	u64 addr;
	u32 rkey, size;
	u32 number;		/* of a queue pair */
	bool listens, is_ready, stop, ended;
	int status;		/* of the first write that failed, or of the stranger's connect */
	u32 written;		/* number of successful writes */
	u32 turn;		/* number of sends wanted */
} *shared;

struct end {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
};

static const char *device, *address;

static u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000UL + t.tv_nsec / 1000000;
}

static void sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

/* A wait that takes longer is a hang: two minutes, times NDK_SLOW. */
static u32 patience_ms(void)
{
	const char *slow = getenv("NDK_SLOW");
	u32 times = slow ? strtoul(slow, NULL, 10) : 1;

	return 120000 * (times ?: 1);
}

/* Waits until `what` is true, for patience_ms() at most. */
#define wait_until(what) do {						\
	u64 end_ = now_ms() + patience_ms();			\
	while (!(what)) {						\
		if (now_ms() > end_)					\
			die("in vain: %s", #what);			\
		sleep_ms(1);						\
	}								\
} while (0)

/*
 * Waits for the end of the test, without a limit: the caller of the program
 * ends it after its time, and this process with it.
 */
static void wait_for_stop(void)
{
	while (!load(shared->stop))
		sleep_ms(10);
}

/* --- connections */

static struct rdma_addrinfo *resolve(int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;

	need(!rdma_getaddrinfo(address, PORT, &hints, &res));
	return res;
}

/* Makes a queue pair for @id, with a completion queue that has a channel. */
static void equip(struct end *e, struct rdma_cm_id *id, bool with_srq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 2 * DEPTH, .max_recv_wr = 16, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	e->id = id;
	need(e->channel = ibv_create_comp_channel(id->verbs));
	need(e->cq = ibv_create_cq(id->verbs, 64, NULL, e->channel, 0));
	if (with_srq) {
		need(e->srq = ibv_create_srq(id->pd, &srq));
		attr.srq = e->srq;
	}
	attr.send_cq = e->cq;
	attr.recv_cq = e->cq;
	need(!rdma_create_qp(id, id->pd, &attr));
}

static void serve(struct end *e)
{
	struct rdma_addrinfo *res = resolve(RAI_PASSIVE);
	struct rdma_cm_id *listener, *id;

	need(!rdma_create_ep(&listener, res, NULL, NULL));
	need(!rdma_listen(listener, 1));
	store(shared->listens, true);
	need(!rdma_get_request(listener, &id));
	equip(e, id, false);
	need(!rdma_accept(id, NULL));
	rdma_destroy_ep(listener);
}

static void call(struct end *e, bool with_srq)
{
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	wait_until(load(shared->listens));
	res = resolve(0);
	need(!rdma_create_ep(&id, res, NULL, NULL));
	if (strcmp(ibv_get_device_name(id->verbs->device), device))
		die("it goes over %s", ibv_get_device_name(id->verbs->device));
	equip(e, id, with_srq);
	need(!rdma_connect(id, NULL));
}

/* --- the writer */

static int post(struct end *e, struct ibv_mr *mr, enum ibv_wr_opcode opcode, int flags)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, shared->size, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED | flags }, *bad;

	if (opcode == IBV_WR_SEND)
		sge.length = 64;
	wr.wr.rdma.remote_addr = shared->addr;
	wr.wr.rdma.rkey = shared->rkey;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

/* Writes number after number all over the memory, until failure or stop. */
static void writer(void)
{
	struct end e = {};
	struct ibv_wc wc;
	struct ibv_mr *mr;
	int posted = 0;
	u8 *from;

	serve(&e);
	wait_until(load(shared->is_ready));
	need((from = mmap(NULL, shared->size, PROT_READ | PROT_WRITE,
			  ANONYMOUS, -1, 0)) != MAP_FAILED);
	need(mr = ibv_reg_mr(e.id->pd, from, shared->size, 0));
	while (!load(shared->stop) && !load(shared->status)) {
		for (; posted < DEPTH; posted++) {
			memset(from, from[0] % 255 + 1, shared->size);
			need(!post(&e, mr, IBV_WR_RDMA_WRITE, 0));
		}
		while (ibv_poll_cq(e.cq, 1, &wc) == 1) {
			posted--;
			if (wc.status && !shared->status)
				store(shared->status, wc.status);
			if (!wc.status)
				store(shared->written, shared->written + 1);
		}
	}
	store(shared->ended, true);
}

/* --- the owner of the memory */

static struct ibv_mr *offer(struct end *e, void *to, size_t size)
{
	struct ibv_mr *mr;

	need(mr = ibv_reg_mr(e->id->pd, to, size, REMOTE_WRITE));
	shared->addr = (uintptr_t)to;
	shared->rkey = mr->rkey;
	shared->size = size;
	store(shared->is_ready, true);
	return mr;
}

static u8 *memory(size_t size, int flags)
{
	u8 *p = mmap(NULL, size, PROT_READ | PROT_WRITE, ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED && flags)
		_exit(SKIPPED);
	need(p != MAP_FAILED);
	memset(p, 0, size);
	return p;
}

static bool changes(const u8 *p)
{
	u8 was = load(*p);
	u64 end = now_ms() + patience_ms();

	while (load(*p) == was && now_ms() < end)
		sleep_ms(1);
	return load(*p) != was;
}

/* Waits until writes that began after this call have ended. */
static void more_written(void)
{
	u32 was = load(shared->written);

	wait_until(load(shared->written) - was > 2 * DEPTH);
}

/* Returns true if the memory does not change for a while. */
static bool is_still(const u8 *p, size_t size)
{
	u8 *copy = malloc(size);
	bool same = true;
	u64 end = now_ms() + WATCH_MS;

	need(copy);
	memcpy(copy, p, size);
	while (same && now_ms() < end)
		same = !memcmp(copy, p, size);
	free(copy);
	return same;
}

static void connect_and_offer(struct end *e, struct ibv_mr **mr, u8 **p, size_t size, int flags)
{
	*p = memory(size, flags);
	call(e, false);
	*mr = offer(e, *p, size);
	if (!changes(*p) || !changes(*p + size - 1))
		die("nothing is written");
}

static void test_dereg(void)
{
	struct end e = {};
	struct ibv_mr *mr;
	u8 *p;

	connect_and_offer(&e, &mr, &p, SIZE, 0);
	need(!ibv_dereg_mr(mr));
	if (!is_still(p, SIZE))
		die("it is written to after its deregistration");
	wait_until(load(shared->ended));
	if (shared->status != IBV_WC_REM_ACCESS_ERR)
		die("the writer got %s", ibv_wc_status_str(shared->status));
}

/* Memory that is mapped in place of registered memory is not registered. */
static void test_munmap(void)
{
	struct end e = {};
	struct ibv_mr *mr;
	u8 *p;
	size_t i;

	connect_and_offer(&e, &mr, &p, SIZE, 0);
	need(mmap(p, SIZE, PROT_READ | PROT_WRITE, ANONYMOUS | MAP_FIXED, -1, 0) == p);
	more_written();
	if (!is_still(p, SIZE))
		die("what was mapped in its place is written to");
	for (i = 0; i < SIZE; i++) {
		if (p[i])
			die("byte %zu of what was mapped in its place is %u", i, p[i]);
	}
	need(!munmap(p, SIZE));
	more_written();
	if (load(shared->status))
		die("the registration went, too: %s", ibv_wc_status_str(shared->status));
	need(!ibv_dereg_mr(mr));
	wait_until(load(shared->ended));
}

/* The registered pages move with the mapping. */
static void test_mremap(void)
{
	u8 *p, *q, *r;
	struct end e = {};
	struct ibv_mr *mr;

	connect_and_offer(&e, &mr, &p, SIZE, 0);
	q = memory(SIZE, 0);
	need((r = mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, q)) == q);
	if (!changes(r) || !changes(r + SIZE - 1))
		die("the memory has moved, and what is written to it has not");
	need(!ibv_dereg_mr(mr));
	if (!is_still(r, SIZE))
		die("it is written to after its deregistration");
}

/* A child has its own copy; the parent keeps the pages. */
static void test_fork(void)
{
	int status = 0;
	struct end e = {};
	struct ibv_mr *mr;
	u8 *p;
	pid_t pid;

	connect_and_offer(&e, &mr, &p, SIZE, 0);
	pid = fork();
	if (!pid) {
		bool still = is_still(p, SIZE);

		p[0]++;
		_exit(!still);
	}
	need(pid > 0);
	/* The parent's write must not go to a new page. */
	store(p[SIZE / 2], 0);
	if (!changes(p + SIZE / 2) || !changes(p) || !changes(p + SIZE - 1))
		die("after a fork the parent has not the pages any more");
	need(waitpid(pid, &status, 0) == pid);
	if (status)
		die("a child's copy is written to");
	if (!changes(p))
		die("after the child's end nothing is written");
	need(!ibv_dereg_mr(mr));
}

static void test_exit(void)
{
	struct end e = {};
	struct ibv_mr *mr;
	u8 *p;

	connect_and_offer(&e, &mr, &p, SIZE, 0);
	_exit(0);
}

static void test_huge(void)
{
	struct end e = {};
	struct ibv_mr *mr;
	u8 *p;

	connect_and_offer(&e, &mr, &p, HUGE_SIZE, MAP_HUGETLB);
	need(!ibv_dereg_mr(mr));
	if (!is_still(p, HUGE_SIZE))
		die("it is written to after its deregistration");
}

/* Read-only memory can be registered for reading, and is not written to. */
static void test_readonly(void)
{
	struct end e = {};
	struct ibv_mr *mr;
	u8 *p;
	size_t i;

	call(&e, false);
	p = memory(SIZE, 0);
	need(!mprotect(p, SIZE, PROT_READ));
	mr = ibv_reg_mr(e.id->pd, p, SIZE, REMOTE_WRITE);
	if (mr || errno != EFAULT)
		die("read-only memory for writing: %s", mr ? "accepted" : strerror(errno));
	need(mr = ibv_reg_mr(e.id->pd, p, SIZE, IBV_ACCESS_REMOTE_READ));
	need(!ibv_dereg_mr(mr));
	need(mr = ibv_reg_mr(e.id->pd, p, SIZE, 0));
	/* The peer's write to this memory is refused. */
	shared->addr = (uintptr_t)p;
	shared->rkey = mr->rkey;
	shared->size = SIZE;
	store(shared->is_ready, true);
	wait_until(load(shared->ended));
	if (shared->status != IBV_WC_REM_ACCESS_ERR)
		die("the writer got %s", ibv_wc_status_str(shared->status));
	for (i = 0; i < SIZE; i++) {
		if (p[i])
			die("byte %zu is written to", i);
	}
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	size_t i;

	need(list);
	for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), device); i++)
		;
	need(list[i]);
	need(context = ibv_open_device(list[i]));
	ibv_free_device_list(list);
	return context;
}

/* A dma-buf is refused as unsupported, not as bad memory. */
static void test_dmabuf(void)
{
	struct ibv_pd *pd;

	need(pd = ibv_alloc_pd(open_device()));
	if (ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, 0, REMOTE_WRITE) || errno != EOPNOTSUPP)
		die("a dma-buf: %s", strerror(errno));
}

/* The control group of this process allows MOST objects. */
static void test_rdma_max(void)
{
	struct ibv_context *context = open_device();
	int most = atoi(getenv("MOST") ?: "0"), n = 0;

	while (n <= most && ibv_alloc_pd(context))
		n++;
	if (!n || n > most)
		die("%d of at most %d objects", n, most);
	if (errno != EAGAIN)
		die("one more: %s", strerror(errno));
}

/* Charges a queue to this process's control group: the caller looks there. */
static void test_charged(void)
{
	struct ibv_cq *cq;

	need(cq = ibv_create_cq(open_device(), 1 << 19, NULL, NULL, 0));
	need(!ibv_destroy_cq(cq));
}

/* --- queues in memory that is shared with the kernel */

/* A queue pair on a new context, with a completion queue for `entries`. */
static struct ibv_qp *qp_with(int entries, u32 receives, struct ibv_srq_init_attr *srq)
{
	struct ibv_context *context = open_device();
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = receives, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;
	struct ibv_pd *pd;

	need(pd = ibv_alloc_pd(context));
	need(attr.send_cq = ibv_create_cq(context, entries, NULL, NULL, 0));
	attr.recv_cq = attr.send_cq;
	if (srq)
		need(attr.srq = ibv_create_srq(pd, srq));
	need(qp = ibv_create_qp(pd, &attr));
	return qp;
}

static void go_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
	errno = ibv_modify_qp(qp, &attr, mask);
	need(!errno);
}

/* Posts receives with these numbers. Returns the result of the last post. */
static int receive(struct ibv_qp *qp, struct ibv_srq *srq, u64 from, u64 to)
{
	struct ibv_recv_wr wr = {}, *bad;
	int ret = 0;

	for (wr.wr_id = from; wr.wr_id < to && !ret; wr.wr_id++)
		ret = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
	return ret;
}

/* Expects the flushed receives with these numbers, and no other completion. */
static void expect(struct ibv_cq *cq, u64 from, u64 to)
{
	struct ibv_wc wc;

	for (; from < to; from++) {
		wait_until(ibv_poll_cq(cq, 1, &wc) == 1);
		if (wc.wr_id != from || wc.status != IBV_WC_WR_FLUSH_ERR)
			die("receive %lu: %s, not %llu", wc.wr_id, ibv_wc_status_str(wc.status),
			    from);
	}
	sleep_ms(WATCH_MS / 4);
	if (ibv_poll_cq(cq, 1, &wc))
		die("receive %lu: %s, which is one too many", wc.wr_id,
		    ibv_wc_status_str(wc.status));
}

/* Each accepted receive ends once, also a late one, through each resize. */
static void test_queues(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_qp *qp = qp_with(300, 200, NULL), *with_srq = qp_with(4, 0, &init);
	struct ibv_srq_attr attr = { .max_wr = 40 };
	struct ibv_srq *srq = with_srq->srq;

	go_to(qp, IBV_QPS_INIT);
	if (receive(qp, NULL, 0, 300) != ENOMEM)
		die("a queue for 200 receives takes more");
	go_to(qp, IBV_QPS_ERR);
	expect(qp->recv_cq, 0, 200);
	need(!receive(qp, NULL, 200, 350));
	expect(qp->recv_cq, 200, 350);
	/* A reset forgets the receives. */
	go_to(qp, IBV_QPS_RESET);
	go_to(qp, IBV_QPS_INIT);
	need(!receive(qp, NULL, 350, 360));
	go_to(qp, IBV_QPS_RESET);
	go_to(qp, IBV_QPS_INIT);
	need(!receive(qp, NULL, 360, 420));
	go_to(qp, IBV_QPS_ERR);
	/* With 60 completions: to fewer entries, to as many, and to more. */
	if (ibv_resize_cq(qp->recv_cq, 59) != EINVAL)
		die("a queue of 59 entries takes 60");
	need(!ibv_resize_cq(qp->recv_cq, 60));
	need(!ibv_resize_cq(qp->recv_cq, 5000));
	need(!receive(qp, NULL, 420, 600));
	expect(qp->recv_cq, 360, 600);

	if (receive(NULL, srq, 0, 17) != ENOMEM)
		die("a shared queue for 16 receives takes more");
	need(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	if (receive(NULL, srq, 16, 41) != ENOMEM)
		die("a shared queue for 40 receives takes more");
	attr.max_wr = 39;
	if (ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) != EINVAL)
		die("a shared queue for 39 receives takes 40");
	need(!ibv_query_srq(srq, &attr));
	if (attr.max_wr != 40)
		die("a shared queue for %u receives, not 40", attr.max_wr);
	need(!ibv_destroy_qp(with_srq) && !ibv_destroy_srq(srq));
	need(!receive(qp, NULL, 600, 610) && !ibv_destroy_qp(qp));
}

/* An offset of the device's file names the memory of a queue that exists. */
static void test_mmap(void)
{
	struct ibv_context *context = open_device();
	const int prot = PROT_READ | PROT_WRITE;
	size_t page = sysconf(_SC_PAGESIZE);
	struct ibv_cq *cq, *other;
	u32 *p, *q;

	/* Each queue has one page: the first two pages. */
	need(cq = ibv_create_cq(context, 64, NULL, NULL, 0));
	need(other = ibv_create_cq(context, 64, NULL, NULL, 0));
	need((p = mmap(NULL, page, prot, MAP_SHARED, context->cmd_fd, 0)) != MAP_FAILED);
	need((q = mmap(NULL, page, prot, MAP_SHARED, context->cmd_fd, page)) != MAP_FAILED);
	if (p[0] || p[1] || q[0] || q[1])
		die("the memory of a new queue is not blank");
	if (mmap(NULL, page, prot, MAP_PRIVATE, context->cmd_fd, 0) != MAP_FAILED ||
	    errno != EINVAL)
		die("a mapping of one's own: %s", strerror(errno));
	if (mmap(NULL, 2 * page, prot, MAP_SHARED, context->cmd_fd, 0) != MAP_FAILED ||
	    errno != EINVAL)
		die("the memory of two queues at once: %s", strerror(errno));
	if (mmap(NULL, page, prot, MAP_SHARED, context->cmd_fd, 2 * page) != MAP_FAILED ||
	    errno != EINVAL)
		die("the memory of no queue: %s", strerror(errno));
	if (mremap(p, page, 2 * page, MREMAP_MAYMOVE) != MAP_FAILED)
		die("a mapping that grows");
	/* Another context has other memory. */
	if (mmap(NULL, page, prot, MAP_SHARED, open_device()->cmd_fd, 0) != MAP_FAILED)
		die("the memory of another context's queue");
	need(!ibv_destroy_cq(cq));
	if (mmap(NULL, page, prot, MAP_SHARED, context->cmd_fd, 0) != MAP_FAILED || errno != EINVAL)
		die("the memory of a queue that is not there any more: %s", strerror(errno));
	/* The mapping of a destroyed queue stays, and has no effect. */
	store(p[1], 7);
	need(cq = ibv_create_cq(context, 64, NULL, NULL, 0));
	need(!ibv_destroy_cq(cq) && !ibv_destroy_cq(other));
	store(q[1], 7);
}

/* --- rights, numbers and owners of queue pairs */

static struct ibv_qp *new_qp(void)
{
	struct ibv_context *context = open_device();
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;
	struct ibv_pd *pd;

	need(pd = ibv_alloc_pd(context));
	need(attr.send_cq = ibv_create_cq(context, 2, NULL, NULL, 0));
	attr.recv_cq = attr.send_cq;
	need(qp = ibv_create_qp(pd, &attr));
	return qp;
}

/* Asks for rights, and a state unless that is negative. Returns the rights. */
static unsigned int ask(struct ibv_qp *qp, int state, unsigned int access)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .qp_access_flags = access };
	struct ibv_qp_init_attr init;
	int mask = IBV_QP_ACCESS_FLAGS;

	if (state >= 0)
		mask |= IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX;
	errno = ibv_modify_qp(qp, &attr, mask);
	need(!errno);
	need(!ibv_query_qp(qp, &attr, IBV_QP_ACCESS_FLAGS, &init));
	return attr.qp_access_flags;
}

/*
 * A queue pair that leaves RESET without rights gets all, as rdma_cm does not
 * know the program's yet. Rights that are asked for later hold.
 */
static void test_access(void)
{
	const unsigned int write = IBV_ACCESS_REMOTE_WRITE, read = IBV_ACCESS_REMOTE_READ;
	const unsigned int all = write | read | IBV_ACCESS_REMOTE_ATOMIC;
	const struct {
		int state;
		unsigned int access, holds;
	} steps[] = {
		{ IBV_QPS_INIT, 0, all },
		{ IBV_QPS_INIT, 0, 0 },
		{ IBV_QPS_INIT, read, read },
		{ -1, write, write },
		{ -1, 0, 0 },
		{ IBV_QPS_INIT, read | write, all },
		{ IBV_QPS_RTR, 0, 0 },
		{ IBV_QPS_RESET, 0, 0 },
		{ IBV_QPS_INIT, read, read },
		{ IBV_QPS_RESET, 0, 0 },
		{ IBV_QPS_INIT, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE },
	};
	struct ibv_qp *qp = new_qp();

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		unsigned int holds = ask(qp, steps[i].state, steps[i].access);

		if (holds != steps[i].holds)
			die("step %zu: %#x and not %#x", i, holds, steps[i].holds);
	}
}

/* The number of a queue pair is not reused soon. */
static void test_numbers(void)
{
	struct ibv_qp *qp = new_qp();
	u32 first = qp->qp_num;

	for (int i = 0; i < 100; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = qp->send_cq, .recv_cq = qp->recv_cq, .qp_type = IBV_QPT_RC,
			.cap = {
				.max_send_wr = 1, .max_recv_wr = 1,
				.max_send_sge = 1, .max_recv_sge = 1,
			},
		};
		struct ibv_pd *pd = qp->pd;

		need(!ibv_destroy_qp(qp));
		need(qp = ibv_create_qp(pd, &attr));
		if (qp->qp_num == first)
			die("%#x again after %d", first, i);
	}
}

/* Returns the error of a connect with that queue pair, without a listener. */
static int connect_with(u32 number)
{
	struct rdma_conn_param param = {
		.qp_num = number, .initiator_depth = 1, .responder_resources = 1,
	};
	struct rdma_addrinfo *res = resolve(0);
	struct rdma_cm_id *id;

	need(!rdma_create_ep(&id, res, NULL, NULL));
	return rdma_connect(id, &param) ? errno : 0;
}

static void stranger(void)
{
	wait_until(load(shared->is_ready));
	shared->status = connect_with(shared->number);
	store(shared->turn, 1);
	wait_for_stop();
}

/* Only the process that made a waiting queue pair can connect it. */
static void test_owner(void)
{
	struct ibv_qp *qp = new_qp();
	int error;

	ask(qp, IBV_QPS_INIT, IBV_ACCESS_REMOTE_READ);
	shared->number = qp->qp_num;
	store(shared->is_ready, true);
	wait_until(load(shared->turn));
	if (shared->status != EINVAL)
		die("another process: %s", strerror(shared->status));
	error = connect_with(qp->qp_num);
	if (error != ECONNREFUSED)
		die("its own process: %s", strerror(error));
}

/* --- events */

/* Returns true if an event of the channel comes within that time. */
static bool notified(struct end *e, int ms)
{
	struct pollfd fd = { e->channel->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) != 1)
		return false;
	need(!ibv_get_cq_event(e->channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return true;
}

static bool async_event(struct end *e, enum ibv_event_type type, int ms)
{
	struct pollfd fd = { e->id->verbs->async_fd, POLLIN, 0 };
	struct ibv_async_event event;
	u64 end = now_ms() + ms;
	bool found = false;

	/* Looks once more when the time is over. */
	for (bool is_over = false; !found && !is_over;) {
		is_over = now_ms() >= end;
		if (poll(&fd, 1, 100) != 1)
			continue;
		need(!ibv_get_async_event(e->id->verbs, &event));
		found = event.event_type == type;
		ibv_ack_async_event(&event);
	}
	return found;
}

static void post_receives(struct end *e, struct ibv_mr *mr, int number)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (number--)
		need(!(e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) :
				ibv_post_recv(e->id->qp, &wr, &bad)));
}

/* The peer of tests of events: one send without a solicited event, two with. */
static void sender(void)
{
	struct end e = {};
	struct ibv_mr *mr;
	struct ibv_wc wc;
	unsigned int i;

	serve(&e);
	need(mr = ibv_reg_mr(e.id->pd, memory(SIZE, 0), SIZE, 0));
	shared->size = 64;
	for (i = 0; i < 3; i++) {
		wait_until(load(shared->turn) > i);
		need(!post(&e, mr, IBV_WR_SEND, i ? IBV_SEND_SOLICITED : 0));
		wait_until(ibv_poll_cq(e.cq, 1, &wc) == 1);
		if (wc.status)
			die("send %u: %s", i, ibv_wc_status_str(wc.status));
	}
	wait_for_stop();
	store(shared->ended, true);
}

static void test_solicited(void)
{
	struct end e = {};
	struct ibv_mr *mr;
	struct ibv_wc wc;

	call(&e, false);
	need(mr = ibv_reg_mr(e.id->pd, memory(SIZE, 0), SIZE, IBV_ACCESS_LOCAL_WRITE));
	post_receives(&e, mr, 3);
	need(!ibv_req_notify_cq(e.cq, 1));
	store(shared->turn, 1);
	wait_until(ibv_poll_cq(e.cq, 1, &wc) == 1);
	if (notified(&e, WATCH_MS))
		die("a plain receive satisfied a solicited arm");
	store(shared->turn, 2);
	if (!notified(&e, patience_ms()))
		die("a solicited receive did not satisfy a solicited arm");
	wait_until(ibv_poll_cq(e.cq, 1, &wc) == 1);
	/* The queue is not armed again. */
	store(shared->turn, 3);
	wait_until(ibv_poll_cq(e.cq, 1, &wc) == 1);
	if (notified(&e, WATCH_MS))
		die("there was an event without an arm");
	/* An error is an event for either arm. */
	need(!ibv_req_notify_cq(e.cq, 1));
	post_receives(&e, mr, 1);
	need(!rdma_disconnect(e.id));
	if (!notified(&e, patience_ms()))
		die("an error did not satisfy a solicited arm");
	store(shared->stop, true);
}

/* The messages that waited for a receive; -1 if not ndk, and not counted. */
static long waits(void)
{
	char path[128];
	long count = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/rnr_waits",
		 device);
	file = fopen(path, "r");
	if (!file && strncmp(device, "ndk", 3))
		return -1;
	need(file);
	need(fscanf(file, "%ld", &count) == 1);
	fclose(file);
	return count;
}

/* A message that finds no receive takes a later one, without a call. */
static void late(bool with_srq)
{
	struct end e = {};
	struct ibv_mr *mr;
	struct ibv_wc wc;
	long before;
	u32 i;

	call(&e, with_srq);
	need(mr = ibv_reg_mr(e.id->pd, memory(SIZE, 0), SIZE, IBV_ACCESS_LOCAL_WRITE));
	for (i = 1; i <= 3; i++) {
		before = waits();
		store(shared->turn, i);
		if (before < 0)
			sleep_ms(WATCH_MS / 4);
		else
			wait_until(waits() > before);
		if (ibv_poll_cq(e.cq, 1, &wc))
			die("a completion without a receive");
		post_receives(&e, mr, 1);
		wait_until(ibv_poll_cq(e.cq, 1, &wc) == 1);
		if (wc.status || wc.byte_len != 64)
			die("receive %u: %s, %u bytes", i, ibv_wc_status_str(wc.status),
			    wc.byte_len);
	}
	store(shared->stop, true);
}

static void test_late(void)
{
	late(false);
}

static void test_late_srq(void)
{
	late(true);
}

static void test_srq_limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct end e = {};
	struct ibv_mr *mr;
	struct ibv_wc wc;

	call(&e, true);
	need(mr = ibv_reg_mr(e.id->pd, memory(SIZE, 0), SIZE, IBV_ACCESS_LOCAL_WRITE));
	post_receives(&e, mr, 4);
	need(!ibv_modify_srq(e.srq, &attr, IBV_SRQ_LIMIT));
	store(shared->turn, 2);
	wait_until(ibv_poll_cq(e.cq, 1, &wc) == 1);
	wait_until(ibv_poll_cq(e.cq, 1, &wc) == 1);
	if (async_event(&e, IBV_EVENT_SRQ_LIMIT_REACHED, WATCH_MS))
		die("the limit was reached too early");
	store(shared->turn, 3);
	if (!async_event(&e, IBV_EVENT_SRQ_LIMIT_REACHED, patience_ms()))
		die("the limit was reached, and there was no event");
	store(shared->stop, true);
}

/* Takes the link of the device down and up. */
static void test_port(void)
{
	struct end e = {};
	char line[200];

	call(&e, false);
	snprintf(line, sizeof(line), "ip link set %s down", getenv("NETDEV"));
	need(!system(line));
	if (!async_event(&e, IBV_EVENT_PORT_ERR, patience_ms()))
		die("no event of a port that went down");
	snprintf(line, sizeof(line), "ip link set %s up", getenv("NETDEV"));
	need(!system(line));
	if (!async_event(&e, IBV_EVENT_PORT_ACTIVE, patience_ms()))
		die("no event of a port that came up");
}

/* Deletes the device: its open objects then answer with errors. */
static void test_fatal(void)
{
	struct ibv_wc wc;
	struct end e = {};
	char line[200];

	call(&e, false);
	snprintf(line, sizeof(line), "rdma link delete %s", device);
	need(!system(line));
	if (!async_event(&e, IBV_EVENT_DEVICE_FATAL, patience_ms()))
		die("no event of a device that went");
	if (ibv_req_notify_cq(e.cq, 0) != EIO)
		die("its completion queue can still be armed");
	/* Shared memory stays; only flushed requests may complete. */
	while (ibv_poll_cq(e.cq, 1, &wc) == 1)
		if (wc.status != IBV_WC_WR_FLUSH_ERR)
			die("a completion: %s", ibv_wc_status_str(wc.status));
	if (ibv_reg_mr(e.id->pd, memory(SIZE, 0), SIZE, 0) || errno != EIO)
		die("registering on it: %s", strerror(errno));
}

/* The peer of tests that need only a connection. */
static void idler(void)
{
	struct end e = {};

	serve(&e);
	wait_for_stop();
}

/* The peer of tests that need no peer. */
static void nobody(void)
{
}

static const struct test {
	const char *name;
	void (*owner)(void);
	void (*peer)(void);
} tests[] = {
	{ "dereg", test_dereg, writer },
	{ "munmap", test_munmap, writer },
	{ "mremap", test_mremap, writer },
	{ "fork", test_fork, writer },
	{ "exit", test_exit, writer },
	{ "huge", test_huge, writer },
	{ "readonly", test_readonly, writer },
	{ "dmabuf", test_dmabuf, nobody },
	{ "rdma-max", test_rdma_max, nobody },
	{ "charged", test_charged, nobody },
	{ "access", test_access, nobody },
	{ "numbers", test_numbers, nobody },
	{ "owner", test_owner, stranger },
	{ "queues", test_queues, nobody },
	{ "mmap", test_mmap, nobody },
	{ "late", test_late, sender },
	{ "late-srq", test_late_srq, sender },
	{ "solicited", test_solicited, sender },
	{ "srq-limit", test_srq_limit, sender },
	{ "port", test_port, idler },
	{ "fatal", test_fatal, idler },
	{}
};

/* Ends the peer. In "exit" the writer has to end by itself, with an error. */
static int reap(const struct test *t, pid_t peer, int status)
{
	u64 end = now_ms() + patience_ms();
	int of_peer = 0;

	if (status) {
		kill(peer, SIGKILL);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	store(shared->stop, t->owner != test_exit);
	while (!waitpid(peer, &of_peer, WNOHANG)) {
		if (now_ms() > end) {
			kill(peer, SIGKILL);
			die("its peer does not end");
		}
		sleep_ms(10);
	}
	if (of_peer)
		die("its peer ended with %#x", of_peer);
	if (t->owner == test_exit && !shared->status)
		die("the writer was not told");
	return 0;
}

int main(int argc, char **argv)
{
	const struct test *t = tests;
	pid_t owner, peer;
	int status = 0;

	if (argc != 4 || !getenv("NETDEV"))
		die("usage: NETDEV=NAME verbs TEST DEVICE ADDRESS");
	while (t->name && strcmp(t->name, argv[1]))
		t++;
	if (!t->name)
		die("no test %s", argv[1]);
	device = argv[2];
	address = argv[3];
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(shared != MAP_FAILED);
	peer = fork();
	if (!peer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		t->peer();
		_exit(0);
	}
	owner = fork();
	if (!owner) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		t->owner();
		_exit(0);
	}
	need(peer > 0 && owner > 0);
	need(waitpid(owner, &status, 0) == owner);
	return reap(t, peer, status);
}
