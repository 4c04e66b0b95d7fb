// SPDX-License-Identifier: GPL-2.0

//! The monotonic clock as plain numbers.
//!
//! [`kernel::time::Instant`] is the type to prefer; these are for values that
//! are stored in atomics or compared across objects.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

#[cfg(ndk_kunit)]
use kernel::sync::atomic::{
    ordering::Relaxed,
    Atomic, //
};

#[cfg(ndk_kunit)]
use super::clock;
use crate::bindings;

/// The same as [`now_ns`], by the real clock in tests, too. Any context. C: `ktime_get()`.
#[inline]
pub(super) fn real_ns() -> u64 {
    // CAST: The monotonic clock starts at zero and does not go back.
    // SAFETY: Reads the clock.
    unsafe { bindings::ktime_get() as u64 }
}

/// Nanoseconds since boot, without time asleep. Any context.
#[inline]
pub(crate) fn now_ns() -> u64 {
    #[cfg(ndk_kunit)]
    {
        clock::shown()
    }
    #[cfg(not(ndk_kunit))]
    {
        real_ns()
    }
}

/// Milliseconds since boot, without time asleep. Any context.
#[inline]
pub(crate) fn now_ms() -> u64 {
    now_ns() / 1_000_000
}

/// Jiffies in a second.
const HZ: bindings::ndk_time = bindings::ndk_time_NDK_HZ;

// The build for a kernel with an HZ other than 100 shows that this is the kernel's number.
const _: () = assert!(HZ == bindings::CONFIG_HZ);

/// `ms` milliseconds in jiffies, rounded up.
const fn jiffies_of(ms: u32) -> usize {
    // CAST: widening. OVERFLOW: a product of two numbers of 32 bits.
    (ms as u64 * HZ as u64).div_ceil(1000) as usize
}

/// The time `ms` milliseconds from now in jiffies, which wrap around. Any context.
#[inline]
pub(super) fn jiffies_after(ms: u32) -> usize {
    // SAFETY: The kernel's counter is a static machine word; it changes at any time, and a volatile
    // read takes it as it is, like C's.
    let now = unsafe { (&raw const bindings::jiffies).read_volatile() };
    now.wrapping_add(jiffies_of(ms))
}

/// The time `ms` milliseconds from now by a clock that is cheap to read and wraps around: jiffies,
/// or the stopped clock of a test. Any context.
#[inline]
pub(super) fn coarse_deadline(ms: u32) -> usize {
    #[cfg(ndk_kunit)]
    if clock::is_stopped() {
        // CAST: a machine word, which wraps around.
        return now_ms().wrapping_add(ms.into()) as usize;
    }
    jiffies_after(ms)
}

/// The time when a timer runs out by a clock that a test has stopped: the kernel's timers go by the
/// real one. Empty in builds without tests.
pub(super) struct Due {
    /// 0 for a timer that was armed while the clock ran, `CANCELLED` for a timer that was
    /// cancelled.
    #[cfg(ndk_kunit)]
    at_ns: Atomic<u64>,
}

#[cfg(ndk_kunit)]
const CANCELLED: u64 = u64::MAX;

impl Due {
    /// The state of a timer that is not armed: neither early nor cancelled.
    pub(super) const fn new() -> Self {
        Self {
            #[cfg(ndk_kunit)]
            at_ns: Atomic::new(0),
        }
    }

    /// Notes that the timer is armed for `ns` nanoseconds from now. Returns true if the timer must
    /// look at the clock instead, soon and repeatedly.
    #[inline]
    pub(super) fn arm(&self, ns: u64) -> bool {
        #[cfg(ndk_kunit)]
        {
            let is_stopped = clock::is_stopped();
            let at = if is_stopped {
                now_ns().saturating_add(ns)
            } else {
                0
            };
            self.at_ns.store(at.min(CANCELLED - 1), Relaxed);
            is_stopped
        }
        #[cfg(not(ndk_kunit))]
        {
            let _ = ns;
            false
        }
    }

    /// Notes that the timer is about to be disarmed.
    #[inline]
    pub(super) fn cancel(&self) {
        #[cfg(ndk_kunit)]
        self.at_ns.store(CANCELLED, Relaxed);
    }

    /// Returns true if the timer, which has run out, must look at the clock again.
    #[inline]
    pub(super) fn is_early(&self) -> bool {
        #[cfg(ndk_kunit)]
        {
            let at = self.at_ns.load(Relaxed);
            at != CANCELLED && at > now_ns()
        }
        #[cfg(not(ndk_kunit))]
        {
            false
        }
    }

    /// Returns true if the timer was disarmed, perhaps while it looked at the clock.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        #[cfg(ndk_kunit)]
        {
            self.at_ns.load(Relaxed) == CANCELLED
        }
        #[cfg(not(ndk_kunit))]
        {
            false
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_time)]
mod tests {
    use super::*;
    use kernel::time::msecs_to_jiffies;

    use crate::sys::report::cases;

    #[test]
    fn milliseconds_are_as_many_jiffies_as_the_kernel_says() {
        for ms in cases([0, 1, 9, 10, 11, 999, 1000, 1001, 30_000, 3_600_001, 1 << 30]) {
            // CAST: a machine word.
            kunit_assert_eq!(jiffies_of(ms), msecs_to_jiffies(ms) as usize);
        }
    }
}
