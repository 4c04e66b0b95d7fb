// SPDX-License-Identifier: GPL-2.0

//! The decision to call the consumer of a completion queue, and the call.
//!
//! Tests: `engine/cq/tests.rs`.

use super::{
    moderation::Decision,
    CompletionQueue,
    CqState,
    FAILED,
    NOTIFY, //
};
use crate::{
    engine::{
        notifier::{
            notifies,
            Called,
            Notifier,
            Notifies, //
        },
        prelude::*, //
    },
    sys::{
        time,
        timer::Expires,
        trace, //
    }, //
};

impl CompletionQueue {
    /// Returns true if the consumer is to be called now; `satisfied` says that an arm was
    /// satisfied. Under the lock of `inner`.
    #[inline]
    pub(super) fn should_notify(self: &Arc<Self>, inner: &mut CqState, satisfied: bool) -> bool {
        if inner.moderator.is_off() {
            return satisfied;
        }
        let urgent = inner.has_unreported_failure || inner.is_full();
        let unreported = inner.unreported;
        let decision = inner
            .moderator
            .decide(satisfied, unreported, urgent, time::now_ns);
        self.apply(decision)
    }

    /// Returns true if the consumer is to be called now; sets the timer accordingly. Under the lock
    /// of `inner`.
    pub(super) fn apply(self: &Arc<Self>, decision: Decision) -> bool {
        match decision {
            Decision::Nothing => (),
            Decision::Hold(Some(ns)) => self.timer.arm(self, ns),
            Decision::Hold(None) | Decision::Call => {
                // A timer that runs out now finds no call to make, or makes the next call early.
                self.timer.cancel();
            }
        }
        decision == Decision::Call
    }

    /// Drops the held call; returns true if there was one.
    pub(super) fn cancel_held(&self, inner: &mut CqState) -> bool {
        let held = inner.moderator.cancel_held();
        if held {
            self.timer.cancel();
        }
        held
    }

    /// Calls for a satisfied arm: soon, in softirq on the queue's CPU, or now and on this CPU, if
    /// the call only schedules work.
    #[inline]
    pub(super) fn notify(self: &Arc<Self>, mut inner: SpinLockIrqGuard<'_, CqState>) {
        if !self.only_schedules {
            drop(inner);
            return self.raise(NOTIFY);
        }
        inner.mark_reported();
        self.trace_notify(&inner);
        let failure = inner.failure;
        drop(inner);
        self.events.notify(failure);
    }

    #[inline(always)]
    fn trace_notify(&self, inner: &CqState) {
        trace::event!(notify, {
            let failed = inner.failure.is_some();
            (self.device.name(), self.number, inner.len(), failed)
        });
    }
}

impl Expires for CompletionQueue {
    /// Makes a call that was held for long enough.
    fn expired(this: Arc<Self>) {
        let mut inner = this.inner.lock();
        if inner.moderator.cancel_held() {
            this.notify(inner);
        }
    }
}

notifies!(CompletionQueue);

impl Notifies for CompletionQueue {
    fn device(&self) -> &RdmaDevice {
        &self.device
    }

    fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    fn cpu(&self) -> Option<u32> {
        Some(self.cpu)
    }

    fn call(this: &Arc<CompletionQueue>, events: u32) {
        if events & FAILED != 0 {
            let failure = this.inner.lock().failure;
            let called = failure.map(|failure| this.events.failed(failure));
            if called == Some(Called::Partial) {
                return this.raise(events);
            }
        }
        if events & NOTIFY != 0 {
            let mut inner = this.inner.lock();
            // The arm of a held call was satisfied before this call, which reports that arm, too.
            this.cancel_held(&mut inner);
            inner.mark_reported();
            this.trace_notify(&inner);
            let failure = inner.failure;
            drop(inner);
            this.events.notify(failure);
        }
    }
}
