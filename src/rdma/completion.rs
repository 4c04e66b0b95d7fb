// SPDX-License-Identifier: GPL-2.0

//! Work completions on their way to the consumer. C: `struct ib_wc`.

use super::{
    device::PORT,
    prelude::*,
    qp::QpCookie,
    values::{
        wc::{
            WcOpcode,
            WcStatus, //
        },
        work::SendWith, //
    }, //
};
use crate::{
    rdma::values::completion::Wc,
    sys::shared::CompletionWords, //
};

/// The kinds of requests, and their ends, have the numbers of C.
const _: () = {
    assert!(WcOpcode::Send as u32 == bindings::ib_wc_opcode_IB_WC_SEND);
    assert!(WcOpcode::Write as u32 == bindings::ib_wc_opcode_IB_WC_RDMA_WRITE);
    assert!(WcOpcode::Read as u32 == bindings::ib_wc_opcode_IB_WC_RDMA_READ);
    assert!(WcOpcode::CompSwap as u32 == bindings::ib_wc_opcode_IB_WC_COMP_SWAP);
    assert!(WcOpcode::FetchAdd as u32 == bindings::ib_wc_opcode_IB_WC_FETCH_ADD);
    assert!(WcOpcode::BindMw as u32 == bindings::ib_wc_opcode_IB_WC_BIND_MW);
    assert!(WcOpcode::LocalInv as u32 == bindings::ib_wc_opcode_IB_WC_LOCAL_INV);
    assert!(WcOpcode::RegMr as u32 == bindings::ib_wc_opcode_IB_WC_REG_MR);
    assert!(WcOpcode::Recv as u32 == bindings::ib_wc_opcode_IB_WC_RECV);
    assert!(WcOpcode::RecvWithImm as u32 == bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM);
    assert!(WcStatus::Success as u32 == bindings::ib_wc_status_IB_WC_SUCCESS);
    assert!(WcStatus::LocLen as u32 == bindings::ib_wc_status_IB_WC_LOC_LEN_ERR);
    assert!(WcStatus::LocQpOp as u32 == bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR);
    assert!(WcStatus::LocProt as u32 == bindings::ib_wc_status_IB_WC_LOC_PROT_ERR);
    assert!(WcStatus::WrFlush as u32 == bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR);
    assert!(WcStatus::MwBind as u32 == bindings::ib_wc_status_IB_WC_MW_BIND_ERR);
    assert!(WcStatus::RemInvReq as u32 == bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR);
    assert!(WcStatus::RemAccess as u32 == bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR);
    assert!(WcStatus::RemOp as u32 == bindings::ib_wc_status_IB_WC_REM_OP_ERR);
    assert!(WcStatus::RetryExc as u32 == bindings::ib_wc_status_IB_WC_RETRY_EXC_ERR);
    assert!(WcStatus::RnrRetryExc as u32 == bindings::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR);
    assert!(WcStatus::Fatal as u32 == bindings::ib_wc_status_IB_WC_FATAL_ERR);
    assert!(WcStatus::RespTimeout as u32 == bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR);
};

impl SendWith {
    /// The flags of a completion, and the 32 bits that go with them.
    fn to_c(self) -> (u32, u32) {
        match self {
            Self::Nothing => (0, 0),
            Self::Imm(data) => (bindings::ib_wc_flags_IB_WC_WITH_IMM, data),
            Self::Inv(token) => (bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE, token.raw()),
        }
    }
}

/// The flag of libibverbs for a receive that has invalidated a key. C: `IBV_WC_WITH_INV`.
const IBV_WC_WITH_INV: u32 = 1 << 3;

impl Wc {
    /// The completion as a program reads it in a shared queue, for queue pair `qpn`. C: `struct
    /// ib_uverbs_wc`.
    pub(crate) fn shared(&self, qpn: u32) -> CompletionWords {
        let (flags, invalidate_rkey) = self.with.to_c();
        // libibverbs has another number for this flag than the kernel.
        let flags = match self.with {
            SendWith::Inv(_) => IBV_WC_WITH_INV,
            _ => flags,
        };
        // CAST: the numbers of the variants; the port's is one.
        let wc = bindings::ib_uverbs_wc {
            wr_id: self.context.raw(),
            status: self.wc_status() as u32,
            opcode: self.opcode as u32,
            vendor_err: self.vendor_err(),
            byte_len: self.byte_len,
            ex: bindings::ib_uverbs_wc__bindgen_ty_1 { invalidate_rkey },
            qp_num: qpn,
            wc_flags: flags,
            port_num: PORT as u8,
            ..pin_init::zeroed()
        };
        // SAFETY: The structure is as large as its fields, all of which are numbers.
        unsafe { core::mem::transmute::<bindings::ib_uverbs_wc, CompletionWords>(wc) }
    }
}

/// The consumer's array of `struct ib_wc`, filled from the front.
///
/// # Invariants
///
/// `next` is writable for `room` entries; `written` entries lie before it.
pub(crate) struct WcWriter<'a> {
    next: *mut Unaligned<bindings::ib_wc>,
    room: usize,
    written: c_int,
    _array: PhantomData<&'a mut bindings::ib_wc>,
}

impl WcWriter<'_> {
    /// # Safety
    ///
    /// `array` is writable for `room` entries as long as the writer lives; it need not be aligned.
    pub(super) unsafe fn new(array: *mut bindings::ib_wc, room: c_int) -> Self {
        // INVARIANT: by the safety requirements; a negative room is none.
        Self {
            next: array.cast(),
            room: usize::try_from(room).unwrap_or(0),
            written: 0,
            _array: PhantomData,
        }
    }

    /// The number of completions that still fit.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Writes a completion; returns false if there is no room.
    ///
    /// The fields for datagrams are zero, but fields that `wc_flags` would have to announce are not
    /// written.
    #[inline]
    pub(crate) fn push(&mut self, wc: &Wc) -> bool {
        if self.room == 0 {
            return false;
        }
        let (flags, ex) = wc.with.to_c();
        // CAST: Flags are small.
        // SAFETY: By the invariant `next` is writable for at least one entry.
        unsafe {
            let out = self.next;
            (*out).0.__bindgen_anon_1.wr_id = wc.context.raw();
            (*out).0.status = wc.wc_status() as bindings::ib_wc_status;
            (*out).0.opcode = wc.opcode as bindings::ib_wc_opcode;
            (*out).0.vendor_err = wc.vendor_err();
            (*out).0.byte_len = wc.byte_len;
            (*out).0.qp = QpCookie::from_raw(wc.qp).as_raw();
            (*out).0.ex.invalidate_rkey = ex;
            (*out).0.src_qp = 0;
            (*out).0.slid = 0;
            (*out).0.wc_flags = flags as c_int;
            (*out).0.pkey_index = 0;
            (*out).0.sl = 0;
            (*out).0.dlid_path_bits = 0;
            (*out).0.port_num = PORT;
            // INVARIANT: One entry more is written, and the next is inside if there is room.
            self.next = out.add(1);
        }
        self.room = self.room.saturating_sub(1);
        self.written = self.written.wrapping_add(1);
        true
    }

    /// The number of completions written.
    pub(super) fn written(&self) -> c_int {
        self.written
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_completion)]
mod tests {
    use super::super::values::token::Token;
    use super::*;
    use crate::sys::requests::test_context;

    const INVALIDATED: SendWith = SendWith::Inv(Token::from_raw(0xabcd));

    fn wc(with: SendWith) -> Wc {
        Wc {
            context: test_context(7),
            qp: 64,
            opcode: WcOpcode::Recv,
            byte_len: 9,
            with,
            ..Wc::BLANK
        }
    }

    #[test]
    fn writer_stops_at_the_end_of_the_array() {
        let mut array: [bindings::ib_wc; 2] = [pin_init::zeroed(), pin_init::zeroed()];
        // SAFETY: Room for one of the two.
        let mut out = unsafe { WcWriter::new(array.as_mut_ptr(), 1) };
        assert!(out.push(&wc(INVALIDATED)));
        assert!(!out.push(&wc(SendWith::Nothing)));
        kunit_assert_eq!(out.written(), 1);
        kunit_assert_eq!(out.room(), 0);
        kunit_assert_eq!(array[0].byte_len, 9);
        kunit_assert_eq!(array[1].byte_len, 0);
    }

    #[test]
    fn fields_of_datagrams_are_not_left_as_they_were() {
        let stale = bindings::ib_wc {
            src_qp: !0,
            slid: !0,
            pkey_index: !0,
            sl: !0,
            dlid_path_bits: !0,
            port_num: !0,
            ..pin_init::zeroed()
        };
        let mut array = [stale];
        // SAFETY: Room for one.
        let mut out = unsafe { WcWriter::new(array.as_mut_ptr(), 1) };
        assert!(out.push(&wc(SendWith::Nothing)));
        let [wc] = array;
        kunit_assert_eq!((wc.src_qp, wc.slid, wc.pkey_index), (0, 0, 0));
        kunit_assert_eq!((wc.sl, wc.dlid_path_bits, wc.port_num), (0, 0, PORT));
    }

    #[test]
    fn extra_sets_its_flag() {
        kunit_assert_eq!(SendWith::Nothing.to_c(), (0, 0));
        assert!(SendWith::Imm(1).to_c().0 != INVALIDATED.to_c().0);
    }

    #[test]
    fn a_program_reads_what_a_poll_would_say() {
        let words = wc(INVALIDATED).shared(0x80_0001);
        let flag = IBV_WC_WITH_INV;
        let recv = bindings::ib_wc_opcode_IB_WC_RECV;
        // As libhfi1verbs counts them, after the context: status, opcode, error, length, key, queue
        // pair, source, flags; then small fields, the third byte of the last word the port.
        kunit_assert_eq!(words[2..10], [0, recv, 0, 9, 0xabcd, 0x80_0001, 0, flag]);
        kunit_assert_eq!(words[11].to_ne_bytes(), [0, 0, 1, 0]);
        kunit_assert_eq!(words[0].to_ne_bytes()[0].max(words[1].to_ne_bytes()[3]), 7);
    }

    #[test]
    fn negative_room_is_none() {
        // SAFETY: No entry is ever written.
        let mut out = unsafe { WcWriter::new(core::ptr::null_mut(), -1) };
        assert!(!out.push(&wc(SendWith::Nothing)));
    }
}
