// SPDX-License-Identifier: GPL-2.0

//! Connections over the loopback device, with both ends here.

use core::net::{
    Ipv4Addr,
    Ipv6Addr, //
};

use kernel::sync::atomic::{
    ordering::{
        Full,
        Relaxed, //
    },
    Atomic, //
};

use super::*;
use crate::{
    kunit::harness::{
        came_in_time,
        sleep,
        wait_until, //
    },
    sys::{
        event::Event,
        netdev::NetDev,
        report::cases,
        tests::memory::{
            test_memory,
            test_span, //
        }, //
    }, //
};

/// An owner that counts, and takes all bytes unless it holds them back.
#[pin_data]
struct Owner {
    changes: Atomic<u32>,
    rooms: Atomic<u32>,
    calls: Atomic<u32>,
    arrivals: Atomic<u32>,
    holds: Atomic<bool>,
    read: Atomic<u64>,
    failed: Atomic<bool>,
    /// CRC of all bytes; the lock of the socket is around it.
    crc: Atomic<u32>,
    #[pin]
    happened: Event,
}

impl Owner {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                changes: Atomic::new(0),
                rooms: Atomic::new(0),
                calls: Atomic::new(0),
                arrivals: Atomic::new(0),
                holds: Atomic::new(false),
                read: Atomic::new(0),
                failed: Atomic::new(false),
                crc: Atomic::new(0),
                happened <- Event::new(),
            }),
            GFP_KERNEL,
        )
    }

    fn holding() -> Result<Arc<Self>> {
        let owner = Self::new()?;
        owner.holds.store(true, Relaxed);
        Ok(owner)
    }
}

impl Events for Owner {
    fn readable(&self, stream: &mut Stream<'_>) {
        self.calls.fetch_add(1, Relaxed);
        if !self.holds.load(Relaxed) {
            let result = stream.read(|packet| {
                let crc = packet.crc32c(self.crc.load(Relaxed), packet.len());
                self.crc.store(crc, Relaxed);
                let (mut sink, mut taken) = ([0; 64], 0);
                while packet.len() > 0 {
                    taken += packet.take(&mut sink) as u64;
                }
                if packet.is_lost() {
                    self.failed.store(true, Relaxed);
                }
                // A test that sees the bytes sees the CRC and the failure, too.
                self.read.fetch_add(taken, Full);
            });
            if result.is_err() {
                self.failed.store(true, Relaxed);
            }
        }
        self.happened.signal();
    }

    fn arrived(&self) {
        self.arrivals.fetch_add(1, Relaxed);
        self.happened.signal();
    }

    fn writable(&self) {
        self.rooms.fetch_add(1, Relaxed);
        self.happened.signal();
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Relaxed);
        self.happened.signal();
    }
}

/// The loopback device is up.
fn lo() -> Result<NetDev> {
    NetDev::loopback()
}

fn v4(port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)
}

fn listener(at: SocketAddr) -> Result<Socket> {
    let listener = Socket::bound(Net::FIRST, &at, true)?;
    listener.listen(8)?;
    Ok(listener)
}

/// A connection: the ends of the initiator and of the responder.
struct Pair {
    near: Owned<Owner>,
    far: Owned<Owner>,
    near_owner: Arc<Owner>,
    far_owner: Arc<Owner>,
    _lo: NetDev,
}

impl Pair {
    fn new(near_owner: Arc<Owner>, far_owner: Arc<Owner>) -> Result<Self> {
        let lo = lo()?;
        let listener = listener(v4(0))?;
        let near = Owned::new(Socket::bound(Net::FIRST, &v4(0), true)?, near_owner.clone())?;
        near.connect(&listener.local()?)?;
        let far = Owned::new(accepted(&listener)?, far_owner.clone())?;
        if !wait_until(|| near.state() == State::Open) {
            return Err(ETIMEDOUT);
        }
        Ok(Self {
            near,
            far,
            near_owner,
            far_owner,
            _lo: lo,
        })
    }
}

fn accepted(listener: &Socket) -> Result<Socket> {
    let mut accepted = Err(EAGAIN);
    wait_until(|| {
        accepted = listener.accept();
        !matches!(accepted, Err(e) if e == EAGAIN)
    });
    accepted
}

/// A buffer with these bytes, one page of them at most.
fn buffer(bytes: &[u8]) -> Result<Buffer> {
    let mut buffer = Buffer::new();
    buffer.room(bytes.len())?;
    if buffer.put(bytes) < bytes.len() {
        return Err(ENOSPC);
    }
    Ok(buffer)
}

/// Sends all that the buffer has; waits for room.
fn send_all(end: &Owned<Owner>, buffer: &mut Buffer) -> Result {
    let mut failure = Ok(());
    wait_until(|| {
        match end.send(buffer, false) {
            Err(e) if e != EAGAIN => failure = Err(e),
            _ => {}
        }
        buffer.len() == 0 || failure.is_err()
    });
    failure
}

#[kernel::macros::kunit_tests(ndk_sys_tcp)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_opens_and_both_ends_know_the_addresses() -> Result {
        let lo = lo()?;
        let v6 = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0);
        // A kernel may have no IPv6.
        for at in cases([v4(0), v6].into_iter().filter(|at| lo.owns_addr(at.ip()))) {
            let (here, there) = (Owner::new()?, Owner::new()?);
            let listener = Owned::new(listener(at)?, there.clone())?;
            kunit_assert_eq!(listener.state(), State::Listens);
            let address = listener.local()?;
            assert!(address.port() != 0);
            let near = Owned::new(Socket::bound(Net::FIRST, &at, true)?, here.clone())?;
            kunit_assert_eq!(near.state(), State::Closed(None));
            near.connect(&address)?;
            assert!(came_in_time(&here.happened));
            kunit_assert_eq!(near.state(), State::Open);
            assert!(came_in_time(&there.happened));
            kunit_assert_eq!(there.arrivals.load(Relaxed), 1);
            kunit_assert_eq!(there.calls.load(Relaxed), 0);
            let far = listener.accept()?;
            kunit_assert_eq!(far.state(), State::Open);
            kunit_assert_eq!(near.peer()?, address);
            kunit_assert_eq!(far.local()?, address);
            kunit_assert_eq!(far.peer()?, near.local()?);
            assert!(near.segment() > 500);
            kunit_assert_eq!(listener.accept().err(), Some(EAGAIN));
        }
        Ok(())
    }

    #[test]
    fn bytes_come_in_order() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::new()?)?;
        let mut crc = 0;
        for len in [1, 7, 63, 64, 65, 1460, 4096] {
            let bytes = KVec::from_elem(len as u8, len, GFP_KERNEL)?;
            let mut out = buffer(&bytes)?;
            crc = out.crc32c(crc, len);
            send_all(&pair.near, &mut out)?;
        }
        let total = 1 + 7 + 63 + 64 + 65 + 1460 + 4096;
        assert!(wait_until(|| pair.far_owner.read.load(Relaxed) == total));
        kunit_assert_eq!(pair.far_owner.crc.load(Relaxed), crc);
        assert!(!pair.far_owner.failed.load(Relaxed));
        kunit_assert_eq!(pair.near_owner.read.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn crcs_are_those_of_iscsi() -> Result {
        // RFC 3720, B.4: 32 bytes of zeros, and of ones.
        for (byte, crc) in cases([(0, 0x8a91_36aa), (0xff, 0x62a8_ab43)]) {
            let out = buffer(&[byte; 32])?;
            kunit_assert_eq!(out.crc32c(0, 32), crc);
            kunit_assert_eq!(out.crc32c(0, 99), crc);
        }
        let out = buffer(b"123456789")?;
        kunit_assert_eq!(out.crc32c(0, 9), 0xe306_9283);
        kunit_assert_eq!(out.crc32c(buffer(b"1234")?.crc32c(0, 4), 5), 0xe306_9283);
        Ok(())
    }

    #[test]
    fn a_packet_that_is_not_used_up_comes_again() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::holding()?)?;
        send_all(&pair.near, &mut buffer(b"some bytes in one packet")?)?;
        assert!(came_in_time(&pair.far_owner.happened));
        let mut parts = [0; 24];
        for at in cases([0, 5, 10, 15, 20]) {
            let end = 24.min(at + 5);
            // One call, though bytes are left.
            let mut calls = 0;
            let read = pair.far.read(|packet| {
                calls += 1;
                packet.take(&mut parts[at..end]);
            });
            kunit_assert_eq!(read, Ok(end - at));
            kunit_assert_eq!(calls, 1);
        }
        kunit_assert_eq!(parts, *b"some bytes in one packet");
        kunit_assert_eq!(pair.far.read(|_| {}), Ok(0));
        Ok(())
    }

    #[test]
    fn a_peek_leaves_the_bytes_there() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::holding()?)?;
        // CAST: small numbers.
        let all: [u8; 200] = core::array::from_fn(|i| i as u8);
        // A page each: more than one packet has room for.
        let mut parts = all.chunks(4);
        parts.try_for_each(|part| send_all(&pair.near, &mut buffer(part)?))?;
        let mut room = [0; 256];
        assert!(wait_until(|| pair.far.peek(0, &mut room) == all.len()));
        // Bytes that were read are there no more.
        for at in cases([0, 3, 4, 9, 66, 68, 150, 199, 200]) {
            let gone = all.len() - pair.far.peek(0, &mut room);
            let mut left = at - gone;
            pair.far.read(|packet| {
                let most = left.min(packet.len());
                left -= packet.take(&mut room[..most]);
            })?;
            let rest = &all[at..];
            for skip in cases([0, 1, 4, 5, 67, 68, 69, 137, 199, 200, 300]) {
                for most in [0, 1, 4, 5, 70, 256] {
                    let want = rest.get(skip..).unwrap_or_default();
                    let want = want.get(..most).unwrap_or(want);
                    let there = pair.far.peek(skip, &mut room[..most]);
                    assert!(room[..there] == *want);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn bytes_go_from_memory_to_memory() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::holding()?)?;
        let mut source: [u8; 300] = core::array::from_fn(|i| i as u8);
        let (mut plain, mut mapped) = ([0; 150], KVec::from_elem(0u8, 150, GFP_KERNEL)?);
        let mut out = Buffer::new();
        out.room(300)?;
        kunit_assert_eq!(out.put_run(test_span(&mut source).run()), Ok(300));
        send_all(&pair.near, &mut out)?;
        let (memory, span) = (test_memory(), test_span(&mut plain));
        let by_address = memory.run(mapped.as_mut_ptr() as u64, 150);
        let by_address = by_address.ok_or(EFAULT)?;
        let (mut first, mut second) = (0, 0);
        assert!(wait_until(|| {
            let result = pair.far.read(|packet| {
                first += packet.take_run(span.run().part(first, 150)).unwrap_or(0);
                second += packet.take_run(by_address.part(second, 150)).unwrap_or(0);
            });
            result.is_ok() && first + second == 300
        }));
        assert!(plain == source[..150]);
        assert!(mapped[..] == source[150..]);
        Ok(())
    }

    #[test]
    fn a_full_socket_says_so_and_tells_of_room() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::holding()?)?;
        let bytes = KVec::from_elem(0x5a, 4096, GFP_KERNEL)?;
        let (mut sent, mut full) = (0, Ok(()));
        while full.is_ok() && sent < 1 << 30 {
            let mut out = buffer(&bytes)?;
            while out.len() > 0 && full.is_ok() {
                match pair.near.send(&mut out, false) {
                    Ok(len) => sent += len as u64,
                    Err(e) => full = Err(e),
                }
            }
        }
        kunit_assert_eq!(full, Err(EAGAIN));
        let rooms = pair.near_owner.rooms.load(Relaxed);
        pair.far_owner.holds.store(false, Relaxed);
        let mut sink = [0; 512];
        let mut read = 0;
        assert!(wait_until(|| {
            let result = pair.far.read(|packet| {
                while packet.len() > 0 {
                    read += packet.take(&mut sink) as u64;
                }
            });
            result.is_ok() && read + pair.far_owner.read.load(Relaxed) == sent
        }));
        assert!(wait_until(|| pair.near_owner.rooms.load(Relaxed) > rooms));
        Ok(())
    }

    #[test]
    fn the_end_comes_behind_the_last_byte() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::new()?)?;
        send_all(&pair.near, &mut buffer(b"last")?)?;
        assert!(wait_until(|| pair.far_owner.read.load(Relaxed) == 4));
        let before = pair.far_owner.changes.load(Relaxed);
        pair.near.end()?;
        assert!(wait_until(|| pair.far.state() == State::Ended));
        assert!(wait_until(|| pair.far_owner.changes.load(Relaxed) > before));
        // The other direction goes on.
        send_all(&pair.far, &mut buffer(b"answer")?)?;
        assert!(wait_until(|| pair.near_owner.read.load(Relaxed) == 6));
        Ok(())
    }

    #[test]
    fn an_end_at_both_ends_is_no_error() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::new()?)?;
        pair.near.end()?;
        assert!(wait_until(|| pair.far.state() == State::Ended));
        pair.far.end()?;
        for end in [&pair.near, &pair.far] {
            assert!(wait_until(|| end.state() == State::Closed(None)));
            kunit_assert_eq!(end.send(&mut buffer(b"late")?, false), Err(EPIPE));
            kunit_assert_eq!(end.state(), State::Closed(None));
        }
        Ok(())
    }

    #[test]
    fn a_reset_is_an_error_at_the_peer() -> Result {
        let Pair {
            near,
            far,
            far_owner,
            ..
        } = Pair::new(Owner::new()?, Owner::new()?)?;
        send_all(&near, &mut buffer(b"x")?)?;
        assert!(wait_until(|| far_owner.read.load(Relaxed) == 1));
        let before = far_owner.changes.load(Relaxed);
        near.reset_on_drop();
        drop(near);
        assert!(wait_until(|| far.state() == State::Closed(Some(ECONNRESET))));
        assert!(wait_until(|| far_owner.changes.load(Relaxed) > before));
        kunit_assert_eq!(far.send(&mut buffer(b"x")?, false), Err(ECONNRESET));
        // The call has taken the error from the socket.
        kunit_assert_eq!(far.state(), State::Closed(Some(ECONNRESET)));
        Ok(())
    }

    #[test]
    fn a_port_without_a_listener_refuses() -> Result {
        let _lo = lo()?;
        let closed = Socket::bound(Net::FIRST, &v4(0), true)?;
        let owner = Owner::new()?;
        let near = Owned::new(Socket::bound(Net::FIRST, &v4(0), true)?, owner.clone())?;
        // The answer may come before the call returns.
        let begun = near.connect(&closed.local()?);
        assert!(matches!(begun, Ok(()) | Err(ECONNREFUSED)));
        assert!(came_in_time(&owner.happened));
        let refused = State::Closed(Some(ECONNREFUSED));
        assert!(begun.is_err() || wait_until(|| near.state() == refused));
        kunit_assert_eq!(
            Socket::bound(
                Net::FIRST,
                &SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 0),
                true
            )
            .err(),
            Some(EADDRNOTAVAIL)
        );
        Ok(())
    }

    #[test]
    fn a_wildcard_of_an_interface_takes_what_comes_by_that_interface() -> Result {
        let lo = lo()?;
        let wildcard = |port| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        // No interface has that number.
        let elsewhere = Socket::bound_by(Net::FIRST, &wildcard(0), true, lo.index() + 10_000)?;
        elsewhere.listen(1)?;
        let port = elsewhere.local()?.port();
        let refused = Socket::bound(Net::FIRST, &v4(0), true)?;
        let _ = refused.connect(&v4(port));
        assert!(wait_until(|| matches!(refused.state(), State::Closed(_))));
        let here = Socket::bound_by(Net::FIRST, &wildcard(port), true, lo.index())?;
        here.listen(1)?;
        let near = Socket::bound(Net::FIRST, &v4(0), true)?;
        near.connect(&v4(port))?;
        kunit_assert_eq!(accepted(&here)?.peer()?, near.local()?);
        kunit_assert_eq!(elsewhere.accept().err(), Some(EAGAIN));
        Ok(())
    }

    #[test]
    fn a_socket_that_was_given_back_causes_no_event() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::new()?)?;
        let Pair {
            near,
            far,
            far_owner,
            ..
        } = pair;
        let socket = far.into_socket();
        let before = far_owner.calls.load(Relaxed);
        send_all(&near, &mut buffer(b"unseen")?)?;
        let next = Owner::new()?;
        let mut bytes = [0; 6];
        let mut at = 0;
        assert!(wait_until(|| socket
            .read(|packet| at += packet.take(&mut bytes[at..]))
            .is_ok()
            && at == 6));
        kunit_assert_eq!(bytes, *b"unseen");
        kunit_assert_eq!(far_owner.calls.load(Relaxed), before);
        // The next owner gets the events that follow.
        let far = Owned::new(socket, next.clone())?;
        send_all(&near, &mut buffer(b"seen")?)?;
        assert!(wait_until(|| next.read.load(Relaxed) == 4));
        kunit_assert_eq!(far_owner.calls.load(Relaxed), before);
        drop(far);
        Ok(())
    }

    #[test]
    fn a_buffer_keeps_its_bytes_until_they_are_sent() -> Result {
        let mut out = Buffer::new();
        kunit_assert_eq!(out.put(b"no room yet"), 0);
        let room = out.room(1)?;
        assert!(room >= kernel::page::PAGE_SIZE);
        kunit_assert_eq!(out.put(b"abcdef"), 6);
        out.take_back(2);
        kunit_assert_eq!(out.len(), 4);
        kunit_assert_eq!(out.crc32c(0, 4), buffer(b"abcd")?.crc32c(0, 4));
        // Pages with unsent bytes stay, even if they are too small.
        kunit_assert_eq!(out.room(room)?, room - 4);
        out.was_sent(4);
        kunit_assert_eq!(out.len(), 0);
        assert!(out.unsent().is_none());
        kunit_assert_eq!(out.room(room - 4)?, room - 4);
        // New ones, as the old ones are too small.
        assert!(out.room(room)? >= kernel::page::PAGE_SIZE);
        kunit_assert_eq!(out.put(b"x"), 1);
        kunit_assert_eq!(out.len(), 1);
        Ok(())
    }

    #[test]
    fn urgent_data_is_an_error() -> Result {
        let pair = Pair::new(Owner::new()?, Owner::new()?)?;
        // SAFETY: The C socket is live (invariant).
        let sent = unsafe { bindings::ndk_tcp_send_urgent(pair.near.as_raw()) };
        kunit_assert_eq!(sent, 1);
        assert!(wait_until(|| pair.far_owner.failed.load(Relaxed)));
        kunit_assert_eq!(pair.far.read(|_| {}), Err(EPROTO));
        Ok(())
    }

    #[test]
    fn connections_that_no_listener_has_accepted_go_with_it() -> Result {
        let _lo = lo()?;
        let there = Owner::new()?;
        let listener = Owned::new(listener(v4(0))?, there.clone())?;
        let here = Owner::new()?;
        let near = Owned::new(Socket::bound(Net::FIRST, &v4(0), true)?, here.clone())?;
        near.connect(&listener.local()?)?;
        assert!(wait_until(|| there.arrivals.load(Relaxed) == 1));
        send_all(&near, &mut buffer(b"to the one that waits")?)?;
        drop(listener);
        assert!(wait_until(
            || near.state() == State::Closed(Some(ECONNRESET))
        ));
        kunit_assert_eq!(there.calls.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn an_accepted_socket_needs_no_owner() -> Result {
        let _lo = lo()?;
        let listener = Owned::new(listener(v4(0))?, Owner::new()?)?;
        let near = Owned::new(Socket::bound(Net::FIRST, &v4(0), true)?, Owner::new()?)?;
        near.connect(&listener.local()?)?;
        let far = accepted(&listener)?;
        send_all(&near, &mut buffer(b"ab")?)?;
        let (mut bytes, mut at) = ([0; 2], 0);
        let mut read = || {
            far.read(|packet| at += packet.take(&mut bytes[at..]))
                .is_ok()
                && at == 2
        };
        assert!(wait_until(&mut read));
        drop(far);
        assert!(wait_until(|| near.state() == State::Ended));
        near.watch(1000);
        Ok(())
    }

    #[test]
    fn a_watch_does_not_take_a_closed_window_for_silence() -> Result {
        let _lo = lo()?;
        let pair = Pair::new(Owner::new()?, Owner::holding()?)?;
        pair.near.watch(1);
        pair.far.watch(1);
        kunit_assert_eq!(pair.near.is_acknowledged(), true);
        // The peer takes nothing for longer than a silent one stays.
        let (page, mut sent, mut full) = ([7; 4096], 0, 0);
        while full < 70 {
            let mut bytes = buffer(&page)?;
            match pair.near.send(&mut bytes, false) {
                Ok(some) => (sent, full) = (sent + some as u64, 0),
                Err(e) => {
                    kunit_assert_eq!(e, EAGAIN);
                    full += 1;
                    sleep(100);
                }
            }
        }
        kunit_assert_eq!(pair.near.state(), State::Open);
        kunit_assert_eq!(pair.far.state(), State::Open);
        kunit_assert_eq!(pair.near.is_acknowledged(), false);
        let mut read = 0;
        assert!(wait_until(|| {
            let result = pair.far.read(|packet| {
                read += packet.len() as u64;
                packet.skip();
            });
            result.is_err() || read == sent
        }));
        kunit_assert_eq!(read, sent);
        assert!(wait_until(|| pair.near.is_acknowledged()));
        Ok(())
    }
}
