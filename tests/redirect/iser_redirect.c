// SPDX-License-Identifier: GPL-2.0
/*
 * An iSER portal that serves nothing: it answers each login with "target moved
 * temporarily" and the address of another portal.  The kernel's own target
 * never gives this answer; the portal shows an initiator's reaction.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <scsi/iscsi_proto.h>
#include <scsi/iser.h>

#define HEADERS (sizeof(struct iser_ctrl) + sizeof(struct iscsi_hdr))
#define BUFFER (HEADERS + ISCSI_DEF_MAX_RECV_SEG_LEN)
#define BACKLOG 16

static char *address = "127.0.0.1";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "address to listen on (127.0.0.1)");

static char *port = "3261";
module_param(port, charp, 0444);
MODULE_PARM_DESC(port, "port to listen on (3261)");

static char *to = "127.0.0.1:3260,1";
module_param(to, charp, 0444);
MODULE_PARM_DESC(to, "the TargetAddress that a login is answered with");

static unsigned int logins;
module_param(logins, uint, 0444);
MODULE_PARM_DESC(logins, "how many logins were answered");

/*
 * Lives until the module or the device goes: a connection that the initiator
 * has closed does no harm.
 */
struct conn {
	struct list_head node;
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_cqe receive;
	struct ib_cqe send;
	u64 dma;
	u8 buffer[BUFFER];
};

static struct rdma_cm_id *listener;
static LIST_HEAD(conns);
static DEFINE_MUTEX(conns_lock);

/* Frees all but the identifier, which belongs to the caller. */
static void conn_free(struct conn *conn)
{
	if (conn->id->qp) {
		ib_drain_qp(conn->id->qp);
		rdma_destroy_qp(conn->id);
	}
	if (conn->dma)
		ib_dma_unmap_single(conn->id->device, conn->dma, BUFFER,
				    DMA_BIDIRECTIONAL);
	if (conn->cq)
		ib_free_cq(conn->cq);
	if (conn->pd)
		ib_dealloc_pd(conn->pd);
	kfree(conn);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status == IB_WC_SUCCESS)
		logins++;
}

/* The answer overwrites the request. */
static u32 write_answer(u8 *buffer)
{
	struct iser_ctrl *ctrl = (void *)buffer;
	struct iscsi_login_req req;
	struct iscsi_login_rsp *rsp = (void *)(ctrl + 1);
	u32 length;

	memcpy(&req, ctrl + 1, sizeof(req));
	memset(buffer, 0, BUFFER);
	ctrl->flags = ISCSI_CTRL;
	length = scnprintf((char *)(rsp + 1), BUFFER - HEADERS,
			   "TargetAddress=%s", to) + 1;
	rsp->opcode = ISCSI_OP_LOGIN_RSP;
	put_unaligned_be24(length, rsp->dlength);
	memcpy(rsp->isid, req.isid, sizeof(rsp->isid));
	rsp->itt = req.itt;
	rsp->exp_cmdsn = req.cmdsn;
	rsp->max_cmdsn = req.cmdsn;
	rsp->status_class = ISCSI_STATUS_CLS_REDIRECT;
	rsp->status_detail = ISCSI_LOGIN_STATUS_TGT_MOVED_TEMP;
	return HEADERS + round_up(length, 4);
}

static bool is_login(const struct conn *conn, const struct ib_wc *wc)
{
	const struct iscsi_hdr *hdr = (void *)(conn->buffer + sizeof(struct iser_ctrl));

	return wc->status == IB_WC_SUCCESS && wc->byte_len >= HEADERS &&
	       (hdr->opcode & ISCSI_OPCODE_MASK) == ISCSI_OP_LOGIN;
}

static void receive_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct conn *conn = container_of(wc->wr_cqe, struct conn, receive);
	struct ib_device *device = conn->id->device;
	struct ib_sge sge = { .addr = conn->dma, .lkey = conn->pd->local_dma_lkey };
	struct ib_send_wr wr = {
		.wr_cqe = &conn->send,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	ib_dma_sync_single_for_cpu(device, conn->dma, BUFFER, DMA_BIDIRECTIONAL);
	if (!is_login(conn, wc))
		return;
	sge.length = write_answer(conn->buffer);
	ib_dma_sync_single_for_device(device, conn->dma, BUFFER, DMA_BIDIRECTIONAL);
	if (ib_post_send(conn->id->qp, &wr, NULL))
		pr_err("the answer to a login cannot be posted\n");
}

static int conn_set_up(struct conn *conn)
{
	struct ib_device *device = conn->id->device;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* One more each for a drain. */
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_sge sge = { .length = BUFFER };
	struct ib_recv_wr wr = { .wr_cqe = &conn->receive, .sg_list = &sge, .num_sge = 1 };
	int err;

	conn->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(conn->pd)) {
		err = PTR_ERR(conn->pd);
		conn->pd = NULL;
		return err;
	}
	conn->cq = ib_alloc_cq(device, conn, 4, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(conn->cq)) {
		err = PTR_ERR(conn->cq);
		conn->cq = NULL;
		return err;
	}
	conn->dma = ib_dma_map_single(device, conn->buffer, BUFFER, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, conn->dma)) {
		conn->dma = 0;
		return -ENOMEM;
	}
	attr.send_cq = conn->cq;
	attr.recv_cq = conn->cq;
	err = rdma_create_qp(conn->id, conn->pd, &attr);
	if (err)
		return err;
	sge.addr = conn->dma;
	sge.lkey = conn->pd->local_dma_lkey;
	return ib_post_recv(conn->id->qp, &wr, NULL);
}

/* On an error the connection manager rejects the request and destroys @id. */
static int connect_request(struct rdma_cm_id *id)
{
	struct iser_cm_hdr hdr = { .flags = ISERT_ZBVA_NOT_USED | ISERT_SEND_W_INV_NOT_USED };
	struct rdma_conn_param param = { .private_data = &hdr, .private_data_len = sizeof(hdr) };
	struct conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int err;

	if (!conn)
		return -ENOMEM;
	conn->id = id;
	conn->receive.done = receive_done;
	conn->send.done = send_done;
	err = conn_set_up(conn);
	if (!err)
		err = rdma_accept(id, &param);
	if (err) {
		conn_free(conn);
		return err;
	}
	mutex_lock(&conns_lock);
	list_add(&conn->node, &conns);
	mutex_unlock(&conns_lock);
	return 0;
}

/* Takes the connection of @id, or any, off the list; the caller frees it. */
static struct conn *take(const struct rdma_cm_id *id)
{
	struct conn *conn, *found = NULL;

	mutex_lock(&conns_lock);
	list_for_each_entry(conn, &conns, node) {
		if (!id || conn->id == id) {
			found = conn;
			list_del(&conn->node);
			break;
		}
	}
	mutex_unlock(&conns_lock);
	return found;
}

/* Returns 1 if the connection manager has to destroy the identifier. */
static int device_removal(struct rdma_cm_id *id)
{
	struct conn *conn;

	if (cmpxchg(&listener, id, NULL) == id)
		return 1;
	conn = take(id);
	if (!conn)
		return 0;
	conn_free(conn);
	return 1;
}

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return connect_request(id);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return device_removal(id);
	default:
		return 0;
	}
}

static int __init redirect_init(void)
{
	struct sockaddr_storage at;
	int err;

	err = inet_pton_with_scope(&init_net, AF_UNSPEC, address, port, &at);
	if (err)
		return err;
	listener = rdma_create_id(&init_net, handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	err = rdma_bind_addr(listener, (struct sockaddr *)&at);
	if (!err)
		err = rdma_listen(listener, BACKLOG);
	if (err)
		rdma_destroy_id(listener);
	return err;
}

static void __exit redirect_exit(void)
{
	struct rdma_cm_id *id = xchg(&listener, NULL);
	struct conn *conn;

	if (id)
		rdma_destroy_id(id);
	while ((conn = take(NULL))) {
		id = conn->id;
		rdma_disconnect(id);
		conn_free(conn);
		rdma_destroy_id(id);
	}
}

module_init(redirect_init);
module_exit(redirect_exit);
MODULE_DESCRIPTION("iSER portal that redirects every login");
MODULE_LICENSE("GPL");
