// SPDX-License-Identifier: GPL-2.0

//! The end of a connection: of all that is under way, of the socket, and the time for both.
//!
//! Context: process, in the work item of the connection, but for what says any.
//!
//! Tests: `iwarp/wire/tests.rs`.

use kernel::sync::atomic::ordering::{
    Acquire,
    Relaxed, //
};

use super::{
    ledger::Asked,
    reading::Slot,
    Stage,
    Wire,
    WireEvents,
    LINGER_MS, //
};
use crate::{
    engine::prelude::*,
    iwarp::terminate::Terminate,
    sys::{
        tcp::{
            Owned,
            State, //
        },
        time, //
    }, //
};

impl Wire {
    /// Ends all that is under way. Returns false if that is not possible yet: bytes are being read, or
    /// an invalidation waits for the last access. The work item runs again then.
    pub(super) fn end_all(self: &Arc<Self>) -> bool {
        let Some(mut inbound) = self.take_inbound() else {
            return false;
        };
        let is_drained = self.outbound.lock().end_drain(self) && inbound.end(self);
        let slot = match is_drained {
            true => Slot::Ended,
            false => Slot::Here(inbound),
        };
        let old = core::mem::replace(&mut *self.inbound.lock(), slot);
        drop(old);
        if !is_drained {
            return false;
        }
        for timer in [&self.rnr, &self.look, &self.retry, &self.hear, &self.close] {
            timer.cancel();
        }
        loop {
            let Some((gone, status)) = self.ledger.lock().take_sent() else {
                break;
            };
            gone.complete(&self.qp, status);
        }
        self.outbound.lock().end(self);
        loop {
            let Some(mut asked) = self.ledger.lock().take_asked() else {
                break;
            };
            self.end_asked(&mut asked, None);
        }
        self.qp.reap();
        true
    }

    /// Ends a read or atomic operation; without a status as the peer has it, or flushed.
    pub(super) fn end_asked(&self, asked: &mut Asked, status: Option<Status>) {
        let blamed = || self.ledger.lock().status_of_asked(asked.message);
        let status = status.unwrap_or_else(blamed);
        self.qp.complete(&mut asked.wqe, status);
    }

    /// Ends the socket, and with it all events.
    pub(super) fn end_socket(self: &Arc<Self>, socket: &mut Option<Owned<WireEvents>>) {
        drop(socket.take());
        self.set_stage(Stage::Over);
        self.look.cancel();
        self.retry.cancel();
        let memory = self.ledger.lock().take_memory();
        drop(memory);
        self.outbound.lock().drop_pages();
        let side = self.side.lock().take();
        drop(side);
    }

    /// Ends the connection by a Terminate: after the answers that are due before, if the fault is in a
    /// request that has an answer. Any context.
    pub(super) fn end_by(self: &Arc<Self>, terminate: Terminate, after_answers: bool) {
        let is_due = self.ledger.lock().put_terminate(terminate, after_answers);
        if is_due {
            self.qp.peer_gone(self.id);
        } else {
            self.kick();
        }
    }

    /// Ends a connection that is being closed, and of whose requests none has moved for the time that a
    /// message may wait for its receive.
    pub(super) fn bound_close(self: &Arc<Self>) {
        // The wait for the first FPDU has a bound of its own.
        if !self.is_closing.load(Acquire) || self.is_hearing() {
            return;
        }
        let device = self.qp.device();
        let (now, most) = (time::now_ms(), device.host.rnr_timeout_ms);
        let progress = self.outbound.lock().progress(self);
        let mut ledger = self.ledger.lock();
        let left = ledger.left_to_wait(now, most, progress);
        // Of another peer no request waits for a receive.
        let is_late =
            left == Some(0) && self.terms.extended && ledger.blame_late(progress.is_begun);
        drop(ledger);
        match left {
            None => {}
            Some(0) => {
                device.count(Counter::RnrTimeouts, u64::from(is_late));
                self.qp.peer_gone(self.id);
            }
            Some(left) => self.close.arm(self, u32::try_from(left).unwrap_or(most)),
        }
    }

    /// Sends the last bytes, and leaves those of the peer; returns true at the end of that.
    pub(super) fn linger(self: &Arc<Self>, socket: &Owned<WireEvents>) -> bool {
        let is_sent = self.write(socket);
        if is_sent {
            // Nothing to do for a stream that has ended.
            let _ = socket.end();
        }
        let state = socket.state();
        let read = socket.read(|packet| packet.skip());
        let left = (self.linger_until.load(Relaxed)).saturating_sub(time::now_ms());
        if left == 0 || (is_sent && (state != State::Open || read.is_err())) {
            return true;
        }
        self.look
            .arm(self, u32::try_from(left).unwrap_or(LINGER_MS));
        false
    }
}
