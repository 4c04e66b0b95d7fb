// SPDX-License-Identifier: GPL-2.0

//! Queues that change their depth: their entries, and the state of their notifications, stay.

use super::queues::Queue;
use crate::engine::cq::tests::sent;

/// Pushes completions with these contexts; returns true if all were taken.
fn push(queue: &Queue, contexts: core::ops::Range<u64>) -> bool {
    let mut all = contexts;
    all.all(|context| queue.cq.push(&sent(context)).is_ok())
}

#[kernel::macros::kunit_tests(ndk_kunit_resize)]
mod tests {
    use super::*;

    use kernel::prelude::*;

    use crate::{
        engine::{
            cq::{
                tests::{
                    overflow,
                    queue_and_host,
                    RECEIVE, //
                },
                Arm,
                MissedEvents, //
            },
            ring::ResizeError,
            wq::PostError, //
        },
        kunit::{
            harness::{
                cases,
                flush_work,
                EndAttr,
                QpPair, //
            },
            requests::SEND, //
        },
        rdma::values::status::Status,
        sys::sge::test_posted, //
    };

    #[test]
    fn completions_keep_their_order_when_the_depth_changes() -> Result {
        let (queue, _engine_host) = queue_and_host(300)?;
        let (mut first, mut last) = (0, 300);
        assert!(push(&queue, first..last));
        for depth in cases([400, 1000, 290, 5000, 1, 7]) {
            // The entries that the new depth has no room for are taken first.
            let gone = (last - first).saturating_sub(u64::from(depth)).max(10);
            let gone = gone.min(last - first);
            assert!(queue.next_are(first..first + gone, Status::Success));
            first += gone;
            assert!(queue.cq.resize(depth).is_ok());
            kunit_assert_eq!(queue.cq.depth(), depth);
            let more = u64::from(depth) - (last - first);
            assert!(push(&queue, last..last + more / 2));
            last += more / 2;
        }
        assert!(queue.next_are(first..last, Status::Success));
        assert!(queue.stays_empty());
        kunit_assert_eq!(queue.log.failures.get(), 0);
        Ok(())
    }

    #[test]
    fn a_depth_below_what_is_present_is_refused_and_changes_nothing() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        assert!(push(&queue, 0..6));
        for depth in cases([0, 1, 5]) {
            kunit_assert_eq!(queue.cq.resize(depth), Err(ResizeError::TooMany));
            kunit_assert_eq!(queue.cq.depth(), 8);
        }
        assert!(push(&queue, 6..8));
        assert!(queue.next_are(0..3, Status::Success));
        assert!(queue.cq.resize(5).is_ok());
        assert!(queue.next_are(3..8, Status::Success));
        Ok(())
    }

    #[test]
    fn a_depth_without_memory_is_refused_and_changes_nothing() -> Result {
        let (queue, _engine_host) = queue_and_host(2)?;
        assert!(push(&queue, 0..1));
        kunit_assert_eq!(queue.cq.resize(u32::MAX), Err(ResizeError::NoMemory));
        kunit_assert_eq!(queue.cq.depth(), 2);
        assert!(push(&queue, 1..2));
        assert!(queue.next_are(0..2, Status::Success));
        Ok(())
    }

    #[test]
    fn overflow_is_judged_by_the_new_depth() -> Result {
        for depth in cases([3, 4, 5, 9, 100]) {
            let (queue, _engine_host) = queue_and_host(4)?;
            assert!(push(&queue, 0..3));
            assert!(queue.cq.resize(depth).is_ok());
            assert!(overflow(&queue, depth - 3));
            assert!(queue.has_called(0));
            kunit_assert_eq!(queue.log.failures.get(), 1);
            assert!(queue.next_are(0..3, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn an_arm_outlives_a_resize() -> Result {
        for arm in cases([Arm::Any, Arm::Solicited, Arm::Errors]) {
            let (queue, _engine_host) = queue_and_host(4)?;
            queue.cq.arm(arm, MissedEvents::Ignore);
            assert!(queue.cq.resize(9).is_ok());
            assert!(queue.has_called(0));
            assert!(queue.cq.push(&RECEIVE).is_ok());
            assert!(queue.has_called(u32::from(arm == Arm::Any)));
            queue.cq.break_down();
            assert!(queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn what_is_new_stays_new_and_what_was_notified_stays_so() -> Result {
        let (queue, _engine_host) = queue_and_host(4)?;
        assert!(push(&queue, 0..2));
        assert!(queue.cq.resize(9).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.has_called(1));
        assert!(queue.cq.resize(3).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        assert!(queue.has_called(1));
        assert!(push(&queue, 2..3));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn moderation_outlives_a_resize() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        assert!(queue.cq.moderate(u32::MAX, 3).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        assert!(push(&queue, 0..2));
        assert!(queue.cq.resize(16).is_ok());
        assert!(queue.has_called(0));
        assert!(push(&queue, 2..3));
        assert!(queue.has_called(1));
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        assert!(push(&queue, 3..5));
        assert!(queue.has_called(1));
        assert!(push(&queue, 5..6));
        assert!(queue.has_called(2));
        Ok(())
    }

    #[test]
    fn a_count_that_a_smaller_depth_never_reaches_does_not_hold_for_ever() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        assert!(queue.cq.moderate(u32::MAX, 8).is_ok());
        assert!(queue.cq.resize(3).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        assert!(push(&queue, 0..2));
        assert!(queue.has_called(0));
        assert!(push(&queue, 2..3));
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn a_resize_to_what_is_present_lets_a_held_call_go() -> Result {
        let (queue, _engine_host) = queue_and_host(8)?;
        assert!(queue.cq.moderate(u32::MAX, 8).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        assert!(push(&queue, 0..3));
        assert!(queue.has_called(0));
        assert!(queue.cq.resize(3).is_ok());
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn a_resize_heals_no_failure() -> Result {
        let (queue, _engine_host) = queue_and_host(2)?;
        assert!(overflow(&queue, 2));
        assert!(queue.cq.resize(8).is_ok());
        assert!(queue.cq.push(&RECEIVE).is_err());
        assert!(queue.poll().is_some());
        assert!(queue.poll().is_some());
        assert!(queue.stays_empty());
        Ok(())
    }

    #[test]
    fn shared_receives_keep_their_order_and_their_elements() -> Result {
        let qp_pair = QpPair::with(&EndAttr::PLAIN, &EndAttr::shared(3))?;
        let Some(shared) = qp_pair.b.shared.as_ref() else {
            return Err(EINVAL);
        };
        let memory = qp_pair.b.buffer(64)?;
        let source = qp_pair.a.filled(8, 17)?;
        for n in cases(0..3) {
            let at = n * 16;
            // Two elements each, and a last one without.
            let sges = [memory.sge(at, 3), memory.sge(at + 8, 5)];
            // CAST: widening.
            shared.post(n as u64, if n < 2 { &sges } else { &[] })?;
        }
        assert!(shared.srq.resize(200).is_ok());
        kunit_assert_eq!(shared.srq.depth(), 200);
        assert!(shared.srq.resize(4).is_ok());
        kunit_assert_eq!(shared.srq.depth(), 4);
        for n in cases(0..2) {
            qp_pair.a.post(n, SEND, &[source.whole()])?;
            assert!(qp_pair.b.receives.next_is(n, Status::Success));
        }
        for at in cases([0, 16]) {
            assert!(memory.holds(at, 3, 17, 0));
            assert!(memory.is_blank(at + 3, 5));
            assert!(memory.holds(at + 8, 5, 17, 3));
        }
        qp_pair.a.post(2, SEND, &[])?;
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        Ok(())
    }

    #[test]
    fn a_shared_queue_takes_exactly_its_new_depth() -> Result {
        let qp_pair = QpPair::with(&EndAttr::PLAIN, &EndAttr::shared(4))?;
        let Some(shared) = qp_pair.b.shared.as_ref() else {
            return Err(EINVAL);
        };
        let refused = || shared.srq.post(test_posted(99, [].into_iter()));
        for context in cases(0..4) {
            shared.post(context, &[])?;
        }
        kunit_assert_eq!(shared.srq.resize(3), Err(ResizeError::TooMany));
        kunit_assert_eq!(shared.srq.resize(u32::MAX), Err(ResizeError::NoMemory));
        kunit_assert_eq!(shared.srq.depth(), 4);
        kunit_assert_eq!(refused(), Err(PostError::Full));
        assert!(shared.srq.resize(7).is_ok());
        for context in cases(4..7) {
            shared.post(context, &[])?;
        }
        kunit_assert_eq!(refused(), Err(PostError::Full));
        for n in cases(0..5) {
            qp_pair.a.post(n, SEND, &[])?;
        }
        assert!(qp_pair.b.receives.next_are(0..5, Status::Success));
        assert!(shared.srq.resize(2).is_ok());
        kunit_assert_eq!(refused(), Err(PostError::Full));
        Ok(())
    }

    #[test]
    fn a_limit_and_a_message_that_waits_outlive_a_resize() -> Result {
        let qp_pair = QpPair::with(&EndAttr::PLAIN, &EndAttr::shared(4))?;
        let Some(shared) = qp_pair.b.shared.as_ref() else {
            return Err(EINVAL);
        };
        let limits = || {
            flush_work(qp_pair.b.device());
            shared.log.limits.get()
        };
        qp_pair.b.receive(1, &[])?;
        qp_pair.b.receive(2, &[])?;
        shared.srq.set_limit(1)?;
        qp_pair.a.post(1, SEND, &[])?;
        assert!(qp_pair.b.receives.next_is(1, Status::Success));
        assert!(shared.srq.resize(8).is_ok());
        kunit_assert_eq!(limits(), 0);
        qp_pair.a.post(2, SEND, &[])?;
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        kunit_assert_eq!(limits(), 1);
        // This message waits for a receive.
        qp_pair.a.post(3, SEND, &[])?;
        assert!(qp_pair.b.receives.stays_empty());
        assert!(shared.srq.resize(2).is_ok());
        qp_pair.b.receive(3, &[])?;
        assert!(qp_pair.b.receives.next_is(3, Status::Success));
        Ok(())
    }
}
