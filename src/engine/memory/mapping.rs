// SPDX-License-Identifier: GPL-2.0

//! Mappings on their way into the [`Staging`](super::staging::Staging) of a region.
//!
//! A mapping has thousands of pieces: its list is filled under no lock, and is then put where the
//! registration finds it.
//!
//! Context: any.
//!
//! Tests: `engine/memory/tests/staging.rs`.

use kernel::{
    alloc::flags::__GFP_NOWARN,
    rbtree::RBTreeNodeReservation, //
};

use super::{
    slot::Slot,
    spans::SpanList,
    MemoryTable, //
};
use crate::engine::prelude::*;

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
        if staging.owners() != self.owners {
            drop(staging);
            return None;
        }
        let (list, room) = (self.list.take()?, self.room.take()?);
        Some(staging.stage_for_request(room, list))
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
        let rest = match staging.owners() == owners {
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
        let (owners, spare) = (staging.owners(), staging.take_spare(pieces));
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
        staging.map_or((0, 0), |staging| staging.lists())
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
        let owners = staging.owners();
        let mut list = staging.take_any()?;
        drop(staging);
        list.clear();
        let result = fill(&mut list);
        let mut staging = slot.staging.lock();
        let is_there = staging.owners() == owners;
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
