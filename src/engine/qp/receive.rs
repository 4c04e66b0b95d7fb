// SPDX-License-Identifier: GPL-2.0

//! The receives of one queue pair: posted, taken by a message, finished or cancelled.
//!
//! A message takes one receive, fills it, and finishes it; only then may the next receive be taken.
//! So the receives of a queue pair complete in order, and a flush waits until a taken receive is
//! finished: no receive completes before an older one, and no byte arrives in a receive that was
//! completed.
//!
//! Context: any. Each call does a bounded part; the queue pair's softirq work goes on from there.
//!
//! Tests: `engine/qp/tests.rs`.

mod shared;

use kernel::alloc::Flags as Gfp;

use super::{
    send::BATCH,
    QpParams,
    QueuePair,
    LAST_RECEIVE,
    REAP, //
};
use crate::{
    engine::{
        cq::Failed,
        looking::ProgramReceives,
        notifier::Notifies,
        prelude::*,
        srq::Waiter,
        transport::ConnectionId,
        wq::{
            PostError,
            ReceiveRing,
            RecvWqe, //
        }, //
    },
    rdma::values::{
        completion::Wc,
        qp::Admission,
        wc::WcOpcode, //
    },
    sys::{
        name::Name,
        sge::{
            Context,
            Elements,
            Posted, //
        },
        trace, //
    }, //
};

/// The answer to a message that asks for a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The receive was taken and must be finished.
    Ready,
    /// No receive is there; the transport is notified when one is posted.
    Empty,
    /// Refused: a flush has begun, a receive is taken already, or that connection is gone.
    Refused,
}

/// The present message, of which there is one at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// No message needs a receive.
    None,
    /// The message found no receive and waits.
    Waiting,
    /// The message has taken a receive and not finished it.
    Taken,
}

/// The treatment of receives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiveMode {
    /// Messages take receives.
    Open,
    /// Receives are cancelled.
    Flushing,
    /// The end of a shared queue's use was reported; later receives are cancelled, too.
    Flushed,
}

/// The receive side of one queue pair.
pub(super) struct ReceiveQueue {
    /// The queue pair's own receives; without room when it uses a shared queue.
    pub(super) ring: ReceiveRing,
    /// The receives that a program posts without a call.
    pub(super) shared: Option<KBox<ProgramReceives>>,
    pub(super) message: Message,
    pub(super) mode: ReceiveMode,
    /// The receive of a message that broke off; the first to be cancelled.
    pub(super) aborted: Option<Context>,
    /// No completion is reported any more.
    pub(super) is_muted: bool,
}

impl ReceiveQueue {
    /// An empty receive queue. May sleep.
    pub(super) fn new(depth: u32, max_sge: u32, gfp: Gfp) -> Result<Self> {
        Ok(Self {
            ring: ReceiveRing::of_receives(depth, max_sge, gfp)?,
            shared: None,
            message: Message::None,
            mode: ReceiveMode::Open,
            aborted: None,
            is_muted: false,
        })
    }

    /// Ends the wait of a message; returns true if one waited.
    pub(super) fn stop_waiting(&mut self) -> bool {
        let waited = self.message == Message::Waiting;
        if waited {
            self.message = Message::None;
        }
        waited
    }

    /// Reports the end of a receive, unless the queue is muted.
    #[inline]
    pub(super) fn push_cqe(&self, params: &QpParams, entry: &Wc) -> Result<(), Failed> {
        if self.is_muted {
            return Ok(());
        }
        params.receive_cq.report(params.number, entry)
    }
}

impl QueuePair {
    /// Posts a receive. Any context.
    pub(crate) fn post_receive(
        self: &Arc<Self>,
        posted: Posted<impl Elements>,
    ) -> Result<(), PostError> {
        if self.params.shared.is_some() {
            return Err(PostError::Invalid);
        }
        let mut rq = self.rq.lock();
        let admission = self.state().admit_receive();
        if admission == Admission::Refuse {
            return Err(PostError::State);
        }
        rq.ring.post_receive(posted)?;
        let ring = &mut rq.ring;
        trace::event!(
            post_recv,
            ring.post_recv_args(self.device(), self.params.number)
        );
        if rq.stop_waiting() {
            // Under the lock: a task that has ended the wait must not be preempted before this.
            self.receive_arrived();
        }
        drop(rq);
        if admission == Admission::Flush {
            self.reap();
        }
        Ok(())
    }

    /// For a transport: takes a receive for a message that comes over that connection.
    pub(crate) fn take_receive(
        self: &Arc<Self>,
        connection: ConnectionId,
        receive: &mut RecvWqe,
    ) -> Taken {
        let mut rq = self.rq.lock();
        let is_free = rq.mode == ReceiveMode::Open && rq.message != Message::Taken;
        if !is_free || !self.is_connected_by(connection) {
            return Taken::Refused;
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
    /// `completion` holds the outcome of the message, `receive` the consumer's name of the receive.
    pub(crate) fn finish_receive(self: &Arc<Self>, receive: &mut RecvWqe, completion: Wc) {
        // There is no reset as long as the receive is taken.
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
            qp: self.params.qp_context,
            ..completion
        };
        let pushed = rq.push_cqe(&self.params, &entry);
        let flush = rq.mode != ReceiveMode::Open;
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

    /// Cancels every receive that no message has taken, once the peer accesses no memory any more.
    ///
    /// One call cancels one batch; softirq work cancels the rest.
    pub(super) fn flush_receives(self: &Arc<Self>) {
        let mut events = REAP;
        let mut lost_after = None;
        for _ in 0..BATCH {
            let mut rq = self.rq.lock();
            let is_held = rq.mode == ReceiveMode::Open || rq.message == Message::Taken;
            if is_held || !self.inbound.is_drained() {
                events = 0;
                break;
            }
            let Some(context) = self.next_to_cancel(&mut rq) else {
                let ends = self.params.shared.is_some() && rq.mode == ReceiveMode::Flushing;
                if ends {
                    rq.mode = ReceiveMode::Flushed;
                }
                self.look_in_error(&mut rq);
                events = if ends { LAST_RECEIVE } else { 0 };
                break;
            };
            let entry = Wc {
                context,
                qp: self.params.qp_context,
                status: Status::Flushed,
                opcode: WcOpcode::Recv,
                ..Wc::BLANK
            };
            // A broken completion queue takes no entry; the receive is gone all the same.
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
