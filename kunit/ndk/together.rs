// SPDX-License-Identifier: GPL-2.0

//! Objects that do not belong together: each call that takes a second object refuses an object of
//! another adapter, or of another domain, with `INVALID_PARAMETER`, and has no effect.
//!
//! | call                           | second object                | made by the same |
//! |--------------------------------|------------------------------|------------------|
//! | `CreateQp`, `CreateQpWithSrq`  | both completion queues       | adapter          |
//! | `CreateQpWithSrq`              | shared receive queue         | domain           |
//! | `Connect`, `Accept`, `AcceptEx` | queue pair                  | adapter          |
//! | `ConnectWithSharedEndpoint`    | queue pair, shared endpoint  | adapter          |
//! | `Bind`                         | region, window               | domain           |
//! | `FastRegister`                 | region                       | domain           |
//! | `Invalidate`                   | region, window               | domain           |
//!
//! The tests of the last three rows are `ndk_bind_08_*` and `ndk_face_16_*`; this file has the
//! parts that are missing there.

#[kernel::macros::kunit_tests(ndk_kunit_ndk_together)]
mod tests {
    use kernel::prelude::*;

    use crate::ndk::{
        adapter::{
            open,
            Adapter,
            OpenBy,
            VERSION, //
        },
        connector::Source,
        life::Ref,
        srq::SrqSizes,
        status::NtStatus,
        tests::{
            completion::{
                create,
                log_status,
                made,
                request,
                AutoClose,
                CallbackValue, //
            },
            host::{
                here,
                pd,
                Queue,
                TestHost,
                NAME,
                SIZES, //
            },
            memory::{
                PageBuffer,
                PAGE, //
            },
            pair::{
                connect,
                OpenListener,
                Pair,
                TestSide,
                READS, //
            }, //
        }, //
    };

    const INVALID: NtStatus = NtStatus::INVALID_PARAMETER;

    const SRQ: SrqSizes = SrqSizes {
        depth: 8,
        sges: 1,
        threshold: 0,
    };

    /// A second adapter of the same device.
    fn second(test_host: &TestHost) -> Result<Ref<Adapter>> {
        open(&test_host.context, &OpenBy::first(NAME), VERSION).map_err(log_status)
    }

    #[test]
    fn ndk_qp_01_queues_of_another_adapter_are_refused_on_either_side() -> Result {
        let test_host = TestHost::new()?;
        let other = second(&test_host)?;
        let domain = pd(&test_host.adapter)?;
        let own = test_host.queue(8)?;
        let mut foreign = Queue::new(&other, 8)?;
        for cqs in [
            (&*foreign.cq, &*own.cq),
            (&*own.cq, &*foreign.cq),
            (&*foreign.cq, &*foreign.cq),
        ] {
            let refused = create(|done| domain.create_qp(cqs, None, 0, SIZES, done))?;
            kunit_assert_eq!(refused.err(), Some(INVALID));
        }
        // The refused queue has no user.
        assert!(foreign.cq.close_and_wait()?);
        let cqs = (&*own.cq, &*own.cq);
        drop(made(|done| domain.create_qp(cqs, None, 0, SIZES, done))?);
        drop(foreign);
        other.close_and_wait();
        Ok(())
    }

    #[test]
    fn ndk_qp_01_a_shared_queue_of_another_domain_or_adapter_is_refused() -> Result {
        let test_host = TestHost::new()?;
        let other = second(&test_host)?;
        let (domain, beside, beyond) = (
            pd(&test_host.adapter)?,
            pd(&test_host.adapter)?,
            pd(&other)?,
        );
        let own = test_host.queue(8)?;
        let cqs = (&*own.cq, &*own.cq);
        for foreign in [&beside, &beyond] {
            let mut srq = made(|done| foreign.create_srq(SRQ, None, done))?;
            let refused = create(|done| domain.create_qp(cqs, Some(&srq), 0, SIZES, done))?;
            kunit_assert_eq!(refused.err(), Some(INVALID));
            // The refused queue has no user.
            assert!(srq.close_and_wait()?);
        }
        let srq = made(|done| domain.create_srq(SRQ, None, done))?;
        drop(made(|done| {
            domain.create_qp(cqs, Some(&srq), 0, SIZES, done)
        })?);
        drop((srq, beyond));
        other.close_and_wait();
        Ok(())
    }

    #[test]
    fn a_connect_refuses_queue_pairs_and_endpoints_of_another_adapter() -> Result {
        let test_host = TestHost::new()?;
        let other = second(&test_host)?;
        let (mut ours, theirs) = (
            TestSide::new(&test_host.adapter, 1, SIZES)?,
            TestSide::new(&test_host.adapter, 2, SIZES)?,
        );
        let mut foreign = TestSide::new(&other, 3, SIZES)?;
        let mut endpoint = made(|done| other.create_shared_endpoint(here(0), done))?;
        let own = made(|done| test_host.adapter.create_shared_endpoint(here(0), done))?;
        let open_listener = OpenListener::new(&test_host.adapter)?;
        let connector = test_host.adapter.create_connector();
        let connector = connector.map(AutoClose::new).map_err(log_status)?;
        let at = open_listener.at;
        let refused = |qp, source| {
            let asked =
                request(|done| connector.connect(qp, (source, at), READS, KVec::new(), done));
            asked.map(|status| status == INVALID)
        };
        assert!(refused(&*foreign.qp, Source::Address(here(0)))?);
        assert!(refused(&*foreign.qp, Source::shared(&own))?);
        assert!(refused(&*ours.qp, Source::shared(&endpoint))?);
        test_host.flush_work();
        assert!(open_listener.arrivals.take().is_none());
        // The refused objects have no user, and the connector is as before.
        assert!(endpoint.close_and_wait()?);
        assert!(foreign.qp.close_and_wait()?);
        drop(connector);
        let (a, b) = connect(
            &test_host.adapter,
            &open_listener,
            (&ours, READS),
            (&theirs, READS),
        )?;
        ours.connector = Some(a);
        drop((b, foreign, endpoint));
        other.close_and_wait();
        Ok(())
    }

    #[test]
    fn an_accept_refuses_a_queue_pair_of_another_adapter() -> Result {
        let test_host = TestHost::new()?;
        let other = second(&test_host)?;
        let (ours, theirs) = (
            TestSide::new(&test_host.adapter, 1, SIZES)?,
            TestSide::new(&test_host.adapter, 2, SIZES)?,
        );
        let mut foreign = TestSide::new(&other, 3, SIZES)?;
        let open_listener = OpenListener::new(&test_host.adapter)?;
        let connector = test_host.adapter.create_connector();
        let connector = connector.map(AutoClose::new).map_err(log_status)?;
        let (asked, to) = (
            CallbackValue::new()?,
            (Source::Address(here(0)), open_listener.at),
        );
        let asking = connector.connect(&ours.qp, to, READS, KVec::new(), asked.callback()?);
        assert!(asking.is_ok());
        let incoming = open_listener.incoming()?;
        let refused = request(|done| incoming.accept(&foreign.qp, READS, KVec::new(), None, done))?;
        kunit_assert_eq!(refused, INVALID);
        assert!(foreign.qp.close_and_wait()?);
        // The connect request is still there.
        let accepted = CallbackValue::new()?;
        let accepting = incoming.accept(&theirs.qp, READS, KVec::new(), None, accepted.callback()?);
        assert!(accepting.is_ok());
        asked.came(NtStatus::SUCCESS)?;
        kunit_assert_eq!(
            request(|done| connector.complete_connect(None, done))?,
            NtStatus::SUCCESS
        );
        accepted.came(NtStatus::SUCCESS)?;
        drop((connector, incoming, foreign));
        other.close_and_wait();
        Ok(())
    }

    #[test]
    fn ndk_freg_01_a_region_of_another_domain_is_refused_and_keeps_its_token() -> Result {
        let pair = Pair::new()?;
        let foreign = PageBuffer::fast(&pair.b.pd, PAGE, true)?;
        let before = foreign.mr()?.remote_token();
        kunit_assert_eq!(foreign.fast_register(&pair.a.qp, 1, 0)?, Err(INVALID));
        kunit_assert_eq!(foreign.mr()?.remote_token(), before);
        assert!(pair.a.requests.stays_empty());
        kunit_assert_eq!(foreign.fast_register(&pair.b.qp, 2, 0)?, Ok(()));
        assert!(pair.b.requests.next_is(2, NtStatus::SUCCESS));
        // The region is still registered.
        kunit_assert_eq!(pair.a.qp.invalidate_mr(3, foreign.mr()?, 0), Err(INVALID));
        kunit_assert_eq!(pair.b.qp.invalidate_mr(4, foreign.mr()?, 0), Ok(()));
        assert!(pair.b.requests.next_is(4, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_inv_03_a_window_of_another_domain_is_refused_and_stays_bound() -> Result {
        let pair = Pair::new()?;
        let buffer = PageBuffer::registered(&pair.b.pd, PAGE, 1)?;
        let window = made(|done| pair.b.pd.create_mw(done))?;
        let range = (buffer.addr(), 64);
        let rights = crate::ndk::abi::numbers::op_flags::ALLOW_REMOTE_READ;
        kunit_assert_eq!(
            pair.b.qp.bind(1, buffer.mr()?, &window, range, rights),
            Ok(())
        );
        assert!(pair.b.requests.next_is(1, NtStatus::SUCCESS));
        kunit_assert_eq!(pair.a.qp.invalidate_mw(2, &window, 0), Err(INVALID));
        assert!(pair.a.requests.stays_empty());
        kunit_assert_eq!(pair.b.qp.invalidate_mw(3, &window, 0), Ok(()));
        assert!(pair.b.requests.next_is(3, NtStatus::SUCCESS));
        Ok(())
    }
}
