// SPDX-License-Identifier: GPL-2.0

//! [`Qp`]: a queue pair; posting.
//!
//! Initiator requests are accepted while the queue pair is connected in the sense of this face:
//! from the end of `CompleteConnect` or `Accept` to the end of the connection (POST-18). The order
//! of the checks is that of POST-14: state, flags, elements, length, object access, room.
//!
//! A post is one hold of the send queue's lock. Locks of regions and windows are taken inside it.

use kernel::sync::atomic::{
    ordering::{
        Acquire,
        Relaxed,
        Release, //
    },
    AtomicFlag, //
};

use super::{
    adapter::Limits,
    cq::{
        Cq,
        CqUsers, //
    },
    life::Antecedents,
    memory::{
        checked,
        rights_of,
        FastRegistration,
        Mr,
        Mw,
        PreparedPages, //
    },
    pd::Pd,
    prelude::*,
    srq::Srq, //
};
use crate::{
    engine::qp::{
        Posting,
        QpEvents,
        QpParams,
        QueuePair, //
    },
    ndk::abi::numbers::op_flags::*,
    rdma::values::{
        access::{
            AccessFlag,
            AccessFlags, //
        },
        qp::{
            QpCaps,
            QpState, //
        },
        token::Token,
        work::{
            RemoteAddr,
            SendFlag,
            SendFlags,
            SendOp,
            SendWith, //
        }, //
    },
    sys::sge::{
        Elements,
        Posted, //
    }, //
};

/// An initiator request.
pub(crate) enum Request<'a> {
    /// `Send` (SEND-01 to SEND-13).
    Send,
    /// `SendAndInvalidate` (SINV-01 to SINV-13), with a token of the peer.
    SendAndInvalidate(Token),
    /// `Write` (WRIT-01 to WRIT-04).
    Write(RemoteAddr),
    /// `Read` (READ-01 to READ-08).
    Read(RemoteAddr),
    /// `FastRegister` (FREG-01 to FREG-12).
    Register(&'a Mr, &'a FastRegistration<'a>),
    /// `Bind` (BIND-01 to BIND-08) of a window to a part of a region, by address and length.
    Bind(&'a Ref<Mr>, &'a Mw, (u64, u64)),
    /// `Invalidate` of a fast registration (INV-01 to INV-07).
    InvalidateMr(&'a Mr),
    /// `Invalidate` of a window.
    InvalidateMw(&'a Mw),
    /// A request without its object or list: `INVALID_PARAMETER`, once state and flags are checked.
    Invalid,
}

impl Request<'_> {
    /// The flags that the request may have.
    const fn flags(&self) -> u32 {
        let of_its_own = match self {
            Self::Send | Self::SendAndInvalidate(_) => SEND_AND_SOLICIT_EVENT | INLINE,
            Self::Write(_) => INLINE,
            Self::Read(_) => RDMA_READ_LOCAL_INVALIDATE,
            Self::Register(..) => ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE | RDMA_READ_SINK,
            Self::Bind(..) => ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE,
            Self::InvalidateMr(_) | Self::InvalidateMw(_) | Self::Invalid => 0,
        };
        of_its_own | SILENT_SUCCESS | READ_FENCE | DEFER
    }
}

impl Limits {
    /// The largest sizes of a queue pair.
    pub(super) const fn caps(&self) -> QpCaps {
        QpCaps {
            send_wr: self.requests,
            recv_wr: self.requests,
            send_sge: self.sges,
            recv_sge: self.sges,
            read_sge: self.read_sges,
            inline_data: self.inline,
        }
    }
}

/// The rights that a registration or a bind gives. Remote write takes both of its bits (FREG-07).
fn rights(flags: u32) -> Result<AccessFlags, NtStatus> {
    let deciding = ALLOW_REMOTE_WRITE & !ALLOW_LOCAL_WRITE;
    rights_of(flags, [ALLOW_REMOTE_READ, ALLOW_LOCAL_WRITE, deciding])
}

/// A queue pair.
pub(crate) struct Qp {
    pd: Ref<Pd>,
    engine: Arc<QueuePair>,
    /// The users of the two completion queues and of the shared queue.
    users: [Option<Arc<CqUsers>>; 3],
    /// Connected in the sense of this face.
    is_connected: AtomicFlag,
    flushed: AtomicFlag,
}

struct Silent;

impl QpEvents for Silent {
    fn last_receive_reached(&self) {}

    // The completion queue reports it.
    fn broken(&self) {}
}

impl Object<Pd> {
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

impl ObjectType for Qp {
    fn end(&self) {
        self.engine.destroy();
        for queue in self.users.iter().flatten() {
            queue.remove(&self.engine);
        }
    }
}

impl Qp {
    /// Creates a queue pair; `cqs` are the queue for receives, and the one for initiator requests.
    /// May sleep.
    fn create(
        pd: &Ref<Pd>,
        antecedents: Antecedents,
        cqs: [Ref<Cq>; 2],
        srq: Option<Ref<Srq>>,
        context: usize,
        caps: QpCaps,
    ) -> Created<Self> {
        let [receive, initiator] = &cqs;
        let params = QpParams {
            domain: pd.domain.clone(),
            send_cq: initiator.engine().clone(),
            receive_cq: receive.engine().clone(),
            shared: srq.as_ref().map(|s| s.engine().clone()),
            events: KBox::new(Silent, GFP_KERNEL)?,
            qp_context: context,
            flush_on_disconnect: false,
            number: pd.device().host.next_qp_number(),
        };
        let caps = QpCaps {
            read_sge: pd.adapter.limits().read_sges,
            ..caps
        };
        let qp = Self {
            pd: pd.clone(),
            engine: QueuePair::new(params, caps).map_err(no_memory)?,
            users: [
                Some(receive.users.clone()),
                Some(initiator.users.clone()),
                srq.as_ref().map(|s| s.users.clone()),
            ],
            is_connected: AtomicFlag::new(false),
            flushed: AtomicFlag::new(false),
        };
        Object::start(pd.device(), antecedents, qp, |qp| {
            for queue in qp.users.iter().flatten() {
                queue.add(&qp.engine)?;
            }
            qp.engine.modify(QpState::Init)?;
            qp.engine
                .set_peer_rights(AccessFlag::RemoteRead | AccessFlag::RemoteWrite);
            // A queue that failed before has notified only the users of that time.
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

    /// Returns true if a domain of `adapter` made the queue pair.
    pub(super) fn is_of(&self, adapter: &Ref<Adapter>) -> bool {
        Arc::ptr_eq(&self.pd.adapter, adapter)
    }

    /// Returns true if the consumer has flushed the queue pair.
    pub(super) fn was_flushed(&self) -> bool {
        self.flushed.load(Relaxed)
    }

    /// Marks the queue pair as connected, or not, in the sense of this face.
    pub(super) fn set_connected(&self, live: bool) {
        self.is_connected.store(live, Release);
    }

    /// Fails if a connection may not be made with the queue pair (CONN-07, CONN-17).
    pub(super) fn may_connect(&self) -> Result<(), NtStatus> {
        match self.engine.state() {
            QpState::Reset | QpState::Init | QpState::Rtr => Ok(()),
            QpState::Rts => Err(NtStatus::CONNECTION_ACTIVE),
            QpState::Lost | QpState::Err => Err(NtStatus::CONNECTION_INVALID),
        }
    }

    /// The engine's flags for a request with `flags`; an error if the request may not be posted.
    fn admit(&self, allowed: u32, flags: u32) -> Result<SendFlags, NtStatus> {
        NtStatus::CONNECTION_INVALID
            .when(!self.is_connected.load(Acquire) || self.engine.state() != QpState::Rts)?;
        NtStatus::INVALID_PARAMETER.when(flags & !allowed != 0)?;
        let set = [
            (flags & SILENT_SUCCESS == 0, SendFlag::Signaled),
            (flags & READ_FENCE != 0, SendFlag::Fence),
            (flags & SEND_AND_SOLICIT_EVENT != 0, SendFlag::Solicited),
            (flags & INLINE != 0, SendFlag::Inline),
            (flags & DEFER != 0, SendFlag::Deferred),
        ];
        let set = set.into_iter().filter(|(set, _)| *set);
        Ok(set.fold(SendFlags::empty(), |all, (_, flag)| all | flag))
    }

    /// Posts an initiator request; [`Request`] names the rules of each kind. Any context.
    ///
    /// A chain goes to the transport when it ends, or when a request of it is refused (DEFR-04,
    /// DEFR-05).
    pub(crate) fn post(
        &self,
        posted: Posted<impl Elements>,
        request: Request<'_>,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let posted = checked(posted, flags & INLINE != 0);
        let pages = match &request {
            Request::Register(mr, what) => Some(mr.prepare(what)),
            _ => None,
        };
        let mut posting = self.engine.posting();
        let accepted = self.post_to(&mut posting, posted, (request, pages), flags);
        match accepted {
            Ok(()) if flags & DEFER != 0 => posting.end_without_doorbell(),
            Ok(()) => posting.ring_doorbell(),
            Err(_) => {
                posting.release();
                posting.ring_doorbell();
            }
        }
        accepted
    }

    fn post_to(
        &self,
        posting: &mut Posting<'_>,
        posted: Posted<impl Elements>,
        (request, pages): (Request<'_>, Option<Result<PreparedPages<'_>, NtStatus>>),
        flags: u32,
    ) -> Result<(), NtStatus> {
        let admitted = self.admit(request.flags(), flags)?;
        let domain = &self.pd.domain;
        let first = posted.sges().next();
        let put = |work| Ok(posting.post(posted, work, admitted)?);
        let send = |with| SendOp::Send { with };
        match request {
            Request::Send => put(send(SendWith::Nothing)),
            Request::SendAndInvalidate(token) => put(send(SendWith::Inv(token))),
            Request::Write(to) => put(SendOp::Write { to, imm: None }),
            Request::Read(from) => {
                let wanted = flags & RDMA_READ_LOCAL_INVALIDATE != 0;
                put(SendOp::Read {
                    from,
                    invalidate: first.filter(|_| wanted).map(|sge| sge.token()),
                })
            }
            Request::InvalidateMr(mr) => put(invalidation(mr.invalidation_token(domain)?)),
            Request::InvalidateMw(mw) => put(invalidation(mw.invalidation_token(domain)?)),
            Request::Register(mr, what) => {
                let rights = rights(flags)?;
                let pages = pages.ok_or(NtStatus::INTERNAL_ERROR)?;
                mr.register_by(domain, pages, rights, |token, number| {
                    put(SendOp::RegMr {
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
                NtStatus::INVALID_PARAMETER.unless(rights.is_remote())?;
                window.bind_by(domain, region, rights, (addr, len), |window, region| {
                    put(SendOp::BindMw {
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
    pub(crate) fn post_receive(&self, posted: Posted<impl Elements>) -> Result<(), NtStatus> {
        Ok(self.engine.post_receive(checked(posted, false))?)
    }

    /// `Flush`: cancels all posted requests and receives (FLSH-01 to FLSH-05). Any context.
    pub(crate) fn flush(&self) {
        self.flushed.store(true, Relaxed);
        self.set_connected(false);
        self.engine.fail();
    }
}

/// `Invalidate`: it is an error that the object is invalid already (INV-06).
const fn invalidation(token: Token) -> SendOp {
    SendOp::LocalInv {
        token,
        must_be_valid: true,
    }
}
