// SPDX-License-Identifier: GPL-2.0

//! [`Dialing`]: a connect to another host, from the TCP connection to the reply.
//!
//! The work item does all; events of the socket, and the cancel, only have it run.
//!
//! Context: process, but for what says any.
//!
//! Tests: `iwarp/carrier/tests.rs`.

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
    settled, //
};
use crate::{
    engine::{
        cm::{
            negotiate,
            ConnectRequest,
            Dial,
            RemoteAnswer,
            TransportEnd, //
        },
        host::Side,
        prelude::*,
        qp::QueuePair, //
    },
    iwarp::{
        mpa::Kind,
        opening::{
            self,
            Offer,
            Reply, //
        },
        wire::{
            Begins,
            Terms,
            Wire, //
        }, //
    },
    sys::tcp::{
        Events,
        Socket,
        State,
        Stream, //
    },
};

/// A connect under way.
#[pin_data]
pub(super) struct Dialing {
    qp: Arc<QueuePair>,
    offer: Offer,
    is_cancelled: AtomicFlag,
    /// The request until it is answered or cancelled.
    #[pin]
    request: SpinLockIrq<Option<Arc<ConnectRequest>>>,
    /// Present until the end. Of the work item alone.
    #[pin]
    exchange: Mutex<Option<Exchange<DialEvents>>>,
    #[pin]
    side: SpinLockIrq<Option<Side>>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Dialing { self.work }
}

/// The state of a connect, as its socket knows it.
pub(super) struct DialEvents(Arc<Dialing>);

impl Events for DialEvents {
    fn readable(&self, _stream: &mut Stream<'_>) {
        self.0.kick();
    }

    fn arrived(&self) {}

    fn writable(&self) {
        self.0.kick();
    }

    fn changed(&self) {
        self.0.kick();
    }
}

impl Dialing {
    /// Begins to connect over a socket that is bound.
    ///
    /// # Errors
    ///
    /// The status for the request, which gets no other answer then.
    pub(super) fn begin(
        qp: &Arc<QueuePair>,
        request: &Arc<ConnectRequest>,
        offer: Offer,
        socket: Socket,
    ) -> Result<Arc<Self>, Status> {
        let written = opening::request(&offer, &request.params.private_data);
        let written = written.ok_or(Status::Aborted)?;
        let connected = socket.connect(&request.params.remote);
        connected.map_err(|e| status_of(Some(e)))?;
        let dialing = Self::new(qp, request, offer).map_err(|_| Status::Aborted)?;
        let events = Arc::new(DialEvents(dialing.clone()), GFP_KERNEL);
        let events = events.map_err(|_| Status::Aborted)?;
        let mut place = dialing.exchange.lock();
        let exchange = Exchange::new(socket, events, Kind::Reply);
        let exchange = place.insert(exchange.map_err(|_| Status::Aborted)?);
        if exchange.put(&written).is_err() {
            *place = None;
            return Err(Status::Aborted);
        }
        drop(place);
        // Changes before the socket had its owner caused no event.
        dialing.kick();
        Ok(dialing)
    }

    fn new(qp: &Arc<QueuePair>, request: &Arc<ConnectRequest>, offer: Offer) -> Result<Arc<Self>> {
        let side = qp.device().host.add_side();
        let (qp, request) = (qp.clone(), request.clone());
        Arc::pin_init(
            pin_init!(Self {
                qp,
                offer,
                is_cancelled: AtomicFlag::new(false),
                request <- new_spinlock_irq!(Some(request)),
                exchange <- new_mutex!(None),
                side <- new_spinlock_irq!(Some(side)),
                work <- new_work!("ndk_dial"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has the work item go on. Any context.
    fn kick(self: &Arc<Self>) {
        // An item that is queued already has yet to run.
        let _ = self.qp.device().host.threads.enqueue(self.clone());
    }

    /// Goes on as far as possible. Returns true if the reply is there.
    fn go_on(exchange: &mut Exchange<DialEvents>) -> Result<bool, Fault> {
        if exchange.socket().state() == State::Opening {
            return Ok(false);
        }
        exchange.send()?;
        exchange.receive()
    }

    /// Connects the queue pair, or refuses the request, as the reply says.
    fn answer(
        &self,
        exchange: Exchange<DialEvents>,
        request: &ConnectRequest,
    ) -> Result<(), Status> {
        let (socket, frame) = exchange.into_parts();
        let reply = Reply::read(&frame, &self.offer).map_err(|_| Status::Aborted)?;
        let (terms, private_data) = match reply {
            Reply::Accepted {
                terms,
                private_data,
                ..
            } => (terms, private_data),
            Reply::Rejected { private_data } => {
                let _ = request.refused(Status::Refused, private_data);
                return Ok(());
            }
        };
        let (own, passive) = (request.params.limits, settled(terms.reads, &self.offer));
        let wire_terms = Terms {
            crc: terms.crc,
            extended: terms.extended,
            limits: negotiate(own, passive),
            begins: match terms.extended {
                true => Begins::Here,
                false => Begins::Any,
            },
        };
        let id = self.qp.device().host.next_connection();
        let wire = Wire::new(&self.qp, id, wire_terms).map_err(|_| Status::Aborted)?;
        let transport = wire.link().map_err(|_| Status::Aborted)?;
        let answered = request.answered(RemoteAnswer {
            transport: TransportEnd { transport, end: 0 },
            limits: passive,
            private_data,
        });
        if answered.is_ok() {
            // After an error the connection ends.
            let _ = wire.begin(socket);
        }
        Ok(())
    }

    /// Ends the connect, and refuses the request if there is a status.
    fn end(&self, status: Option<Status>) {
        let (request, side) = (self.request.lock().take(), self.side.lock().take());
        if let (Some(request), Some(status)) = (request, status) {
            let _ = request.refused(status, &[]);
        }
        drop(side);
    }
}

/// A connect under way, as its request knows it.
pub(super) struct DialHandle(pub(super) Arc<Dialing>);

impl Dial for DialHandle {
    fn cancel(&self) {
        self.0.is_cancelled.store(true, Release);
        self.0.kick();
    }
}

impl WorkItem for Dialing {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        #[cfg(ndk_kunit)]
        let _fault = crate::sys::fault::begin_planned();
        let mut place = this.exchange.lock();
        let Some(exchange) = &mut *place else {
            return;
        };
        let went = match this.is_cancelled.load(Acquire) {
            true => Ok(true),
            false => Self::go_on(exchange),
        };
        if went == Ok(false) {
            return;
        }
        let exchange = place.take();
        drop(place);
        let request = this.request.lock().clone();
        let status = match (went, exchange, request) {
            (Err(Fault::Frame(_)), _, _) => Some(Status::Aborted),
            (Err(Fault::Lost(e)), _, _) => Some(status_of(e)),
            (Ok(_), Some(exchange), Some(request)) if !this.is_cancelled.load(Acquire) => {
                this.answer(exchange, &request).err()
            }
            // Nothing is to be answered.
            (Ok(_), _, _) => None,
        };
        this.end(status);
    }
}

/// The status of a connect that TCP could not make.
pub(super) fn status_of(e: Option<Error>) -> Status {
    match e {
        Some(e) if e == ECONNREFUSED => Status::Refused,
        Some(e) if e == ETIMEDOUT => Status::Timeout,
        Some(e) if e == ENETUNREACH || e == EHOSTUNREACH => Status::Unreachable,
        _ => Status::Aborted,
    }
}
