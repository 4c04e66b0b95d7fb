// SPDX-License-Identifier: GPL-2.0

//! [`Flow`]: one direction of a connection on one host.
//!
//! Who runs a flow is decided by `kicks`: whoever raises it from zero runs it, in place or from
//! the softirq work; everybody else has only raised it, and the runner looks again before it puts
//! it back to zero. So no kick is lost and no two CPUs run one flow.
//!
//! A request goes through these phases; after each the runner may stop and go on later:
//!
//! ```text
//! Idle -> Receive (wait for one) -> Copy -> Revoke (wait for the last access) -> Idle
//! ```
//!
//! Context: [`Flow::run`] runs with softirqs off, in softirq or in the posting context; it never
//! sleeps. Lock order: `exec` is the outermost lock of the engine's order.

use kernel::impl_has_work;
use kernel::new_spinlock;
use kernel::new_work;
use kernel::prelude::*;
use kernel::sync::atomic::ordering::Acquire;
use kernel::sync::atomic::ordering::Full;
use kernel::sync::atomic::Atomic;
use kernel::sync::Arc;
use kernel::sync::SpinLock;
use kernel::workqueue::Work as WorkStruct;
use kernel::workqueue::WorkItem;

use crate::engine::counters::Counter;
use crate::engine::local;
use crate::engine::local::Local;
use crate::engine::memory::Denied;
use crate::engine::qp::Arrival;
use crate::engine::qp::Job;
use crate::engine::qp::Next;
use crate::engine::qp::QueuePair;
use crate::engine::qp::Receive;
use crate::engine::qp::Taken;
use crate::engine::rights::Rights;
use crate::engine::state::State;
use crate::engine::status::Status;
use crate::engine::token::Token;
use crate::engine::transfer;
use crate::engine::transfer::Fault;
use crate::engine::transfer::Place;
use crate::engine::work::Extra;
use crate::engine::work::Flags;
use crate::engine::work::Operation;
use crate::engine::work::Remote;
use crate::engine::work::Work;
use crate::sys::gate::Entered;
use crate::sys::softirq::BhDisabled;
use crate::sys::time;
use crate::sys::timer::Expires;
use crate::sys::timer::Timer;

/// Bytes that one run moves before it goes on from softirq work.
const BYTES_PER_RUN: u64 = 256 << 10;

/// Requests that one run finishes before it goes on from softirq work.
const REQUESTS_PER_RUN: u32 = 64;

/// Where the present request is.
#[derive(Clone, Copy)]
enum Phase {
    /// There is none.
    Idle,
    /// It was started and looked at by nobody.
    Begin,
    /// It needs a receive of the peer before it can go on with its bytes (a send) or end (a write
    /// with immediate data).
    Receive,
    /// Its bytes are being copied; those before this number are done.
    Copy(u64),
    /// Its bytes are there; what it asks for at the end comes now.
    Finish,
    /// It ends when nothing uses this token of the peer any more.
    RevokeRemote(Token),
    /// It ends when nothing uses this token of its own side any more.
    RevokeLocal(Token),
}

impl Phase {
    /// Whether the request is cancelled when the connection goes.
    ///
    /// One whose revocation has begun is not: nothing that is reported as cancelled may have
    /// revoked anything (SINV-13).
    const fn needs_connection(self) -> bool {
        match self {
            Self::Begin | Self::Receive | Self::Copy(_) | Self::Finish => true,
            Self::Idle | Self::RevokeRemote(_) | Self::RevokeLocal(_) => false,
        }
    }
}

/// Why the runner pauses.
enum Pause {
    /// A kick will come: a post, a receive, a timer.
    Wait,
    /// Go on from softirq work.
    Yield,
}

/// What a step did to the request.
type Step = Result<Phase, Pause>;

/// What only the runner touches.
struct Exec {
    phase: Phase,
    job: Job,
    receive: Receive,
    /// The receive is taken and not finished.
    taken: bool,
    /// When the wait for a receive ends, in milliseconds of monotonic time.
    deadline: Option<u64>,
    bytes_left: u64,
    requests_left: u32,
}

/// One direction of a connection.
#[pin_data]
pub(super) struct Flow {
    from: Arc<QueuePair>,
    to: Arc<QueuePair>,
    kicks: Atomic<u32>,
    #[pin]
    exec: SpinLock<Exec>,
    #[pin]
    work: WorkStruct<Self>,
    #[pin]
    timer: Timer<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Flow { self.work }
}

impl Flow {
    /// May sleep.
    pub(super) fn new(from: Arc<QueuePair>, to: Arc<QueuePair>) -> Result<Arc<Self>> {
        let exec = Exec {
            phase: Phase::Idle,
            job: Job::new(from.caps())?,
            receive: Receive::new(to.caps().receive_sges)?,
            taken: false,
            deadline: None,
            bytes_left: 0,
            requests_left: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                from,
                to,
                kicks: Atomic::new(0),
                exec <- new_spinlock!(exec),
                work <- new_work!("ndk_flow"),
                timer <- Timer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The queue pair whose requests this flow carries.
    pub(super) fn source(&self) -> &Arc<QueuePair> {
        &self.from
    }

    /// There is something to do: do it in place where that is allowed, else from softirq work.
    pub(super) fn kick_here(self: &Arc<Self>) {
        if self.kicks.fetch_add(1, Full) != 0 {
            return;
        }
        match BhDisabled::enter() {
            Some(_softirqs_off) => self.run(),
            None => self.defer(),
        }
    }

    /// There is something to do, from softirq work.
    pub(super) fn kick(self: &Arc<Self>) {
        if self.kicks.fetch_add(1, Full) == 0 {
            self.defer();
        }
    }

    /// Hands the right to run over to the softirq work.
    fn defer(self: &Arc<Self>) {
        // The item is not queued now: only the one who may run queues it.
        let _ = self.from.adapter().softirqs().enqueue(self.clone());
    }

    /// Carries requests out until there is nothing to do or the budget is spent.
    ///
    /// The caller has raised `kicks` from zero, or got that right from somebody who had.
    fn run(self: &Arc<Self>) {
        let mut exec = self.exec.lock();
        exec.bytes_left = BYTES_PER_RUN;
        exec.requests_left = REQUESTS_PER_RUN;
        loop {
            let seen = self.kicks.load(Acquire);
            match self.advance(&mut exec) {
                Pause::Wait if self.kicks.cmpxchg(seen, 0, Full).is_ok() => return,
                Pause::Wait => continue,
                Pause::Yield => break,
            }
        }
        drop(exec);
        self.defer();
    }

    /// Steps until the runner has to pause.
    fn advance(self: &Arc<Self>, exec: &mut Exec) -> Pause {
        loop {
            match self.step(exec) {
                Ok(phase) => exec.phase = phase,
                Err(pause) => return pause,
            }
        }
    }

    fn step(self: &Arc<Self>, exec: &mut Exec) -> Step {
        if exec.phase.needs_connection() && !self.is_up() {
            return Ok(self.end(exec, Status::Flushed, Status::Flushed));
        }
        match exec.phase {
            Phase::Idle => self.next(exec),
            Phase::Begin => self.begin(exec),
            Phase::Receive => self.take_receive(exec),
            Phase::Copy(at) => self.copy(exec, at),
            Phase::Finish => self.finish(exec),
            Phase::RevokeRemote(token) => self.revoke_remote(exec, token),
            Phase::RevokeLocal(token) => self.revoke_local(exec, token),
        }
    }

    fn is_up(&self) -> bool {
        self.from.state() == State::Connected && self.to.state() == State::Connected
    }

    fn next(&self, exec: &mut Exec) -> Step {
        if exec.requests_left == 0 {
            self.from.adapter().count(Counter::BudgetSpent, 1);
            return Err(Pause::Yield);
        }
        match self.from.start(&mut exec.job) {
            Next::Nothing => Err(Pause::Wait),
            Next::Ready => {
                exec.requests_left -= 1;
                Ok(Phase::Begin)
            }
        }
    }

    /// Ends the request, and the receive that it took, if any, with a status each.
    fn end(self: &Arc<Self>, exec: &mut Exec, request: Status, receive: Status) -> Phase {
        self.end_wait(exec);
        if core::mem::take(&mut exec.taken) {
            let arrival = Arrival {
                status: receive,
                ..exec.arrival()
            };
            self.to.finish_receive(&exec.receive, arrival);
        }
        self.from.complete(exec.job.seq, request, exec.job.length);
        self.to.settle();
        Phase::Idle
    }

    fn end_wait(&self, exec: &mut Exec) {
        if exec.deadline.take().is_some() {
            self.timer.cancel();
        }
    }

    /// Checks a new request against everything that can be known now.
    fn begin(self: &Arc<Self>, exec: &mut Exec) -> Step {
        if exec.job.forbidden {
            return Ok(self.refuse(exec, Status::LocalOperation));
        }
        match local::execute(&self.from, &exec.job.work) {
            Local::Done(status) => return Ok(self.end(exec, status, Status::Flushed)),
            Local::Draining(token) => return Ok(Phase::RevokeLocal(token)),
            Local::Again => return Err(Pause::Yield),
            Local::NotLocal => (),
        }
        let len = u64::from(exec.job.length);
        if self.local(&exec.job).check(len).is_err() {
            return Ok(self.refuse(exec, Status::LocalAccess));
        }
        Ok(match exec.job.work {
            Work::Send { .. } => Phase::Receive,
            Work::FetchAdd { at, .. } | Work::CompareSwap { at, .. } => self.atomic(exec, at),
            _ => Phase::Copy(0),
        })
    }

    /// Ends the request as failed on its own side's account; the peer's receive is flushed.
    fn refuse(self: &Arc<Self>, exec: &mut Exec, status: Status) -> Phase {
        self.end(exec, status, Status::Flushed)
    }

    /// The gather or scatter list of the request, or its inline bytes.
    fn local<'a>(&'a self, job: &'a Job) -> Place<'a> {
        if job.flags.has(Flags::INLINE) {
            return Place::Inline(&job.inline);
        }
        Place::List {
            adapter: self.from.adapter(),
            user: self.from.local_user(),
            wanted: if job.work.is_outbound() {
                Rights::NONE
            } else {
                Rights::LOCAL_WRITE
            },
            sges: &job.sges,
        }
    }

    /// Memory of the peer that the request names.
    fn remote(&self, at: Remote, wanted: Rights, len: u64) -> Place<'_> {
        Place::Named {
            adapter: self.to.adapter(),
            user: self.to.peer_user(),
            wanted,
            at,
            len,
        }
    }

    /// The receive that the request took.
    fn received<'a>(&'a self, receive: &'a Receive) -> Place<'a> {
        Place::List {
            adapter: self.to.adapter(),
            user: self.to.local_user(),
            wanted: Rights::LOCAL_WRITE,
            sges: &receive.sges,
        }
    }

    fn take_receive(self: &Arc<Self>, exec: &mut Exec) -> Step {
        match self.to.take_receive(&mut exec.receive) {
            Taken::Ready => (),
            Taken::Closed => return Ok(self.refuse(exec, Status::Flushed)),
            Taken::Empty => return self.wait_for_receive(exec),
        }
        self.end_wait(exec);
        exec.taken = true;
        if !matches!(exec.job.work, Work::Send { .. }) {
            return Ok(Phase::Finish);
        }
        let len = u64::from(exec.job.length);
        let place = self.received(&exec.receive);
        if place.len() < len {
            return Ok(self.end(exec, Status::RemoteInvalidRequest, Status::ReceiveLength));
        }
        if place.check(len).is_err() {
            return Ok(self.end(exec, Status::RemoteOperation, Status::LocalAccess));
        }
        Ok(Phase::Copy(0))
    }

    /// No receive is there: its post kicks this flow, or the timer does.
    fn wait_for_receive(self: &Arc<Self>, exec: &mut Exec) -> Step {
        let now = time::now_ms();
        let timeout = self.from.adapter().rnr_timeout_ms();
        let deadline = match exec.deadline {
            Some(deadline) => deadline,
            None => {
                self.from.adapter().count(Counter::RnrWaits, 1);
                now.saturating_add(u64::from(timeout))
            }
        };
        exec.deadline = Some(deadline);
        if now >= deadline {
            self.from.adapter().count(Counter::RnrTimeouts, 1);
            return Ok(self.refuse(exec, Status::ReceiverNotReady));
        }
        let left = u32::try_from(deadline - now).unwrap_or(timeout);
        self.timer.arm(self, left.saturating_add(1));
        Err(Pause::Wait)
    }

    fn copy(self: &Arc<Self>, exec: &mut Exec, at: u64) -> Step {
        let len = u64::from(exec.job.length);
        if at >= len {
            return Ok(match exec.job.work {
                Work::Write {
                    immediate: Some(_), ..
                } => Phase::Receive,
                _ => Phase::Finish,
            });
        }
        if exec.bytes_left == 0 {
            self.from.adapter().count(Counter::BudgetSpent, 1);
            return Err(Pause::Yield);
        }
        let until = len.min(at.saturating_add(exec.bytes_left));
        match self.copy_part(exec, at, until) {
            Ok(done) => {
                exec.bytes_left -= done - at;
                Ok(Phase::Copy(done))
            }
            Err(fault) => Ok(self.end_fault(exec, fault)),
        }
    }

    fn copy_part(&self, exec: &Exec, at: u64, until: u64) -> Result<u64, Fault> {
        let len = u64::from(exec.job.length);
        let local = self.local(&exec.job);
        match exec.job.work {
            Work::Write { to, .. } => {
                let sink = self.remote(to, Rights::REMOTE_WRITE, len);
                let _inside = self.enter(Rights::REMOTE_WRITE).map_err(Fault::Sink)?;
                transfer::copy(&local, &sink, at, until)
            }
            Work::Read { from, .. } => {
                let source = self.remote(from, Rights::REMOTE_READ, len);
                let _inside = self.enter(Rights::REMOTE_READ).map_err(Fault::Source)?;
                transfer::copy(&source, &local, at, until)
            }
            _ => transfer::copy(&local, &self.received(&exec.receive), at, until),
        }
    }

    /// Goes in through the peer's queue pair, if that lets this side do `wanted` at all.
    fn enter(&self, wanted: Rights) -> Result<Entered<'_, ()>, Denied> {
        if !self.to.peer_may(wanted) {
            return Err(Denied::Rights);
        }
        self.to.admit_peer().ok_or(Denied::Token)
    }

    /// Ends a request whose bytes could not be moved.
    fn end_fault(self: &Arc<Self>, exec: &mut Exec, fault: Fault) -> Phase {
        if !self.is_up() {
            return self.refuse(exec, Status::Flushed);
        }
        let local_is_source = exec.job.work.is_outbound();
        let local_fault = matches!(fault, Fault::Source(_)) == local_is_source;
        if local_fault {
            return self.refuse(exec, Status::LocalAccess);
        }
        if exec.taken {
            return self.end(exec, Status::RemoteOperation, Status::LocalAccess);
        }
        self.to.adapter().count(Counter::AccessRefused, 1);
        self.refuse(exec, Status::RemoteAccess)
    }

    /// Executes an RDMA atomic and puts the old value where the request wants it.
    fn atomic(self: &Arc<Self>, exec: &mut Exec, at: Remote) -> Phase {
        if exec.job.length != 8 {
            return self.refuse(exec, Status::LocalLength);
        }
        let place = self.remote(at, Rights::REMOTE_ATOMIC, 8);
        let old = self.enter(Rights::REMOTE_ATOMIC).and_then(|_inside| {
            transfer::atomic(&place, |word| match exec.job.work {
                Work::FetchAdd { add, .. } => word.fetch_add(add),
                Work::CompareSwap { compare, swap, .. } => word.compare_swap(compare, swap),
                _ => None,
            })
        });
        let old = match old {
            Ok(Some(old)) => old.to_ne_bytes(),
            Ok(None) => return self.refuse(exec, Status::RemoteInvalidRequest),
            Err(denied) => return self.end_fault(exec, Fault::Source(denied)),
        };
        match transfer::copy(&Place::Inline(&old), &self.local(&exec.job), 0, 8) {
            Ok(_) => Phase::Finish,
            Err(fault) => self.end_fault(exec, fault),
        }
    }

    /// The bytes are there: does what the request asks for at its end.
    fn finish(self: &Arc<Self>, exec: &mut Exec) -> Step {
        Ok(match exec.job.work {
            Work::Send {
                extra: Extra::Invalidate(token),
            } => self.begin_remote_revocation(exec, token),
            Work::Read {
                invalidate: Some(token),
                ..
            } => match local::invalidate(&self.from, token, false) {
                Local::Draining(token) => Phase::RevokeLocal(token),
                _ => self.refuse(exec, Status::LocalOperation),
            },
            _ => self.succeed(exec),
        })
    }

    fn begin_remote_revocation(self: &Arc<Self>, exec: &mut Exec, token: Token) -> Phase {
        let adapter = self.to.adapter();
        let regions = adapter.regions();
        match regions.revoke_remote(token, self.to.peer_user()) {
            Ok(()) => {
                adapter.count(Counter::InvalidationsRemote, 1);
                Phase::RevokeRemote(token)
            }
            Err(_) => {
                adapter.count(Counter::InvalidationsRefused, 1);
                self.end(
                    exec,
                    Status::RemoteInvalidRequest,
                    Status::ReceiveInvalidation,
                )
            }
        }
    }

    fn revoke_remote(self: &Arc<Self>, exec: &mut Exec, token: Token) -> Step {
        self.revoked(exec, self.to.adapter().regions().is_drained(token))
    }

    fn revoke_local(self: &Arc<Self>, exec: &mut Exec, token: Token) -> Step {
        self.revoked(exec, self.from.adapter().regions().is_drained(token))
    }

    /// Success once the last access is gone; until then the flow asks again from softirq work.
    fn revoked(self: &Arc<Self>, exec: &mut Exec, drained: bool) -> Step {
        if drained {
            return Ok(self.succeed(exec));
        }
        let adapter = self.from.adapter();
        adapter.count(Counter::InvalidationsDelayed, 1);
        Err(Pause::Yield)
    }

    fn succeed(self: &Arc<Self>, exec: &mut Exec) -> Phase {
        self.count(&exec.job);
        self.end(exec, Status::Success, Status::Success)
    }

    fn count(&self, job: &Job) {
        let (own, peer) = (self.from.adapter(), self.to.adapter());
        let (kind, out, back) = match job.work {
            Work::Send { .. } => (Counter::Sends, true, true),
            Work::Write { immediate, .. } => (Counter::Writes, true, immediate.is_some()),
            Work::Read { .. } => (Counter::Reads, false, false),
            Work::FetchAdd { .. } | Work::CompareSwap { .. } => (Counter::Atomics, false, false),
            Work::Register { .. } | Work::Invalidate { .. } | Work::Bind { .. } => return,
        };
        let bytes = u64::from(job.length);
        let (sender, receiver) = if out { (own, peer) } else { (peer, own) };
        own.count(kind, 1);
        sender.count(Counter::BytesOut, bytes);
        receiver.count(Counter::BytesIn, bytes);
        if back {
            peer.count(Counter::Receives, 1);
        }
    }
}

impl Exec {
    /// What the request does to the receive that it took.
    fn arrival(&self) -> Arrival {
        let (operation, extra) = match self.job.work {
            Work::Write {
                immediate: Some(data),
                ..
            } => (Operation::ReceiveWrite, Extra::Immediate(data)),
            Work::Send { extra } => (Operation::Receive, extra),
            _ => (Operation::Receive, Extra::Nothing),
        };
        Arrival {
            status: Status::Success,
            operation,
            length: self.job.length,
            extra,
            solicited: self.job.flags.has(Flags::SOLICITED),
        }
    }
}

impl WorkItem for Flow {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        Flow::run(&this);
    }
}

impl Expires for Flow {
    fn expired(this: Arc<Self>) {
        this.kick();
    }
}
