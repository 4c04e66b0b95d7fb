// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues (SRQ-01 to SRQ-11).

use super::{
    host::{
        HostAttr,
        TestHost, //
    },
    srq_users::Shared, //
};
use crate::ndk::{
    adapter::Limits,
    srq::SrqSizes,
    status::NtStatus, //
};

/// The limits of a small adapter.
const SMALL: Limits = Limits {
    srq: 16,
    sges: 4,
    ..Limits::FULL
};

/// The attributes of a host with those limits.
const fn attr(limits: Limits) -> HostAttr {
    HostAttr {
        limits,
        ..HostAttr::PLAIN
    }
}

/// Sizes of a shared queue.
const fn sizes(depth: u32, sges: u32, threshold: u32) -> SrqSizes {
    SrqSizes {
        depth,
        sges,
        threshold,
    }
}

/// Returns true if the queue takes exactly `room` more receives.
fn has_room(shared: &Shared, room: u64) -> bool {
    shared.post_all(0..room) && shared.post(room, &[]) == Err(NtStatus::NO_MORE_ENTRIES)
}

/// Creates a shared queue; returns the status.
fn creation(test_host: &TestHost, sizes: SrqSizes) -> kernel::error::Result<NtStatus> {
    let created = Shared::create(&test_host.adapter, sizes, true)?;
    Ok(created.map_or_else(|status| status, |_| NtStatus::SUCCESS))
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_srq)]
mod tests {
    use super::*;

    use kernel::prelude::*;

    use crate::{
        kunit::harness::{
            cases,
            sleep, //
        },
        ndk::{
            abi::numbers::{
                notify,
                op_flags::SILENT_SUCCESS,
                operation, //
            },
            status::Progress,
            tests::{
                completion::{
                    log_status,
                    request,
                    CallbackValue, //
                },
                srq_users::SrqUsers, //
            }, //
        },
        rdma::values::token::Token,
        sys::{
            sge::Sge,
            softirq::BhDisabled, //
        }, //
    };

    #[test]
    fn ndk_srq_01_limits_are_those_of_the_adapter() -> Result {
        let test_host = TestHost::with(&attr(SMALL))?;
        for refused in cases([
            sizes(17, 4, 0),
            sizes(u32::MAX, 4, 0),
            sizes(16, 5, 0),
            sizes(16, u32::MAX, 0),
        ]) {
            kunit_assert_eq!(creation(&test_host, refused)?, NtStatus::INVALID_PARAMETER);
        }
        for taken in cases([sizes(16, 4, 0), sizes(1, 0, 0), sizes(16, 4, 16)]) {
            kunit_assert_eq!(creation(&test_host, taken)?, NtStatus::SUCCESS);
        }
        Ok(())
    }

    #[test]
    fn ndk_srq_02_a_receive_completes_on_the_queue_pair_that_took_it() -> Result {
        let srq_users = SrqUsers::new(8, 0)?;
        let into = srq_users.buffer(4096)?;
        let mut from = srq_users.senders[1].buffer(4096, 0)?;
        from.fill(3);
        assert!(srq_users.shared.post(21, &[into.sge(0, 100)?]).is_ok());
        assert!(srq_users.shared.post(22, &[into.sge(100, 100)?]).is_ok());
        assert!(srq_users.shared.post(23, &[]).is_ok());
        srq_users.senders[1].send(1, &[from.sge(0, 60)?], 0)?;
        let got = srq_users.users[1].receives.next()?;
        kunit_assert_eq!(got.request_context, 21);
        kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        kunit_assert_eq!(got.qp_context, 0xB1);
        kunit_assert_eq!(got.operation, operation::RECEIVE);
        kunit_assert_eq!(got.bytes, 60);
        assert!(srq_users.senders[1].requests.next_is(1, NtStatus::SUCCESS));
        assert!(into.has(3, 0, 60));
        assert!(into.bytes[60..].iter().all(|b| *b == 0));
        assert!(srq_users.pass(0, 22)?);
        assert!(srq_users.pass(1, 23)?);
        for user in &srq_users.users {
            assert!(user.receives.stays_empty());
            assert!(user.requests.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn ndk_srq_02_receives_are_posted_within_depth_and_list() -> Result {
        let srq_users = SrqUsers::new(3, 0)?;
        let into = srq_users.buffer(4096)?;
        let list = [into.sge(0, 1)?; 5];
        kunit_assert_eq!(srq_users.shared.post(1, &list), Err(NtStatus::DATA_OVERRUN));
        assert!(srq_users.shared.post(1, &list[..4]).is_ok());
        assert!(srq_users.shared.post(2, &[]).is_ok());
        assert!(srq_users.shared.post(3, &list[..1]).is_ok());
        kunit_assert_eq!(
            srq_users.shared.post(4, &[]),
            Err(NtStatus::NO_MORE_ENTRIES)
        );
        // The length of the list is checked first.
        kunit_assert_eq!(srq_users.shared.post(4, &list), Err(NtStatus::DATA_OVERRUN));
        assert!(srq_users.pass(0, 1)?);
        assert!(srq_users.shared.post(5, &[]).is_ok());
        assert!(srq_users.pass(1, 2)?);
        assert!(srq_users.pass(0, 3)?);
        assert!(srq_users.pass(1, 5)?);
        Ok(())
    }

    #[test]
    fn ndk_srq_02_a_logical_address_is_looked_at_as_on_a_queue_pair() -> Result {
        let srq_users = SrqUsers::new(3, 0)?;
        let from = srq_users.senders[0].buffer(4096, 0)?;
        let nowhere = Sge::new(0x10, 64, Token::LOCAL_MEMORY);
        assert!(srq_users.shared.post(1, &[nowhere]).is_ok());
        srq_users.senders[0].send(2, &[from.sge(0, 64)?], 0)?;
        assert!(srq_users.users[0]
            .receives
            .next_is(1, NtStatus::ACCESS_VIOLATION));
        assert!(srq_users.senders[0].requests.next()?.status != NtStatus::SUCCESS);
        // The failure does not affect the other user of the queue.
        assert!(srq_users.shared.post(3, &[]).is_ok());
        assert!(srq_users.pass(1, 3)?);
        Ok(())
    }

    #[test]
    fn ndk_srq_03_the_call_comes_when_the_count_falls_below_the_threshold() -> Result {
        let srq_users = SrqUsers::new(8, 2)?;
        assert!(srq_users.shared.post_all(0..4));
        assert!(srq_users.shared.has_called(0));
        for receive in cases(0..2) {
            assert!(srq_users.pass(0, receive)?);
            assert!(srq_users.shared.has_called(0));
        }
        assert!(srq_users.pass(1, 2)?);
        assert!(srq_users.shared.has_notified(1, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_srq_03_the_callback_is_optional() -> Result {
        let test_host = TestHost::new()?;
        let shared = Shared::create(&test_host.adapter, sizes(4, 1, 4), false)?;
        let shared = shared.map_err(log_status)?;
        assert!(shared.post_all(0..1));
        kunit_assert_eq!(shared.modify(0, 4)?, NtStatus::SUCCESS);
        kunit_assert_eq!(shared.modify(8, 8)?, NtStatus::SUCCESS);
        assert!(shared.has_called(0));
        kunit_assert_eq!(shared.srq.engine().depth(), 8);
        Ok(())
    }

    #[test]
    fn ndk_srq_04_disarmed_after_a_call_until_the_next_threshold() -> Result {
        let srq_users = SrqUsers::new(8, 2)?;
        assert!(srq_users.shared.post_all(0..2));
        assert!(srq_users.pass(0, 0)?);
        assert!(srq_users.shared.has_called(1));
        assert!(srq_users.pass(0, 1)?);
        assert!(srq_users.shared.has_called(1));
        // The count rises and falls again.
        assert!(srq_users.shared.post_all(2..6));
        for receive in cases(2..6) {
            assert!(srq_users.pass(1, receive)?);
            assert!(srq_users.shared.has_called(1));
        }
        assert!(srq_users.shared.post_all(6..9));
        kunit_assert_eq!(srq_users.shared.modify(0, 3)?, NtStatus::SUCCESS);
        assert!(srq_users.shared.has_called(1));
        assert!(srq_users.pass(0, 6)?);
        assert!(srq_users.shared.has_notified(2, NtStatus::SUCCESS));
        assert!(srq_users.pass(0, 7)?);
        assert!(srq_users.shared.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_srq_05_a_threshold_above_the_count_calls_at_once() -> Result {
        let test_host = TestHost::new()?;
        let shared = Shared::new(&test_host.adapter, 8, 0)?;
        assert!(shared.post_all(0..3));
        // A count equal to the threshold is enough.
        kunit_assert_eq!(shared.modify(0, 3)?, NtStatus::SUCCESS);
        assert!(shared.has_called(0));
        kunit_assert_eq!(shared.modify(0, 4)?, NtStatus::SUCCESS);
        assert!(shared.has_notified(1, NtStatus::SUCCESS));
        // Also together with a new depth.
        kunit_assert_eq!(shared.modify(16, 9)?, NtStatus::SUCCESS);
        assert!(shared.has_called(2));
        Ok(())
    }

    #[test]
    fn ndk_srq_05_the_call_does_not_come_from_inside_modify() -> Result {
        let test_host = TestHost::new()?;
        let shared = Shared::new(&test_host.adapter, 8, 0)?;
        let unused = CallbackValue::new()?;
        let done = unused.callback()?;
        let section = BhDisabled::enter();
        let answer = shared.srq.modify(0, 4, done);
        let calls = shared.log.calls.get();
        drop(section);
        assert!(matches!(answer, Ok(Progress::Done)));
        kunit_assert_eq!(unused.calls.get(), 0);
        kunit_assert_eq!(calls, 0);
        assert!(shared.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_srq_06_no_threshold_keeps_threshold_and_arming() -> Result {
        let srq_users = SrqUsers::new(8, 2)?;
        assert!(srq_users.shared.post_all(0..3));
        for depth in cases([0, 4, 16]) {
            kunit_assert_eq!(srq_users.shared.modify(depth, 0)?, NtStatus::SUCCESS);
        }
        // Armed as before.
        assert!(srq_users.pass(0, 0)?);
        assert!(srq_users.shared.has_called(0));
        assert!(srq_users.pass(0, 1)?);
        assert!(srq_users.shared.has_called(1));
        // Disarmed as before.
        for depth in cases([0, 8]) {
            kunit_assert_eq!(srq_users.shared.modify(depth, 0)?, NtStatus::SUCCESS);
        }
        assert!(srq_users.pass(0, 2)?);
        assert!(srq_users.shared.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_srq_06_no_depth_keeps_the_depth() -> Result {
        let test_host = TestHost::new()?;
        let shared = Shared::new(&test_host.adapter, 5, 0)?;
        kunit_assert_eq!(shared.modify(0, 0)?, NtStatus::SUCCESS);
        kunit_assert_eq!(shared.modify(0, 5)?, NtStatus::SUCCESS);
        assert!(shared.has_called(1));
        assert!(has_room(&shared, 5));
        Ok(())
    }

    #[test]
    fn ndk_srq_06_a_new_depth_is_in_force_and_keeps_what_is_there() -> Result {
        let srq_users = SrqUsers::new(4, 0)?;
        assert!(srq_users.shared.post_all(0..4));
        kunit_assert_eq!(srq_users.shared.modify(6, 0)?, NtStatus::SUCCESS);
        assert!(srq_users.shared.post_all(4..6));
        kunit_assert_eq!(
            srq_users.shared.post(6, &[]),
            Err(NtStatus::NO_MORE_ENTRIES)
        );
        for receive in cases(0..5) {
            assert!(srq_users.pass(0, receive)?);
        }
        kunit_assert_eq!(srq_users.shared.modify(1, 0)?, NtStatus::SUCCESS);
        kunit_assert_eq!(
            srq_users.shared.post(6, &[]),
            Err(NtStatus::NO_MORE_ENTRIES)
        );
        assert!(srq_users.pass(1, 5)?);
        assert!(srq_users.shared.post(7, &[]).is_ok());
        Ok(())
    }

    #[test]
    fn ndk_srq_07_a_new_queue_is_quiet_until_it_falls_from_the_threshold() -> Result {
        let srq_users = SrqUsers::new(8, 3)?;
        assert!(srq_users.shared.has_called(0));
        // The count has never reached the threshold.
        assert!(srq_users.shared.post_all(0..2));
        assert!(srq_users.pass(0, 0)?);
        assert!(srq_users.pass(0, 1)?);
        assert!(srq_users.shared.has_called(0));
        assert!(srq_users.shared.post_all(2..5));
        assert!(srq_users.shared.has_called(0));
        assert!(srq_users.pass(0, 2)?);
        assert!(srq_users.shared.has_notified(1, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_srq_07_created_without_a_threshold_it_is_not_armed() -> Result {
        let srq_users = SrqUsers::new(4, 0)?;
        assert!(srq_users.shared.post_all(0..4));
        for receive in cases(0..4) {
            assert!(srq_users.pass(0, receive)?);
            assert!(srq_users.shared.has_called(0));
        }
        Ok(())
    }

    #[test]
    fn ndk_srq_08_a_depth_that_is_refused_changes_nothing() -> Result {
        let test_host = TestHost::with(&attr(SMALL))?;
        let shared = Shared::new(&test_host.adapter, 8, 0)?;
        assert!(shared.post_all(0..5));
        // The threshold of the same request would call at once.
        kunit_assert_eq!(shared.modify(17, 8)?, NtStatus::INVALID_PARAMETER);
        kunit_assert_eq!(shared.modify(u32::MAX, 8)?, NtStatus::INVALID_PARAMETER);
        kunit_assert_eq!(shared.modify(4, 0)?, NtStatus::BUFFER_OVERFLOW);
        kunit_assert_eq!(shared.modify(1, 1)?, NtStatus::BUFFER_OVERFLOW);
        assert!(shared.has_called(0));
        assert!(has_room(&shared, 3));
        kunit_assert_eq!(shared.modify(8, 0)?, NtStatus::SUCCESS);
        kunit_assert_eq!(shared.modify(16, 0)?, NtStatus::SUCCESS);
        assert!(has_room(&shared, 8));
        Ok(())
    }

    #[test]
    fn ndk_srq_08_a_refused_depth_leaves_the_arm_alone() -> Result {
        let srq_users = SrqUsers::new(8, 3)?;
        assert!(srq_users.shared.post_all(0..4));
        kunit_assert_eq!(srq_users.shared.modify(3, 2)?, NtStatus::BUFFER_OVERFLOW);
        assert!(srq_users.pass(0, 0)?);
        assert!(srq_users.shared.has_called(0));
        assert!(srq_users.pass(0, 1)?);
        assert!(srq_users.shared.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_srq_09_a_fatal_failure_ends_the_queue_and_its_queue_pairs() -> Result {
        let srq_users = SrqUsers::new(8, 2)?;
        assert!(srq_users.shared.post_all(0..4));
        assert!(srq_users.pass(0, 0)?);
        // One send waits for a receive at the peer, the others wait behind it.
        for context in cases(50..53) {
            srq_users.users[0].send(context, &[], SILENT_SUCCESS)?;
        }
        for user in &srq_users.users {
            user.receives.cq.arm(notify::ANY);
            user.requests.cq.arm(notify::ANY);
        }
        srq_users.shared.srq.engine().break_down();
        assert!(srq_users.shared.has_notified(1, NtStatus::INTERNAL_ERROR));
        kunit_assert_eq!(srq_users.shared.post(9, &[]), Err(NtStatus::INTERNAL_ERROR));
        for (user, sender) in srq_users.users.iter().zip(&srq_users.senders) {
            let none = || [].into_iter();
            kunit_assert_eq!(
                user.qp.send(1, none(), 0),
                Err(NtStatus::CONNECTION_INVALID)
            );
            kunit_assert_eq!(
                sender.qp.send(1, none(), 0),
                Err(NtStatus::CONNECTION_INVALID)
            );
            for queue in [&user.receives, &user.requests] {
                assert!(queue.stays_empty());
                assert!(queue.has_called(0));
            }
        }
        // Nor does a flush report the accepted requests.
        srq_users.users[0].qp.flush();
        assert!(srq_users.users[0].requests.stays_empty());
        assert!(srq_users.users[0].receives.stays_empty());
        // One call, armed or not, and no call for a threshold any more.
        srq_users.shared.srq.engine().break_down();
        kunit_assert_eq!(srq_users.shared.modify(0, 8)?, NtStatus::SUCCESS);
        assert!(srq_users.shared.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_srq_10_a_send_that_meets_an_empty_queue_waits_for_as_long_as_it_takes() -> Result {
        // Without a shared queue a message waits no longer than this for a receive.
        let attr = HostAttr {
            rnr_ms: 50,
            ..HostAttr::PLAIN
        };
        let srq_users = SrqUsers::with(&attr, 8, 0)?;
        for context in cases(0..3) {
            srq_users.senders[0].send(context, &[], 0)?;
        }
        sleep(400);
        assert!(srq_users.senders[0].requests.stays_empty());
        assert!(srq_users.users.iter().all(|u| u.disconnects.get() == 0));
        for context in cases(0..3) {
            assert!(srq_users.shared.post(context, &[]).is_ok());
            assert!(srq_users.senders[0]
                .requests
                .next_is(context, NtStatus::SUCCESS));
            assert!(srq_users.users[0]
                .receives
                .next_is(context, NtStatus::SUCCESS));
        }
        // Both directions still work.
        srq_users.senders[0].receive(7, &[])?;
        srq_users.users[0].send(8, &[], 0)?;
        assert!(srq_users.users[0].requests.next_is(8, NtStatus::SUCCESS));
        assert!(srq_users.senders[0].receives.next_is(7, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_srq_10_a_disconnect_does_not_wait_for_ever() -> Result {
        let attr = HostAttr {
            rnr_ms: 50,
            ..HostAttr::PLAIN
        };
        let srq_users = SrqUsers::with(&attr, 8, 0)?;
        srq_users.senders[0].send(1, &[], 0)?;
        sleep(120);
        let connector = srq_users.senders[0].connector()?;
        assert!(request(|done| connector.disconnect(done)).is_ok());
        assert!(srq_users.senders[0]
            .requests
            .next_is(1, NtStatus::IO_TIMEOUT));
        Ok(())
    }

    #[test]
    fn ndk_srq_11_flush_and_close_leave_the_receives_of_others() -> Result {
        let mut srq_users = SrqUsers::new(8, 0)?;
        assert!(srq_users.shared.post_all(0..4));
        srq_users.users[0].receives.cq.arm(notify::ANY);
        srq_users.users[0].qp.flush();
        assert!(srq_users.users[0].receives.stays_empty());
        assert!(srq_users.users[0].receives.has_called(0));
        assert!(srq_users.pass(1, 0)?);
        let user = &mut srq_users.users[0];
        // The connector goes first: it is a successor of the queue pair.
        assert!(user
            .connector
            .as_mut()
            .is_some_and(|c| c.close_and_wait() == Ok(true)));
        assert!(user.qp.close_and_wait()?);
        assert!(user.receives.stays_empty());
        assert!(srq_users.pass(1, 1)?);
        assert!(srq_users.pass(1, 2)?);
        assert!(has_room(&srq_users.shared, 7));
        Ok(())
    }

    #[test]
    fn ndk_srq_11_closing_the_queue_discards_its_receives() -> Result {
        let mut srq_users = SrqUsers::new(8, 2)?;
        assert!(srq_users.shared.post_all(0..4));
        for queue in srq_users.users.each_ref().map(|u| &u.receives.cq) {
            queue.arm(notify::ANY);
        }
        let (progress, closed) = srq_users.shared.srq.close()?;
        assert!(matches!(progress, Progress::Pending));
        // The closed queue still serves its queue pairs.
        assert!(srq_users.pass(0, 0)?);
        for user in &mut srq_users.users {
            assert!(user
                .connector
                .as_mut()
                .is_some_and(|c| c.close_and_wait() == Ok(true)));
            assert!(user.qp.close_and_wait()?);
        }
        assert!(closed.wait().is_some());
        kunit_assert_eq!(closed.calls.get(), 1);
        for (user, calls) in srq_users.users.iter().zip([1, 0]) {
            assert!(user.receives.stays_empty());
            assert!(user.receives.has_called(calls));
        }
        assert!(srq_users.shared.has_called(0));
        Ok(())
    }
}
