// SPDX-License-Identifier: GPL-2.0

//! The engine's tracepoints.
//!
//! Context: any.
//!
//! Tests: `../tests/guest/faults.sh`.

use super::{
    cq::CompletionQueue,
    qp::QpParams,
    wc::{
        self,
        WcOpcode,
        WcStatus, //
    },
    work::Completion, //
};
use crate::sys::name::Name;

pub(crate) use crate::sys::trace::{
    access_refused,
    connect,
    disconnect,
    fault,
    invalidate,
    notify,
    post_recv,
    post_send,
    receive,
    rnr_wait,
    start, //
};

/// A completion of that queue pair is in `cq`.
#[inline(always)]
pub(super) fn complete(qp: &QpParams, cq: &CompletionQueue, entry: &Completion) {
    crate::sys::trace::complete(|| completed(qp, cq, entry));
}

#[cold]
fn completed(
    qp: &QpParams,
    cq: &CompletionQueue,
    entry: &Completion,
) -> (Name, u32, u32, u64, WcOpcode, WcStatus, u32) {
    (
        qp.domain.device().name(),
        qp.number,
        cq.number,
        entry.context.raw(),
        entry.operation.into(),
        wc::status(entry.status, entry.operation),
        entry.length,
    )
}
