// SPDX-License-Identifier: GPL-2.0

//! [`Waiting`]: the requests that a listener had no room for, in the order in which they were made.
//!
//! Only the first request is offered again: after a while, and at once when the request before it
//! has left. So the cost does not grow with the number of requests, and a later request does not
//! overtake.
//!
//! Context: any, but for [`Waiting::join`]. Lock order: the lock inside is a leaf.
//!
//! Tests: `engine/cm/offer/tests.rs`.

use core::num::NonZeroUsize;

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

use super::ConnectRequest;
use crate::engine::prelude::*;

type ByNumber = RBTree<NonZeroUsize, Arc<ConnectRequest>>;

/// Requests by their numbers, which go up.
#[pin_data]
pub(super) struct Waiting {
    #[pin]
    requests: SpinLockIrq<ByNumber>,
}

fn first(requests: &ByNumber) -> Option<&Arc<ConnectRequest>> {
    requests.values().next()
}

impl Waiting {
    /// No request waits.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            requests <- new_spinlock_irq!(RBTree::new()),
        })
    }

    /// Returns true if a request with a lower number waits.
    pub(super) fn has_before(&self, number: NonZeroUsize) -> bool {
        let requests = self.requests.lock();
        first(&requests).is_some_and(|first| first.number < number)
    }

    /// Adds the request, unless it waits already. Returns true if it is the first that waits. May
    /// sleep. `ENOMEM` when there is no memory.
    pub(super) fn join(&self, request: &Arc<ConnectRequest>) -> Result<bool> {
        if self.requests.lock().get(&request.number).is_none() {
            let node = RBTreeNode::new(request.number, request.clone(), GFP_KERNEL)?;
            let old = self.requests.lock().insert(node);
            drop(old);
        }
        Ok(!self.has_before(request.number))
    }

    /// Removes the request with that number. Returns the request whose turn has come by that, if
    /// any.
    pub(super) fn leave(&self, number: NonZeroUsize) -> Option<Arc<ConnectRequest>> {
        let mut requests = self.requests.lock();
        let was_first = first(&requests).is_some_and(|first| first.number == number);
        let gone = requests.remove_node(&number);
        let next = first(&requests).filter(|_| was_first).cloned();
        drop(requests);
        drop(gone);
        next
    }

    /// Removes and returns the first request.
    pub(super) fn take_first(&self) -> Option<Arc<ConnectRequest>> {
        let mut requests = self.requests.lock();
        let number = first(&requests)?.number;
        let gone = requests.remove_node(&number);
        drop(requests);
        gone.map(|node| node.to_key_value().1)
    }
}
