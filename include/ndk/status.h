/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The status values of NDK: NTSTATUS, signed 32 bits. Warnings (0x8...) and
 * errors (0xC...) are both negative.
 */
#ifndef NDK_STATUS_H
#define NDK_STATUS_H

#include <linux/types.h>

/**
 * enum ndk_status - how a call or a request ended
 * @NDK_STATUS_SUCCESS: done; for a work request: accepted
 * @NDK_STATUS_PENDING: under way, the completion callback reports the end
 * @NDK_STATUS_BUFFER_OVERFLOW: completion queue overrun, message longer than
 *	its receive, request longer than the adapter or the inline limit allows
 * @NDK_STATUS_NO_MORE_ENTRIES: the queue is full
 * @NDK_STATUS_ACCESS_VIOLATION: a local token, its rights or its bounds do not
 *	cover the memory
 * @NDK_STATUS_INVALID_PARAMETER: a limit is exceeded, a flag is unknown, or
 *	objects do not belong together
 * @NDK_STATUS_INVALID_DEVICE_REQUEST: not possible with this object or in the
 *	state that the request met
 * @NDK_STATUS_BUFFER_TOO_SMALL: the size variable now holds the size needed
 * @NDK_STATUS_INVALID_PARAMETER_MIX: each value is legal, the pair is not
 * @NDK_STATUS_DATA_OVERRUN: too many scatter/gather entries
 * @NDK_STATUS_SHARING_VIOLATION: the local address is in use
 * @NDK_STATUS_INSUFFICIENT_RESOURCES: no memory
 * @NDK_STATUS_IO_TIMEOUT: the peer did not answer in time
 * @NDK_STATUS_NOT_SUPPORTED: the adapter cannot do it
 * @NDK_STATUS_INTERNAL_ERROR: the queue is broken for good
 * @NDK_STATUS_CANCELLED: flushed
 * @NDK_STATUS_REMOTE_RESOURCES: the peer refused the token, the range or the
 *	request
 * @NDK_STATUS_INVALID_ADDRESS: not an address of the adapter
 * @NDK_STATUS_INVALID_DEVICE_STATE: the listener does not listen
 * @NDK_STATUS_INVALID_BUFFER_SIZE: private data too long
 * @NDK_STATUS_TOO_MANY_ADDRESSES: no port is free
 * @NDK_STATUS_ADDRESS_ALREADY_EXISTS: the same two addresses are connected
 * @NDK_STATUS_CONNECTION_REFUSED: nobody listens, or the listener refused
 * @NDK_STATUS_CONNECTION_INVALID: not connected
 * @NDK_STATUS_CONNECTION_ACTIVE: connected already
 * @NDK_STATUS_NETWORK_UNREACHABLE: no route
 * @NDK_STATUS_HOST_UNREACHABLE: no transport leads to the address
 * @NDK_STATUS_CONNECTION_ABORTED: the peer gave up or went away
 * @NDK_STATUS_IMPLEMENTATION_LIMIT: more pages than the adapter can register
 * @NDK_STATUS_BAD_VERSION: ndk_open_adapter(): version not supported
 * @NDK_STATUS_ADAPTER_NOT_FOUND: ndk_open_adapter(): no such adapter
 * @NDK_STATUS_ADAPTER_NOT_READY: ndk_open_adapter(): the adapter is going away
 *
 * Functions return and deliver these as plain s32.
 */
enum ndk_status {
	NDK_STATUS_SUCCESS			= 0,
	NDK_STATUS_PENDING			= 0x00000103,
	NDK_STATUS_BUFFER_OVERFLOW		= (s32)0x80000005,
	NDK_STATUS_NO_MORE_ENTRIES		= (s32)0x8000001A,
	NDK_STATUS_ACCESS_VIOLATION		= (s32)0xC0000005,
	NDK_STATUS_INVALID_PARAMETER		= (s32)0xC000000D,
	NDK_STATUS_INVALID_DEVICE_REQUEST	= (s32)0xC0000010,
	NDK_STATUS_BUFFER_TOO_SMALL		= (s32)0xC0000023,
	NDK_STATUS_INVALID_PARAMETER_MIX	= (s32)0xC0000030,
	NDK_STATUS_DATA_OVERRUN			= (s32)0xC000003C,
	NDK_STATUS_SHARING_VIOLATION		= (s32)0xC0000043,
	NDK_STATUS_INSUFFICIENT_RESOURCES	= (s32)0xC000009A,
	NDK_STATUS_IO_TIMEOUT			= (s32)0xC00000B5,
	NDK_STATUS_NOT_SUPPORTED		= (s32)0xC00000BB,
	NDK_STATUS_INTERNAL_ERROR		= (s32)0xC00000E5,
	NDK_STATUS_CANCELLED			= (s32)0xC0000120,
	NDK_STATUS_REMOTE_RESOURCES		= (s32)0xC000013D,
	NDK_STATUS_INVALID_ADDRESS		= (s32)0xC0000141,
	NDK_STATUS_INVALID_DEVICE_STATE		= (s32)0xC0000184,
	NDK_STATUS_INVALID_BUFFER_SIZE		= (s32)0xC0000206,
	NDK_STATUS_TOO_MANY_ADDRESSES		= (s32)0xC0000209,
	NDK_STATUS_ADDRESS_ALREADY_EXISTS	= (s32)0xC000020A,
	NDK_STATUS_CONNECTION_REFUSED		= (s32)0xC0000236,
	NDK_STATUS_CONNECTION_INVALID		= (s32)0xC000023A,
	NDK_STATUS_CONNECTION_ACTIVE		= (s32)0xC000023B,
	NDK_STATUS_NETWORK_UNREACHABLE		= (s32)0xC000023C,
	NDK_STATUS_HOST_UNREACHABLE		= (s32)0xC000023D,
	NDK_STATUS_CONNECTION_ABORTED		= (s32)0xC0000241,
	NDK_STATUS_IMPLEMENTATION_LIMIT		= (s32)0xC000042B,
	NDK_STATUS_BAD_VERSION			= (s32)0xC0010004,
	NDK_STATUS_ADAPTER_NOT_FOUND		= (s32)0xC0010006,
	NDK_STATUS_ADAPTER_NOT_READY		= (s32)0xC0010011,
};

/**
 * ndk_failed() - true if a status is a failure
 * @status: an NDK status; %NDK_STATUS_PENDING is none
 *
 * Return: true for warnings and errors.
 */
static inline bool ndk_failed(s32 status)
{
	return status < 0;
}

#endif
