// SPDX-License-Identifier: GPL-2.0

//! [`ConnectionFixture`]: listeners, a side that connects and one that accepts, and logs of their
//! notifications.

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr, //
};

use kernel::{
    new_mutex,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLockIrq, //
    }, //
};

use super::{
    harness::{
        connect_pair,
        patient,
        End,
        EndAttr,
        EngineHost,
        RNR_MS, //
    },
    log::Tally, //
};
use crate::{
    engine::{
        cm::{
            AddressError,
            Carrier,
            ConnectError,
            ConnectParams,
            ConnectRequest,
            ConnectionEvents,
            ConnectionManager,
            Initiator,
            Listener,
            ListenerEvents,
            Timeouts, //
        },
        qp::QueuePair,
        transport::ReadLimits, //
    },
    iwarp::carrier::TcpCarrier,
    rdma::values::{
        qp::QpState,
        status::Status, //
    },
    sys::netdev::NetDev, //
};

/// The default network namespace of a test.
pub(crate) const NET: u64 = 1;

/// The default port of a listener.
pub(crate) const PORT: u16 = 4791;

/// An address of this host.
pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Another address.
pub(crate) const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

/// The IPv4 wildcard.
pub(crate) const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The IPv6 wildcard; a `dual` listener serves IPv4 there, too.
pub(crate) const ANY6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// The limits of a passive side that accepts.
pub(crate) const PASSIVE_LIMITS: ReadLimits = ReadLimits {
    inbound: 5,
    outbound: 9,
};

/// An address with its port.
pub(crate) const fn at(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip, port)
}

/// The answer to a connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The read limits, inbound and outbound, of a connection that is up.
    pub(crate) status: Result<(u32, u32), Status>,
    /// The first bytes of the private data that came along, and their full number.
    pub(crate) data: ([u8; 8], usize),
}

impl Answer {
    /// The answer with that status and private data.
    pub(crate) fn new(status: Result<ReadLimits, Status>, data: &[u8]) -> Self {
        let mut head = [0; 8];
        for (to, from) in head.iter_mut().zip(data) {
            *to = *from;
        }
        Self {
            status: status.map(|limits| (limits.inbound, limits.outbound)),
            data: (head, data.len()),
        }
    }
}

/// The behaviour of a side that is notified.
#[derive(Default)]
pub(crate) struct Habits {
    /// The number of calls of `closed` that fail before one succeeds.
    pub(crate) closed_failures: u32,
    /// The number of calls of `reply` that fail before one succeeds.
    pub(crate) reply_failures: u32,
    /// A queue pair that is ended while this side is notified that the connection is up.
    pub(crate) victim: Option<Arc<QueuePair>>,
    /// True if a passive side waits for the active side's confirmation.
    pub(crate) confirms: bool,
    /// A request that is abandoned while this side is asked if it waits.
    pub(crate) abandons: Option<Arc<ConnectRequest>>,
}

/// The notifications of one side.
#[pin_data]
pub(crate) struct ConnectionLog {
    pub(crate) replies: Tally,
    pub(crate) established: Tally,
    pub(crate) not_established: Tally,
    pub(crate) closed: Tally,
    /// Calls of `closed` that named the peer as the cause.
    pub(crate) closed_by_peer: Tally,
    habits: Habits,
    #[pin]
    answer: SpinLockIrq<Option<Answer>>,
}

impl ConnectionLog {
    /// A side without notifications. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Self::with(Habits::default())
    }

    /// A side whose end can be reported only after `attempts` failures.
    pub(crate) fn with_closed_failures(attempts: u32) -> Result<Arc<Self>> {
        Self::with(Habits {
            closed_failures: attempts,
            ..Habits::default()
        })
    }

    /// A side whose answer can be reported only after `attempts` failures.
    pub(crate) fn with_reply_failures(attempts: u32) -> Result<Arc<Self>> {
        Self::with(Habits {
            reply_failures: attempts,
            ..Habits::default()
        })
    }

    /// A side that ends `victim` while it is notified that it is connected.
    pub(crate) fn ending(victim: &Arc<QueuePair>) -> Result<Arc<Self>> {
        Self::with(Habits {
            victim: Some(victim.clone()),
            ..Habits::default()
        })
    }

    /// A side that waits for the confirmation if it is the passive one.
    pub(crate) fn patient() -> Result<Arc<Self>> {
        Self::with(Habits {
            confirms: true,
            ..Habits::default()
        })
    }

    /// A side with those habits. May sleep.
    pub(crate) fn with(habits: Habits) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                replies: Tally::new(),
                established: Tally::new(),
                not_established: Tally::new(),
                closed: Tally::new(),
                closed_by_peer: Tally::new(),
                habits,
                answer <- new_spinlock_irq!(None),
            }),
            GFP_KERNEL,
        )
    }

    fn note(&self, status: Result<ReadLimits, Status>, data: &[u8]) {
        *self.answer.lock() = Some(Answer::new(status, data));
        if let Some(victim) = &self.habits.victim {
            victim.fail();
        }
    }

    /// The last answer, or the last report whether the connection is up.
    pub(crate) fn answer(&self) -> Option<Answer> {
        *self.answer.lock()
    }

    /// The status of the last answer.
    pub(crate) fn status(&self) -> Option<Result<(u32, u32), Status>> {
        self.answer().map(|a| a.status)
    }
}

impl ConnectionEvents for ConnectionLog {
    fn reply(&self, answer: Result<ReadLimits, Status>, private_data: &[u8]) -> Result {
        let fails = self.replies.hit() < self.habits.reply_failures;
        self.note(answer, private_data);
        match fails {
            true => Err(ENOMEM),
            false => Ok(()),
        }
    }

    fn established(&self, limits: ReadLimits) {
        self.established.hit();
        self.note(Ok(limits), &[]);
    }

    fn not_established(&self, status: Status) {
        self.not_established.hit();
        self.note(Err(status), &[]);
    }

    fn waits_for_confirmation(&self) -> bool {
        if let Some(request) = &self.habits.abandons {
            request.abandon();
        }
        self.habits.confirms
    }

    fn closed(&self, by_peer: bool) -> Result {
        if by_peer {
            self.closed_by_peer.hit();
        }
        match self.closed.hit() < self.habits.closed_failures {
            true => Err(ENOMEM),
            false => Ok(()),
        }
    }
}

/// The behaviour of a listener.
#[derive(Default)]
pub(crate) struct ListenerHabits {
    /// Refuses all requests.
    pub(crate) refuses: bool,
    /// The number of requests that find no room, before any is taken.
    pub(crate) no_room_count: u32,
    /// Serves IPv4 at the IPv6 wildcard.
    pub(crate) dual: bool,
    /// Serves the address of its device alone.
    pub(crate) own_only: bool,
}

/// The requests to a listener. The last request is kept until a test takes it.
#[pin_data]
pub(crate) struct ListenerLog {
    pub(crate) requests: Tally,
    pub(crate) rejected: Tally,
    habits: ListenerHabits,
    /// The address of its device.
    pub(crate) addr: IpAddr,
    #[pin]
    request: SpinLockIrq<Option<Arc<ConnectRequest>>>,
}

/// The user of one listener.
pub(crate) struct ListenerLogEvents(pub(crate) Arc<ListenerLog>);

impl ListenerEvents for ListenerLogEvents {
    fn request(&self, request: Arc<ConnectRequest>) -> Result {
        if self.0.requests.hit() < self.0.habits.no_room_count {
            return Err(ENOMEM);
        }
        if self.0.habits.refuses {
            return Err(ECONNREFUSED);
        }
        let old = self.0.request.lock().replace(request);
        drop(old);
        Ok(())
    }

    fn device(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn netdev(&self) -> Option<NetDev> {
        NetDev::loopback().ok()
    }

    fn has_addr(&self, ip: IpAddr) -> bool {
        self.0.addr == ip
    }

    fn serves_others(&self) -> bool {
        !self.0.habits.own_only
    }

    fn is_dual(&self) -> bool {
        self.0.habits.dual
    }

    fn consumer(&self) -> Option<usize> {
        Some(self.device())
    }

    fn rejected(&self) {
        self.0.rejected.hit();
    }
}

impl ListenerLog {
    /// A listener of a device at `addr`, which may refuse all requests. May sleep.
    pub(crate) fn new(addr: IpAddr, refuses: bool) -> Result<Arc<Self>> {
        let habits = ListenerHabits {
            refuses,
            ..ListenerHabits::default()
        };
        Self::with(addr, habits)
    }

    /// A listener of a device at `addr`, with that habits. May sleep.
    pub(crate) fn with(addr: IpAddr, habits: ListenerHabits) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                requests: Tally::new(),
                rejected: Tally::new(),
                habits,
                addr,
                request <- new_spinlock_irq!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns true if a request is kept.
    pub(crate) fn has_request(&self) -> bool {
        self.request.lock().is_some()
    }

    /// Takes the last request.
    pub(crate) fn request(&self) -> Result<Arc<ConnectRequest>> {
        let request = self.request.lock().take();
        request.ok_or(ENOENT)
    }
}

/// A connection manager and two ends that are not connected.
pub(crate) struct ConnectionFixture {
    pub(crate) cm: Arc<ConnectionManager>,
    pub(crate) active: End,
    pub(crate) passive: End,
    listener_logs: Pin<KBox<Mutex<KVec<Arc<ListenerLog>>>>>,
    // Dropped last.
    _engine_host: EngineHost,
}

impl ConnectionFixture {
    /// A fixture without listeners. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Self::with(Timeouts::DEFAULT)
    }

    /// A fixture without listeners, with these timeouts of requests. May sleep.
    pub(crate) fn with(timeouts: Timeouts) -> Result<Self> {
        Self::over(None, timeouts)
    }

    /// A fixture without listeners, with a carrier to other hosts. May sleep.
    pub(crate) fn over(carrier: Option<Arc<dyn Carrier>>, timeouts: Timeouts) -> Result<Self> {
        Self::on(EngineHost::new(RNR_MS)?, carrier, timeouts)
    }

    /// A fixture without listeners, with a carrier that connects by TCP. May sleep.
    pub(crate) fn over_tcp(timeouts: Timeouts) -> Result<(Self, Arc<TcpCarrier>)> {
        let engine_host = EngineHost::new(RNR_MS)?;
        let carrier = TcpCarrier::new(&engine_host.device()?.host)?;
        let cm_fixture = Self::on(engine_host, Some(carrier.clone()), timeouts)?;
        Ok((cm_fixture, carrier))
    }

    fn on(
        engine_host: EngineHost,
        carrier: Option<Arc<dyn Carrier>>,
        timeouts: Timeouts,
    ) -> Result<Self> {
        let cm_fixture = Self {
            cm: ConnectionManager::new(connect_pair, carrier, patient(timeouts))?,
            active: engine_host.end(&EndAttr::PLAIN)?,
            passive: engine_host.end(&EndAttr::PLAIN)?,
            listener_logs: KBox::pin_init(new_mutex!(KVec::new()), GFP_KERNEL)?,
            _engine_host: engine_host,
        };
        cm_fixture.active.qp.modify(QpState::Init)?;
        cm_fixture.passive.qp.modify(QpState::Init)?;
        Ok(cm_fixture)
    }

    /// Makes a listener that reports to `listener_log`.
    pub(crate) fn listen(
        &self,
        at: SocketAddr,
        listener_log: &Arc<ListenerLog>,
    ) -> Result<Arc<Listener>> {
        self.listen_in(NET, at, listener_log)
    }

    /// The same in that network namespace.
    pub(crate) fn listen_in(
        &self,
        net: u64,
        at: SocketAddr,
        listener_log: &Arc<ListenerLog>,
    ) -> Result<Arc<Listener>> {
        self.listener_logs
            .lock()
            .push(listener_log.clone(), GFP_KERNEL)?;
        let events = KBox::new(ListenerLogEvents(listener_log.clone()), GFP_KERNEL)?;
        let listener = self.cm.listen(net, at, events);
        listener.map_err(|why| match why {
            AddressError::NoMemory => ENOMEM,
            AddressError::InUse | AddressError::Exists | AddressError::NoPort => EADDRINUSE,
        })
    }

    /// Makes a listener at `HERE`; returns its log.
    pub(crate) fn open(&self) -> Result<Arc<ListenerLog>> {
        let listener_log = ListenerLog::new(HERE, false)?;
        self.listen(at(HERE, PORT), &listener_log)?;
        Ok(listener_log)
    }

    /// The parameters of the active side's request.
    pub(crate) fn ask(&self) -> Result<ConnectParams> {
        let mut private_data = KVec::new();
        private_data.extend_from_slice(b"please", GFP_KERNEL)?;
        Ok(ConnectParams {
            net: NET,
            local: at(ELSEWHERE, 1234),
            remote: at(HERE, PORT),
            remote_is_here: true,
            limits: ReadLimits {
                inbound: 3,
                outbound: 7,
            },
            private_data,
            wants_confirmation: false,
            retries_when_full: false,
        })
    }

    /// Submits the request of the active side.
    pub(crate) fn connect(&self, log: &Arc<ConnectionLog>) -> Result<Arc<ConnectRequest>> {
        self.submit(log, self.ask()?)
    }

    /// Submits a request that the active side confirms, if the passive side waits for that.
    pub(crate) fn connect_in_two_steps(
        &self,
        log: &Arc<ConnectionLog>,
    ) -> Result<Arc<ConnectRequest>> {
        let mut ask = self.ask()?;
        ask.wants_confirmation = true;
        self.submit(log, ask)
    }

    /// Makes a request of `ask`, with the active side's queue pair, and takes it to the listener.
    pub(crate) fn submit(
        &self,
        log: &Arc<ConnectionLog>,
        ask: ConnectParams,
    ) -> Result<Arc<ConnectRequest>> {
        let initiator = Initiator::Local {
            qp: self.active.qp.clone(),
            events: log.clone(),
        };
        let request = self.cm.make_request(initiator, ask)?;
        self.cm.submit(&request);
        Ok(request)
    }

    /// Accepts a request on the passive side.
    pub(crate) fn accept(&self, request: &Arc<ConnectRequest>, log: &Arc<ConnectionLog>) -> Result {
        self.try_accept(request, log).map_err(|why| match why {
            ConnectError::Aborted | ConnectError::TimedOut => ECONNABORTED,
            ConnectError::NotReady => EINVAL,
            ConnectError::NoMemory => ENOMEM,
        })
    }

    /// As [`ConnectionFixture::accept`], with the engine's own error.
    pub(crate) fn try_accept(
        &self,
        request: &Arc<ConnectRequest>,
        log: &Arc<ConnectionLog>,
    ) -> Result<(), ConnectError> {
        let (qp, limits) = (&self.passive.qp, PASSIVE_LIMITS);
        request.accept(qp, limits, b"welcome", log.clone())
    }
}

impl Drop for ConnectionFixture {
    fn drop(&mut self) {
        // A request holds its listener, and the listener its log.
        for listener_log in self.listener_logs.lock().iter() {
            drop(listener_log.request());
        }
    }
}

/// Two sides over a connection that is up.
pub(crate) fn connected(
    active: &Arc<ConnectionLog>,
    passive: &Arc<ConnectionLog>,
) -> Result<ConnectionFixture> {
    let cm_fixture = ConnectionFixture::new()?;
    let listener_log = cm_fixture.open()?;
    cm_fixture.connect(active)?;
    cm_fixture.accept(&listener_log.request()?, passive)?;
    Ok(cm_fixture)
}
