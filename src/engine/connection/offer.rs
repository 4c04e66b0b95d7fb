// SPDX-License-Identifier: GPL-2.0

//! [`Offer`]: a connection that one side asked for, decided once.

use core::{
    net::SocketAddr,
    num::NonZeroUsize, //
};

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SetOnce,
        SpinLockIrq, //
    }, //
};

use super::{side::Side, Ask, ConnectionEvents, Exchange, Listener};
use crate::{
    engine::{
        counters::Counter,
        qp::QueuePair,
        status::Status,
        transport::{
            Link,
            ReadLimits, //
        }, //
    },
    sys::timer::{
        Expires,
        Timer, //
    }, //
};

/// A connection that one side asked for.
#[pin_data]
pub(crate) struct Offer {
    pub(super) ask: Ask,
    exchange: Arc<Exchange>,
    pub(super) number: NonZeroUsize,
    active: Arc<Side>,
    /// Who was told.
    listener: SetOnce<Arc<Listener>>,
    #[pin]
    open: SpinLockIrq<bool>,
    #[pin]
    timer: Timer<Self>,
}

impl Offer {
    pub(super) fn new(
        ask: Ask,
        exchange: Arc<Exchange>,
        number: NonZeroUsize,
    ) -> Result<Arc<Self>> {
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
    pub(super) fn tell(self: &Arc<Self>, listener: &Arc<Listener>) -> Result<(), Status> {
        self.listener.populate(listener.clone());
        let told = listener.events.request(self.clone());
        told.map_err(|_| {
            listener.events.turned_away();
            Status::Refused
        })
    }

    /// Whether that listener was told.
    pub(super) fn was_told(&self, listener: &Arc<Listener>) -> bool {
        let told = self.listener.as_ref();
        told.is_some_and(|l| Arc::ptr_eq(l, listener))
    }

    /// Sees to it that somebody decides within that time, in milliseconds.
    pub(super) fn answer_within(self: &Arc<Self>, ms: u32) {
        // Under the lock: a timer armed after the decision would have nobody to cancel it.
        let open = self.open.lock();
        if *open {
            self.timer.arm(self, ms);
        }
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
    pub(super) fn decide(&self, status: Status, private_data: &[u8]) -> bool {
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
                let adapter = self.ask.qp.adapter();
                adapter.count(Counter::ConnectFailures, 1);
                self.answer_no(Status::Refused, &[]);
                return Err(e);
            }
        };
        qp.adapter().count(Counter::Accepts, 1);
        self.ask.qp.adapter().count(Counter::Connects, 1);
        events.established(ours);
        passive.up();
        if self.ask.events.reply(Ok(theirs), private_data).is_err() {
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
            qp.peer_gone(&*transport);
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
