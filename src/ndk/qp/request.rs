// SPDX-License-Identifier: GPL-2.0

//! What goes into a queue pair: its sizes, the flags of requests, registrations.

use super::super::{
    adapter::Limits,
    life::Ref,
    memory::{
        Mr,
        Mw, //
    },
    status::NtStatus, //
};
use crate::{
    engine::{
        memory::{
            rights::Rights,
            token::Token, //
        },
        work::{
            Flags,
            Remote,
            Sge, //
        }, //
    },
    sys::{
        mdl::{
            Pages,
            PAGE_SIZE, //
        },
        span, //
    }, //
};

/// Flags of requests.
pub(crate) mod op_flags {
    pub(crate) const SILENT_SUCCESS: u32 = 0x001;
    pub(crate) const READ_FENCE: u32 = 0x002;
    pub(crate) const SEND_AND_SOLICIT_EVENT: u32 = 0x004;
    pub(crate) const ALLOW_REMOTE_READ: u32 = 0x008;
    pub(crate) const ALLOW_LOCAL_WRITE: u32 = 0x010;
    /// With local write, which it needs; the deciding bit is 0x20.
    pub(crate) const ALLOW_REMOTE_WRITE: u32 = 0x030;
    pub(crate) const INLINE: u32 = 0x040;
    pub(crate) const RDMA_READ_SINK: u32 = 0x080;
    pub(crate) const RDMA_READ_LOCAL_INVALIDATE: u32 = 0x100;
    pub(crate) const DEFER: u32 = 0x200;
}

use op_flags::*;

/// An initiator request.
pub(crate) enum Request<'a> {
    /// `Send` (SEND-01 to SEND-13).
    Send,
    /// `SendAndInvalidate` (SINV-01 to SINV-13), with a token of the peer's.
    SendAndInvalidate(Token),
    /// `Write` (WRIT-01 to WRIT-04).
    Write(Remote),
    /// `Read` (READ-01 to READ-08).
    Read(Remote),
    /// `FastRegister` (FREG-01 to FREG-12).
    Register(&'a Mr, &'a Registration<'a>),
    /// `Bind` (BIND-01 to BIND-08) of a window to a part of a region, by address and length.
    Bind(&'a Ref<Mr>, &'a Mw, (u64, u64)),
    /// `Invalidate` of a fast registration (INV-01 to INV-07).
    InvalidateMr(&'a Mr),
    /// `Invalidate` of a window.
    InvalidateMw(&'a Mw),
    /// What names no object, or no list: refused with `INVALID_PARAMETER` where it would be posted.
    Invalid,
}

impl Request<'_> {
    /// The flags that it may have.
    pub(super) const fn flags(&self) -> u32 {
        let of_its_own = match self {
            Self::Send | Self::SendAndInvalidate(_) => SEND_AND_SOLICIT_EVENT | INLINE,
            Self::Write(_) => INLINE,
            Self::Read(_) => RDMA_READ_LOCAL_INVALIDATE,
            Self::Register(..) => ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE | RDMA_READ_SINK,
            Self::Bind(..) => ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE,
            Self::InvalidateMr(_) | Self::InvalidateMw(_) | Self::Invalid => 0,
        };
        of_its_own | SILENT_SUCCESS | READ_FENCE | DEFER
    }
}

/// What a queue pair is made with.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) receives: u32,
    pub(crate) requests: u32,
    pub(crate) receive_sges: u32,
    pub(crate) request_sges: u32,
    pub(crate) inline: u32,
}

impl Sizes {
    /// The same where receives come from a shared queue, whose sizes count for them.
    pub(in crate::ndk) const fn without_receives(self) -> Self {
        Self {
            receives: 0,
            receive_sges: 0,
            ..self
        }
    }

    pub(in crate::ndk) fn check(&self, limits: &Limits) -> Result<(), NtStatus> {
        let fits = self.receives <= limits.requests
            && self.requests <= limits.requests
            && self.receive_sges <= limits.sges
            && self.request_sges <= limits.sges
            && self.inline <= limits.inline;
        match fits {
            true => Ok(()),
            false => Err(NtStatus::INVALID_PARAMETER),
        }
    }
}

/// The pages and the place of a fast registration.
pub(crate) struct Registration<'a> {
    pub(crate) pages: Pages<'a>,
    /// Where the region begins in the first page.
    pub(crate) offset: u32,
    pub(crate) len: u64,
    pub(crate) base: u64,
}

impl Registration<'_> {
    /// The number of pages, if place and length fit them (FREG-02 to FREG-05).
    pub(in crate::ndk) fn check(&self) -> Result<u32, NtStatus> {
        let offset = u64::from(self.offset);
        let pages = u32::try_from(self.pages.count()).map_err(|_| NtStatus::INVALID_PARAMETER)?;
        // OVERFLOW: 2^32 pages of 64 KiB have 2^48 bytes.
        let room = (u64::from(pages) * PAGE_SIZE).checked_sub(offset);
        let fits = offset < PAGE_SIZE
            && self.base % PAGE_SIZE == offset
            && room.is_some_and(|room| self.len <= room)
            && self.base.checked_add(self.len).is_some();
        match fits && pages > 0 {
            true => Ok(pages),
            false => Err(NtStatus::INVALID_PARAMETER),
        }
    }
}

/// The rights that a registration or a bind gives. Remote write takes both of its bits (FREG-07).
pub(super) fn rights(flags: u32) -> Result<Rights, NtStatus> {
    let deciding = ALLOW_REMOTE_WRITE & !ALLOW_LOCAL_WRITE;
    let set = [
        (ALLOW_REMOTE_READ, Rights::REMOTE_READ),
        (ALLOW_LOCAL_WRITE, Rights::LOCAL_WRITE),
        (deciding, Rights::REMOTE_WRITE),
    ];
    let set = set.into_iter().filter(|(flag, _)| flags & flag != 0);
    let rights = set.fold(Rights::NONE, |all, (_, right)| all.with(right));
    match rights.is_consistent() {
        true => Ok(rights),
        false => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// An element whose logical address is none gets a token that grants nothing, so that the request
/// fails in its turn (POST-09). Inline data has no token (SEND-09).
pub(in crate::ndk) fn checked(sge: Sge, flags: Flags) -> Sge {
    let is_privileged = sge.token() == Token::LOCAL_MEMORY && !flags.has(Flags::INLINE);
    if is_privileged && !span::is_memory(sge.addr(), sge.len()) {
        return sge.without_key();
    }
    sge
}
