// SPDX-License-Identifier: GPL-2.0
/*
 * Fixture of the consumer tests: a device for a kernel without one, as a kernel
 * that runs its tests before user space. It comes and goes by the netlink
 * messages of `rdma link add` and `rdma link delete`.
 */
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>

#include "fixture.h"

static struct sk_buff *new_message(int op)
{
	struct sk_buff *skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);

	/* The message has room for the header and a few names. */
	if (skb)
		nlmsg_put(skb, 0, 0, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op), 0,
			  NLM_F_REQUEST | NLM_F_ACK);
	return skb;
}

/* The kernel answers before kernel_sendmsg() returns. */
static int receive_ack(struct socket *sock)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
	} ack;
	struct kvec vec = { .iov_base = &ack, .iov_len = sizeof(ack) };
	struct msghdr msg = {};
	int ret = kernel_recvmsg(sock, &msg, &vec, 1, sizeof(ack), MSG_DONTWAIT);

	if (ret < 0)
		return ret;
	if (ret < sizeof(ack) || ack.header.nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return ack.error.error;
}

/* Sends @skb to RDMA's netlink with the right CAP_NET_ADMIN, and frees it. */
static int request(struct sk_buff *skb)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	/* With a destination the kernel does not check the socket's file. */
	struct msghdr msg = { .msg_name = &kernel, .msg_namelen = sizeof(kernel) };
	struct kvec vec = { .iov_base = skb->data };
	struct socket *sock;
	int ret;

	nlmsg_end(skb, nlmsg_hdr(skb));
	vec.iov_len = skb->len;
	ret = sock_create_kern(&init_net, AF_NETLINK, SOCK_RAW, NETLINK_RDMA, &sock);
	if (ret)
		goto out;
	ret = kernel_sendmsg(sock, &msg, &vec, 1, vec.iov_len);
	if (ret >= 0)
		ret = receive_ack(sock);
	sock_release(sock);
out:
	nlmsg_free(skb);
	return ret;
}

static int bring_up(const char *netdev)
{
	struct net_device *dev;
	int ret = -ENODEV;

	rtnl_lock();
	dev = __dev_get_by_name(&init_net, netdev);
	if (dev)
		ret = dev_open(dev, NULL);
	rtnl_unlock();
	return ret;
}

/**
 * ndkc_link_add - add an RDMA device
 * @name: its name
 * @netdev: the network device it is for, which is brought up
 */
int ndkc_link_add(const char *name, const char *netdev)
{
	struct sk_buff *skb;
	int ret = bring_up(netdev);

	if (ret)
		return ret;
	skb = new_message(RDMA_NLDEV_CMD_NEWLINK);
	if (!skb)
		return -ENOMEM;
	if (nla_put_string(skb, RDMA_NLDEV_ATTR_DEV_NAME, name) ||
	    nla_put_string(skb, RDMA_NLDEV_ATTR_LINK_TYPE, "ndk") ||
	    nla_put_string(skb, RDMA_NLDEV_ATTR_NDEV_NAME, netdev)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return request(skb);
}

/**
 * ndkc_link_delete - delete an RDMA device
 * @netdev: the network device it is for
 */
int ndkc_link_delete(const char *netdev)
{
	struct net_device *dev = dev_get_by_name(&init_net, netdev);
	struct ib_device *device;
	struct sk_buff *skb;
	u32 index;

	device = dev ? ib_device_get_by_netdev(dev, RDMA_DRIVER_UNKNOWN) : NULL;
	dev_put(dev);
	if (!device)
		return -ENODEV;
	index = device->index;
	ib_device_put(device);
	skb = new_message(RDMA_NLDEV_CMD_DELLINK);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u32(skb, RDMA_NLDEV_ATTR_DEV_INDEX, index)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return request(skb);
}
