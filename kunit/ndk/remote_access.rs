// SPDX-License-Identifier: GPL-2.0

//! [`RemotePeer`]: a peer's access by a token; initiator queues that are held; registrations.

use kernel::prelude::*;

use super::{
    completion::{
        log_status,
        made,
        AutoClose, //
    },
    memory::PageBuffer,
    pair::{
        Pair,
        TestSide, //
    }, //
};
use crate::{
    kunit::harness::wait_until,
    ndk::{
        memory::{
            FastRegistration,
            Mr,
            Mw, //
        },
        status::NtStatus, //
    },
    rdma::values::{
        status::Status,
        token::Token,
        work::RemoteAddr, //
    },
    sys::mdl::test_pages, //
};

/// Values of flags of requests, as the requirements write them.
pub(super) const SILENT: u32 = 0x1;
pub(super) const FENCE: u32 = 0x2;
pub(super) const REMOTE_READ: u32 = 0x8;
pub(super) const LOCAL_WRITE: u32 = 0x10;
pub(super) const REMOTE_WRITE: u32 = 0x30;
pub(super) const INLINE: u32 = 0x40;
pub(super) const SINK: u32 = 0x80;
pub(super) const LOCAL_INVALIDATE: u32 = 0x100;
pub(super) const DEFER: u32 = 0x200;

/// The peer refused a token, its rights or its range.
pub(super) const REMOTE_RESOURCES: NtStatus = NtStatus::of(Status::RemoteAccess);

/// A base without memory: only an offset from this base names a byte of a region.
pub(super) const BASE: u64 = 0x4_0000_0000;

/// The context of the requests of a [`RemotePeer`].
const CONTEXT: u64 = 0x5EAC;

/// The context of sends and receives that hold a queue.
const HOLD: u64 = 0x401D;

/// A peer with a buffer: the source of its writes and the sink of its reads.
pub(super) struct RemotePeer<'p> {
    test_side: &'p TestSide,
    pub(super) own: PageBuffer,
}

impl<'p> RemotePeer<'p> {
    /// With room for `len` bytes. May sleep.
    pub(super) fn new(test_side: &'p TestSide, len: usize) -> Result<Self> {
        let own = test_side.buffer(len, 1)?;
        Ok(Self { test_side, own })
    }

    /// Reads `len` bytes under a token; returns the status.
    pub(super) fn read(&self, addr: u64, token: Token, len: u32) -> Result<NtStatus> {
        let list = [self.own.sge(0, len)?];
        let from = RemoteAddr { addr, token };
        let posted = self.test_side.qp.read(CONTEXT, list.into_iter(), from, 0);
        posted.map_err(log_status)?;
        self.end()
    }

    /// Writes the first `len` bytes under a token; returns the status.
    pub(super) fn write(&self, addr: u64, token: Token, len: u32) -> Result<NtStatus> {
        let list = [self.own.sge(0, len)?];
        let to = RemoteAddr { addr, token };
        let posted = self.test_side.qp.write(CONTEXT, list.into_iter(), to, 0);
        posted.map_err(log_status)?;
        self.end()
    }

    fn end(&self) -> Result<NtStatus> {
        let result = self.test_side.requests.next()?;
        if result.request_context != CONTEXT {
            kunit_note!("another request ended: {:?}", result);
            return Err(EINVAL);
        }
        Ok(result.status)
    }
}

/// Holds the initiator queue of `test_side`: no later request is carried out before [`release`].
pub(super) fn hold(test_side: &TestSide) -> Result {
    test_side.send(HOLD, &[], SILENT)
}

/// Posts the receive that a held queue waits for, and waits for the arrival of the held send.
pub(super) fn release(peer: &TestSide) -> Result {
    peer.receive(HOLD, &[])?;
    match peer.receives.next_is(HOLD, NtStatus::SUCCESS) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// Returns true if a side takes requests. The probe itself is refused in any case.
pub(super) fn takes_requests(test_side: &TestSide) -> bool {
    test_side.qp.invalidate_other(0, 0) == Err(NtStatus::INVALID_PARAMETER)
}

/// Waits for the end of the connection on both sides; false after a timeout.
pub(super) fn is_over(pair: &Pair) -> bool {
    let gone = |test_side: &TestSide| {
        test_side.qp.invalidate_other(0, 0) == Err(NtStatus::CONNECTION_INVALID)
    };
    wait_until(|| gone(&pair.a) && gone(&pair.b))
}

/// The parameters of a fast registration.
#[derive(Clone, Copy)]
pub(super) struct RegRequest<'a> {
    pub(super) pages: &'a [u64],
    pub(super) offset: u32,
    pub(super) base: u64,
    pub(super) len: u64,
}

impl RegRequest<'_> {
    /// Posts the registration.
    pub(super) fn register(
        &self,
        test_side: &TestSide,
        mr: &Mr,
        context: u64,
        flags: u32,
    ) -> Result<(), NtStatus> {
        let what = FastRegistration {
            pages: test_pages(self.pages),
            offset: self.offset,
            len: self.len,
            base: self.base,
        };
        test_side.qp.fast_register(context, mr, &what, flags)
    }
}

/// Registers a whole buffer, at its own addresses, and waits for the result.
pub(super) fn registered(test_side: &TestSide, buffer: &PageBuffer, flags: u32) -> Result<Token> {
    buffer
        .fast_register(&test_side.qp, CONTEXT, flags)?
        .map_err(log_status)?;
    match test_side.requests.next_is(CONTEXT, NtStatus::SUCCESS) {
        true => Ok(buffer.mr()?.remote_token()),
        false => Err(EIO),
    }
}

/// Invalidates a region, and waits for the result.
pub(super) fn invalidated(test_side: &TestSide, mr: &Mr) -> Result {
    test_side
        .qp
        .invalidate_mr(CONTEXT, mr, 0)
        .map_err(log_status)?;
    match test_side.requests.next_is(CONTEXT, NtStatus::SUCCESS) {
        true => Ok(()),
        false => Err(EIO),
    }
}

/// A window of a side.
pub(super) fn window(test_side: &TestSide) -> Result<AutoClose<Mw>> {
    made(|done| test_side.pd.create_mw(done))
}

/// Binds a window to a range, and waits for the result.
pub(super) fn bound(
    test_side: &TestSide,
    buffer: &PageBuffer,
    window: &Mw,
    (at, len): (u64, u64),
    flags: u32,
) -> Result<Token> {
    let range = (at, len);
    let posted = test_side
        .qp
        .bind(CONTEXT, buffer.mr()?, window, range, flags);
    posted.map_err(log_status)?;
    match test_side.requests.next_is(CONTEXT, NtStatus::SUCCESS) {
        true => Ok(window.remote_token()),
        false => Err(EIO),
    }
}
