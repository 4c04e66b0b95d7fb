/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory regions and memory windows.
 */
#ifndef NDK_MEMORY_H
#define NDK_MEMORY_H

#include <ndk/types.h>

/**
 * struct ndk_mr_dispatch - what a memory region does (NDK_MR_DISPATCH)
 */
struct ndk_mr_dispatch {
	/**
	 * @close: See ndk_fn_close(). Ends all access; pends while a window is
	 * bound to the region.
	 */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @register_mr: Registers memory for as long as the consumer likes
	 * (NDK_FN_REGISTER_MR).
	 *
	 * The first @length bytes of the chain, which must be virtually
	 * contiguous; the region's addresses begin with the chain's first. @mdl
	 * must stay until the call has completed. @flags: NDK_MR_FLAG_*; local
	 * read is always granted. Not for a region made for fast registration.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER, INVALID_DEVICE_REQUEST,
	 * INSUFFICIENT_RESOURCES.
	 */
	s32 (*register_mr)(struct ndk_mr *mr, struct ndk_mdl *mdl, u64 length,
			   u32 flags, ndk_fn_request_completion completion,
			   void *request_context);

	/**
	 * @deregister_mr: Undoes register_mr() (NDK_FN_DEREGISTER_MR).
	 *
	 * When it has completed no access is possible, and the region can be
	 * registered anew. Refused while windows are bound.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INVALID_DEVICE_REQUEST,
	 * INSUFFICIENT_RESOURCES.
	 */
	s32 (*deregister_mr)(struct ndk_mr *mr,
			     ndk_fn_request_completion completion,
			     void *request_context);

	/**
	 * @initialize_fast_register_mr: Prepares a region for fast_register()
	 * (NDK_FN_INITIALIZE_FAST_REGISTER_MR).
	 *
	 * Once for each region: the most pages that it will hold, and whether
	 * the peer may ever get at them.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER, INVALID_DEVICE_REQUEST,
	 * INSUFFICIENT_RESOURCES, IMPLEMENTATION_LIMIT.
	 */
	s32 (*initialize_fast_register_mr)(struct ndk_mr *mr,
					   u32 adapter_page_count,
					   bool allow_remote_access,
					   ndk_fn_request_completion completion,
					   void *request_context);

	/**
	 * @get_remote_token: Gives what the peer names the memory by
	 * (NDK_FN_GET_REMOTE_TOKEN_FROM_MR).
	 *
	 * Host byte order. Once registered; of a fast-register region as soon
	 * as fast_register() has returned, and a new one each time. Before that
	 * it grants nothing.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 */
	u32 (*get_remote_token)(struct ndk_mr *mr);

	/**
	 * @get_local_token: Gives what struct ndk_sge names the memory by
	 * (NDK_FN_GET_LOCAL_TOKEN_FROM_MR).
	 *
	 * Once register_mr() or initialize_fast_register_mr() has completed; it
	 * stays the same across fast_register().
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 */
	u32 (*get_local_token)(struct ndk_mr *mr);
};

/**
 * struct ndk_mr - a memory region (NDK_MR)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_mr {
	struct ndk_object_header header;
	const struct ndk_mr_dispatch *dispatch;
};

/**
 * struct ndk_mw_dispatch - what a memory window does (NDK_MW_DISPATCH)
 */
struct ndk_mw_dispatch {
	/** @close: See ndk_fn_close(). Unbinds the window. */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @get_remote_token: Gives what the peer names the window by
	 * (NDK_FN_GET_REMOTE_TOKEN_FROM_MW).
	 *
	 * Host byte order. As soon as bind() has returned, and a new one each
	 * time.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 */
	u32 (*get_remote_token)(struct ndk_mw *mw);
};

/**
 * struct ndk_mw - a memory window (NDK_MW)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_mw {
	struct ndk_object_header header;
	const struct ndk_mw_dispatch *dispatch;
};

#endif
