// SPDX-License-Identifier: GPL-2.0

//! [`Listener`]: who waits for connections where, and which one is notified of a request.
//!
//! A request goes to the listener that fits best, and to the first of those that fit alike. Where
//! that has no room requests wait for their turn, for as long as there is time for the answer. One
//! whose consumer cannot take it passes it on to the next: `rdma_cm` may find that the address is
//! not of the consumer's network namespace.

#[cfg(ndk_kunit)]
mod tests;

use core::{
    cmp::Reverse,
    net::{
        IpAddr,
        SocketAddr, //
    },
    num::NonZeroUsize, //
};

use kernel::sync::atomic::{
    Acquire,
    AtomicFlag,
    Release, //
};

use super::{
    address::address,
    listeners::Place,
    request,
    waiting::Waiting,
    ConnectParams,
    ConnectRequest,
    ConnectionGone,
    ConnectionManager,
    Reservation,
    NUMBERS, //
};
use crate::engine::{
    inject,
    prelude::*, //
};

/// What a listener is notified of.
pub(crate) trait ListenerEvents: Send + Sync {
    /// Somebody wants to connect. Process context, under a mutex.
    ///
    /// `ENOMEM` when there is no room for the request now: it may come again, see
    /// [`ConnectParams::waits`]. Another error turns the peer away.
    fn request(&self, request: Arc<ConnectRequest>) -> Result;
    /// A number that only the device of this listener has.
    fn device(&self) -> usize;
    /// Returns true if the device of this listener has the address `ip`.
    fn has_addr(&self, ip: IpAddr) -> bool;
    /// Returns true if this listener may be asked for other addresses of this host than its device
    /// has.
    fn serves_others(&self) -> bool {
        true
    }
    /// Returns true if this listener, if it is at the IPv6 wildcard, serves IPv4, too.
    fn is_dual(&self) -> bool {
        false
    }
    /// A number by which the face knows the consumer of this listener, if it wants to.
    fn consumer(&self) -> Option<usize> {
        None
    }
    /// A request was turned away, by the consumer or for want of room.
    fn turned_away(&self) {}
}

/// Somebody who waits for connections at an address.
#[pin_data]
pub(crate) struct Listener {
    /// Identifies the network namespace that it listens in.
    net: u64,
    /// The address; an unspecified one stands for all addresses of the device.
    pub(super) at: SocketAddr,
    /// Who began to listen earlier has a lower one.
    number: NonZeroUsize,
    /// What keeps the address for this listener, if anything does, as long as it listens.
    #[pin]
    held: SpinLockIrq<Option<Arc<Reservation>>>,
    is_over: AtomicFlag,
    /// Requests that it had no room for.
    #[pin]
    waiting: Waiting,
    pub(super) events: KBox<dyn ListenerEvents>,
}

impl Listener {
    pub(super) fn new(
        net: u64,
        at: SocketAddr,
        number: NonZeroUsize,
        held: Option<Arc<Reservation>>,
        events: KBox<dyn ListenerEvents>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                net,
                at,
                number,
                held <- new_spinlock_irq!(held),
                is_over: AtomicFlag::new(false),
                waiting <- Waiting::new(),
                events,
            }),
            GFP_KERNEL,
        )
    }

    /// The place that the table of listeners has for it.
    pub(super) fn place(&self) -> Place {
        Place::new(self.net, &self.at, self.number)
    }

    /// Returns true if it listens on that device where requests to `at` come, or some of those to
    /// `at` if that is a wildcard. `is_dual` is true if that one, where it is IPv6's, serves IPv4.
    pub(super) fn shares(&self, device: usize, net: u64, at: &SocketAddr, is_dual: bool) -> bool {
        let (ours, theirs) = (self.at.ip(), at.ip());
        let is_under = || {
            is_wildcard_for(ours, self.events.is_dual(), theirs)
                || is_wildcard_for(theirs, is_dual, ours)
        };
        self.events.device() == device
            && (address(self.net, &self.at) == address(net, at)
                || (self.net == net && self.at.port() == at.port() && is_under()))
    }

    /// Returns true if the address was reserved for it.
    pub(super) fn is_held(&self) -> bool {
        self.held.lock().is_some()
    }

    /// It listens no more. A request may keep it for longer.
    pub(super) fn end(&self) {
        self.is_over.store(true, Release);
        let held = self.held.lock().take();
        drop(held);
    }

    /// It is not in the table any more: what waits for room finds another listener, or none.
    pub(super) fn send_away(&self) {
        while let Some(request) = self.waiting.take_first() {
            let mut asking = request.asking.lock();
            // It may wait at the next one already.
            let left = asking
                .waits_at
                .take_if(|at| core::ptr::eq(&raw const **at, self));
            drop(asking);
            drop(left);
            request.ask_soon();
        }
    }

    /// How well the listener fits a destination, if it does.
    ///
    /// One at an unspecified address serves addresses of this host alone.
    fn rank(&self, params: &ConnectParams) -> Option<Rank> {
        let (at, to) = (self.at.ip(), params.remote.ip());
        if self.net != params.net || self.at.port() != params.remote.port() {
            return None;
        }
        let same_family = at.is_ipv4() == to.is_ipv4();
        let is_exact = at == to;
        if !is_exact && !is_wildcard_for(at, self.events.is_dual(), to) {
            return None;
        }
        let is_own = self.events.has_addr(to);
        let serves = is_own || (self.events.serves_others() && (is_exact || params.remote_is_here));
        serves.then_some((is_exact, is_own, same_family, Reverse(self.number)))
    }
}

/// Returns true if `at` stands for all addresses of a family that `ip` belongs to; IPv6's does for
/// IPv4 if it is `is_dual`.
fn is_wildcard_for(at: IpAddr, is_dual: bool, ip: IpAddr) -> bool {
    at.is_unspecified() && (at.is_ipv4() == ip.is_ipv4() || (ip.is_ipv4() && is_dual))
}

/// How well a listener fits a destination; what comes first counts most: it is at the address, not
/// at a wildcard; its device has the address; it is not one at the IPv6 wildcard that serves IPv4,
/// too; it began to listen earlier.
type Rank = (bool, bool, bool, Reverse<NonZeroUsize>);

/// The end of the turn of a request at a listener.
enum Turn {
    /// The listener was notified.
    Notified,
    /// It has no room, and the request waits for some.
    Waits,
    /// It does not want the request.
    Refused,
}

/// A listener that was notified of a request.
struct Asked {
    listener: Arc<Listener>,
    rank: Rank,
    /// Names the request for this listener: an answer that comes late answers no other one's.
    number: NonZeroUsize,
}

/// Who is asked, and who has been.
#[derive(Default)]
pub(super) struct Asking {
    /// Was notified last, and has not passed the request on.
    now: Option<Asked>,
    /// The listeners of this rank and above have.
    passed: Option<Rank>,
    /// Had no room when it was the best one, and has the request among those that wait for some.
    waits_at: Option<Arc<Listener>>,
    /// The best one is to be asked, by the next work item.
    is_due: bool,
    /// How often one was notified.
    count: usize,
}

impl ConnectRequest {
    /// Applies `f` to the listener that was notified last, if it has not passed the request on.
    fn with_asked<T>(&self, f: impl FnOnce(&Asked) -> Option<T>) -> Option<T> {
        self.asking.lock().now.as_ref().and_then(f)
    }

    /// Names the request for the listener that was notified last, as long as it is not decided.
    pub(crate) fn listener_number(&self) -> Option<NonZeroUsize> {
        self.with_asked(|asked| Some(asked.number))
    }

    /// The listener that was notified last.
    pub(super) fn listener(&self) -> Option<Arc<Listener>> {
        self.with_asked(|asked| Some(asked.listener.clone()))
    }

    /// The number by which the face knows the consumer of the listener that was notified last, if
    /// that was notified with this number.
    pub(crate) fn consumer(&self, number: NonZeroUsize) -> Option<usize> {
        let listener =
            self.with_asked(|asked| (asked.number == number).then(|| asked.listener.clone()));
        listener?.events.consumer()
    }

    /// Returns true if that listener was notified last.
    pub(super) fn was_notified(&self, listener: &Arc<Listener>) -> bool {
        let found = self.with_asked(|asked| Some(Arc::ptr_eq(&asked.listener, listener)));
        found.unwrap_or(false)
    }

    /// The number of the listener that was notified last, if that has ended without an answer.
    pub(super) fn orphaned(&self) -> Option<NonZeroUsize> {
        self.with_asked(|asked| asked.listener.is_over.load(Acquire).then_some(asked.number))
    }

    /// Notifies a listener; `None` after more of them than time is for.
    fn notify(self: &Arc<Self>, listener: &Arc<Listener>, rank: Rank) -> Option<Result> {
        let mut asking = self.asking.lock();
        asking.count += 1;
        let number = self.number.checked_add(asking.count)?;
        if asking.count >= NUMBERS.get() {
            return None;
        }
        asking.now = Some(Asked {
            listener: listener.clone(),
            rank,
            number,
        });
        drop(asking);
        Some(listener.events.request(self.clone()))
    }

    /// The listener has no room, and never heard of the request: that waits there. Under the lock
    /// of the listeners, which keeps that one in the table.
    fn wait_for_room(self: &Arc<Self>, listener: &Arc<Listener>) {
        let mut asking = self.asking.lock();
        let full = asking.now.take();
        let old = asking.waits_at.replace(listener.clone());
        drop(asking);
        drop(full);
        if let Some(old) = old.filter(|old| !Arc::ptr_eq(old, listener)) {
            self.leave(&old);
        }
        match listener.waiting.join(self) {
            Ok(true) => self.ask_again(),
            Ok(false) => (),
            // No memory for a place: it asks without one.
            Err(_) => {
                self.stop_waiting();
                self.ask_first_in(request::RETRY_MS);
            }
        }
        if !self.is_open() {
            // A decision that came before it joined has not found it there.
            self.leave(listener);
        }
    }

    /// The request waits for no room any more, if it did; the next one has its turn.
    pub(super) fn stop_waiting(&self) {
        let left = self.asking.lock().waits_at.take();
        if let Some(listener) = left {
            self.leave(&listener);
        }
    }

    fn leave(&self, listener: &Listener) {
        if let Some(next) = listener.waiting.leave(self.number) {
            next.ask_soon();
        }
    }

    /// The best listener is to be asked, by a work item. Any context.
    fn ask_soon(self: &Arc<Self>) {
        self.asking.lock().is_due = true;
        // An item that is queued already has yet to run.
        let _ = self.params.qp.device().host.threads.enqueue(self.clone());
    }

    /// The first listener is to be asked only then, in milliseconds.
    pub(super) fn ask_first_in(self: &Arc<Self>, ms: u32) {
        self.asking.lock().is_due = true;
        self.ask_again_in(ms);
    }

    /// Returns true if a listener is to be asked now.
    fn takes_turn(&self) -> bool {
        let mut asking = self.asking.lock();
        let is_due = core::mem::take(&mut asking.is_due);
        if asking.now.is_some() {
            // It had its turn before this came.
            return false;
        }
        let listener = asking.waits_at.clone();
        drop(asking);
        is_due || listener.is_some_and(|l| !l.waiting.has_before(self.number))
    }

    /// The listener that was notified with that number will not answer.
    fn take_asked(&self, number: NonZeroUsize) -> Option<Asked> {
        let mut asking = self.asking.lock();
        let asked = asking.now.take_if(|asked| asked.number == number)?;
        asking.passed = Some(asked.rank);
        Some(asked)
    }
}

impl ConnectionManager {
    /// Takes a request to a listener, or answers it.
    pub(crate) fn submit(&self, request: &Arc<ConnectRequest>) {
        request.answer_within(self.timeouts.answer_ms);
        if inject::is_on() && self.submit_to_faults(request) {
            return;
        }
        let nobody = match request.params.remote_is_here {
            true => Status::Refused,
            false => Status::Unreachable,
        };
        self.notify_next(request, None, nobody);
    }

    /// The listener that was notified with that number cannot take the request, for a reason that
    /// does not concern others: the next one is notified, or the request answered with `nobody`
    /// where there is none. Process context.
    pub(crate) fn pass_on(
        &self,
        request: &Arc<ConnectRequest>,
        number: NonZeroUsize,
        nobody: Status,
    ) -> Result<(), ConnectionGone> {
        let last = request.take_asked(number).ok_or(ConnectionGone)?;
        self.notify_next(request, Some(last), nobody);
        Ok(())
    }

    /// Asks again, if it is the turn of this request; or the next one, if the last has ended and
    /// not answered in time. Process context.
    pub(super) fn go_on(&self, request: &Arc<ConnectRequest>) {
        if request.takes_turn() {
            self.notify_next(request, None, Status::Refused);
        } else if let Some(number) = request.orphaned().filter(|_| request.is_late()) {
            request.answer_within(self.timeouts.answer_ms);
            let _ = self.pass_on(request, number, Status::Timeout);
        }
    }

    /// Notifies the best of the listeners that have not passed the request on; `last` was the last
    /// that did.
    fn notify_next(&self, request: &Arc<ConnectRequest>, last: Option<Asked>, nobody: Status) {
        let (status, refuses) = match self.try_next(request) {
            Some((_, Turn::Notified | Turn::Waits)) => return,
            Some((listener, Turn::Refused)) => (Status::Refused, Some(listener)),
            None => {
                let last = last.filter(|_| nobody == Status::Refused);
                (nobody, last.map(|asked| asked.listener))
            }
        };
        if let (true, Some(listener)) = (request.decide(status, &[]), refuses) {
            listener.events.turned_away();
        }
    }

    fn try_next(&self, request: &Arc<ConnectRequest>) -> Option<(Arc<Listener>, Turn)> {
        // Requests are notified under this lock, so that none comes after `unlisten`.
        let listeners = self.listeners.lock();
        if !request.is_open() {
            return None;
        }
        let asking = request.asking.lock();
        if let Some(asked) = &asking.now {
            // Its turn came twice. No listener is asked before this one passes it on.
            return Some((asked.listener.clone(), Turn::Notified));
        }
        let passed = asking.passed;
        drop(asking);
        let ranked = listeners
            .serving(request.params.net, &request.params.remote)
            .filter_map(|l| Some((l.rank(&request.params)?, l)));
        let left = ranked.filter(|(rank, _)| passed.is_none_or(|p| *rank < p));
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
