// SPDX-License-Identifier: GPL-2.0

//! Messages that find no receive: they wait, and not for ever.

use kernel::prelude::*;

use crate::{
    direct,
    kunit::harness::{
        Bench,
        Plan, //
    }, //
};

/// Two ends between which a message waits no longer than `ms` milliseconds.
fn impatient(ms: u32) -> Result<Bench> {
    Bench::over(direct::connect, ms, &Plan::PLAIN, &Plan::PLAIN)
}

#[kernel::macros::kunit_tests(ndk_direct_tests_rnr)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            counters::Counter,
            qp::state::State,
            status::Status, //
        },
        kunit::{
            harness::{
                same,
                sleep, //
            },
            requests::*, //
        },
        sys::time::now_ms, //
    };

    #[test]
    fn a_receive_posted_late_is_in_time() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.a.filled(40, 31)?, bench.b.buffer(40)?);
        bench.a.post(1, SEND, &[source.whole()])?;
        assert!(bench.a.sends.is_silent());
        bench.b.receive(2, &[sink.whole()])?;
        assert!(bench.a.sends.brings(1, Status::Success));
        assert!(bench.b.receives.brings(2, Status::Success));
        assert!(sink.holds(0, 40, 31, 0));
        assert!(same(bench.a.counted(Counter::RnrWaits), 1));
        assert!(same(bench.a.counted(Counter::RnrTimeouts), 0));
        Ok(())
    }

    #[test]
    fn a_wait_in_vain_ends_both_sides() -> Result {
        let bench = impatient(200)?;
        let sink = bench.b.buffer(40)?;
        let begin = now_ms();
        bench.a.post(1, SEND, &[])?;
        bench.a.post(2, write(sink.remote(0)), &[])?;
        assert!(bench.a.sends.brings(1, Status::ReceiverNotReady));
        // Later where the machine is slow, and not by orders.
        assert!((200..5000).contains(&(now_ms() - begin)));
        assert!(bench.a.sends.brings(2, Status::Flushed));
        assert!(bench.is_down() && bench.b.receives.is_silent());
        // Too late.
        bench.b.receive(3, &[sink.whole()])?;
        assert!(bench.b.receives.brings(3, Status::Flushed));
        assert!(same(bench.a.counted(Counter::RnrTimeouts), 1));
        Ok(())
    }

    #[test]
    fn a_wait_is_as_long_as_the_host_says_and_ends_with_its_receive() -> Result {
        let bench = impatient(2000)?;
        for round in 0..3 {
            bench.a.post(round, SEND, &[])?;
            sleep(150);
            assert!(bench.a.qp.state() == State::Connected);
            bench.b.receive(round, &[])?;
            assert!(bench.a.sends.brings(round, Status::Success));
        }
        // The timer of an earlier wait must not end anything now.
        sleep(2200);
        assert!(bench.a.qp.state() == State::Connected);
        bench.b.receive(9, &[])?;
        bench.a.post(9, SEND, &[])?;
        assert!(bench.a.sends.brings(9, Status::Success));
        assert!(same(bench.a.counted(Counter::RnrWaits), 3));
        Ok(())
    }

    #[test]
    fn a_wait_ends_when_its_time_is_over_and_not_long_after() -> Result {
        let bench = impatient(1000)?;
        bench.a.post(1, SEND, &[])?;
        // By another clock than the transport's: what holds that up makes this sleep longer, too.
        sleep(1700);
        assert!(same(bench.a.counted(Counter::RnrTimeouts), 1));
        assert!(bench.a.sends.brings(1, Status::ReceiverNotReady));
        Ok(())
    }

    #[test]
    fn requests_behind_a_message_that_waits_keep_their_place() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.a.filled(8, 32)?, bench.b.buffer(8)?);
        bench.a.post(1, SEND, &[])?;
        bench.a.post(2, write(sink.remote(0)), &[source.whole()])?;
        assert!(bench.a.sends.is_silent() && sink.is_blank(0, 8));
        bench.b.receive(3, &[])?;
        assert!(bench.a.sends.brings_all(1..3, Status::Success));
        assert!(sink.holds(0, 8, 32, 0));
        Ok(())
    }

    #[test]
    fn a_message_that_waits_does_not_hold_up_the_other_direction() -> Result {
        let bench = Bench::new()?;
        bench.a.post(1, SEND, &[])?;
        bench.a.receive(2, &[])?;
        bench.b.post(3, SEND, &[])?;
        assert!(bench.b.sends.brings(3, Status::Success));
        assert!(bench.a.receives.brings(2, Status::Success));
        assert!(bench.a.sends.is_silent());
        Ok(())
    }

    #[test]
    fn a_write_with_immediate_data_waits_with_its_bytes_in_place() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.a.filled(8, 33)?, bench.b.buffer(8)?);
        bench
            .a
            .post(1, write_immediate(sink.remote(0), 5), &[source.whole()])?;
        assert!(bench.a.sends.is_silent() && sink.holds(0, 8, 33, 0));
        bench.b.receive(2, &[])?;
        assert!(bench.a.sends.brings(1, Status::Success));
        assert!(bench.b.receives.brings(2, Status::Success));
        Ok(())
    }

    #[test]
    fn each_of_several_messages_waits_for_its_own_receive() -> Result {
        let bench = Bench::new()?;
        for context in 0..5 {
            bench.a.post(context, SEND, &[])?;
        }
        for context in 0..5 {
            bench.b.receive(context, &[])?;
            assert!(bench.b.receives.brings(context, Status::Success));
            assert!(bench.a.sends.brings(context, Status::Success));
            assert!(bench.a.sends.is_silent());
        }
        assert!(same(bench.a.counted(Counter::RnrWaits), 5));
        Ok(())
    }

    #[test]
    fn a_message_that_waits_is_flushed_when_either_side_ends() -> Result {
        for peer_ends in [false, true] {
            let bench = Bench::new()?;
            bench.a.post(1, SEND, &[])?;
            match peer_ends {
                true => bench.b.qp.fail(),
                false => bench.a.qp.fail(),
            }
            assert!(bench.a.sends.brings(1, Status::Flushed));
            assert!(bench.is_down());
        }
        Ok(())
    }
}
