// SPDX-License-Identifier: GPL-2.0

//! [`Lull`]: calls that wait while the task that causes them goes on, because more comes soon.
//!
//! Two things make calls that are worth little, each as dear as an interrupt:
//!
//! - a consumer that sends and waits for the answer is called for the send first, and for the answer
//!   a moment later. So the call for a **send** waits for the next receive;
//! - a task that posts one message after the other wakes the peer's consumer for each. So the call
//!   for a **receive** waits until [`MANY`] are there, or the task that sends leaves the processor
//!   (see [`crate::sys::softirq::Late`]).
//!
//! In any case the call is made within twice [`TICK_NS`]. It is made at once for a failure, for what
//! softirq causes, and for a receive when a long message was moved: what comes with that is better
//! looked after while the next one is copied.
//!
//! Whether waiting is worth it is found out by waiting: where nothing more came in time the next
//! calls are prompt, and there are more of them each time. Under NVMe at queue depth 32 this leaves
//! one call for three requests where there were nine, and half as much work again is done.
//!
//! This is the data under the lock of the queue, which owns the timer and the work item.

/// So many entries are worth a call.
const MANY: u32 = 8;

/// The time of the timer, in nanoseconds. It is not armed anew for each call: what has begun to wait
/// since the timer was armed for something else waits for it once more.
pub(super) const TICK_NS: u64 = 1_000_000;

/// Calls that are prompt at the beginning.
const PROMPT_FIRST: u32 = 64;

/// Calls that are prompt after one that waited in vain, if the one before was worth it.
const PROMPT_LEAST: u32 = 8;

/// The same at most: for sends, where what was in vain cost the whole time, and for receives, where
/// it cost the switch to a thread.
const PROMPT_MOST: (u32, u32) = (1 << 14, 1 << 8);

/// What a call waits for that was caused by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Send,
    Receive,
}

/// What the queue does about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No call is due, or one waits as it did.
    Nothing,
    /// One waits from now on, for the timer.
    Wait,
    /// One waits from now on, for the timer or the thread.
    WaitForThread,
    /// It is made now, and none waits any more.
    Call,
}

/// Whether to wait, learnt from how it went.
struct Habit {
    prompt: u32,
    penalty: u32,
    most: u32,
}

impl Habit {
    const fn new(most: u32) -> Self {
        Self {
            prompt: PROMPT_FIRST,
            penalty: PROMPT_LEAST,
            most,
        }
    }

    fn waits(&mut self) -> bool {
        let waits = self.prompt == 0;
        self.prompt = self.prompt.saturating_sub(1);
        waits
    }

    fn learn(&mut self, was_worth_it: bool) {
        (self.prompt, self.penalty) = match was_worth_it {
            true => (0, PROMPT_LEAST),
            false => (self.penalty, self.most.min(self.penalty * 2)),
        };
    }
}

/// A completion that was just added, and who waits for it.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// It satisfied an arm.
    pub(super) satisfied: bool,
    /// It is a receive.
    pub(super) receive: bool,
    /// Not to wait: a request failed, the queue is full, it is no end of a message, or the messages
    /// are long.
    pub(super) urgent: bool,
    /// A task caused it, which goes on when this call returns.
    pub(super) by_task: bool,
    /// Entries that no call told of.
    pub(super) fresh: u32,
}

/// The call that waits, and what was learnt.
pub(super) struct Lull {
    allowed: bool,
    waiting: Option<Cause>,
    /// The timer has run out once since it began to wait.
    old: bool,
    /// Receives that came while one waited, that one included.
    gathered: u32,
    sends: Habit,
    receives: Habit,
}

impl Lull {
    pub(super) const OFF: Self = Self {
        allowed: false,
        waiting: None,
        old: false,
        gathered: 0,
        sends: Habit::new(PROMPT_MOST.0),
        receives: Habit::new(PROMPT_MOST.1),
    };

    pub(super) fn allow(&mut self) {
        self.allowed = true;
    }

    /// Whether an entry that was just added is a matter for [`Lull::judge`]; if not, a satisfied arm
    /// is told of at once.
    #[inline]
    pub(super) fn concerns(&self, satisfied: bool) -> bool {
        self.allowed && (satisfied || self.waiting.is_some())
    }

    /// Whether a call waits.
    #[cfg(ndk_kunit)]
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// What to do now that an entry was added.
    pub(super) fn judge(&mut self, arrived: Arrived) -> Verdict {
        match self.waiting {
            Some(_) => self.go_on(arrived),
            None if arrived.satisfied => self.begin(arrived),
            None => Verdict::Nothing,
        }
    }

    fn begin(&mut self, arrived: Arrived) -> Verdict {
        if arrived.urgent || !arrived.by_task {
            return Verdict::Call;
        }
        let (cause, habit, verdict) = match arrived.receive {
            true => (Cause::Receive, &mut self.receives, Verdict::WaitForThread),
            false => (Cause::Send, &mut self.sends, Verdict::Wait),
        };
        if !habit.waits() {
            return Verdict::Call;
        }
        self.waiting = Some(cause);
        self.old = false;
        self.gathered = 1;
        verdict
    }

    fn go_on(&mut self, arrived: Arrived) -> Verdict {
        let enough = arrived.urgent || arrived.fresh >= MANY;
        match self.waiting {
            Some(Cause::Send) if arrived.receive => {
                self.sends.learn(true);
                self.waiting = None;
                let old = self.old;
                let verdict = match enough {
                    true => Verdict::Call,
                    false => self.begin(arrived),
                };
                // It is one wait to the consumer.
                self.old = old;
                verdict
            }
            Some(Cause::Receive) => {
                self.gathered += u32::from(arrived.receive);
                match enough || !arrived.by_task {
                    true => {
                        self.end(self.gathered > 1);
                        Verdict::Call
                    }
                    false => Verdict::Nothing,
                }
            }
            Some(Cause::Send) if enough || !arrived.by_task => {
                self.waiting = None;
                Verdict::Call
            }
            Some(Cause::Send) | None => Verdict::Nothing,
        }
    }

    /// The timer ran out, or is armed for this wait: says whether, when it has run out, it is needed
    /// once more.
    pub(super) fn grow_old(&mut self) -> bool {
        let young = self.waiting.is_some() && !self.old;
        self.old = true;
        young
    }

    /// Nothing waits any more, for another reason than that it waited enough; says whether a call
    /// did.
    pub(super) fn clear(&mut self) -> bool {
        self.waiting.take().is_some()
    }

    /// The task has left the processor: says whether a call for a receive waited. One for a send goes
    /// on to wait for its answer.
    pub(super) fn let_go_receive(&mut self) -> bool {
        self.waiting == Some(Cause::Receive) && self.end(self.gathered > 1)
    }

    /// The timer ended the wait: it took too long, whatever came; says whether a call waited.
    pub(super) fn time_out(&mut self) -> bool {
        self.end(false)
    }

    /// Nothing waits any more; says whether a call did. For a send without its answer that was in
    /// vain, for a receive `worth_it` says so.
    fn end(&mut self, worth_it: bool) -> bool {
        let waited = self.waiting.take();
        match waited {
            Some(Cause::Send) => self.sends.learn(false),
            Some(Cause::Receive) => self.receives.learn(worth_it),
            None => (),
        }
        waited.is_some()
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_lull)]
mod tests {
    use super::*;

    const SEND: Arrived = Arrived {
        satisfied: true,
        receive: false,
        urgent: false,
        by_task: true,
        fresh: 1,
    };
    const RECEIVE: Arrived = Arrived {
        receive: true,
        ..SEND
    };

    /// What a further entry does that satisfies no arm: the arm is off already.
    fn more(of: Arrived, fresh: u32) -> Arrived {
        Arrived {
            satisfied: false,
            fresh,
            ..of
        }
    }

    fn urgent(of: Arrived) -> Arrived {
        Arrived { urgent: true, ..of }
    }

    fn by_softirq(of: Arrived) -> Arrived {
        Arrived {
            by_task: false,
            ..of
        }
    }

    /// A lull that has made its first calls promptly.
    fn ready(of: Arrived) -> Lull {
        let mut lull = Lull::OFF;
        lull.allow();
        for _ in 0..PROMPT_FIRST {
            assert!(lull.judge(of) == Verdict::Call);
        }
        lull
    }

    /// How many calls are prompt before one waits.
    fn prompt(lull: &mut Lull, of: Arrived) -> u32 {
        let mut count = 0;
        while lull.judge(of) == Verdict::Call {
            count += 1;
        }
        count
    }

    #[test]
    fn nothing_waits_where_it_is_not_allowed() {
        assert!(!Lull::OFF.concerns(true));
        let mut lull = Lull::OFF;
        lull.allow();
        assert!(lull.concerns(true) && !lull.concerns(false));
    }

    #[test]
    fn the_call_for_a_send_waits_for_the_next_receive() {
        let mut lull = ready(SEND);
        for _ in 0..100 {
            assert!(lull.judge(SEND) == Verdict::Wait && lull.concerns(false));
            assert!(lull.judge(more(SEND, 2)) == Verdict::Nothing);
            // Receives have not been tried yet: this one is told of at once.
            assert!(lull.judge(more(RECEIVE, 3)) != Verdict::Nothing);
            lull.clear();
        }
    }

    #[test]
    fn a_send_that_no_receive_follows_is_told_by_the_timer_and_the_next_at_once() {
        let mut lull = ready(SEND);
        let mut penalty = PROMPT_LEAST;
        for _ in 0..20 {
            assert!(lull.judge(SEND) == Verdict::Wait);
            assert!(lull.grow_old() && !lull.grow_old());
            assert!(lull.time_out() && !lull.time_out());
            assert!(prompt(&mut lull, SEND) == penalty);
            lull.clear();
            penalty = PROMPT_MOST.0.min(penalty * 2);
            // It was not let go but cleared: nothing was learnt of it.
            assert!(prompt(&mut lull, SEND) == 0);
            lull.clear();
        }
        assert!(penalty == PROMPT_MOST.0);
    }

    #[test]
    fn receives_are_told_of_when_there_are_many() {
        let mut lull = ready(RECEIVE);
        for _ in 0..3 {
            assert!(lull.judge(RECEIVE) == Verdict::WaitForThread);
            for fresh in 2..MANY {
                assert!(lull.judge(more(RECEIVE, fresh)) == Verdict::Nothing);
            }
            assert!(lull.judge(more(RECEIVE, MANY)) == Verdict::Call);
            assert!(!lull.concerns(false));
        }
    }

    #[test]
    fn an_answer_that_waits_itself_does_not_begin_the_time_anew() {
        let mut lull = ready(SEND);
        while lull.judge(RECEIVE) == Verdict::Call {}
        lull.clear();
        assert!(lull.judge(SEND) == Verdict::Wait && lull.grow_old());
        assert!(lull.judge(more(RECEIVE, 2)) == Verdict::WaitForThread);
        assert!(!lull.grow_old() && lull.time_out());
    }

    #[test]
    fn receives_that_the_timer_told_of_make_the_next_calls_prompt() {
        let mut lull = ready(RECEIVE);
        let mut penalty = PROMPT_LEAST;
        for _ in 0..10 {
            // Many more came than one, but it took long.
            assert!(lull.judge(RECEIVE) == Verdict::WaitForThread);
            for fresh in 2..MANY {
                assert!(lull.judge(more(RECEIVE, fresh)) == Verdict::Nothing);
            }
            assert!(lull.time_out() && prompt(&mut lull, RECEIVE) == penalty);
            lull.clear();
            penalty = PROMPT_MOST.1.min(penalty * 2);
        }
        assert!(penalty == PROMPT_MOST.1);
    }

    #[test]
    fn what_is_urgent_ends_a_wait_that_was_worth_it() {
        let mut lull = ready(RECEIVE);
        for _ in 0..3 {
            assert!(lull.judge(RECEIVE) == Verdict::WaitForThread);
            assert!(lull.judge(urgent(more(RECEIVE, 2))) == Verdict::Call);
        }
    }

    #[test]
    fn the_thread_ends_the_wait_of_a_receive_alone() {
        let mut lull = ready(SEND);
        assert!(lull.judge(SEND) == Verdict::Wait);
        assert!(!lull.let_go_receive() && lull.concerns(false));
        lull.clear();
        let mut lull = ready(RECEIVE);
        assert!(lull.judge(RECEIVE) == Verdict::WaitForThread);
        assert!(lull.let_go_receive() && !lull.let_go_receive());
    }

    #[test]
    fn a_receive_alone_makes_the_next_calls_prompt() {
        let mut lull = ready(RECEIVE);
        assert!(lull.judge(RECEIVE) == Verdict::WaitForThread);
        assert!(lull.judge(more(SEND, 2)) == Verdict::Nothing);
        assert!(lull.let_go_receive());
        assert!(prompt(&mut lull, RECEIVE) == PROMPT_LEAST);
        assert!(lull.judge(more(RECEIVE, 2)) == Verdict::Nothing);
        assert!(lull.let_go_receive());
        assert!(prompt(&mut lull, RECEIVE) == 0);
    }

    #[test]
    fn failures_and_what_softirq_causes_do_not_wait() {
        for of in [SEND, RECEIVE] {
            let mut lull = ready(of);
            assert!(lull.judge(urgent(of)) == Verdict::Call);
            assert!(lull.judge(by_softirq(of)) == Verdict::Call);
            assert!(lull.judge(of) != Verdict::Call);
            assert!(lull.judge(urgent(more(of, 2))) == Verdict::Call);
        }
        for of in [SEND, RECEIVE] {
            let mut lull = ready(of);
            assert!(lull.judge(of) != Verdict::Call);
            assert!(lull.judge(by_softirq(more(of, 2))) == Verdict::Call);
        }
    }

    #[test]
    fn what_began_to_wait_after_the_timer_was_armed_waits_for_it_once_more() {
        let mut lull = ready(SEND);
        assert!(!lull.grow_old());
        assert!(lull.judge(SEND) == Verdict::Wait);
        assert!(lull.grow_old());
        assert!(!lull.grow_old() && lull.time_out());
    }
}
