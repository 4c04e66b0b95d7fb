// SPDX-License-Identifier: GPL-2.0

//! The parts of races: work that repeats itself on a processor or in a thread, and time.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Full,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use crate::{
    kunit::harness::Deadline,
    sys::{
        cpu,
        event::Event,
        softirq::{
            BhQueue,
            ProcessQueue, //
        }, //
    }, //
};

/// The time of a race that has come far enough, in milliseconds.
const RACE_MS: u64 = 1_000;

/// The rounds that a race has at least, however slow the machine is.
pub(crate) const LEAST: u64 = 10;

/// The checks of memory that has to stand still, in each round.
pub(crate) const LOOKS: u32 = 3;

/// A number that several processors raise.
pub(crate) struct Tally(Atomic<u64>);

impl Tally {
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds one; returns the number before.
    pub(crate) fn hit(&self) -> u64 {
        self.add(1)
    }

    /// Adds `n`; returns the number before.
    pub(crate) fn add(&self, n: u64) -> u64 {
        self.0.fetch_add(n, Relaxed)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Acquire)
    }

    /// Adds one if the number is `n`; true for one caller only.
    pub(crate) fn try_claim(&self, n: u64) -> bool {
        self.get() == n && self.0.cmpxchg(n, n + 1, Full).is_ok()
    }
}

/// The number of steps of one race that may be as late as any wait. KUnit's own limit is longer
/// than all of them, under emulation, too.
const MOST_STEPS: u32 = 3;

/// The time of a race: the normal end, and the end of a race that does not come far enough.
pub(crate) struct Course {
    end: Deadline,
    hang: Deadline,
}

impl Course {
    /// The time of a race that begins now.
    pub(crate) fn new() -> Self {
        Self::of_ms(RACE_MS)
    }

    /// The same, with `ms` milliseconds for the race.
    pub(crate) fn of_ms(ms: u64) -> Self {
        Self {
            end: Deadline::in_ms(ms),
            hang: Deadline::of_hangs(MOST_STEPS),
        }
    }

    /// Returns true if the race goes on: until its time is up, and longer if it has not come far
    /// enough, which only a hang ends. The test checks that, too.
    pub(crate) fn goes_on(&self, is_enough: bool) -> bool {
        !self.end.is_over() || !(is_enough || self.hang.is_over())
    }
}

/// Waits until `is_so`: first without a pause, so as to miss no short state, then with pauses.
///
/// `ETIMEDOUT` after the time of [`Deadline::of_a_hang`].
pub(crate) fn wait_for(mut is_so: impl FnMut() -> bool) -> Result {
    for _ in 0..2_000 {
        if is_so() {
            return Ok(());
        }
        core::hint::spin_loop();
    }
    let deadline = Deadline::of_a_hang();
    while !is_so() {
        if deadline.is_over() {
            kunit_note!("race: waited in vain");
            return Err(ETIMEDOUT);
        }
        fsleep(Delta::from_micros(20));
    }
    Ok(())
}

/// Lets a little time pass, different each round, so that a race is caught at different points.
pub(crate) fn linger(round: u64) {
    for _ in 0..(round.wrapping_mul(7919) % 97) * 8 {
        core::hint::spin_loop();
    }
}

/// Two processors that are online, or one of them twice if there is only one.
pub(crate) fn two_cpus() -> [u32; 2] {
    let mut online = (0..cpu::count_ids()).filter(|c| cpu::is_online(*c));
    let first = online.next().unwrap_or(0);
    [first, online.next().unwrap_or(first)]
}

/// The context of a worker.
#[derive(Clone, Copy)]
enum Where {
    /// In softirq on this processor, without end.
    Softirq(u32),
    /// In softirq on this processor, once for each nudge.
    Nudged(u32),
    /// In a thread, with pauses.
    Thread,
}

struct Queues {
    softirqs: BhQueue,
    threads: ProcessQueue,
}

/// Repeats its work until it is stopped.
#[pin_data]
struct Worker {
    queues: Arc<Queues>,
    place: Where,
    turn: KBox<dyn Fn() + Send + Sync>,
    stop: Atomic<u32>,
    #[pin]
    stopped: Event,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Worker { self.work }
}

impl Worker {
    /// Queues the next turn; one that is queued already is enough.
    fn again(self: Arc<Self>) {
        let queues = self.queues.clone();
        let _ = match self.place {
            Where::Softirq(cpu) | Where::Nudged(cpu) => queues.softirqs.enqueue_on(cpu, self),
            Where::Thread => queues.threads.enqueue(self),
        };
    }
}

impl WorkItem for Worker {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.stop.load(Acquire) != 0 {
            this.stopped.signal();
            return;
        }
        (this.turn)();
        match this.place {
            Where::Softirq(_) => this.again(),
            Where::Nudged(_) => (),
            Where::Thread => {
                fsleep(Delta::from_micros(50));
                this.again();
            }
        }
    }
}

/// Workers that race until they are dismissed or dropped.
pub(crate) struct Threads {
    queues: Arc<Queues>,
    workers: KVec<Arc<Worker>>,
}

impl Threads {
    /// No workers yet. May sleep.
    pub(crate) fn new() -> Result<Self> {
        let queues = Queues {
            softirqs: BhQueue::new(c"ndk_race")?,
            threads: ProcessQueue::new(c"ndk_race_threads")?,
        };
        Ok(Self {
            queues: Arc::new(queues, GFP_KERNEL)?,
            workers: KVec::new(),
        })
    }

    /// Takes `turn` again and again in softirq on processor `cpu`. May sleep.
    pub(crate) fn on(&mut self, cpu: u32, turn: impl Fn() + Send + Sync + 'static) -> Result {
        self.hire(Where::Softirq(cpu), KBox::new(turn, GFP_KERNEL)?)
    }

    /// Takes `turn` in softirq on processor `cpu` when [`Threads::nudge`] is called. May sleep.
    pub(crate) fn at_call(&mut self, cpu: u32, turn: impl Fn() + Send + Sync + 'static) -> Result {
        self.hire(Where::Nudged(cpu), KBox::new(turn, GFP_KERNEL)?)
    }

    /// Lets the workers of [`Threads::at_call`] take a turn.
    pub(crate) fn nudge(&self) {
        for worker in &self.workers {
            if matches!(worker.place, Where::Nudged(_)) {
                worker.clone().again();
            }
        }
    }

    /// Takes `turn` again and again in a thread, with pauses. May sleep.
    pub(crate) fn thread(&mut self, turn: impl Fn() + Send + Sync + 'static) -> Result {
        self.hire(Where::Thread, KBox::new(turn, GFP_KERNEL)?)
    }

    fn hire(&mut self, place: Where, turn: KBox<dyn Fn() + Send + Sync>) -> Result {
        let queues = self.queues.clone();
        // A lockdep class each: work of one class is never waited for in the context of the other.
        let work = match place {
            Where::Softirq(_) | Where::Nudged(_) => new_work!("ndk_race_softirq"),
            Where::Thread => new_work!("ndk_race_thread"),
        };
        let init = pin_init!(Worker {
            queues,
            place,
            turn,
            stop: Atomic::new(0),
            stopped <- Event::new(),
            work <- work,
        });
        let worker = Arc::pin_init(init, GFP_KERNEL)?;
        self.workers.push(worker.clone(), GFP_KERNEL)?;
        worker.again();
        Ok(())
    }

    /// Stops all workers; returns when the last turn is over. May sleep.
    pub(crate) fn dismiss(&mut self) {
        for worker in &self.workers {
            worker.stop.store(1, Release);
        }
        self.nudge();
        for worker in &self.workers {
            worker.stopped.wait();
        }
        // The last run still drops its reference to the worker, which must not free the queues.
        self.queues.softirqs.flush();
        self.queues.threads.flush();
        self.workers.clear();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.dismiss();
    }
}
