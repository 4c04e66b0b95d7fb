// SPDX-License-Identifier: GPL-2.0

//! Posting: acceptance and refusal, and the order of completions (POST-01 to POST-18). The checks
//! of a post are in `post_checks.rs`, concurrent posts in `post_race.rs`.

#[kernel::macros::kunit_tests(ndk_kunit_ndk_post)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        kunit::{
            harness::cases,
            log::Tally, //
        },
        ndk::{
            abi::numbers::op_flags::{
                READ_FENCE,
                SILENT_SUCCESS, //
            },
            call::done,
            status::NtStatus,
            tests::{
                connect_sequence::Steps,
                fake_transport::ManualPair,
                host::{
                    HostAttr,
                    SIZES, //
                },
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
        rdma::values::{
            status::Status,
            token::Token, //
        }, //
    };

    const REFUSED: Result<(), NtStatus> = Err(NtStatus::CONNECTION_INVALID);

    /// Posts an empty send; returns the answer.
    fn send(test_side: &TestSide, context: u64, flags: u32) -> Result<(), NtStatus> {
        test_side.qp.send(context, [].into_iter(), flags)
    }

    #[test]
    fn ndk_post_01_an_accepted_request_completes_once_when_its_work_is_done() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            kunit_assert_eq!(request_set.post(&manual.pair.a, kind, context, 0)?, Ok(()));
            // A local request at the head of the queue is done by now.
            if !matches!(kind, Kind::Register | Kind::Invalidate) {
                let seq = manual.start().ok_or(EINVAL)?;
                // An accepted request that has begun is not done.
                assert!(manual.pair.a.requests.stays_empty());
                manual.finish(seq, Status::Success);
            }
            assert!(manual.start().is_none());
            assert!(manual.pair.a.requests.next_is(context, NtStatus::SUCCESS));
            assert!(manual.pair.a.requests.stays_empty());
            assert!(manual.pair.a.receives.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn ndk_post_02_without_a_connection_every_function_refuses_and_posts_nothing() -> Result {
        let mut manual = ManualPair::unconnected(SIZES)?;
        let request_set = RequestSet::new(&manual.pair)?;
        for kind in cases(Kind::ALL) {
            kunit_assert_eq!(request_set.post(&manual.pair.a, kind, 1, 0)?, REFUSED);
        }
        let steps = Steps::ask(&manual.pair)?;
        steps.accept(&manual.pair)?;
        steps.complete(&manual.pair)?;
        steps.finish(&mut manual.pair);
        assert!(manual.start().is_none());
        assert!(manual.pair.a.requests.stays_empty());
        // The next request is the first in the queue.
        kunit_assert_eq!(send(&manual.pair.a, 2, 0), Ok(()));
        assert!(manual.serve());
        assert!(manual.pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(!manual.serve());
        Ok(())
    }

    #[test]
    fn ndk_post_03_a_refused_request_never_completes_and_the_queue_goes_on() -> Result {
        let pair = Pair::new()?;
        let buffer = pair.a.buffer(4096, 1)?;
        // This send waits for a receive while other requests are refused.
        pair.a.send(1, &[], 0)?;
        kunit_assert_eq!(send(&pair.a, 2, 0x8000), Err(NtStatus::INVALID_PARAMETER));
        let five = [buffer.sge(0, 8)?; 5];
        let refused = pair.a.qp.send(3, five.into_iter(), 0);
        kunit_assert_eq!(refused, Err(NtStatus::DATA_OVERRUN));
        pair.a.send(4, &[], 0)?;
        assert!(pair.a.requests.stays_empty());
        pair.b.receive(11, &[])?;
        pair.b.receive(12, &[])?;
        pair.b.receive(13, &[])?;
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.next_is(11, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(12, NtStatus::SUCCESS));
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_04_silent_success_of_every_function_queues_nothing() -> Result {
        let pair = Pair::new()?;
        let request_set = RequestSet::new(&pair)?;
        request_set
            .theirs
            .fast_register(&pair.b.qp, 1, 0)?
            .map_err(|_| EIO)?;
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        for context in cases(10..12) {
            pair.b.receive(context, &[request_set.there.sge(0, 64)?])?;
        }
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            kunit_assert_eq!(
                request_set.post(&pair.a, kind, context, SILENT_SUCCESS)?,
                Ok(())
            );
        }
        // The silent requests are carried out before this send.
        pair.b.receive(12, &[])?;
        pair.a.send(99, &[], 0)?;
        assert!(pair.a.requests.next_is(99, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        for context in cases(10..13) {
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_post_05_a_silent_request_that_fails_completes() -> Result {
        let pair = Pair::new()?;
        let buffer = pair.a.buffer(4096, 0)?;
        let stray = [buffer.sge_by(Token::from_raw(0), 0, 8)];
        pair.a.send(1, &stray, SILENT_SUCCESS)?;
        assert!(pair.a.requests.next_is(1, NtStatus::ACCESS_VIOLATION));
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_05_a_silent_request_that_is_flushed_completes() -> Result {
        let manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        // This send comes first, so that no other request is carried out at once.
        kunit_assert_eq!(send(&manual.pair.a, 0, SILENT_SUCCESS), Ok(()));
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            kunit_assert_eq!(
                request_set.post(&manual.pair.a, kind, context, SILENT_SUCCESS)?,
                Ok(())
            );
        }
        manual.pair.a.qp.flush();
        for context in cases(0..8) {
            assert!(manual.pair.a.requests.next_is(context, NtStatus::CANCELLED));
        }
        assert!(manual.pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_06_a_fence_waits_for_every_earlier_read_and_others_stay_behind() -> Result {
        for fenced in cases(Kind::ALL) {
            let mut manual = ManualPair::new()?;
            let request_set = RequestSet::new(&manual.pair)?;
            let a = &manual.pair.a;
            kunit_assert_eq!(request_set.post(a, Kind::Read, 1, 0)?, Ok(()));
            kunit_assert_eq!(request_set.post(a, Kind::Read, 2, 0)?, Ok(()));
            kunit_assert_eq!(request_set.post(a, fenced, 3, READ_FENCE)?, Ok(()));
            kunit_assert_eq!(send(a, 4, 0), Ok(()));
            kunit_assert_eq!(request_set.post(a, Kind::Read, 5, 0)?, Ok(()));
            let first = manual.start().ok_or(EINVAL)?;
            let second = manual.start().ok_or(EINVAL)?;
            assert!(manual.start().is_none());
            manual.finish(second, Status::Success);
            assert!(manual.start().is_none());
            manual.finish(first, Status::Success);
            assert!(manual.starts(fenced));
            // Later requests begin after the fenced one, and do not wait for its end.
            assert!(manual.starts(Kind::Send));
            assert!(manual.starts(Kind::Read));
        }
        Ok(())
    }

    #[test]
    fn ndk_post_06_a_fence_waits_for_reads_only() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        let others = Kind::ALL.into_iter().filter(|k| *k != Kind::Read);
        kunit_assert_eq!(send(&manual.pair.a, 0, 0), Ok(()));
        for (context, kind) in cases((1..).zip(others)) {
            kunit_assert_eq!(request_set.post(&manual.pair.a, kind, context, 0)?, Ok(()));
        }
        kunit_assert_eq!(send(&manual.pair.a, 9, READ_FENCE), Ok(()));
        // Nor does a later read delay the fenced send.
        kunit_assert_eq!(request_set.post(&manual.pair.a, Kind::Read, 10, 0)?, Ok(()));
        kunit_assert_eq!(manual.start_all(), 9);
        assert!(manual.pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_07_both_contexts_come_back() -> Result {
        let pair = Pair::new()?;
        let contexts = [0, u64::MAX, 7, 7];
        for context in cases(contexts) {
            pair.b.receive(!context, &[])?;
            pair.a.send(context, &[], 0)?;
        }
        for context in cases(contexts) {
            let sent = pair.a.requests.next()?;
            kunit_assert_eq!(sent.request_context, context);
            kunit_assert_eq!(sent.qp_context, 0xA);
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.request_context, !context);
            kunit_assert_eq!(got.qp_context, 0xB);
        }
        Ok(())
    }

    #[test]
    fn ndk_post_12_silent_requests_fill_the_queue_and_a_completed_one_frees_its_slot() -> Result {
        const FULL: Result<(), NtStatus> = Err(NtStatus::NO_MORE_ENTRIES);
        let mut manual = ManualPair::with(deep(5))?;
        for context in cases(0..5) {
            let silent = if context % 2 == 0 { SILENT_SUCCESS } else { 0 };
            kunit_assert_eq!(send(&manual.pair.a, context, silent), Ok(()));
        }
        kunit_assert_eq!(send(&manual.pair.a, 5, 0), FULL);
        let (first, second) = (manual.start().ok_or(EINVAL)?, manual.start().ok_or(EINVAL)?);
        // A begun request is still outstanding; so is one that is done out of order.
        kunit_assert_eq!(send(&manual.pair.a, 5, 0), FULL);
        manual.finish(second, Status::Success);
        kunit_assert_eq!(send(&manual.pair.a, 5, 0), FULL);
        manual.finish(first, Status::Success);
        // Two slots are free, without a poll.
        kunit_assert_eq!(send(&manual.pair.a, 6, 0), Ok(()));
        kunit_assert_eq!(send(&manual.pair.a, 7, 0), Ok(()));
        kunit_assert_eq!(send(&manual.pair.a, 8, 0), FULL);
        while manual.serve() {}
        for context in cases([1, 3, 6, 7]) {
            assert!(manual.pair.a.requests.next_is(context, NtStatus::SUCCESS));
        }
        assert!(manual.pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_15_requests_complete_in_posting_order_whatever_ends_first() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        kunit_assert_eq!(send(&manual.pair.a, 0, 0), Ok(()));
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            kunit_assert_eq!(request_set.post(&manual.pair.a, kind, context, 0)?, Ok(()));
        }
        let mut begun = KVec::new();
        while let Some(seq) = manual.start() {
            begun.push(seq, GFP_KERNEL)?;
        }
        kunit_assert_eq!(begun.len(), 8);
        for seq in cases(begun.iter().skip(1).rev()) {
            manual.finish(*seq, Status::Success);
            assert!(manual.pair.a.requests.stays_empty());
        }
        manual.finish(begun[0], Status::Success);
        for context in cases(0..8) {
            assert!(manual.pair.a.requests.next_is(context, NtStatus::SUCCESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_post_15_the_two_queues_of_a_qp_do_not_wait_for_each_other() -> Result {
        let pair = Pair::new()?;
        // The request of `a` waits for its receive; the receive posted later is done first.
        pair.a.send(1, &[], 0)?;
        pair.a.receive(2, &[])?;
        pair.b.send(3, &[], 0)?;
        assert!(pair.a.receives.next_is(2, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        pair.b.receive(4, &[])?;
        pair.b.receive(5, &[])?;
        pair.a.send(6, &[], 0)?;
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(6, NtStatus::SUCCESS));
        // Receives complete in their order, too.
        assert!(pair.b.receives.next_is(4, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(5, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_post_18_connected_begins_when_complete_connect_and_accept_have_completed() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let refuses = |pair: &Pair| {
            let posts = [send(&pair.a, 1, 0), send(&pair.b, 1, 0)];
            posts == [REFUSED, REFUSED]
        };
        assert!(refuses(&pair));
        let steps = Steps::ask(&pair)?;
        assert!(refuses(&pair));
        // Connect is over, and neither side is connected.
        steps.accept(&pair)?;
        assert!(refuses(&pair));
        steps.complete(&pair)?;
        steps.finish(&mut pair);
        for test_side in [&pair.a, &pair.b] {
            test_side.receive(2, &[])?;
        }
        kunit_assert_eq!(send(&pair.a, 3, 0), Ok(()));
        kunit_assert_eq!(send(&pair.b, 4, 0), Ok(()));
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        assert!(pair.b.requests.next_is(4, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_post_18_connected_is_true_inside_the_completion_of_accept() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let steps = Steps::ask(&pair)?;
        let (qp, fine) = ((*pair.b.qp).clone(), Arc::new(Tally::new(), GFP_KERNEL)?);
        let (notified, count) = (steps.accepted.clone(), fine.clone());
        let accepted = done(GFP_KERNEL, move |status: NtStatus| {
            if qp.send(7, [].into_iter(), 0) == Ok(()) {
                count.hit();
            }
            notified.put(status);
        });
        let reads = crate::ndk::tests::pair::READS;
        let accepted = accepted.map_err(|_| ENOMEM)?;
        let accepting = steps
            .theirs
            .accept(&pair.b.qp, reads, KVec::new(), None, accepted);
        assert!(accepting.is_ok());
        steps.connected.came(NtStatus::SUCCESS)?;
        pair.a.receive(8, &[])?;
        steps.complete(&pair)?;
        steps.finish(&mut pair);
        kunit_assert_eq!(fine.get(), 1);
        assert!(pair.b.requests.next_is(7, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_post_18_local_disconnect_ends_it_at_once() -> Result {
        let pair = Pair::new()?;
        // The disconnect is not over before this send has found its receive.
        pair.a.send(1, &[], 0)?;
        let over = crate::ndk::tests::completion::CallbackValue::new()?;
        let disconnecting = pair.a.connector()?.disconnect(over.callback()?);
        assert!(disconnecting.is_ok());
        kunit_assert_eq!(send(&pair.a, 2, 0), REFUSED);
        pair.b.receive(3, &[])?;
        over.came(NtStatus::SUCCESS)?;
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(send(&pair.a, 4, 0), REFUSED);
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_18_connector_close_and_flush_end_it_at_once() -> Result {
        let mut pair = Pair::new()?;
        let mut connector = pair.a.connector.take().ok_or(EINVAL)?;
        let (_, over) = connector.close()?;
        kunit_assert_eq!(send(&pair.a, 1, 0), REFUSED);
        drop(over);
        let pair = Pair::new()?;
        pair.a.qp.flush();
        kunit_assert_eq!(send(&pair.a, 1, 0), REFUSED);
        pair.test_host.flush_work();
        kunit_assert_eq!(send(&pair.a, 1, 0), REFUSED);
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_18_a_failed_completion_ends_it() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::plain(64)?;
        pair.a
            .send(1, &[buffer.sge_by(Token::from_raw(0), 0, 8)], 0)?;
        assert!(pair.a.requests.next_is(1, NtStatus::ACCESS_VIOLATION));
        kunit_assert_eq!(send(&pair.a, 2, 0), REFUSED);
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_post_18_peer_disconnect_ends_it() -> Result {
        let mut pair = Pair::new()?;
        let mut theirs = pair.b.connector.take().ok_or(EINVAL)?;
        assert!(theirs.close_and_wait()?);
        pair.test_host.flush_work();
        kunit_assert_eq!(pair.a.disconnects.get(), 1);
        kunit_assert_eq!(send(&pair.a, 1, 0), REFUSED);
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }
}
