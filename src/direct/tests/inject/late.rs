// SPDX-License-Identifier: GPL-2.0

//! Messages and completions that injected faults hold up: they come later, in order, and not
//! without their connection.

use super::*;
use crate::sys::{
    clock::StoppedClock,
    time::now_ms, //
};

/// The delay, in milliseconds.
const LATE_MS: u32 = 200;

/// An order that hits the second request of each queue pair, for the delay.
const SECOND_IS_LATE: FaultSettings = FaultSettings {
    nth: 2,
    ..lasting(LATE_MS * 1000)
};

/// Returns true if the delay has passed since `begin_ms`.
fn is_over(begin_ms: u64) -> bool {
    now_ms() - begin_ms >= u64::from(LATE_MS)
}

#[kernel::macros::kunit_tests(ndk_direct_tests_inject_late)]
mod tests {
    use super::*;
    use crate::kunit::harness::{
        cases,
        sleep, //
    };

    #[test]
    fn a_message_that_is_delayed_keeps_its_place() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let order = FaultSettings {
            nth: 2,
            ..lasting(200_000)
        };
        let _fault = Ordered::new(pair.a.device(), Fault::DelayMessage, order);
        let (source, sink) = (pair.a.filled(24, 7)?, pair.b.buffer(24)?);
        let begin = now_ms();
        for at in cases(0..3usize) {
            let (to, from) = (sink.remote(at * 8), source.sge(at * 8, 8));
            pair.a.post(at as u64, write(to), &[from])?;
        }
        assert!(pair.a.sends.next_is(0, Status::Success));
        let blank = sink.is_blank(8, 16);
        assert!(blank || now_ms() - begin >= 200);
        assert!(pair.a.sends.next_are(1..3, Status::Success));
        assert!(now_ms() - begin >= 200);
        assert!(sink.holds(0, 24, 7, 0));
        Ok(())
    }

    #[test]
    fn a_completion_that_is_delayed_comes_after_its_bytes_and_in_order() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let _fault = Ordered::new(pair.a.device(), Fault::DelayCompletion, SECOND_IS_LATE);
        let (source, sink) = (pair.a.filled(24, 9)?, pair.b.buffer(24)?);
        for context in cases(0..3) {
            pair.b
                .receive(context, &[sink.sge(context as usize * 8, 8)])?;
        }
        pair.a.post(0, SEND, &[source.sge(0, 8)])?;
        // Neither the first send nor its receive is late.
        assert!(pair.a.sends.next_is(0, Status::Success));
        assert!(pair.b.receives.next_is(0, Status::Success));
        kunit_assert_eq!(injected(&pair.a), 0);
        let begin = now_ms();
        pair.a.post(1, SEND, &[source.sge(8, 8)])?;
        pair.a.post(2, SEND, &[source.sge(16, 8)])?;
        assert!(wait_until(|| sink.holds(8, 8, 9, 8)));
        let early = (
            pair.a.sends.cq.details().used,
            pair.b.receives.cq.details().used,
        );
        assert!(early == (0, 0) || is_over(begin));
        assert!(sink.is_blank(16, 8) || is_over(begin));
        assert!(pair.a.sends.next_are(1..3, Status::Success));
        assert!(pair.b.receives.next_are(1..3, Status::Success));
        assert!(is_over(begin));
        assert!(sink.holds(0, 24, 9, 0));
        kunit_assert_eq!(injected(&pair.a), 1);
        Ok(())
    }

    #[test]
    fn what_concerns_its_own_memory_alone_is_late_as_a_whole() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let _fault = Ordered::new(pair.a.device(), Fault::DelayCompletion, SECOND_IS_LATE);
        let tokens = [(); 3].map(|()| pair.a.fast(8).map(|buffer| buffer.token()));
        for (context, token) in cases((0..).zip(tokens)) {
            let (token, begin, is_hit) = (token?, now_ms(), context == 1);
            pair.a
                .post(context, register(token, 8, AccessFlag::RemoteRead), &[])?;
            assert!(!is_hit || !is_valid(&pair.a, token) || is_over(begin));
            assert!(pair.a.sends.next_is(context, Status::Success));
            assert!(is_valid(&pair.a, token));
            assert!(!is_hit || is_over(begin));
        }
        kunit_assert_eq!(injected(&pair.a), 1);
        Ok(())
    }

    #[test]
    fn a_delayed_request_is_flushed_when_the_connection_goes() -> Result {
        if !needed() {
            return Ok(());
        }
        for fault in cases([Fault::DelayMessage, Fault::DelayCompletion]) {
            let pair = QpPair::new()?;
            let _fault = Ordered::new(pair.a.device(), fault, lasting(EVER_US));
            pair.b.receive(1, &[])?;
            pair.a.post(1, SEND, &[])?;
            assert!(pair.a.sends.stays_empty());
            pair.b.qp.fail();
            assert!(pair.a.sends.next_is(1, Status::Flushed));
            assert!(pair.b.receives.next_is(1, Status::Flushed));
            assert!(pair.is_down());
        }
        Ok(())
    }

    #[test]
    fn one_message_is_late_and_then_loses_its_connection() -> Result {
        if !needed() {
            return Ok(());
        }
        for usec in cases([0, 1, LATE_MS * 1000]) {
            let pair = QpPair::new()?;
            let late = FaultSettings {
                nth: 2,
                side: FaultSide::Requester,
                ..lasting(usec)
            };
            let _late = Ordered::new(pair.a.device(), Fault::DelayCompletion, late);
            let _lost = Ordered::new(pair.a.device(), Fault::DropConnection, nth(2));
            for context in cases(0..3) {
                pair.b.receive(context, &[])?;
            }
            let mut begin = 0;
            for context in cases(0..2) {
                begin = now_ms();
                pair.a.post(context, SEND, &[])?;
                assert!(pair.b.receives.next_is(context, Status::Success));
                assert!(pair.a.sends.next_is(context, Status::Success));
            }
            assert!(usec < LATE_MS * 1000 || is_over(begin));
            assert!(pair.is_down());
            assert!(pair.b.receives.next_is(2, Status::Flushed));
            kunit_assert_eq!(injected(&pair.a), 2);
        }
        Ok(())
    }

    #[test]
    fn the_requesters_completion_alone_is_late_and_in_order() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let order = FaultSettings {
            side: FaultSide::Requester,
            ..SECOND_IS_LATE
        };
        let _fault = Ordered::new(pair.a.device(), Fault::DelayCompletion, order);
        let begin = now_ms();
        for context in cases(0..3) {
            pair.b.receive(context, &[])?;
            pair.a.post(context, SEND, &[])?;
        }
        assert!(pair.b.receives.next_are(0..2, Status::Success));
        assert!(pair.a.sends.next_is(0, Status::Success));
        // The next message waits, on both sides.
        let early = (
            pair.a.sends.cq.details().used,
            pair.b.receives.cq.details().used,
        );
        assert!(early == (0, 0) || is_over(begin));
        assert!(pair.a.sends.next_are(1..3, Status::Success));
        assert!(is_over(begin));
        assert!(pair.b.receives.next_is(2, Status::Success));
        kunit_assert_eq!(injected(&pair.a), 1);
        kunit_assert_eq!(pair.a.counted(Counter::Sends), 3);
        Ok(())
    }

    #[test]
    fn what_takes_no_receive_is_late_on_either_side() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let order = FaultSettings {
            side: FaultSide::Requester,
            ..lasting(EVER_US)
        };
        let _fault = Ordered::new(pair.a.device(), Fault::DelayCompletion, order);
        let (source, sink) = (pair.a.filled(8, 7)?, pair.b.buffer(8)?);
        pair.a.post(1, write(sink.remote(0)), &[source.whole()])?;
        assert!(wait_until(|| sink.holds(0, 8, 7, 0)));
        assert!(pair.a.sends.stays_empty());
        pair.b.qp.fail();
        assert!(pair.a.sends.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_message_that_was_delivered_is_not_known_to_be_unless_it_has_revoked() -> Result {
        if !needed() {
            return Ok(());
        }
        for revokes in cases([false, true]) {
            let pair = QpPair::new()?;
            let token = pair.b.fast(8)?.token();
            let work = register(token, 8, AccessFlag::RemoteRead);
            pair.b.post(1, work, &[])?;
            assert!(pair.b.sends.next_is(1, Status::Success));
            let order = FaultSettings {
                side: FaultSide::Requester,
                ..lasting(EVER_US)
            };
            let _fault = Ordered::new(pair.a.device(), Fault::DelayCompletion, order);
            pair.b.receive(1, &[])?;
            pair.b.receive(2, &[])?;
            let (work, status) = match revokes {
                false => (SEND, Status::Flushed),
                true => (send_invalidate(token), Status::Success),
            };
            pair.a.post(1, work, &[])?;
            pair.a.post(2, SEND, &[])?;
            assert!(pair.b.receives.next_is(1, Status::Success));
            assert!(pair.a.sends.stays_empty());
            pair.b.qp.fail();
            assert!(pair.a.sends.next_is(1, status));
            assert!(pair.a.sends.next_is(2, Status::Flushed));
            assert!(pair.b.receives.next_is(2, Status::Flushed));
            assert!(is_valid(&pair.b, token) != revokes);
            assert!(pair.is_down());
        }
        Ok(())
    }

    #[test]
    fn a_message_finds_no_receive_for_a_time() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let pair = QpPair::new()?;
        let order = FaultSettings {
            nth: 1,
            ..lasting(200_000)
        };
        let _fault = Ordered::new(pair.a.device(), Fault::Rnr, order);
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[])?;
        pair.a.post(1, SEND, &[])?;
        pair.a.post(2, SEND, &[])?;
        // The wait can be seen from both ends.
        let peer = |end: &End| end.qp.details().peer;
        assert!(wait_until(
            || peer(&pair.a).is_some_and(|p| p.own_wait_since_ms.is_some())
        ));
        assert!(peer(&pair.b).is_some_and(|p| p.peer_wait_since_ms.is_some()));
        clock.pass(199);
        sleep(20);
        assert!(pair.a.sends.stays_empty());
        clock.pass(2);
        assert!(pair.a.sends.next_are(1..3, Status::Success));
        kunit_assert_eq!(pair.a.counted(Counter::RnrWaits), 1);
        assert!(peer(&pair.a).is_some_and(|p| p.own_wait_since_ms.is_none()));
        Ok(())
    }

    #[test]
    fn a_message_that_never_finds_a_receive_fails_as_without_one() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::over(direct::connect, 200, &EndAttr::PLAIN, &EndAttr::PLAIN)?;
        let _fault = Ordered::new(pair.a.device(), Fault::Rnr, FaultSettings::ALWAYS);
        pair.b.receive(1, &[])?;
        pair.a.post(1, SEND, &[])?;
        assert!(pair.a.sends.next_is(1, Status::ReceiverNotReady));
        assert!(pair.b.receives.next_is(1, Status::Flushed));
        assert!(pair.is_down());
        kunit_assert_eq!(pair.a.counted(Counter::RnrTimeouts), 1);
        Ok(())
    }

    #[test]
    fn a_shared_queue_is_waited_for_in_vain_no_longer_than_another() -> Result {
        if !needed() {
            return Ok(());
        }
        let shared = EndAttr::shared(8);
        let pair = QpPair::over(direct::connect, 200, &EndAttr::PLAIN, &shared)?;
        let _fault = Ordered::new(pair.a.device(), Fault::Rnr, FaultSettings::ALWAYS);
        pair.b.receive(1, &[])?;
        pair.a.post(1, SEND, &[])?;
        assert!(pair.a.sends.next_is(1, Status::ReceiverNotReady));
        Ok(())
    }
}
