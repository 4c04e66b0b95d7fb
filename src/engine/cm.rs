// SPDX-License-Identifier: GPL-2.0

//! Connections on one host: who listens where, and how two queue pairs find each other.
//!
//! ```text
//! active                          passive
//! connect ---------------------->  request          (or Refused, Unreachable at once)
//!                                  accept / reject
//! reply(Ok)  <- both attached ->   established
//! closed     <- either side, once each ->  closed
//! ```
//!
//! Where both sides want it (NDKPI), the active side confirms what was accepted before they are
//! attached. Only NDKPI reserves addresses: `address.rs`.
//!
//! A [`ConnectRequest`] is decided once: accepted, rejected, abandoned by the active side or timed
//! out. Each side's `Endpoint` sees to it that `closed` comes once, and only after the connection
//! was reported up.
//!
//! For an address that no listener of this host serves, [`ConnectionManager::submit`] says which
//! error the user is owed. A transport for the wire will be asked at that point.
//!
//! Context: process, but for [`LinkOwner::disconnected`] and the timer. Lock order: `listeners`,
//! then `open`; the state of a request, the listener that it is with, the requests that wait at one
//! and the state of a side are leaves.
//! Listeners are notified under `listeners`, all other events under none of them.

mod address;
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

use self::{
    address::AddressTable,
    listeners::Listeners, //
};
pub(crate) use self::{
    address::{
        AddressError,
        Reservation,
        Route, //
    },
    listener::{
        Listener,
        ListenerEvents, //
    },
    request::{
        ConnectError,
        ConnectRequest,
        ConnectionGone, //
    }, //
};
use super::{
    inject::What,
    prelude::*,
    qp::QueuePair,
    transport::{
        ReadLimits,
        Transport, //
    }, //
};

/// Makes the transport between two queue pairs of this host. May sleep.
pub(crate) type ConnectFn = fn(&Arc<QueuePair>, &Arc<QueuePair>) -> Result<Arc<dyn Transport>>;

/// How long a request may wait, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the passive side's answer.
    pub(crate) answer_ms: u32,
    /// For that answer when its listener is gone.
    pub(crate) orphan_ms: u32,
    /// For the active side's confirmation.
    pub(crate) confirm_ms: u32,
}

impl Timeouts {
    /// For real life.
    pub(crate) const DEFAULT: Self = Self {
        answer_ms: 60_000,
        orphan_ms: 3_000,
        confirm_ms: 60_000,
    };
}

/// What a connected or connecting side is notified of. Any context; the face only passes it on.
pub(crate) trait ConnectionEvents: Send + Sync {
    /// To the active side: the answer. Called exactly once for each connect that was taken.
    ///
    /// An error when the answer could not be delivered. An answer that is a failure and carries no
    /// data needs no memory, and is delivered always. Where [`ConnectParams::confirms`] and the
    /// passive side waits for it, a success is only the passive side's consent.
    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result;
    /// To the passive side: the connection that it accepted is up.
    fn established(&self, limits: ReadLimits);
    /// To a passive side that waits for the confirmation, in place of `established`: nothing comes
    /// of what it accepted. `Timeout` when the active side did not confirm in time, else `Aborted`.
    fn not_established(&self, _status: Status) {}
    /// Returns true if this side, if it is the passive one, waits for the active side's
    /// confirmation before it is connected. After such an accept exactly one of `established` and
    /// `not_established` follows.
    fn confirms(&self) -> bool {
        false
    }
    /// The connection is gone, by the peer or by this side. Called exactly once after it was up; an
    /// error when the event could not be delivered and has to be reported again.
    fn closed(&self, by_peer: bool) -> Result;
}

/// Where connections are made.
#[pin_data]
pub(crate) struct ConnectionManager {
    connect_fn: ConnectFn,
    timeouts: Timeouts,
    addresses: Arc<AddressTable>,
    #[pin]
    listeners: Mutex<Listeners>,
    /// Requests that nobody has decided on; numbers go up and are not used again.
    #[pin]
    open: SpinLockIrq<OpenRequests>,
}

struct OpenRequests {
    requests: RBTree<NonZeroUsize, Arc<ConnectRequest>>,
    next: NonZeroUsize,
}

/// Numbers that a request has to itself: its own, and one for each time that a listener is
/// notified.
const NUMBERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(0xFFFF);

/// What the active side asks for.
pub(crate) struct ConnectParams {
    pub(crate) net: u64,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// Whether the remote address is one of this host, in this namespace.
    pub(crate) remote_is_here: bool,
    pub(crate) qp: Arc<QueuePair>,
    pub(crate) limits: ReadLimits,
    pub(crate) private_data: KVec<u8>,
    pub(crate) events: Arc<dyn ConnectionEvents>,
    /// Whether the active side wants to have the last word, by [`ConnectRequest::confirm`].
    pub(crate) confirms: bool,
    /// True if a request is offered again to a listener that has no room, until the time for the
    /// answer is over; else that is a refusal.
    pub(crate) waits: bool,
}

impl ConnectionManager {
    /// A connection manager without listeners. May sleep. `ENOMEM` when there is no memory.
    pub(crate) fn new(connect_fn: ConnectFn, timeouts: Timeouts) -> Result<Arc<Self>> {
        let addresses = AddressTable::new()?;
        Arc::pin_init(
            pin_init!(Self {
                connect_fn,
                timeouts,
                addresses,
                listeners <- new_mutex!(Listeners::new()),
                open <- new_spinlock_irq!(OpenRequests {
                    requests: RBTree::new(),
                    next: NUMBERS,
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// The request with that number or the next higher one that nobody has decided on.
    fn first_open(&self, from: NonZeroUsize) -> Option<Arc<ConnectRequest>> {
        let open = self.open.lock();
        let found = open.requests.cursor_lower_bound(&from)?;
        Some(found.current().1.clone())
    }

    /// Makes a request, to be submitted, that can be found by its number until it is decided. May
    /// sleep. `ENOMEM` when there is no memory.
    ///
    /// A request keeps what both sides are notified through: a side that keeps the request lets go
    /// of it when it is of no more use.
    pub(crate) fn make_request(
        self: &Arc<Self>,
        params: ConnectParams,
    ) -> Result<Arc<ConnectRequest>> {
        params.qp.device().may_make(What::Connection)?;
        let request = ConnectRequest::new(params, self.clone(), self.next_number())?;
        let node = RBTreeNode::new(request.number, request.clone(), GFP_KERNEL)?;
        // Nothing has that number.
        let _ = self.open.lock().requests.insert(node);
        Ok(request)
    }

    /// A number that was not used before, as are the [`NUMBERS`] from there on.
    fn next_number(&self) -> NonZeroUsize {
        let mut open = self.open.lock();
        let number = open.next;
        // OVERFLOW: 2^48 connects.
        open.next = number.saturating_add(NUMBERS.get());
        number
    }

    /// The request with that number, if nobody has decided on it. Any context.
    pub(crate) fn request(&self, number: NonZeroUsize) -> Option<Arc<ConnectRequest>> {
        self.open.lock().requests.get(&number).cloned()
    }

    /// The request whose [`ConnectRequest::listener_number`] that is, if nobody has decided on it.
    /// Any context.
    pub(crate) fn request_at_listener(&self, number: NonZeroUsize) -> Option<Arc<ConnectRequest>> {
        let first = NonZeroUsize::new(number.get() & !(NUMBERS.get() - 1))?;
        let request = self.request(first)?;
        (request.listener_number() == Some(number)).then_some(request)
    }

    /// Removes a request that was decided.
    fn remove_request(&self, number: NonZeroUsize) {
        let gone = self.open.lock().requests.remove_node(&number);
        drop(gone);
    }
}
