// SPDX-License-Identifier: GPL-2.0

//! Connections in two steps: the passive side accepts, the active side confirms.

#[kernel::macros::kunit_tests(ndk_engine_cm_request)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use super::super::{
        attach_side,
        Acceptance,
        Endpoint,
        TransportEnd, //
    };
    use crate::{
        engine::{
            cm::{
                ConnectError,
                ConnectRequest,
                Timeouts, //
            },
            counters::Counter,
            transport::ReadLimits, //
        },
        kunit::{
            connection_fixture::*,
            harness::{
                cases,
                flush_work,
                wait_until, //
            },
            requests::*, //
        },
        rdma::values::{
            qp::QpState,
            status::Status, //
        },
        sys::{
            clock::StoppedClock,
            timer::Expires, //
        }, //
    };

    /// An accepted request that waits for the confirmation, if both sides want that.
    fn accepted(
        cm_fixture: &ConnectionFixture,
        active: &Arc<ConnectionLog>,
        passive: &Arc<ConnectionLog>,
    ) -> Result<Arc<ConnectRequest>> {
        let listener_log = cm_fixture.open()?;
        let request = cm_fixture.connect_in_two_steps(active)?;
        cm_fixture.accept(&listener_log.request()?, passive)?;
        Ok(request)
    }

    /// An action on a wait; returns true if it ended the wait.
    type End = fn(&ConnectRequest) -> bool;

    /// The states of both queue pairs.
    fn states(cm_fixture: &ConnectionFixture) -> (QpState, QpState) {
        (cm_fixture.active.qp.state(), cm_fixture.passive.qp.state())
    }

    const UNCONNECTED: (QpState, QpState) = (QpState::Init, QpState::Init);
    const CONNECTED: (QpState, QpState) = (QpState::Rts, QpState::Rts);

    #[test]
    fn nothing_is_connected_before_the_confirmation() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::patient()?,
        );
        let request = accepted(&cm_fixture, &active, &passive)?;
        let answer = Answer {
            status: Ok((3, 5)),
            data: (*b"welcome\0", 7),
        };
        kunit_assert_eq!(active.answer(), Some(answer));
        kunit_assert_eq!(active.replies.get(), 1);
        kunit_assert_eq!(passive.status(), None);
        kunit_assert_eq!(states(&cm_fixture), UNCONNECTED);
        kunit_assert_eq!(cm_fixture.active.counted(Counter::Connects), 0);
        assert!(cm_fixture.cm.request(request.number).is_none());

        kunit_assert_eq!(request.confirm(), Ok(()));
        kunit_assert_eq!(states(&cm_fixture), CONNECTED);
        kunit_assert_eq!(passive.status(), Some(Ok((5, 3))));
        kunit_assert_eq!(passive.established.get(), 1);
        kunit_assert_eq!(active.replies.get(), 1);
        kunit_assert_eq!(cm_fixture.active.counted(Counter::Connects), 1);
        kunit_assert_eq!(cm_fixture.passive.counted(Counter::Accepts), 1);
        cm_fixture.passive.receive(1, &[])?;
        cm_fixture.active.post(2, SEND, &[])?;
        assert!(cm_fixture.active.sends.next_is(2, Status::Success));
        assert!(cm_fixture.passive.receives.next_is(1, Status::Success));
        Ok(())
    }

    #[test]
    fn a_connection_that_was_confirmed_is_out_of_reach_of_the_request() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::patient()?,
        );
        let request = accepted(&cm_fixture, &active, &passive)?;
        kunit_assert_eq!(request.confirm(), Ok(()));
        assert!(!request.abandon());
        assert!(!request.withdraw());
        kunit_assert_eq!(request.confirm(), Ok(()));
        kunit_assert_eq!(states(&cm_fixture), CONNECTED);
        kunit_assert_eq!(passive.established.get(), 1);
        kunit_assert_eq!(passive.not_established.get(), 0);
        cm_fixture.passive.qp.fail();
        for log in [&active, &passive] {
            assert!(wait_until(|| log.closed.get() == 1));
        }
        kunit_assert_eq!(request.confirm(), Err(ConnectError::Aborted));
        flush_work(cm_fixture.active.device());
        kunit_assert_eq!((active.closed.get(), passive.closed.get()), (1, 1));
        Ok(())
    }

    #[test]
    fn where_one_side_does_not_wait_both_are_connected_at_once() -> Result {
        for (asks, waits) in cases([(true, false), (false, true)]) {
            let (cm_fixture, active) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let passive = ConnectionLog::with(Habits {
                confirms: waits,
                ..Habits::default()
            })?;
            let listener_log = cm_fixture.open()?;
            let request = match asks {
                true => cm_fixture.connect_in_two_steps(&active)?,
                false => cm_fixture.connect(&active)?,
            };
            cm_fixture.accept(&listener_log.request()?, &passive)?;
            kunit_assert_eq!(states(&cm_fixture), CONNECTED);
            kunit_assert_eq!(active.status(), Some(Ok((3, 5))));
            kunit_assert_eq!(passive.established.get(), 1);
            assert!(!request.withdraw());
            assert!(!request.abandon());
            kunit_assert_eq!(request.confirm(), Ok(()));
            cm_fixture.passive.qp.fail();
            assert!(wait_until(|| active.closed.get() == 1));
            kunit_assert_eq!(request.confirm(), Err(ConnectError::Aborted));
            kunit_assert_eq!(passive.not_established.get(), 0);
        }
        Ok(())
    }

    #[test]
    fn a_wait_that_ends_is_reported_once_and_may_be_followed_by_another() -> Result {
        let clock = StoppedClock::new();
        let quick = Timeouts {
            confirm_ms: 20,
            ..Timeouts::DEFAULT
        };
        let ends: [(Timeouts, End, Status, ConnectError); 3] = [
            (
                Timeouts::DEFAULT,
                ConnectRequest::abandon,
                Status::Aborted,
                ConnectError::Aborted,
            ),
            (
                Timeouts::DEFAULT,
                ConnectRequest::withdraw,
                Status::Aborted,
                ConnectError::Aborted,
            ),
            (quick, |_| true, Status::Timeout, ConnectError::TimedOut),
        ];
        for (timeouts, end, status, why) in cases(ends) {
            let (cm_fixture, active, passive) = (
                ConnectionFixture::with(timeouts)?,
                ConnectionLog::new()?,
                ConnectionLog::patient()?,
            );
            let request = accepted(&cm_fixture, &active, &passive)?;
            assert!(end(&request));
            clock.pass(20);
            assert!(wait_until(|| passive.not_established.get() == 1));
            kunit_assert_eq!(passive.status(), Some(Err(status)));
            assert!(!request.abandon());
            assert!(!request.withdraw());
            kunit_assert_eq!(request.confirm(), Err(why));
            flush_work(cm_fixture.active.device());
            kunit_assert_eq!(active.replies.get(), 1);
            kunit_assert_eq!(active.closed.get(), 0);
            kunit_assert_eq!(
                (passive.not_established.get(), passive.established.get()),
                (1, 0)
            );
            kunit_assert_eq!(passive.closed.get(), 0);
            kunit_assert_eq!(cm_fixture.active.counted(Counter::ConnectFailures), 1);
            kunit_assert_eq!(states(&cm_fixture), UNCONNECTED);
            // A passive side that does not wait.
            let passive = ConnectionLog::new()?;
            let listener_log = ListenerLog::new(HERE, false)?;
            cm_fixture.listen(at(HERE, PORT + 1), &listener_log)?;
            let mut ask = cm_fixture.ask()?;
            ask.remote = at(HERE, PORT + 1);
            cm_fixture.submit(&active, ask)?;
            cm_fixture.accept(&listener_log.request()?, &passive)?;
            kunit_assert_eq!(states(&cm_fixture), CONNECTED);
        }
        Ok(())
    }

    #[test]
    fn what_was_not_accepted_cannot_be_confirmed() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::patient()?,
        );
        let listener_log = cm_fixture.open()?;
        let request = cm_fixture.connect_in_two_steps(&active)?;
        kunit_assert_eq!(request.confirm(), Err(ConnectError::NotReady));
        assert!(!request.withdraw());
        cm_fixture.accept(&listener_log.request()?, &passive)?;
        kunit_assert_eq!(request.confirm(), Ok(()));

        let (cm_fixture, active) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = cm_fixture.open()?;
        let request = cm_fixture.connect_in_two_steps(&active)?;
        assert!(listener_log.request()?.reject(&[]).is_ok());
        kunit_assert_eq!(request.confirm(), Err(ConnectError::NotReady));
        kunit_assert_eq!(states(&cm_fixture), UNCONNECTED);
        Ok(())
    }

    #[test]
    fn a_queue_pair_that_is_not_ready_to_accept_refuses_the_peer() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::patient()?,
        );
        let listener_log = cm_fixture.open()?;
        let request = cm_fixture.connect_in_two_steps(&active)?;
        cm_fixture.passive.qp.modify(QpState::Reset)?;
        let result = cm_fixture.try_accept(&listener_log.request()?, &passive);
        kunit_assert_eq!(result, Err(ConnectError::NotReady));
        kunit_assert_eq!(active.status(), Some(Err(Status::Refused)));
        kunit_assert_eq!(active.replies.get(), 1);
        kunit_assert_eq!(passive.status(), None);
        kunit_assert_eq!(request.confirm(), Err(ConnectError::NotReady));
        Ok(())
    }

    #[test]
    fn a_queue_pair_that_went_before_the_confirmation_ends_the_attempt() -> Result {
        for (passive_goes, why) in cases([
            (true, ConnectError::Aborted),
            (false, ConnectError::NotReady),
        ]) {
            let (cm_fixture, active, passive) = (
                ConnectionFixture::new()?,
                ConnectionLog::new()?,
                ConnectionLog::patient()?,
            );
            let request = accepted(&cm_fixture, &active, &passive)?;
            match passive_goes {
                true => cm_fixture.passive.qp.fail(),
                false => cm_fixture.active.qp.fail(),
            }
            kunit_assert_eq!(request.confirm(), Err(why));
            kunit_assert_eq!(request.confirm(), Err(why));
            kunit_assert_eq!(passive.status(), Some(Err(Status::Aborted)));
            flush_work(cm_fixture.active.device());
            kunit_assert_eq!(
                (passive.not_established.get(), passive.established.get()),
                (1, 0)
            );
            kunit_assert_eq!((active.closed.get(), passive.closed.get()), (0, 0));
            kunit_assert_eq!(active.replies.get(), 1);
            kunit_assert_eq!(cm_fixture.active.counted(Counter::ConnectFailures), 1);
            kunit_assert_eq!(cm_fixture.active.counted(Counter::Connects), 0);
        }
        Ok(())
    }

    #[test]
    fn a_consent_that_the_active_side_never_hears_comes_to_nothing() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::with_reply_failures(1)?,
            ConnectionLog::patient()?,
        );
        let request = accepted(&cm_fixture, &active, &passive)?;
        kunit_assert_eq!(active.status(), Some(Err(Status::Aborted)));
        kunit_assert_eq!(active.replies.get(), 2);
        kunit_assert_eq!(passive.status(), Some(Err(Status::Aborted)));
        kunit_assert_eq!(passive.not_established.get(), 1);
        kunit_assert_eq!(request.confirm(), Err(ConnectError::Aborted));
        kunit_assert_eq!(states(&cm_fixture), UNCONNECTED);
        Ok(())
    }

    #[test]
    fn an_active_side_that_gives_up_while_it_is_accepted_is_not_waited_for() -> Result {
        let (cm_fixture, active) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = cm_fixture.open()?;
        let request = cm_fixture.connect_in_two_steps(&active)?;
        let passive = ConnectionLog::with(Habits {
            confirms: true,
            abandons: Some(request.clone()),
            ..Habits::default()
        })?;
        let result = cm_fixture.try_accept(&listener_log.request()?, &passive);
        kunit_assert_eq!(result, Err(ConnectError::Aborted));
        kunit_assert_eq!(active.replies.get(), 1);
        assert!(active.status().is_some_and(|s| s.is_err()));
        kunit_assert_eq!(passive.status(), None);
        kunit_assert_eq!(states(&cm_fixture), UNCONNECTED);
        Ok(())
    }

    #[test]
    fn an_end_while_the_passive_side_hears_of_the_connection_is_reported_after_it() -> Result {
        let (cm_fixture, active) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let passive = ConnectionLog::with(Habits {
            confirms: true,
            victim: Some(cm_fixture.passive.qp.clone()),
            ..Habits::default()
        })?;
        let request = accepted(&cm_fixture, &active, &passive)?;
        kunit_assert_eq!(request.confirm(), Ok(()));
        for log in [&active, &passive] {
            assert!(wait_until(|| log.closed.get() == 1));
        }
        flush_work(cm_fixture.active.device());
        kunit_assert_eq!((active.closed.get(), passive.closed.get()), (1, 1));
        kunit_assert_eq!(
            (active.closed_by_peer.get(), passive.closed_by_peer.get()),
            (1, 0)
        );
        Ok(())
    }

    #[test]
    fn a_passive_side_that_fails_before_the_active_one_is_attached_ends_both() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::new()?,
        );
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&active)?;
        let request = listener_log.request()?;
        let qp = &cm_fixture.passive.qp;
        let acceptance = Acceptance {
            endpoint: Endpoint::new(qp.clone(), passive.clone())?,
            passive_limits: ReadLimits::default(),
            active_limits: ReadLimits::default(),
        };
        let active_side = request.active.local().ok_or(EINVAL)?;
        let transport = (request.cm.connect_fn)(&active_side.qp, qp)?;
        let second = TransportEnd {
            transport: transport.clone(),
            end: 1,
        };
        attach_side(&second, &acceptance.endpoint, acceptance.passive_limits)?;
        qp.fail();
        ConnectRequest::attach_active(active_side, &acceptance, &transport)?;
        let after = states(&cm_fixture);
        // Else the active side would stay connected for ever if the test fails.
        active_side.qp.fail();
        // A side is notified of the end after it was notified of the connection.
        acceptance.endpoint.up();
        active_side.up();
        for log in [&active, &passive] {
            assert!(wait_until(|| log.closed.get() == 1));
        }
        kunit_assert_eq!(after, (QpState::Err, QpState::Err));
        kunit_assert_eq!(
            (active.closed_by_peer.get(), passive.closed_by_peer.get()),
            (1, 0)
        );
        request.abandon();
        Ok(())
    }

    #[test]
    fn a_timer_that_comes_too_early_ends_no_wait() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::patient()?,
        );
        let request = accepted(&cm_fixture, &active, &passive)?;
        // As the timer for the answer does when it expires while the answer comes.
        ConnectRequest::expired(request.clone());
        kunit_assert_eq!(passive.status(), None);
        kunit_assert_eq!(active.replies.get(), 1);
        kunit_assert_eq!(request.confirm(), Ok(()));
        ConnectRequest::expired(request);
        kunit_assert_eq!(states(&cm_fixture), CONNECTED);
        kunit_assert_eq!(active.replies.get(), 1);
        Ok(())
    }
}
