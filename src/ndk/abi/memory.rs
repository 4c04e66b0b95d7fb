// SPDX-License-Identifier: GPL-2.0

//! Tables of regions and windows; logical address mappings.

use core::{
    ffi::c_void,
    mem::size_of,
    ptr, //
};

use super::{
    close,
    get,
    query_extension,
    raw,
    request_done,
    Face,
    NO_OBJECT, //
};
use crate::{
    bindings,
    ndk::{
        memory::{
            build_lam as build,
            Mr,
            Mw,
            NoLam, //
        },
        status::NtStatus, //
    },
    sys::mdl::Chain, //
};

static MR: bindings::ndk_mr_dispatch = bindings::ndk_mr_dispatch {
    close: Some(close::<Mr>),
    query_extension: Some(query_extension),
    register_mr: Some(register_mr),
    deregister_mr: Some(deregister_mr),
    initialize_fast_register_mr: Some(initialize_fast_register_mr),
    get_remote_token: Some(mr_remote_token),
    get_local_token: Some(mr_local_token),
};

// SAFETY: The table of regions.
unsafe impl Face for Mr {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_MR;
    const DISPATCH: *const c_void = (&raw const MR).cast();
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn register_mr(
    mr: *mut bindings::ndk_mr,
    mdl: *mut bindings::ndk_mdl,
    len: u64,
    flags: u32,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract; the chain stays while the call is pending, its pages until the
    // registration has ended.
    let (mr, chain) = unsafe { (get::<Mr, _>(mr), Chain::new(mdl)) };
    raw(mr
        .ok_or(NO_OBJECT)
        .and_then(|mr| mr.register(chain, len, flags, request_done(completion, context)?)))
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn deregister_mr(
    mr: *mut bindings::ndk_mr,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    let mr = unsafe { get::<Mr, _>(mr) };
    raw(mr
        .ok_or(NO_OBJECT)
        .and_then(|mr| mr.deregister(request_done(completion, context)?)))
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn initialize_fast_register_mr(
    mr: *mut bindings::ndk_mr,
    pages: u32,
    may_be_remote: bool,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    let mr = unsafe { get::<Mr, _>(mr) };
    raw(mr
        .ok_or(NO_OBJECT)
        .and_then(|mr| mr.initialize(pages, may_be_remote, request_done(completion, context)?)))
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn mr_remote_token(mr: *mut bindings::ndk_mr) -> u32 {
    // SAFETY: By the contract.
    unsafe { get::<Mr, _>(mr) }.map_or(0, |mr| mr.remote_token().raw())
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn mr_local_token(mr: *mut bindings::ndk_mr) -> u32 {
    // SAFETY: By the contract.
    unsafe { get::<Mr, _>(mr) }.map_or(0, |mr| mr.local_token().raw())
}

static MW: bindings::ndk_mw_dispatch = bindings::ndk_mw_dispatch {
    close: Some(close::<Mw>),
    query_extension: Some(query_extension),
    get_remote_token: Some(mw_remote_token),
};

// SAFETY: The table of windows.
unsafe impl Face for Mw {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_MW;
    const DISPATCH: *const c_void = (&raw const MW).cast();
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn mw_remote_token(mw: *mut bindings::ndk_mw) -> u32 {
    // SAFETY: By the contract.
    unsafe { get::<Mw, _>(mw) }.map_or(0, |mw| mw.remote_token().raw())
}

/// Bytes of a mapping without its pages.
const LAM_HEAD: u32 = size_of::<bindings::ndk_logical_address_mapping>() as u32;

/// # Safety
///
/// By the contract.
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
    // SAFETY: By the contract.
    let (size, offset) = unsafe { (lam_size.as_mut(), offset.as_mut()) };
    let (Some(size), Some(offset)) = (size, offset) else {
        return NtStatus::INVALID_PARAMETER.raw();
    };
    let room = if lam.is_null() { 0 } else { *size };
    let places = room.saturating_sub(LAM_HEAD) / size_of::<u64>() as u32;
    let out: &mut [u64] = match places {
        0 => &mut [],
        // CAST: widening.
        // SAFETY: By the contract the mapping has `size` bytes, of which these follow its head.
        _ => unsafe {
            let first = (&raw mut (*lam).adapter_page_array).cast::<u64>();
            core::slice::from_raw_parts_mut(first, places as usize)
        },
    };
    // SAFETY: By the contract the chain stays while the call is pending, its pages until the
    // mapping is released.
    let chain = unsafe { Chain::new(mdl) };
    match build(&chain, len, out) {
        Ok(built) => {
            // SAFETY: There is room for more than the head.
            unsafe {
                (*lam).adapter_context = ptr::null_mut();
                (*lam).adapter_page_count = built.pages;
            }
            *offset = built.offset;
            NtStatus::SUCCESS.raw()
        }
        Err(NoLam::TooSmall(pages)) => {
            *size = pages.saturating_mul(8).saturating_add(LAM_HEAD);
            NtStatus::BUFFER_TOO_SMALL.raw()
        }
        Err(NoLam::Invalid) => NtStatus::INVALID_PARAMETER.raw(),
    }
}

/// Nothing was mapped, so there is nothing to undo (LAM-04).
///
/// # Safety
///
/// None is needed.
pub(super) unsafe extern "C" fn release_lam(
    _adapter: *mut bindings::ndk_adapter,
    _lam: *mut bindings::ndk_logical_address_mapping,
) {
}
