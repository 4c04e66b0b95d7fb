// SPDX-License-Identifier: GPL-2.0
/*
 * Fixture of the consumer tests: an end that uses the NDK face.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "fixture_ndk.h"

MODULE_IMPORT_NS("NDK");

#define DEPTH		32
#define MAX_PAGES	4

/* The ends of the running case. */
static LIST_HEAD(ends);

/* Makes a call of an end; it lives as long as the end, for late completions. */
struct ndkc_call *ndkc_nd_call(struct ndkc_nd *nd)
{
	struct ndkc_call *call = kzalloc_obj(*call, GFP_KERNEL | __GFP_NOFAIL);

	init_completion(&call->done);
	list_add_tail(&call->entry, &nd->calls);
	return call;
}

/* Waits for the end of a call that returned @status. */
s32 ndkc_nd_wait(struct ndkc_call *call, s32 status)
{
	if (status != NDK_STATUS_PENDING)
		return status;
	if (!ndkc_completes(&call->done, 1))
		return NDKC_ND_NOTHING;
	return call->status;
}

void ndkc_nd_created(void *context, s32 status, struct ndk_object_header *object)
{
	struct ndkc_call *call = context;

	call->status = status;
	call->object = object;
	atomic_inc(&call->count);
	complete_all(&call->done);
}

void ndkc_nd_completed(void *context, s32 status)
{
	ndkc_nd_created(context, status, NULL);
}

void ndkc_nd_closed(void *context)
{
	ndkc_nd_created(context, NDK_STATUS_SUCCESS, NULL);
}

static void closed_unwanted(void *context)
{
}

void ndkc_nd_gone(void *context)
{
	struct ndkc_nd *nd = context;

	atomic_inc(&nd->nr_gone);
	complete(&nd->gone);
}

void ndkc_nd_gone_ex(void *context, u32 reason)
{
	struct ndkc_nd *nd = context;

	nd->reason = reason;
	ndkc_nd_gone(nd);
}

static void on_notification(void *context, s32 status)
{
	struct ndkc_nd *nd = context;

	complete(&nd->notified);
}

/* Takes one peer: the close of the connector rejects any other. */
static void on_connect(void *context, struct ndk_connector *connector)
{
	struct ndkc_nd *nd = context;

	if (cmpxchg(&nd->connector, NULL, connector))
		connector->dispatch->close(&connector->header, closed_unwanted, NULL);
	else
		complete(&nd->asked);
}

/* Closes all objects; false if one does not go in time. */
static bool close_all(struct ndkc_nd *nd)
{
	s32 status = NDKC_ND_CLOSE(nd, nd->connector) ?:
		     NDKC_ND_CLOSE(nd, nd->listener) ?:
		     /* A connector that has come since. */
		     NDKC_ND_CLOSE(nd, nd->connector) ?:
		     NDKC_ND_CLOSE(nd, nd->qp) ?:
		     NDKC_ND_CLOSE(nd, nd->fast) ?:
		     NDKC_ND_CLOSE(nd, nd->mr) ?:
		     NDKC_ND_CLOSE(nd, nd->cq) ?:
		     NDKC_ND_CLOSE(nd, nd->pd);

	return status == NDK_STATUS_SUCCESS;
}

static void nd_exit(struct ndkc_nd *nd)
{
	struct ndkc_call *call, *next;

	list_del(&nd->entry);
	if (!close_all(nd)) {
		KUNIT_FAIL(nd->test, "an end does not go; it is leaked");
		return;
	}
	if (nd->adapter)
		ndk_close_adapter(nd->adapter);
	list_for_each_entry_safe(call, next, &nd->calls, entry)
		kfree(call);
	kfree(nd->mem);
	kfree(nd);
}

/**
 * ndkc_nd_exit - instead of ndkc_exit(), for suites with NDK ends
 * @test: the case
 *
 * NDK ends go first: an rdma_cm_id waits for the answer to its request.
 */
void ndkc_nd_exit(struct kunit *test)
{
	struct ndkc_nd *nd, *next;

	list_for_each_entry_safe(nd, next, &ends, entry)
		nd_exit(nd);
	ndkc_exit(test);
}

static s32 make_objects(struct ndkc_nd *nd)
{
	const struct ndk_open_params params = {
		.name = dev_name(&ndkc_dev->dev),
		.version = { NDK_VERSION_MAJOR, NDK_VERSION_MINOR },
	};
	struct page *pages[MAX_PAGES];
	struct ndk_mdl mdl;

	if (ndk_mdl_init(&mdl, nd->mem, NDKC_ND_SIZE, pages, MAX_PAGES))
		return NDK_STATUS_INVALID_PARAMETER;
	/* A ?: B runs B only if A is NDK_STATUS_SUCCESS. */
	return ndk_open_adapter(&params, &nd->adapter) ?:
	       NDKC_ND_CREATE(nd, &nd->pd, nd->adapter->dispatch->create_pd, nd->adapter) ?:
	       NDKC_ND_CREATE(nd, &nd->cq, nd->adapter->dispatch->create_cq, nd->adapter,
			      2 * DEPTH, on_notification, nd, NULL) ?:
	       NDKC_ND_CREATE(nd, &nd->qp, nd->pd->dispatch->create_qp, nd->pd, nd->cq,
			      nd->cq, nd, DEPTH, DEPTH, 2, 2, 0) ?:
	       NDKC_ND_CREATE(nd, &nd->mr, nd->pd->dispatch->create_mr, nd->pd, false) ?:
	       NDKC_ND_REQUEST(nd, nd->mr->dispatch->register_mr, nd->mr, &mdl, NDKC_ND_SIZE,
			       NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |
			       NDK_MR_FLAG_ALLOW_REMOTE_WRITE) ?:
	       NDKC_ND_CREATE(nd, &nd->fast, nd->pd->dispatch->create_mr, nd->pd, true) ?:
	       NDKC_ND_REQUEST(nd, nd->fast->dispatch->initialize_fast_register_mr, nd->fast,
			       MAX_PAGES, true);
}

/**
 * ndkc_nd - an end without its connection
 * @test: the case, which closes it
 */
struct ndkc_nd *ndkc_nd(struct kunit *test)
{
	struct ndkc_nd *nd = kzalloc_obj(*nd);

	KUNIT_ASSERT_NOT_NULL(test, nd);
	nd->test = test;
	INIT_LIST_HEAD(&nd->calls);
	init_completion(&nd->asked);
	init_completion(&nd->gone);
	init_completion(&nd->notified);
	nd->reason = U32_MAX;
	list_add(&nd->entry, &ends);
	nd->mem = kzalloc(NDKC_ND_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, nd->mem);
	KUNIT_ASSERT_EQ(test, make_objects(nd), NDK_STATUS_SUCCESS);
	return nd;
}

/* Listens at any port of the address, and returns the port. */
u16 ndkc_nd_listen(struct ndkc_nd *nd)
{
	struct kunit *test = nd->test;
	struct sockaddr_storage at;
	u32 len = sizeof(at);
	s32 status;

	ndkc_address(&at, 0);
	KUNIT_ASSERT_EQ(test, NDKC_ND_CREATE(nd, &nd->listener,
					     nd->adapter->dispatch->create_listener,
					     nd->adapter, on_connect, nd),
			NDK_STATUS_SUCCESS);
	KUNIT_ASSERT_EQ(test, NDKC_ND_REQUEST(nd, nd->listener->dispatch->listen,
					      nd->listener, (struct sockaddr *)&at,
					      sizeof(struct sockaddr_in)),
			NDK_STATUS_SUCCESS);
	status = nd->listener->dispatch->get_local_address(nd->listener, (struct sockaddr *)&at,
							   &len);
	KUNIT_ASSERT_EQ(test, status, NDK_STATUS_SUCCESS);
	return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

/* Begin to connect; see ndkc_nd_connected(). */
void ndkc_nd_connect(struct ndkc_nd *nd, u16 port, const void *priv, u32 len)
{
	struct sockaddr_storage from, to;
	struct kunit *test = nd->test;
	s32 status;

	ndkc_address(&from, 0);
	ndkc_address(&to, port);
	if (!nd->connector)
		KUNIT_ASSERT_EQ(test, NDKC_ND_CREATE(nd, &nd->connector,
						     nd->adapter->dispatch->create_connector,
						     nd->adapter), NDK_STATUS_SUCCESS);
	nd->connecting = ndkc_nd_call(nd);
	status = nd->connector->dispatch->connect(nd->connector, nd->qp, (struct sockaddr *)&from,
						  sizeof(struct sockaddr_in),
						  (struct sockaddr *)&to,
						  sizeof(struct sockaddr_in), 4, 4, priv, len,
						  ndkc_nd_completed, nd->connecting);
	KUNIT_ASSERT_EQ(test, status, NDK_STATUS_PENDING);
}

/* Wait for a peer. */
void ndkc_nd_take(struct ndkc_nd *nd)
{
	KUNIT_ASSERT_TRUE(nd->test, ndkc_completes(&nd->asked, 1));
}

/* Accept the peer; see ndkc_nd_connected(). */
void ndkc_nd_accept(struct ndkc_nd *nd, const void *priv, u32 len)
{
	s32 status;

	nd->connecting = ndkc_nd_call(nd);
	status = nd->connector->dispatch->accept(nd->connector, nd->qp, 4, 4, priv, len,
						 ndkc_nd_gone, nd, ndkc_nd_completed,
						 nd->connecting);
	KUNIT_ASSERT_EQ(nd->test, status, NDK_STATUS_PENDING);
}

/* Waits for connect() or accept(), and returns its status. */
s32 ndkc_nd_connected(struct ndkc_nd *nd)
{
	return ndkc_nd_wait(nd->connecting, NDK_STATUS_PENDING);
}

struct ndk_sge ndkc_nd_sge(struct ndkc_nd *nd, u32 off, u32 len)
{
	return (struct ndk_sge) {
		.virtual_address = nd->mem + off,
		.length = len,
		.memory_region_token = nd->mr->dispatch->get_local_token(nd->mr),
	};
}

/**
 * ndkc_nd_result - wait for the next result
 * @nd: the end
 * @result: filled in
 *
 * Return: its status, or NDKC_ND_NOTHING if none comes.
 */
s32 ndkc_nd_result(struct ndkc_nd *nd, struct ndk_result_ex *result)
{
	if (!NDKC_WAIT_UNTIL(nd->cq->dispatch->get_cq_results_ex(nd->cq, result, 1)))
		return NDKC_ND_NOTHING;
	return result->status;
}

/* Returns true if there is no result now. */
bool ndkc_nd_is_idle(struct ndkc_nd *nd)
{
	struct ndk_result_ex result;

	return !nd->cq->dispatch->get_cq_results_ex(nd->cq, &result, 1);
}

/**
 * ndkc_nd_open - open the memory to the peer by a fast registration
 * @nd: the end, connected
 * @flags: NDK_OP_FLAG_ALLOW_*
 *
 * Return: the token for the peer, valid at the memory's own addresses.
 */
u32 ndkc_nd_open(struct ndkc_nd *nd, u32 flags)
{
	struct ndkc_call *call = ndkc_nd_call(nd);
	struct ndk_logical_address_mapping *lam;
	struct page *pages[MAX_PAGES];
	u32 size = 256, fbo = 0;
	struct ndk_result_ex result;
	struct ndk_mdl mdl;
	s32 status;

	lam = kunit_kzalloc(nd->test, size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(nd->test, lam);
	KUNIT_ASSERT_EQ(nd->test, ndk_mdl_init(&mdl, nd->mem, NDKC_ND_SIZE, pages, MAX_PAGES), 0);
	status = nd->adapter->dispatch->build_lam(nd->adapter, &mdl, NDKC_ND_SIZE,
						  ndkc_nd_completed, call, lam, &size, &fbo);
	KUNIT_ASSERT_EQ(nd->test, ndkc_nd_wait(call, status), NDK_STATUS_SUCCESS);
	status = nd->qp->dispatch->fast_register(nd->qp, NULL, nd->fast, lam->adapter_page_count,
						 lam->adapter_page_array, fbo, NDKC_ND_SIZE,
						 (uintptr_t)nd->mem, flags);
	KUNIT_EXPECT_EQ(nd->test, status, NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(nd->test, ndkc_nd_result(nd, &result), NDK_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(nd->test, result.type, NDK_OPERATION_TYPE_FAST_REGISTER);
	nd->adapter->dispatch->release_lam(nd->adapter, lam);
	return nd->fast->dispatch->get_remote_token(nd->fast);
}
