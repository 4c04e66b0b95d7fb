// SPDX-License-Identifier: GPL-2.0

//! Opening and closing; the table of adapters.

use core::{
    ffi::c_void,
    mem::size_of, //
};

use kernel::prelude::*;

use super::{
    create_later,
    create_now,
    get,
    memory::{
        build_lam,
        release_lam, //
    },
    query_extension,
    read_address,
    Blank,
    Callback,
    Face,
    Handle,
    NO_OBJECT, //
};
use crate::{
    bindings,
    ndk::{
        adapter::{
            open as open_adapter,
            Adapter,
            Context,
            Limits,
            OpenBy,
            Version,
            VERSION, //
        },
        cq::Cq,
        listener::ConnectUser,
        status::NtStatus, //
    },
    sys::global::Global, //
};

/// Set as long as adapters can be opened.
pub(crate) static CONTEXT: Global<Context> = Global::new();

static ADAPTER: bindings::ndk_adapter_dispatch = bindings::ndk_adapter_dispatch {
    query_extension: Some(query_extension),
    query_adapter_info: Some(query_adapter_info),
    create_cq: Some(create_cq),
    create_pd: Some(create_pd),
    create_shared_endpoint: Some(create_shared_endpoint),
    create_connector: Some(create_connector),
    create_listener: Some(create_listener),
    build_lam: Some(build_lam),
    release_lam: Some(release_lam),
};

// SAFETY: The table of adapters.
unsafe impl Face for Adapter {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_ADAPTER;
    const DISPATCH: *const c_void = (&raw const ADAPTER).cast();
}

/// The body of `ndk_open_adapter()`, which pins the module around it.
///
/// # Safety
///
/// By the contract.
#[no_mangle]
pub(crate) unsafe extern "C" fn ndk_face_open(
    params: *const bindings::ndk_open_params,
    out: *mut *mut bindings::ndk_adapter,
) -> i32 {
    let Some(context) = CONTEXT.get() else {
        return NtStatus::ADAPTER_NOT_READY.raw();
    };
    // SAFETY: By the contract.
    let opened = unsafe { open(&context, params, out) };
    opened.map_or_else(NtStatus::raw, |()| NtStatus::SUCCESS.raw())
}

/// Opens an adapter of `context`.
///
/// # Safety
///
/// By the contract.
pub(crate) unsafe fn open(
    context: &Context,
    params: *const bindings::ndk_open_params,
    out: *mut *mut bindings::ndk_adapter,
) -> Result<(), NtStatus> {
    // SAFETY: By the contract.
    let params = unsafe { params.as_ref() }.ok_or(NtStatus::INVALID_PARAMETER)?;
    if out.is_null() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let blank = Blank::<Adapter>::new()?;
    // SAFETY: By the contract.
    let which = unsafe { which(params)? };
    let version = Version {
        major: params.version.major,
        minor: params.version.minor,
    };
    let adapter = open_adapter(context, &which, version)?;
    // SAFETY: By the contract, and not null.
    unsafe { *out = blank.fill(adapter) };
    Ok(())
}

/// # Safety
///
/// By the contract; the result is not used beyond the call.
unsafe fn which<'a>(params: &bindings::ndk_open_params) -> Result<OpenBy<'a>, NtStatus> {
    let name = match params.name.is_null() {
        true => None,
        // SAFETY: By the contract it ends with a zero.
        false => Some(unsafe { CStr::from_char_ptr(params.name) }),
    };
    if params.local_address.is_null() {
        return name.map(OpenBy::Name).ok_or(NtStatus::INVALID_PARAMETER);
    }
    // SAFETY: By the contract the address is as long as its family says.
    let at = unsafe {
        let length = bindings::ndk_sockaddr_len(params.local_address);
        read_address(params.local_address, length)?
    };
    // SAFETY: By the contract it is a namespace, or null.
    let net = unsafe { bindings::ndk_net_cookie(params.net) };
    Ok(match name {
        Some(name) => OpenBy::Both(name, net, at.ip()),
        None => OpenBy::Address(net, at.ip()),
    })
}

/// The body of `ndk_close_adapter()`.
///
/// # Safety
///
/// By the contract.
#[no_mangle]
pub(crate) unsafe extern "C" fn ndk_face_close(adapter: *mut bindings::ndk_adapter) {
    // SAFETY: By the contract.
    let Some(entity) = (unsafe { get::<Adapter, _>(adapter) }) else {
        return;
    };
    let entity = entity.clone();
    // SAFETY: `fill` made it; it was not closed, so it is still the consumer's, who gives it back.
    let mut handle = unsafe { KBox::from_raw(adapter.cast::<Handle<Adapter>>()) };
    handle.header.object_type = bindings::NDK_OBJECT_TYPE_UNDEFINED;
    entity.close_and_wait();
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn query_adapter_info(
    adapter: *mut bindings::ndk_adapter,
    out: *mut bindings::ndk_adapter_info,
    size: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    let (adapter, size) = unsafe { (get::<Adapter, _>(adapter), size.as_mut()) };
    let (Some(adapter), Some(size)) = (adapter, size) else {
        return NO_OBJECT.raw();
    };
    // CAST: about a hundred.
    let needed = size_of::<bindings::ndk_adapter_info>() as u32;
    let room = core::mem::replace(size, needed);
    if out.is_null() || room < needed {
        return NtStatus::BUFFER_TOO_SMALL.raw();
    }
    // SAFETY: There is room.
    unsafe { out.write(info(adapter.limits())) };
    NtStatus::SUCCESS.raw()
}

/// Transfers of more bytes than this are better not copied by the consumer.
const LARGE_REQUEST: u32 = 64 << 10;

pub(crate) fn info(limits: &Limits) -> bindings::ndk_adapter_info {
    let flags = [
        (true, bindings::NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED),
        (
            limits.moderation,
            bindings::NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED,
        ),
        (
            limits.read_invalidate,
            bindings::NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED,
        ),
        (
            limits.cq_resize,
            bindings::NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED,
        ),
        (
            true,
            bindings::NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED,
        ),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set);
    bindings::ndk_adapter_info {
        version: bindings::ndk_version {
            major: VERSION.major,
            minor: VERSION.minor,
        },
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
        adapter_flags: flags.fold(0, |all, (_, flag)| all | flag),
        rdma_technology: bindings::NDK_RDMA_TECHNOLOGY_IWARP,
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_cq(
    adapter: *mut bindings::ndk_adapter,
    depth: u32,
    notification: bindings::ndk_fn_cq_notification,
    cq_context: *mut c_void,
    affinity: *const bindings::cpumask,
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut bindings::ndk_cq,
) -> i32 {
    // SAFETY: By the contract.
    let Some(adapter) = (unsafe { get::<Adapter, _>(adapter) }) else {
        return NO_OBJECT.raw();
    };
    let callback = Callback {
        function: notification,
        context: cq_context,
    };
    let user = move |status: NtStatus| {
        let callback = &callback;
        if let Some(function) = callback.function {
            // SAFETY: By the contract.
            unsafe { function(callback.context, status.raw()) };
        }
    };
    // SAFETY: By the contract it is a mask, or null.
    let cpu = unsafe { bindings::ndk_cpumask_first(affinity) };
    // SAFETY: By the contract.
    unsafe {
        create_later::<Cq, _>(completion, context, out, |done| {
            let user = KBox::new(user, GFP_ATOMIC);
            let user = user.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
            adapter.create_cq(depth, Some(cpu), user, done)
        })
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_pd(
    adapter: *mut bindings::ndk_adapter,
    _completion: bindings::ndk_fn_create_completion,
    _context: *mut c_void,
    out: *mut *mut bindings::ndk_pd,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        match get::<Adapter, _>(adapter) {
            Some(adapter) => create_now(out, || adapter.create_pd()),
            None => NO_OBJECT.raw(),
        }
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_shared_endpoint(
    adapter: *mut bindings::ndk_adapter,
    address: *const bindings::sockaddr,
    length: u32,
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut bindings::ndk_shared_endpoint,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        let at = read_address(address, length);
        match get::<Adapter, _>(adapter) {
            Some(adapter) => create_later(completion, context, out, |done| {
                adapter.create_shared_endpoint(at?, done)
            }),
            None => NO_OBJECT.raw(),
        }
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_connector(
    adapter: *mut bindings::ndk_adapter,
    _completion: bindings::ndk_fn_create_completion,
    _context: *mut c_void,
    out: *mut *mut bindings::ndk_connector,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        match get::<Adapter, _>(adapter) {
            Some(adapter) => create_now(out, || adapter.create_connector()),
            None => NO_OBJECT.raw(),
        }
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn create_listener(
    adapter: *mut bindings::ndk_adapter,
    connect_event: bindings::ndk_fn_connect_event,
    event_context: *mut c_void,
    _completion: bindings::ndk_fn_create_completion,
    _context: *mut c_void,
    out: *mut *mut bindings::ndk_listener,
) -> i32 {
    // SAFETY: By the contract.
    let Some(adapter) = (unsafe { get::<Adapter, _>(adapter) }) else {
        return NO_OBJECT.raw();
    };
    if connect_event.is_none() {
        return NtStatus::INVALID_PARAMETER.raw();
    }
    let callback = Callback {
        function: connect_event,
        context: event_context,
    };
    // SAFETY: By the contract.
    unsafe {
        create_now(out, || {
            let user: ConnectUser = super::listener::connect_user(callback)?;
            adapter.create_listener(user)
        })
    }
}
