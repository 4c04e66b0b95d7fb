// SPDX-License-Identifier: GPL-2.0

//! [`QueuePair`]: two queues, a state, and the link to the peer.
//!
//! - A consumer posts; the request waits in its queue, and the transport is notified ([`Posting`]).
//! - The transport starts requests in order and completes each exactly once; at the peer it takes
//!   a receive, fills it and finishes it.
//! - The first failure, a disconnect or the consumer's own wish moves the queue pair to the error
//!   state ([`QueuePair::fail`]): requests not started and receives not taken are flushed, the
//!   transport ends the others, and the owner of the connection is notified once. A disconnect by
//!   the peer leads to `Lost` instead, unless [`QpParams::flush_on_disconnect`] is set.
//!
//! Lock order: `rq`, then the shared queue's lock, then the completion queue's or `link`; `link`,
//! then `sq`, then the completion queue's or the one of a region. `sq` and `rq` are never held
//! together, and neither is held while the `sq` or `rq` of another queue pair is taken; a shared
//! queue's lock may be followed by the `link` of any queue pair that uses it.
//!
//! Context: any, but for making and [`QueuePair::destroy`].

mod details;
mod life;
pub(crate) mod local;
mod post;
mod receive;
mod send;
#[cfg(ndk_kunit)]
mod tests;

use kernel::{
    fmt,
    new_work,
    sync::atomic::{
        ordering::{
            Acquire,
            Relaxed, //
        },
        Atomic,
        AtomicFlag, //
    },
    workqueue::Work, //
};

#[cfg(ndk_kunit)]
pub(crate) use details::QpDetails;
pub(crate) use post::Posting;
pub(crate) use receive::Taken;
pub(crate) use send::Next;

use self::{
    receive::ReceiveQueue,
    send::SendQueue, //
};
use super::{
    cq::CompletionQueue,
    device::{
        Quota,
        Share, //
    },
    domain::Domain,
    inject::{
        Counts,
        Fault,
        Hit,
        Site,
        SiteKind, //
    },
    memory::{
        slot::QpId,
        transfer::MemoryUsage,
        User, //
    },
    notifier::{
        notifies,
        Notifier,
        Notifies, //
    },
    prelude::*,
    srq::{
        SharedReceive,
        WaitPlace,
        Waiter, //
    },
    transport::Link, //
};
use crate::{
    rdma::values::qp::{
        QpCaps,
        QpState, //
    },
    sys::{
        event::Event,
        gate::Gate,
        hrtimer::HrTimer,
        log::{
            self,
            Limit, //
        }, //
    }, //
};

const LAST_RECEIVE: u32 = 1;
const BROKEN: u32 = 2;
const REAP: u32 = 4;

/// The events of a queue pair, for its face. Called in softirq, one call at a time, under no lock.
pub(crate) trait QpEvents: Send + Sync {
    /// The queue pair takes no more receives from its shared queue.
    fn last_receive_reached(&self);
    /// A completion queue of the queue pair broke, and the queue pair with it.
    fn broken(&self);
}

/// The parameters of a new queue pair.
pub(crate) struct QpParams {
    pub(crate) domain: Arc<Domain>,
    pub(crate) send_cq: Arc<CompletionQueue>,
    pub(crate) receive_cq: Arc<CompletionQueue>,
    pub(crate) shared: Option<Arc<SharedReceive>>,
    pub(crate) events: KBox<dyn QpEvents>,
    /// The face's name for the queue pair; stands in each completion.
    pub(crate) qp_context: usize,
    /// True if posted work is cancelled when the peer goes (verbs), false if only from this side
    /// (NDKPI).
    pub(crate) flush_on_disconnect: bool,
    /// The number that names the queue pair on this host, among all of its devices.
    pub(crate) number: u32,
}

/// A queue pair.
#[pin_data]
pub(crate) struct QueuePair {
    #[pin]
    notifier: Notifier,
    #[pin]
    work: Work<Self>,
    /// The parameters that the queue pair was made with.
    pub(crate) params: QpParams,
    /// The sizes that the queue pair was made with.
    pub(crate) caps: QpCaps,
    /// Names the queue pair in windows that are bound for its peer: unlike `number`, not reused.
    id: QpId,
    share: Share,
    /// The place among the queue pairs that wait at the shared queue.
    wait_place: WaitPlace,
    state: Atomic<u32>,
    /// The number of the connection while there is one, else 0. Changed under the lock of `link`.
    connection: Atomic<u64>,
    /// The most that the peer may do through this queue pair.
    peer_rights: Atomic<u32>,
    /// The number of resets; changes under the lock of `link`.
    resets: Atomic<u32>,
    /// A completion queue took no entry since the last reset; changes under the lock of `link`.
    broken: AtomicFlag,
    /// The peer of the latest connection is a program's.
    has_program_peer: AtomicFlag,
    /// For each fault of the device, the number of sites of this queue pair that it has met.
    site_counts: Counts,
    /// Open while connected; the peer's accesses to memory enter through this gate.
    inbound: Gate<()>,
    #[pin]
    sq: SpinLockIrq<SendQueue>,
    #[pin]
    rq: SpinLockIrq<ReceiveQueue>,
    #[pin]
    link: SpinLockIrq<Option<Link>>,
    /// Armed under the lock of `rq`, while a program's receives are looked for.
    #[pin]
    timer: HrTimer<QueuePair>,
    /// Signalled by every reap in the error state; [`QueuePair::destroy`] waits for it.
    #[pin]
    reaped: Event,
}

impl QueuePair {
    /// A queue pair in the state `Reset`; [`QueuePair::destroy`] ends it. May sleep. `ENOMEM` when
    /// there is no memory, or the device or programs have too many queue pairs.
    pub(crate) fn new(params: QpParams, mut caps: QpCaps) -> Result<Arc<Self>> {
        params.domain.device().may_make(SiteKind::QueuePair)?;
        let share = params.domain.share(Quota::QueuePairs)?;
        if let Some(shared) = &params.shared {
            caps.recv_wr = 0;
            caps.recv_sge = shared.max_sge;
        }
        let own_sges = if params.shared.is_some() {
            0
        } else {
            caps.recv_sge
        };
        let gfp = params.domain.gfp();
        let sends = SendQueue::new(&caps, gfp)?;
        let receives = ReceiveQueue::new(caps.recv_wr, own_sges, gfp)?;
        let id = params.domain.device().host.next_qp_id();
        let qp = Arc::pin_init(
            pin_init!(Self {
                notifier <- Notifier::new(),
                work <- new_work!("ndk_notify"),
                id,
                params,
                caps,
                share,
                wait_place: WaitPlace::new(),
                state: Atomic::new(QpState::Reset.number()),
                connection: Atomic::new(0),
                peer_rights: Atomic::new(0),
                resets: Atomic::new(0),
                broken: AtomicFlag::new(false),
                has_program_peer: AtomicFlag::new(false),
                site_counts: Counts::new(),
                inbound: Gate::new(()),
                sq <- new_spinlock_irq!(sends),
                rq <- new_spinlock_irq!(receives),
                link <- new_spinlock_irq!(None),
                timer <- HrTimer::new(),
                reaped <- Event::new(),
            }),
            GFP_KERNEL,
        )?;
        if let Some(shared) = &qp.params.shared {
            shared.add_user()?;
        }
        Ok(qp)
    }

    /// The device of the queue pair.
    pub(crate) fn device(&self) -> &RdmaDevice {
        self.params.domain.device()
    }

    /// The user in checks of local tokens.
    pub(crate) fn local_user(&self) -> User {
        User {
            domain: self.params.domain.id(),
            qp: None,
        }
    }

    /// The user in checks of tokens that the peer named.
    pub(crate) fn peer_user(&self) -> User {
        User {
            domain: self.params.domain.id(),
            qp: Some(self.id),
        }
    }

    /// This side's use of its own memory.
    #[inline]
    pub(crate) fn local_usage(&self, wanted: impl Into<AccessFlags>) -> MemoryUsage<'_> {
        MemoryUsage {
            device: self.device(),
            user: self.local_user(),
            is_trusted: self.params.domain.is_trusted(),
            wanted: wanted.into(),
        }
    }

    /// The peer's use of this side's memory.
    #[inline]
    pub(crate) fn peer_usage(&self, wanted: impl Into<AccessFlags>) -> MemoryUsage<'_> {
        MemoryUsage {
            user: self.peer_user(),
            ..self.local_usage(wanted)
        }
    }

    /// The present state; it may change at any time.
    #[inline]
    pub(crate) fn state(&self) -> QpState {
        QpState::from_number(self.state.load(Acquire))
    }

    /// Returns true if the peer may do `wanted` through this queue pair at all.
    pub(crate) fn peer_may(&self, wanted: AccessFlag) -> bool {
        AccessFlags::from_bits(self.peer_rights.load(Relaxed)).contains(wanted)
    }

    /// Sets the most that the peer may do through this queue pair.
    pub(crate) fn set_peer_rights(&self, rights: impl Into<AccessFlags>) {
        let rights = rights.into().remote();
        self.peer_rights.store(rights.bits(), Relaxed);
    }

    /// Fails the queue pair, which cannot report any more: a completion queue took no entry. No
    /// effect if there was a reset since `resets` was read.
    fn break_down(self: &Arc<Self>, resets: u32) {
        let breaks = |_: Option<&Link>| {
            let breaks = self.resets() == resets && !self.broken.xchg(true, Relaxed);
            if breaks {
                // Under the lock of `link`: the next connection does not get the event.
                self.raise(BROKEN);
            }
            breaks
        };
        if self.fail_if(false, breaks) {
            self.warn_failed("completion queue", Status::Fatal);
        }
    }

    /// Warns in the kernel log that `what` failed, unless it was only cancelled.
    fn warn_failed(&self, what: &str, status: Status) {
        if !matches!(status, Status::Success | Status::Flushed) {
            self.warn(fmt!("{what}: {}", status.text()));
        }
    }

    /// Warns in the kernel log about the queue pair. Any context.
    pub(super) fn warn(&self, what: fmt::Arguments<'_>) {
        if log::allowed(self.log_limit()) {
            let (device, number) = (self.device().name(), self.params.number);
            pr_warn!("{}: qp {}: {}\n", device, number, what);
        }
    }

    /// Returns the hit of `fault`, if there is one, on the next step of the queue pair, of `size`
    /// bytes. Any context.
    #[cold]
    pub(crate) fn inject(&self, fault: Fault, what: SiteKind, size: u64) -> Option<Hit> {
        let site = Site {
            what,
            qp: Some((self.params.number, &self.site_counts)),
            size,
        };
        self.device().inject(fault, &site, self.log_limit())
    }

    /// The limit of the messages about this queue pair. Any context.
    pub(super) fn log_limit(&self) -> Limit {
        let is_of_program = !self.params.domain.is_trusted();
        match (is_of_program, self.has_program_peer.load(Relaxed)) {
            (true, _) => Limit::Program,
            (false, true) => Limit::PeerOfProgram,
            (false, false) => Limit::Kernel,
        }
    }
}

impl Waiter for QueuePair {
    fn place(&self) -> &WaitPlace {
        &self.wait_place
    }

    /// Notifies the transport that a waiting message may find a receive now.
    fn receive_arrived(&self) {
        if let Some(link) = self.link.lock().as_ref() {
            link.transport.receive_posted(link.end);
        }
    }
}

notifies!(QueuePair);

impl Notifies for QueuePair {
    fn device(&self) -> &RdmaDevice {
        self.params.domain.device()
    }

    fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    fn call(this: &Arc<QueuePair>, events: u32) {
        if events & REAP != 0 {
            this.retire_sends();
            this.reap();
        }
        if events & BROKEN != 0 {
            this.params.events.broken();
        }
        if events & LAST_RECEIVE != 0 {
            this.params.events.last_receive_reached();
        }
    }
}
