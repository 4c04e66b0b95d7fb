// SPDX-License-Identifier: GPL-2.0

//! Tables, headers, output pointers and contexts (GEN-01 to GEN-05, GEN-09).

#[kernel::macros::kunit_tests(ndk_kunit_abi_tables)]
mod tests {
    use core::{
        ffi::c_void,
        ptr, //
    };

    use kernel::{
        prelude::*,
        sync::atomic::{
            ordering::Relaxed,
            Atomic, //
        }, //
    };

    use super::super::consumer::*;
    use crate::{
        bindings,
        kunit::harness::{
            cases,
            sleep,
            wait_until,
            Deadline, //
        },
        ndk::{
            adapter::Limits,
            status::NtStatus,
            tests::host::here, //
        }, //
    };

    /// A pattern that a consumer may leave in the reserved block.
    const MARKS: [u64; 4] = [1, u64::MAX, 0x5555, 7];

    #[test]
    fn ndk_gen_01_no_entry_of_any_table_is_null() -> Result {
        let mut consumer = Consumer::new()?;
        consumer.connect()?;
        let mut kinds = 0u32;
        let mut entries = 0;
        for thing in &consumer.things {
            for at in cases(0..thing.entries) {
                assert!(thing.entry(at) != 0);
            }
            if kinds & (1 << thing.kind) == 0 {
                entries += thing.entries;
            }
            kinds |= 1 << thing.kind;
        }
        // All types from adapter to shared queue were there, with all that the headers declare.
        kunit_assert_eq!(kinds, (1 << bindings::NDK_OBJECT_TYPE_MAX) - 2);
        kunit_assert_eq!(entries, 9 + 8 + 7 + 11 + 4 + 7 + 3 + 13 + 5 + 3);
        Ok(())
    }

    #[test]
    fn ndk_gen_02_headers_tell_version_and_type_and_reserved_is_left_alone() -> Result {
        let mut consumer = Consumer::new()?;
        for thing in &consumer.things {
            // SAFETY: A live object.
            let header = unsafe { &mut *thing.header() };
            // The highest version, not the 1.0 that was asked for.
            kunit_assert_eq!(header.version.major, 1);
            kunit_assert_eq!(header.version.minor, 2);
            assert!(header.object_type != 0);
            kunit_assert_eq!(header.object_type, thing.kind);
            kunit_assert_eq!(header.reserved, [0; 4]);
            header.reserved = MARKS;
        }
        let known = consumer.things.len();
        consumer.connect()?;
        use_queues(&consumer)?;
        for (at, thing) in consumer.things.iter().enumerate() {
            // SAFETY: A live object.
            let header = unsafe { &*thing.header() };
            let expected = if at < known { MARKS } else { [0; 4] };
            kunit_assert_eq!(header.reserved, expected);
            kunit_assert_eq!(header.version.major, 1);
            kunit_assert_eq!(header.version.minor, 2);
            kunit_assert_eq!(header.object_type, thing.kind);
        }
        Ok(())
    }

    /// A send without bytes from the queue pair to its peer, and both results.
    fn use_queues(consumer: &Consumer) -> Result {
        let none = ptr::null();
        let nobody = ptr::null_mut();
        let srqs = consumer.table::<_, bindings::ndk_srq_dispatch>(consumer.srq)?;
        fine(entry!(srqs, srq_receive, consumer.srq, nobody, none, 0))?;
        let cqs = consumer.table::<_, bindings::ndk_cq_dispatch>(consumer.cq)?;
        let any = bindings::NDK_CQ_NOTIFY_ANY;
        entry!(cqs, arm_cq, consumer.cq, any);
        let qps = consumer.table::<_, bindings::ndk_qp_dispatch>(consumer.qp)?;
        fine(entry!(qps, send, consumer.qp, nobody, none, 0, 0))?;
        fine(consumer.notified.wait::<c_void>()?.0)?;
        let blank = || bindings::ndk_result {
            status: -1,
            bytes_transferred: 9,
            qp_context: nobody,
            request_context: nobody,
        };
        let mut results = [blank(), blank()];
        let mut got = 0;
        let hang = Deadline::of_a_hang();
        while got < 2 {
            if hang.is_over() {
                kunit_note!("waited in vain");
                return Err(ETIMEDOUT);
            }
            let left = results.as_mut_ptr().wrapping_add(got as usize);
            let more = entry!(cqs, get_cq_results, consumer.cq, left, 2 - got);
            got += more;
            if more == 0 {
                sleep(1);
            }
        }
        fine(results[0].status)?;
        fine(results[1].status)
    }

    #[test]
    fn ndk_gen_03_dispatch_is_set_at_once_and_never_read_again() -> Result {
        let mut consumer = Consumer::new()?;
        let poison: *const c_void = ptr::without_provenance(0x10);
        for thing in &consumer.things {
            assert!(!thing.table.is_null());
            // SAFETY: A live object, whose table its consumer may replace.
            unsafe { (*thing.head).dispatch = poison };
        }
        // All calls work by the known tables, also with these objects as arguments.
        consumer.connect()?;
        use_queues(&consumer)?;
        let cqs = consumer.table::<_, bindings::ndk_cq_dispatch>(consumer.cq)?;
        let resized = request(|f, c| call(|| Ok(entry!(cqs, resize_cq, consumer.cq, 99, f, c))))?;
        fine(resized)?;
        let mut closed = 0;
        while let Some(thing) = consumer.things.pop() {
            // SAFETY: A live object.
            let now = unsafe { (*thing.head).dispatch };
            // The incoming connector came later.
            assert!(now == poison || closed == 0);
            assert!(thing.close());
            closed += 1;
        }
        kunit_assert_eq!(closed, 12);
        Ok(())
    }

    #[test]
    fn ndk_gen_04_pending_calls_once_and_leaves_the_output_alone() -> Result {
        let mut consumer = Consumer::new()?;
        let (adapter, pd) = (consumer.adapter, consumer.pd);
        let adapters = consumer.table::<_, bindings::ndk_adapter_dispatch>(adapter)?;
        let pds = consumer.table::<_, bindings::ndk_pd_dispatch>(pd)?;
        let (none, mask) = (ptr::null_mut(), ptr::null());
        let cq = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    adapters, create_cq, adapter, 1, None, none, mask, f, c, out
                ))
            })
        })?;
        let mw = create(|f, c, out| call(|| Ok(entry!(pds, create_mw, pd, f, c, out))))?;
        // A second callback would have come by now.
        consumer.test_host.flush_work();
        kunit_assert_eq!(cq.inline, PENDING);
        kunit_assert_eq!(cq.end, SUCCESS);
        assert!(cq.is_in_order());
        kunit_assert_eq!(mw.inline, PENDING);
        kunit_assert_eq!(mw.end, SUCCESS);
        assert!(mw.is_in_order());
        let kind = bindings::NDK_OBJECT_TYPE_CQ;
        consumer.keep::<_, bindings::ndk_cq_dispatch>(cq.object()?, kind)?;
        let kind = bindings::NDK_OBJECT_TYPE_MW;
        consumer.keep::<_, bindings::ndk_mw_dispatch>(mw.object()?, kind)?;
        Ok(())
    }

    #[test]
    fn ndk_gen_04_success_fills_the_output_and_never_calls() -> Result {
        let mut consumer = Consumer::new()?;
        let (adapter, pd) = (consumer.adapter, consumer.pd);
        let adapters = consumer.table::<_, bindings::ndk_adapter_dispatch>(adapter)?;
        let pds = consumer.table::<_, bindings::ndk_pd_dispatch>(pd)?;
        let other =
            create(|f, c, out| call(|| Ok(entry!(adapters, create_pd, adapter, f, c, out))))?;
        let mr = create(|f, c, out| call(|| Ok(entry!(pds, create_mr, pd, true, f, c, out))))?;
        consumer.test_host.flush_work();
        kunit_assert_eq!(other.inline, SUCCESS);
        assert!(other.is_in_order());
        kunit_assert_eq!(mr.inline, SUCCESS);
        assert!(mr.is_in_order());
        let kind = bindings::NDK_OBJECT_TYPE_PD;
        consumer.keep::<_, bindings::ndk_pd_dispatch>(other.object()?, kind)?;
        let kind = bindings::NDK_OBJECT_TYPE_MR;
        consumer.keep::<_, bindings::ndk_mr_dispatch>(mr.object()?, kind)?;
        Ok(())
    }

    #[test]
    fn ndk_gen_04_an_inline_failure_neither_calls_nor_writes() -> Result {
        let consumer = Consumer::new()?;
        let (adapter, pd, cq) = (consumer.adapter, consumer.pd, consumer.cq);
        let adapters = consumer.table::<_, bindings::ndk_adapter_dispatch>(adapter)?;
        let pds = consumer.table::<_, bindings::ndk_pd_dispatch>(pd)?;
        let (none, mask) = (ptr::null_mut(), ptr::null());
        let too_deep: Creation<bindings::ndk_cq> = create(|f, c, out| {
            let depth = Limits::FULL.cq + 1;
            call(|| {
                Ok(entry!(
                    adapters, create_cq, adapter, depth, None, none, mask, f, c, out
                ))
            })
        })?;
        let too_many: Creation<bindings::ndk_qp> = create(|f, c, out| {
            let most = Limits::FULL.requests + 1;
            call(|| {
                Ok(entry!(
                    pds, create_qp, pd, cq, cq, none, 1, most, 1, 1, 0, f, c, out
                ))
            })
        })?;
        consumer.test_host.flush_work();
        let invalid = NtStatus::INVALID_PARAMETER.raw();
        kunit_assert_eq!(too_deep.inline, invalid);
        assert!(too_deep.is_in_order());
        kunit_assert_eq!(too_many.inline, invalid);
        assert!(too_many.is_in_order());
        Ok(())
    }

    #[test]
    fn a_list_that_is_not_aligned_is_taken() -> Result {
        let consumer = Consumer::new()?;
        let qps = consumer.table::<_, bindings::ndk_qp_dispatch>(consumer.qp)?;
        let list = [0u64; 4];
        let askew = list.as_ptr().cast::<u8>().wrapping_add(1).cast();
        let status = entry!(qps, receive, consumer.qp, ptr::null_mut(), askew, 1);
        kunit_assert_eq!(status, SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_gen_05_a_failed_creation_brings_its_status_and_no_object() -> Result {
        let consumer = Consumer::new()?;
        let adapter = consumer.adapter;
        let table = consumer.table::<_, bindings::ndk_adapter_dispatch>(adapter)?;
        // An address that is not the adapter's: found out later.
        let foreign = core::net::SocketAddr::from(([192, 0, 2, 99], 0));
        let (at, len) = raw_address(foreign);
        let made: Creation<bindings::ndk_shared_endpoint> = create(|f, c, out| {
            let at = (&raw const at).cast();
            call(|| {
                Ok(entry!(
                    table,
                    create_shared_endpoint,
                    adapter,
                    at,
                    len,
                    f,
                    c,
                    out
                ))
            })
        })?;
        consumer.test_host.flush_work();
        kunit_assert_eq!(made.inline, PENDING);
        kunit_assert_eq!(made.end, NtStatus::INVALID_ADDRESS.raw());
        assert!(made.called_with.is_null());
        assert!(made.is_in_order());
        Ok(())
    }

    static CONTEXT: Atomic<usize> = Atomic::new(0);
    static CALLS: Atomic<u32> = Atomic::new(0);

    fn note(context: *mut c_void) {
        CONTEXT.store(context.addr(), Relaxed);
        CALLS.fetch_add(1, Relaxed);
    }

    /// Returns true if the next call comes, and with that context.
    fn noted(context: *mut c_void) -> bool {
        let came = wait_until(|| CALLS.load(Relaxed) > 0);
        CALLS.store(0, Relaxed);
        came && CONTEXT.load(Relaxed) == context.addr()
    }

    /// # Safety
    ///
    /// The arguments are those that the call was given, or as the header says.
    unsafe extern "C" fn note_status(context: *mut c_void, _status: i32) {
        note(context);
    }

    /// # Safety
    ///
    /// The arguments are those that the call was given, or as the header says.
    unsafe extern "C" fn note_object(
        context: *mut c_void,
        _status: i32,
        _object: *mut bindings::ndk_object_header,
    ) {
        note(context);
    }

    /// # Safety
    ///
    /// The arguments are those that the call was given, or as the header says.
    unsafe extern "C" fn note_end(context: *mut c_void) {
        note(context);
    }

    /// Contexts that are no valid pointers.
    const CONTEXTS: [*mut c_void; 3] = [
        ptr::null_mut(),
        ptr::without_provenance_mut(usize::MAX),
        ptr::without_provenance_mut(3),
    ];

    #[test]
    fn ndk_gen_09_contexts_of_completions_come_back_as_they_were() -> Result {
        let consumer = Consumer::new()?;
        CALLS.store(0, Relaxed);
        let cqs = consumer.table::<_, bindings::ndk_cq_dispatch>(consumer.cq)?;
        let adapters = consumer.table::<_, bindings::ndk_adapter_dispatch>(consumer.adapter)?;
        for context in cases(CONTEXTS) {
            let status = entry!(cqs, resize_cq, consumer.cq, 32, Some(note_status), context);
            kunit_assert_eq!(status, PENDING);
            assert!(noted(context));
            // A creation that fails, so that no object has to be closed.
            let (at, len) = raw_address(core::net::SocketAddr::from(([192, 0, 2, 99], 0)));
            let mut out = ptr::null_mut();
            let status = entry!(
                adapters,
                create_shared_endpoint,
                consumer.adapter,
                (&raw const at).cast(),
                len,
                Some(note_object),
                context,
                &raw mut out
            );
            kunit_assert_eq!(status, PENDING);
            assert!(noted(context));
        }
        Ok(())
    }

    #[test]
    fn ndk_gen_09_contexts_of_events_and_closes_come_back_as_they_were() -> Result {
        let mut consumer = Consumer::new()?;
        consumer.connect()?;
        CALLS.store(0, Relaxed);
        let adapters = consumer.table::<_, bindings::ndk_adapter_dispatch>(consumer.adapter)?;
        let pds = consumer.table::<_, bindings::ndk_pd_dispatch>(consumer.pd)?;
        for context in cases(CONTEXTS) {
            let cq = cq_with_context(adapters, consumer.adapter, context)?;
            let qp = qp_with_context(pds, consumer.pd, cq, context)?;
            // SAFETY: `cq` was created above and is closed below: a live queue.
            let cqs = unsafe { (*cq).dispatch };
            // SAFETY: As above, for the queue pair.
            let qps = unsafe { (*qp).dispatch };
            let got = cancelled(cqs, cq, qps, qp, context)?;
            assert!(noted(context));
            kunit_assert_eq!(got, (context.addr(), context.addr()));
            // The close of the queue waits for that of the queue pair.
            kunit_assert_eq!(
                entry!(cqs, close, cq.cast(), Some(note_end), context),
                PENDING
            );
            consumer.test_host.flush_work();
            kunit_assert_eq!(CALLS.load(Relaxed), 0);
            let closed = CallbackLog::new()?;
            let status = entry!(qps, close, qp.cast(), Some(notified), closed.context());
            assert!(status == SUCCESS || closed.wait::<c_void>().is_ok());
            assert!(noted(context));
        }
        Ok(())
    }

    fn cq_with_context(
        adapters: *const bindings::ndk_adapter_dispatch,
        adapter: *mut bindings::ndk_adapter,
        context: *mut c_void,
    ) -> Result<*mut bindings::ndk_cq> {
        let mask = ptr::null();
        let made = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    adapters,
                    create_cq,
                    adapter,
                    4,
                    Some(note_status),
                    context,
                    mask,
                    f,
                    c,
                    out
                ))
            })
        })?;
        made.object()
    }

    fn qp_with_context(
        pds: *const bindings::ndk_pd_dispatch,
        pd: *mut bindings::ndk_pd,
        cq: *mut bindings::ndk_cq,
        context: *mut c_void,
    ) -> Result<*mut bindings::ndk_qp> {
        let made = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    pds, create_qp, pd, cq, cq, context, 4, 4, 1, 1, 0, f, c, out
                ))
            })
        })?;
        made.object()
    }

    /// Posts a receive to an armed queue, cancels it, and gives the contexts of its result.
    fn cancelled(
        cqs: *const bindings::ndk_cq_dispatch,
        cq: *mut bindings::ndk_cq,
        qps: *const bindings::ndk_qp_dispatch,
        qp: *mut bindings::ndk_qp,
        context: *mut c_void,
    ) -> Result<(usize, usize)> {
        entry!(cqs, arm_cq, cq, bindings::NDK_CQ_NOTIFY_ANY);
        fine(entry!(qps, receive, qp, context, ptr::null(), 0))?;
        entry!(qps, flush, qp);
        let mut result = bindings::ndk_result {
            status: 1,
            bytes_transferred: 1,
            qp_context: ptr::without_provenance_mut(1),
            request_context: ptr::without_provenance_mut(1),
        };
        let came = wait_until(|| {
            let taken = || Ok(entry!(cqs, get_cq_results, cq, &raw mut result, 1) as i32);
            call(taken) == 1
        });
        match came {
            true => Ok((result.qp_context.addr(), result.request_context.addr())),
            false => Err(ETIMEDOUT),
        }
    }

    #[test]
    fn ndk_gen_09_contexts_of_connect_and_disconnect_events_come_back_as_they_were() -> Result {
        let consumer = Consumer::new()?;
        let adapters = consumer.table::<_, bindings::ndk_adapter_dispatch>(consumer.adapter)?;
        for context in cases(CONTEXTS) {
            CALLS.store(0, Relaxed);
            let made = create(|f, c, out| {
                call(|| {
                    Ok(entry!(
                        adapters,
                        create_listener,
                        consumer.adapter,
                        Some(note_connector),
                        context,
                        f,
                        c,
                        out
                    ))
                })
            })?;
            let listener: *mut bindings::ndk_listener = made.object()?;
            // SAFETY: A live listener, of this type.
            let (table, thing) = unsafe {
                let kind = bindings::NDK_OBJECT_TYPE_LISTENER;
                let thing = ObjectHandle::new::<_, bindings::ndk_listener_dispatch>(listener, kind);
                ((*listener).dispatch, thing)
            };
            let (mut at, mut len) = raw_address(here(0));
            let status = request(|f, c| {
                let at = (&raw const at).cast();
                call(|| Ok(entry!(table, listen, listener, at, len, f, c)))
            })?;
            kunit_assert_eq!(status, SUCCESS);
            let address = (&raw mut at).cast::<bindings::sockaddr>();
            fine(entry!(
                table,
                get_local_address,
                listener,
                address,
                &raw mut len
            ))?;
            let seen = ask_and_hang_up(&consumer, address, len, context);
            assert!(thing.close());
            kunit_assert_eq!(seen, Ok((true, true)));
        }
        Ok(())
    }

    static CONNECTOR: Atomic<usize> = Atomic::new(0);

    /// # Safety
    ///
    /// The arguments are those that the call was given, or as the header says.
    unsafe extern "C" fn note_connector(
        context: *mut c_void,
        connector: *mut bindings::ndk_connector,
    ) {
        CONNECTOR.store(connector.expose_provenance(), Relaxed);
        note(context);
    }

    fn two_queue_pairs(
        consumer: &Consumer,
    ) -> Result<([*mut bindings::ndk_qp; 2], KVec<ObjectHandle>)> {
        let pds = consumer.table::<_, bindings::ndk_pd_dispatch>(consumer.pd)?;
        let mut things = KVec::new();
        let mut qps = [ptr::null_mut(); 2];
        for qp in &mut qps {
            let made = create(|f, c, out| {
                let cq = consumer.cq;
                let none = ptr::null_mut();
                call(|| {
                    Ok(entry!(
                        pds,
                        create_qp,
                        consumer.pd,
                        cq,
                        cq,
                        none,
                        4,
                        4,
                        1,
                        1,
                        0,
                        f,
                        c,
                        out
                    ))
                })
            })?;
            *qp = made.object()?;
            let kind = bindings::NDK_OBJECT_TYPE_QP;
            // SAFETY: A live queue pair.
            let thing = unsafe { ObjectHandle::new::<_, bindings::ndk_qp_dispatch>(*qp, kind) };
            things.push(thing, GFP_KERNEL)?;
        }
        Ok((qps, things))
    }

    type Table = *const bindings::ndk_connector_dispatch;
    type Connector = *mut bindings::ndk_connector;

    /// Connects `ours` on the first of the queue pairs, and accepts on the second; returns the
    /// connector that came, and true if it came with `context`.
    fn join(
        (table, ours): (Table, Connector),
        qps: &[*mut bindings::ndk_qp; 2],
        (address, len): (*mut bindings::sockaddr, u32),
        context: *mut c_void,
    ) -> Result<(Connector, bool)> {
        let (from, from_len) = raw_address(here(0));
        let (connecting, accepting) = (CallbackLog::new()?, CallbackLog::new()?);
        let nothing = ptr::null();
        let status = entry!(
            table,
            connect,
            ours,
            qps[0],
            (&raw const from).cast(),
            from_len,
            address,
            len,
            1,
            1,
            nothing,
            0,
            Some(requested),
            connecting.context(),
        );
        is(status, PENDING)?;
        let asked = noted(context);
        let theirs: Connector = ptr::with_exposed_provenance_mut(CONNECTOR.load(Relaxed));
        let status = entry!(
            table,
            accept,
            theirs,
            qps[1],
            1,
            1,
            nothing,
            0,
            Some(note_end),
            context,
            Some(requested),
            accepting.context(),
        );
        is(status, PENDING)?;
        fine(connecting.wait::<c_void>()?.0)?;
        let nobody = ptr::null_mut();
        fine(request(|f, c| {
            call(|| Ok(entry!(table, complete_connect, ours, None, nobody, f, c)))
        })?)?;
        fine(accepting.wait::<c_void>()?.0)?;
        Ok((theirs, asked))
    }

    /// Connects to an address and disconnects; returns for each event whether it had `context`.
    fn ask_and_hang_up(
        consumer: &Consumer,
        address: *mut bindings::sockaddr,
        len: u32,
        context: *mut c_void,
    ) -> Result<(bool, bool)> {
        let adapters = consumer.table::<_, bindings::ndk_adapter_dispatch>(consumer.adapter)?;
        let made = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    adapters,
                    create_connector,
                    consumer.adapter,
                    f,
                    c,
                    out
                ))
            })
        })?;
        let ours: Connector = made.object()?;
        let (qps, things) = two_queue_pairs(consumer)?;
        let kind = bindings::NDK_OBJECT_TYPE_CONNECTOR;
        // SAFETY: A live connector.
        let (table, thing) = unsafe {
            let thing = ObjectHandle::new::<_, bindings::ndk_connector_dispatch>(ours, kind);
            ((*ours).dispatch, thing)
        };
        let (theirs, asked) = join((table, ours), &qps, (address, len), context)?;
        // SAFETY: A live connector.
        let last =
            unsafe { ObjectHandle::new::<_, bindings::ndk_connector_dispatch>(theirs, kind) };
        fine(request(|f, c| {
            call(|| Ok(entry!(table, disconnect, ours, f, c)))
        })?)?;
        let gone = noted(context);
        let mut closed = thing.close() && last.close();
        for thing in &things {
            closed &= thing.close();
        }
        match closed {
            true => Ok((asked, gone)),
            false => Err(EIO),
        }
    }
}
