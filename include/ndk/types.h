/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the objects of NDK share: header, flags, lists, results, callbacks.
 */
#ifndef NDK_TYPES_H
#define NDK_TYPES_H

#include <linux/compiler_attributes.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/uuid.h>
#include <linux/vmalloc.h>

struct cpumask;
struct net;

struct ndk_adapter;
struct ndk_pd;
struct ndk_cq;
struct ndk_qp;
struct ndk_srq;
struct ndk_mr;
struct ndk_mw;
struct ndk_connector;
struct ndk_listener;
struct ndk_shared_endpoint;

/* The version that these headers describe. */
#define NDK_VERSION_MAJOR	1
#define NDK_VERSION_MINOR	2

/* Flags of work requests; each function says which of them it takes. */
#define NDK_OP_FLAG_SILENT_SUCCESS		0x001
#define NDK_OP_FLAG_READ_FENCE			0x002
#define NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT	0x004
#define NDK_OP_FLAG_ALLOW_REMOTE_READ		0x008
#define NDK_OP_FLAG_ALLOW_LOCAL_WRITE		0x010
/* Contains ALLOW_LOCAL_WRITE; to test for it, use the bit 0x020. */
#define NDK_OP_FLAG_ALLOW_REMOTE_WRITE		0x030
#define NDK_OP_FLAG_INLINE			0x040
#define NDK_OP_FLAG_RDMA_READ_SINK		0x080
#define NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE	0x100
#define NDK_OP_FLAG_DEFER			0x200

/* Flags of register_mr(). */
#define NDK_MR_FLAG_ALLOW_LOCAL_READ		0x0
#define NDK_MR_FLAG_ALLOW_LOCAL_WRITE		0x1
#define NDK_MR_FLAG_ALLOW_REMOTE_READ		0x2
/* Contains ALLOW_LOCAL_WRITE; to test for it, use the bit 0x4. */
#define NDK_MR_FLAG_ALLOW_REMOTE_WRITE		0x5
#define NDK_MR_FLAG_RDMA_READ_SINK		0x8

/* Types of arm_cq(). */
#define NDK_CQ_NOTIFY_ERRORS			0
#define NDK_CQ_NOTIFY_ANY			1
#define NDK_CQ_NOTIFY_SOLICITED			2

/* Values that control_cq_interrupt_moderation() takes for "no limit". */
#define NDK_CQ_MODERATION_UNLIMITED		0xFFFFFFFF

/* struct ndk_result_ex.type */
#define NDK_OPERATION_TYPE_RECEIVE		0x0001
#define NDK_OPERATION_TYPE_SEND			0x0002
#define NDK_OPERATION_TYPE_FAST_REGISTER	0x0004
#define NDK_OPERATION_TYPE_BIND			0x0008
#define NDK_OPERATION_TYPE_INVALIDATE		0x0010
#define NDK_OPERATION_TYPE_READ			0x0020
#define NDK_OPERATION_TYPE_WRITE		0x0040
#define NDK_OPERATION_TYPE_RECEIVE_AND_INVALIDATE	0x8001

/* struct ndk_object_header.object_type */
#define NDK_OBJECT_TYPE_UNDEFINED		0
#define NDK_OBJECT_TYPE_ADAPTER			1
#define NDK_OBJECT_TYPE_QP			2
#define NDK_OBJECT_TYPE_CQ			3
#define NDK_OBJECT_TYPE_MR			4
#define NDK_OBJECT_TYPE_MW			5
#define NDK_OBJECT_TYPE_PD			6
#define NDK_OBJECT_TYPE_SHARED_ENDPOINT		7
#define NDK_OBJECT_TYPE_CONNECTOR		8
#define NDK_OBJECT_TYPE_LISTENER		9
#define NDK_OBJECT_TYPE_SRQ			10
#define NDK_OBJECT_TYPE_MAX			11

/**
 * struct ndk_version - a version of the interface
 * @major: must match
 * @minor: higher ones contain lower ones
 */
struct ndk_version {
	u16 major;
	u16 minor;
};

/**
 * struct ndk_object_header - what every object begins with (NDK_OBJECT_HEADER)
 * @version: the version that the adapter serves, not the one asked for
 * @object_type: NDK_OBJECT_TYPE_*
 * @reserved: zero when the object is handed out, then never touched by ndk;
 *	for whoever stands between consumer and provider
 */
struct ndk_object_header {
	struct ndk_version version;
	u32 object_type;
	u64 reserved[4];
};

/**
 * struct ndk_sge - one piece of local memory (NDK_SGE)
 * @virtual_address: an address inside the region that the token names; read
 *	as an index into the region, except by inline requests, which copy from it
 * @logical_address: with the privileged token: an address inside a page of
 *	struct ndk_logical_address_mapping
 * @length: bytes
 * @memory_region_token: local token of the region, or the privileged one;
 *	ignored by inline requests
 */
struct ndk_sge {
	union {
		void *virtual_address;
		u64 logical_address;
	};
	u32 length;
	u32 memory_region_token;
};

/**
 * struct ndk_result - how a work request ended (NDK_RESULT)
 * @status: an NDK status; negative: the connection is over
 * @bytes_transferred: of a receive that succeeded: length of the message
 * @qp_context: of the queue pair
 * @request_context: of the request
 */
struct ndk_result {
	s32 status;
	u32 bytes_transferred;
	void *qp_context;
	void *request_context;
};

/**
 * struct ndk_result_ex - how a work request ended, and what it was
 *	(NDK_RESULT_EX)
 * @status: as in struct ndk_result
 * @bytes_transferred: as in struct ndk_result
 * @qp_context: as in struct ndk_result
 * @request_context: as in struct ndk_result
 * @type: NDK_OPERATION_TYPE_*, right for failures too; send_and_invalidate()
 *	reports itself as a send
 * @provider_error_code: zero on success; for the log only
 * @type_specific_completion_output: of a receive-and-invalidate: the token
 *	that is invalid now
 */
struct ndk_result_ex {
	s32 status;
	u32 bytes_transferred;
	void *qp_context;
	void *request_context;
	u32 type;
	u32 provider_error_code;
	u64 type_specific_completion_output;
};

/**
 * struct ndk_mdl - a piece of pinned memory, or a chain of them (MDL)
 * @next: the next piece, or NULL
 * @start_va: page aligned; the piece begins @byte_offset behind it
 * @byte_offset: below PAGE_SIZE
 * @byte_count: length of the piece
 * @pages: the pages from @start_va on, as many as the piece touches
 *
 * The consumer keeps the pages in place: until the call that takes the chain
 * has completed for the chain itself, and as long as the region or the mapping
 * lives for the pages. ndk never dereferences @start_va.
 */
struct ndk_mdl {
	struct ndk_mdl *next;
	void *start_va;
	u32 byte_offset;
	u32 byte_count;
	struct page **pages;
};

/**
 * ndk_mdl_init() - describe kernel memory as a chain of one piece
 * @mdl: filled in
 * @va: memory from kmalloc(), alloc_pages() or vmalloc()
 * @len: its length, not zero
 * @pages: room for the pages; belongs to @mdl afterwards
 * @max_pages: how many pages there is room for
 *
 * Context: Any; does not sleep.
 * Return: 0, or -EINVAL if the length is out of range, there are too few
 * @pages, or the memory is of another kind.
 */
static inline int ndk_mdl_init(struct ndk_mdl *mdl, void *va, size_t len,
			       struct page **pages, u32 max_pages)
{
	u32 offset = offset_in_page(va);
	void *start = va - offset;
	u32 i, count;

	if (!len || len > U32_MAX - PAGE_SIZE)
		return -EINVAL;
	count = PAGE_ALIGN(offset + len) >> PAGE_SHIFT;
	if (count > max_pages)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		void *page = start + (size_t)i * PAGE_SIZE;

		if (is_vmalloc_addr(page))
			pages[i] = vmalloc_to_page(page);
		else
			pages[i] = virt_addr_valid(page) ? virt_to_page(page) : NULL;
		if (!pages[i])
			return -EINVAL;
	}
	mdl->next = NULL;
	mdl->start_va = start;
	mdl->byte_offset = offset;
	mdl->byte_count = len;
	mdl->pages = pages;
	return 0;
}

/**
 * struct ndk_logical_address_mapping - pages as the adapter addresses them
 *	(NDK_LOGICAL_ADDRESS_MAPPING)
 * @adapter_context: ndk's own; do not touch
 * @adapter_page_count: entries of @adapter_page_array
 * @adapter_page_array: addresses of whole pages, each aligned
 */
struct ndk_logical_address_mapping {
	void *adapter_context;
	u32 adapter_page_count;
	u64 adapter_page_array[];
};

/*
 * Callbacks. All run in softirq context or with softirqs off, never on the
 * stack of the call that started the request, and must not sleep. They may
 * call everything whose context is any but hard interrupt, closing the object
 * included.
 */

/**
 * typedef ndk_fn_create_completion - a create call has come to its end
 *	(NDK_FN_CREATE_COMPLETION)
 * @context: request_context of the call
 * @status: the end
 * @object: header of the new object, which is its first member; NULL if
 *	@status is a failure
 *
 * Called exactly once if the call returned %NDK_STATUS_PENDING, else never.
 */
typedef void (*ndk_fn_create_completion)(void *context, s32 status,
					 struct ndk_object_header *object);

/**
 * typedef ndk_fn_request_completion - a request has come to its end
 *	(NDK_FN_REQUEST_COMPLETION)
 * @context: request_context of the call
 * @status: the end
 *
 * Called exactly once if the call returned %NDK_STATUS_PENDING, else never.
 */
typedef void (*ndk_fn_request_completion)(void *context, s32 status);

/**
 * typedef ndk_fn_close_completion - an object is gone
 *	(NDK_FN_CLOSE_COMPLETION)
 * @context: request_context of the call
 *
 * The last callback for the object; all others have returned.
 */
typedef void (*ndk_fn_close_completion)(void *context);

/**
 * typedef ndk_fn_cq_notification - what the queue was armed for has happened
 *	(NDK_FN_CQ_NOTIFICATION_CALLBACK)
 * @cq_context: of create_cq()
 * @cq_status: %NDK_STATUS_SUCCESS; %NDK_STATUS_BUFFER_OVERFLOW or
 *	%NDK_STATUS_INTERNAL_ERROR if the queue and its queue pairs are broken
 *
 * At most one call for each arm, and calls for one queue never overlap. The
 * queue is unarmed at the call and may be armed again from inside.
 */
typedef void (*ndk_fn_cq_notification)(void *cq_context, s32 cq_status);

/**
 * typedef ndk_fn_srq_notification - a shared receive queue runs low
 *	(NDK_FN_SRQ_NOTIFICATION_CALLBACK)
 * @srq_context: of create_srq()
 * @srq_status: %NDK_STATUS_SUCCESS, or %NDK_STATUS_INTERNAL_ERROR if the queue
 *	and its queue pairs are broken
 *
 * One-shot: modify_srq() with a threshold arms it again.
 */
typedef void (*ndk_fn_srq_notification)(void *srq_context, s32 srq_status);

/**
 * typedef ndk_fn_connect_event - a peer wants to connect
 *	(NDK_FN_CONNECT_EVENT_CALLBACK)
 * @listener_context: of create_listener()
 * @connector: the request; belongs to the consumer, who accepts or rejects it,
 *	here or later, and closes it. Closing it undecided rejects the peer.
 */
typedef void (*ndk_fn_connect_event)(void *listener_context,
				     struct ndk_connector *connector);

/**
 * typedef ndk_fn_disconnect_event - the peer has disconnected
 *	(NDK_FN_DISCONNECT_EVENT_CALLBACK)
 * @context: given with accept() or complete_connect()
 *
 * Once at most, and not after a disconnect of the own side. Outstanding
 * requests stay where they are until the consumer disconnects, flushes or
 * closes.
 */
typedef void (*ndk_fn_disconnect_event)(void *context);

/**
 * typedef ndk_fn_disconnect_event_ex - the peer has disconnected, with a reason
 *	(NDK_FN_DISCONNECT_EVENT_CALLBACK_EX)
 * @context: given with accept_ex() or complete_connect_ex()
 * @reason: the provider's; zero if there is none
 */
typedef void (*ndk_fn_disconnect_event_ex)(void *context, u32 reason);

/* The first two entries of every table but the adapter's. */

/**
 * typedef ndk_fn_close - close an object (NDK_FN_CLOSE_OBJECT)
 * @object: header of the object
 * @completion: called if the result is %NDK_STATUS_PENDING
 * @request_context: for @completion
 *
 * Cannot fail. Pends until the callbacks of the object have returned and the
 * objects made from it are gone; what that needs (rejecting, disconnecting,
 * flushing) it starts by itself. A callback may close an object while the call
 * that led to it has not returned yet: that call keeps what it uses. Objects may
 * be closed in any order, but one whose close waits for another's must not be
 * waited for before the other is closed. The object must not be used afterwards.
 *
 * Context: any but hard interrupt.
 * Return: %NDK_STATUS_SUCCESS or %NDK_STATUS_PENDING.
 */
typedef s32 (*ndk_fn_close)(struct ndk_object_header *object,
			    ndk_fn_close_completion completion,
			    void *request_context);

/**
 * typedef ndk_fn_query_extension - ask for an extension of the interface
 *	(NDK_FN_QUERY_EXTENSION_INTERFACE)
 * @object: header of the object
 * @extension: which
 * @interface: its table, if there is one
 *
 * No extension is defined.
 *
 * Context: any but hard interrupt.
 * Return: %NDK_STATUS_NOT_SUPPORTED.
 */
typedef s32 (*ndk_fn_query_extension)(struct ndk_object_header *object,
				      const guid_t *extension,
				      const void **interface);

#endif
