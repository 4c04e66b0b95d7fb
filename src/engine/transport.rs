// SPDX-License-Identifier: GPL-2.0

//! The interfaces of a connected queue pair: [`Transport`] below, [`LinkOwner`] above.
//!
//! Tests: `direct/tests/message.rs`.

use core::num::NonZero;

use kernel::sync::Arc;

/// A connection number, different from all others, also from a later one of the same queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(NonZero<u64>);

impl ConnectionId {
    /// The connection with that number, which no other connection has had.
    pub(crate) const fn new(number: NonZero<u64>) -> Self {
        Self(number)
    }

    /// The number of the connection.
    pub(super) const fn number(self) -> u64 {
        self.0.get()
    }
}

/// Carries the requests of a connected queue pair to its peer.
///
/// A transport has two ends; a queue pair knows its transport and its own end. The transport may be
/// late: its queue pairs may have other connections by now. So it names its connection, and
/// requests and receives of another connection are refused, under the lock that guards them. The
/// transport takes requests with `QueuePair::start`, completes each of them exactly once with
/// `QueuePair::complete` (or `complete_and_start`, which does both without a check of the peer in
/// between), and at the receiving side uses `take_receive` and `finish_receive`.
pub(crate) trait Transport: Send + Sync {
    /// The connection that the transport carries; never changes.
    fn id(&self) -> ConnectionId;

    /// Notifies the transport of requests to start at this end. Any context, interrupts off
    /// included; the call must be short: long work goes on from softirq, or in a thread.
    fn doorbell(&self, end: usize);

    /// Notifies the transport of a receive posted at this end, after a message had found none.
    /// Any context, under locks of the queue pair: the transport acts later, from softirq.
    fn receive_posted(&self, end: usize);

    /// The other end, as seen from this end.
    fn peer(&self, _end: usize) -> Option<Peer> {
        None
    }

    /// Notifies the transport that the queue pair at this end is disconnected: every started
    /// request ends soon, and the other end learns that the connection is gone. Any context; called
    /// once at most for each end.
    fn stop(&self, end: usize);

    /// Notifies the transport that a graceful close has begun at `end`: no request there may wait
    /// without end. Any context.
    fn closing(&self, _end: usize) {}
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The number of the queue pair there.
    pub(crate) number: u32,
    /// True if the queue pair there is a program's.
    pub(crate) is_of_program: bool,
    /// The time since which a message of this end has waited for a receive there, in milliseconds
    /// of monotonic time.
    pub(crate) own_wait_since_ms: Option<u64>,
    /// The time since which a message from there has waited for a receive of this end.
    pub(crate) peer_wait_since_ms: Option<u64>,
}

/// The owner of a connection, which has set it up and is notified, once, that it is gone.
pub(crate) trait LinkOwner: Send + Sync {
    /// Notifies the owner that the queue pair is disconnected, for any cause; `by_peer` says from
    /// which side. Any context; a transport's lock may be held, so the owner notifies its consumer
    /// later.
    fn disconnected(self: Arc<Self>, by_peer: bool);
}

/// A queue pair's connection.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) end: usize,
    pub(crate) owner: Arc<dyn LinkOwner>,
}

impl Link {
    /// Returns true if this is that connection.
    pub(crate) fn is(&self, connection: ConnectionId) -> bool {
        self.transport.id() == connection
    }
}

/// The read limits that the two sides agreed on when they connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadLimits {
    /// Reads of the peer that this side serves at once.
    pub(crate) inbound: u32,
    /// Reads that this side has outstanding at once; 0 forbids them.
    pub(crate) outbound: u32,
}
