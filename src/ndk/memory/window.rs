// SPDX-License-Identifier: GPL-2.0

//! [`Mw`]: a window, and its uses of the regions that it is bound to.
//!
//! A bind makes the region an antecedent of the window, from the post of the bind until the bind
//! has failed, the binding has been invalidated and drained, or the window is closed.

use kernel::sync::atomic::ordering::{
    Full,
    Relaxed, //
};

use super::{
    Mr,
    MrState, //
};
use crate::{
    engine::{
        domain::Domain,
        inject::SiteKind,
        memory::{
            bounds::offset_in,
            staging::WindowOwner, //
        }, //
    },
    ndk::{
        pd::Pd,
        prelude::*, //
    },
    rdma::values::{
        access::AccessFlags,
        token::Token, //
    }, //
};

/// A window's use of the region that it is, or may be, bound to.
struct BoundRegion {
    region: Ref<Mr>,
    _region_use: ObjectUse,
    /// True if the region counts the window as bound.
    counts: bool,
}

impl BoundRegion {
    fn new(region: &Ref<Mr>) -> Self {
        region.windows.fetch_add(1, Relaxed);
        Self {
            region: region.clone(),
            _region_use: region.new_use(),
            counts: true,
        }
    }

    /// Ends the binding, but not the use of the region.
    fn unbind(&mut self) {
        if core::mem::replace(&mut self.counts, false) {
            self.region.windows.fetch_sub(1, Full);
        }
    }
}

impl Drop for BoundRegion {
    fn drop(&mut self) {
        self.unbind();
    }
}

/// A window.
pub(crate) struct Mw {
    domain: Arc<Domain>,
    bound: Arc<BoundRegions>,
    own: Token,
}

/// The regions that a window is, or may be, bound to.
type BoundRegions = SpinLockIrq<BindList>;

struct BindList {
    /// The key of the bind that was posted last.
    key: u8,
    /// The oldest first.
    bound: KVec<(u8, BoundRegion)>,
}

impl WindowOwner for BoundRegions {
    fn unbound(&self, key: u8, bound_again: bool) {
        loop {
            let mut list = self.lock();
            let last = list.bound.iter().position(|(k, _)| *k == key);
            // The binds before `key` are over, and so is `key` unless it is bound now.
            let over = last.map_or(0, |at| at + usize::from(!bound_again));
            if over == 0 {
                return;
            }
            let gone = list.bound.remove(0);
            drop(list);
            drop(gone);
        }
    }

    fn not_bound(&self, key: u8) {
        let mut list = self.lock();
        let at = list.bound.iter().position(|(k, _)| *k == key);
        let gone = at.and_then(|at| list.bound.remove(at).ok());
        drop(list);
        drop(gone);
    }
}

impl ObjectType for Mw {
    fn end(&self) {
        self.domain.device().regions.remove(self.own.index());
        for (_, bound_region) in &mut self.bound.lock().bound {
            bound_region.unbind();
        }
    }

    fn put_antecedents(&self) {
        let bound = core::mem::take(&mut self.bound.lock().bound);
        drop(bound);
    }
}

impl Object<Pd> {
    /// `CreateMw`.
    pub(crate) fn create_mw(self: &Arc<Self>, done: DoneFn<Created<Mw>>) -> Answer {
        self.defer(done, |this| {
            let mw = Mw::new(this.domain.clone()).map_err(no_memory)?;
            Object::start(this.device(), this.sole_antecedent(), mw, |_| Ok(()))
        })
    }
}

impl Mw {
    /// A window that is not bound. May sleep.
    fn new(domain: Arc<Domain>) -> Result<Self> {
        let list = BindList {
            key: 0,
            bound: KVec::new(),
        };
        let bound = Arc::pin_init(new_spinlock_irq!(list), GFP_KERNEL)?;
        domain.device().may_make(SiteKind::Region)?;
        let regions = &domain.device().regions;
        let own = regions.add_window(domain.id(), Some(bound.clone()))?;
        bound.lock().key = own.key();
        Ok(Self { domain, bound, own })
    }

    /// The token for the peer of the queue pair that the window is bound to.
    pub(crate) fn remote_token(&self) -> Token {
        let key = self.bound.lock().key;
        Token::new(self.own.index(), key).unwrap_or(self.own)
    }

    /// The token with which the owner ends a binding of any key.
    pub(in crate::ndk) fn invalidation_token(&self, domain: &Domain) -> Result<Token, NtStatus> {
        NtStatus::INVALID_PARAMETER.unless(self.domain.id() == domain.id())?;
        Ok(self.own)
    }

    /// Posts a bind through `post`, to a range of `region` (BIND-01 to BIND-08).
    pub(in crate::ndk) fn bind_by(
        &self,
        domain: &Domain,
        region: &Ref<Mr>,
        rights: AccessFlags,
        range: (u64, u64),
        post: impl FnOnce(Token, Token) -> Result<(), NtStatus>,
    ) -> Result<(), NtStatus> {
        let same_domain = self.domain.id() == domain.id() && region.domain.id() == domain.id();
        let (region, bound_region) = {
            // Held until the region is counted as bound: then it is not deregistered.
            let state = region.state.lock();
            let normal = match *state {
                MrState::Normal(normal) if same_domain => normal,
                _ => return Err(NtStatus::INVALID_PARAMETER),
            };
            NtStatus::INVALID_PARAMETER
                .when(offset_in(normal.base, normal.len, range.0, range.1).is_none())?;
            NtStatus::ACCESS_VIOLATION.unless((rights | normal.rights).is_consistent())?;
            (normal.token, BoundRegion::new(region))
        };
        let mut list = self.bound.lock();
        let key = list.key.wrapping_add(1);
        // A key names one bind: there are as many keys as binds may be pending.
        let is_taken = list.bound.iter().any(|(k, _)| *k == key);
        if is_taken || list.bound.reserve(1, GFP_ATOMIC).is_err() {
            drop(list);
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        let window = Token::new(self.own.index(), key).ok_or(NtStatus::INTERNAL_ERROR)?;
        // Before the post: the bind may be over before `post` returns.
        let _ = list.bound.push_within_capacity((key, bound_region));
        let before = core::mem::replace(&mut list.key, key);
        // A post that finds the queue pair gone ends at once, and its end takes the lock.
        drop(list);
        let posted = post(window, region);
        if posted.is_err() {
            let mut list = self.bound.lock();
            if list.key == key {
                list.key = before;
            }
            drop(list);
            self.bound.not_bound(key);
        }
        posted
    }
}
