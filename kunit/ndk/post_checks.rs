// SPDX-License-Identifier: GPL-2.0

//! The checks of a post, and their order (POST-08 to POST-14).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_post_checks)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            abi::numbers::op_flags::{
                ALLOW_REMOTE_READ,
                INLINE, //
            },
            adapter::Limits,
            status::NtStatus,
            tests::{
                fake_transport::ManualPair,
                host::{
                    pd,
                    SIZES, //
                },
                memory::PageBuffer,
                pair::Pair,
                requests::{
                    deep,
                    list,
                    of_length,
                    Kind,
                    RequestSet, //
                }, //
            }, //
        },
        rdma::values::{
            qp::QpCaps,
            token::Token, //
        },
        sys::sge::Sge, //
    };

    /// Sends one element to an empty receive; returns the status of the send.
    fn end_of(pair: &Pair, sge: Sge) -> Result<NtStatus> {
        pair.b.receive(1, &[])?;
        pair.a.send(2, &[sge], 0)?;
        Ok(pair.a.requests.next()?.status)
    }

    #[test]
    fn ndk_post_08_the_list_is_read_during_the_call_only() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(5);
        let mut on_stack = [from.sge(16, 32)?, from.sge(48, 32)?];
        pair.a.send(1, &on_stack, 0)?;
        // The request waits for its receive; the list gets other contents.
        on_stack.fill(of_length(77));
        let mut into = [to.sge(0, 4096)?];
        pair.a.receive(2, &into)?;
        pair.b.receive(3, &into)?;
        into.fill(of_length(1));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        kunit_assert_eq!(got.bytes, 64);
        assert!(to.has(21, 0, 64));
        kunit_assert_eq!(on_stack[0].len(), 77);
        kunit_assert_eq!(into[0].len(), 1);
        Ok(())
    }

    #[test]
    fn ndk_post_09_an_element_outside_what_its_token_names_is_an_access_violation() -> Result {
        let table: [fn(&PageBuffer, &PageBuffer) -> Result<Sge>; 5] = [
            // One byte too far.
            |b, _| b.sge(4090, 7),
            // One byte too early.
            |b, _| {
                let sge = b.sge(0, 8)?;
                Ok(Sge::new(sge.addr() - 1, sge.len(), sge.token()))
            },
            // A token that was never given.
            |b, _| Ok(b.sge_by(Token::from_raw(0x00ff_ff01), 0, 8)),
            // A token with another key.
            |b, _| {
                let token = b.mr()?.local_token();
                Ok(b.sge_by(Token::from_raw(token.raw() ^ 1), 0, 8))
            },
            // A token of another domain.
            |_, foreign| foreign.sge(0, 8),
        ];
        for number in cases(0..table.len()) {
            let pair = Pair::new()?;
            let buffer = pair.a.buffer(4096, 0)?;
            let other = pd(&pair.test_host.adapter)?;
            let foreign = PageBuffer::registered(&other, 4096, 0)?;
            let status = end_of(&pair, table[number](&buffer, &foreign)?)?;
            kunit_assert_eq!(status, NtStatus::ACCESS_VIOLATION);
            // Not a byte reached the peer.
            assert!(pair
                .b
                .receives
                .poll()
                .is_none_or(|r| r.status != NtStatus::SUCCESS));
        }
        Ok(())
    }

    #[test]
    fn ndk_post_09_the_privileged_token_takes_logical_addresses_and_no_others() -> Result {
        let pair = Pair::new()?;
        let (mut from, to) = (PageBuffer::plain(8192)?, pair.b.buffer(4096, 1)?);
        from.fill(9);
        let token = pair.a.pd.privileged_token();
        let addr = from.pages()?[1] + 8;
        let logical = Sge::new(addr, 100, token);
        pair.b.receive(1, &[to.sge(0, 4096)?])?;
        pair.a.send(2, &[logical], 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        // CAST: the low byte.
        assert!(to.has(9u8.wrapping_add((4096 + 8) as u8), 0, 100));
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        for addr in cases([0, 0x1000, u64::MAX - 50]) {
            let pair = Pair::new()?;
            let stray = Sge::new(addr, 100, token);
            kunit_assert_eq!(end_of(&pair, stray)?, NtStatus::ACCESS_VIOLATION);
        }
        Ok(())
    }

    #[test]
    fn ndk_post_10_the_limit_of_elements_is_the_queue_pairs() -> Result {
        let manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        let (a, there) = (&manual.pair.a.qp, request_set.there.remote(0)?);
        let (four, five) = (list(&request_set.here, 4)?, list(&request_set.here, 5)?);
        let (four, five) = (four.iter().copied(), five.iter().copied());
        let token = request_set.theirs.mr()?.remote_token();
        let too_many = Err(NtStatus::DATA_OVERRUN);
        kunit_assert_eq!(a.send(1, five.clone(), 0), too_many);
        kunit_assert_eq!(a.send_and_invalidate(2, five.clone(), 0, token), too_many);
        kunit_assert_eq!(a.write(3, five, there, 0), too_many);
        kunit_assert_eq!(a.send(4, four.clone(), 0), Ok(()));
        kunit_assert_eq!(a.send_and_invalidate(5, four.clone(), 0, token), Ok(()));
        kunit_assert_eq!(a.write(6, four, there, 0), Ok(()));
        Ok(())
    }

    #[test]
    fn ndk_post_10_the_limit_of_a_read_is_the_adapters() -> Result {
        let none = QpCaps {
            send_sge: 0,
            ..SIZES
        };
        for sizes in cases([SIZES, none]) {
            let manual = ManualPair::with(sizes)?;
            let request_set = RequestSet::new(&manual.pair)?;
            let (a, there) = (&manual.pair.a.qp, request_set.there.remote(0)?);
            // CAST: widening.
            let most = Limits::FULL.read_sges as usize;
            let (fits, more) = (
                list(&request_set.here, most)?,
                list(&request_set.here, most + 1)?,
            );
            let too_many = Err(NtStatus::DATA_OVERRUN);
            kunit_assert_eq!(a.read(1, more.iter().copied(), there, 0), too_many);
            kunit_assert_eq!(a.read(2, fits.iter().copied(), there, 0), Ok(()));
            // The limit of a send is that of the queue pair's sizes.
            let sent = a.send(3, fits.iter().copied(), 0);
            kunit_assert_eq!(sent.is_ok(), sizes.send_sge > 0);
        }
        Ok(())
    }

    #[test]
    fn ndk_post_11_a_request_longer_than_a_transfer_is_refused() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        let (a, there) = (&manual.pair.a.qp, request_set.there.remote(0)?);
        let token = request_set.theirs.mr()?.remote_token();
        let most = Limits::FULL.transfer;
        let over = [of_length(most), of_length(1)].into_iter();
        // More than 32 bits in all, so that a sum that wraps is caught.
        let wraps = [of_length(u32::MAX), of_length(2)].into_iter();
        let long = Err(NtStatus::BUFFER_OVERFLOW);
        for list in cases([over, wraps]) {
            kunit_assert_eq!(a.send(1, list.clone(), 0), long);
            kunit_assert_eq!(a.send_and_invalidate(1, list.clone(), 0, token), long);
            kunit_assert_eq!(a.write(1, list, there, 0), long);
        }
        kunit_assert_eq!(a.read(1, [of_length(most + 1)].into_iter(), there, 0), long);
        let just = [of_length(most - 1), of_length(1)].into_iter();
        kunit_assert_eq!(a.send(2, just, 0), Ok(()));
        kunit_assert_eq!(a.read(3, [of_length(most)].into_iter(), there, 0), Ok(()));
        kunit_assert_eq!(manual.start_all(), 2);
        Ok(())
    }

    #[test]
    fn ndk_post_13_a_flag_that_a_function_does_not_define_is_refused() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        for kind in cases(Kind::ALL) {
            for bit in cases((0..32).map(|n| 1u32 << n).filter(|b| kind.flags() & b == 0)) {
                let posted = request_set.post(&manual.pair.a, kind, 1, bit)?;
                kunit_assert_eq!(posted, Err(NtStatus::INVALID_PARAMETER));
            }
        }
        assert!(manual.start().is_none());
        assert!(manual.pair.a.requests.stays_empty());
        // All defined flags except `DEFER` are accepted together.
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            let flags = kind.flags() & !0x200;
            kunit_assert_eq!(
                request_set.post(&manual.pair.a, kind, context, flags)?,
                Ok(())
            );
        }
        Ok(())
    }

    #[test]
    fn ndk_post_14_state_comes_before_flags_and_flags_before_elements() -> Result {
        let manual = ManualPair::unconnected(SIZES)?;
        let five = [of_length(1); 5].into_iter();
        let a = &manual.pair.a.qp;
        kunit_assert_eq!(
            a.send(1, five.clone(), 0x8000),
            Err(NtStatus::CONNECTION_INVALID)
        );
        let manual = ManualPair::new()?;
        let a = &manual.pair.a.qp;
        kunit_assert_eq!(a.send(1, five, 0x8000), Err(NtStatus::INVALID_PARAMETER));
        Ok(())
    }

    #[test]
    fn ndk_post_14_elements_come_before_length_and_length_before_object_access() -> Result {
        let manual = ManualPair::new()?;
        let a = &manual.pair.a.qp;
        let long = [of_length(u32::MAX); 5].into_iter();
        kunit_assert_eq!(a.send(1, long, 0), Err(NtStatus::DATA_OVERRUN));
        // Two pages for a region of one page, which cannot grant remote rights.
        let mut private = PageBuffer::fast(&manual.pair.a.pd, 4096, false)?;
        let posted = private.fast_register(a, 1, ALLOW_REMOTE_READ)?;
        kunit_assert_eq!(posted, Err(NtStatus::ACCESS_VIOLATION));
        let two = PageBuffer::plain(8192)?;
        private.bytes = two.bytes;
        let posted = private.fast_register(a, 1, ALLOW_REMOTE_READ)?;
        kunit_assert_eq!(posted, Err(NtStatus::INVALID_PARAMETER));
        Ok(())
    }

    #[test]
    fn ndk_post_14_room_comes_last() -> Result {
        let manual = ManualPair::with(deep(1))?;
        let request_set = RequestSet::new(&manual.pair)?;
        let private = PageBuffer::fast(&manual.pair.a.pd, 4096, false)?;
        let (a, sge) = (&manual.pair.a.qp, request_set.here.sge(0, 65)?);
        kunit_assert_eq!(a.send(1, [].into_iter(), 0), Ok(()));
        let full = Err(NtStatus::NO_MORE_ENTRIES);
        kunit_assert_eq!(a.send(2, [].into_iter(), 0), full);
        kunit_assert_eq!(
            a.send(2, [].into_iter(), 0x8000),
            Err(NtStatus::INVALID_PARAMETER)
        );
        let five = [sge; 5].into_iter();
        kunit_assert_eq!(a.send(2, five, 0), Err(NtStatus::DATA_OVERRUN));
        let long = Err(NtStatus::BUFFER_OVERFLOW);
        kunit_assert_eq!(a.send(2, [of_length(u32::MAX)].into_iter(), 0), long);
        // One byte above the inline limit.
        kunit_assert_eq!(a.send(2, [sge].into_iter(), INLINE), long);
        let posted = private.fast_register(a, 2, ALLOW_REMOTE_READ)?;
        kunit_assert_eq!(posted, Err(NtStatus::ACCESS_VIOLATION));
        // A valid registration for which there is no room has no effect.
        let token = request_set.fast.mr()?.remote_token();
        kunit_assert_eq!(request_set.fast.fast_register(a, 2, 0)?, full);
        kunit_assert_eq!(request_set.fast.mr()?.remote_token(), token);
        Ok(())
    }
}
