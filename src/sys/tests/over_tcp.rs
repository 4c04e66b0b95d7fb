// SPDX-License-Identifier: GPL-2.0

//! The parameters of a run of the tests over TCP.
//!
//! Context: any.

use core::num::NonZeroU32;

use crate::bindings;

/// Returns true if two queue pairs of a test are connected over TCP: the module's parameter `wire`.
pub(crate) fn runs_over_tcp() -> bool {
    // SAFETY: Reads a flag that is constant once the module has come up.
    unsafe { bindings::ndk_kunit_wire() }
}

/// The size of the pieces in which bytes go to TCP and come from it: the module's parameter `piece`.
pub(crate) fn piece() -> Option<NonZeroU32> {
    // SAFETY: Reads a number that is constant once the module has come up.
    NonZeroU32::new(unsafe { bindings::ndk_kunit_piece() })
}
