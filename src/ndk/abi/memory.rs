// SPDX-License-Identifier: GPL-2.0

//! Tables of regions and windows; logical address mappings.

use core::ptr;

use super::{
    close,
    in_out_value,
    put, //
};
use crate::{
    bindings,
    ndk::{
        memory::{
            build_lam as build,
            LamError,
            Mr,
            Mw, //
        },
        prelude::*, //
    },
    sys::{
        mdl::MdlChain,
        unaligned::Room, //
    }, //
};

face! {
    Mr: ndk_mr, ndk_mr_dispatch, NDK_OBJECT_TYPE_MR, [close: close::<Mr>]

    request register_mr(mr, mdl: *mut bindings::ndk_mdl, len: u64, flags: u32; done) {
        // SAFETY: The consumer keeps the chain while the call is pending, and its pages until the
        // registration has ended.
        let chain = unsafe { MdlChain::new(mdl) };
        mr.register(chain, len, flags, done()?)
    }

    request deregister_mr(mr; done) {
        mr.deregister(done()?)
    }

    request initialize_fast_register_mr(mr, pages: u32, may_be_remote: bool; done) {
        mr.initialize(pages, may_be_remote, done()?)
    }

    call get_remote_token(mr) -> u32 {
        mr.remote_token().raw()
    }

    call get_local_token(mr) -> u32 {
        mr.local_token().raw()
    }
}

face! {
    Mw: ndk_mw, ndk_mw_dispatch, NDK_OBJECT_TYPE_MW, [close: close::<Mw>]

    call get_remote_token(mw) -> u32 {
        mw.remote_token().raw()
    }
}

/// Bytes of a mapping without its pages.
const LAM_HEAD: u32 = size_of::<bindings::ndk_logical_address_mapping>() as u32;

/// `NdkBuildLAM`; completes at once.
///
/// # Safety
///
/// `lam_size` and `offset` are null or may be changed; `lam` is null or has `lam_size` bytes; the
/// chain `mdl` stays during the call, and its pages until the mapping is released.
pub(super) unsafe extern "C" fn build_lam(
    _adapter: *mut bindings::ndk_adapter,
    mdl: *mut bindings::ndk_mdl,
    len: u64,
    _completion: bindings::ndk_fn_request_completion,
    _context: *mut c_void,
    lam: *mut bindings::ndk_logical_address_mapping,
    lam_size: *mut u32,
    offset: *mut u32,
) -> i32 {
    // SAFETY: The caller says that `lam_size` is null or may be changed.
    let Some(size) = unsafe { in_out_value(lam_size) }.filter(|_| !offset.is_null()) else {
        return NtStatus::INVALID_PARAMETER.raw();
    };
    let bytes = if lam.is_null() { 0 } else { size.get() };
    let places = bytes.saturating_sub(LAM_HEAD) / size_of::<u64>() as u32;
    // CAST: widening.
    // SAFETY: If `places` is not 0, `lam` has `size` bytes, of which `places` elements follow its
    // head.
    let out = unsafe {
        let first = lam.cast::<u8>().wrapping_add(LAM_HEAD as usize);
        Room::new(first.cast::<u64>(), places as usize)
    };
    // SAFETY: The chain stays during the call, its pages until the mapping is released.
    let chain = unsafe { MdlChain::new(mdl) };
    match build(&chain, len, out) {
        Ok(built) => {
            // SAFETY: A mapping has a page, so there was room for it, and for the head before it;
            // the caller says that `offset` may be changed, and it is not null.
            unsafe {
                (&raw mut (*lam).adapter_context).write_unaligned(ptr::null_mut());
                (&raw mut (*lam).adapter_page_count).write_unaligned(built.pages);
                put(offset, built.offset);
            }
            NtStatus::SUCCESS.raw()
        }
        Err(LamError::TooSmall(pages)) => {
            size.set(pages.saturating_mul(8).saturating_add(LAM_HEAD));
            NtStatus::BUFFER_TOO_SMALL.raw()
        }
        Err(LamError::Invalid) => NtStatus::INVALID_PARAMETER.raw(),
    }
}

/// `NdkReleaseLAM`: a mapping needs no release, as [`build_lam`] maps no memory (LAM-04).
///
/// # Safety
///
/// None is needed.
pub(super) unsafe extern "C" fn release_lam(
    _adapter: *mut bindings::ndk_adapter,
    _lam: *mut bindings::ndk_logical_address_mapping,
) {
}
