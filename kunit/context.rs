// SPDX-License-Identifier: GPL-2.0

//! The fast calls from every context: softirq, timers, interrupts off, calls of a queue.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    buffer::MrBuffer,
    harness::{
        End,
        QpPair, //
    },
    queues::Queue,
    requests::{
        write,
        SEND, //
    }, //
};
use crate::{
    engine::{
        cq::{
            Arm,
            MissedEvents, //
        },
        qp::QueuePair, //
    },
    rdma::values::{
        status::Status,
        work::{
            SendFlag,
            SendFlags, //
        }, //
    },
    sys::sge::test_posted, //
};

/// The tools of one round of fast calls, for use in any context.
struct Tools {
    near: Arc<QueuePair>,
    far: Arc<QueuePair>,
    sends: Arc<Queue>,
    source: Arc<MrBuffer>,
    sink: Arc<MrBuffer>,
    landing: Arc<MrBuffer>,
}

impl Tools {
    fn new(qp_pair: &QpPair, seed: u8) -> Result<Arc<Self>> {
        let tools = Self {
            near: qp_pair.a.qp.clone(),
            far: qp_pair.b.qp.clone(),
            sends: qp_pair.a.sends.clone(),
            source: qp_pair.a.filled(64, seed)?,
            sink: qp_pair.b.buffer(64)?,
            landing: qp_pair.b.buffer(64)?,
        };
        Ok(Arc::new(tools, GFP_KERNEL)?)
    }

    /// Arms, posts a receive, a write and a send, rings, and polls once.
    fn round(&self) -> bool {
        self.sends.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
        let into = [self.sink.whole()].into_iter();
        let from = || [self.source.whole()].into_iter();
        let received = self.far.post_receive(test_posted(1, into));
        let work = write(self.landing.remote(0));
        let written = self.near.post(2, work, SendFlags::empty(), from());
        let sent = self.near.post(3, SEND, SendFlag::Signaled, from());
        self.near.ring_doorbell();
        // Takes no entry: the entries are left to the test.
        self.sends.cq.poll(0, |_| ());
        received.is_ok() && written.is_ok() && sent.is_ok()
    }

    /// Returns true if the round of that seed has ended.
    fn is_done(&self, qp_pair: &QpPair, seed: u8) -> bool {
        qp_pair.a.sends.next_is(3, Status::Success)
            && qp_pair.b.receives.next_is(1, Status::Success)
            && self.sink.holds(0, 64, seed, 0)
            && self.landing.holds(0, 64, seed, 0)
    }
}

/// Answers each message that `end` receives from inside the call of its queue, `count` times.
fn answer(end: &End, count: u64) -> Result {
    let (qp, receives) = (end.qp.clone(), end.receives.cq.clone());
    let hook = Arc::new(
        move |_: bool| {
            receives.poll(usize::MAX, |_| ());
            receives.arm(Arm::Any, MissedEvents::SatisfyArm);
            let none = || [].into_iter();
            let _ = qp.post_receive(test_posted(1, none()));
            let _ = qp.post(2, SEND, SendFlags::empty(), none());
            qp.ring_doorbell();
        },
        GFP_KERNEL,
    )?;
    for _ in 0..count.min(8) {
        end.receive(1, &[])?;
    }
    end.receives.log.set_hook(Some(hook));
    end.receives.cq.arm(Arm::Any, MissedEvents::SatisfyArm);
    Ok(())
}

#[kernel::macros::kunit_tests(ndk_kunit_context)]
mod tests {
    use super::*;

    use kernel::{
        interrupt::local_interrupt_disable,
        sync::atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            AtomicFlag, //
        }, //
    };

    use crate::{
        kunit::{
            harness::{
                cases,
                wait_until, //
            },
            other_context::OtherContext, //
        },
        rdma::values::qp::QpState,
        sys::softirq::BhDisabled, //
    };

    /// A task that makes one round, and a flag that the round sets if it went well.
    fn other_task(tools: &Arc<Tools>) -> Result<(Arc<OtherContext>, Arc<AtomicFlag>)> {
        let fine = Arc::new(AtomicFlag::new(false), GFP_KERNEL)?;
        let (tools, notify) = (tools.clone(), fine.clone());
        let other_task = OtherContext::new(move || notify.store(tools.round(), Release))?;
        Ok((other_task, fine))
    }

    #[test]
    fn everything_fast_works_in_a_timer() -> Result {
        let qp_pair = QpPair::new()?;
        let tools = Tools::new(&qp_pair, 91)?;
        for calls in cases(1..=3) {
            let (other_task, fine) = other_task(&tools)?;
            assert!(other_task.by_timer());
            assert!(fine.load(Acquire));
            assert!(tools.is_done(&qp_pair, 91));
            assert!(wait_until(|| qp_pair.a.sends.log.calls.get() == calls));
        }
        Ok(())
    }

    #[test]
    fn everything_fast_works_in_softirq_work() -> Result {
        let qp_pair = QpPair::new()?;
        let tools = Tools::new(&qp_pair, 92)?;
        for calls in cases(1..=3) {
            let (other_task, fine) = other_task(&tools)?;
            assert!(other_task.by_softirq(&qp_pair.a.device().host.softirqs));
            assert!(fine.load(Acquire));
            assert!(tools.is_done(&qp_pair, 92));
            assert!(wait_until(|| qp_pair.a.sends.log.calls.get() == calls));
        }
        Ok(())
    }

    #[test]
    fn everything_fast_works_with_softirqs_off() -> Result {
        let qp_pair = QpPair::new()?;
        let tools = Tools::new(&qp_pair, 93)?;
        let softirqs_off = BhDisabled::enter();
        let fine = tools.round();
        drop(softirqs_off);
        assert!(fine);
        assert!(tools.is_done(&qp_pair, 93));
        assert!(wait_until(|| qp_pair.a.sends.log.calls.get() == 1));
        Ok(())
    }

    #[test]
    fn with_interrupts_off_requests_are_taken_and_carried_out_later() -> Result {
        let qp_pair = QpPair::new()?;
        let tools = Tools::new(&qp_pair, 94)?;
        for calls in cases(1..=3) {
            tools.sink.clear();
            let interrupts_off = local_interrupt_disable();
            let fine = tools.round();
            let early = qp_pair.a.sends.cq.poll(1, |_| ());
            drop(interrupts_off);
            // Copying would keep interrupts off for too long.
            assert!(fine);
            kunit_assert_eq!(early, 0);
            assert!(tools.is_done(&qp_pair, 94));
            assert!(wait_until(|| qp_pair.a.sends.log.calls.get() == calls));
            kunit_assert_eq!(qp_pair.a.sends.log.misplaced.get(), 0);
        }
        Ok(())
    }

    #[test]
    fn a_queue_pair_may_be_ended_with_interrupts_off() -> Result {
        let qp_pair = QpPair::new()?;
        for context in cases(0..10) {
            qp_pair.b.receive(context, &[])?;
        }
        qp_pair.b.post(1, SEND, &[])?;
        let interrupts_off = local_interrupt_disable();
        qp_pair.a.qp.fail();
        drop(interrupts_off);
        assert!(qp_pair.is_down());
        assert!(qp_pair.b.receives.next_are(0..10, Status::Flushed));
        assert!(qp_pair.b.sends.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn two_ends_answer_each_other_from_inside_of_calls() -> Result {
        const ROUNDS: u32 = 500;
        let qp_pair = QpPair::new()?;
        answer(&qp_pair.a, 8)?;
        answer(&qp_pair.b, 8)?;
        qp_pair.a.post_with(1, SEND, SendFlags::empty(), &[])?;
        let calls = |end: &End| end.receives.log.calls.get();
        assert!(wait_until(
            || calls(&qp_pair.a) >= ROUNDS && calls(&qp_pair.b) >= ROUNDS
        ));
        kunit_assert_eq!(qp_pair.a.qp.state(), QpState::Rts);
        for end in [&qp_pair.a, &qp_pair.b] {
            end.receives.log.set_hook(None);
            kunit_assert_eq!(end.receives.log.overlaps.get(), 0);
            kunit_assert_eq!(end.receives.log.misplaced.get(), 0);
        }
        Ok(())
    }

    #[test]
    fn a_receive_is_posted_by_a_timer_to_a_message_that_waits() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.a.post(1, SEND, &[])?;
        assert!(qp_pair.a.sends.stays_empty());
        let qp = qp_pair.b.qp.clone();
        let other_task = OtherContext::new(move || {
            let _ = qp.post_receive(test_posted(2, [].into_iter()));
        })?;
        assert!(other_task.by_timer());
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        Ok(())
    }
}
