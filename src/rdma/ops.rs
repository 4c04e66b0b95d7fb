// SPDX-License-Identifier: GPL-2.0

//! [`Operations`]: what a provider implements.

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
/// The implementing type has no values; the associated types are what stands
/// behind each object, and have its operations. A payload is made by the create
/// operation, moved behind the C object, and dropped after the destroy operation.
///
/// Operations run in process context and may sleep, except where "any context"
/// is said: those may be called with interrupts disabled, and by many
/// processors at once for the same object.
pub(crate) trait Operations: Sized + Send + Sync + 'static {
    /// The name of the `rdma link add ... type` of this provider, unless a parameter gives another.
    const LINK_TYPE: &'static CStr;
    /// Distinguishes this provider's devices from all others; not zero. C: `enum rdma_driver_id`.
    const DRIVER_ID: u32;
    /// Describes the devices, in at most 63 bytes.
    const NODE_DESC: &'static CStr;
    /// What the devices call the version of their firmware, in at most 31 bytes.
    const FIRMWARE: &'static CStr;
    /// The longest message in bytes.
    const MAX_MESSAGE: u32;
    /// The names of the port's counters, at most [`super::port::MAX_COUNTERS`].
    const COUNTERS: &'static [&'static CStr];

    /// What stands behind a device.
    type Device: DeviceOperations;
    /// What stands behind a protection domain.
    type Pd: PdOperations<Self>;
    /// What stands behind a completion queue.
    type Cq: CqOperations<Self>;
    /// What stands behind a queue pair.
    type Qp: QpOperations<Self> + CmOperations<Self>;
    /// What stands behind a shared receive queue.
    type Srq: SrqOperations<Self>;
    /// What stands behind a memory region.
    type Mr: MrOperations<Self>;
    /// A listening endpoint.
    type Listener: ListenerOperations<Self>;
}
