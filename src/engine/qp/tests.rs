// SPDX-License-Identifier: GPL-2.0

//! What a queue pair takes in which state, and what it never takes.

use kernel::prelude::*;

use super::state::State;
use crate::kunit::{
    fake::Hand,
    harness::Plan, //
};

/// A hand in `state`.
fn in_state(state: State) -> Result<Hand> {
    let plan = Plan {
        flush_on_disconnect: state != State::Lost,
        ..Plan::PLAIN
    };
    let hand = Hand::unconnected(&plan)?;
    let way: &[State] = match state {
        State::Reset => &[],
        State::Init => &[State::Init],
        State::Ready => &[State::Init, State::Ready],
        State::Connected | State::Error | State::Lost => {
            &[State::Init, State::Ready, State::Connected]
        }
    };
    for step in way {
        match step {
            State::Connected => hand.attach()?,
            step => hand.end.qp.modify(*step)?,
        }
    }
    if state == State::Error {
        hand.end.qp.fail();
    }
    if state == State::Lost {
        hand.end.qp.peer_gone(hand.fake.id);
    }
    Ok(hand)
}

#[kernel::macros::kunit_tests(ndk_engine_qp)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            memory::token::Token,
            qp::{
                state::Admission,
                PostError, //
            },
            status::Status,
            work::{
                Flags,
                Sge, //
            }, //
        },
        kunit::{
            harness::same,
            requests::*, //
        }, //
    };

    /// The longest message, in bytes.
    const MAX_MESSAGE: u64 = 1 << 31;

    #[test]
    fn a_queue_pair_begins_in_reset_and_goes_where_the_table_lets_it() -> Result {
        for from in State::ALL {
            for to in State::ALL {
                let hand = in_state(from)?;
                assert!(same(hand.end.qp.state(), from));
                // Being connected is the transport's to say, and that the peer is gone.
                let allowed = !matches!(to, State::Connected | State::Lost) && from.may_become(to);
                let want = if allowed { Ok(()) } else { Err(EINVAL) };
                assert!(hand.end.qp.modify(to) == want);
                let after = if allowed { to } else { from };
                assert!(same(hand.end.qp.state(), after));
            }
        }
        Ok(())
    }

    #[test]
    fn a_transport_attaches_once_and_only_before_the_connection() -> Result {
        for from in State::ALL {
            let hand = in_state(from)?;
            let allowed = matches!(from, State::Init | State::Ready);
            assert!(hand.attach().is_ok() == allowed);
            let after = if allowed { State::Connected } else { from };
            assert!(same(hand.end.qp.state(), after));
        }
        Ok(())
    }

    #[test]
    fn requests_are_taken_as_the_state_says() -> Result {
        for state in State::ALL {
            let hand = in_state(state)?;
            let posted = hand.end.try_post(1, SEND, Flags::NONE, &[]);
            match state.admit_send() {
                Admission::Refuse => assert!(same(posted, Err(PostError::State))),
                Admission::Queue | Admission::Flush => assert!(same(posted, Ok(()))),
            }
            if state == State::Error {
                assert!(hand.end.sends.brings(1, Status::Flushed));
            }
            assert!(hand.end.sends.is_silent());
        }
        Ok(())
    }

    #[test]
    fn receives_are_taken_as_the_state_says() -> Result {
        for state in State::ALL {
            let hand = in_state(state)?;
            let posted = hand.end.qp.post_receive(1, [].into_iter());
            match state.admit_receive() {
                Admission::Refuse => assert!(same(posted, Err(PostError::State))),
                Admission::Queue | Admission::Flush => assert!(same(posted, Ok(()))),
            }
            if state == State::Error {
                assert!(hand.end.receives.brings(1, Status::Flushed));
            }
            assert!(hand.end.receives.is_silent());
        }
        Ok(())
    }

    #[test]
    fn lists_have_exactly_the_length_that_was_asked_for() -> Result {
        let hand = in_state(State::Connected)?;
        let caps = Plan::PLAIN.caps;
        let try_list = |work, count: u32| {
            let list = [Sge::EMPTY; 8];
            hand.end
                .try_post(1, work, Flags::NONE, &list[..count as usize])
        };
        let too_many = Err(PostError::TooManySges);
        for work in [SEND, write(NOWHERE)] {
            assert!(same(try_list(work, caps.send_sges), Ok(())));
            assert!(same(try_list(work, caps.send_sges + 1), too_many));
        }
        let work = read(NOWHERE);
        assert!(same(try_list(work, caps.read_sges), Ok(())));
        assert!(same(try_list(work, caps.read_sges + 1), too_many));
        let try_receive = |count: u32| {
            let list = [Sge::EMPTY; 8].into_iter().take(count as usize);
            hand.end.qp.post_receive(1, list)
        };
        assert!(same(try_receive(caps.receive_sges), Ok(())));
        assert!(same(try_receive(caps.receive_sges + 1), too_many));
        Ok(())
    }

    #[test]
    fn a_message_has_a_longest_length() -> Result {
        let mut hand = in_state(State::Connected)?;
        let bytes = |len| Sge::of(0, len, Token::LOCAL_MEMORY);
        let half = (MAX_MESSAGE / 2) as u32;
        let too_long = Err(PostError::TooLong);
        let lists = [
            ([bytes(half), bytes(half), bytes(0)], Ok(())),
            ([bytes(half), bytes(half), bytes(1)], too_long),
            ([bytes(u32::MAX), bytes(1), bytes(0)], too_long),
            // Together these are small when cut to 32 bits.
            ([bytes(u32::MAX), bytes(u32::MAX), bytes(2)], too_long),
        ];
        for (list, want) in lists {
            assert!(same(hand.end.try_post(1, SEND, Flags::NONE, &list), want));
        }
        assert!(hand.start_all() == 1);
        assert!(same(u64::from(hand.wqe.length), MAX_MESSAGE));
        Ok(())
    }

    #[test]
    fn queues_take_exactly_their_depth() -> Result {
        for depth in [1, 2, 3, 5] {
            let hand = Hand::new(&Plan::deep(depth, depth))?;
            for context in 0..u64::from(depth) {
                hand.end.post(context, SEND, &[])?;
                hand.end.receive(context, &[])?;
            }
            let full = Err(PostError::Full);
            assert!(same(hand.end.try_post(9, SEND, Flags::NONE, &[]), full));
            assert!(same(hand.end.qp.post_receive(9, [].into_iter()), full));
            // What was refused left no trace.
            hand.end.qp.fail();
            assert!(hand
                .end
                .sends
                .brings_all(0..u64::from(depth), Status::Flushed));
            assert!(hand
                .end
                .receives
                .brings_all(0..u64::from(depth), Status::Flushed));
            assert!(hand.end.sends.is_silent() && hand.end.receives.is_silent());
        }
        Ok(())
    }

    #[test]
    fn a_job_holds_what_was_posted() -> Result {
        let mut hand = in_state(State::Connected)?;
        let memory = hand.end.filled(16, 61)?;
        hand.end
            .post(1, SEND, &[memory.sge(0, 3), memory.sge(5, 7)])?;
        hand.end.post_with(2, SEND, INLINE, &[memory.plain(2, 4)])?;
        hand.end.post(3, write(memory.remote(2)), &[])?;
        assert!(hand.start().is_some() && same(hand.wqe.length, 10));
        let list = hand.wqe.sges.iter().map(|s| (s.addr(), s.len()));
        let want = [memory.sge(0, 3), memory.sge(5, 7)];
        assert!(list.eq(want.iter().map(|s| (s.addr(), s.len()))));
        assert!(hand.wqe.inline.is_empty());
        assert!(hand.start().is_some() && same(hand.wqe.length, 4));
        let bytes = hand.wqe.inline.iter().copied();
        assert!(bytes.eq((2..6).map(|at| crate::kunit::buffer::pattern(61, at))));
        assert!(hand.wqe.sges.is_empty());
        assert!(hand.start().is_some() && same(hand.wqe.length, 0));
        assert!(hand.wqe.inline.is_empty() && hand.wqe.sges.is_empty());
        Ok(())
    }
}
