// SPDX-License-Identifier: GPL-2.0

//! [`Global`]: the one value of its kind in the module, set at load and taken back at unload.
//!
//! In a few places (`rdma link add`) the kernel calls a provider without a pointer to its data: the
//! provider finds the data of the whole module here.
//!
//! C initialises the lock at compile time. A lock of the kernel's `global_lock!` must be
//! initialised before its first use, and that promise is unsafe. `src/rdma/link.rs` could give it:
//! the kernel calls its operations only after their registration. [`Global::get`] and
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

    /// Runs `f` on the value under the lock; `f` only counts or moves references.
    fn with_lock<R>(&self, f: impl FnOnce(&mut Option<Arc<T>>) -> R) -> R {
        // SAFETY: The lock is static, and this task does not hold it: no code that runs under it
        // calls this.
        unsafe { bindings::ndk_globals_lock() };
        // SAFETY: By the invariant the value is accessed only under the lock, which is held.
        let result = f(unsafe { &mut *self.value.get() });
        // SAFETY: The lock was taken above, by this thread.
        unsafe { bindings::ndk_globals_unlock() };
        result
    }

    /// The value, if one is set. May sleep.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.with_lock(|value| value.clone())
    }

    /// Sets or takes back the value, and returns the one before. May sleep.
    pub(crate) fn replace(&self, new: Option<Arc<T>>) -> Option<Arc<T>> {
        self.with_lock(|value| core::mem::replace(value, new))
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
