// SPDX-License-Identifier: GPL-2.0

//! Binds: ranges, rights, tokens and owners (BIND-01 to BIND-08).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_bind)]
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
                    bound,
                    hold,
                    is_over,
                    release,
                    takes_requests,
                    window,
                    RemotePeer,
                    BASE,
                    DEFER,
                    FENCE,
                    INLINE,
                    LOCAL_INVALIDATE,
                    LOCAL_WRITE,
                    REMOTE_READ,
                    REMOTE_RESOURCES,
                    REMOTE_WRITE,
                    SILENT,
                    SINK, //
                }, //
            }, //
        }, //
    };

    const RIGHTS: u32 = REMOTE_READ | REMOTE_WRITE;
    const INVALID: Result<(), NtStatus> = Err(NtStatus::INVALID_PARAMETER);

    /// The range of the region that the windows open.
    const AT: u64 = PAGE as u64 - 100;
    const LEN: u64 = 200;

    #[test]
    fn ndk_bind_01_a_window_opens_its_range() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x13);
        // The addresses of the region are not those of its memory.
        let buffer = PageBuffer::displaced(&pair.b.pd, 2 * PAGE, 1, BASE)?;
        let mw = window(&pair.b)?;
        let range = (BASE + AT, LEN);
        kunit_assert_eq!(pair.b.qp.bind(1, buffer.mr()?, &mw, range, RIGHTS), Ok(()));
        let done = pair.b.requests.next()?;
        kunit_assert_eq!(done.request_context, 1);
        kunit_assert_eq!(done.status, NtStatus::SUCCESS);
        kunit_assert_eq!(done.operation, operation::BIND);
        kunit_assert_eq!(done.qp_context, 0xB);
        let token = mw.remote_token();
        kunit_assert_eq!(peer.write(BASE + AT, token, LEN as u32)?, NtStatus::SUCCESS);
        assert!(buffer.has(0x13, AT as usize, LEN as usize));
        assert!(buffer.is_blank(0, AT as usize));
        assert!(buffer.is_blank(PAGE + 100, PAGE - 100));
        kunit_assert_eq!(peer.read(BASE + AT + LEN - 1, token, 1)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_bind_01_nothing_outside_of_the_range_is_open() -> Result {
        // Before the range, behind it, across its end; from zero in place of the base.
        for (at, len) in cases([
            (BASE + AT - 1, 1),
            (BASE + AT + LEN, 1),
            (BASE + AT + LEN - 1, 2),
            (0, 1),
            (AT, 1),
        ]) {
            let pair = Pair::new()?;
            let mut peer = RemotePeer::new(&pair.a, PAGE)?;
            peer.own.fill(0x13);
            let buffer = PageBuffer::displaced(&pair.b.pd, 2 * PAGE, 7, BASE)?;
            let mw = window(&pair.b)?;
            let token = bound(&pair.b, &buffer, &mw, (BASE + AT, LEN), RIGHTS)?;
            kunit_assert_eq!(peer.write(at, token, len)?, REMOTE_RESOURCES);
            assert!(buffer.is_blank(0, 2 * PAGE));
            assert!(is_over(&pair));
        }
        Ok(())
    }

    #[test]
    fn ndk_bind_02_the_range_lies_inside_the_region() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mw = window(&pair.b)?;
        let before = mw.remote_token();
        let base = buffer.addr();
        let size = PAGE as u64;
        for range in cases([
            (base - 1, 1),
            (base - 1, size),
            (base, size + 1),
            (base + size, 1),
            (base + 1, size),
            (base + 1, u64::MAX),
            (0, size),
        ]) {
            let posted = pair.b.qp.bind(2, buffer.mr()?, &mw, range, RIGHTS);
            kunit_assert_eq!(posted, INVALID);
        }
        kunit_assert_eq!(mw.remote_token(), before);
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        bound(&pair.b, &buffer, &mw, (base, size), RIGHTS)?;
        Ok(())
    }

    #[test]
    fn ndk_bind_03_flags_that_are_taken() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mw = window(&pair.b)?;
        let range = (buffer.addr(), 64);
        let mr = buffer.mr()?;
        for flags in cases([
            REMOTE_READ,
            REMOTE_WRITE,
            RIGHTS,
            RIGHTS | FENCE,
            REMOTE_READ | SILENT,
            REMOTE_READ | DEFER,
        ]) {
            kunit_assert_eq!(pair.b.qp.bind(1, mr, &mw, range, flags), Ok(()));
            if flags & DEFER != 0 {
                assert!(pair.b.requests.stays_empty());
            }
            // Ends the chain, and succeeds only after the bind.
            kunit_assert_eq!(pair.b.qp.invalidate_mw(2, &mw, 0), Ok(()));
            if flags & SILENT == 0 {
                assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
            }
            assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_bind_03_a_window_grants_something_to_a_peer() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let mw = window(&pair.b)?;
        let mr = buffer.mr()?;
        for flags in cases([
            0,
            LOCAL_WRITE,
            0x20,
            0x20 | REMOTE_READ,
            RIGHTS | 0x4,
            RIGHTS | INLINE,
            RIGHTS | SINK,
            RIGHTS | LOCAL_INVALIDATE,
            RIGHTS | 0x400,
        ]) {
            let posted = pair.b.qp.bind(1, mr, &mw, (buffer.addr(), 64), flags);
            kunit_assert_eq!(posted, INVALID);
        }
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        Ok(())
    }

    #[test]
    fn ndk_bind_04_remote_write_needs_a_region_with_local_write() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let mut buffer = PageBuffer::registered(&pair.b.pd, PAGE, 2)?;
        buffer.fill(0x23);
        let mw = window(&pair.b)?;
        let range = (buffer.addr(), 64);
        for flags in cases([REMOTE_WRITE, RIGHTS]) {
            let posted = pair.b.qp.bind(1, buffer.mr()?, &mw, range, flags);
            kunit_assert_eq!(posted, Err(NtStatus::ACCESS_VIOLATION));
        }
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        let token = bound(&pair.b, &buffer, &mw, range, REMOTE_READ)?;
        kunit_assert_eq!(peer.read(range.0, token, 64)?, NtStatus::SUCCESS);
        assert!(peer.own.has(0x23, 0, 64));
        Ok(())
    }

    #[test]
    fn ndk_bind_05_the_token_is_there_before_the_completion() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mw = window(&pair.b)?;
        let before = mw.remote_token();
        let range = (buffer.addr(), 64);
        hold(&pair.b)?;
        kunit_assert_eq!(
            pair.b.qp.bind(1, buffer.mr()?, &mw, range, REMOTE_READ),
            Ok(())
        );
        let token = mw.remote_token();
        assert!(token != before);
        assert!(pair.b.requests.stays_empty());
        release(&pair.a)?;
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(mw.remote_token(), token);
        kunit_assert_eq!(peer.read(range.0, token, 64)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_bind_06_only_the_peer_of_its_queue_pair_may_use_a_window() -> Result {
        let pair = Pair::new()?;
        let (far, near) = pair.second()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        let mut other = RemotePeer::new(&far, PAGE)?;
        peer.own.fill(0x33);
        other.own.fill(0x43);
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mw = window(&pair.b)?;
        let token = bound(&pair.b, &buffer, &mw, (buffer.addr(), 64), RIGHTS)?;
        kunit_assert_eq!(peer.write(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        kunit_assert_eq!(other.write(buffer.addr() + 8, token, 8)?, REMOTE_RESOURCES);
        assert!(buffer.has(0x33, 0, 8));
        assert!(buffer.is_blank(8, PAGE - 8));
        // The refusal leaves the window and its queue pair intact.
        kunit_assert_eq!(peer.read(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        drop(near);
        Ok(())
    }

    #[test]
    fn ndk_bind_06_a_bound_window_is_not_bound_again() -> Result {
        let pair = Pair::new()?;
        let (far, near) = pair.second()?;
        let peer = RemotePeer::new(&far, PAGE)?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mw = window(&pair.b)?;
        let range = (buffer.addr(), 64);
        let token = bound(&near, &buffer, &mw, range, REMOTE_READ)?;
        kunit_assert_eq!(
            pair.b.qp.bind(5, buffer.mr()?, &mw, range, REMOTE_READ),
            Ok(())
        );
        let done = pair.b.requests.next()?;
        kunit_assert_eq!(done.request_context, 5);
        kunit_assert_eq!(done.operation, operation::BIND);
        kunit_assert_eq!(done.status, NtStatus::INVALID_DEVICE_REQUEST);
        assert!(is_over(&pair));
        // The first bind is still in force.
        kunit_assert_eq!(peer.read(range.0, token, 64)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_bind_07_windows_overlap_and_differ_in_rights() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x53);
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let at = buffer.addr();
        let [write, read, both] = [window(&pair.b)?, window(&pair.b)?, window(&pair.b)?];
        let write = (
            bound(&pair.b, &buffer, &write, (at, 64), REMOTE_WRITE)?,
            write,
        );
        let read = (
            bound(&pair.b, &buffer, &read, (at + 32, 64), REMOTE_READ)?,
            read,
        );
        let both = (bound(&pair.b, &buffer, &both, (at, 96), RIGHTS)?, both);
        kunit_assert_eq!(peer.write(at, write.0, 64)?, NtStatus::SUCCESS);
        assert!(buffer.has(0x53, 0, 64));
        assert!(buffer.is_blank(64, 32));
        kunit_assert_eq!(peer.read(at + 32, read.0, 64)?, NtStatus::SUCCESS);
        assert!(peer.own.has(0x53 + 32, 0, 32));
        assert!(peer.own.is_blank(32, 32));
        kunit_assert_eq!(peer.write(at, both.0, 96)?, NtStatus::SUCCESS);
        kunit_assert_eq!(peer.read(at, both.0, 96)?, NtStatus::SUCCESS);
        // Each window grants its own rights only, also where another window overlaps it.
        kunit_assert_eq!(peer.write(at + 40, read.0, 8)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_bind_07_a_window_to_write_through_is_none_to_read_through() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let at = buffer.addr();
        let [write, read] = [window(&pair.b)?, window(&pair.b)?];
        let token = bound(&pair.b, &buffer, &write, (at, 64), REMOTE_WRITE)?;
        bound(&pair.b, &buffer, &read, (at, 64), REMOTE_READ)?;
        kunit_assert_eq!(peer.read(at, token, 8)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_bind_08_region_window_and_queue_pair_share_a_domain() -> Result {
        let pair = Pair::new()?;
        let own = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let foreign = PageBuffer::registered(&pair.a.pd, PAGE, 1)?;
        let [mw, foreign_mw] = [window(&pair.b)?, window(&pair.a)?];
        let (qp, range) = (&pair.b.qp, |b: &PageBuffer| (b.addr(), 64));
        kunit_assert_eq!(
            qp.bind(1, foreign.mr()?, &mw, range(&foreign), RIGHTS),
            INVALID
        );
        kunit_assert_eq!(
            qp.bind(1, own.mr()?, &foreign_mw, range(&own), RIGHTS),
            INVALID
        );
        let posted = qp.bind(1, foreign.mr()?, &foreign_mw, range(&foreign), RIGHTS);
        kunit_assert_eq!(posted, INVALID);
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        bound(&pair.b, &own, &mw, range(&own), RIGHTS)?;
        bound(&pair.a, &foreign, &foreign_mw, range(&foreign), RIGHTS)?;
        Ok(())
    }

    #[test]
    fn ndk_bind_08_a_fast_register_region_is_not_bindable() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mw = window(&pair.b)?;
        let range = (buffer.addr(), 64);
        let posted = pair.b.qp.bind(1, buffer.mr()?, &mw, range, RIGHTS);
        kunit_assert_eq!(posted, INVALID);
        crate::ndk::tests::remote_access::registered(&pair.b, &buffer, RIGHTS)?;
        let posted = pair.b.qp.bind(1, buffer.mr()?, &mw, range, RIGHTS);
        kunit_assert_eq!(posted, INVALID);
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        Ok(())
    }
}
