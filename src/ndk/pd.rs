// SPDX-License-Identifier: GPL-2.0

//! [`Pd`]: a protection domain, and what is made in it.

use super::{
    cq::Cq,
    memory::{
        Mr,
        Mw, //
    },
    prelude::*,
    qp::Qp,
    srq::{
        Srq,
        SrqSizes,
        SrqUser, //
    }, //
};
use crate::{
    engine::domain::Domain,
    rdma::values::{
        qp::QpCaps,
        token::Token, //
    }, //
};

/// A protection domain.
pub(crate) struct Pd {
    pub(super) adapter: Ref<Adapter>,
    pub(super) domain: Arc<Domain>,
}

impl ObjectType for Pd {
    fn end_sleeps(&self) -> bool {
        false
    }

    fn end(&self) {
        self.domain.close();
    }
}

impl Object<Adapter> {
    /// `CreatePd`; over at once.
    pub(crate) fn create_pd(self: &Arc<Self>) -> Created<Pd> {
        let domain = Domain::new(self.device().clone(), GFP_ATOMIC).map_err(no_memory)?;
        let adapter = self.clone();
        self.successor(Pd { adapter, domain }, GFP_ATOMIC)
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
        let mr = Mr::new(self.domain.clone(), *self.adapter.limits(), fast);
        self.successor(mr, GFP_ATOMIC)
    }

    /// `CreateMw`.
    pub(crate) fn create_mw(self: &Arc<Self>, done: DoneFn<Created<Mw>>) -> Answer {
        self.defer(done, |this| {
            let mw = Mw::new(this.domain.clone()).map_err(no_memory)?;
            Object::start(this.device(), this.alone(), mw, |_| Ok(()))
        })
    }

    /// `CreateSrq`: refused when the adapter has none, or above its limits (SRQ-01).
    pub(crate) fn create_srq(
        self: &Arc<Self>,
        sizes: SrqSizes,
        user: SrqUser,
        done: DoneFn<Created<Srq>>,
    ) -> Answer {
        sizes.check(self.adapter.limits())?;
        self.adapter.check_there()?;
        self.defer(done, move |this| Srq::create(this, sizes, user))
    }

    /// `CreateQp`, and with a shared queue `CreateQpWithSrq` (QP-01).
    ///
    /// `INVALID_PARAMETER` for completion queues of another adapter, and for a shared queue of
    /// another domain.
    pub(crate) fn create_qp(
        self: &Arc<Self>,
        cqs: (&Ref<Cq>, &Ref<Cq>),
        srq: Option<&Ref<Srq>>,
        context: usize,
        caps: QpCaps,
        done: DoneFn<Created<Qp>>,
    ) -> Answer {
        let adapter = &self.adapter;
        NtStatus::INVALID_PARAMETER.unless(cqs.0.is_of(adapter) && cqs.1.is_of(adapter))?;
        NtStatus::INVALID_PARAMETER.unless(srq.is_none_or(|srq| srq.is_of(self)))?;
        let caps = match srq {
            // The sizes of the shared queue count for receives.
            Some(_) => QpCaps {
                recv_wr: 0,
                recv_sge: 0,
                ..caps
            },
            None => caps,
        };
        let fits = caps.is_within(&self.adapter.limits().caps());
        NtStatus::INVALID_PARAMETER.unless(fits)?;
        let antecedents = [
            Some(self.new_use()),
            Some(cqs.0.new_use()),
            Some(cqs.1.new_use()),
            srq.map(Object::new_use),
        ];
        let cqs = [cqs.0.clone(), cqs.1.clone()];
        let srq = srq.cloned();
        self.defer(done, move |this| {
            Qp::create(this, antecedents, cqs, srq, context, caps)
        })
    }
}
