// SPDX-License-Identifier: GPL-2.0

//! The rate limit of the messages in the kernel log.
//!
//! C header: [`include/linux/ratelimit.h`](srctree/include/linux/ratelimit.h)

use crate::bindings;

/// Returns true if a message may be printed now. Any context.
///
/// All messages share one limit; what it swallows the kernel counts and says.
pub(crate) fn allowed() -> bool {
    // SAFETY: The function has no requirements; its state is its own.
    unsafe { bindings::ndk_log_allowed() }
}
