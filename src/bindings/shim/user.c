// SPDX-License-Identifier: GPL-2.0
/* Programs: their memory, and who they are. */
#include <linux/pid.h>
#include <linux/sched.h>
#include <rdma/ib_umem.h>

#include "../shim.h"

struct ib_umem *ndk_umem_get(struct ib_device *device, u64 addr, u64 len,
			     int access)
{
	return ib_umem_get_va(device, addr, len, access);
}

void ndk_umem_release(struct ib_umem *umem)
{
	ib_umem_release(umem);
}

struct pid *ndk_get_current_process(void)
{
	return get_task_pid(current, PIDTYPE_TGID);
}

void ndk_put_process(struct pid *process)
{
	put_pid(process);
}
