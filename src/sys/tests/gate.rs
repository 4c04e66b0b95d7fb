// SPDX-License-Identifier: GPL-2.0

//! Tests of [`Gate`]: entries, waiters and watchers.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic,
            AtomicFlag, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::{
    kunit::harness::cases,
    sys::{
        event::Event,
        gate::{
            Gate,
            Refused,
            Watcher, //
        },
        softirq::ProcessQueue, //
    }, //
};

fn open<T>(gate: &Gate<T>, key: u8) {
    if let Some(opening) = gate.begin() {
        opening.open(key);
    }
}

/// A watcher that counts its calls.
struct Calls(Atomic<u32>);

impl Watcher for Calls {
    fn drained(&self) {
        self.0.add(1, Relaxed);
    }
}

#[kernel::macros::kunit_tests(ndk_sys_tests_gate)]
mod tests {
    use super::*;

    fn open_gate(value: u32, key: u8) -> Gate<u32> {
        let gate = Gate::new(value);
        if let Some(opening) = gate.begin() {
            opening.open(key);
        }
        gate
    }

    #[test]
    fn a_new_gate_is_closed_and_drained() {
        let gate = Gate::new(1u32);
        assert!(gate.enter(0).is_err());
        assert!(gate.is_drained());
    }

    #[test]
    fn the_key_is_compared() {
        let gate = open_gate(5, 3);
        assert!(gate.enter(3).is_ok_and(|v| *v == 5));
        assert!(matches!(gate.enter(4), Err(Refused::WrongKey)));
        kunit_assert_eq!(gate.close(Some(4)), Err(Refused::WrongKey));
        kunit_assert_eq!(gate.close(Some(3)), Ok(()));
        kunit_assert_eq!(gate.close(Some(3)), Err(Refused::NotOpen));
    }

    #[test]
    fn closing_stops_new_entries_and_lasts_until_the_old_ones_have_left() {
        let gate = open_gate(5, 3);
        let inside = gate.enter(3);
        assert!(inside.is_ok());
        kunit_assert_eq!(gate.close(None), Ok(()));
        assert!(gate.enter(3).is_err());
        assert!(!gate.is_drained());
        assert!(gate.begin().is_none());
        drop(inside);
        assert!(gate.is_drained());
        assert!(gate.begin().is_some());
    }

    #[test]
    fn a_gate_that_somebody_uses_is_not_closed_as_unused() {
        let gate = open_gate(5, 3);
        let inside = gate.enter(3);
        assert!(!gate.close_unused(Some(3), || true));
        assert!(gate.is_open());
        drop(inside);
        assert!(!gate.close_unused(Some(4), || true));
        assert!(gate.is_open());
        assert!(!gate.close_unused(Some(3), || false));
        assert!(gate.is_open());
        assert!(gate.close_unused(Some(3), || true));
        assert!(gate.is_drained());
        assert!(!gate.close_unused(Some(3), || true));
        assert!(!gate.close_unused(None, || true));
        assert!(gate.begin().is_some());
    }

    #[test]
    fn nothing_is_changed_between_the_question_and_the_closing() {
        let gate = open_gate(5, 3);
        let mut was_taken = true;
        // Another task may do the same, and open the gate on another value.
        let closed = gate.close_unused(Some(3), || {
            kunit_assert_eq!(gate.close(None), Ok(()));
            was_taken = gate.begin().is_some();
            true
        });
        assert!(!closed);
        assert!(!was_taken);
        assert!(gate.is_drained());
        // A closing that asks for an unused gate does not shut out an entry in between.
        open(&gate, 3);
        let mut inside = None;
        let closed = gate.close_unused(Some(3), || {
            inside = gate.enter(3).ok();
            true
        });
        assert!(!closed);
        assert!(inside.is_some());
        assert!(gate.is_open());
    }

    #[test]
    fn who_is_inside_closes_what_it_entered_and_nothing_later() {
        let gate = open_gate(5, 3);
        let inside = gate.enter(3);
        assert!(inside.as_ref().is_ok_and(|i| i.close() == Ok(())));
        assert!(gate.enter(3).is_err());
        assert!(!gate.is_drained());
        assert!(gate.begin().is_none());
        assert!(inside
            .as_ref()
            .is_ok_and(|i| i.close() == Err(Refused::NotOpen)));
        drop(inside);
        assert!(gate.is_drained());
        assert!(gate.begin().is_some());
    }

    #[test]
    fn who_waits_goes_on_when_the_last_has_left() -> Result {
        let gate = Arc::new(open_gate(5, 3), GFP_KERNEL)?;
        let threads = ProcessQueue::new(c"ndk_test_gate")?;
        let begun = Arc::pin_init(Event::new(), GFP_KERNEL)?;
        for _ in 0..100 {
            let (theirs, entered) = (gate.clone(), begun.clone());
            let seen = Arc::new(AtomicFlag::new(false), GFP_KERNEL)?;
            let left = seen.clone();
            threads.spawn(GFP_KERNEL, move || {
                let inside = theirs.enter(3);
                entered.signal();
                fsleep(Delta::from_micros(100));
                left.store(inside.as_ref().is_ok_and(|value| **value == 5), Relaxed);
                drop(inside);
            })?;
            begun.wait();
            begun.reset();
            let closed = gate.close(None);
            gate.wait_until_unused();
            // The effects of the entry are visible.
            kunit_assert_eq!(closed, Ok(()));
            assert!(seen.load(Relaxed));
            assert!(gate.is_drained());
            if let Some(opening) = gate.begin() {
                opening.open(3);
            }
        }
        // Without an entry the wait returns at once.
        gate.wait_until_unused();
        assert!(gate.is_open());
        Ok(())
    }

    #[test]
    fn an_opening_is_exclusive_and_may_be_given_up() {
        let gate = Gate::new(1u32);
        let first = gate.begin();
        assert!(first.is_some());
        assert!(gate.begin().is_none());
        drop(first);
        assert!(gate.is_drained());
        assert!(!gate.is_open());
        if let Some(mut second) = gate.begin() {
            *second = 2;
            second.open(9);
        }
        kunit_assert_eq!(gate.key(), 9);
        assert!(gate.enter(9).is_ok_and(|v| *v == 2));
    }

    #[test]
    fn a_gate_is_drained_when_the_last_of_many_has_left() -> Result {
        let gate = Gate::new(3u32);
        open(&gate, 9);
        let mut inside = KVec::new();
        for _ in 0..100 {
            inside.push(gate.enter(9).map_err(|_| EINVAL)?, GFP_KERNEL)?;
        }
        kunit_assert_eq!(gate.close(None), Ok(()));
        while let Some(entered) = inside.pop() {
            kunit_assert_eq!(*entered, 3);
            assert!(!gate.is_drained());
            assert!(gate.begin().is_none());
        }
        assert!(gate.is_drained());
        assert!(gate.begin().is_some());
        Ok(())
    }

    #[test]
    fn an_open_gate_is_not_drained_even_when_nobody_is_inside() {
        let gate = Gate::new(());
        open(&gate, 0);
        assert!(gate.is_open());
        assert!(!gate.is_drained());
        assert!(gate.begin().is_none());
        drop(gate.enter(0));
        assert!(gate.is_open());
        assert!(!gate.is_drained());
    }

    #[test]
    fn every_key_opens_to_itself_alone() {
        let gate = Gate::new(());
        for key in cases(0..=255) {
            open(&gate, key);
            kunit_assert_eq!(gate.key(), key);
            let opens = (0..=255).filter(|other| gate.enter(*other).is_ok());
            assert!(opens.eq([key]));
            kunit_assert_eq!(
                gate.close(Some(key.wrapping_add(1))),
                Err(Refused::WrongKey)
            );
            kunit_assert_eq!(gate.close(Some(key)), Ok(()));
            // The key stays readable, and does not open the gate.
            kunit_assert_eq!(gate.key(), key);
            assert!(matches!(gate.enter(key), Err(Refused::NotOpen)));
        }
    }

    #[test]
    fn closing_without_a_key_closes_under_any() {
        let gate = Gate::new(());
        for key in cases([0, 1, 255]) {
            open(&gate, key);
            kunit_assert_eq!(gate.close(None), Ok(()));
            kunit_assert_eq!(gate.close(None), Err(Refused::NotOpen));
            kunit_assert_eq!(gate.close(Some(key)), Err(Refused::NotOpen));
        }
    }

    #[test]
    fn while_somebody_opens_nobody_else_gets_in_or_closes() {
        let gate = Gate::new(1u32);
        open(&gate, 4);
        kunit_assert_eq!(gate.close(None), Ok(()));
        let opening = gate.begin();
        assert!(opening.is_some());
        assert!(gate.begin().is_none());
        assert!(matches!(gate.enter(4), Err(Refused::NotOpen)));
        kunit_assert_eq!(gate.close(None), Err(Refused::NotOpen));
        assert!(!gate.is_open());
        assert!(gate.is_drained());
        if let Some(mut opening) = opening {
            kunit_assert_eq!(*opening, 1);
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
        kunit_assert_eq!(gate.close(Some(200)), Ok(()));
        if let Some(mut opening) = gate.begin() {
            *opening = 7;
        }
        kunit_assert_eq!(gate.key(), 200);
        assert!(!gate.is_open());
        let opening = gate.begin();
        assert!(opening.is_some_and(|o| *o == 7));
    }

    #[test]
    fn a_watcher_is_called_once_when_the_last_has_left_or_an_opening_ends() -> Result {
        let gate = Gate::watched(5, Calls(Atomic::new(0)));
        let gate: Pin<KBox<Gate<u32, Calls>>> = KBox::pin_init(gate, GFP_KERNEL)?;
        let calls = || gate.watcher.0.load(Relaxed);
        // Without an entry, or while the gate is open, no call is due.
        assert!(!gate.request_drain_call());
        let opening = gate.begin();
        assert!(gate.request_drain_call());
        kunit_assert_eq!(calls(), 0);
        drop(opening);
        kunit_assert_eq!(calls(), 1);
        assert!(!gate.request_drain_call());
        let opening = gate.begin();
        assert!(gate.request_drain_call());
        assert!(opening.is_some());
        if let Some(opening) = opening {
            opening.open(3);
        }
        kunit_assert_eq!(calls(), 2);
        let (first, last) = (gate.enter(3), gate.enter(3));
        assert!(first.is_ok());
        assert!(last.is_ok());
        assert!(!gate.request_drain_call());
        kunit_assert_eq!(gate.close(None), Ok(()));
        assert!(gate.request_drain_call());
        assert!(gate.request_drain_call());
        drop(first);
        kunit_assert_eq!(calls(), 2);
        drop(last);
        kunit_assert_eq!(calls(), 3);
        assert!(gate.is_drained());
        assert!(!gate.request_drain_call());
        Ok(())
    }

    #[test]
    fn who_waits_goes_on_when_an_opening_is_given_up() -> Result {
        let gate = Arc::new(Gate::new(5u32), GFP_KERNEL)?;
        open(&gate, 3);
        let threads = ProcessQueue::new(c"ndk_test_gate")?;
        let begun = Arc::pin_init(Event::new(), GFP_KERNEL)?;
        kunit_assert_eq!(gate.close(None), Ok(()));
        let (theirs, held) = (gate.clone(), begun.clone());
        threads.spawn(GFP_KERNEL, move || {
            let opening = theirs.begin();
            held.signal();
            fsleep(Delta::from_micros(100));
            drop(opening);
        })?;
        begun.wait();
        gate.wait_until_unused();
        assert!(gate.begin().is_some());
        Ok(())
    }
}
