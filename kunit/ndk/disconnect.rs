// SPDX-License-Identifier: GPL-2.0

//! The end of a connection (CONN-14 to CONN-17).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_disconnect)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::{
            cases,
            same,
            sleep,
            wait_until, //
        },
        ndk::{
            abi::numbers::op_flags,
            connector::Source,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                completion::{
                    request,
                    CallbackValue, //
                },
                connect_steps::*,
                host::{
                    here,
                    HostAttr,
                    HERE, //
                },
                pair::{
                    TestSide,
                    READS, //
                }, //
            }, //
        },
        sys::clock::StoppedClock, //
    };

    const PLAIN: &HostAttr = &HostAttr::PLAIN;

    const UNCONNECTED: NtStatus = NtStatus::CONNECTION_INVALID;

    /// Waits for the disconnect events of a side; true if exactly `times` came.
    fn notified(half: &Half, test_side: &TestSide, times: u32) -> bool {
        let there = wait_until(|| test_side.disconnects.get() >= times);
        half.test_host.flush_work();
        there && same(test_side.disconnects.get(), times)
    }

    #[test]
    fn ndk_conn_14_what_was_posted_is_carried_out_then_the_rest_is_flushed() -> Result {
        let half = Half::up(PLAIN, HERE)?;
        half.a.receive(1, &[])?;
        // The peer has no receive yet.
        half.a.send(2, &[], 0)?;
        half.a.send(3, &[], op_flags::DEFER)?;
        let slot = CallbackValue::new()?;
        let leaving = half.ours.disconnect(slot.callback()?);
        assert!(matches!(leaving, Ok(Progress::Pending)));
        assert!(half.is_pending(&slot));
        let posted = half.a.qp.send(4, [].into_iter(), 0);
        kunit_assert_eq!(posted, Err(UNCONNECTED));
        kunit_assert_eq!(disconnect(&half.ours)?, UNCONNECTED);
        assert!(half.a.receives.stays_empty());
        half.b.receive(5, &[])?;
        assert!(half.b.receives.next_is(5, NtStatus::SUCCESS));
        assert!(half.a.requests.next_is(2, NtStatus::SUCCESS));
        kunit_assert_eq!(slot.wait(), Some(NtStatus::SUCCESS));
        // The deferred request was never started; it and the receive are cancelled.
        assert!(half.a.requests.next_is(3, NtStatus::CANCELLED));
        assert!(half.a.receives.next_is(1, NtStatus::CANCELLED));
        assert!(half.a.requests.stays_empty());
        assert!(half.a.receives.stays_empty());
        assert!(notified(&half, &half.b, 1));
        kunit_assert_eq!(slot.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_conn_14_a_peer_that_never_takes_what_was_posted_ends_it_by_timeout() -> Result {
        let attr = HostAttr {
            rnr_ms: 1_000,
            ..HostAttr::PLAIN
        };
        let clock = StoppedClock::new();
        let half = Half::up(&attr, HERE)?;
        half.a.receive(1, &[])?;
        half.a.send(2, &[], 0)?;
        let leaving = CallbackValue::new()?;
        let pends = half.ours.disconnect(leaving.callback()?);
        assert!(matches!(pends, Ok(Progress::Pending)));
        assert!(half.is_pending(&leaving));
        clock.pass(999);
        sleep(20);
        assert!(half.is_pending(&leaving));
        clock.pass(2);
        kunit_assert_eq!(leaving.wait(), Some(NtStatus::IO_TIMEOUT));
        assert!(half.a.requests.next_is(2, NtStatus::IO_TIMEOUT));
        assert!(half.a.receives.next_is(1, NtStatus::CANCELLED));
        kunit_assert_eq!(disconnect(&half.ours)?, UNCONNECTED);
        Ok(())
    }

    #[test]
    fn ndk_conn_14_what_is_not_connected_is_not_disconnected() -> Result {
        let mut half = Half::asked(PLAIN, HERE)?;
        let idle = connector(&half.test_host)?;
        kunit_assert_eq!(disconnect(&idle)?, UNCONNECTED);
        kunit_assert_eq!(disconnect(&half.ours)?, UNCONNECTED);
        kunit_assert_eq!(disconnect(&half.theirs)?, UNCONNECTED);
        half.accept()?;
        kunit_assert_eq!(half.connected.wait(), Some(NtStatus::SUCCESS));
        kunit_assert_eq!(disconnect(&half.ours)?, UNCONNECTED);
        kunit_assert_eq!(disconnect(&half.theirs)?, UNCONNECTED);
        kunit_assert_eq!(half.complete()?, NtStatus::SUCCESS);
        kunit_assert_eq!(half.accepted.wait(), Some(NtStatus::SUCCESS));
        for connector in [&half.ours, &half.theirs] {
            kunit_assert_eq!(disconnect(connector)?, NtStatus::SUCCESS);
            kunit_assert_eq!(disconnect(connector)?, UNCONNECTED);
        }
        Ok(())
    }

    #[test]
    fn ndk_conn_15_only_the_peer_of_who_disconnects_is_reported_once() -> Result {
        for ip in cases(BOTH) {
            for active_goes in cases([true, false]) {
                let half = Half::up(PLAIN, ip)?;
                let (goes, stays) = match active_goes {
                    true => ((&half.ours, &half.a), (&half.theirs, &half.b)),
                    false => ((&half.theirs, &half.b), (&half.ours, &half.a)),
                };
                kunit_assert_eq!(disconnect(goes.0)?, NtStatus::SUCCESS);
                assert!(notified(&half, stays.1, 1));
                assert!(notified(&half, goes.1, 0));
                kunit_assert_eq!(disconnect(stays.0)?, NtStatus::SUCCESS);
                assert!(notified(&half, stays.1, 1));
                assert!(notified(&half, goes.1, 0));
            }
        }
        Ok(())
    }

    #[test]
    fn ndk_conn_15_nobody_need_be_reported() -> Result {
        let half = Half::answered(PLAIN, HERE)?;
        let up = request(|done| half.ours.complete_connect(None, done))?;
        kunit_assert_eq!(up, NtStatus::SUCCESS);
        kunit_assert_eq!(half.accepted.wait(), Some(NtStatus::SUCCESS));
        kunit_assert_eq!(disconnect(&half.theirs)?, NtStatus::SUCCESS);
        // Posts report the end of the connection all the same.
        assert!(wait_until(|| half
            .a
            .qp
            .send(1, [].into_iter(), op_flags::SILENT_SUCCESS)
            .is_err()));
        assert!(notified(&half, &half.a, 0));
        kunit_assert_eq!(disconnect(&half.ours)?, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_conn_16_the_peers_disconnect_leaves_what_was_posted() -> Result {
        let half = Half::up(PLAIN, HERE)?;
        half.b.receive(1, &[])?;
        // The peer has no receive for either send.
        half.b.send(2, &[], 0)?;
        half.b.send(3, &[], 0)?;
        kunit_assert_eq!(disconnect(&half.ours)?, NtStatus::SUCCESS);
        assert!(notified(&half, &half.b, 1));
        assert!(half.b.receives.stays_empty());
        assert!(half.b.requests.stays_empty());
        kunit_assert_eq!(disconnect(&half.theirs)?, NtStatus::SUCCESS);
        assert!(half.b.receives.next_is(1, NtStatus::CANCELLED));
        for context in cases([2, 3]) {
            assert!(half.b.requests.next_is(context, NtStatus::CANCELLED));
        }
        assert!(half.b.receives.stays_empty());
        assert!(half.b.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_conn_17_a_queue_pair_has_one_connection_in_its_life() -> Result {
        let half = Half::up(PLAIN, HERE)?;
        kunit_assert_eq!(disconnect(&half.ours)?, NtStatus::SUCCESS);
        assert!(notified(&half, &half.b, 1));
        let source = || Source::Address(here(0));
        let (created, c) = (
            connector(&half.test_host)?,
            test_side(&half.test_host, 0xC)?,
        );
        // The peer has not disconnected yet, but the connection of its queue pair is over as well.
        for qp in [&half.a.qp, &half.b.qp] {
            let got = try_connect(&created, qp, source(), half.test_listener.at)?;
            kunit_assert_eq!(got, UNCONNECTED);
        }
        let again = try_connect(&half.ours, &c.qp, source(), half.test_listener.at)?;
        kunit_assert_eq!(again, UNCONNECTED);
        let asked = begin(&created, &c.qp, source(), half.test_listener.at)?;
        let theirs = half.test_listener.next()?;
        for qp in [&half.a.qp, &half.b.qp] {
            let got = request(|done| theirs.accept(qp, READS, KVec::new(), None, done))?;
            kunit_assert_eq!(got, UNCONNECTED);
        }
        assert!(half.is_pending(&asked));
        kunit_assert_eq!(half.test_listener.arrivals.events.get(), 2);
        Ok(())
    }
}
