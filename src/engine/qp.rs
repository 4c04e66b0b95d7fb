// SPDX-License-Identifier: GPL-2.0

//! [`QueuePair`]: two queues, a state, and the link to the peer.
//!
//! - A consumer posts; the request waits in its queue, and the transport is notified ([`Posting`]).
//! - The transport starts requests in order and completes each exactly once; at the peer it takes
//!   a receive, fills it and finishes it.
//! - The first failure, a disconnect by either side or the consumer's own wish moves the queue
//!   pair to the error state ([`QueuePair::fail`]): what was not started is flushed, what was is
//!   ended by the transport, and whoever set the connection up is notified once.
//!
//! Lock order: `rq`, then the shared queue's lock, then the completion queue's or `link`; `link`,
//! then `sq`, then the completion queue's or the one of a region. `sq` and `rq` are never held
//! together, and neither is held while one of another queue pair is taken.
//!
//! Context: any, but for making and [`QueuePair::destroy`].

mod life;
pub(crate) mod local;
mod parts;
mod post;
mod receive;
mod send;
pub(crate) mod state;
#[cfg(ndk_kunit)]
mod tests;

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed, //
            },
            Atomic,
            AtomicFlag, //
        },
        Arc,
        SpinLockIrq, //
    }, //
};

pub(crate) use parts::{
    Caps,
    PostError,
    QpEvents,
    QpParams,
    RecvCompletion,
    SendWqe, //
};
pub(crate) use post::Posting;
pub(crate) use receive::{
    ReceiveRing,
    RecvWqe,
    Taken, //
};
pub(crate) use send::Next;

use self::state::{
    Admission,
    State, //
};
use self::{
    receive::ReceiveQueue,
    send::{
        Retired,
        SendQueue,
        BATCH, //
    }, //
};
use super::{
    counters::Counter,
    cq::CompletionQueue,
    device::RdmaDevice,
    domain::Domain,
    memory::{
        rights::Rights,
        User, //
    },
    notifier::{
        Notified,
        Notifies, //
    },
    srq::{
        SharedReceive,
        NOT_WAITING, //
    },
    status::Status,
    transport::{
        ConnectionId,
        Link, //
    },
    work::{
        Completion,
        Operation,
        Sge, //
    }, //
};
use crate::sys::{
    event::Event,
    gate::Gate, //
};

const LAST_RECEIVE: u32 = 1;
const BROKEN: u32 = 2;
const RETIRE: u32 = 4;

/// A queue pair.
pub(crate) type QueuePair = Notified<Qp>;

/// What a [`QueuePair`] is made of.
#[pin_data]
pub(crate) struct Qp {
    number: u32,
    /// What the face calls it; stands in each completion.
    cookie: usize,
    domain: Arc<Domain>,
    caps: Caps,
    outlives_peer: bool,
    send_cq: Arc<CompletionQueue>,
    receive_cq: Arc<CompletionQueue>,
    shared: Option<Arc<SharedReceive>>,
    /// Where it waits at `shared`; changed under the lock of that.
    pub(super) place: Atomic<u64>,
    events: KBox<dyn QpEvents>,
    state: Atomic<u32>,
    /// The number of the connection while there is one, else 0. Changed under the lock of the link.
    connection: Atomic<u64>,
    /// What the peer may do through this queue pair at all.
    peer_rights: Atomic<u32>,
    /// A completion queue of it is broken.
    broken: AtomicFlag,
    /// Open while connected; the peer's accesses to memory enter through it.
    inbound: Gate<()>,
    #[pin]
    sq: SpinLockIrq<SendQueue>,
    #[pin]
    rq: SpinLockIrq<ReceiveQueue>,
    #[pin]
    link: SpinLockIrq<Option<Link>>,
    /// Signalled when something ended while the queue pair is being destroyed.
    #[pin]
    settled: Event,
}

impl QueuePair {
    /// A queue pair in the state `Reset`. May sleep.
    pub(crate) fn new(parts: QpParams, caps: Caps) -> Result<Arc<Self>> {
        let mut caps = caps;
        if let Some(shared) = &parts.shared {
            caps.receives = 0;
            caps.receive_sges = shared.max_sge();
        }
        let own_sges = if parts.shared.is_some() {
            0
        } else {
            caps.receive_sges
        };
        let sends = SendQueue::new(&caps)?;
        let receives = ReceiveQueue::new(caps.receives, own_sges)?;
        let qp = Notified::alloc(pin_init!(Qp {
            number: parts.number,
            cookie: parts.cookie,
            domain: parts.domain,
            caps,
            outlives_peer: parts.outlives_peer,
            send_cq: parts.send_cq,
            receive_cq: parts.receive_cq,
            shared: parts.shared,
            place: Atomic::new(NOT_WAITING),
            events: parts.events,
            state: Atomic::new(State::Reset.number()),
            connection: Atomic::new(0),
            peer_rights: Atomic::new(0),
            broken: AtomicFlag::new(false),
            inbound: Gate::new(()),
            sq <- new_spinlock_irq!(sends),
            rq <- new_spinlock_irq!(receives),
            link <- new_spinlock_irq!(None),
            settled <- Event::new(),
        }))?;
        if let Some(shared) = &qp.shared {
            shared.join()?;
        }
        Ok(qp)
    }

    /// The number that names the queue pair on this host.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The sizes that it was made with.
    pub(crate) fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> &RdmaDevice {
        self.domain.device()
    }

    /// For checks of local tokens.
    pub(crate) fn local_user(&self) -> User {
        User {
            domain: self.domain.id(),
            qp: None,
        }
    }

    /// For checks of tokens that the peer named.
    pub(crate) fn peer_user(&self) -> User {
        User {
            domain: self.domain.id(),
            qp: Some(self.number),
        }
    }

    /// The present state; it may change at any time.
    #[inline]
    pub(crate) fn state(&self) -> State {
        State::from_number(self.state.load(Acquire))
    }

    /// Returns true if the peer may do `wanted` through this queue pair at all.
    pub(crate) fn peer_may(&self, wanted: Rights) -> bool {
        Rights::from_bits(self.peer_rights.load(Relaxed)).allow(wanted)
    }

    /// What the peer may do through this queue pair, at most.
    pub(crate) fn set_peer_rights(&self, rights: Rights) {
        self.peer_rights.store(rights.bits(), Relaxed);
    }

    /// Posts a receive. Any context.
    pub(crate) fn post_receive(
        self: &Arc<Self>,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), PostError> {
        if self.shared.is_some() {
            return Err(PostError::Invalid);
        }
        let mut rq = self.rq.lock();
        let admission = self.state().admit_receive();
        if admission == Admission::Refuse {
            return Err(PostError::State);
        }
        rq.ring.post(context, sges)?;
        if core::mem::take(&mut rq.waiting) {
            // Under the lock: the one who knows of the wait must not be preempted with it.
            self.receive_arrived();
        }
        drop(rq);
        if admission == Admission::Flush {
            self.settle();
        }
        Ok(())
    }

    /// Tells the transport that a message which waits may find a receive now.
    pub(super) fn receive_arrived(&self) {
        if let Some(link) = self.link.lock().as_ref() {
            link.transport.receive_posted(link.end);
        }
    }

    /// For a transport: takes the next request that may begin on that connection.
    pub(crate) fn start(&self, connection: ConnectionId, job: &mut SendWqe) -> Next {
        self.start_next(connection, &mut self.sq.lock(), job)
    }

    #[inline]
    fn start_next(&self, connection: ConnectionId, sq: &mut SendQueue, job: &mut SendWqe) -> Next {
        // Under the lock: what is posted after a reset is another connection's.
        match self.is_connected_by(connection) {
            true => sq.start(job),
            false => Next::Nothing,
        }
    }

    /// For a transport: ends a started request. A failure breaks the queue pair.
    ///
    /// `length` is what a read or an atomic brought.
    pub(crate) fn complete(self: &Arc<Self>, seq: u32, status: Status, length: u32) {
        let closed = self.retire_sends(|sq| sq.done(seq, status, length));
        let spared = status == Status::Flushed && self.outlives_peer;
        let broken = !status.is_success() && !spared;
        if broken {
            self.report("request", status);
        }
        if closed || broken {
            self.fail();
        }
        self.settle();
    }

    /// For a transport: ends the started request of `job` as a success, and takes the next that may
    /// begin on that connection, all under one hold of the lock.
    pub(crate) fn complete_and_start(
        self: &Arc<Self>,
        connection: ConnectionId,
        job: &mut SendWqe,
    ) -> Next {
        let mut sq = self.sq.lock();
        let first = sq.finish_first(job.seq, self.cookie, &self.send_cq);
        let retired = first.unwrap_or_else(|| {
            sq.done(job.seq, Status::Success, job.length);
            self.retire(&mut sq)
        });
        let next = self.start_next(connection, &mut sq, job);
        drop(sq);
        if self.after(retired) {
            self.fail();
        }
        self.settle();
        next
    }

    /// Completes what is done at the front of the send queue, after `first`; returns true if a
    /// graceful close has come to its end.
    ///
    /// One call retires one batch; what is left is for the softirq work.
    fn retire_sends(self: &Arc<Self>, first: impl FnOnce(&mut SendQueue)) -> bool {
        let mut sq = self.sq.lock();
        first(&mut sq);
        let retired = self.retire(&mut sq);
        drop(sq);
        self.after(retired)
    }

    fn retire(&self, sq: &mut SendQueue) -> Retired {
        let drained = self.inbound.is_drained();
        sq.retire(drained, self.cookie, &self.send_cq, self.device())
    }

    /// What follows a batch, without the lock; returns true if a graceful close has come to its
    /// end.
    fn after(self: &Arc<Self>, retired: Retired) -> bool {
        if retired.lost {
            self.break_down();
        }
        if retired.more {
            self.raise(RETIRE);
        }
        retired.stopped
    }

    /// For a transport: takes a receive for a message that comes over that connection.
    pub(crate) fn take_receive(
        self: &Arc<Self>,
        connection: ConnectionId,
        receive: &mut RecvWqe,
    ) -> Taken {
        let mut rq = self.rq.lock();
        if rq.flushing || rq.taken || !self.is_connected_by(connection) {
            return Taken::Closed;
        }
        let found = match &self.shared {
            Some(shared) => shared.take(self, receive),
            None => rq.ring.take(receive),
        };
        rq.taken = found;
        rq.waiting = !found;
        match found {
            true => Taken::Ready,
            false => Taken::Empty,
        }
    }

    /// For a transport: finishes the receive that was taken. A failure breaks the queue pair.
    pub(crate) fn finish_receive(self: &Arc<Self>, receive: &RecvWqe, arrival: RecvCompletion) {
        let mut rq = self.rq.lock();
        rq.taken = false;
        if arrival.status == Status::Flushed {
            rq.aborted = Some(receive.context);
            drop(rq);
            return self.receive_broke_off();
        }
        let entry = Completion {
            context: receive.context,
            qp: self.cookie,
            status: arrival.status,
            operation: arrival.operation,
            length: arrival.length,
            extra: arrival.extra,
            solicited: arrival.solicited,
        };
        let pushed = rq.report(&self.receive_cq, entry);
        let flush = rq.flushing;
        drop(rq);
        if pushed.is_err() {
            self.break_down();
        }
        if !arrival.status.is_success() {
            self.report("receive", arrival.status);
            self.fail();
        } else if flush {
            self.flush_receives();
        }
        self.settle();
    }

    /// A message ended in the middle: its receive is cancelled with the others.
    fn receive_broke_off(self: &Arc<Self>) {
        if !self.outlives_peer {
            self.fail();
        }
        self.settle();
    }

    /// Cancels every receive that no message has taken, once the peer touches nothing any more.
    ///
    /// One call cancels one batch; what is left is for the softirq work.
    fn flush_receives(self: &Arc<Self>) {
        let mut events = RETIRE;
        for _ in 0..BATCH {
            let mut rq = self.rq.lock();
            if !rq.flushing || rq.taken || !self.inbound.is_drained() {
                events = 0;
                break;
            }
            let Some(context) = rq.aborted.take().or_else(|| rq.ring.cancel()) else {
                let ended = self.shared.is_some() && !core::mem::replace(&mut rq.ended, true);
                events = if ended { LAST_RECEIVE } else { 0 };
                break;
            };
            let entry = Completion {
                context,
                qp: self.cookie,
                status: Status::Flushed,
                operation: Operation::Receive,
                ..Completion::BLANK
            };
            // A broken queue takes no entry; the receive is gone all the same.
            let _ = rq.report(&self.receive_cq, entry);
            self.device().count(Counter::Flushes, 1);
        }
        self.raise(events);
    }

    /// A completion queue took no entry: the queue pair cannot report any more.
    fn break_down(self: &Arc<Self>) {
        if !self.broken.xchg(true, Relaxed) {
            self.report("completion queue", Status::Fatal);
            self.raise(BROKEN);
            self.fail();
        }
    }

    /// Says in the kernel log what failed, unless it was only cancelled.
    fn report(&self, what: &str, status: Status) {
        if !matches!(status, Status::Success | Status::Flushed) {
            self.device()
                .warn(self.number, fmt!("{what}: {}", status.text()));
        }
    }
}

impl Notifies for Qp {
    fn device(&self) -> &RdmaDevice {
        self.domain.device()
    }

    fn call(this: &Arc<QueuePair>, events: u32) {
        if events & RETIRE != 0 {
            if this.retire_sends(|_| ()) {
                this.fail();
            }
            this.settle();
        }
        if events & BROKEN != 0 {
            this.events.broken();
        }
        if events & LAST_RECEIVE != 0 {
            this.events.last_receive_reached();
        }
    }
}
