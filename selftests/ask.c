// SPDX-License-Identifier: GPL-2.0
/*
 * ask accept|leave PORT: listens at 127.0.0.1 and connects there.  "accept"
 * then accepts its own connect, which has to be refused, and destroys that
 * identifier.  "leave" destroys the listener before the connection manager
 * takes the request, as long as the program keeps its processor.
 *
 * ask connect PORT: connects to the listener of another program, says so, and
 * waits for SIGTERM.
 *
 * Exit 0 if all is as it should be, or 1 with a line that names the failure.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

#define WAIT_MS		60000

static struct sockaddr_in address = { .sin_family = AF_INET };

static void need(int done, const char *what)
{
	if (done)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* From now on calls of the identifier wait for no event. */
static void take_apart(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	need(channel && !rdma_migrate_id(id, channel), "rdma_migrate_id");
}

/* Without a channel each call waits for its event. */
static struct rdma_cm_id *create(void)
{
	struct rdma_cm_id *id;

	need(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

static struct rdma_cm_id *listener(void)
{
	struct rdma_cm_id *id = create();

	need(!rdma_bind_addr(id, (struct sockaddr *)&address), "rdma_bind_addr");
	take_apart(id);
	need(!rdma_listen(id, 1), "rdma_listen");
	return id;
}

static struct rdma_cm_id *resolved(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id = create();

	need(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, WAIT_MS),
	     "rdma_resolve_addr");
	need(!rdma_resolve_route(id, WAIT_MS), "rdma_resolve_route");
	need(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
	take_apart(id);
	return id;
}

int main(int argc, char **argv)
{
	struct rdma_conn_param param = { .private_data = "ask", .private_data_len = 4 };
	const char *how = argc == 3 ? argv[1] : "";
	bool accepts = !strcmp(how, "accept"), connects = !strcmp(how, "connect");
	struct rdma_cm_id *at = NULL, *id;

	if (!accepts && !connects && strcmp(how, "leave")) {
		fprintf(stderr, "usage: ask accept|leave|connect PORT\n");
		return 2;
	}
	address.sin_port = htons(atoi(argv[2]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!connects)
		at = listener();
	id = resolved();
	need(!rdma_connect(id, &param), "rdma_connect");
	if (connects) {
		puts("asks");
		fflush(stdout);
		pause();
	}
	if (!accepts) {
		need(!rdma_destroy_id(at), "rdma_destroy_id");
		return 0;
	}
	need(rdma_accept(id, &param) && errno == EINVAL, "rdma_accept, which is to fail");
	/* The queue pair stays: its end would be that of the connect. */
	need(!rdma_destroy_id(id), "rdma_destroy_id");
	return 0;
}
