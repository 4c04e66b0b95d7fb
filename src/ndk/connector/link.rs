// SPDX-License-Identifier: GPL-2.0

//! [`ConnectorInner`]: the part of a connector that the engine knows, and what it reports to it.

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
        call::consumer,
        prelude::*,
        qp::Qp, //
    },
    rdma::values::status::Status, //
};

/// Where a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnectorStage {
    #[default]
    Idle,
    Connecting,
    /// The peer has accepted; this side has the last word.
    Answered,
    Completing,
    /// The peer asks.
    Incoming,
    Accepting,
    Connected,
    Disconnecting,
    /// The peer is gone; what was posted waits for this side.
    Left,
    /// Nothing comes of it any more.
    Over,
}

/// The facts that the two sides know of each other.
pub(crate) struct ConnectionData {
    pub(crate) limits: ReadLimits,
    /// All that the peer sent; a short buffer got the beginning.
    pub(crate) len: usize,
}

/// A call that is pending.
pub(super) struct PendingCall {
    pub(super) done: DoneFn<NtStatus>,
    pub(super) object_use: ObjectUse,
}

#[derive(Default)]
pub(super) struct ConnectorState {
    pub(super) stage: ConnectorStage,
    pub(super) attempt: Attempt,
    pub(super) pending: Option<PendingCall>,
    /// The engine has said that the connection is gone.
    pub(super) lost: bool,
    /// To be reported.
    pub(super) ended: Option<(PendingCall, NtStatus)>,
    pub(super) gone: Option<(DisconnectUser, ObjectUse)>,
    pub(super) limits: ReadLimits,
    pub(super) private_data: KVec<u8>,
    /// The peer said no; why is in the private data.
    pub(super) refused: bool,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
}

/// What an attempt to connect has; it is dropped without the lock.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) qp: Option<(Ref<Qp>, ObjectUse)>,
    pub(super) request: Option<Arc<ConnectRequest>>,
    /// Who will be notified of the peer's disconnect.
    pub(super) user: Option<DisconnectUser>,
    /// The connection is up: the engine will say that it is gone.
    pub(super) link: Option<ObjectUse>,
    /// What keeps the address busy until the connector is closed.
    pub(super) route: Option<Route>,
    pub(super) shared: Option<ObjectUse>,
}

impl Attempt {
    pub(super) fn qp(&self) -> Option<Ref<Qp>> {
        self.qp.as_ref().map(|(qp, _)| qp.clone())
    }
}

impl ConnectorState {
    /// Returns true if the peer has said anything.
    pub(super) fn has_heard(&self) -> bool {
        match self.stage {
            ConnectorStage::Idle => self.refused,
            ConnectorStage::Connecting => false,
            _ => self.remote.is_some(),
        }
    }

    /// The pending call has ended.
    fn end_call(&mut self, status: NtStatus) {
        if let Some(call) = self.pending.take() {
            self.ended = Some((call, status));
        }
    }

    /// What keeps the close waiting until the engine has said that the connection is gone.
    pub(super) fn use_link(&mut self) {
        self.attempt.link = self.pending.as_ref().map(|r| r.object_use.again());
    }

    /// The attempt has failed: the connector may try again, unless it is over.
    pub(super) fn give_up(&mut self, next: ConnectorStage) -> Attempt {
        if self.stage != ConnectorStage::Over {
            self.stage = next;
        }
        self.lost = false;
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

/// Takes back what this side asked for, whatever has become of it. False when it was gone.
pub(super) fn take_back(request: &ConnectRequest, qp: Option<&Ref<Qp>>) -> bool {
    if request.abandon() {
        return true;
    }
    if !request.is_connected() {
        return false;
    }
    if let Some(qp) = qp {
        qp.set_live(false);
        qp.engine().fail();
    }
    true
}

impl ConnectorInner {
    /// One in that state. The context is that of the flags.
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
        // One that is queued already reports this as well.
        let _ = self.device.host.softirqs.enqueue(self.clone());
    }

    /// The pending call has failed.
    pub(super) fn fail(self: &Arc<Self>, status: NtStatus, next: ConnectorStage) {
        self.fail_with(status, next, |state| state.refused = false);
    }

    /// As [`ConnectorInner::fail`]; `note` keeps what the next caller is to find.
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

    /// The connection is up, if `still_wanted` says so.
    pub(super) fn up(self: &Arc<Self>, still_wanted: impl FnOnce(&mut ConnectorState) -> bool) {
        let mut state = self.state.lock();
        let qp = state.attempt.qp();
        if !still_wanted(&mut state) {
            // Closed meanwhile.
            drop(state);
            if let Some(qp) = qp {
                qp.engine().fail();
            }
            return self.fail(NtStatus::CONNECTION_ABORTED, ConnectorStage::Over);
        }
        state.stage = ConnectorStage::Connected;
        let request = state.attempt.request.take();
        if let Some(qp) = qp {
            qp.set_live(true);
        }
        state.end_call(NtStatus::SUCCESS);
        drop(state);
        drop(request);
        self.notify_later();
    }
}

/// A side of a connection, as the engine reports it.
pub(super) struct LinkEvents(pub(super) Arc<ConnectorInner>);

impl LinkEvents {
    /// The attempt came to nothing. Without memory the peer's words are lost, not its answer.
    fn refused(&self, status: NtStatus, private_data: &[u8]) {
        let mut copy = KVec::new();
        let is_reported = copy.extend_from_slice(private_data, GFP_ATOMIC).is_ok();
        self.0.fail_with(status, ConnectorStage::Idle, |state| {
            state.refused = is_reported && !copy.is_empty();
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
            // Closed meanwhile; who closed it could not take back what was not there yet.
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
    fn confirms(&self) -> bool {
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
        self.0.up(|state| {
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
        state.lost = true;
        let qp = state.attempt.qp();
        if let Some(qp) = &qp {
            qp.set_live(false);
        }
        let stage = state.stage;
        match stage {
            ConnectorStage::Connected if by_peer => {
                state.stage = ConnectorStage::Left;
                state.gone = match (state.attempt.user.take(), link.take()) {
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
            // Closed while it was disconnecting.
            ConnectorStage::Over => state.end_call(NtStatus::SUCCESS),
            _ => (),
        }
        drop(state);
        if let (ConnectorStage::Disconnecting, Some(qp)) = (stage, qp) {
            // The peer may have come first: then this side's flush is still to come.
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
        let ended = state.ended.take();
        let gone = state.gone.take();
        drop(state);
        if let Some((mut call, status)) = ended {
            consumer(|| call.done.call(status));
            // The callback first, then the use that keeps the close waiting.
            drop(call.done);
            drop(call.object_use);
        }
        if let Some((mut user, _object_use)) = gone {
            consumer(|| user.call(NO_REASON));
        }
    }
}
