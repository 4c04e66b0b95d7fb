// SPDX-License-Identifier: GPL-2.0
/* Processors and per-CPU counters. */
#include <linux/cpumask.h>
#include <linux/group_cpus.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "../shim.h"

/*
 * Rust keeps a per-CPU address as a plain pointer.  With GCC on x86, __percpu
 * is a separate address space: only a cast through an integer converts to or
 * from it.
 */
#define NDK_TO_PERCPU(type, ptr)	((__force type __percpu *)(unsigned long)(ptr))
#define NDK_FROM_PERCPU(ptr)		((void *)(__force unsigned long)(ptr))

u32 ndk_cpu_possible(void)
{
	return num_possible_cpus();
}

/*
 * Stores the first processor of each group; a group beyond the last begins
 * again with the first.  In C, not in Rust: the size of a mask is the kernel's,
 * and the array of masks must be freed.
 */
int ndk_cpu_spread(u32 *cpus, u32 groups)
{
	struct cpumask *masks;
	unsigned int n;
	u32 i;

	masks = group_cpus_evenly(groups, &n);
	if (!masks)
		return -ENOMEM;
	for (i = 0; i < groups; i++)
		cpus[i] = n ? cpumask_first(&masks[i % n]) : 0;
	kfree(masks);
	return 0;
}

void *ndk_percpu_alloc(u32 counters)
{
	return NDK_FROM_PERCPU(__alloc_percpu(counters * sizeof(u64),
					      __alignof__(u64)));
}

void ndk_percpu_free(void *counters)
{
	free_percpu(NDK_TO_PERCPU(void, counters));
}

void ndk_percpu_add(void *counters, const struct ndk_add *adds, u32 n)
{
	u64 __percpu *p = NDK_TO_PERCPU(u64, counters);

	for (; n--; adds++)
		this_cpu_add(p[adds->index], adds->n);
}

/* In C: the walk and the address are macros. */
u64 ndk_percpu_sum(void *counters, u32 index)
{
	u64 __percpu *p = NDK_TO_PERCPU(u64, counters);
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(&p[index], cpu));
	return sum;
}

u32 ndk_cpumask_first(const struct cpumask *mask)
{
	return mask ? cpumask_first(mask) : nr_cpu_ids;
}
