// SPDX-License-Identifier: GPL-2.0

//! Injected faults of connections that are being made.

#[kernel::macros::kunit_tests(ndk_engine_cm_tests_inject)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        engine::{
            cm::Timeouts,
            counters::Counter,
            inject::{
                needed,
                Fault,
                FaultSettings,
                SiteKind, //
            }, //
        },
        kunit::{
            connection_fixture::*,
            harness::{
                cases,
                flush_work,
                is_early,
                same,
                sleep,
                wait_until, //
            },
            inject::Ordered, //
        },
        rdma::values::status::Status,
        sys::clock::StoppedClock, //
    };

    fn event(what: SiteKind, usec: u32) -> FaultSettings {
        FaultSettings {
            what: Some(what),
            usec,
            ..FaultSettings::ALWAYS
        }
    }

    #[test]
    fn a_connect_is_rejected_and_nobody_hears_of_it() -> Result {
        if !needed() {
            return Ok(());
        }
        let (fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = fixture.open()?;
        let order = FaultSettings {
            times: 1,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(fixture.active.device(), Fault::RejectConnect, order);
        fixture.connect(&log)?;
        kunit_assert_eq!(log.status(), Some(Err(Status::Refused)));
        kunit_assert_eq!(listener_log.requests.get(), 0);
        // The fault does not hit the next connect.
        fixture.connect(&log)?;
        fixture.accept(&listener_log.request()?, &ConnectionLog::new()?)?;
        kunit_assert_eq!(log.status(), Some(Ok((3, 5))));
        Ok(())
    }

    #[test]
    fn the_nth_connect_of_the_device_is_rejected() -> Result {
        if !needed() {
            return Ok(());
        }
        let (fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        fixture.open()?;
        let order = FaultSettings {
            nth: 3,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(fixture.active.device(), Fault::RejectConnect, order);
        for number in cases(1..5) {
            let request = fixture.connect(&log)?;
            let status = if number == 3 {
                Status::Refused
            } else {
                Status::Aborted
            };
            request.abandon();
            kunit_assert_eq!((number, log.status()), (number, Some(Err(status))));
        }
        Ok(())
    }

    #[test]
    fn a_delay_ends_with_the_time_for_the_answer() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let timeouts = Timeouts {
            answer_ms: 200,
            ..Timeouts::DEFAULT
        };
        let (fixture, log) = (ConnectionFixture::with(timeouts)?, ConnectionLog::new()?);
        let order = FaultSettings {
            usec: 3_600_000_000,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(fixture.active.device(), Fault::DelayConnect, order);
        fixture.connect(&log)?;
        assert!(is_early(&clock, 200, || log.status().is_none()));
        assert!(wait_until(|| log.status() == Some(Err(Status::Timeout))));
        Ok(())
    }

    #[test]
    fn a_connect_that_is_delayed_reaches_its_listener_later() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let (fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = fixture.open()?;
        let order = FaultSettings {
            usec: 150_000,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(fixture.active.device(), Fault::DelayConnect, order);
        fixture.connect(&log)?;
        assert!(is_early(&clock, 150, || !listener_log.has_request()));
        assert!(wait_until(|| listener_log.has_request()));
        kunit_assert_eq!(listener_log.requests.get(), 1);
        fixture.accept(&listener_log.request()?, &ConnectionLog::new()?)?;
        kunit_assert_eq!(log.status(), Some(Ok((3, 5))));
        Ok(())
    }

    #[test]
    fn a_delayed_connect_to_nobody_is_refused_later() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let (fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let order = FaultSettings {
            usec: 50_000,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(fixture.active.device(), Fault::DelayConnect, order);
        fixture.connect(&log)?;
        assert!(is_early(&clock, 50, || log.status().is_none()));
        assert!(wait_until(|| log.status() == Some(Err(Status::Refused))));
        Ok(())
    }

    #[test]
    fn a_request_that_is_dropped_times_out() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let (fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = fixture.open()?;
        let (device, fault) = (fixture.active.device(), Fault::DropEvent);
        let _fault = Ordered::new(device, fault, event(SiteKind::Request, 100_000));
        fixture.connect(&log)?;
        assert!(is_early(&clock, 100, || log.status().is_none()));
        assert!(wait_until(|| log.status() == Some(Err(Status::Timeout))));
        kunit_assert_eq!(listener_log.requests.get(), 0);
        Ok(())
    }

    #[test]
    fn a_dropped_request_can_be_given_up() -> Result {
        if !needed() {
            return Ok(());
        }
        let (fixture, log) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let (device, fault) = (fixture.active.device(), Fault::DropEvent);
        let _fault = Ordered::new(device, fault, event(SiteKind::Request, 0));
        assert!(fixture.connect(&log)?.abandon());
        kunit_assert_eq!(log.status(), Some(Err(Status::Aborted)));
        Ok(())
    }

    /// A connect whose answer is lost for `usec` microseconds: the fixture, the fault, and the log
    /// of either side.
    fn unanswered(
        usec: u32,
    ) -> Result<(
        ConnectionFixture,
        Ordered,
        Arc<ConnectionLog>,
        Arc<ConnectionLog>,
    )> {
        let (fixture, active) = (ConnectionFixture::new()?, ConnectionLog::new()?);
        let listener_log = fixture.open()?;
        let (device, fault) = (fixture.active.device(), Fault::DropEvent);
        let fault = Ordered::new(device, fault, event(SiteKind::Reply, usec));
        let passive = ConnectionLog::new()?;
        fixture.connect(&active)?;
        fixture.accept(&listener_log.request()?, &passive)?;
        same(passive.established.get(), 1)
            .then_some((fixture, fault, active, passive))
            .ok_or(EINVAL)
    }

    #[test]
    fn a_reply_that_is_dropped_leaves_neither_side_connected() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let (_fixture, _fault, active, passive) = unanswered(150_000)?;
        // The passive side stays connected until the active side gives up.
        assert!(is_early(&clock, 150, || active.status().is_none()));
        assert!(wait_until(|| active.status().is_some()));
        kunit_assert_eq!(active.status(), Some(Err(Status::Timeout)));
        assert!(wait_until(|| passive.closed.get() == 1));
        kunit_assert_eq!(passive.closed_by_peer.get(), 1);
        sleep(50);
        kunit_assert_eq!((active.replies.get(), active.closed.get()), (1, 0));
        kunit_assert_eq!(passive.closed.get(), 1);
        Ok(())
    }

    #[test]
    fn who_waits_for_a_dropped_reply_hears_at_once_that_the_connection_ended() -> Result {
        if !needed() {
            return Ok(());
        }
        // The reply is late for ever.
        let _clock = StoppedClock::new();
        for by_peer in cases([false, true]) {
            let (fixture, _fault, active, passive) = unanswered(60_000_000)?;
            let side = if by_peer {
                &fixture.passive
            } else {
                &fixture.active
            };
            side.qp.fail();
            assert!(wait_until(|| active.status() == Some(Err(Status::Aborted))));
            assert!(wait_until(|| passive.closed.get() == 1));
            // The timer is gone with the connect: the end of the module does not wait for it.
            let host = &fixture.active.device().host;
            assert!(wait_until(|| host.sides() == 0));
            kunit_assert_eq!((active.replies.get(), active.closed.get()), (1, 0));
        }
        Ok(())
    }

    #[test]
    fn a_disconnect_that_is_dropped_is_heard_of_late_and_once() -> Result {
        if !needed() {
            return Ok(());
        }
        let clock = StoppedClock::new();
        let (active, passive) = (ConnectionLog::new()?, ConnectionLog::new()?);
        let fixture = connected(&active, &passive)?;
        let (device, fault) = (fixture.active.device(), Fault::DropEvent);
        let _fault = Ordered::new(device, fault, event(SiteKind::Disconnect, 150_000));
        fixture.passive.qp.fail();
        // The other side's device has no faults.
        assert!(wait_until(|| passive.closed.get() == 1));
        // Over TCP both ends have their sockets then, and with them their sides.
        flush_work(device);
        assert!(wait_until(|| device.host.sides() == 1));
        flush_work(device);
        assert!(is_early(&clock, 150, || active.closed.get() == 0));
        assert!(wait_until(|| active.closed.get() == 1));
        clock.pass(1_000);
        sleep(50);
        kunit_assert_eq!((active.closed.get(), active.closed_by_peer.get()), (1, 1));
        kunit_assert_eq!(fixture.active.counted(Counter::FaultsInjected), 1);
        Ok(())
    }
}
