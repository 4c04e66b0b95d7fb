// SPDX-License-Identifier: GPL-2.0

//! Flags and tokens of regions, and the rights that they grant (MR-04, MR-08 to MR-10).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_region_rights)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            status::NtStatus,
            tests::{
                completion::{
                    log_status,
                    request,
                    AutoClose, //
                },
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::Pair,
                remote_access::{
                    invalidated,
                    registered,
                    RemotePeer,
                    LOCAL_WRITE,
                    REMOTE_READ,
                    REMOTE_RESOURCES,
                    REMOTE_WRITE, //
                }, //
            }, //
        },
        rdma::values::token::Token, //
    };

    /// A use of a region.
    #[derive(Clone, Copy, Debug)]
    enum Use {
        LocalRead,
        LocalWrite,
        RemoteRead,
        RemoteWrite,
    }

    /// Returns true if a region registered with `flags` allows `what`, over a new pair. An error if
    /// a refused use has an effect, or an allowed one has none.
    fn allows(flags: u32, what: Use) -> Result<bool> {
        let pair = Pair::new()?;
        let mut buffer = pair.b.buffer(PAGE, flags)?;
        buffer.paint(0x14, 64, 64);
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.paint(0x24, 0, 64);
        let token = buffer.mr()?.remote_token();
        let refused = match what {
            Use::LocalRead | Use::LocalWrite => NtStatus::ACCESS_VIOLATION,
            Use::RemoteRead | Use::RemoteWrite => REMOTE_RESOURCES,
        };
        let (status, done) = match what {
            Use::LocalRead => {
                pair.a.receive(1, &[peer.own.sge(0, 64)?])?;
                pair.b.send(2, &[buffer.sge(64, 64)?], 0)?;
                let status = pair.b.requests.next()?.status;
                if status == NtStatus::SUCCESS {
                    pair.a.receives.next()?;
                }
                (status, peer.own.has(0x14, 0, 64))
            }
            Use::LocalWrite => {
                pair.b.receive(1, &[buffer.sge(0, 64)?])?;
                pair.a.send(2, &[peer.own.sge(0, 64)?], 0)?;
                (pair.b.receives.next()?.status, buffer.has(0x24, 0, 64))
            }
            Use::RemoteRead => {
                let status = peer.read(buffer.addr() + 64, token, 64)?;
                (status, peer.own.has(0x14, 0, 64))
            }
            Use::RemoteWrite => {
                let status = peer.write(buffer.addr(), token, 64)?;
                (status, buffer.has(0x24, 0, 64))
            }
        };
        match (status, done) {
            (NtStatus::SUCCESS, true) => Ok(true),
            (status, false) if status == refused => Ok(false),
            found => {
                kunit_note!("flags {:x}, {:?}: {:?}", flags, what, found);
                Err(EIO)
            }
        }
    }

    #[test]
    fn ndk_mr_04_each_flag_grants_what_it_says() -> Result {
        // Flags; local write, remote read, remote write. Local read is always granted.
        for (flags, write, remote_read, remote_write) in cases([
            (0, false, false, false),
            (1, true, false, false),
            (2, false, true, false),
            (3, true, true, false),
            (5, true, false, true),
            (7, true, true, true),
            (8, false, false, false),
            (15, true, true, true),
        ]) {
            assert!(allows(flags, Use::LocalRead)?);
            kunit_assert_eq!(allows(flags, Use::LocalWrite)?, write);
            kunit_assert_eq!(allows(flags, Use::RemoteRead)?, remote_read);
            kunit_assert_eq!(allows(flags, Use::RemoteWrite)?, remote_write);
        }
        Ok(())
    }

    #[test]
    fn ndk_mr_04_flags_that_are_none_are_refused() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::plain(PAGE)?;
        let mr = pair
            .b
            .pd
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        // Remote write is two bits.
        for flags in cases([4, 6, 16, 0x8000_0001]) {
            kunit_assert_eq!(buffer.register(&mr, flags)?, NtStatus::INVALID_PARAMETER);
        }
        // The sink flag goes with every other flag.
        for flags in cases([8, 9, 10, 11, 13, 15]) {
            kunit_assert_eq!(buffer.register(&mr, flags)?, NtStatus::SUCCESS);
            kunit_assert_eq!(request(|done| mr.deregister(done))?, NtStatus::SUCCESS);
        }
        Ok(())
    }

    #[test]
    fn ndk_mr_08_a_local_token_once_the_call_has_completed() -> Result {
        let pair = Pair::new()?;
        let privileged = pair.b.pd.privileged_token();
        let normal = pair.b.buffer(PAGE, 0)?;
        let fast = PageBuffer::fast(&pair.b.pd, PAGE, false)?;
        let kept = fast.mr()?.local_token();
        let unused = pair
            .b
            .pd
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let tokens = [normal.mr()?.local_token(), kept, unused.local_token()];
        // Each token names its own region only.
        assert!(tokens.iter().all(|token| *token != privileged));
        assert!(tokens[0].raw() >> 8 != kept.raw() >> 8);
        registered(&pair.b, &fast, 0)?;
        let to = pair.a.buffer(PAGE, 1)?;
        for sge in cases([normal.sge(0, 8)?, fast.sge_by(kept, 0, 8)]) {
            pair.a.receive(1, &[to.sge(0, 8)?])?;
            pair.b.send(2, &[sge], 0)?;
            assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
            assert!(pair.a.receives.next_is(1, NtStatus::SUCCESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_mr_08_before_there_is_no_token_that_grants_anything() -> Result {
        for fast in cases([false, true]) {
            let pair = Pair::new()?;
            let buffer = PageBuffer::plain(PAGE)?;
            let mr = pair
                .b
                .pd
                .create_mr(fast)
                .map(AutoClose::new)
                .map_err(log_status)?;
            pair.a.receive(1, &[])?;
            let sge = buffer.sge_by(mr.local_token(), 0, 8);
            pair.b.send(2, &[sge], 0)?;
            assert!(pair.b.requests.next_is(2, NtStatus::ACCESS_VIOLATION));
        }
        Ok(())
    }

    #[test]
    fn ndk_mr_09_before_the_first_registration_the_remote_token_grants_nothing() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let token = buffer.mr()?.remote_token();
        kunit_assert_eq!(peer.read(buffer.addr(), token, 8)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_mr_09_that_token_grants_nothing_later_either() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let early = buffer.mr()?.remote_token();
        let token = registered(&pair.b, &buffer, REMOTE_READ)?;
        kunit_assert_eq!(peer.read(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        kunit_assert_eq!(peer.read(buffer.addr(), early, 8)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_mr_09_a_registered_regions_remote_token_serves_at_once() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x34);
        let buffer = pair.b.buffer(PAGE, 5)?;
        let token = buffer.mr()?.remote_token();
        kunit_assert_eq!(peer.write(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        assert!(buffer.has(0x34, 0, 8));
        Ok(())
    }

    /// Returns the status of a peer's access by a token of a region registered with `flags`.
    fn by(fast: bool, flags: u32, local: bool, write: bool) -> Result<NtStatus> {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = match fast {
            true => PageBuffer::fast(&pair.b.pd, PAGE, true)?,
            false => pair.b.buffer(PAGE, flags)?,
        };
        if fast {
            registered(&pair.b, &buffer, flags)?;
        }
        let mr = buffer.mr()?;
        let token: Token = match local {
            true => mr.local_token(),
            false => mr.remote_token(),
        };
        match write {
            true => peer.write(buffer.addr(), token, 8),
            false => peer.read(buffer.addr(), token, 8),
        }
    }

    #[test]
    fn ndk_mr_10_without_a_remote_flag_no_token_serves_a_peer() -> Result {
        for (local, write) in cases([(true, true), (true, false), (false, true), (false, false)]) {
            kunit_assert_eq!(by(false, 0, local, write)?, REMOTE_RESOURCES);
            kunit_assert_eq!(by(false, 1, local, write)?, REMOTE_RESOURCES);
            kunit_assert_eq!(by(true, 0, local, write)?, REMOTE_RESOURCES);
            kunit_assert_eq!(by(true, LOCAL_WRITE, local, write)?, REMOTE_RESOURCES);
        }
        Ok(())
    }

    #[test]
    fn ndk_mr_10_a_remote_flag_serves_for_what_it_says() -> Result {
        let (yes, no) = (NtStatus::SUCCESS, REMOTE_RESOURCES);
        for (fast, read, write) in cases([(false, 2, 5), (true, REMOTE_READ, REMOTE_WRITE)]) {
            kunit_assert_eq!(by(fast, read, false, false)?, yes);
            kunit_assert_eq!(by(fast, read, false, true)?, no);
            kunit_assert_eq!(by(fast, write, false, true)?, yes);
            kunit_assert_eq!(by(fast, write, false, false)?, no);
        }
        // The two tokens of a normal region are the same, with the same rights.
        kunit_assert_eq!(by(false, 2, true, false)?, yes);
        kunit_assert_eq!(by(false, 2, true, true)?, no);
        Ok(())
    }

    #[test]
    fn ndk_mr_10_a_token_without_rights_stays_so_after_one_with_them() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let token = registered(&pair.b, &buffer, REMOTE_READ)?;
        kunit_assert_eq!(peer.read(buffer.addr(), token, 8)?, NtStatus::SUCCESS);
        invalidated(&pair.b, buffer.mr()?)?;
        let token = registered(&pair.b, &buffer, LOCAL_WRITE)?;
        kunit_assert_eq!(peer.read(buffer.addr(), token, 8)?, REMOTE_RESOURCES);
        Ok(())
    }
}
