// SPDX-License-Identifier: GPL-2.0

//! [`Gate`]: a value that is shared while its gate is open, and unused once the gate is closed and
//! drained.
//!
//! This is the one mechanism behind every revocation of the project: local and remote invalidation,
//! deregistration, unbinding a window. A user of the value enters with a key and leaves when done.
//! The owner closes the gate, which stops new entries at once; then the owner polls
//! [`Gate::is_drained`], waits until the last entry has left, or has a [`Watcher`] called. The
//! whole state is one atomic word, so an entry costs one atomic operation and so does leaving.
//!
//! ```text
//!            Opening::open(key)             close(key)
//!   closed ---------------------> open -------------------> closing --(last leave)--> closed
//!     ^ begin(): only here is `&mut T` given out
//! ```
//!
//! Context: any, except for [`Gate::wait_until_unused`], which may sleep. No other function sleeps
//! or spins without bound.
//!
//! Tests: `sys/tests/gate.rs`.

use core::{
    cell::UnsafeCell,
    convert::Infallible,
    ops::{
        Deref,
        DerefMut, //
    }, //
};

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::{
            Acquire,
            Full,
            Relaxed, //
        },
        Atomic, //
    }, //
};

use crate::bindings;

const ENTRIES: u64 = 0xFFFF_FFFF;
const KEY_SHIFT: u32 = 32;
const OPEN: u64 = 1 << 40;
const BUSY: u64 = 1 << 41;
/// A task waits until the gate has neither an entry nor an [`Opening`].
const WAITED: u64 = 1 << 42;
/// The watcher is called when the gate has neither an entry nor an [`Opening`].
const WATCHED: u64 = 1 << 43;

/// A callback for a gate that has neither an entry nor an [`Opening`] any more. At least one call
/// answers each [`Gate::request_drain_call`] that returns true; one call may answer several.
pub(crate) trait Watcher {
    /// Called when the last entry has left or the [`Opening`] has ended; by now the gate may be in
    /// use again. Any context, under the locks of the caller that left.
    fn drained(&self);
}

/// No watcher.
impl Watcher for () {
    fn drained(&self) {}
}

/// A value that is shared while open and exclusive while closed and drained.
///
/// # Invariants
///
/// - `word` bits 0 to 31 count the [`GateGuard`] that exist.
/// - `OPEN` and `BUSY` are never set together.
/// - `BUSY` is set exactly while an [`Opening`] exists; it is set only when no entry exists.
/// - `&T` exists only under a [`GateGuard`] or the [`Opening`], `&mut T` only under the
///   [`Opening`].
#[pin_data]
pub(crate) struct Gate<T, W: Watcher = ()> {
    word: Atomic<u64>,
    value: UnsafeCell<T>,
    /// The watcher that [`Gate::request_drain_call`] has called.
    #[pin]
    pub(crate) watcher: W,
}

// SAFETY: `Gate` owns its `T` and its `W`; sending the gate sends them.
unsafe impl<T: Send, W: Watcher + Send> Send for Gate<T, W> {}
// SAFETY: By the invariants `&T` is shared between threads (needs `Sync`) and `&mut T` moves
// between them (needs `Send`), and the two never exist at once. `&W` is shared.
unsafe impl<T: Send + Sync, W: Watcher + Sync> Sync for Gate<T, W> {}

/// The reason for a refused entry or closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The gate is not open.
    NotOpen,
    /// The gate is open under another key.
    WrongKey,
}

impl<T> Gate<T> {
    /// A closed gate around `value`.
    pub(crate) const fn new(value: T) -> Self {
        // INVARIANT: no entry, neither open nor busy.
        Self {
            word: Atomic::new(0),
            value: UnsafeCell::new(value),
            watcher: (),
        }
    }
}

impl<T, W: Watcher> Gate<T, W> {
    /// A closed gate around `value` that `watcher` may watch.
    pub(crate) fn watched(value: T, watcher: impl PinInit<W>) -> impl PinInit<Self> {
        // INVARIANT: no entry, neither open nor busy.
        pin_init!(Self {
            word: Atomic::new(0),
            value: UnsafeCell::new(value),
            watcher <- watcher,
        })
    }

    /// Has the watcher called when the gate has neither an entry nor an [`Opening`]. Returns true
    /// if the watcher will be called, or has been by now; returns false, without a call, if the
    /// gate is open or has neither already. The effects of the entries are visible to the watcher,
    /// and after false.
    pub(crate) fn request_drain_call(&self) -> bool {
        let asked = self.update(|word| match word & (OPEN | BUSY | ENTRIES) {
            busy if busy & OPEN == 0 && busy != 0 => Ok(word | WATCHED),
            _ => Err(()),
        });
        asked.is_ok()
    }

    /// Notifies the waiter and the watcher that had asked when the word was `old`: the last entry
    /// has left, or the [`Opening`] has ended.
    #[cold]
    fn notify(&self, old: u64) {
        if old & WAITED != 0 {
            // SAFETY: The function compares the address and does not follow it.
            unsafe { bindings::ndk_wake_waiters(self.word.as_ptr()) };
        }
        if old & WATCHED != 0 {
            // Cleared first: a later request causes another call.
            let Ok(_) = self.update(|word| Ok::<_, Infallible>(word & !WATCHED));
            self.watcher.drained();
        }
    }

    /// Enters, if the gate is open under `key`. The gate is not drained until the result drops.
    #[inline]
    pub(crate) fn enter(&self, key: u8) -> Result<GateGuard<'_, T, W>, Refused> {
        self.enter_under(Some(key))
    }

    /// Enters, if the gate is open, under any key.
    #[inline]
    pub(crate) fn enter_any(&self) -> Result<GateGuard<'_, T, W>, Refused> {
        self.enter_under(None)
    }

    #[inline]
    fn enter_under(&self, key: Option<u8>) -> Result<GateGuard<'_, T, W>, Refused> {
        // `Acquire`: a refused caller sees the writes that preceded the closing.
        let mut word = self.word.load(Acquire);
        loop {
            check(word, key)?;
            if word & ENTRIES == ENTRIES {
                return Err(Refused::NotOpen);
            }
            // INVARIANT: one more `GateGuard`; `Acquire` pairs with `Opening::open`.
            match self.word.cmpxchg(word, word + 1, Acquire) {
                Ok(_) => return Ok(GateGuard { gate: self }),
                Err(_) => word = self.word.load(Acquire),
            }
        }
    }

    /// Closes the gate, if it is open (under `key`, when one is given): no new entry from now on.
    ///
    /// Entries that exist go on; [`Gate::is_drained`] returns true once the last entry has left.
    pub(crate) fn close(&self, key: Option<u8>) -> Result<(), Refused> {
        self.update(|word| check(word, key).map(|()| word & !OPEN))?;
        Ok(())
    }

    /// Replaces the word by the result of `change` and returns the old word; an error leaves the
    /// word as it is.
    fn update<E>(&self, change: impl Fn(u64) -> Result<u64, E>) -> Result<u64, E> {
        loop {
            // `Acquire`: a caller that gets an error sees the writes that led to it.
            let word = self.word.load(Acquire);
            if self.word.cmpxchg(word, change(word)?, Full).is_ok() {
                return Ok(word);
            }
        }
    }

    /// Closes the gate, if it is open (under `key`, when one is given), no entry exists, and `may`
    /// agrees; otherwise leaves it as it is. Returns true if the gate was closed; the effects of
    /// earlier entries are visible then.
    ///
    /// `may` runs under an entry, which ends with the closing: state that changes only while the
    /// gate is drained does not change in between.
    #[inline]
    pub(crate) fn close_unused(&self, key: Option<u8>, may: impl FnOnce() -> bool) -> bool {
        let word = self.word.load(Relaxed);
        let is_used = word & (ENTRIES | WAITED | WATCHED) != 0;
        // INVARIANT: one more `GateGuard`; `Acquire` pairs with `Opening::open`.
        if check(word, key).is_err()
            || is_used
            || self.word.cmpxchg(word, word + 1, Acquire).is_err()
        {
            return false;
        }
        let inside = GateGuard { gate: self };
        // INVARIANT: one `GateGuard` less: the entry leaves with the closing, and its guard is
        // forgotten. The entry excluded another opening, so the gate is open as it was. No task
        // waits for the entry: the word has neither `WAITED` nor `WATCHED`.
        let closed = may() && self.word.cmpxchg(word + 1, word & !OPEN, Full).is_ok();
        if closed {
            core::mem::forget(inside);
        }
        closed
    }

    /// Returns true if the gate is closed and the last entry has left. The effects of the entries
    /// are visible then.
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.word.load(Acquire) & (OPEN | ENTRIES) == 0
    }

    /// Waits until the gate has neither an entry nor an [`Opening`], or was opened again. The
    /// effects of the entries are visible then. One task at a time: the one that closes the gate.
    /// May sleep.
    pub(crate) fn wait_until_unused(&self) {
        // Set before the test for entries: the last entry sees the bit as it leaves.
        let waits = self.update(|word| match word & (ENTRIES | BUSY) {
            0 => Err(()),
            _ => Ok(word | WAITED),
        });
        if waits.is_ok() {
            // SAFETY: The word lives as long as `self`; the function only reads it.
            unsafe { bindings::ndk_wait_for(self.word.as_ptr(), ENTRIES | BUSY, OPEN) };
        }
        // An error means that the bit was not set.
        let _ = self.update(|word| match word & WAITED {
            0 => Err(()),
            _ => Ok(word & !WAITED),
        });
    }

    /// Returns true if the gate is open now; the effects of earlier entries are visible then.
    pub(crate) fn is_open(&self) -> bool {
        self.word.load(Acquire) & OPEN != 0
    }

    /// The open state, the drained state and the key of the last opening, all of one moment.
    pub(crate) fn snapshot(&self) -> (bool, bool, u8) {
        let word = self.word.load(Acquire);
        let drained = word & (OPEN | ENTRIES) == 0;
        (word & OPEN != 0, drained, key_of(word))
    }

    /// The key of the last opening.
    pub(crate) fn key(&self) -> u8 {
        key_of(self.word.load(Relaxed))
    }

    /// Takes a closed and drained gate, to change the value and open it again.
    ///
    /// `None` while the gate is open, has entries, or has another [`Opening`].
    pub(crate) fn begin(&self) -> Option<Opening<'_, T, W>> {
        // INVARIANT: `BUSY` is set only without `OPEN`, `BUSY` and entries; this pairs with the
        // last leave.
        let taken = self.update(|word| match word & (OPEN | BUSY | ENTRIES) {
            0 => Ok(word | BUSY),
            _ => Err(()),
        });
        taken.is_ok().then(|| Opening { gate: self })
    }
}

/// The key of the last opening.
#[inline]
const fn key_of(word: u64) -> u8 {
    // CAST: the key is the lowest byte then.
    (word >> KEY_SHIFT) as u8
}

#[inline]
fn check(word: u64, key: Option<u8>) -> Result<(), Refused> {
    if word & OPEN == 0 {
        return Err(Refused::NotOpen);
    }
    match key {
        Some(key) if key_of(word) != key => Err(Refused::WrongKey),
        Some(_) | None => Ok(()),
    }
}

/// An entry: the right to use the value of a gate that was open. Leaves on drop.
pub(crate) struct GateGuard<'a, T, W: Watcher = ()> {
    gate: &'a Gate<T, W>,
}

impl<T, W: Watcher> GateGuard<'_, T, W> {
    /// Closes the gate, if it was not closed since this entry: no new entry from now on. This ends
    /// the opening that was entered: the value does not change before this entry has left.
    ///
    /// [`Refused::NotOpen`] if the gate was closed before. Any context.
    pub(crate) fn close(&self) -> Result<(), Refused> {
        self.gate.close(None)
    }
}

impl<T, W: Watcher> Deref for GateGuard<'_, T, W> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: While a `GateGuard` exists the count is not zero, so no `Opening` exists and no
        // `&mut T` either (type invariants of `Gate`).
        unsafe { &*self.gate.value.get() }
    }
}

impl<T, W: Watcher> Drop for GateGuard<'_, T, W> {
    #[inline]
    fn drop(&mut self) {
        // INVARIANT: one `GateGuard` less. `Full` makes the effects of the entry visible to a
        // caller that sees the gate drained, and orders the leave before the search for a waiter. A
        // waiter sets its bit before it tests for entries, so one of the two sees the other.
        let old = self.gate.word.fetch_sub(1, Full);
        if old & (WAITED | WATCHED) != 0 && old & ENTRIES == 1 {
            self.gate.notify(old);
        }
    }
}

/// The exclusive right to change the value of a closed, drained gate.
pub(crate) struct Opening<'a, T, W: Watcher = ()> {
    gate: &'a Gate<T, W>,
}

impl<T, W: Watcher> Opening<'_, T, W> {
    /// Opens the gate under `key`.
    pub(crate) fn open(self, key: u8) {
        let key = u64::from(key) << KEY_SHIFT;
        // INVARIANT: `BUSY` is cleared as the `Opening` goes, and `OPEN` is set. While `BUSY` is
        // set, other callers change only `WAITED` and `WATCHED`.
        self.end(|word| OPEN | key | word & (WAITED | WATCHED));
        core::mem::forget(self);
    }

    /// Replaces the word by the result of `change`, and notifies the waiter and the watcher.
    fn end(&self, change: impl Fn(u64) -> u64) {
        let Ok(old) = self.gate.update(|word| Ok::<_, Infallible>(change(word)));
        if old & (WAITED | WATCHED) != 0 {
            self.gate.notify(old);
        }
    }
}

impl<T, W: Watcher> Deref for Opening<'_, T, W> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: There is one `Opening` and no `GateGuard` (type invariants of `Gate`).
        unsafe { &*self.gate.value.get() }
    }
}

impl<T, W: Watcher> DerefMut for Opening<'_, T, W> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: There is one `Opening` and no `GateGuard` (type invariants of `Gate`).
        unsafe { &mut *self.gate.value.get() }
    }
}

impl<T, W: Watcher> Drop for Opening<'_, T, W> {
    fn drop(&mut self) {
        // INVARIANT: `BUSY` is cleared as the `Opening` goes.
        self.end(|word| word & !BUSY);
    }
}
