// SPDX-License-Identifier: GPL-2.0

//! The sizes of queue pairs (QP-01).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_sizes)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::cases,
        ndk::{
            abi::numbers::op_flags::INLINE,
            adapter::Limits,
            qp::Qp,
            srq::SrqSizes,
            status::NtStatus,
            tests::{
                completion::{
                    create,
                    made,
                    AutoClose, //
                },
                host::{
                    HostAttr,
                    SIZES, //
                },
                pair::{
                    Pair,
                    TestSide,
                    READS, //
                },
                remote::NOTHING, //
            }, //
        },
        rdma::values::qp::QpCaps, //
    };

    /// An adapter with small limits.
    const SMALL: HostAttr = HostAttr {
        limits: Limits {
            requests: 40,
            sges: 6,
            inline: 96,
            ..Limits::FULL
        },
        ..HostAttr::PLAIN
    };

    /// The largest queue pair of [`SMALL`].
    const LARGEST: QpCaps = QpCaps {
        recv_wr: 40,
        send_wr: 40,
        recv_sge: 6,
        send_sge: 6,
        inline_data: 96,
        ..QpCaps::NONE
    };

    fn attempt(test_side: &TestSide, sizes: QpCaps) -> Result<Result<AutoClose<Qp>, NtStatus>> {
        create(|done| {
            let queues = (&*test_side.receives.cq, &*test_side.requests.cq);
            test_side.pd.create_qp(queues, None, 0xA, sizes, done)
        })
    }

    #[test]
    fn ndk_qp_01_above_each_limit_is_refused() -> Result {
        let pair = Pair::unconnected(&SMALL, SIZES, SIZES)?;
        let more = [
            QpCaps {
                recv_wr: 41,
                ..LARGEST
            },
            QpCaps {
                send_wr: 41,
                ..LARGEST
            },
            QpCaps {
                recv_sge: 7,
                ..LARGEST
            },
            QpCaps {
                send_sge: 7,
                ..LARGEST
            },
            QpCaps {
                inline_data: 97,
                ..LARGEST
            },
        ];
        for sizes in cases(more) {
            let refused = attempt(&pair.a, sizes)?.err();
            kunit_assert_eq!(refused, Some(NtStatus::INVALID_PARAMETER));
        }
        assert!(attempt(&pair.a, LARGEST)?.is_ok());
        Ok(())
    }

    #[test]
    fn ndk_qp_01_equal_to_each_limit_is_there_to_be_used() -> Result {
        let pair = Pair::with(&SMALL, LARGEST, LARGEST)?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(4);
        let six = |of: &crate::ndk::tests::memory::PageBuffer| -> Result<KVec<_>> {
            let mut sges = KVec::new();
            for n in cases(0..6) {
                sges.push(of.sge(n * 16, 16)?, GFP_KERNEL)?;
            }
            Ok(sges)
        };
        let (gather, scatter) = (six(&from)?, six(&to)?);
        for context in cases(0..40) {
            pair.a.send(context, &gather, 0)?;
        }
        kunit_assert_eq!(
            pair.a.qp.send(40, NOTHING.into_iter(), 0),
            Err(NtStatus::NO_MORE_ENTRIES)
        );
        for context in cases(0..40) {
            pair.b.receive(context, &scatter)?;
            assert!(pair.b.receives.next_is(context, NtStatus::SUCCESS));
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
        }
        assert!(to.has(4, 0, 96));
        for context in cases(0..40) {
            pair.b.receive(context, &scatter)?;
        }
        let full = pair.b.qp.receive(40, NOTHING.into_iter());
        kunit_assert_eq!(full, Err(NtStatus::NO_MORE_ENTRIES));
        pair.a.send(1, &[from.sge(100, 96)?], INLINE)?;
        assert!(pair.b.receives.next_is(0, NtStatus::SUCCESS));
        assert!(to.has(104, 0, 96));
        Ok(())
    }

    #[test]
    fn ndk_qp_01_with_a_shared_queue_its_limits_are_those_of_receives() -> Result {
        let mut pair = Pair::unconnected(&SMALL, SIZES, SIZES)?;
        let shared = SrqSizes {
            depth: 5,
            sges: 3,
            threshold: 0,
        };
        let srq = made(|done| pair.b.pd.create_srq(shared, None, done))?;
        // The queue pair's own sizes of receives do not count, too large or too small.
        let sizes = [
            QpCaps {
                recv_wr: u32::MAX,
                recv_sge: u32::MAX,
                ..LARGEST
            },
            QpCaps {
                recv_wr: 0,
                recv_sge: 0,
                ..LARGEST
            },
        ];
        for sizes in cases(sizes) {
            pair.b.qp = made(|done| {
                let queues = (&*pair.b.receives.cq, &*pair.b.requests.cq);
                pair.b.pd.create_qp(queues, Some(&srq), 0xB, sizes, done)
            })?;
        }
        // The sizes of requests do count.
        let refused = create(|done| {
            let queues = (&*pair.b.receives.cq, &*pair.b.requests.cq);
            let sizes = QpCaps {
                send_wr: 41,
                ..LARGEST
            };
            pair.b.pd.create_qp(queues, Some(&srq), 0xB, sizes, done)
        })?;
        kunit_assert_eq!(refused.err(), Some(NtStatus::INVALID_PARAMETER));
        pair.connect(READS, READS)?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, 1)?;
        from.fill(8);
        let sge = to.sge(0, 8)?;
        let list = [sge, to.sge(8, 8)?, to.sge(16, 8)?];
        kunit_assert_eq!(
            srq.receive(9, [sge; 4].into_iter()),
            Err(NtStatus::DATA_OVERRUN)
        );
        for context in cases(0..5) {
            assert!(srq.receive(context, list.into_iter()).is_ok());
        }
        kunit_assert_eq!(
            srq.receive(5, NOTHING.into_iter()),
            Err(NtStatus::NO_MORE_ENTRIES)
        );
        pair.a.send(1, &[from.sge(0, 24)?], 0)?;
        assert!(pair.b.receives.next_is(0, NtStatus::SUCCESS));
        assert!(to.has(8, 0, 24));
        Ok(())
    }

    #[test]
    fn ndk_qp_01_without_memory_there_is_none() -> Result {
        use crate::sys::fault::{
            needed,
            plan_from,
            planned_struck, //
        };
        if !needed() {
            return Ok(());
        }
        let pair = Pair::unconnected(&SMALL, SIZES, SIZES)?;
        for n in cases(1..100) {
            if !plan_from(n) {
                return Err(EINVAL);
            }
            let created = attempt(&pair.a, LARGEST);
            let struck = planned_struck();
            let created = created?.map(drop);
            if !struck {
                assert!(created.is_ok());
                assert!(n > 1);
                return Ok(());
            }
            kunit_assert_eq!(created, Err(NtStatus::INSUFFICIENT_RESOURCES));
        }
        Err(ETIMEDOUT)
    }
}
