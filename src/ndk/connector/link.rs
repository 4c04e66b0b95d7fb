// SPDX-License-Identifier: GPL-2.0

//! [`ConnectorInner`]: the part of a connector that the engine knows, and the events that the
//! engine reports to it.

use core::net::SocketAddr;

use kernel::{
    alloc::Flags,
    impl_has_work,
    new_work,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    DisconnectUser,
    NO_REASON, //
};
use crate::{
    engine::{
        cm::{
            ConnectRequest,
            ConnectionEvents,
            Route, //
        },
        device::RdmaDevice,
        transport::ReadLimits, //
    },
    ndk::{
        call::call_consumer,
        prelude::*,
        qp::Qp, //
    },
    rdma::values::status::Status, //
};

/// The stage of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnectorStage {
    #[default]
    Idle,
    Connecting,
    /// The peer has accepted; this side has to complete the connect or reject.
    Answered,
    Completing,
    /// The peer has sent a request.
    Incoming,
    Accepting,
    Connected,
    Disconnecting,
    /// The peer is gone; posted requests stay until this side ends them.
    Left,
    /// The final stage: the connector begins no other connection.
    Over,
}

/// The read limits of a connection, and the length of the peer's private data.
pub(crate) struct ConnectionData {
    pub(crate) limits: ReadLimits,
    /// All bytes that the peer sent; a short buffer got the first ones.
    pub(crate) len: usize,
}

/// A call that is pending.
pub(super) struct PendingCall {
    pub(super) done: DoneFn<NtStatus>,
    pub(super) object_use: ObjectUse,
}

/// The state of a connector, under the lock of [`ConnectorInner`].
#[derive(Default)]
pub(super) struct ConnectorState {
    pub(super) stage: ConnectorStage,
    pub(super) attempt: Attempt,
    pub(super) pending: Option<PendingCall>,
    /// The engine has reported that the connection is gone.
    pub(super) is_end_reported: bool,
    /// The call that has ended and is not reported yet.
    pub(super) unreported_call: Option<(PendingCall, NtStatus)>,
    pub(super) unreported_disconnect: Option<(DisconnectUser, ObjectUse)>,
    pub(super) limits: ReadLimits,
    pub(super) private_data: KVec<u8>,
    /// The peer refused, with private data that says why.
    pub(super) has_reject_data: bool,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
}

/// The resources of an attempt to connect, which are dropped without the lock.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) qp: Option<(Ref<Qp>, ObjectUse)>,
    pub(super) request: Option<Arc<ConnectRequest>>,
    /// The callback for the peer's disconnect.
    pub(super) user: Option<DisconnectUser>,
    /// Present while the connection is up: the engine will report its end.
    pub(super) link: Option<ObjectUse>,
    /// Keeps the address busy until the connector is closed.
    pub(super) route: Option<Route>,
    pub(super) shared: Option<ObjectUse>,
}

impl Attempt {
    /// Returns a new reference to the queue pair of the attempt, which outlasts the lock.
    pub(super) fn qp(&self) -> Option<Ref<Qp>> {
        self.qp.as_ref().map(|(qp, _)| qp.clone())
    }
}

impl ConnectorState {
    /// Returns true if the peer has asked or answered.
    pub(super) fn has_peer_data(&self) -> bool {
        match self.stage {
            ConnectorStage::Idle => self.has_reject_data,
            ConnectorStage::Connecting => false,
            _ => self.remote.is_some(),
        }
    }

    /// Ends the pending call with `status`.
    fn end_call(&mut self, status: NtStatus) {
        if let Some(call) = self.pending.take() {
            self.unreported_call = Some((call, status));
        }
    }

    /// Keeps the close waiting until the engine has reported that the connection is gone.
    pub(super) fn use_link(&mut self) {
        self.attempt.link = self.pending.as_ref().map(|r| r.object_use.again());
    }

    /// Ends an attempt, and returns its resources; the next stage is `next`, or stays `Over`.
    pub(super) fn give_up(&mut self, next: ConnectorStage) -> Attempt {
        if self.stage != ConnectorStage::Over {
            self.stage = next;
        }
        self.is_end_reported = false;
        core::mem::take(&mut self.attempt)
    }
}

/// The part of a connector that the engine knows.
#[pin_data]
pub(super) struct ConnectorInner {
    pub(super) device: Arc<RdmaDevice>,
    #[pin]
    pub(super) state: SpinLockIrq<ConnectorState>,
    #[pin]
    pub(super) work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for ConnectorInner { self.work }
}

/// Abandons a request of this side, or ends the connection that it led to. False if it did neither.
pub(super) fn take_back(request: &ConnectRequest, qp: Option<&Ref<Qp>>) -> bool {
    if request.abandon() {
        return true;
    }
    if !request.is_connected() {
        return false;
    }
    if let Some(qp) = qp {
        qp.set_connected(false);
        qp.engine().fail();
    }
    true
}

impl ConnectorInner {
    /// A connector in that state. The context is that of the flags.
    pub(super) fn new(
        device: &Arc<RdmaDevice>,
        state: ConnectorState,
        flags: Flags,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                device: device.clone(),
                state <- new_spinlock_irq!(state),
                work <- new_work!("ndk_connector"),
            }),
            flags,
        )
    }

    fn notify_later(self: &Arc<Self>) {
        // A work item that is queued already reports this event as well.
        let _ = self.device.host.softirqs.enqueue(self.clone());
    }

    /// Fails the pending call.
    pub(super) fn fail(self: &Arc<Self>, status: NtStatus, next: ConnectorStage) {
        self.fail_with(status, next, |state| state.has_reject_data = false);
    }

    /// As [`ConnectorInner::fail`]; `note` sets the state that the next call finds.
    fn fail_with(
        self: &Arc<Self>,
        status: NtStatus,
        next: ConnectorStage,
        note: impl FnOnce(&mut ConnectorState),
    ) {
        let mut state = self.state.lock();
        state.end_call(status);
        note(&mut state);
        let rest = state.give_up(next);
        drop(state);
        drop(rest);
        self.notify_later();
    }

    /// Reports the connection as up if `still_wanted` agrees, and ends it otherwise.
    pub(super) fn finish_connect(
        self: &Arc<Self>,
        still_wanted: impl FnOnce(&mut ConnectorState) -> bool,
    ) {
        let mut state = self.state.lock();
        let qp = state.attempt.qp();
        if !still_wanted(&mut state) {
            // The connector was closed before the connection was up, or the connection was lost.
            drop(state);
            if let Some(qp) = qp {
                qp.engine().fail();
            }
            return self.fail(NtStatus::CONNECTION_ABORTED, ConnectorStage::Over);
        }
        state.stage = ConnectorStage::Connected;
        let request = state.attempt.request.take();
        if let Some(qp) = qp {
            qp.set_connected(true);
        }
        state.end_call(NtStatus::SUCCESS);
        drop(state);
        drop(request);
        self.notify_later();
    }
}

/// The side of a connection to which the engine reports.
pub(super) struct LinkEvents(pub(super) Arc<ConnectorInner>);

impl LinkEvents {
    /// Fails the attempt. Without memory the private data of the peer is lost, but not its answer.
    fn refused(&self, status: NtStatus, private_data: &[u8]) {
        let mut copy = KVec::new();
        let is_reported = copy.extend_from_slice(private_data, GFP_ATOMIC).is_ok();
        self.0.fail_with(status, ConnectorStage::Idle, |state| {
            state.has_reject_data = is_reported && !copy.is_empty();
            state.limits = ReadLimits::default();
            state.private_data = copy;
        });
    }

    fn answered(&self, limits: ReadLimits, private_data: &[u8]) -> Result {
        let mut copy = KVec::new();
        copy.extend_from_slice(private_data, GFP_ATOMIC)?;
        let inner = &self.0;
        let mut state = inner.state.lock();
        let request = state.attempt.request.clone();
        if state.stage != ConnectorStage::Connecting {
            // The connector was closed before there was an answer to take back.
            let qp = state.attempt.qp();
            drop(state);
            if let (Some(request), Some(qp)) = (request, qp) {
                take_back(&request, Some(&qp));
            }
            inner.fail(NtStatus::CONNECTION_ABORTED, ConnectorStage::Over);
            return Ok(());
        }
        state.stage = ConnectorStage::Answered;
        state.limits = limits;
        state.private_data = copy;
        if request.is_some_and(|r| r.is_connected()) {
            state.use_link();
        }
        state.end_call(NtStatus::SUCCESS);
        drop(state);
        inner.notify_later();
        Ok(())
    }
}

impl ConnectionEvents for LinkEvents {
    fn waits_for_confirmation(&self) -> bool {
        true
    }

    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result {
        match answer {
            Ok(limits) => self.answered(limits, private_data),
            Err(status) => {
                self.refused(NtStatus::of(status), private_data);
                Ok(())
            }
        }
    }

    fn established(&self, limits: ReadLimits) {
        self.0.finish_connect(|state| {
            let wanted = state.stage == ConnectorStage::Accepting;
            if wanted {
                state.limits = limits;
                state.use_link();
            }
            wanted
        });
    }

    fn not_established(&self, status: Status) {
        self.0.fail(NtStatus::of(status), ConnectorStage::Over);
    }

    fn closed(&self, by_peer: bool) -> Result {
        let inner = &self.0;
        let mut state = inner.state.lock();
        let mut link = state.attempt.link.take();
        state.is_end_reported = true;
        let qp = state.attempt.qp();
        if let Some(qp) = &qp {
            qp.set_connected(false);
        }
        let stage = state.stage;
        match stage {
            ConnectorStage::Connected if by_peer => {
                state.stage = ConnectorStage::Left;
                state.unreported_disconnect = match (state.attempt.user.take(), link.take()) {
                    (Some(user), Some(object_use)) => Some((user, object_use)),
                    (_, object_use) => {
                        link = object_use;
                        None
                    }
                };
            }
            ConnectorStage::Connected => state.stage = ConnectorStage::Over,
            ConnectorStage::Disconnecting => {
                state.stage = ConnectorStage::Over;
                let graceful = qp.as_ref().is_some_and(|qp| {
                    by_peer || qp.was_flushed() || qp.engine().closed_gracefully()
                });
                state.end_call(match graceful {
                    true => NtStatus::SUCCESS,
                    false => NtStatus::IO_TIMEOUT,
                });
            }
            // Closed during the disconnect.
            ConnectorStage::Over => state.end_call(NtStatus::SUCCESS),
            _ => (),
        }
        drop(state);
        if let (ConnectorStage::Disconnecting, Some(qp)) = (stage, qp) {
            // The peer may have disconnected first: then this side's flush is still to come.
            qp.engine().fail();
        }
        drop(link);
        inner.notify_later();
        Ok(())
    }
}

impl WorkItem for ConnectorInner {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut state = this.state.lock();
        let ended = state.unreported_call.take();
        let gone = state.unreported_disconnect.take();
        drop(state);
        if let Some((mut call, status)) = ended {
            call_consumer(|| call.done.call(status));
            // The callback first, then the use that keeps the close waiting.
            drop(call.done);
            drop(call.object_use);
        }
        if let Some((mut user, _object_use)) = gone {
            call_consumer(|| user.call(NO_REASON));
        }
    }
}
