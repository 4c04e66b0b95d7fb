// SPDX-License-Identifier: GPL-2.0
/* Work that the core still has for a device that goes. */
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

/*
 * Runs the work that the core has queued to free GID entries.  Before that, a
 * task that is about to queue such work gets the time of an RCU grace period.
 * The function does not wait for that task: a provider cannot.
 *
 * The work is free_gid_work() of cache.c, on ib_wq.  (roce_gid_mgmt.c has
 * another queue, which follows the addresses of RoCE ports and has no work of
 * an iWARP device.)  The last rdma_put_gid_attr() queues the work, and the work
 * uses the GID table of the device. ib_cache_cleanup_one() puts the core's own
 * reference to each entry and flushes the queue; then the core calls the
 * provider, and frees the table.  The work of a later put finds no table.
 *
 * The put of cma_release_dev() may be later: the function puts the device
 * before the GID.  The put of the device may be the last that cma_remove_one()
 * waits for, and with it all of the above.  Under virtualisation the woken CPU
 * often runs before the CPU that woke it goes on: there the put of the GID came
 * later in half of the tries.
 *
 * On a kernel that does not preempt itself the grace period ends after the put
 * of the GID: between the two puts a CPU does not schedule, and each CPU has
 * to.  On a kernel that does, the grace period is only time: a task that is
 * preempted between the puts for longer still queues its work too late.  Only a
 * kernel whose cma_release_dev() puts the GID first excludes that.
 */
void ndk_gid_work_flush(void)
{
	synchronize_rcu();
	flush_workqueue(ib_wq);
}
