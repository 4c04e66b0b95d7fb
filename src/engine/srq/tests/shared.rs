// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues to which a program posts without a call.

use kernel::prelude::*;

use super::SrqUsers;
use crate::{
    engine::looking::ProgramReceives,
    sys::shared::tests::{
        receives,
        Program, //
    }, //
};

/// The number of receives that the program's queue takes.
const LIMIT: u32 = 8;

fn shared() -> Result<(SrqUsers, Program)> {
    let srq_users = SrqUsers::new(LIMIT)?;
    let (ring, program) = receives(LIMIT, 4)?;
    let receives = ProgramReceives::new(ring);
    srq_users.shared.srq.share_receives(receives)?;
    Ok((srq_users, program))
}

#[kernel::macros::kunit_tests(ndk_engine_srq_tests_shared)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            ring::ResizeError,
            srq::SharedReceive, //
        },
        kunit::{
            harness::{
                cases,
                runs_over_tcp,
                same, //
            },
            requests::*, //
        },
        rdma::values::status::Status,
        sys::timer::Expires, //
    };

    impl Program {
        fn gives(&self, context: u32) -> bool {
            self.post(LIMIT, 4, context, &[])
        }
    }

    #[test]
    fn messages_take_what_the_program_has_posted_and_the_limit_counts_it() -> Result {
        let (srq_users, program) = shared()?;
        for context in cases(0..6) {
            assert!(program.gives(context));
        }
        kunit_assert_eq!(srq_users.shared.srq.posted(), 6);
        srq_users.shared.srq.set_limit(4)?;
        for n in cases(0..2) {
            srq_users.senders[0].post(n, SEND, &[])?;
            assert!(srq_users.users[0].receives.next_is(n, Status::Success));
        }
        assert!(srq_users.has_reported(0));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 4);
        srq_users.senders[1].post(2, SEND, &[])?;
        assert!(srq_users.users[1].receives.next_is(2, Status::Success));
        assert!(srq_users.has_reported(1));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 0);
        // At once, if fewer are there already.
        srq_users.shared.srq.set_limit(4)?;
        assert!(srq_users.has_reported(2));
        Ok(())
    }

    #[test]
    fn the_limit_of_a_new_queue_waits_for_a_fall_there_too() -> Result {
        let (srq_users, program) = shared()?;
        srq_users.shared.srq.preset_limit(2);
        for context in cases(0..2) {
            assert!(program.gives(context));
        }
        assert!(srq_users.has_reported(0));
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.has_reported(1));
        Ok(())
    }

    #[test]
    fn the_limit_of_a_new_queue_counts_what_is_posted_between_messages() -> Result {
        let (srq_users, program) = shared()?;
        srq_users.shared.srq.preset_limit(4);
        for context in cases(0..3) {
            assert!(program.gives(context));
        }
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.users[0].receives.next_is(0, Status::Success));
        assert!(srq_users.has_reported(0));
        // Four are there once, and three after the next message.
        assert!(program.gives(3));
        assert!(program.gives(4));
        srq_users.senders[0].post(2, SEND, &[])?;
        assert!(srq_users.users[0].receives.next_is(1, Status::Success));
        assert!(srq_users.has_reported(1));
        Ok(())
    }

    #[test]
    fn who_waits_is_served_in_turn_without_a_call() -> Result {
        const EACH: u64 = 3;
        let (srq_users, program) = shared()?;
        for (sender, waits) in srq_users.senders.iter().zip(1..) {
            for n in cases(0..EACH) {
                sender.post(n, SEND, &[])?;
            }
            assert!(srq_users.waits(waits));
        }
        for n in cases(0..EACH * 3) {
            assert!(srq_users.waits((EACH * 3 - n).min(3)));
            // CAST: small numbers.
            assert!(program.gives(n as u32));
            let user = &srq_users.users[(n % 3) as usize];
            assert!(user.receives.next_is(n, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn a_message_waits_while_receives_move_and_is_served_then() -> Result {
        let srq_users = SrqUsers::new(LIMIT)?;
        let (old, program) = receives(40, 4)?;
        let srq = &srq_users.shared.srq;
        srq.share_receives(ProgramReceives::new(old))?;
        for context in cases(0..40) {
            assert!(program.post(40, 4, context, &[]));
        }
        srq.set_limit(40)?;
        let (mut ring, program) = receives(50, 4)?;
        let (mut moved, mut count) = (0, None);
        kunit_assert_eq!(srq.move_some(&mut ring, &mut moved, &mut count), Ok(false));
        kunit_assert_eq!(moved, 16);
        srq_users.senders[1].post(0, SEND, &[])?;
        assert!(srq_users.waits(1));
        // Neither a look nor a second message finds a receive, and the number does not fall.
        SharedReceive::expired(srq.clone());
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.waits(2));
        kunit_assert_eq!(srq.posted(), 40);
        assert!(srq_users.has_reported(0));
        while srq.move_some(&mut ring, &mut moved, &mut count) == Ok(false) {}
        // In the order in which they wait; over TCP both look at once.
        let took = |user: usize| srq_users.users[user].receives.next();
        let took = [took(1), took(0)].map(|wc| wc.map(|wc| (wc.context.raw(), wc.status)));
        let want = [0, 1].map(|context| Some((context, Status::Success)));
        assert!(same(took, want) || (runs_over_tcp() && same([took[1], took[0]], want)));
        assert!(srq_users.has_reported(1));
        kunit_assert_eq!(srq.depth(), 50);
        assert!(program.post(50, 4, 40, &[]));
        for n in cases(2..41) {
            srq_users.senders[2].post(n, SEND, &[])?;
            assert!(srq_users.users[2].receives.next_is(n, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn what_is_posted_moves_to_a_queue_of_another_size() -> Result {
        let (srq_users, program) = shared()?;
        for context in cases(0..5) {
            assert!(program.gives(context));
        }
        let srq = &srq_users.shared.srq;
        // Not like a queue that no program shares.
        assert!(srq.is_shared());
        kunit_assert_eq!(srq.resize(16), Err(ResizeError::TooMany));
        let (small, _) = receives(4, 4)?;
        kunit_assert_eq!(srq.resize_shared(small), Err(ResizeError::TooMany));
        kunit_assert_eq!(srq.depth(), LIMIT);
        kunit_assert_eq!(srq.posted(), 5);
        let (ring, program) = receives(6, 4)?;
        kunit_assert_eq!(srq.resize_shared(ring), Ok(()));
        kunit_assert_eq!(srq.depth(), 6);
        kunit_assert_eq!(srq.set_limit(7), Err(EINVAL));
        assert!(program.post(6, 4, 5, &[]));
        assert!(!program.post(6, 4, 9, &[]));
        for n in cases(0..6) {
            srq_users.senders[0].post(n, SEND, &[])?;
            assert!(srq_users.users[0].receives.next_is(n, Status::Success));
        }
        // A waiting message is served by the new queue.
        srq_users.senders[2].post(6, SEND, &[])?;
        assert!(srq_users.waits(1));
        let (ring, program) = receives(3, 4)?;
        kunit_assert_eq!(srq.resize_shared(ring), Ok(()));
        assert!(program.post(3, 4, 6, &[]));
        assert!(srq_users.users[2].receives.next_is(6, Status::Success));
        Ok(())
    }
}
