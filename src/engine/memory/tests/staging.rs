// SPDX-License-Identifier: GPL-2.0

//! Mapping, registering, using, invalidating: in the orders that the kernel's consumers use.
//!
//! A mapping is staged, a registration is live; the two are kept apart. Each test checks the bytes,
//! so a mix-up of two lists shows.

use kernel::prelude::*;

use super::*;
use crate::{
    engine::memory::{
        slot::RegisterError,
        staging::MOST_SPARES,
        RevokeError, //
    },
    kunit::harness::cases,
    sys::softirq::may_run_here, //
};

/// Odd pieces, none adjacent to its predecessor, out of order in memory: offset and length.
const ODD: [(usize, usize); 6] = [
    (9000, 1),
    (17, 3),
    (4096, 4096),
    (1000, 7),
    (9001 + 64, 255),
    (100, 2),
];

/// The place in the buffer of byte `at` of a region made of `parts`.
fn place(parts: &[(usize, usize)], at: usize) -> Option<usize> {
    let mut left = at;
    for (begin, len) in parts {
        if left < *len {
            return Some(begin + left);
        }
        left -= len;
    }
    None
}

/// The number of bytes in `parts`.
fn size(parts: &[(usize, usize)]) -> usize {
    parts.iter().map(|(_, len)| len).sum()
}

/// Returns true if the peer reaches exactly the bytes of `parts` under `token`, in order: writes a
/// number into each byte through the region, and checks its place.
fn leads_to(store: &Store, token: Token, base: u64, parts: &[(usize, usize)]) -> bool {
    store.buffer.fill(0xEE);
    for at in 0..size(parts) {
        // CAST: widening.
        let addr = base.wrapping_add(at as u64);
        if store.put(token, addr, &[RawBuffer::numbered(at)]).is_err() {
            return false;
        }
    }
    let arrived = (0..size(parts)).all(|at| {
        let place = place(parts, at);
        place.is_some_and(|p| store.buffer.get(p) == RawBuffer::numbered(at))
    });
    let len = store.buffer.run().len();
    let touched = store.buffer.count(0, len, |b| b != 0xEE);
    let own = (0..size(parts)).filter(|at| RawBuffer::numbered(*at) != 0xEE);
    // CAST: widening.
    let past = base.wrapping_add(size(parts) as u64);
    arrived && touched == own.count() && store.put(token, past, &[1]) == Err(Denied::Bounds)
}

#[kernel::macros::kunit_tests(ndk_engine_memory_tests_staging)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_odd_pieces_are_found_from_every_offset() -> Result {
        let store = Store::new(16384)?;
        let token = store.fast(ODD.len())?;
        kunit_assert_eq!(store.stage(token, &ODD)?, ODD.len());
        let len = size(&ODD);
        // CAST: widening.
        assert!(store.register(token, WRITE, len as u64));
        let access = store
            .table
            .access(token, PEER, AccessFlag::RemoteWrite, BASE, len as u64);
        assert!(access.is_ok());
        if let Ok(access) = access {
            for at in cases(0..len) {
                // CAST: widening.
                let run = access.run(at as u64);
                let want = place(&ODD, at).ok_or(EINVAL)?;
                kunit_assert_eq!(run.addr(), store.buffer.run().addr() + want);
                // A run goes to the end of its piece: the byte behind it is another piece's.
                let next = place(&ODD, at + run.len());
                assert!(next != Some(want + run.len()));
                assert!(!run.is_empty());
                assert!(at + run.len() <= len);
            }
            // CAST: widening.
            assert!(access.run(len as u64).is_empty());
        }
        assert!(leads_to(&store, token, BASE, &ODD));
        Ok(())
    }

    #[test]
    fn a_message_over_every_border_arrives_in_the_right_pieces() -> Result {
        let store = Store::new(16384)?;
        let token = store.fast(ODD.len())?;
        store.stage(token, &ODD)?;
        let len = size(&ODD);
        // CAST: widening.
        assert!(store.register(token, WRITE, len as u64));
        let mut message = KVVec::from_elem(0u8, len, GFP_KERNEL)?;
        for (at, byte) in message.iter_mut().enumerate() {
            *byte = RawBuffer::numbered(at);
        }
        for from in cases([0, 1, 2, 4, 5, 4099, 4100, 4107, 4362, len - 1]) {
            store.buffer.fill(0xEE);
            let bytes = message.get(from..).unwrap_or_default();
            // CAST: widening.
            kunit_assert_eq!(store.put(token, BASE + from as u64, bytes), Ok(()));
            for at in cases(0..len) {
                let want = if at < from {
                    0xEE
                } else {
                    RawBuffer::numbered(at)
                };
                kunit_assert_eq!(store.buffer.get(place(&ODD, at).ok_or(EINVAL)?), want);
            }
        }
        Ok(())
    }

    #[test]
    fn neighbours_are_joined_and_take_one_place() -> Result {
        let store = Store::new(8192)?;
        let token = store.fast(2)?;
        // Five pieces, two runs.
        let parts = [(0, 512), (512, 1), (513, 511), (4096, 1024), (5120, 1024)];
        kunit_assert_eq!(store.stage(token, &parts)?, 5);
        assert!(store.register(token, WRITE, 3072));
        let access = store
            .table
            .access(token, PEER, AccessFlag::RemoteWrite, BASE, 3072);
        assert!(access.is_ok_and(|a| {
            a.run(0).len() == 1024 && a.run(1023).len() == 1 && a.run(1024).len() == 2048
        }));
        assert!(leads_to(&store, token, BASE, &parts));
        Ok(())
    }

    #[test]
    fn a_region_takes_as_many_pieces_as_it_was_made_for() -> Result {
        let store = Store::new(8192)?;
        let parts = [(0, 16), (100, 16), (200, 16), (300, 16)];
        for room in cases(0..=4) {
            let token = store.fast(room)?;
            // Both lists of the region have the same room.
            for round in cases(0..3) {
                kunit_assert_eq!(store.stage(token, &parts)?, room);
                let token = bumped(token, round);
                // CAST: widening.
                let len = 16 * room as u64;
                assert!(!store.register(token, WRITE, len + 1));
                assert!(store.register(token, WRITE, len));
                let taken = parts.get(..room).unwrap_or_default();
                assert!(leads_to(&store, token, BASE, taken));
                kunit_assert_eq!(store.table.revoke(token, OWN), Ok(()));
            }
        }
        Ok(())
    }

    #[test]
    fn registering_more_than_is_mapped_fails_and_leaves_nothing_valid() -> Result {
        let store = Store::new(4096)?;
        let token = store.fast(2)?;
        store.stage(token, &[(0, 100), (200, 28)])?;
        let register = |len| store.table.register(token, attr(WRITE, BASE, len));
        for len in cases([129, 130, 4096, u64::MAX]) {
            kunit_assert_eq!(register(len), Err(RegisterError::TooLong));
            kunit_assert_eq!(store.denial(token), Some(Denied::Token));
        }
        // The mapping is still staged, and a part of it may be registered.
        kunit_assert_eq!(register(127), Ok(()));
        kunit_assert_eq!(store.put(token, BASE + 126, &[1]), Ok(()));
        kunit_assert_eq!(store.put(token, BASE + 127, &[1]), Err(Denied::Bounds));
        kunit_assert_eq!(store.put(token, BASE + 126, &[1; 2]), Err(Denied::Bounds));
        kunit_assert_eq!(store.buffer.get(226), 1);
        kunit_assert_eq!(store.buffer.get(227), 0);
        kunit_assert_eq!(store.table.revoke(token, OWN), Ok(()));
        kunit_assert_eq!(register(128), Ok(()));
        Ok(())
    }

    #[test]
    fn registering_what_is_still_valid_fails_and_changes_nothing() -> Result {
        let store = Store::new(4096)?;
        let token = store.registered(64, WRITE)?;
        store.stage(token, &[(1024, 64)])?;
        for by in cases([0, 1, 255]) {
            let next = bumped(token, by);
            let again = store.table.register(next, attr(ALL, BASE + 64, 64));
            kunit_assert_eq!(again, Err(RegisterError::Valid));
        }
        assert!(leads_to(&store, token, BASE, &[(0, 64)]));
        kunit_assert_eq!(store.denial(bumped(token, 1)), Some(Denied::Token));
        let access = store.table.access(token, PEER, READ, BASE, 1);
        assert!(matches!(access, Err(Denied::Rights)));
        Ok(())
    }

    #[test]
    fn registering_waits_while_an_old_access_runs() -> Result {
        let store = Store::new(4096)?;
        let token = store.registered(64, WRITE)?;
        let access = store
            .table
            .access(token, PEER, AccessFlag::RemoteWrite, BASE, 64);
        assert!(access.is_ok());
        kunit_assert_eq!(store.table.revoke(token, OWN), Ok(()));
        store.stage(token, &[(1024, 64)])?;
        let next = bumped(token, 1);
        let register = || store.table.register(next, attr(WRITE, BASE, 64));
        kunit_assert_eq!(register(), Err(RegisterError::Busy));
        kunit_assert_eq!(store.denial(next), Some(Denied::Token));
        // The old access still leads to the old memory.
        assert!(access
            .as_ref()
            .is_ok_and(|a| a.run(0).write(&[4; 64]) == Ok(64)));
        assert!(store.buffer.is(0, 64, 4));
        assert!(store.buffer.is(64, 4032, 0));
        drop(access);
        kunit_assert_eq!(register(), Ok(()));
        assert!(leads_to(&store, next, BASE, &[(1024, 64)]));
        Ok(())
    }

    #[test]
    fn only_a_fast_register_region_of_the_domain_is_staged_and_registered() -> Result {
        let store = Store::new(4096)?;
        let (fixed, window) = (store.fixed(64, WRITE)?, store.table.add_window(OWN, None)?);
        let fast = store.fast(1)?;
        let gone = store.fast(1)?;
        store.table.remove(gone.index());
        for token in cases([fixed, window, gone, Token::LOCAL_MEMORY]) {
            assert!(store.stage(token, &[(0, 64)]).is_err());
            let register = store.table.register(bumped(token, 1), attr(WRITE, BASE, 0));
            kunit_assert_eq!(register, Err(RegisterError::NotAllowed));
            kunit_assert_eq!(store.denial(bumped(token, 1)), Some(Denied::Token));
        }
        kunit_assert_eq!(store.stage(fast, &[(0, 64)])?, 1);
        let mut foreign = attr(WRITE, BASE, 64);
        foreign.domain = OTHER;
        kunit_assert_eq!(
            store.table.register(fast, foreign),
            Err(RegisterError::NotAllowed)
        );
        kunit_assert_eq!(store.denial(fast), Some(Denied::Token));
        assert!(store.takes(fixed));
        assert!(store.register(fast, WRITE, 64));
        Ok(())
    }

    #[test]
    fn a_mapping_does_not_outlive_its_region() -> Result {
        let store = Store::new(4096)?;
        let old = store.fast(4)?;
        store.stage(old, &[(0, 64)])?;
        store.table.remove(old.index());
        let new = store.fast(4)?;
        kunit_assert_eq!(new.index(), old.index());
        let register = |len| store.table.register(new, attr(WRITE, BASE, len));
        kunit_assert_eq!(register(1), Err(RegisterError::TooLong));
        kunit_assert_eq!(register(0), Ok(()));
        kunit_assert_eq!(store.put(new, BASE, &[1]), Err(Denied::Bounds));
        kunit_assert_eq!(store.table.revoke(new, OWN), Ok(()));
        // Live pieces do not outlive the region either.
        store.stage(new, &[(0, 64)])?;
        kunit_assert_eq!(register(64), Ok(()));
        store.table.remove(new.index());
        let newest = store.fast(4)?;
        assert!(!store.register(newest, WRITE, 1));
        assert!(store.buffer.is(0, 4096, 0));
        Ok(())
    }

    #[test]
    fn the_last_mapping_before_a_registration_counts() -> Result {
        let store = Store::new(4096)?;
        let token = store.fast(2)?;
        store.stage(token, &[(0, 64), (128, 64)])?;
        store.stage(token, &[(512, 10)])?;
        store.stage(token, &[(1024, 32), (2048, 1)])?;
        assert!(!store.register(token, WRITE, 34));
        assert!(store.register(token, WRITE, 33));
        assert!(leads_to(&store, token, BASE, &[(1024, 32), (2048, 1)]));
        Ok(())
    }

    /// Map, register, access, then the peer's invalidation, or the host's behind it, and again.
    #[test]
    fn nvme_maps_registers_and_finds_it_invalidated() -> Result {
        let store = Store::new(16384)?;
        let token = store.fast(4)?;
        for round in cases(0..20u8) {
            let key = bumped(token, round);
            let at = usize::from(round) * 256;
            let parts = [(at, 100), (at + 128, 28)];
            kunit_assert_eq!(store.stage(token, &parts)?, 2);
            assert!(store.register(key, WRITE, 128));
            assert!(leads_to(&store, key, BASE, &parts));
            let by_peer = round % 3 != 0;
            if by_peer {
                kunit_assert_eq!(store.table.revoke_remote(key, PEER), Ok(()));
            }
            let local = store.table.revoke(key, OWN);
            match by_peer {
                true => kunit_assert_eq!(local, Err(RevokeError::AlreadyInvalid)),
                false => kunit_assert_eq!(local, Ok(())),
            }
            assert!(store.table.is_drained(key));
            kunit_assert_eq!(store.put(key, BASE, &[1]), Err(Denied::Token));
        }
        Ok(())
    }

    /// The next buffer is mapped while the old registration is live, and in use by the target.
    #[test]
    fn iser_maps_the_next_buffer_while_the_old_one_is_in_use() -> Result {
        let store = Store::new(16384)?;
        let token = store.fast(2)?;
        let parts = |round: u8| {
            let at = usize::from(round) * 512;
            [(at, 64), (at + 256, 64)]
        };
        store.stage(token, &parts(0))?;
        assert!(store.register(token, WRITE, 128));
        for round in cases(0..20u8) {
            let (old, new) = (bumped(token, round), bumped(token, round + 1));
            let access = store
                .table
                .access(old, PEER, AccessFlag::RemoteWrite, BASE, 128);
            store.stage(token, &parts(round + 1))?;
            assert!(leads_to(&store, old, BASE, &parts(round)));
            assert!(access
                .as_ref()
                .is_ok_and(|a| a.run(64).write(&[9; 99]) == Ok(64)));
            drop(access);
            assert!(store.buffer.is(usize::from(round) * 512 + 256, 64, 9));
            kunit_assert_eq!(store.put(new, BASE, &[1]), Err(Denied::Token));
            // The chain [LOCAL_INV old, REG_MR new].
            kunit_assert_eq!(store.table.revoke(old, OWN), Ok(()));
            assert!(store.register(new, WRITE, 128));
            assert!(leads_to(&store, new, BASE, &parts(round + 1)));
            kunit_assert_eq!(store.put(old, BASE, &[1]), Err(Denied::Token));
        }
        Ok(())
    }

    /// The next buffer is mapped before the queued invalidation is executed, while an access still
    /// runs; the registration behind the invalidation waits for the access.
    #[test]
    fn srp_maps_before_its_invalidation_is_executed() -> Result {
        let store = Store::new(16384)?;
        let token = store.registered(256, WRITE)?;
        let mut old = token;
        for round in cases(1..20u8) {
            let new = bumped(token, round);
            let parts = [(usize::from(round) * 256, 256)];
            let access = store
                .table
                .access(old, PEER, AccessFlag::RemoteWrite, BASE, 1);
            store.stage(token, &parts)?;
            kunit_assert_eq!(store.table.revoke(old, OWN), Ok(()));
            let register = || store.table.register(new, attr(WRITE, BASE, 256));
            kunit_assert_eq!(register(), Err(RegisterError::Busy));
            assert!(!store.table.is_drained(old));
            drop(access);
            assert!(store.table.is_drained(old));
            kunit_assert_eq!(register(), Ok(()));
            assert!(leads_to(&store, new, BASE, &parts));
            kunit_assert_eq!(store.put(old, BASE, &[1]), Err(Denied::Token));
            old = new;
        }
        Ok(())
    }

    /// The base address is made of the XID and is unrelated to the addresses of the pages.
    #[test]
    fn nfs_chooses_the_base_address_freely() -> Result {
        let store = Store::new(16384)?;
        let token = store.fast(ODD.len())?;
        let len = size(&ODD) as u64; // CAST: widening.
        let bases = [
            0xDEAD_BEEF_0000_0000,
            0x0000_0001_0000_0FFF,
            0xFFFF_FFFF_0000_0123,
            u64::MAX - len + 1,
            0,
            1,
        ];
        let mut key = token;
        for base in cases(bases) {
            key = bumped(key, 1);
            store.stage(token, &ODD)?;
            let register = store.table.register(key, attr(WRITE, base, len));
            kunit_assert_eq!(register, Ok(()));
            kunit_assert_eq!(
                store.put(key, base.wrapping_sub(1), &[1]),
                Err(Denied::Bounds)
            );
            kunit_assert_eq!(store.put(key, base + 4, &[7; 4096]), Ok(()));
            assert!(store.buffer.is(4096, 4096, 7));
            kunit_assert_eq!(store.table.revoke(key, OWN), Ok(()));
        }
        // The XID takes part: the same offset under another one is outside.
        let (xid, other) = (0x1122_3344u64 << 32, 0x1122_3345u64 << 32);
        key = bumped(key, 1);
        store.stage(token, &ODD)?;
        kunit_assert_eq!(store.table.register(key, attr(WRITE, xid + 5, len)), Ok(()));
        assert!(leads_to(&store, key, xid + 5, &ODD));
        kunit_assert_eq!(store.put(key, other + 5, &[1]), Err(Denied::Bounds));
        kunit_assert_eq!(store.put(key, 5, &[1]), Err(Denied::Bounds));
        Ok(())
    }

    /// Chunks are mapped once; each transfer invalidates and registers under the next key.
    #[test]
    fn rtrs_registers_again_and_again_without_a_new_mapping() -> Result {
        let store = Store::new(8192)?;
        let token = store.fast(2)?;
        let parts = [(128, 1024), (4096, 1024)];
        store.stage(token, &parts)?;
        let mut old = bumped(token, 255);
        for round in cases(0..600u32) {
            // CAST: the low byte.
            let new = bumped(token, round as u8);
            assert!(store.register(new, WRITE, 2048));
            kunit_assert_eq!(store.put(new, BASE + 1000, &[round as u8; 100]), Ok(()));
            assert!(store.buffer.is(1128, 24, round as u8));
            assert!(store.buffer.is(4096, 76, round as u8));
            kunit_assert_eq!(store.put(old, BASE, &[1]), Err(Denied::Token));
            kunit_assert_eq!(store.table.revoke(new, OWN), Ok(()));
            kunit_assert_eq!(store.put(new, BASE, &[1]), Err(Denied::Token));
            old = new;
        }
        // A new mapping takes the place of the old one.
        store.stage(token, &[(6000, 64)])?;
        assert!(!store.register(token, WRITE, 2048));
        assert!(store.register(token, WRITE, 64));
        assert!(leads_to(&store, token, BASE, &[(6000, 64)]));
        Ok(())
    }

    /// A read sink: the owner places data under the token, then the read invalidates it.
    #[test]
    fn rdma_rw_registers_a_sink_that_its_own_read_invalidates() -> Result {
        let store = Store::new(4096)?;
        let token = store.fast(2)?;
        let mut stale = None;
        for round in cases(0..10u8) {
            let key = bumped(token, round);
            store.stage(token, &[(0, 100), (256, 100)])?;
            assert!(store.register(key, WRITE, 200));
            let sink = store
                .table
                .access(key, OWNER, AccessFlag::LocalWrite, BASE + 50, 100);
            let bytes = [round + 1; 50];
            assert!(sink.is_ok_and(|s| {
                s.run(0).write(&bytes) == Ok(50) && s.run(50).write(&bytes) == Ok(50)
            }));
            assert!(store.buffer.is(50, 50, round + 1));
            assert!(store.buffer.is(256, 50, round + 1));
            // The sink is not a source for the peer, and an old key is not a new one.
            let read = store.table.access(key, PEER, READ, BASE, 1);
            assert!(matches!(read, Err(Denied::Rights)));
            if let Some(stale) = stale {
                kunit_assert_eq!(store.table.revoke(stale, OWN), Err(RevokeError::NotAllowed));
            }
            kunit_assert_eq!(store.table.revoke(key, OWN), Ok(()));
            let sink = store.table.access(key, OWNER, LOCAL, BASE, 1);
            assert!(matches!(sink, Err(Denied::Token)));
            stale = Some(key);
        }
        Ok(())
    }

    #[test]
    fn registrations_alternate_between_two_lists_without_mixing_them() -> Result {
        let store = Store::new(16384)?;
        let token = store.fast(ODD.len())?;
        let small = [(2000, 5)];
        let middle = [(3000, 50), (2000, 20), (5000, 30)];
        let sets: [&[(usize, usize)]; 3] = [&ODD, &small, &middle];
        for round in cases(0..30usize) {
            let parts = sets.get(round % 3).ok_or(EINVAL)?;
            // CAST: below 30.
            let key = bumped(token, round as u8);
            kunit_assert_eq!(store.stage(token, parts)?, parts.len());
            // Now and then a mapping is thrown away, and a registration repeated.
            if round % 4 == 1 {
                store.stage(token, &small)?;
                kunit_assert_eq!(store.stage(token, parts)?, parts.len());
            }
            // CAST: widening.
            let len = size(parts) as u64;
            assert!(!store.register(key, WRITE, len + 1));
            assert!(store.register(key, WRITE, len));
            if round % 5 == 2 {
                kunit_assert_eq!(store.table.revoke(key, OWN), Ok(()));
                assert!(store.register(key, WRITE, len));
            }
            if round < 3 || round % 7 == 0 {
                assert!(leads_to(&store, key, BASE, parts));
            }
            let last = parts.last().ok_or(EINVAL)?;
            kunit_assert_eq!(store.put(key, BASE + len - 1, &[77]), Ok(()));
            kunit_assert_eq!(store.buffer.get(last.0 + last.1 - 1), 77);
            kunit_assert_eq!(store.put(key, BASE + len, &[77]), Err(Denied::Bounds));
            kunit_assert_eq!(store.table.revoke(key, OWN), Ok(()));
        }
        Ok(())
    }

    /// Stages `parts` with a request, and returns its number.
    fn prepare(store: &Store, token: Token, parts: &[(usize, usize)]) -> Result<u32> {
        let mut prepared = store.table.prepare(token.index(), parts.len())?;
        let list = prepared.list().ok_or(EINVAL)?;
        for (at, len) in parts {
            let part = store.buffer.part(*at, *len)?;
            list.push(part).map_err(|_| ENOSPC)?;
        }
        prepared.stage().ok_or(EINVAL)
    }

    #[test]
    fn registrations_wait_with_lists_of_their_own_and_few_are_kept_after_that() -> Result {
        const WAITING: usize = 300;
        let store = Store::new(4096)?;
        let token = store.fast(2)?;
        let mut numbers = KVec::new();
        for at in cases(0..WAITING) {
            numbers.push(
                prepare(&store, token, &[(at, 1), (1000 + at, 2)])?,
                GFP_KERNEL,
            )?;
        }
        kunit_assert_eq!(store.table.lists(token.index()), (0, WAITING));
        // In any order; every third request is not carried out.
        for (round, at) in cases((0..WAITING).map(|n| n * 7 % WAITING).enumerate()) {
            let number = *numbers.get(at).ok_or(EINVAL)?;
            // CAST: a few hundred.
            let key = bumped(token, round as u8);
            if round % 3 == 2 {
                store.table.drop_staged(token.index(), number);
                store.table.drop_staged(token.index(), number);
            }
            let made = store
                .table
                .register_staged(key, attr(WRITE, BASE, 3), Some(number));
            if round % 3 == 2 {
                kunit_assert_eq!(made, Err(RegisterError::NotAllowed));
                continue;
            }
            kunit_assert_eq!(made, Ok(()));
            assert!(leads_to(&store, key, BASE, &[(at, 1), (1000 + at, 2)]));
            kunit_assert_eq!(store.table.revoke(key, OWN), Ok(()));
        }
        let (spares, waiting) = store.table.lists(token.index());
        kunit_assert_eq!(waiting, 0);
        assert!((1..=MOST_SPARES).contains(&spares));
        // The list of a registration that is too long is kept, too.
        let number = prepare(&store, token, &[(0, 1)])?;
        let made = store
            .table
            .register_staged(token, attr(WRITE, BASE, 2), Some(number));
        kunit_assert_eq!(made, Err(RegisterError::TooLong));
        drop(store.table.prepare(token.index(), 2)?);
        kunit_assert_eq!(store.table.lists(token.index()), (spares, 0));
        Ok(())
    }

    #[test]
    fn lists_are_filled_under_no_lock() -> Result {
        let store = Store::new(4096)?;
        let token = store.fast(1)?;
        let mut was_free = false;
        let staged = store.table.stage(token.index(), |list| {
            was_free = may_run_here();
            list.push(store.buffer.part(0, 64)?).map_err(|_| ENOSPC)
        });
        kunit_assert_eq!(staged, Some(Ok(())));
        assert!(was_free);
        Ok(())
    }

    #[test]
    fn a_mapping_of_the_last_owner_is_nothing_to_the_next() -> Result {
        let store = Store::new(4096)?;
        let old = store.fast(1)?;
        let mut prepared = store.table.prepare(old.index(), 1)?;
        let list = prepared.list().ok_or(EINVAL)?;
        assert!(list.push(store.buffer.part(0, 64)?).is_ok());
        store.table.remove(old.index());
        let middle = store.fast(1)?;
        kunit_assert_eq!(middle.index(), old.index());
        assert!(prepared.stage().is_none());
        kunit_assert_eq!(store.table.lists(middle.index()), (1, 0));
        assert!(!store.register(middle, WRITE, 64));
        let mut new = None;
        let staged = store.table.stage(middle.index(), |list| {
            let pushed = list.push(store.buffer.part(0, 64)?);
            store.table.remove(middle.index());
            new = store.fast(1).ok();
            pushed.map_err(|_| ENOSPC)
        });
        assert!(staged.is_none());
        let new = new.ok_or(EINVAL)?;
        kunit_assert_eq!(new.index(), old.index());
        assert!(!store.register(new, WRITE, 64));
        kunit_assert_eq!(store.table.lists(new.index()), (1, 0));
        Ok(())
    }
}
