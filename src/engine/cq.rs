// SPDX-License-Identifier: GPL-2.0

//! [`CompletionQueue`]: completions of requests, and notification of the consumer.
//!
//! A queue is **armed** for one event; the arm is taken off when it is satisfied, before the
//! consumer is called, so there is at most one call per arm. Events satisfy arms as follows:
//!
//! | arm | receive | solicited receive | other success | request failed | queue failed |
//! |---|---|---|---|---|---|
//! | any | yes | yes | yes | yes | yes |
//! | solicited | no | yes | no | yes | yes |
//! | errors | no | no | no | no | yes |
//!
//! The arm is tested and cleared under the lock under which the entry is added, so no event is lost
//! between a poll and an arm.
//!
//! The call for a satisfied arm is made at once, unless the consumer asked for calls that wait for
//! more completions ([`moderation`]).
//!
//! A queue that overflows has failed: it takes no more entries, and its entries stay readable.
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
    inject::SiteKind,
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

/// The event that a consumer arms for; of two arms the greater one holds (ARM-06).
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

    /// Returns the name of the arm.
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

/// The effect on an arm of entries that are present already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissedEvents {
    /// No effect (verbs).
    Ignore,
    /// They satisfy the arm at once if they came since the last call (NDK, ARM-07 to ARM-09).
    SatisfyArm,
}

/// The error of a queue that has overflowed or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// The cause of a queue's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An entry found no room.
    Overrun,
    /// The face gave the queue up.
    Fatal,
}

/// The events of a queue, reported to its face. Called in softirq, one call at a time, under no
/// lock, but see [`CqEvents::only_schedules`].
pub(crate) trait CqEvents: Send + Sync {
    /// Returns true if [`CqEvents::notify`] only schedules work of the consumer: then it may be
    /// called in any context, under any lock, by several callers at a time, and has no effect once
    /// the face is closed. It is called at once and on the current CPU: an interrupt to the queue's
    /// CPU costs more than the scheduling. Asked once.
    fn only_schedules(&self) -> bool {
        false
    }
    /// Notifies of a satisfied arm; `failure` is there if the queue has failed.
    fn notify(&self, failure: Option<Failure>);
    /// Reports a failure of the queue, armed or not. Called once, and again for each
    /// [`Called::Partial`]; the call for the arm that the failure satisfies comes after the last
    /// one.
    fn failed(&self, failure: Failure) -> Called;
}

const NOTIFY: u32 = 1;
const FAILED: u32 = 2;

struct CqState {
    ring: ResizableRing<Ring<Wc>>,
    /// The entries that a program takes by itself; `ring` takes none then.
    shared: Option<KBox<ProgramCompletions>>,
    arm: Option<Arm>,
    /// The number of entries that came since the consumer was last called; they are the newest.
    unreported: u32,
    /// One of these entries, or one taken since the call, is of a failed request.
    has_unreported_failure: bool,
    failure: Option<Failure>,
    moderator: Moderator,
}

impl CqState {
    /// Notes that the call reports all entries.
    fn mark_reported(&mut self) {
        self.unreported = 0;
        self.has_unreported_failure = false;
    }
}

/// The state of a queue, to find the cause of a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CqDetails {
    /// The number in tracepoints.
    pub(crate) number: u32,
    /// The number of entries that the queue takes, and has.
    pub(crate) depth: u32,
    pub(crate) used: u32,
    /// The event that the queue is armed for.
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
    /// The number in tracepoints; no other queue of this host has it for long.
    pub(crate) number: u32,
    /// The CPU on which the consumer is called from softirq, if it is online.
    cpu: u32,
    events: KBox<dyn CqEvents>,
    /// See [`CqEvents::only_schedules`].
    only_schedules: bool,
    /// Held while the depth changes: `cq/resize.rs`.
    #[pin]
    resizing: Mutex<()>,
    #[pin]
    inner: SpinLockIrq<CqState>,
    /// Armed under the lock of `inner`, while a call is held for a time.
    #[pin]
    timer: HrTimer<CompletionQueue>,
}

impl CompletionQueue {
    /// A queue for `depth` entries. Its consumer is called on `cpu`, if that is online and a call
    /// does more than schedule work.
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
        device.may_make(SiteKind::CompletionQueue)?;
        let share = device.share(Quota::CompletionQueues, is_of_program)?;
        let gfp = device::gfp(is_of_program);
        let inner = CqState {
            ring: ResizableRing::new(Ring::new(depth, Wc::BLANK, gfp)?),
            shared: None,
            arm: None,
            unreported: 0,
            has_unreported_failure: false,
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
    // Out of line: inlined where requests end, the tracepoint's branch costs more than just itself.
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

    /// Adds an entry of queue pair `qp`; a satisfied arm is reported soon, in softirq, or at once
    /// if the call only schedules work.
    ///
    /// An entry that does not fit breaks the queue; the caller then breaks its queue pair.
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
        inner.has_unreported_failure |= !entry.status.is_success();
        let arm = inner.arm.filter(|arm| arm.is_satisfied_by(entry));
        if arm.is_some() {
            inner.arm = None;
        }
        inner.moderator.count_for_held_call();
        match self.should_notify(&mut inner, arm.is_some()) {
            true => self.notify(inner),
            false => drop(inner),
        }
        if let Some(arm) = arm {
            self.device.count(arm.counter(), 1);
        }
        Ok(())
    }

    /// Takes up to `max` entries out, oldest first, and returns their number.
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

    /// As [`CompletionQueue::poll`], under one hold of the lock.
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
        inner.has_unreported_failure &= inner.unreported > 0;
        taken
    }

    /// Arms the queue; returns true if entries are present.
    pub(crate) fn arm(self: &Arc<Self>, arm: Arm, missed: MissedEvents) -> bool {
        let mut inner = self.inner.lock();
        let joined = inner.arm.map_or(arm, |old| old.max(arm));
        let present = !inner.ring.is_empty();
        let failed = inner.failure.is_some();
        let satisfied = match missed {
            MissedEvents::Ignore => false,
            // The new arm counts here, not the joined one (ARM-09).
            MissedEvents::SatisfyArm => failed || (inner.unreported > 0 && arm != Arm::Errors),
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

    /// Lets the call for a satisfied arm wait for `interval_us` microseconds or `count`
    /// completions, whichever comes first (MOD-01 to MOD-07). Any context.
    ///
    /// An interval of 0, or a count of 0 or 1, turns moderation off. An interval of `u32::MAX` is
    /// no limit, and neither is a count above the depth; both together are a contradiction. A held
    /// call is decided on anew.
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

    /// Fails the queue for good: it takes no more entries, and reports the failure to the present
    /// arm and to each later [`MissedEvents::SatisfyArm`] arm. Its entries stay readable. Any
    /// context.
    ///
    /// A queue pair breaks when it next reports to the queue; the face breaks those that do not.
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
    /// called again, but not by two callers at a time.
    pub(crate) fn end_calls(&self) {
        Notifies::end_calls(self);
    }

    /// Ends all calls, then gives back the memory of the queue and its share of the device: later
    /// entries find no room. May sleep.
    pub(crate) fn close(&self) {
        self.end_calls();
        let _one_at_a_time = self.resizing.lock();
        // The memory of the rings goes now, where it may sleep: the last reference may go anywhere.
        let mut inner = self.inner.lock();
        let ring = core::mem::replace(&mut inner.ring, ResizableRing::new(Ring::EMPTY));
        let shared = inner.shared.take();
        // From here on only a failure satisfies an arm, and no call is held.
        inner.unreported = 0;
        inner.moderator = Moderator::OFF;
        drop(inner);
        drop((ring, shared));
        self.timer.stop();
        self.share.give_back();
    }

    /// Returns the state of the queue. Any context.
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

    /// Marks the queue as failed, which satisfies any arm; returns the events to raise.
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
