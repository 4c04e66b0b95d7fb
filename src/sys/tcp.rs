// SPDX-License-Identifier: GPL-2.0

//! TCP sockets of the kernel, with events in Rust.
//!
//! A [`Socket`] has no owner. An [`Owned`] one notifies its owner ([`Events`]) of each change, from
//! softirq or with softirqs off, and under locks of the socket: the owner may read there, and sends
//! and closes later, from a thread. Bytes come as parts of the packets that carried them
//! ([`Packet`]), and go as pages ([`Buffer`]), without a copy where the network device can gather.
//!
//! A socket keeps its network namespace. Its memory never waits for storage, which may wait for it.
//!
//! Lock order: the lock of a socket, its callback lock, then the locks of the owner. No lock of the
//! owner may be held around a call that may sleep.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/tcp.h`](srctree/include/net/tcp.h)

mod buffer;
mod packet;
#[cfg(ndk_kunit)]
mod tests;

use core::{
    ffi::c_void,
    marker::PhantomData,
    mem::ManuallyDrop,
    net::SocketAddr,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc,
    types::NotThreadSafe, //
};

use super::{
    addr,
    netdev::Net, //
};
use crate::bindings;

pub(crate) use buffer::Buffer;
pub(crate) use packet::Packet;

/// The owner of a socket.
///
/// All calls come from softirq or with softirqs off, under locks of the socket, and may come on
/// several processors at once. No call sleeps, sends, or drops the [`Owned`] socket.
pub(crate) trait Events: Send + Sync + 'static {
    /// Bytes or the end of the stream have come. One call at a time.
    fn readable(&self, stream: &mut Stream<'_>);

    /// A connection has come to this listener: [`Socket::accept`] takes it, from a thread.
    fn arrived(&self);

    /// The socket has room again, after a [`Socket::send`] that found none.
    fn writable(&self);

    /// The state has changed. At the end of the peer's stream the call may precede that of the last
    /// bytes.
    fn changed(&self);
}

/// The state of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The connection is being set up.
    Opening,
    /// Bytes may come. This end may have ended its own stream.
    Open,
    Listens,
    /// The peer's stream is at its end; the last bytes may be left to read.
    Ended,
    /// No connection, or no more; the error that has ended it, if one has. The last bytes may be
    /// left to read.
    Closed(Option<Error>),
}

/// A TCP socket.
///
/// Dropping it closes the connection, in process context: bytes that were sent still go out, unless
/// bytes of the peer were not read, which resets the connection.
///
/// # Invariants
///
/// Owns a `struct ndk_tcp`, which has no owner in the sense of [`Events`].
pub(crate) struct Socket(NonNull<bindings::ndk_tcp>);

// SAFETY: A socket belongs to no thread.
unsafe impl Send for Socket {}
// SAFETY: The C functions lock the socket, or read single fields of it with `READ_ONCE()`.
unsafe impl Sync for Socket {}

impl Socket {
    /// Takes over a C socket or an error pointer.
    ///
    /// # Safety
    ///
    /// The caller gives the C socket away.
    unsafe fn from_raw(tcp: *mut bindings::ndk_tcp) -> Result<Self> {
        // INVARIANT: The C socket belongs to this object now.
        Ok(Self(NonNull::new(from_err_ptr(tcp)?).ok_or(ENOMEM)?))
    }

    fn as_raw(&self) -> *mut bindings::ndk_tcp {
        self.0.as_ptr()
    }

    /// Makes a socket of the address's family, and binds it to the address; port 0 is any free one.
    /// `afonly`: a wildcard of IPv6 does not stand for IPv4. Process context.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` if the namespace is ending; `EADDRINUSE`, `EADDRNOTAVAIL`, `ENOMEM`, and others of
    /// `bind(2)`.
    pub(crate) fn bound(net: Net<'_>, at: &SocketAddr, afonly: bool) -> Result<Self> {
        Self::bound_by(net, at, afonly, 0)
    }

    /// As [`Socket::bound`]; connections come by the interface of that number alone, if it is not 0.
    pub(crate) fn bound_by(
        net: Net<'_>,
        at: &SocketAddr,
        afonly: bool,
        interface: u32,
    ) -> Result<Self> {
        let family = addr::family(at);
        // SAFETY: The namespace is null or live during the call, and the socket keeps it from then
        // on; the new C socket is for this object.
        let socket = unsafe { Self::from_raw(bindings::ndk_tcp_new(net.as_raw(), family))? };
        // SAFETY: By the invariant.
        to_result(unsafe { bindings::ndk_tcp_bind_interface(socket.as_raw(), interface) })?;
        let (mut at, len) = (addr::write(at), addr::length_of(family));
        // SAFETY: The C socket is live (invariant), and the address valid during the call.
        to_result(unsafe { bindings::ndk_tcp_bind(socket.as_raw(), &mut at, len, afonly) })?;
        Ok(socket)
    }

    /// Listens with room for so many connections that were not accepted. Process context.
    pub(crate) fn listen(&self, backlog: u32) -> Result {
        // SAFETY: By the invariant.
        to_result(unsafe { bindings::ndk_tcp_listen(self.as_raw(), backlog) })
    }

    /// Begins to connect: [`State`] shows the end. Process context; waits for nothing.
    pub(crate) fn connect(&self, to: &SocketAddr) -> Result {
        let (mut to, len) = (addr::write(to), addr::length_of(addr::family(to)));
        // SAFETY: The C socket is live (invariant), and the address valid during the call.
        match to_result(unsafe { bindings::ndk_tcp_connect(self.as_raw(), &mut to, len) }) {
            Err(e) if e == EINPROGRESS => Ok(()),
            result => result,
        }
    }

    /// Takes the next connection that has come to this listener. Process context.
    ///
    /// # Errors
    ///
    /// `EAGAIN` without one; `EBUSY` if another user of sockets (a map of BPF) has taken it.
    pub(crate) fn accept(&self) -> Result<Self> {
        // SAFETY: By the invariant; the new C socket is for this object.
        unsafe { Self::from_raw(bindings::ndk_tcp_accept(self.as_raw())) }
    }

    /// The address of this end. Process context.
    pub(crate) fn local(&self) -> Result<SocketAddr> {
        self.name(false)
    }

    /// The address of the peer. Process context.
    pub(crate) fn peer(&self) -> Result<SocketAddr> {
        self.name(true)
    }

    fn name(&self, peer: bool) -> Result<SocketAddr> {
        let mut storage: addr::Storage = pin_init::zeroed();
        // SAFETY: The C socket is live (invariant), and the storage has room for any address.
        to_result(unsafe { bindings::ndk_tcp_name(self.as_raw(), peer, &mut storage) })?;
        addr::read(&storage).ok_or(EAFNOSUPPORT)
    }

    /// Ends the connection when the peer has answered nothing for about so long, from six seconds on:
    /// TCP asks a silent peer five times. With bytes on their way it takes two to three times as long
    /// (with `net.ipv4.tcp_retries2` at its default), or less than half if the peer had closed its window
    /// over them. A peer that answers, and takes nothing, stays. Process context.
    pub(crate) fn watch(&self, ms: u32) {
        // SAFETY: By the invariant.
        unsafe { bindings::ndk_tcp_watch(self.as_raw(), ms) };
    }

    /// The state now. Any context.
    pub(crate) fn state(&self) -> State {
        let mut error = 0;
        // SAFETY: By the invariant; the function sets `error`.
        match unsafe { bindings::ndk_tcp_state(self.as_raw(), &mut error) } {
            bindings::ndk_tcp_state_NDK_TCP_OPENING => State::Opening,
            bindings::ndk_tcp_state_NDK_TCP_OPEN => State::Open,
            bindings::ndk_tcp_state_NDK_TCP_LISTENS => State::Listens,
            bindings::ndk_tcp_state_NDK_TCP_ENDED => State::Ended,
            _ => State::Closed(to_result(error).err()),
        }
    }

    /// The payload of a TCP segment in bytes; it may change. Any context.
    pub(crate) fn segment(&self) -> usize {
        // SAFETY: By the invariant.
        // CAST: widening.
        unsafe { bindings::ndk_tcp_segment(self.as_raw()) as usize }
    }

    /// Sends bytes of the buffer, as many as the socket has room for now, and returns their number.
    /// `more` says that others follow at once. Process context.
    ///
    /// # Errors
    ///
    /// `EAGAIN` without room: [`Events::writable`] follows, or has come during the call, if there was
    /// no memory. Before the connection is open it is [`Events::changed`] that follows. Otherwise the
    /// error that has ended the connection.
    pub(crate) fn send(&self, buffer: &mut Buffer, more: bool) -> Result<usize> {
        let Some(part) = buffer.unsent() else {
            return Ok(0);
        };
        #[cfg(ndk_kunit)]
        super::over_tcp::come_late();
        let len = part.len.min(piece());
        let more = more || len < part.len;
        // SAFETY: The C socket is live (invariant). The buffer holds the pages until the call
        // returns, and changes no byte before the first that was not sent.
        let sent =
            unsafe { bindings::ndk_tcp_send(self.as_raw(), part.page, part.offset, len, more) };
        // CAST: not negative, and no more than `len`.
        let sent = to_result(sent.min(0)).map(|()| sent as u32)?;
        buffer.was_sent(sent);
        // CAST: widening.
        Ok(sent as usize)
    }

    /// Reads outside of an event. Process context, and not within another read; as [`Stream::read`].
    pub(crate) fn read(&self, mut read: impl FnMut(&mut Packet<'_>)) -> Result<usize> {
        #[cfg(ndk_kunit)]
        super::over_tcp::come_late();
        let (arg, function) = packet::callback(&mut read);
        // SAFETY: The C socket is live (invariant), and `function` is the one for `arg`, which lives
        // until the call returns.
        packet::count(unsafe { bindings::ndk_tcp_read(self.as_raw(), arg, Some(function)) })
    }

    /// Copies bytes that have come, from byte `skip` of those on, and leaves them there; returns their
    /// number. Process context.
    pub(crate) fn peek(&self, skip: usize, to: &mut [u8]) -> usize {
        let (Ok(skip), Ok(len)) = (skip.try_into(), to.len().try_into()) else {
            return 0;
        };
        // SAFETY: The C socket is live (invariant), and `to` has room for `len` bytes.
        // CAST: widening.
        unsafe { bindings::ndk_tcp_peek(self.as_raw(), skip, to.as_mut_ptr().cast(), len) as usize }
    }

    /// Ends this end's stream behind the bytes that were sent. Process context.
    pub(crate) fn end(&self) -> Result {
        // SAFETY: By the invariant.
        to_result(unsafe { bindings::ndk_tcp_end(self.as_raw()) })
    }

    /// Returns true if the peer has acknowledged all that was sent. Any context.
    pub(crate) fn is_acknowledged(&self) -> bool {
        // SAFETY: By the invariant.
        unsafe { bindings::ndk_tcp_is_acknowledged(self.as_raw()) }
    }

    /// Has the drop reset the connection: the peer gets an error. Process context.
    #[cfg(ndk_kunit)]
    pub(crate) fn reset_on_drop(&self) {
        // SAFETY: By the invariant.
        unsafe { bindings::ndk_tcp_reset_on_release(self.as_raw()) };
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: By the invariant the C socket has no owner, and is this object's.
        unsafe { bindings::ndk_tcp_free(self.as_raw()) };
    }
}

/// A socket with an owner.
///
/// Dropping it waits for events that are under way, and closes the socket. Process context, and not
/// from an event.
///
/// # Invariants
///
/// The events of the C socket go to `owner`.
pub(crate) struct Owned<E: Events> {
    socket: Socket,
    owner: Arc<E>,
}

impl<E: Events> Owned<E> {
    /// Gives the socket an owner. Bytes, connections and changes that came before cause no event: the
    /// caller reads, accepts and looks at the state once afterwards. Process context.
    ///
    /// # Errors
    ///
    /// `EBUSY` if another user of sockets (a map of BPF) has taken this one.
    pub(crate) fn new(socket: Socket, owner: Arc<E>) -> Result<Self> {
        let arg = ptr::from_ref::<E>(&owner).cast_mut().cast();
        // SAFETY: The C socket is live. `owner` keeps `arg` until the drop of this object, which ends
        // the events first; `event::<E>` is the function for it.
        to_result(unsafe { bindings::ndk_tcp_own(socket.as_raw(), arg, Some(event::<E>)) })?;
        // INVARIANT: Since the call.
        Ok(Self { socket, owner })
    }

    /// Ends the events, and gives the socket back. Process context, and not from an event.
    pub(crate) fn into_socket(self) -> Socket {
        let this = ManuallyDrop::new(self);
        this.disown();
        // SAFETY: Both fields are moved out once, of a value that is not dropped.
        let (socket, owner) = unsafe { (ptr::read(&this.socket), ptr::read(&this.owner)) };
        drop(owner);
        socket
    }

    /// Waits for the events that are under way; none follows.
    fn disown(&self) {
        // SAFETY: The C socket is live, and has an owner (invariants).
        unsafe { bindings::ndk_tcp_disown(self.socket.as_raw()) };
    }
}

impl<E: Events> Deref for Owned<E> {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.socket
    }
}

impl<E: Events> Drop for Owned<E> {
    fn drop(&mut self) {
        self.disown();
    }
}

/// An event of a socket that belongs to an `E`.
///
/// # Safety
///
/// `owner` points at the owner that [`Owned::new`] gave to this socket, and `tcp` at the socket, which
/// is locked if the event is of bytes.
unsafe extern "C" fn event<E: Events>(owner: *mut c_void, tcp: *mut bindings::ndk_tcp, event: u32) {
    // SAFETY: By the safety requirements; `Owned` keeps the owner until the events have ended.
    let owner = unsafe { &*owner.cast::<E>() };
    match event {
        // INVARIANT: By the safety requirements.
        bindings::ndk_tcp_event_NDK_TCP_READABLE => owner.readable(&mut Stream(tcp, PhantomData)),
        bindings::ndk_tcp_event_NDK_TCP_ARRIVED => owner.arrived(),
        bindings::ndk_tcp_event_NDK_TCP_WRITABLE => owner.writable(),
        _ => owner.changed(),
    }
}

/// The bytes of a socket, during an event.
///
/// # Invariants
///
/// A `struct ndk_tcp` whose socket is locked by this context during `'a`.
pub(crate) struct Stream<'a>(*mut bindings::ndk_tcp, PhantomData<(&'a (), NotThreadSafe)>);

impl Stream<'_> {
    /// Calls `read` for one packet after the other, and returns the number of bytes that it used. A
    /// packet that is not used up ends the call: what is left comes again.
    ///
    /// # Errors
    ///
    /// `EPROTO` if the peer has sent urgent data, before which the stream stands still: bytes before
    /// that may have been used.
    // `&mut`: a read within a read would free the packet of the outer one.
    pub(crate) fn read(&mut self, mut read: impl FnMut(&mut Packet<'_>)) -> Result<usize> {
        let (arg, function) = packet::callback(&mut read);
        // SAFETY: The socket is live and locked (invariant); `function` is the one for `arg`, which
        // lives until the call returns.
        packet::count(unsafe { bindings::ndk_tcp_read_locked(self.0, arg, Some(function)) })
    }

    /// As [`Socket::peek`].
    pub(crate) fn peek(&mut self, skip: usize, to: &mut [u8]) -> usize {
        let (Ok(skip), Ok(len)) = (skip.try_into(), to.len().try_into()) else {
            return 0;
        };
        // SAFETY: The socket is live and locked (invariant), and `to` has room for `len` bytes.
        // CAST: widening.
        unsafe { bindings::ndk_tcp_peek_locked(self.0, skip, to.as_mut_ptr().cast(), len) as usize }
    }
}

/// The most bytes that one call sends, or that a [`Packet`] has: all, except where a test cuts them.
fn piece() -> u32 {
    #[cfg(ndk_kunit)]
    if let Some(piece) = super::over_tcp::piece() {
        return piece.get();
    }
    u32::MAX
}

/// CRC32C over the bytes, as a continuation of `crc`, which is 0 at first. Any context.
pub(crate) fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(1 << 16).fold(crc, |crc, part| {
        // CAST: not more than 2^16.
        let len = part.len() as u32;
        // SAFETY: The slice has `len` bytes.
        unsafe { bindings::ndk_tcp_crc32c(part.as_ptr().cast(), len, crc) }
    })
}
