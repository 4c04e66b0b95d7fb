// SPDX-License-Identifier: GPL-2.0

//! Calls back to a consumer, and work that ends in one.
//!
//! A consumer is called with softirqs off, or in softirq: NDKPI calls back at DISPATCH_LEVEL, where
//! nobody may sleep, and so does this face even where it could. It is never called from inside a
//! call of its own, nor under a lock (FACE-06).

use kernel::alloc::Flags;

use super::prelude::*;
use crate::sys::softirq::BhDisabled;

/// Something that is called once, at most.
pub(crate) trait Call<A>: Send {
    fn call(&mut self, with: A);
}

/// A callback, boxed. Dropping it uncalled is fine.
pub(crate) type DoneFn<A> = KBox<dyn Call<A>>;

/// A closure that is called once.
struct Once<F>(Option<F>);

impl<A, F: FnOnce(A) + Send> Call<A> for Once<F> {
    fn call(&mut self, with: A) {
        if let Some(f) = self.0.take() {
            f(with);
        }
    }
}

/// Boxes a closure; `INSUFFICIENT_RESOURCES` when there is no memory.
pub(crate) fn done<A: 'static>(
    flags: Flags,
    f: impl FnOnce(A) + Send + 'static,
) -> Result<DoneFn<A>, NtStatus> {
    Ok(KBox::new(Once(Some(f)), flags)?)
}

/// Calls a consumer as all consumers are called.
pub(crate) fn consumer<R>(call: impl FnOnce() -> R) -> R {
    // In softirq, and with interrupts off, there is nothing to switch off.
    let _softirqs_off = BhDisabled::enter();
    call()
}

/// Runs work, in which allocations fail where a test has planned so.
pub(crate) fn planned<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(ndk_kunit)]
    let _fault = crate::sys::fault::begin_planned();
    work()
}
