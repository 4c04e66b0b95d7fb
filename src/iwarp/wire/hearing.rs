// SPDX-License-Identifier: GPL-2.0

//! The first FPDU, which is the initiator's (RFC 5044, 7.1.2): a responder waits for its header. Its CRC
//! may be long in coming: behind a Send that waits for a receive.
//!
//! Context: process, in the work item of the connection, but for what says any.
//!
//! Tests: `iwarp/wire/tests.rs`.

use kernel::sync::atomic::ordering::{
    Acquire,
    Relaxed,
    Release, //
};

use super::Wire;
use crate::{
    engine::prelude::*,
    sys::{
        tcp::Socket,
        time, //
    }, //
};

/// Half the time that a responder waits for the first FPDU of an initiator that promised none, in
/// milliseconds.
const HEAR_MS: u32 = 500;

/// The side that sends the first FPDU, which is the initiator (RFC 5044, 7.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Both sides may send.
    Any,
    /// This side begins with an acknowledgement of nothing: the peer is ndk, and waits for it.
    Here,
    /// This side sends nothing before the peer, which will send.
    There,
    /// This side sends nothing before the peer has, or has had half a second at least to take the reply
    /// of the start-up from its stream: it may begin with nothing, and wait for a message.
    Perhaps,
}

impl Begins {
    pub(super) const fn waits(self) -> bool {
        matches!(self, Self::There | Self::Perhaps)
    }
}

impl Wire {
    /// Begins the wait for the first FPDU of an initiator that may send none.
    pub(super) fn begin_hearing(self: &Arc<Self>) {
        if self.terms.begins == Begins::Perhaps {
            self.hear_for(HEAR_MS);
        }
    }

    fn hear_for(self: &Arc<Self>, ms: u32) {
        let until = time::now_ms().saturating_add(ms.into());
        self.hear_until.store(until, Relaxed);
        self.hear.arm(self, ms);
    }

    /// Returns true in that wait.
    pub(super) fn is_hearing(&self) -> bool {
        self.terms.begins == Begins::Perhaps && !self.may_send.load(Acquire)
    }

    /// Ends that wait if it is over: the peer has had the reply for half of it at least.
    pub(super) fn bound_hearing(self: &Arc<Self>, socket: &Socket) {
        if !self.is_hearing() {
            return;
        }
        let left = (self.hear_until.load(Relaxed)).saturating_sub(time::now_ms());
        match u32::try_from(left) {
            Ok(0) if !socket.is_acknowledged() => self.hear_for(HEAR_MS),
            Ok(0) if self.hears_again.load(Acquire) => {
                self.hear_for(HEAR_MS);
                self.hears_again.store(false, Release);
            }
            Ok(0) => self.heard(),
            // The timer was early.
            left => self.hear.arm(self, left.unwrap_or(HEAR_MS)),
        }
    }

    /// Notes that the header of an FPDU has come, or that the wait for one is over. Any context.
    pub(super) fn heard(self: &Arc<Self>) {
        if !self.may_send.load(Relaxed) {
            self.may_send.store(true, Release);
            self.kick();
        }
    }
}
