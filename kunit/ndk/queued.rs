// SPDX-License-Identifier: GPL-2.0

//! Registrations and invalidations of one region that wait in one queue (FREG-01, FREG-10).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_queued)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            status::NtStatus,
            tests::{
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::{
                    Pair,
                    TestSide, //
                },
                remote_access::{
                    hold,
                    is_over,
                    release,
                    RegRequest,
                    RemotePeer,
                    BASE,
                    FENCE,
                    LOCAL_WRITE,
                    REMOTE_READ,
                    REMOTE_RESOURCES,
                    REMOTE_WRITE,
                    SILENT, //
                }, //
            }, //
        },
        sys::{
            mdl::PAGE_SIZE,
            sge::Sge, //
        }, //
    };

    const ROUNDS: usize = 4;

    #[test]
    fn ndk_freg_01_each_queued_registration_has_pages_of_its_own() -> Result {
        let pair = Pair::new()?;
        let mut theirs = pair.b.buffer(ROUNDS * PAGE, 2)?;
        for at in 0..ROUNDS {
            // CAST: a few.
            theirs.paint(0x11 * (at as u8 + 1), at * PAGE, PAGE);
        }
        let buffer = PageBuffer::fast(&pair.a.pd, 2 * ROUNDS * PAGE, false)?;
        let mr = buffer.mr()?;
        hold(&pair.a)?;
        for at in cases(0..ROUNDS) {
            // Every second page, the last first; each time at the same addresses.
            let what = RegRequest {
                pages: &[buffer.page(2 * (ROUNDS - at) - 1)],
                offset: 0,
                base: BASE,
                len: PAGE_SIZE,
            };
            kunit_assert_eq!(what.register(&pair.a, mr, 1, SILENT | LOCAL_WRITE), Ok(()));
            let into = Sge::new(BASE, PAGE as u32, mr.local_token());
            let from = theirs.remote(at * PAGE)?;
            kunit_assert_eq!(pair.a.qp.read(2, [into].into_iter(), from, SILENT), Ok(()));
            kunit_assert_eq!(pair.a.qp.invalidate_mr(3, mr, FENCE), Ok(()));
        }
        assert!(pair.a.requests.stays_empty());
        assert!(buffer.is_blank(0, 2 * ROUNDS * PAGE));
        release(&pair.b)?;
        for _ in 0..ROUNDS {
            assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        }
        for at in cases(0..ROUNDS) {
            let page = 2 * (ROUNDS - at) - 1;
            // CAST: a few.
            assert!(buffer.has(0x11 * (at as u8 + 1), page * PAGE, PAGE));
            assert!(buffer.is_blank((page - 1) * PAGE, PAGE));
        }
        Ok(())
    }

    #[test]
    fn ndk_freg_10_each_queued_registration_has_a_token_of_its_own() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::fast(&pair.b.pd, ROUNDS * PAGE, true)?;
        let mr = buffer.mr()?;
        let mut tokens = KVec::new();
        hold(&pair.b)?;
        for at in cases(0..ROUNDS) {
            let what = RegRequest {
                pages: &[buffer.page(at)],
                offset: 0,
                base: BASE,
                len: PAGE_SIZE,
            };
            kunit_assert_eq!(what.register(&pair.b, mr, 1, REMOTE_WRITE), Ok(()));
            tokens.push(mr.remote_token(), GFP_KERNEL)?;
            // Later requests wait until the peer has used the token.
            hold(&pair.b)?;
            kunit_assert_eq!(pair.b.qp.invalidate_mr(3, mr, 0), Ok(()));
        }
        assert!(pair.b.requests.stays_empty());
        for at in cases(0..ROUNDS) {
            release(&pair.a)?;
            if at > 0 {
                assert!(pair.b.requests.next_is(3, NtStatus::SUCCESS));
            }
            // The next send holds the queue now.
            assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
            assert!(pair.b.requests.stays_empty());
            // CAST: a few.
            peer.own.fill(0x21 * (at as u8 + 1));
            kunit_assert_eq!(
                peer.write(BASE, tokens[at], PAGE as u32)?,
                NtStatus::SUCCESS
            );
        }
        for at in cases(0..ROUNDS) {
            // CAST: a few.
            assert!(buffer.has(0x21 * (at as u8 + 1), at * PAGE, PAGE));
        }
        // Of all tokens, only the last one is still valid.
        kunit_assert_eq!(peer.write(BASE, tokens[ROUNDS - 2], 1)?, REMOTE_RESOURCES);
        assert!(is_over(&pair));
        Ok(())
    }

    #[test]
    fn ndk_freg_01_a_refused_registration_does_not_disturb_those_queued() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let mut buffer = PageBuffer::fast(&pair.b.pd, 2 * PAGE, true)?;
        buffer.paint(0x61, 0, PAGE);
        buffer.paint(0x71, PAGE, PAGE);
        let mr = buffer.mr()?;
        let register = |context, page| {
            let what = RegRequest {
                pages: &[page],
                offset: 0,
                base: BASE,
                len: PAGE_SIZE,
            };
            what.register(&pair.b, mr, context, REMOTE_READ)
        };
        hold(&pair.b)?;
        kunit_assert_eq!(register(1, buffer.page(0)), Ok(()));
        let token = mr.remote_token();
        // The page is not memory: the post is refused.
        let posted = register(2, 8 * PAGE_SIZE);
        kunit_assert_eq!(posted, Err(NtStatus::INVALID_PARAMETER));
        kunit_assert_eq!(mr.remote_token(), token);
        release(&pair.a)?;
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(peer.read(BASE, token, PAGE as u32)?, NtStatus::SUCCESS);
        assert!(peer.own.has(0x61, 0, PAGE));
        kunit_assert_eq!(pair.b.qp.invalidate_mr(3, mr, 0), Ok(()));
        assert!(pair.b.requests.next_is(3, NtStatus::SUCCESS));
        kunit_assert_eq!(register(4, buffer.page(1)), Ok(()));
        assert!(pair.b.requests.next_is(4, NtStatus::SUCCESS));
        let token = mr.remote_token();
        kunit_assert_eq!(peer.read(BASE, token, PAGE as u32)?, NtStatus::SUCCESS);
        assert!(peer.own.has(0x71, 0, PAGE));
        Ok(())
    }

    #[test]
    fn ndk_freg_01_a_full_queue_refuses_and_keeps_what_is_staged() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let mut buffer = PageBuffer::fast(&pair.b.pd, 2 * PAGE, true)?;
        buffer.paint(0x61, 0, PAGE);
        let mr = buffer.mr()?;
        hold(&pair.b)?;
        let what = |page| {
            RegRequest {
                pages: &[buffer.page(page)],
                offset: 0,
                base: BASE,
                len: PAGE_SIZE,
            }
            .register(&pair.b, mr, 1, SILENT | REMOTE_READ)
        };
        // 32 places: the send, one registration, and sends.
        kunit_assert_eq!(what(0), Ok(()));
        let token = mr.remote_token();
        for _ in 2..32 {
            kunit_assert_eq!(pair.b.send(5, &[], SILENT), Ok(()));
        }
        kunit_assert_eq!(what(1), Err(NtStatus::NO_MORE_ENTRIES));
        kunit_assert_eq!(mr.remote_token(), token);
        for _ in 1..32 {
            pair.a.receive(6, &[])?;
        }
        for _ in 1..32 {
            assert!(pair.a.receives.next_is(6, NtStatus::SUCCESS));
        }
        kunit_assert_eq!(peer.read(BASE, token, PAGE as u32)?, NtStatus::SUCCESS);
        assert!(peer.own.has(0x61, 0, PAGE));
        Ok(())
    }

    #[test]
    fn ndk_freg_10_cancelled_registrations_leave_no_pages_behind() -> Result {
        let pair = Pair::new()?;
        let mut buffer = PageBuffer::fast(&pair.b.pd, 2 * PAGE, true)?;
        buffer.paint(0x61, 0, PAGE);
        buffer.paint(0x71, PAGE, PAGE);
        let mr = buffer.mr()?;
        let register = |test_side: &TestSide, context, page| {
            let what = RegRequest {
                pages: &[buffer.page(page)],
                offset: 0,
                base: buffer.page(page),
                len: PAGE_SIZE,
            };
            what.register(test_side, mr, context, REMOTE_READ)
        };
        hold(&pair.b)?;
        kunit_assert_eq!(register(&pair.b, 1, 0), Ok(()));
        pair.b.qp.flush();
        let held = pair.b.requests.next()?;
        kunit_assert_eq!(held.status, NtStatus::CANCELLED);
        assert!(pair.b.requests.next_is(1, NtStatus::CANCELLED));
        // Another queue pair of the same domain goes on with the same region.
        let (far, near) = pair.second()?;
        kunit_assert_eq!(register(&near, 2, 1), Ok(()));
        assert!(near.requests.next_is(2, NtStatus::SUCCESS));
        let peer = RemotePeer::new(&far, PAGE)?;
        let status = peer.read(buffer.page(1), mr.remote_token(), PAGE as u32)?;
        kunit_assert_eq!(status, NtStatus::SUCCESS);
        assert!(peer.own.has(0x71, 0, PAGE));
        Ok(())
    }
}
