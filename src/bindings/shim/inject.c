// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection: the settings of a device's faults, and their files in
 * debugfs. sys/inject.rs chooses the sites that a fault hits; the kernel's
 * fault injection decides on times, space and task filter.
 */
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/fault-inject.h>
#include <linux/jhash.h>
#include <linux/jump_label.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS

/* True while any fault of any device has a probability. */
struct ndk_switch ndk_faults_on = { .key = STATIC_KEY_FALSE_INIT };

/* Serializes changes of a probability, and of the folders. */
static DEFINE_MUTEX(ndk_faults_mutex);
static struct dentry *ndk_faults_root;
static unsigned int ndk_faults_shown;

struct ndk_fault {
	struct fault_attr attr;
	struct ndk_faults *all;
	struct ndk_fault_settings settings;
	struct ndk_fault_counts counts;
};

struct ndk_faults {
	/* protects the counts, and those of each queue pair in sys/inject.rs */
	spinlock_t lock;
	struct dentry *dir;
	struct ndk_fault fault[NDK_FAULT_COUNT];
};

/* The words of a file: names of the bits from `first` on. */
struct ndk_words {
	const char *file;
	u32 first;
	const char *const *names;
	unsigned int count;
};

static const char *const ndk_request_names[] = {
	"send", "write", "read", "atomic", "reg_mr", "local_inv", "bind_mw", "recv",
};

static const char *const ndk_object_names[] = {
	"pd", "cq", "qp", "srq", "mr", "listener", "connection",
};

static const char *const ndk_event_names[] = { "request", "reply", "disconnect" };

static const struct ndk_words ndk_requests = {
	"opcode", NDK_WHAT_SEND, ndk_request_names, ARRAY_SIZE(ndk_request_names),
};

static const struct ndk_words ndk_objects = {
	"object", NDK_WHAT_PD, ndk_object_names, ARRAY_SIZE(ndk_object_names),
};

static const struct ndk_words ndk_events = {
	"event", NDK_WHAT_REQUEST, ndk_event_names, ARRAY_SIZE(ndk_event_names),
};

/* The names are in the order of the bits. */
static_assert(NDK_WHAT_SEND << (ARRAY_SIZE(ndk_request_names) - 1) == NDK_WHAT_RECV);
static_assert(NDK_WHAT_PD << (ARRAY_SIZE(ndk_object_names) - 1) == NDK_WHAT_CONNECTION);
static_assert(NDK_WHAT_REQUEST << (ARRAY_SIZE(ndk_event_names) - 1) == NDK_WHAT_DISCONNECT);

static const char *const ndk_status_names[] = {
	"loc_len_err", "loc_qp_op_err", "loc_prot_err", "wr_flush_err", "mw_bind_err",
	"rem_inv_req_err", "rem_access_err", "rem_op_err", "retry_exc_err",
	"rnr_retry_exc_err", "fatal_err",
};

/* In the same order. */
static const u32 ndk_status_values[ARRAY_SIZE(ndk_status_names)] = {
	IB_WC_LOC_LEN_ERR, IB_WC_LOC_QP_OP_ERR, IB_WC_LOC_PROT_ERR, IB_WC_WR_FLUSH_ERR,
	IB_WC_MW_BIND_ERR, IB_WC_REM_INV_REQ_ERR, IB_WC_REM_ACCESS_ERR, IB_WC_REM_OP_ERR,
	IB_WC_RETRY_EXC_ERR, IB_WC_RNR_RETRY_EXC_ERR, IB_WC_FATAL_ERR,
};

static const char *const ndk_side_names[NDK_SIDE_COUNT] = {
	[NDK_SIDE_BOTH] = "both",
	[NDK_SIDE_REQUESTER] = "requester",
};

/* Sets of sites that faults can hit. */
#define NDK_MESSAGES	(NDK_WHAT_SEND | NDK_WHAT_WRITE | NDK_WHAT_READ | NDK_WHAT_ATOMIC)
#define NDK_REQUESTS	(NDK_MESSAGES | NDK_WHAT_REG_MR | NDK_WHAT_LOCAL_INV | NDK_WHAT_BIND_MW)
#define NDK_OBJECTS	(NDK_WHAT_PD | NDK_WHAT_CQ | NDK_WHAT_QP | NDK_WHAT_SRQ | \
			 NDK_WHAT_MR | NDK_WHAT_LISTENER | NDK_WHAT_CONNECTION)
#define NDK_EVENTS	(NDK_WHAT_REQUEST | NDK_WHAT_REPLY | NDK_WHAT_DISCONNECT)

static const struct ndk_fault_kind_info {
	const char *name;
	/* kinds of sites that it may match; only requests have a queue pair */
	const struct ndk_words *words;
	/* kinds of sites that it can hit */
	u32 what;
	bool has_usec;
	/* initial microseconds */
	u32 usec;
	bool has_status;
	bool has_side;
} ndk_fault_kinds[NDK_FAULT_COUNT] = {
	[NDK_FAULT_DROP_CONNECTION] = {
		"fail_drop_connection", &ndk_requests, NDK_MESSAGES,
	},
	[NDK_FAULT_COMPLETE_WITH] = {
		"fail_complete_with", &ndk_requests, NDK_REQUESTS | NDK_WHAT_RECV,
		.has_status = true,
	},
	[NDK_FAULT_DELAY_COMPLETION] = {
		"fail_delay_completion", &ndk_requests, NDK_REQUESTS,
		.has_usec = true, .usec = 1000, .has_side = true,
	},
	[NDK_FAULT_DELAY_MESSAGE] = {
		"fail_delay_message", &ndk_requests, NDK_MESSAGES,
		.has_usec = true, .usec = 1000,
	},
	[NDK_FAULT_RNR] = {
		"fail_rnr", &ndk_requests, NDK_WHAT_SEND | NDK_WHAT_WRITE,
		.has_usec = true, .usec = 1000,
	},
	[NDK_FAULT_REFUSE_INVALIDATION] = {
		"fail_refuse_invalidation", &ndk_requests,
		NDK_WHAT_SEND | NDK_WHAT_READ | NDK_WHAT_LOCAL_INV,
	},
	[NDK_FAULT_REFUSE_ACCESS] = {
		"fail_refuse_access", &ndk_requests,
		NDK_WHAT_WRITE | NDK_WHAT_READ | NDK_WHAT_ATOMIC,
	},
	[NDK_FAULT_CORRUPT] = {
		"fail_corrupt", &ndk_requests,
		NDK_WHAT_SEND | NDK_WHAT_WRITE | NDK_WHAT_READ,
	},
	[NDK_FAULT_PORT_DOWN] = {
		"fail_port_down", &ndk_requests, NDK_MESSAGES,
		.has_usec = true, .usec = 1000,
	},
	[NDK_FAULT_REJECT_CONNECT] = { "fail_reject_connect" },
	[NDK_FAULT_DELAY_CONNECT] = {
		"fail_delay_connect", .has_usec = true, .usec = 1000,
	},
	/* With the initial 0 a lost connect ends at its own timeout. */
	[NDK_FAULT_DROP_EVENT] = {
		"fail_drop_event", &ndk_events, NDK_EVENTS, .has_usec = true,
	},
	[NDK_FAULT_NO_MEMORY] = { "fail_no_memory", &ndk_objects, NDK_OBJECTS },
};

static const struct ndk_fault_kind_info *ndk_fault_info(const struct ndk_fault *f)
{
	return &ndk_fault_kinds[f - f->all->fault];
}

const char *ndk_fault_name(u32 kind)
{
	return ndk_fault_kinds[kind].name;
}

/* Copies a word or words that user space writes; the caller frees the copy. */
static char *ndk_text_from_user(const char __user *from, size_t count)
{
	return count < 128 ? memdup_user_nul(from, count) : ERR_PTR(-EINVAL);
}

static struct ndk_fault *ndk_fault_of(struct file *file)
{
	return ((struct seq_file *)file->private_data)->private;
}

/* Shows the kinds that a fault matches: words with commas between, or "any". */
static int ndk_what_show(struct seq_file *m, void *unused)
{
	const struct ndk_fault *f = m->private;
	const struct ndk_words *words = ndk_fault_info(f)->words;
	unsigned long what = READ_ONCE(f->settings.what) / words->first;
	const char *sep = "";
	unsigned int bit;

	for_each_set_bit(bit, &what, words->count) {
		seq_printf(m, "%s%s", sep, words->names[bit]);
		sep = ",";
	}
	seq_puts(m, what ? "\n" : "any\n");
	return 0;
}

/* Returns the bits of a list of words, or an error. */
static int ndk_words_parse(const struct ndk_words *words, char *text)
{
	char *word;
	u32 what = 0;
	int bit;

	while ((word = strsep(&text, ","))) {
		bit = match_string(words->names, words->count, strim(word));
		if (bit < 0)
			return bit;
		what |= words->first << bit;
	}
	return what;
}

/* No setting matches both: receives are numbered apart from requests. */
static bool ndk_can_match(const struct ndk_fault_kind_info *info, u32 what)
{
	return !(what & ~info->what) && (!(what & NDK_WHAT_RECV) || what == NDK_WHAT_RECV);
}

static ssize_t ndk_what_write(struct file *file, const char __user *buf, size_t count,
			      loff_t *pos)
{
	char *text __free(kfree) = ndk_text_from_user(buf, count);
	struct ndk_fault *f = ndk_fault_of(file);
	int what = 0;

	if (IS_ERR(text))
		return PTR_ERR(text);
	if (!sysfs_streq(text, "any"))
		what = ndk_words_parse(ndk_fault_info(f)->words, text);
	if (what < 0)
		return what;
	if (!ndk_can_match(ndk_fault_info(f), what))
		return -EINVAL;
	WRITE_ONCE(f->settings.what, what);
	return count;
}

DEFINE_SHOW_STORE_ATTRIBUTE(ndk_what);

static int ndk_status_show(struct seq_file *m, void *unused)
{
	const struct ndk_fault *f = m->private;
	u32 status = READ_ONCE(f->settings.status);
	int i;

	for (i = 0; i < ARRAY_SIZE(ndk_status_values); i++) {
		if (ndk_status_values[i] == status)
			seq_printf(m, "%s\n", ndk_status_names[i]);
	}
	return 0;
}

static ssize_t ndk_status_write(struct file *file, const char __user *buf,
				size_t count, loff_t *pos)
{
	char *text __free(kfree) = ndk_text_from_user(buf, count);
	int i;

	if (IS_ERR(text))
		return PTR_ERR(text);
	i = match_string(ndk_status_names, ARRAY_SIZE(ndk_status_names), strim(text));
	if (i < 0)
		return i;
	WRITE_ONCE(ndk_fault_of(file)->settings.status, ndk_status_values[i]);
	return count;
}

DEFINE_SHOW_STORE_ATTRIBUTE(ndk_status);

static int ndk_side_show(struct seq_file *m, void *unused)
{
	const struct ndk_fault *f = m->private;

	seq_printf(m, "%s\n", ndk_side_names[READ_ONCE(f->settings.side)]);
	return 0;
}

static ssize_t ndk_side_write(struct file *file, const char __user *buf, size_t count,
			      loff_t *pos)
{
	char *text __free(kfree) = ndk_text_from_user(buf, count);
	int side;

	if (IS_ERR(text))
		return PTR_ERR(text);
	side = match_string(ndk_side_names, NDK_SIDE_COUNT, strim(text));
	if (side < 0)
		return side;
	WRITE_ONCE(ndk_fault_of(file)->settings.side, side);
	return count;
}

DEFINE_SHOW_STORE_ATTRIBUTE(ndk_side);

/* Sets a probability, which begins all counts anew. Under the mutex. */
static void ndk_fault_arm_locked(struct ndk_fault *f, u32 probability)
{
	u32 was = f->settings.probability;

	scoped_guard(spinlock_irqsave, &f->all->lock) {
		f->counts = (struct ndk_fault_counts){ .run = f->counts.run + 1 };
		WRITE_ONCE(f->settings.probability, probability);
	}
	if (!was && probability)
		static_branch_inc(&ndk_faults_on.key);
	else if (was && !probability)
		static_branch_dec(&ndk_faults_on.key);
}

static int ndk_probability_get(void *data, u64 *val)
{
	struct ndk_fault *f = data;

	*val = READ_ONCE(f->settings.probability);
	return 0;
}

static int ndk_probability_set(void *data, u64 val)
{
	if (val > 100)
		return -EINVAL;
	guard(mutex)(&ndk_faults_mutex);
	ndk_fault_arm_locked(data, val);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(ndk_probability_fops, ndk_probability_get,
			 ndk_probability_set, "%llu\n");

static int ndk_number_get(void *data, u64 *val)
{
	*val = READ_ONCE(*(u32 *)data);
	return 0;
}

static int ndk_number_set(void *data, u64 val)
{
	if (val > U32_MAX)
		return -ERANGE;
	WRITE_ONCE(*(u32 *)data, val);
	return 0;
}

static int ndk_interval_set(void *data, u64 val)
{
	return val ? ndk_number_set(data, val) : -EINVAL;
}

static int ndk_usec_set(void *data, u64 val)
{
	return val > NDK_FAULT_USEC_MAX ? -ERANGE : ndk_number_set(data, val);
}

DEFINE_DEBUGFS_ATTRIBUTE(ndk_number_fops, ndk_number_get, ndk_number_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(ndk_interval_fops, ndk_number_get, ndk_interval_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(ndk_usec_fops, ndk_number_get, ndk_usec_set, "%llu\n");

/* Makes the files that only some faults have. */
static void ndk_fault_show_special(struct ndk_fault *f, struct dentry *dir)
{
	const struct ndk_fault_kind_info *info = ndk_fault_info(f);

	if (info->words)
		debugfs_create_file(info->words->file, 0600, dir, f, &ndk_what_fops);
	if (info->words == &ndk_requests)
		debugfs_create_file("qp", 0600, dir, &f->settings.qp, &ndk_number_fops);
	if (info->has_usec)
		debugfs_create_file("usec", 0600, dir, &f->settings.usec, &ndk_usec_fops);
	if (info->has_status)
		debugfs_create_file("status", 0600, dir, f, &ndk_status_fops);
	if (info->has_side)
		debugfs_create_file("side", 0600, dir, f, &ndk_side_fops);
}

/*
 * Replaces two files of the kernel's: its own probability stays at 100, and its
 * interval at 1, as Rust draws and counts for each queue pair.
 */
static void ndk_fault_show_own(struct ndk_fault *f, struct dentry *dir)
{
	debugfs_lookup_and_remove("probability", dir);
	debugfs_lookup_and_remove("interval", dir);
	debugfs_create_file("probability", 0600, dir, f, &ndk_probability_fops);
	debugfs_create_file("interval", 0600, dir, &f->settings.interval, &ndk_interval_fops);
}

static void ndk_fault_show(struct ndk_fault *f, struct dentry *parent)
{
	const char *name = ndk_fault_info(f)->name;
	struct dentry *dir = fault_create_debugfs_attr(name, parent, &f->attr);

	if (IS_ERR(dir))
		return;
	ndk_fault_show_own(f, dir);
	debugfs_create_file("nth", 0600, dir, &f->settings.nth, &ndk_number_fops);
	debugfs_create_file("seed", 0600, dir, &f->settings.seed, &ndk_number_fops);
	debugfs_create_u32("seen", 0400, dir, &f->counts.seen);
	debugfs_create_u32("hits", 0400, dir, &f->counts.hits);
	ndk_fault_show_special(f, dir);
}

/* Off, with interval 1 and times 1: a fault with a probability hits once. */
static void ndk_fault_init(struct ndk_fault *f, struct ndk_faults *all)
{
	f->all = all;
	f->attr.probability = 100;
	f->attr.interval = 1;
	atomic_set(&f->attr.times, 1);
	f->attr.require_end = ULONG_MAX;
	f->attr.stacktrace_depth = 32;
	ratelimit_state_init(&f->attr.ratelimit_state, 0, 0);
	f->settings.interval = 1;
	f->settings.status = IB_WC_REM_OP_ERR;
	f->settings.usec = ndk_fault_info(f)->usec;
	f->settings.seed = get_random_u32();
}

/* Makes the faults of a device, off and without files; NULL without memory. */
struct ndk_faults *ndk_faults_new(void)
{
	struct ndk_faults *faults = kzalloc(sizeof(*faults), GFP_KERNEL);
	int i;

	if (!faults)
		return NULL;
	spin_lock_init(&faults->lock);
	for (i = 0; i < NDK_FAULT_COUNT; i++)
		ndk_fault_init(&faults->fault[i], faults);
	return faults;
}

/* Makes the folder of a device, in the folder of all devices. */
static struct dentry *ndk_faults_dir(const char *device)
{
	lockdep_assert_held(&ndk_faults_mutex);
	if (!ndk_faults_shown++)
		ndk_faults_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
	return debugfs_create_dir(device, ndk_faults_root);
}

/*
 * Makes the files of a device. The device works without them: debugfs may be
 * off, or the name may be taken, which debugfs reports.
 */
void ndk_faults_show(struct ndk_faults *faults, const char *device)
{
	int i;

	guard(mutex)(&ndk_faults_mutex);
	if (faults->dir)
		return;
	faults->dir = ndk_faults_dir(device);
	for (i = 0; i < NDK_FAULT_COUNT && !IS_ERR(faults->dir); i++)
		ndk_fault_show(&faults->fault[i], faults->dir);
}

/* Renames the folder of a device. */
void ndk_faults_rename(struct ndk_faults *faults, const char *device)
{
	guard(mutex)(&ndk_faults_mutex);
	if (debugfs_change_name(faults->dir, "%s", device))
		pr_warn("%s: its faults stay in the folder %pd\n", device, faults->dir);
}

/* Removes the files, and turns all faults off. */
void ndk_faults_hide(struct ndk_faults *faults)
{
	struct dentry *dir;
	int i;

	scoped_guard(mutex, &ndk_faults_mutex)
		dir = xchg(&faults->dir, NULL);
	/* Waits for readers and writers, which take the mutex. */
	debugfs_remove(dir);
	guard(mutex)(&ndk_faults_mutex);
	for (i = 0; i < NDK_FAULT_COUNT; i++)
		ndk_fault_arm_locked(&faults->fault[i], 0);
	if (dir && !--ndk_faults_shown)
		debugfs_remove(ndk_faults_root);
}

/* Any context: the faults are off. */
void ndk_faults_free(struct ndk_faults *faults)
{
	kfree(faults);
}

struct ndk_fault_settings *ndk_fault_settings(struct ndk_faults *faults, u32 kind)
{
	return &faults->fault[kind].settings;
}

/* Any context: interrupts are off until ndk_fault_unlock(). */
struct ndk_fault_counts *ndk_fault_lock(struct ndk_faults *faults, u32 kind,
					unsigned long *flags)
{
	spin_lock_irqsave(&faults->lock, *flags);
	return &faults->fault[kind].counts;
}

void ndk_fault_unlock(struct ndk_faults *faults, unsigned long flags)
{
	spin_unlock_irqrestore(&faults->lock, flags);
}

/* Returns the decision of the kernel's fault injection. Under the lock. */
bool ndk_fault_should_fail(struct ndk_faults *faults, u32 kind, u64 size)
{
	return should_fail(&faults->fault[kind].attr, min_t(u64, size, INT_MAX));
}

u32 ndk_fault_draw(u32 seed, u32 user, u32 number, u32 kind)
{
	return jhash_3words(seed, user, number, kind);
}

#endif
