// SPDX-License-Identifier: GPL-2.0

//! Requests that name memory they may not use: the status on each side, and the state after.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::domain::Domain,
    kunit::{
        buffer::{
            MrBuffer,
            ALL,
            BASE, //
        },
        harness::{
            End,
            EndAttr,
            QpPair, //
        },
        requests::SEND, //
    },
    rdma::values::{
        access::{
            AccessFlag,
            AccessFlags, //
        },
        status::Status,
        token::Token,
        work::{
            RemoteAddr,
            SendFlag,
            SendOp, //
        }, //
    },
    sys::sge::Sge, //
};

/// The length of all buffers here.
const LEN: usize = 64;

/// Memory that a request must not reach.
#[derive(Clone, Copy, Debug)]
struct Bad {
    token: Token,
    addr: u64,
    len: u32,
}

impl Bad {
    fn sge(&self) -> Sge {
        Sge::new(self.addr, self.len, self.token)
    }

    fn remote(&self) -> RemoteAddr {
        RemoteAddr {
            addr: self.addr,
            token: self.token,
        }
    }
}

/// Every kind of bad memory at one end, with the objects that keep it alive.
struct Traps {
    list: KVec<Bad>,
    kept: [Arc<MrBuffer>; 3],
}

impl Traps {
    fn new(end: &End) -> Result<Self> {
        let good = end.buffer(LEN)?;
        let not_yet = end.fast(LEN)?;
        let elsewhere = Domain::new(end.device().clone(), GFP_KERNEL)?;
        let foreign = MrBuffer::fixed(&elsewhere, LEN, ALL)?;
        let token = good.token();
        let other_key = Token::new(token.index(), token.key().wrapping_add(1));
        let never_given = Token::new(Token::MAX_INDEX, token.key());
        let mut list = KVec::new();
        for token in [
            other_key.ok_or(EINVAL)?,
            never_given.ok_or(EINVAL)?,
            not_yet.token(),
            foreign.token(),
        ] {
            let (addr, len) = (BASE, 8);
            list.push(Bad { token, addr, len }, GFP_KERNEL)?;
        }
        // CAST: a small number.
        let len = LEN as u64;
        for (addr, len) in [
            (BASE - 1, 8),
            (BASE - 8, 8),
            (BASE + len - 7, 8),
            (BASE + len, 8),
            // The end of the first range wraps around; the second is the longest message.
            (u64::MAX, 8),
            (BASE + 8, 1 << 31),
        ] {
            list.push(Bad { token, addr, len }, GFP_KERNEL)?;
        }
        Ok(Self {
            list,
            kept: [good, not_yet, foreign],
        })
    }

    fn are_untouched(&self) -> bool {
        let mut all = self.kept.iter();
        all.all(|b| b.is_blank(0, LEN) && b.has_clean_edges())
    }
}

/// The request and element that an attempt makes of bad memory.
type MakeRequest = fn(&Attempt, &Bad) -> (SendOp, Sge);

/// One attempt, over a separate connection.
struct Attempt {
    qp_pair: QpPair,
    near: Arc<MrBuffer>,
    far: Arc<MrBuffer>,
}

impl Attempt {
    fn new() -> Result<Self> {
        Self::with(ALL, ALL)
    }

    /// An attempt with these rights of the region and of the queue pair at the far side.
    fn with(region: AccessFlags, qp: AccessFlags) -> Result<Self> {
        let attr = EndAttr {
            peer_rights: qp,
            ..EndAttr::PLAIN
        };
        let qp_pair = QpPair::with(&EndAttr::PLAIN, &attr)?;
        Ok(Self {
            near: qp_pair.a.buffer(LEN)?,
            far: qp_pair.b.buffer_with(LEN, region)?,
            qp_pair,
        })
    }

    /// Returns true if the request ends with `request`, a receive of the far side with `receive`,
    /// and all else is flushed.
    fn ends(&self, work: SendOp, sge: Sge, request: Status, receive: Status) -> Result<bool> {
        self.ends_into(self.far.whole(), work, sge, request, receive)
    }

    /// As [`Attempt::ends`], with `into` as the list of the receive.
    fn ends_into(
        &self,
        into: Sge,
        work: SendOp,
        sge: Sge,
        request: Status,
        receive: Status,
    ) -> Result<bool> {
        let (a, b) = (&self.qp_pair.a, &self.qp_pair.b);
        b.receive(50, &[into])?;
        b.receive(51, &[])?;
        b.post(52, SEND, &[])?;
        let flags = SendFlag::Signaled;
        let posted = [(1, work, Some(sge)), (2, SEND, None), (3, SEND, None)]
            .map(|(c, w, s)| a.qp.post(c, w, flags, s.into_iter()));
        a.qp.ring_doorbell();
        Ok(posted.iter().all(|p| p.is_ok())
            && a.sends.next_is(1, request)
            && a.sends.next_are(2..4, Status::Flushed)
            && b.receives.next_is(50, receive)
            && b.receives.next_is(51, Status::Flushed)
            && b.sends.next_is(52, Status::Flushed)
            && a.sends.stays_empty()
            && b.receives.stays_empty()
            && self.qp_pair.is_down())
    }

    /// Returns true if no byte arrived on either side.
    fn left_nothing(&self) -> bool {
        [&self.near, &self.far]
            .into_iter()
            .all(|b| b.is_blank(0, LEN) && b.has_clean_edges())
    }
}

/// Returns true if `ask` ends with these statuses for every kind of bad memory at its own or far
/// side.
fn all_end(ask: MakeRequest, at_far: bool, request: Status, receive: Status) -> Result<bool> {
    let mut n = 0;
    loop {
        let attempt = Attempt::new()?;
        let end = if at_far {
            &attempt.qp_pair.b
        } else {
            &attempt.qp_pair.a
        };
        let traps = Traps::new(end)?;
        let Some(bad) = traps.list.get(n) else {
            return Ok(n > 0);
        };
        let (work, sge) = ask(&attempt, bad);
        let fine = attempt.ends(work, sge, request, receive)?
            && attempt.left_nothing()
            && traps.are_untouched();
        if !fine {
            kunit_note!("with {:?}", bad);
            return Ok(false);
        }
        n += 1;
    }
}

#[kernel::macros::kunit_tests(ndk_direct_tests_refuse)]
mod tests {
    use super::*;

    use crate::{
        engine::counters::Counter,
        kunit::{
            harness::cases,
            requests::*, //
        }, //
    };

    const FETCH_ADD: fn(RemoteAddr) -> SendOp = |at| SendOp::FetchAdd { at, add: 1 };

    const WRITES: AccessFlags = AccessFlags::of([AccessFlag::LocalWrite, AccessFlag::RemoteWrite]);
    const READS: AccessFlags = AccessFlags::of([AccessFlag::RemoteRead]);
    const ATOMICS: AccessFlags =
        AccessFlags::of([AccessFlag::LocalWrite, AccessFlag::RemoteAtomic]);

    #[test]
    fn bad_memory_in_a_send_is_a_local_error() -> Result {
        let ask: MakeRequest = |_, bad| (SEND, bad.sge());
        assert!(all_end(ask, false, Status::LocalAccess, Status::Flushed)?);
        Ok(())
    }

    #[test]
    fn bad_memory_in_a_write_is_a_local_error() -> Result {
        let ask: MakeRequest = |at, bad| (write(at.far.remote(0)), bad.sge());
        assert!(all_end(ask, false, Status::LocalAccess, Status::Flushed)?);
        Ok(())
    }

    #[test]
    fn bad_memory_for_what_a_read_brings_is_a_local_error() -> Result {
        let ask: MakeRequest = |at, bad| (read(at.far.remote(0)), bad.sge());
        assert!(all_end(ask, false, Status::LocalAccess, Status::Flushed)?);
        let ask: MakeRequest = |at, bad| (FETCH_ADD(at.far.remote(0)), bad.sge());
        let attempt = Attempt::new()?;
        let bad = Traps::new(&attempt.qp_pair.a)?;
        let (work, sge) = ask(&attempt, &bad.list[0]);
        assert!(attempt.ends(work, sge, Status::LocalAccess, Status::Flushed)?);
        // The word was not changed either.
        assert!(attempt.left_nothing());
        Ok(())
    }

    #[test]
    fn bad_memory_in_a_receive_fails_both_sides() -> Result {
        for n in cases(0..10) {
            let attempt = Attempt::new()?;
            let traps = Traps::new(&attempt.qp_pair.b)?;
            let bad = traps.list[n].sge();
            let near = attempt.near.sge(0, 8);
            let (ours, theirs) = (Status::RemoteOperation, Status::LocalAccess);
            assert!(attempt.ends_into(bad, SEND, near, ours, theirs)?);
            assert!(attempt.left_nothing());
            assert!(traps.are_untouched());
        }
        Ok(())
    }

    #[test]
    fn the_second_element_is_looked_at_before_the_first_is_used() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(LEN, 71)?, qp_pair.b.buffer(LEN)?);
        let traps = Traps::new(&qp_pair.b)?;
        qp_pair
            .b
            .receive(1, &[sink.sge(0, 8), traps.list[0].sge()])?;
        qp_pair.a.post(2, SEND, &[source.sge(0, 16)])?;
        assert!(qp_pair.a.sends.next_is(2, Status::RemoteOperation));
        assert!(qp_pair.b.receives.next_is(1, Status::LocalAccess));
        assert!(sink.is_blank(0, LEN));
        assert!(traps.are_untouched());
        Ok(())
    }

    #[test]
    fn an_element_that_no_byte_reaches_is_not_looked_at() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(LEN, 71)?, qp_pair.b.buffer(LEN)?);
        let far = Traps::new(&qp_pair.b)?;
        for len in cases([1, 8]) {
            for bad in cases(&far.list) {
                sink.clear();
                qp_pair.b.receive(1, &[sink.sge(0, 8), bad.sge()])?;
                qp_pair.a.post(2, SEND, &[source.sge(0, len)])?;
                assert!(qp_pair.a.sends.next_is(2, Status::Success));
                assert!(qp_pair.b.receives.next_is(1, Status::Success));
                assert!(sink.holds(0, len, 71, 0));
            }
        }
        assert!(far.are_untouched());
        Ok(())
    }

    #[test]
    fn bad_memory_is_a_local_error_where_the_peer_allows_nothing_either() -> Result {
        // In one part, and more than one hold of the memory or one run takes.
        for len in cases([8, 256 << 10, (256 << 10) + 1, 3 << 20]) {
            let attempt = Attempt::with(ALL, AccessFlags::empty())?;
            let bad = Bad {
                token: attempt.near.token(),
                addr: BASE + 1,
                len: len.max(LEN as u32),
            };
            let work = write(attempt.far.remote(0));
            assert!(attempt.ends(work, bad.sge(), Status::LocalAccess, Status::Flushed)?);
            assert!(attempt.left_nothing());
            let refused = attempt.qp_pair.b.counted(Counter::AccessRefused);
            kunit_assert_eq!(refused, 0);
        }
        Ok(())
    }

    #[test]
    fn bad_memory_at_both_ends_of_a_write_is_a_local_error() -> Result {
        for n in cases(0..10) {
            let attempt = Attempt::new()?;
            let (near, far) = (
                Traps::new(&attempt.qp_pair.a)?,
                Traps::new(&attempt.qp_pair.b)?,
            );
            let (work, sge) = (write(far.list[n].remote()), near.list[n].sge());
            assert!(attempt.ends(work, sge, Status::LocalAccess, Status::Flushed)?);
            assert!(attempt.left_nothing());
            assert!(near.are_untouched());
            assert!(far.are_untouched());
        }
        Ok(())
    }

    #[test]
    fn memory_without_local_write_takes_nothing() -> Result {
        let attempt = Attempt::new()?;
        let fixed = attempt.qp_pair.a.buffer_with(LEN, READS)?;
        let work = read(attempt.far.remote(0));
        assert!(attempt.ends(work, fixed.sge(0, 8), Status::LocalAccess, Status::Flushed)?);
        assert!(fixed.is_blank(0, LEN));
        let attempt = Attempt::with(READS, ALL)?;
        let near = attempt.near.sge(0, 8);
        let (ours, theirs) = (Status::RemoteOperation, Status::LocalAccess);
        assert!(attempt.ends(SEND, near, ours, theirs)?);
        assert!(attempt.left_nothing());
        // A send may read from such memory.
        let qp_pair = QpPair::new()?;
        let fixed = qp_pair.a.buffer_with(LEN, AccessFlags::empty())?;
        qp_pair.b.receive(1, &[qp_pair.b.buffer(LEN)?.whole()])?;
        qp_pair.a.post(1, SEND, &[fixed.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        Ok(())
    }

    #[test]
    fn bad_memory_of_the_peer_is_refused_for_writes_reads_and_atomics() -> Result {
        let asks: [MakeRequest; 4] = [
            |at, bad| (write(bad.remote()), at.near.sge(0, 8)),
            |at, bad| (write_immediate(bad.remote(), 1), at.near.sge(0, 8)),
            |at, bad| (read(bad.remote()), at.near.sge(0, 8)),
            |at, bad| (FETCH_ADD(bad.remote()), at.near.sge(0, 8)),
        ];
        for ask in cases(asks) {
            // The last kind is bad because of its length, which is that of the list here.
            for n in cases(0..9) {
                let attempt = Attempt::new()?;
                let traps = Traps::new(&attempt.qp_pair.b)?;
                let (work, sge) = ask(&attempt, &traps.list[n]);
                assert!(attempt.ends(work, sge, Status::RemoteAccess, Status::Flushed)?);
                assert!(attempt.left_nothing());
                assert!(traps.are_untouched());
                kunit_assert_eq!(attempt.qp_pair.b.counted(Counter::AccessRefused), 1);
                kunit_assert_eq!(attempt.qp_pair.a.counted(Counter::AccessRefused), 0);
            }
        }
        Ok(())
    }

    #[test]
    fn a_range_of_the_peer_is_checked_to_its_last_byte() -> Result {
        for (at, len, fine) in cases([
            (0, LEN, true),
            (1, LEN - 1, true),
            (LEN - 1, 1, true),
            (1, LEN, false),
            (LEN, 1, false),
        ]) {
            for reading in cases([false, true]) {
                let attempt = Attempt::new()?;
                let far = attempt.far.remote(at);
                let work = if reading { read(far) } else { write(far) };
                attempt
                    .qp_pair
                    .a
                    .post(1, work, &[attempt.near.sge(0, len)])?;
                let status = if fine {
                    Status::Success
                } else {
                    Status::RemoteAccess
                };
                assert!(attempt.qp_pair.a.sends.next_is(1, status));
                assert!(attempt.left_nothing());
            }
        }
        Ok(())
    }

    #[test]
    fn each_use_wants_its_own_right_of_the_region() -> Result {
        // Rows: the right of the region; columns: may be written, read, changed atomically.
        let table = [
            (AccessFlag::LocalWrite.into(), [false, false, false]),
            (WRITES, [true, false, false]),
            (READS, [false, true, false]),
            (ATOMICS, [false, false, true]),
        ];
        for (rights, row) in cases(table) {
            for (work, fine) in cases([write, read, FETCH_ADD].into_iter().zip(row)) {
                // First the region decides, then the queue pair.
                for (region, qp) in cases([(rights, ALL), (ALL, rights)]) {
                    let attempt = Attempt::with(region, qp)?;
                    let work = work(attempt.far.remote(8));
                    attempt.qp_pair.a.post(1, work, &[attempt.near.sge(0, 8)])?;
                    let status = if fine {
                        Status::Success
                    } else {
                        Status::RemoteAccess
                    };
                    assert!(attempt.qp_pair.a.sends.next_is(1, status));
                    assert!(fine || attempt.left_nothing());
                    assert!(fine || attempt.qp_pair.is_down());
                }
            }
        }
        Ok(())
    }

    #[test]
    fn rights_of_a_queue_pair_count_when_the_access_comes() -> Result {
        let attempt = Attempt::with(ALL, AccessFlags::empty())?;
        let (a, b) = (&attempt.qp_pair.a, &attempt.qp_pair.b);
        b.qp.set_peer_rights(WRITES);
        a.post(1, write(attempt.far.remote(0)), &[attempt.near.sge(0, 8)])?;
        assert!(a.sends.next_is(1, Status::Success));
        b.qp.set_peer_rights(READS);
        a.post(2, read(attempt.far.remote(0)), &[attempt.near.sge(0, 8)])?;
        assert!(a.sends.next_is(2, Status::Success));
        a.post(3, write(attempt.far.remote(0)), &[attempt.near.sge(0, 8)])?;
        assert!(a.sends.next_is(3, Status::RemoteAccess));
        Ok(())
    }

    #[test]
    fn sends_need_no_right_of_a_peer() -> Result {
        let attempt = Attempt::with(AccessFlag::LocalWrite.into(), AccessFlags::empty())?;
        attempt.near.fill(72);
        attempt.qp_pair.b.receive(1, &[attempt.far.whole()])?;
        attempt.qp_pair.a.post(2, SEND, &[attempt.near.whole()])?;
        assert!(attempt.qp_pair.a.sends.next_is(2, Status::Success));
        assert!(attempt.far.holds(0, LEN, 72, 0));
        Ok(())
    }

    #[test]
    fn no_peer_gets_in_under_the_token_for_all_local_memory() -> Result {
        for work in cases([write, read, FETCH_ADD]) {
            let attempt = Attempt::new()?;
            let addr = attempt.far.run().addr() as u64;
            let token = Token::LOCAL_MEMORY;
            let work = work(RemoteAddr { addr, token });
            let near = attempt.near.sge(0, 8);
            assert!(attempt.ends(work, near, Status::RemoteAccess, Status::Flushed)?);
            assert!(attempt.left_nothing());
        }
        Ok(())
    }

    #[test]
    fn a_refusal_in_the_middle_of_a_queue_stops_it_there() -> Result {
        let attempt = Attempt::new()?;
        let (a, far) = (&attempt.qp_pair.a, &attempt.far);
        attempt.near.fill(73);
        let list = || [attempt.near.sge(0, 8)].into_iter();
        let flags = SendFlag::Signaled;
        for (context, at) in cases([(1, 0), (2, LEN), (3, 16)]) {
            assert!(a
                .qp
                .post(context, write(far.remote(at)), flags, list())
                .is_ok());
        }
        a.qp.ring_doorbell();
        assert!(a.sends.next_is(1, Status::Success));
        assert!(a.sends.next_is(2, Status::RemoteAccess));
        assert!(a.sends.next_is(3, Status::Flushed));
        assert!(far.holds(0, 8, 73, 0));
        assert!(far.is_blank(8, LEN - 8));
        assert!(far.has_clean_edges());
        Ok(())
    }
}
