// SPDX-License-Identifier: GPL-2.0

//! [`Adapter`] and [`Domain`]: what belongs to one device, and to one protection domain.

use core::num::NonZero;

use kernel::{
    alloc::Flags,
    fmt,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        rcu,
        Arc, //
    }, //
};

use super::{
    counters::{
        self,
        Counter, //
    },
    memory::MemoryTable,
    region::DomainId,
    transport::ConnectionId, //
};
use crate::sys::{
    cpu::PerCpuCounters,
    log,
    softirq::{
        BhQueue,
        ProcessQueue,
        SoftirqQuota, //
    }, //
};

/// The numbers of queue pairs that a face counts here are above those of the verbs, which have 24
/// bits.
const FIRST_QP: u32 = 1 << 24;

/// Bytes that a processor moves in softirq before a task has its turn there: less than a
/// millisecond on a processor of today, where the kernel itself goes on with softirqs for two.
const BYTES_IN_SOFTIRQ: u64 = 4 << 20;

/// What all adapters of the module share.
pub(crate) struct Host {
    softirqs: BhQueue,
    softirq_bytes: SoftirqQuota,
    threads: ProcessQueue,
    copies: ProcessQueue,
    next_domain: Atomic<u64>,
    next_qp: Atomic<u32>,
    next_connection: Atomic<u64>,
    /// How long a message waits for a receive, in milliseconds.
    rnr_timeout_ms: u32,
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
            next_qp: Atomic::new(FIRST_QP),
            next_connection: Atomic::new(1),
            rnr_timeout_ms,
        };
        Ok(Arc::new(host, GFP_KERNEL)?)
    }

    /// The softirq work of the module.
    pub(crate) fn softirqs(&self) -> &BhQueue {
        &self.softirqs
    }

    /// Waits until no timer of the module runs and no work is left, so that its code may go.
    ///
    /// All devices are gone by then, and nothing arms a timer any more. May sleep.
    pub(crate) fn quiesce(&self) {
        self.threads.flush();
        // Timers run in softirq, which is a read-side critical section.
        rcu::synchronize_rcu();
        self.softirqs.flush();
        self.copies.flush();
        self.threads.flush();
    }
}

/// The engine's side of one device.
#[pin_data]
pub(crate) struct Adapter {
    host: Arc<Host>,
    /// What the messages in the kernel log call the device.
    name: CString,
    /// Identifies the network namespace in which the device has its addresses.
    net: u64,
    counters: PerCpuCounters<{ counters::COUNT }>,
    #[pin]
    regions: MemoryTable,
}

impl Adapter {
    /// An adapter with no objects. May sleep.
    pub(crate) fn new(host: Arc<Host>, name: &CStr, net: u64) -> Result<Arc<Self>> {
        let name = CString::try_from(name)?;
        Arc::pin_init(
            try_pin_init!(Self {
                host,
                name,
                net,
                counters: PerCpuCounters::new()?,
                regions <- MemoryTable::new(),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The softirq work of the module.
    pub(crate) fn softirqs(&self) -> &BhQueue {
        self.host.softirqs()
    }

    /// A number for a queue pair of a face that has none of its own. Any context.
    pub(crate) fn next_qp_number(&self) -> u32 {
        // OVERFLOW: comes round after 2^32, and then leaves the lower ones out.
        self.host.next_qp.fetch_add(1, Relaxed) | FIRST_QP
    }

    /// What tells a new connection of this host from all others. Any context.
    pub(crate) fn next_connection(&self) -> ConnectionId {
        let number = self.host.next_connection.fetch_add(1, Relaxed);
        // OVERFLOW: comes round after 2^64 connections.
        ConnectionId::new(NonZero::new(number).unwrap_or(NonZero::<u64>::MAX))
    }

    /// Work of the module that may sleep.
    pub(crate) fn threads(&self) -> &ProcessQueue {
        &self.host.threads
    }

    /// The bytes that a transport moves in softirq.
    pub(crate) fn softirq_bytes(&self) -> &SoftirqQuota {
        &self.host.softirq_bytes
    }

    /// Work of transports that takes too long for softirq, on the processor that it was queued on.
    pub(crate) fn copies(&self) -> &ProcessQueue {
        &self.host.copies
    }

    /// The identity of the network namespace.
    pub(crate) fn net(&self) -> u64 {
        self.net
    }

    /// What the messages in the kernel log call the device.
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// The regions and windows.
    pub(crate) fn regions(&self) -> &MemoryTable {
        &self.regions
    }

    /// How long a message waits for a receive, in milliseconds.
    pub(crate) fn rnr_timeout_ms(&self) -> u32 {
        self.host.rnr_timeout_ms
    }

    /// Says in the kernel log that something went wrong with a queue pair. Any context.
    ///
    /// The messages of the module are rate limited together.
    pub(crate) fn warn(&self, qp: u32, what: fmt::Arguments<'_>) {
        if log::allowed() {
            pr_warn!("{}: qp {}: {}\n", &*self.name, qp, what);
        }
    }

    /// Adds `n` to a counter. Any context.
    #[inline]
    pub(crate) fn count(&self, counter: Counter, n: u64) {
        // CAST: a variant's number is an index.
        self.counters.add(counter as usize, n);
    }

    /// Adds to several counters. Any context.
    #[inline]
    pub(crate) fn count_each<const K: usize>(&self, adds: [(Counter, u64); K]) {
        // CAST: a variant's number is an index.
        let adds = adds.map(|(counter, n)| (counter as usize, n));
        self.counters.add_each(adds);
    }

    /// The present value of the counter with number `index`.
    pub(crate) fn counted(&self, index: usize) -> u64 {
        self.counters.sum(index)
    }
}

/// A protection domain: an identity that queue pairs and regions share, nothing else.
pub(crate) struct Domain {
    adapter: Arc<Adapter>,
    id: DomainId,
}

impl Domain {
    /// A domain with no objects. May sleep if `flags` say so. `ENOMEM` when there is no memory.
    pub(crate) fn new(adapter: Arc<Adapter>, flags: Flags) -> Result<Arc<Self>> {
        let id = adapter.host.next_domain.fetch_add(1, Relaxed);
        Ok(Arc::new(Self { adapter, id }, flags)?)
    }

    /// The device that the domain is on.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// The number that no other domain has.
    pub(crate) fn id(&self) -> DomainId {
        self.id
    }
}
