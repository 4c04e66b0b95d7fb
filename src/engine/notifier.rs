// SPDX-License-Identifier: GPL-2.0

//! [`Notifies`]: the rules under which a consumer is called back.
//!
//! - Never inside a call that the consumer made, and never under a lock: calls come from softirq,
//!   which may run where a posting call enables softirqs again, as for every network device. An
//!   event is passed to [`Notifies::raise`], which queues the softirq work of the object. Only a
//!   call that does no more than schedule work needs no work item.
//! - One call at a time per object: the end of a call queues the work item again for events that
//!   came during the call. So at any time either the work item is queued, or a call runs, or there
//!   are no events.
//! - No call after [`Notifies::end_calls`] returned. That holds for calls through this module; the
//!   verbs face has its own gate behind it (`rdma/upcall.rs`), for calls that are made in place,
//!   from a post or a timer, and bypass this state.
//!
//! This module takes no lock.

use kernel::{
    sync::atomic::{
        ordering::{
            Full,
            Relaxed, //
        },
        Atomic, //
    },
    workqueue::{
        HasWork,
        WorkItem, //
    }, //
};

use super::prelude::*;
use crate::sys::event::Event;

/// A call runs.
const RUNNING: u32 = 1 << 30;
/// No call begins any more.
const CLOSED: u32 = 1 << 31;
/// The events to report, one bit a kind. While a bit is set the work is queued, or a call runs.
const EVENTS: u32 = !(RUNNING | CLOSED);

/// The result of a call: all its work was done, or a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Done,
    /// The call did a part, as softirq has it, and is to be made again.
    Partial,
}

/// An object with a [`Notifier`] for the events of its consumer, and with the softirq work that
/// makes the calls. [`notifies!`] implements the supertraits.
pub(super) trait Notifies:
    HasWork<Self> + WorkItem<Pointer = Arc<Self>> + Send + Sync + Sized + 'static
{
    /// The device of the object.
    fn device(&self) -> &RdmaDevice;

    /// The events that wait to be reported.
    fn notifier(&self) -> &Notifier;

    /// The CPU on which the consumer is called, if it is online; `None` for the present one.
    fn cpu(&self) -> Option<u32> {
        None
    }

    /// Calls the consumer for these events. In softirq, one call at a time, under no lock.
    fn call(this: &Arc<Self>, events: u32);

    /// Notifies the consumer of these events (below bit 30) soon, in softirq. Any context.
    fn raise(self: &Arc<Self>, events: u32) {
        if events != 0 && self.notifier().raise(events) {
            self.queue();
        }
    }

    /// Queues the softirq work.
    fn queue(self: &Arc<Self>) {
        let softirqs = &self.device().host.softirqs;
        // An item that is queued already has yet to run.
        let _ = match self.cpu() {
            Some(cpu) => softirqs.enqueue_on(cpu, self.clone()),
            None => softirqs.enqueue(self.clone()),
        };
    }

    /// Makes a call, from the softirq work.
    fn run_call(self: &Arc<Self>) {
        if self.notifier().run(|events| Self::call(self, events)) {
            self.queue();
        }
    }

    /// Ends all calls; returns when none runs any more.
    ///
    /// May sleep; not from inside a call. May be called again, but not by two tasks at a time.
    fn end_calls(&self) {
        self.notifier().close();
    }
}

/// Makes the field `work` of a type the softirq work that calls its consumer.
macro_rules! notifies {
    ($object:ty) => {
        ::kernel::impl_has_work! {
            impl HasWork<Self> for $object { self.work }
        }

        impl ::kernel::workqueue::WorkItem for $object {
            type Pointer = Arc<Self>;

            fn run(this: Arc<Self>) {
                $crate::engine::notifier::Notifies::run_call(&this);
            }
        }
    };
}

pub(super) use notifies;

/// The events that wait to be reported to the consumer of one object.
///
/// One word holds the whole state: events come with every message, and a lock each time would show.
#[pin_data]
pub(super) struct Notifier {
    state: Atomic<u32>,
    #[pin]
    ended: Event,
}

impl Notifier {
    /// A notifier without events.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state: Atomic::new(0),
            ended <- Event::new(),
        })
    }

    /// Changes the state by `next`, unless that returns `None`; returns the old state.
    fn change(&self, next: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut old = self.state.load(Relaxed);
        loop {
            match self.state.cmpxchg(old, next(old)?, Full) {
                Ok(_) => return Some(old),
                Err(now) => old = now,
            }
        }
    }

    /// Adds events (below bit 30, not zero). When this returns true the caller queues the
    /// work item.
    #[must_use = "the work item has to be queued"]
    fn raise(&self, events: u32) -> bool {
        let old = self.change(|old| (old & CLOSED == 0).then_some(old | (events & EVENTS)));
        old.is_some_and(|old| old & (EVENTS | RUNNING) == 0)
    }

    /// Reports the events that are due, from the work item. When this returns true there are more
    /// by now, and the caller queues the work item again.
    #[must_use = "the work item may have to be queued"]
    fn run(&self, notify: impl FnOnce(u32)) -> bool {
        // A close waits for events that are due, too, and is signalled below.
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
                // Events that were raised during the call are not reported.
                _ => Some(CLOSED),
            });
            let old = ended.unwrap_or(0);
            closed = old & CLOSED != 0;
            again = !closed && old & EVENTS != 0;
        }
        if closed {
            self.ended.signal();
        }
        again
    }

    /// Lets no call begin any more; returns when a running call has returned.
    fn close(&self) {
        if self.begin_close() {
            self.ended.wait();
        }
    }

    /// Lets no call begin any more. Returns true if one is due or runs; its end is signalled.
    fn begin_close(&self) -> bool {
        let old = self.change(|old| Some(old | CLOSED)).unwrap_or(0);
        old & (RUNNING | EVENTS) != 0
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_notifier)]
mod tests {
    use super::*;

    fn notifier() -> Result<Pin<KBox<Notifier>>> {
        KBox::pin_init(Notifier::new(), GFP_KERNEL)
    }

    #[test]
    fn the_first_events_ask_for_the_work_item() -> Result {
        let notifier = notifier()?;
        assert!(notifier.raise(1));
        assert!(!notifier.raise(2));
        let notified = Atomic::new(0u32);
        assert!(!notifier.run(|events| notified.store(events, Relaxed)));
        kunit_assert_eq!(notified.load(Relaxed), 3);
        assert!(notifier.raise(1));
        Ok(())
    }

    #[test]
    fn who_finds_a_call_running_leaves_its_events_to_it() -> Result {
        let notifier = notifier()?;
        assert!(notifier.raise(1));
        let inner = Atomic::new(0u32);
        let again = notifier.run(|_| {
            let queued = notifier.raise(2);
            // Another processor runs the item during the call.
            let early = notifier.run(|_| inner.store(99, Relaxed));
            inner.add(u32::from(queued) + 2 * u32::from(early), Relaxed);
        });
        // The processor that makes the call queues the item.
        assert!(again);
        kunit_assert_eq!(inner.load(Relaxed), 0);
        let notified = Atomic::new(0u32);
        assert!(!notifier.run(|events| notified.store(events, Relaxed)));
        kunit_assert_eq!(notified.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn what_is_raised_in_the_last_call_is_reported_to_nobody_and_waited_for_by_nobody() -> Result {
        let notifier = notifier()?;
        assert!(notifier.raise(1));
        let waits = Atomic::new(0u32);
        let again = notifier.run(|_| {
            let _queued = notifier.raise(2);
            waits.store(u32::from(notifier.begin_close()), Relaxed);
        });
        assert!(!again);
        kunit_assert_eq!(waits.load(Relaxed), 1);
        assert!(!notifier.begin_close());
        Ok(())
    }

    #[test]
    fn nothing_is_reported_after_the_end() -> Result {
        let notifier = notifier()?;
        notifier.close();
        assert!(!notifier.raise(1));
        let notified = Atomic::new(0u32);
        assert!(!notifier.run(|events| notified.store(events, Relaxed)));
        kunit_assert_eq!(notified.load(Relaxed), 0);
        Ok(())
    }
}
