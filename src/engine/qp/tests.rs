// SPDX-License-Identifier: GPL-2.0

//! The requests and receives that a queue pair takes in each state, and those that it never takes.

mod shared;

use kernel::prelude::*;

use crate::{
    kunit::{
        fake::ManualQp,
        harness::EndAttr, //
    },
    rdma::values::qp::QpState, //
};

/// A manual queue pair in `state`.
fn in_state(state: QpState) -> Result<ManualQp> {
    let attr = EndAttr {
        flush_on_disconnect: state != QpState::Lost,
        ..EndAttr::PLAIN
    };
    let manual = ManualQp::unconnected(&attr)?;
    let way: &[QpState] = match state {
        QpState::Reset => &[],
        QpState::Init => &[QpState::Init],
        QpState::Rtr => &[QpState::Init, QpState::Rtr],
        QpState::Rts | QpState::Err | QpState::Lost => &[QpState::Init, QpState::Rtr, QpState::Rts],
    };
    for step in way {
        match step {
            QpState::Rts => manual.attach()?,
            step => manual.end.qp.modify(*step)?,
        }
    }
    if state == QpState::Err {
        manual.end.qp.fail();
    }
    if state == QpState::Lost {
        manual.end.qp.peer_gone(manual.fake.id);
    }
    Ok(manual)
}

#[kernel::macros::kunit_tests(ndk_engine_qp)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            domain::Domain,
            memory::{
                Denied,
                RevokeError, //
            },
            wq::PostError, //
        },
        kunit::{
            buffer::BASE,
            harness::{
                cases,
                EngineHost,
                RNR_MS, //
            },
            requests::*, //
        },
        rdma::values::{
            access::AccessFlag,
            qp::Admission,
            status::Status,
            token::Token,
            work::SendFlags, //
        },
        sys::sge::{
            test_posted,
            Sge, //
        }, //
    };

    /// The longest message, in bytes.
    const MAX_MESSAGE: u64 = 1 << 31;

    #[test]
    fn a_window_is_not_open_to_a_later_queue_pair_of_the_same_number() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let domain = Domain::new(engine_host.device()?, GFP_KERNEL)?;
        let first = engine_host.end_in(&domain, &EndAttr::PLAIN, None)?;
        engine_host.count_anew();
        let second = engine_host.end_in(&domain, &EndAttr::PLAIN, None)?;
        kunit_assert_eq!(second.qp.params.number, first.qp.params.number);
        let regions = &domain.device().regions;
        let region = first.buffer(8)?.token();
        let (mine, rights) = (first.qp.peer_user(), AccessFlag::RemoteRead.into());
        let window = regions.add_window(domain.id(), None)?;
        kunit_assert_eq!(regions.bind(window, region, mine, rights, BASE, 8), Ok(()));
        assert!(regions.access(window, mine, rights, BASE, 8).is_ok());
        let theirs = second.qp.peer_user();
        let access = regions.access(window, theirs, rights, BASE, 8);
        kunit_assert_eq!(access.err(), Some(Denied::Token));
        kunit_assert_eq!(
            regions.revoke_remote(window, theirs),
            Err(RevokeError::NotAllowed)
        );
        kunit_assert_eq!(regions.revoke_remote(window, mine), Ok(()));
        regions.remove(window.index());
        Ok(())
    }

    #[test]
    fn a_queue_pair_begins_in_reset_and_goes_where_the_table_lets_it() -> Result {
        for from in cases(QpState::ALL) {
            for to in cases(QpState::ALL) {
                let manual = in_state(from)?;
                kunit_assert_eq!(manual.end.qp.state(), from);
                // The transport alone reports a connection, and the loss of the peer.
                let allowed = !matches!(to, QpState::Rts | QpState::Lost) && from.may_become(to);
                let want = if allowed { Ok(()) } else { Err(EINVAL) };
                kunit_assert_eq!(manual.end.qp.modify(to), want);
                let after = if allowed { to } else { from };
                kunit_assert_eq!(manual.end.qp.state(), after);
            }
        }
        Ok(())
    }

    #[test]
    fn a_transport_attaches_once_and_only_before_the_connection() -> Result {
        for from in cases(QpState::ALL) {
            let manual = in_state(from)?;
            let allowed = matches!(from, QpState::Init | QpState::Rtr);
            kunit_assert_eq!(manual.attach().is_ok(), allowed);
            let after = if allowed { QpState::Rts } else { from };
            kunit_assert_eq!(manual.end.qp.state(), after);
        }
        Ok(())
    }

    #[test]
    fn requests_are_taken_as_the_state_says() -> Result {
        for state in cases(QpState::ALL) {
            let manual = in_state(state)?;
            let posted = manual.end.try_post(1, SEND, SendFlags::empty(), &[]);
            match state.admit_send() {
                Admission::Refuse => kunit_assert_eq!(posted, Err(PostError::State)),
                Admission::Queue | Admission::Flush => kunit_assert_eq!(posted, Ok(())),
            }
            if state == QpState::Err {
                assert!(manual.end.sends.next_is(1, Status::Flushed));
            }
            assert!(manual.end.sends.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn receives_are_taken_as_the_state_says() -> Result {
        for state in cases(QpState::ALL) {
            let manual = in_state(state)?;
            let posted = manual.end.qp.post_receive(test_posted(1, [].into_iter()));
            match state.admit_receive() {
                Admission::Refuse => kunit_assert_eq!(posted, Err(PostError::State)),
                Admission::Queue | Admission::Flush => kunit_assert_eq!(posted, Ok(())),
            }
            if state == QpState::Err {
                assert!(manual.end.receives.next_is(1, Status::Flushed));
            }
            assert!(manual.end.receives.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn lists_have_exactly_the_length_that_was_asked_for() -> Result {
        let manual = in_state(QpState::Rts)?;
        let caps = EndAttr::PLAIN.caps;
        let try_list = |work, count: u32| {
            let list = [Sge::EMPTY; 8];
            manual
                .end
                .try_post(1, work, SendFlags::empty(), &list[..count as usize])
        };
        let too_many = Err(PostError::TooManySges);
        for work in cases([SEND, write(NOWHERE)]) {
            kunit_assert_eq!(try_list(work, caps.send_sge), Ok(()));
            kunit_assert_eq!(try_list(work, caps.send_sge + 1), too_many);
        }
        let work = read(NOWHERE);
        kunit_assert_eq!(try_list(work, caps.read_sge), Ok(()));
        kunit_assert_eq!(try_list(work, caps.read_sge + 1), too_many);
        let try_receive = |count: u32| {
            let list = [Sge::EMPTY; 8].into_iter().take(count as usize);
            manual.end.qp.post_receive(test_posted(1, list))
        };
        kunit_assert_eq!(try_receive(caps.recv_sge), Ok(()));
        kunit_assert_eq!(try_receive(caps.recv_sge + 1), too_many);
        Ok(())
    }

    #[test]
    fn a_message_has_a_longest_length() -> Result {
        let mut manual = in_state(QpState::Rts)?;
        let bytes = |len| Sge::new(0, len, Token::LOCAL_MEMORY);
        let half = (MAX_MESSAGE / 2) as u32;
        let too_long = Err(PostError::TooLong);
        let lists = [
            ([bytes(half), bytes(half), bytes(0)], Ok(())),
            ([bytes(half), bytes(half), bytes(1)], too_long),
            ([bytes(u32::MAX), bytes(1), bytes(0)], too_long),
            // The sum is small when cut to 32 bits.
            ([bytes(u32::MAX), bytes(u32::MAX), bytes(2)], too_long),
        ];
        for (list, want) in cases(lists) {
            kunit_assert_eq!(
                manual.end.try_post(1, SEND, SendFlags::empty(), &list),
                want
            );
        }
        kunit_assert_eq!(manual.start_all(), 1);
        kunit_assert_eq!(u64::from(manual.started.wqe.length), MAX_MESSAGE);
        Ok(())
    }

    #[test]
    fn queues_take_exactly_their_depth() -> Result {
        for depth in cases([1, 2, 3, 5]) {
            let manual = ManualQp::new(&EndAttr::deep(depth, depth))?;
            for context in cases(0..u64::from(depth)) {
                manual.end.post(context, SEND, &[])?;
                manual.end.receive(context, &[])?;
            }
            let full = Err(PostError::Full);
            kunit_assert_eq!(manual.end.try_post(9, SEND, SendFlags::empty(), &[]), full);
            kunit_assert_eq!(
                manual.end.qp.post_receive(test_posted(9, [].into_iter())),
                full
            );
            // Refused posts left no trace.
            manual.end.qp.fail();
            assert!(manual
                .end
                .sends
                .next_are(0..u64::from(depth), Status::Flushed));
            assert!(manual
                .end
                .receives
                .next_are(0..u64::from(depth), Status::Flushed));
            assert!(manual.end.sends.stays_empty());
            assert!(manual.end.receives.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn a_job_holds_what_was_posted() -> Result {
        let mut manual = in_state(QpState::Rts)?;
        let memory = manual.end.filled(16, 61)?;
        manual
            .end
            .post(1, SEND, &[memory.sge(0, 3), memory.sge(5, 7)])?;
        manual
            .end
            .post_with(2, SEND, INLINE, &[memory.plain(2, 4)])?;
        manual.end.post(3, write(memory.remote(2)), &[])?;
        assert!(manual.start().is_some());
        kunit_assert_eq!(manual.started.wqe.length, 10);
        let list = manual.started.wqe.sges.iter().map(|s| (s.addr(), s.len()));
        let want = [memory.sge(0, 3), memory.sge(5, 7)];
        assert!(list.eq(want.iter().map(|s| (s.addr(), s.len()))));
        assert!(manual.started.wqe.inline.is_empty());
        assert!(manual.start().is_some());
        kunit_assert_eq!(manual.started.wqe.length, 4);
        let bytes = manual.started.wqe.inline.iter().copied();
        assert!(bytes.eq((2..6).map(|at| crate::kunit::buffer::pattern(61, at))));
        kunit_assert_eq!(manual.started.wqe.sges.len(), 0);
        assert!(manual.start().is_some());
        kunit_assert_eq!(manual.started.wqe.length, 0);
        assert!(manual.started.wqe.inline.is_empty());
        kunit_assert_eq!(manual.started.wqe.sges.len(), 0);
        Ok(())
    }
}
