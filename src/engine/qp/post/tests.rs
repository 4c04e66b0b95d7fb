// SPDX-License-Identifier: GPL-2.0

//! Local requests that are carried out inside the post, and those that have to wait.
//!
//! The test acts as the transport: a request that it is not asked to start was carried out inside
//! the post.

#[kernel::macros::kunit_tests(ndk_engine_qp_post)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::{
            counters::Counter,
            memory::Denied, //
        },
        kunit::{
            buffer::BASE,
            fake::ManualQp,
            harness::{
                cases,
                EndAttr, //
            },
            requests::{
                invalidate,
                register,
                SEND, //
            }, //
        },
        rdma::values::{
            access::{
                AccessFlag,
                AccessFlags, //
            },
            qp::QpState,
            status::Status,
            token::Token,
            work::{
                SendFlag,
                SendFlags,
                SendOp, //
            }, //
        }, //
    };

    const RIGHTS: AccessFlags = AccessFlags::of([AccessFlag::RemoteRead]);
    fn valid(manual: &ManualQp, token: Token) -> bool {
        let user = manual.end.qp.peer_user();
        let regions = &manual.end.device().regions;
        let access = regions.access(token, user, RIGHTS, BASE, 8);
        matches!(access.map(|_| ()), Ok(()))
    }

    /// A queue pair with a staged region of eight bytes, and the request that makes it valid.
    fn prepared() -> Result<(ManualQp, Token, SendOp)> {
        let manual = ManualQp::new(&EndAttr::PLAIN)?;
        let token = manual.end.fast(8)?.token();
        Ok((manual, token, register(token, 8, RIGHTS)))
    }

    #[test]
    fn an_idle_queue_registers_and_invalidates_inside_the_post() -> Result {
        let (mut manual, token, make) = prepared()?;
        for round in cases(0..40) {
            let doorbells = manual.fake.doorbells.get();
            manual.end.post(round, make, &[])?;
            assert!(valid(&manual, token));
            manual.end.post(round + 100, invalidate(token), &[])?;
            assert!(!valid(&manual, token));
            assert!(manual.start().is_none());
            kunit_assert_eq!(manual.fake.doorbells.get(), doorbells);
            assert!(manual.end.sends.next_is(round, Status::Success));
            assert!(manual.end.sends.next_is(round + 100, Status::Success));
        }
        assert!(manual.end.sends.stays_empty());
        kunit_assert_eq!(manual.end.counted(Counter::Registrations), 40);
        kunit_assert_eq!(manual.end.counted(Counter::InvalidationsLocal), 40);
        Ok(())
    }

    #[test]
    fn silent_ones_leave_no_entry() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual.end.post_with(1, make, SendFlags::empty(), &[])?;
        assert!(valid(&manual, token));
        manual
            .end
            .post_with(2, invalidate(token), SendFlags::empty(), &[])?;
        assert!(!valid(&manual, token));
        assert!(manual.start().is_none());
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn behind_another_request_they_wait_for_their_turn() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual.end.post(1, SEND, &[])?;
        manual.end.post(2, make, &[])?;
        assert!(!valid(&manual, token));
        let send = manual.start().ok_or(EINVAL)?;
        let register = manual.start().ok_or(EINVAL)?;
        // A started request is in the way as well.
        manual.finish(register, Status::Success);
        assert!(manual.end.sends.stays_empty());
        manual.end.post(3, make, &[])?;
        assert!(!valid(&manual, token));
        manual.finish(send, Status::Success);
        assert!(manual.end.sends.next_are(1..3, Status::Success));
        let last = manual.start().ok_or(EINVAL)?;
        manual.finish(last, Status::Success);
        assert!(manual.end.sends.next_is(3, Status::Success));
        // The queue is idle again.
        manual.end.post(4, make, &[])?;
        assert!(valid(&manual, token));
        assert!(manual.end.sends.next_is(4, Status::Success));
        Ok(())
    }

    #[test]
    fn behind_a_failure_nothing_is_carried_out_before_the_queue_pair_has_failed_either() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual.end.post(1, SEND, &[])?;
        assert!(manual.start().is_some());
        let qp = manual.end.qp.clone();
        let mut sq = qp.sq.lock();
        sq.end(&mut manual.started.wqe, Status::RemoteAccess);
        sq.retire(|| false, &qp.params);
        // The processor that failed the request has come as far as this.
        assert!(sq.is_empty());
        drop(sq);
        manual.end.post(2, make, &[])?;
        manual.end.post(3, SEND, &[])?;
        assert!(!valid(&manual, token));
        assert!(manual.start().is_none());
        qp.fail();
        assert!(manual.end.sends.next_is(1, Status::RemoteAccess));
        assert!(manual.end.sends.next_are(2..4, Status::Flushed));
        assert!(!valid(&manual, token));
        assert!(manual.end.sends.stays_empty());
        // A reset is a new beginning.
        for state in cases([QpState::Reset, QpState::Init]) {
            qp.modify(state)?;
        }
        manual.attach()?;
        manual.end.post(4, make, &[])?;
        assert!(valid(&manual, token));
        assert!(manual.end.sends.next_is(4, Status::Success));
        Ok(())
    }

    #[test]
    fn held_back_ones_wait_for_the_end_of_their_chain() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual
            .end
            .post_with(1, make, SendFlag::Signaled | SendFlag::Deferred, &[])?;
        assert!(!valid(&manual, token));
        assert!(manual.start().is_none());
        manual.end.post(2, SEND, &[])?;
        kunit_assert_eq!(manual.start_all(), 2);
        Ok(())
    }

    #[test]
    fn an_invalidation_waits_for_the_access_that_runs() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual.end.post(1, make, &[])?;
        assert!(manual.end.sends.next_is(1, Status::Success));
        let domain = manual.end.domain.clone();
        let user = manual.end.qp.peer_user();
        let access = domain.device().regions.access(token, user, RIGHTS, BASE, 8);
        assert!(access.is_ok());
        manual.end.post(2, invalidate(token), &[])?;
        // The request was left to the transport; the region stays valid until that begins.
        assert!(manual.end.sends.stays_empty());
        assert!(valid(&manual, token));
        assert!(manual.start().is_some());
        assert!(manual.start().is_none());
        drop(access);
        Ok(())
    }

    #[test]
    fn what_fails_is_left_to_its_turn() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual.end.post(1, make, &[])?;
        assert!(manual.end.sends.next_is(1, Status::Success));
        // Valid already; not valid; unknown.
        manual.end.post(2, make, &[])?;
        assert!(manual.start().is_some());
        assert!(manual.end.sends.stays_empty());
        let (mut manual, token_2, _) = prepared()?;
        manual.end.post(3, invalidate(token_2), &[])?;
        assert!(manual.start().is_some());
        assert!(manual.end.sends.stays_empty());
        let (mut manual, _, _) = prepared()?;
        manual.end.post(4, invalidate(Token::LOCAL_MEMORY), &[])?;
        assert!(manual.start().is_some());
        assert!(manual.end.sends.stays_empty());
        kunit_assert_eq!(manual.end.counted(Counter::InvalidationsRefused), 0);
        let user = manual.end.qp.peer_user();
        let regions = &manual.end.device().regions;
        let denied = regions.access(token, user, RIGHTS, BASE, 8);
        assert!(matches!(denied, Err(Denied::Token)));
        Ok(())
    }

    #[test]
    fn a_queue_pair_that_failed_cancels_them() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual.end.qp.fail();
        manual.end.post(1, make, &[])?;
        assert!(!valid(&manual, token));
        assert!(manual.start().is_none());
        assert!(manual.end.sends.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_close_that_has_begun_lets_none_through() -> Result {
        let (mut manual, token, make) = prepared()?;
        manual.end.post(1, SEND, &[])?;
        let send = manual.start().ok_or(EINVAL)?;
        manual.end.qp.close();
        manual.end.post(2, make, &[])?;
        manual.finish(send, Status::Success);
        assert!(!valid(&manual, token));
        assert!(manual.end.sends.next_is(1, Status::Success));
        assert!(manual.end.sends.next_is(2, Status::Flushed));
        Ok(())
    }
}
