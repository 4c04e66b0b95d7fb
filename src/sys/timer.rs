// SPDX-License-Identifier: GPL-2.0

//! Timers that hold a reference to the object they are embedded in.
//!
//! A [`Timer<T>`] is a pinned field of a `T` that lives in an [`Arc`]. While it
//! is armed it owns one reference to that `T`; when it expires the reference
//! goes to [`Expires::expired`], in softirq. So an armed timer keeps its owner
//! alive, and an owner that is being dropped has no armed timer. An owner that
//! wants to go early calls [`Timer::cancel`].
//!
//! C header: [`include/linux/timer.h`](srctree/include/linux/timer.h)

use core::ptr;

use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    types::Opaque, //
};

use super::time::{
    self,
    Due, //
};
use crate::bindings;

/// The time between two looks at a clock that a test has stopped, in milliseconds.
const POLL_MS: u32 = 1;

/// An object that is called when its timer runs out.
pub(crate) trait Expires: Sized + Send + Sync + 'static {
    /// Called in softirq, on the processor that armed the timer, with the
    /// reference that the timer held. May arm the timer again.
    fn expired(this: Arc<Self>);
}

/// A timer embedded in a `T`.
///
/// # Invariants
///
/// - `owner` is null or the address of the `T` in an `Arc<T>` that contains this timer; once set it
///   does not change.
/// - While the timer is pending, it owns one reference to `owner`.
#[pin_data]
pub(crate) struct Timer<T: Expires> {
    #[pin]
    timer: Opaque<bindings::timer_list>,
    owner: Atomic<*mut T>,
    due: Due,
}

// SAFETY: The functions of `timer_list` lock internally; `T` is `Send` and `Sync`.
unsafe impl<T: Expires> Send for Timer<T> {}
// SAFETY: The functions of `timer_list` lock internally; `T` is `Send` and `Sync`.
unsafe impl<T: Expires> Sync for Timer<T> {}

/// Returns true if `field` lies inside of `owner`.
pub(super) fn is_within<F, T>(field: &F, owner: &Arc<T>) -> bool {
    let start = ptr::from_ref::<T>(owner).addr();
    ptr::from_ref(field).addr().wrapping_sub(start) < size_of::<T>()
}

impl<T: Expires> Timer<T> {
    /// Makes a timer that is not armed.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            timer <- Opaque::ffi_init(|slot: *mut bindings::timer_list| {
                // SAFETY: `slot` is writable memory that stays where it is; the class is static.
                unsafe {
                    bindings::timer_init_key(
                        slot,
                        Some(Self::fire),
                        0,
                        c"ndk_timer".as_char_ptr(),
                        kernel::static_lock_class!().as_ptr(),
                    )
                }
            }),
            // INVARIANT: `owner` is null, and the timer is not pending.
            owner: Atomic::new(ptr::null_mut()),
            due: Due::new(),
        })
    }

    /// Makes the timer run out `ms` milliseconds from now, whether or not it was armed.
    ///
    /// `owner` must be the object that this timer is a field of; with any other the
    /// call warns and returns. Any context, also with locks held.
    pub(crate) fn arm(&self, owner: &Arc<T>, ms: u32) {
        if kernel::warn_on!(!is_within(self, owner)) {
            return;
        }
        let reference = Arc::into_raw(owner.clone()).cast_mut();
        // INVARIANT: `owner` contains this timer, so its address is the same at each call.
        self.owner.store(reference, Relaxed);
        let looks = self.due.arm(u64::from(ms) * 1_000_000);
        let ms = if looks { POLL_MS } else { ms };
        // CAST: a machine word.
        let when = time::jiffies_after(ms) as c_ulong;
        // SAFETY: The timer was initialised by `new`.
        let was_pending = unsafe { bindings::mod_timer(self.timer.get(), when) } != 0;
        if was_pending {
            // SAFETY: The pending timer already owned a reference, so this function still has the
            // one made above.
            drop(unsafe { Arc::from_raw(reference) });
        }
    }

    /// Disarms the timer; true if it was armed. Any context.
    ///
    /// After false the callback may be running, or about to run.
    pub(crate) fn cancel(&self) -> bool {
        self.due.cancel();
        self.delete()
    }

    /// Takes the timer off the queue; true if the timer was there.
    fn delete(&self) -> bool {
        // SAFETY: The timer was initialised by `new`.
        let was_pending = unsafe { bindings::timer_delete(self.timer.get()) } != 0;
        if was_pending {
            // SAFETY: By the invariant a pending timer owns a reference to `owner`, and taking the
            // timer off the queue gave that reference to this function.
            drop(unsafe { Arc::from_raw(self.owner.load(Relaxed)) });
        }
        was_pending
    }

    /// Arms the timer for another look at the clock, with the reference that it had.
    ///
    /// # Safety
    ///
    /// `reference` is the reference of this timer, which has just ceased to be pending.
    unsafe fn look_again(&self, reference: *mut T) {
        // CAST: a machine word.
        let when = time::jiffies_after(POLL_MS) as c_ulong;
        // SAFETY: The caller says that this is the timer's reference; the timer does not own it any
        // more.
        let owner = unsafe { Arc::from_raw(reference) };
        let reference = Arc::into_raw(owner.clone());
        // INVARIANT: The timer is pending from here on, with a reference.
        // SAFETY: The timer was initialised by `new`.
        if unsafe { bindings::mod_timer(self.timer.get(), when) } != 0 {
            // SAFETY: The timer was armed in between, with another reference: this function still
            // has this one.
            drop(unsafe { Arc::from_raw(reference) });
        }
        // A cancel in between has returned false: the callback is about to run, so it runs.
        if self.due.is_cancelled() && self.delete() {
            T::expired(owner);
        }
    }

    /// # Safety
    ///
    /// `timer` is the field of a `Timer<T>` that has just ceased to be pending.
    unsafe extern "C" fn fire(timer: *mut bindings::timer_list) {
        // SAFETY: The caller says that `timer` is the field of a `Timer<T>`.
        let this = unsafe { container_of!(Opaque::cast_from(timer), Self, timer) };
        // SAFETY: The timer's reference, which this function has now, keeps the owner and so `this`
        // alive.
        let owner = unsafe { (*this).owner.load(Relaxed) };
        // SAFETY: As above.
        if unsafe { (*this).due.is_early() } {
            // SAFETY: As above; `owner` is this timer's reference, and the timer is no longer
            // pending.
            unsafe { (*this).look_again(owner) };
            return;
        }
        // SAFETY: By the invariant the timer owned one reference while it was pending; only this
        // call takes it, because the timer is no longer pending.
        T::expired(unsafe { Arc::from_raw(owner) });
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_timer)]
mod tests {
    use super::*;
    use crate::sys::event::Event;

    #[pin_data]
    struct Alarm {
        #[pin]
        timer: Timer<Alarm>,
        #[pin]
        rang: Event,
        times: Atomic<u32>,
    }

    impl Expires for Alarm {
        fn expired(this: Arc<Self>) {
            if this.times.fetch_add(1, Relaxed) == 0 {
                this.timer.arm(&this, 1);
            } else {
                this.rang.signal();
            }
        }
    }

    fn alarm() -> Result<Arc<Alarm>> {
        let init = pin_init!(Alarm {
            timer <- Timer::new(),
            rang <- Event::new(),
            times: Atomic::new(0),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    #[test]
    fn callback_may_arm_again() -> Result {
        let alarm = alarm()?;
        alarm.timer.arm(&alarm, 1);
        alarm.rang.wait();
        kunit_assert_eq!(alarm.times.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn cancelled_timer_gives_its_reference_back() -> Result {
        let alarm = alarm()?;
        // Longer than any test.
        alarm.timer.arm(&alarm, 3_600_000);
        alarm.timer.arm(&alarm, 3_500_000);
        assert!(alarm.timer.cancel());
        assert!(!alarm.timer.cancel());
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }
}
