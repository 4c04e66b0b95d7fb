/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The headers that bindgen reads. The file params chooses the names that become
 * Rust: those of the headers of RDMA and NDK, of shim.h and trace.h, and a few
 * types. The other headers are here so that these parse.
 */
#include <linux/netdevice.h>
#include <linux/inetdevice.h>
#include <net/net_namespace.h>
#include <ndk/ndk.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rvt-abi.h>

#include "shim.h"
#include "trace.h"
