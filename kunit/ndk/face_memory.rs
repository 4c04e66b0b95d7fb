// SPDX-License-Identifier: GPL-2.0

//! The two faces compared: tokens, invalidation (FACE-11, FACE-16).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_face_memory)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::domain::Domain,
        kunit::{
            buffer::MrBuffer,
            harness::{
                cases,
                QpPair, //
            },
            requests::register, //
        },
        ndk::{
            abi::numbers::{
                op_flags::{
                    ALLOW_REMOTE_READ,
                    ALLOW_REMOTE_WRITE, //
                },
                operation, //
            },
            status::NtStatus,
            tests::{
                host::pd,
                memory::PageBuffer,
                pair::Pair, //
            }, //
        },
        rdma::values::{
            access::AccessFlags,
            status::Status,
            token::Token,
            work::{
                RemoteAddr,
                SendOp, //
            }, //
        }, //
    };

    #[test]
    fn ndk_face_11_tokens_are_the_keys_as_host_order_numbers_in_getters_and_posts() -> Result {
        let pair = Pair::new()?;
        let (mut from, to) = (pair.a.buffer(4096, 0)?, pair.b.buffer(4096, 7)?);
        from.fill(1);
        let mr = to.mr()?;
        let raw = mr.remote_token().raw();
        // Index and key as in a key of verbs: the key is the low byte.
        kunit_assert_eq!(raw, mr.local_token().raw());
        kunit_assert_eq!(raw >> 8, mr.local_token().index());
        kunit_assert_eq!(raw & 0xff, mr.local_token().key().into());
        assert!(raw != raw.swap_bytes());
        // A post takes the token as a number, like the address.
        let there = RemoteAddr {
            addr: to.addr() + 0x123,
            token: Token::from_raw(raw),
        };
        let list = [from.sge_by(Token::from_raw(from.mr()?.local_token().raw()), 0, 16)];
        kunit_assert_eq!(pair.a.qp.write(1, list.into_iter(), there, 0), Ok(()));
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(to.has(1, 0x123, 16), from.has(1, 0, 16));
        kunit_assert_eq!(to.bytes[0x122], 0);
        kunit_assert_eq!(to.bytes[0x133], 0);
        // The swapped number is another token.
        let swapped = RemoteAddr {
            token: Token::from_raw(raw.swap_bytes()),
            ..there
        };
        kunit_assert_eq!(pair.a.qp.write(2, list.into_iter(), swapped, 0), Ok(()));
        assert!(pair.a.requests.next()?.status != NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_face_11_the_output_of_a_completion_is_the_same_number() -> Result {
        let pair = Pair::new()?;
        let theirs = PageBuffer::fast(&pair.b.pd, 4096, true)?;
        let flags = ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE;
        kunit_assert_eq!(theirs.fast_register(&pair.b.qp, 1, flags)?, Ok(()));
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        let raw = theirs.mr()?.remote_token().raw();
        assert!(raw != raw.swap_bytes());
        pair.b.receive(2, &[])?;
        let token = Token::from_raw(raw);
        kunit_assert_eq!(
            pair.a.qp.send_and_invalidate(3, [].into_iter(), 0, token),
            Ok(())
        );
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.operation, operation::RECEIVE_AND_INVALIDATE);
        kunit_assert_eq!(got.output, raw);
        Ok(())
    }

    /// A local invalidation as the verbs face posts it.
    const fn invalidate(token: Token) -> SendOp {
        SendOp::LocalInv {
            token,
            must_be_valid: false,
        }
    }

    #[test]
    fn ndk_face_16_invalidating_what_is_invalid_succeeds_in_verbs_and_fails_in_ndk() -> Result {
        let qp_pair = QpPair::new()?;
        let fast = qp_pair.a.fast(64)?;
        qp_pair.a.post(1, invalidate(fast.token()), &[])?;
        qp_pair
            .a
            .post(2, register(fast.token(), 64, AccessFlags::empty()), &[])?;
        qp_pair.a.post(3, invalidate(fast.token()), &[])?;
        qp_pair.a.post(4, invalidate(fast.token()), &[])?;
        assert!(qp_pair.a.sends.next_are(1..5, Status::Success));
        let pair = Pair::new()?;
        let fast = PageBuffer::fast(&pair.a.pd, 4096, false)?;
        kunit_assert_eq!(fast.fast_register(&pair.a.qp, 1, 0)?, Ok(()));
        for context in cases(2..4) {
            kunit_assert_eq!(pair.a.qp.invalidate_mr(context, fast.mr()?, 0), Ok(()));
        }
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(3, NtStatus::INVALID_DEVICE_REQUEST));
        let refused = pair.a.qp.send(4, [].into_iter(), 0);
        kunit_assert_eq!(refused, Err(NtStatus::CONNECTION_INVALID));
        Ok(())
    }

    #[test]
    fn ndk_face_16_what_cannot_be_invalidated_fails_in_verbs() -> Result {
        for case in cases(0..3) {
            let qp_pair = QpPair::new()?;
            let other = Domain::new(qp_pair.a.device().clone(), GFP_KERNEL)?;
            let foreign = MrBuffer::fast(&other, 64)?;
            let normal = qp_pair.a.buffer(64)?;
            let token = match case {
                0 => Token::new(0x00ab_cdef, 1).ok_or(EINVAL)?,
                1 => foreign.token(),
                _ => normal.token(),
            };
            qp_pair.a.post(1, invalidate(token), &[])?;
            let got = qp_pair.a.sends.next().ok_or(ETIMEDOUT)?;
            kunit_assert_eq!(got.context.raw(), 1);
            assert!(!got.status.is_success());
            assert!(got.status != Status::Flushed);
            assert!(qp_pair.a.is_down());
        }
        Ok(())
    }

    #[test]
    fn ndk_face_16_what_cannot_be_invalidated_fails_in_ndk() -> Result {
        let pair = Pair::new()?;
        let normal = pair.a.buffer(4096, 7)?;
        let refused = Err(NtStatus::INVALID_PARAMETER);
        kunit_assert_eq!(pair.a.qp.invalidate_mr(1, normal.mr()?, 0), refused);
        kunit_assert_eq!(pair.a.qp.invalidate_other(1, 0), refused);
        let idle = pair
            .a
            .pd
            .create_mr(true)
            .map(crate::ndk::tests::completion::AutoClose::new);
        let idle = idle.map_err(|_| ENOMEM)?;
        kunit_assert_eq!(pair.a.qp.invalidate_mr(1, &idle, 0), refused);
        let other = pd(&pair.test_host.adapter)?;
        let foreign = PageBuffer::fast(&other, 4096, true)?;
        kunit_assert_eq!(pair.a.qp.invalidate_mr(1, foreign.mr()?, 0), refused);
        // A refusal has no further effect.
        assert!(pair.a.requests.stays_empty());
        pair.b.receive(2, &[])?;
        pair.a.send(3, &[], 0)?;
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        Ok(())
    }
}
