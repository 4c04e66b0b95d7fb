// SPDX-License-Identifier: GPL-2.0

//! Windows from creation to close (MW-01, MW-02).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_window)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            memory::Mw,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                completion::create,
                memory::{
                    PageBuffer,
                    PAGE, //
                },
                pair::Pair,
                remote_access::{
                    bound,
                    hold,
                    is_over,
                    window,
                    RemotePeer,
                    REMOTE_READ,
                    REMOTE_RESOURCES,
                    REMOTE_WRITE, //
                }, //
            }, //
        },
        sys::fault, //
    };

    const RIGHTS: u32 = REMOTE_READ | REMOTE_WRITE;

    #[test]
    fn ndk_mw_01_a_new_window_grants_nothing() -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 7)?;
        let mw = window(&pair.b)?;
        kunit_assert_eq!(
            peer.read(buffer.addr(), mw.remote_token(), 8)?,
            REMOTE_RESOURCES
        );
        Ok(())
    }

    #[test]
    fn ndk_mw_01_a_new_window_is_invalid() -> Result {
        let pair = Pair::new()?;
        let mw = window(&pair.b)?;
        kunit_assert_eq!(pair.b.qp.invalidate_mw(1, &mw, 0), Ok(()));
        assert!(pair.b.requests.next_is(1, NtStatus::INVALID_DEVICE_REQUEST));
        Ok(())
    }

    #[test]
    fn ndk_mw_01_each_bind_gives_a_new_key() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x15);
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mw = window(&pair.b)?;
        let mut last = mw.remote_token();
        let mut stale = last;
        for _ in 0..3 {
            let token = bound(&pair.b, &buffer, &mw, (buffer.addr(), 64), RIGHTS)?;
            assert!(token != last);
            kunit_assert_eq!(token.raw() >> 8, last.raw() >> 8);
            stale = last;
            last = token;
            kunit_assert_eq!(pair.b.qp.invalidate_mw(1, &mw, 0), Ok(()));
            assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        }
        bound(&pair.b, &buffer, &mw, (buffer.addr(), 64), RIGHTS)?;
        assert!(stale != last);
        assert!(mw.remote_token() != last);
        kunit_assert_eq!(peer.write(buffer.addr(), last, 8)?, REMOTE_RESOURCES);
        assert!(buffer.is_blank(0, PAGE));
        Ok(())
    }

    #[test]
    fn ndk_mw_01_without_memory_there_is_no_window() -> Result {
        let pair = Pair::new()?;
        if !fault::needed() {
            return Ok(());
        }
        let mut failed = 0;
        for nth in cases(1..100) {
            if !fault::plan(nth) {
                return Err(EINVAL);
            }
            let made = create::<Mw>(|done| pair.b.pd.create_mw(done))?;
            let struck = fault::planned_struck();
            match made {
                Ok(_) if !struck => break,
                // Not every allocation is needed.
                Ok(_) => (),
                Err(status) => {
                    kunit_assert_eq!(status, NtStatus::INSUFFICIENT_RESOURCES);
                    failed += 1;
                }
            }
        }
        assert!(failed > 0);
        window(&pair.b)?;
        Ok(())
    }

    #[test]
    fn ndk_mw_02_closing_a_bound_window_unbinds_it() -> Result {
        let pair = Pair::new()?;
        let mut peer = RemotePeer::new(&pair.a, PAGE)?;
        peer.own.fill(0x25);
        let mut buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mut mw = window(&pair.b)?;
        let token = bound(&pair.b, &buffer, &mw, (buffer.addr(), 64), RIGHTS)?;
        assert!(mw.close_and_wait()?);
        kunit_assert_eq!(peer.write(buffer.addr(), token, 8)?, REMOTE_RESOURCES);
        assert!(buffer.is_blank(0, PAGE));
        assert!(is_over(&pair));
        // No window keeps the region now.
        let mr = buffer.mr.as_mut().ok_or(EINVAL)?;
        assert!(mr.close_and_wait()?);
        Ok(())
    }

    /// Closes the region under a bound window, which keeps the region; then `end` ends the binding.
    fn close_under(
        end: impl FnOnce(&Pair, &mut crate::ndk::tests::completion::AutoClose<Mw>) -> Result,
    ) -> Result {
        let pair = Pair::new()?;
        let peer = RemotePeer::new(&pair.a, PAGE)?;
        let mut buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mut mw = window(&pair.b)?;
        let token = bound(&pair.b, &buffer, &mw, (buffer.addr(), 64), RIGHTS)?;
        let mr = buffer.mr.as_mut().ok_or(EINVAL)?;
        let (progress, closed) = mr.close()?;
        pair.test_host.flush_work();
        let pends = matches!(progress, Progress::Pending) && closed.calls.get() == 0;
        // The window is usable as long as it is bound.
        let usable = peer.read(buffer.addr(), token, 8)? == NtStatus::SUCCESS;
        end(&pair, &mut mw)?;
        match pends && usable && closed.wait().is_some() && closed.calls.get() == 1 {
            true => Ok(()),
            false => Err(EIO),
        }
    }

    #[test]
    fn ndk_mw_02_a_region_waits_for_the_close_of_its_window() -> Result {
        close_under(|_, mw| mw.close_and_wait()?.then_some(()).ok_or(EIO))
    }

    #[test]
    fn ndk_mw_02_a_region_waits_for_the_invalidation_of_its_window() -> Result {
        close_under(|pair, mw| {
            let posted = pair.b.qp.invalidate_mw(1, mw, 0);
            posted.map_err(crate::ndk::tests::completion::log_status)?;
            let done = pair.b.requests.next_is(1, NtStatus::SUCCESS);
            done.then_some(()).ok_or(EIO)
        })
    }

    #[test]
    fn ndk_mw_02_a_region_waits_for_the_peers_invalidation_of_its_window() -> Result {
        close_under(|pair, mw| {
            pair.b.receive(1, &[])?;
            let list = [].into_iter();
            let posted = pair.a.qp.send_and_invalidate(2, list, 0, mw.remote_token());
            posted.map_err(crate::ndk::tests::completion::log_status)?;
            let done = pair.b.receives.next_is(1, NtStatus::SUCCESS);
            done.then_some(()).ok_or(EIO)
        })
    }

    #[test]
    fn ndk_mw_02_a_cancelled_bind_keeps_no_region() -> Result {
        let pair = Pair::new()?;
        let mut buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let mw = window(&pair.b)?;
        hold(&pair.b)?;
        let range = (buffer.addr(), 64);
        kunit_assert_eq!(pair.b.qp.bind(1, buffer.mr()?, &mw, range, RIGHTS), Ok(()));
        pair.b.qp.flush();
        kunit_assert_eq!(pair.b.requests.next()?.status, NtStatus::CANCELLED);
        assert!(pair.b.requests.next_is(1, NtStatus::CANCELLED));
        // The window still exists, and is not bound.
        let mr = buffer.mr.as_mut().ok_or(EINVAL)?;
        assert!(mr.close_and_wait()?);
        Ok(())
    }
}
