// SPDX-License-Identifier: GPL-2.0

//! Logical address mappings: pages as a fast registration or a privileged element names them.

use crate::sys::mdl::{
    Chain,
    PAGE_SIZE, //
};

/// What became of `BuildLAM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lam {
    /// The number of pages.
    pub(crate) pages: u32,
    /// Where the range begins in the first page.
    pub(crate) offset: u32,
}

/// Why a mapping was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLam {
    /// So many pages are needed.
    TooSmall(u32),
    /// The range is not what it has to be.
    Invalid,
}

/// `BuildLAM`: writes the logical addresses of the pages of the first `len` bytes of the chain.
///
/// They are the addresses under which the kernel maps the pages for good. Nothing is mapped, so
/// nothing has to be undone. Any context.
pub(crate) fn build_lam(chain: &Chain, len: u64, out: &mut [u64]) -> Result<Lam, NoLam> {
    if len == 0 || len > chain.len() || !chain.is_contiguous(len) {
        return Err(NoLam::Invalid);
    }
    let offset = chain.base() % PAGE_SIZE;
    let pages = offset
        .checked_add(len)
        .ok_or(NoLam::Invalid)?
        .div_ceil(PAGE_SIZE);
    let pages = u32::try_from(pages).map_err(|_| NoLam::Invalid)?;
    // CAST: widening.
    let room = out.get_mut(..pages as usize);
    let mut room = room.ok_or(NoLam::TooSmall(pages))?.iter_mut();
    let fits = chain.each_page(len, |page| match room.next() {
        Some(slot) => {
            *slot = page;
            true
        }
        None => false,
    });
    if !fits {
        return Err(NoLam::Invalid);
    }
    Ok(Lam {
        pages,
        // CAST: below the size of a page.
        offset: offset as u32,
    })
}
