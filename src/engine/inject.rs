// SPDX-License-Identifier: GPL-2.0

//! Fault injection in the engine: what a fault meets, and the count, log line and
//! tracepoint of each hit.
//!
//! Whoever comes by a place where a fault may hit asks [`is_on`], a static branch, before anything
//! else here. What then happens to a request is the transport's business (`direct/inject.rs`), what
//! happens to a connection the connection manager's (`cm/inject.rs`).
//!
//! Context: any.
//!
//! Tests: `direct/tests/inject.rs`.

use super::{
    prelude::*,
    qp::QueuePair,
    trace, //
};
use crate::{
    rdma::values::work::SendOp,
    sys::log::{
        self,
        Limit, //
    }, //
};

pub(crate) use crate::sys::inject::{
    is_on,
    Counts,
    Fault,
    Faults,
    Hit,
    Side,
    Site,
    What, //
};

#[cfg(ndk_kunit)]
pub(crate) use crate::sys::inject::{
    needed,
    Order, //
};

impl RdmaDevice {
    /// Returns what `fault` does to what comes by here, of `size` bytes, if it hits.
    #[cold]
    pub(crate) fn inject(
        &self,
        fault: Fault,
        what: What,
        qp: Option<&QueuePair>,
        size: u64,
    ) -> Option<Hit> {
        let limit = qp.map_or(Limit::Kernel, |qp| qp.log_limit());
        self.inject_within(limit, fault, what, qp, size)
    }

    /// The same; a hit is in the log as far as that limit allows.
    #[cold]
    pub(super) fn inject_within(
        &self,
        limit: Limit,
        fault: Fault,
        what: What,
        qp: Option<&QueuePair>,
        size: u64,
    ) -> Option<Hit> {
        let site = Site {
            what,
            qp: qp.map(|qp| (qp.params.number, &qp.met)),
            size,
        };
        let hit = self.faults.hits(fault, &site)?;
        self.count(Counter::FaultsInjected, 1);
        let of = qp.map_or(0, |qp| qp.params.number);
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

    /// `ENOMEM` if the object that is about to be made is one that is to fail.
    #[inline]
    pub(crate) fn may_make(&self, what: What) -> Result {
        match is_on() && self.inject(Fault::NoMemory, what, None, 0).is_some() {
            true => Err(ENOMEM),
            false => Ok(()),
        }
    }
}

impl SendOp {
    /// What a fault takes the request for.
    pub(crate) const fn what(&self) -> What {
        match self {
            Self::Send { .. } => What::Send,
            Self::Write { .. } => What::Write,
            Self::Read { .. } => What::Read,
            Self::FetchAdd { .. } | Self::CmpSwap { .. } => What::Atomic,
            Self::RegMr { .. } => What::Register,
            Self::LocalInv { .. } => What::Invalidate,
            Self::BindMw { .. } => What::Bind,
        }
    }
}
