// SPDX-License-Identifier: GPL-2.0
/* TCP sockets of the kernel, for sys/tcp.rs. */
#include <linux/bvec.h>
#include <linux/crc32.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../shim.h"

/* The functions that a socket calls. */
struct ndk_tcp_calls {
	void (*data_ready)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*write_space)(struct sock *sk);
};

/*
 * A socket, and its owner in Rust, which is notified of the socket's events.
 * The socket's sk_user_data points here while there is an owner; sk_callback_lock
 * guards both.
 */
struct ndk_tcp {
	struct socket *sock;
	void *owner;
	ndk_tcp_event_fn event;
	bool listens;
	/* that a call has met, and taken from the socket */
	int error;
	/* of the socket, before it came here */
	struct ndk_tcp_calls calls;
};

/* NULL for a socket without an owner here.  The caller has the callback lock. */
static struct ndk_tcp *ndk_tcp_of(const struct sock *sk)
{
	uintptr_t data = (uintptr_t)rcu_dereference_check(__sk_user_data(sk),
				lockdep_is_held(&sk->sk_callback_lock));

	/* A map of BPF has this tag, and one of its own. */
	if ((data & ~SK_USER_DATA_PTRMASK) != SK_USER_DATA_NOCOPY)
		return NULL;
	return (struct ndk_tcp *)(data & SK_USER_DATA_PTRMASK);
}

static void ndk_tcp_notify(struct sock *sk, u32 what)
{
	struct ndk_tcp *tcp;

	read_lock_bh(&sk->sk_callback_lock);
	tcp = ndk_tcp_of(sk);
	/* A call may take the error from the socket. */
	if (tcp && what == NDK_TCP_CHANGED && READ_ONCE(sk->sk_err))
		WRITE_ONCE(tcp->error, -READ_ONCE(sk->sk_err));
	/* Where a connection comes, that is locked, and its listener is not. */
	if (tcp && tcp->listens && what == NDK_TCP_READABLE)
		what = NDK_TCP_ARRIVED;
	if (tcp)
		tcp->event(tcp->owner, tcp, what);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void ndk_tcp_data_ready(struct sock *sk)
{
	ndk_tcp_notify(sk, NDK_TCP_READABLE);
}

static void ndk_tcp_state_change(struct sock *sk)
{
	ndk_tcp_notify(sk, NDK_TCP_CHANGED);
}

static void ndk_tcp_write_space(struct sock *sk)
{
	struct socket *sock = sk->sk_socket;

	/* As TCP's own: room for a few bytes is none. */
	if (!sock || !__sk_stream_is_writeable(sk, 1))
		return;
	clear_bit(SOCK_NOSPACE, &sock->flags);
	ndk_tcp_notify(sk, NDK_TCP_WRITABLE);
}

static const struct ndk_tcp_calls ndk_tcp_own_calls = {
	.data_ready = ndk_tcp_data_ready,
	.state_change = ndk_tcp_state_change,
	.write_space = ndk_tcp_write_space,
};

static struct ndk_tcp_calls ndk_tcp_calls_of(const struct sock *sk)
{
	return (struct ndk_tcp_calls) {
		.data_ready = sk->sk_data_ready,
		.state_change = sk->sk_state_change,
		.write_space = sk->sk_write_space,
	};
}

/* The caller has the callback lock for writing. */
static void ndk_tcp_call(struct sock *sk, const struct ndk_tcp_calls *calls)
{
	WRITE_ONCE(sk->sk_data_ready, calls->data_ready);
	WRITE_ONCE(sk->sk_state_change, calls->state_change);
	WRITE_ONCE(sk->sk_write_space, calls->write_space);
}

/* Takes over @sock, or releases it. */
static struct ndk_tcp *ndk_tcp_wrap(struct socket *sock)
{
	struct ndk_tcp *tcp = kzalloc_obj(*tcp);

	if (!tcp) {
		sock_release(sock);
		return ERR_PTR(-ENOMEM);
	}
	tcp->sock = sock;
	tcp->calls = ndk_tcp_calls_of(sock->sk);
	/* Storage may wait for what this socket sends: no I/O for its memory. */
	sock->sk->sk_allocation = GFP_ATOMIC;
	sock->sk->sk_use_task_frag = false;
	tcp_sock_set_nodelay(sock->sk);
	return tcp;
}

static struct ndk_tcp *ndk_tcp_create(struct net *net, u16 family)
{
	struct socket *sock;
	int ret = sock_create_kern(net, family, SOCK_STREAM, IPPROTO_TCP, &sock);

	if (ret)
		return ERR_PTR(ret);
	sk_net_refcnt_upgrade(sock->sk);
	return ndk_tcp_wrap(sock);
}

/* The socket, and those that it accepts, keep the namespace. */
struct ndk_tcp *ndk_tcp_new(struct net *net, u16 family)
{
	struct ndk_tcp *tcp;
	unsigned int noio;

	net = maybe_get_net(net ?: &init_net);
	if (!net)
		return ERR_PTR(-ENETDOWN);
	noio = memalloc_noio_save();
	tcp = ndk_tcp_create(net, family);
	memalloc_noio_restore(noio);
	put_net(net);
	return tcp;
}

/* The caller has the callback lock for writing. */
static void ndk_tcp_attach(struct ndk_tcp *tcp)
{
	struct sock *sk = tcp->sock->sk;

	/* A connection that comes to a listener has no owner yet. */
	__rcu_assign_sk_user_data_with_flags(sk, tcp, SK_USER_DATA_NOCOPY);
	ndk_tcp_call(sk, &ndk_tcp_own_calls);
}

/*
 * An owner gets the events from now on, until ndk_tcp_disown().  -EBUSY if another
 * user of sockets has taken this one.
 */
int ndk_tcp_own(struct ndk_tcp *tcp, void *owner, ndk_tcp_event_fn event)
{
	struct sock *sk = tcp->sock->sk;
	int ret;

	write_lock_bh(&sk->sk_callback_lock);
	ret = sk->sk_user_data ? -EBUSY : 0;
	if (!ret) {
		tcp->owner = owner;
		tcp->event = event;
		ndk_tcp_attach(tcp);
	}
	write_unlock_bh(&sk->sk_callback_lock);
	return ret;
}

/* No event is under way afterwards, and none follows.  Not from an event. */
void ndk_tcp_disown(struct ndk_tcp *tcp)
{
	struct sock *sk = tcp->sock->sk;

	might_sleep();
	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_sk_user_data(sk, NULL);
	ndk_tcp_call(sk, &tcp->calls);
	write_unlock_bh(&sk->sk_callback_lock);
}

/*
 * The socket has no owner.  TCP still sends what it has, at its own intervals: with
 * the short ones of a watch it would give an orphan up soon.
 */
void ndk_tcp_free(struct ndk_tcp *tcp)
{
	struct sock *sk = tcp->sock->sk;
	u32 ms = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rto_max_ms);

	might_sleep();
	WRITE_ONCE(inet_csk(sk)->icsk_rto_max, msecs_to_jiffies(ms));
	sock_release(tcp->sock);
	kfree(tcp);
}

int ndk_tcp_bind_interface(struct ndk_tcp *tcp, u32 interface)
{
	return sock_bindtoindex(tcp->sock->sk, interface, true);
}

int ndk_tcp_bind(struct ndk_tcp *tcp, struct __kernel_sockaddr_storage *addr,
		 u32 len, bool afonly)
{
	struct sock *sk = tcp->sock->sk;
	int ret = 0;

	sock_set_reuseaddr(sk);
	if (afonly && sk->sk_family == AF_INET6)
		ret = ip6_sock_set_v6only(sk);
	return ret ?: kernel_bind(tcp->sock, (struct sockaddr_unsized *)addr, len);
}

int ndk_tcp_listen(struct ndk_tcp *tcp, u32 backlog)
{
	int ret;

	tcp->listens = true;
	ret = kernel_listen(tcp->sock, min_t(u32, backlog, INT_MAX));
	if (ret)
		tcp->listens = false;
	return ret;
}

/* 0, or -EINPROGRESS: an event tells the end. */
int ndk_tcp_connect(struct ndk_tcp *tcp, struct __kernel_sockaddr_storage *addr,
		    u32 len)
{
	unsigned int noio = memalloc_noio_save();
	int ret = kernel_connect(tcp->sock, (struct sockaddr_unsized *)addr,
				 len, O_NONBLOCK);

	memalloc_noio_restore(noio);
	return ret;
}

/*
 * An accepted socket has the functions of its listener, which are not its own.
 * -EBUSY if another user of sockets has taken it.
 */
static int ndk_tcp_part(struct sock *sk, const struct ndk_tcp_calls *calls)
{
	int ret;

	write_lock_bh(&sk->sk_callback_lock);
	ret = sk->sk_user_data ? -EBUSY : 0;
	if (!ret)
		ndk_tcp_call(sk, calls);
	write_unlock_bh(&sk->sk_callback_lock);
	return ret;
}

static struct ndk_tcp *ndk_tcp_take(struct ndk_tcp *listener)
{
	struct socket *sock;
	int ret = kernel_accept(listener->sock, &sock, O_NONBLOCK);

	if (ret)
		return ERR_PTR(ret);
	ret = ndk_tcp_part(sock->sk, &listener->calls);
	if (!ret)
		return ndk_tcp_wrap(sock);
	sock_release(sock);
	return ERR_PTR(ret);
}

struct ndk_tcp *ndk_tcp_accept(struct ndk_tcp *listener)
{
	unsigned int noio = memalloc_noio_save();
	struct ndk_tcp *tcp = ndk_tcp_take(listener);

	memalloc_noio_restore(noio);
	return tcp;
}

/* The address of this end, or of the peer. */
int ndk_tcp_name(struct ndk_tcp *tcp, bool peer,
		 struct __kernel_sockaddr_storage *addr)
{
	int ret = peer ? kernel_getpeername(tcp->sock, (struct sockaddr *)addr) :
			 kernel_getsockname(tcp->sock, (struct sockaddr *)addr);

	return min(ret, 0);
}

/*
 * A connection ends when the peer has answered nothing for about @ms, or two to three
 * times that with bytes on their way.  No user timeout: with it a peer that answers,
 * and takes nothing, ends it, too.
 */
void ndk_tcp_watch(struct ndk_tcp *tcp, u32 ms)
{
	struct sock *sk = tcp->sock->sk;
	int seconds = clamp_t(u32, ms / 6 / MSEC_PER_SEC, 1, MAX_TCP_KEEPIDLE);
	u32 rto_max = clamp_t(u32, ms / 5, MSEC_PER_SEC,
			      TCP_RTO_MAX_SEC * MSEC_PER_SEC);

	sock_set_keepalive(sk);
	tcp_sock_set_keepidle(sk, seconds);
	tcp_sock_set_keepintvl(sk, seconds);
	tcp_sock_set_keepcnt(sk, 5);
	WRITE_ONCE(inet_csk(sk)->icsk_rto_max, msecs_to_jiffies(rto_max));
}

bool ndk_tcp_is_acknowledged(struct ndk_tcp *tcp)
{
	const struct tcp_sock *tp = tcp_sk(tcp->sock->sk);

	return READ_ONCE(tp->snd_una) == READ_ONCE(tp->write_seq);
}

/* A state of TCP that is not here has no connection. */
static const u8 ndk_tcp_states[TCP_MAX_STATES] = {
	[TCP_SYN_SENT] = NDK_TCP_OPENING,
	[TCP_SYN_RECV] = NDK_TCP_OPENING,
	[TCP_ESTABLISHED] = NDK_TCP_OPEN,
	[TCP_FIN_WAIT1] = NDK_TCP_OPEN,
	[TCP_FIN_WAIT2] = NDK_TCP_OPEN,
	[TCP_LISTEN] = NDK_TCP_LISTENS,
	[TCP_CLOSE_WAIT] = NDK_TCP_ENDED,
	[TCP_LAST_ACK] = NDK_TCP_ENDED,
	[TCP_CLOSING] = NDK_TCP_ENDED,
};

/* @error gets what has ended the connection, negative; 0 if nothing has. */
u32 ndk_tcp_state(const struct ndk_tcp *tcp, int *error)
{
	const struct sock *sk = tcp->sock->sk;
	u8 state = READ_ONCE(sk->sk_state);

	/* pairs with tcp_done_with_error() */
	smp_rmb();
	*error = -READ_ONCE(sk->sk_err) ?: READ_ONCE(tcp->error);
	return ndk_tcp_states[state % TCP_MAX_STATES];
}

/* Payload of a TCP segment now. */
u32 ndk_tcp_segment(const struct ndk_tcp *tcp)
{
	return READ_ONCE(tcp_sk(tcp->sock->sk)->mss_cache);
}

/*
 * Sends a part of @page without a copy: the bytes may not change any more.
 * Returns their number, or -EAGAIN: an event tells of room.
 */
int ndk_tcp_send(struct ndk_tcp *tcp, struct page *page, u32 offset, u32 len,
		 bool more)
{
	struct msghdr msg = {
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_SPLICE_PAGES |
			     (more ? MSG_MORE : 0),
	};
	struct bio_vec part;
	int ret;

	bvec_set_page(&part, page, len, offset);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &part, 1, len);
	ret = sock_sendmsg(tcp->sock, &msg);
	/* -EPIPE is the answer behind any end. */
	if (ret < 0 && ret != -EAGAIN && ret != -EPIPE)
		WRITE_ONCE(tcp->error, ret);
	return ret;
}

struct ndk_tcp_reader {
	void *arg;
	ndk_tcp_read_fn read;
};

static int ndk_tcp_actor(read_descriptor_t *desc, struct sk_buff *skb,
			 unsigned int offset, size_t len)
{
	struct ndk_tcp_reader *reader = desc->arg.data;
	u32 used;

	/* TCP offers the rest of a piece once more. */
	if (!desc->count)
		return 0;
	used = reader->read(reader->arg, skb, offset, len);
	/* A piece that is not used up ends the reading. */
	if (used < len)
		desc->count = 0;
	return used;
}

/*
 * Calls @read for one piece after the other until it leaves some of one.  Within
 * an event; elsewhere, where it may sleep, through ndk_tcp_read().  -EPROTO for
 * urgent data, before which a stream stands still.
 */
int ndk_tcp_read_locked(struct ndk_tcp *tcp, void *arg, ndk_tcp_read_fn read)
{
	struct ndk_tcp_reader reader = { .arg = arg, .read = read };
	read_descriptor_t desc = { .arg.data = &reader, .count = 1 };
	struct sock *sk = tcp->sock->sk;
	int ret = tcp_read_sock(sk, &desc, ndk_tcp_actor);

	return ret >= 0 && tcp_sk(sk)->urg_data ? -EPROTO : ret;
}

int ndk_tcp_read(struct ndk_tcp *tcp, void *arg, ndk_tcp_read_fn read)
{
	int ret;

	lock_sock(tcp->sock->sk);
	ret = ndk_tcp_read_locked(tcp, arg, read);
	release_sock(tcp->sock->sk);
	return ret;
}

/* Copies bytes of @skb from number @at of the stream on; returns how many. */
static u32 ndk_tcp_copy(const struct sk_buff *skb, u32 at, void *to, u32 len)
{
	u32 offset = at - TCP_SKB_CB(skb)->seq;

	if (offset >= skb->len)
		return 0;
	len = min(len, skb->len - offset);
	return skb_copy_bits(skb, offset, to, len) ? 0 : len;
}

/*
 * Copies bytes of the stream from byte @skip on, which stay there; returns their
 * number.  Within an event; elsewhere ndk_tcp_peek().
 */
u32 ndk_tcp_peek_locked(struct ndk_tcp *tcp, u32 skip, void *to, u32 len)
{
	struct sock *sk = tcp->sock->sk;
	u32 at = tcp_sk(sk)->copied_seq + skip, done = 0;
	struct sk_buff *skb;

	skb_queue_walk(&sk->sk_receive_queue, skb) {
		done += ndk_tcp_copy(skb, at + done, to + done, len - done);
		if (done == len)
			break;
	}
	return done;
}

u32 ndk_tcp_peek(struct ndk_tcp *tcp, u32 skip, void *to, u32 len)
{
	u32 done;

	lock_sock(tcp->sock->sk);
	done = ndk_tcp_peek_locked(tcp, skip, to, len);
	release_sock(tcp->sock->sk);
	return done;
}

/* The peer reads the end of the stream behind the last byte. */
int ndk_tcp_end(struct ndk_tcp *tcp)
{
	return kernel_sock_shutdown(tcp->sock, SHUT_WR);
}

/* The release that follows resets the connection. */
void ndk_tcp_reset_on_release(struct ndk_tcp *tcp)
{
	sock_no_linger(tcp->sock->sk);
}

/* Pages for ndk_tcp_send(): 2^@order, or one. @order gets what it is. */
struct page *ndk_tcp_pages(u32 *order)
{
	gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;
	struct page *page;

	/* Larger ones are a convenience: none of the reserve. */
	page = alloc_pages(GFP_NOWAIT | __GFP_COMP | __GFP_NOWARN, *order);
	if (page)
		return page;
	*order = 0;
	return alloc_page(gfp);
}

void ndk_tcp_pages_put(struct page *page)
{
	put_page(page);
}

int ndk_skb_copy(const struct sk_buff *skb, u32 offset, void *to, u32 len)
{
	return skb_copy_bits(skb, offset, to, len);
}

/*
 * CRC32C as a continuation of @crc, which is 0 at first.  False if not all bytes
 * could be read, as those of a device's memory.
 */
bool ndk_skb_crc32c(struct sk_buff *skb, u32 offset, u32 len, u32 *crc)
{
	struct skb_seq_state state;
	const u8 *data;
	u32 done = 0, part, sum = ~*crc;

	skb_prepare_seq_read(skb, offset, offset + len, &state);
	while (done < len && (part = skb_seq_read(done, &data, &state))) {
		/* A part may have more than was asked for. */
		part = min(part, len - done);
		sum = crc32c(sum, data, part);
		done += part;
	}
	skb_abort_seq_read(&state);
	*crc = ~sum;
	return done == len;
}

/* The same of memory. */
u32 ndk_tcp_crc32c(const void *data, u32 len, u32 crc)
{
	return ~crc32c(~crc, data, len);
}
