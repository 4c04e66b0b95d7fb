// SPDX-License-Identifier: GPL-2.0
// host-test

//! The kinds of work requests, and their ends, as the verbs name them.
//!
//! Several statuses of the engine are one status of the verbs. Only faults, which are set to a
//! status of the verbs, are mapped back.

use super::status::Status;

/// The end of a work request, as the verbs name it. C: `enum ib_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub(crate) enum WcStatus {
    Success = 0,
    LocLen = 1,
    LocQpOp = 2,
    LocProt = 4,
    WrFlush = 5,
    MwBind = 6,
    RemInvReq = 9,
    RemAccess = 10,
    RemOp = 11,
    RetryExc = 12,
    RnrRetryExc = 13,
    Fatal = 19,
    RespTimeout = 20,
}

#[cfg(any(test, ndk_kunit, CONFIG_FAULT_INJECTION_DEBUG_FS))]
impl WcStatus {
    /// All statuses that a request may be made to fail with.
    pub(crate) const FAILURES: [Self; 11] = [
        Self::LocLen,
        Self::LocQpOp,
        Self::LocProt,
        Self::WrFlush,
        Self::MwBind,
        Self::RemInvReq,
        Self::RemAccess,
        Self::RemOp,
        Self::RetryExc,
        Self::RnrRetryExc,
        Self::Fatal,
    ];

    /// The status of [`Self::FAILURES`] that has this number in C.
    #[cfg(any(test, CONFIG_FAULT_INJECTION_DEBUG_FS))]
    pub(crate) fn failure(number: u32) -> Option<Self> {
        let mut all = Self::FAILURES.into_iter();
        // CAST: the numbers of the variants.
        all.find(|status| *status as u32 == number)
    }
}

/// The kind of a work request that ended. C: `enum ib_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum WcOpcode {
    Send = 0,
    Write = 1,
    Read = 2,
    CompSwap = 3,
    FetchAdd = 4,
    BindMw = 5,
    LocalInv = 6,
    RegMr = 10,
    Recv = 128,
    /// A receive that a write with immediate data consumed.
    RecvWithImm = 129,
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

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_rdma_values_wc))]
#[cfg(any(test, all(ndk_kunit, CONFIG_FAULT_INJECTION_DEBUG_FS)))]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_a_fault_is_set_to_is_the_one_that_is_reported() {
        for status in WcStatus::FAILURES {
            assert_eq!(WcStatus::from(Status::from(status)), status);
            assert_eq!(WcStatus::failure(status as u32), Some(status));
        }
        for number in [WcStatus::Success as u32, 3, u32::MAX] {
            assert_eq!(WcStatus::failure(number), None);
        }
    }
}
