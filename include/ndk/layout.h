/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The binary layout of the interface on 64-bit machines: whoever includes
 * ndk.h checks it.
 */
#ifndef NDK_LAYOUT_H
#define NDK_LAYOUT_H

#include <linux/build_bug.h>
#include <linux/stddef.h>

#ifdef CONFIG_64BIT

#define NDK_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size))
#define NDK_AT(type, member, offset) \
	static_assert(offsetof(struct type, member) == (offset))
/* A table: entry n is its n-th pointer. */
#define NDK_ENTRIES(type, count) \
	NDK_SIZE(type, (count) * sizeof(void *))
#define NDK_ENTRY(type, member, n) \
	NDK_AT(type, member, (n) * sizeof(void *))

NDK_SIZE(ndk_version, 4);
NDK_AT(ndk_version, major, 0);
NDK_AT(ndk_version, minor, 2);

NDK_SIZE(ndk_object_header, 40);
NDK_AT(ndk_object_header, version, 0);
NDK_AT(ndk_object_header, object_type, 4);
NDK_AT(ndk_object_header, reserved, 8);

NDK_SIZE(ndk_sge, 16);
NDK_AT(ndk_sge, virtual_address, 0);
NDK_AT(ndk_sge, logical_address, 0);
NDK_AT(ndk_sge, length, 8);
NDK_AT(ndk_sge, memory_region_token, 12);

NDK_SIZE(ndk_result, 24);
NDK_AT(ndk_result, status, 0);
NDK_AT(ndk_result, bytes_transferred, 4);
NDK_AT(ndk_result, qp_context, 8);
NDK_AT(ndk_result, request_context, 16);

NDK_SIZE(ndk_result_ex, 40);
NDK_AT(ndk_result_ex, status, 0);
NDK_AT(ndk_result_ex, bytes_transferred, 4);
NDK_AT(ndk_result_ex, qp_context, 8);
NDK_AT(ndk_result_ex, request_context, 16);
NDK_AT(ndk_result_ex, type, 24);
NDK_AT(ndk_result_ex, provider_error_code, 28);
NDK_AT(ndk_result_ex, type_specific_completion_output, 32);

NDK_SIZE(ndk_mdl, 32);
NDK_AT(ndk_mdl, next, 0);
NDK_AT(ndk_mdl, start_va, 8);
NDK_AT(ndk_mdl, byte_offset, 16);
NDK_AT(ndk_mdl, byte_count, 20);
NDK_AT(ndk_mdl, pages, 24);

NDK_SIZE(ndk_logical_address_mapping, 16);
NDK_AT(ndk_logical_address_mapping, adapter_context, 0);
NDK_AT(ndk_logical_address_mapping, adapter_page_count, 8);
NDK_AT(ndk_logical_address_mapping, adapter_page_array, 16);

NDK_SIZE(ndk_adapter_info, 104);
NDK_AT(ndk_adapter_info, version, 0);
NDK_AT(ndk_adapter_info, vendor_id, 4);
NDK_AT(ndk_adapter_info, device_id, 8);
NDK_AT(ndk_adapter_info, max_registration_size, 16);
NDK_AT(ndk_adapter_info, max_window_size, 24);
NDK_AT(ndk_adapter_info, frmr_page_count, 32);
NDK_AT(ndk_adapter_info, max_initiator_request_sge, 36);
NDK_AT(ndk_adapter_info, max_receive_request_sge, 40);
NDK_AT(ndk_adapter_info, max_read_request_sge, 44);
NDK_AT(ndk_adapter_info, max_transfer_length, 48);
NDK_AT(ndk_adapter_info, max_inline_data_size, 52);
NDK_AT(ndk_adapter_info, max_inbound_read_limit, 56);
NDK_AT(ndk_adapter_info, max_outbound_read_limit, 60);
NDK_AT(ndk_adapter_info, max_receive_queue_depth, 64);
NDK_AT(ndk_adapter_info, max_initiator_queue_depth, 68);
NDK_AT(ndk_adapter_info, max_srq_depth, 72);
NDK_AT(ndk_adapter_info, max_cq_depth, 76);
NDK_AT(ndk_adapter_info, large_request_threshold, 80);
NDK_AT(ndk_adapter_info, max_caller_data, 84);
NDK_AT(ndk_adapter_info, max_callee_data, 88);
NDK_AT(ndk_adapter_info, adapter_flags, 92);
NDK_AT(ndk_adapter_info, rdma_technology, 96);

NDK_SIZE(ndk_open_params, 32);
NDK_AT(ndk_open_params, name, 0);
NDK_AT(ndk_open_params, local_address, 8);
NDK_AT(ndk_open_params, net, 16);
NDK_AT(ndk_open_params, version, 24);

NDK_SIZE(ndk_adapter, 48);
NDK_AT(ndk_adapter, header, 0);
NDK_AT(ndk_adapter, dispatch, 40);
NDK_SIZE(ndk_pd, 48);
NDK_AT(ndk_pd, header, 0);
NDK_AT(ndk_pd, dispatch, 40);
NDK_SIZE(ndk_cq, 48);
NDK_AT(ndk_cq, header, 0);
NDK_AT(ndk_cq, dispatch, 40);
NDK_SIZE(ndk_qp, 48);
NDK_AT(ndk_qp, header, 0);
NDK_AT(ndk_qp, dispatch, 40);
NDK_SIZE(ndk_srq, 48);
NDK_AT(ndk_srq, header, 0);
NDK_AT(ndk_srq, dispatch, 40);
NDK_SIZE(ndk_mr, 48);
NDK_AT(ndk_mr, header, 0);
NDK_AT(ndk_mr, dispatch, 40);
NDK_SIZE(ndk_mw, 48);
NDK_AT(ndk_mw, header, 0);
NDK_AT(ndk_mw, dispatch, 40);
NDK_SIZE(ndk_connector, 48);
NDK_AT(ndk_connector, header, 0);
NDK_AT(ndk_connector, dispatch, 40);
NDK_SIZE(ndk_listener, 48);
NDK_AT(ndk_listener, header, 0);
NDK_AT(ndk_listener, dispatch, 40);
NDK_SIZE(ndk_shared_endpoint, 48);
NDK_AT(ndk_shared_endpoint, header, 0);
NDK_AT(ndk_shared_endpoint, dispatch, 40);

NDK_ENTRIES(ndk_adapter_dispatch, 9);
NDK_ENTRY(ndk_adapter_dispatch, query_extension, 0);
NDK_ENTRY(ndk_adapter_dispatch, query_adapter_info, 1);
NDK_ENTRY(ndk_adapter_dispatch, create_cq, 2);
NDK_ENTRY(ndk_adapter_dispatch, create_pd, 3);
NDK_ENTRY(ndk_adapter_dispatch, create_shared_endpoint, 4);
NDK_ENTRY(ndk_adapter_dispatch, create_connector, 5);
NDK_ENTRY(ndk_adapter_dispatch, create_listener, 6);
NDK_ENTRY(ndk_adapter_dispatch, build_lam, 7);
NDK_ENTRY(ndk_adapter_dispatch, release_lam, 8);

NDK_ENTRIES(ndk_pd_dispatch, 8);
NDK_ENTRY(ndk_pd_dispatch, close, 0);
NDK_ENTRY(ndk_pd_dispatch, query_extension, 1);
NDK_ENTRY(ndk_pd_dispatch, create_mr, 2);
NDK_ENTRY(ndk_pd_dispatch, create_mw, 3);
NDK_ENTRY(ndk_pd_dispatch, create_srq, 4);
NDK_ENTRY(ndk_pd_dispatch, create_qp, 5);
NDK_ENTRY(ndk_pd_dispatch, create_qp_with_srq, 6);
NDK_ENTRY(ndk_pd_dispatch, get_privileged_memory_region_token, 7);

NDK_ENTRIES(ndk_cq_dispatch, 7);
NDK_ENTRY(ndk_cq_dispatch, close, 0);
NDK_ENTRY(ndk_cq_dispatch, query_extension, 1);
NDK_ENTRY(ndk_cq_dispatch, resize_cq, 2);
NDK_ENTRY(ndk_cq_dispatch, arm_cq, 3);
NDK_ENTRY(ndk_cq_dispatch, get_cq_results, 4);
NDK_ENTRY(ndk_cq_dispatch, control_cq_interrupt_moderation, 5);
NDK_ENTRY(ndk_cq_dispatch, get_cq_results_ex, 6);

NDK_ENTRIES(ndk_qp_dispatch, 11);
NDK_ENTRY(ndk_qp_dispatch, close, 0);
NDK_ENTRY(ndk_qp_dispatch, query_extension, 1);
NDK_ENTRY(ndk_qp_dispatch, flush, 2);
NDK_ENTRY(ndk_qp_dispatch, send, 3);
NDK_ENTRY(ndk_qp_dispatch, receive, 4);
NDK_ENTRY(ndk_qp_dispatch, bind, 5);
NDK_ENTRY(ndk_qp_dispatch, fast_register, 6);
NDK_ENTRY(ndk_qp_dispatch, invalidate, 7);
NDK_ENTRY(ndk_qp_dispatch, read, 8);
NDK_ENTRY(ndk_qp_dispatch, write, 9);
NDK_ENTRY(ndk_qp_dispatch, send_and_invalidate, 10);

NDK_ENTRIES(ndk_srq_dispatch, 4);
NDK_ENTRY(ndk_srq_dispatch, close, 0);
NDK_ENTRY(ndk_srq_dispatch, query_extension, 1);
NDK_ENTRY(ndk_srq_dispatch, modify_srq, 2);
NDK_ENTRY(ndk_srq_dispatch, srq_receive, 3);

NDK_ENTRIES(ndk_mr_dispatch, 7);
NDK_ENTRY(ndk_mr_dispatch, close, 0);
NDK_ENTRY(ndk_mr_dispatch, query_extension, 1);
NDK_ENTRY(ndk_mr_dispatch, register_mr, 2);
NDK_ENTRY(ndk_mr_dispatch, deregister_mr, 3);
NDK_ENTRY(ndk_mr_dispatch, initialize_fast_register_mr, 4);
NDK_ENTRY(ndk_mr_dispatch, get_remote_token, 5);
NDK_ENTRY(ndk_mr_dispatch, get_local_token, 6);

NDK_ENTRIES(ndk_mw_dispatch, 3);
NDK_ENTRY(ndk_mw_dispatch, close, 0);
NDK_ENTRY(ndk_mw_dispatch, query_extension, 1);
NDK_ENTRY(ndk_mw_dispatch, get_remote_token, 2);

NDK_ENTRIES(ndk_connector_dispatch, 13);
NDK_ENTRY(ndk_connector_dispatch, close, 0);
NDK_ENTRY(ndk_connector_dispatch, query_extension, 1);
NDK_ENTRY(ndk_connector_dispatch, connect, 2);
NDK_ENTRY(ndk_connector_dispatch, connect_with_shared_endpoint, 3);
NDK_ENTRY(ndk_connector_dispatch, complete_connect, 4);
NDK_ENTRY(ndk_connector_dispatch, accept, 5);
NDK_ENTRY(ndk_connector_dispatch, reject, 6);
NDK_ENTRY(ndk_connector_dispatch, get_connection_data, 7);
NDK_ENTRY(ndk_connector_dispatch, get_local_address, 8);
NDK_ENTRY(ndk_connector_dispatch, get_peer_address, 9);
NDK_ENTRY(ndk_connector_dispatch, disconnect, 10);
NDK_ENTRY(ndk_connector_dispatch, complete_connect_ex, 11);
NDK_ENTRY(ndk_connector_dispatch, accept_ex, 12);

NDK_ENTRIES(ndk_listener_dispatch, 5);
NDK_ENTRY(ndk_listener_dispatch, close, 0);
NDK_ENTRY(ndk_listener_dispatch, query_extension, 1);
NDK_ENTRY(ndk_listener_dispatch, listen, 2);
NDK_ENTRY(ndk_listener_dispatch, get_local_address, 3);
NDK_ENTRY(ndk_listener_dispatch, control_connect_events, 4);

NDK_ENTRIES(ndk_shared_endpoint_dispatch, 3);
NDK_ENTRY(ndk_shared_endpoint_dispatch, close, 0);
NDK_ENTRY(ndk_shared_endpoint_dispatch, query_extension, 1);
NDK_ENTRY(ndk_shared_endpoint_dispatch, get_local_address, 2);

#undef NDK_ENTRY
#undef NDK_ENTRIES
#undef NDK_AT
#undef NDK_SIZE

#endif

#endif
