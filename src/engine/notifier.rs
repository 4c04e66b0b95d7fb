// SPDX-License-Identifier: GPL-2.0

//! [`Notifier`]: the rules under which a consumer is called back.
//!
//! - Never inside a call that the consumer made, and never under a lock: calls come from softirq,
//!   which may well run where a posting call enables softirqs again, as it does for every network
//!   device. Whoever has news calls [`Notifier::raise`] and queues the softirq work of its object,
//!   which calls [`Notifier::run`]. Only a call that does no more than schedule something needs no
//!   work item.
//! - One call at a time per object: news that come while a call runs are notified by the one who
//!   makes it, in a next call. So at any time either the work item is queued, or a call runs, or
//!   there are no news.
//! - None after [`Notifier::close`] returned.
//!
//! Nothing here takes a lock.

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::{
            Full,
            Relaxed, //
        },
        Atomic, //
    }, //
};

use crate::sys::event::Event;

/// A call runs.
const RUNNING: u32 = 1 << 30;
/// No call begins any more.
const CLOSED: u32 = 1 << 31;
/// What is to be notified, one bit a kind. While one is set the work is queued, or a call runs.
const EVENTS: u32 = !(RUNNING | CLOSED);

/// The news that wait to be notified to the owner of one object.
///
/// One word holds everything: news come with every message, and a lock each time would show.
#[pin_data]
pub(crate) struct Notifier {
    state: Atomic<u32>,
    #[pin]
    quiet: Event,
}

impl Notifier {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state: Atomic::new(0),
            quiet <- Event::new(),
        })
    }

    /// Changes the state to what `next` makes of it, unless that is `None`; returns what it was.
    fn change(&self, next: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut old = self.state.load(Relaxed);
        loop {
            match self.state.cmpxchg(old, next(old)?, Full) {
                Ok(_) => return Some(old),
                Err(now) => old = now,
            }
        }
    }

    /// Adds news (below bit 30, not zero). When this returns true the caller queues the object's
    /// work item.
    ///
    /// Any context.
    #[must_use = "the work item has to be queued"]
    pub(crate) fn raise(&self, events: u32) -> bool {
        let old = self.change(|old| (old & CLOSED == 0).then_some(old | (events & EVENTS)));
        old.is_some_and(|old| old & (EVENTS | RUNNING) == 0)
    }

    /// Tells the news that are due, from the work item. When this returns true there are more by
    /// now, and the caller queues the work item again.
    #[must_use = "the work item may have to be queued"]
    pub(crate) fn run(&self, notify: impl FnOnce(u32)) -> bool {
        // Who closes waits for those that are due, too, and is notified below that they are gone.
        let begun = self.change(|old| match old & (RUNNING | CLOSED) {
            0 if old & EVENTS != 0 => Some(RUNNING),
            CLOSED => Some(CLOSED),
            _ => None,
        });
        let Some(due) = begun else {
            return false;
        };
        let mut closed = due & CLOSED != 0;
        let mut again = false;
        if !closed {
            notify(due & EVENTS);
            let ended = self.change(|old| match old & CLOSED {
                0 => Some(old & !RUNNING),
                // What was raised meanwhile is notified nobody.
                _ => Some(CLOSED),
            });
            let old = ended.unwrap_or(0);
            closed = old & CLOSED != 0;
            again = !closed && old & EVENTS != 0;
        }
        if closed {
            self.quiet.signal();
        }
        again
    }

    /// No call begins from now on; returns when the one that runs, if any, has returned.
    ///
    /// May sleep; not from inside a call. May be called again, but not by two at a time.
    pub(crate) fn close(&self) {
        if self.begin_close() {
            self.quiet.wait();
        }
    }

    /// No call begins from now on. Returns true if one is due or runs, whose end is signalled.
    fn begin_close(&self) -> bool {
        let old = self.change(|old| Some(old | CLOSED)).unwrap_or(0);
        old & (RUNNING | EVENTS) != 0
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_notifier)]
mod tests {
    use super::*;

    fn upcalls() -> Result<Pin<KBox<Notifier>>> {
        KBox::pin_init(Notifier::new(), GFP_KERNEL)
    }

    #[test]
    fn the_first_news_ask_for_the_work_item() -> Result {
        let upcalls = upcalls()?;
        assert!(upcalls.raise(1));
        assert!(!upcalls.raise(2));
        let notified = Atomic::new(0u32);
        assert!(!upcalls.run(|events| notified.store(events, Relaxed)));
        assert!(notified.load(Relaxed) == 3 && upcalls.raise(1));
        Ok(())
    }

    #[test]
    fn who_finds_a_call_running_leaves_its_news_to_it() -> Result {
        let upcalls = upcalls()?;
        assert!(upcalls.raise(1));
        let inner = Atomic::new(0u32);
        let again = upcalls.run(|_| {
            let queued = upcalls.raise(2);
            // Another processor runs the item meanwhile.
            let early = upcalls.run(|_| inner.store(99, Relaxed));
            inner.add(u32::from(queued) + 2 * u32::from(early), Relaxed);
        });
        // It is the one who makes the call that queues the item.
        assert!(again && inner.load(Relaxed) == 0);
        let notified = Atomic::new(0u32);
        assert!(!upcalls.run(|events| notified.store(events, Relaxed)));
        assert!(notified.load(Relaxed) == 2);
        Ok(())
    }

    #[test]
    fn what_is_raised_in_the_last_call_is_told_nobody_and_waited_for_by_nobody() -> Result {
        let upcalls = upcalls()?;
        assert!(upcalls.raise(1));
        let waits = Atomic::new(0u32);
        let again = upcalls.run(|_| {
            let _queued = upcalls.raise(2);
            waits.store(u32::from(upcalls.begin_close()), Relaxed);
        });
        assert!(!again && waits.load(Relaxed) == 1);
        assert!(!upcalls.begin_close());
        Ok(())
    }

    #[test]
    fn nothing_is_told_after_the_end() -> Result {
        let upcalls = upcalls()?;
        upcalls.close();
        assert!(!upcalls.raise(1));
        let notified = Atomic::new(0u32);
        assert!(!upcalls.run(|events| notified.store(events, Relaxed)));
        assert!(notified.load(Relaxed) == 0);
        Ok(())
    }
}
