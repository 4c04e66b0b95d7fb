// SPDX-License-Identifier: GPL-2.0

//! Which listener is notified of a request, and which one next when that cannot take it.

#[kernel::macros::kunit_tests(ndk_engine_cm_listener)]
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
        engine::{
            cm::{
                AddressError,
                ConnectRequest,
                ConnectionGone,
                Listener,
                Timeouts, //
            },
            status::Status, //
        },
        kunit::{
            connection_fixture::*,
            harness::{
                same,
                sleep,
                wait_until, //
            }, //
        }, //
    };

    /// The first of the ports that are given to who asks for any.
    const FIRST_PORT: u16 = 49152;

    /// An address that each network namespace has.
    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Doors of devices at `HERE`, where each listens.
    fn doors(town: &ConnectionFixture, listen: &[IpAddr]) -> Result<KVec<Arc<Door>>> {
        let mut doors = KVec::new();
        for ip in listen {
            let manner = Manner {
                dual: true,
                ..Manner::default()
            };
            let door = Door::with(HERE, manner)?;
            town.listen(at(*ip, PORT), &door)?;
            doors.push(door, GFP_KERNEL)?;
        }
        Ok(doors)
    }

    /// The listener that was notified last passes the request on.
    fn pass_on(
        town: &ConnectionFixture,
        request: &Arc<ConnectRequest>,
    ) -> Result<(), ConnectionGone> {
        let number = request.listener_number().ok_or(ConnectionGone)?;
        town.cm.pass_on(request, number, Status::Refused)
    }

    /// How many requests each door has seen.
    fn asked<const N: usize>(doors: &[Arc<Door>]) -> [u32; N] {
        core::array::from_fn(|i| doors[i].requests.get())
    }

    #[test]
    fn of_listeners_that_fit_alike_the_first_is_reported() -> Result {
        for (listen, want) in [
            ([ANY, ANY, ANY], [1, 0, 0]),
            ([ANY, HERE, HERE], [0, 1, 0]),
            ([ANY6, ANY6, ANY], [0, 0, 1]),
        ] {
            let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
            let doors = doors(&town, &listen)?;
            let request = town.connect(&notified)?;
            assert!(same(asked(&doors), want));
            request.abandon();
        }
        Ok(())
    }

    #[test]
    fn a_request_is_passed_on_from_the_best_to_the_worst() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let doors = doors(&town, &[ANY6, HERE, ANY, ANY])?;
        let request = town.connect(&notified)?;
        for want in [[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]] {
            assert!(same(asked(&doors), want));
            assert!(same(notified.replies.get(), 0));
            assert!(pass_on(&town, &request).is_ok());
        }
        // Nobody is left.
        assert!(same(notified.status(), Some(Err(Status::Refused))));
        assert!(same(notified.replies.get(), 1));
        let turned_away: [u32; 4] = core::array::from_fn(|i| doors[i].turned_away.get());
        assert!(same(turned_away, [1, 0, 0, 0]));
        Ok(())
    }

    #[test]
    fn whoever_is_reported_next_may_take_it() -> Result {
        let (town, active, passive) = (ConnectionFixture::new()?, Told::new()?, Told::new()?);
        let doors = doors(&town, &[HERE, ANY])?;
        let request = town.connect(&active)?;
        assert!(pass_on(&town, &request).is_ok());
        let notified = doors[1].request()?;
        assert!(Arc::ptr_eq(&notified, &request) && *notified.params.private_data == *b"please");
        town.accept(&notified, &passive)?;
        assert!(same(active.status(), Some(Ok((3, 5)))));
        assert!(same(passive.established.get(), 1));
        Ok(())
    }

    #[test]
    fn a_listener_that_has_passed_a_request_on_has_no_say_in_it() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let doors = doors(&town, &[HERE, ANY, ANY])?;
        let request = town.connect(&notified)?;
        let first = request.listener_number().ok_or(ENOENT)?;
        assert!(town.cm.request_at_listener(first).is_some());
        let consumer = Arc::as_ptr(&doors[0]).addr();
        assert!(same(request.consumer(first), Some(consumer)));
        assert!(pass_on(&town, &request).is_ok());
        let second = request.listener_number().ok_or(ENOENT)?;
        assert!(town.cm.request_at_listener(first).is_none());
        assert!(same(request.consumer(first), None));
        assert!(town.cm.pass_on(&request, first, Status::Refused) == Err(ConnectionGone));
        assert!(same(asked(&doors), [1, 1, 0]));
        let found = town.cm.request_at_listener(second);
        assert!(found.is_some_and(|o| Arc::ptr_eq(&o, &request)));
        // The active side's own number stays.
        assert!(town.cm.request(request.number).is_some());
        request.abandon();
        assert!(town.cm.request_at_listener(second).is_none());
        Ok(())
    }

    #[test]
    fn a_request_that_was_decided_is_not_passed_on() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let doors = doors(&town, &[HERE, ANY])?;
        let request = town.connect(&notified)?;
        request.abandon();
        let _ = pass_on(&town, &request);
        assert!(same(asked(&doors), [1, 0]));
        assert!(same(doors[0].turned_away.get(), 0));
        assert!(same(notified.status(), Some(Err(Status::Aborted))));
        assert!(same(notified.replies.get(), 1));
        Ok(())
    }

    #[test]
    fn a_listener_may_want_requests_to_its_own_device_alone() -> Result {
        for (listen, device, want) in [
            (HERE, HERE, 1),
            (ANY, HERE, 1),
            (HERE, ELSEWHERE, 0),
            (ANY, ELSEWHERE, 0),
        ] {
            let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
            let manner = Manner {
                own_only: true,
                ..Manner::default()
            };
            let door = Door::with(device, manner)?;
            town.listen(at(listen, PORT), &door)?;
            let request = town.connect(&notified)?;
            assert!(same(door.requests.get(), want));
            match want {
                0 => assert!(same(notified.status(), Some(Err(Status::Refused)))),
                _ => assert!(request.abandon()),
            }
        }
        Ok(())
    }

    /// A door at `HERE` that has no room for so many of the first requests.
    fn full(town: &ConnectionFixture, requests: u32) -> Result<(Arc<Door>, Arc<Listener>)> {
        let manner = Manner {
            full: requests,
            ..Manner::default()
        };
        let door = Door::with(HERE, manner)?;
        let listener = town.listen(at(HERE, PORT), &door)?;
        Ok((door, listener))
    }

    /// The active side asks, and waits for room.
    fn connect(town: &ConnectionFixture, notified: &Arc<Told>) -> Result<Arc<ConnectRequest>> {
        let mut ask = town.ask(notified)?;
        ask.waits = true;
        town.submit(ask)
    }

    #[test]
    fn a_listener_without_room_is_asked_until_it_has_some() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let (door, _) = full(&town, 3)?;
        connect(&town, &notified)?;
        assert!(wait_until(|| door.requests.get() == 4));
        assert!(wait_until(|| door.has_request()));
        assert!(same(notified.replies.get(), 0) && same(door.turned_away.get(), 0));
        town.accept(&door.request()?, &Told::new()?)?;
        assert!(same(notified.status(), Some(Ok((3, 5)))));
        assert!(same(door.requests.get(), 4));
        Ok(())
    }

    #[test]
    fn a_listener_that_never_has_room_is_asked_until_the_time_is_over() -> Result {
        let timeouts = Timeouts {
            answer_ms: 100,
            ..Timeouts::DEFAULT
        };
        let (town, notified) = (ConnectionFixture::with(timeouts)?, Told::new()?);
        let (door, _) = full(&town, u32::MAX)?;
        connect(&town, &notified)?;
        assert!(wait_until(
            || notified.status() == Some(Err(Status::Timeout))
        ));
        town.active.device().host.threads.flush();
        let requests = door.requests.get();
        assert!(requests > 1);
        sleep(50);
        assert!(same(door.requests.get(), requests) && same(notified.replies.get(), 1));
        Ok(())
    }

    #[test]
    fn who_does_not_wait_for_room_is_refused() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let (door, _) = full(&town, 1)?;
        town.connect(&notified)?;
        assert!(same(notified.status(), Some(Err(Status::Refused))));
        assert!(same((door.requests.get(), door.turned_away.get()), (1, 1)));
        Ok(())
    }

    #[test]
    fn who_gives_up_waiting_for_room_is_not_heard_of_again() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let (door, _) = full(&town, 1)?;
        let request = connect(&town, &notified)?;
        assert!(request.abandon());
        sleep(50);
        assert!(same(door.requests.get(), 1));
        assert!(same(notified.status(), Some(Err(Status::Aborted))));
        Ok(())
    }

    #[test]
    fn where_a_listener_without_room_ends_the_next_one_is_reported() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let (_, listener) = full(&town, u32::MAX)?;
        let next = doors(&town, &[ANY])?;
        let request = connect(&town, &notified)?;
        assert!(same(asked(&next), [0]));
        town.cm.unlisten(&listener);
        assert!(wait_until(|| next[0].requests.get() == 1));
        assert!(same(notified.replies.get(), 0));
        request.abandon();
        Ok(())
    }

    #[test]
    fn what_a_listener_that_has_ended_leaves_unanswered_goes_to_the_next() -> Result {
        let timeouts = Timeouts {
            orphan_ms: 20,
            ..Timeouts::DEFAULT
        };
        let (town, notified) = (ConnectionFixture::with(timeouts)?, Told::new()?);
        let first = Door::new(HERE, false)?;
        let listener = town.listen(at(HERE, PORT), &first)?;
        let next = doors(&town, &[ANY])?;
        let request = town.connect(&notified)?;
        let number = request.listener_number().ok_or(ENOENT)?;
        town.cm.unlisten(&listener);
        assert!(wait_until(|| next[0].has_request()));
        assert!(same(first.requests.get(), 1) && same(notified.replies.get(), 0));
        assert!(town.cm.request_at_listener(number).is_none());
        town.accept(&next[0].request()?, &Told::new()?)?;
        assert!(same(notified.status(), Some(Ok((3, 5)))));
        Ok(())
    }

    #[test]
    fn listeners_of_several_namespaces_share_a_loopback_address() -> Result {
        let (town, notified) = (ConnectionFixture::new()?, Told::new()?);
        let door = Door::new(LOCALHOST, false)?;
        let first = town.listen(at(LOCALHOST, PORT), &door)?;
        let second = town.listen(at(LOCALHOST, PORT), &door)?;
        let mut ask = town.ask(&notified)?;
        ask.remote = at(LOCALHOST, PORT);
        let request = town.submit(ask)?;
        assert!(same(door.requests.get(), 1));
        assert!(pass_on(&town, &request).is_ok());
        assert!(same(door.requests.get(), 2));
        request.abandon();
        town.cm.unlisten(&first);
        town.cm.unlisten(&second);
        Ok(())
    }

    #[test]
    fn a_listener_at_a_loopback_address_keeps_no_port_from_its_device() -> Result {
        let town = ConnectionFixture::new()?;
        let door = Door::new(LOCALHOST, false)?;
        let device = Arc::as_ptr(&door).addr();
        town.listen(at(LOCALHOST, PORT), &door)?;
        let held = town.cm.reserve(device, NET, at(LOCALHOST, PORT));
        let held = held.map_err(|_| EADDRINUSE)?;
        // What is reserved is.
        assert!(town.listen(at(LOCALHOST, PORT), &door).err() == Some(EADDRINUSE));
        let listen_on = || -> Result<_> {
            let events = KBox::new(DoorEvents(door.clone()), GFP_KERNEL)?;
            Ok(town.cm.listen_on(held.clone(), events))
        };
        assert!(listen_on()?.is_ok());
        assert!(listen_on()?.err() == Some(AddressError::InUse));
        Ok(())
    }

    #[test]
    fn the_last_port_of_a_loopback_address_is_one_where_somebody_listens() -> Result {
        let town = ConnectionFixture::new()?;
        let door = Door::new(LOCALHOST, false)?;
        let device = Arc::as_ptr(&door).addr();
        let reserve = |port| town.cm.reserve(device, NET, at(LOCALHOST, port));
        let listened = FIRST_PORT + 7;
        town.listen(at(LOCALHOST, listened), &door)?;
        let mut held = KVVec::new();
        for port in FIRST_PORT + 1..=u16::MAX {
            if port != listened {
                held.push(reserve(port).map_err(|_| EADDRINUSE)?, GFP_KERNEL)?;
            }
        }
        for port in [FIRST_PORT, listened] {
            let found = reserve(0).map_err(|_| EADDRINUSE)?;
            assert!(same(found.addr().port(), port));
            held.push(found, GFP_KERNEL)?;
        }
        assert!(reserve(0).err() == Some(AddressError::NoPort));
        Ok(())
    }
}
