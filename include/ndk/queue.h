/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs, completion queues, shared receive queues.
 */
#ifndef NDK_QUEUE_H
#define NDK_QUEUE_H

#include <ndk/types.h>

/**
 * DOC: work requests
 *
 * The functions of a queue pair that post a request, flush() aside, have this
 * in common:
 *
 * - SUCCESS means accepted: exactly one result will be in the completion queue
 *   of that queue (none if SILENT_SUCCESS was given and the request succeeds).
 *   After any other value there is no result, and the queue pair goes on.
 * - Lists are read during the call only.
 * - Initiator requests are all but receive(). They are refused, in this order,
 *   with CONNECTION_INVALID if the queue pair is not connected,
 *   INVALID_PARAMETER for a flag that the function does not take,
 *   DATA_OVERRUN for too many entries, BUFFER_OVERFLOW for too many bytes, what
 *   the function itself names, and NO_MORE_ENTRIES if the queue is full.
 * - A request that fails later ends the connection; what follows it completes
 *   with CANCELLED.
 * - Calls for one queue must not overlap; receives and initiator requests may.
 *
 * Flags that several take: SILENT_SUCCESS, no result on success; READ_FENCE,
 * begin when all earlier reads are complete; DEFER, ndk may hold the request
 * back until one without the flag follows (which the consumer owes, unless a
 * post fails: then everything held back is under way).
 */

/**
 * struct ndk_qp_dispatch - what a queue pair does (NDK_QP_DISPATCH)
 */
struct ndk_qp_dispatch {
	/** @close: See ndk_fn_close(). Pends until its connector is closed. */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @flush: Cancels all requests of both queues (NDK_FN_FLUSH).
	 *
	 * Does not wait: each request completes once, with CANCELLED if it was
	 * not done yet, silent ones too. The queue pair sends no more. May run
	 * beside a post.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Results are in the completion queues.
	 */
	void (*flush)(struct ndk_qp *qp);

	/**
	 * @send: Sends the bytes of @sgl as one message, for one receive of
	 * the peer (NDK_FN_SEND).
	 *
	 * SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT (the peer's receive
	 * satisfies a SOLICITED arm), INLINE (the bytes are copied during the
	 * call; tokens do not matter, and the number of entries is not limited),
	 * DEFER. @nsge may be 0.
	 *
	 * Context: any but hard interrupt. Completion: result of type SEND.
	 * Status: CONNECTION_INVALID, BUFFER_OVERFLOW also for more inline
	 * bytes than were given to create_qp().
	 * Later: ACCESS_VIOLATION, REMOTE_RESOURCES, IO_TIMEOUT, CANCELLED.
	 */
	s32 (*send)(struct ndk_qp *qp, void *request_context,
		    const struct ndk_sge *sgl, u32 nsge, u32 flags);

	/**
	 * @receive: Gives memory for one message (NDK_FN_RECEIVE).
	 *
	 * Also before the connection is up. Never silent, never deferred. Not
	 * for a queue pair with a shared receive queue.
	 *
	 * Context: any but hard interrupt. Completion: result of type RECEIVE
	 * or RECEIVE_AND_INVALIDATE.
	 * Status: NO_MORE_ENTRIES, DATA_OVERRUN, INVALID_DEVICE_REQUEST.
	 * Later: BUFFER_OVERFLOW, ACCESS_VIOLATION, INVALID_DEVICE_REQUEST,
	 * CANCELLED.
	 */
	s32 (*receive)(struct ndk_qp *qp, void *request_context,
		       const struct ndk_sge *sgl, u32 nsge);

	/**
	 * @bind: Opens a part of a region to the peer through a window
	 * (NDK_FN_BIND).
	 *
	 * @virtual_address is an index into @mr, which must be registered with
	 * register_mr(), in the same protection domain. @flags: one of
	 * ALLOW_REMOTE_READ and ALLOW_REMOTE_WRITE at least, SILENT_SUCCESS,
	 * READ_FENCE, DEFER. The token is there when the call returns, for the
	 * peer of this queue pair alone. Invalidate before binding again.
	 *
	 * Context: any but hard interrupt. Completion: result of type BIND.
	 * Status: CONNECTION_INVALID, INVALID_PARAMETER (range, objects),
	 * ACCESS_VIOLATION (remote write over memory registered without local
	 * write).
	 * Later: INVALID_DEVICE_REQUEST, CANCELLED.
	 */
	s32 (*bind)(struct ndk_qp *qp, void *request_context,
		    struct ndk_mr *mr, struct ndk_mw *mw,
		    const void *virtual_address, u64 length, u32 flags);

	/**
	 * @fast_register: Registers pages with a request in the queue
	 * (NDK_FN_FAST_REGISTER).
	 *
	 * The pages are those of build_lam(), whole and aligned. The region
	 * begins @fbo bytes into the first, is @length bytes long, and its
	 * addresses begin with @base_virtual_address, which must have @fbo as
	 * its offset in a page. @flags: ALLOW_REMOTE_READ, ALLOW_LOCAL_WRITE,
	 * ALLOW_REMOTE_WRITE, RDMA_READ_SINK, SILENT_SUCCESS, READ_FENCE, DEFER.
	 * The new remote token is there when the call returns; with DEFER, a
	 * send that carries it may follow at once. The array is read during the
	 * call only. Invalidate before registering again.
	 *
	 * Context: any but hard interrupt. Completion: result of type
	 * FAST_REGISTER.
	 * Status: CONNECTION_INVALID, INVALID_PARAMETER (counts, offsets, @mr
	 * of another protection domain or not initialized for this),
	 * ACCESS_VIOLATION (remote rights that initialize_fast_register_mr()
	 * did not allow).
	 * Later: INVALID_DEVICE_REQUEST (valid already), CANCELLED.
	 */
	s32 (*fast_register)(struct ndk_qp *qp, void *request_context,
			     struct ndk_mr *mr, u32 adapter_page_count,
			     const u64 *adapter_page_array, u32 fbo, u64 length,
			     u64 base_virtual_address, u32 flags);

	/**
	 * @invalidate: Ends access through a fast-register region or a window
	 * (NDK_FN_INVALIDATE).
	 *
	 * @mr_or_mw is the header of either. When the result is there no access
	 * runs or can begin, and the object can be registered or bound anew.
	 * @flags: SILENT_SUCCESS, READ_FENCE, DEFER. A region of register_mr()
	 * is for deregister_mr(), not for this.
	 *
	 * Context: any but hard interrupt. Completion: result of type
	 * INVALIDATE.
	 * Status: CONNECTION_INVALID, INVALID_PARAMETER (wrong kind of object,
	 * or one of another protection domain).
	 * Later: INVALID_DEVICE_REQUEST (not valid, as after an invalidation by
	 * the peer), CANCELLED.
	 */
	s32 (*invalidate)(struct ndk_qp *qp, void *request_context,
			  struct ndk_object_header *mr_or_mw, u32 flags);

	/**
	 * @read: Fetches memory of the peer (NDK_FN_READ).
	 *
	 * Host byte order. @sgl needs local write. @flags: SILENT_SUCCESS,
	 * READ_FENCE, RDMA_READ_LOCAL_INVALIDATE (the token of the first entry
	 * is invalid when the result is there; ignored by an adapter without
	 * that capability), DEFER. Reads beyond the limit of the connection wait
	 * in the queue.
	 *
	 * Context: any but hard interrupt. Completion: result of type READ.
	 * Status: CONNECTION_INVALID.
	 * Later: REMOTE_RESOURCES, ACCESS_VIOLATION, IO_TIMEOUT, CANCELLED.
	 */
	s32 (*read)(struct ndk_qp *qp, void *request_context,
		    const struct ndk_sge *sgl, u32 nsge, u64 remote_address,
		    u32 remote_token, u32 flags);

	/**
	 * @write: Puts bytes into memory of the peer, who is not notified
	 * (NDK_FN_WRITE).
	 *
	 * Host byte order. What is written is there before the receive of any
	 * later send completes. @flags: SILENT_SUCCESS, READ_FENCE, INLINE as in
	 * send(), DEFER.
	 *
	 * Context: any but hard interrupt. Completion: result of type WRITE.
	 * Status: CONNECTION_INVALID.
	 * Later: REMOTE_RESOURCES, ACCESS_VIOLATION, IO_TIMEOUT, CANCELLED.
	 */
	s32 (*write)(struct ndk_qp *qp, void *request_context,
		     const struct ndk_sge *sgl, u32 nsge, u64 remote_address,
		     u32 remote_token, u32 flags);

	/**
	 * @send_and_invalidate: Sends, and has the peer invalidate one of its
	 * own tokens (NDK_FN_SEND_AND_INVALIDATE).
	 *
	 * The token is invalid before the peer can see its receive, whose type
	 * is RECEIVE_AND_INVALIDATE and which carries the token. It must be that
	 * of a fast-register region of the peer's protection domain or of a
	 * window bound to the peer's queue pair, else the connection ends.
	 * Flags as in send().
	 *
	 * Context: any but hard interrupt. Completion: result of type SEND.
	 * As send().
	 */
	s32 (*send_and_invalidate)(struct ndk_qp *qp, void *request_context,
				   const struct ndk_sge *sgl, u32 nsge,
				   u32 flags, u32 remote_token);
};

/**
 * struct ndk_qp - a queue pair (NDK_QP)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_qp {
	struct ndk_object_header header;
	const struct ndk_qp_dispatch *dispatch;
};

/**
 * struct ndk_cq_dispatch - what a completion queue does (NDK_CQ_DISPATCH)
 *
 * The consumer serializes arm_cq(), get_cq_results(), get_cq_results_ex() on
 * one queue, and control_cq_interrupt_moderation().
 */
struct ndk_cq_dispatch {
	/**
	 * @close: See ndk_fn_close(). Also from inside the notification
	 * callback, for whose return it waits.
	 */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @resize_cq: Changes the depth (NDK_FN_RESIZE_CQ).
	 *
	 * Nothing is lost or reordered, and traffic may go on.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER, BUFFER_OVERFLOW (more
	 * entries are present), INSUFFICIENT_RESOURCES, NOT_SUPPORTED.
	 */
	s32 (*resize_cq)(struct ndk_cq *cq, u32 depth,
			 ndk_fn_request_completion completion,
			 void *request_context);

	/**
	 * @arm_cq: Asks for one notification (NDK_FN_ARM_CQ).
	 *
	 * @type NDK_CQ_NOTIFY_ANY: the next entry. SOLICITED: the next receive
	 * whose sender asked for it, or a request that failed. ERRORS: when the
	 * queue itself breaks, which satisfies the others too. Arming again adds
	 * to what is armed already. If an entry has come since the last
	 * notification and is still there, ANY and SOLICITED are satisfied at
	 * once, so nothing is lost between the last poll and the arm. Each arm of
	 * a queue that has broken is answered by one more notification.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * The callback follows from elsewhere.
	 */
	void (*arm_cq)(struct ndk_cq *cq, u32 type);

	/**
	 * @get_cq_results: Takes results out of the queue, oldest first
	 * (NDK_FN_GET_CQ_RESULTS).
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Returns how many, up to @nresults; 0: the queue was empty.
	 */
	u32 (*get_cq_results)(struct ndk_cq *cq, struct ndk_result results[],
			      u32 nresults);

	/**
	 * @control_cq_interrupt_moderation: Trades delay for fewer
	 * notifications (NDK_FN_CONTROL_CQ_INTERRUPT_MODERATION).
	 *
	 * A notification that is due waits for @interval microseconds or @count
	 * results, whichever is first. @interval 0, or @count 0 or 1, ends
	 * moderation; NDK_CQ_MODERATION_UNLIMITED for one leaves it to the
	 * other. Errors never wait. Off on a new queue.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Status: SUCCESS, NOT_SUPPORTED, INVALID_PARAMETER_MIX (both
	 * unlimited), INSUFFICIENT_RESOURCES.
	 */
	s32 (*control_cq_interrupt_moderation)(struct ndk_cq *cq, u32 interval,
					       u32 count);

	/**
	 * @get_cq_results_ex: As get_cq_results(), with the type of each
	 * request (NDK_FN_GET_CQ_RESULTS_EX). The two may be mixed.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Returns how many.
	 */
	u32 (*get_cq_results_ex)(struct ndk_cq *cq,
				 struct ndk_result_ex results[], u32 nresults);
};

/**
 * struct ndk_cq - a completion queue (NDK_CQ)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_cq {
	struct ndk_object_header header;
	const struct ndk_cq_dispatch *dispatch;
};

/**
 * struct ndk_srq_dispatch - what a shared receive queue does
 *	(NDK_SRQ_DISPATCH)
 */
struct ndk_srq_dispatch {
	/** @close: See ndk_fn_close(). Receives still queued are dropped. */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @modify_srq: Changes depth and threshold (NDK_FN_MODIFY_SRQ).
	 *
	 * 0 leaves either as it is. A threshold arms the notification, which
	 * comes at once if fewer receives are queued.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INVALID_PARAMETER, BUFFER_OVERFLOW (more
	 * receives are queued), INSUFFICIENT_RESOURCES.
	 */
	s32 (*modify_srq)(struct ndk_srq *srq, u32 depth, u32 notify_threshold,
			  ndk_fn_request_completion completion,
			  void *request_context);

	/**
	 * @srq_receive: Gives memory for one message to whichever queue pair
	 * needs it first (NDK_FN_SRQ_RECEIVE).
	 *
	 * Calls for one queue must not overlap.
	 *
	 * Context: any but hard interrupt. Completion: result in the receive
	 * queue of that queue pair, with its context.
	 * Status: NO_MORE_ENTRIES, DATA_OVERRUN, INTERNAL_ERROR (the queue has
	 * broken).
	 */
	s32 (*srq_receive)(struct ndk_srq *srq, void *request_context,
			   const struct ndk_sge *sgl, u32 nsge);
};

/**
 * struct ndk_srq - a shared receive queue (NDK_SRQ)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_srq {
	struct ndk_object_header header;
	const struct ndk_srq_dispatch *dispatch;
};

#endif
