// SPDX-License-Identifier: GPL-2.0

//! Processor numbers, and counters that each processor keeps for itself.
//!
//! C headers: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h),
//! [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use core::ptr::NonNull;

use kernel::{
    cpu::CpuId,
    error::to_result,
    prelude::*, //
};

use crate::bindings;

#[cfg(ndk_kunit)]
pub(crate) use tests::is_online;

pub(crate) use kernel::cpu::nr_cpu_ids as count_ids;

/// The number of the current processor; stale at once where preemption is on. Any context.
#[inline]
pub(crate) fn current() -> u32 {
    CpuId::current().as_u32()
}

/// Returns the number of possible processors. Any context.
pub(crate) fn count_possible() -> u32 {
    // SAFETY: Reads a mask that is constant after boot.
    unsafe { bindings::ndk_cpu_possible() }
}

/// Spreads the processors over `groups` groups, as the kernel spreads interrupts and block queues,
/// and returns the first processor of each group.
///
/// Process context. `ENOMEM` when there is no memory.
pub(crate) fn spread(groups: u32) -> Result<KVec<u32>> {
    // CAST: widening.
    let mut cpus = KVec::from_elem(0, groups as usize, GFP_KERNEL)?;
    // SAFETY: `cpus` has `groups` elements, which the function writes during the call.
    to_result(unsafe { bindings::ndk_cpu_spread(cpus.as_mut_ptr(), groups) })?;
    Ok(cpus)
}

/// `N` counters of 64 bits, kept apart for each processor and summed when read.
///
/// # Invariants
///
/// Points at a live per-processor allocation of `N` initialised `u64`, which only `drop` frees.
pub(crate) struct PerCpuCounters<const N: usize>(NonNull<c_void>);

// SAFETY: The allocation belongs to no thread and is only changed by per-processor additions.
unsafe impl<const N: usize> Send for PerCpuCounters<N> {}
// SAFETY: Additions are per processor, and a sum reads each counter in a single load.
unsafe impl<const N: usize> Sync for PerCpuCounters<N> {}

impl<const N: usize> PerCpuCounters<N> {
    /// Makes counters, all zero. Process context. `ENOMEM` when there is no memory.
    pub(crate) fn new() -> Result<Self> {
        // CAST: `N` counts the names of one table; a per-processor area is far below 4 GiB.
        // SAFETY: The function requires process context only.
        let area = unsafe { bindings::ndk_percpu_alloc(N as u32) };
        // INVARIANT: The new allocation belongs to this object alone, and is zeroed.
        Ok(Self(NonNull::new(area).ok_or(ENOMEM)?))
    }

    /// Adds `n` to counter `index`; ignores an unknown index. Any context.
    #[inline]
    pub(crate) fn add(&self, index: usize, n: u64) {
        self.add_each([(index, n)]);
    }

    /// Adds to several counters, each by its index; to none if any index is unknown. Any context.
    #[inline]
    pub(crate) fn add_each<const K: usize>(&self, adds: [(usize, u64); K]) {
        if adds.iter().all(|(index, _)| *index < N) {
            // CAST: widening.
            let adds = adds.map(|(index, n)| bindings::ndk_add {
                index: index as u64,
                n,
            });
            // CAST: a handful.
            // SAFETY: Each index is below `N`, so by the invariant the allocation has its counter;
            // the list is read during the call.
            unsafe { bindings::ndk_percpu_add(self.0.as_ptr(), adds.as_ptr(), K as u32) };
        }
    }

    /// The sum of counter `index` over all processors; zero if there is none. Any context.
    ///
    /// Concurrent additions may or may not be in the sum.
    pub(crate) fn sum(&self, index: usize) -> u64 {
        if index >= N {
            return 0;
        }
        // CAST: `index` is below `N`, which fits as in `new`.
        // SAFETY: `index` is below `N`, so by the invariant the allocation has this counter.
        unsafe { bindings::ndk_percpu_sum(self.0.as_ptr(), index as u32) }
    }
}

impl<const N: usize> Drop for PerCpuCounters<N> {
    fn drop(&mut self) {
        // SAFETY: By the invariant the allocation is live, and only this frees it.
        unsafe { bindings::ndk_percpu_free(self.0.as_ptr()) };
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_cpu)]
mod tests {
    use super::*;

    /// Returns the number of processors that are online now. Any context.
    fn count_online() -> u32 {
        // SAFETY: Reads an atomic counter.
        unsafe { bindings::ndk_cpu_online_count() }
    }

    #[test]
    fn counters_are_separate_and_bounded() -> Result {
        let counters = PerCpuCounters::<2>::new()?;
        counters.add(0, 3);
        counters.add(1, 4);
        counters.add(1, u64::MAX);
        counters.add(2, 5);
        kunit_assert_eq!(counters.sum(0), 3);
        kunit_assert_eq!(counters.sum(1), 3);
        counters.add_each([(0, 5), (1, 7)]);
        counters.add_each([(0, 1), (2, 1)]);
        kunit_assert_eq!(counters.sum(0), 8);
        kunit_assert_eq!(counters.sum(1), 10);
        kunit_assert_eq!(counters.sum(2), 0);
        Ok(())
    }

    /// Returns true if processor `cpu` exists and is online now. Any context.
    pub(crate) fn is_online(cpu: u32) -> bool {
        // SAFETY: The function checks the number before it looks at the mask.
        unsafe { bindings::ndk_cpu_is_online(cpu) }
    }

    #[test]
    fn processors_are_numbered_below_the_count() {
        assert!(current() < count_ids());
        assert!(count_online() >= 1);
        assert!(count_online() <= count_possible());
        assert!(is_online(current()));
        assert!(!is_online(count_ids()));
    }
}
