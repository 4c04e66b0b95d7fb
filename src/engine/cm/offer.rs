// SPDX-License-Identifier: GPL-2.0

//! The offers of a request: the order of the listeners that are notified, and the wait for room.
//!
//! A request goes to the listener that fits best; among equals, to the first. If that listener has
//! no room, a request with [`retries_when_full`](super::ConnectParams::retries_when_full) waits for
//! its turn, until the time for the answer is over. A listener whose consumer cannot take the
//! request declines, and the next listener is notified: `rdma_cm` may find that the address is not
//! of the consumer's network namespace.

#[cfg(ndk_kunit)]
mod tests;

use core::num::NonZeroUsize;

use super::{
    listener::Rank,
    request,
    ConnectRequest,
    ConnectionGone,
    ConnectionManager,
    Listener,
    NUMBERS_PER_REQUEST, //
};
use crate::engine::{
    inject,
    prelude::*, //
};

/// The end of the turn of a request at a listener.
enum Turn {
    /// The listener was notified.
    Notified,
    /// The listener has no room, and the request waits for room.
    Waits,
    /// The listener does not want the request, or has no room and the request does not wait.
    Refused,
}

/// A listener that a request was offered to.
struct Offered {
    listener: Arc<Listener>,
    rank: Rank,
    /// Names the request for this listener: a late answer does not hit the offer to another
    /// listener.
    number: NonZeroUsize,
}

/// The last listener that a request was offered to, and the listener at which it waits.
#[derive(Default)]
pub(super) struct Offers {
    /// The last offer, unless the listener has declined or has no room.
    last: Option<Offered>,
    /// The rank of the last listener that declined: listeners of this rank and above are not
    /// notified.
    declined: Option<Rank>,
    /// The best listener, if it had no room: the request waits there.
    waits_at: Option<Arc<Listener>>,
    /// The next work item offers the request to the best listener.
    is_due: bool,
    /// The number of notifications.
    count: usize,
}

impl ConnectRequest {
    /// Applies `f` to the last offer, unless its listener has declined or has no room.
    fn with_offered<T>(&self, f: impl FnOnce(&Offered) -> Option<T>) -> Option<T> {
        self.offers.lock().last.as_ref().and_then(f)
    }

    /// Names the request for the listener that was notified last.
    pub(crate) fn listener_number(&self) -> Option<NonZeroUsize> {
        self.with_offered(|offered| Some(offered.number))
    }

    /// The listener that was notified last.
    pub(super) fn listener(&self) -> Option<Arc<Listener>> {
        self.with_offered(|offered| Some(offered.listener.clone()))
    }

    /// The face's number for the consumer of the listener that was notified last, if `number` names
    /// that offer.
    pub(crate) fn consumer(&self, number: NonZeroUsize) -> Option<usize> {
        let listener = self
            .with_offered(|offered| (offered.number == number).then(|| offered.listener.clone()));
        listener?.events.consumer()
    }

    /// Returns true if that listener was notified last.
    pub(super) fn was_notified(&self, listener: &Arc<Listener>) -> bool {
        let found = self.with_offered(|offered| Some(Arc::ptr_eq(&offered.listener, listener)));
        found.unwrap_or(false)
    }

    /// Returns true if a listener has declined the request.
    pub(super) fn was_declined(&self) -> bool {
        self.offers.lock().declined.is_some()
    }

    /// The number of the last offer, if its listener listens no more.
    pub(super) fn orphaned_offer(&self) -> Option<NonZeroUsize> {
        self.with_offered(|offered| offered.listener.is_over().then_some(offered.number))
    }

    /// Notifies a listener; `None` if the request has no number left for the offer.
    fn notify(self: &Arc<Self>, listener: &Arc<Listener>, rank: Rank) -> Option<Result> {
        let mut offers = self.offers.lock();
        offers.count += 1;
        let number = self.number.checked_add(offers.count)?;
        if offers.count >= NUMBERS_PER_REQUEST.get() {
            return None;
        }
        offers.last = Some(Offered {
            listener: listener.clone(),
            rank,
            number,
        });
        drop(offers);
        Some(listener.events.request(self.clone()))
    }

    /// Makes the request wait at a listener that has no room and did not keep the request. Under
    /// the lock of the listeners, which keeps the listener in the table.
    fn wait_for_room(self: &Arc<Self>, listener: &Arc<Listener>) {
        let mut offers = self.offers.lock();
        let full = offers.last.take();
        let old = offers.waits_at.replace(listener.clone());
        drop(offers);
        drop(full);
        if let Some(old) = old.filter(|old| !Arc::ptr_eq(old, listener)) {
            self.leave(&old);
        }
        match listener.waiting.join(self) {
            Ok(true) => self.offer_again(),
            Ok(false) => (),
            // No memory for a place: the request is offered again without one.
            Err(_) => {
                self.stop_waiting();
                self.offer_first_in(request::RETRY_MS);
            }
        }
        if !self.is_open() {
            // A decision that came before the join did not find the request there.
            self.leave(listener);
        }
    }

    /// Ends the wait for room, if there is one; the next request has its turn.
    pub(super) fn stop_waiting(&self) {
        let left = self.offers.lock().waits_at.take();
        if let Some(listener) = left {
            self.leave(&listener);
        }
    }

    fn leave(&self, listener: &Listener) {
        if let Some(next) = listener.waiting.leave(self.number) {
            next.offer_soon();
        }
    }

    /// Queues a work item that offers the request to the best listener. Any context.
    fn offer_soon(self: &Arc<Self>) {
        self.offers.lock().is_due = true;
        // An item that is queued already has yet to run.
        let _ = self.active.host().threads.enqueue(self.clone());
    }

    /// Makes the timer offer the request next, in `ms` milliseconds, whether or not it has its
    /// turn.
    pub(super) fn offer_first_in(self: &Arc<Self>, ms: u32) {
        self.offers.lock().is_due = true;
        self.offer_again_in(ms);
    }

    /// Returns true if the offer is due now.
    fn take_due(&self) -> bool {
        let mut offers = self.offers.lock();
        let is_due = core::mem::take(&mut offers.is_due);
        if offers.last.is_some() {
            // The request had its turn before this call.
            return false;
        }
        let listener = offers.waits_at.clone();
        drop(offers);
        is_due || listener.is_some_and(|l| !l.waiting.has_before(self.number))
    }

    /// Takes back the offer of that number: its listener will not answer.
    fn take_offered(&self, number: NonZeroUsize) -> Option<Offered> {
        let mut offers = self.offers.lock();
        let offered = offers.last.take_if(|offered| offered.number == number)?;
        offers.declined = Some(offered.rank);
        Some(offered)
    }
}

impl Listener {
    /// Passes all requests that wait for room on to other listeners. Called after the listener has
    /// left the table.
    pub(super) fn release_waiting(&self) {
        while let Some(request) = self.waiting.take_first() {
            let mut offers = request.offers.lock();
            // The request may wait at the next listener already.
            let left = offers
                .waits_at
                .take_if(|at| core::ptr::eq(&raw const **at, self));
            drop(offers);
            drop(left);
            request.offer_soon();
        }
    }
}

impl ConnectionManager {
    /// Offers a new request to the listener that fits best, or lets the carrier connect it, or
    /// answers it. May sleep.
    pub(crate) fn submit(&self, request: &Arc<ConnectRequest>) {
        request.answer_within(self.timeouts.answer_ms);
        if inject::is_on() && self.submit_to_faults(request) {
            return;
        }
        let if_none = match request.params.remote_is_here {
            true => Status::Refused,
            false => Status::Unreachable,
        };
        self.offer_next(request, None, if_none);
    }

    /// Declines the offer with that number, for a reason that does not concern other listeners.
    /// Notifies the next listener, or answers the request with `if_none` if there is none. Process
    /// context.
    pub(crate) fn decline(
        &self,
        request: &Arc<ConnectRequest>,
        number: NonZeroUsize,
        if_none: Status,
    ) -> Result<(), ConnectionGone> {
        let last = request.take_offered(number).ok_or(ConnectionGone)?;
        self.offer_next(request, Some(last), if_none);
        Ok(())
    }

    /// Offers the request again, if it is its turn; or to the next listener, if the last one has
    /// ended and not answered in time. Process context.
    pub(super) fn offer_again_now(&self, request: &Arc<ConnectRequest>) {
        if request.take_due() {
            self.offer_next(request, None, Status::Refused);
        } else if let Some(number) = request.orphaned_offer().filter(|_| request.is_late()) {
            request.answer_within(self.timeouts.answer_ms);
            let _ = self.decline(request, number, Status::Timeout);
        }
    }

    /// Offers the request to the best of the listeners below the rank that declined; `last` is the
    /// offer that was declined. Without such a listener the request is answered with `if_none`; a
    /// refusal then counts as a rejection by the listener of `last`.
    fn offer_next(&self, request: &Arc<ConnectRequest>, last: Option<Offered>, if_none: Status) {
        let (status, refuses) = match self.try_offer(request) {
            Some((_, Turn::Notified | Turn::Waits)) => return,
            Some((listener, Turn::Refused)) => (Status::Refused, Some(listener)),
            None => {
                if self.dial(request) {
                    return;
                }
                let last = last.filter(|_| if_none == Status::Refused);
                (if_none, last.map(|offered| offered.listener))
            }
        };
        if let (true, Some(listener)) = (request.decide(status, &[]), refuses) {
            listener.events.rejected();
        }
    }

    /// Notifies the best listener, or makes the request wait there. Returns the listener and the
    /// end of the turn; `None` if there is no listener, or no offer is left to make.
    fn try_offer(&self, request: &Arc<ConnectRequest>) -> Option<(Arc<Listener>, Turn)> {
        // Listeners are notified under this lock, so that no request comes after `unlisten`.
        let listeners = self.listeners.lock();
        if !request.is_open() {
            return None;
        }
        let offers = request.offers.lock();
        if let Some(offered) = &offers.last {
            // The turn came twice. No other listener is notified before this one declines.
            return Some((offered.listener.clone(), Turn::Notified));
        }
        let declined = offers.declined;
        drop(offers);
        let ranked = listeners
            .candidates(request.params.net, &request.params.remote)
            .filter_map(|l| Some((l.rank(&request.params)?, l)));
        let left = ranked.filter(|(rank, _)| declined.is_none_or(|d| *rank < d));
        let (rank, listener) = left.max_by_key(|(rank, _)| *rank)?;
        let has_turn =
            !request.params.retries_when_full || !listener.waiting.has_before(request.number);
        let notified = match has_turn {
            true => request.notify(listener, rank)?,
            false => Err(ENOMEM),
        };
        let turn = match notified {
            Err(why) if why == ENOMEM && request.params.retries_when_full => {
                request.wait_for_room(listener);
                Turn::Waits
            }
            Ok(()) => Turn::Notified,
            Err(_) => Turn::Refused,
        };
        if !matches!(turn, Turn::Waits) {
            request.stop_waiting();
        }
        Some((listener.clone(), turn))
    }
}
