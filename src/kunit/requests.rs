// SPDX-License-Identifier: GPL-2.0

//! Short ways to write work requests.

use crate::{
    engine::{
        memory::token::Token,
        work::{
            Extra,
            Flags,
            Remote,
            Work, //
        }, //
    },
    rdma::values::access::AccessFlags, //
};

/// A signalled request that waits for earlier reads.
pub(crate) const FENCED: Flags = Flags::SIGNALED.with(Flags::READ_FENCE);

/// A signalled send whose receive is a solicited one.
pub(crate) const SOLICITED: Flags = Flags::SIGNALED.with(Flags::SOLICITED);

/// A signalled request whose bytes are taken at once.
pub(crate) const INLINE: Flags = Flags::SIGNALED.with(Flags::INLINE);

/// A plain send.
pub(crate) const SEND: Work = Work::Send {
    extra: Extra::Nothing,
};

/// A send with four bytes beside its message.
pub(crate) const fn send_immediate(data: u32) -> Work {
    Work::Send {
        extra: Extra::Immediate(data),
    }
}

/// A send that ends the validity of a token of the peer.
pub(crate) const fn send_invalidate(token: Token) -> Work {
    Work::Send {
        extra: Extra::Invalidate(token),
    }
}

/// A write.
pub(crate) const fn write(to: Remote) -> Work {
    Work::Write {
        to,
        immediate: None,
    }
}

/// A write that consumes a receive.
pub(crate) const fn write_immediate(to: Remote, data: u32) -> Work {
    Work::Write {
        to,
        immediate: Some(data),
    }
}

/// A read.
pub(crate) const fn read(from: Remote) -> Work {
    Work::Read {
        from,
        invalidate: None,
    }
}

/// A read that ends the validity of a token of its own side.
pub(crate) const fn read_invalidate(from: Remote, token: Token) -> Work {
    Work::Read {
        from,
        invalidate: Some(token),
    }
}

/// The end of a token's validity; an error if that has come already.
pub(crate) const fn invalidate(token: Token) -> Work {
    Work::Invalidate {
        token,
        must_be_valid: true,
    }
}

/// A registration of what is staged.
pub(crate) fn register(token: Token, len: u64, rights: impl Into<AccessFlags>) -> Work {
    Work::Register {
        token,
        base: super::buffer::BASE,
        len,
        rights: rights.into(),
        staged: None,
    }
}

/// The peer's memory that nobody looks at, for requests that a fake transport carries out.
pub(crate) const NOWHERE: Remote = Remote {
    addr: 0,
    token: Token::LOCAL_MEMORY,
};
