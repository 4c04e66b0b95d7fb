// SPDX-License-Identifier: GPL-2.0

//! [`Host`]: what all devices of the module share: queues of work, and the numbers that they count.

use core::num::NonZero;

use kernel::{
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed, //
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
use crate::sys::softirq::{
    BhQueue,
    ProcessQueue,
    SoftirqQuota, //
};

/// The numbers of queue pairs that a face counts here are above those of the verbs, which have 24
/// bits.
const FIRST_QP: u32 = 1 << 24;

/// Bytes that a processor moves in softirq before a task has its turn there: less than a
/// millisecond on a processor of today, where the kernel itself goes on with softirqs for two.
const BYTES_IN_SOFTIRQ: u64 = 4 << 20;

/// The number of the queue pair that is made after `count` others.
fn qp_number(count: u64) -> u32 {
    let numbers = u64::from(u32::MAX - FIRST_QP) + 1;
    // CAST: less than the number of numbers that are left.
    FIRST_QP + (count % numbers) as u32
}

/// What all devices of the module share.
pub(crate) struct Host {
    /// The softirq work of the module.
    pub(crate) softirqs: BhQueue,
    /// The bytes that a transport moves in softirq.
    pub(crate) softirq_bytes: SoftirqQuota,
    /// Work of the module that may sleep.
    pub(crate) threads: ProcessQueue,
    /// Work of transports that takes too long for softirq, on the processor that it was queued on.
    pub(crate) copies: ProcessQueue,
    next_domain: Atomic<u64>,
    next_qp_id: Atomic<QpId>,
    next_qp: Atomic<u64>,
    next_connection: Atomic<u64>,
    next_cq: Atomic<u32>,
    /// Timers that may outlive what they were armed for, and are armed.
    pub(super) late_timers: Atomic<u32>,
    /// How long a message waits for a receive, in milliseconds.
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
            next_domain: Atomic::new(1),
            next_qp_id: Atomic::new(1),
            next_qp: Atomic::new(0),
            next_connection: Atomic::new(1),
            next_cq: Atomic::new(1),
            late_timers: Atomic::new(0),
            rnr_timeout_ms,
        };
        Ok(Arc::new(host, GFP_KERNEL)?)
    }

    /// The identity of a new queue pair. Any context.
    pub(super) fn next_qp_id(&self) -> QpId {
        // OVERFLOW: comes round after 2^64 queue pairs.
        self.next_qp_id.fetch_add(1, Relaxed)
    }

    /// A number for a queue pair of a face that has none of its own; the same comes again when four
    /// billions have been made. Any context.
    pub(crate) fn next_qp_number(&self) -> u32 {
        // OVERFLOW: 2^64 queue pairs.
        qp_number(self.next_qp.fetch_add(1, Relaxed))
    }

    /// What only one connection of this host has. Any context.
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

    /// Waits until none of those timers is armed, and what they have queued is done.
    fn wait_for_timers(&self) {
        while self.late_timers.load(Acquire) > 0 {
            fsleep(Delta::from_millis(1));
        }
    }

    /// Waits until no timer of the module runs and no work is left, so that its code may go.
    ///
    /// All devices are gone by then, and nothing arms a timer any more. May sleep; as long as a
    /// disconnect is late that somebody has delayed (a minute at most).
    pub(crate) fn quiesce(&self) {
        self.softirqs.flush();
        self.wait_for_timers();
        self.threads.flush();
        // Timers run in softirq, which is a read-side critical section.
        rcu::synchronize_rcu();
        self.softirqs.flush();
        self.copies.flush();
        self.threads.flush();
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_host)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_queue_pairs_go_through_all_there_are_before_one_comes_again() {
        let numbers = u64::from(u32::MAX) + 1 - u64::from(FIRST_QP);
        assert!(qp_number(0) == FIRST_QP && qp_number(numbers - 1) == u32::MAX);
        assert!(qp_number(numbers) == FIRST_QP);
        for bit in 0..32 {
            for count in [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1] {
                let next = qp_number(count + 1);
                assert!(next == qp_number(count).wrapping_add(1).max(FIRST_QP));
            }
        }
    }
}
