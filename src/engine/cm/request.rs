// SPDX-License-Identifier: GPL-2.0

//! [`ConnectRequest`]: a connection that one side asked for, decided once.
//!
//! ```text
//! Open --> Decided --> Connected    accepted
//!   |         \-----> Accepted     accepted, and to be confirmed (NDKPI): `request/confirm.rs`
//!   \----> Decided                 rejected, abandoned, timed out
//! ```

mod confirm;
#[cfg(ndk_kunit)]
mod tests;

use core::num::NonZeroUsize;

use kernel::{
    impl_has_work,
    new_work,
    workqueue::{
        Work as WorkStruct,
        WorkItem, //
    }, //
};

use super::{
    active::{
        Active,
        Initiator, //
    },
    carrier::{
        DialState,
        TransportEnd, //
    },
    endpoint::Endpoint,
    offer::Offers,
    ConnectParams,
    ConnectionEvents,
    ConnectionManager, //
};
use crate::{
    engine::{
        inject,
        prelude::*,
        qp::QueuePair,
        transport::{
            Link,
            ReadLimits,
            Transport, //
        }, //
    },
    rdma::values::qp::QpState,
    sys::{
        time,
        timer::{
            Expires,
            Timer, //
        },
        trace, //
    }, //
};

/// The time to the next offer to a listener that had no room, in milliseconds.
pub(super) const RETRY_MS: u32 = 10;

/// The other side has given up, or the connection between the two is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionGone;

/// The reason why a connection that was accepted or confirmed did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The other side has given up, or its queue pair cannot be connected any more; or the
    /// connection between the two is gone.
    Aborted,
    /// The confirmation came too late.
    TimedOut,
    /// The queue pair cannot be connected, or there is no accept to confirm.
    NotReady,
    /// No memory.
    NoMemory,
}

/// The passive side and the limits of an accept.
pub(super) struct Acceptance {
    pub(super) endpoint: Arc<Endpoint>,
    /// The limits of the passive and of the active side.
    pub(super) passive_limits: ReadLimits,
    pub(super) active_limits: ReadLimits,
}

enum RequestState {
    /// No decision was made.
    Open,
    /// A decision was made, for the connection or against it, and is carried out; the active side
    /// may have given up since.
    Decided { abandoned: bool },
    /// The passive side has accepted; the active side has yet to confirm.
    Accepted(Acceptance),
    /// The sides of this host were connected.
    Connected,
    /// The accepted connection did not come up.
    Over(ConnectError),
}

struct Pending {
    state: RequestState,
    /// The deadline of the answer while open, of the confirmation while accepted.
    deadline_ms: u64,
}

/// A connection that one side asked for.
#[pin_data]
pub(crate) struct ConnectRequest {
    /// The parameters of the active side.
    pub(crate) params: ConnectParams,
    pub(super) cm: Arc<ConnectionManager>,
    /// Names the request for the active side as long as it is not decided.
    pub(crate) number: NonZeroUsize,
    pub(super) active: Active,
    #[pin]
    pub(super) dial: SpinLockIrq<DialState>,
    #[pin]
    pub(super) offers: SpinLockIrq<Offers>,
    #[pin]
    pending: SpinLockIrq<Pending>,
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
        initiator: Initiator,
        params: ConnectParams,
        cm: Arc<ConnectionManager>,
        number: NonZeroUsize,
    ) -> Result<Arc<Self>> {
        let active = Active::new(initiator)?;
        Arc::pin_init(
            pin_init!(Self {
                params,
                cm,
                number,
                active,
                dial <- new_spinlock_irq!(DialState::default()),
                offers <- new_spinlock_irq!(Offers::default()),
                pending <- new_spinlock_irq!(Pending {
                    state: RequestState::Open,
                    deadline_ms: 0,
                }),
                timer <- Timer::new(),
                work <- new_work!("ndk_request"),
            }),
            GFP_KERNEL,
        )
    }

    /// Sets the deadline of an open request to `ms` milliseconds from now.
    pub(super) fn answer_within(self: &Arc<Self>, ms: u32) {
        let mut pending = self.pending.lock();
        if matches!(pending.state, RequestState::Open) {
            self.set_deadline(&mut pending, ms);
        }
    }

    /// Sets the deadline. Under the lock: a timer armed after the decision would not be cancelled.
    fn set_deadline(self: &Arc<Self>, pending: &mut Pending, ms: u32) {
        pending.deadline_ms = time::now_ms().saturating_add(ms.into());
        self.timer.arm(self, ms);
    }

    /// Makes the timer offer the request again soon.
    pub(super) fn offer_again(self: &Arc<Self>) {
        self.offer_again_in(RETRY_MS);
    }

    /// Makes the timer offer the request again, in `ms` milliseconds.
    pub(super) fn offer_again_in(self: &Arc<Self>, ms: u32) {
        let pending = self.pending.lock();
        if matches!(pending.state, RequestState::Open) {
            // The deadline of the answer stays.
            let left = pending.deadline_ms.saturating_sub(time::now_ms());
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            // Under the lock, as in `set_deadline`.
            self.timer.arm(self, ms.min(left));
        }
    }

    /// Returns true if no decision was made.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.pending.lock().state, RequestState::Open)
    }

    /// Returns true if no decision was made, and the time for the answer is over.
    pub(super) fn is_late(&self) -> bool {
        let pending = self.pending.lock();
        matches!(pending.state, RequestState::Open) && pending.deadline_ms <= time::now_ms()
    }

    /// Takes the right to decide. Returns true for the first caller alone.
    fn take_decision(&self) -> bool {
        self.take_decision_and(true)
    }

    /// As [`ConnectRequest::take_decision`], for the carrier that connects the request.
    pub(super) fn take_carriers_decision(&self) -> bool {
        self.take_decision_and(false)
    }

    fn take_decision_and(&self, cancels_dial: bool) -> bool {
        let mut pending = self.pending.lock();
        if !matches!(pending.state, RequestState::Open) {
            return false;
        }
        pending.state = RequestState::Decided { abandoned: false };
        drop(pending);
        self.timer.cancel();
        self.cm.remove_request(self.number);
        self.stop_waiting();
        self.end_dial(cancels_dial);
        true
    }

    /// Decides against the connection. Returns false if a decision was made before.
    pub(super) fn decide(&self, status: Status, private_data: &[u8]) -> bool {
        let decides = self.take_decision();
        if decides {
            self.refuse(status, private_data);
        }
        decides
    }

    /// Notifies the active side that there is no connection, and counts that.
    pub(super) fn refuse(&self, status: Status, private_data: &[u8]) {
        self.active.count_failure();
        self.active.refuse(status, private_data);
    }

    /// Rejects the request, for the passive side.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result<(), ConnectionGone> {
        if !self.decide(Status::Refused, private_data) {
            return Err(ConnectionGone);
        }
        if let Some(listener) = self.listener() {
            listener.events.rejected();
        }
        Ok(())
    }

    /// Gives up, for the active side. Returns false if a decision was made and no confirmation is
    /// due.
    ///
    /// Before the answer this is the answer. After it a passive side that waits for the
    /// confirmation is notified. An answer that is on its way still comes, and is a failure if the
    /// passive side would have waited. A connection that is up is ended by its queue pair.
    pub(crate) fn abandon(&self) -> bool {
        if self.decide(Status::Aborted, &[]) {
            return true;
        }
        if let RequestState::Decided { abandoned } = &mut self.pending.lock().state {
            *abandoned = true;
            return false;
        }
        self.withdraw()
    }

    /// Accepts the request, for the passive side. Both sides are connected and notified; or, if
    /// both sides want a confirmation, the active side is notified, and decides by
    /// [`ConnectRequest::confirm`] or [`ConnectRequest::abandon`]. May sleep.
    ///
    /// After [`ConnectError::NotReady`] and [`ConnectError::NoMemory`] the active side was refused,
    /// as it was after [`ConnectError::Aborted`] if it had not given up.
    pub(crate) fn accept(
        self: &Arc<Self>,
        qp: &Arc<QueuePair>,
        limits: ReadLimits,
        private_data: &[u8],
        events: Arc<dyn ConnectionEvents>,
    ) -> Result<(), ConnectError> {
        if !self.take_decision() {
            return Err(ConnectError::Aborted);
        }
        let waits = self.params.wants_confirmation && events.waits_for_confirmation();
        let endpoint = Endpoint::new(qp.clone(), events).map_err(|_| ConnectError::NoMemory);
        let accepted = endpoint.and_then(|endpoint| {
            let acceptance = Acceptance {
                endpoint,
                passive_limits: negotiate(limits, self.params.limits),
                active_limits: negotiate(self.params.limits, limits),
            };
            match (&self.active, waits) {
                (Active::Local(active), true) => {
                    self.wait_for_confirmation(active, acceptance, private_data)
                }
                (Active::Local(active), false) => {
                    self.connect_now(active, &acceptance, private_data)
                }
                (Active::Remote(initiator), _) => {
                    self.connect_remote(initiator, &acceptance, private_data)
                }
            }
        });
        if accepted.is_err() {
            self.refuse(Status::Refused, &[]);
        }
        accepted
    }

    /// Connects both sides and notifies them.
    fn connect_now(
        &self,
        active: &Arc<Endpoint>,
        acceptance: &Acceptance,
        private_data: &[u8],
    ) -> Result<(), ConnectError> {
        self.attach(
            active,
            acceptance,
            ConnectError::NotReady,
            ConnectError::Aborted,
        )?;
        self.report_up(active, acceptance.active_limits, private_data);
        Ok(())
    }

    /// Notifies the active side that it is connected. Any context.
    pub(super) fn report_up(&self, active: &Arc<Endpoint>, limits: ReadLimits, data: &[u8]) {
        if inject::is_on() && self.drops_reply(active) {
            return;
        }
        if active.events.reply(Ok(limits), data).is_ok() {
            return active.up();
        }
        // The active side does not learn that it was connected, so it must not be.
        active.detach();
        active.qp.fail();
        self.active.refuse(Status::Aborted, &[]);
    }

    /// Returns true if the sides of this host were connected, even if the connection has ended
    /// since.
    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.pending.lock().state, RequestState::Connected)
    }

    /// Connects the active side; the passive one is connected, or was.
    fn attach_active(
        active: &Arc<Endpoint>,
        acceptance: &Acceptance,
        transport: &Arc<dyn Transport>,
    ) -> Result {
        let endpoint = &acceptance.endpoint;
        let first = TransportEnd {
            transport: transport.clone(),
            end: 0,
        };
        let attached = attach_side(&first, active, acceptance.active_limits);
        if attached.is_err() {
            endpoint.detach();
            endpoint.qp.peer_gone(transport.id());
        } else if !endpoint.qp.is_connected_by(transport.id()) {
            // The passive queue pair failed, and had no peer to notify.
            active.qp.peer_gone(transport.id());
        }
        attached
    }

    /// Connects the queue pairs, and notifies the passive side. The error is `passive_error` or
    /// `active_error` if the queue pair of that side cannot be connected,
    /// [`ConnectError::NoMemory`] if there is no memory.
    fn attach(
        &self,
        active: &Arc<Endpoint>,
        acceptance: &Acceptance,
        passive_error: ConnectError,
        active_error: ConnectError,
    ) -> Result<(), ConnectError> {
        let endpoint = &acceptance.endpoint;
        let (ours, theirs) = (&active.qp, &endpoint.qp);
        let transport = (self.cm.connect_fn)(ours, theirs).map_err(|_| ConnectError::NoMemory)?;
        let second = TransportEnd { transport, end: 1 };
        let attached = attach_side(&second, endpoint, acceptance.passive_limits);
        attached.map_err(|_| passive_error)?;
        Self::attach_active(active, acceptance, &second.transport).map_err(|_| active_error)?;
        self.note_connected();
        self.trace_connect(ours, Some(theirs), true);
        self.trace_connect(theirs, Some(ours), false);
        // Requests that one side posted before the other was connected wait for the doorbell.
        theirs.ring_doorbell();
        ours.ring_doorbell();
        theirs.device().count(Counter::Accepts, 1);
        ours.device().count(Counter::Connects, 1);
        endpoint.events.established(acceptance.passive_limits);
        endpoint.up();
        Ok(())
    }

    /// Notes that the sides of this host are connected. Returns true if the active side has given
    /// up since the decision. Any context.
    pub(super) fn note_connected(&self) -> bool {
        let mut pending = self.pending.lock();
        let old = core::mem::replace(&mut pending.state, RequestState::Connected);
        matches!(old, RequestState::Decided { abandoned: true })
    }

    /// Traces the connect of a queue pair of this host; `peer` is `None` if the peer is one of
    /// another host. Any context.
    pub(super) fn trace_connect(
        &self,
        qp: &QueuePair,
        peer: Option<&Arc<QueuePair>>,
        is_active: bool,
    ) {
        trace::event!(connect, {
            let (local, remote) = (self.params.local, self.params.remote);
            let (src, dst) = match is_active {
                true => (local, remote),
                false => (remote, local),
            };
            let peer = peer.map_or(0, |peer| peer.params.number);
            (qp.device().name(), qp.params.number, peer, src, dst)
        });
    }
}

/// Connects one side, and does not notify it.
pub(super) fn attach_side(
    own_end: &TransportEnd,
    side: &Arc<Endpoint>,
    limits: ReadLimits,
) -> Result {
    side.count_side();
    let link = Link {
        transport: own_end.transport.clone(),
        end: own_end.end,
        owner: side.clone(),
    };
    side.qp.attach(link, limits).inspect_err(|_| side.detach())
}

impl Expires for ConnectRequest {
    /// Offers the request again, or gives it up.
    fn expired(this: Arc<Self>) {
        let pending = this.pending.lock();
        let is_open = matches!(pending.state, RequestState::Open);
        if !is_open && !matches!(pending.state, RequestState::Accepted(_)) {
            return;
        }
        // A timer that was cancelled too late, or armed for the next offer, expires before the
        // deadline.
        let left = pending.deadline_ms.saturating_sub(time::now_ms());
        if left > 0 {
            // Under the lock, as in `set_deadline`.
            let ms = u32::try_from(left).unwrap_or(u32::MAX);
            this.timer.arm(&this, ms);
        }
        drop(pending);
        if !is_open {
            if left == 0 {
                this.fail_acceptance(ConnectError::TimedOut, Status::Timeout);
            }
        } else if left == 0 && this.orphaned_offer().is_none() {
            this.decide(Status::Timeout, &[]);
        } else {
            // An item that is queued already has yet to run.
            let _ = this.active.host().threads.enqueue(this.clone());
        }
    }
}

impl WorkItem for ConnectRequest {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.cm.offer_again_now(&this);
    }
}

/// The read limits of one side: outbound no more than the side asks for and the other serves,
/// inbound no more than the side serves and the other asks for.
pub(crate) fn negotiate(own: ReadLimits, other: ReadLimits) -> ReadLimits {
    ReadLimits {
        inbound: own.inbound.min(other.outbound),
        outbound: own.outbound.min(other.inbound),
    }
}

/// Returns true if the queue pair is in a state in which it can be connected.
fn may_connect(qp: &QueuePair) -> bool {
    matches!(qp.state(), QpState::Init | QpState::Rtr)
}
