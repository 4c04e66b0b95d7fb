// SPDX-License-Identifier: GPL-2.0

//! Tables of completion queues, shared receive queues and queue pairs.

use core::ptr;

use super::{
    close,
    get,
    posted,
    slice, //
};
use crate::{
    bindings,
    ndk::{
        cq::{
            Cq,
            ResultEx, //
        },
        memory::{
            FastRegistration,
            Mr,
            Mw, //
        },
        prelude::*,
        qp::{
            Qp,
            Request, //
        },
        srq::Srq, //
    },
    rdma::values::{
        token::Token,
        work::RemoteAddr, //
    },
    sys::mdl::Pages, //
};

/// Takes results out into an array; returns their number.
///
/// # Safety
///
/// `results` is null or has room for `most` results.
unsafe fn take<R>(cq: &Cq, results: *mut R, most: u32, make: impl Fn(&ResultEx) -> R) -> u32 {
    if results.is_null() {
        return 0;
    }
    let mut next = results;
    cq.results(most, |result| {
        // SAFETY: There is room for `most` results, and no more come.
        unsafe { next.write_unaligned(make(&result)) };
        next = next.wrapping_add(1);
    })
}

face! {
    Cq: ndk_cq, ndk_cq_dispatch, NDK_OBJECT_TYPE_CQ, [close: close::<Cq>]

    request resize_cq(cq, depth: u32; done) {
        cq.resize(depth, done()?)
    }

    call arm_cq(cq, kind: u32) {
        cq.arm(kind);
    }

    call get_cq_results(cq, results: *mut bindings::ndk_result, most: u32) -> u32 {
        let make = |result: &ResultEx| bindings::ndk_result {
            status: result.status.raw(),
            bytes_transferred: result.bytes,
            qp_context: result.qp_context as *mut c_void,
            request_context: result.request_context as *mut c_void,
        };
        // SAFETY: `results` is null or has room for `most`.
        unsafe { take(cq, results, most, make) }
    }

    call get_cq_results_ex(cq, results: *mut bindings::ndk_result_ex, most: u32) -> u32 {
        let make = |result: &ResultEx| bindings::ndk_result_ex {
            status: result.status.raw(),
            bytes_transferred: result.bytes,
            qp_context: result.qp_context as *mut c_void,
            request_context: result.request_context as *mut c_void,
            type_: result.operation,
            provider_error_code: 0,
            type_specific_completion_output: u64::from(result.output),
        };
        // SAFETY: `results` is null or has room for `most`.
        unsafe { take(cq, results, most, make) }
    }

    call control_cq_interrupt_moderation(cq, interval_us: u32, count: u32) -> i32 {
        cq.moderate(interval_us, count)
    }
}

face! {
    Srq: ndk_srq, ndk_srq_dispatch, NDK_OBJECT_TYPE_SRQ, [close: close::<Srq>]

    request modify_srq(srq, depth: u32, threshold: u32; done) {
        srq.modify(depth, threshold, done()?)
    }

    call srq_receive(
        srq,
        context: *mut c_void,
        sgl: *const bindings::ndk_sge,
        count: u32
    ) -> i32 {
        // SAFETY: `sgl` has `count` elements, whose memory stays until the receive has completed.
        srq.post_receive(unsafe { posted(context, slice(sgl.cast(), count)?) })
    }
}

/// Posts to a queue pair; an invalid list makes the request an invalid one.
///
/// # Safety
///
/// `sgl` is null or has `count` elements, which stay during the call; memory named by the
/// privileged token stays until the request has completed.
unsafe fn post(
    qp: &Qp,
    context: *mut c_void,
    request: Request<'_>,
    (sgl, count): (*const bindings::ndk_sge, u32),
    flags: u32,
) -> Result<(), NtStatus> {
    // SAFETY: The caller says that `sgl` is null or has `count` elements, which stay during the
    // call.
    let (request, list) = match unsafe { slice(sgl.cast(), count) } {
        Ok(list) => (request, list),
        Err(_) => (Request::Invalid, &[][..]),
    };
    // SAFETY: The caller says that memory named by the privileged token stays until the request has
    // completed.
    qp.post(unsafe { posted(context, list) }, request, flags)
}

/// Posts a request that has no list.
fn post_alone(
    qp: &Qp,
    context: *mut c_void,
    request: Option<Request<'_>>,
    flags: u32,
) -> Result<(), NtStatus> {
    let request = request.unwrap_or(Request::Invalid);
    // SAFETY: There are no elements.
    unsafe { post(qp, context, request, (ptr::null(), 0), flags) }
}

face! {
    Qp: ndk_qp, ndk_qp_dispatch, NDK_OBJECT_TYPE_QP, [close: close::<Qp>]

    call flush(qp) {
        qp.flush();
    }

    post send(qp, flags: u32) {
        (Request::Send, flags)
    }

    post send_and_invalidate(qp, flags: u32, remote_token: u32) {
        (Request::SendAndInvalidate(Token::from_raw(remote_token)), flags)
    }

    call receive(
        qp,
        context: *mut c_void,
        sgl: *const bindings::ndk_sge,
        count: u32
    ) -> i32 {
        // SAFETY: `sgl` has `count` elements, whose memory stays until the receive has completed.
        qp.post_receive(unsafe { posted(context, slice(sgl.cast(), count)?) })
    }

    post read(qp, addr: u64, token: u32, flags: u32) {
        let token = Token::from_raw(token);
        (Request::Read(RemoteAddr { addr, token }), flags)
    }

    post write(qp, addr: u64, token: u32, flags: u32) {
        let token = Token::from_raw(token);
        (Request::Write(RemoteAddr { addr, token }), flags)
    }

    call fast_register(
        qp,
        context: *mut c_void,
        mr: *mut bindings::ndk_mr,
        page_count: u32,
        pages: *const u64,
        offset: u32,
        len: u64,
        base: u64,
        flags: u32
    ) -> i32 {
        // SAFETY: `mr` is null or a region of the consumer's, `pages` has `page_count` elements.
        let (mr, pages) = unsafe { (get::<Mr>(mr), slice(pages.cast(), page_count)) };
        let what = pages.ok().map(|pages| {
            // SAFETY: The consumer keeps the pages until the registration has ended.
            let pages = unsafe { Pages::new(pages) };
            FastRegistration { pages, offset, len, base }
        });
        let request = mr.as_ref().zip(what.as_ref());
        let request = request.map(|(mr, what)| Request::Register(mr, what));
        post_alone(qp, context, request, flags)
    }

    call bind(
        qp,
        context: *mut c_void,
        mr: *mut bindings::ndk_mr,
        mw: *mut bindings::ndk_mw,
        addr: *const c_void,
        len: u64,
        flags: u32
    ) -> i32 {
        // SAFETY: Each is null or an object of the consumer's.
        let (mr, mw) = unsafe { (get::<Mr>(mr), get::<Mw>(mw)) };
        // CAST: 64-bit addresses.
        let range = (addr.addr() as u64, len);
        let request = mr.as_ref().zip(mw.as_ref());
        let request = request.map(|(mr, mw)| Request::Bind(mr, mw, range));
        post_alone(qp, context, request, flags)
    }

    call invalidate(
        qp,
        context: *mut c_void,
        mr_or_mw: *mut bindings::ndk_object_header,
        flags: u32
    ) -> i32 {
        // SAFETY: The header of an object of the consumer's, or null.
        let kind = unsafe { mr_or_mw.as_ref() }.map(|header| header.object_type);
        let (mr, mw) = match kind {
            // SAFETY: The header says that it is a region.
            Some(bindings::NDK_OBJECT_TYPE_MR) => (unsafe { get::<Mr>(mr_or_mw.cast()) }, None),
            // SAFETY: The header says that it is a window.
            Some(bindings::NDK_OBJECT_TYPE_MW) => (None, unsafe { get::<Mw>(mr_or_mw.cast()) }),
            Some(_) | None => (None, None),
        };
        let mr = mr.as_ref().map(|mr| Request::InvalidateMr(mr));
        let request = mr.or_else(|| mw.as_ref().map(|mw| Request::InvalidateMw(mw)));
        post_alone(qp, context, request, flags)
    }
}
