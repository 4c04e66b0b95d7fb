// SPDX-License-Identifier: GPL-2.0

//! Connections: the calls of `iw_cm` to the engine, and the engine's events back.

use core::net::{
    IpAddr,
    SocketAddr, //
};

use super::{
    prelude::*,
    qp::{
        narrow,
        Qp, //
    }, //
};
use crate::{
    engine::{
        cm::{
            AddressError,
            ConnectError,
            ConnectParams,
            ConnectRequest,
            ConnectionEvents,
            ConnectionGone,
            Initiator,
            Listener,
            ListenerEvents, //
        },
        inject::SiteKind,
        transport::ReadLimits, //
    },
    rdma::{
        CmId,
        CmInfo,
        CmOperations,
        ConnParams,
        ListenerOperations,
        RequestId, //
    },
    sys::netdev::NetDev, //
};

/// One side of a connection, towards its `iw_cm_id`.
struct Events {
    id: CmId<Verbs>,
    local: SocketAddr,
    remote: SocketAddr,
    /// The reads to serve at once that the consumer asked for. Events report this number, not the
    /// number that the peer may have outstanding: SMB takes it for the number of its regions.
    inbound: u32,
}

impl ConnectionEvents for Events {
    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result {
        let info = CmInfo {
            local: self.local,
            remote: self.remote,
            ird: narrow(answer.map_or(0, |_| self.inbound)),
            ord: narrow(answer.unwrap_or_default().outbound),
            private_data,
        };
        self.id
            .connect_reply(answer.map(|_| ()).map_err(errno), &info)
    }

    fn established(&self, limits: ReadLimits) {
        let (ird, ord) = (narrow(self.inbound), narrow(limits.outbound));
        // The event has no data, and iw_cm keeps room for it: it is never lost.
        let _ = self.id.established(ird, ord);
    }

    fn closed(&self, _by_peer: bool) -> Result {
        self.id.closed(Ok(()))
    }
}

/// The errors that the connection manager turns into REJECTED, UNREACHABLE and CONNECT_ERROR.
fn errno(status: Status) -> Error {
    match status {
        Status::Refused => ECONNREFUSED,
        Status::Unreachable | Status::Timeout => ETIMEDOUT,
        _ => ECONNRESET,
    }
}

/// The read limits asked for; `EINVAL` above the device's, as the providers of the kernel tree have
/// it.
fn limits(ird: u32, ord: u32) -> Result<ReadLimits> {
    match ird.max(ord) > MAX_READS {
        true => Err(EINVAL),
        false => Ok(ReadLimits {
            inbound: ird,
            outbound: ord,
        }),
    }
}

impl CmOperations<Verbs> for Qp {
    fn may_connect(&self) -> bool {
        self.is_ready()
    }

    /// Asks for a connection; an event always brings the answer.
    fn connect(&self, id: CmId<Verbs>, params: &ConnParams<'_>) -> Result {
        let (local, remote) = (id.local()?, id.remote()?);
        let device = self.device();
        device.netdev().ok_or(ENETDOWN)?;
        let mut private_data = KVec::new();
        private_data.extend_from_slice(params.private_data, GFP_KERNEL)?;
        let limits = limits(params.ird, params.ord)?;
        let events = Events {
            id,
            local,
            remote,
            inbound: limits.inbound,
        };
        let events = Arc::new(events, GFP_KERNEL)?;
        self.begin_connect()?;
        let initiator = Initiator::Local {
            qp: self.engine.clone(),
            events,
        };
        let params = ConnectParams {
            net: params.net.cookie(),
            local,
            remote,
            remote_is_here: params.net.is_local_addr(remote.ip()),
            limits,
            private_data,
            wants_confirmation: false,
            retries_when_full: true,
        };
        let made = self.cm.make_request(initiator, params);
        // The queue pair can take the request back from here on, before an answer is possible.
        let is_wanted = self.end_connect(made.as_ref().ok().map(|pending| pending.number));
        let pending = made?;
        match is_wanted {
            true => self.cm.submit(&pending),
            // Gives the promised answer.
            false => {
                pending.abandon();
            }
        }
        Ok(())
    }

    fn accept(&self, id: CmId<Verbs>, request: RequestId, params: &ConnParams<'_>) -> Result {
        let pending = self
            .cm
            .request_at_listener(request.number())
            .ok_or(ECONNABORTED)?;
        let limits = limits(params.ird, params.ord);
        let Some(limits) = limits.ok().filter(|_| self.is_ready()) else {
            // As below.
            let _ = pending.reject(&[]);
            return Err(EINVAL);
        };
        let events = Events {
            id,
            local: pending.params.remote,
            remote: pending.params.local,
            inbound: limits.inbound,
        };
        let Ok(events) = Arc::new(events, GFP_KERNEL) else {
            // The consumer cannot answer any more: the request is no longer known above.
            let _ = pending.reject(&[]);
            return Err(ENOMEM);
        };
        let accepted = pending.accept(&self.engine, limits, params.private_data, events);
        accepted.map_err(|why| match why {
            ConnectError::Aborted | ConnectError::TimedOut => ECONNABORTED,
            ConnectError::NotReady => EINVAL,
            ConnectError::NoMemory => ENOMEM,
        })
    }
}

/// The consumer of a listener, behind its `iw_cm_id`.
struct IwListenEvents {
    id: CmId<Verbs>,
    device: Arc<RdmaDevice>,
}

impl ListenerEvents for IwListenEvents {
    fn request(&self, pending: Arc<ConnectRequest>) -> Result {
        let limits = pending.params.limits;
        let info = CmInfo {
            local: pending.params.remote,
            remote: pending.params.local,
            ird: narrow(limits.inbound),
            ord: narrow(limits.outbound),
            private_data: &pending.params.private_data,
        };
        let number = pending.listener_number().ok_or(ECONNABORTED)?;
        self.id.connect_request(&info, RequestId::new(number))
    }

    fn rejected(&self) {
        self.device.count(Counter::Rejects, 1);
    }

    fn device(&self) -> usize {
        self.device.id()
    }

    fn netdev(&self) -> Option<NetDev> {
        self.device.netdev()
    }

    fn has_addr(&self, ip: IpAddr) -> bool {
        self.device
            .netdev()
            .is_some_and(|n: NetDev| n.is_resolved_by(ip))
    }

    /// Returns false: for an address of another device the connection manager would make a
    /// connection on that device, which may be another provider's.
    fn serves_others(&self) -> bool {
        false
    }

    fn consumer(&self) -> Option<usize> {
        Some(self.id.client())
    }

    fn is_dual(&self) -> bool {
        !self.id.is_family_only()
    }
}

impl ListenerOperations<Verbs> for Listener {
    /// Begins to listen at the address of `id`; `EADDRINUSE` if another listener has the port
    /// there.
    fn create(
        device: &Device<Verbs>,
        id: CmId<Verbs>,
        net: u64,
        _backlog: u32,
    ) -> Result<Arc<Self>> {
        let at = id.local()?;
        let (device, cm) = (device.device().clone(), &device.cm);
        device.may_make(SiteKind::Listener)?;
        let events = KBox::new(IwListenEvents { id, device }, GFP_KERNEL)?;
        let listener = cm.listen(net, at, events);
        listener.map_err(|why| match why {
            AddressError::NoMemory => ENOMEM,
            AddressError::InUse | AddressError::Exists | AddressError::NoPort => EADDRINUSE,
        })
    }

    fn destroy(self: &Arc<Self>, device: &Device<Verbs>) -> Result {
        device.cm.unlisten(self);
        Ok(())
    }

    /// Rejects a request, with private data for the peer; or passes it to the next listener, if
    /// rdma_cm did not notify its consumer: the address is not of the consumer's namespace.
    fn reject(id: &CmId<Verbs>, request: RequestId, private_data: &[u8]) -> Result {
        let context = CONTEXT.get().ok_or(ENODEV)?;
        let cm = &context.cm;
        let pending = cm
            .request_at_listener(request.number())
            .ok_or(ECONNABORTED)?;
        let consumer = pending.consumer(request.number()).ok_or(ECONNABORTED)?;
        let rejected = match private_data.is_empty() && consumer == id.client() {
            true => cm.decline(&pending, request.number(), Status::Refused),
            false => pending.reject(private_data),
        };
        rejected.map_err(|ConnectionGone| ECONNABORTED)
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_verbs_cm)]
mod tests {
    use super::*;

    #[test]
    fn read_limits_are_taken_up_to_the_devices_and_refused_above() {
        let all = ReadLimits {
            inbound: MAX_READS,
            outbound: MAX_READS,
        };
        kunit_assert_eq!(limits(MAX_READS, MAX_READS), Ok(all));
        kunit_assert_eq!(limits(0, 0), Ok(ReadLimits::default()));
        kunit_assert_eq!(limits(MAX_READS + 1, 0), Err(EINVAL));
        kunit_assert_eq!(limits(0, MAX_READS + 1), Err(EINVAL));
    }
}
