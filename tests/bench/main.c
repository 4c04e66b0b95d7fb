// SPDX-License-Identifier: GPL-2.0
/*
 * ndk_bench: measures an ib_device through the kernel's consumer interface.
 *
 * A write of a line of NAME=VALUE words (work, dev, addr, port, size, batch,
 * qps, poll, ms or ops) to debugfs ndk_bench/run blocks until the measurement
 * ends; a read of the same open file gives a line with the result. work=memcpy
 * copies memory instead, in qps threads. ndk_bench/time is the clock.
 *
 * A measurement runs in a thread of its own. If the provider keeps the thread
 * from ending, the write fails with ETIMEDOUT and leaves the thread: until it
 * ends the module cannot be unloaded. ETIME: a wait inside was too long, and
 * all was undone.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/parser.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "bench.h"

#define LINE_SIZE	256
/* Time beyond that asked for: set-up, the end, and a slow contestant. */
#define GRACE_MS	60000
#define MOST_MS		60000

/* One measurement, owned by the writer and the thread. */
struct run {
	struct kref ref;
	struct completion done;
	struct bench bench;
	struct bench_result result;
	int ret;
};

/* The state of an open file. */
struct session {
	/* one command at a time, and no reader during it */
	struct mutex lock;
	char answer[LINE_SIZE];
};

static struct dentry *dir;

static void run_release(struct kref *ref)
{
	kfree(container_of(ref, struct run, ref));
}

/* --- time */

static u64 idle_ns(void)
{
	u64 sum = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		u64 idle = get_cpu_idle_time_us(cpu, NULL);
		u64 waiting = get_cpu_iowait_time_us(cpu, NULL);

		if (idle != -1ULL && waiting != -1ULL)
			sum += (idle + waiting) * NSEC_PER_USEC;
	}
	return sum;
}

static u64 total(const struct bench *b)
{
	u64 sum = 0;

	for (u32 i = 0; i < b->nr_conns; i++)
		/* A connection that could not be made has no slots. */
		for (u32 s = 0; b->conns[i].slots && s < b->nr_slots; s++)
			sum += READ_ONCE(b->conns[i].slots[s].done);
	return sum;
}

static void mark(struct bench_result *result, u64 ops)
{
	result->ops = ops;
	result->ns = ktime_get_ns();
	result->idle_ns = idle_ns();
}

static void since(struct bench_result *result, u64 ops)
{
	struct bench_result now;

	mark(&now, ops);
	result->ops = now.ops - result->ops;
	result->ns = now.ns - result->ns;
	result->idle_ns = now.idle_ns - result->idle_ns;
}

/* --- one measurement */

static int run_for_time(struct run *run)
{
	struct bench *b = &run->bench;
	int ret = bench_begin(b, U64_MAX);

	if (ret)
		return ret;
	msleep(max(b->params.ms / 10, 1u));
	mark(&run->result, total(b));
	msleep(b->params.ms);
	since(&run->result, total(b));
	WRITE_ONCE(b->stop, true);
	return bench_await_idle(b, msecs_to_jiffies(BENCH_WAIT_MS));
}

static int run_for_count(struct run *run)
{
	struct bench *b = &run->bench;
	u64 each = max(div_u64(b->params.ops, b->nr_conns * b->nr_slots), 1ULL);
	unsigned long timeout = msecs_to_jiffies(MOST_MS);
	int ret;

	/* Warm up: caches, and the memory that is allocated at first use. */
	ret = bench_begin(b, max(div_u64(each, 10), 1ULL)) ?: bench_await_idle(b, timeout);
	if (ret)
		return ret;
	mark(&run->result, total(b));
	ret = bench_begin(b, each) ?: bench_await_idle(b, timeout);
	since(&run->result, total(b));
	return ret;
}

static int measure(struct run *run)
{
	struct bench *b = &run->bench;
	int ret = bench_open(b);

	if (!ret)
		ret = b->params.ops ? run_for_count(run) : run_for_time(run);
	run->result.total = total(b);
	/* Flushed requests are no failure. */
	bench_close(b);
	return ret;
}

/* --- the limit: memcpy */

struct copier {
	struct run *run;
	struct task_struct *task;
	bool ready;
	u64 done;
};

static void *copy_alloc(u32 size)
{
	return alloc_pages_exact(PAGE_ALIGN(size), GFP_KERNEL | __GFP_ZERO);
}

static void copy_free(void *va, u32 size)
{
	if (va)
		free_pages_exact(va, PAGE_ALIGN(size));
}

/* As many buffers as a connection's slots have. */
static int copier_thread(void *data)
{
	struct copier *c = data;
	u32 size = c->run->bench.params.size, slots = size > SZ_256K ? 4 : 16, i = 0;
	void *from[16] = {}, *to[16] = {};
	int ret = 0;

	for (u32 s = 0; s < slots; s++) {
		from[s] = copy_alloc(size);
		to[s] = copy_alloc(size);
		if (!from[s] || !to[s])
			ret = -ENOMEM;
	}
	WRITE_ONCE(c->ready, true);
	while (!ret && !kthread_should_stop()) {
		memcpy(to[i], from[i], size);
		/* The compiler must not see that the copy is unused. */
		barrier_data(to[i]);
		WRITE_ONCE(c->done, c->done + 1);
		i = (i + 1) % slots;
		cond_resched();
	}
	for (u32 s = 0; s < slots; s++) {
		copy_free(from[s], size);
		copy_free(to[s], size);
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return ret;
}

static u64 copied(const struct copier *copiers, u32 n)
{
	u64 sum = 0;

	for (u32 i = 0; i < n; i++)
		sum += READ_ONCE(copiers[i].done);
	return sum;
}

static void copy_while(struct run *run, struct copier *copiers, u32 n)
{
	const struct bench_params *params = &run->bench.params;
	unsigned long end = jiffies + msecs_to_jiffies(MOST_MS);

	for (u32 i = 0; i < n; i++)
		while (!READ_ONCE(copiers[i].ready))
			schedule_timeout_uninterruptible(1);
	if (params->ops) {
		u64 enough;

		mark(&run->result, copied(copiers, n));
		enough = run->result.ops + params->ops * n;
		while (copied(copiers, n) < enough && time_before(jiffies, end))
			schedule_timeout_uninterruptible(1);
	} else {
		msleep(max(params->ms / 10, 1u));
		mark(&run->result, copied(copiers, n));
		msleep(params->ms);
	}
	since(&run->result, copied(copiers, n));
}

static int measure_memcpy(struct run *run)
{
	struct copier copiers[BENCH_MAX_QPS] = {};
	u32 n = run->bench.params.qps, i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		copiers[i].run = run;
		copiers[i].task = kthread_run(copier_thread, &copiers[i], "ndk_bench_copy");
		if (IS_ERR(copiers[i].task)) {
			ret = PTR_ERR(copiers[i].task);
			break;
		}
	}
	if (!ret)
		copy_while(run, copiers, n);
	while (i--)
		ret = kthread_stop(copiers[i].task) ?: ret;
	return ret;
}

static int run_thread(void *data)
{
	struct run *run = data;

	run->ret = run->bench.work ? measure(run) : measure_memcpy(run);
	complete(&run->done);
	kref_put(&run->ref, run_release);
	module_put_and_kthread_exit(0);
}

/* --- parameters */

enum { WORK, DEV, ADDR, PORT, SIZE, BATCH, QPS, POLL, MS, OPS, BAD };

static const match_table_t words = {
	{ WORK, "work=%s" },
	{ DEV, "dev=%s" },
	{ ADDR, "addr=%s" },
	{ PORT, "port=%u" },
	{ SIZE, "size=%u" },
	{ BATCH, "batch=%u" },
	{ QPS, "qps=%u" },
	{ POLL, "poll=%s" },
	{ MS, "ms=%u" },
	{ OPS, "ops=%u" },
	{ BAD, NULL },
};

static int parse_poll(const substring_t *arg, enum ib_poll_context *poll)
{
	char name[16];

	match_strlcpy(name, arg, sizeof(name));
	if (!strcmp(name, "softirq"))
		*poll = IB_POLL_SOFTIRQ;
	else if (!strcmp(name, "workqueue"))
		*poll = IB_POLL_WORKQUEUE;
	else
		return -EINVAL;
	return 0;
}

static int parse_text(const substring_t *arg, char *to, size_t size)
{
	return match_strlcpy(to, arg, size) < size ? 0 : -EINVAL;
}

static int parse_word(char *word, struct bench_params *params)
{
	substring_t args[MAX_OPT_ARGS];
	unsigned int number = 0;
	int token = match_token(word, words, args);

	switch (token) {
	case WORK:
		return parse_text(&args[0], params->work, sizeof(params->work));
	case DEV:
		return parse_text(&args[0], params->dev, sizeof(params->dev));
	case ADDR:
		return parse_text(&args[0], params->addr, sizeof(params->addr));
	case POLL:
		return parse_poll(&args[0], &params->poll);
	case BAD:
		return -EINVAL;
	}
	if (match_uint(&args[0], &number))
		return -EINVAL;
	switch (token) {
	case PORT:
		if (!number || number > U16_MAX)
			return -EINVAL;
		params->port = number;
		break;
	case SIZE:
		params->size = number;
		break;
	case BATCH:
		params->batch = number;
		break;
	case QPS:
		params->qps = number;
		break;
	case MS:
		params->ms = number;
		break;
	case OPS:
		params->ops = number;
		break;
	}
	return 0;
}

static int check(const struct bench_params *params, const struct bench_work *work)
{
	if (params->size < BENCH_MIN_SIZE || params->size > BENCH_MAX_SIZE ||
	    !params->qps || params->qps > BENCH_MAX_QPS ||
	    !params->batch || params->batch > BENCH_MAX_BATCH ||
	    params->ms > MOST_MS || (!params->ms && !params->ops))
		return -EINVAL;
	if (!work)
		return strcmp(params->work, "memcpy") ? -EINVAL : 0;
	if (params->batch > 1 && strcmp(work->name, "send"))
		return -EINVAL;
	/* Messages of a connection are in one piece of memory. */
	if (work->receives && params->size > SZ_4K)
		return -EINVAL;
	return *params->dev && *params->addr ? 0 : -EINVAL;
}

static int parse(char *line, struct bench *b)
{
	char *word;

	b->params = (struct bench_params){
		.port = 7471,
		.size = 64,
		.batch = 1,
		.qps = 1,
		.poll = IB_POLL_SOFTIRQ,
	};
	while ((word = strsep(&line, " \t\n")))
		if (*word && parse_word(word, &b->params))
			return -EINVAL;
	b->work = bench_find_work(b->params.work);
	return check(&b->params, b->work);
}

/* --- debugfs */

static int bench_file_open(struct inode *inode, struct file *file)
{
	struct session *session = kzalloc_obj(*session);

	if (!session)
		return -ENOMEM;
	mutex_init(&session->lock);
	file->private_data = session;
	return 0;
}

static int bench_file_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static int start(struct run *run)
{
	struct task_struct *task;

	kref_init(&run->ref);
	init_completion(&run->done);
	kref_get(&run->ref);
	/* The reference of the thread, which may outlive the open file. */
	__module_get(THIS_MODULE);
	task = kthread_run(run_thread, run, "ndk_bench");
	if (!IS_ERR(task))
		return 0;
	module_put(THIS_MODULE);
	kref_put(&run->ref, run_release);
	return PTR_ERR(task);
}

static int finish(struct run *run, char *answer)
{
	u32 limit = GRACE_MS + (run->bench.params.ops ? 2 * MOST_MS : 2 * run->bench.params.ms);

	if (!wait_for_completion_timeout(&run->done, msecs_to_jiffies(limit))) {
		pr_err("%s does not let %s end\n", run->bench.params.dev, run->bench.params.work);
		return -ETIMEDOUT;
	}
	if (run->ret > 0) {
		pr_err("%s, %s: %s\n", run->bench.params.dev, run->bench.params.work,
		       ib_wc_status_msg(run->ret));
		return -EIO;
	}
	if (run->ret)
		return run->ret;
	snprintf(answer, LINE_SIZE, "ops=%llu ns=%llu idle_ns=%llu total=%llu\n", run->result.ops,
		 run->result.ns, run->result.idle_ns, run->result.total);
	return 0;
}

static ssize_t bench_file_write(struct file *file, const char __user *from, size_t len,
				loff_t *pos)
{
	struct session *session = file->private_data;
	struct run *run;
	char *line;
	int ret;

	if (len >= LINE_SIZE)
		return -EINVAL;
	line = memdup_user_nul(from, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	run = kzalloc_obj(*run);
	if (!run) {
		kfree(line);
		return -ENOMEM;
	}
	mutex_lock(&session->lock);
	*session->answer = 0;
	ret = parse(line, &run->bench);
	if (ret) {
		kfree(run);
	} else {
		ret = start(run) ?: finish(run, session->answer);
		kref_put(&run->ref, run_release);
	}
	mutex_unlock(&session->lock);
	kfree(line);
	return ret ?: len;
}

static ssize_t bench_file_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	struct session *session = file->private_data;
	char answer[LINE_SIZE];

	mutex_lock(&session->lock);
	strscpy(answer, session->answer);
	mutex_unlock(&session->lock);
	return simple_read_from_buffer(to, len, pos, answer, strlen(answer));
}

/* The clock and the idle time now, for measurements from outside. */
static int bench_time_show(struct seq_file *file, void *unused)
{
	struct bench_result now;

	mark(&now, 0);
	seq_printf(file, "ns=%llu idle_ns=%llu\n", now.ns, now.idle_ns);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(bench_time);

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = bench_file_open,
	.release = bench_file_release,
	.write = bench_file_write,
	.read = bench_file_read,
};

static int __init bench_init(void)
{
	dir = debugfs_create_dir("ndk_bench", NULL);
	debugfs_create_file("run", 0600, dir, NULL, &fops);
	debugfs_create_file("time", 0400, dir, NULL, &bench_time_fops);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(dir);
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("benchmark of an RDMA device through the consumer interface");
MODULE_LICENSE("GPL");
