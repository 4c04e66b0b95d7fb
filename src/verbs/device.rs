// SPDX-License-Identifier: GPL-2.0

//! Devices: identity, limits, counters.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    Context,
    CONTEXT, //
};
use crate::{
    engine::{
        connection::Exchange,
        domain::Adapter,
        memory::MAX_REGIONS,
        token::Token, //
    },
    rdma::DeviceAttributes,
    sys::{
        cpu,
        netdev::{
            NetDev,
            NetDevEvent, //
        },
        span::Span, //
    }, //
};

/// The most pages or pieces of a fast registration: what SMB Direct caps at.
pub(super) const MAX_PIECES: u32 = 2048;
/// The most requests in one queue.
pub(super) const MAX_REQUESTS: u32 = 16384;
/// The most elements of a send, a write or a receive.
pub(super) const MAX_SGES: u32 = 32;
/// A read has one sink on the wire (RFC 5040 section 5.2), and so everywhere.
pub(super) const MAX_READ_SGES: u32 = 1;
/// The most bytes that a request carries inline.
pub(super) const MAX_INLINE: u32 = 512;
/// The most entries of a completion queue.
pub(super) const MAX_CQ_ENTRIES: u32 = 1 << 20;
/// Reads at once, in either direction of a connection.
pub(super) const MAX_READS: u32 = 128;

/// What stands behind a device: one port on one network device.
pub(crate) struct Port {
    shared: Arc<Shared>,
}

/// What the objects of a device keep of it.
#[pin_data]
pub(super) struct Shared {
    pub(super) adapter: Arc<Adapter>,
    pub(super) exchange: Arc<Exchange>,
    /// Gone when the network device goes, so that nothing holds that up.
    #[pin]
    netdev: SpinLockIrq<Option<NetDev>>,
}

impl Shared {
    /// The network device, as long as it is there.
    pub(super) fn netdev(&self) -> Option<NetDev> {
        self.netdev.lock().clone()
    }
}

/// Makes the engine's side of a new device.
pub(super) fn open(name: &CStr, netdev: &NetDev, memory: Span) -> Result<Port> {
    let context: Arc<Context> = CONTEXT.get().ok_or(ENODEV)?;
    let adapter = Adapter::new(context.host.clone(), name, netdev.net_cookie(), memory)?;
    let netdev = Some(netdev.clone());
    let shared = Arc::pin_init(
        pin_init!(Shared {
            adapter,
            exchange: context.exchange.clone(),
            netdev <- kernel::new_spinlock_irq!(netdev),
        }),
        GFP_KERNEL,
    )?;
    Ok(Port { shared })
}

impl Port {
    pub(super) fn adapter(&self) -> &Arc<Adapter> {
        &self.shared.adapter
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn read_counters(&self, values: &mut [u64]) {
        for (index, value) in values.iter_mut().enumerate() {
            *value = self.shared.adapter.counted(index);
        }
    }

    pub(super) fn netdev_event(&self, event: NetDevEvent) {
        if event == NetDevEvent::Unregister {
            let netdev = self.shared.netdev.lock().take();
            drop(netdev);
        }
    }
}

/// Limits that leave every consumer in the kernel its full function.
pub(super) fn attributes() -> DeviceAttributes {
    // CAST: far below 2^32.
    let regions = MAX_REGIONS as u32;
    DeviceAttributes {
        fw_ver: 1,
        vendor_id: 0,
        vendor_part_id: 0,
        hw_ver: 0,
        max_mr_size: u64::MAX,
        page_size_cap: !0xFFF,
        max_qp: 1 << 16,
        max_qp_wr: MAX_REQUESTS,
        max_send_sge: MAX_SGES,
        max_recv_sge: MAX_SGES,
        max_sge_rd: MAX_READ_SGES,
        max_cq: 1 << 16,
        max_cqe: MAX_CQ_ENTRIES,
        max_mr: regions,
        max_pd: 1 << 16,
        max_rd_atomic: MAX_READS,
        max_init_rd_atomic: MAX_READS,
        atomic: true,
        max_srq: 1 << 16,
        max_srq_wr: MAX_REQUESTS,
        max_srq_sge: MAX_SGES,
        max_fast_reg_pages: MAX_PIECES,
        comp_vectors: cpu::count_possible(),
        local_dma_lkey: Some(Token::LOCAL_MEMORY.raw()),
        sg_gaps: true,
    }
}
