// SPDX-License-Identifier: GPL-2.0

//! Calls that wait for more because that has been found to be worth it, on a whole queue.

#[kernel::macros::kunit_tests(ndk_lulls)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        engine::{
            cq::{
                Arm,
                IfPresent, //
            },
            work::{
                Completion,
                Operation, //
            }, //
        },
        kunit::{
            cq::{
                alone,
                empty,
                overflow,
                FAILED,
                RECEIVE,
                SENT, //
            },
            harness::{
                sleep,
                wait_until,
                Lab, //
            },
            queues::Queue, //
        },
        sys::softirq::BhDisabled, //
    };

    const READ: Completion = Completion {
        operation: Operation::Read,
        ..SENT
    };

    /// More calls than are prompt at the beginning.
    const FIRST: u32 = 70;

    fn with_lulls(depth: u32) -> Result<(Arc<Queue>, Lab)> {
        let (queue, lab) = alone(depth)?;
        queue.cq.allow_lulls();
        Ok((queue, lab))
    }

    /// Arms, and adds these entries; one call has to come.
    fn told(queue: &Queue, entries: &[Completion], calls: &mut u32) -> bool {
        queue.cq.arm(Arm::Any, IfPresent::Wait);
        let taken = entries.iter().all(|e| queue.cq.push(*e).is_ok());
        *calls += 1;
        taken && called(queue, *calls) && empty(queue) == entries.len()
    }

    /// Whether the queue calls, soon, until it has that often, and no more.
    fn called(queue: &Queue, times: u32) -> bool {
        wait_until(|| queue.log.calls.get() >= times) && queue.has_called(times)
    }

    /// Returns true if each arm is notified once, with so many arms for each kind of entry.
    fn all_told(each: u32) -> Result<bool> {
        let (queue, _lab) = with_lulls(32)?;
        let mut calls = 0;
        let cases: [&[Completion]; 7] = [
            &[SENT],
            &[RECEIVE],
            &[READ],
            &[SENT, RECEIVE],
            &[RECEIVE, RECEIVE, SENT],
            &[SENT, FAILED],
            &[RECEIVE; 20],
        ];
        let all = cases
            .into_iter()
            .all(|case| (0..each).all(|_| told(&queue, case, &mut calls)));
        Ok(all && called(&queue, calls))
    }

    #[test]
    fn every_arm_is_told_once_whatever_comes() -> Result {
        // Together enough for calls that wait.
        assert!(all_told(FIRST / 4)?);
        Ok(())
    }

    #[test]
    fn every_arm_is_told_once_for_long() -> Result {
        assert!(all_told(2 * FIRST)?);
        Ok(())
    }

    #[test]
    fn an_arm_that_comes_while_a_call_waits_is_told_by_that_call() -> Result {
        let (queue, _lab) = with_lulls(32)?;
        let mut calls = 0;
        for _ in 0..FIRST {
            assert!(told(&queue, &[SENT], &mut calls));
        }
        for _ in 0..20 {
            queue.cq.arm(Arm::Any, IfPresent::Wait);
            assert!(queue.cq.push(SENT).is_ok());
            queue.cq.arm(Arm::Any, IfPresent::Wait);
            assert!(queue.cq.push(SENT).is_ok());
            // The second may have come after the call for the first.
            let before = calls;
            assert!(wait_until(|| queue.log.calls.get() > before));
            sleep(5);
            calls = queue.log.calls.get();
            assert!(calls <= before + 2 && empty(&queue) == 2);
        }
        assert!(told(&queue, &[FAILED], &mut calls));
        Ok(())
    }

    /// Returns true if the failure of a queue is notified after so many calls.
    fn is_failure_told(after: u32) -> Result<bool> {
        let (queue, _lab) = with_lulls(4)?;
        let mut calls = 0;
        let all = (0..after).all(|_| told(&queue, &[SENT], &mut calls));
        queue.cq.arm(Arm::Any, IfPresent::Wait);
        Ok(all
            && queue.cq.push(SENT).is_ok()
            && overflow(&queue, 3)
            && called(&queue, calls + 1)
            && queue.cq.has_failed())
    }

    #[test]
    fn a_queue_that_fails_is_told_of_while_a_call_waits() -> Result {
        // The first call is prompt.
        assert!(is_failure_told(0)? && is_failure_told(2 * FIRST)?);
        Ok(())
    }

    #[test]
    fn a_queue_that_fails_is_told_of_whenever_it_does() -> Result {
        for round in 0..FIRST {
            assert!(is_failure_told(2 * round)?);
        }
        Ok(())
    }

    /// Whether no call comes of a queue that is closed after so many of them.
    fn is_silent_when_closed(entry: Completion, after: u32) -> Result<bool> {
        let (queue, _lab) = with_lulls(4)?;
        let mut calls = 0;
        let all = (0..after).all(|_| told(&queue, &[entry], &mut calls));
        queue.cq.arm(Arm::Any, IfPresent::Wait);
        let pushed = queue.cq.push(entry).is_ok();
        queue.cq.close();
        let closed = queue.log.calls.get();
        sleep(2);
        Ok(all && pushed && closed <= calls + 1 && queue.log.calls.get() == closed)
    }

    #[test]
    fn a_queue_is_closed_while_a_call_waits() -> Result {
        assert!(is_silent_when_closed(SENT, FIRST)? && is_silent_when_closed(RECEIVE, FIRST)?);
        Ok(())
    }

    #[test]
    fn a_queue_is_closed_whenever_it_is() -> Result {
        for entry in [SENT, RECEIVE] {
            for round in 0..20 {
                assert!(is_silent_when_closed(entry, FIRST + round)?);
            }
        }
        Ok(())
    }

    /// Arms, adds a receive, and says whether the call for it waits.
    fn waits(queue: &Queue) -> Result<bool> {
        // The timer is not armed any more.
        sleep(5);
        // And neither it nor the thread comes between.
        let _section = BhDisabled::enter().ok_or(EPERM)?;
        queue.cq.arm(Arm::Any, IfPresent::Wait);
        let pushed = queue.cq.push(RECEIVE);
        let waits = queue.cq.is_waiting();
        pushed.map(|()| waits).map_err(|_| EIO)
    }

    #[test]
    fn the_call_for_a_receive_behind_a_long_message_does_not_wait() -> Result {
        let (queue, _lab) = with_lulls(32)?;
        let mut calls = 0;
        // Several at a time: that makes the next ones wait.
        for _ in 0..FIRST {
            assert!(told(&queue, &[RECEIVE; 8], &mut calls));
        }
        for long in [false, true, true, false] {
            if long {
                queue.cq.long_message();
            }
            assert!(waits(&queue)? != long);
            calls += 1;
            assert!(called(&queue, calls) && empty(&queue) == 1);
            assert!(told(&queue, &[RECEIVE; 8], &mut calls));
            // Whatever was learnt from the one alone.
            for _ in 0..FIRST {
                assert!(told(&queue, &[RECEIVE; 8], &mut calls));
            }
        }
        Ok(())
    }

    #[test]
    fn moderation_ends_a_wait() -> Result {
        let (queue, _lab) = with_lulls(32)?;
        let mut calls = 0;
        for _ in 0..20 {
            for _ in 0..FIRST {
                assert!(told(&queue, &[SENT], &mut calls));
            }
            queue.cq.arm(Arm::Any, IfPresent::Wait);
            assert!(queue.cq.push(SENT).is_ok());
            // For ever, or until eight are there.
            assert!(queue.cq.moderate(u32::MAX, 8).is_ok());
            calls += 1;
            assert!(called(&queue, calls) && empty(&queue) == 1);
            assert!(told(&queue, &[RECEIVE; 8], &mut calls));
            assert!(queue.cq.moderate(0, 0).is_ok());
        }
        Ok(())
    }
}
