// SPDX-License-Identifier: GPL-2.0

//! Send, but for inline data (SEND-01 to SEND-07, SEND-12, SEND-13).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_send)]
mod tests {
    use kernel::{
        new_spinlock_irq,
        prelude::*,
        sync::{
            Arc,
            SpinLockIrq, //
        }, //
    };

    use crate::{
        kunit::{
            harness::{
                cases,
                wait_until, //
            },
            log::Tally, //
        },
        ndk::{
            abi::numbers::{
                notify,
                op_flags::*,
                operation, //
            },
            cq::Cq,
            life::Ref,
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
                    combinations,
                    has_ended,
                    is_up,
                    NOTHING,
                    REMOTE_RESOURCES, //
                }, //
            }, //
        }, //
    };

    #[test]
    fn ndk_send_01_the_bytes_arrive_as_one_message_in_one_receive() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(8192, 0)?;
        let to = pair.b.buffer(8192, 1)?;
        from.fill(7);
        pair.b.receive(1, &[to.sge(0, 8192)?])?;
        pair.b.receive(2, &[to.sge(0, 8192)?])?;
        pair.a
            .send(3, &[from.sge(0, 100)?, from.sge(100, 5000)?], 0)?;
        let sent = pair.a.requests.next()?;
        kunit_assert_eq!(sent.request_context, 3);
        kunit_assert_eq!(sent.status, NtStatus::SUCCESS);
        kunit_assert_eq!(sent.operation, operation::SEND);
        kunit_assert_eq!(sent.qp_context, 0xA);
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.request_context, 1);
        kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        kunit_assert_eq!(got.bytes, 5100);
        kunit_assert_eq!(got.operation, operation::RECEIVE);
        kunit_assert_eq!(got.qp_context, 0xB);
        assert!(to.has(7, 0, 5100));
        assert!(to.bytes[5100..].iter().all(|b| *b == 0));
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_send_02_each_combination_of_its_flags_is_taken() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(3);
        let all = [
            SILENT_SUCCESS,
            READ_FENCE,
            SEND_AND_SOLICIT_EVENT,
            INLINE,
            DEFER,
        ];
        let mut count = 0;
        for (n, flags) in cases(combinations(&all).enumerate()) {
            let (context, last) = (n as u64, 100 + n as u64);
            pair.b.receive(context, &[to.sge(0, 16)?])?;
            pair.a.send(context, &[from.sge(n, 16)?], flags)?;
            if flags & DEFER != 0 {
                pair.b.receive(last, &[])?;
                pair.a.send(last, &NOTHING, 0)?;
            }
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
            // CAST: below 32.
            assert!(to.has(3 + n as u8, 0, 16));
            if flags & SILENT_SUCCESS == 0 {
                assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            }
            if flags & DEFER != 0 {
                assert!(pair.b.receives.next_is(last, NtStatus::SUCCESS));
                assert!(pair.a.requests.next_is(last, NtStatus::SUCCESS));
            }
            count += 1;
        }
        kunit_assert_eq!(count, 32);
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_send_03_zero_byte_send_matches_a_zero_byte_receive() -> Result {
        let pair = Pair::new()?;
        pair.b.receive(1, &[])?;
        pair.a.send(2, &[], 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.request_context, 1);
        kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        kunit_assert_eq!(got.bytes, 0);
        Ok(())
    }

    #[test]
    fn ndk_send_03_an_empty_list_may_be_there_or_not_in_c() -> Result {
        use crate::ndk::abi::request_tests::{
            send_nothing,
            List, //
        };
        let pair = Pair::new()?;
        for (context, list) in [(1, List::Null), (2, List::There)] {
            pair.b.receive(context, &[])?;
            let status = send_nothing(&pair.a.qp, context, list)?;
            kunit_assert_eq!(status, NtStatus::SUCCESS.raw());
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.request_context, context);
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.bytes, 0);
        }
        Ok(())
    }

    #[test]
    fn ndk_send_04_the_flag_makes_its_own_receive_solicited_and_no_other() -> Result {
        let pair = Pair::new()?;
        for context in cases(1..6) {
            pair.b.receive(context, &[])?;
        }
        pair.b.receives.cq.arm(notify::SOLICITED);
        pair.a.send(1, &NOTHING, 0)?;
        assert!(pair.b.receives.has_called(0));
        pair.a.send(2, &NOTHING, SEND_AND_SOLICIT_EVENT)?;
        assert!(pair.b.receives.has_called(1));
        // Of a group only the flagged message is solicited; the others are received as usual.
        for context in cases(1..3) {
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
        }
        pair.b.receives.cq.arm(notify::SOLICITED);
        pair.a.send(3, &NOTHING, DEFER)?;
        pair.a.send(4, &NOTHING, DEFER | SEND_AND_SOLICIT_EVENT)?;
        pair.a.send(5, &NOTHING, 0)?;
        assert!(pair.b.receives.has_called(2));
        for context in cases(3..6) {
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.request_context, context);
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.operation, operation::RECEIVE);
        }
        Ok(())
    }

    #[test]
    fn ndk_send_05_a_group_that_is_flagged_at_its_end_notifies_once() -> Result {
        let pair = Pair::new()?;
        for context in cases(0..4) {
            pair.b.receive(context, &[])?;
        }
        pair.b.receives.cq.arm(notify::SOLICITED);
        for context in cases(0..3) {
            pair.a.send(context, &NOTHING, SILENT_SUCCESS)?;
            assert!(pair.b.receives.has_called(0));
        }
        pair.a
            .send(3, &NOTHING, SILENT_SUCCESS | SEND_AND_SOLICIT_EVENT)?;
        assert!(pair.b.receives.has_called(1));
        // All results of the group are there when the notification comes.
        for context in cases(0..4) {
            let got = pair.b.receives.poll();
            assert!(got.is_some_and(|r| r.request_context == context));
        }
        assert!(pair.b.receives.stays_empty());
        assert!(pair.b.receives.has_called(1));
        Ok(())
    }

    /// A consumer that polls a completion queue inside its calls.
    #[pin_data]
    struct Watch {
        #[pin]
        cq: SpinLockIrq<Option<Ref<Cq>>>,
        calls: Tally,
        found: Tally,
    }

    impl Watch {
        fn look(&self) {
            let cq = self.cq.lock().clone();
            if let Some(cq) = cq {
                cq.results(8, |_| {
                    self.found.hit();
                });
            }
            self.calls.hit();
        }
    }

    #[test]
    fn ndk_send_06_the_receive_is_in_the_queue_when_the_notification_comes() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let watch = Arc::pin_init(
            pin_init!(Watch {
                cq <- new_spinlock_irq!(None),
                calls: Tally::new(),
                found: Tally::new(),
            }),
            GFP_KERNEL,
        )?;
        let seen = watch.clone();
        let user = KBox::new(move |_: NtStatus| seen.look(), GFP_KERNEL)?;
        let cq = made(|done| pair.test_host.adapter.create_cq(64, None, user, done))?;
        *watch.cq.lock() = Some((*cq).clone());
        pair.b.qp = made(|done| {
            let queues = (&*cq, &*pair.b.requests.cq);
            pair.b.pd.create_qp(queues, None, 0xB, SIZES, done)
        })?;
        pair.connect(READS, READS)?;
        let mut fine = true;
        for n in cases(0..40u32) {
            cq.arm(notify::SOLICITED);
            pair.b.receive(1, &[])?;
            pair.a
                .send(1, &NOTHING, SILENT_SUCCESS | SEND_AND_SOLICIT_EVENT)?;
            fine &= wait_until(|| watch.calls.get() == n + 1);
            // All results were found in calls.
            fine &= watch.found.get() == n + 1;
        }
        // Breaks the cycle of references, so that the queue goes in the end.
        let cycle = watch.cq.lock().take();
        drop(cycle);
        assert!(fine);
        Ok(())
    }

    #[test]
    fn ndk_send_07_without_a_solicited_arm_the_flag_does_nothing() -> Result {
        let pair = Pair::new()?;
        for context in cases(1..4) {
            pair.b.receive(context, &[])?;
        }
        // Not armed.
        pair.a.send(1, &NOTHING, SEND_AND_SOLICIT_EVENT)?;
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(pair.b.receives.has_called(0));
        // The flag does not satisfy a later arm.
        pair.b.receives.cq.arm(notify::SOLICITED);
        assert!(pair.b.receives.has_called(0));
        pair.a.send(2, &NOTHING, SEND_AND_SOLICIT_EVENT)?;
        assert!(pair.b.receives.has_called(1));
        assert!(pair.b.receives.next_is(2, NtStatus::SUCCESS));
        // Armed for errors.
        pair.b.receives.cq.arm(notify::ERRORS);
        pair.a.send(3, &NOTHING, SEND_AND_SOLICIT_EVENT)?;
        assert!(pair.b.receives.next_is(3, NtStatus::SUCCESS));
        assert!(pair.b.receives.has_called(1));
        assert!(pair.a.requests.has_called(0));
        Ok(())
    }

    #[test]
    fn ndk_send_12_a_send_longer_than_its_receive_fails_on_both_sides() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(1);
        pair.b.receive(1, &[to.sge(0, 8)?, to.sge(8, 8)?])?;
        pair.b.receive(2, &[to.sge(0, 17)?])?;
        pair.a.send(3, &[from.sge(0, 16)?], 0)?;
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(to.has(1, 0, 16));
        pair.a.send(4, &[from.sge(100, 18)?], 0)?;
        assert!(pair.b.receives.next_is(2, NtStatus::BUFFER_OVERFLOW));
        assert!(pair.a.requests.next_is(4, REMOTE_RESOURCES));
        // The failed message has written no byte.
        assert!(to.has(1, 0, 16));
        assert!(to.bytes[16..].iter().all(|b| *b == 0));
        assert!(has_ended(&pair.a));
        assert!(has_ended(&pair.b));
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_send_13_a_send_waits_for_a_receive_to_come() -> Result {
        let pair = Pair::new()?;
        pair.a.send(1, &NOTHING, 0)?;
        pair.a.send(2, &NOTHING, 0)?;
        assert!(pair.a.requests.stays_empty());
        assert!(is_up(&pair.a));
        pair.b.receive(3, &[])?;
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(3, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        pair.b.receive(4, &[])?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(4, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_send_13_a_send_that_finds_no_receive_times_out() -> Result {
        let attr = HostAttr {
            rnr_ms: 30,
            ..HostAttr::PLAIN
        };
        let pair = Pair::with(&attr, SIZES, SIZES)?;
        // A silent send reports its failure, too; the later send is cancelled.
        pair.a.send(1, &NOTHING, SILENT_SUCCESS | DEFER)?;
        pair.a.send(2, &NOTHING, 0)?;
        assert!(pair.a.requests.next_is(1, NtStatus::IO_TIMEOUT));
        assert!(pair.a.requests.next_is(2, NtStatus::CANCELLED));
        assert!(has_ended(&pair.a));
        assert!(has_ended(&pair.b));
        assert!(pair.b.receives.stays_empty());
        Ok(())
    }
}
