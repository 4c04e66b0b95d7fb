// SPDX-License-Identifier: GPL-2.0

//! Windows: binding, rights, users, and the end of a binding.

use kernel::prelude::*;

use super::*;
use crate::{
    engine::memory::{
        slot::RegisterError,
        RevokeError, //
    },
    kunit::harness::cases, //
};

/// A table with one region of 256 bytes and one window.
struct Frame {
    store: Store,
    region: Token,
    window: Token,
}

impl Frame {
    fn new(rights: AccessFlags) -> Result<Self> {
        let store = Store::new(256)?;
        Ok(Self {
            region: store.fixed(256, rights)?,
            window: store.table.add_window(OWN, None)?,
            store,
        })
    }

    /// Binds `window` to a range of the region for the queue pair of [`PEER`].
    fn bind(
        &self,
        window: Token,
        rights: AccessFlags,
        at: u64,
        len: u64,
    ) -> Result<(), RegisterError> {
        let table = &self.store.table;
        table.bind(window, self.region, PEER, rights, BASE + at, len)
    }

    /// Returns true if `user` may do `wanted` with the first byte of a window bound at `at`.
    fn grants(&self, window: Token, user: User, wanted: AccessFlags, at: u64) -> bool {
        let access = self.store.table.access(window, user, wanted, BASE + at, 1);
        access.is_ok()
    }
}

#[kernel::macros::kunit_tests(ndk_engine_memory_tests_windows)]
mod tests {
    use super::*;

    #[test]
    fn a_window_needs_a_remote_right_and_writes_need_the_regions_local_write() -> Result {
        let consistent = (0..16).map(AccessFlags::from_bits);
        for of_region in cases(consistent.filter(|r| r.is_consistent())) {
            let frame = Frame::new(of_region)?;
            let mut window = frame.window;
            for rights in cases((0..16).map(AccessFlags::from_bits)) {
                let writes = rights.contains(AccessFlag::RemoteWrite)
                    || rights.contains(AccessFlag::RemoteAtomic);
                // The window's own local write is no substitute for the region's.
                let legal = rights.is_remote() && (!writes || of_region.contains_all(LOCAL));
                window = bumped(window, 1);
                let bound = frame.bind(window, rights, 0, 256);
                if !legal {
                    kunit_assert_eq!(bound, Err(RegisterError::NotAllowed));
                    continue;
                }
                kunit_assert_eq!(bound, Ok(()));
                for wanted in cases([
                    AccessFlag::RemoteRead.into(),
                    AccessFlag::RemoteWrite.into(),
                    AccessFlag::RemoteAtomic.into(),
                ]) {
                    let granted = frame.grants(window, PEER, wanted, 0);
                    kunit_assert_eq!(granted, rights.contains_all(wanted));
                }
                kunit_assert_eq!(frame.store.table.revoke(window, OWN), Ok(()));
            }
        }
        Ok(())
    }

    #[test]
    fn a_window_lies_wholly_inside_its_region() -> Result {
        let frame = Frame::new(WRITE)?;
        let mut window = frame.window;
        for (at, len, inside) in cases([
            (0, 256, true),
            (0, 257, false),
            (1, 255, true),
            (1, 256, false),
            (255, 1, true),
            (256, 0, true),
            (256, 1, false),
            (257, 0, false),
            (0, u64::MAX, false),
            (16, u64::MAX - 8, false),
        ]) {
            window = bumped(window, 1);
            let bound = frame.bind(window, WRITE, at, len);
            match inside {
                true => {
                    kunit_assert_eq!(bound, Ok(()));
                    kunit_assert_eq!(frame.store.table.revoke(window, OWN), Ok(()));
                }
                false => {
                    kunit_assert_eq!(bound, Err(RegisterError::TooLong));
                    assert!(!frame.grants(window, PEER, WRITE, at));
                }
            }
        }
        let table = &frame.store.table;
        let below = table.bind(window, frame.region, PEER, WRITE, BASE - 1, 1);
        kunit_assert_eq!(below, Err(RegisterError::TooLong));
        Ok(())
    }

    #[test]
    fn a_window_leads_to_its_own_part_of_the_region() -> Result {
        let frame = Frame::new(WRITE)?;
        kunit_assert_eq!(frame.bind(frame.window, WRITE, 100, 50), Ok(()));
        let put = |at, bytes: &[u8]| frame.store.put(frame.window, BASE + at, bytes);
        kunit_assert_eq!(put(99, &[1]), Err(Denied::Bounds));
        kunit_assert_eq!(put(99, &[1; 2]), Err(Denied::Bounds));
        kunit_assert_eq!(put(149, &[1; 2]), Err(Denied::Bounds));
        kunit_assert_eq!(put(150, &[1]), Err(Denied::Bounds));
        assert!(frame.store.buffer.is(0, 256, 0));
        kunit_assert_eq!(put(100, &[5; 50]), Ok(()));
        kunit_assert_eq!(put(149, &[6]), Ok(()));
        assert!(frame.store.buffer.is(0, 100, 0));
        assert!(frame.store.buffer.is(100, 49, 5));
        kunit_assert_eq!(frame.store.buffer.get(149), 6);
        assert!(frame.store.buffer.is(150, 106, 0));
        Ok(())
    }

    #[test]
    fn a_window_over_scattered_pieces_finds_them() -> Result {
        let store = Store::new(512)?;
        let spans = list(&store.buffer, &[(300, 10), (50, 20), (400, 1), (0, 9)])?;
        let region = store.table.add_fixed(spans, attr(WRITE, BASE, 40))?;
        let window = store.table.add_window(OWN, None)?;
        // Bytes 8 to 35: the last 2 of the first piece, the next two, 5 of the last.
        let bind = store.table.bind(window, region, PEER, WRITE, BASE + 8, 28);
        kunit_assert_eq!(bind, Ok(()));
        kunit_assert_eq!(store.put(window, BASE + 8, &[3; 28]), Ok(()));
        assert!(store.buffer.is(308, 2, 3));
        assert!(store.buffer.is(50, 20, 3));
        assert!(store.buffer.is(400, 1, 3));
        assert!(store.buffer.is(0, 5, 3));
        kunit_assert_eq!(store.buffer.count(0, 512, |b| b == 3), 28);
        Ok(())
    }

    #[test]
    fn window_region_and_queue_pair_are_of_one_domain() -> Result {
        let frame = Frame::new(ALL)?;
        let table = &frame.store.table;
        let foreign = table.add_window(OTHER, None)?;
        let mut far = attr(ALL, BASE, 256);
        far.domain = OTHER;
        let far = table.add_fixed(SpanList::of(frame.store.buffer.span())?, far)?;
        let bad = Err(RegisterError::NotAllowed);
        for (window, region, user) in cases([
            (foreign, frame.region, PEER),
            (foreign, far, PEER),
            (frame.window, far, PEER),
            (frame.window, frame.region, STRANGER),
            (frame.window, far, STRANGER),
            (foreign, frame.region, STRANGER),
            // A user without a queue pair.
            (frame.window, frame.region, OWNER),
        ]) {
            kunit_assert_eq!(table.bind(window, region, user, READ, BASE, 1), bad);
        }
        kunit_assert_eq!(table.bind(foreign, far, STRANGER, READ, BASE, 1), Ok(()));
        kunit_assert_eq!(frame.bind(frame.window, READ, 0, 1), Ok(()));
        assert!(!frame.grants(foreign, PEER, READ, 0));
        assert!(frame.grants(foreign, STRANGER, READ, 0));
        assert!(!frame.grants(frame.window, STRANGER, READ, 0));
        Ok(())
    }

    #[test]
    fn only_a_region_that_is_registered_for_good_is_bound() -> Result {
        let frame = Frame::new(ALL)?;
        let store = &frame.store;
        let fast = store.registered(64, ALL)?;
        let other = store.table.add_window(OWN, None)?;
        let gone = store.fixed(64, ALL)?;
        store.table.remove(gone.index());
        let bind = |window, region| store.table.bind(window, region, PEER, READ, BASE, 1);
        let bad = Err(RegisterError::NotAllowed);
        kunit_assert_eq!(frame.bind(other, READ, 0, 256), Ok(()));
        // Fast-register, a bound window, itself, gone, a wrong key, never there.
        let absent = Token::new(1000, 1).ok_or(EINVAL)?;
        let stale = bumped(frame.region, 1);
        for region in cases([fast, other, frame.window, gone, stale, absent]) {
            kunit_assert_eq!(bind(frame.window, region), bad);
        }
        // Only a window is bound to a region.
        for window in cases([fast, frame.region, gone, absent]) {
            kunit_assert_eq!(bind(window, frame.region), bad);
        }
        assert!(store.takes(fast));
        assert!(store.takes(frame.region));
        kunit_assert_eq!(bind(frame.window, frame.region), Ok(()));
        Ok(())
    }

    #[test]
    fn only_the_peer_of_its_queue_pair_uses_a_window() -> Result {
        let frame = Frame::new(ALL)?;
        kunit_assert_eq!(frame.bind(frame.window, ALL, 0, 16), Ok(()));
        for (user, allowed) in cases([
            (PEER, true),
            (OTHER_PEER, false),
            (STRANGER, false),
            // A window is never a local token.
            (OWNER, false),
        ]) {
            for wanted in cases([
                AccessFlags::empty(),
                READ,
                AccessFlag::RemoteWrite.into(),
                ALL,
            ]) {
                kunit_assert_eq!(frame.grants(frame.window, user, wanted, 0), allowed);
            }
        }
        let put = put(&frame.store.table, frame.window, OTHER_PEER, BASE, &[1]);
        kunit_assert_eq!(put, Err(Denied::Token));
        assert!(frame.store.buffer.is(0, 256, 0));
        Ok(())
    }

    #[test]
    fn windows_over_one_region_overlap_and_differ_in_rights() -> Result {
        let frame = Frame::new(ALL)?;
        let table = &frame.store.table;
        let (w, second) = (frame.window, table.add_window(OWN, None)?);
        let third = table.add_window(OWN, None)?;
        kunit_assert_eq!(frame.bind(w, READ, 0, 128), Ok(()));
        kunit_assert_eq!(
            frame.bind(second, AccessFlag::RemoteWrite.into(), 64, 128),
            Ok(())
        );
        let bound = table.bind(third, frame.region, OTHER_PEER, ALL, BASE + 100, 10);
        kunit_assert_eq!(bound, Ok(()));
        kunit_assert_eq!(frame.store.put(w, BASE + 64, &[1]), Err(Denied::Rights));
        kunit_assert_eq!(frame.store.put(second, BASE + 64, &[2; 64]), Ok(()));
        kunit_assert_eq!(put(table, third, OTHER_PEER, BASE + 105, &[3; 5]), Ok(()));
        assert!(frame.grants(w, PEER, READ, 64));
        assert!(!frame.grants(second, PEER, READ, 64));
        assert!(frame.store.buffer.is(64, 41, 2));
        assert!(frame.store.buffer.is(105, 5, 3));
        assert!(frame.store.buffer.is(110, 18, 2));
        // The end of one window leaves the others and the region as they are.
        kunit_assert_eq!(table.revoke(second, OWN), Ok(()));
        kunit_assert_eq!(frame.store.put(second, BASE + 64, &[2]), Err(Denied::Token));
        assert!(frame.grants(w, PEER, READ, 64));
        assert!(frame.grants(third, OTHER_PEER, WRITE, 100));
        assert!(frame.store.takes(frame.region));
        Ok(())
    }

    #[test]
    fn a_bound_window_stays_as_it_is_when_it_is_bound_again() -> Result {
        let frame = Frame::new(ALL)?;
        kunit_assert_eq!(frame.bind(frame.window, READ, 0, 16), Ok(()));
        for by in cases([0, 1]) {
            let again = frame.bind(bumped(frame.window, by), ALL, 32, 16);
            kunit_assert_eq!(again, Err(RegisterError::Valid));
        }
        assert!(frame.grants(frame.window, PEER, READ, 0));
        assert!(!frame.grants(frame.window, PEER, READ, 32));
        kunit_assert_eq!(
            frame.store.put(frame.window, BASE, &[1]),
            Err(Denied::Rights)
        );
        assert!(!frame.grants(bumped(frame.window, 1), PEER, READ, 32));
        Ok(())
    }

    #[test]
    fn an_invalidated_window_is_bound_again_even_on_another_queue_pair() -> Result {
        let frame = Frame::new(ALL)?;
        let table = &frame.store.table;
        let mut old = frame.window;
        for round in cases(0..300u64) {
            let window = bumped(old, 1);
            let user = if round % 2 == 0 { PEER } else { OTHER_PEER };
            let at = BASE + round % 200;
            kunit_assert_eq!(table.bind(window, frame.region, user, ALL, at, 8), Ok(()));
            // CAST: the low byte.
            kunit_assert_eq!(put(table, window, user, at, &[round as u8; 8]), Ok(()));
            // CAST: below 200, and the low byte.
            assert!(frame
                .store
                .buffer
                .is((round % 200) as usize, 8, round as u8));
            kunit_assert_eq!(put(table, old, user, at, &[1]), Err(Denied::Token));
            kunit_assert_eq!(table.revoke(window, OWN), Ok(()));
            kunit_assert_eq!(put(table, window, user, at, &[1]), Err(Denied::Token));
            kunit_assert_eq!(table.revoke(window, OWN), Err(RevokeError::AlreadyInvalid));
            old = window;
        }
        assert!(frame.store.takes(frame.region));
        Ok(())
    }

    #[test]
    fn a_window_gives_nothing_when_its_region_is_gone() -> Result {
        let frame = Frame::new(ALL)?;
        let store = &frame.store;
        kunit_assert_eq!(frame.bind(frame.window, ALL, 0, 16), Ok(()));
        kunit_assert_eq!(store.put(frame.window, BASE, &[1]), Ok(()));
        store.table.remove(frame.region.index());
        kunit_assert_eq!(store.put(frame.window, BASE, &[2]), Err(Denied::Token));
        // Nor when the slot has a new owner, at any key.
        for _ in 0..300 {
            let next = store.fixed(256, ALL)?;
            kunit_assert_eq!(next.index(), frame.region.index());
            kunit_assert_eq!(store.put(frame.window, BASE, &[2]), Err(Denied::Token));
            store.table.remove(next.index());
        }
        assert!(store.buffer.is(0, 1, 1));
        assert!(store.buffer.is(1, 255, 0));
        // Such a window is invalidated like any other, and bound to a new region.
        kunit_assert_eq!(store.table.revoke(frame.window, OWN), Ok(()));
        let region = store.fixed(256, ALL)?;
        let window = bumped(frame.window, 1);
        kunit_assert_eq!(
            store.table.bind(window, region, PEER, WRITE, BASE, 1),
            Ok(())
        );
        kunit_assert_eq!(store.put(window, BASE, &[3]), Ok(()));
        Ok(())
    }

    #[test]
    fn a_window_never_leads_into_a_foreign_domain() -> Result {
        let frame = Frame::new(ALL)?;
        let table = &frame.store.table;
        kunit_assert_eq!(frame.bind(frame.window, ALL, 0, 16), Ok(()));
        table.remove(frame.region.index());
        // The next owner of the slot: at some key its token equals the old one.
        let mut attr = attr(ALL, BASE, 256);
        attr.domain = OTHER;
        let mut met = false;
        for _ in 0..256 {
            let spans = SpanList::of(frame.store.buffer.span())?;
            let next = table.add_fixed(spans, attr)?;
            met |= next == frame.region;
            kunit_assert_eq!(
                frame.store.put(frame.window, BASE, &[2]),
                Err(Denied::Token)
            );
            table.remove(next.index());
        }
        assert!(met);
        assert!(frame.store.buffer.is(0, 256, 0));
        Ok(())
    }

    #[test]
    fn an_access_through_a_window_keeps_both_from_ending() -> Result {
        let frame = Frame::new(ALL)?;
        let table = &frame.store.table;
        let window = frame.window;
        kunit_assert_eq!(frame.bind(window, ALL, 0, 16), Ok(()));
        let access = table.access(window, PEER, AccessFlag::RemoteWrite, BASE, 16);
        assert!(access.is_ok());
        kunit_assert_eq!(table.revoke(window, OWN), Ok(()));
        assert!(!table.is_drained(window));
        let again = frame.bind(bumped(window, 1), ALL, 0, 16);
        kunit_assert_eq!(again, Err(RegisterError::Busy));
        assert!(access
            .as_ref()
            .is_ok_and(|a| a.run(0).write(&[8; 99]) == Ok(16)));
        drop(access);
        assert!(table.is_drained(window));
        kunit_assert_eq!(frame.bind(bumped(window, 1), ALL, 0, 16), Ok(()));
        assert!(frame.store.buffer.is(0, 16, 8));
        assert!(frame.store.buffer.is(16, 240, 0));
        Ok(())
    }

    #[test]
    fn a_peer_invalidates_a_window_through_its_queue_pair_alone() -> Result {
        let frame = Frame::new(ALL)?;
        let table = &frame.store.table;
        let window = frame.window;
        let bad = Err(RevokeError::NotAllowed);
        kunit_assert_eq!(table.revoke_remote(window, PEER), bad);
        kunit_assert_eq!(frame.bind(window, ALL, 0, 16), Ok(()));
        for user in cases([OTHER_PEER, STRANGER, OWNER]) {
            kunit_assert_eq!(table.revoke_remote(window, user), bad);
        }
        kunit_assert_eq!(table.revoke_remote(bumped(window, 1), PEER), bad);
        assert!(frame.grants(window, PEER, ALL, 0));
        kunit_assert_eq!(table.revoke_remote(window, PEER), Ok(()));
        assert!(!frame.grants(window, PEER, ALL, 0));
        kunit_assert_eq!(table.revoke_remote(window, PEER), bad);
        assert!(frame.store.takes(frame.region));
        // Bound on the other queue pair, the window is for the peer of that queue pair.
        let next = bumped(window, 1);
        kunit_assert_eq!(
            table.bind(next, frame.region, OTHER_PEER, ALL, BASE, 1),
            Ok(())
        );
        kunit_assert_eq!(table.revoke_remote(next, PEER), bad);
        kunit_assert_eq!(table.revoke_remote(next, OTHER_PEER), Ok(()));
        Ok(())
    }
}
