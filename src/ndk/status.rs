// SPDX-License-Identifier: GPL-2.0

//! [`NtStatus`]: the status that a call of the NDK face returns and a callback carries.
//!
//! The engine reports ends by [`Status`], and refusals by an enumeration for each kind of call;
//! each becomes an NDK status here, once. No status is made from an errno.

use kernel::alloc::AllocError;

use crate::{
    engine::{
        cm::{
            AddressError,
            ConnectError, //
        },
        cq::InvalidModeration,
        device::OpenError,
        ring::ResizeError,
        wq::PostError, //
    },
    rdma::values::status::Status, //
};

/// An NTSTATUS: negative for warnings and errors. `include/ndk/status.h` has the meaning of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NtStatus(i32);

impl NtStatus {
    /// The status of a number of C.
    pub(super) const fn from_raw(status: i32) -> Self {
        Self(status)
    }

    /// The value as C carries it.
    pub(crate) const fn raw(self) -> i32 {
        self.0
    }

    /// The status of the end of a request.
    pub(crate) const fn of(status: Status) -> Self {
        // CAST: an NTSTATUS is signed; the bits stay.
        Self(status.ntstatus() as i32)
    }

    /// Returns this status as an error if `is_so`.
    pub(super) fn when(self, is_so: bool) -> Result<(), Self> {
        self.unless(!is_so)
    }

    /// Returns this status as an error if not `is_so`.
    pub(super) fn unless(self, is_so: bool) -> Result<(), Self> {
        is_so.then_some(()).ok_or(self)
    }
}

impl From<AllocError> for NtStatus {
    fn from(AllocError: AllocError) -> Self {
        Self::INSUFFICIENT_RESOURCES
    }
}

/// The status of a refused post (POST-02, 10 to 12, SEND-11, RECV-03, RECV-06).
impl From<PostError> for NtStatus {
    fn from(why: PostError) -> Self {
        match why {
            PostError::State => Self::CONNECTION_INVALID,
            PostError::Invalid => Self::INVALID_DEVICE_REQUEST,
            PostError::TooManySges => Self::DATA_OVERRUN,
            PostError::TooLong | PostError::InlineTooLong => Self::BUFFER_OVERFLOW,
            PostError::Full => Self::NO_MORE_ENTRIES,
        }
    }
}

/// The status of a failed resize (CQ-07, SRQ-12).
impl From<ResizeError> for NtStatus {
    fn from(why: ResizeError) -> Self {
        match why {
            ResizeError::TooMany => Self::BUFFER_OVERFLOW,
            ResizeError::NoMemory => Self::INSUFFICIENT_RESOURCES,
        }
    }
}

/// The status of a refused moderation (MOD-04).
impl From<InvalidModeration> for NtStatus {
    fn from(InvalidModeration: InvalidModeration) -> Self {
        Self::INVALID_PARAMETER_MIX
    }
}

/// The status of a failed open of a device.
impl From<OpenError> for NtStatus {
    fn from(why: OpenError) -> Self {
        match why {
            OpenError::Closed => Self::ADAPTER_NOT_READY,
            OpenError::NoMemory => Self::INSUFFICIENT_RESOURCES,
        }
    }
}

/// The status of a failed reservation of a local address or a route (CONN-04, LSTN-01, SHEP-01,
/// SHEP-02).
impl From<AddressError> for NtStatus {
    fn from(why: AddressError) -> Self {
        match why {
            AddressError::InUse => Self::SHARING_VIOLATION,
            AddressError::Exists => Self::ADDRESS_ALREADY_EXISTS,
            AddressError::NoPort => Self::TOO_MANY_ADDRESSES,
            AddressError::NoMemory => Self::INSUFFICIENT_RESOURCES,
        }
    }
}

/// The status of a failed accept or completion of a connection.
impl From<ConnectError> for NtStatus {
    fn from(why: ConnectError) -> Self {
        match why {
            ConnectError::Aborted => Self::CONNECTION_ABORTED,
            ConnectError::TimedOut => Self::IO_TIMEOUT,
            ConnectError::NotReady => Self::CONNECTION_ACTIVE,
            ConnectError::NoMemory => Self::INSUFFICIENT_RESOURCES,
        }
    }
}

/// The status of a request whose end carries no other value.
impl<E> From<Result<(), E>> for NtStatus
where
    Self: From<E>,
{
    fn from(ended: Result<(), E>) -> Self {
        ended.map_or_else(Self::from, |()| Self::SUCCESS)
    }
}

/// The progress of a call that may end at once or later.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The call has ended well; its callback is not called.
    Done,
    /// The callback reports the end.
    Pending,
}

/// The result of a call that may end at once or later; after an error the callback is not called.
pub(crate) type Answer = Result<Progress, NtStatus>;

/// The status of a creation that failed: what was asked for is fine, so memory was short.
pub(super) fn no_memory<E>(_: E) -> NtStatus {
    NtStatus::INSUFFICIENT_RESOURCES
}
