// SPDX-License-Identifier: GPL-2.0

//! What is next to a connected queue pair: [`Transport`] below, [`LinkOwner`] above.
//!
//! Tests: `direct/tests/message.rs`.

use core::num::NonZero;

use kernel::sync::Arc;

/// Distinguishes a connection from all others, also from a later one of the same queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(NonZero<u64>);

impl ConnectionId {
    /// The connection with that number, which no other has had.
    pub(crate) const fn new(number: NonZero<u64>) -> Self {
        Self(number)
    }

    /// Its number.
    pub(super) const fn number(self) -> u64 {
        self.0.get()
    }
}

/// What carries the requests of a connected queue pair to its peer.
///
/// A transport has two ends; a queue pair knows its transport and which end it is. The transport
/// may be late: its queue pairs may have other connections by now. So it says which connection it
/// acts for, and what is of another one is refused under the lock that guards it. The transport
/// takes requests with `QueuePair::start`, completes each of them exactly once with
/// `QueuePair::complete` (or `complete_and_start`, which does both without looking whether the peer
/// is still there), and at the receiving side uses `take_receive` and `finish_receive`.
pub(crate) trait Transport: Send + Sync {
    /// The connection that it carries; always the same one.
    fn id(&self) -> ConnectionId;

    /// There are requests to start at this end. Any context, interrupts off included; the call
    /// must not take long: what does not fit goes on from softirq, or in a thread.
    fn doorbell(&self, end: usize);

    /// A receive was posted at this end after a message had found none. Any context, under locks
    /// of the queue pair: whatever there is to do is done later, from softirq.
    fn receive_posted(&self, end: usize);

    /// The other end, as it is seen from this one.
    fn peer(&self, _end: usize) -> Option<Peer> {
        None
    }

    /// The queue pair at this end is in error: every request that was started ends soon, and the
    /// other end learns that the connection is gone. Any context; called once at most.
    fn stop(&self, end: usize);
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The number of its queue pair.
    pub(crate) number: u32,
    /// True if it is a program's.
    pub(crate) is_of_program: bool,
    /// Since when a message of this end has waited for a receive there, in milliseconds of
    /// monotonic time.
    pub(crate) awaited_since_ms: Option<u64>,
    /// Since when a message from there has waited for a receive of this end.
    pub(crate) awaits_since_ms: Option<u64>,
}

/// Who set the connection up and is notified, once, that it is gone.
pub(crate) trait LinkOwner: Send + Sync {
    /// The queue pair is disconnected, for whatever cause; `by_peer` says from which side. Any
    /// context; a transport's lock may be held, so the owner notifies its consumer later.
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

/// What the two sides agreed on when they connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadLimits {
    /// Reads of the peer that this side serves at once.
    pub(crate) inbound: u32,
    /// Reads that this side has outstanding at once; 0 forbids them.
    pub(crate) outbound: u32,
}
