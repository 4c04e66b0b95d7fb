// SPDX-License-Identifier: GPL-2.0

//! A port that an injected fault keeps down.

use kernel::sync::Arc;

use super::*;
use crate::{
    engine::device::{
        PortEvents,
        RdmaDevice, //
    },
    kunit::{
        harness::{
            flush_work,
            sleep, //
        },
        log::Tally, //
    },
    sys::time::now_ms, //
};

/// Counts the reports of a device about its port.
struct PortLog {
    up: Tally,
    down: Tally,
    /// The network device is up, so the port is reported.
    is_heard: bool,
}

impl PortLog {
    fn of(device: &RdmaDevice) -> Result<Arc<Self>> {
        let log = Self {
            up: Tally::new(),
            down: Tally::new(),
            is_heard: device.netdev().is_some_and(|netdev| netdev.is_up()),
        };
        let log = Arc::new(log, GFP_KERNEL)?;
        device.set_port_events(Some(log.clone()));
        Ok(log)
    }

    /// The count of each report once the port has been down.
    fn each(&self) -> u32 {
        self.is_heard.into()
    }
}

impl PortEvents for PortLog {
    fn port_changed(&self, is_up: bool) {
        match is_up {
            true => self.up.hit(),
            false => self.down.hit(),
        };
    }
}

#[kernel::macros::kunit_tests(ndk_direct_tests_inject_port)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_down_holds_messages_up_and_says_so() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let device = pair.a.device();
        let log = PortLog::of(device)?;
        let order = FaultSettings {
            nth: 2,
            ..lasting(200_000)
        };
        let fault = Ordered::new(device, Fault::PortDown, order);
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[])?;
        pair.a.post(1, SEND, &[])?;
        assert!(pair.a.sends.next_is(1, Status::Success));
        assert!(!device.is_port_down());
        kunit_assert_eq!(log.down.get(), 0);
        let begin = now_ms();
        pair.a.post(2, SEND, &[])?;
        flush_work(device);
        kunit_assert_eq!(log.down.get(), log.each());
        assert!(device.is_port_down() || now_ms() - begin >= 200);
        assert!(pair.a.sends.next_is(2, Status::Success));
        assert!(now_ms() - begin >= 200);
        assert!(wait_until(|| log.up.get() == log.each()));
        assert!(!device.is_port_down());
        drop(fault);
        device.shut();
        Ok(())
    }

    #[test]
    fn a_port_comes_up_when_its_fault_is_turned_off() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let device = pair.a.device();
        let log = PortLog::of(device)?;
        // Another fault stays on.
        let never = nth(u32::MAX);
        let _other = Ordered::new(device, Fault::DelayMessage, never);
        // The fault lasts longer than any wait of this test.
        let fault = Ordered::new(device, Fault::PortDown, lasting(EVER_US));
        pair.b.receive(1, &[])?;
        pair.a.post(1, SEND, &[])?;
        assert!(pair.a.sends.stays_empty());
        assert!(device.is_port_down());
        drop(fault);
        assert!(!device.is_port_down());
        assert!(pair.a.sends.next_is(1, Status::Success));
        assert!(wait_until(|| log.up.get() == log.each()));
        device.shut();
        Ok(())
    }

    #[test]
    fn nobody_hears_of_a_port_whose_network_device_is_gone() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let device = pair.a.device();
        let log = PortLog::of(device)?;
        let fault = Ordered::new(device, Fault::PortDown, lasting(EVER_US));
        pair.b.receive(1, &[])?;
        pair.a.post(1, SEND, &[])?;
        assert!(pair.a.sends.stays_empty());
        kunit_assert_eq!(log.down.get(), log.each());
        device.put_netdev();
        drop(fault);
        assert!(pair.a.sends.next_is(1, Status::Success));
        sleep(50);
        kunit_assert_eq!(log.up.get(), 0);
        device.shut();
        Ok(())
    }
}
