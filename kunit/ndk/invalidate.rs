// SPDX-License-Identifier: GPL-2.0

//! Invalidate (INV-01 to INV-07).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_invalidate)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::{
            harness::cases,
            other_context::OtherContext, //
        },
        ndk::{
            abi::{
                numbers::{
                    op_flags::*,
                    operation, //
                },
                request_tests::{
                    invalidate,
                    Named, //
                }, //
            },
            status::NtStatus,
            tests::{
                completion::{
                    log_status,
                    AutoClose, //
                },
                host::{
                    HostAttr,
                    SIZES, //
                },
                memory::PageBuffer,
                pair::Pair,
                remote::{
                    beside,
                    bind,
                    can_write,
                    combinations,
                    has_ended,
                    is_up,
                    open,
                    opened,
                    remote_through_window,
                    window,
                    write_one,
                    REMOTE_RESOURCES, //
                }, //
            }, //
        },
        sys::softirq::BhDisabled, //
    };

    #[test]
    fn ndk_inv_01_ends_the_access_through_a_region() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        assert!(can_write(&pair.a, memory.remote(0)?));
        assert!(pair.b.qp.invalidate_mr(1, memory.mr()?, 0).is_ok());
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        for test_side in [&pair.a, &other] {
            kunit_assert_eq!(write_one(test_side, memory.remote(0)?)?, REMOTE_RESOURCES);
        }
        Ok(())
    }

    #[test]
    fn ndk_inv_01_ends_the_access_through_a_window() -> Result {
        let pair = Pair::new()?;
        let memory = pair.b.buffer(4096, 5)?;
        let [first, second] = [window(&pair.b)?, window(&pair.b)?];
        bind(&pair.b, &memory, &first)?;
        bind(&pair.b, &memory, &second)?;
        assert!(can_write(&pair.a, remote_through_window(&first, &memory)));
        assert!(pair.b.qp.invalidate_mw(1, &first, 0).is_ok());
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        // The other window and the region itself stay.
        assert!(can_write(&pair.a, remote_through_window(&second, &memory)));
        assert!(can_write(&pair.a, memory.remote(0)?));
        kunit_assert_eq!(
            write_one(&pair.a, remote_through_window(&first, &memory))?,
            REMOTE_RESOURCES
        );
        Ok(())
    }

    #[test]
    fn ndk_inv_01_the_object_type_says_what_it_is() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        let region = pair.b.buffer(4096, 5)?;
        let opening = window(&pair.b)?;
        bind(&pair.b, &region, &opening)?;
        let named = [Named::Mr(memory.mr()?), Named::Mw(&opening)];
        for (context, what) in (1..).zip(&named) {
            let status = invalidate(&pair.b.qp, context, what, 0)?;
            kunit_assert_eq!(status, NtStatus::SUCCESS.raw());
            assert!(pair.b.requests.next_is(context, NtStatus::SUCCESS));
        }
        kunit_assert_eq!(
            write_one(&pair.a, remote_through_window(&opening, &region))?,
            REMOTE_RESOURCES
        );
        kunit_assert_eq!(write_one(&other, memory.remote(0)?)?, REMOTE_RESOURCES);
        Ok(())
    }

    #[test]
    fn ndk_inv_02_the_region_must_be_one_of_fast_registration() -> Result {
        let pair = Pair::new()?;
        // A region for fast registration that is not initialized.
        let bare = pair
            .b
            .pd
            .create_mr(true)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let refused = Err(NtStatus::INVALID_PARAMETER);
        kunit_assert_eq!(pair.b.qp.invalidate_mr(1, &bare, 0), refused);
        assert!(pair.b.requests.stays_empty());
        assert!(is_up(&pair.b));
        // Registered by FastRegister.
        let memory = opened(&pair.b, 4096)?;
        assert!(pair.b.qp.invalidate_mr(2, memory.mr()?, 0).is_ok());
        assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_inv_03_what_is_neither_is_refused_inline() -> Result {
        let pair = Pair::new()?;
        let normal = pair.b.buffer(4096, 5)?;
        let idle = pair
            .b
            .pd
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let refused = Err(NtStatus::INVALID_PARAMETER);
        for flags in cases([0, SILENT_SUCCESS, DEFER]) {
            kunit_assert_eq!(pair.b.qp.invalidate_mr(1, normal.mr()?, flags), refused);
            kunit_assert_eq!(pair.b.qp.invalidate_mr(2, &idle, flags), refused);
            for what in [
                Named::Nothing,
                Named::Pd(&pair.b.pd),
                Named::Mr(normal.mr()?),
            ] {
                let status = invalidate(&pair.b.qp, 3, &what, flags)?;
                kunit_assert_eq!(status, NtStatus::INVALID_PARAMETER.raw());
            }
        }
        // The refusals have posted no request and ended no access.
        assert!(pair.b.requests.stays_empty());
        assert!(is_up(&pair.b));
        assert!(can_write(&pair.a, normal.remote(0)?));
        Ok(())
    }

    #[test]
    fn ndk_inv_04_takes_three_flags_and_no_other() -> Result {
        let pair = Pair::new()?;
        let memory = PageBuffer::fast(&pair.b.pd, 4096, true)?;
        for flags in cases(combinations(&[SILENT_SUCCESS, READ_FENCE, DEFER])) {
            open(&pair.b, &memory)?;
            assert!(pair.b.qp.invalidate_mr(1, memory.mr()?, flags).is_ok());
            if flags & SILENT_SUCCESS == 0 && flags & DEFER == 0 {
                assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
            }
            // Ends a chain, and succeeds only if the region is invalid.
            open_after(&pair, &memory, flags)?;
            assert!(can_write(&pair.a, memory.remote(0)?));
            assert!(pair.b.qp.invalidate_mr(2, memory.mr()?, 0).is_ok());
            assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
        }
        open(&pair.b, &memory)?;
        let allowed = SILENT_SUCCESS | READ_FENCE | DEFER;
        for flag in cases((0..32).map(|bit| 1 << bit)) {
            if flag & allowed == 0 {
                let posted = pair
                    .b
                    .qp
                    .invalidate_mr(3, memory.mr()?, flag | SILENT_SUCCESS);
                kunit_assert_eq!(posted, Err(NtStatus::INVALID_PARAMETER));
            }
        }
        assert!(pair.b.requests.stays_empty());
        assert!(can_write(&pair.a, memory.remote(0)?));
        Ok(())
    }

    /// Registers again behind an invalidation with these flags.
    fn open_after(pair: &Pair, memory: &PageBuffer, flags: u32) -> Result {
        if flags & DEFER == 0 {
            return open(&pair.b, memory);
        }
        let rights = ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE;
        let posted = memory.fast_register(&pair.b.qp, 5, rights)?;
        posted.map_err(log_status)?;
        let told_first =
            flags & SILENT_SUCCESS != 0 || pair.b.requests.next_is(1, NtStatus::SUCCESS);
        match told_first && pair.b.requests.next_is(5, NtStatus::SUCCESS) {
            true => Ok(()),
            false => Err(EIO),
        }
    }

    #[test]
    fn ndk_inv_05_is_refused_where_there_is_no_connection() -> Result {
        let pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let memory = PageBuffer::fast(&pair.b.pd, 4096, true)?;
        let refused = Err(NtStatus::CONNECTION_INVALID);
        kunit_assert_eq!(pair.b.qp.invalidate_mr(1, memory.mr()?, 0), refused);
        assert!(pair.b.requests.stays_empty());
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        pair.b.qp.flush();
        kunit_assert_eq!(pair.b.qp.invalidate_mr(1, memory.mr()?, 0), refused);
        assert!(pair.b.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_inv_05_can_be_called_where_nobody_may_sleep() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let (qp, mr) = ((*pair.b.qp).clone(), (*memory.mr()?).clone());
        let other_task = OtherContext::new(move || {
            // The completion shows if the request was accepted.
            let _ = qp.invalidate_mr(0xABCD_EF01_2345, &mr, 0);
        })?;
        assert!(other_task.by_timer());
        let result = pair.b.requests.next()?;
        kunit_assert_eq!(result.request_context, 0xABCD_EF01_2345);
        kunit_assert_eq!(result.status, NtStatus::SUCCESS);
        kunit_assert_eq!(result.qp_context, 0xB);
        kunit_assert_eq!(result.operation, operation::INVALIDATE);
        kunit_assert_eq!(result.output, 0);
        assert!(pair.b.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_inv_06_validity_is_judged_when_it_is_carried_out() -> Result {
        let pair = Pair::new()?;
        let memory = PageBuffer::fast(&pair.b.pd, 4096, true)?;
        let rights = ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE;
        // The region is not yet valid when either invalidation is posted.
        for round in cases([10, 20]) {
            let posted = memory.fast_register(&pair.b.qp, round, rights | DEFER)?;
            assert!(posted.is_ok());
            let mr = memory.mr()?;
            assert!(pair.b.qp.invalidate_mr(round + 1, mr, DEFER).is_ok());
        }
        assert!(pair.b.requests.stays_empty());
        assert!(pair.b.qp.send(30, [].into_iter(), SILENT_SUCCESS).is_ok());
        for context in cases([10, 11, 20, 21]) {
            assert!(pair.b.requests.next_is(context, NtStatus::SUCCESS));
        }
        assert!(is_up(&pair.b));
        Ok(())
    }

    #[test]
    fn ndk_inv_06_what_is_invalid_already_ends_the_connection() -> Result {
        // A region that never was registered, an invalidated region, an unbound window.
        for case in cases(0..3) {
            let pair = Pair::new()?;
            let memory = PageBuffer::fast(&pair.b.pd, 4096, true)?;
            let opening = window(&pair.b)?;
            if case == 1 {
                open(&pair.b, &memory)?;
                assert!(pair.b.qp.invalidate_mr(1, memory.mr()?, 0).is_ok());
                assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
            }
            let posted = match case {
                2 => pair.b.qp.invalidate_mw(2, &opening, SILENT_SUCCESS),
                _ => pair.b.qp.invalidate_mr(2, memory.mr()?, SILENT_SUCCESS),
            };
            assert!(posted.is_ok());
            let result = pair.b.requests.next()?;
            kunit_assert_eq!(result.request_context, 2);
            kunit_assert_eq!(result.status, NtStatus::INVALID_DEVICE_REQUEST);
            kunit_assert_eq!(result.operation, operation::INVALIDATE);
            assert!(has_ended(&pair.b));
            assert!(has_ended(&pair.a));
        }
        Ok(())
    }

    #[test]
    fn ndk_inv_07_the_object_can_be_used_again() -> Result {
        let pair = Pair::new()?;
        let (other, there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        let first = memory.remote(0)?;
        assert!(pair.b.qp.invalidate_mr(1, memory.mr()?, 0).is_ok());
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        open(&there, &memory)?;
        assert!(can_write(&pair.a, memory.remote(0)?));
        // A window, on another queue pair.
        let region = pair.b.buffer(4096, 5)?;
        let opening = window(&pair.b)?;
        bind(&pair.b, &region, &opening)?;
        assert!(can_write(&pair.a, remote_through_window(&opening, &region)));
        assert!(pair.b.qp.invalidate_mw(2, &opening, 0).is_ok());
        assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
        bind(&there, &region, &opening)?;
        assert!(can_write(&other, remote_through_window(&opening, &region)));
        // The old token stays invalid.
        kunit_assert_eq!(write_one(&pair.a, first)?, REMOTE_RESOURCES);
        Ok(())
    }

    /// More bytes than one run of the transport moves.
    const LONG: usize = (1 << 20) + 4096;

    #[test]
    fn ndk_inv_07_a_transfer_in_progress_fails() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(LONG, 0)?;
        from.bytes.fill(0x77);
        let memory = opened(&pair.b, LONG)?;
        let (to, mr) = (memory.remote(0)?, memory.mr()?);
        // CAST: about 2^20.
        let sges = [from.sge(0, LONG as u32)?];
        // The write begins here and goes on in a thread of this processor, after the invalidation.
        let softirqs_off = BhDisabled::enter();
        let written = pair.a.qp.write(1, sges.into_iter(), to, 0);
        let ended = pair.b.qp.invalidate_mr(2, mr, 0);
        let done = pair.b.requests.poll();
        drop(softirqs_off);
        assert!(written.is_ok());
        assert!(ended.is_ok());
        assert!(done.is_some_and(|r| r.status == NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(1, REMOTE_RESOURCES));
        // The write had begun, and did not end.
        kunit_assert_eq!(memory.bytes[0], 0x77);
        kunit_assert_eq!(memory.bytes[LONG - 1], 0);
        Ok(())
    }
}
