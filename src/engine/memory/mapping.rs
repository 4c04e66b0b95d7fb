// SPDX-License-Identifier: GPL-2.0

//! Mappings on their way into the [`Staging`](super::staging::Staging) of a region.
//!
//! A mapping has thousands of pieces, so its list is filled under no lock, and staged afterwards.
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

/// The mapping of a registration request on its way into the region: a list to fill. A list that is
/// not staged goes back.
pub(crate) struct Prepared<'t> {
    slot: &'t Slot,
    owners: u32,
    /// Present until the mapping is staged.
    list: Option<SpanList>,
    room: Option<RBTreeNodeReservation<u32, SpanList>>,
}

impl Prepared<'_> {
    /// The list, empty at first.
    pub(crate) fn list(&mut self) -> Option<&mut SpanList> {
        self.list.as_mut()
    }

    /// Stages the mapping, and returns the number for the request. `None` if the region is gone.
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
            true => staging.keep_spare(list),
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
    /// `ENOMEM` when there is no memory; `EINVAL` if `index` names no slot.
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

    /// The number of spare lists of the region at `index`, and of lists that wait with their
    /// requests.
    #[cfg(ndk_kunit)]
    pub(crate) fn lists(&self, index: u32) -> (usize, usize) {
        let staging = self.slot(index).map(|slot| slot.staging.lock());
        staging.map_or((0, 0), |staging| staging.lists())
    }

    /// Drops the mapping of a registration request that is not carried out. Any context.
    pub(crate) fn drop_staged(&self, index: u32, number: u32) {
        let Some(slot) = self.slot(index) else {
            return;
        };
        let mut staging = slot.staging.lock();
        let list = staging.take_number(number);
        let rest = list.and_then(|list| staging.keep_spare(list));
        drop(staging);
        drop(rest);
    }

    /// Stages the pieces of the next registration: `fill` writes them into an empty list, under no
    /// lock. Any context.
    ///
    /// `None` if `index` names no fast-register region, if the region has no free list, or if it is
    /// removed during the call. A registration that executes during the call takes the pieces that
    /// were registered last, or fails.
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
                before.and_then(|list| staging.keep_spare(list))
            }
            false => Some(list),
        };
        drop(staging);
        drop(rest);
        is_there.then_some(result)
    }
}
