// SPDX-License-Identifier: GPL-2.0

//! Connections on one host: who listens where, and how two queue pairs find each other.
//!
//! ```text
//! active                          passive
//! connect ---- Offer ----------->  request          (or Refused, Unreachable at once)
//!                                  accept / reject
//! reply(Ok)  <- both attached ->   established
//! closed     <- either side, once each ->  closed
//! ```
//!
//! Where both sides want it, the active side has the last word:
//!
//! ```text
//! connect ---- Offer ----------->  request
//!                                  accept / reject
//! reply(Ok)  <------------------
//! confirm / abandon ------------>                       (or withdraw, or nothing in time)
//!            <- both attached ->   established / not_established
//! ```
//!
//! An [`Offer`] is decided once: accepted, rejected, given up by the active side or timed out;
//! what was accepted and waits for the active side ends once, too.
//! Each side's [`Side`] sees to it that `closed` comes once, and only after the connection was
//! reported up.
//!
//! For an address that no listener of this host serves, [`Exchange::submit`] says which error
//! the user is owed. A transport for the wire will be asked at that point.
//!
//! Context: process, but for [`LinkOwner::disconnected`] and the timer. Lock order: `listeners`,
//! then `open`; the state of an offer and that of a side are leaves; events are told under none of them.

mod address;
mod offer;
mod side;

use core::{
    net::{
        IpAddr,
        SocketAddr, //
    },
    num::NonZeroUsize, //
};

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

pub(crate) use address::{
    NotReserved,
    Reservation,
    Route, //
};
pub(crate) use offer::NotConfirmed;
pub(crate) use offer::{
    Gone,
    NotAccepted,
    Offer, //
};

use address::Book;

use super::{
    qp::QueuePair,
    status::Status,
    transport::{
        ReadLimits,
        Transport, //
    }, //
};

/// Makes the transport between two queue pairs of this host. May sleep.
pub(crate) type Join = fn(&Arc<QueuePair>, &Arc<QueuePair>) -> Result<Arc<dyn Transport>>;

/// How long an offer may wait, in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    /// For the passive side's answer.
    pub(crate) answer_ms: u32,
    /// For that answer when its listener is gone.
    pub(crate) orphan_ms: u32,
    /// For the active side's confirmation.
    pub(crate) confirm_ms: u32,
}

impl Timeouts {
    /// For real life.
    pub(crate) const DEFAULT: Self = Self {
        answer_ms: 60_000,
        orphan_ms: 3_000,
        confirm_ms: 60_000,
    };
}

/// Why nobody listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotListening {
    /// The address is in use on this device.
    InUse,
    /// No memory.
    NoMemory,
}

/// What a connected or connecting side is told. Any context; the face only passes it on.
pub(crate) trait ConnectionEvents: Send + Sync {
    /// To the active side: the answer. Told exactly once for each connect that was taken.
    ///
    /// An error when the answer could not be delivered. An answer that is a failure and carries no
    /// data needs no memory, and is delivered always. Where [`Ask::confirms`] and the passive side
    /// waits for it, a success is only the passive side's consent.
    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result;
    /// To the passive side: the connection that it accepted is up.
    fn established(&self, limits: ReadLimits);
    /// To a passive side that waits for the confirmation, in place of `established`: nothing comes
    /// of what it accepted. `Timeout` when the active side did not confirm in time, else `Aborted`.
    fn not_established(&self, _status: Status) {}
    /// Whether this side, if it is the passive one, waits for the active side's confirmation
    /// before it is connected. After such an accept exactly one of `established` and
    /// `not_established` follows.
    fn confirms(&self) -> bool {
        false
    }
    /// The connection is gone, by the peer or by this side. Told exactly once after it was up; an
    /// error when the event could not be delivered and has to be told again.
    fn closed(&self, by_peer: bool) -> Result;
}

/// What a listener is told.
pub(crate) trait ListenerEvents: Send + Sync {
    /// Somebody wants to connect. An error turns the peer away. Process context.
    fn request(&self, offer: Arc<Offer>) -> Result;
    /// A number that tells the device of this listener from all others.
    fn device(&self) -> usize;
    /// Whether the device of this listener has the address `ip`.
    fn has_addr(&self, ip: IpAddr) -> bool;
    /// Whether this listener, if it is at the IPv6 wildcard, serves IPv4, too.
    fn is_dual(&self) -> bool {
        false
    }
    /// A request was turned away, by the consumer or for want of room.
    fn turned_away(&self) {}
}

/// Somebody who waits for connections at an address.
#[pin_data]
pub(crate) struct Listener {
    /// Identifies the network namespace.
    net: u64,
    /// The address; an unspecified one stands for all addresses of the device.
    at: SocketAddr,
    /// What keeps the address for this listener, if anything does, as long as it listens.
    #[pin]
    held: SpinLockIrq<Option<Arc<Reservation>>>,
    events: KBox<dyn ListenerEvents>,
}

impl Listener {
    /// Whether that device listens here at that address.
    fn is_at(&self, device: usize, net: u64, at: &SocketAddr) -> bool {
        self.net == net && self.at == *at && self.events.device() == device
    }

    /// How well the listener fits a destination, if it does.
    ///
    /// One at an unspecified address serves addresses of this host alone.
    fn rank(&self, ask: &Ask) -> Option<Rank> {
        let (at, to) = (self.at.ip(), ask.remote.ip());
        if self.net != ask.net || self.at.port() != ask.remote.port() {
            return None;
        }
        let same_family = at.is_ipv4() == to.is_ipv4();
        let exact = match at.is_unspecified() {
            false if at == to => true,
            true if same_family || (to.is_ipv4() && self.events.is_dual()) => false,
            true | false => return None,
        };
        let own = self.events.has_addr(to);
        (exact || own || ask.remote_is_here).then_some(Rank {
            exact,
            own,
            same_family,
        })
    }
}

/// How well a listener fits a destination; what comes first counts most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// It is at the address, not at a wildcard.
    exact: bool,
    /// Its device has the address.
    own: bool,
    /// It is not one at the IPv6 wildcard that serves IPv4, too.
    same_family: bool,
}

/// Where connections are made.
#[pin_data]
pub(crate) struct Exchange {
    join: Join,
    timeouts: Timeouts,
    book: Arc<Book>,
    #[pin]
    listeners: Mutex<KVec<Arc<Listener>>>,
    /// Offers that nobody has decided on; their numbers go up and are not used again.
    #[pin]
    open: SpinLockIrq<OpenOffers>,
}

struct OpenOffers {
    offers: KVec<Arc<Offer>>,
    next: NonZeroUsize,
}

/// What the active side asks for.
pub(crate) struct Ask {
    pub(crate) net: u64,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// Whether the remote address is one of this host, in this namespace.
    pub(crate) remote_is_here: bool,
    pub(crate) qp: Arc<QueuePair>,
    pub(crate) limits: ReadLimits,
    pub(crate) private_data: KVec<u8>,
    pub(crate) events: Arc<dyn ConnectionEvents>,
    /// Whether the active side wants to have the last word, by [`Offer::confirm`].
    pub(crate) confirms: bool,
}

impl Exchange {
    /// An exchange without listeners. May sleep. `ENOMEM` when there is no memory.
    pub(crate) fn new(join: Join, timeouts: Timeouts) -> Result<Arc<Self>> {
        let book = Book::new()?;
        Arc::pin_init(
            pin_init!(Self {
                join,
                timeouts,
                book,
                listeners <- new_mutex!(KVec::new()),
                open <- new_spinlock_irq!(OpenOffers {
                    offers: KVec::new(),
                    next: NonZeroUsize::MIN,
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins to listen. May sleep.
    ///
    /// Listeners of several devices may share an address: the connection manager listens on all
    /// of them at a wildcard and at a loopback address, whoever has it. [`NotListening::InUse`] for
    /// the same address twice on one device, unless it is a wildcard, which is the caller's to
    /// refuse, and for an address that is reserved on this device.
    pub(crate) fn listen(
        &self,
        net: u64,
        at: SocketAddr,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, NotListening> {
        self.add(net, at, None, events)
    }

    /// Begins to listen at an address that is reserved for this purpose; the listener keeps it.
    /// May sleep. As [`Exchange::listen`], but one address has one listener, wildcards too.
    pub(crate) fn listen_on(
        &self,
        held: Arc<Reservation>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, NotListening> {
        self.add(held.net(), held.addr(), Some(held), events)
    }

    fn add(
        &self,
        net: u64,
        at: SocketAddr,
        held: Option<Arc<Reservation>>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>, NotListening> {
        let device = events.device();
        let is_held = held.is_some();
        let may_share = at.ip().is_unspecified() && !is_held;
        let listener = pin_init!(Listener {
            net,
            at,
            held <- new_spinlock_irq!(held),
            events,
        });
        let listener = Arc::pin_init(listener, GFP_KERNEL).map_err(|_| NotListening::NoMemory)?;
        let mut listeners = self.listeners.lock();
        let is_taken = !may_share && listeners.iter().any(|l| l.is_at(device, net, &at));
        if is_taken || (!is_held && self.book.is_reserved(device, net, &at)) {
            return Err(NotListening::InUse);
        }
        let pushed = listeners.push(listener.clone(), GFP_KERNEL);
        pushed.map_err(|_| NotListening::NoMemory)?;
        Ok(listener)
    }

    /// Ends listening: no request is told after this returned.
    ///
    /// Requests that were told may still be answered, but not much later: the consumer may never
    /// have heard of them, for the connection manager drops what it did not deliver until then.
    pub(crate) fn unlisten(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|l| !Arc::ptr_eq(l, listener));
        drop(listeners);
        // An offer may keep the listener for longer.
        let held = listener.held.lock().take();
        drop(held);
        let open = self.open.lock();
        for offer in open.offers.iter().filter(|o| o.was_told(listener)) {
            offer.answer_within(self.timeouts.orphan_ms);
        }
    }

    /// Takes an offer to a listener, or answers it.
    pub(crate) fn submit(&self, offer: &Arc<Offer>) {
        offer.answer_within(self.timeouts.answer_ms);
        // Requests are told under this lock, so that none comes after `unlisten`.
        let listeners = self.listeners.lock();
        let ask = &offer.ask;
        let fitting = listeners.iter().filter_map(|l| Some((l.rank(ask)?, l)));
        let told = match fitting.max_by_key(|(rank, _)| *rank) {
            Some((_, listener)) => offer.tell(listener),
            None if ask.remote_is_here => Err(Status::Refused),
            None => Err(Status::Unreachable),
        };
        drop(listeners);
        if let Err(status) = told {
            offer.decide(status, &[]);
        }
    }
}

impl Exchange {
    /// Makes an offer, to be submitted, that can be found by its number until it is decided. May
    /// sleep. `ENOMEM` when there is no memory.
    ///
    /// An offer keeps what both sides are told through: a side that keeps the offer lets go of it
    /// when it is of no more use.
    pub(crate) fn make_offer(self: &Arc<Self>, ask: Ask) -> Result<Arc<Offer>> {
        let number = {
            let mut open = self.open.lock();
            let number = open.next;
            // OVERFLOW: 2^64 connects.
            open.next = number.saturating_add(1);
            number
        };
        let offer = Offer::new(ask, self.clone(), number)?;
        self.open.lock().offers.push(offer.clone(), GFP_ATOMIC)?;
        Ok(offer)
    }

    /// The offer with that number, if nobody has decided on it. Any context.
    pub(crate) fn offer(&self, number: NonZeroUsize) -> Option<Arc<Offer>> {
        let open = self.open.lock();
        open.offers.iter().find(|o| o.number == number).cloned()
    }

    /// Forgets an offer that was decided.
    fn close_offer(&self, number: NonZeroUsize) {
        let mut open = self.open.lock();
        let at = open.offers.iter().position(|o| o.number == number);
        let gone = at.and_then(|at| open.offers.remove(at).ok());
        drop(open);
        drop(gone);
    }
}
