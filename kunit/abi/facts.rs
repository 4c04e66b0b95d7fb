// SPDX-License-Identifier: GPL-2.0

//! Facts that an adapter reports of itself (ADPT-01, ADPT-03 to ADPT-06), and results as C has them
//! (COMP-02, COMP-03, COMP-08).

#[kernel::macros::kunit_tests(ndk_kunit_abi_facts)]
mod tests {
    use core::{
        ffi::c_void,
        mem::{
            offset_of,
            size_of,
            MaybeUninit, //
        },
        ptr, //
    };

    use kernel::prelude::*;

    use super::super::consumer::*;
    use crate::{
        bindings,
        kunit::harness::{
            cases,
            wait_until, //
        },
        ndk::{
            abi::adapter::{
                ndk_face_close,
                open, //
            },
            adapter::Limits,
            status::NtStatus,
            tests::host::{
                HostAttr,
                TestHost, //
            }, //
        },
        sys::mdl::PAGE_SIZE, //
    };

    const INFO_SIZE: u32 = size_of::<bindings::ndk_adapter_info>() as u32;

    /// The information that an adapter reports.
    fn reported() -> Result<bindings::ndk_adapter_info> {
        let test_host = TestHost::new()?;
        let adapter = open_adapter(&test_host)?;
        let mut info = MaybeUninit::zeroed();
        let mut size = INFO_SIZE;
        // SAFETY: A live adapter.
        let table = unsafe { (*adapter).dispatch };
        let query = || {
            let size = &raw mut size;
            Ok(entry!(
                table,
                query_adapter_info,
                adapter,
                info.as_mut_ptr(),
                size
            ))
        };
        let status = call(query);
        // SAFETY: A live adapter, closed once.
        unsafe { ndk_face_close(adapter, None, ptr::null_mut()) };
        fine(status)?;
        // SAFETY: All of its members are numbers.
        Ok(unsafe { info.assume_init() })
    }

    #[test]
    fn ndk_adpt_01_the_highest_version_is_reported_whichever_was_asked_for() -> Result {
        let test_host = TestHost::with(&HostAttr::PLAIN)?;
        let bad = NtStatus::BAD_VERSION;
        // (major, minor, expected)
        let table = [
            (1, 0, Ok(())),
            (1, 1, Ok(())),
            (1, 2, Ok(())),
            (1, 3, Err(bad)),
            (0, 2, Err(bad)),
            (2, 0, Err(bad)),
            (2, 1, Err(bad)),
            (0xFFFF, 0xFFFF, Err(bad)),
        ];
        for (major, minor, expected) in cases(table) {
            let params = bindings::ndk_open_params {
                name: crate::ndk::tests::host::NAME.as_char_ptr().cast(),
                local_address: ptr::null(),
                net: ptr::null_mut(),
                version: bindings::ndk_version { major, minor },
            };
            let mut out: *mut bindings::ndk_adapter = ptr::null_mut();
            // SAFETY: `params` and the name outlive the call, its other pointers are null, and
            // `out` may be written.
            let opened = unsafe { open(&test_host.context, &params, &raw mut out) };
            kunit_assert_eq!(opened, expected);
            kunit_assert_eq!(out.is_null(), expected.is_err());
            if out.is_null() {
                continue;
            }
            // SAFETY: A live adapter.
            let notified = unsafe { (*out).header.version.minor };
            // SAFETY: A live adapter, closed once.
            unsafe { ndk_face_close(out, None, ptr::null_mut()) };
            kunit_assert_eq!(notified, 2);
        }
        let info = reported()?;
        kunit_assert_eq!(info.version.major, 1);
        kunit_assert_eq!(info.version.minor, 2);
        Ok(())
    }

    #[test]
    fn ndk_adpt_03_a_short_buffer_learns_the_size_and_a_long_one_what_was_written() -> Result {
        let consumer = Consumer::new()?;
        let adapter = consumer.adapter;
        let table = consumer.table::<_, bindings::ndk_adapter_dispatch>(adapter)?;
        let small = NtStatus::BUFFER_TOO_SMALL.raw();
        let mut info = MaybeUninit::<[bindings::ndk_adapter_info; 2]>::uninit();
        let first = info.as_mut_ptr().cast::<bindings::ndk_adapter_info>();
        let bytes = first.cast::<u8>();
        for room in cases([0, 1, INFO_SIZE - 1, INFO_SIZE, INFO_SIZE + 1]) {
            // SAFETY: Both structures are written, byte by byte.
            unsafe { ptr::write_bytes(first, 0xEE, 2) };
            let mut size = room;
            let status = entry!(table, query_adapter_info, adapter, first, &raw mut size);
            kunit_assert_eq!(size, INFO_SIZE);
            kunit_assert_eq!(status, if room < INFO_SIZE { small } else { SUCCESS });
            // SAFETY: All bytes were written.
            let (head, tail) = unsafe { (bytes.read(), bytes.add(INFO_SIZE as usize).read()) };
            // The first byte of the major version, if it was written; the byte behind stays.
            kunit_assert_eq!(head, if room < INFO_SIZE { 0xEE } else { 1 });
            kunit_assert_eq!(tail, 0xEE);
        }
        let mut size = 0;
        let nothing = ptr::null_mut();
        let status = entry!(table, query_adapter_info, adapter, nothing, &raw mut size);
        kunit_assert_eq!(status, small);
        kunit_assert_eq!(size, INFO_SIZE);
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_what_is_reported_are_the_limits_that_are_kept() -> Result {
        let info = reported()?;
        let limits = Limits::FULL;
        assert!(info.frmr_page_count >= 16);
        kunit_assert_eq!(info.frmr_page_count, limits.pages);
        kunit_assert_eq!(info.max_cq_depth, limits.cq);
        kunit_assert_eq!(info.max_registration_size, limits.registration);
        kunit_assert_eq!(info.max_window_size, limits.registration);
        kunit_assert_eq!(info.max_initiator_request_sge, limits.sges);
        kunit_assert_eq!(info.max_receive_request_sge, limits.sges);
        kunit_assert_eq!(info.max_read_request_sge, limits.read_sges);
        kunit_assert_eq!(info.max_transfer_length, limits.transfer);
        kunit_assert_eq!(info.max_inline_data_size, limits.inline);
        kunit_assert_eq!(info.max_inbound_read_limit, limits.reads);
        kunit_assert_eq!(info.max_outbound_read_limit, limits.reads);
        kunit_assert_eq!(info.max_receive_queue_depth, limits.requests);
        kunit_assert_eq!(info.max_initiator_queue_depth, limits.requests);
        kunit_assert_eq!(info.max_srq_depth, limits.srq);
        kunit_assert_eq!(info.max_caller_data, limits.private_data);
        kunit_assert_eq!(info.max_callee_data, limits.private_data);
        Ok(())
    }

    #[test]
    fn ndk_adpt_04_a_region_of_the_longest_length_can_be_registered() -> Result {
        let consumer = Consumer::new()?;
        let page = KVec::<u8>::from_elem(0, 2 * PAGE_SIZE as usize, GFP_KERNEL)?;
        let inside = (page.as_ptr().addr() as u64).next_multiple_of(PAGE_SIZE);
        // One page of memory, again and again: addresses are only indices.
        // SAFETY: Looks the page of a live array up.
        let of_page = unsafe { bindings::ndk_page_of(inside) };
        let longest = Limits::FULL.registration;
        let count = longest / PAGE_SIZE + 1;
        let mut pages =
            KVVec::<*mut bindings::page>::from_elem(of_page, count as usize, GFP_KERNEL)?;
        let mut mdl = bindings::ndk_mdl {
            next: ptr::null_mut(),
            start_va: ptr::without_provenance_mut(0x10_0000),
            byte_offset: 0,
            byte_count: longest as u32 + 1,
            pages: pages.as_mut_ptr(),
        };
        let table = consumer.table::<_, bindings::ndk_mr_dispatch>(consumer.mr)?;
        let register = |mdl: *mut bindings::ndk_mdl, len| {
            request(|f, c| call(|| Ok(entry!(table, register_mr, consumer.mr, mdl, len, 0, f, c))))
        };
        let above = register(&raw mut mdl, longest + 1)?;
        let equal = register(&raw mut mdl, longest)?;
        let end = || request(|f, c| call(|| Ok(entry!(table, deregister_mr, consumer.mr, f, c))));
        let ended = end()?;
        kunit_assert_eq!(above, NtStatus::INVALID_PARAMETER.raw());
        kunit_assert_eq!(equal, SUCCESS);
        kunit_assert_eq!(ended, SUCCESS);
        Ok(())
    }

    #[test]
    fn ndk_adpt_05_flags_are_set_for_what_is_there_and_nothing_else() -> Result {
        const SINK: u32 = 0x2;
        const MODERATION: u32 = 0x4;
        const READ_INVALIDATE: u32 = 0x10;
        const RESIZE: u32 = 0x100;
        const LOOPBACK: u32 = 0x10000;
        let all = SINK | MODERATION | READ_INVALIDATE | RESIZE | LOOPBACK;
        kunit_assert_eq!(reported()?.adapter_flags, all);
        Ok(())
    }

    #[test]
    fn ndk_adpt_06_every_extension_of_every_object_is_refused() -> Result {
        let mut consumer = Consumer::new()?;
        consumer.connect()?;
        let ids: [[u8; 16]; 3] = [[0; 16], [0xFF; 16], *b"an NDK extension"];
        for thing in &consumer.things {
            // In the adapter's table no close precedes this entry.
            let is_adapter = thing.kind == bindings::NDK_OBJECT_TYPE_ADAPTER;
            let header = thing.header();
            for id in cases(ids) {
                let guid = bindings::guid_t { b: id };
                let mut interface: *const c_void = ptr::without_provenance(UNTOUCHED);
                let out = &raw mut interface;
                let status = match is_adapter {
                    true => {
                        let table = thing.table.cast::<bindings::ndk_adapter_dispatch>();
                        entry!(table, query_extension, header, &guid, out)
                    }
                    false => {
                        let table = thing.table.cast::<bindings::ndk_pd_dispatch>();
                        entry!(table, query_extension, header, &guid, out)
                    }
                };
                kunit_assert_eq!(status, NtStatus::NOT_SUPPORTED.raw());
                assert!(interface.addr() == UNTOUCHED || interface.is_null());
            }
        }
        Ok(())
    }

    /// One message of eight bytes from the queue pair to its peer; request contexts 1 and 2.
    fn send_eight(consumer: &Consumer, bytes: &[u8; 16]) -> Result {
        let pds = consumer.table::<_, bindings::ndk_pd_dispatch>(consumer.pd)?;
        let mut token = 0;
        entry!(
            pds,
            get_privileged_memory_region_token,
            consumer.pd,
            &raw mut token
        );
        let sge = |at: usize| {
            let logical_address = bytes.as_ptr().addr() as u64 + at as u64;
            bindings::ndk_sge {
                __bindgen_anon_1: bindings::ndk_sge__bindgen_ty_1 { logical_address },
                length: 8,
                memory_region_token: token,
            }
        };
        let (from, to) = (sge(0), sge(8));
        let srqs = consumer.table::<_, bindings::ndk_srq_dispatch>(consumer.srq)?;
        let (one, two) = (
            ptr::without_provenance_mut(1),
            ptr::without_provenance_mut(2),
        );
        fine(entry!(srqs, srq_receive, consumer.srq, one, &to, 1))?;
        let qps = consumer.table::<_, bindings::ndk_qp_dispatch>(consumer.qp)?;
        fine(entry!(qps, send, consumer.qp, two, &from, 1, 0))
    }

    /// The next result; bytes that were not written hold 0xEE.
    fn next_ex(consumer: &Consumer) -> Result<bindings::ndk_result_ex> {
        let cqs = consumer.table::<_, bindings::ndk_cq_dispatch>(consumer.cq)?;
        let mut result = MaybeUninit::<bindings::ndk_result_ex>::uninit();
        let place = result.as_mut_ptr();
        // SAFETY: The structure is written, byte by byte.
        unsafe { ptr::write_bytes(place, 0xEE, 1) };
        let came = wait_until(|| {
            call(|| Ok(entry!(cqs, get_cq_results_ex, consumer.cq, place, 1) as i32)) == 1
        });
        match came {
            // SAFETY: All bytes were written, and all of its members are numbers.
            true => Ok(unsafe { result.assume_init() }),
            false => Err(ETIMEDOUT),
        }
    }

    fn next_plain(consumer: &Consumer) -> Result<bindings::ndk_result> {
        let cqs = consumer.table::<_, bindings::ndk_cq_dispatch>(consumer.cq)?;
        let mut result = MaybeUninit::<bindings::ndk_result>::zeroed();
        let place = result.as_mut_ptr();
        let came = wait_until(|| {
            call(|| Ok(entry!(cqs, get_cq_results, consumer.cq, place, 1) as i32)) == 1
        });
        match came {
            // SAFETY: All bytes were written, and all of its members are numbers.
            true => Ok(unsafe { result.assume_init() }),
            false => Err(ETIMEDOUT),
        }
    }

    #[test]
    fn ndk_comp_02_both_records_tell_the_same_of_one_queue() -> Result {
        let mut consumer = Consumer::new()?;
        consumer.connect()?;
        let bytes = KBox::new(*b"from herto there", GFP_KERNEL)?;
        send_eight(&consumer, &bytes)?;
        send_eight(&consumer, &bytes)?;
        // An entry goes to one call alone: the two calls take four results together.
        let mut plain = [(0, 0); 2];
        let mut more = [(0, 0); 2];
        for turn in cases(0..2) {
            let got = next_ex(&consumer)?;
            fine(got.status)?;
            more[turn] = (got.request_context.addr(), got.bytes_transferred);
            let got = next_plain(&consumer)?;
            fine(got.status)?;
            plain[turn] = (got.request_context.addr(), got.bytes_transferred);
        }
        let cqs = consumer.table::<_, bindings::ndk_cq_dispatch>(consumer.cq)?;
        let mut last = MaybeUninit::<bindings::ndk_result>::zeroed();
        consumer.test_host.flush_work();
        kunit_assert_eq!(
            entry!(cqs, get_cq_results, consumer.cq, last.as_mut_ptr(), 1),
            0
        );
        let all = [more[0], plain[0], more[1], plain[1]];
        let receives = all.iter().filter(|r| **r == (1, 8)).count();
        let sends = all.iter().filter(|(context, _)| *context == 2).count();
        kunit_assert_eq!(receives, 2);
        kunit_assert_eq!(sends, 2);
        Ok(())
    }

    #[test]
    fn ndk_comp_08_the_error_code_is_where_21_has_it_and_zero_on_success() -> Result {
        type Ex = bindings::ndk_result_ex;
        kunit_assert_eq!(offset_of!(Ex, type_), 24);
        kunit_assert_eq!(offset_of!(Ex, provider_error_code), 28);
        kunit_assert_eq!(offset_of!(Ex, type_specific_completion_output), 32);
        kunit_assert_eq!(size_of::<Ex>(), 40);
        let mut consumer = Consumer::new()?;
        consumer.connect()?;
        let bytes = KBox::new(*b"from herto there", GFP_KERNEL)?;
        send_eight(&consumer, &bytes)?;
        for _ in 0..2 {
            let got = next_ex(&consumer)?;
            kunit_assert_eq!(got.status, SUCCESS);
            kunit_assert_eq!(got.provider_error_code, 0);
            // No token was invalidated, and the old contents are gone.
            kunit_assert_eq!(got.type_specific_completion_output, 0);
            let receive = got.request_context.addr() == 1;
            kunit_assert_eq!(got.type_, if receive { 1 } else { 2 });
        }
        Ok(())
    }
}
