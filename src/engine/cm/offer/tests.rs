// SPDX-License-Identifier: GPL-2.0

//! The listener that is notified of a request, and the next one if that listener declines.

#[kernel::macros::kunit_tests(ndk_engine_cm_offer)]
mod tests {
    use core::net::{
        IpAddr,
        Ipv4Addr, //
    };

    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        engine::cm::{
            AddressError,
            ConnectRequest,
            ConnectionGone,
            Listener,
            Timeouts, //
        },
        kunit::{
            connection_fixture::*,
            harness::{
                cases,
                sleep,
                wait_until, //
            }, //
        },
        rdma::values::status::Status,
        sys::clock::StoppedClock, //
    };

    /// The first port that is given out for port 0.
    const FIRST_PORT: u16 = 49152;

    /// An address that each network namespace has.
    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Logs of listeners at the addresses `listen`, each of a device at `HERE`.
    fn listener_logs(
        cm_fixture: &ConnectionFixture,
        listen: &[IpAddr],
    ) -> Result<KVec<Arc<ListenerLog>>> {
        let mut listener_logs = KVec::new();
        for ip in listen {
            let manner = ListenerHabits {
                dual: true,
                ..ListenerHabits::default()
            };
            let listener_log = ListenerLog::with(HERE, manner)?;
            cm_fixture.listen(at(*ip, PORT), &listener_log)?;
            listener_logs.push(listener_log, GFP_KERNEL)?;
        }
        Ok(listener_logs)
    }

    /// Declines the request, for the listener that was notified last.
    fn decline(
        cm_fixture: &ConnectionFixture,
        request: &Arc<ConnectRequest>,
    ) -> Result<(), ConnectionGone> {
        let number = request.listener_number().ok_or(ConnectionGone)?;
        cm_fixture.cm.decline(request, number, Status::Refused)
    }

    /// The number of requests that each listener has seen.
    fn asked<const N: usize>(listener_logs: &[Arc<ListenerLog>]) -> [u32; N] {
        core::array::from_fn(|i| listener_logs[i].requests.get())
    }

    #[test]
    fn of_listeners_that_fit_alike_the_first_is_reported() -> Result {
        for (listen, want) in cases([
            ([ANY, ANY, ANY], [1, 0, 0]),
            ([ANY, HERE, HERE], [0, 1, 0]),
            ([ANY6, ANY6, ANY], [0, 0, 1]),
        ]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let listener_logs = listener_logs(&cm_fixture, &listen)?;
            let request = cm_fixture.connect(&log)?;
            kunit_assert_eq!(asked(&listener_logs), want);
            request.abandon();
        }
        Ok(())
    }

    #[test]
    fn a_request_is_passed_on_from_the_best_to_the_worst() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_logs = listener_logs(&cm_fixture, &[ANY6, HERE, ANY, ANY])?;
        let request = cm_fixture.connect(&log)?;
        for want in cases([[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]]) {
            kunit_assert_eq!(asked(&listener_logs), want);
            kunit_assert_eq!(log.replies.get(), 0);
            assert!(decline(&cm_fixture, &request).is_ok());
        }
        // No listener is left.
        kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        kunit_assert_eq!(log.replies.get(), 1);
        let rejected: [u32; 4] = core::array::from_fn(|i| listener_logs[i].rejected.get());
        kunit_assert_eq!(rejected, [1, 0, 0, 0]);
        Ok(())
    }

    #[test]
    fn whoever_is_reported_next_may_take_it() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::new()?,
        );
        let listener_logs = listener_logs(&cm_fixture, &[HERE, ANY])?;
        let request = cm_fixture.connect(&active)?;
        assert!(decline(&cm_fixture, &request).is_ok());
        let asked = listener_logs[1].request()?;
        assert!(Arc::ptr_eq(&asked, &request));
        kunit_assert_eq!(*asked.params.private_data, *b"please");
        cm_fixture.accept(&asked, &passive)?;
        kunit_assert_eq!(active.status(), Some(Ok((3, 5))));
        kunit_assert_eq!(passive.established.get(), 1);
        Ok(())
    }

    #[test]
    fn a_listener_that_has_passed_a_request_on_has_no_say_in_it() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_logs = listener_logs(&cm_fixture, &[HERE, ANY, ANY])?;
        let request = cm_fixture.connect(&log)?;
        let first = request.listener_number().ok_or(ENOENT)?;
        assert!(cm_fixture.cm.request_at_listener(first).is_some());
        let consumer = Arc::as_ptr(&listener_logs[0]).addr();
        kunit_assert_eq!(request.consumer(first), Some(consumer));
        assert!(decline(&cm_fixture, &request).is_ok());
        let second = request.listener_number().ok_or(ENOENT)?;
        assert!(cm_fixture.cm.request_at_listener(first).is_none());
        kunit_assert_eq!(request.consumer(first), None);
        kunit_assert_eq!(
            cm_fixture.cm.decline(&request, first, Status::Refused),
            Err(ConnectionGone)
        );
        kunit_assert_eq!(asked(&listener_logs), [1, 1, 0]);
        let found = cm_fixture.cm.request_at_listener(second);
        assert!(found.is_some_and(|o| Arc::ptr_eq(&o, &request)));
        // The active side's own number stays.
        assert!(cm_fixture.cm.request(request.number).is_some());
        request.abandon();
        assert!(cm_fixture.cm.request_at_listener(second).is_none());
        Ok(())
    }

    #[test]
    fn a_request_that_was_decided_is_not_passed_on() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_logs = listener_logs(&cm_fixture, &[HERE, ANY])?;
        let request = cm_fixture.connect(&log)?;
        request.abandon();
        let _ = decline(&cm_fixture, &request);
        kunit_assert_eq!(asked(&listener_logs), [1, 0]);
        kunit_assert_eq!(listener_logs[0].rejected.get(), 0);
        kunit_assert_eq!(log.status(), Some(Err(Status::Aborted)));
        kunit_assert_eq!(log.replies.get(), 1);
        Ok(())
    }

    #[test]
    fn a_listener_may_want_requests_to_its_own_device_alone() -> Result {
        for (listen, device, want) in cases([
            (HERE, HERE, 1),
            (ANY, HERE, 1),
            (HERE, ELSEWHERE, 0),
            (ANY, ELSEWHERE, 0),
        ]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let manner = ListenerHabits {
                own_only: true,
                ..ListenerHabits::default()
            };
            let listener_log = ListenerLog::with(device, manner)?;
            cm_fixture.listen(at(listen, PORT), &listener_log)?;
            let request = cm_fixture.connect(&log)?;
            kunit_assert_eq!(listener_log.requests.get(), want);
            match want {
                0 => kunit_assert_eq!(log.status(), Some(Err(Status::Refused))),
                _ => assert!(request.abandon()),
            }
        }
        Ok(())
    }

    /// A listener at `HERE` that has no room for the first `requests` requests.
    fn full(
        cm_fixture: &ConnectionFixture,
        requests: u32,
    ) -> Result<(Arc<ListenerLog>, Arc<Listener>)> {
        let manner = ListenerHabits {
            no_room_count: requests,
            ..ListenerHabits::default()
        };
        let listener_log = ListenerLog::with(HERE, manner)?;
        let listener = cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        Ok((listener_log, listener))
    }

    /// Submits a request that waits for room.
    fn connect(
        cm_fixture: &ConnectionFixture,
        log: &Arc<ConnectionLog>,
    ) -> Result<Arc<ConnectRequest>> {
        let mut ask = cm_fixture.ask()?;
        ask.retries_when_full = true;
        cm_fixture.submit(log, ask)
    }

    #[test]
    fn a_listener_without_room_is_asked_until_it_has_some() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (listener_log, _) = full(&cm_fixture, 3)?;
        connect(&cm_fixture, &log)?;
        assert!(wait_until(|| listener_log.requests.get() == 4));
        assert!(wait_until(|| listener_log.has_request()));
        kunit_assert_eq!(log.replies.get(), 0);
        kunit_assert_eq!(listener_log.rejected.get(), 0);
        cm_fixture.accept(&listener_log.request()?, &ConnectionLog::new()?)?;
        kunit_assert_eq!(log.status(), Some(Ok((3, 5))));
        kunit_assert_eq!(listener_log.requests.get(), 4);
        Ok(())
    }

    #[test]
    fn a_listener_that_never_has_room_is_asked_until_the_time_is_over() -> Result {
        let timeouts = Timeouts {
            answer_ms: 2_000,
            ..Timeouts::DEFAULT
        };
        let clock = StoppedClock::new();
        let (cm_fixture, log) = (ConnectionFixture::with(timeouts)?, ConnectionLog::new()?);
        let (listener_log, _) = full(&cm_fixture, u32::MAX)?;
        connect(&cm_fixture, &log)?;
        let threads = &cm_fixture.active.device().host.threads;
        for asked in cases(1..4) {
            assert!(wait_until(|| listener_log.requests.get() == asked));
            // The listener is asked again later.
            threads.flush();
            clock.pass(500);
        }
        assert!(wait_until(|| listener_log.requests.get() == 4));
        assert!(log.status().is_none());
        threads.flush();
        clock.pass(500);
        assert!(wait_until(|| log.status() == Some(Err(Status::Timeout))));
        threads.flush();
        let requests = listener_log.requests.get();
        clock.pass(5_000);
        sleep(50);
        kunit_assert_eq!(listener_log.requests.get(), requests);
        kunit_assert_eq!(log.replies.get(), 1);
        Ok(())
    }

    #[test]
    fn who_does_not_wait_for_room_is_refused() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (listener_log, _) = full(&cm_fixture, 1)?;
        cm_fixture.connect(&log)?;
        kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        kunit_assert_eq!(
            (listener_log.requests.get(), listener_log.rejected.get()),
            (1, 1)
        );
        Ok(())
    }

    #[test]
    fn who_gives_up_waiting_for_room_is_not_heard_of_again() -> Result {
        let clock = StoppedClock::new();
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (listener_log, _) = full(&cm_fixture, 1)?;
        let request = connect(&cm_fixture, &log)?;
        assert!(request.abandon());
        clock.pass(5_000);
        sleep(50);
        kunit_assert_eq!(listener_log.requests.get(), 1);
        kunit_assert_eq!(log.status(), Some(Err(Status::Aborted)));
        Ok(())
    }

    /// Submits `count` requests that wait at a full listener; the first was offered.
    fn crowd(
        cm_fixture: &ConnectionFixture,
        log: &Arc<ConnectionLog>,
        count: usize,
    ) -> Result<KVec<Arc<ConnectRequest>>> {
        let mut requests = KVec::new();
        for _ in 0..count {
            requests.push(connect(cm_fixture, log)?, GFP_KERNEL)?;
        }
        Ok(requests)
    }

    #[test]
    fn of_those_that_wait_for_room_the_first_asks_again() -> Result {
        let clock = StoppedClock::new();
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (listener_log, _) = full(&cm_fixture, u32::MAX)?;
        let requests = crowd(&cm_fixture, &log, 32)?;
        let threads = &cm_fixture.active.device().host.threads;
        for asked in cases(1..4) {
            assert!(wait_until(|| listener_log.requests.get() >= asked));
            threads.flush();
            kunit_assert_eq!(listener_log.requests.get(), asked);
            clock.pass(500);
        }
        assert!(wait_until(|| listener_log.requests.get() >= 4));
        threads.flush();
        // If the first gives up, the next has its turn at once; the listener is not asked for the
        // others.
        assert!(requests[5].abandon());
        assert!(requests[0].abandon());
        assert!(wait_until(|| listener_log.requests.get() >= 5));
        threads.flush();
        kunit_assert_eq!(listener_log.requests.get(), 5);
        for request in &requests {
            request.abandon();
            threads.flush();
        }
        // Each of the 30 requests that were left has been the first.
        kunit_assert_eq!(listener_log.requests.get(), 5 + 29);
        kunit_assert_eq!(log.replies.get(), 32);
        Ok(())
    }

    #[test]
    fn those_that_wait_for_room_are_served_in_order() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (listener_log, _) = full(&cm_fixture, 2)?;
        let requests = crowd(&cm_fixture, &log, 3)?;
        assert!(wait_until(|| listener_log.requests.get() == 5));
        cm_fixture.active.device().host.threads.flush();
        let last = listener_log.request()?;
        kunit_assert_eq!(last.number, requests[2].number);
        for request in &requests {
            assert!(request.listener_number().is_some());
            assert!(request.abandon());
        }
        kunit_assert_eq!(listener_log.requests.get(), 5);
        Ok(())
    }

    #[test]
    fn all_that_wait_where_a_listener_ends_go_to_the_next_one() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (listener_log, listener) = full(&cm_fixture, u32::MAX)?;
        let next = listener_logs(&cm_fixture, &[ANY])?;
        let requests = crowd(&cm_fixture, &log, 8)?;
        cm_fixture.cm.unlisten(&listener);
        let before = listener_log.requests.get();
        assert!(wait_until(|| next[0].requests.get() == 8));
        cm_fixture.active.device().host.threads.flush();
        kunit_assert_eq!(next[0].requests.get(), 8);
        kunit_assert_eq!(listener_log.requests.get(), before);
        for request in &requests {
            assert!(request.abandon());
        }
        Ok(())
    }

    #[test]
    fn a_turn_that_comes_twice_asks_once() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = cm_fixture.open()?;
        let next = listener_logs(&cm_fixture, &[ANY])?;
        let request = connect(&cm_fixture, &log)?;
        let number = request.listener_number();
        let threads = &cm_fixture.active.device().host.threads;
        request.offer_soon();
        threads.flush();
        kunit_assert_eq!((listener_log.requests.get(), asked(&next)), (1, [0]));
        kunit_assert_eq!(request.listener_number(), number);
        // A second turn that began before the notification asks no listener, either.
        cm_fixture.cm.offer_next(&request, None, Status::Refused);
        kunit_assert_eq!((listener_log.requests.get(), asked(&next)), (1, [0]));
        // The next listener gets the request when this one declines.
        assert!(decline(&cm_fixture, &request).is_ok());
        kunit_assert_eq!((listener_log.requests.get(), asked(&next)), (1, [1]));
        assert!(request.abandon());
        Ok(())
    }

    #[test]
    fn all_that_wait_at_the_last_listener_are_refused_when_it_ends() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (_, listener) = full(&cm_fixture, u32::MAX)?;
        crowd(&cm_fixture, &log, 8)?;
        cm_fixture.cm.unlisten(&listener);
        assert!(wait_until(|| log.replies.get() == 8));
        kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        Ok(())
    }

    #[test]
    fn where_a_listener_without_room_ends_the_next_one_is_reported() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (_, listener) = full(&cm_fixture, u32::MAX)?;
        let next = listener_logs(&cm_fixture, &[ANY])?;
        let request = connect(&cm_fixture, &log)?;
        kunit_assert_eq!(asked(&next), [0]);
        cm_fixture.cm.unlisten(&listener);
        assert!(wait_until(|| next[0].requests.get() == 1));
        kunit_assert_eq!(log.replies.get(), 0);
        request.abandon();
        Ok(())
    }

    #[test]
    fn what_a_listener_that_has_ended_leaves_unanswered_goes_to_the_next() -> Result {
        let timeouts = Timeouts {
            orphan_ms: 20,
            ..Timeouts::DEFAULT
        };
        let clock = StoppedClock::new();
        let (cm_fixture, log) = (ConnectionFixture::with(timeouts)?, ConnectionLog::new()?);
        let first = ListenerLog::new(HERE, false)?;
        let listener = cm_fixture.listen(at(HERE, PORT), &first)?;
        let next = listener_logs(&cm_fixture, &[ANY])?;
        let request = cm_fixture.connect(&log)?;
        let number = request.listener_number().ok_or(ENOENT)?;
        cm_fixture.cm.unlisten(&listener);
        clock.pass(20);
        assert!(wait_until(|| next[0].has_request()));
        kunit_assert_eq!(first.requests.get(), 1);
        kunit_assert_eq!(log.replies.get(), 0);
        assert!(cm_fixture.cm.request_at_listener(number).is_none());
        cm_fixture.accept(&next[0].request()?, &ConnectionLog::new()?)?;
        kunit_assert_eq!(log.status(), Some(Ok((3, 5))));
        Ok(())
    }

    #[test]
    fn each_namespace_has_ports_of_its_own() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = ListenerLog::new(LOCALHOST, false)?;
        let elsewhere = || -> Result<_> {
            let events = KBox::new(ListenerLogEvents(listener_log.clone()), GFP_KERNEL)?;
            Ok(cm_fixture.cm.listen(NET + 1, at(LOCALHOST, PORT), events))
        };
        let second = elsewhere()?.map_err(|_| EADDRINUSE)?;
        let mut ask = cm_fixture.ask()?;
        ask.remote = at(LOCALHOST, PORT);
        cm_fixture.submit(&log, ask)?;
        kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        let first = cm_fixture.listen(at(LOCALHOST, PORT), &listener_log)?;
        kunit_assert_eq!(elsewhere()?.err(), Some(AddressError::InUse));
        cm_fixture.cm.unlisten(&first);
        cm_fixture.cm.unlisten(&second);
        kunit_assert_eq!(listener_log.requests.get(), 0);
        Ok(())
    }

    #[test]
    fn a_port_where_a_program_listens_cannot_be_reserved() -> Result {
        for ip in cases([LOCALHOST, ANY]) {
            let cm_fixture = ConnectionFixture::new()?;
            let listener_log = ListenerLog::new(LOCALHOST, false)?;
            let device = Arc::as_ptr(&listener_log).addr();
            let reserve = |port| cm_fixture.cm.reserve(device, NET, at(LOCALHOST, port));
            let listener = cm_fixture.listen(at(ip, PORT), &listener_log)?;
            kunit_assert_eq!(reserve(PORT).err(), Some(AddressError::InUse));
            assert!(reserve(PORT + 1).is_ok());
            cm_fixture.cm.unlisten(&listener);
            let held = reserve(PORT).map_err(|_| EADDRINUSE)?;
            let listen_on = || -> Result<_> {
                let events = KBox::new(ListenerLogEvents(listener_log.clone()), GFP_KERNEL)?;
                Ok(cm_fixture.cm.listen_on(held.clone(), events))
            };
            // First only reserved, then with a listener.
            let again = cm_fixture.listen(at(LOCALHOST, PORT), &listener_log);
            kunit_assert_eq!(again.err(), Some(EADDRINUSE));
            let own = listen_on()?.map_err(|_| EADDRINUSE)?;
            kunit_assert_eq!(
                cm_fixture.listen(at(ip, PORT), &listener_log).err(),
                Some(EADDRINUSE)
            );
            kunit_assert_eq!(listen_on()?.err(), Some(AddressError::InUse));
            cm_fixture.cm.unlisten(&own);
        }
        Ok(())
    }

    #[test]
    fn a_port_below_a_wildcard_is_not_given_out() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let listener_log = ListenerLog::new(LOCALHOST, false)?;
        let device = Arc::as_ptr(&listener_log).addr();
        let reserve = |port| cm_fixture.cm.reserve(device, NET, at(LOCALHOST, port));
        let listened = FIRST_PORT + 7;
        let listener = cm_fixture.listen(at(ANY, listened), &listener_log)?;
        let mut held = KVVec::new();
        for port in cases(FIRST_PORT..=u16::MAX) {
            if port != listened {
                held.push(reserve(port).map_err(|_| EADDRINUSE)?, GFP_KERNEL)?;
            }
        }
        kunit_assert_eq!(reserve(0).err(), Some(AddressError::NoPort));
        cm_fixture.cm.unlisten(&listener);
        let found = reserve(0).map_err(|_| EADDRINUSE)?;
        kunit_assert_eq!(found.addr().port(), listened);
        Ok(())
    }
}
