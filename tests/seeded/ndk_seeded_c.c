// SPDX-License-Identifier: GPL-2.0
/*
 * ndk_seeded_c: bugs in C for the kernel's checkers to find. Loading the module
 * runs the bug that its parameter names.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

static char *bug = "";
module_param(bug, charp, 0);
MODULE_PARM_DESC(bug, "name of the bug; empty: none");

/* No bug depends on a lack of memory. */
#define GFP_SURE (GFP_KERNEL | __GFP_NOFAIL)

static DEFINE_SPINLOCK(first_lock);
static DEFINE_SPINLOCK(second_lock);
static DEFINE_MUTEX(mutex);

static int array[8];

static void lock_inversion(void)
{
	spin_lock(&first_lock);
	spin_lock(&second_lock);
	spin_unlock(&second_lock);
	spin_unlock(&first_lock);

	spin_lock(&second_lock);
	spin_lock(&first_lock);
	spin_unlock(&first_lock);
	spin_unlock(&second_lock);
}

static void mutex_under_spinlock(void)
{
	spin_lock(&first_lock);
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	spin_unlock(&first_lock);
}

static void use_after_free_read(void)
{
	int *freed = kmalloc(64, GFP_SURE);

	kfree(freed);
	OPTIMIZER_HIDE_VAR(freed);
	(void)READ_ONCE(*freed);
}

static void use_after_free_write(void)
{
	int *freed = kmalloc(64, GFP_SURE);

	kfree(freed);
	OPTIMIZER_HIDE_VAR(freed);
	WRITE_ONCE(freed[5], 7);
}

static void slab_out_of_bounds(void)
{
	char *bytes = kmalloc(40, GFP_SURE);

	OPTIMIZER_HIDE_VAR(bytes);
	(void)READ_ONCE(bytes[40]);
	kfree(bytes);
}

/* The function that the compiler calls for memset() makes the check. */
static void memset_past_end(void)
{
	char *bytes = kmalloc(40, GFP_SURE);
	size_t size = 41;

	OPTIMIZER_HIDE_VAR(bytes);
	OPTIMIZER_HIDE_VAR(size);
	memset(bytes, 0, size);
	kfree(bytes);
}

static void vmalloc_out_of_bounds(void)
{
	char *bytes = __vmalloc(4000, GFP_SURE);

	OPTIMIZER_HIDE_VAR(bytes);
	(void)READ_ONCE(bytes[4001]);
	vfree(bytes);
}

/* The pointer hides the array's length from UBSAN. */
static void global_out_of_bounds(void)
{
	int *numbers = array;

	OPTIMIZER_HIDE_VAR(numbers);
	(void)READ_ONCE(numbers[9]);
}

static void index_out_of_array(void)
{
	int index = 9;

	OPTIMIZER_HIDE_VAR(index);
	(void)READ_ONCE(array[index]);
}

static void shift_too_far(void)
{
	int result, distance = 40;

	OPTIMIZER_HIDE_VAR(distance);
	result = 1 << distance;
	OPTIMIZER_HIDE_VAR(result);
}

static void never(struct timer_list *timer)
{
}

/* The timer would expire long after the end of the guest. */
static void free_active_timer(void)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_SURE);

	timer_setup(timer, never, 0);
	mod_timer(timer, jiffies + 24 * 3600 * HZ);
	kfree(timer);
}

static void double_list_del(void)
{
	struct list_head *entry = kzalloc(sizeof(*entry), GFP_SURE);
	LIST_HEAD(list);

	list_add(entry, &list);
	list_del(entry);
	list_del(entry);
	kfree(entry);
}

/* Several objects: kmemleak may find a stale pointer to one. */
static void leak(void)
{
	void *lost;
	int i;

	for (i = 0; i < 8; i++) {
		lost = kmalloc(777, GFP_SURE);
		OPTIMIZER_HIDE_VAR(lost);
	}
}

/* More accesses than KCSAN skips between two watches. */
#define RACE_ROUNDS 2000000

static int counter;
static char shared_bytes[64];
static void (*race_body)(void);
static bool race_begun;

static noinline void count_without_lock(void)
{
	counter++;
}

/* The function that the compiler calls for memcpy() makes the check. */
static noinline void copy_without_lock(void)
{
	char bytes[sizeof(shared_bytes)] = { 7 };
	char *to = shared_bytes;
	size_t size = sizeof(bytes);

	OPTIMIZER_HIDE_VAR(to);
	OPTIMIZER_HIDE_VAR(size);
	memcpy(to, bytes, size);
}

static void run_race_body(void)
{
	int i;

	for (i = 0; i < RACE_ROUNDS; i++) {
		race_body();
		barrier();
	}
}

static void race_elsewhere(struct work_struct *work)
{
	/* Pairs with the acquire in run_race(). */
	smp_store_release(&race_begun, true);
	run_race_body();
}

static void run_race(void (*body)(void))
{
	static DECLARE_WORK(elsewhere, race_elsewhere);

	race_body = body;
	queue_work(system_dfl_wq, &elsewhere);
	/* Pairs with the release in race_elsewhere(). */
	while (!smp_load_acquire(&race_begun))
		cond_resched();
	run_race_body();
	flush_work(&elsewhere);
}

static void race(void)
{
	run_race(count_without_lock);
}

static void memcpy_race(void)
{
	run_race(copy_without_lock);
}

#define SEED(function) { .name = #function, .run = function }

static const struct {
	const char *name;
	void (*run)(void);
} seeds[] = {
	SEED(lock_inversion),
	SEED(mutex_under_spinlock),
	SEED(use_after_free_read),
	SEED(use_after_free_write),
	SEED(slab_out_of_bounds),
	SEED(memset_past_end),
	SEED(vmalloc_out_of_bounds),
	SEED(global_out_of_bounds),
	SEED(index_out_of_array),
	SEED(shift_too_far),
	SEED(free_active_timer),
	SEED(double_list_del),
	SEED(leak),
	SEED(race),
	SEED(memcpy_race),
};

static int __init ndk_seeded_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(seeds); i++) {
		if (strcmp(bug, seeds[i].name))
			continue;
		seeds[i].run();
		return 0;
	}
	return *bug ? -EINVAL : 0;
}

static void __exit ndk_seeded_exit(void)
{
}

module_init(ndk_seeded_init);
module_exit(ndk_seeded_exit);
MODULE_AUTHOR("The ndk developers");
MODULE_DESCRIPTION("Bugs in C for the kernel's checkers to find");
MODULE_LICENSE("GPL");
