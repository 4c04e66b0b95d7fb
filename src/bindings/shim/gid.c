// SPDX-License-Identifier: GPL-2.0
/* What the core leaves of a device that goes. */
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

/*
 * Has the core carry out what is queued to free GID entries, and gives a task that
 * is about to queue such work the time of an RCU grace period first.  It does not
 * wait for that task: a provider cannot.
 *
 * The work is free_gid_work() of cache.c, on ib_wq.  (The queue of roce_gid_mgmt.c
 * is another one; it follows the addresses of RoCE ports and has none of an iWARP
 * device.)  The last rdma_put_gid_attr() queues it, and the work looks at the table
 * that its device has.  ib_cache_cleanup_one() takes the core's own reference to
 * each entry and flushes the queue; then the core calls the provider, and frees the
 * table.  A put that comes later is lost on the table.
 *
 * cma_release_dev() may come later: it puts the device before the GID.  The first
 * put may be the one that cma_remove_one(), and with it all of the above, waits
 * for.  Under virtualisation, where the woken CPU often runs before the one that
 * woke it goes on, the second put came later in half of the tries.
 *
 * On a kernel that does not preempt itself the grace period ends after the second
 * put: there is no point of scheduling between the two, and each CPU passes one.
 * On one that does, the grace period is only time: a task that is preempted between
 * them for longer still queues its work too late.  What ends that is a kernel whose
 * cma_release_dev() puts the GID first.
 */
void ndk_gid_work_flush(void)
{
	synchronize_rcu();
	flush_workqueue(ib_wq);
}
