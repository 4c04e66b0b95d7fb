// SPDX-License-Identifier: GPL-2.0
/* Programs: their memory, their processes, and their answers. */
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

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

struct ib_udata *ndk_udata_of(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}

int ndk_udata_answer(struct ib_udata *udata, u64 offset)
{
	return ib_copy_to_udata(udata, &offset, sizeof(offset));
}

/* The program's request has the address of the answer. */
int ndk_udata_answer_there(struct ib_udata *udata, u64 offset)
{
	u64 there;

	if (udata->inlen < sizeof(there))
		return -EINVAL;
	if (ib_copy_from_udata(&there, udata, sizeof(there)))
		return -EFAULT;
	if (copy_to_user(u64_to_user_ptr(there), &offset, sizeof(offset)))
		return -EFAULT;
	return 0;
}

int ndk_share_insert(struct ib_udata *udata, struct rdma_user_mmap_entry *entry,
		     size_t len)
{
	struct ib_ucontext *context;

	context = rdma_udata_to_uverbs_attr_bundle(udata)->context;
	if (!context)
		return -EINVAL;
	return rdma_user_mmap_entry_insert(context, entry, len);
}

/* The kernel's functions are inlines where no program can have a device. */
void ndk_share_remove(struct rdma_user_mmap_entry *entry)
{
	rdma_user_mmap_entry_remove(entry);
}

struct rdma_user_mmap_entry *ndk_share_get(struct ib_ucontext *context,
					   struct vm_area_struct *vma)
{
	return rdma_user_mmap_entry_get(context, vma);
}

void ndk_share_put(struct rdma_user_mmap_entry *entry)
{
	rdma_user_mmap_entry_put(entry);
}

u64 ndk_share_offset(const struct rdma_user_mmap_entry *entry)
{
	return rdma_user_mmap_get_offset(entry);
}

/* Maps pages of vmalloc(); the mapping has its own reference to each page. */
int ndk_share_map(struct vm_area_struct *vma, const void *from, size_t len)
{
	size_t at;
	int ret;

	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (at = 0; at < len; at += PAGE_SIZE) {
		ret = vm_insert_page(vma, vma->vm_start + at,
				     vmalloc_to_page(from + at));
		if (ret)
			return ret;
	}
	return 0;
}
