// SPDX-License-Identifier: GPL-2.0

//! The `direct` transport: two queue pairs of one host, and a copy under guards.
//!
//! No packet, no socket, no allocation per message. Each direction of a connection is a
//! [`flow::Flow`], which takes the requests of one queue pair in order and carries them out on the
//! memory and the receives of the other. One CPU at a time runs a flow: in the post that found it
//! idle, and then, for many requests, in a softirq work item, or in a thread for many bytes and for
//! the requests of a program. The two flows of a connection share no lock, so neither direction can
//! block the other.

mod flow;
mod inject;
mod injected;
mod invalidate;
mod steps;
#[cfg(ndk_kunit)]
mod tests;

use crate::engine::{
    prelude::*,
    qp::QueuePair,
    transport::{
        ConnectionId,
        Peer,
        Transport, //
    }, //
};
use flow::Flow;

/// The two directions of a connection. End 0 is the first queue pair, end 1 the second.
struct Direct {
    id: ConnectionId,
    flows: [Arc<Flow>; 2],
}

impl Direct {
    /// The flow that carries the requests of the queue pair at `end`.
    fn flow(&self, end: usize) -> &Arc<Flow> {
        // PANIC: `end & 1` is 0 or 1.
        &self.flows[end & 1]
    }
}

impl Transport for Direct {
    fn id(&self) -> ConnectionId {
        self.id
    }

    fn doorbell(&self, end: usize) {
        self.flow(end).kick_here();
    }

    fn receive_posted(&self, end: usize) {
        self.flow(end ^ 1).kick();
    }

    fn peer(&self, end: usize) -> Option<Peer> {
        let (own, other) = (self.flow(end), self.flow(end ^ 1));
        Some(Peer {
            number: own.to.params.number,
            is_of_program: other.is_of_program(),
            own_wait_since_ms: own.waits_since_ms(),
            peer_wait_since_ms: other.waits_since_ms(),
        })
    }

    fn stop(&self, end: usize) {
        // The queue pair at this end has lost this connection: both flows notice.
        for flow in &self.flows {
            flow.kick();
        }
        self.flow(end ^ 1).from.peer_gone(self.id);
    }
}

/// Makes the transport between two queue pairs of this host; end 0 is `a`. May sleep.
pub(crate) fn connect(a: &Arc<QueuePair>, b: &Arc<QueuePair>) -> Result<Arc<dyn Transport>> {
    let id = a.device().host.next_connection();
    let direct = Direct {
        id,
        flows: [
            Flow::new(id, a.clone(), b.clone())?,
            Flow::new(id, b.clone(), a.clone())?,
        ],
    };
    Ok(Arc::new(direct, GFP_KERNEL)?)
}
