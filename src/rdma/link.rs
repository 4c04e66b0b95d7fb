// SPDX-License-Identifier: GPL-2.0

//! The registration of a provider: its link type, and its notifier for network
//! devices.
//!
//! The registration ends in this order: no new devices, no more network device
//! events, then every device. Consumers tear down during the last step, so the
//! queues, sockets and workers that they need for that must outlive the
//! [`LinkRegistration`].
//!
//! C header: [`include/rdma/rdma_netlink.h`](srctree/include/rdma/rdma_netlink.h)

use kernel::{
    error::from_result,
    types::Opaque, //
};

use super::{
    device,
    link_type::LinkType,
    names::NameClient,
    prelude::*,
    user, //
};
use crate::sys::netdev::{
    NetDev,
    NetDevEvent,
    NetDevListener,
    NetDevRegistration, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialised by `LinkRegistration::new` before the link type can be used.
    unsafe(uninit) static ADDING: Mutex<()> = ();
}

/// A registered provider; there is one for each type `T`.
///
/// Dropping it unregisters every device and waits for their consumers.
///
/// # Invariants
///
/// The link type is registered from the end of initialisation until drop.
#[pin_data(PinnedDrop)]
pub(crate) struct LinkRegistration<T: Operations> {
    // Fields go in this order, after `drop`.
    #[pin]
    notifier: NetDevRegistration<NetdevNotifier<T>>,
    devices: AllDevices<T>,
    #[pin]
    names: NameClient<T>,
    #[pin]
    link: Opaque<bindings::rdma_link_ops>,
}

// SAFETY: The link operations are the core's to lock, and the rest is `Send`.
unsafe impl<T: Operations> Send for LinkRegistration<T> {}
// SAFETY: A shared registration has no operations.
unsafe impl<T: Operations> Sync for LinkRegistration<T> {}

impl<T: Operations> LinkRegistration<T> {
    /// Registers the provider under `name`. Process context, without the RTNL lock.
    ///
    /// `EBUSY` if another provider has the name.
    pub(crate) fn new(name: LinkType) -> impl PinInit<Self, Error> {
        // SAFETY: There is one registration in the life of a module, and this is before it.
        unsafe { ADDING.init() };
        try_pin_init!(Self {
            notifier <- NetDevRegistration::register(NetdevNotifier(PhantomData)),
            devices: AllDevices::new()?,
            names <- NameClient::register(),
            // INVARIANT: Registered when this field, the last, is initialised.
            link <- Opaque::try_ffi_init(move |slot: *mut bindings::rdma_link_ops| {
                let ops = bindings::rdma_link_ops {
                    type_: name.name().as_char_ptr(),
                    newlink: Some(newlink::<T>),
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is writable. The list is a valid empty one.
                let list = unsafe {
                    slot.write(ops);
                    let list = &raw mut (*slot).list;
                    (*list).next = list;
                    (*list).prev = list;
                    list
                };
                // SAFETY: The operations stay where they are until they are unregistered.
                unsafe { bindings::rdma_link_register(slot) };
                // The core reports an error only in its log. Registered operations are never alone
                // in their list: the head is there.
                // SAFETY: Only the core's lock protects the pointer, which is not followed.
                if unsafe { (&raw const (*list).next).read_volatile() } == list {
                    pr_err!("another module has the link type {}\n", name.name());
                    return Err(EBUSY);
                }
                Ok(())
            }),
        }? Error)
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for LinkRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the invariant the link type is registered.
        unsafe { bindings::rdma_link_unregister(self.link.get()) };
    }
}

/// All devices of a provider; dropping it takes them down.
struct AllDevices<T: Operations>(PhantomData<T>);

impl<T: Operations> AllDevices<T> {
    /// Makes the state for programs, before the first device.
    fn new() -> Result<Self> {
        user::begin()?;
        Ok(Self(PhantomData))
    }
}

impl<T: Operations> Drop for AllDevices<T> {
    fn drop(&mut self) {
        user::reclaim(T::DRIVER_ID);
        // SAFETY: The number is this provider's alone, and no device can come any more.
        unsafe { bindings::ib_unregister_driver(T::DRIVER_ID) };
        user::end();
    }
}

/// Listens for events of network devices.
struct NetdevNotifier<T: Operations>(PhantomData<T>);

impl<T: Operations> NetDevListener for NetdevNotifier<T> {
    fn event(&self, event: NetDevEvent, netdev: &NetDev) {
        device::with_netdev::<T, _>(netdev, |device| device.netdev_changed(event));
    }
}

/// Logs the reason to refuse a network device: netlink carries only an error number.
fn refused(netdev: &NetDev) {
    let name = netdev.name();
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    pr_warn!(
        "{}: is of ARP hardware type {}; ndk is for Ethernet, loopback and tunnels without link header\n",
        name,
        netdev.hardware_type()
    );
}

/// C: `rdma_link_ops.newlink`. Refuses network devices that cannot carry iWARP (`EINVAL`) or
/// have a device already (`EEXIST`).
///
/// # Safety
///
/// `name` is NUL-terminated and `netdev` is valid, both during the call.
unsafe extern "C" fn newlink<T: Operations>(
    name: *const c_char,
    netdev: *mut bindings::net_device,
) -> c_int {
    from_result(|| {
        // SAFETY: The caller says that `netdev` is valid.
        let netdev = unsafe { NetDev::get(netdev) }.ok_or(EINVAL)?;
        if !netdev.is_supported() {
            refused(&netdev);
            return Err(EINVAL);
        }
        let _alone = ADDING.lock();
        if device::with_netdev::<T, _>(&netdev, |_| ()).is_some() {
            return Err(EEXIST);
        }
        // SAFETY: The caller says that `name` is NUL-terminated.
        let name = unsafe { CStr::from_char_ptr(name) };
        device::create::<T>(name, &netdev)?;
        Ok(0)
    })
}
