// SPDX-License-Identifier: GPL-2.0

//! [`SharedReceive`]: receives that several queue pairs take from, with a low-water event.
//!
//! Messages that find no receive wait in order, one for each queue pair. As many as there are
//! receives are called, from the front, and each of those has one for sure: who comes later takes
//! only what is left. So nobody waits while others are served behind him.
//!
//! Context: any, but for making, resizing and closing. Lock order: the lock of a queue pair's
//! receive queue, then `inner`, then the lock of a queue pair's link.

use kernel::{
    impl_has_work,
    new_spinlock_irq,
    new_work,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    domain::Domain,
    qp::{
        NotPosted,
        QueuePair,
        Receive,
        ReceiveRing, //
    },
    upcall::Upcalls,
    work::Sge, //
};

/// What a face is told. Called in softirq, under no lock.
pub(crate) trait SrqEvents: Send + Sync {
    /// The number of receives fell below the limit. The limit is off now.
    fn limit_reached(&self);
}

const LIMIT: u32 = 1;

struct Inner {
    ring: ReceiveRing,
    /// Fewer than this many receives raise the event once; 0 is off.
    limit: u32,
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
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    upcalls: Upcalls,
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
            ring: ReceiveRing::new(depth, max_sge)?,
            limit: 0,
            waiting: KVec::new(),
            users: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                domain,
                max_sge,
                events,
                inner <- new_spinlock_irq!(inner),
                upcalls <- Upcalls::new(),
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
        inner.limit = limit;
        let news = inner.take_limit_event();
        drop(inner);
        self.raise(news);
        Ok(())
    }

    /// Sets the limit of a new queue: the event comes on a fall below it, so an empty queue that
    /// was never filled is quiet (SRQ-07).
    pub(crate) fn preset_limit(&self, limit: u32) {
        self.inner.lock().limit = limit;
    }

    /// Posts a receive. Any context.
    pub(crate) fn post(
        self: &Arc<Self>,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), NotPosted> {
        let mut inner = self.inner.lock();
        inner.ring.post(context, sges)?;
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
    pub(super) fn take(self: &Arc<Self>, qp: &Arc<QueuePair>, receive: &mut Receive) -> bool {
        let mut inner = self.inner.lock();
        let place = inner.place_of(qp);
        if inner.has_called(place.unwrap_or(inner.waiting.len())) && inner.ring.take(receive) {
            let gone = place.and_then(|at| inner.waiting.remove(at).ok());
            let news = inner.take_limit_event();
            drop(inner);
            drop(gone);
            self.raise(news);
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
        let ring = core::mem::replace(&mut self.inner.lock().ring, ReceiveRing::empty());
        drop(ring);
    }

    fn raise(self: &Arc<Self>, news: u32) {
        if news != 0 && self.upcalls.raise(news) {
            let softirqs = self.domain.adapter().softirqs();
            let _ = softirqs.enqueue(self.clone());
        }
    }
}

impl Inner {
    fn place_of(&self, qp: &QueuePair) -> Option<usize> {
        let mut waiting = self.waiting.iter();
        waiting.position(|w| core::ptr::eq(&**w, qp))
    }

    /// Whether there is a receive for the one who waits at that place.
    fn has_called(&self, place: usize) -> bool {
        // CAST: widening.
        place < self.ring.len() as usize
    }

    /// Calls the last one for whom there is a receive: all before him were called already.
    fn call_last(&self) {
        // CAST: widening.
        let last = (self.ring.len() as usize).checked_sub(1);
        if let Some(qp) = last.and_then(|at| self.waiting.get(at)) {
            qp.receive_arrived();
        }
    }

    /// `LIMIT` if the event is due, which turns it off.
    fn take_limit_event(&mut self) -> u32 {
        if self.limit == 0 || self.ring.len() >= self.limit {
            return 0;
        }
        self.limit = 0;
        LIMIT
    }
}

impl WorkItem for SharedReceive {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.upcalls.run(|_| this.events.limit_reached());
    }
}
