// SPDX-License-Identifier: GPL-2.0

//! Injected faults of a connection that is being made, and of the report of its end.
//!
//! A connect meets the faults of the active side's device, and one of another host meets none; the
//! report of an end meets those of the device of the side that is notified. An answer that the
//! active side has to confirm (NDKPI) is not dropped, nor is a refusal.
//!
//! Context: process, but for [`Endpoint::close_is_late`].
//!
//! Tests: `engine/cm/tests/inject.rs`.

use super::{
    endpoint::Endpoint,
    ConnectRequest,
    ConnectionManager, //
};
use crate::engine::{
    inject::{
        Fault,
        Hit,
        Site,
        SiteKind, //
    },
    prelude::*,
    qp::QueuePair, //
};

/// Microseconds as milliseconds, rounded up.
const fn ms(usec: u32) -> u32 {
    usec.div_ceil(1000)
}

/// Returns the hit of a fault, if any. Connects and their ends are counted for the device: a queue
/// pair has one connection.
fn inject(qp: &QueuePair, fault: Fault, what: SiteKind) -> Option<Hit> {
    qp.device()
        .inject(fault, &Site::of_device(what), qp.log_limit())
}

impl ConnectRequest {
    /// A request of a remote initiator meets no fault.
    fn inject(&self, fault: Fault, what: SiteKind) -> Option<Hit> {
        inject(&self.active.local()?.qp, fault, what)
    }

    /// Returns true if the answer to the request gets lost: both sides are connected, and the
    /// active one gives up when its time is over.
    #[cold]
    pub(super) fn drops_reply(&self, active: &Arc<Endpoint>) -> bool {
        let hit = self.inject(Fault::DropEvent, SiteKind::Reply);
        if let Some(hit) = &hit {
            active.lose_reply(match hit.usec {
                0 => self.cm.timeouts.answer_ms,
                usec => ms(usec),
            });
        }
        hit.is_some()
    }
}

impl ConnectionManager {
    /// Applies the faults that hit a new request; returns true if the request is not offered now.
    #[cold]
    pub(super) fn submit_to_faults(&self, request: &Arc<ConnectRequest>) -> bool {
        let connection = SiteKind::Connection;
        if request.inject(Fault::RejectConnect, connection).is_some() {
            request.decide(Status::Refused, &[]);
            return true;
        }
        if let Some(hit) = request.inject(Fault::DropEvent, SiteKind::Request) {
            // No listener is notified, and the time for the answer runs out.
            if hit.usec > 0 {
                request.answer_within(ms(hit.usec));
            }
            return true;
        }
        if !request.params.remote_is_here {
            return false;
        }
        let hit = request.inject(Fault::DelayConnect, connection);
        if let Some(hit) = &hit {
            request.offer_first_in(ms(hit.usec));
        }
        hit.is_some()
    }
}

impl Endpoint {
    /// The delay of the report that the connection is gone, in milliseconds, if a fault hits.
    ///
    /// The report is late, but never lost: `iw_cm` keeps the queue pair until then.
    #[cold]
    pub(super) fn close_is_late(&self) -> Option<u32> {
        let (fault, what) = (Fault::DropEvent, SiteKind::Disconnect);
        let hit = inject(&self.qp, fault, what)?;
        Some(ms(hit.usec).max(1))
    }
}
