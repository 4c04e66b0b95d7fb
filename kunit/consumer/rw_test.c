// SPDX-License-Identifier: GPL-2.0
/*
 * The read/write contexts of core/rw.c, as nvmet, isert, srpt, svcrdma and
 * the SMB server use them. On iWARP a READ takes a region from a pool and
 * ends with IB_WR_RDMA_READ_WITH_INV.
 */
#include <linux/bvec.h>
#include <linux/scatterlist.h>
#include <rdma/rw.h>

#include "fixture.h"

#define PIECES	8

struct rw {
	struct ndkc_pair *p;
	struct ndkc_buf *local;
	struct ndkc_buf *remote;
	struct ndkc_mr *mr;
	struct scatterlist sg[PIECES];
	struct bio_vec bvec[PIECES];
	struct rdma_rw_ctx ctx;
};

/* @b runs the contexts; @a owns the memory. */
static struct rw *make_rw(struct kunit *test)
{
	const struct ndkc_ep_attr attr = { .rdma_ctxs = 8 };
	struct rw *rw = kunit_kzalloc(test, sizeof(*rw), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, rw);
	rw->p = ndkc_pair_attr(test, NULL, &attr);
	rw->local = ndkc_buf(test, 2 * PIECES * PAGE_SIZE);
	rw->remote = ndkc_buf(test, PIECES * PAGE_SIZE);
	rw->mr = ndkc_registered(test, rw->p->a, rw->remote, NDKC_REMOTE_ALL);
	sg_init_table(rw->sg, PIECES);
	for (i = 0; i < PIECES; i++) {
		/* Every other page. */
		sg_set_buf(&rw->sg[i], rw->local->va + 2 * i * PAGE_SIZE,
			   PAGE_SIZE);
		bvec_set_virt(&rw->bvec[i], rw->local->va + 2 * i * PAGE_SIZE,
			      PAGE_SIZE);
	}
	return rw;
}

static void run(struct kunit *test, struct rw *rw, struct ib_send_wr *chain)
{
	struct ndkc_op *op = ndkc_op(test);

	op->cq = rw->p->b->scq;
	KUNIT_ASSERT_EQ(test, rdma_rw_ctx_post(&rw->ctx, rw->p->b->qp, 1,
					       chain ? NULL : &op->cqe, chain),
			0);
	if (!chain)
		NDKC_ASSERT_WC(test, op, IB_WC_SUCCESS);
}

static bool pieces_match(struct rw *rw, u8 seed, bool local_has_seed)
{
	int i;

	for (i = 0; i < PIECES; i++) {
		if (local_has_seed ?
		    !ndkc_matches(rw->local, 2 * i * PAGE_SIZE, PAGE_SIZE, seed,
				  i * PAGE_SIZE) :
		    !ndkc_matches(rw->remote, i * PAGE_SIZE, PAGE_SIZE, seed,
				  2 * i * PAGE_SIZE))
			return false;
	}
	return true;
}

static void read_by_scatterlist(struct kunit *test)
{
	struct rw *rw = make_rw(test);
	struct ib_qp *qp = rw->p->b->qp;
	int i;

	/* More rounds than regions in the pool: the regions must come back. */
	for (i = 0; i < 20; i++) {
		ndkc_fill(rw->remote, i);
		memset(rw->local->va, 0, rw->local->len);
		KUNIT_ASSERT_GT(test, rdma_rw_ctx_init(&rw->ctx, qp, 1, rw->sg,
						       PIECES, 0,
						       rw->mr->mr->iova,
						       rw->mr->mr->rkey,
						       DMA_FROM_DEVICE), 0);
		run(test, rw, NULL);
		rdma_rw_ctx_destroy(&rw->ctx, qp, 1, rw->sg, PIECES,
				    DMA_FROM_DEVICE);
		KUNIT_EXPECT_TRUE(test, pieces_match(rw, i, true));
	}
}

static void read_with_an_offset(struct kunit *test)
{
	struct rw *rw = make_rw(test);
	struct ib_qp *qp = rw->p->b->qp;

	ndkc_fill(rw->remote, 71);
	KUNIT_ASSERT_GT(test, rdma_rw_ctx_init(&rw->ctx, qp, 1, rw->sg, 2, 1000,
					       rw->mr->mr->iova + 7,
					       rw->mr->mr->rkey,
					       DMA_FROM_DEVICE), 0);
	run(test, rw, NULL);
	rdma_rw_ctx_destroy(&rw->ctx, qp, 1, rw->sg, 2, DMA_FROM_DEVICE);
	KUNIT_EXPECT_TRUE(test, ndkc_matches(rw->local, 1000, PAGE_SIZE - 1000,
					     71, 7));
	KUNIT_EXPECT_TRUE(test, ndkc_matches(rw->local, 2 * PAGE_SIZE,
					     PAGE_SIZE, 71,
					     7 + PAGE_SIZE - 1000));
	KUNIT_EXPECT_TRUE(test, ndkc_is_filled(rw->local->va, 1000, 0));
}

static void write_by_scatterlist(struct kunit *test)
{
	struct rw *rw = make_rw(test);
	struct ib_qp *qp = rw->p->b->qp;

	ndkc_fill(rw->local, 72);
	KUNIT_ASSERT_GT(test, rdma_rw_ctx_init(&rw->ctx, qp, 1, rw->sg, PIECES,
					       0, rw->mr->mr->iova,
					       rw->mr->mr->rkey,
					       DMA_TO_DEVICE), 0);
	run(test, rw, NULL);
	rdma_rw_ctx_destroy(&rw->ctx, qp, 1, rw->sg, PIECES, DMA_TO_DEVICE);
	KUNIT_EXPECT_TRUE(test, pieces_match(rw, 72, false));
}

/* nvmet: the answer is chained behind silent writes. */
static void write_with_a_chained_answer(struct kunit *test)
{
	struct rw *rw = make_rw(test);
	struct ib_qp *qp = rw->p->b->qp;
	struct ndkc_op *send = ndkc_op(test);
	struct ndkc_op *recv = ndkc_op(test);
	struct ib_send_wr answer = {
		.wr_cqe = &send->cqe,
		.opcode = IB_WR_SEND_WITH_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = rw->mr->mr->rkey,
	};

	ndkc_fill(rw->local, 73);
	KUNIT_ASSERT_EQ(test, ndkc_post_recv_sge(rw->p->a, recv, NULL, 0), 0);
	KUNIT_ASSERT_GT(test, rdma_rw_ctx_init(&rw->ctx, qp, 1, rw->sg, PIECES,
					       0, rw->mr->mr->iova,
					       rw->mr->mr->rkey,
					       DMA_TO_DEVICE), 0);
	run(test, rw, &answer);
	NDKC_ASSERT_WC(test, recv, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, recv->wc.ex.invalidate_rkey, rw->mr->mr->rkey);
	KUNIT_EXPECT_TRUE(test, pieces_match(rw, 73, false));
	NDKC_ASSERT_WC(test, send, IB_WC_SUCCESS);
	rdma_rw_ctx_destroy(&rw->ctx, qp, 1, rw->sg, PIECES, DMA_TO_DEVICE);
}

/* svcrdma */
static void read_and_write_by_bvec(struct kunit *test)
{
	struct rw *rw = make_rw(test);
	struct ib_qp *qp = rw->p->b->qp;
	struct bvec_iter iter = { .bi_size = PIECES * PAGE_SIZE };

	ndkc_fill(rw->remote, 74);
	KUNIT_ASSERT_GT(test, rdma_rw_ctx_init_bvec(&rw->ctx, qp, 1, rw->bvec,
						    PIECES, iter,
						    rw->mr->mr->iova,
						    rw->mr->mr->rkey,
						    DMA_FROM_DEVICE), 0);
	run(test, rw, NULL);
	rdma_rw_ctx_destroy_bvec(&rw->ctx, qp, 1, rw->bvec, PIECES,
				 DMA_FROM_DEVICE);
	KUNIT_EXPECT_TRUE(test, pieces_match(rw, 74, true));

	ndkc_fill(rw->local, 75);
	KUNIT_ASSERT_GT(test, rdma_rw_ctx_init_bvec(&rw->ctx, qp, 1, rw->bvec,
						    PIECES, iter,
						    rw->mr->mr->iova,
						    rw->mr->mr->rkey,
						    DMA_TO_DEVICE), 0);
	run(test, rw, NULL);
	rdma_rw_ctx_destroy_bvec(&rw->ctx, qp, 1, rw->bvec, PIECES,
				 DMA_TO_DEVICE);
	KUNIT_EXPECT_TRUE(test, pieces_match(rw, 75, false));
}

/* A READ that fails gives its region back as well. */
static void failed_read_returns_its_region(struct kunit *test)
{
	struct rw *rw = make_rw(test);
	struct ib_qp *qp = rw->p->b->qp;
	struct ndkc_op *op = ndkc_op(test);

	op->cq = rw->p->b->scq;
	KUNIT_ASSERT_GT(test, rdma_rw_ctx_init(&rw->ctx, qp, 1, rw->sg, PIECES,
					       0, rw->mr->mr->iova,
					       rw->mr->mr->rkey ^ 1,
					       DMA_FROM_DEVICE), 0);
	KUNIT_ASSERT_EQ(test, rdma_rw_ctx_post(&rw->ctx, qp, 1, &op->cqe, NULL),
			0);
	KUNIT_EXPECT_TRUE(test, ndkc_is_remote_error(ndkc_wait(op)));
	KUNIT_EXPECT_EQ(test, ndkc_drain(rw->p->b), 0);
	rdma_rw_ctx_destroy(&rw->ctx, qp, 1, rw->sg, PIECES, DMA_FROM_DEVICE);
	KUNIT_EXPECT_EQ(test, qp->mrs_used, 0);
}

static struct kunit_case rw_cases[] = {
	KUNIT_CASE(read_by_scatterlist),
	KUNIT_CASE(read_with_an_offset),
	KUNIT_CASE(write_by_scatterlist),
	KUNIT_CASE(write_with_a_chained_answer),
	KUNIT_CASE(read_and_write_by_bvec),
	KUNIT_CASE(failed_read_returns_its_region),
	{}
};

static struct kunit_suite rw_suite = {
	.name = "ndk_consumer_rw",
	.suite_init = ndkc_suite_init,
	.suite_exit = ndkc_suite_exit,
	.init = ndkc_init,
	.exit = ndkc_exit,
	.test_cases = rw_cases,
};

kunit_test_suite(rw_suite);
