// SPDX-License-Identifier: GPL-2.0

//! Completion queues: polling, arming, and what a status is called in `struct ib_wc`.

use super::prelude::*;
use crate::{
    engine::{
        cq::{
            Arm,
            CompletionQueue,
            CqEvents,
            Failure,
            InvalidModeration,
            MissedEvents, //
        },
        work::{
            Completion,
            Extra,
            Operation, //
        }, //
    },
    rdma::{
        CqInit,
        CqOperations,
        CqUpcall,
        Notify,
        QpCookie,
        Wc,
        WcExtra,
        WcOpcode,
        WcStatus,
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

    fn failed(&self, _failure: Failure) {
        self.upcall.error();
    }
}

impl CqOperations<Verbs> for Arc<CompletionQueue> {
    /// Makes a queue without moderation. A handler of the consumer's own is called on the CPU of
    /// its vector, that of ib_core's polling where the entry comes.
    fn create(device: &Device<Verbs>, init: &CqInit, upcall: CqUpcall) -> Result<(Self, u32)> {
        if init.entries == 0 || init.entries > MAX_CQ_ENTRIES {
            return Err(EINVAL);
        }
        let polled = init.polled;
        let events = KBox::new(Handler { upcall, polled }, GFP_KERNEL)?;
        let engine = device.device().clone();
        let cpu = device.processor_of(init.comp_vector);
        let queue = CompletionQueue::new(engine, init.entries, cpu, events)?;
        let depth = queue.depth();
        Ok((queue, depth))
    }

    fn modify(&self, count: u16, period_us: u16) -> Result {
        let moderated = self.moderate(u32::from(period_us), u32::from(count));
        moderated.map_err(|InvalidModeration| EINVAL)
    }

    fn pre_destroy(&self) {
        self.end_calls();
    }

    fn destroy(&self) {
        self.close();
    }

    fn poll(&self, out: &mut WcWriter<'_>) {
        (**self).poll(out.room(), |entry| {
            // `poll` takes no more entries than there is room for.
            let _ = out.push(&wc(&entry));
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

fn wc(entry: &Completion) -> Wc {
    Wc {
        wr_id: entry.context,
        status: status(entry.status, entry.operation),
        opcode: opcode(entry.operation),
        byte_len: entry.length,
        qp: QpCookie::from_raw(entry.qp),
        extra: match entry.extra {
            Extra::Nothing => WcExtra::None,
            Extra::Immediate(data) => WcExtra::Imm(data),
            Extra::Invalidate(token) => WcExtra::Invalidated(token.raw()),
        },
        vendor_err: match entry.status {
            Status::Success => 0,
            status => status.ntstatus(),
        },
    }
}

const fn status(status: Status, operation: Operation) -> WcStatus {
    match status {
        Status::Success => WcStatus::Success,
        Status::Flushed | Status::Aborted => WcStatus::WrFlush,
        Status::LocalLength | Status::ReceiveLength => WcStatus::LocLen,
        Status::LocalOperation | Status::ReceiveInvalidation => WcStatus::LocQpOp,
        Status::LocalAccess => WcStatus::LocProt,
        Status::Bind => WcStatus::MwBind,
        Status::RemoteAccess => WcStatus::RemAccess,
        Status::RemoteInvalidRequest => WcStatus::RemInvReq,
        Status::RemoteOperation => WcStatus::RemOp,
        Status::ReceiverNotReady => WcStatus::RnrRetryExc,
        Status::Timeout | Status::Refused | Status::Unreachable => match operation {
            Operation::Receive | Operation::ReceiveWrite => WcStatus::RespTimeout,
            _ => WcStatus::RetryExc,
        },
        Status::Fatal => WcStatus::Fatal,
    }
}

const fn opcode(operation: Operation) -> WcOpcode {
    match operation {
        Operation::Send => WcOpcode::Send,
        Operation::Write => WcOpcode::Write,
        Operation::Read => WcOpcode::Read,
        Operation::FetchAdd => WcOpcode::FetchAdd,
        Operation::CompareSwap => WcOpcode::CompSwap,
        Operation::Register => WcOpcode::RegMr,
        Operation::Invalidate => WcOpcode::LocalInv,
        // The verbs face binds no windows; the engine's other faces do.
        Operation::Bind => WcOpcode::LocalInv,
        Operation::Receive => WcOpcode::Recv,
        Operation::ReceiveWrite => WcOpcode::RecvWithImm,
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_verbs_cq)]
mod tests {
    use super::*;

    use crate::ndk::status::NtStatus;

    #[test]
    fn ndk_face_01_what_is_cancelled_is_a_flush_error_of_verbs() {
        assert!(status(Status::Flushed, Operation::Send) == WcStatus::WrFlush);
        assert!(NtStatus::of(Status::Flushed) == NtStatus::CANCELLED);
    }

    #[test]
    fn ndk_face_15_the_mapping_to_verbs_merges_what_ndk_distinguishes() {
        // Pairs that are one status in verbs and two here: no way leads back.
        for (one, other) in [
            (Status::LocalLength, Status::ReceiveLength),
            (Status::Flushed, Status::Aborted),
            (Status::Timeout, Status::Refused),
        ] {
            assert!(status(one, Operation::Send) == status(other, Operation::Send));
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
        for one in all {
            let entry = Completion {
                status: one,
                ..Completion::BLANK
            };
            let wc = wc(&entry);
            assert!((wc.status == WcStatus::Success) == one.is_success());
            assert!(wc.vendor_err == one.ntstatus());
            // CAST: the bits stay.
            assert!(NtStatus::of(one).raw() == one.ntstatus() as i32);
        }
    }
}
