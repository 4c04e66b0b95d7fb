// SPDX-License-Identifier: GPL-2.0

//! [`Flow`]: one direction of a connection on one host.
//!
//! The caller that raises `kicks` from zero runs the flow, in place or from the softirq work. Other
//! callers only raise it, and the runner looks again before it puts `kicks` back to zero. So no
//! kick is lost and no two CPUs run one flow.
//!
//! A request goes through these phases; after each the runner may stop and go on later:
//!
//! ```text
//! Idle -> Begin -> Receive (wait for one) -> Copy -> Revoke (wait for the last access) -> Begin
//!                                                                                    \-> Empty
//! ```
//!
//! A request that fits into one hold of the gates is executed in one step, if the receive that it
//! may need is posted.
//!
//! Context: [`Flow::run`] runs with softirqs off, in softirq, in the posting context or in a
//! thread; it never sleeps. Lock order: `exec` is the outermost lock of the engine's order.
//!
//! Tests: `direct/tests/volume.rs`.

use kernel::{
    impl_has_work,
    new_spinlock,
    new_work,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Full,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        SpinLock, //
    },
    workqueue::{
        Work as WorkStruct,
        WorkItem, //
    }, //
};

use super::injected::Injected;
use crate::{
    engine::{
        inject,
        memory::slot::DrainWaiter,
        prelude::*,
        qp::{
            Next,
            QueuePair, //
        },
        transport::ConnectionId,
        wq::{
            RecvWqe,
            SendWqe, //
        }, //
    },
    rdma::values::{
        completion::Wc,
        token::Token,
        work::SendWith, //
    },
    sys::{
        hrtimer::HrTimer,
        softirq::BhDisabled,
        timer::{
            Expires,
            Timer, //
        },
        trace, //
    }, //
};

/// Bytes that one run moves before it goes on in a thread: a tenth of a millisecond's copying on a
/// processor of today. With a quarter of this value a write of 1 MiB took a tenth longer.
const BYTES_PER_RUN: u64 = 1 << 20;

/// Bytes that are moved under one hold of the gates: an invalidation waits for no more.
pub(super) const BYTES_PER_HOLD: u64 = 256 << 10;

/// Requests that one run finishes before it goes on later.
const REQUESTS_PER_RUN: u32 = 64;

/// The phase of the present request.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// No request.
    Idle,
    /// No request, and the queue was just seen to have none that may begin.
    Empty,
    /// Started; no step has run.
    Begin,
    /// Needs a receive of the peer before it can go on with its bytes (a send) or end (a write with
    /// immediate data).
    Receive,
    /// Being copied; the bytes before this number are done.
    Copy(u64),
    /// The bytes have arrived; the request ends when the delay of a fault is over.
    LateEnd,
    /// The receive has completed; the request completes when the delay of a fault is over.
    Acknowledged,
    /// Ends when no access uses this token of the peer any more.
    RevokeRemote(Token),
    /// Ends when no access uses this token of its own side any more.
    RevokeLocal(Token),
}

impl Phase {
    /// Returns true if the request is cancelled when the connection goes.
    ///
    /// A request whose revocation has begun is not: a request that is reported as cancelled must
    /// not have revoked a token (SINV-13).
    const fn needs_connection(self) -> bool {
        match self {
            Self::Begin | Self::Receive | Self::Copy(_) | Self::LateEnd => true,
            // `Flow::acknowledged` checks the connection itself.
            Self::Idle
            | Self::Empty
            | Self::RevokeRemote(_)
            | Self::RevokeLocal(_)
            | Self::Acknowledged => false,
        }
    }
}

/// The reason for a pause of the runner.
pub(super) enum Pause {
    /// A kick will come: a post, a receive, a timer, the end of an access.
    Wait,
    /// Go on later: in a thread if the bytes of this run are used up, or a program has posted the
    /// next request, else from softirq work.
    Yield,
}

/// The next phase of the request, or a pause.
pub(super) type Step = Result<Phase, Pause>;

/// The state that only the runner touches.
pub(super) struct Exec {
    pub(super) phase: Phase,
    pub(super) wqe: SendWqe,
    pub(super) receive: RecvWqe,
    /// The receive is taken and not finished.
    pub(super) holds_receive: bool,
    /// The revocation at the end of the request found an access still running.
    pub(super) found_access: bool,
    /// The end of the wait for a receive, in milliseconds of monotonic time.
    pub(super) deadline: Option<u64>,
    pub(super) bytes_left: u64,
    pub(super) requests_left: u32,
    /// The effect of injected faults on the request.
    pub(super) injected: Injected,
    /// A timer was armed for the request.
    pub(super) is_timed: bool,
}

/// One direction of a connection.
#[pin_data]
pub(super) struct Flow {
    /// The connection: its queue pairs may have another one while this flow still runs.
    pub(super) connection: ConnectionId,
    /// The queue pair that posts the requests, and the queue pair that they go to.
    pub(super) from: Arc<QueuePair>,
    pub(super) to: Arc<QueuePair>,
    kicks: Atomic<u32>,
    /// The time since which the request has waited for a receive, in milliseconds of monotonic
    /// time; 0 if it does not wait.
    waits_since_ms: Atomic<u64>,
    #[pin]
    exec: SpinLock<Exec>,
    #[pin]
    work: WorkStruct<Self>,
    /// Lockdep takes a work item for a lock: each context has its own item.
    #[pin]
    in_thread: WorkStruct<Self, 1>,
    #[pin]
    pub(super) timer: Timer<Self>,
    /// Runs out when the flow is to look again: at memory in use, or when the delay of a fault is
    /// over.
    #[pin]
    delay: HrTimer<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Flow { self.work }
    impl HasWork<Self, 1> for Flow { self.in_thread }
}

impl Flow {
    /// May sleep.
    pub(super) fn new(
        connection: ConnectionId,
        from: Arc<QueuePair>,
        to: Arc<QueuePair>,
    ) -> Result<Arc<Self>> {
        let exec = Exec {
            phase: Phase::Idle,
            wqe: SendWqe::new(&from.caps)?,
            receive: RecvWqe::new(to.caps.recv_sge)?,
            holds_receive: false,
            found_access: false,
            deadline: None,
            bytes_left: 0,
            requests_left: 0,
            injected: Injected::default(),
            is_timed: false,
        };
        Arc::pin_init(
            pin_init!(Self {
                connection,
                from,
                to,
                kicks: Atomic::new(0),
                waits_since_ms: Atomic::new(0),
                exec <- new_spinlock!(exec),
                work <- new_work!("ndk_flow"),
                in_thread <- new_work!("ndk_flow_thread"),
                timer <- Timer::new(),
                delay <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Kicks the flow: runs it in place where that is allowed, else from softirq work.
    pub(super) fn kick_here(self: &Arc<Self>) {
        // First the guard: a task with the right to run must not be preempted.
        let softirqs_off = BhDisabled::enter();
        if self.kicks.fetch_add(1, Full) != 0 {
            return;
        }
        match softirqs_off {
            Some(_) => self.run(),
            None => self.defer(),
        }
    }

    /// Kicks the flow: runs it from softirq work.
    pub(super) fn kick(self: &Arc<Self>) {
        // Without the guard interrupts are off.
        let _softirqs_off = BhDisabled::enter();
        if self.kicks.fetch_add(1, Full) == 0 {
            self.defer();
        }
    }

    /// Hands the right to run over to the softirq work.
    fn defer(self: &Arc<Self>) {
        // The item is not queued now: only the holder of the right to run queues it.
        let _ = self
            .from
            .device()
            .host
            .softirqs
            .enqueue::<_, 0>(self.clone());
    }

    /// Hands the right to run over to a thread.
    fn defer_to_thread(self: &Arc<Self>) {
        let copies = self.from.device().host.copies(self.is_of_program());
        // As above.
        let _ = copies.enqueue::<_, 1>(self.clone());
    }

    /// Returns true if a program has posted the requests of this flow.
    pub(super) fn is_of_program(&self) -> bool {
        !self.from.params.domain.is_trusted()
    }

    /// Carries requests out until none is ready or the budget is spent.
    ///
    /// The caller has raised `kicks` from zero, or was handed the right to run.
    fn run(self: &Arc<Self>) {
        let mut exec = self.exec.lock();
        let share = self.from.device().host.softirq_bytes.share();
        let bytes = share.left().min(BYTES_PER_RUN);
        exec.bytes_left = bytes;
        exec.requests_left = REQUESTS_PER_RUN;
        self.from.device().count(Counter::Passes, 1);
        let in_thread = loop {
            let seen = self.kicks.load(Acquire);
            match self.advance(&mut exec) {
                Pause::Wait if self.kicks.cmpxchg(seen, 0, Full).is_ok() => break None,
                Pause::Wait => continue,
                // A processor has one list for the softirq work of the whole kernel, which the
                // flows of programs would fill.
                Pause::Yield => break Some(exec.bytes_left == 0 || self.is_of_program()),
            }
        };
        share.end(bytes - exec.bytes_left);
        drop(exec);
        let Some(in_thread) = in_thread else {
            return;
        };
        // The next run looks after the kicks that came since; the number must not grow for ever.
        self.kicks.store(1, Release);
        match in_thread {
            true => self.defer_to_thread(),
            false => self.defer(),
        }
    }

    /// Steps until the runner has to pause.
    ///
    /// A connection that went during the pause is noticed here. A connection that goes later in the
    /// run is noticed where a request is started, a receive is taken, and memory of the peer is
    /// entered; a request that is past that ends as if the connection had gone a moment later.
    fn advance(self: &Arc<Self>, exec: &mut Exec) -> Pause {
        if exec.phase.needs_connection() && !self.is_up() {
            exec.phase = self.end(exec, Status::Flushed, Status::Flushed);
        }
        loop {
            match self.step(exec) {
                Ok(phase) => exec.phase = phase,
                Err(pause) => return pause,
            }
        }
    }

    fn step(self: &Arc<Self>, exec: &mut Exec) -> Step {
        match exec.phase {
            Phase::Idle => self.next(exec),
            Phase::Empty => {
                exec.phase = Phase::Idle;
                Err(Pause::Wait)
            }
            Phase::Begin => self.begin(exec),
            Phase::Receive => self.take_receive(exec),
            Phase::Copy(at) => self.copy(exec, at),
            Phase::LateEnd => self.late_end(exec),
            Phase::Acknowledged => self.acknowledged(exec),
            Phase::RevokeRemote(token) => self.revoked(exec, &self.to, token),
            Phase::RevokeLocal(token) => self.revoked(exec, &self.from, token),
        }
    }

    /// Returns true if both ends have this flow's connection.
    ///
    /// The answer is of a moment ago: the connection is checked again where a request is started, a
    /// receive taken, and memory of the peer entered.
    pub(super) fn is_up(&self) -> bool {
        self.from.is_connected_by(self.connection) && self.to.is_connected_by(self.connection)
    }

    fn next(&self, exec: &mut Exec) -> Step {
        if exec.requests_left == 0 {
            self.from.device().count(Counter::BudgetSpent, 1);
            return Err(Pause::Yield);
        }
        if !self.is_up() {
            // One end is not connected yet, and rings when it is; or the connection is gone, and
            // the flush that the last request held back can go on.
            self.to.reap();
            return Err(Pause::Wait);
        }
        match self.from.start(self.connection, &mut exec.wqe) {
            Next::Nothing => Err(Pause::Wait),
            Next::Ready => {
                exec.requests_left -= 1;
                Ok(Phase::Begin)
            }
        }
    }

    /// Ends the request, and the receive that it took, if any, with a status each.
    pub(super) fn end(
        self: &Arc<Self>,
        exec: &mut Exec,
        request: Status,
        receive: Status,
    ) -> Phase {
        if core::mem::take(&mut exec.is_timed) {
            self.disarm(exec);
        }
        exec.found_access = false;
        if core::mem::take(&mut exec.holds_receive) {
            let completion = match receive {
                Status::Success => exec.receive_completion(),
                status => Wc {
                    status,
                    with: SendWith::Nothing,
                    ..exec.receive_completion()
                },
            };
            self.to.finish_receive(&mut exec.receive, completion);
        }
        if inject::is_on() {
            if let Some(phase) = self.end_as_injected(exec, request) {
                return phase;
            }
        }
        if !request.is_success() || exec.requests_left == 0 || !self.is_up() {
            return self.complete(exec, request);
        }
        let next = self.from.complete_and_start(self.connection, &mut exec.wqe);
        self.to.reap();
        match next {
            Next::Nothing => Phase::Empty,
            Next::Ready => {
                exec.requests_left -= 1;
                Phase::Begin
            }
        }
    }

    /// Ends the request, and begins no other.
    pub(super) fn complete(&self, exec: &mut Exec, request: Status) -> Phase {
        self.from.complete(&mut exec.wqe, request);
        self.to.reap();
        Phase::Idle
    }

    /// Has the flow look at the request again in `ns` nanoseconds at the latest. The end of the
    /// request disarms the timer.
    pub(super) fn look_again_in(self: &Arc<Self>, exec: &mut Exec, ns: u64) {
        exec.is_timed = true;
        self.delay.arm(self, ns);
    }

    /// Notes that a wait for a receive begins.
    pub(super) fn begin_rnr_wait(&self, now_ms: u64) {
        self.from.device().count(Counter::RnrWaits, 1);
        self.waits_since_ms.store(now_ms, Relaxed);
        trace::event!(rnr_wait, {
            let (number, peer) = (self.from.params.number, self.to.params.number);
            (self.from.device().name(), number, peer)
        });
    }

    /// Disarms the timers of a request that is over: an armed timer holds the flow and the module.
    #[cold]
    fn disarm(&self, exec: &mut Exec) {
        self.cancel_rnr_timer(exec);
        self.delay.cancel();
    }

    /// Ends the wait for a receive, if the request has one: forgets its deadline, and disarms its
    /// timer. A callback that runs already may still kick the flow.
    pub(super) fn cancel_rnr_timer(&self, exec: &mut Exec) {
        if exec.deadline.take().is_some() {
            self.timer.cancel();
            self.waits_since_ms.store(0, Relaxed);
        }
    }

    /// The time since which the request has waited for a receive, in milliseconds of monotonic
    /// time. Any context.
    pub(super) fn waits_since_ms(&self) -> Option<u64> {
        Some(self.waits_since_ms.load(Relaxed)).filter(|since| *since > 0)
    }
}

impl WorkItem for Flow {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        Flow::run(&this);
    }
}

impl WorkItem<1> for Flow {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // A run is short, and is not preempted while it holds `exec`.
        let _softirqs_off = BhDisabled::enter();
        Flow::run(&this);
    }
}

impl Expires for Flow {
    fn expired(this: Arc<Self>) {
        this.kick();
    }
}

impl DrainWaiter for Flow {
    fn drained(self: Arc<Self>) {
        self.kick();
    }
}
