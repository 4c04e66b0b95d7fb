// SPDX-License-Identifier: GPL-2.0
/* What the core leaves of a device that goes. */
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

/*
 * Wait for work that puts an entry of the device's GID table.  cma_release_dev()
 * puts the device before it puts the GID.  When that was the GID's last reference
 * (an event of the device has made a new entry), the work is queued too late for
 * ib_cache_cleanup_one(), which flushes the queue and frees the table, and the work
 * runs on freed memory.  Under virtualisation, where the woken CPU often runs before
 * the one that woke it goes on, that happened in half of the tries.
 *
 * This makes the window small and does not close it: a task that is preempted in
 * cma_release_dev() between the two puts can still be late.  A provider cannot wait
 * for that task.
 */
void ndk_gid_work_wait(void)
{
	synchronize_rcu();
	flush_workqueue(ib_wq);
}
