// SPDX-License-Identifier: GPL-2.0

//! [`QueuePair`]: two queues, a state, and the link to the peer.
//!
//! - A consumer posts; the request waits in its queue; [`QueuePair::ring`] tells the transport.
//! - The transport starts requests in order and completes each exactly once; at the peer it takes
//!   a receive, fills it and finishes it.
//! - The first failure, a disconnect by either side or the consumer's own wish moves the queue
//!   pair to the error state ([`QueuePair::fail`]): what was not started is flushed, what was is
//!   ended by the transport, and whoever set the connection up is told once.
//!
//! Lock order: `rq`, then the shared queue's lock, then the completion queue's; `sq`, then the
//! completion queue's; `link` is a leaf. `sq` and `rq` are never held together, and no lock of one
//! queue pair is held while one of another is taken.
//!
//! Context: any, but for making and [`QueuePair::destroy`].

mod receive;
mod send;

use kernel::fmt;
use kernel::impl_has_work;
use kernel::new_spinlock_irq;
use kernel::new_work;
use kernel::prelude::*;
use kernel::sync::atomic::ordering::Acquire;
use kernel::sync::atomic::ordering::Full;
use kernel::sync::atomic::ordering::Relaxed;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::AtomicFlag;
use kernel::sync::Arc;
use kernel::sync::SpinLockIrq;
use kernel::workqueue::Work as WorkStruct;
use kernel::workqueue::WorkItem;

pub(crate) use receive::Receive;
pub(crate) use receive::ReceiveRing;
pub(crate) use receive::Taken;
pub(crate) use send::Next;


use self::receive::ReceiveQueue;
use self::send::SendQueue;
use super::counters::Counter;
use super::cq::CompletionQueue;
use super::domain::Adapter;
use super::domain::Domain;
use super::memory::User;
use super::rights::Rights;
use super::srq::SharedReceive;
use super::state::Admission;
use super::state::State;
use super::status::Status;
use super::transport::Link;
use super::transport::ReadLimits;
use super::upcall::Upcalls;
use super::work::Completion;
use super::work::Extra;
use super::work::Flags;
use super::work::Operation;
use super::work::Sge;
use super::work::Work;
use crate::sys::event::Event;
use crate::sys::gate::Entered;
use crate::sys::gate::Gate;

/// Why a request was not taken. It leaves no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPosted {
    /// Not in this state of the queue pair.
    State,
    /// The request contradicts itself.
    Invalid,
    /// More elements than the queue was made for.
    TooManySges,
    /// More bytes than a message carries.
    TooLong,
    /// More bytes than the queue takes inline.
    InlineTooLong,
    /// No room.
    Full,
}

/// The sizes that a queue pair is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    pub(crate) send_sges: u32,
    pub(crate) receive_sges: u32,
    /// The most elements of a read or an atomic.
    pub(crate) read_sges: u32,
    /// Bytes.
    pub(crate) inline: u32,
}

/// What a face is told. Called in softirq, one call at a time, under no lock.
pub(crate) trait QpEvents: Send + Sync {
    /// The queue pair takes no more receives from its shared queue.
    fn last_receive_reached(&self);
    /// A completion queue of the queue pair broke, and the queue pair with it.
    fn broken(&self);
}

const LAST_RECEIVE: u32 = 1;
const BROKEN: u32 = 2;

/// A request that was started, with room for its elements.
pub(crate) struct Job {
    pub(crate) seq: u32,
    pub(crate) work: Work,
    pub(crate) flags: Flags,
    pub(crate) length: u32,
    /// A read over a connection that allows none: to be completed as a local error.
    pub(crate) forbidden: bool,
    pub(crate) sges: KVec<Sge>,
    pub(crate) inline: KVec<u8>,
}

impl Job {
    /// Room for any request of a queue pair with these sizes. May sleep.
    pub(crate) fn new(caps: &Caps) -> Result<Self> {
        Ok(Self {
            seq: 0,
            work: Work::Send {
                extra: Extra::Nothing,
            },
            flags: Flags::NONE,
            length: 0,
            forbidden: false,
            // CAST: widening.
            sges: KVec::with_capacity(caps.send_sges as usize, GFP_KERNEL)?,
            inline: KVec::with_capacity(caps.inline as usize, GFP_KERNEL)?,
        })
    }

    fn load(&mut self, sges: Option<&[Sge]>, inline: Option<&[u8]>, count: usize) {
        self.sges.clear();
        self.inline.clear();
        for sge in sges.unwrap_or_default().iter().take(count) {
            // The room was made for the most elements of this queue.
            let _ = self.sges.push_within_capacity(*sge);
        }
        for byte in inline.unwrap_or_default().iter().take(count) {
            // The room was made for the most bytes of this queue.
            let _ = self.inline.push_within_capacity(*byte);
        }
    }
}

/// What a message did to the receive that it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) status: Status,
    pub(crate) operation: Operation,
    pub(crate) length: u32,
    pub(crate) extra: Extra,
    pub(crate) solicited: bool,
}

/// A queue pair.
#[pin_data]
pub(crate) struct QueuePair {
    number: u32,
    /// What the face calls it; stands in each completion.
    cookie: usize,
    domain: Arc<Domain>,
    caps: Caps,
    send_cq: Arc<CompletionQueue>,
    receive_cq: Arc<CompletionQueue>,
    shared: Option<Arc<SharedReceive>>,
    events: KBox<dyn QpEvents>,
    state: Atomic<u32>,
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
    #[pin]
    upcalls: Upcalls,
    #[pin]
    work: WorkStruct<Self>,
    /// Signalled when something ended while the queue pair is being destroyed.
    #[pin]
    settled: Event,
}

impl_has_work! {
    impl HasWork<Self> for QueuePair { self.work }
}

/// What belongs to a new queue pair.
pub(crate) struct Parts {
    pub(crate) domain: Arc<Domain>,
    pub(crate) send_cq: Arc<CompletionQueue>,
    pub(crate) receive_cq: Arc<CompletionQueue>,
    pub(crate) shared: Option<Arc<SharedReceive>>,
    pub(crate) events: KBox<dyn QpEvents>,
    pub(crate) cookie: usize,
    /// The number that names the queue pair on this host, among all of its devices.
    pub(crate) number: u32,
}

impl QueuePair {
    /// A queue pair in the state `Reset`. May sleep.
    pub(crate) fn new(parts: Parts, caps: Caps) -> Result<Arc<Self>> {
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
        let qp = Arc::pin_init(
            pin_init!(Self {
                number: parts.number,
                cookie: parts.cookie,
                domain: parts.domain,
                caps,
                send_cq: parts.send_cq,
                receive_cq: parts.receive_cq,
                shared: parts.shared,
                events: parts.events,
                state: Atomic::new(State::Reset.number()),
                peer_rights: Atomic::new(0),
                broken: AtomicFlag::new(false),
                inbound: Gate::new(()),
                sq <- new_spinlock_irq!(sends),
                rq <- new_spinlock_irq!(receives),
                link <- new_spinlock_irq!(None),
                upcalls <- Upcalls::new(),
                work <- new_work!("ndk_qp"),
                settled <- Event::new(),
            }),
            GFP_KERNEL,
        )?;
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
    pub(crate) fn adapter(&self) -> &Adapter {
        self.domain.adapter()
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

    /// Whether the peer may do `wanted` through this queue pair at all.
    pub(crate) fn peer_may(&self, wanted: Rights) -> bool {
        Rights::from_bits(self.peer_rights.load(Relaxed)).allow(wanted)
    }

    /// For a transport: lets the peer touch memory that it names, as long as the result exists.
    ///
    /// `None` unless connected; destroying waits until the last one has left.
    #[inline]
    pub(crate) fn admit_peer(&self) -> Option<Entered<'_, ()>> {
        self.inbound.enter(0).ok()
    }

    /// What the peer may do through this queue pair, at most.
    pub(crate) fn set_peer_rights(&self, rights: Rights) {
        self.peer_rights.store(rights.bits(), Relaxed);
    }

    /// The rights set last.
    pub(crate) fn peer_rights(&self) -> Rights {
        Rights::from_bits(self.peer_rights.load(Relaxed))
    }

    /// Queues an initiator request; [`QueuePair::ring`] starts it. Any context.
    pub(crate) fn post(
        self: &Arc<Self>,
        context: u64,
        work: Work,
        flags: Flags,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
    ) -> Result<(), NotPosted> {
        let mut sq = self.sq.lock();
        let admission = self.state().admit_send();
        if admission == Admission::Refuse {
            return Err(NotPosted::State);
        }
        sq.post(self.adapter(), context, work, flags, sges)?;
        drop(sq);
        if admission == Admission::Flush {
            self.retire_sends();
        }
        Ok(())
    }

    /// Tells the transport that there is something to start. Any context.
    #[inline]
    pub(crate) fn ring(&self) {
        if let Some((transport, end)) = self.transport() {
            transport.doorbell(end);
        }
    }

    fn transport(&self) -> Option<(Arc<dyn super::transport::Transport>, usize)> {
        let link = self.link.lock();
        link.as_ref().map(|l| (l.transport.clone(), l.end))
    }

    /// Posts a receive. Any context.
    pub(crate) fn post_receive(
        self: &Arc<Self>,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), NotPosted> {
        if self.shared.is_some() {
            return Err(NotPosted::Invalid);
        }
        let mut rq = self.rq.lock();
        let admission = self.state().admit_receive();
        if admission == Admission::Refuse {
            return Err(NotPosted::State);
        }
        rq.ring.post(context, sges)?;
        let wake = core::mem::take(&mut rq.waiting);
        drop(rq);
        if admission == Admission::Flush {
            self.flush_receives();
        }
        if wake {
            self.receive_arrived();
        }
        Ok(())
    }

    /// Tells the transport that a message which waits may find a receive now.
    pub(super) fn receive_arrived(self: &Arc<Self>) {
        if let Some((transport, end)) = self.transport() {
            transport.receive_posted(end);
        }
    }

    /// For a transport: takes the next request that may begin.
    pub(crate) fn start(&self, job: &mut Job) -> Next {
        self.sq.lock().start(job)
    }

    /// For a transport: ends a started request. A failure breaks the queue pair.
    ///
    /// `length` is what a read or an atomic brought.
    pub(crate) fn complete(self: &Arc<Self>, seq: u32, status: Status, length: u32) {
        self.sq.lock().done(seq, status, length);
        let closed = self.retire_sends();
        self.report("request", status);
        if closed || !status.is_success() {
            self.fail();
        }
        self.settle();
    }

    /// Completes what is done at the front of the send queue; says whether a graceful close has
    /// come to its end.
    fn retire_sends(self: &Arc<Self>) -> bool {
        loop {
            let mut sq = self.sq.lock();
            let retired = sq.retire(self.cookie, &self.send_cq, self.adapter());
            drop(sq);
            if retired.lost {
                self.break_down();
            }
            if !retired.more {
                return retired.stopped;
            }
        }
    }

    /// For a transport: takes a receive for a message from the peer.
    pub(crate) fn take_receive(self: &Arc<Self>, receive: &mut Receive) -> Taken {
        let mut rq = self.rq.lock();
        if rq.flushing || rq.taken || self.state() != State::Connected {
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
    pub(crate) fn finish_receive(self: &Arc<Self>, receive: &Receive, arrival: Arrival) {
        let mut rq = self.rq.lock();
        rq.taken = false;
        let pushed = self.receive_cq.push(Completion {
            context: receive.context,
            qp: self.cookie,
            status: arrival.status,
            operation: arrival.operation,
            length: arrival.length,
            extra: arrival.extra,
            solicited: arrival.solicited,
        });
        let flush = rq.flushing;
        drop(rq);
        if pushed.is_err() {
            self.break_down();
        }
        self.report("receive", arrival.status);
        if !arrival.status.is_success() {
            self.fail();
        } else if flush {
            self.flush_receives();
        }
        self.settle();
    }

    /// Cancels every receive that no message has taken.
    fn flush_receives(self: &Arc<Self>) {
        let mut news = 0;
        loop {
            let mut rq = self.rq.lock();
            if !rq.flushing || rq.taken {
                break;
            }
            let Some(context) = rq.ring.cancel() else {
                if self.shared.is_some() && !core::mem::replace(&mut rq.ended, true) {
                    news = LAST_RECEIVE;
                }
                break;
            };
            // A broken queue takes no entry; the receive is gone all the same.
            let _ = self.receive_cq.push(Completion {
                context,
                qp: self.cookie,
                status: Status::Flushed,
                operation: Operation::Receive,
                ..Completion::BLANK
            });
            self.adapter().count(Counter::Flushes, 1);
        }
        self.raise(news);
    }

    /// Connects: both queues work from now on.
    ///
    /// `EINVAL` when the queue pair is not ready to be connected, or is already.
    pub(crate) fn attach(&self, link: Link, limits: ReadLimits) -> Result {
        let mut place = self.link.lock();
        let now = self.state();
        if place.is_some() || !matches!(now, State::Init | State::Ready) {
            return Err(EINVAL);
        }
        let next = State::Connected.number();
        if self.state.cmpxchg(now.number(), next, Full).is_err() {
            return Err(EINVAL);
        }
        *place = Some(link);
        if let Some(opening) = self.inbound.begin() {
            opening.open(0);
        }
        drop(place);
        self.sq.lock().set_read_limit(limits.outbound);
        Ok(())
    }

    /// Moves the queue pair to a state that a consumer asks for.
    ///
    /// `Connected` is entered by [`QueuePair::attach`] alone, `Error` by [`QueuePair::fail`].
    pub(crate) fn modify(self: &Arc<Self>, next: State) -> Result {
        if next == State::Error {
            self.fail();
            return Ok(());
        }
        let now = self.state();
        if next == State::Connected || !now.may_become(next) {
            return Err(EINVAL);
        }
        if next == State::Reset {
            self.reset()?;
        }
        match self.state.cmpxchg(now.number(), next.number(), Full) {
            Ok(_) => Ok(()),
            Err(_) => Err(EINVAL),
        }
    }

    /// Makes the queues ready for a new life; `EBUSY` while something is still ending.
    fn reset(&self) -> Result {
        let mut sq = self.sq.lock();
        if !sq.is_empty() {
            return Err(EBUSY);
        }
        sq.reset();
        drop(sq);
        let mut rq = self.rq.lock();
        if rq.taken {
            return Err(EBUSY);
        }
        while rq.ring.cancel().is_some() {}
        rq.flushing = false;
        rq.ended = false;
        Ok(())
    }

    /// Enters the error state: nothing is started or taken any more, everything accepted is
    /// cancelled in order, the peer loses the connection. May be repeated; any context.
    pub(crate) fn fail(self: &Arc<Self>) {
        self.state.xchg(State::Error.number(), Full);
        let mut place = self.link.lock();
        let link = place.take();
        let _ = self.inbound.close(None);
        drop(place);
        self.sq.lock().flush();
        self.rq.lock().flushing = true;
        self.retire_sends();
        self.flush_receives();
        if let Some(link) = link {
            link.transport.stop(link.end);
            self.adapter().count(Counter::Disconnects, 1);
            link.owner.disconnected();
        }
    }

    /// A completion queue took no entry: the queue pair cannot report any more.
    fn break_down(self: &Arc<Self>) {
        if !self.broken.xchg(true, Relaxed) {
            self.adapter().count(Counter::CqOverflows, 1);
            self.report("completion queue", Status::Fatal);
            self.raise(BROKEN);
            self.fail();
        }
    }

    /// Closes gracefully: what is posted now is carried out first, then the connection ends.
    ///
    /// A message that waits for a receive holds that up no longer than it may wait.
    pub(crate) fn close(self: &Arc<Self>) {
        if self.sq.lock().stop_here() {
            self.fail();
        }
    }

    /// The other side closed or lost the connection.
    pub(crate) fn peer_gone(self: &Arc<Self>) {
        self.fail();
    }

    /// Says in the kernel log what failed, unless it was only cancelled.
    fn report(&self, what: &str, status: Status) {
        if !matches!(status, Status::Success | Status::Flushed) {
            self.adapter()
                .warn(self.number, fmt!("{what}: {}", status.text()));
        }
    }

    fn raise(self: &Arc<Self>, news: u32) {
        if news != 0 && self.upcalls.raise(news) {
            let _ = self.adapter().softirqs().enqueue(self.clone());
        }
    }

    /// Ends everything; returns when nothing of the queue pair is in use any more and no call
    /// will come. May sleep.
    pub(crate) fn destroy(self: &Arc<Self>) {
        self.fail();
        while !self.is_settled() {
            self.settled.wait_timeout(10);
            self.settled.reset();
        }
        if let Some(shared) = &self.shared {
            shared.leave(self);
        }
        self.upcalls.close();
    }

    /// Whether nothing that was accepted is left.
    fn is_settled(&self) -> bool {
        let sends = self.sq.lock().is_empty();
        let rq = self.rq.lock();
        sends && !rq.taken && rq.ring.is_empty() && self.inbound.is_quiet()
    }

    /// For a transport: something of this queue pair that was in use is not any more.
    pub(crate) fn settle(&self) {
        if self.state() == State::Error {
            self.settled.signal();
        }
    }
}

impl WorkItem for QueuePair {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.upcalls.run(|news| {
            if news & BROKEN != 0 {
                this.events.broken();
            }
            if news & LAST_RECEIVE != 0 {
                this.events.last_receive_reached();
            }
        });
    }
}
