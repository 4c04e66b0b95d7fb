// SPDX-License-Identifier: GPL-2.0

//! What a transport calls: it starts requests and completes them, takes receives and finishes them.
//!
//! Context: any. What one call does is bounded; what is left is for the queue pair's softirq work.
//!
//! Tests: `engine/qp/tests.rs`.

use super::{
    receive::{
        Message,
        Mode,
        RecvWqe,
        Taken, //
    },
    send::{
        Next,
        Retired,
        SendQueue,
        SendWqe,
        BATCH, //
    },
    QueuePair,
    LAST_RECEIVE,
    RETIRE, //
};
use crate::{
    engine::{
        prelude::*,
        trace,
        transport::ConnectionId, //
    },
    rdma::values::{
        completion::Wc,
        wc::WcOpcode, //
    },
    sys::name::Name, //
};

impl QueuePair {
    /// For a transport: takes the next request that may begin on that connection.
    pub(crate) fn start(&self, connection: ConnectionId, wqe: &mut SendWqe) -> Next {
        self.start_next(connection, &mut self.sq.lock(), wqe)
    }

    #[inline(always)]
    fn start_next(&self, connection: ConnectionId, sq: &mut SendQueue, wqe: &mut SendWqe) -> Next {
        // Under the lock: what is posted after a reset is another connection's.
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

    #[inline]
    fn complete_and<R>(
        self: &Arc<Self>,
        wqe: &mut SendWqe,
        status: Status,
        then: impl FnOnce(&mut SendQueue, &mut SendWqe) -> R,
    ) -> R {
        // As long as the request is in the queue nobody resets it.
        let resets = self.resets();
        let mut sq = self.sq.lock();
        sq.end(wqe, status);
        let retired = self.retire(&mut sq);
        let result = then(&mut sq, wqe);
        drop(sq);
        let spared = status == Status::Flushed && !self.params.flush_on_disconnect;
        if !status.is_success() && !spared {
            self.fail_before_reset(resets);
            self.warn_failed("request", status);
        }
        self.after(retired, resets);
        self.reap();
        result
    }

    /// Completes what is done at the front of the send queue; a graceful close that has come to its
    /// end is ended.
    ///
    /// One call retires one batch; what is left is for the softirq work.
    pub(super) fn retire_sends(self: &Arc<Self>) {
        let mut sq = self.sq.lock();
        let retired = self.retire(&mut sq);
        // Under the lock: no reset comes between what was just retired and this.
        let resets = self.resets();
        drop(sq);
        self.after(retired, resets);
    }

    #[inline]
    fn retire(&self, sq: &mut SendQueue) -> Retired {
        let drained = || self.inbound.is_drained();
        sq.retire(drained, &self.params)
    }

    /// Goes on after a batch that was retired after so many resets, without the lock.
    fn after(self: &Arc<Self>, retired: Retired, resets: u32) {
        if retired.lost {
            self.break_down(resets);
        }
        if retired.more {
            self.raise(RETIRE);
        }
        if retired.stopped {
            self.end_close();
        }
    }

    /// For a transport: takes a receive for a message that comes over that connection.
    pub(crate) fn take_receive(
        self: &Arc<Self>,
        connection: ConnectionId,
        receive: &mut RecvWqe,
    ) -> Taken {
        let mut rq = self.rq.lock();
        let is_free = rq.mode == Mode::Open && rq.message != Message::Taken;
        if !is_free || !self.is_connected_by(connection) {
            return Taken::Closed;
        }
        let found = match &self.params.shared {
            Some(shared) => shared.take(self, receive),
            None => rq.ring.take(&mut receive.sges) || self.take_shared(&mut rq, receive),
        };
        if !found {
            rq.message = Message::Waiting;
            return Taken::Empty;
        }
        let taken = &*receive;
        trace::event!(receive, self.receive_args(taken));
        rq.message = Message::Taken;
        Taken::Ready
    }

    /// Returns the arguments of the tracepoint `receive`.
    fn receive_args(&self, receive: &RecvWqe) -> (Name, u32, u64, u32) {
        let wr_id = receive.sges.context().unwrap_or_default();
        // CAST: at most the width of the queue.
        let num_sge = receive.sges.len() as u32;
        (self.device().name(), self.params.number, wr_id, num_sge)
    }

    /// For a transport: finishes the receive that was taken, whose elements are given up. A failure
    /// breaks the queue pair.
    ///
    /// `completion` says what the message did to it; whose receive it was stands in `receive`.
    pub(crate) fn finish_receive(self: &Arc<Self>, receive: &mut RecvWqe, completion: Wc) {
        // As long as the receive is taken nobody resets it.
        let resets = self.resets();
        let Some(context) = receive.sges.end() else {
            return;
        };
        let mut rq = self.rq.lock();
        rq.message = Message::None;
        if completion.status == Status::Flushed {
            // The message ended in the middle: its receive is cancelled with the others.
            rq.aborted = Some(context);
            drop(rq);
            if self.params.flush_on_disconnect {
                self.fail_before_reset(resets);
            }
            return self.reap();
        }
        let entry = Wc {
            context,
            qp: self.params.cookie,
            ..completion
        };
        let pushed = rq.push_cqe(&self.params, &entry);
        let flush = rq.mode != Mode::Open;
        drop(rq);
        if pushed.is_err() {
            self.break_down(resets);
        }
        if !completion.status.is_success() {
            self.fail_before_reset(resets);
            self.warn_failed("receive", completion.status);
        } else if flush {
            self.flush_receives();
        }
        self.reap();
    }

    /// Cancels every receive that no message has taken, once the peer touches nothing any more.
    ///
    /// One call cancels one batch; what is left is for the softirq work.
    pub(super) fn flush_receives(self: &Arc<Self>) {
        let mut events = RETIRE;
        let mut lost_after = None;
        for _ in 0..BATCH {
            let mut rq = self.rq.lock();
            let is_held = rq.mode == Mode::Open || rq.message == Message::Taken;
            if is_held || !self.inbound.is_drained() {
                events = 0;
                break;
            }
            let Some(context) = self.next_to_cancel(&mut rq) else {
                let ends = self.params.shared.is_some() && rq.mode == Mode::Flushing;
                if ends {
                    rq.mode = Mode::Ended;
                }
                self.look_in_error(&mut rq);
                events = if ends { LAST_RECEIVE } else { 0 };
                break;
            };
            let entry = Wc {
                context,
                qp: self.params.cookie,
                status: Status::Flushed,
                opcode: WcOpcode::Recv,
                ..Wc::BLANK
            };
            // A broken queue takes no entry; the receive is gone all the same.
            if rq.push_cqe(&self.params, &entry).is_err() {
                // Under the lock: no reset comes between the receive and this.
                lost_after = Some(self.resets());
            }
            self.device().count(Counter::Flushes, 1);
        }
        self.raise(events);
        if let Some(resets) = lost_after {
            self.break_down(resets);
        }
    }
}
