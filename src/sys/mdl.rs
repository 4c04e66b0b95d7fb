// SPDX-License-Identifier: GPL-2.0

//! Memory that a consumer describes by a chain of `struct ndk_mdl`, or by pages.
//!
//! C header: `include/ndk/types.h`

use kernel::prelude::*;

use super::{
    span::{
        is_memory,
        Span, //
    },
    unaligned::Unaligned, //
};
use crate::bindings;

#[cfg(ndk_kunit)]
pub(crate) use super::tests::memory::{
    test_pages,
    Described, //
};

/// Bytes of a page.
pub(crate) const PAGE_SIZE: u64 = kernel::page::PAGE_SIZE as u64;

/// A chain of descriptors of pinned memory.
///
/// # Invariants
///
/// `first` is the head of a chain, or null. The descriptors and page arrays of the chain can be
/// read, at any address, as long as this exists, and its pages may be read and written as [`Span`]
/// requires.
pub(crate) struct MdlChain {
    first: *const bindings::ndk_mdl,
}

// SAFETY: The chain is only read, and belongs to no thread.
unsafe impl Send for MdlChain {}

impl MdlChain {
    /// The chain that begins at `first`; null is an empty chain.
    ///
    /// # Safety
    ///
    /// The descriptors and their page arrays must stay, unchanged, as long as the result exists.
    /// The pages must be pinned, and stay pinned until a registration made of them has ended.
    pub(crate) const unsafe fn new(first: *const bindings::ndk_mdl) -> Self {
        // INVARIANT: by the safety requirements.
        Self { first }
    }

    /// A copy of each descriptor.
    fn descriptors(&self) -> impl Iterator<Item = bindings::ndk_mdl> + '_ {
        let at = |mdl: *const bindings::ndk_mdl| {
            // SAFETY: By the type invariant each descriptor can be read, at any address.
            let mdl = unsafe { mdl.cast::<Unaligned<bindings::ndk_mdl>>().as_ref() };
            mdl.map(Unaligned::get)
        };
        core::iter::successors(at(self.first), move |mdl| at(mdl.next))
    }

    /// The number of bytes of all descriptors.
    pub(crate) fn len(&self) -> u64 {
        let lengths = self.descriptors().map(|mdl| u64::from(mdl.byte_count));
        lengths.fold(0, u64::saturating_add)
    }

    /// The address of the first byte, for use as an index only.
    pub(crate) fn base(&self) -> u64 {
        self.descriptors().next().map_or(0, |mdl| begin(&mdl))
    }

    /// The most pieces of memory that the chain may have.
    pub(crate) fn pieces(&self) -> usize {
        let pages = self.descriptors().map(|mdl| pages(&mdl));
        pages.fold(0, usize::saturating_add)
    }

    /// Returns true if the addresses of the first `len` bytes are consecutive and do not wrap, and
    /// each descriptor up to there has its pages.
    pub(crate) fn is_contiguous(&self, len: u64) -> bool {
        let mut next = self.base();
        let mut left = len;
        for mdl in self.descriptors() {
            if left == 0 {
                break;
            }
            let count = u64::from(mdl.byte_count);
            // CAST: the offset is 32 bits.
            let fits = u64::from(mdl.byte_offset) < PAGE_SIZE && begin_page(&mdl) % PAGE_SIZE == 0;
            let Some(end) = next.checked_add(count) else {
                return false;
            };
            if begin(&mdl) != next || !fits || (count > 0 && mdl.pages.is_null()) {
                return false;
            }
            next = end;
            left = left.saturating_sub(count);
        }
        left == 0
    }

    /// Passes the first `len` bytes to `take`, piece by piece.
    ///
    /// The bytes must be contiguous.
    pub(crate) fn each_span(&self, len: u64, mut take: impl FnMut(Span) -> Result) -> Result {
        let mut left = len;
        self.each_part(|page, offset, room| {
            let part = room.min(left);
            left -= part;
            if part == 0 {
                return Ok(());
            }
            // CAST: 64-bit kernel addresses.
            // SAFETY: The part lies in a page of the chain, which by the type invariant may be used
            // as a span requires.
            take(unsafe { Span::new((page + offset) as usize, part as usize) })
        })
    }

    /// Passes the address of each page of the first `len` bytes to `take`, until that returns
    /// false.
    ///
    /// Returns true if the end was reached. The bytes must be contiguous.
    pub(crate) fn each_page(&self, len: u64, mut take: impl FnMut(u64) -> bool) -> bool {
        let mut left = len;
        let mut last = None;
        let walked = self.each_part(|page, offset, room| {
            if left == 0 {
                return Ok(());
            }
            left -= room.min(left);
            // If a descriptor ends inside a page, the next one continues in that page.
            let same = offset != 0 && last == Some(page);
            last = Some(page);
            match same || take(page) {
                true => Ok(()),
                false => Err(EINVAL),
            }
        });
        walked.is_ok() && left == 0
    }

    /// Passes each page to `take`: its address, the offset of the chain's first byte in it, and the
    /// number of bytes from there.
    fn each_part(&self, mut take: impl FnMut(u64, u64, u64) -> Result) -> Result {
        for mdl in self.descriptors() {
            let mut offset = u64::from(mdl.byte_offset);
            let mut left = u64::from(mdl.byte_count);
            for at in 0..pages(&mdl) {
                // SAFETY: By the type invariant the array can be read and has a page for each page
                // of the range, of which `at` is one, and the pages are pinned.
                let page =
                    unsafe { bindings::ndk_page_address(mdl.pages.add(at).read_unaligned()) };
                let room = (PAGE_SIZE - offset).min(left);
                take(page, offset, room)?;
                left -= room;
                offset = 0;
            }
        }
        Ok(())
    }
}

fn begin_page(mdl: &bindings::ndk_mdl) -> u64 {
    // CAST: 64-bit kernel addresses.
    mdl.start_va.addr() as u64
}

/// The address of the first byte.
fn begin(mdl: &bindings::ndk_mdl) -> u64 {
    begin_page(mdl).wrapping_add(u64::from(mdl.byte_offset))
}

/// The number of pages of a descriptor; zero if its offset is not inside the first page.
fn pages(mdl: &bindings::ndk_mdl) -> usize {
    let offset = u64::from(mdl.byte_offset);
    if offset >= PAGE_SIZE || mdl.byte_count == 0 || mdl.pages.is_null() {
        return 0;
    }
    // CAST: below 2^21.
    (offset + u64::from(mdl.byte_count)).div_ceil(PAGE_SIZE) as usize
}

/// Pages by their logical addresses, as a fast registration names them.
///
/// # Invariants
///
/// The pages that are memory may be used as [`Span`] requires, until the registration made of them
/// has ended.
pub(crate) struct Pages<'a>(&'a [Unaligned<u64>]);

impl<'a> Pages<'a> {
    /// The pages at `addresses`.
    ///
    /// # Safety
    ///
    /// Each page of the kernel's memory among them must stay, and may be read and written by any
    /// CPU at any time, until the registration made of them has ended.
    pub(crate) const unsafe fn new(addresses: &'a [Unaligned<u64>]) -> Self {
        // INVARIANT: by the safety requirements.
        Self(addresses)
    }

    /// The number of pages.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Passes the memory from byte `offset` of the first page on to `take`, page by page, until
    /// that returns false. Returns false, too, for an address that is no page of the kernel's
    /// memory.
    pub(crate) fn each_span(&self, offset: u64, mut take: impl FnMut(Span) -> bool) -> bool {
        let mut skip = offset;
        for page in self.0.iter().map(Unaligned::get) {
            let real = page % PAGE_SIZE == 0 && is_memory(page, PAGE_SIZE);
            let Some(len) = PAGE_SIZE.checked_sub(skip).filter(|_| real) else {
                return false;
            };
            // CAST: 64-bit kernel addresses.
            // SAFETY: The page is memory (`is_memory`), so by the type invariant it may be used.
            if !take(unsafe { Span::new((page + skip) as usize, len as usize) }) {
                return false;
            }
            skip = 0;
        }
        true
    }
}
