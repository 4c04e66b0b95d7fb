// SPDX-License-Identifier: GPL-2.0
/* Waiting, time, and the limits of the log. */
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <linux/wait_bit.h>

#include "../shim.h"

void ndk_completion_reinit(void *completion)
{
	reinit_completion(completion);
}

bool ndk_hrtimer_is_queued(struct hrtimer *timer)
{
	return hrtimer_is_queued(timer);
}

static bool ndk_is_so(const u64 *word, u64 clear, u64 set)
{
	/* sees the effects under @word: pairs with the exits of sys/gate.rs */
	u64 now = smp_load_acquire(word);

	return !(now & clear) || (now & set);
}

/* The code that ends a wait calls ndk_wake_waiters() after a full barrier. */
void ndk_wait_for(const u64 *word, u64 clear, u64 set)
{
	wait_var_event((void *)word, ndk_is_so(word, clear, set));
}

void ndk_wake_waiters(const u64 *word)
{
	wake_up_var((void *)word);
}

static DEFINE_MUTEX(ndk_globals);

void ndk_globals_lock(void)
{
	mutex_lock(&ndk_globals);
}

void ndk_globals_unlock(void)
{
	mutex_unlock(&ndk_globals);
}

#define NDK_LOG_LIMIT(seconds, messages)				\
	RATELIMIT_STATE_INIT(ndk_log_limits, (seconds) * HZ, messages)

/* One for each Limit of sys/log.rs; those that a program can reach are low. */
static struct ratelimit_state ndk_log_limits[] = {
	NDK_LOG_LIMIT(5, 10),
	NDK_LOG_LIMIT(60, 10),
	NDK_LOG_LIMIT(60, 10),
};

bool ndk_log_allowed(u32 limit)
{
	return limit < ARRAY_SIZE(ndk_log_limits) &&
	       __ratelimit(&ndk_log_limits[limit]);
}
