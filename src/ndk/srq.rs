// SPDX-License-Identifier: GPL-2.0

//! [`Srq`]: a shared receive queue.

use super::{
    adapter::Limits,
    cq::{
        CqUser,
        CqUsers,
        QueueTargets, //
    },
    memory::checked,
    pd::Pd,
    prelude::*, //
};
use crate::{
    engine::{
        notifier::Called,
        qp::QueuePair,
        srq::{
            SharedReceive,
            SrqEvents, //
        },
        wq::PostError, //
    },
    sys::sge::{
        Elements,
        Posted, //
    }, //
};

/// The sizes of a shared queue, and the threshold of its event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SrqSizes {
    pub(crate) depth: u32,
    pub(crate) sges: u32,
    /// Fewer receives than this raise the event, once; 0 for never.
    pub(crate) threshold: u32,
}

impl SrqSizes {
    /// Checks the sizes: `INVALID_PARAMETER` above `limits`, for a depth of 0, and for a threshold
    /// above the depth. Any context.
    pub(super) fn check(&self, limits: &Limits) -> Result<(), NtStatus> {
        let fits = self.depth != 0
            && self.depth <= limits.srq
            && self.sges <= limits.sges
            && self.threshold <= self.depth;
        NtStatus::INVALID_PARAMETER.unless(fits)
    }
}

/// The callback for a low number of receives, or a failed queue. Called in softirq.
pub(crate) type SrqUser = Option<CqUser>;

/// A shared receive queue.
pub(crate) struct Srq {
    pd: Ref<Pd>,
    engine: Arc<SharedReceive>,
    /// The queue pairs that use it.
    pub(super) users: Arc<CqUsers>,
    has_user: bool,
}

impl SrqEvents for QueueTargets<SrqUser> {
    fn limit_reached(&self) {
        if let Some(user) = &self.user {
            user(NtStatus::SUCCESS);
        }
    }

    fn failed(&self) -> Called {
        // No completion follows (SRQ-09).
        let called = self.users.fail(QueuePair::fail_unreported);
        if let Some(user) = self.user.as_ref().filter(|_| called == Called::Done) {
            user(NtStatus::INTERNAL_ERROR);
        }
        called
    }
}

impl ObjectType for Srq {
    fn end(&self) {
        let adapter = &self.pd.adapter;
        adapter.remove(|state| &mut state.srqs, &self.engine);
        self.engine.close();
    }
}

impl Object<Pd> {
    /// `CreateSrq`: refused above the limits of the adapter (SRQ-01).
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
}

impl Srq {
    /// Creates a shared queue. May sleep.
    fn create(pd: &Ref<Pd>, sizes: SrqSizes, user: SrqUser) -> Created<Self> {
        let has_user = user.is_some();
        let events = QueueTargets::new(user)?;
        let users = events.users.clone();
        let engine = SharedReceive::new(pd.domain.clone(), sizes.depth, sizes.sges, events);
        let srq = Self {
            pd: pd.clone(),
            engine: engine.map_err(no_memory)?,
            users,
            has_user,
        };
        Object::start(pd.device(), pd.sole_antecedent(), srq, |srq| {
            if has_user {
                srq.engine.preset_limit(sizes.threshold);
            }
            pd.adapter.add(|state| &mut state.srqs, &srq.engine)
        })
    }

    /// The engine's queue.
    pub(crate) fn engine(&self) -> &Arc<SharedReceive> {
        &self.engine
    }

    /// Returns true if `pd` made the queue.
    pub(super) fn is_of(&self, pd: &Ref<Pd>) -> bool {
        Arc::ptr_eq(&self.pd, pd)
    }

    /// `SrqReceive` (SRQ-02). Any context.
    pub(crate) fn post_receive(&self, posted: Posted<impl Elements>) -> Result<(), NtStatus> {
        let accepted = self.engine.post(checked(posted, false));
        accepted.map_err(|refused| match refused {
            // The queue itself has failed.
            PostError::State => NtStatus::INTERNAL_ERROR,
            refused => refused.into(),
        })
    }
}

impl Object<Srq> {
    /// `ModifySrq`: 0 keeps the present value (SRQ-05, SRQ-06, SRQ-08).
    pub(crate) fn modify(
        self: &Arc<Self>,
        depth: u32,
        threshold: u32,
        done: DoneFn<NtStatus>,
    ) -> Answer {
        let room = match depth {
            0 => self.engine.depth(),
            depth => depth,
        };
        NtStatus::INVALID_PARAMETER
            .when(depth > self.pd.adapter.limits().srq || threshold > room)?;
        if depth == 0 {
            self.arm(threshold);
            return Ok(Progress::Done);
        }
        self.defer(done, move |this| {
            let resized = this.engine.resize(depth);
            if resized.is_ok() {
                this.arm(threshold);
            }
            resized.into()
        })
    }

    fn arm(&self, threshold: u32) {
        if threshold != 0 && self.has_user {
            self.engine.set_any_limit(threshold);
        }
    }
}
