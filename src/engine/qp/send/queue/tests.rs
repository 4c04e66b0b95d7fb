// SPDX-License-Identifier: GPL-2.0

//! The send queue: the order in which requests begin and complete, fences, read limits, signals.
//!
//! A fake transport ends requests late and out of order. Request `n` of a queue pair has the
//! number `n` and the context `100 + n`.

#[kernel::macros::kunit_tests(ndk_engine_qp_send_queue)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::{
            transport::ReadLimits,
            wq::PostError, //
        },
        kunit::{
            fake::ManualQp,
            harness::{
                cases,
                EndAttr, //
            },
            requests::{
                read,
                write,
                FENCED,
                NOWHERE,
                SEND, //
            }, //
        },
        rdma::values::{
            qp::QpState,
            status::Status,
            wc::WcOpcode,
            work::{
                SendFlags,
                SendOp, //
            }, //
        }, //
    };

    const READ: SendOp = read(NOWHERE);
    const WRITE: SendOp = write(NOWHERE);
    const ADD: SendOp = SendOp::FetchAdd {
        at: NOWHERE,
        add: 1,
    };

    /// A manual queue pair with these requests posted, all signalled.
    fn posted(attr: &EndAttr, work: &[SendOp]) -> Result<ManualQp> {
        let manual = ManualQp::new(attr)?;
        for (context, work) in (100..).zip(work) {
            manual.end.post(context, *work, &[])?;
        }
        Ok(manual)
    }

    fn with_reads(outbound: u32) -> EndAttr {
        let limits = ReadLimits {
            inbound: 0,
            outbound,
        };
        EndAttr {
            limits,
            ..EndAttr::PLAIN
        }
    }

    #[test]
    fn completions_come_in_posting_order_when_reads_answer_late() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[READ, WRITE, READ, SEND])?;
        kunit_assert_eq!(manual.start_all(), 4);
        for seq in cases([3, 1, 2]) {
            manual.finish(seq, Status::Success);
            assert!(manual.end.sends.stays_empty());
        }
        manual.finish(0, Status::Success);
        let order = [
            WcOpcode::Read,
            WcOpcode::Write,
            WcOpcode::Read,
            WcOpcode::Send,
        ];
        for (context, operation) in cases((100..).zip(order)) {
            let entry = manual.end.sends.poll().map(|e| (e.context.raw(), e.opcode));
            kunit_assert_eq!(entry, Some((context, operation)));
        }
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn the_next_request_starts_with_the_end_of_one() -> Result {
        let mut manual = posted(&with_reads(1), &[WRITE, SEND, READ, READ])?;
        manual.end.post_with(104, SEND, FENCED, &[])?;
        manual.end.post_with(105, SEND, SendFlags::empty(), &[])?;
        manual.end.post(106, WRITE, &[])?;
        kunit_assert_eq!(manual.start(), Some(0));
        // The end of a read makes room for the next; the last one lets the fenced request begin.
        for seq in cases(1..7) {
            kunit_assert_eq!(manual.complete_and_start(), Some(seq));
            let silent = seq == 6;
            assert!(
                silent
                    || manual
                        .end
                        .sends
                        .next_is(99 + u64::from(seq), Status::Success)
            );
            assert!(manual.end.sends.stays_empty());
        }
        assert!(manual.complete_and_start().is_none());
        assert!(manual.end.sends.next_is(106, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn what_is_done_already_completes_with_the_one_before_it() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[READ, WRITE, SEND, WRITE])?;
        kunit_assert_eq!(manual.start_all(), 4);
        for seq in [1, 2] {
            manual.finish(seq, Status::Success);
        }
        // The last request is not the oldest either.
        assert!(manual.started.turn_to(3));
        assert!(manual.complete_and_start().is_none());
        assert!(manual.end.sends.stays_empty());
        assert!(manual.started.turn_to(0));
        assert!(manual.complete_and_start().is_none());
        assert!(manual.end.sends.next_are(100..104, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_request_that_ends_while_the_queue_is_flushed_takes_the_others_with_it() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[WRITE, SEND, WRITE])?;
        kunit_assert_eq!(manual.start(), Some(0));
        manual.end.qp.fail();
        assert!(manual.end.sends.stays_empty());
        assert!(manual.complete_and_start().is_none());
        assert!(manual.end.sends.next_is(100, Status::Success));
        assert!(manual.end.sends.next_are(101..103, Status::Flushed));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_fence_waits_for_every_earlier_read() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[READ, READ])?;
        manual.end.post_with(102, SEND, FENCED, &[])?;
        kunit_assert_eq!(manual.start_all(), 2);
        manual.finish(1, Status::Success);
        assert!(manual.start().is_none());
        manual.finish(0, Status::Success);
        kunit_assert_eq!(manual.start(), Some(2));
        Ok(())
    }

    #[test]
    fn a_fence_does_not_wait_for_writes_and_sends() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[WRITE, SEND])?;
        manual.end.post_with(102, SEND, FENCED, &[])?;
        manual.end.post(103, READ, &[])?;
        kunit_assert_eq!(manual.start_all(), 4);
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_fence_waits_for_atomics_as_for_reads() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[ADD])?;
        manual.end.post_with(101, WRITE, FENCED, &[])?;
        kunit_assert_eq!(manual.start_all(), 1);
        manual.finish(0, Status::Success);
        kunit_assert_eq!(manual.start(), Some(1));
        Ok(())
    }

    #[test]
    fn later_requests_stay_behind_a_fenced_one() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[READ])?;
        manual.end.post_with(101, WRITE, FENCED, &[])?;
        manual.end.post(102, WRITE, &[])?;
        manual.end.post(103, READ, &[])?;
        kunit_assert_eq!(manual.start_all(), 1);
        manual.finish(0, Status::Success);
        for seq in cases(1..4) {
            kunit_assert_eq!(manual.start(), Some(seq));
        }
        Ok(())
    }

    #[test]
    fn a_fenced_read_waits_for_the_read_before_it() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[READ])?;
        manual.end.post_with(101, READ, FENCED, &[])?;
        kunit_assert_eq!(manual.start_all(), 1);
        manual.finish(0, Status::Success);
        kunit_assert_eq!(manual.start_all(), 1);
        Ok(())
    }

    #[test]
    fn reads_beyond_the_limit_wait_and_do_not_fail() -> Result {
        let mut manual = posted(&with_reads(2), &[READ, READ, READ, WRITE, READ])?;
        kunit_assert_eq!(manual.start_all(), 2);
        // The second read is done; its entry waits for the first, its credit does not.
        manual.finish(1, Status::Success);
        kunit_assert_eq!(manual.start(), Some(2));
        assert!(!manual.started.wqe.forbidden);
        // The write starts; the next read waits again.
        kunit_assert_eq!(manual.start(), Some(3));
        assert!(manual.start().is_none());
        for seq in [0, 2, 3] {
            manual.finish(seq, Status::Success);
        }
        kunit_assert_eq!(manual.start(), Some(4));
        manual.finish(4, Status::Success);
        assert!(manual.end.sends.next_are(100..105, Status::Success));
        Ok(())
    }

    #[test]
    fn atomics_count_against_the_read_limit() -> Result {
        let mut manual = posted(&with_reads(1), &[ADD, READ])?;
        kunit_assert_eq!(manual.start_all(), 1);
        manual.finish(0, Status::Success);
        kunit_assert_eq!(manual.start(), Some(1));
        Ok(())
    }

    #[test]
    fn a_limit_of_zero_marks_reads_and_nothing_else_as_forbidden() -> Result {
        let mut manual = posted(&with_reads(0), &[WRITE, READ, ADD, SEND])?;
        for forbidden in cases([false, true, true, false]) {
            assert!(manual.start().is_some());
            kunit_assert_eq!(manual.started.wqe.forbidden, forbidden);
        }
        Ok(())
    }

    #[test]
    fn silent_success_leaves_no_entry() -> Result {
        let mut manual = ManualQp::new(&EndAttr::PLAIN)?;
        for context in cases([100, 101]) {
            manual
                .end
                .post_with(context, SEND, SendFlags::empty(), &[])?;
        }
        manual.end.post(102, SEND, &[])?;
        kunit_assert_eq!(manual.start_all(), 3);
        for seq in 0..3 {
            manual.finish(seq, Status::Success);
        }
        assert!(manual.end.sends.next_is(102, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn failure_and_flush_of_silent_requests_are_reported() -> Result {
        let mut manual = ManualQp::new(&EndAttr::PLAIN)?;
        for context in cases(100..104) {
            manual
                .end
                .post_with(context, WRITE, SendFlags::empty(), &[])?;
        }
        kunit_assert_eq!(manual.start(), Some(0));
        kunit_assert_eq!(manual.start(), Some(1));
        manual.finish(0, Status::Success);
        manual.finish(1, Status::RemoteAccess);
        assert!(manual.end.sends.next_is(101, Status::RemoteAccess));
        assert!(manual.end.sends.next_are(102..104, Status::Flushed));
        assert!(manual.end.sends.stays_empty());
        kunit_assert_eq!(manual.end.qp.state(), QpState::Err);
        Ok(())
    }

    #[test]
    fn a_failure_waits_for_its_turn_and_what_follows_is_flushed() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[READ, WRITE, WRITE, WRITE])?;
        kunit_assert_eq!(manual.start(), Some(0));
        kunit_assert_eq!(manual.start(), Some(1));
        kunit_assert_eq!(manual.start(), Some(2));
        manual.finish(1, Status::RemoteAccess);
        assert!(manual.end.sends.stays_empty());
        kunit_assert_eq!(manual.end.qp.state(), QpState::Err);
        // No request begins any more, and the transport ends the started requests.
        assert!(manual.start().is_none());
        manual.finish(2, Status::Flushed);
        assert!(manual.end.sends.stays_empty());
        manual.finish(0, Status::Success);
        assert!(manual.end.sends.next_is(100, Status::Success));
        assert!(manual.end.sends.next_is(101, Status::RemoteAccess));
        assert!(manual.end.sends.next_are(102..104, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_slot_is_free_when_all_before_it_is_done_signalled_or_not() -> Result {
        let mut attr = EndAttr::PLAIN;
        attr.caps.send_wr = 3;
        let mut manual = ManualQp::new(&attr)?;
        for context in cases(100..103) {
            manual
                .end
                .post_with(context, SEND, SendFlags::empty(), &[])?;
        }
        let full = Err(PostError::Full);
        kunit_assert_eq!(
            manual.end.try_post(103, SEND, SendFlags::empty(), &[]),
            full
        );
        kunit_assert_eq!(manual.start_all(), 3);
        manual.finish(1, Status::Success);
        kunit_assert_eq!(
            manual.end.try_post(103, SEND, SendFlags::empty(), &[]),
            full
        );
        manual.finish(0, Status::Success);
        for context in cases([103, 104]) {
            manual
                .end
                .post_with(context, SEND, SendFlags::empty(), &[])?;
        }
        kunit_assert_eq!(
            manual.end.try_post(105, SEND, SendFlags::empty(), &[]),
            full
        );
        Ok(())
    }

    #[test]
    fn the_end_of_a_request_counts_once_and_only_after_its_start() -> Result {
        let mut manual = posted(&with_reads(1), &[READ, READ, READ])?;
        kunit_assert_eq!(manual.start(), Some(0));
        manual.finish(1, Status::Success);
        manual.finish(7, Status::Success);
        assert!(manual.end.sends.stays_empty());
        manual.finish(0, Status::Success);
        manual.finish(0, Status::Success);
        assert!(manual.end.sends.next_is(100, Status::Success));
        // A second end would have given a second credit.
        kunit_assert_eq!(manual.start_all(), 1);
        manual.finish(1, Status::Success);
        assert!(manual.end.sends.next_is(101, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_second_end_of_a_request_that_waits_for_its_turn_gives_no_credit() -> Result {
        let mut manual = posted(&with_reads(2), &[READ, READ, READ, READ])?;
        kunit_assert_eq!(manual.start_all(), 2);
        manual.finish(1, Status::Success);
        manual.finish(1, Status::Success);
        kunit_assert_eq!(manual.start_all(), 1);
        manual.finish(0, Status::Success);
        assert!(manual.end.sends.next_are(100..102, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn more_than_one_batch_completes_in_order_at_once() -> Result {
        let mut manual = ManualQp::new(&EndAttr::deep(200, 1))?;
        for context in cases(100..300) {
            manual.end.post(context, WRITE, &[])?;
        }
        kunit_assert_eq!(manual.start_all(), 200);
        for seq in (0..200).rev() {
            manual.finish(seq, Status::Success);
        }
        assert!(manual.end.sends.next_are(100..300, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn an_entry_says_whose_and_how_long_it_is() -> Result {
        let mut manual = posted(&EndAttr::PLAIN, &[READ])?;
        kunit_assert_eq!(manual.start(), Some(0));
        manual.started.wqe.length = 77;
        manual.finish(0, Status::Success);
        let entry = manual.end.sends.poll().map(|e| (e.qp, e.byte_len));
        let cookie = crate::kunit::harness::qp_context(manual.end.qp.params.number);
        kunit_assert_eq!(entry, Some((cookie, 77)));
        Ok(())
    }

    #[test]
    fn each_ring_is_one_doorbell_and_a_post_alone_is_none() -> Result {
        let manual = ManualQp::new(&EndAttr::PLAIN)?;
        for context in cases(0..3) {
            let none = [].into_iter();
            assert!(manual
                .end
                .qp
                .post(context, SEND, SendFlags::empty(), none)
                .is_ok());
        }
        kunit_assert_eq!(manual.fake.doorbells.get(), 0);
        manual.end.qp.ring_doorbell();
        kunit_assert_eq!(manual.fake.doorbells.get(), 1);
        Ok(())
    }
}
