// SPDX-License-Identifier: GPL-2.0

//! [`SrqUsers`]: a shared receive queue with two users, and a peer for each.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    caller::CallLog,
    completion::{
        create,
        log_status,
        made,
        request,
        AutoClose, //
    },
    host::{
        pd,
        HostAttr,
        Queue,
        TestHost,
        SIZES, //
    },
    memory::PageBuffer,
    pair::{
        connect,
        OpenListener,
        TestSide,
        READS, //
    }, //
};
use crate::{
    kunit::{
        harness::{
            flush_work,
            same, //
        },
        log::Tally, //
    },
    ndk::{
        adapter::Adapter,
        life::Ref,
        pd::Pd,
        srq::{
            Srq,
            SrqSizes, //
        },
        status::NtStatus, //
    },
    sys::sge::Sge, //
};

/// A shared receive queue and its notifications.
pub(super) struct Shared {
    pub(super) srq: AutoClose<Srq>,
    pub(super) log: Arc<CallLog>,
    pub(super) pd: AutoClose<Pd>,
    adapter: Ref<Adapter>,
}

impl Shared {
    /// A queue in a new domain, or the status of the refusal. May sleep.
    pub(super) fn create(
        adapter: &Ref<Adapter>,
        sizes: SrqSizes,
        calls: bool,
    ) -> Result<Result<Self, NtStatus>> {
        let log = CallLog::new()?;
        let user = if calls { log.srq_user()? } else { None };
        let pd = pd(adapter)?;
        Ok(
            create(|done| pd.create_srq(sizes, user, done))?.map(|srq| Self {
                srq,
                log,
                pd,
                adapter: adapter.clone(),
            }),
        )
    }

    /// The same as [`Self::create`], with notifications; a refusal is logged and becomes an error.
    pub(super) fn new(adapter: &Ref<Adapter>, depth: u32, threshold: u32) -> Result<Self> {
        let sizes = SrqSizes {
            depth,
            sges: 4,
            threshold,
        };
        Self::create(adapter, sizes, true)?.map_err(log_status)
    }

    /// Posts a receive.
    pub(super) fn post(&self, context: u64, sges: &[Sge]) -> Result<(), NtStatus> {
        self.srq.receive(context, sges.iter().copied())
    }

    /// Posts empty receives; returns true if all were accepted.
    pub(super) fn post_all(&self, contexts: core::ops::Range<u64>) -> bool {
        let mut contexts = contexts;
        contexts.all(|context| self.post(context, &[]).is_ok())
    }

    /// Changes depth and threshold, and waits for the end.
    pub(super) fn modify(&self, depth: u32, threshold: u32) -> Result<NtStatus> {
        request(|done| self.srq.modify(depth, threshold, done))
    }

    /// Returns true if the queue has notified `times` times, each time properly, after the pending
    /// work has run.
    pub(super) fn has_called(&self, times: u32) -> bool {
        flush_work(self.adapter.device());
        same(self.log.calls.get(), times) && self.log.is_proper()
    }

    /// The same, and the last notification had `status`.
    pub(super) fn has_notified(&self, times: u32, status: NtStatus) -> bool {
        self.has_called(times) && same(self.log.status(), status.raw())
    }

    /// A side that takes its receives from the shared queue.
    fn user(&self, context: usize) -> Result<TestSide> {
        let receives = Queue::new(&self.adapter, 128)?;
        let requests = Queue::new(&self.adapter, 128)?;
        let cqs = (&*receives.cq, &*requests.cq);
        let srq = Some(&*self.srq);
        let qp = made(|done| self.pd.create_qp(cqs, srq, context, SIZES, done))?;
        Ok(TestSide {
            connector: None,
            disconnects: Arc::new(Tally::new(), GFP_KERNEL)?,
            qp,
            requests,
            receives,
            // Not the domain of the queue pair, which is that of the shared queue.
            pd: pd(&self.adapter)?,
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.log.clear_hook();
    }
}

/// Two users of a shared queue, each with a peer that sends to it.
pub(super) struct SrqUsers {
    pub(super) senders: [TestSide; 2],
    pub(super) users: [TestSide; 2],
    pub(super) shared: Shared,
    pub(super) open_listener: OpenListener,
    // Dropped last.
    pub(super) test_host: TestHost,
}

impl SrqUsers {
    /// The contexts of the users' queue pairs are 0xB0 and 0xB1. May sleep.
    pub(super) fn new(depth: u32, threshold: u32) -> Result<Self> {
        Self::with(&HostAttr::PLAIN, depth, threshold)
    }

    pub(super) fn with(attr: &HostAttr, depth: u32, threshold: u32) -> Result<Self> {
        let test_host = TestHost::with(attr)?;
        let shared = Shared::new(&test_host.adapter, depth, threshold)?;
        let mut srq_users = Self {
            senders: [
                TestSide::new(&test_host.adapter, 0xA0, SIZES)?,
                TestSide::new(&test_host.adapter, 0xA1, SIZES)?,
            ],
            users: [shared.user(0xB0)?, shared.user(0xB1)?],
            shared,
            open_listener: OpenListener::new(&test_host.adapter)?,
            test_host,
        };
        for (sender, user) in srq_users.senders.iter_mut().zip(&mut srq_users.users) {
            let ends = ((&*sender, READS), (&*user, READS));
            let (ours, theirs) = connect(
                &srq_users.test_host.adapter,
                &srq_users.open_listener,
                ends.0,
                ends.1,
            )?;
            sender.connector = Some(ours);
            user.connector = Some(theirs);
        }
        Ok(srq_users)
    }

    /// A buffer for receives of the shared queue.
    pub(super) fn buffer(&self, len: usize) -> Result<PageBuffer> {
        PageBuffer::registered(&self.shared.pd, len, 1)
    }

    /// Sends an empty message to a user; returns true if both sides report success.
    pub(super) fn pass(&self, to: usize, receive: u64) -> Result<bool> {
        let (sender, user) = (&self.senders[to], &self.users[to]);
        sender.send(receive, &[], 0)?;
        Ok(sender.requests.next_is(receive, NtStatus::SUCCESS)
            && user.receives.next_is(receive, NtStatus::SUCCESS))
    }
}
