/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C functions for the inlines and macros that src/sys and src/rdma need.
 * Each does one thing and decides nothing.
 */
#ifndef NDK_SHIM_H
#define NDK_SHIM_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netdevice.h>
#include <linux/scatterlist.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/* sys/softirq.rs */
bool ndk_may_run_bh(void);
void ndk_bh_disable(void);
void ndk_bh_enable(void);
struct workqueue_struct *ndk_wq_alloc_bh(const char *name);
struct workqueue_struct *ndk_wq_alloc_unbound(const char *name);
bool ndk_queue_work_on(struct workqueue_struct *wq, struct work_struct *work,
		       u32 cpu);

/* sys/cpu.rs */
u32 ndk_cpu_current(void);
u32 ndk_cpu_ids(void);
u32 ndk_cpu_possible(void);
u32 ndk_cpu_online_count(void);
bool ndk_cpu_is_online(u32 cpu);
void *ndk_percpu_alloc(u32 counters);
void ndk_percpu_free(void *counters);
void ndk_percpu_add(void *counters, u32 index, u64 n);
u64 ndk_percpu_sum(void *counters, u32 index);

/* sys/log.rs */
bool ndk_log_allowed(void);

/* sys/span.rs */
bool ndk_is_direct_mapped(u64 addr, u64 len);

/* sys/event.rs, sys/timer.rs */
void ndk_completion_reinit(void *completion);
unsigned long ndk_jiffies_in(u32 ms);

/* sys/netdev.rs */
struct net *ndk_netdev_net(struct net_device *dev);
void ndk_netdev_hold(struct net_device *dev);
void ndk_netdev_put(struct net_device *dev);
void ndk_netdev_name(const struct net_device *dev, char *name);
u32 ndk_netdev_mtu(const struct net_device *dev);
bool ndk_netdev_is_up(const struct net_device *dev);
bool ndk_netdev_is_supported(const struct net_device *dev);
u64 ndk_netdev_net_cookie(const struct net_device *dev);
bool ndk_netdev_owns_v4(struct net_device *dev, __be32 addr);
bool ndk_netdev_owns_v6(struct net_device *dev, const struct in6_addr *addr);
bool ndk_netdev_local_v4(struct net_device *dev, __be32 addr);
bool ndk_netdev_local_v6(struct net_device *dev, const struct in6_addr *addr);
struct net_device *ndk_netdev_of_notifier(void *info);
int ndk_netdev_loopback(struct net_device **dev);

/* rdma/qp.rs: one space of queue pair numbers for the whole module */
int ndk_qpn_reserve(u32 *qpn);
void ndk_qpn_publish(u32 qpn, void *qp);
void *ndk_qpn_find(u32 qpn);
void ndk_qpn_free(u32 qpn);

/* rdma/memory.rs */
struct scatterlist *ndk_sg_entry(struct scatterlist *sg, u64 *addr, u32 *len);

#endif
