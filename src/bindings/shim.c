// SPDX-License-Identifier: GPL-2.0
/*
 * C functions for the inlines and macros that src/sys and src/rdma need, and
 * for walks over the kernel's lists, which are shorter in C.  Each subject has
 * one file.
 */
#include "shim/cpu.c"
#include "shim/device.c"
#include "shim/gid.c"
#include "shim/inject.c"
#include "shim/mm.c"
#include "shim/module.c"
#include "shim/netdev.c"
#include "shim/qpn.c"
#include "shim/sync.c"
#include "shim/tcp.c"
#include "shim/trace.c"
#include "shim/user.c"
#include "shim/workqueue.c"
