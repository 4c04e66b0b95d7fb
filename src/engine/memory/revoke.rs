// SPDX-License-Identifier: GPL-2.0

//! The end of a registration: by its owner, by the peer, and when the last access is gone.
//!
//! Tests: `engine/memory/tests/revoke.rs`.

use super::{
    slot::{
        DomainId,
        DrainWaiter,
        Kind,
        Slot, //
    },
    MemoryTable,
    User, //
};
use crate::{
    engine::prelude::*,
    rdma::values::token::Token,
    sys::gate::Refused, //
};

/// A reason to refuse an invalidation. The object stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevokeError {
    /// The object may be invalidated, and is invalid already.
    AlreadyInvalid,
    /// The token names no object that may be invalidated this way.
    NotAllowed,
}

impl MemoryTable {
    /// Ends the validity of a fast-register region or a window of `domain`, for its owner.
    ///
    /// No new access starts; [`MemoryTable::is_drained`] returns true once the last access is gone.
    pub(crate) fn revoke(&self, token: Token, domain: DomainId) -> Result<(), RevokeError> {
        let slot = self.slot(token.index()).ok_or(RevokeError::NotAllowed)?;
        let is_owned = |slot: &Slot| slot.is(domain, Kind::Fast) || slot.is(domain, Kind::Window);
        match slot.close_as_owner(token.key(), is_owned) {
            Some(Ok(())) => Ok(()),
            Some(Err(Refused::NotOpen)) => Err(RevokeError::AlreadyInvalid),
            Some(Err(Refused::WrongKey)) | None => Err(RevokeError::NotAllowed),
        }
    }

    /// Ends the validity of a fast-register region, if it is valid and no access uses it: the
    /// revocation is then complete. Returns false if the region stays as it was.
    #[inline]
    pub(crate) fn revoke_unused(&self, token: Token, domain: DomainId) -> bool {
        let slot = self.slot(token.index());
        let is_owned = |slot: &Slot| slot.is(domain, Kind::Fast);
        slot.is_some_and(|slot| slot.close_unused_as_owner(token.key(), is_owned))
    }

    /// As [`MemoryTable::revoke`], for a peer: the whole token must be valid, and a window bound to
    /// `user.qp`.
    pub(crate) fn revoke_remote(&self, token: Token, user: User) -> Result<(), RevokeError> {
        let slot = self.slot(token.index()).ok_or(RevokeError::NotAllowed)?;
        // The slot does not change hands while `entry` exists.
        let entry = slot.gate.enter(token.key());
        let entry = entry.map_err(|_| RevokeError::NotAllowed)?;
        let allowed = match slot.is(user.domain, Kind::Window) {
            true => entry.attr.binding.map(|b| b.qp) == user.qp,
            false => slot.is(user.domain, Kind::Fast),
        };
        if !allowed {
            return Err(RevokeError::NotAllowed);
        }
        entry.close().map_err(|_| RevokeError::NotAllowed)
    }

    /// Returns true if no access uses the registration that a revocation of `token` ended.
    ///
    /// True also when the object is valid again or gone: that revocation is over. Notifies the
    /// owner of a window.
    pub(crate) fn is_drained(&self, token: Token) -> bool {
        let slot = self.slot(token.index());
        slot.is_none_or(Slot::is_drained)
    }

    /// Has `waiter` notified once when it is time to call [`MemoryTable::is_drained`] again, or to
    /// execute again a registration that found the old one in use. Any context.
    ///
    /// Returns false if `waiter` is not notified: the time is now, or another waiter has the only
    /// place. The caller then looks again later.
    pub(crate) fn when_drained(&self, token: Token, waiter: Arc<dyn DrainWaiter>) -> bool {
        let Some(slot) = self.slot(token.index()) else {
            return false;
        };
        let mut place = slot.gate.watcher.waiter.lock();
        if place.as_ref().is_some_and(|w| !Arc::ptr_eq(w, &waiter)) {
            return false;
        }
        // Stored under the lock before the gate watches: the last access finds the waiter.
        let same = place.replace(waiter);
        let waits = slot.gate.request_drain_call();
        let early = place.take_if(|_| !waits);
        drop(place);
        drop((same, early));
        waits
    }
}
