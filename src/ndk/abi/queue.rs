// SPDX-License-Identifier: GPL-2.0

//! Tables of completion queues, shared receive queues and queue pairs.

use core::ffi::c_void;

use kernel::prelude::*;

use super::{
    close,
    get,
    query_extension,
    raw,
    raw_result,
    request_done,
    sges,
    slice,
    Face,
    NO_OBJECT, //
};
use crate::{
    bindings,
    engine::{
        memory::token::Token,
        work::Remote, //
    },
    ndk::{
        cq::{
            Cq,
            ResultEx, //
        },
        memory::{
            Mr,
            Mw, //
        },
        qp::{
            Qp,
            Registration, //
        },
        srq::Srq,
        status::NtStatus, //
    },
    sys::mdl::Pages, //
};

static CQ: bindings::ndk_cq_dispatch = bindings::ndk_cq_dispatch {
    close: Some(close::<Cq>),
    query_extension: Some(query_extension),
    resize_cq: Some(resize_cq),
    arm_cq: Some(arm_cq),
    get_cq_results: Some(get_cq_results),
    control_cq_interrupt_moderation: Some(control_cq_interrupt_moderation),
    get_cq_results_ex: Some(get_cq_results_ex),
};

// SAFETY: The table of completion queues.
unsafe impl Face for Cq {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_CQ;
    const DISPATCH: *const c_void = (&raw const CQ).cast();
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn resize_cq(
    cq: *mut bindings::ndk_cq,
    depth: u32,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    let cq = unsafe { get::<Cq, _>(cq) };
    raw(cq
        .ok_or(NO_OBJECT)
        .and_then(|cq| cq.resize(depth, request_done(completion, context)?)))
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn arm_cq(cq: *mut bindings::ndk_cq, kind: u32) {
    // SAFETY: By the contract.
    if let Some(cq) = unsafe { get::<Cq, _>(cq) } {
        cq.arm(kind);
    }
}

/// Takes results out into an array.
///
/// # Safety
///
/// By the contract, and `results` has room for `most`.
unsafe fn take<R>(
    cq: *mut bindings::ndk_cq,
    results: *mut R,
    most: u32,
    make: impl Fn(&ResultEx) -> R,
) -> u32 {
    // SAFETY: By the contract.
    let Some(cq) = (unsafe { get::<Cq, _>(cq) }) else {
        return 0;
    };
    if results.is_null() {
        return 0;
    }
    let mut next = results;
    cq.results(most, |result| {
        // SAFETY: There is room for `most`, and no more results come.
        unsafe { next.write(make(&result)) };
        next = next.wrapping_add(1);
    })
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn get_cq_results(
    cq: *mut bindings::ndk_cq,
    results: *mut bindings::ndk_result,
    most: u32,
) -> u32 {
    // SAFETY: By the contract.
    unsafe {
        take(cq, results, most, |result| bindings::ndk_result {
            status: result.status.raw(),
            bytes_transferred: result.bytes,
            qp_context: result.qp_context as *mut c_void,
            request_context: result.request_context as *mut c_void,
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn get_cq_results_ex(
    cq: *mut bindings::ndk_cq,
    results: *mut bindings::ndk_result_ex,
    most: u32,
) -> u32 {
    // SAFETY: By the contract.
    unsafe {
        take(cq, results, most, |result| bindings::ndk_result_ex {
            status: result.status.raw(),
            bytes_transferred: result.bytes,
            qp_context: result.qp_context as *mut c_void,
            request_context: result.request_context as *mut c_void,
            type_: result.operation,
            provider_error_code: 0,
            type_specific_completion_output: u64::from(result.output),
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn control_cq_interrupt_moderation(
    cq: *mut bindings::ndk_cq,
    interval_us: u32,
    count: u32,
) -> i32 {
    // SAFETY: By the contract.
    let cq = unsafe { get::<Cq, _>(cq) };
    cq.map_or(NO_OBJECT, |cq| cq.moderate(interval_us, count))
        .raw()
}

static SRQ: bindings::ndk_srq_dispatch = bindings::ndk_srq_dispatch {
    close: Some(close::<Srq>),
    query_extension: Some(query_extension),
    modify_srq: Some(modify_srq),
    srq_receive: Some(srq_receive),
};

// SAFETY: The table of shared receive queues.
unsafe impl Face for Srq {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_SRQ;
    const DISPATCH: *const c_void = (&raw const SRQ).cast();
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn modify_srq(
    srq: *mut bindings::ndk_srq,
    depth: u32,
    threshold: u32,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    let srq = unsafe { get::<Srq, _>(srq) };
    raw(srq
        .ok_or(NO_OBJECT)
        .and_then(|srq| srq.modify(depth, threshold, request_done(completion, context)?)))
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn srq_receive(
    srq: *mut bindings::ndk_srq,
    context: *mut c_void,
    sgl: *const bindings::ndk_sge,
    count: u32,
) -> i32 {
    // SAFETY: By the contract.
    let (srq, list) = unsafe { (get::<Srq, _>(srq), sges(sgl, count)) };
    raw_result(
        srq.ok_or(NO_OBJECT)
            .and_then(|srq| srq.receive(context.addr() as u64, list?)),
    )
}

static QP: bindings::ndk_qp_dispatch = bindings::ndk_qp_dispatch {
    close: Some(close::<Qp>),
    query_extension: Some(query_extension),
    flush: Some(flush),
    send: Some(send),
    receive: Some(receive),
    bind: Some(bind),
    fast_register: Some(fast_register),
    invalidate: Some(invalidate),
    read: Some(read),
    write: Some(write),
    send_and_invalidate: Some(send_and_invalidate),
};

// SAFETY: The table of queue pairs.
unsafe impl Face for Qp {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_QP;
    const DISPATCH: *const c_void = (&raw const QP).cast();
}

/// Posts to a queue pair; a list that is none is refused as a request is.
///
/// # Safety
///
/// By the contract.
unsafe fn post<L>(
    qp: *mut bindings::ndk_qp,
    list: Result<L, NtStatus>,
    post: impl FnOnce(&Qp, L) -> Result<(), NtStatus>,
) -> i32 {
    // SAFETY: By the contract.
    let Some(qp) = (unsafe { get::<Qp, _>(qp) }) else {
        return NO_OBJECT.raw();
    };
    raw_result(match list {
        Ok(list) => post(qp, list),
        Err(status) => qp.refuse(status),
    })
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn flush(qp: *mut bindings::ndk_qp) {
    // SAFETY: By the contract.
    if let Some(qp) = unsafe { get::<Qp, _>(qp) } {
        qp.flush();
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn send(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    sgl: *const bindings::ndk_sge,
    count: u32,
    flags: u32,
) -> i32 {
    let context = context.addr() as u64;
    // SAFETY: By the contract.
    unsafe {
        post(qp, sges(sgl, count), |qp, list| {
            qp.send(context, list, flags)
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn send_and_invalidate(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    sgl: *const bindings::ndk_sge,
    count: u32,
    flags: u32,
    remote_token: u32,
) -> i32 {
    let context = context.addr() as u64;
    let token = Token::from_raw(remote_token);
    // SAFETY: By the contract.
    unsafe {
        post(qp, sges(sgl, count), |qp, list| {
            qp.send_and_invalidate(context, list, flags, token)
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn receive(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    sgl: *const bindings::ndk_sge,
    count: u32,
) -> i32 {
    // SAFETY: By the contract.
    let (qp, list) = unsafe { (get::<Qp, _>(qp), sges(sgl, count)) };
    raw_result(
        qp.ok_or(NO_OBJECT)
            .and_then(|qp| qp.receive(context.addr() as u64, list?)),
    )
}

const fn remote(addr: u64, token: u32) -> Remote {
    Remote {
        addr,
        token: Token::from_raw(token),
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn read(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    sgl: *const bindings::ndk_sge,
    count: u32,
    remote_address: u64,
    remote_token: u32,
    flags: u32,
) -> i32 {
    let context = context.addr() as u64;
    let from = remote(remote_address, remote_token);
    // SAFETY: By the contract.
    unsafe {
        post(qp, sges(sgl, count), |qp, list| {
            qp.read(context, list, from, flags)
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn write(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    sgl: *const bindings::ndk_sge,
    count: u32,
    remote_address: u64,
    remote_token: u32,
    flags: u32,
) -> i32 {
    let context = context.addr() as u64;
    let to = remote(remote_address, remote_token);
    // SAFETY: By the contract.
    unsafe {
        post(qp, sges(sgl, count), |qp, list| {
            qp.write(context, list, to, flags)
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn fast_register(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    mr: *mut bindings::ndk_mr,
    page_count: u32,
    pages: *const u64,
    offset: u32,
    len: u64,
    base: u64,
    flags: u32,
) -> i32 {
    // SAFETY: By the contract.
    let (mr, pages) = unsafe { (get::<Mr, _>(mr), slice(pages, page_count)) };
    let named = mr.ok_or(NO_OBJECT).and_then(|mr| Ok((mr, pages?)));
    // SAFETY: By the contract.
    unsafe {
        post(qp, named, |qp, (mr, pages)| {
            let what = Registration {
                // SAFETY: By the contract the pages stay until the registration has ended.
                pages: Pages::new(pages),
                offset,
                len,
                base,
            };
            qp.fast_register(context.addr() as u64, mr, &what, flags)
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn bind(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    mr: *mut bindings::ndk_mr,
    mw: *mut bindings::ndk_mw,
    addr: *const c_void,
    len: u64,
    flags: u32,
) -> i32 {
    // SAFETY: By the contract.
    let (mr, mw) = unsafe { (get::<Mr, _>(mr), get::<Mw, _>(mw)) };
    let named = mr.zip(mw).ok_or(NO_OBJECT);
    // CAST: 64-bit addresses.
    let range = (addr.addr() as u64, len);
    // SAFETY: By the contract.
    unsafe {
        post(qp, named, |qp, (mr, mw)| {
            qp.bind(context.addr() as u64, mr, mw, range, flags)
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn invalidate(
    qp: *mut bindings::ndk_qp,
    context: *mut c_void,
    mr_or_mw: *mut bindings::ndk_object_header,
    flags: u32,
) -> i32 {
    let context = context.addr() as u64;
    // SAFETY: By the contract it is the header of an object, or null.
    let kind = unsafe { mr_or_mw.as_ref() }.map(|header| header.object_type);
    // SAFETY: By the contract, and the object is of the type that its header tells.
    unsafe {
        post(qp, Ok(()), |qp, ()| match kind {
            Some(bindings::NDK_OBJECT_TYPE_MR) => match get::<Mr, _>(mr_or_mw) {
                Some(mr) => qp.invalidate_mr(context, mr, flags),
                None => qp.invalidate_other(context, flags),
            },
            Some(bindings::NDK_OBJECT_TYPE_MW) => match get::<Mw, _>(mr_or_mw) {
                Some(mw) => qp.invalidate_mw(context, mw, flags),
                None => qp.invalidate_other(context, flags),
            },
            Some(_) | None => qp.invalidate_other(context, flags),
        })
    }
}
