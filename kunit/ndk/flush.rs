// SPDX-License-Identifier: GPL-2.0

//! Flush (FLSH-01 to FLSH-05).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_flush)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::{
            harness::cases,
            other_context::OtherContext, //
        },
        ndk::{
            abi::numbers::{
                op_flags::*,
                operation, //
            },
            status::NtStatus,
            tests::{
                host::{
                    qp,
                    SIZES, //
                },
                pair::{
                    connect,
                    Pair,
                    TestSide,
                    READS, //
                },
                remote::{
                    has_ended,
                    is_up,
                    opened,
                    NOTHING, //
                }, //
            }, //
        },
        rdma::values::work::RemoteAddr,
        sys::softirq::BhDisabled, //
    };

    /// More bytes than one run of the transport moves.
    const LONG: usize = (1 << 20) + 4096;

    #[test]
    fn ndk_flsh_01_it_does_not_wait_for_what_is_under_way() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(LONG, 0)?;
        from.bytes.fill(0x77);
        let memory = opened(&pair.b, LONG)?;
        let to = memory.remote(0)?;
        // CAST: about 2^20.
        let sges = [from.sge(0, LONG as u32)?];
        pair.a.receive(9, &[])?;
        // The write goes on in a thread of this processor, which cannot run here: a flush that
        // waited for the write would hang.
        let softirqs_off = BhDisabled::enter();
        let written = pair.a.qp.write(1, sges.into_iter(), to, 0);
        let () = pair.a.qp.flush();
        drop(softirqs_off);
        assert!(written.is_ok());
        assert!(pair.a.requests.next_is(1, NtStatus::CANCELLED));
        assert!(pair.a.receives.next_is(9, NtStatus::CANCELLED));
        kunit_assert_eq!(memory.bytes[0], 0x77);
        kunit_assert_eq!(memory.bytes[LONG - 1], 0);
        Ok(())
    }

    #[test]
    fn ndk_flsh_01_it_can_be_called_where_nobody_may_sleep() -> Result {
        let pair = Pair::new()?;
        pair.a.send(1, &NOTHING, 0)?;
        pair.a.receive(2, &[])?;
        let queue_pair = (*pair.a.qp).clone();
        let other_task = OtherContext::new(move || queue_pair.flush())?;
        assert!(other_task.by_timer());
        assert!(pair.a.requests.next_is(1, NtStatus::CANCELLED));
        assert!(pair.a.receives.next_is(2, NtStatus::CANCELLED));
        Ok(())
    }

    #[test]
    fn ndk_flsh_02_silent_requests_are_reported_as_cancelled_too() -> Result {
        let pair = Pair::new()?;
        // A send that waits for a receive, one behind that send, and one that is deferred.
        pair.a.send(1, &NOTHING, SILENT_SUCCESS)?;
        pair.a.send(2, &NOTHING, SILENT_SUCCESS)?;
        pair.a.send(3, &NOTHING, SILENT_SUCCESS | DEFER)?;
        pair.a.receive(4, &[])?;
        assert!(pair.a.requests.stays_empty());
        pair.a.qp.flush();
        for context in cases(1..4) {
            let result = pair.a.requests.next()?;
            kunit_assert_eq!(result.request_context, context);
            kunit_assert_eq!(result.status, NtStatus::CANCELLED);
            kunit_assert_eq!(result.qp_context, 0xA);
            kunit_assert_eq!(result.operation, operation::SEND);
        }
        let got = pair.a.receives.next()?;
        kunit_assert_eq!(got.request_context, 4);
        kunit_assert_eq!(got.status, NtStatus::CANCELLED);
        kunit_assert_eq!(got.operation, operation::RECEIVE);
        kunit_assert_eq!(got.bytes, 0);
        assert!(pair.a.requests.stays_empty());
        assert!(pair.a.receives.stays_empty());
        // No cancelled send has reached the peer.
        pair.b.receive(5, &[])?;
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_flsh_03_each_request_completes_once_and_in_order() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let own = opened(&pair.a, 4096)?;
        let source = pair.a.buffer(4096, 1)?;
        let to = memory.remote(0)?;
        let sge = source.sge(0, 16)?;
        // Completed before the flush, and not polled.
        assert!(pair.a.qp.write(0, [sge].into_iter(), to, 0).is_ok());
        pair.b.receive(0, &[])?;
        for context in cases(0..20) {
            pair.a.receive(context, &[])?;
        }
        pair.b.send(0, &NOTHING, 0)?;
        pair.b.send(1, &NOTHING, 0)?;
        assert!(pair.b.requests.next_is(0, NtStatus::SUCCESS));
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        pair.a.send(1, &NOTHING, 0)?;
        // The other requests wait for send 2, the second one, which finds no receive.
        for context in cases(2..20) {
            let flags = if context % 2 == 0 { SILENT_SUCCESS } else { 0 };
            let posted = match context % 4 {
                0 => pair.a.qp.write(context, [sge].into_iter(), to, flags),
                1 => pair.a.qp.read(context, [sge].into_iter(), to, flags),
                2 => pair.a.qp.send(context, NOTHING.into_iter(), flags),
                _ => pair.a.qp.invalidate_mr(context, own.mr()?, flags),
            };
            assert!(posted.is_ok());
        }
        pair.a.qp.flush();
        for context in cases(0..20) {
            let done = context < 2;
            let status = match done {
                true => NtStatus::SUCCESS,
                false => NtStatus::CANCELLED,
            };
            assert!(pair.a.requests.next_is(context, status));
            assert!(pair.a.receives.next_is(context, status));
        }
        // Drained: no further result comes, and no cancelled request was carried out.
        assert!(pair.a.requests.stays_empty());
        assert!(pair.a.receives.stays_empty());
        assert!(pair.b.receives.next_is(0, NtStatus::SUCCESS));
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_flsh_04_on_a_shared_queue_only_its_own_are_cancelled() -> Result {
        let pair = Pair::new()?;
        let adapter = &pair.test_host.adapter;
        // Two queue pairs on the two completion queues of `a`.
        let mut second = TestSide::new(adapter, 0xC, SIZES)?;
        let peer = TestSide::new(adapter, 0xD, SIZES)?;
        second.qp = qp(&second.pd, &pair.a.receives, &pair.a.requests, 0xC, SIZES)?;
        let (ours, theirs) = connect(
            adapter,
            &pair.open_listener,
            (&second, READS),
            (&peer, READS),
        )?;
        for context in cases(1..4) {
            for test_side in [&pair.a, &second] {
                test_side.receive(context, &[])?;
                test_side.send(context, &NOTHING, 0)?;
            }
        }
        pair.a.qp.flush();
        for queue in [&pair.a.requests, &pair.a.receives] {
            for context in cases(1..4) {
                let result = queue.next()?;
                kunit_assert_eq!(result.request_context, context);
                kunit_assert_eq!(result.qp_context, 0xA);
                kunit_assert_eq!(result.status, NtStatus::CANCELLED);
            }
            assert!(queue.stays_empty());
        }
        // The other queue pair serves on, with the requests that it had posted.
        assert!(is_up(&second));
        for context in cases(1..4) {
            peer.receive(context, &[])?;
            peer.send(context, &NOTHING, 0)?;
            for queue in [&pair.a.requests, &pair.a.receives] {
                let result = queue.next()?;
                kunit_assert_eq!(result.request_context, context);
                kunit_assert_eq!(result.qp_context, 0xC);
                kunit_assert_eq!(result.status, NtStatus::SUCCESS);
            }
        }
        drop((ours, theirs));
        Ok(())
    }

    #[test]
    fn ndk_flsh_05_afterwards_initiator_requests_are_refused() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let own = opened(&pair.a, 4096)?;
        let source = pair.a.buffer(4096, 1)?;
        pair.a.qp.flush();
        let (at, sge): (RemoteAddr, _) = (memory.remote(0)?, source.sge(0, 16)?);
        let one = || [sge].into_iter();
        let token = memory.mr()?.remote_token();
        let posts = [
            pair.a.qp.send(1, one(), 0),
            pair.a.qp.send_and_invalidate(1, one(), 0, token),
            pair.a.qp.write(1, one(), at, 0),
            pair.a.qp.read(1, one(), at, 0),
            pair.a.qp.invalidate_mr(1, own.mr()?, 0),
            own.fast_register(&pair.a.qp, 1, 0)?,
        ];
        for posted in cases(posts) {
            kunit_assert_eq!(posted, Err(NtStatus::CONNECTION_INVALID));
        }
        assert!(pair.a.requests.stays_empty());
        assert!(has_ended(&pair.b));
        Ok(())
    }

    #[test]
    fn ndk_flsh_05_again_or_idle_it_cancels_nothing() -> Result {
        let pair = Pair::new()?;
        // Idle.
        pair.b.qp.flush();
        assert!(pair.b.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        let pair = Pair::new()?;
        pair.a.send(1, &NOTHING, 0)?;
        pair.a.receive(2, &[])?;
        for _ in 0..3 {
            pair.a.qp.flush();
        }
        assert!(pair.a.requests.next_is(1, NtStatus::CANCELLED));
        assert!(pair.a.receives.next_is(2, NtStatus::CANCELLED));
        pair.a.qp.flush();
        assert!(pair.a.requests.stays_empty());
        assert!(pair.a.receives.stays_empty());
        Ok(())
    }
}
