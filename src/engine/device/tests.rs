// SPDX-License-Identifier: GPL-2.0

//! Devices: found by name and address, opened by faces, and left when the device goes.

#[kernel::macros::kunit_tests(ndk_engine_device)]
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
        engine::{
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
                EngineHost,
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
        /// Whether it leaves while it is being notified.
        leaves: bool,
        #[pin]
        used: Mutex<Option<ClientUse>>,
    }

    impl User {
        /// Has the device open.
        fn of(device: &Arc<RdmaDevice>, leaves: bool) -> Result<Arc<Self>> {
            let user = Arc::pin_init(
                pin_init!(Self {
                    gone: Tally::new(),
                    leaves,
                    used <- new_mutex!(None),
                }),
                GFP_KERNEL,
            )?;
            let used = device.open(user.clone()).map_err(|_| ENODEV)?;
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

    fn device(engine_host: &EngineHost, name: &CStr, net: u64) -> Result<Arc<RdmaDevice>> {
        engine_host.device_named(name, net)
    }

    /// Returns true if the device refuses to be opened because the device goes.
    fn is_shut(device: &Arc<RdmaDevice>) -> Result<bool> {
        let user = Arc::pin_init(
            pin_init!(User {
                gone: Tally::new(),
                leaves: false,
                used <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )?;
        Ok(device.open(user).err() == Some(OpenError::Closed))
    }

    #[test]
    fn a_device_that_nobody_uses_is_shut_at_once_and_stays_shut() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = device(&engine_host, c"ndk0", 1)?;
        let user = User::of(&device, false)?;
        user.leave();
        assert!(!is_shut(&device)?);
        device.shut();
        assert!(is_shut(&device)?);
        device.shut();
        // Whoever had left by then is not notified.
        assert!(same(user.gone.get(), 0));
        Ok(())
    }

    #[test]
    fn a_device_that_is_shut_lets_go_of_its_network_device_at_once() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let queue = ProcessQueue::new(c"ndk_test_device")?;
        let device = device(&engine_host, c"ndk0", 1)?;
        let user = User::of(&device, false)?;
        assert!(device.netdev().is_some());
        let other_task = {
            let device = device.clone();
            OtherContext::new(move || device.shut())?
        };
        assert!(other_task.begin(&queue));
        let was_notified = wait_until(|| user.gone.get() == 1);
        let held = device.netdev().is_some();
        user.leave();
        assert!(other_task.is_done());
        queue.flush();
        // Whoever still uses or keeps the device does not hold the network device up.
        assert!(was_notified && !held);
        Ok(())
    }

    #[test]
    fn each_user_is_reported_once_and_may_leave_meanwhile() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = device(&engine_host, c"ndk0", 1)?;
        let mut users = KVec::new();
        for _ in 0..5 {
            users.push(User::of(&device, true)?, GFP_KERNEL)?;
        }
        device.shut();
        for user in &users {
            assert!(same(user.gone.get(), 1));
        }
        Ok(())
    }

    #[test]
    fn shutting_lasts_until_the_last_user_has_left() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let queue = ProcessQueue::new(c"ndk_test_device")?;
        let device = device(&engine_host, c"ndk0", 1)?;
        let (first, last) = (User::of(&device, false)?, User::of(&device, false)?);
        let done = Arc::new(Tally::new(), GFP_KERNEL)?;
        let other_task = {
            let (device, done) = (device.clone(), done.clone());
            OtherContext::new(move || {
                device.shut();
                done.hit();
            })?
        };
        assert!(other_task.begin(&queue));
        assert!(wait_until(|| first.gone.get() + last.gone.get() == 2));
        assert!(is_shut(&device)?);
        first.leave();
        assert!(same(done.get(), 0));
        last.leave();
        assert!(other_task.is_done());
        assert!(same((first.gone.get(), last.gone.get()), (1, 1)));
        queue.flush();
        Ok(())
    }

    #[test]
    fn a_use_knows_its_device_and_the_device_forgets_its_user() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = device(&engine_host, c"ndk0", 1)?;
        let user = User::of(&device, false)?;
        let used = user.used.lock().take().ok_or(ENOENT)?;
        assert!(Arc::ptr_eq(used.device(), &device));
        drop(used);
        assert!(Arc::into_unique_or_drop(user).is_some());
        Ok(())
    }

    #[test]
    fn a_device_is_found_by_its_name_until_it_is_removed() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let devices = DeviceList::new()?;
        let (first, second) = (
            device(&engine_host, c"ndk0", 1)?,
            device(&engine_host, c"ndk1", 1)?,
        );
        devices.add(first.clone())?;
        devices.add(second.clone())?;
        let found = devices.by_name(c"ndk1").ok_or(ENOENT)?;
        assert!(Arc::ptr_eq(&found, &second) && found.name() == c"ndk1");
        assert!(devices.by_name(c"ndk").is_none() && devices.by_name(c"ndk10").is_none());
        devices.remove(&first);
        assert!(devices.by_name(c"ndk0").is_none() && devices.by_name(c"ndk1").is_some());
        Ok(())
    }

    #[test]
    fn a_device_is_found_by_an_address_of_its_network_device() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let devices = DeviceList::new()?;
        let device = device(&engine_host, c"ndk0", 7)?;
        devices.add(device.clone())?;
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let netdev = NetDev::loopback()?;
        // Loopback has its address as long as it is up.
        let here = netdev.owns_addr(localhost) || netdev.is_local_addr(localhost);
        assert!(same(devices.by_addr(7, localhost).is_some(), here));
        assert!(devices.by_addr(8, localhost).is_none());
        assert!(devices.by_addr(7, ELSEWHERE).is_none());
        assert!(device.netdev().is_some_and(|n| n == netdev));
        device.put_netdev();
        assert!(device.netdev().is_none() && devices.by_addr(7, localhost).is_none());
        assert!(devices.by_name(c"ndk0").is_some());
        Ok(())
    }
}
