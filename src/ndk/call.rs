// SPDX-License-Identifier: GPL-2.0

//! Calls back to a consumer, and work that ends in one.
//!
//! A consumer is called with softirqs off, or in softirq, even where this face may sleep: NDKPI
//! calls back at DISPATCH_LEVEL, where a callback may not sleep. A consumer is never called from
//! inside one of its own calls, nor under a lock (FACE-06).

use kernel::alloc::Flags;

use super::prelude::*;
use crate::sys::softirq::BhDisabled;

/// A function that is called at most once.
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

/// Calls a consumer, with softirqs off.
pub(crate) fn call_consumer<R>(call: impl FnOnce() -> R) -> R {
    // Softirqs are off already in softirq, and with interrupts off.
    let _softirqs_off = BhDisabled::enter();
    call()
}

/// Runs work, in which allocations fail where a test has planned so.
pub(crate) fn with_planned_faults<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(ndk_kunit)]
    let _fault = crate::sys::fault::begin_planned();
    work()
}
