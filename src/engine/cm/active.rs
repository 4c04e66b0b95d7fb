// SPDX-License-Identifier: GPL-2.0

//! [`Active`]: the active side of a request, a queue pair of this host or a remote initiator.
//!
//! Tests: `engine/cm/carrier/tests.rs`.

use super::{
    carrier::RemoteInitiator,
    endpoint::Endpoint,
    ConnectionEvents, //
};
use crate::engine::{
    host::Host,
    prelude::*,
    qp::QueuePair, //
};

/// The active side of a connect, as the caller names it.
pub(crate) enum Initiator {
    /// A queue pair of this host, and the receiver of its events.
    Local {
        qp: Arc<QueuePair>,
        events: Arc<dyn ConnectionEvents>,
    },
    /// An initiator of another host.
    Remote(Arc<dyn RemoteInitiator>),
}

/// The active side of a request.
pub(super) enum Active {
    Local(Arc<Endpoint>),
    Remote(Arc<dyn RemoteInitiator>),
}

impl Active {
    /// The active side of a new request. May sleep. `ENOMEM` when there is no memory.
    pub(super) fn new(initiator: Initiator) -> Result<Self> {
        Ok(match initiator {
            Initiator::Local { qp, events } => Self::Local(Endpoint::new(qp, events)?),
            Initiator::Remote(initiator) => Self::Remote(initiator),
        })
    }

    /// The side of this host, if the initiator is here.
    pub(super) fn local(&self) -> Option<&Arc<Endpoint>> {
        match self {
            Self::Local(endpoint) => Some(endpoint),
            Self::Remote(_) => None,
        }
    }

    /// The state that all devices share. Any context.
    pub(super) fn host(&self) -> &Arc<Host> {
        match self {
            Self::Local(endpoint) => &endpoint.qp.device().host,
            Self::Remote(initiator) => initiator.host(),
        }
    }

    /// Counts a connect that failed, at the device that asked for it. Any context.
    pub(super) fn count_failure(&self) {
        if let Self::Local(endpoint) = self {
            endpoint.qp.device().count(Counter::ConnectFailures, 1);
        }
    }

    /// Notifies the active side that there is no connection; without the private data if they find
    /// no room. Any context.
    pub(super) fn refuse(&self, status: Status, private_data: &[u8]) {
        let endpoint = match self {
            Self::Local(endpoint) => endpoint,
            Self::Remote(initiator) => return initiator.refuse(status, private_data),
        };
        let events = &endpoint.events;
        let notified = events.reply(Err(status), private_data);
        if notified.is_err() && events.reply(Err(status), &[]).is_err() {
            let lost = fmt!("the answer to its connect was lost");
            endpoint.qp.warn(lost);
        }
    }
}
