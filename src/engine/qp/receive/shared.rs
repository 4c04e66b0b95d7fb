// SPDX-License-Identifier: GPL-2.0

//! Receives that a program posts without a call: fetched when a message finds none, and cancelled
//! in error.
//!
//! Receives that are posted when a queue pair enters the error state are cancelled then, later ones
//! when a look finds them: see [`looking`](crate::engine::looking). Receives that are left when the
//! queue pair is destroyed end without a completion.
//!
//! Tests: `engine/qp/tests/shared.rs`.

use super::{
    Message,
    QueuePair,
    ReceiveMode,
    ReceiveQueue, //
};
use crate::{
    engine::{
        looking::{
            ProgramReceives,
            IN_ERROR,
            WAITING, //
        },
        prelude::*,
        srq::Waiter,
        wq::RecvWqe, //
    },
    sys::{
        sge::Context,
        timer::Expires, //
    }, //
};

/// The number of receives that are cancelled after a look in error.
const FLUSHED_AT_ONCE: u32 = 16;

impl QueuePair {
    /// Lets a program post receives without a call. Before the queue pair is used. May sleep.
    pub(crate) fn share_receives(&self, receives: ProgramReceives) -> Result {
        let shared = KBox::new(receives, GFP_KERNEL)?;
        self.rq.lock().shared = Some(shared);
        Ok(())
    }

    /// Takes a receive that the program has posted without a call; if there is none, a look follows
    /// soon.
    #[cold]
    pub(super) fn take_shared(
        self: &Arc<Self>,
        rq: &mut ReceiveQueue,
        receive: &mut RecvWqe,
    ) -> bool {
        let Some(shared) = &mut rq.shared else {
            return false;
        };
        if shared.fetch(&mut rq.ring, self.device(), self.params.number) {
            return rq.ring.take(&mut receive.sges);
        }
        shared.begin(WAITING);
        self.look_later(shared);
        false
    }

    /// Arms the timer for the next look. Under the lock of `rq`.
    fn look_later(self: &Arc<Self>, shared: &mut ProgramReceives) {
        if let Some(ns) = shared.next_look() {
            self.timer.arm(self, ns);
        }
    }

    /// The next receive to cancel.
    pub(super) fn next_to_cancel(&self, rq: &mut ReceiveQueue) -> Option<Context> {
        let own = rq.aborted.take().or_else(|| Some(rq.ring.leave()?.0));
        own.or_else(|| self.next_shared(rq))
    }

    #[cold]
    fn next_shared(&self, rq: &mut ReceiveQueue) -> Option<Context> {
        let shared = rq.shared.as_mut()?;
        shared.fetch_seen(&mut rq.ring, self.device(), self.params.number);
        Some(rq.ring.leave()?.0)
    }

    /// Arms the look for receives that the program posts after all others were cancelled.
    #[cold]
    pub(super) fn look_in_error(self: &Arc<Self>, rq: &mut ReceiveQueue) {
        if let Some(shared) = &mut rq.shared {
            self.look_later(shared);
        }
    }
}

impl ReceiveQueue {
    /// The number of receives that are posted.
    pub(crate) fn posted(&self) -> u32 {
        let shared = self.shared.as_ref().map_or(0, |shared| shared.ring.len());
        self.ring.len().saturating_add(shared)
    }

    /// Begins to cancel receives.
    pub(crate) fn begin_flush(&mut self) {
        self.mode = ReceiveMode::Flushing;
        if let Some(shared) = &mut self.shared {
            shared.ring.look(u32::MAX);
            shared.begin(IN_ERROR);
        }
    }
}

impl Expires for QueuePair {
    /// Looks for receives that the program has posted.
    fn expired(this: Arc<Self>) {
        let mut guard = this.rq.lock();
        let rq = &mut *guard;
        let Some(shared) = &mut rq.shared else {
            return;
        };
        let is_open = rq.mode == ReceiveMode::Open;
        if is_open && rq.message != Message::Waiting {
            return shared.clear_due();
        }
        if let Some(ns) = shared.slot_to_come(&this.device().host) {
            return this.timer.arm(&this, ns);
        }
        if !is_open {
            match shared.ring.look(FLUSHED_AT_ONCE) {
                true => shared.begin(IN_ERROR),
                false => shared.back_off(IN_ERROR),
            }
            drop(guard);
            return this.flush_receives();
        }
        if shared.fetch(&mut rq.ring, this.device(), this.params.number) {
            rq.stop_waiting();
            // Under the lock: a task that has ended the wait must not be preempted before this.
            this.receive_arrived();
        } else {
            shared.back_off(WAITING);
            this.look_later(shared);
        }
    }
}
