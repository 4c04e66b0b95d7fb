// SPDX-License-Identifier: GPL-2.0

//! The engine's tracepoints.
//!
//! Context: any.
//!
//! Tests: `../tests/guest/faults.sh`.

use super::{
    cq::CompletionQueue,
    qp::QpParams, //
};
use crate::{
    rdma::values::{
        completion::Wc,
        wc::{
            WcOpcode,
            WcStatus, //
        }, //
    },
    sys::name::Name, //
};

pub(crate) use crate::sys::trace::event;

/// A completion of that queue pair goes to `cq`.
#[inline(always)]
pub(super) fn complete(qp: &QpParams, cq: &CompletionQueue, entry: &Wc) {
    event!(complete, completed(qp, cq, entry));
}

fn completed(
    qp: &QpParams,
    cq: &CompletionQueue,
    entry: &Wc,
) -> (Name, u32, u32, u64, WcOpcode, WcStatus, u32) {
    (
        qp.domain.device().name(),
        qp.number,
        cq.number,
        entry.context.raw(),
        entry.opcode,
        entry.wc_status(),
        entry.byte_len,
    )
}
