// SPDX-License-Identifier: GPL-2.0
/* Pages, the direct map, scatter lists. */
#include <linux/kasan-checks.h>
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
 * The part of memory that the memory map knows as a whole.  The size that a
 * middle page table maps depends on the page size: with pages of 64 KiB it is
 * 512 MiB.
 */
#ifdef CONFIG_SPARSEMEM
#define NDK_MAP_STEP	SUBSECTION_SIZE
#else
#define NDK_MAP_STEP	PMD_SIZE
#endif

/* Returns the last byte of @addr's step, or 0 outside of the direct map. */
u64 ndk_direct_mapped_until(u64 addr)
{
	return virt_addr_valid((void *)addr) ? addr | (NDK_MAP_STEP - 1) : 0;
}

/*
 * User Mode Linux takes a hole in the vmalloc area for a page that it has yet
 * to map, and tries to read the hole for ever.  In C, not in Rust: a part of
 * the one function that reads memory that may not be there.
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

static __always_inline void ndk_check_marked(void *to, const void *from, size_t len)
{
	kcsan_check_atomic_read(from, len);
	kcsan_check_atomic_write(to, len);
}

#ifdef CONFIG_KCSAN
/*
 * KCSAN looks for watches at the first two pages of an access: this function
 * reports one page at a time.  It reports before the copy and after it, since a
 * watch may begin during the copy.
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

/* Reports a copy that KCSAN does not see: before the copy and after it. */
static void ndk_tell_kcsan(u64 to, u64 from, size_t len)
{
	size_t at;

	for (at = 0; IS_ENABLED(CONFIG_KCSAN) && at < len; at += PAGE_SIZE)
		ndk_check_marked((void *)to + at, (void *)from + at, min(len - at, PAGE_SIZE));
}

/* Reports to KASAN, too: after it, as memory that faults may lack a shadow. */
static int ndk_copied(u64 to, u64 from, size_t len)
{
	kasan_check_read((void *)from, len);
	kasan_check_write((void *)to, len);
	ndk_tell_kcsan(to, from, len);
	return 0;
}

/*
 * Copies memory of the direct map that may be read-only, or taken out of the
 * map.  Returns 0, a negative number if the source cannot be read, or a
 * positive one if the sink cannot be written.  The two may overlap.
 *
 * The kernel exports the function that reads, and not the one that writes.
 * User Mode Linux has fixups only for the kernel itself: there a sink that
 * cannot be written is a fault of the kernel.  (It takes no memory out of its
 * map.)
 */
#ifdef CONFIG_UML
int ndk_copy_nofault(u64 to, u64 from, size_t len)
{
	ndk_tell_kcsan(to, from, len);
	if (to > from && to - from < len)
		memmove((void *)to, (void *)from, len);
	else if (copy_from_kernel_nofault((void *)to, (void *)from, len))
		return -EFAULT;
	return ndk_copied(to, from, len);
}
#else
/* Copies eight bytes, or one. */
static __always_inline int ndk_copy_step(u64 to, u64 from, bool is_word)
{
	u64 word;

	if (is_word) {
		__get_kernel_nofault(&word, (void *)from, u64, bad_from);
		__put_kernel_nofault((void *)to, &word, u64, bad_to);
	} else {
		__get_kernel_nofault(&word, (void *)from, u8, bad_from);
		__put_kernel_nofault((void *)to, &word, u8, bad_to);
	}
	return 0;
bad_from:
	return -EFAULT;
bad_to:
	return 1;
}

int __no_kcsan ndk_copy_nofault(u64 to, u64 from, size_t len)
{
	bool backwards = to > from && to - from < len;
	size_t left = len, step, at;
	int bad = 0;

	ndk_tell_kcsan(to, from, len);
	pagefault_disable();
	for (; left && !bad; left -= step) {
		step = left < sizeof(u64) ? 1 : sizeof(u64);
		at = backwards ? left - step : len - left;
		bad = ndk_copy_step(to + at, from + at, step != 1);
	}
	pagefault_enable();
	return bad ?: ndk_copied(to, from, len);
}
#endif

bool ndk_read_nofault(void *to, u64 addr, u64 len)
{
	if (len && ndk_is_hole(addr, len))
		return false;
	return !len || !copy_from_kernel_nofault(to, (void *)addr, len);
}
