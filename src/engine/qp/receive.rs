// SPDX-License-Identifier: GPL-2.0

//! Receives: [`ReceiveRing`], the posted ones, and [`ReceiveQueue`], those of one queue pair.
//!
//! A message takes one receive, fills it, and finishes it; only then may the next one be taken.
//! So the receives of a queue pair complete in order, and a flush that comes while one is taken
//! waits until that one is finished: nothing is completed before an older receive, and no byte
//! arrives in a receive that was completed.
//!
//! This is the data under the lock of the receive queue, or of the shared one.
//!
//! Tests: `engine/qp/tests.rs`.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::engine::{
    cq::{
        CompletionQueue,
        Failed, //
    },
    ring::{
        Ring,
        Store, //
    },
    status::Status,
    work::{
        Completion,
        Extra,
        Operation,
        Sge, //
    }, //
};

use super::PostError;

#[derive(Clone, Copy)]
struct Entry {
    context: u64,
    count: u32,
}

/// A receive that a message has taken.
pub(crate) struct RecvWqe {
    pub(crate) context: u64,
    pub(crate) sges: KVec<Sge>,
}

impl RecvWqe {
    /// Room for a receive of up to `sges` elements. May sleep.
    pub(crate) fn new(sges: u32) -> Result<Self> {
        Ok(Self {
            context: 0,
            // CAST: widening.
            sges: KVec::with_capacity(sges as usize, GFP_KERNEL)?,
        })
    }
}

/// Posted receives with their scatter lists.
pub(crate) struct ReceiveRing {
    ring: Ring<Entry>,
    sges: KVVec<Sge>,
    max_sge: usize,
}

impl ReceiveRing {
    /// May sleep.
    pub(crate) fn new(depth: u32, max_sge: u32) -> Result<Self> {
        let blank = Entry {
            context: 0,
            count: 0,
        };
        let ring = Ring::new(depth, blank)?;
        // CAST: widening.
        let max_sge = max_sge as usize;
        let sges = ring.places().checked_mul(max_sge).ok_or(EINVAL)?;
        Ok(Self {
            sges: KVVec::from_elem(Sge::EMPTY, sges, GFP_KERNEL)?,
            ring,
            max_sge,
        })
    }

    /// A ring that takes nothing.
    pub(crate) const fn empty() -> Self {
        Self {
            ring: Ring::empty(),
            sges: KVVec::new(),
            max_sge: 0,
        }
    }

    pub(crate) fn post(
        &mut self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), PostError> {
        let count = sges.len();
        if count > self.max_sge {
            return Err(PostError::TooManySges);
        }
        if self.ring.is_full() {
            return Err(PostError::Full);
        }
        let from = self.ring.place(self.ring.tail()) * self.max_sge;
        let slots = self.sges.get_mut(from..from + count).unwrap_or_default();
        for (slot, sge) in slots.iter_mut().zip(sges) {
            *slot = sge;
        }
        // CAST: not more than `max_sge`, which came from a u32.
        let count = count as u32;
        let entry = Entry { context, count };
        self.ring.push(entry).map_err(|_| PostError::Full)?;
        Ok(())
    }

    /// Moves the oldest receive into `receive`; returns true if there was one.
    pub(crate) fn take(&mut self, receive: &mut RecvWqe) -> bool {
        let from = self.ring.place(self.ring.head()) * self.max_sge;
        let Some(entry) = self.ring.pop() else {
            return false;
        };
        receive.context = entry.context;
        receive.sges.clear();
        // CAST: widening.
        let used = self.sges.get(from..from + entry.count as usize);
        for sge in used.unwrap_or_default() {
            // The room was made for as many as any receive of this kind has.
            let _ = receive.sges.push_within_capacity(*sge);
        }
        true
    }

    /// Takes the oldest receive out for cancelling, and returns its context.
    pub(super) fn cancel(&mut self) -> Option<u64> {
        Some(self.ring.pop()?.context)
    }

    pub(crate) fn len(&self) -> u32 {
        self.ring.len()
    }

    pub(crate) fn limit(&self) -> u32 {
        self.ring.limit()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}

impl Store for ReceiveRing {
    const EMPTY: Self = Self::empty();

    fn len(&self) -> u32 {
        self.len()
    }

    fn limit(&self) -> u32 {
        self.limit()
    }

    fn shift(&mut self, from: &mut Self, most: u32) {
        for _ in 0..most {
            if self.ring.is_full() {
                return;
            }
            let first = from.ring.place(from.ring.head()) * from.max_sge;
            let Some(entry) = from.ring.pop() else {
                return;
            };
            // CAST: widening.
            let used = from.sges.get(first..first + entry.count as usize);
            // There is room, and both are for receives of the same size.
            let _ = self.post(entry.context, used.unwrap_or_default().iter().copied());
        }
    }
}

/// What a message did to the receive that it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvCompletion {
    pub(crate) status: Status,
    pub(crate) operation: Operation,
    pub(crate) length: u32,
    pub(crate) extra: Extra,
    pub(crate) solicited: bool,
}

/// Whether a message gets a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is in the scratch place and must be finished.
    Ready,
    /// There is none; the transport is notified when one is posted.
    Empty,
    /// The queue pair takes no messages any more.
    Closed,
}

/// The receive side of one queue pair.
pub(super) struct ReceiveQueue {
    /// Its own receives; without room when it shares a queue.
    pub(super) ring: ReceiveRing,
    /// A message has taken a receive and not finished it.
    pub(super) taken: bool,
    /// The receive of a message that broke off; the first to be cancelled.
    pub(super) aborted: Option<u64>,
    /// A message found none and waits.
    pub(super) waiting: bool,
    pub(super) flushing: bool,
    /// Nothing is reported any more.
    pub(super) silent: bool,
    /// The end of a shared queue's use was reported.
    pub(super) ended: bool,
}

impl ReceiveQueue {
    /// May sleep.
    pub(super) fn new(depth: u32, max_sge: u32) -> Result<Self> {
        Ok(Self {
            ring: ReceiveRing::new(depth, max_sge)?,
            taken: false,
            aborted: None,
            waiting: false,
            flushing: false,
            silent: false,
            ended: false,
        })
    }

    /// Reports the end of a receive, unless nothing is reported any more.
    pub(super) fn report(
        &self,
        cq: &Arc<CompletionQueue>,
        entry: Completion,
    ) -> Result<(), Failed> {
        match self.silent {
            true => Ok(()),
            false => cq.push(entry),
        }
    }
}
