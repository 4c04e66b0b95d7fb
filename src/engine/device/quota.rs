// SPDX-License-Identifier: GPL-2.0

//! The limits of a device on objects at a time: [`Quotas`], and a [`Share`] of one for each object.
//! The faces share a device, and each object is counted once, in the engine.
//!
//! Programs get only a part, so that they cannot keep the kernel from making its objects.
//!
//! Context: any.

use kernel::{
    alloc::{
        flags::GFP_KERNEL_ACCOUNT,
        Flags, //
    },
    sync::atomic::{
        ordering::Relaxed,
        Atomic,
        AtomicFlag, //
    }, //
};

use crate::engine::{
    limits::{
        MAX_OBJECTS,
        MAX_PROGRAM_OBJECTS,
        MAX_PROGRAM_REGIONS, //
    },
    prelude::*, //
};

/// The kinds of objects that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quota {
    Domains,
    CompletionQueues,
    SharedReceives,
    QueuePairs,
    /// Regions of programs alone: the memory table bounds all regions.
    Regions,
}

impl Quota {
    /// All kinds.
    pub(crate) const ALL: [Self; 5] = [
        Self::Domains,
        Self::CompletionQueues,
        Self::SharedReceives,
        Self::QueuePairs,
        Self::Regions,
    ];

    /// The most objects of the kind, and the most of those that programs may have.
    const fn limits(self) -> (u32, u32) {
        match self {
            Self::Regions => (MAX_PROGRAM_REGIONS, MAX_PROGRAM_REGIONS),
            _ => (MAX_OBJECTS, MAX_PROGRAM_OBJECTS),
        }
    }
}

/// Returns the allocation flags for a queue: a program's is charged to its memory control group.
pub(in crate::engine) fn gfp(is_of_program: bool) -> Flags {
    match is_of_program {
        true => GFP_KERNEL_ACCOUNT,
        false => GFP_KERNEL,
    }
}

/// The number of objects of one kind.
struct ObjectCount {
    all: Atomic<u32>,
    /// Those of programs among them.
    of_programs: Atomic<u32>,
}

/// The number of objects of each kind.
pub(super) struct Quotas([ObjectCount; Quota::ALL.len()]);

impl Quotas {
    /// No objects.
    pub(super) fn new() -> Self {
        Self(
            [const {
                ObjectCount {
                    all: Atomic::new(0),
                    of_programs: Atomic::new(0),
                }
            }; Quota::ALL.len()],
        )
    }

    fn used(&self, quota: Quota) -> Option<&ObjectCount> {
        // CAST: a variant's number is an index.
        self.0.get(quota as usize)
    }
}

/// Raises a count below `most`; returns false at `most`.
fn try_increment(count: &Atomic<u32>, most: u32) -> bool {
    let mut now = count.load(Relaxed);
    while now < most {
        match count.cmpxchg(now, now + 1, Relaxed) {
            Ok(_) => return true,
            Err(other) => now = other,
        }
    }
    false
}

/// The place of one object; given back on drop, or before that by [`Share::give_back`].
pub(crate) struct Share {
    device: Arc<RdmaDevice>,
    quota: Quota,
    is_of_program: bool,
    is_back: AtomicFlag,
}

impl RdmaDevice {
    /// Takes a place for an object, of a program or of the kernel. Any context. `ENOMEM` when no
    /// place is left, as the providers of the kernel tree have it.
    pub(crate) fn share(self: &Arc<Self>, quota: Quota, is_of_program: bool) -> Result<Share> {
        let used = self.quotas.used(quota).ok_or(ENOMEM)?;
        let (all, of_programs) = quota.limits();
        if is_of_program && !try_increment(&used.of_programs, of_programs) {
            return Err(ENOMEM);
        }
        if !try_increment(&used.all, all) {
            if is_of_program {
                used.of_programs.fetch_sub(1, Relaxed);
            }
            return Err(ENOMEM);
        }
        Ok(Share {
            device: self.clone(),
            quota,
            is_of_program,
            is_back: AtomicFlag::new(false),
        })
    }
}

impl Share {
    /// Gives the place back: the object has ended for its owner, and another may be made. Late work
    /// of the object may still keep its memory. Later calls have no effect. Any context.
    pub(crate) fn give_back(&self) {
        if self.is_back.xchg(true, Relaxed) {
            return;
        }
        if let Some(used) = self.device.quotas.used(self.quota) {
            used.all.fetch_sub(1, Relaxed);
            if self.is_of_program {
                used.of_programs.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Returns true if the object is a program's.
    pub(crate) fn is_of_program(&self) -> bool {
        self.is_of_program
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Places that a device counts as taken, without objects, until this is dropped.
#[cfg(ndk_kunit)]
pub(crate) struct TakenPlaces {
    device: Arc<RdmaDevice>,
    quota: Quota,
    all: u32,
    of_programs: u32,
}

#[cfg(ndk_kunit)]
impl TakenPlaces {
    /// Takes all places but `left`. No other task may take a place during the call.
    pub(crate) fn leaving(device: &Arc<RdmaDevice>, quota: Quota, left: u32) -> Self {
        let (all, of_programs) = quota.limits();
        let add = |count: &Atomic<u32>, most: u32| {
            let more = (most - left).saturating_sub(count.load(Relaxed));
            count.add(more, Relaxed);
            more
        };
        let used = device.quotas.used(quota);
        Self {
            device: device.clone(),
            quota,
            all: used.map_or(0, |used| add(&used.all, all)),
            of_programs: used.map_or(0, |used| add(&used.of_programs, of_programs)),
        }
    }

    /// The numbers of other objects: all, and those of programs.
    pub(crate) fn others(&self) -> (u32, u32) {
        let used = self.device.quotas.used(self.quota);
        used.map_or((0, 0), |used| {
            let (all, programs) = (used.all.load(Relaxed), used.of_programs.load(Relaxed));
            (
                all.wrapping_sub(self.all),
                programs.wrapping_sub(self.of_programs),
            )
        })
    }
}

#[cfg(ndk_kunit)]
impl Drop for TakenPlaces {
    fn drop(&mut self) {
        if let Some(used) = self.device.quotas.used(self.quota) {
            used.all.fetch_sub(self.all, Relaxed);
            used.of_programs.fetch_sub(self.of_programs, Relaxed);
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_device_quota)]
mod tests {
    use super::*;
    use crate::{
        engine::domain::Domain,
        kunit::{
            harness::{
                cases,
                End,
                EndAttr,
                EngineHost,
                RNR_MS, //
            },
            queues::{
                Queue,
                Shared, //
            }, //
        }, //
    };

    #[test]
    fn the_last_place_is_given_once_and_comes_back() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        for quota in cases(Quota::ALL) {
            for is_of_program in cases([false, true]) {
                let taken = TakenPlaces::leaving(&device, quota, 1);
                let last = device.share(quota, is_of_program)?;
                for _ in 0..2 {
                    let refused = device.share(quota, is_of_program);
                    assert!(refused.is_err_and(|e| e == ENOMEM));
                }
                drop(last);
                let last = device.share(quota, is_of_program)?;
                // The place comes back once.
                last.give_back();
                drop(last);
                kunit_assert_eq!(taken.others(), (0, 0));
                assert!(device.share(quota, is_of_program).is_ok());
            }
        }
        Ok(())
    }

    #[test]
    fn programs_leave_places_for_the_kernel_and_the_kernel_may_take_all() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        for quota in cases(Quota::ALL) {
            let (all, of_programs) = quota.limits();
            let used = device.quotas.used(quota).ok_or(EINVAL)?;
            used.of_programs.store(of_programs, Relaxed);
            used.all.store(of_programs, Relaxed);
            assert!(device.share(quota, true).is_err());
            kunit_assert_eq!(device.share(quota, false).is_ok(), of_programs < all);
            // If the kernel has all places, programs get none, and no count changes.
            used.of_programs.store(0, Relaxed);
            used.all.store(all, Relaxed);
            assert!(device.share(quota, true).is_err());
            let now = (used.all.load(Relaxed), used.of_programs.load(Relaxed));
            kunit_assert_eq!(now, (all, 0));
            used.all.store(0, Relaxed);
        }
        Ok(())
    }

    #[test]
    fn two_that_ask_for_the_last_place_at_once_never_both_get_it() -> Result {
        const ROUNDS: u32 = 2_000;
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        let _taken = TakenPlaces::leaving(&device, Quota::QueuePairs, 1);
        let inside = Arc::new(Atomic::<u32>::new(0), GFP_KERNEL)?;
        let broken = Arc::new(Atomic::<u32>::new(0), GFP_KERNEL)?;
        let queue = crate::sys::softirq::ProcessQueue::new(c"ndk_test_quota")?;
        let turns = {
            let (device, inside, broken) = (device.clone(), inside.clone(), broken.clone());
            move || {
                for _ in 0..ROUNDS {
                    let Ok(share) = device.share(Quota::QueuePairs, false) else {
                        continue;
                    };
                    broken.add(inside.fetch_add(1, Relaxed), Relaxed);
                    inside.fetch_sub(1, Relaxed);
                    drop(share);
                }
            }
        };
        let other = crate::kunit::other_context::OtherContext::new(turns.clone())?;
        assert!(other.begin(&queue));
        turns();
        assert!(other.is_done());
        queue.flush();
        kunit_assert_eq!(broken.load(Relaxed), 0);
        assert!(device.share(Quota::QueuePairs, false).is_ok());
        Ok(())
    }

    /// Makes an object of a kind.
    fn make(engine_host: &EngineHost, domain: &Arc<Domain>, quota: Quota) -> Result<KeptObject> {
        let device = domain.device();
        Ok(match quota {
            Quota::Domains => KeptObject::Domain(Domain::new(device.clone(), GFP_KERNEL)?),
            Quota::CompletionQueues => KeptObject::Queue(Queue::new(device, 4, u32::MAX)?),
            Quota::SharedReceives => KeptObject::Shared(Shared::new(domain, 4, 1)?),
            Quota::QueuePairs | Quota::Regions => {
                let end = engine_host.end_in(domain, &EndAttr::PLAIN, None)?;
                KeptObject::Pair(end)
            }
        })
    }

    enum KeptObject {
        Domain(Arc<Domain>),
        Queue(Arc<Queue>),
        Shared(Arc<Shared>),
        Pair(End),
    }

    impl KeptObject {
        fn end(&self) {
            match self {
                Self::Domain(domain) => domain.close(),
                Self::Queue(queue) => queue.cq.close(),
                Self::Shared(shared) => shared.srq.close(),
                Self::Pair(end) => end.qp.destroy(),
            }
        }
    }

    #[test]
    fn the_limit_of_a_device_is_reached_and_not_passed_and_what_ended_counts_no_more() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let domain = Domain::new(engine_host.device()?, GFP_KERNEL)?;
        for quota in cases(Quota::ALL) {
            if quota == Quota::Regions {
                continue;
            }
            let _taken = TakenPlaces::leaving(domain.device(), quota, 1);
            let last = make(&engine_host, &domain, quota)?;
            let refused = make(&engine_host, &domain, quota);
            kunit_assert_eq!((quota, refused.err()), (quota, Some(ENOMEM)));
            // The object is kept, as by its late work.
            last.end();
            let next = make(&engine_host, &domain, quota)?;
            drop(last);
            let refused = make(&engine_host, &domain, quota);
            kunit_assert_eq!((quota, refused.err()), (quota, Some(ENOMEM)));
            next.end();
        }
        Ok(())
    }

    #[test]
    fn a_making_that_fails_gives_its_place_back() -> Result {
        use crate::sys::fault::{
            needed,
            plan_from,
            planned_struck, //
        };
        if !needed() {
            return Ok(());
        }
        let engine_host = EngineHost::new(RNR_MS)?;
        let domain = Domain::new(engine_host.device()?, GFP_KERNEL)?;
        for quota in cases(Quota::ALL) {
            let taken = TakenPlaces::leaving(domain.device(), quota, 2);
            let before = taken.others();
            for n in cases(1..100) {
                if !plan_from(n) {
                    return Err(EINVAL);
                }
                let made = make(&engine_host, &domain, quota);
                let struck = planned_struck();
                if let Ok(made) = &made {
                    made.end();
                }
                kunit_assert_eq!((quota, taken.others()), (quota, before));
                if !struck {
                    break;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn domains_of_programs_are_counted_as_such() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        let used = device.quotas.used(Quota::Domains).ok_or(EINVAL)?;
        used.of_programs.store(MAX_PROGRAM_OBJECTS - 1, Relaxed);
        let domain = Domain::untrusted(device.clone())?;
        assert!(Domain::untrusted(device.clone()).is_err_and(|e| e == ENOMEM));
        assert!(Domain::new(device.clone(), GFP_KERNEL).is_ok());
        drop(domain);
        assert!(Domain::untrusted(device.clone()).is_ok());
        used.of_programs.store(0, Relaxed);
        Ok(())
    }
}
