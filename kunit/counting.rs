// SPDX-License-Identifier: GPL-2.0

//! Counters: each one moves at its event, at the device of the event, and at no other time.

use kernel::prelude::*;

use super::harness::{
    flush_work,
    End, //
};
use crate::engine::counters::{
    self,
    Counter, //
};

/// The counters of one device at one time.
struct Mark([u64; counters::COUNT]);

impl Mark {
    fn new(end: &End) -> Self {
        flush_work(end.device());
        let mut values = [0; counters::COUNT];
        for (index, value) in values.iter_mut().enumerate() {
            *value = end.device().counted(index);
        }
        Self(values)
    }

    /// Returns true if exactly the counters of `by` have moved since, by those amounts; moves on to
    /// the present.
    ///
    /// The passes of a transport are not checked: their number depends on the order of the callers.
    fn moved(&mut self, end: &End, by: &[(Counter, u64)]) -> bool {
        let now = Self::new(end);
        let old = core::mem::replace(self, now);
        let mut fine = true;
        for (index, (new, old)) in self.0.iter().zip(old.0).enumerate() {
            // CAST: a variant's number is an index.
            let named = by.iter().find(|(counter, _)| *counter as usize == index);
            let want = named.map_or(0, |(_, n)| *n);
            let name = counters::NAMES.get(index);
            if index != Counter::Passes as usize && new - old != want {
                kunit_note!("{:?} moved by {} and not {}", name, new - old, want);
                fine = false;
            }
        }
        fine
    }
}

#[kernel::macros::kunit_tests(ndk_kunit_counting)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            counters::Counter::*,
            cq::{
                Arm,
                MissedEvents, //
            }, //
        },
        kunit::{
            buffer::ALL,
            harness::{
                cases,
                connect_pair,
                runs_over_tcp,
                wait_until,
                EndAttr,
                QpPair, //
            },
            requests::*, //
        },
        rdma::values::{
            access::AccessFlags,
            status::Status,
            work::SendOp, //
        },
        sys::clock::StoppedClock, //
    };

    /// A pair and the marks of its two ends.
    fn marked() -> Result<(QpPair, Mark, Mark)> {
        let qp_pair = QpPair::new()?;
        let marks = (Mark::new(&qp_pair.a), Mark::new(&qp_pair.b));
        Ok((qp_pair, marks.0, marks.1))
    }

    #[test]
    fn traffic_is_counted_where_it_leaves_and_where_it_comes() -> Result {
        let (qp_pair, mut a, mut b) = marked()?;
        let (near, far) = (qp_pair.a.buffer(100)?, qp_pair.b.buffer(100)?);
        for context in cases([1, 2]) {
            qp_pair.b.receive(context, &[far.whole()])?;
        }
        qp_pair.a.post(1, SEND, &[near.sge(0, 30)])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(a.moved(&qp_pair.a, &[(Sends, 1), (BytesOut, 30)]));
        assert!(b.moved(&qp_pair.b, &[(Receives, 1), (BytesIn, 30)]));
        qp_pair
            .a
            .post(2, write(far.remote(0)), &[near.sge(0, 40)])?;
        assert!(qp_pair.a.sends.next_is(2, Status::Success));
        assert!(a.moved(&qp_pair.a, &[(Writes, 1), (BytesOut, 40)]));
        assert!(b.moved(&qp_pair.b, &[(BytesIn, 40)]));
        qp_pair
            .a
            .post(3, write_immediate(far.remote(0), 0), &[near.sge(0, 5)])?;
        assert!(qp_pair.a.sends.next_is(3, Status::Success));
        assert!(a.moved(&qp_pair.a, &[(Writes, 1), (BytesOut, 5)]));
        assert!(b.moved(&qp_pair.b, &[(Receives, 1), (BytesIn, 5)]));
        qp_pair.a.post(4, read(far.remote(0)), &[near.sge(0, 50)])?;
        assert!(qp_pair.a.sends.next_is(4, Status::Success));
        assert!(a.moved(&qp_pair.a, &[(Reads, 1), (BytesIn, 50)]));
        assert!(b.moved(&qp_pair.b, &[(BytesOut, 50)]));
        let at = far.remote(0);
        qp_pair
            .a
            .post(5, SendOp::FetchAdd { at, add: 1 }, &[near.sge(0, 8)])?;
        assert!(qp_pair.a.sends.next_is(5, Status::Success));
        assert!(a.moved(&qp_pair.a, &[(Atomics, 1), (BytesIn, 8)]));
        assert!(b.moved(&qp_pair.b, &[(BytesOut, 8)]));
        Ok(())
    }

    #[test]
    fn registrations_and_invalidations_are_counted_by_their_kind() -> Result {
        let (qp_pair, mut a, mut b) = marked()?;
        let memory = qp_pair.b.fast(64)?;
        let token = memory.token();
        let make = |context| {
            qp_pair.b.post(context, register(token, 64, ALL), &[])?;
            qp_pair.b.sends.next().ok_or(EIO)
        };
        make(1)?;
        assert!(b.moved(&qp_pair.b, &[(Registrations, 1)]));
        qp_pair.b.post(2, invalidate(token), &[])?;
        assert!(qp_pair.b.sends.next_is(2, Status::Success));
        assert!(b.moved(&qp_pair.b, &[(InvalidationsLocal, 1)]));
        make(3)?;
        qp_pair.b.receive(1, &[])?;
        qp_pair.a.post(1, send_invalidate(token), &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        let by = [(Registrations, 1), (InvalidationsRemote, 1), (Receives, 1)];
        assert!(b.moved(&qp_pair.b, &by));
        assert!(a.moved(&qp_pair.a, &[(Sends, 1)]));
        qp_pair.b.post(4, invalidate(token), &[])?;
        assert!(qp_pair.b.sends.next_is(4, Status::LocalOperation));
        assert!(qp_pair.is_down());
        assert!(b.moved(&qp_pair.b, &[(InvalidationsRefused, 1), (Disconnects, 1)]));
        assert!(a.moved(&qp_pair.a, &[(Disconnects, 1)]));
        Ok(())
    }

    #[test]
    fn refusals_and_flushes_are_counted_where_they_happen() -> Result {
        let (qp_pair, mut a, mut b) = marked()?;
        let far = qp_pair.b.buffer_with(8, AccessFlags::empty())?;
        qp_pair.b.receive(1, &[])?;
        qp_pair.b.receive(2, &[])?;
        qp_pair
            .a
            .post(1, write(far.remote(0)), &[qp_pair.a.buffer(8)?.whole()])?;
        qp_pair.a.post(2, SEND, &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::RemoteAccess));
        assert!(qp_pair.a.sends.next_is(2, Status::Flushed));
        assert!(qp_pair.is_down());
        assert!(a.moved(&qp_pair.a, &[(Flushes, 1), (Disconnects, 1)]));
        let by = [(AccessRefused, 1), (Flushes, 2), (Disconnects, 1)];
        assert!(b.moved(&qp_pair.b, &by));
        Ok(())
    }

    #[test]
    fn a_message_that_waits_counts_once_however_long() -> Result {
        let (clock, plain) = (StoppedClock::new(), &EndAttr::PLAIN);
        let qp_pair = QpPair::over(connect_pair, 40, plain, plain)?;
        // The waits are counted at the end of the messages, over TCP at that of the receives.
        let (end, done) = match runs_over_tcp() {
            true => (&qp_pair.b, Receives),
            false => (&qp_pair.a, Sends),
        };
        let mut mark = Mark::new(end);
        qp_pair.a.post(1, SEND, &[])?;
        qp_pair.a.post_with(2, SEND, SOLICITED, &[])?;
        assert!(wait_until(|| qp_pair.counted(RnrWaits) == 1));
        assert!(mark.moved(end, &[(RnrWaits, 1)]));
        qp_pair.b.receive(1, &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(wait_until(|| qp_pair.counted(RnrWaits) == 2));
        flush_work(qp_pair.a.device());
        clock.pass(41);
        assert!(qp_pair.a.sends.next_is(2, Status::ReceiverNotReady));
        let by = [(RnrWaits, 1), (RnrTimeouts, 1), (done, 1), (Disconnects, 1)];
        assert!(mark.moved(end, &by));
        Ok(())
    }

    #[test]
    fn calls_are_counted_by_the_arm_that_caused_them() -> Result {
        for (arm, counter) in cases([(Arm::Any, NotifyAny), (Arm::Solicited, NotifySolicited)]) {
            let (qp_pair, _, mut b) = marked()?;
            for context in cases(0..2) {
                qp_pair.b.receive(context, &[])?;
                qp_pair.b.receives.cq.arm(arm, MissedEvents::Ignore);
                qp_pair.a.post_with(context, SEND, SOLICITED, &[])?;
                assert!(qp_pair.b.receives.next_is(context, Status::Success));
                assert!(qp_pair.a.sends.next_is(context, Status::Success));
                assert!(b.moved(&qp_pair.b, &[(counter, 1), (Receives, 1)]));
            }
        }
        Ok(())
    }

    #[test]
    fn an_overflow_counts_for_the_arm_for_errors() -> Result {
        let mut attr = EndAttr::PLAIN;
        attr.receive_entries = 1;
        let qp_pair = QpPair::with(&EndAttr::PLAIN, &attr)?;
        let mut b = Mark::new(&qp_pair.b);
        qp_pair.b.receives.cq.arm(Arm::Errors, MissedEvents::Ignore);
        for context in cases(0..2) {
            qp_pair.b.receive(context, &[])?;
            qp_pair.a.post(context, SEND, &[])?;
        }
        assert!(qp_pair.is_down());
        assert!(qp_pair.b.receives.has_called(1));
        let by = [
            (NotifyErrors, 1),
            (CqOverflows, 1),
            (Receives, 2),
            (Disconnects, 1),
        ];
        assert!(b.moved(&qp_pair.b, &by));
        Ok(())
    }
}
