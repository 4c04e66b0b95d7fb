// SPDX-License-Identifier: GPL-2.0

//! Queues under fire: posting, failing, arming and destroying from several processors at once.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use super::race_harness::{
    linger,
    two_cpus,
    wait_for,
    Course,
    Tally,
    Threads,
    LEAST,
    LOOKS, //
};
use crate::{
    engine::{
        cq::{
            Arm,
            CompletionQueue,
            MissedEvents, //
        },
        memory::tests::RawBuffer,
        qp::QueuePair, //
    },
    kunit::{
        harness::{
            connect,
            connect_pair,
            End,
            EndAttr,
            EngineHost,
            RNR_MS, //
        },
        log::Hook,
        queues::Queue, //
    },
    rdma::values::{
        completion::Wc,
        qp::QpState,
        status::Status,
        work::{
            SendFlag,
            SendFlags,
            SendOp,
            SendWith, //
        }, //
    },
    sys::sge::test_posted, //
};

/// One queue of requests, and the completions that have come: in order, each once.
struct Ledger {
    posted: Tally,
    seen: Tally,
    flushed: Tally,
    /// Completions that came twice, or before an older one, or after a flushed one with success.
    wrong: Tally,
}

impl Ledger {
    fn new() -> Self {
        Self {
            posted: Tally::new(),
            seen: Tally::new(),
            flushed: Tally::new(),
            wrong: Tally::new(),
        }
    }

    /// The context of the next request, which counts when it was accepted.
    fn next(&self) -> u64 {
        self.posted.get()
    }

    fn enter(&self, entry: &Wc) {
        let was_flushed = self.flushed.get() > 0;
        let is_next = entry.context.raw() == self.seen.hit();
        match entry.status {
            Status::Success if is_next && !was_flushed => (),
            // A request that was started when the connection broke ends with the error of the
            // break.
            _ if is_next && !entry.status.is_success() => {
                self.flushed.hit();
            }
            _ => {
                self.wrong.hit();
            }
        }
    }

    fn is_balanced(&self) -> bool {
        self.posted.get() == self.seen.get() && self.wrong.get() == 0
    }
}

/// The length of message `n` of an end; [`letter`] is the byte that fills the message.
fn length(n: u64, long: bool) -> u32 {
    match n % 16 {
        // More than one run of a flow moves.
        5 if long => 300 * 1024,
        9 => 0,
        // CAST: below 4096.
        k => (1 + k * 251) as u32,
    }
}

fn letter(n: u64) -> u8 {
    // CAST: below 199.
    1 + (n % 199) as u8
}

/// The entries that a queue gets at least, however slow the machine is.
const MANY: u64 = 100;

/// The room for the longest message.
const ROOM: usize = 300 * 1024;

/// One end of two that send to each other, driven by one worker.
struct RaceEnd {
    qp: Arc<QueuePair>,
    send_cq: Arc<CompletionQueue>,
    receive_cq: Arc<CompletionQueue>,
    sends: Ledger,
    receives: Ledger,
    /// True if some messages are longer than a flow moves in one run.
    long: bool,
    /// The most messages to send.
    most: u64,
    letters: RawBuffer,
    inbox: RawBuffer,
    /// Messages that arrived with other bytes than were sent.
    garbled: Tally,
}

impl RaceEnd {
    fn new(end: &End, most: u64, long: bool) -> Result<Arc<Self>> {
        let end = Self {
            qp: end.qp.clone(),
            send_cq: end.sends.cq.clone(),
            receive_cq: end.receives.cq.clone(),
            sends: Ledger::new(),
            receives: Ledger::new(),
            long,
            most,
            letters: RawBuffer::new(ROOM)?,
            inbox: RawBuffer::new(ROOM)?,
            garbled: Tally::new(),
        };
        Ok(Arc::new(end, GFP_KERNEL)?)
    }

    /// Takes the completions.
    fn collect(&self) {
        self.send_cq.poll(256, |entry| self.sends.enter(&entry));
        self.receive_cq.poll(256, |entry| {
            if entry.status.is_success() {
                let sent = length(entry.context.raw(), self.long);
                // CAST: widening.
                let whole = entry.byte_len == sent
                    && self.inbox.is(0, sent as usize, letter(entry.context.raw()));
                if !whole {
                    self.garbled.hit();
                }
            }
            self.receives.enter(&entry);
        });
    }

    /// Posts a receive; there is one at a time, because there is one inbox.
    fn post_one(&self) {
        if self.receives.posted.get() != self.receives.seen.get() {
            return;
        }
        let context = self.receives.next();
        // CAST: the room fits.
        let sges = core::iter::once(self.inbox.sge(0, ROOM as u32));
        // Before the post: the completion may come from another processor at once.
        self.receives.posted.hit();
        if self.qp.post_receive(test_posted(context, sges)).is_err() {
            self.receives.wrong.hit();
        }
    }

    /// Sends the next message; there is one at a time, because there is one set of letters.
    fn send(&self) {
        let context = self.sends.next();
        if context != self.sends.seen.get() || context >= self.most {
            return;
        }
        let len = length(context, self.long);
        // CAST: widening.
        if let Some(part) = self.letters.run().slice(0, len as usize) {
            let chunk = [letter(context); 256];
            let mut at = 0;
            while let Some(rest) = part.slice(at, part.len() - at) {
                match rest.write(&chunk) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => at += n,
                }
            }
        }
        let work = SendOp::Send {
            with: SendWith::Nothing,
        };
        let sges = core::iter::once(self.letters.sge(0, len));
        self.sends.posted.hit();
        if self
            .qp
            .post(context, work, SendFlag::Signaled, sges)
            .is_err()
        {
            self.sends.wrong.hit();
        }
        self.qp.ring_doorbell();
    }

    fn turn(&self) {
        self.collect();
        self.post_one();
        self.send();
    }

    fn is_clean(&self) -> bool {
        self.sends.is_balanced() && self.receives.is_balanced() && self.garbled.get() == 0
    }
}

/// One end whose worker posts empty requests as long as there is room, while the test breaks it.
struct Pusher {
    qp: Arc<QueuePair>,
    send_cq: Arc<CompletionQueue>,
    receive_cq: Arc<CompletionQueue>,
    sends: Ledger,
    receives: Ledger,
}

impl Pusher {
    fn new(end: &End) -> Result<Arc<Self>> {
        let pusher = Self {
            qp: end.qp.clone(),
            send_cq: end.sends.cq.clone(),
            receive_cq: end.receives.cq.clone(),
            sends: Ledger::new(),
            receives: Ledger::new(),
        };
        Ok(Arc::new(pusher, GFP_KERNEL)?)
    }

    fn collect(&self) {
        self.send_cq.poll(256, |entry| self.sends.enter(&entry));
        self.receive_cq
            .poll(256, |entry| self.receives.enter(&entry));
    }

    fn turn(&self) {
        self.collect();
        for _ in 0..4 {
            let none = core::iter::empty;
            if self
                .qp
                .post_receive(test_posted(self.receives.next(), none()))
                .is_ok()
            {
                self.receives.posted.hit();
            }
            let work = SendOp::Send {
                with: SendWith::Nothing,
            };
            let context = self.sends.next();
            let flags = SendFlag::Signaled;
            if self.qp.post(context, work, flags, none()).is_ok() {
                self.sends.posted.hit();
            }
        }
        self.qp.ring_doorbell();
    }

    /// Takes the last completions; returns true if each request has completed once.
    fn balances(&self) -> bool {
        self.collect();
        self.sends.is_balanced() && self.receives.is_balanced()
    }
}

/// Two ends post from two processors while one of them, or both, fail. Returns the rounds, those
/// that did not balance, and the requests that were flushed.
fn post_and_fail() -> Result<(u64, u64, u64)> {
    let engine_host = EngineHost::new(RNR_MS)?;
    let course = Course::new();
    let (mut rounds, mut wrong, mut flushed) = (0u64, 0, 0);
    while rounds < 10_000 && course.goes_on(rounds >= LEAST) {
        let mut attr = EndAttr::deep(16, 16);
        attr.send_entries = 256;
        attr.receive_entries = 256;
        let (a, b) = (engine_host.end(&attr)?, engine_host.end(&attr)?);
        connect(connect_pair, &a, &b)?;
        let pushers = [Pusher::new(&a)?, Pusher::new(&b)?];
        let mut threads = Threads::new()?;
        let [first, second] = pushers.each_ref().map(|p| (*p).clone());
        threads.on(two_cpus()[1], move || first.turn())?;
        threads.thread(move || second.turn())?;
        wait_for(|| pushers.iter().all(|p| p.sends.seen.get() > 32))?;
        linger(rounds);
        match rounds % 3 {
            0 => a.qp.fail(),
            1 => b.qp.fail(),
            _ => {
                a.qp.fail();
                b.qp.fail();
            }
        }
        // Later posts are flushed, behind all earlier ones.
        let seen = pushers.each_ref().map(|p| p.sends.seen.get());
        wait_for(|| (0..2).all(|i| pushers[i].sends.seen.get() > seen[i] + 8))?;
        threads.dismiss();
        a.qp.destroy();
        b.qp.destroy();
        for pusher in &pushers {
            wrong += u64::from(!pusher.balances());
            flushed += pusher.sends.flushed.get() + pusher.receives.flushed.get();
        }
        rounds += 1;
    }
    pr_info!(
        "race: post and fail, {} rounds, {} flushed\n",
        rounds,
        flushed
    );
    Ok((rounds, wrong, flushed))
}

/// A consumer that takes entries only when it is called, and a producer on another processor that
/// has at most `ahead` entries outstanding; `disturb`, if any, is called on the queue all the time.
/// Returns the numbers of entries made and taken.
fn arm_and_push(
    ahead: u64,
    missed: MissedEvents,
    rounds: u64,
    disturb: Option<fn(&Arc<CompletionQueue>, u64)>,
) -> Result<(u64, u64)> {
    let engine_host = EngineHost::new(RNR_MS)?;
    let device = engine_host.device()?;
    let [here, there] = two_cpus();
    let queue = Queue::new(&device, 64, here)?;
    let taken = Arc::new(Tally::new(), GFP_KERNEL)?;
    let hook: Hook = {
        let (cq, taken) = (queue.cq.clone(), taken.clone());
        Arc::new(
            move |_failed: bool| loop {
                // CAST: widening.
                taken.add(cq.poll(64, |_| ()) as u64);
                let present = cq.arm(Arm::Any, missed);
                // With `SatisfyArm` the queue calls by itself for the entries that are there.
                if !present || missed == MissedEvents::SatisfyArm {
                    break;
                }
            },
            GFP_KERNEL,
        )?
    };
    queue.log.set_hook(Some(hook));
    queue.cq.arm(Arm::Any, missed);
    let made = Arc::new(Tally::new(), GFP_KERNEL)?;
    let mut threads = Threads::new()?;
    {
        let (cq, made, taken) = (queue.cq.clone(), made.clone(), taken.clone());
        threads.on(there, move || {
            for _ in 0..8 {
                let n = made.get();
                if n >= rounds || n - taken.get() >= ahead {
                    return;
                }
                made.hit();
                let _ = cq.push(&Wc::BLANK);
            }
        })?;
    }
    if let Some(disturb) = disturb {
        let (cq, turn) = (queue.cq.clone(), Tally::new());
        threads.thread(move || disturb(&cq, turn.hit()))?;
    }
    let course = Course::new();
    let mut before = taken.get();
    // Each step may take as long as any wait: only a lost notification stops the race for good.
    while taken.get() < rounds && course.goes_on(taken.get() >= MANY) {
        wait_for(|| taken.get() > before)?;
        before = taken.get();
    }
    threads.dismiss();
    wait_for(|| taken.get() == made.get())?;
    let score = (made.get(), taken.get());
    pr_info!("race: arm and push {} ahead: {:?}\n", ahead, score);
    Ok(score)
}

/// Two ends send each other up to `most` messages from two processors. Returns the number of
/// messages that each has received, and true if all came as they were sent.
fn two_flows(most: u64, long: bool) -> Result<([u64; 2], bool)> {
    let engine_host = EngineHost::new(RNR_MS)?;
    let attr = EndAttr::deep(4, 4);
    let (a, b) = (engine_host.end(&attr)?, engine_host.end(&attr)?);
    connect(connect_pair, &a, &b)?;
    let ends = [RaceEnd::new(&a, most, long)?, RaceEnd::new(&b, most, long)?];
    let mut threads = Threads::new()?;
    for (end, cpu) in ends.iter().zip(two_cpus()) {
        let end = end.clone();
        threads.on(cpu, move || end.turn())?;
    }
    let got = || ends.each_ref().map(|s| s.receives.seen.get());
    let course = Course::new();
    while got() != [most; 2] && course.goes_on(got().iter().all(|n| *n >= LEAST)) {
        let before = got();
        // Each direction that is not at its end has to go on.
        wait_for(|| {
            let now = got();
            (0..2).all(|i| now[i] > before[i] || now[i] == most)
        })?;
    }
    threads.dismiss();
    let counts = got();
    a.qp.destroy();
    b.qp.destroy();
    for end in &ends {
        end.collect();
    }
    pr_info!("race: two flows, {:?} messages\n", counts);
    Ok((counts, ends.iter().all(|s| s.is_clean())))
}

/// Memory of receives, posted again and again, into which the peer sends.
#[pin_data]
struct Target {
    #[pin]
    pusher: SpinLockIrq<Option<Arc<QueuePair>>>,
    ink: RawBuffer,
    sent: Tally,
}

const SLOTS: u64 = 8;
const SLOT: u32 = 8192;

impl Target {
    fn new() -> Result<Arc<Self>> {
        // CAST: widening.
        let ink = RawBuffer::new(SLOT as usize)?;
        ink.fill(0xA5);
        let init = pin_init!(Self {
            pusher <- new_spinlock_irq!(None),
            ink,
            sent: Tally::new(),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// Sends as long as there is room; successes are not reported.
    fn turn(&self) {
        let Some(qp) = self.pusher.lock().clone() else {
            return;
        };
        for _ in 0..SLOTS {
            if qp.state() == QpState::Err {
                break;
            }
            let work = SendOp::Send {
                with: SendWith::Nothing,
            };
            let sges = core::iter::once(self.ink.sge(0, SLOT));
            if qp.post(0, work, SendFlags::empty(), sges).is_err() {
                break;
            }
            self.sent.hit();
        }
        qp.ring_doorbell();
    }
}

/// Destroys the receiving end of a connection in full flight. Returns the rounds, the rounds in
/// which a receive did not complete once, and the changes of memory of receives afterwards.
fn destroy_in_flight() -> Result<(u64, u64, u64)> {
    let engine_host = EngineHost::new(RNR_MS)?;
    // CAST: widening.
    let memory = RawBuffer::new(SLOTS as usize * SLOT as usize)?;
    let target = Target::new()?;
    let mut threads = Threads::new()?;
    {
        let target = target.clone();
        threads.on(two_cpus()[1], move || target.turn())?;
    }
    let (mut rounds, mut wrong, mut changed) = (0, 0, 0);
    let course = Course::new();
    while rounds < 10_000 && course.goes_on(rounds >= LEAST) {
        let mut attr = EndAttr::deep(16, 64);
        attr.send_entries = 256;
        let (a, b) = (engine_host.end(&attr)?, engine_host.end(&attr)?);
        connect(connect_pair, &a, &b)?;
        let ledger = Ledger::new();
        let post_one = |slot: u64| {
            let context = ledger.next();
            // CAST: below the number of slots.
            let sges = core::iter::once(memory.sge((slot * u64::from(SLOT)) as usize, SLOT));
            if b.qp.post_receive(test_posted(context, sges)).is_ok() {
                ledger.posted.hit();
            }
        };
        (0..SLOTS).for_each(post_one);
        *target.pusher.lock() = Some(a.qp.clone());
        wait_for(|| {
            let seen = ledger.seen.get();
            b.receives.cq.poll(64, |entry| ledger.enter(&entry));
            (seen..ledger.seen.get()).for_each(|n| post_one(n % SLOTS));
            ledger.seen.get() > 16 + rounds % 16
        })?;
        linger(rounds);
        b.qp.destroy();
        memory.fill(0xEE);
        for _ in 0..LOOKS {
            changed += u64::from(!memory.is(0, memory.run().len(), 0xEE));
        }
        b.receives.cq.poll(256, |entry| ledger.enter(&entry));
        wrong += u64::from(!ledger.is_balanced());
        let pusher = target.pusher.lock().take();
        drop(pusher);
        rounds += 1;
    }
    threads.dismiss();
    pr_info!(
        "race: destroyed {} times, {} sends\n",
        rounds,
        target.sent.get()
    );
    Ok((rounds, wrong, changed))
}

#[kernel::macros::kunit_tests(ndk_kunit_race_queues)]
mod tests {
    use super::*;

    #[test]
    fn each_accepted_request_completes_once_and_in_order_when_a_connection_fails() -> Result {
        let (rounds, wrong, flushed) = post_and_fail()?;
        assert!(rounds >= LEAST);
        assert!(flushed > 0);
        kunit_assert_eq!(wrong, 0);
        Ok(())
    }

    #[test]
    fn no_notification_is_lost_between_one_entry_and_the_next() -> Result {
        let (made, taken) = arm_and_push(1, MissedEvents::Ignore, 200_000, None)?;
        assert!(made >= MANY);
        kunit_assert_eq!(made, taken);
        Ok(())
    }

    #[test]
    fn no_notification_is_lost_in_a_stream_of_entries() -> Result {
        let (made, taken) = arm_and_push(16, MissedEvents::Ignore, 200_000, None)?;
        assert!(made >= MANY);
        kunit_assert_eq!(made, taken);
        Ok(())
    }

    #[test]
    fn a_consumer_that_is_called_for_what_is_present_need_not_look() -> Result {
        let (made, taken) = arm_and_push(16, MissedEvents::SatisfyArm, 200_000, None)?;
        assert!(made >= MANY);
        kunit_assert_eq!(made, taken);
        Ok(())
    }

    /// Moderates by the interval alone, by both and not at all, in turn.
    fn moderate(cq: &Arc<CompletionQueue>, turn: u64) {
        let (interval, count) = [(20, u32::MAX), (50, 4), (0, 0)][turn as usize % 3];
        let _ = cq.moderate(interval, count);
    }

    /// Resizes up and down, and moderates.
    fn remake(cq: &Arc<CompletionQueue>, turn: u64) {
        let _ = cq.resize([64, 100, 17][turn as usize % 3]);
        moderate(cq, turn / 2);
    }

    #[test]
    fn no_notification_is_lost_while_calls_are_moderated() -> Result {
        for missed in [MissedEvents::Ignore, MissedEvents::SatisfyArm] {
            let (made, taken) = arm_and_push(16, missed, 200_000, Some(moderate))?;
            assert!(made >= MANY);
            kunit_assert_eq!(made, taken);
        }
        Ok(())
    }

    #[test]
    fn no_notification_is_lost_while_the_queue_is_resized() -> Result {
        for missed in [MissedEvents::Ignore, MissedEvents::SatisfyArm] {
            let (made, taken) = arm_and_push(16, missed, 200_000, Some(remake))?;
            assert!(made >= MANY);
            kunit_assert_eq!(made, taken);
        }
        Ok(())
    }

    #[test]
    fn two_flows_at_each_other_both_come_to_their_end() -> Result {
        let (got, clean) = two_flows(20_000, false)?;
        assert!(got[0] >= LEAST);
        assert!(got[1] >= LEAST);
        assert!(clean);
        Ok(())
    }

    #[test]
    fn two_flows_with_more_than_their_budget_both_come_to_their_end() -> Result {
        let (got, clean) = two_flows(20_000, true)?;
        assert!(got[0] >= LEAST);
        assert!(got[1] >= LEAST);
        assert!(clean);
        Ok(())
    }

    #[test]
    fn a_destroyed_end_has_completed_its_receives_and_left_their_memory() -> Result {
        let (rounds, wrong, changed) = destroy_in_flight()?;
        assert!(rounds >= LEAST);
        kunit_assert_eq!(wrong, 0);
        kunit_assert_eq!(changed, 0);
        Ok(())
    }
}
