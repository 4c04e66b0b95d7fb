// SPDX-License-Identifier: GPL-2.0

//! Listeners and shared endpoints (LSTN-01 to LSTN-05, SHEP-01 to SHEP-03).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_listen)]
mod tests {
    use core::net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr, //
    };

    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        kunit::harness::cases,
        ndk::{
            call::done,
            connector::Source,
            endpoint::SharedEndpoint,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                completion::{
                    create,
                    log_status,
                    made,
                    request,
                    AutoClose,
                    CallbackValue, //
                },
                connect_steps::*,
                host::{
                    here,
                    HostAttr,
                    TestHost,
                    HERE, //
                }, //
            }, //
        },
        sys::fault, //
    };

    const PLAIN: &HostAttr = &HostAttr::PLAIN;

    /// Addresses that the device does not have.
    const FOREIGN: [IpAddr; 4] = [
        IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7)),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];

    fn endpoint(test_host: &TestHost, at: SocketAddr) -> Result<AutoClose<SharedEndpoint>> {
        made(|done| test_host.adapter.create_shared_endpoint(at, done))
    }

    /// Creates a shared endpoint; returns the status.
    fn try_endpoint(test_host: &TestHost, at: SocketAddr) -> Result<NtStatus> {
        let made = create(|done| test_host.adapter.create_shared_endpoint(at, done))?;
        Ok(made.map_or_else(|status| status, |_| NtStatus::SUCCESS))
    }

    fn shared(endpoint: &AutoClose<SharedEndpoint>) -> Source {
        Source::shared(endpoint)
    }

    /// Returns true if a close still pends after the pending work has run.
    fn is_open(test_host: &TestHost, closed: &(Progress, Arc<CallbackValue<()>>)) -> bool {
        test_host.flush_work();
        matches!(closed.0, Progress::Pending) && closed.1.calls.get() == 0
    }

    #[test]
    fn ndk_lstn_01_an_address_has_one_listener_and_is_one_of_the_device() -> Result {
        let test_host = TestHost::new()?;
        for ip in cases(BOTH) {
            let test_listener = TestListener::new(&test_host, ip)?;
            let shared = endpoint(&test_host, any(ip))?;
            for (at, status) in cases([
                (test_listener.at, NtStatus::SHARING_VIOLATION),
                (shared.address(), NtStatus::SHARING_VIOLATION),
            ]) {
                kunit_assert_eq!(try_listen(&test_host, at)?, status);
            }
            // The same port is free at the other address.
            for other in cases(BOTH.into_iter().filter(|other| *other != ip)) {
                let at = SocketAddr::new(other, test_listener.at.port());
                kunit_assert_eq!(try_listen(&test_host, at)?, NtStatus::SUCCESS);
            }
            let (a, b) = (test_side(&test_host, 0xA)?, test_side(&test_host, 0xB)?);
            let _up = link(
                &test_host,
                &test_listener,
                (&a, &b),
                Source::Address(any(ip)),
            )?;
            assert!(message_passes(&a, &b)?);
        }
        for ip in cases(FOREIGN) {
            let at = SocketAddr::new(ip, 4000);
            kunit_assert_eq!(try_listen(&test_host, at)?, NtStatus::INVALID_ADDRESS);
        }
        Ok(())
    }

    #[test]
    fn ndk_lstn_01_port_0_fails_when_every_port_is_in_use() -> Result {
        let test_host = TestHost::new()?;
        let mut held = all_ports(&test_host, HERE)?;
        let none = NtStatus::TOO_MANY_ADDRESSES;
        kunit_assert_eq!(try_listen(&test_host, here(0))?, none);
        let freed = held.pop().map(|last| last.addr().port());
        let test_listener = TestListener::new(&test_host, HERE)?;
        kunit_assert_eq!(Some(test_listener.at.port()), freed);
        kunit_assert_eq!(try_listen(&test_host, here(0))?, none);
        Ok(())
    }

    #[test]
    fn ndk_lstn_01_a_listener_that_failed_may_try_again() -> Result {
        let test_host = TestHost::new()?;
        let test_listener = TestListener::new(&test_host, HERE)?;
        let listener = listener(&test_host)?;
        for (at, status) in cases([
            (test_listener.at, NtStatus::SHARING_VIOLATION),
            (here(0), NtStatus::SUCCESS),
            (here(0), NtStatus::INVALID_DEVICE_REQUEST),
        ]) {
            kunit_assert_eq!(request(|done| listener.listen(at, done))?, status);
        }
        Ok(())
    }

    #[test]
    fn ndk_lstn_02_each_request_is_one_event_with_a_fresh_connector() -> Result {
        let test_host = TestHost::new()?;
        let test_listener = TestListener::new(&test_host, HERE)?;
        let mut requests = KVec::new();
        for context in cases(1..=3) {
            let (ours, a) = (connector(&test_host)?, test_side(&test_host, context)?);
            let asked = begin(&ours, &a.qp, Source::Address(here(0)), test_listener.at)?;
            let theirs = test_listener.next()?;
            requests.push((ours, theirs, asked, a), GFP_KERNEL)?;
        }
        test_host.flush_work();
        kunit_assert_eq!(test_listener.arrivals.events.get(), 3);
        let mut peers = KVec::new();
        for (_, theirs, asked, _) in &requests {
            let peer = theirs.peer_address();
            assert!(peer.is_ok());
            assert!(!peers.contains(&peer));
            peers.push(peer, GFP_KERNEL)?;
            kunit_assert_eq!(asked.calls.get(), 0);
        }
        // The second connector is closed undecided: only its peer is refused.
        let (_, second, asked, _) = requests.get_mut(1).ok_or(EINVAL)?;
        assert!(second.close_and_wait()?);
        kunit_assert_eq!(asked.wait(), Some(REFUSED));
        let b = test_side(&test_host, 0xB)?;
        let (ours, last, asked, a) = requests.get(2).ok_or(EINVAL)?;
        let accepted = accept(last, &b)?;
        kunit_assert_eq!(asked.wait(), Some(NtStatus::SUCCESS));
        kunit_assert_eq!(complete(ours, a)?, NtStatus::SUCCESS);
        kunit_assert_eq!(accepted.wait(), Some(NtStatus::SUCCESS));
        assert!(message_passes(a, &b)?);
        test_host.flush_work();
        let first = requests.first().ok_or(EINVAL)?;
        kunit_assert_eq!(first.2.calls.get(), 0);
        kunit_assert_eq!(test_listener.arrivals.events.get(), 3);
        Ok(())
    }

    #[test]
    fn ndk_lstn_03_the_address_has_the_port_that_was_chosen() -> Result {
        let test_host = TestHost::new()?;
        for ip in cases(BOTH) {
            let test_listener = TestListener::new(&test_host, ip)?;
            let shared = endpoint(&test_host, any(ip))?;
            for at in cases([test_listener.at, shared.address()]) {
                kunit_assert_eq!(at.ip(), ip);
                assert!(at.port() >= 49152);
            }
            let other = TestListener::new(&test_host, ip)?;
            let (a, b) = (test_side(&test_host, 0xA)?, test_side(&test_host, 0xB)?);
            let (_ours, theirs) = link(
                &test_host,
                &test_listener,
                (&a, &b),
                Source::Address(any(ip)),
            )?;
            kunit_assert_eq!(theirs.local_address(), Ok(test_listener.at));
            kunit_assert_eq!(other.arrivals.events.get(), 0);
        }
        Ok(())
    }

    #[test]
    fn ndk_lstn_03_who_does_not_listen_has_no_address() -> Result {
        let test_host = TestHost::new()?;
        let test_listener = TestListener::new(&test_host, HERE)?;
        let listener = listener(&test_host)?;
        let silent = Err(NtStatus::INVALID_DEVICE_STATE);
        kunit_assert_eq!(listener.address(), silent);
        let busy = request(|done| listener.listen(test_listener.at, done))?;
        kunit_assert_eq!(busy, NtStatus::SHARING_VIOLATION);
        kunit_assert_eq!(listener.address(), silent);
        Ok(())
    }

    #[test]
    fn ndk_lstn_04_a_paused_listener_is_none_and_keeps_nothing() -> Result {
        let half = Half::asked(PLAIN, HERE)?;
        let (test_host, test_listener) = (&half.test_host, &half.test_listener);
        let (ours, a) = (connector(test_host)?, test_side(test_host, 0xC)?);
        let source = || Source::Address(here(0));
        test_listener.listener.pause(true);
        for _ in 0..2 {
            let got = try_connect(&ours, &a.qp, source(), test_listener.at)?;
            kunit_assert_eq!(got, REFUSED);
        }
        test_listener.listener.pause(false);
        test_host.flush_work();
        kunit_assert_eq!(test_listener.arrivals.events.get(), 1);
        let asked = begin(&ours, &a.qp, source(), test_listener.at)?;
        let theirs = test_listener.next()?;
        kunit_assert_eq!(test_listener.arrivals.events.get(), 2);
        // Pauses do not affect the requests that came before or between them.
        test_listener.listener.pause(true);
        let accepted = accept(&theirs, &half.b)?;
        kunit_assert_eq!(asked.wait(), Some(NtStatus::SUCCESS));
        kunit_assert_eq!(complete(&ours, &a)?, NtStatus::SUCCESS);
        kunit_assert_eq!(accepted.wait(), Some(NtStatus::SUCCESS));
        assert!(half.is_pending(&half.connected));
        assert!(message_passes(&a, &half.b)?);
        Ok(())
    }

    #[test]
    fn ndk_lstn_05_accepted_connectors_keep_the_listeners_address() -> Result {
        let mut half = Half::up(PLAIN, HERE)?;
        let at = half.test_listener.at;
        let other = connector(&half.test_host)?;
        let c = test_side(&half.test_host, 0xC)?;
        let _asked = begin(&other, &c.qp, Source::Address(here(0)), at)?;
        let mut undecided = half.test_listener.next()?;
        let closing = half.test_listener.listener.close()?;
        assert!(is_open(&half.test_host, &closing));
        kunit_assert_eq!(
            try_listen(&half.test_host, at)?,
            NtStatus::SHARING_VIOLATION
        );
        // The closed listener keeps the address, but does not listen.
        let (late, d) = (
            connector(&half.test_host)?,
            test_side(&half.test_host, 0xD)?,
        );
        let got = try_connect(&late, &d.qp, Source::Address(here(0)), at)?;
        kunit_assert_eq!(got, REFUSED);
        assert!(message_passes(&half.a, &half.b)?);
        assert!(undecided.close_and_wait()?);
        // A disconnected connector is not closed yet.
        kunit_assert_eq!(disconnect(&half.theirs)?, NtStatus::SUCCESS);
        assert!(is_open(&half.test_host, &closing));
        kunit_assert_eq!(
            try_listen(&half.test_host, at)?,
            NtStatus::SHARING_VIOLATION
        );
        assert!(half.theirs.close_and_wait()?);
        assert!(closing.1.wait().is_some());
        kunit_assert_eq!(try_listen(&half.test_host, at)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_lstn_05_the_active_connector_keeps_its_address() -> Result {
        let mut half = Half::up(PLAIN, HERE)?;
        let at = half.ours.local_address().map_err(|_| EINVAL)?;
        let busy = NtStatus::SHARING_VIOLATION;
        kunit_assert_eq!(try_listen(&half.test_host, at)?, busy);
        kunit_assert_eq!(disconnect(&half.ours)?, NtStatus::SUCCESS);
        kunit_assert_eq!(try_listen(&half.test_host, at)?, busy);
        assert!(half.leave()?);
        kunit_assert_eq!(try_listen(&half.test_host, at)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_shep_01_one_address_connects_to_many_destinations() -> Result {
        let test_host = TestHost::new()?;
        for ip in cases(BOTH) {
            let from = endpoint(&test_host, any(ip))?;
            let mut up = KVec::new();
            for context in cases(0..3) {
                let test_listener = TestListener::new(&test_host, ip)?;
                let (a, b) = (
                    test_side(&test_host, context)?,
                    test_side(&test_host, context)?,
                );
                let (ours, theirs) = link(&test_host, &test_listener, (&a, &b), shared(&from))?;
                kunit_assert_eq!(ours.local_address(), Ok(from.address()));
                kunit_assert_eq!(theirs.peer_address(), Ok(from.address()));
                up.push((ours, theirs, a, b, test_listener), GFP_KERNEL)?;
            }
            for (_, _, a, b, _) in &up {
                assert!(message_passes(a, b)?);
                assert!(message_passes(b, a)?);
            }
        }
        Ok(())
    }

    #[test]
    fn ndk_shep_01_its_address_is_a_free_one_of_the_device() -> Result {
        let test_host = TestHost::new()?;
        for ip in cases(BOTH) {
            let test_listener = TestListener::new(&test_host, ip)?;
            let first = endpoint(&test_host, any(ip))?;
            for at in cases([test_listener.at, first.address()]) {
                kunit_assert_eq!(try_endpoint(&test_host, at)?, NtStatus::SHARING_VIOLATION);
            }
        }
        for ip in cases(FOREIGN) {
            kunit_assert_eq!(
                try_endpoint(&test_host, any(ip))?,
                NtStatus::INVALID_ADDRESS
            );
        }
        let mut held = all_ports(&test_host, HERE)?;
        let none = NtStatus::TOO_MANY_ADDRESSES;
        kunit_assert_eq!(try_endpoint(&test_host, here(0))?, none);
        held.pop();
        kunit_assert_eq!(try_endpoint(&test_host, here(0))?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_shep_01_no_memory_is_no_endpoint() -> Result {
        let (test_host, at) = (TestHost::new()?, here(50_000));
        for n in cases(1..) {
            // Without faults the first attempt succeeds.
            let planned = fault::plan(n);
            let status = try_endpoint(&test_host, at)?;
            test_host.flush_work();
            if !planned || !fault::planned_struck() {
                kunit_assert_eq!(status, NtStatus::SUCCESS);
                assert!(n > 1 || !planned);
                break;
            }
            kunit_assert_eq!(status, NtStatus::INSUFFICIENT_RESOURCES);
        }
        Ok(())
    }

    #[test]
    fn ndk_shep_02_a_destination_is_connected_once() -> Result {
        let test_host = TestHost::new()?;
        let (from, test_listener) = (
            endpoint(&test_host, here(0))?,
            TestListener::new(&test_host, HERE)?,
        );
        let (a, b) = (test_side(&test_host, 0xA)?, test_side(&test_host, 0xB)?);
        let (mut ours, _theirs) = link(&test_host, &test_listener, (&a, &b), shared(&from))?;
        let (again, c) = (connector(&test_host)?, test_side(&test_host, 0xC)?);
        let exists = NtStatus::ADDRESS_ALREADY_EXISTS;
        let got = try_connect(&again, &c.qp, shared(&from), test_listener.at)?;
        kunit_assert_eq!(got, exists);
        test_host.flush_work();
        kunit_assert_eq!(test_listener.arrivals.events.get(), 1);
        assert!(message_passes(&a, &b)?);
        // Another source address may connect there.
        let asked = begin(&again, &c.qp, Source::Address(here(0)), test_listener.at)?;
        kunit_assert_eq!(test_listener.next()?.reject(&[]), Ok(()));
        kunit_assert_eq!(asked.wait(), Some(REFUSED));
        assert!(ours.close_and_wait()?);
        let asked = begin(&again, &c.qp, shared(&from), test_listener.at)?;
        kunit_assert_eq!(test_listener.next()?.reject(&[]), Ok(()));
        kunit_assert_eq!(asked.wait(), Some(REFUSED));
        Ok(())
    }

    #[test]
    fn ndk_shep_02_a_destination_is_free_when_the_close_is_reported() -> Result {
        let test_host = TestHost::new()?;
        let (from, test_listener) = (
            endpoint(&test_host, here(0))?,
            TestListener::new(&test_host, HERE)?,
        );
        for source in [shared(&from), Source::Address(here(0))] {
            let (a, b) = (test_side(&test_host, 0xA)?, test_side(&test_host, 0xB)?);
            let (mut ours, _theirs) = link(&test_host, &test_listener, (&a, &b), source)?;
            let at = ours.local_address().map_err(log_status)?;
            let (connector, slot) = (ours.give_up()?, CallbackValue::new()?);
            assert!(connector.has_route());
            let (watched, busy) = (connector.clone(), slot.clone());
            let report = move |()| busy.put(watched.has_route());
            // This use keeps the close pending, so that its end is reported.
            let object_use = connector.new_use();
            let progress = connector.close(done(GFP_KERNEL, report).map_err(log_status)?);
            assert!(matches!(progress, Progress::Pending));
            drop(object_use);
            kunit_assert_eq!(slot.wait(), Some(false));
            // The endpoint keeps its address; a connector's own address is free at once.
            let status = match at == from.address() {
                true => NtStatus::SHARING_VIOLATION,
                false => NtStatus::SUCCESS,
            };
            kunit_assert_eq!(try_listen(&test_host, at)?, status);
        }
        Ok(())
    }

    #[test]
    fn ndk_shep_03_connectors_keep_the_shared_endpoint() -> Result {
        let test_host = TestHost::new()?;
        let mut from = endpoint(&test_host, here(0))?;
        let at = from.address();
        let test_listeners = [
            TestListener::new(&test_host, HERE)?,
            TestListener::new(&test_host, HERE)?,
        ];
        let test_sides = [
            test_side(&test_host, 1)?,
            test_side(&test_host, 2)?,
            test_side(&test_host, 3)?,
            test_side(&test_host, 4)?,
        ];
        let [a, b, c, d] = &test_sides;
        let (mut first, _first) = link(&test_host, &test_listeners[0], (a, b), shared(&from))?;
        let (mut second, _second) = link(&test_host, &test_listeners[1], (c, d), shared(&from))?;
        let closing = from.close()?;
        assert!(is_open(&test_host, &closing));
        assert!(message_passes(a, b)?);
        kunit_assert_eq!(try_listen(&test_host, at)?, NtStatus::SHARING_VIOLATION);
        assert!(first.close_and_wait()?);
        assert!(is_open(&test_host, &closing));
        assert!(message_passes(c, d)?);
        kunit_assert_eq!(disconnect(&second)?, NtStatus::SUCCESS);
        assert!(is_open(&test_host, &closing));
        kunit_assert_eq!(try_endpoint(&test_host, at)?, NtStatus::SHARING_VIOLATION);
        assert!(second.close_and_wait()?);
        assert!(closing.1.wait().is_some());
        kunit_assert_eq!(try_listen(&test_host, at)?, NtStatus::SUCCESS);
        // An unused endpoint closes at once.
        let mut unused = endpoint(&test_host, at)?;
        assert!(matches!(unused.close()?.0, Progress::Done));
        kunit_assert_eq!(try_endpoint(&test_host, at)?, NtStatus::SUCCESS);
        Ok(())
    }
}
