// SPDX-License-Identifier: GPL-2.0

//! [`RdmaDevice`]: what all faces see of one device, and who of them uses it; [`DeviceList`]: all
//! of them.
//!
//! ```text
//! open() -> PortUse ------------------------> dropped
//!              shut(): no open() any more; port_gone() once for each use; returns after the last
//! ```
//!
//! The verbs face makes the ports, and shuts each when its own consumers of the device are gone.
//!
//! Lock order: the list of the ports, then the state of one; users are called under none.

use core::net::IpAddr;

use kernel::{
    new_mutex,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLockIrq, //
    }, //
};

use super::{
    connection::ConnectionManager,
    domain::Adapter, //
};
use crate::sys::{
    event::Event,
    netdev::NetDev, //
};

/// How long [`RdmaDevice::shut`] waits before it says so in the kernel log, in milliseconds.
const PATIENCE_MS: u32 = 10_000;

/// Of the waits that follow, each of that length, one in so many is said again.
const SAY_EVERY: u32 = 30;

/// A face's user of a port.
pub(crate) trait Client: Send + Sync {
    /// The device goes: the use has to end soon. Called once at most, in process context, under no
    /// lock; the use may be dropped inside. It may still be called, or running, while the use is
    /// dropped elsewhere.
    fn device_gone(&self);
}

/// Why a port could not be opened.
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

/// One device as all faces see it: the engine's side of it, where it connects, and the network
/// device whose addresses it has.
#[pin_data]
pub(crate) struct RdmaDevice {
    adapter: Arc<Adapter>,
    exchange: Arc<ConnectionManager>,
    /// Gone when the network device goes, so that nothing holds that up.
    #[pin]
    netdev: SpinLockIrq<Option<NetDev>>,
    #[pin]
    users: SpinLockIrq<Users>,
    /// Happens when the port is shut and has no users.
    #[pin]
    unused: Event,
}

impl RdmaDevice {
    /// A port without users. May sleep.
    pub(crate) fn new(
        adapter: Arc<Adapter>,
        exchange: Arc<ConnectionManager>,
        netdev: NetDev,
    ) -> Result<Arc<Self>> {
        let netdev = Some(netdev);
        Arc::pin_init(
            pin_init!(Self {
                adapter,
                exchange,
                netdev <- new_spinlock_irq!(netdev),
                users <- new_spinlock_irq!(Users {
                    shut: false,
                    next: 0,
                    entries: KVec::new(),
                }),
                unused <- Event::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The engine's side of the device.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Where the device connects.
    pub(crate) fn exchange(&self) -> &Arc<ConnectionManager> {
        &self.exchange
    }

    /// The name that the device was made with; renaming the device does not change it.
    pub(crate) fn name(&self) -> &CStr {
        self.adapter.name()
    }

    /// The identity of the network namespace.
    pub(crate) fn net(&self) -> u64 {
        self.adapter.net()
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

    /// Begins a use of the port, which ends when the result is dropped. Any context.
    ///
    /// The port keeps `user` until then: a user that owns its use has to drop it of its own
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
            port: self.clone(),
            number,
        })
    }

    /// Lets go of the network device, refuses new uses, tells each user once, and returns when
    /// every use has ended. May sleep.
    ///
    /// Undecided requests keep a port for longer than its device; the network device may go.
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

    /// A user that has not been notified yet that the port goes; now it is.
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

/// A face's use of a port; dropping it ends the use. Any context that may drop the user.
pub(crate) struct ClientUse {
    port: Arc<RdmaDevice>,
    number: u64,
}

#[cfg(ndk_kunit)]
impl ClientUse {
    /// The port that is used.
    pub(crate) fn port(&self) -> &Arc<RdmaDevice> {
        &self.port
    }
}

impl Drop for ClientUse {
    fn drop(&mut self) {
        self.port.end_use(self.number);
    }
}

/// The ports of all devices.
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

    /// Makes a port one that is found. May sleep. `ENOMEM` when there is no memory.
    pub(crate) fn add(&self, port: Arc<RdmaDevice>) -> Result {
        Ok(self.list.lock().push(port, GFP_KERNEL)?)
    }

    /// Makes a port one that is not found any more. May sleep.
    pub(crate) fn remove(&self, port: &Arc<RdmaDevice>) {
        let mut list = self.list.lock();
        let at = list.iter().position(|p| Arc::ptr_eq(p, port));
        let gone = at.and_then(|at| list.remove(at).ok());
        drop(list);
        drop(gone);
    }

    /// The port whose device was made with that name. May sleep.
    pub(crate) fn by_name(&self, name: &CStr) -> Option<Arc<RdmaDevice>> {
        let list = self.list.lock();
        list.iter().find(|p| p.name() == name).cloned()
    }

    /// The port that serves an address of this host: the one whose network device has it, or any
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
