// SPDX-License-Identifier: GPL-2.0

//! Completion queues: satisfied arms, calls to the consumer, and overflow.

mod moderation;
mod shared;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Arm,
    MissedEvents, //
};
use crate::{
    kunit::{
        harness::{
            EngineHost,
            RNR_MS, //
        },
        queues::Queue, //
    },
    rdma::values::{
        completion::Wc,
        qp::QpState,
        status::Status,
        wc::WcOpcode,
        work::SendFlags, //
    },
    sys::requests::test_context, //
};

pub(crate) const ARMS: [Arm; 3] = [Arm::Any, Arm::Solicited, Arm::Errors];

/// A successful receive that is not solicited.
pub(crate) const RECEIVE: Wc = Wc {
    opcode: WcOpcode::Recv,
    ..Wc::BLANK
};

/// A successful receive whose sender asked for an event.
pub(crate) const SOLICITED: Wc = Wc {
    solicited: true,
    ..RECEIVE
};

/// A successful send.
pub(crate) const SENT: Wc = Wc::BLANK;

/// The completion of a successful send with `context`.
pub(crate) fn sent(context: u64) -> Wc {
    Wc {
        context: test_context(context),
        ..SENT
    }
}

/// A send that failed.
pub(crate) const FAILED: Wc = Wc {
    status: Status::RemoteAccess,
    ..Wc::BLANK
};

/// A receive that was flushed.
pub(crate) const FLUSHED: Wc = Wc {
    status: Status::Flushed,
    ..RECEIVE
};

/// A queue by itself, for `depth` entries.
pub(crate) fn queue_and_host(depth: u32) -> Result<(Arc<Queue>, EngineHost)> {
    let engine_host = EngineHost::new(RNR_MS)?;
    Ok((
        Queue::new(&engine_host.device()?, depth, u32::MAX)?,
        engine_host,
    ))
}

/// Takes all entries out, and returns their number.
pub(crate) fn empty(queue: &Queue) -> usize {
    queue.cq.poll(usize::MAX, |_| ())
}

/// Fills the queue and pushes one entry more; returns true if it took exactly `room`.
pub(crate) fn overflow(queue: &Queue, room: u32) -> bool {
    (0..room).all(|_| queue.cq.push(&RECEIVE).is_ok()) && queue.cq.push(&RECEIVE).is_err()
}

#[kernel::macros::kunit_tests(ndk_engine_cq)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            counters::Counter,
            cq::{
                CompletionQueue,
                CqEvents,
                Failure, //
            },
            notifier::Called, //
        },
        kunit::{
            harness::{
                cases,
                flush_work,
                runs_over_tcp,
                same,
                wait_until,
                EndAttr,
                QpPair, //
            },
            log::{
                CqLog,
                Tally, //
            },
            requests, //
        },
        sys::{
            cpu,
            softirq::BhDisabled, //
        }, //
    };

    #[test]
    fn each_arm_is_satisfied_by_what_its_table_says() -> Result {
        // Columns: any, solicited, errors.
        let table = [
            (RECEIVE, [1, 0, 0]),
            (SOLICITED, [1, 1, 0]),
            (SENT, [1, 0, 0]),
            (FAILED, [1, 1, 0]),
            (FLUSHED, [1, 1, 0]),
        ];
        for (entry, calls) in cases(table) {
            for (arm, calls) in cases(ARMS.into_iter().zip(calls)) {
                let (queue, _engine_host) = queue_and_host(8)?;
                queue.cq.arm(arm, MissedEvents::Ignore);
                assert!(queue.cq.push(&entry).is_ok());
                assert!(queue.has_called(calls));
                kunit_assert_eq!(queue.log.calls_failed.get(), 0);
                kunit_assert_eq!(queue.log.failures.get(), 0);
            }
        }
        Ok(())
    }

    #[test]
    fn a_second_arm_joins_the_first_as_the_matrix_says() -> Result {
        use Arm::*;
        // Rows: outstanding; columns: new; in the order of `ARMS`.
        let matrix = [
            [Any, Any, Any],
            [Any, Solicited, Solicited],
            [Any, Solicited, Errors],
        ];
        for (outstanding, row) in cases(ARMS.into_iter().zip(matrix)) {
            for (new, result) in cases(ARMS.into_iter().zip(row)) {
                for missed in cases([MissedEvents::Ignore, MissedEvents::SatisfyArm]) {
                    let (queue, _engine_host) = queue_and_host(2)?;
                    queue.cq.arm(outstanding, missed);
                    queue.cq.arm(new, missed);
                    assert!(queue.cq.push(&RECEIVE).is_ok());
                    assert!(queue.has_called(u32::from(result == Any)));
                    assert!(queue.cq.push(&SOLICITED).is_ok());
                    assert!(queue.has_called(u32::from(result != Errors)));
                    assert!(queue.cq.push(&RECEIVE).is_err());
                    assert!(queue.has_called(1));
                }
            }
        }
        Ok(())
    }

    #[test]
    fn one_call_at_most_for_each_arm() -> Result {
        let (queue, _engine_host) = queue_and_host(64)?;
        for calls in cases(1..=3) {
            // Two arms before an event count as one.
            queue.cq.arm(Arm::Any, MissedEvents::Ignore);
            queue.cq.arm(Arm::Any, MissedEvents::Ignore);
            for _ in 0..5 {
                assert!(queue.cq.push(&RECEIVE).is_ok());
            }
            assert!(queue.has_called(calls));
        }
        kunit_assert_eq!(empty(&queue), 15);
        Ok(())
    }

    #[test]
    fn every_arm_is_reported_once_whatever_comes() -> Result {
        const READ: Wc = Wc {
            opcode: WcOpcode::Read,
            ..SENT
        };
        let (queue, _engine_host) = queue_and_host(32)?;
        let table: [&[Wc]; 7] = [
            &[SENT],
            &[RECEIVE],
            &[READ],
            &[SENT, RECEIVE],
            &[RECEIVE, RECEIVE, SENT],
            &[SENT, FAILED],
            &[RECEIVE; 20],
        ];
        for (entries, calls) in cases(table.iter().cycle().take(70).zip(1..)) {
            queue.cq.arm(Arm::Any, MissedEvents::Ignore);
            assert!(entries.iter().all(|entry| queue.cq.push(entry).is_ok()));
            assert!(queue.has_called(calls));
            kunit_assert_eq!(empty(&queue), entries.len());
        }
        Ok(())
    }

    #[test]
    fn a_queue_that_is_not_armed_never_calls() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        for entry in cases([RECEIVE, SOLICITED, FAILED]) {
            assert!(queue.cq.push(&entry).is_ok());
        }
        assert!(queue.has_called(0));
        Ok(())
    }

    #[test]
    fn an_arm_that_waits_only_reports_the_entries_present() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        assert!(!queue.cq.arm(Arm::Any, MissedEvents::Ignore));
        assert!(queue.cq.push(&RECEIVE).is_ok());
        assert!(queue.has_called(1));
        assert!(queue.cq.push(&RECEIVE).is_ok());
        for arm in cases(ARMS) {
            assert!(queue.cq.arm(arm, MissedEvents::Ignore));
        }
        assert!(queue.has_called(1));
        kunit_assert_eq!(empty(&queue), 2);
        assert!(!queue.cq.arm(Arm::Any, MissedEvents::Ignore));
        assert!(queue.has_called(1));
        // The arm was there all the time.
        assert!(queue.cq.push(&RECEIVE).is_ok());
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn an_arm_that_calls_is_satisfied_at_once_by_entries_not_reported_yet() -> Result {
        for (arm, calls) in cases(ARMS.into_iter().zip([1, 1, 0])) {
            let (queue, _engine_host) = queue_and_host(8)?;
            assert!(queue.cq.push(&RECEIVE).is_ok());
            queue.cq.arm(arm, MissedEvents::SatisfyArm);
            assert!(queue.has_called(calls));
        }
        Ok(())
    }

    #[test]
    fn entries_that_were_reported_or_taken_do_not_satisfy_a_later_arm() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        assert!(queue.cq.push(&RECEIVE).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.has_called(1));
        // The entry is still there, but was reported.
        assert!(queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm));
        assert!(queue.has_called(1));
        assert!(queue.cq.push(&RECEIVE).is_ok());
        assert!(queue.has_called(2));
        // Another entry, taken before the next arm.
        assert!(queue.cq.push(&RECEIVE).is_ok());
        kunit_assert_eq!(empty(&queue), 3);
        assert!(!queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn a_queue_holds_exactly_what_was_asked_for_and_stays_readable() -> Result {
        for depth in cases([1, 2, 3, 5, 8]) {
            let (queue, _engine_host) = queue_and_host(depth)?;
            kunit_assert_eq!(queue.cq.depth(), depth);
            for context in cases(0..u64::from(depth)) {
                assert!(queue.cq.push(&sent(context)).is_ok());
            }
            assert!(queue.cq.push(&SENT).is_err());
            assert!(queue.next_are(0..u64::from(depth), Status::Success));
            // The queue has failed for good.
            assert!(queue.cq.push(&SENT).is_err());
            assert!(queue.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn overflow_is_reported_once_armed_or_not() -> Result {
        for arm in cases([
            None,
            Some(Arm::Any),
            Some(Arm::Solicited),
            Some(Arm::Errors),
        ]) {
            let (queue, _engine_host) = queue_and_host(2)?;
            assert!(queue.cq.push(&RECEIVE).is_ok());
            if let Some(arm) = arm {
                queue.cq.arm(arm, MissedEvents::Ignore);
            }
            // The second entry satisfies [`Arm::Any`].
            let early = u32::from(arm == Some(Arm::Any));
            assert!(queue.cq.push(&RECEIVE).is_ok());
            assert!(queue.has_called(early));
            assert!(queue.cq.push(&RECEIVE).is_err());
            assert!(queue.cq.push(&RECEIVE).is_err());
            assert!(queue.has_called(u32::from(arm.is_some())));
            kunit_assert_eq!(queue.log.failures.get(), 1);
            let notified = u32::from(arm.is_some()) - early;
            kunit_assert_eq!(queue.log.calls_failed.get(), notified);
        }
        Ok(())
    }

    #[test]
    fn a_failure_while_unarmed_is_reported_to_the_next_arm_that_calls() -> Result {
        for arm in cases(ARMS) {
            let (queue, _engine_host) = queue_and_host(1)?;
            assert!(overflow(&queue, 1));
            assert!(queue.has_called(0));
            queue.cq.arm(arm, MissedEvents::SatisfyArm);
            assert!(queue.has_called(1));
            kunit_assert_eq!(queue.log.calls_failed.get(), 1);
        }
        Ok(())
    }

    #[test]
    fn an_arm_for_errors_is_not_satisfied_by_entries_whatever_it_joins() -> Result {
        let (queue, _engine_host) = queue_and_host(4)?;
        queue.cq.arm(Arm::Solicited, MissedEvents::SatisfyArm);
        assert!(queue.cq.push(&RECEIVE).is_ok());
        queue.cq.arm(Arm::Errors, MissedEvents::SatisfyArm);
        assert!(queue.has_called(0));
        // The first arm is still there, and arming anew finds the entry.
        queue.cq.arm(Arm::Solicited, MissedEvents::SatisfyArm);
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn a_queue_that_is_given_up_notifies_whoever_armed_it() -> Result {
        for arm in cases(ARMS) {
            let (queue, _engine_host) = queue_and_host(4)?;
            queue.cq.arm(arm, MissedEvents::Ignore);
            queue.cq.break_down();
            queue.cq.break_down();
            assert!(queue.has_called(1));
            kunit_assert_eq!(queue.log.calls_fatal.get(), 1);
            kunit_assert_eq!((queue.log.failures.get(), queue.log.fatal.get()), (1, 1));
        }
        Ok(())
    }

    #[test]
    fn a_queue_that_is_given_up_unarmed_notifies_each_later_arm_that_calls() -> Result {
        let (queue, _engine_host) = queue_and_host(4)?;
        queue.cq.break_down();
        assert!(queue.has_called(0));
        kunit_assert_eq!((queue.log.failures.get(), queue.log.fatal.get()), (1, 1));
        for (arm, calls) in cases(ARMS.into_iter().zip(1..)) {
            queue.cq.arm(arm, MissedEvents::SatisfyArm);
            assert!(queue.has_called(calls));
            kunit_assert_eq!(queue.log.calls_fatal.get(), calls);
        }
        kunit_assert_eq!(queue.log.failures.get(), 1);
        Ok(())
    }

    #[test]
    fn a_queue_that_is_given_up_stays_readable_and_takes_no_more() -> Result {
        let (queue, _engine_host) = queue_and_host(4)?;
        for context in cases(0..3) {
            assert!(queue.cq.push(&sent(context)).is_ok());
        }
        queue.cq.break_down();
        assert!(queue.cq.push(&SENT).is_err());
        assert!(queue.next_are(0..3, Status::Success));
        assert!(queue.cq.push(&SENT).is_err());
        assert!(queue.stays_empty());
        Ok(())
    }

    #[test]
    fn the_first_failure_is_the_one_that_is_reported() -> Result {
        let (queue, _engine_host) = queue_and_host(1)?;
        assert!(overflow(&queue, 1));
        queue.cq.break_down();
        queue.cq.arm(Arm::Errors, MissedEvents::SatisfyArm);
        assert!(queue.has_called(1));
        kunit_assert_eq!((queue.log.failures.get(), queue.log.fatal.get()), (1, 0));
        kunit_assert_eq!(
            (queue.log.calls_failed.get(), queue.log.calls_fatal.get()),
            (1, 0)
        );
        Ok(())
    }

    #[test]
    fn a_queue_that_is_given_up_breaks_its_queue_pair_at_the_next_completion() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.b.receives.cq.break_down();
        qp_pair.b.receive(1, &[])?;
        qp_pair.a.post(2, requests::SEND, &[])?;
        assert!(qp_pair.is_down());
        assert!(wait_until(|| qp_pair.b.events.broken.get() == 1));
        flush_work(qp_pair.a.device());
        kunit_assert_eq!(qp_pair.b.events.broken.get(), 1);
        assert!(qp_pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn calls_come_from_softirq_and_not_from_inside_of_a_call() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        let softirqs_off = BhDisabled::enter();
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        let pushed = queue.cq.push(&RECEIVE).is_ok();
        let during = queue.log.calls.get();
        // Only softirqs run as this section ends.
        drop(softirqs_off);
        assert!(pushed);
        kunit_assert_eq!(during, 0);
        assert!(wait_until(|| queue.log.calls.get() == 1));
        kunit_assert_eq!(queue.log.misplaced.get(), 0);
        Ok(())
    }

    #[test]
    fn no_call_comes_inside_of_a_post_poll_or_arm() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.b.receive(2, &[])?;
        let log = &qp_pair.a.sends.log;
        let softirqs_off = BhDisabled::enter();
        qp_pair.a.sends.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        let posted = qp_pair.a.post(1, requests::SEND, &[]);
        let after_post = log.calls.get();
        qp_pair.a.sends.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        let polled = qp_pair.a.sends.poll().is_some();
        let after_poll = log.calls.get();
        drop(softirqs_off);
        posted?;
        // The request was carried out in place, but no call was made there. Over TCP it goes out later,
        // and another processor may make the call at any time.
        assert!(polled || runs_over_tcp());
        assert!(same((after_post, after_poll), (0, 0)) || runs_over_tcp());
        assert!(wait_until(|| log.calls.get() > 0));
        kunit_assert_eq!(log.misplaced.get(), 0);
        Ok(())
    }

    #[test]
    fn calls_of_one_queue_follow_each_other() -> Result {
        let (queue, _engine_host) = queue_and_host(2048)?;
        let cq = queue.cq.clone();
        // From inside of each call: one more arm that is satisfied at once, 50 times.
        let rounds = Arc::new(Tally::new(), GFP_KERNEL)?;
        let hook = Arc::new(
            move |_| {
                if rounds.hit() < 50 {
                    let _ = cq.push(&RECEIVE);
                    cq.arm(Arm::Any, MissedEvents::SatisfyArm);
                }
            },
            GFP_KERNEL,
        )?;
        queue.log.set_hook(Some(hook));
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.cq.push(&RECEIVE).is_ok());
        assert!(wait_until(|| queue.log.calls.get() == 51));
        assert!(queue.has_called(51));
        kunit_assert_eq!(queue.log.overlaps.get(), 0);
        kunit_assert_eq!(empty(&queue), 51);
        Ok(())
    }

    /// Returns true if no call comes from any of `queues` queues, each closed with a call due.
    fn are_silent_when_closed(queues: u32) -> Result<bool> {
        for _ in 0..queues {
            let (queue, _engine_host) = queue_and_host(4)?;
            queue.cq.arm(Arm::Any, MissedEvents::Ignore);
            let pushed = queue.cq.push(&RECEIVE).is_ok();
            queue.cq.close();
            let calls = queue.log.calls.get();
            queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
            let refused = queue.cq.push(&RECEIVE).is_err();
            if !(pushed && refused && queue.has_called(calls)) || queue.log.failures.get() != 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[test]
    fn no_call_comes_after_the_close() -> Result {
        assert!(are_silent_when_closed(16)?);
        Ok(())
    }

    #[test]
    fn no_call_comes_after_the_close_again_and_again() -> Result {
        assert!(are_silent_when_closed(200)?);
        Ok(())
    }

    #[test]
    fn a_call_is_made_on_the_processor_asked_for() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        for number in cases((0..cpu::count_ids()).filter(|n| cpu::is_online(*n))) {
            let queue = Queue::new(&device, 4, number)?;
            queue.cq.arm(Arm::Any, MissedEvents::Ignore);
            assert!(queue.cq.push(&RECEIVE).is_ok());
            assert!(wait_until(|| queue.log.calls.get() == 1));
            kunit_assert_eq!(queue.log.cpu(), number);
        }
        Ok(())
    }

    /// A consumer that only schedules work, and is called at once.
    struct Scheduler(Arc<CqLog>);

    impl CqEvents for Scheduler {
        fn only_schedules(&self) -> bool {
            true
        }

        fn notify(&self, _failure: Option<Failure>) {
            self.0.calls.hit();
        }

        fn failed(&self, _failure: Failure) -> Called {
            Called::Done
        }
    }

    #[test]
    fn a_call_that_only_schedules_is_made_at_once_wherever_the_entry_comes() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        for number in cases(0..cpu::count_ids()) {
            let log = CqLog::new()?;
            let events = KBox::new(Scheduler(log.clone()), GFP_KERNEL)?;
            let queue = CompletionQueue::new(device.clone(), 4, number, events, false)?;
            assert!(queue.push(&RECEIVE).is_ok());
            kunit_assert_eq!(log.calls.get(), 0);
            queue.arm(Arm::Any, MissedEvents::Ignore);
            assert!(queue.push(&RECEIVE).is_ok());
            kunit_assert_eq!(log.calls.get(), 1);
            assert!(queue.push(&RECEIVE).is_ok());
            kunit_assert_eq!(log.calls.get(), 1);
            queue.close();
        }
        Ok(())
    }

    #[test]
    fn a_poll_takes_no_more_than_it_asks_for_and_the_oldest_first() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        for context in cases(0..5) {
            assert!(queue.cq.push(&sent(context)).is_ok());
        }
        let mut sum = 0;
        let mut add = |e: Wc| sum = sum * 10 + e.context.raw();
        kunit_assert_eq!(queue.cq.poll(0, &mut add), 0);
        kunit_assert_eq!(queue.cq.poll(3, &mut add), 3);
        kunit_assert_eq!(queue.cq.poll(3, &mut add), 2);
        kunit_assert_eq!(queue.cq.poll(3, &mut add), 0);
        kunit_assert_eq!(sum, 1234);
        Ok(())
    }

    #[test]
    fn a_poll_for_many_takes_them_all_in_order() -> Result {
        let (queue, _engine_host) = queue_and_host(1000)?;
        for count in cases([63, 64, 65, 128, 700]) {
            for most in cases([count, count + 1, usize::MAX]) {
                for context in cases(0..count) {
                    // CAST: widening.
                    assert!(queue.cq.push(&sent(context as u64)).is_ok());
                }
                let mut next = 0;
                let mut in_order = true;
                let taken = queue.cq.poll(most, |entry| {
                    in_order &= entry.context.raw() == next;
                    next += 1;
                });
                kunit_assert_eq!(taken, count);
                assert!(in_order);
                kunit_assert_eq!(queue.cq.details().used, 0);
            }
        }
        // None of the entries is left to be reported.
        assert!(!queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm));
        assert!(queue.has_called(0));
        Ok(())
    }

    #[test]
    fn a_group_with_one_solicited_send_gives_one_call() -> Result {
        let qp_pair = QpPair::new()?;
        for context in cases(0..4) {
            qp_pair.b.receive(context, &[])?;
        }
        qp_pair
            .b
            .receives
            .cq
            .arm(Arm::Solicited, MissedEvents::Ignore);
        qp_pair.a.post(10, requests::SEND, &[])?;
        qp_pair.a.post(11, requests::SEND, &[])?;
        assert!(qp_pair.b.receives.holds(2));
        assert!(qp_pair.b.receives.has_called(0));
        qp_pair
            .a
            .post_with(12, requests::SEND, requests::SOLICITED, &[])?;
        assert!(qp_pair.b.receives.has_called(1));
        let flags = [false, false, true];
        for (context, solicited) in cases((0..).zip(flags)) {
            let entry = qp_pair
                .b
                .receives
                .poll()
                .map(|e| (e.context.raw(), e.solicited));
            kunit_assert_eq!(entry, Some((context, solicited)));
        }
        // Without an arm the flag has no effect.
        qp_pair
            .a
            .post_with(13, requests::SEND, requests::SOLICITED, &[])?;
        assert!(qp_pair.b.receives.has_called(1));
        Ok(())
    }

    #[test]
    fn a_flush_satisfies_an_arm_for_solicited_receives() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.b.receive(1, &[])?;
        qp_pair
            .b
            .receives
            .cq
            .arm(Arm::Solicited, MissedEvents::Ignore);
        qp_pair.a.qp.fail();
        assert!(qp_pair.is_down());
        assert!(qp_pair.b.receives.has_called(1));
        Ok(())
    }

    #[test]
    fn an_overflowed_receive_queue_breaks_its_queue_pair() -> Result {
        let mut attr = EndAttr::PLAIN;
        attr.receive_entries = 2;
        let qp_pair = QpPair::with(&EndAttr::PLAIN, &attr)?;
        for context in cases(0..5) {
            qp_pair.b.receive(context, &[])?;
        }
        for context in cases(0..3) {
            qp_pair.a.post(context, requests::SEND, &[])?;
        }
        assert!(qp_pair.is_down());
        assert!(wait_until(|| qp_pair.b.events.broken.get() == 1));
        flush_work(qp_pair.a.device());
        kunit_assert_eq!(qp_pair.b.events.broken.get(), 1);
        kunit_assert_eq!(qp_pair.a.events.broken.get(), 0);
        kunit_assert_eq!(qp_pair.b.receives.log.failures.get(), 1);
        kunit_assert_eq!(qp_pair.b.counted(Counter::CqOverflows), 1);
        assert!(qp_pair.b.receives.next_are(0..2, Status::Success));
        assert!(qp_pair.b.receives.stays_empty());
        // The third message did arrive; only its report was lost.
        assert!(qp_pair.a.sends.next_are(0..3, Status::Success));
        Ok(())
    }

    #[test]
    fn an_overflowed_send_queue_breaks_its_queue_pair() -> Result {
        let mut attr = EndAttr::PLAIN;
        attr.send_entries = 2;
        let qp_pair = QpPair::with(&attr, &EndAttr::PLAIN)?;
        let sink = qp_pair.b.buffer(8)?;
        qp_pair.b.receive(1, &[])?;
        for context in cases(0..3) {
            qp_pair
                .a
                .post(context, requests::write(sink.remote(0)), &[])?;
        }
        assert!(qp_pair.is_down());
        kunit_assert_eq!(qp_pair.a.qp.state(), QpState::Err);
        assert!(wait_until(|| qp_pair.a.events.broken.get() == 1));
        flush_work(qp_pair.a.device());
        kunit_assert_eq!(qp_pair.a.events.broken.get(), 1);
        assert!(qp_pair.a.sends.next_are(0..2, Status::Success));
        assert!(qp_pair.a.sends.stays_empty());
        assert!(qp_pair.b.receives.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn silent_requests_take_no_room_in_the_queue() -> Result {
        let mut attr = EndAttr::PLAIN;
        attr.send_entries = 1;
        let qp_pair = QpPair::with(&attr, &EndAttr::PLAIN)?;
        let sink = qp_pair.b.buffer(8)?;
        for context in cases(0..50) {
            let work = requests::write(sink.remote(0));
            qp_pair
                .a
                .post_with(context, work, SendFlags::empty(), &[])?;
        }
        qp_pair.a.post(50, requests::write(sink.remote(0)), &[])?;
        assert!(qp_pair.a.sends.next_is(50, Status::Success));
        kunit_assert_eq!(qp_pair.a.qp.state(), QpState::Rts);
        Ok(())
    }
}
