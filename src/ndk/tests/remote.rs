// SPDX-License-Identifier: GPL-2.0

//! Memory that is open to a peer, connections beside each other, and their ends.

use kernel::prelude::*;

use super::{
    completion::{
        log_status,
        made,
        Own, //
    },
    host::{
        qp,
        SIZES, //
    },
    memory::PageBuffer,
    pair::{
        connect,
        Pair,
        Party,
        READS, //
    }, //
};
use crate::{
    engine::work::{
        Remote,
        Sge, //
    },
    kunit::harness::wait_until,
    ndk::{
        memory::Mw,
        qp::op_flags::{
            ALLOW_REMOTE_READ,
            ALLOW_REMOTE_WRITE,
            SILENT_SUCCESS, //
        },
        status::NtStatus, //
    }, //
};

/// What the peer's refusal is called.
pub(super) const REMOTE_RESOURCES: NtStatus =
    NtStatus::of(crate::engine::status::Status::RemoteAccess);

/// A request without bytes.
pub(super) const NOTHING: [Sge; 0] = [];

/// All combinations of some flags.
pub(super) fn combinations(of: &[u32]) -> impl Iterator<Item = u32> + '_ {
    (0..1u32 << of.len()).map(move |n| {
        let set = of.iter().enumerate().filter(move |(i, _)| n >> i & 1 != 0);
        set.fold(0, |all, (_, flag)| all | flag)
    })
}

/// Registers `buffer` for the peers of `party`, by a request of its queue pair.
pub(super) fn open(party: &Party, buffer: &PageBuffer) -> Result {
    let rights = ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE;
    let posted = buffer.fast_register(&party.qp, 0xF0, rights)?;
    posted.map_err(log_status)?;
    match party.requests.brings(0xF0, NtStatus::SUCCESS) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// Bytes of `party` that its peers may read and write.
pub(super) fn opened(party: &Party, len: usize) -> Result<PageBuffer> {
    let buffer = PageBuffer::fast(&party.pd, len, true)?;
    open(party, &buffer)?;
    Ok(buffer)
}

/// Binds `window` to all of `buffer`, for the peer of `party`; waits until it is bound.
pub(super) fn bind(party: &Party, buffer: &PageBuffer, window: &Own<Mw>) -> Result {
    let rights = ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE;
    // CAST: widening.
    let range = (buffer.addr(), buffer.bytes.len() as u64);
    let posted = party.qp.bind(0xF1, buffer.mr()?, window, range, rights);
    posted.map_err(log_status)?;
    match party.requests.brings(0xF1, NtStatus::SUCCESS) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// A window of the domain of `party`.
pub(super) fn window(party: &Party) -> Result<Own<Mw>> {
    made(|done| party.pd.create_mw(done))
}

/// The first byte of `buffer` under the token of `window`.
pub(super) fn through(window: &Own<Mw>, buffer: &PageBuffer) -> Remote {
    Remote {
        addr: buffer.addr(),
        token: window.remote_token(),
    }
}

/// How a write of one byte by `party` ends.
pub(super) fn write_one(party: &Party, to: Remote) -> Result<NtStatus> {
    let source = party.buffer(1, 0)?;
    let sges = [source.sge(0, 1)?];
    let posted = party.qp.write(0xF2, sges.into_iter(), to, 0);
    posted.map_err(log_status)?;
    let result = party.requests.next()?;
    match result.request_context {
        0xF2 => Ok(result.status),
        _ => Err(EIO),
    }
}

/// Returns true if `party` can write one byte there.
pub(super) fn can_write(party: &Party, to: Remote) -> bool {
    let status = write_one(party, to);
    if status != Ok(NtStatus::SUCCESS) {
        pr_err!("write ended with {:?}\n", status);
    }
    status == Ok(NtStatus::SUCCESS)
}

/// Another connection, whose passive side is in the domain of `pair.b`. The contexts of the queue
/// pairs are 0xC and 0xD.
pub(super) fn beside(pair: &Pair) -> Result<(Party, Party)> {
    let adapter = &pair.test_host.adapter;
    let mut a = Party::new(adapter, 0xC, SIZES)?;
    let mut b = Party::new(adapter, 0xD, SIZES)?;
    b.qp = qp(&pair.b.pd, &b.receives, &b.requests, 0xD, SIZES)?;
    let (ours, theirs) = connect(adapter, &pair.door, (&a, READS), (&b, READS))?;
    a.connector = Some(ours);
    b.connector = Some(theirs);
    Ok((a, b))
}

/// Returns true if the connection of `party` has ended, as its posts see it; waits for it.
pub(super) fn has_ended(party: &Party) -> bool {
    wait_until(|| refusal(party) == Err(NtStatus::CONNECTION_INVALID))
}

/// Returns true if `party` is connected still.
pub(super) fn is_up(party: &Party) -> bool {
    refusal(party) == Err(NtStatus::INVALID_PARAMETER)
}

/// What becomes of a request that is wrong in itself: the state is looked at first (POST-14).
fn refusal(party: &Party) -> Result<(), NtStatus> {
    let flags = SILENT_SUCCESS | ALLOW_REMOTE_READ;
    party.qp.send(0, NOTHING.into_iter(), flags)
}
