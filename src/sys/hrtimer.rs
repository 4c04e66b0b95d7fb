// SPDX-License-Identifier: GPL-2.0

//! Timers of fine resolution that hold a reference to the object they are embedded in.
//!
//! An [`HrTimer<T>`] is to the kernel's `hrtimer` what [`Timer`](super::timer::Timer) is to its
//! `timer_list`: a pinned field of a `T` that lives in an [`Arc`], which keeps its owner alive
//! while it is armed and passes its reference to [`Expires::expired`], in softirq. It costs more
//! to arm, and runs out within microseconds.
//!
//! An owner whose last reference must not go in softirq calls [`HrTimer::stop`] before it goes.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)

use kernel::{
    container_of,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
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
const LOOK_NS: u64 = 1_000_000;

/// A timer embedded in a `T`.
///
/// # Invariants
///
/// - The timer is queued only under the lock of `owner`, and then `owner` holds a reference to the
///   `T` that contains the timer.
/// - `owner` is emptied only under its lock while the timer is not queued, and by somebody else
///   than the callback only while that does not run. So the callback finds a reference there.
#[pin_data]
pub(crate) struct HrTimer<T: Expires> {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    #[pin]
    owner: SpinLockIrq<Option<Arc<T>>>,
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
    /// `owner` must be the object this timer is a field of; with any other the call warns and does
    /// nothing. Any context, also with locks held. While the callback of an earlier time is about
    /// to run it runs all the same, and once more for this time.
    pub(crate) fn arm(&self, owner: &Arc<T>, ns: u64) {
        if kernel::warn_on!(!is_within(self, owner)) {
            return;
        }
        let mut slot = self.owner.lock();
        // INVARIANT: Under the lock, and with a reference to the one that contains the timer.
        slot.get_or_insert_with(|| owner.clone());
        let looks = self.due.arm(ns);
        self.start(if looks { LOOK_NS } else { ns });
    }

    /// Queues the timer. Under the lock of `owner`, where there is a reference.
    fn start(&self, ns: u64) {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        // SAFETY: The timer was initialised by `new`; the mode is the one it was made for.
        unsafe { bindings::hrtimer_start_range_ns(self.timer.get(), ns, 0, MODE) };
    }

    /// Disarms the timer; true if it was armed. Any context, also with locks held.
    ///
    /// When false is returned the callback may be running, or about to run.
    pub(crate) fn cancel(&self) -> bool {
        let mut slot = self.owner.lock();
        self.due.cancel();
        // SAFETY: The timer was initialised by `new`.
        let was_queued = unsafe { bindings::hrtimer_try_to_cancel(self.timer.get()) };
        // INVARIANT: Only a negative number says that the callback runs; with any other the timer
        // is not queued now, nor before the lock is released.
        let owner = if was_queued < 0 { None } else { slot.take() };
        drop(slot);
        drop(owner);
        was_queued > 0
    }

    /// Disarms the timer and waits until its callback has returned. May sleep, and not from inside
    /// of the callback nor with a lock that it takes; nobody arms the timer any more.
    pub(crate) fn stop(&self) {
        // SAFETY: The timer was initialised by `new`.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
        // What was queued has left its reference.
        self.cancel();
    }

    /// # Safety
    ///
    /// `timer` is the field of an `HrTimer<T>` and has just run out.
    unsafe extern "C" fn fire(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: The caller says that `timer` is the field of an `HrTimer<T>`.
        let this = unsafe { container_of!(Opaque::cast_from(timer), Self, timer) };
        let owner = {
            // SAFETY: By the invariant there is a reference in `owner`, which keeps `this` alive
            // until it is taken below; then the one taken does.
            let mut slot = unsafe { (*this).owner.lock() };
            // SAFETY: As above.
            if unsafe { (*this).due.is_early() } {
                // INVARIANT: Under the lock, and the reference stays.
                // SAFETY: As above.
                unsafe { (*this).start(LOOK_NS) };
                return bindings::hrtimer_restart::HRTIMER_NORESTART;
            }
            // SAFETY: As above; the timer was initialised by `new`.
            match unsafe { bindings::ndk_hrtimer_is_queued(timer) } {
                true => slot.clone(),
                // INVARIANT: Not queued, and this is the callback.
                false => slot.take(),
            }
        };
        if let Some(owner) = owner {
            T::expired(owner);
        }
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_hrtimer)]
mod tests {
    use super::*;
    use crate::sys::event::Event;
    use kernel::sync::atomic::{
        Atomic,
        Relaxed, //
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
        assert_eq!(alarm.times.load(Relaxed), 2);
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
        for ns in [LONG_NS, 0, 1_000, 20_000, 100_000] {
            let alarm = alarm()?;
            // The first callback is not to arm again.
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
        assert_eq!(alarm.times.load(Relaxed), 2);
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }
}
