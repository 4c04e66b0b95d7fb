// SPDX-License-Identifier: GPL-2.0

//! [`Cq`]: a completion queue, its arms, its results.

use kernel::{
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    }, //
};

use super::prelude::*;
use crate::{
    engine::{
        cq::{
            Arm,
            CompletionQueue,
            CqEvents,
            Failure,
            MissedEvents, //
        },
        notifier::Called,
        qp::QueuePair, //
    },
    ndk::abi::numbers::{
        notify,
        operation, //
    },
    rdma::values::{
        completion::Wc,
        wc::WcOpcode,
        work::SendWith, //
    },
    sys::cpu, //
};

/// The callback for a satisfied arm. Called in softirq.
pub(crate) type CqUser = KBox<dyn Fn(NtStatus) + Send + Sync>;

/// The queue pairs that use a queue, and fail when it does.
#[pin_data]
pub(super) struct CqUsers {
    /// The queue pairs by their addresses.
    #[pin]
    tree: SpinLockIrq<RBTree<usize, Arc<QueuePair>>>,
    /// Queue pairs at lower addresses have failed. Only [`CqUsers::fail`] changes the bound.
    failed_below: Atomic<usize>,
}

/// Queue pairs that fail in one softirq: each cancels up to a batch of its requests.
pub(super) const FAILED_AT_ONCE: usize = 16;

impl CqUsers {
    /// Adds `qp`, once even if both of its queues report to this queue. May sleep.
    pub(super) fn add(&self, qp: &Arc<QueuePair>) -> Result {
        let node = RBTreeNode::new(Arc::as_ptr(qp).addr(), qp.clone(), GFP_KERNEL)?;
        let known = self.tree.lock().insert(node);
        drop(known);
        Ok(())
    }

    /// Removes `qp`, if it was added.
    pub(super) fn remove(&self, qp: &Arc<QueuePair>) {
        let gone = self.tree.lock().remove_node(&Arc::as_ptr(qp).addr());
        drop(gone);
    }

    /// Calls `fail` for every queue pair in turn, without the lock, for some of them in each call.
    /// The calls come one at a time.
    ///
    /// A queue pair that is added in between checks by itself if its queue has failed.
    pub(super) fn fail(&self, fail: impl Fn(&Arc<QueuePair>)) -> Called {
        for _ in 0..FAILED_AT_ONCE {
            let Some((at, qp)) = self.first(self.failed_below.load(Relaxed)) else {
                return Called::Done;
            };
            fail(&qp);
            self.failed_below.store(at + 1, Relaxed);
        }
        Called::Partial
    }

    /// The first queue pair at the address `from` or above.
    fn first(&self, from: usize) -> Option<(usize, Arc<QueuePair>)> {
        let tree = self.tree.lock();
        let found = tree.cursor_lower_bound(&from)?;
        let (at, qp) = found.current();
        Some((*at, qp.clone()))
    }
}

/// A completion queue.
pub(crate) struct Cq {
    owner: Ref<Adapter>,
    engine: Arc<CompletionQueue>,
    /// The queue pairs that use it.
    pub(super) users: Arc<CqUsers>,
}

/// The targets of a queue's events: the consumer, and the queue pairs that use the queue.
pub(super) struct QueueTargets<U> {
    pub(super) user: U,
    pub(super) users: Arc<CqUsers>,
}

impl<U> QueueTargets<U> {
    /// Targets without a queue pair. May sleep.
    pub(super) fn new(user: U) -> Result<KBox<Self>, NtStatus> {
        let users = pin_init!(CqUsers {
            tree <- new_spinlock_irq!(RBTree::new()),
            failed_below: Atomic::new(0),
        });
        let users = Arc::pin_init(users, GFP_KERNEL).map_err(no_memory)?;
        Ok(KBox::new(Self { user, users }, GFP_KERNEL)?)
    }
}

impl CqEvents for QueueTargets<CqUser> {
    fn notify(&self, failure: Option<Failure>) {
        (self.user)(match failure {
            None => NtStatus::SUCCESS,
            Some(Failure::Overrun) => NtStatus::BUFFER_OVERFLOW,
            Some(Failure::Fatal) => NtStatus::INTERNAL_ERROR,
        });
    }

    fn failed(&self, _failure: Failure) -> Called {
        self.users.fail(QueuePair::fail)
    }
}

impl ObjectType for Cq {
    fn end(&self) {
        self.owner.remove(|state| &mut state.cqs, &self.engine);
        self.engine.close();
    }
}

impl Object<Adapter> {
    /// `CreateCq`: `cpu` is the processor that the consumer prefers for its calls (CQ-01, CQ-02).
    pub(crate) fn create_cq(
        self: &Arc<Self>,
        depth: u32,
        cpu: Option<u32>,
        user: CqUser,
        done: DoneFn<Created<Cq>>,
    ) -> Answer {
        NtStatus::INVALID_PARAMETER.when(depth == 0 || depth > self.limits().cq)?;
        self.check_there()?;
        // No processor has this number: it stands for the processor that completes.
        let cpu = cpu.unwrap_or_else(cpu::count_ids);
        self.defer(done, move |this| {
            let events = QueueTargets::new(user)?;
            let users = events.users.clone();
            let engine = CompletionQueue::new(this.device().clone(), depth, cpu, events, false);
            let cq = Cq {
                owner: this.clone(),
                engine: engine.map_err(no_memory)?,
                users,
            };
            Object::start(this.device(), this.sole_antecedent(), cq, |cq| {
                this.add(|state| &mut state.cqs, &cq.engine)
            })
        })
    }
}

/// A result, with all that `NDK_RESULT_EX` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultEx {
    pub(crate) status: NtStatus,
    pub(crate) bytes: u32,
    pub(crate) qp_context: usize,
    pub(crate) request_context: u64,
    pub(crate) operation: u32,
    /// The token that a receive invalidated.
    pub(crate) output: u32,
}

impl ResultEx {
    fn of(entry: &Wc) -> Self {
        let (invalidates, output) = match entry.with {
            SendWith::Inv(token) if entry.status.is_success() => (true, token.raw()),
            SendWith::Inv(_) | SendWith::Nothing | SendWith::Imm(_) => (false, 0),
        };
        Self {
            status: NtStatus::of(entry.status),
            bytes: entry.byte_len,
            qp_context: entry.qp,
            request_context: entry.context.raw(),
            operation: match entry.opcode {
                WcOpcode::Recv | WcOpcode::RecvWithImm if invalidates => {
                    operation::RECEIVE_AND_INVALIDATE
                }
                WcOpcode::Recv | WcOpcode::RecvWithImm => operation::RECEIVE,
                WcOpcode::Send => operation::SEND,
                WcOpcode::RegMr => operation::FAST_REGISTER,
                WcOpcode::BindMw => operation::BIND,
                WcOpcode::LocalInv => operation::INVALIDATE,
                WcOpcode::Read | WcOpcode::FetchAdd | WcOpcode::CompSwap => operation::READ,
                WcOpcode::Write => operation::WRITE,
            },
            output,
        }
    }
}

impl Cq {
    /// The engine's queue.
    pub(crate) fn engine(&self) -> &Arc<CompletionQueue> {
        &self.engine
    }

    /// Returns true if `adapter` made the queue.
    pub(super) fn is_of(&self, adapter: &Ref<Adapter>) -> bool {
        Arc::ptr_eq(&self.owner, adapter)
    }

    /// `ArmCq`: arms the queue for one call. An unknown type is ignored, and warned of once
    /// (ARM-15). Any context.
    pub(crate) fn arm(&self, kind: u32) {
        let arm = match kind {
            notify::ERRORS => Arm::Errors,
            notify::ANY => Arm::Any,
            notify::SOLICITED => Arm::Solicited,
            _ => {
                kernel::pr_warn_once!(
                    "a completion queue was armed for type {}, which there is not\n",
                    kind
                );
                return;
            }
        };
        self.engine.arm(arm, MissedEvents::SatisfyArm);
    }

    /// `GetCqResults` and `GetCqResultsEx`: takes up to `most` results out, in order. Any context.
    ///
    /// `take` runs under the lock of the queue: it only copies.
    pub(crate) fn results(&self, most: u32, mut take: impl FnMut(ResultEx)) -> u32 {
        // CAST: widening, and back: not more than `most`.
        self.engine
            .poll(most as usize, |entry| take(ResultEx::of(&entry))) as u32
    }

    /// `ControlCqInterruptModeration` (MOD-01 to MOD-07). Any context; never pends.
    pub(crate) fn moderate(&self, interval_us: u32, count: u32) -> Result<(), NtStatus> {
        Ok(self.engine.moderate(interval_us, count)?)
    }
}

impl Object<Cq> {
    /// `ResizeCq` (CQ-06 to CQ-08).
    pub(crate) fn resize(self: &Arc<Self>, depth: u32, done: DoneFn<NtStatus>) -> Answer {
        NtStatus::INVALID_PARAMETER.when(depth == 0 || depth > self.owner.limits().cq)?;
        self.defer(done, move |this| this.engine.resize(depth).into())
    }
}
