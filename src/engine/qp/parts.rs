// SPDX-License-Identifier: GPL-2.0

//! What goes into a queue pair and what comes out of it: sizes, refusals, jobs, arrivals.
//!
//! Tests: `engine/qp/tests.rs`.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::engine::{
    cq::CompletionQueue,
    domain::Domain,
    srq::SharedReceive,
    status::Status,
    work::{
        Extra,
        Flags,
        Operation,
        Sge,
        Work, //
    }, //
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

/// The sizes that a queue pair is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    pub(crate) send_sges: u32,
    pub(crate) receive_sges: u32,
    /// The most elements of a read or an atomic.
    pub(crate) read_sges: u32,
    /// Bytes.
    pub(crate) inline: u32,
}

/// What a face is notified. Called in softirq, one call at a time, under no lock.
pub(crate) trait QpEvents: Send + Sync {
    /// The queue pair takes no more receives from its shared queue.
    fn last_receive_reached(&self);
    /// A completion queue of the queue pair broke, and the queue pair with it.
    fn broken(&self);
}

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

    pub(super) fn load(&mut self, sges: Option<&[Sge]>, inline: Option<&[u8]>, count: usize) {
        self.sges.clear();
        self.inline.clear();
        for sge in sges.unwrap_or_default().iter().take(count) {
            // The room was made for the most elements of this queue.
            let _ = self.sges.push_within_capacity(*sge);
        }
        for byte in inline.unwrap_or_default().iter().take(count) {
            // The room was made for the most bytes of this queue.
            let _ = self.inline.push_within_capacity(*byte);
        }
    }
}

/// What a message did to the receive that it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvCompletion {
    pub(crate) status: Status,
    pub(crate) operation: Operation,
    pub(crate) length: u32,
    pub(crate) extra: Extra,
    pub(crate) solicited: bool,
}

/// What belongs to a new queue pair.
pub(crate) struct QpParams {
    pub(crate) domain: Arc<Domain>,
    pub(crate) send_cq: Arc<CompletionQueue>,
    pub(crate) receive_cq: Arc<CompletionQueue>,
    pub(crate) shared: Option<Arc<SharedReceive>>,
    pub(crate) events: KBox<dyn QpEvents>,
    pub(crate) cookie: usize,
    /// Whether what is posted stays when the peer goes, until it is cancelled from this side.
    pub(crate) outlives_peer: bool,
    /// The number that names the queue pair on this host, among all of its devices.
    pub(crate) number: u32,
}
