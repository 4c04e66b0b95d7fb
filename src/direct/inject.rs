// SPDX-License-Identifier: GPL-2.0

//! The steps of a request that faults hit.
//!
//! The effect of faults ([`Injected`]) is drawn when the request begins, and met on the way: before
//! the first step, where the request looks for a receive, where it enters the peer's memory, before
//! it ends and when it has ended. Each of these places checks `inject::is_on()` first, but for the
//! end of the short paths, which are taken if that was false at the beginning. An effect stays with
//! the request when its fault is turned off, and is void when all faults are off. A request that
//! waits goes on when its time is over.
//!
//! The faults are those of the requester's device, for its queue pair; but a receive meets the
//! faults of its own device and queue pair, drawn when a message takes it.
//!
//! Tests: `direct/tests/inject.rs`.

use super::{
    flow::{
        Exec,
        Flow,
        Pause,
        Phase,
        Step, //
    },
    injected::Injected, //
};
use crate::{
    engine::{
        inject::{
            Fault,
            FaultSide,
            SiteKind, //
        },
        memory::transfer::{
            self,
            Payload, //
        },
        prelude::*,
        qp::{
            local,
            QueuePair, //
        }, //
    },
    rdma::values::{
        wc::WcStatus,
        work::{
            SendOp,
            SendWith, //
        }, //
    },
    sys::time, //
};

fn after(usec: u32) -> u64 {
    time::now_ns().saturating_add(u64::from(usec) * 1000)
}

impl Exec {
    /// The effect of faults on the present request; `None` unless it was drawn for this request.
    fn injected(&self) -> Option<&Injected> {
        (self.injected.seq == Some(self.wqe.seq)).then_some(&self.injected)
    }

    /// The effect of faults on the present request, for changes on the way.
    fn injected_mut(&mut self) -> Option<&mut Injected> {
        (self.injected.seq == Some(self.wqe.seq)).then_some(&mut self.injected)
    }

    /// Returns true, once, if the request is to lose the connection when it has ended.
    fn take_loss_of_connection(&mut self) -> bool {
        self.injected_mut()
            .is_some_and(|injected| core::mem::take(&mut injected.drop_connection))
    }

    /// Returns true, once, if the request is to complete later than its receive, which has
    /// completed.
    fn is_acknowledged_late(&mut self) -> bool {
        let Some(injected) = self.injected_mut() else {
            return false;
        };
        injected.ends_at = injected.late.take().map(after);
        injected.ends_at.is_some()
    }

    /// Returns true if the peer is to refuse the memory that the request names.
    #[cold]
    pub(super) fn is_refused_access(&self) -> bool {
        self.injected()
            .is_some_and(|injected| injected.refuse_access)
    }

    /// Returns true if the token that the request invalidates is to be refused.
    fn is_refused_invalidation(&self) -> bool {
        self.injected()
            .is_some_and(|injected| injected.refuse_invalidation)
    }

    /// Returns true if the request is to wait for a receive in vain, though there is one.
    #[cold]
    pub(super) fn never_finds_receive(&self) -> bool {
        self.injected()
            .is_some_and(|injected| injected.rnr == Some(0))
    }
}

impl Flow {
    /// As [`Flow::begin`], for a request that faults may hit: on the path of all requests.
    #[cold]
    pub(super) fn begin_with_faults(self: &Arc<Self>, exec: &mut Exec) -> Step {
        if let Some(step) = self.begin_as_injected(exec) {
            return step;
        }
        match self.begin_without_peer(exec) {
            Some(step) => step,
            None => self.begin_message(exec),
        }
    }

    /// Draws the faults of a request that begins, and applies those of the beginning; `None` if the
    /// request goes on.
    fn begin_as_injected(self: &Arc<Self>, exec: &mut Exec) -> Option<Step> {
        if exec.injected().is_none() {
            exec.injected = self.draw(exec);
        }
        let left = exec.injected.begins_at.checked_sub(time::now_ns());
        if let Some(left) = left.or_else(|| self.look_at_ports_in(exec)) {
            self.look_again_in(exec, left);
            return Some(Err(Pause::Wait));
        }
        if let Some(status) = exec.injected.status {
            return Some(Ok(self.end(exec, status, Status::Flushed)));
        }
        let refuses = exec.injected.refuse_invalidation && exec.wqe.work.is_local();
        refuses.then(|| Ok(self.refuse_invalidation(exec)))
    }

    /// The time to the next look at a message that waits for the port of either side, in
    /// nanoseconds.
    fn look_at_ports_in(&self, exec: &Exec) -> Option<u64> {
        if exec.wqe.work.is_local() {
            return None;
        }
        let wait = |qp: &QueuePair| qp.device().look_at_port_in();
        wait(&self.from).or_else(|| wait(&self.to))
    }

    /// Ends a request that its own side does not let invalidate its token.
    fn refuse_invalidation(self: &Arc<Self>, exec: &mut Exec) -> Phase {
        self.from.device().count(Counter::InvalidationsRefused, 1);
        let token = match exec.wqe.work {
            SendOp::LocalInv { token, .. } => Some(token),
            SendOp::Read { invalidate, .. } => invalidate,
            _ => None,
        };
        if let Some(token) = token {
            local::traced(&self.from, token, true);
        }
        self.end(exec, Status::LocalOperation, Status::Flushed)
    }

    fn draw(&self, exec: &Exec) -> Injected {
        let (work, length) = (&exec.wqe.work, u64::from(exec.wqe.length));
        let hit = |fault| self.from.inject(fault, work.what(), length);
        let is_message = !work.is_local();
        let mut injected = Injected {
            seq: Some(exec.wqe.seq),
            ..Injected::default()
        };
        if let Some(hit) = hit(Fault::CompleteWith) {
            // No other fault applies.
            injected.status = Some(hit.status.into());
            // A queue pair of NDKPI outlives a flush, and its connection must not.
            injected.drop_connection = hit.status == WcStatus::WrFlush;
            return injected;
        }
        if is_message {
            if let Some(hit) = hit(Fault::PortDown) {
                self.from.params.domain.device().port_down(hit.usec);
            }
            injected.begins_at = hit(Fault::DelayMessage).map_or(0, |hit| after(hit.usec));
            injected.drop_connection = hit(Fault::DropConnection).is_some();
        }
        if length > 0 && names_memory(work) {
            injected.refuse_access = hit(Fault::RefuseAccess).is_some();
        }
        if length > 0 && is_message && !is_atomic(work) {
            injected.corrupt = hit(Fault::Corrupt).map(|hit| hit.draw);
        }
        if takes_receive(work) {
            injected.rnr = hit(Fault::Rnr).map(|hit| hit.usec);
        }
        if let Some(hit) = hit(Fault::DelayCompletion) {
            match is_message {
                true => {
                    injected.late = Some(hit.usec);
                    injected.only_own_is_late =
                        hit.side == FaultSide::Requester && takes_receive(work);
                }
                // The work and the end of the request are one step.
                false => injected.begins_at = after(hit.usec),
            }
        }
        injected.refuse_invalidation =
            invalidates(work) && hit(Fault::RefuseInvalidation).is_some();
        injected
    }

    /// The status with which the receive just taken is to fail.
    #[cold]
    pub(super) fn receive_failure(&self, exec: &Exec) -> Option<Status> {
        let length = u64::from(exec.wqe.length);
        let (fault, kind) = (Fault::CompleteWith, SiteKind::Receive);
        let hit = self.to.inject(fault, kind, length);
        hit.map(|hit| hit.status.into())
    }

    /// Waits as if no receive were there; `None` when the wait is over.
    #[cold]
    pub(super) fn finds_no_receive(self: &Arc<Self>, exec: &mut Exec) -> Option<Step> {
        let injected = exec.injected_mut()?;
        let usec = injected.rnr?;
        let ready_at = *injected.ready_at.get_or_insert_with(|| match usec {
            0 => u64::MAX,
            _ => after(usec),
        });
        let Some(left) = ready_at.checked_sub(time::now_ns()) else {
            injected.rnr = None;
            return None;
        };
        if usec > 0 {
            self.look_again_in(exec, left);
        }
        exec.phase = Phase::Receive;
        Some(self.wait_for_receive(exec))
    }

    /// Applies the faults that follow the arrival of the bytes; `None` if the request goes on.
    #[cold]
    pub(super) fn finish_as_injected(self: &Arc<Self>, exec: &mut Exec) -> Option<Phase> {
        if self.arrived(exec) {
            return Some(Phase::LateEnd);
        }
        if !exec.is_refused_invalidation() {
            return None;
        }
        match exec.wqe.work {
            SendOp::Send {
                with: SendWith::Inv(token),
            } => Some(self.refuse_remote_revocation(exec, token)),
            SendOp::Read {
                invalidate: Some(_),
                ..
            } => Some(self.refuse_invalidation(exec)),
            _ => None,
        }
    }

    /// Notes that the bytes have arrived; returns true if the request ends later, in
    /// [`Flow::late_end`].
    fn arrived(self: &Arc<Self>, exec: &mut Exec) -> bool {
        let Some(injected) = exec.injected_mut() else {
            return false;
        };
        let corrupt = injected.corrupt.take();
        let late = match injected.only_own_is_late {
            true => None,
            false => injected.late.take(),
        };
        injected.ends_at = late.map(after);
        if let Some(draw) = corrupt {
            self.corrupt(exec, draw);
        }
        late.is_some()
    }

    /// Ends the request when its time has come.
    #[cold]
    pub(super) fn late_end(self: &Arc<Self>, exec: &mut Exec) -> Step {
        let ends_at = exec.injected.ends_at.unwrap_or(0);
        match ends_at.checked_sub(time::now_ns()) {
            Some(left) => {
                self.look_again_in(exec, left);
                Err(Pause::Wait)
            }
            None => Ok(self.finish(exec)),
        }
    }

    /// Completes the request when its time has come, or its connection is gone.
    #[cold]
    pub(super) fn acknowledged(self: &Arc<Self>, exec: &mut Exec) -> Step {
        let ends_at = exec.injected.ends_at.unwrap_or(0);
        let is_up = self.is_up();
        match ends_at.checked_sub(time::now_ns()) {
            Some(left) if is_up => {
                self.look_again_in(exec, left);
                Err(Pause::Wait)
            }
            // A request that has revoked a token is not cancelled (SINV-13).
            _ if is_up || invalidates(&exec.wqe.work) => {
                Ok(self.end(exec, Status::Success, Status::Success))
            }
            _ => Ok(self.end(exec, Status::Flushed, Status::Flushed)),
        }
    }

    /// Ends the request in the way that was drawn, after the receive that it took, if any; `None`
    /// if the request ends as any other.
    #[cold]
    #[inline(never)]
    pub(super) fn end_as_injected(&self, exec: &mut Exec, request: Status) -> Option<Phase> {
        let has_received = request.is_success() && takes_receive(&exec.wqe.work);
        if has_received && exec.is_acknowledged_late() {
            return Some(Phase::Acknowledged);
        }
        if !exec.take_loss_of_connection() {
            return None;
        }
        let phase = self.complete(exec, request);
        self.lose_connection();
        Some(phase)
    }

    fn corrupt(&self, exec: &Exec, draw: u32) {
        let len = u64::from(exec.wqe.length);
        let Some(at) = u64::from(draw).checked_rem(len) else {
            return;
        };
        match exec.wqe.work {
            SendOp::Write { to, .. } => {
                let sink = Payload::Named(self.to.peer_usage(AccessFlag::RemoteWrite), to, len);
                if let Ok(_inside) = self.enter(exec, AccessFlag::RemoteWrite) {
                    transfer::corrupt(&sink, at);
                }
            }
            SendOp::Read { .. } => transfer::corrupt(&self.local(&exec.wqe), at),
            _ => transfer::corrupt(&self.received(&exec.receive), at),
        }
    }

    /// Drops the connection of both queue pairs, as if the path between them had broken.
    fn lose_connection(&self) {
        self.from.peer_gone(self.connection);
        self.to.peer_gone(self.connection);
    }
}

fn is_atomic(work: &SendOp) -> bool {
    matches!(work, SendOp::FetchAdd { .. } | SendOp::CmpSwap { .. })
}

fn names_memory(work: &SendOp) -> bool {
    is_atomic(work) || matches!(work, SendOp::Write { .. } | SendOp::Read { .. })
}

fn takes_receive(work: &SendOp) -> bool {
    match work {
        SendOp::Send { .. } => true,
        SendOp::Write { imm, .. } => imm.is_some(),
        _ => false,
    }
}

fn invalidates(work: &SendOp) -> bool {
    match work {
        SendOp::Send { with } => matches!(with, SendWith::Inv(_)),
        SendOp::Read { invalidate, .. } => invalidate.is_some(),
        SendOp::LocalInv { .. } => true,
        _ => false,
    }
}
