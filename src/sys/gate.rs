// SPDX-License-Identifier: GPL-2.0

//! [`Gate`]: a value that others may use while it is open, and that nobody uses after it closed.
//!
//! This is the one mechanism behind every revocation of the project: local and remote
//! invalidation, deregistration, unbinding a window. Whoever wants to use the value enters with a
//! key and leaves when done; the owner closes, which stops new entries at once, and then asks
//! [`Gate::is_drained`] until the last one has left, waits for that, or has a [`Watcher`] called.
//! One atomic word holds everything, so an entry costs one atomic operation and so does leaving.
//!
//! ```text
//!            Opening::open(key)                 close(key)
//!   closed ----------------------> open -------------------------> closing --(last leave)--> closed
//!     ^ begin(): only here is `&mut T` given out
//! ```
//!
//! Context: everything here may be called from any context and never sleeps or spins unboundedly,
//! but for [`Gate::wait_until_left`].
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
/// Somebody waits until nobody is inside and nobody changes the value.
const WAITED: u64 = 1 << 42;
/// The watcher is to be called then.
const WATCHED: u64 = 1 << 43;

/// Who is called when nobody is inside a gate any more, and nobody changes the value: once for each
/// [`Gate::watch`], or more often.
pub(crate) trait Watcher {
    /// It is so, or was a moment ago. Any context, under the locks of who left.
    fn left(&self);
}

/// Nobody.
impl Watcher for () {
    fn left(&self) {}
}

/// A value that is shared while open and exclusive while closed and drained.
///
/// # Invariants
///
/// - `word` bits 0 to 31 count the [`GateGuard`] that exist.
/// - `OPEN` and `BUSY` are never set together.
/// - `BUSY` is set exactly while an [`Opening`] exists; it is set only when no entry exists.
/// - `&T` exists only under an [`GateGuard`], `&mut T` only under the [`Opening`].
#[pin_data]
pub(crate) struct Gate<T, W: Watcher = ()> {
    word: Atomic<u64>,
    value: UnsafeCell<T>,
    /// Who may watch.
    #[pin]
    pub(crate) watcher: W,
}

// SAFETY: `Gate` owns its `T` and its `W`; sending the gate sends them.
unsafe impl<T: Send, W: Watcher + Send> Send for Gate<T, W> {}
// SAFETY: By the invariants `&T` is shared between threads (needs `Sync`) and `&mut T` moves
// between them (needs `Send`), and the two never exist at once. `&W` is shared.
unsafe impl<T: Send + Sync, W: Watcher + Sync> Sync for Gate<T, W> {}

/// Why an entry or a closing was refused.
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

    /// Has the watcher called, unless it is not to be waited for: the gate is open, or nobody is
    /// inside and nobody changes the value. Returns true if it will be called, or has been by now.
    /// What the entries did is visible then.
    pub(crate) fn watch(&self) -> bool {
        let asked = self.update(|word| match word & (OPEN | BUSY | ENTRIES) {
            busy if busy & OPEN == 0 && busy != 0 => Ok(word | WATCHED),
            _ => Err(()),
        });
        asked.is_ok()
    }

    /// Nobody is inside any more, or nobody changes the value: notifies those that had asked for
    /// that when the word was `old`.
    #[cold]
    fn notify(&self, old: u64) {
        if old & WAITED != 0 {
            // SAFETY: The function compares the address and does not follow it.
            unsafe { bindings::ndk_wake_waiters(self.word.as_ptr()) };
        }
        if old & WATCHED != 0 {
            // First: who asks from here on is called once more.
            let Ok(_) = self.update(|word| Ok::<_, Infallible>(word & !WATCHED));
            self.watcher.left();
        }
    }

    /// Enters, if the gate is open under `key`. The gate is not drained until the result drops.
    #[inline]
    pub(crate) fn enter(&self, key: u8) -> Result<GateGuard<'_, T, W>, Refused> {
        self.enter_under(Some(key))
    }

    /// Enters, if the gate is open, whatever its key is.
    #[inline]
    pub(crate) fn enter_any(&self) -> Result<GateGuard<'_, T, W>, Refused> {
        self.enter_under(None)
    }

    #[inline]
    fn enter_under(&self, key: Option<u8>) -> Result<GateGuard<'_, T, W>, Refused> {
        // `Acquire`, so that who is refused sees why the gate was closed.
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
    /// Entries that exist go on; [`Gate::is_drained`] returns true once the last one has left.
    pub(crate) fn close(&self, key: Option<u8>) -> Result<(), Refused> {
        self.update(|word| check(word, key).map(|()| word & !OPEN))?;
        Ok(())
    }

    /// Makes of the word what `change` says and returns what it was, unless that is an error.
    fn update<E>(&self, change: impl Fn(u64) -> Result<u64, E>) -> Result<u64, E> {
        loop {
            // `Acquire`, so that who goes by an error sees what led to it.
            let word = self.word.load(Acquire);
            if self.word.cmpxchg(word, change(word)?, Full).is_ok() {
                return Ok(word);
            }
        }
    }

    /// Closes the gate, if it is open (under `key`, when one is given), no entry exists, and `may`
    /// agrees; else it stays as it is. Returns true if it did; what earlier entries did is visible
    /// then.
    ///
    /// `may` is asked from inside: what it looks at does not change with the gate before that is
    /// closed.
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
        // INVARIANT: one `GateGuard` less: the one inside leaves with the closing and is forgotten.
        // As it was there until then, the gate is open as it was. No task waits for it to leave.
        let closed = may() && self.word.cmpxchg(word + 1, word & !OPEN, Full).is_ok();
        if closed {
            core::mem::forget(inside);
        }
        closed
    }

    /// Returns true if the gate is closed and the last entry has left. What they did is visible
    /// then.
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.word.load(Acquire) & (OPEN | ENTRIES) == 0
    }

    /// Waits until there is no entry and nobody changes the value, or the gate was opened again.
    /// What the entries did is visible then. One at a time: for the one who closes it. May sleep.
    pub(crate) fn wait_until_left(&self) {
        // Before it is looked whether one is left: the last one that leaves sees this.
        let waits = self.update(|word| match word & (ENTRIES | BUSY) {
            0 => Err(()),
            _ => Ok(word | WAITED),
        });
        if waits.is_ok() {
            // SAFETY: The word is there as long as `self` is; the function reads it only.
            unsafe { bindings::ndk_wait_for(self.word.as_ptr(), ENTRIES | BUSY, OPEN) };
        }
        // An error means that nobody waited.
        let _ = self.update(|word| match word & WAITED {
            0 => Err(()),
            _ => Ok(word & !WAITED),
        });
    }

    /// Returns true if the gate is open now; then what earlier entries did is visible, too.
    pub(crate) fn is_open(&self) -> bool {
        self.word.load(Acquire) & OPEN != 0
    }

    /// Whether the gate is open, whether it is drained, and the key of the last opening; all at one
    /// time.
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
    /// `None` while it is open, has entries left, or somebody else holds it.
    pub(crate) fn begin(&self) -> Option<Opening<'_, T, W>> {
        // INVARIANT: `BUSY` is set when neither `OPEN` nor an entry is there; this pairs with the
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

/// The right to use the value of an open gate; leaves on drop.
pub(crate) struct GateGuard<'a, T, W: Watcher = ()> {
    gate: &'a Gate<T, W>,
}

impl<T, W: Watcher> GateGuard<'_, T, W> {
    /// Closes the gate, if it was not closed since this entered: no new entry from now on. That
    /// ends what this entered, for the value does not change before this has left.
    ///
    /// [`Refused::NotOpen`] if it was closed before. Any context.
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
        // INVARIANT: one `GateGuard` less. `Full` hands what it did to whoever sees the gate
        // drained, and orders the leave before what comes next: who leaves looks then whether
        // somebody waits for that, and who waits has said so before it looks whether all have left.
        // One of the two sees the other.
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
        // INVARIANT: `BUSY` goes as the `Opening` goes, and `OPEN` comes: nobody else changes the
        // word while `BUSY` is set, but for who waits.
        self.end(|word| OPEN | key | word & (WAITED | WATCHED));
        core::mem::forget(self);
    }

    /// Makes of the word what `change` says, and notifies those that wait for that.
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
        // INVARIANT: `BUSY` goes as the `Opening` goes.
        self.end(|word| word & !BUSY);
    }
}
