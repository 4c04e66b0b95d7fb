// SPDX-License-Identifier: GPL-2.0

//! Connects to other hosts, and requests from there, over a carrier that the test plays.

#[kernel::macros::kunit_tests(ndk_engine_cm_carrier)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        engine::{
            cm::{
                Carrier,
                ConnectError,
                ConnectParams,
                ConnectRequest,
                ConnectionGone,
                Initiator,
                Timeouts, //
            },
            counters::Counter,
            inject::{
                needed,
                Fault,
                FaultSettings,
                SiteKind, //
            }, //
        },
        kunit::{
            carrier_fixture::*,
            connection_fixture::*,
            harness::{
                cases,
                flush_work,
                is_early,
                wait_until,
                End, //
            },
            inject::Ordered, //
        },
        rdma::values::{
            qp::QpState,
            status::Status, //
        },
        sys::clock::StoppedClock, //
    };

    /// An accept with the limits of both sides as the active side learns them.
    const WELCOME: Answer = Answer {
        status: Ok((3, 5)),
        data: (*b"welcome\0", 7),
    };

    const REFUSAL: Answer = Answer {
        status: Err(Status::Refused),
        data: (*b"no\0\0\0\0\0\0", 2),
    };

    fn over(habits: CarrierHabits) -> Result<(ConnectionFixture, Arc<FakeCarrier>)> {
        over_in(Timeouts::DEFAULT, habits)
    }

    /// A connection manager over a carrier with those habits. The passive queue pair plays that of
    /// another host.
    fn over_in(
        timeouts: Timeouts,
        habits: CarrierHabits,
    ) -> Result<(ConnectionFixture, Arc<FakeCarrier>)> {
        let carrier = FakeCarrier::new(habits)?;
        let calls: Arc<dyn Carrier> = Arc::new(CarrierCalls(carrier.clone()), GFP_KERNEL)?;
        let cm_fixture = ConnectionFixture::over(Some(calls), timeouts)?;
        carrier.reach(&cm_fixture.passive.qp);
        Ok((cm_fixture, carrier))
    }

    fn over_with(dial: DialHabit) -> Result<(ConnectionFixture, Arc<FakeCarrier>)> {
        over(CarrierHabits {
            dial,
            ..CarrierHabits::default()
        })
    }

    /// The parameters of a connect to another host.
    fn ask_elsewhere(cm_fixture: &ConnectionFixture) -> Result<ConnectParams> {
        let mut ask = cm_fixture.ask()?;
        ask.remote_is_here = false;
        Ok(ask)
    }

    fn connect_elsewhere(
        cm_fixture: &ConnectionFixture,
        log: &Arc<ConnectionLog>,
    ) -> Result<Arc<ConnectRequest>> {
        cm_fixture.submit(log, ask_elsewhere(cm_fixture)?)
    }

    /// Submits a connect to another host that waits for room at a listener.
    fn connect_patiently(
        cm_fixture: &ConnectionFixture,
        log: &Arc<ConnectionLog>,
    ) -> Result<Arc<ConnectRequest>> {
        let mut ask = ask_elsewhere(cm_fixture)?;
        ask.retries_when_full = true;
        cm_fixture.submit(log, ask)
    }

    /// A listener without room.
    fn full() -> Result<Arc<ListenerLog>> {
        let habits = ListenerHabits {
            no_room_count: u32::MAX,
            ..ListenerHabits::default()
        };
        ListenerLog::with(HERE, habits)
    }

    /// Submits a request of an initiator of another host.
    fn request_from(
        cm_fixture: &ConnectionFixture,
        initiator: &Arc<FakeInitiator>,
        retries_when_full: bool,
    ) -> Result<Arc<ConnectRequest>> {
        let mut ask = cm_fixture.ask()?;
        ask.wants_confirmation = true;
        ask.retries_when_full = retries_when_full;
        let remote = Initiator::Remote(initiator.clone());
        let request = cm_fixture.cm.make_request(remote, ask)?;
        initiator.keep(&request);
        cm_fixture.cm.submit(&request);
        Ok(request)
    }

    /// Connects, failed connects and accepts of a side.
    fn counts(end: &End) -> (u64, u64, u64) {
        (
            end.counted(Counter::Connects),
            end.counted(Counter::ConnectFailures),
            end.counted(Counter::Accepts),
        )
    }

    #[test]
    fn a_connect_to_another_host_is_dialed_and_answered_once() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let log = ConnectionLog::new()?;
        connect_elsewhere(&cm_fixture, &log)?;
        kunit_assert_eq!((carrier.dials.get(), log.replies.get()), (1, 0));
        let dialed = carrier.dialed()?;
        kunit_assert_eq!(carrier.answer(&dialed)?, Ok(()));
        kunit_assert_eq!(log.answer(), Some(WELCOME));
        kunit_assert_eq!(carrier.answer(&dialed)?, Err(ConnectionGone));
        let refused = dialed.request.refused(Status::Refused, &[]);
        kunit_assert_eq!(refused, Err(ConnectionGone));
        assert!(dialed.request.is_connected());
        kunit_assert_eq!(cm_fixture.active.qp.state(), QpState::Rts);
        kunit_assert_eq!(counts(&cm_fixture.active), (1, 0, 0));
        // The end is reported as that of any connection.
        cm_fixture.active.qp.fail();
        assert!(wait_until(|| log.closed.get() == 1));
        kunit_assert_eq!((log.replies.get(), carrier.cancels.get()), (1, 0));
        Ok(())
    }

    #[test]
    fn a_refusal_of_another_host_carries_its_private_data() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let log = ConnectionLog::new()?;
        connect_elsewhere(&cm_fixture, &log)?;
        let dialed = carrier.dialed()?;
        kunit_assert_eq!(dialed.request.refused(Status::Refused, b"no"), Ok(()));
        kunit_assert_eq!(log.answer(), Some(REFUSAL));
        kunit_assert_eq!(carrier.answer(&dialed)?, Err(ConnectionGone));
        kunit_assert_eq!((log.replies.get(), carrier.cancels.get()), (1, 0));
        kunit_assert_eq!(counts(&cm_fixture.active), (0, 1, 0));
        Ok(())
    }

    #[test]
    fn an_answer_may_come_before_the_dial_returns() -> Result {
        for (dial, want, state) in cases([
            (DialHabit::IsAnswered, WELCOME, QpState::Rts),
            (DialHabit::IsRefused, REFUSAL, QpState::Init),
        ]) {
            let (cm_fixture, carrier) = over_with(dial)?;
            let log = ConnectionLog::new()?;
            connect_elsewhere(&cm_fixture, &log)?;
            kunit_assert_eq!(log.answer(), Some(want));
            kunit_assert_eq!(cm_fixture.active.qp.state(), state);
            kunit_assert_eq!((log.replies.get(), carrier.cancels.get()), (1, 0));
        }
        Ok(())
    }

    #[test]
    fn the_error_of_a_dial_is_the_answer() -> Result {
        for status in cases([Status::Unreachable, Status::Aborted]) {
            let (cm_fixture, carrier) = over_with(DialHabit::Fails(status))?;
            let log = ConnectionLog::new()?;
            connect_elsewhere(&cm_fixture, &log)?;
            kunit_assert_eq!(log.status(), Some(Err(status)));
            kunit_assert_eq!((log.replies.get(), carrier.cancels.get()), (1, 0));
            kunit_assert_eq!(counts(&cm_fixture.active), (0, 1, 0));
        }
        Ok(())
    }

    #[test]
    fn what_this_host_serves_is_not_dialed_and_the_rest_is() -> Result {
        for (is_here, listens, dials) in cases([
            (false, true, 0),
            (true, true, 0),
            // Another provider may listen there.
            (true, false, 1),
        ]) {
            let (cm_fixture, carrier) = over(CarrierHabits::default())?;
            let log = ConnectionLog::new()?;
            if listens {
                cm_fixture.open()?;
            }
            let mut ask = cm_fixture.ask()?;
            ask.remote_is_here = is_here;
            let request = cm_fixture.submit(&log, ask)?;
            kunit_assert_eq!(carrier.dials.get(), dials);
            kunit_assert_eq!(log.status(), None);
            request.abandon();
        }
        Ok(())
    }

    #[test]
    fn a_wildcard_listener_does_not_keep_a_connect_from_another_host() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let log = ConnectionLog::new()?;
        let listener_log = ListenerLog::new(ELSEWHERE, false)?;
        cm_fixture.listen(at(ANY, PORT), &listener_log)?;
        let request = connect_elsewhere(&cm_fixture, &log)?;
        kunit_assert_eq!((listener_log.requests.get(), carrier.dials.get()), (0, 1));
        assert!(request.abandon());
        Ok(())
    }

    #[test]
    fn a_request_that_a_listener_declined_is_not_dialed() -> Result {
        for waits in cases([false, true]) {
            let (cm_fixture, carrier) = over(CarrierHabits::default())?;
            let (log, next) = (ConnectionLog::new()?, full()?);
            cm_fixture.open()?;
            // The second listener serves the request, or does not.
            let port = PORT + u16::from(!waits);
            let listener = cm_fixture.listen(at(ANY, port), &next)?;
            let request = connect_patiently(&cm_fixture, &log)?;
            let number = request.listener_number().ok_or(ENOENT)?;
            let declined = cm_fixture.cm.decline(&request, number, Status::Refused);
            kunit_assert_eq!(declined, Ok(()));
            kunit_assert_eq!(log.replies.get(), u32::from(!waits));
            cm_fixture.cm.unlisten(&listener);
            assert!(wait_until(|| log.status() == Some(Err(Status::Refused))));
            kunit_assert_eq!((log.replies.get(), carrier.dials.get()), (1, 0));
        }
        Ok(())
    }

    #[test]
    fn a_request_that_waits_for_room_is_dialed_when_the_listener_ends() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let (log, listener_log) = (ConnectionLog::new()?, full()?);
        let listener = cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        let request = connect_patiently(&cm_fixture, &log)?;
        kunit_assert_eq!(carrier.dials.get(), 0);
        cm_fixture.cm.unlisten(&listener);
        assert!(wait_until(|| carrier.dials.get() == 1));
        // A turn that comes twice dials once.
        cm_fixture.cm.submit(&request);
        kunit_assert_eq!((carrier.dials.get(), log.replies.get()), (1, 0));
        kunit_assert_eq!(carrier.answer(&carrier.dialed()?)?, Ok(()));
        // Nor does one that comes late.
        cm_fixture.cm.submit(&request);
        kunit_assert_eq!((carrier.dials.get(), log.replies.get()), (1, 1));
        Ok(())
    }

    #[test]
    fn a_connect_that_is_given_up_cancels_the_dial() -> Result {
        for dial in cases([DialHabit::Waits, DialHabit::IsAbandoned]) {
            let (cm_fixture, carrier) = over_with(dial)?;
            let log = ConnectionLog::new()?;
            let request = connect_elsewhere(&cm_fixture, &log)?;
            kunit_assert_eq!(request.abandon(), matches!(dial, DialHabit::Waits));
            kunit_assert_eq!(carrier.cancels.get(), 1);
            kunit_assert_eq!(log.status(), Some(Err(Status::Aborted)));
            // The other host's answer comes too late.
            let qp = cm_fixture.active.qp.clone();
            let answered = carrier.answer(&Dialed { qp, request })?;
            kunit_assert_eq!(answered, Err(ConnectionGone));
            kunit_assert_eq!(cm_fixture.active.qp.state(), QpState::Init);
            kunit_assert_eq!((log.replies.get(), carrier.cancels.get()), (1, 1));
        }
        Ok(())
    }

    #[test]
    fn a_host_that_does_not_answer_is_given_up_in_time() -> Result {
        let clock = StoppedClock::new();
        let timeouts = Timeouts {
            answer_ms: 20,
            ..Timeouts::DEFAULT
        };
        let (cm_fixture, carrier) = over_in(timeouts, CarrierHabits::default())?;
        let log = ConnectionLog::new()?;
        connect_elsewhere(&cm_fixture, &log)?;
        assert!(is_early(&clock, 20, || log.status().is_none()));
        assert!(wait_until(|| log.status() == Some(Err(Status::Timeout))));
        kunit_assert_eq!((carrier.dials.get(), carrier.cancels.get()), (1, 1));
        Ok(())
    }

    #[test]
    fn a_queue_pair_that_cannot_be_connected_any_more_gets_no_connection() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let log = ConnectionLog::new()?;
        connect_elsewhere(&cm_fixture, &log)?;
        cm_fixture.active.qp.fail();
        let dialed = carrier.dialed()?;
        kunit_assert_eq!(carrier.answer(&dialed)?, Err(ConnectionGone));
        kunit_assert_eq!(log.status(), Some(Err(Status::Aborted)));
        flush_work(cm_fixture.active.device());
        kunit_assert_eq!((log.replies.get(), log.closed.get()), (1, 0));
        kunit_assert_eq!(counts(&cm_fixture.active), (0, 1, 0));
        kunit_assert_eq!(cm_fixture.active.device().host.sides(), 0);
        Ok(())
    }

    #[test]
    fn an_answer_that_finds_no_room_ends_the_connection() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let log = ConnectionLog::with_reply_failures(1)?;
        connect_elsewhere(&cm_fixture, &log)?;
        kunit_assert_eq!(carrier.answer(&carrier.dialed()?)?, Ok(()));
        kunit_assert_eq!(log.status(), Some(Err(Status::Aborted)));
        kunit_assert_eq!(cm_fixture.active.qp.state(), QpState::Err);
        flush_work(cm_fixture.active.device());
        kunit_assert_eq!((log.replies.get(), log.closed.get()), (2, 0));
        kunit_assert_eq!(cm_fixture.active.device().host.sides(), 0);
        Ok(())
    }

    #[test]
    fn an_answer_of_another_host_can_be_dropped() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let log = ConnectionLog::new()?;
        let settings = FaultSettings {
            what: Some(SiteKind::Reply),
            usec: 200_000,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(cm_fixture.active.device(), Fault::DropEvent, settings);
        connect_elsewhere(&cm_fixture, &log)?;
        kunit_assert_eq!(carrier.answer(&carrier.dialed()?)?, Ok(()));
        kunit_assert_eq!(cm_fixture.active.qp.state(), QpState::Rts);
        assert!(is_early(&clock, 200, || log.status().is_none()));
        assert!(wait_until(|| log.status() == Some(Err(Status::Timeout))));
        Ok(())
    }

    #[test]
    fn a_connect_that_is_to_be_confirmed_is_up_with_the_answer_of_another_host() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let log = ConnectionLog::new()?;
        let mut ask = ask_elsewhere(&cm_fixture)?;
        ask.wants_confirmation = true;
        let request = cm_fixture.submit(&log, ask)?;
        kunit_assert_eq!(carrier.answer(&carrier.dialed()?)?, Ok(()));
        kunit_assert_eq!(request.confirm(), Ok(()));
        cm_fixture.active.qp.fail();
        kunit_assert_eq!(request.confirm(), Err(ConnectError::Aborted));
        assert!(wait_until(|| log.closed.get() == 1));
        Ok(())
    }

    #[test]
    fn a_request_of_another_host_is_accepted() -> Result {
        for waits in cases([false, true]) {
            let (cm_fixture, _) = over(CarrierHabits::default())?;
            let initiator = FakeInitiator::new(&cm_fixture.active.qp, CarryHabit::Connects)?;
            let passive = match waits {
                true => ConnectionLog::patient()?,
                false => ConnectionLog::new()?,
            };
            let listener_log = cm_fixture.open()?;
            request_from(&cm_fixture, &initiator, false)?;
            let request = listener_log.request()?;
            kunit_assert_eq!(*request.params.private_data, *b"please");
            cm_fixture.accept(&request, &passive)?;
            kunit_assert_eq!(initiator.answer(), Some(WELCOME));
            kunit_assert_eq!(initiator.answers(), (1, 0));
            // The other host has no way to confirm.
            kunit_assert_eq!(passive.status(), Some(Ok((5, 3))));
            kunit_assert_eq!(request.confirm(), Err(ConnectError::NotReady));
            kunit_assert_eq!(cm_fixture.passive.qp.state(), QpState::Rts);
            kunit_assert_eq!(counts(&cm_fixture.passive), (0, 0, 1));
            cm_fixture.passive.qp.fail();
            assert!(wait_until(|| passive.closed.get() == 1));
            kunit_assert_eq!((passive.established.get(), passive.replies.get()), (1, 0));
            kunit_assert_eq!(passive.not_established.get(), 0);
        }
        Ok(())
    }

    #[test]
    fn a_request_of_another_host_is_refused_once() -> Result {
        let (cm_fixture, _) = over(CarrierHabits::default())?;
        let initiator = FakeInitiator::new(&cm_fixture.active.qp, CarryHabit::Connects)?;
        let listener_log = cm_fixture.open()?;
        let request = request_from(&cm_fixture, &initiator, false)?;
        kunit_assert_eq!(request.reject(b"no"), Ok(()));
        kunit_assert_eq!(request.reject(b"no"), Err(ConnectionGone));
        kunit_assert_eq!(initiator.answer(), Some(REFUSAL));
        kunit_assert_eq!(initiator.answers(), (0, 1));
        kunit_assert_eq!(listener_log.rejected.get(), 1);
        // Connects that fail are counted by the device that asked.
        kunit_assert_eq!(counts(&cm_fixture.active), (0, 0, 0));
        Ok(())
    }

    #[test]
    fn a_request_of_another_host_without_a_listener_is_refused_and_not_dialed() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let initiator = FakeInitiator::new(&cm_fixture.active.qp, CarryHabit::Connects)?;
        request_from(&cm_fixture, &initiator, false)?;
        kunit_assert_eq!(initiator.status(), Some(Err(Status::Refused)));
        kunit_assert_eq!(initiator.answers(), (0, 1));
        kunit_assert_eq!(carrier.dials.get(), 0);
        Ok(())
    }

    #[test]
    fn a_request_of_another_host_waits_for_room() -> Result {
        let (cm_fixture, _) = over(CarrierHabits::default())?;
        let initiator = FakeInitiator::new(&cm_fixture.active.qp, CarryHabit::Connects)?;
        let habits = ListenerHabits {
            no_room_count: 2,
            ..ListenerHabits::default()
        };
        let listener_log = ListenerLog::with(HERE, habits)?;
        cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        request_from(&cm_fixture, &initiator, true)?;
        assert!(wait_until(|| listener_log.has_request()));
        cm_fixture.accept(&listener_log.request()?, &ConnectionLog::new()?)?;
        kunit_assert_eq!(initiator.answers(), (1, 0));
        Ok(())
    }

    #[test]
    fn a_request_of_another_host_that_nothing_answers_is_refused_in_time() -> Result {
        for ends in cases([false, true]) {
            let clock = StoppedClock::new();
            let timeouts = Timeouts {
                answer_ms: 200,
                orphan_ms: 20,
                ..Timeouts::DEFAULT
            };
            let (cm_fixture, _) = over_in(timeouts, CarrierHabits::default())?;
            let initiator = FakeInitiator::new(&cm_fixture.active.qp, CarryHabit::Connects)?;
            let listener_log = ListenerLog::new(HERE, false)?;
            let listener = cm_fixture.listen(at(HERE, PORT), &listener_log)?;
            let request = request_from(&cm_fixture, &initiator, false)?;
            let ms = match ends {
                true => {
                    cm_fixture.cm.unlisten(&listener);
                    20
                }
                false => 200,
            };
            assert!(is_early(&clock, ms, || initiator.status().is_none()));
            assert!(wait_until(
                || initiator.status() == Some(Err(Status::Timeout))
            ));
            kunit_assert_eq!(initiator.answers(), (0, 1));
            kunit_assert_eq!(request.reject(&[]), Err(ConnectionGone));
            // The end of the module waits for the initiator no longer.
            kunit_assert_eq!(cm_fixture.active.device().host.sides(), 0);
        }
        Ok(())
    }

    #[test]
    fn an_accept_that_fails_refuses_the_other_host() -> Result {
        for (habit, want) in cases([
            (
                CarryHabit::Fails(ConnectError::NoMemory),
                ConnectError::NoMemory,
            ),
            (
                CarryHabit::Fails(ConnectError::Aborted),
                ConnectError::Aborted,
            ),
            (CarryHabit::Connects, ConnectError::NotReady),
        ]) {
            let (cm_fixture, _) = over(CarrierHabits::default())?;
            let initiator = FakeInitiator::new(&cm_fixture.active.qp, habit)?;
            let passive = ConnectionLog::new()?;
            cm_fixture.open()?;
            let request = request_from(&cm_fixture, &initiator, false)?;
            if matches!(habit, CarryHabit::Connects) {
                cm_fixture.passive.qp.fail();
            }
            kunit_assert_eq!(cm_fixture.try_accept(&request, &passive), Err(want));
            kunit_assert_eq!(initiator.status(), Some(Err(Status::Refused)));
            kunit_assert_eq!(initiator.answers(), (0, 1));
            flush_work(cm_fixture.passive.device());
            kunit_assert_eq!((passive.established.get(), passive.closed.get()), (0, 0));
            kunit_assert_eq!(counts(&cm_fixture.passive), (0, 0, 0));
            kunit_assert_eq!(cm_fixture.passive.device().host.sides(), 0);
        }
        Ok(())
    }

    #[test]
    fn an_initiator_that_is_gone_cannot_be_accepted() -> Result {
        let (cm_fixture, _) = over(CarrierHabits::default())?;
        let initiator = FakeInitiator::new(&cm_fixture.active.qp, CarryHabit::Connects)?;
        let passive = ConnectionLog::new()?;
        cm_fixture.open()?;
        let request = request_from(&cm_fixture, &initiator, false)?;
        assert!(request.abandon());
        let accepted = cm_fixture.try_accept(&request, &passive);
        kunit_assert_eq!(accepted, Err(ConnectError::Aborted));
        kunit_assert_eq!(initiator.answers(), (0, 1));
        kunit_assert_eq!(cm_fixture.passive.qp.state(), QpState::Init);
        Ok(())
    }

    #[test]
    fn an_initiator_that_gives_up_during_the_accept_ends_the_connection() -> Result {
        let (cm_fixture, _) = over(CarrierHabits::default())?;
        let initiator = FakeInitiator::new(&cm_fixture.active.qp, CarryHabit::GivesUp)?;
        let passive = ConnectionLog::new()?;
        cm_fixture.open()?;
        let request = request_from(&cm_fixture, &initiator, false)?;
        kunit_assert_eq!(cm_fixture.try_accept(&request, &passive), Ok(()));
        assert!(wait_until(|| passive.closed_by_peer.get() == 1));
        kunit_assert_eq!((passive.established.get(), passive.closed.get()), (1, 1));
        kunit_assert_eq!(initiator.answers(), (1, 0));
        kunit_assert_eq!(cm_fixture.passive.qp.state(), QpState::Err);
        Ok(())
    }

    #[test]
    fn connections_are_taken_for_a_listener_until_it_ends() -> Result {
        for listen_fails in cases([false, true]) {
            let (cm_fixture, carrier) = over(CarrierHabits {
                listen_fails,
                ..CarrierHabits::default()
            })?;
            let (log, listener_log) = (ConnectionLog::new()?, ListenerLog::new(HERE, false)?);
            let listener = cm_fixture.listen(at(HERE, PORT), &listener_log)?;
            kunit_assert_eq!((carrier.listens.get(), carrier.unlistens.get()), (1, 0));
            // This host is served either way.
            cm_fixture.connect(&log)?;
            listener_log.request()?.abandon();
            cm_fixture.cm.unlisten(&listener);
            kunit_assert_eq!(carrier.unlistens.get(), u32::from(!listen_fails));
        }
        Ok(())
    }

    #[test]
    fn a_listener_that_finds_its_port_taken_takes_no_connections() -> Result {
        let (cm_fixture, carrier) = over(CarrierHabits::default())?;
        let listener_log = cm_fixture.open()?;
        assert!(cm_fixture.listen(at(HERE, PORT), &listener_log).is_err());
        kunit_assert_eq!(carrier.listens.get(), 1);
        Ok(())
    }
}
