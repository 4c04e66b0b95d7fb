// SPDX-License-Identifier: GPL-2.0

//! What verbs call the kinds of work requests and their ends, in completions and tracepoints.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::bindings;

/// How a work request ended. C: `enum ib_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub(crate) enum WcStatus {
    Success = bindings::ib_wc_status_IB_WC_SUCCESS,
    LocLen = bindings::ib_wc_status_IB_WC_LOC_LEN_ERR,
    LocQpOp = bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR,
    LocProt = bindings::ib_wc_status_IB_WC_LOC_PROT_ERR,
    WrFlush = bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR,
    MwBind = bindings::ib_wc_status_IB_WC_MW_BIND_ERR,
    RemInvReq = bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR,
    RemAccess = bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR,
    RemOp = bindings::ib_wc_status_IB_WC_REM_OP_ERR,
    RetryExc = bindings::ib_wc_status_IB_WC_RETRY_EXC_ERR,
    RnrRetryExc = bindings::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR,
    Fatal = bindings::ib_wc_status_IB_WC_FATAL_ERR,
    RespTimeout = bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR,
}

#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS)]
impl WcStatus {
    /// All that a request may be made to fail with.
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

    /// The one of [`Self::FAILURES`] that C has this number for.
    pub(crate) fn failure(number: bindings::ib_wc_status) -> Option<Self> {
        let mut all = Self::FAILURES.into_iter();
        // CAST: the numbers of the variants.
        all.find(|status| *status as bindings::ib_wc_status == number)
    }
}

/// Which kind of work request ended. C: `enum ib_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub(crate) enum WcOpcode {
    Send = bindings::ib_wc_opcode_IB_WC_SEND,
    Write = bindings::ib_wc_opcode_IB_WC_RDMA_WRITE,
    Read = bindings::ib_wc_opcode_IB_WC_RDMA_READ,
    CompSwap = bindings::ib_wc_opcode_IB_WC_COMP_SWAP,
    FetchAdd = bindings::ib_wc_opcode_IB_WC_FETCH_ADD,
    BindMw = bindings::ib_wc_opcode_IB_WC_BIND_MW,
    LocalInv = bindings::ib_wc_opcode_IB_WC_LOCAL_INV,
    RegMr = bindings::ib_wc_opcode_IB_WC_REG_MR,
    Recv = bindings::ib_wc_opcode_IB_WC_RECV,
    /// A receive that a write with immediate data consumed.
    RecvWithImm = bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM,
}
