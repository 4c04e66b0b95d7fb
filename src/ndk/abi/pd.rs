// SPDX-License-Identifier: GPL-2.0

//! The table of protection domains.

use core::ffi::c_void;

use kernel::prelude::*;

use super::{
    close,
    create_later,
    create_now,
    get,
    query_extension,
    Callback,
    Face,
    NO_OBJECT, //
};
use crate::{
    bindings,
    ndk::{
        cq::Cq,
        life::Ref,
        pd::Pd,
        qp::Sizes,
        srq::{
            Srq,
            SrqSizes,
            SrqUser, //
        },
        status::NtStatus, //
    }, //
};

static PD: bindings::ndk_pd_dispatch = bindings::ndk_pd_dispatch {
    close: Some(close::<Pd>),
    query_extension: Some(query_extension),
    create_mr: Some(create_mr),
    create_mw: Some(create_mw),
    create_srq: Some(create_srq),
    create_qp: Some(create_qp),
    create_qp_with_srq: Some(create_qp_with_srq),
    get_privileged_memory_region_token: Some(privileged_token),
};

// SAFETY: The table of protection domains.
unsafe impl Face for Pd {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_PD;
    const DISPATCH: *const c_void = (&raw const PD).cast();
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_mr(
    pd: *mut bindings::ndk_pd,
    fast_register: bool,
    _completion: bindings::ndk_fn_create_completion,
    _context: *mut c_void,
    out: *mut *mut bindings::ndk_mr,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        match get::<Pd, _>(pd) {
            Some(pd) => create_now(out, || pd.create_mr(fast_register)),
            None => NO_OBJECT.raw(),
        }
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_mw(
    pd: *mut bindings::ndk_pd,
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut bindings::ndk_mw,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        match get::<Pd, _>(pd) {
            Some(pd) => create_later(completion, context, out, |done| pd.create_mw(done)),
            None => NO_OBJECT.raw(),
        }
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_srq(
    pd: *mut bindings::ndk_pd,
    depth: u32,
    sges: u32,
    threshold: u32,
    notification: bindings::ndk_fn_srq_notification,
    srq_context: *mut c_void,
    _affinity: *const bindings::cpumask,
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut bindings::ndk_srq,
) -> i32 {
    // SAFETY: By the contract.
    let Some(pd) = (unsafe { get::<Pd, _>(pd) }) else {
        return NO_OBJECT.raw();
    };
    let sizes = SrqSizes {
        depth,
        sges,
        threshold,
    };
    let callback = Callback {
        function: notification,
        context: srq_context,
    };
    let user = move || -> Result<SrqUser, NtStatus> {
        if callback.function.is_none() {
            return Ok(None);
        }
        let user = move |status: NtStatus| {
            let callback = &callback;
            if let Some(function) = callback.function {
                // SAFETY: By the contract.
                unsafe { function(callback.context, status.raw()) };
            }
        };
        let user = KBox::new(user, GFP_ATOMIC);
        Ok(Some(user.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?))
    };
    // SAFETY: By the contract.
    unsafe {
        create_later::<Srq, _>(completion, context, out, |done| {
            pd.create_srq(sizes, user()?, done)
        })
    }
}

/// The three queues of a queue pair to be.
///
/// # Safety
///
/// By the contract; the result is not used beyond the call.
unsafe fn queues<'a>(
    receive: *mut bindings::ndk_cq,
    initiator: *mut bindings::ndk_cq,
) -> Result<(&'a Ref<Cq>, &'a Ref<Cq>), NtStatus> {
    // SAFETY: By the contract.
    let (receive, initiator) = unsafe { (get::<Cq, _>(receive), get::<Cq, _>(initiator)) };
    receive.zip(initiator).ok_or(NO_OBJECT)
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_qp(
    pd: *mut bindings::ndk_pd,
    receive_cq: *mut bindings::ndk_cq,
    initiator_cq: *mut bindings::ndk_cq,
    qp_context: *mut c_void,
    receives: u32,
    requests: u32,
    receive_sges: u32,
    request_sges: u32,
    inline: u32,
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut bindings::ndk_qp,
) -> i32 {
    let sizes = Sizes {
        receives,
        requests,
        receive_sges,
        request_sges,
        inline,
    };
    // SAFETY: By the contract.
    unsafe {
        let cqs = queues(receive_cq, initiator_cq);
        match get::<Pd, _>(pd) {
            Some(pd) => create_later(completion, context, out, |done| {
                pd.create_qp(cqs?, None, qp_context.addr(), sizes, done)
            }),
            None => NO_OBJECT.raw(),
        }
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_qp_with_srq(
    pd: *mut bindings::ndk_pd,
    receive_cq: *mut bindings::ndk_cq,
    initiator_cq: *mut bindings::ndk_cq,
    srq: *mut bindings::ndk_srq,
    qp_context: *mut c_void,
    requests: u32,
    request_sges: u32,
    inline: u32,
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut bindings::ndk_qp,
) -> i32 {
    let sizes = Sizes {
        receives: 0,
        requests,
        receive_sges: 0,
        request_sges,
        inline,
    };
    // SAFETY: By the contract.
    unsafe {
        let cqs = queues(receive_cq, initiator_cq);
        match (get::<Pd, _>(pd), get::<Srq, _>(srq)) {
            (Some(pd), Some(srq)) => create_later(completion, context, out, |done| {
                pd.create_qp(cqs?, Some(srq), qp_context.addr(), sizes, done)
            }),
            _ => NO_OBJECT.raw(),
        }
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn privileged_token(pd: *mut bindings::ndk_pd, token: *mut u32) {
    // SAFETY: By the contract.
    let (pd, token) = unsafe { (get::<Pd, _>(pd), token.as_mut()) };
    if let (Some(pd), Some(token)) = (pd, token) {
        *token = pd.privileged_token().raw();
    }
}
