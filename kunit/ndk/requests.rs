// SPDX-License-Identifier: GPL-2.0

//! [`RequestSet`]: the memory that an initiator request of each kind needs.

use kernel::prelude::*;

use super::{
    completion::{
        made,
        AutoClose, //
    },
    host::SIZES,
    memory::PageBuffer,
    pair::{
        Pair,
        TestSide, //
    }, //
};
use crate::{
    ndk::{
        abi::numbers::operation,
        memory::Mw,
        status::NtStatus, //
    },
    rdma::values::{
        qp::QpCaps,
        token::Token,
        wc::WcOpcode, //
    },
    sys::sge::Sge, //
};

/// The functions that post to the initiator queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Register,
    Send,
    SendAndInvalidate,
    Write,
    Read,
    Bind,
    Invalidate,
}

impl Kind {
    /// All kinds, in an order in which each of them can succeed.
    pub(super) const ALL: [Self; 7] = [
        Self::Register,
        Self::Send,
        Self::SendAndInvalidate,
        Self::Write,
        Self::Read,
        Self::Bind,
        Self::Invalidate,
    ];

    /// The type of a result of this kind.
    pub(super) const fn operation(self) -> u32 {
        match self {
            Self::Register => operation::FAST_REGISTER,
            Self::Send | Self::SendAndInvalidate => operation::SEND,
            Self::Write => operation::WRITE,
            Self::Read => operation::READ,
            Self::Bind => operation::BIND,
            Self::Invalidate => operation::INVALIDATE,
        }
    }

    /// The engine's opcode of this kind.
    pub(super) const fn work(self) -> WcOpcode {
        match self {
            Self::Register => WcOpcode::RegMr,
            Self::Send | Self::SendAndInvalidate => WcOpcode::Send,
            Self::Write => WcOpcode::Write,
            Self::Read => WcOpcode::Read,
            Self::Bind => WcOpcode::BindMw,
            Self::Invalidate => WcOpcode::LocalInv,
        }
    }

    /// The flags on the page of the function in NDKPI, as numbers.
    pub(super) const fn flags(self) -> u32 {
        match self {
            Self::Send | Self::SendAndInvalidate => 0x001 | 0x002 | 0x004 | 0x040 | 0x200,
            Self::Write => 0x001 | 0x002 | 0x040 | 0x200,
            Self::Read => 0x001 | 0x002 | 0x100 | 0x200,
            Self::Register => 0x001 | 0x002 | 0x008 | 0x010 | 0x030 | 0x080 | 0x200,
            Self::Bind => 0x001 | 0x002 | 0x008 | 0x030 | 0x200,
            Self::Invalidate => 0x001 | 0x002 | 0x200,
        }
    }
}

/// The memory that requests of side `a` name.
pub(super) struct RequestSet {
    /// Regions for fast registration, one of each side.
    pub(super) fast: PageBuffer,
    pub(super) theirs: PageBuffer,
    /// Regions registered with all rights, one of each side.
    pub(super) here: PageBuffer,
    pub(super) there: PageBuffer,
    pub(super) window: AutoClose<Mw>,
}

impl RequestSet {
    /// May sleep.
    pub(super) fn new(pair: &Pair) -> Result<Self> {
        Ok(Self {
            fast: PageBuffer::fast(&pair.a.pd, 4096, true)?,
            theirs: PageBuffer::fast(&pair.b.pd, 4096, true)?,
            here: pair.a.buffer(4096, 7)?,
            there: pair.b.buffer(4096, 7)?,
            window: made(|done| pair.a.pd.create_mw(done))?,
        })
    }

    /// Posts a request of that kind from `a`, valid unless `flags` are not.
    pub(super) fn post(
        &self,
        a: &TestSide,
        kind: Kind,
        context: u64,
        flags: u32,
    ) -> Result<Result<(), NtStatus>> {
        let (list, qp) = ([self.here.sge(0, 64)?], &a.qp);
        let list = list.iter().copied();
        let there = self.there.remote(0)?;
        Ok(match kind {
            Kind::Send => qp.send(context, list, flags),
            Kind::SendAndInvalidate => {
                let token = self.theirs.mr()?.remote_token();
                qp.send_and_invalidate(context, list, flags, token)
            }
            Kind::Write => qp.write(context, list, there, flags),
            Kind::Read => qp.read(context, list, there, flags),
            Kind::Register => self.fast.fast_register(qp, context, flags)?,
            Kind::Bind => {
                // A bind needs at least one right.
                let range = (self.here.addr(), 64);
                qp.bind(context, self.here.mr()?, &self.window, range, flags | 0x008)
            }
            Kind::Invalidate => qp.invalidate_mr(context, self.fast.mr()?, flags),
        })
    }
}

/// A list of `count` elements over as many pieces of a buffer.
pub(super) fn list(buffer: &PageBuffer, count: usize) -> Result<KVec<Sge>> {
    let mut list = KVec::new();
    for at in 0..count {
        list.push(buffer.sge(at * 8, 8)?, GFP_KERNEL)?;
    }
    Ok(list)
}

/// An element of which only the length matters.
pub(super) const fn of_length(len: u32) -> Sge {
    Sge::new(0x1000, len, Token::from_raw(0))
}

/// Sizes with room for `requests` initiator requests.
pub(super) const fn deep(requests: u32) -> QpCaps {
    QpCaps {
        send_wr: requests,
        ..SIZES
    }
}
