// SPDX-License-Identifier: GPL-2.0

//! The port of a device that an injected fault keeps down: messages wait, and the consumer of port
//! events is notified.
//!
//! The fault ends when it is turned off, too. That does not notify the port: messages that wait for
//! it, and its timer, look every [`LOOK_NS`].
//!
//! While the network device is down the port is down anyway, as `ib_core` tells its consumers: the
//! port reports no change then.
//!
//! Context: any, but for [`RdmaDevice::end_port`].
//!
//! Tests: `direct/tests/inject/port.rs`.

use kernel::sync::atomic::{
    ordering::Relaxed,
    Atomic, //
};

use crate::{
    engine::{
        inject::Fault,
        prelude::*, //
    },
    sys::{
        hrtimer::HrTimer,
        time,
        timer::Expires, //
    }, //
};

/// The longest time between two looks at a port that is down, in nanoseconds.
const LOOK_NS: u64 = 10_000_000;

/// The consumer of port events.
pub(crate) trait PortEvents: Send + Sync {
    /// Reports that the port went down or came up. Any context, under a lock of the device: the
    /// call only passes the report on.
    fn port_changed(&self, is_up: bool);
}

struct Reports {
    events: Option<Arc<dyn PortEvents>>,
    /// The state that was reported last.
    is_down: bool,
    /// The port goes down no more.
    is_over: bool,
}

/// The port of a device, with the time at which it is up again.
#[pin_data]
pub(super) struct Port {
    /// In nanoseconds of monotonic time. Changed under the lock of `reports`.
    up_at: Atomic<u64>,
    /// Locked during a report, so that reports come in order.
    #[pin]
    reports: SpinLockIrq<Reports>,
    /// Armed under the lock of `reports`.
    #[pin]
    timer: HrTimer<RdmaDevice>,
}

impl Port {
    /// A port that is up, without a consumer of its events.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            up_at: Atomic::new(0),
            reports <- new_spinlock_irq!(Reports {
                events: None,
                is_down: false,
                is_over: false,
            }),
            timer <- HrTimer::new(),
        })
    }
}

impl RdmaDevice {
    /// Reports that the port went down or came up, once for each change.
    fn report_port(&self, reports: &mut Reports, is_down: bool) {
        if core::mem::replace(&mut reports.is_down, is_down) == is_down {
            return;
        }
        let may_be_up = self.netdev().is_some_and(|netdev| netdev.is_up());
        if let Some(events) = reports.events.as_ref().filter(|_| may_be_up) {
            events.port_changed(!is_down);
        }
    }

    /// Sets the consumer of port events; `None` for none.
    pub(crate) fn set_port_events(&self, events: Option<Arc<dyn PortEvents>>) {
        let before = core::mem::replace(&mut self.port.reports.lock().events, events);
        drop(before);
    }

    /// Keeps the port down for `usec` microseconds from now on, or longer if an earlier fault does.
    #[cold]
    pub(crate) fn port_down(self: &Arc<Self>, usec: u32) {
        let mut reports = self.port.reports.lock();
        if reports.is_over {
            return;
        }
        let ns = u64::from(usec) * 1000;
        let up_at = time::now_ns().saturating_add(ns);
        let latest = up_at.max(self.port.up_at.load(Relaxed));
        self.port.up_at.store(latest, Relaxed);
        self.port.timer.arm(self, ns.min(LOOK_NS));
        self.report_port(&mut reports, true);
    }

    /// The nanoseconds until the next look at the port, while a fault keeps it down.
    pub(crate) fn look_at_port_in(&self) -> Option<u64> {
        let left = self.port.up_at.load(Relaxed).saturating_sub(time::now_ns());
        (left > 0 && self.faults.is_set(Fault::PortDown)).then(|| left.min(LOOK_NS))
    }

    /// Returns true while a fault keeps the port down.
    pub(crate) fn is_port_down(&self) -> bool {
        self.look_at_port_in().is_some()
    }

    /// Keeps the port from going down again, and ends its reports. May sleep.
    pub(super) fn end_port(&self) {
        let mut reports = self.port.reports.lock();
        reports.is_over = true;
        let events = reports.events.take();
        drop(reports);
        drop(events);
        self.port.timer.stop();
    }
}

impl Expires for RdmaDevice {
    fn expired(this: Arc<Self>) {
        let mut reports = this.port.reports.lock();
        match this.look_at_port_in().filter(|_| !reports.is_over) {
            Some(left) => this.port.timer.arm(&this, left),
            None => {
                this.port.up_at.store(0, Relaxed);
                this.report_port(&mut reports, false);
            }
        }
    }
}
