// SPDX-License-Identifier: GPL-2.0

//! Read (READ-01 to READ-08).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_read)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        engine::{
            qp::QueuePair,
            transport::{
                ReadLimits,
                Transport, //
            }, //
        },
        kunit::{
            fake::{
                Fake,
                Started, //
            },
            harness::cases, //
        },
        ndk::{
            abi::numbers::operation,
            status::NtStatus,
            tests::{
                host::{
                    HostAttr,
                    SIZES, //
                },
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::{
                    Pair,
                    READS, //
                },
                remote_access::{
                    hold,
                    is_over,
                    registered,
                    release,
                    takes_requests,
                    RemotePeer,
                    BASE,
                    DEFER,
                    FENCE,
                    INLINE,
                    LOCAL_INVALIDATE,
                    LOCAL_WRITE,
                    REMOTE_RESOURCES,
                    SILENT,
                    SINK, //
                }, //
            }, //
        },
        rdma::values::{
            status::Status,
            work::RemoteAddr, //
        },
        sys::sge::Sge, //
    };

    #[test]
    fn ndk_read_01_the_bytes_of_the_remote_address_are_read() -> Result {
        let pair = Pair::new()?;
        let sink = pair.a.buffer(2 * PAGE, 1)?;
        let mut source = PageBuffer::displaced(&pair.b.pd, 2 * PAGE, 2, BASE)?;
        source.fill(0x17);
        let token = source.mr()?.remote_token();
        // The address counts from the base of the region; the range crosses a page border.
        let from = RemoteAddr {
            addr: BASE + PAGE as u64 - 50,
            token,
        };
        let list = [sink.sge(100, 300)?];
        kunit_assert_eq!(pair.a.qp.read(1, list.into_iter(), from, 0), Ok(()));
        let done = pair.a.requests.next()?;
        kunit_assert_eq!(done.request_context, 1);
        kunit_assert_eq!(done.status, NtStatus::SUCCESS);
        kunit_assert_eq!(done.operation, operation::READ);
        kunit_assert_eq!(done.qp_context, 0xA);
        kunit_assert_eq!(done.bytes, 300);
        assert!(sink.has(0x17u8.wrapping_sub(50), 100, 300));
        assert!(sink.is_blank(0, 100));
        assert!(sink.is_blank(400, 2 * PAGE - 400));
        // The peer's queues report no result.
        assert!(pair.b.receives.stays_empty());
        assert!(pair.b.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_read_01_all_elements_of_the_list_are_filled() -> Result {
        let mut attr = HostAttr::PLAIN;
        attr.limits.read_sges = 3;
        let pair = Pair::with(&attr, SIZES, SIZES)?;
        let sink = pair.a.buffer(PAGE, 1)?;
        let mut source = pair.b.buffer(PAGE, 2)?;
        source.fill(0x27);
        let list = [sink.sge(0, 10)?, sink.sge(100, 0)?, sink.sge(200, 20)?];
        let from = source.remote(0)?;
        kunit_assert_eq!(pair.a.qp.read(1, list.into_iter(), from, 0), Ok(()));
        let done = pair.a.requests.next()?;
        kunit_assert_eq!(done.status, NtStatus::SUCCESS);
        kunit_assert_eq!(done.bytes, 30);
        assert!(sink.has(0x27, 0, 10));
        assert!(sink.has(0x27 + 10, 200, 20));
        assert!(sink.is_blank(10, 190));
        assert!(sink.is_blank(220, PAGE - 220));
        Ok(())
    }

    #[test]
    fn ndk_read_02_flags_that_are_taken() -> Result {
        let pair = Pair::new()?;
        let sink = pair.a.buffer(PAGE, 1)?;
        let mut source = pair.b.buffer(PAGE, 2)?;
        source.fill(0x37);
        let read = |context, flags| -> Result<_> {
            let list = [sink.sge(0, 8)?].into_iter();
            Ok(pair.a.qp.read(context, list, source.remote(0)?, flags))
        };
        kunit_assert_eq!(read(1, FENCE)?, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(read(2, SILENT)?, Ok(()));
        kunit_assert_eq!(read(3, 0)?, Ok(()));
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        kunit_assert_eq!(read(4, DEFER)?, Ok(()));
        assert!(pair.a.requests.stays_empty());
        kunit_assert_eq!(read(5, FENCE | SILENT)?, Ok(()));
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        for flag in cases([0x4, 0x8, LOCAL_WRITE, 0x20, INLINE, SINK, 0x400]) {
            kunit_assert_eq!(read(6, flag)?, Err(NtStatus::INVALID_PARAMETER));
        }
        assert!(pair.a.requests.stays_empty());
        assert!(takes_requests(&pair.a));
        Ok(())
    }

    #[test]
    fn ndk_read_03_past_the_end_ends_the_connection() -> Result {
        kunit_assert_eq!(REMOTE_RESOURCES.raw(), 0xC000_013Du32 as i32);
        let end = BASE + PAGE as u64;
        for (at, len) in cases([
            (end - 7, 8),
            (end, 1),
            (BASE + 1, PAGE as u32),
            (BASE - 1, 1),
            (u64::MAX - 3, 8),
        ]) {
            let pair = Pair::new()?;
            let peer = RemotePeer::new(&pair.a, PAGE)?;
            let mut source = PageBuffer::displaced(&pair.b.pd, PAGE, 2, BASE)?;
            source.fill(0x47);
            let token = source.mr()?.remote_token();
            // The last bytes of the region can be read.
            kunit_assert_eq!(peer.read(end - 7, token, 7)?, NtStatus::SUCCESS);
            assert!(peer.own.has(0x47u8.wrapping_sub(7), 0, 7));
            kunit_assert_eq!(peer.read(at, token, len)?, REMOTE_RESOURCES);
            assert!(is_over(&pair));
        }
        Ok(())
    }

    #[test]
    fn ndk_read_04_0x200_always_means_defer() -> Result {
        let pair = Pair::new()?;
        let mut source = pair.b.buffer(PAGE, 2)?;
        source.fill(0x57);
        let sink = PageBuffer::fast(&pair.a.pd, PAGE, false)?;
        registered(&pair.a, &sink, LOCAL_WRITE)?;
        let read = |context, at, flags| -> Result<_> {
            let list = [sink.sge(at, 8)?].into_iter();
            Ok(pair.a.qp.read(context, list, source.remote(0)?, flags))
        };
        kunit_assert_eq!(read(1, 0, 0x200)?, Ok(()));
        assert!(pair.a.requests.stays_empty());
        assert!(sink.is_blank(0, PAGE));
        // The token of the sink is still valid; this read invalidates it.
        kunit_assert_eq!(read(2, 8, 0x100)?, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(sink.has(0x57, 0, 8));
        assert!(sink.has(0x57, 8, 8));
        registered(&pair.a, &sink, LOCAL_WRITE)?;
        Ok(())
    }

    /// A pair, the peer's memory, and a registered sink.
    fn reader() -> Result<(Pair, PageBuffer, PageBuffer)> {
        let pair = Pair::with(&HostAttr::PLAIN, SIZES, SIZES)?;
        let mut source = pair.b.buffer(PAGE, 2)?;
        source.fill(0x67);
        let sink = PageBuffer::fast(&pair.a.pd, PAGE, true)?;
        registered(&pair.a, &sink, 0x38)?;
        Ok((pair, source, sink))
    }

    #[test]
    fn ndk_read_05_success_means_that_the_sinks_token_is_invalid() -> Result {
        let (pair, source, sink) = reader()?;
        let token = sink.mr()?.remote_token();
        let peer = RemotePeer::new(&pair.b, PAGE)?;
        kunit_assert_eq!(peer.read(sink.addr(), token, 8)?, NtStatus::SUCCESS);
        let list = [sink.sge(0, 8)?].into_iter();
        let posted = pair.a.qp.read(1, list, source.remote(0)?, LOCAL_INVALIDATE);
        kunit_assert_eq!(posted, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(sink.has(0x67, 0, 8));
        // The token is invalid for the peer, too, and at once.
        kunit_assert_eq!(peer.read(sink.addr(), token, 8)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_read_05_only_the_first_elements_token_is_invalid() -> Result {
        let mut attr = HostAttr::PLAIN;
        attr.limits.read_sges = 2;
        let pair = Pair::with(&attr, SIZES, SIZES)?;
        let source = pair.b.buffer(PAGE, 2)?;
        let [first, second] = [
            PageBuffer::fast(&pair.a.pd, PAGE, true)?,
            PageBuffer::fast(&pair.a.pd, PAGE, true)?,
        ];
        for sink in [&first, &second] {
            registered(&pair.a, sink, LOCAL_WRITE)?;
        }
        let list = [first.sge(0, 8)?, second.sge(0, 8)?].into_iter();
        let posted = pair.a.qp.read(1, list, source.remote(0)?, LOCAL_INVALIDATE);
        kunit_assert_eq!(posted, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        // The second region can still be invalidated, the first one cannot.
        kunit_assert_eq!(pair.a.qp.invalidate_mr(2, second.mr()?, 0), Ok(()));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        kunit_assert_eq!(pair.a.qp.invalidate_mr(3, first.mr()?, 0), Ok(()));
        assert!(pair.a.requests.next_is(3, NtStatus::INVALID_DEVICE_REQUEST));
        Ok(())
    }

    #[test]
    fn ndk_read_05_without_the_flag_the_token_stays_valid() -> Result {
        let (pair, source, sink) = reader()?;
        let list = [sink.sge(0, 8)?].into_iter();
        let posted = pair.a.qp.read(1, list, source.remote(0)?, 0);
        kunit_assert_eq!(posted, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        let peer = RemotePeer::new(&pair.b, PAGE)?;
        let token = sink.mr()?.remote_token();
        kunit_assert_eq!(peer.read(sink.addr(), token, 8)?, NtStatus::SUCCESS);
        assert!(peer.own.has(0x67, 0, 8));
        kunit_assert_eq!(pair.a.qp.invalidate_mr(2, sink.mr()?, 0), Ok(()));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_read_06_reads_above_the_limit_wait_in_the_queue() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let few = ReadLimits {
            inbound: 8,
            outbound: 2,
        };
        pair.connect(few, READS)?;
        let mut source = pair.b.buffer(PAGE, 2)?;
        source.fill(0x77);
        let sink = pair.a.buffer(PAGE, 1)?;
        hold(&pair.a)?;
        for at in cases(0..20) {
            let list = [sink.sge(at * 8, 8)?].into_iter();
            let from = source.remote(at * 8)?;
            // CAST: widening.
            kunit_assert_eq!(pair.a.qp.read(at as u64, list, from, 0), Ok(()));
        }
        assert!(pair.a.requests.stays_empty());
        release(&pair.b)?;
        for at in cases(0..20) {
            assert!(pair.a.requests.next_is(at, NtStatus::SUCCESS));
        }
        assert!(sink.has(0x77, 0, 160));
        Ok(())
    }

    /// Connects by a transport that the test drives.
    fn by_hand(_: &Arc<QueuePair>, _: &Arc<QueuePair>) -> Result<Arc<dyn Transport>> {
        Ok(Fake::new()?)
    }

    #[test]
    fn ndk_read_06_no_more_reads_than_the_effective_limit_are_in_flight() -> Result {
        // The inbound limit of each side bounds the outbound limit of the other.
        for (outbound, inbound) in cases([(2, 8), (8, 2)]) {
            let mut attr = HostAttr::PLAIN;
            attr.connect_fn = by_hand;
            let mut pair = Pair::unconnected(&attr, SIZES, SIZES)?;
            let [active, passive] = [(8, outbound), (inbound, 8)]
                .map(|(inbound, outbound)| ReadLimits { inbound, outbound });
            pair.connect(active, passive)?;
            let (sink, source) = (pair.a.buffer(PAGE, 1)?, pair.b.buffer(PAGE, 2)?);
            for context in cases(0..5) {
                let list = [sink.sge(0, 8)?].into_iter();
                kunit_assert_eq!(pair.a.qp.read(context, list, source.remote(0)?, 0), Ok(()));
            }
            let engine = pair.a.qp.engine();
            let id = engine.connection().ok_or(EINVAL)?;
            let mut started = Started::new(engine)?;
            let mut numbers = KVec::new();
            while let Some(seq) = started.start(engine, id) {
                numbers.push(seq, GFP_KERNEL)?;
            }
            let at_once = numbers.len();
            let mut in_turn = 0;
            for at in cases(0..5) {
                let Some(seq) = numbers.get(at).copied() else {
                    break;
                };
                started.finish(engine, seq, Status::Success);
                if let Some(seq) = started.start(engine, id) {
                    numbers.push(seq, GFP_KERNEL)?;
                    in_turn += 1;
                    // Exactly one place was free.
                    assert!(started.start(engine, id).is_none());
                }
            }
            kunit_assert_eq!(at_once, 2);
            kunit_assert_eq!(in_turn, 3);
            for context in cases(0..5) {
                assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            }
        }
        Ok(())
    }

    #[test]
    fn ndk_read_07_a_read_of_nothing_completes() -> Result {
        let pair = Pair::new()?;
        let source = pair.b.buffer(PAGE, 2)?;
        let from = source.remote(0)?;
        kunit_assert_eq!(pair.a.qp.read(1, [].into_iter(), from, 0), Ok(()));
        let done = pair.a.requests.next()?;
        kunit_assert_eq!(done.request_context, 1);
        kunit_assert_eq!(done.status, NtStatus::SUCCESS);
        kunit_assert_eq!(done.bytes, 0);
        kunit_assert_eq!(done.operation, operation::READ);
        let sink = pair.a.buffer(PAGE, 1)?;
        let list = [sink.sge(0, 0)?].into_iter();
        kunit_assert_eq!(pair.a.qp.read(2, list, from, 0), Ok(()));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.b.receives.stays_empty());
        assert!(takes_requests(&pair.a));
        Ok(())
    }

    /// Reads into `sink`; returns the status.
    fn read_into(pair: &Pair, source: &PageBuffer, sink: Sge) -> Result<NtStatus> {
        let posted = pair.a.qp.read(8, [sink].into_iter(), source.remote(0)?, 0);
        posted.map_err(crate::ndk::tests::completion::log_status)?;
        Ok(pair.a.requests.next()?.status)
    }

    #[test]
    fn ndk_read_08_a_sink_needs_local_write() -> Result {
        // Normal regions: local read only, remote read, the sink flag. Then a fast region.
        for flags in cases([0, 2, 8]) {
            let pair = Pair::new()?;
            let mut source = pair.b.buffer(PAGE, 2)?;
            source.fill(0x19);
            let sink = pair.a.buffer(PAGE, flags)?;
            let status = read_into(&pair, &source, sink.sge(0, 8)?)?;
            kunit_assert_eq!(status, NtStatus::ACCESS_VIOLATION);
            assert!(sink.is_blank(0, PAGE));
            assert!(is_over(&pair));
        }
        let pair = Pair::new()?;
        let mut source = pair.b.buffer(PAGE, 2)?;
        source.fill(0x19);
        let sink = PageBuffer::fast(&pair.a.pd, PAGE, true)?;
        registered(&pair.a, &sink, 0x8 | SINK)?;
        let status = read_into(&pair, &source, sink.sge(0, 8)?)?;
        kunit_assert_eq!(status, NtStatus::ACCESS_VIOLATION);
        assert!(sink.is_blank(0, PAGE));
        Ok(())
    }

    #[test]
    fn ndk_read_08_local_write_is_enough_and_the_privileged_token_has_it() -> Result {
        let pair = Pair::new()?;
        let mut source = pair.b.buffer(PAGE, 2)?;
        source.fill(0x29);
        // Sinks that do not have the sink flag.
        let normal = pair.a.buffer(PAGE, 1)?;
        let fast = PageBuffer::fast(&pair.a.pd, PAGE, false)?;
        registered(&pair.a, &fast, LOCAL_WRITE)?;
        let plain = PageBuffer::plain(PAGE)?;
        let privileged = pair.a.pd.privileged_token();
        for (sink, sge) in [
            (&normal, normal.sge(0, 8)?),
            (&fast, fast.sge(0, 8)?),
            (&plain, plain.sge_by(privileged, 0, 8)),
        ] {
            kunit_assert_eq!(read_into(&pair, &source, sge)?, NtStatus::SUCCESS);
            assert!(sink.has(0x29, 0, 8));
            assert!(sink.is_blank(8, PAGE - 8));
        }
        Ok(())
    }
}
