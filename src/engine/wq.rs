// SPDX-License-Identifier: GPL-2.0

//! Parts of work queues: [`PostError`], the refusals of a post; [`ReceiveRing`], the posted
//! receives of a queue pair or of a shared receive queue; [`SendWqe`] and [`RecvWqe`], a request on
//! its way through a transport.
//!
//! Context: any, under the lock of the queue, but for making.
//!
//! Tests: `engine/qp/tests.rs`.

use kernel::alloc::Flags as Gfp;

use super::{
    memory::transfer::Payload,
    prelude::*,
    qp::QueuePair, //
};
use crate::{
    rdma::values::{
        qp::QpCaps,
        work::{
            SendFlag,
            SendFlags,
            SendOp,
            SendWith, //
        }, //
    },
    sys::{
        name::Name,
        requests::{
            ReceiveList,
            RequestQueue,
            SendList, //
        },
        sge::{
            Elements,
            Posted, //
        }, //
    }, //
};

/// The cause of a refused post, which leaves no trace.
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

    /// Appends a receive with no more elements than the ring was made for.
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

/// A request that was started, with room for its elements.
pub(crate) struct SendWqe {
    pub(crate) seq: u32,
    pub(crate) work: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) length: u32,
    /// A read over a connection that allows none: to be completed as a local error.
    pub(crate) forbidden: bool,
    pub(crate) sges: SendList,
    pub(crate) inline: KVec<u8>,
}

impl SendWqe {
    /// Room for any request of a queue pair with these sizes. May sleep.
    pub(crate) fn new(caps: &QpCaps) -> Result<Self> {
        Ok(Self {
            seq: 0,
            work: SendOp::Send {
                with: SendWith::Nothing,
            },
            flags: SendFlags::empty(),
            length: 0,
            forbidden: false,
            sges: SendList::new(caps.send_sge.max(caps.read_sge))?,
            // CAST: widening.
            inline: KVec::with_capacity(caps.inline_data as usize, GFP_KERNEL)?,
        })
    }

    /// The gather or scatter list of a request of `qp`, or its inline bytes.
    #[inline]
    pub(crate) fn payload<'a>(&'a self, qp: &'a QueuePair) -> Payload<'a> {
        if self.flags.contains(SendFlag::Inline) {
            return Payload::Inline(&self.inline);
        }
        let wanted = match self.work.is_outbound() {
            true => AccessFlags::empty(),
            false => AccessFlag::LocalWrite.into(),
        };
        Payload::List(qp.local_usage(wanted), &self.sges)
    }

    /// The request without its elements.
    pub(super) const fn sent(&self) -> Sent {
        Sent {
            seq: self.seq,
            length: self.length,
        }
    }

    /// Copies the inline bytes of the request.
    pub(super) fn load_inline(&mut self, inline: &[u8]) {
        self.inline.clear();
        for byte in inline {
            // The room was made for the most bytes of this queue.
            let _ = self.inline.push_within_capacity(*byte);
        }
    }
}

/// A started request whose elements were given back: the bytes that it sends are elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(super) seq: u32,
    /// The length of the request in bytes.
    pub(crate) length: u32,
}

impl Sent {
    /// Fills places that are not used.
    pub(crate) const BLANK: Self = Self { seq: 0, length: 0 };
}
