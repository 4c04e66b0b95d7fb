// SPDX-License-Identifier: GPL-2.0

//! Logical addresses and the privileged token (LAM-01 to LAM-04, PRIV-01, PRIV-02).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_logical)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            abi::lam_tests::{
                Lam,
                Opened,
                LAM_HEAD, //
            },
            memory::build_lam,
            status::NtStatus,
            tests::{
                completion::log_status,
                host::{
                    TestHost,
                    NAME, //
                },
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::Pair,
                remote_access::{
                    is_over,
                    FENCE,
                    INLINE,
                    LOCAL_INVALIDATE,
                    REMOTE_RESOURCES, //
                }, //
            }, //
        },
        rdma::values::{
            token::Token,
            work::RemoteAddr, //
        },
        sys::{
            fault::FailNth,
            mdl::Described,
            sge::Sge,
            unaligned::Room, //
        }, //
    };

    const SUCCESS: i32 = 0;
    const INVALID_PARAMETER: i32 = NtStatus::INVALID_PARAMETER.raw();
    const BUFFER_TOO_SMALL: i32 = 0xC000_0023u32 as i32;

    /// A host, and a consumer in C that goes before the host.
    fn opened() -> Result<(TestHost, Opened)> {
        let test_host = TestHost::new()?;
        let opened = Opened::new(&test_host.context, NAME).map_err(log_status)?;
        Ok((test_host, opened))
    }

    #[test]
    fn ndk_lam_01_pages_and_the_first_offset() -> Result {
        let (_site, adapter) = opened()?;
        let buffer = PageBuffer::plain(4 * PAGE)?;
        // First byte, length, and number of pages.
        for (at, len, pages) in cases([
            (0, 1, 1),
            (0, PAGE, 1),
            (0, PAGE + 1, 2),
            (1, PAGE, 2),
            (PAGE - 1, 2, 2),
            (PAGE + 100, 2 * PAGE, 3),
            (0, 4 * PAGE, 4),
        ]) {
            let chain = Described::new(&buffer.bytes[at..at + len])?;
            let mut lam = Lam::new(8)?;
            let mut size = lam.size();
            let (status, offset) =
                adapter.build_lam(&chain, len as u64, Some(&mut lam), &mut size)?;
            kunit_assert_eq!(status, SUCCESS);
            kunit_assert_eq!(offset as usize, at % PAGE);
            let want = (0..pages).map(|page| buffer.page(at / PAGE + page));
            assert!(lam.pages().iter().copied().eq(want));
            assert!(lam.is_unwritten_from(pages));
        }
        Ok(())
    }

    #[test]
    fn ndk_lam_01_a_chain_of_pieces_that_end_inside_pages() -> Result {
        let (_site, adapter) = opened()?;
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let bytes = &buffer.bytes[100..3 * PAGE];
        let pieces = [200, 0, 56, PAGE - 356, 1, PAGE - 1, PAGE - 50, 50];
        let pieces = Described::pieces(bytes, &pieces)?;
        let mut lam = Lam::new(8)?;
        let mut size = lam.size();
        let len = bytes.len() as u64;
        kunit_assert_eq!(
            adapter.build_lam(&pieces, len, Some(&mut lam), &mut size)?,
            (SUCCESS, 100)
        );
        kunit_assert_eq!(
            lam.pages(),
            [buffer.page(0), buffer.page(1), buffer.page(2)]
        );
        // Less than the whole chain.
        let mut lam = Lam::new(8)?;
        let less = adapter.build_lam(&pieces, 300, Some(&mut lam), &mut size)?;
        kunit_assert_eq!(less, (SUCCESS, 100));
        kunit_assert_eq!(lam.pages(), [buffer.page(0)]);
        Ok(())
    }

    #[test]
    fn ndk_lam_01_a_range_that_is_not_contiguous_fails() -> Result {
        let (_site, adapter) = opened()?;
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let mut chain = Described::pieces(&buffer.bytes, &[PAGE, PAGE, 2 * PAGE])?;
        let mut lam = Lam::new(8)?;
        let mut size = lam.size();
        chain.displace(2, PAGE);
        let mut build = |chain: &Described, len: usize| {
            adapter.build_lam(chain, len as u64, Some(&mut lam), &mut size)
        };
        kunit_assert_eq!(build(&chain, 4 * PAGE)?.0, INVALID_PARAMETER);
        kunit_assert_eq!(build(&chain, 2 * PAGE + 1)?.0, INVALID_PARAMETER);
        // The gap is behind the range.
        kunit_assert_eq!(build(&chain, 2 * PAGE)?.0, SUCCESS);
        chain.displace(2, PAGE.wrapping_neg());
        kunit_assert_eq!(build(&chain, 4 * PAGE)?.0, SUCCESS);
        // An empty range, and a range longer than the chain.
        kunit_assert_eq!(build(&chain, 0)?.0, INVALID_PARAMETER);
        kunit_assert_eq!(build(&chain, 4 * PAGE + 1)?.0, INVALID_PARAMETER);
        let mut lam = Lam::new(8)?;
        kunit_assert_eq!(adapter.build_lam_of_nothing(&mut lam)?, INVALID_PARAMETER);
        assert!(lam.is_unwritten());
        Ok(())
    }

    #[test]
    fn ndk_lam_02_a_small_buffer_learns_the_size_needed() -> Result {
        let (_site, adapter) = opened()?;
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let chain = Described::new(&buffer.bytes[8..3 * PAGE + 8])?;
        let len = 3 * PAGE as u64;
        let need = (LAM_HEAD + 4 * 8) as u32;
        let mut lam = Lam::new(8)?;
        for given in cases([
            0,
            1,
            LAM_HEAD as u32 - 1,
            LAM_HEAD as u32,
            need - 8,
            need - 1,
        ]) {
            let mut size = given;
            let (status, offset) = adapter.build_lam(&chain, len, Some(&mut lam), &mut size)?;
            kunit_assert_eq!(status, BUFFER_TOO_SMALL);
            kunit_assert_eq!(size, need);
            assert!(lam.is_unwritten());
            kunit_assert_eq!(offset, u32::MAX);
        }
        // Without a buffer the given size does not matter.
        let mut size = 1000;
        let (status, _) = adapter.build_lam(&chain, len, None, &mut size)?;
        kunit_assert_eq!(status, BUFFER_TOO_SMALL);
        kunit_assert_eq!(size, need);
        let built = adapter.build_lam(&chain, len, Some(&mut lam), &mut size)?;
        kunit_assert_eq!(built, (SUCCESS, 8));
        kunit_assert_eq!(size, need);
        kunit_assert_eq!(lam.pages().len(), 4);
        assert!(lam.is_unwritten_from(4));
        Ok(())
    }

    #[test]
    fn ndk_lam_03_a_failure_leaves_nothing_behind() -> Result {
        let (_site, adapter) = opened()?;
        let buffer = PageBuffer::plain(4 * PAGE)?;
        let mut chain = Described::pieces(&buffer.bytes, &[3 * PAGE, PAGE])?;
        let said = chain.words()?;
        let mut lam = Lam::new(8)?;
        let mut small = (LAM_HEAD + 3 * 8) as u32;
        let len = 4 * PAGE as u64;
        let failed = adapter.build_lam(&chain, len, Some(&mut lam), &mut small)?;
        kunit_assert_eq!(failed.0, BUFFER_TOO_SMALL);
        // The last piece is displaced: the pieces before it are not left mapped.
        chain.displace(1, 1);
        let mut size = lam.size();
        let failed = adapter.build_lam(&chain, len, Some(&mut lam), &mut size)?;
        kunit_assert_eq!(failed.0, INVALID_PARAMETER);
        assert!(lam.is_unwritten());
        chain.displace(1, 1usize.wrapping_neg());
        kunit_assert_eq!(chain.words()?[..], said[..]);
        let built = adapter.build_lam(&chain, len, Some(&mut lam), &mut size)?;
        kunit_assert_eq!(built, (SUCCESS, 0));
        kunit_assert_eq!(lam.pages().len(), 4);
        Ok(())
    }

    #[test]
    fn ndk_lam_03_there_is_no_memory_to_run_out_of() -> Result {
        let (_site, adapter) = opened()?;
        let buffer = PageBuffer::plain(2 * PAGE)?;
        let chain = Described::new(&buffer.bytes)?;
        let mut lam = Lam::new(2)?;
        let mut size = lam.size();
        let fails = FailNth::from_nth(1);
        let len = 2 * PAGE as u64;
        let (status, _) = adapter.build_lam(&chain, len, Some(&mut lam), &mut size)?;
        let struck = fails.as_ref().is_some_and(FailNth::struck);
        drop(fails);
        kunit_assert_eq!(status, SUCCESS);
        assert!(!struck);
        kunit_assert_eq!(lam.pages().len(), 2);
        Ok(())
    }

    #[test]
    fn ndk_lam_04_a_release_leaves_the_chain_as_it_was() -> Result {
        let (_site, adapter) = opened()?;
        let mut buffer = PageBuffer::plain(4 * PAGE)?;
        buffer.fill(0x44);
        let chain = Described::pieces(&buffer.bytes, &[PAGE + 10, 3 * PAGE - 10])?;
        let said = chain.words()?;
        for _ in 0..2 {
            let mut lam = Lam::new(4)?;
            let mut size = lam.size();
            let len = 4 * PAGE as u64;
            let built = adapter.build_lam(&chain, len, Some(&mut lam), &mut size)?;
            kunit_assert_eq!(built, (SUCCESS, 0));
            kunit_assert_eq!(lam.pages().len(), 4);
            kunit_assert_eq!(chain.words()?[..], said[..]);
            adapter.release_lam(&mut lam)?;
            kunit_assert_eq!(chain.words()?[..], said[..]);
            assert!(buffer.has(0x44, 0, 4 * PAGE));
        }
        Ok(())
    }

    /// A list with the privileged token over the logical addresses of `bytes`.
    fn privileged(token: Token, bytes: &[u8]) -> Result<KVec<Sge>> {
        let chain = Described::new(bytes)?;
        let mut pages = [0u64; 8];
        let built = build_lam(&chain.mdl(), bytes.len() as u64, Room::of(&mut pages));
        let built = built.map_err(|_| EINVAL)?;
        let mut list = KVec::new();
        let (mut skip, mut left) = (built.offset, bytes.len() as u32);
        for page in pages.iter().take(built.pages as usize) {
            let len = left.min(PAGE as u32 - skip);
            let addr = *page + u64::from(skip);
            list.push(Sge::new(addr, len, token), GFP_KERNEL)?;
            left -= len;
            skip = 0;
        }
        Ok(list)
    }

    #[test]
    fn ndk_priv_01_logical_addresses_need_no_registration() -> Result {
        let pair = Pair::new()?;
        // Pages that are contiguous in the kernel's addresses only.
        let mut from = VVec::from_elem(0u8, 3 * PAGE, GFP_KERNEL)?;
        let to = VVec::from_elem(0u8, 3 * PAGE, GFP_KERNEL)?;
        for (at, byte) in from.iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        let (part, len) = (100..2 * PAGE + 300, 2 * PAGE + 200);
        let source = privileged(pair.a.pd.privileged_token(), &from[part.clone()])?;
        let sink = privileged(pair.b.pd.privileged_token(), &to[part.clone()])?;
        kunit_assert_eq!(source.len(), 3);
        kunit_assert_eq!(sink.len(), 3);
        pair.b.receive(1, &sink)?;
        pair.a.send(2, &source, 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        kunit_assert_eq!(got.bytes as usize, len);
        kunit_assert_eq!(to[part.clone()], from[part.clone()]);
        let rest = [&to[..part.start], &to[part.end..]];
        assert!(rest.iter().all(|bytes| bytes.iter().all(|b| *b == 0)));
        // Written from, and read into.
        let there = pair.b.buffer(4 * PAGE, 7)?;
        let posted = pair
            .a
            .qp
            .write(3, source.iter().copied(), there.remote(0)?, 0);
        kunit_assert_eq!(posted, Ok(()));
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        kunit_assert_eq!(there.bytes[..len], from[part]);
        let back = VVec::from_elem(0u8, PAGE, GFP_KERNEL)?;
        let sink = privileged(pair.a.pd.privileged_token(), &back)?;
        let posted = pair.a.qp.read(4, sink.iter().copied(), there.remote(0)?, 0);
        kunit_assert_eq!(posted, Ok(()));
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        kunit_assert_eq!(back[..], there.bytes[..PAGE]);
        Ok(())
    }

    #[test]
    fn ndk_priv_02_it_is_no_token_for_a_peer() -> Result {
        for (write, flags) in cases([
            (true, 0),
            (true, FENCE),
            (true, INLINE),
            (false, 0),
            (false, FENCE),
            (false, LOCAL_INVALIDATE),
        ]) {
            let pair = Pair::new()?;
            let own = PageBuffer::fast(&pair.a.pd, PAGE, false)?;
            crate::ndk::tests::remote_access::registered(&pair.a, &own, 0x10)?;
            let mut victim = pair.b.buffer(PAGE, 7)?;
            victim.fill(0x22);
            let to = RemoteAddr {
                addr: victim.addr(),
                token: pair.b.pd.privileged_token(),
            };
            let list = [own.sge(0, 8)?];
            let list = match flags & INLINE {
                0 => list,
                _ => [own.sge_by(pair.a.pd.privileged_token(), 0, 8)],
            };
            let posted = match write {
                true => pair.a.qp.write(1, list.into_iter(), to, flags),
                false => pair.a.qp.read(1, list.into_iter(), to, flags),
            };
            kunit_assert_eq!(posted, Ok(()));
            assert!(pair.a.requests.next_is(1, REMOTE_RESOURCES));
            assert!(victim.has(0x22, 0, PAGE));
            assert!(own.is_blank(0, PAGE));
            assert!(is_over(&pair));
        }
        Ok(())
    }

    #[test]
    fn ndk_priv_02_a_peer_cannot_invalidate_it() -> Result {
        let pair = Pair::new()?;
        let token = pair.b.pd.privileged_token();
        pair.b.receive(1, &[])?;
        let list = [].into_iter();
        kunit_assert_eq!(pair.a.qp.send_and_invalidate(2, list, 0, token), Ok(()));
        assert!(pair.a.requests.next_is(2, REMOTE_RESOURCES));
        assert!(pair.b.receives.next_is(1, NtStatus::INVALID_DEVICE_REQUEST));
        assert!(is_over(&pair));
        Ok(())
    }

    #[test]
    fn ndk_priv_02_no_object_has_it() -> Result {
        let pair = Pair::new()?;
        let token = pair.b.pd.privileged_token();
        let normal = pair.b.buffer(PAGE, 7)?;
        let fast = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mw = crate::ndk::tests::remote_access::window(&pair.b)?;
        for mr in [normal.mr()?, fast.mr()?] {
            assert!(mr.local_token() != token);
            assert!(mr.remote_token() != token);
        }
        assert!(mw.remote_token() != token);
        Ok(())
    }

    #[test]
    fn ndk_read_08_the_adapter_says_that_sinks_need_no_flag() -> Result {
        const SINK_NOT_REQUIRED: u32 = 0x2;
        let (_site, adapter) = opened()?;
        assert!(adapter.flags()? & SINK_NOT_REQUIRED != 0);
        Ok(())
    }
}
