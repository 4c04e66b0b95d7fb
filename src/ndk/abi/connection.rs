// SPDX-License-Identifier: GPL-2.0

//! Tables of connectors, listeners and shared endpoints.

use super::{
    close,
    get,
    in_out_value,
    output_slice,
    put,
    read_address,
    slice,
    Blank,
    Callback,
    NO_OBJECT, //
};
use crate::{
    bindings,
    engine::transport::ReadLimits,
    ndk::{
        call::done as boxed,
        connector::{
            Connector,
            DisconnectUser,
            Source, //
        },
        endpoint::SharedEndpoint,
        listener::{
            ConnectUser,
            Listener, //
        },
        prelude::*,
        qp::Qp, //
    }, //
};

/// A copy of the consumer's private data; `INVALID_BUFFER_SIZE` above the limit of the adapter.
///
/// # Safety
///
/// `data` is null or has `len` bytes.
unsafe fn private_data(
    connector: &Connector,
    data: *const c_void,
    len: u32,
) -> Result<KVec<u8>, NtStatus> {
    // SAFETY: The caller says that `data` is null or has `len` bytes; they are copied below and not
    // used after this call.
    let bytes = unsafe { slice(data.cast::<u8>(), len)? };
    connector.check_data(bytes)?;
    let mut copy = KVec::new();
    copy.extend_from_slice(bytes, GFP_ATOMIC)?;
    Ok(copy)
}

/// The callback of a disconnect, which calls `notify`; `None` without a function.
fn disconnect_user<F: Send + 'static>(
    function: Option<F>,
    context: *mut c_void,
    notify: impl FnOnce(&Callback<Option<F>>, u32) + Send + 'static,
) -> Result<Option<DisconnectUser>, NtStatus> {
    if function.is_none() {
        return Ok(None);
    }
    let callback = Callback { function, context };
    Ok(Some(boxed(GFP_ATOMIC, move |reason| {
        notify(&callback, reason)
    })?))
}

face! {
    Connector: ndk_connector, ndk_connector_dispatch, NDK_OBJECT_TYPE_CONNECTOR,
    [close: close::<Connector>]

    request connect(
        connector,
        qp: *mut bindings::ndk_qp,
        source: *const bindings::sockaddr,
        source_length: u32,
        destination: *const bindings::sockaddr,
        destination_length: u32,
        inbound: u32,
        outbound: u32,
        data: *const c_void,
        data_length: u32;
        done
    ) {
        // SAFETY: `qp` is null or a queue pair of the consumer's.
        let qp = unsafe { get::<Qp>(qp) }.ok_or(NO_OBJECT)?;
        // SAFETY: `source` is null or has `source_length` bytes.
        let from = Source::Address(unsafe { read_address(source, source_length)? });
        // SAFETY: `destination` is null or has `destination_length` bytes.
        let to = unsafe { read_address(destination, destination_length)? };
        // SAFETY: `data` is null or has `data_length` bytes.
        let data = unsafe { private_data(connector, data, data_length)? };
        connector.connect(&qp, (from, to), ReadLimits { inbound, outbound }, data, done()?)
    }

    request connect_with_shared_endpoint(
        connector,
        qp: *mut bindings::ndk_qp,
        endpoint: *mut bindings::ndk_shared_endpoint,
        destination: *const bindings::sockaddr,
        destination_length: u32,
        inbound: u32,
        outbound: u32,
        data: *const c_void,
        data_length: u32;
        done
    ) {
        // SAFETY: Each is null or an object of the consumer's.
        let (qp, endpoint) = unsafe { (get::<Qp>(qp), get::<SharedEndpoint>(endpoint)) };
        let (qp, endpoint) = qp.zip(endpoint).ok_or(NO_OBJECT)?;
        let from = Source::shared(&endpoint);
        // SAFETY: `destination` is null or has `destination_length` bytes.
        let to = unsafe { read_address(destination, destination_length)? };
        // SAFETY: `data` is null or has `data_length` bytes.
        let data = unsafe { private_data(connector, data, data_length)? };
        connector.connect(&qp, (from, to), ReadLimits { inbound, outbound }, data, done()?)
    }

    request complete_connect(
        connector,
        event: bindings::ndk_fn_disconnect_event,
        context: *mut c_void;
        done
    ) {
        let user = disconnect_user(event, context, |user, _reason| user.call())?;
        connector.complete_connect(user, done()?)
    }

    request complete_connect_ex(
        connector,
        event: bindings::ndk_fn_disconnect_event_ex,
        context: *mut c_void;
        done
    ) {
        let user = disconnect_user(event, context, Callback::call_with)?;
        connector.complete_connect(user, done()?)
    }

    request accept(
        connector,
        qp: *mut bindings::ndk_qp,
        inbound: u32,
        outbound: u32,
        data: *const c_void,
        data_length: u32,
        event: bindings::ndk_fn_disconnect_event,
        context: *mut c_void;
        done
    ) {
        // SAFETY: `qp` is null or a queue pair of the consumer's.
        let qp = unsafe { get::<Qp>(qp) }.ok_or(NO_OBJECT)?;
        // SAFETY: `data` is null or has `data_length` bytes.
        let data = unsafe { private_data(connector, data, data_length)? };
        let user = disconnect_user(event, context, |user, _reason| user.call())?;
        connector.accept(&qp, ReadLimits { inbound, outbound }, data, user, done()?)
    }

    request accept_ex(
        connector,
        qp: *mut bindings::ndk_qp,
        inbound: u32,
        outbound: u32,
        data: *const c_void,
        data_length: u32,
        event: bindings::ndk_fn_disconnect_event_ex,
        context: *mut c_void;
        done
    ) {
        // SAFETY: `qp` is null or a queue pair of the consumer's.
        let qp = unsafe { get::<Qp>(qp) }.ok_or(NO_OBJECT)?;
        // SAFETY: `data` is null or has `data_length` bytes.
        let data = unsafe { private_data(connector, data, data_length)? };
        let user = disconnect_user(event, context, Callback::call_with)?;
        connector.accept(&qp, ReadLimits { inbound, outbound }, data, user, done()?)
    }

    call reject(connector, data: *const c_void, data_length: u32) -> i32 {
        // SAFETY: `data` is null or has `data_length` bytes.
        connector.reject(unsafe { slice(data.cast::<u8>(), data_length)? })
    }

    call get_connection_data(
        connector,
        inbound: *mut u32,
        outbound: *mut u32,
        data: *mut c_void,
        data_length: *mut u32
    ) -> i32 {
        // SAFETY: `data_length` is null or may be changed.
        let length = unsafe { in_out_value(data_length) };
        // There is room, but no place for the needed size.
        NtStatus::INVALID_PARAMETER.when(length.is_none() && !data.is_null())?;
        let bytes = length.as_ref().map_or(0, |length| length.get());
        // SAFETY: `data` is null or has `bytes` bytes.
        let out = unsafe { output_slice(data.cast::<u8>(), bytes)? };
        let got = connector.connection_data(out)?;
        // SAFETY: Each is null or may be written.
        unsafe {
            put(inbound, got.limits.inbound);
            put(outbound, got.limits.outbound);
        }
        if let Some(length) = length {
            length.set(connector.private_data_size());
        }
        // CAST: widening.
        // A buffer of no bytes is too short as well; a null pointer asks for the size alone.
        NtStatus::BUFFER_TOO_SMALL.unless(data.is_null() || got.len <= bytes as usize)
    }

    address get_local_address(connector) {
        connector.local_address()?
    }

    address get_peer_address(connector) {
        connector.peer_address()?
    }

    request disconnect(connector; done) {
        connector.disconnect(done()?)
    }
}

/// Gives each connector to a consumer in C. Without memory for its handle the connector is closed,
/// which rejects the request of its peer.
pub(super) fn connect_user(
    callback: Callback<bindings::ndk_fn_connect_event>,
) -> Result<ConnectUser, NtStatus> {
    let user = move |connector: Ref<Connector>| match Blank::<Connector>::new() {
        Ok(blank) => callback.call_with(blank.fill(connector)),
        Err(_) => connector.close_unseen(),
    };
    Ok(KBox::new(user, GFP_ATOMIC)?)
}

face! {
    Listener: ndk_listener, ndk_listener_dispatch, NDK_OBJECT_TYPE_LISTENER,
    [close: close::<Listener>]

    request listen(listener, address: *const bindings::sockaddr, length: u32; done) {
        // SAFETY: `address` is null or has `length` bytes.
        let at = unsafe { read_address(address, length)? };
        listener.listen(at, done()?)
    }

    address get_local_address(listener) {
        listener.address()?
    }

    call control_connect_events(listener, pause: bool) {
        listener.pause(pause);
    }
}

face! {
    SharedEndpoint: ndk_shared_endpoint, ndk_shared_endpoint_dispatch,
    NDK_OBJECT_TYPE_SHARED_ENDPOINT, [close: close::<SharedEndpoint>]

    address get_local_address(endpoint) {
        endpoint.address()
    }
}
