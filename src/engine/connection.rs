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
//! An [`Offer`] is decided once: accepted, rejected, given up by the active side or timed out.
//! Each side's [`Side`] sees to it that `closed` comes once, and only after the connection was
//! reported up.
//!
//! For an address that no listener of this host serves, [`Exchange::connect`] says which error
//! the user is owed. A transport for the wire will be asked at that point.
//!
//! Context: process, but for [`LinkOwner::disconnected`] and the timer. Lock order: `listeners`,
//! then `open`; the state of an offer and that of a side are leaves; events are told under none of them.

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

pub(crate) use offer::Offer;

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

/// How long a request may go unanswered, in milliseconds.
const ANSWER_MS: u32 = 60_000;

/// How long it may still go unanswered when its listener is gone.
const ORPHAN_MS: u32 = 3_000;

/// What a connected or connecting side is told. Any context; the face only passes it on.
pub(crate) trait ConnectionEvents: Send + Sync {
    /// To the active side: the answer. Told exactly once for each connect that was taken.
    ///
    /// An error when the answer could not be delivered. An answer that is a failure and carries no
    /// data needs no memory, and is delivered always.
    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result;
    /// To the passive side: the connection that it accepted is up.
    fn established(&self, limits: ReadLimits);
    /// The connection is gone. Told exactly once after it was up; an error when the event could
    /// not be delivered and has to be told again.
    fn closed(&self) -> Result;
}

/// What a listener is told.
pub(crate) trait ListenerEvents: Send + Sync {
    /// Somebody wants to connect. An error turns the peer away. Process context.
    fn request(&self, offer: Arc<Offer>) -> Result;
    /// A number that tells the device of this listener from all others.
    fn device(&self) -> usize;
    /// Whether the device of this listener has the address `ip`.
    fn has_addr(&self, ip: IpAddr) -> bool;
    /// A request was turned away, by the consumer or for want of room.
    fn turned_away(&self) {}
}

/// Somebody who waits for connections at an address.
pub(crate) struct Listener {
    /// Identifies the network namespace.
    net: u64,
    /// The address; an unspecified one stands for all addresses of the device.
    at: SocketAddr,
    events: KBox<dyn ListenerEvents>,
}

impl Listener {
    /// How well the listener fits a destination: 0 not at all.
    ///
    /// One at an unspecified address serves addresses of this host alone.
    fn fitness(&self, ask: &Ask) -> u32 {
        let to = &ask.remote;
        if self.net != ask.net || self.at.port() != to.port() {
            return 0;
        }
        let same_family = self.at.is_ipv4() == to.is_ipv4();
        match self.at.ip().is_unspecified() {
            false if self.at.ip() == to.ip() && self.events.has_addr(to.ip()) => 4,
            false if self.at.ip() == to.ip() => 3,
            true if same_family && self.events.has_addr(to.ip()) => 2,
            true if same_family && ask.remote_is_here => 1,
            true | false => 0,
        }
    }
}

/// Where connections are made.
#[pin_data]
pub(crate) struct Exchange {
    join: Join,
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
}

impl Exchange {
    /// An exchange without listeners.
    pub(crate) fn new(join: Join) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                join,
                listeners <- new_mutex!(KVec::new()),
                open <- new_spinlock_irq!(OpenOffers {
                    offers: KVec::new(),
                    next: NonZeroUsize::MIN,
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins to listen.
    ///
    /// Listeners of several devices may share an address: the connection manager listens on all
    /// of them at a wildcard and at a loopback address, whoever has it. `EADDRINUSE` for the same
    /// address twice on one device, unless it is a wildcard, which is the caller's to refuse.
    pub(crate) fn listen(
        &self,
        net: u64,
        at: SocketAddr,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>> {
        let listener = Arc::new(Listener { net, at, events }, GFP_KERNEL)?;
        let mut listeners = self.listeners.lock();
        let device = listener.events.device();
        let is_same = |l: &Arc<Listener>| l.net == net && l.at == at && l.events.device() == device;
        if !at.ip().is_unspecified() && listeners.iter().any(is_same) {
            return Err(EADDRINUSE);
        }
        listeners.push(listener.clone(), GFP_KERNEL)?;
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
        let open = self.open.lock();
        for offer in open.offers.iter().filter(|o| o.was_told(listener)) {
            offer.answer_within(ORPHAN_MS);
        }
    }

    /// Takes an offer to a listener, or answers it.
    pub(crate) fn submit(&self, offer: &Arc<Offer>) {
        offer.answer_within(ANSWER_MS);
        // Requests are told under this lock, so that none comes after `unlisten`.
        let listeners = self.listeners.lock();
        let ask = &offer.ask;
        let best = listeners.iter().max_by_key(|l| l.fitness(ask));
        let told = match best.filter(|l| l.fitness(ask) > 0) {
            Some(listener) => offer.tell(listener),
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
    /// Makes an offer, to be submitted, that can be found by its number until it is decided.
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
