// SPDX-License-Identifier: GPL-2.0

//! What the tests beside [`Gate`] and [`Global`] leave open.

pub(crate) mod fault;
pub(crate) mod memory;
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
    gate::{
        Gate,
        Refused, //
    },
    global::Global,
    softirq::ProcessQueue, //
};

fn open<T>(gate: &Gate<T>, key: u8) {
    if let Some(opening) = gate.begin() {
        opening.open(key);
    }
}

/// Counts itself.
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
    fn a_gate_is_quiet_when_the_last_of_many_has_left() -> Result {
        let gate = Gate::new(3u32);
        open(&gate, 9);
        let mut inside = KVec::new();
        for _ in 0..100 {
            inside.push(gate.enter(9).map_err(|_| EINVAL)?, GFP_KERNEL)?;
        }
        assert!(gate.close(None) == Ok(()));
        while let Some(entered) = inside.pop() {
            assert!(*entered == 3);
            assert!(!gate.is_drained() && gate.begin().is_none());
        }
        assert!(gate.is_drained() && gate.begin().is_some());
        Ok(())
    }

    #[test]
    fn an_open_gate_is_not_quiet_even_when_nobody_is_inside() {
        let gate = Gate::new(());
        open(&gate, 0);
        assert!(gate.is_open() && !gate.is_drained());
        assert!(gate.begin().is_none());
        drop(gate.enter(0));
        assert!(gate.is_open() && !gate.is_drained());
    }

    #[test]
    fn every_key_opens_to_itself_alone() {
        let gate = Gate::new(());
        for key in 0..=255 {
            open(&gate, key);
            assert_eq!(gate.key(), key);
            for other in 0..=255 {
                assert!(gate.enter(other).is_ok() == (other == key));
            }
            assert!(gate.close(Some(key.wrapping_add(1))) == Err(Refused::WrongKey));
            assert!(gate.close(Some(key)) == Ok(()));
            // The key stays readable, and opens nothing.
            assert_eq!(gate.key(), key);
            assert!(matches!(gate.enter(key), Err(Refused::NotOpen)));
        }
    }

    #[test]
    fn closing_without_a_key_closes_under_any() {
        let gate = Gate::new(());
        for key in [0, 1, 255] {
            open(&gate, key);
            assert!(gate.close(None) == Ok(()));
            assert!(gate.close(None) == Err(Refused::NotOpen));
            assert!(gate.close(Some(key)) == Err(Refused::NotOpen));
        }
    }

    #[test]
    fn while_somebody_opens_nobody_else_gets_in_or_closes() {
        let gate = Gate::new(1u32);
        open(&gate, 4);
        assert!(gate.close(None) == Ok(()));
        let opening = gate.begin();
        assert!(opening.is_some());
        assert!(gate.begin().is_none());
        assert!(matches!(gate.enter(4), Err(Refused::NotOpen)));
        assert!(gate.close(None) == Err(Refused::NotOpen));
        assert!(!gate.is_open() && gate.is_drained());
        if let Some(mut opening) = opening {
            assert!(*opening == 1);
            *opening = 2;
            opening.open(5);
        }
        assert!(gate.enter(5).is_ok_and(|v| *v == 2));
        assert!(matches!(gate.enter(4), Err(Refused::WrongKey)));
    }

    #[test]
    fn an_opening_that_is_given_up_keeps_key_and_value() {
        let gate = Gate::new(1u32);
        open(&gate, 200);
        assert!(gate.close(Some(200)) == Ok(()));
        if let Some(mut opening) = gate.begin() {
            *opening = 7;
        }
        assert!(gate.key() == 200 && !gate.is_open());
        let opening = gate.begin();
        assert!(opening.is_some_and(|o| *o == 7));
    }

    #[test]
    fn a_value_replaced_in_a_global_lives_as_long_as_somebody_has_it() -> Result {
        let count = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let place = Global::new();
        assert!(place.replace(Some(Counted::new(&count)?)).is_none());
        let held = place.get();
        let before = place.replace(Some(Counted::new(&count)?));
        assert!(before.is_some() && held.is_some());
        assert_eq!(count.load(Relaxed), 2);
        drop(before);
        assert_eq!(count.load(Relaxed), 2);
        drop(held);
        assert_eq!(count.load(Relaxed), 1);
        assert!(place.replace(None).is_some());
        assert!(place.get().is_none() && place.replace(None).is_none());
        assert_eq!(count.load(Relaxed), 0);
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
        assert_eq!(count.load(Relaxed), 0);
        Ok(())
    }
}
