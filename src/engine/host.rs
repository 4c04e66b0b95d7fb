// SPDX-License-Identifier: GPL-2.0

//! [`Host`]: the work queues and the number counters that all devices of the module share.

use core::num::NonZero;

use kernel::{
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        rcu, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::{
    memory::slot::{
        DomainId,
        QpId, //
    },
    prelude::*,
    transport::ConnectionId, //
};
use crate::sys::{
    hrtimer,
    softirq::{
        BhQueue,
        ProcessQueue,
        SoftirqQuota, //
    }, //
};

/// The first number of a queue pair that the host counts for a face: the verbs use 24 bits.
const FIRST_QP: u32 = 1 << 24;

/// Bytes that a processor moves in softirq before a task has its turn there: less than a
/// millisecond on a processor of today, where the kernel itself goes on with softirqs for two.
const BYTES_IN_SOFTIRQ: u64 = 4 << 20;

/// The number of the queue pair that is made after `count` others.
fn qp_number(count: u64) -> u32 {
    let numbers = u64::from(u32::MAX - FIRST_QP) + 1;
    // CAST: less than `numbers`, the count of numbers from `FIRST_QP` on.
    FIRST_QP + (count % numbers) as u32
}

/// The state that all devices of the module share.
pub(crate) struct Host {
    /// The softirq work of the module.
    pub(crate) softirqs: BhQueue,
    /// The quota of bytes that a transport moves in softirq.
    pub(crate) softirq_bytes: SoftirqQuota,
    /// Work of the module that may sleep.
    pub(crate) threads: ProcessQueue,
    /// See [`Host::copies`].
    copies: ProcessQueue,
    program_copies: ProcessQueue,
    next_domain: Atomic<u64>,
    next_qp_id: Atomic<QpId>,
    next_qp: Atomic<u64>,
    next_connection: Atomic<u64>,
    next_cq: Atomic<u32>,
    /// The time of the next free slot, in nanoseconds: `engine/looking.rs`.
    pub(super) next_slot_ns: Atomic<u64>,
    /// Sides of connections that have yet to be notified of the end.
    sides: Atomic<u32>,
    /// The time that a message waits for a receive, in milliseconds; for a receive of a shared
    /// queue it waits without a limit.
    pub(crate) rnr_timeout_ms: u32,
}

impl Host {
    /// May sleep.
    pub(crate) fn new(rnr_timeout_ms: u32) -> Result<Arc<Self>> {
        let host = Self {
            softirqs: BhQueue::new(c"ndk")?,
            softirq_bytes: SoftirqQuota::new(BYTES_IN_SOFTIRQ)?,
            threads: ProcessQueue::new(c"ndk_process")?,
            copies: ProcessQueue::new_per_cpu(c"ndk_copy")?,
            program_copies: ProcessQueue::new_per_cpu(c"ndk_program_copy")?,
            next_domain: Atomic::new(1),
            next_qp_id: Atomic::new(1),
            next_qp: Atomic::new(0),
            next_connection: Atomic::new(1),
            next_cq: Atomic::new(1),
            next_slot_ns: Atomic::new(0),
            sides: Atomic::new(0),
            rnr_timeout_ms,
        };
        Ok(Arc::new(host, GFP_KERNEL)?)
    }

    /// The queue for work of transports that takes too long for softirq, run on the processor that
    /// it was queued on. Programs have a separate queue, so their work is not ahead of the
    /// kernel's. Any context.
    pub(crate) fn copies(&self, is_of_program: bool) -> &ProcessQueue {
        match is_of_program {
            true => &self.program_copies,
            false => &self.copies,
        }
    }

    /// The identity of a new queue pair. Any context.
    pub(super) fn next_qp_id(&self) -> QpId {
        // OVERFLOW: comes round after 2^64 queue pairs.
        self.next_qp_id.fetch_add(1, Relaxed)
    }

    /// A number for a queue pair of a face that has none of its own; it comes again after four
    /// billion queue pairs. Any context.
    pub(crate) fn next_qp_number(&self) -> u32 {
        // OVERFLOW: 2^64 queue pairs.
        qp_number(self.next_qp.fetch_add(1, Relaxed))
    }

    /// A connection number, unique on this host. Any context.
    pub(crate) fn next_connection(&self) -> ConnectionId {
        let number = self.next_connection.fetch_add(1, Relaxed);
        // OVERFLOW: comes round after 2^64 connections.
        ConnectionId::new(NonZero::new(number).unwrap_or(NonZero::<u64>::MAX))
    }

    /// A number for a completion queue. Any context.
    pub(super) fn next_cq_number(&self) -> u32 {
        // OVERFLOW: comes round after 2^32.
        self.next_cq.fetch_add(1, Relaxed)
    }

    /// The identity of a new protection domain. Any context.
    pub(super) fn next_domain(&self) -> DomainId {
        // OVERFLOW: comes round after 2^64 domains.
        self.next_domain.fetch_add(1, Relaxed)
    }

    /// Counts a side of a connection until the result is dropped. Any context.
    pub(crate) fn add_side(self: &Arc<Self>) -> Side {
        self.sides.add(1, Relaxed);
        Side(self.clone())
    }

    /// The number of sides of connections that have yet to be notified of the end.
    #[cfg(ndk_kunit)]
    pub(super) fn sides(&self) -> u32 {
        self.sides.load(Acquire)
    }

    /// Waits until no timer of the module runs and no work is left, so that its code may go.
    ///
    /// All devices are gone by then, so all timers were cancelled, but for timers of connection
    /// sides that could not be notified of the end: a queue pair may go before they are. May sleep,
    /// as long as a fault delays a disconnect (a minute at most).
    pub(crate) fn quiesce(&self) {
        while self.sides.load(Acquire) > 0 {
            fsleep(Delta::from_millis(1));
        }
        hrtimer::wait_for_late_expiries();
        // Timers run in softirq, which is a read-side critical section: after this, timers that
        // were cancelled too late have returned, and have queued their work.
        rcu::synchronize_rcu();
        // Work that is left has no effect, but it may queue another item.
        for _ in 0..3 {
            self.flush_transports();
            self.threads.flush();
        }
    }

    /// Waits until the work that transports have queued has run. May sleep.
    pub(crate) fn flush_transports(&self) {
        self.copies.flush();
        self.program_copies.flush();
        self.softirqs.flush();
    }
}

/// A side of a connection that has yet to be notified of the end, or an initiator of another host
/// that has yet to be answered. The end of the module waits until the work or timer that has this
/// drops it.
pub(crate) struct Side(Arc<Host>);

impl Drop for Side {
    fn drop(&mut self) {
        self.0.sides.fetch_sub(1, Release);
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_host)]
mod tests {
    use super::*;
    use crate::{
        kunit::{
            harness::{
                cases,
                sleep,
                EngineHost,
                RNR_MS, //
            },
            other_context::OtherContext, //
        },
        sys::hrtimer::LateExpiry, //
    };
    use kernel::sync::atomic::AtomicFlag;

    #[test]
    fn the_end_of_the_module_waits_for_timers_that_were_cancelled_too_late() -> Result {
        let engine_host = EngineHost::new(RNR_MS)?;
        let host = engine_host.device()?.host.clone();
        let queue = ProcessQueue::new(c"ndk_test_quiesce")?;
        // True once the timer has run out, and its value at the end of the module.
        let signs = Arc::new((AtomicFlag::new(false), AtomicFlag::new(false)), GFP_KERNEL)?;
        let late_expiry = LateExpiry::begin();
        let other_task = {
            let (host, signs) = (host.clone(), signs.clone());
            OtherContext::new(move || {
                host.quiesce();
                signs.1.store(signs.0.load(Relaxed), Relaxed);
            })?
        };
        assert!(other_task.begin(&queue));
        // Long enough for a quiesce that does not wait.
        for _ in 0..3 {
            rcu::synchronize_rcu();
            host.softirqs.flush();
            host.copies.flush();
        }
        sleep(20);
        signs.0.store(true, Relaxed);
        drop(late_expiry);
        assert!(other_task.is_done());
        queue.flush();
        assert!(signs.1.load(Relaxed));
        Ok(())
    }

    #[test]
    fn numbers_of_queue_pairs_go_through_all_there_are_before_one_comes_again() {
        let numbers = u64::from(u32::MAX) + 1 - u64::from(FIRST_QP);
        kunit_assert_eq!(qp_number(0), FIRST_QP);
        kunit_assert_eq!(qp_number(numbers - 1), u32::MAX);
        kunit_assert_eq!(qp_number(numbers), FIRST_QP);
        for bit in cases(0..32) {
            for count in cases([(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
                let next = qp_number(count + 1);
                kunit_assert_eq!(next, qp_number(count).wrapping_add(1).max(FIRST_QP));
            }
        }
    }
}
