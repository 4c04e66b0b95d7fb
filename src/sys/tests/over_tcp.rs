// SPDX-License-Identifier: GPL-2.0

//! The parameters of a run of the tests over TCP.
//!
//! Context: any, except where a function says otherwise.

use core::num::NonZeroU32;

use kernel::time::{
    delay::fsleep,
    Delta, //
};

use crate::{
    bindings,
    sys::random, //
};

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

/// Has every other call to TCP wait for a random time, of which the module's parameter `late` is the
/// most: connections then differ in their order, as on a busy machine. Process context.
pub(crate) fn come_late() {
    // SAFETY: Reads a number that is constant once the module has come up.
    let most = unsafe { bindings::ndk_kunit_late() };
    if most == 0 {
        return;
    }
    let [coin, share] = random::bytes();
    if coin & 1 == 0 {
        let us = u64::from(most) * u64::from(share) / u64::from(u8::MAX);
        // CAST: not more than `most`.
        fsleep(Delta::from_micros(us as i64));
    }
}
