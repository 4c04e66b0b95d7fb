// SPDX-License-Identifier: GPL-2.0

//! Memory that the peer names.
//!
//! Context: any.
//!
//! Tests: `direct/tests/refuse.rs`.

use super::Wire;
use crate::{
    engine::{
        memory::{
            transfer::{
                MemoryUsage,
                Payload, //
            },
            Denied, //
        },
        prelude::*, //
    },
    iwarp::{
        ddp,
        rdmap::{
            self,
            Opcode,
            ReadRequest, //
        },
        terminate::{
            Cause,
            Segment,
            Terminate, //
        }, //
    },
    rdma::values::work::RemoteAddr,
};

/// The length of the memory of an atomic operation, in bytes.
pub(super) const WORD: u32 = 8;

impl Wire {
    /// Applies `f` to memory that the peer names for a use, under the guards of the engine.
    pub(super) fn with_named<T>(
        &self,
        wanted: AccessFlag,
        at: RemoteAddr,
        len: u32,
        f: impl FnOnce(&Payload<'_>) -> Result<T, Denied>,
    ) -> Result<T, Denied> {
        let qp = &self.qp;
        if !qp.peer_may(wanted) {
            return Err(Denied::Rights);
        }
        let _inside = qp.admit_peer(self.id).ok_or(Denied::Token)?;
        // Dropped before `_inside`: once the queue pair is drained, the region is unused.
        f(&Payload::Named(qp.peer_usage(wanted), at, len.into()))
    }

    /// Checks that the peer may use memory that it names.
    pub(super) fn check_named(
        &self,
        wanted: AccessFlag,
        at: RemoteAddr,
        len: u32,
    ) -> Result<(), Denied> {
        self.with_named(wanted, at, len, |payload| payload.check(len.into()))
    }

    /// The use of this side's memory for what comes.
    pub(super) fn sink(&self) -> MemoryUsage<'_> {
        self.qp.local_usage(AccessFlag::LocalWrite)
    }

    /// Counts an access that is refused. Returns false if the reason is that this side has ended the
    /// connection, which is no fault of the peer.
    pub(super) fn count_refused(&self) -> bool {
        let is_fault = self.qp.is_connected_by(self.id);
        if is_fault {
            self.qp.device().count(Counter::AccessRefused, 1);
        }
        is_fault
    }
}

/// The cause of a Write that is refused.
pub(super) fn tagged(denied: Denied) -> Cause {
    match denied {
        Denied::Token => Cause::TaggedInvalidStag,
        Denied::Rights => Cause::AccessRights,
        Denied::Bounds => Cause::TaggedBounds,
    }
}

/// The cause of a read or an atomic operation that is refused.
pub(super) fn untagged(denied: Denied) -> Cause {
    match denied {
        Denied::Token => Cause::InvalidStag,
        Denied::Rights => Cause::AccessRights,
        Denied::Bounds => Cause::Bounds,
    }
}

/// The Terminate of a read that is refused.
pub(super) fn refusal(denied: Denied, request: &ReadRequest, number: u32) -> Terminate {
    let header = ddp::Untagged {
        last: true,
        ulp: Opcode::ReadRequest.encode(),
        ulp_word: 0,
        queue: rdmap::queue::READ,
        message: number,
        offset: 0,
    };
    let payload = request.encode();
    // CAST: a few bytes.
    let len = (ddp::UNTAGGED_LEN + ReadRequest::LEN) as u16;
    let about = Segment {
        header: &header.encode(),
        request: Some(&payload),
        len,
    };
    Terminate::new(untagged(denied), Some(about))
}
