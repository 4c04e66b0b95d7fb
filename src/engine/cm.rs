// SPDX-License-Identifier: GPL-2.0

//! The connection manager of one host: listeners, connect requests, and the connection of two queue
//! pairs.
//!
//! ```text
//! active                          passive
//! connect ---------------------->  request          (or Refused, Unreachable at once)
//!                                  accept / reject
//! reply(Ok)  <- both attached ->   established
//! closed     <- either side, once each ->  closed
//! ```
//!
//! If both sides want it (NDKPI), the active side confirms an accept before the queue pairs are
//! attached. Only NDKPI reserves addresses: `address.rs`.
//!
//! A [`ConnectRequest`] is decided once: accepted, rejected, abandoned by the active side or timed
//! out. Each side's `Endpoint` reports `closed` once, and only after the connection was reported
//! up.
//!
//! For an address that no listener of this host serves, and that is not of this host, the
//! [`Carrier`] is asked: `carrier.rs`. Without a carrier, [`ConnectionManager::submit`] chooses the
//! error for the user.
//!
//! Context: process, but for
//! [`LinkOwner::disconnected`](super::transport::LinkOwner::disconnected), softirq work and the
//! timers. Lock order: `listeners`, then `open`; the state of a request, its offers, its dial, the
//! requests that wait at a listener, its remote listener and the state of a side are leaves.
//! Listeners are notified of requests under `listeners`; all other events come under none of these
//! locks.

mod active;
mod address;
mod carrier;
mod endpoint;
mod inject;
mod listen;
mod listener;
mod listeners;
mod offer;
mod request;
#[cfg(ndk_kunit)]
mod tests;
mod waiting;

use core::{
    net::SocketAddr,
    num::NonZeroUsize, //
};

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

pub(crate) use self::{
    active::Initiator,
    address::{
        AddressError,
        Reservation,
        Route, //
    },
    carrier::{
        Carrier,
        Dial,
        RemoteAnswer,
        RemoteInitiator,
        RemoteListener,
        TransportEnd, //
    },
    listener::{
        Listener,
        ListenerEvents, //
    },
    request::{
        negotiate,
        ConnectError,
        ConnectRequest,
        ConnectionGone, //
    }, //
};
use self::{
    address::AddressTable,
    listeners::Listeners, //
};
use super::{
    inject::SiteKind,
    prelude::*,
    qp::QueuePair,
    transport::{
        ReadLimits,
        Transport, //
    }, //
};

/// Makes the transport between two queue pairs of this host. May sleep.
pub(crate) type ConnectFn = fn(&Arc<QueuePair>, &Arc<QueuePair>) -> Result<Arc<dyn Transport>>;

/// The time limits of a request, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the passive side's answer.
    pub(crate) answer_ms: u32,
    /// For that answer after the end of its listener.
    pub(crate) orphan_ms: u32,
    /// For the active side's confirmation.
    pub(crate) confirm_ms: u32,
}

impl Timeouts {
    /// The values outside of tests.
    pub(crate) const DEFAULT: Self = Self {
        answer_ms: 60_000,
        orphan_ms: 3_000,
        confirm_ms: 60_000,
    };
}

/// The events of a connected or connecting side. Any context; the face only passes them on.
pub(crate) trait ConnectionEvents: Send + Sync {
    /// Reports the answer to the active side. Called once for each connect that was taken, and
    /// again only after an error.
    ///
    /// An error if the answer could not be delivered. A failure without private data needs no
    /// memory, and is always delivered. With [`ConnectParams::wants_confirmation`], and a passive
    /// side that waits for the confirmation, a success is only the passive side's consent.
    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result;
    /// Reports to the passive side that the accepted connection is up.
    fn established(&self, limits: ReadLimits);
    /// Replaces `established` for a passive side that waits for the confirmation: the connection
    /// does not come up. `Timeout` if the active side did not confirm in time, else `Aborted`.
    fn not_established(&self, _status: Status) {}
    /// Returns true if this side, as the passive one, waits for the active side's confirmation
    /// before it is connected. After such an accept exactly one of `established` and
    /// `not_established` follows.
    fn waits_for_confirmation(&self) -> bool {
        false
    }
    /// Reports that the connection is gone, by the peer or by this side. Called once after the
    /// connection was up, and again only after an error: the report could not be delivered.
    fn closed(&self, by_peer: bool) -> Result;
}

/// The connection manager: listeners, reserved addresses and undecided requests.
#[pin_data]
pub(crate) struct ConnectionManager {
    connect_fn: ConnectFn,
    /// The way to other hosts; `None` connects this host alone.
    carrier: Option<Arc<dyn Carrier>>,
    timeouts: Timeouts,
    addresses: Arc<AddressTable>,
    #[pin]
    listeners: Mutex<Listeners>,
    /// Undecided requests; their numbers rise and are not reused.
    #[pin]
    open: SpinLockIrq<OpenRequests>,
}

struct OpenRequests {
    requests: RBTree<NonZeroUsize, Arc<ConnectRequest>>,
    next: NonZeroUsize,
}

/// The count of numbers that a request takes: its own, and one for each time that a listener is
/// notified.
const NUMBERS_PER_REQUEST: NonZeroUsize = NonZeroUsize::MIN.saturating_add(0xFFFF);

/// The parameters of a connect.
pub(crate) struct ConnectParams {
    pub(crate) net: u64,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// True if the remote address is one of this host, in this namespace.
    pub(crate) remote_is_here: bool,
    pub(crate) limits: ReadLimits,
    pub(crate) private_data: KVec<u8>,
    /// True if the active side wants the last word, by [`ConnectRequest::confirm`].
    pub(crate) wants_confirmation: bool,
    /// True if a request is offered again to a listener that has no room, until the time for the
    /// answer is over; if false, the request is refused.
    pub(crate) retries_when_full: bool,
}

impl ConnectionManager {
    /// A connection manager without listeners. Without a carrier it connects this host alone. May
    /// sleep. `ENOMEM` when there is no memory.
    pub(crate) fn new(
        connect_fn: ConnectFn,
        carrier: Option<Arc<dyn Carrier>>,
        timeouts: Timeouts,
    ) -> Result<Arc<Self>> {
        let addresses = AddressTable::new()?;
        Arc::pin_init(
            pin_init!(Self {
                connect_fn,
                carrier,
                timeouts,
                addresses,
                listeners <- new_mutex!(Listeners::new()),
                open <- new_spinlock_irq!(OpenRequests {
                    requests: RBTree::new(),
                    next: NUMBERS_PER_REQUEST,
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// The undecided request with that number or the next higher one.
    fn first_open(&self, from: NonZeroUsize) -> Option<Arc<ConnectRequest>> {
        let open = self.open.lock();
        let found = open.requests.cursor_lower_bound(&from)?;
        Some(found.current().1.clone())
    }

    /// Makes a request for [`ConnectionManager::submit`]. The request is found by its number until
    /// it is decided. May sleep. `ENOMEM` when there is no memory.
    ///
    /// A request holds the events of both sides: a side drops a request that it no longer needs.
    pub(crate) fn make_request(
        self: &Arc<Self>,
        initiator: Initiator,
        params: ConnectParams,
    ) -> Result<Arc<ConnectRequest>> {
        if let Initiator::Local { qp, .. } = &initiator {
            qp.device().may_make(SiteKind::Connection)?;
        }
        let request = ConnectRequest::new(initiator, params, self.clone(), self.next_number())?;
        let node = RBTreeNode::new(request.number, request.clone(), GFP_KERNEL)?;
        // The number is new.
        let _ = self.open.lock().requests.insert(node);
        Ok(request)
    }

    /// Returns the first of [`NUMBERS_PER_REQUEST`] numbers that were not used before.
    fn next_number(&self) -> NonZeroUsize {
        let mut open = self.open.lock();
        let number = open.next;
        // OVERFLOW: 2^48 connects and listeners.
        open.next = number.saturating_add(NUMBERS_PER_REQUEST.get());
        number
    }

    /// The request with that number, if undecided. Any context.
    pub(crate) fn request(&self, number: NonZeroUsize) -> Option<Arc<ConnectRequest>> {
        self.open.lock().requests.get(&number).cloned()
    }

    /// The request with that [`ConnectRequest::listener_number`], if undecided. Any context.
    pub(crate) fn request_at_listener(&self, number: NonZeroUsize) -> Option<Arc<ConnectRequest>> {
        let first = NonZeroUsize::new(number.get() & !(NUMBERS_PER_REQUEST.get() - 1))?;
        let request = self.request(first)?;
        (request.listener_number() == Some(number)).then_some(request)
    }

    /// Removes a request that was decided.
    fn remove_request(&self, number: NonZeroUsize) {
        let gone = self.open.lock().requests.remove_node(&number);
        drop(gone);
    }
}
