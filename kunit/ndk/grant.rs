// SPDX-License-Identifier: GPL-2.0

//! Flags of fast registrations: rights and treatment (FREG-06 to FREG-08).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_grant)]
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
                pair::Pair,
                remote_access::{
                    invalidated,
                    registered,
                    takes_requests,
                    RemotePeer,
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

    const SOLICIT: u32 = 0x4;

    #[test]
    fn ndk_freg_06_each_flag_is_taken() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mr = buffer.mr()?;
        let all = REMOTE_READ | REMOTE_WRITE | SINK | FENCE;
        for flags in cases([0, REMOTE_READ, LOCAL_WRITE, REMOTE_WRITE, SINK, FENCE, all]) {
            kunit_assert_eq!(buffer.fast_register(&pair.b.qp, 6, flags)?, Ok(()));
            assert!(pair.b.requests.next_is(6, NtStatus::SUCCESS));
            invalidated(&pair.b, mr)?;
        }
        // A silent registration completes only if it fails.
        kunit_assert_eq!(buffer.fast_register(&pair.b.qp, 7, SILENT)?, Ok(()));
        assert!(pair.b.requests.stays_empty());
        kunit_assert_eq!(buffer.fast_register(&pair.b.qp, 8, SILENT)?, Ok(()));
        assert!(pair.b.requests.next_is(8, NtStatus::INVALID_DEVICE_REQUEST));
        Ok(())
    }

    #[test]
    fn ndk_freg_06_a_deferred_registration_waits_for_the_end_of_its_chain() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let flags = DEFER | REMOTE_READ;
        kunit_assert_eq!(buffer.fast_register(&pair.b.qp, 1, flags)?, Ok(()));
        assert!(pair.b.requests.stays_empty());
        kunit_assert_eq!(pair.b.qp.invalidate_mr(2, buffer.mr()?, 0), Ok(()));
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_freg_06_no_other_flag_is_taken() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        for flag in cases([SOLICIT, INLINE, LOCAL_INVALIDATE, 0x400, 1 << 31]) {
            let posted = buffer.fast_register(&pair.b.qp, 1, flag | REMOTE_READ)?;
            kunit_assert_eq!(posted, Err(NtStatus::INVALID_PARAMETER));
        }
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        Ok(())
    }

    /// Receives into a region that its owner registered with `flags`; returns the status.
    fn receives(flags: u32) -> Result<NtStatus> {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let mut from = pair.a.buffer(PAGE, 0)?;
        from.fill(0x51);
        registered(&pair.b, &buffer, flags)?;
        pair.b.receive(1, &[buffer.sge(0, 64)?])?;
        pair.a.send(2, &[from.sge(0, 64)?], 0)?;
        let status = pair.b.receives.next()?.status;
        match buffer.has(0x51, 0, 64) == (status == NtStatus::SUCCESS) {
            true => Ok(status),
            false => Err(EIO),
        }
    }

    /// Returns the status of a peer's write and of its read, in a region registered with `flags`.
    fn remote(flags: u32) -> Result<(NtStatus, NtStatus)> {
        let access = |write: bool| -> Result<NtStatus> {
            let pair = Pair::new()?;
            let mut peer = RemotePeer::new(&pair.a, PAGE)?;
            peer.own.fill(0x52);
            let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
            let token = registered(&pair.b, &buffer, flags)?;
            let status = match write {
                true => peer.write(buffer.addr(), token, 64)?,
                false => peer.read(buffer.addr(), token, 64)?,
            };
            let written = write && status == NtStatus::SUCCESS;
            match buffer.has(0x52, 0, 64) == written {
                true => Ok(status),
                false => Err(EIO),
            }
        };
        Ok((access(true)?, access(false)?))
    }

    #[test]
    fn ndk_freg_07_local_write_alone_is_no_remote_write() -> Result {
        let no = REMOTE_RESOURCES;
        let yes = NtStatus::SUCCESS;
        kunit_assert_eq!(receives(LOCAL_WRITE)?, yes);
        kunit_assert_eq!(remote(LOCAL_WRITE)?, (no, no));
        kunit_assert_eq!(remote(REMOTE_WRITE)?, (yes, no));
        kunit_assert_eq!(receives(REMOTE_WRITE)?, yes);
        kunit_assert_eq!(remote(REMOTE_READ)?, (no, yes));
        kunit_assert_eq!(receives(REMOTE_READ)?, NtStatus::ACCESS_VIOLATION);
        Ok(())
    }

    #[test]
    fn ndk_freg_07_remote_write_without_local_write_is_refused() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let before = buffer.mr()?.remote_token();
        for flags in cases([0x20, 0x20 | REMOTE_READ]) {
            let posted = buffer.fast_register(&pair.b.qp, 1, flags)?;
            kunit_assert_eq!(posted, Err(NtStatus::INVALID_PARAMETER));
        }
        kunit_assert_eq!(buffer.mr()?.remote_token(), before);
        assert!(pair.b.requests.stays_empty());
        assert!(takes_requests(&pair.b));
        Ok(())
    }

    #[test]
    fn ndk_freg_08_remote_rights_need_a_region_made_for_them() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, false)?;
        let mr = buffer.mr()?;
        let before = mr.remote_token();
        for flags in cases([REMOTE_READ, REMOTE_WRITE, REMOTE_READ | REMOTE_WRITE]) {
            let posted = buffer.fast_register(&pair.b.qp, 1, flags)?;
            kunit_assert_eq!(posted, Err(NtStatus::ACCESS_VIOLATION));
        }
        assert!(pair.b.requests.stays_empty());
        kunit_assert_eq!(mr.remote_token(), before);
        // The refused registrations leave no state: local rights can still be granted.
        for flags in cases([0, LOCAL_WRITE]) {
            registered(&pair.b, &buffer, flags)?;
            invalidated(&pair.b, mr)?;
        }
        Ok(())
    }
}
