// SPDX-License-Identifier: GPL-2.0

//! [`Global`]: the one value of its kind in the module, set at load and taken back at unload.
//!
//! The kernel calls providers without a pointer of theirs in a few places (`rdma link add`); this
//! is where they find what belongs to the whole module.

use core::cell::UnsafeCell;

use kernel::sync::{
    atomic::{
        ordering::{
            Acquire,
            Release, //
        },
        Atomic, //
    },
    Arc, //
};

const FREE: u32 = 0;
const BUSY: u32 = 1;

/// A place for a shared value.
///
/// # Invariants
///
/// `value` is touched only by whoever changed `state` from `FREE` to `BUSY`.
pub(crate) struct Global<T> {
    state: Atomic<u32>,
    value: UnsafeCell<Option<Arc<T>>>,
}

// SAFETY: By the invariant one thread at a time touches the value, which may be sent and shared.
unsafe impl<T: Send + Sync> Sync for Global<T> {}

impl<T> Global<T> {
    /// An empty place.
    pub(crate) const fn new() -> Self {
        Self {
            state: Atomic::new(FREE),
            value: UnsafeCell::new(None),
        }
    }

    /// Runs `f` alone with the value; `f` lasts no longer than a reference count takes.
    fn alone<R>(&self, f: impl FnOnce(&mut Option<Arc<T>>) -> R) -> R {
        while self.state.cmpxchg(FREE, BUSY, Acquire).is_err() {
            core::hint::spin_loop();
        }
        // SAFETY: By the invariant nobody else touches the value now.
        let result = f(unsafe { &mut *self.value.get() });
        self.state.store(FREE, Release);
        result
    }

    /// The value, if one is set. Process context.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.alone(|value| value.clone())
    }

    /// Sets or takes back the value, and returns the one before. Process context.
    pub(crate) fn replace(&self, new: Option<Arc<T>>) -> Option<Arc<T>> {
        self.alone(|value| core::mem::replace(value, new))
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_global)]
mod tests {
    use super::*;
    use kernel::prelude::*;

    #[test]
    fn a_value_is_there_from_set_to_take() -> Result {
        let place = Global::new();
        assert!(place.get().is_none());
        let value = Arc::new(7u32, GFP_KERNEL)?;
        assert!(place.replace(Some(value)).is_none());
        assert!(place.get().is_some_and(|v| *v == 7));
        assert!(place.replace(None).is_some());
        assert!(place.get().is_none());
        Ok(())
    }
}
