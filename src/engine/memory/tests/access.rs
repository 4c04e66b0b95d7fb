// SPDX-License-Identifier: GPL-2.0

//! The checks of each access: the whole token, the domain, the rights, the bounds.

use kernel::prelude::*;

use super::*;
use crate::{
    engine::memory::{
        slot::RegisterError,
        transfer::{
            self,
            AccessError,
            MemoryUsage,
            Payload, //
        },
        RevokeError, //
    },
    kunit::harness::{
        cases,
        EngineHost, //
    },
    rdma::values::work::RemoteAddr,
    sys::{
        requests::test_list,
        sge::Sge,
        span::test_memory, //
    }, //
};

/// The offset in the buffer, and the length, of the first run of an access.
fn first_run(store: &Store, token: Token, addr: u64, len: u64) -> Option<(u64, u64)> {
    let access = store
        .table
        .access(token, PEER, AccessFlag::RemoteWrite, addr, len);
    let access = access.ok()?;
    let run = access.run(0);
    // CAST: widening.
    Some((run.addr() as u64 - store.buffer.addr(0), run.len() as u64))
}

#[kernel::macros::kunit_tests(ndk_engine_memory_tests_access)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_with_its_own_key_and_index_alone() -> Result {
        let store = Store::new(64)?;
        for _ in 0..3 {
            store.fixed(64, WRITE)?;
        }
        let token = store.fixed(64, WRITE)?;
        for by in cases(1..=255) {
            kunit_assert_eq!(store.denial(bumped(token, by)), Some(Denied::Token));
        }
        // Every single bit of the token counts: index 4 has no neighbour in one bit.
        for bit in cases(0..32) {
            let other = Token::from_raw(token.raw() ^ (1 << bit));
            kunit_assert_eq!(store.denial(other), Some(Denied::Token));
        }
        assert!(store.takes(token));
        Ok(())
    }

    #[test]
    fn a_token_opens_in_its_own_domain_alone() -> Result {
        let store = Store::new(64)?;
        let token = store.fixed(64, ALL)?;
        kunit_assert_eq!(
            put(&store.table, token, STRANGER, BASE, &[1]),
            Err(Denied::Token)
        );
        assert!(store.buffer.is(0, 64, 0));
        for wanted in cases([AccessFlags::empty(), AccessFlag::RemoteRead.into(), LOCAL]) {
            let access = store.table.access(token, STRANGER, wanted, BASE, 0);
            assert!(matches!(access, Err(Denied::Token)));
        }
        kunit_assert_eq!(put(&store.table, token, PEER, BASE, &[1]), Ok(()));
        // A region is tied to no queue pair: the owner and all its peers may use it.
        kunit_assert_eq!(put(&store.table, token, OTHER_PEER, BASE + 1, &[2]), Ok(()));
        kunit_assert_eq!(put(&store.table, token, OWNER, BASE + 2, &[3]), Ok(()));
        kunit_assert_eq!(
            [1, 2, 3],
            [
                store.buffer.get(0),
                store.buffer.get(1),
                store.buffer.get(2)
            ]
        );
        Ok(())
    }

    #[test]
    fn rights_are_granted_exactly() -> Result {
        let store = Store::new(64)?;
        for granted in cases((0..16).map(AccessFlags::from_bits)) {
            let token = store.fixed(64, granted)?;
            for wanted in cases((0..16).map(AccessFlags::from_bits)) {
                let access = store.table.access(token, PEER, wanted, BASE, 64);
                let covered = wanted.bits() & !granted.bits() == 0;
                kunit_assert_eq!(access.err(), (!covered).then_some(Denied::Rights));
            }
            store.table.remove(token.index());
        }
        Ok(())
    }

    #[test]
    fn bounds_are_exact_at_both_ends() -> Result {
        let store = Store::new(128)?;
        let token = store.fixed(100, WRITE)?;
        // (addr, len) -> offset and length of the run
        let table = [
            ((BASE, 99), Some((0, 99))),
            ((BASE, 100), Some((0, 100))),
            ((BASE, 101), None),
            ((BASE - 1, 1), None),
            ((BASE - 1, 100), None),
            ((BASE - 1, 102), None),
            ((BASE + 1, 99), Some((1, 99))),
            ((BASE + 1, 100), None),
            ((BASE + 98, 1), Some((98, 1))),
            ((BASE + 99, 1), Some((99, 1))),
            ((BASE + 99, 2), None),
            ((BASE + 100, 1), None),
            ((BASE + 101, 1), None),
            ((0, 1), None),
            ((u64::MAX, 1), None),
        ];
        for ((addr, len), want) in cases(table) {
            kunit_assert_eq!(first_run(&store, token, addr, len), want);
        }
        Ok(())
    }

    #[test]
    fn a_byte_outside_is_never_written() -> Result {
        let store = Store::new(96)?;
        let spans = SpanList::of(store.buffer.part(32, 32)?)?;
        let token = store.table.add_fixed(spans, attr(WRITE, BASE, 32))?;
        kunit_assert_eq!(store.put(token, BASE, &[7; 33]), Err(Denied::Bounds));
        kunit_assert_eq!(store.put(token, BASE + 31, &[7; 2]), Err(Denied::Bounds));
        kunit_assert_eq!(store.put(token, BASE - 1, &[7; 2]), Err(Denied::Bounds));
        assert!(store.buffer.is(0, 96, 0));
        kunit_assert_eq!(store.put(token, BASE, &[7; 32]), Ok(()));
        assert!(store.buffer.is(0, 32, 0));
        assert!(store.buffer.is(32, 32, 7));
        assert!(store.buffer.is(64, 32, 0));
        Ok(())
    }

    #[test]
    fn a_range_that_wraps_around_is_refused() -> Result {
        let store = Store::new(4096)?;
        let spans = || SpanList::of(store.buffer.span());
        let low = store.table.add_fixed(spans()?, attr(WRITE, 0, 4096))?;
        let base = u64::MAX - 4095;
        let high = store.table.add_fixed(spans()?, attr(WRITE, base, 4096))?;
        for (token, addr, len) in cases([
            (low, u64::MAX, 2),
            (low, u64::MAX - 3, 8),
            (low, 1, u64::MAX),
            (low, 4095, u64::MAX),
            (low, 2048, u64::MAX - 2047),
            (high, base + 1, u64::MAX),
            (high, u64::MAX, 2),
            (high, u64::MAX, u64::MAX),
            (high, 0, 1),
            (high, base + 2048, u64::MAX - 2047),
        ]) {
            assert!(first_run(&store, token, addr, len).is_none());
        }
        // The last byte that an address can name.
        kunit_assert_eq!(first_run(&store, high, u64::MAX, 1), Some((4095, 1)));
        kunit_assert_eq!(first_run(&store, low, 0, 4096), Some((0, 4096)));
        Ok(())
    }

    #[test]
    fn nothing_at_all_may_be_asked_for_up_to_the_end() -> Result {
        let store = Store::new(100)?;
        let token = store.fixed(100, WRITE)?;
        for (addr, inside) in cases([
            (BASE - 1, false),
            (BASE, true),
            (BASE + 50, true),
            (BASE + 100, true),
            (BASE + 101, false),
        ]) {
            let wanted = AccessFlag::RemoteWrite;
            let access = store.table.access(token, PEER, wanted, addr, 0);
            kunit_assert_eq!(access.is_ok(), inside);
            kunit_assert_eq!(access.map_or(0, |a| a.run(0).len()), 0);
        }
        // Token and rights are checked all the same.
        let other = bumped(token, 1);
        kunit_assert_eq!(store.put(other, BASE, &[]), Err(Denied::Token));
        let access = store.table.access(token, PEER, READ, BASE, 0);
        assert!(matches!(access, Err(Denied::Rights)));
        Ok(())
    }

    #[test]
    fn an_access_gives_no_byte_beyond_what_was_asked_for() -> Result {
        let store = Store::new(100)?;
        let token = store.fixed(100, WRITE)?;
        let access = store
            .table
            .access(token, PEER, AccessFlag::RemoteWrite, BASE + 10, 20);
        assert!(access.is_ok());
        if let Ok(access) = access {
            kunit_assert_eq!(access.run(0).len(), 20);
            kunit_assert_eq!(access.run(19).len(), 1);
            kunit_assert_eq!(access.run(19).addr(), store.buffer.run().addr() + 29);
            for at in cases([20, 21, 89, 90, u64::MAX - 10, u64::MAX]) {
                assert!(access.run(at).is_empty());
            }
        }
        Ok(())
    }

    #[test]
    fn a_removed_region_is_out_of_reach() -> Result {
        let store = Store::new(64)?;
        let token = store.fixed(64, ALL)?;
        kunit_assert_eq!(store.put(token, BASE, &[1; 64]), Ok(()));
        store.table.remove(token.index());
        for by in cases(0..=255) {
            let token = bumped(token, by);
            kunit_assert_eq!(store.put(token, BASE, &[2; 64]), Err(Denied::Token));
        }
        assert!(store.buffer.is(0, 64, 1));
        Ok(())
    }

    #[test]
    fn a_region_of_all_memory_grants_its_flags_and_no_more() -> Result {
        let store = Store::new(64)?;
        let add = |rights| {
            let spans = SpanList::all(test_memory());
            store.table.add_fixed(spans, attr(rights, 0, u64::MAX))
        };
        let (local, readable) = (add(LOCAL)?, add(READ)?);
        let addr = store.buffer.addr(8);
        for (token, granted) in cases([(local, LOCAL), (readable, READ)]) {
            for wanted in cases((0..16).map(AccessFlags::from_bits)) {
                let access = store.table.access(token, PEER, wanted, addr, 8);
                kunit_assert_eq!(access.is_ok(), granted.contains_all(wanted));
            }
            kunit_assert_eq!(
                put(&store.table, token, PEER, addr, &[1; 8]),
                Err(Denied::Rights)
            );
            kunit_assert_eq!(
                put(&store.table, token, STRANGER, addr, &[1; 8]),
                Err(Denied::Token)
            );
        }
        assert!(store.buffer.is(0, 64, 0));
        let writable = add(WRITE)?;
        kunit_assert_eq!(put(&store.table, writable, PEER, addr, &[5; 8]), Ok(()));
        assert!(store.buffer.is(0, 8, 0));
        assert!(store.buffer.is(8, 8, 5));
        assert!(store.buffer.is(16, 48, 0));
        Ok(())
    }

    #[test]
    fn the_local_memory_token_means_nothing_to_a_peer() -> Result {
        let store = Store::new(64)?;
        let region = store.fixed(64, ALL)?;
        let window = store.table.add_window(OWN, None)?;
        let addr = store.buffer.addr(0);
        for key in cases(0..=255) {
            let token = Token::new(0, key).ok_or(EINVAL)?;
            for user in cases([PEER, OWNER, STRANGER]) {
                kunit_assert_eq!(
                    put(&store.table, token, user, addr, &[1]),
                    Err(Denied::Token)
                );
                let access = store.table.access(token, user, AccessFlags::empty(), 0, 0);
                assert!(matches!(access, Err(Denied::Token)));
            }
            let register = store.table.register(token, attr(ALL, 0, 0));
            kunit_assert_eq!(register, Err(RegisterError::NotAllowed));
            kunit_assert_eq!(store.table.revoke(token, OWN), Err(RevokeError::NotAllowed));
            kunit_assert_eq!(
                store.table.revoke_remote(token, PEER),
                Err(RevokeError::NotAllowed)
            );
            let bind = store.table.bind(window, token, PEER, READ, addr, 1);
            kunit_assert_eq!(bind, Err(RegisterError::NotAllowed));
            let bind = store.table.bind(token, region, PEER, READ, BASE, 1);
            kunit_assert_eq!(bind, Err(RegisterError::NotAllowed));
        }
        assert!(store.table.stage(0, |_| ()).is_none());
        assert!(store.buffer.is(0, 64, 0));
        Ok(())
    }

    #[test]
    fn a_list_uses_the_local_memory_token_and_a_named_place_does_not() -> Result {
        let engine_host = EngineHost::new(1000)?;
        let device = engine_host.device()?;
        let buffer = RawBuffer::new(64)?;
        let list = test_list(&[buffer.sge(8, 4), buffer.sge(32, 4)])?;
        let usage = MemoryUsage {
            device: &device,
            user: OWNER,
            is_trusted: true,
            wanted: AccessFlag::LocalWrite.into(),
        };
        let sink = Payload::List(usage, &list);
        kunit_assert_eq!(sink.len(), 8);
        kunit_assert_eq!(sink.check(8), Ok(()));
        kunit_assert_eq!(sink.check(9), Err(Denied::Bounds));
        kunit_assert_eq!(
            transfer::copy(&Payload::Inline(&[3; 8]), &sink, 0, 8),
            Ok(8)
        );
        kunit_assert_eq!(buffer.count(0, 64, |b| b == 3), 8);
        assert!(buffer.is(8, 4, 3));
        assert!(buffer.is(32, 4, 3));
        let usage = MemoryUsage {
            device: &device,
            user: PEER,
            is_trusted: true,
            wanted: AccessFlag::RemoteWrite.into(),
        };
        let at = RemoteAddr {
            addr: buffer.addr(0),
            token: Token::LOCAL_MEMORY,
        };
        let named = Payload::Named(usage, at, 8);
        let copied = transfer::copy(&Payload::Inline(&[4; 8]), &named, 0, 8);
        kunit_assert_eq!(copied, Err(AccessError::Sink(Denied::Token)));
        kunit_assert_eq!(buffer.count(0, 64, |b| b == 4), 0);
        Ok(())
    }

    #[test]
    fn a_list_of_registered_memory_is_checked_element_by_element() -> Result {
        let engine_host = EngineHost::new(1000)?;
        let device = engine_host.device()?;
        let buffer = RawBuffer::new(64)?;
        let add = |rights| {
            let spans = SpanList::of(buffer.span())?;
            device.regions.add_fixed(spans, attr(rights, BASE, 64))
        };
        let (writable, constant) = (add(LOCAL)?, add(AccessFlags::empty())?);
        let sge = |token, at, len| Sge::new(BASE + at, len, token);
        let copy = |sges: &[Sge]| {
            let usage = MemoryUsage {
                device: &device,
                user: OWNER,
                is_trusted: true,
                wanted: AccessFlag::LocalWrite.into(),
            };
            let Ok(list) = test_list(sges) else {
                return Err(AccessError::Sink(Denied::Token));
            };
            let sink = Payload::List(usage, &list);
            transfer::copy(&Payload::Inline(&[6; 16]), &sink, 0, 16)
        };
        let bad = Err(AccessError::Sink(Denied::Rights));
        kunit_assert_eq!(copy(&[sge(constant, 0, 8), sge(writable, 8, 8)]), bad);
        assert!(buffer.is(0, 64, 0));
        // The first element is filled before the second is refused.
        kunit_assert_eq!(copy(&[sge(writable, 0, 8), sge(constant, 8, 8)]), bad);
        assert!(buffer.is(0, 8, 6));
        assert!(buffer.is(8, 56, 0));
        let bad = Err(AccessError::Sink(Denied::Bounds));
        kunit_assert_eq!(copy(&[sge(writable, 57, 8), sge(writable, 8, 8)]), bad);
        assert!(buffer.is(8, 56, 0));
        kunit_assert_eq!(copy(&[sge(writable, 56, 8), sge(writable, 40, 8)]), Ok(16));
        assert!(buffer.is(56, 8, 6));
        assert!(buffer.is(40, 8, 6));
        assert!(buffer.is(48, 8, 0));
        Ok(())
    }
}
