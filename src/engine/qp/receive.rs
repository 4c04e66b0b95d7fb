// SPDX-License-Identifier: GPL-2.0

//! Receives: [`ReceiveRing`], the posted ones, and [`ReceiveQueue`], those of one queue pair.
//!
//! A message takes one receive, fills it, and finishes it; only then may the next one be taken.
//! So the receives of a queue pair complete in order, and a flush that comes while one is taken
//! waits until that one is finished: nothing is completed before an older receive, and no byte
//! arrives in a receive that was completed.
//!
//! This is the data under the lock of the receive queue, or of the shared one.
//!
//! Tests: `engine/qp/tests.rs`.

use kernel::alloc::Flags as Gfp;

use crate::{
    engine::{
        cq::Failed,
        looking::ProgramReceives,
        prelude::*, //
    },
    rdma::values::completion::Wc,
    sys::{
        name::Name,
        requests::{
            Context,
            ReceiveList,
            RequestQueue, //
        },
        sge::{
            Elements,
            Posted, //
        }, //
    }, //
};

use super::{
    PostError,
    QpParams, //
};

/// A receive that a message has taken.
pub(crate) struct RecvWqe {
    pub(crate) sges: ReceiveList,
}

impl RecvWqe {
    /// Room for a receive of up to `sges` elements. May sleep.
    pub(crate) fn new(sges: u32) -> Result<Self> {
        Ok(Self {
            sges: ReceiveList::new(sges)?,
        })
    }
}

/// Posted receives with their scatter lists.
pub(crate) type ReceiveRing = RequestQueue<()>;

impl ReceiveRing {
    /// A ring for `depth` receives of up to `max_sge` elements. May sleep.
    pub(crate) fn of_receives(depth: u32, max_sge: u32, gfp: Gfp) -> Result<Self> {
        Self::new(depth, max_sge, (), gfp)
    }

    /// Appends a receive of not more than the elements that it was made for.
    pub(crate) fn post_receive(&mut self, posted: Posted<impl Elements>) -> Result<(), PostError> {
        if posted.sges().len() > self.width() {
            return Err(PostError::TooManySges);
        }
        match self.post(posted, ()) {
            true => Ok(()),
            false => Err(PostError::Full),
        }
    }

    /// Returns the arguments of the tracepoint `post_recv` for the newest receive.
    pub(crate) fn post_recv_args(&mut self, device: &RdmaDevice, qp: u32) -> (Name, u32, u64, u32) {
        let (wr_id, num_sge, ()) = self.newest().unwrap_or((0, 0, &()));
        (device.name(), qp, wr_id, num_sge)
    }
}

/// Whether a message gets a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is in the scratch place and must be finished.
    Ready,
    /// There is none; the transport is notified when one is posted.
    Empty,
    /// The queue pair takes no messages any more.
    Closed,
}

/// The present message, of which there is one at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// There is none that needs a receive.
    None,
    /// It found none and waits.
    Waiting,
    /// It has taken a receive and not finished it.
    Taken,
}

/// What becomes of receives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Messages take them.
    Open,
    /// They are cancelled.
    Flushing,
    /// They were, and the end of a shared queue's use was reported; what comes is cancelled, too.
    Ended,
}

/// The receive side of one queue pair.
pub(super) struct ReceiveQueue {
    /// Its own receives; without room when it shares a queue.
    pub(super) ring: ReceiveRing,
    /// More of them, which a program posts without a call.
    pub(super) shared: Option<KBox<ProgramReceives>>,
    pub(super) message: Message,
    pub(super) mode: Mode,
    /// The receive of a message that broke off; the first to be cancelled.
    pub(super) aborted: Option<Context>,
    /// Nothing is reported any more.
    pub(super) silent: bool,
}

impl ReceiveQueue {
    /// May sleep.
    pub(super) fn new(depth: u32, max_sge: u32, gfp: Gfp) -> Result<Self> {
        Ok(Self {
            ring: ReceiveRing::of_receives(depth, max_sge, gfp)?,
            shared: None,
            message: Message::None,
            mode: Mode::Open,
            aborted: None,
            silent: false,
        })
    }

    /// Takes back that a message waits; returns true if one did.
    pub(super) fn stop_waiting(&mut self) -> bool {
        let waited = self.message == Message::Waiting;
        if waited {
            self.message = Message::None;
        }
        waited
    }

    /// Reports the end of a receive, unless nothing is reported any more.
    #[inline]
    pub(super) fn push_cqe(&self, params: &QpParams, entry: &Wc) -> Result<(), Failed> {
        if self.silent {
            return Ok(());
        }
        params.receive_cq.report(params, entry)
    }
}
