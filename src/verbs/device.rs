// SPDX-License-Identifier: GPL-2.0

//! Devices: identity, limits, counters.

use super::{
    prelude::*,
    VerbsContext, //
};
use crate::{
    engine::{
        cm::ConnectionManager,
        device::{
            DeviceList,
            PortEvents,
            SeenFrom, //
        },
        memory::MAX_REGIONS, //
    },
    rdma::{
        values::token::Token,
        DeviceAttributes,
        DeviceOperations,
        Operations,
        PortUpcall, //
    },
    sys::{
        cpu,
        netdev::{
            Net,
            NetDev,
            NetDevEvent, //
        }, //
    }, //
};

/// The payload of a device of ib_core. All faces find the engine's device until this is dropped.
pub(crate) struct VerbsDevice {
    device: Arc<RdmaDevice>,
    devices: Arc<DeviceList>,
    /// Makes its connections.
    pub(super) cm: Arc<ConnectionManager>,
    /// The processor of each completion vector.
    vectors: KVec<u32>,
}

impl DeviceOperations for VerbsDevice {
    fn open(name: &CStr, netdev: &NetDev, net: Net<'_>) -> Result<Self> {
        let context: Arc<VerbsContext> = CONTEXT.get().ok_or(ENODEV)?;
        let host = context.host.clone();
        let device = RdmaDevice::new(host, name, net.cookie(), Some(netdev.clone()))?;
        let devices = context.devices.clone();
        let vectors = cpu::spread(cpu::count_possible())?;
        // No lookup finds the device by a name that it may not get.
        devices.rename(&device, None);
        devices.add(device.clone())?;
        device.faults.show(name);
        Ok(Self {
            device,
            devices,
            cm: context.cm.clone(),
            vectors,
        })
    }

    /// Limits that leave every consumer in the kernel its full function.
    fn attributes(&self) -> DeviceAttributes {
        // CAST: far below 2^32.
        let regions = MAX_REGIONS as u32;
        DeviceAttributes {
            fw_ver: 1,
            vendor_id: <Verbs as Operations>::DRIVER_ID,
            max_mr_size: u64::MAX,
            page_size_cap: !0xFFF,
            max_qp: MAX_OBJECTS,
            max_qp_wr: MAX_REQUESTS,
            max_send_sge: MAX_SGES,
            max_recv_sge: MAX_SGES,
            max_sge_rd: MAX_READ_SGES,
            max_cq: MAX_OBJECTS,
            max_cqe: MAX_CQ_ENTRIES,
            max_mr: regions,
            max_pd: MAX_OBJECTS,
            max_rd_atomic: MAX_READS,
            max_init_rd_atomic: MAX_READS,
            atomic: true,
            max_srq: MAX_OBJECTS,
            max_srq_wr: MAX_REQUESTS,
            max_srq_sge: MAX_SGES,
            max_fast_reg_pages: MAX_PIECES,
            // One for each processor.
            comp_vectors: cpu::count_possible(),
            local_dma_lkey: Some(Token::LOCAL_MEMORY.raw()),
            sg_gaps: true,
        }
    }

    fn read_counters(&self, values: &mut [u64]) {
        for (index, value) in values.iter_mut().enumerate() {
            *value = self.device.counted(index);
        }
    }

    fn is_port_down(&self) -> bool {
        self.device.is_port_down()
    }

    fn set_port(&self, port: PortUpcall) -> Result {
        let port = Arc::new(port, GFP_KERNEL)?;
        self.device.set_visibility(port.clone());
        self.device.set_port_events(Some(port));
        Ok(())
    }

    fn named(&self, name: Option<&CStr>) {
        self.devices.rename(&self.device, name);
        if let Some(name) = name {
            self.device.faults.rename(name);
        }
    }

    fn netdev_event(&self, event: NetDevEvent) {
        if event == NetDevEvent::Unregister {
            self.device.put_netdev();
        }
    }
}

impl PortEvents for PortUpcall {
    fn port_changed(&self, is_up: bool) {
        self.changed(is_up);
    }
}

impl SeenFrom for PortUpcall {
    fn is_seen_from(&self, net: Net<'_>) -> bool {
        self.is_device_seen_from(net)
    }
}

impl VerbsDevice {
    /// Returns the engine's device; a cloned reference may outlive this payload.
    pub(super) fn device(&self) -> &Arc<RdmaDevice> {
        &self.device
    }

    /// The processor on which the queues of a completion vector call back.
    ///
    /// The processor of vector `n` is that of queue `n` of a block device with a queue for each
    /// processor: requests end where they were submitted, without another interrupt.
    pub(super) fn processor_of(&self, vector: u32) -> u32 {
        // CAST: widening.
        self.vectors.get(vector as usize).copied().unwrap_or(0)
    }
}

/// Removes the device after its verbs consumers have left; the other faces' users follow.
impl Drop for VerbsDevice {
    fn drop(&mut self) {
        self.devices.remove(&self.device);
        self.device.shut();
    }
}
