// SPDX-License-Identifier: GPL-2.0

//! Slots of the memory table: allocation, traces of the last owner, and reuse.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::*;
use crate::{
    engine::memory::MAX_REGIONS,
    kunit::harness::{
        cases,
        wait_until, //
    },
    sys::{
        event::Event,
        softirq::ProcessQueue, //
    }, //
};

/// A removal of a region in a separate thread.
#[pin_data]
struct Removal {
    table: Arc<MemoryTable>,
    index: u32,
    #[pin]
    over: Event,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Removal { self.work }
}

impl Removal {
    fn new(table: Arc<MemoryTable>, index: u32) -> Result<Arc<Self>> {
        let init = pin_init!(Self {
            table,
            index,
            over <- Event::new(),
            work <- new_work!("ndk_test_removal"),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }
}

impl WorkItem for Removal {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.table.remove(this.index);
        this.over.signal();
    }
}

/// The number of regions that each thread of a group makes, and the number of its rounds.
const CROWD_REGIONS: usize = 100;
const CROWD_ROUNDS: u32 = 4;

/// One thread of a group that adds and removes regions.
#[pin_data]
struct Member {
    table: Arc<MemoryTable>,
    name: u64,
    /// The tokens of the regions left at the end; 0 for none.
    tokens: [Atomic<u32>; CROWD_REGIONS],
    #[pin]
    over: Event,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Member { self.work }
}

impl Member {
    fn new(table: Arc<MemoryTable>, name: u64) -> Result<Arc<Self>> {
        let init = pin_init!(Self {
            table,
            name,
            tokens: [const { Atomic::new(0) }; CROWD_REGIONS],
            over <- Event::new(),
            work <- new_work!("ndk_test_member"),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// Adds a region with the member's name as its base: no other member's region has that base.
    fn add(&self) -> Result<Token> {
        let attr = attr(AccessFlags::empty(), self.name, 0);
        self.table.add_fixed(SpanList::EMPTY, attr)
    }

    fn owns(&self, token: Token) -> bool {
        let access = self
            .table
            .access(token, PEER, AccessFlags::empty(), self.name, 0);
        access.is_ok()
    }

    /// Adds and removes regions, and leaves all of the last round.
    fn toil(&self) {
        for round in 1..=CROWD_ROUNDS {
            for place in &self.tokens {
                let token = self.add().map_or(0, Token::raw);
                place.store(token, Relaxed);
            }
            if round == CROWD_ROUNDS {
                return;
            }
            for place in &self.tokens {
                let token = Token::from_raw(place.load(Relaxed));
                if self.owns(token) {
                    self.table.remove(token.index());
                }
            }
        }
    }
}

impl WorkItem for Member {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.toil();
        this.over.signal();
    }
}

/// Has `count` threads work on one table at once, and waits for them.
fn members(count: u64) -> Result<KVec<Arc<Member>>> {
    let table = Arc::pin_init(MemoryTable::new(), GFP_KERNEL)?;
    let queue = ProcessQueue::new(c"ndk_test")?;
    let mut members = KVec::new();
    for name in 0..count {
        members.push(Member::new(table.clone(), 1 + name * 1000)?, GFP_KERNEL)?;
    }
    for member in &members {
        let _ = queue.enqueue(member.clone());
    }
    for member in &members {
        member.over.wait();
    }
    Ok(members)
}

#[kernel::macros::kunit_tests(ndk_engine_memory_tests_table)]
mod tests {
    use super::*;

    #[test]
    fn index_zero_is_given_to_nobody() -> Result {
        let store = Store::new(16)?;
        for want in cases(1..=3) {
            kunit_assert_eq!(store.fixed(16, WRITE)?.index(), want);
        }
        kunit_assert_eq!(store.fast(1)?.index(), 4);
        kunit_assert_eq!(store.table.add_window(OWN, None)?.index(), 5);
        Ok(())
    }

    #[test]
    fn a_freed_slot_comes_back_under_another_key() -> Result {
        let store = Store::new(16)?;
        let old = store.fixed(16, WRITE)?;
        assert!(store.takes(old));
        store.table.remove(old.index());
        kunit_assert_eq!(store.denial(old), Some(Denied::Token));
        let new = store.fixed(16, WRITE)?;
        kunit_assert_eq!(new.index(), old.index());
        kunit_assert_eq!(new.key(), old.key().wrapping_add(1));
        assert!(store.takes(new));
        kunit_assert_eq!(store.denial(old), Some(Denied::Token));
        Ok(())
    }

    #[test]
    fn the_key_goes_on_from_where_the_last_owner_left_it() -> Result {
        let store = Store::new(16)?;
        let fast = store.registered(16, WRITE)?;
        kunit_assert_eq!(store.table.revoke(fast, OWN), Ok(()));
        let last = bumped(fast, 40);
        assert!(store.register(last, WRITE, 16));
        store.table.remove(fast.index());
        let next = store.fixed(16, WRITE)?;
        kunit_assert_eq!(next.index(), fast.index());
        kunit_assert_eq!(next.key(), last.key().wrapping_add(1));
        kunit_assert_eq!(store.denial(last), Some(Denied::Token));
        Ok(())
    }

    #[test]
    fn keys_of_a_slot_go_round_and_only_the_present_one_opens_it() -> Result {
        let store = Store::new(16)?;
        let mut old = store.fixed(16, WRITE)?;
        for _ in 0..600 {
            store.table.remove(old.index());
            let new = store.fixed(16, WRITE)?;
            kunit_assert_eq!(new, bumped(old, 1));
            assert!(store.takes(new));
            assert!(!store.takes(old));
            old = new;
        }
        Ok(())
    }

    #[test]
    fn freed_slots_are_used_before_new_ones() -> Result {
        let store = Store::new(16)?;
        let mut tokens = KVec::new();
        for _ in 0..10 {
            tokens.push(store.fixed(16, WRITE)?, GFP_KERNEL)?;
        }
        for index in [3, 9, 1, 4, 10] {
            store.table.remove(index);
        }
        let mut seen = [false; 16];
        for _ in 0..5 {
            let index = store.fixed(16, WRITE)?.index();
            assert!([1, 3, 4, 9, 10].contains(&index));
            // CAST: widening.
            assert!(!core::mem::replace(&mut seen[index as usize], true));
        }
        kunit_assert_eq!(store.fixed(16, WRITE)?.index(), 11);
        // The other regions are as they were.
        for index in cases([2, 5, 6, 7, 8]) {
            let token = tokens.iter().find(|t| t.index() == index);
            assert!(token.is_some_and(|t| store.takes(*t)));
        }
        Ok(())
    }

    #[test]
    fn a_table_grows_over_several_chunks() -> Result {
        let count = 300;
        let store = Store::new(count)?;
        for at in cases(0..count) {
            let spans = SpanList::of(store.buffer.part(at, 1)?)?;
            let token = store.table.add_fixed(spans, attr(WRITE, BASE, 1))?;
            // CAST: below 300.
            kunit_assert_eq!(token.index(), at as u32 + 1);
            kunit_assert_eq!(store.put(token, BASE, &[RawBuffer::numbered(at)]), Ok(()));
        }
        for at in cases(0..count) {
            kunit_assert_eq!(store.buffer.get(at), RawBuffer::numbered(at));
        }
        Ok(())
    }

    #[test]
    fn an_index_that_was_never_given_out_gives_nothing() -> Result {
        let store = Store::new(16)?;
        let token = store.fixed(16, WRITE)?;
        let beyond = [2, 63, 64, 65, 4096, 262_143, 262_144, Token::MAX_INDEX];
        for index in cases(beyond) {
            for key in cases([0, 1, 255]) {
                let absent = Token::new(index, key).ok_or(EINVAL)?;
                kunit_assert_eq!(store.denial(absent), Some(Denied::Token));
                assert!(store.table.is_drained(absent));
            }
        }
        assert!(store.takes(token));
        Ok(())
    }

    #[test]
    fn what_is_not_registered_yet_has_no_valid_key() -> Result {
        let store = Store::new(16)?;
        let fast = store.fast(1)?;
        let window = store.table.add_window(OWN, None)?;
        for by in cases(0..=255) {
            kunit_assert_eq!(store.denial(bumped(fast, by)), Some(Denied::Token));
            kunit_assert_eq!(store.denial(bumped(window, by)), Some(Denied::Token));
        }
        Ok(())
    }

    #[test]
    fn removal_waits_for_an_access() -> Result {
        let table = Arc::pin_init(MemoryTable::new(), GFP_KERNEL)?;
        let buffer = RawBuffer::new(16)?;
        let spans = SpanList::of(buffer.span())?;
        let token = table.add_fixed(spans, attr(WRITE, BASE, 16))?;
        let removal = Removal::new(table.clone(), token.index())?;
        let queue = ProcessQueue::new(c"ndk_test")?;
        let access = table.access(token, PEER, AccessFlag::RemoteWrite, BASE, 16);
        let _ = queue.enqueue(removal.clone());
        // New accesses fail from some time on, and the old one still has its memory.
        let mut refused = None;
        wait_until(|| {
            let another = table.access(token, PEER, AccessFlag::RemoteWrite, BASE, 1);
            refused = another.err();
            refused.is_some()
        });
        let early = removal.over.wait_timeout(30);
        let usable = access
            .as_ref()
            .is_ok_and(|a| a.run(0).write(&[9; 16]) == Ok(16));
        drop(access);
        removal.over.wait();
        assert!(!early);
        kunit_assert_eq!(refused, Some(Denied::Token));
        assert!(usable);
        assert!(buffer.is(0, 16, 9));
        // The slot may be used again.
        let spans = SpanList::of(buffer.span())?;
        let next = table.add_fixed(spans, attr(WRITE, BASE, 16))?;
        kunit_assert_eq!(next.index(), token.index());
        Ok(())
    }

    #[test]
    fn threads_that_add_and_remove_at_once_never_share_a_slot() -> Result {
        let members = members(4)?;
        let mut owners = 0;
        let mut most = 0;
        for member in &members {
            for place in cases(&member.tokens) {
                let token = Token::from_raw(place.load(Relaxed));
                most = most.max(token.index());
                for other in &members {
                    kunit_assert_eq!(other.owns(token), other.name == member.name);
                    owners += 1;
                }
            }
        }
        kunit_assert_eq!(owners, 4 * 4 * CROWD_REGIONS);
        // No slot was lost on the way: never more were in use than all members had at once.
        // CAST: below 1000.
        kunit_assert_eq!(most, 4 * CROWD_REGIONS as u32);
        Ok(())
    }

    #[test]
    fn a_full_table_refuses_and_takes_one_for_each_that_goes() -> Result {
        let store = Store::new(16)?;
        let mut made = 0;
        while store.table.add_window(OWN, None).is_ok() {
            made += 1;
        }
        kunit_assert_eq!(made, MAX_REGIONS);
        assert!(store.fixed(16, WRITE).is_err());
        store.table.remove(70_000);
        let token = store.fixed(16, WRITE)?;
        kunit_assert_eq!(token.index(), 70_000);
        assert!(store.takes(token));
        assert!(store.fast(1).is_err());
        Ok(())
    }
}
