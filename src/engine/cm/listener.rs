// SPDX-License-Identifier: GPL-2.0

//! [`Listener`]: an address at which a consumer takes connections, and how well it fits a request.
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
    waiting::Waiting,
    ConnectParams,
    ConnectRequest,
    Reservation, //
};
use crate::engine::prelude::*;

/// The place of a listener; those of one address are in the order in which they began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    net: u64,
    port: u16,
    ip: IpAddr,
    pub(super) number: NonZeroUsize,
}

impl Place {
    pub(super) fn new(net: u64, at: &SocketAddr, number: NonZeroUsize) -> Self {
        Self {
            net,
            port: at.port(),
            ip: at.ip(),
            number,
        }
    }

    /// The next place at the same address, if there is one.
    pub(super) fn following(self) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        Some(Self { number, ..self })
    }

    pub(super) fn is_beside(&self, other: &Self) -> bool {
        (self.net, self.port, self.ip) == (other.net, other.port, other.ip)
    }

    pub(super) fn has_port_of(&self, other: &Self) -> bool {
        (self.net, self.port) == (other.net, other.port)
    }
}

/// What a listener is notified of.
pub(crate) trait ListenerEvents: Send + Sync {
    /// There is a request. Process context, under a mutex.
    ///
    /// `ENOMEM` when there is no room for the request now: it may come again, see
    /// [`ConnectParams::waits`]. Another error turns the peer away.
    fn request(&self, request: Arc<ConnectRequest>) -> Result;
    /// A number that only the device of this listener has.
    fn device(&self) -> usize;
    /// Returns true if the device of this listener has the address `ip`.
    fn has_addr(&self, ip: IpAddr) -> bool;
    /// Returns true if this listener may be asked for other addresses of this host than its device
    /// has.
    fn serves_others(&self) -> bool {
        true
    }
    /// Returns true if this listener, if it is at the IPv6 wildcard, serves IPv4, too.
    fn is_dual(&self) -> bool {
        false
    }
    /// A number by which the face knows the consumer of this listener, if it wants to.
    fn consumer(&self) -> Option<usize> {
        None
    }
    /// A request was rejected, by the consumer or for want of room.
    fn rejected(&self) {}
}

/// A consumer that takes connections at an address.
#[pin_data]
pub(crate) struct Listener {
    /// Identifies the network namespace that it listens in.
    net: u64,
    /// The address; an unspecified one stands for all addresses of the device.
    pub(super) at: SocketAddr,
    /// Numbers go up in the order in which listeners began.
    number: NonZeroUsize,
    /// What keeps the address for this listener, if anything does, as long as it listens.
    #[pin]
    held: SpinLockIrq<Option<Arc<Reservation>>>,
    is_over: AtomicFlag,
    /// Requests that it had no room for.
    #[pin]
    pub(super) waiting: Waiting,
    pub(super) events: KBox<dyn ListenerEvents>,
}

impl Listener {
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
                waiting <- Waiting::new(),
                events,
            }),
            GFP_KERNEL,
        )
    }

    /// The place that the table of listeners has for it.
    pub(super) fn place(&self) -> Place {
        Place::new(self.net, &self.at, self.number)
    }

    /// Returns true if it listens on that device where requests to `at` come, or some of those to
    /// `at` if that is a wildcard. `is_dual` is true if that one, where it is IPv6's, serves IPv4.
    pub(super) fn shares(&self, device: usize, net: u64, at: &SocketAddr, is_dual: bool) -> bool {
        let (ours, theirs) = (self.at.ip(), at.ip());
        let is_under = || {
            is_wildcard_for(ours, self.events.is_dual(), theirs)
                || is_wildcard_for(theirs, is_dual, ours)
        };
        self.events.device() == device
            && (address(self.net, &self.at) == address(net, at)
                || (self.net == net && self.at.port() == at.port() && is_under()))
    }

    /// Returns true if the address was reserved for it.
    pub(super) fn is_held(&self) -> bool {
        self.held.lock().is_some()
    }

    /// It listens no more. A request may keep it for longer.
    pub(super) fn end(&self) {
        self.is_over.store(true, Release);
        let held = self.held.lock().take();
        drop(held);
    }

    /// Returns true if it listens no more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Acquire)
    }

    /// How well the listener fits a destination, if it does.
    ///
    /// One at an unspecified address serves addresses of this host alone.
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

/// Returns true if `at` stands for all addresses of a family that `ip` belongs to; IPv6's does for
/// IPv4 if it is `is_dual`.
fn is_wildcard_for(at: IpAddr, is_dual: bool, ip: IpAddr) -> bool {
    at.is_unspecified() && (at.is_ipv4() == ip.is_ipv4() || (ip.is_ipv4() && is_dual))
}

/// How well a listener fits a destination; what comes first counts most: it is at the address, not
/// at a wildcard; its device has the address; it is not one at the IPv6 wildcard that serves IPv4,
/// too; it began to listen earlier.
pub(super) type Rank = (bool, bool, bool, Reverse<NonZeroUsize>);
