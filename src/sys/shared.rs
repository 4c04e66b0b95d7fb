// SPDX-License-Identifier: GPL-2.0

//! Queues that a program shares with the kernel: the program maps their memory, and reads and
//! writes it at any time, without a call.
//!
//! The layout is that of rdmavt, which libhfi1verbs knows: the position of the next entry, the
//! position of the oldest entry, both as numbers of places, then the places, one more than the most
//! entries.
//!
//! The kernel trusts no word of that memory. Each side has one of the two positions; the kernel's
//! own is kept here, and only written there. A program that spoils its memory loses, repeats or
//! invents entries of that queue alone.
//!
//! Context: any, except for constructors; the owner of a queue locks it.
//!
//! C headers: [`include/uapi/rdma/rvt-abi.h`](srctree/include/uapi/rdma/rvt-abi.h),
//! [`include/uapi/rdma/ib_user_verbs.h`](srctree/include/uapi/rdma/ib_user_verbs.h)

use kernel::{
    alloc::{
        flags::__GFP_ZERO,
        Flags as Gfp, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        Arc, //
    }, //
};

use super::sge::{
    Elements,
    Posted,
    Sge, //
};
use crate::{
    bindings,
    rdma::values::token::Token, //
};

const WORD: usize = size_of::<u32>();

/// The position of the next entry.
const HEAD: usize = 0;
/// The position of the oldest entry.
const TAIL: usize = 1;
/// The first place.
const PLACES: usize = 2;

/// Whole pages that a program maps, zeroed at first.
pub(crate) struct SharedMemory(VVec<Atomic<u32>>);

impl SharedMemory {
    /// Whole pages of at least `bytes` bytes. May sleep; `gfp` selects the account that is charged.
    pub(crate) fn new(bytes: usize, gfp: Gfp) -> Result<Self> {
        let bytes = bytes.checked_next_multiple_of(PAGE_SIZE).ok_or(EINVAL)?;
        let mut words = VVec::with_capacity(bytes / WORD, gfp | __GFP_ZERO)?;
        // SAFETY: There is room for that many words, and all are zero, which is a valid number.
        unsafe { words.inc_len(bytes / WORD) };
        Ok(Self(words))
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len() * WORD
    }

    /// The address of the first page; all pages are of `vmalloc()`.
    pub(crate) fn as_ptr(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    fn word(&self, at: usize) -> Option<&Atomic<u32>> {
        self.0.get(at)
    }

    fn read(&self, at: usize) -> u32 {
        self.word(at).map_or(0, |word| word.load(Relaxed))
    }

    fn write(&self, at: usize, value: u32) {
        if let Some(word) = self.word(at) {
            word.store(value, Relaxed);
        }
    }

    /// A position that the program keeps; `None` if it is not below `places`.
    fn position(&self, which: usize, places: u32) -> Option<u32> {
        let position = self.word(which)?.load(Acquire);
        (position < places).then_some(position)
    }

    /// Publishes a position to the program, after all earlier reads and writes.
    fn publish(&self, which: usize, position: u32) {
        if let Some(word) = self.word(which) {
            word.store(position, Release);
        }
    }
}

/// The number of places from one position to another.
fn distance(from: u32, to: u32, places: u32) -> u32 {
    match to.checked_sub(from) {
        Some(distance) => distance,
        // OVERFLOW: both are below the number of places.
        None => places - from + to,
    }
}

/// The next position.
fn after(position: u32, places: u32) -> u32 {
    // OVERFLOW: below the number of places.
    match position + 1 {
        next if next < places => next,
        _ => 0,
    }
}

/// The number of places for `limit` entries.
fn places_for(limit: u32) -> Result<u32> {
    limit.checked_add(1).ok_or(EINVAL)
}

/// The number of bytes for `places` places of `words` words each.
fn bytes_for(places: u32, words: usize) -> Result<usize> {
    // CAST: widening.
    let all = words.checked_mul(places as usize).ok_or(EINVAL)?;
    let all = all.checked_add(PLACES).ok_or(EINVAL)?;
    all.checked_mul(WORD).ok_or(EINVAL)
}

/// The words of a completion: those of `struct ib_uverbs_wc`.
pub(crate) type CompletionWords = [u32; COMPLETION_WORDS];

const COMPLETION_WORDS: usize = size_of::<bindings::ib_uverbs_wc>() / WORD;

const _: () = assert!(COMPLETION_WORDS * WORD == 48);

/// A queue of completions that a program takes without a call.
///
/// # Invariants
///
/// `head < places`.
pub(crate) struct SharedCompletions {
    memory: Arc<SharedMemory>,
    places: u32,
    head: u32,
}

impl SharedCompletions {
    /// The number of bytes that a queue of `limit` entries takes.
    pub(crate) fn bytes(limit: u32) -> Result<usize> {
        bytes_for(places_for(limit)?, COMPLETION_WORDS)
    }

    /// An empty queue for `limit` entries in zeroed memory of at least `bytes(limit)` bytes.
    pub(crate) fn new(memory: Arc<SharedMemory>, limit: u32) -> Result<Self> {
        if memory.len() < Self::bytes(limit)? {
            return Err(EINVAL);
        }
        // INVARIANT: there is a place.
        Ok(Self {
            memory,
            places: places_for(limit)?,
            head: 0,
        })
    }

    /// The most entries of the queue.
    pub(crate) fn limit(&self) -> u32 {
        // OVERFLOW: there is a place.
        self.places - 1
    }

    /// The number of entries; the limit if the program's position is not valid.
    pub(crate) fn len(&self) -> u32 {
        match self.memory.position(TAIL, self.places) {
            Some(tail) => distance(tail, self.head, self.places),
            None => self.limit(),
        }
    }

    /// The first word of a place.
    fn place(position: u32) -> usize {
        // CAST: widening. OVERFLOW: less than the number of words, or of no place.
        PLACES + position as usize * COMPLETION_WORDS
    }

    /// Appends an entry; returns false if there is no room for it.
    pub(crate) fn push(&mut self, entry: &CompletionWords) -> bool {
        if self.len() >= self.limit() {
            return false;
        }
        let place = Self::place(self.head);
        for (at, word) in entry.iter().enumerate() {
            self.memory.write(place + at, *word);
        }
        // INVARIANT: `after` stays below the number of places.
        self.head = after(self.head, self.places);
        self.memory.publish(HEAD, self.head);
        true
    }

    /// Appends up to `most` entries to `to`, from the position `from` on, or from the oldest entry.
    /// Returns the next position; `None` when all were copied.
    ///
    /// `Err(())` if `to` has no room.
    pub(crate) fn copy_to(
        &self,
        to: &mut Self,
        from: Option<u32>,
        most: usize,
    ) -> Result<Option<u32>, ()> {
        let oldest = || self.memory.position(TAIL, self.places);
        let Some(mut position) = from.or_else(oldest) else {
            return Ok(None);
        };
        for _ in 0..most {
            if position == self.head {
                return Ok(None);
            }
            let place = Self::place(position);
            let entry = core::array::from_fn(|at| self.memory.read(place + at));
            if !to.push(&entry) {
                return Err(());
            }
            position = after(position, self.places);
        }
        Ok(Some(position))
    }
}

/// The words of a receive before its elements: its context, and the number of elements.
const RECEIVE_WORDS: usize = size_of::<bindings::rvt_rwqe>() / WORD;
/// The words of an element.
const SGE_WORDS: usize = size_of::<bindings::ib_sge>() / WORD;

const _: () = assert!(RECEIVE_WORDS == 4 && SGE_WORDS == 4);

/// The most receives that one [`SharedReceives::take`] loses.
const LOST_AT_ONCE: usize = 16;

/// A queue of receives that a program posts without a call.
///
/// # Invariants
///
/// `tail < places`.
pub(crate) struct SharedReceives {
    memory: Arc<SharedMemory>,
    places: u32,
    /// The words of a place.
    words: usize,
    tail: u32,
    /// The number of entries that may still be taken before the next look.
    rest: u32,
    /// Room for the elements of one receive.
    sges: KVec<Sge>,
}

impl SharedReceives {
    fn words(width: u32) -> Result<usize> {
        // CAST: widening.
        let sges = SGE_WORDS.checked_mul(width as usize).ok_or(EINVAL)?;
        sges.checked_add(RECEIVE_WORDS).ok_or(EINVAL)
    }

    /// The number of bytes that a queue of `limit` receives of up to `width` elements takes.
    pub(crate) fn bytes(limit: u32, width: u32) -> Result<usize> {
        bytes_for(places_for(limit)?, Self::words(width)?)
    }

    /// A queue for `limit` receives of up to `width` elements in zeroed memory of at least
    /// `bytes(limit, width)` bytes. May sleep.
    pub(crate) fn new(memory: Arc<SharedMemory>, limit: u32, width: u32) -> Result<Self> {
        if memory.len() < Self::bytes(limit, width)? {
            return Err(EINVAL);
        }
        // INVARIANT: there is a place.
        Ok(Self {
            memory,
            places: places_for(limit)?,
            words: Self::words(width)?,
            tail: 0,
            rest: 0,
            // CAST: widening.
            sges: KVec::with_capacity(width as usize, GFP_KERNEL)?,
        })
    }

    /// The number of receives; zero if the program's position is not valid.
    pub(crate) fn len(&self) -> u32 {
        let head = self.memory.position(HEAD, self.places);
        head.map_or(0, |head| distance(self.tail, head, self.places))
    }

    /// The most receives of the queue.
    pub(crate) fn limit(&self) -> u32 {
        // OVERFLOW: there is a place.
        self.places - 1
    }

    /// Looks for receives, of which up to `most` may be taken then, or as many as before if that is
    /// more. Returns true if there are any.
    pub(crate) fn look(&mut self, most: u32) -> bool {
        self.rest = self.rest.max(most).min(self.len());
        self.rest > 0
    }

    /// Returns true if a receive was seen and not taken.
    pub(crate) fn has_seen(&self) -> bool {
        self.rest > 0
    }

    /// The first word of a place.
    fn place(&self, position: u32) -> usize {
        // CAST: widening. OVERFLOW: less than the number of words, or of no place.
        PLACES + position as usize * self.words
    }

    /// Takes the oldest receive of those that were there at the last [look](Self::look). A receive
    /// with more elements than the width, or with a key that programs do not have, is lost; after
    /// `LOST_AT_ONCE` of them this returns none.
    pub(crate) fn take(&mut self) -> Option<Posted<impl Elements + '_>> {
        for _ in 0..LOST_AT_ONCE {
            self.rest = self.rest.checked_sub(1)?;
            let place = self.place(self.tail);
            let context = self.read(place);
            // INVARIANT: `after` stays below the number of places.
            self.tail = after(self.tail, self.places);
            self.memory.publish(TAIL, self.tail);
            if let Some(context) = context {
                let sges = self.sges.iter().copied();
                // SAFETY: `read` refuses elements under `LOCAL_MEMORY`, and a receive has no inline
                // data.
                return Some(unsafe { Posted::new(context, sges) });
            }
        }
        None
    }

    /// Reads the elements of the receive in that place, each word once, and returns its context.
    fn read(&mut self, place: usize) -> Option<u64> {
        let memory = &self.memory;
        let long = |at: usize| {
            let [low, high] = [memory.read(at), memory.read(at + 1)].map(u32::to_ne_bytes);
            let mut both = [0; 8];
            both[..4].copy_from_slice(&low);
            both[4..].copy_from_slice(&high);
            u64::from_ne_bytes(both)
        };
        // The number of elements is one byte, the first.
        let [count, ..] = memory.read(place + 2).to_ne_bytes();
        self.sges.clear();
        for sge in 0..usize::from(count) {
            let at = place + RECEIVE_WORDS + sge * SGE_WORDS;
            let (length, key) = (memory.read(at + 2), memory.read(at + 3));
            if key == Token::LOCAL_MEMORY.raw() {
                return None;
            }
            let sge = Sge::new(long(at), length, Token::from_raw(key));
            self.sges.push_within_capacity(sge).ok()?;
        }
        Some(long(place))
    }

    /// Removes all receives without a completion.
    pub(crate) fn forget(&mut self) {
        if let Some(head) = self.memory.position(HEAD, self.places) {
            // INVARIANT: `position` returns a position below the number of places.
            self.tail = head;
            self.memory.publish(TAIL, head);
        }
        self.rest = 0;
    }

    /// Copies the receive with `nth` receives before it to place `nth` of `to`, which is empty and
    /// of the same width.
    pub(crate) fn copy(&self, nth: u32, to: &mut Self) {
        // OVERFLOW: both are below the number of places.
        let from = match (self.places - self.tail).checked_sub(nth) {
            None | Some(0) => nth.saturating_sub(self.places - self.tail),
            Some(_) => self.tail + nth,
        };
        let (from, place) = (self.place(from), to.place(nth));
        for word in 0..self.words.min(to.words) {
            to.memory.write(place + word, self.memory.read(from + word));
        }
    }

    /// Marks the first `count` places as filled by the program, which has not seen the queue yet.
    pub(crate) fn put(&mut self, count: u32) {
        self.memory.publish(HEAD, count);
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_shared)]
pub(crate) mod tests {
    use super::*;

    use crate::{
        kunit::harness::cases,
        sys::requests::RequestQueue, //
    };

    /// Shared memory as a program sees it, with the program's accesses.
    pub(crate) struct Program(pub(crate) Arc<SharedMemory>);

    /// Memory of `bytes` bytes, for the queue and for the program.
    fn mapped(bytes: usize) -> Result<(Arc<SharedMemory>, Program)> {
        let memory = Arc::new(SharedMemory::new(bytes, GFP_KERNEL)?, GFP_KERNEL)?;
        Ok((memory.clone(), Program(memory)))
    }

    /// A queue of completions, and its program.
    pub(crate) fn completions(limit: u32) -> Result<(SharedCompletions, Program)> {
        let (mapped, program) = mapped(SharedCompletions::bytes(limit)?)?;
        Ok((SharedCompletions::new(mapped, limit)?, program))
    }

    /// A queue of receives, and its program.
    pub(crate) fn receives(limit: u32, width: u32) -> Result<(SharedReceives, Program)> {
        let (mapped, program) = mapped(SharedReceives::bytes(limit, width)?)?;
        Ok((SharedReceives::new(mapped, limit, width)?, program))
    }

    impl Program {
        /// Writes a position.
        pub(crate) fn set(&self, which: usize, position: u32) {
            self.0.publish(which, position);
        }

        fn get(&self, which: usize) -> u32 {
            self.0.read(which)
        }

        /// Takes the oldest completion of a queue of `limit`, as libhfi1verbs does; returns its
        /// first word.
        pub(crate) fn poll(&self, limit: u32) -> Option<u32> {
            let tail = self.get(TAIL);
            if tail == self.get(HEAD) {
                return None;
            }
            let first = self.0.read(SharedCompletions::place(tail));
            self.set(TAIL, after(tail, limit + 1));
            Some(first)
        }

        /// Posts a receive to a queue of `limit`, as libhfi1verbs does; false if there is no room.
        pub(crate) fn post(&self, limit: u32, width: u32, context: u32, sges: &[Sge]) -> bool {
            let head = self.get(HEAD);
            let next = after(head, limit + 1);
            if next == self.get(TAIL) {
                return false;
            }
            // CAST: small numbers of a test.
            let words = RECEIVE_WORDS + width as usize * SGE_WORDS;
            let place = PLACES + head as usize * words;
            self.0.write(place, context);
            self.0
                .write(place + 2, u32::from_ne_bytes([sges.len() as u8, 0, 0, 0]));
            for (at, sge) in sges.iter().take(width as usize).enumerate() {
                let at = place + RECEIVE_WORDS + at * SGE_WORDS;
                let addr = sge.addr().to_ne_bytes();
                let word = |from| u32::from_ne_bytes(core::array::from_fn(|n| addr[from + n]));
                self.0.write(at, word(0));
                self.0.write(at + 1, word(4));
                self.0.write(at + 2, sge.len());
                self.0.write(at + 3, sge.token().raw());
            }
            self.set(HEAD, next);
            true
        }
    }

    const fn entry(first: u32) -> CompletionWords {
        let mut entry = [7; COMPLETION_WORDS];
        entry[0] = first;
        entry
    }

    #[test]
    fn completions_arrive_in_order_and_no_more_than_there_is_room_for() -> Result {
        for limit in cases([1, 2, 3, 7]) {
            let (mut ring, program) = completions(limit)?;
            for round in cases(0..5) {
                for n in cases(0..limit) {
                    kunit_assert_eq!(ring.len(), n);
                    assert!(ring.push(&entry(round * 100 + n)));
                }
                assert!(!ring.push(&entry(9)));
                kunit_assert_eq!(ring.len(), limit);
                for n in cases(0..limit) {
                    kunit_assert_eq!(program.poll(limit), Some(round * 100 + n));
                    kunit_assert_eq!(ring.len(), limit - n - 1);
                }
                assert!(program.poll(limit).is_none());
                // The next round begins at another position.
                assert!(ring.push(&entry(5)));
                kunit_assert_eq!(program.poll(limit), Some(5));
            }
        }
        Ok(())
    }

    #[test]
    fn a_position_that_is_none_counts_as_no_room_and_no_receive() -> Result {
        let (mut ring, program) = completions(3)?;
        assert!(ring.push(&entry(1)));
        for bad in cases([4, 5, u32::MAX]) {
            program.set(TAIL, bad);
            kunit_assert_eq!(ring.len(), 3);
            assert!(!ring.push(&entry(2)));
        }
        program.set(TAIL, 0);
        // The program's writes to the kernel's own position have no effect.
        program.set(HEAD, 77);
        kunit_assert_eq!(ring.len(), 1);
        assert!(ring.push(&entry(2)));
        kunit_assert_eq!(program.get(HEAD), 2);

        let (mut ring, program) = receives(3, 1)?;
        assert!(program.post(3, 1, 8, &[]));
        for bad in cases([4, u32::MAX]) {
            program.set(HEAD, bad);
            kunit_assert_eq!(ring.len(), 0);
            assert!(!ring.look(9));
            assert!(ring.take().is_none());
        }
        program.set(HEAD, 1);
        program.set(TAIL, 3);
        assert!(ring.look(9));
        assert!(ring.take().is_some_and(|posted| posted.context() == 8));
        kunit_assert_eq!(program.get(TAIL), 1);
        Ok(())
    }

    #[test]
    fn receives_are_taken_as_they_were_posted_and_only_those_that_were_seen() -> Result {
        let (mut ring, program) = receives(4, 2)?;
        let sges = [
            Sge::new(0x1234_5678_9abc, 10, Token::from_raw(3)),
            Sge::new(0x2000, 20, Token::from_raw(4)),
        ];
        for round in cases(0..7) {
            for n in cases(0..4) {
                assert!(program.post(4, 2, round * 10 + n, &sges));
            }
            assert!(!program.post(4, 2, 99, &sges));
            kunit_assert_eq!(ring.len(), 4);
            assert!(ring.take().is_none());
            assert!(ring.look(3));
            for n in cases(0..3) {
                let posted = ring.take().ok_or(EINVAL)?;
                kunit_assert_eq!(posted.context(), u64::from(round * 10 + n));
                for (seen, sge) in cases(posted.sges().zip(sges)) {
                    kunit_assert_eq!((seen.addr(), seen.len()), (sge.addr(), sge.len()));
                    kunit_assert_eq!(seen.token(), sge.token());
                }
            }
            assert!(ring.take().is_none());
            assert!(ring.look(9));
            assert!(ring.take().is_some());
            assert!(ring.take().is_none());
            kunit_assert_eq!(ring.len(), 0);
        }
        Ok(())
    }

    #[test]
    fn a_receive_that_programs_must_not_post_is_lost_alone() -> Result {
        let (mut ring, program) = receives(4, 1)?;
        let good = Sge::new(0x1000, 10, Token::from_raw(3));
        assert!(program.post(4, 1, 1, &[Sge::new(0x1000, 10, Token::LOCAL_MEMORY)]));
        assert!(program.post(4, 1, 2, &[good, good]));
        assert!(program.post(4, 1, 3, &[good]));
        assert!(ring.look(9));
        assert!(ring.take().is_some_and(|posted| posted.context() == 3));
        assert!(ring.take().is_none());
        // Many lost receives end the call.
        let (mut ring, program) = receives(40, 1)?;
        for context in cases(0..20) {
            assert!(program.post(40, 1, context, &[good, good]));
        }
        assert!(program.post(40, 1, 20, &[good]));
        assert!(ring.look(40));
        assert!(ring.take().is_none());
        kunit_assert_eq!(ring.len(), 5);
        // A look for fewer receives does not lower the number that may be taken.
        assert!(ring.look(1));
        assert!(ring.has_seen());
        assert!(ring.take().is_some_and(|posted| posted.context() == 20));
        assert!(!ring.has_seen());
        Ok(())
    }

    #[test]
    fn what_is_copied_to_a_queue_of_another_size_keeps_its_order() -> Result {
        let (mut old, program) = completions(5)?;
        // The entries lie on both sides of the end of the places.
        for n in cases(0..4) {
            assert!(old.push(&entry(n)));
            kunit_assert_eq!(program.poll(5), Some(n));
        }
        for n in cases(10..14) {
            assert!(old.push(&entry(n)));
        }
        let (mut small, _) = completions(3)?;
        kunit_assert_eq!(old.copy_to(&mut small, None, 9), Err(()));
        let (mut new, program) = completions(4)?;
        let next = old.copy_to(&mut new, None, 3);
        assert!(next.is_ok_and(|next| next.is_some()));
        assert!(old.push(&entry(14)));
        let next = next.map_err(|()| EINVAL)?;
        // The entry that came in between has no room there.
        kunit_assert_eq!(old.copy_to(&mut new, next, 9), Err(()));
        kunit_assert_eq!(new.len(), 4);
        for n in cases(10..14) {
            kunit_assert_eq!(program.poll(4), Some(n));
        }
        Ok(())
    }

    #[test]
    fn receives_move_to_a_queue_of_another_size_in_their_order() -> Result {
        let (mut old, program) = receives(3, 1)?;
        for n in cases(0..2) {
            assert!(program.post(3, 1, n, &[]));
            assert!(old.look(1));
            assert!(old.take().is_some());
        }
        for n in cases(10..13) {
            assert!(program.post(3, 1, n, &[Sge::new(n.into(), n, Token::from_raw(n))]));
        }
        let (mut new, program) = receives(5, 1)?;
        for nth in 0..3 {
            old.copy(nth, &mut new);
        }
        kunit_assert_eq!(new.len(), 0);
        new.put(3);
        kunit_assert_eq!(new.len(), 3);
        assert!(program.post(5, 1, 13, &[]));
        assert!(new.look(9));
        for context in cases(10..14u64) {
            assert!(new.take().is_some_and(|posted| posted.context() == context));
        }
        new.forget();
        assert!(program.post(5, 1, 14, &[]));
        kunit_assert_eq!(new.len(), 1);
        new.forget();
        kunit_assert_eq!(new.len(), 0);
        kunit_assert_eq!(program.get(TAIL), program.get(HEAD));
        Ok(())
    }

    #[test]
    fn memory_is_zeroed_whole_pages_and_absurd_sizes_are_refused() -> Result {
        let memory = SharedMemory::new(PAGE_SIZE + 1, GFP_KERNEL)?;
        kunit_assert_eq!(memory.len(), 2 * PAGE_SIZE);
        assert!((0..memory.len() / WORD).all(|at| memory.read(at) == 0));
        assert!(SharedCompletions::bytes(u32::MAX).is_err());
        assert!(SharedReceives::bytes(u32::MAX, 1).is_err());
        // Memory that is too small for the queue.
        let (mapped, _) = mapped(1)?;
        assert!(SharedCompletions::new(mapped, 1000).is_err());
        let mut queue = RequestQueue::new(1, 1, (), GFP_KERNEL)?;
        let (mut ring, program) = receives(1, 1)?;
        assert!(program.post(1, 1, 5, &[]));
        assert!(ring.look(1));
        let posted = ring.take().ok_or(EINVAL)?;
        assert!(queue.post(posted, ()));
        kunit_assert_eq!(queue.len(), 1);
        Ok(())
    }
}
