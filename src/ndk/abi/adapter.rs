// SPDX-License-Identifier: GPL-2.0

//! Opening and closing; tables of adapters and protection domains.

use super::{
    close,
    get,
    in_out_value,
    memory::{
        build_lam,
        release_lam, //
    },
    put,
    read_address,
    status_user,
    take_back,
    Blank,
    Callback,
    Unaligned,
    NO_OBJECT, //
};
use crate::{
    bindings,
    ndk::{
        adapter::{
            open as open_adapter,
            Limits,
            NdkContext,
            OpenBy,
            Version,
            VERSION, //
        },
        connector::Connector,
        cq::Cq,
        endpoint::SharedEndpoint,
        listener::Listener,
        memory::{
            Mr,
            Mw, //
        },
        pd::Pd,
        prelude::*,
        qp::Qp,
        srq::{
            Srq,
            SrqSizes, //
        }, //
    },
    rdma::values::qp::QpCaps,
    sys::{
        addr,
        global::Global,
        netdev::Net, //
    }, //
};

/// The context for opens; set as long as adapters can be opened.
pub(crate) static CONTEXT: Global<NdkContext> = Global::new();

/// The body of `ndk_open_adapter()`, which pins the module around it.
///
/// # Safety
///
/// As [`open`].
#[no_mangle]
pub(crate) unsafe extern "C" fn ndk_face_open(
    params: *const bindings::ndk_open_params,
    out: *mut *mut bindings::ndk_adapter,
) -> i32 {
    let Some(context) = CONTEXT.get() else {
        return NtStatus::ADAPTER_NOT_READY.raw();
    };
    // SAFETY: The caller says that `params` is null, or its members are as the header wants them,
    // and that `out` is null or may be written.
    let opened = unsafe { open(&context, params, out) };
    opened.map_or_else(NtStatus::raw, |()| NtStatus::SUCCESS.raw())
}

/// Opens an adapter of `context`.
///
/// # Safety
///
/// `params` is null, or its members are as the header wants them; `out` is null or may be written.
pub(crate) unsafe fn open(
    context: &NdkContext,
    params: *const bindings::ndk_open_params,
    out: *mut *mut bindings::ndk_adapter,
) -> Result<(), NtStatus> {
    // SAFETY: The consumer's parameters, which stay during the call.
    let params = unsafe {
        params
            .cast::<Unaligned<bindings::ndk_open_params>>()
            .as_ref()
    };
    let params = params.ok_or(NtStatus::INVALID_PARAMETER)?.get();
    NtStatus::INVALID_PARAMETER.when(out.is_null())?;
    let blank = Blank::<Adapter>::new()?;
    // SAFETY: The members are as the header wants them.
    let which = unsafe { which(&params)? };
    let version = Version {
        major: params.version.major,
        minor: params.version.minor,
    };
    let adapter = open_adapter(context, &which, version)?;
    // SAFETY: Not null, so it may be written.
    unsafe { out.write_unaligned(blank.fill(adapter)) };
    Ok(())
}

/// # Safety
///
/// Each pointer is null, or: the name ends with a zero, the address is as long as its family says,
/// the namespace is there. The result is not used after the call.
unsafe fn which<'a>(params: &bindings::ndk_open_params) -> Result<OpenBy<'a>, NtStatus> {
    let name = match params.name.is_null() {
        true => None,
        // SAFETY: Not null, so it ends with a zero.
        false => Some(unsafe { CStr::from_char_ptr(params.name) }),
    };
    // SAFETY: A namespace, or null; it is there during the call.
    let net = unsafe { Net::from_raw(params.net) };
    if params.local_address.is_null() {
        let by_name = name.map(|name| OpenBy::Name(net, name));
        return by_name.ok_or(NtStatus::INVALID_PARAMETER);
    }
    // SAFETY: Not null, so it is as long as its family says.
    let at = unsafe {
        let family = (&raw const (*params.local_address).sa_family).read_unaligned();
        let length = addr::length_of(family);
        read_address(params.local_address, length)?
    };
    Ok(match name {
        Some(name) => OpenBy::Both(net, name, at.ip()),
        None => OpenBy::Address(net, at.ip()),
    })
}

/// The body of `ndk_close_adapter()`. Returns true if the adapter is gone.
///
/// False without effect if `adapter` is no open adapter. False also in a callback, which cannot
/// wait: then `later` is called when the adapter goes. In either case the handle stays as long as
/// callbacks may still use it.
///
/// # Safety
///
/// `adapter` is null, or an adapter of the consumer's whose close has not returned; `later` may be
/// called with `context` from any context.
#[no_mangle]
pub(crate) unsafe extern "C" fn ndk_face_close(
    adapter: *mut bindings::ndk_adapter,
    later: bindings::ndk_fn_close_completion,
    context: *mut c_void,
) -> bool {
    // SAFETY: The caller says that `adapter` is null, or an adapter of the consumer's whose close
    // has not returned; one that is not closed is closed now.
    let Some((object, mut handle)) = (unsafe { take_back::<Adapter>(adapter) }) else {
        return false;
    };
    handle.closing = Callback {
        function: later,
        context,
    };
    object.close_with(Some(handle))
}

/// The size in bytes above which the consumer had better not copy a transfer.
const LARGE_REQUEST: u32 = 64 << 10;

/// The capabilities of every adapter (ADPT-05).
const ADAPTER_FLAGS: u32 = bindings::NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED
    | bindings::NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED
    | bindings::NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED
    | bindings::NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED
    | bindings::NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED;

/// The answer to `QueryAdapterInfo` for an adapter with these limits. Any context.
pub(crate) fn info(limits: &Limits) -> bindings::ndk_adapter_info {
    bindings::ndk_adapter_info {
        version: VERSION.into(),
        vendor_id: 0,
        device_id: 0,
        max_registration_size: limits.registration,
        max_window_size: limits.registration,
        frmr_page_count: limits.pages,
        max_initiator_request_sge: limits.sges,
        max_receive_request_sge: limits.sges,
        max_read_request_sge: limits.read_sges,
        max_transfer_length: limits.transfer,
        max_inline_data_size: limits.inline,
        max_inbound_read_limit: limits.reads,
        max_outbound_read_limit: limits.reads,
        max_receive_queue_depth: limits.requests,
        max_initiator_queue_depth: limits.requests,
        max_srq_depth: limits.srq,
        max_cq_depth: limits.cq,
        large_request_threshold: LARGE_REQUEST,
        max_caller_data: limits.private_data,
        max_callee_data: limits.private_data,
        adapter_flags: ADAPTER_FLAGS,
        rdma_technology: bindings::NDK_RDMA_TECHNOLOGY_IWARP,
    }
}

face! {
    Adapter: ndk_adapter, ndk_adapter_dispatch, NDK_OBJECT_TYPE_ADAPTER,
    [build_lam: build_lam, release_lam: release_lam]

    call query_adapter_info(
        adapter,
        out: *mut bindings::ndk_adapter_info,
        size: *mut u32
    ) -> i32 {
        // SAFETY: `size` is null or may be changed.
        let size = unsafe { in_out_value(size) }.ok_or(NtStatus::INVALID_PARAMETER)?;
        // CAST: about a hundred.
        let needed = size_of::<bindings::ndk_adapter_info>() as u32;
        let room = size.replace(needed);
        if out.is_null() || room < needed {
            return Err(NtStatus::BUFFER_TOO_SMALL);
        }
        // SAFETY: There is room for `size` bytes, which are enough.
        unsafe { out.write_unaligned(info(adapter.limits())) };
        Ok(())
    }

    create_later create_cq(
        adapter,
        depth: u32,
        function: bindings::ndk_fn_cq_notification,
        context: *mut c_void,
        affinity: *const bindings::cpumask;
        done
    ) -> Cq {
        let user = status_user(Callback { function, context })?;
        // SAFETY: `affinity` is a mask, or null.
        let cpu = unsafe { bindings::ndk_cpumask_first(affinity) };
        adapter.create_cq(depth, Some(cpu), user, done)
    }

    create create_pd(adapter) -> Pd {
        adapter.create_pd()
    }

    create_later create_shared_endpoint(
        adapter,
        address: *const bindings::sockaddr,
        length: u32;
        done
    ) -> SharedEndpoint {
        // SAFETY: `address` is null or has `length` bytes.
        let at = unsafe { read_address(address, length)? };
        adapter.create_shared_endpoint(at, done)
    }

    create create_connector(adapter) -> Connector {
        adapter.create_connector()
    }

    create create_listener(
        adapter,
        function: bindings::ndk_fn_connect_event,
        context: *mut c_void
    ) -> Listener {
        NtStatus::INVALID_PARAMETER.when(function.is_none())?;
        adapter.create_listener(super::connection::connect_user(Callback { function, context })?)
    }
}

/// The completion queues for a new queue pair.
///
/// # Safety
///
/// Each is null or a queue of the consumer's.
unsafe fn queues(
    receive: *mut bindings::ndk_cq,
    initiator: *mut bindings::ndk_cq,
) -> Result<(Ref<Cq>, Ref<Cq>), NtStatus> {
    // SAFETY: The caller says that each is null or a queue of the consumer's.
    let (receive, initiator) = unsafe { (get::<Cq>(receive), get::<Cq>(initiator)) };
    receive.zip(initiator).ok_or(NO_OBJECT)
}

face! {
    Pd: ndk_pd, ndk_pd_dispatch, NDK_OBJECT_TYPE_PD, [close: close::<Pd>]

    create create_mr(pd, fast_register: bool) -> Mr {
        pd.create_mr(fast_register)
    }

    create_later create_mw(pd; done) -> Mw {
        pd.create_mw(done)
    }

    create_later create_srq(
        pd,
        depth: u32,
        sges: u32,
        threshold: u32,
        function: bindings::ndk_fn_srq_notification,
        context: *mut c_void,
        _affinity: *const bindings::cpumask;
        done
    ) -> Srq {
        let user = function.map(|_| status_user(Callback { function, context }));
        pd.create_srq(SrqSizes { depth, sges, threshold }, user.transpose()?, done)
    }

    create_later create_qp(
        pd,
        receive_cq: *mut bindings::ndk_cq,
        initiator_cq: *mut bindings::ndk_cq,
        qp_context: *mut c_void,
        receives: u32,
        requests: u32,
        receive_sges: u32,
        request_sges: u32,
        inline: u32;
        done
    ) -> Qp {
        // SAFETY: Each is null or a queue of the consumer's.
        let cqs = unsafe { queues(receive_cq, initiator_cq)? };
        let caps = QpCaps {
            recv_wr: receives,
            send_wr: requests,
            recv_sge: receive_sges,
            send_sge: request_sges,
            inline_data: inline,
            ..QpCaps::NONE
        };
        pd.create_qp((&cqs.0, &cqs.1), None, qp_context.addr(), caps, done)
    }

    create_later create_qp_with_srq(
        pd,
        receive_cq: *mut bindings::ndk_cq,
        initiator_cq: *mut bindings::ndk_cq,
        srq: *mut bindings::ndk_srq,
        qp_context: *mut c_void,
        requests: u32,
        request_sges: u32,
        inline: u32;
        done
    ) -> Qp {
        // SAFETY: Each is null or a queue of the consumer's.
        let (cqs, srq) = unsafe { (queues(receive_cq, initiator_cq)?, get::<Srq>(srq)) };
        let caps = QpCaps {
            send_wr: requests,
            send_sge: request_sges,
            inline_data: inline,
            ..QpCaps::NONE
        };
        let srq = srq.ok_or(NO_OBJECT)?;
        pd.create_qp((&cqs.0, &cqs.1), Some(&srq), qp_context.addr(), caps, done)
    }

    call get_privileged_memory_region_token(pd, token: *mut u32) {
        // SAFETY: `token` is null or may be written.
        unsafe { put(token, pd.privileged_token().raw()) };
    }
}
