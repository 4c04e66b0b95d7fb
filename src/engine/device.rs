// SPDX-License-Identifier: GPL-2.0

//! [`RdmaDevice`]: what all faces see of one device, and who of them uses it; [`DeviceList`]: all
//! of them.
//!
//! ```text
//! open() -> ClientUse ----------------------> dropped
//!              shut(): no open() any more; device_gone() once for each use; returns after the last
//! ```
//!
//! The verbs face makes the devices, and shuts each when its own consumers of the device are gone.
//!
//! Lock order: the list of the devices, then the state of one; users are called under none.

#[cfg(ndk_kunit)]
mod tests;

use core::net::IpAddr;

use kernel::{
    fmt,
    new_mutex,
    new_spinlock_irq,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex,
        SpinLockIrq, //
    }, //
};

use super::{
    cm::ConnectionManager,
    counters::{
        self,
        Counter, //
    },
    host::Host,
    memory::MemoryTable, //
};
use crate::sys::{
    cpu::PerCpuCounters,
    event::Event,
    log,
    netdev::NetDev, //
};

/// How long [`RdmaDevice::shut`] waits before it says so in the kernel log, in milliseconds.
const PATIENCE_MS: u32 = 10_000;

/// Of the waits that follow, each of that length, one in so many is said again.
const SAY_EVERY: u32 = 30;

/// A face's user of a device.
pub(crate) trait Client: Send + Sync {
    /// The device goes: the use has to end soon. Called once at most, in process context, under no
    /// lock; the use may be dropped inside. It may still be called, or running, while the use is
    /// dropped elsewhere.
    fn device_gone(&self);
}

/// Why a device could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The device is going.
    Closed,
    /// No memory.
    NoMemory,
}

struct Entry {
    number: u64,
    user: Arc<dyn Client>,
    notified: bool,
}

struct Users {
    shut: bool,
    /// The number of the next use; numbers are not used again.
    next: u64,
    entries: KVec<Entry>,
}

/// One device as all faces see it: what it counts and registers, where it connects, and the network
/// device whose addresses it has.
#[pin_data]
pub(crate) struct RdmaDevice {
    host: Arc<Host>,
    /// What the messages in the kernel log call the device.
    name: CString,
    /// Identifies the network namespace in which the device has its addresses.
    net: u64,
    counters: PerCpuCounters<{ counters::COUNT }>,
    #[pin]
    regions: MemoryTable,
    cm: Arc<ConnectionManager>,
    /// Gone when the network device goes, so that nothing holds that up.
    #[pin]
    netdev: SpinLockIrq<Option<NetDev>>,
    #[pin]
    users: SpinLockIrq<Users>,
    /// Happens when the device is shut and has no users.
    #[pin]
    unused: Event,
}

impl RdmaDevice {
    /// A device without objects and users, in the network namespace with the identity `net`. May
    /// sleep.
    pub(crate) fn new(
        host: Arc<Host>,
        cm: Arc<ConnectionManager>,
        name: &CStr,
        net: u64,
        netdev: Option<NetDev>,
    ) -> Result<Arc<Self>> {
        let name = CString::try_from(name)?;
        Arc::pin_init(
            try_pin_init!(Self {
                host,
                name,
                net,
                counters: PerCpuCounters::new()?,
                regions <- MemoryTable::new(),
                cm,
                netdev <- new_spinlock_irq!(netdev),
                users <- new_spinlock_irq!(Users {
                    shut: false,
                    next: 0,
                    entries: KVec::new(),
                }),
                unused <- Event::new(),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// What it shares with all devices of the module.
    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Where the device connects.
    pub(crate) fn cm(&self) -> &Arc<ConnectionManager> {
        &self.cm
    }

    /// The name that the device was made with; renaming the device does not change it.
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// What tells it from all other devices, as long as it is there.
    pub(crate) fn id(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The identity of the network namespace.
    pub(crate) fn net(&self) -> u64 {
        self.net
    }

    /// The regions and windows.
    pub(crate) fn regions(&self) -> &MemoryTable {
        &self.regions
    }

    /// Says in the kernel log that something went wrong with a queue pair. Any context.
    ///
    /// The messages of the module are rate limited together.
    pub(crate) fn warn(&self, qp: u32, what: fmt::Arguments<'_>) {
        if log::allowed() {
            pr_warn!("{}: qp {}: {}\n", &*self.name, qp, what);
        }
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

    /// The network device, as long as it is there. Any context.
    pub(crate) fn netdev(&self) -> Option<NetDev> {
        self.netdev.lock().clone()
    }

    /// Lets go of the network device. Any context.
    pub(crate) fn forget_netdev(&self) {
        let netdev = self.netdev.lock().take();
        drop(netdev);
    }

    /// Returns true if the device is in that namespace and its network device says so of itself.
    fn answers(&self, net: u64, says: impl FnOnce(&NetDev) -> bool) -> bool {
        self.net() == net && self.netdev().is_some_and(|n| says(&n))
    }

    /// Begins a use of the device, which ends when the result is dropped. Any context.
    ///
    /// The device keeps `user` until then: a user that owns its use has to drop it of its own
    /// accord, not when it is dropped itself.
    pub(crate) fn open(self: &Arc<Self>, user: Arc<dyn Client>) -> Result<ClientUse, OpenError> {
        let mut users = self.users.lock();
        if users.shut {
            return Err(OpenError::Closed);
        }
        let room = users.entries.reserve(1, GFP_ATOMIC);
        room.map_err(|_| OpenError::NoMemory)?;
        let number = users.next;
        let entry = Entry {
            number,
            user,
            notified: false,
        };
        // There is room for one.
        let _ = users.entries.push_within_capacity(entry);
        // OVERFLOW: 2^64 opens.
        users.next = number.wrapping_add(1);
        drop(users);
        Ok(ClientUse {
            device: self.clone(),
            number,
        })
    }

    /// Lets go of the network device, refuses new uses, tells each user once, and returns when
    /// every use has ended. May sleep.
    ///
    /// Undecided requests keep a device for longer than its device; the network device may go.
    pub(crate) fn shut(&self) {
        self.forget_netdev();
        self.users.lock().shut = true;
        while let Some(user) = self.next_unnotified() {
            user.device_gone();
        }
        let mut waits: u32 = 0;
        loop {
            let left = self.users.lock().entries.len();
            if left == 0 {
                return;
            }
            if waits % SAY_EVERY == 1 {
                pr_warn!("{}: waits for {} users to close it\n", self.name(), left);
            }
            waits = waits.saturating_add(1);
            self.unused.wait_timeout(PATIENCE_MS);
        }
    }

    /// A user that has not been notified yet that the device goes; now it is.
    fn next_unnotified(&self) -> Option<Arc<dyn Client>> {
        let mut users = self.users.lock();
        let entry = users.entries.iter_mut().find(|e| !e.notified)?;
        entry.notified = true;
        Some(entry.user.clone())
    }

    /// Ends the use with that number.
    fn end_use(&self, number: u64) {
        let mut users = self.users.lock();
        let at = users.entries.iter().position(|e| e.number == number);
        let gone = at.and_then(|at| users.entries.remove(at).ok());
        if users.shut && users.entries.is_empty() {
            self.unused.signal();
        }
        drop(users);
        drop(gone);
    }
}

/// A face's use of a device; dropping it ends the use. Any context that may drop the user.
pub(crate) struct ClientUse {
    device: Arc<RdmaDevice>,
    number: u64,
}

#[cfg(ndk_kunit)]
impl ClientUse {
    /// The device that is used.
    pub(crate) fn device(&self) -> &Arc<RdmaDevice> {
        &self.device
    }
}

impl Drop for ClientUse {
    fn drop(&mut self) {
        self.device.end_use(self.number);
    }
}

/// The devices of all devices.
#[pin_data]
pub(crate) struct DeviceList {
    #[pin]
    list: Mutex<KVec<Arc<RdmaDevice>>>,
}

impl DeviceList {
    /// None yet. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                list <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes a device one that is found. May sleep. `ENOMEM` when there is no memory.
    pub(crate) fn add(&self, device: Arc<RdmaDevice>) -> Result {
        Ok(self.list.lock().push(device, GFP_KERNEL)?)
    }

    /// Makes a device one that is not found any more. May sleep.
    pub(crate) fn remove(&self, device: &Arc<RdmaDevice>) {
        let mut list = self.list.lock();
        let at = list.iter().position(|p| Arc::ptr_eq(p, device));
        let gone = at.and_then(|at| list.remove(at).ok());
        drop(list);
        drop(gone);
    }

    /// The device whose device was made with that name. May sleep.
    pub(crate) fn by_name(&self, name: &CStr) -> Option<Arc<RdmaDevice>> {
        let list = self.list.lock();
        list.iter().find(|p| p.name() == name).cloned()
    }

    /// The device that serves an address of this host: the one whose network device has it, or any
    /// that can be reached at it, as all can at a loopback address. May sleep.
    pub(crate) fn by_addr(&self, net: u64, ip: IpAddr) -> Option<Arc<RdmaDevice>> {
        let list = self.list.lock();
        let owner = list.iter().find(|p| p.answers(net, |n| n.owns_addr(ip)));
        let any = || {
            list.iter()
                .find(|p| p.answers(net, |n| n.is_local_addr(ip)))
        };
        owner.or_else(any).cloned()
    }
}
