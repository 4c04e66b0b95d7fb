// SPDX-License-Identifier: GPL-2.0

//! Counters: each one moves when its thing happens, at the device where it happens, and else not.

use kernel::prelude::*;

use super::harness::{
    settle,
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
        settle(end.device());
        let mut values = [0; counters::COUNT];
        for (index, value) in values.iter_mut().enumerate() {
            *value = end.device().counted(index);
        }
        Self(values)
    }

    /// Returns true if exactly these counters have moved since, by so much; moves on to the
    /// present.
    ///
    /// How many passes a transport makes is not looked at: that depends on who comes when.
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
                pr_err!("{:?} moved by {} and not {}\n", name, new - old, want);
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
        direct,
        engine::{
            counters::Counter::*,
            cq::{
                Arm,
                MissedEvents, //
            },
            memory::rights::Rights,
            status::Status,
            work::Work, //
        },
        kunit::{
            buffer::ALL,
            harness::{
                Bench,
                Plan, //
            },
            requests::*, //
        }, //
    };

    /// A bench and the marks of its two ends.
    fn marked() -> Result<(Bench, Mark, Mark)> {
        let bench = Bench::new()?;
        let marks = (Mark::new(&bench.a), Mark::new(&bench.b));
        Ok((bench, marks.0, marks.1))
    }

    #[test]
    fn traffic_is_counted_where_it_leaves_and_where_it_comes() -> Result {
        let (bench, mut a, mut b) = marked()?;
        let (near, far) = (bench.a.buffer(100)?, bench.b.buffer(100)?);
        for context in [1, 2] {
            bench.b.receive(context, &[far.whole()])?;
        }
        bench.a.post(1, SEND, &[near.sge(0, 30)])?;
        assert!(bench.a.sends.brings(1, Status::Success));
        assert!(a.moved(&bench.a, &[(Sends, 1), (BytesOut, 30)]));
        assert!(b.moved(&bench.b, &[(Receives, 1), (BytesIn, 30)]));
        bench.a.post(2, write(far.remote(0)), &[near.sge(0, 40)])?;
        assert!(bench.a.sends.brings(2, Status::Success));
        assert!(a.moved(&bench.a, &[(Writes, 1), (BytesOut, 40)]));
        assert!(b.moved(&bench.b, &[(BytesIn, 40)]));
        bench
            .a
            .post(3, write_immediate(far.remote(0), 0), &[near.sge(0, 5)])?;
        assert!(bench.a.sends.brings(3, Status::Success));
        assert!(a.moved(&bench.a, &[(Writes, 1), (BytesOut, 5)]));
        assert!(b.moved(&bench.b, &[(Receives, 1), (BytesIn, 5)]));
        bench.a.post(4, read(far.remote(0)), &[near.sge(0, 50)])?;
        assert!(bench.a.sends.brings(4, Status::Success));
        assert!(a.moved(&bench.a, &[(Reads, 1), (BytesIn, 50)]));
        assert!(b.moved(&bench.b, &[(BytesOut, 50)]));
        let at = far.remote(0);
        bench
            .a
            .post(5, Work::FetchAdd { at, add: 1 }, &[near.sge(0, 8)])?;
        assert!(bench.a.sends.brings(5, Status::Success));
        assert!(a.moved(&bench.a, &[(Atomics, 1), (BytesIn, 8)]));
        assert!(b.moved(&bench.b, &[(BytesOut, 8)]));
        Ok(())
    }

    #[test]
    fn registrations_and_invalidations_are_counted_by_their_kind() -> Result {
        let (bench, mut a, mut b) = marked()?;
        let memory = bench.b.fast(64)?;
        let token = memory.token();
        let make = |context| {
            bench.b.post(context, register(token, 64, ALL), &[])?;
            bench.b.sends.next().ok_or(EIO)
        };
        make(1)?;
        assert!(b.moved(&bench.b, &[(Registrations, 1)]));
        bench.b.post(2, invalidate(token), &[])?;
        assert!(bench.b.sends.brings(2, Status::Success));
        assert!(b.moved(&bench.b, &[(InvalidationsLocal, 1)]));
        make(3)?;
        bench.b.receive(1, &[])?;
        bench.a.post(1, send_invalidate(token), &[])?;
        assert!(bench.a.sends.brings(1, Status::Success));
        let by = [(Registrations, 1), (InvalidationsRemote, 1), (Receives, 1)];
        assert!(b.moved(&bench.b, &by) && a.moved(&bench.a, &[(Sends, 1)]));
        bench.b.post(4, invalidate(token), &[])?;
        assert!(bench.b.sends.brings(4, Status::LocalOperation));
        assert!(b.moved(&bench.b, &[(InvalidationsRefused, 1), (Disconnects, 1)]));
        assert!(a.moved(&bench.a, &[(Disconnects, 1)]));
        Ok(())
    }

    #[test]
    fn refusals_and_flushes_are_counted_where_they_happen() -> Result {
        let (bench, mut a, mut b) = marked()?;
        let far = bench.b.buffer_with(8, Rights::NONE)?;
        bench.b.receive(1, &[])?;
        bench.b.receive(2, &[])?;
        bench
            .a
            .post(1, write(far.remote(0)), &[bench.a.buffer(8)?.whole()])?;
        bench.a.post(2, SEND, &[])?;
        assert!(bench.a.sends.brings(1, Status::RemoteAccess) && bench.is_down());
        assert!(a.moved(&bench.a, &[(Flushes, 1), (Disconnects, 1)]));
        let by = [(AccessRefused, 1), (Flushes, 2), (Disconnects, 1)];
        assert!(b.moved(&bench.b, &by));
        Ok(())
    }

    #[test]
    fn a_message_that_waits_counts_once_however_long() -> Result {
        let bench = Bench::over(direct::connect, 40, &Plan::PLAIN, &Plan::PLAIN)?;
        let mut a = Mark::new(&bench.a);
        bench.a.post(1, SEND, &[])?;
        bench.a.post_with(2, SEND, SOLICITED, &[])?;
        assert!(a.moved(&bench.a, &[(RnrWaits, 1)]));
        bench.b.receive(1, &[])?;
        assert!(bench.a.sends.brings(1, Status::Success));
        assert!(bench.a.sends.brings(2, Status::ReceiverNotReady));
        let by = [
            (RnrWaits, 1),
            (RnrTimeouts, 1),
            (Sends, 1),
            (Disconnects, 1),
        ];
        assert!(a.moved(&bench.a, &by));
        Ok(())
    }

    #[test]
    fn calls_are_counted_by_the_arm_that_caused_them() -> Result {
        for (arm, counter) in [(Arm::Any, NotifyAny), (Arm::Solicited, NotifySolicited)] {
            let (bench, _, mut b) = marked()?;
            for context in 0..2 {
                bench.b.receive(context, &[])?;
                bench.b.receives.cq.arm(arm, MissedEvents::Ignore);
                bench.a.post_with(context, SEND, SOLICITED, &[])?;
                assert!(bench.b.receives.brings(context, Status::Success));
                assert!(b.moved(&bench.b, &[(counter, 1), (Receives, 1)]));
            }
        }
        Ok(())
    }

    #[test]
    fn an_overflow_counts_for_the_arm_for_errors() -> Result {
        let mut plan = Plan::PLAIN;
        plan.receive_entries = 1;
        let bench = Bench::with(&Plan::PLAIN, &plan)?;
        let mut b = Mark::new(&bench.b);
        bench.b.receives.cq.arm(Arm::Errors, MissedEvents::Ignore);
        for context in 0..2 {
            bench.b.receive(context, &[])?;
            bench.a.post(context, SEND, &[])?;
        }
        assert!(bench.is_down() && bench.b.receives.has_called(1));
        let by = [
            (NotifyErrors, 1),
            (CqOverflows, 1),
            (Receives, 2),
            (Disconnects, 1),
        ];
        assert!(b.moved(&bench.b, &by));
        Ok(())
    }
}
