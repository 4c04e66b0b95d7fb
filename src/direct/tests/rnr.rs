// SPDX-License-Identifier: GPL-2.0

//! Messages that find no receive: they wait, and not for ever.

use kernel::prelude::*;

use crate::{
    kunit::harness::{
        connect_pair,
        EndAttr,
        QpPair, //
    },
    rdma::values::qp::QpState, //
};

/// Two ends between which a message waits no longer than `ms` milliseconds.
fn impatient(ms: u32) -> Result<QpPair> {
    QpPair::over(connect_pair, ms, &EndAttr::PLAIN, &EndAttr::PLAIN)
}

#[kernel::macros::kunit_tests(ndk_direct_tests_rnr)]
mod tests {
    use super::*;

    use crate::{
        engine::counters::Counter,
        kunit::{
            harness::{
                cases,
                flush_work,
                sleep,
                wait_until, //
            },
            requests::*, //
        },
        rdma::values::status::Status,
        sys::clock::StoppedClock, //
    };

    /// Returns true if `waits` messages have waited for a receive, the last one still waits, and
    /// its time has begun.
    fn has_waited(qp_pair: &QpPair, waits: u64) -> bool {
        let began = wait_until(|| qp_pair.counted(Counter::RnrWaits) == waits);
        flush_work(qp_pair.a.device());
        began
    }

    /// Returns true if the connection is still up after the work that was due has run.
    fn stays_up(qp_pair: &QpPair) -> bool {
        sleep(20);
        flush_work(qp_pair.a.device());
        qp_pair.a.qp.state() == QpState::Rts
    }

    #[test]
    fn a_receive_posted_late_is_in_time() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(40, 31)?, qp_pair.b.buffer(40)?);
        qp_pair.a.post(1, SEND, &[source.whole()])?;
        assert!(has_waited(&qp_pair, 1));
        assert!(qp_pair.a.sends.stays_empty());
        qp_pair.b.receive(2, &[sink.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        assert!(sink.holds(0, 40, 31, 0));
        kunit_assert_eq!(qp_pair.counted(Counter::RnrWaits), 1);
        kunit_assert_eq!(qp_pair.counted(Counter::RnrTimeouts), 0);
        Ok(())
    }

    #[test]
    fn a_wait_in_vain_ends_both_sides() -> Result {
        let clock = StoppedClock::new();
        let qp_pair = impatient(200)?;
        let sink = qp_pair.b.buffer(40)?;
        qp_pair.a.post(1, SEND, &[])?;
        qp_pair.a.post(2, write(sink.remote(0)), &[])?;
        assert!(has_waited(&qp_pair, 1));
        clock.pass(199);
        assert!(stays_up(&qp_pair));
        clock.pass(2);
        assert!(qp_pair.a.sends.next_is(1, Status::ReceiverNotReady));
        assert!(qp_pair.a.sends.next_is(2, Status::Flushed));
        assert!(qp_pair.is_down());
        assert!(qp_pair.b.receives.stays_empty());
        // This receive comes too late.
        qp_pair.b.receive(3, &[sink.whole()])?;
        assert!(qp_pair.b.receives.next_is(3, Status::Flushed));
        kunit_assert_eq!(qp_pair.counted(Counter::RnrTimeouts), 1);
        Ok(())
    }

    #[test]
    fn a_wait_is_as_long_as_the_host_says_and_ends_with_its_receive() -> Result {
        let clock = StoppedClock::new();
        let qp_pair = impatient(2000)?;
        for round in cases(0..3) {
            qp_pair.a.post(round, SEND, &[])?;
            assert!(has_waited(&qp_pair, round + 1));
            clock.pass(1999);
            assert!(stays_up(&qp_pair));
            qp_pair.b.receive(round, &[])?;
            assert!(qp_pair.a.sends.next_is(round, Status::Success));
        }
        // The timer of an earlier wait must not end a later request.
        clock.pass(2200);
        assert!(stays_up(&qp_pair));
        qp_pair.b.receive(9, &[])?;
        qp_pair.a.post(9, SEND, &[])?;
        assert!(qp_pair.a.sends.next_is(9, Status::Success));
        kunit_assert_eq!(qp_pair.counted(Counter::RnrWaits), 3);
        Ok(())
    }

    #[test]
    fn a_wait_ends_when_its_time_is_over_and_not_long_after() -> Result {
        let clock = StoppedClock::new();
        let qp_pair = impatient(1000)?;
        qp_pair.a.post(1, SEND, &[])?;
        assert!(has_waited(&qp_pair, 1));
        clock.pass(999);
        assert!(stays_up(&qp_pair));
        // Two milliseconds later the wait is over, and no other follows.
        clock.pass(2);
        assert!(qp_pair.a.sends.next_is(1, Status::ReceiverNotReady));
        kunit_assert_eq!(qp_pair.counted(Counter::RnrTimeouts), 1);
        Ok(())
    }

    #[test]
    fn a_message_to_a_shared_queue_waits_as_long_as_it_takes() -> Result {
        let clock = StoppedClock::new();
        // A disconnect cancels the requests of the queue pair, as verbs have it.
        let (plain, shared) = (EndAttr::PLAIN, EndAttr::shared(4));
        assert!(shared.flush_on_disconnect);
        let qp_pair = QpPair::over(connect_pair, 200, &plain, &shared)?;
        qp_pair.a.post(1, SEND, &[])?;
        assert!(has_waited(&qp_pair, 1));
        for _ in 0..5 {
            clock.pass(201);
            assert!(stays_up(&qp_pair));
        }
        qp_pair.b.receive(2, &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        kunit_assert_eq!(qp_pair.counted(Counter::RnrTimeouts), 0);
        // The other direction has no shared queue: the time is as the host says.
        qp_pair.b.post(3, SEND, &[])?;
        assert!(has_waited(&qp_pair, 2));
        clock.pass(201);
        assert!(qp_pair.b.sends.next_is(3, Status::ReceiverNotReady));
        Ok(())
    }

    #[test]
    fn a_shared_queue_that_is_empty_holds_up_no_close_for_long() -> Result {
        let clock = StoppedClock::new();
        let (plain, shared) = (EndAttr::PLAIN, EndAttr::shared(4));
        let qp_pair = QpPair::over(connect_pair, 200, &plain, &shared)?;
        for context in cases(1..3) {
            qp_pair.a.post(context, SEND, &[])?;
        }
        assert!(has_waited(&qp_pair, 1));
        clock.pass(150);
        qp_pair.a.qp.close();
        // The message is carried out, and so the wait of the next begins.
        qp_pair.b.receive(3, &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(has_waited(&qp_pair, 2));
        clock.pass(150);
        assert!(stays_up(&qp_pair));
        clock.pass(201);
        assert!(qp_pair.a.sends.next_is(2, Status::ReceiverNotReady));
        assert!(qp_pair.is_down());
        kunit_assert_eq!(qp_pair.counted(Counter::RnrTimeouts), 1);
        assert!(!qp_pair.a.qp.closed_gracefully());
        Ok(())
    }

    #[test]
    fn requests_behind_a_message_that_waits_keep_their_place() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(8, 32)?, qp_pair.b.buffer(8)?);
        qp_pair.a.post(1, SEND, &[])?;
        qp_pair
            .a
            .post(2, write(sink.remote(0)), &[source.whole()])?;
        assert!(has_waited(&qp_pair, 1));
        assert!(qp_pair.a.sends.stays_empty());
        assert!(sink.is_blank(0, 8));
        qp_pair.b.receive(3, &[])?;
        assert!(qp_pair.a.sends.next_are(1..3, Status::Success));
        assert!(sink.holds(0, 8, 32, 0));
        Ok(())
    }

    #[test]
    fn a_message_that_waits_does_not_hold_up_the_other_direction() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.a.post(1, SEND, &[])?;
        assert!(has_waited(&qp_pair, 1));
        qp_pair.a.receive(2, &[])?;
        qp_pair.b.post(3, SEND, &[])?;
        assert!(qp_pair.b.sends.next_is(3, Status::Success));
        assert!(qp_pair.a.receives.next_is(2, Status::Success));
        assert!(qp_pair.a.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_write_with_immediate_data_waits_with_its_bytes_in_place() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(8, 33)?, qp_pair.b.buffer(8)?);
        qp_pair
            .a
            .post(1, write_immediate(sink.remote(0), 5), &[source.whole()])?;
        assert!(has_waited(&qp_pair, 1));
        assert!(qp_pair.a.sends.stays_empty());
        assert!(sink.holds(0, 8, 33, 0));
        qp_pair.b.receive(2, &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        Ok(())
    }

    #[test]
    fn each_of_several_messages_waits_for_its_own_receive() -> Result {
        let qp_pair = QpPair::new()?;
        for context in cases(0..5) {
            qp_pair.a.post(context, SEND, &[])?;
        }
        for context in cases(0..5) {
            assert!(has_waited(&qp_pair, context + 1));
            qp_pair.b.receive(context, &[])?;
            assert!(qp_pair.b.receives.next_is(context, Status::Success));
            assert!(qp_pair.a.sends.next_is(context, Status::Success));
            assert!(qp_pair.a.sends.stays_empty());
        }
        kunit_assert_eq!(qp_pair.counted(Counter::RnrWaits), 5);
        Ok(())
    }

    #[test]
    fn a_message_that_waits_is_flushed_when_either_side_ends() -> Result {
        for peer_ends in cases([false, true]) {
            let qp_pair = QpPair::new()?;
            qp_pair.a.post(1, SEND, &[])?;
            assert!(has_waited(&qp_pair, 1));
            match peer_ends {
                true => qp_pair.b.qp.fail(),
                false => qp_pair.a.qp.fail(),
            }
            assert!(qp_pair.a.sends.next_is(1, Status::Flushed));
            assert!(qp_pair.is_down());
        }
        Ok(())
    }
}
