// SPDX-License-Identifier: GPL-2.0

//! `Send` as a layer of the older service provider interface finds it (SPI-01 to SPI-15).

#[kernel::macros::kunit_tests(ndk_kunit_ndk_spi)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        kunit::harness::{
            cases,
            same, //
        },
        ndk::{
            abi::numbers::{
                notify,
                op_flags::{
                    SEND_AND_SOLICIT_EVENT,
                    SILENT_SUCCESS, //
                }, //
            },
            adapter::Limits,
            status::NtStatus,
            tests::{
                fake_transport::ManualPair,
                host::{
                    HostAttr,
                    SIZES, //
                },
                pair::Pair,
                requests::{
                    deep,
                    of_length,
                    Kind,
                    RequestSet, //
                }, //
            }, //
        },
        rdma::values::{
            status::Status,
            token::Token, //
        }, //
    };

    const ND_SUCCESS: u32 = 0;
    const ND_TIMEOUT_RAW: u32 = 0x0000_0102;
    const ND_BUFFER_OVERFLOW: u32 = 0x8000_0005;
    const ND_NO_MORE_ENTRIES: u32 = 0x8000_001A;
    const ND_INTERNAL_ERROR: u32 = 0xC000_00E5;
    const ND_ACCESS_VIOLATION: u32 = 0xC000_0005;
    const ND_INVALID_DEVICE_REQUEST: u32 = 0xC000_0010;
    const ND_DATA_OVERRUN: u32 = 0xC000_003C;
    const ND_IO_TIMEOUT: u32 = 0xC000_00B5;
    const ND_CANCELED: u32 = 0xC000_0120;
    const ND_REMOTE_ERROR: u32 = 0xC000_013D;
    const ND_CONNECTION_INVALID: u32 = 0xC000_023A;

    /// The statuses that a completion of a send may have.
    const OF_SEND: [u32; 8] = [
        ND_SUCCESS,
        ND_DATA_OVERRUN,
        ND_ACCESS_VIOLATION,
        ND_CANCELED,
        ND_INVALID_DEVICE_REQUEST,
        ND_INTERNAL_ERROR,
        ND_IO_TIMEOUT,
        ND_REMOTE_ERROR,
    ];

    /// The number of a status in C.
    fn number(status: NtStatus) -> u32 {
        // CAST: the bits stay.
        status.raw() as u32
    }

    /// The status of a refused post; 0 if the post was accepted.
    fn refusal(posted: Result<(), NtStatus>) -> u32 {
        posted.map_or_else(number, |()| 0)
    }

    /// Returns the status of a send of 64 bytes that the transport ends with `status`.
    fn ends(status: Status) -> Result<u32> {
        let mut manual = ManualPair::new()?;
        let buffer = manual.pair.a.buffer(4096, 0)?;
        manual.pair.a.send(1, &[buffer.sge(0, 64)?], 0)?;
        let seq = manual.start().ok_or(EINVAL)?;
        manual.finish(seq, status);
        let got = manual.pair.a.requests.next()?;
        same(got.request_context, 1)
            .then_some(number(got.status))
            .ok_or(EINVAL)
    }

    /// A pair with a timeout of 1 ms for messages that wait for a receive.
    fn hasty() -> Result<Pair> {
        let attr = HostAttr {
            rnr_ms: 1,
            ..HostAttr::PLAIN
        };
        Pair::with(&attr, SIZES, SIZES)
    }

    #[test]
    fn ndk_spi_01_whatever_ends_a_send_is_one_of_the_statuses_listed() -> Result {
        let all = [
            Status::Success,
            Status::LocalLength,
            Status::LocalAccess,
            Status::LocalOperation,
            Status::Fatal,
            Status::ReceiverNotReady,
            Status::Timeout,
            Status::RemoteAccess,
            Status::RemoteInvalidRequest,
            Status::RemoteOperation,
        ];
        for status in cases(all) {
            assert!(OF_SEND.contains(&ends(status)?));
        }
        Ok(())
    }

    #[test]
    fn ndk_spi_01_success_access_violation_canceled_timeout_and_remote_error_come_about() -> Result
    {
        let pair = Pair::new()?;
        let buffer = pair.a.buffer(4096, 0)?;
        pair.b.receive(1, &[])?;
        pair.a.send(1, &[], 0)?;
        kunit_assert_eq!(number(pair.a.requests.next()?.status), ND_SUCCESS);
        // A send that fails, and a later send that is cancelled.
        pair.a.send(2, &[buffer.sge(0, 64)?], 0)?;
        pair.a.send(3, &[], 0)?;
        pair.b.receive(2, &[])?;
        kunit_assert_eq!(number(pair.a.requests.next()?.status), ND_REMOTE_ERROR);
        kunit_assert_eq!(number(pair.a.requests.next()?.status), ND_CANCELED);
        let pair = Pair::new()?;
        let buffer = pair.a.buffer(4096, 0)?;
        let stray = buffer.sge_by(Token::from_raw(0), 0, 8);
        pair.a.send(4, &[stray], 0)?;
        kunit_assert_eq!(number(pair.a.requests.next()?.status), ND_ACCESS_VIOLATION);
        let pair = hasty()?;
        pair.a.send(5, &[], 0)?;
        kunit_assert_eq!(number(pair.a.requests.next()?.status), ND_IO_TIMEOUT);
        Ok(())
    }

    #[test]
    fn ndk_spi_02_each_meaning_has_its_code() -> Result {
        kunit_assert_eq!(ends(Status::LocalLength)?, ND_DATA_OVERRUN);
        kunit_assert_eq!(ends(Status::LocalOperation)?, ND_INVALID_DEVICE_REQUEST);
        kunit_assert_eq!(ends(Status::Fatal)?, ND_INTERNAL_ERROR);
        kunit_assert_eq!(ends(Status::Timeout)?, ND_IO_TIMEOUT);
        kunit_assert_eq!(ends(Status::ReceiverNotReady)?, ND_IO_TIMEOUT);
        Ok(())
    }

    #[test]
    fn ndk_spi_03_a_send_that_times_out_fails_and_not_with_a_status_of_success() -> Result {
        let pair = hasty()?;
        // Silent: a success would bring no result.
        pair.a.send(1, &[], SILENT_SUCCESS)?;
        let got = pair.a.requests.next()?;
        kunit_assert_eq!(got.request_context, 1);
        assert!(got.status.raw() < 0);
        kunit_assert_eq!(number(got.status), ND_IO_TIMEOUT);
        assert!(number(got.status) != ND_TIMEOUT_RAW);
        Ok(())
    }

    #[test]
    fn ndk_spi_04_no_elements_are_an_empty_message_and_an_empty_receive() -> Result {
        let pair = Pair::new()?;
        let mut to = pair.b.buffer(4096, 1)?;
        to.fill(3);
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[to.sge(0, 4096)?])?;
        for context in cases(3..5) {
            pair.a.send(context, &[], 0)?;
            assert!(pair.a.requests.next_is(context, NtStatus::SUCCESS));
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.request_context, context - 2);
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.bytes, 0);
        }
        assert!(to.has(3, 0, 4096));
        Ok(())
    }

    #[test]
    fn ndk_spi_05_the_flags_of_version_1_mean_the_same_and_no_other_is_taken() -> Result {
        let mut manual = ManualPair::new()?;
        let request_set = RequestSet::new(&manual.pair)?;
        let a = &manual.pair.a;
        // 2: waits for reads. 1: silent, but for failure.
        kunit_assert_eq!(request_set.post(a, Kind::Read, 1, 0x1)?, Ok(()));
        kunit_assert_eq!(request_set.post(a, Kind::Send, 2, 0x1 | 0x2 | 0x4)?, Ok(()));
        // The inline flag of version 2 has another value here: a layer translates it.
        kunit_assert_eq!(
            request_set.post(a, Kind::Send, 3, 0x20)?,
            Err(NtStatus::INVALID_PARAMETER)
        );
        let read = manual.start().ok_or(EINVAL)?;
        assert!(manual.start().is_none());
        manual.finish(read, Status::Success);
        let send = manual.start().ok_or(EINVAL)?;
        assert!(manual.pair.a.requests.stays_empty());
        manual.finish(send, Status::RemoteOperation);
        let got = manual.pair.a.requests.next()?;
        kunit_assert_eq!(got.request_context, 2);
        kunit_assert_eq!(number(got.status), ND_REMOTE_ERROR);
        assert!(manual.pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_spi_06_solicited_sends_satisfy_a_notify_for_solicited_events() -> Result {
        let pair = Pair::new()?;
        let queue = &pair.b.receives;
        for context in cases(0..5) {
            pair.b.receive(context, &[])?;
        }
        queue.cq.arm(notify::SOLICITED);
        // A group: the flag on the last message, and one call for all.
        pair.a.send(1, &[], 0)?;
        pair.a.send(2, &[], 0)?;
        assert!(queue.has_called(0));
        pair.a.send(3, &[], SEND_AND_SOLICIT_EVENT)?;
        assert!(queue.has_called(1));
        kunit_assert_eq!(queue.status.load(kernel::sync::atomic::Relaxed), 0);
        for context in cases(0..3) {
            assert!(queue.next_is(context, NtStatus::SUCCESS));
        }
        // Without an arm the flag has no effect.
        pair.a.send(4, &[], SEND_AND_SOLICIT_EVENT)?;
        assert!(queue.next_is(3, NtStatus::SUCCESS));
        assert!(queue.has_called(1));
        Ok(())
    }

    #[test]
    fn ndk_spi_07_errors_satisfy_the_arm_that_a_layer_asks_for() -> Result {
        // Here an arm for errors is for errors of the queue only, so a layer that is asked for
        // errors arms for solicited events, which every failed request satisfies.
        for (kind, calls) in cases([
            (notify::ANY, 1),
            (notify::SOLICITED, 1),
            (notify::ERRORS, 0),
        ]) {
            let pair = Pair::new()?;
            pair.b.receive(1, &[])?;
            pair.a.requests.cq.arm(kind);
            pair.b.receives.cq.arm(kind);
            let buffer = pair.a.buffer(4096, 0)?;
            pair.a.send(2, &[buffer.sge(0, 64)?], 0)?;
            assert!(pair.a.requests.next()?.status != NtStatus::SUCCESS);
            kunit_assert_eq!(pair.b.receives.next()?.status, NtStatus::BUFFER_OVERFLOW);
            assert!(pair.a.requests.has_called(calls));
            assert!(pair.b.receives.has_called(calls));
        }
        Ok(())
    }

    #[test]
    fn ndk_spi_08_success_is_accepted_and_not_connected_is_refused() -> Result {
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let refused = pair.a.qp.send(1, [].into_iter(), 0);
        kunit_assert_eq!(refusal(refused), ND_CONNECTION_INVALID);
        pair.connect(
            crate::ndk::tests::pair::READS,
            crate::ndk::tests::pair::READS,
        )?;
        kunit_assert_eq!(pair.a.qp.send(2, [].into_iter(), 0), Ok(()));
        // The status follows, through the initiator queue.
        assert!(pair.a.requests.stays_empty());
        pair.b.receive(3, &[])?;
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        assert!(pair.a.receives.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_spi_09_too_much_data_for_the_device_is_a_buffer_overflow_at_once() -> Result {
        let pair = Pair::new()?;
        let long = [of_length(Limits::FULL.transfer), of_length(1)];
        let refused = pair.a.qp.send(1, long.into_iter(), 0);
        kunit_assert_eq!(refusal(refused), ND_BUFFER_OVERFLOW);
        assert!(pair.a.requests.stays_empty());
        // In a completion this status means that a receive was too small.
        let buffer = pair.a.buffer(4096, 0)?;
        pair.b.receive(2, &[])?;
        pair.a.send(3, &[buffer.sge(0, 1)?], 0)?;
        let got = pair.b.receives.next()?;
        kunit_assert_eq!(got.request_context, 2);
        kunit_assert_eq!(number(got.status), ND_BUFFER_OVERFLOW);
        Ok(())
    }

    #[test]
    fn ndk_spi_10_more_requests_than_entries_are_refused() -> Result {
        let pair = Pair::with(&HostAttr::PLAIN, deep(2), SIZES)?;
        pair.a.send(1, &[], 0)?;
        pair.a.send(2, &[], SILENT_SUCCESS)?;
        let refused = pair.a.qp.send(3, [].into_iter(), 0);
        kunit_assert_eq!(refusal(refused), ND_NO_MORE_ENTRIES);
        Ok(())
    }

    #[test]
    fn ndk_spi_11_more_elements_than_asked_for_are_a_data_overrun_at_once() -> Result {
        let pair = Pair::new()?;
        let buffer = pair.a.buffer(4096, 0)?;
        // CAST: widening.
        let most = SIZES.send_sge as usize;
        let list = crate::ndk::tests::requests::list(&buffer, most + 1)?;
        let refused = pair.a.qp.send(1, list.iter().copied(), 0);
        kunit_assert_eq!(refusal(refused), ND_DATA_OVERRUN);
        assert!(pair.a.requests.stays_empty());
        // In a completion the same code means that the request was too long.
        kunit_assert_eq!(ends(Status::LocalLength)?, ND_DATA_OVERRUN);
        Ok(())
    }

    #[test]
    fn ndk_spi_12_refusals_have_codes_that_are_well_known() -> Result {
        let pair = Pair::with(&HostAttr::PLAIN, deep(1), SIZES)?;
        let qp = &pair.a.qp;
        pair.a.send(1, &[], 0)?;
        let posts = [
            (
                qp.send(2, [of_length(1); 5].into_iter(), 0),
                ND_DATA_OVERRUN,
            ),
            (
                qp.send(2, [of_length(u32::MAX)].into_iter(), 0),
                ND_BUFFER_OVERFLOW,
            ),
            (qp.send(2, [].into_iter(), 0), ND_NO_MORE_ENTRIES),
        ];
        for (posted, code) in cases(posts) {
            kunit_assert_eq!(refusal(posted), code);
        }
        // Every other refusal is an error, too, and has no code of success.
        let flag = qp.send(2, [].into_iter(), 0x20);
        assert!(flag.is_err_and(|status| status.raw() < 0));
        Ok(())
    }

    #[test]
    fn ndk_spi_13_after_a_failed_call_existing_and_later_requests_are_served() -> Result {
        let pair = Pair::with(&HostAttr::PLAIN, deep(2), SIZES)?;
        pair.a.send(1, &[], 0)?;
        pair.a.send(2, &[], 0)?;
        for _ in 0..3 {
            let refused = pair.a.qp.send(3, [].into_iter(), 0);
            kunit_assert_eq!(refusal(refused), ND_NO_MORE_ENTRIES);
        }
        for context in cases(11..14) {
            pair.b.receive(context, &[])?;
        }
        assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
        assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
        pair.a.send(4, &[], 0)?;
        assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
        assert!(pair.a.requests.stays_empty());
        Ok(())
    }

    #[test]
    fn ndk_spi_14_a_result_with_an_error_ends_the_connection_on_both_sides() -> Result {
        let pair = Pair::new()?;
        let buffer = pair.a.buffer(4096, 0)?;
        pair.b.receive(1, &[])?;
        pair.b.receive(2, &[])?;
        pair.a.receive(3, &[])?;
        pair.a.send(4, &[buffer.sge(0, 8)?], 0)?;
        assert!(pair.a.requests.next()?.status != NtStatus::SUCCESS);
        // The receive that failed, and the receives that no message can use any more.
        assert!(pair.b.receives.next_is(1, NtStatus::BUFFER_OVERFLOW));
        assert!(pair.b.receives.next_is(2, NtStatus::CANCELLED));
        assert!(pair.a.receives.next_is(3, NtStatus::CANCELLED));
        for test_side in [&pair.a, &pair.b] {
            let refused = test_side.qp.send(5, [].into_iter(), 0);
            kunit_assert_eq!(refusal(refused), ND_CONNECTION_INVALID);
        }
        Ok(())
    }

    #[test]
    fn ndk_spi_15_a_receive_reports_how_many_bytes_came_and_not_how_many_fit() -> Result {
        let pair = Pair::new()?;
        let request_set = RequestSet::new(&pair)?;
        for len in cases([0, 1, 100, 4096]) {
            pair.b.receive(1, &[request_set.there.sge(0, 4096)?])?;
            pair.a.send(2, &[request_set.here.sge(0, len)?], 0)?;
            assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
            let got = pair.b.receives.next()?;
            kunit_assert_eq!(got.status, NtStatus::SUCCESS);
            kunit_assert_eq!(got.bytes, len);
        }
        // Of other requests a layer knows the posted length: a request that succeeds has moved all
        // of its bytes.
        let there = request_set.there.remote(0)?;
        let list = [
            request_set.here.sge(0, 100)?,
            request_set.here.sge(200, 50)?,
        ]
        .into_iter();
        let written = pair
            .test_host
            .counted(crate::engine::counters::Counter::BytesOut);
        kunit_assert_eq!(pair.a.qp.write(3, list, there, 0), Ok(()));
        assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
        let now = pair
            .test_host
            .counted(crate::engine::counters::Counter::BytesOut);
        kunit_assert_eq!(now, written + 150);
        Ok(())
    }
}
