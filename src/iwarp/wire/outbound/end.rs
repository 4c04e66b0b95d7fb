// SPDX-License-Identifier: GPL-2.0

//! The end of the sending side, and its progress before that.
//!
//! Tests: `iwarp/wire/tests.rs`.

use kernel::sync::atomic::ordering::Relaxed;

use super::{
    Outbound,
    Stage,
    Wire, //
};
use crate::{
    engine::prelude::*,
    iwarp::wire::ledger::Progress,
    sys::{
        ring::Ring,
        tcp::Buffer, //
    }, //
};

impl Outbound {
    /// Returns false if the request under way waits for the last access to what it has invalidated.
    pub(in crate::iwarp::wire) fn end_drain(&mut self, wire: &Arc<Wire>) -> bool {
        self.drains.is_none() || self.is_drained(wire)
    }

    /// Ends the requests that this side still has. The last report and a Terminate may go out then.
    pub(in crate::iwarp::wire) fn end(&mut self, wire: &Arc<Wire>) {
        self.sending = None;
        self.stage = Stage::Last;
        let mut leaving = core::mem::replace(&mut self.leaving, Ring::EMPTY);
        while let Some((_, gone)) = leaving.pop() {
            let status = wire.ledger.lock().status_of_next();
            gone.complete(&wire.qp, status);
        }
        if self.has_request {
            let status = wire.ledger.lock().status_of_next();
            self.complete(wire, status);
        }
    }

    /// The progress of the requests of this side.
    pub(in crate::iwarp::wire) fn progress(&self, wire: &Wire) -> Progress {
        let drains = self.drains.is_some() && self.leaving.is_empty();
        Progress {
            is_begun: (self.has_request && !drains) || !self.leaving.is_empty(),
            drains,
            taken: self.taken,
            requests_end: self.requests_end,
            placed: wire.placed.load(Relaxed),
        }
    }

    /// The bytes that TCP has taken.
    #[cfg(ndk_kunit)]
    pub(in crate::iwarp::wire) fn taken(&self) -> u64 {
        self.taken
    }

    /// Drops the pages. Process context.
    pub(in crate::iwarp::wire) fn drop_pages(&mut self) {
        self.buffer = Buffer::new();
    }
}
