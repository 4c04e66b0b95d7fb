// SPDX-License-Identifier: GPL-2.0

//! The end of a queue pair: flush, graceful close, destruction, and a new life after a reset.

use kernel::prelude::*;

use crate::kunit::{
    fake::Hand,
    harness::Plan,
    requests::SEND, //
};

/// A hand with `sends` requests and `receives` receives posted, both with contexts from 0.
fn posted(sends: u64, receives: u64) -> Result<Hand> {
    let hand = Hand::new(&Plan::PLAIN)?;
    for context in 0..sends {
        hand.end.post(context, SEND, &[])?;
    }
    for context in 0..receives {
        hand.end.receive(context, &[])?;
    }
    Ok(hand)
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
        direct,
        engine::{
            counters::Counter,
            qp::{
                state::State,
                Next,
                RecvWqe,
                SendWqe,
                Taken, //
            },
            status::Status,
            work::{
                Completion,
                Flags, //
            }, //
        },
        kunit::{
            fake::{
                Fake,
                MESSAGE, //
            },
            harness::{
                same,
                settle,
                wait_until,
                Bench,
                Lab,
                RNR_MS, //
            },
            other_context::OtherContext,
            requests::*, //
        },
        sys::softirq::ProcessQueue, //
    };

    #[test]
    fn everything_accepted_completes_once_and_in_order() -> Result {
        let hand = posted(20, 20)?;
        hand.end.qp.fail();
        assert!(hand.end.sends.brings_all(0..20, Status::Flushed));
        assert!(hand.end.receives.brings_all(0..20, Status::Flushed));
        hand.end.qp.fail();
        assert!(hand.end.sends.is_silent() && hand.end.receives.is_silent());
        assert!(same(hand.end.counted(Counter::Flushes), 40));
        Ok(())
    }

    #[test]
    fn deep_queues_are_flushed_to_their_ends() -> Result {
        const DEPTH: u32 = 1000;
        let hand = Hand::new(&Plan::deep(DEPTH, DEPTH))?;
        for context in 0..u64::from(DEPTH) {
            hand.end.post(context, SEND, &[])?;
            hand.end.receive(context, &[])?;
        }
        hand.end.qp.fail();
        let all = 0..u64::from(DEPTH);
        assert!(hand.end.sends.brings_all(all.clone(), Status::Flushed));
        assert!(hand.end.receives.brings_all(all, Status::Flushed));
        Ok(())
    }

    #[test]
    fn the_end_of_another_connection_is_nothing_to_it() -> Result {
        let hand = posted(2, 2)?;
        let other = Fake::new()?;
        hand.end.qp.peer_gone(other.id);
        assert!(same(hand.end.qp.state(), State::Connected));
        assert!(hand.end.sends.is_silent());
        hand.end.qp.peer_gone(hand.fake.id);
        assert!(hand.end.sends.brings_all(0..2, Status::Flushed));
        Ok(())
    }

    #[test]
    fn an_end_is_reported_once_however_often_it_comes() -> Result {
        let hand = posted(0, 0)?;
        for _ in 0..3 {
            hand.end.qp.fail();
        }
        hand.end.qp.peer_gone(hand.fake.id);
        hand.end.qp.close();
        hand.end.qp.modify(State::Error)?;
        assert!(hand.end.is_down());
        assert!(same(hand.fake.stops.get(), 1));
        assert!(same(hand.end.counted(Counter::Disconnects), 1));
        Ok(())
    }

    #[test]
    fn posts_in_error_complete_as_flushed_behind_older_ones() -> Result {
        let mut hand = posted(2, 1)?;
        assert!(hand.start_all() == 2 && hand.take() == Taken::Ready);
        hand.end.qp.fail();
        hand.end.post(2, SEND, &[])?;
        hand.end.post_with(3, SEND, Flags::NONE, &[])?;
        hand.end.receive(1, &[])?;
        assert!(hand.end.sends.is_silent() && hand.end.receives.is_silent());
        hand.finish(1, Status::Flushed);
        assert!(hand.end.sends.is_silent());
        hand.finish(0, Status::Success);
        assert!(hand.end.sends.brings(0, Status::Success));
        assert!(hand.end.sends.brings_all(1..4, Status::Flushed));
        let status = Status::Flushed;
        hand.arrive(Completion { status, ..MESSAGE });
        assert!(hand.end.receives.brings_all(0..2, Status::Flushed));
        // Now nothing is in the way.
        hand.end.post(4, SEND, &[])?;
        hand.end.receive(2, &[])?;
        assert!(hand.end.sends.brings(4, Status::Flushed));
        assert!(hand.end.receives.brings(2, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_receive_in_use_completes_before_those_behind_it_are_flushed() -> Result {
        let mut hand = posted(0, 3)?;
        assert!(hand.take() == Taken::Ready);
        // One at a time.
        assert!(hand.take() == Taken::Closed);
        hand.end.qp.fail();
        assert!(hand.end.receives.is_silent());
        hand.arrive(MESSAGE);
        assert!(hand.end.receives.brings(0, Status::Success));
        assert!(hand.end.receives.brings_all(1..3, Status::Flushed));
        assert!(hand.take() == Taken::Closed);
        Ok(())
    }

    #[test]
    fn a_receive_that_fails_ends_the_queue_pair() -> Result {
        let mut hand = posted(1, 2)?;
        assert!(hand.take() == Taken::Ready);
        let status = Status::LocalAccess;
        hand.arrive(Completion { status, ..MESSAGE });
        assert!(hand.end.receives.brings(0, Status::LocalAccess));
        assert!(hand.end.receives.brings(1, Status::Flushed));
        assert!(hand.end.sends.brings(0, Status::Flushed));
        assert!(hand.end.is_down() && same(hand.fake.stops.get(), 1));
        Ok(())
    }

    #[test]
    fn the_peer_learns_of_the_end_and_keeps_what_had_arrived() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.a.filled(8, 51)?, bench.b.buffer(8)?);
        for context in 0..3 {
            bench.b.receive(context, &[sink.whole()])?;
        }
        bench.a.post(1, SEND, &[source.whole()])?;
        bench.a.qp.fail();
        assert!(bench.is_down());
        assert!(bench.b.receives.brings(0, Status::Success) && sink.holds(0, 8, 51, 0));
        assert!(bench.b.receives.brings_all(1..3, Status::Flushed));
        assert!(bench.a.sends.brings(1, Status::Success));
        Ok(())
    }

    #[test]
    fn a_graceful_close_carries_out_what_was_posted_before_it() -> Result {
        let mut hand = posted(3, 1)?;
        assert!(hand.start() == Some(0));
        hand.end.qp.close();
        hand.end.post(3, SEND, &[])?;
        assert!(hand.start() == Some(1) && hand.start() == Some(2));
        assert!(hand.start().is_none());
        assert!(hand.end.qp.state() == State::Connected && hand.fake.stops.get() == 0);
        for seq in [2, 0, 1] {
            hand.finish(seq, Status::Success);
        }
        assert!(hand.end.is_down() && same(hand.fake.stops.get(), 1));
        assert!(hand.end.sends.brings_all(0..3, Status::Success));
        assert!(hand.end.sends.brings(3, Status::Flushed));
        assert!(hand.end.receives.brings(0, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_close_that_meets_a_failure_is_not_graceful() -> Result {
        for (end, graceful) in [(Status::ReceiverNotReady, false), (Status::Success, true)] {
            let mut hand = posted(1, 1)?;
            hand.end.qp.close();
            assert!(hand.start_all() == 1);
            hand.finish(0, end);
            assert!(hand.end.sends.brings(0, end) && hand.end.is_down());
            assert!(same(hand.end.qp.closed_gracefully(), graceful));
        }
        Ok(())
    }

    #[test]
    fn a_second_close_does_not_extend_the_first() -> Result {
        let mut hand = posted(1, 0)?;
        hand.end.qp.close();
        hand.end.post(1, SEND, &[])?;
        hand.end.qp.close();
        assert!(hand.start_all() == 1);
        hand.finish(0, Status::Success);
        assert!(hand.end.sends.brings(0, Status::Success));
        assert!(hand.end.sends.brings(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_graceful_close_waits_for_the_receive_of_the_peer() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.a.filled(8, 52)?, bench.b.buffer(8)?);
        bench.a.post(1, SEND, &[source.whole()])?;
        bench.a.qp.close();
        bench.a.post(2, SEND, &[])?;
        assert!(bench.a.sends.is_silent() && bench.b.qp.state() == State::Connected);
        bench.b.receive(3, &[sink.whole()])?;
        assert!(bench.a.sends.brings(1, Status::Success));
        assert!(bench.a.sends.brings(2, Status::Flushed));
        assert!(bench.b.receives.brings(3, Status::Success));
        assert!(sink.holds(0, 8, 52, 0) && bench.is_down());
        Ok(())
    }

    #[test]
    fn a_graceful_close_of_an_idle_queue_pair_is_the_end_at_once() -> Result {
        let bench = Bench::new()?;
        bench.a.qp.close();
        assert!(bench.is_down());
        Ok(())
    }

    #[test]
    fn destruction_ends_what_waits_and_what_moves() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let a = lab.end(&Plan::PLAIN)?;
        let b = lab.end(&Plan::PLAIN)?;
        crate::kunit::harness::connect(direct::connect, &a, &b)?;
        let (source, sink) = (a.filled(4 << 20, 53)?, b.buffer(4 << 20)?);
        for context in 0..8 {
            a.post(context, write(sink.remote(0)), &[source.whole()])?;
        }
        // Nobody posts a receive, so these two never end by themselves.
        a.post(8, SEND, &[])?;
        b.post(0, SEND, &[])?;
        let qp = a.qp.clone();
        let errand = OtherContext::new(move || qp.destroy())?;
        let threads = ProcessQueue::new(c"ndk_flush")?;
        assert!(errand.begin(&threads) && errand.is_done());
        // Some were done, the rest was not; all are notified, in order, and before it returned.
        let mut statuses = [None; 9];
        for (context, status) in (0..).zip(&mut statuses) {
            let entry = a.sends.poll();
            assert!(same(entry.map(|e| e.context), Some(context)));
            *status = entry.map(|e| e.status);
        }
        let done = statuses.iter().take_while(|s| **s == Some(Status::Success));
        let done = done.count();
        assert!(statuses[done..].iter().all(|s| *s == Some(Status::Flushed)));
        assert!(a.sends.is_silent() && statuses[8] == Some(Status::Flushed));
        assert!(b.sends.brings(0, Status::Flushed));
        Ok(())
    }

    #[test]
    fn destruction_waits_for_what_the_transport_has_begun() -> Result {
        let mut hand = posted(1, 1)?;
        assert!(hand.start_all() == 1 && hand.take() == Taken::Ready);
        let qp = hand.end.qp.clone();
        let errand = OtherContext::new(move || qp.destroy())?;
        let threads = ProcessQueue::new(c"ndk_flush")?;
        let began = errand.begin(&threads);
        let stopped = wait_until(|| hand.fake.stops.get() == 1);
        crate::kunit::harness::sleep(30);
        let early = hand.end.sends.poll().is_some() || hand.end.receives.poll().is_some();
        hand.finish(0, Status::Flushed);
        hand.arrive(MESSAGE);
        assert!(began && stopped && !early && errand.is_done());
        assert!(hand.end.sends.brings(0, Status::Flushed));
        assert!(hand.end.receives.brings(0, Status::Success));
        Ok(())
    }

    #[test]
    fn a_reset_gives_a_new_life() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.a.filled(8, 54)?, bench.b.buffer(8)?);
        for round in 1..4 {
            bench.b.receive(1, &[sink.whole()])?;
            bench.b.receive(2, &[])?;
            bench.a.post(3, SEND, &[source.whole()])?;
            bench.a.post(4, read(sink.remote(0)), &[source.whole()])?;
            assert!(bench.a.sends.brings_all(3..5, Status::Success));
            bench.a.qp.fail();
            bench.a.post(5, SEND, &[])?;
            assert!(bench.b.receives.brings(1, Status::Success));
            assert!(bench.b.receives.brings(2, Status::Flushed));
            assert!(bench.a.sends.brings(5, Status::Flushed));
            assert!(bench.a.qp.state() == State::Error);
            for end in [&bench.a, &bench.b] {
                assert!(wait_until(|| end.owner.notified.get() == round));
                end.qp.modify(State::Reset)?;
                assert!(end.qp.state() == State::Reset);
            }
            bench.connect(direct::connect)?;
        }
        Ok(())
    }

    #[test]
    fn a_reset_forgets_a_close_and_receives_that_nobody_took() -> Result {
        let hand = posted(0, 2)?;
        hand.end.qp.close();
        assert!(hand.end.receives.brings_all(0..2, Status::Flushed));
        hand.end.qp.modify(State::Reset)?;
        hand.end.qp.modify(State::Init)?;
        hand.end.receive(7, &[])?;
        hand.end.qp.modify(State::Reset)?;
        hand.end.qp.modify(State::Init)?;
        hand.attach()?;
        let mut hand = hand;
        assert!(hand.take() == Taken::Empty);
        hand.end.post(1, SEND, &[])?;
        assert!(hand.start_all() == 1);
        assert!(hand.end.receives.is_silent());
        Ok(())
    }

    #[test]
    fn a_reset_is_refused_while_something_is_ending() -> Result {
        let mut hand = posted(1, 1)?;
        assert!(hand.start_all() == 1 && hand.take() == Taken::Ready);
        hand.end.qp.fail();
        assert!(hand.end.qp.modify(State::Reset) == Err(EBUSY));
        hand.finish(0, Status::Flushed);
        assert!(hand.end.sends.brings(0, Status::Flushed));
        assert!(hand.end.qp.modify(State::Reset) == Err(EBUSY));
        // The refusal left everything as it was.
        hand.end.post(1, SEND, &[])?;
        assert!(hand.end.sends.brings(1, Status::Flushed));
        hand.arrive(MESSAGE);
        assert!(hand.end.qp.state() == State::Error);
        hand.end.qp.modify(State::Reset)?;
        Ok(())
    }

    #[test]
    fn nothing_is_cancelled_while_the_peer_is_in_the_memory() -> Result {
        let mut hand = posted(2, 2)?;
        assert!(hand.start() == Some(0));
        let qp = hand.end.qp.clone();
        let inside = qp.admit_peer(hand.fake.id);
        assert!(inside.is_some());
        hand.end.qp.fail();
        assert!(qp.admit_peer(hand.fake.id).is_none());
        hand.finish(0, Status::Success);
        assert!(hand.end.sends.brings(0, Status::Success));
        assert!(hand.end.sends.is_silent() && hand.end.receives.is_silent());
        drop(inside);
        qp.reap();
        assert!(hand.end.sends.brings(1, Status::Flushed));
        assert!(hand.end.receives.brings_all(0..2, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_peer_in_the_memory_keeps_a_reset_waiting_and_the_next_one_out() -> Result {
        let hand = posted(0, 1)?;
        let qp = hand.end.qp.clone();
        let inside = qp.admit_peer(hand.fake.id);
        assert!(inside.is_some());
        hand.end.qp.fail();
        assert!(qp.modify(State::Reset) == Err(EBUSY));
        drop(inside);
        // The receive has not been cancelled yet.
        assert!(qp.modify(State::Reset) == Err(EBUSY));
        qp.reap();
        assert!(hand.end.receives.brings(0, Status::Flushed));
        for state in [State::Reset, State::Init] {
            assert!(qp.admit_peer(hand.fake.id).is_none());
            qp.modify(state)?;
        }
        hand.attach()?;
        assert!(qp.admit_peer(hand.fake.id).is_some());
        Ok(())
    }

    #[test]
    fn a_transport_of_an_earlier_connection_does_nothing_in_the_next() -> Result {
        let hand = posted(0, 0)?;
        let (qp, old) = (hand.end.qp.clone(), hand.fake.clone());
        let next = Fake::new()?;
        hand.end.qp.fail();
        for state in [State::Reset, State::Init] {
            qp.modify(state)?;
        }
        hand.end.attach(next.clone(), 0)?;
        hand.end.post(1, SEND, &[])?;
        hand.end.receive(1, &[])?;
        let (mut wqe, mut receive) = (SendWqe::new(&qp.caps)?, RecvWqe::new(4)?);
        assert!(qp.start(old.id, &mut wqe) == Next::Nothing);
        assert!(qp.take_receive(old.id, &mut receive) == Taken::Closed);
        assert!(qp.admit_peer(old.id).is_none());
        qp.peer_gone(old.id);
        assert!(same(qp.state(), State::Connected));
        // All of it is there for the right one.
        assert!(qp.admit_peer(next.id).is_some());
        assert!(qp.take_receive(next.id, &mut receive) == Taken::Ready);
        qp.finish_receive(&receive, MESSAGE);
        assert!(hand.end.receives.brings(1, Status::Success));
        assert!(qp.start(next.id, &mut wqe) == Next::Ready);
        // One that has begun ends here, and the earlier one gets no next.
        hand.end.post(2, SEND, &[])?;
        assert!(qp.complete_and_start(old.id, &mut wqe) == Next::Nothing);
        assert!(hand.end.sends.brings(1, Status::Success));
        assert!(hand.end.sends.is_silent());
        Ok(())
    }

    #[test]
    fn a_failure_of_before_a_reset_leaves_the_next_connection_alone() -> Result {
        let hand = Hand::new(&Plan::PLAIN)?;
        let before = hand.end.qp.resets();
        hand.end.qp.fail();
        for state in [State::Reset, State::Init] {
            hand.end.qp.modify(state)?;
        }
        hand.attach()?;
        hand.end.qp.fail_before_reset(before);
        hand.end.qp.end_close();
        assert!(hand.end.qp.state() == State::Connected);
        hand.end.qp.fail_before_reset(before + 1);
        assert!(hand.end.qp.state() == State::Error);
        Ok(())
    }

    #[test]
    fn the_late_part_of_a_disconnect_leaves_the_next_connection_alone() -> Result {
        for plan in [Plan::PLAIN, Plan::shared(4)] {
            let mut hand = Hand::new(&plan)?;
            hand.end.qp.fail();
            for state in [State::Reset, State::Init] {
                hand.end.qp.modify(state)?;
            }
            hand.attach()?;
            assert!(hand.take() == Taken::Empty);
            // Whoever ended the last connection comes to its receives only now.
            hand.end.qp.end_receives();
            hand.end.receive(1, &[])?;
            assert!(same(hand.fake.receives.get(), 1));
            assert!(hand.take() == Taken::Ready);
            hand.arrive(MESSAGE);
            assert!(hand.end.receives.brings(1, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn a_connection_that_is_gone_takes_nothing_before_a_reset_either() -> Result {
        for flush_on_disconnect in [false, true] {
            let plan = Plan {
                flush_on_disconnect,
                ..Plan::PLAIN
            };
            let hand = Hand::new(&plan)?;
            let (qp, id) = (hand.end.qp.clone(), hand.fake.id);
            hand.end.post(1, SEND, &[])?;
            hand.end.receive(1, &[])?;
            qp.peer_gone(id);
            let (mut wqe, mut receive) = (SendWqe::new(&qp.caps)?, RecvWqe::new(4)?);
            assert!(qp.start(id, &mut wqe) == Next::Nothing);
            assert!(qp.take_receive(id, &mut receive) == Taken::Closed);
            assert!(qp.admit_peer(id).is_none() && !qp.is_connected_by(id));
        }
        Ok(())
    }

    #[test]
    fn a_queue_pair_that_was_never_connected_flushes_its_receives() -> Result {
        let hand = Hand::unconnected(&Plan::PLAIN)?;
        hand.end.qp.modify(State::Init)?;
        hand.end.receive(1, &[])?;
        hand.end.qp.fail();
        assert!(hand.end.receives.brings(1, Status::Flushed));
        // There was no connection to lose.
        assert!(same(hand.end.owner.notified.get(), 0));
        assert!(same(hand.end.counted(Counter::Disconnects), 0));
        Ok(())
    }

    #[test]
    fn posts_that_meet_a_flush_complete_exactly_once() -> Result {
        let threads = ProcessQueue::new(c"ndk_flush")?;
        for round in 0..30 {
            let bench = Bench::with(&Plan::deep(512, 1), &Plan::PLAIN)?;
            let sink = bench.b.buffer(8)?.remote(0);
            let qp = bench.a.qp.clone();
            let count = Arc::new(Atomic::new(0u64), GFP_KERNEL)?;
            let (notified, begun) = (count.clone(), Arc::new(Atomic::new(0u64), GFP_KERNEL)?);
            let at = begun.clone();
            let errand = OtherContext::new(move || {
                for context in 0..400 {
                    at.fetch_add(1, Full);
                    let none = [].into_iter();
                    let posted = qp.post(context, write(sink), Flags::SIGNALED, none);
                    qp.ring_doorbell();
                    notified.fetch_add(u64::from(posted.is_ok()), Full);
                }
            })?;
            assert!(errand.begin(&threads));
            assert!(wait_until(|| begun.load(Acquire) > round * 10));
            bench.a.qp.fail();
            assert!(errand.is_done() && same(count.load(Acquire), 400));
            let mut flushed = false;
            for context in 0..400 {
                let entry = bench.a.sends.next().map(|e| (e.context, e.status));
                flushed |= entry.is_some_and(|(_, status)| status == Status::Flushed);
                let status = if flushed {
                    Status::Flushed
                } else {
                    Status::Success
                };
                assert!(same(entry, Some((context, status))));
            }
            assert!(bench.a.sends.is_silent() && bench.is_down());
        }
        Ok(())
    }

    #[test]
    fn a_transport_that_is_late_finds_a_queue_pair_in_error_closed() -> Result {
        let mut hand = posted(2, 2)?;
        let late = Fake::new()?;
        hand.end.qp.fail();
        assert!(hand.start().is_none() && hand.take() == Taken::Closed);
        assert!(hand.end.attach(late, 0) == Err(EINVAL));
        settle(hand.end.device());
        assert!(same(hand.fake.stops.get(), 1));
        Ok(())
    }
}
