// SPDX-License-Identifier: GPL-2.0

//! [`ConnectRequest`]: a connection that one side asked for, decided once.
//!
//! ```text
//! Open --> Decided --------------------------> Connected    accepted, and nobody is waited for
//!   |         \--> Accepted ---> Decided ----> Connected    confirmed
//!   |                  \            \--------> Over         could not be connected
//!   |                   \--------------------> Over         abandoned, withdrawn, timed out
//!   \----> Decided                                          rejected, abandoned, timed out
//! ```

mod confirm;
#[cfg(ndk_kunit)]
mod tests;

use core::{
    net::SocketAddr,
    num::NonZeroUsize, //
};

use kernel::{
    impl_has_work,
    new_spinlock_irq,
    new_work,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
    workqueue::{
        Work as WorkStruct,
        WorkItem, //
    }, //
};

pub(crate) use self::confirm::ConfirmError;

use super::{
    endpoint::Endpoint,
    listener::Asking,
    ConnectParams,
    ConnectionEvents,
    ConnectionManager, //
};
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
    sys::{
        time,
        timer::{
            Expires,
            Timer, //
        }, //
    }, //
};

/// How soon a listener that had no room is asked again, in milliseconds.
const RETRY_MS: u32 = 10;

/// The other side has given up, or the connection between the two is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Why the passive side's yes came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptError {
    /// The active side has given up, or its queue pair cannot be connected any more.
    Gone,
    /// The queue pair cannot be connected; the active side was refused.
    NotReady,
    /// No memory; the active side was refused.
    NoMemory,
}

/// Why two queue pairs could not be connected.
enum AttachError {
    NoMemory,
    Active,
    Passive,
}

/// What the passive side accepted with, until the active side confirms.
struct Acceptance {
    side: Arc<Endpoint>,
    /// The limits of the passive and of the active side.
    ours: ReadLimits,
    theirs: ReadLimits,
    until_ms: u64,
}

enum Stage {
    /// Nobody has decided, and somebody should within that time.
    Open { until_ms: u64 },
    /// Somebody has, against the connection or for it, and sees to what follows; the active side
    /// may have given up meanwhile.
    Decided { abandoned: bool },
    /// The passive side has decided for it; the active side is waited for.
    Accepted(Acceptance),
    /// Both sides were connected.
    Connected,
    /// What was accepted came to nothing.
    Over(ConfirmError),
}

impl Stage {
    const DECIDED: Self = Self::Decided { abandoned: false };
}

/// A connection that one side asked for.
#[pin_data]
pub(crate) struct ConnectRequest {
    pub(super) ask: ConnectParams,
    cm: Arc<ConnectionManager>,
    pub(super) number: NonZeroUsize,
    active: Arc<Endpoint>,
    #[pin]
    pub(super) asking: SpinLockIrq<Asking>,
    #[pin]
    stage: SpinLockIrq<Stage>,
    #[pin]
    timer: Timer<Self>,
    #[pin]
    work: WorkStruct<Self>,
}

impl_has_work! {
    impl HasWork<Self> for ConnectRequest { self.work }
}

impl ConnectRequest {
    pub(super) fn new(
        ask: ConnectParams,
        cm: Arc<ConnectionManager>,
        number: NonZeroUsize,
    ) -> Result<Arc<Self>> {
        let active = Endpoint::new(ask.qp.clone(), ask.events.clone())?;
        Arc::pin_init(
            pin_init!(Self {
                ask,
                cm,
                number,
                active,
                asking <- new_spinlock_irq!(Asking::default()),
                stage <- new_spinlock_irq!(Stage::Open { until_ms: 0 }),
                timer <- Timer::new(),
                work <- new_work!("ndk_offer"),
            }),
            GFP_KERNEL,
        )
    }

    /// Names the offer for the active side as long as it is not decided.
    pub(crate) fn number(&self) -> NonZeroUsize {
        self.number
    }

    /// Sees to it that somebody decides within that time, in milliseconds.
    pub(super) fn answer_within(self: &Arc<Self>, ms: u32) {
        // Under the lock: a timer armed after the decision would have nobody to cancel it.
        let mut stage = self.stage.lock();
        if let Stage::Open { until_ms } = &mut *stage {
            *until_ms = time::now_ms().saturating_add(ms.into());
            self.timer.arm(self, ms);
        }
    }

    /// Sees to it that a listener is asked again soon.
    pub(super) fn ask_again(self: &Arc<Self>) {
        // Under the lock, as in `answer_within`.
        let stage = self.stage.lock();
        if matches!(*stage, Stage::Open { .. }) {
            self.timer.arm(self, RETRY_MS);
        }
    }

    /// It is time to ask again, or to give up. In softirq.
    fn no_answer(self: &Arc<Self>) {
        let stage = self.stage.lock();
        let Stage::Open { until_ms } = *stage else {
            return;
        };
        let left = until_ms.saturating_sub(time::now_ms());
        if left > 0 {
            // Under the lock, as in `answer_within`.
            self.timer
                .arm(self, u32::try_from(left).unwrap_or(u32::MAX));
        }
        drop(stage);
        if left == 0 && self.orphaned().is_none() {
            self.decide(Status::Timeout, &[]);
        } else {
            // Where it is queued already it has yet to run.
            let _ = self.ask.qp.device().host().threads().enqueue(self.clone());
        }
    }

    /// The network namespace.
    pub(crate) fn net(&self) -> u64 {
        self.ask.net
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

    /// Returns true if nobody has decided.
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Open { .. })
    }

    /// Returns true if the time for the answer is over.
    pub(super) fn is_late(&self) -> bool {
        match &*self.stage.lock() {
            Stage::Open { until_ms } => *until_ms <= time::now_ms(),
            Stage::Decided { .. } | Stage::Accepted(_) | Stage::Connected | Stage::Over(_) => false,
        }
    }

    /// Takes the right to decide; there is one.
    fn take_decision(&self) -> bool {
        let mut stage = self.stage.lock();
        let was_open = matches!(*stage, Stage::Open { .. });
        if was_open {
            *stage = Stage::DECIDED;
        }
        drop(stage);
        if was_open {
            self.timer.cancel();
            self.cm.close_offer(self.number);
        }
        was_open
    }

    /// Decides against the connection; whoever comes second decides nothing.
    pub(super) fn decide(&self, status: Status, private_data: &[u8]) -> bool {
        if !self.take_decision() {
            return false;
        }
        let device = self.ask.qp.device();
        device.count(Counter::ConnectFailures, 1);
        self.answer_no(status, private_data);
        true
    }

    /// Tells the active side that there is no connection; without the data if they find no room.
    fn answer_no(&self, status: Status, private_data: &[u8]) {
        let events = &self.ask.events;
        let notified = events.reply(Err(status), private_data);
        if notified.is_err() && events.reply(Err(status), &[]).is_err() {
            let qp = &self.ask.qp;
            qp.device()
                .warn(qp.number(), fmt!("the answer to its connect was lost"));
        }
    }

    /// The passive side says no.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result<(), Gone> {
        if !self.decide(Status::Refused, private_data) {
            return Err(Gone);
        }
        if let Some(listener) = self.listener() {
            listener.events().turned_away();
        }
        Ok(())
    }

    /// The active side gives up; false when there was nothing left to give up.
    ///
    /// Before the answer this is the answer. After it a passive side that waits is notified. An
    /// answer that is on its way still comes, and is a failure if the passive side would have
    /// waited. A connection that is up is for its queue pair to end.
    pub(crate) fn abandon(&self) -> bool {
        if self.decide(Status::Aborted, &[]) {
            return true;
        }
        if let Stage::Decided { abandoned } = &mut *self.stage.lock() {
            *abandoned = true;
            return false;
        }
        self.end_wait(ConfirmError::Gone, Status::Aborted)
    }

    /// The passive side says yes. Either both are connected and told so; or, where both sides want
    /// that, the active side is notified, and what follows is its decision. May sleep.
    pub(crate) fn accept(
        self: &Arc<Self>,
        qp: &Arc<QueuePair>,
        limits: ReadLimits,
        private_data: &[u8],
        events: Arc<dyn ConnectionEvents>,
    ) -> Result<(), AcceptError> {
        if !self.take_decision() {
            return Err(AcceptError::Gone);
        }
        let waits = self.ask.confirms && events.confirms();
        let (ours, theirs) = negotiate(limits, self.ask.limits);
        let side = Endpoint::new(qp.clone(), events).map_err(|_| AcceptError::NoMemory);
        let accepted = side.and_then(|side| {
            let acceptance = Acceptance {
                side,
                ours,
                theirs,
                until_ms: 0,
            };
            match waits {
                true => self.wait(acceptance, private_data),
                false => self.connect_now(&acceptance, private_data),
            }
        });
        if accepted.is_err() {
            let device = self.ask.qp.device();
            device.count(Counter::ConnectFailures, 1);
            self.answer_no(Status::Refused, &[]);
        }
        accepted
    }

    /// Connects both sides and tells them.
    fn connect_now(&self, acceptance: &Acceptance, private_data: &[u8]) -> Result<(), AcceptError> {
        self.attach(acceptance).map_err(|why| match why {
            AttachError::NoMemory => AcceptError::NoMemory,
            AttachError::Passive => AcceptError::NotReady,
            AttachError::Active => AcceptError::Gone,
        })?;
        self.tell_passive(acceptance);
        if self
            .ask
            .events
            .reply(Ok(acceptance.theirs), private_data)
            .is_err()
        {
            // The active side never hears that it was connected, so it must not be.
            self.active.detach();
            self.ask.qp.fail();
            self.answer_no(Status::Aborted, &[]);
            return Ok(());
        }
        self.active.up();
        Ok(())
    }

    /// Returns true if both sides were connected, whatever came after.
    pub(crate) fn is_connected(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Connected)
    }

    /// Connects the queue pairs.
    fn attach(&self, acceptance: &Acceptance) -> Result<(), AttachError> {
        let (active, side) = (&self.ask.qp, &acceptance.side);
        let passive = side.qp();
        let transport = (self.cm.join)(active, passive).map_err(|_| AttachError::NoMemory)?;
        let link = |end, owner| Link {
            transport: transport.clone(),
            end,
            owner,
        };
        let attached = passive.attach(link(1, side.clone()), acceptance.ours);
        attached.map_err(|_| AttachError::Passive)?;
        let attached = active.attach(link(0, self.active.clone()), acceptance.theirs);
        if attached.is_err() {
            side.detach();
            passive.peer_gone(transport.id());
            return Err(AttachError::Active);
        }
        *self.stage.lock() = Stage::Connected;
        // What one side posted before the other was connected waits for this.
        passive.ring_doorbell();
        active.ring_doorbell();
        Ok(())
    }

    /// Tells the passive side that the connection is up.
    fn tell_passive(&self, acceptance: &Acceptance) {
        let side = &acceptance.side;
        side.qp().device().count(Counter::Accepts, 1);
        self.ask.qp.device().count(Counter::Connects, 1);
        side.events().established(acceptance.ours);
        side.up();
    }
}

impl Expires for ConnectRequest {
    fn expired(this: Arc<Self>) {
        match this.wait_on() {
            Some(0) => {
                this.end_wait(ConfirmError::TimedOut, Status::Timeout);
            }
            Some(_) => {}
            None => this.no_answer(),
        }
    }
}

impl WorkItem for ConnectRequest {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.cm.go_on(&this);
    }
}

/// What each side may read from the other: no more than asked, no more than the other serves; and
/// what it serves is no more than the other asks for.
fn negotiate(passive: ReadLimits, active: ReadLimits) -> (ReadLimits, ReadLimits) {
    let side = |own: ReadLimits, other: ReadLimits| ReadLimits {
        inbound: own.inbound.min(other.outbound),
        outbound: own.outbound.min(other.inbound),
    };
    (side(passive, active), side(active, passive))
}
