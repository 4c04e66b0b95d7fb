// SPDX-License-Identifier: GPL-2.0

//! [`NtStatus`]: what a call of the NDK face returns and a callback carries.
//!
//! The engine reports ends by [`Status`], and refusals by an enumeration for each kind of call;
//! each becomes an NDK status here, once. No status is made from an errno.

use kernel::alloc::AllocError;

use super::life::Ref;
use crate::{
    engine::{
        cm::{
            AddressError,
            ConnectError, //
        },
        cq::InvalidModeration,
        device::OpenError,
        qp::PostError,
        ring::ResizeError, //
    },
    rdma::values::status::Status, //
};

/// An NTSTATUS: negative for warnings and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NtStatus(u32);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl NtStatus {
            $($(#[$doc])* pub(crate) const $name: Self = Self($value);)*
        }
    };
}

statuses! {
    SUCCESS = 0;
    PENDING = 0x0000_0103;
    /// A completion queue overflowed; a receive was too small; a request is too long.
    BUFFER_OVERFLOW = 0x8000_0005;
    /// A queue is full.
    NO_MORE_ENTRIES = 0x8000_001A;
    ACCESS_VIOLATION = 0xC000_0005;
    INVALID_PARAMETER = 0xC000_000D;
    /// The request contradicts the state that it met.
    INVALID_DEVICE_REQUEST = 0xC000_0010;
    BUFFER_TOO_SMALL = 0xC000_0023;
    /// Two settings contradict each other.
    INVALID_PARAMETER_MIX = 0xC000_0030;
    /// More elements than were asked for.
    DATA_OVERRUN = 0xC000_003C;
    /// An address is in use.
    SHARING_VIOLATION = 0xC000_0043;
    INSUFFICIENT_RESOURCES = 0xC000_009A;
    IO_TIMEOUT = 0xC000_00B5;
    NOT_SUPPORTED = 0xC000_00BB;
    INTERNAL_ERROR = 0xC000_00E5;
    CANCELLED = 0xC000_0120;
    INVALID_ADDRESS = 0xC000_0141;
    /// Not listening.
    INVALID_DEVICE_STATE = 0xC000_0184;
    /// The private data is too long.
    INVALID_BUFFER_SIZE = 0xC000_0206;
    /// No port is free.
    TOO_MANY_ADDRESSES = 0xC000_0209;
    /// The two addresses are connected already.
    ADDRESS_ALREADY_EXISTS = 0xC000_020A;
    CONNECTION_INVALID = 0xC000_023A;
    CONNECTION_ACTIVE = 0xC000_023B;
    NETWORK_UNREACHABLE = 0xC000_023C;
    CONNECTION_ABORTED = 0xC000_0241;
    /// More than an object of this adapter can be initialized for.
    IMPLEMENTATION_LIMIT = 0xC000_042B;
    /// The adapter does not speak the version that was asked for (NDIS).
    BAD_VERSION = 0xC001_0004;
    /// There is no such device (NDIS).
    ADAPTER_NOT_FOUND = 0xC001_0006;
    /// The device is going (NDIS).
    ADAPTER_NOT_READY = 0xC001_0011;
}

impl NtStatus {
    /// The value as C carries it.
    pub(crate) const fn raw(self) -> i32 {
        // CAST: an NTSTATUS is signed; the bits stay.
        self.0 as i32
    }

    /// How a request ended.
    pub(crate) const fn of(status: Status) -> Self {
        Self(status.ntstatus())
    }

    /// This as an error if `is_so`.
    pub(super) fn when(self, is_so: bool) -> Result<(), Self> {
        self.unless(!is_so)
    }

    /// This as an error if not `is_so`.
    pub(super) fn unless(self, is_so: bool) -> Result<(), Self> {
        is_so.then_some(()).ok_or(self)
    }
}

impl From<AllocError> for NtStatus {
    fn from(AllocError: AllocError) -> Self {
        Self::INSUFFICIENT_RESOURCES
    }
}

/// Why a request was not taken (POST-02, 10 to 12, SEND-11, RECV-03, RECV-06).
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

/// Why a queue keeps its size (CQ-09, SRQ-12).
impl From<ResizeError> for NtStatus {
    fn from(why: ResizeError) -> Self {
        match why {
            ResizeError::TooMany => Self::BUFFER_OVERFLOW,
            ResizeError::NoMemory => Self::INSUFFICIENT_RESOURCES,
        }
    }
}

/// Why calls are not moderated so (MOD-04).
impl From<InvalidModeration> for NtStatus {
    fn from(InvalidModeration: InvalidModeration) -> Self {
        Self::INVALID_PARAMETER_MIX
    }
}

/// Why a device was not opened.
impl From<OpenError> for NtStatus {
    fn from(why: OpenError) -> Self {
        match why {
            OpenError::Closed => Self::ADAPTER_NOT_READY,
            OpenError::NoMemory => Self::INSUFFICIENT_RESOURCES,
        }
    }
}

/// Why a local address or a route was not to be had (CONN-04, LSTN-01, SHEP-01, SHEP-02).
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

/// Why a connection was not accepted or completed.
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

/// The end of a request that carries nothing else.
impl<E> From<Result<(), E>> for NtStatus
where
    Self: From<E>,
{
    fn from(ended: Result<(), E>) -> Self {
        ended.map_or_else(Self::from, |()| Self::SUCCESS)
    }
}

/// What a call gives that may end at once or later.
pub(crate) enum Progress {
    /// It has ended well; its callback is not called.
    Done,
    /// Its callback reports the end.
    Pending,
}

/// The result of a call that may end at once or later; after an error nothing is called either.
pub(crate) type Answer = Result<Progress, NtStatus>;

/// What a creation that is not over at once reports in the end.
pub(crate) type Created<T> = Result<Ref<T>, NtStatus>;

/// The status of a creation that failed: what was asked for is fine, so memory was short.
pub(super) fn no_memory<E>(_: E) -> NtStatus {
    NtStatus::INSUFFICIENT_RESOURCES
}
