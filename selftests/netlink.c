// SPDX-License-Identifier: GPL-2.0
/*
 * netlink: a program without rights that sends NETLINK_RDMA all that it may,
 * for some seconds.
 *
 * netlink [-s SEED] [-l SECONDS] [-q FILE] [-i | -m]
 * -q: reads numbers of queue pairs from the file, one a line, and names them.
 * -i: tries to be the iWARP port mapper, too: a kernel whose iw_cm does not
 * check the sender takes the program for the mapper (docs/found.md), and the
 * program ends. -m: is the port mapper of such a kernel, and answers no request
 * as long as it runs.
 *
 * Each command gets attributes of the right type with numbers that may exist;
 * the program then changes some of them, and asks for some commands as a dump.
 * Exit 1: a command succeeds that changes an object, or that shows data for
 * administrators only. Exit 2: the program could not begin. The program goes on
 * after its time until one message in four got an answer, and one was EPERM.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#define die(status, ...)	do { dprintf(1, "netlink: " __VA_ARGS__); exit(status); } while (0)
#define LENGTH(a)	(sizeof(a) / sizeof((a)[0]))
#define COMMANDS	40	/* more than there are today */
#define ATTRIBUTES	119
#define IWPM_COMMANDS	9
#define IWPM_HELLO	8
#define DRIVER_DETAILS	97	/* newer than some headers */

/* By number, as the headers of distributions are older. */
static const uint8_t for_admins[] = { 2, 3, 4, 7, 16, 18, 19, 20, 21, 25, 26, 27, 30 };

static uint64_t rng, sent, answered, errors[134];
static uint32_t numbers[64], has, sequence;
static int fd, is_admins[COMMANDS];

static uint64_t rnd(uint64_t below)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return (rng * 0x2545F4914F6CDD1DUL >> 11) % below;
}

static void read_numbers(const char *name)
{
	FILE *f = name ? fopen(name, "re") : NULL;

	for (has = 0; f && has < LENGTH(numbers); has++)
		if (fscanf(f, "%u", &numbers[has]) != 1)
			break;
	if (f)
		fclose(f);
}

static uint64_t value(void)
{
	static const uint64_t odd[] = {
		0, 1, 2, ~0UL, 1UL << 31, 0x7fffffff, 0xffffffff, 1UL << 63
	};

	switch (rnd(4)) {
	case 0:
		return has ? numbers[rnd(has)] : 0x800000 + rnd(64);
	case 1:
		return rnd(300);
	case 2:
		return odd[rnd(LENGTH(odd))];
	default:
		return rnd(4);
	}
}

/* Appends an attribute. Returns the new length of the message. */
static size_t put(uint8_t *m, size_t len, uint16_t type, const void *data, size_t n)
{
	struct nlattr a = { .nla_len = NLA_HDRLEN + n, .nla_type = type };

	memcpy(m + len, &a, sizeof(a));
	memcpy(m + len + NLA_HDRLEN, data, n);
	return len + NLA_ALIGN(a.nla_len);
}

static size_t put_any(uint8_t *m, size_t len)
{
	static const char *const names[] = {
		"ndk0", "lo", "ndk", "ndk1", "", "siw0", "qp", "x\xff"
	};
	static const uint8_t sizes[] = { 1, 2, 4, 4, 4, 8 };
	uint8_t bytes[64];
	const char *name = names[rnd(LENGTH(names))];
	uint64_t v = value();

	switch (rnd(6)) {
	case 0:
		return put(m, len, rnd(ATTRIBUTES), name, strlen(name) + 1);
	case 1:
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = rnd(256);
		return put(m, len, rnd(ATTRIBUTES) | rnd(2) << 15, bytes, rnd(sizeof(bytes)));
	default:
		return put(m, len, rnd(ATTRIBUTES), &v, sizes[rnd(LENGTH(sizes))]);
	}
}

/* The attributes that a command of nldev mostly needs, and some more. */
static size_t fill(uint8_t *m, size_t len)
{
	static const uint16_t ids[] = { RDMA_NLDEV_ATTR_RES_LQPN, RDMA_NLDEV_ATTR_RES_CQN,
		RDMA_NLDEV_ATTR_RES_MRN, RDMA_NLDEV_ATTR_RES_PDN, RDMA_NLDEV_ATTR_RES_CM_IDN,
		RDMA_NLDEV_ATTR_RES_CTXN, RDMA_NLDEV_ATTR_STAT_COUNTER_ID,
		RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_STAT_MODE };
	uint32_t device = rnd(10) ? 0 : rnd(5), port = rnd(10) ? 1 : rnd(5), id;
	uint8_t details = 1;

	if (rnd(10))
		len = put(m, len, RDMA_NLDEV_ATTR_DEV_INDEX, &device, sizeof(device));
	if (rnd(3))
		len = put(m, len, RDMA_NLDEV_ATTR_PORT_INDEX, &port, sizeof(port));
	if (rnd(2))
		len = put(m, len, DRIVER_DETAILS, &details, sizeof(details));
	for (int n = rnd(3); n; n--) {
		id = value();
		len = put(m, len, ids[rnd(LENGTH(ids))], &id, sizeof(id));
	}
	if (!rnd(4)) {
		len = put(m, len, RDMA_NLDEV_ATTR_LINK_TYPE, "ndk", 4);
		len = put(m, len, RDMA_NLDEV_ATTR_DEV_NAME, "ndk9", 5);
		len = put(m, len, RDMA_NLDEV_ATTR_NDEV_NAME, "lo", 3);
	}
	for (int n = rnd(4); n; n--)
		len = put_any(m, len);
	return len;
}

/* Reads answers until none comes within that time. */
static void read_answers(int ms)
{
	static uint8_t buffer[1 << 16];
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, ms) > 0) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		struct nlmsghdr *h = (void *)buffer;

		if (n < 0)
			return;
		for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct nlmsgerr *e = NLMSG_DATA(h);
			uint32_t command;

			answered++;
			if (RDMA_NL_GET_CLIENT(h->nlmsg_type) == RDMA_NL_IWCM)
				die(1, "is the port mapper, and is told %u\n",
				    RDMA_NL_GET_OP(h->nlmsg_type));
			if (h->nlmsg_type != NLMSG_ERROR)
				continue;
			errors[-e->error > 0 && -e->error < 134 ? -e->error : 0]++;
			command = RDMA_NL_GET_OP(e->msg.nlmsg_type);
			/* The kernel ignores non-requests, with success. */
			if (e->error || !(e->msg.nlmsg_flags & NLM_F_REQUEST))
				continue;
			if (RDMA_NL_GET_CLIENT(e->msg.nlmsg_type) == RDMA_NL_IWCM)
				die(1, "is the port mapper, by command %u\n", command);
			if (RDMA_NL_GET_CLIENT(e->msg.nlmsg_type) == RDMA_NL_NLDEV &&
			    command < COMMANDS && is_admins[command])
				die(1, "command %u was carried out\n", command);
		}
	}
}

static void send_one(bool maps)
{
	static uint8_t m[8192];
	struct nlmsghdr *h = (void *)m;
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	bool is_iwpm = maps && !rnd(8);
	size_t len = NLMSG_HDRLEN;
	uint32_t word;
	uint16_t version = 4;

	memset(m, 0, sizeof(m));
	if (is_iwpm && rnd(2)) {
		len = put(m, len, 1, &version, sizeof(version));
		h->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_IWCM, IWPM_HELLO);
	} else if (is_iwpm) {
		for (int n = rnd(6); n; n--)
			len = put_any(m, len);
		h->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_IWCM, rnd(IWPM_COMMANDS));
	} else {
		len = fill(m, len);
		h->nlmsg_type = RDMA_NL_GET_TYPE(rnd(50) ? RDMA_NL_NLDEV : rnd(8), rnd(COMMANDS));
		if (RDMA_NL_GET_CLIENT(h->nlmsg_type) == RDMA_NL_IWCM)
			return;
	}
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (rnd(3) ? 0 : NLM_F_DUMP);
	h->nlmsg_seq = ++sequence;
	h->nlmsg_pid = getpid();
	h->nlmsg_len = len;
	/* Some messages are wrong from end to end. */
	for (int n = rnd(8) ? 0 : 1 + rnd(4); n; n--) {
		word = value();
		memcpy(m + NLMSG_HDRLEN + rnd(len), &word, sizeof(word));
	}
	if (!rnd(30))
		h->nlmsg_len = rnd(len + 64);
	if (sendto(fd, m, len, 0, (void *)&kernel, sizeof(kernel)) == (ssize_t)len)
		sent++;
}

/* Becomes the port mapper, and reads the kernel's requests. */
static void be_mapper(uint64_t end)
{
	struct { struct nlmsghdr h; uint8_t rest[64]; } m = { .h = {
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_IWCM, IWPM_HELLO),
		.nlmsg_flags = NLM_F_REQUEST,
	} };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int group = RDMA_NL_GROUP_IWPM, asked = 0;
	uint16_t version = 4;

	m.h.nlmsg_len = put((void *)&m, NLMSG_HDRLEN, 1, &version, sizeof(version));
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) ||
	    sendto(fd, &m, m.h.nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) < 0)
		die(2, "no port mapper: %s\n", strerror(errno));
	while ((uint64_t)time(NULL) < end) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, 200) > 0 && recv(fd, &m, sizeof(m), MSG_DONTWAIT) > 0)
			asked++;
	}
	printf("netlink: was asked %d times\n", asked);
}

/* Most messages had an answer, and one was refused to a user. */
static bool is_enough(void)
{
	return sent && answered * 4 >= sent && errors[EPERM];
}

int main(int argc, char **argv)
{
	uint64_t end = time(NULL) + 10;
	const char *file = NULL;
	bool maps = false, is_mapper = false;
	int option;

	rng = time(NULL);
	while ((option = getopt(argc, argv, "s:l:q:im")) != -1) {
		if (option == 's')
			rng = strtoull(optarg, NULL, 0);
		else if (option == 'l')
			end = time(NULL) + strtoull(optarg, NULL, 0);
		else if (option == 'q')
			file = optarg;
		else if (option == 'i')
			maps = true;
		else if (option == 'm')
			is_mapper = true;
		else
			return 2;
	}
	rng = rng * 0x9E3779B97F4A7C15UL | 1;
	for (size_t i = 0; i < LENGTH(for_admins); i++)
		is_admins[for_admins[i]] = 1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		die(2, "no socket: %s\n", strerror(errno));
	if (is_mapper) {
		be_mapper(end);
		return 0;
	}
	/* A slow machine gets as far as others, later. */
	while ((uint64_t)time(NULL) < end || !is_enough()) {
		if (sent % 512 == 0)
			read_numbers(file);
		send_one(maps);
		read_answers(0);
	}
	read_answers(200);
	printf("netlink: %lu sent, %lu answers", sent, answered);
	for (size_t i = 0; i < LENGTH(errors); i++)
		if (errors[i])
			printf(", %lu %s", errors[i], i ? strerrorname_np(i) ?: "others" : "ok");
	printf("\n");
	return 0;
}
