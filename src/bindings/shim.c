// SPDX-License-Identifier: GPL-2.0
/*
 * C functions for the inlines and macros that src/sys and src/rdma need.
 */
#include <linux/mm.h>
#include <linux/ratelimit.h>
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/etherdevice.h>
#include <linux/group_cpus.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rtnetlink.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>
#include <net/route.h>

#include "shim.h"

/*
 * Rust keeps a per-CPU address as a plain pointer.  With GCC __percpu is an address
 * space of its own on x86, which only an integer leads into and out of.
 */
#define NDK_TO_PERCPU(type, ptr)	((__force type __percpu *)(unsigned long)(ptr))
#define NDK_FROM_PERCPU(ptr)		((void *)(__force unsigned long)(ptr))

bool ndk_may_run_bh(void)
{
	return !in_hardirq() && !in_nmi() && !irqs_disabled();
}

bool ndk_in_softirq(void)
{
	return softirq_count() != 0;
}

bool ndk_bh_enter(void)
{
	if (!ndk_may_run_bh())
		return false;
	local_bh_disable();
	return true;
}

void ndk_bh_enable(void)
{
	local_bh_enable();
}

struct workqueue_struct *ndk_wq_alloc_bh(const char *name)
{
	return alloc_workqueue("%s", WQ_BH | WQ_PERCPU, 0, name);
}

bool ndk_in_task(void)
{
	return in_task();
}

struct workqueue_struct *ndk_wq_alloc_percpu(const char *name)
{
	return alloc_workqueue("%s", WQ_PERCPU | WQ_MEM_RECLAIM, 0, name);
}

struct workqueue_struct *ndk_wq_alloc_unbound(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
}

/* Returns false if @work is queued already. */
bool ndk_queue_work_on(struct workqueue_struct *wq, struct work_struct *work,
		       u32 cpu)
{
	bool queued;

	/* With preemption off no CPU can leave between the test and its use. */
	preempt_disable();
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		cpu = WORK_CPU_UNBOUND;
	queued = queue_work_on(cpu, wq, work);
	preempt_enable();
	return queued;
}

u32 ndk_cpu_current(void)
{
	return raw_smp_processor_id();
}

u32 ndk_cpu_ids(void)
{
	return nr_cpu_ids;
}

u32 ndk_cpu_possible(void)
{
	return num_possible_cpus();
}

/* The first processor of each group; a group beyond the last begins anew. */
int ndk_cpu_spread(u32 *cpus, u32 groups)
{
	struct cpumask *masks;
	unsigned int n;
	u32 i;

	masks = group_cpus_evenly(groups, &n);
	if (!masks)
		return -ENOMEM;
	for (i = 0; i < groups; i++)
		cpus[i] = n ? cpumask_first(&masks[i % n]) : 0;
	kfree(masks);
	return 0;
}

u32 ndk_cpu_online_count(void)
{
	return num_online_cpus();
}

bool ndk_cpu_is_online(u32 cpu)
{
	return cpu < nr_cpu_ids && cpu_online(cpu);
}

void *ndk_percpu_alloc(u32 counters)
{
	return NDK_FROM_PERCPU(__alloc_percpu(counters * sizeof(u64),
					      __alignof__(u64)));
}

void ndk_percpu_free(void *counters)
{
	free_percpu(NDK_TO_PERCPU(void, counters));
}

void ndk_percpu_add(void *counters, const struct ndk_add *adds, u32 n)
{
	u64 __percpu *p = NDK_TO_PERCPU(u64, counters);

	for (; n--; adds++)
		this_cpu_add(p[adds->index], adds->n);
}

u64 ndk_percpu_sum(void *counters, u32 index)
{
	u64 __percpu *p = NDK_TO_PERCPU(u64, counters);
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(&p[index], cpu));
	return sum;
}

void ndk_completion_reinit(void *completion)
{
	reinit_completion(completion);
}

unsigned long ndk_jiffies_in(u32 ms)
{
	return jiffies + msecs_to_jiffies(ms);
}

bool ndk_hrtimer_is_queued(struct hrtimer *timer)
{
	return hrtimer_is_queued(timer);
}

void ndk_netdev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

void ndk_netdev_put(struct net_device *dev)
{
	dev_put(dev);
}

/* @name has room for IFNAMSIZ bytes; a rename at the same time may mix both. */
void ndk_netdev_name(const struct net_device *dev, char *name)
{
	strscpy(name, dev->name, IFNAMSIZ);
}

/* @mac has room for ETH_ALEN bytes. */
bool ndk_netdev_mac(const struct net_device *dev, u8 *mac)
{
	if (dev->addr_len != ETH_ALEN)
		return false;
	memcpy(mac, dev->dev_addr, ETH_ALEN);
	return !is_zero_ether_addr(mac);
}

int ndk_netdev_vlan(const struct net_device *dev)
{
	return is_vlan_dev(dev) ? vlan_dev_vlan_id(dev) : -1;
}

u32 ndk_netdev_mtu(const struct net_device *dev)
{
	return READ_ONCE(dev->mtu);
}

bool ndk_netdev_is_up(const struct net_device *dev)
{
	return netif_running(dev) && netif_carrier_ok(dev);
}

bool ndk_netdev_is_supported(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER || dev->type == ARPHRD_LOOPBACK ||
	       dev->type == ARPHRD_NONE || dev->type == ARPHRD_IEEE802;
}

u64 ndk_netdev_net_cookie(const struct net_device *dev)
{
	return dev_net(dev)->net_cookie;
}

bool ndk_netdev_is_in_init_net(const struct net_device *dev)
{
	return net_eq(dev_net(dev), &init_net);
}

bool ndk_netdev_owns_v4(struct net_device *dev, __be32 addr)
{
	struct in_device *in_dev;
	struct in_ifaddr *ifa;
	bool found = false;

	rcu_read_lock();
	in_dev = __in_dev_get_rcu(dev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev)
			found |= ifa->ifa_local == addr;
	}
	rcu_read_unlock();
	return found;
}

bool ndk_netdev_owns_v6(struct net_device *dev, const struct in6_addr *addr)
{
	return IS_ENABLED(CONFIG_IPV6) &&
	       ipv6_chk_addr(dev_net(dev), addr, dev, 1);
}

/* To cma_validate_port() a VLAN device and the one below it are one. */
static bool ndk_is_same_port(const struct net_device *a, const struct net_device *b)
{
	return a == b || (is_vlan_dev(a) && vlan_dev_real_dev(a) == b) ||
	       (is_vlan_dev(b) && vlan_dev_real_dev(b) == a);
}

bool ndk_netdev_resolved_v4(struct net_device *dev, __be32 addr)
{
	struct net_device *found;
	bool same;

	rcu_read_lock();
	found = __ip_dev_find(dev_net(dev), addr, false);
	same = found && ndk_is_same_port(found, dev);
	rcu_read_unlock();
	return same;
}

bool ndk_netdev_resolved_v6(struct net_device *dev, const struct in6_addr *addr)
{
	struct net_device *found;
	bool same = false;

	if (!IS_ENABLED(CONFIG_IPV6))
		return false;
	rcu_read_lock();
	for_each_netdev_rcu(dev_net(dev), found) {
		if (!ipv6_chk_addr(dev_net(dev), addr, found, 1))
			continue;
		same = ndk_is_same_port(found, dev);
		break;
	}
	rcu_read_unlock();
	return same;
}

bool ndk_netdev_local_v4(struct net_device *dev, __be32 addr)
{
	return inet_addr_type(dev_net(dev), addr) == RTN_LOCAL;
}

bool ndk_netdev_local_v6(struct net_device *dev, const struct in6_addr *addr)
{
	return IS_ENABLED(CONFIG_IPV6) &&
	       ipv6_chk_addr(dev_net(dev), addr, NULL, 0);
}

struct net_device *ndk_netdev_of_notifier(void *info)
{
	return netdev_notifier_info_to_dev(info);
}

static DEFINE_XARRAY_FLAGS(ndk_qpns, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
static u32 ndk_qpn_next = NDK_QPN_FIRST;

int ndk_qpn_reserve(u32 *qpn)
{
	int ret = xa_alloc_cyclic_irq(&ndk_qpns, qpn, NULL,
				      XA_LIMIT(NDK_QPN_FIRST, NDK_QPN_LAST), &ndk_qpn_next,
				      GFP_KERNEL);

	return ret < 0 ? ret : 0;
}

/* Cannot fail: the slot was made when the number was reserved. */
void ndk_qpn_publish(u32 qpn, void *qp)
{
	xa_store_irq(&ndk_qpns, qpn, qp, GFP_KERNEL);
}

void *ndk_qpn_find(u32 qpn)
{
	return xa_load(&ndk_qpns, qpn);
}

void ndk_qpn_free(u32 qpn)
{
	xa_erase_irq(&ndk_qpns, qpn);
}

struct scatterlist *ndk_sg_entry(struct scatterlist *sg, u64 *addr, u32 *len)
{
	*addr = sg_dma_address(sg);
	*len = sg_dma_len(sg);
	return sg_next(sg);
}

static bool ndk_is_so(const u64 *word, u64 clear, u64 set)
{
	u64 now = smp_load_acquire(word);

	return !(now & clear) || (now & set);
}

/* Who makes it so calls ndk_wake_waiters(), after a full barrier. */
void ndk_wait_for(const u64 *word, u64 clear, u64 set)
{
	wait_var_event((void *)word, ndk_is_so(word, clear, set));
}

void ndk_wake_waiters(const u64 *word)
{
	wake_up_var((void *)word);
}

static DEFINE_MUTEX(ndk_globals);

void ndk_globals_lock(void)
{
	mutex_lock(&ndk_globals);
}

void ndk_globals_unlock(void)
{
	mutex_unlock(&ndk_globals);
}

/* One limit for all messages: ten in five seconds. */
bool ndk_log_allowed(void)
{
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL,
				      DEFAULT_RATELIMIT_BURST);

	return __ratelimit(&limit);
}

u64 ndk_page_address(const struct page *page)
{
	return (u64)page_address(page);
}

u32 ndk_cpumask_first(const struct cpumask *mask)
{
	return mask ? cpumask_first(mask) : nr_cpu_ids;
}

u32 ndk_sockaddr_len(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return sizeof(address->sa_family);
	}
}

u64 ndk_net_cookie(const struct net *net)
{
	return (net ?: &init_net)->net_cookie;
}

/*
 * What the memory map knows of in one piece: how much of memory a middle page
 * table maps depends on the size of a page, and is 512 MiB with pages of 64 KiB.
 */
#ifdef CONFIG_SPARSEMEM
#define NDK_MAP_STEP	SUBSECTION_SIZE
#else
#define NDK_MAP_STEP	PMD_SIZE
#endif

/*
 * Whether the range is memory of the direct map, as far as is known for the begin of each
 * step that it touches, and for its last byte.  On x86 memory comes and goes by steps;
 * arm64 can leave out a page in the middle of one.
 */
bool ndk_is_direct_mapped(u64 addr, u64 len)
{
	u64 last = addr + len - 1;

	if (!len || last < addr)
		return !len;
	for (; addr <= last; addr = (addr | (NDK_MAP_STEP - 1)) + 1) {
		if (!virt_addr_valid((void *)addr))
			return false;
	}
	return virt_addr_valid((void *)last);
}

/*
 * User Mode Linux takes a hole in the vmalloc area for a page that it has yet to
 * map, and tries to read it for ever.
 */
static bool ndk_is_hole(u64 addr, u64 len)
{
	u64 page = addr >> PAGE_SHIFT, last = (addr + len - 1) >> PAGE_SHIFT;

	if (!IS_ENABLED(CONFIG_UML))
		return false;
	for (; page <= last; page++) {
		void *va = (void *)(page << PAGE_SHIFT);

		if (is_vmalloc_addr(va) && !vmalloc_to_page(va))
			return true;
	}
	return false;
}

bool ndk_read_nofault(void *to, u64 addr, u64 len)
{
	if (len && ndk_is_hole(addr, len))
		return false;
	return !len || !copy_from_kernel_nofault(to, (void *)addr, len);
}

struct net *ndk_netdev_net(struct net_device *dev)
{
	return dev_net(dev);
}
