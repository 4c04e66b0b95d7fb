// SPDX-License-Identifier: GPL-2.0

//! Network devices held by reference, and the events they raise.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use core::{
    marker::PhantomData,
    net::{
        IpAddr,
        SocketAddr, //
    },
    ptr,
    ptr::NonNull, //
};

use kernel::{
    container_of,
    prelude::*,
    types::Opaque, //
};

use super::addr;
use crate::bindings;

/// Room for an interface name with its terminating zero. C: `IFNAMSIZ`.
const NAME_SIZE: usize = 16;

/// Bytes of a MAC address. C: `ETH_ALEN`.
const MAC_SIZE: usize = 6;

/// A network device, held by reference.
///
/// A reference keeps the memory, not the device: `ip link del` waits until all references are gone,
/// so they must not outlive an [`NetDevEvent::Unregister`] for long.
///
/// # Invariants
///
/// Owns one reference to a live `struct net_device`.
pub(crate) struct NetDev(NonNull<bindings::net_device>);

// SAFETY: References to a `net_device` belong to no thread.
unsafe impl Send for NetDev {}
// SAFETY: The functions read fields that are constant, atomic, or read with `READ_ONCE()`; a name
// or a MAC address that changes at the same time may be mixed.
unsafe impl Sync for NetDev {}

impl NetDev {
    /// Takes a new reference to `dev`; `None` for null.
    ///
    /// # Safety
    ///
    /// `dev` is null or valid during the call.
    pub(crate) unsafe fn get(dev: *mut bindings::net_device) -> Option<Self> {
        let dev = NonNull::new(dev)?;
        // SAFETY: The caller says that `dev` is valid.
        unsafe { bindings::ndk_netdev_hold(dev.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Some(Self(dev))
    }

    /// Takes over the caller's reference to `dev`; `None` for null.
    ///
    /// # Safety
    ///
    /// `dev` is null, or the caller owns a reference to it and gives that away.
    pub(crate) unsafe fn from_held(dev: *mut bindings::net_device) -> Option<Self> {
        // INVARIANT: The caller's reference belongs to this object now.
        NonNull::new(dev).map(Self)
    }

    /// The C device; valid as long as `self`.
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.as_ptr()
    }

    /// The name, padded with zeros; a rename at the same time may mix two names. Any context.
    pub(crate) fn name(&self) -> [u8; NAME_SIZE] {
        let mut name = [0; NAME_SIZE];
        // SAFETY: The device is live; `name` has the room the function asks for.
        unsafe { bindings::ndk_netdev_name(self.as_raw(), name.as_mut_ptr()) };
        name
    }

    /// The number of the interface in its network namespace; it changes if the device moves. Any
    /// context.
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_index(self.as_raw()) }
    }

    /// The MAC address; `None` for a device without one, such as loopback or a tunnel. Any context;
    /// a change at the same time may mix two addresses.
    pub(crate) fn mac(&self) -> Option<[u8; MAC_SIZE]> {
        let mut mac = [0; MAC_SIZE];
        // SAFETY: The device is live; `mac` has the room the function asks for.
        let has_one = unsafe { bindings::ndk_netdev_mac(self.as_raw(), mac.as_mut_ptr()) };
        has_one.then_some(mac)
    }

    /// The number of the VLAN, if the device is for one. Any context.
    pub(crate) fn vlan(&self) -> Option<u16> {
        // SAFETY: By the invariant the device is live.
        let id = unsafe { bindings::ndk_netdev_vlan(self.as_raw()) };
        u16::try_from(id).ok()
    }

    /// Returns true if another device may have the same MAC address and the same VLAN: for bridges,
    /// bonds and teams, ports of the latter two, and any device that stands on another device,
    /// except for a VLAN over a plain one. Any context.
    pub(crate) fn may_share_mac(&self) -> bool {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_may_share_mac(self.as_raw()) }
    }

    /// The largest payload of a frame in bytes. Any context.
    pub(crate) fn mtu(&self) -> u32 {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_mtu(self.as_raw()) }
    }

    /// Returns true if the device is up and has carrier. Any context.
    pub(crate) fn is_up(&self) -> bool {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_is_up(self.as_raw()) }
    }

    /// Returns true if IP over this device can carry iWARP: Ethernet, loopback, or no link header
    /// at all.
    pub(crate) fn is_supported(&self) -> bool {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_is_supported(self.as_raw()) }
    }

    /// The hardware type, by which ARP and `ip -d link` know the device. Any context. C:
    /// `ARPHRD_ETHER` and others.
    pub(crate) fn hardware_type(&self) -> u16 {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_hardware_type(self.as_raw()) }
    }

    /// The network namespace that the device is in now; the device may move to another one at any
    /// time. `None` if the namespace is ending. Any context.
    pub(crate) fn hold_net(&self) -> Option<HeldNet> {
        // SAFETY: By the invariant the device is live.
        let net = unsafe { bindings::ndk_netdev_get_net(self.as_raw()) };
        // INVARIANT: The function returned null or a reference for the caller.
        NonNull::new(net).map(HeldNet)
    }

    /// Returns true if the device is not in the namespace with cookie `net` any more, or is not
    /// registered any more. After false [`NetDevListener`] is called when the device leaves. Waits
    /// for the RTNL lock.
    pub(crate) fn has_left(&self, net: u64) -> bool {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_has_left(self.as_raw(), net) }
    }

    /// Returns true if `addr` is assigned to this device. Any context.
    pub(crate) fn owns_addr(&self, addr: IpAddr) -> bool {
        self.ask(bindings::ndk_netdev_owns, addr)
    }

    /// Returns true if the RDMA core resolves `addr` to this device, among the addresses of this
    /// machine in the device's namespace. Any context. C: `rdma_translate_ip()`.
    pub(crate) fn is_resolved_by(&self, addr: IpAddr) -> bool {
        self.ask(bindings::ndk_netdev_is_resolved_by, addr)
    }

    /// Returns true if `addr` is an address of this machine in the device's namespace. Any context.
    pub(crate) fn is_local_addr(&self, addr: IpAddr) -> bool {
        self.ask(bindings::ndk_netdev_is_local, addr)
    }

    fn ask(&self, question: Question, addr: IpAddr) -> bool {
        let addr = addr::write(&SocketAddr::new(addr, 0));
        // SAFETY: By the invariant the device is live; `addr` is an address, and valid during the
        // call.
        unsafe { question(self.as_raw(), &addr) }
    }
}

/// A network namespace that is kept for `'a`.
///
/// # Invariants
///
/// Null, which stands for the first namespace, or a `struct net` that is live during `'a`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Net<'a>(*mut bindings::net, PhantomData<&'a ()>);

impl Net<'_> {
    /// The first namespace.
    // INVARIANT: null.
    pub(crate) const FIRST: Self = Self(ptr::null_mut(), PhantomData);

    /// The namespace `net`, or the first one for null.
    ///
    /// # Safety
    ///
    /// `net` is null, or kept by the caller as long as the result exists.
    pub(crate) unsafe fn from_raw(net: *mut bindings::net) -> Self {
        // INVARIANT: by the safety requirements.
        Self(net, PhantomData)
    }

    /// The C namespace, or null for the first one; valid as long as `self`.
    pub(crate) fn as_raw(self) -> *mut bindings::net {
        self.0
    }

    /// A number that names the namespace and is never reused. Any context.
    pub(crate) fn cookie(&self) -> u64 {
        // SAFETY: By the invariant the namespace is null or live.
        unsafe { bindings::ndk_net_cookie(self.0) }
    }

    /// Returns true if `addr` is an address of this machine in the namespace. Any context.
    pub(crate) fn is_local_addr(&self, addr: IpAddr) -> bool {
        let addr = addr::write(&SocketAddr::new(addr, 0));
        // SAFETY: By the invariant the namespace is null or live; the address is one, and valid
        // during the call.
        unsafe { bindings::ndk_net_is_local(self.0, &addr) }
    }

    /// As [`Net::cookie`], but zero for the first namespace, which is the same from boot to boot.
    /// Any context.
    pub(crate) fn lasting(&self) -> u64 {
        match self.cookie() {
            net if net == Net::FIRST.cookie() => 0,
            net => net,
        }
    }
}

/// A network namespace, held by reference: it does not end before this is dropped.
///
/// # Invariants
///
/// Owns one reference to a `struct net`.
pub(crate) struct HeldNet(NonNull<bindings::net>);

impl HeldNet {
    /// The namespace.
    pub(crate) fn net(&self) -> Net<'_> {
        // SAFETY: By the invariant the namespace lives as long as `self`.
        unsafe { Net::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for HeldNet {
    fn drop(&mut self) {
        // SAFETY: By the invariant `self` owns this reference, and gives it up.
        unsafe { bindings::ndk_net_put(self.0.as_ptr()) };
    }
}

/// A question about an address.
type Question = unsafe extern "C" fn(*mut bindings::net_device, *const addr::Storage) -> bool;

impl Clone for NetDev {
    fn clone(&self) -> Self {
        // SAFETY: By the invariant the device is live.
        unsafe { bindings::ndk_netdev_hold(self.as_raw()) };
        // INVARIANT: The reference was just taken.
        Self(self.0)
    }
}

impl Drop for NetDev {
    fn drop(&mut self) {
        // SAFETY: By the invariant `self` owns this reference, and gives it up.
        unsafe { bindings::ndk_netdev_put(self.as_raw()) };
    }
}

impl PartialEq for NetDev {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.as_raw(), other.as_raw())
    }
}

/// An event of a network device. C: `enum netdev_cmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetDevEvent {
    /// The device was registered, or was there when the notifier was registered.
    Register,
    /// The device is going; references to it must be dropped soon.
    Unregister,
    /// The hardware address changed.
    ChangeAddr,
    /// Any other event.
    Other,
}

impl From<c_ulong> for NetDevEvent {
    fn from(event: c_ulong) -> Self {
        // CAST: The kernel passes an `enum netdev_cmd`, which is small.
        match event as u32 {
            bindings::netdev_cmd_NETDEV_REGISTER => Self::Register,
            bindings::netdev_cmd_NETDEV_UNREGISTER => Self::Unregister,
            bindings::netdev_cmd_NETDEV_CHANGEADDR => Self::ChangeAddr,
            _ => Self::Other,
        }
    }
}

/// A listener for the events of network devices.
pub(crate) trait NetDevListener: Send + Sync + 'static {
    /// Called under the RTNL lock, in process context.
    ///
    /// Also called once for every device that exists when the notifier is
    /// registered (`Register`) and when the notifier goes (`Unregister`).
    fn event(&self, event: NetDevEvent, dev: &NetDev);
}

/// A registered [`NetDevListener`]; dropping it ends the events.
///
/// # Invariants
///
/// `block` is registered from the end of initialisation until drop.
#[pin_data(PinnedDrop)]
pub(crate) struct NetDevRegistration<L: NetDevListener> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    listener: L,
}

// SAFETY: The block is only touched by the notifier chain, which locks; `L` is `Send`.
unsafe impl<L: NetDevListener> Send for NetDevRegistration<L> {}
// SAFETY: The block is only touched by the notifier chain, which locks; `L` is `Sync`.
unsafe impl<L: NetDevListener> Sync for NetDevRegistration<L> {}

impl<L: NetDevListener> NetDevRegistration<L> {
    /// Registers `listener`. Process context, without the RTNL lock.
    pub(crate) fn register(listener: L) -> impl PinInit<Self, Error> {
        // The listener comes first: registration calls it for the devices that exist.
        try_pin_init!(Self {
            listener,
            // INVARIANT: Registered when this field is initialised.
            block <- Opaque::try_ffi_init(|slot: *mut bindings::notifier_block| {
                let block = bindings::notifier_block {
                    notifier_call: Some(Self::call),
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is writable.
                unsafe { slot.write(block) };
                // SAFETY: The block is initialised and stays where it is until it is unregistered.
                kernel::error::to_result(unsafe { bindings::register_netdevice_notifier(slot) })
            }),
        })
    }

    /// # Safety
    ///
    /// `block` is the field of a `NetDevRegistration<L>` whose listener is initialised, and `info`
    /// is the `netdev_notifier_info` of a device that is valid during the call.
    unsafe extern "C" fn call(
        block: *mut bindings::notifier_block,
        event: c_ulong,
        info: *mut c_void,
    ) -> c_int {
        // SAFETY: The caller says that `block` is the field of a `NetDevRegistration<L>`.
        let this = unsafe { container_of!(Opaque::cast_from(block), Self, block) };
        // SAFETY: The caller says that the listener is initialised; it is not changed after that.
        let listener = unsafe { &(*this).listener };
        // SAFETY: The caller passes a `netdev_notifier_info`.
        let dev = unsafe { bindings::ndk_netdev_of_notifier(info) };
        // SAFETY: The caller says that the device is valid during the call.
        if let Some(dev) = unsafe { NetDev::get(dev) } {
            listener.event(NetDevEvent::from(event), &dev);
        }
        // CAST: NOTIFY_OK is one.
        bindings::NOTIFY_OK as c_int
    }
}

#[pinned_drop]
impl<L: NetDevListener> PinnedDrop for NetDevRegistration<L> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the invariant the block is registered; after the call the chain does not use
        // it.
        unsafe { bindings::unregister_netdevice_notifier(self.block.get()) };
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_netdev)]
mod tests {
    use super::*;
    use core::net::{
        Ipv4Addr,
        Ipv6Addr, //
    };
    use kernel::sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    };

    impl NetDev {
        /// The loopback device of the initial namespace.
        pub(crate) fn loopback() -> Result<Self> {
            let mut dev = ptr::null_mut();
            // SAFETY: `dev` is writable.
            kernel::error::to_result(unsafe { bindings::ndk_netdev_loopback(&mut dev) })?;
            // SAFETY: On success `dev` came with a reference for the caller.
            unsafe { Self::from_held(dev) }.ok_or(ENODEV)
        }
    }

    #[test]
    fn loopback_is_what_it_should_be() -> Result {
        let lo = NetDev::loopback()?;
        assert!(lo.is_supported());
        // C: `ARPHRD_LOOPBACK`.
        kunit_assert_eq!(lo.hardware_type(), 772);
        kunit_assert_eq!(&lo.name()[..3], b"lo\0");
        assert_eq!(lo.clone(), lo);
        let home = lo.hold_net().ok_or(ENODEV)?;
        assert!(home.net().cookie() != 0);
        kunit_assert_eq!(home.net().cookie(), Net::FIRST.cookie());
        kunit_assert_eq!(home.net().lasting(), 0);
        assert!(lo.mac().is_none());
        assert!(lo.vlan().is_none());
        assert!(!lo.may_share_mac());
        Ok(())
    }

    #[test]
    fn a_device_has_left_every_namespace_but_one() -> Result {
        let lo = NetDev::loopback()?;
        let home = Net::FIRST.cookie();
        assert!(!lo.has_left(home));
        assert!(lo.has_left(home + 1));
        assert!(lo.has_left(0));
        Ok(())
    }

    #[test]
    fn foreign_addresses_are_not_local() -> Result {
        let lo = NetDev::loopback()?;
        assert!(!lo.owns_addr(Ipv4Addr::new(192, 0, 2, 1).into()));
        assert!(!lo.is_local_addr(Ipv4Addr::new(192, 0, 2, 1).into()));
        assert!(!lo.is_local_addr(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()));
        assert!(!lo.is_resolved_by(Ipv4Addr::new(192, 0, 2, 1).into()));
        assert!(!lo.is_resolved_by(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()));
        Ok(())
    }

    #[test]
    fn loopback_is_resolved_by_all_loopback_addresses() -> Result {
        let lo = NetDev::loopback()?;
        assert!(lo.is_resolved_by(Ipv4Addr::LOCALHOST.into()));
        // Not an address of the device, but of its network.
        let other = Ipv4Addr::new(127, 1, 2, 3).into();
        assert!(!lo.owns_addr(other));
        assert!(lo.is_resolved_by(other));
        let v6 = Ipv6Addr::LOCALHOST.into();
        kunit_assert_eq!(lo.is_resolved_by(v6), lo.owns_addr(v6));
        Ok(())
    }

    struct Count(Arc<Atomic<u32>>);

    impl NetDevListener for Count {
        fn event(&self, event: NetDevEvent, _dev: &NetDev) {
            if event == NetDevEvent::Register {
                self.0.fetch_add(1, Relaxed);
            }
        }
    }

    #[test]
    fn new_listener_hears_of_existing_devices() -> Result {
        let count = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let notifier = KBox::pin_init(
            NetDevRegistration::register(Count(count.clone())),
            GFP_KERNEL,
        )?;
        assert!(count.load(Relaxed) >= 1);
        drop(notifier);
        assert!(Arc::into_unique_or_drop(count).is_some());
        Ok(())
    }
}
