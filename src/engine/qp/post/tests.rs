// SPDX-License-Identifier: GPL-2.0

//! Local requests that are carried out inside the post, and those that have to wait.
//!
//! The transport is the test itself: what it is not asked to start was carried out without it.

#[kernel::macros::kunit_tests(ndk_engine_qp_post)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::{
            counters::Counter,
            memory::{
                rights::Rights,
                token::Token,
                Denied, //
            },
            status::Status,
            work::{
                Flags,
                Work, //
            }, //
        },
        kunit::{
            buffer::BASE,
            fake::Hand,
            harness::Plan,
            requests::{
                invalidate,
                register,
                SEND, //
            }, //
        }, //
    };

    const RIGHTS: Rights = Rights::REMOTE_READ;
    const HELD_BACK: Flags = Flags::SIGNALED.with(Flags::DEFERRED);

    fn valid(hand: &Hand, token: Token) -> bool {
        let user = hand.end.qp.peer_user();
        let regions = &hand.end.device().regions;
        let access = regions.access(token, user, RIGHTS, BASE, 8);
        matches!(access.map(|_| ()), Ok(()))
    }

    /// A hand with a region of eight bytes that is staged, and the request that makes it valid.
    fn prepared() -> Result<(Hand, Token, Work)> {
        let hand = Hand::new(&Plan::PLAIN)?;
        let token = hand.end.fast(8)?.token();
        Ok((hand, token, register(token, 8, RIGHTS)))
    }

    #[test]
    fn an_idle_queue_registers_and_invalidates_inside_the_post() -> Result {
        let (mut hand, token, make) = prepared()?;
        for round in 0..40 {
            let doorbells = hand.fake.doorbells.get();
            hand.end.post(round, make, &[])?;
            assert!(valid(&hand, token));
            hand.end.post(round + 100, invalidate(token), &[])?;
            assert!(!valid(&hand, token));
            assert!(hand.start().is_none() && hand.fake.doorbells.get() == doorbells);
            assert!(hand.end.sends.brings(round, Status::Success));
            assert!(hand.end.sends.brings(round + 100, Status::Success));
        }
        assert!(hand.end.sends.is_silent());
        assert!(hand.end.counted(Counter::Registrations) == 40);
        assert!(hand.end.counted(Counter::InvalidationsLocal) == 40);
        Ok(())
    }

    #[test]
    fn silent_ones_leave_no_entry() -> Result {
        let (mut hand, token, make) = prepared()?;
        hand.end.post_with(1, make, Flags::NONE, &[])?;
        assert!(valid(&hand, token));
        hand.end.post_with(2, invalidate(token), Flags::NONE, &[])?;
        assert!(!valid(&hand, token));
        assert!(hand.start().is_none() && hand.end.sends.is_silent());
        Ok(())
    }

    #[test]
    fn behind_another_request_they_wait_for_their_turn() -> Result {
        let (mut hand, token, make) = prepared()?;
        hand.end.post(1, SEND, &[])?;
        hand.end.post(2, make, &[])?;
        assert!(!valid(&hand, token));
        let send = hand.start().ok_or(EINVAL)?;
        let register = hand.start().ok_or(EINVAL)?;
        // Begun is in the way as well.
        hand.finish(register, Status::Success);
        assert!(hand.end.sends.is_silent());
        hand.end.post(3, make, &[])?;
        assert!(!valid(&hand, token));
        hand.finish(send, Status::Success);
        assert!(hand.end.sends.brings_all(1..3, Status::Success));
        let last = hand.start().ok_or(EINVAL)?;
        hand.finish(last, Status::Success);
        assert!(hand.end.sends.brings(3, Status::Success));
        // And now it is idle again.
        hand.end.post(4, make, &[])?;
        assert!(valid(&hand, token) && hand.end.sends.brings(4, Status::Success));
        Ok(())
    }

    #[test]
    fn held_back_ones_wait_for_the_end_of_their_chain() -> Result {
        let (mut hand, token, make) = prepared()?;
        hand.end.post_with(1, make, HELD_BACK, &[])?;
        assert!(!valid(&hand, token) && hand.start().is_none());
        hand.end.post(2, SEND, &[])?;
        assert!(hand.start_all() == 2);
        Ok(())
    }

    #[test]
    fn an_invalidation_waits_for_the_access_that_runs() -> Result {
        let (mut hand, token, make) = prepared()?;
        hand.end.post(1, make, &[])?;
        assert!(hand.end.sends.brings(1, Status::Success));
        let domain = hand.end.domain.clone();
        let user = hand.end.qp.peer_user();
        let access = domain.device().regions.access(token, user, RIGHTS, BASE, 8);
        assert!(access.is_ok());
        hand.end.post(2, invalidate(token), &[])?;
        // It was left to the transport, and nothing is closed before that begins.
        assert!(hand.end.sends.is_silent() && valid(&hand, token));
        assert!(hand.start().is_some() && hand.start().is_none());
        drop(access);
        Ok(())
    }

    #[test]
    fn what_fails_is_left_to_its_turn() -> Result {
        let (mut hand, token, make) = prepared()?;
        hand.end.post(1, make, &[])?;
        assert!(hand.end.sends.brings(1, Status::Success));
        // Valid already; not valid; unknown.
        hand.end.post(2, make, &[])?;
        assert!(hand.start().is_some() && hand.end.sends.is_silent());
        let (mut hand, token_2, _) = prepared()?;
        hand.end.post(3, invalidate(token_2), &[])?;
        assert!(hand.start().is_some() && hand.end.sends.is_silent());
        let (mut hand, _, _) = prepared()?;
        hand.end.post(4, invalidate(Token::LOCAL_MEMORY), &[])?;
        assert!(hand.start().is_some() && hand.end.sends.is_silent());
        assert!(hand.end.counted(Counter::InvalidationsRefused) == 0);
        let user = hand.end.qp.peer_user();
        let regions = &hand.end.device().regions;
        let denied = regions.access(token, user, RIGHTS, BASE, 8);
        assert!(matches!(denied, Err(Denied::Token)));
        Ok(())
    }

    #[test]
    fn a_queue_pair_that_failed_cancels_them() -> Result {
        let (mut hand, token, make) = prepared()?;
        hand.end.qp.fail();
        hand.end.post(1, make, &[])?;
        assert!(!valid(&hand, token) && hand.start().is_none());
        assert!(hand.end.sends.brings(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_close_that_has_begun_lets_none_through() -> Result {
        let (mut hand, token, make) = prepared()?;
        hand.end.post(1, SEND, &[])?;
        let send = hand.start().ok_or(EINVAL)?;
        hand.end.qp.close();
        hand.end.post(2, make, &[])?;
        hand.finish(send, Status::Success);
        assert!(!valid(&hand, token));
        assert!(hand.end.sends.brings(1, Status::Success));
        assert!(hand.end.sends.brings(2, Status::Flushed));
        Ok(())
    }
}
