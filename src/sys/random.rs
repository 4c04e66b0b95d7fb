// SPDX-License-Identifier: GPL-2.0

//! Random numbers fit for keys and identities.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use crate::bindings;

/// `N` random bytes. Any context.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    // SAFETY: `out` is writable for `N` bytes.
    unsafe { bindings::get_random_bytes(out.as_mut_ptr().cast(), N) };
    out
}
