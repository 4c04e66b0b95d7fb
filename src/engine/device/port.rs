// SPDX-License-Identifier: GPL-2.0

//! The port of a device while an injected fault keeps it down: messages wait, and who wants to hear
//! of it does.
//!
//! The fault ends when it is turned off, too. Nobody tells the port of that: whoever waits for it,
//! and its timer, look every [`LOOK_NS`].
//!
//! While the network device is down the port is down anyway, as `ib_core` tells its consumers:
//! nothing is reported then.
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

/// The longest time in which nobody looks whether a port is up again.
const LOOK_NS: u64 = 10_000_000;

/// Who is notified of the port.
pub(crate) trait PortEvents: Send + Sync {
    /// The port went down or came up. Any context, under a lock of the device's: it is only passed
    /// on.
    fn port_changed(&self, is_up: bool);
}

struct Reports {
    events: Option<Arc<dyn PortEvents>>,
    /// What was reported last.
    is_down: bool,
    /// The port goes down no more.
    is_over: bool,
}

/// When the port of a device is up again.
#[pin_data]
pub(super) struct Port {
    /// In nanoseconds of monotonic time. Changed under the lock of `reports`.
    up_at: Atomic<u64>,
    /// Held while something is reported, so that it comes in order.
    #[pin]
    reports: SpinLockIrq<Reports>,
    /// Armed under the lock of `reports`.
    #[pin]
    timer: HrTimer<RdmaDevice>,
}

impl Port {
    /// A port that is up, and of which nobody hears.
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
    /// Passes on that the port went down or came up, once.
    fn report_port(&self, reports: &mut Reports, is_down: bool) {
        if core::mem::replace(&mut reports.is_down, is_down) == is_down {
            return;
        }
        let may_be_up = self.netdev().is_some_and(|netdev| netdev.is_up());
        if let Some(events) = reports.events.as_ref().filter(|_| may_be_up) {
            events.port_changed(!is_down);
        }
    }

    /// Who is notified of the port from now on; `None` for nobody.
    pub(crate) fn set_port_events(&self, events: Option<Arc<dyn PortEvents>>) {
        let before = core::mem::replace(&mut self.port.reports.lock().events, events);
        drop(before);
    }

    /// Keeps the port down for so many microseconds from now on, or longer if it was to be.
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

    /// In how many nanoseconds to look again, while a fault keeps the port down.
    pub(crate) fn look_at_port_in(&self) -> Option<u64> {
        let left = self.port.up_at.load(Relaxed).saturating_sub(time::now_ns());
        (left > 0 && self.faults.is_set(Fault::PortDown)).then(|| left.min(LOOK_NS))
    }

    /// Returns true while a fault keeps the port down.
    pub(crate) fn is_port_down(&self) -> bool {
        self.look_at_port_in().is_some()
    }

    /// The port goes down no more, and nobody hears of it. May sleep.
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
