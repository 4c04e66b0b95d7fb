// SPDX-License-Identifier: GPL-2.0

//! [`RdmaDevice`]: one device, as all faces see it; [`DeviceList`]: all devices.
//!
//! The verbs face makes the devices. Other faces find them and use them (`device/users.rs`).
//!
//! Lock order: the list of the devices, then the state of a device; users are called under no lock.
//! The core's lock of all names is held where a device gets a name, and never taken here.

mod port;
mod quota;
#[cfg(ndk_kunit)]
mod tests;
mod users;

use core::net::IpAddr;

use super::{
    counters,
    host::Host,
    inject::Faults,
    memory::MemoryTable,
    prelude::*, //
};
use crate::sys::{
    cpu::PerCpuCounters,
    name::Name,
    netdev::{
        Net,
        NetDev, //
    }, //
};

pub(crate) use port::PortEvents;
pub(super) use quota::gfp;
#[cfg(ndk_kunit)]
pub(crate) use quota::TakenPlaces;
pub(crate) use quota::{
    Quota,
    Share, //
};
pub(crate) use users::{
    Client,
    ClientUse,
    OpenError, //
};

use port::Port;
use quota::Quotas;
use users::Users;

/// A face that knows in which network namespaces a device is seen.
pub(crate) trait SeenFrom: Send + Sync {
    /// Returns true if consumers in that namespace may use the device. Any context, under locks of
    /// the device and of the list: the call only reads.
    fn is_seen_from(&self, net: Net<'_>) -> bool;
}

/// The name of a device.
struct Named {
    name: Name,
    /// The device is registered under this name, and found by it.
    is_current: bool,
}

/// One device, as all faces see it: counters, regions, and the network device whose addresses it
/// has.
#[pin_data]
pub(crate) struct RdmaDevice {
    /// The state that all devices of the module share.
    pub(crate) host: Arc<Host>,
    /// The kernel's name of the device, which `rdma dev set` changes.
    #[pin]
    named: SpinLockIrq<Named>,
    /// `None` as long as only this module knows the device: then the device is seen in the
    /// namespace of its addresses.
    #[pin]
    seen: SpinLockIrq<Option<Arc<dyn SeenFrom>>>,
    /// Identifies the network namespace in which the device has its addresses.
    pub(crate) net: u64,
    counters: PerCpuCounters<{ counters::COUNT }>,
    /// The regions and windows.
    #[pin]
    pub(crate) regions: MemoryTable,
    /// The network device; `None` once it goes, so that this reference does not hold it up.
    #[pin]
    netdev: SpinLockIrq<Option<NetDev>>,
    #[pin]
    users: Users,
    /// The counts of the places that objects have taken.
    quotas: Quotas,
    /// The faults that are set on the device.
    pub(crate) faults: Faults,
    #[pin]
    port: Port,
}

impl RdmaDevice {
    /// A device without objects and users, in the network namespace with the identity `net`. May
    /// sleep.
    pub(crate) fn new(
        host: Arc<Host>,
        name: &CStr,
        net: u64,
        netdev: Option<NetDev>,
    ) -> Result<Arc<Self>> {
        let named = Named {
            name: Name::of(name),
            is_current: true,
        };
        Arc::pin_init(
            try_pin_init!(Self {
                host,
                named <- new_spinlock_irq!(named),
                seen <- new_spinlock_irq!(None),
                net,
                counters: PerCpuCounters::new()?,
                regions <- MemoryTable::new(),
                netdev <- new_spinlock_irq!(netdev),
                users <- Users::new(),
                quotas: Quotas::new(),
                faults: Faults::new()?,
                port <- Port::new(),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The present name, or the last one. Any context.
    #[cold]
    pub(crate) fn name(&self) -> Name {
        self.named.lock().name
    }

    /// Returns true if the device is registered under that name.
    fn is_named(&self, name: &CStr) -> bool {
        let named = self.named.lock();
        named.is_current && *named.name == *name
    }

    /// Sets the face that says in which namespaces the device is seen. Any context.
    pub(crate) fn set_visibility(&self, seen: Arc<dyn SeenFrom>) {
        let before = self.seen.lock().replace(seen);
        drop(before);
    }

    /// Returns true if the device has its addresses in that namespace. Any context.
    pub(crate) fn is_in(&self, net: Net<'_>) -> bool {
        self.net == net.cookie()
    }

    /// Returns true if consumers in that namespace may use the device. Any context.
    fn is_seen_from(&self, net: Net<'_>) -> bool {
        match &*self.seen.lock() {
            Some(seen) => seen.is_seen_from(net),
            None => self.is_in(net),
        }
    }

    /// A number that is unique as long as the device exists.
    pub(crate) fn id(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Adds `n` to a counter. Any context.
    #[inline]
    pub(crate) fn count(&self, counter: Counter, n: u64) {
        // CAST: a variant's number is an index.
        self.counters.add(counter as usize, n);
    }

    /// Adds to several counters. Any context.
    #[inline]
    pub(crate) fn count_each<const K: usize>(&self, adds: [(Counter, u64); K]) {
        // CAST: a variant's number is an index.
        let adds = adds.map(|(counter, n)| (counter as usize, n));
        self.counters.add_each(adds);
    }

    /// The present value of the counter with number `index`.
    pub(crate) fn counted(&self, index: usize) -> u64 {
        self.counters.sum(index)
    }

    /// The network device, until it goes. Any context.
    pub(crate) fn netdev(&self) -> Option<NetDev> {
        self.netdev.lock().clone()
    }

    /// Drops the reference to the network device. Any context.
    pub(crate) fn put_netdev(&self) {
        let netdev = self.netdev.lock().take();
        drop(netdev);
    }
}

/// All devices.
#[pin_data]
pub(crate) struct DeviceList {
    #[pin]
    list: Mutex<KVec<Arc<RdmaDevice>>>,
}

impl DeviceList {
    /// An empty list. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                list <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a device. May sleep. `ENOMEM` when there is no memory.
    pub(crate) fn add(&self, device: Arc<RdmaDevice>) -> Result {
        Ok(self.list.lock().push(device, GFP_KERNEL)?)
    }

    /// Removes a device. May sleep.
    pub(crate) fn remove(&self, device: &Arc<RdmaDevice>) {
        let mut list = self.list.lock();
        let at = list.iter().position(|p| Arc::ptr_eq(p, device));
        let gone = at.and_then(|at| list.remove(at).ok());
        drop(list);
        drop(gone);
    }

    /// Notes the name under which the device is registered from now on, `None` for none. May sleep.
    ///
    /// With a name the caller holds the core's lock of all names, so that no two devices of one
    /// namespace have the same name.
    pub(crate) fn rename(&self, device: &RdmaDevice, name: Option<&CStr>) {
        let list = self.list.lock();
        let mut named = device.named.lock();
        named.is_current = name.is_some();
        if let Some(name) = name {
            named.name = Name::of(name);
        }
        drop(named);
        drop(list);
    }

    /// The device that is registered under that name now, and seen from that namespace: where
    /// devices are not shared between namespaces, several devices may have the name. May sleep.
    pub(crate) fn by_name(&self, net: Net<'_>, name: &CStr) -> Option<Arc<RdmaDevice>> {
        let list = self.list.lock();
        let mut devices = list.iter();
        let found = devices.find(|d| d.is_named(name) && d.is_seen_from(net));
        found.cloned()
    }

    /// The device that serves an address of this host: the device whose network device has the
    /// address, or else any device that can be reached at the address, as all can at a loopback
    /// address. The network device is in that namespace, and the device is seen from there. May
    /// sleep.
    pub(crate) fn by_addr(&self, net: Net<'_>, ip: IpAddr) -> Option<Arc<RdmaDevice>> {
        let list = self.list.lock();
        let find = |says: fn(&NetDev, IpAddr) -> bool| {
            let mut devices = list.iter().filter(|d| d.is_seen_from(net));
            devices.find(|d| d.is_in(net) && d.netdev().is_some_and(|n| says(&n, ip)))
        };
        let owner = find(NetDev::owns_addr);
        owner.or_else(|| find(NetDev::is_local_addr)).cloned()
    }
}
