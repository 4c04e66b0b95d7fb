// SPDX-License-Identifier: GPL-2.0

//! Invalidation by a [`Flow`]: the token is refused to new accesses at once, and the request goes
//! on when the last access is over.
//!
//! Tests: `direct/tests/invalidate.rs`.

use super::flow::{
    Exec,
    Flow,
    Pause,
    Phase,
    Step, //
};
use crate::{
    engine::{
        prelude::*,
        qp::QueuePair, //
    },
    rdma::values::token::Token,
    sys::trace, //
};

/// The time in nanoseconds after which a flow looks again at memory in use that another flow waits
/// for, too: an access lasts about as long.
const LOOK_AGAIN_NS: u64 = 20_000;

impl Flow {
    /// Ends the validity of the peer's `token`, if the message may.
    pub(super) fn begin_remote_revocation(
        self: &Arc<Self>,
        exec: &mut Exec,
        token: Token,
    ) -> Phase {
        let device = self.to.device();
        match device.regions.revoke_remote(token, self.to.peer_user()) {
            Ok(()) => {
                self.trace_remote(token, false);
                device.count(Counter::InvalidationsRemote, 1);
                Phase::RevokeRemote(token)
            }
            Err(_) => self.refuse_remote_revocation(exec, token),
        }
    }

    /// Ends a message that the peer does not let invalidate `token`.
    #[cold]
    pub(super) fn refuse_remote_revocation(
        self: &Arc<Self>,
        exec: &mut Exec,
        token: Token,
    ) -> Phase {
        self.trace_remote(token, true);
        self.to.device().count(Counter::InvalidationsRefused, 1);
        self.end(
            exec,
            Status::RemoteInvalidRequest,
            Status::ReceiveInvalidation,
        )
    }

    #[inline(always)]
    fn trace_remote(&self, token: Token, refused: bool) {
        trace::event!(invalidate, {
            let (name, number) = (self.to.device().name(), self.to.params.number);
            (name, number, token.raw(), true, refused)
        });
    }

    /// Success once the last access to the memory that `token` named at `at` is gone; that access
    /// kicks the flow.
    pub(super) fn revoked(self: &Arc<Self>, exec: &mut Exec, at: &QueuePair, token: Token) -> Step {
        if at.device().regions.is_drained(token) {
            return Ok(self.succeed(exec));
        }
        if !core::mem::replace(&mut exec.found_access, true) {
            let device = self.from.device();
            device.count(Counter::InvalidationsDelayed, 1);
        }
        Err(self.wait_for_drain(exec, at, token))
    }

    /// Waits for the last access to the memory that `token` named at `at`, which kicks this flow.
    /// If another flow waits there already, as when owner and peer revoke a region at once, or the
    /// access has ended since, this flow looks again soon.
    pub(super) fn wait_for_drain(
        self: &Arc<Self>,
        exec: &mut Exec,
        at: &QueuePair,
        token: Token,
    ) -> Pause {
        if !at.device().regions.when_drained(token, self.clone()) {
            self.look_again_in(exec, LOOK_AGAIN_NS);
        }
        Pause::Wait
    }
}
