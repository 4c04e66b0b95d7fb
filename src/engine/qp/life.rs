// SPDX-License-Identifier: GPL-2.0

//! The life of a queue pair: connect, change state, close, fail, destroy.

#[cfg(ndk_kunit)]
mod tests;

use kernel::sync::atomic::ordering::{
    Acquire,
    Full,
    Relaxed,
    Release, //
};

use super::{
    receive::{
        Message,
        ReceiveMode,
        ReceiveQueue, //
    },
    QueuePair, //
};
use crate::{
    engine::{
        notifier::Notifies,
        prelude::*,
        transport::{
            ConnectionId,
            Link,
            ReadLimits, //
        },
        wq::ReceiveRing, //
    },
    rdma::values::qp::QpState,
    sys::{
        gate::GateGuard,
        trace, //
    }, //
};

impl QueuePair {
    /// Returns true if `connection` is the present one of the queue pair.
    #[inline]
    pub(crate) fn is_connected_by(&self, connection: ConnectionId) -> bool {
        self.connection.load(Acquire) == connection.number()
    }

    /// The present connection of the queue pair.
    #[cfg(ndk_kunit)]
    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        core::num::NonZero::new(self.connection.load(Acquire)).map(ConnectionId::new)
    }

    /// For a transport: lets the peer access memory that it names, as long as the result exists.
    ///
    /// `None` unless `connection` is there. The caller calls [`QueuePair::reap`] after it has
    /// dropped the guard, or got `None`: no request or receive is cancelled while a guard exists,
    /// so that a consumer may have its memory back when its queues are drained.
    #[inline]
    pub(crate) fn admit_peer(&self, connection: ConnectionId) -> Option<GateGuard<'_, ()>> {
        let inside = self.inbound.enter(0).ok()?;
        // Checked inside the gate: no other connection comes before this guard is dropped.
        self.is_connected_by(connection).then_some(inside)
    }

    /// Connects the queue pair: both queues work from now on.
    ///
    /// `EINVAL` when the queue pair is not ready to be connected, or is connected already.
    pub(crate) fn attach(&self, link: Link, limits: ReadLimits) -> Result {
        let peer = link.transport.peer(link.end);
        let mut link_slot = self.link.lock();
        let now = self.state();
        if link_slot.is_some() || !matches!(now, QpState::Init | QpState::Rtr) {
            return Err(EINVAL);
        }
        // Before a request can be started, and not by a connect that is refused.
        self.sq.lock().limits = limits;
        // Open before it is connected: a peer that finds it connected finds it open.
        self.inbound.begin().ok_or(EINVAL)?.open(0);
        let next = QpState::Rts.number();
        if self.state.cmpxchg(now.number(), next, Full).is_err() {
            let _ = self.inbound.close(None);
            return Err(EINVAL);
        }
        let is_of_program = peer.is_some_and(|peer| peer.is_of_program);
        self.has_program_peer.store(is_of_program, Relaxed);
        // Last, and under the lock of `link`: a disconnect takes the link and clears this.
        self.connection.store(link.transport.id().number(), Release);
        let doorbell = Some((link.transport.clone(), link.end));
        *link_slot = Some(link);
        // Under the lock of `link`: a disconnect takes the link, then the doorbell.
        self.sq.lock().connect(doorbell);
        Ok(())
    }

    /// Moves the queue pair to a state that a consumer asks for.
    ///
    /// `Rts` is entered by [`QueuePair::attach`] alone, `Lost` when the peer goes, `Err` by
    /// [`QueuePair::fail`]. The caller asks for states other than `Err` one at a time: a reset is
    /// not over when the state is `Reset`.
    pub(crate) fn modify(self: &Arc<Self>, next: QpState) -> Result {
        if next == QpState::Err {
            self.fail();
            return Ok(());
        }
        let now = self.state();
        if matches!(next, QpState::Rts | QpState::Lost) || !now.may_become(next) {
            return Err(EINVAL);
        }
        if next == QpState::Reset && now == QpState::Err && !self.is_idle() {
            return Err(EBUSY);
        }
        let link_slot = self.link.lock();
        let changed = self.state.cmpxchg(now.number(), next.number(), Full);
        if changed.is_err() {
            return Err(EINVAL);
        }
        if next == QpState::Reset {
            self.resets.add(1, Relaxed);
            self.broken.store(false, Relaxed);
            drop(link_slot);
            self.reset();
        }
        Ok(())
    }

    /// Makes the queues ready for use again. A request that was posted in error, after the queues
    /// were seen empty, ends without a completion, as a reset has it (IBTA 10.3.1).
    ///
    /// A concurrent failure changes the state before it takes the locks, and its flags stay. No
    /// other change of the state comes in between: see [`QueuePair::modify`].
    fn reset(&self) {
        loop {
            let mut sq = self.sq.lock();
            if self.state() != QpState::Reset || sq.reset(self.device()) {
                break;
            }
        }
        let mut rq = self.rq.lock();
        if self.state() == QpState::Reset {
            // No receive in the ring was started.
            rq.ring.forget();
            if let Some(shared) = &mut rq.shared {
                shared.ring.forget();
            }
            rq.aborted = None;
            rq.mode = ReceiveMode::Open;
            rq.stop_waiting();
            self.give_up_wait_place(rq);
        }
    }

    /// Enters the error state: no request is started and no receive taken any more, accepted ones
    /// are cancelled in order, the peer loses the connection. May be repeated; any context.
    ///
    /// One call cancels a bounded number; softirq work cancels the rest.
    pub(crate) fn fail(self: &Arc<Self>) {
        self.fail_if(false, |_| true);
    }

    /// The number of resets. None comes while a request is started or a receive taken.
    #[inline]
    pub(super) fn resets(&self) -> u32 {
        self.resets.load(Relaxed)
    }

    /// The same as [`QueuePair::fail`], unless the queue pair was reset since `resets` was read:
    /// for a caller that has ended the request or receive which kept a reset away.
    pub(super) fn fail_before_reset(self: &Arc<Self>, resets: u32) {
        self.fail_if(false, |_| self.resets() == resets);
    }

    /// Ends a graceful close, if one has carried out its last request.
    pub(super) fn end_close(self: &Arc<Self>) {
        self.fail_if(false, |_| self.sq.lock().is_at_stop());
    }

    /// The same as [`QueuePair::fail`], without completions from now on: accepted requests and
    /// receives end unreported.
    pub(crate) fn fail_unreported(self: &Arc<Self>) {
        self.sq.lock().is_muted = true;
        self.rq.lock().is_muted = true;
        self.fail();
    }

    /// Ends `connection`, which the other side closed or lost.
    ///
    /// No effect unless the queue pair still has that connection.
    pub(crate) fn peer_gone(self: &Arc<Self>, connection: ConnectionId) {
        match self.params.flush_on_disconnect {
            true => {
                self.fail_if(true, |link| link.is_some_and(|l| l.is(connection)));
            }
            false => self.peer_disconnected(connection),
        }
    }

    /// Ends the connection; posted requests and receives stay until this side cancels them.
    fn peer_disconnected(self: &Arc<Self>, connection: ConnectionId) {
        let mut link_slot = self.link.lock();
        let Some(link) = link_slot.take_if(|l| l.is(connection)) else {
            return;
        };
        self.connection.store(0, Release);
        // A queue pair with a link is connected.
        self.state.xchg(QpState::Lost.number(), Full);
        let _ = self.inbound.close(None);
        let doorbell = self.sq.lock().connect(None);
        drop((link_slot, doorbell));
        self.end_receives();
        self.unlink(link, true);
    }

    /// Handles the receives at a disconnect, after the lock of `link` was released: in error they
    /// are cancelled, and the place at a shared queue is given up.
    ///
    /// A reset and the next connection may have come in between. The state shows that, under the
    /// lock of `rq`, which a reset takes after it has changed the state.
    fn end_receives(&self) {
        let mut rq = self.rq.lock();
        let state = self.state();
        if state == QpState::Err && rq.mode == ReceiveMode::Open {
            rq.begin_flush();
        }
        if matches!(state, QpState::Err | QpState::Lost) {
            self.give_up_wait_place(rq);
        }
    }

    /// Gives up the place at a shared queue. Under the lock of `rq` no message begins to wait, and
    /// one that still saw the queue pair connected waits already.
    fn give_up_wait_place(&self, rq: SpinLockIrqGuard<'_, ReceiveQueue>) {
        let shared = self.params.shared.as_ref();
        let gone = shared.and_then(|shared| shared.give_up(&self.wait_place));
        drop(rq);
        drop(gone);
    }

    fn unlink(&self, link: Link, by_peer: bool) {
        trace::event!(
            disconnect,
            (self.device().name(), self.params.number, by_peer)
        );
        link.transport.stop(link.end);
        self.device().count(Counter::Disconnects, 1);
        link.owner.disconnected(by_peer);
    }

    /// Enters the error state if `condition`, asked under the lock of `link`, is true. Returns its
    /// answer.
    pub(super) fn fail_if(
        self: &Arc<Self>,
        by_peer: bool,
        condition: impl FnOnce(Option<&Link>) -> bool,
    ) -> bool {
        let mut link_slot = self.link.lock();
        if !condition(link_slot.as_ref()) {
            return false;
        }
        self.connection.store(0, Release);
        self.state.xchg(QpState::Err.number(), Full);
        let link = link_slot.take();
        let _ = self.inbound.close(None);
        let mut sq = self.sq.lock();
        let doorbell = sq.connect(None);
        // No reset comes before the lock of `link` is released.
        sq.flush();
        drop(sq);
        drop((link_slot, doorbell));
        self.end_receives();
        self.reap_error();
        if let Some(link) = link {
            self.unlink(link, by_peer);
        }
        true
    }

    /// Closes gracefully: carries out the requests posted so far that are not held back, then ends
    /// the connection.
    ///
    /// A message that waits for a receive delays the end no longer than it may wait; at a shared
    /// queue that time counts from its last renewal. Over TCP it bounds all requests, from the close
    /// on, and begins anew with each progress of one: bytes that TCP takes, or that come, an answer,
    /// an acknowledgement.
    pub(crate) fn close(self: &Arc<Self>) {
        self.sq.lock().stop_here();
        self.notify_closing();
        self.end_close();
    }

    /// The same for a connected queue pair; without a connection `EINVAL`, and no effect.
    pub(crate) fn close_connection(self: &Arc<Self>) -> Result {
        let mut sq = self.sq.lock();
        // Under the lock: a failure changes the state before it takes the lock.
        if self.state() != QpState::Rts {
            return Err(EINVAL);
        }
        sq.stop_here();
        drop(sq);
        self.notify_closing();
        self.end_close();
        Ok(())
    }

    /// Notifies the transport, if there is one, that a graceful close has begun.
    fn notify_closing(&self) {
        let link = self.link.lock();
        let transport = link.as_ref().map(|link| (link.transport.clone(), link.end));
        drop(link);
        if let Some((transport, end)) = transport {
            transport.closing(end);
        }
    }

    /// The limits of the connection, as long as there is one.
    pub(crate) fn read_limits(&self) -> Option<ReadLimits> {
        let limits = self.sq.lock().limits;
        (self.state() == QpState::Rts).then_some(limits)
    }

    /// Returns true if a graceful close has begun.
    pub(crate) fn is_closing(&self) -> bool {
        self.sq.lock().is_stopping()
    }

    /// Returns true if [`QueuePair::close`] carried out all the requests that it waited for.
    pub(crate) fn closed_gracefully(&self) -> bool {
        self.sq.lock().has_stopped()
    }

    /// Ends all requests, receives, accesses and calls of the queue pair; returns when none is
    /// left. May sleep.
    pub(crate) fn destroy(self: &Arc<Self>) {
        let shared = self.rq.lock().shared.take();
        drop(shared);
        self.fail();
        while !self.is_idle() {
            // Every reap of a queue pair in error signals, that of a post too.
            self.reaped.wait();
            // The next turn checks after this reset, and so sees an end that was signalled before.
            self.reaped.reset();
        }
        if let Some(shared) = &self.params.shared {
            shared.leave(&self.wait_place);
        }
        self.timer.stop();
        self.end_calls();
        // Frees the large memory here, where it may sleep: the last reference may go in any
        // context.
        let sends = self.sq.lock().take_memory();
        let receives = core::mem::replace(&mut self.rq.lock().ring, ReceiveRing::EMPTY);
        drop((sends, receives));
        self.share.give_back();
    }

    /// Returns true if no accepted request or receive is left, and no access of the peer.
    fn is_idle(&self) -> bool {
        let sends = self.sq.lock().is_empty();
        let rq = self.rq.lock();
        sends
            && rq.message != Message::Taken
            && rq.aborted.is_none()
            && rq.ring.is_empty()
            && rq.shared.as_ref().is_none_or(|s| !s.ring.has_seen())
            && self.inbound.is_drained()
    }

    /// Goes on with a flush in error. A transport calls this after a use of the queue pair has
    /// ended.
    #[inline]
    pub(crate) fn reap(self: &Arc<Self>) {
        if self.state() == QpState::Err {
            self.reap_error();
        }
    }

    #[cold]
    fn reap_error(self: &Arc<Self>) {
        self.retire_sends();
        self.flush_receives();
        self.reaped.signal();
    }
}
