// SPDX-License-Identifier: GPL-2.0

//! [`Slot`]: the place of one region or window in the memory table.
//!
//! A slot lives as long as its table and serves one object after another, so a token lookup needs
//! neither a reference count nor RCU: the gate in the slot is open only while a registration is
//! valid. A consumer may change two things at different times, so the slot keeps them apart:
//!
//! - **staged**: the pieces that the last mapping named. Consumers map the next buffer while the
//!   peer still uses the old registration (iSER), or register again without a new mapping (RTRS),
//!   so staging leaves the live registration alone;
//! - **live**: the [`Registration`] behind the gate. It takes the staged pieces over when the
//!   registration executes in its queue, and ends when it is invalidated.
//!
//! A fast-register region has two lists of pieces, one in the gate and one staged, which change
//! places. It has more while several registrations wait in a queue (`memory/staging.rs`).
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

/// The kind of the object in a slot.
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

/// The part of a region that a window is bound to.
#[derive(Clone, Copy)]
pub(crate) struct Binding {
    /// The slot and key of the region.
    pub(crate) region: Token,
    /// The number of the registration in that slot: keys come round again.
    pub(crate) serial: u64,
    /// The offset of the window in the region.
    pub(crate) offset: u64,
    /// The only queue pair whose peer may use the window.
    pub(crate) qp: QpId,
}

/// The attributes of a registration.
#[derive(Clone, Copy)]
pub(crate) struct RegAttr {
    pub(crate) domain: DomainId,
    pub(crate) rights: AccessFlags,
    /// The address that the holder of the token uses for the first byte; only an index.
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) binding: Option<Binding>,
}

/// The registration behind a valid token.
pub(crate) struct Registration {
    /// Counts the registrations of the slot, over all its owners.
    pub(crate) serial: u64,
    pub(crate) attr: RegAttr,
    pub(crate) spans: SpanList,
}

impl Registration {
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

/// A waiter for the last access to a revoked registration.
pub(crate) trait DrainWaiter: Send + Sync {
    /// Tells the waiter to look again. Any context, under a transport's lock.
    fn drained(self: Arc<Self>);
}

/// The place for one [`DrainWaiter`].
#[pin_data]
pub(crate) struct DrainWaiterCell {
    #[pin]
    pub(super) waiter: SpinLockIrq<Option<Arc<dyn DrainWaiter>>>,
}

impl Watcher for DrainWaiterCell {
    fn drained(&self) {
        let waiter = self.waiter.lock().take();
        if let Some(waiter) = waiter {
            waiter.drained();
        }
    }
}

/// The right to use a registration.
pub(super) type SlotGuard<'t> = GateGuard<'t, Registration, DrainWaiterCell>;

/// One place of the memory table.
#[pin_data]
pub(crate) struct Slot {
    #[pin]
    pub(crate) gate: Gate<Registration, DrainWaiterCell>,
    /// Domain and kind of the present owner; 0 while the slot is free.
    assignment: Atomic<u64>,
    /// With `STEADY`: the key under which the owner always finds the registration.
    own_key: Atomic<u32>,
    /// While the slot is free: the next free slot, 0 at the end. Guarded by the table's list lock.
    pub(super) next_free: Atomic<u32>,
    #[pin]
    pub(super) staging: SpinLockIrq<Staging>,
}

/// The reason for a failed registration.
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
    /// A free slot without a registration, not in the list of free slots.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            gate <- Gate::watched(
                Registration::NOTHING,
                pin_init!(DrainWaiterCell {
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

    /// Makes `key` the owner's own: under it the owner always finds the registration (FREG-11).
    pub(super) fn set_own_key(&self, key: u8) {
        self.own_key.store(STEADY | u32::from(key), Release);
    }

    /// Returns true if the owner's own token has `key`.
    #[inline]
    fn is_own_key(&self, key: u8) -> bool {
        self.own_key.load(Acquire) == STEADY | u32::from(key)
    }

    /// Enters for the owner's token with `key`: under that key, or under any if `key` is the
    /// owner's own. The slot does not change hands before the result is dropped.
    #[inline]
    pub(super) fn enter_as_owner(&self, key: u8) -> Result<SlotGuard<'_>, Refused> {
        match self.gate.enter(key) {
            Err(Refused::WrongKey) if self.is_own_key(key) => {
                let entry = self.gate.enter_any()?;
                // Before the entry, `key` may have been another owner's own.
                match self.is_own_key(key) {
                    true => Ok(entry),
                    false => Err(Refused::WrongKey),
                }
            }
            entry => entry,
        }
    }

    /// Closes the gate for the owner's token with `key`, if `may` agrees. The slot does not change
    /// hands between the call of `may` and the closing: no later owner's registration ends.
    ///
    /// `may` is also called if no registration is valid; the gate then stays as it is. `None` if
    /// `may` does not agree.
    pub(super) fn close_as_owner(
        &self,
        key: u8,
        may: impl FnOnce(&Self) -> bool,
    ) -> Option<Result<(), Refused>> {
        let entry = self.enter_as_owner(key);
        may(self).then(|| entry.and_then(|entry| entry.close()))
    }

    /// Closes the gate as [`Slot::close_as_owner`], if a registration is valid and no access uses
    /// it: the revocation is then complete. Returns true if the gate was closed.
    #[inline]
    pub(super) fn close_unused_as_owner(&self, key: u8, may: impl FnOnce(&Self) -> bool) -> bool {
        let named = Some(key).filter(|key| !self.is_own_key(*key));
        // The owner's own key names the registration only as long as the slot has that owner.
        let is_named = || named.is_some() || self.is_own_key(key);
        self.gate.close_unused(named, || is_named() && may(self))
    }

    /// Returns true if no access uses a revoked registration; notifies the owner of a window.
    pub(super) fn is_drained(&self) -> bool {
        // CAST: the number of the kind; the owner does not matter.
        if self.assignment.load(Acquire) & 0xFF != Kind::Window as u64 {
            let (bound, unused, _) = self.gate.snapshot();
            return bound || unused;
        }
        let staging = self.staging.lock();
        // The owner is removed under this lock, so it is notified of its own window only.
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

    /// Takes the gate of a slot that was free. May sleep.
    ///
    /// A late registration may hold the gate until it finds the old owner gone.
    fn take_gate(&self) -> Opening<'_, Registration, DrainWaiterCell> {
        loop {
            // A late registration may even have opened the gate, on no bytes at all.
            let _ = self.gate.close(None);
            if let Some(opening) = self.gate.begin() {
                return opening;
            }
            self.gate.wait_until_unused();
        }
    }

    /// Prepares a fast-register region of up to `pieces` pieces. May sleep.
    pub(super) fn init(&self, pieces: usize) -> Result {
        let live = SpanList::with_capacity(pieces)?;
        let spares = Staging::spares_for(pieces)?;
        self.take_gate().spans = live;
        self.staging.lock().set_spares(spares);
        Ok(())
    }

    /// Takes the slot from its owner, if no access uses the registration any more.
    ///
    /// Returns true if the slot is free. If not, the gate is closed, and the caller repeats the
    /// call; an access lasts no longer than one bounded copy. Frees memory: not with interrupts
    /// off.
    pub(super) fn release(&self) -> bool {
        let _ = self.gate.close(None);
        let Some(mut opening) = self.gate.begin() else {
            return false;
        };
        self.assignment.store(0, Release);
        self.own_key.store(0, Release);
        let nothing = Registration {
            serial: opening.serial,
            ..Registration::NOTHING
        };
        let old = core::mem::replace(&mut *opening, nothing);
        drop(opening);
        let rest = self.staging.lock().release();
        drop((old, rest));
        true
    }

    /// Makes the staged pieces live under `key`, if the slot still has an object of `kind`.
    ///
    /// Without a new mapping the pieces of the last registration serve again (RTRS). A replaced
    /// list becomes a spare.
    ///
    /// With a `number`, only the mapping that came with that request is made live.
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
        // The slot does not change hands here: the owner is removed under an opening.
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
        let rest = replaced.and_then(|list| staging.keep_spare(list));
        drop(staging);
        drop(rest);
        opening.serial = opening.serial.wrapping_add(1);
        opening.attr = attr;
        opening.open(key);
        Ok(())
    }

    /// Makes a region that is valid from now on, until [`Slot::release`]. May sleep.
    pub(super) fn register_fixed(&self, key: u8, spans: SpanList, attr: RegAttr) -> Result {
        self.take_gate().spans = spans;
        loop {
            match self.register(Kind::Fixed, key, attr, None) {
                Err(RegisterError::Busy) => self.gate.wait_until_unused(),
                registered => return registered.map_err(|_| EINVAL),
            }
        }
    }
}
