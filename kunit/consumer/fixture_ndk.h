/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture of the consumer tests: an end of a connection that uses the NDK face.
 *
 * As in fixture.h each wait has a limit. An end closes its objects when the
 * case ends; an end that takes too long is leaked, and the case fails.
 */
#ifndef NDKC_FIXTURE_NDK_H
#define NDKC_FIXTURE_NDK_H

#include <ndk/ndk.h>

#include "fixture.h"

#define NDKC_ND_SIZE	(2 * PAGE_SIZE)
/* The result of a call that stays incomplete; no status of the face. */
#define NDKC_ND_NOTHING	((s32)0xffffffff)

/**
 * struct ndkc_call - a call that may pend
 * @entry: link in the end, which keeps it
 * @done: completed with the call
 * @status: as it completed
 * @count: number of its completions
 * @object: as it completed
 */
struct ndkc_call {
	struct list_head entry;
	struct completion done;
	s32 status;
	atomic_t count;
	struct ndk_object_header *object;
};

/**
 * struct ndkc_nd - an end of a connection
 * @entry: link in the list of all
 * @test: the case
 * @calls: all calls of the end
 * @adapter: one for each end
 * @pd: protection domain
 * @cq: of both queues
 * @qp: the queue pair
 * @mr: over @mem, open to the peer
 * @fast: for fast registrations of @mem
 * @connector: of either side, once there is one
 * @listener: of the passive side
 * @mem: NDKC_ND_SIZE bytes
 * @connecting: connect() or accept()
 * @asked: completed by the first connect event
 * @gone: completed by disconnect events
 * @nr_gone: number of disconnect events
 * @reason: that of the last disconnect event
 * @notified: completed by notifications of @cq
 */
struct ndkc_nd {
	struct list_head entry;
	struct kunit *test;
	struct list_head calls;
	struct ndk_adapter *adapter;
	struct ndk_pd *pd;
	struct ndk_cq *cq;
	struct ndk_qp *qp;
	struct ndk_mr *mr;
	struct ndk_mr *fast;
	struct ndk_connector *connector;
	struct ndk_listener *listener;
	u8 *mem;
	struct ndkc_call *connecting;
	struct completion asked;
	struct completion gone;
	atomic_t nr_gone;
	u32 reason;
	struct completion notified;
};

struct ndkc_call *ndkc_nd_call(struct ndkc_nd *nd);
s32 ndkc_nd_wait(struct ndkc_call *call, s32 status);
void ndkc_nd_created(void *context, s32 status, struct ndk_object_header *object);
void ndkc_nd_completed(void *context, s32 status);
void ndkc_nd_closed(void *context);
void ndkc_nd_gone(void *context);
void ndkc_nd_gone_ex(void *context, u32 reason);

void ndkc_nd_exit(struct kunit *test);
struct ndkc_nd *ndkc_nd(struct kunit *test);
u16 ndkc_nd_listen(struct ndkc_nd *nd);
void ndkc_nd_connect(struct ndkc_nd *nd, u16 port, const void *priv, u32 len);
void ndkc_nd_take(struct ndkc_nd *nd);
void ndkc_nd_accept(struct ndkc_nd *nd, const void *priv, u32 len);
s32 ndkc_nd_connected(struct ndkc_nd *nd);
struct ndk_sge ndkc_nd_sge(struct ndkc_nd *nd, u32 off, u32 len);
s32 ndkc_nd_result(struct ndkc_nd *nd, struct ndk_result_ex *result);
bool ndkc_nd_is_idle(struct ndkc_nd *nd);
u32 ndkc_nd_open(struct ndkc_nd *nd, u32 flags);

/* Makes an object: @fn with its arguments except the last three. */
#define NDKC_ND_CREATE(nd, out, fn, ...) ({				\
	struct ndkc_call *call_ = ndkc_nd_call(nd);			\
	typeof(out) out_ = (out);					\
	s32 status_ = (fn)(__VA_ARGS__, ndkc_nd_created, call_, out_);	\
									\
	if (status_ == NDK_STATUS_PENDING) {				\
		status_ = ndkc_nd_wait(call_, status_);			\
		if (!ndk_failed(status_))				\
			*out_ = container_of(call_->object, typeof(**out_), header); \
	}								\
	status_;							\
})

/* Carries out a request: @fn with its arguments except the last two. */
#define NDKC_ND_REQUEST(nd, fn, ...) ({					\
	struct ndkc_call *call_ = ndkc_nd_call(nd);			\
									\
	ndkc_nd_wait(call_, (fn)(__VA_ARGS__, ndkc_nd_completed, call_)); \
})

/* Closes an object, if there is one, and waits until it is gone. */
#define NDKC_ND_CLOSE(nd, object) ({					\
	typeof(object) *place_ = &(object);				\
	typeof(object) object_ = *place_;				\
	s32 status_ = NDK_STATUS_SUCCESS;				\
									\
	if (object_) {							\
		struct ndkc_call *call_ = ndkc_nd_call(nd);		\
									\
		*place_ = NULL;						\
		status_ = object_->dispatch->close(&object_->header,	\
						   ndkc_nd_closed, call_); \
		status_ = ndkc_nd_wait(call_, status_);			\
	}								\
	status_;							\
})

#endif /* NDKC_FIXTURE_NDK_H */
