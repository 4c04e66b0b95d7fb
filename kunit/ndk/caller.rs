// SPDX-License-Identifier: GPL-2.0

//! [`Caller`]: a completion queue whose notifications run a hook of the test.

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

use super::completion::{
    made,
    AutoClose, //
};
use crate::{
    kunit::{
        harness::{
            flush_work,
            same, //
        },
        log::Tally, //
    },
    ndk::{
        adapter::Adapter,
        cq::{
            Cq,
            CqUser, //
        },
        life::Ref,
        srq::SrqUser,
        status::NtStatus, //
    },
    rdma::values::completion::Wc,
    sys::softirq, //
};

/// A hook that runs inside a notification, with its status.
pub(super) type Hook = KBox<dyn Fn(NtStatus) + Send + Sync>;

/// The notifications of one queue.
#[pin_data]
pub(super) struct CallLog {
    pub(super) calls: Tally,
    /// Notifications that began while another one ran.
    pub(super) overlaps: Tally,
    /// Notifications outside of softirq context.
    pub(super) misplaced: Tally,
    status: Atomic<i32>,
    running: Atomic<u32>,
    #[pin]
    hook: SpinLockIrq<Option<Arc<Hook>>>,
}

impl CallLog {
    /// A log without notifications. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                calls: Tally::new(),
                overlaps: Tally::new(),
                misplaced: Tally::new(),
                status: Atomic::new(0),
                running: Atomic::new(0),
                hook <- new_spinlock_irq!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Runs `hook` inside each later notification. May sleep.
    pub(super) fn set_hook(&self, hook: impl Fn(NtStatus) + Send + Sync + 'static) -> Result {
        let hook: Hook = KBox::new(hook, GFP_KERNEL)?;
        *self.hook.lock() = Some(Arc::new(hook, GFP_KERNEL)?);
        Ok(())
    }

    /// Removes the hook, which may hold a reference to the queue that it serves.
    pub(super) fn clear_hook(&self) {
        let old = self.hook.lock().take();
        drop(old);
    }

    /// The status of the last notification.
    pub(super) fn status(&self) -> i32 {
        self.status.load(Relaxed)
    }

    /// Returns true if all notifications came in softirq context and none overlapped.
    pub(super) fn is_proper(&self) -> bool {
        same(self.overlaps.get(), 0) && same(self.misplaced.get(), 0)
    }

    fn call(&self, notified: NtStatus) {
        if self.running.fetch_add(1, Full) != 0 {
            self.overlaps.hit();
        }
        if !softirq::is_here() {
            self.misplaced.hit();
        }
        self.status.store(notified.raw(), Relaxed);
        let hook = self.hook.lock().clone();
        if let Some(hook) = hook {
            (*hook)(notified);
        }
        self.running.fetch_sub(1, Full);
        self.calls.hit();
    }

    /// A completion queue's user that is this log.
    pub(super) fn cq_user(self: &Arc<Self>) -> Result<CqUser> {
        let log = self.clone();
        Ok(KBox::new(move |notified| log.call(notified), GFP_KERNEL)?)
    }

    /// A shared queue's user that is this log.
    pub(super) fn srq_user(self: &Arc<Self>) -> Result<SrqUser> {
        let log = self.clone();
        Ok(Some(KBox::new(
            move |notified| log.call(notified),
            GFP_KERNEL,
        )?))
    }
}

/// A completion queue and its notifications.
pub(super) struct Caller {
    pub(super) cq: AutoClose<Cq>,
    pub(super) log: Arc<CallLog>,
    adapter: Ref<Adapter>,
}

impl Caller {
    /// A queue for `depth` results. May sleep.
    pub(super) fn new(adapter: &Ref<Adapter>, depth: u32) -> Result<Self> {
        let log = CallLog::new()?;
        let user = log.cq_user()?;
        Ok(Self {
            cq: made(|done| adapter.create_cq(depth, None, user, done))?,
            log,
            adapter: adapter.clone(),
        })
    }

    /// Completes `entry`; returns true if the queue took it.
    pub(super) fn push(&self, entry: Wc) -> bool {
        self.cq.engine().push(&entry).is_ok()
    }

    /// Completes `entry` `count` times; returns true if the queue took all.
    pub(super) fn push_all(&self, entry: Wc, count: u32) -> bool {
        (0..count).all(|_| self.push(entry))
    }

    /// Takes up to `most` results; returns their number.
    pub(super) fn take(&self, most: u32) -> u32 {
        self.cq.results(most, |_| ())
    }

    /// Returns true if the queue has notified `times` times, each time properly, after the pending
    /// work has run.
    pub(super) fn has_called(&self, times: u32) -> bool {
        flush_work(self.adapter.device());
        same(self.log.calls.get(), times) && self.log.is_proper()
    }

    /// The same, and the last notification had `status`.
    pub(super) fn has_notified(&self, times: u32, status: NtStatus) -> bool {
        self.has_called(times) && same(self.log.status(), status.raw())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.log.clear_hook();
    }
}
