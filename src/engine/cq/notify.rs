// SPDX-License-Identifier: GPL-2.0

//! When the consumer of a completion queue is called, and the call.

use kernel::{
    sync::Arc,
    workqueue::WorkItem, //
};

use super::{
    moderation::Verdict,
    CompletionQueue,
    Inner,
    FAILED,
    NOTIFY, //
};
use crate::sys::{
    cpu,
    time,
    timer::Expires, //
};

impl CompletionQueue {
    /// Whether to call now, when an arm was satisfied or not. Under the lock of `inner`.
    #[inline]
    pub(super) fn should_notify(self: &Arc<Self>, inner: &mut Inner, satisfied: bool) -> bool {
        if inner.moderator.is_off() {
            return satisfied;
        }
        let urgent = inner.urgent || inner.ring.is_full();
        let unreported = inner.unreported;
        let verdict = inner
            .moderator
            .judge(satisfied, unreported, urgent, time::now_ns);
        self.apply(verdict)
    }

    /// Whether to call now; sets the timer accordingly. Under the lock of `inner`.
    pub(super) fn apply(self: &Arc<Self>, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Nothing => (),
            Verdict::Hold(Some(ns)) => self.timer.arm(self, ns),
            Verdict::Hold(None) | Verdict::Call => {
                // One that runs out now finds no call to make, or makes the next one early.
                self.timer.cancel();
            }
        }
        verdict == Verdict::Call
    }

    /// Holds no call any more; returns true if one was held.
    pub(super) fn cancel_held(&self, inner: &mut Inner) -> bool {
        let held = inner.moderator.cancel_held();
        if held {
            self.timer.cancel();
        }
        held
    }

    /// Tells these news soon, in softirq; or now, if that is only to schedule something here.
    pub(super) fn raise(self: &Arc<Self>, events: u32) {
        if !self.upcalls.raise(events) {
            return;
        }
        match self.events.only_schedule() && cpu::is_here(self.cpu) {
            true => self.call(),
            false => self.queue(),
        }
    }

    /// Makes the calls that are due.
    fn call(self: &Arc<Self>) {
        let again = self.upcalls.run(|events| {
            let mut inner = self.inner.lock();
            let failure = inner.failure;
            if events & NOTIFY != 0 {
                // Its arm was satisfied before this call, which tells of that too.
                self.cancel_held(&mut inner);
                inner.unreported = 0;
                inner.urgent = false;
            }
            drop(inner);
            if let Some(failure) = failure.filter(|_| events & FAILED != 0) {
                self.events.failed(failure);
            }
            if events & NOTIFY != 0 {
                self.events.notify(failure);
            }
        });
        if again {
            self.queue();
        }
    }

    /// Queues the work item, which makes the calls.
    fn queue(self: &Arc<Self>) {
        let softirqs = self.adapter.softirqs();
        let _ = softirqs.enqueue_on(self.cpu, self.clone());
    }
}

impl Expires for CompletionQueue {
    /// A call was held for long enough.
    fn expired(this: Arc<Self>) {
        let held = this.inner.lock().moderator.cancel_held();
        if held {
            this.raise(NOTIFY);
        }
    }
}

impl WorkItem for CompletionQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.call();
    }
}
