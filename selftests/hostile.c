// SPDX-License-Identifier: GPL-2.0
/*
 * hostile: a hostile program, on /dev/infiniband/uverbs0 and rdma_cm.
 *
 * Several threads make each call that a program may make; all threads share
 * some files, other files belong to one thread. Most calls are plausible, with
 * handles that worked before: so queue pairs of this process connect to one
 * another and move data while other threads destroy them, or unmap the memory.
 * One call in five is such a call with some bytes changed, and some are random
 * from end to end. Now and then a thread replaces a file, or a child goes on
 * with the files that it inherited.
 *
 * Failures (exit 1): unregistered memory changes, in this process or in one
 * that never had the device open; a completion has a number that no queue pair
 * of this program ever had, or a value in an unused field; the kernel accepts
 * its own key, or a queue pair of another program; a call does not return. Exit
 * 2: too few calls succeeded for a test.
 *
 * Queues that share memory with the kernel are used as libhfi1verbs does, and
 * spoilt: a thread checks completions in its own files, as long as it has not
 * written to their queue.
 *
 * Changed calls name addresses far from all others, and their answers go there:
 * the checks' data is out of their reach. A call that makes a file or a queue
 * pair keeps the place of its answer, so that the program knows each.
 *
 * hostile [-d UVERBS] [-c RDMA_CM] [-t THREADS] [-n CALLS] [-s SEED] [-a ADDRESS] [-i] [-k SECONDS]
 *         [-l SECONDS] [-q FILE [-p PORT]... [-b PORT]]
 * -i: a signal every 3 ms instead of 100. -k: runs until it is killed after
 * that time. -l: ends by itself after that time, at the latest. NDK_SLOW of the
 * environment multiplies the times of signals and of a hang.
 *
 * -q: uses rdma_cm alone, without a queue pair: it connects and accepts with
 * queue pairs of other programs. The file has their numbers, one a line, and is
 * read again and again. Other programs listen at the ports of -p, and connect
 * to the port of -b. Such a call that succeeds is a failure (exit 1), too. The
 * program goes on beyond the time of -l, for a hang's time at most, until ten
 * connects, and with -b an accept, were refused.
 *
 * Each thread draws its calls from the seed; their effects depend on the other
 * threads.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl_cmds.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define LENGTH(a)	(sizeof(a) / sizeof((a)[0]))
#define add(to, n)	__atomic_add_fetch(&(to), n, __ATOMIC_RELAXED)
#define load(from)	__atomic_load_n(&(from), __ATOMIC_RELAXED)
#define die(...)	do { dprintf(1, "hostile: " __VA_ARGS__); _exit(1); } while (0)

/*
 * Memory to register, the place it moves to, and the place of answers to
 * changed calls. An address of these with a changed half or bit reaches no
 * memory: User Mode Linux has libraries from 1 GiB on.
 */
#define DATA		0x1000f0000000UL
#define DATA_SIZE	(8UL << 20)
#define PIECE		(64UL << 10)
#define ATTIC		0x2000f0000000UL
#define JUNK		0x3000f0000000UL
#define JUNK_SIZE	(2UL << 19)
#define MOST_REGISTERED	(64L << 20)
/* The memory of queues, a place for each object of the first kinds. */
#define RINGS		0x4000f0000000UL
#define RING_SIZE	(64UL << 10)
#define RING(f, kind, i) \
	((void *)(RINGS + ((((f) - files) * MR + (kind)) * MOST + (i)) * RING_SIZE))
#define RINGS_SIZE	((u64)LENGTH(files) * MR * MOST * RING_SIZE)

#define THREADS		16
#define MOST		24		/* objects of a kind in a file */
#define ANY		~0U
#define KERNEL_KEY	0xD1		/* the kernel's local_dma_lkey */
#define KERNEL_QPN	0x800000
#define GOOD_ID		0x1111UL	/* the upper bits of a wr_id, */
#define BAD_ID		0xD1D1UL	/* and of one that must fail */
#define HANGS_SECONDS	(120ULL * slow)
#define CANARY		(128UL << 10)	/* words of the other process */
#define OWN_CANARY	(8UL << 10)
#define OWN_PORTS	4
#define NUMBERS		64		/* queue pairs of other programs */
#define ERRNOS		134

enum { NONE, PD, CQ, QP, SRQ, MR, CHAN, ID, KINDS };
enum { LIVE = 1, USED = 2, CONNECTED = 4, PASSIVE = 8, SPOILT = 16 };
enum { PLAUSIBLE, CHANGED, RANDOM, OTHERS, MODES };

/* Another thread may replace an object as soon as a thread has found it. */
struct object {
	u32 handle, pd, key, rkey, flags;	/* of an ID: its queue pair's handle and file */
	u32 places, words;	/* of a queue in memory shared with the kernel */
	u64 addr, len;		/* of a queue: the offset of its memory */
};

/* An open file of uverbs or rdma_cm; its replacement gets its number. */
struct file {
	int fd, async;
	u32 next[KINDS];
	struct object of[KINDS][MOST];
};

struct worker {
	u64 rng, resp, calls, buf[2048], safe[1024];
	u32 index, mode, row, made, depth, peer_pd;
	struct file *peer;	/* file of the next connection's queue pair, and its domain */
	u32 numbers[NUMBERS], has, used;	/* of other programs */
	bool gentle, is_child, done;
	bool is_due;	/* the event before a connect or an accept has come */
};

/* Counts, also of killed processes, and a bit for each queue pair number. */
static struct shared {
	u64 calls[MODES], ok[MODES], errors[256][ERRNOS], connections, transfers;
	u64 connects, accepts;	/* refused, with queue pairs of others */
	u8 had[2 << 20];
	u8 requests[1 << 16];	/* unanswered ones, by identifier */
} *shared;

static const char *device = "/dev/infiniband/uverbs0", *cm_device = "/dev/infiniband/rdma_cm";
static struct sockaddr_in address = { .sin_family = AF_INET };
static u32 threads = 4, period_ms = 100, slow = 1;
static u64 most = 100000, seed, end, canary[OWN_CANARY];
static struct file files[2 + THREADS], cms[1 + THREADS];
static struct worker workers[THREADS];
static u16 ports[OWN_PORTS + 4];
static u32 known = OWN_PORTS;	/* number of ports, those of others last */
static const char *numbers;	/* file of others' queue pair numbers */
static u16 to_listen_at;
static long registered;

static u64 rnd(struct worker *w, u64 below)
{
	w->rng ^= w->rng >> 12;
	w->rng ^= w->rng << 25;
	w->rng ^= w->rng >> 27;
	return below ? (w->rng * 0x2545F4914F6CDD1DUL >> 11) % below : 0;
}

static bool chance(struct worker *w, u32 percent)
{
	return rnd(w, 100) < percent;
}

static void put(void *to, u64 value, size_t len)
{
	memcpy(to, &value, len);
}

static u32 get(const void *from)
{
	u32 value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static void had(u32 qpn)
{
	__atomic_fetch_or(&shared->had[(qpn & 0xffffff) / 8], 1 << qpn % 8, __ATOMIC_RELAXED);
}

/* Waits: another thread may just have made it, and not have said so yet. */
static bool was_had(u32 qpn)
{
	time_t end = time(NULL) + HANGS_SECONDS / 2;

	/* Signals cut a sleep short. */
	for (; time(NULL) < end; usleep(10000))
		if (load(shared->had[(qpn & 0xffffff) / 8]) & 1 << qpn % 8)
			return true;
	return false;
}

/* Counts a call. Returns true if it succeeded. */
static bool note(struct worker *w, long result)
{
	u32 error = result < 0 ? errno : 0;

	add(shared->errors[w->row][error < ERRNOS ? error : ERRNOS - 1], 1);
	add(shared->calls[w->mode], 1);
	add(shared->ok[w->mode], !error);
	add(w->calls, 1);
	return !error;
}

/* --- objects */

/* Picks an object of the kind and domain with @flags among those of @mask. */
static struct object *pick(struct worker *w, struct file *f, u32 kind, u32 pd, u32 mask, u32 flags)
{
	for (u32 i = 0, start = rnd(w, MOST); i < MOST; i++) {
		struct object *o = &f->of[kind][(start + i) % MOST];

		if ((o->flags & (mask | LIVE)) == (flags | LIVE) && (pd == ANY || o->pd == pd))
			return o;
	}
	return NULL;
}

static struct object *find(struct file *f, u32 kind, u32 handle)
{
	for (struct object *o = f->of[kind]; o < f->of[kind + 1]; o++)
		if (o->flags & LIVE && o->handle == handle)
			return o;
	return NULL;
}

static void forget(struct object *o)
{
	o->flags = 0;
	add(registered, -(long)__atomic_exchange_n(&o->len, 0, __ATOMIC_RELAXED));
}

static struct file *any_file(struct worker *w, bool is_cm)
{
	if (is_cm)
		return &cms[chance(w, 50) ? 0 : 1 + w->index];
	return &files[chance(w, 60) ? rnd(w, 2) : 2 + w->index];
}

/* --- the table of calls */

static void get_event(struct worker *w), start(struct worker *w), read_event(struct worker *w),
	    change_memory(struct worker *w), map_file(struct worker *w),
	    random_call(struct worker *w), replace_file(struct worker *w),
	    fork_child(struct worker *w), post_in_memory(struct worker *w),
	    take_in_memory(struct worker *w), spoil_memory(struct worker *w);

#define EX		IB_USER_VERBS_CMD_FLAG_EXTENDED
#define CM		0x10000		/* a command of rdma_ucm */
#define IO		0x20000		/* a method of RDMA_VERBS_IOCTL */
#define VERB(n, ...)	{ #n, IB_USER_VERBS_CMD_##n, __VA_ARGS__ }
#define EXVERB(n, ...)	{ "EX_" #n, EX | IB_USER_VERBS_EX_CMD_##n, __VA_ARGS__ }
#define UCM(n, ...)	{ "CM_" #n, CM | RDMA_USER_CM_CMD_##n, __VA_ARGS__ }
#define METHOD(o, m, ...) \
	{ "ioctl " #m, IO | UVERBS_OBJECT_##o << 8 | UVERBS_METHOD_##m, __VA_ARGS__ }
#define OTHER(name, weight, function)	{ name, 0, weight, 0, NULL, function }

/* Parts of requests; attributes: objects (new, old), 8 or 4 bytes, answers. */
#define SEND(weight, n, sges, body) \
	VERB(POST_SEND, weight, 0, "x Q =" #n " =" #sges " =56 " body)
#define RECV(weight, n, sges, body) \
	VERB(POST_RECV, weight, 0, "x Q =" #n " =" #sges " =16 " body)
#define WR(sges, op)	"w =" #sges " =" #op " f "
#define RDMA		"=9 a K _20 "
#define SGE(most)	"m l" #most " k "
#define SINK		"m r65536 k "
#define NEW		":0 :0 :1 :0 #0 "
#define H(id, kind)	":" #id " :0 :1 :0 " #kind " _4 "
#define N8(id)		":" #id " :8 :1 :0 "
#define N4(id, n)	":" #id " :4 :1 :0 #" #n " "
#define OUT(id, n, at)	":" #id " :" #n " :1 :0 x" #at " "
#define STATE(item)	"_64 q =0x2009 _16 =15 _4 " item " _4 ,130 _10"
#define PARAM		"N =0 j _248 .8 .0 ,16 ,16 .0 .7 .7 .1 I =0 _8"

enum {
	CONNECT = 2 * KINDS, ACCEPT, REJECT, RESOLVE_ADDR, RESOLVE_ROUTE, BIND, LISTEN,
	QUERY_ROUTE, GET_EVENT, POLL_CQ, TO_INIT, TO_RESET
};

/*
 * The body of a call is written as items, a letter and maybe a number n:
 * _n: n zero bytes; .n :n =n #n: n in 1, 2, 4, 8 bytes; ,n <n: any number
 * below n in 1, 4 bytes; (n ... ): n times; x: the answer's address, plus n;
 * P C Q q S M F I: a handle (Q rather a connected one, F a channel or -1);
 * w: the wr_id of a request; f: its flags, i: with inline; m ln rn k: memory of
 * a region, a part or all of it but at most n bytes, and its key; a b K: the
 * peer's, b aligned; e: any data; d L D: memory to register; N j: a queue pair
 * to connect, and its domain and file; $n: an address, its port that of a
 * listener if n; %: the file, from which another one takes. The first rows make
 * an object of each kind, the second ones end it.
 */
static const struct row {
	const char *name;
	u32 command;
	u8 weight;
	signed char effect;	/* the kind that it makes, or minus the kind it ends */
	const char *body;
	void (*function)(struct worker *w);
} rows[] = {
	[NONE] = OTHER("open", 1, replace_file), [KINDS] = OTHER("fork", 1, fork_child),
	[PD] = VERB(ALLOC_PD, 1, PD, "x"), [KINDS + PD] = VERB(DEALLOC_PD, 1, -PD, "P"),
	[CQ] = VERB(CREATE_CQ, 5, CQ, "x #7 =128 =0 F =0"),
	[KINDS + CQ] = VERB(DESTROY_CQ, 3, -CQ, "x C =0"),
	[QP] = VERB(CREATE_QP, 8, QP, "x #7 P C C =0 =64 =64 =4 =4 =256 ,2 .2 .0 .0"),
	[KINDS + QP] = VERB(DESTROY_QP, 2, -QP, "x q =0"),
	[SRQ] = VERB(CREATE_SRQ, 3, SRQ, "x #7 P =64 =4 =0"),
	[KINDS + SRQ] = VERB(DESTROY_SRQ, 2, -SRQ, "x S =0"),
	[MR] = VERB(REG_MR, 20, MR, "x d L D P =15"), [KINDS + MR] = VERB(DEREG_MR, 5, -MR, "M"),
	[CHAN] = VERB(CREATE_COMP_CHANNEL, 3, CHAN, "x"),
	[KINDS + CHAN] = OTHER("poll, read, close", 35, read_event),
	[ID] = UCM(CREATE_ID, 1, ID, "#7 x :0x106 .2 _5"),
	[KINDS + ID] = UCM(DESTROY_ID, 2, -ID, "x I =0"),
	[CONNECT] = UCM(CONNECT, 2, 0, PARAM), [ACCEPT] = UCM(ACCEPT, 1, 0, "#7 " PARAM),
	[REJECT] = UCM(REJECT, 1, 0, "I _260"), [LISTEN] = UCM(LISTEN, 1, 0, "I <16"),
	[RESOLVE_ADDR] = UCM(RESOLVE_ADDR, 2, 0, "I =999 :0 :16 =0 _128 $1 _112"),
	[RESOLVE_ROUTE] = UCM(RESOLVE_ROUTE, 2, 0, "I =999"),
	[BIND] = UCM(BIND, 1, 0, "I :16 :0 $ _112"),
	[QUERY_ROUTE] = UCM(QUERY_ROUTE, 4, 0, "x I =0"), [GET_EVENT] = UCM(GET_EVENT, 4, 0, "x"),
	[POLL_CQ] = VERB(POLL_CQ, 160, 0, "x C <100"),
	[TO_INIT] = VERB(MODIFY_QP, 8, 0, STATE(".1")),
	[TO_RESET] = VERB(MODIFY_QP, 2, 0, STATE(".0")), VERB(MODIFY_QP, 4, 0, STATE(",7")),
	EXVERB(MODIFY_QP, 2, 0, STATE(",3") " =0 =0"),
	VERB(CREATE_QP, 4, QP, "x #7 P C C S =64 =0 =4 =0 =0 .1 .2 .1 .0"),
	VERB(CREATE_QP, 1, QP, "x #7 P C C =0 <18000 <99 <9 <40 <600 ,2 ,12 .0 .0"),
	EXVERB(CREATE_QP, 3, QP, "#7 P C C =0 =32 =32 =4 =4 =64 .0 .2 .0 .0 =0 =0 =0 =0"),
	EXVERB(CREATE_CQ, 2, CQ, "#7 <64 =0 F =0 =0 =0"), VERB(QUERY_DEVICE, 2, 0, "x"),
	VERB(CREATE_CQ, 1, CQ, "x #7 <0x20000 =0 F =0"), EXVERB(QUERY_DEVICE, 2, 0, "#0"),
	VERB(CREATE_XSRQ, 1, SRQ, "x #7 ,2 _3 P =64 =4 =0 =0 =0 C"),
	VERB(GET_CONTEXT, 1, 0, "x"), VERB(QUERY_PORT, 2, 0, "x .1 _7"),
	VERB(QUERY_QP, 8, 0, "x q =0x1fffff"), VERB(QUERY_SRQ, 3, 0, "x S =0"),
	VERB(RESIZE_CQ, 5, 0, "x C <400"), VERB(REQ_NOTIFY_CQ, 30, 0, "C <2"),
	EXVERB(MODIFY_CQ, 4, 0, "C =1 :16 :16 =0"), VERB(MODIFY_SRQ, 6, 0, "S <4 <200 <8 x128"),
	VERB(REREG_MR, 1, 0, "x M =7 d L D P =15"), VERB(REG_MR, 1, MR, "x d L D P <512"),
	SEND(60, 1, 1, WR(1, 2) "=0 _32 " SGE(512)), SEND(8, 1, 0, WR(0, 2) "=0 _32"),
	SEND(4, 1, 1, WR(1, 2) "=0 _32 " SGE(65536)), SEND(4, 1, 1, WR(1, 9) "K _32 " SGE(99)),
	SEND(20, 1, 3, WR(3, 3) "<9 _32 (3 " SGE(99) ")"),
	SEND(20, 1, 2, "w =2 =2 i =0 _32 (2 e <32 =9 )"),
	SEND(1, 1, 1, "w =1 =2 i =0 _32 e <9999 =0"),
	SEND(20, 1, 1, "w =1 =0 i =0 a K _20 e =48 =0"), SEND(60, 1, 1, WR(1, 0) RDMA SGE(512)),
	SEND(8, 1, 1, WR(1, 0) RDMA SGE(65536)), SEND(20, 1, 4, WR(4, 1) RDMA "(4 " SGE(99) ")"),
	SEND(40, 1, 1, WR(1, 4) RDMA SGE(512)), SEND(4, 1, 1, WR(1, 4) RDMA SGE(65536)),
	SEND(10, 1, 1, WR(1, 5) "=0 b #0 <9 =0 K =0 m =8 k"),
	SEND(10, 1, 1, WR(1, 6) "=0 b #1 #0 K =0 m =8 k"),
	SEND(10, 3, 3, WR(1, 2) "=0 _32 " WR(1, 0) RDMA WR(1, 4) RDMA "(3 " SGE(99) ")"),
	SEND(5, 16, 0, "(16 " WR(0, 2) "=0 _32 )"), RECV(1, 1, 1, "w <9 =0 m r65536 =5"),
	SEND(2, 1, 64, WR(64, 2) "=0 _32 (64 " SGE(9) ")"),
	SEND(1, 1, 1, "w <9 <20 <64 =9 a =5 _20 m l99 =5"),
	RECV(160, 1, 1, "w =1 =0 " SINK), RECV(30, 4, 4, "(4 w =1 =0 ) (4 " SINK ")"),
	RECV(8, 1, 4, "w =4 =0 (4 " SINK ")"), RECV(2, 1, 64, "w =64 =0 (64 " SINK ")"),
	VERB(POST_SRQ_RECV, 30, 0, "x S =4 =4 =16 (4 w =1 =0 ) (4 " SINK ")"),
	UCM(CREATE_ID, 1, ID, "#7 x :0x111 .4 _5"), UCM(BIND_IP, 1, 0, "x $ _12 I"),
	UCM(RESOLVE_IP, 1, 0, "_28 $1 _12 I =500"), UCM(DISCONNECT, 2, 0, "I"),
	UCM(INIT_QP_ATTR, 6, 0, "x I <7"), UCM(GET_OPTION, 1, 0, "x I =0"),
	UCM(SET_OPTION, 4, 0, "x I =0 <4 =4"), UCM(SET_OPTION, 1, 0, "x I =1 =1 =72"),
	UCM(NOTIFY, 2, 0, "I <20"), UCM(JOIN_IP_MCAST, 1, 0, "x #7 $ _12 I"),
	UCM(LEAVE_MCAST, 1, 0, "x I =0"), UCM(MIGRATE_ID, 2, 0, "x I %"),
	UCM(QUERY, 8, 0, "x I <4"), UCM(JOIN_MCAST, 1, 0, "x #7 I :16 ,2 .0 $ _112"),
	/* newer than some headers */
	{ "CM_RESOLVE_IB_SERVICE", CM | 23, 1, 0, "I =0 #1 _64 =1 =0" },
	{ "CM_WRITE_CM_EVENT", CM | 24, 2, 0, "I =0 =18 =0 _288" },
	{ "ioctl REG_MR", IO | UVERBS_OBJECT_MR << 8 | 5, 2, MR, NEW N8(4) "d " N8(5) "L " N8(3)
	  "D " H(1, P) N4(6, 15) OUT(9, 4, 4) OUT(10, 4, 8) },
	METHOD(DEVICE, QUERY_PORT, 3, 0, N8(0) "#1 " OUT(1, 48, 0)),
	METHOD(DEVICE, QUERY_CONTEXT, 3, 0, OUT(0, 4, 0) OUT(1, 8, 8)),
	METHOD(DEVICE, INFO_HANDLES, 3, 0, N8(0) "<17 =0 " OUT(1, 4, 0) OUT(2, 256, 8)),
	METHOD(DEVICE, QUERY_GID_TABLE, 2, 0, N8(0) "#32 " OUT(2, 64, 0) OUT(3, 8, 64)),
	METHOD(DEVICE, QUERY_GID_ENTRY, 2, 0, N8(0) "#1 " N8(1) "#0 " N4(2, 0) OUT(3, 32, 0)),
	METHOD(DEVICE, INVOKE_WRITE, 2, 0, N8(0) "#0 " OUT(1, 184, 0) N8(2) "#1"),
	METHOD(PD, PD_DESTROY, 1, -PD, H(0, P)), METHOD(MR, MR_DESTROY, 1, -MR, H(0, M)),
	METHOD(CQ, CQ_CREATE, 2, CQ, NEW N4(1, 64) N8(2) "#7 " N4(4, 0) OUT(6, 4, 0)),
	METHOD(CQ, CQ_DESTROY, 1, -CQ, H(0, C) OUT(1, 8, 0)),
	METHOD(QP, QP_CREATE, 2, QP, NEW H(2, P) H(4, C) H(5, C) N8(7) "#7 " OUT(8, 20, 256) N8(9)
	       "#2 " OUT(13, 20, 16) OUT(14, 4, 4)),
	METHOD(QP, QP_DESTROY, 1, -QP, H(0, q) OUT(1, 4, 0)),
	METHOD(SRQ, SRQ_CREATE, 1, SRQ, NEW H(1, P) N8(4) "#7 " N4(5, 32) N4(6, 4) N4(7, 0) N8(9)
	       "#0 " OUT(11, 4, 8) OUT(12, 4, 12)),
	METHOD(SRQ, SRQ_DESTROY, 1, -SRQ, H(0, S) OUT(1, 4, 0)),
	METHOD(MR, QUERY_MR, 3, 0, H(0, M) OUT(1, 4, 0) OUT(2, 4, 4) OUT(3, 8, 8)),
	METHOD(MR, ADVISE_MR, 1, 0, H(0, P) N8(1) "#0 " N4(2, 0) OUT(3, 16, 0)),
	METHOD(ASYNC_EVENT, ASYNC_EVENT_ALLOC, 2, CHAN, NEW),
	OTHER("poll, events of rdma_cm", 160, get_event), OTHER("new identifiers", 40, start),
	OTHER("memory", 12, change_memory), OTHER("mmap", 4, map_file),
	OTHER("receives in memory", 120, post_in_memory),
	OTHER("completions in memory", 160, take_in_memory),
	OTHER("memory of queues", 8, spoil_memory),
	OTHER("random", 50, random_call),
};

static_assert(LENGTH(rows) <= LENGTH(shared->errors), "no room to count");

/* --- calls */

/* The state that the items of a call share. */
struct parts {
	struct object local, remote, made, qp;
	struct file *f, *qps, *to;
	u32 pd, handle, first, number, missing;
	u8 *request;
	bool forbidden;
};

static u64 odd(struct worker *w)
{
	static const u64 values[] = { 0, ~0UL, 0x7fffffff, 1UL << 31, 0xffffffff, 1UL << 32,
		1UL << 63, ~0UL >> 1, 0xffff888000000000, 0xffffffff81000000, 0x500000000000, DATA,
		JUNK, ~4095UL, 4095, 4097, DATA + DATA_SIZE - 1, 0xffff, KERNEL_QPN, KERNEL_KEY };

	return chance(w, 30) ? rnd(w, 64) : chance(w, 90) ? values[rnd(w, LENGTH(values))] : w->rng;
}

/* A key, rarely a wrong one. */
static u32 any_key(struct worker *w, u32 right)
{
	return chance(w, 99) ? right : chance(w, 50) ? KERNEL_KEY : odd(w);
}

/* Changes some words, and maybe the length. Returns the length. */
static size_t change(struct worker *w, u8 *p, size_t len)
{
	for (int n = 1 + rnd(w, 3); n; n--) {
		size_t size = 1 << rnd(w, 4);
		u8 *at = p + (rnd(w, chance(w, 80) || len < 24 ? len : 24) & -size);
		u64 near = chance(w, 50) ? get(at) + 1 - rnd(w, 3) : get(at) ^ 1U << rnd(w, 32);

		put(at, chance(w, 40) ? near : odd(w), size);
	}
	return chance(w, 92) ? len : chance(w, 50) ? rnd(w, 4096) : len + 4 * rnd(w, 9) - 16;
}

/* Chooses the mode of a call, and the place of its answer. */
static void begin(struct worker *w, bool is_plausible)
{
	static const u32 sizes[] = { 16, 16, 4, 4, 64 };	/* of a queue pair */

	w->mode = is_plausible || w->gentle || chance(w, 80) ? PLAUSIBLE : CHANGED;
	w->resp = w->mode == CHANGED ? JUNK + (rnd(w, JUNK_SIZE / 2) & ~7UL) : (u64)w->safe;
	memset(w->buf, 0, 64);
	memset((void *)w->resp, 0xff, 64);
	memset((void *)(w->resp + 128), 0xff, 8);
	memcpy((void *)(w->resp + 256), sizes, sizeof(sizes));
}

/* Returns an object's handle: the one asked for, if any, at the first item. */
static u32 item_handle(struct worker *w, u32 kind, bool rather_connected, struct parts *q)
{
	u32 flag = rather_connected && chance(w, 90) ? CONNECTED : 0, handle = q->handle;
	struct file *f = kind == ID ? q->f : q->qps;
	struct object *o = handle != ANY ? find(f, kind, handle) :
			   pick(w, f, kind, ANY, flag, flag) ?: pick(w, f, kind, ANY, 0, 0);

	if (handle == ANY && !o && kind != CHAN)
		q->missing = kind;
	handle = o ? o->handle : handle;
	if (kind == PD)
		q->pd = handle;
	else if (o && (kind == QP || kind == SRQ))
		q->pd = o->pd;
	q->first = q->first == ANY ? handle : q->first;
	q->handle = ANY;
	return handle;
}

/* A queue pair number of another program, or one nearby. */
static u32 others_number(struct worker *w)
{
	u32 number;
	FILE *f;

	if (w->used++ % 64 == 0) {
		f = fopen(numbers, "re");
		for (w->has = 0; f && w->has < NUMBERS; w->has++)
			if (fscanf(f, "%u", &w->numbers[w->has]) != 1)
				break;
		if (f)
			fclose(f);
	}
	number = w->has ? w->numbers[rnd(w, w->has)] : KERNEL_QPN + rnd(w, 4096);
	return chance(w, 80) ? number : chance(w, 70) ? number + 1 + rnd(w, 8) : odd(w);
}

/* The value of any other item that has one. */
static u64 item(struct worker *w, char letter, u64 n, struct parts *q, u8 *to)
{
	struct object *o;
	u64 value;

	switch (letter) {
	case ',':
	case '<':
		return rnd(w, n);
	case 'x':
		return w->resp + n;
	case 'w':
		q->request = to;
		return GOOD_ID << 48 | rnd(w, 1UL << 48);
	case 'f':
	case 'i':
		return (letter == 'i') << 3 | rnd(w, 2) << 2 | chance(w, 70) << 1 | chance(w, 10);
	case 'm':
	case 'a':
	case 'b':
		o = pick(w, q->qps, MR, q->pd, 0, 0);
		if (!o)
			return q->missing = MR;
		n = rnd(w, o->len / 2);
		*(letter == 'm' ? &q->local : &q->remote) = *o;
		q->local.len -= letter == 'm' ? n : 0;
		return (o->addr + n) & (letter == 'b' ? ~7UL : ~0UL);
	case 'l':
	case 'r':
		n = q->local.len < n ? q->local.len : n;
		return (letter == 'r' ? n : 1 + rnd(w, n)) + (chance(w, 1) ? q->local.len : 0);
	case 'k':
		value = any_key(w, q->local.key);
		q->forbidden |= value == KERNEL_KEY;
		return value;
	case 'K':
		value = any_key(w, q->remote.rkey);
		if (q->remote.flags && value == KERNEL_KEY && w->mode == PLAUSIBLE)
			put(q->request, BAD_ID << 48, 8);
		return value;
	case 'e':
		return DATA + rnd(w, DATA_SIZE - 2 * PIECE);
	case 'd':
		n = chance(w, 50) ? 4096 : chance(w, 80) ? PIECE : 8 * PIECE;
		q->made.len = 1024 + rnd(w, n);
		value = DATA + rnd(w, DATA_SIZE - q->made.len);
		q->made.addr = chance(w, 85) ? value : (w->rng >> 14 & ~4095UL) + value % 4096;
		if (add(registered, q->made.len) > MOST_REGISTERED)
			q->missing = KINDS + MR;
		return value;
	case 'L':
		return q->made.len;
	case 'D':
		return q->made.addr;
	case 'N':
		if (numbers)
			return others_number(w);
		o = pick(w, q->qps, QP, q->pd, USED, 0) ?: pick(w, q->qps, QP, ANY, USED, 0);
		if (!o)
			return q->missing = QP;
		o->flags |= USED;
		q->qp = *o;
		q->number = chance(w, 95) ? o->key :
			    chance(w, 90) ? KERNEL_QPN + rnd(w, 256) : odd(w);
		return q->number;
	case 'j':
		return (u64)q->qp.pd << 32 | (q->qps - files);
	case '%':
		q->to = any_file(w, true);
		return q->f->fd;
	}
	return n;
}

/* Writes the body of a call. Returns its length. */
static size_t build(struct worker *w, const char *t, struct parts *q)
{
	static const char kinds[] = "-PCQSMFI";
	u8 *start = (u8 *)w->buf + 24, *c = start;
	const char *again = NULL;
	u64 n, times = 0;
	char *next;

	for (; *t && !q->missing; t = next + strspn(next, " ")) {
		const char *kind = strchr(kinds, *t == 'q' ? 'Q' : *t);
		size_t size = strchr(".,", *t) ? 1 : *t == ':' ? 2 : 4;

		n = strtoul(t + 1, &next, 0);
		if (*t == '(') {
			again = next;
			times = n;
			continue;
		} else if (*t == ')') {
			next = --times ? (char *)again : next;
			continue;
		} else if (*t == '_') {
			size = n;
			memset(c, 0, n);
		} else if (*t == '$') {
			size = sizeof(address);
			memcpy(c, &address, size);
			put(c + 2, n ? ports[rnd(w, known)] : chance(w, 40) ? to_listen_at : 0, 2);
		} else if (kind) {
			put(c, item_handle(w, kind - kinds, *t == 'Q', q), size);
		} else {
			size = strchr("#xwmabedLDj", *t) ? 8 : size;
			put(c, item(w, *t, n, q, c), size);
		}
		c += size;
	}
	return c - start;
}

/*
 * If a program asks by ioctl for the context of a file that has one, as each
 * file here does, the kernel keeps the program's task. That would hide other
 * leaks (docs/user-space.md).
 */
static bool may_ask(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return hdr->object_id != UVERBS_OBJECT_DEVICE ||
		hdr->method_id != UVERBS_METHOD_GET_CONTEXT;
}

/*
 * iw_cm has a BUG() for a program that answers a request twice, or answers its
 * own connect, and then destroys the identifier: with each iWARP provider
 * (docs/user-space.md). So a request is answered once.
 */
static bool may_answer(const u8 *p)
{
	u32 command = get(p), id;

	/* Without a queue pair each answer fails: the BUG() is out of reach. */
	if (numbers)
		return true;
	switch (command) {
	case RDMA_USER_CM_CMD_CONNECT:
		id = get(p + 8 + offsetof(struct rdma_ucm_connect, id));
		break;
	case RDMA_USER_CM_CMD_ACCEPT:
		id = get(p + 8 + offsetof(struct rdma_ucm_accept, id));
		break;
	case RDMA_USER_CM_CMD_REJECT:
		id = get(p + 8 + offsetof(struct rdma_ucm_reject, id));
		break;
	default:
		return true;
	}
	return (id < sizeof(shared->requests) &&
		__atomic_exchange_n(&shared->requests[id], 0, __ATOMIC_RELAXED)) ||
		command == RDMA_USER_CM_CMD_CONNECT;
}

/* Makes a call of the body. */
static bool call(struct worker *w, struct file *f, u32 command, size_t in)
{
	bool is_ex = command & EX, is_cm = command & CM, is_io = command & IO, keeps;
	size_t len = in + (is_ex || is_io ? 24 : 8);
	u8 *p = (u8 *)w->buf + (is_ex || is_io ? 0 : 16);
	u32 now;

	put(p, is_cm ? command - CM : command, 4);
	put(p + 4, is_cm ? in : is_ex ? in / 8 : len / 4, 2);
	put(p + 6, is_cm ? 512 : is_ex ? 64 : 128, 2);
	if (is_ex)
		put(p + 8, w->resp, 8);
	if (is_io)
		*(struct ib_uverbs_ioctl_hdr *)p = (struct ib_uverbs_ioctl_hdr){ .length = len,
			.object_id = command >> 8 & 0xff, .method_id = command & 0xff,
			.num_attrs = in / 16, .driver_id = RDMA_DRIVER_HFI1 };
	if (w->mode != PLAUSIBLE)
		len = change(w, p, len);
	if ((is_cm && !may_answer(p)) || (is_io && !may_ask((void *)p))) {
		errno = EINVAL;
		return note(w, -1);
	}
	if (is_io || is_cm) {
		u32 called = get(p);
		bool ok = note(w, is_io ? ioctl(f->fd, RDMA_VERBS_IOCTL, p) : write(f->fd, p, len));

		if (ok && numbers && (called == RDMA_USER_CM_CMD_CONNECT ||
				      called == RDMA_USER_CM_CMD_ACCEPT))
			die("a queue pair of somebody else was taken\n");
		if (!ok && errno == EINVAL && w->is_due && w->mode == PLAUSIBLE) {
			add(shared->connects, called == RDMA_USER_CM_CMD_CONNECT);
			add(shared->accepts, called == RDMA_USER_CM_CMD_ACCEPT);
		}
		return ok;
	}
	now = get(p) & 0xff;
	keeps = now == IB_USER_VERBS_CMD_GET_CONTEXT || now == IB_USER_VERBS_CMD_CREATE_QP ||
		now == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL || now == IB_USER_VERBS_CMD_OPEN_QP;
	if (keeps && w->mode != PLAUSIBLE) {
		w->resp = (u64)w->safe;
		put(p + 6, 8, 2);
		put(p + 8, w->resp, 8);
	}
	if (!note(w, write(f->fd, p, len)))
		return false;
	if (now == IB_USER_VERBS_CMD_CREATE_QP || now == IB_USER_VERBS_CMD_OPEN_QP)
		had(get((u8 *)w->safe + 4));
	else if (keeps && get(p) != command)
		close(get(w->safe));
	return get(p) == command;
}

static void check(const struct ib_uverbs_wc *wc)
{
	bool is_receive = wc->opcode == 128 || wc->opcode == 129;

	if (!was_had(wc->qp_num))
		die("a completion of queue pair %#x, which never was\n", wc->qp_num);
	if (wc->reserved || wc->src_qp || wc->pkey_index || wc->slid || wc->sl ||
	    wc->dlid_path_bits || wc->port_num > 1)
		die("a completion has %#x, %#x, %#x, %#x, %#x, %#x, %#x\n", wc->reserved,
		    wc->src_qp, wc->pkey_index, wc->slid, wc->sl, wc->dlid_path_bits, wc->port_num);
	/* An invalidated key has another bit in memory than in an answer. */
	if (wc->wc_flags & ~14 || wc->wc_flags & (wc->wc_flags - 1) ||
	    (wc->wc_flags && !is_receive) ||
	    (!wc->wc_flags && wc->ex.invalidate_rkey))
		die("a completion has flags %#x, %#x\n", wc->wc_flags, wc->ex.invalidate_rkey);
	if (wc->status > 21 || (wc->opcode > 4 && !is_receive) ||
	    (!wc->status && (wc->vendor_err || wc->byte_len >> 31)))
		die("a completion has status %u opcode %u error %#x length %#x\n", wc->status,
		    wc->opcode, wc->vendor_err, wc->byte_len);
	/* A receive in spoilt memory may have lost all but its name. */
	if (!wc->status && wc->wr_id >> 48 == BAD_ID && (!is_receive || wc->byte_len))
		die("data was moved by the kernel's key\n");
	add(shared->transfers, !wc->status && !is_receive);
}

static void check_all(const struct ib_uverbs_poll_cq_resp *r)
{
	if (r->count > 100 || r->reserved)
		die("%u completions, reserved %#x\n", r->count, r->reserved);
	for (const struct ib_uverbs_wc *wc = r->wc; wc < r->wc + r->count; wc++)
		check(wc);
}

static bool run(struct worker *w, struct file *f, u32 index, u32 handle);

/* True if the file is used by that thread alone. */
static bool is_own(struct worker *w, struct file *f)
{
	return f == &files[2 + w->index];
}

/* Maps a queue's memory, `places` of so many `words`, at the queue's place. */
static void map_ring(struct worker *w, struct file *f, u32 kind, struct object *o, u64 offset,
		     u32 places, u32 words)
{
	size_t len = (8 + 4UL * places * words + 4095) & ~4095UL;
	void *to = RING(f, kind, o - f->of[kind]), *p = MAP_FAILED;

	/* A thread uses the files of others for connections alone. */
	if (offset != ~0UL && places && len <= RING_SIZE && !w->is_child &&
	    (f < files + 2 || is_own(w, f)))
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, offset);
	/* The place always has memory: another thread may look there. */
	if (p != MAP_FAILED && mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		die("a queue's memory cannot be moved: %s\n", strerror(errno));
	o->places = p == MAP_FAILED ? 0 : places;
	o->words = words;
}

/* Remembers an object in place of the oldest one, which ends. */
static void remember(struct worker *w, struct file *f, u32 kind, const struct object *o)
{
	struct object *to = &f->of[kind][add(f->next[kind], 1) % MOST], old = *to, new = *o;
	bool was_gentle = w->gentle;

	forget(to);
	if (o->places) {
		map_ring(w, f, kind, to, o->addr, o->places, o->words);
		new.places = to->places;
		new.addr = 0;
	}
	*to = new;
	w->gentle = true;
	if (old.flags && kind == CHAN)
		close(old.handle);
	else if (old.flags)
		run(w, f, KINDS + kind, old.handle);
	w->gentle = was_gentle;
}

/* Reads the offset of a new queue's memory from the answer. */
static void is_shared(struct worker *w, u32 command, struct object *o)
{
	const u8 *resp = (u8 *)w->resp;

	if (command == IB_USER_VERBS_CMD_CREATE_CQ) {
		memcpy(&o->addr, resp + 8, 8);
		o->places = get(resp + 4) + 1;
		o->words = 12;
	} else if (command == IB_USER_VERBS_CMD_CREATE_QP) {
		memcpy(&o->addr, resp + 32, 8);
		o->places = get(resp + 12) + 1;
		o->words = 4 + 4 * get(resp + 20);
	} else if (command == IB_USER_VERBS_CMD_CREATE_SRQ) {
		memcpy(&o->addr, resp + 16, 8);
		o->places = get(resp + 4) + 1;
		o->words = 4 + 4 * get(resp + 8);
	}
}

/* A resized queue that shares memory has new memory, with the old contents. */
static void on_resize(struct worker *w, struct file *f, u32 command, u32 handle)
{
	struct object *o = NULL;
	u64 offset;

	if (command == IB_USER_VERBS_CMD_RESIZE_CQ)
		o = find(f, CQ, handle);
	else if (command == IB_USER_VERBS_CMD_MODIFY_SRQ && get((u8 *)w->buf + 28) & 1)
		o = find(f, SRQ, handle);
	if (!o || !o->places)
		return;
	if (command == IB_USER_VERBS_CMD_RESIZE_CQ) {
		memcpy(&offset, (void *)(w->resp + 8), 8);
		map_ring(w, f, CQ, o, offset, get((void *)w->resp) + 1, o->words);
	} else {
		memcpy(&offset, (void *)(w->resp + 128), 8);
		map_ring(w, f, SRQ, o, offset, get((u8 *)w->buf + 32) + 1, o->words);
	}
}

/* Makes a row's call, first on the object with @handle unless it is ANY. */
static bool run(struct worker *w, struct file *f, u32 index, u32 handle)
{
	const struct row *r = &rows[index];
	struct parts q = { .f = f, .to = f, .qps = f, .pd = ANY, .handle = handle, .first = ANY };
	bool ok, connects = index == CONNECT || index == ACCEPT;
	struct object *o;
	size_t len;

	if (r->command & CM)
		q.qps = w->peer ?: any_file(w, false);
	if (w->peer)
		q.pd = w->peer_pd;
	/* A method does not return its object at the place of its answer. */
	begin(w, r->command & IO && (r->effect == QP || r->effect == CHAN));
	len = build(w, r->body, &q);
	if (q.missing) {
		bool is_in_pd = q.missing == MR || q.missing == QP;

		add(registered, -(long)q.made.len);
		ok = ++w->depth < 5 && run(w, q.missing == ID ? f : q.qps, q.missing,
					   is_in_pd ? q.pd : ANY);
		if (ok && handle != ANY)
			run(w, f, index, handle);
		w->depth--;
		return false;
	}
	o = connects ? find(f, ID, q.first) : NULL;
	if (o) {
		o->key = q.qp.handle;
		o->rkey = q.qps - files;
		o->flags = LIVE | USED | (index == ACCEPT ? PASSIVE : 0);
	}
	w->row = index;
	ok = call(w, q.to, r->command, len);
	w->made = get(r->command & IO ? (u8 *)w->buf + 32 : (u8 *)w->resp);
	o = r->effect < 0 ? find(f, -r->effect, q.first) : NULL;
	if (o && (ok || (w->mode == PLAUSIBLE && errno != EBUSY && errno != EINTR)))
		forget(o);
	if (ok && w->mode == PLAUSIBLE) {
		if (q.forbidden)
			die("a request with the kernel's key was taken\n");
		if (connects && !was_had(q.number))
			die("queue pair %#x was connected, which never was\n", q.number);
		if (index == POLL_CQ)
			check_all((void *)w->safe);
	}
	if (ok && w->mode == PLAUSIBLE)
		on_resize(w, f, r->command, q.first);
	if (!ok || r->effect <= 0 || w->made == ANY) {
		add(registered, -(long)q.made.len);
		return ok;
	}
	q.made.handle = w->made;
	q.made.pd = q.pd;
	q.made.key = get((u8 *)w->resp + 4);
	q.made.rkey = get((u8 *)w->resp + 8);
	q.made.flags = LIVE;
	if (r->command & IO && r->effect == QP)
		had(q.made.key);
	if (w->mode == PLAUSIBLE)
		is_shared(w, r->command, &q.made);
	if (r->effect == CHAN)
		fcntl(w->made, F_SETFL, chance(w, 90) ? O_NONBLOCK : 0);
	remember(w, f, r->effect, &q.made);
	if (r->effect == QP && chance(w, 90))
		run(w, f, TO_INIT, q.made.handle);
	w->made = q.made.handle;
	return true;
}

/* --- more than one call */

static void on_event(struct worker *w, struct file *cm, const struct rdma_ucm_event_resp *e)
{
	const u8 *data = e->param.conn.private_data;
	struct object *o = find(cm, ID, e->id), id = o ? *o : (struct object){ 0 };
	struct file *f = &files[id.rkey % (threads + 2)];
	struct object *qp = id.flags & USED ? find(f, QP, id.key) : NULL;

	w->is_due = true;
	switch (e->event) {
	case 0:		/* ADDR_RESOLVED */
		run(w, cm, RESOLVE_ROUTE, e->id);
		break;
	case 2:		/* ROUTE_RESOLVED */
		run(w, cm, CONNECT, e->id);
		break;
	case 4:		/* CONNECT_REQUEST */
		if (e->id < sizeof(shared->requests))
			shared->requests[e->id] = 1;
		remember(w, cm, ID, &(struct object){ .handle = e->id, .flags = LIVE });
		if (!numbers) {
			w->peer = &files[get(data) % (threads + 2)];
			w->peer_pd = get(data + 4);
		}
		run(w, cm, chance(w, 92) ? ACCEPT : REJECT, e->id);
		w->peer = NULL;
		break;
	case 9:		/* ESTABLISHED */
		if (qp)
			qp->flags |= CONNECTED;
		add(shared->connections, !(id.flags & PASSIVE));
		break;
	default:	/* errors, DISCONNECTED */
		if (chance(w, 70))
			run(w, cm, KINDS + ID, e->id);
		if (!qp)
			break;
		qp->flags &= ~CONNECTED;
		if (chance(w, 40))
			run(w, f, KINDS + QP, id.key);
		else if (run(w, f, TO_RESET, id.key) && run(w, f, TO_INIT, id.key))
			qp->flags &= ~USED;
	}
	w->is_due = false;
}

/* Waits a moment for data to read. Sometimes returns true without data, too. */
static bool wait_for(struct worker *w, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return (note(w, poll(&p, 1, rnd(w, 2))) && p.revents & POLLIN) || chance(w, 10);
}

static void get_event(struct worker *w)
{
	struct file *cm = any_file(w, true);
	struct rdma_ucm_event_resp e;

	if (wait_for(w, cm->fd) && run(w, cm, GET_EVENT, ANY) && w->mode == PLAUSIBLE) {
		memcpy(&e, w->safe, sizeof(e));
		on_event(w, cm, &e);
	}
}

/* Makes an identifier, which listens or looks for a listener. */
static void start(struct worker *w)
{
	struct file *cm = any_file(w, true);
	struct rdma_ucm_query_route_resp route;
	u32 id, at = rnd(w, known);

	if (!run(w, cm, ID, ANY))
		return;
	id = w->made;
	if (at >= OWN_PORTS || (ports[at] && chance(w, 85))) {
		run(w, cm, RESOLVE_ADDR, id);
	} else if (run(w, cm, BIND, id) && run(w, cm, LISTEN, id) && run(w, cm, QUERY_ROUTE, id)) {
		memcpy(&route, (void *)w->resp, sizeof(route));
		ports[at] = route.src_addr.sin6_port;
	}
}

static void read_event(struct worker *w)
{
	struct file *f = any_file(w, false);
	struct object *channel = chance(w, 70) ? pick(w, f, CHAN, ANY, 0, 0) : NULL;
	int fd = channel ? (int)channel->handle : f->async;

	if (wait_for(w, fd))
		note(w, read(fd, w->safe, 16 * rnd(w, 4)));
	if (channel && chance(w, 5)) {
		forget(channel);
		note(w, close(fd));
	}
}

static void change_memory(struct worker *w)
{
	static const int advice[] = { MADV_DONTNEED, MADV_FREE, MADV_DONTFORK, MADV_DOFORK,
				      MADV_HUGEPAGE, MADV_PAGEOUT, MADV_MERGEABLE };
	u8 *p = (u8 *)DATA + PIECE * rnd(w, DATA_SIZE / PIECE - 4);
	u8 *attic = (u8 *)ATTIC + w->index * DATA_SIZE;
	size_t len = PIECE * (1 + rnd(w, 4));
	u32 how = rnd(w, 6);

	if (how == 0) {
		note(w, madvise(p, len, advice[rnd(w, LENGTH(advice))]));
	} else if (how == 1) {
		note(w, mprotect(p, len, PROT_READ));
		note(w, mprotect(p, len, PROT_READ | PROT_WRITE));
	} else if (how == 2) {
		note(w, getrandom(p, 4096, 0));
	} else {
		if (how == 3)
			note(w, munmap(p, len));
		else if (how == 4)
			note(w, (long)mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, attic));
		how = MAP_ANONYMOUS | MAP_FIXED | (chance(w, 80) ? MAP_PRIVATE : MAP_SHARED);
		note(w, (long)mmap(p, len, PROT_READ | PROT_WRITE, how, -1, 0));
	}
}

/* The memory of any queue of that kind; NULL if there is none. */
static u32 *any_ring(struct worker *w, u32 kind, struct file **f, struct object **o)
{
	*f = any_file(w, false);
	*o = pick(w, *f, kind, ANY, 0, 0);
	return *o && (*o)->places && !w->is_child ? RING(*f, kind, *o - (*f)->of[kind]) : NULL;
}

/* The first word of a place, inside the memory for any arguments. */
static u32 *place(u32 *ring, u32 position, u32 words)
{
	return ring + (2 + (u64)position * words) % (RING_SIZE / 4 - 64);
}

/* Posts receives without a call. */
static void post_in_memory(struct worker *w)
{
	u32 kind = chance(w, 80) ? QP : SRQ;
	struct object *o, *mr;
	struct file *f;
	u32 *ring = any_ring(w, kind, &f, &o);

	for (u32 n = ring ? 1 + rnd(w, 6) : 0; n; n--) {
		u32 places = o->places ?: 1, words = o->words, head = load(ring[0]) % places;
		u32 next = (head + 1) % places, *to = place(ring, head, words), key;

		if (next == load(ring[1]))
			return;
		mr = words > 4 ? pick(w, f, MR, o->pd, 0, 0) : NULL;
		key = mr ? any_key(w, mr->key) : 0;
		put(to, (key == KERNEL_KEY ? BAD_ID : GOOD_ID) << 48 | rnd(w, 1UL << 48), 8);
		put(to + 2, !!mr, 8);
		if (mr) {
			put(to + 4, mr->addr, 8);
			to[6] = mr->len < 65536 ? mr->len : 65536;
			to[7] = key;
		}
		__atomic_store_n(&ring[0], next, __ATOMIC_RELEASE);
	}
}

/* Takes completions without a call. */
static void take_in_memory(struct worker *w)
{
	struct ib_uverbs_wc wc;
	struct object *o;
	struct file *f;
	u32 *ring = any_ring(w, CQ, &f, &o);

	for (u32 n = ring ? 100 : 0; n; n--) {
		u32 places = o->places ?: 1, tail = load(ring[1]) % places;

		if (tail == __atomic_load_n(&ring[0], __ATOMIC_ACQUIRE) % places)
			return;
		memcpy(&wc, place(ring, tail, 12), sizeof(wc));
		__atomic_store_n(&ring[1], (tail + 1) % places, __ATOMIC_RELEASE);
		if (is_own(w, f) && !(o->flags & SPOILT))
			check(&wc);
	}
}

/* Writes odd values to the memory of a queue. */
static void spoil_memory(struct worker *w)
{
	u32 kind = CQ + rnd(w, 3), value;
	struct object *o;
	struct file *f;
	u32 *ring = any_ring(w, kind, &f, &o);

	if (!ring)
		return;
	o->flags |= SPOILT;
	for (u32 n = 1 + rnd(w, 4); n; n--) {
		value = chance(w, 50) ? rnd(w, o->places + 2) : odd(w);
		if (value >> 16 != BAD_ID)
			*(chance(w, 50) ? ring + rnd(w, 2) :
			  place(ring, rnd(w, o->places), o->words) + rnd(w, 16)) = value;
	}
}

static void map_file(struct worker *w)
{
	size_t len = 4096UL << rnd(w, 8);
	void *p = mmap(NULL, len, rnd(w, 8), 1 + rnd(w, 2), any_file(w, false)->fd,
		       rnd(w, w->rng) & ~4095UL);

	w->mode = RANDOM;
	if (note(w, (long)p))
		munmap(p, len);
}

/* Makes any command, of words that may be handles. */
static void random_call(struct worker *w)
{
	u32 words = rnd(w, 40), kind = numbers ? 5 : rnd(w, 8), command = rnd(w, 64);

	begin(w, true);
	w->mode = RANDOM;
	w->resp = JUNK;
	for (u32 i = 0; i < words; i++)
		put((u8 *)w->buf + 24 + 4 * i, odd(w), 4);
	for (u32 i = 0; i < words / 4 * 16 && kind >= 6; i += 16)
		put((u8 *)w->buf + 24 + i, rnd(w, 12) | rnd(w, 4) << 18 | rnd(w, 2) << 32, 8);
	if (chance(w, 70))
		put((u8 *)w->buf + 24 + 8 * (kind >= 6), JUNK, 8);
	command = kind >= 6 ? IO | rnd(w, 20) << 8 | rnd(w, 8) :
		  command | (kind == 5 ? CM : kind >= 3 ? EX : 0);
	call(w, any_file(w, kind == 5), command, kind >= 6 ? words / 4 * 16 : words * 4);
}

/* Opens a file, or replaces one that other threads use. */
static bool open_file(struct worker *w, struct file *f, bool is_cm)
{
	struct file new = { .async = -1 };

	new.fd = open(is_cm ? cm_device : device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (!note(w, new.fd))
		return false;
	begin(w, true);
	put((u8 *)w->buf + 24, w->resp, 8);
	if (!is_cm && !call(w, &new, IB_USER_VERBS_CMD_GET_CONTEXT, 8)) {
		close(new.fd);
		return false;
	}
	if (!is_cm)
		new.async = get(w->safe);
	fcntl(new.async, F_SETFL, O_NONBLOCK);
	if (f->fd) {
		dup2(new.fd, f->fd);
		dup2(new.async, f->async);
		close(new.fd);
		close(new.async);
	} else {
		f->fd = new.fd;
		f->async = new.async;
	}
	for (struct object *o = f->of[0]; o < f->of[KINDS]; o++) {
		if (o->flags && o >= f->of[CHAN] && o < f->of[CHAN + 1])
			close(o->handle);
		forget(o);
	}
	return true;
}

static void replace_file(struct worker *w)
{
	bool is_cm = numbers || chance(w, 30);

	open_file(w, any_file(w, is_cm), is_cm);
}

static void start_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	u64 ms = (u64)period_ms * slow;
	struct timespec period = { ms / 1000, ms % 1000 * 1000000 };
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &(struct itimerspec){ period, period }, NULL))
		die("no timer: %s\n", strerror(errno));
}

/* The weight of a row in the draw. */
static u32 weight(const struct row *r)
{
	bool is_verb = r->function == read_event || r->function == change_memory ||
		       r->function == map_file || r->function == post_in_memory ||
		       r->function == take_in_memory || r->function == spoil_memory ||
		       (!r->function && !(r->command & CM));

	return numbers && is_verb ? 0 : r->weight;
}

static void step(struct worker *w)
{
	const struct row *r;
	struct file *f;
	u32 n = 0;

	for (r = rows; r < rows + LENGTH(rows); r++)
		n += weight(r);
	n = rnd(w, n);
	for (r = rows; n >= weight(r); r++)
		n -= weight(r);
	w->row = r - rows;
	w->mode = OTHERS;
	w->gentle = r->function && chance(w, 75);
	if (r->function) {
		r->function(w);
		return;
	}
	f = any_file(w, r->command & CM);
	/* A call for a connected queue pair prefers a file that has one. */
	for (n = strchr(r->body, 'Q') ? 4 : 0; n && !pick(w, f, QP, ANY, CONNECTED, CONNECTED); n--)
		f = any_file(w, false);
	run(w, f, w->row, ANY);
}

/* The child uses the files that it has inherited. */
static void fork_child(struct worker *w)
{
	pid_t pid = w->is_child ? -1 : fork();
	int status = 0;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		w->is_child = true;
		w->rng = ~w->rng | 1;
		start_timer();
		/* The child's own copy of the registered memory. */
		for (u64 at = DATA; at < DATA + DATA_SIZE; at += PIECE)
			note(w, getrandom((void *)at, 64, 0));
		for (int i = 0; i < 30; i++)
			step(w);
		_exit(0);
	}
	note(w, pid);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status && status != SIGKILL)
		die("a child ended with status %#x\n", status);
}

static bool is_enough(void)
{
	return !numbers || (load(shared->connects) >= 10 &&
			    (!to_listen_at || load(shared->accepts) > 0));
}

static bool is_over(void)
{
	u64 now = time(NULL);

	return end && now >= end && (is_enough() || now >= end + HANGS_SECONDS);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	start_timer();
	while (load(w->calls) < most / threads && !is_over())
		step(w);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* --- the checks, and the end */

static u64 pattern(size_t i)
{
	return (i + 1) * 0x9E3779B97F4A7C15UL ^ seed;
}

static void check_memory(u64 *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (load(words[i]) != pattern(i))
			die("memory was changed that nobody registered\n");
}

/* Checks this process's memory until the other end of the pipe is closed. */
static void be_canary(int fd)
{
	u64 *words = calloc(CANARY, sizeof(*words));
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (!words)
		die("no memory\n");
	for (size_t i = 0; i < CANARY; i++)
		words[i] = pattern(i);
	while (!poll(&p, 1, 10))
		check_memory(words, CANARY);
	check_memory(words, CANARY);
	_exit(0);
}

/* Waits for the threads, and checks the memory that they must not change. */
static void watch(void)
{
	u64 beats[THREADS] = {}, still[THREADS] = {};

	for (u32 i = 0, done = 0; done < threads; i = (i + 1) % threads) {
		struct worker *w = &workers[i];
		bool is_done = __atomic_load_n(&w->done, __ATOMIC_ACQUIRE);

		done = is_done ? done + 1 : 0;
		still[i] = load(w->calls) == beats[i] && !is_done ? still[i] + 1 : 0;
		beats[i] = load(w->calls);
		if (still[i] * threads > HANGS_SECONDS * 100)
			die("a call does not return: %s\n", rows[w->row].name);
		check_memory(canary, OWN_CANARY);
		usleep(10000);
	}
}

static void no_action(int signal)
{
	(void)signal;
}

/* Runs the threads. Returns 2 if they cannot begin. */
static int do_all(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	int prot = PROT_READ | PROT_WRITE;
	struct sigaction action = { .sa_handler = no_action };
	pthread_t thread[THREADS];
	struct rlimit limit;
	u32 i;

	if ((u64)canary < 1UL << 32)
		die("has to be a position independent executable\n");
	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = limit.rlim_max < MOST_REGISTERED ? limit.rlim_max : MOST_REGISTERED;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	sigaction(SIGALRM, &action, NULL);
	for (i = 0; i < OWN_CANARY; i++)
		canary[i] = pattern(i);
	if (mmap((void *)DATA, DATA_SIZE, prot, flags, -1, 0) == MAP_FAILED ||
	    mmap((void *)JUNK, JUNK_SIZE, prot, flags, -1, 0) == MAP_FAILED ||
	    mmap((void *)RINGS, RINGS_SIZE, prot, flags, -1, 0) == MAP_FAILED)
		die("no memory: %s\n", strerror(errno));
	for (i = 0; i < threads; i++) {
		workers[i].index = i;
		workers[i].rng = (seed + i + 1) * 0x9E3779B97F4A7C15UL | 1;
	}
	for (i = 0; i < 2 * threads + 3; i++) {
		bool is_cm = i >= threads + 2;

		if (numbers && !is_cm)
			continue;
		if (!open_file(workers, is_cm ? &cms[i - threads - 2] : &files[i], is_cm)) {
			dprintf(1, "hostile: %s: %s\n", is_cm ? cm_device : device,
				strerror(errno));
			return 2;
		}
	}
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, &workers[i]))
			die("no thread\n");
	watch();
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	for (i = 3; i < 1024; i++)
		close(i);
	check_memory(canary, OWN_CANARY);
	return 0;
}

/* A line for each class of calls: all rows of a name. */
static void report_class(const char *name)
{
	u64 errors[ERRNOS] = {};

	for (u32 i = 0; i < LENGTH(rows); i++)
		for (u32 error = 0; error < ERRNOS && !strcmp(rows[i].name, name); error++)
			errors[error] += shared->errors[i][error];
	printf("hostile: %s: %llu ok", name, errors[0]);
	for (u32 error = 1; error < ERRNOS; error++)
		if (errors[error])
			printf(", %llu %s", errors[error], strerrorname_np(error) ?: "others");
	printf("\n");
}

static int report(void)
{
	static const char *const modes[] = { "plausible", "changed", "random", "others" };
	u64 *calls = shared->calls, *ok = shared->ok, all, good;
	bool few;

	for (u32 i = 0, j; i < LENGTH(rows); i++) {
		for (j = 0; strcmp(rows[j].name, rows[i].name); j++)
			;
		if (j == i)
			report_class(rows[i].name);
	}
	for (u32 i = 0; i < MODES; i++)
		printf("hostile: %s: %llu calls, %llu succeeded\n", modes[i], calls[i], ok[i]);
	/* Without the calls in which the device has no part. */
	all = calls[PLAUSIBLE] + calls[CHANGED] + calls[RANDOM];
	good = ok[PLAUSIBLE] + ok[CHANGED] + ok[RANDOM];
	few = good * 20 < all || ok[PLAUSIBLE] * 10 < calls[PLAUSIBLE];
	if (few)
		printf("hostile: too few calls succeeded, this tests nothing\n");
	if (numbers)
		printf("hostile: %llu connects, %llu accepts with those of others were refused\n",
		       shared->connects, shared->accepts);
	if (!is_enough())
		printf("hostile: too few were refused, this tests nothing\n");
	few |= !is_enough();
	printf("hostile: %llu connections, %llu transfers completed\n", shared->connections,
	       shared->transfers);
	printf("hostile: %llu calls, %llu succeeded, seed %llu\n", all + calls[OTHERS],
	       good + ok[OTHERS], seed);
	return few ? 2 : 0;
}

int main(int argc, char **argv)
{
	int ends[2], option, status = 0, seconds = 0;
	pid_t canary_pid, pid;

	seed = time(NULL) ^ getpid();
	slow = strtoul(getenv("NDK_SLOW") ?: "1", NULL, 10) ?: 1;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while ((option = getopt(argc, argv, "d:c:t:n:s:a:ik:l:q:p:b:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'c')
			cm_device = optarg;
		else if (option == 't')
			threads = strtoul(optarg, NULL, 0);
		else if (option == 'n')
			most = strtoull(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'i')
			period_ms = 3;
		else if (option == 'k')
			seconds = atoi(optarg);
		else if (option == 'l')
			end = time(NULL) + strtoull(optarg, NULL, 0);
		else if (option == 'q')
			numbers = optarg;
		else if (option == 'b')
			to_listen_at = htons(atoi(optarg));
		else if (option == 'p' && known < LENGTH(ports))
			ports[known++] = htons(atoi(optarg));
		else if (option != 'a' || inet_pton(AF_INET, optarg, &address.sin_addr) != 1)
			return 2;
	}
	threads = threads < 1 ? 1 : threads > THREADS ? THREADS : threads;
	dprintf(1, "hostile: seed %llu\n", seed);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED || pipe(ends))
		die("no memory or pipe: %s\n", strerror(errno));
	canary_pid = fork();
	if (!canary_pid) {
		close(ends[1]);
		be_canary(ends[0]);
	}
	pid = seconds ? fork() : 0;
	if (!pid && seconds) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		most = ~0UL;
		_exit(do_all());
	} else if (!pid) {
		status = do_all();
	}
	for (int i = 0; pid && !waitpid(pid, &status, WNOHANG); i++) {
		usleep(100000);
		if (i == seconds * 10)
			kill(pid, SIGKILL);
		if (i > (int)(seconds + HANGS_SECONDS) * 10)
			die("does not end when it is killed\n");
	}
	if (pid)
		status = WIFEXITED(status) ? WEXITSTATUS(status) : status != SIGKILL;
	close(ends[1]);
	if (waitpid(canary_pid, &option, 0) < 0 || option)
		status = 1;
	return status ?: report();
}
