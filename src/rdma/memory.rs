// SPDX-License-Identifier: GPL-2.0

//! Scatter lists on their way into a memory region.
//!
//! Without a DMA device the core fills scatter lists with kernel virtual
//! addresses, so an entry is memory that can be read and written right away.
//!
//! A region made for page lists takes entries as `ib_sg_to_pages()` does: an
//! entry either continues the one before it, or both meet at page borders. The
//! first entry that does neither ends the mapping. So does the first page above
//! the region's size; then the mapping ends inside an entry.

use super::{
    mr::MrKind,
    prelude::*, //
};
use crate::sys::span::Span;

/// The capacity of a region, and the form of its pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapRule {
    kind: MrKind,
    /// Pages or ranges.
    max_entries: u32,
    /// The binary logarithm of the page size.
    shift: u32,
}

impl MapRule {
    /// Makes a rule. `EINVAL` for a page list with a page size that is no power of two.
    pub(super) fn new(kind: MrKind, max_entries: u32, page_size: u32) -> Result<Self> {
        let shift = match kind {
            MrKind::PageList if page_size.is_power_of_two() => page_size.trailing_zeros(),
            MrKind::PageList => return Err(EINVAL),
            MrKind::SgGaps => 0,
        };
        Ok(Self {
            kind,
            max_entries,
            shift,
        })
    }
}

/// The part of a list entry that is offered to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MapPiece {
    addr: u64,
    /// Below 2^32.
    len: u64,
}

/// Decides the part of each piece that a region takes.
struct Budget {
    rule: MapRule,
    /// Pages or ranges taken so far.
    used: u32,
    /// The end of the last piece.
    end: Option<u64>,
}

impl Budget {
    fn new(rule: MapRule) -> Self {
        Self {
            rule,
            used: 0,
            end: None,
        }
    }

    /// Takes bytes of `piece`, and returns their number; `None` if it may not follow the pieces
    /// before.
    fn take(&mut self, piece: MapPiece) -> Option<u64> {
        let taken = match self.rule.kind {
            MrKind::PageList => self.take_pages(piece)?,
            MrKind::SgGaps => {
                if self.end != Some(piece.addr) && self.grant(1) == 0 {
                    return None;
                }
                piece.len
            }
        };
        self.end = Some(piece.addr.wrapping_add(taken));
        Some(taken)
    }

    fn take_pages(&mut self, piece: MapPiece) -> Option<u64> {
        let shift = self.rule.shift;
        let mask = (1u64 << shift) - 1;
        let within = piece.addr & mask;
        let continues = self.end == Some(piece.addr);
        let aligned = self.end.is_none_or(|end| end & mask == 0 && within == 0);
        if !continues && !aligned {
            return None;
        }
        // The page in which the last piece ended is counted already.
        let paid = u64::from(continues && within != 0);
        // OVERFLOW: Offset, length and mask are each below 2^32.
        let pages = ((within + piece.len + mask) >> shift).saturating_sub(paid);
        let granted = self.grant(pages);
        if granted == pages {
            return Some(piece.len);
        }
        // OVERFLOW: At most 2^32 pages of at most 2^31 bytes.
        Some(((granted + paid) << shift).saturating_sub(within))
    }

    /// Takes as many entries as there is room for, at most `wanted`.
    fn grant(&mut self, wanted: u64) -> u64 {
        let room = self.rule.max_entries.saturating_sub(self.used);
        let granted = wanted.min(room.into());
        // CAST: At most the room, which has 32 bits.
        self.used = self.used.saturating_add(granted as u32);
        granted
    }
}

/// The progress of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    /// Whole entries consumed.
    pub(super) entries: u32,
    /// Bytes consumed of the entry after them.
    pub(super) offset: u32,
    /// Bytes mapped.
    pub(super) length: u64,
}

/// One entry of a scatter list, and a pointer to the next.
pub(super) struct SgEntry {
    pub(super) addr: u64,
    pub(super) len: u32,
    pub(super) next: *mut bindings::scatterlist,
}

impl SgEntry {
    /// # Safety
    ///
    /// `entry` is a mapped entry of a list.
    #[inline]
    pub(super) unsafe fn read(entry: *mut bindings::scatterlist) -> Self {
        let (mut addr, mut len) = (0, 0);
        // SAFETY: The caller says that `entry` is a mapped entry.
        let next = unsafe { bindings::ndk_sg_entry(entry, &mut addr, &mut len) };
        Self { addr, len, next }
    }
}

/// The ranges of a scatter list that a region takes, in order.
///
/// In a region with gaps each range costs an entry, unless it continues the range before; in a page
/// list each page does.
///
/// # Invariants
///
/// `entry` is an entry of a list, with `left` mapped entries from it on, whose memory the consumer
/// keeps as long as the registration they are for.
pub(crate) struct Extents<'a> {
    entry: SgEntry,
    left: u32,
    skip: u32,
    start: u64,
    budget: Budget,
    mapped: Mapped,
    _list: PhantomData<&'a bindings::scatterlist>,
}

impl Extents<'_> {
    /// Makes the ranges of `list` from `offset` on. `EINVAL` for an empty list, or an offset
    /// outside its first entry.
    ///
    /// # Safety
    ///
    /// `list` has `count` entries, mapped for a device without DMA, that do not change during
    /// `'a`; the consumer keeps their memory until the registration it wants them for has ended.
    pub(super) unsafe fn new(
        list: *mut bindings::scatterlist,
        count: c_int,
        offset: u32,
        rule: MapRule,
    ) -> Result<Self> {
        let left = u32::try_from(count).map_err(|_| EINVAL)?;
        if left == 0 || list.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: The list has at least one entry.
        let entry = unsafe { SgEntry::read(list) };
        if offset > entry.len {
            return Err(EINVAL);
        }
        // INVARIANT: by the safety requirements.
        Ok(Self {
            start: entry.addr.wrapping_add(offset.into()),
            entry,
            left,
            skip: offset,
            budget: Budget::new(rule),
            mapped: Mapped::default(),
            _list: PhantomData,
        })
    }

    /// The address of the first byte.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the progress. `EINVAL` if the region took no part of the list, or ranges are left
    /// over.
    pub(super) fn finish(self) -> Result<Mapped> {
        let Mapped {
            entries, offset, ..
        } = self.mapped;
        match self.left == 0 && (entries, offset) != (0, 0) {
            true => Ok(self.mapped),
            false => Err(EINVAL),
        }
    }

    fn advance(&mut self, piece: MapPiece, taken: u64) {
        // OVERFLOW: Fewer than 2^31 entries of less than 2^32 bytes.
        self.mapped.length = self.mapped.length.wrapping_add(taken);
        if taken < piece.len {
            // CAST: Below the length of an entry.
            self.mapped.offset = self.skip.wrapping_add(taken as u32);
            self.left = 0;
            return;
        }
        self.mapped.entries = self.mapped.entries.wrapping_add(1);
        self.skip = 0;
        self.left = self.left.saturating_sub(1);
        if self.entry.next.is_null() {
            self.left = 0;
        } else if self.left != 0 {
            // INVARIANT: `entry` becomes the next entry.
            // SAFETY: By the invariant there is a next entry, and it is mapped.
            self.entry = unsafe { SgEntry::read(self.entry.next) };
        }
    }
}

impl Iterator for Extents<'_> {
    type Item = Span;

    /// Returns the part that is taken of the next entry; skips entries of which no part is taken.
    #[inline]
    fn next(&mut self) -> Option<Span> {
        while self.left != 0 {
            let piece = MapPiece {
                addr: self.entry.addr.wrapping_add(self.skip.into()),
                len: self.entry.len.saturating_sub(self.skip).into(),
            };
            let Some(taken) = self.budget.take(piece) else {
                self.left = 0;
                return None;
            };
            self.advance(piece, taken);
            if taken != 0 {
                // CAST: Addresses have 64 bits where there is virtual DMA.
                // SAFETY: By the invariant the consumer keeps the memory of the entry, of which
                // this is a part, until the registration has ended.
                return Some(unsafe { Span::new(piece.addr as usize, taken as usize) });
            }
        }
        None
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_memory)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    fn piece(addr: u64, len: u64) -> MapPiece {
        MapPiece { addr, len }
    }

    fn pages(max: u32) -> Result<Budget> {
        Ok(Budget::new(MapRule::new(MrKind::PageList, max, 4096)?))
    }

    fn gaps(max: u32) -> Result<Budget> {
        Ok(Budget::new(MapRule::new(MrKind::SgGaps, max, 0)?))
    }

    #[test]
    fn page_size_must_be_a_power_of_two() {
        assert!(MapRule::new(MrKind::PageList, 1, 0).is_err());
        assert!(MapRule::new(MrKind::PageList, 1, 4097).is_err());
        assert!(MapRule::new(MrKind::PageList, 1, 1 << 17).is_ok());
        assert!(MapRule::new(MrKind::SgGaps, 1, 3).is_ok());
    }

    #[test]
    fn only_the_ends_may_be_unaligned() -> Result {
        let mut budget = pages(8)?;
        kunit_assert_eq!(budget.take(piece(0x1200, 0xe00)), Some(0xe00));
        kunit_assert_eq!(budget.take(piece(0x9000, 0x1000)), Some(0x1000));
        kunit_assert_eq!(budget.take(piece(0x5000, 0x10)), Some(0x10));
        kunit_assert_eq!(budget.take(piece(0x7000, 0x1000)), None);
        kunit_assert_eq!(budget.used, 3);
        Ok(())
    }

    #[test]
    fn adjacent_pieces_share_a_page() -> Result {
        let mut budget = pages(1)?;
        kunit_assert_eq!(budget.take(piece(0x1200, 0x100)), Some(0x100));
        kunit_assert_eq!(budget.take(piece(0x1300, 0xd00)), Some(0xd00));
        kunit_assert_eq!(budget.used, 1);
        kunit_assert_eq!(budget.take(piece(0x2000, 0x10)), Some(0));
        Ok(())
    }

    #[test]
    fn last_page_may_end_inside_a_piece() -> Result {
        for (len, expected) in cases([(0x1e00, 0x1e00), (0x1e01, 0x1e00), (0x9000, 0x1e00)]) {
            let mut budget = pages(2)?;
            kunit_assert_eq!(budget.take(piece(0x1200, len)), Some(expected));
            kunit_assert_eq!(budget.used, 2);
        }
        Ok(())
    }

    #[test]
    fn gaps_cost_one_range_each() -> Result {
        let mut budget = gaps(2)?;
        kunit_assert_eq!(budget.take(piece(0x1001, 0x10)), Some(0x10));
        kunit_assert_eq!(budget.take(piece(0x1011, 0x10)), Some(0x10));
        kunit_assert_eq!(budget.take(piece(0x8003, 0x7)), Some(0x7));
        kunit_assert_eq!(budget.take(piece(0x9000, 0x7)), None);
        Ok(())
    }

    /// A list of mapped entries, each an address and a length.
    fn list(entries: &[(u64, u32)]) -> Result<KVec<bindings::scatterlist>> {
        let mut all = KVec::new();
        for (addr, len) in entries {
            let entry = bindings::scatterlist {
                length: *len,
                dma_address: *addr,
                #[cfg(CONFIG_NEED_SG_DMA_LENGTH)]
                dma_length: *len,
                ..Default::default()
            };
            all.push(entry, GFP_KERNEL)?;
        }
        if let Some(last) = all.last_mut() {
            last.page_link = SG_END;
        }
        Ok(all)
    }

    /// Marks the last entry of a list.
    const SG_END: usize = 2;

    /// Maps `entries` from `offset` on; returns the ranges, and the progress.
    fn map(
        entries: &[(u64, u32)],
        offset: u32,
        rule: MapRule,
    ) -> Result<(KVec<(usize, usize)>, Mapped)> {
        let mut list = list(entries)?;
        // CAST: Tests use short lists.
        // SAFETY: The list has `entries.len()` entries; the ranges are not followed.
        let mut extents =
            unsafe { Extents::new(list.as_mut_ptr(), entries.len() as c_int, offset, rule) }?;
        let mut ranges = KVec::new();
        for span in &mut extents {
            ranges.push((span.run().addr(), span.len()), GFP_KERNEL)?;
        }
        Ok((ranges, extents.finish()?))
    }

    #[test]
    fn adjacent_entries_cost_one() -> Result {
        let rule = MapRule::new(MrKind::SgGaps, 2, 0)?;
        let entries = [(0x100, 0x10), (0x110, 0x20), (0x500, 8), (0x508, 8)];
        let (ranges, mapped) = map(&entries, 4, rule)?;
        kunit_assert_eq!(
            ranges[..],
            [(0x104, 0xc), (0x110, 0x20), (0x500, 8), (0x508, 8)]
        );
        kunit_assert_eq!(mapped.entries, 4);
        kunit_assert_eq!(mapped.offset, 0);
        kunit_assert_eq!(mapped.length, 0x3c);
        Ok(())
    }

    #[test]
    fn mapping_may_end_inside_an_entry() -> Result {
        let rule = MapRule::new(MrKind::PageList, 2, 4096)?;
        let (ranges, mapped) = map(&[(0x1800, 0x800), (0x4000, 0x3000)], 0x400, rule)?;
        kunit_assert_eq!(ranges[..], [(0x1c00, 0x400), (0x4000, 0x1000)]);
        kunit_assert_eq!(mapped.entries, 1);
        kunit_assert_eq!(mapped.offset, 0x1000);
        kunit_assert_eq!(mapped.length, 0x1400);
        Ok(())
    }

    #[test]
    fn offset_counts_from_the_start_of_its_entry() -> Result {
        let rule = MapRule::new(MrKind::PageList, 1, 4096)?;
        let (ranges, mapped) = map(&[(0x4000, 0x3000)], 0x1000, rule)?;
        kunit_assert_eq!(ranges[..], [(0x5000, 0x1000)]);
        kunit_assert_eq!(mapped.entries, 0);
        kunit_assert_eq!(mapped.offset, 0x2000);
        Ok(())
    }

    #[test]
    fn senseless_lists_are_refused() -> Result {
        let rule = MapRule::new(MrKind::SgGaps, 2, 0)?;
        assert!(map(&[], 0, rule).is_err());
        assert!(map(&[(0x100, 16)], 17, rule).is_err());
        assert!(map(&[(0x100, 16)], 16, rule).is_ok());
        assert!(map(&[(0x100, 16)], 0, MapRule::new(MrKind::SgGaps, 0, 0)?).is_err());
        Ok(())
    }

    #[test]
    fn ranges_left_over_are_an_error() -> Result {
        let mut list = list(&[(0x100, 16), (0x200, 16)])?;
        let rule = MapRule::new(MrKind::SgGaps, 2, 0)?;
        // SAFETY: The list has two entries; the ranges are not followed.
        let mut extents = unsafe { Extents::new(list.as_mut_ptr(), 2, 0, rule) }?;
        assert!(extents.next().is_some());
        assert!(extents.finish().is_err());
        Ok(())
    }
}
