// SPDX-License-Identifier: GPL-2.0

//! Devices: made over a network device, registered with ib_core, and taken
//! down with either.
//!
//! ```text
//!   create() -> registered -> unregistered -> dealloc_driver() -> freed by the core
//!        \--- registration failed ------------/
//! ```

use core::{
    mem::{
        align_of,
        offset_of,
        size_of,
        MaybeUninit, //
    },
    ops::Deref,
    ptr, //
};

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::{
    identity,
    table::OperationsVTable,
    upcall::event,
    Operations, //
};
use crate::{
    bindings,
    sys::netdev::NetDev, //
};

/// The only port of a device.
pub(super) const PORT: u32 = 1;

/// What this layer keeps with a device, and the provider's payload.
struct State<T: Operations> {
    eui64: [u8; 8],
    payload: T::Device,
}

/// A device with the provider's payload, to which it dereferences.
///
/// # Invariants
///
/// Wherever a reference to a `Device` exists, `state` is initialised, and the core neither frees
/// nor moves the allocation.
#[repr(C)]
pub(crate) struct Device<T: Operations> {
    ib: Opaque<bindings::ib_device>,
    state: MaybeUninit<State<T>>,
}

// SAFETY: The C part is the core's to lock; the state is `Send`.
unsafe impl<T: Operations> Send for Device<T> {}
// SAFETY: The C part is the core's to lock; the state is `Sync`.
unsafe impl<T: Operations> Sync for Device<T> {}

impl<T: Operations> Device<T> {
    /// The C device.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_device {
        self.ib.get()
    }

    /// Views the C device as the whole.
    ///
    /// # Safety
    ///
    /// `ib` is the first field of a `Device<T>` whose state is initialised and stays so during
    /// `'a`.
    pub(super) unsafe fn from_raw<'a>(ib: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: The caller says so; `ib` is at offset zero, as `allocate` asserts.
        unsafe { &*ib.cast() }
    }

    fn state(&self) -> &State<T> {
        // SAFETY: By the type invariant it is initialised.
        unsafe { self.state.assume_init_ref() }
    }

    /// The network device; `None` when it is gone. Process context.
    pub(crate) fn netdev(&self) -> Option<NetDev> {
        // SAFETY: The device is live.
        let netdev = unsafe { bindings::ib_device_get_netdev(self.as_raw(), PORT) };
        // SAFETY: The function returned null or a reference for the caller.
        unsafe { NetDev::from_held(netdev) }
    }

    /// The node's name for itself, in network order: that of the network device when it was made.
    pub(super) fn guid(&self) -> [u8; 8] {
        self.state().eui64
    }

    /// The address by which the core knows the port.
    pub(super) fn gid(&self) -> [u8; 16] {
        identity::gid(self.guid())
    }

    /// Tells consumers that the port's address changed; they hear of it later. Any context.
    /// C: `IB_EVENT_LID_CHANGE`.
    pub(crate) fn address_changed(&self) {
        let mut event = event(self.as_raw(), bindings::ib_event_type_IB_EVENT_LID_CHANGE);
        event.element.port_num = PORT;
        // SAFETY: The device is live, and the core copies the event.
        unsafe { bindings::ib_dispatch_event(&event) };
    }

    /// Makes a device over `netdev` and registers it as `name`.
    ///
    /// Process context, without the RTNL lock.
    pub(super) fn create(name: &CStr, netdev: &NetDev) -> Result {
        let payload = T::open_device(name, netdev)?;
        let ib = Self::allocate(payload, netdev)?;
        let result = Self::set_up(ib, name, netdev);
        if result.is_err() {
            // SAFETY: The device is not registered; the core calls `dealloc_driver` and frees it.
            unsafe { bindings::ib_dealloc_device(ib) };
        }
        result
    }

    /// Allocates a device and initialises its state and its table.
    ///
    /// It belongs to the network namespace of its network device; where the core shares devices
    /// between namespaces it is seen in all of them.
    fn allocate(payload: T::Device, netdev: &NetDev) -> Result<*mut bindings::ib_device> {
        const {
            assert!(offset_of!(Self, ib) == 0);
            assert!(align_of::<Self>() <= align_of::<u64>());
        }
        // SAFETY: The network device keeps its namespace until the device is registered; a
        // namespace that goes moves its devices to the initial one.
        let ib = unsafe {
            let net = bindings::ndk_netdev_net(netdev.as_raw());
            bindings::_ib_alloc_device(size_of::<Self>(), net)
        };
        if ib.is_null() {
            return Err(ENOMEM);
        }
        let state = State {
            eui64: identity::eui64(netdev),
            payload,
        };
        // SAFETY: The core allocated the size of `Self`, and the state is writable.
        unsafe { (&raw mut (*ib.cast::<Self>()).state).write(MaybeUninit::new(state)) };
        // SAFETY: The device is new and the table is right for it; the core copies the table.
        unsafe { bindings::ib_set_device_ops(ib, &OperationsVTable::<T>::TABLE) };
        Ok(ib)
    }

    fn set_up(ib: *mut bindings::ib_device, name: &CStr, netdev: &NetDev) -> Result {
        // SAFETY: `allocate` initialised the state.
        let device = unsafe { Self::from_raw(ib) };
        let attributes = T::attributes(device);
        // SAFETY: Nobody else knows the device yet.
        let fields = unsafe { &mut *ib };
        // CAST: The enumeration is small.
        fields.node_type = bindings::RDMA_NODE_RNIC as u8;
        fields.node_guid = u64::from_ne_bytes(device.guid());
        fields.phys_port_cnt = PORT;
        // CAST: A number of processors.
        fields.num_comp_vectors = attributes.comp_vectors as i32;
        fields.local_dma_lkey = attributes.local_dma_lkey.unwrap_or(0);
        fields.iw_driver_flags = bindings::iw_flags_IW_F_NO_PORT_MAP;
        fields.iw_ifname.copy_from_slice(&netdev.name());
        fields.name_assign_type = bindings::rdma_nl_name_assign_type_RDMA_NAME_ASSIGN_TYPE_USER;
        copy_text(&mut fields.node_desc, T::NODE_DESC);
        Self::register(ib, name, netdev)
    }

    fn register(ib: *mut bindings::ib_device, name: &CStr, netdev: &NetDev) -> Result {
        // SAFETY: Both devices are live; the core takes a reference of its own to `netdev`.
        to_result(unsafe { bindings::ib_device_set_netdev(ib, netdev.as_raw(), PORT) })?;
        // SAFETY: The device is set up; without a DMA device the core uses virtual addresses.
        to_result(unsafe { bindings::ib_register_device(ib, name.as_char_ptr(), ptr::null_mut()) })
    }

    /// Calls `f` with the device over `netdev`, if this provider has one.
    pub(super) fn with_netdev<R>(netdev: &NetDev, f: impl FnOnce(&Self) -> R) -> Option<R> {
        // SAFETY: The network device is live.
        let ib = unsafe { bindings::ib_device_get_by_netdev(netdev.as_raw(), T::DRIVER_ID) };
        if ib.is_null() {
            return None;
        }
        // SAFETY: Only this provider uses its driver number, so this is a `Device<T>`, and the
        // reference just taken keeps it registered.
        let result = f(unsafe { Self::from_raw(ib) });
        // SAFETY: Gives up that reference.
        unsafe { bindings::ib_device_put(ib) };
        Some(result)
    }

    /// Has the core take the device down in a work item.
    pub(super) fn unregister_later(&self) {
        // SAFETY: The caller's reference keeps the device registered until this is queued.
        unsafe { bindings::ib_unregister_device_queued(self.as_raw()) };
    }
}

impl<T: Operations> Deref for Device<T> {
    type Target = T::Device;

    #[inline]
    fn deref(&self) -> &T::Device {
        &self.state().payload
    }
}

/// Copies `text` into a field that is zeroed, leaving a zero at its end.
pub(super) fn copy_text(field: &mut [u8], text: &CStr) {
    let room = field.len().saturating_sub(1);
    for (to, from) in field.iter_mut().take(room).zip(text.to_bytes()) {
        *to = *from;
    }
}

impl<T: Operations> OperationsVTable<T> {
    /// C: `ib_device_ops.dealloc_driver`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn dealloc_driver(ib: *mut bindings::ib_device) {
        let this = ib.cast::<Device<T>>();
        // SAFETY: `allocate` initialised the state before anything could get here, and the core
        // calls this once, when nothing uses the device.
        unsafe { (*this).state.assume_init_drop() };
    }

    /// C: `ib_device_ops.disassociate_ucontext`: there are no user contexts, so nothing is to be
    /// done. Having the operation lets a device move between network namespaces.
    ///
    /// # Safety
    ///
    /// None; the type is that of the slot.
    pub(super) unsafe extern "C" fn disassociate_ucontext(_: *mut bindings::ib_ucontext) {}
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_device)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_before_the_last_byte() {
        let mut field = [0u8; 4];
        copy_text(&mut field, c"abcdef");
        assert_eq!(&field, b"abc\0");
        let mut field = [0u8; 4];
        copy_text(&mut field, c"ab");
        assert_eq!(&field, b"ab\0\0");
    }
}
