// SPDX-License-Identifier: GPL-2.0

//! Listening, and the reservation of local addresses.
//!
//! Listeners of the verbs face reserve no address: `rdma_cm` has its own table. Even so, such a
//! listener and a reservation on one device never share an address.
//!
//! Context: process; all of it may sleep.

#[cfg(ndk_kunit)]
mod tests;

use core::{
    net::SocketAddr,
    num::NonZeroUsize, //
};

use super::{
    AddressError,
    ConnectionManager,
    Listener,
    ListenerEvents,
    Reservation,
    Route, //
};
use crate::{
    engine::prelude::*,
    sys::random, //
};

/// The first port that port 0 may stand for; the last is 65535.
const FIRST_PORT: u16 = 49152;

/// The number of these ports.
const PORTS: u16 = u16::MAX - FIRST_PORT + 1;

impl ConnectionManager {
    /// Begins to listen. May sleep.
    ///
    /// On one device an address has one listener in each network namespace, and a wildcard counts
    /// as each address that it serves: the first listener of a port keeps it, as with TCP.
    /// `rdma_cm` never gives two of its own listeners one port, but its table lacks the listeners
    /// of the NDK face. Listeners of several devices may share an address: `rdma_cm` listens on all
    /// devices at a wildcard and at a loopback address, whichever device has it.
    ///
    /// [`AddressError::InUse`] if another listener has the port, or the address is reserved on this
    /// device; [`AddressError::NoMemory`].
    pub(crate) fn listen(
        self: &Arc<Self>,
        net: u64,
        at: SocketAddr,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, AddressError> {
        self.add_listener(net, at, None, events)
    }

    /// Begins to listen at an address that is reserved for this purpose; the listener keeps the
    /// reservation. May sleep. As [`ConnectionManager::listen`], but one reserved address has one
    /// listener.
    pub(crate) fn listen_on(
        self: &Arc<Self>,
        held: Arc<Reservation>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, AddressError> {
        self.add_listener(held.net(), held.addr(), Some(held), events)
    }

    fn add_listener(
        self: &Arc<Self>,
        net: u64,
        at: SocketAddr,
        held: Option<Arc<Reservation>>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, AddressError> {
        let (device, is_dual) = (events.device(), events.is_dual());
        let is_held = held.is_some();
        let listener = Listener::new(net, at, self.next_number(), held, events)
            .map_err(|_| AddressError::NoMemory)?;
        let mut listeners = self.listeners.lock();
        // Two reserved addresses may have one listener each, even if one is the wildcard.
        let is_apart = |l: &Listener| is_held && l.is_reserved() && l.at != at;
        let is_taken = listeners
            .overlapping(net, at)
            .any(|l| l.overlaps(device, net, &at, is_dual) && !is_apart(l));
        if is_taken || (!is_held && self.addresses.reserves(device, net, &at)) {
            return Err(AddressError::InUse);
        }
        let added = listeners.add(listener.clone());
        added.map_err(|_| AddressError::NoMemory)?;
        drop(listeners);
        self.take_connections(&listener);
        Ok(listener)
    }

    /// Ends listening: no request is reported after the return.
    ///
    /// A request that was reported may still be answered, but only for a short time: the consumer
    /// may not know the request, for `iw_cm` drops requests that are not delivered when listening
    /// ends.
    pub(crate) fn unlisten(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.remove(listener);
        drop(listeners);
        listener.end();
        // No request joins those that wait at a listener that is not in the table.
        listener.release_waiting();
        // Later requests were not offered to this listener.
        let end = self.open.lock().next;
        let mut from = NonZeroUsize::MIN;
        while let Some(request) = self.first_open(from).filter(|r| r.number < end) {
            if request.was_notified(listener) {
                request.answer_within(self.timeouts.orphan_ms);
            }
            from = request.number.saturating_add(1);
        }
    }

    /// Reserves a local address of the device with that number; port 0 stands for any port from
    /// 49152 on. May sleep.
    ///
    /// [`AddressError::InUse`] and [`AddressError::NoPort`] also when that device listens there, or
    /// at the wildcard of that port, without a reservation. [`AddressError::NoMemory`].
    pub(crate) fn reserve(
        &self,
        device: usize,
        net: u64,
        at: SocketAddr,
    ) -> Result<Arc<Reservation>, AddressError> {
        // All reservations are made under this lock.
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
            candidates.filter(|at| !self.addresses.is_reserved(net, at))
        };
        let is_free = |at: &SocketAddr| {
            let mut others = listeners.overlapping(net, *at).filter(|l| !l.is_reserved());
            !others.any(|l| l.overlaps(device, net, at, false))
        };
        let at = unreserved().find(is_free).ok_or(why)?;
        Reservation::new(&self.addresses, device, net, at)
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
        if self.addresses.has_route(net, &local, &remote) {
            return Err(AddressError::Exists);
        }
        self.reserve(device, net, local)?.route(remote)
    }
}
