// SPDX-License-Identifier: GPL-2.0

//! The numbers of the interface, from `include/ndk`: no other file of the face repeats them.

use crate::{
    bindings,
    ndk::status::NtStatus,
    rdma::values::status::Status, //
};

/// Flags of requests.
pub(crate) mod op_flags {
    pub(crate) use crate::bindings::{
        NDK_OP_FLAG_ALLOW_LOCAL_WRITE as ALLOW_LOCAL_WRITE,
        NDK_OP_FLAG_ALLOW_REMOTE_READ as ALLOW_REMOTE_READ,
        NDK_OP_FLAG_ALLOW_REMOTE_WRITE as ALLOW_REMOTE_WRITE,
        NDK_OP_FLAG_DEFER as DEFER,
        NDK_OP_FLAG_INLINE as INLINE,
        NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE as RDMA_READ_LOCAL_INVALIDATE,
        NDK_OP_FLAG_RDMA_READ_SINK as RDMA_READ_SINK,
        NDK_OP_FLAG_READ_FENCE as READ_FENCE,
        NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT as SEND_AND_SOLICIT_EVENT,
        NDK_OP_FLAG_SILENT_SUCCESS as SILENT_SUCCESS, //
    };
}

/// Flags of `RegisterMr`.
pub(crate) mod mr_flags {
    pub(crate) use crate::bindings::{
        NDK_MR_FLAG_ALLOW_LOCAL_WRITE as LOCAL_WRITE,
        NDK_MR_FLAG_ALLOW_REMOTE_READ as REMOTE_READ,
        NDK_MR_FLAG_ALLOW_REMOTE_WRITE as REMOTE_WRITE,
        NDK_MR_FLAG_RDMA_READ_SINK as RDMA_READ_SINK, //
    };
}

/// Types of `ArmCq`.
pub(crate) mod notify {
    pub(crate) use crate::bindings::{
        NDK_CQ_NOTIFY_ANY as ANY,
        NDK_CQ_NOTIFY_ERRORS as ERRORS,
        NDK_CQ_NOTIFY_SOLICITED as SOLICITED, //
    };
}

/// Kinds of results.
pub(crate) mod operation {
    pub(crate) use crate::bindings::{
        NDK_OPERATION_TYPE_BIND as BIND,
        NDK_OPERATION_TYPE_FAST_REGISTER as FAST_REGISTER,
        NDK_OPERATION_TYPE_INVALIDATE as INVALIDATE,
        NDK_OPERATION_TYPE_READ as READ,
        NDK_OPERATION_TYPE_RECEIVE as RECEIVE,
        NDK_OPERATION_TYPE_RECEIVE_AND_INVALIDATE as RECEIVE_AND_INVALIDATE,
        NDK_OPERATION_TYPE_SEND as SEND,
        NDK_OPERATION_TYPE_WRITE as WRITE, //
    };
}

/// Gives [`NtStatus`] the listed statuses of `include/ndk/status.h`, under their names, and asserts
/// that each end of a request has the status of the header that is listed for it.
macro_rules! statuses {
    ($($name:ident)*; $($end:ident is $status:ident)*) => {
        kernel::macros::paste! {
            impl NtStatus {
                $(pub(crate) const $name: Self =
                    Self::from_raw(bindings::[<ndk_status_NDK_STATUS_ $name>]);)*
            }

            const _: () = {
                const fn number(end: Status) -> bindings::ndk_status {
                    match end {
                        $(Status::$end => bindings::[<ndk_status_NDK_STATUS_ $status>],)*
                    }
                }

                $(assert!(NtStatus::of(Status::$end).raw() == number(Status::$end));)*
            };
        }
    };
}

statuses! {
    SUCCESS PENDING BUFFER_OVERFLOW NO_MORE_ENTRIES ACCESS_VIOLATION INVALID_PARAMETER
    INVALID_DEVICE_REQUEST BUFFER_TOO_SMALL INVALID_PARAMETER_MIX DATA_OVERRUN SHARING_VIOLATION
    INSUFFICIENT_RESOURCES IO_TIMEOUT NOT_SUPPORTED INTERNAL_ERROR CANCELLED INVALID_ADDRESS
    INVALID_DEVICE_STATE INVALID_BUFFER_SIZE TOO_MANY_ADDRESSES ADDRESS_ALREADY_EXISTS
    CONNECTION_INVALID CONNECTION_ACTIVE NETWORK_UNREACHABLE CONNECTION_ABORTED IMPLEMENTATION_LIMIT
    BAD_VERSION ADAPTER_NOT_FOUND ADAPTER_NOT_READY;

    Success is SUCCESS
    Flushed is CANCELLED
    LocalLength is DATA_OVERRUN
    LocalOperation is INVALID_DEVICE_REQUEST
    LocalAccess is ACCESS_VIOLATION
    Bind is INVALID_DEVICE_REQUEST
    ReceiveLength is BUFFER_OVERFLOW
    ReceiveInvalidation is INVALID_DEVICE_REQUEST
    RemoteAccess is REMOTE_RESOURCES
    RemoteInvalidRequest is REMOTE_RESOURCES
    RemoteOperation is REMOTE_RESOURCES
    ReceiverNotReady is IO_TIMEOUT
    Timeout is IO_TIMEOUT
    Aborted is CONNECTION_ABORTED
    Fatal is INTERNAL_ERROR
    Refused is CONNECTION_REFUSED
    Unreachable is HOST_UNREACHABLE
}
