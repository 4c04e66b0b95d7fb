// SPDX-License-Identifier: GPL-2.0

//! [`NameClient`]: follows the names that the core gives to the provider's devices.
//!
//! A device is registered under a name, may be renamed, and may get another name with another
//! network namespace; two devices of different namespaces may have the same name. The core notifies
//! its clients of names, so the provider is a client: under the core's lock of all names no device
//! gets a name before the provider knows that another device has lost it.
//!
//! Tests: `../selftests/sample.sh`.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use kernel::{
    error::to_result,
    types::Opaque, //
};

use super::{
    device::{
        self,
        DeviceOperations, //
    },
    prelude::*, //
};

/// The provider as a client of its own devices.
///
/// # Invariants
///
/// The client is registered from the end of initialisation until drop.
#[pin_data(PinnedDrop)]
pub(super) struct NameClient<T: Operations> {
    #[pin]
    client: Opaque<bindings::ib_client>,
    _provider: PhantomData<T>,
}

// SAFETY: The client is the core's to lock.
unsafe impl<T: Operations> Send for NameClient<T> {}
// SAFETY: A shared client has no operations.
unsafe impl<T: Operations> Sync for NameClient<T> {}

impl<T: Operations> NameClient<T> {
    /// Registers the client, before the provider has devices. Process context.
    pub(super) fn register() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // INVARIANT: Registered when this field is initialised.
            client <- Opaque::try_ffi_init(|slot: *mut bindings::ib_client| {
                let client = bindings::ib_client {
                    name: c"ndk".as_char_ptr(),
                    add: Some(added::<T>),
                    remove: Some(removed::<T>),
                    rename: Some(renamed::<T>),
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is writable.
                unsafe { slot.write(client) };
                // SAFETY: The client stays where it is until it is unregistered.
                to_result(unsafe { bindings::ib_register_client(slot) })
            }),
            _provider: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for NameClient<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the invariant the client is registered; afterwards the core does not use it.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
    }
}

/// Passes the present name of the device on. Returns false for a device of another provider.
///
/// # Safety
///
/// `ib` is registered during the call, and the core's lock of all names is held.
unsafe fn report_name<T: Operations>(ib: *mut bindings::ib_device) -> bool {
    // SAFETY: The caller says that the device is registered during the call.
    let device = unsafe { device::own::<T>(ib) };
    let is_own = device.is_some();
    if let Some(device) = device {
        // SAFETY: The device is live, and the lock keeps the name, which ends with a zero.
        let name = unsafe { CStr::from_char_ptr((&raw const (*ib).name).cast()) };
        device.named(Some(name));
    }
    is_own
}

/// C: `ib_client.add`. Refuses devices of other providers.
///
/// # Safety
///
/// `ib` is registered during the call, and the core's lock of all names is held.
unsafe extern "C" fn added<T: Operations>(ib: *mut bindings::ib_device) -> c_int {
    // SAFETY: The caller says the same.
    match unsafe { report_name::<T>(ib) } {
        true => 0,
        false => EOPNOTSUPP.to_errno(),
    }
}

/// C: `ib_client.rename`.
///
/// # Safety
///
/// As [`added`].
unsafe extern "C" fn renamed<T: Operations>(ib: *mut bindings::ib_device, _data: *mut c_void) {
    // SAFETY: The caller says the same.
    unsafe { report_name::<T>(ib) };
}

/// C: `ib_client.remove`: the device goes, or moves to another namespace.
///
/// # Safety
///
/// `ib` is live during the call.
unsafe extern "C" fn removed<T: Operations>(ib: *mut bindings::ib_device, _data: *mut c_void) {
    // SAFETY: The caller says that the device is live during the call.
    if let Some(device) = unsafe { device::own::<T>(ib) } {
        device.named(None);
    }
}
