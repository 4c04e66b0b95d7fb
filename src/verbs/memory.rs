// SPDX-License-Identifier: GPL-2.0

//! Regions: what a consumer registers, and how it names it.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::Verbs;
use crate::{
    engine::{
        domain::Domain,
        limits::MAX_PIECES,
        memory::{
            rights::Rights,
            slot::RegAttr,
            spans::SpanList,
            token::Token, //
        }, //
    },
    rdma::{
        Access,
        Extents,
        MrCreated,
        MrKind,
        Pd, //
    },
    sys::span::AllMemory, //
};

/// What stands behind a memory region.
pub(crate) struct Region {
    domain: Arc<Domain>,
    index: u32,
}

impl Region {
    fn created(domain: &Arc<Domain>, token: Token) -> MrCreated<Self> {
        MrCreated {
            payload: Self {
                domain: domain.clone(),
                index: token.index(),
            },
            lkey: token.raw(),
            rkey: token.raw(),
        }
    }

    /// The place of the region in the memory table.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Stages a mapping. What is registered now stays as it is.
    pub(super) fn map(&self, extents: &mut Extents<'_>) -> Result {
        let regions = self.domain.device().regions();
        let staged = regions.stage(self.index, |list| {
            let mut all = Ok(());
            for extent in extents {
                all = all.and(list.push(extent).map_err(|_| ENOMEM));
            }
            all
        });
        staged.ok_or(EINVAL)?
    }

    /// Removes the region when the last access is over.
    pub(super) fn remove(&self) {
        self.domain.device().regions().remove(self.index);
    }
}

/// A region of all memory (`IB_PD_UNSAFE_GLOBAL_RKEY`); it grants what `access` says, no more.
pub(super) fn all(pd: &Pd<Verbs>, access: Access, memory: AllMemory) -> Result<MrCreated<Region>> {
    let spans = SpanList::all(memory);
    let terms = RegAttr {
        domain: pd.id(),
        // The core asks for remote rights alone (its local key needs no region), and grants no
        // local use by them.
        rights: rights_of(access),
        base: 0,
        len: spans.len(),
        binding: None,
    };
    let token = pd.device().regions().add_fixed(spans, terms)?;
    Ok(Region::created(pd, token))
}

/// A region for fast registration. Gaps between the pieces are no matter to the engine.
pub(super) fn fast(pd: &Pd<Verbs>, _kind: MrKind, pieces: u32) -> Result<MrCreated<Region>> {
    if pieces == 0 || pieces > MAX_PIECES {
        return Err(EINVAL);
    }
    // CAST: widening.
    let token = pd.device().regions().add_fast(pd.id(), pieces as usize)?;
    Ok(Region::created(pd, token))
}

/// The engine's rights for verbs access flags.
pub(super) fn rights_of(access: Access) -> Rights {
    let set = [
        (access.local_write(), Rights::LOCAL_WRITE),
        (access.remote_read(), Rights::REMOTE_READ),
        (access.remote_write(), Rights::REMOTE_WRITE),
        (access.remote_atomic(), Rights::REMOTE_ATOMIC),
    ];
    set.into_iter()
        .filter(|(set, _)| *set)
        .fold(Rights::NONE, |all, (_, right)| all.with(right))
}

/// The same for a region; `EINVAL` when the flags contradict each other, or count addresses from
/// zero, which only memory windows could.
pub(super) fn rights(access: Access) -> Result<Rights> {
    let rights = rights_of(access);
    match rights.is_consistent() && !access.zero_based() {
        true => Ok(rights),
        false => Err(EINVAL),
    }
}
