// SPDX-License-Identifier: GPL-2.0

//! Regions from creation to close (MR-01 to MR-03, MR-05 to MR-07, MR-11).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_region)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            life::Ref,
            memory::Mr,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                completion::{
                    log_status,
                    request,
                    AutoClose,
                    CallbackValue, //
                },
                host::{
                    pd,
                    HostAttr,
                    TestHost,
                    SIZES, //
                },
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::{
                    Pair,
                    TestSide, //
                },
                remote_access::{
                    bound,
                    hold,
                    invalidated,
                    registered,
                    release,
                    window,
                    RemotePeer,
                    BASE,
                    REMOTE_READ,
                    REMOTE_RESOURCES,
                    REMOTE_WRITE,
                    SILENT, //
                }, //
            }, //
        },
        sys::mdl::Described, //
    };

    const REFUSED: NtStatus = NtStatus::INVALID_DEVICE_REQUEST;
    const INVALID: NtStatus = NtStatus::INVALID_PARAMETER;

    fn mr(test_side: &TestSide, fast: bool) -> Result<AutoClose<Mr>> {
        test_side
            .pd
            .create_mr(fast)
            .map(AutoClose::new)
            .map_err(log_status)
    }

    fn register(mr: &Ref<Mr>, chain: &Described, len: usize, flags: u32) -> Result<NtStatus> {
        // CAST: widening.
        request(|done| mr.register(chain.mdl(), len as u64, flags, done))
    }

    #[test]
    fn ndk_mr_01_a_region_is_for_one_use_only() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::plain(PAGE)?;
        let [normal, fast] = [mr(&pair.b, false)?, mr(&pair.b, true)?];
        kunit_assert_eq!(buffer.register(&fast, 7)?, REFUSED);
        kunit_assert_eq!(request(|done| normal.initialize(1, true, done))?, REFUSED);
        // Each region still serves its own use, and that use only.
        kunit_assert_eq!(buffer.register(&normal, 7)?, NtStatus::SUCCESS);
        kunit_assert_eq!(
            request(|done| fast.initialize(1, true, done))?,
            NtStatus::SUCCESS
        );
        kunit_assert_eq!(buffer.register(&fast, 7)?, REFUSED);
        kunit_assert_eq!(request(|done| normal.initialize(1, true, done))?, REFUSED);
        kunit_assert_eq!(request(|done| fast.deregister(done))?, REFUSED);
        let buffer = buffer.lend(normal.lent());
        let posted = buffer.fast_register(&pair.b.qp, 1, REMOTE_READ)?;
        kunit_assert_eq!(posted, Err(INVALID));
        kunit_assert_eq!(pair.b.qp.invalidate_mr(1, &normal, 0), Err(INVALID));
        assert!(pair.b.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_mr_02_pieces_that_end_inside_pages_are_one_region() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, 4 * PAGE)?;
        peer.own.fill(0x12);
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let bytes = &buffer.bytes[100..3 * PAGE];
        let pieces = [200, 0, 56, PAGE - 356, 1, PAGE - 1, PAGE - 50, 50];
        let chain = Described::pieces(bytes, &pieces)?;
        let mr = mr(&pair.b, false)?;
        kunit_assert_eq!(register(&mr, &chain, bytes.len(), 7)?, NtStatus::SUCCESS);
        drop(chain);
        let at = buffer.addr() + 100;
        let len = bytes.len() as u32;
        kunit_assert_eq!(peer.write(at, mr.remote_token(), len)?, NtStatus::SUCCESS);
        assert!(buffer.has(0x12, 100, 3 * PAGE - 100));
        assert!(buffer.is_blank(0, 100));
        assert!(buffer.is_blank(3 * PAGE, PAGE));
        peer.own.fill(0);
        kunit_assert_eq!(
            peer.read(at + 250, mr.remote_token(), 20)?,
            NtStatus::SUCCESS
        );
        assert!(peer.own.has(0x12u8.wrapping_add(250), 0, 20));
        kunit_assert_eq!(
            peer.read(at + u64::from(len), mr.remote_token(), 1)?,
            REMOTE_RESOURCES
        );
        Ok(())
    }

    #[test]
    fn ndk_mr_02_vmalloc_memory_is_one_region() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, 16 * PAGE)?;
        peer.own.fill(0x22);
        let bytes = VVec::from_elem(0u8, 16 * PAGE, GFP_KERNEL)?;
        let chain = Described::pieces(&bytes[10..], &[5 * PAGE, 10 * PAGE, PAGE - 10])?;
        let mr = mr(&pair.b, false)?;
        let len = 16 * PAGE - 10;
        kunit_assert_eq!(register(&mr, &chain, len, 7)?, NtStatus::SUCCESS);
        // CAST: 64-bit addresses; a test's size.
        let (at, len) = (bytes.as_ptr().addr() as u64 + 10, len as u32);
        kunit_assert_eq!(peer.write(at, mr.remote_token(), len)?, NtStatus::SUCCESS);
        assert!(bytes[..10].iter().all(|b| *b == 0));
        kunit_assert_eq!(bytes[10..], peer.own.bytes[..16 * PAGE - 10]);
        let mut mr = mr;
        assert!(mr.close_and_wait()?);
        Ok(())
    }

    #[test]
    fn ndk_mr_02_the_base_is_only_an_index() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x32);
        let buffer = PageBuffer::plain(2 * PAGE)?;
        let mut chain = Described::pieces(&buffer.bytes[200..], &[PAGE, PAGE - 200])?;
        // CAST: 64-bit addresses.
        let by = (BASE as usize).wrapping_sub(buffer.addr() as usize);
        chain.displace(0, by);
        chain.displace(1, by);
        let mr = mr(&pair.b, false)?;
        kunit_assert_eq!(register(&mr, &chain, 2 * PAGE - 200, 7)?, NtStatus::SUCCESS);
        kunit_assert_eq!(
            peer.write(BASE + 200, mr.remote_token(), PAGE as u32)?,
            NtStatus::SUCCESS
        );
        assert!(buffer.is_blank(0, 200));
        assert!(buffer.has(0x32, 200, PAGE));
        assert!(buffer.is_blank(PAGE + 200, PAGE - 200));
        // The address of the memory is not an address of the region.
        kunit_assert_eq!(
            peer.write(buffer.addr() + 200, mr.remote_token(), 8)?,
            REMOTE_RESOURCES
        );
        Ok(())
    }

    #[test]
    fn ndk_mr_02_a_chain_with_a_gap_is_refused() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let mr = mr(&pair.b, false)?;
        for by in cases([PAGE, PAGE.wrapping_neg(), 1, BASE as usize]) {
            let mut chain = Described::pieces(&buffer.bytes, &[PAGE, PAGE, 2 * PAGE])?;
            chain.displace(1, by);
            kunit_assert_eq!(register(&mr, &chain, 4 * PAGE, 7)?, INVALID);
            kunit_assert_eq!(register(&mr, &chain, PAGE + 1, 7)?, INVALID);
        }
        // The addresses would wrap.
        let mut chain = Described::new(&buffer.bytes)?;
        // CAST: 64-bit addresses.
        let to = (PAGE.wrapping_neg()).wrapping_sub(buffer.addr() as usize);
        chain.displace(0, to);
        kunit_assert_eq!(register(&mr, &chain, 4 * PAGE, 7)?, INVALID);
        // A gap behind the range does not matter.
        let mut chain = Described::pieces(&buffer.bytes, &[PAGE, PAGE, 2 * PAGE])?;
        chain.displace(2, PAGE);
        kunit_assert_eq!(register(&mr, &chain, 2 * PAGE, 7)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_mr_03_the_length_is_within_the_chain_and_the_adapters_limit() -> Result {
        let mut attr = HostAttr::PLAIN;
        attr.limits.registration = 3 * PAGE as u64;
        let test_host = TestHost::with(&attr)?;
        let pd = pd(&test_host.adapter)?;
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let mr = pd
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let short = Described::pieces(&buffer.bytes, &[PAGE, 100])?;
        let long = Described::new(&buffer.bytes)?;
        for (chain, len) in [
            (&short, 0),
            (&short, PAGE + 101),
            (&short, usize::MAX),
            (&long, 3 * PAGE + 1),
            (&long, 4 * PAGE),
        ] {
            kunit_assert_eq!(register(&mr, chain, len, 7)?, INVALID);
        }
        for (chain, len) in [(&short, 1), (&short, PAGE + 100), (&long, 3 * PAGE)] {
            kunit_assert_eq!(register(&mr, chain, len, 7)?, NtStatus::SUCCESS);
            kunit_assert_eq!(request(|done| mr.deregister(done))?, NtStatus::SUCCESS);
        }
        Ok(())
    }

    #[test]
    fn ndk_mr_03_the_region_ends_with_the_length() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::plain(2 * PAGE)?;
        let mr = mr(&pair.b, false)?;
        let chain = Described::new(&buffer.bytes)?;
        kunit_assert_eq!(register(&mr, &chain, PAGE + 10, 7)?, NtStatus::SUCCESS);
        let end = buffer.addr() + PAGE as u64 + 10;
        kunit_assert_eq!(
            peer.read(end - 20, mr.remote_token(), 20)?,
            NtStatus::SUCCESS
        );
        kunit_assert_eq!(
            peer.read(end - 20, mr.remote_token(), 21)?,
            REMOTE_RESOURCES
        );
        Ok(())
    }

    #[test]
    fn ndk_mr_05_the_chain_is_not_kept() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, 4 * PAGE)?;
        peer.own.fill(0x52);
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let other = PageBuffer::plain(4 * PAGE)?;
        let mr = mr(&pair.b, false)?;
        let mut chain = Described::pieces(&buffer.bytes, &[PAGE + 1, 3 * PAGE - 1])?;
        let slot = CallbackValue::new()?;
        let len = 4 * PAGE as u64;
        let answer = mr.register(chain.mdl(), len, 7, slot.callback()?);
        // The call has at most read the chain when it returns.
        assert!(matches!(answer, Ok(Progress::Pending)));
        kunit_assert_eq!(slot.wait(), Some(NtStatus::SUCCESS));
        // The descriptors describe other memory, and then are freed.
        chain.describe_again(&other.bytes);
        kunit_assert_eq!(
            peer.write(buffer.addr(), mr.remote_token(), len as u32)?,
            NtStatus::SUCCESS
        );
        drop(chain);
        assert!(buffer.has(0x52, 0, 4 * PAGE));
        assert!(other.is_blank(0, 4 * PAGE));
        kunit_assert_eq!(
            peer.read(buffer.addr(), mr.remote_token(), len as u32)?,
            NtStatus::SUCCESS
        );
        kunit_assert_eq!(request(|done| mr.deregister(done))?, NtStatus::SUCCESS);
        kunit_assert_eq!(slot.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_mr_06_deregistered_memory_is_out_of_reach() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x62);
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let mr = buffer.mr()?;
        let token = mr.remote_token();
        kunit_assert_eq!(peer.write(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        kunit_assert_eq!(request(|done| mr.deregister(done))?, NtStatus::SUCCESS);
        kunit_assert_eq!(request(|done| mr.deregister(done))?, REFUSED);
        // A second registration has another token.
        kunit_assert_eq!(buffer.register(mr, 7)?, NtStatus::SUCCESS);
        kunit_assert_eq!(buffer.register(mr, 7)?, REFUSED);
        assert!(mr.remote_token() != token);
        kunit_assert_eq!(
            peer.write(buffer.addr() + 8, mr.remote_token(), 8)?,
            NtStatus::SUCCESS
        );
        kunit_assert_eq!(peer.write(buffer.addr() + 16, token, 8)?, REMOTE_RESOURCES);
        assert!(buffer.has(0x62, 0, 8));
        assert!(buffer.has(0x62, 8, 8));
        assert!(buffer.is_blank(16, PAGE - 16));
        Ok(())
    }

    #[test]
    fn ndk_mr_06_deregistered_memory_is_out_of_reach_of_its_owner() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let sge = buffer.sge(0, 8)?;
        let mr = buffer.mr()?;
        kunit_assert_eq!(request(|done| mr.deregister(done))?, NtStatus::SUCCESS);
        pair.a.receive(1, &[])?;
        pair.b.send(2, &[sge], 0)?;
        assert!(pair.b.requests.next_is(2, NtStatus::ACCESS_VIOLATION));
        Ok(())
    }

    #[test]
    fn ndk_mr_06_what_is_not_registered_is_not_deregistered() -> Result {
        let pair = Pair::new()?;
        let [normal, fast] = [mr(&pair.b, false)?, mr(&pair.b, true)?];
        kunit_assert_eq!(request(|done| normal.deregister(done))?, REFUSED);
        kunit_assert_eq!(request(|done| fast.deregister(done))?, REFUSED);
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let token = registered(&pair.b, &buffer, REMOTE_READ)?;
        let fast = buffer.mr()?;
        kunit_assert_eq!(request(|done| fast.deregister(done))?, REFUSED);
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        kunit_assert_eq!(peer.read(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_mr_06_a_region_with_windows_is_not_deregistered() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let mr = buffer.mr()?;
        let [first, mut second] = [window(&pair.b)?, window(&pair.b)?];
        let range = (buffer.addr(), 64);
        let token = bound(&pair.b, &buffer, &first, range, REMOTE_READ)?;
        bound(&pair.b, &buffer, &second, range, REMOTE_WRITE)?;
        kunit_assert_eq!(request(|done| mr.deregister(done))?, REFUSED);
        // The refusal leaves all access as it was.
        kunit_assert_eq!(peer.read(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        kunit_assert_eq!(
            peer.read(buffer.addr(), mr.remote_token(), 8)?,
            NtStatus::SUCCESS
        );
        assert!(second.close_and_wait()?);
        kunit_assert_eq!(request(|done| mr.deregister(done))?, REFUSED);
        kunit_assert_eq!(pair.b.qp.invalidate_mw(1, &first, 0), Ok(()));
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(request(|done| mr.deregister(done))?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_mr_06_a_bind_that_was_cancelled_does_not_count() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let mw = window(&pair.b)?;
        hold(&pair.b)?;
        let range = (buffer.addr(), 64);
        let mr = buffer.mr()?;
        kunit_assert_eq!(pair.b.qp.bind(1, mr, &mw, range, REMOTE_READ), Ok(()));
        // The bind may still be carried out.
        kunit_assert_eq!(request(|done| mr.deregister(done))?, REFUSED);
        pair.b.qp.flush();
        kunit_assert_eq!(pair.b.requests.next()?.status, NtStatus::CANCELLED);
        assert!(pair.b.requests.next_is(1, NtStatus::CANCELLED));
        kunit_assert_eq!(request(|done| mr.deregister(done))?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_mr_07_initializations_run_in_parallel() -> Result {
        let mut attr = HostAttr::PLAIN;
        attr.limits.pages = 4;
        let pair = Pair::with(&attr, SIZES, SIZES)?;
        let regions = [(); 4].map(|()| mr(&pair.b, true));
        let mut slots = KVec::new();
        for region in &regions {
            let region = region.as_ref().map_err(|e| *e)?;
            let slot = CallbackValue::new()?;
            let answer = region.initialize(4, true, slot.callback()?);
            assert!(matches!(answer, Ok(Progress::Pending)));
            slots.push(slot, GFP_KERNEL)?;
        }
        for slot in &slots {
            kunit_assert_eq!(slot.wait(), Some(NtStatus::SUCCESS));
        }
        for region in regions {
            let buffer = PageBuffer::plain(4 * PAGE)?.lend(region?);
            registered(&pair.b, &buffer, REMOTE_READ)?;
            invalidated(&pair.b, buffer.mr()?)?;
        }
        assert!(slots.iter().all(|slot| slot.calls.get() == 1));
        Ok(())
    }

    #[test]
    fn ndk_mr_07_the_page_count_has_limits_and_is_fixed() -> Result {
        let mut attr = HostAttr::PLAIN;
        attr.limits.pages = 4;
        let pair = Pair::with(&attr, SIZES, SIZES)?;
        let buffer = PageBuffer::plain(4 * PAGE)?.lend(mr(&pair.b, true)?);
        let region = buffer.mr()?;
        let initialize = |pages| request(|done| region.initialize(pages, true, done));
        kunit_assert_eq!(initialize(5)?, NtStatus::IMPLEMENTATION_LIMIT);
        kunit_assert_eq!(initialize(u32::MAX)?, NtStatus::IMPLEMENTATION_LIMIT);
        kunit_assert_eq!(initialize(0)?, INVALID);
        // The region cannot be registered before its initialization.
        let posted = buffer.fast_register(&pair.b.qp, 1, REMOTE_READ)?;
        kunit_assert_eq!(posted, Err(INVALID));
        assert!(pair.b.requests.stays_empty());
        kunit_assert_eq!(initialize(3)?, NtStatus::SUCCESS);
        kunit_assert_eq!(initialize(4)?, REFUSED);
        let posted = buffer.fast_register(&pair.b.qp, 1, REMOTE_READ)?;
        kunit_assert_eq!(posted, Err(INVALID));
        Ok(())
    }

    #[test]
    fn ndk_mr_11_closing_ends_access() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x72);
        let mut normal = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let mut fast = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        registered(&pair.b, &fast, REMOTE_WRITE)?;
        let (far, near) = pair.second()?;
        let mut other = RemotePeer::new(&far, PAGE)?;
        other.own.fill(0x82);
        for (peer, buffer) in [(&peer, &mut normal), (&other, &mut fast)] {
            let token = buffer.mr()?.remote_token();
            let at = buffer.addr();
            kunit_assert_eq!(peer.write(at, token, 8)?, NtStatus::SUCCESS);
            let mr = buffer.mr.as_mut().ok_or(EINVAL)?;
            assert!(mr.close_and_wait()?);
            kunit_assert_eq!(peer.write(at + 8, token, 8)?, REMOTE_RESOURCES);
            assert!(buffer.is_blank(8, PAGE - 8));
        }
        drop(near);
        Ok(())
    }

    #[test]
    fn ndk_mr_11_a_closed_region_is_written_to_no_more() -> Result {
        // More than one run of a transport moves, so that the close comes in between.
        const LEN: usize = 2 << 20;
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(LEN, 0)?;
        from.fill(0x92);
        let mut to = pair.b.buffer(LEN, 7)?;
        hold(&pair.a)?;
        for _ in 0..8 {
            let list = [from.sge(0, LEN as u32)?];
            let posted = pair.a.qp.write(1, list.into_iter(), to.remote(0)?, SILENT);
            kunit_assert_eq!(posted, Ok(()));
        }
        release(&pair.b)?;
        let mr = to.mr.as_mut().ok_or(EINVAL)?;
        assert!(mr.close_and_wait()?);
        // The pages are the consumer's again.
        to.bytes.fill(0);
        pair.test_host.flush_work();
        assert!(to.is_blank(0, LEN));
        Ok(())
    }
}
