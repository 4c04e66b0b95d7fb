// SPDX-License-Identifier: GPL-2.0

//! Posts to one queue pair from two processors, in softirq, and ends of its connection at the same
//! time (POST-16, POST-17).
//!
//! A failed check ends a thread without cleaning up, so each race is run to its end in a function
//! and judged after that.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            AtomicFlag, //
        },
        Arc, //
    }, //
};

use super::{
    completion::AutoClose,
    host::{
        TestHost,
        SIZES, //
    },
    pair::{
        connect,
        OpenListener,
        Pair,
        TestSide,
        READS, //
    }, //
};
use crate::{
    kunit::{
        harness::Deadline,
        log::Tally,
        race::race_harness::{
            linger,
            two_cpus,
            wait_for,
            Threads, //
        }, //
    },
    ndk::{
        cq::{
            Cq,
            ResultEx, //
        },
        life::Ref,
        qp::Qp,
        status::NtStatus, //
    },
    rdma::values::work::RemoteAddr,
    sys::sge::Sge, //
};

/// The most results that one turn takes.
const TURN: u32 = 64;

/// The most outstanding requests.
const OUT: u32 = 32;

/// One queue of requests, and its results.
struct Ledger {
    cq: Ref<Cq>,
    accepted: Tally,
    refused: Tally,
    seen: Tally,
    cancelled: Tally,
    /// Results that are out of order or not as expected, and refusals for another reason.
    wrong: Tally,
}

impl Ledger {
    fn new(cq: &Ref<Cq>) -> Self {
        Self {
            cq: cq.clone(),
            accepted: Tally::new(),
            refused: Tally::new(),
            seen: Tally::new(),
            cancelled: Tally::new(),
            wrong: Tally::new(),
        }
    }

    /// Posts the next request. `refusal` is the one refusal that may come beside a full queue.
    fn post(
        &self,
        post: impl FnOnce(u64) -> Result<(), NtStatus>,
        refusal: Option<NtStatus>,
    ) -> bool {
        // Only an accepted request gets a number; no other thread posts here.
        match post(u64::from(self.accepted.get())) {
            Ok(()) => {
                self.accepted.hit();
                return true;
            }
            Err(NtStatus::NO_MORE_ENTRIES) => (),
            Err(status) if Some(status) == refusal => {
                self.refused.hit();
            }
            Err(_) => {
                self.wrong.hit();
            }
        }
        false
    }

    /// Returns true if the completion queue has room for the result of another request.
    fn has_room(&self) -> bool {
        self.accepted.get() - self.seen.get() < OUT
    }

    /// Takes results, and checks them. One caller at a time.
    fn collect(&self, is_whole: impl Fn(&ResultEx) -> bool) {
        self.cq.results(TURN, |result| {
            let in_order = result.request_context == u64::from(self.seen.hit());
            let fine = match result.status {
                NtStatus::SUCCESS => self.cancelled.get() == 0 && is_whole(&result),
                NtStatus::CANCELLED => {
                    self.cancelled.hit();
                    true
                }
                _ => false,
            };
            if !in_order || !fine {
                self.wrong.hit();
            }
        });
    }

    fn is_balanced(&self) -> bool {
        let fine = self.seen.get() == self.accepted.get() && self.wrong.get() == 0;
        if !fine {
            let (seen, accepted) = (self.seen.get(), self.accepted.get());
            kunit_note!("{} of {}, {} wrong", seen, accepted, self.wrong.get());
        }
        fine
    }
}

/// Both queues of a queue pair.
struct Queues {
    qp: Ref<Qp>,
    requests: Ledger,
    receives: Ledger,
}

impl Queues {
    fn of(test_side: &TestSide) -> Result<Arc<Self>> {
        let queues = Self {
            qp: (*test_side.qp).clone(),
            requests: Ledger::new(&test_side.requests.cq),
            receives: Ledger::new(&test_side.receives.cq),
        };
        Ok(Arc::new(queues, GFP_KERNEL)?)
    }
}

/// The number of messages of each side.
const MESSAGES: u32 = 3000;

/// The length of message `n`.
fn length(n: u64) -> u32 {
    // CAST: below 13.
    (n % 13) as u32 * 8
}

/// Sends messages both ways between two queue pairs: one processor posts to both initiator queues,
/// the other one to both receive queues. Returns true if all went well, and the number of messages.
fn both_queues_at_once() -> Result<(bool, u32)> {
    let pair = Pair::new()?;
    let (from, to) = (
        [pair.a.buffer(4096, 0)?, pair.b.buffer(4096, 0)?],
        [pair.a.buffer(4096, 1)?, pair.b.buffer(4096, 1)?],
    );
    let sides = [Queues::of(&pair.a)?, Queues::of(&pair.b)?];
    let [first, second] = two_cpus();
    let mut threads = Threads::new()?;
    for (side, buffer) in sides.iter().zip(&from) {
        let (side, sge) = (side.clone(), buffer.sge(0, 0)?);
        threads.on(first, move || {
            let ledger = &side.requests;
            ledger.collect(|_| true);
            while ledger.accepted.get() < MESSAGES && ledger.has_room() {
                let post = |n| {
                    let list = [Sge::new(sge.addr(), length(n), sge.token())];
                    side.qp.send(n, list.into_iter(), 0)
                };
                if !ledger.post(post, None) {
                    break;
                }
            }
        })?;
    }
    for (side, buffer) in sides.iter().zip(&to) {
        let (side, sge) = (side.clone(), buffer.sge(0, 4096)?);
        threads.on(second, move || {
            let ledger = &side.receives;
            ledger.collect(|got| got.bytes == length(got.request_context));
            while ledger.accepted.get() < MESSAGES && ledger.has_room() {
                if !ledger.post(|n| side.qp.receive(n, [sge].into_iter()), None) {
                    break;
                }
            }
        })?;
    }
    let ended = wait_for(|| {
        sides.iter().all(|side| {
            let all = [&side.requests, &side.receives];
            all.iter().all(|l| l.seen.get() >= MESSAGES)
        })
    });
    threads.dismiss();
    ended?;
    let balanced = sides.iter().all(|side| {
        let all = [&side.requests, &side.receives];
        all.iter()
            .all(|l| l.is_balanced() && l.cancelled.get() == 0)
    });
    let silent = [&pair.a, &pair.b]
        .iter()
        .all(|p| p.requests.stays_empty() && p.receives.stays_empty());
    Ok((balanced && silent, sides[0].requests.seen.get()))
}

/// A way to end a connection.
#[derive(Clone, Copy)]
enum End {
    Flush,
    CloseConnector,
}

/// Posts to both queues of one side from two processors, before and after the end of its
/// connection. Returns true if each request was refused or has completed once.
fn end_meets_posts(
    test_host: &TestHost,
    open_listener: &OpenListener,
    end: End,
    round: u64,
) -> Result<bool> {
    let mut a = TestSide::new(&test_host.adapter, 0xA, SIZES)?;
    let mut b = TestSide::new(&test_host.adapter, 0xB, SIZES)?;
    let (from, to) = (a.buffer(4096, 0)?, b.buffer(4096, 5)?);
    let (ours, theirs) = connect(&test_host.adapter, open_listener, (&a, READS), (&b, READS))?;
    a.connector = Some(ours);
    b.connector = Some(theirs);
    let side = Queues::of(&a)?;
    let mut threads = Threads::new()?;
    let [first, second] = two_cpus();
    let poster = side.clone();
    let (sge, there): (Sge, RemoteAddr) = (from.sge(0, 64)?, to.remote(0)?);
    threads.on(first, move || {
        let ledger = &poster.requests;
        let post = |n| poster.qp.write(n, [sge].into_iter(), there, 0);
        while ledger.has_room() && ledger.post(post, Some(NtStatus::CONNECTION_INVALID)) {}
        ledger.collect(|_| true);
    })?;
    let poster = side.clone();
    threads.on(second, move || {
        let ledger = &poster.receives;
        let post = |n| poster.qp.receive(n, [].into_iter());
        while ledger.has_room() && ledger.post(post, None) {}
        // No message comes.
        ledger.collect(|_| false);
    })?;
    let begun = wait_for(|| side.requests.seen.get() > 20 && side.receives.accepted.get() > 8);
    linger(round);
    let mut closer: Option<AutoClose<_>> = a.connector.take();
    match end {
        End::Flush => a.qp.flush(),
        End::CloseConnector => drop(closer.take()),
    }
    let refused = wait_for(|| side.requests.refused.get() > 0);
    threads.dismiss();
    test_host.flush_work();
    let all = [&side.requests, &side.receives];
    let emptied = wait_for(|| {
        side.requests.collect(|_| true);
        side.receives.collect(|_| false);
        all.iter().all(|l| l.seen.get() >= l.accepted.get())
    });
    begun?;
    refused?;
    emptied?;
    let silent = a.requests.stays_empty() && a.receives.stays_empty();
    let stays = a.qp.send(0, [].into_iter(), 0) == Err(NtStatus::CONNECTION_INVALID);
    let met = side.receives.cancelled.get() > 0;
    drop(closer);
    Ok(all.iter().all(|l| l.is_balanced()) && silent && stays && met)
}

fn rounds(end: End) -> Result<bool> {
    let test_host = TestHost::new()?;
    let open_listener = OpenListener::new(&test_host.adapter)?;
    for round in 0..12 {
        if !end_meets_posts(&test_host, &open_listener, end, round)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The state that two posts to the queues of one queue pair share.
struct Meeting {
    qp: Ref<Qp>,
    /// The post to the initiator queue is inside; the post to the receive queue has returned.
    inside: AtomicFlag,
    returned: AtomicFlag,
    /// The post to the initiator queue was still inside then.
    met: AtomicFlag,
    over: AtomicFlag,
}

impl Meeting {
    /// Waits, inside the post, for the post to the receive queue; only a hang ends the wait early.
    fn wait(&self, deadline: Deadline) {
        self.inside.store(true, Release);
        while !self.returned.load(Acquire) {
            if deadline.is_over() {
                return;
            }
            core::hint::spin_loop();
        }
        self.met.store(true, Release);
    }

    /// Posts a send that reads its list to the end only after the post to the receive queue.
    fn post_send(&self) {
        if self.over.load(Acquire) {
            return;
        }
        let deadline = Deadline::of_a_hang();
        let list = [Sge::EMPTY].into_iter().inspect(|_| self.wait(deadline));
        let _ = self.qp.send(1, list, 0);
        self.over.store(true, Release);
    }

    fn post_receive(&self) {
        let due = self.inside.load(Acquire) && !self.returned.load(Acquire);
        if due && self.qp.receive(2, [].into_iter()).is_ok() {
            self.returned.store(true, Release);
        }
    }
}

/// Returns true if a post to the receive queue returns while a post to the initiator queue of the
/// same queue pair is inside. Also true with one processor only.
fn posts_do_not_wait_for_each_other() -> Result<bool> {
    let pair = Pair::new()?;
    let meeting = Meeting {
        qp: (*pair.a.qp).clone(),
        inside: AtomicFlag::new(false),
        returned: AtomicFlag::new(false),
        met: AtomicFlag::new(false),
        over: AtomicFlag::new(false),
    };
    let meeting = Arc::new(meeting, GFP_KERNEL)?;
    let [first, second] = two_cpus();
    if first == second {
        return Ok(true);
    }
    let mut threads = Threads::new()?;
    let (sender, receiver) = (meeting.clone(), meeting.clone());
    threads.on(second, move || receiver.post_receive())?;
    threads.at_call(first, move || sender.post_send())?;
    let ended = wait_for(|| meeting.over.load(Acquire));
    threads.dismiss();
    ended?;
    let met = meeting.met.load(Acquire);
    if !met {
        kunit_note!("the post waited in vain for the other");
    }
    Ok(met)
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_post_race)]
mod tests {
    use super::*;

    #[test]
    fn ndk_post_16_both_queues_may_be_posted_to_at_once() -> Result {
        let (fine, messages) = both_queues_at_once()?;
        assert!(fine);
        kunit_assert_eq!(messages, MESSAGES);
        Ok(())
    }

    #[test]
    fn ndk_post_16_a_post_to_one_queue_does_not_wait_for_one_to_the_other() -> Result {
        assert!(posts_do_not_wait_for_each_other()?);
        Ok(())
    }

    #[test]
    fn ndk_post_17_flush_meets_posts_and_each_is_refused_or_completes_once() -> Result {
        assert!(rounds(End::Flush)?);
        Ok(())
    }

    #[test]
    fn ndk_post_17_connector_close_meets_posts_and_each_is_refused_or_completes_once() -> Result {
        assert!(rounds(End::CloseConnector)?);
        Ok(())
    }
}
