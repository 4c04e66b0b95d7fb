// SPDX-License-Identifier: GPL-2.0

//! Module parameters that are numbers or flags. `module!` would hide them from sysfs, so
//! `bindings/export.c` declares them.
//!
//! Tests: `selftests/link.sh`.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// The module parameter `rnr_timeout_ms`, set before the module is initialised and constant from
/// then on.
#[no_mangle]
#[allow(non_upper_case_globals)]
static ndk_rnr_timeout_ms: Atomic<u32> = Atomic::new(30_000);

/// The time that a message waits for a receive, in milliseconds, as requested. Any context.
pub(crate) fn rnr_timeout_ms() -> u32 {
    ndk_rnr_timeout_ms.load(Relaxed)
}

/// The module parameter `mpa_crc`, which may change at any time.
#[no_mangle]
#[allow(non_upper_case_globals)]
static ndk_mpa_crc: Atomic<bool> = Atomic::new(true);

/// True if this side demands the CRC of each FPDU from a peer whose connection begins now (RFC 5044,
/// section 7.1). Any context.
pub(crate) fn mpa_crc() -> bool {
    ndk_mpa_crc.load(Relaxed)
}

/// Sets it. Any context.
#[cfg(ndk_kunit)]
pub(crate) fn set_mpa_crc(demanded: bool) {
    ndk_mpa_crc.store(demanded, Relaxed);
}
