// SPDX-License-Identifier: GPL-2.0

//! [`Global`]: the one value of its kind in the module, set at load and taken back at unload.
//!
//! The kernel calls providers without a pointer of theirs in a few places (`rdma link add`); this
//! is where they find what belongs to the whole module.
//!
//! The lock is made at compile time, by C. One of the kernel's `global_lock!` has to be initialised
//! before its first use, and that promise is unsafe. `src/rdma/link.rs` could give it: its
//! operations are called only after it has registered them. [`Global::get`] and
//! [`Global::replace`] could not: they are safe, and may be called before any initialisation.

use core::cell::UnsafeCell;

use kernel::sync::Arc;

use crate::bindings;

/// A place for a shared value.
///
/// # Invariants
///
/// `value` is touched only under the lock that all such places share.
pub(crate) struct Global<T> {
    value: UnsafeCell<Option<Arc<T>>>,
}

// SAFETY: By the invariant one thread at a time touches the value, which may be sent and shared.
unsafe impl<T: Send + Sync> Sync for Global<T> {}

impl<T> Global<T> {
    /// An empty place.
    pub(crate) const fn new() -> Self {
        Self {
            value: UnsafeCell::new(None),
        }
    }

    /// Runs `f` alone with the value; `f` does no more than count references.
    fn alone<R>(&self, f: impl FnOnce(&mut Option<Arc<T>>) -> R) -> R {
        // SAFETY: The lock is static, and not held: nothing that is called under it gets here.
        unsafe { bindings::ndk_globals_lock() };
        // SAFETY: By the invariant nobody else touches the value while the lock is held.
        let result = f(unsafe { &mut *self.value.get() });
        // SAFETY: Taken above, by this thread.
        unsafe { bindings::ndk_globals_unlock() };
        result
    }

    /// The value, if one is set. May sleep.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.alone(|value| value.clone())
    }

    /// Sets or takes back the value, and returns the one before. May sleep.
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
