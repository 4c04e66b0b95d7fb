// SPDX-License-Identifier: GPL-2.0

//! Fast registrations: pages, places and tokens (FREG-01 to FREG-05, FREG-09 to FREG-12).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_register)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            abi::numbers::operation,
            status::NtStatus,
            tests::{
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::Pair,
                remote_access::{
                    hold,
                    invalidated,
                    is_over,
                    registered,
                    release,
                    takes_requests,
                    RegRequest,
                    RemotePeer,
                    BASE,
                    LOCAL_WRITE,
                    REMOTE_READ,
                    REMOTE_RESOURCES,
                    REMOTE_WRITE, //
                }, //
            }, //
        },
        sys::mdl::PAGE_SIZE, //
    };

    const RIGHTS: u32 = REMOTE_READ | REMOTE_WRITE;
    const INVALID: Result<(), NtStatus> = Err(NtStatus::INVALID_PARAMETER);

    #[test]
    fn ndk_freg_01_pages_that_are_apart_are_one_region() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, 4 * PAGE)?;
        for (at, seed) in [0x10, 0x30, 0x50].into_iter().enumerate() {
            peer.own.paint(seed, at * PAGE, PAGE);
        }
        let first = PageBuffer::fast(&pair.b.pd, 4 * PAGE, true)?;
        let second = PageBuffer::plain(2 * PAGE)?;
        let mr = first.mr()?;
        let what = RegRequest {
            pages: &[second.page(1), first.page(2), second.page(0)],
            offset: 0,
            base: BASE,
            len: 3 * PAGE_SIZE,
        };
        kunit_assert_eq!(what.register(&pair.b, mr, 7, RIGHTS), Ok(()));
        let done = pair.b.requests.next()?;
        kunit_assert_eq!(done.request_context, 7);
        kunit_assert_eq!(done.status, NtStatus::SUCCESS);
        kunit_assert_eq!(done.operation, operation::FAST_REGISTER);
        kunit_assert_eq!(done.qp_context, 0xB);
        let token = mr.remote_token();
        kunit_assert_eq!(peer.write(BASE, token, 3 * PAGE as u32)?, NtStatus::SUCCESS);
        assert!(second.has(0x10, PAGE, PAGE));
        assert!(first.has(0x30, 2 * PAGE, PAGE));
        assert!(second.has(0x50, 0, PAGE));
        assert!(first.is_blank(0, 2 * PAGE));
        assert!(first.is_blank(3 * PAGE, PAGE));
        // Across the border of two pages that are apart.
        let status = peer.read(BASE + PAGE_SIZE - 16, token, 32)?;
        kunit_assert_eq!(status, NtStatus::SUCCESS);
        assert!(peer.own.has(0x10u8.wrapping_sub(16), 0, 16));
        assert!(peer.own.has(0x30, 16, 16));
        Ok(())
    }

    #[test]
    fn ndk_freg_02_more_pages_than_were_initialized_are_refused() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, 2 * PAGE, true)?;
        let more = PageBuffer::plain(4 * PAGE)?;
        let mr = buffer.mr()?;
        let before = mr.remote_token();
        let what = |pages| RegRequest {
            pages,
            offset: 0,
            base: BASE,
            len: PAGE_SIZE,
        };
        let three = [more.page(0), more.page(1), more.page(2)];
        kunit_assert_eq!(what(&three).register(&pair.b, mr, 1, RIGHTS), INVALID);
        kunit_assert_eq!(what(&[]).register(&pair.b, mr, 1, RIGHTS), INVALID);
        kunit_assert_eq!(mr.remote_token(), before);
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        kunit_assert_eq!(what(&three[..2]).register(&pair.b, mr, 2, RIGHTS), Ok(()));
        assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_freg_03_the_region_begins_in_the_first_page_and_ends_with_the_last() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, 2 * PAGE)?;
        peer.own.fill(0x21);
        let buffer = PageBuffer::fast(&pair.b.pd, 2 * PAGE, true)?;
        let mr = buffer.mr()?;
        let what = |offset: u32, len| {
            RegRequest {
                pages: &[buffer.page(0), buffer.page(1)],
                offset,
                base: BASE + u64::from(offset),
                len,
            }
            .register(&pair.b, mr, 3, RIGHTS)
        };
        let most = 2 * PAGE_SIZE - 100;
        kunit_assert_eq!(what(100, most + 1), INVALID);
        kunit_assert_eq!(what(100, u64::MAX), INVALID);
        kunit_assert_eq!(what(PAGE as u32, PAGE_SIZE), INVALID);
        kunit_assert_eq!(what(u32::MAX, 1), INVALID);
        assert!(pair.b.requests.stays_empty());
        kunit_assert_eq!(what(100, most), Ok(()));
        assert!(pair.b.requests.next_is(3, NtStatus::SUCCESS));
        let token = mr.remote_token();
        // CAST: below two pages.
        kunit_assert_eq!(
            peer.write(BASE + 100, token, most as u32)?,
            NtStatus::SUCCESS
        );
        assert!(buffer.is_blank(0, 100));
        assert!(buffer.has(0x21, 100, 2 * PAGE - 100));
        kunit_assert_eq!(peer.write(BASE + 99, token, 1)?, REMOTE_RESOURCES);
        assert!(buffer.is_blank(0, 100));
        Ok(())
    }

    #[test]
    fn ndk_freg_03_a_shorter_region_does_not_reach_to_the_end_of_its_pages() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x21);
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let what = RegRequest {
            pages: &[buffer.page(0)],
            offset: 8,
            base: BASE + 8,
            len: 100,
        };
        kunit_assert_eq!(what.register(&pair.b, buffer.mr()?, 3, RIGHTS), Ok(()));
        assert!(pair.b.requests.next_is(3, NtStatus::SUCCESS));
        let token = buffer.mr()?.remote_token();
        kunit_assert_eq!(peer.write(BASE + 107, token, 1)?, NtStatus::SUCCESS);
        assert!(buffer.has(0x21, 107, 1));
        kunit_assert_eq!(peer.write(BASE + 107, token, 2)?, REMOTE_RESOURCES);
        assert!(buffer.is_blank(108, PAGE - 108));
        assert!(buffer.is_blank(0, 107));
        assert!(is_over(&pair));
        Ok(())
    }

    #[test]
    fn ndk_freg_04_the_base_address_has_the_offset_of_the_first_byte() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mr = buffer.mr()?;
        let what = |base, offset| {
            RegRequest {
                pages: &[buffer.page(0)],
                offset,
                base,
                len: 64,
            }
            .register(&pair.b, mr, 4, RIGHTS)
        };
        for (base, offset) in cases([
            (0, 5),
            (5, 0),
            (BASE, 5),
            (BASE + 5, 0),
            (BASE + 6, 5),
            // The addresses of the region would wrap.
            (u64::MAX - 15, PAGE as u32 - 16),
        ]) {
            kunit_assert_eq!(what(base, offset), INVALID);
        }
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        for (base, offset) in cases([(0, 0), (5, 5), (PAGE_SIZE + 5, 5), (BASE + 4000, 4000)]) {
            kunit_assert_eq!(what(base, offset), Ok(()));
            assert!(pair.b.requests.next_is(4, NtStatus::SUCCESS));
            invalidated(&pair.b, mr)?;
        }
        Ok(())
    }

    #[test]
    fn ndk_freg_05_base_zero_is_an_address_like_any_other() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x31);
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mr = buffer.mr()?;
        let register = |context, base| {
            let what = RegRequest {
                pages: &[buffer.page(0)],
                offset: 0,
                base,
                len: PAGE_SIZE,
            };
            what.register(&pair.b, mr, context, RIGHTS)
        };
        kunit_assert_eq!(register(5, 0), Ok(()));
        assert!(pair.b.requests.next_is(5, NtStatus::SUCCESS));
        kunit_assert_eq!(peer.write(10, mr.remote_token(), 20)?, NtStatus::SUCCESS);
        assert!(buffer.is_blank(0, 10));
        assert!(buffer.has(0x31, 10, 20));
        invalidated(&pair.b, mr)?;
        // With another base the first byte is not at address zero.
        kunit_assert_eq!(register(6, BASE), Ok(()));
        assert!(pair.b.requests.next_is(6, NtStatus::SUCCESS));
        kunit_assert_eq!(peer.write(100, mr.remote_token(), 20)?, REMOTE_RESOURCES);
        assert!(buffer.is_blank(30, PAGE - 30));
        Ok(())
    }

    #[test]
    fn ndk_freg_09_the_new_token_is_there_before_the_completion() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mr = buffer.mr()?;
        let before = mr.remote_token();
        hold(&pair.b)?;
        kunit_assert_eq!(buffer.fast_register(&pair.b.qp, 9, RIGHTS)?, Ok(()));
        let token = mr.remote_token();
        assert!(token != before);
        assert!(pair.b.requests.stays_empty());
        release(&pair.a)?;
        assert!(pair.b.requests.next_is(9, NtStatus::SUCCESS));
        kunit_assert_eq!(mr.remote_token(), token);
        kunit_assert_eq!(peer.read(buffer.addr(), token, 64)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_freg_10_a_stale_token_fails() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x41);
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mr = buffer.mr()?;
        let initial = mr.remote_token();
        let first = registered(&pair.b, &buffer, RIGHTS)?;
        invalidated(&pair.b, mr)?;
        let second = registered(&pair.b, &buffer, RIGHTS)?;
        let index = |token: crate::rdma::values::token::Token| token.raw() >> 8;
        kunit_assert_eq!(index(initial), index(first));
        kunit_assert_eq!(index(first), index(second));
        assert!(initial != first);
        assert!(first != second);
        assert!(initial != second);
        kunit_assert_eq!(peer.write(buffer.addr(), second, 8)?, NtStatus::SUCCESS);
        kunit_assert_eq!(peer.write(buffer.addr() + 8, first, 8)?, REMOTE_RESOURCES);
        assert!(buffer.has(0x41, 0, 8));
        assert!(buffer.is_blank(8, PAGE - 8));
        assert!(is_over(&pair));
        Ok(())
    }

    #[test]
    fn ndk_freg_10_each_of_many_registrations_has_another_token() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mr = buffer.mr()?;
        let mut last = mr.remote_token();
        // More registrations than the key byte has values.
        for _ in 0..300 {
            let token = registered(&pair.b, &buffer, RIGHTS)?;
            assert!(token != last);
            kunit_assert_eq!(token.raw() >> 8, last.raw() >> 8);
            last = token;
            invalidated(&pair.b, mr)?;
        }
        Ok(())
    }

    #[test]
    fn ndk_freg_11_the_local_token_stays() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let to = pair.a.buffer(PAGE, 1)?;
        let mr = buffer.mr()?;
        let kept = mr.local_token();
        for at in cases(0..3) {
            registered(&pair.b, &buffer, RIGHTS)?;
            kunit_assert_eq!(mr.local_token(), kept);
            assert!(mr.remote_token() != kept);
            pair.a.receive(at, &[to.sge(0, 100)?])?;
            pair.b.send(at, &[buffer.sge_by(kept, 0, 100)], 0)?;
            assert!(pair.b.requests.next_is(at, NtStatus::SUCCESS));
            assert!(pair.a.receives.next_is(at, NtStatus::SUCCESS));
            invalidated(&pair.b, mr)?;
        }
        // The local token is for the owner alone; a peer cannot name the region by it.
        registered(&pair.b, &buffer, RIGHTS)?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        kunit_assert_eq!(peer.read(buffer.addr(), kept, 8)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_freg_11_the_kept_local_token_is_dead_between_registrations() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mr = buffer.mr()?;
        let kept = mr.local_token();
        registered(&pair.b, &buffer, LOCAL_WRITE)?;
        invalidated(&pair.b, mr)?;
        pair.a.receive(1, &[])?;
        pair.b.send(2, &[buffer.sge_by(kept, 0, 100)], 0)?;
        assert!(pair.b.requests.next_is(2, NtStatus::ACCESS_VIOLATION));
        Ok(())
    }

    #[test]
    fn ndk_freg_12_a_region_that_is_valid_is_not_registered_again() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        registered(&pair.b, &buffer, RIGHTS)?;
        kunit_assert_eq!(buffer.fast_register(&pair.b.qp, 12, RIGHTS)?, Ok(()));
        let done = pair.b.requests.next()?;
        kunit_assert_eq!(done.request_context, 12);
        kunit_assert_eq!(done.operation, operation::FAST_REGISTER);
        kunit_assert_eq!(done.status, NtStatus::INVALID_DEVICE_REQUEST);
        assert!(is_over(&pair));
        Ok(())
    }
}
