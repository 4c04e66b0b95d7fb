// SPDX-License-Identifier: GPL-2.0
/* Network devices, their addresses and namespaces. */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>
#include <net/route.h>

#include "../shim.h"

void ndk_netdev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

void ndk_netdev_put(struct net_device *dev)
{
	dev_put(dev);
}

/* @name has room for IFNAMSIZ bytes; a rename at the time may mix two names. */
void ndk_netdev_name(const struct net_device *dev, char *name)
{
	strscpy(name, dev->name, IFNAMSIZ);
}

u32 ndk_netdev_index(const struct net_device *dev)
{
	return READ_ONCE(dev->ifindex);
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

/*
 * A device that stands on other devices may have the MAC address of one of
 * them, and the ports of a bond or team have one in common.  Each kind of
 * master has its own test, for a master may have no port yet.
 */
static bool ndk_netdev_is_stacked(const struct net_device *dev)
{
	return netif_is_any_bridge_master(dev) || netif_is_lag_master(dev) ||
	       netif_is_l3_master(dev) || netif_is_lag_port(dev) ||
	       !list_empty(&dev->adj_list.lower);
}

/*
 * The VLAN number tells a VLAN from the device below, if that stands on no
 * other.  A VLAN keeps the device below as long as the VLAN exists.
 */
bool ndk_netdev_may_share_mac(const struct net_device *dev)
{
	const struct net_device *real;

	if (!is_vlan_dev(dev))
		return ndk_netdev_is_stacked(dev);
	real = vlan_dev_real_dev(dev);
	return dev_get_iflink(dev) != real->ifindex || ndk_netdev_is_stacked(real);
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

u16 ndk_netdev_hardware_type(const struct net_device *dev)
{
	return dev->type;
}

static __be32 ndk_v4(const struct __kernel_sockaddr_storage *addr)
{
	return ((const struct sockaddr_in *)addr)->sin_addr.s_addr;
}

/* Returns the IPv6 address, or NULL if the family is another. */
static const struct in6_addr *ndk_v6(const struct __kernel_sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ?
	       &((const struct sockaddr_in6 *)addr)->sin6_addr : NULL;
}

/* In C, not in Rust: the walks over devices and addresses are macros. */
static bool ndk_netdev_owns_v4(const struct net_device *dev, __be32 addr)
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

bool ndk_netdev_owns(struct net_device *dev,
		     const struct __kernel_sockaddr_storage *addr)
{
	const struct in6_addr *v6 = ndk_v6(addr);
	bool owns;

	if (!v6)
		return ndk_netdev_owns_v4(dev, ndk_v4(addr));
	if (!IS_ENABLED(CONFIG_IPV6))
		return false;
	rcu_read_lock();
	owns = ipv6_chk_addr(dev_net_rcu(dev), v6, dev, 1);
	rcu_read_unlock();
	return owns;
}

/* cma_validate_port() treats a VLAN device and the device below as one. */
static bool ndk_is_same_port(const struct net_device *a, const struct net_device *b)
{
	return a == b || (is_vlan_dev(a) && vlan_dev_real_dev(a) == b) ||
	       (is_vlan_dev(b) && vlan_dev_real_dev(b) == a);
}

/* Returns the device with the address.  Under RCU, without which it may go. */
static struct net_device *ndk_netdev_with(struct net *net,
					  const struct __kernel_sockaddr_storage *addr)
{
	const struct in6_addr *v6 = ndk_v6(addr);
	struct net_device *dev;

	if (!v6)
		return __ip_dev_find(net, ndk_v4(addr), false);
	if (!IS_ENABLED(CONFIG_IPV6))
		return NULL;
	for_each_netdev_rcu(net, dev) {
		if (ipv6_chk_addr(net, v6, dev, 1))
			return dev;
	}
	return NULL;
}

bool ndk_netdev_is_resolved_by(struct net_device *dev,
			       const struct __kernel_sockaddr_storage *addr)
{
	struct net_device *found;
	bool same;

	rcu_read_lock();
	found = ndk_netdev_with(dev_net_rcu(dev), addr);
	same = found && ndk_is_same_port(found, dev);
	rcu_read_unlock();
	return same;
}

struct net_device *ndk_netdev_of_notifier(void *info)
{
	return netdev_notifier_info_to_dev(info);
}

/* NULL stands for the first namespace, here and below. */
bool ndk_net_is_local(struct net *net, const struct __kernel_sockaddr_storage *addr)
{
	const struct in6_addr *v6 = ndk_v6(addr);

	net = net ?: &init_net;
	if (!v6)
		return inet_addr_type(net, ndk_v4(addr)) == RTN_LOCAL;
	return IS_ENABLED(CONFIG_IPV6) && ipv6_chk_addr(net, v6, NULL, 0);
}

bool ndk_netdev_is_local(struct net_device *dev,
			 const struct __kernel_sockaddr_storage *addr)
{
	bool is_local;

	rcu_read_lock();
	is_local = ndk_net_is_local(dev_net_rcu(dev), addr);
	rcu_read_unlock();
	return is_local;
}

/*
 * Returns a reference to the present namespace of the device, or NULL if that
 * is ending.  The device may move to another namespace at any time, and a
 * namespace may end.
 */
struct net *ndk_netdev_get_net(const struct net_device *dev)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(dev_net_rcu(dev));
	rcu_read_unlock();
	return net;
}

/*
 * Under the lock no move and no end of the device is halfway through: each
 * notifier was told of it, or will be.
 */
bool ndk_netdev_has_left(const struct net_device *dev, u64 net)
{
	bool has_left;

	rtnl_lock();
	has_left = dev->reg_state != NETREG_REGISTERED ||
		   dev_net(dev)->net_cookie != net;
	rtnl_unlock();
	return has_left;
}

u64 ndk_net_cookie(const struct net *net)
{
	return (net ?: &init_net)->net_cookie;
}

void ndk_net_put(struct net *net)
{
	put_net(net);
}
