// SPDX-License-Identifier: GPL-2.0

//! [`Slot`]: the place of one region or window in the memory table.
//!
//! A slot lives as long as its table and is used by one object after another, so looking a token
//! up needs neither a reference count nor RCU: the gate in the slot decides whether anything is
//! there. Two things are kept apart that a consumer may change at different times:
//!
//! - what is **staged**: the pieces that the last mapping named. Consumers map the next buffer
//!   while the old registration is still in use by the peer (iSER), or register again without a
//!   new mapping (RTRS), so staging touches nothing that is live;
//! - what is **live**: the [`Registered`] behind the gate. It takes the staged pieces over when
//!   the registration executes in its queue, and ends when it is invalidated.
//!
//! Each slot has two lists of pieces: one in the gate, one staged. They change places. Where several
//! registrations wait in a queue there are more of them for that time (`memory/staging.rs`).
//!
//! Lock order: `staging` is a leaf. Context: any, but for allocation.
//!
//! Tests: `engine/memory/tests/staging.rs`.

use kernel::sync::atomic::{
    ordering::{
        Acquire,
        Release, //
    },
    Atomic, //
};

use super::{
    spans::SpanList,
    staging::Staging, //
};
use crate::{
    engine::prelude::*,
    rdma::values::token::Token,
    sys::gate::{
        Gate,
        GateGuard,
        Opening,
        Refused,
        Watcher, //
    }, //
};

/// What kind of object has the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A region that is registered by a work request (`IB_MR_TYPE_MEM_REG`, NDK fast-register).
    Fast = 1,
    /// A region that is registered as long as it exists.
    Fixed = 2,
    /// A memory window.
    Window = 3,
}

/// The identity of a protection domain; never zero, never used twice.
pub(crate) type DomainId = u64;

/// The identity of a queue pair; never zero, never used twice.
pub(crate) type QpId = u64;

/// What a window is bound to.
#[derive(Clone, Copy)]
pub(crate) struct Binding {
    /// The slot and key of the region.
    pub(crate) region: Token,
    /// Which registration of that slot it is: keys come round again.
    pub(crate) serial: u64,
    /// Where the window begins inside the region.
    pub(crate) offset: u64,
    /// The only queue pair whose peer may use the window.
    pub(crate) qp: QpId,
}

/// What a registration grants.
#[derive(Clone, Copy)]
pub(crate) struct RegAttr {
    pub(crate) domain: DomainId,
    pub(crate) rights: AccessFlags,
    /// The address that the holder of the token uses for the first byte; only an index.
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) binding: Option<Binding>,
}

/// What a token stands for while it is valid.
pub(crate) struct Registered {
    /// Counts the registrations of the slot, whoever owns it.
    pub(crate) serial: u64,
    pub(crate) attr: RegAttr,
    pub(crate) spans: SpanList,
}

impl Registered {
    const NOTHING: Self = Self {
        serial: 0,
        attr: RegAttr {
            domain: 0,
            rights: AccessFlags::empty(),
            base: 0,
            len: 0,
            binding: None,
        },
        spans: SpanList::EMPTY,
    };
}

/// Who waits until nothing uses any more what a revocation ended.
pub(crate) trait DrainWaiter: Send + Sync {
    /// It is time to look. Any context, under a transport's lock.
    fn drained(self: Arc<Self>);
}

/// The place for one of them.
#[pin_data]
pub(crate) struct DrainPlace {
    #[pin]
    pub(super) waiter: SpinLockIrq<Option<Arc<dyn DrainWaiter>>>,
}

impl Watcher for DrainPlace {
    fn left(&self) {
        let waiter = self.waiter.lock().take();
        if let Some(waiter) = waiter {
            waiter.drained();
        }
    }
}

/// The right to use a registration.
pub(super) type SlotGuard<'t> = GateGuard<'t, Registered, DrainPlace>;

/// One place of the memory table.
#[pin_data]
pub(crate) struct Slot {
    #[pin]
    pub(crate) gate: Gate<Registered, DrainPlace>,
    /// Domain and kind of the present owner; 0 while the slot is free.
    assignment: Atomic<u64>,
    /// With `STEADY`: the key under which the owner itself always finds the registration.
    own_key: Atomic<u32>,
    /// While the slot is free: the next free one, 0 at the end. Guarded by the table's list lock.
    pub(super) next_free: Atomic<u32>,
    #[pin]
    pub(super) staging: SpinLockIrq<Staging>,
}

/// Why a registration could not be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegisterError {
    /// An old access is still running: try again soon.
    Busy,
    /// The region is still valid.
    Valid,
    /// More bytes than were mapped, or a range that is not inside the region.
    TooLong,
    /// The token does not name an object of this kind and domain, or the rights contradict.
    NotAllowed,
}

const STEADY: u32 = 0x100;

/// Packs an owner for [`Slot::assignment`]. Domain numbers are counted up from one, far below 2^56.
const fn assignment(domain: DomainId, kind: Kind) -> u64 {
    // CAST: the number of the kind.
    (domain << 8) | kind as u64
}

impl Slot {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            gate <- Gate::watched(
                Registered::NOTHING,
                pin_init!(DrainPlace {
                    waiter <- new_spinlock_irq!(None),
                }),
            ),
            assignment: Atomic::new(0),
            own_key: Atomic::new(0),
            next_free: Atomic::new(0),
            staging <- new_spinlock_irq!(Staging::new()),
        })
    }

    /// Returns true if the slot belongs to an object of this kind and domain.
    pub(super) fn is(&self, domain: DomainId, kind: Kind) -> bool {
        self.assignment.load(Acquire) == assignment(domain, kind)
    }

    /// From now on the owner's token with `key` names whatever is registered (FREG-11).
    pub(super) fn set_own_key(&self, key: u8) {
        self.own_key.store(STEADY | u32::from(key), Release);
    }

    /// Returns true if the owner's own token has `key`.
    #[inline]
    fn is_own_key(&self, key: u8) -> bool {
        self.own_key.load(Acquire) == STEADY | u32::from(key)
    }

    /// Enters as the owner's token with `key` does: under that key, or, if it is the owner's own
    /// key, under whichever there is. The slot does not change hands before the result is dropped.
    #[inline]
    pub(super) fn enter_as_owner(&self, key: u8) -> Result<SlotGuard<'_>, Refused> {
        match self.gate.enter(key) {
            Err(Refused::WrongKey) if self.is_own_key(key) => {
                let entry = self.gate.enter_any()?;
                // Before, it may have been the key of another owner.
                match self.is_own_key(key) {
                    true => Ok(entry),
                    false => Err(Refused::WrongKey),
                }
            }
            entry => entry,
        }
    }

    /// Closes the gate for the owner's token with `key`, if `may` agrees. That is asked while the
    /// slot cannot change hands, and the gate closes before it can: nothing of a later owner ends.
    ///
    /// If nothing is valid `may` is asked, too, and nothing changes. `None` if it does not agree.
    pub(super) fn close_as_owner(
        &self,
        key: u8,
        may: impl FnOnce(&Self) -> bool,
    ) -> Option<Result<(), Refused>> {
        let entry = self.enter_as_owner(key);
        may(self).then(|| entry.and_then(|entry| entry.close()))
    }

    /// The same, if something is valid and no access uses it: then this is all there is to do.
    /// Returns true if it was done.
    #[inline]
    pub(super) fn close_unused_as_owner(&self, key: u8, may: impl FnOnce(&Self) -> bool) -> bool {
        let named = Some(key).filter(|key| !self.is_own_key(*key));
        // An own key names what is valid only as long as the owner is there.
        let is_named = || named.is_some() || self.is_own_key(key);
        self.gate.close_unused(named, || is_named() && may(self))
    }

    /// Returns true if nothing uses what a revocation ended; the owner of a window is notified.
    pub(super) fn is_drained(&self) -> bool {
        // CAST: the number of the kind; the owner does not matter.
        if self.assignment.load(Acquire) & 0xFF != Kind::Window as u64 {
            let (bound, unused, _) = self.gate.snapshot();
            return bound || unused;
        }
        let staging = self.staging.lock();
        // An owner is taken away under this lock, so that it hears of its own window alone.
        let (bound, unused, key) = self.gate.snapshot();
        let drained = bound || unused;
        let owner = staging.owner.clone().filter(|_| drained);
        drop(staging);
        if let Some(owner) = owner {
            owner.unbound(key, bound);
        }
        drained
    }

    /// Gives the slot to a new owner. The slot must be free: the table gives it out once.
    pub(super) fn assign(&self, domain: DomainId, kind: Kind) {
        self.assignment.store(assignment(domain, kind), Release);
    }

    /// The gate of a slot that was free. May sleep.
    ///
    /// A registration that comes too late may hold it for the moment in which it notices.
    fn claim(&self) -> Opening<'_, Registered, DrainPlace> {
        loop {
            // Late as it is, it may even have opened the gate, on no bytes at all.
            let _ = self.gate.close(None);
            if let Some(opening) = self.gate.begin() {
                return opening;
            }
            self.gate.wait_until_left();
        }
    }

    /// Prepares a fast-register region of up to `pieces` pieces. May sleep.
    pub(super) fn init(&self, pieces: usize) -> Result {
        let live = SpanList::with_capacity(pieces)?;
        let spares = Staging::spares_for(pieces)?;
        self.claim().spans = live;
        self.staging.lock().set_spares(spares);
        Ok(())
    }

    /// Ends the owner's time, if nothing uses the registration any more.
    ///
    /// Returns true if it did. When it did not, the gate is closed and the call is to be repeated;
    /// an access lasts no longer than one bounded copy. Frees memory: not with interrupts off.
    pub(super) fn release(&self) -> bool {
        let _ = self.gate.close(None);
        let Some(mut opening) = self.gate.begin() else {
            return false;
        };
        self.assignment.store(0, Release);
        self.own_key.store(0, Release);
        let nothing = Registered {
            serial: opening.serial,
            ..Registered::NOTHING
        };
        let old = core::mem::replace(&mut *opening, nothing);
        drop(opening);
        let rest = self.staging.lock().release();
        drop((old, rest));
        true
    }

    /// Makes the staged pieces live under `key`, if the slot is still that of a `kind`.
    ///
    /// With nothing newly staged the pieces of the last registration serve again (RTRS). The list
    /// that they replace becomes the spare one.
    ///
    /// With a number it is the mapping that came with that request, and no other.
    pub(super) fn register(
        &self,
        kind: Kind,
        key: u8,
        attr: RegAttr,
        number: Option<u32>,
    ) -> Result<(), RegisterError> {
        if self.gate.is_open() {
            return Err(RegisterError::Valid);
        }
        let mut opening = self.gate.begin().ok_or(RegisterError::Busy)?;
        // Looked at while the slot cannot change hands: the owner is removed under an opening.
        if !self.is(attr.domain, kind) {
            return Err(RegisterError::NotAllowed);
        }
        let mut staging = self.staging.lock();
        let list = match number {
            Some(number) => {
                let list = staging.take_number(number);
                Some(list.ok_or(RegisterError::NotAllowed)?)
            }
            None => staging.mapped.take(),
        };
        let room = list.as_ref().unwrap_or(&opening.spans).len();
        if attr.binding.is_none() && attr.len > room {
            let rest = staging.put_back(list, number);
            drop(staging);
            drop(rest);
            return Err(RegisterError::TooLong);
        }
        let replaced = list.map(|list| core::mem::replace(&mut opening.spans, list));
        let rest = replaced.and_then(|list| staging.keep(list));
        drop(staging);
        drop(rest);
        opening.serial = opening.serial.wrapping_add(1);
        opening.attr = attr;
        opening.open(key);
        Ok(())
    }

    /// Makes a region that is valid from now on, until [`Slot::release`]. May sleep.
    pub(super) fn register_fixed(&self, key: u8, spans: SpanList, attr: RegAttr) -> Result {
        self.claim().spans = spans;
        loop {
            match self.register(Kind::Fixed, key, attr, None) {
                Err(RegisterError::Busy) => self.gate.wait_until_left(),
                registered => return registered.map_err(|_| EINVAL),
            }
        }
    }
}
