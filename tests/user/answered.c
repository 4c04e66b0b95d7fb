// SPDX-License-Identifier: GPL-2.0
/*
 * answered: loaded before the C library, poll() says that the one descriptor it waits for is
 * readable, without a wait.
 *
 * For `iscsiadm -m discovery` over a transport of the kernel's (open-iscsi 2.1).  Its questions and
 * the kernel's acknowledgments go through one netlink socket with the answers of the target
 * (__kipc_call() in usr/netlink.c).  An answer that comes before the acknowledgment is read and
 * kept with it; discovery_sendtargets() in usr/discovery.c then waits for another one, for half a
 * minute, connects again, and ends with a segmentation fault.  With this it looks at what it
 * keeps first, and reads where it keeps nothing, which waits as well.
 *
 * options: -shared -fPIC
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
