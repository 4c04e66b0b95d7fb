// SPDX-License-Identifier: GPL-2.0

//! Requests that concern this side's memory table alone: register, invalidate, bind.
//!
//! Every transport executes them in their turn in the send queue, through this file.
//!
//! Tests: `engine/qp/post/tests.rs`.

use super::QueuePair;
use crate::{
    engine::{
        memory::{
            slot::{
                RegAttr,
                RegisterError, //
            },
            RevokeError, //
        },
        prelude::*, //
    },
    rdma::values::{
        token::Token,
        work::SendOp, //
    },
    sys::trace, //
};

/// The progress of a local request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// Over, with this status.
    Done(Status),
    /// An access is still running: wait for [`crate::engine::memory::MemoryTable::is_drained`].
    Draining(Token),
    /// An access is still running: wait for its end, and try the same request again.
    Again(Token),
}

/// Executes `work` of `qp`, which is a local request. Any context.
pub(crate) fn execute(qp: &QueuePair, work: &SendOp) -> Local {
    let user = qp.peer_user();
    match *work {
        SendOp::RegMr {
            token,
            base,
            len,
            rights,
            staged,
        } => {
            let attr = RegAttr {
                domain: user.domain,
                rights,
                base,
                len,
                binding: None,
            };
            let regions = &qp.device().regions;
            let made = regions.register_staged(token, attr, staged);
            if made.is_ok() {
                qp.device().count(Counter::Registrations, 1);
            }
            registered(made, token, Status::LocalOperation)
        }
        SendOp::LocalInv {
            token,
            must_be_valid,
        } => invalidate(qp, token, must_be_valid),
        SendOp::BindMw {
            window,
            region,
            addr,
            len,
            rights,
        } => {
            let regions = &qp.device().regions;
            let made = regions.bind(window, region, user, rights, addr, len);
            registered(made, window, Status::Bind)
        }
        SendOp::Send { .. }
        | SendOp::Write { .. }
        | SendOp::Read { .. }
        | SendOp::FetchAdd { .. }
        | SendOp::CmpSwap { .. } => Local::Done(Status::LocalOperation),
    }
}

/// Executes `work` of `qp`, if it is a local request that succeeds at once. Any context.
///
/// A call that returns `false` has no effects but those of [`execute`].
#[inline]
pub(crate) fn execute_at_once(qp: &QueuePair, work: &SendOp) -> bool {
    match *work {
        SendOp::RegMr { .. } => execute(qp, work) == Local::Done(Status::Success),
        SendOp::LocalInv { token, .. } => {
            let device = qp.device();
            let done = device.regions.revoke_unused(token, qp.local_user().domain);
            if done {
                device.count(Counter::InvalidationsLocal, 1);
                traced(qp, token, false);
            }
            done
        }
        _ => false,
    }
}

/// Traces an invalidation by the owner.
#[inline(always)]
pub(crate) fn traced(qp: &QueuePair, token: Token, refused: bool) {
    trace::event!(invalidate, {
        let (name, number) = (qp.device().name(), qp.params.number);
        (name, number, token.raw(), false, refused)
    });
}

fn registered(made: Result<(), RegisterError>, token: Token, failure: Status) -> Local {
    match made {
        Ok(()) => Local::Done(Status::Success),
        Err(RegisterError::Busy) => Local::Again(token),
        Err(RegisterError::Valid | RegisterError::TooLong | RegisterError::NotAllowed) => {
            Local::Done(failure)
        }
    }
}

/// Ends the validity of `token` for its owner; also at the end of a read that asks for it.
pub(crate) fn invalidate(qp: &QueuePair, token: Token, must_be_valid: bool) -> Local {
    let device = qp.device();
    let is_refused = match device.regions.revoke(token, qp.local_user().domain) {
        Ok(()) => {
            device.count(Counter::InvalidationsLocal, 1);
            false
        }
        Err(RevokeError::AlreadyInvalid) => must_be_valid,
        Err(RevokeError::NotAllowed) => true,
    };
    traced(qp, token, is_refused);
    if is_refused {
        device.count(Counter::InvalidationsRefused, 1);
        return Local::Done(Status::LocalOperation);
    }
    Local::Draining(token)
}
