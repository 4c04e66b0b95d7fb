// SPDX-License-Identifier: GPL-2.0

//! [`Operations`]: the interface that a provider implements.

use super::{
    cm_ops::{
        CmOperations,
        ListenerOperations, //
    },
    cq::CqOperations,
    device::DeviceOperations,
    mr::MrOperations,
    object::PdOperations,
    prelude::*,
    qp::QpOperations,
    srq::SrqOperations, //
};

/// A provider of kernel verbs over iWARP. C: `struct ib_device_ops`.
///
/// The implementing type has no values; the associated types are the payloads
/// of the objects, and have their operations. The create operation makes a
/// payload, which is moved behind the C object, and dropped after the destroy
/// operation.
///
/// Operations run in process context and may sleep, except for those that say
/// "any context": these may be called with interrupts disabled, and by many
/// processors at once for the same object.
pub(crate) trait Operations: Sized + Send + Sync + 'static {
    /// The name of the `rdma link add ... type` of this provider, unless a parameter gives another.
    const LINK_TYPE: &'static CStr;
    /// Distinguishes this provider's devices from all others; not zero. C: `enum rdma_driver_id`.
    const DRIVER_ID: u32;
    /// Describes the devices, in at most 63 bytes.
    const NODE_DESC: &'static CStr;
    /// The firmware version of the devices, in at most 31 bytes.
    const FIRMWARE: &'static CStr;
    /// The longest message in bytes.
    const MAX_MESSAGE: u32;
    /// The names of the port's counters, at most [`super::port::MAX_COUNTERS`].
    const COUNTERS: &'static [&'static CStr];

    /// The payload of a device.
    type Device: DeviceOperations;
    /// The payload of a protection domain.
    type Pd: PdOperations<Self>;
    /// The payload of a completion queue.
    type Cq: CqOperations<Self>;
    /// The payload of a queue pair.
    type Qp: QpOperations<Self> + CmOperations<Self>;
    /// The payload of a shared receive queue.
    type Srq: SrqOperations<Self>;
    /// The payload of a memory region.
    type Mr: MrOperations<Self>;
    /// A listening endpoint.
    type Listener: ListenerOperations<Self>;
}
