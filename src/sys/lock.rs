// SPDX-License-Identifier: GPL-2.0

//! A spinlock that may be taken in any context.
//!
//! Verbs consumers post and poll from process context, from softirq, and with
//! interrupts disabled, so the locks on those paths save and restore the
//! interrupt state. [`kernel::sync::SpinLockIrq`] does so too, but counts
//! nested sections in the preemption counter; this backend keeps the state in
//! the guard, as `spin_lock_irqsave()` does, and costs less.
//!
//! Guards of nested locks must go in the reverse order of taking: a guard
//! restores the interrupt state that it found.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use kernel::{
    ffi::{
        c_char,
        c_ulong, //
    },
    sync::lock::{
        Backend,
        Guard,
        Lock, //
    },
};

use crate::bindings;

/// A spinlock that disables local interrupts while it is held.
///
/// Any context but NMI. The holder must not sleep. Made by [`new_spin_irq!`].
pub(crate) type SpinIrq<T> = Lock<T, IrqSave>;

/// The guard of a [`SpinIrq`]; dropping it unlocks and restores interrupts.
pub(crate) type SpinIrqGuard<'a, T> = Guard<'a, T, IrqSave>;

/// Creates an initialiser for a [`SpinIrq`], with a lock class of its own.
macro_rules! new_spin_irq {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::sys::lock::SpinIrq::new(
            $inner, ::kernel::optional_name!($($name)?), ::kernel::static_lock_class!())
    };
}
pub(crate) use new_spin_irq;

/// The lock backend over `spin_lock_irqsave()`.
pub(crate) struct IrqSave;

// SAFETY: `spinlock_t` gives mutual exclusion between `lock` and `unlock`; `relock` is the default,
// which calls `lock` again.
unsafe impl Backend for IrqSave {
    type State = bindings::spinlock_t;
    type GuardState = c_ulong;

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller gives a writable `ptr`, and `name` and `key` that live on.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller guarantees that `init` was called on `ptr`.
        unsafe { bindings::ndk_spin_lock_irqsave(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: The caller guarantees that `init` was called on `ptr`; `flags` is writable.
        let taken = unsafe { bindings::ndk_spin_trylock_irqsave(ptr, &mut flags) };
        taken.then_some(flags)
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, guard_state: &Self::GuardState) {
        // SAFETY: The caller owns the lock, and `guard_state` is what taking it returned.
        unsafe { bindings::ndk_spin_unlock_irqrestore(ptr, *guard_state) }
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: The caller guarantees that `init` was called on `ptr`.
        unsafe { bindings::spin_assert_is_held(ptr) }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_lock)]
mod tests {
    use super::*;
    use crate::sys::softirq;
    use kernel::prelude::*;

    #[test]
    fn holder_has_interrupts_off_and_gives_them_back() -> Result {
        let lock = KBox::pin_init(new_spin_irq!(1u32), GFP_KERNEL)?;
        assert!(softirq::may_run_here());
        {
            let mut guard = lock.lock();
            assert!(!softirq::may_run_here());
            *guard += 1;
        }
        assert!(softirq::may_run_here());
        assert_eq!(*lock.lock(), 2);
        Ok(())
    }

    #[test]
    fn held_lock_refuses_a_second_taker() -> Result {
        let lock = KBox::pin_init(new_spin_irq!(()), GFP_KERNEL)?;
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
        Ok(())
    }

    #[test]
    fn nested_locks_restore_step_by_step() -> Result {
        let queue = KBox::pin_init(new_spin_irq!(()), GFP_KERNEL)?;
        let cq = KBox::pin_init(new_spin_irq!(()), GFP_KERNEL)?;
        let outer = queue.lock();
        drop(cq.lock());
        assert!(!softirq::may_run_here());
        drop(outer);
        assert!(softirq::may_run_here());
        Ok(())
    }
}
