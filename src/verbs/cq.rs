// SPDX-License-Identifier: GPL-2.0

//! Completion queues: polling and arming.

use super::prelude::*;
use crate::{
    engine::{
        cq::{
            Arm,
            CompletionQueue,
            CqEvents,
            Failure,
            InvalidModeration,
            MissedEvents,
            ProgramCompletions, //
        },
        notifier::Called,
        ring::ResizeError, //
    },
    rdma::{
        CqInit,
        CqOperations,
        CqUpcall,
        Details,
        Notify,
        UserData,
        WcWriter, //
    }, //
};

struct Handler {
    upcall: CqUpcall,
    polled: bool,
}

impl CqEvents for Handler {
    fn only_schedules(&self) -> bool {
        self.polled
    }

    fn notify(&self, _failure: Option<Failure>) {
        self.upcall.completed();
    }

    fn failed(&self, _failure: Failure) -> Called {
        self.upcall.error();
        Called::Done
    }
}

impl CqOperations<Verbs> for Arc<CompletionQueue> {
    /// Makes a queue without moderation. A consumer's own handler is called on the processor of its
    /// vector, the core's poll handler on the processor where the entry comes.
    fn create(
        device: &Device<Verbs>,
        init: &CqInit,
        upcall: CqUpcall,
        data: &UserData,
    ) -> Result<(Self, u32)> {
        if init.entries == 0 || init.entries > MAX_CQ_ENTRIES {
            return Err(EINVAL);
        }
        let polled = init.polled;
        let events = KBox::new(Handler { upcall, polled }, GFP_KERNEL)?;
        let engine = device.device().clone();
        let cpu = device.processor_of(init.comp_vector);
        let shared = data.completions(init.entries)?;
        // The entries that a program takes by itself are in the shared memory alone.
        let own = if shared.is_some() { 0 } else { init.entries };
        let queue = CompletionQueue::new(engine, own, cpu, events, init.is_of_program)?;
        if let Some(ring) = shared {
            let entries = ProgramCompletions::new(ring, |entry, qpn| entry.shared(qpn));
            queue.share(entries).inspect_err(|_| queue.close())?;
        }
        Ok((queue, init.entries))
    }

    fn modify(&self, count: u16, period_us: u16) -> Result {
        let moderated = self.moderate(u32::from(period_us), u32::from(count));
        moderated.map_err(|InvalidModeration| EINVAL)
    }

    fn resize(&self, entries: u32, data: &UserData) -> Result<u32> {
        if entries == 0 || entries > MAX_CQ_ENTRIES {
            return Err(EINVAL);
        }
        let resized = match self.is_shared() {
            true => self.resize_shared(data.new_completions(entries)?),
            false => CompletionQueue::resize(self, entries),
        };
        resized.map_err(|why| match why {
            ResizeError::TooMany => EINVAL,
            ResizeError::NoMemory => ENOMEM,
        })?;
        Ok(self.depth())
    }

    fn pre_destroy(&self) {
        self.end_calls();
    }

    fn destroy(&self) {
        self.close();
    }

    fn describe(&self, details: &mut Details) -> Result {
        let now = self.details();
        details.number(c"number", now.number.into())?;
        details.number(c"depth", now.depth.into())?;
        details.number(c"used", now.used.into())?;
        details.word(c"armed", now.arm.map_or(c"no", Arm::name))?;
        match now.failed {
            true => details.word(c"failed", c"yes"),
            false => Ok(()),
        }
    }

    fn poll(&self, out: &mut WcWriter<'_>) {
        (**self).poll(out.room(), |entry| {
            // `poll` takes no more entries than there is room for.
            let _ = out.push(&entry);
        });
    }

    fn req_notify(&self, notify: Notify) -> bool {
        let arm = match notify.solicited_only {
            true => Arm::Solicited,
            false => Arm::Any,
        };
        self.arm(arm, MissedEvents::Ignore) && notify.report_missed
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_verbs_cq)]
mod tests {
    use super::*;

    use crate::{
        kunit::harness::cases,
        ndk::status::NtStatus,
        rdma::values::{
            completion::Wc,
            wc::{
                WcOpcode,
                WcStatus, //
            }, //
        }, //
    };

    fn ended(status: Status) -> Wc {
        Wc {
            status,
            opcode: WcOpcode::Send,
            ..Wc::BLANK
        }
    }

    #[test]
    fn ndk_face_01_what_is_cancelled_is_a_flush_error_of_verbs() {
        kunit_assert_eq!(ended(Status::Flushed).wc_status(), WcStatus::WrFlush);
        kunit_assert_eq!(NtStatus::of(Status::Flushed), NtStatus::CANCELLED);
    }

    #[test]
    fn ndk_face_15_the_mapping_to_verbs_merges_what_ndk_distinguishes() {
        // Pairs that are one status in verbs and two here: the mapping has no inverse.
        for (one, other) in cases([
            (Status::LocalLength, Status::ReceiveLength),
            (Status::Flushed, Status::Aborted),
            (Status::Timeout, Status::Refused),
        ]) {
            kunit_assert_eq!(ended(one).wc_status(), ended(other).wc_status());
            assert!(NtStatus::of(one) != NtStatus::of(other));
        }
    }

    #[test]
    fn ndk_face_15_a_completion_carries_the_ntstatus_beside_the_verbs_status() {
        let all = [
            Status::Success,
            Status::Flushed,
            Status::LocalLength,
            Status::LocalOperation,
            Status::LocalAccess,
            Status::Bind,
            Status::ReceiveLength,
            Status::RemoteAccess,
            Status::ReceiverNotReady,
            Status::Fatal,
        ];
        for one in cases(all) {
            let wc = ended(one);
            let is_success = wc.wc_status() == WcStatus::Success;
            kunit_assert_eq!(is_success, one.is_success());
            // CAST: the bits stay.
            kunit_assert_eq!(wc.vendor_err() as i32, NtStatus::of(one).raw());
        }
    }
}
