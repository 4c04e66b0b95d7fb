// SPDX-License-Identifier: GPL-2.0

//! [`ProgramReceives`]: receives that a program posts without a call, and the times to look for
//! them.
//!
//! A program that shares a queue rings no doorbell. An empty queue is looked at when a message
//! comes and, while a message waits, by a timer: soon at first, then after a wait that grows by
//! half each time. A look takes a few microseconds. Each look takes one slot of ten microseconds,
//! and all queues of the host share the slots, so all looks take one processor at most.
//!
//! Context: any.
//!
//! Tests: `engine/qp/tests/shared.rs`.

use kernel::sync::atomic::ordering::Relaxed;

use super::{
    host::Host,
    prelude::*, //
};
use crate::{
    engine::wq::ReceiveRing,
    sys::{
        shared::SharedReceives,
        time,
        trace, //
    }, //
};

/// The length of a slot on the host, in nanoseconds.
const SLOT_NS: u64 = 10_000;

/// The longest wait of a look for its slot, in nanoseconds.
const LATEST_NS: u64 = 1_000_000_000;

/// The most receives that a look for one receive admits: the first ones may be lost.
const LOOKED_AT: u32 = 16;

/// The time to the first look, and the longest between two, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    first: u64,
    last: u64,
}

/// The pace where a message waits for a receive.
pub(super) const WAITING: Pace = Pace {
    first: 20_000,
    last: 500_000_000,
};

/// The pace where a queue pair is in error, and cancels the receives that come.
pub(super) const IN_ERROR: Pace = Pace {
    first: 1_000_000,
    last: 1_000_000_000,
};

/// The receives that a program posts without a call, and the next look at them.
pub(crate) struct ProgramReceives {
    pub(super) ring: SharedReceives,
    /// The receives move to other memory: none is fetched.
    pub(super) is_moving: bool,
    /// The time from a look in vain to the next, in nanoseconds.
    wait: u64,
    /// The slot that a look waits for after the timer has run out.
    slot: Option<u64>,
    /// The time for which the timer is armed; zero if it is not.
    due: u64,
}

impl ProgramReceives {
    /// The receives in the memory that the program maps.
    pub(crate) const fn new(ring: SharedReceives) -> Self {
        Self {
            ring,
            is_moving: false,
            wait: 0,
            slot: None,
            due: 0,
        }
    }

    /// Makes the next look the first one of `pace`.
    pub(super) fn begin(&mut self, pace: Pace) {
        self.wait = pace.first;
    }

    /// Puts the next look off after a look in vain.
    pub(super) fn back_off(&mut self, pace: Pace) {
        // OVERFLOW: not more than the longest time and half of that.
        self.wait = (self.wait + self.wait / 2).clamp(pace.first, pace.last);
    }

    /// The time for which to arm the timer, in nanoseconds; `None` if it is armed for an earlier
    /// time.
    pub(super) fn next_look(&mut self) -> Option<u64> {
        // OVERFLOW: nanoseconds since boot.
        let due = time::now_ns() + self.wait;
        if self.due != 0 && self.due <= due {
            return None;
        }
        self.due = due;
        Some(self.wait)
    }

    /// Notes that the timer has run out, and no look is needed.
    pub(super) fn clear_due(&mut self) {
        self.due = 0;
    }

    /// Takes a slot after the timer has run out. Returns the time for which to arm the timer, in
    /// nanoseconds, if the slot is yet to come; with `None` the look takes place now.
    pub(super) fn slot_to_come(&mut self, host: &Host) -> Option<u64> {
        let now = time::now_ns();
        let slot = *self.slot.get_or_insert_with(|| host.take_slot(now));
        if slot > now {
            self.due = slot;
            return Some(slot - now);
        }
        self.slot = None;
        self.due = 0;
        None
    }

    /// Moves the oldest receive, if any, into `to`, the queue of queue pair `qp`, or of none.
    /// Returns true if a receive was moved.
    pub(super) fn fetch(&mut self, to: &mut ReceiveRing, device: &RdmaDevice, qp: u32) -> bool {
        self.ring.look(LOOKED_AT) && self.fetch_seen(to, device, qp)
    }

    /// As [`ProgramReceives::fetch`], of the receives seen at the last look.
    pub(super) fn fetch_seen(
        &mut self,
        to: &mut ReceiveRing,
        device: &RdmaDevice,
        qp: u32,
    ) -> bool {
        if self.is_moving || to.is_full() {
            return false;
        }
        let moved = self.ring.take().is_some_and(|posted| to.post(posted, ()));
        if moved {
            trace::event!(post_recv, to.post_recv_args(device, qp));
        }
        moved
    }
}

impl Host {
    /// Takes the next slot for a look, and returns its time.
    pub(super) fn take_slot(&self, now: u64) -> u64 {
        let mut free = self.next_slot_ns.load(Relaxed);
        loop {
            // OVERFLOW: nanoseconds since boot.
            let slot = free.clamp(now, now + LATEST_NS);
            match self.next_slot_ns.cmpxchg(free, slot + SLOT_NS, Relaxed) {
                Ok(_) => return slot,
                Err(seen) => free = seen,
            }
        }
    }
}
