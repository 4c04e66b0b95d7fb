// SPDX-License-Identifier: GPL-2.0

//! The mappings that wait for their registration.
//!
//! A consumer of the verbs stages one mapping at a time (`ib_map_mr_sg`); one that gives its pages
//! with each registration (NDK) may post several before the first one executes, and each is staged
//! under the number of its request.
//!
//! A mapping has thousands of pieces: its list is filled under no lock, and is then put where the
//! registration finds it.
//!
//! Context: any.
//!
//! Tests: `engine/memory/tests/staging.rs`.

use kernel::{
    alloc::flags::__GFP_NOWARN,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use crate::engine::prelude::*;

use super::{
    slot::Slot,
    spans::SpanList,
    window::WindowOwner,
    MemoryTable, //
};

/// The most lists that a slot keeps for later, if there are more than its first two.
pub(crate) const MOST_SPARES: usize = 4;

/// The staged side of a fast-register region.
///
/// # Invariants
///
/// - `spares` has room for [`MOST_SPARES`] lists, if the region has any.
/// - Of the lists of a region no more than two are not of kmalloc: those that it was made with.
/// - Where mappings come with their requests, `mapped` is empty.
pub(super) struct Staging {
    pub(super) mapped: Option<SpanList>,
    spares: KVec<SpanList>,
    /// Mappings that came with their requests, under the number of each.
    with_request: RBTree<u32, SpanList>,
    next: u32,
    /// The number of owners that the slot has had: a list goes back to the owner that it came from.
    owners: u32,
    /// Who is notified when a window is not bound any more.
    pub(super) owner: Option<Arc<dyn WindowOwner>>,
}

impl Staging {
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

    /// Prepares for a region of up to `pieces` pieces: one of its two lists is here. May sleep.
    pub(super) fn spares_for(pieces: usize) -> Result<KVec<SpanList>> {
        let mut spares = KVec::with_capacity(MOST_SPARES, GFP_KERNEL)?;
        spares.push(SpanList::with_capacity(pieces)?, GFP_KERNEL)?;
        Ok(spares)
    }

    /// The owner's region is made with these.
    pub(super) fn set_spares(&mut self, spares: KVec<SpanList>) {
        self.spares = spares;
    }

    /// Ends the owner's time; what is left is to be dropped where that may sleep.
    pub(super) fn release(&mut self) -> Self {
        let next = Self {
            // Numbers count on: a request of the last owner finds nothing of the next one's.
            next: self.next,
            owners: self.owners.wrapping_add(1),
            ..Self::new()
        };
        core::mem::replace(self, next)
    }

    /// Takes the mapping that came with the request of that number.
    pub(super) fn take_number(&mut self, number: u32) -> Option<SpanList> {
        self.with_request.remove(&number)
    }

    /// Keeps a list that is not used now. Returns one that is too many, of kmalloc, to be dropped
    /// without the lock.
    #[must_use = "it is to be dropped without the lock"]
    pub(super) fn keep(&mut self, list: SpanList) -> Option<SpanList> {
        if self.spares.len() < self.spares.capacity() {
            let _ = self.spares.push_within_capacity(list);
            return None;
        }
        if list.is_of_kmalloc() {
            return Some(list);
        }
        // By the invariant there are others.
        let other = self.spares.iter_mut().find(|spare| spare.is_of_kmalloc());
        Some(match other {
            Some(other) => core::mem::replace(other, list),
            None => list,
        })
    }

    /// A mapping that was taken is not registered: it is staged as it was, or, if it came with the
    /// request, its list is kept. Returns the same as [`Staging::keep`].
    #[cold]
    #[must_use = "it is to be dropped without the lock"]
    pub(super) fn put_back(
        &mut self,
        list: Option<SpanList>,
        number: Option<u32>,
    ) -> Option<SpanList> {
        match number {
            Some(_) => self.keep(list?),
            None => {
                self.mapped = list;
                None
            }
        }
    }

    /// Takes a list with room for `pieces`.
    fn take_spare(&mut self, pieces: usize) -> Option<SpanList> {
        let fits = |list: &SpanList| list.capacity() >= pieces;
        let at = self.spares.iter().position(fits)?;
        self.spares.remove(at).ok()
    }
}

/// The mapping of a registration request on its way into the region: a list to be filled. One that
/// is not staged goes back.
pub(crate) struct Prepared<'t> {
    slot: &'t Slot,
    owners: u32,
    /// There until it is staged.
    list: Option<SpanList>,
    room: Option<RBTreeNodeReservation<u32, SpanList>>,
}

impl Prepared<'_> {
    /// The list, empty at first.
    pub(crate) fn list(&mut self) -> Option<&mut SpanList> {
        self.list.as_mut()
    }

    /// Stages it; the request carries the number. `None` if the region is gone.
    pub(crate) fn stage(mut self) -> Option<u32> {
        let mut staging = self.slot.staging.lock();
        if staging.owners != self.owners {
            drop(staging);
            return None;
        }
        let (list, room) = (self.list.take()?, self.room.take()?);
        let number = staging.next;
        staging.next = number.wrapping_add(1);
        staging.with_request.insert(room.into_node(number, list));
        Some(number)
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if let Some(list) = self.list.take() {
            self.slot.put_back(self.owners, list);
        }
    }
}

impl Slot {
    /// Keeps a list for later, if it is of the present owner.
    fn put_back(&self, owners: u32, list: SpanList) {
        let mut staging = self.staging.lock();
        let rest = match staging.owners == owners {
            true => staging.keep(list),
            false => Some(list),
        };
        drop(staging);
        drop(rest);
    }
}

impl MemoryTable {
    /// A list for up to `pieces` pieces, which come with a registration request of the region at
    /// `index`. Any context.
    ///
    /// `ENOMEM` when there is no memory; `EINVAL` for an index that names nothing.
    pub(crate) fn prepare(&self, index: u32, pieces: usize) -> Result<Prepared<'_>> {
        let slot = self.slot(index).ok_or(EINVAL)?;
        let room = Some(RBTreeNodeReservation::new(GFP_ATOMIC | __GFP_NOWARN)?);
        let mut staging = slot.staging.lock();
        let (owners, spare) = (staging.owners, staging.take_spare(pieces));
        drop(staging);
        let mut list = match spare {
            Some(spare) => spare,
            None => SpanList::with_capacity_now(pieces)?,
        };
        list.clear();
        Ok(Prepared {
            slot,
            owners,
            list: Some(list),
            room,
        })
    }

    /// The number of lists that the region at `index` keeps for later, and of those that wait with
    /// their requests.
    #[cfg(ndk_kunit)]
    pub(crate) fn lists(&self, index: u32) -> (usize, usize) {
        let staging = self.slot(index).map(|slot| slot.staging.lock());
        staging.map_or((0, 0), |staging| {
            (staging.spares.len(), staging.with_request.iter().count())
        })
    }

    /// Forgets what was staged for a registration request that is not carried out. Any context.
    pub(crate) fn unstage(&self, index: u32, number: u32) {
        let Some(slot) = self.slot(index) else {
            return;
        };
        let mut staging = slot.staging.lock();
        let list = staging.take_number(number);
        let rest = list.and_then(|list| staging.keep(list));
        drop(staging);
        drop(rest);
    }

    /// Stages the pieces of the next registration: `fill` writes them into an empty list, under no
    /// lock. Any context.
    ///
    /// `None` when the index is not that of a fast-register region, which has a list for each of
    /// two at a time. A registration that executes during the call is one of the
    /// pieces that were registered last, or fails.
    pub(crate) fn stage<R>(&self, index: u32, fill: impl FnOnce(&mut SpanList) -> R) -> Option<R> {
        let slot = self.slot(index)?;
        let mut staging = slot.staging.lock();
        let owners = staging.owners;
        let mut list = staging.mapped.take().or_else(|| staging.spares.pop())?;
        drop(staging);
        list.clear();
        let result = fill(&mut list);
        let mut staging = slot.staging.lock();
        let is_there = staging.owners == owners;
        let rest = match is_there {
            true => {
                let before = staging.mapped.replace(list);
                before.and_then(|list| staging.keep(list))
            }
            false => Some(list),
        };
        drop(staging);
        drop(rest);
        is_there.then_some(result)
    }
}
