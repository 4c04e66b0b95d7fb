// SPDX-License-Identifier: GPL-2.0
/*
 * answered: loaded before the C library, its poll() reports a lone descriptor
 * as readable, without a wait.
 *
 * For `iscsiadm -m discovery` over a kernel transport (open-iscsi 2.1).  One
 * netlink socket carries its questions, the kernel's acknowledgments and the
 * target's answers (__kipc_call() in usr/netlink.c). iscsiadm reads an answer
 * that comes before the acknowledgment together with that, and keeps it;
 * discovery_sendtargets() in usr/discovery.c then waits half a minute for
 * another answer, connects again, and ends with a segmentation fault.  With
 * this library iscsiadm looks at the kept answer first; if there is none it
 * reads, which waits as well.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int (*waits)(struct pollfd *fds, nfds_t count, int timeout) = dlsym(RTLD_NEXT, "poll");

	if (count != 1 || !(fds->events & POLLIN))
		return waits(fds, count, timeout);
	fds->revents = POLLIN;
	return 1;
}
