// SPDX-License-Identifier: GPL-2.0

//! When the consumer of a completion queue is called, and the call.

use kernel::{
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    },
    workqueue::WorkItem, //
};

use super::{
    lull::{
        self,
        Arrived, //
    },
    moderation::Verdict,
    CompletionQueue,
    Inner,
    FAILED,
    NOTIFY, //
};
use crate::{
    engine::work::Operation,
    sys::{
        softirq::{
            self,
            BhDisabled, //
        },
        time,
        timer::Expires, //
    }, //
};

impl CompletionQueue {
    /// Whether to call now, when an arm was satisfied or not.
    pub(super) fn is_to_call(self: &Arc<Self>, inner: &mut Inner, satisfied: bool) -> bool {
        if inner.moderator.is_off() {
            return satisfied;
        }
        let urgent = inner.urgent || inner.ring.is_full();
        let fresh = inner.fresh;
        let verdict = inner
            .moderator
            .judge(satisfied, fresh, urgent, time::now_ns);
        self.follow(verdict)
    }

    /// Whether to call now that an entry was added, where nothing is moderated.
    #[inline]
    pub(super) fn is_to_call_now(
        self: &Arc<Self>,
        inner: &mut Inner,
        satisfied: bool,
        operation: Operation,
    ) -> bool {
        if !inner.lull.concerns(satisfied) {
            return satisfied;
        }
        let receive = operation.is_receive();
        let arrived = Arrived {
            satisfied,
            receive,
            // What is no message brings what the consumer waits for: no answer follows.
            urgent: inner.urgent
                || inner.ring.is_full()
                || !operation.is_message()
                || (receive && self.were_long()),
            by_task: softirq::is_task(),
            fresh: inner.fresh,
        };
        let verdict = inner.lull.judge(arrived);
        match verdict {
            lull::Verdict::Nothing => return false,
            lull::Verdict::Call => return true,
            lull::Verdict::Wait => (),
            lull::Verdict::WaitForThread => {
                let _ = self.adapter.late().enqueue::<_, 1>(self.clone());
            }
        }
        if !core::mem::replace(&mut inner.timed, true) {
            inner.lull.grow_old();
            self.timer.arm(self, lull::TICK_NS);
        }
        false
    }

    /// A long message was moved that concerns who uses this queue: the call for the next receive does
    /// not wait. Any context.
    pub(crate) fn long_message(&self) {
        self.long.store(true, Relaxed);
    }

    /// Whether the next receive is taken for one behind a long message.
    #[cfg(ndk_kunit)]
    pub(crate) fn is_behind_long(&self) -> bool {
        self.long.load(Relaxed)
    }

    /// Whether a call waits for more.
    #[cfg(ndk_kunit)]
    pub(crate) fn is_waiting(&self) -> bool {
        self.inner.lock().lull.is_waiting()
    }

    /// Whether there was one since this was last asked, under the lock of `inner`.
    ///
    /// Of queue pairs that share a queue one may take the mark of the other: then that one's call
    /// waits.
    fn were_long(&self) -> bool {
        // A mark that is set between the two counts for this receive.
        let long = self.long.load(Relaxed);
        if long {
            self.long.store(false, Relaxed);
        }
        long
    }

    /// Lets calls wait for more where that has been found to be worth it (see [`lull`]).
    pub(crate) fn allow_lulls(&self) {
        self.inner.lock().lull.allow();
    }

    /// The timer ran out, or the thread for it runs: makes the call that waits, if it is time.
    fn end_wait(self: &Arc<Self>, by_timer: bool) {
        let mut inner = self.inner.lock();
        let mut call = by_timer && inner.moderator.let_go();
        let young = by_timer && inner.lull.grow_old();
        if by_timer {
            inner.timed = young;
        }
        if young {
            self.timer.arm(self, lull::TICK_NS);
        } else if by_timer {
            call |= inner.lull.time_out();
        } else {
            call = inner.lull.let_go_receive();
        }
        drop(inner);
        if call {
            self.raise(NOTIFY);
        }
    }

    /// Whether to call now; sets the timer accordingly. Under the lock of `inner`.
    pub(super) fn follow(self: &Arc<Self>, verdict: Verdict) -> bool {
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

    /// Holds no call any more; says whether one was held.
    pub(super) fn let_go(&self, inner: &mut Inner) -> bool {
        let held = inner.moderator.let_go();
        if held {
            self.timer.cancel();
        }
        held | inner.lull.clear()
    }

    pub(super) fn raise(self: &Arc<Self>, news: u32) {
        if self.upcalls.raise(news) {
            // One that is queued already runs once more after the present call: nothing is lost.
            let _ = self
                .adapter
                .prompt()
                .enqueue_on::<_, 0>(self.cpu, self.clone());
        }
    }
}

impl Expires for CompletionQueue {
    fn expired(this: Arc<Self>) {
        this.end_wait(true);
    }
}

impl WorkItem<1> for CompletionQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // The call is made at the end of this section, and not by another thread.
        let _softirqs_off = BhDisabled::enter();
        this.end_wait(false);
    }
}

impl WorkItem for CompletionQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let again = this.upcalls.run(|news| {
            let mut inner = this.inner.lock();
            let failure = inner.failure;
            if news & NOTIFY != 0 {
                // Its arm was satisfied before this call, which tells of that too.
                this.let_go(&mut inner);
                inner.fresh = 0;
                inner.urgent = false;
            }
            drop(inner);
            if let Some(failure) = failure.filter(|_| news & FAILED != 0) {
                this.events.failed(failure);
            }
            if news & NOTIFY != 0 {
                this.events.notify(failure);
            }
        });
        if again {
            let _ = this
                .adapter
                .prompt()
                .enqueue_on::<_, 0>(this.cpu, this.clone());
        }
    }
}
