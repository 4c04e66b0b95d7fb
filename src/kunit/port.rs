// SPDX-License-Identifier: GPL-2.0

//! Ports: found by name and address, opened by faces, and left when the device goes.

#[kernel::macros::kunit_tests(ndk_port)]
mod tests {
    use core::net::{
        IpAddr,
        Ipv4Addr, //
    };

    use kernel::{
        new_mutex,
        prelude::*,
        sync::{
            Arc,
            Mutex, //
        }, //
    };

    use crate::{
        direct,
        engine::{
            connection::{
                ConnectionManager,
                Timeouts, //
            },
            device::{
                Client,
                ClientUse,
                DeviceList,
                OpenError,
                RdmaDevice, //
            }, //
        },
        kunit::{
            connection_fixture::ELSEWHERE,
            harness::{
                same,
                wait_until,
                Lab,
                RNR_MS, //
            },
            log::Tally,
            other_context::OtherContext, //
        },
        sys::{
            netdev::NetDev,
            softirq::ProcessQueue, //
        }, //
    };

    /// A user, what it was notified, and what it keeps open.
    #[pin_data]
    struct User {
        gone: Tally,
        /// Whether it leaves while it is notified to.
        leaves: bool,
        #[pin]
        used: Mutex<Option<ClientUse>>,
    }

    impl User {
        /// Has the port open.
        fn of(port: &Arc<RdmaDevice>, leaves: bool) -> Result<Arc<Self>> {
            let user = Arc::pin_init(
                pin_init!(Self {
                    gone: Tally::new(),
                    leaves,
                    used <- new_mutex!(None),
                }),
                GFP_KERNEL,
            )?;
            let used = port.open(user.clone()).map_err(|_| ENODEV)?;
            *user.used.lock() = Some(used);
            Ok(user)
        }

        fn leave(&self) {
            let used = self.used.lock().take();
            drop(used);
        }
    }

    impl Client for User {
        fn device_gone(&self) {
            self.gone.hit();
            if self.leaves {
                self.leave();
            }
        }
    }

    fn port(lab: &Lab, name: &CStr, net: u64) -> Result<Arc<RdmaDevice>> {
        let exchange = ConnectionManager::new(direct::connect, Timeouts::DEFAULT)?;
        RdmaDevice::new(lab.adapter_named(name, net)?, exchange, NetDev::loopback()?)
    }

    /// Returns true if the port refuses to be opened because the device goes.
    fn is_shut(port: &Arc<RdmaDevice>) -> Result<bool> {
        let user = Arc::pin_init(
            pin_init!(User {
                gone: Tally::new(),
                leaves: false,
                used <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )?;
        Ok(port.open(user).err() == Some(OpenError::Closed))
    }

    #[test]
    fn a_port_that_nobody_uses_is_shut_at_once_and_stays_shut() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let port = port(&lab, c"ndk0", 1)?;
        let user = User::of(&port, false)?;
        user.leave();
        assert!(!is_shut(&port)?);
        port.shut();
        assert!(is_shut(&port)?);
        port.shut();
        // Whoever had left by then hears nothing.
        assert!(same(user.gone.get(), 0));
        Ok(())
    }

    #[test]
    fn a_port_that_is_shut_lets_go_of_its_network_device_at_once() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let queue = ProcessQueue::new(c"ndk_test_port")?;
        let port = port(&lab, c"ndk0", 1)?;
        let user = User::of(&port, false)?;
        assert!(port.netdev().is_some());
        let errand = {
            let port = port.clone();
            OtherContext::new(move || port.shut())?
        };
        assert!(errand.begin(&queue));
        let was_told = wait_until(|| user.gone.get() == 1);
        let held = port.netdev().is_some();
        user.leave();
        assert!(errand.is_done());
        queue.flush();
        // Whoever still uses or keeps the port does not hold the network device up.
        assert!(was_told && !held);
        Ok(())
    }

    #[test]
    fn each_user_is_told_once_and_may_leave_meanwhile() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let port = port(&lab, c"ndk0", 1)?;
        let mut users = KVec::new();
        for _ in 0..5 {
            users.push(User::of(&port, true)?, GFP_KERNEL)?;
        }
        port.shut();
        for user in &users {
            assert!(same(user.gone.get(), 1));
        }
        Ok(())
    }

    #[test]
    fn shutting_lasts_until_the_last_user_has_left() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let queue = ProcessQueue::new(c"ndk_test_port")?;
        let port = port(&lab, c"ndk0", 1)?;
        let (first, last) = (User::of(&port, false)?, User::of(&port, false)?);
        let done = Arc::new(Tally::new(), GFP_KERNEL)?;
        let errand = {
            let (port, done) = (port.clone(), done.clone());
            OtherContext::new(move || {
                port.shut();
                done.hit();
            })?
        };
        assert!(errand.begin(&queue));
        assert!(wait_until(|| first.gone.get() + last.gone.get() == 2));
        assert!(is_shut(&port)?);
        first.leave();
        assert!(same(done.get(), 0));
        last.leave();
        assert!(errand.is_done());
        assert!(same((first.gone.get(), last.gone.get()), (1, 1)));
        queue.flush();
        Ok(())
    }

    #[test]
    fn a_use_knows_its_port_and_the_port_forgets_its_user() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let port = port(&lab, c"ndk0", 1)?;
        let user = User::of(&port, false)?;
        let used = user.used.lock().take().ok_or(ENOENT)?;
        assert!(Arc::ptr_eq(used.port(), &port));
        drop(used);
        assert!(Arc::into_unique_or_drop(user).is_some());
        Ok(())
    }

    #[test]
    fn a_port_is_found_by_its_name_until_it_is_removed() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let ports = DeviceList::new()?;
        let (first, second) = (port(&lab, c"ndk0", 1)?, port(&lab, c"ndk1", 1)?);
        ports.add(first.clone())?;
        ports.add(second.clone())?;
        let found = ports.by_name(c"ndk1").ok_or(ENOENT)?;
        assert!(Arc::ptr_eq(&found, &second) && found.name() == c"ndk1");
        assert!(ports.by_name(c"ndk").is_none() && ports.by_name(c"ndk10").is_none());
        ports.remove(&first);
        assert!(ports.by_name(c"ndk0").is_none() && ports.by_name(c"ndk1").is_some());
        Ok(())
    }

    #[test]
    fn a_port_is_found_by_an_address_of_its_network_device() -> Result {
        let lab = Lab::new(RNR_MS)?;
        let ports = DeviceList::new()?;
        let port = port(&lab, c"ndk0", 7)?;
        ports.add(port.clone())?;
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let netdev = NetDev::loopback()?;
        // Loopback has its address as long as it is up.
        let here = netdev.owns_addr(localhost) || netdev.is_local_addr(localhost);
        assert!(same(ports.by_addr(7, localhost).is_some(), here));
        assert!(ports.by_addr(8, localhost).is_none());
        assert!(ports.by_addr(7, ELSEWHERE).is_none());
        assert!(port.netdev().is_some_and(|n| n == netdev));
        port.forget_netdev();
        assert!(port.netdev().is_none() && ports.by_addr(7, localhost).is_none());
        assert!(ports.by_name(c"ndk0").is_some());
        Ok(())
    }
}
