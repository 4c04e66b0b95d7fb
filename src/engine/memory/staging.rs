// SPDX-License-Identifier: GPL-2.0

//! The mappings that wait for their registration.
//!
//! A consumer of the verbs stages one mapping at a time (`ib_map_mr_sg`); one that gives its pages
//! with each registration (NDK) may post several before the first one executes, and each is staged
//! under the number of its request.
//!
//! Context: any.
//!
//! Tests: `engine/memory/tests/staging.rs`.

use crate::engine::prelude::*;

use super::{
    spans::SpanList,
    window::WindowOwner,
    MemoryTable, //
};

/// The staged side of a fast-register region.
///
/// # Invariants
///
/// - `spares` has room for all `lists` of the slot, so that a list never has to be freed under the
///   lock, or where interrupts are off.
/// - Where mappings come with their requests, `mapped` is empty.
pub(super) struct Staging {
    pub(super) mapped: Option<SpanList>,
    pub(super) spares: KVec<SpanList>,
    /// Mappings that came with their requests, under the number of each.
    with_request: KVec<(u32, SpanList)>,
    pub(super) next: u32,
    /// How many lists the slot has, the live one included.
    pub(super) lists: usize,
    /// Who is notified when a window is not bound any more.
    pub(super) owner: Option<Arc<dyn WindowOwner>>,
}

impl Staging {
    pub(super) const fn new() -> Self {
        Self {
            mapped: None,
            spares: KVec::new(),
            with_request: KVec::new(),
            next: 0,
            lists: 0,
            owner: None,
        }
    }

    /// Takes the mapping that came with the request of that number.
    pub(super) fn take_number(&mut self, number: u32) -> Option<SpanList> {
        let at = self.with_request.iter().position(|(n, _)| *n == number)?;
        self.with_request.remove(at).ok().map(|(_, list)| list)
    }

    /// Keeps a list that is not used now.
    pub(super) fn keep(&mut self, list: SpanList) {
        // There is room by the invariant.
        let _ = self.spares.push_within_capacity(list);
    }
}

impl MemoryTable {
    /// Stages the pieces that come with a registration request; the request carries the number.
    /// Any context.
    ///
    /// `fill` writes up to `pieces` pieces into an empty list. `ENOMEM` when there is no memory;
    /// `EINVAL` for an index that names nothing.
    pub(crate) fn stage_for_request<R>(
        &self,
        index: u32,
        pieces: usize,
        fill: impl FnOnce(&mut SpanList) -> R,
    ) -> Result<(u32, R)> {
        let mut staging = self.slot(index).ok_or(EINVAL)?.staging.lock();
        staging.with_request.reserve(1, GFP_ATOMIC)?;
        let fits = staging.spares.iter().position(|l| l.capacity() >= pieces);
        let mut list = match fits.and_then(|at| staging.spares.remove(at).ok()) {
            Some(list) => list,
            None => {
                let more = (staging.lists + 1).saturating_sub(staging.spares.len());
                staging.spares.reserve(more, GFP_ATOMIC)?;
                let list = SpanList::with_capacity_now(pieces)?;
                // INVARIANT: the room was just made.
                staging.lists += 1;
                list
            }
        };
        list.clear();
        let result = fill(&mut list);
        let number = staging.next;
        staging.next = number.wrapping_add(1);
        // The room was reserved.
        let _ = staging.with_request.push_within_capacity((number, list));
        Ok((number, result))
    }

    /// Forgets what was staged for a registration request that is not carried out. Any context.
    pub(crate) fn unstage(&self, index: u32, number: u32) {
        let Some(slot) = self.slot(index) else {
            return;
        };
        let mut staging = slot.staging.lock();
        if let Some(list) = staging.take_number(number) {
            staging.keep(list);
        }
    }

    /// Stages the pieces of the next registration: `fill` writes them into an empty list. Any
    /// context.
    ///
    /// `None` when the index is not that of a fast-register region.
    pub(crate) fn stage<R>(&self, index: u32, fill: impl FnOnce(&mut SpanList) -> R) -> Option<R> {
        let mut staging = self.slot(index)?.staging.lock();
        let mut list = staging.mapped.take().or_else(|| staging.spares.pop())?;
        list.clear();
        let result = fill(&mut list);
        staging.mapped = Some(list);
        Some(result)
    }
}
