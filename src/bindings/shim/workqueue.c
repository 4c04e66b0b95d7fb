// SPDX-License-Identifier: GPL-2.0
/* Softirq sections and work queues. */
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/preempt.h>
#include <linux/workqueue.h>

#include "../shim.h"

bool ndk_may_run_bh(void)
{
	return !in_hardirq() && !in_nmi() && !irqs_disabled();
}

bool ndk_in_softirq(void)
{
	return softirq_count() != 0;
}

bool ndk_bh_enter(void)
{
	if (!ndk_may_run_bh())
		return false;
	local_bh_disable();
	return true;
}

void ndk_bh_enable(void)
{
	local_bh_enable();
}

/* @max_active 0 stands for the kernel's default. */
struct workqueue_struct *ndk_wq_alloc(const char *name, u32 flags,
				      u32 max_active)
{
	return alloc_workqueue("%s", flags, max_active, name);
}

bool ndk_in_task(void)
{
	return in_task();
}

/* Returns false if @work is queued already. */
bool ndk_queue_work_on(struct workqueue_struct *wq, struct work_struct *work,
		       u32 cpu)
{
	bool queued;

	/*
	 * With preemption off no CPU goes offline between the test and the
	 * call; the kernel crate has no guard for that.
	 */
	preempt_disable();
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		cpu = WORK_CPU_UNBOUND;
	queued = queue_work_on(cpu, wq, work);
	preempt_enable();
	return queued;
}
