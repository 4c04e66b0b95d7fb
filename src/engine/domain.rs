// SPDX-License-Identifier: GPL-2.0

//! [`Domain`]: a protection domain.
//!
//! Tests: `engine/device/quota.rs`.

use kernel::alloc::Flags;

use super::{
    device::{
        self,
        Quota,
        Share, //
    },
    inject::SiteKind,
    memory::slot::DomainId,
    prelude::*, //
};

/// A protection domain: an identity that queue pairs and regions share, trusted with the kernel's
/// memory or not.
pub(crate) struct Domain {
    device: Arc<RdmaDevice>,
    id: DomainId,
    share: Share,
}

impl Domain {
    /// A domain with no objects. May sleep if `flags` say so. `ENOMEM` when there is no memory, or
    /// the device has too many. [`Domain::close`] ends it.
    pub(crate) fn new(device: Arc<RdmaDevice>, flags: Flags) -> Result<Arc<Self>> {
        Self::make(device, true, flags)
    }

    /// A domain of a program: its queue pairs know no key of the kernel's memory, and carry out no
    /// registrations. May sleep. `ENOMEM` when there is no memory, or programs have too many.
    pub(crate) fn untrusted(device: Arc<RdmaDevice>) -> Result<Arc<Self>> {
        Self::make(device, false, GFP_KERNEL)
    }

    fn make(device: Arc<RdmaDevice>, is_trusted: bool, flags: Flags) -> Result<Arc<Self>> {
        device.may_make(SiteKind::Domain)?;
        let share = device.share(Quota::Domains, !is_trusted)?;
        let domain = Self {
            id: device.host.next_domain(),
            device,
            share,
        };
        Ok(Arc::new(domain, flags)?)
    }

    /// Returns true if the domain may use the kernel's own memory and register by request.
    #[inline]
    pub(crate) fn is_trusted(&self) -> bool {
        !self.share.is_of_program()
    }

    /// Ends the domain for its owner: the quota does not count it any more. It holds only objects
    /// that are ending. Any context.
    pub(crate) fn close(&self) {
        self.share.give_back();
    }

    /// The allocation flags for the memory of its queues.
    pub(super) fn gfp(&self) -> Flags {
        device::gfp(!self.is_trusted())
    }

    /// A place for an object in the domain. Any context. `ENOMEM` when there are too many on the
    /// device, or programs have too many.
    pub(crate) fn share(&self, quota: Quota) -> Result<Share> {
        self.device.share(quota, !self.is_trusted())
    }

    /// The device that the domain is on.
    pub(crate) fn device(&self) -> &Arc<RdmaDevice> {
        &self.device
    }

    /// The number of the domain, unique on this host.
    pub(crate) fn id(&self) -> DomainId {
        self.id
    }
}
