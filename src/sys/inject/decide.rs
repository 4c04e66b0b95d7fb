// SPDX-License-Identifier: GPL-2.0

//! The choice of the sites that a fault hits: by its settings, and by the numbers of the sites.
//!
//! Context: any, under the lock of the device's faults.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use super::{
    FaultSide,
    SiteKind,
    WcStatus, //
};
use crate::bindings;

/// The settings of a fault; 0 stands for any, except in the first two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Percent.
    pub(super) probability: u32,
    /// One site in this many.
    pub(super) interval: u32,
    pub(super) qp: u32,
    pub(super) nth: u32,
    pub(super) usec: u32,
    pub(super) seed: u32,
    pub(super) status: WcStatus,
    /// Bits: see [`SiteKind`]. Any means all but receives, whose numbers would mix with those of
    /// the requests by chance.
    pub(super) what: u32,
    pub(super) side: FaultSide,
}

impl Settings {
    /// Returns true if the fault meets a site of kind `what` on queue pair `qp`.
    pub(super) fn matches(&self, what: SiteKind, qp: u32) -> bool {
        let is_meant = match self.what {
            0 => what != SiteKind::Receive,
            // CAST: the bit of the variant.
            bits => bits & what as u32 != 0,
        };
        self.probability > 0 && is_meant && (self.qp == 0 || self.qp == qp)
    }

    /// Returns true if the fault hits the site with this number; `draw` is a random number for the
    /// site.
    pub(super) fn picks(&self, number: u32, draw: u32) -> bool {
        (self.nth == 0 || self.nth == number)
            && number % self.interval.max(1) == 0
            && draw % 100 < self.probability
    }
}

/// The count of one fault for a queue pair: the number of sites met in a run, and the queue pair's
/// own number among the users of the fault in that run. A run begins when the probability is set.
/// Packed into one word, which a queue pair has for each fault.
#[derive(Clone, Copy)]
struct SiteCount {
    run: u16,
    user: u16,
    number: u32,
}

impl SiteCount {
    // CAST: each field is its own part of the word.
    const fn unpack(word: u64) -> Self {
        Self {
            run: (word >> 48) as u16,
            user: (word >> 32) as u16,
            number: word as u32,
        }
    }

    // CAST: as above.
    const fn pack(self) -> u64 {
        (self.run as u64) << 48 | (self.user as u64) << 32 | self.number as u64
    }
}

/// Counts one more site that the fault has met; `site_count` is the word of its queue pair, if it
/// has one.
/// Returns the number of the user, and the number of the site among that user's, from 1. A site of
/// no queue pair has user 0, and its number among all sites.
pub(super) fn count(
    counts: &mut bindings::ndk_fault_counts,
    site_count: Option<&Atomic<u64>>,
) -> (u16, u32) {
    counts.seen = counts.seen.wrapping_add(1);
    let Some(word) = site_count else {
        return (0, counts.seen);
    };
    let mut met = SiteCount::unpack(word.load(Relaxed));
    if met.run != counts.run {
        met = SiteCount {
            run: counts.run,
            user: counts.users,
            number: 0,
        };
        counts.users = counts.users.wrapping_add(1);
    }
    met.number = met.number.wrapping_add(1);
    word.store(met.pack(), Relaxed);
    (met.user, met.number)
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_inject_decide)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    const ALL: Settings = Settings {
        probability: 100,
        interval: 1,
        qp: 0,
        nth: 0,
        usec: 0,
        seed: 0,
        status: WcStatus::RemOp,
        what: 0,
        side: FaultSide::Both,
    };

    fn of_run(run: u16) -> bindings::ndk_fault_counts {
        bindings::ndk_fault_counts {
            run,
            ..Default::default()
        }
    }

    #[test]
    fn a_fault_without_probability_meets_nothing() {
        let off = Settings {
            probability: 0,
            ..ALL
        };
        assert!(ALL.matches(SiteKind::Send, 1));
        assert!(!off.matches(SiteKind::Send, 1));
    }

    #[test]
    fn a_fault_meets_what_it_is_set_to() {
        let set = Settings {
            // CAST: the bits of the variants.
            what: SiteKind::Send as u32 | SiteKind::Write as u32,
            qp: 7,
            ..ALL
        };
        assert!(set.matches(SiteKind::Send, 7));
        assert!(set.matches(SiteKind::Write, 7));
        assert!(!set.matches(SiteKind::Read, 7));
        assert!(!set.matches(SiteKind::Send, 8));
        assert!(!set.matches(SiteKind::Send, 0));
    }

    #[test]
    fn a_receive_is_met_where_it_is_named_only() {
        let receives = Settings {
            // CAST: the bit of the variant.
            what: SiteKind::Receive as u32,
            ..ALL
        };
        assert!(receives.matches(SiteKind::Receive, 1));
        assert!(!receives.matches(SiteKind::Send, 1));
        assert!(!ALL.matches(SiteKind::Receive, 1));
        assert!(ALL.matches(SiteKind::Bind, 1));
        assert!(ALL.matches(SiteKind::Domain, 0));
        assert!(ALL.matches(SiteKind::Disconnect, 0));
    }

    #[test]
    fn a_fault_picks_by_number_and_by_chance() {
        let third = Settings { nth: 3, ..ALL };
        assert!(third.picks(3, 99));
        assert!(!third.picks(2, 0));
        assert!(!third.picks(4, 0));
        let every_third = Settings { interval: 3, ..ALL };
        let picked = [1, 2, 3, 4, 5, 6].map(|number| every_third.picks(number, 0));
        kunit_assert_eq!(picked, [false, false, true, false, false, true]);
        let half = Settings {
            probability: 50,
            ..ALL
        };
        assert!(half.picks(1, 49));
        assert!(half.picks(1, 149));
        assert!(!half.picks(1, 50));
        assert!(!half.picks(1, 99));
        assert!(ALL.picks(1, 99));
        assert!(ALL.picks(1, u32::MAX));
    }

    #[test]
    fn each_queue_pair_has_numbers_of_its_own() {
        let mut counts = of_run(1);
        let (one, other) = (Atomic::new(0), Atomic::new(0));
        kunit_assert_eq!(count(&mut counts, Some(&one)), (0, 1));
        kunit_assert_eq!(count(&mut counts, Some(&other)), (1, 1));
        kunit_assert_eq!(count(&mut counts, Some(&one)), (0, 2));
        kunit_assert_eq!(count(&mut counts, None), (0, 4));
        kunit_assert_eq!(count(&mut counts, Some(&other)), (1, 2));
        kunit_assert_eq!(counts.seen, 5);
        kunit_assert_eq!(counts.users, 2);
    }

    #[test]
    fn a_new_probability_begins_to_count_anew() {
        let mut counts = of_run(1);
        let (one, other) = (Atomic::new(0), Atomic::new(0));
        for number in cases(1..4) {
            kunit_assert_eq!(count(&mut counts, Some(&one)), (0, number));
        }
        counts = of_run(2);
        kunit_assert_eq!(count(&mut counts, Some(&other)), (0, 1));
        kunit_assert_eq!(count(&mut counts, Some(&one)), (1, 1));
    }

    #[test]
    fn numbers_come_round_without_touching_the_user() {
        let mut counts = bindings::ndk_fault_counts {
            users: 3,
            ..of_run(5)
        };
        let last = SiteCount {
            run: 5,
            user: 2,
            number: u32::MAX,
        };
        let word = Atomic::new(last.pack());
        kunit_assert_eq!(count(&mut counts, Some(&word)), (2, 0));
        kunit_assert_eq!(count(&mut counts, Some(&word)), (2, 1));
        kunit_assert_eq!(counts.users, 3);
    }
}
