// SPDX-License-Identifier: GPL-2.0

//! Interrupt moderation (MOD-01 to MOD-07).

use kernel::prelude::*;

use super::{
    caller::Caller,
    host::TestHost, //
};
use crate::{
    engine::cq::tests::RECEIVE,
    ndk::{
        abi::numbers::notify,
        adapter::Limits,
        status::NtStatus, //
    }, //
};

/// No interval, or no count.
const NONE: u32 = u32::MAX;

/// An interval above the longest one: with the clock stopped it does not end.
const LONG: u32 = u32::MAX - 1;

/// The depth of the queues of these tests.
const DEPTH: u32 = 16;

/// A host, and a queue with this moderation.
fn moderated(interval_us: u32, count: u32) -> Result<(TestHost, Caller)> {
    let test_host = TestHost::new()?;
    let queue = Caller::new(&test_host.adapter, DEPTH)?;
    match queue.cq.moderate(interval_us, count) {
        Ok(()) => Ok((test_host, queue)),
        Err(_) => Err(EINVAL),
    }
}

/// Arms for any completion and completes `count` receives; returns true if the queue took them.
fn arm_and_push(queue: &Caller, count: u32) -> bool {
    queue.cq.arm(notify::ANY);
    queue.push_all(RECEIVE, count)
}

/// Returns true if moderation is off for a queue that has called `calls` times.
fn is_off(queue: &Caller, calls: u32) -> bool {
    queue.take(DEPTH);
    arm_and_push(queue, 1) && queue.has_notified(calls + 1, NtStatus::SUCCESS)
}

/// Returns true if a queue that has called `calls` times waits for `count` completions.
fn waits_for(queue: &Caller, count: u32, calls: u32) -> bool {
    queue.take(DEPTH);
    arm_and_push(queue, count - 1)
        && queue.has_called(calls)
        && queue.push(RECEIVE)
        && queue.has_called(calls + 1)
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_moderation)]
mod tests {
    use super::*;

    use kernel::sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    };

    use crate::{
        engine::cq::tests::{
            FAILED,
            FLUSHED,
            SOLICITED, //
        },
        kunit::harness::{
            cases,
            sleep,
            wait_until, //
        },
        ndk::abi::adapter::info,
        sys::{
            clock::StoppedClock,
            softirq::BhDisabled,
            time::now_ms, //
        }, //
    };

    /// The flag by which an adapter reports moderation.
    const SUPPORTED: u32 = 4;

    #[test]
    fn ndk_mod_01_off_on_a_new_queue_and_with_no_interval() -> Result {
        let test_host = TestHost::new()?;
        let queue = Caller::new(&test_host.adapter, DEPTH)?;
        assert!(is_off(&queue, 0));
        for (count, calls) in cases([0, 1, 2, DEPTH, NONE].into_iter().zip((1..).step_by(2))) {
            kunit_assert_eq!(queue.cq.moderate(NONE, 3), Ok(()));
            assert!(waits_for(&queue, 3, calls));
            kunit_assert_eq!(queue.cq.moderate(0, count), Ok(()));
            assert!(is_off(&queue, calls + 1));
        }
        Ok(())
    }

    #[test]
    fn ndk_mod_01_the_interval_begins_with_the_completion_that_satisfies_the_arm() -> Result {
        const MS: u64 = 150;
        let (_site, queue) = moderated(150_000, NONE)?;
        // Neither the arm nor a completion that does not satisfy it begins the interval.
        queue.cq.arm(notify::SOLICITED);
        sleep(60);
        assert!(queue.push(RECEIVE));
        sleep(60);
        assert!(queue.has_called(0));
        let when = Arc::new(Atomic::new(0u64), GFP_KERNEL)?;
        let clock = when.clone();
        queue
            .log
            .set_hook(move |_| clock.store(now_ms(), Relaxed))?;
        let begin = now_ms();
        assert!(queue.push(SOLICITED));
        assert!(wait_until(|| queue.log.calls.get() == 1));
        assert!(when.load(Relaxed) - begin >= MS);
        assert!(queue.has_notified(1, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_mod_02_so_many_completions_may_gather() -> Result {
        let _clock = StoppedClock::new();
        let (_site, queue) = moderated(LONG, 4)?;
        for calls in cases(0..3) {
            assert!(waits_for(&queue, 4, calls));
            // A later completion is for the next arm.
            assert!(queue.push(RECEIVE));
            assert!(queue.has_called(calls + 1));
        }
        Ok(())
    }

    #[test]
    fn ndk_mod_02_no_moderation_with_a_count_of_zero_or_one() -> Result {
        let (_site, queue) = moderated(NONE, 3)?;
        let rules = [(LONG, 0), (LONG, 1), (NONE, 0), (NONE, 1), (5, 1)];
        for ((interval, count), calls) in cases(rules.into_iter().zip((0..).step_by(2))) {
            kunit_assert_eq!(queue.cq.moderate(NONE, 3), Ok(()));
            assert!(waits_for(&queue, 3, calls));
            kunit_assert_eq!(queue.cq.moderate(interval, count), Ok(()));
            assert!(is_off(&queue, calls + 1));
        }
        Ok(())
    }

    #[test]
    fn ndk_mod_03_without_an_interval_only_the_count_rules() -> Result {
        for count in cases([2, 5, DEPTH]) {
            let (_site, queue) = moderated(NONE, count)?;
            assert!(arm_and_push(&queue, count - 1));
            // Longer than any interval of a few microseconds.
            sleep(30);
            assert!(queue.has_called(0));
            assert!(queue.push(RECEIVE));
            assert!(queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn ndk_mod_03_without_a_count_only_the_interval_rules() -> Result {
        for count in cases([DEPTH + 1, NONE - 1, NONE]) {
            let clock = StoppedClock::new();
            let (_site, queue) = moderated(LONG, count)?;
            assert!(arm_and_push(&queue, DEPTH - 1));
            assert!(queue.has_called(0));
            let (_site, queue) = moderated(1000, count)?;
            assert!(arm_and_push(&queue, 1));
            assert!(queue.has_called(0));
            clock.pass(1);
            assert!(wait_until(|| queue.log.calls.get() == 1));
            assert!(queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn ndk_mod_03_a_rule_without_either_is_refused_and_the_last_one_stays() -> Result {
        let (_site, queue) = moderated(NONE, 3)?;
        for count in cases([DEPTH + 1, NONE]) {
            kunit_assert_eq!(
                queue.cq.moderate(NONE, count),
                Err(NtStatus::INVALID_PARAMETER_MIX)
            );
        }
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(0));
        kunit_assert_eq!(
            queue.cq.moderate(NONE, NONE),
            Err(NtStatus::INVALID_PARAMETER_MIX)
        );
        assert!(queue.has_called(0));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_mod_04_of_count_and_interval_the_first_makes_the_call() -> Result {
        let clock = StoppedClock::new();
        let (_site, queue) = moderated(LONG, 3)?;
        assert!(waits_for(&queue, 3, 0));
        kunit_assert_eq!(queue.cq.moderate(1000, 10), Ok(()));
        queue.take(DEPTH);
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(1));
        clock.pass(1);
        assert!(wait_until(|| queue.log.calls.get() == 2));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_mod_04_too_long_and_too_fine_intervals_are_taken() -> Result {
        let clock = StoppedClock::new();
        let (_site, queue) = moderated(NONE, 3)?;
        for interval in cases([LONG, 3_600_000_000, 10_000_001]) {
            kunit_assert_eq!(queue.cq.moderate(interval, NONE), Ok(()));
        }
        assert!(arm_and_push(&queue, 2));
        assert!(queue.has_called(0));
        clock.pass(1);
        kunit_assert_eq!(queue.cq.moderate(1, NONE), Ok(()));
        // The held call's new interval is over.
        assert!(queue.has_called(1));
        queue.take(DEPTH);
        assert!(arm_and_push(&queue, 1));
        clock.pass(1);
        assert!(wait_until(|| queue.log.calls.get() == 2));
        Ok(())
    }

    #[test]
    fn ndk_mod_05_a_change_never_pends_and_is_in_force_for_the_held_call() -> Result {
        // A rule that holds the call after two completions, and a rule that does not.
        let table = [
            ((NONE, DEPTH), (0, 0)),
            ((LONG, NONE), (0, DEPTH)),
            ((LONG, NONE), (LONG, 2)),
            ((NONE, 3), (NONE, 2)),
            ((LONG, DEPTH), (LONG, 1)),
        ];
        let _clock = StoppedClock::new();
        for (first, second) in cases(table) {
            let (_site, queue) = moderated(first.0, first.1)?;
            assert!(arm_and_push(&queue, 2));
            assert!(queue.has_called(0));
            let section = BhDisabled::enter();
            let status = queue.cq.moderate(second.0, second.1);
            drop(section);
            kunit_assert_eq!(status, Ok(()));
            assert!(queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn ndk_mod_05_the_latest_rule_wins() -> Result {
        let _clock = StoppedClock::new();
        let (_site, queue) = moderated(NONE, DEPTH)?;
        for (interval, count) in cases([(1, 2), (LONG, NONE), (0, 0), (NONE, 9), (NONE, 4)]) {
            kunit_assert_eq!(queue.cq.moderate(interval, count), Ok(()));
        }
        assert!(waits_for(&queue, 4, 0));
        // The latest rule is in force for the held call as well.
        queue.take(DEPTH);
        assert!(arm_and_push(&queue, 2));
        for (interval, count) in cases([(LONG, 3), (NONE, 9), (NONE, 6)]) {
            kunit_assert_eq!(queue.cq.moderate(interval, count), Ok(()));
        }
        assert!(queue.push_all(RECEIVE, 3));
        assert!(queue.has_called(1));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_mod_06_it_is_reported_and_so_it_is_supported() -> Result {
        assert!(info(&Limits::FULL).adapter_flags & SUPPORTED != 0);
        let (_site, queue) = moderated(NONE, 3)?;
        for (interval, count) in cases([(0, 0), (0, NONE), (NONE, 3), (LONG, 3)]) {
            kunit_assert_eq!(queue.cq.moderate(interval, count), Ok(()));
        }
        // The refusal is for the values, not for lack of support.
        let both = queue.cq.moderate(NONE, NONE);
        kunit_assert_eq!(both, Err(NtStatus::INVALID_PARAMETER_MIX));
        Ok(())
    }

    #[test]
    fn ndk_mod_07_a_held_call_is_made_though_nothing_is_left_to_tell() -> Result {
        let (_site, queue) = moderated(NONE, 3)?;
        assert!(arm_and_push(&queue, 2));
        kunit_assert_eq!(queue.take(DEPTH), 2);
        assert!(queue.has_called(0));
        // The held call serves this arm, too: no entry is present.
        queue.cq.arm(notify::ANY);
        assert!(queue.has_called(0));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(1));
        queue.take(DEPTH);
        kunit_assert_eq!(queue.cq.moderate(1000, NONE), Ok(()));
        assert!(arm_and_push(&queue, 1));
        queue.take(DEPTH);
        assert!(wait_until(|| queue.log.calls.get() == 2));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_mod_07_a_full_queue_does_not_wait_for_more() -> Result {
        let _clock = StoppedClock::new();
        let (_site, queue) = moderated(LONG, NONE)?;
        assert!(arm_and_push(&queue, DEPTH - 1));
        assert!(queue.has_called(0));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_notified(1, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_mod_07_failed_requests_do_not_wait() -> Result {
        let _clock = StoppedClock::new();
        for entry in cases([FAILED, FLUSHED]) {
            for kind in cases([notify::ANY, notify::SOLICITED]) {
                let (_site, queue) = moderated(LONG, NONE)?;
                queue.cq.arm(kind);
                assert!(queue.push(entry));
                assert!(queue.has_notified(1, NtStatus::SUCCESS));
                // While a call is held.
                assert!(arm_and_push(&queue, 2));
                assert!(queue.has_called(1));
                assert!(queue.push(entry));
                assert!(queue.has_called(2));
                // Before the arm.
                assert!(queue.push(entry));
                assert!(queue.push(RECEIVE));
                queue.cq.arm(kind);
                assert!(queue.has_called(3));
                assert!(arm_and_push(&queue, 1));
                assert!(queue.has_called(3));
            }
        }
        Ok(())
    }

    #[test]
    fn ndk_mod_07_failures_of_the_queue_do_not_wait() -> Result {
        let _clock = StoppedClock::new();
        for overrun in cases([true, false]) {
            for kind in cases([None, Some(notify::ERRORS), Some(notify::ANY)]) {
                let (_site, queue) = moderated(LONG, NONE)?;
                assert!(arm_and_push(&queue, 1));
                assert!(queue.has_called(0));
                if let Some(kind) = kind {
                    queue.cq.arm(kind);
                }
                let status = match overrun {
                    true => {
                        // A full queue holds no call.
                        assert!(queue.push_all(RECEIVE, DEPTH - 1));
                        assert!(queue.has_called(1));
                        queue.cq.arm(notify::ERRORS);
                        assert!(!queue.push(RECEIVE));
                        NtStatus::BUFFER_OVERFLOW
                    }
                    false => {
                        queue.cq.engine().break_down();
                        NtStatus::INTERNAL_ERROR
                    }
                };
                assert!(queue.has_notified(1 + u32::from(overrun), status));
            }
        }
        Ok(())
    }
}
