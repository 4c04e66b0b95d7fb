// SPDX-License-Identifier: GPL-2.0

//! The way of a request through a transport: started, completed, reported.
//!
//! Context: any. Each call does a bounded part; the queue pair's softirq work goes on from there.
//!
//! Tests: `engine/qp/send/queue/tests.rs`.

mod queue;

pub(crate) use self::queue::Next;
pub(super) use self::queue::{
    PostedSend,
    SendQueue, //
};

use self::queue::Retired;
use super::{
    QueuePair,
    REAP, //
};
use crate::{
    engine::{
        notifier::Notifies,
        prelude::*,
        transport::ConnectionId,
        wq::SendWqe, //
    },
    rdma::values::wc::WcOpcode,
    sys::{
        name::Name,
        trace, //
    }, //
};

use crate::engine::wq::Sent;

/// The number of requests that one call completes or cancels.
pub(super) const BATCH: u32 = 64;

impl QueuePair {
    /// For a transport: takes the next request that may begin on that connection.
    pub(crate) fn start(&self, connection: ConnectionId, wqe: &mut SendWqe) -> Next {
        self.start_next(connection, &mut self.sq.lock(), wqe)
    }

    #[inline(always)]
    fn start_next(&self, connection: ConnectionId, sq: &mut SendQueue, wqe: &mut SendWqe) -> Next {
        // Under the lock: requests that are posted after a reset belong to another connection.
        if !self.is_connected_by(connection) {
            return Next::Nothing;
        }
        let next = sq.start(wqe);
        if next == Next::Ready {
            trace::event!(start, self.start_args(sq, wqe));
        }
        next
    }

    /// Returns the arguments of the tracepoint `start`.
    fn start_args(&self, sq: &mut SendQueue, wqe: &SendWqe) -> (Name, u32, u64, WcOpcode, u32) {
        let opcode = wqe.work.opcode();
        let (qp, wr_id) = (self.params.number, sq.context(wqe.seq));
        (self.device().name(), qp, wr_id, opcode, wqe.length)
    }

    /// For a transport: ends the started request of `wqe`, which gives its elements back. A failure
    /// breaks the queue pair.
    pub(crate) fn complete(self: &Arc<Self>, wqe: &mut SendWqe, status: Status) {
        self.complete_and(wqe, status, |_, _| ());
    }

    /// For a transport: ends the started request of `wqe` as a success, and takes the next that may
    /// begin on that connection, all under one hold of the lock.
    pub(crate) fn complete_and_start(
        self: &Arc<Self>,
        connection: ConnectionId,
        wqe: &mut SendWqe,
    ) -> Next {
        let start = |sq: &mut SendQueue, wqe: &mut SendWqe| self.start_next(connection, sq, wqe);
        self.complete_and(wqe, Status::Success, start)
    }

    /// For a transport: takes the elements of a started request back, for which the transport has no
    /// more use. [`QueuePair::complete_sent`] ends the request.
    pub(crate) fn give_back(&self, wqe: &mut SendWqe) -> Sent {
        self.sq.lock().give_back(wqe)
    }

    /// As [`QueuePair::complete`], for a request whose elements were given back.
    pub(crate) fn complete_sent(self: &Arc<Self>, sent: Sent, status: Status) {
        // There is no reset as long as the request is in the queue.
        let resets = self.resets();
        let mut sq = self.sq.lock();
        sq.end_sent(sent, status);
        let retired = self.retire(&mut sq);
        drop(sq);
        self.after_end(status, retired, resets);
    }

    #[inline]
    fn complete_and<R>(
        self: &Arc<Self>,
        wqe: &mut SendWqe,
        status: Status,
        then: impl FnOnce(&mut SendQueue, &mut SendWqe) -> R,
    ) -> R {
        // There is no reset as long as the request is in the queue.
        let resets = self.resets();
        let mut sq = self.sq.lock();
        sq.end(wqe, status);
        let retired = self.retire(&mut sq);
        let result = then(&mut sq, wqe);
        drop(sq);
        self.after_end(status, retired, resets);
        result
    }

    /// Acts on the end of a request, without the lock. `resets` is of the time of the end.
    #[inline]
    fn after_end(self: &Arc<Self>, status: Status, retired: Retired, resets: u32) {
        let spared = status == Status::Flushed && !self.params.flush_on_disconnect;
        if !status.is_success() && !spared {
            self.fail_before_reset(resets);
            self.warn_failed("request", status);
        }
        self.after(retired, resets);
        self.reap();
    }

    /// Completes the requests that are done at the front of the send queue, and ends a graceful
    /// close that has carried out its last request.
    ///
    /// One call retires one batch; softirq work retires the rest.
    pub(super) fn retire_sends(self: &Arc<Self>) {
        let mut sq = self.sq.lock();
        let retired = self.retire(&mut sq);
        // Under the lock: no reset comes between the retired requests and this.
        let resets = self.resets();
        drop(sq);
        self.after(retired, resets);
    }

    #[inline]
    fn retire(&self, sq: &mut SendQueue) -> Retired {
        let drained = || self.inbound.is_drained();
        sq.retire(drained, &self.params)
    }

    /// Acts on the result of a batch, without the lock. `resets` is of the time of the batch.
    fn after(self: &Arc<Self>, retired: Retired, resets: u32) {
        if retired.is_cqe_lost {
            self.break_down(resets);
        }
        if retired.more {
            self.raise(REAP);
        }
        if retired.stopped {
            self.end_close();
        }
    }
}
