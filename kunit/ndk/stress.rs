// SPDX-License-Identifier: GPL-2.0

//! Races of several processors on the face: posting against flush and close, arming against
//! completion, calls of one queue.
//!
//! Posts, flushes, closes, polls and arms are made in softirq. A race ends after a number of rounds
//! or when its time is up, and is judged after its threads have ended.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic,
            AtomicFlag, //
        },
        Arc, //
    }, //
};

use super::{
    caller::Caller,
    completion::CallbackValue,
    host::{
        TestHost,
        SIZES, //
    },
    pair::{
        connect,
        OpenListener,
        TestSide,
        READS, //
    }, //
};
use crate::{
    engine::cq::tests::RECEIVE,
    kunit::{
        harness::{
            sleep,
            Deadline, //
        },
        race::race_harness::{
            linger,
            two_cpus,
            wait_for,
            Course,
            Tally,
            Threads,
            LEAST, //
        }, //
    },
    ndk::{
        abi::numbers::notify,
        call::done,
        connector::Connector,
        cq::{
            Cq,
            ResultEx, //
        },
        life::Ref,
        qp::Qp,
        status::{
            NtStatus,
            Progress, //
        }, //
    },
    sys::{
        cpu,
        softirq::BhDisabled, //
    }, //
};

/// Requests of one queue: accepted requests are numbered without gaps, and complete in order.
struct Ledger {
    accepted: Tally,
    refused: Tally,
    seen: Tally,
    cancelled: Tally,
    wrong: Tally,
}

impl Ledger {
    fn new() -> Self {
        Self {
            accepted: Tally::new(),
            refused: Tally::new(),
            seen: Tally::new(),
            cancelled: Tally::new(),
            wrong: Tally::new(),
        }
    }

    /// Posts a request. A refused request leaves its number to the next: should the refused request
    /// complete all the same, that number comes twice.
    fn post(&self, post: impl FnOnce(u64) -> Result<(), NtStatus>) {
        match post(self.accepted.get()) {
            Ok(()) => {
                self.accepted.hit();
            }
            Err(NtStatus::CONNECTION_INVALID) => {
                self.refused.hit();
            }
            Err(NtStatus::NO_MORE_ENTRIES) => (),
            Err(_) => {
                self.wrong.hit();
            }
        }
    }

    fn enter(&self, result: &ResultEx) {
        let is_next = result.request_context == self.seen.hit();
        let is_fine = match result.status {
            NtStatus::SUCCESS => self.cancelled.get() == 0,
            NtStatus::CANCELLED => {
                self.cancelled.hit();
                true
            }
            _ => false,
        };
        if !is_next || !is_fine {
            self.wrong.hit();
        }
    }

    fn is_balanced(&self) -> bool {
        self.accepted.get() == self.seen.get() && self.wrong.get() == 0
    }
}

/// One side that posts empty messages as fast as it can.
struct Poster {
    qp: Ref<Qp>,
    requests: Ref<Cq>,
    receives: Ref<Cq>,
    sends: Ledger,
    takes: Ledger,
}

impl Poster {
    fn new(test_side: &TestSide) -> Result<Arc<Self>> {
        let poster = Self {
            qp: (*test_side.qp).clone(),
            requests: (*test_side.requests.cq).clone(),
            receives: (*test_side.receives.cq).clone(),
            sends: Ledger::new(),
            takes: Ledger::new(),
        };
        Ok(Arc::new(poster, GFP_KERNEL)?)
    }

    fn collect(&self) {
        self.requests
            .results(256, |result| self.sends.enter(&result));
        self.receives
            .results(256, |result| self.takes.enter(&result));
    }

    fn turn(&self) {
        self.requests.arm(notify::SOLICITED);
        self.receives.arm(notify::ANY);
        for _ in 0..4 {
            let none = || [].into_iter();
            self.takes.post(|n| self.qp.receive(n, none()));
            self.sends.post(|n| self.qp.send(n, none(), 0));
        }
        self.collect();
    }

    /// Returns true if all accepted requests have completed.
    fn is_drained(&self) -> bool {
        self.collect();
        [&self.sends, &self.takes]
            .iter()
            .all(|ledger| ledger.accepted.get() <= ledger.seen.get())
    }

    /// Returns true if each accepted request has completed once, and properly.
    fn is_balanced(&self) -> bool {
        self.collect();
        let fine = self.sends.is_balanced() && self.takes.is_balanced();
        if !fine {
            let of = |l: &Ledger| (l.accepted.get(), l.seen.get(), l.wrong.get());
            kunit_note!(
                "sends {:?}, receives {:?}",
                of(&self.sends),
                of(&self.takes)
            );
        }
        fine
    }
}

/// A way to end a connection.
#[derive(Clone, Copy)]
enum Ending {
    Flush,
    Close,
}

/// The side that ends the connection, from softirq on another processor.
struct Breaker {
    qp: Ref<Qp>,
    connector: Option<Ref<Connector>>,
    ending: Ending,
    now: AtomicFlag,
    over: Tally,
    closed: Arc<CallbackValue<()>>,
}

impl Breaker {
    fn new(test_side: &mut TestSide, ending: Ending) -> Result<Arc<Self>> {
        let connector = match ending {
            Ending::Flush => None,
            Ending::Close => test_side.connector.as_mut().and_then(|c| c.give_up().ok()),
        };
        let breaker = Self {
            qp: (*test_side.qp).clone(),
            connector,
            ending,
            now: AtomicFlag::new(false),
            over: Tally::new(),
            closed: CallbackValue::new()?,
        };
        Ok(Arc::new(breaker, GFP_KERNEL)?)
    }

    fn turn(&self) {
        if !self.now.xchg(false, Full) {
            return;
        }
        match (self.ending, &self.connector) {
            (Ending::Flush, _) => self.qp.flush(),
            (Ending::Close, Some(connector)) => {
                let slot = self.closed.clone();
                // Without memory there is no close, and the test says so.
                let Ok(notified) = done(GFP_ATOMIC, move |()| slot.put(())) else {
                    return;
                };
                if matches!(connector.close(notified), Progress::Done) {
                    self.closed.put(());
                }
            }
            (Ending::Close, None) => return,
        }
        self.over.hit();
    }
}

/// The result of races between posts and an end.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    rounds: u64,
    wrong: u64,
    accepted: u64,
    refused: u64,
    cancelled: u64,
}

impl Score {
    /// Waits until all requests of a round have completed, and counts them.
    fn add_round(
        &mut self,
        test_host: &TestHost,
        posters: &[Arc<Poster>; 2],
        breaker: &Breaker,
    ) -> Result {
        if matches!(breaker.ending, Ending::Close) && breaker.closed.wait().is_none() {
            self.wrong += 1;
        }
        wait_for(|| posters.iter().all(|p| p.is_drained()))?;
        test_host.flush_work();
        for poster in posters {
            self.add(poster);
        }
        self.wrong += u64::from(breaker.closed.calls.get() > 1);
        self.rounds += 1;
        Ok(())
    }

    fn add(&mut self, poster: &Poster) {
        self.wrong += u64::from(!poster.is_balanced());
        self.accepted += poster.sends.accepted.get() + poster.takes.accepted.get();
        self.refused += poster.sends.refused.get();
        self.cancelled += poster.sends.cancelled.get() + poster.takes.cancelled.get();
        // A receive is never refused for want of a connection.
        self.wrong += u64::from(poster.takes.refused.get() != 0);
    }
}

/// Runs one round: both sides post, one of them ends the connection.
fn end_once(
    test_host: &TestHost,
    open_listener: &OpenListener,
    ending: Ending,
    score: &mut Score,
) -> Result {
    let mut test_sides = [
        TestSide::new(&test_host.adapter, 0xA, SIZES)?,
        TestSide::new(&test_host.adapter, 0xB, SIZES)?,
    ];
    let (a, b) = connect(
        &test_host.adapter,
        open_listener,
        (&test_sides[0], READS),
        (&test_sides[1], READS),
    )?;
    test_sides[0].connector = Some(a);
    test_sides[1].connector = Some(b);
    // CAST: zero or one.
    let who = (score.rounds % 2) as usize;
    let posters = [Poster::new(&test_sides[0])?, Poster::new(&test_sides[1])?];
    let breaker = Breaker::new(&mut test_sides[who], ending)?;
    let [here, there] = two_cpus();
    let mut threads = Threads::new()?;
    let (ends, other) = (posters[who].clone(), posters[1 - who].clone());
    threads.on(there, move || ends.turn())?;
    threads.thread(move || {
        let _softirqs_off = BhDisabled::enter();
        other.turn();
    })?;
    {
        let breaker = breaker.clone();
        threads.at_call(here, move || breaker.turn())?;
    }
    wait_for(|| posters.iter().all(|p| p.sends.seen.get() > 8))?;
    linger(score.rounds);
    breaker.now.xchg(true, Full);
    threads.nudge();
    wait_for(|| breaker.over.get() == 1)?;
    // Both sides are refused now, and post on.
    wait_for(|| posters.iter().all(|p| p.sends.refused.get() > 8))?;
    threads.dismiss();
    // The posted requests of the other side wait for its own flush.
    for test_side in &test_sides {
        test_side.qp.flush();
    }
    score.add_round(test_host, &posters, &breaker)
}

fn end_in_full_flight(ending: Ending) -> Result<Score> {
    let test_host = TestHost::new()?;
    let open_listener = OpenListener::new(&test_host.adapter)?;
    let course = Course::new();
    let mut score = Score::default();
    while score.rounds < 500 && course.goes_on(score.rounds >= LEAST) {
        end_once(&test_host, &open_listener, ending, &mut score)?;
    }
    pr_info!("race: {:?}\n", score);
    Ok(score)
}

/// The number of rounds of poll, arm and call in the race without loss.
const ROUNDS: u64 = 1_000_000;

/// The most time of that race, in milliseconds: with checkers and under emulation all rounds take
/// minutes. The race then has the rounds that there is time for, but at least `LEAST_ROUNDS`.
const RELAY_MS: Option<u64> = match cfg!(any(CONFIG_KASAN, CONFIG_KCSAN)) {
    true => Some(60_000),
    false => None,
};

/// The least number of rounds of that race.
const LEAST_ROUNDS: u64 = 1_000;

/// A consumer that polls until it gets fewer results than it asks for, and arms, in each call; and
/// producers on two processors. The quicker producer completes the next entry as soon as the last
/// one was taken, that is, between that poll and that arm.
struct Relay {
    cq: Ref<Cq>,
    made: Tally,
    taken: Tally,
    /// Calls that did not find exactly one entry.
    errors: Tally,
    /// The processor of the last call.
    cpu: Atomic<u32>,
    /// Entries from a processor other than `cpu`.
    crossed: Tally,
}

impl Relay {
    fn called(&self) {
        self.cpu.store(cpu::current(), Relaxed);
        let got = self.cq.results(2, |_| ());
        if got != 1 {
            self.errors.hit();
        }
        // From here on the next entry may come.
        self.taken.add(u64::from(got));
        self.cq.arm(notify::ANY);
    }

    /// Completes each entry that this producer claims first, for 8 ms.
    fn produce(&self, claimed: &Tally, rounds: u64) {
        let deadline = Deadline::in_ms(8);
        for look in 0..u64::MAX {
            if look % 256 == 255 && deadline.is_over() {
                return;
            }
            let next = self.taken.get();
            if next >= rounds {
                return;
            }
            if !claimed.try_claim(next) {
                core::hint::spin_loop();
                continue;
            }
            let _softirqs_off = BhDisabled::enter();
            if self.cpu.load(Relaxed) != cpu::current() {
                self.crossed.hit();
            }
            self.made.hit();
            let _ = self.cq.engine().push(&RECEIVE);
        }
    }
}

/// The counts of a relay: calls, entries made and taken, odd calls, and crossed entries.
#[derive(Clone, Copy, Debug)]
struct Relayed {
    calls: u64,
    made: u64,
    taken: u64,
    odd: u64,
    crossed: u64,
    is_proper: bool,
}

fn relay(rounds: u64, most_ms: Option<u64>) -> Result<Relayed> {
    let test_host = TestHost::new()?;
    let queue = Caller::new(&test_host.adapter, 8)?;
    let relay = Arc::new(
        Relay {
            cq: (*queue.cq).clone(),
            made: Tally::new(),
            taken: Tally::new(),
            errors: Tally::new(),
            cpu: Atomic::new(u32::MAX),
            crossed: Tally::new(),
        },
        GFP_KERNEL,
    )?;
    let called = relay.clone();
    queue.log.set_hook(move |_| called.called())?;
    queue.cq.arm(notify::ANY);
    let claimed = Arc::new(Tally::new(), GFP_KERNEL)?;
    let mut threads = Threads::new()?;
    for _ in two_cpus() {
        let (relay, claimed) = (relay.clone(), claimed.clone());
        threads.thread(move || relay.produce(&claimed, rounds))?;
    }
    let course = most_ms.map(Course::of_ms);
    let (mut before, mut hang) = (0, Deadline::of_a_hang());
    let is_enough = || relay.taken.get() >= LEAST_ROUNDS && relay.crossed.get() > 0;
    let goes_on = || course.as_ref().is_none_or(|c| c.goes_on(is_enough()));
    while relay.taken.get() < rounds && goes_on() {
        sleep(20);
        let now = relay.taken.get();
        if now > before {
            (before, hang) = (now, Deadline::of_a_hang());
        } else if hang.is_over() {
            kunit_note!("race: waited in vain for the call for an entry");
            break;
        }
    }
    threads.dismiss();
    test_host.flush_work();
    let score = Relayed {
        calls: u64::from(queue.log.calls.get()),
        made: relay.made.get(),
        taken: relay.taken.get(),
        odd: relay.errors.get(),
        crossed: relay.crossed.get(),
        is_proper: queue.log.is_proper(),
    };
    pr_info!("race: arm against completion, {:?}\n", score);
    Ok(score)
}

/// Completes and arms on two processors at once. Returns the number of calls, and true if no two
/// calls overlapped and no entry was lost.
fn call_from_everywhere() -> Result<(u64, bool)> {
    let test_host = TestHost::new()?;
    let queue = Caller::new(&test_host.adapter, 1024)?;
    let taken = Arc::new(Tally::new(), GFP_KERNEL)?;
    let made = Arc::new(Tally::new(), GFP_KERNEL)?;
    {
        let (cq, taken) = ((*queue.cq).clone(), taken.clone());
        queue.log.set_hook(move |_| {
            taken.add(u64::from(cq.results(1024, |_| ())));
            cq.arm(notify::ANY);
            // Time in which the next call might come too early.
            linger(taken.get());
        })?;
    }
    let mut threads = Threads::new()?;
    for at in two_cpus() {
        let (cq, taken, made) = ((*queue.cq).clone(), taken.clone(), made.clone());
        threads.on(at, move || {
            for _ in 0..4 {
                if made.get() < taken.get() + 512 {
                    made.hit();
                    let _ = cq.engine().push(&RECEIVE);
                }
                cq.arm(notify::ANY);
            }
        })?;
    }
    let course = Course::new();
    let is_enough = || u64::from(queue.log.calls.get()) >= LEAST;
    while queue.log.calls.get() < 20_000 && course.goes_on(is_enough()) {
        sleep(20);
    }
    threads.dismiss();
    queue.cq.arm(notify::ANY);
    let all = wait_for(|| taken.get() == made.get()).is_ok();
    test_host.flush_work();
    let calls = u64::from(queue.log.calls.get());
    pr_info!("race: {} calls for {} completions\n", calls, made.get());
    Ok((calls, all && queue.log.is_proper()))
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_stress)]
mod tests {
    use super::*;

    #[test]
    fn ndk_post_17_flush_against_posting_refuses_or_completes_each_once() -> Result {
        let score = end_in_full_flight(Ending::Flush)?;
        assert!(score.rounds >= LEAST);
        assert!(score.accepted > 0);
        assert!(score.refused > 0);
        kunit_assert_eq!(score.wrong, 0);
        Ok(())
    }

    #[test]
    fn ndk_post_17_close_of_the_connector_against_posting() -> Result {
        let score = end_in_full_flight(Ending::Close)?;
        assert!(score.rounds >= LEAST);
        assert!(score.accepted > 0);
        assert!(score.refused > 0);
        kunit_assert_eq!(score.wrong, 0);
        Ok(())
    }

    #[test]
    fn ndk_flsh_03_each_accepted_request_completes_once_in_order_while_processors_race() -> Result {
        let score = end_in_full_flight(Ending::Flush)?;
        assert!(score.rounds >= LEAST);
        assert!(score.cancelled > 0);
        kunit_assert_eq!(score.wrong, 0);
        Ok(())
    }

    #[test]
    fn ndk_arm_11_calls_of_one_queue_never_overlap() -> Result {
        let (calls, proper) = call_from_everywhere()?;
        assert!(calls >= LEAST);
        assert!(proper);
        Ok(())
    }

    #[test]
    fn ndk_arm_14_no_call_is_lost_between_poll_and_arm_in_a_million_rounds() -> Result {
        let score = relay(ROUNDS, RELAY_MS)?;
        let in_time = RELAY_MS.is_some() && score.made >= LEAST_ROUNDS;
        assert!(score.made == ROUNDS || in_time);
        kunit_assert_eq!(score.taken, score.made);
        kunit_assert_eq!(score.calls, score.made);
        kunit_assert_eq!(score.odd, 0);
        assert!(score.crossed > 0);
        assert!(score.is_proper);
        Ok(())
    }
}
