// SPDX-License-Identifier: GPL-2.0

//! Bytes, lengths and extras of sends, writes, reads and atomics over a transport.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kunit::buffer::MrBuffer,
    rdma::values::{
        access::AccessFlag,
        qp::QpState,
        work::SendFlags, //
    },
    sys::{
        sge::Sge,
        span::test_part, //
    }, //
};

/// Cuts `len` bytes of `buffer` into elements that end at these bytes.
fn cut(buffer: &Arc<MrBuffer>, from: usize, ends: &[usize], len: usize) -> Result<KVec<Sge>> {
    let mut list = KVec::new();
    let mut at = 0;
    // The last element goes to the end of the message.
    for i in 0..=ends.len() {
        let end = ends.get(i).map_or(len, |end| len.min(*end));
        list.push(buffer.sge(from + at, end - at), GFP_KERNEL)?;
        at = end;
    }
    Ok(list)
}

#[kernel::macros::kunit_tests(ndk_direct_tests_message)]
mod tests {
    use super::*;

    use crate::{
        engine::wq::PostError,
        kunit::{
            harness::{
                cases,
                EndAttr,
                QpPair, //
            },
            requests::*, //
        },
        rdma::values::{
            status::Status,
            token::Token,
            wc::WcOpcode,
            work::{
                SendOp,
                SendWith, //
            }, //
        }, //
    };

    /// The ends of the elements; each list is used on both sides.
    const CUTS: [&[usize]; 6] = [&[], &[1], &[7, 8], &[8, 8, 15], &[3, 4, 11], &[16]];
    /// Each size below, at and above the ends.
    const SIZES: [usize; 14] = [1, 2, 3, 6, 7, 8, 9, 15, 16, 17, 255, 256, 257, 4097];

    #[test]
    fn sends_gather_and_scatter_over_odd_borders() -> Result {
        let qp_pair = QpPair::new()?;
        let source = qp_pair.a.filled(4200, 1)?;
        let sink = qp_pair.b.buffer(4200)?;
        for len in cases(SIZES) {
            for (gather, scatter) in cases(CUTS.iter().zip(CUTS.iter().cycle().skip(1))) {
                sink.clear();
                // The receive is one byte longer than the message.
                qp_pair.b.receive(2, &cut(&sink, 5, scatter, len + 1)?)?;
                qp_pair.a.post(1, SEND, &cut(&source, 3, gather, len)?)?;
                assert!(qp_pair.a.sends.next_is(1, Status::Success));
                let entry = qp_pair.b.receives.next();
                assert!(entry.is_some_and(|e| e.byte_len as usize == len));
                assert!(sink.is_blank(0, 5));
                assert!(sink.holds(5, len, 1, 3));
                assert!(sink.is_blank(5 + len, sink.len() - 5 - len));
            }
        }
        Ok(())
    }

    #[test]
    fn writes_gather_and_leave_their_surroundings_alone() -> Result {
        let qp_pair = QpPair::new()?;
        let source = qp_pair.a.filled(4200, 2)?;
        let sink = qp_pair.b.buffer(4200)?;
        for len in cases(SIZES) {
            for (gather, at) in cases(CUTS.iter().zip([0, 1, 7, 8, 63, 4200 - len])) {
                sink.clear();
                let list = cut(&source, 9, gather, len)?;
                qp_pair.a.post(1, write(sink.remote(at)), &list)?;
                assert!(qp_pair.a.sends.next_is(1, Status::Success));
                assert!(sink.is_blank(0, at));
                assert!(sink.holds(at, len, 2, 9));
                assert!(sink.is_blank(at + len, sink.len() - at - len));
            }
        }
        assert!(qp_pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn reads_scatter_and_leave_their_surroundings_alone() -> Result {
        let qp_pair = QpPair::new()?;
        let source = qp_pair.b.filled(4200, 3)?;
        let sink = qp_pair.a.buffer(4200)?;
        for len in cases(SIZES) {
            for (end, at) in cases([0, 1, 7, 8, 15, 16].into_iter().zip([0, 1, 7, 8, 63, 3])) {
                sink.clear();
                let list = cut(&sink, 5, &[end], len)?;
                qp_pair.a.post(1, read(source.remote(at)), &list)?;
                let entry = qp_pair.a.sends.next();
                assert!(entry.is_some_and(|e| e.byte_len as usize == len));
                assert!(entry.is_some_and(|e| e.opcode == WcOpcode::Read));
                assert!(sink.is_blank(0, 5));
                assert!(sink.holds(5, len, 3, at));
                assert!(sink.is_blank(5 + len, sink.len() - 5 - len));
            }
        }
        Ok(())
    }

    #[test]
    fn plain_memory_and_regions_mix_in_one_list() -> Result {
        let qp_pair = QpPair::new()?;
        let (x, y) = (qp_pair.a.filled(50, 4)?, qp_pair.a.filled(50, 5)?);
        let (p, q) = (qp_pair.b.buffer(50)?, qp_pair.b.buffer(50)?);
        qp_pair.b.receive(2, &[p.plain(1, 13), q.sge(2, 47)])?;
        qp_pair.a.post(1, SEND, &[x.plain(0, 20), y.sge(0, 40)])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        assert!(p.is_blank(0, 1));
        assert!(p.holds(1, 13, 4, 0));
        assert!(p.is_blank(14, 36));
        assert!(q.is_blank(0, 2));
        assert!(q.holds(2, 7, 4, 13));
        assert!(q.holds(9, 40, 5, 0));
        assert!(q.is_blank(49, 1));
        Ok(())
    }

    #[test]
    fn a_region_of_scattered_pieces_is_one_range() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, memory) = (qp_pair.a.filled(64, 6)?, qp_pair.b.buffer(100)?);
        let region = &qp_pair.b.device().regions;
        let token = region.add_fast(qp_pair.b.domain.id(), 3)?;
        // In this order: bytes 60 to 70, byte 20, bytes 30 to 50.
        let staged = region.stage(token.index(), |list| {
            [(60, 10), (20, 1), (30, 20)].iter().all(|(at, len)| {
                let piece = memory.run().slice(*at, *len);
                piece.is_some_and(|p| list.push(test_part(p)).is_ok())
            })
        });
        kunit_assert_eq!(staged, Some(true));
        let rights = AccessFlag::LocalWrite | AccessFlag::RemoteWrite;
        qp_pair.b.post(9, register(token, 31, rights), &[])?;
        assert!(qp_pair.b.sends.next_is(9, Status::Success));
        let to = crate::rdma::values::work::RemoteAddr {
            addr: crate::kunit::buffer::BASE + 4,
            token,
        };
        qp_pair.a.post(1, write(to), &[source.sge(0, 27)])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(memory.is_blank(60, 4));
        assert!(memory.holds(64, 6, 6, 0));
        assert!(memory.is_blank(19, 1));
        assert!(memory.holds(20, 1, 6, 6));
        assert!(memory.is_blank(21, 9));
        assert!(memory.holds(30, 20, 6, 7));
        assert!(memory.is_blank(50, 10));
        assert!(memory.is_blank(70, 30));
        region.remove(token.index());
        Ok(())
    }

    #[test]
    fn messages_without_bytes_arrive_and_need_no_list() -> Result {
        let qp_pair = QpPair::new()?;
        let memory = qp_pair.b.buffer(8)?;
        qp_pair.b.receive(2, &[])?;
        qp_pair.b.receive(3, &[memory.whole()])?;
        for context in cases([11, 12]) {
            qp_pair.a.post(context, SEND, &[])?;
        }
        for context in cases([2, 3]) {
            let entry = qp_pair
                .b
                .receives
                .next()
                .map(|e| (e.context.raw(), e.status, e.byte_len));
            kunit_assert_eq!(entry, Some((context, Status::Success, 0)));
        }
        qp_pair.a.post(13, write(memory.remote(8)), &[])?;
        qp_pair.a.post(14, read(memory.remote(0)), &[])?;
        assert!(qp_pair.a.sends.next_are(11..15, Status::Success));
        assert!(memory.is_blank(0, 8));
        assert!(qp_pair.b.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn a_message_too_long_for_its_receive_ends_both_sides() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(32, 7)?, qp_pair.b.buffer(64)?);
        qp_pair.b.receive(2, &[sink.sge(0, 10), sink.sge(20, 10)])?;
        qp_pair.b.receive(3, &[sink.sge(40, 20)])?;
        qp_pair.a.post(1, SEND, &[source.sge(0, 20)])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        qp_pair.b.receive(4, &[])?;
        qp_pair.a.post(5, SEND, &[source.sge(0, 21)])?;
        assert!(qp_pair.a.sends.next_is(5, Status::RemoteInvalidRequest));
        assert!(qp_pair.b.receives.next_is(3, Status::ReceiveLength));
        assert!(qp_pair.b.receives.next_is(4, Status::Flushed));
        assert!(sink.is_blank(40, 24));
        assert!(qp_pair.is_down());
        Ok(())
    }

    #[test]
    fn immediate_data_comes_with_sends_and_writes() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(32, 8)?, qp_pair.b.buffer(32)?);
        let landing = qp_pair.b.buffer(32)?;
        for context in cases([2, 3]) {
            qp_pair.b.receive(context, &[sink.whole()])?;
        }
        qp_pair
            .a
            .post(1, send_immediate(0xDEAD_BEEF), &[source.sge(0, 5)])?;
        let sent = qp_pair.b.receives.next();
        let what = sent.map(|e| (e.opcode, e.with, e.byte_len));
        let immediate = SendWith::Imm(0xDEAD_BEEF);
        kunit_assert_eq!(what, Some((WcOpcode::Recv, immediate, 5)));
        assert!(sink.holds(0, 5, 8, 0));
        sink.clear();
        let work = write_immediate(landing.remote(1), 7);
        qp_pair.a.post(2, work, &[source.sge(0, 30)])?;
        let written = qp_pair.b.receives.next();
        let what = written.map(|e| (e.context.raw(), e.opcode, e.with, e.byte_len));
        let immediate = SendWith::Imm(7);
        kunit_assert_eq!(what, Some((3, WcOpcode::RecvWithImm, immediate, 30)));
        assert!(landing.is_blank(0, 1));
        assert!(landing.holds(1, 30, 8, 0));
        assert!(sink.is_blank(0, 32));
        assert!(qp_pair.a.sends.next_are(1..3, Status::Success));
        Ok(())
    }

    #[test]
    fn a_plain_message_says_that_nothing_came_with_it() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.b.receive(2, &[])?;
        qp_pair.a.post(1, SEND, &[])?;
        let entry = qp_pair.b.receives.next();
        kunit_assert_eq!(
            entry.map(|e| (e.with, e.solicited)),
            Some((SendWith::Nothing, false))
        );
        Ok(())
    }

    #[test]
    fn inline_bytes_are_taken_while_posting() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(64, 9)?, qp_pair.b.buffer(64)?);
        let landing = qp_pair.b.buffer(64)?;
        qp_pair.b.receive(2, &[sink.whole()])?;
        // The send has not begun when the buffer gets its next use.
        let list = [source.plain(0, 33)];
        assert!(qp_pair
            .a
            .qp
            .post(1, SEND, INLINE, list.iter().copied())
            .is_ok());
        source.fill(10);
        let list = [source.plain(3, 64 - 3)];
        let work = write(landing.remote(0));
        assert!(qp_pair
            .a
            .qp
            .post(2, work, INLINE, list.iter().copied())
            .is_ok());
        source.clear();
        qp_pair.a.qp.ring_doorbell();
        assert!(qp_pair.a.sends.next_are(1..3, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        assert!(sink.holds(0, 33, 9, 0));
        assert!(sink.is_blank(33, 31));
        assert!(landing.holds(0, 61, 10, 3));
        assert!(landing.is_blank(61, 3));
        Ok(())
    }

    #[test]
    fn inline_requests_ignore_tokens_and_the_limit_of_elements() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(64, 11)?, qp_pair.b.buffer(64)?);
        qp_pair.b.receive(2, &[sink.whole()])?;
        let mut list = KVec::new();
        for at in cases(0..16) {
            let addr = source.plain(at * 4, 4).addr();
            list.push(Sge::new(addr, 4, Token::from_raw(0xBAD0_BAD0)), GFP_KERNEL)?;
        }
        assert!(list.len() > EndAttr::PLAIN.caps.send_sge as usize);
        qp_pair.a.post_with(1, SEND, INLINE, &list)?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        assert!(qp_pair.b.receives.next_is(2, Status::Success));
        assert!(sink.holds(0, 64, 11, 0));
        Ok(())
    }

    #[test]
    fn inline_requests_have_a_limit_and_are_outbound_only() -> Result {
        let qp_pair = QpPair::new()?;
        let source = qp_pair.a.filled(65, 12)?;
        let memory = qp_pair.b.buffer(65)?;
        let long = [source.plain(0, 32), source.plain(32, 33)];
        let refused = qp_pair.a.try_post(1, SEND, INLINE, &long);
        kunit_assert_eq!(refused, Err(PostError::InlineTooLong));
        let work = read(memory.remote(0));
        let refused = qp_pair.a.try_post(2, work, INLINE, &[source.plain(0, 8)]);
        kunit_assert_eq!(refused, Err(PostError::Invalid));
        // Neither refused request left a trace.
        let work = write(memory.remote(0));
        qp_pair
            .a
            .post_with(3, work, INLINE, &[source.plain(0, 64)])?;
        assert!(qp_pair.a.sends.next_is(3, Status::Success));
        assert!(memory.holds(0, 64, 12, 0));
        assert!(qp_pair.a.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn inline_bytes_that_wrap_around_the_end_of_memory_are_a_local_error() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(8, 13)?, qp_pair.b.buffer(64)?);
        qp_pair.b.receive(1, &[sink.whole()])?;
        let wrapping = Sge::new(u64::MAX - 3, 8, Token::LOCAL_MEMORY);
        qp_pair
            .a
            .post_with(2, SEND, INLINE, &[source.plain(0, 8), wrapping])?;
        assert!(qp_pair.a.sends.next_is(2, Status::LocalAccess));
        assert!(qp_pair.b.receives.next_is(1, Status::Flushed));
        assert!(sink.is_blank(0, 64));
        assert!(qp_pair.is_down());
        Ok(())
    }

    #[test]
    fn atomics_change_the_word_and_bring_the_old_one() -> Result {
        let qp_pair = QpPair::new()?;
        let (words, old) = (qp_pair.b.buffer(24)?, qp_pair.a.buffer(24)?);
        words.set_word(8, 40);
        let at = words.remote(8);
        let swap = |compare, swap| SendOp::CmpSwap { at, compare, swap };
        let steps = [
            (SendOp::FetchAdd { at, add: 2 }, 40, 42),
            (swap(41, 9), 42, 42),
            (swap(42, u64::MAX), 42, u64::MAX),
            (SendOp::FetchAdd { at, add: 3 }, u64::MAX, 2),
        ];
        for (work, before, after) in cases(steps) {
            // The old value may come in parts, at any address.
            qp_pair.a.post(1, work, &[old.sge(1, 3), old.sge(11, 5)])?;
            let entry = qp_pair.a.sends.next();
            let what = entry.map(|e| (e.status, e.opcode, e.byte_len));
            kunit_assert_eq!(what, Some((Status::Success, work.opcode(), 8)));
            let parts = old.word(1) & 0xFF_FFFF | old.word(11) << 24;
            kunit_assert_eq!(parts, before);
            kunit_assert_eq!(words.word(8), after);
        }
        assert!(words.is_blank(0, 8));
        assert!(words.is_blank(16, 8));
        assert!(old.is_blank(0, 1));
        assert!(old.is_blank(4, 7));
        assert!(old.is_blank(16, 8));
        Ok(())
    }

    #[test]
    fn atomics_on_misaligned_words_are_refused_by_the_peer() -> Result {
        for at in cases([1, 4, 7]) {
            let qp_pair = QpPair::new()?;
            let (words, old) = (qp_pair.b.buffer(24)?, qp_pair.a.buffer(8)?);
            let at = words.remote(at);
            qp_pair
                .a
                .post(1, SendOp::FetchAdd { at, add: 2 }, &[old.whole()])?;
            assert!(qp_pair.a.sends.next_is(1, Status::RemoteInvalidRequest));
            assert!(words.is_blank(0, 24));
            assert!(old.is_blank(0, 8));
            assert!(qp_pair.is_down());
        }
        Ok(())
    }

    #[test]
    fn atomics_want_room_for_exactly_one_word() -> Result {
        for len in cases([0, 7, 9]) {
            let qp_pair = QpPair::new()?;
            let (words, old) = (qp_pair.b.buffer(8)?, qp_pair.a.buffer(16)?);
            let at = words.remote(0);
            qp_pair
                .a
                .post(1, SendOp::FetchAdd { at, add: 2 }, &[old.sge(0, len)])?;
            assert!(qp_pair.a.sends.next_is(1, Status::LocalLength));
            assert!(words.is_blank(0, 8));
            assert!(old.is_blank(0, 16));
            assert!(qp_pair.is_down());
        }
        Ok(())
    }

    #[test]
    fn a_write_is_there_before_the_send_behind_it() -> Result {
        let qp_pair = QpPair::new()?;
        let (source, sink) = (qp_pair.a.filled(4096, 13)?, qp_pair.b.buffer(4096)?);
        for seed in cases(14..64) {
            source.fill(seed);
            qp_pair.b.receive(2, &[])?;
            let list = [source.whole()];
            let work = write(sink.remote(0));
            let posted = qp_pair
                .a
                .qp
                .post(1, work, SendFlags::empty(), list.iter().copied());
            assert!(posted.is_ok());
            qp_pair.a.post(2, SEND, &[])?;
            assert!(qp_pair.b.receives.next_is(2, Status::Success));
            assert!(sink.holds(0, 4096, seed, 0));
            assert!(qp_pair.a.sends.next_is(2, Status::Success));
        }
        Ok(())
    }

    #[test]
    fn reads_over_a_connection_that_allows_none_fail_on_their_own_side() -> Result {
        let mut attr = EndAttr::PLAIN;
        attr.limits.outbound = 0;
        let qp_pair = QpPair::with(&attr, &EndAttr::PLAIN)?;
        let (source, sink) = (qp_pair.b.filled(8, 1)?, qp_pair.a.buffer(8)?);
        qp_pair
            .a
            .post(1, write(source.remote(0)), &[sink.whole()])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Success));
        qp_pair.a.post(2, read(source.remote(0)), &[sink.whole()])?;
        assert!(qp_pair.a.sends.next_is(2, Status::LocalOperation));
        assert!(sink.is_blank(0, 8));
        assert!(qp_pair.is_down());
        kunit_assert_eq!(qp_pair.a.qp.state(), QpState::Err);
        Ok(())
    }
}
