// SPDX-License-Identifier: GPL-2.0

//! How many objects programs may have on a device at a time: [`Quotas`], and a [`Share`] of one for
//! each object. What the kernel itself makes is not counted.
//!
//! Context: any.

use kernel::{
    alloc::{
        flags::GFP_KERNEL_ACCOUNT,
        Flags, //
    },
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    },
};

use crate::engine::{
    limits::{
        MAX_OBJECTS,
        MAX_PROGRAM_REGIONS, //
    },
    prelude::*, //
};

/// What is counted. Queue pairs are, with their numbers, for all devices together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quota {
    Domains,
    CompletionQueues,
    SharedReceives,
    Regions,
}

impl Quota {
    const COUNT: usize = 4;

    const fn most(self) -> u32 {
        match self {
            Self::Domains | Self::CompletionQueues | Self::SharedReceives => MAX_OBJECTS,
            Self::Regions => MAX_PROGRAM_REGIONS,
        }
    }
}

/// How the memory of a queue is allocated: what a program makes is charged to its memory control
/// group.
pub(in crate::engine) fn gfp(is_of_program: bool) -> Flags {
    match is_of_program {
        true => GFP_KERNEL_ACCOUNT,
        false => GFP_KERNEL,
    }
}

/// How many there are of each kind.
pub(super) struct Quotas([Atomic<u32>; Quota::COUNT]);

impl Quotas {
    /// None yet.
    pub(super) fn new() -> Self {
        Self([const { Atomic::new(0) }; Quota::COUNT])
    }

    fn used(&self, quota: Quota) -> Option<&Atomic<u32>> {
        // CAST: a variant's number is an index.
        self.0.get(quota as usize)
    }
}

/// The place of one object of a program; given back on drop.
pub(crate) struct Share {
    device: Arc<RdmaDevice>,
    quota: Quota,
}

impl RdmaDevice {
    /// Takes a place for an object of a program. `ENOMEM` when there is none.
    pub(crate) fn share(self: &Arc<Self>, quota: Quota) -> Result<Share> {
        let used = self.quotas.used(quota).ok_or(ENOMEM)?;
        // Given back at once if it is one too many.
        let share = Share {
            device: self.clone(),
            quota,
        };
        match used.fetch_add(1, Relaxed) < quota.most() {
            true => Ok(share),
            false => Err(ENOMEM),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(used) = self.device.quotas.used(self.quota) {
            used.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_device_quota)]
mod tests {
    use super::*;
    use crate::{
        engine::domain::Domain,
        kunit::harness::{
            EngineHost,
            RNR_MS, //
        }, //
    };

    /// As if programs had so many.
    fn set(device: &RdmaDevice, quota: Quota, used: u32) {
        if let Some(place) = device.quotas.used(quota) {
            place.store(used, Relaxed);
        }
    }

    #[test]
    fn the_last_place_is_given_once_and_comes_back() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        for quota in [
            Quota::Domains,
            Quota::CompletionQueues,
            Quota::SharedReceives,
            Quota::Regions,
        ] {
            set(&device, quota, quota.most() - 1);
            let last = device.share(quota)?;
            for _ in 0..2 {
                assert!(device.share(quota).is_err_and(|e| e == ENOMEM));
            }
            drop(last);
            assert!(device.share(quota).is_ok());
            set(&device, quota, 0);
        }
        Ok(())
    }

    #[test]
    fn domains_of_programs_are_counted_and_those_of_the_kernel_are_not() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let device = engine_host.device()?;
        set(&device, Quota::Domains, MAX_OBJECTS - 1);
        let domain = Domain::untrusted(device.clone())?;
        assert!(Domain::untrusted(device.clone()).is_err_and(|e| e == ENOMEM));
        assert!(Domain::new(device.clone(), GFP_KERNEL)?
            .share(Quota::Domains)?
            .is_none());
        drop(domain);
        assert!(Domain::untrusted(device.clone()).is_ok());
        set(&device, Quota::Domains, 0);
        Ok(())
    }
}
