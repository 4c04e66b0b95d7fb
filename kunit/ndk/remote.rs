// SPDX-License-Identifier: GPL-2.0

//! Memory that is open to a peer, further connections, and the ends of connections.

use kernel::prelude::*;

use super::{
    completion::{
        log_status,
        made,
        AutoClose, //
    },
    host::{
        qp,
        SIZES, //
    },
    memory::PageBuffer,
    pair::{
        connect,
        Pair,
        TestSide,
        READS, //
    }, //
};
use crate::{
    kunit::harness::wait_until,
    ndk::{
        abi::numbers::op_flags::{
            ALLOW_REMOTE_READ,
            ALLOW_REMOTE_WRITE,
            SILENT_SUCCESS, //
        },
        memory::Mw,
        status::NtStatus, //
    },
    rdma::values::work::RemoteAddr,
    sys::sge::Sge, //
};

/// The status of a refusal by the peer.
pub(super) const REMOTE_RESOURCES: NtStatus =
    NtStatus::of(crate::rdma::values::status::Status::RemoteAccess);

/// An empty list.
pub(super) const NOTHING: [Sge; 0] = [];

/// All combinations of some flags.
pub(super) fn combinations(of: &[u32]) -> impl Iterator<Item = u32> + '_ {
    (0..1u32 << of.len()).map(move |n| {
        let set = of.iter().enumerate().filter(move |(i, _)| n >> i & 1 != 0);
        set.fold(0, |all, (_, flag)| all | flag)
    })
}

/// Registers `buffer` for the peers of `test_side`, by a request of its queue pair.
pub(super) fn open(test_side: &TestSide, buffer: &PageBuffer) -> Result {
    let rights = ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE;
    let posted = buffer.fast_register(&test_side.qp, 0xF0, rights)?;
    posted.map_err(log_status)?;
    match test_side.requests.next_is(0xF0, NtStatus::SUCCESS) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// Bytes of `test_side` that its peers may read and write.
pub(super) fn opened(test_side: &TestSide, len: usize) -> Result<PageBuffer> {
    let buffer = PageBuffer::fast(&test_side.pd, len, true)?;
    open(test_side, &buffer)?;
    Ok(buffer)
}

/// Binds `window` to all of `buffer`, for the peer of `test_side`; waits until it is bound.
pub(super) fn bind(test_side: &TestSide, buffer: &PageBuffer, window: &AutoClose<Mw>) -> Result {
    let rights = ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE;
    // CAST: widening.
    let range = (buffer.addr(), buffer.bytes.len() as u64);
    let posted = test_side.qp.bind(0xF1, buffer.mr()?, window, range, rights);
    posted.map_err(log_status)?;
    match test_side.requests.next_is(0xF1, NtStatus::SUCCESS) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// A window of the domain of `test_side`.
pub(super) fn window(test_side: &TestSide) -> Result<AutoClose<Mw>> {
    made(|done| test_side.pd.create_mw(done))
}

/// The first byte of `buffer` under the token of `window`.
pub(super) fn remote_through_window(window: &AutoClose<Mw>, buffer: &PageBuffer) -> RemoteAddr {
    RemoteAddr {
        addr: buffer.addr(),
        token: window.remote_token(),
    }
}

/// Writes one byte from `test_side`; returns the status.
pub(super) fn write_one(test_side: &TestSide, to: RemoteAddr) -> Result<NtStatus> {
    let source = test_side.buffer(1, 0)?;
    let sges = [source.sge(0, 1)?];
    let posted = test_side.qp.write(0xF2, sges.into_iter(), to, 0);
    posted.map_err(log_status)?;
    let result = test_side.requests.next()?;
    match result.request_context {
        0xF2 => Ok(result.status),
        _ => Err(EIO),
    }
}

/// Returns true if `test_side` can write one byte to `to`.
pub(super) fn can_write(test_side: &TestSide, to: RemoteAddr) -> bool {
    let status = write_one(test_side, to);
    if status != Ok(NtStatus::SUCCESS) {
        kunit_note!("write ended with {:?}", status);
    }
    status == Ok(NtStatus::SUCCESS)
}

/// Another connection, whose passive side is in the domain of `pair.b`. The contexts of the queue
/// pairs are 0xC and 0xD.
pub(super) fn beside(pair: &Pair) -> Result<(TestSide, TestSide)> {
    let adapter = &pair.test_host.adapter;
    let mut a = TestSide::new(adapter, 0xC, SIZES)?;
    let mut b = TestSide::new(adapter, 0xD, SIZES)?;
    b.qp = qp(&pair.b.pd, &b.receives, &b.requests, 0xD, SIZES)?;
    let (ours, theirs) = connect(adapter, &pair.open_listener, (&a, READS), (&b, READS))?;
    a.connector = Some(ours);
    b.connector = Some(theirs);
    Ok((a, b))
}

/// Waits for the end of the connection of `test_side`, as its posts show it; false after a timeout.
pub(super) fn has_ended(test_side: &TestSide) -> bool {
    wait_until(|| refusal(test_side) == Err(NtStatus::CONNECTION_INVALID))
}

/// Returns true if `test_side` is still connected.
pub(super) fn is_up(test_side: &TestSide) -> bool {
    refusal(test_side) == Err(NtStatus::INVALID_PARAMETER)
}

/// The refusal of an invalid request: a post checks the state of the queue pair first (POST-14).
fn refusal(test_side: &TestSide) -> Result<(), NtStatus> {
    let flags = SILENT_SUCCESS | ALLOW_REMOTE_READ;
    test_side.qp.send(0, NOTHING.into_iter(), flags)
}
