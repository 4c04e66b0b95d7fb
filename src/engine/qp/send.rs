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

use crate::engine::{
    prelude::*,
    ring::Ring,
    trace,
    transport::Transport,
    work::{
        Completion,
        Extra,
        Flags,
        Operation,
        Sge,
        Work, //
    }, //
};

use super::{
    Caps,
    PostError,
    QpParams, //
};

/// How many requests one call completes or cancels.
pub(super) const BATCH: u32 = 64;

#[derive(Clone, Copy)]
enum Stage {
    Posted,
    Started,
    Done(Status),
}

#[derive(Clone, Copy)]
struct Entry {
    work: Work,
    context: u64,
    flags: Flags,
    /// Elements in use, or bytes when the request is inline.
    count: u32,
    length: u32,
    stage: Stage,
}

/// What becomes of requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are carried out.
    Open,
    /// Those before this one are carried out, and then the queue pair fails: a graceful close.
    Closing { stop_at: u32 },
    /// Those that were not started are cancelled.
    Flushing {
        /// A graceful close came to its end, with all carried out.
        graceful: bool,
    },
}

const BLANK: Entry = Entry {
    work: Work::Send {
        extra: Extra::Nothing,
    },
    context: 0,
    flags: Flags::NONE,
    count: 0,
    length: 0,
    stage: Stage::Posted,
};

/// A request that was started, with room for its elements.
pub(crate) struct SendWqe {
    pub(crate) seq: u32,
    pub(crate) work: Work,
    pub(crate) flags: Flags,
    pub(crate) length: u32,
    /// A read over a connection that allows none: to be completed as a local error.
    pub(crate) forbidden: bool,
    pub(crate) sges: KVec<Sge>,
    pub(crate) inline: KVec<u8>,
}

impl SendWqe {
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
            sges: KVec::with_capacity(caps.send_sges.max(caps.read_sges) as usize, GFP_KERNEL)?,
            inline: KVec::with_capacity(caps.inline as usize, GFP_KERNEL)?,
        })
    }

    fn load(&mut self, sges: &[Sge], inline: &[u8]) {
        self.sges.clear();
        self.inline.clear();
        for sge in sges {
            // The room was made for the most elements of this queue.
            let _ = self.sges.push_within_capacity(*sge);
        }
        for byte in inline {
            // The room was made for the most bytes of this queue.
            let _ = self.inline.push_within_capacity(*byte);
        }
    }
}

/// Whether there is something to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The WQE holds the next request, which now counts as started.
    Ready,
    /// Nothing may be started: the queue is empty, flushing, or waits for reads to be done.
    Nothing,
}

/// What [`SendQueue::retire`] did.
pub(super) struct Retired {
    /// There may be more to complete.
    pub(super) more: bool,
    /// The completion queue did not take an entry.
    pub(super) lost: bool,
    /// A graceful close has come to its end.
    pub(super) stopped: bool,
}

/// The requests of one send queue.
pub(super) struct SendQueue {
    ring: Ring<Entry>,
    /// `max_inline` bytes for each place of the ring.
    inline: KVVec<u8>,
    max_inline: usize,
    /// The first request that was not started.
    next: u32,
    /// The first request that is held back: it and those after it were posted deferred.
    ready: u32,
    reads: u32,
    pub(super) read_limit: u32,
    mode: Mode,
    /// Nothing is reported any more.
    pub(super) silent: bool,
    /// A request has failed: no close is graceful any more.
    failed: bool,
    /// The transport and the end of it, while there is a connection.
    doorbell: Option<(Arc<dyn Transport>, usize)>,
}

impl SendQueue {
    /// May sleep.
    pub(super) fn new(caps: &Caps, gfp: Gfp) -> Result<Self> {
        let width = caps.send_sges.max(caps.read_sges);
        let ring = Ring::with_sges(caps.sends, width, BLANK, gfp)?;
        // CAST: widening.
        let max_inline = caps.inline as usize;
        let inline = ring.places().checked_mul(max_inline).ok_or(EINVAL)?;
        Ok(Self {
            ring,
            inline: KVVec::from_elem(0, inline, gfp)?,
            max_inline,
            next: 0,
            ready: 0,
            reads: 0,
            read_limit: 0,
            mode: Mode::Open,
            silent: false,
            failed: false,
            doorbell: None,
        })
    }

    /// Gives back what the queue holds, to be dropped where that may sleep; it takes nothing more.
    pub(super) fn take_memory(&mut self) -> impl Sized {
        let ring = core::mem::replace(&mut self.ring, Ring::EMPTY);
        (ring, core::mem::replace(&mut self.inline, KVVec::new()))
    }

    /// Queues a request; the elements are used up during the call.
    #[inline]
    pub(super) fn push(
        &mut self,
        device: &RdmaDevice,
        (context, work, flags, length): super::post::Request,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), PostError> {
        let count = match flags.has(Flags::INLINE) {
            true => self.store_inline(sges),
            false => self.ring.store(sges),
        };
        let entry = Entry {
            work,
            context,
            flags,
            count,
            length,
            stage: Stage::Posted,
        };
        self.ring.push(entry).map_err(|_| PostError::Full)?;
        match flags.has(Flags::DEFERRED) {
            true => device.count(Counter::Deferred, 1),
            false => self.release(),
        }
        Ok(())
    }

    /// Takes the bytes up to the first element that cannot be read, and returns their number. A
    /// request that lacks bytes fails in its turn.
    fn store_inline(&mut self, sges: impl ExactSizeIterator<Item = Sge>) -> u32 {
        let from = self.ring.index(self.ring.tail()) * self.max_inline;
        let slots = self.inline.get_mut(from..from + self.max_inline);
        let slots = slots.unwrap_or_default();
        let mut at = 0;
        for sge in sges {
            let room = slots.get_mut(at..);
            match room.and_then(|room| sge.read_nofault(room)) {
                Some(taken) => at += taken,
                None => break,
            }
        }
        // CAST: not more than `max_inline`, which came from a u32.
        at as u32
    }

    /// Returns true if there is no room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.ring.is_full()
    }

    /// Returns true if a request that comes now would be the first to be carried out, and at once.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.ring.is_empty() && self.mode == Mode::Open
    }

    /// Reports a request that succeeded without a place in the queue; returns true if the
    /// completion queue did not take it.
    #[inline]
    pub(super) fn push_cqe(
        &self,
        (context, operation, flags): (u64, Operation, Flags),
        params: &QpParams,
    ) -> bool {
        if self.silent || !flags.has(Flags::SIGNALED) {
            return false;
        }
        let entry = Completion {
            context,
            qp: params.cookie,
            operation,
            ..Completion::BLANK
        };
        trace::complete(params, &params.send_cq, &entry);
        params.send_cq.push(&entry).is_err()
    }

    /// Whom to notify, if a request waits that may be started.
    #[inline]
    pub(super) fn doorbell(&self) -> Option<(Arc<dyn Transport>, usize)> {
        let waits = self.next != self.ready && !self.is_flushing();
        (self.doorbell.as_ref().filter(|_| waits)).map(|(transport, end)| (transport.clone(), *end))
    }

    /// Who is notified from now on of requests that wait; returns who was until now.
    pub(super) fn connect(
        &mut self,
        doorbell: Option<(Arc<dyn Transport>, usize)>,
    ) -> Option<(Arc<dyn Transport>, usize)> {
        core::mem::replace(&mut self.doorbell, doorbell)
    }

    /// Holds nothing back any more.
    pub(super) fn release(&mut self) {
        self.ready = self.ring.tail();
    }

    /// Takes the next request that may begin.
    pub(super) fn start(&mut self, wqe: &mut SendWqe) -> Next {
        let (next, reads, limit) = (self.next, self.reads, self.read_limit);
        let held = next == self.ready || !self.may_start(next);
        let Some(entry) = self.ring.get_mut(next) else {
            return Next::Nothing;
        };
        let is_read = entry.work.is_read();
        let fenced = entry.flags.has(Flags::READ_FENCE) && reads > 0;
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
        let (inline, count) = (entry.flags.has(Flags::INLINE), entry.count as usize);
        self.reads += u32::from(is_read);
        self.next = next.wrapping_add(1);
        match inline {
            true => {
                let from = self.ring.index(next) * self.max_inline;
                let bytes = self.inline.get(from..from + count);
                wqe.load(&[], bytes.unwrap_or_default());
            }
            false => {
                let sges = self.ring.sges(next).get(..count);
                wqe.load(sges.unwrap_or_default(), &[]);
            }
        }
        Next::Ready
    }

    /// What the consumer calls a request that is in the queue.
    pub(super) fn context(&mut self, seq: u32) -> u64 {
        self.ring.get_mut(seq).map_or(0, |entry| entry.context)
    }

    /// Notes that a started request is done.
    pub(super) fn done(&mut self, seq: u32, status: Status, length: u32) {
        let Some(entry) = self.ring.get_mut(seq) else {
            return;
        };
        if !matches!(entry.stage, Stage::Started) {
            return;
        }
        entry.stage = Stage::Done(status);
        entry.length = length;
        self.reads -= u32::from(entry.work.is_read());
    }

    /// Completes what is done at the front of the queue, as much as one hold of the lock allows.
    ///
    /// `drained` returns true if the peer touches nothing any more: only then is anything
    /// cancelled.
    #[inline]
    pub(super) fn retire(&mut self, drained: impl FnOnce() -> bool, params: &QpParams) -> Retired {
        let (device, cq): (&RdmaDevice, _) = (params.domain.device(), &params.send_cq);
        let flushing = self.is_flushing();
        let drained = flushing && drained();
        let mut lost = false;
        for _ in 0..BATCH {
            let entry = self.ring.front();
            let ended = entry.and_then(|entry| Some((entry.ended(flushing, drained)?, entry)));
            let Some((status, entry)) = ended else {
                return Retired {
                    more: false,
                    lost,
                    stopped: self.is_at_stop(),
                };
            };
            let failed = !status.is_success();
            if failed {
                // Before the consumer learns of it, and looks what the region is good for.
                entry.unstage(device);
            }
            if (failed || entry.flags.has(Flags::SIGNALED)) && !self.silent {
                let entry = entry.completion(params.cookie, status);
                trace::complete(params, cq, &entry);
                lost |= cq.push(&entry).is_err();
            }
            self.failed |= failed;
            if status == Status::Flushed {
                device.count(Counter::Flushes, 1);
            }
            self.ring.leave();
        }
        Retired {
            more: true,
            lost,
            stopped: false,
        }
    }

    /// From now on nothing is started, and what was not is flushed by [`SendQueue::retire`].
    pub(super) fn flush(&mut self) {
        if !self.is_flushing() {
            let graceful = self.is_at_stop() && !self.failed;
            self.mode = Mode::Flushing { graceful };
        }
    }

    /// Nothing that is posted from now on is carried out.
    pub(super) fn stop_here(&mut self) {
        if self.mode == Mode::Open {
            self.mode = Mode::Closing {
                stop_at: self.ready,
            };
        }
    }

    /// Returns true if all that a graceful close waits for is carried out.
    pub(super) fn is_at_stop(&self) -> bool {
        let stop_at = self.ring.head();
        self.mode == Mode::Closing { stop_at }
    }

    fn is_flushing(&self) -> bool {
        matches!(self.mode, Mode::Flushing { .. })
    }

    fn may_start(&self, next: u32) -> bool {
        match self.mode {
            Mode::Open => true,
            Mode::Closing { stop_at } => stop_at != next,
            Mode::Flushing { .. } => false,
        }
    }

    /// Returns true while a graceful close goes on.
    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.mode, Mode::Closing { .. })
    }

    /// Returns true if a graceful close came to its end, with all carried out.
    pub(super) fn has_stopped(&self) -> bool {
        self.mode == Mode::Flushing { graceful: true }
    }

    /// Ready for a new life after a reset: what is still there is dropped.
    pub(super) fn reset(&mut self, device: &RdmaDevice) {
        while let Some(entry) = self.ring.pop() {
            entry.unstage(device);
        }
        self.mode = Mode::Open;
        self.failed = false;
        self.next = self.ring.tail();
        self.ready = self.next;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// How many requests were posted and not started, and started and not completed.
    pub(super) fn in_use(&self) -> (u32, u32) {
        // What is flushed leaves without having been started.
        let (next, tail) = (self.next, self.ring.tail());
        let posted = tail.wrapping_sub(next).min(self.ring.len());
        (posted, self.ring.len() - posted)
    }
}

impl Entry {
    /// How the request ended, if it did, or if it is to be flushed.
    #[inline]
    fn ended(&self, flushing: bool, drained: bool) -> Option<Status> {
        match self.stage {
            // The peer went; the owner has not cancelled anything yet.
            Stage::Done(Status::Flushed) if !flushing => None,
            Stage::Done(status) => Some(status),
            Stage::Posted if drained => Some(Status::Flushed),
            Stage::Posted | Stage::Started => None,
        }
    }

    /// Gives back what a request that was not carried out keeps elsewhere.
    fn unstage(&self, device: &RdmaDevice) {
        match self.work {
            Work::Register {
                token,
                staged: Some(number),
                ..
            } => device.regions.unstage(token.index(), number),
            Work::Bind { window, .. } => device.regions.not_bound(window),
            _ => (),
        }
    }

    fn completion(&self, qp: usize, status: Status) -> Completion {
        Completion {
            context: self.context,
            qp,
            status,
            operation: self.work.operation(),
            length: self.length,
            ..Completion::BLANK
        }
    }
}
