// SPDX-License-Identifier: GPL-2.0

//! Recorders of the engine's reports to its user, with their number and context.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    engine::{
        cq::{
            CqEvents,
            Failure, //
        },
        notifier::Called,
        qp::QpEvents,
        srq::SrqEvents,
        transport::LinkOwner, //
    },
    sys::{
        cpu,
        softirq, //
    }, //
};

/// A number that only grows.
pub(crate) struct Tally(Atomic<u32>);

impl Tally {
    /// Zero.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds one; returns the number before.
    pub(crate) fn hit(&self) -> u32 {
        self.0.fetch_add(1, Full)
    }

    /// The present number.
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// Work that a test does inside a call of its completion queue.
pub(crate) type Hook = Arc<dyn Fn(bool) + Send + Sync>;

/// The reports of a completion queue.
#[pin_data]
pub(crate) struct CqLog {
    /// Calls because an arm was satisfied.
    pub(crate) calls: Tally,
    /// Of `calls`, those for a failed queue.
    pub(crate) calls_failed: Tally,
    /// Of `calls`, those for a queue that was given up.
    pub(crate) calls_fatal: Tally,
    /// Calls because the queue failed.
    pub(crate) failures: Tally,
    /// Of `failures`, those of a queue that was given up.
    pub(crate) fatal: Tally,
    /// Calls that began while another one was running.
    pub(crate) overlaps: Tally,
    /// Calls with interrupts off, which includes those under a lock of the engine.
    pub(crate) misplaced: Tally,
    /// The processor of the last call.
    cpu: Atomic<u32>,
    running: Atomic<u32>,
    #[pin]
    hook: SpinLockIrq<Option<Hook>>,
}

impl CqLog {
    /// A log without entries. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                calls: Tally::new(),
                calls_failed: Tally::new(),
                calls_fatal: Tally::new(),
                failures: Tally::new(),
                fatal: Tally::new(),
                overlaps: Tally::new(),
                misplaced: Tally::new(),
                cpu: Atomic::new(u32::MAX),
                running: Atomic::new(0),
                hook <- new_spinlock_irq!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Runs `hook` inside each later call.
    pub(crate) fn set_hook(&self, hook: Option<Hook>) {
        let old = core::mem::replace(&mut *self.hook.lock(), hook);
        drop(old);
    }

    /// The processor of the last call.
    pub(crate) fn cpu(&self) -> u32 {
        self.cpu.load(Relaxed)
    }

    fn enter(&self) {
        if self.running.fetch_add(1, Full) != 0 {
            self.overlaps.hit();
        }
        if !softirq::may_run_here() {
            self.misplaced.hit();
        }
        self.cpu.store(cpu::current(), Relaxed);
    }

    fn leave(&self) {
        self.running.fetch_sub(1, Full);
    }
}

/// The user of one completion queue.
pub(crate) struct CqUser(pub(crate) Arc<CqLog>);

impl CqEvents for CqUser {
    fn notify(&self, failure: Option<Failure>) {
        self.0.enter();
        let hook = self.0.hook.lock().clone();
        if let Some(hook) = hook {
            hook(failure.is_some());
        }
        if failure.is_some() {
            self.0.calls_failed.hit();
        }
        if failure == Some(Failure::Fatal) {
            self.0.calls_fatal.hit();
        }
        self.0.leave();
        self.0.calls.hit();
    }

    fn failed(&self, failure: Failure) -> Called {
        self.0.enter();
        self.0.leave();
        if failure == Failure::Fatal {
            self.0.fatal.hit();
        }
        self.0.failures.hit();
        Called::Done
    }
}

/// The reports of a queue pair.
pub(crate) struct QpLog {
    pub(crate) last_receives: Tally,
    pub(crate) broken: Tally,
}

impl QpLog {
    /// A log without entries. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let log = Self {
            last_receives: Tally::new(),
            broken: Tally::new(),
        };
        Ok(Arc::new(log, GFP_KERNEL)?)
    }
}

/// The user of one queue pair.
pub(crate) struct QpUser(pub(crate) Arc<QpLog>);

impl QpEvents for QpUser {
    fn last_receive_reached(&self) {
        self.0.last_receives.hit();
    }

    fn broken(&self) {
        self.0.broken.hit();
    }
}

/// The reports of a shared receive queue.
pub(crate) struct SrqLog {
    pub(crate) limits: Tally,
    pub(crate) failures: Tally,
}

impl SrqLog {
    /// A log without entries. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let log = Self {
            limits: Tally::new(),
            failures: Tally::new(),
        };
        Ok(Arc::new(log, GFP_KERNEL)?)
    }
}

/// The user of one shared receive queue.
pub(crate) struct SrqUser(pub(crate) Arc<SrqLog>);

impl SrqEvents for SrqUser {
    fn limit_reached(&self) {
        self.0.limits.hit();
    }

    fn failed(&self) -> Called {
        self.0.failures.hit();
        Called::Done
    }
}

/// The owner of a connection, and the number of its notifications that the connection is gone.
pub(crate) struct Owner {
    pub(crate) notified: Tally,
}

impl Owner {
    /// An owner without notifications. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let notified = Tally::new();
        Ok(Arc::new(Self { notified }, GFP_KERNEL)?)
    }
}

impl LinkOwner for Owner {
    fn disconnected(self: Arc<Self>, _by_peer: bool) {
        self.notified.hit();
    }
}
