// SPDX-License-Identifier: GPL-2.0
/* Registered devices, and the provider's details of their objects. */
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <rdma/ib_verbs.h>
#include <uapi/rdma/rdma_netlink.h>

#include "../shim.h"

bool ndk_device_try_get(struct ib_device *device)
{
	return ib_device_try_get(device);
}

bool ndk_device_uses_dim(const struct ib_device *device)
{
	/* `rdma dev set` may change it: either value will do */
	return data_race((bool)device->use_cq_dim);
}

/* NULL stands for the first namespace. */
bool ndk_device_is_seen_from(const struct ib_device *device, const struct net *net)
{
	return rdma_dev_access_netns(device, net ?: &init_net);
}

/* Begins the provider's details of an object; NULL if @msg has no room. */
void *ndk_details_begin(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}

/* Ends the details, or removes them if they are not complete. */
void ndk_details_end(struct sk_buff *msg, void *begin, bool complete)
{
	if (complete)
		nla_nest_end(msg, begin);
	else
		nla_nest_cancel(msg, begin);
}
