// SPDX-License-Identifier: GPL-2.0

//! The choice of the requests that an injected fault hits: only those that it is meant for, and the
//! same ones with the same seed.

use super::*;

#[kernel::macros::kunit_tests(ndk_direct_tests_inject_choice)]
mod tests {
    use super::*;

    /// The messages, of 64, that a fault of that order hits, as bits.
    fn hits(order: FaultSettings) -> Result<u64> {
        let pair = QpPair::new()?;
        let _fault = Ordered::new(pair.a.device(), Fault::DelayMessage, order);
        let mut hits = 0;
        for round in 0..64 {
            let before = injected(&pair.a);
            pair.b.receive(round, &[])?;
            pair.a.post(round, SEND, &[])?;
            let arrives = pair.a.sends.next_is(round, Status::Success)
                && pair.b.receives.next_is(round, Status::Success);
            if !arrives {
                return Err(EINVAL);
            }
            hits |= (injected(&pair.a) - before) << round;
        }
        Ok(hits)
    }

    #[test]
    fn the_same_seed_is_the_same_run() -> Result {
        if !needed() {
            return Ok(());
        }
        let seeded = |seed, probability| FaultSettings {
            seed,
            probability,
            ..FaultSettings::ALWAYS
        };
        let first = hits(seeded(5, 50))?;
        kunit_assert_eq!(hits(seeded(5, 50))?, first);
        assert!((10..54).contains(&first.count_ones()));
        assert!(hits(seeded(6, 50))? != first);
        // A lower probability hits fewer of the same messages, and no others.
        let fewer = hits(seeded(5, 20))?;
        kunit_assert_eq!(fewer & !first, 0);
        assert!(fewer.count_ones() < first.count_ones());
        kunit_assert_eq!(hits(seeded(5, 100))?, u64::MAX);
        kunit_assert_eq!(hits(seeded(5, 0))?, 0);
        Ok(())
    }

    /// The number of the first write of a queue pair that `fault` hits with that seed.
    fn first_hit(fault: Fault, seed: u32) -> Result<u64> {
        let pair = QpPair::new()?;
        let sink = pair.b.buffer(8)?;
        let source = pair.a.buffer(8)?;
        let order = FaultSettings {
            probability: 10,
            seed,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(pair.a.device(), fault, order);
        for number in 1..1000 {
            pair.a
                .post(number, write(sink.remote(0)), &[source.whole()])?;
            let ended = pair.a.sends.next().map(|e| e.status);
            let succeeds = ended == Some(Status::Success);
            if !same(injected(&pair.a) == 0, succeeds) {
                return Err(EINVAL);
            }
            if !succeeds {
                return Ok(number);
            }
        }
        Ok(0)
    }

    #[test]
    fn a_request_fails_at_the_same_number_with_the_same_seed() -> Result {
        if !needed() {
            return Ok(());
        }
        for fault in cases([Fault::RefuseAccess, Fault::CompleteWith]) {
            let mut seen = 0u64;
            for seed in cases(1..9) {
                let first = first_hit(fault, seed)?;
                assert!(first > 0);
                kunit_assert_eq!(first_hit(fault, seed)?, first);
                seen |= 1 << first.min(63);
            }
            // Not all seeds hit the same write.
            assert!(seen.count_ones() > 1);
        }
        Ok(())
    }

    #[test]
    fn interval_times_and_number_are_exact() -> Result {
        if !needed() {
            return Ok(());
        }
        let every_fourth = FaultSettings {
            interval: 4,
            ..FaultSettings::ALWAYS
        };
        kunit_assert_eq!(hits(every_fourth)?, 0x8888_8888_8888_8888);
        let twice = FaultSettings {
            times: 2,
            ..every_fourth
        };
        kunit_assert_eq!(hits(twice)?, 0x88);
        for number in cases([1, 7, 64]) {
            kunit_assert_eq!(hits(nth(number))?, 1 << (number - 1));
        }
        kunit_assert_eq!(hits(nth(65))?, 0);
        Ok(())
    }

    #[test]
    fn each_queue_pair_is_counted_for_itself_and_one_can_be_meant() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        // Two queue pairs of one device.
        let third = pair
            .engine_host
            .end_in(&pair.a.domain, &EndAttr::PLAIN, None)?;
        let fourth = pair.engine_host.end(&EndAttr::PLAIN)?;
        crate::kunit::harness::connect(direct::connect, &third, &fourth)?;
        let send = |from: &End, to: &End| -> Result<u64> {
            let before = injected(from);
            to.receive(1, &[])?;
            from.post(1, SEND, &[])?;
            assert!(from.sends.next_is(1, Status::Success));
            assert!(to.receives.next_is(1, Status::Success));
            Ok(injected(from) - before)
        };
        let second = FaultSettings {
            nth: 2,
            ..FaultSettings::ALWAYS
        };
        let every_second = FaultSettings {
            interval: 2,
            ..FaultSettings::ALWAYS
        };
        for (order, hits) in cases([(second, [0, 1, 0, 0]), (every_second, [0, 1, 0, 1])]) {
            let _fault = Ordered::new(pair.a.device(), Fault::DelayMessage, order);
            for hit in cases(hits) {
                kunit_assert_eq!(send(&pair.a, &pair.b)?, hit);
                kunit_assert_eq!(send(&third, &fourth)?, hit);
            }
        }
        let one = FaultSettings {
            qp: third.qp.params.number,
            ..FaultSettings::ALWAYS
        };
        let fault = Ordered::new(pair.a.device(), Fault::DelayMessage, one);
        kunit_assert_eq!(send(&pair.a, &pair.b)?, 0);
        kunit_assert_eq!(send(&third, &fourth)?, 1);
        drop(fault);
        kunit_assert_eq!(send(&third, &fourth)?, 0);
        Ok(())
    }

    #[test]
    fn the_nth_request_is_no_receive_that_a_message_took() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let _fault = Ordered::new(pair.b.device(), Fault::CompleteWith, nth(2));
        for context in cases(1..4) {
            pair.a.receive(context, &[])?;
            pair.b.receive(context, &[])?;
            pair.a.post(context, SEND, &[])?;
            assert!(pair.a.sends.next_is(context, Status::Success));
            assert!(pair.b.receives.next_is(context, Status::Success));
        }
        pair.b.post(4, SEND, &[])?;
        assert!(pair.b.sends.next_is(4, Status::Success));
        assert!(pair.a.receives.next_is(1, Status::Success));
        pair.b.post(5, SEND, &[])?;
        assert!(pair.b.sends.next_is(5, Status::RemoteOperation));
        kunit_assert_eq!(injected(&pair.b), 1);
        Ok(())
    }

    #[test]
    fn a_message_that_takes_no_receive_is_none_that_is_hit() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let _fault = Ordered::new(
            pair.b.device(),
            Fault::CompleteWith,
            only(SiteKind::Receive),
        );
        let source = pair.a.buffer(8)?;
        pair.b.receive(1, &[])?;
        // The send is refused on its own side.
        pair.a.post(1, SEND, &[source.sge(4, 8)])?;
        assert!(pair.a.sends.next_is(1, Status::LocalAccess));
        assert!(pair.b.receives.next_is(1, Status::Flushed));
        assert!(pair.is_down());
        kunit_assert_eq!(injected(&pair.b), 0);
        Ok(())
    }

    #[test]
    fn making_an_object_fails_at_the_nth() -> Result {
        if !needed() {
            return Ok(());
        }
        use crate::{
            engine::domain::Domain,
            kunit::queues::Queue, //
        };
        let pair = QpPair::new()?;
        let device = pair.a.device();
        let third_domain = FaultSettings {
            nth: 3,
            ..only(SiteKind::Domain)
        };
        let fault = Ordered::new(device, Fault::NoMemory, third_domain);
        for number in cases(1..5) {
            let made = Domain::new(device.clone(), GFP_KERNEL);
            kunit_assert_eq!(made.err(), (number == 3).then_some(ENOMEM));
            assert!(Queue::new(device, 8, u32::MAX).is_ok());
        }
        drop(fault);
        let fault = Ordered::new(device, Fault::NoMemory, FaultSettings::ALWAYS);
        kunit_assert_eq!(Queue::new(device, 8, u32::MAX).err(), Some(ENOMEM));
        let end = pair
            .engine_host
            .end_in(&pair.a.domain, &EndAttr::PLAIN, None);
        kunit_assert_eq!(end.err(), Some(ENOMEM));
        kunit_assert_eq!(device.may_make(SiteKind::Region), Err(ENOMEM));
        drop(fault);
        assert!(Queue::new(device, 8, u32::MAX).is_ok());
        Ok(())
    }
}
