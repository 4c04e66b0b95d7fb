// SPDX-License-Identifier: GPL-2.0

//! Local addresses and routes: owners, lifetime and refusals.

#[kernel::macros::kunit_tests(ndk_engine_cm_listen)]
mod tests {
    use core::net::{
        Ipv6Addr,
        SocketAddr,
        SocketAddrV6, //
    };

    use kernel::{
        new_spinlock_irq,
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        engine::cm::{
            AddressError,
            ConnectionManager,
            Listener,
            Reservation, //
        },
        kunit::{
            connection_fixture::*,
            harness::cases,
            other_context::OtherContext, //
        }, //
    };

    /// The number of a device.
    const DEVICE: usize = 0x1000;

    /// The first port that is given out for port 0.
    const FIRST: u16 = 49152;

    fn reserve(
        cm_fixture: &ConnectionFixture,
        at: SocketAddr,
    ) -> Result<Arc<Reservation>, AddressError> {
        cm_fixture.cm.reserve(DEVICE, NET, at)
    }

    /// Reserves an address that is free.
    fn take(cm_fixture: &ConnectionFixture, at: SocketAddr) -> Result<Arc<Reservation>> {
        reserve(cm_fixture, at).map_err(|_| EADDRINUSE)
    }

    /// Returns true if the address can be had now.
    fn is_free(cm_fixture: &ConnectionFixture, at: SocketAddr) -> bool {
        reserve(cm_fixture, at).is_ok()
    }

    #[test]
    fn an_address_is_reserved_once_and_free_when_nobody_holds_it() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let first = take(&cm_fixture, at(HERE, PORT))?;
        kunit_assert_eq!(first.addr(), at(HERE, PORT));
        for device in cases([DEVICE, DEVICE + 1]) {
            let again = cm_fixture.cm.reserve(device, NET, at(HERE, PORT));
            kunit_assert_eq!(again.err(), Some(AddressError::InUse));
        }
        assert!(is_free(&cm_fixture, at(HERE, PORT + 1)));
        assert!(is_free(&cm_fixture, at(ELSEWHERE, PORT)));
        assert!(cm_fixture
            .cm
            .reserve(DEVICE, NET + 1, at(HERE, PORT))
            .is_ok());
        let second = first.clone();
        drop(first);
        assert!(!is_free(&cm_fixture, at(HERE, PORT)));
        drop(second);
        assert!(is_free(&cm_fixture, at(HERE, PORT)));
        Ok(())
    }

    #[test]
    fn of_an_ipv6_address_the_interface_counts_and_the_flow_does_not() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let v6 = |flow, scope| SocketAddrV6::new(Ipv6Addr::LOCALHOST, PORT, flow, scope).into();
        let _held = take(&cm_fixture, v6(1, 1))?;
        assert!(!is_free(&cm_fixture, v6(2, 1)));
        assert!(is_free(&cm_fixture, v6(1, 2)));
        Ok(())
    }

    #[test]
    fn any_port_is_a_free_one_of_the_upper_ports() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let mut held = KVec::new();
        for _ in 0..200 {
            let reservation = take(&cm_fixture, at(HERE, 0))?;
            let port = reservation.addr().port();
            assert!(port >= FIRST);
            assert!(held
                .iter()
                .all(|r: &Arc<Reservation>| r.addr().port() != port));
            held.push(reservation, GFP_KERNEL)?;
        }
        Ok(())
    }

    #[test]
    fn when_every_port_is_taken_the_next_one_is_the_one_that_is_given_back() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let mut held = KVVec::new();
        for port in cases(FIRST..=u16::MAX) {
            held.push(take(&cm_fixture, at(HERE, port))?, GFP_KERNEL)?;
        }
        let full = reserve(&cm_fixture, at(HERE, 0));
        kunit_assert_eq!(full.err(), Some(AddressError::NoPort));
        assert!(is_free(&cm_fixture, at(ELSEWHERE, 0)));
        // The first, one in the middle, the last.
        for index in cases([0, 5000, held.len() - 1]) {
            let port = FIRST + index as u16;
            let place = held.get_mut(index).ok_or(EINVAL)?;
            *place = take(&cm_fixture, at(ELSEWHERE, port))?;
            let found = take(&cm_fixture, at(HERE, 0))?;
            kunit_assert_eq!(found.addr().port(), port);
            *held.get_mut(index).ok_or(EINVAL)? = found;
        }
        Ok(())
    }

    #[test]
    fn a_port_where_the_device_listens_is_not_given_out() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let listener_log = ListenerLog::new(HERE, false)?;
        let device = Arc::as_ptr(&listener_log).addr();
        let mut held = KVVec::new();
        for port in cases(FIRST + 1..=u16::MAX) {
            held.push(take(&cm_fixture, at(HERE, port))?, GFP_KERNEL)?;
        }
        let listener = cm_fixture.listen(at(HERE, FIRST), &listener_log)?;
        let full = cm_fixture.cm.reserve(device, NET, at(HERE, 0));
        kunit_assert_eq!(full.err(), Some(AddressError::NoPort));
        cm_fixture.cm.unlisten(&listener);
        let found = cm_fixture.cm.reserve(device, NET, at(HERE, 0));
        assert!(found.is_ok_and(|r| r.addr() == at(HERE, FIRST)));
        Ok(())
    }

    #[test]
    fn there_is_one_route_to_each_destination() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let from = take(&cm_fixture, at(HERE, PORT))?;
        let first = from.route(at(ELSEWHERE, 1)).map_err(|_| EEXIST)?;
        assert!(Arc::ptr_eq(first.from(), &from));
        let again = from.route(at(ELSEWHERE, 1));
        kunit_assert_eq!(again.err(), Some(AddressError::Exists));
        assert!(from.route(at(ELSEWHERE, 2)).is_ok());
        assert!(from.route(at(HERE, 1)).is_ok());
        let other = take(&cm_fixture, at(HERE, PORT + 1))?;
        assert!(other.route(at(ELSEWHERE, 1)).is_ok());
        drop(first);
        assert!(from.route(at(ELSEWHERE, 1)).is_ok());
        Ok(())
    }

    #[test]
    fn a_route_keeps_its_address() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let from = take(&cm_fixture, at(HERE, PORT))?;
        let route = from.route(at(ELSEWHERE, 1)).map_err(|_| EEXIST)?;
        drop(from);
        assert!(!is_free(&cm_fixture, at(HERE, PORT)));
        drop(route);
        assert!(is_free(&cm_fixture, at(HERE, PORT)));
        Ok(())
    }

    #[test]
    fn a_pair_distinguishes_a_route_that_exists_from_an_address_in_use() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let pair = |local, remote| cm_fixture.cm.reserve_pair(DEVICE, NET, local, remote);
        let route = pair(at(HERE, PORT), at(ELSEWHERE, 1)).map_err(|_| EADDRINUSE)?;
        kunit_assert_eq!(route.from().addr(), at(HERE, PORT));
        let same_pair = pair(at(HERE, PORT), at(ELSEWHERE, 1));
        kunit_assert_eq!(same_pair.err(), Some(AddressError::Exists));
        let other = pair(at(HERE, PORT), at(ELSEWHERE, 2));
        kunit_assert_eq!(other.err(), Some(AddressError::InUse));
        drop(route);
        assert!(pair(at(HERE, PORT), at(ELSEWHERE, 2)).is_ok());
        let any = pair(at(HERE, 0), at(ELSEWHERE, 1)).map_err(|_| EADDRINUSE)?;
        assert!(any.from().addr().port() >= FIRST);
        Ok(())
    }

    /// Listens for `listener_log` at a reserved address.
    fn listen_on(
        cm: &Arc<ConnectionManager>,
        held: &Arc<Reservation>,
        listener_log: &Arc<ListenerLog>,
    ) -> Result<Result<Arc<Listener>, AddressError>> {
        let events = KBox::new(ListenerLogEvents(listener_log.clone()), GFP_KERNEL)?;
        Ok(cm.listen_on(held.clone(), events))
    }

    #[test]
    fn listeners_and_reservations_of_one_device_keep_apart() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let (listener_log, other) = (
            ListenerLog::new(HERE, false)?,
            ListenerLog::new(ELSEWHERE, false)?,
        );
        let (device, elsewhere) = (
            Arc::as_ptr(&listener_log).addr(),
            Arc::as_ptr(&other).addr(),
        );
        let listener = cm_fixture.listen(at(HERE, PORT), &listener_log)?;
        let busy = cm_fixture.cm.reserve(device, NET, at(HERE, PORT));
        kunit_assert_eq!(busy.err(), Some(AddressError::InUse));
        assert!(cm_fixture
            .cm
            .reserve(elsewhere, NET, at(HERE, PORT))
            .is_ok());
        cm_fixture.cm.unlisten(&listener);

        let held = cm_fixture.cm.reserve(device, NET, at(HERE, PORT));
        let _held = held.map_err(|_| EADDRINUSE)?;
        kunit_assert_eq!(
            cm_fixture.listen(at(HERE, PORT), &listener_log).err(),
            Some(EADDRINUSE)
        );
        cm_fixture.listen(at(HERE, PORT), &other)?;
        cm_fixture.listen(at(ANY, PORT), &listener_log)?;
        Ok(())
    }

    #[test]
    fn a_listener_holds_the_address_that_was_reserved_for_it() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let listener_log = ListenerLog::new(HERE, false)?;
        let device = Arc::as_ptr(&listener_log).addr();
        let reserve = || cm_fixture.cm.reserve(device, NET, at(HERE, PORT));
        let held = reserve().map_err(|_| EADDRINUSE)?;
        let listener = listen_on(&cm_fixture.cm, &held, &listener_log)?.map_err(|_| EADDRINUSE)?;
        let twice = listen_on(&cm_fixture.cm, &held, &listener_log)?;
        kunit_assert_eq!(twice.err(), Some(AddressError::InUse));
        drop(held);
        kunit_assert_eq!(reserve().err(), Some(AddressError::InUse));
        // The listener is notified of requests to its address.
        cm_fixture.connect(&ConnectionLog::new()?)?;
        kunit_assert_eq!(listener_log.requests.get(), 1);
        listener_log.request()?.abandon();
        cm_fixture.cm.unlisten(&listener);
        drop(listener);
        assert!(reserve().is_ok());
        Ok(())
    }

    #[test]
    fn what_is_reserved_may_be_given_up_in_softirq() -> Result {
        let cm_fixture = ConnectionFixture::new()?;
        let route = take(&cm_fixture, at(HERE, PORT))?.route(at(ELSEWHERE, 1));
        let route = route.map_err(|_| EEXIST)?;
        let place = KBox::pin_init(new_spinlock_irq!(Some(route)), GFP_KERNEL)?;
        let other_task = OtherContext::new(move || {
            let route = place.lock().take();
            drop(route);
        })?;
        assert!(other_task.by_softirq(&cm_fixture.active.device().host.softirqs));
        assert!(is_free(&cm_fixture, at(HERE, PORT)));
        Ok(())
    }
}
