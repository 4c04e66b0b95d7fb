// SPDX-License-Identifier: GPL-2.0

//! Fault injection in the engine: the sites, and the count, log line and tracepoint of each hit.
//!
//! A site of a fault asks [`is_on`], a static branch, first. The transport carries out the faults
//! of requests (`direct/inject.rs`), the connection manager the faults of connections
//! (`cm/inject.rs`).
//!
//! Context: any.
//!
//! Tests: `direct/tests/inject.rs`.

use super::prelude::*;
use crate::{
    rdma::values::work::SendOp,
    sys::{
        log::{
            self,
            Limit, //
        },
        trace, //
    }, //
};

pub(crate) use crate::sys::inject::{
    is_on,
    Counts,
    Fault,
    FaultSide,
    Faults,
    Hit,
    Site,
    SiteKind, //
};

#[cfg(ndk_kunit)]
pub(crate) use crate::sys::inject::{
    needed,
    FaultSettings, //
};

impl RdmaDevice {
    /// Returns the hit of `fault` at `site`, if it hits. A hit is in the log as far as `limit`
    /// allows.
    #[cold]
    pub(crate) fn inject(&self, fault: Fault, site: &Site<'_>, limit: Limit) -> Option<Hit> {
        let hit = self.faults.hits(fault, site)?;
        self.count(Counter::FaultsInjected, 1);
        let of = site.qp.map_or(0, |(number, _)| number);
        trace::event!(fault, (self.name(), of, fault.name(), hit.number));
        if log::allowed(limit) {
            let (name, fault) = (self.name(), fault.name());
            match of {
                0 => pr_info!("{}: {} hits number {}\n", name, fault, hit.number),
                _ => pr_info!(
                    "{}: qp {}: {} hits number {}\n",
                    name,
                    of,
                    fault,
                    hit.number
                ),
            }
        }
        Some(hit)
    }

    /// `ENOMEM` if a fault hits the object that is about to be made.
    #[inline]
    pub(crate) fn may_make(&self, what: SiteKind) -> Result {
        let site = Site::of_device(what);
        match is_on() && self.inject(Fault::NoMemory, &site, Limit::Kernel).is_some() {
            true => Err(ENOMEM),
            false => Ok(()),
        }
    }
}

impl Site<'_> {
    /// A site of a device, without a queue pair.
    pub(super) const fn of_device(what: SiteKind) -> Self {
        Self {
            what,
            qp: None,
            size: 0,
        }
    }
}

impl SendOp {
    /// The kind of the request, as faults know it.
    pub(crate) const fn what(&self) -> SiteKind {
        match self {
            Self::Send { .. } => SiteKind::Send,
            Self::Write { .. } => SiteKind::Write,
            Self::Read { .. } => SiteKind::Read,
            Self::FetchAdd { .. } | Self::CmpSwap { .. } => SiteKind::Atomic,
            Self::RegMr { .. } => SiteKind::Register,
            Self::LocalInv { .. } => SiteKind::Invalidate,
            Self::BindMw { .. } => SiteKind::Bind,
        }
    }
}
