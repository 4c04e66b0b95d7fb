// SPDX-License-Identifier: GPL-2.0

//! Write (WRIT-01 to WRIT-04).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_write)]
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
                    is_over,
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
            token::Token,
            work::RemoteAddr, //
        },
        sys::sge::Sge, //
    };

    #[test]
    fn ndk_writ_01_the_list_goes_to_the_remote_address_and_nobody_is_reported() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(2 * PAGE, 0)?;
        from.fill(0x18);
        let to = PageBuffer::displaced(&pair.b.pd, 2 * PAGE, 5, BASE)?;
        let at = PAGE - 30;
        let remote = RemoteAddr {
            addr: BASE + at as u64,
            token: to.mr()?.remote_token(),
        };
        // The posted receive is not used.
        pair.b.receive(1, &[])?;
        let list = [
            from.sge(PAGE - 10, 20)?,
            from.sge(0, 0)?,
            from.sge(0, 10)?,
            from.sge(PAGE + 10, 100)?,
        ];
        kunit_assert_eq!(pair.a.qp.write(2, list.into_iter(), remote, 0), Ok(()));
        let done = pair.a.requests.next()?;
        kunit_assert_eq!(done.request_context, 2);
        kunit_assert_eq!(done.status, NtStatus::SUCCESS);
        kunit_assert_eq!(done.operation, operation::WRITE);
        kunit_assert_eq!(done.qp_context, 0xA);
        assert!(to.has(0x18u8.wrapping_sub(10), at, 20));
        assert!(to.has(0x18, at + 20, 10));
        assert!(to.has(0x18 + 10, at + 30, 100));
        assert!(to.is_blank(0, at));
        assert!(to.is_blank(at + 130, 2 * PAGE - at - 130));
        assert!(pair.b.receives.stays_empty());
        assert!(pair.b.requests.stays_empty());
        pair.a.send(3, &[], 0)?;
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_writ_02_flags_that_are_taken() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(PAGE, 0)?;
        from.fill(0x28);
        let to = pair.b.buffer(PAGE, 5)?;
        let write = |context, at, flags| -> Result<_> {
            let list = [from.sge(at, 8)?].into_iter();
            Ok(pair.a.qp.write(context, list, to.remote(at)?, flags))
        };
        kunit_assert_eq!(write(1, 0, FENCE)?, Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(write(2, 8, SILENT)?, Ok(()));
        kunit_assert_eq!(write(3, 16, DEFER)?, Ok(()));
        assert!(pair.a.requests.stays_empty());
        assert!(to.has(0x28, 0, 16));
        assert!(to.is_blank(16, PAGE - 16));
        kunit_assert_eq!(write(4, 24, INLINE | FENCE)?, Ok(()));
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        assert!(to.has(0x28, 0, 32));
        for flag in cases([0x4, 0x8, LOCAL_WRITE, 0x20, SINK, LOCAL_INVALIDATE, 0x400]) {
            kunit_assert_eq!(write(5, 32, flag)?, Err(NtStatus::INVALID_PARAMETER));
        }
        assert!(pair.a.requests.stays_empty());
        assert!(takes_requests(&pair.a));
        Ok(())
    }

    #[test]
    fn ndk_writ_02_inline_bytes_are_taken_during_the_call() -> Result {
        let pair = Pair::new()?;
        let mut from = PageBuffer::plain(PAGE)?;
        from.fill(0x38);
        let to = pair.b.buffer(PAGE, 5)?;
        hold(&pair.a)?;
        // More elements than the queue pair has otherwise, and an invalid token.
        let bad = Token::from_raw(0xFFFF_FFFF);
        let list = [0usize, 10, 20, 30, 40, 50, 60, 70].map(|at| from.sge_by(bad, at, 8));
        kunit_assert_eq!(
            pair.a.qp.write(1, list.into_iter(), to.remote(0)?, INLINE),
            Ok(())
        );
        from.fill(0x99);
        assert!(pair.a.requests.stays_empty());
        release(&pair.b)?;
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        for at in cases(0..8) {
            // CAST: a few.
            assert!(to.has(0x38 + 10 * at as u8, 8 * at, 8));
        }
        assert!(to.is_blank(64, PAGE - 64));
        // One byte above the inline limit of the queue pair.
        let list = [from.sge_by(bad, 0, 64), from.sge_by(bad, 0, 1)];
        let posted = pair.a.qp.write(2, list.into_iter(), to.remote(0)?, INLINE);
        kunit_assert_eq!(posted, Err(NtStatus::BUFFER_OVERFLOW));
        assert!(pair.a.requests.stays_empty());
        assert!(takes_requests(&pair.a));
        Ok(())
    }

    #[test]
    fn ndk_writ_03_a_range_that_is_not_inside_ends_the_connection() -> Result {
        for (at, len) in cases([(-1, 1), (-1, 8), (PAGE as i64 - 7, 8), (PAGE as i64, 1)]) {
            let pair = Pair::new()?;
            let mut peer = RemotePeer::new(&pair.a, PAGE)?;
            peer.own.fill(0x48);
            let to = PageBuffer::displaced(&pair.b.pd, PAGE, 5, BASE)?;
            let token = to.mr()?.remote_token();
            let status = peer.write(BASE.wrapping_add_signed(at), token, len)?;
            kunit_assert_eq!(status, REMOTE_RESOURCES);
            assert!(to.is_blank(0, PAGE));
            assert!(is_over(&pair));
        }
        Ok(())
    }

    #[test]
    fn ndk_writ_03_a_bad_token_ends_the_connection() -> Result {
        for bit in cases([0, 7, 8, 31]) {
            let pair = Pair::new()?;
            let mut peer = RemotePeer::new(&pair.a, PAGE)?;
            peer.own.fill(0x58);
            let to = pair.b.buffer(PAGE, 5)?;
            let token = to.mr()?.remote_token();
            let near = Token::from_raw(token.raw() ^ (1 << bit));
            kunit_assert_eq!(peer.write(to.addr(), near, 8)?, REMOTE_RESOURCES);
            assert!(to.is_blank(0, PAGE));
            assert!(is_over(&pair));
        }
        Ok(())
    }

    #[test]
    fn ndk_writ_03_a_silent_write_reports_its_failure_and_what_follows_is_cancelled() -> Result {
        let pair = Pair::new()?;
        let from = pair.a.buffer(PAGE, 0)?;
        let to = pair.b.buffer(PAGE, 2)?;
        hold(&pair.a)?;
        let list: [Sge; 1] = [from.sge(0, 8)?];
        let posted = pair.a.qp.write(1, list.into_iter(), to.remote(0)?, SILENT);
        kunit_assert_eq!(posted, Ok(()));
        pair.a.send(2, &[], 0)?;
        release(&pair.b)?;
        assert!(pair.a.requests.next_is(1, REMOTE_RESOURCES));
        assert!(pair.a.requests.next_is(2, NtStatus::CANCELLED));
        assert!(is_over(&pair));
        Ok(())
    }

    #[test]
    fn ndk_writ_04_the_data_is_there_before_a_later_send_is_received() -> Result {
        // A page more than one run of the transport moves.
        const LEN: usize = (1 << 20) + PAGE;
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(LEN, 0)?;
        let to = pair.b.buffer(LEN, 5)?;
        for (round, seed) in cases([(1, 0x68), (2, 0x79)]) {
            from.fill(seed);
            pair.b.receive(round, &[])?;
            // CAST: little more than a megabyte.
            let list = [from.sge(0, LEN as u32)?];
            let posted = pair
                .a
                .qp
                .write(round, list.into_iter(), to.remote(0)?, SILENT);
            kunit_assert_eq!(posted, Ok(()));
            pair.a.send(round, &[], SILENT)?;
            assert!(pair.b.receives.next_is(round, NtStatus::SUCCESS));
            assert!(to.has(seed, 0, LEN));
        }
        Ok(())
    }

    #[test]
    fn ndk_writ_04_the_last_of_many_writes_is_there_too() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(PAGE, 0)?;
        from.fill(0x78);
        let to = pair.b.buffer(PAGE, 5)?;
        for round in cases(0..20) {
            pair.b.receive(round, &[])?;
            for at in cases(0..8) {
                let at = (round as usize * 8 + at) * 16;
                let list = [from.sge(at, 16)?];
                let posted = pair.a.qp.write(1, list.into_iter(), to.remote(at)?, SILENT);
                kunit_assert_eq!(posted, Ok(()));
            }
            pair.a.send(2, &[], SILENT)?;
            assert!(pair.b.receives.next_is(round, NtStatus::SUCCESS));
            assert!(to.has(0x78, 0, (round as usize + 1) * 128));
        }
        Ok(())
    }
}
