// SPDX-License-Identifier: GPL-2.0

//! The end of a queue pair: flush, graceful close, destruction; and its use after a reset.

use kernel::prelude::*;

use crate::kunit::{
    fake::ManualQp,
    harness::EndAttr,
    requests::SEND, //
};

/// A queue pair with `sends` requests and `receives` receives posted, both with contexts from 0.
fn posted(sends: u64, receives: u64) -> Result<ManualQp> {
    let manual = ManualQp::new(&EndAttr::PLAIN)?;
    for context in 0..sends {
        manual.end.post(context, SEND, &[])?;
    }
    for context in 0..receives {
        manual.end.receive(context, &[])?;
    }
    Ok(manual)
}

#[kernel::macros::kunit_tests(ndk_engine_qp_life)]
mod tests {
    use super::*;

    use kernel::sync::{
        atomic::{
            ordering::{
                Acquire,
                Full, //
            },
            Atomic, //
        },
        Arc, //
    };

    use crate::{
        engine::{
            counters::Counter,
            qp::{
                Next,
                Taken, //
            },
            wq::{
                RecvWqe,
                SendWqe, //
            }, //
        },
        kunit::{
            fake::{
                Fake,
                MESSAGE, //
            },
            harness::{
                cases,
                connect,
                connect_pair,
                flush_work,
                wait_until,
                EngineHost,
                QpPair,
                RNR_MS, //
            },
            other_context::OtherContext,
            requests::*, //
        },
        rdma::values::{
            completion::Wc,
            qp::QpState,
            status::Status,
            work::{
                SendFlag,
                SendFlags, //
            }, //
        },
        sys::{
            sge::test_posted,
            softirq::ProcessQueue, //
        }, //
    };

    #[test]
    fn everything_accepted_completes_once_and_in_order() -> Result {
        let manual = posted(20, 20)?;
        manual.end.qp.fail();
        assert!(manual.end.sends.next_are(0..20, Status::Flushed));
        assert!(manual.end.receives.next_are(0..20, Status::Flushed));
        manual.end.qp.fail();
        assert!(manual.end.sends.stays_empty());
        assert!(manual.end.receives.stays_empty());
        kunit_assert_eq!(manual.end.counted(Counter::Flushes), 40);
        Ok(())
    }

    #[test]
    fn deep_queues_are_flushed_to_their_ends() -> Result {
        const DEPTH: u32 = 1000;
        let manual = ManualQp::new(&EndAttr::deep(DEPTH, DEPTH))?;
        for context in cases(0..u64::from(DEPTH)) {
            manual.end.post(context, SEND, &[])?;
            manual.end.receive(context, &[])?;
        }
        manual.end.qp.fail();
        let all = 0..u64::from(DEPTH);
        assert!(manual.end.sends.next_are(all.clone(), Status::Flushed));
        assert!(manual.end.receives.next_are(all, Status::Flushed));
        Ok(())
    }

    #[test]
    fn the_end_of_another_connection_is_nothing_to_it() -> Result {
        let manual = posted(2, 2)?;
        let other = Fake::new()?;
        manual.end.qp.peer_gone(other.id);
        kunit_assert_eq!(manual.end.qp.state(), QpState::Rts);
        assert!(manual.end.sends.stays_empty());
        manual.end.qp.peer_gone(manual.fake.id);
        assert!(manual.end.sends.next_are(0..2, Status::Flushed));
        Ok(())
    }

    #[test]
    fn an_end_is_reported_once_however_often_it_comes() -> Result {
        let manual = posted(0, 0)?;
        for _ in 0..3 {
            manual.end.qp.fail();
        }
        manual.end.qp.peer_gone(manual.fake.id);
        manual.end.qp.close();
        manual.end.qp.modify(QpState::Err)?;
        assert!(manual.end.is_down());
        kunit_assert_eq!(manual.fake.stops.get(), 1);
        kunit_assert_eq!(manual.end.counted(Counter::Disconnects), 1);
        Ok(())
    }

    #[test]
    fn posts_in_error_complete_as_flushed_behind_older_ones() -> Result {
        let mut manual = posted(2, 1)?;
        kunit_assert_eq!(manual.start_all(), 2);
        kunit_assert_eq!(manual.take(), Taken::Ready);
        manual.end.qp.fail();
        manual.end.post(2, SEND, &[])?;
        manual.end.post_with(3, SEND, SendFlags::empty(), &[])?;
        manual.end.receive(1, &[])?;
        assert!(manual.end.sends.stays_empty());
        assert!(manual.end.receives.stays_empty());
        manual.finish(1, Status::Flushed);
        assert!(manual.end.sends.stays_empty());
        manual.finish(0, Status::Success);
        assert!(manual.end.sends.next_is(0, Status::Success));
        assert!(manual.end.sends.next_are(1..4, Status::Flushed));
        let status = Status::Flushed;
        manual.arrive(Wc { status, ..MESSAGE });
        assert!(manual.end.receives.next_are(0..2, Status::Flushed));
        // No older request or receive is in the way now.
        manual.end.post(4, SEND, &[])?;
        manual.end.receive(2, &[])?;
        assert!(manual.end.sends.next_is(4, Status::Flushed));
        assert!(manual.end.receives.next_is(2, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_receive_in_use_completes_before_those_behind_it_are_flushed() -> Result {
        let mut manual = posted(0, 3)?;
        kunit_assert_eq!(manual.take(), Taken::Ready);
        // One receive at a time.
        kunit_assert_eq!(manual.take(), Taken::Refused);
        manual.end.qp.fail();
        assert!(manual.end.receives.stays_empty());
        manual.arrive(MESSAGE);
        assert!(manual.end.receives.next_is(0, Status::Success));
        assert!(manual.end.receives.next_are(1..3, Status::Flushed));
        kunit_assert_eq!(manual.take(), Taken::Refused);
        Ok(())
    }

    #[test]
    fn a_receive_that_fails_ends_the_queue_pair() -> Result {
        let mut manual = posted(1, 2)?;
        kunit_assert_eq!(manual.take(), Taken::Ready);
        let status = Status::LocalAccess;
        manual.arrive(Wc { status, ..MESSAGE });
        assert!(manual.end.receives.next_is(0, Status::LocalAccess));
        assert!(manual.end.receives.next_is(1, Status::Flushed));
        assert!(manual.end.sends.next_is(0, Status::Flushed));
        assert!(manual.end.is_down());
        kunit_assert_eq!(manual.fake.stops.get(), 1);
        Ok(())
    }

    #[test]
    fn the_peer_learns_of_the_end_and_keeps_what_had_arrived() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(8, 51)?, qp_pair.b.buffer(8)?);
        for context in cases(0..3) {
            qp_pair.b.receive(context, &[sink.whole()])?;
        }
        qp_pair.a.post(1, SEND, &[source.whole()])?;
        assert!(wait_until(|| qp_pair.a.sends.cq.details().used == 1));
        qp_pair.a.qp.fail();
        assert!(qp_pair.is_down());
        assert!(qp_pair.b.receives.next_is(0, Status::Success));
        assert!(sink.holds(0, 8, 51, 0));
        assert!(qp_pair.b.receives.next_are(1..3, Status::Flushed));
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        Ok(())
    }

    #[test]
    fn a_graceful_close_carries_out_what_was_posted_before_it() -> Result {
        let mut manual = posted(3, 1)?;
        kunit_assert_eq!(manual.start(), Some(0));
        manual.end.qp.close();
        manual.end.post(3, SEND, &[])?;
        kunit_assert_eq!(manual.start(), Some(1));
        kunit_assert_eq!(manual.start(), Some(2));
        assert!(manual.start().is_none());
        kunit_assert_eq!(manual.end.qp.state(), QpState::Rts);
        kunit_assert_eq!(manual.fake.stops.get(), 0);
        for seq in [2, 0, 1] {
            manual.finish(seq, Status::Success);
        }
        assert!(manual.end.is_down());
        kunit_assert_eq!(manual.fake.stops.get(), 1);
        assert!(manual.end.sends.next_are(0..3, Status::Success));
        assert!(manual.end.sends.next_is(3, Status::Flushed));
        assert!(manual.end.receives.next_is(0, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_close_that_meets_a_failure_is_not_graceful() -> Result {
        for (end, graceful) in cases([(Status::ReceiverNotReady, false), (Status::Success, true)]) {
            let mut manual = posted(1, 1)?;
            manual.end.qp.close();
            kunit_assert_eq!(manual.start_all(), 1);
            manual.finish(0, end);
            assert!(manual.end.sends.next_is(0, end));
            assert!(manual.end.is_down());
            kunit_assert_eq!(manual.end.qp.closed_gracefully(), graceful);
        }
        Ok(())
    }

    #[test]
    fn a_second_close_does_not_extend_the_first() -> Result {
        let mut manual = posted(1, 0)?;
        manual.end.qp.close();
        manual.end.post(1, SEND, &[])?;
        manual.end.qp.close();
        kunit_assert_eq!(manual.start_all(), 1);
        manual.finish(0, Status::Success);
        assert!(manual.end.sends.next_is(0, Status::Success));
        assert!(manual.end.sends.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_graceful_close_waits_for_the_receive_of_the_peer() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(8, 52)?, qp_pair.b.buffer(8)?);
        qp_pair.a.post(1, SEND, &[source.whole()])?;
        qp_pair.a.qp.close();
        qp_pair.a.post(2, SEND, &[])?;
        assert!(qp_pair.a.sends.stays_empty());
        kunit_assert_eq!(qp_pair.b.qp.state(), QpState::Rts);
        qp_pair.b.receive(3, &[sink.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.a.sends.next_is(2, Status::Flushed));
        assert!(qp_pair.b.receives.next_is(3, Status::Success));
        assert!(sink.holds(0, 8, 52, 0));
        assert!(qp_pair.is_down());
        Ok(())
    }

    #[test]
    fn a_graceful_close_of_an_idle_queue_pair_is_the_end_at_once() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.a.qp.close();
        assert!(qp_pair.is_down());
        Ok(())
    }

    #[test]
    fn destruction_ends_what_waits_and_what_moves() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let a = engine_host.end(&EndAttr::PLAIN)?;
        let b = engine_host.end(&EndAttr::PLAIN)?;
        connect(connect_pair, &a, &b)?;
        let (source, sink) = (a.filled(4 << 20, 53)?, b.buffer(4 << 20)?);
        for context in cases(0..8) {
            a.post(context, write(sink.remote(0)), &[source.whole()])?;
        }
        // No receive is posted, so these two sends never end by themselves.
        a.post(8, SEND, &[])?;
        b.post(0, SEND, &[])?;
        let qp = a.qp.clone();
        let other_task = OtherContext::new(move || qp.destroy())?;
        let threads = ProcessQueue::new(c"ndk_flush")?;
        assert!(other_task.begin(&threads));
        assert!(other_task.is_done());
        // Some requests were done, others not; all completed in order, before the call returned.
        let mut statuses = [None; 9];
        for (context, status) in cases((0..).zip(&mut statuses)) {
            let entry = a.sends.poll();
            kunit_assert_eq!(entry.map(|e| e.context.raw()), Some(context));
            *status = entry.map(|e| e.status);
        }
        let done = statuses.iter().take_while(|s| **s == Some(Status::Success));
        let done = done.count();
        assert!(statuses[done..].iter().all(|s| *s == Some(Status::Flushed)));
        assert!(a.sends.stays_empty());
        kunit_assert_eq!(statuses[8], Some(Status::Flushed));
        assert!(b.sends.next_is(0, Status::Flushed));
        Ok(())
    }

    #[test]
    fn destruction_waits_for_what_the_transport_has_begun() -> Result {
        let mut manual = posted(1, 1)?;
        kunit_assert_eq!(manual.start_all(), 1);
        kunit_assert_eq!(manual.take(), Taken::Ready);
        let qp = manual.end.qp.clone();
        let other_task = OtherContext::new(move || qp.destroy())?;
        let threads = ProcessQueue::new(c"ndk_flush")?;
        let began = other_task.begin(&threads);
        let stopped = wait_until(|| manual.fake.stops.get() == 1);
        crate::kunit::harness::sleep(30);
        let early = manual.end.sends.poll().is_some() || manual.end.receives.poll().is_some();
        manual.finish(0, Status::Flushed);
        manual.arrive(MESSAGE);
        assert!(began);
        assert!(stopped);
        assert!(!early);
        assert!(other_task.is_done());
        assert!(manual.end.sends.next_is(0, Status::Flushed));
        assert!(manual.end.receives.next_is(0, Status::Success));
        Ok(())
    }

    #[test]
    fn a_reset_gives_a_new_life() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(8, 54)?, qp_pair.b.buffer(8)?);
        for round in cases(1..4) {
            qp_pair.b.receive(1, &[sink.whole()])?;
            qp_pair.b.receive(2, &[])?;
            qp_pair.a.post(3, SEND, &[source.whole()])?;
            qp_pair.a.post(4, read(sink.remote(0)), &[source.whole()])?;
            assert!(qp_pair.a.sends.next_are(3..5, Status::Success));
            qp_pair.a.qp.fail();
            qp_pair.a.post(5, SEND, &[])?;
            assert!(qp_pair.b.receives.next_is(1, Status::Success));
            assert!(qp_pair.b.receives.next_is(2, Status::Flushed));
            assert!(qp_pair.a.sends.next_is(5, Status::Flushed));
            kunit_assert_eq!(qp_pair.a.qp.state(), QpState::Err);
            for end in [&qp_pair.a, &qp_pair.b] {
                assert!(wait_until(|| end.owner.notified.get() == round));
                end.qp.modify(QpState::Reset)?;
                kunit_assert_eq!(end.qp.state(), QpState::Reset);
            }
            qp_pair.connect(connect_pair)?;
        }
        Ok(())
    }

    #[test]
    fn a_reset_forgets_a_close_and_receives_that_nobody_took() -> Result {
        let manual = posted(0, 2)?;
        manual.end.qp.close();
        assert!(manual.end.receives.next_are(0..2, Status::Flushed));
        manual.end.qp.modify(QpState::Reset)?;
        manual.end.qp.modify(QpState::Init)?;
        manual.end.receive(7, &[])?;
        manual.end.qp.modify(QpState::Reset)?;
        manual.end.qp.modify(QpState::Init)?;
        manual.attach()?;
        let mut manual = manual;
        kunit_assert_eq!(manual.take(), Taken::Empty);
        manual.end.post(1, SEND, &[])?;
        kunit_assert_eq!(manual.start_all(), 1);
        assert!(manual.end.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn a_reset_drops_what_was_posted_after_the_queues_were_seen_empty() -> Result {
        let mut manual = ManualQp::new(&EndAttr::PLAIN)?;
        let qp = manual.end.qp.clone();
        qp.fail();
        // The post saw the error state, and has yet to flush its request.
        let mut posting = qp.posting();
        let posted = posting.post(
            test_posted(9, [].into_iter()),
            SEND,
            SendFlag::Signaled.into(),
        );
        assert!(posted.is_ok());
        drop(posting);
        let (error, reset) = (QpState::Err.number(), QpState::Reset.number());
        assert!(qp.state.cmpxchg(error, reset, Full).is_ok());
        qp.reset();
        qp.modify(QpState::Init)?;
        manual.attach()?;
        manual.end.post(1, SEND, &[])?;
        let seq = manual.start();
        assert!(seq.is_some());
        manual.finish(seq.unwrap_or(0), Status::Success);
        assert!(manual.end.sends.next_is(1, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_connect_that_is_refused_leaves_the_read_limit() -> Result {
        let manual = ManualQp::unconnected(&EndAttr::PLAIN)?;
        let qp = &manual.end.qp;
        kunit_assert_eq!(manual.attach(), Err(EINVAL));
        kunit_assert_eq!(qp.sq.lock().limits.outbound, 0);
        qp.modify(QpState::Init)?;
        assert!(manual.attach().is_ok());
        assert!(qp.sq.lock().limits.outbound != 0);
        Ok(())
    }

    #[test]
    fn a_reset_is_refused_while_something_is_ending() -> Result {
        let mut manual = posted(1, 1)?;
        kunit_assert_eq!(manual.start_all(), 1);
        kunit_assert_eq!(manual.take(), Taken::Ready);
        manual.end.qp.fail();
        kunit_assert_eq!(manual.end.qp.modify(QpState::Reset), Err(EBUSY));
        manual.finish(0, Status::Flushed);
        assert!(manual.end.sends.next_is(0, Status::Flushed));
        kunit_assert_eq!(manual.end.qp.modify(QpState::Reset), Err(EBUSY));
        // The refusal had no effect.
        manual.end.post(1, SEND, &[])?;
        assert!(manual.end.sends.next_is(1, Status::Flushed));
        manual.arrive(MESSAGE);
        kunit_assert_eq!(manual.end.qp.state(), QpState::Err);
        manual.end.qp.modify(QpState::Reset)?;
        Ok(())
    }

    #[test]
    fn nothing_is_cancelled_while_the_peer_is_in_the_memory() -> Result {
        let mut manual = posted(2, 2)?;
        kunit_assert_eq!(manual.start(), Some(0));
        let qp = manual.end.qp.clone();
        let inside = qp.admit_peer(manual.fake.id);
        assert!(inside.is_some());
        manual.end.qp.fail();
        assert!(qp.admit_peer(manual.fake.id).is_none());
        manual.finish(0, Status::Success);
        assert!(manual.end.sends.next_is(0, Status::Success));
        assert!(manual.end.sends.stays_empty());
        assert!(manual.end.receives.stays_empty());
        drop(inside);
        qp.reap();
        assert!(manual.end.sends.next_is(1, Status::Flushed));
        assert!(manual.end.receives.next_are(0..2, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_peer_in_the_memory_keeps_a_reset_waiting_and_the_next_one_out() -> Result {
        let manual = posted(0, 1)?;
        let qp = manual.end.qp.clone();
        let inside = qp.admit_peer(manual.fake.id);
        assert!(inside.is_some());
        manual.end.qp.fail();
        kunit_assert_eq!(qp.modify(QpState::Reset), Err(EBUSY));
        drop(inside);
        // The receive has not been cancelled yet.
        kunit_assert_eq!(qp.modify(QpState::Reset), Err(EBUSY));
        qp.reap();
        assert!(manual.end.receives.next_is(0, Status::Flushed));
        for state in cases([QpState::Reset, QpState::Init]) {
            assert!(qp.admit_peer(manual.fake.id).is_none());
            qp.modify(state)?;
        }
        manual.attach()?;
        assert!(qp.admit_peer(manual.fake.id).is_some());
        Ok(())
    }

    #[test]
    fn a_transport_of_an_earlier_connection_does_nothing_in_the_next() -> Result {
        let manual = posted(0, 0)?;
        let (qp, old) = (manual.end.qp.clone(), manual.fake.clone());
        let next = Fake::new()?;
        manual.end.qp.fail();
        for state in cases([QpState::Reset, QpState::Init]) {
            qp.modify(state)?;
        }
        manual.end.attach(next.clone(), 0)?;
        manual.end.post(1, SEND, &[])?;
        manual.end.receive(1, &[])?;
        let (mut wqe, mut receive) = (SendWqe::new(&qp.caps)?, RecvWqe::new(4)?);
        kunit_assert_eq!(qp.start(old.id, &mut wqe), Next::Nothing);
        kunit_assert_eq!(qp.take_receive(old.id, &mut receive), Taken::Refused);
        assert!(qp.admit_peer(old.id).is_none());
        qp.peer_gone(old.id);
        kunit_assert_eq!(qp.state(), QpState::Rts);
        // The request and the receive are there for the present connection.
        assert!(qp.admit_peer(next.id).is_some());
        kunit_assert_eq!(qp.take_receive(next.id, &mut receive), Taken::Ready);
        qp.finish_receive(&mut receive, MESSAGE);
        assert!(manual.end.receives.next_is(1, Status::Success));
        kunit_assert_eq!(qp.start(next.id, &mut wqe), Next::Ready);
        // A started request ends here, and the earlier transport gets no next one.
        manual.end.post(2, SEND, &[])?;
        kunit_assert_eq!(qp.complete_and_start(old.id, &mut wqe), Next::Nothing);
        assert!(manual.end.sends.next_is(1, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_failure_of_before_a_reset_leaves_the_next_connection_alone() -> Result {
        let manual = ManualQp::new(&EndAttr::PLAIN)?;
        let before = manual.end.qp.resets();
        manual.end.qp.fail();
        for state in cases([QpState::Reset, QpState::Init]) {
            manual.end.qp.modify(state)?;
        }
        manual.attach()?;
        manual.end.qp.fail_before_reset(before);
        manual.end.qp.end_close();
        kunit_assert_eq!(manual.end.qp.state(), QpState::Rts);
        manual.end.qp.fail_before_reset(before + 1);
        kunit_assert_eq!(manual.end.qp.state(), QpState::Err);
        Ok(())
    }

    #[test]
    fn a_broken_completion_queue_breaks_the_queue_pair_once_in_each_life() -> Result {
        let attr = EndAttr {
            send_entries: 1,
            ..EndAttr::PLAIN
        };
        let mut manual = ManualQp::new(&attr)?;
        let qp = manual.end.qp.clone();
        manual.end.post(0, SEND, &[])?;
        let first = manual.start().ok_or(EINVAL)?;
        manual.finish(first, Status::Success);
        for life in cases(1..4) {
            for context in cases(1..4) {
                manual.end.post(context, SEND, &[])?;
            }
            let seq = manual.start().ok_or(EINVAL)?;
            kunit_assert_eq!(qp.state(), QpState::Rts);
            // There is no room, and in later lives the completion queue has failed.
            manual.finish(seq, Status::Success);
            flush_work(manual.end.device());
            kunit_assert_eq!(qp.state(), QpState::Err);
            kunit_assert_eq!(manual.end.owner.notified.get(), life);
            kunit_assert_eq!(manual.end.events.broken.get(), life);
            for state in cases([QpState::Reset, QpState::Init]) {
                qp.modify(state)?;
            }
            manual.attach()?;
        }
        kunit_assert_eq!(manual.end.counted(Counter::CqOverflows), 1);
        Ok(())
    }

    #[test]
    fn nothing_is_begun_behind_a_completion_that_got_lost() -> Result {
        let attr = EndAttr {
            send_entries: 1,
            ..EndAttr::PLAIN
        };
        let mut manual = ManualQp::new(&attr)?;
        for context in cases(0..3) {
            manual.end.post(context, SEND, &[])?;
        }
        assert!(manual.start().is_some());
        assert!(manual.complete_and_start().is_some());
        // The second entry finds no room; the third request was to begin under the same hold of the
        // lock.
        assert!(manual.complete_and_start().is_none());
        kunit_assert_eq!(manual.end.qp.state(), QpState::Err);
        assert!(manual.end.sends.next_is(0, Status::Success));
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn a_completion_queue_that_breaks_while_receives_are_cancelled_is_reported_too() -> Result {
        let attr = EndAttr {
            receive_entries: 2,
            ..EndAttr::PLAIN
        };
        let manual = ManualQp::new(&attr)?;
        for context in cases(0..5) {
            manual.end.receive(context, &[])?;
        }
        manual.end.qp.fail();
        assert!(manual.end.receives.next_are(0..2, Status::Flushed));
        assert!(manual.end.receives.stays_empty());
        assert!(manual.end.sends.stays_empty());
        kunit_assert_eq!(manual.end.events.broken.get(), 1);
        Ok(())
    }

    #[test]
    fn a_late_report_of_a_broken_queue_leaves_the_next_connection_alone() -> Result {
        let manual = ManualQp::new(&EndAttr::PLAIN)?;
        let qp = manual.end.qp.clone();
        let before = qp.resets();
        qp.fail();
        for state in cases([QpState::Reset, QpState::Init]) {
            qp.modify(state)?;
        }
        manual.attach()?;
        qp.break_down(before);
        flush_work(manual.end.device());
        kunit_assert_eq!(qp.state(), QpState::Rts);
        kunit_assert_eq!(manual.end.events.broken.get(), 0);
        qp.break_down(before + 1);
        flush_work(manual.end.device());
        kunit_assert_eq!(qp.state(), QpState::Err);
        kunit_assert_eq!(manual.end.events.broken.get(), 1);
        Ok(())
    }

    #[test]
    fn a_reset_forgets_what_was_posted_however_much() -> Result {
        const DEPTH: u32 = 1000;
        let mut manual = ManualQp::unconnected(&EndAttr::deep(DEPTH, DEPTH))?;
        let qp = manual.end.qp.clone();
        for _ in 0..2 {
            qp.modify(QpState::Init)?;
            for context in cases(0..u64::from(DEPTH)) {
                manual.end.receive(context, &[])?;
            }
            qp.modify(QpState::Reset)?;
            assert!(manual.end.receives.stays_empty());
        }
        qp.modify(QpState::Init)?;
        manual.end.receive(7, &[])?;
        manual.attach()?;
        kunit_assert_eq!(manual.take(), Taken::Ready);
        manual.arrive(MESSAGE);
        assert!(manual.end.receives.next_is(7, Status::Success));
        kunit_assert_eq!(manual.take(), Taken::Empty);
        // Sends that come after the queues were seen empty: one more than a batch, and many.
        for sends in cases([1, 65, DEPTH]) {
            let mut sq = qp.sq.lock();
            for context in cases(0..sends) {
                let posted = test_posted(context.into(), [].into_iter());
                assert!(sq
                    .push(qp.device(), posted, (SEND, SendFlag::Signaled.into(), 0))
                    .is_ok());
            }
            let mut turns = 1;
            while !sq.reset(qp.device()) {
                turns += 1;
            }
            assert!(sq.is_empty());
            kunit_assert_eq!(turns, sends.div_ceil(64).max(1));
        }
        Ok(())
    }

    #[test]
    fn the_late_part_of_a_disconnect_leaves_the_next_connection_alone() -> Result {
        for attr in cases([EndAttr::PLAIN, EndAttr::shared(4)]) {
            let mut manual = ManualQp::new(&attr)?;
            manual.end.qp.fail();
            for state in cases([QpState::Reset, QpState::Init]) {
                manual.end.qp.modify(state)?;
            }
            manual.attach()?;
            kunit_assert_eq!(manual.take(), Taken::Empty);
            // The task that ended the last connection comes to its receives only now.
            manual.end.qp.end_receives();
            manual.end.receive(1, &[])?;
            kunit_assert_eq!(manual.fake.receives.get(), 1);
            kunit_assert_eq!(manual.take(), Taken::Ready);
            manual.arrive(MESSAGE);
            assert!(manual.end.receives.next_is(1, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn a_connection_that_is_gone_takes_nothing_before_a_reset_either() -> Result {
        for flush_on_disconnect in cases([false, true]) {
            let attr = EndAttr {
                flush_on_disconnect,
                ..EndAttr::PLAIN
            };
            let manual = ManualQp::new(&attr)?;
            let (qp, id) = (manual.end.qp.clone(), manual.fake.id);
            manual.end.post(1, SEND, &[])?;
            manual.end.receive(1, &[])?;
            qp.peer_gone(id);
            let (mut wqe, mut receive) = (SendWqe::new(&qp.caps)?, RecvWqe::new(4)?);
            kunit_assert_eq!(qp.start(id, &mut wqe), Next::Nothing);
            kunit_assert_eq!(qp.take_receive(id, &mut receive), Taken::Refused);
            assert!(qp.admit_peer(id).is_none());
            assert!(!qp.is_connected_by(id));
        }
        Ok(())
    }

    #[test]
    fn a_queue_pair_that_was_never_connected_flushes_its_receives() -> Result {
        let manual = ManualQp::unconnected(&EndAttr::PLAIN)?;
        manual.end.qp.modify(QpState::Init)?;
        manual.end.receive(1, &[])?;
        manual.end.qp.fail();
        assert!(manual.end.receives.next_is(1, Status::Flushed));
        // There was no connection to lose.
        kunit_assert_eq!(manual.end.owner.notified.get(), 0);
        kunit_assert_eq!(manual.end.counted(Counter::Disconnects), 0);
        Ok(())
    }

    #[test]
    fn posts_that_meet_a_flush_complete_exactly_once() -> Result {
        let threads = ProcessQueue::new(c"ndk_flush")?;
        for round in cases(0..30) {
            let qp_pair = QpPair::with(&EndAttr::deep(512, 1), &EndAttr::PLAIN)?;
            let sink = qp_pair.b.buffer(8)?.remote(0);
            let qp = qp_pair.a.qp.clone();
            let count = Arc::new(Atomic::new(0u64), GFP_KERNEL)?;
            let (notified, begun) = (count.clone(), Arc::new(Atomic::new(0u64), GFP_KERNEL)?);
            let at = begun.clone();
            let other_task = OtherContext::new(move || {
                for context in 0..400 {
                    at.fetch_add(1, Full);
                    let none = [].into_iter();
                    let posted = qp.post(context, write(sink), SendFlag::Signaled, none);
                    qp.ring_doorbell();
                    notified.fetch_add(u64::from(posted.is_ok()), Full);
                }
            })?;
            assert!(other_task.begin(&threads));
            assert!(wait_until(|| begun.load(Acquire) > round * 10));
            qp_pair.a.qp.fail();
            assert!(other_task.is_done());
            kunit_assert_eq!(count.load(Acquire), 400);
            let mut flushed = false;
            for context in cases(0..400) {
                let entry = qp_pair.a.sends.next().map(|e| (e.context.raw(), e.status));
                flushed |= entry.is_some_and(|(_, status)| status == Status::Flushed);
                let status = if flushed {
                    Status::Flushed
                } else {
                    Status::Success
                };
                kunit_assert_eq!(entry, Some((context, status)));
            }
            assert!(qp_pair.a.sends.stays_empty());
            assert!(qp_pair.is_down());
        }
        Ok(())
    }

    #[test]
    fn a_transport_that_is_late_finds_a_queue_pair_in_error_closed() -> Result {
        let mut manual = posted(2, 2)?;
        let late = Fake::new()?;
        manual.end.qp.fail();
        assert!(manual.start().is_none());
        kunit_assert_eq!(manual.take(), Taken::Refused);
        kunit_assert_eq!(manual.end.attach(late, 0), Err(EINVAL));
        flush_work(manual.end.device());
        kunit_assert_eq!(manual.fake.stops.get(), 1);
        Ok(())
    }
}
