/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adapters and protection domains.
 */
#ifndef NDK_ADAPTER_H
#define NDK_ADAPTER_H

#include <ndk/types.h>

/* struct ndk_adapter_info.adapter_flags */
#define NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED			0x00001
#define NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED		0x00002
#define NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED	0x00004
#define NDK_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED			0x00008
#define NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED	0x00010
#define NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED			0x00100
#define NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED		0x10000

/* struct ndk_adapter_info.rdma_technology */
#define NDK_RDMA_TECHNOLOGY_UNDEFINED	0
#define NDK_RDMA_TECHNOLOGY_IWARP	1
#define NDK_RDMA_TECHNOLOGY_INFINIBAND	2
#define NDK_RDMA_TECHNOLOGY_ROCE	3
#define NDK_RDMA_TECHNOLOGY_ROCE_V2	4

/**
 * struct ndk_adapter_info - what an adapter can do (NDK_ADAPTER_INFO)
 * @version: the highest version that it serves
 * @vendor_id: its maker
 * @device_id: its model
 * @max_registration_size: bytes of a region
 * @max_window_size: bytes of a window
 * @frmr_page_count: pages of a fast-register region; at least 16
 * @max_initiator_request_sge: entries of a send or a write
 * @max_receive_request_sge: entries of a receive
 * @max_read_request_sge: entries of a read
 * @max_transfer_length: bytes of a request
 * @max_inline_data_size: bytes of an inline request
 * @max_inbound_read_limit: reads of the peer at once
 * @max_outbound_read_limit: reads of this side at once
 * @max_receive_queue_depth: receives of a queue pair
 * @max_initiator_queue_depth: initiator requests of a queue pair
 * @max_srq_depth: receives of a shared receive queue; 0: there are none
 * @max_cq_depth: entries of a completion queue
 * @large_request_threshold: bytes from which on a consumer does better to
 *	register memory than to copy it
 * @max_caller_data: bytes of private data with connect()
 * @max_callee_data: bytes of private data with accept() and reject()
 * @adapter_flags: NDK_ADAPTER_FLAG_*
 * @rdma_technology: NDK_RDMA_TECHNOLOGY_*
 *
 * Each limit can be used in full.
 */
struct ndk_adapter_info {
	struct ndk_version version;
	u32 vendor_id;
	u32 device_id;
	u64 max_registration_size;
	u64 max_window_size;
	u32 frmr_page_count;
	u32 max_initiator_request_sge;
	u32 max_receive_request_sge;
	u32 max_read_request_sge;
	u32 max_transfer_length;
	u32 max_inline_data_size;
	u32 max_inbound_read_limit;
	u32 max_outbound_read_limit;
	u32 max_receive_queue_depth;
	u32 max_initiator_queue_depth;
	u32 max_srq_depth;
	u32 max_cq_depth;
	u32 large_request_threshold;
	u32 max_caller_data;
	u32 max_callee_data;
	u32 adapter_flags;
	u32 rdma_technology;
};

/**
 * struct ndk_adapter_dispatch - what an adapter does (NDK_ADAPTER_DISPATCH)
 *
 * It has no close: an adapter is closed with ndk_close_adapter().
 */
struct ndk_adapter_dispatch {
	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @query_adapter_info: Returns the limits (NDK_FN_QUERY_ADAPTER_INFO).
	 *
	 * @buffer_size is the room at @info in bytes; afterwards what was
	 * written, or after BUFFER_TOO_SMALL what is needed.
	 *
	 * Context: process, may sleep. Completion: at once.
	 * Status: SUCCESS, BUFFER_TOO_SMALL.
	 */
	s32 (*query_adapter_info)(struct ndk_adapter *adapter,
				  struct ndk_adapter_info *info,
				  u32 *buffer_size);

	/**
	 * @create_cq: Makes a completion queue (NDK_FN_CREATE_CQ).
	 *
	 * @depth, from 1 to max_cq_depth, is kept exactly: one entry more breaks
	 * the queue and all queue pairs on it. @affinity, which may be NULL and
	 * is read during the call only, is where @notification should run, a
	 * preference only. A queue that is never armed never calls.
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER, INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_cq)(struct ndk_adapter *adapter, u32 depth,
			 ndk_fn_cq_notification notification, void *cq_context,
			 const struct cpumask *affinity,
			 ndk_fn_create_completion completion,
			 void *request_context, struct ndk_cq **cq);

	/**
	 * @create_pd: Makes a protection domain (NDK_FN_CREATE_PD).
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_pd)(struct ndk_adapter *adapter,
			 ndk_fn_create_completion completion,
			 void *request_context, struct ndk_pd **pd);

	/**
	 * @create_shared_endpoint: Takes a local address for many outgoing
	 * connections (NDK_FN_CREATE_SHARED_ENDPOINT).
	 *
	 * Port 0 takes a free one. The address is read during the call only.
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES, SHARING_VIOLATION,
	 * INVALID_ADDRESS, TOO_MANY_ADDRESSES.
	 */
	s32 (*create_shared_endpoint)(struct ndk_adapter *adapter,
				      const struct sockaddr *address,
				      u32 address_length,
				      ndk_fn_create_completion completion,
				      void *request_context,
				      struct ndk_shared_endpoint **endpoint);

	/**
	 * @create_connector: Makes the active end of a connection to be
	 * (NDK_FN_CREATE_CONNECTOR).
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_connector)(struct ndk_adapter *adapter,
				ndk_fn_create_completion completion,
				void *request_context,
				struct ndk_connector **connector);

	/**
	 * @create_listener: Makes a listener, which does not listen yet
	 * (NDK_FN_CREATE_LISTENER).
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_listener)(struct ndk_adapter *adapter,
			       ndk_fn_connect_event connect_event,
			       void *connect_event_context,
			       ndk_fn_create_completion completion,
			       void *request_context,
			       struct ndk_listener **listener);

	/**
	 * @build_lam: Maps memory to addresses of the adapter
	 * (NDK_FN_BUILD_LAM).
	 *
	 * The first @length bytes of the chain, which must be virtually
	 * contiguous. @lam_size is the room at @lam in bytes, array included;
	 * after BUFFER_TOO_SMALL what is needed. @fbo is where the memory
	 * begins in the first page. The page array goes into fast_register() or,
	 * with the privileged token, into struct ndk_sge.logical_address. @lam,
	 * @lam_size and @fbo must stay until the call has completed.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER, INSUFFICIENT_RESOURCES,
	 * BUFFER_TOO_SMALL.
	 */
	s32 (*build_lam)(struct ndk_adapter *adapter, struct ndk_mdl *mdl,
			 u64 length, ndk_fn_request_completion completion,
			 void *request_context,
			 struct ndk_logical_address_mapping *lam,
			 u32 *lam_size, u32 *fbo);

	/**
	 * @release_lam: Undoes build_lam() (NDK_FN_RELEASE_LAM).
	 *
	 * When every request that used the addresses has completed, and every
	 * region registered over them is invalidated or closed.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 */
	void (*release_lam)(struct ndk_adapter *adapter,
			    struct ndk_logical_address_mapping *lam);
};

/**
 * struct ndk_adapter - an open adapter (NDK_ADAPTER)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_adapter {
	struct ndk_object_header header;
	const struct ndk_adapter_dispatch *dispatch;
};

/**
 * struct ndk_pd_dispatch - what a protection domain does (NDK_PD_DISPATCH)
 */
struct ndk_pd_dispatch {
	/** @close: See ndk_fn_close(). */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @create_mr: Makes a memory region, not registered yet
	 * (NDK_FN_CREATE_MR).
	 *
	 * @fast_register decides for good whether it is for fast_register() or
	 * for register_mr().
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_mr)(struct ndk_pd *pd, bool fast_register,
			 ndk_fn_create_completion completion,
			 void *request_context, struct ndk_mr **mr);

	/**
	 * @create_mw: Makes a memory window, which grants nothing until bound
	 * (NDK_FN_CREATE_MW).
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_mw)(struct ndk_pd *pd, ndk_fn_create_completion completion,
			 void *request_context, struct ndk_mw **mw);

	/**
	 * @create_srq: Makes a shared receive queue (NDK_FN_CREATE_SRQ).
	 *
	 * @notification, which may be NULL, comes when the number of queued
	 * receives falls below @notify_threshold; a new, empty queue is quiet.
	 * @affinity is as in create_cq().
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER, INSUFFICIENT_RESOURCES,
	 * NOT_SUPPORTED.
	 */
	s32 (*create_srq)(struct ndk_pd *pd, u32 depth,
			  u32 max_receive_request_sge, u32 notify_threshold,
			  ndk_fn_srq_notification notification,
			  void *srq_context, const struct cpumask *affinity,
			  ndk_fn_create_completion completion,
			  void *request_context, struct ndk_srq **srq);

	/**
	 * @create_qp: Makes a queue pair (NDK_FN_CREATE_QP).
	 *
	 * Both queues may complete into one completion queue. @qp_context comes
	 * with every result. The limits are those of struct ndk_adapter_info.
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER (limits; a queue of
	 * another adapter), INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_qp)(struct ndk_pd *pd, struct ndk_cq *receive_cq,
			 struct ndk_cq *initiator_cq, void *qp_context,
			 u32 receive_queue_depth, u32 initiator_queue_depth,
			 u32 max_receive_request_sge,
			 u32 max_initiator_request_sge, u32 inline_data_size,
			 ndk_fn_create_completion completion,
			 void *request_context, struct ndk_qp **qp);

	/**
	 * @create_qp_with_srq: Makes a queue pair that takes its receives from
	 * @srq (NDK_FN_CREATE_QP_WITH_SRQ).
	 *
	 * Context: any but hard interrupt. Completion: create.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER (limits; a queue of
	 * another adapter; @srq of another protection domain),
	 * INSUFFICIENT_RESOURCES.
	 */
	s32 (*create_qp_with_srq)(struct ndk_pd *pd, struct ndk_cq *receive_cq,
				  struct ndk_cq *initiator_cq,
				  struct ndk_srq *srq, void *qp_context,
				  u32 initiator_queue_depth,
				  u32 max_initiator_request_sge,
				  u32 inline_data_size,
				  ndk_fn_create_completion completion,
				  void *request_context, struct ndk_qp **qp);

	/**
	 * @get_privileged_memory_region_token: Gives the token for logical
	 * addresses (NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN).
	 *
	 * Local read and write without registration; never any remote access.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 */
	void (*get_privileged_memory_region_token)(struct ndk_pd *pd,
						   u32 *token);
};

/**
 * struct ndk_pd - a protection domain (NDK_PD)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_pd {
	struct ndk_object_header header;
	const struct ndk_pd_dispatch *dispatch;
};

#endif
