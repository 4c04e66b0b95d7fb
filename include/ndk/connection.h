/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connectors, listeners, shared endpoints.
 */
#ifndef NDK_CONNECTION_H
#define NDK_CONNECTION_H

#include <ndk/types.h>

/**
 * DOC: connecting
 *
 * The active side: connect(), whose completion says that the peer has
 * accepted; get_connection_data(); complete_connect() or reject(). The passive
 * side: the connect event; get_connection_data(); accept() or reject(). accept()
 * completes when the active side has called complete_connect().
 *
 * A queue pair is connected from the success of accept() or complete_connect()
 * on, until disconnect(), the closing of the connector, flush(), a failed
 * request, or the peer's disconnect; it is never connected a second time.
 *
 * Addresses and private data are read during the call only. The read limits
 * that are asked for are lowered without a word to what the adapter and the
 * peer allow; 0 forbids reads that way.
 */

/**
 * struct ndk_connector_dispatch - what a connector does
 *	(NDK_CONNECTOR_DISPATCH)
 */
struct ndk_connector_dispatch {
	/**
	 * @close: See ndk_fn_close(). Rejects a peer who waits for an answer,
	 * disconnects a connected one and flushes the queue pair.
	 */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @connect: Asks a listener for a connection (NDK_FN_CONNECT).
	 *
	 * Source port 0 takes a free one. After NETWORK_UNREACHABLE,
	 * HOST_UNREACHABLE, CONNECTION_REFUSED and IO_TIMEOUT it may be called
	 * again.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES,
	 * NETWORK_UNREACHABLE, HOST_UNREACHABLE, CONNECTION_REFUSED (nobody
	 * listens, or rejected), IO_TIMEOUT, SHARING_VIOLATION (source in use),
	 * INVALID_ADDRESS (source not the adapter's), TOO_MANY_ADDRESSES,
	 * ADDRESS_ALREADY_EXISTS, INVALID_BUFFER_SIZE, CONNECTION_ACTIVE,
	 * CONNECTION_INVALID (the queue pair was connected before, or the
	 * connector is in use), INVALID_PARAMETER (@qp is of another adapter).
	 */
	s32 (*connect)(struct ndk_connector *connector, struct ndk_qp *qp,
		       const struct sockaddr *source, u32 source_length,
		       const struct sockaddr *destination,
		       u32 destination_length, u32 inbound_read_limit,
		       u32 outbound_read_limit, const void *private_data,
		       u32 private_data_length,
		       ndk_fn_request_completion completion,
		       void *request_context);

	/**
	 * @connect_with_shared_endpoint: As connect(), from an address that
	 * several connections share (NDK_FN_CONNECT_WITH_SHARED_ENDPOINT).
	 *
	 * One connection to each destination.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: as connect() without SHARING_VIOLATION, INVALID_ADDRESS,
	 * TOO_MANY_ADDRESSES; INVALID_PARAMETER also if @endpoint is of another
	 * adapter.
	 */
	s32 (*connect_with_shared_endpoint)(struct ndk_connector *connector,
					    struct ndk_qp *qp,
					    struct ndk_shared_endpoint *endpoint,
					    const struct sockaddr *destination,
					    u32 destination_length,
					    u32 inbound_read_limit,
					    u32 outbound_read_limit,
					    const void *private_data,
					    u32 private_data_length,
					    ndk_fn_request_completion completion,
					    void *request_context);

	/**
	 * @complete_connect: Takes the connection that connect() got
	 * (NDK_FN_COMPLETE_CONNECT).
	 *
	 * @disconnect_event may be NULL.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, CONNECTION_INVALID (not connecting),
	 * CONNECTION_ABORTED (the peer gave up), IO_TIMEOUT.
	 */
	s32 (*complete_connect)(struct ndk_connector *connector,
				ndk_fn_disconnect_event disconnect_event,
				void *disconnect_event_context,
				ndk_fn_request_completion completion,
				void *request_context);

	/**
	 * @accept: Takes the connection that a connect event brought
	 * (NDK_FN_ACCEPT).
	 *
	 * @disconnect_event may be NULL.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, CONNECTION_ABORTED (the peer gave up),
	 * IO_TIMEOUT (it never completed), INVALID_BUFFER_SIZE,
	 * CONNECTION_ACTIVE, INVALID_PARAMETER (@qp is of another adapter).
	 */
	s32 (*accept)(struct ndk_connector *connector, struct ndk_qp *qp,
		      u32 inbound_read_limit, u32 outbound_read_limit,
		      const void *private_data, u32 private_data_length,
		      ndk_fn_disconnect_event disconnect_event,
		      void *disconnect_event_context,
		      ndk_fn_request_completion completion,
		      void *request_context);

	/**
	 * @reject: Refuses the connection, on the passive side or after
	 * connect() has completed on the active one (NDK_FN_REJECT).
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Status: SUCCESS, CONNECTION_ABORTED (the peer is gone),
	 * INVALID_BUFFER_SIZE.
	 */
	s32 (*reject)(struct ndk_connector *connector, const void *private_data,
		      u32 private_data_length);

	/**
	 * @get_connection_data: Returns the effective read limits and the peer's
	 * private data (NDK_FN_GET_CONNECTION_DATA).
	 *
	 * Before accept() or complete_connect(), and after a connect() that the
	 * peer has rejected with private data (the limits are 0 then).
	 * @private_data_length is the room in bytes; after SUCCESS and
	 * BUFFER_TOO_SMALL it is the room needed for any private data, not the
	 * peer's length. NULL with room 0 succeeds, and asks for the limits and
	 * the size alone; a buffer with too little room, which 0 may be, gets
	 * what fits and BUFFER_TOO_SMALL. The limits may be NULL, the length
	 * only if @private_data is.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Status: SUCCESS, BUFFER_TOO_SMALL, INVALID_PARAMETER (NULL with
	 * room, or a buffer without length), CONNECTION_INVALID; after the last
	 * two nothing is written.
	 */
	s32 (*get_connection_data)(struct ndk_connector *connector,
				   u32 *inbound_read_limit,
				   u32 *outbound_read_limit,
				   void *private_data,
				   u32 *private_data_length);

	/**
	 * @get_local_address: Returns the own address
	 * (NDK_FN_GET_LOCAL_ADDRESS).
	 *
	 * @address_length is the room in bytes; afterwards the size of the
	 * address, 16 or 28. With less room, or NULL for @address, it is
	 * BUFFER_TOO_SMALL, and nothing else is written.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Status: SUCCESS, BUFFER_TOO_SMALL, CONNECTION_INVALID,
	 * INVALID_PARAMETER (no length).
	 */
	s32 (*get_local_address)(struct ndk_connector *connector,
				 struct sockaddr *address, u32 *address_length);

	/**
	 * @get_peer_address: Returns the peer's address
	 * (NDK_FN_GET_PEER_ADDRESS).
	 *
	 * As get_local_address().
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Status: SUCCESS, BUFFER_TOO_SMALL, CONNECTION_INVALID.
	 */
	s32 (*get_peer_address)(struct ndk_connector *connector,
				struct sockaddr *address, u32 *address_length);

	/**
	 * @disconnect: Ends the connection, then flushes the queue pair
	 * (NDK_FN_DISCONNECT).
	 *
	 * The peer gets its disconnect event, this side none.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, IO_TIMEOUT, CONNECTION_INVALID.
	 */
	s32 (*disconnect)(struct ndk_connector *connector,
			  ndk_fn_request_completion completion,
			  void *request_context);

	/**
	 * @complete_connect_ex: As complete_connect(), with a disconnect event
	 * that reports a reason (NDK_FN_COMPLETE_CONNECT_EX).
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: as complete_connect().
	 */
	s32 (*complete_connect_ex)(struct ndk_connector *connector,
				   ndk_fn_disconnect_event_ex disconnect_event,
				   void *disconnect_event_context,
				   ndk_fn_request_completion completion,
				   void *request_context);

	/**
	 * @accept_ex: As accept(), with a disconnect event that reports a reason
	 * (NDK_FN_ACCEPT_EX).
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: as accept().
	 */
	s32 (*accept_ex)(struct ndk_connector *connector, struct ndk_qp *qp,
			 u32 inbound_read_limit, u32 outbound_read_limit,
			 const void *private_data, u32 private_data_length,
			 ndk_fn_disconnect_event_ex disconnect_event,
			 void *disconnect_event_context,
			 ndk_fn_request_completion completion,
			 void *request_context);
};

/**
 * struct ndk_connector - one end of a connection (NDK_CONNECTOR)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_connector {
	struct ndk_object_header header;
	const struct ndk_connector_dispatch *dispatch;
};

/**
 * struct ndk_listener_dispatch - what a listener does (NDK_LISTENER_DISPATCH)
 */
struct ndk_listener_dispatch {
	/**
	 * @close: See ndk_fn_close(). Refuses new peers at once, and pends
	 * until the connectors that came through it are closed.
	 */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @listen: Takes an address and lets connect events come
	 * (NDK_FN_LISTEN).
	 *
	 * IPv4 or IPv6; port 0 takes a free one. Events may come before the
	 * call returns. The address is read during the call only.
	 *
	 * Context: any but hard interrupt. Completion: request.
	 * Status: SUCCESS, PENDING, INSUFFICIENT_RESOURCES, SHARING_VIOLATION,
	 * INVALID_ADDRESS, TOO_MANY_ADDRESSES, INVALID_DEVICE_REQUEST (it
	 * listens already).
	 */
	s32 (*listen)(struct ndk_listener *listener,
		      const struct sockaddr *address, u32 address_length,
		      ndk_fn_request_completion completion,
		      void *request_context);

	/**
	 * @get_local_address: Returns the address, with the port that was taken
	 * (NDK_FN_GET_LISTENER_LOCAL_ADDRESS).
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Status: SUCCESS, BUFFER_TOO_SMALL, INVALID_DEVICE_STATE (does not
	 * listen).
	 */
	s32 (*get_local_address)(struct ndk_listener *listener,
				 struct sockaddr *address, u32 *address_length);

	/**
	 * @control_connect_events: Stops and starts connect events
	 * (NDK_FN_CONTROL_CONNECT_EVENTS).
	 *
	 * While paused, peers are refused as if nobody listened.
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 */
	void (*control_connect_events)(struct ndk_listener *listener,
				       bool pause);
};

/**
 * struct ndk_listener - waits for peers (NDK_LISTENER)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_listener {
	struct ndk_object_header header;
	const struct ndk_listener_dispatch *dispatch;
};

/**
 * struct ndk_shared_endpoint_dispatch - what a shared endpoint does
 *	(NDK_SHARED_ENDPOINT_DISPATCH)
 */
struct ndk_shared_endpoint_dispatch {
	/** @close: See ndk_fn_close(). Pends until its connectors are closed. */
	ndk_fn_close close;

	/** @query_extension: See ndk_fn_query_extension(). */
	ndk_fn_query_extension query_extension;

	/**
	 * @get_local_address: Returns the address, with the port that was taken
	 * (NDK_FN_GET_SHARED_ENDPOINT_LOCAL_ADDRESS).
	 *
	 * Context: any but hard interrupt. Completion: at once.
	 * Status: SUCCESS, BUFFER_TOO_SMALL.
	 */
	s32 (*get_local_address)(struct ndk_shared_endpoint *endpoint,
				 struct sockaddr *address, u32 *address_length);
};

/**
 * struct ndk_shared_endpoint - a source address for many connections
 *	(NDK_SHARED_ENDPOINT)
 * @header: what all objects have
 * @dispatch: its functions; the consumer may replace the table
 */
struct ndk_shared_endpoint {
	struct ndk_object_header header;
	const struct ndk_shared_endpoint_dispatch *dispatch;
};

#endif
