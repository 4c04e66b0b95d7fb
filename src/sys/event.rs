// SPDX-License-Identifier: GPL-2.0

//! A completion that any context but NMI may signal.
//!
//! Adds to [`kernel::sync::Completion`] a bounded wait and a reset.
//!
//! C header: [`include/linux/completion.h`](srctree/include/linux/completion.h)

use kernel::{
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

use crate::bindings;

/// An event that happens once, until [`Event::reset`].
#[pin_data]
pub(crate) struct Event {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: A `struct completion` locks internally and belongs to no thread.
unsafe impl Send for Event {}
// SAFETY: A `struct completion` locks internally.
unsafe impl Sync for Event {}

impl Event {
    /// Makes an event that has not happened.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is writable memory that stays where it is.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Signals the event and wakes every waiter. Any context but NMI. C: `complete_all()`.
    pub(crate) fn signal(&self) {
        // SAFETY: `new` initialised the completion.
        unsafe { bindings::complete_all(self.inner.get()) };
    }

    /// Waits for the event without a time limit. Process context.
    pub(crate) fn wait(&self) {
        // SAFETY: `new` initialised the completion.
        unsafe { bindings::wait_for_completion(self.inner.get()) };
    }

    /// Waits for at most `ms` milliseconds; true if the event happened. Process context.
    pub(crate) fn wait_timeout(&self, ms: u32) -> bool {
        let limit = msecs_to_jiffies(ms);
        // SAFETY: `new` initialised the completion.
        unsafe { bindings::wait_for_completion_timeout(self.inner.get(), limit) != 0 }
    }

    /// Clears the event; no task may be waiting.
    pub(crate) fn reset(&self) {
        // SAFETY: `new` initialised the completion.
        unsafe { bindings::ndk_completion_reinit(self.inner.get().cast()) };
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_event)]
mod tests {
    use super::*;

    #[test]
    fn event_stays_until_reset() -> Result {
        let event = KBox::pin_init(Event::new(), GFP_KERNEL)?;
        assert!(!event.wait_timeout(1));
        event.signal();
        event.wait();
        assert!(event.wait_timeout(1));
        event.reset();
        assert!(!event.wait_timeout(1));
        Ok(())
    }
}
