// SPDX-License-Identifier: GPL-2.0

//! The two faces compared: posts, states, callbacks, lifetimes (FACE-01 to FACE-13).
//!
//! The verbs side is the engine as the verbs face drives it ([`QpPair`]). The tests of the C error
//! numbers are beside the code, in `src/verbs`; the consumers in `kunit/consumer` see the whole.
//!
//! [`QpPair`]: crate::kunit::harness::QpPair

#[kernel::macros::kunit_tests(ndk_kunit_ndk_face)]
mod tests {
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                AtomicFlag,
                Relaxed, //
            },
            Arc, //
        },
        task::Task, //
    };

    use crate::{
        engine::wq::PostError,
        kunit::{
            fake::ManualQp,
            harness::{
                cases,
                same,
                EndAttr,
                QpPair, //
            },
            log::Tally,
            requests::SEND, //
        },
        ndk::{
            abi::numbers::{
                notify,
                op_flags::{
                    DEFER,
                    SILENT_SUCCESS, //
                }, //
            },
            call::{
                done,
                DoneFn, //
            },
            connector::Source,
            status::{
                Answer,
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
                    HostAttr,
                    TestHost,
                    SIZES, //
                },
                memory::PageBuffer,
                pair::{
                    Pair,
                    READS, //
                },
                requests::{
                    Kind,
                    RequestSet, //
                }, //
            }, //
        },
        rdma::values::{
            qp::QpState,
            status::Status,
            wc::WcOpcode,
            work::{
                SendFlag,
                SendFlags, //
            }, //
        },
        sys::{
            mdl::Described,
            softirq::{
                self,
                BhDisabled, //
            }, //
        }, //
    };

    const REFUSED: Result<(), NtStatus> = Err(NtStatus::CONNECTION_INVALID);

    #[test]
    fn ndk_face_01_verbs_flushes_what_is_posted_in_error_and_ndk_refuses_it() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.a.qp.fail();
        kunit_assert_eq!(qp_pair.a.qp.state(), QpState::Err);
        qp_pair.a.post(1, SEND, &[])?;
        assert!(qp_pair.a.sends.next_is(1, Status::Flushed));
        assert!(qp_pair.a.sends.stays_empty());
        let pair = Pair::new()?;
        pair.a.qp.flush();
        kunit_assert_eq!(pair.a.qp.send(1, [].into_iter(), 0), REFUSED);
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_face_02_before_the_connection_both_refuse() -> Result {
        let manual = ManualQp::unconnected(&EndAttr::PLAIN)?;
        for state in cases([QpState::Reset, QpState::Init, QpState::Rtr]) {
            manual.end.qp.modify(state)?;
            // EINVAL in verbs.
            let refused = manual.end.try_post(1, SEND, SendFlag::Signaled, &[]);
            kunit_assert_eq!(refused, Err(PostError::State));
        }
        let pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        kunit_assert_eq!(pair.a.qp.send(1, [].into_iter(), 0), REFUSED);
        assert!(pair.a.requests.stays_empty());
        assert!(manual.end.sends.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_face_04_without_a_flag_ndk_reports_success_and_verbs_does_not() -> Result {
        let qp_pair = QpPair::new()?;
        for context in cases(0..3) {
            qp_pair.b.receive(context, &[])?;
        }
        qp_pair.a.post_with(1, SEND, SendFlags::empty(), &[])?;
        qp_pair.a.post_with(2, SEND, SendFlag::Signaled, &[])?;
        assert!(qp_pair.a.sends.next_is(2, Status::Success));
        assert!(qp_pair.a.sends.stays_empty());
        let pair = Pair::new()?;
        for context in cases(0..3) {
            pair.b.receive(context, &[])?;
        }
        pair.a.send(1, &[], SILENT_SUCCESS)?;
        pair.a.send(2, &[], 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_face_06_a_satisfied_arm_calls_after_the_function_has_returned() -> Result {
        let pair = Pair::new()?;
        for context in cases(0..2) {
            pair.b.receive(context, &[])?;
        }
        pair.a.send(1, &[], 0)?;
        assert!(pair.b.receives.has_called(0));
        assert!(pair.a.requests.has_called(0));
        // Callbacks run in softirq of this processor, which is off: a callback that comes now comes
        // from inside these functions.
        let softirqs_off = BhDisabled::enter();
        assert!(softirqs_off.is_some());
        pair.a.requests.cq.arm(notify::ANY);
        pair.b.receives.cq.arm(notify::ANY);
        let armed = (pair.a.requests.calls.get(), pair.b.receives.calls.get());
        while pair.a.requests.poll().is_some() || pair.b.receives.poll().is_some() {}
        drop(softirqs_off);
        kunit_assert_eq!(armed, (0, 0));
        assert!(pair.a.requests.has_called(1));
        assert!(pair.b.receives.has_called(1));
        // A post that is carried out inside the call, and completes there.
        pair.a.requests.cq.arm(notify::ANY);
        let softirqs_off = BhDisabled::enter();
        let posted = pair.a.send(2, &[], 0);
        let calls = pair.a.requests.calls.get();
        drop(softirqs_off);
        assert!(posted.is_ok());
        kunit_assert_eq!(calls, 1);
        assert!(pair.a.requests.has_called(2));
        Ok(())
    }

    /// The context of a callback.
    struct Where {
        /// Softirq, or a section with softirqs off; not hard interrupt.
        proper: AtomicFlag,
        task: Atomic<usize>,
    }

    impl Where {
        fn new() -> Result<Arc<Self>> {
            let new = Self {
                proper: AtomicFlag::new(false),
                task: Atomic::new(0),
            };
            Ok(Arc::new(new, GFP_KERNEL)?)
        }

        fn note(&self) {
            let proper = softirq::may_run_here() && softirq::is_here();
            self.proper.store(proper, Relaxed);
            self.task.store(Task::current_raw().addr(), Relaxed);
        }

        /// A callback that notes its context, and puts its value into `slot`.
        fn callback<T: Send + 'static>(
            self: &Arc<Self>,
            slot: &Arc<CallbackValue<T>>,
        ) -> Result<DoneFn<T>> {
            let (this, slot) = (self.clone(), slot.clone());
            let boxed = done(GFP_KERNEL, move |value: T| {
                this.note();
                slot.put(value);
            });
            boxed.map_err(log_status)
        }

        /// Returns true if the callback ran in another task, in a proper context.
        fn is_elsewhere(&self) -> bool {
            let task = self.task.load(Relaxed);
            task != 0 && task != Task::current_raw().addr() && self.proper.load(Relaxed)
        }
    }

    #[test]
    fn ndk_face_06_completions_of_requests_come_from_another_context() -> Result {
        let pair = Pair::new()?;
        let (place, over) = (Where::new()?, CallbackValue::new()?);
        let callback = place.callback(&over)?;
        let softirqs_off = BhDisabled::enter();
        let answer = pair.a.connector()?.disconnect(callback);
        let calls = over.calls.get();
        drop(softirqs_off);
        // The disconnect has no request to wait for, and yet does not call back from inside.
        assert!(matches!(answer, Ok(Progress::Pending)));
        kunit_assert_eq!(calls, 0);
        over.came(NtStatus::SUCCESS)?;
        kunit_assert_eq!(over.calls.get(), 1);
        assert!(place.proper.load(Relaxed));
        Ok(())
    }

    #[test]
    fn ndk_face_06_a_queue_calls_in_softirq_and_never_in_hard_interrupt() -> Result {
        let test_host = TestHost::new()?;
        let (place, calls) = (Where::new()?, Arc::new(Tally::new(), GFP_KERNEL)?);
        let (noted, count) = (place.clone(), calls.clone());
        let user = KBox::new(
            move |_: NtStatus| {
                noted.note();
                count.hit();
            },
            GFP_KERNEL,
        )?;
        let cq = made(|done| test_host.adapter.create_cq(8, None, user, done))?;
        let requests = test_host.queue(8)?;
        let pd = pd(&test_host.adapter)?;
        let cqs = (&*cq, &*requests.cq);
        let qp = made(|done| pd.create_qp(cqs, None, 1, SIZES, done))?;
        qp.receive(1, [].into_iter()).map_err(log_status)?;
        cq.arm(notify::ANY);
        qp.flush();
        test_host.flush_work();
        kunit_assert_eq!(cq.results(8, |_| ()), 1);
        kunit_assert_eq!(calls.get(), 1);
        assert!(place.proper.load(Relaxed));
        Ok(())
    }

    #[test]
    fn ndk_face_09_a_peers_disconnect_fails_verbs_and_leaves_ndk_alone() -> Result {
        let qp_pair = QpPair::new()?;
        qp_pair.a.receive(1, &[])?;
        qp_pair.a.post(2, SEND, &[])?;
        qp_pair.b.qp.fail();
        assert!(qp_pair.a.is_down());
        assert!(qp_pair.a.receives.next_is(1, Status::Flushed));
        assert!(qp_pair.a.sends.next_is(2, Status::Flushed));
        let mut pair = Pair::new()?;
        pair.a.receive(1, &[])?;
        pair.a.send(2, &[], 0)?;
        let mut theirs = pair.b.connector.take().ok_or(EINVAL)?;
        assert!(theirs.close_and_wait()?);
        pair.test_host.flush_work();
        kunit_assert_eq!(pair.a.disconnects.get(), 1);
        assert!(pair.a.requests.stays_empty());
        assert!(pair.a.receives.stays_empty());
        // The requests stay until this side acts.
        pair.a.qp.flush();
        assert!(pair.a.requests.next_is(2, NtStatus::CANCELLED));
        assert!(pair.a.receives.next_is(1, NtStatus::CANCELLED));
        Ok(())
    }

    #[test]
    fn ndk_face_10_close_of_something_in_use_pends_until_its_users_are_gone() -> Result {
        let mut pair = Pair::new()?;
        let (_, cq_closed) = {
            let (progress, slot) = pair.a.requests.cq.close()?;
            assert!(matches!(progress, Progress::Pending));
            (progress, slot)
        };
        let (progress, pd_closed) = pair.a.pd.close()?;
        assert!(matches!(progress, Progress::Pending));
        pair.test_host.flush_work();
        kunit_assert_eq!(cq_closed.calls.get(), 0);
        kunit_assert_eq!(pd_closed.calls.get(), 0);
        // The queue and the domain are in use, and still serve.
        pair.b.receive(1, &[])?;
        pair.a.send(2, &[], 0)?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        let mut connector = pair.a.connector.take().ok_or(EINVAL)?;
        assert!(connector.close_and_wait()?);
        kunit_assert_eq!(cq_closed.calls.get(), 0);
        kunit_assert_eq!(pd_closed.calls.get(), 0);
        assert!(pair.a.qp.close_and_wait()?);
        assert!(cq_closed.wait().is_some());
        assert!(pd_closed.wait().is_some());
        kunit_assert_eq!(cq_closed.calls.get(), 1);
        kunit_assert_eq!(pd_closed.calls.get(), 1);
        Ok(())
    }

    /// Makes a call with softirqs off, where it may not sleep. Returns the value of the callback;
    /// an error unless the call pends and another task calls back.
    fn pends<T>(call: impl FnOnce(DoneFn<T>) -> Answer) -> Result<T>
    where
        T: Send + 'static,
    {
        let (place, slot) = (Where::new()?, CallbackValue::new()?);
        let callback = place.callback(&slot)?;
        let softirqs_off = BhDisabled::enter();
        let answer = call(callback);
        drop(softirqs_off);
        let pending = matches!(answer, Ok(Progress::Pending));
        let value = slot.wait();
        let is_so = pending && same(slot.calls.get(), 1) && place.is_elsewhere();
        value.filter(|_| is_so).ok_or(EINVAL)
    }

    #[test]
    fn ndk_face_12_create_and_register_never_sleep_and_end_in_process_context() -> Result {
        let test_host = TestHost::new()?;
        let (requests, receives) = (test_host.queue(8)?, test_host.queue(8)?);
        let pd = pd(&test_host.adapter)?;
        let user = KBox::new(|_: NtStatus| (), GFP_KERNEL)?;
        let cq = pends(|done| test_host.adapter.create_cq(4, None, user, done))?;
        let cq = AutoClose::new(cq.map_err(log_status)?);
        let cqs = (&*receives.cq, &*requests.cq);
        let qp = pends(|done| pd.create_qp(cqs, None, 1, SIZES, done))?;
        let mut qp = AutoClose::new(qp.map_err(log_status)?);
        let mw = pends(|done| pd.create_mw(done))?;
        let mw = AutoClose::new(mw.map_err(log_status)?);
        let buffer = PageBuffer::plain(8192)?;
        let described = Described::new(&buffer.bytes)?;
        let normal = pd.create_mr(false).map(AutoClose::new);
        let normal = normal.map_err(log_status)?;
        let status = pends(|done| normal.register(described.mdl(), 8192, 1, done))?;
        kunit_assert_eq!(status, NtStatus::SUCCESS);
        kunit_assert_eq!(pends(|done| normal.deregister(done))?, NtStatus::SUCCESS);
        let fast = pd.create_mr(true).map(AutoClose::new);
        let fast = fast.map_err(log_status)?;
        kunit_assert_eq!(
            pends(|done| fast.initialize(2, true, done))?,
            NtStatus::SUCCESS
        );
        // The close of an object in use completes later as well.
        let (object, slot) = (qp.give_up()?, CallbackValue::new()?);
        let callback = slot.callback()?;
        let softirqs_off = BhDisabled::enter();
        let progress = object.close(callback);
        drop(softirqs_off);
        assert!(matches!(progress, Progress::Pending));
        assert!(slot.wait().is_some());
        drop((cq, mw));
        Ok(())
    }

    #[test]
    fn ndk_face_12_connect_and_what_follows_never_sleep() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let ours = pair.test_host.adapter.create_connector();
        let ours = ours.map(AutoClose::new).map_err(log_status)?;
        let (connected, accepted) = (CallbackValue::new()?, CallbackValue::new()?);
        let callbacks = (connected.callback()?, accepted.callback()?);
        let from = Source::Address(here(0));
        let softirqs_off = BhDisabled::enter();
        let at = (from, pair.open_listener.at);
        let answer = ours.connect(&pair.a.qp, at, READS, KVec::new(), callbacks.0);
        drop(softirqs_off);
        assert!(matches!(answer, Ok(Progress::Pending)));
        let theirs = pair.open_listener.incoming()?;
        let softirqs_off = BhDisabled::enter();
        let answer = theirs.accept(&pair.b.qp, READS, KVec::new(), None, callbacks.1);
        drop(softirqs_off);
        assert!(matches!(answer, Ok(Progress::Pending)));
        connected.came(NtStatus::SUCCESS)?;
        let completed = CallbackValue::new()?;
        let callback = completed.callback()?;
        let softirqs_off = BhDisabled::enter();
        let answer = ours.complete_connect(None, callback);
        drop(softirqs_off);
        assert!(matches!(answer, Ok(Progress::Pending)));
        completed.came(NtStatus::SUCCESS)?;
        accepted.came(NtStatus::SUCCESS)?;
        pair.a.connector = Some(ours);
        pair.b.connector = Some(theirs);
        let mut connector = pair.a.connector.take().ok_or(EINVAL)?;
        let (object, slot) = (connector.give_up()?, CallbackValue::new()?);
        let callback = slot.callback()?;
        let softirqs_off = BhDisabled::enter();
        let progress = object.close(callback);
        drop(softirqs_off);
        // Over at once, or reported later.
        assert!(matches!(progress, Progress::Done) || slot.wait().is_some());
        Ok(())
    }

    #[test]
    fn ndk_face_13_the_type_of_a_failed_request_is_right() -> Result {
        let pair = Pair::new()?;
        let request_set = RequestSet::new(&pair)?;
        pair.a.receive(99, &[])?;
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            kunit_assert_eq!(request_set.post(&pair.a, kind, context, DEFER)?, Ok(()));
        }
        pair.a.qp.flush();
        for (context, kind) in cases((1..).zip(Kind::ALL)) {
            let got = pair.a.requests.next()?;
            kunit_assert_eq!(got.request_context, context);
            kunit_assert_eq!(got.status, NtStatus::CANCELLED);
            kunit_assert_eq!(got.operation, kind.operation());
        }
        let got = pair.a.receives.next()?;
        kunit_assert_eq!(got.request_context, 99);
        kunit_assert_eq!(got.operation, 1);
        kunit_assert_eq!(got.output, 0);
        // The engine keeps the type of a request for both faces.
        let mut manual = ManualQp::new(&EndAttr::PLAIN)?;
        manual.end.post(
            1,
            crate::kunit::requests::read(crate::kunit::requests::NOWHERE),
            &[],
        )?;
        let seq = manual.start().ok_or(EINVAL)?;
        manual.finish(seq, Status::RemoteAccess);
        let got = manual.end.sends.next().map(|e| (e.status, e.opcode));
        kunit_assert_eq!(got, Some((Status::RemoteAccess, WcOpcode::Read)));
        Ok(())
    }
}
