// SPDX-License-Identifier: GPL-2.0

//! Work requests and completions, as the engine and its transports see them.
//!
//! Tests: `direct/tests/message.rs`.

use super::{
    memory::token::Token,
    status::Status, //
};
use crate::{
    rdma::values::access::AccessFlags,
    sys::sge, //
};

pub(crate) use crate::sys::{
    requests::Context,
    sge::{
        Elements,
        Posted,
        Sge, //
    }, //
};

#[cfg(ndk_kunit)]
pub(crate) use crate::sys::{
    requests::test_context,
    sge::test_posted, //
};

const _: () = assert!(Token::LOCAL_MEMORY.raw() == sge::LOCAL_KEY);

impl Sge {
    /// The token of its memory.
    #[inline]
    pub(crate) const fn token(&self) -> Token {
        Token::from_raw(self.key())
    }

    /// An element by its token.
    #[cfg(ndk_kunit)]
    pub(crate) const fn of(addr: u64, len: u32, token: Token) -> Self {
        Self::new(addr, len, token.raw())
    }
}

/// Memory of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) addr: u64,
    pub(crate) token: Token,
}

/// What comes with a message beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Nothing,
    /// Immediate data, four bytes that nobody interprets.
    Immediate(u32),
    /// A token that the receiver invalidates before the receive completes.
    Invalidate(Token),
}

/// What an initiator request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Send {
        extra: Extra,
    },
    Write {
        to: Remote,
        /// With it the write consumes a receive of the peer.
        immediate: Option<u32>,
    },
    Read {
        from: Remote,
        /// A local token to invalidate when the data is there.
        invalidate: Option<Token>,
    },
    FetchAdd {
        at: Remote,
        add: u64,
    },
    CompareSwap {
        at: Remote,
        compare: u64,
        swap: u64,
    },
    /// Makes what is staged for a fast-register region valid under the token.
    Register {
        token: Token,
        base: u64,
        len: u64,
        rights: AccessFlags,
        /// The number of the mapping that came with the request; without one it is what was
        /// staged last.
        staged: Option<u32>,
    },
    Invalidate {
        token: Token,
        /// Whether it is an error that the object is invalid already (it is for NDK, INV-06).
        must_be_valid: bool,
    },
    Bind {
        window: Token,
        region: Token,
        addr: u64,
        len: u64,
        rights: AccessFlags,
    },
}

impl Work {
    /// What the completion says was done.
    pub(crate) const fn operation(&self) -> Operation {
        match self {
            Self::Send { .. } => Operation::Send,
            Self::Write { .. } => Operation::Write,
            Self::Read { .. } => Operation::Read,
            Self::FetchAdd { .. } => Operation::FetchAdd,
            Self::CompareSwap { .. } => Operation::CompareSwap,
            Self::Register { .. } => Operation::Register,
            Self::Invalidate { .. } => Operation::Invalidate,
            Self::Bind { .. } => Operation::Bind,
        }
    }

    /// Returns true if the request brings data from the peer, and so counts against the read limit
    /// and is what a fence waits for (atomics answer like reads, RFC 7306 section 5).
    pub(crate) const fn is_read(&self) -> bool {
        matches!(
            self,
            Self::Read { .. } | Self::FetchAdd { .. } | Self::CompareSwap { .. }
        )
    }

    /// Returns true if the request concerns this side's memory table alone.
    pub(crate) const fn is_local(&self) -> bool {
        matches!(
            self,
            Self::Register { .. } | Self::Invalidate { .. } | Self::Bind { .. }
        )
    }

    /// Returns true if the request takes its bytes from the gather list.
    pub(crate) const fn is_outbound(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Write { .. })
    }
}

/// The kind of a finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Send,
    Write,
    Read,
    FetchAdd,
    CompareSwap,
    Register,
    Invalidate,
    Bind,
    Receive,
    /// A receive consumed by a write with immediate data.
    ReceiveWrite,
}

/// How a request is to be treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// Success is reported too; without it only failure is.
    pub(crate) const SIGNALED: Self = Self(1);
    /// The receive that this message completes is a solicited one.
    pub(crate) const SOLICITED: Self = Self(2);
    /// Begin only when every earlier read of the queue is done.
    pub(crate) const READ_FENCE: Self = Self(4);
    /// Take the bytes during the call.
    pub(crate) const INLINE: Self = Self(8);
    /// Not to be started before a later request without this flag is posted, or one is refused.
    pub(crate) const DEFERRED: Self = Self(16);

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A finished request, as it stands in a completion queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The consumer's number for the request, which has ended.
    pub(crate) context: Context,
    /// What the face gave with the queue pair.
    pub(crate) qp: usize,
    pub(crate) status: Status,
    pub(crate) operation: Operation,
    /// Bytes moved, for receives and reads.
    pub(crate) length: u32,
    /// For a receive: what came with the message. The token is invalid already.
    pub(crate) extra: Extra,
    /// For a receive: the sender asked for an event.
    pub(crate) solicited: bool,
}

impl Completion {
    /// Of no request.
    pub(crate) const BLANK: Self = Self {
        context: Context::BLANK,
        qp: 0,
        status: Status::Success,
        operation: Operation::Send,
        length: 0,
        extra: Extra::Nothing,
        solicited: false,
    };
}
