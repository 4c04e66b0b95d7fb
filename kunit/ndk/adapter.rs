// SPDX-License-Identifier: GPL-2.0

//! Adapters (ADPT-01, ADPT-02, ADPT-04, ADPT-05, ADPT-07, ADPT-08).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_adapter)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::{
            counters::Counter,
            transport::ReadLimits, //
        },
        kunit::{
            harness::{
                cases,
                wait_until, //
            },
            other_context::OtherContext, //
        },
        ndk::{
            abi::numbers::{
                mr_flags,
                op_flags, //
            },
            adapter::{
                open,
                Limits,
                OpenBy,
                Version,
                VERSION, //
            },
            connector::Source,
            srq::SrqSizes,
            status::NtStatus,
            tests::{
                blocking_callback::others_run,
                completion::{
                    log_status,
                    made,
                    request,
                    AutoClose,
                    CallbackValue, //
                },
                host::{
                    here,
                    pd,
                    qp,
                    HostAttr,
                    TestHost,
                    NAME,
                    SIZES, //
                },
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::{
                    connect,
                    OpenListener,
                    Pair,
                    TestSide,
                    READS, //
                }, //
            }, //
        },
        rdma::values::qp::QpCaps,
        sys::{
            softirq::ProcessQueue,
            unaligned::Room, //
        }, //
    };

    const FULL: Limits = Limits::FULL;

    #[test]
    fn ndk_adpt_01_a_version_that_is_not_served_opens_nothing() -> Result {
        let test_host = TestHost::new()?;
        let which = OpenBy::first(NAME);
        for (major, minor) in cases([(1, 3), (1, u16::MAX), (0, 0), (0, 2), (2, 0), (2, 1)]) {
            let opened = open(&test_host.context, &which, Version { major, minor });
            kunit_assert_eq!(opened.err(), Some(NtStatus::BAD_VERSION));
        }
        for minor in cases(0..=2) {
            let opened = open(&test_host.context, &which, Version { major: 1, minor });
            opened.map_err(log_status)?.close_and_wait();
        }
        let nobody = open(&test_host.context, &OpenBy::first(c"nobody"), VERSION);
        kunit_assert_eq!(nobody.err(), Some(NtStatus::ADAPTER_NOT_FOUND));
        Ok(())
    }

    #[test]
    fn ndk_adpt_01_a_device_that_goes_is_not_ready() -> Result {
        let test_host = TestHost::new()?;
        let port = test_host.device.clone();
        let other_task = OtherContext::new(move || port.shut())?;
        let threads = ProcessQueue::new(c"ndk_test_shut")?;
        assert!(other_task.begin(&threads));
        let not_ready = || {
            let opened = open(&test_host.context, &OpenBy::first(NAME), VERSION);
            match opened {
                Ok(adapter) => {
                    adapter.close_and_wait();
                    false
                }
                Err(status) => status == NtStatus::ADAPTER_NOT_READY,
            }
        };
        assert!(wait_until(not_ready));
        test_host.adapter.close_and_wait();
        assert!(other_task.is_done());
        Ok(())
    }

    #[test]
    fn ndk_adpt_02_two_adapters_of_one_device_are_independent() -> Result {
        let pair = Pair::new()?;
        let other =
            open(&pair.test_host.context, &OpenBy::first(NAME), VERSION).map_err(log_status)?;
        let mut theirs = TestSide::new(&other, 3, SIZES)?;
        // Objects of the second adapter connect to objects of the first.
        let mut ours = TestSide::new(&pair.test_host.adapter, 4, SIZES)?;
        let open_listener = OpenListener::new(&other)?;
        let (a, b) = connect(
            &pair.test_host.adapter,
            &open_listener,
            (&ours, READS),
            (&theirs, READS),
        )?;
        (ours.connector, theirs.connector) = (Some(a), Some(b));
        theirs.receive(1, &[])?;
        ours.send(2, &[], 0)?;
        assert!(theirs.receives.next_is(1, NtStatus::SUCCESS));
        // The close of the second adapter waits for its own objects only.
        drop((theirs, open_listener));
        other.close_and_wait();
        assert!(!pair.test_host.adapter.is_closed());
        pair.b.receive(5, &[])?;
        pair.a.send(6, &[], 0)?;
        assert!(pair.a.requests.next_is(6, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(5, NtStatus::SUCCESS));
        let _late = made(|done| pair.test_host.adapter.create_shared_endpoint(here(0), done))?;
        drop(ours);
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_queues_of_the_greatest_depths_can_be_made() -> Result {
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        assert!(FULL.pages >= 16);
        let user = KBox::new(|_| (), GFP_KERNEL)?;
        let deepest = test_host.queue(8)?;
        let deep = made(|done| test_host.adapter.create_cq(FULL.cq, None, user, done))?;
        drop(deep);
        let resized = request(|done| deepest.cq.resize(FULL.cq, done))?;
        kunit_assert_eq!(resized, NtStatus::SUCCESS);
        let sizes = SrqSizes {
            depth: FULL.srq,
            sges: 1,
            threshold: FULL.srq,
        };
        drop(made(|done| domain.create_srq(sizes, None, done))?);
        let sizes = SrqSizes {
            depth: 8,
            sges: FULL.sges,
            threshold: 0,
        };
        drop(made(|done| domain.create_srq(sizes, None, done))?);
        let alone = [
            QpCaps {
                recv_wr: FULL.requests,
                ..SIZES
            },
            QpCaps {
                send_wr: FULL.requests,
                ..SIZES
            },
            QpCaps {
                recv_sge: FULL.sges,
                ..SIZES
            },
            QpCaps {
                send_sge: FULL.sges,
                ..SIZES
            },
            QpCaps {
                inline_data: FULL.inline,
                ..SIZES
            },
        ];
        for sizes in cases(alone) {
            drop(qp(&domain, &deepest, &deepest, 0, sizes)?);
        }
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_as_many_receives_as_are_reported_can_be_posted() -> Result {
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        let queue = test_host.queue(FULL.requests)?;
        let sizes = QpCaps {
            recv_wr: FULL.requests,
            ..SIZES
        };
        let pair = qp(&domain, &queue, &queue, 0, sizes)?;
        for context in cases(0..u64::from(FULL.requests)) {
            pair.receive(context, [].into_iter()).map_err(log_status)?;
        }
        let full = pair.receive(0, [].into_iter());
        kunit_assert_eq!(full, Err(NtStatus::NO_MORE_ENTRIES));
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_requests_of_the_greatest_sizes_are_carried_out() -> Result {
        let sizes = QpCaps {
            recv_sge: FULL.sges,
            send_sge: FULL.sges,
            inline_data: FULL.inline,
            ..SIZES
        };
        let pair = Pair::with(&HostAttr::PLAIN, sizes, sizes)?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, mr_flags::LOCAL_WRITE)?;
        from.fill(5);
        let mut lists = [KVec::new(), KVec::new()];
        for (list, buffer) in lists.iter_mut().zip([&from, &to]) {
            for at in cases(0..FULL.sges as usize) {
                list.push(buffer.sge(at * 16, 16)?, GFP_KERNEL)?;
            }
        }
        pair.b.receive(1, &lists[1])?;
        pair.a.send(2, &lists[0], 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(to.has(5, 0, FULL.sges as usize * 16));
        // All the bytes that a request may take inline.
        pair.b.receive(3, &[to.sge(1024, 1024)?])?;
        let sge = from.sge(1, FULL.inline)?;
        pair.a.send(4, &[sge], op_flags::INLINE)?;
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.bytes, FULL.inline);
        assert!(to.has(6, 1024, FULL.inline as usize));
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_the_longest_request_is_taken_and_no_longer_one() -> Result {
        let mut pair = Pair::new()?;
        let from = pair.a.buffer(4096, 0)?;
        let token = from.mr()?.local_token();
        let long = |len: u32| from.sge_by(token, 0, len);
        let half = FULL.transfer / 2;
        let posted = |list: &[u32]| {
            let list = list.iter().map(|len| long(*len));
            let list = list.fold(KVec::new(), |mut all, sge| {
                let _ = all.push(sge, GFP_KERNEL);
                all
            });
            pair.a.qp.send(1, list.iter().copied(), 0)
        };
        let above = posted(&[half, half, 1]);
        let equal = posted(&[half, half]);
        kunit_assert_eq!(above, Err(NtStatus::BUFFER_OVERFLOW));
        kunit_assert_eq!(equal, Ok(()));
        // The memory is shorter than the list: the request fails when it is carried out.
        assert!(pair.a.requests.next_is(1, NtStatus::ACCESS_VIOLATION));
        pair.a.connector = None;
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_fast_registrations_reads_and_private_data_reach_their_limits() -> Result {
        let most = ReadLimits {
            inbound: FULL.reads,
            outbound: FULL.reads,
        };
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        pair.connect(most, most)?;
        let data = pair
            .a
            .connector()?
            .connection_data(Room::of(&mut []))
            .map_err(log_status)?;
        kunit_assert_eq!(data.limits.inbound, FULL.reads);
        kunit_assert_eq!(data.limits.outbound, FULL.reads);
        let pages = FULL.pages as usize;
        let fast = PageBuffer::fast(&pair.a.pd, PAGE, true)?;
        drop(fast);
        let mr = pair
            .a
            .pd
            .create_mr(true)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let ready = request(|done| mr.initialize(FULL.pages, true, done))?;
        kunit_assert_eq!(ready, NtStatus::SUCCESS);
        // The same page in every entry of the list.
        let plain = PageBuffer::plain(PAGE)?;
        let page = plain.addr();
        let list = KVVec::from_elem(page, pages, GFP_KERNEL)?;
        let what = crate::ndk::memory::FastRegistration {
            pages: crate::sys::mdl::test_pages(&list),
            offset: 0,
            len: (pages * PAGE) as u64,
            base: 0x1000_0000,
        };
        let posted = pair.a.qp.fast_register(1, &mr, &what, 0);
        kunit_assert_eq!(posted, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_private_data_of_the_greatest_length_arrives() -> Result {
        let test_host = TestHost::new()?;
        let (open_listener, test_side) = (
            OpenListener::new(&test_host.adapter)?,
            TestSide::new(&test_host.adapter, 1, SIZES)?,
        );
        let ours = test_host
            .adapter
            .create_connector()
            .map(AutoClose::new)
            .map_err(log_status)?;
        let slot = CallbackValue::new()?;
        let data = KVec::from_elem(7u8, FULL.private_data as usize, GFP_KERNEL)?;
        let to = (Source::Address(here(0)), open_listener.at);
        let asking = ours.connect(&test_side.qp, to, READS, data, slot.callback()?);
        assert!(asking.is_ok());
        let theirs = open_listener.incoming()?;
        let mut got = [0u8; 255];
        let told = theirs.connection_data(Room::of(&mut got));
        let told_len = told.map_err(log_status)?.len;
        kunit_assert_eq!(told_len, FULL.private_data as usize);
        kunit_assert_eq!(got, [7; 255]);
        Ok(())
    }

    #[test]
    fn ndk_adpt_05_what_the_flags_promise_works() -> Result {
        let test_host = TestHost::new()?;
        let queue = test_host.queue(8)?;
        kunit_assert_eq!(queue.cq.moderate(10, 2), Ok(()));
        kunit_assert_eq!(request(|done| queue.cq.resize(9, done))?, NtStatus::SUCCESS);
        // Loopback: both ends have the same address. The sink flag is never needed.
        let pair = Pair::new()?;
        let ends = (
            pair.a.connector()?.local_address().map_err(log_status)?,
            pair.a.connector()?.peer_address().map_err(log_status)?,
        );
        kunit_assert_eq!(ends.0.ip(), ends.1.ip());
        let mut from = pair.b.buffer(4096, mr_flags::REMOTE_READ)?;
        from.fill(9);
        let into = PageBuffer::fast(&pair.a.pd, 4096, false)?;
        let registered = into.fast_register(&pair.a.qp, 1, op_flags::ALLOW_LOCAL_WRITE)?;
        kunit_assert_eq!(registered, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        let sge = into.sge(0, 4096)?;
        let flags = op_flags::RDMA_READ_LOCAL_INVALIDATE;
        let read = pair.a.qp.read(2, [sge].into_iter(), from.remote(0)?, flags);
        kunit_assert_eq!(read, Ok(()));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(into.has(9, 0, 4096));
        // The registration ended with the read.
        let gone = pair.a.qp.send(3, [sge].into_iter(), 0);
        kunit_assert_eq!(gone, Ok(()));
        assert!(pair.a.requests.next_is(3, NtStatus::ACCESS_VIOLATION));
        Ok(())
    }

    #[test]
    fn ndk_adpt_07_the_counters_of_the_device_count() -> Result {
        let mut pair = Pair::new()?;
        let device = pair.test_host.device.clone();
        // CAST: a variant's number is an index.
        let counted = |counter: Counter| device.counted(counter as usize);
        let active = || {
            counted(Counter::Connects) + counted(Counter::Accepts) - counted(Counter::Disconnects)
        };
        // Both ends are on this device.
        kunit_assert_eq!(counted(Counter::Connects), 1);
        kunit_assert_eq!(counted(Counter::Accepts), 1);
        kunit_assert_eq!(active(), 2);
        kunit_assert_eq!(counted(Counter::ConnectFailures), 0);
        kunit_assert_eq!(counted(Counter::CqOverflows), 0);
        let (bytes_in, bytes_out) = (counted(Counter::BytesIn), counted(Counter::BytesOut));
        let from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, mr_flags::LOCAL_WRITE)?;
        pair.b.receive(1, &[to.sge(0, 4096)?])?;
        pair.a.send(2, &[from.sge(0, 1000)?], 0)?;
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        kunit_assert_eq!(counted(Counter::BytesIn), bytes_in + 1000);
        kunit_assert_eq!(counted(Counter::BytesOut), bytes_out + 1000);
        // A queue overflows, which ends the connection; a connect finds no listener.
        let one = request(|done| pair.b.receives.cq.resize(1, done))?;
        kunit_assert_eq!(one, NtStatus::SUCCESS);
        for context in cases(0..2) {
            pair.b.receive(context, &[])?;
            pair.a.send(context, &[], 0)?;
        }
        assert!(wait_until(|| active() == 0));
        let late = TestSide::new(&pair.test_host.adapter, 1, SIZES)?;
        let ours = pair
            .test_host
            .adapter
            .create_connector()
            .map(AutoClose::new)
            .map_err(log_status)?;
        let nobody = (Source::Address(here(0)), here(1));
        let refused = request(|done| ours.connect(&late.qp, nobody, READS, KVec::new(), done))?;
        assert!(refused.raw() < 0);
        kunit_assert_eq!(counted(Counter::CqOverflows), 1);
        kunit_assert_eq!(counted(Counter::ConnectFailures), 1);
        kunit_assert_eq!(counted(Counter::Connects), 1);
        kunit_assert_eq!(counted(Counter::Accepts), 1);
        pair.a.connector = None;
        Ok(())
    }

    #[test]
    fn ndk_adpt_08_disabling_refuses_opens_and_waits_for_those_that_are_open() -> Result {
        let test_host = TestHost::new()?;
        let second = open(&test_host.context, &OpenBy::first(NAME), VERSION).map_err(log_status)?;
        let mut queue = test_host.queue(8)?;
        queue.cq.arm(crate::ndk::abi::numbers::notify::ERRORS);
        let shut = CallbackValue::new()?;
        let port = test_host.device.clone();
        let over = shut.clone();
        let other_task = OtherContext::new(move || {
            port.shut();
            over.put(());
        })?;
        let threads = ProcessQueue::new(c"ndk_test_shut")?;
        assert!(other_task.begin(&threads));
        // Consumers are notified that they have to close.
        assert!(wait_until(|| queue.calls.get() == 1));
        let late = open(&test_host.context, &OpenBy::first(NAME), VERSION);
        kunit_assert_eq!(late.err(), Some(NtStatus::ADAPTER_NOT_READY));
        second.close_and_wait();
        assert!(others_run(&test_host)?);
        kunit_assert_eq!(shut.calls.get(), 0);
        assert!(queue.cq.close_and_wait()?);
        assert!(others_run(&test_host)?);
        kunit_assert_eq!(shut.calls.get(), 0);
        test_host.adapter.close_and_wait();
        assert!(shut.wait().is_some());
        Ok(())
    }
}
