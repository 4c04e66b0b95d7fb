// SPDX-License-Identifier: GPL-2.0

//! General object rules as the Rust form has them (GEN-05 to GEN-10).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_general)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        kunit::{
            harness::cases,
            log::Tally, //
        },
        ndk::{
            abi::numbers::{
                mr_flags,
                notify,
                op_flags, //
            },
            call::done,
            connector::Source,
            cq::Cq,
            life::{
                Created,
                ObjectType,
                Ref, //
            },
            srq::SrqSizes,
            status::{
                NtStatus,
                Progress, //
            },
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
                    qp,
                    HostAttr,
                    TestHost,
                    SIZES, //
                },
                memory::PageBuffer,
                pair::{
                    OpenListener,
                    Pair,
                    TestSide,
                    READS, //
                }, //
            }, //
        },
        sys::{
            fault,
            mdl::Described, //
        }, //
    };

    #[test]
    fn ndk_gen_05_a_creation_that_fails_later_brings_its_status_once() -> Result {
        let test_host = TestHost::new()?;
        let slot: Arc<CallbackValue<Created<_>>> = CallbackValue::new()?;
        let foreign = core::net::SocketAddr::from(([192, 0, 2, 99], 0));
        let answer = test_host
            .adapter
            .create_shared_endpoint(foreign, slot.callback()?);
        assert!(matches!(answer, Ok(Progress::Pending)));
        let end = slot.wait().map(|r| r.err());
        kunit_assert_eq!(end, Some(Some(NtStatus::INVALID_ADDRESS)));
        test_host.flush_work();
        kunit_assert_eq!(slot.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_gen_06_a_pending_request_calls_once_with_its_end() -> Result {
        let test_host = TestHost::new()?;
        let queue = test_host.queue(8)?;
        let slot = CallbackValue::new()?;
        let answer = queue.cq.resize(16, slot.callback()?);
        assert!(matches!(answer, Ok(Progress::Pending)));
        kunit_assert_eq!(slot.wait(), Some(NtStatus::SUCCESS));
        let connector = test_host
            .adapter
            .create_connector()
            .map(AutoClose::new)
            .map_err(log_status)?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let refused = CallbackValue::new()?;
        let nobody = (Source::Address(here(0)), here(1));
        let answer = connector.connect(
            &test_side.qp,
            nobody,
            READS,
            KVec::new(),
            refused.callback()?,
        );
        assert!(matches!(answer, Ok(Progress::Pending)));
        // STATUS_CONNECTION_REFUSED
        kunit_assert_eq!(refused.wait().map(|s| s.raw() as u32), Some(0xC000_0236));
        test_host.flush_work();
        kunit_assert_eq!(slot.calls.get(), 1);
        kunit_assert_eq!(refused.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_gen_06_a_request_that_ends_inline_never_calls() -> Result {
        let test_host = TestHost::new()?;
        let queue = test_host.queue(8)?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let slot = CallbackValue::new()?;
        let invalid = NtStatus::INVALID_PARAMETER;
        let too_deep = queue.cq.resize(u32::MAX, slot.callback()?);
        kunit_assert_eq!(too_deep.err(), Some(invalid));
        let connector = test_host
            .adapter
            .create_connector()
            .map(AutoClose::new)
            .map_err(log_status)?;
        let unconnected = connector.disconnect(slot.callback()?);
        kunit_assert_eq!(unconnected.err(), Some(NtStatus::CONNECTION_INVALID));
        let mr = test_side
            .pd
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let wrong = mr.deregister(slot.callback()?);
        kunit_assert_eq!(wrong.err(), Some(NtStatus::INVALID_DEVICE_REQUEST));
        let sizes = SrqSizes {
            depth: 8,
            sges: 1,
            threshold: 0,
        };
        let srq = made(|done| test_side.pd.create_srq(sizes, None, done))?;
        // A request that succeeds at once.
        let kept = srq.modify(0, 0, slot.callback()?);
        assert!(matches!(kept, Ok(Progress::Done)));
        test_host.flush_work();
        kunit_assert_eq!(slot.calls.get(), 0);
        Ok(())
    }

    #[test]
    fn ndk_gen_07_memory_may_be_short_inline() -> Result {
        if !fault::needed() {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let queue = test_host.queue(8)?;
        let (slot, made) = (CallbackValue::new()?, CallbackValue::new()?);
        let resized = slot.callback()?;
        let created = made.callback()?;
        let user = KBox::new(|_| (), GFP_KERNEL)?;
        let short = fault::FailNth::new(1);
        let resize = queue.cq.resize(16, resized).err();
        drop(short);
        let short = fault::FailNth::new(1);
        let create = test_host.adapter.create_cq(8, None, user, created).err();
        drop(short);
        test_host.flush_work();
        kunit_assert_eq!(resize, Some(NtStatus::INSUFFICIENT_RESOURCES));
        kunit_assert_eq!(create, Some(NtStatus::INSUFFICIENT_RESOURCES));
        kunit_assert_eq!(slot.calls.get(), 0);
        kunit_assert_eq!(made.calls.get(), 0);
        // The failures leave no state: the same request succeeds now, and the host closes.
        let again = request(|done| queue.cq.resize(16, done))?;
        kunit_assert_eq!(again, NtStatus::SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_gen_07_memory_may_be_short_in_the_completion() -> Result {
        if !fault::needed() {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let queue = test_host.queue(8)?;
        let (slot, made) = (CallbackValue::new()?, CallbackValue::new()?);
        assert!(fault::plan_from(1));
        let answer = queue.cq.resize(16, slot.callback()?);
        let end = slot.wait();
        assert!(fault::planned_struck());
        assert!(matches!(answer, Ok(Progress::Pending)));
        kunit_assert_eq!(end, Some(NtStatus::INSUFFICIENT_RESOURCES));
        let user = KBox::new(|_| (), GFP_KERNEL)?;
        assert!(fault::plan(1));
        let answer = test_host.adapter.create_cq(8, None, user, made.callback()?);
        let end: Option<Created<Cq>> = made.wait();
        assert!(fault::planned_struck());
        assert!(matches!(answer, Ok(Progress::Pending)));
        kunit_assert_eq!(
            end.and_then(Result::err),
            Some(NtStatus::INSUFFICIENT_RESOURCES)
        );
        test_host.flush_work();
        kunit_assert_eq!(slot.calls.get(), 1);
        kunit_assert_eq!(made.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_gen_08_a_creation_s_callback_may_use_and_close_the_object() -> Result {
        let test_host = TestHost::new()?;
        // Many times, so that callbacks come before, during and after the return of the call.
        for _ in 0..100 {
            let (closed, used) = (CallbackValue::new()?, CallbackValue::new()?);
            let (end, resized) = (closed.callback()?, used.callback()?);
            let pending = Arc::new(Tally::new(), GFP_KERNEL)?;
            let tally = pending.clone();
            let made = done(GFP_KERNEL, move |made: Created<Cq>| {
                let Ok(cq) = made else {
                    return;
                };
                cq.arm(notify::ANY);
                let resize = cq.resize(9, resized);
                if matches!(resize, Ok(Progress::Pending))
                    && cq.results(1, |_| ()) == 0
                    && matches!(cq.close(end), Progress::Pending)
                {
                    tally.hit();
                }
            });
            let user = KBox::new(|_| (), GFP_KERNEL)?;
            let answer = test_host
                .adapter
                .create_cq(8, None, user, made.map_err(log_status)?);
            assert!(matches!(answer, Ok(Progress::Pending)));
            assert!(closed.wait().is_some());
            // The request of the callback ended before the object.
            kunit_assert_eq!(used.calls.get(), 1);
            // The callback counts after its close has returned, possibly after the object's end.
            assert!(crate::kunit::harness::wait_until(|| pending.get() == 1));
        }
        Ok(())
    }

    #[test]
    fn ndk_gen_08_a_request_s_callback_may_close_the_object() -> Result {
        let test_host = TestHost::new()?;
        let pd = pd(&test_host.adapter)?;
        let buffer = PageBuffer::plain(4096)?;
        let described = Described::new(&buffer.bytes)?;
        for _ in 0..100 {
            let closed = CallbackValue::new()?;
            let end = closed.callback()?;
            let mut mr = pd
                .create_mr(false)
                .map(AutoClose::new)
                .map_err(log_status)?;
            let object = mr.give_up()?;
            let itself = object.clone();
            let registered = done(GFP_KERNEL, move |status: NtStatus| {
                // A registered region has a token.
                if status == NtStatus::SUCCESS && itself.local_token().raw() != 0 {
                    itself.close(end);
                }
            });
            let answer = object.register(described.mdl(), 4096, 0, registered.map_err(log_status)?);
            assert!(matches!(answer, Ok(Progress::Pending)));
            drop(object);
            assert!(closed.wait().is_some());
        }
        Ok(())
    }

    #[test]
    fn ndk_gen_08_a_connect_s_callback_may_close_the_connector() -> Result {
        let test_host = TestHost::new()?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        for _ in 0..50 {
            let closed = CallbackValue::new()?;
            let end = closed.callback()?;
            let connector = test_host.adapter.create_connector().map_err(log_status)?;
            let itself = connector.clone();
            let refused = done(GFP_KERNEL, move |_: NtStatus| {
                itself.close(end);
            });
            let nobody = (Source::Address(here(0)), here(1));
            let answer = connector.connect(
                &test_side.qp,
                nobody,
                READS,
                KVec::new(),
                refused.map_err(log_status)?,
            );
            assert!(matches!(answer, Ok(Progress::Pending)));
            drop(connector);
            assert!(closed.wait().is_some());
        }
        Ok(())
    }

    /// Values that are no valid pointers.
    const CONTEXTS: [u64; 4] = [0, 1, u64::MAX, 0x8000_0000_0000_0000];

    #[test]
    fn ndk_gen_09_contexts_of_requests_and_queue_pairs_come_back_as_they_were() -> Result {
        for context in cases(CONTEXTS) {
            let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
            // CAST: 64-bit addresses.
            pair.a = TestSide::new(&pair.test_host.adapter, context as usize, SIZES)?;
            pair.b = TestSide::new(&pair.test_host.adapter, !context as usize, SIZES)?;
            pair.connect(READS, READS)?;
            for request in cases(CONTEXTS) {
                pair.b.receive(request, &[])?;
                pair.a.send(request, &[], 0)?;
                let (sent, got) = (pair.a.requests.next()?, pair.b.receives.next()?);
                kunit_assert_eq!(sent.request_context, request);
                kunit_assert_eq!(got.request_context, request);
                kunit_assert_eq!(sent.qp_context, context as usize);
                kunit_assert_eq!(got.qp_context, !context as usize);
            }
            // The contexts of cancelled requests come back, too.
            pair.b.receive(context, &[])?;
            pair.b.qp.flush();
            assert!(pair.b.receives.next_is(context, NtStatus::CANCELLED));
        }
        Ok(())
    }

    /// Returns true if the close of `antecedent` waits for that of `successor`, and no longer.
    fn waits<A: ObjectType, S: ObjectType>(
        test_host: &TestHost,
        antecedent: &mut AutoClose<A>,
        successor: &mut AutoClose<S>,
    ) -> Result<bool> {
        let (progress, slot) = antecedent.close()?;
        test_host.flush_work();
        let waits = matches!(progress, Progress::Pending) && slot.calls.get() == 0;
        let closed = successor.close_and_wait()?;
        let ended = slot.wait().is_some();
        if !waits || !closed || !ended {
            kunit_note!("waits: {waits}, closed: {closed}, ended: {ended}");
        }
        Ok(waits && closed && ended)
    }

    /// The same as [`waits`] for an adapter and an object that is made of it.
    fn adapter_waits<S: ObjectType>(
        make: impl FnOnce(&TestHost) -> Result<AutoClose<S>>,
    ) -> Result<bool> {
        let test_host = TestHost::new()?;
        let mut successor = make(&test_host)?;
        let mut adapter = AutoClose::new(test_host.adapter.clone());
        waits(&test_host, &mut adapter, &mut successor)
    }

    fn created<T: ObjectType>(created: Created<T>) -> Result<AutoClose<T>> {
        created.map(AutoClose::new).map_err(log_status)
    }

    #[test]
    fn ndk_gen_10_adapter_is_antecedent_of_what_is_made_of_it() -> Result {
        assert!(adapter_waits(|test_host| created(
            test_host.adapter.create_connector()
        ))?);
        assert!(adapter_waits(|test_host| created(
            test_host.adapter.create_pd()
        ))?);
        let user = |_: Ref<crate::ndk::connector::Connector>| ();
        let user = KBox::new(user, GFP_KERNEL)?;
        assert!(adapter_waits(|test_host| created(
            test_host.adapter.create_listener(user)
        ))?);
        let user = KBox::new(|_| (), GFP_KERNEL)?;
        assert!(adapter_waits(|test_host| {
            made(|done| test_host.adapter.create_cq(8, None, user, done))
        })?);
        assert!(adapter_waits(|test_host| {
            made(|done| test_host.adapter.create_shared_endpoint(here(0), done))
        })?);
        Ok(())
    }

    #[test]
    fn ndk_gen_10_domain_is_antecedent_of_regions_windows_and_queues() -> Result {
        let test_host = TestHost::new()?;
        for fast in cases([false, true]) {
            let mut domain = pd(&test_host.adapter)?;
            let mut mr = created(domain.create_mr(fast))?;
            assert!(waits(&test_host, &mut domain, &mut mr)?);
        }
        let mut domain = pd(&test_host.adapter)?;
        let mut mw = made(|done| domain.create_mw(done))?;
        assert!(waits(&test_host, &mut domain, &mut mw)?);
        let sizes = SrqSizes {
            depth: 8,
            sges: 1,
            threshold: 0,
        };
        let mut domain = pd(&test_host.adapter)?;
        let mut srq = made(|done| domain.create_srq(sizes, None, done))?;
        assert!(waits(&test_host, &mut domain, &mut srq)?);
        let (one, two) = (test_host.queue(8)?, test_host.queue(8)?);
        let mut domain = pd(&test_host.adapter)?;
        let mut pair = qp(&domain, &one, &two, 0, SIZES)?;
        assert!(waits(&test_host, &mut domain, &mut pair)?);
        Ok(())
    }

    #[test]
    fn ndk_gen_10_each_queue_is_antecedent_of_its_queue_pairs() -> Result {
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        for which in cases(0..2) {
            let (mut receives, mut requests) = (test_host.queue(8)?, test_host.queue(8)?);
            let mut pair = qp(&domain, &receives, &requests, 0, SIZES)?;
            let cq = if which == 0 {
                &mut receives.cq
            } else {
                &mut requests.cq
            };
            assert!(waits(&test_host, cq, &mut pair)?);
        }
        let sizes = SrqSizes {
            depth: 8,
            sges: 1,
            threshold: 0,
        };
        let mut srq = made(|done| domain.create_srq(sizes, None, done))?;
        let queue = test_host.queue(8)?;
        let cqs = (&*queue.cq, &*queue.cq);
        let mut pair = made(|done| domain.create_qp(cqs, Some(&srq), 0, SIZES, done))?;
        assert!(waits(&test_host, &mut srq, &mut pair)?);
        Ok(())
    }

    #[test]
    fn ndk_gen_10_region_is_antecedent_of_the_window_bound_to_it() -> Result {
        let pair = Pair::new()?;
        let mut buffer = pair.a.buffer(4096, mr_flags::REMOTE_WRITE)?;
        let mut mw = made(|done| pair.a.pd.create_mw(done))?;
        let range = (buffer.addr(), 4096);
        let bound = pair
            .a
            .qp
            .bind(1, buffer.mr()?, &mw, range, op_flags::ALLOW_REMOTE_READ);
        bound.map_err(log_status)?;
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        let mr = buffer.mr.as_mut().ok_or(EINVAL)?;
        assert!(waits(&pair.test_host, mr, &mut mw)?);
        // A window that is not bound does not keep a region.
        let mut other = pair.a.buffer(4096, mr_flags::REMOTE_WRITE)?;
        let _unbound = made(|done| pair.a.pd.create_mw(done))?;
        assert!(other.mr.as_mut().ok_or(EINVAL)?.close_and_wait()?);
        Ok(())
    }

    #[test]
    fn ndk_gen_10_queue_pair_is_antecedent_of_its_connector_on_either_side() -> Result {
        let mut pair = Pair::new()?;
        let ours = pair.a.connector.as_mut().ok_or(EINVAL)?;
        assert!(waits(&pair.test_host, &mut pair.a.qp, ours)?);
        let theirs = pair.b.connector.as_mut().ok_or(EINVAL)?;
        assert!(waits(&pair.test_host, &mut pair.b.qp, theirs)?);
        Ok(())
    }

    #[test]
    fn ndk_gen_10_listener_is_antecedent_of_the_connectors_it_gave() -> Result {
        let mut pair = Pair::new()?;
        let theirs = pair.b.connector.as_mut().ok_or(EINVAL)?;
        assert!(waits(
            &pair.test_host,
            &mut pair.open_listener.listener,
            theirs
        )?);
        Ok(())
    }

    #[test]
    fn ndk_gen_10_shared_endpoint_and_queue_pair_are_antecedents_of_a_connector() -> Result {
        let test_host = TestHost::new()?;
        let open_listener = OpenListener::new(&test_host.adapter)?;
        let mut test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let mut endpoint = made(|done| test_host.adapter.create_shared_endpoint(here(0), done))?;
        let mut connector = created(test_host.adapter.create_connector())?;
        let slot = CallbackValue::new()?;
        let asking = connector.connect(
            &test_side.qp,
            (Source::shared(&endpoint), open_listener.at),
            READS,
            KVec::new(),
            slot.callback()?,
        );
        assert!(matches!(asking, Ok(Progress::Pending)));
        let _theirs = open_listener.incoming()?;
        let (progress, gone) = test_side.qp.close()?;
        assert!(matches!(progress, Progress::Pending));
        assert!(waits(&test_host, &mut endpoint, &mut connector)?);
        assert!(gone.wait().is_some());
        Ok(())
    }

    #[test]
    fn ndk_gen_10_what_was_never_made_keeps_nobody() -> Result {
        let test_host = TestHost::new()?;
        let mut domain = pd(&test_host.adapter)?;
        let sizes = crate::rdma::values::qp::QpCaps {
            send_wr: u32::MAX,
            ..SIZES
        };
        let mut queue = test_host.queue(8)?;
        let cqs = (&*queue.cq, &*queue.cq);
        let refused = create(|done| domain.create_qp(cqs, None, 0, sizes, done))?;
        kunit_assert_eq!(refused.err(), Some(NtStatus::INVALID_PARAMETER));
        assert!(queue.cq.close_and_wait()?);
        assert!(domain.close_and_wait()?);
        Ok(())
    }
}
