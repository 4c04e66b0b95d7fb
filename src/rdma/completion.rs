// SPDX-License-Identifier: GPL-2.0

//! Work completions on their way to the consumer. C: `struct ib_wc`.

use super::{
    device::PORT,
    prelude::*,
    qp::QpCookie, //
};
use crate::sys::shared::CompletionWords;

pub(crate) use crate::sys::wc::{
    WcOpcode,
    WcStatus, //
};

/// What a receive carries beside its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WcExtra {
    /// Nothing.
    None,
    /// Immediate data, in the byte order it was posted in. C: `IB_WC_WITH_IMM`.
    Imm(u32),
    /// The key that the peer invalidated. C: `IB_WC_WITH_INVALIDATE`.
    Invalidated(u32),
}

impl WcExtra {
    /// The C flags and the 32 bits that go with them.
    fn to_c(self) -> (u32, u32) {
        match self {
            Self::None => (0, 0),
            Self::Imm(data) => (bindings::ib_wc_flags_IB_WC_WITH_IMM, data),
            Self::Invalidated(key) => (bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE, key),
        }
    }
}

/// A work completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wc {
    /// What the consumer called the request.
    pub(crate) wr_id: u64,
    /// How it ended.
    pub(crate) status: WcStatus,
    /// What it was.
    pub(crate) opcode: WcOpcode,
    /// Bytes moved.
    pub(crate) byte_len: u32,
    /// The queue pair it was posted to.
    pub(crate) qp: QpCookie,
    /// What came with it.
    pub(crate) extra: WcExtra,
    /// A number for those who know this provider; zero means nothing.
    pub(crate) vendor_err: u32,
}

/// The flag of libibverbs for a receive that has invalidated a key. C: `IBV_WC_WITH_INV`.
const IBV_WC_WITH_INV: u32 = 1 << 3;

impl Wc {
    /// As a program reads it where it shares the queue, for queue pair `qpn`. C: `struct
    /// ib_uverbs_wc`.
    pub(crate) fn shared(&self, qpn: u32) -> CompletionWords {
        let (flags, invalidate_rkey) = self.extra.to_c();
        // libibverbs has another number for this one than the kernel.
        let flags = match self.extra {
            WcExtra::Invalidated(_) => IBV_WC_WITH_INV,
            _ => flags,
        };
        // CAST: the numbers of the variants; the port's is one.
        let wc = bindings::ib_uverbs_wc {
            wr_id: self.wr_id,
            status: self.status as u32,
            opcode: self.opcode as u32,
            vendor_err: self.vendor_err,
            byte_len: self.byte_len,
            ex: bindings::ib_uverbs_wc__bindgen_ty_1 { invalidate_rkey },
            qp_num: qpn,
            wc_flags: flags,
            port_num: PORT as u8,
            ..pin_init::zeroed()
        };
        // SAFETY: It is as large as its fields, all of which are numbers.
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

    /// How many more completions there is room for.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Writes a completion; false if there is no room for it.
    ///
    /// What only datagrams have is zero; what `wc_flags` would have to announce is left alone.
    #[inline]
    pub(crate) fn push(&mut self, wc: &Wc) -> bool {
        if self.room == 0 {
            return false;
        }
        let (flags, ex) = wc.extra.to_c();
        // CAST: Flags are small.
        // SAFETY: By the invariant `next` is writable for at least one entry.
        unsafe {
            let out = self.next;
            (*out).0.__bindgen_anon_1.wr_id = wc.wr_id;
            (*out).0.status = wc.status as bindings::ib_wc_status;
            (*out).0.opcode = wc.opcode as bindings::ib_wc_opcode;
            (*out).0.vendor_err = wc.vendor_err;
            (*out).0.byte_len = wc.byte_len;
            (*out).0.qp = wc.qp.as_raw();
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

    /// How many completions were written.
    pub(super) fn written(&self) -> c_int {
        self.written
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_completion)]
mod tests {
    use super::*;

    fn wc(extra: WcExtra) -> Wc {
        Wc {
            wr_id: 7,
            status: WcStatus::Success,
            opcode: WcOpcode::Recv,
            byte_len: 9,
            qp: QpCookie::from_raw(64),
            extra,
            vendor_err: 0,
        }
    }

    #[test]
    fn writer_stops_at_the_end_of_the_array() {
        let mut array: [bindings::ib_wc; 2] = [pin_init::zeroed(), pin_init::zeroed()];
        // SAFETY: Room for one of the two.
        let mut out = unsafe { WcWriter::new(array.as_mut_ptr(), 1) };
        assert!(out.push(&wc(WcExtra::Invalidated(0xabcd))));
        assert!(!out.push(&wc(WcExtra::None)));
        assert_eq!(out.written(), 1);
        assert_eq!(out.room(), 0);
        assert_eq!(array[0].byte_len, 9);
        assert_eq!(array[1].byte_len, 0);
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
        assert!(out.push(&wc(WcExtra::None)));
        let [wc] = array;
        assert_eq!((wc.src_qp, wc.slid, wc.pkey_index), (0, 0, 0));
        assert_eq!((wc.sl, wc.dlid_path_bits, wc.port_num), (0, 0, PORT));
    }

    #[test]
    fn extra_sets_its_flag() {
        assert_eq!(WcExtra::None.to_c(), (0, 0));
        assert!(WcExtra::Imm(1).to_c().0 != WcExtra::Invalidated(1).to_c().0);
    }

    #[test]
    fn a_program_reads_what_a_poll_would_say() {
        let words = wc(WcExtra::Invalidated(0xabcd)).shared(0x80_0001);
        let flag = IBV_WC_WITH_INV;
        let recv = bindings::ib_wc_opcode_IB_WC_RECV;
        // As libhfi1verbs counts them, after the context: status, opcode, error, length, key, queue
        // pair, source, flags; then small fields, the third byte of the last word the port.
        assert_eq!(words[2..10], [0, recv, 0, 9, 0xabcd, 0x80_0001, 0, flag]);
        assert_eq!(words[11].to_ne_bytes(), [0, 0, 1, 0]);
        assert_eq!(words[0].to_ne_bytes()[0].max(words[1].to_ne_bytes()[3]), 7);
    }

    #[test]
    fn negative_room_is_none() {
        // SAFETY: No entry is ever written.
        let mut out = unsafe { WcWriter::new(core::ptr::null_mut(), -1) };
        assert!(!out.push(&wc(WcExtra::None)));
    }
}
