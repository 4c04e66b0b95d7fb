// SPDX-License-Identifier: GPL-2.0

//! What verbs call the engine's operations and statuses. Several statuses are one in verbs: only
//! faults, which are set to a status of verbs, lead back.
//!
//! Context: any.
//!
//! Tests: here, and `verbs/cq.rs`.

use super::{
    status::Status,
    work::Operation, //
};

pub(crate) use crate::sys::wc::{
    WcOpcode,
    WcStatus, //
};

impl From<Operation> for WcOpcode {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Send => Self::Send,
            Operation::Write => Self::Write,
            Operation::Read => Self::Read,
            Operation::FetchAdd => Self::FetchAdd,
            Operation::CompareSwap => Self::CompSwap,
            Operation::Register => Self::RegMr,
            Operation::Invalidate => Self::LocalInv,
            Operation::Bind => Self::BindMw,
            Operation::Receive => Self::Recv,
            Operation::ReceiveWrite => Self::RecvWithImm,
        }
    }
}

/// What the end of that operation is called: a receive is not repeated, but waits in vain.
#[inline]
pub(crate) fn status(status: Status, operation: Operation) -> WcStatus {
    match (status.into(), operation) {
        (WcStatus::RetryExc, Operation::Receive | Operation::ReceiveWrite) => WcStatus::RespTimeout,
        (status, _) => status,
    }
}

impl From<Status> for WcStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Success => Self::Success,
            Status::Flushed | Status::Aborted => Self::WrFlush,
            Status::LocalLength | Status::ReceiveLength => Self::LocLen,
            Status::LocalOperation | Status::ReceiveInvalidation => Self::LocQpOp,
            Status::LocalAccess => Self::LocProt,
            Status::Bind => Self::MwBind,
            Status::RemoteAccess => Self::RemAccess,
            Status::RemoteInvalidRequest => Self::RemInvReq,
            Status::RemoteOperation => Self::RemOp,
            Status::ReceiverNotReady => Self::RnrRetryExc,
            Status::Timeout | Status::Refused | Status::Unreachable => Self::RetryExc,
            Status::Fatal => Self::Fatal,
        }
    }
}

/// For the statuses that a fault can be set to; success is not one.
impl From<WcStatus> for Status {
    fn from(status: WcStatus) -> Self {
        match status {
            WcStatus::LocLen => Self::LocalLength,
            WcStatus::LocQpOp => Self::LocalOperation,
            WcStatus::LocProt => Self::LocalAccess,
            WcStatus::WrFlush => Self::Flushed,
            WcStatus::MwBind => Self::Bind,
            WcStatus::RemInvReq => Self::RemoteInvalidRequest,
            WcStatus::RemAccess => Self::RemoteAccess,
            WcStatus::RemOp => Self::RemoteOperation,
            WcStatus::RetryExc | WcStatus::RespTimeout => Self::Timeout,
            WcStatus::RnrRetryExc => Self::ReceiverNotReady,
            WcStatus::Success | WcStatus::Fatal => Self::Fatal,
        }
    }
}

#[cfg(all(ndk_kunit, CONFIG_FAULT_INJECTION_DEBUG_FS))]
#[kernel::macros::kunit_tests(ndk_engine_wc)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_a_fault_is_set_to_is_the_one_that_is_reported() {
        for status in WcStatus::FAILURES {
            assert!(WcStatus::from(Status::from(status)) == status);
        }
    }
}
