// SPDX-License-Identifier: GPL-2.0

//! Warnings of the kernel that a test expects: they are counted and not written to the log.
//!
//! C header: [`include/kunit/test.h`](srctree/include/kunit/test.h)

use crate::bindings;

/// Runs `work`, and returns the number of warnings that it caused in this task; `None` outside of a
/// test.
///
/// Process context, in the task of the test.
pub(crate) fn warnings_of(work: impl FnOnce()) -> Option<u32> {
    // SAFETY: The function changes the state of this task's test only.
    let hidden = unsafe { bindings::ndk_warnings_hide() };
    if hidden.is_null() {
        return None;
    }
    work();
    // SAFETY: `hidden` was just given for this task's test, and is given back once.
    Some(unsafe { bindings::ndk_warnings_show(hidden) })
}

#[kernel::macros::kunit_tests(ndk_sys_tests_warning)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_counted() {
        kunit_assert_eq!(warnings_of(|| ()), Some(0));
        let two = || {
            kernel::warn_on!(true);
            kernel::warn_on!(true);
        };
        kunit_assert_eq!(warnings_of(two), Some(2));
    }
}
