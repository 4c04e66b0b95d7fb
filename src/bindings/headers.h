/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads. Only RDMA's own headers and the functions of shim.h are
 * turned into Rust; the rest is here so that they parse.
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
