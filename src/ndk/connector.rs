// SPDX-License-Identifier: GPL-2.0

//! [`Connector`]: a connection of this face, from either side.
//!
//! ```text
//! Idle --Connect--> Connecting --> Answered --CompleteConnect--> Completing --> Connected
//! Incoming --Accept--> Accepting ------------------------------------------------^
//! Connected --Disconnect--> Disconnecting --> Over         (this side ends it)
//! Connected --> Left --Disconnect--> Over                  (the peer ended it)
//! ```
//!
//! A failed connect goes back to `Idle`. The engine reports events from any context, maybe from
//! inside a call of the other side's consumer: the connector notes an event, and softirq work
//! reports it.
//!
//! Lock order: the state of a connector, then the state of a connect request, or the send queue of
//! a queue pair, which are only read under it; all other calls of the engine are made without it.

mod link;

use core::net::SocketAddr;

use self::link::{
    take_back,
    ConnectionData,
    ConnectorInner,
    ConnectorStage,
    ConnectorState,
    LinkEvents,
    PendingCall, //
};

use super::{
    call::with_planned_faults,
    endpoint::route,
    prelude::*,
    qp::Qp, //
};
use crate::{
    engine::{
        cm::{
            ConnectError,
            ConnectParams,
            ConnectRequest,
            Initiator, //
        },
        transport::ReadLimits, //
    },
    sys::unaligned::Room, //
};

pub(crate) use super::endpoint::Source;

/// The callback for the peer's disconnect, with the provider's reason.
pub(crate) type DisconnectUser = DoneFn<u32>;

/// The reason that is reported if there is none.
pub(crate) const NO_REASON: u32 = 0;

/// A connector.
pub(crate) struct Connector {
    owner: Ref<Adapter>,
    inner: Arc<ConnectorInner>,
}

impl ObjectType for Connector {
    fn closing(this: &Arc<Object<Self>>) {
        let mut state = this.inner.state.lock();
        let stage = core::mem::replace(&mut state.stage, ConnectorStage::Over);
        let user = state.attempt.user.take();
        let request = state.attempt.request.clone();
        let qp = state.attempt.qp();
        drop(state);
        drop(user);
        match (stage, request) {
            (ConnectorStage::Connecting | ConnectorStage::Answered, Some(request)) => {
                take_back(&request, qp.as_ref());
            }
            (ConnectorStage::Incoming, Some(request)) => {
                // A peer that is gone need not be notified.
                let _ = request.reject(&[]);
            }
            (ConnectorStage::Accepting, Some(request)) => {
                request.withdraw();
            }
            _ => (),
        }
        if let (
            ConnectorStage::Connected | ConnectorStage::Disconnecting | ConnectorStage::Left,
            Some(qp),
        ) = (stage, qp)
        {
            qp.set_connected(false);
            qp.engine().fail();
        }
    }

    fn end_sleeps(&self) -> bool {
        false
    }

    /// Frees the addresses: the consumer may use them again once the close is reported.
    fn end(&self) {
        let route = self.inner.state.lock().attempt.route.take();
        drop(route);
    }

    fn put_antecedents(&self) {
        let rest = self.inner.state.lock().give_up(ConnectorStage::Over);
        drop(rest);
    }
}

impl Object<Adapter> {
    /// `CreateConnector`; completes at once.
    pub(crate) fn create_connector(self: &Arc<Self>) -> Created<Connector> {
        let inner = ConnectorInner::new(self.device(), ConnectorState::default(), GFP_ATOMIC)
            .map_err(no_memory)?;
        let connector = Connector {
            owner: self.clone(),
            inner,
        };
        self.successor(connector, GFP_ATOMIC)
    }

    /// A connector for a request of a peer. May sleep.
    pub(super) fn incoming(
        self: &Arc<Self>,
        listener: ObjectUse,
        request: Arc<ConnectRequest>,
    ) -> Result<Ref<Connector>> {
        let theirs = request.params.limits;
        let limits = ReadLimits {
            inbound: theirs.outbound,
            outbound: theirs.inbound,
        };
        let mut state = ConnectorState {
            stage: ConnectorStage::Incoming,
            limits: at_most(limits, self.limits().reads),
            local: Some(request.params.remote),
            remote: Some(request.params.local),
            ..ConnectorState::default()
        };
        state
            .private_data
            .extend_from_slice(&request.params.private_data, GFP_KERNEL)?;
        state.attempt.request = Some(request);
        let inner = ConnectorInner::new(self.device(), state, GFP_KERNEL)?;
        let connector = Connector {
            owner: self.clone(),
            inner,
        };
        let antecedents = [Some(self.new_use()), Some(listener), None, None];
        Object::new(self.device(), antecedents, connector, GFP_KERNEL)
    }
}

fn at_most(asked: ReadLimits, most: u32) -> ReadLimits {
    ReadLimits {
        inbound: asked.inbound.min(most),
        outbound: asked.outbound.min(most),
    }
}

impl Connector {
    /// Room for any private data of a peer (CONN-12), in bytes.
    pub(crate) fn private_data_size(&self) -> u32 {
        self.owner.limits().private_data
    }

    /// Refuses private data above the limit: `INVALID_BUFFER_SIZE`. Any context.
    pub(super) fn check_data(&self, data: &[u8]) -> Result<(), NtStatus> {
        // CAST: widening.
        NtStatus::INVALID_BUFFER_SIZE
            .unless(data.len() <= self.owner.limits().private_data as usize)
    }

    fn limits(&self, asked: ReadLimits) -> ReadLimits {
        at_most(asked, self.owner.limits().reads)
    }

    /// `GetConnectionData`: the limits, and the peer's private data into `out` (CONN-11, CONN-12).
    ///
    /// After a refused connect the limits are 0, and the data is that of the rejection.
    /// `CONNECTION_INVALID` before the peer has asked or answered. Any context.
    pub(crate) fn connection_data(
        &self,
        mut out: Room<'_, u8>,
    ) -> Result<ConnectionData, NtStatus> {
        let state = self.inner.state.lock();
        NtStatus::CONNECTION_INVALID.unless(state.has_peer_data())?;
        out.put_all(&state.private_data);
        Ok(ConnectionData {
            limits: state.limits,
            len: state.private_data.len(),
        })
    }

    fn address(
        &self,
        which: impl FnOnce(&ConnectorState) -> Option<SocketAddr>,
    ) -> Result<SocketAddr, NtStatus> {
        let state = self.inner.state.lock();
        match state.stage {
            ConnectorStage::Idle | ConnectorStage::Connecting | ConnectorStage::Over => {
                Err(NtStatus::CONNECTION_INVALID)
            }
            _ => which(&state).ok_or(NtStatus::CONNECTION_INVALID),
        }
    }

    /// Returns true if the connector keeps an address busy.
    #[cfg(ndk_kunit)]
    pub(crate) fn has_route(&self) -> bool {
        self.inner.state.lock().attempt.route.is_some()
    }

    /// `GetLocalAddress`; `CONNECTION_INVALID` without a peer. Any context.
    pub(crate) fn local_address(&self) -> Result<SocketAddr, NtStatus> {
        self.address(|state| state.local)
    }

    /// `GetPeerAddress`; `CONNECTION_INVALID` without a peer. Any context.
    pub(crate) fn peer_address(&self) -> Result<SocketAddr, NtStatus> {
        self.address(|state| state.remote)
    }

    /// `Reject`: rejects the request of a peer, or the answer of a peer that accepted (CONN-10).
    /// Any context.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result<(), NtStatus> {
        self.check_data(private_data)?;
        let mut state = self.inner.state.lock();
        let stage = state.stage;
        let (ConnectorStage::Incoming | ConnectorStage::Answered, Some(request)) =
            (stage, state.attempt.request.clone())
        else {
            return Err(NtStatus::CONNECTION_INVALID);
        };
        state.stage = ConnectorStage::Over;
        let qp = state.attempt.qp();
        let lost = state.is_end_reported;
        drop(state);
        let was_there = match stage {
            ConnectorStage::Incoming => request.reject(private_data).is_ok(),
            _ => take_back(&request, qp.as_ref()) && !lost,
        };
        let rest = self.inner.state.lock().give_up(ConnectorStage::Over);
        drop(rest);
        NtStatus::CONNECTION_ABORTED.unless(was_there)
    }
}

impl Object<Connector> {
    /// `Connect` and `ConnectWithSharedEndpoint` (CONN-01 to CONN-07, SHEP-02). Any context.
    /// `INVALID_PARAMETER` for a queue pair or an endpoint of another adapter.
    pub(crate) fn connect(
        self: &Arc<Self>,
        qp: &Ref<Qp>,
        (source, remote): (Source, SocketAddr),
        limits: ReadLimits,
        private_data: KVec<u8>,
        done: DoneFn<NtStatus>,
    ) -> Answer {
        NtStatus::INVALID_PARAMETER.unless(source.is_of(&self.owner))?;
        self.check_data(&private_data)?;
        let limits = self.limits(limits);
        self.begin(
            ConnectorStage::Idle,
            ConnectorStage::Connecting,
            Some(qp),
            done,
        )?;
        self.answer_later(move |this| {
            if let Err(status) = this.try_connect(source, remote, limits, private_data) {
                this.inner.fail(status, ConnectorStage::Idle);
            }
        })
    }

    /// `CompleteConnect`, and with a reason for its user `CompleteConnectEx` (CONN-08, CONN-19).
    /// Any context.
    pub(crate) fn complete_connect(
        self: &Arc<Self>,
        user: Option<DisconnectUser>,
        done: DoneFn<NtStatus>,
    ) -> Answer {
        self.begin(
            ConnectorStage::Answered,
            ConnectorStage::Completing,
            None,
            done,
        )?;
        self.inner.state.lock().attempt.user = user;
        self.answer_later(Self::end_complete)
    }

    /// `Accept`, and with a reason for its user `AcceptEx` (CONN-09, CONN-19). Any context.
    /// `INVALID_PARAMETER` for a queue pair of another adapter.
    pub(crate) fn accept(
        self: &Arc<Self>,
        qp: &Ref<Qp>,
        limits: ReadLimits,
        private_data: KVec<u8>,
        user: Option<DisconnectUser>,
        done: DoneFn<NtStatus>,
    ) -> Answer {
        self.check_data(&private_data)?;
        let limits = self.limits(limits);
        self.begin(
            ConnectorStage::Incoming,
            ConnectorStage::Accepting,
            Some(qp),
            done,
        )?;
        self.inner.state.lock().attempt.user = user;
        let qp = qp.clone();
        self.answer_later(move |this| this.end_accept(&qp, limits, &private_data))
    }

    /// `Disconnect`: posted requests are carried out first, deferred requests are not (CONN-14).
    /// Any context.
    pub(crate) fn disconnect(self: &Arc<Self>, done: DoneFn<NtStatus>) -> Answer {
        let mut state = self.inner.state.lock();
        let stage = state.stage;
        let qp = state.attempt.qp();
        let (ConnectorStage::Connected | ConnectorStage::Left, Some(qp), None) =
            (stage, qp, &state.unreported_call)
        else {
            return Err(NtStatus::CONNECTION_INVALID);
        };
        qp.set_connected(false);
        if stage == ConnectorStage::Left {
            state.stage = ConnectorStage::Over;
            drop(state);
            qp.engine().fail();
            return Ok(Progress::Done);
        }
        state.stage = ConnectorStage::Disconnecting;
        state.pending = Some(PendingCall {
            done,
            object_use: self.new_use(),
        });
        drop(state);
        qp.engine().close();
        Ok(Progress::Pending)
    }

    /// Begins a call that goes from stage `from` to `to`.
    fn begin(
        self: &Arc<Self>,
        from: ConnectorStage,
        to: ConnectorStage,
        qp: Option<&Ref<Qp>>,
        done: DoneFn<NtStatus>,
    ) -> Result<(), NtStatus> {
        NtStatus::INVALID_PARAMETER.unless(qp.is_none_or(|qp| qp.is_of(&self.owner)))?;
        let mut state = self.inner.state.lock();
        // Until the consumer is notified of the end of the last call, the next call is refused.
        if state.stage != from || state.unreported_call.is_some() {
            // With a queue pair the call is for a connection: a second one is `CONNECTION_ACTIVE`.
            return Err(match (state.stage, qp) {
                (
                    ConnectorStage::Connected
                    | ConnectorStage::Disconnecting
                    | ConnectorStage::Left,
                    Some(_),
                ) => NtStatus::CONNECTION_ACTIVE,
                _ => NtStatus::CONNECTION_INVALID,
            });
        }
        if let Some(qp) = qp {
            qp.may_connect()?;
            state.attempt.qp = Some((qp.clone(), qp.new_use()));
        }
        state.stage = to;
        state.pending = Some(PendingCall {
            done,
            object_use: self.new_use(),
        });
        Ok(())
    }

    /// Continues in process context; without memory, undoes `begin`.
    fn answer_later(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) + Send + 'static) -> Answer {
        let this = self.clone();
        let task = move || with_planned_faults(|| work(&this));
        let spawned = self.device().host.threads.spawn(GFP_ATOMIC, task);
        if spawned.is_ok() {
            return Ok(Progress::Pending);
        }
        let mut state = self.inner.state.lock();
        let (next, qp) = match state.stage {
            ConnectorStage::Connecting => (ConnectorStage::Idle, state.attempt.qp.take()),
            ConnectorStage::Accepting => (ConnectorStage::Incoming, state.attempt.qp.take()),
            ConnectorStage::Completing => (ConnectorStage::Answered, None),
            stage => (stage, None),
        };
        state.stage = next;
        let call = state.pending.take();
        let user = state.attempt.user.take();
        drop(state);
        drop((call, user, qp));
        Err(NtStatus::INSUFFICIENT_RESOURCES)
    }

    fn try_connect(
        &self,
        source: Source,
        remote: SocketAddr,
        limits: ReadLimits,
        private_data: KVec<u8>,
    ) -> Result<(), NtStatus> {
        let device = self.device();
        let (route, shared) = route(&self.owner, source, remote)?;
        let netdev = device.netdev().ok_or(NtStatus::NETWORK_UNREACHABLE)?;
        let qp = self.inner.state.lock().attempt.qp();
        let qp = qp.ok_or(NtStatus::CANCELLED)?.engine().clone();
        let local = route.from().addr();
        let events = Arc::new(LinkEvents(self.inner.clone()), GFP_KERNEL)?;
        let ask = ConnectParams {
            net: device.net,
            local,
            remote,
            remote_is_here: netdev.is_local_addr(remote.ip()),
            limits,
            wants_confirmation: true,
            // A full backlog is a refusal (CONN-02).
            retries_when_full: false,
            private_data,
        };
        let initiator = Initiator::Local { qp, events };
        let made = self.owner.cm.make_request(initiator, ask);
        let request = made.map_err(no_memory)?;
        let mut state = self.inner.state.lock();
        state.attempt.request = Some(request.clone());
        state.local = Some(local);
        state.remote = Some(remote);
        state.attempt.route = Some(route);
        state.attempt.shared = shared;
        let over = state.stage == ConnectorStage::Over;
        drop(state);
        match over {
            // The answer to the request ends the call.
            true => {
                request.abandon();
            }
            false => self.owner.cm.submit(&request),
        }
        Ok(())
    }

    fn end_complete(self: &Arc<Self>) {
        let mut state = self.inner.state.lock();
        let Some(request) = state.attempt.request.clone() else {
            drop(state);
            return self
                .inner
                .fail(NtStatus::CONNECTION_INVALID, ConnectorStage::Idle);
        };
        if state.attempt.link.is_none() && !state.is_end_reported {
            state.use_link();
        }
        drop(state);
        match request.confirm() {
            // The confirmation of this side was taken.
            Ok(()) => self.inner.finish_connect(|state| {
                state.attempt.link.is_some() && state.stage == ConnectorStage::Completing
            }),
            Err(why) => self.inner.fail(why.into(), ConnectorStage::Idle),
        }
    }

    fn end_accept(self: &Arc<Self>, qp: &Ref<Qp>, limits: ReadLimits, private_data: &[u8]) {
        let request = self.inner.state.lock().attempt.request.clone();
        let accepted = match (
            request,
            Arc::new(LinkEvents(self.inner.clone()), GFP_KERNEL),
        ) {
            (Some(request), Ok(side)) => {
                let accepted = request.accept(qp.engine(), limits, private_data, side);
                // A close during the accept may have come too early to withdraw the request.
                if accepted.is_ok() && self.inner.state.lock().stage == ConnectorStage::Over {
                    request.withdraw();
                }
                accepted
            }
            (Some(request), Err(_)) => {
                let _ = request.reject(&[]);
                Err(ConnectError::NoMemory)
            }
            (None, _) => Err(ConnectError::Aborted),
        };
        if let Err(why) = accepted {
            self.inner.fail(why.into(), ConnectorStage::Over);
        }
    }
}
