// SPDX-License-Identifier: GPL-2.0
/* Pages, the direct map, scatter lists. */
#include <linux/kcsan-checks.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../shim.h"

struct scatterlist *ndk_sg_entry(struct scatterlist *sg, u64 *addr, u32 *len)
{
	*addr = sg_dma_address(sg);
	*len = sg_dma_len(sg);
	return sg_next(sg);
}

u64 ndk_page_address(const struct page *page)
{
	return (u64)page_address(page);
}

/*
 * What the memory map knows of in one piece: how much of memory a middle page
 * table maps depends on the size of a page, and is 512 MiB with pages of 64 KiB.
 */
#ifdef CONFIG_SPARSEMEM
#define NDK_MAP_STEP	SUBSECTION_SIZE
#else
#define NDK_MAP_STEP	PMD_SIZE
#endif

/* The last byte of the step that @addr is in; 0 if @addr is no memory of the direct map. */
u64 ndk_direct_mapped_until(u64 addr)
{
	return virt_addr_valid((void *)addr) ? addr | (NDK_MAP_STEP - 1) : 0;
}

/*
 * User Mode Linux takes a hole in the vmalloc area for a page that it has yet to
 * map, and tries to read it for ever.  Here, not in Rust, as part of the one function
 * that reads what may not be there.
 */
static bool ndk_is_hole(u64 addr, u64 len)
{
	u64 page = addr >> PAGE_SHIFT, last = (addr + len - 1) >> PAGE_SHIFT;

	if (!IS_ENABLED(CONFIG_UML))
		return false;
	for (; page <= last; page++) {
		void *va = (void *)(page << PAGE_SHIFT);

		if (is_vmalloc_addr(va) && !vmalloc_to_page(va))
			return true;
	}
	return false;
}

#ifdef CONFIG_KCSAN
static __always_inline void ndk_check_marked(void *to, const void *from, size_t len)
{
	kcsan_check_atomic_read(from, len);
	kcsan_check_atomic_write(to, len);
}

/*
 * KCSAN looks for watches at the first two pages of an access: it is told of one page at a
 * time.  It is told before the copy and after it, since a watch may begin during the copy.
 */
void __no_kcsan ndk_copy_marked(void *to, const void *from, size_t len)
{
	size_t at;

	for (at = 0; at < len; at += PAGE_SIZE)
		ndk_check_marked(to + at, from + at, min(len - at, PAGE_SIZE));
	memmove(to, from, len);
	for (at = 0; at < len; at += PAGE_SIZE)
		ndk_check_marked(to + at, from + at, min(len - at, PAGE_SIZE));
}
#endif

bool ndk_read_nofault(void *to, u64 addr, u64 len)
{
	if (len && ndk_is_hole(addr, len))
		return false;
	return !len || !copy_from_kernel_nofault(to, (void *)addr, len);
}
