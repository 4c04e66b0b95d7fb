// SPDX-License-Identifier: GPL-2.0

//! [`StoppedClock`]: the clock of the engine, for tests of time that do not depend on the machine.
//!
//! While a test holds it, the engine's time, [`time`], stands still, and timers that are armed in
//! that time run out only when the test lets time pass. A timer that was armed before goes by the
//! real clock. A test waits for a timer as for any other condition. The limits that end a hang go
//! by the real clock, [`real_ms`].

use kernel::{
    current,
    prelude::*,
    sync::atomic::{
        ordering::{
            Acquire,
            Relaxed,
            Release, //
        },
        Atomic, //
    },
    types::NotThreadSafe, //
};

use crate::sys::time;

/// The time at which the clock stands, in nanoseconds; 0 while it runs.
static STOPPED_AT: Atomic<u64> = Atomic::new(0);
/// The time that the running clock is ahead of the real one, in nanoseconds; may stand for a
/// negative number.
static AHEAD: Atomic<u64> = Atomic::new(0);
/// The thread that has stopped the clock; each test has a thread of its own.
static STOPPED_BY: Atomic<i32> = Atomic::new(0);

/// The time that the clock shows. Any context.
///
/// The real clock is read after the state: a restarted clock shows no less than when it stood
/// still.
pub(in crate::sys) fn shown() -> u64 {
    match STOPPED_AT.load(Acquire) {
        // OVERFLOW: the sum of a time and a number that may be negative.
        0 => time::real_ns().wrapping_add(AHEAD.load(Relaxed)),
        at => at,
    }
}

/// Returns true if the clock stands still. Any context.
pub(in crate::sys) fn is_stopped() -> bool {
    STOPPED_AT.load(Acquire) != 0
}

/// Milliseconds of the real clock, also while the other one is stopped. Any context.
pub(crate) fn real_ms() -> u64 {
    time::real_ns() / 1_000_000
}

/// Restarts the clock from the time that it shows.
fn restart() {
    let at = STOPPED_AT.load(Relaxed);
    // OVERFLOW: a difference that may be negative.
    AHEAD.store(at.wrapping_sub(time::real_ns()), Relaxed);
    STOPPED_AT.store(0, Release);
}

/// Restarts the clock if an earlier test has ended, by a failed check, and left it stopped. Process
/// context.
pub(crate) fn restart_if_left() {
    if is_stopped() && STOPPED_BY.load(Relaxed) != current!().pid() {
        restart();
    }
}

/// The clock, stopped until drop.
pub(crate) struct StoppedClock(NotThreadSafe);

impl StoppedClock {
    /// Stops the clock. Process context.
    pub(crate) fn new() -> Self {
        restart_if_left();
        STOPPED_BY.store(current!().pid(), Relaxed);
        STOPPED_AT.store(time::now_ns(), Release);
        Self(NotThreadSafe)
    }

    /// Lets `ms` milliseconds pass. A timer that is due by then runs out soon, in softirq.
    pub(crate) fn pass(&self, ms: u32) {
        STOPPED_AT.fetch_add(u64::from(ms) * 1_000_000, Release);
    }
}

impl Drop for StoppedClock {
    fn drop(&mut self) {
        restart();
    }
}

#[kernel::macros::kunit_tests(ndk_sys_tests_clock)]
mod tests {
    use super::*;
    use crate::{
        kunit::harness::{
            sleep,
            wait_until, //
        },
        sys::{
            hrtimer::HrTimer,
            time::{
                now_ms,
                now_ns, //
            },
            timer::{
                Expires,
                Timer, //
            }, //
        },
    };
    use kernel::sync::Arc;

    /// Counts the expiries of its timers, one of each kind.
    #[pin_data]
    struct Alarm {
        #[pin]
        timer: Timer<Alarm>,
        #[pin]
        fine: HrTimer<Alarm>,
        times: Atomic<u32>,
    }

    impl Expires for Alarm {
        fn expired(this: Arc<Self>) {
            this.times.fetch_add(1, Relaxed);
        }
    }

    impl Alarm {
        fn new() -> Result<Arc<Self>> {
            let init = pin_init!(Self {
                timer <- Timer::new(),
                fine <- HrTimer::new(),
                times: Atomic::new(0),
            });
            Arc::pin_init(init, GFP_KERNEL)
        }

        fn arm(self: &Arc<Self>, ms: u32) {
            self.timer.arm(self, ms);
            self.fine.arm(self, u64::from(ms) * 1_000_000);
        }

        /// Returns true if the timers have run out `times` times, and not more.
        fn has_rung(&self, times: u32) -> bool {
            let come = wait_until(|| self.times.load(Relaxed) >= times);
            sleep(20);
            come && self.times.load(Relaxed) == times
        }
    }

    #[test]
    fn time_stands_still_and_goes_on_from_there() {
        let clock = StoppedClock::new();
        let (begin, real) = (now_ns(), real_ms());
        sleep(5);
        let still = now_ns() == begin;
        clock.pass(7_000);
        let later = now_ns();
        let goes = real_ms() - real;
        drop(clock);
        assert!(still);
        assert!(goes >= 5);
        kunit_assert_eq!(later, begin + 7_000_000_000);
        assert!(now_ns() >= later);
        // The next clock begins where this one ended.
        let before = now_ms();
        let clock = StoppedClock::new();
        let at = now_ms();
        drop(clock);
        assert!(at >= before);
        assert!(now_ms() >= at);
    }

    #[test]
    fn timers_run_out_when_their_time_has_passed_and_not_before() -> Result {
        let alarm = Alarm::new()?;
        let clock = StoppedClock::new();
        alarm.arm(3);
        let early = !alarm.has_rung(0);
        clock.pass(2);
        let late = early || !alarm.has_rung(0);
        clock.pass(1);
        let rang = alarm.has_rung(2);
        // A timer that was armed while the clock stood still keeps its time when the clock runs.
        alarm.arm(1);
        drop(clock);
        let after = alarm.has_rung(4);
        alarm.fine.stop();
        assert!(!early);
        assert!(!late);
        assert!(rang);
        assert!(after);
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }

    #[test]
    fn timers_that_wait_are_cancelled_or_armed_anew() -> Result {
        let alarm = Alarm::new()?;
        let clock = StoppedClock::new();
        alarm.arm(1_000);
        alarm.arm(2_000);
        clock.pass(1_000);
        let early = !alarm.has_rung(0);
        // A timer that looks at the clock at this moment is about to run out, and does.
        let cancelled = [alarm.timer.cancel(), alarm.fine.cancel()];
        clock.pass(5_000);
        // CAST: two at most.
        let about_to = cancelled.iter().filter(|was_armed| !**was_armed).count() as u32;
        let late = !alarm.has_rung(about_to);
        drop(clock);
        alarm.fine.stop();
        assert!(!early);
        assert!(!late);
        assert!(Arc::into_unique_or_drop(alarm).is_some());
        Ok(())
    }
}
