// SPDX-License-Identifier: GPL-2.0

//! Bottom half sections, and work queues in softirq and process context.
//!
//! A [`BhQueue`] runs its items in softirq on the processor they were queued
//! on; a [`ProcessQueue`] runs them in a kernel thread where they may sleep.
//! Items are ordinary [`kernel::workqueue`] items: a `Work<Self>` field,
//! `impl_has_work!`, and `WorkItem` with an `Arc` pointer. The queue owns a
//! reference from the time an item is queued until it runs. An item does not run
//! twice at a time: an item that is queued while it runs, runs once more after
//! that, on the same processor.
//!
//! C headers: [`include/linux/bottom_half.h`](srctree/include/linux/bottom_half.h),
//! [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::ptr::NonNull;

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    },
    types::NotThreadSafe,
    workqueue::{
        Queue,
        RawWorkItem, //
    }, //
};

use super::{
    cpu,
    time, //
};
use crate::bindings;

#[cfg(ndk_kunit)]
pub(crate) use tests::may_run_here;

/// Returns true if this is softirq, or a section that keeps softirqs off. Any context.
pub(crate) fn is_here() -> bool {
    // SAFETY: Reads the state of the current context only.
    unsafe { bindings::ndk_in_softirq() }
}

/// Returns true in a task, with softirqs and interrupts on or off; false in softirq and interrupt.
/// Any context.
#[inline]
fn is_task() -> bool {
    // SAFETY: Reads the state of the current context only.
    unsafe { bindings::ndk_in_task() }
}

/// A section in which softirqs do not run on this processor.
///
/// The holder must not sleep. Sections nest.
///
/// # Invariants
///
/// `local_bh_disable()` was called once for this guard, in this context.
pub(crate) struct BhDisabled(NotThreadSafe);

impl BhDisabled {
    /// Opens a section; `None` in hard interrupt and NMI, and with
    /// interrupts disabled, because closing one there is not allowed.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        // SAFETY: The function tests whether this is a context where softirqs may be turned off.
        let entered = unsafe { bindings::ndk_bh_enter() };
        // INVARIANT: `true` says that `local_bh_disable()` was called once.
        entered.then(|| Self(NotThreadSafe))
    }
}

impl Drop for BhDisabled {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the invariant this balances one `local_bh_disable()`. Pending softirqs run
        // now; a caller that disabled interrupts inside of the section broke the nesting of its own
        // guards.
        unsafe { bindings::ndk_bh_enable() };
    }
}

/// A work queue that this object owns; [`BhQueue`] and [`ProcessQueue`] differ in where items run.
///
/// Dropping it runs the queued items and waits for them; that needs process context.
///
/// # Invariants
///
/// Points at a workqueue that only `drop` destroys.
pub(crate) struct OwnQueue<const IN_SOFTIRQ: bool>(NonNull<bindings::workqueue_struct>);

/// A work queue whose items run in softirq. C: `WQ_BH | WQ_PERCPU`.
pub(crate) type BhQueue = OwnQueue<true>;

/// A work queue whose items run in process context and may sleep. C: `WQ_UNBOUND | WQ_MEM_RECLAIM`.
pub(crate) type ProcessQueue = OwnQueue<false>;

// SAFETY: All functions of `workqueue_struct` used here may be called from any thread.
unsafe impl<const IN_SOFTIRQ: bool> Send for OwnQueue<IN_SOFTIRQ> {}
// SAFETY: These functions may be called concurrently, too.
unsafe impl<const IN_SOFTIRQ: bool> Sync for OwnQueue<IN_SOFTIRQ> {}

impl<const IN_SOFTIRQ: bool> OwnQueue<IN_SOFTIRQ> {
    /// Makes a queue; 0 for `max_active` is the kernel's default.
    fn alloc(name: &CStr, flags: bindings::wq_flags, max_active: u32) -> Result<Self> {
        // SAFETY: `name` is NUL-terminated and only read during the call.
        let wq = unsafe { bindings::ndk_wq_alloc(name.as_char_ptr(), flags, max_active) };
        // INVARIANT: The new workqueue belongs to this object.
        Ok(Self(NonNull::new(wq).ok_or(ENOMEM)?))
    }

    fn queue(&self) -> &Queue {
        // SAFETY: By the type invariant the workqueue lives as long as `self`.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }

    /// Queues `item`; on the current processor for a [`BhQueue`]. Any context.
    ///
    /// Gives the item back when it is already queued; it then runs once.
    #[inline]
    pub(crate) fn enqueue<W, const ID: u64>(&self, item: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.queue().enqueue(item)
    }

    /// Waits until all items queued before the call have run. Process context.
    pub(crate) fn flush(&self) {
        // SAFETY: By the type invariant the workqueue is live.
        unsafe { bindings::__flush_workqueue(self.0.as_ptr()) };
    }
}

impl<const IN_SOFTIRQ: bool> Drop for OwnQueue<IN_SOFTIRQ> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the workqueue is live, and only this destroys it.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}

impl BhQueue {
    /// Makes a queue. Process context. `ENOMEM` when there is no memory.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        Self::alloc(
            name,
            bindings::wq_flags_WQ_BH | bindings::wq_flags_WQ_PERCPU,
            0,
        )
    }

    /// Queues `item` on processor `cpu`, or on the current one when `cpu` is offline. Any context.
    ///
    /// Gives the item back when it is already queued.
    #[inline]
    pub(crate) fn enqueue_on<W, const ID: u64>(&self, cpu: u32, item: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        let wq = self.0.as_ptr();
        // SAFETY: `ndk_queue_work_on` returns false only when the item is already queued; `W` is
        // `Send` and `'static`, so it may run on any thread at any time; the workqueue is live.
        unsafe { item.__enqueue(move |work| bindings::ndk_queue_work_on(wq, work, cpu)) }
    }
}

impl ProcessQueue {
    /// Makes a queue. Process context. `ENOMEM` when there is no memory.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM;
        Self::alloc(name, flags, 0)
    }

    /// Makes a queue whose items run on the processor they were queued on, one after another. C:
    /// `WQ_PERCPU | WQ_MEM_RECLAIM`, `max_active` 1. Process context. `ENOMEM` when there is no
    /// memory.
    ///
    /// All such queues of the kernel share one list of items for each processor, and the items run
    /// in the order of the list. This queue has one item at a time on a list, however many are
    /// queued, so an item of another queue waits for only one of them. Items that do not sleep run
    /// as fast one after another.
    pub(crate) fn new_per_cpu(name: &CStr) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_PERCPU | bindings::wq_flags_WQ_MEM_RECLAIM;
        Self::alloc(name, flags, 1)
    }

    /// Runs `task` once, soon. The context is that of the flags; `ENOMEM` when there is no memory.
    pub(crate) fn spawn(&self, flags: Flags, task: impl FnOnce() + Send + 'static) -> Result {
        Ok(self.queue().try_spawn(flags, task)?)
    }
}

/// A bound on the work that each processor does in softirq before a task has its turn there.
///
/// Softirq keeps tasks off. A single softirq is bounded, but softirqs may follow without an end. So
/// there is a quota: a softirq that finds the quota used up leaves its work to a thread of that
/// processor ([`ProcessQueue::new_per_cpu`]), which runs when the scheduler says so. The quota is
/// granted anew when a task takes a share on the processor, and [`PERIOD_MS`] after its first use:
/// on average tasks have had most of that time.
pub(crate) struct SoftirqQuota {
    most: u64,
    cpus: KVec<ProcessorUse>,
}

/// The time that a quota lasts, in milliseconds; it ends with a tick, up to one tick early.
const PERIOD_MS: u32 = 10;

/// The use of a quota on one processor, alone in its cache line. Only that processor writes it.
#[repr(align(64))]
struct ProcessorUse {
    units: Atomic<u64>,
    /// The time when the quota is granted anew, if some of it was used: see
    /// [`time::coarse_deadline`].
    until: Atomic<usize>,
}

impl ProcessorUse {
    /// No units used.
    const fn new() -> Self {
        Self {
            units: Atomic::new(0),
            until: Atomic::new(0),
        }
    }

    /// Returns the rest of `most` at the time `now()`, which is read only if some of it was used.
    #[inline]
    fn left(&self, most: u64, now: impl FnOnce() -> usize) -> u64 {
        let units = self.units.load(Relaxed);
        if units == 0 {
            return most;
        }
        // The clock wraps around: the later of two times is less than half of its range ahead of
        // the other.
        if now().wrapping_sub(self.until.load(Relaxed)) <= usize::MAX / 2 {
            self.renew();
            return most;
        }
        most.saturating_sub(units)
    }

    /// Counts `n` used units; the first use of a quota sets its end.
    #[inline]
    fn add(&self, n: u64, until: impl FnOnce() -> usize) {
        let units = self.units.load(Relaxed);
        if units == 0 {
            self.until.store(until(), Relaxed);
        }
        self.units.store(units.saturating_add(n), Relaxed);
    }

    /// Grants the quota anew; writes only if some of it was used, which is rare.
    #[inline]
    fn renew(&self) {
        if self.units.load(Relaxed) != 0 {
            self.units.store(0, Relaxed);
        }
    }
}

impl SoftirqQuota {
    /// A quota of `most` units, which callers define, on each processor. Process context. `ENOMEM`
    /// when there is no memory.
    pub(crate) fn new(most: u64) -> Result<Self> {
        // CAST: widening.
        let mut cpus = KVec::with_capacity(cpu::count_ids() as usize, GFP_KERNEL)?;
        for _ in 0..cpu::count_ids() {
            cpus.push(ProcessorUse::new(), GFP_KERNEL)?;
        }
        Ok(Self { most, cpus })
    }

    /// The share of the current context: in softirq the rest of the quota; in a task there is no
    /// bound, and the quota is granted anew. Any context, if it stays on its processor.
    #[inline]
    pub(crate) fn share(&self) -> SoftirqShare<'_> {
        // CAST: widening.
        let used = self.cpus.get(cpu::current() as usize);
        if is_task() {
            if let Some(used) = used {
                used.renew();
            }
            return SoftirqShare {
                left: u64::MAX,
                used: None,
            };
        }
        SoftirqShare {
            left: used.map_or(self.most, |used| {
                used.left(self.most, || time::coarse_deadline(0))
            }),
            used,
        }
    }
}

/// The part of a [`SoftirqQuota`] that one softirq, or a task, may use.
pub(crate) struct SoftirqShare<'a> {
    left: u64,
    used: Option<&'a ProcessorUse>,
}

impl SoftirqShare<'_> {
    /// The number of units that may be used.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Counts `n` used units.
    #[inline]
    pub(crate) fn end(self, n: u64) {
        if let Some(used) = self.used.filter(|_| n > 0) {
            used.add(n, || time::coarse_deadline(PERIOD_MS));
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_softirq)]
mod tests {
    use super::*;
    use crate::{
        kunit::harness::{
            cases,
            wait_until, //
        },
        sys::event::Event, //
    };
    use kernel::{
        impl_has_work,
        new_work,
        sync::{
            atomic::AtomicFlag,
            Arc, //
        },
        workqueue::{
            Work,
            WorkItem, //
        }, //
    };

    /// Returns true if softirq work may be run in the caller's context.
    ///
    /// False in hard interrupt and NMI, and with interrupts disabled. Any context.
    pub(crate) fn may_run_here() -> bool {
        // SAFETY: Reads the state of the current context only.
        unsafe { bindings::ndk_may_run_bh() }
    }

    #[pin_data]
    struct Probe {
        #[pin]
        work: Work<Probe>,
        #[pin]
        ran: Event,
        cpu: Atomic<u32>,
        runs: Atomic<u32>,
    }

    impl_has_work! {
        impl HasWork<Self> for Probe { self.work }
    }

    impl WorkItem for Probe {
        type Pointer = Arc<Probe>;

        fn run(this: Arc<Probe>) {
            this.cpu.store(cpu::current(), Relaxed);
            this.runs.fetch_add(1, Relaxed);
            this.ran.signal();
        }
    }

    fn probe() -> Result<Arc<Probe>> {
        probe_with(new_work!("ndk_probe"))
    }

    /// Items of softirq and of process context are of different lock classes.
    fn probe_with(work: impl PinInit<Work<Probe>>) -> Result<Arc<Probe>> {
        let init = pin_init!(Probe {
            work <- work,
            ran <- Event::new(),
            cpu: Atomic::new(u32::MAX),
            runs: Atomic::new(0),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    #[test]
    fn a_quota_is_granted_anew_after_a_time_and_not_before() {
        // Jiffies, for one, begin shortly before they wrap around.
        for start in cases([5000, usize::MAX - 3, usize::MAX / 2]) {
            let used = ProcessorUse::new();
            let later = |by| move || usize::wrapping_add(start, by);
            kunit_assert_eq!(used.left(100, later(0)), 100);
            used.add(60, later(10));
            kunit_assert_eq!(used.left(100, later(1)), 40);
            // A later use does not put the end off.
            used.add(60, later(19));
            for by in cases([1, 9]) {
                kunit_assert_eq!(used.left(100, later(by)), 0);
            }
            kunit_assert_eq!(used.left(100, later(10)), 100);
            used.add(1, later(20));
            kunit_assert_eq!(used.left(100, later(11)), 99);
            // A processor has its whole quota after any time without use.
            kunit_assert_eq!(used.left(100, later(1 << 30)), 100);
            used.add(100, later(11 + (1 << 30)));
            used.renew();
            kunit_assert_eq!(used.left(100, later(1 << 30)), 100);
        }
    }

    #[test]
    fn a_quota_reads_the_clock_only_where_something_is_used() {
        let (used, reads) = (ProcessorUse::new(), Atomic::new(0u32));
        let at = |time: usize| {
            let reads = &reads;
            move || {
                reads.fetch_add(1, Relaxed);
                time
            }
        };
        kunit_assert_eq!(used.left(100, at(1)), 100);
        kunit_assert_eq!(reads.load(Relaxed), 0);
        used.add(1, at(11));
        kunit_assert_eq!(reads.load(Relaxed), 1);
        used.add(1, at(12));
        kunit_assert_eq!(reads.load(Relaxed), 1);
        kunit_assert_eq!(used.left(100, at(2)), 98);
        kunit_assert_eq!(reads.load(Relaxed), 2);
    }

    /// An item that finds out if another item, of a queue that the whole kernel uses, began before
    /// it.
    #[pin_data]
    struct Later {
        #[pin]
        work: Work<Later>,
        other: Arc<Probe>,
        was_first: AtomicFlag,
    }

    impl_has_work! {
        impl HasWork<Self> for Later { self.work }
    }

    impl WorkItem for Later {
        type Pointer = Arc<Later>;

        fn run(this: Arc<Later>) {
            // An item that waits for its turn is not queued once more.
            let was_first = queue_of_all().enqueue(this.other.clone()).is_ok();
            this.was_first.store(was_first, Relaxed);
        }
    }

    /// The queue of `schedule_work()`.
    fn queue_of_all() -> &'static Queue {
        // SAFETY: The queue lives as long as the kernel.
        unsafe { Queue::from_raw(bindings::system_percpu_wq) }
    }

    #[test]
    fn an_item_of_another_queue_waits_for_one_of_ours() -> Result {
        let queue = ProcessQueue::new_per_cpu(c"ndk_test_per_cpu")?;
        let mut ours = KVec::new();
        for _ in 0..32 {
            ours.push(probe_with(new_work!("ndk_per_cpu_probe"))?, GFP_KERNEL)?;
        }
        let other = probe_with(new_work!("ndk_other_probe"))?;
        let awaited = other.clone();
        let init = pin_init!(Later {
            work <- new_work!("ndk_later"),
            other: awaited,
            was_first: AtomicFlag::new(false),
        });
        let second = Arc::pin_init(init, GFP_KERNEL)?;
        // No thread of this processor runs before all items are queued on it.
        let section = BhDisabled::enter();
        let mut are_queued = queue.enqueue(ours[0].clone()).is_ok();
        are_queued &= queue.enqueue(second.clone()).is_ok();
        for item in &ours[1..] {
            are_queued &= queue.enqueue(item.clone()).is_ok();
        }
        are_queued &= queue_of_all().enqueue(other.clone()).is_ok();
        drop(section);
        queue.flush();
        let was_first = second.was_first.load(Relaxed);
        let runs = if was_first { 2 } else { 1 };
        assert!(wait_until(|| other.runs.load(Relaxed) == runs));
        assert!(are_queued);
        assert!(was_first);
        assert!(ours.iter().all(|item| item.runs.load(Relaxed) == 1));
        Ok(())
    }

    #[test]
    fn section_needs_interrupts_on() {
        let outer = BhDisabled::enter();
        assert!(outer.is_some());
        assert!(BhDisabled::enter().is_some());
    }

    #[test]
    fn item_runs_once_and_may_be_queued_again() -> Result {
        let queue = BhQueue::new(c"ndk_test_bh")?;
        let item = probe()?;
        for round in cases(1..=3) {
            assert!(queue.enqueue(item.clone()).is_ok());
            queue.flush();
            kunit_assert_eq!(item.runs.load(Relaxed), round);
        }
        Ok(())
    }

    #[test]
    fn queued_item_is_given_back() -> Result {
        let queue = BhQueue::new(c"ndk_test_bh")?;
        let item = probe()?;
        let section = BhDisabled::enter();
        let first = queue.enqueue(item.clone());
        let second = queue.enqueue(item.clone());
        drop(section);
        assert!(first.is_ok());
        assert!(second.is_err());
        queue.flush();
        kunit_assert_eq!(item.runs.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn item_runs_where_it_was_sent() -> Result {
        let queue = BhQueue::new(c"ndk_test_bh")?;
        for cpu in cases(0..cpu::count_ids()) {
            let item = probe()?;
            assert!(queue.enqueue_on(cpu, item.clone()).is_ok());
            item.ran.wait();
            assert!(!cpu::is_online(cpu) || item.cpu.load(Relaxed) == cpu);
        }
        Ok(())
    }

    #[test]
    fn absent_processor_means_any() -> Result {
        let queue = BhQueue::new(c"ndk_test_bh")?;
        let item = probe()?;
        assert!(queue.enqueue_on(cpu::count_ids(), item.clone()).is_ok());
        item.ran.wait();
        kunit_assert_eq!(item.runs.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn items_that_are_queued_are_done_before_the_end() -> Result {
        let items = [probe()?, probe()?, probe()?];
        for round in cases(1..=20) {
            let queue = BhQueue::new(c"ndk_test_bh")?;
            for (item, cpu) in items.iter().zip(cpu::current()..) {
                let cpu = cpu % cpu::count_ids();
                assert!(queue.enqueue_on(cpu, item.clone()).is_ok());
            }
            drop(queue);
            assert!(items.iter().all(|item| item.runs.load(Relaxed) == round));
        }
        Ok(())
    }

    #[test]
    fn process_queue_runs_its_items() -> Result {
        let queue = ProcessQueue::new(c"ndk_test_process")?;
        let item = probe_with(new_work!("ndk_process_probe"))?;
        assert!(queue.enqueue(item.clone()).is_ok());
        queue.flush();
        kunit_assert_eq!(item.runs.load(Relaxed), 1);
        Ok(())
    }
}
