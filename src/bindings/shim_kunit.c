// SPDX-License-Identifier: GPL-2.0
/*
 * The functions of shim.c for the module of the unit tests, as one object file
 * serves one module; and the functions that only tests need.
 */
#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "shim.c"

/* A byte of urgent data, as only a hostile peer sends it. */
int ndk_tcp_send_urgent(struct ndk_tcp *tcp)
{
	struct msghdr msg = { .msg_flags = MSG_OOB | MSG_DONTWAIT };
	struct kvec byte = { .iov_base = "!", .iov_len = 1 };

	return kernel_sendmsg(tcp->sock, &msg, &byte, 1, 1);
}

static unsigned int slow = 1;
module_param(slow, uint, 0444);
MODULE_PARM_DESC(slow, "factor of each limit of a wait");

u32 ndk_kunit_slowness(void)
{
	return max(slow, 1);
}

static bool fails;
module_param(fails, bool, 0444);
MODULE_PARM_DESC(fails, "one case of ndk_sys_tests_report fails, to show its words");

static bool wire;
module_param(wire, bool, 0444);
MODULE_PARM_DESC(wire, "two queue pairs of a test are connected over TCP");

static uint piece;
module_param(piece, uint, 0444);
MODULE_PARM_DESC(piece, "bytes to and from TCP go in pieces of that size (0: as they come)");

static uint late;
module_param(late, uint, 0444);
MODULE_PARM_DESC(late, "every other call to TCP comes up to that many microseconds late (0: none)");

bool ndk_kunit_wire(void)
{
	return wire;
}

u32 ndk_kunit_piece(void)
{
	return piece;
}

u32 ndk_kunit_late(void)
{
	return late;
}

bool ndk_kunit_fails(void)
{
	return fails;
}

u32 ndk_cpu_online_count(void)
{
	return num_online_cpus();
}

bool ndk_cpu_is_online(u32 cpu)
{
	return cpu < nr_cpu_ids && cpu_online(cpu);
}

/* Gives the limit its whole burst again. */
void ndk_log_renew(u32 limit)
{
	if (limit < ARRAY_SIZE(ndk_log_limits))
		atomic_set(&ndk_log_limits[limit].rs_n_left,
			   ndk_log_limits[limit].burst);
}

struct page *ndk_page_of(u64 addr)
{
	void *va = (void *)addr;

	return is_vmalloc_addr(va) ? vmalloc_to_page(va) : virt_to_page(va);
}

/*
 * Holds the loopback device of the first namespace, and brings it up: tests
 * that run before user space find it down.
 */
int ndk_netdev_loopback(struct net_device **dev)
{
	int ret;

	if (!init_net.loopback_dev)
		return -ENODEV;
	rtnl_lock();
	ret = dev_open(init_net.loopback_dev, NULL);
	rtnl_unlock();
	if (ret)
		return ret;
	*dev = init_net.loopback_dev;
	dev_hold(*dev);
	return 0;
}

/* User space chooses which allocations fail: too late for built-in tests. */
#if defined(CONFIG_FAILSLAB) && defined(MODULE)
#define NDK_FAULTS 1
#else
#define NDK_FAULTS 0
#endif

bool ndk_fault_is_available(void)
{
	return NDK_FAULTS;
}

/* The init process, with a reference. */
struct pid *ndk_kunit_first_process(void)
{
	return find_get_pid(1);
}

/* Marks the test of this task as skipped, as the kernel lacks what it needs. */
void ndk_kunit_skip(const char *why)
{
	struct kunit *test = kunit_get_current_test();

	if (test)
		kunit_mark_skipped(test, "%s", why);
}

static bool ndk_fault_is_armed(void)
{
#if NDK_FAULTS
	return current->fail_nth || current->make_it_fail;
#else
	return false;
#endif
}

/* The test of this task, if its log can grow now, which takes memory. */
static struct kunit *ndk_kunit_loggable(void)
{
	if (preempt_count() || irqs_disabled() || ndk_fault_is_armed())
		return NULL;
	return kunit_get_current_test();
}

/* Without such a test the line goes to the kernel's log alone. */
void ndk_kunit_note(const char *text, u32 len)
{
	struct kunit *test = ndk_kunit_loggable();

	if (test)
		kunit_err(test, "%.*s\n", len, text);
	else
		pr_err("%.*s\n", len, text);
}

/*
 * The loops that the test is in, and the case of each. Only the test's own task
 * changes them and, after the end of that task, the task that cleans up.
 */
#define NDK_LOOPS 4
static char ndk_cases[NDK_LOOPS][200];
static unsigned int ndk_loops;
static bool ndk_cases_have_end;

static void ndk_cases_clear(unsigned int depth)
{
	for (; depth < NDK_LOOPS; depth++)
		ndk_cases[depth][0] = '\0';
}

/* A loop without a case has no line. */
u32 ndk_kunit_case_at(u32 depth, char *to, u32 room)
{
	if (depth >= NDK_LOOPS || !ndk_cases[depth][0])
		return 0;
	return scnprintf(to, room, "%s: %s", depth < ndk_loops ? "case" : "last case",
			 ndk_cases[depth]);
}

/* KUnit calls this after each test that had such a loop, in a separate task. */
static void ndk_cases_end(void *unused)
{
	struct kunit *test = kunit_get_current_test();
	unsigned int depth;
	char line[256];

	if (test && test->status == KUNIT_FAILURE)
		for (depth = 0; ndk_kunit_case_at(depth, line, sizeof(line)); depth++)
			kunit_err(test, "%s\n", line);
	ndk_cases_clear(0);
	ndk_loops = 0;
	ndk_cases_have_end = false;
}

/* Begins a loop. Returns its depth, or -1 if the loop stays out of the log. */
int ndk_kunit_loop_begin(void)
{
	struct kunit *test = ndk_kunit_loggable();

	if (!test || ndk_loops == NDK_LOOPS)
		return -1;
	if (!ndk_cases_have_end && kunit_add_action(test, ndk_cases_end, NULL))
		return -1;
	ndk_cases_have_end = true;
	ndk_cases_clear(ndk_loops);
	return ndk_loops++;
}

void ndk_kunit_case(u32 depth, const char *text, u32 len)
{
	if (depth >= NDK_LOOPS)
		return;
	snprintf(ndk_cases[depth], sizeof(ndk_cases[depth]), "%.*s", len, text);
	ndk_cases_clear(depth + 1);
}

/* A loop that is left early keeps its case, as the test may fail there. */
void ndk_kunit_loop_end(u32 depth, bool is_over)
{
	ndk_loops = min_t(u32, depth, NDK_LOOPS);
	if (is_over)
		ndk_cases_clear(depth);
}

#if NDK_FAULTS

/* The kernel counts fail_nth first; make_it_fail is for later allocations. */
bool ndk_fault_arm(u32 n, bool rest)
{
	if (!n || !in_task() || current->fail_nth || current->make_it_fail)
		return false;
	current->make_it_fail = rest;
	WRITE_ONCE(current->fail_nth, n);
	return true;
}

u32 ndk_fault_left(void)
{
	return READ_ONCE(current->fail_nth);
}

void ndk_fault_disarm(void)
{
	WRITE_ONCE(current->fail_nth, 0);
	current->make_it_fail = 0;
}

#else

bool ndk_fault_arm(u32 n, bool rest)
{
	return false;
}

u32 ndk_fault_left(void)
{
	return 0;
}

void ndk_fault_disarm(void)
{
}

#endif

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
void ndk_fault_set(struct ndk_faults *faults, u32 kind,
		   const struct ndk_fault_order *order)
{
	struct ndk_fault_settings settings = order->settings;
	struct ndk_fault *f = &faults->fault[kind];

	guard(mutex)(&ndk_faults_mutex);
	atomic_set(&f->attr.times, order->times);
	atomic_set(&f->attr.space, order->space);
	settings.probability = f->settings.probability;
	scoped_guard(spinlock_irqsave, &faults->lock)
		f->settings = settings;
	ndk_fault_arm_locked(f, order->settings.probability);
}
#endif

/* Hides the warnings of the test in this task; NULL without a test. */
void *ndk_warnings_hide(void)
{
	struct kunit *test = kunit_get_current_test();

	return test ? kunit_start_suppress_warning(test) : NULL;
}

u32 ndk_warnings_show(void *hidden)
{
	u32 count = kunit_suppressed_warning_count(hidden);

	kunit_end_suppress_warning(kunit_get_current_test(), hidden);
	return count;
}

/* The suites of the module, or of the kernel if they are built in. */
static struct kunit_suite * const *ndk_kunit_suites(unsigned int *n)
{
#ifdef MODULE
	*n = THIS_MODULE->num_kunit_suites;
	return THIS_MODULE->kunit_suites;
#else
	*n = __kunit_suites_end - __kunit_suites_start;
	return __kunit_suites_start;
#endif
}

/* Suites that run must not be changed. */
static bool ndk_kunit_suites_run(void)
{
#ifdef MODULE
	return THIS_MODULE->state != MODULE_STATE_COMING;
#else
	return kunit_get_current_test();
#endif
}

static struct kunit_suite *ndk_kunit_suite(const char *name)
{
	struct kunit_suite * const *suites;
	unsigned int i, n;

	suites = ndk_kunit_suites(&n);
	for (i = 0; i < n; i++) {
		if (!strcmp(suites[i]->name, name))
			return suites[i];
	}
	return NULL;
}

int ndk_kunit_slow(const char *suite, const char *test)
{
	struct kunit_suite *found = ndk_kunit_suite(suite);
	struct kunit_case *c;

	if (ndk_kunit_suites_run())
		return -EBUSY;
	if (!found)
		return -ENOENT;
	kunit_suite_for_each_test_case(found, c) {
		if (strcmp(c->name, test))
			continue;
		c->attr.speed = KUNIT_SPEED_SLOW;
		return 0;
	}
	return -ENOENT;
}
