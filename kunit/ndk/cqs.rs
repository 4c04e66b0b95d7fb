// SPDX-License-Identifier: GPL-2.0

//! Completion queues: depth, affinity, overrun, resizing (CQ-01 to CQ-09).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_cqs)]
mod tests {
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                ordering::Relaxed,
                Atomic, //
            },
            Arc, //
        }, //
    };

    use crate::{
        engine::{
            counters::Counter,
            notifier::Called, //
        },
        kunit::{
            harness::{
                cases,
                wait_until, //
            },
            log::Tally,
            other_context::OtherContext, //
        },
        ndk::{
            abi::{
                adapter::info,
                numbers::notify, //
            },
            adapter::Limits,
            cq::{
                Cq,
                FAILED_AT_ONCE, //
            },
            pd::Pd,
            qp::Qp,
            status::NtStatus,
            tests::{
                blocking_callback::cq_with,
                completion::{
                    create,
                    log_status,
                    request,
                    AutoClose,
                    CallbackValue, //
                },
                host::{
                    pd,
                    qp,
                    HostAttr,
                    Queue,
                    TestHost,
                    SIZES, //
                },
                pair::{
                    connect,
                    Pair,
                    TestSide,
                    READS, //
                }, //
            }, //
        },
        rdma::values::qp::QpState,
        sys::{
            cpu,
            softirq::ProcessQueue, //
        }, //
    };

    /// `NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED`.
    const RESIZE_SUPPORTED: u32 = 0x100;

    const MOST: u32 = Limits::FULL.cq;

    /// Two connected sides; the receives of `b` complete on `queue`.
    struct CqPair {
        queue: Queue,
        // Dropped last.
        pair: Pair,
    }

    impl CqPair {
        fn new(depth: u32) -> Result<Self> {
            let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
            let queue = pair.test_host.queue(depth)?;
            pair.b.qp = qp(&pair.b.pd, &queue, &pair.b.requests, 0xB, SIZES)?;
            pair.connect(READS, READS)?;
            Ok(Self { queue, pair })
        }

        /// Sends messages with these contexts, and waits for the results of each.
        fn messages(&self, contexts: core::ops::Range<u64>) -> Result {
            for context in contexts {
                let before = self.pair.test_host.counted(Counter::Receives);
                self.post(context)?;
                self.pair.a.requests.next()?;
                let notified = || self.pair.test_host.counted(Counter::Receives) > before;
                if !wait_until(notified) {
                    return Err(ETIMEDOUT);
                }
            }
            self.pair.test_host.flush_work();
            Ok(())
        }

        /// Sends one message.
        fn post(&self, context: u64) -> Result {
            self.pair.b.receive(context, &[])?;
            self.pair.a.send(context, &[], 0)
        }

        /// Takes all results; returns true if they are those of `contexts` and no others.
        fn holds(&self, contexts: core::ops::Range<u64>) -> bool {
            let mut next = contexts.start;
            while let Some(got) = self.queue.poll() {
                if got.request_context != next || got.status != NtStatus::SUCCESS {
                    kunit_note!("got {:?}, not {}", got, next);
                    return false;
                }
                next += 1;
            }
            next == contexts.end
        }

        fn resize(&self, depth: u32) -> Result<NtStatus> {
            request(|done| self.queue.cq.resize(depth, done))
        }

        /// Sends a message; returns true if the queue overruns.
        fn overruns(&self) -> Result<bool> {
            let before = self.pair.test_host.counted(Counter::CqOverflows);
            self.post(99)?;
            Ok(wait_until(|| {
                self.pair.test_host.counted(Counter::CqOverflows) == before + 1
            }))
        }
    }

    #[test]
    fn ndk_cq_01_depth_is_from_one_to_the_greatest() -> Result {
        let test_host = TestHost::new()?;
        for (depth, expected) in cases([
            (0, Some(NtStatus::INVALID_PARAMETER)),
            (1, None),
            (MOST, None),
            (MOST + 1, Some(NtStatus::INVALID_PARAMETER)),
            (u32::MAX, Some(NtStatus::INVALID_PARAMETER)),
        ]) {
            let user = KBox::new(|_| (), GFP_KERNEL)?;
            let made = create(|done| test_host.adapter.create_cq(depth, None, user, done))?;
            kunit_assert_eq!(made.err(), expected);
        }
        Ok(())
    }

    #[test]
    fn ndk_cq_02_calls_come_where_they_are_liked_or_anywhere() -> Result {
        let test_host = TestHost::new()?;
        let liked = [
            None,
            Some(0),
            Some(1),
            Some(cpu::count_ids()),
            Some(u32::MAX),
        ];
        for wanted in cases(liked) {
            let calls = Arc::new(Tally::new(), GFP_KERNEL)?;
            let place = Arc::new(Atomic::new(u32::MAX), GFP_KERNEL)?;
            let (tally, at) = (calls.clone(), place.clone());
            let cq = cq_with(&test_host.adapter, (8, wanted), move |_| {
                at.store(cpu::current(), Relaxed);
                tally.hit();
            })?;
            let (_domain, mut pair) = qp_of_domain(&test_host, &cq)?;
            pair.receive(1, [].into_iter()).map_err(log_status)?;
            cq.arm(notify::ANY);
            assert!(pair.close_and_wait()?);
            assert!(wait_until(|| calls.get() == 1));
            let there = place.load(Relaxed);
            assert!(wanted.is_none_or(|cpu| !cpu::is_online(cpu) || cpu == there));
            kunit_assert_eq!(cq.results(9, |_| ()), 1);
        }
        Ok(())
    }

    /// A queue pair on one completion queue, in a new domain.
    fn qp_of_domain(
        test_host: &TestHost,
        cq: &AutoClose<Cq>,
    ) -> Result<(AutoClose<Pd>, AutoClose<Qp>)> {
        let domain = crate::ndk::tests::host::pd(&test_host.adapter)?;
        let cqs = (&**cq, &**cq);
        let pair = crate::ndk::tests::completion::made(|done| {
            domain.create_qp(cqs, None, 0, SIZES, done)
        })?;
        Ok((domain, pair))
    }

    /// Waits until a queue pair refuses requests; false after a timeout.
    fn is_dead(test_side: &TestSide) -> bool {
        let send = || test_side.qp.send(50, [].into_iter(), 0);
        wait_until(|| send() == Err(NtStatus::CONNECTION_INVALID))
    }

    /// One pair that receives on a queue of this depth, and a second pair that sends on that queue.
    fn two_users(depth: u32) -> Result<(CqPair, TestSide, TestSide)> {
        let cq_pair = CqPair::new(depth)?;
        let adapter = &cq_pair.pair.test_host.adapter;
        let mut sender = TestSide::new(adapter, 3, SIZES)?;
        let mut peer = TestSide::new(adapter, 4, SIZES)?;
        sender.qp = qp(&sender.pd, &sender.receives, &cq_pair.queue, 3, SIZES)?;
        let (c, d) = connect(
            adapter,
            &cq_pair.pair.open_listener,
            (&sender, READS),
            (&peer, READS),
        )?;
        (sender.connector, peer.connector) = (Some(c), Some(d));
        Ok((cq_pair, sender, peer))
    }

    #[test]
    fn ndk_cq_03_an_overrun_breaks_the_queue_and_all_its_queue_pairs() -> Result {
        let (cq_pair, sender, peer) = two_users(2)?;
        // Two receives for the messages, and one of the other user to be cancelled.
        cq_pair.pair.b.receive(1, &[])?;
        cq_pair.pair.b.receive(2, &[])?;
        sender.receive(7, &[])?;
        cq_pair.queue.cq.arm(notify::ERRORS);
        cq_pair.pair.a.send(1, &[], 0)?;
        cq_pair.pair.a.send(2, &[], 0)?;
        assert!(cq_pair.pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(cq_pair.pair.a.requests.next_is(2, NtStatus::SUCCESS));
        // No failure yet: both results fit.
        assert!(cq_pair.queue.has_called(0));
        cq_pair.pair.b.receive(4, &[])?;
        assert!(cq_pair.overruns()?);
        assert!(wait_until(|| cq_pair.queue.calls.get() == 1));
        kunit_assert_eq!(
            cq_pair.queue.status.load(Relaxed),
            NtStatus::BUFFER_OVERFLOW.raw()
        );
        assert!(is_dead(&cq_pair.pair.b));
        assert!(is_dead(&sender));
        // The other completion queue of the sender reports the cancelled receive.
        assert!(sender.receives.next_is(7, NtStatus::CANCELLED));
        assert!(wait_until(|| peer.disconnects.get() == 1));
        cq_pair.pair.test_host.flush_work();
        // The results from before the failure, and no later ones.
        assert!(cq_pair.holds(1..3));
        assert!(cq_pair.queue.stays_empty());
        assert!(cq_pair.queue.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_cq_03_a_fatal_error_breaks_the_queue_and_all_its_queue_pairs() -> Result {
        let (cq_pair, sender, peer) = two_users(8)?;
        cq_pair.messages(0..3)?;
        cq_pair.pair.b.receive(9, &[])?;
        cq_pair.queue.cq.arm(notify::ERRORS);
        assert!(cq_pair.queue.has_called(0));
        cq_pair.queue.cq.engine().break_down();
        assert!(wait_until(|| cq_pair.queue.calls.get() == 1));
        kunit_assert_eq!(
            cq_pair.queue.status.load(Relaxed),
            NtStatus::INTERNAL_ERROR.raw()
        );
        assert!(is_dead(&cq_pair.pair.b));
        assert!(is_dead(&sender));
        assert!(wait_until(|| peer.disconnects.get() == 1));
        cq_pair.pair.test_host.flush_work();
        // The cancelled receive is not reported.
        assert!(cq_pair.holds(0..3));
        assert!(cq_pair.queue.stays_empty());
        assert!(cq_pair.queue.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_cq_03_many_queue_pairs_break_in_several_softirqs_and_before_the_call() -> Result {
        const MANY: usize = 2 * FAILED_AT_ONCE + 1;
        let test_host = TestHost::new()?;
        let pd = pd(&test_host.adapter)?;
        let (queue, requests) = (test_host.queue(8)?, test_host.queue(8)?);
        let mut qps = KVec::new();
        for at in cases(0..MANY) {
            qps.push(qp(&pd, &queue, &requests, at, SIZES)?, GFP_KERNEL)?;
        }
        // By hand: at most `FAILED_AT_ONCE` in each call, each queue pair once in a round.
        let count = Atomic::new(0usize);
        for most in cases([FAILED_AT_ONCE, 2 * FAILED_AT_ONCE]) {
            let called = requests.cq.users.fail(|_| count.add(1, Relaxed));
            kunit_assert_eq!(called, Called::Partial);
            kunit_assert_eq!(count.load(Relaxed), most);
        }
        let called = requests.cq.users.fail(|_| count.add(1, Relaxed));
        kunit_assert_eq!(called, Called::Done);
        kunit_assert_eq!(count.load(Relaxed), MANY);
        // All queue pairs have failed when the consumer is called.
        queue.cq.arm(notify::ERRORS);
        queue.cq.engine().break_down();
        assert!(wait_until(|| queue.calls.get() == 1));
        assert!(qps.iter().all(|qp| qp.engine().state() == QpState::Err));
        Ok(())
    }

    #[test]
    fn ndk_cq_04_what_was_there_stays_and_a_later_arm_notifies_of_the_failure() -> Result {
        for kind in cases([notify::ANY, notify::SOLICITED, notify::ERRORS]) {
            let cq_pair = CqPair::new(2)?;
            cq_pair.messages(1..3)?;
            assert!(cq_pair.overruns()?);
            // The queue is not armed.
            assert!(cq_pair.queue.has_called(0));
            cq_pair.queue.cq.arm(kind);
            assert!(wait_until(|| cq_pair.queue.calls.get() == 1));
            kunit_assert_eq!(
                cq_pair.queue.status.load(Relaxed),
                NtStatus::BUFFER_OVERFLOW.raw()
            );
            assert!(cq_pair.holds(1..3));
            // One call for one arm, here too.
            assert!(cq_pair.queue.has_called(1));
        }
        Ok(())
    }

    #[test]
    fn ndk_cq_05_overrun_is_judged_by_the_depth_asked_for() -> Result {
        for depth in cases([1, 3, 5, 7]) {
            let cq_pair = CqPair::new(depth)?;
            // Exactly `depth` results fit, and as many again once those are taken.
            for _ in 0..2 {
                cq_pair.messages(0..u64::from(depth))?;
                kunit_assert_eq!(cq_pair.pair.test_host.counted(Counter::CqOverflows), 0);
                assert!(cq_pair.holds(0..u64::from(depth)));
            }
            cq_pair.messages(0..u64::from(depth))?;
            assert!(cq_pair.overruns()?);
        }
        Ok(())
    }

    #[test]
    fn ndk_cq_06_a_queue_grows_and_shrinks_within_its_limits() -> Result {
        let cq_pair = CqPair::new(4)?;
        kunit_assert_eq!(cq_pair.resize(9)?, NtStatus::SUCCESS);
        cq_pair.messages(0..9)?;
        assert!(cq_pair.holds(0..9));
        for depth in cases([0, MOST + 1, u32::MAX]) {
            kunit_assert_eq!(cq_pair.resize(depth)?, NtStatus::INVALID_PARAMETER);
        }
        // The refused depths have no effect.
        cq_pair.messages(0..9)?;
        assert!(cq_pair.holds(0..9));
        kunit_assert_eq!(cq_pair.resize(MOST)?, NtStatus::SUCCESS);
        kunit_assert_eq!(cq_pair.resize(2)?, NtStatus::SUCCESS);
        cq_pair.messages(0..2)?;
        assert!(cq_pair.overruns()?);
        assert!(cq_pair.holds(0..2));
        Ok(())
    }

    #[test]
    fn ndk_cq_07_shrinking_below_what_is_there_changes_nothing() -> Result {
        let cq_pair = CqPair::new(8)?;
        cq_pair.messages(0..4)?;
        for depth in cases([1, 3]) {
            kunit_assert_eq!(cq_pair.resize(depth)?, NtStatus::BUFFER_OVERFLOW);
        }
        // The room is as before, and all results are there.
        cq_pair.messages(4..8)?;
        assert!(cq_pair.holds(0..8));
        cq_pair.messages(0..4)?;
        kunit_assert_eq!(cq_pair.resize(4)?, NtStatus::SUCCESS);
        assert!(cq_pair.overruns()?);
        assert!(cq_pair.holds(0..4));
        Ok(())
    }

    #[test]
    fn ndk_cq_08_resizing_loses_and_reorders_nothing() -> Result {
        let cq_pair = CqPair::new(8)?;
        cq_pair.messages(0..5)?;
        for depth in cases([64, 5, 6, 33]) {
            kunit_assert_eq!(cq_pair.resize(depth)?, NtStatus::SUCCESS);
        }
        cq_pair.messages(5..12)?;
        assert!(cq_pair.holds(0..12));
        Ok(())
    }

    #[test]
    fn ndk_cq_08_resizing_needs_no_quiet_traffic() -> Result {
        let cq_pair = CqPair::new(16)?;
        let cq = (*cq_pair.queue.cq).clone();
        let (stop, good) = (Arc::new(Tally::new(), GFP_KERNEL)?, CallbackValue::new()?);
        let (end, slot) = (stop.clone(), good.clone());
        let other_task = OtherContext::new(move || {
            let mut fine = true;
            let mut depth = 16;
            // At least 20 turns, however quick the traffic is.
            let mut turns = 0;
            while turns < 20 || end.get() == 0 {
                depth = 16 + (depth * 7 + 3) % 41;
                let done = request(|done| cq.resize(depth, done));
                fine &= done == Ok(NtStatus::SUCCESS);
                turns += 1;
            }
            slot.put(fine);
        })?;
        let threads = ProcessQueue::new(c"ndk_test_resizer")?;
        assert!(other_task.begin(&threads));
        let mut got = 0;
        let mut fine = true;
        for sent in 0..400 {
            fine &= cq_pair.post(sent).is_ok() && cq_pair.pair.a.requests.next().is_ok();
            if sent - got >= 8 {
                while let Some(result) = cq_pair.queue.poll() {
                    fine &= result.request_context == got && result.status == NtStatus::SUCCESS;
                    got += 1;
                }
            }
        }
        stop.hit();
        let resized = good.wait();
        assert!(other_task.is_done());
        assert!(fine);
        kunit_assert_eq!(resized, Some(true));
        cq_pair.pair.test_host.flush_work();
        assert!(cq_pair.holds(got..400));
        kunit_assert_eq!(cq_pair.pair.test_host.counted(Counter::CqOverflows), 0);
        Ok(())
    }

    #[test]
    fn ndk_cq_08_arm_and_moderation_survive_resizing() -> Result {
        let cq_pair = CqPair::new(16)?;
        cq_pair.queue.cq.arm(notify::ANY);
        kunit_assert_eq!(cq_pair.resize(33)?, NtStatus::SUCCESS);
        assert!(cq_pair.queue.has_called(0));
        cq_pair.messages(0..1)?;
        assert!(wait_until(|| cq_pair.queue.calls.get() == 1));
        assert!(cq_pair.holds(0..1));
        // The arm is still for solicited receives.
        cq_pair.queue.cq.arm(notify::SOLICITED);
        kunit_assert_eq!(cq_pair.resize(17)?, NtStatus::SUCCESS);
        cq_pair.messages(1..2)?;
        assert!(cq_pair.queue.has_called(1));
        assert!(cq_pair.holds(1..2));
        // No interval, three completions.
        kunit_assert_eq!(cq_pair.queue.cq.moderate(u32::MAX, 3), Ok(()));
        kunit_assert_eq!(cq_pair.resize(40)?, NtStatus::SUCCESS);
        cq_pair.queue.cq.arm(notify::ANY);
        cq_pair.messages(2..4)?;
        assert!(cq_pair.queue.has_called(1));
        // Nor does a resize make the held call.
        kunit_assert_eq!(cq_pair.resize(20)?, NtStatus::SUCCESS);
        assert!(cq_pair.queue.has_called(1));
        cq_pair.messages(4..5)?;
        assert!(wait_until(|| cq_pair.queue.calls.get() == 2));
        assert!(cq_pair.holds(2..5));
        Ok(())
    }

    #[test]
    fn ndk_cq_09_the_flag_is_reported_and_so_resizing_is_supported() -> Result {
        assert!(info(&Limits::FULL).adapter_flags & RESIZE_SUPPORTED != 0);
        let test_host = TestHost::new()?;
        let queue = test_host.queue(8)?;
        for (depth, answer) in cases([
            (4, NtStatus::SUCCESS),
            (16, NtStatus::SUCCESS),
            (0, NtStatus::INVALID_PARAMETER),
            (MOST + 1, NtStatus::INVALID_PARAMETER),
        ]) {
            kunit_assert_eq!(request(|done| queue.cq.resize(depth, done))?, answer);
        }
        Ok(())
    }
}
