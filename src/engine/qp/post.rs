// SPDX-License-Identifier: GPL-2.0

//! [`Posting`]: requests on their way into the send queue, under one hold of its lock.
//!
//! A request that concerns this side's memory table alone, and finds the queue empty, is carried
//! out inside the post: every earlier request has completed, so this is its turn. Such a request
//! never waits, and so needs neither a place in the queue nor a doorbell.

#[cfg(ndk_kunit)]
mod tests;

use super::{
    local,
    send::{
        PostedSend,
        SendQueue, //
    },
    QueuePair, //
};
use crate::{
    engine::{
        inject,
        limits::MAX_MESSAGE,
        prelude::*,
        wq::PostError, //
    },
    rdma::values::{
        qp::{
            Admission,
            QpCaps, //
        },
        wc::WcOpcode,
        work::{
            SendFlag,
            SendFlags,
            SendOp, //
        }, //
    },
    sys::{
        name::Name,
        sge::{
            Elements,
            Posted, //
        },
        softirq::BhDisabled,
        trace, //
    }, //
};

/// The send queue of a queue pair, while requests are put in.
///
/// Interrupts are off as long as this exists: a long chain is posted in parts. It is ended by
/// [`Posting::ring_doorbell`], or by [`Posting::end_without_doorbell`] where the requests are to
/// wait (NDKPI).
#[must_use = "what is posted has to be started"]
pub(crate) struct Posting<'a> {
    qp: &'a Arc<QueuePair>,
    sq: SpinLockIrqGuard<'a, SendQueue>,
    /// A section that keeps softirqs off: raised work runs at its end, and not in another thread.
    softirqs_off: Option<BhDisabled>,
    /// Read under the lock: a later failure cancels these requests, and needs the lock for that.
    admission: Admission,
    /// A completion queue did not take an entry.
    is_cqe_lost: bool,
}

impl Posting<'_> {
    /// Queues an initiator request, or carries it out. Any context.
    ///
    /// The refusal of a request releases the requests that were deferred before. A state that
    /// refuses every request releases none: it starts none.
    #[inline]
    pub(crate) fn post(
        &mut self,
        posted: Posted<impl Elements>,
        work: SendOp,
        flags: SendFlags,
    ) -> Result<(), PostError> {
        if self.admission == Admission::Refuse {
            return Err(PostError::State);
        }
        let caps = &self.qp.caps;
        let accepted = match caps.check(&work, flags.contains(SendFlag::Inline), posted.sges()) {
            Err(refused) => Err(refused),
            Ok(length) if work.is_local() => self.post_local(posted, (work, flags, length)),
            Ok(_) if self.sq.is_full() => Err(PostError::Full),
            Ok(length) => {
                let request = (work, flags, length);
                let queued = self.sq.push(self.qp.device(), posted, request);
                if queued.is_ok() {
                    let this = &mut *self;
                    trace::event!(post_send, this.post_send_args());
                }
                queued
            }
        };
        if accepted.is_err() {
            // A refused post releases the requests that were held back (DEFR-04).
            self.sq.release();
        }
        accepted
    }

    /// Releases the deferred requests, as a refusal does.
    pub(crate) fn release(&mut self) {
        self.sq.release();
    }

    /// Queues a local request, or carries it out.
    fn post_local(
        &mut self,
        posted: Posted<impl Elements>,
        request: PostedSend,
    ) -> Result<(), PostError> {
        if !self.qp.params.domain.is_trusted() {
            return Err(PostError::Invalid);
        }
        if self.sq.is_full() {
            return Err(PostError::Full);
        }
        self.traced(posted.context(), &request);
        if self.is_done_at_once(&request) {
            let (work, flags, _) = &request;
            // The queue is idle.
            if let Some(context) = self.sq.end_unqueued(posted) {
                let ended = (context, work.opcode(), *flags);
                self.is_cqe_lost |= self.sq.push_cqe(ended, &self.qp.params);
            }
            return Ok(());
        }
        self.sq.push(self.qp.device(), posted.take(0), request)
    }

    /// Returns the arguments of the tracepoint `post_send` for the newest request.
    fn post_send_args(&mut self) -> (Name, u32, u64, WcOpcode, u32) {
        let (wr_id, operation, length) = self.sq.newest();
        let (name, qp) = (self.qp.device().name(), self.qp.params.number);
        (name, qp, wr_id, operation, length)
    }

    /// Traces an accepted request.
    #[inline(always)]
    fn traced(&self, wr_id: u64, (work, _, length): &PostedSend) {
        trace::event!(post_send, {
            let (name, qp) = (self.qp.device().name(), self.qp.params.number);
            (name, qp, wr_id, work.opcode(), *length)
        });
    }

    /// Carries a local request out, if that can be done now and with success.
    // Out of line: in line it costs the requests that are not local.
    #[inline(never)]
    fn is_done_at_once(&mut self, (work, flags, _): &PostedSend) -> bool {
        self.admission == Admission::Queue
            && !flags.contains(SendFlag::Deferred)
            && self.sq.is_idle()
            // A fault may hit the request on its way through the queue.
            && !inject::is_on()
            && local::execute_at_once(self.qp, work)
    }

    /// Ends the posting, and notifies the transport if a request may be started.
    #[inline]
    pub(crate) fn ring_doorbell(self) {
        let doorbell = self.sq.doorbell();
        let _softirqs_off = self.end();
        if let Some((transport, end)) = doorbell {
            transport.doorbell(end);
        }
    }

    /// Ends the posting; the requests wait for the next [`QueuePair::ring_doorbell`].
    #[inline]
    pub(crate) fn end_without_doorbell(self) {
        self.end();
    }

    #[inline]
    fn end(self) -> Option<BhDisabled> {
        let Self {
            qp,
            sq,
            softirqs_off,
            admission,
            is_cqe_lost,
        } = self;
        // Under the lock: no reset comes between the lost completion and this.
        let resets = qp.resets();
        drop(sq);
        if is_cqe_lost {
            qp.break_down(resets);
        }
        if admission == Admission::Flush {
            qp.reap();
        }
        softirqs_off
    }
}

impl QpCaps {
    /// The length of the message, if its elements are within the limits (POST-10, 11, SEND-10, 11).
    #[inline]
    fn check(&self, work: &SendOp, inline: bool, sges: impl Elements) -> Result<u32, PostError> {
        let most = match work.is_read() {
            true => self.read_sge,
            false => self.send_sge,
        };
        if inline && !work.is_outbound() {
            return Err(PostError::Invalid);
        }
        // CAST: widening.
        if !inline && sges.len() > most as usize {
            return Err(PostError::TooManySges);
        }
        // OVERFLOW: at most 2^32 elements of less than 2^32 bytes.
        let length: u64 = sges.map(|s| u64::from(s.len())).sum();
        if inline && length > u64::from(self.inline_data) {
            return Err(PostError::InlineTooLong);
        }
        match u32::try_from(length) {
            Ok(len) if length <= MAX_MESSAGE => Ok(len),
            _ => Err(PostError::TooLong),
        }
    }
}

impl QueuePair {
    /// Opens the send queue for requests. Any context.
    #[inline]
    pub(crate) fn posting(self: &Arc<Self>) -> Posting<'_> {
        let softirqs_off = BhDisabled::enter();
        let sq = self.sq.lock();
        Posting {
            qp: self,
            admission: self.state().admit_send(),
            sq,
            softirqs_off,
            is_cqe_lost: false,
        }
    }

    /// Posts one request; [`QueuePair::ring_doorbell`] starts it. Any context.
    ///
    /// A refusal releases the requests that were deferred before, which have to be started, too.
    #[cfg(ndk_kunit)]
    pub(crate) fn post(
        self: &Arc<Self>,
        context: u64,
        work: SendOp,
        flags: impl Into<SendFlags>,
        sges: impl Elements,
    ) -> Result<(), PostError> {
        let mut posting = self.posting();
        let posted = crate::sys::sge::test_posted(context, sges);
        let accepted = posting.post(posted, work, flags.into());
        posting.end_without_doorbell();
        accepted
    }

    /// Notifies the transport, if a request may be started. Any context.
    #[inline]
    pub(crate) fn ring_doorbell(&self) {
        let doorbell = self.sq.lock().doorbell();
        if let Some((transport, end)) = doorbell {
            transport.doorbell(end);
        }
    }
}
