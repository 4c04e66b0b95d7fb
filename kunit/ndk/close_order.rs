// SPDX-License-Identifier: GPL-2.0

//! The order of callbacks and the end of a close (CLOS-02, CLOS-03, CLOS-06 to CLOS-08).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_close_order)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        kunit::{
            harness::wait_until,
            log::Tally,
            other_context::OtherContext, //
        },
        ndk::{
            abi::numbers::notify,
            call::{
                done,
                DoneFn, //
            },
            connector::{
                Connector,
                Source, //
            },
            cq::Cq,
            life::Ref,
            pd::Pd,
            qp::Qp,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                blocking_callback::{
                    close_waits,
                    cq_with,
                    holds,
                    others_run,
                    BlockingCallback, //
                },
                completion::{
                    log_status,
                    made,
                    AutoClose,
                    CallbackValue, //
                },
                host::{
                    here,
                    pd,
                    TestHost,
                    SIZES, //
                },
                memory::PageBuffer,
                pair::{
                    Pair,
                    TestSide,
                    READS, //
                }, //
            }, //
        },
        sys::{
            mdl::Described,
            softirq::ProcessQueue, //
        }, //
    };

    /// A blocking callback for a request.
    fn staying(callback: &Arc<BlockingCallback>) -> Result<DoneFn<NtStatus>> {
        let callback = callback.clone();
        done(GFP_KERNEL, move |_| callback.stay()).map_err(log_status)
    }

    #[test]
    fn ndk_clos_02_the_close_s_completion_is_the_last_callback() -> Result {
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        let buffer = PageBuffer::plain(1 << 20)?;
        let described = Described::new(&buffer.bytes)?;
        for _ in 0..20 {
            // Numbers the callbacks in their order: 0 for the request, 1 for the close.
            let order = Arc::new(Tally::new(), GFP_KERNEL)?;
            let (request, close) = (CallbackValue::new()?, CallbackValue::new()?);
            let (first, last) = (order.clone(), order.clone());
            let (r, c) = (request.clone(), close.clone());
            let registered = done(GFP_KERNEL, move |_: NtStatus| r.put(first.hit()));
            let closed = done(GFP_KERNEL, move |()| c.put(last.hit()));
            let mr = domain.create_mr(false).map_err(log_status)?;
            let len = buffer.bytes.len() as u64;
            let answer = mr.register(described.mdl(), len, 0, registered.map_err(log_status)?);
            let progress = mr.close(closed.map_err(log_status)?);
            drop(mr);
            assert!(matches!(answer, Ok(Progress::Pending)));
            // The close may be over at once; the request has completed then.
            if matches!(progress, Progress::Pending) {
                kunit_assert_eq!(close.wait(), Some(1));
            }
            kunit_assert_eq!(request.wait(), Some(0));
            test_host.flush_work();
            kunit_assert_eq!(request.calls.get(), 1);
            assert!(close.calls.get() <= 1);
        }
        Ok(())
    }

    #[test]
    fn ndk_clos_02_no_event_follows_the_close_s_completion() -> Result {
        let test_host = TestHost::new()?;
        let calls = Arc::new(Tally::new(), GFP_KERNEL)?;
        let tally = calls.clone();
        let mut cq = cq_with(&test_host.adapter, (8, None), move |_| {
            tally.hit();
        })?;
        let object = (*cq).clone();
        object.arm(notify::ANY);
        assert!(cq.close_and_wait()?);
        // These two notify an open queue, but not a closed one.
        object.engine().break_down();
        object.arm(notify::ANY);
        test_host.flush_work();
        kunit_assert_eq!(calls.get(), 0);
        Ok(())
    }

    #[test]
    fn ndk_clos_03_a_request_s_callback_has_returned_when_the_close_ends() -> Result {
        let test_host = TestHost::new()?;
        let callback = BlockingCallback::new()?;
        let mut queue = test_host.queue(8)?;
        let answer = queue.cq.resize(16, staying(&callback)?);
        assert!(matches!(answer, Ok(Progress::Pending)));
        assert!(close_waits(&test_host, &mut queue.cq, &callback)?);
        Ok(())
    }

    #[test]
    fn ndk_clos_03_a_connect_s_callback_has_returned_when_the_close_ends() -> Result {
        let test_host = TestHost::new()?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let callback = BlockingCallback::new()?;
        let mut connector = test_host
            .adapter
            .create_connector()
            .map(AutoClose::new)
            .map_err(log_status)?;
        let nobody = (Source::Address(here(0)), here(1));
        let answer = connector.connect(
            &test_side.qp,
            nobody,
            READS,
            KVec::new(),
            staying(&callback)?,
        );
        assert!(matches!(answer, Ok(Progress::Pending)));
        assert!(close_waits(&test_host, &mut connector, &callback)?);
        Ok(())
    }

    #[test]
    fn ndk_clos_03_a_connect_event_has_returned_when_the_listener_s_close_ends() -> Result {
        let test_host = TestHost::new()?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let callback = BlockingCallback::new()?;
        let inside = callback.clone();
        let user = KBox::new(
            move |connector: Ref<Connector>| {
                // The close of the listener then waits for this callback only.
                if let Ok(nobody) = done(GFP_ATOMIC, |()| ()) {
                    connector.close(nobody);
                }
                inside.stay();
            },
            GFP_KERNEL,
        )?;
        let mut listener = test_host
            .adapter
            .create_listener(user)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let status = crate::ndk::tests::completion::request(|done| listener.listen(here(0), done))?;
        kunit_assert_eq!(status, NtStatus::SUCCESS);
        let at = listener.address().map_err(log_status)?;
        let ours = test_host
            .adapter
            .create_connector()
            .map(AutoClose::new)
            .map_err(log_status)?;
        let slot = CallbackValue::new()?;
        let to = (Source::Address(here(0)), at);
        let answer = ours.connect(&test_side.qp, to, READS, KVec::new(), slot.callback()?);
        assert!(matches!(answer, Ok(Progress::Pending)));
        assert!(close_waits(&test_host, &mut listener, &callback)?);
        assert!(slot.wait().is_some());
        Ok(())
    }

    /// Returns true if the close of a connector waits for its disconnect event, which blocks.
    fn a_disconnect_event_is_waited_for(callback: &Arc<BlockingCallback>) -> Result<bool> {
        let mut pair = Pair::unconnected(&crate::ndk::tests::host::HostAttr::PLAIN, SIZES, SIZES)?;
        let (connected, accepted) = (CallbackValue::new()?, CallbackValue::new()?);
        let ours = pair.test_host.adapter.create_connector();
        let mut ours = ours.map(AutoClose::new).map_err(log_status)?;
        let to = (Source::Address(here(0)), pair.open_listener.at);
        let asking = ours.connect(&pair.a.qp, to, READS, KVec::new(), connected.callback()?);
        asking.map_err(log_status)?;
        let mut theirs = pair.open_listener.incoming()?;
        let inside = callback.clone();
        let user = done(GFP_KERNEL, move |_reason: u32| inside.stay()).map_err(log_status)?;
        let (data, end) = (KVec::new(), accepted.callback()?);
        let accepting = theirs.accept(&pair.b.qp, READS, data, Some(user), end);
        accepting.map_err(log_status)?;
        connected.came(NtStatus::SUCCESS)?;
        let status =
            crate::ndk::tests::completion::request(|done| ours.complete_connect(None, done))?;
        if status != NtStatus::SUCCESS {
            return Err(log_status(status));
        }
        accepted.came(NtStatus::SUCCESS)?;
        let (object, gone) = (ours.give_up()?, CallbackValue::new()?);
        let end = gone.callback()?;
        // In another thread: the event comes on the processor of the close.
        let threads = &pair.test_host.device.host.threads;
        threads.spawn(GFP_KERNEL, move || {
            object.close(end);
        })?;
        pair.a.connector = None;
        close_waits(&pair.test_host, &mut theirs, callback)
    }

    #[test]
    fn ndk_clos_03_a_disconnect_event_has_returned_when_the_connector_s_close_ends() -> Result {
        assert!(holds(|callback| a_disconnect_event_is_waited_for(
            &callback
        ))?);
        Ok(())
    }

    #[test]
    fn ndk_clos_06_an_antecedent_s_close_waits_for_the_successor_s_callback() -> Result {
        let test_host = TestHost::new()?;
        let mut domain = pd(&test_host.adapter)?;
        let mut mw = made(|done| domain.create_mw(done))?;
        let callback = BlockingCallback::new()?;
        let inside = callback.clone();
        let staying = done(GFP_KERNEL, move |()| inside.stay()).map_err(log_status)?;
        assert!(matches!(mw.give_up()?.close(staying), Progress::Pending));
        assert!(close_waits(&test_host, &mut domain, &callback)?);
        Ok(())
    }

    #[test]
    fn ndk_clos_06_the_adapter_s_close_waits_for_a_queue_s_callback() -> Result {
        let test_host = TestHost::new()?;
        let mut queue = test_host.queue(8)?;
        let callback = BlockingCallback::new()?;
        let inside = callback.clone();
        let staying = done(GFP_KERNEL, move |()| inside.stay()).map_err(log_status)?;
        let mut adapter = AutoClose::new(test_host.adapter.clone());
        assert!(matches!(
            queue.cq.give_up()?.close(staying),
            Progress::Pending
        ));
        assert!(close_waits(&test_host, &mut adapter, &callback)?);
        Ok(())
    }

    #[test]
    fn ndk_clos_07_the_adapter_s_close_blocks_until_every_callback_returned() -> Result {
        let test_host = TestHost::new()?;
        let mut queue = test_host.queue(8)?;
        let adapter = test_host.adapter.clone();
        let callback = BlockingCallback::new()?;
        let (watch, inside) = (callback.clone(), callback.clone());
        let returned = CallbackValue::new()?;
        let slot = returned.clone();
        let other_task = OtherContext::new(move || {
            adapter.close_and_wait();
            slot.put(watch.has_returned());
        })?;
        let threads = ProcessQueue::new(c"ndk_test_closer")?;
        assert!(other_task.begin(&threads));
        // The close has begun, and waits for the queue.
        assert!(wait_until(|| test_host.adapter.is_closed()));
        assert!(others_run(&test_host)?);
        kunit_assert_eq!(returned.calls.get(), 0);
        let staying = done(GFP_KERNEL, move |()| inside.stay()).map_err(log_status)?;
        let progress = queue.cq.give_up()?.close(staying);
        let entered = callback.is_entered();
        // The close now waits for the callback.
        let waits = others_run(&test_host)? && returned.calls.get() == 0;
        callback.release();
        assert!(other_task.is_done());
        assert!(matches!(progress, Progress::Pending));
        assert!(entered);
        assert!(waits);
        kunit_assert_eq!(returned.wait(), Some(true));
        Ok(())
    }

    #[test]
    fn ndk_clos_07_closing_the_adapter_inside_a_callback_does_not_wait_for_itself() -> Result {
        let test_host = TestHost::new()?;
        let mut queue = test_host.queue(8)?;
        let adapter = test_host.adapter.clone();
        let slot = CallbackValue::new()?;
        let inside = slot.clone();
        let resized = done(GFP_KERNEL, move |status: NtStatus| {
            adapter.close_and_wait();
            inside.put(status);
        });
        let answer = queue.cq.resize(16, resized.map_err(log_status)?);
        assert!(matches!(answer, Ok(Progress::Pending)));
        kunit_assert_eq!(slot.wait(), Some(NtStatus::SUCCESS));
        assert!(test_host.adapter.is_closed());
        // The adapter ends with its last object; the drop of the host waits for that end.
        assert!(queue.cq.close_and_wait()?);
        Ok(())
    }

    /// A queue pair on one completion queue, in a new domain.
    fn qp_on(test_host: &TestHost, cq: &Ref<Cq>) -> Result<(AutoClose<Pd>, AutoClose<Qp>)> {
        let domain = pd(&test_host.adapter)?;
        let pair = made(|done| domain.create_qp((cq, cq), None, 0, SIZES, done))?;
        Ok((domain, pair))
    }

    /// Arms `cq` in another thread: a due callback comes on the processor that arms, and a blocking
    /// one would stop the test there.
    fn arm_elsewhere(test_host: &TestHost, cq: Ref<Cq>) -> Result {
        let threads = &test_host.device.host.threads;
        threads.spawn(GFP_KERNEL, move || cq.arm(notify::ANY))
    }

    /// Returns true if the close of a queue waits for its callback, which blocks.
    fn a_queue_s_callback_is_waited_for(callback: &Arc<BlockingCallback>) -> Result<bool> {
        let test_host = TestHost::new()?;
        let inside = callback.clone();
        let mut cq = cq_with(&test_host.adapter, (8, None), move |_| inside.stay())?;
        let (_domain, mut pair) = qp_on(&test_host, &cq)?;
        pair.receive(1, [].into_iter()).map_err(log_status)?;
        let drained = pair.close_and_wait()?;
        // The queue has the cancelled receive.
        arm_elsewhere(&test_host, (*cq).clone())?;
        Ok(close_waits(&test_host, &mut cq, callback)? && drained)
    }

    #[test]
    fn ndk_clos_08_a_queue_s_close_waits_for_its_callback() -> Result {
        assert!(holds(|callback| a_queue_s_callback_is_waited_for(
            &callback
        ))?);
        Ok(())
    }

    /// Returns true if the close of a queue inside its own callback waits for that callback, which
    /// blocks.
    fn a_callback_that_closes_is_waited_for(callback: &Arc<BlockingCallback>) -> Result<bool> {
        let test_host = TestHost::new()?;
        let itself: Arc<CallbackValue<(Ref<Cq>, DoneFn<()>)>> = CallbackValue::new()?;
        let pending = Arc::new(Tally::new(), GFP_KERNEL)?;
        let (inside, own, tally) = (callback.clone(), itself.clone(), pending.clone());
        let mut cq = cq_with(&test_host.adapter, (8, None), move |_| {
            if let Some((cq, done)) = own.take() {
                if matches!(cq.close(done), Progress::Pending) {
                    tally.hit();
                }
            }
            inside.stay();
        })?;
        let (_domain, mut pair) = qp_on(&test_host, &cq)?;
        pair.receive(1, [].into_iter()).map_err(log_status)?;
        let drained = pair.close_and_wait()?;
        let closed = CallbackValue::new()?;
        let (end, watch) = (closed.clone(), callback.clone());
        let told_end = done(GFP_KERNEL, move |()| end.put(watch.has_returned()));
        let object = cq.give_up()?;
        itself.put((object.clone(), told_end.map_err(log_status)?));
        arm_elsewhere(&test_host, object)?;
        let entered = callback.is_entered();
        let waits = others_run(&test_host)? && closed.calls.get() == 0;
        callback.release();
        let after = closed.wait();
        Ok(drained && entered && waits && pending.get() == 1 && after == Some(true))
    }

    #[test]
    fn ndk_clos_08_a_queue_closed_inside_its_callback_ends_when_that_returns() -> Result {
        assert!(holds(|callback| a_callback_that_closes_is_waited_for(
            &callback
        ))?);
        Ok(())
    }
}
