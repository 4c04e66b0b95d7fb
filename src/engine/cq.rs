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
//! The call for a satisfied arm is made at once, unless the consumer asked for calls that wait for
//! more ([`moderation`]).
//!
//! A queue that overflows has failed: it takes no entry any more, what it holds stays readable.
//!
//! Context: any, but for making, resizing and closing. Lock order: `resizing`; queue locks of
//! queue pairs, then `inner`, then the timer.

mod moderation;
mod notify;
mod resize;
mod shared;
#[cfg(ndk_kunit)]
pub(crate) mod tests;

use kernel::{
    new_work,
    workqueue::Work, //
};

use super::{
    device::{
        self,
        Quota,
        Share, //
    },
    inject::What,
    notifier::{
        Called,
        Notifier,
        Notifies, //
    },
    prelude::*,
    ring::{
        ResizableRing,
        ResizeError,
        Ring, //
    }, //
};
use crate::{
    rdma::values::{
        completion::Wc,
        wc::{
            WcOpcode,
            WcStatus, //
        }, //
    },
    sys::{
        hrtimer::HrTimer,
        name::Name,
        time,
        trace, //
    }, //
};
use moderation::{
    Moderator,
    Rule, //
};

pub(crate) use moderation::InvalidModeration;
pub(crate) use shared::ProgramCompletions;

/// Entries that are taken under one hold of the lock, interrupts off.
const TAKEN_AT_ONCE: usize = 64;

/// What a consumer wants to hear of; the greater of two that were asked for holds (ARM-06).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arm {
    /// The failure of the queue itself.
    Errors,
    /// A solicited receive, or any request that failed.
    Solicited,
    /// The next completion of any kind.
    Any,
}

impl Arm {
    const fn is_satisfied_by(self, entry: &Wc) -> bool {
        match self {
            Self::Any => true,
            Self::Solicited => entry.solicited || !entry.status.is_success(),
            Self::Errors => false,
        }
    }

    /// What it is called.
    pub(crate) const fn name(self) -> &'static CStr {
        match self {
            Self::Any => c"any",
            Self::Solicited => c"solicited",
            Self::Errors => c"errors",
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
pub(crate) enum MissedEvents {
    /// Nothing (verbs).
    Ignore,
    /// They satisfy the arm at once if they came since the last call (NDK, ARM-07 to ARM-09).
    Report,
}

/// A queue has overflowed or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// What a queue failed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There was an entry more than the queue takes.
    Overrun,
    /// Whoever runs the device gave the queue up.
    Fatal,
}

/// What a face is notified of. Called in softirq, one call at a time, under no lock, but see
/// [`CqEvents::only_schedules`].
pub(crate) trait CqEvents: Send + Sync {
    /// Returns true if [`CqEvents::notify`] only schedules work of the consumer: then it may be
    /// called in any context, under any lock, by several at a time, and does nothing once the face
    /// is closed. It is called at once and on the current CPU: an interrupt to the queue's CPU
    /// costs more than what it would schedule there. Asked once.
    fn only_schedules(&self) -> bool {
        false
    }
    /// An arm was satisfied; `failure` is there if the queue has failed.
    fn notify(&self, failure: Option<Failure>);
    /// The queue failed, armed or not. Called once, and as often as it says [`Called::Again`]; the
    /// call for the arm that this satisfies comes after the last one.
    fn failed(&self, failure: Failure) -> Called;
}

const NOTIFY: u32 = 1;
const FAILED: u32 = 2;

struct CqState {
    ring: ResizableRing<Ring<Wc>>,
    /// The entries that a program takes by itself; `ring` takes none then.
    shared: Option<KBox<ProgramCompletions>>,
    arm: Option<Arm>,
    /// How many of the newest entries came since the consumer was last called.
    unreported: u32,
    /// One of those, or of those taken meanwhile, is a request that failed.
    urgent: bool,
    failure: Option<Failure>,
    moderator: Moderator,
}

impl CqState {
    /// The consumer is called for all that is there.
    fn notified(&mut self) {
        self.unreported = 0;
        self.urgent = false;
    }
}

/// What a queue is doing, for whoever looks why it hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CqDetails {
    /// What tracepoints call it.
    pub(crate) number: u32,
    /// How many entries it takes, and has.
    pub(crate) depth: u32,
    pub(crate) used: u32,
    /// What it is armed for.
    pub(crate) arm: Option<Arm>,
    pub(crate) failed: bool,
}

/// A completion queue.
#[pin_data]
pub(crate) struct CompletionQueue {
    #[pin]
    notifier: Notifier,
    #[pin]
    work: Work<Self>,
    device: Arc<RdmaDevice>,
    share: Share,
    /// What tracepoints call it; no other queue of this host has it for long.
    pub(crate) number: u32,
    /// The CPU on which the consumer is called from softirq, if it is online.
    cpu: u32,
    events: KBox<dyn CqEvents>,
    /// See [`CqEvents::only_schedules`].
    only_schedules: bool,
    /// Held by the one who changes the depth: `cq/resize.rs`.
    #[pin]
    resizing: Mutex<()>,
    #[pin]
    inner: SpinLockIrq<CqState>,
    /// Armed under the lock of `inner`, while a call is held for a time.
    #[pin]
    timer: HrTimer<CompletionQueue>,
}

impl CompletionQueue {
    /// A queue for `depth` entries whose consumer is called on `cpu`, if that is online and
    /// a call does more than to schedule something.
    ///
    /// May sleep. Overflow is judged by `depth` itself. [`CompletionQueue::close`] ends it.
    /// `ENOMEM` when there is no memory, or the device or programs have too many.
    pub(crate) fn new(
        device: Arc<RdmaDevice>,
        depth: u32,
        cpu: u32,
        events: KBox<dyn CqEvents>,
        is_of_program: bool,
    ) -> Result<Arc<Self>> {
        device.may_make(What::CompletionQueue)?;
        let share = device.share(Quota::CompletionQueues, is_of_program)?;
        let gfp = device::gfp(is_of_program);
        let inner = CqState {
            ring: ResizableRing::new(Ring::new(depth, Wc::BLANK, gfp)?),
            shared: None,
            arm: None,
            unreported: 0,
            urgent: false,
            failure: None,
            moderator: Moderator::OFF,
        };
        let number = device.host.next_cq_number();
        Arc::pin_init(
            pin_init!(Self {
                notifier <- Notifier::new(),
                work <- new_work!("ndk_notify"),
                device,
                share,
                number,
                cpu,
                only_schedules: events.only_schedules(),
                events,
                resizing <- new_mutex!(()),
                inner <- new_spinlock_irq!(inner),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Traces an entry of the queue pair with that number, and [adds](Self::push_of) it.
    // Out of line: where requests end a branch for the tracepoint costs more than itself.
    #[inline(never)]
    pub(super) fn report(self: &Arc<Self>, qp: u32, entry: &Wc) -> Result<(), Failed> {
        trace::event!(complete, self.complete_args(qp, entry));
        self.push_of(entry, qp)
    }

    /// Returns the arguments of the tracepoint `complete`.
    fn complete_args(&self, qp: u32, entry: &Wc) -> (Name, u32, u32, u64, WcOpcode, WcStatus, u32) {
        (
            self.device.name(),
            qp,
            self.number,
            entry.context.raw(),
            entry.opcode,
            entry.wc_status(),
            entry.byte_len,
        )
    }

    /// Adds an entry of no queue pair.
    #[cfg(ndk_kunit)]
    pub(crate) fn push(self: &Arc<Self>, entry: &Wc) -> Result<(), Failed> {
        self.push_of(entry, 0)
    }

    /// Adds an entry of queue pair `qp`; what it satisfies is reported soon, in softirq, or at once
    /// if that only schedules something.
    ///
    /// The entry that does not fit breaks the queue; the caller then breaks its queue pair.
    #[inline]
    fn push_of(self: &Arc<Self>, entry: &Wc, qp: u32) -> Result<(), Failed> {
        let mut inner = self.inner.lock();
        if inner.failure.is_some() {
            return Err(Failed);
        }
        let room = inner.ring.room();
        if room.is_none_or(|r| r.push(*entry).is_err()) && !inner.push_shared(entry, qp) {
            let events = self.fail(&mut inner, Failure::Overrun);
            drop(inner);
            self.device.count(Counter::CqOverflows, 1);
            self.raise(events);
            return Err(Failed);
        }
        inner.unreported += 1;
        inner.urgent |= !entry.status.is_success();
        let arm = inner.arm.filter(|arm| arm.is_satisfied_by(entry));
        if arm.is_some() {
            inner.arm = None;
        }
        inner.moderator.gather();
        match self.should_notify(&mut inner, arm.is_some()) {
            true => self.notify(inner),
            false => drop(inner),
        }
        if let Some(arm) = arm {
            self.device.count(arm.counter(), 1);
        }
        Ok(())
    }

    /// Takes up to `max` entries out, oldest first, and returns how many.
    ///
    /// `take` runs under the lock of the queue: it only copies.
    pub(crate) fn poll(&self, max: usize, mut take: impl FnMut(Wc)) -> usize {
        let mut taken = 0;
        loop {
            let most = (max - taken).min(TAKEN_AT_ONCE);
            let got = self.poll_some(most, &mut take);
            taken += got;
            if got < most || taken == max {
                return taken;
            }
        }
    }

    /// The same under one hold of the lock.
    #[inline]
    fn poll_some(&self, max: usize, mut take: impl FnMut(Wc)) -> usize {
        let mut inner = self.inner.lock();
        let mut taken = 0;
        while taken < max {
            let Some(entry) = inner.ring.oldest().pop() else {
                break;
            };
            take(entry);
            taken += 1;
        }
        inner.unreported = inner.unreported.min(inner.ring.len());
        inner.urgent &= inner.unreported > 0;
        taken
    }

    /// Arms the queue; returns true if entries are there.
    pub(crate) fn arm(self: &Arc<Self>, arm: Arm, missed: MissedEvents) -> bool {
        let mut inner = self.inner.lock();
        let joined = inner.arm.map_or(arm, |old| old.max(arm));
        let present = !inner.ring.is_empty();
        let failed = inner.failure.is_some();
        let satisfied = match missed {
            MissedEvents::Ignore => false,
            // What is asked for now counts, not what it was joined with (ARM-09).
            MissedEvents::Report => failed || (inner.unreported > 0 && arm != Arm::Errors),
        };
        inner.arm = if satisfied { None } else { Some(joined) };
        match satisfied && (failed || self.should_notify(&mut inner, true)) {
            true => self.notify(inner),
            false => drop(inner),
        }
        if satisfied {
            self.device.count(joined.counter(), 1);
        }
        present
    }

    /// The number of entries that the queue takes.
    pub(crate) fn depth(&self) -> u32 {
        self.inner.lock().limit()
    }

    /// Lets the call for a satisfied arm wait `interval_us` microseconds or for `count`
    /// completions, whichever is first (MOD-01 to MOD-07). Any context.
    ///
    /// An interval of 0, or a count of 0 or 1, turns it off. An interval of `u32::MAX` is no
    /// limit, and neither is a count above the depth; both are a contradiction. A call that is
    /// held is decided on anew.
    pub(crate) fn moderate(
        self: &Arc<Self>,
        interval_us: u32,
        count: u32,
    ) -> Result<(), InvalidModeration> {
        let mut inner = self.inner.lock();
        let rule = Rule::new(interval_us, count, inner.limit())?;
        let decision = inner.moderator.change(rule, time::now_ns());
        if self.apply(decision) {
            self.notify(inner);
        }
        Ok(())
    }

    /// Fails the queue for good: it takes no entry any more, and whoever armed it is notified so,
    /// as is whoever arms it later. What it holds stays readable. Any context.
    ///
    /// Queue pairs that report to it break when they next try; the face breaks those that do not.
    pub(crate) fn break_down(self: &Arc<Self>) {
        let mut inner = self.inner.lock();
        if inner.failure.is_some() {
            return;
        }
        let events = self.fail(&mut inner, Failure::Fatal);
        drop(inner);
        self.raise(events);
    }

    /// Ends all calls; returns when none runs any more. May sleep; not from inside a call. May be
    /// called again, but not by two at a time.
    pub(crate) fn end_calls(&self) {
        Notifies::end_calls(self);
    }

    /// Ends all calls, after which entries may still come and be taken; and gives back what the
    /// queue holds. May sleep.
    pub(crate) fn close(&self) {
        self.end_calls();
        let _one_at_a_time = self.resizing.lock();
        // What is large goes now, where it may sleep: the last reference may go anywhere.
        let mut inner = self.inner.lock();
        let ring = core::mem::replace(&mut inner.ring, ResizableRing::new(Ring::EMPTY));
        let shared = inner.shared.take();
        // From here on no arm is satisfied but by a failure, and no call is held.
        inner.unreported = 0;
        inner.moderator = Moderator::OFF;
        drop(inner);
        drop((ring, shared));
        self.timer.stop();
        self.share.give_back();
    }

    /// What the queue is doing. Any context.
    pub(crate) fn details(&self) -> CqDetails {
        let inner = self.inner.lock();
        CqDetails {
            number: self.number,
            depth: inner.limit(),
            used: inner.len(),
            arm: inner.arm,
            failed: inner.failure.is_some(),
        }
    }

    /// Returns true if the queue has failed. Any context.
    pub(crate) fn has_failed(&self) -> bool {
        self.inner.lock().failure.is_some()
    }

    /// Marks the queue as failed, which satisfies any arm; returns what to notify of.
    fn fail(self: &Arc<Self>, inner: &mut CqState, failure: Failure) -> u32 {
        inner.failure = Some(failure);
        let arm = inner.arm.take();
        if let Some(arm) = arm {
            self.device.count(arm.counter(), 1);
        }
        let held = self.cancel_held(inner);
        FAILED | if arm.is_some() || held { NOTIFY } else { 0 }
    }
}
