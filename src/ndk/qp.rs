// SPDX-License-Identifier: GPL-2.0

//! [`Qp`]: a queue pair; posting.
//!
//! Initiator requests are taken while the queue pair is connected, as this face means it: from the
//! end of `CompleteConnect` or `Accept` to whatever ends the connection (POST-18). The order of
//! the checks is that of POST-14: state, flags, elements, length, object access, room.
//!
//! A post is one hold of the send queue's lock. Locks of regions and windows are taken inside it.

mod request;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed,
                Release, //
            },
            AtomicFlag, //
        },
        Arc, //
    }, //
};

#[cfg(ndk_kunit)]
pub(crate) use request::op_flags;
pub(crate) use request::{
    Registration,
    Request,
    Sizes, //
};

pub(super) use request::checked;

use self::request::{
    op_flags::*,
    rights, //
};
use super::{
    cq::{
        Cq,
        Users, //
    },
    life::{
        Antecedents,
        Object,
        ObjectType,
        Ref, //
    },
    pd::Pd,
    srq::Srq,
    status::{
        no_memory,
        Created,
        NtStatus, //
    }, //
};
use crate::engine::{
    domain::Domain,
    memory::rights::Rights,
    qp::{
        state::State,
        Caps,
        Posting,
        QpEvents,
        QpParams,
        QueuePair, //
    },
    work::{
        Extra,
        Flags,
        Sge,
        Work, //
    }, //
};

/// A queue pair.
pub(crate) struct Qp {
    pd: Ref<Pd>,
    engine: Arc<QueuePair>,
    /// Those of the two completion queues and of the shared queue.
    users: [Option<Arc<Users>>; 3],
    /// Connected, as this face means it.
    live: AtomicFlag,
    flushed: AtomicFlag,
}

struct Silent;

impl QpEvents for Silent {
    fn last_receive_reached(&self) {}

    // The completion queue tells.
    fn broken(&self) {}
}

impl ObjectType for Qp {
    fn end_sleeps(&self) -> bool {
        true
    }

    fn end(&self) {
        self.engine.destroy();
        for queue in self.users.iter().flatten() {
            queue.remove(&self.engine);
        }
    }
}

impl Qp {
    /// May sleep. The queues are the one for receives, and the one for initiator requests.
    pub(super) fn create(
        pd: &Ref<Pd>,
        holds: Antecedents,
        cqs: [Ref<Cq>; 2],
        srq: Option<Ref<Srq>>,
        context: usize,
        sizes: Sizes,
    ) -> Created<Self> {
        let [receive, initiator] = &cqs;
        let parts = QpParams {
            domain: pd.domain.clone(),
            send_cq: initiator.engine().clone(),
            receive_cq: receive.engine().clone(),
            shared: srq.as_ref().map(|s| s.engine().clone()),
            events: KBox::new(Silent, GFP_KERNEL)?,
            cookie: context,
            outlives_peer: true,
            number: pd.device().host().next_qp_number(),
        };
        let caps = Caps {
            sends: sizes.requests,
            receives: sizes.receives,
            send_sges: sizes.request_sges,
            receive_sges: sizes.receive_sges,
            read_sges: pd.adapter.limits().read_sges,
            inline: sizes.inline,
        };
        let qp = Self {
            pd: pd.clone(),
            engine: QueuePair::new(parts, caps).map_err(no_memory)?,
            users: [
                Some(receive.users().clone()),
                Some(initiator.users().clone()),
                srq.as_ref().map(|s| s.users().clone()),
            ],
            live: AtomicFlag::new(false),
            flushed: AtomicFlag::new(false),
        };
        Object::start(pd.device(), holds, qp, |qp| {
            for queue in qp.users.iter().flatten() {
                queue.add(&qp.engine)?;
            }
            qp.engine.modify(State::Init)?;
            qp.engine
                .set_peer_rights(Rights::REMOTE_READ.with(Rights::REMOTE_WRITE));
            // A queue that failed before told the users that it had then.
            let broken = cqs.iter().any(|cq| cq.engine().has_failed());
            if broken || srq.is_some_and(|s| s.engine().has_failed()) {
                qp.engine.fail();
            }
            Ok(())
        })
    }

    /// The engine's queue pair.
    pub(crate) fn engine(&self) -> &Arc<QueuePair> {
        &self.engine
    }

    /// Returns true if the consumer has flushed it.
    pub(super) fn was_flushed(&self) -> bool {
        self.flushed.load(Relaxed)
    }

    /// The connection is up, or ends, as this face means it.
    pub(super) fn set_live(&self, live: bool) {
        self.live.store(live, Release);
    }

    /// Returns true if a connection may be made with it (CONN-07, CONN-17).
    pub(super) fn may_connect(&self) -> Result<(), NtStatus> {
        match self.engine.state() {
            State::Reset | State::Init | State::Ready => Ok(()),
            State::Connected => Err(NtStatus::CONNECTION_ACTIVE),
            State::Lost | State::Error => Err(NtStatus::CONNECTION_INVALID),
        }
    }

    fn domain(&self) -> &Domain {
        &self.pd.domain
    }

    /// Returns true if a request may be posted, and with which of the engine's flags.
    fn admit(&self, allowed: u32, flags: u32) -> Result<Flags, NtStatus> {
        if !self.live.load(Acquire) || self.engine.state() != State::Connected {
            return Err(NtStatus::CONNECTION_INVALID);
        }
        if flags & !allowed != 0 {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let set = [
            (flags & SILENT_SUCCESS == 0, Flags::SIGNALED),
            (flags & READ_FENCE != 0, Flags::READ_FENCE),
            (flags & SEND_AND_SOLICIT_EVENT != 0, Flags::SOLICITED),
            (flags & INLINE != 0, Flags::INLINE),
            (flags & DEFER != 0, Flags::DEFERRED),
        ];
        let set = set.into_iter().filter(|(set, _)| *set);
        Ok(set.fold(Flags::NONE, |all, (_, flag)| all.with(flag)))
    }

    /// Posts an initiator request; why one is refused is said at [`Request`]. Any context.
    ///
    /// A chain goes to the transport when it ends, or when a request of it is refused (DEFR-04,
    /// DEFR-05).
    pub(crate) fn post(
        &self,
        context: u64,
        request: Request<'_>,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let mut posting = self.engine.posting();
        let posted = self.post_to(&mut posting, context, request, sges, flags);
        match posted {
            Ok(()) if flags & DEFER != 0 => posting.leave(),
            Ok(()) => posting.ring_doorbell(),
            Err(_) => {
                posting.release();
                posting.ring_doorbell();
            }
        }
        posted
    }

    fn post_to(
        &self,
        posting: &mut Posting<'_>,
        context: u64,
        request: Request<'_>,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let admitted = self.admit(request.flags(), flags)?;
        let first = sges.clone().next();
        let sges = sges.map(|sge| checked(sge, admitted));
        let mut put = |work| Ok(posting.post(context, work, admitted, sges.clone())?);
        let invalidation = |token| Work::Invalidate {
            token,
            must_be_valid: true,
        };
        match request {
            Request::Send => put(Work::Send {
                extra: Extra::Nothing,
            }),
            Request::SendAndInvalidate(token) => put(Work::Send {
                extra: Extra::Invalidate(token),
            }),
            Request::Write(to) => put(Work::Write {
                to,
                immediate: None,
            }),
            Request::Read(from) => {
                let able = self.pd.adapter.limits().read_invalidate;
                let wanted = flags & RDMA_READ_LOCAL_INVALIDATE != 0 && able;
                put(Work::Read {
                    from,
                    invalidate: first.filter(|_| wanted).map(|sge| sge.token()),
                })
            }
            Request::InvalidateMr(mr) => put(invalidation(mr.invalidation_token(self.domain())?)),
            Request::InvalidateMw(mw) => put(invalidation(mw.invalidation_token(self.domain())?)),
            Request::Register(mr, what) => {
                let rights = rights(flags)?;
                mr.register_by(self.domain(), what, rights, |token, number| {
                    put(Work::Register {
                        token,
                        base: what.base,
                        len: what.len,
                        rights,
                        staged: Some(number),
                    })
                })
            }
            Request::Bind(region, window, (addr, len)) => {
                let rights = rights(flags)?.remote();
                if !rights.is_remote() {
                    return Err(NtStatus::INVALID_PARAMETER);
                }
                let (domain, range) = (self.domain(), (addr, len));
                window.bind_by(domain, region, rights, range, |window, region| {
                    put(Work::Bind {
                        window,
                        region,
                        addr,
                        len,
                        rights,
                    })
                })
            }
            Request::Invalid => Err(NtStatus::INVALID_PARAMETER),
        }
    }

    /// `Receive` (RECV-01 to RECV-06). Any context.
    pub(crate) fn receive(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), NtStatus> {
        let sges = sges.map(|sge| checked(sge, Flags::NONE));
        Ok(self.engine.post_receive(context, sges)?)
    }

    /// `Flush`: cancels everything that was posted (FLSH-01 to FLSH-05). Any context.
    pub(crate) fn flush(&self) {
        self.flushed.store(true, Relaxed);
        self.set_live(false);
        self.engine.fail();
    }
}
