// SPDX-License-Identifier: GPL-2.0

//! Tests of [`Global`] beyond those in its file: references, and tasks that exchange values.

#[macro_use]
pub(crate) mod report;

pub(crate) mod clock;
pub(crate) mod fault;
mod gate;
pub(crate) mod memory;
pub(crate) mod over_tcp;
pub(crate) mod speed;
pub(crate) mod warning;

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use crate::sys::{
    event::Event,
    global::Global,
    softirq::ProcessQueue, //
};

/// A value that is counted as long as it lives.
struct Counted(Arc<Atomic<u64>>);

impl Counted {
    fn new(count: &Arc<Atomic<u64>>) -> Result<Arc<Self>> {
        count.fetch_add(1, Relaxed);
        Ok(Arc::new(Self(count.clone()), GFP_KERNEL)?)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

const EXCHANGES: u32 = 3000;

/// A thread that puts values into one place and takes them out again.
#[pin_data]
struct Exchanger {
    place: Arc<Global<Counted>>,
    count: Arc<Atomic<u64>>,
    #[pin]
    over: Event,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Exchanger { self.work }
}

impl Exchanger {
    fn new(place: Arc<Global<Counted>>, count: Arc<Atomic<u64>>) -> Result<Arc<Self>> {
        let init = pin_init!(Self {
            place,
            count,
            over <- Event::new(),
            work <- new_work!("ndk_test_exchange"),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }
}

impl WorkItem for Exchanger {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        for n in 0..EXCHANGES {
            match n % 3 {
                0 => drop(this.place.replace(Counted::new(&this.count).ok())),
                1 => drop(this.place.get()),
                _ => drop(this.place.replace(None)),
            }
        }
        this.over.signal();
    }
}

#[kernel::macros::kunit_tests(ndk_sys)]
mod tests {
    use super::*;

    #[test]
    fn a_value_replaced_in_a_global_lives_as_long_as_somebody_has_it() -> Result {
        let count = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let place = Global::new();
        assert!(place.replace(Some(Counted::new(&count)?)).is_none());
        let held = place.get();
        let before = place.replace(Some(Counted::new(&count)?));
        assert!(before.is_some());
        assert!(held.is_some());
        kunit_assert_eq!(count.load(Relaxed), 2);
        drop(before);
        kunit_assert_eq!(count.load(Relaxed), 2);
        drop(held);
        kunit_assert_eq!(count.load(Relaxed), 1);
        assert!(place.replace(None).is_some());
        assert!(place.get().is_none());
        assert!(place.replace(None).is_none());
        kunit_assert_eq!(count.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn threads_that_exchange_a_global_lose_and_double_nothing() -> Result {
        let place = Arc::new(Global::new(), GFP_KERNEL)?;
        let count = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let queue = ProcessQueue::new(c"ndk_test")?;
        let mut threads = KVec::new();
        for _ in 0..3 {
            threads.push(Exchanger::new(place.clone(), count.clone())?, GFP_KERNEL)?;
        }
        for thread in &threads {
            let _ = queue.enqueue(thread.clone());
        }
        for thread in &threads {
            thread.over.wait();
        }
        drop(place.replace(None));
        kunit_assert_eq!(count.load(Relaxed), 0);
        Ok(())
    }
}
