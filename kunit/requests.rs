// SPDX-License-Identifier: GPL-2.0

//! Short ways to write work requests.

use crate::rdma::values::{
    access::AccessFlags,
    token::Token,
    work::{
        RemoteAddr,
        SendFlag,
        SendFlags,
        SendOp,
        SendWith, //
    }, //
};

/// A signalled request that waits for earlier reads.
pub(crate) const FENCED: SendFlags =
    SendFlags::from_bits(SendFlag::Signaled as u32 | SendFlag::Fence as u32);

/// A signalled send whose receive is a solicited one.
pub(crate) const SOLICITED: SendFlags =
    SendFlags::from_bits(SendFlag::Signaled as u32 | SendFlag::Solicited as u32);

/// A signalled request whose bytes are taken at once.
pub(crate) const INLINE: SendFlags =
    SendFlags::from_bits(SendFlag::Signaled as u32 | SendFlag::Inline as u32);

/// A plain send.
pub(crate) const SEND: SendOp = SendOp::Send {
    with: SendWith::Nothing,
};

/// A send with four bytes beside its message.
pub(crate) const fn send_immediate(data: u32) -> SendOp {
    SendOp::Send {
        with: SendWith::Imm(data),
    }
}

/// A send that ends the validity of a token of the peer.
pub(crate) const fn send_invalidate(token: Token) -> SendOp {
    SendOp::Send {
        with: SendWith::Inv(token),
    }
}

/// A write.
pub(crate) const fn write(to: RemoteAddr) -> SendOp {
    SendOp::Write { to, imm: None }
}

/// A write that consumes a receive.
pub(crate) const fn write_immediate(to: RemoteAddr, data: u32) -> SendOp {
    SendOp::Write {
        to,
        imm: Some(data),
    }
}

/// A read.
pub(crate) const fn read(from: RemoteAddr) -> SendOp {
    SendOp::Read {
        from,
        invalidate: None,
    }
}

/// A read that ends the validity of a token of its own side.
pub(crate) const fn read_invalidate(from: RemoteAddr, token: Token) -> SendOp {
    SendOp::Read {
        from,
        invalidate: Some(token),
    }
}

/// An invalidation of a token; an error if the token is invalid already.
pub(crate) const fn invalidate(token: Token) -> SendOp {
    SendOp::LocalInv {
        token,
        must_be_valid: true,
    }
}

/// A registration of the staged memory.
pub(crate) fn register(token: Token, len: u64, rights: impl Into<AccessFlags>) -> SendOp {
    SendOp::RegMr {
        token,
        base: super::buffer::BASE,
        len,
        rights: rights.into(),
        staged: None,
    }
}

/// An address of the peer that is not accessed, for requests that a fake transport carries out.
pub(crate) const NOWHERE: RemoteAddr = RemoteAddr {
    addr: 0,
    token: Token::LOCAL_MEMORY,
};
