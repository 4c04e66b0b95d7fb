// SPDX-License-Identifier: GPL-2.0

//! One reader at a time: the event of the socket, or the work item.
//!
//! Tests: `direct/tests/rnr.rs`.

use kernel::sync::atomic::ordering::{
    Acquire,
    Full, //
};

use super::{
    inbound::Inbound,
    Stage,
    Wire,
    WireEvents, //
};
use crate::{
    engine::prelude::*,
    sys::tcp::{
        Owned,
        State,
        Stream, //
    }, //
};

/// FPDUs behind a message that waits at which one call looks.
const FPDUS_IN_SOFTIRQ: u32 = 16;
const FPDUS_IN_THREAD: u32 = 256;

/// The receiving side, or the reason for which it is not here.
pub(super) enum Slot {
    Here(KBox<Inbound>),
    /// Bytes are read. `missed` if another came to read.
    Away {
        missed: bool,
    },
    /// All has ended.
    Ended,
}

impl Wire {
    /// Takes the receiving side, unless another has it: that one has the work item read again.
    pub(super) fn take_inbound(&self) -> Option<KBox<Inbound>> {
        let mut slot = self.inbound.lock();
        match core::mem::replace(&mut *slot, Slot::Away { missed: false }) {
            Slot::Here(inbound) => return Some(inbound),
            Slot::Away { .. } => *slot = Slot::Away { missed: true },
            Slot::Ended => *slot = Slot::Ended,
        }
        None
    }

    fn put_back(self: &Arc<Self>, inbound: KBox<Inbound>) {
        let mut slot = self.inbound.lock();
        let old = core::mem::replace(&mut *slot, Slot::Here(inbound));
        drop(slot);
        // The end may have found no receiving side.
        if matches!(old, Slot::Away { missed: true }) || self.is_stopped.load(Acquire) {
            self.read_soon();
        }
    }

    /// Reads what the work item was asked to read, and notices the end of the peer's stream.
    pub(super) fn read_again(self: &Arc<Self>, socket: &Owned<WireEvents>) {
        if !self.may_read.xchg(false, Full) {
            return;
        }
        // Looked at before the read: the bytes before the end are read then.
        let state = socket.state();
        let Some(mut inbound) = self.take_inbound() else {
            return;
        };
        inbound.go_on(self);
        let read = match inbound.waits() {
            true => Ok(0),
            false => socket.read(|packet| inbound.take(self, packet)),
        };
        let looks = inbound.look_ahead(self, FPDUS_IN_THREAD, |skip, to| socket.peek(skip, to));
        let waits = inbound.waits_for_memory();
        self.put_back(inbound);
        let is_open = matches!(state, State::Open | State::Opening);
        // The end comes behind all that was seen.
        if (!is_open && !waits && !looks) || read.is_err() {
            self.qp.peer_gone(self.id);
        }
    }

    /// Reads in the event of the socket. Softirq.
    pub(super) fn readable(self: &Arc<Self>, stream: &mut Stream<'_>) {
        let Some(mut inbound) = self.take_inbound() else {
            if self.stage() == Stage::Lingering as u32 {
                // Bytes that were not read would reset the connection.
                let _ = stream.read(|packet| packet.skip());
            }
            return;
        };
        let read = match inbound.waits() {
            // Bytes stay in the socket until the work item reads.
            true => Ok(0),
            false => stream.read(|packet| inbound.take(self, packet)),
        };
        inbound.look_ahead(self, FPDUS_IN_SOFTIRQ, |skip, to| stream.peek(skip, to));
        self.put_back(inbound);
        if read.is_err() {
            self.qp.peer_gone(self.id);
        }
    }
}
