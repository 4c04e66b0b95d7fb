// SPDX-License-Identifier: GPL-2.0

//! The details of queue pairs and completion queues agree with their activity.

#[kernel::macros::kunit_tests(ndk_engine_qp_details)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::{
            cq::{
                Arm,
                MissedEvents, //
            },
            qp::QpDetails, //
        },
        kunit::{
            fake::ManualQp,
            harness::{
                cases,
                wait_until,
                EndAttr,
                QpPair, //
            },
            requests::SEND, //
        },
        rdma::values::{
            qp::QpState,
            status::Status, //
        }, //
    };

    #[test]
    fn requests_are_counted_until_they_complete() -> Result {
        let mut manual = ManualQp::new(&EndAttr::PLAIN)?;
        let idle = QpDetails {
            state: QpState::Rts,
            sends_posted: 0,
            sends_outstanding: 0,
            receives_posted: 0,
            peer: None,
        };
        kunit_assert_eq!(manual.end.qp.details(), idle);
        for context in cases(0..5) {
            manual.end.post(context, SEND, &[])?;
        }
        manual.end.receive(7, &[])?;
        let posted = QpDetails {
            sends_posted: 5,
            receives_posted: 1,
            ..idle
        };
        kunit_assert_eq!(manual.end.qp.details(), posted);
        let first = manual.start();
        assert!(first.is_some());
        assert!(manual.start().is_some());
        let started = QpDetails {
            sends_posted: 3,
            sends_outstanding: 2,
            ..posted
        };
        kunit_assert_eq!(manual.end.qp.details(), started);
        manual.end.qp.fail();
        kunit_assert_eq!(manual.end.qp.details().state, QpState::Err);
        Ok(())
    }

    #[test]
    fn a_wait_for_a_receive_is_seen_from_both_ends() -> Result {
        let pair = QpPair::new()?;
        let numbers = (pair.a.qp.params.number, pair.b.qp.params.number);
        let (a, b) = (pair.a.qp.details().peer, pair.b.qp.details().peer);
        let (a, b) = (a.ok_or(EINVAL)?, b.ok_or(EINVAL)?);
        kunit_assert_eq!((b.number, a.number), numbers);
        assert!(a.own_wait_since_ms.is_none());
        assert!(b.peer_wait_since_ms.is_none());
        pair.a.post(1, SEND, &[])?;
        let waits = || pair.a.qp.details().peer?.own_wait_since_ms;
        assert!(wait_until(|| waits().is_some()));
        let since = waits();
        let other = pair.b.qp.details().peer.ok_or(EINVAL)?;
        kunit_assert_eq!(other.peer_wait_since_ms, since);
        assert!(other.own_wait_since_ms.is_none());
        pair.b.receive(1, &[])?;
        assert!(pair.a.sends.next_is(1, Status::Success));
        assert!(waits().is_none());
        pair.a.qp.fail();
        assert!(pair.is_down());
        assert!(pair.a.qp.details().peer.is_none());
        Ok(())
    }

    #[test]
    fn a_completion_queue_says_how_full_it_is_and_what_it_is_armed_for() -> Result {
        let pair = QpPair::new()?;
        let cq = &pair.b.receives.cq;
        let depth = EndAttr::PLAIN.receive_entries;
        let now = cq.details();
        kunit_assert_eq!((now.depth, now.used, now.arm), (depth, 0, None));
        assert!(!now.failed);
        assert!(now.number != pair.b.sends.cq.details().number);
        cq.arm(Arm::Solicited, MissedEvents::Ignore);
        kunit_assert_eq!(cq.details().arm, Some(Arm::Solicited));
        for context in cases(0..3) {
            pair.b.receive(context, &[])?;
            pair.a.post(context, SEND, &[])?;
        }
        assert!(pair.a.sends.next_are(0..3, Status::Success));
        let now = cq.details();
        kunit_assert_eq!((now.used, now.arm), (3, Some(Arm::Solicited)));
        cq.break_down();
        let now = cq.details();
        assert!(now.failed);
        assert!(now.arm.is_none());
        Ok(())
    }
}
