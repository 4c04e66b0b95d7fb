// SPDX-License-Identifier: GPL-2.0
/*
 * stranger: a program without a queue pair that names those of others on
 * /dev/infiniband/rdma_cm.
 *
 * stranger [-c RDMA_CM] listen ADDRESS PORT
 *	listens and answers no request until SIGTERM, then prints their number
 * stranger [-c RDMA_CM] refuse ADDRESS PORT
 *	listens and destroys each request at once
 * stranger [-c RDMA_CM] connect ADDRESS PORT NUMBER...
 *	connects with each of these numbers, as one identifier
 * stranger [-c RDMA_CM] accept ADDRESS PORT NUMBER...
 *	listens and accepts the first request with each of these numbers
 * stranger [-c RDMA_CM] take ADDRESS PORT
 *	listens at a server's address, in each port space of the connection
 *	manager: the space of streams has to refuse that, and in the others no
 *	request comes until SIGTERM
 * stranger [-c RDMA_CM] spin ADDRESS PORT FILE COUNT
 *	connects with COUNT numbers from that in the file on, which is read
 *	again and again, until SIGTERM and at least one call, then prints the
 *	number of refusals
 *
 * The kernel has to refuse each call with a number by EINVAL, and a port in use
 * by EADDRINUSE or EADDRNOTAVAIL: exit 1 if one was accepted, or refused
 * otherwise, or if "take" got a request. Exit 2 if the program could not begin,
 * or made no call of its kind.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_user_cm.h>

#define die(status, ...)	do { dprintf(1, "stranger: " __VA_ARGS__); exit(status); } while (0)

enum { ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, NO_EVENT = -1 };

static const char *device = "/dev/infiniband/rdma_cm";
static struct sockaddr_in address = { .sin_family = AF_INET };
static atomic_bool is_over;
static unsigned long refused, requests;
static int fd;

/* Makes a call. Returns 0 or a negative errno. */
static int call(int number, void *in, size_t len, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		char body[512];
	} m = { .header = { .cmd = number, .in = len, .out = out } };

	memcpy(m.body, in, len);
	return write(fd, &m, sizeof(m.header) + len) < 0 ? -errno : 0;
}

static int create(uint16_t space)
{
	struct rdma_ucm_create_id_resp answer = { 0 };
	struct rdma_ucm_create_id c = { .uid = 1, .response = (uintptr_t)&answer,
					.ps = space, .qp_type = 2 };
	int error = call(RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(answer));

	return error ?: (int)answer.id;
}

static void destroy(int id)
{
	struct rdma_ucm_destroy_id_resp answer;
	struct rdma_ucm_destroy_id c = { .response = (uintptr_t)&answer, .id = id };

	call(RDMA_USER_CM_CMD_DESTROY_ID, &c, sizeof(c), sizeof(answer));
}

/* The next event, or NO_EVENT if none comes in that time. */
static int next_event(int ms, struct rdma_ucm_event_resp *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct rdma_ucm_get_event c = { .response = (uintptr_t)e };

	memset(e, 0, sizeof(*e));
	if (poll(&p, 1, ms) <= 0 || call(RDMA_USER_CM_CMD_GET_EVENT, &c, sizeof(c), sizeof(*e)))
		return NO_EVENT;
	return e->event;
}

/* An identifier that may connect to the address, or a negative number. */
static int resolved(void)
{
	struct rdma_ucm_resolve_addr a = { .timeout_ms = 60000, .dst_size = sizeof(address) };
	struct rdma_ucm_resolve_route r = { .timeout_ms = 60000 };
	struct rdma_ucm_event_resp e;
	int id = create(RDMA_PS_TCP);

	if (id < 0)
		return id;
	a.id = id;
	r.id = id;
	memcpy(&a.dst_addr, &address, sizeof(address));
	if (!call(RDMA_USER_CM_CMD_RESOLVE_ADDR, &a, sizeof(a), 0) &&
	    next_event(-1, &e) == ADDR_RESOLVED &&
	    !call(RDMA_USER_CM_CMD_RESOLVE_ROUTE, &r, sizeof(r), 0) &&
	    next_event(-1, &e) == ROUTE_RESOLVED)
		return id;
	destroy(id);
	return -1;
}

static void has_to_be_refused(const char *call, int error, uint32_t number)
{
	if (error != -EINVAL)
		die(1, "%s with %u: %s\n", call, number, error ? strerror(-error) : "was taken");
	refused++;
}

static void connect_with(int id, uint32_t number)
{
	struct rdma_ucm_connect c = { .id = id };

	c.conn_param.valid = 1;
	c.conn_param.qp_num = number;
	c.conn_param.responder_resources = 1;
	c.conn_param.initiator_depth = 1;
	has_to_be_refused("connect", call(RDMA_USER_CM_CMD_CONNECT, &c, sizeof(c), 0), number);
}

static void accept_with(int id, uint32_t number)
{
	struct rdma_ucm_accept c = { .id = id, .uid = 2 };

	c.conn_param.valid = 1;
	c.conn_param.qp_num = number;
	c.conn_param.responder_resources = 1;
	c.conn_param.initiator_depth = 1;
	has_to_be_refused("accept", call(RDMA_USER_CM_CMD_ACCEPT, &c, sizeof(c), 0), number);
}

/* Listens. Returns 0 or a negative errno. */
static int listen_in(uint16_t space)
{
	struct rdma_ucm_bind b = { .addr_size = sizeof(address) };
	struct rdma_ucm_listen l = { .backlog = 64 };
	int id = create(space), error;

	if (id < 0)
		die(2, "no identifier\n");
	b.id = id;
	l.id = id;
	memcpy(&b.addr, &address, sizeof(address));
	error = call(RDMA_USER_CM_CMD_BIND, &b, sizeof(b), 0);
	return error ?: call(RDMA_USER_CM_CMD_LISTEN, &l, sizeof(l), 0);
}

static void begin_to_listen(void)
{
	if (listen_in(RDMA_PS_TCP))
		die(2, "cannot listen\n");
	dprintf(1, "stranger: listens\n");
}

static void take(void)
{
	static const uint16_t others[] = { RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB };
	struct rdma_ucm_event_resp e;
	int error = listen_in(RDMA_PS_TCP), listening = 0;

	if (error != -EADDRINUSE && error != -EADDRNOTAVAIL)
		die(1, "the port: %s\n", error ? strerror(-error) : "was taken");
	refused++;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		error = listen_in(others[i]);
		if (error && error != -EPROTONOSUPPORT)
			die(1, "the port, in space %#x: %s\n", others[i], strerror(-error));
		listening += !error;
	}
	if (!listening)
		die(2, "cannot listen\n");
	dprintf(1, "stranger: listens\n");
	while (!is_over)
		if (next_event(200, &e) == CONNECT_REQUEST)
			die(1, "a request of the server's\n");
}

static uint32_t number_in(const char *name)
{
	char text[32] = "";
	int file = open(name, O_RDONLY);

	if (file < 0 || read(file, text, sizeof(text) - 1) < 0)
		die(2, "%s: %s\n", name, strerror(errno));
	close(file);
	return strtoul(text, NULL, 10);
}

static void spin(const char *file, unsigned int count)
{
	/* Until the end, and until the first call. */
	while (!is_over || !refused) {
		int id = resolved();

		/* An identifier that could not connect may try again. */
		for (int round = 0; id >= 0 && round < 64 && !(is_over && refused); round++) {
			uint32_t first = number_in(file);

			for (uint32_t i = 0; i < count; i++)
				connect_with(id, first + i);
		}
		if (id >= 0)
			destroy(id);
	}
}

static void serve(char **numbers)
{
	struct rdma_ucm_event_resp e;

	while (next_event(200, &e) != CONNECT_REQUEST)
		if (is_over)
			die(2, "no request came\n");
	requests++;
	for (; *numbers; numbers++)
		accept_with(e.id, strtoul(*numbers, NULL, 10));
	destroy(e.id);
}

static void stop(int signal)
{
	(void)signal;
	is_over = 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
	struct rdma_ucm_event_resp e;
	int id;

	if (argc > 3 && !strcmp(argv[1], "-c")) {
		device = argv[2];
		argv += 2;
		argc -= 2;
	}
	if (argc < 4 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
		die(2, "bad arguments\n");
	address.sin_port = htons(atoi(argv[3]));
	sigaction(SIGTERM, &action, NULL);
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(2, "%s: %s\n", device, strerror(errno));
	if (!strcmp(argv[1], "listen") || !strcmp(argv[1], "refuse")) {
		begin_to_listen();
		while (!is_over) {
			if (next_event(200, &e) != CONNECT_REQUEST)
				continue;
			requests++;
			if (argv[1][0] == 'r')
				destroy(e.id);
		}
	} else if (!strcmp(argv[1], "connect")) {
		id = resolved();
		if (id < 0)
			die(2, "no route\n");
		for (char **number = argv + 4; *number; number++)
			connect_with(id, strtoul(*number, NULL, 10));
	} else if (!strcmp(argv[1], "take")) {
		take();
	} else if (!strcmp(argv[1], "accept")) {
		begin_to_listen();
		serve(argv + 4);
	} else if (!strcmp(argv[1], "spin") && argc == 6) {
		spin(argv[4], atoi(argv[5]));
	} else {
		die(2, "bad arguments\n");
	}
	dprintf(1, "stranger: %lu refused, %lu requests\n", refused, requests);
	return 0;
}
