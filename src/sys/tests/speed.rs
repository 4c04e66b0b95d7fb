// SPDX-License-Identifier: GPL-2.0

//! The speed of tests, an attribute that KUnit filters by (`speed>slow`), and of the machine.
//!
//! C header: [`include/kunit/attributes.h`](srctree/include/kunit/attributes.h)

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

/// Marks a test of this module as slow.
///
/// `ENOENT` when there is no such test, `EBUSY` when the module has come up, for then the tests may
/// run. Any context.
pub(crate) fn mark_slow(suite: &CStr, test: &CStr) -> Result {
    // SAFETY: Both strings are NUL-terminated. The function changes the test only while the
    // module's `init` runs, when no other code accesses the test.
    to_result(unsafe { bindings::ndk_kunit_slow(suite.as_char_ptr(), test.as_char_ptr()) })
}

/// The factor by which this machine is slower than others: the module's parameter `slow`, at least 1.
/// Any context.
pub(crate) fn slowness() -> u32 {
    // SAFETY: Reads a number that is constant once the module has come up.
    unsafe { bindings::ndk_kunit_slowness() }
}

#[kernel::macros::kunit_tests(ndk_sys_tests_speed)]
mod tests {
    use super::*;

    #[test]
    fn it_is_too_late_when_tests_run() {
        kunit_assert_eq!(
            mark_slow(c"ndk_sys_tests_speed", c"it_is_too_late_when_tests_run"),
            Err(EBUSY)
        );
    }
}
