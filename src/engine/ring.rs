// SPDX-License-Identifier: GPL-2.0

//! [`Ring`]: a bounded queue with free-running indices. All queues of the engine are this.
//!
//! [`ResizableRing`] is one whose depth changes while it is used.

use kernel::prelude::*;

/// A bounded first-in, first-out queue.
///
/// Entries have a sequence number that counts on without end (modulo 2^32), so a number names one
/// entry as long as it is in the ring. Nothing but [`Ring::new`] allocates.
///
/// # Invariants
///
/// `tail - head <= limit <= slots.len()`, and `slots.len()` is a power of two, or zero.
pub(crate) struct Ring<T> {
    slots: KVVec<T>,
    limit: u32,
    head: u32,
    tail: u32,
}

impl<T: Clone + Copy> Ring<T> {
    /// An empty ring for `limit` entries; `blank` fills the places before their first use.
    ///
    /// May sleep. `EINVAL` for more entries than half the number space.
    pub(crate) fn new(limit: u32, blank: T) -> Result<Self> {
        let places = limit.max(1).checked_next_power_of_two().ok_or(EINVAL)?;
        if places > 1 << 30 {
            return Err(EINVAL);
        }
        // CAST: widening.
        let slots = KVVec::from_elem(blank, places as usize, GFP_KERNEL)?;
        Ok(Self {
            slots,
            limit,
            head: 0,
            tail: 0,
        })
    }

    /// A ring that takes nothing.
    pub(crate) const fn empty() -> Self {
        Self {
            slots: KVVec::new(),
            limit: 0,
            head: 0,
            tail: 0,
        }
    }

    /// How many entries are in the ring.
    pub(crate) fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Returns true if there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Returns true if there is no room.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// How many entries the ring takes.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// The number of the oldest entry.
    pub(crate) fn head(&self) -> u32 {
        self.head
    }

    /// The number that the next entry will get.
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    /// Where in an array of one place per slot the entry `seq` has its part.
    pub(crate) fn place(&self, seq: u32) -> usize {
        // CAST: widening.
        seq as usize & self.slots.len().wrapping_sub(1)
    }

    /// The number of slots, for arrays that go with the ring.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// Appends an entry and returns its number; gives it back when the ring is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) -> Result<u32, T> {
        if self.is_full() {
            return Err(entry);
        }
        let seq = self.tail;
        let place = self.place(seq);
        let Some(slot) = self.slots.get_mut(place) else {
            return Err(entry);
        };
        *slot = entry;
        // INVARIANT: there was room, so one more is within the limit.
        self.tail = seq.wrapping_add(1);
        Ok(seq)
    }

    /// The entry `seq`, if it is in the ring.
    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u32) -> Option<&mut T> {
        if seq.wrapping_sub(self.head) >= self.len() {
            return None;
        }
        let place = self.place(seq);
        self.slots.get_mut(place)
    }

    /// The oldest entry.
    pub(crate) fn front(&mut self) -> Option<&mut T> {
        self.get_mut(self.head)
    }

    /// The oldest entry goes, if there is one.
    #[inline]
    pub(crate) fn leave(&mut self) {
        if !self.is_empty() {
            // INVARIANT: there was an entry, so `head` does not pass `tail`.
            self.head = self.head.wrapping_add(1);
        }
    }

    /// Takes the oldest entry out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let entry = *self.front()?;
        self.leave();
        Some(entry)
    }
}

/// Why a queue was not resized. It is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResizeError {
    /// More entries are there than the new depth takes.
    TooMany,
    /// There is no memory for so many entries.
    NoMemory,
}

/// What [`ResizableRing`] can be made of.
pub(super) trait Store: Sized {
    /// One that takes nothing and owns no memory.
    const EMPTY: Self;

    /// How many entries are inside.
    fn len(&self) -> u32;

    /// How many entries it takes.
    fn limit(&self) -> u32;

    /// Moves up to `most` of the oldest entries of `from` to the end of this one.
    fn shift(&mut self, from: &mut Self, most: u32);
}

impl<T: Clone + Copy> Store for Ring<T> {
    const EMPTY: Self = Self::empty();

    fn len(&self) -> u32 {
        self.len()
    }

    fn limit(&self) -> u32 {
        self.limit()
    }

    fn shift(&mut self, from: &mut Self, most: u32) {
        for _ in 0..most {
            if self.is_full() {
                return;
            }
            let Some(entry) = from.pop() else {
                return;
            };
            // There is room.
            let _ = self.push(entry);
        }
    }
}

/// How many entries move under one hold of a lock.
const MOVED_AT_ONCE: u32 = 128;

/// A ring whose depth changes while it is used.
///
/// ```text
/// begin:  front = the new ring, empty      back = the ring in use, which still takes what comes
/// step:   the oldest entries move from back to front: what leaves is taken from front first
/// end:    back is empty, and the new ring takes its place
/// ```
///
/// So whoever holds the lock does bounded work, order is kept, and nothing is left behind. Until
/// the end the smaller of the two depths holds, so there is room in front for all of back.
///
/// # Invariants
///
/// `front.len() + back.len() <= limit`, and each of the two takes `limit` entries, if `front` is
/// not [`Store::EMPTY`].
pub(super) struct ResizableRing<R> {
    front: R,
    back: R,
    limit: u32,
}

impl<R: Store> ResizableRing<R> {
    /// Made of an empty ring.
    pub(super) fn new(back: R) -> Self {
        Self {
            front: R::EMPTY,
            limit: back.limit(),
            back,
        }
    }

    /// How many entries are inside.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        // OVERFLOW: not more than `limit`.
        self.front.len() + self.back.len()
    }

    /// Returns true if there is no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if there is no room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// How many entries it takes.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Where the next entry goes; `None` when there is no room.
    #[inline]
    pub(super) fn room(&mut self) -> Option<&mut R> {
        if self.is_full() {
            None
        } else {
            Some(&mut self.back)
        }
    }

    /// Where the oldest entry is, if there is any.
    #[inline]
    pub(super) fn oldest(&mut self) -> &mut R {
        if self.front.len() != 0 {
            &mut self.front
        } else {
            &mut self.back
        }
    }

    /// Begins to replace the ring; gives the new one back when more entries are there than it
    /// takes. The caller does one at a time.
    pub(super) fn begin(&mut self, new: R) -> Result<(), R> {
        if self.len() > new.limit() {
            return Err(new);
        }
        // INVARIANT: All entries are in `back`, and not more than the new limit.
        self.limit = self.limit.min(new.limit());
        self.front = new;
        Ok(())
    }

    /// Goes on for a bounded time; at the end the old ring is returned, to be dropped where that
    /// may sleep.
    pub(super) fn step(&mut self) -> Option<R> {
        self.front.shift(&mut self.back, MOVED_AT_ONCE);
        if self.back.len() != 0 {
            return None;
        }
        // INVARIANT: All entries are in `front`, which becomes the only ring.
        self.limit = self.front.limit();
        let new = core::mem::replace(&mut self.front, R::EMPTY);
        Some(core::mem::replace(&mut self.back, new))
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_ring)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_in_the_order_they_came() -> Result {
        let mut ring = Ring::new(3, 0u32)?;
        for round in 0..10 {
            assert!(ring.push(round * 2).is_ok());
            assert!(ring.push(round * 2 + 1).is_ok());
            assert!(ring.pop() == Some(round * 2));
            assert!(ring.pop() == Some(round * 2 + 1));
        }
        assert!(ring.pop().is_none());
        Ok(())
    }

    #[test]
    fn the_limit_is_the_one_asked_for_and_not_the_rounded_size() -> Result {
        for limit in [1, 2, 3, 5, 8] {
            let mut ring = Ring::new(limit, 0u32)?;
            for i in 0..limit {
                assert!(ring.push(i).is_ok());
            }
            assert!(ring.is_full());
            assert!(ring.push(99) == Err(99));
            assert!(ring.len() == limit);
        }
        Ok(())
    }

    #[test]
    fn numbers_name_entries_only_while_they_are_inside() -> Result {
        let mut ring = Ring::new(2, 0u32)?;
        let first = ring.push(7);
        assert!(first.is_ok_and(|seq| ring.get_mut(seq).is_some_and(|v| *v == 7)));
        assert!(ring.pop() == Some(7));
        assert!(first.is_ok_and(|seq| ring.get_mut(seq).is_none()));
        Ok(())
    }

    #[test]
    fn numbers_wrap_around_without_a_gap() -> Result {
        let mut ring = Ring::new(4, 0u32)?;
        ring.head = u32::MAX - 1;
        ring.tail = u32::MAX - 1;
        for i in 0..4 {
            assert!(ring.push(i).is_ok());
        }
        assert!(ring.is_full() && ring.tail() == 2);
        for i in 0..4 {
            assert!(ring.pop() == Some(i));
        }
        assert!(ring.is_empty());
        Ok(())
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Ring::new(u32::MAX, 0u8).is_err());
    }

    /// Pushes the numbers from `from` on; how many were taken.
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
    fn an_elastic_ring_keeps_order_while_entries_come_and_go_between_the_steps() -> Result {
        let old = 3 * MOVED_AT_ONCE;
        for new in [old + 1, 10 * MOVED_AT_ONCE] {
            let mut ring = ResizableRing::new(Ring::new(old, 0u32)?);
            assert!(fill(&mut ring, 0) == old && ring.is_full());
            assert!(ring.begin(Ring::new(new, 0)?).is_ok());
            let (mut next, mut last, mut steps) = (0, old, 0);
            while ring.step().is_none() {
                // The old depth holds until the end.
                assert!(ring.limit() == old && ring.is_full());
                assert!(leave(&mut ring, next, next + 5));
                next += 5;
                assert!(fill(&mut ring, last) == 5);
                last += 5;
                steps += 1;
            }
            assert!(steps == 3 && ring.limit() == new);
            assert!(ring.len() == old && fill(&mut ring, last) == new - old);
            assert!(leave(&mut ring, next, next + new) && ring.is_empty());
        }
        Ok(())
    }

    #[test]
    fn an_elastic_ring_shrinks_to_what_is_inside_and_no_further() -> Result {
        let mut ring = ResizableRing::new(Ring::new(8, 0u32)?);
        assert!(fill(&mut ring, 0) == 8 && leave(&mut ring, 0, 3));
        let refused = ring.begin(Ring::new(4, 0)?).is_err();
        assert!(refused && ring.limit() == 8 && ring.len() == 5);
        assert!(ring.begin(Ring::new(5, 0)?).is_ok());
        // From the beginning on, not only at the end.
        assert!(ring.is_full() && ring.room().is_none());
        assert!(ring
            .step()
            .is_some_and(|old| old.limit() == 8 && old.is_empty()));
        assert!(ring.is_full() && ring.limit() == 5);
        assert!(leave(&mut ring, 3, 8) && fill(&mut ring, 8) == 5);
        Ok(())
    }
}
