// SPDX-License-Identifier: GPL-2.0

//! Close: answer, effect and end (CLOS-01, CLOS-04, CLOS-05, CLOS-09, CLOS-10).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_close)]
mod tests {
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use crate::{
        kunit::{
            harness::{
                cases,
                wait_until, //
            },
            log::Tally,
            other_context::OtherContext, //
        },
        ndk::{
            abi::numbers::mr_flags,
            call::done,
            connector::Source,
            life::{
                Created,
                ObjectType, //
            },
            srq::SrqSizes,
            status::{
                NtStatus,
                Progress, //
            },
            tests::{
                completion::{
                    log_status,
                    made,
                    AutoClose,
                    CallbackValue, //
                },
                host::{
                    here,
                    pd,
                    qp,
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
            softirq::{
                BhDisabled,
                BhQueue, //
            },
            warning, //
        }, //
    };

    const CONNECTION_REFUSED: u32 = 0xC000_0236;

    fn created<T: ObjectType>(created: Created<T>) -> Result<AutoClose<T>> {
        created.map(AutoClose::new).map_err(log_status)
    }

    /// Closes an object; true if the callback came once after `Pending`, never after `Done`.
    fn closes<T: ObjectType>(test_host: &TestHost, mut object: AutoClose<T>) -> Result<bool> {
        let (progress, slot) = object.close()?;
        let expected = match progress {
            Progress::Done => 0,
            Progress::Pending => u32::from(slot.wait().is_some()),
        };
        test_host.flush_work();
        let fine = slot.calls.get() == expected && object.is_closed();
        match progress {
            Progress::Done => Ok(fine),
            Progress::Pending => Ok(fine && expected == 1),
        }
    }

    const SRQ: SrqSizes = SrqSizes {
        depth: 8,
        sges: 1,
        threshold: 0,
    };

    #[test]
    fn ndk_clos_01_a_close_is_over_or_calls_once_whatever_is_closed() -> Result {
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        assert!(closes(
            &test_host,
            created(test_host.adapter.create_connector())?
        )?);
        assert!(closes(&test_host, created(test_host.adapter.create_pd())?)?);
        assert!(closes(
            &test_host,
            OpenListener::new(&test_host.adapter)?.listener
        )?);
        let user = KBox::new(|_| (), GFP_KERNEL)?;
        assert!(closes(
            &test_host,
            created(test_host.adapter.create_listener(user))?
        )?);
        let endpoint = made(|done| test_host.adapter.create_shared_endpoint(here(0), done))?;
        assert!(closes(&test_host, endpoint)?);
        assert!(closes(&test_host, created(domain.create_mr(false))?)?);
        assert!(closes(&test_host, created(domain.create_mr(true))?)?);
        let registered = PageBuffer::registered(&domain, 4096, 0)?;
        assert!(closes(&test_host, registered.mr.ok_or(EINVAL)?)?);
        let initialized = PageBuffer::fast(&domain, 4096, true)?;
        assert!(closes(&test_host, initialized.mr.ok_or(EINVAL)?)?);
        assert!(closes(&test_host, made(|done| domain.create_mw(done))?)?);
        let srq = made(|done| domain.create_srq(SRQ, None, done))?;
        assert!(closes(&test_host, srq)?);
        let (one, two) = (test_host.queue(8)?, test_host.queue(8)?);
        assert!(closes(&test_host, qp(&domain, &one, &two, 0, SIZES)?)?);
        assert!(closes(&test_host, one.cq)?);
        assert!(closes(&test_host, domain)?);
        Ok(())
    }

    #[test]
    fn ndk_clos_01_a_close_may_be_made_from_softirq_and_with_softirqs_off() -> Result {
        let test_host = TestHost::new()?;
        let mut queue = test_host.queue(8)?;
        let mut open_listener = OpenListener::new(&test_host.adapter)?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let mut domain = pd(&test_host.adapter)?;
        let mut mw = made(|done| test_side.pd.create_mw(done))?;
        let softirqs = BhQueue::new(c"ndk_test_close")?;
        let (cq, listener) = (queue.cq.give_up()?, open_listener.listener.give_up()?);
        let (one, two) = (CallbackValue::new()?, CallbackValue::new()?);
        let (first, second) = (one.clone(), two.clone());
        let other_task = OtherContext::new(move || {
            let nobody = || done(GFP_ATOMIC, |()| ());
            let notified = |slot: &Arc<CallbackValue<()>>| {
                let slot = slot.clone();
                done(GFP_ATOMIC, move |()| slot.put(()))
            };
            if let Ok(call) = notified(&first) {
                cq.close(call);
            }
            if let Ok(call) = notified(&second).or_else(|_| nobody()) {
                listener.close(call);
            }
        })?;
        assert!(other_task.by_softirq(&softirqs));
        assert!(one.wait().is_some());
        assert!(two.wait().is_some());
        let (a, b) = (CallbackValue::new()?, CallbackValue::new()?);
        let (over, gone) = (a.callback()?, b.callback()?);
        let (domain, mw) = (domain.give_up()?, mw.give_up()?);
        let section = BhDisabled::enter();
        let at_once = domain.close(over);
        let defer = mw.close(gone);
        drop(section);
        assert!(matches!(at_once, Progress::Done));
        kunit_assert_eq!(a.calls.get(), 0);
        assert!(matches!(defer, Progress::Pending));
        assert!(b.wait().is_some());
        Ok(())
    }

    #[test]
    fn ndk_clos_04_closing_a_connected_connector_disconnects_and_flushes() -> Result {
        let mut pair = Pair::new()?;
        pair.a.receive(1, &[])?;
        pair.a.receive(2, &[])?;
        pair.b.receive(3, &[])?;
        let ours = pair.a.connector.as_mut().ok_or(EINVAL)?;
        assert!(ours.close_and_wait()?);
        assert!(pair.a.receives.next_is(1, NtStatus::CANCELLED));
        assert!(pair.a.receives.next_is(2, NtStatus::CANCELLED));
        let posted = pair.a.qp.send(4, [].into_iter(), 0);
        kunit_assert_eq!(posted, Err(NtStatus::CONNECTION_INVALID));
        // The peer is notified, and keeps its posted receive.
        assert!(wait_until(|| pair.b.disconnects.get() == 1));
        kunit_assert_eq!(pair.a.disconnects.get(), 0);
        assert!(pair.b.receives.stays_empty());
        let theirs = pair.b.connector.as_mut().ok_or(EINVAL)?;
        assert!(theirs.close_and_wait()?);
        assert!(pair.b.receives.next_is(3, NtStatus::CANCELLED));
        Ok(())
    }

    #[test]
    fn ndk_clos_04_closing_a_connector_that_connects_cancels_that() -> Result {
        let test_host = TestHost::new()?;
        let open_listener = OpenListener::new(&test_host.adapter)?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let mut ours = created(test_host.adapter.create_connector())?;
        let slot = CallbackValue::new()?;
        let to = (Source::Address(here(0)), open_listener.at);
        let asking = ours.connect(&test_side.qp, to, READS, KVec::new(), slot.callback()?);
        assert!(matches!(asking, Ok(Progress::Pending)));
        // The peer does not answer.
        let _theirs = open_listener.incoming()?;
        kunit_assert_eq!(slot.calls.get(), 0);
        assert!(ours.close_and_wait()?);
        // Connect has failed before the end of the close.
        kunit_assert_eq!(slot.calls.get(), 1);
        assert!(slot.wait().is_some_and(|s| s.raw() < 0));
        Ok(())
    }

    #[test]
    fn ndk_clos_04_closing_a_queue_pair_cancels_what_was_posted() -> Result {
        let test_host = TestHost::new()?;
        let mut test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        test_side.receive(1, &[])?;
        test_side.receive(2, &[])?;
        assert!(test_side.qp.close_and_wait()?);
        // The results come before the end of the close.
        for context in cases([1, 2]) {
            let got = test_side.receives.poll();
            kunit_assert_eq!(
                got.map(|r| (r.request_context, r.status)),
                Some((context, NtStatus::CANCELLED))
            );
        }
        Ok(())
    }

    #[test]
    fn ndk_clos_05_antecedents_closed_first_wait_and_serve_meanwhile() -> Result {
        let mut pair = Pair::new()?;
        let mut from = pair.a.buffer(4096, 0)?;
        let to = pair.b.buffer(4096, mr_flags::LOCAL_WRITE)?;
        from.fill(3);
        let mut slots = KVec::new();
        for (progress, slot) in [
            pair.a.pd.close()?,
            pair.b.pd.close()?,
            pair.a.requests.cq.close()?,
            pair.b.receives.cq.close()?,
            pair.a.qp.close()?,
            pair.b.qp.close()?,
            pair.open_listener.listener.close()?,
            AutoClose::new(pair.test_host.adapter.clone()).close()?,
        ] {
            assert!(matches!(progress, Progress::Pending));
            slots.push(slot, GFP_KERNEL)?;
        }
        // A closed antecedent still serves its open successors.
        pair.b.receive(1, &[to.sge(0, 100)?])?;
        pair.a.send(2, &[from.sge(0, 100)?], 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        assert!(to.has(3, 0, 100));
        pair.test_host.flush_work();
        assert!(slots.iter().all(|slot| slot.calls.get() == 0));
        let Pair {
            a,
            b,
            open_listener,
            test_host,
        } = pair;
        drop((from, to, a, b, open_listener));
        assert!(slots.iter().all(|slot| slot.wait().is_some()));
        assert!(slots.iter().all(|slot| slot.calls.get() == 1));
        drop(test_host);
        Ok(())
    }

    #[test]
    fn ndk_clos_09_a_closed_listener_refuses_at_once_while_its_close_pends() -> Result {
        let mut pair = Pair::new()?;
        let (progress, slot) = pair.open_listener.listener.close()?;
        assert!(matches!(progress, Progress::Pending));
        let late = TestSide::new(&pair.test_host.adapter, 2, SIZES)?;
        let ours = created(pair.test_host.adapter.create_connector())?;
        let refused = CallbackValue::new()?;
        let to = (Source::Address(here(0)), pair.open_listener.at);
        let asking = ours.connect(&late.qp, to, READS, KVec::new(), refused.callback()?);
        assert!(matches!(asking, Ok(Progress::Pending)));
        kunit_assert_eq!(
            refused.wait().map(|s| s.raw() as u32),
            Some(CONNECTION_REFUSED)
        );
        pair.test_host.flush_work();
        // One arrival, that of the pair; and the accepted connection goes on.
        kunit_assert_eq!(pair.open_listener.arrivals.calls.get(), 1);
        kunit_assert_eq!(slot.calls.get(), 0);
        pair.b.receive(1, &[])?;
        pair.a.send(2, &[], 0)?;
        assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
        let theirs = pair.b.connector.as_mut().ok_or(EINVAL)?;
        assert!(theirs.close_and_wait()?);
        assert!(slot.wait().is_some());
        Ok(())
    }

    #[test]
    fn ndk_clos_09_requests_that_race_with_the_close_come_before_its_end_or_not_at_all() -> Result {
        let test_host = TestHost::new()?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        for round in cases(0..40u32) {
            let ended = Arc::new(Tally::new(), GFP_KERNEL)?;
            let late = Arc::new(Tally::new(), GFP_KERNEL)?;
            let (seen, after) = (ended.clone(), late.clone());
            let user = KBox::new(
                move |connector: crate::ndk::life::Ref<crate::ndk::connector::Connector>| {
                    if seen.get() != 0 {
                        after.hit();
                    }
                    if let Ok(nobody) = done(GFP_ATOMIC, |()| ()) {
                        connector.close(nobody);
                    }
                },
                GFP_KERNEL,
            )?;
            let listener = test_host
                .adapter
                .create_listener(user)
                .map_err(log_status)?;
            let listening =
                crate::ndk::tests::completion::request(|done| listener.listen(here(0), done))?;
            kunit_assert_eq!(listening, NtStatus::SUCCESS);
            let at = listener.address().map_err(log_status)?;
            let ours = created(test_host.adapter.create_connector())?;
            let (answer, closed) = (CallbackValue::new()?, CallbackValue::new()?);
            let end = closed.clone();
            let told_end = done(GFP_KERNEL, move |()| {
                ended.hit();
                end.put(());
            });
            let to = (Source::Address(here(0)), at);
            let asking = ours.connect(&test_side.qp, to, READS, KVec::new(), answer.callback()?);
            assert!(matches!(asking, Ok(Progress::Pending)));
            for _ in 0..round * 200 {
                core::hint::spin_loop();
            }
            listener.close(told_end.map_err(log_status)?);
            assert!(closed.wait().is_some());
            // Refused by the user of the listener, or by the close.
            kunit_assert_eq!(
                answer.wait().map(|s| s.raw() as u32),
                Some(CONNECTION_REFUSED)
            );
            test_host.flush_work();
            kunit_assert_eq!(late.get(), 0);
            kunit_assert_eq!(closed.calls.get(), 1);
        }
        Ok(())
    }

    #[test]
    fn ndk_clos_10_a_second_close_warns_and_does_nothing() -> Result {
        let test_host = TestHost::new()?;
        let mut queue = test_host.queue(8)?;
        let cq = queue.cq.give_up()?;
        let (first, second) = (CallbackValue::new()?, CallbackValue::new()?);
        let (one, two) = (first.callback()?, second.callback()?);
        assert!(matches!(cq.close(one), Progress::Pending));
        let again = cq.clone();
        let warned = warning::warnings_of(move || {
            again.close(two);
        });
        kunit_assert_eq!(warned, Some(1));
        assert!(first.wait().is_some());
        test_host.flush_work();
        kunit_assert_eq!(first.calls.get(), 1);
        kunit_assert_eq!(second.calls.get(), 0);
        Ok(())
    }
}
