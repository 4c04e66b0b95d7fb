// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin: how many instructions, or how much time, went into each translated
 * block of the guest.  Argument: out=FILE, which gets a line "address instructions times" for
 * each block when QEMU ends.
 *
 * With clock=on the line is "address nanoseconds times": the host's time from the
 * beginning of the block to that of the next one on the same virtual processor, QEMU's
 * own work in between included; an instruction that halts has the time asleep.
 *
 * QEMU's packages come without qemu-plugin.h; what is used of it is declared here
 * (plugin API version 1).
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;

#define QEMU_PLUGIN_INLINE_ADD_U64	0
#define EXPORT				__attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t id,
						      struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*cb)(qemu_plugin_id_t id, void *arg), void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int cpu, void *data), int flags,
					  void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *ptr,
					      uint64_t imm);

#define BUCKETS (1 << 16)
/* As many virtual processors as clock=on is for. */
#define CPUS	2

struct block {
	struct block *next;
	uint64_t address;
	uint64_t count;
	uint64_t times;
	/* With clock=on, of each virtual processor. */
	struct {
		uint64_t cycles, times;
	} on[CPUS];
};

/* What a virtual processor executes, and since when: its own cache line. */
struct now {
	struct block *block;
	uint64_t since;
	uint64_t unused[6];
};

static struct now nows[CPUS] __attribute__((aligned(64)));
static bool clocked;
static struct block *blocks[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *out;
static uint64_t first_wall, first_clock;

static uint64_t wall(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A block is translated again and again, and keeps its count. */
static struct block *find(uint64_t address)
{
	struct block **bucket = &blocks[(address >> 1) % BUCKETS], *block;

	for (block = *bucket; block; block = block->next)
		if (block->address == address)
			return block;
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	block->address = address;
	block->next = *bucket;
	*bucket = block;
	return block;
}

static void begun(unsigned int cpu, void *data)
{
	uint64_t clock = __builtin_ia32_rdtsc();
	struct now *now;

	if (cpu >= CPUS)
		abort();
	now = &nows[cpu];
	if (now->block) {
		now->block->on[cpu].cycles += clock - now->since;
		now->block->on[cpu].times++;
	}
	now->block = data;
	/* Read anew: the time of this function belongs to no block. */
	now->since = __builtin_ia32_rdtsc();
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *block;

	(void)id;
	pthread_mutex_lock(&lock);
	block = find(qemu_plugin_tb_vaddr(tb));
	pthread_mutex_unlock(&lock);
	if (clocked) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, begun, 0, block);
		return;
	}
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->count,
						 qemu_plugin_tb_n_insns(tb));
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->times, 1);
}

static void at_exit(qemu_plugin_id_t id, void *arg)
{
	FILE *file = fopen(out, "w");
	uint64_t clock = __builtin_ia32_rdtsc() - first_clock;
	double nanoseconds = (double)(wall() - first_wall) / (double)clock;

	(void)id;
	(void)arg;
	if (!file)
		return;
	for (int i = 0; i < BUCKETS; i++)
		for (struct block *block = blocks[i]; block; block = block->next) {
			for (int cpu = 0; cpu < CPUS; cpu++) {
				block->count += (uint64_t)((double)block->on[cpu].cycles * nanoseconds);
				block->times += block->on[cpu].times;
			}
			fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->address,
				block->count, block->times);
		}
	fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
		clocked |= !strcmp(argv[i], "clock=on");
	}
	if (!out)
		return -1;
	first_wall = wall();
	first_clock = __builtin_ia32_rdtsc();
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
