// SPDX-License-Identifier: GPL-2.0

//! Deferred requests (DEFR-01 to DEFR-07).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_defer)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::counters::Counter,
        kunit::harness::cases,
        ndk::{
            abi::numbers::op_flags::{
                ALLOW_REMOTE_READ,
                DEFER,
                SILENT_SUCCESS, //
            },
            status::NtStatus,
            tests::{
                completion::CallbackValue,
                fake_transport::ManualPair,
                memory::PageBuffer,
                pair::{
                    Pair,
                    TestSide, //
                },
                requests::{
                    deep,
                    Kind,
                    RequestSet, //
                }, //
            }, //
        },
        rdma::values::status::Status, //
    };

    /// Posts an empty send; returns the answer.
    fn send(test_side: &TestSide, context: u64, flags: u32) -> Result<(), NtStatus> {
        test_side.qp.send(context, [].into_iter(), flags)
    }

    /// Posts the deferred sends 1 to 3.
    fn hold_three(pair: &Pair) -> Result {
        for context in 1..4 {
            pair.a.send(context, &[], DEFER)?;
        }
        Ok(())
    }

    /// Returns true if sends 1 to 3 are cancelled, and no other result comes.
    fn are_cancelled(pair: &Pair) -> bool {
        (1..4).all(|n| pair.a.requests.next_is(n, NtStatus::CANCELLED))
            && pair.a.requests.stays_empty()
    }

    #[test]
    fn ndk_defr_01_a_chain_is_held_back_and_goes_in_one_pass() -> Result {
        let pair = Pair::new()?;
        for context in cases(0..8) {
            pair.b.receive(context, &[])?;
        }
        let passes = pair.test_host.counted(Counter::Passes);
        let deferred = pair.test_host.counted(Counter::Deferred);
        for context in cases(0..7) {
            pair.a.send(context, &[], DEFER)?;
        }
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        kunit_assert_eq!(pair.test_host.counted(Counter::Passes), passes);
        kunit_assert_eq!(pair.test_host.counted(Counter::Deferred), deferred + 7);
        pair.a.send(7, &[], 0)?;
        for context in cases(0..8) {
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
        }
        kunit_assert_eq!(pair.test_host.counted(Counter::Passes), passes + 1);
        kunit_assert_eq!(pair.test_host.counted(Counter::Deferred), deferred + 7);
        Ok(())
    }

    #[test]
    fn ndk_defr_02_every_initiator_request_may_be_deferred() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        kunit_assert_eq!(DEFER, 0x200);
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            kunit_assert_eq!(
                request_set.post(&manual.pair.a, kind, context, 0x200)?,
                Ok(())
            );
            assert!(manual.start().is_none());
        }
        kunit_assert_eq!(manual.pair.test_host.counted(Counter::Deferred), 7);
        kunit_assert_eq!(send(&manual.pair.a, 8, 0), Ok(()));
        for kind in cases(Kind::ALL) {
            assert!(manual.starts(kind));
        }
        assert!(manual.starts(Kind::Send));
        assert!(manual.start().is_none());
        Ok(())
    }

    #[test]
    fn ndk_defr_03_completions_are_those_of_requests_that_are_not_deferred() -> Result {
        let mut manual = ManualPair::new()?;
        let a = &manual.pair.a;
        kunit_assert_eq!(send(a, 1, DEFER), Ok(()));
        kunit_assert_eq!(send(a, 2, DEFER | SILENT_SUCCESS), Ok(()));
        kunit_assert_eq!(send(a, 3, DEFER), Ok(()));
        kunit_assert_eq!(send(a, 4, DEFER | SILENT_SUCCESS), Ok(()));
        // A refused request never completes.
        kunit_assert_eq!(send(a, 5, DEFER | 0x8000), Err(NtStatus::INVALID_PARAMETER));
        for status in cases([Status::Success, Status::Success, Status::RemoteAccess]) {
            let seq = manual.start().ok_or(EINVAL)?;
            manual.finish(seq, status);
        }
        let requests = &manual.pair.a.requests;
        assert!(requests.next_is(1, NtStatus::SUCCESS));
        let failed = requests.next()?;
        kunit_assert_eq!(failed.request_context, 3);
        assert!(failed.status != NtStatus::SUCCESS);
        // Silent, but not successful.
        assert!(requests.next_is(4, NtStatus::CANCELLED));
        assert!(requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_defr_04_a_refused_request_lets_all_held_ones_go() -> Result {
        // One refusal by each check.
        for case in cases(0..3) {
            let pair = Pair::new()?;
            let buffer = pair.a.buffer(4096, 0)?;
            for context in cases(1..5) {
                pair.b.receive(context, &[])?;
            }
            let passes = pair.test_host.counted(Counter::Passes);
            hold_three(&pair)?;
            assert!(pair.a.requests.stays_empty());
            let five = [buffer.sge(0, 8)?; 5];
            let (posted, why) = match case {
                0 => (send(&pair.a, 9, 0x8000), NtStatus::INVALID_PARAMETER),
                1 => (
                    pair.a.qp.send(9, five.into_iter(), DEFER),
                    NtStatus::DATA_OVERRUN,
                ),
                _ => {
                    let normal = pair.a.qp.invalidate_mr(9, buffer.mr()?, DEFER);
                    (normal, NtStatus::INVALID_PARAMETER)
                }
            };
            kunit_assert_eq!(posted, Err(why));
            for context in cases(1..4) {
                assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            }
            assert!(pair.a.requests.stays_empty());
            kunit_assert_eq!(pair.test_host.counted(Counter::Passes), passes + 1);
        }
        Ok(())
    }

    #[test]
    fn ndk_defr_04_a_queue_full_of_deferred_requests_drains() -> Result {
        let pair = Pair::with(&crate::ndk::tests::host::HostAttr::PLAIN, deep(3), deep(3))?;
        for context in cases(1..4) {
            pair.b.receive(context, &[])?;
        }
        hold_three(&pair)?;
        kunit_assert_eq!(send(&pair.a, 4, DEFER), Err(NtStatus::NO_MORE_ENTRIES));
        for context in cases(1..4) {
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
        }
        pair.b.receive(4, &[])?;
        kunit_assert_eq!(send(&pair.a, 5, 0), Ok(()));
        assert!(pair.a.requests.next_is(5, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_defr_04_not_connected_any_more_flushes_what_was_held() -> Result {
        let mut pair = Pair::new()?;
        hold_three(&pair)?;
        let mut theirs = pair.b.connector.take().ok_or(EINVAL)?;
        assert!(theirs.close_and_wait()?);
        pair.test_host.flush_work();
        // The peer is gone; posted requests wait for this side (CONN-16).
        kunit_assert_eq!(send(&pair.a, 4, 0), Err(NtStatus::CONNECTION_INVALID));
        assert!(pair.a.requests.stays_empty());
        pair.a.qp.flush();
        assert!(are_cancelled(&pair));
        Ok(())
    }

    #[test]
    fn ndk_defr_05_a_request_without_the_flag_ends_the_chain_in_posting_order() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        let chain = [Kind::Register, Kind::Write, Kind::Read, Kind::Bind];
        for (context, kind) in cases((1..).zip(chain)) {
            kunit_assert_eq!(
                request_set.post(&manual.pair.a, kind, context, DEFER)?,
                Ok(())
            );
        }
        assert!(manual.start().is_none());
        kunit_assert_eq!(
            request_set.post(&manual.pair.a, Kind::Invalidate, 5, 0)?,
            Ok(())
        );
        // The next deferred request begins another chain.
        kunit_assert_eq!(
            request_set.post(&manual.pair.a, Kind::Send, 6, DEFER)?,
            Ok(())
        );
        for kind in cases(chain) {
            assert!(manual.starts(kind));
        }
        assert!(manual.starts(Kind::Invalidate));
        assert!(manual.start().is_none());
        Ok(())
    }

    #[test]
    fn ndk_defr_06_one_completion_when_the_second_of_two_registrations_is_refused() -> Result {
        let pair = Pair::new()?;
        let first = PageBuffer::fast(&pair.a.pd, 4096, true)?;
        let second = PageBuffer::fast(&pair.a.pd, 4096, false)?;
        let registrations = pair.test_host.counted(Counter::Registrations);
        let flags = DEFER | ALLOW_REMOTE_READ;
        kunit_assert_eq!(first.fast_register(&pair.a.qp, 1, flags)?, Ok(()));
        assert!(pair.a.requests.stays_empty());
        let refused = second.fast_register(&pair.a.qp, 2, flags)?;
        kunit_assert_eq!(refused, Err(NtStatus::ACCESS_VIOLATION));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        kunit_assert_eq!(
            pair.test_host.counted(Counter::Registrations),
            registrations + 1
        );
        Ok(())
    }

    #[test]
    fn ndk_defr_07_flush_cancels_what_was_held() -> Result {
        let pair = Pair::new()?;
        pair.b.receive(1, &[])?;
        hold_three(&pair)?;
        pair.a.qp.flush();
        assert!(are_cancelled(&pair));
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_defr_07_disconnect_cancels_what_was_held() -> Result {
        let pair = Pair::new()?;
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[])?;
        // A request that is not deferred is carried out.
        pair.a.send(0, &[], 0)?;
        hold_three(&pair)?;
        let over = CallbackValue::new()?;
        let disconnecting = pair.a.connector()?.disconnect(over.callback()?);
        assert!(disconnecting.is_ok());
        over.came(NtStatus::SUCCESS)?;
        assert!(pair.a.requests.next_is(0, NtStatus::SUCCESS));
        assert!(are_cancelled(&pair));
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_defr_07_connector_close_cancels_what_was_held() -> Result {
        let mut pair = Pair::new()?;
        pair.b.receive(1, &[])?;
        hold_three(&pair)?;
        let mut connector = pair.a.connector.take().ok_or(EINVAL)?;
        assert!(connector.close_and_wait()?);
        assert!(are_cancelled(&pair));
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_defr_07_an_error_cancels_what_was_held() -> Result {
        let pair = Pair::new()?;
        let buffer = pair.a.buffer(4096, 0)?;
        // Carried out with the next receive, which is too small.
        pair.a.send(0, &[buffer.sge(0, 64)?], 0)?;
        hold_three(&pair)?;
        assert!(pair.a.requests.stays_empty());
        pair.b.receive(1, &[])?;
        let failed = pair.a.requests.next()?;
        kunit_assert_eq!(failed.request_context, 0);
        assert!(failed.status != NtStatus::SUCCESS);
        assert!(failed.status != NtStatus::CANCELLED);
        assert!(are_cancelled(&pair));
        Ok(())
    }
}
