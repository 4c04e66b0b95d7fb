// SPDX-License-Identifier: GPL-2.0

//! [`Upcalls`]: the rules under which a consumer is called back.
//!
//! - Never inside a call that the consumer made, and never under a lock: calls come from softirq,
//!   which may well run where a posting call enables softirqs again, as it does for every network
//!   device. Whoever has news calls [`Upcalls::raise`] and queues the softirq work of its object, which calls
//!   [`Upcalls::run`].
//! - One call at a time per object: a work item does not run twice at once.
//! - None after [`Upcalls::close`] returned.
//!
//! Lock order: the lock inside is a leaf.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::SpinLockIrq, //
};

use crate::sys::event::Event;

struct State {
    /// What is to be told, one bit a kind; the work is queued while it is not zero.
    due: u32,
    running: bool,
    closed: bool,
}

/// The news that wait to be told to the owner of one object.
#[pin_data]
pub(crate) struct Upcalls {
    #[pin]
    state: SpinLockIrq<State>,
    #[pin]
    quiet: Event,
}

impl Upcalls {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_spinlock_irq!(State { due: 0, running: false, closed: false }),
            quiet <- Event::new(),
        })
    }

    /// Adds news (not zero). When this says `true` the caller queues the object's work item.
    ///
    /// Any context.
    #[must_use = "the work item has to be queued"]
    pub(crate) fn raise(&self, news: u32) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        let first = state.due == 0;
        state.due |= news;
        first
    }

    /// Tells the news that are due, from the work item.
    pub(crate) fn run(&self, tell: impl FnOnce(u32)) {
        let mut state = self.state.lock();
        let due = core::mem::take(&mut state.due);
        state.running = due != 0 && !state.closed;
        let go = state.running;
        drop(state);
        if go {
            tell(due);
        }
        let mut state = self.state.lock();
        state.running = false;
        let closed = state.closed;
        drop(state);
        if closed {
            self.quiet.signal();
        }
    }

    /// No call begins from now on; returns when the one that runs, if any, has returned.
    ///
    /// May sleep; not from inside a call.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let wait = state.running || state.due != 0;
        drop(state);
        if wait {
            self.quiet.wait();
        }
    }
}
