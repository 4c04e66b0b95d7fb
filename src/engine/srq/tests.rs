// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues: the limit event, several users, and the end of one of them.

mod shared;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::domain::Domain,
    kunit::{
        harness::{
            connect,
            connect_pair,
            flush_work,
            same,
            wait_until,
            End,
            EndAttr,
            EngineHost,
            RNR_MS, //
        },
        queues::Shared, //
    },
    rdma::values::qp::QpState,
    sys::sge::test_posted, //
};

/// Three receiving ends over one shared queue, and a sender for each.
struct SrqUsers {
    senders: [End; 3],
    users: [End; 3],
    shared: Arc<Shared>,
    // Dropped last.
    _engine_host: EngineHost,
}

impl SrqUsers {
    fn new(depth: u32) -> Result<Self> {
        let engine_host = EngineHost::new(RNR_MS)?;
        let domain = Domain::new(engine_host.device()?, GFP_KERNEL)?;
        let shared = Shared::new(&domain, depth, 4)?;
        let sender = || engine_host.end(&EndAttr::PLAIN);
        let user = || engine_host.end_in(&domain, &EndAttr::PLAIN, Some(shared.clone()));
        let srq_users = Self {
            senders: [sender()?, sender()?, sender()?],
            users: [user()?, user()?, user()?],
            shared,
            _engine_host: engine_host,
        };
        for (sender, user) in srq_users.senders.iter().zip(&srq_users.users) {
            connect(connect_pair, sender, user)?;
        }
        Ok(srq_users)
    }

    /// Returns true once `users` queue pairs wait for a receive.
    fn waits(&self, users: u64) -> bool {
        // CAST: widening.
        let waiting = || self.shared.srq.inner.lock().waiting.iter().count() as u64;
        wait_until(|| waiting() == users)
    }

    /// Returns true once messages have taken all receives but `left`.
    fn leaves(&self, left: u32) -> bool {
        wait_until(|| self.shared.srq.posted() == left)
    }

    /// Returns true if the limit event has come that often, and is not about to come again; waits for
    /// it.
    fn has_reported(&self, times: u32) -> bool {
        let limits = &self.shared.log.limits;
        wait_until(|| limits.get() >= times);
        flush_work(self.users[0].device());
        same(limits.get(), times)
    }
}

#[kernel::macros::kunit_tests(ndk_engine_srq)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            qp::Taken,
            wq::PostError, //
        },
        kunit::{
            fake::{
                ManualQp,
                MESSAGE, //
            },
            harness::cases,
            requests::*, //
        },
        rdma::values::status::Status, //
    };

    #[test]
    fn there_is_a_room_for_every_user() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let domain = Domain::new(engine_host.device()?, GFP_KERNEL)?;
        let shared = Shared::new(&domain, 1, 1)?;
        for users in cases(1..=100) {
            shared.srq.add_user()?;
            let inner = shared.srq.inner.lock();
            kunit_assert_eq!(inner.users, users);
            kunit_assert_eq!(inner.nodes.len(), users);
        }
        Ok(())
    }

    #[test]
    fn a_receive_completes_in_the_queue_of_whoever_took_it() -> Result {
        let srq_users = SrqUsers::new(8)?;
        let memory = srq_users.users[0].buffer(32)?;
        let source = srq_users.senders[1].filled(16, 41)?;
        srq_users.shared.post(1, &[memory.sge(0, 16)])?;
        srq_users.shared.post(2, &[memory.sge(16, 16)])?;
        let whole = [source.whole()];
        for (user, context, len) in cases([(1, 1, 16), (0, 2, 0)]) {
            let elements = if len > 0 { &whole[..] } else { &[] };
            srq_users.senders[user].post(7, SEND, elements)?;
            let end = &srq_users.users[user];
            let entry = end
                .receives
                .next()
                .map(|e| (e.context.raw(), e.byte_len, e.qp));
            let cookie = crate::kunit::harness::qp_context(end.qp.params.number);
            kunit_assert_eq!(entry, Some((context, len, cookie)));
        }
        assert!(memory.holds(0, 16, 41, 0));
        assert!(memory.is_blank(16, 16));
        Ok(())
    }

    #[test]
    fn who_waits_is_served_in_turn() -> Result {
        const EACH: u64 = 4;
        let srq_users = SrqUsers::new(8)?;
        for (sender, waits) in srq_users.senders.iter().zip(1..) {
            for n in cases(0..EACH) {
                sender.post(n, SEND, &[])?;
            }
            assert!(srq_users.waits(waits));
        }
        for n in cases(0..EACH * 3) {
            // A queue pair that was served waits behind the others again, if it has a message left.
            assert!(srq_users.waits((EACH * 3 - n).min(3)));
            srq_users.shared.post(n, &[])?;
            // CAST: below three.
            let user = &srq_users.users[(n % 3) as usize];
            assert!(user.receives.next_is(n, Status::Success));
        }
        for sender in &srq_users.senders {
            assert!(sender.sends.next_are(0..EACH, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn who_waits_behind_a_broken_one_moves_up() -> Result {
        let srq_users = SrqUsers::new(8)?;
        for (sender, waits) in srq_users.senders.iter().zip(1..) {
            sender.post(1, SEND, &[])?;
            // All three wait before the first one fails.
            assert!(srq_users.waits(waits));
        }
        // The first queue pair has failed, and does not take this receive.
        srq_users.users[0].qp.fail();
        srq_users.shared.post(5, &[])?;
        assert!(srq_users.users[1].receives.next_is(5, Status::Success));
        srq_users.users[1].qp.fail();
        srq_users.shared.post(6, &[])?;
        assert!(srq_users.users[2].receives.next_is(6, Status::Success));
        assert!(srq_users.senders[0].sends.next_is(1, Status::Flushed));
        assert!(srq_users.senders[1].sends.next_is(1, Status::Success));
        assert!(srq_users.senders[2].sends.next_is(1, Status::Success));
        Ok(())
    }

    #[test]
    fn the_limit_is_reported_once_when_fewer_are_left() -> Result {
        let srq_users = SrqUsers::new(8)?;
        for context in cases(0..6) {
            srq_users.shared.post(context, &[])?;
        }
        srq_users.shared.srq.set_limit(4)?;
        let send = |n| srq_users.senders[0].post(n, SEND, &[]);
        send(0)?;
        send(1)?;
        assert!(srq_users.leaves(4));
        // Four are left, which is not fewer than four.
        assert!(srq_users.has_reported(0));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 4);
        send(2)?;
        assert!(srq_users.has_reported(1));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 0);
        // The limit is off until it is armed again, however often the number falls.
        for context in cases(6..9) {
            srq_users.shared.post(context, &[])?;
        }
        for n in cases(3..8) {
            send(n)?;
        }
        assert!(srq_users.leaves(1));
        assert!(srq_users.has_reported(1));
        Ok(())
    }

    #[test]
    fn a_limit_above_the_number_present_is_reported_at_once() -> Result {
        let srq_users = SrqUsers::new(8)?;
        for context in cases(0..3) {
            srq_users.shared.post(context, &[])?;
        }
        srq_users.shared.srq.set_limit(3)?;
        assert!(srq_users.has_reported(0));
        srq_users.shared.srq.set_limit(4)?;
        assert!(srq_users.has_reported(1));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 0);
        srq_users.shared.srq.set_limit(8)?;
        assert!(srq_users.has_reported(2));
        Ok(())
    }

    #[test]
    fn the_limit_of_a_new_queue_waits_for_a_fall() -> Result {
        let srq_users = SrqUsers::new(4)?;
        srq_users.shared.srq.preset_limit(2);
        assert!(srq_users.has_reported(0));
        for context in cases(0..2) {
            srq_users.shared.post(context, &[])?;
        }
        assert!(srq_users.has_reported(0));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 2);
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.senders[0].sends.next_is(1, Status::Success));
        assert!(srq_users.has_reported(1));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 0);
        Ok(())
    }

    #[test]
    fn the_limit_of_a_new_queue_is_quiet_until_it_was_reached_once() -> Result {
        let srq_users = SrqUsers::new(8)?;
        srq_users.shared.srq.preset_limit(3);
        // Filled below the limit and drained, twice.
        for n in cases(0..4) {
            srq_users.shared.post(n, &[])?;
            srq_users.senders[0].post(n, SEND, &[])?;
            assert!(srq_users.users[0].receives.next_is(n, Status::Success));
        }
        for context in cases(4..6) {
            srq_users.shared.post(context, &[])?;
        }
        for n in cases(4..6) {
            srq_users.senders[0].post(n, SEND, &[])?;
            assert!(srq_users.users[0].receives.next_is(n, Status::Success));
        }
        assert!(srq_users.has_reported(0));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 3);
        for context in cases(6..9) {
            srq_users.shared.post(context, &[])?;
        }
        srq_users.senders[0].post(6, SEND, &[])?;
        assert!(srq_users.users[0].receives.next_is(6, Status::Success));
        assert!(srq_users.has_reported(1));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 0);
        Ok(())
    }

    #[test]
    fn a_limit_set_later_does_not_wait_to_be_reached() -> Result {
        let srq_users = SrqUsers::new(8)?;
        srq_users.shared.srq.preset_limit(3);
        srq_users.shared.post(1, &[])?;
        srq_users.shared.srq.set_limit(1)?;
        assert!(srq_users.has_reported(0));
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.senders[0].sends.next_is(1, Status::Success));
        assert!(srq_users.has_reported(1));
        Ok(())
    }

    #[test]
    fn a_threshold_is_a_limit_that_may_be_above_the_depth() -> Result {
        let srq_users = SrqUsers::new(4)?;
        for context in cases(0..4) {
            srq_users.shared.post(context, &[])?;
        }
        srq_users.shared.srq.set_any_limit(4);
        assert!(srq_users.has_reported(0));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 4);
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.senders[0].sends.next_is(1, Status::Success));
        assert!(srq_users.has_reported(1));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 0);
        srq_users.shared.srq.set_any_limit(9);
        assert!(srq_users.has_reported(2));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 0);
        srq_users.shared.srq.set_any_limit(0);
        assert!(srq_users.has_reported(2));
        Ok(())
    }

    #[test]
    fn a_queue_that_is_given_up_notifies_once_and_gives_no_receive() -> Result {
        let srq_users = SrqUsers::new(4)?;
        for context in cases(0..2) {
            srq_users.shared.post(context, &[])?;
        }
        srq_users.shared.srq.set_limit(2)?;
        srq_users.shared.srq.break_down();
        srq_users.shared.srq.break_down();
        let refused = srq_users.shared.srq.post(test_posted(9, [].into_iter()));
        kunit_assert_eq!(refused, Err(PostError::State));
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.users[0].receives.stays_empty());
        assert!(srq_users.senders[0].sends.stays_empty());
        srq_users.shared.srq.set_any_limit(4);
        assert!(srq_users.has_reported(0));
        kunit_assert_eq!(srq_users.shared.log.failures.get(), 1);
        // The owner fails the queue pairs then.
        srq_users.users[0].qp.fail();
        assert!(srq_users.users[0].is_down());
        assert!(srq_users.senders[0].sends.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_limit_of_zero_is_off_and_one_above_the_depth_is_refused() -> Result {
        let srq_users = SrqUsers::new(4)?;
        for context in cases(0..4) {
            srq_users.shared.post(context, &[])?;
        }
        srq_users.shared.srq.set_limit(4)?;
        kunit_assert_eq!(srq_users.shared.srq.set_limit(5), Err(EINVAL));
        kunit_assert_eq!(srq_users.shared.srq.limit(), 4);
        srq_users.shared.srq.set_limit(0)?;
        for n in cases(0..4) {
            srq_users.senders[0].post(n, SEND, &[])?;
            assert!(srq_users.users[0].receives.next_is(n, Status::Success));
        }
        assert!(srq_users.has_reported(0));
        Ok(())
    }

    #[test]
    fn the_queue_takes_exactly_its_depth_and_its_elements() -> Result {
        let srq_users = SrqUsers::new(3)?;
        let memory = srq_users.users[0].buffer(8)?;
        let sge = memory.sge(0, 1);
        kunit_assert_eq!(
            (srq_users.shared.srq.depth(), srq_users.shared.srq.max_sge),
            (3, 4)
        );
        let refused = srq_users
            .shared
            .srq
            .post(test_posted(9, [sge; 5].into_iter()));
        kunit_assert_eq!(refused, Err(PostError::TooManySges));
        for context in cases(0..3) {
            srq_users.shared.post(context, &[sge; 4])?;
        }
        let refused = srq_users.shared.srq.post(test_posted(9, [sge].into_iter()));
        kunit_assert_eq!(refused, Err(PostError::Full));
        // A taken receive makes room for another.
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.users[0].receives.next_is(0, Status::Success));
        srq_users.shared.post(3, &[])?;
        Ok(())
    }

    #[test]
    fn a_queue_pair_with_a_shared_queue_takes_no_receives_of_its_own() -> Result {
        let srq_users = SrqUsers::new(3)?;
        let refused = srq_users.users[0]
            .qp
            .post_receive(test_posted(1, [].into_iter()));
        kunit_assert_eq!(refused, Err(PostError::Invalid));
        Ok(())
    }

    #[test]
    fn each_receive_serves_one_who_waits() -> Result {
        let srq_users = SrqUsers::new(8)?;
        for (sender, waits) in srq_users.senders.iter().zip(1..) {
            sender.post(1, SEND, &[])?;
            assert!(srq_users.waits(waits));
        }
        let done = || {
            srq_users
                .senders
                .iter()
                .filter_map(|s| s.sends.poll())
                .count()
        };
        for context in cases(5..8) {
            srq_users.shared.post(context, &[])?;
            assert!(wait_until(|| done() == 1));
            flush_work(srq_users.users[0].device());
            kunit_assert_eq!(done(), 0);
        }
        // One receive each.
        for user in &srq_users.users {
            assert!(user
                .receives
                .next()
                .is_some_and(|e| e.status == Status::Success));
            assert!(user.receives.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn receives_survive_the_end_of_one_user() -> Result {
        let srq_users = SrqUsers::new(8)?;
        for context in cases(0..3) {
            srq_users.shared.post(context, &[])?;
        }
        srq_users.users[0].qp.fail();
        assert!(srq_users.users[0].is_down());
        assert!(srq_users.senders[0].is_down());
        assert!(srq_users.users[0].receives.stays_empty());
        for n in cases(0..3) {
            srq_users.senders[1].post(n, SEND, &[])?;
            assert!(srq_users.users[1].receives.next_is(n, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn a_receive_posted_after_the_end_of_a_user_is_for_the_others() -> Result {
        let srq_users = SrqUsers::new(8)?;
        for (sender, waits) in srq_users.senders.iter().zip(1..) {
            sender.post(1, SEND, &[])?;
            assert!(srq_users.waits(waits));
        }
        // All three wait; one fails, and must not swallow the wake-up of another.
        srq_users.users[1].qp.fail();
        assert!(srq_users.senders[1].sends.next_is(1, Status::Flushed));
        srq_users.shared.post(5, &[])?;
        assert!(srq_users.senders[0].sends.next_is(1, Status::Success));
        assert!(srq_users.users[0].receives.next_is(5, Status::Success));
        Ok(())
    }

    #[test]
    fn the_queue_outlives_a_user_that_is_destroyed_while_it_waits() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let domain = Domain::new(engine_host.device()?, GFP_KERNEL)?;
        let shared = Shared::new(&domain, 8, 4)?;
        for round in cases(0..3) {
            let pair = || -> Result<[End; 2]> {
                let sender = engine_host.end(&EndAttr::PLAIN)?;
                let user = engine_host.end_in(&domain, &EndAttr::PLAIN, Some(shared.clone()))?;
                connect(connect_pair, &sender, &user)?;
                Ok([sender, user])
            };
            let [sender, user] = pair()?;
            sender.post(1, SEND, &[])?;
            drop(user);
            assert!(sender.sends.next_is(1, Status::Flushed));
            assert!(sender.is_down());
            shared.post(round, &[])?;
            let [sender, user] = pair()?;
            sender.post(2, SEND, &[])?;
            assert!(user.receives.next_is(round, Status::Success));
            assert!(sender.sends.next_is(2, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn the_last_receive_is_reported_once_and_only_in_error() -> Result {
        let srq_users = SrqUsers::new(8)?;
        srq_users.shared.post(1, &[])?;
        srq_users.senders[0].post(1, SEND, &[])?;
        assert!(srq_users.users[0].receives.next_is(1, Status::Success));
        flush_work(srq_users.users[0].device());
        kunit_assert_eq!(srq_users.users[0].events.last_receives.get(), 0);
        for _ in 0..3 {
            srq_users.users[0].qp.fail();
        }
        let notified = || srq_users.users[0].events.last_receives.get();
        assert!(wait_until(|| notified() == 1));
        flush_work(srq_users.users[0].device());
        kunit_assert_eq!(notified(), 1);
        // The other user goes on, and so does a queue pair without a shared queue.
        kunit_assert_eq!(srq_users.users[1].events.last_receives.get(), 0);
        kunit_assert_eq!(srq_users.senders[0].events.last_receives.get(), 0);
        Ok(())
    }

    #[test]
    fn the_last_receive_is_reported_after_the_one_that_is_taken() -> Result {
        let mut manual = ManualQp::new(&EndAttr::shared(4))?;
        manual.end.receive(1, &[])?;
        manual.end.receive(2, &[])?;
        kunit_assert_eq!(manual.take(), Taken::Ready);
        manual.end.qp.fail();
        flush_work(manual.end.device());
        kunit_assert_eq!(manual.end.events.last_receives.get(), 0);
        manual.arrive(MESSAGE);
        assert!(wait_until(|| manual.end.events.last_receives.get() == 1));
        assert!(manual.end.receives.next_is(1, Status::Success));
        assert!(manual.end.receives.stays_empty());
        kunit_assert_eq!(manual.take(), Taken::Refused);
        kunit_assert_eq!(manual.end.qp.state(), QpState::Err);
        Ok(())
    }

    #[test]
    fn a_message_that_waits_is_reported_once_of_a_receive() -> Result {
        let mut manual = ManualQp::new(&EndAttr::shared(4))?;
        manual.end.receive(1, &[])?;
        kunit_assert_eq!(manual.fake.receives.get(), 0);
        kunit_assert_eq!(manual.take(), Taken::Ready);
        manual.arrive(MESSAGE);
        for _ in 0..3 {
            kunit_assert_eq!(manual.take(), Taken::Empty);
        }
        manual.end.receive(2, &[])?;
        manual.end.receive(3, &[])?;
        kunit_assert_eq!(manual.fake.receives.get(), 1);
        Ok(())
    }
}
