// SPDX-License-Identifier: GPL-2.0

//! Receives that a program posts without a call: the order in which messages take them, and the end
//! of those that no message takes.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::looking::ProgramReceives,
    kunit::harness::{
        EndAttr,
        QpPair, //
    },
    rdma::values::qp::QpState,
    sys::shared::tests::{
        receives,
        Program, //
    }, //
};

/// The number of receives that the program's queue takes.
const LIMIT: u32 = 100;
/// The number of elements that each receive may have.
const WIDTH: u32 = 2;

/// Two connected ends, the receives of the second one posted by a program.
fn shared() -> Result<(QpPair, Program)> {
    let attr = EndAttr::deep(256, LIMIT * 2);
    let qp_pair = QpPair::with(&attr, &attr)?;
    let (ring, program) = receives(LIMIT, WIDTH)?;
    qp_pair.b.qp.share_receives(ProgramReceives::new(ring))?;
    Ok((qp_pair, program))
}

#[kernel::macros::kunit_tests(ndk_engine_qp_tests_shared)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            counters::Counter,
            host::Host,
            looking::{
                IN_ERROR,
                WAITING, //
            },
            qp::QueuePair, //
        },
        kunit::{
            harness::{
                cases,
                connect_pair,
                wait_until,
                EngineHost,
                RNR_MS, //
            },
            requests::*, //
        },
        rdma::values::status::Status,
        sys::{
            clock::StoppedClock,
            time,
            timer::Expires, //
        }, //
    };

    impl Program {
        fn posts(&self, contexts: core::ops::Range<u32>) -> bool {
            let mut all = contexts;
            all.all(|context| self.post(LIMIT, WIDTH, context, &[]))
        }
    }

    #[test]
    fn a_message_takes_what_the_program_has_posted_before_in_its_order() -> Result {
        let (qp_pair, program) = shared()?;
        let (source, sink) = (qp_pair.a.filled(40, 31)?, qp_pair.b.buffer(40)?);
        assert!(program.post(LIMIT, WIDTH, 70, &[sink.whole()]));
        assert!(program.posts(0..60));
        qp_pair.a.post(7, SEND, &[source.whole()])?;
        for n in cases(0..60) {
            qp_pair.a.post(n, SEND, &[])?;
        }
        assert!(qp_pair.b.receives.next_is(70, Status::Success));
        assert!(sink.holds(0, 40, 31, 0));
        assert!(qp_pair.b.receives.next_are(0..60, Status::Success));
        kunit_assert_eq!(qp_pair.counted(Counter::RnrWaits), 0);
        Ok(())
    }

    #[test]
    fn what_is_posted_by_a_call_and_without_one_is_all_taken() -> Result {
        let (qp_pair, program) = shared()?;
        qp_pair.b.receive(1, &[])?;
        assert!(program.posts(2..4));
        for n in cases(0..3) {
            qp_pair.a.post(n, SEND, &[])?;
        }
        assert!(qp_pair.b.receives.next_are(1..4, Status::Success));
        Ok(())
    }

    #[test]
    fn a_message_that_waits_finds_what_is_posted_later_without_a_call() -> Result {
        let (qp_pair, program) = shared()?;
        for n in cases(0..5) {
            qp_pair.a.post(n, SEND, &[])?;
            let waits = || qp_pair.counted(Counter::RnrWaits) == n + 1;
            assert!(wait_until(waits));
            assert!(qp_pair.b.receives.stays_empty());
            // CAST: a small number.
            assert!(program.posts(n as u32..n as u32 + 1));
            assert!(qp_pair.b.receives.next_is(n, Status::Success));
        }
        // The same for a receive that is posted by a call.
        qp_pair.a.post(5, SEND, &[])?;
        assert!(wait_until(|| qp_pair.counted(Counter::RnrWaits) == 6));
        qp_pair.b.receive(5, &[])?;
        assert!(qp_pair.b.receives.next_is(5, Status::Success));
        Ok(())
    }

    #[test]
    fn in_error_what_was_posted_is_cancelled_once_and_so_is_what_comes_later() -> Result {
        let (qp_pair, program) = shared()?;
        qp_pair.b.receive(7, &[])?;
        assert!(program.posts(0..LIMIT));
        qp_pair.b.qp.fail();
        assert!(qp_pair.b.receives.next_is(7, Status::Flushed));
        assert!(qp_pair
            .b
            .receives
            .next_are(0..LIMIT.into(), Status::Flushed));
        assert!(qp_pair.b.receives.stays_empty());
        for round in cases(0..3) {
            assert!(program.posts(round..round + 70));
            let flushed = u64::from(round)..u64::from(round) + 70;
            assert!(qp_pair.b.receives.next_are(flushed, Status::Flushed));
        }
        assert!(qp_pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn a_reset_forgets_what_was_posted_and_the_next_connection_begins_anew() -> Result {
        let (qp_pair, program) = shared()?;
        qp_pair.b.qp.fail();
        assert!(qp_pair.is_down());
        assert!(wait_until(|| qp_pair.b.qp.modify(QpState::Reset).is_ok()));
        assert!(wait_until(|| qp_pair.a.qp.modify(QpState::Reset).is_ok()));
        // Between the resets, when there is no look.
        qp_pair.b.qp.modify(QpState::Init)?;
        assert!(program.posts(0..4));
        qp_pair.b.qp.fail();
        assert!(wait_until(|| qp_pair.b.qp.modify(QpState::Reset).is_ok()));
        let _ = qp_pair.b.receives.cq.poll(usize::MAX, |_| ());
        assert!(program.posts(10..11));
        qp_pair.connect(connect_pair)?;
        qp_pair.a.post(1, SEND, &[])?;
        assert!(qp_pair.b.receives.next_is(10, Status::Success));
        Ok(())
    }

    #[test]
    fn what_is_left_at_the_end_goes_without_a_completion() -> Result {
        let (qp_pair, program) = shared()?;
        let receives = qp_pair.b.receives.clone();
        assert!(program.posts(0..LIMIT));
        drop(qp_pair.b);
        assert!(receives.stays_empty());
        // No look takes receives out any more: the program's queue stays full.
        assert!(!program.post(LIMIT, WIDTH, 1, &[]));
        Ok(())
    }

    #[test]
    fn a_program_that_says_what_cannot_be_hurts_only_itself() -> Result {
        let (qp_pair, program) = shared()?;
        assert!(program.posts(0..3));
        program.set(0, LIMIT + 1);
        qp_pair.a.post(1, SEND, &[])?;
        assert!(wait_until(|| qp_pair.counted(Counter::RnrWaits) == 1));
        program.set(0, u32::MAX);
        assert!(qp_pair.b.receives.stays_empty());
        program.set(0, 3);
        assert!(qp_pair.b.receives.next_is(0, Status::Success));
        qp_pair.b.qp.fail();
        assert!(qp_pair.b.receives.next_are(1..3, Status::Flushed));
        Ok(())
    }

    /// A host, and the receives of a program on it.
    fn host_with_receives() -> Result<(EngineHost, Arc<Host>, ProgramReceives)> {
        let engine_host = EngineHost::new(RNR_MS)?;
        let host = engine_host.device()?.host.clone();
        let (ring, _) = receives(1, 1)?;
        Ok((engine_host, host, ProgramReceives::new(ring)))
    }

    #[test]
    fn each_look_of_a_host_has_its_slot_and_none_is_put_off_for_ever() -> Result {
        let _clock = StoppedClock::new();
        let (_engine_host, host, _) = host_with_receives()?;
        let now = time::now_ns();
        for n in cases(0..10) {
            kunit_assert_eq!(host.take_slot(now), now + n * 10_000);
        }
        for _ in 0..200_000 {
            let _ = host.take_slot(now);
        }
        kunit_assert_eq!(host.take_slot(now), now + 1_000_000_000);
        // Time goes on without a look.
        let later = now + 2_000_000_000;
        kunit_assert_eq!(host.take_slot(later), later);
        Ok(())
    }

    #[test]
    fn a_queue_takes_one_slot_for_a_look_however_often_it_is_armed() -> Result {
        let _clock = StoppedClock::new();
        let (_engine_host, host, mut receives) = host_with_receives()?;
        let now = time::now_ns();
        receives.begin(IN_ERROR);
        kunit_assert_eq!(receives.next_look(), Some(1_000_000));
        for _ in 0..1000 {
            // Not armed for a later time, but for an earlier one if a message waits.
            assert!(receives.next_look().is_none());
        }
        receives.begin(WAITING);
        kunit_assert_eq!(receives.next_look(), Some(20_000));
        receives.back_off(WAITING);
        assert!(receives.next_look().is_none());
        kunit_assert_eq!(host.take_slot(now), now);
        // The time of the look has come, its slot has not; the look takes one slot only.
        for _ in 0..10 {
            kunit_assert_eq!(receives.slot_to_come(&host), Some(10_000));
            assert!(receives.next_look().is_none());
        }
        kunit_assert_eq!(host.take_slot(now), now + 20_000);
        Ok(())
    }

    #[test]
    fn a_look_in_vain_makes_the_next_one_later_up_to_a_limit() -> Result {
        let clock = StoppedClock::new();
        let (_engine_host, host, mut receives) = host_with_receives()?;
        receives.begin(WAITING);
        for us in cases([20, 30, 45, 67]) {
            kunit_assert_eq!(receives.next_look().map(|ns| ns / 1000), Some(us));
            clock.pass(1);
            assert!(receives.slot_to_come(&host).is_none());
            receives.back_off(WAITING);
        }
        for _ in 0..100 {
            receives.back_off(WAITING);
        }
        kunit_assert_eq!(receives.next_look(), Some(500_000_000));
        receives.clear_due();
        receives.begin(IN_ERROR);
        kunit_assert_eq!(receives.next_look(), Some(1_000_000));
        Ok(())
    }

    #[test]
    fn a_look_does_not_cut_down_a_flush_that_is_under_way() -> Result {
        let (qp_pair, program) = shared()?;
        qp_pair.b.qp.fail();
        assert!(qp_pair.is_down());
        assert!(wait_until(|| qp_pair.b.qp.modify(QpState::Reset).is_ok()));
        qp_pair.b.qp.modify(QpState::Init)?;
        assert!(program.posts(0..60));
        // No later look finds these receives.
        let _clock = StoppedClock::new();
        // As in a failure, with an earlier timer that runs out in between.
        qp_pair.b.qp.rq.lock().begin_flush();
        let seen = || {
            let rq = qp_pair.b.qp.rq.lock();
            rq.shared.as_ref().map(|shared| shared.ring.has_seen())
        };
        kunit_assert_eq!(seen(), Some(true));
        QueuePair::expired(qp_pair.b.qp.clone());
        kunit_assert_eq!(seen(), Some(false));
        assert!(qp_pair.b.receives.next_are(0..60, Status::Flushed));
        qp_pair.b.qp.fail();
        Ok(())
    }

    #[test]
    fn in_error_what_is_posted_by_a_call_does_not_put_off_the_looks() -> Result {
        let (qp_pair, program) = shared()?;
        qp_pair.b.qp.fail();
        assert!(qp_pair.is_down());
        assert!(program.posts(0..1));
        let mut calls = 0;
        let mut is_found = false;
        assert!(wait_until(|| {
            calls += 1;
            let _ = qp_pair.b.receive(1000 + calls, &[]);
            is_found |= qp_pair
                .b
                .receives
                .poll()
                .is_some_and(|e| e.context.raw() == 0);
            let _ = qp_pair.b.receives.cq.poll(usize::MAX, |entry| {
                is_found |= entry.context.raw() == 0;
            });
            is_found
        }));
        Ok(())
    }
}
