// SPDX-License-Identifier: GPL-2.0

//! Listeners and shared endpoints (LSTN-01 to LSTN-05, SHEP-01 to SHEP-03).

#[kernel::macros::kunit_tests(ndk_ndk_tests_listen)]
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
        kunit::harness::same,
        ndk::{
            connector::Source,
            endpoint::SharedEndpoint,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                completion::{
                    create,
                    made,
                    request,
                    Own,
                    Slot, //
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

    fn endpoint(site: &TestHost, at: SocketAddr) -> Result<Own<SharedEndpoint>> {
        made(|done| site.adapter.create_shared_endpoint(at, done))
    }

    /// What making a shared endpoint gives.
    fn try_endpoint(site: &TestHost, at: SocketAddr) -> Result<NtStatus> {
        let made = create(|done| site.adapter.create_shared_endpoint(at, done))?;
        Ok(made.map_or_else(|status| status, |_| NtStatus::SUCCESS))
    }

    fn shared(endpoint: &Own<SharedEndpoint>) -> Source {
        Source::shared(endpoint)
    }

    /// Returns true if a close is pending, and stays so.
    fn is_open(site: &TestHost, closed: &(Progress, Arc<Slot<()>>)) -> bool {
        site.flush_work();
        matches!(closed.0, Progress::Pending) && closed.1.calls.get() == 0
    }

    #[test]
    fn ndk_lstn_01_an_address_has_one_listener_and_is_one_of_the_device() -> Result {
        let site = TestHost::new()?;
        for ip in BOTH {
            let gate = Gate::new(&site, ip)?;
            let shared = endpoint(&site, any(ip))?;
            for (at, status) in [
                (gate.at, NtStatus::SHARING_VIOLATION),
                (shared.address(), NtStatus::SHARING_VIOLATION),
            ] {
                assert!(same(try_listen(&site, at)?, status));
            }
            // The same port of the other address is another one.
            for other in BOTH.into_iter().filter(|other| *other != ip) {
                let at = SocketAddr::new(other, gate.at.port());
                assert!(same(try_listen(&site, at)?, NtStatus::SUCCESS));
            }
            let (a, b) = (party(&site, 0xA)?, party(&site, 0xB)?);
            let _up = link(&site, &gate, (&a, &b), Source::Address(any(ip)))?;
            assert!(talks(&a, &b)?);
        }
        for ip in FOREIGN {
            let at = SocketAddr::new(ip, 4000);
            assert!(same(try_listen(&site, at)?, NtStatus::INVALID_ADDRESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_lstn_01_port_0_fails_when_every_port_is_in_use() -> Result {
        let site = TestHost::new()?;
        let mut held = all_ports(&site, HERE)?;
        let none = NtStatus::TOO_MANY_ADDRESSES;
        assert!(same(try_listen(&site, here(0))?, none));
        let freed = held.pop().map(|last| last.addr().port());
        let gate = Gate::new(&site, HERE)?;
        assert!(same(Some(gate.at.port()), freed));
        assert!(same(try_listen(&site, here(0))?, none));
        Ok(())
    }

    #[test]
    fn ndk_lstn_01_a_listener_that_failed_may_try_again() -> Result {
        let site = TestHost::new()?;
        let gate = Gate::new(&site, HERE)?;
        let listener = listener(&site)?;
        for (at, status) in [
            (gate.at, NtStatus::SHARING_VIOLATION),
            (here(0), NtStatus::SUCCESS),
            (here(0), NtStatus::INVALID_DEVICE_REQUEST),
        ] {
            assert!(same(request(|done| listener.listen(at, done))?, status));
        }
        Ok(())
    }

    #[test]
    fn ndk_lstn_02_each_request_is_one_event_with_a_fresh_connector() -> Result {
        let site = TestHost::new()?;
        let gate = Gate::new(&site, HERE)?;
        let mut requests = KVec::new();
        for context in 1..=3 {
            let (ours, a) = (connector(&site)?, party(&site, context)?);
            let asked = begin(&ours, &a.qp, Source::Address(here(0)), gate.at)?;
            let theirs = gate.next()?;
            requests.push((ours, theirs, asked, a), GFP_KERNEL)?;
        }
        site.flush_work();
        assert!(same(gate.arrivals.events.get(), 3));
        let mut peers = KVec::new();
        for (_, theirs, asked, _) in &requests {
            let peer = theirs.peer_address();
            assert!(peer.is_ok() && !peers.contains(&peer));
            peers.push(peer, GFP_KERNEL)?;
            assert!(same(asked.calls.get(), 0));
        }
        // The second is closed undecided: its peer alone is turned away.
        let (_, second, asked, _) = requests.get_mut(1).ok_or(EINVAL)?;
        assert!(second.close_and_wait()?);
        assert!(same(asked.wait(), Some(REFUSED)));
        let b = party(&site, 0xB)?;
        let (ours, last, asked, a) = requests.get(2).ok_or(EINVAL)?;
        let accepted = accept(last, &b)?;
        assert!(same(asked.wait(), Some(NtStatus::SUCCESS)));
        assert!(same(complete(ours, a)?, NtStatus::SUCCESS));
        assert!(same(accepted.wait(), Some(NtStatus::SUCCESS)));
        assert!(talks(a, &b)?);
        site.flush_work();
        let first = requests.first().ok_or(EINVAL)?;
        assert!(same(first.2.calls.get(), 0));
        assert!(same(gate.arrivals.events.get(), 3));
        Ok(())
    }

    #[test]
    fn ndk_lstn_03_the_address_tells_the_port_that_was_chosen() -> Result {
        let site = TestHost::new()?;
        for ip in BOTH {
            let gate = Gate::new(&site, ip)?;
            let shared = endpoint(&site, any(ip))?;
            for at in [gate.at, shared.address()] {
                assert!(at.ip() == ip && at.port() >= 49152);
            }
            let other = Gate::new(&site, ip)?;
            let (a, b) = (party(&site, 0xA)?, party(&site, 0xB)?);
            let (_ours, theirs) = link(&site, &gate, (&a, &b), Source::Address(any(ip)))?;
            assert!(same(theirs.local_address(), Ok(gate.at)));
            assert!(same(other.arrivals.events.get(), 0));
        }
        Ok(())
    }

    #[test]
    fn ndk_lstn_03_who_does_not_listen_has_no_address() -> Result {
        let site = TestHost::new()?;
        let gate = Gate::new(&site, HERE)?;
        let listener = listener(&site)?;
        let silent = Err(NtStatus::INVALID_DEVICE_STATE);
        assert!(same(listener.address(), silent));
        let busy = request(|done| listener.listen(gate.at, done))?;
        assert!(same(busy, NtStatus::SHARING_VIOLATION));
        assert!(same(listener.address(), silent));
        Ok(())
    }

    #[test]
    fn ndk_lstn_04_a_paused_listener_is_none_and_keeps_nothing() -> Result {
        let half = Half::asked(PLAIN, HERE)?;
        let (site, gate) = (&half.site, &half.gate);
        let (ours, a) = (connector(site)?, party(site, 0xC)?);
        let source = || Source::Address(here(0));
        gate.listener.pause(true);
        for _ in 0..2 {
            let got = try_connect(&ours, &a.qp, source(), gate.at)?;
            assert!(same(got, REFUSED));
        }
        gate.listener.pause(false);
        site.flush_work();
        assert!(same(gate.arrivals.events.get(), 1));
        let asked = begin(&ours, &a.qp, source(), gate.at)?;
        let theirs = gate.next()?;
        assert!(same(gate.arrivals.events.get(), 2));
        // What came before or between pauses is not touched by them.
        gate.listener.pause(true);
        let accepted = accept(&theirs, &half.b)?;
        assert!(same(asked.wait(), Some(NtStatus::SUCCESS)));
        assert!(same(complete(&ours, &a)?, NtStatus::SUCCESS));
        assert!(same(accepted.wait(), Some(NtStatus::SUCCESS)));
        assert!(half.is_pending(&half.connected) && talks(&a, &half.b)?);
        Ok(())
    }

    #[test]
    fn ndk_lstn_05_accepted_connectors_keep_the_listeners_address() -> Result {
        let mut half = Half::up(PLAIN, HERE)?;
        let at = half.gate.at;
        let other = connector(&half.site)?;
        let c = party(&half.site, 0xC)?;
        let _asked = begin(&other, &c.qp, Source::Address(here(0)), at)?;
        let mut undecided = half.gate.next()?;
        let closing = half.gate.listener.close()?;
        assert!(is_open(&half.site, &closing));
        assert!(same(
            try_listen(&half.site, at)?,
            NtStatus::SHARING_VIOLATION
        ));
        // It keeps the address, but does not listen.
        let (late, d) = (connector(&half.site)?, party(&half.site, 0xD)?);
        let got = try_connect(&late, &d.qp, Source::Address(here(0)), at)?;
        assert!(same(got, REFUSED) && talks(&half.a, &half.b)?);
        assert!(undecided.close_and_wait()?);
        // A connection that is over is not closed yet.
        assert!(same(disconnect(&half.theirs)?, NtStatus::SUCCESS));
        assert!(is_open(&half.site, &closing));
        assert!(same(
            try_listen(&half.site, at)?,
            NtStatus::SHARING_VIOLATION
        ));
        assert!(half.theirs.close_and_wait()?);
        assert!(closing.1.wait().is_some());
        assert!(same(try_listen(&half.site, at)?, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_lstn_05_the_active_connector_keeps_its_address() -> Result {
        let mut half = Half::up(PLAIN, HERE)?;
        let at = half.ours.local_address().map_err(|_| EINVAL)?;
        let busy = NtStatus::SHARING_VIOLATION;
        assert!(same(try_listen(&half.site, at)?, busy));
        assert!(same(disconnect(&half.ours)?, NtStatus::SUCCESS));
        assert!(same(try_listen(&half.site, at)?, busy));
        assert!(half.leave()?);
        assert!(same(try_listen(&half.site, at)?, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_shep_01_one_address_connects_to_many_destinations() -> Result {
        let site = TestHost::new()?;
        for ip in BOTH {
            let from = endpoint(&site, any(ip))?;
            let mut up = KVec::new();
            for context in 0..3 {
                let gate = Gate::new(&site, ip)?;
                let (a, b) = (party(&site, context)?, party(&site, context)?);
                let (ours, theirs) = link(&site, &gate, (&a, &b), shared(&from))?;
                assert!(same(ours.local_address(), Ok(from.address())));
                assert!(same(theirs.peer_address(), Ok(from.address())));
                up.push((ours, theirs, a, b, gate), GFP_KERNEL)?;
            }
            for (_, _, a, b, _) in &up {
                assert!(talks(a, b)? && talks(b, a)?);
            }
        }
        Ok(())
    }

    #[test]
    fn ndk_shep_01_its_address_is_a_free_one_of_the_device() -> Result {
        let site = TestHost::new()?;
        for ip in BOTH {
            let gate = Gate::new(&site, ip)?;
            let first = endpoint(&site, any(ip))?;
            for at in [gate.at, first.address()] {
                assert!(same(try_endpoint(&site, at)?, NtStatus::SHARING_VIOLATION));
            }
        }
        for ip in FOREIGN {
            assert!(same(
                try_endpoint(&site, any(ip))?,
                NtStatus::INVALID_ADDRESS
            ));
        }
        let mut held = all_ports(&site, HERE)?;
        let none = NtStatus::TOO_MANY_ADDRESSES;
        assert!(same(try_endpoint(&site, here(0))?, none));
        held.pop();
        assert!(same(try_endpoint(&site, here(0))?, NtStatus::SUCCESS));
        Ok(())
    }

    #[test]
    fn ndk_shep_01_no_memory_is_no_endpoint() -> Result {
        let (site, at) = (TestHost::new()?, here(50_000));
        for n in 1.. {
            // Where the kernel fails no allocation there is nothing to see.
            let planned = fault::plan(n);
            let status = try_endpoint(&site, at)?;
            site.flush_work();
            if !planned || !fault::planned_struck() {
                assert!(same(status, NtStatus::SUCCESS) && (n > 1 || !planned));
                break;
            }
            assert!(same(status, NtStatus::INSUFFICIENT_RESOURCES));
        }
        Ok(())
    }

    #[test]
    fn ndk_shep_02_a_destination_is_connected_once() -> Result {
        let site = TestHost::new()?;
        let (from, gate) = (endpoint(&site, here(0))?, Gate::new(&site, HERE)?);
        let (a, b) = (party(&site, 0xA)?, party(&site, 0xB)?);
        let (mut ours, _theirs) = link(&site, &gate, (&a, &b), shared(&from))?;
        let (again, c) = (connector(&site)?, party(&site, 0xC)?);
        let exists = NtStatus::ADDRESS_ALREADY_EXISTS;
        let got = try_connect(&again, &c.qp, shared(&from), gate.at)?;
        assert!(same(got, exists));
        site.flush_work();
        assert!(same(gate.arrivals.events.get(), 1) && talks(&a, &b)?);
        // From another address it is no matter.
        let asked = begin(&again, &c.qp, Source::Address(here(0)), gate.at)?;
        assert!(same(gate.next()?.reject(&[]), Ok(())));
        assert!(same(asked.wait(), Some(REFUSED)));
        assert!(ours.close_and_wait()?);
        let asked = begin(&again, &c.qp, shared(&from), gate.at)?;
        assert!(same(gate.next()?.reject(&[]), Ok(())));
        assert!(same(asked.wait(), Some(REFUSED)));
        Ok(())
    }

    #[test]
    fn ndk_shep_03_connectors_keep_the_shared_endpoint() -> Result {
        let site = TestHost::new()?;
        let mut from = endpoint(&site, here(0))?;
        let at = from.address();
        let gates = [Gate::new(&site, HERE)?, Gate::new(&site, HERE)?];
        let parties = [
            party(&site, 1)?,
            party(&site, 2)?,
            party(&site, 3)?,
            party(&site, 4)?,
        ];
        let [a, b, c, d] = &parties;
        let (mut first, _first) = link(&site, &gates[0], (a, b), shared(&from))?;
        let (mut second, _second) = link(&site, &gates[1], (c, d), shared(&from))?;
        let closing = from.close()?;
        assert!(is_open(&site, &closing) && talks(a, b)?);
        assert!(same(try_listen(&site, at)?, NtStatus::SHARING_VIOLATION));
        assert!(first.close_and_wait()?);
        assert!(is_open(&site, &closing) && talks(c, d)?);
        assert!(same(disconnect(&second)?, NtStatus::SUCCESS));
        assert!(is_open(&site, &closing));
        assert!(same(try_endpoint(&site, at)?, NtStatus::SHARING_VIOLATION));
        assert!(second.close_and_wait()?);
        assert!(closing.1.wait().is_some());
        assert!(same(try_listen(&site, at)?, NtStatus::SUCCESS));
        // Nobody used it: it goes at once.
        let mut unused = endpoint(&site, at)?;
        assert!(matches!(unused.close()?.0, Progress::Done));
        assert!(same(try_endpoint(&site, at)?, NtStatus::SUCCESS));
        Ok(())
    }
}
