/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions of src/ndk/abi/adapter.rs that the exported functions call, and
 * the variables of src/sys/param.rs, src/rdma/link_type.rs and src/rdma/user.rs
 * that are module parameters.
 */
#ifndef NDK_EXPORT_H
#define NDK_EXPORT_H

#include <ndk/ndk.h>

s32 ndk_face_open(const struct ndk_open_params *params,
		  struct ndk_adapter **adapter);
bool ndk_face_close(struct ndk_adapter *adapter, ndk_fn_close_completion later,
		    void *context);

extern unsigned int ndk_rnr_timeout_ms;
extern bool ndk_mpa_crc;
extern char *ndk_link_type;
extern bool ndk_user_verbs;

#endif
