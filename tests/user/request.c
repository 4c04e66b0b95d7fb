// SPDX-License-Identifier: GPL-2.0
/*
 * request destroy|migrate|tail PORT: listens at 127.0.0.1, waits for a connection request, and
 * takes its context away before the event that tells of it is read: by its number, which is easily
 * guessed; with the file that the listener has left; or with a file in whose list the listener has
 * moved to the end.
 *
 * Then the listener goes, which still has that event.  Exit 0 if all commands but those that guess
 * succeed, or 1 with a line that says which did not.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_user_cm.h>

#define DEVICE		"/dev/infiniband/rdma_cm"
/* More than there are numbers in use. */
#define NUMBERS		64

static void need(int done, const char *what)
{
	if (done)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int command(int file, __u32 number, void *argument, __u16 size, __u16 answer)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		char argument[320];
	} message = { .header = { .cmd = number, .in = size, .out = answer } };

	memcpy(message.argument, argument, size);
	return write(file, &message, sizeof(message.header) + size) < 0 ? -1 : 0;
}

static int open_file(void)
{
	int file = open(DEVICE, O_RDWR | O_CLOEXEC);

	need(file >= 0, DEVICE);
	return file;
}

static __u32 listen_at(int file, int port)
{
	struct rdma_ucm_create_id_resp created = {};
	struct rdma_ucm_create_id create = {
		.uid = 1, .response = (unsigned long)&created, .ps = RDMA_PS_TCP,
	};
	struct rdma_ucm_bind_ip bind = {};
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdma_ucm_listen listen = { .backlog = 8 };

	need(!command(file, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(created)),
	     "CREATE_ID");
	memcpy(&bind.addr, &address, sizeof(address));
	bind.id = created.id;
	need(!command(file, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0), "BIND_IP");
	listen.id = created.id;
	need(!command(file, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0), "LISTEN");
	return created.id;
}

static int destroy(int file, __u32 id)
{
	struct rdma_ucm_destroy_id_resp destroyed;
	struct rdma_ucm_destroy_id destroy = { .response = (unsigned long)&destroyed, .id = id };

	return command(file, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy),
		       sizeof(destroyed));
}

static void migrate(int from, int to, __u32 id)
{
	struct rdma_ucm_migrate_resp migrated;
	struct rdma_ucm_migrate_id migrate = {
		.response = (unsigned long)&migrated, .id = id, .fd = from,
	};

	need(!command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate, sizeof(migrate), sizeof(migrated)),
	     "MIGRATE_ID");
}

int main(int argc, char **argv)
{
	const char *how = argc == 3 ? argv[1] : "";
	bool destroys = !strcmp(how, "destroy"), stays = !strcmp(how, "tail");
	struct pollfd request = { .events = POLLIN };
	int file, other, taken = 0;
	__u32 id;

	if (!destroys && !stays && strcmp(how, "migrate")) {
		fprintf(stderr, "usage: request destroy|migrate|tail PORT\n");
		return 2;
	}
	file = open_file();
	other = open_file();
	request.fd = file;
	id = listen_at(file, atoi(argv[2]));
	puts("listens");
	fflush(stdout);
	need(poll(&request, 1, -1) == 1, "poll");
	if (stays) {
		migrate(file, file, id);
		close(file);
		return 0;
	}
	if (destroys) {
		for (__u32 number = 0; number < NUMBERS; number++)
			taken += number != id && !destroy(file, number);
		printf("%d taken\n", taken);
	} else {
		migrate(file, other, id);
		close(file);
		file = other;
	}
	need(!destroy(file, id), "DESTROY_ID");
	return 0;
}
