// SPDX-License-Identifier: GPL-2.0

//! Completion queues whose entries a program takes by itself, out of memory that it maps.
//!
//! Tests: `engine/cq/tests/shared.rs`.

use super::{
    CompletionQueue,
    CqState,
    ResizeError, //
};
use crate::{
    engine::{
        prelude::*,
        ring::MOVED_AT_ONCE, //
    },
    rdma::values::completion::Wc,
    sys::shared::{
        CompletionWords,
        SharedCompletions, //
    }, //
};

/// The entries of a queue in a program's memory.
pub(crate) struct ProgramCompletions {
    ring: SharedCompletions,
    /// Converts an entry of the queue pair with that number to the form that the program knows.
    words: fn(&Wc, u32) -> CompletionWords,
}

impl ProgramCompletions {
    /// The entries in the memory that the program maps.
    pub(crate) const fn new(
        ring: SharedCompletions,
        words: fn(&Wc, u32) -> CompletionWords,
    ) -> Self {
        Self { ring, words }
    }
}

impl CqState {
    /// The number of entries.
    pub(super) fn len(&self) -> u32 {
        match &self.shared {
            None => self.ring.len(),
            Some(shared) => shared.ring.len(),
        }
    }

    /// The number of entries that the queue takes.
    pub(super) fn limit(&self) -> u32 {
        match &self.shared {
            None => self.ring.limit(),
            Some(shared) => shared.ring.limit(),
        }
    }

    /// Returns true if there is no room.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.limit()
    }

    /// Adds an entry to the program's memory; false if no program shares the queue, or there is no
    /// room.
    #[cold]
    pub(super) fn push_shared(&mut self, entry: &Wc, qp: u32) -> bool {
        let Some(shared) = &mut self.shared else {
            return false;
        };
        let words = (shared.words)(entry, qp);
        if !shared.ring.push(&words) {
            return false;
        }
        // As in a poll: entries that the program has taken are not unreported. The caller counts
        // this one.
        let others = shared.ring.len().saturating_sub(1);
        self.unreported = self.unreported.min(others);
        self.has_unreported_failure &= self.unreported > 0;
        true
    }
}

impl CompletionQueue {
    /// Has a program take the entries by itself: a poll finds none. For a queue that is not used
    /// yet, and has a depth of zero. May sleep.
    pub(crate) fn share(&self, entries: ProgramCompletions) -> Result {
        let shared = KBox::new(entries, GFP_KERNEL)?;
        self.inner.lock().shared = Some(shared);
        Ok(())
    }

    /// Returns true if a program takes the entries by itself. Any context.
    pub(crate) fn is_shared(&self) -> bool {
        self.inner.lock().shared.is_some()
    }

    /// Changes the number of entries of a queue that a program shares: entries not taken yet move
    /// to `ring`. Entries may come during the call, and the program takes none. May sleep.
    pub(crate) fn resize_shared(
        self: &Arc<Self>,
        mut ring: SharedCompletions,
    ) -> Result<(), ResizeError> {
        let _one_at_a_time = self.resizing.lock();
        let mut next = None;
        // A program that takes entries during the move could keep it going for ever.
        // CAST: widening.
        let turns = self.depth() as usize / MOVED_AT_ONCE + 2;
        for _ in 0..turns {
            let mut inner = self.inner.lock();
            let Some(shared) = &mut inner.shared else {
                return Err(ResizeError::TooMany);
            };
            let copied = shared.ring.copy_to(&mut ring, next, MOVED_AT_ONCE);
            next = copied.map_err(|()| ResizeError::TooMany)?;
            if next.is_none() {
                // The old ring is dropped after the lock.
                core::mem::swap(&mut shared.ring, &mut ring);
                // A held call may wait for more entries than fit now.
                match self.should_notify(&mut inner, false) {
                    true => self.notify(inner),
                    false => drop(inner),
                }
                return Ok(());
            }
        }
        Err(ResizeError::TooMany)
    }
}
