// SPDX-License-Identifier: GPL-2.0

//! [`SharedReceive`]: receives that several queue pairs take from, with a low-water event.
//!
//! Messages that find no receive wait in order, one for each queue pair. As many as there are
//! receives are called, from the front, and each of those has one for sure: who comes later takes
//! only what is left. So nobody waits while others are served behind him.
//!
//! Context: any, but for making, resizing and closing. Lock order: `resizing`; the lock of a queue
//! pair's receive queue, then `inner`, then the lock of a queue pair's link.

#[cfg(ndk_kunit)]
mod tests;

use kernel::{
    impl_has_work,
    new_mutex,
    new_spinlock_irq,
    new_work,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLockIrq, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    domain::Domain,
    notifier::Notifier,
    qp::{
        PostError,
        QueuePair,
        ReceiveRing,
        RecvWqe, //
    },
    ring::{
        ResizableRing,
        ResizeError, //
    },
    work::Sge, //
};

/// What a face is notified. Called in softirq, under no lock.
pub(crate) trait SrqEvents: Send + Sync {
    /// The number of receives fell below the limit. The limit is off now.
    fn limit_reached(&self);
    /// The queue was given up: nobody gets a receive from it any more. Told once.
    fn failed(&self) {}
}

const LIMIT: u32 = 1;
const FAILED: u32 = 2;

struct Inner {
    ring: ResizableRing<ReceiveRing>,
    /// Fewer than this many receives raise the event once; 0 is off.
    limit: u32,
    /// The limit counts: one of a new queue does when there were that many receives once.
    primed: bool,
    failed: bool,
    /// Queue pairs with a message that waits; those before the number of receives are called.
    /// Has room for all that use this queue.
    waiting: KVec<Arc<QueuePair>>,
    users: usize,
}

/// A shared receive queue.
#[pin_data]
pub(crate) struct SharedReceive {
    domain: Arc<Domain>,
    max_sge: u32,
    events: KBox<dyn SrqEvents>,
    /// Held by the one who changes the depth.
    #[pin]
    resizing: Mutex<()>,
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    upcalls: Notifier,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for SharedReceive { self.work }
}

impl SharedReceive {
    /// May sleep.
    pub(crate) fn new(
        domain: Arc<Domain>,
        depth: u32,
        max_sge: u32,
        events: KBox<dyn SrqEvents>,
    ) -> Result<Arc<Self>> {
        let inner = Inner {
            ring: ResizableRing::new(ReceiveRing::new(depth, max_sge)?),
            limit: 0,
            primed: false,
            failed: false,
            waiting: KVec::new(),
            users: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                domain,
                max_sge,
                events,
                resizing <- new_mutex!(()),
                inner <- new_spinlock_irq!(inner),
                upcalls <- Notifier::new(),
                work <- new_work!("ndk_srq"),
            }),
            GFP_KERNEL,
        )
    }

    /// The most elements that a receive has.
    pub(crate) fn max_sge(&self) -> u32 {
        self.max_sge
    }

    /// The number of receives that the queue takes.
    pub(crate) fn depth(&self) -> u32 {
        self.inner.lock().ring.limit()
    }

    /// The limit in force; 0 when it is off.
    pub(crate) fn limit(&self) -> u32 {
        self.inner.lock().limit
    }

    /// Arms the limit event: it comes when fewer than `limit` receives are left, at once if that
    /// is so already. 0 turns it off. `EINVAL` above the depth.
    pub(crate) fn set_limit(self: &Arc<Self>, limit: u32) -> Result {
        let mut inner = self.inner.lock();
        if limit > inner.ring.limit() {
            return Err(EINVAL);
        }
        let events = inner.arm_limit(limit);
        drop(inner);
        self.raise(events);
        Ok(())
    }

    /// The same for whoever has his own rules for a limit above the depth: it is notified at once.
    pub(crate) fn set_threshold(self: &Arc<Self>, threshold: u32) {
        let events = self.inner.lock().arm_limit(threshold);
        self.raise(events);
    }

    /// Sets the limit of a new queue: the event comes on a fall from it or from above, so a queue
    /// that was never filled so far is quiet, also when it runs empty (SRQ-07).
    pub(crate) fn preset_limit(&self, limit: u32) {
        let mut inner = self.inner.lock();
        inner.limit = limit;
        inner.primed = false;
        inner.prime();
    }

    /// Changes the number of receives that the queue takes, and nothing else.
    ///
    /// Receives may come and go meanwhile; until the return the smaller of the two depths may be
    /// the one in force. May sleep.
    pub(crate) fn resize(self: &Arc<Self>, depth: u32) -> Result<(), ResizeError> {
        let _one_at_a_time = self.resizing.lock();
        let ring = ReceiveRing::new(depth, self.max_sge).map_err(|_| ResizeError::NoMemory)?;
        // Rings go where no lock is held but the one that may be held asleep.
        let begun = self.inner.lock().ring.begin(ring);
        begun.map_err(|_| ResizeError::TooMany)?;
        loop {
            let old = self.inner.lock().ring.step();
            if old.is_some() {
                return Ok(());
            }
        }
    }

    /// Fails the queue for good: nobody gets a receive any more, and none is posted. Any context.
    ///
    /// The face fails the queue pairs that use it.
    pub(crate) fn break_down(self: &Arc<Self>) {
        let was_failed = core::mem::replace(&mut self.inner.lock().failed, true);
        if !was_failed {
            self.raise(FAILED);
        }
    }

    /// Returns true if the queue has failed. Any context.
    pub(crate) fn has_failed(&self) -> bool {
        self.inner.lock().failed
    }

    /// Posts a receive. Any context. [`PostError::State`] when the queue has failed.
    pub(crate) fn post(
        self: &Arc<Self>,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), PostError> {
        // CAST: widening.
        if sges.len() > self.max_sge as usize {
            return Err(PostError::TooManySges);
        }
        let mut inner = self.inner.lock();
        if inner.failed {
            return Err(PostError::State);
        }
        let room = inner.ring.room().ok_or(PostError::Full)?;
        room.post(context, sges)?;
        inner.prime();
        inner.call_last();
        Ok(())
    }

    /// A queue pair begins to use the queue.
    pub(super) fn join(&self) -> Result {
        let mut inner = self.inner.lock();
        let more = (inner.users + 1).saturating_sub(inner.waiting.len());
        inner.waiting.reserve(more, GFP_ATOMIC)?;
        inner.users += 1;
        Ok(())
    }

    /// A queue pair ends its use.
    pub(super) fn leave(&self, qp: &QueuePair) {
        self.give_up(qp);
        self.inner.lock().users -= 1;
    }

    /// A queue pair takes no messages any more: whoever waits behind it moves up.
    pub(super) fn give_up(&self, qp: &QueuePair) {
        let mut inner = self.inner.lock();
        let Some(at) = inner.place_of(qp) else {
            return;
        };
        let gone = inner.waiting.remove(at);
        if inner.has_called(at) {
            inner.call_last();
        }
        drop(inner);
        drop(gone);
    }

    /// Takes a receive for a message, or notes that one of `qp` waits.
    pub(super) fn take(self: &Arc<Self>, qp: &Arc<QueuePair>, receive: &mut RecvWqe) -> bool {
        let mut inner = self.inner.lock();
        let place = inner.place_of(qp);
        let called = inner.has_called(place.unwrap_or(inner.waiting.len()));
        if called && inner.ring.oldest().take(receive) {
            let gone = place.and_then(|at| inner.waiting.remove(at).ok());
            let events = inner.take_limit_event();
            drop(inner);
            drop(gone);
            self.raise(events);
            return true;
        }
        if place.is_none() {
            // `join` made the room.
            let _ = inner.waiting.push_within_capacity(qp.clone());
        }
        false
    }

    /// Ends all calls; returns when none runs any more. May sleep.
    pub(crate) fn close(&self) {
        self.upcalls.close();
        // What is large goes now, where it may sleep: the last reference may go anywhere.
        let _one_at_a_time = self.resizing.lock();
        let empty = ResizableRing::new(ReceiveRing::empty());
        let ring = core::mem::replace(&mut self.inner.lock().ring, empty);
        drop(ring);
    }

    fn raise(self: &Arc<Self>, events: u32) {
        if events != 0 && self.upcalls.raise(events) {
            let softirqs = self.domain.device().host().softirqs();
            let _ = softirqs.enqueue(self.clone());
        }
    }
}

impl Inner {
    fn place_of(&self, qp: &QueuePair) -> Option<usize> {
        let mut waiting = self.waiting.iter();
        waiting.position(|w| core::ptr::eq(&**w, qp))
    }

    /// Returns true if there is a receive for the one who waits at that place.
    fn has_called(&self, place: usize) -> bool {
        // CAST: widening.
        !self.failed && place < self.ring.len() as usize
    }

    /// Calls the last one for whom there is a receive: all before him were called already.
    fn call_last(&self) {
        // CAST: widening.
        let last = (self.ring.len() as usize).checked_sub(1);
        if let Some(qp) = last.and_then(|at| self.waiting.get(at)) {
            qp.receive_arrived();
        }
    }

    /// A limit that waits for enough receives counts when they are there.
    fn prime(&mut self) {
        self.primed |= self.ring.len() >= self.limit;
    }

    /// Sets a limit that counts from now on; `LIMIT` if its event is due.
    fn arm_limit(&mut self, limit: u32) -> u32 {
        self.limit = limit;
        self.primed = true;
        self.take_limit_event()
    }

    /// `LIMIT` if the event is due, which turns it off.
    fn take_limit_event(&mut self) -> u32 {
        let enough = self.limit == 0 || self.ring.len() >= self.limit;
        if enough || !self.primed || self.failed {
            return 0;
        }
        self.limit = 0;
        LIMIT
    }
}

impl WorkItem for SharedReceive {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let again = this.upcalls.run(|events| {
            if events & LIMIT != 0 {
                this.events.limit_reached();
            }
            if events & FAILED != 0 {
                this.events.failed();
            }
        });
        if again {
            let _ = this.domain.device().host().softirqs().enqueue(this.clone());
        }
    }
}
