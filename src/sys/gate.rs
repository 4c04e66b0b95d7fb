// SPDX-License-Identifier: GPL-2.0

//! [`Gate`]: a value that others may use while it is open, and that nobody uses after it closed.
//!
//! This is the one mechanism behind every revocation of the project: local and remote
//! invalidation, deregistration, unbinding a window. Whoever wants to use the value enters with a
//! key and leaves when done; the owner closes, which stops new entries at once, and then asks
//! [`Gate::is_drained`] until the last one has left. One atomic word holds everything, so an entry
//! costs one atomic operation and so does leaving.
//!
//! ```text
//!            Opening::open(key)                 close(key)
//!   closed ----------------------> open -------------------------> closing --(last leave)--> closed
//!     ^ begin(): only here is `&mut T` given out
//! ```
//!
//! Context: everything here may be called from any context and never sleeps or spins unboundedly,
//! but for [`Gate::wait_until_left`].

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
/// Somebody waits for the last entry to leave.
const WAITED: u64 = 1 << 42;

/// A value that is shared while open and exclusive while closed and quiet.
///
/// # Invariants
///
/// - `word` bits 0 to 31 count the [`GateGuard`] that exist.
/// - `OPEN` and `BUSY` are never set together.
/// - `BUSY` is set exactly while an [`Opening`] exists; it is set only when no entry exists.
/// - `&T` exists only under an [`GateGuard`], `&mut T` only under the [`Opening`].
pub(crate) struct Gate<T> {
    word: Atomic<u64>,
    value: UnsafeCell<T>,
}

// SAFETY: `Gate` owns its `T`; sending the gate sends it.
unsafe impl<T: Send> Send for Gate<T> {}
// SAFETY: By the invariants `&T` is shared between threads (needs `Sync`) and `&mut T` moves
// between them (needs `Send`), and the two never exist at once.
unsafe impl<T: Send + Sync> Sync for Gate<T> {}

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
        }
    }

    /// Enters, if the gate is open under `key`. The gate is not drained until the result drops.
    #[inline]
    pub(crate) fn enter(&self, key: u8) -> Result<GateGuard<'_, T>, Refused> {
        self.enter_under(Some(key))
    }

    /// Enters, if the gate is open, whatever its key is.
    #[inline]
    pub(crate) fn enter_any(&self) -> Result<GateGuard<'_, T>, Refused> {
        self.enter_under(None)
    }

    #[inline]
    fn enter_under(&self, key: Option<u8>) -> Result<GateGuard<'_, T>, Refused> {
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

    /// Closes the gate, if it is open (under `key`, when one is given) and nobody is inside; else
    /// it stays as it is. Returns true if it did; what earlier entries did is visible then.
    #[inline]
    pub(crate) fn close_unused(&self, key: Option<u8>) -> bool {
        let word = self.word.load(Relaxed);
        let unused = check(word, key).is_ok() && word & ENTRIES == 0;
        unused && self.word.cmpxchg(word, word & !OPEN, Full).is_ok()
    }

    /// Returns true if the gate is closed and the last entry has left. What they did is visible
    /// then.
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.word.load(Acquire) & (OPEN | ENTRIES) == 0
    }

    /// Waits until there is no entry, or the gate was opened again. What the entries did is visible
    /// then. One at a time: for the one who closes it. May sleep.
    pub(crate) fn wait_until_left(&self) {
        // Before it is looked whether one is left: the last one that leaves sees this.
        let waits = self.update(|word| match word & ENTRIES {
            0 => Err(()),
            _ => Ok(word | WAITED),
        });
        if waits.is_ok() {
            // SAFETY: The word is there as long as `self` is; the function reads it only.
            unsafe { bindings::ndk_wait_for(self.word.as_ptr(), ENTRIES, OPEN) };
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

    /// Returns true if the gate is open, or else quiet, and the key of the last opening; all at one
    /// time.
    pub(crate) fn snapshot(&self) -> (bool, bool, u8) {
        let word = self.word.load(Acquire);
        let quiet = word & (OPEN | ENTRIES) == 0;
        (word & OPEN != 0, quiet, key_of(word))
    }

    /// Returns true if somebody changes the value now.
    pub(crate) fn is_held(&self) -> bool {
        self.word.load(Relaxed) & BUSY != 0
    }

    /// The key of the last opening.
    pub(crate) fn key(&self) -> u8 {
        key_of(self.word.load(Relaxed))
    }

    /// Takes a closed and quiet gate, to change the value and open it again.
    ///
    /// `None` while it is open, has entries left, or somebody else holds it.
    pub(crate) fn begin(&self) -> Option<Opening<'_, T>> {
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
pub(crate) struct GateGuard<'a, T> {
    gate: &'a Gate<T>,
}

impl<T> Deref for GateGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: While a `GateGuard` exists the count is not zero, so no `Opening` exists and no
        // `&mut T` either (type invariants of `Gate`).
        unsafe { &*self.gate.value.get() }
    }
}

impl<T> Drop for GateGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let word: *const u64 = self.gate.word.as_ptr();
        // INVARIANT: one `GateGuard` less. `Full` hands what it did to whoever sees quiet, and
        // orders the leave before what comes next: who leaves looks then whether somebody waits for
        // that, and who waits has said so before it looks whether all have left. One of the two
        // sees the other.
        let old = self.gate.word.fetch_sub(1, Full);
        if old & WAITED != 0 && old & ENTRIES == 1 {
            // SAFETY: The function compares the address, which may be one of the past by now, and
            // does not follow it.
            unsafe { bindings::ndk_wake_waiters(word) };
        }
    }
}

/// The exclusive right to change the value of a closed, quiet gate.
pub(crate) struct Opening<'a, T> {
    gate: &'a Gate<T>,
}

impl<T> Opening<'_, T> {
    /// Opens the gate under `key`.
    pub(crate) fn open(self, key: u8) {
        // INVARIANT: `BUSY` goes as the `Opening` goes, and `OPEN` comes: nobody else changes the
        // word while `BUSY` is set, but for who has waited.
        let key = u64::from(key) << KEY_SHIFT;
        let Ok(old) = self
            .gate
            .update(|old| Ok::<_, Infallible>(OPEN | key | old & WAITED));
        if old & WAITED != 0 {
            // SAFETY: The function compares the address and does not follow it.
            unsafe { bindings::ndk_wake_waiters(self.gate.word.as_ptr()) };
        }
        core::mem::forget(self);
    }
}

impl<T> Deref for Opening<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: There is one `Opening` and no `GateGuard` (type invariants of `Gate`).
        unsafe { &*self.gate.value.get() }
    }
}

impl<T> DerefMut for Opening<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: There is one `Opening` and no `GateGuard` (type invariants of `Gate`).
        unsafe { &mut *self.gate.value.get() }
    }
}

impl<T> Drop for Opening<'_, T> {
    fn drop(&mut self) {
        // INVARIANT: `BUSY` goes as the `Opening` goes.
        let Ok(_) = self.gate.update(|word| Ok::<_, Infallible>(word & !BUSY));
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_gate)]
mod tests {
    use super::*;
    use crate::sys::{
        event::Event,
        softirq::ProcessQueue, //
    };
    use kernel::{
        sync::{
            atomic::AtomicFlag,
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    fn open_gate(value: u32, key: u8) -> Gate<u32> {
        let gate = Gate::new(value);
        if let Some(opening) = gate.begin() {
            opening.open(key);
        }
        gate
    }

    #[test]
    fn a_new_gate_is_closed_and_quiet() {
        let gate = Gate::new(1u32);
        assert!(gate.enter(0).is_err());
        assert!(gate.is_drained());
    }

    #[test]
    fn the_key_is_compared() {
        let gate = open_gate(5, 3);
        assert!(gate.enter(3).is_ok_and(|v| *v == 5));
        assert!(matches!(gate.enter(4), Err(Refused::WrongKey)));
        assert!(gate.close(Some(4)) == Err(Refused::WrongKey));
        assert!(gate.close(Some(3)) == Ok(()));
        assert!(gate.close(Some(3)) == Err(Refused::NotOpen));
    }

    #[test]
    fn closing_stops_new_entries_and_quiet_waits_for_the_old_ones() {
        let gate = open_gate(5, 3);
        let inside = gate.enter(3);
        assert!(inside.is_ok());
        assert!(gate.close(None) == Ok(()));
        assert!(gate.enter(3).is_err());
        assert!(!gate.is_drained());
        assert!(gate.begin().is_none());
        drop(inside);
        assert!(gate.is_drained());
        assert!(gate.begin().is_some());
    }

    #[test]
    fn a_gate_that_somebody_uses_is_not_closed_as_unused() {
        let gate = open_gate(5, 3);
        let inside = gate.enter(3);
        assert!(!gate.close_unused(Some(3)) && gate.is_open());
        drop(inside);
        assert!(!gate.close_unused(Some(4)) && gate.is_open());
        assert!(gate.close_unused(Some(3)) && gate.is_drained());
        assert!(!gate.close_unused(Some(3)) && !gate.close_unused(None));
    }

    #[test]
    fn who_waits_goes_on_when_the_last_has_left() -> Result {
        let gate = Arc::new(open_gate(5, 3), GFP_KERNEL)?;
        let threads = ProcessQueue::new(c"ndk_test_gate")?;
        let begun = Arc::pin_init(Event::new(), GFP_KERNEL)?;
        for _ in 0..100 {
            let (theirs, entered) = (gate.clone(), begun.clone());
            let seen = Arc::new(AtomicFlag::new(false), GFP_KERNEL)?;
            let left = seen.clone();
            threads.spawn(GFP_KERNEL, move || {
                let inside = theirs.enter(3);
                entered.signal();
                fsleep(Delta::from_micros(100));
                left.store(inside.as_ref().is_ok_and(|value| **value == 5), Relaxed);
                drop(inside);
            })?;
            begun.wait();
            begun.reset();
            let closed = gate.close(None);
            gate.wait_until_left();
            // What was done inside is seen.
            assert!(closed == Ok(()) && seen.load(Relaxed) && gate.is_drained());
            if let Some(opening) = gate.begin() {
                opening.open(3);
            }
        }
        // With nobody inside there is nothing to wait for.
        gate.wait_until_left();
        assert!(gate.is_open());
        Ok(())
    }

    #[test]
    fn an_opening_is_exclusive_and_may_be_given_up() {
        let gate = Gate::new(1u32);
        let first = gate.begin();
        assert!(first.is_some());
        assert!(gate.begin().is_none());
        drop(first);
        assert!(gate.is_drained() && !gate.is_open());
        if let Some(mut second) = gate.begin() {
            *second = 2;
            second.open(9);
        }
        assert!(gate.key() == 9);
        assert!(gate.enter(9).is_ok_and(|v| *v == 2));
    }
}
