// SPDX-License-Identifier: GPL-2.0

//! The table of connectors.

use core::{
    ffi::c_void,
    net::SocketAddr, //
};

use kernel::prelude::*;

use super::{
    close,
    get,
    query_extension,
    raw,
    raw_result,
    read_address,
    request_done,
    slice,
    write_address,
    Callback,
    Face,
    NO_OBJECT, //
};
use crate::{
    bindings,
    engine::transport::ReadLimits,
    ndk::{
        call::{
            done,
            Done, //
        },
        connector::{
            Connector,
            DisconnectUser,
            Source, //
        },
        endpoint::SharedEndpoint,
        qp::Qp,
        status::{
            Answer,
            NtStatus, //
        }, //
    }, //
};

static CONNECTOR: bindings::ndk_connector_dispatch = bindings::ndk_connector_dispatch {
    close: Some(close::<Connector>),
    query_extension: Some(query_extension),
    connect: Some(connect),
    connect_with_shared_endpoint: Some(connect_with_shared_endpoint),
    complete_connect: Some(complete_connect),
    accept: Some(accept),
    reject: Some(reject),
    get_connection_data: Some(get_connection_data),
    get_local_address: Some(get_local_address),
    get_peer_address: Some(get_peer_address),
    disconnect: Some(disconnect),
    complete_connect_ex: Some(complete_connect_ex),
    accept_ex: Some(accept_ex),
};

// SAFETY: The table of connectors.
unsafe impl Face for Connector {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_CONNECTOR;
    const DISPATCH: *const c_void = (&raw const CONNECTOR).cast();
}

/// The consumer's private data, copied; `INVALID_BUFFER_SIZE` for more than there can be.
///
/// # Safety
///
/// By the contract `data` has `len` bytes.
unsafe fn private_data(
    connector: &Connector,
    data: *const c_void,
    len: u32,
) -> Result<KVec<u8>, NtStatus> {
    // SAFETY: By the contract.
    let bytes = unsafe { slice(data.cast::<u8>(), len)? };
    connector.check_data(bytes)?;
    let mut copy = KVec::new();
    let copied = copy.extend_from_slice(bytes, GFP_ATOMIC);
    copied.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    Ok(copy)
}

const fn read_limits(inbound: u32, outbound: u32) -> ReadLimits {
    ReadLimits { inbound, outbound }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn connect(
    connector: *mut bindings::ndk_connector,
    qp: *mut bindings::ndk_qp,
    source: *const bindings::sockaddr,
    source_length: u32,
    destination: *const bindings::sockaddr,
    destination_length: u32,
    inbound: u32,
    outbound: u32,
    data: *const c_void,
    data_length: u32,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    raw((|| unsafe {
        let connector = get::<Connector, _>(connector).ok_or(NO_OBJECT)?;
        let qp = get::<Qp, _>(qp).ok_or(NO_OBJECT)?;
        let from = Source::Address(read_address(source, source_length)?);
        let to = read_address(destination, destination_length)?;
        let data = private_data(connector, data, data_length)?;
        let done = request_done(completion, context)?;
        connector.connect(qp, (from, to), read_limits(inbound, outbound), data, done)
    })())
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn connect_with_shared_endpoint(
    connector: *mut bindings::ndk_connector,
    qp: *mut bindings::ndk_qp,
    endpoint: *mut bindings::ndk_shared_endpoint,
    destination: *const bindings::sockaddr,
    destination_length: u32,
    inbound: u32,
    outbound: u32,
    data: *const c_void,
    data_length: u32,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    raw((|| unsafe {
        let connector = get::<Connector, _>(connector).ok_or(NO_OBJECT)?;
        let qp = get::<Qp, _>(qp).ok_or(NO_OBJECT)?;
        let endpoint = get::<SharedEndpoint, _>(endpoint).ok_or(NO_OBJECT)?;
        let from = Source::shared(endpoint);
        let to = read_address(destination, destination_length)?;
        let data = private_data(connector, data, data_length)?;
        let done = request_done(completion, context)?;
        connector.connect(qp, (from, to), read_limits(inbound, outbound), data, done)
    })())
}

/// Who is notified of a disconnect; with no function nobody is.
fn disconnect_user(
    event: bindings::ndk_fn_disconnect_event,
    context: *mut c_void,
) -> Result<Option<DisconnectUser>, NtStatus> {
    if event.is_none() {
        return Ok(None);
    }
    let callback = Callback {
        function: event,
        context,
    };
    let user: Done<u32> = done(GFP_ATOMIC, move |_reason: u32| {
        let callback = callback;
        if let Some(function) = callback.function {
            // SAFETY: By the contract.
            unsafe { function(callback.context) };
        }
    })?;
    Ok(Some(user))
}

/// The same for one who wants to hear the reason.
fn disconnect_user_ex(
    event: bindings::ndk_fn_disconnect_event_ex,
    context: *mut c_void,
) -> Result<Option<DisconnectUser>, NtStatus> {
    if event.is_none() {
        return Ok(None);
    }
    let callback = Callback {
        function: event,
        context,
    };
    let user: Done<u32> = done(GFP_ATOMIC, move |reason: u32| {
        let callback = callback;
        if let Some(function) = callback.function {
            // SAFETY: By the contract.
            unsafe { function(callback.context, reason) };
        }
    })?;
    Ok(Some(user))
}

/// # Safety
///
/// By the contract.
unsafe fn complete(
    connector: *mut bindings::ndk_connector,
    user: Result<Option<DisconnectUser>, NtStatus>,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    let connector = unsafe { get::<Connector, _>(connector) };
    raw(connector.ok_or(NO_OBJECT).and_then(|connector| {
        connector.complete_connect(user?, request_done(completion, context)?)
    }))
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn complete_connect(
    connector: *mut bindings::ndk_connector,
    event: bindings::ndk_fn_disconnect_event,
    event_context: *mut c_void,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    let user = disconnect_user(event, event_context);
    // SAFETY: By the contract.
    unsafe { complete(connector, user, completion, context) }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn complete_connect_ex(
    connector: *mut bindings::ndk_connector,
    event: bindings::ndk_fn_disconnect_event_ex,
    event_context: *mut c_void,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    let user = disconnect_user_ex(event, event_context);
    // SAFETY: By the contract.
    unsafe { complete(connector, user, completion, context) }
}

/// Who accepts with what.
struct Acceptance {
    qp: *mut bindings::ndk_qp,
    limits: ReadLimits,
    data: *const c_void,
    data_length: u32,
}

/// # Safety
///
/// By the contract.
unsafe fn accept_with(
    connector: *mut bindings::ndk_connector,
    with: &Acceptance,
    user: Result<Option<DisconnectUser>, NtStatus>,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    raw((|| -> Answer {
        // SAFETY: By the contract.
        let (connector, qp) = unsafe { (get::<Connector, _>(connector), get::<Qp, _>(with.qp)) };
        let (connector, qp) = connector.zip(qp).ok_or(NO_OBJECT)?;
        // SAFETY: By the contract.
        let data = unsafe { private_data(connector, with.data, with.data_length)? };
        connector.accept(
            qp,
            with.limits,
            data,
            user?,
            request_done(completion, context)?,
        )
    })())
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn accept(
    connector: *mut bindings::ndk_connector,
    qp: *mut bindings::ndk_qp,
    inbound: u32,
    outbound: u32,
    data: *const c_void,
    data_length: u32,
    event: bindings::ndk_fn_disconnect_event,
    event_context: *mut c_void,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    let with = Acceptance {
        qp,
        limits: read_limits(inbound, outbound),
        data,
        data_length,
    };
    let user = disconnect_user(event, event_context);
    // SAFETY: By the contract.
    unsafe { accept_with(connector, &with, user, completion, context) }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn accept_ex(
    connector: *mut bindings::ndk_connector,
    qp: *mut bindings::ndk_qp,
    inbound: u32,
    outbound: u32,
    data: *const c_void,
    data_length: u32,
    event: bindings::ndk_fn_disconnect_event_ex,
    event_context: *mut c_void,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    let with = Acceptance {
        qp,
        limits: read_limits(inbound, outbound),
        data,
        data_length,
    };
    let user = disconnect_user_ex(event, event_context);
    // SAFETY: By the contract.
    unsafe { accept_with(connector, &with, user, completion, context) }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn reject(
    connector: *mut bindings::ndk_connector,
    data: *const c_void,
    data_length: u32,
) -> i32 {
    // SAFETY: By the contract.
    let (connector, data) = unsafe {
        (
            get::<Connector, _>(connector),
            slice(data.cast::<u8>(), data_length),
        )
    };
    raw_result(
        connector
            .ok_or(NO_OBJECT)
            .and_then(|connector| connector.reject(data?)),
    )
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn get_connection_data(
    connector: *mut bindings::ndk_connector,
    inbound: *mut u32,
    outbound: *mut u32,
    data: *mut c_void,
    data_length: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    let (connector, inbound, outbound, length) = unsafe {
        (
            get::<Connector, _>(connector),
            inbound.as_mut(),
            outbound.as_mut(),
            data_length.as_mut(),
        )
    };
    let Some(connector) = connector else {
        return NO_OBJECT.raw();
    };
    let room = length.as_ref().map_or(0, |length| **length);
    let out: &mut [u8] = match (data.is_null(), room) {
        (_, 0) => &mut [],
        (true, _) => return NtStatus::INVALID_PARAMETER.raw(),
        // CAST: widening.
        // SAFETY: By the contract there are so many bytes.
        (false, room) => unsafe {
            core::slice::from_raw_parts_mut(data.cast::<u8>(), room as usize)
        },
    };
    let got = match connector.connection_data(out) {
        Ok(got) => got,
        Err(status) => return status.raw(),
    };
    if let Some(inbound) = inbound {
        *inbound = got.limits.inbound;
    }
    if let Some(outbound) = outbound {
        *outbound = got.limits.outbound;
    }
    if let Some(length) = length {
        *length = connector.private_data_size();
    }
    // CAST: widening.
    match room == 0 || got.len <= room as usize {
        true => NtStatus::SUCCESS.raw(),
        false => NtStatus::BUFFER_TOO_SMALL.raw(),
    }
}

/// # Safety
///
/// By the contract.
unsafe fn get_address(
    connector: *mut bindings::ndk_connector,
    which: impl FnOnce(&Connector) -> Result<SocketAddr, NtStatus>,
    address: *mut bindings::sockaddr,
    length: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        let connector = get::<Connector, _>(connector).ok_or(NO_OBJECT);
        write_address(connector.and_then(|c| which(c)), address, length)
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn get_local_address(
    connector: *mut bindings::ndk_connector,
    address: *mut bindings::sockaddr,
    length: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    unsafe { get_address(connector, Connector::local_address, address, length) }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn get_peer_address(
    connector: *mut bindings::ndk_connector,
    address: *mut bindings::sockaddr,
    length: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    unsafe { get_address(connector, Connector::peer_address, address, length) }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn disconnect(
    connector: *mut bindings::ndk_connector,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    let connector = unsafe { get::<Connector, _>(connector) };
    raw(connector
        .ok_or(NO_OBJECT)
        .and_then(|connector| connector.disconnect(request_done(completion, context)?)))
}
