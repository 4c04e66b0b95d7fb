// SPDX-License-Identifier: GPL-2.0

//! [`SendQueue`]: initiator requests from posting to completion, in order.
//!
//! ```text
//! posted --start--> started --complete--> done --(all before it are done)--> completed, slot free
//!    \------------------ flush -------------------------------------/
//! ```
//!
//! Requests start in posting order, may be done in any order (reads answer late on a wire), and
//! complete in posting order. While flushing, a request that was not started is as good as done.
//!
//! This is the data under the lock of the send queue; the lock is in [`super::QueuePair`].

#[cfg(ndk_kunit)]
mod tests;

use kernel::alloc::Flags as Gfp;

use crate::{
    engine::{
        prelude::*,
        qp::QpParams,
        transport::{
            ReadLimits,
            Transport, //
        },
        wq::{
            PostError,
            SendWqe,
            Sent, //
        }, //
    },
    rdma::values::{
        completion::Wc,
        qp::QpCaps,
        wc::WcOpcode,
        work::{
            SendFlag,
            SendFlags,
            SendOp,
            SendWith, //
        }, //
    },
    sys::{
        requests::RequestQueue,
        sge::{
            Context,
            Elements,
            Posted, //
        }, //
    }, //
};

use super::BATCH;

/// A request as it is posted: what it does and how, and its length.
pub(crate) type PostedSend = (SendOp, SendFlags, u32);

#[derive(Clone, Copy)]
enum Stage {
    Posted,
    Started,
    Done(Status),
}

#[derive(Clone, Copy)]
struct SendEntry {
    work: SendOp,
    flags: SendFlags,
    /// Bytes that were taken inline.
    inline: u32,
    length: u32,
    stage: Stage,
}

/// The treatment of requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendMode {
    /// Requests are carried out.
    Open,
    /// Requests before `stop_at` are carried out, then the queue pair fails: a graceful close.
    Closing { stop_at: u32 },
    /// Requests that were not started are cancelled.
    Flushing {
        /// A graceful close has ended, with all its requests carried out.
        graceful: bool,
    },
}

const BLANK: SendEntry = SendEntry {
    work: SendOp::Send {
        with: SendWith::Nothing,
    },
    flags: SendFlags::empty(),
    inline: 0,
    length: 0,
    stage: Stage::Posted,
};

/// The answer of a send queue to a transport that asks for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The WQE holds the next request, which now counts as started.
    Ready,
    /// No request may be started, as when the queue is empty, flushing, or waits for reads.
    Nothing,
}

/// The result of [`SendQueue::retire`].
pub(crate) struct Retired {
    /// There may be more requests to complete.
    pub(crate) more: bool,
    /// The completion queue did not take an entry.
    pub(crate) is_cqe_lost: bool,
    /// A graceful close has come to its end.
    pub(crate) stopped: bool,
}

/// The requests of one send queue.
pub(crate) struct SendQueue {
    requests: RequestQueue<SendEntry>,
    /// `max_inline` bytes for each place of the ring.
    inline: KVVec<u8>,
    max_inline: usize,
    /// The first request that was not started.
    first_unstarted: u32,
    /// The first request that is held back: this and later ones were posted deferred.
    first_held_back: u32,
    reads: u32,
    /// The limits of the present or the last connection.
    pub(crate) limits: ReadLimits,
    mode: SendMode,
    /// No completion is reported any more.
    pub(crate) is_muted: bool,
    /// A request has failed: no later one is started, and no close is graceful any more.
    failed: bool,
    /// The transport and this side's end of it, while there is a connection.
    doorbell: Option<(Arc<dyn Transport>, usize)>,
}

impl SendQueue {
    /// An empty queue. May sleep.
    pub(crate) fn new(caps: &QpCaps, gfp: Gfp) -> Result<Self> {
        let width = caps.send_sge.max(caps.read_sge);
        let requests = RequestQueue::new(caps.send_wr, width, BLANK, gfp)?;
        // CAST: widening.
        let max_inline = caps.inline_data as usize;
        let inline = requests.places().checked_mul(max_inline).ok_or(EINVAL)?;
        Ok(Self {
            requests,
            inline: KVVec::from_elem(0, inline, gfp)?,
            max_inline,
            first_unstarted: 0,
            first_held_back: 0,
            reads: 0,
            limits: ReadLimits::default(),
            mode: SendMode::Open,
            is_muted: false,
            failed: false,
            doorbell: None,
        })
    }

    /// Takes the memory of the queue, to be dropped where that may sleep: no request fits any more.
    pub(crate) fn take_memory(&mut self) -> impl Sized {
        let requests = core::mem::replace(&mut self.requests, RequestQueue::EMPTY);
        (requests, core::mem::replace(&mut self.inline, KVVec::new()))
    }

    /// Queues a request; the elements are used up during the call.
    #[inline]
    pub(crate) fn push(
        &mut self,
        device: &RdmaDevice,
        posted: Posted<impl Elements>,
        (work, flags, length): PostedSend,
    ) -> Result<(), PostError> {
        let entry = SendEntry {
            work,
            flags,
            inline: 0,
            length,
            stage: Stage::Posted,
        };
        let queued = match flags.contains(SendFlag::Inline) {
            true => {
                let inline = self.store_inline(&posted);
                self.requests
                    .post(posted.take(0), SendEntry { inline, ..entry })
            }
            false => self.requests.post(posted, entry),
        };
        if !queued {
            return Err(PostError::Full);
        }
        match flags.contains(SendFlag::Deferred) {
            true => device.count(Counter::Deferred, 1),
            false => self.release(),
        }
        Ok(())
    }

    /// Returns the consumer's name, the operation and the length of the newest request.
    pub(crate) fn newest(&mut self) -> (u64, WcOpcode, u32) {
        let (wr_id, _, entry) = self.requests.newest().unwrap_or((0, 0, &BLANK));
        (wr_id, entry.work.opcode(), entry.length)
    }

    /// Takes the bytes up to the first element that cannot be read, and returns their number. A
    /// request that lacks bytes fails in its turn.
    fn store_inline(&mut self, posted: &Posted<impl Elements>) -> u32 {
        let from = self.requests.index(self.requests.tail()) * self.max_inline;
        let slots = self.inline.get_mut(from..from + self.max_inline);
        // CAST: not more than `max_inline`, which came from a u32.
        posted.read_inline(slots.unwrap_or_default()) as u32
    }

    /// Ends a request that was carried out without a place in the queue, which is empty.
    #[inline]
    pub(crate) fn end_unqueued(&self, posted: Posted<impl Elements>) -> Option<Context> {
        self.requests.pass(posted)
    }

    /// Returns true if there is no room.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.requests.is_full()
    }

    /// Returns true if a request that comes now would be the first to be carried out, and at once.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.mode == SendMode::Open && !self.failed
    }

    /// Reports a request that succeeded without a place in the queue. Returns true if the
    /// completion queue did not take the entry: then no request is started any more.
    #[inline]
    pub(crate) fn push_cqe(
        &mut self,
        (context, opcode, flags): (Context, WcOpcode, SendFlags),
        params: &QpParams,
    ) -> bool {
        if self.is_muted || !flags.contains(SendFlag::Signaled) {
            return false;
        }
        let entry = Wc {
            context,
            qp: params.qp_context,
            opcode,
            ..Wc::BLANK
        };
        let lost = params.send_cq.report(params.number, &entry).is_err();
        self.failed |= lost;
        lost
    }

    /// Returns the transport to notify, if a request waits that may be started.
    #[inline]
    pub(crate) fn doorbell(&self) -> Option<(Arc<dyn Transport>, usize)> {
        let waits = self.first_unstarted != self.first_held_back && !self.is_flushing();
        (self.doorbell.as_ref().filter(|_| waits)).map(|(transport, end)| (transport.clone(), *end))
    }

    /// Sets the transport to notify of requests that wait; returns the previous one.
    pub(crate) fn connect(
        &mut self,
        doorbell: Option<(Arc<dyn Transport>, usize)>,
    ) -> Option<(Arc<dyn Transport>, usize)> {
        core::mem::replace(&mut self.doorbell, doorbell)
    }

    /// Releases the requests that are held back.
    pub(crate) fn release(&mut self) {
        self.first_held_back = self.requests.tail();
    }

    /// Takes the next request that may begin; none as long as `wqe` has another request.
    pub(crate) fn start(&mut self, wqe: &mut SendWqe) -> Next {
        let (next, reads, limit) = (self.first_unstarted, self.reads, self.limits.outbound);
        let held = next == self.first_held_back || !self.may_start(next) || wqe.sges.is_in_use();
        let Some(entry) = self.requests.get_mut(next) else {
            return Next::Nothing;
        };
        let is_read = entry.work.is_read();
        let fenced = entry.flags.contains(SendFlag::Fence) && reads > 0;
        if held || fenced || (is_read && limit > 0 && reads >= limit) {
            return Next::Nothing;
        }
        entry.stage = Stage::Started;
        wqe.seq = next;
        wqe.work = entry.work;
        wqe.flags = entry.flags;
        wqe.length = entry.length;
        wqe.forbidden = is_read && limit == 0;
        // CAST: widening.
        let inline = entry.inline as usize;
        self.reads += u32::from(is_read);
        self.first_unstarted = next.wrapping_add(1);
        let from = self.requests.index(next) * self.max_inline;
        let bytes = self.inline.get(from..from + inline);
        wqe.load_inline(bytes.unwrap_or_default());
        self.requests.start(next, &mut wqe.sges);
        Next::Ready
    }

    /// The consumer's number for a request that is in the queue.
    pub(crate) fn context(&mut self, seq: u32) -> u64 {
        self.requests.context(seq).unwrap_or_default()
    }

    /// Ends the request of `wqe`: takes its elements back, and the length from `wqe`.
    pub(crate) fn end(&mut self, wqe: &mut SendWqe, status: Status) {
        let sent = self.give_back(wqe);
        self.end_sent(sent, status);
    }

    /// Takes the elements of a started request back, for which its transport has no more use.
    pub(crate) fn give_back(&mut self, wqe: &mut SendWqe) -> Sent {
        self.requests.give_back(&mut wqe.sges);
        wqe.sent()
    }

    /// Ends a request whose elements were given back.
    pub(crate) fn end_sent(&mut self, sent: Sent, status: Status) {
        let Some(entry) = self.requests.get_mut(sent.seq) else {
            return;
        };
        if !matches!(entry.stage, Stage::Started) {
            return;
        }
        entry.stage = Stage::Done(status);
        entry.length = sent.length;
        // Here, and not when the queue pair fails: no request starts in between.
        self.failed |= !matches!(status, Status::Success | Status::Flushed);
        self.reads -= u32::from(entry.work.is_read());
    }

    /// Completes the requests that are done at the front of the queue, a batch at most.
    ///
    /// `drained` returns true if the peer accesses no memory any more: only then is a request
    /// cancelled.
    #[inline]
    pub(crate) fn retire(&mut self, drained: impl FnOnce() -> bool, params: &QpParams) -> Retired {
        let (device, cq): (&RdmaDevice, _) = (params.domain.device(), &params.send_cq);
        let flushing = self.is_flushing();
        let drained = flushing && drained();
        let mut lost = false;
        for _ in 0..BATCH {
            let entry = self.requests.front();
            let status = entry.and_then(|entry| entry.ended(flushing, drained));
            let ended = status.and_then(|status| Some((status, self.requests.leave()?)));
            let Some((status, (context, entry))) = ended else {
                return Retired {
                    more: false,
                    is_cqe_lost: lost,
                    stopped: self.is_at_stop(),
                };
            };
            let failed = !status.is_success();
            if failed {
                // Before the completion, after which the consumer may look at the region.
                entry.drop_staged(device);
            }
            if (failed || entry.flags.contains(SendFlag::Signaled)) && !self.is_muted {
                let entry = entry.completion(context, params.qp_context, status);
                lost |= cq.report(params.number, &entry).is_err();
            }
            // A completion that got lost counts as a failure.
            self.failed |= failed | lost;
            if status == Status::Flushed {
                device.count(Counter::Flushes, 1);
            }
        }
        Retired {
            more: true,
            is_cqe_lost: lost,
            stopped: false,
        }
    }

    /// Begins a flush: requests not started stay so, and [`SendQueue::retire`] cancels them.
    pub(crate) fn flush(&mut self) {
        if !self.is_flushing() {
            let graceful = self.is_at_stop() && !self.failed;
            self.mode = SendMode::Flushing { graceful };
        }
    }

    /// Begins a graceful close: no request that is held back or posted later is carried out.
    pub(crate) fn stop_here(&mut self) {
        if self.mode == SendMode::Open {
            self.mode = SendMode::Closing {
                stop_at: self.first_held_back,
            };
        }
    }

    /// Returns true if all requests that a graceful close waits for were carried out.
    pub(crate) fn is_at_stop(&self) -> bool {
        let stop_at = self.requests.head();
        self.mode == SendMode::Closing { stop_at }
    }

    fn is_flushing(&self) -> bool {
        matches!(self.mode, SendMode::Flushing { .. })
    }

    fn may_start(&self, next: u32) -> bool {
        if self.failed {
            return false;
        }
        match self.mode {
            SendMode::Open => true,
            SendMode::Closing { stop_at } => stop_at != next,
            SendMode::Flushing { .. } => false,
        }
    }

    /// Returns true while a graceful close goes on.
    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.mode, SendMode::Closing { .. })
    }

    /// Returns true if a graceful close has ended, with all its requests carried out.
    pub(crate) fn has_stopped(&self) -> bool {
        self.mode == SendMode::Flushing { graceful: true }
    }

    /// Makes the queue ready after a reset: drops the requests that are left, a batch in each call.
    /// Returns true if none is left.
    pub(crate) fn reset(&mut self, device: &RdmaDevice) -> bool {
        for _ in 0..BATCH {
            let Some((_, entry)) = self.requests.leave() else {
                break;
            };
            entry.drop_staged(device);
        }
        if !self.requests.is_empty() {
            return false;
        }
        self.mode = SendMode::Open;
        self.failed = false;
        self.first_unstarted = self.requests.tail();
        self.first_held_back = self.first_unstarted;
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The numbers of requests that were posted and not started, and started and not completed.
    pub(crate) fn in_use(&self) -> (u32, u32) {
        // A flushed request leaves without having been started.
        let (next, tail) = (self.first_unstarted, self.requests.tail());
        let posted = tail.wrapping_sub(next).min(self.requests.len());
        (posted, self.requests.len() - posted)
    }
}

impl SendEntry {
    /// The final status of the request, if it has ended or is to be flushed.
    #[inline]
    fn ended(&self, flushing: bool, drained: bool) -> Option<Status> {
        match self.stage {
            // The peer is gone; the owner has not cancelled the requests yet.
            Stage::Done(Status::Flushed) if !flushing => None,
            Stage::Done(status) => Some(status),
            Stage::Posted if drained => Some(Status::Flushed),
            Stage::Posted | Stage::Started => None,
        }
    }

    /// Drops the staged list, or notifies the owner of the window, of a request that was not
    /// carried out.
    fn drop_staged(&self, device: &RdmaDevice) {
        match self.work {
            SendOp::RegMr {
                token,
                staged: Some(number),
                ..
            } => device.regions.drop_staged(token.index(), number),
            SendOp::BindMw { window, .. } => device.regions.not_bound(window),
            _ => (),
        }
    }

    fn completion(&self, context: Context, qp: usize, status: Status) -> Wc {
        Wc {
            context,
            qp,
            status,
            opcode: self.work.opcode(),
            byte_len: self.length,
            ..Wc::BLANK
        }
    }
}
