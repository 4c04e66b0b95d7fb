// SPDX-License-Identifier: GPL-2.0

//! Attributes of devices and queue pairs, from and to C.

use super::{
    device::PORT,
    prelude::*,
    values::{
        access::{
            AccessFlag,
            AccessFlags, //
        },
        qp::{
            QpCaps,
            QpState, //
        }, //
    }, //
};

/// The rights have the numbers of C.
const _: () = {
    assert!(AccessFlag::LocalWrite as u32 == bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE);
    assert!(AccessFlag::RemoteWrite as u32 == bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE);
    assert!(AccessFlag::RemoteRead as u32 == bindings::ib_access_flags_IB_ACCESS_REMOTE_READ);
    assert!(AccessFlag::RemoteAtomic as u32 == bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC);
    assert!(AccessFlag::ZeroBased as u32 == bindings::ib_access_flags_IB_ZERO_BASED);
};

impl AccessFlags {
    /// Converts from C. Bits that are no rights, hints among them, are dropped.
    pub(super) fn from_c(bits: c_int) -> Self {
        // CAST: A set of bits, kept bit by bit.
        Self::from_bits(bits as u32)
    }

    /// Returns the rights, if a region may have them. `EINVAL` if they are contradictory, or count
    /// addresses from zero, which only memory windows could.
    pub(super) fn of_region(self) -> Result<Self> {
        match self.is_consistent() && !self.contains(AccessFlag::ZeroBased) {
            true => Ok(self),
            false => Err(EINVAL),
        }
    }

    /// Converts to C.
    pub(super) fn to_c(self) -> c_int {
        // CAST: A set of small bits.
        self.bits() as c_int
    }
}

/// The capabilities and limits of a device. C: `struct ib_device_attr`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceAttributes {
    /// Firmware version.
    pub(crate) fw_ver: u64,
    /// The vendor, 24 bits: an OUI if the vendor has one.
    pub(crate) vendor_id: u32,
    /// Bytes of the largest memory region.
    pub(crate) max_mr_size: u64,
    /// Page sizes of memory regions, one bit for each.
    pub(crate) page_size_cap: u64,
    /// Queue pairs.
    pub(crate) max_qp: u32,
    /// Requests outstanding on a send or receive queue.
    pub(crate) max_qp_wr: u32,
    /// Scatter entries of a send.
    pub(crate) max_send_sge: u32,
    /// Scatter entries of a receive.
    pub(crate) max_recv_sge: u32,
    /// Scatter entries of a read.
    pub(crate) max_sge_rd: u32,
    /// Completion queues.
    pub(crate) max_cq: u32,
    /// Entries of a completion queue.
    pub(crate) max_cqe: u32,
    /// Memory regions.
    pub(crate) max_mr: u32,
    /// Protection domains.
    pub(crate) max_pd: u32,
    /// Reads and atomics a queue pair serves at once (IRD).
    pub(crate) max_rd_atomic: u32,
    /// Reads and atomics a queue pair has outstanding (ORD).
    pub(crate) max_init_rd_atomic: u32,
    /// Atomics are offered; they are atomic among all users of this machine's memory.
    pub(crate) atomic: bool,
    /// Shared receive queues.
    pub(crate) max_srq: u32,
    /// Requests outstanding on a shared receive queue.
    pub(crate) max_srq_wr: u32,
    /// Scatter entries of a shared receive.
    pub(crate) max_srq_sge: u32,
    /// Pages of a fast registration.
    pub(crate) max_fast_reg_pages: u32,
    /// Completion vectors.
    pub(crate) comp_vectors: u32,
    /// The key that means all local memory, if there is one.
    pub(crate) local_dma_lkey: Option<u32>,
    /// Fast registrations may have gaps.
    pub(crate) sg_gaps: bool,
}

impl DeviceAttributes {
    fn kernel_caps(&self) -> u64 {
        let mut caps = bindings::ib_kernel_cap_flags_IBK_ALLOW_USER_UNREG;
        if self.local_dma_lkey.is_some() {
            caps |= bindings::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY;
        }
        if self.sg_gaps {
            caps |= bindings::ib_kernel_cap_flags_IBK_SG_GAPS_REG;
        }
        caps.into()
    }

    /// Writes the C form into `out`; fields without a counterpart here keep their value.
    pub(super) fn fill(&self, out: &mut bindings::ib_device_attr) {
        out.fw_ver = self.fw_ver;
        out.max_pkeys = 1;
        out.vendor_id = self.vendor_id;
        out.device_cap_flags = bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
        out.kernel_cap_flags = self.kernel_caps();
        out.atomic_cap = match self.atomic {
            true => bindings::ib_atomic_cap_IB_ATOMIC_GLOB,
            false => bindings::ib_atomic_cap_IB_ATOMIC_NONE,
        };
        out.max_mr_size = self.max_mr_size;
        out.page_size_cap = self.page_size_cap;
        out.max_qp = self.max_qp;
        out.max_qp_wr = self.max_qp_wr;
        out.max_send_sge = self.max_send_sge;
        out.max_recv_sge = self.max_recv_sge;
        out.max_sge_rd = self.max_sge_rd;
        out.max_cq = self.max_cq;
        out.max_cqe = self.max_cqe;
        out.max_mr = self.max_mr;
        out.max_pd = self.max_pd;
        out.max_qp_rd_atom = self.max_rd_atomic;
        out.max_qp_init_rd_atom = self.max_init_rd_atomic;
        out.max_res_rd_atom = self.max_rd_atomic.saturating_mul(self.max_qp);
        out.max_srq = self.max_srq;
        out.max_srq_wr = self.max_srq_wr;
        out.max_srq_sge = self.max_srq_sge;
        out.max_fast_reg_page_list_len = self.max_fast_reg_pages;
    }
}

/// The states have the numbers of C.
const _: () = {
    assert!(QpState::Reset.number() == bindings::ib_qp_state_IB_QPS_RESET);
    assert!(QpState::Init.number() == bindings::ib_qp_state_IB_QPS_INIT);
    assert!(QpState::Rtr.number() == bindings::ib_qp_state_IB_QPS_RTR);
    assert!(QpState::Rts.number() == bindings::ib_qp_state_IB_QPS_RTS);
    assert!(QpState::Err.number() == bindings::ib_qp_state_IB_QPS_ERR);
};

impl QpState {
    /// Converts to C, where a queue pair whose peer is gone is in the error state.
    pub(super) const fn to_c(self) -> bindings::ib_qp_state {
        match self {
            Self::Lost => Self::Err.number(),
            state => state.number(),
        }
    }
}

/// The state that `modify_qp` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QpTarget {
    /// This state.
    State(QpState),
    /// The error state, once the earlier requests are done: the graceful close of iWARP. C:
    /// `IB_QPS_SQD`.
    Close,
}

impl QpTarget {
    /// Converts from C. `EINVAL` for a number that is no state, or no state of a connection (SQE).
    fn from_c(state: bindings::ib_qp_state) -> Result<Self> {
        if state == bindings::ib_qp_state_IB_QPS_SQD {
            return Ok(Self::Close);
        }
        let found = QpState::ALL.into_iter().find(|one| one.to_c() == state);
        found.map(Self::State).ok_or(EINVAL)
    }
}

impl QpCaps {
    /// Converts from C, which does not ask for elements of reads.
    pub(super) fn from_c(cap: &bindings::ib_qp_cap) -> Self {
        Self {
            send_wr: cap.max_send_wr,
            recv_wr: cap.max_recv_wr,
            send_sge: cap.max_send_sge,
            recv_sge: cap.max_recv_sge,
            inline_data: cap.max_inline_data,
            ..Self::NONE
        }
    }

    /// Writes the C form; the core's own fields in the structure stay.
    pub(super) fn fill(&self, cap: &mut bindings::ib_qp_cap) {
        cap.max_send_wr = self.send_wr;
        cap.max_recv_wr = self.recv_wr;
        cap.max_send_sge = self.send_sge;
        cap.max_recv_sge = self.recv_sge;
        cap.max_inline_data = self.inline_data;
    }
}

/// The changes that `modify_qp` asks for; `None` leaves a value unchanged. C: `struct ib_qp_attr`
/// and its mask.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QpChange {
    /// The state to go to.
    pub(crate) state: Option<QpTarget>,
    /// The rights of the peer.
    pub(crate) access: Option<AccessFlags>,
    /// Reads and atomics to have outstanding (ORD).
    pub(crate) max_rd_atomic: Option<u8>,
    /// Reads and atomics to serve at once (IRD).
    pub(crate) max_dest_rd_atomic: Option<u8>,
}

impl QpChange {
    /// Converts from C. `EINVAL` for an invalid state.
    pub(super) fn from_c(attr: &Unaligned<bindings::ib_qp_attr>, mask: i32) -> Result<Self> {
        // CAST: A set of bits, kept bit by bit.
        let has = |bit: u32| mask as u32 & bit != 0;
        let state = match has(bindings::ib_qp_attr_mask_IB_QP_STATE) {
            true => Some(QpTarget::from_c(attr.0.qp_state)?),
            false => None,
        };
        Ok(Self {
            state,
            access: has(bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS)
                .then(|| AccessFlags::from_c(attr.0.qp_access_flags)),
            max_rd_atomic: has(bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC)
                .then_some(attr.0.max_rd_atomic),
            max_dest_rd_atomic: has(bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC)
                .then_some(attr.0.max_dest_rd_atomic),
        })
    }
}

/// The result of `query_qp`. C: `struct ib_qp_attr`, `struct ib_qp_init_attr`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QpAttributes {
    /// The present state.
    pub(crate) state: QpState,
    /// The sizes granted.
    pub(crate) caps: QpCaps,
    /// The rights of the peer.
    pub(crate) access: AccessFlags,
    /// Reads and atomics to have outstanding (ORD).
    pub(crate) max_rd_atomic: u8,
    /// Reads and atomics to serve at once (IRD).
    pub(crate) max_dest_rd_atomic: u8,
    /// Every send completes, regardless of its flags.
    pub(crate) signal_all: bool,
}

impl QpAttributes {
    /// The C forms; fields without a counterpart here are zero.
    pub(super) fn to_c(self) -> (bindings::ib_qp_attr, bindings::ib_qp_init_attr) {
        let mut attr = bindings::ib_qp_attr::default();
        let mut init = bindings::ib_qp_init_attr::default();
        attr.qp_state = self.state.to_c();
        attr.cur_qp_state = attr.qp_state;
        attr.path_mtu = bindings::ib_mtu_IB_MTU_4096;
        attr.qp_access_flags = self.access.to_c();
        attr.max_rd_atomic = self.max_rd_atomic;
        attr.max_dest_rd_atomic = self.max_dest_rd_atomic;
        attr.port_num = PORT;
        self.caps.fill(&mut attr.cap);
        init.cap = attr.cap;
        init.qp_type = bindings::ib_qp_type_IB_QPT_RC;
        init.sq_sig_type = match self.signal_all {
            true => bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
            false => bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
        };
        (attr, init)
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_types)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    #[test]
    fn every_state_survives_the_round_trip() {
        for state in cases(QpState::ALL) {
            let target = QpTarget::from_c(state.to_c());
            match state {
                QpState::Lost => kunit_assert_eq!(target, Ok(QpTarget::State(QpState::Err))),
                _ => kunit_assert_eq!(target, Ok(QpTarget::State(state))),
            }
        }
    }

    #[test]
    fn sqd_asks_for_a_close_and_sqe_is_no_state() {
        let sqd = QpTarget::from_c(bindings::ib_qp_state_IB_QPS_SQD);
        kunit_assert_eq!(sqd, Ok(QpTarget::Close));
        for number in cases([bindings::ib_qp_state_IB_QPS_SQE, 7, 8, !0]) {
            kunit_assert_eq!(QpTarget::from_c(number), Err(EINVAL));
        }
    }

    #[test]
    fn change_holds_only_what_the_mask_names() {
        let attr = Unaligned(bindings::ib_qp_attr {
            qp_state: 99,
            max_rd_atomic: 7,
            ..Default::default()
        });
        // CAST: Mask bits are small.
        let mask = bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC as i32;
        let change = QpChange::from_c(&attr, mask);
        let named = change.map(|c| (c.state, c.max_rd_atomic));
        kunit_assert_eq!(named, Ok((None, Some(7))));
        assert!(QpChange::from_c(&attr, bindings::ib_qp_attr_mask_IB_QP_STATE as i32).is_err());
    }

    #[test]
    fn capabilities_follow_the_attributes() {
        let mut out: bindings::ib_device_attr = pin_init::zeroed();
        DeviceAttributes::default().fill(&mut out);
        let without = out.kernel_cap_flags;
        DeviceAttributes {
            local_dma_lkey: Some(0),
            sg_gaps: true,
            ..Default::default()
        }
        .fill(&mut out);
        kunit_assert_eq!((out.kernel_cap_flags & !without).count_ones(), 2);
    }
}
