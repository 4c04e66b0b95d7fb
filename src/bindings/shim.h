/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C functions for the inlines and macros that src/sys and src/rdma need, and
 * for walks over the kernel's lists, which are shorter in C.
 */
#ifndef NDK_SHIM_H
#define NDK_SHIM_H

#include <linux/hrtimer.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/socket.h>
#include <linux/netdevice.h>
#include <linux/scatterlist.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/* sys/softirq.rs */
bool ndk_may_run_bh(void);
bool ndk_in_softirq(void);
bool ndk_bh_enter(void);
void ndk_bh_enable(void);
struct workqueue_struct *ndk_wq_alloc(const char *name, u32 flags,
				      u32 max_active);
bool ndk_in_task(void);
bool ndk_queue_work_on(struct workqueue_struct *wq, struct work_struct *work,
		       u32 cpu);

/* sys/cpu.rs */
u32 ndk_cpu_possible(void);
int ndk_cpu_spread(u32 *cpus, u32 groups);
void *ndk_percpu_alloc(u32 counters);
void ndk_percpu_free(void *counters);
/* adds @n to counter @index */
struct ndk_add {
	u64 index;
	u64 n;
};

void ndk_percpu_add(void *counters, const struct ndk_add *adds, u32 n);
u64 ndk_percpu_sum(void *counters, u32 index);

/* sys/gate.rs */
void ndk_wait_for(const u64 *word, u64 clear, u64 set);
void ndk_wake_waiters(const u64 *word);

/* sys/global.rs */
void ndk_globals_lock(void);
void ndk_globals_unlock(void);

/* sys/log.rs */
bool ndk_log_allowed(u32 limit);

/* sys/span.rs */
u64 ndk_direct_mapped_until(u64 addr);
int ndk_copy_nofault(u64 to, u64 from, size_t len);

/* sys/sge.rs */
bool ndk_read_nofault(void *to, u64 addr, u64 len);
#ifdef CONFIG_KCSAN
void ndk_copy_marked(void *to, const void *from, size_t len);
#endif

/* sys/mdl.rs */
struct page;
u64 ndk_page_address(const struct page *page);

/* ndk/abi */
struct cpumask;
u32 ndk_cpumask_first(const struct cpumask *mask);

/* sys/netdev.rs, ndk/abi */
u64 ndk_net_cookie(const struct net *net);
bool ndk_net_is_local(struct net *net, const struct __kernel_sockaddr_storage *addr);
void ndk_net_put(struct net *net);

/* sys/event.rs */
void ndk_completion_reinit(void *completion);

/*
 * sys/time.rs: jiffies in a second.  Of a macro with two definitions bindgen
 * may take the wrong one: its HZ is 100 on any kernel, as in user space.
 */
enum ndk_time {
	NDK_HZ = HZ
};

/* sys/tcp.rs */
enum ndk_tcp_event {
	NDK_TCP_READABLE,
	NDK_TCP_WRITABLE,
	NDK_TCP_CHANGED,
	/* a connection, at a listener */
	NDK_TCP_ARRIVED
};

enum ndk_tcp_state {
	NDK_TCP_CLOSED,
	NDK_TCP_OPENING,
	NDK_TCP_OPEN,
	NDK_TCP_LISTENS,
	/* the peer sends no more */
	NDK_TCP_ENDED
};

struct ndk_tcp;
struct sk_buff;
typedef void (*ndk_tcp_event_fn)(void *owner, struct ndk_tcp *tcp, u32 event);
/* Returns how many bytes of @skb from @offset on it has used up. */
typedef u32 (*ndk_tcp_read_fn)(void *arg, struct sk_buff *skb, u32 offset,
			       u32 len);
struct ndk_tcp *ndk_tcp_new(struct net *net, u16 family);
int ndk_tcp_own(struct ndk_tcp *tcp, void *owner, ndk_tcp_event_fn event);
void ndk_tcp_disown(struct ndk_tcp *tcp);
void ndk_tcp_free(struct ndk_tcp *tcp);
int ndk_tcp_bind_interface(struct ndk_tcp *tcp, u32 interface);
int ndk_tcp_bind(struct ndk_tcp *tcp, struct __kernel_sockaddr_storage *addr,
		 u32 len, bool afonly);
int ndk_tcp_listen(struct ndk_tcp *tcp, u32 backlog);
int ndk_tcp_connect(struct ndk_tcp *tcp, struct __kernel_sockaddr_storage *addr,
		    u32 len);
struct ndk_tcp *ndk_tcp_accept(struct ndk_tcp *listener);
int ndk_tcp_name(struct ndk_tcp *tcp, bool peer,
		 struct __kernel_sockaddr_storage *addr);
void ndk_tcp_watch(struct ndk_tcp *tcp, u32 ms);
bool ndk_tcp_is_acknowledged(struct ndk_tcp *tcp);
u32 ndk_tcp_state(const struct ndk_tcp *tcp, int *error);
u32 ndk_tcp_segment(const struct ndk_tcp *tcp);
int ndk_tcp_send(struct ndk_tcp *tcp, struct page *page, u32 offset, u32 len,
		 bool more);
int ndk_tcp_read_locked(struct ndk_tcp *tcp, void *arg, ndk_tcp_read_fn read);
int ndk_tcp_read(struct ndk_tcp *tcp, void *arg, ndk_tcp_read_fn read);
u32 ndk_tcp_peek_locked(struct ndk_tcp *tcp, u32 skip, void *to, u32 len);
u32 ndk_tcp_peek(struct ndk_tcp *tcp, u32 skip, void *to, u32 len);
int ndk_tcp_end(struct ndk_tcp *tcp);
void ndk_tcp_reset_on_release(struct ndk_tcp *tcp);
int ndk_skb_copy(const struct sk_buff *skb, u32 offset, void *to, u32 len);
bool ndk_skb_crc32c(struct sk_buff *skb, u32 offset, u32 len, u32 *crc);
struct page *ndk_tcp_pages(u32 *order);
void ndk_tcp_pages_put(struct page *page);
u32 ndk_tcp_crc32c(const void *data, u32 len, u32 crc);
int ndk_tcp_send_urgent(struct ndk_tcp *tcp);

/* sys/hrtimer.rs */
bool ndk_hrtimer_is_queued(struct hrtimer *timer);

/* sys/netdev.rs */
struct net *ndk_netdev_get_net(const struct net_device *dev);
void ndk_netdev_hold(struct net_device *dev);
void ndk_netdev_put(struct net_device *dev);
void ndk_netdev_name(const struct net_device *dev, char *name);
u32 ndk_netdev_index(const struct net_device *dev);
bool ndk_netdev_mac(const struct net_device *dev, u8 *mac);
int ndk_netdev_vlan(const struct net_device *dev);
bool ndk_netdev_may_share_mac(const struct net_device *dev);
u32 ndk_netdev_mtu(const struct net_device *dev);
bool ndk_netdev_has_left(const struct net_device *dev, u64 net);
bool ndk_netdev_is_up(const struct net_device *dev);
bool ndk_netdev_is_supported(const struct net_device *dev);
u16 ndk_netdev_hardware_type(const struct net_device *dev);
bool ndk_netdev_owns(struct net_device *dev,
		     const struct __kernel_sockaddr_storage *addr);
bool ndk_netdev_is_local(struct net_device *dev,
			 const struct __kernel_sockaddr_storage *addr);
bool ndk_netdev_is_resolved_by(struct net_device *dev,
			       const struct __kernel_sockaddr_storage *addr);
struct net_device *ndk_netdev_of_notifier(void *info);

/*
 * rdma/qp.rs: one space of queue pair numbers for the whole module, in the
 * upper half of the 24 bits: other providers count from the lower end.
 */
#define NDK_QPN_FIRST	0x800000
#define NDK_QPN_LAST	0xffffff
int ndk_qpn_reserve(u32 *qpn);
void ndk_qpn_publish(u32 qpn, void *qp);
void ndk_qpn_unpublish(u32 qpn);
void *ndk_qpn_find(u32 qpn);
void *ndk_qpn_get(u32 qpn, bool (*get)(void *qp));
void ndk_qpn_free(u32 qpn);

/* rdma/user/ */
struct ib_device;
struct ib_umem;

struct ib_umem *ndk_umem_get(struct ib_device *device, u64 addr, u64 len,
			     int access);
void ndk_umem_release(struct ib_umem *umem);
struct pid *ndk_get_current_process(void);
void ndk_put_process(struct pid *process);

struct ib_ucontext;
struct ib_udata;
struct rdma_user_mmap_entry;
struct uverbs_attr_bundle;
struct vm_area_struct;

struct ib_udata *ndk_udata_of(struct uverbs_attr_bundle *attrs);
int ndk_udata_answer(struct ib_udata *udata, u64 offset);
int ndk_udata_answer_there(struct ib_udata *udata, u64 offset);
int ndk_share_insert(struct ib_udata *udata, struct rdma_user_mmap_entry *entry,
		     size_t len);
void ndk_share_remove(struct rdma_user_mmap_entry *entry);
struct rdma_user_mmap_entry *ndk_share_get(struct ib_ucontext *context,
					   struct vm_area_struct *vma);
void ndk_share_put(struct rdma_user_mmap_entry *entry);
u64 ndk_share_offset(const struct rdma_user_mmap_entry *entry);
int ndk_share_map(struct vm_area_struct *vma, const void *from, size_t len);

/* rdma/link_type.rs, rdma/user.rs */
bool ndk_module_is_loaded(const char *name);

/* rdma/table.rs */
void ndk_gid_work_flush(void);

/* rdma/upcall.rs, rdma/cq.rs */
struct ib_device;
bool ndk_device_try_get(struct ib_device *device);
bool ndk_device_uses_dim(const struct ib_device *device);
bool ndk_device_is_seen_from(const struct ib_device *device, const struct net *net);

/* rdma/details.rs */
struct sk_buff;
void *ndk_details_begin(struct sk_buff *msg);
void ndk_details_end(struct sk_buff *msg, void *begin, bool complete);

/* rdma/memory.rs */
struct scatterlist *ndk_sg_entry(struct scatterlist *sg, u64 *addr, u32 *len);

/*
 * sys/inject.rs: the faults of a device, in the order of the enum Fault. Only
 * with CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
enum ndk_fault_kind {
	NDK_FAULT_DROP_CONNECTION,
	NDK_FAULT_COMPLETE_WITH,
	NDK_FAULT_DELAY_COMPLETION,
	NDK_FAULT_DELAY_MESSAGE,
	NDK_FAULT_RNR,
	NDK_FAULT_REFUSE_INVALIDATION,
	NDK_FAULT_REFUSE_ACCESS,
	NDK_FAULT_CORRUPT,
	NDK_FAULT_PORT_DOWN,
	NDK_FAULT_REJECT_CONNECT,
	NDK_FAULT_DELAY_CONNECT,
	NDK_FAULT_DROP_EVENT,
	NDK_FAULT_NO_MEMORY,
	NDK_FAULT_COUNT
};

/* kinds of sites that a fault meets, as bits: requests, new objects, events */
enum ndk_fault_what {
	NDK_WHAT_SEND = 1 << 0,
	NDK_WHAT_WRITE = 1 << 1,
	NDK_WHAT_READ = 1 << 2,
	NDK_WHAT_ATOMIC = 1 << 3,
	NDK_WHAT_REG_MR = 1 << 4,
	NDK_WHAT_LOCAL_INV = 1 << 5,
	NDK_WHAT_BIND_MW = 1 << 6,
	NDK_WHAT_RECV = 1 << 7,
	NDK_WHAT_PD = 1 << 8,
	NDK_WHAT_CQ = 1 << 9,
	NDK_WHAT_QP = 1 << 10,
	NDK_WHAT_SRQ = 1 << 11,
	NDK_WHAT_MR = 1 << 12,
	NDK_WHAT_LISTENER = 1 << 13,
	NDK_WHAT_CONNECTION = 1 << 14,
	NDK_WHAT_REQUEST = 1 << 15,
	NDK_WHAT_REPLY = 1 << 16,
	NDK_WHAT_DISCONNECT = 1 << 17,
};

/* the side that completes late */
enum ndk_fault_side {
	NDK_SIDE_BOTH,
	NDK_SIDE_REQUESTER,
	NDK_SIDE_COUNT
};

/* the settings of a fault: 0 stands for any in @qp, @nth and @what */
struct ndk_fault_settings {
	u32 probability;
	/* not 0 */
	u32 interval;
	u32 qp;
	u32 nth;
	u32 usec;
	u32 seed;
	/* enum ib_wc_status */
	u32 status;
	/* bits of enum ndk_fault_what */
	u32 what;
	/* enum ndk_fault_side */
	u32 side;
};

/* counts since the probability was set, under the lock of the faults */
struct ndk_fault_counts {
	/* the number of settings of the probability */
	u16 run;
	/* queue pairs that the fault has met */
	u16 users;
	u32 seen;
	u32 hits;
};

/* The longest delay: a wait for a delayed operation ends in reasonable time. */
#define NDK_FAULT_USEC_MAX	60000000

struct ndk_switch {
	struct static_key_false key;
};

extern struct ndk_switch ndk_faults_on;
struct ndk_faults;
struct ndk_faults *ndk_faults_new(void);
void ndk_faults_show(struct ndk_faults *faults, const char *device);
void ndk_faults_rename(struct ndk_faults *faults, const char *device);
void ndk_faults_hide(struct ndk_faults *faults);
void ndk_faults_free(struct ndk_faults *faults);
struct ndk_fault_settings *ndk_fault_settings(struct ndk_faults *faults, u32 kind);
struct ndk_fault_counts *ndk_fault_lock(struct ndk_faults *faults, u32 kind,
					unsigned long *flags);
void ndk_fault_unlock(struct ndk_faults *faults, unsigned long flags);
bool ndk_fault_should_fail(struct ndk_faults *faults, u32 kind, u64 size);
u32 ndk_fault_draw(u32 seed, u32 user, u32 number, u32 kind);
const char *ndk_fault_name(u32 kind);

/* the values of a fault's files: with the unit tests only */
struct ndk_fault_order {
	s32 times;
	s32 space;
	struct ndk_fault_settings settings;
};

void ndk_fault_set(struct ndk_faults *faults, u32 kind,
		   const struct ndk_fault_order *order);

/* sys/tests/fault.rs: with the unit tests only, from shim_kunit.c */
bool ndk_fault_is_available(void);
void ndk_kunit_skip(const char *why);
bool ndk_fault_arm(u32 n, bool rest);
u32 ndk_fault_left(void);
void ndk_fault_disarm(void);

/* rdma/user/owner.rs: the same */
struct pid *ndk_kunit_first_process(void);

/* sys/log.rs, sys/mdl.rs, sys/netdev.rs, sys/cpu.rs: the same */
void ndk_log_renew(u32 limit);
struct page *ndk_page_of(u64 addr);
int ndk_netdev_loopback(struct net_device **dev);
u32 ndk_cpu_online_count(void);
bool ndk_cpu_is_online(u32 cpu);

/* sys/tests/warning.rs: the same */
void *ndk_warnings_hide(void);
u32 ndk_warnings_show(void *hidden);

/* sys/tests/report.rs: the same */
void ndk_kunit_note(const char *text, u32 len);
int ndk_kunit_loop_begin(void);
void ndk_kunit_case(u32 depth, const char *text, u32 len);
void ndk_kunit_loop_end(u32 depth, bool is_over);
u32 ndk_kunit_case_at(u32 depth, char *to, u32 room);
bool ndk_kunit_fails(void);
bool ndk_kunit_wire(void);
u32 ndk_kunit_piece(void);
u32 ndk_kunit_late(void);

/* sys/tests/speed.rs: the same */
int ndk_kunit_slow(const char *suite, const char *test);
u32 ndk_kunit_slowness(void);

/* Built-in suites are the kernel's: its linker script has these names. */
#ifndef MODULE
struct kunit_suite;
extern struct kunit_suite * const __kunit_suites_start[];
extern struct kunit_suite * const __kunit_suites_end[];
#endif

#endif
