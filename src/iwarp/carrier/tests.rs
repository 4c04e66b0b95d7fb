// SPDX-License-Identifier: GPL-2.0

//! Two hosts that connect over TCP, and peers that the test plays, byte by byte.

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr, //
};

use kernel::prelude::*;

use super::TcpCarrier;
use crate::{
    engine::{
        cm::{
            ConnectParams,
            ConnectRequest,
            Listener,
            Timeouts, //
        },
        prelude::*,
        transport::ReadLimits, //
    },
    iwarp::mpa::{
        self,
        Kind,
        Start, //
    },
    kunit::{
        connection_fixture::*,
        harness::wait_until,
        requests::SEND, //
    },
    rdma::values::status::Status,
    sys::{
        fault::{
            plan,
            planned_struck,
            FailNth, //
        },
        netdev::Net,
        tcp::{
            Buffer,
            Socket,
            State, //
        }, //
    },
};

/// The address of the loopback device.
const LO: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Two hosts, of which the second listens.
struct TwoHosts {
    near: ConnectionFixture,
    far: ConnectionFixture,
    carrier: Arc<TcpCarrier>,
    listener_log: Arc<ListenerLog>,
    listener: Option<Arc<Listener>>,
    at: SocketAddr,
}

impl TwoHosts {
    fn new() -> Result<Self> {
        Self::listening_at(LO, ListenerHabits::default())
    }

    /// The listener is at that address.
    fn listening_at(ip: IpAddr, habits: ListenerHabits) -> Result<Self> {
        let (near, _) = ConnectionFixture::over_tcp(Timeouts::DEFAULT)?;
        let (far, carrier) = ConnectionFixture::over_tcp(Timeouts::DEFAULT)?;
        let mut hosts = Self {
            near,
            far,
            carrier,
            listener_log: ListenerLog::with(ip, habits)?,
            listener: None,
            at: at(ip, 0),
        };
        hosts.at.set_port(free_port(ip)?);
        hosts.listen()?;
        Ok(hosts)
    }

    fn listen(&mut self) -> Result {
        let net = Net::FIRST.cookie();
        let listener = self.far.listen_in(net, self.at, &self.listener_log)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// The parameters of a connect to the listener.
    fn ask(&self, data: &[u8]) -> Result<ConnectParams> {
        let mut private_data = KVec::new();
        private_data.extend_from_slice(data, GFP_KERNEL)?;
        Ok(ConnectParams {
            net: Net::FIRST.cookie(),
            local: at(self.at.ip(), 0),
            remote: self.at,
            remote_is_here: false,
            private_data,
            ..self.near.ask()?
        })
    }

    fn connect(&self, log: &Arc<ConnectionLog>) -> Result<Arc<ConnectRequest>> {
        self.near.submit(log, self.ask(b"please")?)
    }

    /// The request that comes to the listener; waits for it.
    fn asked(&self) -> Result<Arc<ConnectRequest>> {
        wait_until(|| self.listener_log.has_request());
        self.listener_log.request()
    }

    /// Connects both sides.
    fn connected(&self, active: &Arc<ConnectionLog>, passive: &Arc<ConnectionLog>) -> Result {
        self.connect(active)?;
        self.far.accept(&self.asked()?, passive)?;
        match wait_until(|| active.replies.get() == 1) {
            true => Ok(()),
            false => Err(ETIMEDOUT),
        }
    }

    /// Sends a message each way. The passive side waits for the first FPDU of the active one.
    fn works(&self) -> Result {
        let (near, far) = (&self.near.active, &self.far.passive);
        near.receive(1, &[])?;
        far.receive(2, &[])?;
        far.post(3, SEND, &[])?;
        near.post(4, SEND, &[])?;
        let works = far.sends.next_is(3, Status::Success)
            && near.receives.next_is(1, Status::Success)
            && near.sends.next_is(4, Status::Success)
            && far.receives.next_is(2, Status::Success);
        works.then_some(()).ok_or(EPROTO)
    }

    fn end_listening(&mut self) {
        if let Some(listener) = self.listener.take() {
            self.far.cm.unlisten(&listener);
        }
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        self.end_listening();
    }
}

/// A port that no socket has now.
fn free_port(ip: IpAddr) -> Result<u16> {
    let socket = Socket::bound(Net::FIRST, &at(ip, 0), true)?;
    Ok(socket.local()?.port())
}

/// A TCP connection of the test's own.
struct Raw(Socket);

impl Raw {
    /// Connects to the listener.
    fn to(hosts: &TwoHosts) -> Result<Self> {
        Self::to_port(hosts.at.port())
    }

    /// Connects to that port at the loopback address of IPv4.
    fn to_port(port: u16) -> Result<Self> {
        let socket = Socket::bound(Net::FIRST, &at(LO, 0), true)?;
        socket.connect(&at(LO, port))?;
        wait_until(|| socket.state() != State::Opening);
        Ok(Self(socket))
    }

    fn put(&self, bytes: &[u8]) -> Result {
        let mut buffer = Buffer::new();
        buffer.room(bytes.len())?;
        if buffer.put(bytes) < bytes.len() {
            return Err(ENOSPC);
        }
        let mut failure = Ok(());
        wait_until(|| {
            match self.0.send(&mut buffer, false) {
                Err(e) if e != EAGAIN => failure = Err(e),
                _ => {}
            }
            buffer.len() == 0 || failure.is_err()
        });
        failure
    }

    /// Reads until `most` bytes have come, or the stream has ended; returns the bytes.
    fn read(&self, most: usize) -> Result<KVec<u8>> {
        let (mut bytes, mut have) = (KVec::from_elem(0, most, GFP_KERNEL)?, 0);
        wait_until(|| {
            let is_open = self.0.state() == State::Open;
            let read = self
                .0
                .read(|packet| have += packet.take(&mut bytes[have..]));
            have == most || !is_open || read.is_err()
        });
        bytes.truncate(have);
        Ok(bytes)
    }

    /// Returns true once the other side has closed the connection, and sent nothing before.
    fn is_closed(&self) -> Result<bool> {
        Ok(self.read(1)?.is_empty() && self.0.state() != State::Open)
    }

    /// A frame with these flags.
    fn frame(start: Start, data: &[u8]) -> Result<KVec<u8>> {
        let start = Start {
            private_data: data.len(),
            ..start
        };
        let mut frame = KVec::new();
        frame.extend_from_slice(&start.encode().ok_or(EINVAL)?, GFP_KERNEL)?;
        frame.extend_from_slice(data, GFP_KERNEL)?;
        Ok(frame)
    }
}

/// A listener whose connections the test takes itself, and its address.
fn raw_listener() -> Result<(Socket, SocketAddr)> {
    let socket = Socket::bound(Net::FIRST, &at(LO, 0), true)?;
    socket.listen(8)?;
    let address = socket.local()?;
    Ok((socket, address))
}

/// The next connection to that listener; waits for it.
fn taken(listener: &Socket) -> Result<Raw> {
    let mut taken = Err(EAGAIN);
    wait_until(|| {
        taken = listener.accept();
        !matches!(taken, Err(e) if e == EAGAIN)
    });
    Ok(Raw(taken?))
}

/// The step for which there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Listen,
    Dial,
    Accept,
    /// A step of a work item, on either side.
    Later,
}

impl Step {
    /// Makes that step, in which allocation `n` fails if it is the one of `self`.
    fn make<R>(self, step: Self, n: u32, struck: &mut bool, make: impl FnOnce() -> R) -> R {
        let fault = FailNth::new(if step == self { n } else { 0 });
        let made = make();
        *struck |= fault.is_some_and(|fault| fault.struck());
        made
    }

    /// Connects two hosts, where allocation `n` of this step fails. Returns true if it did. An error
    /// if that ends in another way than it has to.
    fn lacks(self, n: u32) -> Result<bool> {
        let mut struck = false;
        let mut hosts = TwoHosts::new()?;
        hosts.end_listening();
        let listened = self.make(Self::Listen, n, &mut struck, || hosts.listen());
        if self == Self::Listen {
            // The listener may serve its own host alone.
            hosts.end_listening();
            hosts.listen()?;
            if listened.is_err() && !struck {
                return listened.map(|()| false);
            }
        }
        let (active, passive) = (ConnectionLog::new()?, ConnectionLog::new()?);
        let ask = hosts.ask(b"please")?;
        if self == Self::Later && !plan(n) {
            return Ok(false);
        }
        let request = self.make(Self::Dial, n, &mut struck, || {
            hosts.near.submit(&active, ask)
        });
        if request.is_ok() {
            if !wait_until(|| active.replies.get() == 1 || hosts.listener_log.has_request()) {
                kunit_note!(
                    "number {}, struck {}, undecided {}",
                    n,
                    struck,
                    hosts.carrier.undecided()
                );
            }
        }
        if hosts.listener_log.has_request() {
            let asked = hosts.listener_log.request()?;
            let accepted = self.make(Self::Accept, n, &mut struck, || {
                hosts.far.accept(&asked, &passive)
            });
            wait_until(|| active.replies.get() == 1);
            let is_up = active.status().is_some_and(|status| status.is_ok());
            if accepted.is_ok() && !is_up && !wait_until(|| passive.closed.get() == 1) {
                return Err(ENOTCONN);
            }
        }
        struck |= self == Self::Later && planned_struck();
        let is_up = active.status().is_some_and(|status| status.is_ok());
        match request {
            Ok(_) if active.replies.get() != 1 => Err(ETIMEDOUT),
            // The passive side may have failed behind its reply: then both are closed.
            Ok(_) if is_up => match hosts.works() {
                Err(_)
                    if struck && wait_until(|| active.closed.get() + passive.closed.get() == 2) =>
                {
                    Ok(true)
                }
                works => works.map(|()| struck),
            },
            Ok(_) | Err(_) if struck => Ok(true),
            Ok(_) => Err(EPROTO),
            Err(e) => Err(e),
        }
    }
}

/// The request of a peer that knows RFC 5044 alone.
const PLAIN: Start = Start {
    kind: Kind::Request,
    markers: false,
    crc: false,
    rejected: false,
    revision: 1,
    enhanced: false,
    ndk: false,
    private_data: 0,
};

#[kernel::macros::kunit_tests(ndk_iwarp_carrier)]
mod tests {
    use super::*;

    use crate::{
        kunit::harness::{
            cases,
            flush_work,
            is_early,
            NEVER_MS, //
        },
        sys::{
            clock::StoppedClock,
            fault::needed,
            log::{
                self,
                Limit, //
            },
            netdev::NetDev,
            param, //
        },
    };

    #[test]
    fn two_hosts_connect_and_send_both_ways() -> Result {
        let hosts = TwoHosts::new()?;
        let (active, passive) = (ConnectionLog::new()?, ConnectionLog::new()?);
        hosts.connect(&active)?;
        let request = hosts.asked()?;
        assert!(request.params.private_data[..] == *b"please");
        let limits = request.params.limits;
        kunit_assert_eq!((limits.inbound, limits.outbound), (3, 7));
        hosts.far.accept(&request, &passive)?;
        assert!(wait_until(|| active.replies.get() == 1));
        let welcome = Answer {
            status: Ok((3, 5)),
            data: (*b"welcome\0", 7),
        };
        kunit_assert_eq!(active.answer(), Some(welcome));
        kunit_assert_eq!(passive.status(), Some(Ok((5, 3))));
        hosts.works()?;
        hosts.near.active.qp.fail();
        assert!(wait_until(|| passive.closed.get() == 1));
        assert!(wait_until(|| active.closed.get() == 1));
        Ok(())
    }

    #[test]
    fn a_refusal_has_its_private_data() -> Result {
        let hosts = TwoHosts::new()?;
        let active = ConnectionLog::new()?;
        hosts.connect(&active)?;
        let request = hosts.asked()?;
        let rejected = request.reject(b"no");
        assert!(rejected.is_ok());
        assert!(wait_until(|| active.replies.get() == 1));
        let no = Answer {
            status: Err(Status::Refused),
            data: (*b"no\0\0\0\0\0\0", 2),
        };
        kunit_assert_eq!(active.answer(), Some(no));
        Ok(())
    }

    #[test]
    fn a_port_without_listener_refuses() -> Result {
        let mut hosts = TwoHosts::new()?;
        hosts.end_listening();
        let active = ConnectionLog::new()?;
        hosts.connect(&active)?;
        assert!(wait_until(|| active.replies.get() == 1));
        kunit_assert_eq!(active.status(), Some(Err(Status::Refused)));
        Ok(())
    }

    #[test]
    fn two_listeners_share_a_port_and_the_last_closes_it() -> Result {
        let mut hosts = TwoHosts::new()?;
        let second = ListenerLog::new(LO, false)?;
        let address = hosts.at;
        let listener = hosts.far.listen_in(Net::FIRST.cookie(), address, &second)?;
        hosts.end_listening();
        let active = ConnectionLog::new()?;
        hosts.connect(&active)?;
        assert!(wait_until(|| second.has_request()));
        let rejected = second.request()?.reject(&[]);
        assert!(rejected.is_ok());
        assert!(wait_until(|| active.replies.get() == 1));
        hosts.far.cm.unlisten(&listener);
        kunit_assert_eq!(Raw::to(&hosts)?.0.state() == State::Open, false);
        Ok(())
    }

    #[test]
    fn a_silent_peer_is_closed_in_time() -> Result {
        let clock = StoppedClock::new();
        let hosts = TwoHosts::new()?;
        let frame = Raw::frame(PLAIN, b"hello")?;
        // Not a byte, a part of the fixed frame, and all but a byte.
        for len in cases([0, 12, frame.len() - 1]) {
            let raw = Raw::to(&hosts)?;
            raw.put(&frame[..len])?;
            assert!(wait_until(|| hosts.carrier.undecided() == 1));
            let early = is_early(&clock, 10_000, || raw.0.state() != State::Open);
            kunit_assert_eq!(early, false);
            assert!(raw.is_closed()?);
        }
        kunit_assert_eq!(hosts.listener_log.requests.get(), 0);
        Ok(())
    }

    #[test]
    fn a_stranger_is_closed_at_its_first_wrong_byte() -> Result {
        let hosts = TwoHosts::new()?;
        for bytes in cases([&b"GET / HTTP/1.1"[..], b"MPA ID Rep", b"\0"]) {
            let raw = Raw::to(&hosts)?;
            raw.put(bytes)?;
            assert!(raw.is_closed()?);
        }
        Ok(())
    }

    #[test]
    fn a_peer_that_goes_before_the_decision_abandons_its_request() -> Result {
        for resets in cases([false, true]) {
            let hosts = TwoHosts::new()?;
            let raw = Raw::to(&hosts)?;
            raw.put(&Raw::frame(PLAIN, b"hello")?)?;
            let request = hosts.asked()?;
            assert!(request.params.private_data[..] == *b"hello");
            if resets {
                raw.0.reset_on_drop();
            }
            drop(raw);
            let passive = ConnectionLog::new()?;
            assert!(wait_until(|| hosts
                .far
                .cm
                .request(request.number)
                .is_none()));
            kunit_assert_eq!(hosts.far.accept(&request, &passive), Err(ECONNABORTED));
            kunit_assert_eq!(passive.established.get(), 0);
        }
        Ok(())
    }

    #[test]
    fn an_active_side_that_gives_up_closes_its_connection() -> Result {
        let hosts = TwoHosts::new()?;
        let active = ConnectionLog::new()?;
        let request = hosts.connect(&active)?;
        let asked = hosts.asked()?;
        assert!(request.abandon());
        kunit_assert_eq!(active.status(), Some(Err(Status::Aborted)));
        assert!(wait_until(|| hosts.far.cm.request(asked.number).is_none()));
        Ok(())
    }

    #[test]
    fn a_peer_of_rfc_5044_alone_is_accepted() -> Result {
        let hosts = TwoHosts::new()?;
        let raw = Raw::to(&hosts)?;
        raw.put(&Raw::frame(PLAIN, b"hello")?)?;
        let request = hosts.asked()?;
        // The limits are not named: this side's hold.
        let passive = ConnectionLog::new()?;
        hosts.far.accept(&request, &passive)?;
        kunit_assert_eq!(passive.status(), Some(Ok((5, 9))));
        let reply = raw.read(mpa::START_LEN + 7)?;
        let start = reply.first_chunk().ok_or(EIO)?;
        let start = Start::decode(Kind::Reply, start).map_err(|_| EIO)?;
        let want = Start {
            kind: Kind::Reply,
            crc: true,
            private_data: 7,
            ..PLAIN
        };
        kunit_assert_eq!(start, want);
        assert!(reply[mpa::START_LEN..] == *b"welcome");
        drop(raw);
        assert!(wait_until(|| passive.closed.get() == 1));
        Ok(())
    }

    /// The module parameter `mpa_crc`, which is on again at the end.
    struct MpaCrc;

    impl MpaCrc {
        fn set(demanded: bool) -> Self {
            param::set_mpa_crc(demanded);
            Self
        }
    }

    impl Drop for MpaCrc {
        fn drop(&mut self) {
            param::set_mpa_crc(true);
        }
    }

    #[test]
    fn crcs_are_demanded_if_the_parameter_says_so() -> Result {
        for demanded in cases([false, true]) {
            let hosts = TwoHosts::new()?;
            let (listener, address) = raw_listener()?;
            let _set = MpaCrc::set(demanded);
            let raw = Raw::to(&hosts)?;
            raw.put(&Raw::frame(PLAIN, b"hello")?)?;
            let request = hosts.asked()?;
            let passive = ConnectionLog::new()?;
            hosts.far.accept(&request, &passive)?;
            let reply = raw.read(mpa::START_LEN)?;
            let start = reply.first_chunk().ok_or(EIO)?;
            let start = Start::decode(Kind::Reply, start).map_err(|_| EIO)?;
            kunit_assert_eq!(start.crc, demanded);

            let mut ask = hosts.ask(b"please")?;
            ask.remote = address;
            let active = ConnectionLog::new()?;
            hosts.near.submit(&active, ask)?;
            let raw = taken(&listener)?;
            let request = raw.read(mpa::START_LEN)?;
            let start = request.first_chunk().ok_or(EIO)?;
            let start = Start::decode(Kind::Request, start).map_err(|_| EIO)?;
            kunit_assert_eq!(start.crc, demanded);
            drop(raw);
            assert!(wait_until(|| active.replies.get() == 1));
        }
        Ok(())
    }

    #[test]
    fn private_data_has_its_limits() -> Result {
        let most = [7; 253];
        let hosts = TwoHosts::new()?;
        for len in cases([252, 253]) {
            let active = ConnectionLog::new()?;
            hosts.near.submit(&active, hosts.ask(&most[..len])?)?;
            if len > 252 {
                kunit_assert_eq!(active.status(), Some(Err(Status::Aborted)));
                break;
            }
            let request = hosts.asked()?;
            assert!(request.params.private_data[..] == most[..len]);
            let passive = ConnectionLog::new()?;
            let limits = ReadLimits {
                inbound: 1,
                outbound: 1,
            };
            let qp = &hosts.far.passive.qp;
            let accepted = request.accept(qp, limits, &most[..237], passive.clone());
            assert!(accepted.is_err());
            assert!(wait_until(|| active.replies.get() == 1));
            kunit_assert_eq!(active.status(), Some(Err(Status::Refused)));
        }
        Ok(())
    }

    #[test]
    fn both_families_connect_at_addresses_and_at_wildcards() -> Result {
        let lo = NetDev::loopback()?;
        let (lo6, any4) = (Ipv6Addr::LOCALHOST.into(), Ipv4Addr::UNSPECIFIED.into());
        let any6 = Ipv6Addr::UNSPECIFIED.into();
        let places = [
            (LO, false, LO),
            (any4, false, LO),
            (lo6, false, lo6),
            (any6, false, lo6),
            (any6, true, lo6),
            (any6, true, LO),
        ];
        // A kernel may have no IPv6.
        let has = |ip| ip == any4 || ip == LO || lo.owns_addr(lo6);
        for (listens, dual, to) in cases(places.into_iter().filter(|place| has(place.0))) {
            let habits = ListenerHabits {
                dual,
                ..ListenerHabits::default()
            };
            let hosts = TwoHosts::listening_at(listens, habits)?;
            let (active, passive) = (ConnectionLog::new()?, ConnectionLog::new()?);
            let mut ask = hosts.ask(b"please")?;
            ask.local = at(to, 0);
            ask.remote.set_ip(to);
            let remote = ask.remote;
            hosts.near.submit(&active, ask)?;
            let request = hosts.asked()?;
            kunit_assert_eq!(request.params.remote, remote);
            kunit_assert_eq!(request.params.local.ip(), to);
            hosts.far.accept(&request, &passive)?;
            assert!(wait_until(|| active.replies.get() == 1));
            kunit_assert_eq!(active.status(), Some(Ok((3, 5))));
        }
        Ok(())
    }

    #[test]
    fn an_ipv6_wildcard_that_is_not_dual_takes_no_ipv4() -> Result {
        let lo = NetDev::loopback()?;
        if !lo.owns_addr(Ipv6Addr::LOCALHOST.into()) {
            return Ok(());
        }
        let any = Ipv6Addr::UNSPECIFIED.into();
        let hosts = TwoHosts::listening_at(any, ListenerHabits::default())?;
        let raw = Raw::to(&hosts)?;
        kunit_assert_eq!(raw.0.state() == State::Open, false);
        Ok(())
    }

    #[test]
    fn what_a_listener_answers_decides_the_connect() -> Result {
        let accept = Start {
            kind: Kind::Reply,
            crc: true,
            revision: 2,
            enhanced: true,
            ..PLAIN
        };
        let plain = Start {
            kind: Kind::Reply,
            crc: true,
            ..PLAIN
        };
        let (rejected, markers, ndk, kind) = (true, true, true, Kind::Request);
        let (all, aborted) = (usize::MAX, Err(Status::Aborted));
        let answers = [
            (Start { rejected, ..accept }, all, Err(Status::Refused)),
            (Start { markers, ..accept }, all, aborted),
            (
                Start {
                    crc: false,
                    ..accept
                },
                all,
                aborted,
            ),
            // An ndk without a token, and a peer without limits.
            (Start { ndk, ..accept }, all, aborted),
            (plain, all, aborted),
            (Start { kind, ..accept }, all, aborted),
            // The stream ends, inside of the frame and before it.
            (accept, mpa::START_LEN + 3, aborted),
            (accept, 0, aborted),
            (accept, all, Ok((3, 4))),
        ];
        let hosts = TwoHosts::new()?;
        let (listener, address) = raw_listener()?;
        for (start, len, want) in cases(answers) {
            let active = ConnectionLog::new()?;
            let mut ask = hosts.ask(b"please")?;
            ask.remote = address;
            hosts.near.submit(&active, ask)?;
            let raw = taken(&listener)?;
            let request = raw.read(mpa::START_LEN + 10)?;
            assert!(request.ends_with(b"please"));
            let frame = Raw::frame(start, &[0, 4, 0, 8])?;
            raw.put(&frame[..len.min(frame.len())])?;
            if len < frame.len() {
                raw.0.end()?;
            }
            assert!(wait_until(|| active.replies.get() == 1));
            kunit_assert_eq!(active.status(), Some(want));
            if want.is_err() {
                assert!(wait_until(|| raw.0.state() != State::Open));
            }
        }
        Ok(())
    }

    #[test]
    fn a_listener_that_says_nothing_is_given_up_in_time() -> Result {
        let clock = StoppedClock::new();
        let hosts = TwoHosts::new()?;
        let (listener, address) = raw_listener()?;
        let active = ConnectionLog::new()?;
        let mut ask = hosts.ask(b"please")?;
        ask.remote = address;
        hosts.near.submit(&active, ask)?;
        let raw = taken(&listener)?;
        assert!(!raw.read(1)?.is_empty());
        clock.pass(NEVER_MS);
        assert!(wait_until(|| active.replies.get() == 1));
        kunit_assert_eq!(active.status(), Some(Err(Status::Timeout)));
        assert!(wait_until(|| raw.0.state() != State::Open));
        Ok(())
    }

    #[test]
    fn undecided_connections_are_bounded_and_the_next_waits() -> Result {
        let hosts = TwoHosts::new()?;
        hosts.carrier.set_most_undecided(2);
        let (first, second) = (Raw::to(&hosts)?, Raw::to(&hosts)?);
        assert!(wait_until(|| hosts.carrier.undecided() == 2));
        let third = Raw::to(&hosts)?;
        third.put(&Raw::frame(PLAIN, b"third")?)?;
        flush_work(hosts.far.active.device());
        kunit_assert_eq!(hosts.carrier.undecided(), 2);
        kunit_assert_eq!(hosts.listener_log.requests.get(), 0);
        drop(first);
        let request = hosts.asked()?;
        assert!(request.params.private_data[..] == *b"third");
        kunit_assert_eq!(hosts.carrier.undecided(), 2);
        drop(second);
        assert!(wait_until(|| hosts.carrier.undecided() == 1));
        Ok(())
    }

    #[test]
    fn a_connection_that_has_not_asked_goes_with_its_port() -> Result {
        let mut hosts = TwoHosts::new()?;
        let raw = Raw::to(&hosts)?;
        raw.put(b"MPA ID Req")?;
        assert!(wait_until(|| hosts.carrier.undecided() == 1));
        hosts.end_listening();
        assert!(raw.is_closed()?);
        // The port is free at once.
        hosts.listen()?;
        assert!(Raw::to(&hosts)?.0.state() == State::Open);
        Ok(())
    }

    #[test]
    fn a_port_that_another_socket_has_leaves_the_listener_to_this_host() -> Result {
        let taken = Socket::bound(Net::FIRST, &at(LO, 0), true)?;
        taken.listen(1)?;
        let (mut hosts, asked) = (TwoHosts::new()?, log::asked(Limit::Program));
        hosts.end_listening();
        hosts.at = taken.local()?;
        hosts.listen()?;
        assert!(log::asked(Limit::Program) > asked);
        let (active, ask) = (ConnectionLog::new()?, hosts.ask(b"please")?);
        hosts.far.submit(&active, ask)?;
        let rejected = hosts.asked()?.reject(&[]);
        assert!(rejected.is_ok());
        kunit_assert_eq!(active.status(), Some(Err(Status::Refused)));
        Ok(())
    }

    #[test]
    fn a_connection_without_memory_ends_or_comes_up() -> Result {
        if !needed() {
            return Ok(());
        }
        for step in cases([Step::Listen, Step::Dial, Step::Accept, Step::Later]) {
            let (mut n, mut missed) = (1, 0);
            // Of two work items at once one alone is counted.
            while n < 200 && missed < 3 {
                match step.lacks(n)? {
                    true => (n, missed) = (n + 1, 0),
                    false => missed += 1,
                }
            }
            kunit_note!("{:?}: {} allocations", step, n - 1);
            assert!(n > 5 && n < 200);
        }
        Ok(())
    }

    #[test]
    fn a_connection_stays_in_the_namespace_of_its_consumer() -> Result {
        let hosts = TwoHosts::new()?;
        let active = ConnectionLog::new()?;
        let mut ask = hosts.ask(b"please")?;
        ask.net = NET;
        hosts.near.submit(&active, ask)?;
        kunit_assert_eq!(active.status(), Some(Err(Status::Refused)));
        // Nor does a listener take any from another.
        let listener_log = ListenerLog::new(LO, false)?;
        let at = at(LO, free_port(LO)?);
        let asked = log::asked(Limit::Program);
        let listener = hosts.far.listen_in(NET, at, &listener_log)?;
        // There is no port to be had for it, and nothing to be said of that.
        kunit_assert_eq!(log::asked(Limit::Program), asked);
        kunit_assert_eq!(Raw::to_port(at.port())?.0.state() == State::Open, false);
        hosts.far.cm.unlisten(&listener);
        Ok(())
    }
}
