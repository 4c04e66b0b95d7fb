// SPDX-License-Identifier: GPL-2.0
/*
 * Listeners of several network namespaces. For a listener at a wildcard or at a
 * loopback address the connection manager listens on every device; the
 * namespace of the listener's identifier decides.
 *
 * The runner of the suites makes two namespaces, one of them with a device over
 * its loopback device. Suites that run before user space have none.
 */
#include <net/net_namespace.h>

#include "fixture_ndk.h"

static void put_found(void *net)
{
	put_net(net);
}

static bool has_device(struct net *net)
{
	struct ib_device *device;

	device = ib_device_get_by_netdev(net->loopback_dev, RDMA_DRIVER_UNKNOWN);
	if (device)
		ib_device_put(device);
	return device;
}

/* Returns another namespace, with a device if @with, or skips the case. */
static struct net *other_net(struct kunit *test, bool with)
{
	struct net *net, *found = NULL;

	down_read(&net_rwsem);
	for_each_net(net) {
		if (!net_eq(net, &init_net) && has_device(net) == with)
			found = maybe_get_net(net);
		if (found)
			break;
	}
	up_read(&net_rwsem);
	if (!found)
		kunit_skip(test, "no other network namespace");
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_found, found), 0);
	return found;
}

/* Listens at all addresses if @any, else at that under test; port 0 is any. */
static struct ndkc_cm *listen_in(struct kunit *test, struct net *net, bool any, u16 port)
{
	struct ndkc_cm *cm = ndkc_cm_in(test, net);
	struct sockaddr_storage ss;

	ndkc_address(&ss, port);
	if (!ipv4_is_loopback(((struct sockaddr_in *)&ss)->sin_addr.s_addr))
		kunit_skip(test, "not at a loopback address");
	if (any)
		((struct sockaddr_in *)&ss)->sin_addr.s_addr = 0;
	KUNIT_ASSERT_EQ(test, rdma_bind_addr(cm->id, (struct sockaddr *)&ss), 0);
	KUNIT_ASSERT_EQ(test, rdma_listen(cm->id, 4), 0);
	return cm;
}

/* Expect that @listener gets the request, and accepts on its device. */
static void expect_reached(struct kunit *test, struct ndkc_cm *listener, struct ndkc_ep *a)
{
	struct ndkc_cm *child = ndkc_take_child(listener);
	struct ndkc_env *env = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, child);
	env->dev = child->id->device;
	KUNIT_ASSERT_EQ(test, ndkc_accept(ndkc_ep(test, child, NULL), "yes", 3), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a->cm, RDMA_CM_EVENT_ESTABLISHED));
}

struct order {
	const char *name;
	bool other_first;
	bool own_any;
	bool other_any;
};

static const struct order orders[] = {
	{ "at the same address", false, false, false },
	{ "at the same address, after the other", true, false, false },
	{ "at the wildcard, both", false, true, true },
	{ "at the wildcard, both, after the other", true, true, true },
	{ "at the wildcard, the other at the address", false, true, false },
	{ "at the wildcard, after the other at the address", true, true, false },
	{ "at the address, the other at the wildcard", false, false, true },
};

KUNIT_ARRAY_PARAM_DESC(order, orders, name);

/* An unprivileged user's namespace has just such listeners. */
static void listener_of_another_namespace_takes_nothing(struct kunit *test)
{
	const struct order *order = test->param_value;
	struct net *net = other_net(test, false);
	struct ndkc_cm *own = NULL, *other;
	struct ndkc_ep *a;
	u16 port = 0;

	if (!order->other_first) {
		own = listen_in(test, &init_net, order->own_any, 0);
		port = ndkc_port(own);
	}
	other = listen_in(test, net, order->other_any, port);
	if (!own)
		own = listen_in(test, &init_net, order->own_any, ndkc_port(other));
	a = ndkc_active(test, ndkc_port(own), NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, "please", 6), 0);
	expect_reached(test, own, a);
	KUNIT_EXPECT_EQ(test, other->nr, 0);
}

static void listener_of_another_namespace_is_not_reached(struct kunit *test)
{
	struct net *net = other_net(test, false);
	struct ndkc_cm *other = listen_in(test, net, true, 0);
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(other), NULL);

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(a->cm, RDMA_CM_EVENT_REJECTED));
	KUNIT_EXPECT_EQ(test, other->nr, 0);
}

/* A namespace with a device for the address. */
static void listener_with_a_device_of_its_own_takes_nothing(struct kunit *test)
{
	struct net *net = other_net(test, true);
	struct ndkc_cm *other = listen_in(test, net, false, 0);
	struct ndkc_cm *own = listen_in(test, &init_net, false, ndkc_port(other));
	struct ndkc_ep *a = ndkc_active(test, ndkc_port(own), NULL);

	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	expect_reached(test, own, a);
	KUNIT_EXPECT_EQ(test, other->nr, 0);
}

/*
 * A connection inside another namespace. For the connect to 127.0.0.1 rdma_cm
 * takes its first device; the device of that namespace accepts.
 */
static void those_of_another_namespace_meet_there(struct kunit *test)
{
	struct net *net = other_net(test, true);
	struct ndkc_cm *other = listen_in(test, net, false, 0);
	struct ndkc_cm *own = listen_in(test, &init_net, false, ndkc_port(other));
	struct ndkc_cm *cm = ndkc_cm_in(test, net);
	struct ndkc_ep *a;

	KUNIT_ASSERT_EQ(test, ndkc_resolve(cm, ndkc_port(other)), 0);
	a = ndkc_ep(test, cm, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	expect_reached(test, other, a);
	KUNIT_EXPECT_EQ(test, own->nr, 0);
}

/*
 * For 127.0.0.1 rdma_cm takes the device of another namespace. The accept needs
 * a device of its own namespace, and there is none.
 */
static void without_a_device_a_namespace_reaches_nobody(struct kunit *test)
{
	struct net *net = other_net(test, false);
	struct ndkc_cm *other = listen_in(test, net, true, 0);
	struct ndkc_cm *own = listen_in(test, &init_net, true, ndkc_port(other));
	struct ndkc_cm *cm = ndkc_cm_in(test, net);
	struct ndkc_ep *a;

	KUNIT_ASSERT_EQ(test, ndkc_resolve(cm, ndkc_port(other)), 0);
	a = ndkc_ep(test, cm, NULL);
	KUNIT_ASSERT_EQ(test, ndkc_connect(a, NULL, 0), 0);
	KUNIT_EXPECT_NOT_NULL(test, ndkc_await(cm, RDMA_CM_EVENT_REJECTED));
	KUNIT_EXPECT_EQ(test, own->nr, 0);
	KUNIT_EXPECT_EQ(test, other->nr, 0);
}

static s32 open_in(struct net *net, const char *name, bool with_address)
{
	struct sockaddr_storage at;
	struct ndk_open_params params = {
		.name = name,
		.net = net,
		.version = { NDK_VERSION_MAJOR, NDK_VERSION_MINOR },
	};
	struct ndk_adapter *adapter;
	s32 status;

	ndkc_address(&at, 0);
	if (with_address)
		params.local_address = (struct sockaddr *)&at;
	status = ndk_open_adapter(&params, &adapter);
	if (status == NDK_STATUS_SUCCESS)
		ndk_close_adapter(adapter);
	return status;
}

/* A shared device has its name in every namespace, its address in its own. */
static void adapters_are_found_among_what_the_namespace_sees(struct kunit *test)
{
	const char *name = dev_name(&ndkc_dev->dev);
	struct net *bare = other_net(test, false);
	struct net *nets[] = { NULL, &init_net, bare };
	int i;

	for (i = 0; i < ARRAY_SIZE(nets); i++) {
		bool here = nets[i] != bare;

		KUNIT_EXPECT_EQ(test, open_in(nets[i], name, false),
				rdma_dev_access_netns(ndkc_dev, nets[i] ?: &init_net) ?
				NDK_STATUS_SUCCESS : NDK_STATUS_ADAPTER_NOT_FOUND);
		KUNIT_EXPECT_EQ(test, open_in(nets[i], name, true),
				here ? NDK_STATUS_SUCCESS : NDK_STATUS_ADAPTER_NOT_FOUND);
		KUNIT_EXPECT_EQ(test, open_in(nets[i], NULL, true),
				here ? NDK_STATUS_SUCCESS : NDK_STATUS_ADAPTER_NOT_FOUND);
		KUNIT_EXPECT_EQ(test, open_in(nets[i], NULL, false),
				NDK_STATUS_INVALID_PARAMETER);
	}
}

static struct kunit_case netns_cases[] = {
	KUNIT_CASE_PARAM(listener_of_another_namespace_takes_nothing, order_gen_params),
	KUNIT_CASE(listener_of_another_namespace_is_not_reached),
	KUNIT_CASE(listener_with_a_device_of_its_own_takes_nothing),
	KUNIT_CASE(those_of_another_namespace_meet_there),
	KUNIT_CASE(without_a_device_a_namespace_reaches_nobody),
	KUNIT_CASE(adapters_are_found_among_what_the_namespace_sees),
	{}
};

static struct kunit_suite netns_suite = {
	.name = "ndk_consumer_netns",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = netns_cases,
};

kunit_test_suite(netns_suite);
