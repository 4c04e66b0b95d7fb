// SPDX-License-Identifier: GPL-2.0

//! Invalidation through a queue: by the peer's send, by the end of a read, by a separate request.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kunit::{
        buffer::{
            MrBuffer,
            ALL,
            BASE, //
        },
        harness::{
            End,
            QpPair, //
        },
        requests::{
            register,
            send_invalidate, //
        }, //
    },
    rdma::values::{
        access::{
            AccessFlag,
            AccessFlags, //
        },
        qp::QpState,
        status::Status,
        token::Token,
        work::SendOp, //
    }, //
};

/// The length of all buffers here.
const LEN: usize = 64;

/// A fast-register region of `end`, registered through its queue with all rights.
fn registered(end: &End) -> Result<Arc<MrBuffer>> {
    let memory = end.fast(LEN)?;
    register_again(end, &memory)?;
    Ok(memory)
}

/// Makes the region valid under its first token.
fn register_again(end: &End, memory: &MrBuffer) -> Result {
    // CAST: widening.
    end.post(90, register(memory.token(), LEN as u64, ALL), &[])?;
    match end.sends.next_is(90, Status::Success) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// A window of `end`, bound to all of `region` for the peer of its queue pair.
fn bound(end: &End, region: &MrBuffer) -> Result<Token> {
    let window = end.device().regions.add_window(end.domain.id(), None)?;
    let work = SendOp::BindMw {
        window,
        region: region.token(),
        addr: BASE,
        // CAST: widening.
        len: LEN as u64,
        rights: ALL_REMOTE,
    };
    end.post(91, work, &[])?;
    match end.sends.next_is(91, Status::Success) {
        true => Ok(window),
        false => Err(EIO),
    }
}

const ALL_REMOTE: AccessFlags = AccessFlags::of([AccessFlag::RemoteRead, AccessFlag::RemoteWrite]);

/// Returns true if a peer of `end` has access under `token`.
fn is_open(end: &End, token: Token) -> bool {
    let user = end.qp.peer_user();
    let regions = &end.device().regions;
    regions
        .access(token, user, AccessFlag::RemoteRead, BASE, 1)
        .is_ok()
}

/// Returns true if a send that asks to invalidate `token` is refused, and ends the connection.
fn is_refused(qp_pair: &QpPair, token: Token) -> Result<bool> {
    qp_pair.b.receive(1, &[])?;
    qp_pair.b.receive(2, &[])?;
    qp_pair.a.post(3, send_invalidate(token), &[])?;
    Ok(qp_pair.a.sends.next_is(3, Status::RemoteInvalidRequest)
        && qp_pair.b.receives.next_is(1, Status::ReceiveInvalidation)
        && qp_pair.b.receives.next_is(2, Status::Flushed)
        && qp_pair.is_down())
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
            domain::Domain, //
        },
        kunit::{
            harness::{
                cases,
                connect,
                connect_pair,
                flush_work,
                same,
                sleep,
                wait_until, //
            },
            requests::*, //
        },
        rdma::values::work::SendWith, //
    };

    #[test]
    fn a_send_takes_a_token_of_the_peer_away_and_says_which() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(LEN, 81)?, qp_pair.b.buffer(LEN)?);
        let memory = registered(&qp_pair.b)?;
        qp_pair
            .a
            .post(1, write(memory.remote(0)), &[source.sge(0, 8)])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(memory.holds(0, 8, 81, 0));
        qp_pair.b.receive(2, &[sink.whole()])?;
        qp_pair
            .a
            .post(3, send_invalidate(memory.token()), &[source.whole()])?;
        assert!(qp_pair.a.sends.next_is(3, Status::Success));
        let entry = qp_pair
            .b
            .receives
            .next()
            .map(|e| (e.status, e.with, e.byte_len));
        let gone = SendWith::Inv(memory.token());
        kunit_assert_eq!(entry, Some((Status::Success, gone, LEN as u32)));
        assert!(sink.holds(0, LEN, 81, 0));
        assert!(!is_open(&qp_pair.b, memory.token()));
        kunit_assert_eq!(qp_pair.b.counted(Counter::InvalidationsRemote), 1);
        // The connection goes on, and the region may be made valid again.
        register_again(&qp_pair.b, &memory)?;
        qp_pair
            .a
            .post(4, write(memory.remote(8)), &[source.sge(0, 8)])?;
        assert!(qp_pair.a.sends.next_is(4, Status::Success));
        qp_pair.b.receive(5, &[])?;
        qp_pair.a.post(6, send_invalidate(memory.token()), &[])?;
        assert!(qp_pair.a.sends.next_is(6, Status::Success));
        qp_pair
            .a
            .post(7, write(memory.remote(16)), &[source.sge(0, 8)])?;
        assert!(qp_pair.a.sends.next_is(7, Status::RemoteAccess));
        assert!(memory.is_blank(16, LEN - 16));
        Ok(())
    }

    #[test]
    fn the_token_is_dead_before_the_receive_is_seen() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = registered(&qp_pair.b)?;
        let found_open = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let (qp, notify) = (qp_pair.b.qp.clone(), found_open.clone());
        let (token, domain) = (memory.token(), qp_pair.b.domain.clone());
        let hook = Arc::new(
            move |_| {
                let regions = &domain.device().regions;
                let wanted = AccessFlag::RemoteRead;
                let access = regions.access(token, qp.peer_user(), wanted, BASE, 1);
                notify.fetch_add(u32::from(access.is_ok()), Full);
            },
            GFP_KERNEL,
        )?;
        qp_pair.b.receives.log.set_hook(Some(hook));
        for round in cases(1..=50) {
            qp_pair.b.receive(2, &[])?;
            qp_pair.b.receives.cq.arm(Arm::Any, MissedEvents::Ignore);
            assert!(is_open(&qp_pair.b, memory.token()));
            qp_pair.a.post(1, send_invalidate(memory.token()), &[])?;
            assert!(qp_pair.a.sends.next_is(1, Status::Success));
            assert!(qp_pair.b.receives.next_is(2, Status::Success));
            assert!(!is_open(&qp_pair.b, memory.token()));
            assert!(wait_until(|| qp_pair.b.receives.log.calls.get() == round));
            register_again(&qp_pair.b, &memory)?;
        }
        kunit_assert_eq!(found_open.load(Acquire), 0);
        Ok(())
    }

    #[test]
    fn the_receive_waits_for_the_last_access_to_end() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = registered(&qp_pair.b)?;
        let user = qp_pair.b.qp.peer_user();
        let regions = &qp_pair.b.device().regions;
        let access = regions.access(memory.token(), user, AccessFlag::RemoteRead, BASE, 1);
        assert!(access.is_ok());
        qp_pair.b.receive(2, &[])?;
        qp_pair.a.post(1, send_invalidate(memory.token()), &[])?;
        assert!(wait_until(|| !is_open(&qp_pair.b, memory.token())));
        let early = (
            qp_pair.a.sends.poll().is_some(),
            qp_pair.b.receives.poll().is_some(),
        );
        flush_work(qp_pair.b.device());
        kunit_assert_eq!(early, (false, false));
        assert!(qp_pair.b.receives.poll().is_none());
        let is_delayed = || qp_pair.counted(Counter::InvalidationsDelayed) >= 1;
        assert!(wait_until(is_delayed));
        drop(access);
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        Ok(())
    }

    /// A flow that waits does not poll: the number of passes stands still.
    #[test]
    fn what_waits_for_an_access_goes_on_when_that_is_gone_and_not_before() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = registered(&qp_pair.b)?;
        let (token, user) = (memory.token(), qp_pair.b.qp.peer_user());
        let regions = &qp_pair.b.device().regions;
        let stands_still = |end: &End| {
            flush_work(end.device());
            let passes = end.counted(Counter::Passes);
            flush_work(end.device());
            sleep(20);
            flush_work(end.device());
            same(end.counted(Counter::Passes), passes)
        };
        // The peer's invalidation, and then a registration by the owner.
        let access = regions.access(token, user, AccessFlag::RemoteRead, BASE, 1);
        qp_pair.b.receive(2, &[])?;
        qp_pair.a.post(1, send_invalidate(token), &[])?;
        assert!(access.is_ok());
        assert!(stands_still(&qp_pair.a));
        assert!(qp_pair.a.sends.stays_empty());
        assert!(qp_pair.b.receives.stays_empty());
        drop(access);
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        register_again(&qp_pair.b, &memory)?;
        let access = regions.access(token, user, AccessFlag::RemoteRead, BASE, 1);
        assert!(regions.revoke(token, user.domain).is_ok());
        qp_pair.b.post(3, register(token, LEN as u64, ALL), &[])?;
        assert!(access.is_ok());
        assert!(stands_still(&qp_pair.b));
        assert!(qp_pair.b.sends.stays_empty());
        assert!(!is_open(&qp_pair.b, token));
        drop(access);
        assert!(qp_pair.b.sends.next_is(3, Status::Success));
        assert!(is_open(&qp_pair.b, token));
        Ok(())
    }

    #[test]
    fn owner_and_peer_may_wait_for_the_same_access() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = registered(&qp_pair.b)?;
        let (token, user) = (memory.token(), qp_pair.b.qp.peer_user());
        let access =
            (qp_pair.b.device().regions).access(token, user, AccessFlag::RemoteRead, BASE, 1);
        qp_pair.b.receive(2, &[])?;
        qp_pair.a.post(1, send_invalidate(token), &[])?;
        assert!(wait_until(|| !is_open(&qp_pair.b, token)));
        let lenient = SendOp::LocalInv {
            token,
            must_be_valid: false,
        };
        qp_pair.b.post(3, lenient, &[])?;
        flush_work(qp_pair.b.device());
        assert!(access.is_ok());
        assert!(qp_pair.b.sends.stays_empty());
        assert!(qp_pair.b.receives.stays_empty());
        drop(access);
        assert!(qp_pair.b.sends.next_is(3, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        Ok(())
    }

    #[test]
    fn a_region_for_as_long_as_it_exists_stays_valid() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = qp_pair.b.buffer(LEN)?;
        assert!(is_refused(&qp_pair, memory.token())?);
        assert!(is_open(&qp_pair.b, memory.token()));
        kunit_assert_eq!(qp_pair.b.counted(Counter::InvalidationsRefused), 1);
        Ok(())
    }

    #[test]
    fn a_region_of_another_domain_stays_valid() -> Result {
        let qp_pair = QpPair::new()?;
        let domain = Domain::new(qp_pair.b.device().clone(), GFP_KERNEL)?;
        let other =
            qp_pair
                .engine_host
                .end_in(&domain, &crate::kunit::harness::EndAttr::PLAIN, None)?;
        let peer = qp_pair
            .engine_host
            .end(&crate::kunit::harness::EndAttr::PLAIN)?;
        connect(connect_pair, &peer, &other)?;
        let memory = registered(&other)?;
        assert!(is_refused(&qp_pair, memory.token())?);
        assert!(is_open(&other, memory.token()));
        Ok(())
    }

    #[test]
    fn another_key_of_the_region_is_refused() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = registered(&qp_pair.b)?;
        let token = memory.token();
        let stale = Token::new(token.index(), token.key().wrapping_sub(1));
        assert!(is_refused(&qp_pair, stale.ok_or(EINVAL)?)?);
        assert!(is_open(&qp_pair.b, token));
        Ok(())
    }

    #[test]
    fn what_is_invalid_already_or_was_never_valid_is_refused() -> Result {
        let never = QpPair::new()?;
        let memory = never.b.fast(LEN)?;
        assert!(is_refused(&never, memory.token())?);
        let twice = QpPair::new()?;
        let memory = registered(&twice.b)?;
        twice.b.receive(1, &[])?;
        twice.a.post(2, send_invalidate(memory.token()), &[])?;
        assert!(twice.a.sends.next_is(2, Status::Success));
        assert!(twice.b.receives.next_is(1, Status::Success));
        assert!(is_refused(&twice, memory.token())?);
        Ok(())
    }

    #[test]
    fn tokens_that_name_nothing_are_refused() -> Result {
        for token in cases([
            Some(Token::LOCAL_MEMORY),
            Token::new(0, 0),
            Token::new(Token::MAX_INDEX, 1),
        ]) {
            assert!(is_refused(&QpPair::new()?, token.ok_or(EINVAL)?)?);
        }
        Ok(())
    }

    #[test]
    fn a_window_goes_for_the_peer_it_was_bound_for_only() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = qp_pair.b.buffer(LEN)?;
        let window = bound(&qp_pair.b, &memory)?;
        assert!(is_open(&qp_pair.b, window));
        qp_pair.b.receive(1, &[])?;
        qp_pair.a.post(2, send_invalidate(window), &[])?;
        assert!(qp_pair.a.sends.next_is(2, Status::Success));
        assert!(qp_pair.b.receives.next_is(1, Status::Success));
        assert!(!is_open(&qp_pair.b, window));
        assert!(is_open(&qp_pair.b, memory.token()));
        // Another queue pair of the same domain has its own window.
        let attr = crate::kunit::harness::EndAttr::PLAIN;
        let other = qp_pair.engine_host.end_in(&qp_pair.b.domain, &attr, None)?;
        let peer = qp_pair.engine_host.end(&attr)?;
        connect(connect_pair, &peer, &other)?;
        let theirs = bound(&other, &memory)?;
        assert!(is_refused(&qp_pair, theirs)?);
        assert!(is_open(&other, theirs));
        let regions = &qp_pair.b.device().regions;
        for window in [window, theirs] {
            regions.remove(window.index());
        }
        Ok(())
    }

    #[test]
    fn a_receive_that_fails_for_another_reason_invalidates_nothing() -> Result {
        let qp_pair = QpPair::new()?;
        let source = qp_pair.a.buffer(LEN)?;
        let memory = registered(&qp_pair.b)?;
        qp_pair.b.receive(1, &[])?;
        qp_pair
            .a
            .post(2, send_invalidate(memory.token()), &[source.whole()])?;
        assert!(qp_pair.a.sends.next_is(2, Status::RemoteInvalidRequest));
        assert!(qp_pair.b.receives.next_is(1, Status::ReceiveLength));
        assert!(is_open(&qp_pair.b, memory.token()));
        assert!(qp_pair.is_down());
        Ok(())
    }

    #[test]
    fn a_message_that_waits_in_vain_invalidates_nothing() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = registered(&qp_pair.b)?;
        qp_pair.a.post(1, send_invalidate(memory.token()), &[])?;
        assert!(qp_pair.a.sends.stays_empty());
        assert!(is_open(&qp_pair.b, memory.token()));
        qp_pair.a.qp.fail();
        assert!(qp_pair.a.sends.next_is(1, Status::Flushed));
        assert!(qp_pair.is_down());
        assert!(is_open(&qp_pair.b, memory.token()));
        Ok(())
    }

    #[test]
    fn a_read_takes_its_own_token_away_when_the_bytes_are_there() -> Result {
        let qp_pair = QpPair::new()?;
        let source = qp_pair.b.filled(LEN, 82)?;
        let sink = registered(&qp_pair.a)?;
        let work = read_invalidate(source.remote(0), sink.token());
        qp_pair.a.post(1, work, &[sink.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(sink.holds(0, LEN, 82, 0));
        assert!(!is_open(&qp_pair.a, sink.token()));
        kunit_assert_eq!(qp_pair.a.counted(Counter::InvalidationsLocal), 1);
        kunit_assert_eq!(qp_pair.a.qp.state(), QpState::Rts);
        Ok(())
    }

    #[test]
    fn a_read_that_fails_or_names_a_lasting_region_leaves_it() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.b.buffer(LEN)?, qp_pair.a.buffer(LEN)?);
        let work = read_invalidate(source.remote(0), sink.token());
        qp_pair.a.post(1, work, &[sink.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::LocalOperation));
        assert!(is_open(&qp_pair.a, sink.token()));
        assert!(qp_pair.is_down());
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.b.buffer(LEN)?, registered(&qp_pair.a)?);
        let work = read_invalidate(source.remote(1), sink.token());
        qp_pair.a.post(1, work, &[sink.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::RemoteAccess));
        assert!(is_open(&qp_pair.a, sink.token()));
        Ok(())
    }

    #[test]
    fn an_invalidation_of_its_own_is_judged_when_its_turn_comes() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = qp_pair.a.fast(LEN)?;
        let lenient = SendOp::LocalInv {
            token: memory.token(),
            must_be_valid: false,
        };
        // Over TCP the connection has begun then, and starts requests at a doorbell alone.
        flush_work(qp_pair.a.device());
        let work = [
            lenient,
            register(memory.token(), LEN as u64, ALL),
            invalidate(memory.token()),
            lenient,
            invalidate(memory.token()),
        ];
        for (context, work) in cases((0..).zip(work)) {
            let posted = qp_pair.a.qp.post(
                context,
                work,
                crate::rdma::values::work::SendFlag::Signaled,
                [].into_iter(),
            );
            assert!(posted.is_ok());
        }
        assert!(!is_open(&qp_pair.a, memory.token()));
        qp_pair.a.qp.ring_doorbell();
        assert!(qp_pair.a.sends.next_are(0..4, Status::Success));
        assert!(qp_pair.a.sends.next_is(4, Status::LocalOperation));
        assert!(qp_pair.is_down());
        Ok(())
    }

    #[test]
    fn a_registration_of_what_is_valid_fails() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = registered(&qp_pair.a)?;
        let token = memory.token();
        let next = Token::new(token.index(), token.key().wrapping_add(1)).ok_or(EINVAL)?;
        qp_pair.a.post(1, register(next, LEN as u64, ALL), &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::LocalOperation));
        assert!(is_open(&qp_pair.a, token));
        assert!(!is_open(&qp_pair.a, next));
        Ok(())
    }
}
