// SPDX-License-Identifier: GPL-2.0

//! Timers of fine resolution that hold a reference to the object they are embedded in.
//!
//! An [`HrTimer<T>`] is to the kernel's `hrtimer` what [`Timer`](super::timer::Timer) is to its
//! `timer_list`: a pinned field of a `T` that lives in an [`Arc`]. The timer keeps its owner alive
//! while it is armed and passes its reference to [`Expires::expired`], in softirq. It costs more to
//! arm, and runs out within microseconds.
//!
//! An owner whose last reference must not be dropped in softirq calls [`HrTimer::stop`] first.
//!
//! The kernel does not take a timer off its queue while its callback runs. A timer that was armed
//! anew in that time and is then cancelled runs out at once instead; [`wait_for_late_expiries`]
//! waits for such timers.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use kernel::{
    container_of,
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        Arc,
        SpinLockIrq, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

use super::{
    time::Due,
    timer::{
        is_within,
        Expires, //
    }, //
};
use crate::bindings;

const MODE: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_SOFT;

/// The time between two looks at a clock that a test has stopped, in nanoseconds.
const POLL_NS: u64 = 1_000_000;

/// The number of [`LateExpiry`] that exist.
static LATE_EXPIRIES: Atomic<u32> = Atomic::new(0);

/// A cancelled timer that has yet to run out. Dropped when the timer has run out, has left its
/// queue, or is armed anew.
pub(crate) struct LateExpiry(());

impl LateExpiry {
    /// Counts one more. Any context.
    pub(crate) fn begin() -> Self {
        LATE_EXPIRIES.add(1, Relaxed);
        Self(())
    }
}

impl Drop for LateExpiry {
    fn drop(&mut self) {
        LATE_EXPIRIES.fetch_sub(1, Release);
    }
}

/// Waits until each timer that was cancelled before, and runs out all the same, has called its
/// owner. The callback returns before the end of an RCU grace period that begins after the wait.
/// May sleep.
pub(crate) fn wait_for_late_expiries() {
    while LATE_EXPIRIES.load(Acquire) > 0 {
        fsleep(Delta::from_millis(1));
    }
}

/// The state of a timer that is queued or whose callback is about to run.
struct ArmedState<T> {
    owner: Arc<T>,
    late_expiry: Option<LateExpiry>,
}

/// A timer embedded in a `T`.
///
/// # Invariants
///
/// - The timer is queued only under the lock of `owner`, and then `owner` holds a reference to the
///   `T` that contains the timer.
/// - `owner` is emptied only under its lock while the timer is not queued, and outside of the
///   callback only while that does not run. So the callback finds a reference there.
#[pin_data]
pub(crate) struct HrTimer<T: Expires> {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    #[pin]
    owner: SpinLockIrq<Option<ArmedState<T>>>,
    due: Due,
}

// SAFETY: The functions of `hrtimer` lock internally; `T` is `Send` and `Sync`.
unsafe impl<T: Expires> Send for HrTimer<T> {}
// SAFETY: The functions of `hrtimer` lock internally; `T` is `Send` and `Sync`.
unsafe impl<T: Expires> Sync for HrTimer<T> {}

impl<T: Expires> HrTimer<T> {
    /// Makes a timer that is not armed.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            timer <- Opaque::ffi_init(|slot: *mut bindings::hrtimer| {
                // CAST: a small constant.
                let clock = bindings::CLOCK_MONOTONIC as bindings::clockid_t;
                // SAFETY: `slot` is writable memory that stays where it is.
                unsafe { bindings::hrtimer_setup(slot, Some(Self::fire), clock, MODE) }
            }),
            // INVARIANT: Empty, and not queued.
            owner <- new_spinlock_irq!(None),
            due: Due::new(),
        })
    }

    /// Makes the timer run out `ns` nanoseconds from now, whether or not it was armed.
    ///
    /// `owner` must be the object that this timer is a field of; with any other the call warns and
    /// returns. Any context, also with locks held. If the callback of an earlier time is about to
    /// run, it still runs, and runs once more for this time.
    pub(crate) fn arm(&self, owner: &Arc<T>, ns: u64) {
        if kernel::warn_on!(!is_within(self, owner)) {
            return;
        }
        let mut slot = self.owner.lock();
        // INVARIANT: The timer is queued below, under the lock, with a reference to the `T` that
        // contains it.
        let held = slot.get_or_insert_with(|| ArmedState {
            owner: owner.clone(),
            late_expiry: None,
        });
        held.late_expiry = None;
        let looks = self.due.arm(ns);
        self.start(if looks { POLL_NS } else { ns });
    }

    /// Queues the timer. Called under the lock of `owner`, which holds a reference.
    fn start(&self, ns: u64) {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        // SAFETY: The timer was initialised by `new`, with this mode.
        unsafe { bindings::hrtimer_start_range_ns(self.timer.get(), ns, 0, MODE) };
    }

    /// Disarms the timer; true if it was armed. Any context, also with locks held.
    ///
    /// After false the callback may be running, or about to run, or both: if it runs while the
    /// timer is armed for a later time, it runs once more, now.
    pub(crate) fn cancel(&self) -> bool {
        let mut slot = self.owner.lock();
        self.due.cancel();
        // SAFETY: The timer was initialised by `new`.
        let was_queued = unsafe { bindings::hrtimer_try_to_cancel(self.timer.get()) };
        if was_queued < 0 {
            self.leave(&mut slot);
            return false;
        }
        // INVARIANT: The result is not negative, so the callback does not run; the timer is not
        // queued now, nor before the lock is released.
        let held = slot.take();
        drop(slot);
        drop(held);
        was_queued > 0
    }

    /// Has a timer whose callback runs run out now, if it is queued for a later time. Called under
    /// the lock of `owner`, whose content is `slot`.
    #[cold]
    fn leave(&self, slot: &mut Option<ArmedState<T>>) {
        // SAFETY: The timer was initialised by `new`.
        if !unsafe { bindings::ndk_hrtimer_is_queued(self.timer.get()) } {
            return;
        }
        if let Some(held) = slot {
            held.late_expiry.get_or_insert_with(LateExpiry::begin);
            // INVARIANT: The timer is queued under the lock, with the reference in `slot`.
            self.start(0);
        }
    }

    /// Disarms the timer and waits until its callback has returned. May sleep; must not be called
    /// from the callback or under a lock that it takes. The caller ensures that the timer is not
    /// armed any more.
    pub(crate) fn stop(&self) {
        // SAFETY: The timer was initialised by `new`.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
        // A timer that was queued has left its reference in `owner`.
        self.cancel();
    }

    /// # Safety
    ///
    /// `timer` is the field of an `HrTimer<T>` and has just run out.
    unsafe extern "C" fn fire(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: The caller says that `timer` is the field of an `HrTimer<T>`.
        let this = unsafe { container_of!(Opaque::cast_from(timer), Self, timer) };
        let (owner, late_expiry) = {
            // SAFETY: By the invariant `owner` holds a reference, which keeps `this` alive until it
            // is taken below; from then on the taken reference does.
            let mut slot = unsafe { (*this).owner.lock() };
            // SAFETY: As above.
            if unsafe { (*this).due.is_early() } {
                // INVARIANT: The timer is queued under the lock, and the reference stays in
                // `owner`.
                // SAFETY: As above.
                unsafe { (*this).start(POLL_NS) };
                return bindings::hrtimer_restart::HRTIMER_NORESTART;
            }
            // SAFETY: As above; the timer was initialised by `new`.
            match unsafe { bindings::ndk_hrtimer_is_queued(timer) } {
                true => (slot.as_ref().map(|held| held.owner.clone()), None),
                // INVARIANT: The timer is not queued, and this is its callback.
                false => match slot.take() {
                    Some(held) => (Some(held.owner), held.late_expiry),
                    None => (None, None),
                },
            }
        };
        if let Some(owner) = owner {
            T::expired(owner);
        }
        drop(late_expiry);
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_hrtimer)]
mod tests {
    use super::*;
    use crate::{
        kunit::harness::{
            came_in_time,
            cases, //
        },
        sys::event::Event, //
    };

    /// Longer than any test.
    const LONG_NS: u64 = 3_600_000_000_000;

    #[pin_data]
    struct Alarm {
        #[pin]
        timer: HrTimer<Alarm>,
        #[pin]
        rang: Event,
        times: Atomic<u32>,
    }

    impl Expires for Alarm {
        fn expired(this: Arc<Self>) {
            if this.times.fetch_add(1, Relaxed) == 0 {
                this.timer.arm(&this, 50_000);
            } else {
                this.rang.signal();
            }
        }
    }

    fn alarm() -> Result<Arc<Alarm>> {
        let init = pin_init!(Alarm {
            timer <- HrTimer::new(),
            rang <- Event::new(),
            times: Atomic::new(0),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    #[test]
    fn callback_may_arm_again() -> Result {
        let alarm = alarm()?;
        alarm.timer.arm(&alarm, 50_000);
        alarm.rang.wait();
        kunit_assert_eq!(alarm.times.load(Relaxed), 2);
        alarm.timer.stop();
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }

    #[test]
    fn cancelled_timer_gives_its_reference_back() -> Result {
        let alarm = alarm()?;
        alarm.timer.arm(&alarm, LONG_NS);
        alarm.timer.arm(&alarm, LONG_NS / 2);
        assert!(alarm.timer.cancel());
        assert!(!alarm.timer.cancel());
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }

    #[test]
    fn stopped_timer_gives_its_reference_back() -> Result {
        for ns in cases([LONG_NS, 0, 1_000, 20_000, 100_000]) {
            let alarm = alarm()?;
            // The first callback does not arm again.
            alarm.times.store(1, Relaxed);
            alarm.timer.arm(&alarm, ns);
            alarm.timer.stop();
            assert!(Arc::into_unique_or_drop(alarm).is_some());
        }
        Ok(())
    }

    #[test]
    fn timer_armed_anew_runs_out_at_the_later_call() -> Result {
        let alarm = alarm()?;
        alarm.times.store(1, Relaxed);
        alarm.timer.arm(&alarm, LONG_NS);
        alarm.timer.arm(&alarm, 1_000);
        alarm.rang.wait();
        alarm.timer.stop();
        kunit_assert_eq!(alarm.times.load(Relaxed), 2);
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }

    /// Arms its timer for long in the callback, and cancels the timer before the callback returns.
    #[pin_data(PinnedDrop)]
    struct Undecided {
        #[pin]
        timer: HrTimer<Undecided>,
        signs: Arc<Signs>,
    }

    #[pin_data]
    struct Signs {
        #[pin]
        is_gone: Event,
        times: Atomic<u32>,
        /// The result of the cancel.
        is_cancelled: Atomic<u32>,
        /// The number of timers that had yet to run out by then.
        late_expiry: Atomic<u32>,
    }

    impl Expires for Undecided {
        fn expired(this: Arc<Self>) {
            if this.signs.times.fetch_add(1, Relaxed) > 0 {
                return;
            }
            this.timer.arm(&this, LONG_NS);
            let is_cancelled = this.timer.cancel();
            // A second cancel counts no second timer.
            let again = this.timer.cancel();
            this.signs
                .is_cancelled
                .store(u32::from(is_cancelled || again), Relaxed);
            this.signs
                .late_expiry
                .store(LATE_EXPIRIES.load(Relaxed), Relaxed);
        }
    }

    #[pinned_drop]
    impl PinnedDrop for Undecided {
        fn drop(self: Pin<&mut Self>) {
            self.signs.is_gone.signal();
        }
    }

    #[test]
    fn timer_cancelled_while_its_callback_runs_leaves_soon() -> Result {
        let init = pin_init!(Signs {
            is_gone <- Event::new(),
            times: Atomic::new(0),
            is_cancelled: Atomic::new(0),
            late_expiry: Atomic::new(0),
        });
        let signs = Arc::pin_init(init, GFP_KERNEL)?;
        wait_for_late_expiries();
        let undecided = {
            let signs = signs.clone();
            let init = pin_init!(Undecided {
                timer <- HrTimer::new(),
                signs,
            });
            Arc::pin_init(init, GFP_KERNEL)?
        };
        undecided.timer.arm(&undecided, 1_000);
        drop(undecided);
        assert!(came_in_time(&signs.is_gone));
        wait_for_late_expiries();
        kunit_assert_eq!(signs.times.load(Relaxed), 2);
        kunit_assert_eq!(signs.is_cancelled.load(Relaxed), 0);
        kunit_assert_eq!(signs.late_expiry.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn timer_armed_anew_after_that_keeps_nobody_waiting() -> Result {
        let alarm = alarm()?;
        let mut slot = alarm.timer.owner.lock();
        *slot = Some(ArmedState {
            owner: alarm.clone(),
            late_expiry: Some(LateExpiry::begin()),
        });
        drop(slot);
        alarm.timer.arm(&alarm, LONG_NS);
        wait_for_late_expiries();
        assert!(alarm.timer.cancel());
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }
}
