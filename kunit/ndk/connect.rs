// SPDX-License-Identifier: GPL-2.0

//! Connect, Accept, CompleteConnect, Reject (CONN-01 to CONN-11, CONN-13, CONN-18).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_connect)]
mod tests {
    use core::net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr, //
    };

    use kernel::prelude::*;

    use crate::{
        engine::transport::ReadLimits,
        kunit::harness::{
            cases,
            same,
            sleep, //
        },
        ndk::{
            adapter::Limits,
            connector::{
                Connector,
                Source, //
            },
            status::NtStatus,
            tests::{
                completion::{
                    made,
                    request,
                    CallbackValue, //
                },
                connect_steps::*,
                host::{
                    here,
                    HostAttr,
                    TestHost,
                    HERE,
                    SIZES, //
                },
                pair::{
                    Pair,
                    READS, //
                }, //
            }, //
        },
        sys::{
            clock::StoppedClock,
            fault,
            unaligned::Room, //
        }, //
    };

    const PLAIN: &HostAttr = &HostAttr::PLAIN;

    /// An address that this host does not have.
    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));

    fn from(at: SocketAddr) -> Source {
        Source::Address(at)
    }

    /// The limits and the peer's private data.
    fn data(connector: &Connector) -> Result<((u32, u32), KVec<u8>), NtStatus> {
        let mut out = [0; 64];
        let got = connector.connection_data(Room::of(&mut out))?;
        let copy = bytes(out.get(..got.len).unwrap_or_default());
        let copy = copy.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
        Ok(((got.limits.inbound, got.limits.outbound), copy))
    }

    /// Returns true if the connection data of `connector` are these limits and this private data.
    fn says(connector: &Connector, limits: (u32, u32), words: &[u8]) -> bool {
        match data(connector) {
            Ok((got, said)) => same(got, limits) && said.get(..) == Some(words),
            Err(status) => same(Err(status), Ok(())),
        }
    }

    #[test]
    fn ndk_conn_01_the_active_side_completes_what_the_passive_side_accepts() -> Result {
        for ip in cases(BOTH) {
            let mut half = Half::asked(PLAIN, ip)?;
            assert!(half.is_pending(&half.connected));
            assert!(says(&half.theirs, (8, 8), b"hello"));
            half.accept()?;
            kunit_assert_eq!(half.connected.wait(), Some(NtStatus::SUCCESS));
            // An accepted request is not a connection yet.
            assert!(half.is_pending(&half.accepted));
            assert!(half.is_nothing());
            assert!(says(&half.ours, (8, 8), b"welcome"));
            kunit_assert_eq!(half.complete()?, NtStatus::SUCCESS);
            kunit_assert_eq!(half.accepted.wait(), Some(NtStatus::SUCCESS));
            assert!(message_passes(&half.a, &half.b)?);
            assert!(message_passes(&half.b, &half.a)?);
            half.test_host.flush_work();
            kunit_assert_eq!(half.connected.calls.get(), 1);
            kunit_assert_eq!(half.accepted.calls.get(), 1);
        }
        Ok(())
    }

    #[test]
    fn ndk_conn_01_either_side_may_reject_after_it_has_looked() -> Result {
        let half = Half::asked(PLAIN, HERE)?;
        assert!(says(&half.theirs, (8, 8), b"hello"));
        kunit_assert_eq!(half.theirs.reject(b"no"), Ok(()));
        kunit_assert_eq!(half.connected.wait(), Some(REFUSED));
        assert!(half.is_nothing());
        let half = Half::answered(PLAIN, HERE)?;
        assert!(says(&half.ours, (8, 8), b"welcome"));
        kunit_assert_eq!(half.ours.reject(b"no"), Ok(()));
        let aborted = Some(NtStatus::CONNECTION_ABORTED);
        kunit_assert_eq!(half.accepted.wait(), aborted);
        assert!(half.is_nothing());
        Ok(())
    }

    #[test]
    fn ndk_conn_02_a_failed_connect_may_be_tried_again() -> Result {
        let clock = StoppedClock::new();
        let test_host = TestHost::with(&patience(3_000, 60_000))?;
        let (a, b) = (test_side(&test_host, 0xA)?, test_side(&test_host, 0xB)?);
        let test_listener = TestListener::new(&test_host, HERE)?;
        let ours = connector(&test_host)?;
        let v6 = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), test_listener.at.port());
        let host = SocketAddr::new(ELSEWHERE, 4000);
        for (to, status) in cases([
            (v6, NtStatus::NETWORK_UNREACHABLE),
            (host, UNREACHABLE),
            (here(4000), REFUSED),
        ]) {
            kunit_assert_eq!(try_connect(&ours, &a.qp, from(here(0)), to)?, status);
        }
        // First no answer in time, then a reject.
        let asked = begin(&ours, &a.qp, from(here(0)), test_listener.at)?;
        let late = test_listener.next()?;
        clock.pass(3_000);
        kunit_assert_eq!(asked.wait(), Some(NtStatus::IO_TIMEOUT));
        let asked = begin(&ours, &a.qp, from(here(0)), test_listener.at)?;
        let theirs = test_listener.next()?;
        kunit_assert_eq!(theirs.reject(&[]), Ok(()));
        kunit_assert_eq!(asked.wait(), Some(REFUSED));
        kunit_assert_eq!(complete(&ours, &a)?, NtStatus::CONNECTION_INVALID);
        drop((late, theirs));
        // The same connector and queue pair connect at last.
        let asked = begin(&ours, &a.qp, from(here(0)), test_listener.at)?;
        let theirs = test_listener.next()?;
        let accepted = accept(&theirs, &b)?;
        kunit_assert_eq!(asked.wait(), Some(NtStatus::SUCCESS));
        kunit_assert_eq!(complete(&ours, &a)?, NtStatus::SUCCESS);
        kunit_assert_eq!(accepted.wait(), Some(NtStatus::SUCCESS));
        assert!(message_passes(&a, &b)?);
        kunit_assert_eq!(asked.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_conn_02_a_connect_without_memory_may_be_tried_again() -> Result {
        let half = Half::asked(PLAIN, HERE)?;
        let (ours, c) = (
            connector(&half.test_host)?,
            test_side(&half.test_host, 0xC)?,
        );
        for n in cases(1..) {
            let planned = fault::plan(n);
            let asked = begin(&ours, &c.qp, from(here(0)), half.test_listener.at)?;
            half.test_host.flush_work();
            if !planned || !fault::planned_struck() {
                assert!(n > 1 || !planned);
                kunit_assert_eq!(half.test_listener.next()?.reject(&[]), Ok(()));
                kunit_assert_eq!(asked.wait(), Some(REFUSED));
                break;
            }
            // Refused, if the listener had no memory for the request.
            let status = asked.wait();
            assert!(status == Some(NtStatus::INSUFFICIENT_RESOURCES) || status == Some(REFUSED));
        }
        kunit_assert_eq!(half.test_listener.arrivals.events.get(), 2);
        Ok(())
    }

    #[test]
    fn ndk_conn_03_three_reasons_why_a_source_cannot_be_used() -> Result {
        for ip in cases(BOTH) {
            let half = Half::asked(PLAIN, ip)?;
            let other = TestListener::new(&half.test_host, ip)?;
            let shared = made(|d| half.test_host.adapter.create_shared_endpoint(any(ip), d))?;
            let c = test_side(&half.test_host, 0xC)?;
            let ours = connector(&half.test_host)?;
            let used = half.theirs.peer_address();
            assert!(used.is_ok());
            let used = used.unwrap_or(any(ip));
            let unspecified = match ip {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            };
            for (source, to, status) in cases([
                // Used by a listener, by a shared endpoint, by a connection to another address.
                (other.at, half.test_listener.at, NtStatus::SHARING_VIOLATION),
                (shared.address(), other.at, NtStatus::SHARING_VIOLATION),
                (used, other.at, NtStatus::SHARING_VIOLATION),
                (
                    used,
                    half.test_listener.at,
                    NtStatus::ADDRESS_ALREADY_EXISTS,
                ),
                (
                    any(ELSEWHERE),
                    half.test_listener.at,
                    NtStatus::INVALID_ADDRESS,
                ),
                (
                    any(unspecified),
                    half.test_listener.at,
                    NtStatus::INVALID_ADDRESS,
                ),
            ]) {
                let got = try_connect(&ours, &c.qp, from(source), to)?;
                kunit_assert_eq!(got, status);
            }
            half.test_host.flush_work();
            kunit_assert_eq!(half.test_listener.arrivals.events.get(), 1);
            kunit_assert_eq!(other.arrivals.events.get(), 0);
            let asked = begin(&ours, &c.qp, from(any(ip)), other.at)?;
            kunit_assert_eq!(other.next()?.reject(&[]), Ok(()));
            kunit_assert_eq!(asked.wait(), Some(REFUSED));
        }
        Ok(())
    }

    #[test]
    fn ndk_conn_04_port_0_takes_one_of_the_dynamic_ports_until_none_is_left() -> Result {
        let half = Half::asked(PLAIN, HERE)?;
        let port = half.theirs.peer_address().map_or(0, |at| at.port());
        assert!(port >= 49152);
        let mut held = all_ports(&half.test_host, HERE)?;
        // All ports but that of the listener and that of the connector.
        kunit_assert_eq!(held.len(), 16384 - 2);
        let (ours, c) = (
            connector(&half.test_host)?,
            test_side(&half.test_host, 0xC)?,
        );
        let none = try_connect(&ours, &c.qp, from(here(0)), half.test_listener.at)?;
        kunit_assert_eq!(none, NtStatus::TOO_MANY_ADDRESSES);
        let free = held.pop().ok_or(EINVAL)?.addr().port();
        let asked = begin(&ours, &c.qp, from(here(0)), half.test_listener.at)?;
        let theirs = half.test_listener.next()?;
        kunit_assert_eq!(theirs.peer_address().map(|at| at.port()), Ok(free));
        assert!(half.is_pending(&asked));
        Ok(())
    }

    /// Inbound and outbound limit, on the active and on the passive side.
    type Effective = ((u32, u32), (u32, u32));

    /// Connects with the limits that each side asks for; returns the pair and the effective limits.
    fn limits(most: u32, active: ReadLimits, passive: ReadLimits) -> Result<(Pair, Effective)> {
        let attr = HostAttr {
            limits: Limits {
                reads: most,
                ..Limits::FULL
            },
            ..HostAttr::PLAIN
        };
        let mut pair = Pair::unconnected(&attr, SIZES, SIZES)?;
        pair.connect(active, passive)?;
        let mut got = [(0, 0); 2];
        for (place, test_side) in got.iter_mut().zip([&pair.a, &pair.b]) {
            let data = test_side.connector()?.connection_data(Room::of(&mut []));
            *place = data.map_or((99, 99), |d| (d.limits.inbound, d.limits.outbound));
        }
        Ok((pair, (got[0], got[1])))
    }

    const fn reads(inbound: u32, outbound: u32) -> ReadLimits {
        ReadLimits { inbound, outbound }
    }

    #[test]
    fn ndk_conn_05_a_limit_is_the_least_of_asked_able_and_peers() -> Result {
        for (active, passive, on_active, on_passive) in cases([
            (reads(3, 2), reads(1, 4), (3, 1), (1, 3)),
            (reads(1, 4), reads(3, 2), (1, 3), (3, 1)),
            // Silently capped to the limit of the adapter.
            (reads(9, 77), reads(u32::MAX, 6), (4, 4), (4, 4)),
            (reads(0, 9), reads(2, 9), (0, 2), (2, 0)),
        ]) {
            let (_pair, (a, b)) = limits(4, active, passive)?;
            kunit_assert_eq!((a, b), (on_active, on_passive));
        }
        Ok(())
    }

    #[test]
    fn ndk_conn_05_0_forbids_reads_that_way_only() -> Result {
        let (pair, (a, b)) = limits(8, reads(2, 0), reads(2, 2))?;
        kunit_assert_eq!((a, b), ((2, 0), (0, 2)));
        let mut ours = pair.a.buffer(4096, 7)?;
        let theirs = pair.b.buffer(4096, 7)?;
        ours.fill(3);
        let read = pair
            .b
            .qp
            .read(1, [theirs.sge(0, 64)?].into_iter(), ours.remote(0)?, 0);
        kunit_assert_eq!(read, Ok(()));
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        assert!(theirs.has(3, 0, 64));
        let read = pair
            .a
            .qp
            .read(2, [ours.sge(0, 64)?].into_iter(), theirs.remote(64)?, 0);
        if read.is_ok() {
            assert!(pair.a.requests.next()?.status != NtStatus::SUCCESS);
        }
        assert!(ours.has(3, 0, 64));
        Ok(())
    }

    #[test]
    fn ndk_conn_06_private_data_that_is_too_long_is_refused() -> Result {
        let attr = HostAttr {
            limits: Limits {
                private_data: 40,
                ..Limits::FULL
            },
            ..HostAttr::PLAIN
        };
        let test_host = TestHost::with(&attr)?;
        let test_listener = TestListener::new(&test_host, HERE)?;
        let (ours, a, b) = (
            connector(&test_host)?,
            test_side(&test_host, 0xA)?,
            test_side(&test_host, 0xB)?,
        );
        let too_long = Some(NtStatus::INVALID_BUFFER_SIZE);
        let slot = CallbackValue::new()?;
        let (most, more) = ([7; 40], [7; 41]);
        let way = || (from(here(0)), test_listener.at);
        let refused = ours.connect(&a.qp, way(), READS, bytes(&more)?, slot.callback()?);
        kunit_assert_eq!(refused.err(), too_long);
        let asking = ours.connect(&a.qp, way(), READS, bytes(&most)?, slot.callback()?);
        assert!(asking.is_ok());
        let theirs = test_listener.next()?;
        assert!(says(&theirs, (8, 8), &most));
        kunit_assert_eq!(theirs.reject(&more).err(), too_long);
        let answer = CallbackValue::new()?;
        let refused = theirs.accept(&b.qp, READS, bytes(&more)?, None, answer.callback()?);
        kunit_assert_eq!(refused.err(), too_long);
        // The refused calls have not decided the request.
        test_host.flush_work();
        kunit_assert_eq!(slot.calls.get(), 0);
        kunit_assert_eq!(answer.calls.get(), 0);
        let accepting = theirs.accept(&b.qp, READS, bytes(&most)?, None, answer.callback()?);
        assert!(accepting.is_ok());
        kunit_assert_eq!(slot.wait(), Some(NtStatus::SUCCESS));
        assert!(says(&ours, (8, 8), &most));
        kunit_assert_eq!(ours.reject(&more).err(), too_long);
        kunit_assert_eq!(complete(&ours, &a)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_conn_07_a_queue_pair_that_is_connected_is_not_connected_again() -> Result {
        let half = Half::up(PLAIN, HERE)?;
        let active = NtStatus::CONNECTION_ACTIVE;
        let ours = connector(&half.test_host)?;
        for with in [&ours, &half.ours] {
            let got = try_connect(with, &half.a.qp, from(here(0)), half.test_listener.at)?;
            kunit_assert_eq!(got, active);
        }
        let c = test_side(&half.test_host, 0xC)?;
        let asked = begin(&ours, &c.qp, from(here(0)), half.test_listener.at)?;
        let theirs = half.test_listener.next()?;
        let mut got = request(|done| theirs.accept(&half.b.qp, READS, KVec::new(), None, done))?;
        kunit_assert_eq!(got, active);
        assert!(half.is_pending(&asked));
        assert!(message_passes(&half.a, &half.b)?);
        // The request still waits for another queue pair.
        let d = test_side(&half.test_host, 0xD)?;
        let accepted = accept(&theirs, &d)?;
        kunit_assert_eq!(asked.wait(), Some(NtStatus::SUCCESS));
        got = complete(&ours, &c)?;
        kunit_assert_eq!(got, NtStatus::SUCCESS);
        kunit_assert_eq!(accepted.wait(), Some(NtStatus::SUCCESS));
        assert!(message_passes(&c, &d)?);
        Ok(())
    }

    #[test]
    fn ndk_conn_08_only_a_connect_that_was_answered_is_completed() -> Result {
        let invalid = NtStatus::CONNECTION_INVALID;
        let mut half = Half::asked(PLAIN, HERE)?;
        let idle = connector(&half.test_host)?;
        kunit_assert_eq!(complete(&idle, &half.a)?, invalid);
        // The peer has not answered yet; and `theirs` is not of the active side.
        kunit_assert_eq!(half.complete()?, invalid);
        kunit_assert_eq!(complete(&half.theirs, &half.b)?, invalid);
        assert!(half.is_pending(&half.connected));
        half.accept()?;
        kunit_assert_eq!(half.connected.wait(), Some(NtStatus::SUCCESS));
        kunit_assert_eq!(half.complete()?, NtStatus::SUCCESS);
        kunit_assert_eq!(half.complete()?, invalid);
        assert!(message_passes(&half.a, &half.b)?);
        Ok(())
    }

    #[test]
    fn ndk_conn_08_the_peer_gave_up() -> Result {
        let mut half = Half::answered(PLAIN, HERE)?;
        assert!(half.theirs.close_and_wait()?);
        let aborted = NtStatus::CONNECTION_ABORTED;
        kunit_assert_eq!(half.accepted.wait(), Some(aborted));
        kunit_assert_eq!(half.complete()?, aborted);
        assert!(half.is_nothing());
        kunit_assert_eq!(half.complete()?, NtStatus::CONNECTION_INVALID);
        Ok(())
    }

    #[test]
    fn ndk_conn_08_too_late() -> Result {
        let half = Half::answered(&patience(60_000, 30), HERE)?;
        kunit_assert_eq!(half.accepted.wait(), Some(NtStatus::IO_TIMEOUT));
        kunit_assert_eq!(half.complete()?, NtStatus::IO_TIMEOUT);
        assert!(half.is_nothing());
        // The attempt is over.
        kunit_assert_eq!(half.complete()?, NtStatus::CONNECTION_INVALID);
        kunit_assert_eq!(half.ours.reject(&[]), Err(NtStatus::CONNECTION_INVALID));
        Ok(())
    }

    #[test]
    fn ndk_conn_09_the_peer_gave_up_before_the_accept() -> Result {
        let mut half = Half::asked(PLAIN, HERE)?;
        assert!(half.leave()?);
        half.accept()?;
        let aborted = Some(NtStatus::CONNECTION_ABORTED);
        kunit_assert_eq!(half.accepted.wait(), aborted);
        assert!(half.is_nothing());
        kunit_assert_eq!(half.accepted.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_conn_09_the_peer_gave_up_after_the_accept() -> Result {
        for rejects in cases([true, false]) {
            let mut half = Half::answered(PLAIN, HERE)?;
            match rejects {
                true => kunit_assert_eq!(half.ours.reject(&[]), Ok(())),
                false => assert!(half.leave()?),
            }
            let aborted = Some(NtStatus::CONNECTION_ABORTED);
            kunit_assert_eq!(half.accepted.wait(), aborted);
            assert!(half.is_nothing());
            kunit_assert_eq!(half.accepted.calls.get(), 1);
        }
        Ok(())
    }

    #[test]
    fn ndk_conn_09_the_peer_never_completes() -> Result {
        let half = Half::answered(&patience(60_000, 30), HERE)?;
        let late = Some(NtStatus::IO_TIMEOUT);
        kunit_assert_eq!(half.accepted.wait(), late);
        assert!(half.is_nothing());
        kunit_assert_eq!(half.accepted.calls.get(), 1);
        kunit_assert_eq!(half.b.disconnects.get(), 0);
        Ok(())
    }

    #[test]
    fn ndk_conn_10_reject_is_over_when_it_returns() -> Result {
        let invalid = Err(NtStatus::CONNECTION_INVALID);
        let half = Half::asked(PLAIN, HERE)?;
        kunit_assert_eq!(connector(&half.test_host)?.reject(&[]), invalid);
        // The peer has not accepted yet.
        kunit_assert_eq!(half.ours.reject(&[]), invalid);
        kunit_assert_eq!(half.theirs.reject(b"no"), Ok(()));
        kunit_assert_eq!(half.theirs.reject(&[]), invalid);
        let got = request(|done| {
            half.theirs
                .accept(&half.b.qp, READS, KVec::new(), None, done)
        })?;
        kunit_assert_eq!(got, NtStatus::CONNECTION_INVALID);
        kunit_assert_eq!(half.connected.wait(), Some(REFUSED));
        let half = Half::answered(PLAIN, HERE)?;
        kunit_assert_eq!(half.ours.reject(b"no"), Ok(()));
        kunit_assert_eq!(half.ours.reject(&[]), invalid);
        kunit_assert_eq!(half.complete()?, NtStatus::CONNECTION_INVALID);
        let aborted = Some(NtStatus::CONNECTION_ABORTED);
        kunit_assert_eq!(half.accepted.wait(), aborted);
        // An established connection cannot be rejected.
        let half = Half::up(PLAIN, HERE)?;
        kunit_assert_eq!(half.ours.reject(&[]), invalid);
        kunit_assert_eq!(half.theirs.reject(&[]), invalid);
        assert!(message_passes(&half.a, &half.b)?);
        Ok(())
    }

    #[test]
    fn ndk_conn_10_a_peer_that_is_gone_is_not_rejected() -> Result {
        let aborted = Err(NtStatus::CONNECTION_ABORTED);
        let mut half = Half::asked(PLAIN, HERE)?;
        assert!(half.leave()?);
        kunit_assert_eq!(half.theirs.reject(&[]), aborted);
        let mut half = Half::answered(PLAIN, HERE)?;
        assert!(half.theirs.close_and_wait()?);
        kunit_assert_eq!(half.ours.reject(&[]), aborted);
        Ok(())
    }

    #[test]
    fn ndk_conn_11_either_side_sees_limits_and_words_before_it_decides() -> Result {
        let test_host = TestHost::new()?;
        let test_listener = TestListener::new(&test_host, HERE)?;
        let (ours, a, b) = (
            connector(&test_host)?,
            test_side(&test_host, 0xA)?,
            test_side(&test_host, 0xB)?,
        );
        let invalid = Some(NtStatus::CONNECTION_INVALID);
        kunit_assert_eq!(data(&ours).err(), invalid);
        let asked = CallbackValue::new()?;
        let way = (from(here(0)), test_listener.at);
        let asking = ours.connect(&a.qp, way, reads(3, 5), bytes(b"ours")?, asked.callback()?);
        assert!(asking.is_ok());
        kunit_assert_eq!(data(&ours).err(), invalid);
        let theirs = test_listener.next()?;
        // The inbound limit of one side is the outbound limit of the other.
        assert!(says(&theirs, (5, 3), b"ours"));
        let answer = CallbackValue::new()?;
        let words = bytes(b"theirs")?;
        let accepting = theirs.accept(&b.qp, reads(4, 1), words, None, answer.callback()?);
        assert!(accepting.is_ok());
        kunit_assert_eq!(asked.wait(), Some(NtStatus::SUCCESS));
        assert!(says(&ours, (1, 4), b"theirs"));
        kunit_assert_eq!(complete(&ours, &a)?, NtStatus::SUCCESS);
        kunit_assert_eq!(answer.wait(), Some(NtStatus::SUCCESS));
        assert!(says(&ours, (1, 4), b"theirs"));
        assert!(says(&theirs, (4, 1), b"ours"));
        Ok(())
    }

    #[test]
    fn ndk_conn_11_who_is_refused_sees_why_until_it_tries_again() -> Result {
        let invalid = Some(NtStatus::CONNECTION_INVALID);
        let half = Half::asked(PLAIN, HERE)?;
        kunit_assert_eq!(half.theirs.reject(b"full"), Ok(()));
        kunit_assert_eq!(half.connected.wait(), Some(REFUSED));
        assert!(says(&half.ours, (0, 0), b"full"));
        let again = CallbackValue::new()?;
        let way = (from(here(0)), half.test_listener.at);
        let asking = half
            .ours
            .connect(&half.a.qp, way, READS, KVec::new(), again.callback()?);
        assert!(asking.is_ok());
        kunit_assert_eq!(data(&half.ours).err(), invalid);
        // A reject without private data leaves none to read.
        kunit_assert_eq!(half.test_listener.next()?.reject(&[]), Ok(()));
        kunit_assert_eq!(again.wait(), Some(REFUSED));
        kunit_assert_eq!(data(&half.ours).err(), invalid);
        Ok(())
    }

    #[test]
    fn ndk_conn_13_each_side_knows_both_addresses_while_there_is_a_peer() -> Result {
        let invalid = Err(NtStatus::CONNECTION_INVALID);
        for ip in cases(BOTH) {
            let mut half = Half::asked(PLAIN, ip)?;
            let ours = half.theirs.peer_address();
            kunit_assert_eq!(ours.map(|at| at.ip()), Ok(ip));
            assert!(ours.is_ok_and(|at| at.port() != 0));
            kunit_assert_eq!(half.theirs.local_address(), Ok(half.test_listener.at));
            // The peer has not answered yet.
            kunit_assert_eq!(half.ours.local_address(), invalid);
            kunit_assert_eq!(half.ours.peer_address(), invalid);
            half.accept()?;
            kunit_assert_eq!(half.connected.wait(), Some(NtStatus::SUCCESS));
            for _ in 0..2 {
                kunit_assert_eq!(half.ours.local_address(), ours);
                kunit_assert_eq!(half.ours.peer_address(), Ok(half.test_listener.at));
                kunit_assert_eq!(half.theirs.peer_address(), ours);
                half.complete()?;
            }
            kunit_assert_eq!(disconnect(&half.ours)?, NtStatus::SUCCESS);
            kunit_assert_eq!(half.ours.local_address(), invalid);
            kunit_assert_eq!(half.ours.peer_address(), invalid);
        }
        let test_host = TestHost::new()?;
        let (ours, a) = (connector(&test_host)?, test_side(&test_host, 0xA)?);
        kunit_assert_eq!(ours.local_address(), invalid);
        kunit_assert_eq!(ours.peer_address(), invalid);
        kunit_assert_eq!(
            try_connect(&ours, &a.qp, from(here(0)), here(4000))?,
            REFUSED
        );
        kunit_assert_eq!(ours.local_address(), invalid);
        kunit_assert_eq!(ours.peer_address(), invalid);
        Ok(())
    }

    #[test]
    fn ndk_conn_18_only_the_peer_loses_its_patience() -> Result {
        let clock = StoppedClock::new();
        let mut half = Half::asked(&patience(50, 60_000), HERE)?;
        clock.pass(50);
        kunit_assert_eq!(half.connected.wait(), Some(NtStatus::IO_TIMEOUT));
        // The passive side is not told of the timeout, and may still decide.
        assert!(says(&half.theirs, (8, 8), b"hello"));
        assert!(half.is_pending(&half.accepted));
        half.accept()?;
        let gone = Some(NtStatus::CONNECTION_ABORTED);
        kunit_assert_eq!(half.accepted.wait(), gone);
        let half = Half::answered(&patience(60_000, 50), HERE)?;
        clock.pass(50);
        kunit_assert_eq!(half.accepted.wait(), Some(NtStatus::IO_TIMEOUT));
        half.test_host.flush_work();
        kunit_assert_eq!(half.connected.calls.get(), 1);
        assert!(says(&half.ours, (8, 8), b"welcome"));
        Ok(())
    }

    #[test]
    fn ndk_conn_18_a_peer_that_waits_is_connected_however_slow_this_side_is() -> Result {
        let clock = StoppedClock::new();
        let mut half = Half::asked(&patience(60_000, 60_000), HERE)?;
        // Nor does a closed listener end the attempt: its close waits for the connector.
        let (_, closed) = half.test_listener.listener.close()?;
        clock.pass(59_999);
        sleep(20);
        assert!(half.is_pending(&half.connected));
        half.accept()?;
        kunit_assert_eq!(half.connected.wait(), Some(NtStatus::SUCCESS));
        clock.pass(59_999);
        sleep(20);
        assert!(half.is_pending(&half.accepted));
        kunit_assert_eq!(half.complete()?, NtStatus::SUCCESS);
        kunit_assert_eq!(half.accepted.wait(), Some(NtStatus::SUCCESS));
        assert!(message_passes(&half.a, &half.b)?);
        kunit_assert_eq!(closed.calls.get(), 0);
        Ok(())
    }
}
