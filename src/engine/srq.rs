// SPDX-License-Identifier: GPL-2.0

//! [`SharedReceive`]: receives that several queue pairs take from, with a low-water event.
//!
//! Messages that find no receive wait in order, one for each queue pair. As many waiters are
//! called, from the front, as there are receives, and each called waiter is sure of a receive: a
//! later message takes only a receive that is left over. So no message is served before one that
//! waits. Each queue pair knows its place: there is no search.
//!
//! Context: any, but for making, resizing and closing. Lock order: `resizing`; the lock of a queue
//! pair's receive queue, then `inner`, then the lock of a queue pair's link.

mod resize;
mod shared;
#[cfg(ndk_kunit)]
mod tests;

use kernel::{
    alloc::flags::__GFP_NOWARN,
    new_work,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    },
    workqueue::Work, //
};

use super::{
    device::{
        Quota,
        Share, //
    },
    domain::Domain,
    inject::SiteKind,
    looking::ProgramReceives,
    notifier::{
        notifies,
        Called,
        Notifier,
        Notifies, //
    },
    prelude::*,
    ring::{
        ResizableRing,
        ResizeError, //
    },
    wq::{
        PostError,
        ReceiveRing,
        RecvWqe, //
    }, //
};
use crate::sys::{
    hrtimer::HrTimer,
    sge::{
        Elements,
        Posted, //
    },
    trace, //
};

/// The events of a shared receive queue, for its face. Called in softirq, under no lock.
pub(crate) trait SrqEvents: Send + Sync {
    /// The number of receives fell below the limit. The limit is off now.
    fn limit_reached(&self);
    /// The queue failed: no receive is taken from it any more. Called once, and again after each
    /// [`Called::Partial`].
    fn failed(&self) -> Called {
        Called::Done
    }
}

/// A user of the queue, with messages that may wait for receives.
pub(crate) trait Waiter: Send + Sync {
    /// The place of the user among those that wait.
    fn place(&self) -> &WaitPlace;
    /// Notifies the user of a receive for the waiting message. Any context, under the lock of the
    /// queue that has the receive.
    fn receive_arrived(&self);
}

/// The place of a queue pair among those that wait; changed under the lock of the queue.
pub(crate) struct WaitPlace(Atomic<u64>);

impl WaitPlace {
    /// The place of a queue pair that does not wait.
    pub(super) const fn new() -> Self {
        Self(Atomic::new(NOT_WAITING))
    }
}

const LIMIT: u32 = 1;
const FAILED: u32 = 2;

struct SrqState {
    ring: ResizableRing<ReceiveRing>,
    /// The receives that a program posts without a call.
    shared: Option<KBox<ProgramReceives>>,
    /// Fewer than this many receives raise the event once; 0 is off.
    limit: u32,
    /// True if the limit counts: that of a new queue only after as many receives were there once.
    is_limit_active: bool,
    failed: bool,
    /// The number of queue pairs that were granted a receive and have not taken it yet.
    granted: u32,
    /// The queue pairs that wait without a grant, by their places; if there is one, all receives
    /// are granted.
    waiting: RBTree<u64, Arc<dyn Waiter>>,
    /// A node for every user that does not wait.
    nodes: KVec<WaiterNode>,
    users: usize,
    /// The place of the next queue pair that waits.
    next: u64,
}

/// A node of the tree of waiting queue pairs.
type WaiterNode = RBTreeNodeReservation<u64, Arc<dyn Waiter>>;

/// The place of a queue pair that does not wait.
const NOT_WAITING: u64 = 0;
/// The place of a queue pair that waited, and was called: there is a receive for it.
const GRANTED: u64 = 1;
/// The lowest place of a queue pair that waits.
const FIRST_PLACE: u64 = 2;

/// The number of nodes in the first allocation.
const FEWEST_NODES: usize = 8;

/// A shared receive queue.
#[pin_data]
pub(crate) struct SharedReceive {
    #[pin]
    notifier: Notifier,
    #[pin]
    work: Work<Self>,
    domain: Arc<Domain>,
    share: Share,
    /// The most elements that a receive has.
    pub(crate) max_sge: u32,
    events: KBox<dyn SrqEvents>,
    /// Held while the depth changes: `srq/resize.rs`.
    #[pin]
    resizing: Mutex<()>,
    #[pin]
    inner: SpinLockIrq<SrqState>,
    /// Armed under the lock of `inner`, while a queue pair waits for a program's receives.
    #[pin]
    timer: HrTimer<SharedReceive>,
}

impl SharedReceive {
    /// A queue without receives; [`SharedReceive::close`] ends it. May sleep.
    ///
    /// `ENOMEM` when there is no memory, or the device or programs have too many shared queues.
    pub(crate) fn new(
        domain: Arc<Domain>,
        depth: u32,
        max_sge: u32,
        events: KBox<dyn SrqEvents>,
    ) -> Result<Arc<Self>> {
        domain.device().may_make(SiteKind::SharedReceive)?;
        let share = domain.share(Quota::SharedReceives)?;
        let inner = SrqState {
            ring: ResizableRing::new(ReceiveRing::of_receives(depth, max_sge, domain.gfp())?),
            shared: None,
            limit: 0,
            is_limit_active: false,
            failed: false,
            granted: 0,
            waiting: RBTree::new(),
            nodes: KVec::new(),
            users: 0,
            next: FIRST_PLACE,
        };
        Arc::pin_init(
            pin_init!(Self {
                notifier <- Notifier::new(),
                work <- new_work!("ndk_notify"),
                domain,
                share,
                max_sge,
                events,
                resizing <- new_mutex!(()),
                inner <- new_spinlock_irq!(inner),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The number of receives that the queue takes.
    pub(crate) fn depth(&self) -> u32 {
        self.inner.lock().depth()
    }

    /// The number of receives that are posted.
    pub(crate) fn posted(&self) -> u32 {
        self.inner.lock().posted()
    }

    /// The limit in force; 0 when it is off.
    pub(crate) fn limit(&self) -> u32 {
        self.inner.lock().limit
    }

    /// Arms the limit event: it comes when fewer than `limit` receives are left, at once if that
    /// is so already. 0 turns it off. `EINVAL` above the depth.
    pub(crate) fn set_limit(self: &Arc<Self>, limit: u32) -> Result {
        if limit > self.depth() {
            return Err(EINVAL);
        }
        self.set_any_limit(limit);
        Ok(())
    }

    /// Sets the limit like [`SharedReceive::set_limit`], but also above the depth: then the event
    /// comes at once.
    pub(crate) fn set_any_limit(self: &Arc<Self>, limit: u32) {
        let mut inner = self.inner.lock();
        inner.limit = limit;
        inner.is_limit_active = true;
        let events = inner.take_limit_event();
        drop(inner);
        self.raise(events);
    }

    /// Sets the limit of a new queue: the event comes when the number of receives falls from the
    /// limit or from above, so a queue that never reached it is quiet, also when it runs empty
    /// (SRQ-07).
    pub(crate) fn preset_limit(&self, limit: u32) {
        let mut inner = self.inner.lock();
        inner.limit = limit;
        inner.is_limit_active = false;
        inner.activate_limit();
    }

    /// Fails the queue for good: no receive is taken any more, and none is posted. Any context.
    ///
    /// The face fails the queue pairs that use the queue.
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
    pub(crate) fn post(self: &Arc<Self>, posted: Posted<impl Elements>) -> Result<(), PostError> {
        // CAST: widening.
        if posted.sges().len() > self.max_sge as usize {
            return Err(PostError::TooManySges);
        }
        let mut inner = self.inner.lock();
        if inner.failed {
            return Err(PostError::State);
        }
        let room = inner.ring.room().ok_or(PostError::Full)?;
        room.post_receive(posted)?;
        trace::event!(post_recv, room.post_recv_args(self.domain.device(), 0));
        inner.activate_limit();
        let called = inner.grant_next();
        drop(inner);
        drop(called);
        Ok(())
    }

    /// Adds a user of the queue. May sleep.
    pub(super) fn add_user(&self) -> Result {
        let gfp = self.domain.gfp();
        let room = RBTreeNodeReservation::new(gfp)?;
        let mut larger = KVec::new();
        loop {
            let mut inner = self.inner.lock();
            // Room for all users: the nodes of those that wait come back.
            let users = inner.users + 1;
            if inner.nodes.capacity() >= users {
                let _ = inner.nodes.push_within_capacity(room);
                inner.users = users;
                return Ok(());
            }
            if larger.capacity() >= users {
                // The old memory is freed after the lock is released.
                inner.move_nodes(&mut larger);
                continue;
            }
            drop(inner);
            // More users may have come by now: the next turn checks again.
            let many = users.checked_next_power_of_two().ok_or(ENOMEM)?;
            larger = KVec::with_capacity(many.max(FEWEST_NODES), gfp | __GFP_NOWARN)?;
        }
    }

    /// Removes a user of the queue.
    pub(super) fn leave(&self, place: &WaitPlace) {
        drop(self.give_up(place));
        let mut inner = self.inner.lock();
        inner.users -= 1;
        let room = inner.nodes.pop();
        drop(inner);
        drop(room);
    }

    /// Gives up the place of a queue pair that takes no messages any more: waiters behind it move
    /// up. The caller drops the result without a lock.
    pub(super) fn give_up(&self, place: &WaitPlace) -> Option<impl Sized> {
        let mut inner = self.inner.lock();
        match place.0.xchg(NOT_WAITING, Relaxed) {
            NOT_WAITING => None,
            GRANTED => {
                inner.granted -= 1;
                inner.grant_next()
            }
            wait_seq => inner.take_out(wait_seq),
        }
    }

    /// Takes a receive for a message of `qp`, or notes that the message waits.
    pub(super) fn take(
        self: &Arc<Self>,
        qp: &Arc<impl Waiter + 'static>,
        receive: &mut RecvWqe,
    ) -> bool {
        let mut inner = self.inner.lock();
        let place = &qp.place().0;
        let wait_seq = place.load(Relaxed);
        if !inner.is_limit_active {
            inner.activate_limit_shared();
        }
        let may_take = match wait_seq {
            NOT_WAITING => {
                inner.granted < inner.ring.len() || inner.fetch_for_next(self.domain.device())
            }
            _ => wait_seq == GRANTED,
        };
        if may_take && !inner.failed && inner.ring.oldest().take(&mut receive.sges) {
            if wait_seq == GRANTED {
                place.store(NOT_WAITING, Relaxed);
                inner.granted -= 1;
                self.look_if_waiting(&mut inner);
            }
            let events = inner.take_limit_event();
            drop(inner);
            self.raise(events);
            return true;
        }
        if wait_seq == NOT_WAITING {
            inner.wait(qp.clone());
            self.look_soon(&mut inner);
        }
        false
    }

    /// Ends all calls; returns when none runs any more. May sleep.
    pub(crate) fn close(&self) {
        self.end_calls();
        // Frees the large memory here, where it may sleep: the last reference may go in any
        // context.
        let _one_at_a_time = self.resizing.lock();
        let empty = ResizableRing::new(ReceiveRing::EMPTY);
        let mut inner = self.inner.lock();
        let ring = core::mem::replace(&mut inner.ring, empty);
        let shared = inner.shared.take();
        drop(inner);
        drop((ring, shared));
        self.timer.stop();
        self.share.give_back();
    }
}

impl SrqState {
    /// Moves the nodes into the memory of `larger`, which gets the old memory.
    fn move_nodes(&mut self, larger: &mut KVec<WaiterNode>) {
        while let Some(room) = self.nodes.pop() {
            let _ = larger.push_within_capacity(room);
        }
        core::mem::swap(&mut self.nodes, larger);
    }

    /// Notes that a queue pair waits.
    fn wait(&mut self, qp: Arc<dyn Waiter>) {
        // `add_user` made the room.
        let Some(room) = self.nodes.pop() else {
            return;
        };
        let wait_seq = self.next;
        // OVERFLOW: 2^64 waits.
        self.next = wait_seq.wrapping_add(1);
        qp.place().0.store(wait_seq, Relaxed);
        self.waiting.insert(room.into_node(wait_seq, qp));
    }

    /// Removes the queue pair that waits at that place; to be dropped without the lock.
    fn take_out(&mut self, wait_seq: u64) -> Option<Arc<dyn Waiter>> {
        let qp = self.waiting.get(&wait_seq)?.clone();
        let room = self.waiting.remove_node(&wait_seq)?.into_reservation();
        // `add_user` made room for all.
        let _ = self.nodes.push_within_capacity(room);
        Some(qp)
    }

    /// Calls the first waiter, if a receive is left for it; to be dropped without the lock.
    fn grant_next(&mut self) -> Option<Arc<dyn Waiter>> {
        if self.failed || self.granted >= self.ring.len() {
            return None;
        }
        let wait_seq = *self.waiting.cursor_front()?.current().0;
        let qp = self.take_out(wait_seq)?;
        qp.place().0.store(GRANTED, Relaxed);
        self.granted += 1;
        qp.receive_arrived();
        Some(qp)
    }

    /// Lets the limit of a new queue count once enough receives are there.
    fn activate_limit(&mut self) {
        self.is_limit_active |= self.ring.len() >= self.limit || self.posted() >= self.limit;
    }

    /// Returns `LIMIT`, and turns the limit off, if the event is due; else 0.
    fn take_limit_event(&mut self) -> u32 {
        let enough = self.limit == 0 || self.ring.len() >= self.limit;
        if enough || !self.is_limit_active || self.failed || self.posted() >= self.limit {
            return 0;
        }
        self.limit = 0;
        LIMIT
    }
}

notifies!(SharedReceive);

impl Notifies for SharedReceive {
    fn device(&self) -> &RdmaDevice {
        self.domain.device()
    }

    fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    fn call(this: &Arc<SharedReceive>, events: u32) {
        if events & LIMIT != 0 {
            this.events.limit_reached();
        }
        if events & FAILED != 0 && this.events.failed() == Called::Partial {
            this.raise(FAILED);
        }
    }
}
