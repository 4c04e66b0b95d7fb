// SPDX-License-Identifier: GPL-2.0

//! Arming and notification (ARM-01 to ARM-15); races are in [`super::stress`].

use kernel::prelude::*;

use super::{
    caller::Caller,
    host::TestHost, //
};
use crate::{
    engine::cq::tests::{
        FAILED,
        FLUSHED,
        RECEIVE,
        SENT,
        SOLICITED, //
    },
    ndk::abi::numbers::notify, //
};

const TYPES: [u32; 3] = [notify::ANY, notify::ERRORS, notify::SOLICITED];

/// Undefined types.
const UNDEFINED: [u32; 4] = [3, 4, 0x100, u32::MAX];

/// A host with a queue for 8 results.
fn host_with_caller() -> Result<(TestHost, Caller)> {
    let test_host = TestHost::new()?;
    let queue = Caller::new(&test_host.adapter, 8)?;
    Ok((test_host, queue))
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_arm)]
mod tests {
    use super::*;

    use kernel::sync::{
        atomic::Relaxed,
        Arc, //
    };

    use crate::{
        kunit::{
            harness::cases,
            log::Tally, //
        },
        ndk::{
            abi::numbers::op_flags::*,
            status::NtStatus,
            tests::{
                completion::log_status,
                host::Queue,
                memory::PageBuffer,
                pair::Pair, //
            }, //
        },
        rdma::values::completion::Wc,
        sys::softirq::BhDisabled, //
    };

    #[test]
    fn ndk_arm_01_one_call_for_an_arm_and_none_without() -> Result {
        let (_site, queue) = host_with_caller()?;
        assert!(queue.push_all(RECEIVE, 2));
        assert!(queue.has_called(0));
        kunit_assert_eq!(queue.take(8), 2);
        queue.cq.arm(notify::ANY);
        assert!(queue.has_called(0));
        assert!(queue.push_all(RECEIVE, 3));
        assert!(queue.has_notified(1, NtStatus::SUCCESS));
        assert!(queue.push(FAILED));
        assert!(queue.has_called(1));
        kunit_assert_eq!(queue.take(8), 4);
        queue.cq.arm(notify::ANY);
        queue.cq.arm(notify::ANY);
        queue.cq.arm(notify::SOLICITED);
        assert!(queue.push_all(SOLICITED, 3));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_arm_01_the_arm_is_off_before_the_call() -> Result {
        let (_site, queue) = host_with_caller()?;
        let cq = (*queue.cq).clone();
        queue.log.set_hook(move |_| {
            // The queue is not armed now.
            let _ = cq.engine().push(&RECEIVE);
        })?;
        queue.cq.arm(notify::ANY);
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(1));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(1));
        kunit_assert_eq!(queue.take(8), 3);
        // The return of a call does not remove an arm that was made inside the call.
        let cq = (*queue.cq).clone();
        queue.log.set_hook(move |_| cq.arm(notify::SOLICITED))?;
        queue.cq.arm(notify::ANY);
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(2));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(2));
        queue.log.clear_hook();
        assert!(queue.push(SOLICITED));
        assert!(queue.has_called(3));
        Ok(())
    }

    /// Arms for any completion, and makes `request`; returns true if its completion calls once.
    fn calls_once(queue: &Queue, request: impl FnOnce() -> Result) -> Result<bool> {
        let before = queue.calls.get();
        queue.status.store(NtStatus::PENDING.raw(), Relaxed);
        queue.cq.arm(notify::ANY);
        request()?;
        let status = queue.next()?.status;
        let called = queue.has_called(before + 1);
        let notified = queue.status.load(Relaxed);
        Ok(status == NtStatus::SUCCESS && called && notified == NtStatus::SUCCESS.raw())
    }

    #[test]
    fn ndk_arm_02_any_matches_the_next_completion_of_any_kind() -> Result {
        let pair = Pair::new()?;
        let here = pair.a.buffer(4096, 1)?;
        let there = pair.b.buffer(4096, 7)?;
        let fast = PageBuffer::fast(&pair.a.pd, 4096, false)?;
        let (a, requests) = (&pair.a.qp, &pair.a.requests);
        let sge = here.sge(0, 8)?;
        let list = || [sge].into_iter();
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[])?;
        assert!(calls_once(requests, || pair.a.send(1, &[], 0))?);
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(calls_once(&pair.b.receives, || pair.a.send(2, &[], 0))?);
        assert!(requests.next_is(2, NtStatus::SUCCESS));
        let to = there.remote(0)?;
        assert!(calls_once(requests, || a
            .write(3, list(), to, 0)
            .map_err(log_status))?);
        assert!(calls_once(requests, || a
            .read(4, list(), to, 0)
            .map_err(log_status))?);
        assert!(calls_once(requests, || fast
            .fast_register(a, 5, ALLOW_LOCAL_WRITE)?
            .map_err(log_status))?);
        let mr = fast.mr()?;
        assert!(calls_once(requests, || a
            .invalidate_mr(6, mr, 0)
            .map_err(log_status))?);
        // The arm is used up: the next completion does not call.
        let calls = requests.calls.get();
        assert!(pair.a.send(7, &[], 0).is_ok());
        assert!(requests.has_called(calls));
        Ok(())
    }

    #[test]
    fn ndk_arm_02_any_matches_a_failed_completion_too() -> Result {
        let pair = Pair::new()?;
        pair.b.receive(1, &[])?;
        let from = pair.a.buffer(4096, 0)?;
        for queue in [&pair.a.requests, &pair.b.receives] {
            queue.cq.arm(notify::ANY);
        }
        // Longer than the receive.
        pair.a.send(2, &[from.sge(0, 8)?], SILENT_SUCCESS)?;
        for (queue, context) in [(&pair.a.requests, 2), (&pair.b.receives, 1)] {
            let got = queue.next()?;
            kunit_assert_eq!(got.request_context, context);
            assert!(got.status != NtStatus::SUCCESS);
            assert!(queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn ndk_arm_03_solicited_matches_a_receive_whose_send_carried_the_flag() -> Result {
        let pair = Pair::new()?;
        for context in cases(0..6) {
            pair.b.receive(context, &[])?;
        }
        pair.b.receives.cq.arm(notify::SOLICITED);
        pair.a.requests.cq.arm(notify::SOLICITED);
        for context in cases(0..3) {
            pair.a.send(context, &[], 0)?;
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
            assert!(pair.b.receives.has_called(0));
        }
        pair.a.send(3, &[], SEND_AND_SOLICIT_EVENT)?;
        assert!(pair.b.receives.next_is(3, NtStatus::SUCCESS));
        assert!(pair.b.receives.has_called(1));
        // Once for the arm, and not at the sender.
        pair.a.send(4, &[], SEND_AND_SOLICIT_EVENT)?;
        assert!(pair.b.receives.next_is(4, NtStatus::SUCCESS));
        assert!(pair.b.receives.has_called(1));
        assert!(pair.a.requests.has_called(0));
        pair.b.receives.cq.arm(notify::SOLICITED);
        pair.a
            .send(5, &[], SEND_AND_SOLICIT_EVENT | SILENT_SUCCESS)?;
        assert!(pair.b.receives.next_is(5, NtStatus::SUCCESS));
        assert!(pair.b.receives.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_arm_04_a_failed_request_matches_solicited() -> Result {
        let pair = Pair::new()?;
        for context in cases(0..3) {
            pair.b.receive(context, &[])?;
        }
        let from = pair.a.buffer(4096, 0)?;
        pair.a.requests.cq.arm(notify::SOLICITED);
        pair.b.receives.cq.arm(notify::SOLICITED);
        pair.a.send(9, &[], 0)?;
        assert!(pair.a.requests.next_is(9, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(0, NtStatus::SUCCESS));
        assert!(pair.a.requests.has_called(0));
        assert!(pair.b.receives.has_called(0));
        // Without the flag, longer than the receive.
        pair.a.send(10, &[from.sge(0, 8)?], SILENT_SUCCESS)?;
        assert!(pair.a.requests.next()?.status != NtStatus::SUCCESS);
        assert!(pair.b.receives.next_is(1, NtStatus::BUFFER_OVERFLOW));
        assert!(pair.a.requests.has_called(1));
        assert!(pair.b.receives.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_arm_04_a_cancelled_request_matches_solicited() -> Result {
        let pair = Pair::new()?;
        pair.b.receive(0, &[])?;
        // Waits for a receive at the peer.
        pair.b.send(1, &[], SILENT_SUCCESS)?;
        pair.b.receives.cq.arm(notify::SOLICITED);
        pair.b.requests.cq.arm(notify::SOLICITED);
        assert!(pair.b.receives.has_called(0));
        assert!(pair.b.requests.has_called(0));
        pair.b.qp.flush();
        assert!(pair.b.receives.next_is(0, NtStatus::CANCELLED));
        assert!(pair.b.requests.next_is(1, NtStatus::CANCELLED));
        assert!(pair.b.receives.has_called(1));
        assert!(pair.b.requests.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_arm_05_errors_matches_failures_of_the_queue_only() -> Result {
        for overrun in cases([true, false]) {
            let (_site, queue) = host_with_caller()?;
            queue.cq.arm(notify::ERRORS);
            for entry in cases([RECEIVE, SOLICITED, SENT, FAILED, FLUSHED]) {
                assert!(queue.push(entry));
                assert!(queue.has_called(0));
            }
            let status = match overrun {
                true => {
                    assert!(queue.push_all(RECEIVE, 3));
                    assert!(!queue.push(RECEIVE));
                    NtStatus::BUFFER_OVERFLOW
                }
                false => {
                    queue.cq.engine().break_down();
                    NtStatus::INTERNAL_ERROR
                }
            };
            assert!(queue.has_notified(1, status));
        }
        Ok(())
    }

    #[test]
    fn ndk_arm_05_a_failure_of_the_queue_satisfies_any_arm() -> Result {
        for kind in cases(TYPES) {
            let (test_host, queue) = host_with_caller()?;
            queue.cq.arm(kind);
            queue.cq.engine().break_down();
            assert!(queue.has_notified(1, NtStatus::INTERNAL_ERROR));
            let queue = Caller::new(&test_host.adapter, 8)?;
            assert!(queue.push_all(RECEIVE, 8));
            queue.cq.arm(notify::ANY);
            // The arm reports the present entries.
            assert!(queue.has_notified(1, NtStatus::SUCCESS));
            queue.cq.arm(kind);
            assert!(queue.has_called(1));
            assert!(!queue.push(RECEIVE));
            assert!(queue.has_notified(2, NtStatus::BUFFER_OVERFLOW));
        }
        Ok(())
    }

    #[test]
    fn ndk_arm_06_a_second_arm_gives_the_type_of_the_matrix() -> Result {
        let test_host = TestHost::new()?;
        // Rows and columns in the order of `TYPES`.
        let matrix = [
            [notify::ANY, notify::ANY, notify::ANY],
            [notify::ANY, notify::ERRORS, notify::SOLICITED],
            [notify::ANY, notify::SOLICITED, notify::SOLICITED],
        ];
        for (outstanding, row) in cases(TYPES.into_iter().zip(matrix)) {
            for (new, result) in cases(TYPES.into_iter().zip(row)) {
                let queue = Caller::new(&test_host.adapter, 8)?;
                queue.cq.arm(outstanding);
                queue.cq.arm(new);
                let plain = u32::from(result == notify::ANY);
                assert!(queue.push(RECEIVE));
                assert!(queue.has_called(plain));
                let solicited = u32::from(result != notify::ERRORS);
                assert!(queue.push(SOLICITED));
                assert!(queue.has_called(solicited));
                queue.cq.engine().break_down();
                // One call in all.
                assert!(queue.has_called(1));
            }
        }
        Ok(())
    }

    #[test]
    fn ndk_arm_07_an_entry_that_came_since_the_last_call_satisfies_at_once() -> Result {
        let (_site, queue) = host_with_caller()?;
        // Before the first call every entry is new.
        assert!(queue.push_all(RECEIVE, 2));
        assert!(queue.has_called(0));
        queue.cq.arm(notify::ANY);
        assert!(queue.has_notified(1, NtStatus::SUCCESS));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(1));
        queue.cq.arm(notify::ANY);
        assert!(queue.has_called(2));
        // The call has used the arm up.
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_arm_07_an_entry_that_came_during_the_last_call_is_new() -> Result {
        let (_site, queue) = host_with_caller()?;
        let cq = (*queue.cq).clone();
        queue.log.set_hook(move |_| {
            let _ = cq.engine().push(&RECEIVE);
        })?;
        queue.cq.arm(notify::ANY);
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(1));
        queue.log.clear_hook();
        queue.cq.arm(notify::ANY);
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_arm_08_entries_that_were_reported_wait_for_a_new_one() -> Result {
        let (_site, queue) = host_with_caller()?;
        assert!(queue.push_all(RECEIVE, 3));
        queue.cq.arm(notify::ANY);
        assert!(queue.has_called(1));
        for kind in cases([notify::SOLICITED, notify::ANY, notify::ANY]) {
            queue.cq.arm(kind);
            assert!(queue.has_called(1));
        }
        kunit_assert_eq!(queue.take(1), 1);
        queue.cq.arm(notify::ANY);
        assert!(queue.has_called(1));
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_arm_09_a_new_entry_satisfies_any_and_solicited_whatever_it_is() -> Result {
        for entry in cases([RECEIVE, SENT, SOLICITED, FAILED]) {
            for kind in cases([notify::ANY, notify::SOLICITED]) {
                let (_site, queue) = host_with_caller()?;
                assert!(queue.push(entry));
                queue.cq.arm(kind);
                assert!(queue.has_notified(1, NtStatus::SUCCESS));
            }
        }
        Ok(())
    }

    #[test]
    fn ndk_arm_09_only_a_recorded_failure_satisfies_an_errors_arm_at_once() -> Result {
        let (_site, queue) = host_with_caller()?;
        for entry in cases([RECEIVE, SOLICITED, FAILED, FLUSHED]) {
            assert!(queue.push(entry));
            queue.cq.arm(notify::ERRORS);
            assert!(queue.has_called(0));
        }
        queue.cq.engine().break_down();
        assert!(queue.has_notified(1, NtStatus::INTERNAL_ERROR));
        queue.cq.arm(notify::ERRORS);
        assert!(queue.has_notified(2, NtStatus::INTERNAL_ERROR));
        let (_site, queue) = host_with_caller()?;
        assert!(queue.push_all(RECEIVE, 8));
        assert!(!queue.push(RECEIVE));
        assert!(queue.has_called(0));
        queue.cq.arm(notify::ERRORS);
        assert!(queue.has_notified(1, NtStatus::BUFFER_OVERFLOW));
        Ok(())
    }

    #[test]
    fn ndk_arm_10_an_entry_that_was_removed_does_not_satisfy_a_later_arm() -> Result {
        for entry in cases([RECEIVE, FAILED]) {
            let (_site, queue) = host_with_caller()?;
            assert!(queue.push_all(entry, 2));
            kunit_assert_eq!(queue.take(8), 2);
            for kind in cases(TYPES) {
                queue.cq.arm(kind);
                assert!(queue.has_called(0));
            }
            assert!(queue.push(RECEIVE));
            assert!(queue.has_called(1));
        }
        let (_site, queue) = host_with_caller()?;
        queue.cq.arm(notify::ANY);
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(1));
        // One of the two new entries is still there.
        assert!(queue.push_all(RECEIVE, 2));
        kunit_assert_eq!(queue.take(2), 2);
        queue.cq.arm(notify::ANY);
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_arm_12_a_call_that_arms_is_followed_by_the_next_never_entered_by_it() -> Result {
        let (_site, queue) = host_with_caller()?;
        let (cq, log) = ((*queue.cq).clone(), queue.log.clone());
        let early = Arc::new(Tally::new(), GFP_KERNEL)?;
        let seen = early.clone();
        queue.log.set_hook(move |_| {
            let calls = log.calls.get();
            if calls < 4 {
                let _ = cq.engine().push(&RECEIVE);
                cq.arm(notify::ANY);
            }
            if log.calls.get() != calls {
                seen.hit();
            }
        })?;
        queue.cq.arm(notify::ANY);
        assert!(queue.push(RECEIVE));
        assert!(queue.has_called(5));
        kunit_assert_eq!(early.get(), 0);
        Ok(())
    }

    #[test]
    fn ndk_arm_12_no_call_comes_from_inside_an_arm() -> Result {
        let (_site, queue) = host_with_caller()?;
        assert!(queue.push(RECEIVE));
        // With softirqs off, no softirq runs on this processor.
        let section = BhDisabled::enter();
        queue.cq.arm(notify::ANY);
        let calls = queue.log.calls.get();
        drop(section);
        kunit_assert_eq!(calls, 0);
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_arm_13_the_status_distinguishes_completion_overrun_and_fatal_failure() -> Result {
        let test_host = TestHost::new()?;
        for entry in cases([RECEIVE, FAILED, FLUSHED]) {
            let queue = Caller::new(&test_host.adapter, 2)?;
            queue.cq.arm(notify::ANY);
            assert!(queue.push(entry));
            assert!(queue.has_notified(1, NtStatus::SUCCESS));
        }
        let queue = Caller::new(&test_host.adapter, 2)?;
        assert!(queue.push_all(RECEIVE, 2));
        assert!(!queue.push(RECEIVE));
        queue.cq.arm(notify::ANY);
        assert!(queue.has_notified(1, NtStatus::BUFFER_OVERFLOW));
        // The status stays that of the first failure.
        queue.cq.engine().break_down();
        queue.cq.arm(notify::ERRORS);
        assert!(queue.has_notified(2, NtStatus::BUFFER_OVERFLOW));
        let queue = Caller::new(&test_host.adapter, 2)?;
        queue.cq.arm(notify::SOLICITED);
        queue.cq.engine().break_down();
        assert!(queue.has_notified(1, NtStatus::INTERNAL_ERROR));
        Ok(())
    }

    #[test]
    fn ndk_arm_14_what_comes_between_a_poll_and_an_arm_is_reported() -> Result {
        let (_site, queue) = host_with_caller()?;
        let rounds: [(Wc, u32); 3] = [
            (RECEIVE, notify::ANY),
            (SOLICITED, notify::SOLICITED),
            (FAILED, notify::SOLICITED),
        ];
        for ((entry, kind), calls) in cases(rounds.into_iter().zip(1..)) {
            assert!(queue.push(RECEIVE));
            kunit_assert_eq!(queue.take(2), 1);
            assert!(queue.push(entry));
            queue.cq.arm(kind);
            assert!(queue.has_called(calls));
            kunit_assert_eq!(queue.take(2), 1);
        }
        Ok(())
    }

    #[test]
    fn ndk_arm_15_a_queue_that_is_not_armed_never_calls() -> Result {
        for fatal in cases([true, false]) {
            let (_site, queue) = host_with_caller()?;
            for entry in cases([RECEIVE, SOLICITED, FAILED]) {
                assert!(queue.push(entry));
                assert!(queue.has_called(0));
            }
            if fatal {
                queue.cq.engine().break_down();
            } else {
                assert!(queue.push_all(RECEIVE, 5));
                assert!(!queue.push(RECEIVE));
            }
            assert!(queue.has_called(0));
            assert!(queue.take(8) > 0);
        }
        Ok(())
    }

    #[test]
    fn ndk_arm_15_an_undefined_type_arms_nothing_and_changes_nothing() -> Result {
        let (_site, queue) = host_with_caller()?;
        for kind in cases(UNDEFINED) {
            queue.cq.arm(kind);
            assert!(queue.push(SOLICITED));
            assert!(queue.has_called(0));
            // Nor do present entries satisfy the arm.
            queue.cq.arm(kind);
            assert!(queue.has_called(0));
        }
        kunit_assert_eq!(queue.take(8), 4);
        for (calls, kind) in cases(UNDEFINED.into_iter().enumerate()) {
            // CAST: below four.
            let calls = calls as u32;
            queue.cq.arm(notify::SOLICITED);
            queue.cq.arm(kind);
            assert!(queue.push(RECEIVE));
            assert!(queue.has_called(calls));
            assert!(queue.push(FAILED));
            assert!(queue.has_called(calls + 1));
            kunit_assert_eq!(queue.take(8), 2);
        }
        queue.cq.engine().break_down();
        for kind in UNDEFINED {
            queue.cq.arm(kind);
        }
        assert!(queue.has_called(4));
        Ok(())
    }
}
