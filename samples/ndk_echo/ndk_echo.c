// SPDX-License-Identifier: GPL-2.0
/*
 * ndk_echo: a consumer of ndk, client and server in one module.
 *
 * The client opens its data to the server with a fast registration and sends
 * the token. The server reads the data, inverts it, writes it back, and answers
 * with a send that invalidates the token and asks for the client's attention.
 * Loading the module does this once; the load fails if a step fails.
 *
 * The module waits for each call that may pend. A consumer that must not sleep
 * takes the next step in the completion callback instead.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <ndk/ndk.h>

static char *device = "ndk0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "the adapter; empty: whichever has the address");

static char *address = "127.0.0.1";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "of both ends, IPv4 or IPv6");

static char *port = "18515";
module_param(port, charp, 0444);
MODULE_PARM_DESC(port, "where the server listens");

#define DEPTH		16			/* of each queue */
#define DATA_LEN	(3 * PAGE_SIZE)
#define MAX_PAGES	5			/* of struct memory */
#define TIMEOUT		(120 * HZ)

/* The client's message: the memory that the server may read and write. */
struct invitation {
	u64 address;
	u32 length;
	u32 token;
};

/* An end's memory, all of it in one region. */
struct memory {
	struct invitation message;
	u8 data[DATA_LEN];
};

/* One end of the connection. */
struct end {
	struct memory *memory;
	struct ndk_pd *pd;
	struct ndk_cq *cq;		/* of both queues */
	struct ndk_mr *mr;
	struct ndk_qp *qp;
	struct ndk_connector *connector;
	struct completion notified;
	atomic_t notifications;
};

/* A call that may pend; must live until it has completed. */
struct call {
	struct completion done;
	s32 status;
	struct ndk_object_header *object;
};

static struct sockaddr_storage server_address, client_address;
static u32 address_len;

static struct ndk_adapter *adapter;
static struct ndk_listener *listener;
static struct end client, server;

/* The server's access to the client's data. */
static struct ndk_mr *data_mr;
static struct ndk_logical_address_mapping *lam;
static u32 lam_offset;

/* These outlive a connect() that is given up: closing a connector ends them. */
static struct call connecting, accepting;
static DECLARE_COMPLETION(connect_event);
static DECLARE_COMPLETION(disconnected);

/* Callbacks: all come in softirq context. */

static void created(void *context, s32 status, struct ndk_object_header *object)
{
	struct call *call = context;

	call->status = status;
	call->object = object;
	complete(&call->done);
}

static void completed(void *context, s32 status)
{
	created(context, status, NULL);
}

static void closed(void *context)
{
	created(context, NDK_STATUS_SUCCESS, NULL);
}

static void closed_unwanted(void *context)
{
}

static void on_notification(void *context, s32 status)
{
	struct end *end = context;

	atomic_inc(&end->notifications);
	complete(&end->notified);
}

/* Takes one client: the close of the connector rejects any other. */
static void on_connect(void *context, struct ndk_connector *connector)
{
	if (cmpxchg(&server.connector, NULL, connector))
		connector->dispatch->close(&connector->header, closed_unwanted, NULL);
	else
		complete(&connect_event);
}

static void on_disconnect(void *context)
{
	complete(&disconnected);
}

/* Waits for the end of a call that returned @status. */
static s32 wait_for(struct call *call, s32 status)
{
	if (status != NDK_STATUS_PENDING)
		return status;
	wait_for_completion(&call->done);
	return call->status;
}

#define CALL_INIT(call) { .done = COMPLETION_INITIALIZER_ONSTACK((call).done) }

/* Makes an object: @fn with its arguments except the last three. */
#define CREATE(out, fn, ...) ({						\
	struct call call_ = CALL_INIT(call_);				\
	typeof(out) out_ = (out);					\
	s32 status_ = (fn)(__VA_ARGS__, created, &call_, out_);		\
									\
	if (status_ == NDK_STATUS_PENDING) {				\
		status_ = wait_for(&call_, status_);			\
		if (!ndk_failed(status_))				\
			*out_ = container_of(call_.object, typeof(**out_), header); \
	}								\
	status_;							\
})

/* Carries out a request: @fn with its arguments except the last two. */
#define REQUEST(fn, ...) ({						\
	struct call call_ = CALL_INIT(call_);				\
									\
	wait_for(&call_, (fn)(__VA_ARGS__, completed, &call_));		\
})

/* Closes an object, if there is one, and waits until it is gone. */
#define CLOSE(object) ({						\
	struct call call_ = CALL_INIT(call_);				\
	typeof(object) object_ = (object);				\
									\
	if (object_)							\
		wait_for(&call_, object_->dispatch->close(&object_->header, closed, &call_)); \
})

static s32 parse_addresses(void)
{
	if (inet_pton_with_scope(&init_net, AF_UNSPEC, address, port, &server_address) ||
	    inet_pton_with_scope(&init_net, AF_UNSPEC, address, "0", &client_address))
		return NDK_STATUS_INVALID_PARAMETER;
	address_len = server_address.ss_family == AF_INET6 ?
		sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	return NDK_STATUS_SUCCESS;
}

static s32 open_adapter(void)
{
	const struct ndk_open_params params = {
		.name = *device ? device : NULL,
		.local_address = *device ? NULL : (struct sockaddr *)&client_address,
		.version = { NDK_VERSION_MAJOR, NDK_VERSION_MINOR },
	};

	return ndk_open_adapter(&params, &adapter);
}

/* Makes an end without its connection, over memory that the end takes. */
static s32 set_up(struct end *end, struct memory *memory)
{
	struct page *pages[MAX_PAGES];
	struct ndk_mdl mdl;

	init_completion(&end->notified);
	end->memory = memory;
	if (!memory || ndk_mdl_init(&mdl, memory, sizeof(*memory), pages, MAX_PAGES))
		return NDK_STATUS_INSUFFICIENT_RESOURCES;

	/* A ?: B runs B only if A is NDK_STATUS_SUCCESS. */
	return CREATE(&end->pd, adapter->dispatch->create_pd, adapter) ?:
	       CREATE(&end->cq, adapter->dispatch->create_cq, adapter, 2 * DEPTH,
		      on_notification, end, NULL) ?:
	       CREATE(&end->qp, end->pd->dispatch->create_qp, end->pd, end->cq, end->cq,
		      end, DEPTH, DEPTH, 1, 1, 0) ?:
	       CREATE(&end->mr, end->pd->dispatch->create_mr, end->pd, false) ?:
	       REQUEST(end->mr->dispatch->register_mr, end->mr, &mdl, sizeof(*memory),
		       NDK_MR_FLAG_ALLOW_LOCAL_WRITE);
}

/* Maps the client's data for fast_register(). */
static s32 map_data(void)
{
	u32 size = struct_size(lam, adapter_page_array, MAX_PAGES);
	struct call call = CALL_INIT(call);
	struct page *pages[MAX_PAGES];
	struct ndk_mdl mdl;
	s32 status;

	status = CREATE(&data_mr, client.pd->dispatch->create_mr, client.pd, true) ?:
		 REQUEST(data_mr->dispatch->initialize_fast_register_mr, data_mr,
			 MAX_PAGES, true);
	if (ndk_failed(status))
		return status;

	lam = kzalloc(size, GFP_KERNEL);
	if (!lam || ndk_mdl_init(&mdl, client.memory->data, DATA_LEN, pages, MAX_PAGES))
		status = NDK_STATUS_INSUFFICIENT_RESOURCES;
	else
		status = adapter->dispatch->build_lam(adapter, &mdl, DATA_LEN, completed, &call,
						      lam, &size, &lam_offset);
	status = wait_for(&call, status);
	/* A mapping that was not made must not be released. */
	if (ndk_failed(status)) {
		kfree(lam);
		lam = NULL;
	}
	return status;
}

static s32 connect(void)
{
	const struct sockaddr *from = (struct sockaddr *)&client_address;
	const struct sockaddr *to = (struct sockaddr *)&server_address;
	s32 connect_status, accept_status, status;

	init_completion(&connecting.done);
	init_completion(&accepting.done);
	status = CREATE(&listener, adapter->dispatch->create_listener, adapter, on_connect, NULL) ?:
		 REQUEST(listener->dispatch->listen, listener, to, address_len) ?:
		 CREATE(&client.connector, adapter->dispatch->create_connector, adapter);
	if (ndk_failed(status))
		return status;

	/* One read at a time is enough, in either direction. */
	connect_status = client.connector->dispatch->connect(client.connector, client.qp,
			from, address_len, to, address_len, 1, 1, NULL, 0, completed, &connecting);
	if (ndk_failed(connect_status))
		return connect_status;
	if (!wait_for_completion_timeout(&connect_event, TIMEOUT))
		return completion_done(&connecting.done) ? connecting.status :
							   NDK_STATUS_IO_TIMEOUT;
	accept_status = server.connector->dispatch->accept(server.connector, server.qp,
			1, 1, NULL, 0, on_disconnect, NULL, completed, &accepting);
	if (ndk_failed(accept_status))
		return accept_status;

	return wait_for(&connecting, connect_status) ?:
	       REQUEST(client.connector->dispatch->complete_connect, client.connector,
		       NULL, NULL) ?:
	       wait_for(&accepting, accept_status);
}

/* Posts the receive for the client's message; needs no connection yet. */
static s32 post_receive(void)
{
	const struct ndk_sge message = {
		.virtual_address = &server.memory->message,
		.length = sizeof(server.memory->message),
		.memory_region_token = server.mr->dispatch->get_local_token(server.mr),
	};

	return server.qp->dispatch->receive(server.qp, NULL, &message, 1);
}

/* Client: open the data to the server and send the token, both at once. */
static s32 invite(void)
{
	const struct ndk_qp_dispatch *qp = client.qp->dispatch;
	struct invitation *message = &client.memory->message;
	u64 base = (uintptr_t)client.memory->data;
	const struct ndk_sge sge = {
		.virtual_address = message,
		.length = sizeof(*message),
		.memory_region_token = client.mr->dispatch->get_local_token(client.mr),
	};
	s32 status;

	memset(client.memory->data, 0x5a, DATA_LEN);

	/* Only the answer notifies, and a silent request that fails. */
	client.cq->dispatch->arm_cq(client.cq, NDK_CQ_NOTIFY_SOLICITED);

	/* The answer has no bytes. */
	status = qp->receive(client.qp, NULL, NULL, 0) ?:
		 qp->fast_register(client.qp, NULL, data_mr, lam->adapter_page_count,
				   lam->adapter_page_array, lam_offset, DATA_LEN, base,
				   NDK_OP_FLAG_ALLOW_REMOTE_READ |
				   NDK_OP_FLAG_ALLOW_REMOTE_WRITE |
				   NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_DEFER);
	if (ndk_failed(status))
		return status;

	/* The token exists already, and the send ends the deferral. */
	message->address = base;
	message->length = DATA_LEN;
	message->token = data_mr->dispatch->get_remote_token(data_mr);
	return qp->send(client.qp, NULL, &sge, 1, NDK_OP_FLAG_SILENT_SUCCESS);
}

/* Waits for the server's next result: the success of a request of @type. */
static s32 server_result(u32 type)
{
	const struct ndk_cq_dispatch *cq = server.cq->dispatch;
	struct ndk_result_ex result;

	/* An arm reports a result that came after the poll: none is missed. */
	while (!cq->get_cq_results_ex(server.cq, &result, 1)) {
		cq->arm_cq(server.cq, NDK_CQ_NOTIFY_ANY);
		if (!wait_for_completion_timeout(&server.notified, TIMEOUT))
			return NDK_STATUS_IO_TIMEOUT;
	}
	if (ndk_failed(result.status))
		return result.status;
	return result.type == type ? NDK_STATUS_SUCCESS : NDK_STATUS_INTERNAL_ERROR;
}

/* Server: read the data, invert it, write it back, answer. */
static s32 serve(void)
{
	const struct ndk_qp_dispatch *qp = server.qp->dispatch;
	struct invitation *message = &server.memory->message;
	u8 *data = server.memory->data;
	const struct ndk_sge sge = {
		.virtual_address = data,
		.length = DATA_LEN,
		.memory_region_token = server.mr->dispatch->get_local_token(server.mr),
	};
	s32 status;
	u32 i;

	status = server_result(NDK_OPERATION_TYPE_RECEIVE);
	if (!status && message->length != DATA_LEN)
		status = NDK_STATUS_INVALID_BUFFER_SIZE;
	status = status ?:
		 qp->read(server.qp, NULL, &sge, 1, message->address, message->token, 0) ?:
		 server_result(NDK_OPERATION_TYPE_READ);
	if (ndk_failed(status))
		return status;

	for (i = 0; i < DATA_LEN; i++)
		data[i] = ~data[i];

	/* The client sees the answer after the data; no need to wait between. */
	return qp->write(server.qp, NULL, &sge, 1, message->address, message->token,
			 NDK_OP_FLAG_SILENT_SUCCESS) ?:
	       qp->send_and_invalidate(server.qp, NULL, NULL, 0,
				       NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT, message->token) ?:
	       server_result(NDK_OPERATION_TYPE_SEND);
}

/* Client: the first notification is that of the answer. */
static s32 check_answer(void)
{
	struct ndk_result_ex result;

	if (!wait_for_completion_timeout(&client.notified, TIMEOUT) ||
	    !client.cq->dispatch->get_cq_results_ex(client.cq, &result, 1))
		return NDK_STATUS_IO_TIMEOUT;
	if (ndk_failed(result.status))
		return result.status;

	/* The server has no access to the data any more: check the data. */
	if (result.type != NDK_OPERATION_TYPE_RECEIVE_AND_INVALIDATE ||
	    result.type_specific_completion_output != client.memory->message.token ||
	    memchr_inv(client.memory->data, (u8)~0x5a, DATA_LEN))
		return NDK_STATUS_INTERNAL_ERROR;
	return NDK_STATUS_SUCCESS;
}

static s32 disconnect(void)
{
	s32 status = REQUEST(client.connector->dispatch->disconnect, client.connector);

	if (ndk_failed(status))
		return status;
	return wait_for_completion_timeout(&disconnected, TIMEOUT) ? NDK_STATUS_SUCCESS :
								     NDK_STATUS_IO_TIMEOUT;
}

/* Undoes all of the above, each object before those it was made from. */
static void tear_down(void)
{
	struct ndk_connector *connector;

	CLOSE(client.connector);
	/* From here on, on_connect() has no room for another. */
	connector = xchg(&server.connector, ERR_PTR(-ESHUTDOWN));
	CLOSE(connector);
	CLOSE(listener);
	CLOSE(client.qp);
	CLOSE(server.qp);
	CLOSE(data_mr);
	if (lam)
		adapter->dispatch->release_lam(adapter, lam);
	kfree(lam);
	CLOSE(client.mr);
	CLOSE(server.mr);
	CLOSE(client.cq);
	CLOSE(server.cq);
	CLOSE(client.pd);
	CLOSE(server.pd);
	if (adapter)
		ndk_close_adapter(adapter);
	kvfree(client.memory);
	kvfree(server.memory);
}

static s32 step(const char *what, s32 status)
{
	if (ndk_failed(status))
		pr_err("%s: status 0x%08x\n", what, status);
	return status;
}

static int __init ndk_echo_init(void)
{
	s32 status;

	status = step("addresses", parse_addresses()) ?:
		 step("open", open_adapter()) ?:
		 step("client", set_up(&client, vzalloc(sizeof(struct memory)))) ?:
		 step("server", set_up(&server, kzalloc(sizeof(struct memory), GFP_KERNEL))) ?:
		 step("data", map_data()) ?:
		 step("receive", post_receive()) ?:
		 step("connect", connect()) ?:
		 step("invite", invite()) ?:
		 step("serve", serve()) ?:
		 step("answer", check_answer()) ?:
		 step("disconnect", disconnect());
	tear_down();
	if (ndk_failed(status))
		return -EIO;

	/* The client's sends and registration did not notify. */
	if (atomic_read(&client.notifications) != 1) {
		pr_err("%d notifications\n", atomic_read(&client.notifications));
		return -EIO;
	}
	pr_info("ok\n");
	return 0;
}
module_init(ndk_echo_init);

static void __exit ndk_echo_exit(void)
{
}
module_exit(ndk_echo_exit);

MODULE_DESCRIPTION("Consumer of ndk: a client and a server");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("NDK");
