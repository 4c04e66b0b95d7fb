// SPDX-License-Identifier: GPL-2.0

//! [`Domain`]: a protection domain.
//!
//! Tests: `kunit/counting.rs`.

use kernel::alloc::Flags;

use super::{
    memory::slot::DomainId,
    prelude::*, //
};

/// A protection domain: an identity that queue pairs and regions share, nothing else.
pub(crate) struct Domain {
    device: Arc<RdmaDevice>,
    id: DomainId,
}

impl Domain {
    /// A domain with no objects. May sleep if `flags` say so. `ENOMEM` when there is no memory.
    pub(crate) fn new(device: Arc<RdmaDevice>, flags: Flags) -> Result<Arc<Self>> {
        let id = device.host.next_domain();
        Ok(Arc::new(Self { device, id }, flags)?)
    }

    /// The device that the domain is on.
    pub(crate) fn device(&self) -> &Arc<RdmaDevice> {
        &self.device
    }

    /// The number that no other domain has.
    pub(crate) fn id(&self) -> DomainId {
        self.id
    }
}
