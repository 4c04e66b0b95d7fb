// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin: how many instructions the guest executed in each translated
 * block.  Argument: out=FILE, which gets a line "address instructions times" for
 * each block when QEMU ends.
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
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *ptr,
					      uint64_t imm);

#define BUCKETS (1 << 16)

struct block {
	struct block *next;
	uint64_t address;
	uint64_t count;
	uint64_t times;
};

static struct block *blocks[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *out;

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

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *block;

	(void)id;
	pthread_mutex_lock(&lock);
	block = find(qemu_plugin_tb_vaddr(tb));
	pthread_mutex_unlock(&lock);
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->count,
						 qemu_plugin_tb_n_insns(tb));
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->times, 1);
}

static void at_exit(qemu_plugin_id_t id, void *arg)
{
	FILE *file = fopen(out, "w");

	(void)id;
	(void)arg;
	if (!file)
		return;
	for (int i = 0; i < BUCKETS; i++)
		for (struct block *block = blocks[i]; block; block = block->next)
			fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->address,
				block->count, block->times);
	fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	if (!out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
