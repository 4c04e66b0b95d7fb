// SPDX-License-Identifier: GPL-2.0

//! [`Qp`]: a queue pair; posting.
//!
//! Initiator requests are taken while the queue pair is connected, as this face means it: from the
//! end of `CompleteConnect` or `Accept` to whatever ends the connection (POST-18). The order of
//! the checks is that of POST-14: state, flags, elements, length, object access, room.
//!
//! A consumer does not post to one queue from two sides at once, so nothing here locks beyond what
//! the queue itself needs against its transport.

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
    Sizes, //
};

pub(super) use request::checked;

use self::request::{
    op_flags::*,
    rights,
    COMMON,
    OF_BIND,
    OF_READ,
    OF_REGISTER,
    OF_SEND,
    OF_WRITE, //
};
use super::{
    cq::{
        Cq,
        Users, //
    },
    life::{
        Object,
        ObjectType,
        ObjectUse,
        Ref, //
    },
    memory::{
        Mr,
        Mw, //
    },
    pd::{
        no_memory,
        Created,
        Pd, //
    },
    srq::Srq,
    status::NtStatus, //
};
use crate::engine::{
    domain::Domain,
    memory::{
        rights::Rights,
        token::Token, //
    },
    qp::{
        state::State,
        Caps,
        QpEvents,
        QpParams,
        QueuePair, //
    },
    work::{
        Extra,
        Flags,
        Remote,
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
    ended: AtomicFlag,
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
        if self.ended.xchg(true, Relaxed) {
            return;
        }
        self.engine.destroy();
        for queue in self.users.iter().flatten() {
            queue.remove(&self.engine);
        }
    }
}

impl Qp {
    /// May sleep.
    pub(super) fn create(
        pd: &Ref<Pd>,
        holds: [Option<ObjectUse>; 4],
        cqs: (&Ref<Cq>, &Ref<Cq>),
        srq: Option<&Ref<Srq>>,
        context: usize,
        sizes: Sizes,
    ) -> Created<Self> {
        Self::make(pd, holds, cqs, srq, context, sizes).map_err(no_memory)
    }

    fn make(
        pd: &Ref<Pd>,
        holds: [Option<ObjectUse>; 4],
        (receive, initiator): (&Ref<Cq>, &Ref<Cq>),
        srq: Option<&Ref<Srq>>,
        context: usize,
        sizes: Sizes,
    ) -> Result<Ref<Self>> {
        let parts = QpParams {
            domain: pd.domain.clone(),
            send_cq: initiator.engine().clone(),
            receive_cq: receive.engine().clone(),
            shared: srq.map(|s| s.engine().clone()),
            events: KBox::new(Silent, GFP_KERNEL)?,
            cookie: context,
            flush_on_disconnect: false,
            number: pd.device().host().next_qp_number(),
        };
        let limits = pd.adapter.limits();
        let caps = Caps {
            sends: sizes.requests,
            receives: sizes.receives,
            send_sges: sizes.request_sges,
            receive_sges: sizes.receive_sges,
            read_sges: limits.read_sges,
            inline: sizes.inline,
        };
        let engine = QueuePair::new(parts, caps)?;
        let mut qp = Self {
            pd: pd.clone(),
            engine,
            users: [None, None, None],
            live: AtomicFlag::new(false),
            flushed: AtomicFlag::new(false),
            ended: AtomicFlag::new(false),
        };
        let queues = [
            Some(receive.users()),
            Some(initiator.users()),
            srq.map(|s| s.users()),
        ];
        for (place, queue) in qp.users.iter_mut().zip(queues) {
            if let Some(queue) = queue {
                queue.add(&qp.engine)?;
                *place = Some(queue.clone());
            }
        }
        qp.engine.modify(State::Init)?;
        qp.engine
            .set_peer_rights(Rights::REMOTE_READ.with(Rights::REMOTE_WRITE));
        // A queue that failed before told the users that it had then.
        let broken = receive.engine().has_failed() || initiator.engine().has_failed();
        if broken || srq.is_some_and(|s| s.engine().has_failed()) {
            qp.engine.fail();
        }
        Object::new(pd.device(), holds, qp, GFP_KERNEL)
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

    /// Ends a post: a chain goes to the transport when it ends, or when a request of it is refused
    /// (DEFR-04, DEFR-05).
    fn posted(&self, flags: u32, posted: Result<(), NtStatus>) -> Result<(), NtStatus> {
        match posted {
            Ok(()) if flags & DEFER != 0 => (),
            Ok(()) => self.engine.ring_doorbell(),
            Err(_) => self.engine.release(),
        }
        posted
    }

    fn post(
        &self,
        context: u64,
        work: Work,
        (allowed, flags): (u32, u32),
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
    ) -> Result<(), NtStatus> {
        let admitted = self.admit(allowed, flags);
        let posted =
            admitted.and_then(|engine_flags| self.hand_over(context, work, engine_flags, sges));
        self.posted(flags, posted)
    }

    fn hand_over(
        &self,
        context: u64,
        work: Work,
        flags: Flags,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
    ) -> Result<(), NtStatus> {
        let sges = sges.map(|sge| checked(sge, flags));
        let posted = self.engine.post(context, work, flags, sges);
        posted.map_err(NtStatus::from)
    }

    /// `Send` (SEND-01 to SEND-13). Any context.
    pub(crate) fn send(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let work = Work::Send {
            extra: Extra::Nothing,
        };
        self.post(context, work, (OF_SEND, flags), sges)
    }

    /// `SendAndInvalidate` (SINV-01 to SINV-13). Any context.
    pub(crate) fn send_and_invalidate(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        flags: u32,
        token: Token,
    ) -> Result<(), NtStatus> {
        let work = Work::Send {
            extra: Extra::Invalidate(token),
        };
        self.post(context, work, (OF_SEND, flags), sges)
    }

    /// `Write` (WRIT-01 to WRIT-04). Any context.
    pub(crate) fn write(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        to: Remote,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let work = Work::Write {
            to,
            immediate: None,
        };
        self.post(context, work, (OF_WRITE, flags), sges)
    }

    /// `Read` (READ-01 to READ-08). Any context.
    pub(crate) fn read(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        from: Remote,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let able = self.pd.adapter.limits().read_invalidate;
        let wanted = flags & RDMA_READ_LOCAL_INVALIDATE != 0 && able;
        let first = sges.clone().next().filter(|_| wanted);
        let work = Work::Read {
            from,
            invalidate: first.map(|sge| sge.token()),
        };
        self.post(context, work, (OF_READ, flags), sges)
    }

    /// `Receive` (RECV-01 to RECV-06). Any context.
    pub(crate) fn receive(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), NtStatus> {
        let sges = sges.map(|sge| checked(sge, Flags::NONE));
        let posted = self.engine.post_receive(context, sges);
        posted.map_err(NtStatus::from)
    }

    /// `Invalidate` of a fast registration (INV-01 to INV-07). Any context.
    pub(crate) fn invalidate_mr(&self, context: u64, mr: &Mr, flags: u32) -> Result<(), NtStatus> {
        self.invalidate(context, flags, || mr.invalidation_token(self.domain()))
    }

    /// `Invalidate` of a window. Any context.
    pub(crate) fn invalidate_mw(&self, context: u64, mw: &Mw, flags: u32) -> Result<(), NtStatus> {
        self.invalidate(context, flags, || mw.invalidation_token(self.domain()))
    }

    /// `Invalidate` of what is neither: refused, if it would be posted at all. Any context.
    pub(crate) fn invalidate_other(&self, context: u64, flags: u32) -> Result<(), NtStatus> {
        self.invalidate(context, flags, || Err(NtStatus::INVALID_PARAMETER))
    }

    fn invalidate(
        &self,
        context: u64,
        flags: u32,
        token: impl FnOnce() -> Result<Token, NtStatus>,
    ) -> Result<(), NtStatus> {
        let posted = self.admit(COMMON, flags).and_then(|engine_flags| {
            let work = Work::Invalidate {
                token: token()?,
                must_be_valid: true,
            };
            self.hand_over(context, work, engine_flags, [].into_iter())
        });
        self.posted(flags, posted)
    }

    /// `FastRegister` (FREG-01 to FREG-12). Any context.
    pub(crate) fn fast_register(
        &self,
        context: u64,
        mr: &Mr,
        what: &Registration<'_>,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let posted = self.admit(OF_REGISTER, flags).and_then(|engine_flags| {
            let rights = rights(flags)?;
            let pages = what.check()?;
            let offset = u64::from(what.offset);
            mr.register_by(
                self.domain(),
                pages,
                rights,
                |list| what.pages.each_span(offset, |span| list.push(span).is_ok()),
                |token, number| {
                    let work = Work::Register {
                        token,
                        base: what.base,
                        len: what.len,
                        rights,
                        staged: Some(number),
                    };
                    self.hand_over(context, work, engine_flags, [].into_iter())
                },
            )
        });
        self.posted(flags, posted)
    }

    /// `Bind` (BIND-01 to BIND-08). Any context.
    pub(crate) fn bind(
        &self,
        context: u64,
        region: &Ref<Mr>,
        window: &Mw,
        (addr, len): (u64, u64),
        flags: u32,
    ) -> Result<(), NtStatus> {
        let posted = self.admit(OF_BIND, flags).and_then(|engine_flags| {
            let rights = rights(flags)?.remote();
            if !rights.is_remote() {
                return Err(NtStatus::INVALID_PARAMETER);
            }
            window.bind_by(
                self.domain(),
                region,
                rights,
                (addr, len),
                |window, region| {
                    let work = Work::Bind {
                        window,
                        region,
                        addr,
                        len,
                        rights,
                    };
                    self.hand_over(context, work, engine_flags, [].into_iter())
                },
            )
        });
        self.posted(flags, posted)
    }

    /// Refuses a request that is not even one: after the state, and with what follows a refusal.
    pub(crate) fn refuse(&self, status: NtStatus) -> Result<(), NtStatus> {
        let posted = self.admit(u32::MAX, 0).and(Err(status));
        self.posted(0, posted)
    }

    /// `Flush`: cancels everything that was posted (FLSH-01 to FLSH-05). Any context.
    pub(crate) fn flush(&self) {
        self.flushed.store(true, Relaxed);
        self.set_live(false);
        self.engine.fail();
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        // One that never became an object; every other has ended.
        self.end();
    }
}
