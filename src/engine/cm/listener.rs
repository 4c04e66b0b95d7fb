// SPDX-License-Identifier: GPL-2.0

//! [`Listener`]: an address at which a consumer takes connections, and its rank for a request.
//!
//! Tests: `engine/cm/offer/tests.rs`.

use core::{
    cmp::Reverse,
    net::{
        IpAddr,
        SocketAddr, //
    },
    num::NonZeroUsize, //
};

use kernel::sync::atomic::{
    Acquire,
    AtomicFlag,
    Release, //
};

use super::{
    address::address,
    carrier::RemoteListener,
    waiting::Waiting,
    ConnectParams,
    ConnectRequest,
    Reservation, //
};
use crate::{
    engine::prelude::*,
    sys::netdev::NetDev, //
};

/// The key of a listener in the table; listeners of one address are in the order in which they
/// began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListenerKey {
    net: u64,
    port: u16,
    ip: IpAddr,
    pub(super) number: NonZeroUsize,
}

impl ListenerKey {
    /// The key of listener `number` at the IP address and port of `at`; the IPv6 scope does not
    /// count.
    pub(super) fn new(net: u64, at: &SocketAddr, number: NonZeroUsize) -> Self {
        Self {
            net,
            port: at.port(),
            ip: at.ip(),
            number,
        }
    }

    /// The next key at the same address, if there is one.
    pub(super) fn following(self) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        Some(Self { number, ..self })
    }

    /// Returns true if both keys are at one IP address and port of one network namespace.
    pub(super) fn is_at_address_of(&self, other: &Self) -> bool {
        (self.net, self.port, self.ip) == (other.net, other.port, other.ip)
    }

    /// Returns true if both keys are at one port of one network namespace, at any IP address.
    pub(super) fn has_port_of(&self, other: &Self) -> bool {
        (self.net, self.port) == (other.net, other.port)
    }
}

/// The events and the properties of a listener.
pub(crate) trait ListenerEvents: Send + Sync {
    /// Reports a request. Process context, under a mutex.
    ///
    /// `ENOMEM` if there is no room for the request now: the request may come again, see
    /// [`ConnectParams::retries_when_full`]. Any other error refuses the request.
    fn request(&self, request: Arc<ConnectRequest>) -> Result;
    /// Returns the number of the device of this listener; no other device has that number.
    fn device(&self) -> usize;
    /// Returns the network device of that device, if it has one now.
    fn netdev(&self) -> Option<NetDev>;
    /// Returns true if the device of this listener has the address `ip`.
    fn has_addr(&self, ip: IpAddr) -> bool;
    /// Returns true if this listener also serves addresses of this host that its device does not
    /// have.
    fn serves_others(&self) -> bool {
        true
    }
    /// Returns true if this listener, at the IPv6 wildcard, serves IPv4, too.
    fn is_dual(&self) -> bool {
        false
    }
    /// Returns the face's number for the consumer of this listener, if the face has one.
    fn consumer(&self) -> Option<usize> {
        None
    }
    /// Reports that a request was rejected, by the consumer or by an error of
    /// [`ListenerEvents::request`].
    fn rejected(&self) {}
}

/// A consumer that takes connections at an address.
#[pin_data]
pub(crate) struct Listener {
    /// The identity of the network namespace.
    pub(crate) net: u64,
    /// The address; an unspecified one stands for all addresses of the device.
    pub(crate) at: SocketAddr,
    /// Numbers go up in the order in which listeners began.
    number: NonZeroUsize,
    /// The reservation of the address, if there is one, as long as the listener listens.
    #[pin]
    held: SpinLockIrq<Option<Arc<Reservation>>>,
    is_over: AtomicFlag,
    /// Takes connections of other hosts until the listener ends.
    #[pin]
    pub(super) remote: SpinLockIrq<Option<KBox<dyn RemoteListener>>>,
    /// Requests that found no room.
    #[pin]
    pub(super) waiting: Waiting,
    pub(crate) events: KBox<dyn ListenerEvents>,
}

impl Listener {
    /// A listener that is not in the table; `held` is the reservation of `at`, if there is one. May
    /// sleep. `ENOMEM` when there is no memory.
    pub(super) fn new(
        net: u64,
        at: SocketAddr,
        number: NonZeroUsize,
        held: Option<Arc<Reservation>>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                net,
                at,
                number,
                held <- new_spinlock_irq!(held),
                is_over: AtomicFlag::new(false),
                remote <- new_spinlock_irq!(None),
                waiting <- Waiting::new(),
                events,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the key of this listener in the table.
    pub(super) fn key(&self) -> ListenerKey {
        ListenerKey::new(self.net, &self.at, self.number)
    }

    /// Returns true if this listener is on that device, and can serve a destination that a listener
    /// at `at` can serve: both are at one address, or one is at a wildcard for the other. `is_dual`
    /// is true if `at`, as the IPv6 wildcard, serves IPv4, too.
    pub(super) fn overlaps(&self, device: usize, net: u64, at: &SocketAddr, is_dual: bool) -> bool {
        let (ours, theirs) = (self.at.ip(), at.ip());
        let is_under = || {
            is_wildcard_for(ours, self.events.is_dual(), theirs)
                || is_wildcard_for(theirs, is_dual, ours)
        };
        self.events.device() == device
            && (address(self.net, &self.at) == address(net, at)
                || (self.net == net && self.at.port() == at.port() && is_under()))
    }

    /// Returns true if the listener holds a reservation of its address.
    pub(super) fn is_reserved(&self) -> bool {
        self.held.lock().is_some()
    }

    /// Ends listening. A request may hold the listener for longer. May sleep.
    pub(super) fn end(&self) {
        self.is_over.store(true, Release);
        let remote = self.remote.lock().take();
        drop(remote);
        let held = self.held.lock().take();
        drop(held);
    }

    /// Returns true if the listener listens no more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Acquire)
    }

    /// Returns the rank of this listener for a destination, if the listener serves it.
    ///
    /// A listener at a wildcard serves addresses of this host alone.
    pub(super) fn rank(&self, params: &ConnectParams) -> Option<Rank> {
        let (at, to) = (self.at.ip(), params.remote.ip());
        if self.net != params.net || self.at.port() != params.remote.port() {
            return None;
        }
        let same_family = at.is_ipv4() == to.is_ipv4();
        let is_exact = at == to;
        if !is_exact && !is_wildcard_for(at, self.events.is_dual(), to) {
            return None;
        }
        let is_own = self.events.has_addr(to);
        let serves = is_own || (self.events.serves_others() && (is_exact || params.remote_is_here));
        serves.then_some((is_exact, is_own, same_family, Reverse(self.number)))
    }
}

/// Returns true if `at` is a wildcard that covers `ip`; the IPv6 wildcard covers IPv4 if `is_dual`.
fn is_wildcard_for(at: IpAddr, is_dual: bool, ip: IpAddr) -> bool {
    at.is_unspecified() && (at.is_ipv4() == ip.is_ipv4() || (ip.is_ipv4() && is_dual))
}

/// The fit of a listener for a destination. The first term that differs decides: the listener is at
/// the address, not at a wildcard; its device has the address; its address family is that of the
/// destination; it began to listen earlier.
pub(super) type Rank = (bool, bool, bool, Reverse<NonZeroUsize>);
