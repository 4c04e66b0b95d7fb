// SPDX-License-Identifier: GPL-2.0

//! [`OtherContext`]: a task that runs in another context than the test.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        Work as WorkStruct,
        WorkItem, //
    }, //
};

use super::harness::came_in_time;
use crate::sys::{
    event::Event,
    softirq::{
        BhQueue,
        ProcessQueue, //
    },
    timer::{
        Expires,
        Timer, //
    }, //
};

/// A task, and an event that is signalled when the task is done.
#[pin_data]
pub(crate) struct OtherContext {
    task: KBox<dyn Fn() + Send + Sync>,
    #[pin]
    softirq: WorkStruct<Self, 0>,
    // Lockdep takes a work item for a lock: the two contexts have an item each.
    #[pin]
    process: WorkStruct<Self, 1>,
    #[pin]
    timer: Timer<Self>,
    #[pin]
    done: Event,
}

impl_has_work! {
    impl HasWork<Self, 0> for OtherContext { self.softirq }
    impl HasWork<Self, 1> for OtherContext { self.process }
}

impl OtherContext {
    /// A task that has not run yet. May sleep.
    pub(crate) fn new(task: impl Fn() + Send + Sync + 'static) -> Result<Arc<Self>> {
        let task: KBox<dyn Fn() + Send + Sync> = KBox::new(task, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                task,
                softirq <- new_work!("ndk_other_softirq"),
                process <- new_work!("ndk_other_process"),
                timer <- Timer::new(),
                done <- Event::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Runs the task from a timer; returns true if it was done in time.
    pub(crate) fn by_timer(self: &Arc<Self>) -> bool {
        self.timer.arm(self, 1);
        self.is_done()
    }

    /// Runs the task from softirq work; returns true if it was done in time.
    pub(crate) fn by_softirq(self: &Arc<Self>, queue: &BhQueue) -> bool {
        queue.enqueue::<_, 0>(self.clone()).is_ok() && self.is_done()
    }

    /// Begins to run the task in another thread.
    pub(crate) fn begin(self: &Arc<Self>, queue: &ProcessQueue) -> bool {
        queue.enqueue::<_, 1>(self.clone()).is_ok()
    }

    /// Waits until the task is done; false when that takes too long.
    pub(crate) fn is_done(&self) -> bool {
        came_in_time(&self.done)
    }

    fn run_now(&self) {
        (self.task)();
        self.done.signal();
    }
}

impl WorkItem<0> for OtherContext {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.run_now();
    }
}

impl WorkItem<1> for OtherContext {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.run_now();
    }
}

impl Expires for OtherContext {
    fn expired(this: Arc<Self>) {
        this.run_now();
    }
}
