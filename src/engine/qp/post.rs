// SPDX-License-Identifier: GPL-2.0

//! [`Posting`]: requests on their way into the send queue, under one hold of its lock.
//!
//! A request that concerns this side's memory table alone, and finds the queue empty, is carried
//! out here and now: everything before it has completed, so this is its turn. It never waits, so
//! it needs no place in the queue and nobody who is notified of it.

#[cfg(ndk_kunit)]
mod tests;

use kernel::sync::{
    Arc,
    SpinLockIrqGuard, //
};

use super::{
    local,
    send::SendQueue,
    state::Admission,
    QueuePair, //
};
use crate::{
    engine::work::{
        Flags,
        Sge,
        Work, //
    },
    sys::softirq::BhDisabled, //
};

/// Why a request was not taken. It leaves no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostError {
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

/// The send queue of a queue pair, while requests are put in.
///
/// Interrupts are off as long as this exists: a long chain is posted in parts. It is ended by
/// [`Posting::ring`], or by [`Posting::leave`] where what was posted is to wait.
#[must_use = "what is posted has to be started"]
pub(crate) struct Posting<'a> {
    qp: &'a Arc<QueuePair>,
    sq: SpinLockIrqGuard<'a, SendQueue>,
    /// What is notified from here is notified when this section ends, and not by another thread.
    softirqs_off: Option<BhDisabled>,
    /// A queue pair that fails meanwhile cancels what is put in: it needs the lock for that.
    admission: Admission,
    /// A completion queue did not take an entry.
    lost: bool,
}

impl Posting<'_> {
    /// Queues an initiator request, or carries it out. Any context.
    ///
    /// A refusal releases what was deferred before.
    #[inline]
    pub(crate) fn post(
        &mut self,
        context: u64,
        work: Work,
        flags: Flags,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
    ) -> Result<(), PostError> {
        if self.admission == Admission::Refuse {
            return Err(PostError::State);
        }
        let device = self.qp.device();
        let posted = match self.sq.admit(&work, flags, sges.clone()) {
            Ok(_) if work.is_local() && self.is_done_at_once(context, &work, flags) => Ok(()),
            Ok(length) => self.sq.push(device, (context, work, flags, length), sges),
            Err(refused) => Err(refused),
        };
        if posted.is_err() {
            // What was held back for this one goes its way (DEFR-04).
            self.sq.release();
        }
        posted
    }

    /// What was deferred is held back no more, as after a refusal.
    pub(crate) fn release(&mut self) {
        self.sq.release();
    }

    /// Carries a local request out, if that can be done now and with success.
    fn is_done_at_once(&mut self, context: u64, work: &Work, flags: Flags) -> bool {
        let now = self.admission == Admission::Queue
            && !flags.has(Flags::DEFERRED)
            && self.sq.is_idle()
            && local::execute_at_once(self.qp, work);
        if now {
            let notified = (context, work.operation(), flags);
            let params = &self.qp.params;
            self.lost |= self.sq.report(notified, params.cookie, &params.send_cq);
        }
        now
    }

    /// Ends the posting, and tells the transport if there is something to start.
    #[inline]
    pub(crate) fn ring_doorbell(self) {
        let doorbell = self.sq.doorbell();
        let _softirqs_off = self.end();
        if let Some((transport, end)) = doorbell {
            transport.doorbell(end);
        }
    }

    /// Ends the posting; what was posted waits for the next [`QueuePair::ring`].
    #[inline]
    pub(crate) fn leave(self) {
        self.end();
    }

    #[inline]
    fn end(self) -> Option<BhDisabled> {
        let Self {
            qp,
            sq,
            softirqs_off,
            admission,
            lost,
        } = self;
        drop(sq);
        if lost {
            qp.break_down();
        }
        if admission == Admission::Flush {
            qp.settle();
        }
        softirqs_off
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
            lost: false,
        }
    }

    /// Posts one request; [`QueuePair::ring`] starts it. Any context.
    ///
    /// A refusal releases what was deferred before: then, too, the caller rings.
    #[cfg(ndk_kunit)]
    pub(crate) fn post(
        self: &Arc<Self>,
        context: u64,
        work: Work,
        flags: Flags,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
    ) -> Result<(), PostError> {
        let mut posting = self.posting();
        let posted = posting.post(context, work, flags, sges);
        posting.leave();
        posted
    }

    /// Tells the transport, if there is something to start. Any context.
    #[inline]
    pub(crate) fn ring_doorbell(&self) {
        let doorbell = self.sq.lock().doorbell();
        if let Some((transport, end)) = doorbell {
            transport.doorbell(end);
        }
    }
}
