// SPDX-License-Identifier: GPL-2.0

//! [`Ring`]: a bounded queue with free-running indices. All queues of the engine use it, queues of
//! requests inside of [`super::requests`].

use kernel::{
    alloc::Flags as Gfp,
    prelude::*, //
};

/// A bounded first-in, first-out queue.
///
/// Entries have a sequence number that counts on without end (modulo 2^32), so a number names one
/// entry as long as the entry is in the ring. Only [`Ring::new`] allocates.
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
    /// A ring that takes no entry and owns no memory.
    pub(crate) const EMPTY: Self = Self {
        slots: KVVec::new(),
        limit: 0,
        head: 0,
        tail: 0,
    };

    /// An empty ring for `limit` entries; `blank` fills the places before their first use.
    ///
    /// May sleep; `gfp` selects the account that is charged. `EINVAL` for more than 2^30 entries.
    pub(crate) fn new(limit: u32, blank: T, gfp: Gfp) -> Result<Self> {
        let places = limit.max(1).checked_next_power_of_two().ok_or(EINVAL)?;
        if places > 1 << 30 {
            return Err(EINVAL);
        }
        Ok(Self {
            // CAST: widening.
            slots: KVVec::from_elem(blank, places as usize, gfp)?,
            limit,
            ..Self::EMPTY
        })
    }

    /// The number of entries in the ring.
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

    /// The most entries that the ring takes.
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

    /// The index of entry `seq` in an array of one place per slot.
    pub(crate) fn index(&self, seq: u32) -> usize {
        // CAST: widening.
        seq as usize & self.slots.len().wrapping_sub(1)
    }

    /// The number of slots, for arrays that go with the ring.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// Appends an entry and returns its number; gives the entry back when the ring is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) -> Result<u32, T> {
        if self.is_full() {
            return Err(entry);
        }
        let seq = self.tail;
        let index = self.index(seq);
        let Some(slot) = self.slots.get_mut(index) else {
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
        let index = self.index(seq);
        self.slots.get_mut(index)
    }

    /// The oldest entry.
    pub(crate) fn front(&mut self) -> Option<&mut T> {
        self.get_mut(self.head)
    }

    /// Removes the oldest entry, if there is one.
    #[inline]
    pub(crate) fn leave(&mut self) {
        if !self.is_empty() {
            // INVARIANT: there was an entry, so `head` does not pass `tail`.
            self.head = self.head.wrapping_add(1);
        }
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        // INVARIANT: the ring is empty.
        self.head = self.tail;
    }

    /// Removes the oldest entry and returns it.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let entry = *self.front()?;
        self.leave();
        Some(entry)
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_ring)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    #[test]
    fn entries_leave_in_the_order_they_came() -> Result {
        let mut ring = Ring::new(3, 0u32, GFP_KERNEL)?;
        for round in cases(0..10) {
            assert!(ring.push(round * 2).is_ok());
            assert!(ring.push(round * 2 + 1).is_ok());
            kunit_assert_eq!(ring.pop(), Some(round * 2));
            kunit_assert_eq!(ring.pop(), Some(round * 2 + 1));
        }
        assert!(ring.pop().is_none());
        Ok(())
    }

    #[test]
    fn the_limit_is_the_one_asked_for_and_not_the_rounded_size() -> Result {
        for limit in cases([1, 2, 3, 5, 8]) {
            let mut ring = Ring::new(limit, 0u32, GFP_KERNEL)?;
            for i in cases(0..limit) {
                assert!(ring.push(i).is_ok());
            }
            assert!(ring.is_full());
            kunit_assert_eq!(ring.push(99), Err(99));
            kunit_assert_eq!(ring.len(), limit);
        }
        Ok(())
    }

    #[test]
    fn numbers_name_entries_only_while_they_are_inside() -> Result {
        let mut ring = Ring::new(2, 0u32, GFP_KERNEL)?;
        let first = ring.push(7);
        assert!(first.is_ok_and(|seq| ring.get_mut(seq).is_some_and(|v| *v == 7)));
        kunit_assert_eq!(ring.pop(), Some(7));
        assert!(first.is_ok_and(|seq| ring.get_mut(seq).is_none()));
        Ok(())
    }

    #[test]
    fn numbers_wrap_around_without_a_gap() -> Result {
        let mut ring = Ring::new(4, 0u32, GFP_KERNEL)?;
        ring.head = u32::MAX - 1;
        ring.tail = u32::MAX - 1;
        for i in cases(0..4) {
            assert!(ring.push(i).is_ok());
        }
        assert!(ring.is_full());
        kunit_assert_eq!(ring.tail(), 2);
        for i in cases(0..4) {
            kunit_assert_eq!(ring.pop(), Some(i));
        }
        assert!(ring.is_empty());
        Ok(())
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Ring::new(u32::MAX, 0u8, GFP_KERNEL).is_err());
    }
}
