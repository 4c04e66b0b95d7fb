// SPDX-License-Identifier: GPL-2.0

//! Injected faults of a connection that is being made, and of the report of its end.
//!
//! The faults are those of the device of the side that connects, and at the end of a connection of
//! the side that is to hear of it. An answer that the connecting side has to confirm (NDKPI), and a
//! refusal, are not dropped.
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
        What, //
    },
    prelude::*,
    qp::QueuePair, //
};

/// Microseconds as milliseconds, and no fewer.
const fn ms(usec: u32) -> u32 {
    usec.div_ceil(1000)
}

/// Connects, and their ends, are counted for the device: a queue pair has one.
fn inject(qp: &QueuePair, fault: Fault, what: What) -> Option<Hit> {
    qp.device()
        .inject(fault, &Site::of_device(what), qp.log_limit())
}

impl ConnectRequest {
    fn inject(&self, fault: Fault, what: What) -> Option<Hit> {
        inject(&self.params.qp, fault, what)
    }

    /// Returns true if the answer to the request gets lost: both sides are connected, and the
    /// active one gives up when its time is over.
    #[cold]
    pub(super) fn drops_reply(&self) -> bool {
        let hit = self.inject(Fault::DropEvent, What::Reply);
        if let Some(hit) = &hit {
            self.active.lose_reply(match hit.usec {
                0 => self.cm.timeouts.answer_ms,
                usec => ms(usec),
            });
        }
        hit.is_some()
    }
}

impl ConnectionManager {
    /// Does with a new request what faults have in store for it; returns true if that is all for
    /// now.
    #[cold]
    pub(super) fn submit_to_faults(&self, request: &Arc<ConnectRequest>) -> bool {
        let connection = What::Connection;
        if request.inject(Fault::RejectConnect, connection).is_some() {
            request.decide(Status::Refused, &[]);
            return true;
        }
        if let Some(hit) = request.inject(Fault::DropEvent, What::Request) {
            // Nobody hears of it, and the time for the answer goes by.
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
    /// The milliseconds by which this side is late to learn that its connection is gone, if any.
    ///
    /// It has to hear of it: `iw_cm` keeps the queue pair until then.
    #[cold]
    pub(super) fn close_is_late(&self) -> Option<u32> {
        let (fault, what) = (Fault::DropEvent, What::Disconnect);
        let hit = inject(&self.qp, fault, what)?;
        Some(ms(hit.usec).max(1))
    }
}
