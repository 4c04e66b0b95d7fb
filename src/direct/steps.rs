// SPDX-License-Identifier: GPL-2.0

//! The steps of a [`Flow`] on one request, phase by phase.
//!
//! A step either moves the request to its next phase or pauses the runner. When it returns, it
//! holds neither memory nor the gate of the peer's queue pair.
//!
//! Tests: `direct/tests/message.rs`.

use super::flow::{
    Exec,
    Flow,
    Pause,
    Phase,
    Step,
    BYTES_PER_HOLD, //
};
use crate::{
    engine::{
        inject,
        memory::{
            transfer::{
                self,
                AccessError,
                Memory,
                Payload, //
            },
            Denied, //
        },
        prelude::*,
        qp::{
            local::{
                self,
                Local, //
            },
            Taken, //
        },
        wq::{
            RecvWqe,
            SendWqe, //
        }, //
    },
    rdma::values::{
        completion::Wc,
        wc::WcOpcode,
        work::{
            RemoteAddr,
            SendFlag,
            SendOp,
            SendWith, //
        }, //
    },
    sys::{
        gate::GateGuard,
        time,
        trace, //
    }, //
};

/// Returns true if the bytes of a request are one element of its list.
fn is_one_piece(wqe: &SendWqe) -> bool {
    wqe.sges.len() == 1 && wqe.length > 0 && !wqe.flags.contains(SendFlag::Inline)
}

impl Flow {
    /// Checks a new request against all that is known now, and carries out as much as it may.
    pub(super) fn begin(self: &Arc<Self>, exec: &mut Exec) -> Step {
        if inject::is_on() {
            return self.begin_with_faults(exec);
        }
        if let Some(step) = self.begin_without_peer(exec) {
            return step;
        }
        let len = u64::from(exec.wqe.length);
        let most = exec.bytes_left.min(BYTES_PER_HOLD);
        match exec.wqe.work {
            SendOp::Send { .. } if is_one_piece(&exec.wqe) => self.send(exec, len, most),
            SendOp::Write { to, .. } if is_one_piece(&exec.wqe) && len <= most => {
                self.write(exec, to, len)
            }
            _ => self.begin_message(exec),
        }
    }

    /// Ends a request that is not allowed, and carries out a request on this side's memory table
    /// alone.
    #[inline(always)]
    pub(super) fn begin_without_peer(self: &Arc<Self>, exec: &mut Exec) -> Option<Step> {
        if exec.wqe.forbidden {
            return Some(Ok(self.refuse(exec, Status::LocalOperation)));
        }
        if !exec.wqe.work.is_local() {
            return None;
        }
        Some(match local::execute(&self.from, &exec.wqe.work) {
            Local::Done(status) => Ok(self.end(exec, status, Status::Flushed)),
            Local::Draining(token) => Ok(Phase::RevokeLocal(token)),
            Local::Again(token) => Err(self.wait_for_drain(exec, &self.from, token)),
        })
    }

    /// Begins a message of any size and any number of pieces.
    #[inline(always)]
    pub(super) fn begin_message(self: &Arc<Self>, exec: &mut Exec) -> Step {
        let len = u64::from(exec.wqe.length);
        if self.local(&exec.wqe).check(len).is_err() {
            return Ok(self.refuse(exec, Status::LocalAccess));
        }
        match exec.wqe.work {
            SendOp::Send { .. } => self.take_receive(exec),
            SendOp::FetchAdd { at, .. } | SendOp::CmpSwap { at, .. } => self.atomic(exec, at),
            _ => self.copy(exec, 0),
        }
    }

    /// Carries a send of one piece out, in one go if a receive is there and takes it in one piece:
    /// the path of most messages. No more than `most` bytes may be moved now.
    fn send(self: &Arc<Self>, exec: &mut Exec, len: u64, most: u64) -> Step {
        let Exec {
            wqe,
            receive,
            holds_receive,
            ..
        } = exec;
        let mut moved = None;
        let found = {
            let Ok(source) = self.gather_one(wqe) else {
                return Ok(self.refuse(exec, Status::LocalAccess));
            };
            let found = self.to.take_receive(self.connection, receive);
            *holds_receive = found == Taken::Ready;
            // A message that fits into the first element needs no other.
            let sink = receive.sges.get(0).filter(|_| *holds_receive);
            if sink.is_some_and(|s| u64::from(s.len()) >= len && len <= most) {
                let usage = self.to.local_usage(AccessFlag::LocalWrite);
                let sink = Memory::local(usage, &receive.sges, 0);
                let sink = sink.map_err(AccessError::Sink);
                moved = Some(sink.and_then(|sink| transfer::copy_whole(&source, &sink, len)));
            }
            found
        };
        match moved {
            Some(Ok(())) => {
                exec.bytes_left -= len;
                return Ok(self.finish_plain(exec));
            }
            Some(Err(error)) => return Ok(self.end_refused(exec, error)),
            None => (),
        }
        self.after_take_receive(exec, found)
    }

    /// The source memory of a request of one piece.
    #[inline]
    fn gather_one<'a>(&'a self, wqe: &'a SendWqe) -> Result<Memory<'a>, Denied> {
        Memory::local(self.from.local_usage(AccessFlags::empty()), &wqe.sges, 0)
    }

    /// Carries a write of one piece out.
    fn write(self: &Arc<Self>, exec: &mut Exec, to: RemoteAddr, len: u64) -> Step {
        let source = self.gather_one(&exec.wqe);
        match source.map(|source| self.write_from(exec, &source, to, len)) {
            Ok(Ok(())) => {
                exec.bytes_left -= len;
                match exec.wqe.work {
                    SendOp::Write { imm: Some(_), .. } => self.take_receive(exec),
                    _ => Ok(self.finish_plain(exec)),
                }
            }
            Ok(Err(error)) => Ok(self.end_refused(exec, error)),
            Err(_) => Ok(self.refuse(exec, Status::LocalAccess)),
        }
    }

    fn write_from(
        &self,
        exec: &Exec,
        source: &Memory<'_>,
        to: RemoteAddr,
        len: u64,
    ) -> Result<(), AccessError> {
        let _inside = self
            .enter(exec, AccessFlag::RemoteWrite)
            .map_err(AccessError::Sink)?;
        // Dropped before `_inside`: once the queue pair is drained, the region is unused.
        let sink = Memory::named(self.to.peer_usage(AccessFlag::RemoteWrite), to, len);
        let sink = sink.map_err(AccessError::Sink)?;
        transfer::copy_whole(source, &sink, len)
    }

    /// Ends the request as failed on its own side's account; the peer's receive is flushed.
    fn refuse(self: &Arc<Self>, exec: &mut Exec, status: Status) -> Phase {
        self.end(exec, status, Status::Flushed)
    }

    /// The bytes of the request.
    pub(super) fn local<'a>(&'a self, wqe: &'a SendWqe) -> Payload<'a> {
        wqe.payload(&self.from)
    }

    /// The receive that the request took.
    pub(super) fn received<'a>(&'a self, receive: &'a RecvWqe) -> Payload<'a> {
        Payload::List(self.to.local_usage(AccessFlag::LocalWrite), &receive.sges)
    }

    /// Takes a receive of the peer, and goes on with the request. Without a receive the request
    /// waits; if the peer flushes its receives, or the connection is gone, the request is flushed.
    pub(super) fn take_receive(self: &Arc<Self>, exec: &mut Exec) -> Step {
        if inject::is_on() {
            if let Some(step) = self.finds_no_receive(exec) {
                return step;
            }
        }
        let found = (self.to).take_receive(self.connection, &mut exec.receive);
        self.after_take_receive(exec, found)
    }

    /// Goes on after the search for a receive.
    fn after_take_receive(self: &Arc<Self>, exec: &mut Exec, found: Taken) -> Step {
        exec.phase = Phase::Receive;
        match found {
            Taken::Ready => (),
            Taken::Refused => return Ok(self.refuse(exec, Status::Flushed)),
            Taken::Empty => return self.wait_for_receive(exec),
        }
        self.cancel_rnr_timer(exec);
        exec.holds_receive = true;
        if inject::is_on() {
            if let Some(status) = self.receive_failure(exec) {
                return Ok(self.end(exec, Status::RemoteOperation, status));
            }
        }
        if !matches!(exec.wqe.work, SendOp::Send { .. }) {
            return Ok(self.finish(exec));
        }
        let len = u64::from(exec.wqe.length);
        let sink = self.received(&exec.receive);
        if sink.len() < len {
            return Ok(self.end(exec, Status::RemoteInvalidRequest, Status::ReceiveLength));
        }
        if sink.check(len).is_err() {
            return Ok(self.end(exec, Status::RemoteOperation, Status::LocalAccess));
        }
        self.copy(exec, 0)
    }

    /// Waits for a receive: its post kicks this flow, or the timer does.
    pub(super) fn wait_for_receive(self: &Arc<Self>, exec: &mut Exec) -> Step {
        let now = time::now_ms();
        let timeout = self.from.device().host.rnr_timeout_ms;
        let mut deadline = match exec.deadline {
            Some(deadline) => deadline,
            None => {
                self.begin_rnr_wait(now);
                now.saturating_add(u64::from(timeout))
            }
        };
        if now >= deadline && self.may_wait_on(exec) {
            deadline = now.saturating_add(u64::from(timeout.max(1)));
        }
        exec.deadline = Some(deadline);
        exec.is_timed = true;
        if now >= deadline {
            self.from.device().count(Counter::RnrTimeouts, 1);
            return Ok(self.refuse(exec, Status::ReceiverNotReady));
        }
        let left = u32::try_from(deadline - now).unwrap_or(timeout);
        self.timer.arm(self, left.saturating_add(1));
        Err(Pause::Wait)
    }

    /// Returns true if a message may wait for a receive longer than the host says: a shared queue
    /// that ran empty breaks no connection (SRQ-10), but it holds up no close either.
    ///
    /// This holds on both faces. The consumers of the verbs that have a shared queue (ib_srpt,
    /// nvmet) ask for RNR retries without end (a count of 7), which iw_cm does not pass on.
    fn may_wait_on(&self, exec: &Exec) -> bool {
        let never = inject::is_on() && exec.never_finds_receive();
        self.to.params.shared.is_some() && !self.from.is_closing() && !never
    }

    /// Copies a part of the message from byte `at` on, and ends the request after the last.
    pub(super) fn copy(self: &Arc<Self>, exec: &mut Exec, at: u64) -> Step {
        let len = u64::from(exec.wqe.length);
        if at < len {
            exec.phase = Phase::Copy(at);
            if exec.bytes_left == 0 {
                self.from.device().count(Counter::BudgetSpent, 1);
                return Err(Pause::Yield);
            }
            let most = exec.bytes_left.min(BYTES_PER_HOLD);
            let done = match self.copy_part(exec, at, len.min(at.saturating_add(most))) {
                Ok(done) => done,
                Err(error) => return Ok(self.end_refused(exec, error)),
            };
            exec.bytes_left -= done - at;
            if done < len {
                return Ok(Phase::Copy(done));
            }
        }
        match exec.wqe.work {
            SendOp::Write { imm: Some(_), .. } => self.take_receive(exec),
            _ => Ok(self.finish(exec)),
        }
    }

    fn copy_part(&self, exec: &Exec, at: u64, until: u64) -> Result<u64, AccessError> {
        let len = u64::from(exec.wqe.length);
        let local = self.local(&exec.wqe);
        match exec.wqe.work {
            SendOp::Write { to, .. } => {
                let sink = Payload::Named(self.to.peer_usage(AccessFlag::RemoteWrite), to, len);
                let _inside = self
                    .enter(exec, AccessFlag::RemoteWrite)
                    .map_err(AccessError::Sink)?;
                transfer::copy(&local, &sink, at, until)
            }
            SendOp::Read { from, .. } => {
                let source = Payload::Named(self.to.peer_usage(AccessFlag::RemoteRead), from, len);
                let _inside = self
                    .enter(exec, AccessFlag::RemoteRead)
                    .map_err(AccessError::Source)?;
                transfer::copy(&source, &local, at, until)
            }
            _ => transfer::copy(&local, &self.received(&exec.receive), at, until),
        }
    }

    /// Enters the peer's queue pair, if it lets this side do `wanted` at all.
    pub(super) fn enter(
        &self,
        exec: &Exec,
        wanted: AccessFlag,
    ) -> Result<GateGuard<'_, ()>, Denied> {
        if inject::is_on() && exec.is_refused_access() {
            return Err(Denied::Token);
        }
        if !self.to.peer_may(wanted) {
            return Err(Denied::Rights);
        }
        self.to.admit_peer(self.connection).ok_or(Denied::Token)
    }

    /// Ends a request whose bytes could not be moved.
    fn end_refused(self: &Arc<Self>, exec: &mut Exec, error: AccessError) -> Phase {
        if !self.is_up() {
            return self.refuse(exec, Status::Flushed);
        }
        let local_is_source = exec.wqe.work.is_outbound();
        let is_local = matches!(error, AccessError::Source(_)) == local_is_source;
        if is_local {
            return self.refuse(exec, Status::LocalAccess);
        }
        if exec.holds_receive {
            return self.end(exec, Status::RemoteOperation, Status::LocalAccess);
        }
        self.to.device().count(Counter::AccessRefused, 1);
        self.trace_refused(exec);
        self.refuse(exec, Status::RemoteAccess)
    }

    fn trace_refused(&self, exec: &Exec) {
        let wqe = &exec.wqe;
        let at = match wqe.work {
            SendOp::Write { to: at, .. } | SendOp::Read { from: at, .. } => at,
            SendOp::FetchAdd { at, .. } | SendOp::CmpSwap { at, .. } => at,
            _ => return,
        };
        trace::event!(access_refused, {
            let (number, peer) = (self.to.params.number, self.from.params.number);
            let opcode = wqe.work.opcode();
            let name = self.to.device().name();
            (
                name,
                number,
                peer,
                at.token.raw(),
                at.addr,
                wqe.length,
                opcode,
            )
        });
    }

    /// Executes an RDMA atomic and puts the old value where the request wants it.
    fn atomic(self: &Arc<Self>, exec: &mut Exec, at: RemoteAddr) -> Step {
        if exec.wqe.length != 8 {
            return Ok(self.refuse(exec, Status::LocalLength));
        }
        let payload = Payload::Named(self.to.peer_usage(AccessFlag::RemoteAtomic), at, 8);
        let old = self
            .enter(exec, AccessFlag::RemoteAtomic)
            .and_then(|_inside| {
                transfer::atomic(&payload, |word| match exec.wqe.work {
                    SendOp::FetchAdd { add, .. } => word.fetch_add(add),
                    SendOp::CmpSwap { compare, swap, .. } => word.compare_swap(compare, swap),
                    _ => None,
                })
            });
        let old = match old {
            Ok(Some(old)) => old.to_ne_bytes(),
            Ok(None) => return Ok(self.refuse(exec, Status::RemoteInvalidRequest)),
            Err(denied) => return Ok(self.end_refused(exec, AccessError::Source(denied))),
        };
        let copied = transfer::copy(&Payload::Inline(&old), &self.local(&exec.wqe), 0, 8);
        Ok(match copied {
            Ok(_) => self.finish(exec),
            Err(error) => self.end_refused(exec, error),
        })
    }

    /// Finishes a request whose bytes have arrived: begins its invalidation, if any, or ends it.
    pub(super) fn finish(self: &Arc<Self>, exec: &mut Exec) -> Phase {
        if inject::is_on() {
            if let Some(phase) = self.finish_as_injected(exec) {
                return phase;
            }
        }
        self.finish_plain(exec)
    }

    /// As [`Flow::finish`], without regard to faults.
    fn finish_plain(self: &Arc<Self>, exec: &mut Exec) -> Phase {
        match exec.wqe.work {
            SendOp::Send {
                with: SendWith::Inv(token),
            } => self.begin_remote_revocation(exec, token),
            SendOp::Read {
                invalidate: Some(token),
                ..
            } => match local::invalidate(&self.from, token, false) {
                Local::Draining(token) => Phase::RevokeLocal(token),
                _ => self.refuse(exec, Status::LocalOperation),
            },
            _ => self.succeed(exec),
        }
    }

    /// Counts the request, and ends it and the receive that it took, if any, as successful.
    pub(super) fn succeed(self: &Arc<Self>, exec: &mut Exec) -> Phase {
        self.count(&exec.wqe);
        self.end(exec, Status::Success, Status::Success)
    }

    fn count(&self, wqe: &SendWqe) {
        let (own, peer) = (self.from.device(), self.to.device());
        let (kind, out, back) = match wqe.work {
            SendOp::Send { .. } => (Counter::Sends, true, true),
            SendOp::Write { imm, .. } => (Counter::Writes, true, imm.is_some()),
            SendOp::Read { .. } => (Counter::Reads, false, false),
            SendOp::FetchAdd { .. } | SendOp::CmpSwap { .. } => (Counter::Atomics, false, false),
            SendOp::RegMr { .. } | SendOp::LocalInv { .. } | SendOp::BindMw { .. } => return,
        };
        let bytes = u64::from(wqe.length);
        let received = (Counter::Receives, u64::from(back));
        let ends = if out {
            [Counter::BytesOut, Counter::BytesIn]
        } else {
            [Counter::BytesIn, Counter::BytesOut]
        };
        if core::ptr::eq(own, peer) {
            own.count_each([(kind, 1), (ends[0], bytes), (ends[1], bytes), received]);
        } else {
            own.count_each([(kind, 1), (ends[0], bytes)]);
            peer.count_each([(ends[1], bytes), received]);
        }
    }
}

impl Exec {
    /// The completion of the receive that the request took.
    pub(super) fn receive_completion(&self) -> Wc {
        let (opcode, with) = match self.wqe.work {
            SendOp::Write {
                imm: Some(data), ..
            } => (WcOpcode::RecvWithImm, SendWith::Imm(data)),
            SendOp::Send { with } => (WcOpcode::Recv, with),
            _ => (WcOpcode::Recv, SendWith::Nothing),
        };
        Wc {
            opcode,
            byte_len: self.wqe.length,
            with,
            solicited: self.wqe.flags.contains(SendFlag::Solicited),
            ..Wc::BLANK
        }
    }
}
