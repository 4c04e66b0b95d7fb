// SPDX-License-Identifier: GPL-2.0

//! Queue pairs: making, changing and posting.

use core::num::NonZeroUsize;

use super::prelude::*;
use crate::{
    engine::{
        cm::{
            ConnectRequest,
            ConnectionManager, //
        },
        looking::ProgramReceives,
        qp::{
            Posting,
            QpEvents,
            QpParams,
            QueuePair, //
        },
        wq::PostError, //
    },
    rdma::{
        values::{
            qp::{
                QpCaps,
                QpState, //
            },
            work::{
                SendFlag,
                SendFlags, //
            }, //
        },
        Details,
        QpAttributes,
        QpChange,
        QpInit,
        QpOperations,
        QpTarget,
        QpUpcall,
        SendChain, //
    },
    sys::time, //
};

/// Requests of a chain that are posted under one hold of the queue's lock, interrupts off.
const POSTED_AT_ONCE: u32 = 32;

/// The payload of a queue pair.
pub(crate) struct Qp {
    pub(super) engine: Arc<QueuePair>,
    /// Makes the connections of its device.
    pub(super) cm: Arc<ConnectionManager>,
    signal_all: bool,
    control: Pin<KBox<SpinLockIrq<Control>>>,
    /// Held during a change to another state, but for the error state.
    modifying: Pin<KBox<Mutex<()>>>,
}

/// State that changes seldom.
#[derive(Default)]
struct Control {
    access: AccessFlags,
    /// Reads that this side asks to serve at once, and to have outstanding at once; reported
    /// without a connection.
    inbound: u8,
    outbound: u8,
    /// The number of the connection that this side asked for last.
    pending: Option<NonZeroUsize>,
    /// A connection is being asked for, and has no number yet.
    is_connecting: bool,
    /// The queue pair is being destroyed.
    is_closed: bool,
}

impl QpEvents for QpUpcall {
    fn last_receive_reached(&self) {
        self.last_wqe_reached();
    }

    fn broken(&self) {
        self.fatal();
    }
}

/// The largest sizes of a queue pair.
const MAX_CAPS: QpCaps = QpCaps {
    send_wr: MAX_REQUESTS,
    recv_wr: MAX_REQUESTS,
    send_sge: MAX_SGES,
    recv_sge: MAX_SGES,
    read_sge: MAX_READ_SGES,
    inline_data: MAX_INLINE,
};

/// The sizes that a queue pair gets. `EINVAL` above the limits of the device.
fn granted(asked: QpCaps) -> Result<QpCaps> {
    if !asked.is_within(&MAX_CAPS) {
        return Err(EINVAL);
    }
    Ok(QpCaps {
        // A read may have as many elements as a send, up to a limit of its own.
        read_sge: asked.send_sge.min(MAX_READ_SGES),
        ..asked
    })
}

/// Narrows a read limit to the byte that the connection manager has for it.
pub(super) fn narrow(limit: u32) -> u8 {
    u8::try_from(limit).unwrap_or(u8::MAX)
}

impl Qp {
    /// The queue pair's device.
    pub(super) fn device(&self) -> &RdmaDevice {
        self.engine.device()
    }

    /// The connection request of this side, if there is no answer yet.
    pub(super) fn pending(&self) -> Option<Arc<ConnectRequest>> {
        let number = self.control.lock().pending?;
        self.cm.request(number)
    }

    /// Returns true in a state that the owner alone sets, to connect the queue pair: RTR, set by
    /// rdma_cm for a consumer in the kernel; INIT is enough for a program, which asks itself
    /// (librdmacm leaves the queue pair there on the side that connects).
    pub(super) fn is_ready(&self) -> bool {
        match self.engine.state() {
            QpState::Rtr => true,
            QpState::Init => !self.engine.params.domain.is_trusted(),
            _ => false,
        }
    }

    /// Begins a connection request of this side, one at a time. [`Qp::end_connect`] ends it.
    pub(super) fn begin_connect(&self) -> Result {
        if !self.is_ready() {
            return Err(EINVAL);
        }
        let mut control = self.control.lock();
        if control.is_connecting || control.is_closed {
            return Err(EINVAL);
        }
        control.is_connecting = true;
        drop(control);
        if self.pending().is_some() {
            self.end_connect(None);
            return Err(EINVAL);
        }
        Ok(())
    }

    /// Remembers the connection request, so that destroy can take it back. Returns false if destroy
    /// came first.
    pub(super) fn end_connect(&self, number: Option<NonZeroUsize>) -> bool {
        let mut control = self.control.lock();
        control.is_connecting = false;
        control.pending = number.or(control.pending);
        !control.is_closed
    }

    /// The rights of a peer after a change that asks for `access` and goes to `target`.
    fn peer_access(&self, access: AccessFlags, target: Option<QpTarget>) -> AccessFlags {
        match self.engine.params.domain.is_trusted() {
            true => access | AccessFlag::RemoteAtomic,
            false => {
                let leaves_reset = self.engine.state() == QpState::Reset
                    && target == Some(QpTarget::State(QpState::Init));
                program_access(access, leaves_reset)
            }
        }
    }

    /// Changes the state to `target`, if any. `EINVAL` if `target` does not follow the present
    /// state. May sleep, except for the error state.
    fn change_state(&self, target: Option<QpTarget>) -> Result {
        if target == Some(QpTarget::State(QpState::Err)) {
            return self.engine.modify(QpState::Err);
        }
        let _one_at_a_time = self.modifying.lock();
        match target {
            None => Ok(()),
            Some(QpTarget::Close) => self.engine.close_connection(),
            // The connection manager brings the queue pair to RTS: done already, or not possible
            // here.
            Some(QpTarget::State(QpState::Rts)) if self.engine.state() == QpState::Rts => Ok(()),
            Some(QpTarget::State(QpState::Rts)) => Err(EINVAL),
            Some(QpTarget::State(state)) => self.engine.modify(state),
        }
    }

    /// Posts up to [`POSTED_AT_ONCE`] requests of a chain; returns true at the end of the chain.
    fn post_some(&self, posting: &mut Posting<'_>, chain: &mut SendChain<'_>) -> Result<bool> {
        for _ in 0..POSTED_AT_ONCE {
            let Some(request) = chain.next()? else {
                return Ok(true);
            };
            let flags = flags(request.flags, self.signal_all);
            // A request without local memory ignores the list, as in other providers.
            let most = if request.op.is_local() { 0 } else { usize::MAX };
            let posted = posting.post(request.posted.take(most), request.op, flags);
            posted.map_err(errno)?;
        }
        Ok(false)
    }
}

impl QpOperations<Verbs> for Qp {
    /// Makes a queue pair; sizes above the device's limits are `EINVAL`.
    fn create(device: &Device<Verbs>, init: &QpInit<'_, Verbs>) -> Result<(Self, QpCaps)> {
        let caps = granted(init.caps)?;
        // The receives of a shared queue are in the memory of that queue.
        let shared = match init.srq {
            None => init.data.receives(caps.recv_wr, caps.recv_sge)?,
            Some(_) => None,
        };
        let params = QpParams {
            number: init.qpn,
            domain: (**init.pd).clone(),
            send_cq: (**init.send_cq).clone(),
            receive_cq: (**init.recv_cq).clone(),
            shared: init.srq.map(|srq| (**srq).clone()),
            events: KBox::new(init.upcall.clone(), GFP_KERNEL)?,
            qp_context: init.cookie.into_raw(),
            flush_on_disconnect: true,
        };
        let control = KBox::pin_init(new_spinlock_irq!(Control::default()), GFP_KERNEL)?;
        let modifying = KBox::pin_init(new_mutex!(()), GFP_KERNEL)?;
        // Last: only destroy takes the queue pair out of its shared receive queue.
        let engine = QueuePair::new(params, caps)?;
        if let Some(receives) = shared {
            let shared = engine.share_receives(ProgramReceives::new(receives));
            shared.inspect_err(|_| engine.destroy())?;
        }
        let caps = engine.caps;
        let qp = Self {
            engine,
            cm: device.cm.clone(),
            signal_all: init.signal_all,
            control,
            modifying,
        };
        Ok((qp, caps))
    }

    /// `ib_modify_qp` as the iWARP connection manager and `ib_drain_qp` use it. A refused change
    /// has no effect.
    fn modify(&self, change: &QpChange) -> Result {
        let reads = [change.max_rd_atomic, change.max_dest_rd_atomic];
        if reads.iter().flatten().any(|n| u32::from(*n) > MAX_READS) {
            return Err(EINVAL);
        }
        // Before the state changes: the present state decides, too.
        let access = change
            .access
            .map(|access| self.peer_access(access, change.state));
        self.change_state(change.state)?;
        let mut control = self.control.lock();
        if let Some(access) = access {
            self.engine.set_peer_rights(access);
            control.access = access;
        }
        control.outbound = change.max_rd_atomic.unwrap_or(control.outbound);
        control.inbound = change.max_dest_rd_atomic.unwrap_or(control.inbound);
        Ok(())
    }

    fn query(&self) -> QpAttributes {
        let state = match self.engine.state() {
            // RNICs have one state for RESET and INIT, and programs expect the name INIT.
            QpState::Reset if !self.engine.params.domain.is_trusted() => QpState::Init,
            state => state,
        };
        let agreed = self.engine.read_limits();
        let control = self.control.lock();
        QpAttributes {
            state,
            caps: self.engine.caps,
            access: control.access,
            max_rd_atomic: agreed.map_or(control.outbound, |limits| narrow(limits.outbound)),
            max_dest_rd_atomic: agreed.map_or(control.inbound, |limits| narrow(limits.inbound)),
            signal_all: self.signal_all,
        }
    }

    /// Describes the engine's queue pair, with times as milliseconds until now.
    fn describe(&self, details: &mut Details) -> Result {
        let now = self.engine.details();
        details.word(c"state", now.state.name())?;
        details.number(c"sq_posted", now.sends_posted.into())?;
        details.number(c"sq_outstanding", now.sends_outstanding.into())?;
        match &self.engine.params.shared {
            Some(shared) => details.number(c"srq_posted", shared.posted().into())?,
            None => details.number(c"rq_posted", now.receives_posted.into())?,
        }
        let Some(peer) = now.peer else {
            return Ok(());
        };
        details.number(c"peer_qpn", peer.number.into())?;
        let ago = |since_ms: u64| time::now_ms().saturating_sub(since_ms);
        if let Some(since_ms) = peer.own_wait_since_ms {
            details.number(c"waits_for_peer_receive_ms", ago(since_ms))?;
        }
        if let Some(since_ms) = peer.peer_wait_since_ms {
            details.number(c"peer_waits_for_receive_ms", ago(since_ms))?;
        }
        Ok(())
    }

    /// Ends the queue pair; the connection manager is notified before this returns.
    fn destroy(&self) {
        self.control.lock().is_closed = true;
        if let Some(pending) = self.pending() {
            pending.abandon();
        }
        self.engine.destroy();
    }

    /// Posts a chain; the requests before a failed request stay posted, and are started.
    fn post_send(&self, chain: &mut SendChain<'_>) -> Result {
        loop {
            let mut posting = self.engine.posting();
            let posted = self.post_some(&mut posting, chain);
            posting.ring_doorbell();
            if posted? {
                return Ok(());
            }
        }
    }

    fn post_recv(&self, chain: &mut RecvChain<'_>) -> Result {
        while let Some(request) = chain.next()? {
            self.engine.post_receive(request.posted).map_err(errno)?;
        }
        Ok(())
    }
}

/// The rights of a peer on the queue pair of a program that asks for `access`; a region's own
/// rights apply as well.
///
/// The iWARP connection manager asks for reads and writes and never for atomics, so atomics come
/// with both. For a program that connects it asks for no rights: the program's rights are settled
/// with the connection, and librdmacm does not ask again. So a queue pair that leaves RESET without
/// rights has all; rights that are asked for later hold.
fn program_access(access: AccessFlags, leaves_reset: bool) -> AccessFlags {
    let both = AccessFlag::RemoteRead | AccessFlag::RemoteWrite;
    let all = both | AccessFlag::RemoteAtomic;
    match access {
        _ if leaves_reset && !access.contains_any(all | AccessFlag::LocalWrite) => all,
        _ if access.contains_all(both) => access | all,
        _ => access,
    }
}

/// The flags of a request on a queue pair whose requests may all be signalled.
fn flags(asked: SendFlags, signal_all: bool) -> SendFlags {
    match signal_all {
        true => asked | SendFlag::Signaled,
        false => asked,
    }
}

/// Returns the errno of a refused post, for all queues of the verbs.
pub(super) fn errno(refused: PostError) -> Error {
    match refused {
        PostError::Full => ENOMEM,
        PostError::TooLong => EMSGSIZE,
        PostError::State
        | PostError::Invalid
        | PostError::TooManySges
        | PostError::InlineTooLong => EINVAL,
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_verbs_qp)]
mod tests {
    use super::*;

    use crate::{
        kunit::harness::cases,
        ndk::status::NtStatus, //
    };

    #[test]
    fn ndk_face_02_a_post_below_rts_is_einval_in_verbs_and_connection_invalid_in_ndk() {
        kunit_assert_eq!(errno(PostError::State), EINVAL);
        kunit_assert_eq!(
            NtStatus::from(PostError::State),
            NtStatus::CONNECTION_INVALID
        );
    }

    #[test]
    fn a_read_has_a_limit_of_elements_of_its_own() {
        let asked = QpCaps {
            send_sge: 1,
            ..QpCaps::NONE
        };
        kunit_assert_eq!(granted(asked).map(|caps| caps.read_sge), Ok(1));
        kunit_assert_eq!(granted(MAX_CAPS), Ok(MAX_CAPS));
        for caps in [
            QpCaps {
                send_wr: MAX_REQUESTS + 1,
                ..asked
            },
            QpCaps {
                recv_wr: MAX_REQUESTS + 1,
                ..asked
            },
            QpCaps {
                send_sge: MAX_SGES + 1,
                ..asked
            },
            QpCaps {
                recv_sge: MAX_SGES + 1,
                ..asked
            },
            QpCaps {
                inline_data: MAX_INLINE + 1,
                ..asked
            },
        ] {
            kunit_assert_eq!(granted(caps), Err(EINVAL));
        }
    }

    #[test]
    fn ndk_face_04_signalling_is_asked_for_in_verbs() {
        let none = SendFlags::empty();
        kunit_assert_eq!(flags(none, false), none);
        // Unless all requests of the queue pair are signalled.
        kunit_assert_eq!(flags(none, true), SendFlag::Signaled.into());
    }

    #[test]
    fn ndk_face_15_refusals_that_are_one_errno_are_distinguished_in_ndk() {
        let merged = [
            PostError::State,
            PostError::TooManySges,
            PostError::InlineTooLong,
        ];
        for (at, one) in cases(merged.into_iter().enumerate()) {
            kunit_assert_eq!(errno(one), EINVAL);
            for other in cases(merged.into_iter().skip(at + 1)) {
                assert!(NtStatus::from(one) != NtStatus::from(other));
            }
        }
        kunit_assert_eq!(errno(PostError::Full), ENOMEM);
        kunit_assert_eq!(NtStatus::from(PostError::Full), NtStatus::NO_MORE_ENTRIES);
    }

    #[test]
    fn nobody_asks_for_the_rights_of_a_program_that_connects() {
        let both = AccessFlag::RemoteRead | AccessFlag::RemoteWrite;
        let all = both | AccessFlag::RemoteAtomic;
        let none = AccessFlags::default();
        kunit_assert_eq!(program_access(none, true), all);
        // Rights that the connection manager asks for on the other side.
        kunit_assert_eq!(program_access(both, true), all);
        kunit_assert_eq!(program_access(both, false), all);
        // Rights that the program itself asks for hold.
        kunit_assert_eq!(program_access(none, false), none);
        for one in cases([AccessFlag::RemoteRead, AccessFlag::LocalWrite]) {
            let one = AccessFlags::from(one);
            kunit_assert_eq!(program_access(one, true), one);
            kunit_assert_eq!(program_access(one, false), one);
        }
    }
}
