// SPDX-License-Identifier: GPL-2.0

//! Injected faults: the effect of each on the request that it hits.

mod choice;
mod late;
mod port;

use kernel::prelude::*;

use crate::{
    direct,
    engine::{
        counters::Counter,
        inject::{
            needed,
            Fault,
            FaultSettings,
            FaultSide,
            SiteKind, //
        },
        memory::Denied, //
    },
    kunit::{
        buffer::{
            pattern,
            MrBuffer,
            BASE, //
        },
        harness::{
            cases,
            same,
            wait_until,
            End,
            EndAttr,
            QpPair,
            NEVER_MS, //
        },
        inject::Ordered,
        requests::*, //
    },
    rdma::values::{
        access::AccessFlag,
        status::Status,
        token::Token,
        wc::WcStatus,
        work::SendOp, //
    }, //
};

/// An order that hits, once, request number `nth` of those that the fault meets of a queue pair.
const fn nth(nth: u32) -> FaultSettings {
    FaultSettings {
        nth,
        times: 1,
        ..FaultSettings::ALWAYS
    }
}

/// An order that always hits, for `usec` microseconds.
const fn lasting(usec: u32) -> FaultSettings {
    FaultSettings {
        usec,
        ..FaultSettings::ALWAYS
    }
}

/// A time longer than any test, in microseconds.
const EVER_US: u32 = NEVER_MS * 1000;

/// An order that hits only `what`.
const fn only(what: SiteKind) -> FaultSettings {
    FaultSettings {
        what: Some(what),
        ..FaultSettings::ALWAYS
    }
}

fn injected(end: &End) -> u64 {
    end.counted(Counter::FaultsInjected)
}

/// The place of the only byte of `buffer` that differs from pattern `seed`, if it is inverted.
fn wrong_byte(buffer: &MrBuffer, len: usize, seed: u8) -> Option<usize> {
    let mut found = None;
    for at in 0..len {
        let mut byte = [0];
        buffer.run().part(at, 1).read(&mut byte);
        if byte[0] != pattern(seed, at) {
            if found.is_some() || byte[0] != !pattern(seed, at) {
                return None;
            }
            found = Some(at);
        }
    }
    found
}

fn is_valid(end: &End, token: Token) -> bool {
    let user = end.qp.peer_user();
    let regions = &end.device().regions;
    let access = regions.access(token, user, AccessFlag::RemoteRead, BASE, 8);
    matches!(access.map(|_| ()), Ok::<(), Denied>(()))
}

#[kernel::macros::kunit_tests(ndk_direct_tests_inject)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_is_lost_after_the_nth_message_and_that_one_arrives() -> Result {
        if !needed() {
            return Ok(());
        }
        for lost in cases([1, 3, 5]) {
            let pair = QpPair::new()?;
            let _fault = Ordered::new(pair.a.device(), Fault::DropConnection, nth(lost));
            for context in cases(1..7) {
                pair.b.receive(context, &[])?;
            }
            for context in cases(1..u64::from(lost) + 1) {
                pair.a.post(context, SEND, &[])?;
                assert!(pair.a.sends.next_is(context, Status::Success));
                assert!(pair.b.receives.next_is(context, Status::Success));
            }
            assert!(pair.is_down());
            assert!(pair
                .b
                .receives
                .next_is(u64::from(lost) + 1, Status::Flushed));
            pair.a.post(9, SEND, &[])?;
            assert!(pair.a.sends.next_is(9, Status::Flushed));
            kunit_assert_eq!(injected(&pair.a), 1);
        }
        Ok(())
    }

    #[test]
    fn requests_behind_the_one_that_loses_the_connection_are_flushed() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let sink = pair.b.buffer(64)?;
        let source = pair.a.filled(64, 3)?;
        let _fault = Ordered::new(pair.a.device(), Fault::DropConnection, nth(2));
        for at in cases(0..4) {
            let (to, from) = (sink.remote(at * 8), source.sge(at * 8, 8));
            pair.a
                .qp
                .post(
                    at as u64,
                    write(to),
                    crate::rdma::values::work::SendFlag::Signaled,
                    [from].into_iter(),
                )
                .map_err(|_| EINVAL)?;
        }
        pair.a.qp.ring_doorbell();
        assert!(pair.a.sends.next_are(0..2, Status::Success));
        assert!(pair.a.sends.next_are(2..4, Status::Flushed));
        assert!(sink.holds(0, 16, 3, 0));
        assert!(sink.is_blank(16, 48));
        assert!(pair.is_down());
        Ok(())
    }

    #[test]
    fn a_request_completes_with_what_was_chosen_and_does_nothing() -> Result {
        if !needed() {
            return Ok(());
        }
        for status in cases(WcStatus::FAILURES) {
            let pair = QpPair::new()?;
            let order = FaultSettings {
                status,
                nth: 2,
                ..only(SiteKind::Write)
            };
            let _fault = Ordered::new(pair.a.device(), Fault::CompleteWith, order);
            let (source, sink) = (pair.a.filled(24, 5)?, pair.b.buffer(24)?);
            pair.b.receive(1, &[])?;
            pair.a.post(1, write(sink.remote(0)), &[source.sge(0, 8)])?;
            pair.a.post(2, SEND, &[])?;
            pair.a.post(3, write(sink.remote(8)), &[source.sge(8, 8)])?;
            assert!(pair.a.sends.next_are(1..3, Status::Success));
            assert!(pair.a.sends.next_is(3, status.into()));
            assert!(sink.holds(0, 8, 5, 0));
            assert!(sink.is_blank(8, 16));
            assert!(pair.is_down());
            kunit_assert_eq!(injected(&pair.a), 1);
        }
        Ok(())
    }

    #[test]
    fn where_a_flush_spares_the_queue_pair_the_connection_goes() -> Result {
        if !needed() {
            return Ok(());
        }
        let attr = EndAttr {
            flush_on_disconnect: false,
            ..EndAttr::PLAIN
        };
        let pair = QpPair::with(&attr, &attr)?;
        let order = FaultSettings {
            status: WcStatus::WrFlush,
            ..FaultSettings::ALWAYS
        };
        let _fault = Ordered::new(pair.a.device(), Fault::CompleteWith, order);
        pair.b.receive(1, &[])?;
        pair.a.post(1, SEND, &[])?;
        assert!(wait_until(|| pair.a.owner.notified.get() == 1));
        // As after any lost connection, the owner cancels the posted requests.
        pair.a.qp.fail();
        assert!(pair.a.sends.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_receive_completes_with_what_was_chosen() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let order = FaultSettings {
            status: WcStatus::LocProt,
            nth: 2,
            ..only(SiteKind::Receive)
        };
        let _fault = Ordered::new(pair.b.device(), Fault::CompleteWith, order);
        for context in cases(1..3) {
            pair.b.receive(context, &[])?;
            pair.a.post(context, SEND, &[])?;
        }
        assert!(pair.b.receives.next_is(1, Status::Success));
        assert!(pair.b.receives.next_is(2, Status::LocalAccess));
        assert!(pair.a.sends.next_is(1, Status::Success));
        assert!(pair.a.sends.next_is(2, Status::RemoteOperation));
        assert!(pair.is_down());
        kunit_assert_eq!((injected(&pair.a), injected(&pair.b)), (0, 1));
        Ok(())
    }

    #[test]
    fn local_requests_fail_as_chosen_though_they_are_done_inside_the_post_otherwise() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let token = pair.a.fast(8)?.token();
        let fault = Ordered::new(
            pair.a.device(),
            Fault::CompleteWith,
            FaultSettings {
                status: WcStatus::LocQpOp,
                nth: 2,
                ..only(SiteKind::Invalidate)
            },
        );
        for round in cases([1, 3]) {
            pair.a
                .post(round, register(token, 8, AccessFlag::RemoteRead), &[])?;
            assert!(pair.a.sends.next_is(round, Status::Success));
            assert!(is_valid(&pair.a, token));
            pair.a.post(round + 1, invalidate(token), &[])?;
            let failed = round == 3;
            let status = if failed {
                Status::LocalOperation
            } else {
                Status::Success
            };
            assert!(pair.a.sends.next_is(round + 1, status));
            kunit_assert_eq!(is_valid(&pair.a, token), failed);
        }
        drop(fault);
        assert!(pair.is_down());
        Ok(())
    }

    #[test]
    fn an_invalidation_of_the_peer_is_refused_as_of_a_stale_token() -> Result {
        if !needed() {
            return Ok(());
        }
        let pair = QpPair::new()?;
        let _fault = Ordered::new(pair.a.device(), Fault::RefuseInvalidation, nth(2));
        for context in cases(1..3) {
            let token = pair.b.fast(8)?.token();
            pair.b
                .post(context, register(token, 8, AccessFlag::RemoteRead), &[])?;
            assert!(pair.b.sends.next_is(context, Status::Success));
            pair.b.receive(context, &[])?;
            pair.a.post(context, send_invalidate(token), &[])?;
            let is_hit = context == 2;
            let (request, receive) = match is_hit {
                false => (Status::Success, Status::Success),
                true => (Status::RemoteInvalidRequest, Status::ReceiveInvalidation),
            };
            assert!(pair.a.sends.next_is(context, request));
            assert!(pair.b.receives.next_is(context, receive));
            kunit_assert_eq!(is_valid(&pair.b, token), is_hit);
        }
        assert!(pair.is_down());
        kunit_assert_eq!(injected(&pair.a), 1);
        Ok(())
    }

    #[test]
    fn an_invalidation_of_its_own_is_refused_as_of_a_stale_token() -> Result {
        if !needed() {
            return Ok(());
        }
        for by_read in cases([false, true]) {
            let pair = QpPair::new()?;
            let (source, sink) = (pair.b.filled(8, 3)?, pair.a.buffer(8)?);
            let _fault = Ordered::new(pair.a.device(), Fault::RefuseInvalidation, nth(2));
            for context in cases(1..3) {
                let token = pair.a.fast(8)?.token();
                pair.a
                    .post(9, register(token, 8, AccessFlag::RemoteRead), &[])?;
                assert!(pair.a.sends.next_is(9, Status::Success));
                match by_read {
                    true => {
                        let work = read_invalidate(source.remote(0), token);
                        pair.a.post(context, work, &[sink.whole()])?
                    }
                    false => pair.a.post(context, invalidate(token), &[])?,
                }
                let is_hit = context == 2;
                let status = match is_hit {
                    false => Status::Success,
                    true => Status::LocalOperation,
                };
                assert!(pair.a.sends.next_is(context, status));
                kunit_assert_eq!(is_valid(&pair.a, token), is_hit);
            }
            assert!(pair.is_down());
            kunit_assert_eq!(injected(&pair.a), 1);
            kunit_assert_eq!(pair.a.counted(Counter::InvalidationsRefused), 1);
        }
        Ok(())
    }

    /// A request of that kind that accesses `other` from byte `at` on.
    fn access(kind: u32, other: &MrBuffer, at: usize) -> SendOp {
        match kind {
            0 => write(other.remote(at)),
            1 => read(other.remote(at)),
            _ => SendOp::FetchAdd {
                at: other.remote(at),
                add: 1,
            },
        }
    }

    #[test]
    fn an_access_is_refused_as_of_a_stale_token() -> Result {
        if !needed() {
            return Ok(());
        }
        for kind in cases(0..3) {
            let pair = QpPair::new()?;
            let (own, other) = (pair.a.filled(24, 11)?, pair.b.buffer(24)?);
            let _fault = Ordered::new(pair.a.device(), Fault::RefuseAccess, nth(2));
            pair.a.post(1, access(kind, &other, 0), &[own.sge(0, 8)])?;
            assert!(pair.a.sends.next_is(1, Status::Success));
            assert!(match kind {
                0 => other.holds(0, 8, 11, 0),
                1 => own.is_blank(0, 8),
                _ => own.is_blank(0, 8) && other.word(0) == other.word(8) + 1,
            });
            pair.a.post(2, access(kind, &other, 8), &[own.sge(8, 8)])?;
            assert!(pair.a.sends.next_is(2, Status::RemoteAccess));
            assert!(other.is_blank(8, 16));
            assert!(own.holds(8, 16, 11, 8));
            kunit_assert_eq!(pair.b.counted(Counter::AccessRefused), 1);
            assert!(pair.is_down());
            kunit_assert_eq!(injected(&pair.a), 1);
        }
        Ok(())
    }

    #[test]
    fn one_byte_is_inverted_and_it_is_the_same_one_with_the_same_seed() -> Result {
        if !needed() {
            return Ok(());
        }
        const LEN: usize = 3000;
        // The second of three messages.
        let corrupted = |kind: u32, seed: u32| -> Result<Option<usize>> {
            let pair = QpPair::new()?;
            let order = FaultSettings { seed, ..nth(2) };
            let _fault = Ordered::new(pair.a.device(), Fault::Corrupt, order);
            let mut wrong = None;
            for context in cases(1..4) {
                let (own, other) = (pair.a.buffer(LEN)?, pair.b.buffer(LEN)?);
                let (work, source, sink) = match kind {
                    0 => (SEND, &own, &other),
                    1 => (write(other.remote(0)), &own, &other),
                    _ => (read(other.remote(0)), &other, &own),
                };
                source.fill(13);
                pair.b.receive(context, &[other.whole()])?;
                pair.a.post(context, work, &[own.whole()])?;
                assert!(pair.a.sends.next_is(context, Status::Success));
                assert!(source.holds(0, LEN, 13, 0));
                assert!(sink.has_clean_edges());
                match context {
                    2 => wrong = wrong_byte(sink, LEN, 13),
                    _ => assert!(sink.holds(0, LEN, 13, 0)),
                }
            }
            kunit_assert_eq!(injected(&pair.a), 1);
            Ok(wrong)
        };
        for kind in cases(0..3) {
            let first = corrupted(kind, 77)?;
            assert!(first.is_some());
            kunit_assert_eq!(corrupted(kind, 77)?, first);
            let others = [corrupted(kind, 78)?, corrupted(kind, 79)?];
            assert!(others[0].is_some());
            assert!(others[1].is_some());
            assert!(others != [first, first]);
        }
        Ok(())
    }
}
