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

use core::net::IpAddr;
use core::net::SocketAddr;
use core::num::NonZeroUsize;

use kernel::impl_has_work;
use kernel::new_mutex;
use kernel::new_spinlock_irq;
use kernel::new_work;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::sync::Mutex;
use kernel::sync::SetOnce;
use kernel::sync::SpinLockIrq;
use kernel::workqueue::Work as WorkStruct;
use kernel::workqueue::WorkItem;

use super::counters::Counter;
use super::qp::QueuePair;
use super::status::Status;
use super::transport::Link;
use super::transport::LinkOwner;
use super::transport::ReadLimits;
use super::transport::Transport;
use crate::sys::timer::Expires;
use crate::sys::timer::Timer;

/// Makes the transport between two queue pairs of this host. May sleep.
pub(crate) type Join = fn(&Arc<QueuePair>, &Arc<QueuePair>) -> Result<Arc<dyn Transport>>;

/// How long a request may go unanswered, in milliseconds.
const ANSWER_MS: u32 = 60_000;

/// How soon an event is told again that the consumer's side had no memory for, in milliseconds.
const RETRY_MS: u32 = 20;

/// What a connected or connecting side is told. Any context; the face only passes it on.
pub(crate) trait ConnectionEvents: Send + Sync {
    /// To the active side: the answer. Told exactly once for each connect that was taken.
    ///
    /// An error when the answer could not be delivered. An answer that is a failure and carries no
    /// data needs no memory, and is delivered always.
    fn reply(&self, answer: Result<Up<'_>, Status>, private_data: &[u8]) -> Result;
    /// To the passive side: the connection that it accepted is up.
    fn established(&self, up: Up<'_>);
    /// The connection is gone. Told exactly once after it was up; an error when the event could
    /// not be delivered and has to be told again.
    fn closed(&self) -> Result;
}

/// A connection that came up, as one side sees it.
#[derive(Clone, Copy)]
pub(crate) struct Up<'a> {
    pub(crate) offer: &'a Offer,
    pub(crate) limits: ReadLimits,
}

/// What a listener is told.
pub(crate) trait ListenerEvents: Send + Sync {
    /// Somebody wants to connect. An error turns the peer away. Process context.
    fn request(&self, offer: Arc<Offer>) -> Result;
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
    /// Listeners of several devices may share an unspecified address, as the connection manager
    /// makes them for a wildcard; the same address twice on one device is the caller's to refuse.
    pub(crate) fn listen(
        &self,
        net: u64,
        at: SocketAddr,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Listener>> {
        let listener = Arc::new(Listener { net, at, events }, GFP_KERNEL)?;
        let mut listeners = self.listeners.lock();
        if !at.ip().is_unspecified() && listeners.iter().any(|l| l.net == net && l.at == at) {
            return Err(EADDRINUSE);
        }
        listeners.push(listener.clone(), GFP_KERNEL)?;
        Ok(listener)
    }

    /// Ends listening: no request is told after this returned.
    pub(crate) fn unlisten(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|l| !Arc::ptr_eq(l, listener));
    }

    /// Asks for a connection. After `Ok` the answer is told exactly once.
    pub(crate) fn connect(self: &Arc<Self>, ask: Ask) -> Result<Arc<Offer>> {
        let offer = self.make_offer(ask)?;
        self.submit(&offer);
        Ok(offer)
    }

    /// Takes an offer to a listener, or answers it.
    pub(crate) fn submit(&self, offer: &Arc<Offer>) {
        offer.timer.arm(offer, ANSWER_MS);
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

/// A connection that one side asked for.
#[pin_data]
pub(crate) struct Offer {
    ask: Ask,
    exchange: Arc<Exchange>,
    number: NonZeroUsize,
    active: Arc<Side>,
    /// Who was told.
    listener: SetOnce<Arc<Listener>>,
    #[pin]
    open: SpinLockIrq<bool>,
    #[pin]
    timer: Timer<Self>,
}

impl Offer {
    fn new(ask: Ask, exchange: Arc<Exchange>, number: NonZeroUsize) -> Result<Arc<Self>> {
        let active = Side::new(ask.qp.clone(), ask.events.clone())?;
        Arc::pin_init(
            pin_init!(Self {
                ask,
                exchange,
                number,
                active,
                listener: SetOnce::new(),
                open <- new_spinlock_irq!(true),
                timer <- Timer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Names the offer as long as it is not decided.
    pub(crate) fn number(&self) -> NonZeroUsize {
        self.number
    }

    /// Tells a listener; one that has no room for the request turns it away.
    fn tell(self: &Arc<Self>, listener: &Arc<Listener>) -> Result<(), Status> {
        self.listener.populate(listener.clone());
        let told = listener.events.request(self.clone());
        told.map_err(|_| {
            listener.events.turned_away();
            Status::Refused
        })
    }

    /// The address of the active side.
    pub(crate) fn active_addr(&self) -> SocketAddr {
        self.ask.local
    }

    /// The address that was asked for.
    pub(crate) fn passive_addr(&self) -> SocketAddr {
        self.ask.remote
    }

    /// The limits that the active side asked for.
    pub(crate) fn limits(&self) -> ReadLimits {
        self.ask.limits
    }

    /// What the active side sent along.
    pub(crate) fn private_data(&self) -> &[u8] {
        &self.ask.private_data
    }

    /// Takes the right to decide; there is one.
    fn take_decision(&self) -> bool {
        let was_open = core::mem::replace(&mut *self.open.lock(), false);
        if was_open {
            self.timer.cancel();
            self.exchange.close_offer(self.number);
        }
        was_open
    }

    /// Decides against the connection; whoever comes second decides nothing.
    fn decide(&self, status: Status, private_data: &[u8]) -> bool {
        if !self.take_decision() {
            return false;
        }
        let adapter = self.ask.qp.adapter();
        adapter.count(Counter::ConnectFailures, 1);
        self.answer_no(status, private_data);
        true
    }

    /// Tells the active side that there is no connection; without the data if they find no room.
    fn answer_no(&self, status: Status, private_data: &[u8]) {
        let events = &self.ask.events;
        let told = events.reply(Err(status), private_data);
        if told.is_err() && events.reply(Err(status), &[]).is_err() {
            let qp = &self.ask.qp;
            qp.adapter()
                .warn(qp.number(), fmt!("the answer to its connect was lost"));
        }
    }

    /// The passive side says no. `ECONNABORTED` when the active side is gone.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result {
        if !self.decide(Status::Refused, private_data) {
            return Err(ECONNABORTED);
        }
        if let Some(listener) = self.listener.as_ref() {
            listener.events.turned_away();
        }
        Ok(())
    }

    /// The active side gives up.
    pub(crate) fn abandon(&self) {
        self.decide(Status::Aborted, &[]);
    }

    /// The passive side says yes: both are connected, and told so.
    ///
    /// `ECONNABORTED` when the active side is gone; any other error is one of the passive queue
    /// pair's, and the active side is told that it was refused.
    pub(crate) fn accept(
        &self,
        qp: &Arc<QueuePair>,
        limits: ReadLimits,
        private_data: &[u8],
        events: Arc<dyn ConnectionEvents>,
    ) -> Result {
        if !self.take_decision() {
            return Err(ECONNABORTED);
        }
        let (ours, theirs) = negotiate(limits, self.ask.limits);
        let passive = match self.attach(qp, ours, theirs, events.clone()) {
            Ok(passive) => passive,
            Err(e) => {
                qp.fail();
                self.ask.qp.fail();
                let adapter = self.ask.qp.adapter();
                adapter.count(Counter::ConnectFailures, 1);
                self.answer_no(Status::Refused, &[]);
                return Err(e);
            }
        };
        qp.adapter().count(Counter::Accepts, 1);
        self.ask.qp.adapter().count(Counter::Connects, 1);
        let up = |limits| Up {
            offer: self,
            limits,
        };
        events.established(up(ours));
        passive.up();
        if self.ask.events.reply(Ok(up(theirs)), private_data).is_err() {
            // The active side never hears that it was connected, so it must not be.
            self.active.forget();
            self.ask.qp.fail();
            self.answer_no(Status::Aborted, &[]);
            return Ok(());
        }
        self.active.up();
        Ok(())
    }

    fn attach(
        &self,
        qp: &Arc<QueuePair>,
        ours: ReadLimits,
        theirs: ReadLimits,
        events: Arc<dyn ConnectionEvents>,
    ) -> Result<Arc<Side>> {
        let passive = Side::new(qp.clone(), events)?;
        let transport = (self.exchange.join)(&self.ask.qp, qp)?;
        let link = |end, owner| Link {
            transport: transport.clone(),
            end,
            owner,
        };
        qp.attach(link(1, passive.clone()), ours)?;
        let attached = self.ask.qp.attach(link(0, self.active.clone()), theirs);
        if attached.is_err() {
            passive.forget();
            return Err(ECONNABORTED);
        }
        // What one side posted before the other was connected waits for this.
        qp.ring();
        self.ask.qp.ring();
        Ok(passive)
    }
}

impl Expires for Offer {
    fn expired(this: Arc<Self>) {
        this.decide(Status::Timeout, &[]);
    }
}

/// What each side may read from the other: no more than asked, no more than the other serves.
fn negotiate(passive: ReadLimits, active: ReadLimits) -> (ReadLimits, ReadLimits) {
    let side = |own: ReadLimits, other: ReadLimits| ReadLimits {
        inbound: own.inbound,
        outbound: own.outbound.min(other.inbound),
    };
    (side(passive, active), side(active, passive))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not reported up yet.
    Opening,
    /// Gone before it was reported up.
    GoneEarly,
    /// Reported up.
    Up,
    /// Gone; told, or being told.
    Gone,
}

/// One side of a connection: tells its end once.
#[pin_data]
pub(crate) struct Side {
    qp: Arc<QueuePair>,
    events: Arc<dyn ConnectionEvents>,
    #[pin]
    stage: SpinLockIrq<Stage>,
    #[pin]
    work: WorkStruct<Self>,
    #[pin]
    retry: Timer<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Side { self.work }
}

impl Side {
    fn new(qp: Arc<QueuePair>, events: Arc<dyn ConnectionEvents>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                qp,
                events,
                stage <- new_spinlock_irq!(Stage::Opening),
                work <- new_work!("ndk_side"),
                retry <- Timer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The connection was reported up: its end may be told from now on.
    fn up(self: &Arc<Self>) {
        let mut stage = self.stage.lock();
        let gone = *stage == Stage::GoneEarly;
        *stage = if gone { Stage::Gone } else { Stage::Up };
        drop(stage);
        if gone {
            self.tell_later();
        }
    }

    /// The connection never came up: nothing is told.
    fn forget(&self) {
        *self.stage.lock() = Stage::Gone;
    }

    fn tell_later(self: &Arc<Self>) {
        let _ = self.qp.adapter().softirqs().enqueue(self.clone());
    }
}

impl LinkOwner for Side {
    fn disconnected(self: Arc<Self>) {
        let mut stage = self.stage.lock();
        let tell = *stage == Stage::Up;
        *stage = match *stage {
            Stage::Opening | Stage::GoneEarly => Stage::GoneEarly,
            Stage::Up | Stage::Gone => Stage::Gone,
        };
        drop(stage);
        if tell {
            self.tell_later();
        }
    }
}

impl WorkItem for Side {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.events.closed().is_err() {
            this.retry.arm(&this, RETRY_MS);
        }
    }
}

impl Expires for Side {
    fn expired(this: Arc<Self>) {
        this.tell_later();
    }
}
