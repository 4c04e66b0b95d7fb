// SPDX-License-Identifier: GPL-2.0

//! SendAndInvalidate (SINV-01 to SINV-05, SINV-10 to SINV-13).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_send_invalidate)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::transport::ReadLimits,
        kunit::{
            harness::cases,
            other_context::OtherContext, //
        },
        ndk::{
            abi::{
                numbers::{
                    notify,
                    op_flags::*,
                    operation, //
                },
                request_tests::{
                    plain_result,
                    send_and_invalidate, //
                }, //
            },
            srq::SrqSizes,
            status::NtStatus,
            tests::{
                completion::made,
                host::{
                    HostAttr,
                    SIZES, //
                },
                memory::PageBuffer,
                pair::{
                    Pair,
                    TestSide, //
                },
                remote::{
                    beside,
                    can_write,
                    combinations,
                    has_ended,
                    is_up,
                    open,
                    opened,
                    write_one,
                    NOTHING,
                    REMOTE_RESOURCES, //
                }, //
            }, //
        },
        rdma::values::token::Token,
        sys::{
            sge::Sge,
            softirq::BhDisabled, //
        }, //
    };

    fn post(
        test_side: &TestSide,
        context: u64,
        sges: &[Sge],
        flags: u32,
        token: Token,
    ) -> Result<(), NtStatus> {
        test_side
            .qp
            .send_and_invalidate(context, sges.iter().copied(), flags, token)
    }

    fn token_of(memory: &PageBuffer) -> Result<Token> {
        Ok(memory.mr()?.remote_token())
    }

    #[test]
    fn ndk_sinv_01_the_peer_invalidates_the_token_with_the_receive() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(5);
        let [memory, spared] = [opened(&pair.b, 4096)?, opened(&pair.b, 4096)?];
        assert!(can_write(&other, memory.remote(0)?));
        // The post alone does not invalidate: there is no receive.
        assert!(post(&pair.a, 1, &[from.sge(0, 48)?], 0, token_of(&memory)?).is_ok());
        assert!(pair.a.requests.stays_empty());
        assert!(can_write(&other, memory.remote(0)?));
        pair.b.receive(2, &[to.sge(0, 64)?])?;
        assert!(pair.b.receives.next_is(2, NtStatus::SUCCESS));
        assert!(to.has(5, 0, 48));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        // The token of `memory` and no other.
        assert!(can_write(&other, spared.remote(0)?));
        kunit_assert_eq!(write_one(&other, memory.remote(0)?)?, REMOTE_RESOURCES);
        assert!(is_up(&pair.a));
        assert!(is_up(&pair.b));
        Ok(())
    }

    #[test]
    fn ndk_sinv_02_each_combination_of_its_flags_means_what_it_means_for_send() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        let memory = PageBuffer::fast(&pair.b.pd, 4096, true)?;
        let all = [
            SILENT_SUCCESS,
            READ_FENCE,
            SEND_AND_SOLICIT_EVENT,
            INLINE,
            DEFER,
        ];
        let (mut count, mut calls) = (0, 0);
        for flags in cases(combinations(&all)) {
            open(&pair.b, &memory)?;
            from.fill(3);
            pair.b.receive(1, &[to.sge(0, 16)?])?;
            pair.b.receives.cq.arm(notify::SOLICITED);
            let token = token_of(&memory)?;
            assert!(post(&pair.a, 1, &[from.sge(0, 16)?], flags, token).is_ok());
            if flags & DEFER != 0 {
                assert!(pair.b.receives.stays_empty());
                // The request is deferred; inline data were taken by the call.
                from.fill(4);
                pair.b.receive(2, &[])?;
                pair.a.send(2, &NOTHING, 0)?;
            }
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.request_context, 1);
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.output, token.raw());
            let late = flags & DEFER != 0 && flags & INLINE == 0;
            assert!(to.has(if late { 4 } else { 3 }, 0, 16));
            if flags & SILENT_SUCCESS == 0 {
                assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
            }
            if flags & DEFER != 0 {
                assert!(pair.b.receives.next_is(2, NtStatus::SUCCESS));
                assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
            }
            calls += u32::from(flags & SEND_AND_SOLICIT_EVENT != 0);
            assert!(pair.b.receives.has_called(calls));
            count += 1;
        }
        kunit_assert_eq!(count, 32);
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        // All other flags are refused.
        open(&pair.b, &memory)?;
        for flag in cases((0..32).map(|bit| 1 << bit)) {
            if all.iter().all(|f| *f != flag) {
                let posted = post(&pair.a, 3, &NOTHING, flag, token_of(&memory)?);
                kunit_assert_eq!(posted, Err(NtStatus::INVALID_PARAMETER));
            }
        }
        assert!(can_write(&pair.a, memory.remote(0)?));
        Ok(())
    }

    #[test]
    fn ndk_sinv_03_it_is_refused_where_there_is_no_connection() -> Result {
        let pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let invalid = NtStatus::CONNECTION_INVALID;
        let token = Token::from_raw(0x100);
        kunit_assert_eq!(post(&pair.a, 1, &NOTHING, 0, token), Err(invalid));
        kunit_assert_eq!(send_and_invalidate(&pair.a.qp, 1, token)?, invalid.raw());
        drop(pair);
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let token = token_of(&memory)?;
        // Refusals for other reasons.
        let from = pair.a.buffer(4096, 0)?;
        let long = post(&pair.a, 1, &[from.sge(0, 65)?], INLINE, token);
        kunit_assert_eq!(long, Err(NtStatus::BUFFER_OVERFLOW));
        let five = post(&pair.a, 1, &[from.sge(0, 1)?; 5], 0, token);
        kunit_assert_eq!(five, Err(NtStatus::DATA_OVERRUN));
        pair.a.qp.flush();
        kunit_assert_eq!(post(&pair.a, 2, &NOTHING, 0, token), Err(invalid));
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_sinv_03_it_can_be_called_where_nobody_may_sleep() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let token = token_of(&memory)?;
        pair.b.receive(1, &[])?;
        let qp = (*pair.a.qp).clone();
        let other_task = OtherContext::new(move || {
            let _ = qp.send_and_invalidate(2, NOTHING.into_iter(), 0, token);
        })?;
        assert!(other_task.by_timer());
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        kunit_assert_eq!(pair.b.receives.next()?.output, token.raw());
        // The entry of the dispatch table does the same.
        open(&pair.b, &memory)?;
        pair.b.receive(3, &[])?;
        let status = send_and_invalidate(&pair.a.qp, 4, token_of(&memory)?)?;
        kunit_assert_eq!(status, NtStatus::SUCCESS.raw());
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        kunit_assert_eq!(pair.b.receives.next()?.output, token_of(&memory)?.raw());
        Ok(())
    }

    #[test]
    fn ndk_sinv_04_the_sender_is_notified_of_a_send_whatever_became_of_it() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let token = token_of(&memory)?;
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[])?;
        for (context, status) in cases([(3, NtStatus::SUCCESS), (4, REMOTE_RESOURCES)]) {
            // The second time the token is invalid.
            assert!(post(&pair.a, context, &NOTHING, 0, token).is_ok());
            let result = pair.a.requests.next()?;
            kunit_assert_eq!(result.request_context, context);
            kunit_assert_eq!(result.status, status);
            kunit_assert_eq!(result.operation, operation::SEND);
            kunit_assert_eq!(result.qp_context, 0xA);
        }
        let pair = Pair::new()?;
        assert!(post(&pair.a, 5, &NOTHING, 0, token).is_ok());
        pair.a.qp.flush();
        let result = pair.a.requests.next()?;
        kunit_assert_eq!(result.status, NtStatus::CANCELLED);
        kunit_assert_eq!(result.operation, operation::SEND);
        Ok(())
    }

    #[test]
    fn ndk_sinv_05_the_receivers_result_names_the_token() -> Result {
        let pair = Pair::new()?;
        let memory = PageBuffer::fast(&pair.b.pd, 4096, true)?;
        let mut last = 0;
        for context in cases(1..4) {
            open(&pair.b, &memory)?;
            let token = token_of(&memory)?.raw();
            pair.b.receive(context, &[])?;
            pair.b.receive(context + 10, &[])?;
            let posted = post(&pair.a, 1, &NOTHING, SILENT_SUCCESS, Token::from_raw(token));
            assert!(posted.is_ok());
            pair.a.send(1, &NOTHING, SILENT_SUCCESS)?;
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.operation, 0x8001);
            kunit_assert_eq!(got.output, token);
            assert!(token != last);
            kunit_assert_eq!(got.request_context, context);
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            // A later plain message names no token.
            let plain = pair.b.receives.next()?;
            kunit_assert_eq!(plain.operation, operation::RECEIVE);
            kunit_assert_eq!(plain.output, 0);
            last = token;
        }
        Ok(())
    }

    #[test]
    fn ndk_sinv_10_it_is_received_without_any_agreement() -> Result {
        // A connection without reads, and private data without an agreement; in both directions.
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let none = ReadLimits {
            inbound: 0,
            outbound: 0,
        };
        pair.connect(none, none)?;
        for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            let memory = opened(to, 4096)?;
            to.receive(1, &[])?;
            assert!(post(from, 2, &NOTHING, 0, token_of(&memory)?).is_ok());
            assert!(from.requests.next_is(2, NtStatus::SUCCESS));
            let got = to.receives.next()?;
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.output, token_of(&memory)?.raw());
        }
        Ok(())
    }

    #[test]
    fn ndk_sinv_10_it_is_received_by_a_shared_queue() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let sizes = SrqSizes {
            depth: 4,
            sges: 2,
            threshold: 0,
        };
        let srq = made(|done| pair.b.pd.create_srq(sizes, None, done))?;
        pair.b.qp = made(|done| {
            let queues = (&*pair.b.receives.cq, &*pair.b.requests.cq);
            pair.b.pd.create_qp(queues, Some(&srq), 0xB, SIZES, done)
        })?;
        pair.connect(
            crate::ndk::tests::pair::READS,
            crate::ndk::tests::pair::READS,
        )?;
        let memory = opened(&pair.b, 4096)?;
        let token = token_of(&memory)?;
        assert!(srq.receive(1, NOTHING.into_iter()).is_ok());
        assert!(post(&pair.a, 2, &NOTHING, 0, token).is_ok());
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.operation, operation::RECEIVE_AND_INVALIDATE);
        kunit_assert_eq!(got.request_context, 1);
        kunit_assert_eq!(got.output, token.raw());
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        kunit_assert_eq!(write_one(&pair.a, memory.remote(0)?)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_sinv_11_a_result_without_the_token_changes_nothing() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        pair.b.receive(0x1234, &[to.sge(0, 64)?])?;
        let sges = [from.sge(0, 33)?];
        assert!(post(&pair.a, 2, &sges, 0, token_of(&memory)?).is_ok());
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        let got = plain_result(&pair.b.receives.cq)?;
        kunit_assert_eq!(got, Some((NtStatus::SUCCESS.raw(), 33, 0xB, 0x1234)));
        assert!(plain_result(&pair.b.receives.cq)?.is_none());
        kunit_assert_eq!(write_one(&pair.a, memory.remote(0)?)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_sinv_12_the_owner_cannot_invalidate_it_once_more() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        pair.b.receive(1, &[])?;
        assert!(post(&pair.a, 2, &NOTHING, 0, token_of(&memory)?).is_ok());
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        // The request is accepted when it is posted, and checked when it is carried out.
        assert!(pair.b.qp.invalidate_mr(3, memory.mr()?, 0).is_ok());
        let result = pair.b.requests.next()?;
        kunit_assert_eq!(result.request_context, 3);
        kunit_assert_eq!(result.operation, operation::INVALIDATE);
        kunit_assert_eq!(result.status, NtStatus::INVALID_DEVICE_REQUEST);
        assert!(has_ended(&pair.b));
        assert!(has_ended(&pair.a));
        Ok(())
    }

    #[test]
    fn ndk_sinv_13_a_receive_that_is_too_small_invalidates_nothing() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        let from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        pair.b.receive(1, &[to.sge(0, 16)?])?;
        assert!(post(&pair.a, 2, &[from.sge(0, 17)?], 0, token_of(&memory)?).is_ok());
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.status, NtStatus::BUFFER_OVERFLOW);
        kunit_assert_eq!(got.output, 0);
        kunit_assert_eq!(got.operation, operation::RECEIVE);
        assert!(has_ended(&pair.a));
        assert!(has_ended(&pair.b));
        assert!(can_write(&other, memory.remote(0)?));
        Ok(())
    }

    #[test]
    fn ndk_sinv_13_a_receive_whose_memory_is_refused_invalidates_nothing() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        let from = pair.a.buffer(4096, 0)?;
        let sink = pair.b.buffer(4096, 1)?;
        pair.b
            .receive(1, &[sink.sge_by(Token::from_raw(0), 0, 16)])?;
        assert!(post(&pair.a, 2, &[from.sge(0, 16)?], 0, token_of(&memory)?).is_ok());
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.status, NtStatus::ACCESS_VIOLATION);
        kunit_assert_eq!(got.output, 0);
        kunit_assert_eq!(got.operation, operation::RECEIVE);
        assert!(has_ended(&pair.b));
        assert!(can_write(&other, memory.remote(0)?));
        Ok(())
    }

    #[test]
    fn ndk_sinv_13_a_receive_that_is_flushed_invalidates_nothing() -> Result {
        const LONG: usize = (1 << 20) + 4096;
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        let mut from = pair.a.buffer(LONG, 0)?;
        from.bytes.fill(0x77);
        let to = pair.b.buffer(LONG, 1)?;
        // CAST: about 2^20.
        let (gather, scatter) = ([from.sge(0, LONG as u32)?], [to.sge(0, LONG as u32)?]);
        pair.b.receive(1, &scatter)?;
        let token = token_of(&memory)?;
        // The message begins here and goes on in a thread of this processor, after the flush.
        let softirqs_off = BhDisabled::enter();
        let posted = post(&pair.a, 2, &gather, 0, token);
        pair.b.qp.flush();
        drop(softirqs_off);
        assert!(posted.is_ok());
        kunit_assert_eq!(to.bytes[0], 0x77);
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.request_context, 1);
        kunit_assert_eq!(got.status, NtStatus::CANCELLED);
        kunit_assert_eq!(got.operation, operation::RECEIVE);
        kunit_assert_eq!(got.output, 0);
        assert!(can_write(&other, memory.remote(0)?));
        Ok(())
    }

    #[test]
    fn ndk_sinv_13_a_message_that_waits_for_a_receive_invalidates_nothing() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        assert!(post(&pair.a, 1, &NOTHING, 0, token_of(&memory)?).is_ok());
        pair.b.qp.flush();
        pair.b.receive(2, &[])?;
        assert!(pair.b.receives.next_is(2, NtStatus::CANCELLED));
        pair.a.qp.flush();
        assert!(pair.a.requests.next_is(1, NtStatus::CANCELLED));
        assert!(can_write(&other, memory.remote(0)?));
        Ok(())
    }
}
