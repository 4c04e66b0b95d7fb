/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoints of the provider: /sys/kernel/tracing/events/ndk.  The module
 * of the unit tests has the same tracepoints as events/ndk_kunit.
 */
#undef TRACE_SYSTEM
#ifdef NDK_KUNIT
#define TRACE_SYSTEM ndk_kunit
#else
#define TRACE_SYSTEM ndk
#endif

#if !defined(NDK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NDK_TRACE_H

#include <linux/in6.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <trace/misc/rdma.h>

/* Twice: for programs, which get the numbers, and for the kernel's own text. */
#define NDK_OPCODE_LIST						\
	ndk_opcode(SEND)					\
	ndk_opcode(RDMA_WRITE)					\
	ndk_opcode(RDMA_READ)					\
	ndk_opcode(COMP_SWAP)					\
	ndk_opcode(FETCH_ADD)					\
	ndk_opcode(BIND_MW)					\
	ndk_opcode(LOCAL_INV)					\
	ndk_opcode(REG_MR)					\
	ndk_opcode(RECV)					\
	ndk_opcode_end(RECV_RDMA_WITH_IMM)

#undef ndk_opcode
#undef ndk_opcode_end
#define ndk_opcode(x)		TRACE_DEFINE_ENUM(IB_WC_##x);
#define ndk_opcode_end(x)	TRACE_DEFINE_ENUM(IB_WC_##x);

NDK_OPCODE_LIST

#undef ndk_opcode
#undef ndk_opcode_end
#define ndk_opcode(x)		{ IB_WC_##x, #x },
#define ndk_opcode_end(x)	{ IB_WC_##x, #x }

#define ndk_show_opcode(x)	__print_symbolic(x, NDK_OPCODE_LIST)

/* A request: posted to the send queue, or started by the transport. */
DECLARE_EVENT_CLASS(ndk_request,
	TP_PROTO(const char *dev, u32 qp, u64 wr_id, u32 opcode, u32 length),
	TP_ARGS(dev, qp, wr_id, opcode, length),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(u64, wr_id)
		__field(u32, opcode)
		__field(u32, length)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->wr_id = wr_id;
		__entry->opcode = opcode;
		__entry->length = length;
	),
	TP_printk("dev=%s qp=%u wr_id=0x%llx opcode=%s length=%u", __get_str(dev),
		  __entry->qp, __entry->wr_id, ndk_show_opcode(__entry->opcode),
		  __entry->length)
);

DEFINE_EVENT(ndk_request, ndk_post_send,
	TP_PROTO(const char *dev, u32 qp, u64 wr_id, u32 opcode, u32 length),
	TP_ARGS(dev, qp, wr_id, opcode, length));
DEFINE_EVENT(ndk_request, ndk_start,
	TP_PROTO(const char *dev, u32 qp, u64 wr_id, u32 opcode, u32 length),
	TP_ARGS(dev, qp, wr_id, opcode, length));

/* A receive: posted (to a shared queue where qp is 0), or taken by a message. */
DECLARE_EVENT_CLASS(ndk_recv,
	TP_PROTO(const char *dev, u32 qp, u64 wr_id, u32 num_sge),
	TP_ARGS(dev, qp, wr_id, num_sge),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(u64, wr_id)
		__field(u32, num_sge)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->wr_id = wr_id;
		__entry->num_sge = num_sge;
	),
	TP_printk("dev=%s qp=%u wr_id=0x%llx num_sge=%u", __get_str(dev),
		  __entry->qp, __entry->wr_id, __entry->num_sge)
);

DEFINE_EVENT(ndk_recv, ndk_post_recv,
	TP_PROTO(const char *dev, u32 qp, u64 wr_id, u32 num_sge),
	TP_ARGS(dev, qp, wr_id, num_sge));
DEFINE_EVENT(ndk_recv, ndk_receive,
	TP_PROTO(const char *dev, u32 qp, u64 wr_id, u32 num_sge),
	TP_ARGS(dev, qp, wr_id, num_sge));

/* A message finds no receive, and waits for one. */
TRACE_EVENT(ndk_rnr_wait,
	TP_PROTO(const char *dev, u32 qp, u32 peer),
	TP_ARGS(dev, qp, peer),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(u32, peer)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->peer = peer;
	),
	TP_printk("dev=%s qp=%u peer=%u", __get_str(dev), __entry->qp, __entry->peer)
);

/* A request or receive has ended, and its entry goes to the completion queue. */
TRACE_EVENT(ndk_complete,
	TP_PROTO(const char *dev, u32 qp, u32 cq, u64 wr_id, u32 opcode, u32 status,
		 u32 length),
	TP_ARGS(dev, qp, cq, wr_id, opcode, status, length),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(u32, cq)
		__field(u64, wr_id)
		__field(u32, opcode)
		__field(u32, status)
		__field(u32, length)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->cq = cq;
		__entry->wr_id = wr_id;
		__entry->opcode = opcode;
		__entry->status = status;
		__entry->length = length;
	),
	TP_printk("dev=%s qp=%u cq=%u wr_id=0x%llx opcode=%s status=%s length=%u",
		  __get_str(dev), __entry->qp, __entry->cq, __entry->wr_id,
		  ndk_show_opcode(__entry->opcode),
		  rdma_show_wc_status(__entry->status), __entry->length)
);

/* The consumer of a completion queue is called, for an arm that was satisfied. */
TRACE_EVENT(ndk_notify,
	TP_PROTO(const char *dev, u32 cq, u32 used, bool failed),
	TP_ARGS(dev, cq, used, failed),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, cq)
		__field(u32, used)
		__field(bool, failed)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->cq = cq;
		__entry->used = used;
		__entry->failed = failed;
	),
	TP_printk("dev=%s cq=%u used=%u%s", __get_str(dev), __entry->cq, __entry->used,
		  __entry->failed ? " failed" : "")
);

/* A queue pair is connected: its address, and the peer's. */
TRACE_EVENT(ndk_connect,
	TP_PROTO(const char *dev, u32 qp, u32 peer,
		 const struct __kernel_sockaddr_storage *src,
		 const struct __kernel_sockaddr_storage *dst),
	TP_ARGS(dev, qp, peer, src, dst),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(u32, peer)
		__array(u8, src, sizeof(struct sockaddr_in6))
		__array(u8, dst, sizeof(struct sockaddr_in6))
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->peer = peer;
		memcpy(__entry->src, src, sizeof(struct sockaddr_in6));
		memcpy(__entry->dst, dst, sizeof(struct sockaddr_in6));
	),
	TP_printk("dev=%s qp=%u peer=%u src=%pISpc dst=%pISpc", __get_str(dev),
		  __entry->qp, __entry->peer, __entry->src, __entry->dst)
);

/* A queue pair has lost its connection. */
TRACE_EVENT(ndk_disconnect,
	TP_PROTO(const char *dev, u32 qp, bool by_peer),
	TP_ARGS(dev, qp, by_peer),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(bool, by_peer)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->by_peer = by_peer;
	),
	TP_printk("dev=%s qp=%u by=%s", __get_str(dev), __entry->qp,
		  __entry->by_peer ? "peer" : "self")
);

/* A token is not valid any more, or its invalidation was refused. */
TRACE_EVENT(ndk_invalidate,
	TP_PROTO(const char *dev, u32 qp, u32 key, bool remote, bool refused),
	TP_ARGS(dev, qp, key, remote, refused),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(u32, key)
		__field(bool, remote)
		__field(bool, refused)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->key = key;
		__entry->remote = remote;
		__entry->refused = refused;
	),
	TP_printk("dev=%s qp=%u key=0x%08x %s%s", __get_str(dev), __entry->qp,
		  __entry->key, __entry->remote ? "remote" : "local",
		  __entry->refused ? " refused" : "")
);

/* An access to memory that a peer named was refused. */
TRACE_EVENT(ndk_access_refused,
	TP_PROTO(const char *dev, u32 qp, u32 peer, u32 rkey, u64 addr, u32 length,
		 u32 opcode),
	TP_ARGS(dev, qp, peer, rkey, addr, length, opcode),
	TP_STRUCT__entry(
		__string(dev, dev)
		__field(u32, qp)
		__field(u32, peer)
		__field(u32, rkey)
		__field(u64, addr)
		__field(u32, length)
		__field(u32, opcode)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qp = qp;
		__entry->peer = peer;
		__entry->rkey = rkey;
		__entry->addr = addr;
		__entry->length = length;
		__entry->opcode = opcode;
	),
	TP_printk("dev=%s qp=%u peer=%u rkey=0x%08x addr=0x%llx length=%u opcode=%s",
		  __get_str(dev), __entry->qp, __entry->peer, __entry->rkey,
		  __entry->addr, __entry->length, ndk_show_opcode(__entry->opcode))
);

/* An injected fault hits. */
TRACE_EVENT(ndk_fault,
	TP_PROTO(const char *dev, u32 qp, const char *name, u32 number),
	TP_ARGS(dev, qp, name, number),
	TP_STRUCT__entry(
		__string(dev, dev)
		__string(name, name)
		__field(u32, qp)
		__field(u32, number)
	),
	TP_fast_assign(
		__assign_str(dev);
		__assign_str(name);
		__entry->qp = qp;
		__entry->number = number;
	),
	TP_printk("dev=%s qp=%u %s number=%u", __get_str(dev), __entry->qp,
		  __get_str(name), __entry->number)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
