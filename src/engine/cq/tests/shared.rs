// SPDX-License-Identifier: GPL-2.0

//! Queues whose entries a program takes by itself.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::queue_and_host;
use crate::{
    engine::cq::ProgramCompletions,
    kunit::{
        harness::EngineHost,
        queues::Queue, //
    },
    rdma::values::completion::Wc,
    sys::shared::{
        tests::{
            completions,
            Program, //
        },
        CompletionWords, //
    }, //
};

/// An entry as the program of a test knows it: its context.
fn words(entry: &Wc, _qp: u32) -> CompletionWords {
    let mut words = CompletionWords::default();
    // CAST: the contexts of a test are small.
    words[0] = entry.context.raw() as u32;
    words
}

/// A queue by itself for `depth` entries, of a program.
fn shared(depth: u32) -> Result<(Arc<Queue>, Program, EngineHost)> {
    let (queue, engine_host) = queue_and_host(0)?;
    let (ring, program) = completions(depth)?;
    queue.cq.share(ProgramCompletions::new(ring, words))?;
    Ok((queue, program, engine_host))
}

#[kernel::macros::kunit_tests(ndk_engine_cq_tests_shared)]
mod tests {
    use super::*;

    use crate::{
        engine::{
            cq::{
                tests::{
                    sent,
                    FAILED,
                    RECEIVE,
                    SENT, //
                },
                Arm,
                MissedEvents, //
            },
            ring::ResizeError, //
        },
        kunit::harness::cases, //
    };

    #[test]
    fn the_program_finds_entries_where_a_poll_finds_none() -> Result {
        let (queue, program, _engine_host) = shared(3)?;
        assert!(queue.cq.is_shared());
        kunit_assert_eq!(queue.cq.depth(), 3);
        for context in cases(0..20u32) {
            assert!(queue.cq.push(&sent(context.into())).is_ok());
            assert!(queue.poll().is_none());
            kunit_assert_eq!(queue.cq.details().used, 1);
            kunit_assert_eq!(program.poll(3), Some(context));
        }
        assert!(program.poll(3).is_none());
        Ok(())
    }

    #[test]
    fn an_arm_is_satisfied_and_the_entry_that_finds_no_room_breaks_the_queue() -> Result {
        let (queue, program, _engine_host) = shared(2)?;
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        assert!(queue.cq.push(&RECEIVE).is_ok());
        assert!(queue.has_called(1));
        assert!(queue.cq.push(&SENT).is_ok());
        assert!(queue.has_called(1));
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        assert!(queue.cq.push(&SENT).is_err());
        assert!(queue.has_called(2));
        assert!(queue.cq.has_failed());
        // Its entries stay readable.
        assert!(program.poll(2).is_some());
        assert!(program.poll(2).is_some());
        assert!(program.poll(2).is_none());
        assert!(queue.cq.push(&SENT).is_err());
        Ok(())
    }

    #[test]
    fn a_held_call_is_made_when_the_programs_queue_is_full() -> Result {
        let (queue, program, _engine_host) = shared(3)?;
        assert!(queue.cq.moderate(u32::MAX, 3).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        assert!(queue.cq.push(&SENT).is_ok());
        assert!(queue.cq.push(&SENT).is_ok());
        assert!(queue.has_called(0));
        assert!(queue.cq.push(&SENT).is_ok());
        assert!(queue.has_called(1));
        assert!(program.poll(3).is_some());
        Ok(())
    }

    #[test]
    fn what_the_program_has_taken_does_not_count_however_much_it_is() -> Result {
        let (queue, program, _engine_host) = shared(3)?;
        queue.cq.inner.lock().unreported = u32::MAX;
        for _ in 0..5 {
            assert!(queue.cq.push(&FAILED).is_ok());
            assert!(program.poll(3).is_some());
        }
        assert!(queue.cq.moderate(u32::MAX, 3).is_ok());
        queue.cq.arm(Arm::Any, MissedEvents::Ignore);
        // The taken entries and their failure do not make this entry call at once.
        assert!(queue.cq.push(&SENT).is_ok());
        assert!(queue.has_called(0));
        assert!(program.poll(3).is_some());
        assert!(queue.cq.push(&FAILED).is_ok());
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn what_was_not_taken_moves_to_a_queue_of_another_size() -> Result {
        let (queue, old, _engine_host) = shared(300)?;
        for context in cases(0..250u32) {
            assert!(queue.cq.push(&sent(context.into())).is_ok());
            assert!(context >= 50 || old.poll(300) == Some(context));
        }
        // `resize` is not for a queue that a program shares.
        kunit_assert_eq!(queue.cq.resize(500), Err(ResizeError::TooMany));
        let (small, _) = completions(199)?;
        kunit_assert_eq!(queue.cq.resize_shared(small), Err(ResizeError::TooMany));
        assert!(queue.cq.push(&sent(250)).is_ok());
        kunit_assert_eq!(queue.cq.depth(), 300);
        let (ring, program) = completions(202)?;
        kunit_assert_eq!(queue.cq.resize_shared(ring), Ok(()));
        kunit_assert_eq!(queue.cq.depth(), 202);
        assert!(queue.cq.push(&sent(251)).is_ok());
        for context in cases(50..252) {
            kunit_assert_eq!(program.poll(202), Some(context));
        }
        assert!(program.poll(202).is_none());
        // The old memory is not read any more.
        old.set(1, u32::MAX);
        assert!(queue.cq.push(&sent(252)).is_ok());
        kunit_assert_eq!(queue.cq.details().used, 1);
        kunit_assert_eq!(program.poll(202), Some(252));
        Ok(())
    }

    #[test]
    fn a_queue_that_no_program_shares_is_not_resized_as_one() -> Result {
        let (queue, _engine_host) = queue_and_host(4)?;
        let (ring, _) = completions(8)?;
        assert!(!queue.cq.is_shared());
        kunit_assert_eq!(queue.cq.resize_shared(ring), Err(ResizeError::TooMany));
        Ok(())
    }
}
