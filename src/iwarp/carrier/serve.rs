// SPDX-License-Identifier: GPL-2.0

//! [`Serving`]: a connection of another host, from its first byte to the answer.
//!
//! ```text
//! Asks --whole frame--> Waits --accept--> Over: the transport has the socket
//!   |                     \----refuse--> Over: the refusal is with TCP
//!   \---a fault, the peer's end, too late--> Over
//! ```
//!
//! Context: process, but for what says any.
//!
//! Tests: `iwarp/carrier/tests.rs`.

use core::net::{
    IpAddr,
    SocketAddr, //
};

use kernel::{
    impl_has_work,
    new_work,
    sync::atomic::{
        ordering::{
            Acquire,
            Release, //
        },
        AtomicFlag, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    exchange::{
        Exchange,
        Fault, //
    },
    port::Port,
    settled, //
};
use crate::{
    engine::{
        cm::{
            ConnectError,
            ConnectParams,
            ConnectRequest,
            Initiator,
            RemoteInitiator,
            TransportEnd, //
        },
        host::{
            Host,
            Side, //
        },
        prelude::*,
        qp::QueuePair,
        transport::ReadLimits, //
    },
    iwarp::{
        mpa::Kind,
        opening::{
            First,
            Offer,
            Reads,
            Request,
            Written,
            MAX_REPLY_DATA, //
        },
        wire::{
            Begins,
            Terms,
            Wire, //
        }, //
    },
    sys::{
        random,
        tcp::{
            Events,
            Socket,
            State,
            Stream, //
        },
        timer::{
            Expires,
            Timer, //
        }, //
    },
};

/// The time for the request of a peer, in milliseconds, from the TCP connection on.
const ASK_MS: u32 = 10_000;

/// The private data of a refusal, as far as a frame has room.
struct Words {
    bytes: [u8; MAX_REPLY_DATA],
    len: usize,
}

impl Words {
    /// These bytes, or none if they are too many.
    fn new(data: &[u8]) -> Self {
        let mut words = Self {
            bytes: [0; MAX_REPLY_DATA],
            len: 0,
        };
        if let Some(place) = words.bytes.get_mut(..data.len()) {
            place.copy_from_slice(data);
            words.len = data.len();
        }
        words
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The stage of a connection that is set up.
enum Stage {
    /// The request has not come as a whole.
    Asks(Exchange<ServeEvents>),
    /// The consumer decides.
    Waits(Exchange<ServeEvents>, Request),
    Over,
}

/// A connection of another host.
#[pin_data]
pub(super) struct Serving {
    port: Arc<Port>,
    /// Names the connection at its port.
    number: u64,
    offer: Offer,
    /// The peer was too slow, or nothing is served at the port any more.
    is_late: AtomicFlag,
    #[pin]
    stage: Mutex<Stage>,
    /// The request from its submission to the decision.
    #[pin]
    request: SpinLockIrq<Option<Arc<ConnectRequest>>>,
    /// The refusal that the work item has to send.
    #[pin]
    words: SpinLockIrq<Option<Words>>,
    /// The transport of the queue pair that accepts, until the reply.
    #[pin]
    wire: SpinLockIrq<Option<Arc<Wire>>>,
    /// Until the end.
    #[pin]
    side: SpinLockIrq<Option<Side>>,
    #[pin]
    timer: Timer<Self>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Serving { self.work }
}

/// The connection, as its socket knows it.
pub(super) struct ServeEvents(Arc<Serving>);

impl Events for ServeEvents {
    fn readable(&self, _stream: &mut Stream<'_>) {
        self.0.kick();
    }

    fn arrived(&self) {}

    fn writable(&self) {}

    fn changed(&self) {
        self.0.kick();
    }
}

impl Serving {
    /// A connection that has just come to the port, which knows it by that number. After an error it
    /// is closed.
    pub(super) fn new(
        port: &Arc<Port>,
        number: u64,
        offer: Offer,
        socket: Socket,
    ) -> Result<Arc<Self>> {
        let side = port.host().add_side();
        let serving = Arc::pin_init(
            pin_init!(Self {
                port: port.clone(),
                number,
                offer,
                is_late: AtomicFlag::new(false),
                stage <- new_mutex!(Stage::Over),
                request <- new_spinlock_irq!(None),
                words <- new_spinlock_irq!(None),
                wire <- new_spinlock_irq!(None),
                side <- new_spinlock_irq!(Some(side)),
                timer <- Timer::new(),
                work <- new_work!("ndk_serve"),
            }),
            GFP_KERNEL,
        )?;
        let events = Arc::new(ServeEvents(serving.clone()), GFP_KERNEL)?;
        // Held: an event may have the work item run, which ends all of this, the timer, too.
        let mut stage = serving.stage.lock();
        let exchange = Exchange::new(socket, events, Kind::Request)?;
        serving.timer.arm(&serving, ASK_MS);
        *stage = Stage::Asks(exchange);
        drop(stage);
        Ok(serving)
    }

    /// Begins to read. Bytes and changes that came before have caused no event.
    pub(super) fn begin(self: &Arc<Self>) {
        self.kick();
    }

    /// Returns true if the connection is decided, or was too slow. Process context.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Over)
    }

    /// Ends the connection, if its request has not come as a whole. Any context.
    pub(super) fn cancel(self: &Arc<Self>) {
        self.is_late.store(true, Release);
        self.kick();
    }

    /// Has the work item go on. Any context.
    fn kick(self: &Arc<Self>) {
        // An item that is queued already has yet to run.
        let _ = self.port.host().threads.enqueue(self.clone());
    }

    /// Reads the request. Returns the new stage, and the request to submit.
    fn read(
        self: &Arc<Self>,
        mut exchange: Exchange<ServeEvents>,
    ) -> (Stage, Option<Arc<ConnectRequest>>) {
        match exchange.receive() {
            Ok(true) => {}
            Ok(false) if self.is_late.load(Acquire) => return (Stage::Over, None),
            Ok(false) => return (Stage::Asks(exchange), None),
            Err(Fault::Frame(_) | Fault::Lost(_)) => return (Stage::Over, None),
        }
        self.timer.cancel();
        let Some((asked, judged)) = Request::read(exchange.frame(), &self.offer) else {
            return (Stage::Over, None);
        };
        let Ok(data) = judged else {
            self.reject(&mut exchange, &asked, &[]);
            return (Stage::Over, None);
        };
        match self.request_of(&exchange, &asked, data) {
            Ok(request) => (Stage::Waits(exchange, asked), Some(request)),
            Err(_) => (Stage::Over, None),
        }
    }

    /// The request for the connection manager.
    fn request_of(
        self: &Arc<Self>,
        exchange: &Exchange<ServeEvents>,
        asked: &Request,
        data: &[u8],
    ) -> Result<Arc<ConnectRequest>> {
        let socket = exchange.socket();
        let mut private_data = KVec::new();
        private_data.extend_from_slice(data, GFP_KERNEL)?;
        let terms = asked.terms(&self.offer);
        let params = ConnectParams {
            net: self.port.net(),
            local: canonical(socket.peer()?),
            remote: canonical(socket.local()?),
            remote_is_here: true,
            limits: settled(terms.reads, &self.offer),
            private_data,
            wants_confirmation: false,
            retries_when_full: true,
        };
        let handle: Arc<dyn RemoteInitiator> = Arc::new(ServeHandle(self.clone()), GFP_KERNEL)?;
        let request = self
            .port
            .cm()
            .make_request(Initiator::Remote(handle), params)?;
        *self.request.lock() = Some(request.clone());
        Ok(request)
    }

    /// Sends a refusal. A connection that cannot have it ends without.
    fn reject(&self, exchange: &mut Exchange<ServeEvents>, asked: &Request, data: &[u8]) {
        if let Some(written) = asked.reject(&self.offer, data) {
            let _ = Self::reply(exchange, &written);
        }
    }

    /// Gives a reply to TCP, which has room for it: nothing was sent before.
    fn reply(exchange: &mut Exchange<ServeEvents>, written: &Written) -> Result {
        exchange.put(written)?;
        exchange.send().map_err(|_| EPIPE)
    }

    /// Accepts. Returns the socket for the transport, behind the reply.
    fn accepted(&self, own: ReadLimits, data: &[u8]) -> Result<Socket> {
        let mut stage = self.stage.lock();
        let Stage::Waits(mut exchange, asked) = core::mem::replace(&mut *stage, Stage::Over) else {
            return Err(ENOTCONN);
        };
        drop(stage);
        let offer = Offer {
            reads: Reads {
                inbound: own.inbound,
                outbound: own.outbound,
            },
            ..self.offer
        };
        let written = asked.accept(&offer, &random::bytes(), data);
        Self::reply(&mut exchange, &written.ok_or(EMSGSIZE)?)?;
        Ok(exchange.into_parts().0)
    }

    /// Takes the request: no decision is due any more.
    fn decided(&self) -> Option<Arc<ConnectRequest>> {
        self.request.lock().take()
    }

    /// Ends this object. Process context.
    fn finish(&self) {
        self.timer.cancel();
        self.port.remove(self.number);
        let (side, request) = (self.side.lock().take(), self.decided());
        drop((side, request));
    }

    /// Looks at a connection whose consumer decides. Returns the new stage, and true if the peer has
    /// given up.
    fn look(&self, mut exchange: Exchange<ServeEvents>, asked: Request) -> (Stage, bool) {
        let words = self.words.lock().take();
        if let Some(words) = words {
            self.reject(&mut exchange, &asked, words.as_bytes());
            return (Stage::Over, false);
        }
        let is_gone = matches!(exchange.socket().state(), State::Ended | State::Closed(_));
        (Stage::Waits(exchange, asked), is_gone)
    }
}

/// An address of IPv4 that a socket of IPv6 has in its own form, as itself.
fn canonical(addr: SocketAddr) -> SocketAddr {
    match addr.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, addr.port()),
        IpAddr::V6(_) => addr,
    }
}

impl WorkItem for Serving {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        #[cfg(ndk_kunit)]
        let _fault = crate::sys::fault::begin_planned();
        let mut place = this.stage.lock();
        let (stage, request, is_gone) = match core::mem::replace(&mut *place, Stage::Over) {
            Stage::Asks(exchange) => {
                let (stage, request) = this.read(exchange);
                (stage, request, false)
            }
            Stage::Waits(exchange, asked) => {
                let (stage, is_gone) = this.look(exchange, asked);
                (stage, None, is_gone)
            }
            Stage::Over => return,
        };
        let is_over = matches!(stage, Stage::Over);
        *place = stage;
        drop(place);
        if is_over {
            return this.finish();
        }
        if let Some(request) = request {
            this.port.cm().submit(&request);
            // The peer may have gone before.
            this.kick();
        }
        if is_gone {
            let request = this.request.lock().clone();
            if let Some(request) = request {
                request.abandon();
            }
        }
    }
}

impl Expires for Serving {
    fn expired(this: Arc<Self>) {
        this.cancel();
    }
}

/// An initiator of another host, as its request knows it.
struct ServeHandle(Arc<Serving>);

impl RemoteInitiator for ServeHandle {
    fn host(&self) -> &Arc<Host> {
        self.0.port.host()
    }

    fn carry(
        &self,
        qp: &Arc<QueuePair>,
        limits: ReadLimits,
        private_data: &[u8],
    ) -> Result<TransportEnd, ConnectError> {
        let serving = &self.0;
        if private_data.len() > MAX_REPLY_DATA {
            return Err(ConnectError::NotReady);
        }
        let terms = match &*serving.stage.lock() {
            Stage::Waits(_, asked) => asked.terms(&serving.offer),
            _ => return Err(ConnectError::Aborted),
        };
        let terms = Terms {
            crc: terms.crc,
            extended: terms.extended,
            limits,
            begins: match terms.first {
                First::Request => Begins::Perhaps,
                First::Acknowledge | First::Write | First::Read => Begins::There,
            },
        };
        let id = serving.port.host().next_connection();
        let wire = Wire::new(qp, id, terms).map_err(|_| ConnectError::NoMemory)?;
        let transport = wire.link().map_err(|_| ConnectError::NoMemory)?;
        let old = serving.wire.lock().replace(wire);
        drop(old);
        Ok(TransportEnd { transport, end: 0 })
    }

    fn accept(&self, _limits: ReadLimits, private_data: &[u8]) {
        let serving = &self.0;
        let wire = serving.wire.lock().take();
        if let Some(wire) = wire {
            match serving.accepted(wire.limits(), private_data) {
                // After an error the connection ends.
                Ok(socket) => drop(wire.begin(socket)),
                Err(_) => wire.lost(),
            }
        }
        serving.finish();
    }

    fn refuse(&self, _status: Status, private_data: &[u8]) {
        let serving = &self.0;
        let request = serving.decided();
        drop(request);
        let wire = serving.wire.lock().take();
        drop(wire);
        *serving.words.lock() = Some(Words::new(private_data));
        serving.kick();
    }
}
