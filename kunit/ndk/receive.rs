// SPDX-License-Identifier: GPL-2.0

//! Receive (RECV-01 to RECV-06).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_receive)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::{
            harness::cases,
            other_context::OtherContext, //
        },
        ndk::{
            abi::numbers::operation,
            srq::SrqSizes,
            status::NtStatus,
            tests::{
                completion::made,
                host::{
                    HostAttr,
                    SIZES, //
                },
                pair::{
                    Pair,
                    READS, //
                },
                remote::{
                    has_ended,
                    opened,
                    NOTHING, //
                }, //
            }, //
        },
        rdma::values::{
            qp::QpCaps,
            token::Token, //
        }, //
    };

    #[test]
    fn ndk_recv_01_a_receive_is_never_silent_and_never_held_back() -> Result {
        let pair = Pair::new()?;
        let to = pair.b.buffer(4096, 1)?;
        let sges = [to.sge(0, 64)?];
        let qp = (*pair.b.qp).clone();
        // In a context that may not sleep.
        let other_task = OtherContext::new(move || {
            let _ = qp.receive(0x1234_5678_9ABC, sges.into_iter());
        })?;
        assert!(other_task.by_timer());
        // A single receive serves a message, without another post behind it.
        pair.a.send(2, &NOTHING, 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(0x1234_5678_9ABC, NtStatus::SUCCESS));
        // There was one receive only.
        pair.a.send(3, &NOTHING, 0)?;
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        pair.b.receive(4, &[])?;
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(4, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_recv_02_receives_may_be_posted_before_the_connection() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(6);
        pair.b.receive(1, &[to.sge(0, 32)?])?;
        pair.b.receive(2, &[to.sge(32, 32)?])?;
        assert!(pair.b.receives.stays_empty());
        pair.connect(READS, READS)?;
        assert!(pair.b.receives.stays_empty());
        for (context, at) in cases([(1, 0), (2, 32)]) {
            pair.a.send(context, &[from.sge(at, 32)?], 0)?;
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.request_context, context);
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        }
        assert!(to.has(6, 0, 64));
        Ok(())
    }

    #[test]
    fn ndk_recv_03_depth_and_elements_are_those_of_the_queue_pair() -> Result {
        let sizes = QpCaps {
            recv_wr: 3,
            recv_sge: 2,
            ..SIZES
        };
        let pair = Pair::with(&HostAttr::PLAIN, SIZES, sizes)?;
        let from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        let sge = to.sge(0, 8)?;
        let post = |context, sges: &[_]| pair.b.qp.receive(context, sges.iter().copied());
        kunit_assert_eq!(post(0, &[sge; 3]), Err(NtStatus::DATA_OVERRUN));
        assert!(post(1, &[sge; 2]).is_ok());
        assert!(post(2, &[sge]).is_ok());
        assert!(post(3, &[]).is_ok());
        kunit_assert_eq!(post(4, &[]), Err(NtStatus::NO_MORE_ENTRIES));
        // The elements are checked before the room.
        kunit_assert_eq!(post(4, &[sge; 3]), Err(NtStatus::DATA_OVERRUN));
        assert!(pair.b.receives.stays_empty());
        // A used receive makes room for one.
        pair.a.send(1, &[from.sge(0, 16)?], 0)?;
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(post(5, &[]).is_ok());
        kunit_assert_eq!(post(6, &[]), Err(NtStatus::NO_MORE_ENTRIES));
        for context in cases([2, 3, 5]) {
            pair.a.send(context, &NOTHING, 0)?;
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_recv_03_a_queue_pair_may_have_no_receives() -> Result {
        let sizes = QpCaps {
            recv_wr: 0,
            recv_sge: 0,
            ..SIZES
        };
        let pair = Pair::with(&HostAttr::PLAIN, SIZES, sizes)?;
        kunit_assert_eq!(
            pair.b.qp.receive(1, NOTHING.into_iter()),
            Err(NtStatus::NO_MORE_ENTRIES)
        );
        Ok(())
    }

    #[test]
    fn ndk_recv_04_the_result_has_length_and_kind() -> Result {
        let pair = Pair::new()?;
        let from = pair.a.buffer(8192, 0)?;
        let to = pair.b.buffer(8192, 1)?;
        for len in cases([0, 1, 4095, 8192]) {
            pair.b.receive(1, &[to.sge(0, 8192)?])?;
            pair.a.send(2, &[from.sge(0, len)?], 0)?;
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.bytes, len);
            kunit_assert_eq!(got.operation, operation::RECEIVE);
            kunit_assert_eq!(got.output, 0);
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            let memory = opened(&pair.b, 4096)?;
            let token = memory.mr()?.remote_token();
            pair.b.receive(3, &[to.sge(0, 8192)?])?;
            let sges = [from.sge(0, len)?];
            let posted = pair.a.qp.send_and_invalidate(4, sges.into_iter(), 0, token);
            assert!(posted.is_ok());
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.bytes, len);
            kunit_assert_eq!(got.operation, operation::RECEIVE_AND_INVALIDATE);
            kunit_assert_eq!(got.output, token.raw());
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        }
        Ok(())
    }

    #[test]
    fn ndk_recv_05_a_receive_on_a_flushed_queue_pair_is_cancelled() -> Result {
        let pair = Pair::new()?;
        pair.b.qp.flush();
        let to = pair.b.buffer(4096, 1)?;
        for context in cases(1..100) {
            pair.b.receive(context, &[to.sge(0, 64)?])?;
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.request_context, context);
            kunit_assert_eq!(got.status, NtStatus::CANCELLED);
            kunit_assert_eq!(got.operation, operation::RECEIVE);
            kunit_assert_eq!(got.bytes, 0);
            kunit_assert_eq!(got.qp_context, 0xB);
        }
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_recv_05_a_receive_on_a_failed_queue_pair_is_cancelled() -> Result {
        let pair = Pair::new()?;
        let sge = pair.a.buffer(4096, 0)?.sge_by(Token::from_raw(0), 0, 8);
        pair.a.send(1, &[sge], 0)?;
        assert!(pair.a.requests.next_is(1, NtStatus::ACCESS_VIOLATION));
        assert!(has_ended(&pair.a));
        for context in cases(2..5) {
            pair.a.receive(context, &[])?;
            assert!(pair.a.receives.next_is(context, NtStatus::CANCELLED));
        }
        assert!(pair.a.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_recv_06_with_a_shared_queue_it_is_refused() -> Result {
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
        let refused = Err(NtStatus::INVALID_DEVICE_REQUEST);
        kunit_assert_eq!(pair.b.qp.receive(1, NOTHING.into_iter()), refused);
        pair.connect(READS, READS)?;
        kunit_assert_eq!(pair.b.qp.receive(2, NOTHING.into_iter()), refused);
        // The refused receives were not posted: the message takes the shared one.
        assert!(srq.receive(3, NOTHING.into_iter()).is_ok());
        pair.a.send(4, &NOTHING, 0)?;
        assert!(pair.b.receives.next_is(3, NtStatus::SUCCESS));
        pair.b.qp.flush();
        kunit_assert_eq!(pair.b.qp.receive(5, NOTHING.into_iter()), refused);
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }
}
