// SPDX-License-Identifier: GPL-2.0

//! [`CompletionQueue`]: finished requests, and who wants to hear of them.
//!
//! A queue is **armed** for one event; the arm is taken off when it is satisfied, before the
//! consumer is called, so there is one call at most per arm. What satisfies which arm:
//!
//! | arm | receive | solicited receive | other success | request failed | queue failed |
//! |---|---|---|---|---|---|
//! | any | yes | yes | yes | yes | yes |
//! | solicited | no | yes | no | yes | yes |
//! | errors | no | no | no | no | yes |
//!
//! Testing and clearing the arm happens under the lock under which the entry is added, so nothing
//! is lost between a poll and an arm.
//!
//! A queue that overflows has failed: it takes no entry any more, what it holds stays readable.
//!
//! Context: any, but for making and closing. Lock order: queue locks of queue pairs, then
//! `inner`, then the lock in [`Upcalls`].

use kernel::{
    impl_has_work,
    new_spinlock_irq,
    new_work,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    counters::Counter,
    domain::Adapter,
    ring::Ring,
    upcall::Upcalls,
    work::Completion, //
};

/// What a consumer wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    /// The next completion of any kind.
    Any,
    /// A solicited receive, or any request that failed.
    Solicited,
    /// The failure of the queue itself.
    Errors,
}

impl Arm {
    /// Which arm holds when `new` comes before this one was satisfied (ARM-06).
    const fn joined_by(self, new: Self) -> Self {
        match (self, new) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (Self::Solicited, _) | (_, Self::Solicited) => Self::Solicited,
            (Self::Errors, Self::Errors) => Self::Errors,
        }
    }

    const fn is_satisfied_by(self, entry: &Completion) -> bool {
        match self {
            Self::Any => true,
            Self::Solicited => entry.solicited || !entry.status.is_success(),
            Self::Errors => false,
        }
    }

    const fn counter(self) -> Counter {
        match self {
            Self::Any => Counter::NotifyAny,
            Self::Solicited => Counter::NotifySolicited,
            Self::Errors => Counter::NotifyErrors,
        }
    }
}

/// What happens when entries are there already while a consumer arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfPresent {
    /// Nothing (verbs).
    Wait,
    /// They satisfy the arm at once if they came since the last call (NDK, ARM-07 to ARM-09).
    #[cfg_attr(not(ndk_kunit), expect(dead_code, reason = "verbs tell the caller"))]
    Call,
}

/// A queue has overflowed or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// What a face is told. Called in softirq, one call at a time, under no lock.
pub(crate) trait CqEvents: Send + Sync {
    /// An arm was satisfied; `failed` says whether by the failure of the queue.
    fn notify(&self, failed: bool);
    /// The queue failed, armed or not.
    fn failed(&self);
}

const NOTIFY: u32 = 1;
const FAILED: u32 = 2;

struct Inner {
    ring: Ring<Completion>,
    arm: Option<Arm>,
    /// How many of the newest entries came since the consumer was last called.
    fresh: u32,
    failed: bool,
}

/// A completion queue.
#[pin_data]
pub(crate) struct CompletionQueue {
    adapter: Arc<Adapter>,
    /// The CPU on which the consumer likes to be called.
    cpu: u32,
    events: KBox<dyn CqEvents>,
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    upcalls: Upcalls,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for CompletionQueue { self.work }
}

impl CompletionQueue {
    /// A queue for `depth` entries whose consumer is called on `cpu`, if that is online.
    ///
    /// May sleep. Overflow is judged by `depth` itself.
    pub(crate) fn new(
        adapter: Arc<Adapter>,
        depth: u32,
        cpu: u32,
        events: KBox<dyn CqEvents>,
    ) -> Result<Arc<Self>> {
        let ring = Ring::new(depth, Completion::BLANK)?;
        Arc::pin_init(
            pin_init!(Self {
                adapter,
                cpu,
                events,
                inner <- new_spinlock_irq!(Inner { ring, arm: None, fresh: 0, failed: false }),
                upcalls <- Upcalls::new(),
                work <- new_work!("ndk_cq"),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds an entry; what it satisfies is told soon, in softirq.
    ///
    /// The entry that does not fit breaks the queue; the caller then breaks its queue pair.
    #[inline]
    pub(crate) fn push(self: &Arc<Self>, entry: Completion) -> Result<(), Failed> {
        let mut inner = self.inner.lock();
        if inner.failed {
            return Err(Failed);
        }
        if inner.ring.push(entry).is_err() {
            inner.failed = true;
            self.adapter.count(Counter::CqOverflows, 1);
            let armed = inner.arm.take();
            drop(inner);
            if let Some(arm) = armed {
                self.adapter.count(arm.counter(), 1);
            }
            self.raise(FAILED | armed.map_or(0, |_| NOTIFY));
            return Err(Failed);
        }
        inner.fresh += 1;
        let arm = inner.arm.filter(|arm| arm.is_satisfied_by(&entry));
        if let Some(arm) = arm {
            inner.arm = None;
            drop(inner);
            self.adapter.count(arm.counter(), 1);
            self.raise(NOTIFY);
        }
        Ok(())
    }

    /// Takes up to `max` entries out, oldest first, and returns how many.
    ///
    /// `take` runs under the lock of the queue: it only copies.
    pub(crate) fn poll(&self, max: usize, mut take: impl FnMut(Completion)) -> usize {
        let mut inner = self.inner.lock();
        let mut taken = 0;
        while taken < max {
            let Some(entry) = inner.ring.pop() else {
                break;
            };
            take(entry);
            taken += 1;
        }
        inner.fresh = inner.fresh.min(inner.ring.len());
        taken
    }

    /// Arms the queue; says whether entries are there.
    pub(crate) fn arm(self: &Arc<Self>, arm: Arm, if_present: IfPresent) -> bool {
        let mut inner = self.inner.lock();
        let arm = inner.arm.map_or(arm, |old| old.joined_by(arm));
        let present = !inner.ring.is_empty();
        let now = match if_present {
            IfPresent::Wait => false,
            IfPresent::Call => inner.failed || (inner.fresh > 0 && arm != Arm::Errors),
        };
        inner.arm = if now { None } else { Some(arm) };
        drop(inner);
        if now {
            self.adapter.count(arm.counter(), 1);
            self.raise(NOTIFY);
        }
        present
    }

    /// The number of entries that the queue takes.
    pub(crate) fn depth(&self) -> u32 {
        self.inner.lock().ring.limit()
    }

    /// Ends all calls; returns when none runs any more. May sleep.
    pub(crate) fn close(&self) {
        self.upcalls.close();
        // What is large goes now, where it may sleep: the last reference may go anywhere.
        let ring = core::mem::replace(&mut self.inner.lock().ring, Ring::empty());
        drop(ring);
    }

    fn raise(self: &Arc<Self>, news: u32) {
        if self.upcalls.raise(news) {
            // One that is queued already runs once more after the present call: nothing is lost.
            let _ = self.adapter.softirqs().enqueue_on(self.cpu, self.clone());
        }
    }
}

impl WorkItem for CompletionQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.upcalls.run(|news| {
            let failed = {
                let mut inner = this.inner.lock();
                inner.fresh = 0;
                inner.failed
            };
            if news & FAILED != 0 {
                this.events.failed();
            }
            if news & NOTIFY != 0 {
                this.events.notify(failed);
            }
        });
    }
}
