// SPDX-License-Identifier: GPL-2.0

//! The local addresses that NDKPI endpoints have to themselves, and where they lead.
//!
//! A [`Reservation`] is a local address that is in use by one endpoint: a listener, a shared
//! endpoint, a connection. A [`Route`] is a connection that starts there; from one address there
//! is one to each destination. Both last as long as somebody holds them.
//!
//! Listeners of the verbs face reserve nothing: `rdma_cm` has a table of its own. They and the
//! reservations of the same device keep out of each other's way nevertheless.
//!
//! Context: making sleeps, dropping may happen anywhere. Lock order: the lock inside is a leaf.

#[cfg(ndk_kunit)]
mod tests;

use core::net::{
    IpAddr,
    SocketAddr, //
};

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

use super::{
    ConnectionManager,
    Listener,
    ListenerEvents, //
};
use crate::{
    engine::prelude::*,
    sys::random, //
};

/// The first of the ports that are given to who asks for any; the last is the last of all.
const FIRST_PORT: u16 = 49152;

/// How many of them there are.
const PORTS: u16 = u16::MAX - FIRST_PORT + 1;

/// Why an address or a route could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressError {
    /// Somebody else uses the local address.
    InUse,
    /// There is a connection from this address to that destination.
    Exists,
    /// Any port was asked for, and all are in use.
    NoPort,
    /// No memory.
    NoMemory,
}

/// The network namespace, the address, the interface if that is link-local, and the port.
type Address = (u64, IpAddr, u32, u16);

pub(super) fn address(net: u64, at: &SocketAddr) -> Address {
    let scope = match at {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) => v6.scope_id(),
    };
    (net, at.ip(), scope, at.port())
}

/// A reserved address, or a route from there.
type Key = (Address, Option<Address>);

/// Everything that is reserved.
#[pin_data]
pub(super) struct AddressTable {
    /// With the number of the device that it is reserved on.
    #[pin]
    entries: SpinLockIrq<RBTree<Key, usize>>,
}

impl AddressTable {
    /// Nothing is reserved. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let table = pin_init!(Self {
            entries <- new_spinlock_irq!(RBTree::new()),
        });
        Arc::pin_init(table, GFP_KERNEL)
    }

    /// Returns true if the address is reserved on that device. Any context.
    pub(super) fn reserves(&self, device: usize, net: u64, at: &SocketAddr) -> bool {
        self.find((address(net, at), None)) == Some(device)
    }

    fn find(&self, key: Key) -> Option<usize> {
        self.entries.lock().get(&key).copied()
    }
}

/// An entry of the table; dropping it removes that.
///
/// # Invariants
///
/// The table has the entry from the time this exists until it is dropped.
struct TakenAddress {
    table: Arc<AddressTable>,
    key: Key,
    device: usize,
}

impl TakenAddress {
    /// [`AddressError::Exists`], [`AddressError::NoMemory`]. May sleep.
    fn new(table: &Arc<AddressTable>, key: Key, device: usize) -> Result<Self, AddressError> {
        let node = RBTreeNode::new(key, device, GFP_KERNEL).map_err(|_| AddressError::NoMemory)?;
        let mut entries = table.entries.lock();
        if entries.get(&key).is_some() {
            drop(entries);
            return Err(AddressError::Exists);
        }
        entries.insert(node);
        drop(entries);
        // INVARIANT: Inserted just now.
        Ok(Self {
            table: table.clone(),
            key,
            device,
        })
    }
}

impl Drop for TakenAddress {
    fn drop(&mut self) {
        let gone = self.table.entries.lock().remove_node(&self.key);
        drop(gone);
    }
}

/// A local address that nobody else has; dropping the last reference releases it. Any context.
pub(crate) struct Reservation {
    entry: TakenAddress,
    net: u64,
    at: SocketAddr,
}

impl Reservation {
    /// The address, with its port.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.at
    }

    /// Begins a connection to `remote`; the route keeps the address reserved. May sleep.
    ///
    /// [`AddressError::Exists`] when there is one, [`AddressError::NoMemory`].
    pub(crate) fn route(self: &Arc<Self>, remote: SocketAddr) -> Result<Route, AddressError> {
        let (from, _) = self.entry.key;
        let key = (from, Some(address(self.net, &remote)));
        Ok(Route {
            _entry: TakenAddress::new(&self.entry.table, key, self.entry.device)?,
            from: self.clone(),
        })
    }
}

/// A connection from a reserved address to a destination; dropping it ends it. Any context.
pub(crate) struct Route {
    _entry: TakenAddress,
    from: Arc<Reservation>,
}

impl Route {
    /// Where it starts.
    pub(crate) fn from(&self) -> &Arc<Reservation> {
        &self.from
    }
}

impl ConnectionManager {
    /// Reserves a local address of the device with that number; port 0 stands for any from 49152
    /// on. May sleep.
    ///
    /// [`AddressError::InUse`] and [`AddressError::NoPort`] also when that device listens there, or
    /// at the wildcard of that port, without a reservation. [`AddressError::NoMemory`].
    pub(crate) fn reserve(
        &self,
        device: usize,
        net: u64,
        at: SocketAddr,
    ) -> Result<Arc<Reservation>, AddressError> {
        // Nobody else reserves an address under this lock.
        let listeners = self.listeners.lock();
        let start = u16::from_ne_bytes(random::bytes()) % PORTS;
        let (steps, why) = match at.port() {
            0 => (PORTS, AddressError::NoPort),
            _ => (1, AddressError::InUse),
        };
        let unreserved = || {
            let candidates = (0..steps).map(|step| {
                let mut at = at;
                if at.port() == 0 {
                    // OVERFLOW: each term is less than 2^14, and so is the rest of their sum.
                    at.set_port(FIRST_PORT + (start + step) % PORTS);
                }
                at
            });
            candidates.filter(|at| self.addresses.find((address(net, at), None)).is_none())
        };
        let is_free = |at: &SocketAddr| {
            let mut others = listeners.around(net, *at).filter(|l| !l.is_held());
            !others.any(|l| l.shares(device, net, at, false))
        };
        let at = unreserved().find(is_free).ok_or(why)?;
        let entry = TakenAddress::new(&self.addresses, (address(net, &at), None), device)?;
        let reservation = Reservation { entry, net, at };
        Arc::new(reservation, GFP_KERNEL).map_err(|_| AddressError::NoMemory)
    }

    /// Reserves a local address for one connection to `remote`. May sleep.
    ///
    /// [`AddressError::Exists`] when there is such a connection, [`AddressError::InUse`] when the
    /// address serves another purpose; else as [`ConnectionManager::reserve`].
    pub(crate) fn reserve_pair(
        &self,
        device: usize,
        net: u64,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Route, AddressError> {
        let key = (address(net, &local), Some(address(net, &remote)));
        if self.addresses.find(key).is_some() {
            return Err(AddressError::Exists);
        }
        self.reserve(device, net, local)?.route(remote)
    }

    /// Begins to listen at an address that is reserved for this purpose; the listener keeps it.
    /// May sleep. As [`ConnectionManager::listen`], but one reserved address has one listener.
    pub(crate) fn listen_on(
        &self,
        held: Arc<Reservation>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, AddressError> {
        self.add_listener(held.net, held.at, Some(held), events)
    }
}
