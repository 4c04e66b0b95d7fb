// SPDX-License-Identifier: GPL-2.0

//! Completions and results (COMP-01, COMP-03 to COMP-07).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_results)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        kunit::{
            harness::{
                cases,
                wait_until,
                Deadline, //
            },
            other_context::OtherContext, //
        },
        ndk::{
            abi::numbers::{
                mr_flags,
                notify,
                op_flags,
                operation, //
            },
            status::NtStatus,
            tests::{
                completion::made,
                host::{
                    qp,
                    HostAttr,
                    Queue,
                    SIZES, //
                },
                memory::PageBuffer,
                pair::{
                    connect,
                    Pair,
                    TestSide,
                    READS, //
                }, //
            }, //
        },
        sys::softirq::ProcessQueue, //
    };

    const REMOTE_RESOURCES: u32 = 0xC000_013D;

    /// Takes up to `most` results; returns their number and their contexts.
    fn take(queue: &Queue, most: u32) -> Result<(u32, KVec<u64>)> {
        let mut contexts = KVec::with_capacity(most as usize, GFP_KERNEL)?;
        let count = queue.cq.results(most, |result| {
            let _ = contexts.push_within_capacity(result.request_context);
        });
        Ok((count, contexts))
    }

    #[test]
    fn ndk_comp_01_results_come_in_order_up_to_the_number_asked_for() -> Result {
        let pair = Pair::new()?;
        for context in cases(1..=5) {
            pair.b.receive(context, &[])?;
            pair.a.send(context + 10, &[], 0)?;
            assert!(wait_until(|| pair
                .test_host
                .counted(crate::engine::counters::Counter::Receives)
                == context));
        }
        let queue = &pair.b.receives;
        kunit_assert_eq!(take(queue, 0)?, (0, KVec::new()));
        let (count, contexts) = take(queue, 2)?;
        kunit_assert_eq!(count, 2);
        kunit_assert_eq!(contexts[..], [1, 2]);
        let (count, contexts) = take(queue, 2)?;
        kunit_assert_eq!(count, 2);
        kunit_assert_eq!(contexts[..], [3, 4]);
        // Fewer than asked for: that was all.
        let (count, contexts) = take(queue, 9)?;
        kunit_assert_eq!(count, 1);
        kunit_assert_eq!(contexts[..], [5]);
        kunit_assert_eq!(take(queue, 9)?.0, 0);
        let (count, contexts) = take(&pair.a.requests, 9)?;
        kunit_assert_eq!(count, 5);
        kunit_assert_eq!(contexts[..], [11, 12, 13, 14, 15]);
        Ok(())
    }

    #[test]
    fn ndk_comp_03_a_receive_reports_its_bytes_and_an_invalidating_one_the_token() -> Result {
        let pair = Pair::new()?;
        let from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, mr_flags::LOCAL_WRITE)?;
        for len in cases([0u32, 1, 77, 4096]) {
            pair.b.receive(1, &[to.sge(0, 4096)?])?;
            pair.a.send(2, &[from.sge(0, len)?], 0)?;
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.bytes, len);
            kunit_assert_eq!(got.output, 0);
            kunit_assert_eq!(got.operation, operation::RECEIVE);
            kunit_assert_eq!(pair.a.requests.next()?.output, 0);
        }
        let fast = PageBuffer::fast(&pair.b.pd, 4096, true)?;
        let registered = fast.fast_register(&pair.b.qp, 3, op_flags::ALLOW_REMOTE_READ)?;
        kunit_assert_eq!(registered, Ok(()));
        kunit_assert_eq!(pair.b.requests.next()?.output, 0);
        let token = fast.mr()?.remote_token();
        pair.b.receive(4, &[to.sge(0, 4096)?])?;
        let sge = from.sge(0, 9)?;
        let sent = pair
            .a
            .qp
            .send_and_invalidate(5, [sge].into_iter(), 0, token);
        kunit_assert_eq!(sent, Ok(()));
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        kunit_assert_eq!(got.bytes, 9);
        kunit_assert_eq!(got.operation, operation::RECEIVE_AND_INVALIDATE);
        kunit_assert_eq!(got.output, token.raw());
        // The result at the sender is that of a send.
        let sent = pair.a.requests.next()?;
        kunit_assert_eq!(sent.operation, operation::SEND);
        kunit_assert_eq!(sent.output, 0);
        Ok(())
    }

    #[test]
    fn ndk_comp_04_each_queue_gets_its_own_results() -> Result {
        let pair = Pair::new()?;
        pair.b.receive(1, &[])?;
        pair.a.send(2, &[], 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.receives.stays_empty());
        assert!(pair.b.requests.stays_empty());
        // Cancelled requests, too.
        pair.a.receive(3, &[])?;
        pair.a.qp.flush();
        assert!(pair.a.receives.next_is(3, NtStatus::CANCELLED));
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_comp_04_one_queue_serves_both_sides_and_many_queue_pairs() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let queue = pair.test_host.queue(64)?;
        let mut others = (
            TestSide::new(&pair.test_host.adapter, 0, SIZES)?,
            TestSide::new(&pair.test_host.adapter, 0, SIZES)?,
        );
        for (test_side, context) in [
            (&mut pair.a, 0xA),
            (&mut pair.b, 0xB),
            (&mut others.0, 0xC),
            (&mut others.1, 0xD),
        ] {
            test_side.qp = qp(&test_side.pd, &queue, &queue, context, SIZES)?;
        }
        pair.connect(READS, READS)?;
        let adapter = &pair.test_host.adapter;
        let (c, d) = connect(
            adapter,
            &pair.open_listener,
            (&others.0, READS),
            (&others.1, READS),
        )?;
        (others.0.connector, others.1.connector) = (Some(c), Some(d));
        for (from, to) in [(&pair.a, &pair.b), (&others.0, &others.1)] {
            to.receive(7, &[])?;
            from.send(7, &[], 0)?;
        }
        // (queue pair, kind): each once.
        let mut seen = KVec::new();
        for _ in 0..4 {
            let got = queue.next()?;
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.request_context, 7);
            seen.push((got.qp_context, got.operation), GFP_KERNEL)?;
        }
        for one in cases([
            (0xA, operation::SEND),
            (0xB, operation::RECEIVE),
            (0xC, operation::SEND),
            (0xD, operation::RECEIVE),
        ]) {
            kunit_assert_eq!(seen.iter().filter(|s| **s == one).count(), 1);
        }
        assert!(queue.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_comp_05_after_an_error_the_connection_is_over_and_the_rest_is_cancelled() -> Result {
        let pair = Pair::new()?;
        let from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, mr_flags::LOCAL_WRITE)?;
        pair.a.receive(1, &[])?;
        for context in cases(2..=4) {
            pair.b.receive(context, &[to.sge(0, 4096)?])?;
        }
        let bad = from.sge_by(
            crate::rdma::values::token::Token::from_raw(0x7777_7700),
            0,
            8,
        );
        pair.a.send(11, &[bad], op_flags::DEFER)?;
        pair.a.send(12, &[from.sge(0, 8)?], op_flags::DEFER)?;
        // A request whose success would not be reported.
        pair.a
            .send(13, &[from.sge(0, 8)?], op_flags::SILENT_SUCCESS)?;
        assert!(pair.a.requests.next_is(11, NtStatus::ACCESS_VIOLATION));
        assert!(pair.a.requests.next_is(12, NtStatus::CANCELLED));
        assert!(pair.a.requests.next_is(13, NtStatus::CANCELLED));
        assert!(pair.a.receives.next_is(1, NtStatus::CANCELLED));
        let refused = pair.a.qp.send(14, [].into_iter(), 0);
        kunit_assert_eq!(refused, Err(NtStatus::CONNECTION_INVALID));
        // The connection of the peer is gone, and no message has reached the peer.
        assert!(wait_until(|| pair.b.disconnects.get() == 1));
        assert!(pair.b.receives.stays_empty());
        // A receive that comes later is cancelled as well.
        let late = pair.a.qp.receive(5, [].into_iter());
        assert!(late.is_err() || pair.a.receives.next_is(5, NtStatus::CANCELLED));
        Ok(())
    }

    #[test]
    fn ndk_comp_06_a_receive_too_small_overflows_and_its_send_does_not() -> Result {
        let pair = Pair::new()?;
        let from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, mr_flags::LOCAL_WRITE)?;
        pair.b.receive(1, &[to.sge(0, 99)?])?;
        pair.a.send(2, &[from.sge(0, 100)?], 0)?;
        assert!(pair.b.receives.next_is(1, NtStatus::BUFFER_OVERFLOW));
        let sent = pair.a.requests.next()?;
        kunit_assert_eq!(sent.status.raw() as u32, REMOTE_RESOURCES);
        kunit_assert_eq!(sent.operation, operation::SEND);
        Ok(())
    }

    #[test]
    fn ndk_comp_06_timeouts_are_of_sends_and_what_is_behind_is_cancelled() -> Result {
        let attr = HostAttr {
            rnr_ms: 50,
            ..HostAttr::PLAIN
        };
        let pair = Pair::with(&attr, SIZES, SIZES)?;
        let fast = PageBuffer::fast(&pair.a.pd, 4096, true)?;
        let region = pair.a.buffer(4096, mr_flags::REMOTE_WRITE)?;
        let mw = made(|done| pair.a.pd.create_mw(done))?;
        let range = (region.addr(), 64);
        // The peer has no receive.
        pair.a.send(1, &[], op_flags::DEFER)?;
        let flags = op_flags::DEFER | op_flags::ALLOW_REMOTE_READ;
        let bind = pair.a.qp.bind(2, region.mr()?, &mw, range, flags);
        let invalidate = pair.a.qp.invalidate_mr(3, fast.mr()?, 0);
        kunit_assert_eq!(bind, Ok(()));
        kunit_assert_eq!(invalidate, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::IO_TIMEOUT));
        for (context, kind) in cases([(2, operation::BIND), (3, operation::INVALIDATE)]) {
            let got = pair.a.requests.next()?;
            kunit_assert_eq!(got.request_context, context);
            kunit_assert_eq!(got.operation, kind);
            kunit_assert_eq!(got.status, NtStatus::CANCELLED);
        }
        Ok(())
    }

    #[test]
    fn ndk_comp_06_a_peer_s_refusal_is_of_reads_and_writes_and_never_of_local_requests() -> Result {
        for turn in cases(0..4) {
            let pair = Pair::new()?;
            let local = pair.a.buffer(4096, mr_flags::LOCAL_WRITE)?;
            let fast = PageBuffer::fast(&pair.a.pd, 4096, true)?;
            // A region without remote rights.
            let closed = pair.b.buffer(4096, mr_flags::LOCAL_WRITE)?;
            let there = closed.remote(0)?;
            let sge = local.sge(0, 8)?;
            let (posted, kind, expected) = match turn {
                0 => (
                    pair.a.qp.write(1, [sge].into_iter(), there, 0),
                    operation::WRITE,
                    REMOTE_RESOURCES,
                ),
                1 => (
                    pair.a.qp.read(1, [sge].into_iter(), there, 0),
                    operation::READ,
                    REMOTE_RESOURCES,
                ),
                // A region that is not registered cannot be invalidated.
                2 => (
                    pair.a.qp.invalidate_mr(1, fast.mr()?, 0),
                    operation::INVALIDATE,
                    0xC000_0010,
                ),
                _ => (
                    pair.a.qp.send(1, [fast.sge(0, 8)?].into_iter(), 0),
                    operation::SEND,
                    0xC000_0005,
                ),
            };
            kunit_assert_eq!(posted, Ok(()));
            if turn == 3 {
                pair.b.receive(2, &[])?;
            }
            let got = pair.a.requests.next()?;
            kunit_assert_eq!(got.operation, kind);
            kunit_assert_eq!(got.status.raw() as u32, expected);
        }
        Ok(())
    }

    #[test]
    fn ndk_comp_06_too_many_elements_overrun_only_where_there_are_data_to_send_or_read() -> Result {
        let pair = Pair::new()?;
        let local = pair.a.buffer(4096, mr_flags::LOCAL_WRITE)?;
        let remote = pair
            .b
            .buffer(4096, mr_flags::REMOTE_WRITE | mr_flags::REMOTE_READ)?;
        let there = remote.remote(0)?;
        let list = [local.sge(0, 1)?; 5];
        let many = || list.iter().copied();
        let overrun = Err(NtStatus::DATA_OVERRUN);
        kunit_assert_eq!(pair.a.qp.send(1, many(), 0), overrun);
        kunit_assert_eq!(pair.a.qp.write(1, many(), there, 0), overrun);
        kunit_assert_eq!(pair.a.qp.read(1, many(), there, 0), overrun);
        assert!(pair.a.requests.stays_empty());
        // The queue goes on.
        let one = pair.a.qp.write(2, list.iter().copied().take(1), there, 0);
        kunit_assert_eq!(one, Ok(()));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        Ok(())
    }

    /// The number of messages of each sender.
    const MESSAGES: u64 = 400;

    /// Posts receives and sends, as far as there is room; returns true if all have completed.
    fn stream(from: &TestSide, to: &TestSide) -> bool {
        let mut hang = Deadline::of_a_hang();
        let (mut sent, mut taken) = (0, 0);
        while taken < MESSAGES && !hang.is_over() {
            let in_flight = sent - taken;
            if in_flight < 8 && sent < MESSAGES {
                if to.receive(sent, &[]).is_err() || from.send(sent, &[], 0).is_err() {
                    return false;
                }
                sent += 1;
            }
            while from.requests.poll().is_some() {
                taken += 1;
                hang = Deadline::of_a_hang();
            }
        }
        taken == MESSAGES
    }

    /// Arms the queue, waits for the call, and polls until the queue is empty: no result may be
    /// missed (ARM-14). Returns the number of results of each queue pair, the number of arms, and
    /// true if all results came in order and with success.
    fn take_all(queue: &Queue) -> ([u64; 2], u32, bool) {
        let (mut next, mut armed, mut ordered) = ([0u64; 2], 0, true);
        while next[0] + next[1] < 2 * MESSAGES {
            let calls = queue.calls.get();
            queue.cq.arm(notify::ANY);
            armed += 1;
            if !wait_until(|| queue.calls.get() != calls) {
                break;
            }
            while let Some(got) = queue.poll() {
                let of = &mut next[got.qp_context];
                ordered &= got.request_context == *of && got.status == NtStatus::SUCCESS;
                *of += 1;
            }
        }
        (next, armed, ordered)
    }

    #[test]
    fn ndk_comp_07_a_consumer_alone_loses_nothing_of_what_several_producers_bring() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        // Room for all results: the producers do not wait for this side.
        let queue = pair.test_host.queue(1024)?;
        let mut others = (
            TestSide::new(&pair.test_host.adapter, 0xC, SIZES)?,
            TestSide::new(&pair.test_host.adapter, 0xD, SIZES)?,
        );
        pair.b.qp = qp(&pair.b.pd, &queue, &pair.b.requests, 0, SIZES)?;
        others.1.qp = qp(&others.1.pd, &queue, &others.1.requests, 1, SIZES)?;
        pair.connect(READS, READS)?;
        let adapter = &pair.test_host.adapter;
        let (c, d) = connect(
            adapter,
            &pair.open_listener,
            (&others.0, READS),
            (&others.1, READS),
        )?;
        (others.0.connector, others.1.connector) = (Some(c), Some(d));
        let Pair {
            a,
            b,
            open_listener,
            test_host,
        } = pair;
        let one = Arc::new((a, b), GFP_KERNEL)?;
        let two = Arc::new(others, GFP_KERNEL)?;
        let fine = Arc::new(crate::kunit::log::Tally::new(), GFP_KERNEL)?;
        let threads = ProcessQueue::new(c"ndk_test_producers")?;
        let mut other_tasks = KVec::new();
        for test_sides in [&one, &two] {
            let (test_sides, fine) = (test_sides.clone(), fine.clone());
            let other_task = OtherContext::new(move || {
                if stream(&test_sides.0, &test_sides.1) {
                    fine.hit();
                }
            })?;
            assert!(other_task.begin(&threads));
            other_tasks.push(other_task, GFP_KERNEL)?;
        }
        let (next, armed, ordered) = take_all(&queue);
        for other_task in &other_tasks {
            assert!(other_task.is_done());
        }
        assert!(ordered);
        kunit_assert_eq!(next, [MESSAGES; 2]);
        kunit_assert_eq!(fine.get(), 2);
        assert!(queue.poll().is_none());
        kunit_assert_eq!(queue.calls.get(), armed);
        drop(other_tasks);
        drop((one, two, queue, open_listener));
        drop(test_host);
        Ok(())
    }

    #[test]
    fn ndk_comp_07_posting_from_elsewhere_goes_on_while_results_are_taken() -> Result {
        let pair = Pair::new()?;
        let Pair {
            a,
            b,
            open_listener,
            test_host,
        } = pair;
        let test_sides = Arc::new((a, b), GFP_KERNEL)?;
        let threads = ProcessQueue::new(c"ndk_test_poster")?;
        let poster = test_sides.clone();
        let other_task = OtherContext::new(move || {
            for context in 0..20 {
                let posted = poster.1.receive(context, &[]);
                let posted = posted.and_then(|()| poster.0.send(context, &[], 0));
                if posted.is_err() {
                    return;
                }
            }
        })?;
        assert!(other_task.begin(&threads));
        for context in cases(0..20) {
            assert!(test_sides.1.receives.next_is(context, NtStatus::SUCCESS));
            assert!(test_sides.0.requests.next_is(context, NtStatus::SUCCESS));
        }
        assert!(other_task.is_done());
        drop(other_task);
        drop((test_sides, open_listener));
        drop(test_host);
        Ok(())
    }
}
