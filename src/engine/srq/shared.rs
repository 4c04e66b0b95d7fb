// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues to which a program posts without a call.
//!
//! Tests: `engine/srq/tests/shared.rs`.

use super::{
    ResizeError,
    SharedReceive,
    SrqState, //
};
use crate::{
    engine::{
        looking::{
            ProgramReceives,
            WAITING, //
        },
        prelude::*, //
    },
    sys::{
        shared::SharedReceives,
        timer::Expires, //
    }, //
};

/// The most queue pairs that are called after a look.
const CALLED_AT_ONCE: usize = 4;

/// The number of receives that move to other memory under one hold of the lock.
const MOVED_AT_ONCE: u32 = 16;

impl SrqState {
    /// The number of receives that the queue takes.
    pub(super) fn depth(&self) -> u32 {
        match &self.shared {
            None => self.ring.limit(),
            Some(shared) => shared.ring.limit(),
        }
    }

    /// The number of receives that are posted.
    pub(super) fn posted(&self) -> u32 {
        let shared = self.shared.as_ref().map_or(0, |shared| shared.ring.len());
        self.ring.len().saturating_add(shared)
    }

    fn has_waiting(&self) -> bool {
        self.waiting.cursor_front().is_some()
    }

    /// Fetches a receive that the program has posted without a call; returns true if there was one.
    #[cold]
    fn fetch(&mut self, device: &RdmaDevice) -> bool {
        match (&mut self.shared, self.ring.room()) {
            (Some(shared), Some(room)) => shared.fetch(room, device, 0),
            _ => false,
        }
    }

    /// Fetches a receive for the next message, unless queue pairs wait: those come first.
    #[cold]
    pub(super) fn fetch_for_next(&mut self, device: &RdmaDevice) -> bool {
        let is_next = self.shared.is_some() && !self.has_waiting();
        is_next && self.fetch(device) && self.granted < self.ring.len()
    }

    /// Activates the limit of a new queue by a program's receives, which come without a post.
    #[cold]
    pub(super) fn activate_limit_shared(&mut self) {
        if self.shared.is_some() {
            self.activate_limit();
        }
    }
}

impl SharedReceive {
    /// Lets a program post receives without a call. Before the queue is used. May sleep.
    pub(crate) fn share_receives(&self, receives: ProgramReceives) -> Result {
        let shared = KBox::new(receives, GFP_KERNEL)?;
        self.inner.lock().shared = Some(shared);
        Ok(())
    }

    /// Returns true if a program posts receives without a call. Any context.
    pub(crate) fn is_shared(&self) -> bool {
        self.inner.lock().shared.is_some()
    }

    /// Changes the depth of a queue that a program shares: the posted receives move to `ring`.
    /// Until the return messages wait, and the program posts no receive. May sleep.
    pub(crate) fn resize_shared(
        self: &Arc<Self>,
        mut ring: SharedReceives,
    ) -> Result<(), ResizeError> {
        let _one_at_a_time = self.resizing.lock();
        let (mut moved, mut count) = (0, None);
        while !self.move_some(&mut ring, &mut moved, &mut count)? {}
        Ok(())
    }

    /// Moves some receives to `ring`; at the end `ring` and the queue's ring change places. `moved`
    /// and `count` are of earlier calls. Returns true at the end.
    pub(super) fn move_some(
        self: &Arc<Self>,
        ring: &mut SharedReceives,
        moved: &mut u32,
        count: &mut Option<u32>,
    ) -> Result<bool, ResizeError> {
        let mut inner = self.inner.lock();
        let shared = inner.shared.as_mut().ok_or(ResizeError::TooMany)?;
        let count = *count.get_or_insert_with(|| shared.ring.len());
        if count > ring.limit() {
            return Err(ResizeError::TooMany);
        }
        shared.is_moving = *moved < count;
        if !shared.is_moving {
            ring.put(count);
            core::mem::swap(&mut shared.ring, ring);
            if inner.has_waiting() {
                self.look_soon(&mut inner);
            }
            return Ok(true);
        }
        let end = count.min(*moved + MOVED_AT_ONCE);
        for nth in *moved..end {
            shared.ring.copy(nth, ring);
        }
        *moved = end;
        Ok(false)
    }

    /// Arms a look for the first waiter: a queue pair has begun to wait, or another was served.
    pub(super) fn look_soon(self: &Arc<Self>, inner: &mut SrqState) {
        if let Some(shared) = &mut inner.shared {
            shared.begin(WAITING);
            self.look_later(shared);
        }
    }

    /// Arms the timer for the next look. Under the lock of `inner`.
    fn look_later(self: &Arc<Self>, shared: &mut ProgramReceives) {
        if let Some(ns) = shared.next_look() {
            self.timer.arm(self, ns);
        }
    }

    /// Returns true if no look takes place now, though the timer has run out.
    fn has_to_wait(self: &Arc<Self>, inner: &mut SrqState) -> bool {
        let is_idle = !inner.has_waiting();
        let Some(shared) = &mut inner.shared else {
            return true;
        };
        if is_idle {
            shared.clear_due();
            return true;
        }
        let slot = shared.slot_to_come(&self.domain.device().host);
        if let Some(ns) = slot {
            self.timer.arm(self, ns);
        }
        slot.is_some()
    }

    /// Arms a look for the next waiter, if there is one: a queue pair has taken its receive.
    #[cold]
    pub(super) fn look_if_waiting(self: &Arc<Self>, inner: &mut SrqState) {
        if inner.has_waiting() {
            self.look_soon(inner);
        }
    }
}

impl Expires for SharedReceive {
    /// Looks for receives that the program has posted, for queue pairs that wait.
    fn expired(this: Arc<Self>) {
        if this.has_to_wait(&mut this.inner.lock()) {
            return;
        }
        for calls in 0..=CALLED_AT_ONCE {
            let mut inner = this.inner.lock();
            if !inner.has_waiting() {
                return;
            }
            if calls == CALLED_AT_ONCE {
                return this.look_soon(&mut inner);
            }
            if inner.granted >= inner.ring.len() {
                inner.fetch(this.domain.device());
            }
            let called = inner.grant_next();
            if called.is_none() {
                if let Some(shared) = &mut inner.shared {
                    match calls {
                        0 => shared.back_off(WAITING),
                        _ => shared.begin(WAITING),
                    }
                    this.look_later(shared);
                }
                return;
            }
            drop(inner);
            drop(called);
        }
    }
}
