// SPDX-License-Identifier: GPL-2.0

//! [`QpDetails`]: the activity of a queue pair, to find out why it hangs.
//!
//! Context: any. Each part is true by itself, at some moment of the call.

#[cfg(ndk_kunit)]
mod tests;

use super::QueuePair;
use crate::{
    engine::transport::Peer,
    rdma::values::qp::QpState, //
};

/// The activity of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpDetails {
    pub(crate) state: QpState,
    /// Requests that were posted and not started.
    pub(crate) sends_posted: u32,
    /// Requests that were started and not completed.
    pub(crate) sends_outstanding: u32,
    /// The queue pair's own receives that no message has taken.
    pub(crate) receives_posted: u32,
    /// The other end, while there is a connection.
    pub(crate) peer: Option<Peer>,
}

impl QueuePair {
    /// The present activity of the queue pair.
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
