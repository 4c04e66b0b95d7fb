// SPDX-License-Identifier: GPL-2.0

//! [`Moderator`]: the time that the call for a satisfied arm waits for more completions.
//!
//! A call that waits is **held**. Its arm is off already, so there is still at most one call per
//! arm; the held call also reports arms that are satisfied while it waits. The first of these makes
//! the call (MOD-01 to MOD-07):
//!
//! - the interval since the arm was satisfied is over;
//! - as many unreported completions as the count have gathered, including completions present when
//!   the arm was satisfied;
//! - the queue is full, which is as good as any count;
//! - a request failed, or the queue failed;
//! - the rule is changed to one that would not hold the call.
//!
//! The lock of the queue guards this data; the queue owns the timer.

/// For [`Rule::new`]: the interval, or the count, does not matter.
const UNLIMITED: u32 = u32::MAX;

/// The longest time for which a call is held, in microseconds.
const MAX_INTERVAL_US: u32 = 10_000_000;

/// A rule that would hold a call for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidModeration;

/// The two limits of a held call, which is made at the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    interval_ns: Option<u64>,
    /// `UNLIMITED` for any number.
    count: u32,
}

impl Rule {
    /// The rule of the two limits for a queue of that depth; `None` if no call is held.
    pub(super) fn new(
        interval_us: u32,
        count: u32,
        depth: u32,
    ) -> Result<Option<Self>, InvalidModeration> {
        if interval_us == 0 || count <= 1 {
            return Ok(None);
        }
        let count = if count > depth { UNLIMITED } else { count };
        let interval_ns = match interval_us {
            UNLIMITED if count == UNLIMITED => return Err(InvalidModeration),
            UNLIMITED => None,
            us => Some(u64::from(us.min(MAX_INTERVAL_US)) * 1000),
        };
        Ok(Some(Self { interval_ns, count }))
    }
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No call is due, or the held call stays as it was.
    Nothing,
    /// A call is held from now on, for this number of nanoseconds at most.
    Hold(Option<u64>),
    /// The call is made now, and none is held any more.
    Call,
}

#[derive(Clone, Copy)]
struct HeldCall {
    /// Completions that the call will report.
    gathered: u32,
    /// The time at which the arm was satisfied, in nanoseconds.
    since: u64,
}

/// The rule in force, and the call that is held.
///
/// # Invariants
///
/// `held` is `None` while `rule` is.
pub(super) struct Moderator {
    rule: Option<Rule>,
    held: Option<HeldCall>,
}

impl Moderator {
    /// No rule, and no call held.
    pub(super) const OFF: Self = Self {
        rule: None,
        held: None,
    };

    /// Returns true if calls are made as they fall due.
    #[inline]
    pub(super) fn is_off(&self) -> bool {
        self.rule.is_none()
    }

    /// Counts a completion for the held call.
    pub(super) fn count_for_held_call(&mut self) {
        if let Some(held) = &mut self.held {
            held.gathered = held.gathered.saturating_add(1);
        }
    }

    /// Decides about the call; `satisfied` says that an arm was satisfied, with `unreported`
    /// entries not reported yet, and `urgent` that no call may wait.
    pub(super) fn decide(
        &mut self,
        satisfied: bool,
        unreported: u32,
        urgent: bool,
        now: impl FnOnce() -> u64,
    ) -> Decision {
        let Some(rule) = self.rule else {
            return match satisfied {
                true => Decision::Call,
                false => Decision::Nothing,
            };
        };
        let gathered = match self.held {
            Some(held) => held.gathered,
            None if satisfied => unreported,
            None => return Decision::Nothing,
        };
        if urgent || gathered >= rule.count {
            self.held = None;
            return Decision::Call;
        }
        if self.held.is_some() {
            return Decision::Nothing;
        }
        let since = now();
        // INVARIANT: There is a rule.
        self.held = Some(HeldCall { gathered, since });
        Decision::Hold(rule.interval_ns)
    }

    /// Puts a rule into force, also for the call that is held.
    pub(super) fn change(&mut self, rule: Option<Rule>, now: u64) -> Decision {
        self.rule = rule;
        let Some(held) = self.held else {
            return Decision::Nothing;
        };
        let over = now.saturating_sub(held.since);
        let rest = |interval: u64| interval.checked_sub(over).filter(|ns| *ns > 0);
        let holds = rule.filter(|rule| held.gathered < rule.count);
        match holds.map(|rule| rule.interval_ns) {
            Some(None) => Decision::Hold(None),
            Some(Some(interval)) if rest(interval).is_some() => Decision::Hold(rest(interval)),
            _ => {
                // INVARIANT: No call is held.
                self.held = None;
                Decision::Call
            }
        }
    }

    /// Drops the held call; returns true if there was one.
    pub(super) fn cancel_held(&mut self) -> bool {
        self.held.take().is_some()
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_cq_moderation)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    const SECOND: u64 = 1_000_000_000;

    fn rule(interval_us: u32, count: u32) -> Option<Rule> {
        Rule::new(interval_us, count, 100).ok().flatten()
    }

    fn moderator(interval_us: u32, count: u32) -> Moderator {
        Moderator {
            rule: rule(interval_us, count),
            held: None,
        }
    }

    #[test]
    fn zero_turns_it_off_whatever_the_other_number_is() {
        for other in cases([0, 1, 2, 100, u32::MAX]) {
            kunit_assert_eq!(Rule::new(0, other, 100), Ok(None));
            kunit_assert_eq!(Rule::new(other, 0, 100), Ok(None));
            kunit_assert_eq!(Rule::new(other, 1, 100), Ok(None));
        }
    }

    #[test]
    fn a_rule_without_any_end_is_a_contradiction() {
        for count in cases([101, u32::MAX]) {
            kunit_assert_eq!(Rule::new(u32::MAX, count, 100), Err(InvalidModeration));
            assert!(Rule::new(u32::MAX - 1, count, 100).is_ok_and(|r| r.is_some()));
        }
        assert!(Rule::new(u32::MAX, 100, 100).is_ok_and(|r| r.is_some()));
    }

    #[test]
    fn a_long_interval_is_rounded_down() {
        let ns = |us| rule(us, 2).and_then(|r| r.interval_ns);
        kunit_assert_eq!(ns(1), Some(1000));
        kunit_assert_eq!(ns(10_000_000), Some(10 * SECOND));
        kunit_assert_eq!(ns(10_000_001), Some(10 * SECOND));
        kunit_assert_eq!(ns(u32::MAX - 1), Some(10 * SECOND));
        assert!(ns(u32::MAX).is_none());
    }

    #[test]
    fn what_is_held_goes_when_enough_has_gathered() {
        let mut moderator = moderator(u32::MAX, 3);
        kunit_assert_eq!(moderator.decide(false, 7, true, || 0), Decision::Nothing);
        kunit_assert_eq!(moderator.decide(true, 1, false, || 0), Decision::Hold(None));
        moderator.count_for_held_call();
        // An arm that is satisfied while a call is held goes with the call.
        kunit_assert_eq!(moderator.decide(true, 2, false, || 0), Decision::Nothing);
        moderator.count_for_held_call();
        kunit_assert_eq!(moderator.decide(false, 3, false, || 0), Decision::Call);
        assert!(!moderator.cancel_held());
    }

    #[test]
    fn what_has_gathered_before_counts_and_urgency_does_not_wait() {
        let mut moderator = moderator(5, 3);
        kunit_assert_eq!(moderator.decide(true, 3, false, || 0), Decision::Call);
        kunit_assert_eq!(moderator.decide(true, 1, true, || 0), Decision::Call);
        kunit_assert_eq!(
            moderator.decide(true, 1, false, || 0),
            Decision::Hold(Some(5000))
        );
        kunit_assert_eq!(moderator.decide(false, 1, true, || 0), Decision::Call);
        assert!(!moderator.cancel_held());
    }

    #[test]
    fn a_new_rule_is_in_force_for_what_is_held() {
        // The new rule, and the decision about a call held for half a second with two gathered.
        let table = [
            (rule(0, 0), Decision::Call),
            (rule(400_000, 10), Decision::Call),
            (rule(500_000, 10), Decision::Call),
            (rule(600_000, 10), Decision::Hold(Some(SECOND / 10))),
            (rule(600_000, 2), Decision::Call),
            (rule(u32::MAX, 3), Decision::Hold(None)),
            (rule(u32::MAX, 2), Decision::Call),
        ];
        for (new, decision) in cases(table) {
            let mut moderator = moderator(1_000_000, 50);
            kunit_assert_eq!(
                moderator.decide(true, 2, false, || SECOND),
                Decision::Hold(Some(SECOND))
            );
            kunit_assert_eq!(moderator.change(new, SECOND + SECOND / 2), decision);
            kunit_assert_eq!(moderator.cancel_held(), decision != Decision::Call);
        }
    }
}
