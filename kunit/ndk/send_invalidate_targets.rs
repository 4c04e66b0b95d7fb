// SPDX-License-Identifier: GPL-2.0

//! Tokens that SendAndInvalidate may invalidate, and tokens that it may not (SINV-07 to SINV-09).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_send_invalidate_targets)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::wait_until,
        ndk::{
            abi::numbers::operation,
            status::NtStatus,
            tests::{
                host::pd,
                memory::PageBuffer,
                pair::{
                    Pair,
                    TestSide, //
                },
                remote::{
                    beside,
                    bind,
                    can_write,
                    has_ended,
                    is_up,
                    opened,
                    remote_through_window,
                    window,
                    write_one,
                    NOTHING,
                    REMOTE_RESOURCES, //
                }, //
            }, //
        },
        rdma::values::token::Token, //
    };

    /// Sends a message that invalidates `token`; returns the statuses of send and receive.
    fn ends(pair: &Pair, token: Token) -> Result<(NtStatus, NtStatus)> {
        pair.b.receive(1, &[])?;
        let posted = pair
            .a
            .qp
            .send_and_invalidate(2, NOTHING.into_iter(), 0, token);
        posted.map_err(|_| EIO)?;
        let (sent, got) = (pair.a.requests.next()?, pair.b.receives.next()?);
        let fine = sent.operation == operation::SEND
            && sent.request_context == 2
            && got.request_context == 1
            && (got.output == token.raw()) == (got.status == NtStatus::SUCCESS);
        match fine {
            true => Ok((sent.status, got.status)),
            false => Err(EIO),
        }
    }

    /// Returns true if a message that invalidates `token` is refused, and ends the connection.
    fn refuses(pair: &Pair, token: Token) -> bool {
        let status = ends(pair, token);
        if status != Ok((REMOTE_RESOURCES, NtStatus::INVALID_DEVICE_REQUEST)) {
            kunit_note!("token {:x} ended with {:?}", token.raw(), status);
            return false;
        }
        has_ended(&pair.a) && has_ended(&pair.b)
    }

    #[test]
    fn ndk_sinv_07_a_token_that_is_not_valid_ends_the_connection() -> Result {
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let valid = memory.mr()?.remote_token();
        let stale = Token::new(valid.index(), valid.key().wrapping_sub(1)).ok_or(EINVAL)?;
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[])?;
        let none = || NOTHING.into_iter();
        assert!(pair.a.qp.send_and_invalidate(3, none(), 0, stale).is_ok());
        // A later request is not carried out.
        let _ = pair.a.qp.send(4, none(), 0);
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.request_context, 1);
        assert!(got.status != NtStatus::SUCCESS);
        let sent = pair.a.requests.next()?;
        kunit_assert_eq!(sent.request_context, 3);
        assert!(sent.status != NtStatus::SUCCESS);
        assert!(has_ended(&pair.a));
        assert!(has_ended(&pair.b));
        // No message has used the second receive.
        pair.b.qp.flush();
        assert!(pair.b.receives.next_is(2, NtStatus::CANCELLED));
        // The sender's consumer gets a disconnect event.
        assert!(wait_until(|| pair.a.disconnects.get() == 1));
        Ok(())
    }

    #[test]
    fn ndk_sinv_08_both_sides_are_notified_by_their_statuses() -> Result {
        kunit_assert_eq!(REMOTE_RESOURCES.raw(), 0xC000_013Du32 as i32);
        let pair = Pair::new()?;
        assert!(refuses(&pair, Token::from_raw(0x00BA_D000)));
        let pair = Pair::new()?;
        let memory = opened(&pair.b, 4096)?;
        let token = memory.mr()?.remote_token();
        kunit_assert_eq!(ends(&pair, token)?, (NtStatus::SUCCESS, NtStatus::SUCCESS));
        // The same token once more.
        assert!(refuses(&pair, token));
        Ok(())
    }

    #[test]
    fn ndk_sinv_09_fast_registered_regions_and_bound_windows_may_be() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let fine = (NtStatus::SUCCESS, NtStatus::SUCCESS);
        let memory = opened(&pair.b, 4096)?;
        kunit_assert_eq!(ends(&pair, memory.mr()?.remote_token())?, fine);
        kunit_assert_eq!(write_one(&other, memory.remote(0)?)?, REMOTE_RESOURCES);
        let region = pair.b.buffer(4096, 5)?;
        let opening = window(&pair.b)?;
        bind(&pair.b, &region, &opening)?;
        assert!(can_write(&pair.a, remote_through_window(&opening, &region)));
        kunit_assert_eq!(ends(&pair, opening.remote_token())?, fine);
        assert!(is_up(&pair.a));
        // The region of the window stays valid.
        assert!(can_write(&pair.a, region.remote(0)?));
        kunit_assert_eq!(
            write_one(&pair.a, remote_through_window(&opening, &region))?,
            REMOTE_RESOURCES
        );
        Ok(())
    }

    #[test]
    fn ndk_sinv_09_a_region_that_was_registered_normally_may_not_be() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let region = pair.b.buffer(4096, 5)?;
        assert!(refuses(&pair, region.mr()?.remote_token()));
        assert!(can_write(&other, region.remote(0)?));
        Ok(())
    }

    #[test]
    fn ndk_sinv_09_a_region_of_another_domain_may_not_be() -> Result {
        let pair = Pair::new()?;
        // A region of the sender, and a region of another domain at the receiver.
        let foreign = opened(&pair.a, 4096)?;
        let token = foreign.mr()?.remote_token();
        assert!(refuses(&pair, token));
        drop(foreign);
        let pair = Pair::new()?;
        let (other, there) = beside(&pair)?;
        let stranger = pd(&pair.test_host.adapter)?;
        let memory = PageBuffer::fast(&stranger, 4096, true)?;
        // The region cannot even be registered here, so its token is not valid either.
        assert!(memory.fast_register(&there.qp, 1, 0)?.is_err());
        assert!(refuses(&pair, memory.mr()?.remote_token()));
        assert!(is_up(&other));
        Ok(())
    }

    #[test]
    fn ndk_sinv_09_the_privileged_token_may_not_be() -> Result {
        let pair = Pair::new()?;
        assert!(refuses(&pair, pair.b.pd.privileged_token()));
        Ok(())
    }

    #[test]
    fn ndk_sinv_09_a_window_of_another_queue_pair_may_not_be() -> Result {
        let pair = Pair::new()?;
        let (other, there): (TestSide, TestSide) = beside(&pair)?;
        let region = pair.b.buffer(4096, 5)?;
        let opening = window(&pair.b)?;
        bind(&there, &region, &opening)?;
        assert!(refuses(&pair, opening.remote_token()));
        assert!(can_write(&other, remote_through_window(&opening, &region)));
        Ok(())
    }

    #[test]
    fn ndk_sinv_09_a_window_that_is_not_bound_may_not_be() -> Result {
        let pair = Pair::new()?;
        let opening = window(&pair.b)?;
        assert!(refuses(&pair, opening.remote_token()));
        Ok(())
    }

    #[test]
    fn ndk_sinv_09_the_owners_token_of_a_region_may_not_be() -> Result {
        let pair = Pair::new()?;
        let (other, _there) = beside(&pair)?;
        let memory = opened(&pair.b, 4096)?;
        assert!(refuses(&pair, memory.mr()?.local_token()));
        assert!(can_write(&other, memory.remote(0)?));
        Ok(())
    }
}
