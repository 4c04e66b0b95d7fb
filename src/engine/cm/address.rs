// SPDX-License-Identifier: GPL-2.0

//! The local addresses that endpoints have to themselves, and where they lead.
//!
//! A [`Reservation`] is a local address that is in use by one endpoint: a listener, a shared
//! endpoint, a connection. A [`Route`] is a connection that starts there; from one address there
//! is one to each destination. Both last as long as somebody holds them.
//!
//! Listeners of the verbs face reserve nothing: the connection manager has a table of its own.
//! They and the reservations of the same device keep out of each other's way nevertheless.
//!
//! Context: making sleeps, dropping may happen anywhere. Lock order: the lock inside is a leaf.

#[cfg(ndk_kunit)]
mod tests;

use core::net::{
    IpAddr,
    SocketAddr, //
};

use kernel::{
    new_spinlock_irq,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    may_be_shared,
    ConnectionManager, //
};
use crate::sys::random;

/// The first of the ports that are given to who asks for any; the last is the last of all.
const FIRST_PORT: u16 = 49152;

/// How many of them there are.
const PORTS: u16 = u16::MAX - FIRST_PORT + 1;

/// Why an address or a route could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReserveError {
    /// Somebody else uses the local address.
    InUse,
    /// There is a connection from this address to that destination.
    Exists,
    /// Any port was asked for, and all are in use.
    NoPort,
    /// No memory.
    NoMemory,
}

/// An address in a network namespace, without what does not tell it from others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AddressKey {
    net: u64,
    ip: IpAddr,
    /// The interface of a link-local address.
    scope: u32,
    port: u16,
}

impl AddressKey {
    fn new(net: u64, at: &SocketAddr) -> Self {
        let scope = match at {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(v6) => v6.scope_id(),
        };
        Self {
            net,
            ip: at.ip(),
            scope,
            port: at.port(),
        }
    }
}

struct Tables {
    /// The reserved addresses, each with the number of the device that it is reserved on.
    keys: RBTree<AddressKey, usize>,
    /// Source and destination.
    routes: RBTree<(AddressKey, AddressKey), ()>,
}

/// Everything that is reserved.
#[pin_data]
pub(super) struct AddressTable {
    #[pin]
    tables: SpinLockIrq<Tables>,
}

impl AddressTable {
    /// Nothing is reserved. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                tables <- new_spinlock_irq!(Tables {
                    keys: RBTree::new(),
                    routes: RBTree::new(),
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns true if the address is reserved on that device. Any context.
    pub(super) fn is_reserved(&self, device: usize, net: u64, at: &SocketAddr) -> bool {
        let tables = self.tables.lock();
        tables.keys.get(&AddressKey::new(net, at)) == Some(&device)
    }

    fn has_route(&self, from: AddressKey, to: AddressKey) -> bool {
        self.tables.lock().routes.get(&(from, to)).is_some()
    }

    /// Writes an address down; gives the room back when it is there already.
    fn enter(&self, place: AddressKey, device: usize, room: Room) -> Result<(), Room> {
        let mut tables = self.tables.lock();
        if tables.keys.get(&place).is_some() {
            return Err(room);
        }
        tables.keys.insert(room.into_node(place, device));
        Ok(())
    }

    /// Reserves `at`, or a free port there if it names none; `is_free` says what else is in the
    /// way.
    fn reserve(
        self: &Arc<Self>,
        device: usize,
        net: u64,
        mut at: SocketAddr,
        is_free: impl Fn(&SocketAddr) -> bool,
    ) -> Result<Arc<Reservation>, ReserveError> {
        let mut room = Room::new(GFP_KERNEL).map_err(|_| ReserveError::NoMemory)?;
        let any_port = at.port() == 0;
        let start = u16::from_ne_bytes(random::bytes()) % PORTS;
        for step in 0..if any_port { PORTS } else { 1 } {
            if any_port {
                // OVERFLOW: each term is less than 2^14, and so is the rest of their sum.
                at.set_port(FIRST_PORT + (start + step) % PORTS);
            }
            if !is_free(&at) {
                continue;
            }
            let Err(back) = self.enter(AddressKey::new(net, &at), device, room) else {
                return Reservation::new(self, net, at);
            };
            room = back;
        }
        Err(match any_port {
            true => ReserveError::NoPort,
            false => ReserveError::InUse,
        })
    }
}

/// Room in the table of addresses.
type Room = RBTreeNodeReservation<AddressKey, usize>;

/// A local address that nobody else has; dropping the last reference releases it. Any context.
///
/// # Invariants
///
/// The table of `book` has the address from the time this exists until it is dropped.
pub(crate) struct Reservation {
    book: Arc<AddressTable>,
    net: u64,
    at: SocketAddr,
}

impl Reservation {
    /// For an address that was just written down.
    fn new(book: &Arc<AddressTable>, net: u64, at: SocketAddr) -> Result<Arc<Self>, ReserveError> {
        // INVARIANT: The caller wrote it down; where there is no memory, dropping takes it out.
        let reservation = Self {
            book: book.clone(),
            net,
            at,
        };
        Arc::new(reservation, GFP_KERNEL).map_err(|_| ReserveError::NoMemory)
    }

    /// The address, with its port.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.at
    }

    /// The network namespace.
    pub(super) fn net(&self) -> u64 {
        self.net
    }

    /// Begins a connection to `remote`; the route keeps the address reserved. May sleep.
    ///
    /// [`ReserveError::Exists`] when there is one, [`ReserveError::NoMemory`].
    pub(crate) fn route(self: &Arc<Self>, remote: SocketAddr) -> Result<Route, ReserveError> {
        let ends = (
            AddressKey::new(self.net, &self.at),
            AddressKey::new(self.net, &remote),
        );
        let node = RBTreeNode::new(ends, (), GFP_KERNEL).map_err(|_| ReserveError::NoMemory)?;
        let mut tables = self.book.tables.lock();
        if tables.routes.get(&ends).is_some() {
            drop(tables);
            return Err(ReserveError::Exists);
        }
        tables.routes.insert(node);
        drop(tables);
        // INVARIANT: Written down just now.
        Ok(Route {
            from: self.clone(),
            to: ends.1,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let place = AddressKey::new(self.net, &self.at);
        let gone = self.book.tables.lock().keys.remove_node(&place);
        drop(gone);
    }
}

/// A connection from a reserved address to a destination; dropping it ends it. Any context.
///
/// # Invariants
///
/// The table of the address's book has the route from the time this exists until it is dropped.
pub(crate) struct Route {
    from: Arc<Reservation>,
    to: AddressKey,
}

impl Route {
    /// Where it starts.
    pub(crate) fn from(&self) -> &Arc<Reservation> {
        &self.from
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        let from = &self.from;
        let ends = (AddressKey::new(from.net, &from.at), self.to);
        let gone = from.book.tables.lock().routes.remove_node(&ends);
        drop(gone);
    }
}

impl ConnectionManager {
    /// Reserves a local address of the device with that number; port 0 stands for any from 49152
    /// on. May sleep.
    ///
    /// [`ReserveError::InUse`] and [`ReserveError::NoPort`] also when that device listens there
    /// without a reservation, but not at addresses where that may be for another namespace: nobody
    /// there can take a port away.
    pub(crate) fn reserve(
        &self,
        device: usize,
        net: u64,
        at: SocketAddr,
    ) -> Result<Arc<Reservation>, ReserveError> {
        let listeners = self.listeners.lock();
        let is_free = |at: &SocketAddr| !listeners.iter().any(|l| l.is_at(device, net, at));
        let reserved = self.book.reserve(device, net, at, is_free);
        match reserved {
            Err(ReserveError::InUse | ReserveError::NoPort) if may_be_shared(&at) => {
                self.book.reserve(device, net, at, |_| true)
            }
            Ok(_) | Err(_) => reserved,
        }
    }

    /// Reserves a local address for one connection to `remote`. May sleep.
    ///
    /// [`ReserveError::Exists`] when there is such a connection, [`ReserveError::InUse`] when the
    /// address serves another purpose; else as [`ConnectionManager::reserve`].
    pub(crate) fn reserve_pair(
        &self,
        device: usize,
        net: u64,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Route, ReserveError> {
        let (from, to) = (AddressKey::new(net, &local), AddressKey::new(net, &remote));
        if self.book.has_route(from, to) {
            return Err(ReserveError::Exists);
        }
        self.reserve(device, net, local)?.route(remote)
    }
}
