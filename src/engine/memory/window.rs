// SPDX-License-Identifier: GPL-2.0

//! Memory windows (NDKPI `NdkBind`, type 2B of the verbs): a part of a region, open to the peer of
//! one queue pair.
//!
//! Context: any, but for making windows, which may sleep.
//!
//! Tests: `engine/memory/tests/windows.rs`.

use super::{
    bounds::offset_in,
    slot::{
        Binding,
        DomainId,
        Kind,
        RegAttr,
        RegisterError,
        SlotGuard, //
    },
    staging::WindowOwner,
    Access,
    Denied,
    MemoryTable,
    User, //
};
use crate::{
    engine::prelude::*,
    rdma::values::token::Token, //
};

impl MemoryTable {
    /// Makes a window, not bound yet. May sleep.
    ///
    /// With an owner, an invalidation under the returned token ends any binding of the window.
    pub(crate) fn add_window(
        &self,
        domain: DomainId,
        owner: Option<Arc<dyn WindowOwner>>,
    ) -> Result<Token> {
        self.assign(domain, Kind::Window, |slot, key| {
            if let Some(owner) = owner {
                slot.set_own_key(key);
                slot.staging.lock().owner = Some(owner);
            }
            Ok(())
        })
    }

    /// The part of a region that a window opens.
    pub(super) fn access_through_window<'t>(
        &'t self,
        window: SlotGuard<'t>,
        binding: Binding,
        user: User,
        offset: u64,
        len: u64,
    ) -> Result<Access<'t>, Denied> {
        if user.qp != Some(binding.qp) {
            return Err(Denied::Token);
        }
        let region = self.slot(binding.region.index()).ok_or(Denied::Token)?;
        let region = region.gate.enter(binding.region.key());
        let region = region.map_err(|_| Denied::Token)?;
        if region.serial != binding.serial {
            return Err(Denied::Token);
        }
        Ok(Access {
            region,
            _window: Some(window),
            offset: binding.offset + offset,
            len,
        })
    }

    /// Notifies the owner of `window` that a bind failed or was cancelled.
    pub(crate) fn not_bound(&self, window: Token) {
        let slot = self.slot(window.index());
        let owner = slot.and_then(|slot| slot.staging.lock().owner.clone());
        if let Some(owner) = owner {
            owner.not_bound(window.key());
        }
    }

    /// Binds `window` to `[addr, addr + len)` of `region`, for the peer of `user.qp`.
    ///
    /// A window that is bound already stays as it was. Any context.
    pub(crate) fn bind(
        &self,
        window: Token,
        region: Token,
        user: User,
        rights: AccessFlags,
        addr: u64,
        len: u64,
    ) -> Result<(), RegisterError> {
        let slot = self.slot(window.index()).ok_or(RegisterError::NotAllowed)?;
        let parent = self.slot(region.index()).ok_or(RegisterError::NotAllowed)?;
        let qp = user.qp.ok_or(RegisterError::NotAllowed)?;
        let entry = parent.gate.enter(region.key());
        let entry = entry.map_err(|_| RegisterError::NotAllowed)?;
        // Neither slot changes its owner: `parent` is entered, and `register` checks `slot` again.
        if !slot.is(user.domain, Kind::Window) || !parent.is(user.domain, Kind::Fixed) {
            return Err(RegisterError::NotAllowed);
        }
        // Remote writes need the local write right of the region; the caller's does not count.
        if !rights.is_remote() || !(rights.remote() | entry.attr.rights).is_consistent() {
            return Err(RegisterError::NotAllowed);
        }
        let offset = offset_in(entry.attr.base, entry.attr.len, addr, len);
        let binding = Binding {
            region,
            serial: entry.serial,
            offset: offset.ok_or(RegisterError::TooLong)?,
            qp,
        };
        slot.register(
            Kind::Window,
            window.key(),
            RegAttr {
                domain: user.domain,
                rights,
                base: addr,
                len,
                binding: Some(binding),
            },
            None,
        )
    }
}
