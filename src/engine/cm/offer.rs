// SPDX-License-Identifier: GPL-2.0

//! The offers of a request: which listener is notified, which one next, and how a request waits.
//!
//! A request goes to the listener that fits best, and to the first of those that fit alike. Where
//! that has no room, requests that say so ([`ConnectParams::waits`](super::ConnectParams::waits))
//! wait for their turn, for as long as there is time for the answer. A listener whose consumer
//! cannot take the request declines, and the next is notified: `rdma_cm` may find that the address
//! is not of the consumer's network namespace.

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
    NUMBERS, //
};
use crate::engine::{
    inject,
    prelude::*, //
};

/// The end of the turn of a request at a listener.
enum Turn {
    /// The listener was notified.
    Notified,
    /// It has no room, and the request waits for some.
    Waits,
    /// It does not want the request, or has no room and the request does not wait.
    Refused,
}

/// A listener that a request was offered to.
struct Offered {
    listener: Arc<Listener>,
    rank: Rank,
    /// Names the request for this listener: an answer that comes late answers no other one's.
    number: NonZeroUsize,
}

/// The last listener that a request was offered to, and the one that it waits for.
#[derive(Default)]
pub(super) struct Offers {
    /// The last one, unless it has declined or has no room.
    now: Option<Offered>,
    /// A listener of this rank has declined: those of this rank and above are not notified.
    declined: Option<Rank>,
    /// The best one, where it had no room: the request waits for some there.
    waits_at: Option<Arc<Listener>>,
    /// The next work item offers the request to the best one.
    is_due: bool,
    /// The number of notifications.
    count: usize,
}

impl ConnectRequest {
    /// Applies `f` to the listener that was notified last, unless it has declined or has no room.
    fn with_offered<T>(&self, f: impl FnOnce(&Offered) -> Option<T>) -> Option<T> {
        self.offers.lock().now.as_ref().and_then(f)
    }

    /// Names the request for the listener that was notified last.
    pub(crate) fn listener_number(&self) -> Option<NonZeroUsize> {
        self.with_offered(|offered| Some(offered.number))
    }

    /// The listener that was notified last.
    pub(super) fn listener(&self) -> Option<Arc<Listener>> {
        self.with_offered(|offered| Some(offered.listener.clone()))
    }

    /// The number by which the face knows the consumer of the listener that was notified last, if
    /// that was notified with this number.
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

    /// The number of the listener that was notified last, if that listens no more.
    pub(super) fn orphaned(&self) -> Option<NonZeroUsize> {
        self.with_offered(|offered| offered.listener.is_over().then_some(offered.number))
    }

    /// Notifies a listener; `None` where the request has no number left for it.
    fn notify(self: &Arc<Self>, listener: &Arc<Listener>, rank: Rank) -> Option<Result> {
        let mut offers = self.offers.lock();
        offers.count += 1;
        let number = self.number.checked_add(offers.count)?;
        if offers.count >= NUMBERS.get() {
            return None;
        }
        offers.now = Some(Offered {
            listener: listener.clone(),
            rank,
            number,
        });
        drop(offers);
        Some(listener.events.request(self.clone()))
    }

    /// Has the request wait for room at a listener that has none and keeps nothing of it. Under the
    /// lock of the listeners, which keeps that one in the table.
    fn wait_for_room(self: &Arc<Self>, listener: &Arc<Listener>) {
        let mut offers = self.offers.lock();
        let full = offers.now.take();
        let old = offers.waits_at.replace(listener.clone());
        drop(offers);
        drop(full);
        if let Some(old) = old.filter(|old| !Arc::ptr_eq(old, listener)) {
            self.leave(&old);
        }
        match listener.waiting.join(self) {
            Ok(true) => self.offer_again(),
            Ok(false) => (),
            // No memory for a place: it is offered again without one.
            Err(_) => {
                self.stop_waiting();
                self.offer_first_in(request::RETRY_MS);
            }
        }
        if !self.is_open() {
            // A decision that came before it joined has not found it there.
            self.leave(listener);
        }
    }

    /// The request waits for no room any more, if it did; the next one has its turn.
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

    /// Has a work item offer the request to the best listener. Any context.
    fn offer_soon(self: &Arc<Self>) {
        self.offers.lock().is_due = true;
        // An item that is queued already has yet to run.
        let _ = self.params.qp.device().host.threads.enqueue(self.clone());
    }

    /// Has the timer make the next offer, in so many milliseconds, whatever turn the request has.
    pub(super) fn offer_first_in(self: &Arc<Self>, ms: u32) {
        self.offers.lock().is_due = true;
        self.offer_again_in(ms);
    }

    /// Returns true if the request is to be offered now.
    fn takes_turn(&self) -> bool {
        let mut offers = self.offers.lock();
        let is_due = core::mem::take(&mut offers.is_due);
        if offers.now.is_some() {
            // It had its turn before this came.
            return false;
        }
        let listener = offers.waits_at.clone();
        drop(offers);
        is_due || listener.is_some_and(|l| !l.waiting.has_before(self.number))
    }

    /// Takes back the offer of that number: its listener will not answer.
    fn take_offered(&self, number: NonZeroUsize) -> Option<Offered> {
        let mut offers = self.offers.lock();
        let offered = offers.now.take_if(|offered| offered.number == number)?;
        offers.declined = Some(offered.rank);
        Some(offered)
    }
}

impl Listener {
    /// Has all that waits for room offered to others. After the listener has left the table.
    pub(super) fn release_waiting(&self) {
        while let Some(request) = self.waiting.take_first() {
            let mut offers = request.offers.lock();
            // It may wait at the next one already.
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
    /// Offers a new request to the listener that fits best, or answers it.
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

    /// The listener of the offer with that number cannot take the request, for a reason that does
    /// not concern others: the next one is notified, or the request answered with `if_none` where
    /// there is none. Process context.
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
        if request.takes_turn() {
            self.offer_next(request, None, Status::Refused);
        } else if let Some(number) = request.orphaned().filter(|_| request.is_late()) {
            request.answer_within(self.timeouts.answer_ms);
            let _ = self.decline(request, number, Status::Timeout);
        }
    }

    /// Offers the request to the best of the listeners below the rank that declined; `last` is the
    /// one that did. Without another it is answered with `if_none`: with a refusal `last` counts as
    /// the one that rejects.
    fn offer_next(&self, request: &Arc<ConnectRequest>, last: Option<Offered>, if_none: Status) {
        let (status, refuses) = match self.try_offer(request) {
            Some((_, Turn::Notified | Turn::Waits)) => return,
            Some((listener, Turn::Refused)) => (Status::Refused, Some(listener)),
            None => {
                let last = last.filter(|_| if_none == Status::Refused);
                (if_none, last.map(|offered| offered.listener))
            }
        };
        if let (true, Some(listener)) = (request.decide(status, &[]), refuses) {
            listener.events.rejected();
        }
    }

    /// Notifies the best listener, or has the request wait there, and returns it with what came of
    /// that; `None` where there is no listener, or no offer to make any more.
    fn try_offer(&self, request: &Arc<ConnectRequest>) -> Option<(Arc<Listener>, Turn)> {
        // Listeners are notified under this lock, so that no request comes after `unlisten`.
        let listeners = self.listeners.lock();
        if !request.is_open() {
            return None;
        }
        let offers = request.offers.lock();
        if let Some(offered) = &offers.now {
            // Its turn came twice. No other listener is notified before this one declines.
            return Some((offered.listener.clone(), Turn::Notified));
        }
        let declined = offers.declined;
        drop(offers);
        let ranked = listeners
            .serving(request.params.net, &request.params.remote)
            .filter_map(|l| Some((l.rank(&request.params)?, l)));
        let left = ranked.filter(|(rank, _)| declined.is_none_or(|d| *rank < d));
        let (rank, listener) = left.max_by_key(|(rank, _)| *rank)?;
        let has_turn = !request.params.waits || !listener.waiting.has_before(request.number);
        let notified = match has_turn {
            true => request.notify(listener, rank)?,
            false => Err(ENOMEM),
        };
        let turn = match notified {
            Err(why) if why == ENOMEM && request.params.waits => {
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
