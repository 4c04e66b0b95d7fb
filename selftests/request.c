// SPDX-License-Identifier: GPL-2.0
/*
 * request destroy|migrate|tail PORT: listens at 127.0.0.1, waits for a
 * connection request, and takes the request's context away before its event is
 * read.  "destroy" does so by the context's number, which is easily guessed;
 * "migrate" with the file that the listener has left; "tail" with a file in
 * whose list the listener has moved to the end.
 *
 * Then the listener goes, which still has that event.  Exit 0 if all commands
 * succeed, those that guess excepted, or 1 with a line that names the failed
 * one.
 *
 * request hold PORT FILE: reads the event into a page of the file, whose file
 * system is frozen until SIGTERM.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/rdma_user_cm.h>

#define DEVICE		"/dev/infiniband/rdma_cm"
/* More numbers than are in use. */
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

struct reader {
	int file;
	struct rdma_ucm_event_resp *event;
	atomic_int task;
};

static void *read_event(void *argument)
{
	struct reader *reader = argument;
	struct rdma_ucm_get_event get = { .response = (unsigned long)reader->event };

	reader->task = gettid();
	need(!command(reader->file, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get),
		      sizeof(*reader->event)), "GET_EVENT");
	return NULL;
}

/* Returns true if the task sleeps and no signal ends that. */
static bool is_held(int task)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", task);
	file = fopen(path, "r");
	need(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1, path);
	fclose(file);
	return state == 'D';
}

static void hold(int file, const char *path)
{
	int fd = open(path, O_RDWR), number;
	struct reader reader = { .file = file };
	pthread_t thread;
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	reader.event = mmap(NULL, sizeof(*reader.event), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(fd >= 0 && reader.event != MAP_FAILED, path);
	need(!ioctl(fd, FIFREEZE, 0), "FIFREEZE");
	need(!pthread_create(&thread, NULL, read_event, &reader), "pthread_create");
	while (!reader.task || !is_held(reader.task))
		usleep(10000);
	puts("holds");
	fflush(stdout);
	sigwait(&end, &number);
	need(!ioctl(fd, FITHAW, 0), "FITHAW");
	pthread_join(thread, NULL);
	puts("has it");
}

int main(int argc, char **argv)
{
	const char *how = argc == 3 ? argv[1] : "";
	bool holds = argc == 4 && !strcmp(argv[1], "hold");
	bool destroys = !strcmp(how, "destroy"), stays = !strcmp(how, "tail");
	struct pollfd request = { .events = POLLIN };
	int file, other, taken = 0;
	__u32 id;

	if (!holds && !destroys && !stays && strcmp(how, "migrate")) {
		fprintf(stderr, "usage: request destroy|migrate|tail PORT, or hold PORT FILE\n");
		return 2;
	}
	file = open_file();
	other = open_file();
	request.fd = file;
	id = listen_at(file, atoi(argv[2]));
	puts("listens");
	fflush(stdout);
	need(poll(&request, 1, -1) == 1, "poll");
	if (holds) {
		hold(file, argv[3]);
		return 0;
	}
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
