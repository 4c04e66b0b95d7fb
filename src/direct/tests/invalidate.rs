// SPDX-License-Identifier: GPL-2.0

//! Invalidation through a queue: by the peer's send, by the end of a read, by a request of its own.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::{
        memory::{
            rights::Rights,
            token::Token,
            User, //
        },
        status::Status,
        work::Work, //
    },
    kunit::{
        buffer::{
            Buffer,
            ALL,
            BASE, //
        },
        harness::{
            Bench,
            End, //
        },
        requests::{
            register,
            send_invalidate, //
        }, //
    }, //
};

/// The length of all buffers here.
const LEN: usize = 64;

/// A fast-register region of `end`, valid through its queue, for everything.
fn registered(end: &End) -> Result<Arc<Buffer>> {
    let memory = end.fast(LEN)?;
    register_again(end, &memory)?;
    Ok(memory)
}

/// Makes the region valid under its first token.
fn register_again(end: &End, memory: &Buffer) -> Result {
    // CAST: widening.
    end.post(90, register(memory.token(), LEN as u64, ALL), &[])?;
    match end.sends.brings(90, Status::Success) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// A window of `end`, bound to all of `region` for the peer of its queue pair.
fn bound(end: &End, region: &Buffer) -> Result<Token> {
    let window = end.device().regions.add_window(end.domain.id(), None)?;
    let work = Work::Bind {
        window,
        region: region.token(),
        addr: BASE,
        // CAST: widening.
        len: LEN as u64,
        rights: ALL_REMOTE,
    };
    end.post(91, work, &[])?;
    match end.sends.brings(91, Status::Success) {
        true => Ok(window),
        false => Err(EIO),
    }
}

const ALL_REMOTE: Rights = Rights::REMOTE_READ.with(Rights::REMOTE_WRITE);

/// Returns true if a peer of `end` would get in under `token`.
fn is_open(end: &End, token: Token) -> bool {
    let user = User {
        qp: Some(end.qp.params.number),
        ..end.qp.local_user()
    };
    let regions = &end.device().regions;
    regions
        .access(token, user, Rights::REMOTE_READ, BASE, 1)
        .is_ok()
}

/// Returns true if a send that asks to invalidate `token` is refused, and ends the connection.
fn is_refused(bench: &Bench, token: Token) -> Result<bool> {
    bench.b.receive(1, &[])?;
    bench.b.receive(2, &[])?;
    bench.a.post(3, send_invalidate(token), &[])?;
    Ok(bench.a.sends.brings(3, Status::RemoteInvalidRequest)
        && bench.b.receives.brings(1, Status::ReceiveInvalidation)
        && bench.b.receives.brings(2, Status::Flushed)
        && bench.is_down())
}

#[kernel::macros::kunit_tests(ndk_direct_tests_invalidate)]
mod tests {
    use super::*;

    use kernel::sync::atomic::{
        ordering::{
            Acquire,
            Full, //
        },
        Atomic, //
    };

    use crate::{
        engine::{
            counters::Counter,
            cq::{
                Arm,
                MissedEvents, //
            },
            domain::Domain,
            qp::state::State,
            work::Extra, //
        },
        kunit::{
            harness::{
                same,
                settle,
                wait_until, //
            },
            requests::*, //
        }, //
    };

    #[test]
    fn a_send_takes_a_token_of_the_peer_away_and_says_which() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.a.filled(LEN, 81)?, bench.b.buffer(LEN)?);
        let memory = registered(&bench.b)?;
        bench
            .a
            .post(1, write(memory.remote(0)), &[source.sge(0, 8)])?;
        assert!(bench.a.sends.brings(1, Status::Success) && memory.holds(0, 8, 81, 0));
        bench.b.receive(2, &[sink.whole()])?;
        bench
            .a
            .post(3, send_invalidate(memory.token()), &[source.whole()])?;
        assert!(bench.a.sends.brings(3, Status::Success));
        let entry = bench
            .b
            .receives
            .next()
            .map(|e| (e.status, e.extra, e.length));
        let gone = Extra::Invalidate(memory.token());
        assert!(same(entry, Some((Status::Success, gone, LEN as u32))));
        assert!(sink.holds(0, LEN, 81, 0) && !is_open(&bench.b, memory.token()));
        assert!(same(bench.b.counted(Counter::InvalidationsRemote), 1));
        // The connection goes on, and the region may be made valid again.
        register_again(&bench.b, &memory)?;
        bench
            .a
            .post(4, write(memory.remote(8)), &[source.sge(0, 8)])?;
        assert!(bench.a.sends.brings(4, Status::Success));
        bench.b.receive(5, &[])?;
        bench.a.post(6, send_invalidate(memory.token()), &[])?;
        assert!(bench.a.sends.brings(6, Status::Success));
        bench
            .a
            .post(7, write(memory.remote(16)), &[source.sge(0, 8)])?;
        assert!(bench.a.sends.brings(7, Status::RemoteAccess));
        assert!(memory.is_blank(16, LEN - 16));
        Ok(())
    }

    #[test]
    fn the_token_is_dead_before_the_receive_is_seen() -> Result {
        let bench = Bench::new()?;
        let memory = registered(&bench.b)?;
        let found_open = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let (qp, notify) = (bench.b.qp.clone(), found_open.clone());
        let (token, domain) = (memory.token(), bench.b.domain.clone());
        let hook = Arc::new(
            move |_| {
                let regions = &domain.device().regions;
                let wanted = Rights::REMOTE_READ;
                let access = regions.access(token, qp.peer_user(), wanted, BASE, 1);
                notify.fetch_add(u32::from(access.is_ok()), Full);
            },
            GFP_KERNEL,
        )?;
        bench.b.receives.log.set_hook(Some(hook));
        for round in 1..=50 {
            bench.b.receive(2, &[])?;
            bench.b.receives.cq.arm(Arm::Any, MissedEvents::Ignore);
            assert!(is_open(&bench.b, memory.token()));
            bench.a.post(1, send_invalidate(memory.token()), &[])?;
            assert!(bench.a.sends.brings(1, Status::Success));
            assert!(bench.b.receives.brings(2, Status::Success));
            assert!(!is_open(&bench.b, memory.token()));
            assert!(wait_until(|| bench.b.receives.log.calls.get() == round));
            register_again(&bench.b, &memory)?;
        }
        assert!(same(found_open.load(Acquire), 0));
        Ok(())
    }

    #[test]
    fn the_receive_waits_for_the_last_access_to_end() -> Result {
        let bench = Bench::new()?;
        let memory = registered(&bench.b)?;
        let user = bench.b.qp.peer_user();
        let regions = &bench.b.device().regions;
        let access = regions.access(memory.token(), user, Rights::REMOTE_READ, BASE, 1);
        assert!(access.is_ok());
        bench.b.receive(2, &[])?;
        bench.a.post(1, send_invalidate(memory.token()), &[])?;
        assert!(!is_open(&bench.b, memory.token()));
        let early = (
            bench.a.sends.poll().is_some(),
            bench.b.receives.poll().is_some(),
        );
        settle(bench.b.device());
        assert!(same(early, (false, false)) && bench.b.receives.poll().is_none());
        drop(access);
        assert!(bench.b.receives.brings(2, Status::Success));
        assert!(bench.a.sends.brings(1, Status::Success));
        let delayed = bench.a.counted(Counter::InvalidationsDelayed)
            + bench.b.counted(Counter::InvalidationsDelayed);
        assert!(delayed >= 1);
        Ok(())
    }

    #[test]
    fn a_region_for_as_long_as_it_exists_stays_valid() -> Result {
        let bench = Bench::new()?;
        let memory = bench.b.buffer(LEN)?;
        assert!(is_refused(&bench, memory.token())?);
        assert!(is_open(&bench.b, memory.token()));
        assert!(same(bench.b.counted(Counter::InvalidationsRefused), 1));
        Ok(())
    }

    #[test]
    fn a_region_of_another_domain_stays_valid() -> Result {
        let bench = Bench::new()?;
        let domain = Domain::new(bench.b.device().clone(), GFP_KERNEL)?;
        let other = bench
            .lab
            .end_in(&domain, &crate::kunit::harness::Plan::PLAIN, None)?;
        let peer = bench.lab.end(&crate::kunit::harness::Plan::PLAIN)?;
        crate::kunit::harness::connect(crate::direct::connect, &peer, &other)?;
        let memory = registered(&other)?;
        assert!(is_refused(&bench, memory.token())?);
        assert!(is_open(&other, memory.token()));
        Ok(())
    }

    #[test]
    fn another_key_of_the_region_is_refused() -> Result {
        let bench = Bench::new()?;
        let memory = registered(&bench.b)?;
        let token = memory.token();
        let stale = Token::new(token.index(), token.key().wrapping_sub(1));
        assert!(is_refused(&bench, stale.ok_or(EINVAL)?)?);
        assert!(is_open(&bench.b, token));
        Ok(())
    }

    #[test]
    fn what_is_invalid_already_or_was_never_valid_is_refused() -> Result {
        let never = Bench::new()?;
        let memory = never.b.fast(LEN)?;
        assert!(is_refused(&never, memory.token())?);
        let twice = Bench::new()?;
        let memory = registered(&twice.b)?;
        twice.b.receive(1, &[])?;
        twice.a.post(2, send_invalidate(memory.token()), &[])?;
        assert!(twice.a.sends.brings(2, Status::Success));
        assert!(twice.b.receives.brings(1, Status::Success));
        assert!(is_refused(&twice, memory.token())?);
        Ok(())
    }

    #[test]
    fn tokens_that_name_nothing_are_refused() -> Result {
        for token in [
            Some(Token::LOCAL_MEMORY),
            Token::new(0, 0),
            Token::new(Token::MAX_INDEX, 1),
        ] {
            assert!(is_refused(&Bench::new()?, token.ok_or(EINVAL)?)?);
        }
        Ok(())
    }

    #[test]
    fn a_window_goes_for_the_peer_it_was_bound_for_only() -> Result {
        let bench = Bench::new()?;
        let memory = bench.b.buffer(LEN)?;
        let window = bound(&bench.b, &memory)?;
        assert!(is_open(&bench.b, window));
        bench.b.receive(1, &[])?;
        bench.a.post(2, send_invalidate(window), &[])?;
        assert!(bench.a.sends.brings(2, Status::Success));
        assert!(bench.b.receives.brings(1, Status::Success));
        assert!(!is_open(&bench.b, window) && is_open(&bench.b, memory.token()));
        // Another queue pair of the same domain has a window of its own.
        let plan = crate::kunit::harness::Plan::PLAIN;
        let other = bench.lab.end_in(&bench.b.domain, &plan, None)?;
        let peer = bench.lab.end(&plan)?;
        crate::kunit::harness::connect(crate::direct::connect, &peer, &other)?;
        let theirs = bound(&other, &memory)?;
        assert!(is_refused(&bench, theirs)? && is_open(&other, theirs));
        let regions = &bench.b.device().regions;
        for window in [window, theirs] {
            regions.remove(window.index());
        }
        Ok(())
    }

    #[test]
    fn a_receive_that_fails_for_another_reason_invalidates_nothing() -> Result {
        let bench = Bench::new()?;
        let source = bench.a.buffer(LEN)?;
        let memory = registered(&bench.b)?;
        bench.b.receive(1, &[])?;
        bench
            .a
            .post(2, send_invalidate(memory.token()), &[source.whole()])?;
        assert!(bench.a.sends.brings(2, Status::RemoteInvalidRequest));
        assert!(bench.b.receives.brings(1, Status::ReceiveLength));
        assert!(is_open(&bench.b, memory.token()) && bench.is_down());
        Ok(())
    }

    #[test]
    fn a_message_that_waits_in_vain_invalidates_nothing() -> Result {
        let bench = Bench::new()?;
        let memory = registered(&bench.b)?;
        bench.a.post(1, send_invalidate(memory.token()), &[])?;
        assert!(bench.a.sends.is_silent() && is_open(&bench.b, memory.token()));
        bench.a.qp.fail();
        assert!(bench.a.sends.brings(1, Status::Flushed) && bench.is_down());
        assert!(is_open(&bench.b, memory.token()));
        Ok(())
    }

    #[test]
    fn a_read_takes_its_own_token_away_when_the_bytes_are_there() -> Result {
        let bench = Bench::new()?;
        let source = bench.b.filled(LEN, 82)?;
        let sink = registered(&bench.a)?;
        let work = read_invalidate(source.remote(0), sink.token());
        bench.a.post(1, work, &[sink.whole()])?;
        assert!(bench.a.sends.brings(1, Status::Success));
        assert!(sink.holds(0, LEN, 82, 0) && !is_open(&bench.a, sink.token()));
        assert!(same(bench.a.counted(Counter::InvalidationsLocal), 1));
        assert!(bench.a.qp.state() == State::Connected);
        Ok(())
    }

    #[test]
    fn a_read_that_fails_or_names_a_lasting_region_leaves_it() -> Result {
        let bench = Bench::new()?;
        let (source, sink) = (bench.b.buffer(LEN)?, bench.a.buffer(LEN)?);
        let work = read_invalidate(source.remote(0), sink.token());
        bench.a.post(1, work, &[sink.whole()])?;
        assert!(bench.a.sends.brings(1, Status::LocalOperation));
        assert!(is_open(&bench.a, sink.token()) && bench.is_down());
        let bench = Bench::new()?;
        let (source, sink) = (bench.b.buffer(LEN)?, registered(&bench.a)?);
        let work = read_invalidate(source.remote(1), sink.token());
        bench.a.post(1, work, &[sink.whole()])?;
        assert!(bench.a.sends.brings(1, Status::RemoteAccess));
        assert!(is_open(&bench.a, sink.token()));
        Ok(())
    }

    #[test]
    fn an_invalidation_of_its_own_is_judged_when_its_turn_comes() -> Result {
        let bench = Bench::new()?;
        let memory = bench.a.fast(LEN)?;
        let lenient = Work::Invalidate {
            token: memory.token(),
            must_be_valid: false,
        };
        let work = [
            lenient,
            register(memory.token(), LEN as u64, ALL),
            invalidate(memory.token()),
            lenient,
            invalidate(memory.token()),
        ];
        for (context, work) in (0..).zip(work) {
            let posted = bench.a.qp.post(
                context,
                work,
                crate::engine::work::Flags::SIGNALED,
                [].into_iter(),
            );
            assert!(posted.is_ok());
        }
        assert!(!is_open(&bench.a, memory.token()));
        bench.a.qp.ring_doorbell();
        assert!(bench.a.sends.brings_all(0..4, Status::Success));
        assert!(bench.a.sends.brings(4, Status::LocalOperation) && bench.is_down());
        Ok(())
    }

    #[test]
    fn a_registration_of_what_is_valid_fails() -> Result {
        let bench = Bench::new()?;
        let memory = registered(&bench.a)?;
        let token = memory.token();
        let next = Token::new(token.index(), token.key().wrapping_add(1)).ok_or(EINVAL)?;
        bench.a.post(1, register(next, LEN as u64, ALL), &[])?;
        assert!(bench.a.sends.brings(1, Status::LocalOperation));
        assert!(is_open(&bench.a, token) && !is_open(&bench.a, next));
        Ok(())
    }
}
