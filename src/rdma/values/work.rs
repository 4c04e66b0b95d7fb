// SPDX-License-Identifier: GPL-2.0
// host-test

//! Work requests for a send queue, without their lists.

use super::{
    access::AccessFlags,
    token::Token,
    wc::WcOpcode, //
};

/// Memory of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteAddr {
    pub(crate) addr: u64,
    pub(crate) token: Token,
}

/// The value that a message carries beside its bytes, from the request to the receive's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendWith {
    Nothing,
    /// Immediate data: four bytes in the order in which they were posted.
    Imm(u32),
    /// A token that the receiver invalidates before the receive completes.
    Inv(Token),
}

/// The operation of a request. C: `enum ib_wr_opcode` with the data of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOp {
    Send {
        with: SendWith,
    },
    Write {
        to: RemoteAddr,
        /// Immediate data, with which the write consumes a receive of the peer.
        imm: Option<u32>,
    },
    Read {
        from: RemoteAddr,
        /// A local token to invalidate when the data is there.
        invalidate: Option<Token>,
    },
    FetchAdd {
        at: RemoteAddr,
        add: u64,
    },
    CmpSwap {
        at: RemoteAddr,
        compare: u64,
        swap: u64,
    },
    /// Makes the staged mapping of a fast-register region valid under the token.
    RegMr {
        token: Token,
        base: u64,
        len: u64,
        rights: AccessFlags,
        /// The number of the mapping that came with the request; `None` for the mapping staged
        /// last.
        staged: Option<u32>,
    },
    LocalInv {
        token: Token,
        /// An object that is invalid already is an error (it is for NDK, INV-06).
        must_be_valid: bool,
    },
    /// Only NDKPI has this operation.
    BindMw {
        window: Token,
        region: Token,
        addr: u64,
        len: u64,
        rights: AccessFlags,
    },
}

impl SendOp {
    /// The kind of request that the completion names.
    pub(crate) const fn opcode(&self) -> WcOpcode {
        match self {
            Self::Send { .. } => WcOpcode::Send,
            Self::Write { .. } => WcOpcode::Write,
            Self::Read { .. } => WcOpcode::Read,
            Self::FetchAdd { .. } => WcOpcode::FetchAdd,
            Self::CmpSwap { .. } => WcOpcode::CompSwap,
            Self::RegMr { .. } => WcOpcode::RegMr,
            Self::LocalInv { .. } => WcOpcode::LocalInv,
            Self::BindMw { .. } => WcOpcode::BindMw,
        }
    }

    /// Returns true if the request brings data from the peer: it counts against the read limit, and
    /// fences wait for it (atomics answer like reads, RFC 7306 section 5).
    pub(crate) const fn is_read(&self) -> bool {
        matches!(
            self,
            Self::Read { .. } | Self::FetchAdd { .. } | Self::CmpSwap { .. }
        )
    }

    /// Returns true if the request concerns this side's memory table alone.
    pub(crate) const fn is_local(&self) -> bool {
        matches!(
            self,
            Self::RegMr { .. } | Self::LocalInv { .. } | Self::BindMw { .. }
        )
    }

    /// Returns true if the request takes its bytes from the gather list.
    pub(crate) const fn is_outbound(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Write { .. })
    }
}

kernel::impl_flags! {
    /// Ways to treat a request. C: `enum ib_send_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct SendFlags(u8);

    /// One way to treat a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SendFlag {
        /// Begin only when every earlier read of the queue is done.
        Fence = 1,
        /// Success is reported too; without it only failure is.
        Signaled = 2,
        /// The receive that this message completes is a solicited one.
        Solicited = 4,
        /// Take the bytes during the post; keys do not matter.
        Inline = 8,
        /// Starts only when a later request without this flag is posted, or a request is refused.
        /// Only NDKPI has this flag.
        Deferred = 128,
    }
}

impl SendFlags {
    /// The set of the bits of C. Other bits are dropped, among them the bit of NDKPI's flag.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        // CAST: four bits are left.
        Self((bits & 0xF) as u8)
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_rdma_values_work))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    const TOKEN: Token = Token::from_raw(1);
    const AT: RemoteAddr = RemoteAddr {
        addr: 0,
        token: TOKEN,
    };

    /// Each operation with its opcode, and the results of `is_read`, `is_local`, `is_outbound`.
    const TABLE: [(SendOp, WcOpcode, [bool; 3]); 8] = [
        (
            SendOp::Send {
                with: SendWith::Nothing,
            },
            WcOpcode::Send,
            [false, false, true],
        ),
        (
            SendOp::Write { to: AT, imm: None },
            WcOpcode::Write,
            [false, false, true],
        ),
        (
            SendOp::Read {
                from: AT,
                invalidate: None,
            },
            WcOpcode::Read,
            [true, false, false],
        ),
        (
            SendOp::FetchAdd { at: AT, add: 0 },
            WcOpcode::FetchAdd,
            [true, false, false],
        ),
        (
            SendOp::CmpSwap {
                at: AT,
                compare: 0,
                swap: 0,
            },
            WcOpcode::CompSwap,
            [true, false, false],
        ),
        (
            SendOp::RegMr {
                token: TOKEN,
                base: 0,
                len: 0,
                rights: AccessFlags::empty(),
                staged: None,
            },
            WcOpcode::RegMr,
            [false, true, false],
        ),
        (
            SendOp::LocalInv {
                token: TOKEN,
                must_be_valid: true,
            },
            WcOpcode::LocalInv,
            [false, true, false],
        ),
        (
            SendOp::BindMw {
                window: TOKEN,
                region: TOKEN,
                addr: 0,
                len: 0,
                rights: AccessFlags::empty(),
            },
            WcOpcode::BindMw,
            [false, true, false],
        ),
    ];

    #[test]
    fn operations_are_told_apart() {
        for (op, opcode, [is_read, is_local, is_outbound]) in TABLE {
            assert_eq!(op.opcode(), opcode);
            assert_eq!(op.is_read(), is_read);
            assert_eq!(op.is_local(), is_local);
            assert_eq!(op.is_outbound(), is_outbound);
        }
    }

    #[test]
    fn no_bit_of_c_holds_a_request_back() {
        let all = SendFlag::Fence | SendFlag::Signaled | SendFlag::Solicited | SendFlag::Inline;
        assert_eq!(SendFlags::from_bits(!0), all);
        for bits in 0..16 {
            assert_eq!(u32::from(u8::from(SendFlags::from_bits(bits))), bits);
        }
    }
}
