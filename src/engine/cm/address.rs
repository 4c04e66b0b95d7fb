// SPDX-License-Identifier: GPL-2.0

//! The reserved local addresses of NDKPI endpoints, and the routes from them.
//!
//! A [`Reservation`] is a local address in use by one endpoint: a listener, a shared endpoint or a
//! connection. A [`Route`] is a connection from a reserved address; each destination has at most
//! one from there. A reservation lasts as long as a reference to it, a route until it is dropped.
//!
//! Context: making sleeps, dropping may happen anywhere. Lock order: the lock of the table is a
//! leaf.
//!
//! Tests: `engine/cm/listen/tests.rs`.

use core::net::{
    IpAddr,
    SocketAddr, //
};

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

use crate::engine::prelude::*;

/// The reason why an address or a route is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressError {
    /// The local address is in use.
    InUse,
    /// A connection from this address to that destination exists.
    Exists,
    /// Any port was asked for, and all are in use.
    NoPort,
    /// No memory.
    NoMemory,
}

/// The network namespace, the address, the interface if that is link-local, and the port.
type Address = (u64, IpAddr, u32, u16);

/// Returns the key of `at` in the namespace `net`; the flow label of IPv6 does not count. Any
/// context.
pub(super) fn address(net: u64, at: &SocketAddr) -> Address {
    let scope = match at {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) => v6.scope_id(),
    };
    (net, at.ip(), scope, at.port())
}

/// A reserved address, or a route from there.
type Key = (Address, Option<Address>);

/// The reserved addresses and the routes.
#[pin_data]
pub(super) struct AddressTable {
    /// Each entry has the number of the device on which the address is reserved.
    #[pin]
    entries: SpinLockIrq<RBTree<Key, usize>>,
}

impl AddressTable {
    /// An empty table. May sleep.
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

    /// Returns true if the address is reserved on any device. Any context.
    pub(super) fn is_reserved(&self, net: u64, at: &SocketAddr) -> bool {
        self.find((address(net, at), None)).is_some()
    }

    /// Returns true if there is a connection from `local` to `remote`. Any context.
    pub(super) fn has_route(&self, net: u64, local: &SocketAddr, remote: &SocketAddr) -> bool {
        let key = (address(net, local), Some(address(net, remote)));
        self.find(key).is_some()
    }

    fn find(&self, key: Key) -> Option<usize> {
        self.entries.lock().get(&key).copied()
    }
}

/// An entry of the table; dropping this value removes the entry.
///
/// # Invariants
///
/// The table has the entry as long as this value exists.
struct TakenAddress {
    table: Arc<AddressTable>,
    key: Key,
    device: usize,
}

impl TakenAddress {
    /// Adds an entry. [`AddressError::Exists`] if the table has the key,
    /// [`AddressError::NoMemory`]. May sleep.
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

/// A local address of one owner; dropping the last reference releases it. Any context.
pub(crate) struct Reservation {
    entry: TakenAddress,
    net: u64,
    at: SocketAddr,
}

impl Reservation {
    /// Reserves an address that is not reserved. May sleep.
    ///
    /// [`AddressError::Exists`] if it is reserved, [`AddressError::NoMemory`].
    pub(super) fn new(
        table: &Arc<AddressTable>,
        device: usize,
        net: u64,
        at: SocketAddr,
    ) -> Result<Arc<Self>, AddressError> {
        let entry = TakenAddress::new(table, (address(net, &at), None), device)?;
        let reservation = Self { entry, net, at };
        Arc::new(reservation, GFP_KERNEL).map_err(|_| AddressError::NoMemory)
    }

    /// Identifies the network namespace of the address.
    pub(super) fn net(&self) -> u64 {
        self.net
    }

    /// The address, with its port.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.at
    }

    /// Begins a connection to `remote`; the route keeps the address reserved. May sleep.
    ///
    /// [`AddressError::Exists`] when there is such a connection, [`AddressError::NoMemory`].
    pub(crate) fn route(self: &Arc<Self>, remote: SocketAddr) -> Result<Route, AddressError> {
        let (from, _) = self.entry.key;
        let key = (from, Some(address(self.net, &remote)));
        Ok(Route {
            _entry: TakenAddress::new(&self.entry.table, key, self.entry.device)?,
            from: self.clone(),
        })
    }
}

/// A connection from a reserved address to a destination; dropping the route ends it. Any context.
pub(crate) struct Route {
    _entry: TakenAddress,
    from: Arc<Reservation>,
}

impl Route {
    /// The address from which the route starts.
    pub(crate) fn from(&self) -> &Arc<Reservation> {
        &self.from
    }
}
