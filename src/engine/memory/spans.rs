// SPDX-License-Identifier: GPL-2.0

//! [`SpanList`]: the memory of one registration, as an ordered list of pieces.

use kernel::{
    alloc::flags::__GFP_NOWARN,
    prelude::*, //
};

use crate::sys::span::{
    AllMemory,
    Run,
    Span, //
};

/// One piece, and its end when the pieces are laid end to end.
struct SpanPiece {
    span: Span,
    end: u64,
}

/// No room for another piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// An ordered list of pieces with a fixed capacity.
///
/// Adjacent pieces are joined, so a region of consecutive pages is one piece and is found without a
/// search. Only [`SpanList::with_capacity`] and [`SpanList::with_capacity_now`] allocate.
///
/// # Invariants
///
/// `end` of each piece is the sum of the lengths up to and including it.
pub(crate) struct SpanList {
    pieces: SpanPieces,
}

/// Room for pieces. A list made in atomic context is not vmalloc memory, which must not be freed
/// there.
enum SpanPieces {
    Any(KVVec<SpanPiece>),
    Kmalloc(KVec<SpanPiece>),
    /// No pieces: all memory by address.
    All(AllMemory),
}

impl SpanList {
    /// A list without room.
    pub(crate) const EMPTY: Self = Self {
        pieces: SpanPieces::Any(KVVec::new()),
    };

    /// A list for up to `capacity` pieces. May sleep.
    pub(crate) fn with_capacity(capacity: usize) -> Result<Self> {
        Ok(Self {
            pieces: SpanPieces::Any(KVVec::with_capacity(capacity, GFP_KERNEL)?),
        })
    }

    /// A list for up to `capacity` pieces. Any context.
    pub(crate) fn with_capacity_now(capacity: usize) -> Result<Self> {
        Ok(Self {
            pieces: SpanPieces::Kmalloc(KVec::with_capacity(capacity, GFP_ATOMIC | __GFP_NOWARN)?),
        })
    }

    /// Returns true if the list was made in atomic context, and so may be dropped in any.
    pub(crate) const fn is_of_kmalloc(&self) -> bool {
        matches!(self.pieces, SpanPieces::Kmalloc(_))
    }

    /// The number of pieces that the list has room for.
    pub(crate) fn capacity(&self) -> usize {
        match &self.pieces {
            SpanPieces::Any(pieces) => pieces.capacity(),
            SpanPieces::Kmalloc(pieces) => pieces.capacity(),
            SpanPieces::All(_) => 0,
        }
    }

    #[inline]
    fn pieces(&self) -> &[SpanPiece] {
        match &self.pieces {
            SpanPieces::Any(pieces) => pieces,
            SpanPieces::Kmalloc(pieces) => pieces,
            SpanPieces::All(_) => &[],
        }
    }

    /// A list of one piece. May sleep.
    #[cfg(ndk_kunit)]
    pub(crate) fn of(span: Span) -> Result<Self> {
        let mut list = Self::with_capacity(1)?;
        list.push(span).map_err(|_| ENOMEM)?;
        Ok(list)
    }

    /// All memory, where offsets are addresses. Memory that is not mapped for good has no run.
    pub(crate) const fn all(memory: AllMemory) -> Self {
        Self {
            pieces: SpanPieces::All(memory),
        }
    }

    /// Returns true if the list is all memory, so that a range inside need not be memory.
    pub(crate) const fn is_all(&self) -> bool {
        matches!(self.pieces, SpanPieces::All(_))
    }

    /// The number of bytes in all pieces.
    pub(crate) fn len(&self) -> u64 {
        match &self.pieces {
            SpanPieces::All(_) => u64::MAX,
            _ => self.pieces().last().map_or(0, |p| p.end),
        }
    }

    /// Forgets all pieces and keeps the room for them.
    pub(crate) fn clear(&mut self) {
        match &mut self.pieces {
            SpanPieces::Any(pieces) => pieces.clear(),
            SpanPieces::Kmalloc(pieces) => pieces.clear(),
            SpanPieces::All(_) => self.pieces = Self::EMPTY.pieces,
        }
    }

    /// Appends a piece.
    pub(crate) fn push(&mut self, mut span: Span) -> Result<(), NoRoom> {
        // CAST: widening.
        let end = self.len().checked_add(span.len() as u64).ok_or(NoRoom)?;
        let last = match &mut self.pieces {
            SpanPieces::Any(pieces) => pieces.last_mut(),
            SpanPieces::Kmalloc(pieces) => pieces.last_mut(),
            SpanPieces::All(_) => None,
        };
        if let Some(last) = last {
            match last.span.append(span) {
                Ok(()) => {
                    // INVARIANT: the piece grew by `span`, and so does its end.
                    last.end = end;
                    return Ok(());
                }
                Err(apart) => span = apart,
            }
        }
        // INVARIANT: `end` is the old sum plus this length.
        let piece = SpanPiece { span, end };
        let pushed = match &mut self.pieces {
            SpanPieces::Any(pieces) => pieces.push_within_capacity(piece).is_ok(),
            SpanPieces::Kmalloc(pieces) => pieces.push_within_capacity(piece).is_ok(),
            SpanPieces::All(_) => false,
        };
        match pushed {
            true => Ok(()),
            false => Err(NoRoom),
        }
    }

    /// The contiguous bytes from `offset` on, at most `most`; `None` beyond the end.
    #[cfg(ndk_kunit)]
    pub(crate) fn run(&self, offset: u64, most: u64) -> Option<Run<'_>> {
        self.run_near(offset, most, &mut 0)
    }

    /// The contiguous bytes from `offset` on, at most `most`; `None` beyond the end. `hint` is the
    /// index of the last piece found, 0 at first: that piece and the next are found without a
    /// search.
    #[inline]
    pub(crate) fn run_near(&self, offset: u64, most: u64, hint: &mut usize) -> Option<Run<'_>> {
        if let SpanPieces::All(memory) = &self.pieces {
            return memory.run(offset, most);
        }
        let pieces = self.pieces();
        let holds = |p: &SpanPiece| offset < p.end && p.end - offset <= p.span.len() as u64;
        if !pieces.get(*hint).is_some_and(holds) {
            *hint += 1;
            if !pieces.get(*hint).is_some_and(holds) {
                *hint = pieces.partition_point(|p| p.end <= offset);
            }
        }
        let piece = pieces.get(*hint)?;
        // By the invariant `offset < end`, and the piece begins at `end - len <= offset`.
        let begin = piece.end - piece.span.len() as u64;
        let skip = usize::try_from(offset - begin).ok()?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Some(piece.span.run().part(skip, most))
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_memory_spans)]
mod tests {
    use super::*;
    use crate::{
        kunit::harness::cases,
        sys::span::{
            test_part,
            test_span, //
        }, //
    };

    #[test]
    fn runs_are_found_at_both_sides_of_every_border() {
        let mut bytes = [0u8; 64];
        let all = test_span(&mut bytes);
        let Ok(mut list) = SpanList::with_capacity(3) else {
            return;
        };
        // Three pieces with gaps: 10, 1 and 20 bytes.
        for (at, len) in cases([(0, 10), (20, 1), (30, 20)]) {
            assert!(list.push(test_part(all.run().part(at, len))).is_ok());
        }
        kunit_assert_eq!(list.len(), 31);
        let run = |at| {
            list.run(at, u64::MAX)
                .map(|s| (s.addr() - all.run().addr(), s.len()))
        };
        kunit_assert_eq!(run(0), Some((0, 10)));
        kunit_assert_eq!(run(9), Some((9, 1)));
        // For any hint.
        for hint in cases([0, 1, 2, 3, 99, usize::MAX - 1]) {
            for (at, want) in cases([(0, 10), (9, 1), (10, 1), (11, 20), (30, 1)]) {
                let mut hint = hint;
                assert!(list
                    .run_near(at, u64::MAX, &mut hint)
                    .is_some_and(|s| s.len() == want));
                assert!(list
                    .run_near(at, u64::MAX, &mut hint)
                    .is_some_and(|s| s.len() == want));
            }
            assert!(list.run_near(31, 1, &mut { hint }).is_none());
        }
        kunit_assert_eq!(run(10), Some((20, 1)));
        kunit_assert_eq!(run(11), Some((30, 20)));
        kunit_assert_eq!(run(30), Some((49, 1)));
        assert!(run(31).is_none());
    }

    #[test]
    fn adjacent_pieces_take_one_place() {
        let mut bytes = [0u8; 64];
        let all = test_span(&mut bytes);
        let Ok(mut list) = SpanList::with_capacity(1) else {
            return;
        };
        for at in cases([0, 8, 16]) {
            assert!(list.push(test_part(all.run().part(at, 8))).is_ok());
        }
        assert!(list.run(4, u64::MAX).is_some_and(|s| s.len() == 20));
        assert!(list.push(test_part(all.run().part(32, 8))).is_err());
        kunit_assert_eq!(list.len(), 24);
    }

    #[test]
    fn an_empty_list_has_no_run() {
        assert!(SpanList::EMPTY.run(0, 1).is_none());
        kunit_assert_eq!(SpanList::EMPTY.len(), 0);
    }
}
