// SPDX-License-Identifier: GPL-2.0

//! Allocations that fail where a test says so.
//!
//! A [`FailNth`] counts the allocations of the task that holds it and lets one of
//! them fail, or all from one on. It counts slab objects and pages of order 3
//! or more, with any flags; the loader of the tests sets the kernel so, and leaves
//! out the allocations that the slab allocator and the checkers make for
//! themselves. Built-in tests run before that is possible: then there are no
//! faults. Per-processor memory and fewer pages do not fail. A test counts up from
//! 1 until [`FailNth::struck`] says that there was no such allocation.
//!
//! A `KVVec` tries again, once or twice, and survives one failure:
//! [`FailNth::from_nth`] makes it fail.
//!
//! If the tested code allocates in a work function, the test makes a plan
//! ([`plan`], [`plan_from`]) which the work function takes up ([`begin_planned`]).
//! There is one plan at a time, for all tasks: a test that plans must be the only
//! user of such work functions in that time. A softirq has no task, and its
//! allocations do not fail.
//!
//! C header: [`include/linux/fault-inject.h`](srctree/include/linux/fault-inject.h)

use kernel::{
    page::PAGE_SIZE,
    str::CStrExt,
    sync::atomic::{
        ordering::{
            Acquire,
            Full,
            Relaxed,
            Release, //
        },
        Atomic, //
    },
    types::NotThreadSafe, //
};

use crate::{
    bindings,
    kunit::harness::wait_until, //
};

/// The number of the allocation that is to fail, from 1 in the sections to come; 0 for none.
static PLANNED: Atomic<u32> = Atomic::new(0);
/// True if all allocations after that one are planned to fail, too.
static PLANNED_REST: Atomic<bool> = Atomic::new(false);
/// True if the plan's fault was delivered.
static STRUCK: Atomic<bool> = Atomic::new(false);
/// The number of planned sections that run, or look for a plan.
static SECTIONS: Atomic<u32> = Atomic::new(0);

/// A section of the current task in which an allocation fails.
///
/// # Invariants
///
/// The task's count was set for this guard; until the count is 0 only the kernel's counting changes
/// it, and `drop`, which runs in the same task.
pub(crate) struct FailNth {
    planned: bool,
    rest: bool,
    _here: NotThreadSafe,
}

impl FailNth {
    /// Lets the `n`-th allocation from here on fail, and none after it.
    ///
    /// `None` when the kernel has no fault injection, outside of a task, when the task has a guard
    /// that has not struck or one of [`FailNth::from_nth`], and for `n == 0`. Any context.
    pub(crate) fn new(n: u32) -> Option<Self> {
        Self::arm(n, false)
    }

    /// Lets the `n`-th allocation from here on fail, and all after it, until the guard goes.
    ///
    /// `None` as [`FailNth::new`]. Any context.
    pub(crate) fn from_nth(n: u32) -> Option<Self> {
        Self::arm(n, true)
    }

    fn arm(n: u32, rest: bool) -> Option<Self> {
        // SAFETY: The function changes the current task's counts, which only this module uses.
        let armed = unsafe { bindings::ndk_fault_arm(n, rest) };
        // INVARIANT: The count was just set, and no other guard's is above 0.
        armed.then(|| Self {
            planned: false,
            rest,
            _here: NotThreadSafe,
        })
    }

    /// The number of allocations up to the failing one; 0 when that was reached.
    fn left(&self) -> u32 {
        // SAFETY: Reads a number of the current task.
        unsafe { bindings::ndk_fault_left() }
    }

    /// Returns true if the fault was delivered. Any context.
    pub(crate) fn struck(&self) -> bool {
        self.left() == 0
    }
}

impl Drop for FailNth {
    fn drop(&mut self) {
        let left = self.left();
        // SAFETY: Changes the current task's counts; by the invariant they are this guard's.
        unsafe { bindings::ndk_fault_disarm() };
        if !self.planned {
            return;
        }
        if left == 0 {
            STRUCK.store(true, Relaxed);
        }
        // The next section continues the count of this one, or its failures.
        if left > 0 || self.rest {
            PLANNED.store(left.max(1), Relaxed);
        }
        SECTIONS.fetch_sub(1, Release);
    }
}

/// Returns true if an allocation of `bytes` bytes is counted, as a slab object or as pages.
pub(crate) const fn is_counted(bytes: usize) -> bool {
    bytes <= 2 * PAGE_SIZE || bytes > 4 * PAGE_SIZE
}

/// Returns true if the kernel can let allocations fail. Any context.
pub(crate) fn is_available() -> bool {
    // SAFETY: Reads a constant.
    unsafe { bindings::ndk_fault_is_available() }
}

/// Returns true if the kernel can let allocations fail. If not, the test that runs in this task
/// counts as skipped, and has to end.
pub(crate) fn needed() -> bool {
    let available = is_available();
    if !available {
        // SAFETY: The function changes the state of this task's test only; the text is
        // NUL-terminated.
        unsafe { bindings::ndk_kunit_skip(c"no CONFIG_FAILSLAB, or built in".as_char_ptr()) };
    }
    available
}

/// Plans that the `n`-th allocation in planned sections fails, from here on.
///
/// Returns false, without a plan, when the kernel has no fault injection. Any context.
pub(crate) fn plan(n: u32) -> bool {
    set_plan(n, false)
}

/// Plans that the `n`-th allocation in planned sections fails and all after it, from here on.
///
/// Returns false, without a plan, when the kernel has no fault injection. Any context.
pub(crate) fn plan_from(n: u32) -> bool {
    set_plan(n, true)
}

fn set_plan(n: u32, rest: bool) -> bool {
    if !is_available() {
        return false;
    }
    STRUCK.store(false, Relaxed);
    PLANNED_REST.store(rest, Relaxed);
    PLANNED.store(n, Release);
    true
}

/// Begins a planned section, which lasts until the guard goes; `None` without a plan.
///
/// A work function calls this first. Of concurrent sections one has the plan. Any context.
pub(crate) fn begin_planned() -> Option<FailNth> {
    SECTIONS.fetch_add(1, Acquire);
    let n = PLANNED.xchg(0, Full);
    let guard = FailNth::arm(n, PLANNED_REST.load(Relaxed));
    match guard {
        Some(mut guard) => {
            guard.planned = true;
            Some(guard)
        }
        None => {
            if n > 0 {
                PLANNED.store(n, Relaxed);
            }
            SECTIONS.fetch_sub(1, Release);
            None
        }
    }
}

/// Waits for the sections that run, ends the plan, and returns true if its fault was delivered.
///
/// Process context; sleeps.
pub(crate) fn planned_struck() -> bool {
    wait_until(|| SECTIONS.load(Acquire) == 0);
    PLANNED.store(0, Relaxed);
    STRUCK.xchg(false, Full)
}

#[kernel::macros::kunit_tests(ndk_sys_tests_fault)]
mod tests {
    use super::*;
    use crate::{
        kunit::harness::cases,
        sys::softirq::{
            BhDisabled,
            ProcessQueue, //
        }, //
    };
    use kernel::{
        alloc::Flags,
        impl_has_work,
        new_work,
        prelude::*,
        sync::Arc,
        workqueue::{
            Work,
            WorkItem, //
        }, //
    };

    /// Makes `count` small objects one after the other; bit `i` is set when the `i`-th was made.
    fn made(count: u32, flags: Flags) -> u32 {
        let mut made = 0;
        for i in 0..count {
            if KBox::new(u64::from(i), flags).is_ok() {
                made |= 1 << i;
            }
        }
        made
    }

    /// Five planned allocations in a work function, and a bit for each that succeeded.
    #[pin_data]
    struct Planned {
        #[pin]
        work: Work<Planned>,
        made: Atomic<u32>,
    }

    impl_has_work! {
        impl HasWork<Self> for Planned { self.work }
    }

    impl WorkItem for Planned {
        type Pointer = Arc<Planned>;

        fn run(this: Arc<Planned>) {
            let _fault = begin_planned();
            this.made.store(made(5, GFP_KERNEL), Relaxed);
        }
    }

    fn planned() -> Result<Arc<Planned>> {
        let init = pin_init!(Planned {
            work <- new_work!("ndk_fault_test"),
            made: Atomic::new(0),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    #[test]
    fn a_guard_is_there_exactly_where_the_kernel_injects_faults() {
        let guard = FailNth::new(1);
        let is_some = guard.is_some();
        drop(guard);
        kunit_assert_eq!(is_some, is_available());
        kunit_assert_eq!(is_available(), cfg!(all(CONFIG_FAILSLAB, MODULE)));
        kunit_assert_eq!(plan(1), is_available());
        assert!(!planned_struck());
        assert!(FailNth::new(0).is_none());
    }

    #[test]
    fn the_first_allocation_fails_whatever_its_flags() {
        if !needed() {
            return;
        }
        for flags in [GFP_KERNEL, GFP_ATOMIC, GFP_NOWAIT] {
            let guard = FailNth::new(1);
            let first = KBox::new(1u64, flags);
            let second = KBox::new(2u64, flags);
            let struck = guard.as_ref().map(FailNth::struck);
            drop(guard);
            assert!(first.is_err());
            assert!(second.is_ok());
            kunit_assert_eq!(struck, Some(true));
        }
    }

    #[test]
    fn the_nth_allocation_fails_alone_or_with_the_rest() {
        if !needed() {
            return;
        }
        let guard = FailNth::new(3);
        let alone = made(5, GFP_KERNEL);
        drop(guard);
        let guard = FailNth::from_nth(3);
        let rest = made(5, GFP_KERNEL);
        drop(guard);
        kunit_assert_eq!(alone, 0b11011);
        kunit_assert_eq!(rest, 0b00011);
        kunit_assert_eq!(made(5, GFP_KERNEL), 0b11111);
    }

    #[test]
    fn with_bottom_halves_off_the_task_still_counts() {
        if !needed() {
            return;
        }
        let section = BhDisabled::enter();
        let guard = FailNth::new(2);
        let result = made(3, GFP_ATOMIC);
        drop(guard);
        drop(section);
        kunit_assert_eq!(result, 0b101);
    }

    #[test]
    fn a_fault_not_reached_has_not_struck_and_goes_with_its_guard() {
        if !needed() {
            return;
        }
        let guard = FailNth::new(100);
        let inner = FailNth::new(1).is_none();
        let result = made(5, GFP_KERNEL);
        let struck = guard.as_ref().map(FailNth::struck);
        drop(guard);
        assert!(inner);
        kunit_assert_eq!(result, 0b11111);
        kunit_assert_eq!(struck, Some(false));
        for _ in 0..30 {
            kunit_assert_eq!(made(5, GFP_KERNEL), 0b11111);
        }
    }

    #[test]
    fn a_large_vector_survives_one_failure_and_not_all() {
        if !needed() {
            return;
        }
        for size in cases([6000, 1 << 16]) {
            let guard = FailNth::new(1);
            let one = KVVec::<u8>::with_capacity(size, GFP_KERNEL);
            let struck = guard.as_ref().map(FailNth::struck);
            drop(guard);
            kunit_assert_eq!(struck, Some(true));
            assert!(one.is_ok());
            let guard = FailNth::from_nth(1);
            let all = KVVec::<u8>::with_capacity(size, GFP_KERNEL);
            let contiguous = KVec::<u8>::with_capacity(size, GFP_KERNEL);
            drop(guard);
            assert!(all.is_err());
            assert!(contiguous.is_err());
        }
    }

    #[test]
    fn a_plan_strikes_in_a_work_function_and_goes_on_in_the_next() -> Result {
        if !needed() {
            return Ok(());
        }
        let queue = ProcessQueue::new(c"ndk_fault_test")?;
        let item = planned()?;
        // (allocation planned, true if the rest fails, objects that three runs make)
        let table = [
            (2, false, [0b11101, 0b11111, 0b11111]),
            (7, false, [0b11111, 0b11101, 0b11111]),
            (7, true, [0b11111, 0b00001, 0b00000]),
            (16, false, [0b11111, 0b11111, 0b11111]),
        ];
        for (n, rest, expected) in cases(table) {
            assert!(if rest { plan_from(n) } else { plan(n) });
            for made in cases(expected) {
                assert!(queue.enqueue(item.clone()).is_ok());
                queue.flush();
                kunit_assert_eq!(item.made.load(Relaxed), made);
            }
            kunit_assert_eq!(planned_struck(), n < 16);
            assert!(begin_planned().is_none());
            assert!(!planned_struck());
        }
        Ok(())
    }

    #[test]
    fn a_plan_leaves_alone_what_is_outside_of_its_sections() -> Result {
        if !needed() {
            return Ok(());
        }
        assert!(plan_from(1));
        let outside = made(5, GFP_KERNEL);
        let section = begin_planned();
        let second = begin_planned().is_some();
        let inside = made(5, GFP_KERNEL);
        drop(section);
        let after = made(5, GFP_KERNEL);
        assert!(planned_struck());
        assert!(!second);
        kunit_assert_eq!((outside, inside, after), (0b11111, 0, 0b11111));
        Ok(())
    }
}
