// SPDX-License-Identifier: GPL-2.0

//! The monotonic clock as plain numbers.
//!
//! [`kernel::time::Instant`] is the type to prefer; these are for values that
//! are stored in atomics or compared across objects.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

use crate::bindings;

/// Nanoseconds since boot, without time asleep. Any context. C: `ktime_get()`.
#[inline]
pub(crate) fn now_ns() -> u64 {
    // CAST: The monotonic clock starts at zero and does not go back.
    // SAFETY: Reads the clock.
    unsafe { bindings::ktime_get() as u64 }
}

/// Milliseconds since boot, without time asleep. Any context.
#[inline]
pub(crate) fn now_ms() -> u64 {
    now_ns() / 1_000_000
}
