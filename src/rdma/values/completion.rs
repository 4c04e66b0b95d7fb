// SPDX-License-Identifier: GPL-2.0

//! Work completions.

use super::{
    status::Status,
    wc::{
        WcOpcode,
        WcStatus, //
    },
    work::SendWith, //
};
use crate::sys::sge::Context;

/// A work completion: a finished request, as it stands in a completion queue. C: `struct ib_wc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wc {
    /// The consumer's number for the request, which has ended.
    pub(crate) context: Context,
    /// The number that the face gave with the queue pair.
    pub(crate) qp: usize,
    pub(crate) status: Status,
    pub(crate) opcode: WcOpcode,
    /// Bytes moved, for receives and reads.
    pub(crate) byte_len: u32,
    /// For a receive: the value that the message carried. A token is invalid already.
    pub(crate) with: SendWith,
    /// For a receive: the sender asked for an event.
    pub(crate) solicited: bool,
}

/// Two entries of a queue fit a cache line.
const _: () = assert!(size_of::<Wc>() == 32);

impl Wc {
    /// The completion of no request.
    pub(crate) const BLANK: Self = Self {
        context: Context::BLANK,
        qp: 0,
        status: Status::Success,
        opcode: WcOpcode::Send,
        byte_len: 0,
        with: SendWith::Nothing,
        solicited: false,
    };

    /// The status in the verbs. A receive that times out is `RespTimeout`: receives are not
    /// repeated.
    #[inline]
    pub(crate) fn wc_status(&self) -> WcStatus {
        match (self.status.into(), self.opcode) {
            (WcStatus::RetryExc, WcOpcode::Recv | WcOpcode::RecvWithImm) => WcStatus::RespTimeout,
            (status, _) => status,
        }
    }

    /// The NDKPI status of a failure, as the verbs' vendor error; zero means success.
    #[inline]
    pub(crate) const fn vendor_err(&self) -> u32 {
        match self.status {
            Status::Success => 0,
            status => status.ntstatus(),
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_values_completion)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    fn ended(status: Status, opcode: WcOpcode) -> Wc {
        Wc {
            status,
            opcode,
            ..Wc::BLANK
        }
    }

    #[test]
    fn a_receive_that_gets_no_answer_is_not_one_that_was_repeated() {
        for receive in cases([WcOpcode::Recv, WcOpcode::RecvWithImm]) {
            let timeout = ended(Status::Timeout, receive);
            kunit_assert_eq!(timeout.wc_status(), WcStatus::RespTimeout);
            let flushed = ended(Status::Flushed, receive);
            kunit_assert_eq!(flushed.wc_status(), WcStatus::WrFlush);
        }
        let send = ended(Status::Timeout, WcOpcode::Send);
        kunit_assert_eq!(send.wc_status(), WcStatus::RetryExc);
    }
}
