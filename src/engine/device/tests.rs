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
            atomic::{
                AtomicFlag,
                Relaxed, //
            },
            Arc,
            Mutex, //
        }, //
    };

    use crate::{
        engine::device::{
            Client,
            ClientUse,
            DeviceList,
            OpenError,
            RdmaDevice,
            SeenFrom, //
        },
        kunit::{
            connection_fixture::ELSEWHERE,
            harness::{
                cases,
                wait_until,
                EngineHost,
                RNR_MS, //
            },
            log::Tally,
            other_context::OtherContext, //
        },
        sys::{
            netdev::{
                Net,
                NetDev, //
            },
            softirq::ProcessQueue, //
        }, //
    };

    /// A user of a device, with its reports and its use.
    #[pin_data]
    struct User {
        gone: Tally,
        /// True if the user ends its use while it is notified.
        leaves: bool,
        #[pin]
        used: Mutex<Option<ClientUse>>,
    }

    impl User {
        /// Makes a user that has the device open.
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
        // A user that left before is not notified.
        kunit_assert_eq!(user.gone.get(), 0);
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
        // A use of the device, or a reference to it, does not hold the network device up.
        assert!(was_notified);
        assert!(!held);
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
            kunit_assert_eq!(user.gone.get(), 1);
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
        kunit_assert_eq!(done.get(), 0);
        last.leave();
        assert!(other_task.is_done());
        kunit_assert_eq!((first.gone.get(), last.gone.get()), (1, 1));
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

    const FIRST: Net<'static> = Net::FIRST;

    #[test]
    fn a_device_is_found_by_its_name_until_it_is_removed() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let devices = DeviceList::new()?;
        let here = FIRST.cookie();
        let (first, second) = (
            device(&engine_host, c"ndk0", here)?,
            device(&engine_host, c"ndk1", here)?,
        );
        devices.add(first.clone())?;
        devices.add(second.clone())?;
        let found = devices.by_name(FIRST, c"ndk1").ok_or(ENOENT)?;
        assert!(Arc::ptr_eq(&found, &second));
        kunit_assert_eq!(*found.name(), *c"ndk1");
        for name in cases([c"ndk", c"ndk10", c""]) {
            assert!(devices.by_name(FIRST, name).is_none());
        }
        devices.remove(&first);
        assert!(devices.by_name(FIRST, c"ndk0").is_none());
        assert!(devices.by_name(FIRST, c"ndk1").is_some());
        Ok(())
    }

    /// The device that is found by a name, as a number: 1, 2 or 0 for none.
    fn which(devices: &DeviceList, name: &CStr, two: [&Arc<RdmaDevice>; 2]) -> usize {
        let found = devices.by_name(FIRST, name);
        let at = found.and_then(|f| two.iter().position(|d| Arc::ptr_eq(&f, d)));
        at.map_or(0, |at| at + 1)
    }

    #[test]
    fn a_device_is_found_by_the_name_that_it_has_now() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let devices = DeviceList::new()?;
        let here = FIRST.cookie();
        let (first, second) = (
            device(&engine_host, c"ndk0", here)?,
            device(&engine_host, c"ndk1", here)?,
        );
        devices.add(first.clone())?;
        devices.add(second.clone())?;
        let find = |name| which(&devices, name, [&first, &second]);
        devices.rename(&first, Some(c"old"));
        kunit_assert_eq!((find(c"ndk0"), find(c"old")), (0, 1));
        // The name goes to another device.
        devices.rename(&second, Some(c"ndk0"));
        kunit_assert_eq!((find(c"ndk0"), find(c"old"), find(c"ndk1")), (2, 1, 0));
        kunit_assert_eq!(*first.name(), *c"old");
        kunit_assert_eq!(*second.name(), *c"ndk0");
        // A device that is registered no more keeps its name for the log alone.
        devices.rename(&second, None);
        kunit_assert_eq!(find(c"ndk0"), 0);
        kunit_assert_eq!(*second.name(), *c"ndk0");
        devices.rename(&first, Some(c"ndk0"));
        kunit_assert_eq!(find(c"ndk0"), 1);
        Ok(())
    }

    /// Says that a device is seen from the first namespace alone, or from all others alone.
    struct Sees(AtomicFlag);

    impl SeenFrom for Sees {
        fn is_seen_from(&self, net: Net<'_>) -> bool {
            self.0.load(Relaxed) == (net.cookie() == FIRST.cookie())
        }
    }

    #[test]
    fn a_device_is_found_where_it_is_seen_alone() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let devices = DeviceList::new()?;
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (mine, other) = (
            device(&engine_host, c"ndk0", FIRST.cookie())?,
            device(&engine_host, c"ndk0", 0)?,
        );
        // Both have one name, as devices of two namespaces may.
        devices.add(other.clone())?;
        devices.add(mine.clone())?;
        let find = || which(&devices, c"ndk0", [&mine, &other]);
        kunit_assert_eq!(find(), 1);
        let sees = [
            Arc::new(Sees(AtomicFlag::new(false)), GFP_KERNEL)?,
            Arc::new(Sees(AtomicFlag::new(false)), GFP_KERNEL)?,
        ];
        mine.set_visibility(sees[0].clone());
        other.set_visibility(sees[1].clone());
        kunit_assert_eq!(find(), 0);
        assert!(devices.by_addr(FIRST, localhost).is_none());
        // The other device is seen here, and has its addresses elsewhere.
        sees[1].0.store(true, Relaxed);
        kunit_assert_eq!(find(), 2);
        assert!(devices.by_addr(FIRST, localhost).is_none());
        sees[1].0.store(false, Relaxed);
        sees[0].0.store(true, Relaxed);
        let netdev = NetDev::loopback()?;
        let here = netdev.owns_addr(localhost) || netdev.is_local_addr(localhost);
        kunit_assert_eq!(find(), 1);
        kunit_assert_eq!(devices.by_addr(FIRST, localhost).is_some(), here);
        Ok(())
    }

    #[test]
    fn a_device_is_found_by_an_address_of_its_network_device() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let devices = DeviceList::new()?;
        let mine = device(&engine_host, c"ndk0", FIRST.cookie())?;
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        devices.add(device(&engine_host, c"ndk1", 0)?)?;
        assert!(devices.by_addr(FIRST, localhost).is_none());
        devices.add(mine.clone())?;
        let netdev = NetDev::loopback()?;
        // Loopback has its address as long as it is up.
        let here = netdev.owns_addr(localhost) || netdev.is_local_addr(localhost);
        let found = devices.by_addr(FIRST, localhost);
        kunit_assert_eq!(found.as_ref().is_some_and(|d| Arc::ptr_eq(d, &mine)), here);
        assert!(devices.by_addr(FIRST, ELSEWHERE).is_none());
        assert!(mine.netdev().is_some_and(|n| n == netdev));
        mine.put_netdev();
        assert!(mine.netdev().is_none());
        assert!(devices.by_addr(FIRST, localhost).is_none());
        assert!(devices.by_name(FIRST, c"ndk0").is_some());
        Ok(())
    }
}
