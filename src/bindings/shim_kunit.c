// SPDX-License-Identifier: GPL-2.0
/*
 * The same functions for ndk_kunit.ko, as one object file serves one module,
 * and those that only tests need.
 */
#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "shim.c"

struct page *ndk_page_of(u64 addr)
{
	void *va = (void *)addr;

	return is_vmalloc_addr(va) ? vmalloc_to_page(va) : virt_to_page(va);
}

bool ndk_queue_work_on(struct workqueue_struct *wq, struct work_struct *work,
		       u32 cpu)
{
	bool queued;

	/* With preemption off no CPU can leave between the test and its use. */
	preempt_disable();
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		cpu = WORK_CPU_UNBOUND;
	queued = queue_work_on(cpu, wq, work);
	preempt_enable();
	return queued;
}

bool ndk_fault_is_available(void)
{
	return IS_ENABLED(CONFIG_FAILSLAB);
}

#ifdef CONFIG_FAILSLAB

/* The kernel counts fail_nth first; make_it_fail is for what comes after. */
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

/* Of the test that runs in this task; NULL if none does. */
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
