// SPDX-License-Identifier: GPL-2.0

//! The two faces compared: batches, reentrance, completion queues, shared queues (FACE-03, FACE-05,
//! FACE-07, FACE-08, FACE-14).

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

use crate::{
    engine::cq::{
        Arm,
        MissedEvents, //
    },
    kunit::{
        harness::QpPair,
        log::Tally,
        race::race_harness::{
            two_cpus,
            wait_for,
            Threads, //
        },
        requests::write, //
    },
    rdma::values::work::SendFlag, //
};

/// The number of requests that two processors post to one queue.
const REQUESTS: u32 = 2000;

/// The most outstanding requests of one queue; its completion queue has room for them.
const OUT: u32 = 48;

/// Posts to one queue pair, arms and polls its completion queue, all at once from two processors,
/// as verbs consumers may. Returns the numbers of requests, of completions, and of errors: refused
/// posts, completions that were late, failed, or not the first of their request.
fn two_post_to_one_queue() -> Result<(u32, u32, u32)> {
    let qp_pair = QpPair::new()?;
    let (from, to) = (qp_pair.a.filled(64, 1)?, qp_pair.b.buffer(64)?);
    let mut marks = KVec::new();
    for _ in 0..REQUESTS + 2 {
        marks.push(Atomic::new(0u32), GFP_KERNEL)?;
    }
    let marks = Arc::new(marks, GFP_KERNEL)?;
    let new = || Arc::new(Tally::new(), GFP_KERNEL);
    let (next, accepted, seen, wrong) = (new()?, new()?, new()?, new()?);
    let mut threads = Threads::new()?;
    for cpu in two_cpus() {
        let (qp, cq) = (qp_pair.a.qp.clone(), qp_pair.a.sends.cq.clone());
        let marks = marks.clone();
        let (next, accepted) = (next.clone(), accepted.clone());
        let (seen, wrong) = (seen.clone(), wrong.clone());
        let (sge, work) = (from.whole(), write(to.remote(0)));
        threads.on(cpu, move || {
            cq.arm(Arm::Any, MissedEvents::Ignore);
            for _ in 0..8 {
                if accepted.get() >= seen.get() + OUT || next.get() >= REQUESTS {
                    break;
                }
                let context = u64::from(next.hit());
                // Before the post: the completion may come first.
                accepted.hit();
                if qp
                    .post(context, work, SendFlag::Signaled, [sge].into_iter())
                    .is_err()
                {
                    wrong.hit();
                }
                qp.ring_doorbell();
            }
            cq.poll(16, |entry| {
                // CAST: what was posted has an index.
                let mark = marks.get(entry.context.raw() as usize);
                let first = mark.is_some_and(|m| m.fetch_add(1, Relaxed) == 0);
                if !first || !entry.status.is_success() {
                    wrong.hit();
                }
                seen.hit();
            });
        })?;
    }
    let ended = wait_for(|| next.get() >= REQUESTS && seen.get() >= accepted.get());
    threads.dismiss();
    let silent = qp_pair.a.sends.stays_empty();
    ended?;
    if !silent {
        wrong.hit();
    }
    Ok((accepted.get(), seen.get(), wrong.get()))
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_face_queues)]
mod tests {
    use super::*;

    use crate::{
        engine::counters::Counter,
        kunit::{
            fake::ManualQp,
            harness::{
                cases,
                End,
                EndAttr, //
            },
            log::Tally,
            requests::SEND, //
        },
        ndk::{
            abi::numbers::{
                notify,
                op_flags::DEFER, //
            },
            srq::SrqSizes,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                completion::{
                    made,
                    request,
                    AutoClose, //
                },
                host::{
                    pd,
                    HostAttr,
                    TestHost,
                    SIZES, //
                },
                pair::{
                    Pair,
                    READS, //
                }, //
            }, //
        },
        rdma::values::status::Status, //
    };

    #[test]
    fn ndk_face_03_a_verbs_list_is_one_batch_and_ndk_batches_by_deferring_only() -> Result {
        // The verbs face posts every request of a list, then rings one doorbell.
        let manual = ManualQp::new(&EndAttr::PLAIN)?;
        let before = manual.fake.doorbells.get();
        for context in cases(0..4) {
            let posted = manual
                .end
                .qp
                .post(context, SEND, SendFlag::Signaled, [].into_iter());
            kunit_assert_eq!(posted, Ok(()));
        }
        kunit_assert_eq!(manual.fake.doorbells.get(), before);
        manual.end.qp.ring_doorbell();
        kunit_assert_eq!(manual.fake.doorbells.get(), before + 1);
        // A call of the NDK face is one request, and one pass unless it is deferred.
        let pair = Pair::new()?;
        for context in cases(0..8) {
            pair.b.receive(context, &[])?;
        }
        let passes = pair.test_host.counted(Counter::Passes);
        for context in cases(0..4) {
            pair.a.send(context, &[], 0)?;
        }
        kunit_assert_eq!(pair.test_host.counted(Counter::Passes), passes + 4);
        for context in cases(4..8) {
            pair.a
                .send(context, &[], if context < 7 { DEFER } else { 0 })?;
        }
        kunit_assert_eq!(pair.test_host.counted(Counter::Passes), passes + 5);
        for context in cases(0..8) {
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_face_05_one_queue_may_be_posted_to_polled_and_armed_from_two_processors() -> Result {
        let (accepted, seen, wrong) = two_post_to_one_queue()?;
        assert!(accepted >= REQUESTS);
        kunit_assert_eq!(seen, accepted);
        kunit_assert_eq!(wrong, 0);
        Ok(())
    }

    /// Overflows a completion queue of one entry with two cancelled requests.
    fn overflow(end: &End) -> Result {
        end.post(1, SEND, &[])?;
        end.post(2, SEND, &[])?;
        end.qp.fail();
        Ok(())
    }

    #[test]
    fn ndk_face_07_verbs_hears_of_a_failed_queue_at_once_and_ndk_when_armed() -> Result {
        let mut attr = EndAttr::PLAIN;
        attr.send_entries = 1;
        let qp_pair = QpPair::with(&attr, &EndAttr::PLAIN)?;
        overflow(&qp_pair.a)?;
        assert!(qp_pair.a.sends.has_called(0));
        kunit_assert_eq!(qp_pair.a.sends.log.failures.get(), 1);
        // The same transition on the NDK face: no call before the arm, then one.
        let test_host = TestHost::new()?;
        let (receives, requests) = (test_host.queue(1)?, test_host.queue(8)?);
        let pd = pd(&test_host.adapter)?;
        let qp = crate::ndk::tests::host::qp(&pd, &receives, &requests, 1, SIZES)?;
        for context in cases(1..3) {
            kunit_assert_eq!(qp.receive(context, [].into_iter()), Ok(()));
        }
        qp.flush();
        test_host.flush_work();
        assert!(receives.has_called(0));
        receives.cq.arm(notify::ERRORS);
        assert!(receives.has_called(1));
        let notified = receives.status.load(Relaxed);
        kunit_assert_eq!(notified, NtStatus::BUFFER_OVERFLOW.raw());
        kunit_assert_eq!(test_host.counted(Counter::CqOverflows), 1);
        Ok(())
    }

    #[test]
    fn ndk_face_07_ndk_is_reported_while_armed() -> Result {
        let test_host = TestHost::new()?;
        let (receives, requests) = (test_host.queue(1)?, test_host.queue(8)?);
        let pd = pd(&test_host.adapter)?;
        let qp = crate::ndk::tests::host::qp(&pd, &receives, &requests, 1, SIZES)?;
        receives.cq.arm(notify::ERRORS);
        for context in cases(1..3) {
            kunit_assert_eq!(qp.receive(context, [].into_iter()), Ok(()));
        }
        qp.flush();
        test_host.flush_work();
        assert!(receives.has_called(1));
        kunit_assert_eq!(
            receives.status.load(Relaxed),
            NtStatus::BUFFER_OVERFLOW.raw()
        );
        Ok(())
    }

    #[test]
    fn ndk_face_08_an_arm_that_finds_entries_calls_in_ndk_and_only_says_so_in_verbs() -> Result {
        let qp_pair = QpPair::new()?;
        for context in cases(0..2) {
            qp_pair.b.receive(context, &[])?;
        }
        assert!(!qp_pair.b.receives.cq.arm(Arm::Any, MissedEvents::Ignore));
        qp_pair.a.post(1, SEND, &[])?;
        assert!(qp_pair.b.receives.has_called(1));
        // The entry is still there: the arm returns that, without a call.
        assert!(qp_pair.b.receives.cq.arm(Arm::Any, MissedEvents::Ignore));
        assert!(qp_pair.b.receives.has_called(1));
        let pair = Pair::new()?;
        pair.b.receive(1, &[])?;
        pair.a.send(2, &[], 0)?;
        assert!(pair.b.receives.has_called(0));
        pair.b.receives.cq.arm(notify::ANY);
        assert!(pair.b.receives.has_called(1));
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_face_14_threshold_zero_disarms_in_verbs() -> Result {
        let qp_pair = QpPair::with(&EndAttr::PLAIN, &EndAttr::shared(8))?;
        let shared = qp_pair.b.shared.as_ref().ok_or(EINVAL)?;
        for context in cases(0..3) {
            qp_pair.b.receive(context, &[])?;
        }
        shared.srq.set_limit(2)?;
        shared.srq.set_limit(0)?;
        kunit_assert_eq!(shared.srq.limit(), 0);
        for context in cases(0..3) {
            qp_pair.a.post(context, SEND, &[])?;
            assert!(qp_pair.a.sends.next_is(context, Status::Success));
        }
        crate::kunit::harness::flush_work(qp_pair.b.device());
        kunit_assert_eq!(shared.log.limits.get(), 0);
        Ok(())
    }

    #[test]
    fn ndk_face_14_threshold_zero_keeps_threshold_and_arming_in_ndk() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let calls = Arc::new(Tally::new(), GFP_KERNEL)?;
        let count = calls.clone();
        let user = KBox::new(
            move |_: NtStatus| {
                count.hit();
            },
            GFP_KERNEL,
        )?;
        let sizes = SrqSizes {
            depth: 8,
            sges: 1,
            threshold: 0,
        };
        let pd = &pair.b.pd;
        let srq = made(|done| pd.create_srq(sizes, Some(user), done))?;
        let cqs = (&*pair.b.receives.cq, &*pair.b.requests.cq);
        let qp = made(|done| pd.create_qp(cqs, Some(&srq), 0xB, SIZES, done))?;
        let old: AutoClose<_> = core::mem::replace(&mut pair.b.qp, qp);
        drop(old);
        pair.connect(READS, READS)?;
        for context in cases(0..3) {
            kunit_assert_eq!(srq.receive(context, [].into_iter()), Ok(()));
        }
        kunit_assert_eq!(request(|done| srq.modify(0, 2, done))?, NtStatus::SUCCESS);
        assert!(matches!(
            srq.modify(
                0,
                0,
                crate::ndk::call::done(GFP_KERNEL, |_| ()).map_err(|_| ENOMEM)?
            ),
            Ok(Progress::Done)
        ));
        pair.test_host.flush_work();
        kunit_assert_eq!(calls.get(), 0);
        for (context, notified) in cases([(1, 0), (2, 1), (3, 1)]) {
            pair.a.send(context, &[], 0)?;
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            pair.test_host.flush_work();
            kunit_assert_eq!(calls.get(), notified);
        }
        Ok(())
    }
}
