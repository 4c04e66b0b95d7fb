// SPDX-License-Identifier: GPL-2.0
/* What the core leaves of a device that goes. */
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

/*
 * Wait for work that puts an entry of the device's GID table.  cma_release_dev()
 * lets the device go before it puts the GID, and when that was the last reference
 * (the device had an event, and with that a new entry) the work comes too late for
 * ib_cache_cleanup_one(), which waits for it: it would find the table freed.  Where
 * a hypervisor runs the woken processor in place of the one that wakes it, that is
 * every second time.
 */
void ndk_gid_work_wait(void)
{
	synchronize_rcu();
	flush_workqueue(ib_wq);
}
