// SPDX-License-Identifier: GPL-2.0

//! [`Carrier`] connects queue pairs of this host with those of other hosts.
//!
//! ```text
//! active                                            another host
//! connect -> Carrier::dial ------------------------>
//! reply   <- ConnectRequest::answered, refused <---
//!
//! another host                                      passive
//! -------> Initiator::Remote -> submit ----------->  request
//! <------- RemoteInitiator::accept, refuse <-------  accept / reject
//! ```
//!
//! A connect goes to the carrier if no listener of this host serves its address: at an address of this
//! host another provider may listen. A connect goes there once.
//!
//! Cycles: a request holds its [`Dial`] until it is decided, a listener holds its
//! [`RemoteListener`] until it ends. An initiator that keeps its request drops it in
//! [`RemoteInitiator::accept`] and [`RemoteInitiator::refuse`], of which exactly one is called.

#[cfg(ndk_kunit)]
mod tests;

use super::{
    request::{
        attach_side,
        negotiate,
        Acceptance, //
    },
    ConnectError,
    ConnectRequest,
    ConnectionGone,
    ConnectionManager,
    Listener, //
};
use crate::engine::{
    host::Host,
    prelude::*,
    qp::QueuePair,
    transport::{
        ReadLimits,
        Transport, //
    }, //
};

/// Connects this host to others.
pub(crate) trait Carrier: Send + Sync {
    /// Begins to connect the queue pair of `request`, which is `qp`, to the remote address. May
    /// sleep.
    ///
    /// The carrier answers once, from process context, possibly before the return:
    /// [`ConnectRequest::answered`] or [`ConnectRequest::refused`]. After [`Dial::cancel`] it need
    /// not answer. An error of this call is the answer. The request's own deadline applies.
    fn dial(
        &self,
        qp: &Arc<QueuePair>,
        request: &Arc<ConnectRequest>,
    ) -> Result<Arc<dyn Dial>, Status>;

    /// Takes connections of other hosts for a listener until the result is dropped: each becomes a
    /// request with an [`Initiator::Remote`](super::Initiator), which the carrier submits to `cm`.
    /// May sleep, as may the drop, after which no request comes.
    ///
    /// Several listeners, of different devices, may be at one address. Neither this call nor the
    /// drop takes a lock under which `rdma_cm` is called, such as that of the network devices.
    fn listen(
        &self,
        cm: &Arc<ConnectionManager>,
        listener: &Arc<Listener>,
    ) -> Result<KBox<dyn RemoteListener>>;
}

/// Connections of other hosts are taken for a listener as long as this exists.
pub(crate) trait RemoteListener: Send + Sync {}

/// A connect that a carrier has begun. Any context may drop it.
pub(crate) trait Dial: Send + Sync {
    /// Cancels the connect. Called once at most, and not from the carrier's answer. Any context.
    fn cancel(&self);
}

/// An initiator of another host, whose request is decided here. Any context may drop it.
///
/// It holds a [`Side`](crate::engine::host::Side) until it is answered, so that the end of the
/// module waits for the request. If the other host gives up before that, the initiator calls
/// [`ConnectRequest::abandon`].
pub(crate) trait RemoteInitiator: Send + Sync {
    /// The state that all devices share. Any context.
    fn host(&self) -> &Arc<Host>;

    /// Makes the transport for the queue pair that accepts, with the limits of this side. The
    /// transport sends nothing and takes no message before [`RemoteInitiator::accept`]; a doorbell
    /// that comes earlier is remembered. Called once at most. May sleep.
    ///
    /// After an error [`RemoteInitiator::refuse`] follows, as after an attach that fails; the
    /// transport is then dropped unused. [`ConnectError::NotReady`] if an accept has no room for
    /// `private_data`.
    fn carry(
        &self,
        qp: &Arc<QueuePair>,
        limits: ReadLimits,
        private_data: &[u8],
    ) -> Result<TransportEnd, ConnectError>;

    /// Sends the accept, with the limits of the other side. If that fails, the transport ends the
    /// connection later. May sleep.
    fn accept(&self, limits: ReadLimits, private_data: &[u8]);

    /// Sends the refusal, instead of an accept. Called from [`ConnectRequest::abandon`], too. Any
    /// context.
    fn refuse(&self, status: Status, private_data: &[u8]);
}

/// The transport of a connection, and the end that a queue pair has of it.
pub(crate) struct TransportEnd {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) end: usize,
}

/// The answer of a listener of another host that accepts.
pub(crate) struct RemoteAnswer<'a> {
    /// The transport starts after [`ConnectRequest::answered`] has returned `Ok`; only then it
    /// reports a connection that was lost before.
    pub(crate) transport: TransportEnd,
    /// The limits of the passive side.
    pub(crate) limits: ReadLimits,
    pub(crate) private_data: &'a [u8],
}

/// The connect of a request by the carrier.
#[derive(Default)]
pub(super) enum DialState {
    /// The carrier was not asked.
    #[default]
    Idle,
    /// [`Carrier::dial`] has not returned.
    Begun,
    Dialed(Arc<dyn Dial>),
    /// The request is decided; not by the carrier if `cancels`.
    Over {
        cancels: bool,
    },
}

impl ConnectionManager {
    /// Takes connections of other hosts for a new listener. If the carrier fails, the listener
    /// serves this host alone, and the carrier logs that. May sleep.
    pub(super) fn take_connections(self: &Arc<Self>, listener: &Arc<Listener>) {
        if let Some(carrier) = &self.carrier {
            let taken = carrier.listen(self, listener).ok();
            let old = core::mem::replace(&mut *listener.remote.lock(), taken);
            drop(old);
        }
    }

    /// Lets the carrier connect the request. Returns false without a carrier, and for a request that a
    /// listener declined, or of a remote initiator. May sleep.
    pub(super) fn dial(&self, request: &Arc<ConnectRequest>) -> bool {
        let (Some(carrier), Some(active)) = (&self.carrier, request.active.local()) else {
            return false;
        };
        if request.was_declined() {
            return false;
        }
        if !request.begin_dial() {
            // The request is dialed, or decided.
            return true;
        }
        match carrier.dial(&active.qp, request) {
            Ok(dial) => request.keep_dial(dial),
            Err(status) => {
                request.decide(status, &[]);
            }
        }
        true
    }
}

impl ConnectRequest {
    /// Returns true for the first caller, if the request is not decided. Any context.
    fn begin_dial(&self) -> bool {
        let mut state = self.dial.lock();
        let begins = matches!(*state, DialState::Idle);
        if begins {
            *state = DialState::Begun;
        }
        begins
    }

    /// Keeps the connect that was begun until the decision, or cancels it if another decision than
    /// the carrier's came before. Any context.
    fn keep_dial(&self, dial: Arc<dyn Dial>) {
        let mut state = self.dial.lock();
        if let DialState::Over { cancels } = *state {
            drop(state);
            if cancels {
                dial.cancel();
            }
            return;
        }
        *state = DialState::Dialed(dial);
    }

    /// Ends the connect of the carrier, if there is one, and cancels it if `cancels`. Called once,
    /// at the decision. Any context.
    pub(super) fn end_dial(&self, cancels: bool) {
        let over = DialState::Over { cancels };
        let state = core::mem::replace(&mut *self.dial.lock(), over);
        if let (DialState::Dialed(dial), true) = (state, cancels) {
            dial.cancel();
        }
    }

    /// Connects the active side to a listener of another host, and notifies it. May sleep.
    ///
    /// An error if a decision was made before, or the queue pair cannot be connected any more: the
    /// transport is not used, and the carrier closes the connection.
    pub(crate) fn answered(&self, answer: RemoteAnswer<'_>) -> Result<(), ConnectionGone> {
        let active = self.active.local().ok_or(ConnectionGone)?;
        if !self.take_carriers_decision() {
            return Err(ConnectionGone);
        }
        let limits = negotiate(self.params.limits, answer.limits);
        if attach_side(&answer.transport, active, limits).is_err() {
            self.refuse(Status::Aborted, &[]);
            return Err(ConnectionGone);
        }
        self.note_connected();
        self.trace_connect(&active.qp, None, true);
        active.qp.ring_doorbell();
        active.qp.device().count(Counter::Connects, 1);
        self.report_up(active, limits, answer.private_data);
        Ok(())
    }

    /// Refuses the request for another host, or as the carrier could not connect it. An error if a
    /// decision was made before. Any context.
    pub(crate) fn refused(&self, status: Status, data: &[u8]) -> Result<(), ConnectionGone> {
        if !self.take_carriers_decision() {
            return Err(ConnectionGone);
        }
        self.refuse(status, data);
        Ok(())
    }

    /// Connects the passive side to a remote initiator, and notifies both. May sleep.
    pub(super) fn connect_remote(
        &self,
        initiator: &Arc<dyn RemoteInitiator>,
        acceptance: &Acceptance,
        private_data: &[u8],
    ) -> Result<(), ConnectError> {
        let (endpoint, limits) = (&acceptance.endpoint, acceptance.passive_limits);
        let carried = initiator.carry(&endpoint.qp, limits, private_data)?;
        attach_side(&carried, endpoint, limits).map_err(|_| ConnectError::NotReady)?;
        let was_abandoned = self.note_connected();
        self.trace_connect(&endpoint.qp, None, false);
        endpoint.qp.ring_doorbell();
        endpoint.qp.device().count(Counter::Accepts, 1);
        endpoint.events.established(limits);
        endpoint.up();
        // Last: with the answer the initiator may send its first message, which should not come
        // before this side's consumer knows that it is connected.
        initiator.accept(acceptance.active_limits, private_data);
        if was_abandoned {
            // The initiator gave up before the queue pair had its transport.
            endpoint.qp.peer_gone(carried.transport.id());
        }
        Ok(())
    }
}
