// SPDX-License-Identifier: GPL-2.0

//! Listening, and the reservation of local addresses.
//!
//! Listeners of the verbs face reserve nothing: `rdma_cm` has a table of its own. They and the
//! reservations of the same device keep out of each other's way nevertheless.
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

/// The first of the ports from which port 0 chooses; the last is 65535.
const FIRST_PORT: u16 = 49152;

/// The number of these ports.
const PORTS: u16 = u16::MAX - FIRST_PORT + 1;

impl ConnectionManager {
    /// Begins to listen. May sleep.
    ///
    /// On one device an address has one listener in each network namespace, and a wildcard counts
    /// as each address that it serves: the first to have a port keeps it, as with TCP. Among
    /// themselves listeners of `rdma_cm` have never one port; those of the NDK face are in no table
    /// of that. Listeners of several devices may share an address: `rdma_cm` listens on all of them
    /// at a wildcard and at a loopback address, whichever has it.
    ///
    /// [`AddressError::InUse`] if the port is another's, and for an address that is reserved on
    /// this device; [`AddressError::NoMemory`].
    pub(crate) fn listen(
        &self,
        net: u64,
        at: SocketAddr,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, AddressError> {
        self.add_listener(net, at, None, events)
    }

    /// Begins to listen at an address that is reserved for this purpose; the listener keeps it.
    /// May sleep. As [`ConnectionManager::listen`], but one reserved address has one listener.
    pub(crate) fn listen_on(
        &self,
        held: Arc<Reservation>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, AddressError> {
        self.add_listener(held.net(), held.addr(), Some(held), events)
    }

    fn add_listener(
        &self,
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
        // A reserved address has one listener, and beside it may be one at the wildcard.
        let is_apart = |l: &Listener| is_held && l.is_held() && l.at != at;
        let is_taken = listeners
            .around(net, at)
            .any(|l| l.shares(device, net, &at, is_dual) && !is_apart(l));
        if is_taken || (!is_held && self.addresses.reserves(device, net, &at)) {
            return Err(AddressError::InUse);
        }
        let added = listeners.add(listener.clone());
        added.map_err(|_| AddressError::NoMemory)?;
        Ok(listener)
    }

    /// Ends listening: no request is reported after this returned.
    ///
    /// Requests that were notified may still be answered, but not much later: the consumer may
    /// never have heard of them, for `iw_cm` drops what it did not deliver until then.
    pub(crate) fn unlisten(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.remove(listener);
        drop(listeners);
        listener.end();
        // Nothing joins those that wait at a listener that is not in the table.
        listener.release_waiting();
        // No later request was notified.
        let end = self.open.lock().next;
        let mut from = NonZeroUsize::MIN;
        while let Some(request) = self.first_open(from).filter(|r| r.number < end) {
            if request.was_notified(listener) {
                request.answer_within(self.timeouts.orphan_ms);
            }
            from = request.number.saturating_add(1);
        }
    }

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
            let mut others = listeners.around(net, *at).filter(|l| !l.is_held());
            !others.any(|l| l.shares(device, net, at, false))
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
