// SPDX-License-Identifier: GPL-2.0

//! Tables of listeners and shared endpoints.

use kernel::prelude::*;

use super::{
    close,
    read_address,
    write_address,
    Blank,
    Callback, //
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

/// Gives each connector to a consumer in C. One for which there is no memory is closed, which
/// turns its peer away.
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

    call get_local_address(
        listener,
        address: *mut bindings::sockaddr,
        length: *mut u32
    ) -> i32 {
        // SAFETY: `length` may be changed, and `address` has so many bytes, or either is null.
        unsafe { write_address(listener.address()?, address, length) }
    }

    call control_connect_events(listener, pause: bool) {
        listener.pause(pause);
    }
}

face! {
    SharedEndpoint: ndk_shared_endpoint, ndk_shared_endpoint_dispatch,
    NDK_OBJECT_TYPE_SHARED_ENDPOINT, [close: close::<SharedEndpoint>]

    call get_local_address(
        endpoint,
        address: *mut bindings::sockaddr,
        length: *mut u32
    ) -> i32 {
        // SAFETY: `length` may be changed, and `address` has so many bytes, or either is null.
        unsafe { write_address(endpoint.address(), address, length) }
    }
}
