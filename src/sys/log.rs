// SPDX-License-Identifier: GPL-2.0

//! The rate limits of the messages in the kernel log.
//!
//! C header: [`include/linux/ratelimit.h`](srctree/include/linux/ratelimit.h)

#[cfg(ndk_kunit)]
pub(crate) use tests::asked;

use crate::bindings;

/// A limit that messages share. Messages that a program can cause use up no limit of other
/// messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Messages that concern the kernel alone: ten in five seconds.
    Kernel,
    /// Messages that concern the kernel and that a program at the other end can cause: ten a
    /// minute.
    PeerOfProgram,
    /// Messages that concern a program: ten a minute.
    Program,
}

/// Returns true if a message may be printed now. Any context.
///
/// The kernel counts the messages that a limit has swallowed, and reports their number.
pub(crate) fn allowed(limit: Limit) -> bool {
    #[cfg(ndk_kunit)]
    tests::count(limit);
    // CAST: a variant's number.
    // SAFETY: The function has no requirements; its state is its own.
    unsafe { bindings::ndk_log_allowed(limit as u32) }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_log)]
mod tests {
    use super::*;
    use kernel::sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    };

    use crate::sys::report::cases;

    static ASKED: [Atomic<u32>; 3] = [const { Atomic::new(0) }; 3];

    fn times(limit: Limit) -> &'static Atomic<u32> {
        // CAST: a variant's number. PANIC: there is a place for each.
        &ASKED[limit as usize]
    }

    pub(super) fn count(limit: Limit) {
        times(limit).fetch_add(1, Relaxed);
    }

    /// The number of messages of that limit, printed or not. Any context.
    pub(crate) fn asked(limit: Limit) -> u32 {
        times(limit).load(Relaxed)
    }

    /// Uses up the rest of a limit.
    fn use_up(limit: Limit) -> bool {
        (0..100_000).any(|_| !allowed(limit))
    }

    #[test]
    fn what_programs_bring_about_swallows_no_message_of_the_kernel_s() {
        use Limit::*;
        for (others, limit) in cases([
            ([PeerOfProgram, Program], Kernel),
            ([Kernel, Program], PeerOfProgram),
        ]) {
            // CAST: a variant's number.
            // SAFETY: The function sets an atomic counter that lives as long as the module.
            unsafe { bindings::ndk_log_renew(limit as u32) };
            assert!(others.into_iter().all(use_up));
            assert!(allowed(limit));
        }
    }
}
