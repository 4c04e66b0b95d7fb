// SPDX-License-Identifier: GPL-2.0

//! Calls of the NDK face without memory: [`everywhere`] lets a call fail at each of its
//! allocations.
//!
//! A call allocates in the context of its caller and in its work function; the fault comes in one
//! of the two, and is a single failure or the first of many. The required outcome:
//!
//! - the call gives `INSUFFICIENT_RESOURCES`, at once or through its completion, which comes once
//!   after `PENDING` and else never (GEN-07);
//! - the call leaves no half-made state: the same call, repeated without a fault, succeeds.
//!
//! Vectors that may be large (`KVVec`) survive a single failure: the kernel tries again in another
//! way. Each test says how many such allocations a call makes; no allocation survives the first of
//! many failures.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::{
        AutoClose,
        CallbackValue, //
    },
    host::TestHost, //
};
use crate::{
    ndk::{
        call::DoneFn,
        life::{
            ObjectType,
            Ref, //
        },
        status::{
            Answer,
            NtStatus,
            Progress, //
        }, //
    },
    sys::fault::{
        is_available,
        needed,
        plan,
        plan_from,
        planned_struck,
        FailNth, //
    }, //
};

/// More allocations than any call makes.
const MOST: u32 = 100;

/// The number of runs that an allocation has to survive to count as survived: the checkers of the
/// kernel allocate notes, which take a fault once in a while. Also the number of runs without a
/// strike that end the search: of two concurrent work functions one alone is counted.
const TRIES: u32 = 3;

/// Returns true if faults can be injected; an error if that is not as the configuration says. The
/// test counts as skipped without faults.
pub(super) fn has_faults() -> Result<bool> {
    match is_available() == cfg!(all(CONFIG_FAILSLAB, MODULE)) {
        true => Ok(needed()),
        false => Err(ENODEV),
    }
}

/// A fault of one run of a call.
pub(super) struct Strike<'a> {
    pub(super) test_host: &'a TestHost,
    /// The number of the allocation that fails, from 1 on; 0 for none.
    n: u32,
    /// True if the later allocations fail, too.
    rest: bool,
    /// True if the failing allocation is one of the work functions'.
    defer: bool,
    pub(super) struck: bool,
    /// True if a part of the call survived a fault.
    pub(super) survived: bool,
}

impl<'a> Strike<'a> {
    pub(super) const fn none(test_host: &'a TestHost) -> Self {
        Self {
            test_host,
            n: 0,
            rest: false,
            defer: false,
            struck: false,
            survived: false,
        }
    }

    /// Returns true if a work function was struck.
    pub(super) const fn fails_later(&self) -> bool {
        self.defer && self.struck
    }

    /// Plans the fault of the work functions, if there is one. No other work may be under way.
    pub(super) fn begin(&self) {
        self.test_host.flush_work();
        if self.defer && self.n > 0 {
            let _ = match self.rest {
                true => plan_from(self.n),
                false => plan(self.n),
            };
        }
    }

    /// Ends the plan of [`Strike::begin`], and notes if a work function was struck.
    pub(super) fn end(&mut self) {
        self.test_host.flush_work();
        if self.defer && self.n > 0 {
            self.struck |= planned_struck();
        }
    }

    /// Runs the caller's part of a call; returns true if it was struck.
    pub(super) fn inline<R>(&mut self, call: impl FnOnce() -> R) -> (R, bool) {
        if self.defer || self.n == 0 {
            return (call(), false);
        }
        let guard = match self.rest {
            true => FailNth::from_nth(self.n),
            false => FailNth::new(self.n),
        };
        let result = call();
        let struck = guard.as_ref().is_some_and(FailNth::struck);
        drop(guard);
        self.struck |= struck;
        (result, struck)
    }

    /// Makes a call and waits for its end; it has to complete once after `PENDING`, else never.
    fn ended<T: Send + 'static>(
        &mut self,
        call: impl FnOnce(DoneFn<T>) -> Answer,
    ) -> Result<Result<Ended<T>, NtStatus>> {
        let slot = CallbackValue::new()?;
        let done = slot.callback()?;
        self.begin();
        let (answer, _) = self.inline(|| call(done));
        let (ended, calls) = match answer {
            Ok(Progress::Done) => (Ok(Ended::Now), 0),
            Ok(Progress::Pending) => (Ok(Ended::Later(slot.wait().ok_or(ETIMEDOUT)?)), 1),
            Err(status) => (Err(status), 0),
        };
        self.end();
        once(&slot, calls)?;
        Ok(ended)
    }

    /// Makes a call that completes with a status.
    pub(super) fn request(&mut self, call: impl FnOnce(DoneFn<NtStatus>) -> Answer) -> Result<i32> {
        let status = match self.ended(call)? {
            Ok(Ended::Now) => NtStatus::SUCCESS,
            Ok(Ended::Later(status)) | Err(status) => status,
        };
        Ok(status.raw())
    }

    /// Makes a call that creates an object.
    pub(super) fn create<T: ObjectType>(
        &mut self,
        call: impl FnOnce(DoneFn<Result<Ref<T>, NtStatus>>) -> Answer,
    ) -> Result<Result<AutoClose<T>, i32>> {
        let made = match self.ended(call)? {
            Ok(Ended::Now) => return Err(EINVAL),
            Ok(Ended::Later(Ok(object))) => Ok(AutoClose::new(object)),
            Ok(Ended::Later(Err(status))) | Err(status) => Err(status.raw()),
        };
        Ok(made)
    }
}

/// The end of a call.
enum Ended<T> {
    Now,
    Later(T),
}

/// An error unless the completion came `calls` times.
pub(super) fn once<T: Send + 'static>(slot: &Arc<CallbackValue<T>>, calls: u32) -> Result {
    if slot.calls.get() == calls {
        return Ok(());
    }
    kunit_note!("completed {} times, not {}", slot.calls.get(), calls);
    Err(EPROTO)
}

/// Closes the object that a call has created; returns the status of the call.
pub(super) fn closed<T: ObjectType>(made: Result<AutoClose<T>, i32>) -> Result<i32> {
    match made {
        Ok(mut object) => match object.close_and_wait()? {
            true => Ok(NtStatus::SUCCESS.raw()),
            false => Err(ETIMEDOUT),
        },
        Err(status) => Ok(status),
    }
}

/// The number of strikes of a call with single faults.
#[derive(Debug)]
pub(super) struct Struck {
    inline: u32,
    defer: u32,
    /// The number of survived strikes.
    survived: u32,
}

/// The number of notes of the kernel's checkers that a count may include.
const NOTES: u32 = 2;

impl Struck {
    /// Returns true if the call has so many allocations in its caller's context (`inline`) and in
    /// its work (`defer`), and survived so many faults.
    pub(super) fn is_by(&self, inline: u32, defer: u32, survived: u32) -> bool {
        let wanted = [
            (self.inline, inline),
            (self.defer, defer),
            (self.survived, survived),
        ];
        let fine = wanted.into_iter().all(|(got, want)| match want {
            0 => got == 0,
            _ => (want..=want + NOTES).contains(&got),
        });
        if !fine {
            kunit_note!("{:?}, not {}, {}, {}", self, inline, defer, survived);
        }
        fine
    }
}

/// Lets `call` fail at each of its allocations, in all four ways.
///
/// `call` makes the call with the given fault, undoes the call if it succeeded, and returns its
/// status. An error if the outcome of a fault is not the one that the head of this file requires.
pub(super) fn everywhere(
    test_host: &TestHost,
    mut call: impl FnMut(&mut Strike<'_>) -> Result<i32>,
) -> Result<Struck> {
    each(test_host, |strike| {
        let status = call(strike)?;
        if status == NtStatus::SUCCESS.raw() {
            return Ok(!strike.struck);
        }
        if status != NtStatus::INSUFFICIENT_RESOURCES.raw() || !strike.struck {
            kunit_note!("status {:x} at {}", status, strike.n);
            return Err(EPROTO);
        }
        let again = call(&mut Strike::none(strike.test_host))?;
        if again != NtStatus::SUCCESS.raw() {
            kunit_note!("status {:x} after {}", again, strike.n);
            return Err(EPROTO);
        }
        Ok(true)
    })
}

/// Runs `run` with a fault at each of its allocations, in all four ways.
///
/// `run` returns true if the fault, if there was one, had the required outcome; false if it was
/// survived.
pub(super) fn each(
    test_host: &TestHost,
    mut run: impl FnMut(&mut Strike<'_>) -> Result<bool>,
) -> Result<Struck> {
    // Makes the objects that are made once.
    run(&mut Strike::none(test_host))?;
    let mut counts = [0; 4];
    let mut survived = 0;
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    for (count, (defer, rest)) in counts.iter_mut().zip(ways) {
        let (mut tries, mut missed) = (0, 0);
        while *count < MOST {
            let mut strike = Strike {
                n: *count + 1,
                rest,
                defer,
                ..Strike::none(test_host)
            };
            let did_harm = run(&mut strike)?;
            if !strike.struck {
                missed += 1;
                if missed == TRIES {
                    break;
                }
                continue;
            }
            tries += 1;
            if !did_harm && tries < TRIES {
                continue;
            }
            if !did_harm && rest {
                kunit_note!("survived all faults from {} on, {}", *count + 1, defer);
                return Err(EPROTO);
            }
            survived += u32::from(!did_harm);
            (*count, tries, missed) = (*count + 1, 0, 0);
        }
        if *count == MOST {
            return Err(E2BIG);
        }
    }
    Ok(Struck {
        inline: counts[0],
        defer: counts[1],
        survived,
    })
}

/// Runs `run`; an error if it allocates, in the caller's context or in work functions.
pub(super) fn never<R>(test_host: &TestHost, run: impl FnOnce() -> Result<R>) -> Result<R> {
    test_host.flush_work();
    plan_from(1);
    let guard = FailNth::from_nth(1);
    let result = run();
    let struck = guard.as_ref().is_some_and(FailNth::struck);
    drop(guard);
    test_host.flush_work();
    if planned_struck() || struck {
        kunit_note!("memory was allocated");
        return Err(EPROTO);
    }
    result
}
