// SPDX-License-Identifier: GPL-2.0

//! [`ResizableRing`]: a queue whose depth changes while it is used, as NDKPI wants it.

pub(super) use crate::sys::ring::Ring;

use crate::sys::requests::RequestQueue;

/// A queue for a [`ResizableRing`]: its entries can move to a queue of another depth.
pub(in crate::engine) trait Queue {
    /// A queue that takes no entry and owns no memory.
    const EMPTY: Self;

    /// The number of entries.
    fn len(&self) -> u32;

    /// The number of entries that the queue takes.
    fn limit(&self) -> u32;

    /// The share of one entry in [`MOVED_AT_ONCE`].
    fn weight(&self) -> usize;

    /// Moves the oldest entry, if any, to the end of `to`, which has room; returns true if it did.
    fn move_oldest(&mut self, to: &mut Self) -> bool;
}

impl<T: Clone + Copy> Queue for Ring<T> {
    const EMPTY: Self = Self::EMPTY;

    #[inline]
    fn len(&self) -> u32 {
        Ring::len(self)
    }

    fn limit(&self) -> u32 {
        Ring::limit(self)
    }

    fn weight(&self) -> usize {
        1
    }

    fn move_oldest(&mut self, to: &mut Self) -> bool {
        self.pop().is_some_and(|entry| to.push(entry).is_ok())
    }
}

impl<T: Clone + Copy> Queue for RequestQueue<T> {
    const EMPTY: Self = Self::EMPTY;

    #[inline]
    fn len(&self) -> u32 {
        RequestQueue::len(self)
    }

    fn limit(&self) -> u32 {
        RequestQueue::limit(self)
    }

    fn weight(&self) -> usize {
        self.width().max(1)
    }

    fn move_oldest(&mut self, to: &mut Self) -> bool {
        RequestQueue::move_oldest(self, to)
    }
}

/// The cause of a refused resize, which leaves the queue as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResizeError {
    /// More entries are there than the new depth takes.
    TooMany,
    /// There is no memory for the new depth.
    NoMemory,
}

/// The most entries, or elements of them, that move under one hold of a lock.
pub(in crate::engine) const MOVED_AT_ONCE: usize = 128;

/// A ring whose depth changes while it is used.
///
/// ```text
/// begin:  front = the new ring, empty      back = the ring in use, which still takes new entries
/// step:   the oldest entries move from back to front; entries leave from front first
/// end:    back is empty, and the new ring takes its place
/// ```
///
/// So each hold of the lock does bounded work, order is kept, and no entry is left behind. Until
/// the end the smaller of the two depths holds, so there is room in front for all of back.
///
/// # Invariants
///
/// `front.len() + back.len() <= limit`, and each of the two takes `limit` entries, if `front` is
/// not [`Queue::EMPTY`].
pub(in crate::engine) struct ResizableRing<Q> {
    front: Q,
    back: Q,
    limit: u32,
}

impl<Q: Queue> ResizableRing<Q> {
    /// Makes a resizable ring of an empty ring.
    pub(in crate::engine) fn new(back: Q) -> Self {
        Self {
            front: Q::EMPTY,
            limit: back.limit(),
            back,
        }
    }

    /// The number of entries inside.
    #[inline]
    pub(in crate::engine) fn len(&self) -> u32 {
        // OVERFLOW: not more than `limit`.
        self.front.len() + self.back.len()
    }

    /// Returns true if there is no entry.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if there is no room.
    #[inline]
    pub(in crate::engine) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// The number of entries that the ring takes.
    pub(in crate::engine) fn limit(&self) -> u32 {
        self.limit
    }

    /// The queue that the next entry goes to; `None` when there is no room.
    #[inline]
    pub(in crate::engine) fn room(&mut self) -> Option<&mut Q> {
        if self.is_full() {
            None
        } else {
            Some(&mut self.back)
        }
    }

    /// The queue that the oldest entry is in, if there is any.
    #[inline]
    pub(in crate::engine) fn oldest(&mut self) -> &mut Q {
        if self.front.len() != 0 {
            &mut self.front
        } else {
            &mut self.back
        }
    }

    /// Begins to replace the ring; returns the new ring if there are more entries than it takes.
    /// The entries of both rings have lists of the same size, and the caller makes one resize at a
    /// time.
    pub(in crate::engine) fn begin(&mut self, new: Q) -> Result<(), Q> {
        if self.len() > new.limit() {
            return Err(new);
        }
        // INVARIANT: All entries are in `back`, and not more than the new limit.
        self.limit = self.limit.min(new.limit());
        self.front = new;
        Ok(())
    }

    /// Moves a bounded number of entries. Returns the old ring at the end, to be dropped where that
    /// may sleep.
    pub(in crate::engine) fn step(&mut self) -> Option<Q> {
        for _ in 0..(MOVED_AT_ONCE / self.back.weight()).max(1) {
            // There is room by the invariant.
            if !self.back.move_oldest(&mut self.front) {
                break;
            }
        }
        if self.back.len() != 0 {
            return None;
        }
        // INVARIANT: All entries are in `front`, which becomes the only ring.
        self.limit = self.front.limit();
        let new = core::mem::replace(&mut self.front, Q::EMPTY);
        Some(core::mem::replace(&mut self.back, new))
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_ring)]
mod tests {
    use super::*;
    use crate::{
        kunit::harness::cases,
        sys::sge::test_posted, //
    };
    use kernel::prelude::*;

    // CAST: far less than 2^32.
    const STEP: u32 = MOVED_AT_ONCE as u32;

    /// Pushes the numbers from `from` on; returns how many were taken.
    fn fill(ring: &mut ResizableRing<Ring<u32>>, from: u32) -> u32 {
        let mut count = 0;
        while ring.room().is_some_and(|r| r.push(from + count).is_ok()) {
            count += 1;
        }
        count
    }

    /// Returns true if exactly the numbers from `from` to `to` leave.
    fn leave(ring: &mut ResizableRing<Ring<u32>>, from: u32, to: u32) -> bool {
        (from..to).all(|n| ring.oldest().pop() == Some(n))
    }

    #[test]
    fn a_resizable_ring_keeps_order_while_entries_come_and_go_between_the_steps() -> Result {
        let old = 3 * STEP;
        for new in cases([old + 1, 10 * STEP]) {
            let mut ring = ResizableRing::new(Ring::new(old, 0u32, GFP_KERNEL)?);
            kunit_assert_eq!(fill(&mut ring, 0), old);
            assert!(ring.is_full());
            assert!(ring.begin(Ring::new(new, 0, GFP_KERNEL)?).is_ok());
            let (mut next, mut last, mut steps) = (0, old, 0);
            while ring.step().is_none() {
                // The old depth holds until the end.
                kunit_assert_eq!(ring.limit(), old);
                assert!(ring.is_full());
                assert!(leave(&mut ring, next, next + 5));
                next += 5;
                kunit_assert_eq!(fill(&mut ring, last), 5);
                last += 5;
                steps += 1;
            }
            kunit_assert_eq!(steps, 3);
            kunit_assert_eq!(ring.limit(), new);
            kunit_assert_eq!(ring.len(), old);
            kunit_assert_eq!(fill(&mut ring, last), new - old);
            assert!(leave(&mut ring, next, next + new));
            assert!(ring.is_empty());
        }
        Ok(())
    }

    #[test]
    fn a_step_moves_as_many_elements_as_it_moves_entries_without() -> Result {
        let width = 16;
        let entries = STEP / width;
        let requests = |limit| RequestQueue::new(limit, width, (), GFP_KERNEL);
        let mut ring = ResizableRing::new(requests(2 * entries)?);
        for context in cases(0..u64::from(2 * entries)) {
            let posted = test_posted(context, [].into_iter());
            assert!(ring.room().is_some_and(|room| room.post(posted, ())));
        }
        assert!(ring.begin(requests(4 * entries)?).is_ok());
        assert!(ring.step().is_none());
        kunit_assert_eq!(ring.front.len(), entries);
        assert!(ring.step().is_some_and(|old| old.is_empty()));
        for context in cases(0..u64::from(2 * entries)) {
            assert!(ring
                .oldest()
                .leave()
                .is_some_and(|(c, ())| c.raw() == context));
        }
        Ok(())
    }

    #[test]
    fn a_resizable_ring_shrinks_to_what_is_inside_and_no_further() -> Result {
        let mut ring = ResizableRing::new(Ring::new(8, 0u32, GFP_KERNEL)?);
        kunit_assert_eq!(fill(&mut ring, 0), 8);
        assert!(leave(&mut ring, 0, 3));
        let refused = ring.begin(Ring::new(4, 0, GFP_KERNEL)?).is_err();
        assert!(refused);
        kunit_assert_eq!(ring.limit(), 8);
        kunit_assert_eq!(ring.len(), 5);
        assert!(ring.begin(Ring::new(5, 0, GFP_KERNEL)?).is_ok());
        // From the beginning on, not only at the end.
        assert!(ring.is_full());
        assert!(ring.room().is_none());
        assert!(ring
            .step()
            .is_some_and(|old| old.limit() == 8 && old.is_empty()));
        assert!(ring.is_full());
        kunit_assert_eq!(ring.limit(), 5);
        assert!(leave(&mut ring, 3, 8));
        kunit_assert_eq!(fill(&mut ring, 8), 5);
        Ok(())
    }
}
