// SPDX-License-Identifier: GPL-2.0

//! Devices: made over a network device, registered with ib_core, and taken
//! down with either.
//!
//! ```text
//!   create() -> registered -> unregistered -> dealloc_driver() -> freed by the core
//!        \--- registration failed ------------/
//! ```

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    error::to_result,
    types::ScopeGuard, //
};

use super::{
    identity,
    prelude::*,
    table::OperationsVTable,
    types::DeviceAttributes,
    upcall::{
        event,
        PortUpcall, //
    },
    user, //
};
use crate::sys::netdev::{
    HeldNet,
    Net,
    NetDev,
    NetDevEvent, //
};

/// The only port of a device.
pub(super) const PORT: u32 = 1;

/// The private data of a device.
pub(crate) struct DevicePrivate {
    eui64: [u8; 8],
    target: Arc<UpcallTarget<bindings::ib_device>>,
}

impl DevicePrivate {
    /// Ends the upcalls. Process context.
    pub(super) fn end(&self) {
        self.target.close();
    }
}

impl IbObject for bindings::ib_device {
    type Private = DevicePrivate;
}

/// A device with the provider's payload.
pub(crate) type Device<T> = Object<bindings::ib_device, <T as Operations>::Device>;

/// The operations of a device.
pub(crate) trait DeviceOperations: Sized + Send + Sync + 'static {
    /// Makes the provider's side of a new device over `netdev`, which was in the namespace `net`
    /// a moment ago; `rdma link add` waits for it.
    fn open(name: &CStr, netdev: &NetDev, net: Net<'_>) -> Result<Self>;

    /// Returns the capabilities and limits of the device; the same at every call.
    fn attributes(&self) -> DeviceAttributes;

    /// Fills `values` with the counters, in the order of [`Operations::COUNTERS`].
    fn read_counters(&self, values: &mut [u64]);

    /// Returns true if the port is down, though the network device is up.
    fn is_port_down(&self) -> bool {
        false
    }

    /// Takes the upcall for events of the port, before the core calls any operation.
    fn set_port(&self, port: PortUpcall) -> Result;

    /// Notes the name under which the device is registered now, `None` for none. Process context;
    /// with a name the core's lock of all names is held. `None` comes without the lock, while no
    /// other device can have the name yet.
    fn named(&self, name: Option<&CStr>);

    /// Handles an event of the device's network device. Under the RTNL lock, except for an
    /// `Unregister` that came before the device was registered, which is reported afterwards. After
    /// `Unregister` this layer, not the provider, removes the device.
    fn netdev_event(&self, _event: NetDevEvent) {}
}

impl<P> Object<bindings::ib_device, P> {
    /// The network device; `None` when it is gone. Process context.
    pub(crate) fn netdev(&self) -> Option<NetDev> {
        // SAFETY: The device is live.
        let netdev = unsafe { bindings::ib_device_get_netdev(self.as_raw(), PORT) };
        // SAFETY: The function returned null or a reference for the caller.
        unsafe { NetDev::from_held(netdev) }
    }

    /// The node's GUID, in network order; made from the network device when the device was made.
    pub(super) fn guid(&self) -> [u8; 8] {
        self.private().eui64
    }

    /// The address by which the core knows the port.
    pub(super) fn gid(&self) -> [u8; 16] {
        identity::gid(self.guid())
    }

    /// Notifies consumers, later, that the port's address changed. Any context.
    /// C: `IB_EVENT_LID_CHANGE`.
    fn address_changed(&self) {
        let mut event = event(self.as_raw(), bindings::ib_event_type_IB_EVENT_LID_CHANGE);
        event.element.port_num = PORT;
        // SAFETY: The device is live, and the core copies the event.
        unsafe { bindings::ib_dispatch_event(&event) };
    }

    /// Makes the core unregister the device in a work item.
    fn unregister_later(&self) {
        // SAFETY: The caller's reference keeps the device registered until this is queued.
        unsafe { bindings::ib_unregister_device_queued(self.as_raw()) };
    }
}

impl<P: DeviceOperations> Object<bindings::ib_device, P> {
    /// Handles an event of the device's network device.
    pub(super) fn netdev_changed(&self, event: NetDevEvent) {
        self.netdev_event(event);
        match event {
            NetDevEvent::Unregister => self.unregister_later(),
            NetDevEvent::ChangeAddr => self.address_changed(),
            _ => {}
        }
    }
}

/// Makes a device over `netdev` and registers it as `name`.
///
/// Process context, without the RTNL lock. `ENODEV` if the network device's namespace is ending.
pub(super) fn create<T: Operations>(name: &CStr, netdev: &NetDev) -> Result {
    let home = netdev.hold_net().ok_or(ENODEV)?;
    let is_user = user::is_wanted()?;
    let payload = T::Device::open(name, netdev, home.net())?;
    let ib = allocate::<T>(payload, netdev, &home, is_user)?;
    let listed = match NonNull::new(ib).filter(|_| is_user) {
        Some(device) => user::remember(device),
        None => Ok(()),
    };
    let result = listed.and_then(|()| register(ib, name, netdev));
    if result.is_err() {
        // SAFETY: The device is not registered; the core calls `dealloc_driver` and frees it.
        unsafe { bindings::ib_dealloc_device(ib) };
    }
    result.inspect(|()| catch_up::<T>(netdev, home.net().cookie()))
}

/// Takes the new device over `netdev` down if `netdev` has left the namespace since the lookup: the
/// notifier finds a device only once it is registered.
fn catch_up<T: Operations>(netdev: &NetDev, net: u64) {
    if netdev.has_left(net) {
        // Without a device, another task has taken it down.
        with_netdev::<T, _>(netdev, |device| {
            device.netdev_changed(NetDevEvent::Unregister)
        });
    }
}

/// Allocates a device and initialises its payload and its table.
///
/// The device belongs to the network namespace of its network device; if the core shares devices
/// between namespaces, all of them see it.
fn allocate<T: Operations>(
    payload: T::Device,
    netdev: &NetDev,
    home: &HeldNet,
    is_user: bool,
) -> Result<*mut bindings::ib_device> {
    // SAFETY: The caller holds the namespace, which is not null, until the device is registered; a
    // namespace that goes after that moves its devices to the first one.
    let ib = unsafe { bindings::_ib_alloc_device(Device::<T>::SIZE, home.net().as_raw()) };
    if ib.is_null() {
        return Err(ENOMEM);
    }
    // SAFETY: The core allocated the size of a `Device<T>`, and no other code knows the device.
    let mut device = unsafe { NewObject::<_, T::Device>::from_raw(ib) };
    let eui64 = identity::eui64(netdev, home.net());
    // CAST: The enumeration is small.
    device.node_type = bindings::RDMA_NODE_RNIC as u8;
    device.node_guid = u64::from_ne_bytes(eui64);
    device.phys_port_cnt = PORT;
    let attributes = payload.attributes();
    // CAST: A number of processors.
    device.num_comp_vectors = attributes.comp_vectors as i32;
    device.local_dma_lkey = attributes.local_dma_lkey.unwrap_or(0);
    device.iw_driver_flags = bindings::iw_flags_IW_F_NO_PORT_MAP;
    device.iw_ifname.copy_from_slice(&netdev.name());
    device.name_assign_type = bindings::rdma_nl_name_assign_type_RDMA_NAME_ASSIGN_TYPE_USER;
    copy_text(&mut device.node_desc, T::NODE_DESC);
    if is_user {
        device.uverbs_cmd_mask |= user::COMMANDS;
    }
    // SAFETY: `dealloc_driver` closes it; on an error it is closed below.
    let prepared = unsafe { UpcallTarget::open(ib) }.and_then(|target| {
        let port = payload.set_port(PortUpcall(target.clone()));
        port.map(|()| target.clone())
            .inspect_err(|_| target.close())
    });
    match prepared {
        Ok(target) => {
            device.init(DevicePrivate { eui64, target }, payload);
            // SAFETY: The device is new and the table is right for it; the core copies the table.
            unsafe { bindings::ib_set_device_ops(ib, OperationsVTable::<T>::table(is_user)) };
            Ok(ib)
        }
        Err(error) => {
            // SAFETY: The core knows no operation of the device, and frees it.
            unsafe { bindings::ib_dealloc_device(ib) };
            Err(error)
        }
    }
}

fn register(ib: *mut bindings::ib_device, name: &CStr, netdev: &NetDev) -> Result {
    // SAFETY: Both devices are live; the core takes its own reference to `netdev`.
    to_result(unsafe { bindings::ib_device_set_netdev(ib, netdev.as_raw(), PORT) })?;
    // SAFETY: The device is set up; without a DMA device the core uses virtual addresses.
    to_result(unsafe { bindings::ib_register_device(ib, name.as_char_ptr(), ptr::null_mut()) })
}

/// The device behind `ib`, if it is one of this provider's.
///
/// # Safety
///
/// `ib` has been registered, and is not freed as long as the result is used.
pub(super) unsafe fn own<'a, T: Operations>(ib: *mut bindings::ib_device) -> Option<&'a Device<T>> {
    // SAFETY: The caller says that the device is not freed.
    let theirs = unsafe { (*ib).ops.dealloc_driver };
    // A built-in provider has no owner to compare, and neither have other built-in providers.
    let address = |f: unsafe extern "C" fn(*mut bindings::ib_device)| f as usize;
    let ours = OperationsVTable::<T>::table(false).dealloc_driver;
    let is_own = theirs.is_some() && theirs.map(address) == ours.map(address);
    // SAFETY: Only devices of this provider have its function, so this is a `Device<T>`, which was
    // initialised before it was registered; the caller says that it is not freed.
    is_own.then(|| unsafe { Device::<T>::from_raw(ib) })
}

/// Calls `f` with the device over `netdev`, if this provider has one.
pub(super) fn with_netdev<T: Operations, R>(
    netdev: &NetDev,
    f: impl FnOnce(&Device<T>) -> R,
) -> Option<R> {
    for driver_id in [T::DRIVER_ID, user::DRIVER_ID] {
        // SAFETY: The network device is live.
        let ib = unsafe { bindings::ib_device_get_by_netdev(netdev.as_raw(), driver_id) };
        if ib.is_null() {
            continue;
        }
        // SAFETY: Gives up the reference that was just taken, when the device is not used any more.
        let _held = ScopeGuard::new(|| unsafe { bindings::ib_device_put(ib) });
        // SAFETY: The reference keeps the device registered.
        if let Some(device) = unsafe { own::<T>(ib) } {
            return Some(f(device));
        }
    }
    None
}

/// Copies `text` into a field that is zeroed, leaving a zero at its end.
pub(super) fn copy_text(field: &mut [u8], text: &CStr) {
    let room = field.len().saturating_sub(1);
    for (to, from) in field.iter_mut().take(room).zip(text.to_bytes()) {
        *to = *from;
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_device)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_before_the_last_byte() {
        let mut field = [0u8; 4];
        copy_text(&mut field, c"abcdef");
        kunit_assert_eq!(&field, b"abc\0");
        let mut field = [0u8; 4];
        copy_text(&mut field, c"ab");
        kunit_assert_eq!(&field, b"ab\0\0");
    }
}
