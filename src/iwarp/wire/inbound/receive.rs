// SPDX-License-Identifier: GPL-2.0

//! The receive of a message: its wait, its length and its end.
//!
//! Tests: `direct/tests/rnr.rs`.

use kernel::sync::atomic::ordering::Relaxed;

use super::{
    Delivery,
    Wait,
    Wire, //
};
use crate::{
    engine::{
        memory::transfer::Payload,
        prelude::*,
        qp::Taken, //
    },
    iwarp::terminate::Cause,
    rdma::values::{
        completion::Wc,
        wc::WcOpcode, //
    },
    sys::time, //
};

impl Delivery {
    /// Takes a receive for the message, unless it has one. Returns false if the message waits.
    pub(super) fn take_receive(&mut self, wire: &Arc<Wire>) -> Result<bool, Cause> {
        if self.holds_receive {
            return Ok(true);
        }
        match wire.qp.take_receive(wire.id, &mut self.receive) {
            Taken::Ready => {
                self.holds_receive = true;
                if self.deadline.take().is_some() {
                    wire.rnr.cancel();
                    wire.waits_since.store(0, Relaxed);
                }
                Ok(true)
            }
            Taken::Refused => {
                // This side has ended the connection, which is no fault of the peer.
                self.waits = Wait::Receive;
                Ok(false)
            }
            Taken::Empty => self.wait_for_receive(wire),
        }
    }

    fn wait_for_receive(&mut self, wire: &Arc<Wire>) -> Result<bool, Cause> {
        let device = wire.qp.device();
        let (now, timeout) = (time::now_ms(), device.host.rnr_timeout_ms);
        let next = now.saturating_add(timeout.max(1).into());
        let begins = self.deadline.is_none();
        let deadline = self.deadline.get_or_insert(next);
        // A shared queue that ran empty breaks no connection (SRQ-10). The sender bounds the wait when
        // it closes the connection.
        let has_end = wire.qp.params.shared.is_none();
        if now >= *deadline {
            if has_end {
                device.count(Counter::RnrTimeouts, 1);
                return Err(Cause::NoBuffer);
            }
            *deadline = next;
        }
        let left = u32::try_from(*deadline - now).unwrap_or(timeout);
        wire.rnr.arm(wire, left);
        // A wait that is counted is a wait that has an end.
        if begins {
            wire.waits_since.store(now.max(1), Relaxed);
            device.count(Counter::RnrWaits, 1);
        }
        self.waits = Wait::Receive;
        Ok(false)
    }

    /// Ends a message that is longer than its receive.
    pub(super) fn check_length(&mut self, wire: &Wire, end: u64) -> Result<(), Cause> {
        let sink = Payload::List(wire.sink(), &self.receive.sges);
        if sink.len() < end {
            self.fail_receive(wire, Status::ReceiveLength);
            return Err(Cause::TooLong);
        }
        if sink.check(end).is_err() {
            self.fail_receive(wire, Status::LocalAccess);
            return Err(Cause::LocalCatastrophic);
        }
        Ok(())
    }

    pub(super) fn fail_receive(&mut self, wire: &Wire, status: Status) {
        let completion = Wc {
            status,
            opcode: WcOpcode::Recv,
            ..Wc::BLANK
        };
        self.finish_receive(wire, completion);
    }

    pub(super) fn finish_receive(&mut self, wire: &Wire, completion: Wc) {
        self.holds_receive = false;
        wire.qp.finish_receive(&mut self.receive, completion);
    }
}
