// SPDX-License-Identifier: GPL-2.0

//! [`Srq`]: a shared receive queue.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            AtomicFlag, //
        },
        Arc, //
    }, //
};

use super::{
    adapter::Limits,
    call::{
        defer,
        Done, //
    },
    cq::Users,
    life::{
        Object,
        ObjectType,
        Ref, //
    },
    pd::{
        no_memory,
        Created,
        Pd, //
    },
    qp::checked,
    status::{
        Answer,
        NtStatus,
        Progress, //
    }, //
};
use crate::engine::{
    qp::PostError,
    qp::QueuePair,
    srq::{
        SharedReceive,
        SrqEvents, //
    },
    work::{
        Flags,
        Sge, //
    }, //
};

/// What a shared queue is made with.
#[derive(Clone, Copy)]
pub(crate) struct SrqSizes {
    pub(crate) depth: u32,
    pub(crate) sges: u32,
    /// Fewer receives than this raise the event, once; 0 for never.
    pub(crate) threshold: u32,
}

impl SrqSizes {
    pub(super) fn check(&self, limits: &Limits) -> Result<(), NtStatus> {
        if limits.srq == 0 {
            return Err(NtStatus::NOT_SUPPORTED);
        }
        let fits = self.depth != 0
            && self.depth <= limits.srq
            && self.sges <= limits.sges
            && self.threshold <= self.depth;
        match fits {
            true => Ok(()),
            false => Err(NtStatus::INVALID_PARAMETER),
        }
    }
}

/// Who is notified that receives run low, or that the queue failed. Called in softirq.
pub(crate) type SrqUser = Option<KBox<dyn Fn(NtStatus) + Send + Sync>>;

/// A shared receive queue.
pub(crate) struct Srq {
    pd: Ref<Pd>,
    engine: Arc<SharedReceive>,
    users: Arc<Users>,
    has_user: bool,
    ended: AtomicFlag,
}

struct Notifier {
    user: SrqUser,
    users: Arc<Users>,
}

impl SrqEvents for Notifier {
    fn limit_reached(&self) {
        if let Some(user) = &self.user {
            user(NtStatus::SUCCESS);
        }
    }

    fn failed(&self) {
        // No completion follows (SRQ-09).
        self.users.fail(QueuePair::fail_unreported);
        if let Some(user) = &self.user {
            user(NtStatus::INTERNAL_ERROR);
        }
    }
}

impl ObjectType for Srq {
    fn end_sleeps(&self) -> bool {
        true
    }

    fn end(&self) {
        if self.ended.xchg(true, Relaxed) {
            return;
        }
        self.pd.adapter.remove_srq(&self.engine);
        self.engine.close();
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        // One that never became an object; every other has ended.
        self.end();
    }
}

impl Srq {
    /// May sleep.
    pub(super) fn create(pd: &Ref<Pd>, sizes: SrqSizes, user: SrqUser) -> Created<Self> {
        Self::make(pd, sizes, user).map_err(no_memory)
    }

    fn make(pd: &Ref<Pd>, sizes: SrqSizes, user: SrqUser) -> Result<Ref<Self>> {
        let users = Users::new()?;
        let has_user = user.is_some();
        let upcalls = Notifier {
            user,
            users: users.clone(),
        };
        let events = KBox::new(upcalls, GFP_KERNEL)?;
        let engine = SharedReceive::new(pd.domain.clone(), sizes.depth, sizes.sges, events)?;
        if has_user {
            engine.preset_limit(sizes.threshold);
        }
        let srq = Self {
            pd: pd.clone(),
            engine,
            users,
            has_user,
            ended: AtomicFlag::new(false),
        };
        pd.adapter.add_srq(&srq.engine)?;
        Object::new(
            pd.device(),
            [Some(pd.hold()), None, None, None],
            srq,
            GFP_KERNEL,
        )
    }

    /// The engine's queue.
    pub(crate) fn engine(&self) -> &Arc<SharedReceive> {
        &self.engine
    }

    /// The queue pairs that use it.
    pub(super) fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// `SrqReceive` (SRQ-02). Any context.
    pub(crate) fn receive(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), NtStatus> {
        let sges = sges.map(|sge| checked(sge, Flags::NONE));
        let posted = self.engine.post(context, sges);
        posted.map_err(|refused| match refused {
            // The queue itself has failed.
            PostError::State => NtStatus::INTERNAL_ERROR,
            refused => refused.into(),
        })
    }
}

impl Object<Srq> {
    /// `ModifySrq`: 0 keeps what there is (SRQ-05, SRQ-06, SRQ-08).
    pub(crate) fn modify(
        self: &Arc<Self>,
        depth: u32,
        threshold: u32,
        done: Done<NtStatus>,
    ) -> Answer {
        let limits = *self.pd.adapter.limits();
        let room = if depth == 0 {
            self.engine.depth()
        } else {
            depth
        };
        if depth > limits.srq || threshold > room {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        if depth == 0 {
            self.arm(threshold);
            return Ok(Progress::Done(()));
        }
        let this = self.clone();
        defer(self.device(), self.hold(), done, move || {
            match this.engine.resize(depth) {
                Ok(()) => {
                    this.arm(threshold);
                    NtStatus::SUCCESS
                }
                Err(why) => why.into(),
            }
        })
    }

    fn arm(&self, threshold: u32) {
        if threshold != 0 && self.has_user {
            self.engine.set_threshold(threshold);
        }
    }
}
