// SPDX-License-Identifier: GPL-2.0

//! Inline data of sends (SEND-08 to SEND-11).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_send_inline)]
mod tests {
    use core::hint::black_box;

    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            abi::numbers::op_flags::*,
            status::NtStatus,
            tests::{
                memory::PAGE,
                pair::{
                    Pair,
                    TestSide, //
                },
                remote::{
                    has_ended,
                    is_up,
                    NOTHING, //
                }, //
            }, //
        },
        rdma::values::token::Token,
        sys::sge::Sge, //
    };

    /// A token without a region.
    const JUNK: Token = Token::from_raw(0xBAD0_BAD0);

    /// An element over bytes at any virtual address.
    fn at(bytes: &[u8], token: Token) -> Sge {
        let addr = black_box(bytes.as_ptr()).addr() as u64;
        // CAST: a test's size.
        Sge::new(addr, bytes.len() as u32, token)
    }

    fn post(test_side: &TestSide, context: u64, sges: &[Sge], flags: u32) -> Result<(), NtStatus> {
        test_side.qp.send(context, sges.iter().copied(), flags)
    }

    #[test]
    fn ndk_send_08_the_bytes_are_taken_during_the_call() -> Result {
        let pair = Pair::new()?;
        let to = pair.b.buffer(4096, 1)?;
        let mut bytes = KVec::from_elem(0x11u8, 32, GFP_KERNEL)?;
        for (context, offset) in cases([(1, 0), (2, 32), (3, 64)]) {
            pair.b.receive(context, &[to.sge(offset, 32)?])?;
        }
        // Deferred: the transport gets the bytes long after the call.
        assert!(post(&pair.a, 1, &[at(&bytes, JUNK)], INLINE | DEFER).is_ok());
        bytes.fill(0x22);
        let mut sges = [at(&bytes[..20], JUNK), at(&bytes[20..], JUNK)];
        assert!(post(&pair.a, 2, &sges, INLINE | DEFER).is_ok());
        sges.fill(Sge::EMPTY);
        black_box(&sges);
        bytes.fill(0x33);
        black_box(&bytes);
        // The buffer may even be freed.
        drop(bytes);
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        pair.a.send(3, &NOTHING, 0)?;
        for context in cases(1..4) {
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
        }
        assert!(to.bytes[..32].iter().all(|b| *b == 0x11));
        assert!(to.bytes[32..64].iter().all(|b| *b == 0x22));
        assert!(to.bytes[64..].iter().all(|b| *b == 0));
        Ok(())
    }

    #[test]
    fn ndk_send_08_an_address_is_virtual_under_the_privileged_token_too() -> Result {
        static CONSTANT: [u8; 16] = [0x5A; 16];
        let pair = Pair::new()?;
        let to = pair.b.buffer(4096, 1)?;
        let mapped = VVec::from_elem(0x6Bu8, 2 * PAGE, GFP_KERNEL)?;
        let mut local = [0x7Cu8; 16];
        // None of these is at a logical address: the first is in the module, the second crosses
        // pages that need not be neighbours, the third is on the stack.
        let privileged = pair.a.pd.privileged_token();
        let table = [
            (at(&CONSTANT, privileged), 0x5A),
            (at(&mapped[PAGE - 8..PAGE + 8], privileged), 0x6B),
            (at(&local, privileged), 0x7C),
        ];
        for (sge, byte) in cases(table) {
            pair.b.receive(1, &[to.sge(0, 16)?])?;
            assert!(post(&pair.a, 2, &[sge], INLINE).is_ok());
            assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
            assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
            assert!(to.bytes[..16].iter().all(|b| *b == byte));
        }
        local.fill(0);
        black_box(&local);
        Ok(())
    }

    #[test]
    fn ndk_send_08_an_address_that_cannot_be_read_fails_the_request() -> Result {
        // Behind the page is a hole in the kernel's address space.
        let page = VVec::from_elem(1u8, PAGE, GFP_KERNEL)?;
        let end = page.as_ptr().addr() as u64 + PAGE as u64;
        let bad = [
            (end, 1),
            (end - 8, 16),
            (8, 4),
            (1 << 63, 8),
            (u64::MAX - 3, 16),
        ];
        for (addr, len) in cases(bad) {
            let pair = Pair::new()?;
            let to = pair.b.buffer(4096, 1)?;
            pair.b.receive(1, &[to.sge(0, 64)?])?;
            let good = at(&page[..8], JUNK);
            let sge = Sge::new(addr, len, JUNK);
            let list = [good, sge, good];
            assert!(post(&pair.a, 2, &list, INLINE | SILENT_SUCCESS).is_ok());
            assert!(pair.a.requests.next_is(2, NtStatus::ACCESS_VIOLATION));
            assert!(has_ended(&pair.a));
            // No byte has arrived, and the receive is not yet cancelled.
            assert!(pair.b.receives.stays_empty());
            assert!(to.bytes.iter().all(|b| *b == 0));
        }
        // The last bytes of the page itself can be read.
        let pair = Pair::new()?;
        let to = pair.b.buffer(4096, 1)?;
        pair.b.receive(1, &[to.sge(0, 64)?])?;
        assert!(post(&pair.a, 2, &[at(&page[PAGE - 8..], JUNK)], INLINE).is_ok());
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        kunit_assert_eq!(pair.b.receives.next()?.bytes, 8);
        Ok(())
    }

    #[test]
    fn ndk_send_09_the_token_of_inline_data_is_ignored() -> Result {
        let pair = Pair::new()?;
        let to = pair.b.buffer(4096, 1)?;
        let foreign = pair.b.buffer(4096, 0)?;
        let bytes = KVec::from_elem(0x44u8, 16, GFP_KERNEL)?;
        let tokens = [JUNK, Token::from_raw(0), foreign.mr()?.local_token()];
        for token in cases(tokens) {
            pair.b.receive(1, &[to.sge(0, 16)?])?;
            assert!(post(&pair.a, 2, &[at(&bytes, token)], INLINE).is_ok());
            assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.bytes, 16);
            assert!(to.bytes[..16].iter().all(|b| *b == 0x44));
        }
        // Without the flag the token counts.
        pair.b.receive(1, &[to.sge(0, 16)?])?;
        assert!(post(&pair.a, 2, &[at(&bytes, JUNK)], 0).is_ok());
        assert!(pair.a.requests.next_is(2, NtStatus::ACCESS_VIOLATION));
        Ok(())
    }

    #[test]
    fn ndk_send_10_inline_data_may_have_more_elements_than_the_queue() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(9);
        let mut sges = KVec::new();
        for n in cases(0..16) {
            sges.push(from.sge(n * 4, 4)?, GFP_KERNEL)?;
        }
        pair.b.receive(1, &[to.sge(0, 64)?])?;
        // The queue pair was made for four.
        kunit_assert_eq!(post(&pair.a, 2, &sges, 0), Err(NtStatus::DATA_OVERRUN));
        kunit_assert_eq!(post(&pair.a, 3, &sges[..5], 0), Err(NtStatus::DATA_OVERRUN));
        assert!(post(&pair.a, 4, &sges, INLINE).is_ok());
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.status, NtStatus::SUCCESS);
        kunit_assert_eq!(got.bytes, 64);
        assert!(to.has(9, 0, 64));
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_send_11_inline_data_beyond_the_limit_is_refused() -> Result {
        let pair = Pair::new()?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(2);
        pair.b.receive(1, &[to.sge(0, 4096)?])?;
        let over = Err(NtStatus::BUFFER_OVERFLOW);
        kunit_assert_eq!(post(&pair.a, 2, &[from.sge(0, 65)?], INLINE), over);
        let parts = [from.sge(0, 64)?, from.sge(64, 1)?];
        kunit_assert_eq!(post(&pair.a, 3, &parts, INLINE), over);
        // The sum does not wrap.
        let huge = from.sge(0, 64)?;
        let huge = Sge::new(huge.addr(), u32::MAX, huge.token());
        kunit_assert_eq!(post(&pair.a, 4, &[huge, from.sge(0, 2)?], INLINE), over);
        // The refused requests were not posted, and the queue serves on.
        assert!(pair.a.requests.stays_empty());
        assert!(pair.b.receives.stays_empty());
        assert!(is_up(&pair.a));
        let whole = [from.sge(0, 32)?, from.sge(32, 32)?, from.sge(64, 0)?];
        assert!(post(&pair.a, 5, &whole, INLINE).is_ok());
        assert!(pair.a.requests.next_is(5, NtStatus::SUCCESS));
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.request_context, 1);
        kunit_assert_eq!(got.bytes, 64);
        assert!(to.has(2, 0, 64));
        Ok(())
    }
}
