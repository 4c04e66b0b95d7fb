// SPDX-License-Identifier: GPL-2.0

//! Moderation: calls that wait for more completions, and calls that never wait.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    empty,
    queue_and_host,
    ARMS,
    FAILED,
    FLUSHED,
    RECEIVE, //
};
use crate::{
    engine::cq::{
        Arm,
        InvalidModeration,
        MissedEvents, //
    },
    kunit::{
        harness::EngineHost,
        queues::Queue, //
    }, //
};

/// The interval, or the count, that is no limit.
const NONE: u32 = u32::MAX;

/// The longest interval; with the clock stopped it does not end.
const LONG: u32 = u32::MAX - 1;

/// A queue for 16 entries that holds calls by that rule.
fn moderated(interval_us: u32, count: u32) -> Result<(Arc<Queue>, EngineHost)> {
    let (queue, engine_host) = queue_and_host(16)?;
    set(&queue, interval_us, count)?;
    Ok((queue, engine_host))
}

/// Puts a valid rule into force.
fn set(queue: &Queue, interval_us: u32, count: u32) -> Result {
    queue
        .cq
        .moderate(interval_us, count)
        .map_err(|InvalidModeration| EINVAL)
}

/// Pushes `count` receives; returns true if all were taken.
fn push(queue: &Queue, count: u32) -> bool {
    (0..count).all(|_| queue.cq.push(&RECEIVE).is_ok())
}

/// Arms for any event and pushes `count` receives.
fn arm_and_push(queue: &Queue, count: u32) -> bool {
    queue.cq.arm(Arm::Any, MissedEvents::Ignore);
    push(queue, count)
}

#[kernel::macros::kunit_tests(ndk_engine_cq_tests_moderation)]
mod tests {
    use super::*;

    use crate::{
        kunit::harness::{
            cases,
            wait_until, //
        },
        sys::clock::StoppedClock, //
    };

    #[test]
    fn a_new_queue_is_not_moderated_and_zero_or_one_ends_it() -> Result {
        let (queue, _engine_host) = queue_and_host(16)?;
        assert!(arm_and_push(&queue, 1));
        assert!(queue.has_called(1));
        for (rule, calls) in cases(
            [(0, 5), (0, NONE), (5, 0), (NONE, 1), (NONE, 0)]
                .into_iter()
                .zip(2..),
        ) {
            set(&queue, NONE, 16)?;
            set(&queue, rule.0, rule.1)?;
            empty(&queue);
            assert!(arm_and_push(&queue, 1));
            assert!(queue.has_called(calls));
        }
        Ok(())
    }

    #[test]
    fn a_call_waits_for_the_count() -> Result {
        let (queue, _engine_host) = moderated(NONE, 3)?;
        for calls in cases(0..3) {
            assert!(arm_and_push(&queue, 2));
            assert!(queue.has_called(calls));
            assert!(push(&queue, 1));
            assert!(queue.has_called(calls + 1));
            // The arm is off.
            assert!(push(&queue, 1));
            assert!(queue.has_called(calls + 1));
            kunit_assert_eq!(empty(&queue), 4);
        }
        Ok(())
    }

    #[test]
    fn a_call_waits_no_longer_than_the_interval() -> Result {
        for count in cases([NONE, 17, 10]) {
            let (queue, _engine_host) = moderated(1000, count)?;
            for calls in cases(1..4) {
                assert!(arm_and_push(&queue, 1));
                assert!(wait_until(|| queue.log.calls.get() == calls));
            }
            assert!(queue.has_called(3));
            kunit_assert_eq!(empty(&queue), 3);
            kunit_assert_eq!(queue.log.misplaced.get(), 0);
            kunit_assert_eq!(queue.log.overlaps.get(), 0);
        }
        Ok(())
    }

    #[test]
    fn of_both_rules_the_first_makes_the_call() -> Result {
        let clock = StoppedClock::new();
        let (queue, _engine_host) = moderated(LONG, 3)?;
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(0));
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        set(&queue, 1000, 3)?;
        empty(&queue);
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(1));
        clock.pass(1);
        assert!(wait_until(|| queue.log.calls.get() == 2));
        assert!(push(&queue, 5));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn a_rule_without_end_is_refused_and_the_last_one_holds() -> Result {
        let (queue, _engine_host) = moderated(NONE, 3)?;
        for count in cases([17, NONE]) {
            kunit_assert_eq!(queue.cq.moderate(NONE, count), Err(InvalidModeration));
        }
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(0));
        kunit_assert_eq!(queue.cq.moderate(NONE, NONE), Err(InvalidModeration));
        assert!(queue.has_called(0));
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn a_request_that_failed_does_not_wait() -> Result {
        let _clock = StoppedClock::new();
        for entry in cases([FAILED, FLUSHED]) {
            for arm in cases([Arm::Any, Arm::Solicited]) {
                let (queue, _engine_host) = moderated(LONG, NONE)?;
                // The failed request satisfies the arm itself.
                queue.cq.arm(arm, MissedEvents::SatisfyArm);
                assert!(queue.cq.push(&entry).is_ok());
                assert!(queue.has_called(1));
                // It comes while a call is held.
                assert!(arm_and_push(&queue, 2));
                assert!(queue.has_called(1));
                assert!(queue.cq.push(&entry).is_ok());
                assert!(queue.has_called(2));
                // It was there before the arm.
                assert!(queue.cq.push(&entry).is_ok());
                assert!(push(&queue, 1));
                queue.cq.arm(arm, MissedEvents::SatisfyArm);
                assert!(queue.has_called(3));
                // It was notified, and the next call waits again.
                assert!(arm_and_push(&queue, 1));
                assert!(queue.has_called(3));
            }
        }
        Ok(())
    }

    #[test]
    fn a_failed_request_that_was_taken_hurries_nobody() -> Result {
        let (queue, _engine_host) = moderated(NONE, 3)?;
        assert!(queue.cq.push(&FAILED).is_ok());
        kunit_assert_eq!(empty(&queue), 1);
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(0));
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn a_failure_of_the_queue_does_not_wait() -> Result {
        let _clock = StoppedClock::new();
        for arm in cases([None, Some(Arm::Errors), Some(Arm::Any)]) {
            let (queue, _engine_host) = moderated(LONG, NONE)?;
            assert!(arm_and_push(&queue, 1));
            assert!(queue.has_called(0));
            if let Some(arm) = arm {
                queue.cq.arm(arm, MissedEvents::Ignore);
            }
            queue.cq.break_down();
            // One call reports both.
            assert!(queue.has_called(1));
            kunit_assert_eq!(queue.log.calls_fatal.get(), 1);
            queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
            assert!(queue.has_called(2));
            kunit_assert_eq!(queue.log.failures.get(), 1);
        }
        for arm in cases(ARMS) {
            let (queue, _engine_host) = moderated(LONG, NONE)?;
            queue.cq.arm(arm, MissedEvents::Ignore);
            queue.cq.break_down();
            assert!(queue.has_called(1));
            kunit_assert_eq!(queue.log.calls_fatal.get(), 1);
        }
        Ok(())
    }

    #[test]
    fn the_latest_rule_is_in_force_for_the_call_that_is_held() -> Result {
        // The first rule, two completions, and the second rule, which holds the call no longer.
        let table = [
            ((NONE, 16), (0, 0)),
            ((LONG, NONE), (0, 16)),
            ((LONG, NONE), (LONG, 2)),
            ((NONE, 3), (NONE, 2)),
            ((LONG, 16), (LONG, 1)),
        ];
        let _clock = StoppedClock::new();
        for (first, second) in cases(table) {
            let (queue, _engine_host) = moderated(first.0, first.1)?;
            assert!(arm_and_push(&queue, 2));
            assert!(queue.has_called(0));
            set(&queue, second.0, second.1)?;
            assert!(queue.has_called(1));
            set(&queue, 0, 0)?;
            assert!(queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn the_latest_rule_goes_on_holding_a_call() -> Result {
        let clock = StoppedClock::new();
        let (queue, _engine_host) = moderated(NONE, 16)?;
        assert!(arm_and_push(&queue, 2));
        set(&queue, LONG, 5)?;
        set(&queue, NONE, 4)?;
        assert!(push(&queue, 1));
        assert!(queue.has_called(0));
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        empty(&queue);
        // From no limit to a short interval.
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(1));
        set(&queue, 500, NONE)?;
        assert!(queue.has_called(1));
        clock.pass(1);
        assert!(wait_until(|| queue.log.calls.get() == 2));
        Ok(())
    }

    #[test]
    fn an_arm_that_is_satisfied_at_once_is_moderated_too() -> Result {
        let (queue, _engine_host) = moderated(NONE, 3)?;
        assert!(push(&queue, 2));
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.has_called(0));
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        // Enough completions are there already.
        assert!(push(&queue, 3));
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn completions_that_satisfy_nobody_gather_as_well() -> Result {
        let (queue, _engine_host) = moderated(NONE, 3)?;
        let solicited = crate::engine::cq::tests::SOLICITED;
        queue.cq.arm(Arm::Solicited, MissedEvents::Ignore);
        assert!(push(&queue, 5));
        assert!(queue.has_called(0));
        assert!(queue.cq.push(&solicited).is_ok());
        assert!(queue.has_called(1));
        queue.cq.arm(Arm::Solicited, MissedEvents::Ignore);
        assert!(queue.cq.push(&solicited).is_ok());
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        assert!(push(&queue, 1));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn arms_that_are_satisfied_while_a_call_is_held_are_reported_by_it() -> Result {
        for missed in cases([MissedEvents::Ignore, MissedEvents::SatisfyArm]) {
            let (queue, _engine_host) = moderated(NONE, 4)?;
            assert!(arm_and_push(&queue, 1));
            queue.cq.arm(Arm::Any, missed);
            assert!(push(&queue, 1));
            queue.cq.arm(Arm::Solicited, missed);
            queue.cq.arm(Arm::Any, missed);
            assert!(push(&queue, 1));
            assert!(queue.has_called(0));
            assert!(push(&queue, 1));
            assert!(queue.has_called(1));
            // Neither arm is left.
            assert!(push(&queue, 8));
            assert!(queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn an_arm_that_is_not_satisfied_stays_when_the_held_call_is_made() -> Result {
        let (queue, _engine_host) = moderated(NONE, 3)?;
        assert!(arm_and_push(&queue, 2));
        queue.cq.arm(Arm::Errors, MissedEvents::SatisfyArm);
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        queue.cq.break_down();
        assert!(queue.has_called(2));
        kunit_assert_eq!(queue.log.calls_fatal.get(), 1);
        Ok(())
    }

    #[test]
    fn a_call_is_made_though_its_completions_were_taken() -> Result {
        let (queue, _engine_host) = moderated(NONE, 3)?;
        assert!(arm_and_push(&queue, 2));
        kunit_assert_eq!(empty(&queue), 2);
        // No entry is present: this arm waits for the next completion.
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.has_called(0));
        assert!(push(&queue, 1));
        assert!(queue.has_called(1));
        assert!(push(&queue, 5));
        assert!(queue.has_called(1));
        empty(&queue);
        set(&queue, 1000, NONE)?;
        assert!(arm_and_push(&queue, 1));
        empty(&queue);
        assert!(wait_until(|| queue.log.calls.get() == 2));
        Ok(())
    }

    #[test]
    fn a_full_queue_does_not_wait() -> Result {
        let (queue, _engine_host) = moderated(NONE, 16)?;
        // Reported entries take room as well.
        assert!(push(&queue, 10));
        set(&queue, 0, 0)?;
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.has_called(1));
        set(&queue, NONE, 16)?;
        assert!(arm_and_push(&queue, 5));
        assert!(queue.has_called(1));
        assert!(push(&queue, 1));
        assert!(queue.has_called(2));
        Ok(())
    }

    /// Returns true if no call comes from queues that were closed with a call held; `each` is their
    /// number for each interval.
    fn are_silent_when_closed(each: u32) -> Result<bool> {
        for _ in 0..each {
            for interval in [NONE, LONG, 1, 50] {
                let (queue, _engine_host) = moderated(interval, 10)?;
                let held = arm_and_push(&queue, 1);
                queue.cq.close();
                let calls = queue.log.calls.get();
                set(&queue, 1, 10)?;
                queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
                if !held || !queue.has_called(calls) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    #[test]
    fn a_close_ends_what_is_held() -> Result {
        assert!(are_silent_when_closed(4)?);
        Ok(())
    }

    #[test]
    fn a_close_ends_what_is_held_again_and_again() -> Result {
        assert!(are_silent_when_closed(50)?);
        Ok(())
    }
}
