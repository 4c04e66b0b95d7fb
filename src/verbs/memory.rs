// SPDX-License-Identifier: GPL-2.0

//! Domains and regions: memory that a consumer registers, and its tokens.

use super::prelude::*;
use crate::{
    engine::{
        device::{
            Quota,
            Share, //
        },
        inject::SiteKind,
        memory::{
            slot::RegAttr,
            spans::SpanList, //
        }, //
    },
    rdma::{
        values::token::Token,
        Extents,
        MrOperations,
        PdOperations,
        UmemPieces, //
    },
    sys::span::AllMemory, //
};

/// The payload of a memory region.
pub(crate) struct Region {
    domain: Arc<Domain>,
    index: u32,
    /// The place of a program's region in the quota.
    _share: Option<Share>,
}

impl Region {
    fn new(domain: &Arc<Domain>, token: Token, share: Option<Share>) -> (Self, u32) {
        let region = Self {
            domain: domain.clone(),
            index: token.index(),
            _share: share,
        };
        (region, token.raw())
    }
}

impl PdOperations<Verbs> for Arc<Domain> {
    fn alloc(device: &Device<Verbs>, is_trusted: bool) -> Result<Self> {
        let device = device.device().clone();
        match is_trusted {
            true => Domain::new(device, GFP_KERNEL),
            false => Domain::untrusted(device),
        }
    }

    fn dealloc(&self) {
        self.close();
    }
}

impl MrOperations<Verbs> for Region {
    /// Makes a region of all memory (`IB_PD_UNSAFE_GLOBAL_RKEY`) with the rights of `access` alone.
    fn get_dma(pd: &Pd<Verbs>, access: AccessFlags, memory: AllMemory) -> Result<(Self, u32)> {
        let spans = SpanList::all(memory);
        let attr = RegAttr {
            domain: pd.id(),
            // The core asks for remote rights alone (its local key needs no region), and grants no
            // local use by them.
            rights: access,
            base: 0,
            len: spans.len(),
            binding: None,
        };
        pd.device().may_make(SiteKind::Region)?;
        let token = pd.device().regions.add_fixed(spans, attr)?;
        Ok(Self::new(pd, token, None))
    }

    /// Makes a fast-register region; the engine takes pieces with gaps, too.
    fn alloc(pd: &Pd<Verbs>, pieces: u32) -> Result<(Self, u32)> {
        if pieces == 0 || pieces > MAX_PIECES {
            return Err(EINVAL);
        }
        pd.device().may_make(SiteKind::Region)?;
        // CAST: widening.
        let token = pd.device().regions.add_fast(pd.id(), pieces as usize)?;
        Ok(Self::new(pd, token, None))
    }

    fn reg_user(
        pd: &Pd<Verbs>,
        access: AccessFlags,
        iova: u64,
        pieces: UmemPieces<'_>,
    ) -> Result<(Self, u32)> {
        // Only programs register this way.
        let share = pd.share(Quota::Regions)?;
        let mut spans = SpanList::with_capacity(pieces.most())?;
        for piece in pieces {
            spans.push(piece).map_err(|_| EINVAL)?;
        }
        let attr = RegAttr {
            domain: pd.id(),
            rights: access,
            base: iova,
            len: spans.len(),
            binding: None,
        };
        pd.device().may_make(SiteKind::Region)?;
        let token = pd.device().regions.add_fixed(spans, attr)?;
        Ok(Self::new(pd, token, Some(share)))
    }

    fn map_sg(&self, extents: &mut Extents<'_>) -> Result {
        let regions = &self.domain.device().regions;
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
    fn dereg(&self) {
        self.domain.device().regions.remove(self.index);
    }
}
