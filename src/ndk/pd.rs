// SPDX-License-Identifier: GPL-2.0

//! [`Pd`]: a protection domain, and what is made in it.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    adapter::Adapter,
    call::{
        defer,
        Done, //
    },
    cq::Cq,
    life::{
        Object,
        ObjectType,
        Ref, //
    },
    memory::{
        Mr,
        Mw, //
    },
    qp::{
        Qp,
        Sizes, //
    },
    srq::{
        Srq,
        SrqSizes,
        SrqUser, //
    },
    status::{
        Answer,
        NtStatus, //
    }, //
};
use crate::engine::{
    domain::Domain,
    memory::token::Token, //
};

/// What a creation that is not over at once tells in the end.
pub(crate) type Created<T> = Result<Ref<T>, NtStatus>;

/// A protection domain.
pub(crate) struct Pd {
    pub(super) adapter: Ref<Adapter>,
    pub(super) domain: Arc<Domain>,
}

impl ObjectType for Pd {
    fn end_sleeps(&self) -> bool {
        false
    }

    fn end(&self) {}
}

/// The status of a creation that failed: what was asked for is fine, so memory was short.
pub(super) fn no_memory<E>(_: E) -> NtStatus {
    NtStatus::INSUFFICIENT_RESOURCES
}

impl Object<Adapter> {
    /// `CreatePd`; over at once.
    pub(crate) fn create_pd(self: &Arc<Self>) -> Created<Pd> {
        let domain = Domain::new(self.device().clone(), GFP_ATOMIC).map_err(no_memory)?;
        let pd = Pd {
            adapter: self.clone(),
            domain,
        };
        let holds = [Some(self.hold()), None, None, None];
        Object::new(self.device(), holds, pd, GFP_ATOMIC).map_err(no_memory)
    }
}

impl Pd {
    /// `GetPrivilegedMemoryRegionToken`: the token for logical addresses (PRIV-01).
    pub(crate) fn privileged_token(&self) -> Token {
        Token::LOCAL_MEMORY
    }
}

impl Object<Pd> {
    /// `CreateMr`; over at once.
    pub(crate) fn create_mr(self: &Arc<Self>, fast: bool) -> Created<Mr> {
        let limits = *self.object_adapter().limits();
        let holds = [Some(self.hold()), None, None, None];
        let mr = Mr::new(self.domain.clone(), limits, fast);
        Object::new(self.device(), holds, mr, GFP_ATOMIC).map_err(no_memory)
    }

    /// `CreateMw`.
    pub(crate) fn create_mw(self: &Arc<Self>, done: Done<Created<Mw>>) -> Answer<Ref<Mw>> {
        let this = self.clone();
        defer(self.device(), self.hold(), done, move || {
            let mw = Mw::new(this.domain.clone()).map_err(no_memory)?;
            let holds = [Some(this.hold()), None, None, None];
            Object::new(this.device(), holds, mw, GFP_KERNEL).map_err(no_memory)
        })
    }

    /// `CreateSrq`: refused when the adapter has none, or above its limits (SRQ-01).
    pub(crate) fn create_srq(
        self: &Arc<Self>,
        sizes: SrqSizes,
        user: SrqUser,
        done: Done<Created<Srq>>,
    ) -> Answer<Ref<Srq>> {
        sizes.check(self.object_adapter().limits())?;
        self.object_adapter().check_there()?;
        let this = self.clone();
        defer(self.device(), self.hold(), done, move || {
            Srq::create(&this, sizes, user)
        })
    }

    /// `CreateQp`, and with a shared queue `CreateQpWithSrq` (QP-01).
    pub(crate) fn create_qp(
        self: &Arc<Self>,
        cqs: (&Ref<Cq>, &Ref<Cq>),
        srq: Option<&Ref<Srq>>,
        context: usize,
        sizes: Sizes,
        done: Done<Created<Qp>>,
    ) -> Answer<Ref<Qp>> {
        let sizes = match srq {
            Some(_) => sizes.without_receives(),
            None => sizes,
        };
        sizes.check(self.object_adapter().limits())?;
        let this = self.clone();
        let holds = [
            Some(self.hold()),
            Some(cqs.0.hold()),
            Some(cqs.1.hold()),
            srq.map(Object::hold),
        ];
        let (receive, initiator) = (cqs.0.clone(), cqs.1.clone());
        let srq = srq.cloned();
        defer(self.device(), self.hold(), done, move || {
            Qp::create(
                &this,
                holds,
                (&receive, &initiator),
                srq.as_ref(),
                context,
                sizes,
            )
        })
    }

    /// The adapter that the domain is of.
    pub(super) fn object_adapter(&self) -> &Ref<Adapter> {
        &(**self).adapter
    }
}
