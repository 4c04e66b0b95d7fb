// SPDX-License-Identifier: GPL-2.0

//! [`RequestQueue`]: the requests of a work queue with their lists, in the order of their posting.
//!
//! A consumer lends memory with a request, until it learns that the request has ended. This module
//! is the only way from the elements to the memory, and the only source of a [`Context`], which a
//! completion needs. A request takes one of these ways:
//!
//! ```text
//! Posted --post--> RequestQueue --start--> SendList --give_back--> RequestQueue --leave--> Context
//!    |                  \------------------------ leave ----------------------------------/
//!    |                  \--take--> ReceiveList --------------------end-------------------> Context
//!    \--pass (the queue is empty, and the request had no use for its elements)-----------> Context
//! ```
//!
//! - Memory is accessed by borrowing from a list. A list cannot be copied, so it is in one place.
//! - A request leaves its queue when its elements were given back and all requests before it have
//!   left; only then is there a [`Context`], which names the request in a completion. Elements that
//!   were handed out are not in the queue any more.
//! - A receive leaves with its elements. Its context is returned when the elements are given up.
//!
//! The owner of a queue ensures the rest: each context is used once, and a queue is empty, with no
//! receive of it taken, before the call that destroys it returns.
//!
//! Context: any, except for constructors; owners lock their queues and lists. Other calls do not
//! sleep.

use core::ops::Deref;

use kernel::{
    alloc::Flags as Gfp,
    prelude::*,
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    }, //
};

use super::{
    ring::Ring,
    sge::{
        Context,
        Elements,
        Posted,
        Sge, //
    },
    span::Run, //
};
use crate::rdma::values::token::Token;

#[cfg(ndk_kunit)]
pub(crate) use super::tests::memory::{
    test_context,
    test_list, //
};

/// The elements of one request.
///
/// # Invariants
///
/// All memory that an element names under [`Token::LOCAL_MEMORY`] may be read and written as long
/// as the element is in the list.
pub(crate) struct List(KVec<Sge>);

impl List {
    /// Room for `most` elements. May sleep.
    fn new(most: u32) -> Result<Self> {
        // CAST: widening.
        Ok(Self(KVec::with_capacity(most as usize, GFP_KERNEL)?))
    }

    /// The number of elements.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Element `at`, as numbers.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<Sge> {
        self.0.get(at).copied()
    }

    /// The elements, as numbers.
    #[inline]
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Sge> + '_ {
        self.0.iter().copied()
    }

    /// The memory of element `at`, if its addresses are the kernel's; `None` for a range that
    /// wraps, too.
    #[inline]
    pub(crate) fn memory(&self, at: usize) -> Option<Run<'_>> {
        let sge = self
            .0
            .get(at)
            .filter(|sge| sge.token() == Token::LOCAL_MEMORY)?;
        // SAFETY: By the type invariant the memory may be used as long as the element is in the
        // list, which it leaves only by a mutable reference; the result borrows the list.
        unsafe { Run::new(sge.addr(), sge.len().into()) }
    }

    /// Replaces the elements of the list by `sges`; the list was made with room for the most that
    /// there can be.
    ///
    /// # Safety
    ///
    /// The promise for the memory of `sges` moves to the list: no other code uses memory by these
    /// elements as long as they are in the list.
    #[inline]
    unsafe fn fill(&mut self, sges: &[Sge]) {
        self.0.clear();
        for sge in sges {
            // INVARIANT: by the safety requirements.
            let _ = self.0.push_within_capacity(*sge);
        }
    }
}

/// The elements of a started request, until they are given back; empty without a request.
///
/// # Invariants
///
/// The request that `of` names, if any, is out.
pub(crate) struct SendList {
    list: List,
    /// The number of the queue, and that of the request in it.
    of: Option<(u64, u32)>,
}

impl SendList {
    /// Room for the elements of one request, at most `most`. May sleep.
    pub(crate) fn new(most: u32) -> Result<Self> {
        Ok(Self {
            list: List::new(most)?,
            of: None,
        })
    }

    /// Returns true if the list has the elements of a request.
    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        self.of.is_some()
    }
}

impl Deref for SendList {
    type Target = List;

    #[inline]
    fn deref(&self) -> &List {
        &self.list
    }
}

/// The elements of a receive that was taken, until it ends; empty without a receive.
pub(crate) struct ReceiveList {
    list: List,
    context: Option<u64>,
}

impl ReceiveList {
    /// Room for the elements of one receive, at most `most`. May sleep.
    pub(crate) fn new(most: u32) -> Result<Self> {
        Ok(Self {
            list: List::new(most)?,
            context: None,
        })
    }

    /// The consumer's context of the receive, if there is one.
    #[inline]
    pub(crate) fn context(&self) -> Option<u64> {
        self.context
    }

    /// Ends the receive, if there is one, and forgets its elements.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<Context> {
        self.list.0.clear();
        self.context.take().map(Context::of_ended)
    }
}

impl Deref for ReceiveList {
    type Target = List;

    #[inline]
    fn deref(&self) -> &List {
        &self.list
    }
}

/// A request in a queue, with the data that the owner of the queue keeps for the request.
#[derive(Clone, Copy)]
struct QueuedRequest<T> {
    data: T,
    context: u64,
    /// The number of elements at its place.
    count: u32,
    /// The elements are in a [`SendList`], or were lost with one.
    is_out: bool,
}

/// A queue of requests with up to `width` elements each.
///
/// # Invariants
///
/// The invariant of [`List`] holds for the first `count` elements at the place of each request in
/// the ring. A request that is out has none there: its elements are in the one list that has the
/// numbers of the queue and of the request, or in none.
pub(crate) struct RequestQueue<T> {
    ring: Ring<QueuedRequest<T>>,
    /// `width` elements for each place of the ring.
    sges: KVVec<Sge>,
    width: usize,
    /// The number of requests that are out.
    out: u32,
    /// No other queue has this number, except for 0 of [`RequestQueue::EMPTY`].
    number: u64,
}

/// The number of the next queue.
static NEXT: Atomic<u64> = Atomic::new(1);

impl<T: Clone + Copy> RequestQueue<T> {
    /// A queue that takes no request and owns no memory.
    pub(crate) const EMPTY: Self = Self {
        ring: Ring::EMPTY,
        sges: KVVec::new(),
        width: 0,
        out: 0,
        // INVARIANT: no request of this queue is ever out.
        number: 0,
    };

    /// An empty queue for `limit` requests of up to `width` elements each; `blank` fills the places
    /// before their first use.
    ///
    /// May sleep; `gfp` selects the account that is charged. `EINVAL` for more than 2^30 requests.
    pub(crate) fn new(limit: u32, width: u32, blank: T, gfp: Gfp) -> Result<Self> {
        let slot = QueuedRequest {
            data: blank,
            context: 0,
            count: 0,
            is_out: false,
        };
        let ring = Ring::new(limit, slot, gfp)?;
        // CAST: widening.
        let width = width as usize;
        let sges = ring.places().checked_mul(width).ok_or(EINVAL)?;
        Ok(Self {
            ring,
            sges: KVVec::from_elem(Sge::EMPTY, sges, gfp)?,
            width,
            out: 0,
            // OVERFLOW: 2^64 queues.
            number: NEXT.fetch_add(1, Relaxed),
        })
    }

    /// The number of requests in the queue.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.ring.len()
    }

    /// Returns true if there is no request.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns true if there is no room.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.ring.is_full()
    }

    /// The most requests that the queue takes.
    pub(crate) fn limit(&self) -> u32 {
        self.ring.limit()
    }

    /// The most elements of a request.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The number of the oldest request.
    #[inline]
    pub(crate) fn head(&self) -> u32 {
        self.ring.head()
    }

    /// The number that the next request will get.
    #[inline]
    pub(crate) fn tail(&self) -> u32 {
        self.ring.tail()
    }

    /// The number of places, for arrays that go with the queue.
    pub(crate) fn places(&self) -> usize {
        self.ring.places()
    }

    /// The index of request `seq` in an array of one place per slot.
    #[inline]
    pub(crate) fn index(&self, seq: u32) -> usize {
        self.ring.index(seq)
    }

    /// The places for the elements of request `seq`.
    #[inline]
    fn places_of(&mut self, seq: u32) -> &mut [Sge] {
        let from = self.ring.index(seq) * self.width;
        let places = self.sges.get_mut(from..from + self.width);
        places.unwrap_or_default()
    }

    /// Appends a request; returns false when there is no room for it or for its elements.
    #[inline]
    pub(crate) fn post(&mut self, posted: Posted<impl Elements>, data: T) -> bool {
        let (context, sges) = (posted.context(), posted.sges());
        if sges.len() > self.width || self.ring.is_full() {
            return false;
        }
        let mut count = 0;
        let places = self.places_of(self.ring.tail());
        for (place, sge) in places.iter_mut().zip(sges) {
            *place = sge;
            count += 1;
        }
        // INVARIANT: `posted` is consumed, and its promise moves to this request.
        let slot = QueuedRequest {
            data,
            context,
            count,
            is_out: false,
        };
        self.ring.push(slot).is_ok()
    }

    /// The data of request `seq`, if it is in the queue.
    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u32) -> Option<&mut T> {
        self.ring.get_mut(seq).map(|slot| &mut slot.data)
    }

    /// The data of the oldest request.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<&mut T> {
        self.get_mut(self.ring.head())
    }

    /// The consumer's context of request `seq`.
    #[inline]
    pub(crate) fn context(&mut self, seq: u32) -> Option<u64> {
        self.ring.get_mut(seq).map(|slot| slot.context)
    }

    /// Returns the consumer's context, the number of elements and the data of the newest request.
    pub(crate) fn newest(&mut self) -> Option<(u64, u32, &T)> {
        let seq = self.ring.tail().wrapping_sub(1);
        let slot = self.ring.get_mut(seq)?;
        Some((slot.context, slot.count, &slot.data))
    }

    /// Moves the elements of request `seq` into `list`; the request stays. Returns false if the
    /// request is not there or is out, or if the list has not been given back.
    #[inline]
    pub(crate) fn start(&mut self, seq: u32, list: &mut SendList) -> bool {
        if list.of.is_some() {
            return false;
        }
        let Some(slot) = self.ring.get_mut(seq).filter(|slot| !slot.is_out) else {
            return false;
        };
        slot.is_out = true;
        self.out += 1;
        // CAST: widening.
        let count = core::mem::take(&mut slot.count) as usize;
        let places = self.places_of(seq).get(..count);
        // INVARIANT: the place of the request has no elements any more.
        // SAFETY: By the invariant the promise holds for the first `count` elements, and moves to
        // the list.
        unsafe { list.list.fill(places.unwrap_or_default()) };
        list.of = Some((self.number, seq));
        true
    }

    /// Takes back a started request and forgets its elements. A list of another queue is emptied,
    /// and its request does not leave that queue.
    #[inline]
    pub(crate) fn give_back(&mut self, list: &mut SendList) {
        list.list.0.clear();
        let Some((number, seq)) = list.of.take() else {
            return;
        };
        if number == self.number {
            if let Some(slot) = self.ring.get_mut(seq) {
                // INVARIANT: `list` was the list that had the elements.
                slot.is_out = false;
                self.out -= 1;
            }
        }
    }

    /// Ends a request that needs neither its elements nor a place in the queue; `None` if other
    /// requests are in the queue, which must leave first.
    #[inline]
    pub(crate) fn pass(&self, posted: Posted<impl Elements>) -> Option<Context> {
        self.is_empty().then(|| posted.end())
    }

    /// Removes the oldest request, if there is one and it is not out; no list has its elements.
    #[inline]
    pub(crate) fn leave(&mut self) -> Option<(Context, T)> {
        let slot = *self.ring.front().filter(|slot| !slot.is_out)?;
        self.ring.leave();
        Some((Context::of_ended(slot.context), slot.data))
    }

    /// Removes all requests without a completion; returns false, and removes none, while one is
    /// out. For a reset, after which the consumer has its memory back.
    pub(crate) fn forget(&mut self) -> bool {
        if self.out != 0 {
            return false;
        }
        // INVARIANT: no request is in the ring.
        self.ring.clear();
        true
    }

    /// Moves the oldest request into `list`; returns true if there was one. Not for requests that
    /// are started.
    #[inline]
    pub(crate) fn take(&mut self, list: &mut ReceiveList) -> bool {
        let seq = self.ring.head();
        let slot = match self.ring.front() {
            Some(slot) if !slot.is_out && list.context.is_none() => *slot,
            Some(_) | None => return false,
        };
        // CAST: widening.
        let places = self.places_of(seq).get(..slot.count as usize);
        // SAFETY: By the invariant the promise holds for the first `count` elements; the request
        // leaves the queue below, so the promise moves to the list.
        unsafe { list.list.fill(places.unwrap_or_default()) };
        list.context = Some(slot.context);
        self.ring.leave();
        true
    }

    /// Moves the oldest request to the end of `to`; returns false if there is none, or if it is out
    /// or does not fit.
    pub(crate) fn move_oldest(&mut self, to: &mut Self) -> bool {
        let seq = self.ring.head();
        let slot = match self.ring.front() {
            Some(slot) if !slot.is_out && slot.count as usize <= to.width => *slot,
            Some(_) | None => return false,
        };
        if to.ring.is_full() {
            return false;
        }
        let places = to.places_of(to.ring.tail());
        for (place, sge) in places.iter_mut().zip(&*self.places_of(seq)) {
            *place = *sge;
        }
        // INVARIANT: the request leaves this queue, and its promise moves with it.
        self.ring.leave();
        to.ring.push(slot).is_ok()
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_requests)]
mod tests {
    use super::super::sge::test_posted;
    use super::*;

    use crate::sys::report::cases;

    /// A token of no kernel memory.
    const OTHER: Token = Token::from_raw(Token::LOCAL_MEMORY.raw() + 1);

    /// A queue with two requests, the first one of which has `bytes`.
    fn queue(bytes: &[u8]) -> Result<RequestQueue<u8>> {
        let mut queue = RequestQueue::new(2, 2, 0, GFP_KERNEL)?;
        let addr = bytes.as_ptr().addr() as u64;
        let list = [
            Sge::new(addr, bytes.len() as u32, Token::LOCAL_MEMORY),
            Sge::new(addr, 1, OTHER),
        ];
        let has_room = queue.post(test_posted(7, list.into_iter()), 1)
            && queue.post(test_posted(8, [].into_iter()), 2);
        has_room.then_some(queue).ok_or(ENOSPC)
    }

    #[test]
    fn an_element_is_memory_under_the_local_key_alone() -> Result {
        let bytes = [3u8; 16];
        let addr = bytes.as_ptr().addr() as u64;
        let list = test_list(&[
            Sge::new(addr, 16, Token::LOCAL_MEMORY),
            Sge::new(addr, 16, OTHER),
            Sge::new(u64::MAX - 3, 16, Token::LOCAL_MEMORY),
        ])?;
        let mut to = [0u8; 16];
        assert!(list.memory(0).is_some_and(|run| run.read(&mut to) == 16));
        kunit_assert_eq!(to, bytes);
        for at in cases(1..4) {
            assert!(list.memory(at).is_none());
        }
        Ok(())
    }

    #[test]
    fn the_newest_request_is_the_one_that_was_posted_last() -> Result {
        let bytes = [3u8; 16];
        let mut queue = RequestQueue::new(2, 2, 0u8, GFP_KERNEL)?;
        assert!(queue.newest().is_none());
        let sge = Sge::new(bytes.as_ptr().addr() as u64, 16, Token::LOCAL_MEMORY);
        for turn in cases(0..20u8) {
            let list = [sge; 2].into_iter().take(usize::from(turn % 3));
            let context = u64::from(turn);
            // The queue is full from the second turn on.
            assert!(turn < 2 || queue.leave().is_some());
            assert!(queue.post(test_posted(context, list), turn));
            let wanted = (context, u32::from(turn % 3), &turn);
            kunit_assert_eq!(queue.newest(), Some(wanted));
            assert!(turn < 1 || !queue.post(test_posted(99, [].into_iter()), 99));
            kunit_assert_eq!(queue.newest(), Some(wanted));
        }
        assert!(queue.leave().is_some());
        assert!(queue.leave().is_some());
        assert!(queue.newest().is_none());
        Ok(())
    }

    #[test]
    fn a_request_leaves_when_its_elements_are_back() -> Result {
        let bytes = [3u8; 16];
        let mut queue = queue(&bytes)?;
        let (mut list, mut other) = (SendList::new(2)?, SendList::new(2)?);
        let first = queue.head();
        assert!(queue.start(first, &mut list));
        kunit_assert_eq!(list.len(), 2);
        assert!(list.memory(0).is_some());
        assert!(list.memory(1).is_none());
        // The request is out, and a list is for one request.
        assert!(!queue.start(first, &mut other));
        kunit_assert_eq!(other.len(), 0);
        assert!(!queue.start(first.wrapping_add(1), &mut list));
        assert!(queue.start(first.wrapping_add(1), &mut other));
        // The later request is back first, and waits for the earlier one.
        queue.give_back(&mut other);
        assert!(queue.leave().is_none());
        // A request that needs no place waits for the earlier one, too.
        assert!(queue.pass(test_posted(9, [].into_iter())).is_none());
        queue.give_back(&mut list);
        assert!(!list.is_in_use());
        kunit_assert_eq!(list.len(), 0);
        assert!(list.memory(0).is_none());
        assert!(queue
            .leave()
            .is_some_and(|(c, data)| c.raw() == 7 && data == 1));
        assert!(queue
            .leave()
            .is_some_and(|(c, data)| c.raw() == 8 && data == 2));
        assert!(queue.leave().is_none());
        let passed = queue.pass(test_posted(9, [].into_iter()));
        assert!(passed.is_some_and(|context| context.raw() == 9));
        Ok(())
    }

    #[test]
    fn elements_that_were_given_back_are_handed_out_no_more() -> Result {
        let bytes = [3u8; 16];
        let mut queue = queue(&bytes)?;
        let mut list = SendList::new(2)?;
        let first = queue.head();
        assert!(queue.start(first, &mut list));
        queue.give_back(&mut list);
        assert!(queue.start(first, &mut list));
        kunit_assert_eq!(list.len(), 0);
        Ok(())
    }

    #[test]
    fn a_list_that_another_queue_gets_does_not_end_its_request() -> Result {
        let bytes = [3u8; 16];
        let (mut queue, mut stranger) = (queue(&bytes)?, queue(&bytes)?);
        let (mut list, mut theirs) = (SendList::new(2)?, SendList::new(2)?);
        let first = queue.head();
        assert!(queue.start(first, &mut list));
        assert!(stranger.start(first, &mut theirs));
        stranger.give_back(&mut list);
        kunit_assert_eq!(list.len(), 0);
        assert!(stranger.leave().is_none());
        assert!(queue.leave().is_none());
        stranger.give_back(&mut theirs);
        assert!(stranger.leave().is_some());
        Ok(())
    }

    #[test]
    fn a_receive_ends_when_its_elements_are_given_up() -> Result {
        let bytes = [3u8; 16];
        let mut queue = queue(&bytes)?;
        let mut list = ReceiveList::new(2)?;
        assert!(list.end().is_none());
        assert!(queue.take(&mut list));
        kunit_assert_eq!(queue.len(), 1);
        kunit_assert_eq!(list.len(), 2);
        assert!(list.memory(0).is_some());
        kunit_assert_eq!(list.context(), Some(7));
        // A list takes one receive at a time.
        assert!(!queue.take(&mut list));
        kunit_assert_eq!(queue.len(), 1);
        assert!(list.end().is_some_and(|context| context.raw() == 7));
        kunit_assert_eq!(list.len(), 0);
        assert!(list.end().is_none());
        assert!(queue.take(&mut list));
        kunit_assert_eq!(list.len(), 0);
        kunit_assert_eq!(list.context(), Some(8));
        Ok(())
    }

    #[test]
    fn requests_are_forgotten_while_none_is_out() -> Result {
        let bytes = [3u8; 16];
        let (mut queue, mut list) = (queue(&bytes)?, SendList::new(2)?);
        let first = queue.head();
        assert!(queue.start(first, &mut list));
        assert!(!queue.forget());
        kunit_assert_eq!(queue.len(), 2);
        queue.give_back(&mut list);
        assert!(queue.forget());
        assert!(queue.is_empty());
        assert!(queue.leave().is_none());
        // Numbers count on: the earlier number names no request.
        assert!(queue.post(test_posted(9, [].into_iter()), 3));
        assert!(!queue.start(first, &mut list));
        assert!(queue
            .leave()
            .is_some_and(|(context, data)| context.raw() == 9 && data == 3));
        Ok(())
    }

    #[test]
    fn requests_move_with_their_elements_and_in_order() -> Result {
        let bytes = [3u8; 16];
        let (mut queue, mut list) = (queue(&bytes)?, ReceiveList::new(2)?);
        let mut narrow = RequestQueue::new(4, 1, 0, GFP_KERNEL)?;
        assert!(!queue.move_oldest(&mut narrow));
        let mut to = RequestQueue::new(1, 2, 0, GFP_KERNEL)?;
        assert!(queue.move_oldest(&mut to));
        kunit_assert_eq!(queue.len(), 1);
        assert!(!queue.move_oldest(&mut to));
        assert!(to.take(&mut list));
        kunit_assert_eq!(list.len(), 2);
        kunit_assert_eq!(list.context(), Some(7));
        assert!(queue.move_oldest(&mut to));
        assert!(!queue.move_oldest(&mut to));
        assert!(to
            .leave()
            .is_some_and(|(context, data)| context.raw() == 8 && data == 2));
        Ok(())
    }

    #[test]
    fn too_many_elements_are_refused() -> Result {
        let mut queue = RequestQueue::new(2, 1, 0u8, GFP_KERNEL)?;
        assert!(!queue.post(test_posted(1, [Sge::EMPTY; 2].into_iter()), 0));
        assert!(queue.is_empty());
        assert!(queue.post(test_posted(1, [Sge::EMPTY; 1].into_iter()), 0));
        Ok(())
    }
}
