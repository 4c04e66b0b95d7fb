// SPDX-License-Identifier: GPL-2.0
/*
 * The attributes of the device, and whether they hold.
 *
 * Below each limit an in-kernel consumer refuses the device or runs with
 * reduced function; the expectation names the consumer.
 */
#include <linux/sizes.h>
#include <rdma/ib_cache.h>

#include "fixture.h"

static void capabilities_let_every_consumer_in(struct kunit *test)
{
	const struct ib_device_attr *attr = &ndkc_dev->attrs;

	/* nvme, iser, NFS, rtrs, SMB */
	KUNIT_EXPECT_TRUE(test, attr->device_cap_flags &
				IB_DEVICE_MEM_MGT_EXTENSIONS);
	/* else each PD costs a DMA MR */
	KUNIT_EXPECT_TRUE(test, attr->kernel_cap_flags & IBK_LOCAL_DMA_LKEY);
	/* else the core refuses "rdma link delete" */
	KUNIT_EXPECT_TRUE(test, attr->kernel_cap_flags &
				IBK_ALLOW_USER_UNREG);
	/* else core/device.c hides the device from kernel consumers */
	KUNIT_EXPECT_TRUE(test, ndkc_dev->kverbs_provider);
	KUNIT_EXPECT_TRUE(test, rdma_protocol_iwarp(ndkc_dev, 1));
	KUNIT_EXPECT_TRUE(test, rdma_cap_iw_cm(ndkc_dev, 1));
	KUNIT_EXPECT_EQ(test, (int)ndkc_dev->node_type, RDMA_NODE_RNIC);
	KUNIT_EXPECT_EQ(test, ndkc_dev->phys_port_cnt, 1);
}

static void sge_limits_suit_every_consumer(struct kunit *test)
{
	const struct ib_device_attr *attr = &ndkc_dev->attrs;

	/* SMB; the NFS client takes up to 19 */
	KUNIT_EXPECT_GE(test, attr->max_send_sge, 6);
	/* nvmet with 16 KiB of inline data */
	KUNIT_EXPECT_GE(test, attr->max_recv_sge, 5);
	/* above 16 the NFS client takes max_sge_rd for its MR depth */
	KUNIT_EXPECT_GE(test, attr->max_sge_rd, 1);
	KUNIT_EXPECT_LE(test, attr->max_sge_rd, 16);
	/* nvmet asks for the maximum of the two */
	KUNIT_EXPECT_LE(test, attr->max_sge_rd, attr->max_send_sge);
}

static void queue_limits_suit_every_consumer(struct kunit *test)
{
	const struct ib_device_attr *attr = &ndkc_dev->attrs;

	/* srpt */
	KUNIT_EXPECT_GE(test, attr->max_qp_wr, 16384);
	/* a request above it makes the CQ pool spin */
	KUNIT_EXPECT_GE(test, attr->max_cqe, 65536);
	KUNIT_EXPECT_GE(test, attr->max_qp, 1024);
	KUNIT_EXPECT_GE(test, attr->max_cq, 1024);
	KUNIT_EXPECT_GE(test, attr->max_pd, 256);
	/* rdma_rw pools: 2048 per channel with srpt */
	KUNIT_EXPECT_GE(test, attr->max_mr, 65536);
	/* svcrdma rejects every client when this is 0; CM fields are u8 */
	KUNIT_EXPECT_GE(test, attr->max_qp_rd_atom, 128);
	KUNIT_EXPECT_LE(test, attr->max_qp_rd_atom, 255);
	KUNIT_EXPECT_GE(test, attr->max_qp_init_rd_atom, 128);
	KUNIT_EXPECT_LE(test, attr->max_qp_init_rd_atom, 255);
}

static void registration_limits_suit_every_consumer(struct kunit *test)
{
	const struct ib_device_attr *attr = &ndkc_dev->attrs;

	/* nvme at 1 MiB, NFS client */
	KUNIT_EXPECT_GE(test, attr->max_fast_reg_page_list_len, 257);
	KUNIT_EXPECT_TRUE(test, attr->page_size_cap & SZ_4K);
	KUNIT_EXPECT_GE(test, attr->max_mr_size, SZ_1G);
}

static void completion_vectors_cover_the_cpus(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, (unsigned int)ndkc_dev->num_comp_vectors,
			num_online_cpus());
}

static void identity_is_not_zero(struct kunit *test)
{
	union ib_gid gid = {};

	KUNIT_EXPECT_NE(test, be64_to_cpu(ndkc_dev->node_guid), 0);
	KUNIT_ASSERT_EQ(test, rdma_query_gid(ndkc_dev, 1, 0, &gid), 0);
	KUNIT_EXPECT_FALSE(test, ndkc_is_filled(gid.raw, sizeof(gid), 0));
}

/* One node is one system image. */
static void identity_is_one(struct kunit *test)
{
	union ib_gid gid = {};

	KUNIT_EXPECT_EQ(test, be64_to_cpu(ndkc_dev->attrs.sys_image_guid),
			be64_to_cpu(ndkc_dev->node_guid));
	KUNIT_ASSERT_EQ(test, rdma_query_gid(ndkc_dev, 1, 0, &gid), 0);
	/* srpt names its targets after this half, and after the GUID */
	KUNIT_EXPECT_EQ(test, be64_to_cpu(gid.global.interface_id),
			be64_to_cpu(ndkc_dev->node_guid));
}

static void firmware_has_a_version(struct kunit *test)
{
	char version[IB_FW_VERSION_NAME_MAX];

	memset(version, 0xee, sizeof(version));
	ib_get_device_fw_str(ndkc_dev, version);
	KUNIT_EXPECT_NE(test, version[0], '\0');
	KUNIT_EXPECT_LT(test, strnlen(version, sizeof(version)),
			sizeof(version));
}

static void port_is_active(struct kunit *test)
{
	struct ib_port_attr attr = {};
	enum ib_port_state state;

	KUNIT_ASSERT_EQ(test, ib_query_port(ndkc_dev, 1, &attr), 0);
	KUNIT_EXPECT_EQ(test, (int)attr.state, IB_PORT_ACTIVE);
	KUNIT_EXPECT_EQ(test, (int)attr.phys_state,
			IB_PORT_PHYS_STATE_LINK_UP);
	KUNIT_EXPECT_GE(test, attr.gid_tbl_len, 1);
	KUNIT_EXPECT_GT(test, attr.max_msg_sz, SZ_1M);
	KUNIT_EXPECT_NE(test, (int)attr.max_mtu, 0);
	KUNIT_EXPECT_NE(test, (int)attr.active_mtu, 0);
	KUNIT_ASSERT_EQ(test, ib_get_cached_port_state(ndkc_dev, 1, &state), 0);
	KUNIT_EXPECT_EQ(test, (int)state, IB_PORT_ACTIVE);
	KUNIT_EXPECT_NE(test, ib_query_port(ndkc_dev, 2, &attr), 0);
}

/* rdma_cm needs the P_Key to resolve loopback addresses. */
static void pkey_zero_is_there(struct kunit *test)
{
	u16 pkey = 0;

	KUNIT_ASSERT_EQ(test, ib_get_cached_pkey(ndkc_dev, 1, 0, &pkey), 0);
	KUNIT_EXPECT_EQ(test, pkey, 0xffff);
}

static void cq_is_as_large_as_asked(struct kunit *test)
{
	struct ib_cq *cq;

	ndkc_cq(test, 1, 0, IB_POLL_DIRECT);
	ndkc_cq(test, 5131, 0, IB_POLL_SOFTIRQ);
	ndkc_cq(test, 4096, 0, IB_POLL_WORKQUEUE);

	cq = ib_alloc_cq(ndkc_dev, NULL, ndkc_dev->attrs.max_cqe + 1, 0,
			 IB_POLL_DIRECT);
	KUNIT_EXPECT_TRUE(test, IS_ERR(cq));
	if (!IS_ERR(cq))
		ib_free_cq(cq);
}

static struct ib_qp *try_qp(struct kunit *test, u32 send_wr, u32 recv_wr,
			    u32 send_sge, u32 recv_sge)
{
	struct ndkc_cq *cq = ndkc_cq(test, 16, 0, IB_POLL_DIRECT);
	struct ib_qp_init_attr attr = {
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.cap = {
			.max_send_wr = send_wr,
			.max_recv_wr = recv_wr,
			.max_send_sge = send_sge,
			.max_recv_sge = recv_sge,
		},
		.qp_type = IB_QPT_RC,
		.port_num = 1,
	};

	return ib_create_qp(ndkc_pd(test), &attr);
}

static bool refused(struct ib_qp *qp)
{
	if (IS_ERR(qp))
		return true;
	ib_destroy_qp(qp);
	return false;
}

static void qp_limits_are_enforced_and_reachable(struct kunit *test)
{
	const struct ib_device_attr *attr = &ndkc_dev->attrs;
	u32 wr = attr->max_qp_wr;
	u32 ssge = attr->max_send_sge;
	u32 rsge = attr->max_recv_sge;

	KUNIT_EXPECT_FALSE(test, refused(try_qp(test, wr, 1, 1, 1)));
	KUNIT_EXPECT_FALSE(test, refused(try_qp(test, 1, wr, 1, 1)));
	KUNIT_EXPECT_FALSE(test, refused(try_qp(test, 1, 1, ssge, rsge)));
	KUNIT_EXPECT_TRUE(test, refused(try_qp(test, wr + 1, 1, 1, 1)));
	KUNIT_EXPECT_TRUE(test, refused(try_qp(test, 1, wr + 1, 1, 1)));
	KUNIT_EXPECT_TRUE(test, refused(try_qp(test, 1, 1, ssge + 1, 1)));
	KUNIT_EXPECT_TRUE(test, refused(try_qp(test, 1, 1, 1, rsge + 1)));
}

static void other_qp_types_are_refused(struct kunit *test)
{
	struct ndkc_cq *cq = ndkc_cq(test, 16, 0, IB_POLL_DIRECT);
	struct ib_qp_init_attr attr = {
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.port_num = 1,
	};
	struct ib_pd *pd = ndkc_pd(test);

	attr.qp_type = IB_QPT_UD;
	KUNIT_EXPECT_TRUE(test, refused(ib_create_qp(pd, &attr)));
	attr.qp_type = IB_QPT_UC;
	KUNIT_EXPECT_TRUE(test, refused(ib_create_qp(pd, &attr)));
}

static bool mr_refused(struct ib_mr *mr)
{
	if (IS_ERR(mr))
		return true;
	ib_dereg_mr(mr);
	return false;
}

static void mr_limits_are_enforced_and_reachable(struct kunit *test)
{
	u32 max = ndkc_dev->attrs.max_fast_reg_page_list_len;
	struct ib_pd *pd = ndkc_pd(test);
	struct ib_mr *mr;

	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, max);
	KUNIT_EXPECT_FALSE(test, mr_refused(mr));
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, max + 1);
	KUNIT_EXPECT_TRUE(test, mr_refused(mr));

	if (ndkc_dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG) {
		mr = ib_alloc_mr(pd, IB_MR_TYPE_SG_GAPS, 16);
		KUNIT_EXPECT_FALSE(test, mr_refused(mr));
	}
}

static void regions_have_distinct_keys(struct kunit *test)
{
	struct ib_pd *pd = ndkc_pd(test);
	struct ndkc_mr *mr[8];
	int i, j;

	for (i = 0; i < ARRAY_SIZE(mr); i++) {
		mr[i] = ndkc_mr(test, pd, IB_MR_TYPE_MEM_REG, 4);
		KUNIT_EXPECT_NE(test, mr[i]->mr->rkey, pd->local_dma_lkey);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, mr[i]->mr->rkey >> 8,
					mr[j]->mr->rkey >> 8);
	}
}

static void global_rkey_is_a_key_of_its_own(struct kunit *test)
{
	struct ib_pd *pd;

	pd = ib_alloc_pd(ndkc_dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	if (ndkc_dev->attrs.kernel_cap_flags & IBK_LOCAL_DMA_LKEY)
		KUNIT_EXPECT_NE(test, pd->unsafe_global_rkey,
				pd->local_dma_lkey);
	ib_dealloc_pd(pd);
}

static struct kunit_case device_cases[] = {
	KUNIT_CASE(capabilities_let_every_consumer_in),
	KUNIT_CASE(sge_limits_suit_every_consumer),
	KUNIT_CASE(queue_limits_suit_every_consumer),
	KUNIT_CASE(registration_limits_suit_every_consumer),
	KUNIT_CASE(completion_vectors_cover_the_cpus),
	KUNIT_CASE(identity_is_not_zero),
	KUNIT_CASE(identity_is_one),
	KUNIT_CASE(firmware_has_a_version),
	KUNIT_CASE(port_is_active),
	KUNIT_CASE(pkey_zero_is_there),
	KUNIT_CASE(cq_is_as_large_as_asked),
	KUNIT_CASE(qp_limits_are_enforced_and_reachable),
	KUNIT_CASE(other_qp_types_are_refused),
	KUNIT_CASE(mr_limits_are_enforced_and_reachable),
	KUNIT_CASE(regions_have_distinct_keys),
	KUNIT_CASE(global_rkey_is_a_key_of_its_own),
	{}
};

static struct kunit_suite device_suite = {
	.name = "ndk_consumer_device",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = device_cases,
};

kunit_test_suite(device_suite);
