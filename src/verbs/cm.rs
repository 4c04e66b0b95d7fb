// SPDX-License-Identifier: GPL-2.0

//! Connections: the calls of `iw_cm` to the engine, and the engine's events back.

use core::net::{
    IpAddr,
    SocketAddr, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Verbs,
    CONTEXT, //
};
use crate::{
    engine::{
        cm::{
            AddressError,
            ConnectError,
            ConnectParams,
            ConnectRequest,
            ConnectionEvents,
            ConnectionManager,
            Gone,
            Listener,
            ListenerEvents, //
        },
        counters::Counter,
        device::RdmaDevice,
        limits::MAX_READS,
        status::Status,
        transport::ReadLimits, //
    },
    rdma::{
        CmId,
        CmReply,
        CmRequest,
        ConnParams,
        Device,
        Qp,
        RequestId, //
    },
    sys::netdev::NetDev, //
};

/// One side of a connection, towards its `iw_cm_id`.
struct Events {
    id: CmId<Verbs>,
    local: SocketAddr,
    remote: SocketAddr,
    /// The reads to serve at once that the consumer asked for. It is notified these, and not how
    /// many of them the peer may have outstanding: SMB takes them for the number of its regions.
    inbound: u32,
}

impl ConnectionEvents for Events {
    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result {
        let limits = answer.unwrap_or_default();
        let event = CmReply {
            status: answer.map(|_| ()).map_err(errno),
            local: self.local,
            remote: self.remote,
            ird: narrow(answer.map_or(0, |_| self.inbound)),
            ord: narrow(limits.outbound),
            private_data,
        };
        self.id.connect_reply(&event)
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

/// The connection manager's read limits are bytes.
fn narrow(limit: u32) -> u8 {
    u8::try_from(limit).unwrap_or(u8::MAX)
}

fn limits(params: &ConnParams<'_>) -> ReadLimits {
    ReadLimits {
        inbound: params.ird.min(MAX_READS),
        outbound: params.ord.min(MAX_READS),
    }
}

/// Asks for a connection; the answer comes as an event, always.
pub(super) fn connect(id: CmId<Verbs>, qp: &Qp<Verbs>, params: &ConnParams<'_>) -> Result {
    let local = id.mapped_local().or_else(|| id.local()).ok_or(EINVAL)?;
    let remote = id.mapped_remote().or_else(|| id.remote()).ok_or(EINVAL)?;
    let device = qp.device();
    if qp.has_asked() {
        return Err(EINVAL);
    }
    let netdev = device.netdev().ok_or(ENETDOWN)?;
    let mut private_data = KVec::new();
    private_data.extend_from_slice(params.private_data, GFP_KERNEL)?;
    let limits = limits(params);
    let events = Events {
        id,
        local,
        remote,
        inbound: limits.inbound,
    };
    let events = Arc::new(events, GFP_KERNEL)?;
    let offer = device.cm().make_request(ConnectParams {
        net: device.net(),
        local,
        remote,
        remote_is_here: netdev.is_local_addr(remote.ip()),
        qp: qp.engine().clone(),
        limits,
        private_data,
        events,
        confirms: false,
        waits: true,
    })?;
    // The queue pair can take it back from here on, and so before it can be answered.
    qp.set_offer(offer.number);
    device.cm().submit(&offer);
    Ok(())
}

/// Accepts a request with a queue pair.
pub(super) fn accept(
    id: CmId<Verbs>,
    qp: &Qp<Verbs>,
    request: RequestId,
    params: &ConnParams<'_>,
) -> Result {
    let cm = qp.device().cm();
    let offer = cm
        .request_at_listener(request.number())
        .ok_or(ECONNABORTED)?;
    if qp.device().net() != offer.params.net {
        // The connection manager has taken a device of the listener's namespace, where the address
        // is another one.
        let _ = cm.pass_on(&offer, request.number(), Status::Refused);
        return Err(ECONNABORTED);
    }
    let limits = limits(params);
    let events = Events {
        id,
        local: offer.params.remote,
        remote: offer.params.local,
        inbound: limits.inbound,
    };
    let Ok(events) = Arc::new(events, GFP_KERNEL) else {
        // The consumer cannot answer any more: the request is no longer known above.
        let _ = offer.reject(&[]);
        return Err(ENOMEM);
    };
    let accepted = offer.accept(qp.engine(), limits, params.private_data, events);
    accepted.map_err(|why| match why {
        ConnectError::Gone | ConnectError::TimedOut => ECONNABORTED,
        ConnectError::NotReady => EINVAL,
        ConnectError::NoMemory => ENOMEM,
    })
}

/// Turns a request away, with words for the peer; or passes it on, if the connection manager does
/// not tell its consumer of it: the address is not one of the consumer's namespace.
pub(super) fn reject(id: &CmId<Verbs>, request: RequestId, private_data: &[u8]) -> Result {
    let context = CONTEXT.get().ok_or(ENODEV)?;
    let cm = &context.cm;
    let offer = cm
        .request_at_listener(request.number())
        .ok_or(ECONNABORTED)?;
    let consumer = offer.consumer(request.number()).ok_or(ECONNABORTED)?;
    let rejected = match private_data.is_empty() && consumer == id.client() {
        true => cm.pass_on(&offer, request.number(), Status::Refused),
        false => offer.reject(private_data),
    };
    rejected.map_err(|Gone| ECONNABORTED)
}

/// A listening `iw_cm_id`.
pub(crate) struct Listening {
    cm: Arc<ConnectionManager>,
    listener: Arc<Listener>,
}

struct Requests {
    id: CmId<Verbs>,
    device: Arc<RdmaDevice>,
}

impl ListenerEvents for Requests {
    fn request(&self, offer: Arc<ConnectRequest>) -> Result {
        let limits = offer.params.limits;
        let event = CmRequest {
            local: offer.params.remote,
            remote: offer.params.local,
            ird: narrow(limits.inbound),
            ord: narrow(limits.outbound),
            private_data: &offer.params.private_data,
        };
        let number = offer.listener_number().ok_or(ECONNABORTED)?;
        self.id.connect_request(&event, RequestId::new(number))
    }

    fn turned_away(&self) {
        self.device.count(Counter::Rejects, 1);
    }

    fn device(&self) -> usize {
        self.device.id()
    }

    fn has_addr(&self, ip: IpAddr) -> bool {
        self.device
            .netdev()
            .is_some_and(|n: NetDev| n.is_resolved_by(ip))
    }

    /// Of an address of another device the connection manager would make a connection on that
    /// device, and that may be another provider's.
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

/// Begins to listen at the id's address; `EADDRINUSE` when somebody does already at the same one,
/// but for those that the connection manager listens at for several namespaces.
pub(super) fn listen(device: &Device<Verbs>, id: CmId<Verbs>) -> Result<Arc<Listening>> {
    let at = id.mapped_local().or_else(|| id.local()).ok_or(EINVAL)?;
    let device = device.device().clone();
    let cm = device.cm().clone();
    let net = device.net();
    let events = KBox::new(Requests { id, device }, GFP_KERNEL)?;
    let listener = cm.listen(net, at, events);
    let listener = listener.map_err(|why| match why {
        AddressError::NoMemory => ENOMEM,
        AddressError::InUse | AddressError::Exists | AddressError::NoPort => EADDRINUSE,
    })?;
    // Dropping it ends listening, so nothing is left behind when there is no memory.
    Ok(Arc::new(Listening { cm, listener }, GFP_KERNEL)?)
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}

impl Listening {
    /// Ends listening: no request is notified after this.
    pub(super) fn end(&self) {
        self.cm.unlisten(&self.listener);
    }
}
