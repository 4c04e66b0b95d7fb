// SPDX-License-Identifier: GPL-2.0

//! Completion queues and shared receive queues, with recorders for what they report.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    harness::{
        accepted,
        flush_work,
        same,
        wait_until, //
    },
    log::{
        CqLog,
        CqUser,
        SrqLog,
        SrqUser, //
    }, //
};
use crate::{
    engine::{
        cq::CompletionQueue,
        device::RdmaDevice,
        domain::Domain,
        srq::SharedReceive, //
    },
    rdma::values::{
        completion::Wc,
        status::Status, //
    },
    sys::sge::{
        test_posted,
        Sge, //
    }, //
};

/// A completion queue and its reports.
pub(crate) struct Queue {
    pub(crate) cq: Arc<CompletionQueue>,
    pub(crate) log: Arc<CqLog>,
    device: Arc<RdmaDevice>,
}

impl Queue {
    /// A queue that calls on `cpu`, or anywhere. May sleep.
    pub(crate) fn new(device: &Arc<RdmaDevice>, depth: u32, cpu: u32) -> Result<Arc<Self>> {
        let log = CqLog::new()?;
        let events = KBox::new(CqUser(log.clone()), GFP_KERNEL)?;
        let queue = Self {
            cq: CompletionQueue::new(device.clone(), depth, cpu, events, false)?,
            log,
            device: device.clone(),
        };
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// Takes the first entry, if any.
    pub(crate) fn poll(&self) -> Option<Wc> {
        let mut found = None;
        self.cq.poll(1, |entry| found = Some(entry));
        found
    }

    /// Takes the next entry; waits for it.
    pub(crate) fn next(&self) -> Option<Wc> {
        let mut found = None;
        wait_until(|| {
            found = self.poll();
            found.is_some()
        });
        found
    }

    /// Returns true if the next entry has that context and status; waits for it.
    pub(crate) fn next_is(&self, context: u64, status: Status) -> bool {
        let got = self.next().map(|e| (e.context.raw(), e.status));
        same(got, Some((context, status)))
    }

    /// Returns true if the next entries have those contexts, all with `status`; waits for them.
    pub(crate) fn next_are(&self, contexts: core::ops::Range<u64>, status: Status) -> bool {
        let mut all = contexts;
        all.all(|context| self.next_is(context, status))
    }

    /// Returns true if there is no entry, and none is about to come.
    pub(crate) fn stays_empty(&self) -> bool {
        flush_work(&self.device);
        same(self.poll().map(|e| (e.context.raw(), e.status)), None)
    }

    /// Returns true once the queue holds that many entries.
    pub(crate) fn holds(&self, entries: u32) -> bool {
        wait_until(|| self.cq.details().used == entries)
    }

    /// Returns true if the queue has called that often, and is not about to call again; waits for it.
    pub(crate) fn has_called(&self, times: u32) -> bool {
        wait_until(|| self.log.calls.get() >= times);
        flush_work(&self.device);
        same(self.log.calls.get(), times)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.cq.close();
        // A hook may hold the queue.
        self.log.set_hook(None);
    }
}

/// A shared receive queue and its reports.
pub(crate) struct Shared {
    pub(crate) srq: Arc<SharedReceive>,
    pub(crate) log: Arc<SrqLog>,
}

impl Shared {
    /// A queue for `depth` receives. May sleep.
    pub(crate) fn new(domain: &Arc<Domain>, depth: u32, sges: u32) -> Result<Arc<Self>> {
        let log = SrqLog::new()?;
        let events = KBox::new(SrqUser(log.clone()), GFP_KERNEL)?;
        let srq = SharedReceive::new(domain.clone(), depth, sges, events)?;
        Ok(Arc::new(Self { srq, log }, GFP_KERNEL)?)
    }

    /// Posts a receive.
    pub(crate) fn post(&self, context: u64, sges: &[Sge]) -> Result {
        accepted(self.srq.post(test_posted(context, sges.iter().copied())))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.srq.close();
    }
}
