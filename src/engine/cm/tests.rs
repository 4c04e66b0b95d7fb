// SPDX-License-Identifier: GPL-2.0

//! Connections on one host: the listener that is notified, the limits, and the reports to each
//! side.

mod inject;

#[kernel::macros::kunit_tests(ndk_engine_cm)]
mod tests {
    use core::net::{
        IpAddr,
        Ipv6Addr, //
    };

    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                ordering::Relaxed,
                Atomic, //
            },
            rcu,
            Arc, //
        }, //
    };

    use crate::{
        direct,
        engine::{
            cm::{
                ConnectRequest,
                ConnectionGone,
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
                sleep,
                wait_until, //
            },
            other_context::OtherContext,
            requests::*, //
        },
        rdma::values::{
            qp::QpState,
            status::Status, //
        },
        sys::{
            clock::StoppedClock,
            softirq::ProcessQueue, //
        }, //
    };

    /// An action on a request.
    type Way = fn(&ConnectionFixture, &Arc<ConnectRequest>) -> Result;

    fn reject(request: &ConnectRequest) -> Result {
        request.reject(&[]).map_err(|ConnectionGone| ECONNABORTED)
    }

    #[test]
    fn a_request_carries_what_the_active_side_said() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&log)?;
        let request = listener_log.request()?;
        kunit_assert_eq!(*request.params.private_data, *b"please");
        kunit_assert_eq!(request.params.local, at(ELSEWHERE, 1234));
        kunit_assert_eq!(request.params.remote, at(HERE, PORT));
        kunit_assert_eq!(
            (
                request.params.limits.inbound,
                request.params.limits.outbound
            ),
            (3, 7)
        );
        kunit_assert_eq!(log.replies.get(), 0);
        request.abandon();
        Ok(())
    }

    #[test]
    fn an_accepted_request_connects_both_sides_and_notifies_each_once() -> Result {
        let (active, passive) = (ConnectionLog::new()?, ConnectionLog::new()?);
        let cm_fixture = connected(&active, &passive)?;
        // Each side reads no more than it asked for, and no more than the other serves.
        let answer = Answer {
            status: Ok((3, 5)),
            data: (*b"welcome\0", 7),
        };
        kunit_assert_eq!(active.answer(), Some(answer));
        kunit_assert_eq!(passive.status(), Some(Ok((5, 3))));
        kunit_assert_eq!((active.replies.get(), active.established.get()), (1, 0));
        kunit_assert_eq!((passive.replies.get(), passive.established.get()), (0, 1));
        cm_fixture.passive.receive(1, &[])?;
        cm_fixture.active.post(2, SEND, &[])?;
        assert!(cm_fixture.active.sends.next_is(2, Status::Success));
        assert!(cm_fixture.passive.receives.next_is(1, Status::Success));
        kunit_assert_eq!(cm_fixture.active.counted(Counter::Connects), 1);
        kunit_assert_eq!(cm_fixture.passive.counted(Counter::Accepts), 1);
        kunit_assert_eq!(active.closed.get() + passive.closed.get(), 0);
        Ok(())
    }

    #[test]
    fn limits_of_zero_are_kept() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::new()?,
        );
        let listener_log = cm_fixture.open()?;
        let mut ask = cm_fixture.ask()?;
        ask.limits = ReadLimits {
            inbound: 0,
            outbound: 4,
        };
        cm_fixture.submit(&active, ask)?;
        let limits = ReadLimits {
            inbound: 6,
            outbound: 6,
        };
        let request = listener_log.request()?;
        assert!(request
            .accept(&cm_fixture.passive.qp, limits, &[], passive.clone())
            .is_ok());
        kunit_assert_eq!(active.status(), Some(Ok((0, 4))));
        kunit_assert_eq!(passive.status(), Some(Ok((4, 0))));
        let memory = cm_fixture.active.buffer(8)?;
        let sink = cm_fixture.passive.buffer(8)?;
        cm_fixture
            .passive
            .post(1, read(memory.remote(0)), &[sink.whole()])?;
        assert!(cm_fixture.passive.sends.next_is(1, Status::LocalOperation));
        Ok(())
    }

    #[test]
    fn where_nobody_listens_the_answer_says_whether_the_address_is_of_this_host() -> Result {
        for (here, status) in cases([(true, Status::Refused), (false, Status::Unreachable)]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let mut ask = cm_fixture.ask()?;
            ask.remote_is_here = here;
            cm_fixture.submit(&log, ask)?;
            kunit_assert_eq!(log.status(), Some(Err(status)));
            kunit_assert_eq!(log.replies.get(), 1);
            kunit_assert_eq!(cm_fixture.active.counted(Counter::ConnectFailures), 1);
            // The connect may be tried again.
            let listener_log = cm_fixture.open()?;
            cm_fixture.connect(&log)?;
            cm_fixture.accept(&listener_log.request()?, &ConnectionLog::new()?)?;
            kunit_assert_eq!(log.status(), Some(Ok((3, 5))));
        }
        Ok(())
    }

    #[test]
    fn only_a_listener_of_that_network_port_and_family_is_asked() -> Result {
        for (net, to) in cases([
            (NET + 1, at(HERE, PORT)),
            (NET, at(HERE, PORT + 1)),
            (NET, at(ELSEWHERE, PORT)),
            (NET, at(ANY6, PORT)),
        ]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let listener_log = ListenerLog::new(HERE, false)?;
            let events = KBox::new(ListenerLogEvents(listener_log.clone()), GFP_KERNEL)?;
            assert!(cm_fixture.cm.listen(net, to, events).is_ok());
            cm_fixture.connect(&log)?;
            kunit_assert_eq!(listener_log.requests.get(), 0);
            kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        }
        Ok(())
    }

    #[test]
    fn the_listener_that_fits_best_is_asked_whatever_the_order() -> Result {
        // From the best to the worst: the address, its device's wildcards, any wildcard.
        let kinds = [
            (HERE, HERE),
            (HERE, ELSEWHERE),
            (ANY, HERE),
            (ANY6, HERE),
            (ANY, ELSEWHERE),
            (ANY6, ELSEWHERE),
        ];
        for order in cases([[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 2, 5, 0, 4, 1]]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let mut listener_logs = KVec::new();
            for kind in cases(order) {
                let (listen, device) = kinds[kind];
                let manner = ListenerHabits {
                    dual: true,
                    ..ListenerHabits::default()
                };
                let listener_log = ListenerLog::with(device, manner)?;
                let listener = cm_fixture.listen(at(listen, PORT), &listener_log)?;
                listener_logs.push((kind, listener_log, listener), GFP_KERNEL)?;
            }
            for best in cases(0..kinds.len()) {
                cm_fixture.connect(&log)?.abandon();
                for (kind, listener_log, listener) in &listener_logs {
                    let want = u32::from(*kind <= best);
                    kunit_assert_eq!(listener_log.requests.get(), want);
                    if *kind == best {
                        cm_fixture.cm.unlisten(listener);
                    }
                }
            }
            cm_fixture.connect(&log)?;
            kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        }
        Ok(())
    }

    #[test]
    fn the_ipv6_wildcard_serves_ipv4_if_it_says_so_and_never_the_other_way() -> Result {
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        for (listen, dual, to, asked) in cases([
            (ANY6, true, HERE, 1),
            (ANY6, false, HERE, 0),
            (ANY6, false, v6, 1),
            (ANY, true, v6, 0),
            (ANY, true, HERE, 1),
        ]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let manner = ListenerHabits {
                dual,
                ..ListenerHabits::default()
            };
            let listener_log = ListenerLog::with(to, manner)?;
            cm_fixture.listen(at(listen, PORT), &listener_log)?;
            let mut ask = cm_fixture.ask()?;
            ask.remote = at(to, PORT);
            let request = cm_fixture.submit(&log, ask)?;
            kunit_assert_eq!(listener_log.requests.get(), asked);
            // The request has the address that was asked for.
            kunit_assert_eq!(request.params.remote, at(to, PORT));
            request.abandon();
        }
        Ok(())
    }

    #[test]
    fn a_port_belongs_to_the_first_listener_of_a_device() -> Result {
        let table = [
            // first, true if that is dual, second, true if there is room for both
            (HERE, false, HERE, false),
            (HERE, false, ELSEWHERE, true),
            (HERE, false, ANY, false),
            (ANY, false, HERE, false),
            (ANY, false, ANY, false),
            (ANY, false, ANY6, true),
            (ANY6, true, ANY, false),
            (ANY6, true, HERE, false),
            (ANY6, false, HERE, true),
            (ANY6, false, ANY6, false),
        ];
        for (ip, dual, other, both) in cases(table) {
            let cm_fixture = ConnectionFixture::new()?;
            let manner = ListenerHabits {
                dual,
                ..ListenerHabits::default()
            };
            let listener_log = ListenerLog::with(HERE, manner)?;
            let first = cm_fixture.listen(at(ip, PORT), &listener_log)?;
            let second = cm_fixture.listen(at(other, PORT), &listener_log);
            let want = Some(EADDRINUSE).filter(|_| !both);
            if second.as_ref().err() != want.as_ref() {
                kunit_note!("{ip:?}, dual {dual}, and {other:?}: {:?}", second.err());
                return Err(EINVAL);
            }
            cm_fixture.listen(at(other, PORT + 1), &listener_log)?;
            // A listener of another device is not in the way.
            cm_fixture.listen(at(other, PORT), &ListenerLog::new(ELSEWHERE, false)?)?;
            cm_fixture.cm.unlisten(&first);
            if !both {
                cm_fixture.listen(at(other, PORT), &listener_log)?;
            }
        }
        Ok(())
    }

    #[test]
    fn of_two_devices_that_listen_at_one_address_its_owner_is_asked() -> Result {
        for owner_first in cases([true, false]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let (owner, other) = (
                ListenerLog::new(HERE, false)?,
                ListenerLog::new(ELSEWHERE, false)?,
            );
            let order = match owner_first {
                true => [&owner, &other],
                false => [&other, &owner],
            };
            for listener_log in order {
                cm_fixture.listen(at(HERE, PORT), listener_log)?;
            }
            cm_fixture.connect(&log)?;
            assert!(other.request().is_err());
            cm_fixture.accept(&owner.request()?, &ConnectionLog::new()?)?;
        }
        Ok(())
    }

    #[test]
    fn nobody_is_asked_after_the_end_of_listening() -> Result {
        // A request that was reported before would end soon.
        let _clock = StoppedClock::new();
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = ListenerLog::new(HERE, false)?;
        let listener = cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        cm_fixture.connect(&log)?;
        cm_fixture.cm.unlisten(&listener);
        kunit_assert_eq!(listener_log.requests.get(), 1);
        // A request that was reported before may still be accepted.
        cm_fixture.accept(&listener_log.request()?, &ConnectionLog::new()?)?;
        kunit_assert_eq!(log.status(), Some(Ok((3, 5))));
        cm_fixture.connect(&log)?;
        kunit_assert_eq!(listener_log.requests.get(), 1);
        kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        Ok(())
    }

    #[test]
    fn a_request_that_nobody_answers_ends_in_time() -> Result {
        let timeouts = Timeouts {
            answer_ms: 20,
            ..Timeouts::DEFAULT
        };
        let clock = StoppedClock::new();
        let (cm_fixture, log) = (ConnectionFixture::with(timeouts)?, ConnectionLog::new()?);
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&log)?;
        clock.pass(19);
        sleep(20);
        assert!(log.status().is_none());
        assert!(listener_log.has_request());
        clock.pass(1);
        assert!(wait_until(|| log.status() == Some(Err(Status::Timeout))));
        kunit_assert_eq!(
            cm_fixture.accept(&listener_log.request()?, &ConnectionLog::new()?),
            Err(ECONNABORTED)
        );
        kunit_assert_eq!(log.replies.get(), 1);
        Ok(())
    }

    #[test]
    fn a_request_that_nobody_answers_ends_soon_after_its_listener() -> Result {
        let timeouts = Timeouts {
            orphan_ms: 20,
            ..Timeouts::DEFAULT
        };
        let clock = StoppedClock::new();
        let (cm_fixture, log) = (ConnectionFixture::with(timeouts)?, ConnectionLog::new()?);
        let listener_log = ListenerLog::new(HERE, false)?;
        let listener = cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        cm_fixture.connect(&log)?;
        cm_fixture.cm.unlisten(&listener);
        clock.pass(19);
        sleep(20);
        assert!(log.status().is_none());
        clock.pass(1);
        assert!(wait_until(|| log.status() == Some(Err(Status::Timeout))));
        kunit_assert_eq!(
            cm_fixture.accept(&listener_log.request()?, &ConnectionLog::new()?),
            Err(ECONNABORTED)
        );
        Ok(())
    }

    #[test]
    fn a_listener_that_fails_turns_the_peer_away() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = ListenerLog::new(HERE, true)?;
        cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        cm_fixture.connect(&log)?;
        kunit_assert_eq!(listener_log.requests.get(), 1);
        kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        kunit_assert_eq!(cm_fixture.active.qp.state(), QpState::Init);
        Ok(())
    }

    #[test]
    fn a_rejected_request_brings_the_reason() -> Result {
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&log)?;
        assert!(listener_log.request()?.reject(b"go away!").is_ok());
        let answer = Answer {
            status: Err(Status::Refused),
            data: (*b"go away!", 8),
        };
        kunit_assert_eq!(log.answer(), Some(answer));
        kunit_assert_eq!(log.replies.get(), 1);
        kunit_assert_eq!(cm_fixture.active.qp.state(), QpState::Init);
        kunit_assert_eq!(cm_fixture.active.counted(Counter::ConnectFailures), 1);
        Ok(())
    }

    #[test]
    fn a_request_is_decided_once() -> Result {
        let reject: Way = |_, request| reject(request);
        let accept: Way = |cm_fixture, request| cm_fixture.accept(request, &ConnectionLog::new()?);
        let abandon: Way = |_, request| {
            request.abandon();
            Ok(())
        };
        let firsts = [
            (reject, Err(Status::Refused)),
            (accept, Ok((3, 5))),
            (abandon, Err(Status::Aborted)),
        ];
        for (first, answer) in cases(firsts) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let listener_log = cm_fixture.open()?;
            cm_fixture.connect(&log)?;
            let request = listener_log.request()?;
            first(&cm_fixture, &request)?;
            kunit_assert_eq!(log.status(), Some(answer));
            kunit_assert_eq!(reject(&cm_fixture, &request), Err(ECONNABORTED));
            kunit_assert_eq!(accept(&cm_fixture, &request), Err(ECONNABORTED));
            request.abandon();
            kunit_assert_eq!(log.replies.get(), 1);
            kunit_assert_eq!(log.status(), Some(answer));
            let up = answer.is_ok();
            kunit_assert_eq!(cm_fixture.active.qp.state() == QpState::Rts, up);
            kunit_assert_eq!(cm_fixture.passive.qp.state() == QpState::Rts, up);
        }
        Ok(())
    }

    #[test]
    fn the_end_is_reported_once_to_each_side_whoever_ends_it() -> Result {
        let ends: [fn(&ConnectionFixture); 4] = [
            |cm_fixture| cm_fixture.active.qp.fail(),
            |cm_fixture| cm_fixture.passive.qp.fail(),
            |cm_fixture| cm_fixture.active.qp.close(),
            |cm_fixture| {
                cm_fixture.passive.qp.fail();
                cm_fixture.active.qp.fail();
            },
        ];
        for end in cases(ends) {
            let (active, passive) = (ConnectionLog::new()?, ConnectionLog::new()?);
            let cm_fixture = connected(&active, &passive)?;
            end(&cm_fixture);
            for log in [&active, &passive] {
                assert!(wait_until(|| log.closed.get() == 1));
            }
            cm_fixture.active.qp.destroy();
            flush_work(cm_fixture.active.device());
            kunit_assert_eq!((active.closed.get(), passive.closed.get()), (1, 1));
            kunit_assert_eq!(cm_fixture.active.counted(Counter::Disconnects), 1);
            kunit_assert_eq!(cm_fixture.passive.counted(Counter::Disconnects), 1);
        }
        Ok(())
    }

    #[test]
    fn the_end_says_from_which_side_it_came() -> Result {
        for (active_ends, by_peer) in cases([(true, (0, 1)), (false, (1, 0))]) {
            let (active, passive) = (ConnectionLog::new()?, ConnectionLog::new()?);
            let cm_fixture = connected(&active, &passive)?;
            match active_ends {
                true => cm_fixture.active.qp.fail(),
                false => cm_fixture.passive.qp.fail(),
            }
            for log in [&active, &passive] {
                assert!(wait_until(|| log.closed.get() == 1));
            }
            let found = (active.closed_by_peer.get(), passive.closed_by_peer.get());
            kunit_assert_eq!(found, by_peer);
        }
        Ok(())
    }

    #[test]
    fn an_end_that_could_not_be_reported_is_reported_again() -> Result {
        let (active, passive) = (
            ConnectionLog::with_closed_failures(3)?,
            ConnectionLog::new()?,
        );
        let cm_fixture = connected(&active, &passive)?;
        cm_fixture.passive.qp.fail();
        assert!(wait_until(|| active.closed.get() == 4));
        sleep(60);
        kunit_assert_eq!((active.closed.get(), passive.closed.get()), (4, 1));
        kunit_assert_eq!(active.closed_by_peer.get(), 4);
        Ok(())
    }

    #[test]
    fn the_end_of_the_module_waits_until_each_side_has_heard_of_the_end() -> Result {
        // One side cannot be notified for some time.
        let (active, passive) = (
            ConnectionLog::with_closed_failures(3)?,
            ConnectionLog::new()?,
        );
        let cm_fixture = connected(&active, &passive)?;
        let device = cm_fixture.active.device();
        let queue = ProcessQueue::new(c"ndk_test_quiesce")?;
        // The number of reports to each side by then.
        let heard = Arc::new((Atomic::<u64>::new(0), Atomic::<u64>::new(0)), GFP_KERNEL)?;
        let other_task = {
            let (host, heard) = (device.host.clone(), heard.clone());
            let (active, passive) = (active.clone(), passive.clone());
            OtherContext::new(move || {
                host.quiesce();
                heard.0.store(active.closed.get().into(), Relaxed);
                heard.1.store(passive.closed.get().into(), Relaxed);
            })?
        };
        assert!(other_task.begin(&queue));
        // Long enough for a quiesce that does not wait.
        for _ in 0..3 {
            rcu::synchronize_rcu();
            flush_work(device);
        }
        cm_fixture.passive.qp.fail();
        assert!(other_task.is_done());
        queue.flush();
        kunit_assert_eq!((heard.0.load(Relaxed), heard.1.load(Relaxed)), (4, 1));
        kunit_assert_eq!(device.host.sides(), 0);
        Ok(())
    }

    #[test]
    fn a_connection_that_never_came_up_keeps_nobody_waiting() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let listener_log = cm_fixture.open()?;
        for fails in cases(0..3) {
            let active = ConnectionLog::with_reply_failures(u32::from(fails == 2))?;
            let request = cm_fixture.connect(&active)?;
            match fails {
                0 => cm_fixture.passive.qp.fail(),
                1 => cm_fixture.active.qp.fail(),
                _ => (),
            }
            let accepted = cm_fixture.accept(&listener_log.request()?, &ConnectionLog::new()?);
            kunit_assert_eq!(accepted.is_ok(), fails == 2);
            let host = &cm_fixture.active.device().host;
            assert!(wait_until(|| host.sides() == 0));
            drop(request);
            for end in [&cm_fixture.active, &cm_fixture.passive] {
                end.qp.modify(QpState::Err)?;
                assert!(wait_until(|| end.qp.modify(QpState::Reset).is_ok()));
                end.qp.modify(QpState::Init)?;
            }
        }
        Ok(())
    }

    #[test]
    fn an_end_during_the_set_up_is_reported_after_it() -> Result {
        for passive_ends in cases([true, false]) {
            let (cm_fixture, mut active, mut passive) = (
                ConnectionFixture::new()?,
                ConnectionLog::new()?,
                ConnectionLog::new()?,
            );
            match passive_ends {
                true => passive = ConnectionLog::ending(&cm_fixture.passive.qp)?,
                false => active = ConnectionLog::ending(&cm_fixture.active.qp)?,
            }
            let listener_log = cm_fixture.open()?;
            cm_fixture.connect(&active)?;
            cm_fixture.accept(&listener_log.request()?, &passive)?;
            for log in [&active, &passive] {
                assert!(wait_until(|| log.closed.get() == 1));
                assert!(log.status().is_some_and(|s| s.is_ok()));
            }
            kunit_assert_eq!(active.replies.get(), 1);
        }
        Ok(())
    }

    #[test]
    fn a_passive_queue_pair_that_cannot_connect_is_an_error_to_both() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::new()?,
        );
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&active)?;
        cm_fixture.passive.qp.modify(QpState::Reset)?;
        kunit_assert_eq!(
            cm_fixture.accept(&listener_log.request()?, &passive),
            Err(EINVAL)
        );
        kunit_assert_eq!(active.status(), Some(Err(Status::Refused)));
        flush_work(cm_fixture.active.device());
        kunit_assert_eq!(active.replies.get(), 1);
        kunit_assert_eq!(passive.established.get(), 0);
        kunit_assert_eq!((active.closed.get(), passive.closed.get()), (0, 0));
        Ok(())
    }

    #[test]
    fn an_active_queue_pair_that_has_gone_aborts_the_accept() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::new()?,
            ConnectionLog::new()?,
        );
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&active)?;
        cm_fixture.active.qp.fail();
        kunit_assert_eq!(
            cm_fixture.accept(&listener_log.request()?, &passive),
            Err(ECONNABORTED)
        );
        assert!(active.status().is_some_and(|s| s.is_err()));
        flush_work(cm_fixture.active.device());
        kunit_assert_eq!(active.replies.get(), 1);
        kunit_assert_eq!(passive.established.get(), 0);
        kunit_assert_eq!((active.closed.get(), passive.closed.get()), (0, 0));
        assert!(cm_fixture.passive.qp.state() != QpState::Rts);
        Ok(())
    }

    #[test]
    fn a_connection_that_failed_to_come_up_counts_as_a_failure() -> Result {
        let (cm_fixture, active) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&active)?;
        cm_fixture.active.qp.fail();
        assert!(cm_fixture
            .accept(&listener_log.request()?, &ConnectionLog::new()?)
            .is_err());
        kunit_assert_eq!(cm_fixture.active.counted(Counter::ConnectFailures), 1);
        kunit_assert_eq!(cm_fixture.active.counted(Counter::Connects), 0);
        kunit_assert_eq!(cm_fixture.passive.counted(Counter::Accepts), 0);
        Ok(())
    }

    #[test]
    fn a_wildcard_serves_addresses_of_this_host_and_of_its_device() -> Result {
        for (device, here, asked) in cases([
            (ELSEWHERE, false, 0),
            (ELSEWHERE, true, 1),
            (HERE, false, 1),
        ]) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let listener_log = ListenerLog::new(device, true)?;
            cm_fixture.listen(at(ANY, PORT), &listener_log)?;
            let mut ask = cm_fixture.ask()?;
            ask.remote_is_here = here;
            cm_fixture.submit(&log, ask)?;
            kunit_assert_eq!(listener_log.requests.get(), asked);
            let status = match asked {
                0 => Status::Unreachable,
                _ => Status::Refused,
            };
            kunit_assert_eq!(log.status(), Some(Err(status)));
        }
        Ok(())
    }

    #[test]
    fn a_rejection_that_finds_no_room_is_reported_without_its_data() -> Result {
        let (cm_fixture, log) = (
            ConnectionFixture::new()?,
            ConnectionLog::with_reply_failures(1)?,
        );
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&log)?;
        assert!(listener_log.request()?.reject(b"go away!").is_ok());
        let answer = Answer {
            status: Err(Status::Refused),
            data: ([0; 8], 0),
        };
        kunit_assert_eq!(log.replies.get(), 2);
        kunit_assert_eq!(log.answer(), Some(answer));
        Ok(())
    }

    #[test]
    fn a_side_that_never_hears_that_it_is_connected_is_not() -> Result {
        let (cm_fixture, active, passive) = (
            ConnectionFixture::new()?,
            ConnectionLog::with_reply_failures(1)?,
            ConnectionLog::new()?,
        );
        let listener_log = cm_fixture.open()?;
        cm_fixture.connect(&active)?;
        cm_fixture.accept(&listener_log.request()?, &passive)?;
        kunit_assert_eq!(active.status(), Some(Err(Status::Aborted)));
        kunit_assert_eq!(cm_fixture.active.qp.state(), QpState::Err);
        // The passive side was connected, and is notified of the end.
        assert!(wait_until(|| passive.closed.get() == 1));
        flush_work(cm_fixture.active.device());
        kunit_assert_eq!((active.closed.get(), passive.closed.get()), (0, 1));
        Ok(())
    }

    #[test]
    fn a_listener_hears_of_requests_that_were_turned_away() -> Result {
        let ways: [(Way, u32); 3] = [
            (|_, request| reject(request), 1),
            (
                |cm_fixture, request| cm_fixture.accept(request, &ConnectionLog::new()?),
                0,
            ),
            (
                |_, request| {
                    request.abandon();
                    Ok(())
                },
                0,
            ),
        ];
        for (way, rejected) in cases(ways) {
            let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
            let listener_log = cm_fixture.open()?;
            cm_fixture.connect(&log)?;
            way(&cm_fixture, &listener_log.request()?)?;
            kunit_assert_eq!(listener_log.rejected.get(), rejected);
        }
        let (cm_fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = ListenerLog::new(HERE, true)?;
        cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        cm_fixture.connect(&log)?;
        kunit_assert_eq!(listener_log.rejected.get(), 1);
        Ok(())
    }

    #[test]
    fn what_one_side_posts_before_the_other_is_connected_waits() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let (a, b) = (&cm_fixture.active, &cm_fixture.passive);
        let transport = direct::connect(&a.qp, &b.qp)?;
        a.attach(transport.clone(), 0)?;
        b.receive(1, &[])?;
        a.post(2, SEND, &[])?;
        assert!(a.sends.stays_empty());
        assert!(b.receives.stays_empty());
        b.attach(transport, 1)?;
        a.qp.ring_doorbell();
        assert!(a.sends.next_is(2, Status::Success));
        assert!(b.receives.next_is(1, Status::Success));
        Ok(())
    }
}
