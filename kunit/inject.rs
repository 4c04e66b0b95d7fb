// SPDX-License-Identifier: GPL-2.0

//! [`Ordered`]: a fault that a test has ordered.

use kernel::sync::Arc;

use crate::engine::{
    device::RdmaDevice,
    inject::{
        Fault,
        FaultSettings, //
    }, //
};

/// A fault that was ordered; the drop switches the fault off.
pub(crate) struct Ordered {
    device: Arc<RdmaDevice>,
    fault: Fault,
}

impl Ordered {
    /// Orders a fault of `device`.
    pub(crate) fn new(device: &Arc<RdmaDevice>, fault: Fault, order: FaultSettings) -> Self {
        device.faults.set(fault, &order);
        Self {
            device: device.clone(),
            fault,
        }
    }
}

impl Drop for Ordered {
    fn drop(&mut self) {
        self.device.faults.set(self.fault, &FaultSettings::OFF);
    }
}
