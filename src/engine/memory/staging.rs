// SPDX-License-Identifier: GPL-2.0

//! [`Staging`]: the mappings of a region that wait for their registration; for a window, its
//! [`WindowOwner`].
//!
//! A verbs consumer stages one mapping at a time (`ib_map_mr_sg`). An NDK consumer gives its pages
//! with each registration and may post several before the first one executes; each mapping is
//! staged under the number of its request.
//!
//! Context: any.
//!
//! Tests: `engine/memory/tests/staging.rs`.

use kernel::rbtree::{
    RBTree,
    RBTreeNodeReservation, //
};

use super::spans::SpanList;
use crate::engine::prelude::*;

/// The most spare lists of a slot, if it has more lists than its first two.
pub(crate) const MOST_SPARES: usize = 4;

/// The owner of a window.
pub(crate) trait WindowOwner: Send + Sync {
    /// Reports that no access uses a binding older than the last one, which is under `key`, nor the
    /// last one itself, unless it is still `bound`. Any context; a transport's lock may be held.
    fn unbound(&self, key: u8, bound: bool);

    /// The bind under `key` ended without effect. Any context; the lock of a send queue is held.
    fn not_bound(&self, key: u8);
}

/// The staged side of a fast-register region.
///
/// # Invariants
///
/// - `spares` has room for [`MOST_SPARES`] lists, if the region has any.
/// - At most two lists of a region are not of kmalloc: the lists that it was made with.
/// - Where mappings come with their requests, `mapped` is empty.
pub(super) struct Staging {
    pub(super) mapped: Option<SpanList>,
    spares: KVec<SpanList>,
    /// Mappings that came with their requests, under the number of each.
    with_request: RBTree<u32, SpanList>,
    next: u32,
    /// The number of owners that the slot has had: a list goes back to the owner that it came from.
    owners: u32,
    /// The owner of the window, notified when the window is no longer bound.
    pub(super) owner: Option<Arc<dyn WindowOwner>>,
}

impl Staging {
    /// A slot without mappings, spare lists or an owner. Allocates no memory.
    pub(super) fn new() -> Self {
        Self {
            mapped: None,
            spares: KVec::new(),
            with_request: RBTree::new(),
            next: 0,
            owners: 0,
            owner: None,
        }
    }

    /// The first spares of a region of up to `pieces` pieces: one of its two lists. May sleep.
    pub(super) fn spares_for(pieces: usize) -> Result<KVec<SpanList>> {
        let mut spares = KVec::with_capacity(MOST_SPARES, GFP_KERNEL)?;
        spares.push(SpanList::with_capacity(pieces)?, GFP_KERNEL)?;
        Ok(spares)
    }

    /// Sets the spares of a new region.
    pub(super) fn set_spares(&mut self, spares: KVec<SpanList>) {
        self.spares = spares;
    }

    /// Starts over for the next owner. The caller drops the result where it may sleep.
    pub(super) fn release(&mut self) -> Self {
        let next = Self {
            // Numbers count on: a request of the last owner finds no mapping of the next.
            next: self.next,
            owners: self.owners.wrapping_add(1),
            ..Self::new()
        };
        core::mem::replace(self, next)
    }

    /// Takes the mapping that came with request `number`.
    pub(super) fn take_number(&mut self, number: u32) -> Option<SpanList> {
        self.with_request.remove(&number)
    }

    /// Keeps an unused list. Returns a surplus list, of kmalloc, to be dropped without the lock.
    #[must_use = "it is to be dropped without the lock"]
    pub(super) fn keep_spare(&mut self, list: SpanList) -> Option<SpanList> {
        if self.spares.len() < self.spares.capacity() {
            let _ = self.spares.push_within_capacity(list);
            return None;
        }
        if list.is_of_kmalloc() {
            return Some(list);
        }
        // By the invariant a spare is of kmalloc.
        let other = self.spares.iter_mut().find(|spare| spare.is_of_kmalloc());
        Some(match other {
            Some(other) => core::mem::replace(other, list),
            None => list,
        })
    }

    /// Takes back a mapping that was not registered: stages it again, or keeps its list if it came
    /// with a request. Returns the same as [`Staging::keep_spare`].
    #[cold]
    #[must_use = "it is to be dropped without the lock"]
    pub(super) fn put_back(
        &mut self,
        list: Option<SpanList>,
        number: Option<u32>,
    ) -> Option<SpanList> {
        match number {
            Some(_) => self.keep_spare(list?),
            None => {
                self.mapped = list;
                None
            }
        }
    }

    /// The number of owners that the slot has had.
    pub(super) fn owners(&self) -> u32 {
        self.owners
    }

    /// Stages a mapping under a new request number, and returns the number.
    pub(super) fn stage_for_request(
        &mut self,
        room: RBTreeNodeReservation<u32, SpanList>,
        list: SpanList,
    ) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.with_request.insert(room.into_node(number, list));
        number
    }

    /// Takes the staged list, or a spare one, to be filled.
    pub(super) fn take_any(&mut self) -> Option<SpanList> {
        self.mapped.take().or_else(|| self.spares.pop())
    }

    /// The number of spare lists, and of lists that wait with their requests.
    #[cfg(ndk_kunit)]
    pub(super) fn lists(&self) -> (usize, usize) {
        (self.spares.len(), self.with_request.iter().count())
    }

    /// Takes a list with room for `pieces`.
    pub(super) fn take_spare(&mut self, pieces: usize) -> Option<SpanList> {
        let fits = |list: &SpanList| list.capacity() >= pieces;
        let at = self.spares.iter().position(fits)?;
        self.spares.remove(at).ok()
    }
}
