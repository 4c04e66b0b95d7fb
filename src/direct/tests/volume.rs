// SPDX-License-Identifier: GPL-2.0

//! Loads above one run of a transport: long messages, many requests, both directions.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::qp::QueuePair,
    kunit::{
        buffer::MrBuffer,
        harness::{
            End,
            EndAttr,
            QpPair, //
        },
        queues::Queue,
        requests::SEND, //
    },
    rdma::values::{
        qp::QpState,
        status::Status,
        work::SendFlag, //
    }, //
};

/// The queue pair, the completions and the source of one thread that sends to the other end.
struct Stream {
    qp: Arc<QueuePair>,
    sends: Arc<Queue>,
    source: Arc<MrBuffer>,
}

impl Stream {
    fn new(end: &End, seed: u8) -> Result<Self> {
        Ok(Self {
            qp: end.qp.clone(),
            sends: end.sends.clone(),
            source: end.filled(512, seed)?,
        })
    }

    /// Sends `count` messages, each as long as its number says.
    fn run(&self, count: u64) -> bool {
        (0..count).all(|n| {
            // CAST: below 512.
            let list = [self.source.sge(0, (n % 512) as usize)];
            let posted = self
                .qp
                .post(n, SEND, SendFlag::Signaled, list.iter().copied());
            self.qp.ring_doorbell();
            posted.is_ok() && self.sends.next_is(n, Status::Success)
        })
    }
}

/// Two ends that hold `count` receives of 512 bytes each.
fn ready(count: u32) -> Result<(QpPair, [Arc<MrBuffer>; 2])> {
    let attr = EndAttr::deep(512, count);
    let qp_pair = QpPair::with(&attr, &attr)?;
    // CAST: widening.
    let len = count as usize * 512;
    let memory = [qp_pair.a.buffer(len)?, qp_pair.b.buffer(len)?];
    for (end, memory) in [&qp_pair.a, &qp_pair.b].into_iter().zip(&memory) {
        for n in 0..u64::from(count) {
            // CAST: far below the size of an address.
            end.receive(n, &[memory.sge(n as usize * 512, 512)])?;
        }
    }
    Ok((qp_pair, memory))
}

#[kernel::macros::kunit_tests(ndk_direct_tests_volume)]
mod tests {
    use super::*;

    use kernel::sync::atomic::{
        ordering::{
            Acquire,
            Relaxed,
            Release, //
        },
        Atomic,
        AtomicFlag, //
    };

    use crate::{
        engine::counters::Counter,
        kunit::{
            harness::{
                cases,
                flush_work, //
            },
            other_context::OtherContext,
            requests::*, //
        },
        sys::{
            clock::StoppedClock,
            softirq::{
                BhDisabled,
                ProcessQueue, //
            }, //
        }, //
    };

    const LONG: usize = (3 << 20) + 5;

    #[test]
    fn a_long_message_goes_on_in_a_thread_and_arrives_whole() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(LONG, 21)?, qp_pair.b.buffer(LONG + 1)?);
        qp_pair
            .b
            .receive(2, &[sink.sge(0, 1 << 20), sink.sge(1 << 20, (2 << 20) + 6)])?;
        let half = LONG / 2;
        let list = [source.sge(0, half), source.sge(half, LONG - half)];
        let softirqs_off = BhDisabled::enter();
        let posted = qp_pair.a.post(1, SEND, &list);
        let early = (
            qp_pair.a.sends.poll().is_some(),
            qp_pair.b.receives.poll().is_some(),
        );
        drop(softirqs_off);
        posted?;
        // The post came back long before the message was through.
        kunit_assert_eq!(early, (false, false));
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        let entry = qp_pair.b.receives.next();
        kunit_assert_eq!(
            entry.map(|e| (e.context.raw(), e.byte_len as usize)),
            Some((2, LONG))
        );
        assert!(sink.holds(0, LONG, 21, 0));
        assert!(sink.is_blank(LONG, 1));
        assert!(qp_pair.a.counted(Counter::BudgetSpent) >= 3);
        Ok(())
    }

    #[test]
    fn long_writes_and_reads_arrive_whole() -> Result {
        let qp_pair = QpPair::new()?;
        let (here, there) = (qp_pair.a.filled(LONG, 22)?, qp_pair.b.buffer(LONG)?);
        qp_pair.a.post(1, write(there.remote(0)), &[here.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(there.holds(0, LONG, 22, 0));
        there.fill(23);
        qp_pair.a.post(
            2,
            read(there.remote(0)),
            &[here.sge(0, 9), here.sge(9, LONG - 9)],
        )?;
        assert!(qp_pair.a.sends.next_is(2, Status::Success));
        assert!(here.holds(0, LONG, 23, 0));
        Ok(())
    }

    #[test]
    fn messages_of_one_piece_use_the_budget_of_a_run_up() -> Result {
        // Four messages are the bytes of a run, and one is the bytes of a hold.
        const LEN: usize = 256 << 10;
        let qp_pair = QpPair::with(&EndAttr::deep(16, 16), &EndAttr::deep(16, 16))?;
        let (source, sink) = (qp_pair.a.filled(LEN, 30)?, qp_pair.b.buffer(LEN)?);
        for len in cases([LEN - 1, LEN]) {
            for (work, receives) in cases([(SEND, 10), (write(sink.remote(0)), 0)]) {
                sink.clear();
                let before = qp_pair.a.counted(Counter::BudgetSpent);
                for n in cases(0..receives) {
                    qp_pair.b.receive(n, &[sink.whole()])?;
                }
                for n in cases(0..10) {
                    let list = [source.sge(0, len)].into_iter();
                    assert!(qp_pair.a.qp.post(n, work, SendFlag::Signaled, list).is_ok());
                }
                qp_pair.a.qp.ring_doorbell();
                assert!(qp_pair.a.sends.next_are(0..10, Status::Success));
                assert!(qp_pair.b.receives.next_are(0..receives, Status::Success));
                assert!(sink.holds(0, len, 30, 0));
                assert!(sink.is_blank(len, LEN - len));
                assert!(qp_pair.a.counted(Counter::BudgetSpent) >= before + 2);
            }
        }
        Ok(())
    }

    /// Posts `count` writes of 1 MiB from softirq, one by one; returns the number carried out
    /// there.
    fn written_in_softirq(qp_pair: &QpPair, count: u64) -> Result<u64> {
        const LEN: usize = 1 << 20;
        let (source, sink) = (qp_pair.a.filled(LEN, 31)?, qp_pair.b.buffer(LEN)?);
        let (qp, queue) = (qp_pair.a.qp.clone(), qp_pair.a.sends.clone());
        let (work, bytes) = (write(sink.remote(0)), source.clone());
        let done = Arc::new(Atomic::new(u64::MAX), GFP_KERNEL)?;
        let notify = done.clone();
        let other_task = OtherContext::new(move || {
            let posted = (0..count).all(|n| {
                let posted = qp.post(n, work, SendFlag::Signaled, [bytes.whole()].into_iter());
                qp.ring_doorbell();
                posted.is_ok()
            });
            // CAST: widening.
            let early = queue.cq.poll(usize::MAX, |_| ()) as u64;
            notify.store(if posted { early } else { u64::MAX }, Relaxed);
        })?;
        let is_done = other_task.by_softirq(&qp_pair.a.device().host.softirqs);
        let early = done.load(Relaxed);
        let is_so = is_done
            && early <= count
            && qp_pair.a.sends.next_are(early..count, Status::Success)
            && sink.holds(0, LEN, 31, 0);
        is_so.then_some(early).ok_or(EINVAL)
    }

    #[test]
    fn posts_from_softirq_move_a_bounded_number_of_bytes_there() -> Result {
        // The clock is stopped: after a time the bytes are granted anew.
        let _clock = StoppedClock::new();
        let qp_pair = QpPair::with(&EndAttr::deep(32, 1), &EndAttr::PLAIN)?;
        // Each time: the thread that moved the rest has granted the bytes anew.
        for _ in 0..4 {
            let early = written_in_softirq(&qp_pair, 24)?;
            assert!(early >= 1);
            assert!(early <= 4);
        }
        Ok(())
    }

    #[test]
    fn a_long_run_of_requests_goes_on_from_softirq_in_order() -> Result {
        let qp_pair = QpPair::with(&EndAttr::deep(300, 1), &EndAttr::PLAIN)?;
        let (source, sink) = (qp_pair.a.filled(300, 24)?, qp_pair.b.buffer(300)?);
        for n in cases(0..300) {
            let list = [source.sge(n, 1)].into_iter();
            let work = write(sink.remote(n));
            let posted = qp_pair.a.qp.post(n as u64, work, SendFlag::Signaled, list);
            assert!(posted.is_ok());
        }
        let softirqs_off = BhDisabled::enter();
        qp_pair.a.qp.ring_doorbell();
        let first = qp_pair.a.sends.cq.poll(300, |_| ());
        drop(softirqs_off);
        // A caller pays for a bounded number of requests.
        assert!(first > 0);
        assert!(first < 300);
        assert!(qp_pair.a.sends.next_are(first as u64..300, Status::Success));
        assert!(qp_pair.a.sends.stays_empty());
        assert!(sink.holds(0, 300, 24, 0));
        assert!(qp_pair.a.counted(Counter::BudgetSpent) >= 1);
        Ok(())
    }

    #[test]
    fn a_close_in_the_middle_of_a_long_message_flushes_both_sides() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(LONG, 25)?, qp_pair.b.buffer(LONG)?);
        qp_pair.b.receive(2, &[sink.whole()])?;
        let softirqs_off = BhDisabled::enter();
        let posted = qp_pair.a.post(1, SEND, &[source.whole()]);
        qp_pair.b.qp.fail();
        drop(softirqs_off);
        posted?;
        assert!(qp_pair.a.sends.next_is(1, Status::Flushed));
        assert!(qp_pair.b.receives.next_is(2, Status::Flushed));
        assert!(qp_pair.is_down());
        // No byte comes after that.
        sink.clear();
        flush_work(qp_pair.a.device());
        assert!(sink.is_blank(0, LONG));
        Ok(())
    }

    #[test]
    fn two_queue_pairs_post_at_each_other() -> Result {
        const COUNT: u32 = 1500;
        let (qp_pair, memory) = ready(COUNT)?;
        let (there, back) = (Stream::new(&qp_pair.a, 26)?, Stream::new(&qp_pair.b, 27)?);
        let fine = Arc::new(AtomicFlag::new(false), GFP_KERNEL)?;
        let notified = fine.clone();
        let other_task =
            OtherContext::new(move || notified.store(back.run(u64::from(COUNT)), Release))?;
        let threads = ProcessQueue::new(c"ndk_volume")?;
        assert!(other_task.begin(&threads));
        assert!(there.run(u64::from(COUNT)));
        assert!(other_task.is_done());
        assert!(fine.load(Acquire));
        for (end, memory, seed) in [(&qp_pair.b, &memory[1], 26), (&qp_pair.a, &memory[0], 27)] {
            for n in cases(0..COUNT as usize) {
                let entry = end
                    .receives
                    .next()
                    .map(|e| (e.context.raw(), e.byte_len as usize));
                kunit_assert_eq!(entry, Some((n as u64, n % 512)));
                assert!(memory.holds(n * 512, n % 512, seed, 0));
                assert!(memory.is_blank(n * 512 + n % 512, 512 - n % 512));
            }
            kunit_assert_eq!(end.qp.state(), QpState::Rts);
        }
        Ok(())
    }

    #[test]
    fn several_threads_post_to_one_queue_and_nothing_is_lost() -> Result {
        const COUNT: u64 = 400;
        let qp_pair = QpPair::with(&EndAttr::deep(1024, 1), &EndAttr::PLAIN)?;
        let (source, sink) = (qp_pair.a.filled(64, 28)?, qp_pair.b.buffer(64)?);
        let threads = ProcessQueue::new(c"ndk_volume")?;
        let (qp, to) = (qp_pair.a.qp.clone(), sink.remote(0));
        let other_task = OtherContext::new(move || {
            for n in 0..COUNT {
                let list = [source.whole()].into_iter();
                let _ = qp.post(1000 + n, write(to), SendFlag::Signaled, list);
                qp.ring_doorbell();
            }
        })?;
        assert!(other_task.begin(&threads));
        for n in cases(0..COUNT) {
            qp_pair.a.post(n, write(to), &[])?;
        }
        assert!(other_task.is_done());
        let (mut ours, mut theirs) = (0, 1000);
        for _ in 0..COUNT * 2 {
            let Some(entry) = qp_pair.a.sends.next() else {
                break;
            };
            let next = if entry.context.raw() < 1000 {
                &mut ours
            } else {
                &mut theirs
            };
            // Each thread's own requests stay in order.
            kunit_assert_eq!(entry.status, Status::Success);
            kunit_assert_eq!(entry.context.raw(), *next);
            *next += 1;
        }
        kunit_assert_eq!((ours, theirs), (COUNT, 1000 + COUNT));
        assert!(qp_pair.a.sends.stays_empty());
        Ok(())
    }
}
