// SPDX-License-Identifier: GPL-2.0
/* Open adapters, and the module that each holds. */
#include <linux/bottom_half.h>
#include <linux/module.h>

#include "fixture_ndk.h"

/* Returns the number of ndk.ko's users; skips the case if ndk is built in. */
static int users_of_ndk(struct kunit *test)
{
#ifdef CONFIG_MODULE_UNLOAD
	struct module *ndk = ndkc_dev->ops.owner;

	if (ndk && module_refcount(ndk) >= 0)
		return module_refcount(ndk);
#endif
	kunit_skip(test, "ndk is no module that can be unloaded");
	return 0;
}

static s32 open_adapter(const char *name, struct ndk_adapter **adapter)
{
	const struct ndk_open_params params = {
		.name = name,
		.version = { NDK_VERSION_MAJOR, NDK_VERSION_MINOR },
	};

	return ndk_open_adapter(&params, adapter);
}

static void each_adapter_holds_the_module_until_it_is_closed(struct kunit *test)
{
	const char *name = dev_name(&ndkc_dev->dev);
	int before = users_of_ndk(test);
	struct ndk_adapter *a, *b;

	KUNIT_EXPECT_EQ(test, open_adapter("nothing", &a), NDK_STATUS_ADAPTER_NOT_FOUND);
	KUNIT_EXPECT_EQ(test, open_adapter(NULL, &a), NDK_STATUS_INVALID_PARAMETER);
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before);
	KUNIT_ASSERT_EQ(test, open_adapter(name, &a), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before + 1);
	KUNIT_EXPECT_EQ(test, open_adapter(name, &b), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before + 2);
	/* NULL is no adapter and has no reference. */
	ndk_close_adapter(NULL);
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before + 2);
	ndk_close_adapter(a);
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before + 1);
	ndk_close_adapter(b);
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before);
}

static void an_adapter_closed_in_a_callback_holds_it_until_it_goes(struct kunit *test)
{
	int before = users_of_ndk(test);
	struct ndkc_nd *nd = ndkc_nd(test);

	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before + 1);
	local_bh_disable();
	ndk_close_adapter(nd->adapter);
	local_bh_enable();
	nd->adapter = NULL;
	/* The adapter's objects are still there. */
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before + 1);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->qp), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->fast), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->mr), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->cq), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, users_of_ndk(test), before + 1);
	KUNIT_EXPECT_EQ(test, NDKC_ND_CLOSE(nd, nd->pd), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_TRUE(test, NDKC_WAIT_UNTIL(users_of_ndk(test) == before));
}

static struct kunit_case adapter_cases[] = {
	KUNIT_CASE(each_adapter_holds_the_module_until_it_is_closed),
	KUNIT_CASE(an_adapter_closed_in_a_callback_holds_it_until_it_goes),
	{}
};

static struct kunit_suite adapter_suite = {
	.name = "ndk_consumer_adapter",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_nd_exit,
	.test_cases = adapter_cases,
};

kunit_test_suite(adapter_suite);
