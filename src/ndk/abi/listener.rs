// SPDX-License-Identifier: GPL-2.0

//! Tables of listeners and shared endpoints.

use core::ffi::c_void;

use kernel::prelude::*;

use super::{
    close,
    get,
    query_extension,
    raw,
    read_address,
    request_done,
    write_address,
    Blank,
    Callback,
    Face,
    NO_OBJECT, //
};
use crate::{
    bindings,
    ndk::{
        connector::Connector,
        endpoint::SharedEndpoint,
        life::Ref,
        listener::{
            ConnectUser,
            Listener, //
        },
        status::NtStatus, //
    }, //
};

static LISTENER: bindings::ndk_listener_dispatch = bindings::ndk_listener_dispatch {
    close: Some(close::<Listener>),
    query_extension: Some(query_extension),
    listen: Some(listen),
    get_local_address: Some(get_listener_address),
    control_connect_events: Some(control_connect_events),
};

// SAFETY: The table of listeners.
unsafe impl Face for Listener {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_LISTENER;
    const DISPATCH: *const c_void = (&raw const LISTENER).cast();
}

/// Gives each connector to a consumer in C. One for which there is no memory is closed, which
/// turns its peer away.
pub(super) fn connect_user(
    callback: Callback<bindings::ndk_fn_connect_event>,
) -> Result<ConnectUser, NtStatus> {
    let user = move |connector: Ref<Connector>| {
        let callback = &callback;
        let (Some(function), Ok(blank)) = (callback.function, Blank::<Connector>::new()) else {
            connector.close_unseen();
            return;
        };
        // SAFETY: By the contract.
        unsafe { function(callback.context, blank.fill(connector)) };
    };
    let user = KBox::new(user, GFP_ATOMIC);
    Ok(user.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?)
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn listen(
    listener: *mut bindings::ndk_listener,
    address: *const bindings::sockaddr,
    length: u32,
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: By the contract.
    let (listener, at) = unsafe { (get::<Listener, _>(listener), read_address(address, length)) };
    raw(listener
        .ok_or(NO_OBJECT)
        .and_then(|listener| listener.listen(at?, request_done(completion, context)?)))
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn get_listener_address(
    listener: *mut bindings::ndk_listener,
    address: *mut bindings::sockaddr,
    length: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        let listener = get::<Listener, _>(listener).ok_or(NO_OBJECT);
        write_address(listener.and_then(|l| l.address()), address, length)
    }
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn control_connect_events(listener: *mut bindings::ndk_listener, pause: bool) {
    // SAFETY: By the contract.
    if let Some(listener) = unsafe { get::<Listener, _>(listener) } {
        listener.pause(pause);
    }
}

static SHARED_ENDPOINT: bindings::ndk_shared_endpoint_dispatch =
    bindings::ndk_shared_endpoint_dispatch {
        close: Some(close::<SharedEndpoint>),
        query_extension: Some(query_extension),
        get_local_address: Some(get_endpoint_address),
    };

// SAFETY: The table of shared endpoints.
unsafe impl Face for SharedEndpoint {
    const TYPE: u32 = bindings::NDK_OBJECT_TYPE_SHARED_ENDPOINT;
    const DISPATCH: *const c_void = (&raw const SHARED_ENDPOINT).cast();
}

/// # Safety
///
/// By the contract.
unsafe extern "C" fn get_endpoint_address(
    endpoint: *mut bindings::ndk_shared_endpoint,
    address: *mut bindings::sockaddr,
    length: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        let endpoint = get::<SharedEndpoint, _>(endpoint).ok_or(NO_OBJECT);
        write_address(endpoint.map(|e| e.address()), address, length)
    }
}
