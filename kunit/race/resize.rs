// SPDX-License-Identifier: GPL-2.0

//! Queues that are resized while entries come and go on two processors.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::race_harness::{
    two_cpus,
    wait_for,
    Course,
    Tally,
    Threads,
    LEAST, //
};
use crate::{
    engine::{
        cq::CompletionQueue,
        ring::ResizeError,
        srq::SharedReceive, //
    },
    kunit::{
        harness::{
            EndAttr,
            EngineHost,
            QpPair,
            RNR_MS, //
        },
        queues::Queue, //
    },
    rdma::values::{
        completion::Wc,
        work::{
            SendFlags,
            SendOp,
            SendWith, //
        }, //
    },
    sys::{
        requests::test_context,
        sge::test_posted, //
    }, //
};

/// The most entries that are in a queue: more than one hold of its lock moves.
const AHEAD: u64 = 200;

/// The depths, one after the other; each has room for [`AHEAD`] entries.
const DEPTHS: [u32; 4] = [256, 1000, 201, 300];

/// The entries that came out: in order, each once.
struct EntryOrder {
    made: Tally,
    taken: Tally,
    wrong: Tally,
}

impl EntryOrder {
    fn new() -> Result<Arc<Self>> {
        let order = Self {
            made: Tally::new(),
            taken: Tally::new(),
            wrong: Tally::new(),
        };
        Ok(Arc::new(order, GFP_KERNEL)?)
    }

    fn enter(&self, entry: &Wc) {
        if entry.context.raw() != self.taken.hit() || !entry.status.is_success() {
            self.wrong.hit();
        }
    }

    /// Makes the next entry, if there is room; returns true if it did.
    fn make(&self, make: impl FnOnce(u64) -> bool) -> bool {
        let n = self.made.get();
        if n - self.taken.get() >= AHEAD {
            return false;
        }
        self.made.hit();
        if !make(n) {
            self.wrong.hit();
        }
        true
    }
}

/// Resizes from two threads until the time is up; returns the number of rounds.
fn resize(
    threads: &mut Threads,
    order: &EntryOrder,
    resize: impl Fn(u32) -> Result<(), ResizeError> + Send + Sync + Clone + 'static,
) -> Result<u64> {
    let (other, turn) = (resize.clone(), Tally::new());
    // CAST: below the number of depths.
    let depth = |n: u64| DEPTHS[(n % DEPTHS.len() as u64) as usize];
    threads.thread(move || {
        let _ = other(depth(turn.hit() * 3));
    })?;
    let course = Course::new();
    let mut rounds = 0;
    while course.goes_on(rounds >= LEAST && order.made.get() > AHEAD) {
        if resize(depth(rounds)).is_err() {
            order.wrong.hit();
        }
        rounds += 1;
        if rounds % 64 == 0 {
            let before = order.taken.get();
            wait_for(|| order.taken.get() > before)?;
        }
    }
    threads.dismiss();
    Ok(rounds)
}

/// Moves numbered entries from one processor to another. Returns the numbers of entries made, of
/// entries taken, of errors, and of resizes.
fn completions() -> Result<(u64, u64, u64, u64)> {
    let engine_host = EngineHost::new(RNR_MS)?;
    let queue = Queue::new(&engine_host.device()?, DEPTHS[0], u32::MAX)?;
    let order = EntryOrder::new()?;
    let [here, there] = two_cpus();
    let mut threads = Threads::new()?;
    let cq = || -> (Arc<CompletionQueue>, Arc<EntryOrder>) { (queue.cq.clone(), order.clone()) };
    {
        let (cq, order) = cq();
        threads.on(there, move || {
            let push = |context| {
                let entry = Wc {
                    context: test_context(context),
                    ..Wc::BLANK
                };
                cq.push(&entry).is_ok()
            };
            // Sometimes few are there, sometimes all.
            let most = 1 + order.made.get() % 97;
            let _ = (0..most).all(|_| order.make(push));
        })?;
    }
    {
        let (cq, order) = cq();
        threads.on(here, move || {
            // CAST: below 64.
            let most = (order.taken.get() % 61) as usize + 1;
            cq.poll(most, |entry| order.enter(&entry));
        })?;
    }
    let cq = queue.cq.clone();
    let rounds = resize(&mut threads, &order, move |depth| cq.resize(depth))?;
    queue.cq.poll(usize::MAX, |entry| order.enter(&entry));
    let score = (
        order.made.get(),
        order.taken.get(),
        order.wrong.get(),
        rounds,
    );
    pr_info!("race: resized under completions: {:?}\n", score);
    Ok(score)
}

/// The same for the receives of a shared queue, and messages that take them.
fn receives() -> Result<(u64, u64, u64, u64)> {
    let mut attr = EndAttr::shared(DEPTHS[0]);
    attr.receive_entries = 512;
    // The host goes last.
    let QpPair {
        engine_host: _engine_host,
        a,
        b,
    } = QpPair::with(&EndAttr::PLAIN, &attr)?;
    let (Some(shared), receives) = (b.shared.clone(), b.receives.clone()) else {
        return Err(EINVAL);
    };
    let order = EntryOrder::new()?;
    let [here, there] = two_cpus();
    let mut threads = Threads::new()?;
    let srq = shared.srq.clone();
    {
        let (srq, order): (Arc<SharedReceive>, _) = (srq.clone(), order.clone());
        threads.on(there, move || {
            let most = 1 + order.made.get() % 97;
            let post = |context| srq.post(test_posted(context, [].into_iter())).is_ok();
            let _ = (0..most).all(|_| order.make(post));
        })?;
    }
    {
        let (a, cq, order) = (a.qp.clone(), receives.cq.clone(), order.clone());
        threads.on(here, move || {
            let work = SendOp::Send {
                with: SendWith::Nothing,
            };
            for _ in 0..16 {
                // A full queue is tried again.
                let _ = a.post(0, work, SendFlags::empty(), [].into_iter());
            }
            a.ring_doorbell();
            cq.poll(usize::MAX, |entry| order.enter(&entry));
        })?;
    }
    let rounds = resize(&mut threads, &order, move |depth| srq.resize(depth))?;
    // Counts the entries still in flight, and those left in the queue.
    a.qp.fail();
    drop(b);
    let still = |entry: Wc| {
        if entry.status.is_success() {
            order.enter(&entry);
        }
    };
    receives.cq.poll(usize::MAX, still);
    let taken = order.taken.get();
    let room = (0..).take_while(|_| shared.srq.post(test_posted(0, [].into_iter())).is_ok());
    // CAST: not more than a depth.
    let left = u64::from(shared.srq.depth()) - room.count() as u64;
    let score = (order.made.get(), taken + left, order.wrong.get(), rounds);
    pr_info!(
        "race: resized under receives: {:?}, {} taken\n",
        score,
        taken
    );
    Ok(score)
}

#[kernel::macros::kunit_tests(ndk_kunit_race_resize)]
mod tests {
    use super::*;

    #[test]
    fn no_completion_is_lost_or_reordered_while_the_depth_changes() -> Result {
        let (made, taken, wrong, resized) = completions()?;
        assert!(made > AHEAD);
        assert!(resized >= LEAST);
        kunit_assert_eq!(made, taken);
        kunit_assert_eq!(wrong, 0);
        Ok(())
    }

    #[test]
    fn no_receive_is_lost_or_reordered_while_the_depth_changes() -> Result {
        let (made, found, wrong, resized) = receives()?;
        assert!(made > AHEAD);
        assert!(resized >= LEAST);
        // A receive that a message had taken when the connection broke comes back with an error.
        assert!(found <= made);
        assert!(made - found <= 1);
        kunit_assert_eq!(wrong, 0);
        Ok(())
    }
}
