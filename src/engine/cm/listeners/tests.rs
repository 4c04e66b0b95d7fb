// SPDX-License-Identifier: GPL-2.0

//! The listeners that are found for an address, and their order.

#[kernel::macros::kunit_tests(ndk_engine_cm_listeners)]
mod tests {
    use core::{
        net::{
            IpAddr,
            Ipv4Addr, //
        },
        num::NonZeroUsize, //
    };

    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use super::super::Listeners;
    use crate::{
        engine::cm::Listener,
        kunit::{
            connection_fixture::*,
            harness::cases, //
        }, //
    };

    /// The highest number in the crowd.
    const LAST: usize = 2000;

    fn listener(net: u64, ip: IpAddr, port: u16, number: usize) -> Result<Arc<Listener>> {
        let log = ListenerLog::new(HERE, false)?;
        let events = KBox::new(ListenerLogEvents(log), GFP_KERNEL)?;
        let number = NonZeroUsize::new(number).ok_or(EINVAL)?;
        Listener::new(net, at(ip, port), number, None, events)
    }

    fn numbers<'a>(found: impl Iterator<Item = &'a Arc<Listener>>) -> Result<KVec<usize>> {
        let mut numbers = KVec::new();
        for listener in found {
            numbers.push(listener.key().number.get(), GFP_KERNEL)?;
        }
        Ok(numbers)
    }

    /// One listener at each of [`LAST`] loopback addresses and ports, in two namespaces.
    fn many_listeners() -> Result<Listeners> {
        let mut listeners = Listeners::new();
        for number in (1..=LAST).rev() {
            let [_, _, high, low] = (number as u32 / 8).to_be_bytes();
            let ip = IpAddr::V4(Ipv4Addr::new(127, 0, high, low));
            let net = NET + (number as u64 & 1);
            let port = PORT - 2 + (number as u16 / 2 % 4);
            listeners.add(listener(net, ip, port, number)?)?;
        }
        Ok(listeners)
    }

    #[test]
    fn an_address_finds_those_that_are_there_in_their_order() -> Result {
        let mut listeners = many_listeners()?;
        for number in cases([LAST + 3, LAST + 1, LAST + 2]) {
            listeners.add(listener(NET, HERE, PORT, number)?)?;
        }
        for (net, ip, port) in cases([
            (NET + 1, HERE, PORT),
            (NET, ELSEWHERE, PORT),
            (NET, HERE, PORT + 1),
        ]) {
            listeners.add(listener(net, ip, port, LAST + 4)?)?;
            kunit_assert_eq!(numbers(listeners.at(net, &at(ip, port)))?[..].len(), 1);
        }
        let found = numbers(listeners.at(NET, &at(HERE, PORT)))?;
        kunit_assert_eq!(&found[..], &[LAST + 1, LAST + 2, LAST + 3]);
        Ok(())
    }

    #[test]
    fn a_destination_finds_wildcards_of_both_families_and_nobody_else() -> Result {
        let mut listeners = many_listeners()?;
        for (n, ip) in cases([ANY6, ANY, HERE, ELSEWHERE, ANY].into_iter().enumerate()) {
            listeners.add(listener(NET, ip, PORT, LAST + 1 + n)?)?;
        }
        let found = numbers(listeners.candidates(NET, &at(HERE, PORT)))?;
        kunit_assert_eq!(&found[..], &[LAST + 3, LAST + 2, LAST + 5, LAST + 1]);
        // The listeners of an unspecified destination are found once.
        let found = numbers(listeners.candidates(NET, &at(ANY, PORT)))?;
        kunit_assert_eq!(&found[..], &[LAST + 2, LAST + 5, LAST + 1]);
        let found = numbers(listeners.candidates(NET + 1, &at(HERE, PORT)))?;
        kunit_assert_eq!(&found[..], &[]);
        Ok(())
    }

    #[test]
    fn one_that_is_removed_is_not_found_and_the_others_are() -> Result {
        let mut listeners = Listeners::new();
        let (one, other) = (
            listener(NET, ANY, PORT, 1)?,
            listener(NET, ANY, PORT, usize::MAX)?,
        );
        listeners.add(one.clone())?;
        listeners.add(other.clone())?;
        listeners.remove(&one);
        listeners.remove(&one);
        let found = numbers(listeners.at(NET, &at(ANY, PORT)))?;
        kunit_assert_eq!(&found[..], &[usize::MAX]);
        listeners.remove(&other);
        assert!(listeners.at(NET, &at(ANY, PORT)).next().is_none());
        Ok(())
    }
}
