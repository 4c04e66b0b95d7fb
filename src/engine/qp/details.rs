// SPDX-License-Identifier: GPL-2.0

//! [`QpDetails`]: what a queue pair is doing, for whoever looks why it hangs.
//!
//! Context: any. Each part is true by itself, at some moment of the call.

#[cfg(ndk_kunit)]
mod tests;

use super::QueuePair;
use crate::{
    engine::transport::Peer,
    rdma::values::qp::QpState, //
};

/// What a queue pair is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpDetails {
    pub(crate) state: QpState,
    /// Requests that were posted and not started.
    pub(crate) sends_posted: u32,
    /// Requests that were started and not completed.
    pub(crate) sends_outstanding: u32,
    /// Receives of its own that no message has taken.
    pub(crate) receives_posted: u32,
    /// The other end, while there is a connection.
    pub(crate) peer: Option<Peer>,
}

impl QueuePair {
    /// What it is doing now.
    pub(crate) fn details(&self) -> QpDetails {
        let (sends_posted, sends_outstanding) = self.sq.lock().in_use();
        let receives_posted = self.rq.lock().posted();
        let link = self.link.lock().clone();
        QpDetails {
            state: self.state(),
            sends_posted,
            sends_outstanding,
            receives_posted,
            peer: link.and_then(|link| link.transport.peer(link.end)),
        }
    }
}
