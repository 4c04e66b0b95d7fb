// SPDX-License-Identifier: GPL-2.0
// host-test

//! The end of a request: one status inside the engine, for both faces.
//!
//! The variants are as fine as the finest face needs. Each has an NDK status (the NTSTATUS that the
//! NDKPI pages name) and one of the verbs ([`super::wc`]). Only the status of a fault is ever
//! rebuilt from one of these coarser values.

/// The end of a work request, or of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Done.
    Success,
    /// Cancelled by a flush, a disconnect or an earlier error of the same queue pair.
    Flushed,
    /// The request moves more data than a message can carry.
    LocalLength,
    /// The request could not be executed in the state that it met: an invalidation of an object
    /// that is not registered, a registration of a region that is still valid, a read over a
    /// connection that allows none.
    LocalOperation,
    /// A local token, its rights, its domain or its bounds do not cover the memory named.
    LocalAccess,
    /// A window could not be bound.
    Bind,
    /// A receive was too small for the message that it met.
    ReceiveLength,
    /// A receive whose message asked for an invalidation that this side refuses.
    ReceiveInvalidation,
    /// The peer refused a remote token, its rights or its bounds.
    RemoteAccess,
    /// The peer found the request invalid: message too long for its receive, misaligned atomic,
    /// a token that must not be invalidated.
    RemoteInvalidRequest,
    /// The peer failed while it carried the request out.
    RemoteOperation,
    /// The peer posted no receive in time.
    ReceiverNotReady,
    /// The peer or the path to it went silent.
    Timeout,
    /// The peer closed or lost the connection.
    Aborted,
    /// The queue pair or its completion queue is broken.
    Fatal,
    /// The address has no listener, or the listener refused.
    Refused,
    /// No transport of this host leads to the address.
    Unreachable,
}

impl Status {
    /// Returns true if the request succeeded.
    pub(crate) const fn is_success(self) -> bool {
        matches!(self, Self::Success)
    }

    /// The end in words, for the kernel log.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Success => "done",
            Self::Flushed => "cancelled",
            Self::LocalLength => "message too long",
            Self::LocalOperation => "not possible in this state",
            Self::LocalAccess => "local memory refused",
            Self::Bind => "window not bound",
            Self::ReceiveLength => "message longer than the receive",
            Self::ReceiveInvalidation => "peer named a token that it may not invalidate",
            Self::RemoteAccess => "peer refused the memory access",
            Self::RemoteInvalidRequest => "peer refused the request",
            Self::RemoteOperation => "peer failed",
            Self::ReceiverNotReady => "peer posted no receive in time",
            Self::Timeout => "timed out",
            Self::Aborted => "connection lost",
            Self::Fatal => "broken",
            Self::Refused => "connection refused",
            Self::Unreachable => "host unreachable",
        }
    }

    /// The NDKPI status of this end, as an NTSTATUS value.
    pub(crate) const fn ntstatus(self) -> u32 {
        match self {
            Self::Success => 0,
            Self::Flushed => 0xC000_0120,
            Self::LocalLength => 0xC000_003C,
            Self::LocalOperation | Self::Bind | Self::ReceiveInvalidation => 0xC000_0010,
            Self::LocalAccess => 0xC000_0005,
            Self::ReceiveLength => 0x8000_0005,
            Self::RemoteAccess | Self::RemoteInvalidRequest | Self::RemoteOperation => 0xC000_013D,
            Self::ReceiverNotReady | Self::Timeout => 0xC000_00B5,
            Self::Aborted => 0xC000_0241,
            Self::Fatal => 0xC000_00E5,
            Self::Refused => 0xC000_0236,
            Self::Unreachable => 0xC000_023D,
        }
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_rdma_values_status))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    const FAILURES: [Status; 16] = [
        Status::Flushed,
        Status::LocalLength,
        Status::LocalOperation,
        Status::LocalAccess,
        Status::Bind,
        Status::ReceiveLength,
        Status::ReceiveInvalidation,
        Status::RemoteAccess,
        Status::RemoteInvalidRequest,
        Status::RemoteOperation,
        Status::ReceiverNotReady,
        Status::Timeout,
        Status::Aborted,
        Status::Fatal,
        Status::Refused,
        Status::Unreachable,
    ];

    #[test]
    fn every_failure_is_a_negative_ntstatus() {
        assert_eq!(Status::Success.ntstatus(), 0);
        for s in FAILURES {
            // CAST: NTSTATUS is signed; its top bit says "warning or error".
            assert!((s.ntstatus() as i32) < 0);
            assert!(!s.is_success());
        }
    }

    #[test]
    fn flush_is_cancelled_and_a_peer_refusal_is_remote_resources() {
        assert_eq!(Status::Flushed.ntstatus(), 0xC000_0120);
        assert_eq!(Status::RemoteAccess.ntstatus(), 0xC000_013D);
        assert_eq!(Status::ReceiveLength.ntstatus(), 0x8000_0005);
    }
}
