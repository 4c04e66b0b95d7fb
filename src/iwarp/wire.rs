// SPDX-License-Identifier: GPL-2.0

//! [`Wire`]: the transport of one connection over TCP, at one of its ends.
//!
//! ```text
//! posted request --work item--> Outbound --FPDUs--> socket    (thread; never waits)
//! socket --event--> Inbound --engine guards--> memory         (softirq, or the work item)
//!                      \--answers, acknowledgements--> Ledger --> Outbound
//! ```
//!
//! - Bytes go from the socket straight to the memory of a consumer, under the guards of the engine,
//!   which are held for one packet at most.
//! - Bytes to send are copied to pages of the connection, under the same guards, and from there no
//!   guard is needed: an invalidation waits for no network.
//! - Between two ndk a Send or a Write completes when the peer has carried it out, and says so
//!   ([`Message::Acknowledge`](super::send::Message)). With another peer it completes when TCP has
//!   its bytes (RFC 5040, 1.2).
//! - Where there is no receive, or an invalidation waits for the last access, no byte is read: TCP
//!   slows the peer down. The wait for a receive is bounded, except at a shared queue.
//!
//! At the end the requests and the receive that are under way end. Then the peer learns what was
//! carried out, and gets a Terminate if this side found a fault. The socket stays for a short time, so
//! that the peer gets the last bytes.
//!
//! Lock order: `socket`, `outbound` (the work item has both, and the start the first), the lock of the
//! TCP socket, its callback lock, then the locks of the engine. `ledger`, `inbound` and `side` are
//! leaves.
//!
//! Tests: `iwarp/wire/tests.rs`, and the suites of `direct/tests` over TCP.

mod ending;
mod hearing;
mod inbound;
mod ledger;
mod named;
mod outbound;
mod reading;
#[cfg(ndk_kunit)]
mod tests;

use kernel::{
    impl_has_work,
    new_work,
    sync::atomic::{
        ordering::{
            Acquire,
            Full,
            Relaxed,
            Release, //
        },
        Atomic,
        AtomicFlag, //
    },
    workqueue::{
        Work as WorkStruct,
        WorkItem, //
    }, //
};

pub(crate) use self::hearing::Begins;

use self::{
    inbound::Inbound,
    ledger::Ledger,
    outbound::{
        Outbound,
        Pause, //
    },
    reading::Slot, //
};
use crate::{
    engine::{
        host::Side,
        memory::slot::DrainWaiter,
        prelude::*,
        qp::QueuePair,
        transport::{
            ConnectionId,
            ReadLimits,
            Transport, //
        }, //
    },
    rdma::values::token::Token,
    sys::{
        tcp::{
            Events,
            Owned,
            Socket,
            Stream, //
        },
        time,
        timer::{
            Expires,
            Timer, //
        }, //
    }, //
};

/// The time for which a socket stays when the connection is over, in milliseconds.
const LINGER_MS: u32 = 2_000;

/// The time after which a peer that answers nothing has gone, about, in milliseconds.
const WATCH_MS: u32 = 30_000;

/// The time after which a send that found no memory is tried again, in milliseconds.
const RETRY_MS: u32 = 10;

/// The terms of a connection, which the start-up has settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// FPDUs carry CRCs.
    pub(crate) crc: bool,
    /// The peer is ndk.
    pub(crate) extended: bool,
    pub(crate) limits: ReadLimits,
    pub(crate) begins: Begins,
}

/// The stage of a connection. Changed under `socket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The socket is not the connection's yet.
    New,
    Open,
    /// All has ended. The socket stays for a short time.
    Lingering,
    Over,
}

/// The transport of one connection, at one end.
#[pin_data]
pub(crate) struct Wire {
    id: ConnectionId,
    qp: Arc<QueuePair>,
    terms: Terms,
    /// The queue pair is disconnected.
    is_stopped: AtomicFlag,
    /// This side may send.
    may_send: AtomicFlag,
    /// A graceful close has begun.
    is_closing: AtomicFlag,
    /// The end of this half of the wait for the first FPDU, in milliseconds of monotonic time; a second
    /// half follows if `hears_again`.
    hear_until: Atomic<u64>,
    hears_again: AtomicFlag,
    /// Bytes of answers that came to requests of this side.
    placed: Atomic<u64>,
    /// The end of the lingering, in milliseconds of monotonic time.
    linger_until: Atomic<u64>,
    /// The time since which a message has waited for a receive, in milliseconds of monotonic time; 0
    /// if none waits.
    waits_since: Atomic<u64>,
    room: Room,
    /// Bytes may have come that no event has reported: the work item reads.
    may_read: AtomicFlag,
    stage: Atomic<u32>,
    #[pin]
    ledger: SpinLockIrq<Ledger>,
    #[pin]
    inbound: SpinLockIrq<Slot>,
    #[pin]
    outbound: Mutex<Outbound>,
    #[pin]
    socket: Mutex<Option<Owned<WireEvents>>>,
    /// Present until the socket is gone.
    #[pin]
    side: SpinLockIrq<Option<Side>>,
    #[pin]
    work: WorkStruct<Self>,
    /// The end of the wait for a receive.
    #[pin]
    rnr: Timer<Self>,
    /// Another look at memory that is in use, and the end of the lingering.
    #[pin]
    look: Timer<Self>,
    /// Another try of a send that found no memory.
    #[pin]
    retry: Timer<Self>,
    /// The end of the wait for the first FPDU.
    #[pin]
    hear: Timer<Self>,
    /// The end of the wait for the requests of a queue pair that is being closed.
    #[pin]
    close: Timer<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Wire { self.work }
}

impl Wire {
    /// The transport of the connection, for a link of its queue pair.
    pub(crate) fn link(self: &Arc<Self>) -> Result<Arc<dyn Transport>> {
        Ok(Arc::new(WireLink(self.clone()), GFP_KERNEL)?)
    }

    /// The transport for that queue pair, without a socket. May sleep.
    pub(crate) fn new(qp: &Arc<QueuePair>, id: ConnectionId, terms: Terms) -> Result<Arc<Self>> {
        let ledger = Ledger::new(&qp.caps, terms.limits)?;
        let inbound = KBox::new(Inbound::new(qp, terms)?, GFP_KERNEL)?;
        let outbound = Outbound::new(qp, terms)?;
        Arc::pin_init(
            pin_init!(Self {
                id,
                qp: qp.clone(),
                terms,
                is_stopped: AtomicFlag::new(false),
                may_send: AtomicFlag::new(!terms.begins.waits()),
                is_closing: AtomicFlag::new(false),
                hear_until: Atomic::new(u64::MAX),
                hears_again: AtomicFlag::new(true),
                placed: Atomic::new(0),
                linger_until: Atomic::new(0),
                waits_since: Atomic::new(0),
                room: Room::new(),
                may_read: AtomicFlag::new(false),
                stage: Atomic::new(Stage::New as u32),
                ledger <- new_spinlock_irq!(ledger),
                inbound <- new_spinlock_irq!(Slot::Here(inbound)),
                outbound <- new_mutex!(outbound),
                socket <- new_mutex!(None),
                side <- new_spinlock_irq!(None),
                work <- new_work!("ndk_wire"),
                rnr <- Timer::new(),
                look <- Timer::new(),
                retry <- Timer::new(),
                hear <- Timer::new(),
                close <- Timer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The read limits of this side.
    pub(crate) fn limits(&self) -> ReadLimits {
        self.terms.limits
    }

    /// Ends a connection that gets no socket. The queue pair is attached, or was. Any context.
    pub(crate) fn lost(&self) {
        self.qp.peer_gone(self.id);
    }

    /// Returns true if the queue pair is attached, or was and has lost the connection. Any context.
    #[cfg(ndk_kunit)]
    pub(crate) fn may_begin(&self) -> bool {
        self.is_stopped.load(Acquire) || self.qp.is_connected_by(self.id)
    }

    /// Gives the connection its socket, over which the start-up has gone. The queue pair is attached,
    /// and may have lost the connection since. Process context.
    ///
    /// After an error the connection ends, and the socket is closed.
    pub(crate) fn begin(self: &Arc<Self>, socket: Socket) -> Result {
        let mut place = self.socket.lock();
        let begun = self.own(&mut place, socket);
        drop(place);
        match begun {
            // Bytes and changes before this caused no event.
            Ok(()) => self.read_soon(),
            Err(_) => self.qp.peer_gone(self.id),
        }
        begun
    }

    fn own(self: &Arc<Self>, place: &mut Option<Owned<WireEvents>>, socket: Socket) -> Result {
        if self.stage() != Stage::New as u32 {
            return Err(ECONNABORTED);
        }
        let events = Arc::new(WireEvents(self.clone()), GFP_KERNEL)?;
        socket.watch(WATCH_MS);
        *place = Some(Owned::new(socket, events)?);
        *self.side.lock() = Some(self.qp.device().host.add_side());
        self.set_stage(Stage::Open);
        self.begin_hearing();
        Ok(())
    }

    /// Has the work item start requests. Any context.
    pub(crate) fn doorbell(self: &Arc<Self>) {
        self.kick();
    }

    /// Has the work item look for the receive that a message waits for. Any context.
    pub(crate) fn receive_posted(self: &Arc<Self>) {
        self.read_soon();
    }

    /// The time since which a message of the peer has waited for a receive, in milliseconds of
    /// monotonic time. Any context.
    #[cfg(ndk_kunit)]
    pub(crate) fn waits_since_ms(&self) -> Option<u64> {
        match self.waits_since.load(Relaxed) {
            0 => None,
            since => Some(since),
        }
    }

    /// Has the work item bound the wait for requests, as the queue pair is being closed. Any context.
    pub(crate) fn closing(self: &Arc<Self>) {
        self.is_closing.store(true, Release);
        self.kick();
    }

    /// Ends the connection, which its queue pair has lost. Any context.
    pub(crate) fn stop(self: &Arc<Self>) {
        self.is_stopped.store(true, Release);
        self.kick();
    }

    fn stage(&self) -> u32 {
        self.stage.load(Relaxed)
    }

    fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u32, Relaxed);
    }

    /// Has the work item go on. Any context.
    fn kick(self: &Arc<Self>) {
        // An item that is queued already has yet to run.
        let _ = self.qp.device().host.threads.enqueue(self.clone());
    }

    /// Has the work item read. Any context.
    fn read_soon(self: &Arc<Self>) {
        self.may_read.store(true, Relaxed);
        self.kick();
    }

    /// Sends what is there to send. Returns true if nothing is left, or can be sent any more.
    fn write(self: &Arc<Self>, socket: &Owned<WireEvents>) -> bool {
        let pause = self.outbound.lock().transmit(self, socket);
        match pause {
            Pause::Idle => return true,
            Pause::Full => {}
            Pause::Yield => self.kick(),
            Pause::NoMemory => self.retry.arm(self, RETRY_MS),
            Pause::Lost => {
                self.qp.peer_gone(self.id);
                return true;
            }
        }
        false
    }

    /// Has the work item look again when no access uses the memory that `token` named, or soon. Any
    /// context.
    fn look_when_drained(self: &Arc<Self>, token: Token) {
        let regions = &self.qp.device().regions;
        if !regions.when_drained(token, self.clone()) {
            self.look.arm(self, 1);
        }
    }
}

/// Room in TCP that comes during a send: the sender tries again, and no event has the work item do so.
struct Room(Atomic<u32>);

impl Room {
    const IDLE: u32 = 0;
    const SENDS: u32 = 1;
    const CAME: u32 = 2;

    const fn new() -> Self {
        Self(Atomic::new(Self::IDLE))
    }

    /// A send begins; one at a time.
    fn begin(&self) {
        self.0.store(Self::SENDS, Release);
    }

    /// The send has returned. Returns true if room came since.
    fn end(&self) -> bool {
        self.0.xchg(Self::IDLE, Full) == Self::CAME
    }

    /// Room has come. Returns true if a sender learns of it.
    fn came(&self) -> bool {
        match self.0.cmpxchg(Self::SENDS, Self::CAME, Full) {
            Ok(_) => true,
            Err(now) => now == Self::CAME,
        }
    }
}

/// The connection, as its queue pair knows it.
struct WireLink(Arc<Wire>);

impl Transport for WireLink {
    fn id(&self) -> ConnectionId {
        self.0.id
    }

    fn doorbell(&self, _end: usize) {
        self.0.doorbell();
    }

    fn receive_posted(&self, _end: usize) {
        self.0.receive_posted();
    }

    fn closing(&self, _end: usize) {
        self.0.closing();
    }

    fn stop(&self, _end: usize) {
        self.0.stop();
    }
}

impl Drop for WireLink {
    /// Ends a connection that was never attached.
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The connection, as its socket knows it.
struct WireEvents(Arc<Wire>);

impl Events for WireEvents {
    fn readable(&self, stream: &mut Stream<'_>) {
        self.0.readable(stream);
    }

    fn arrived(&self) {}

    fn writable(&self) {
        if !self.0.room.came() {
            self.0.kick();
        }
    }

    fn changed(&self) {
        self.0.read_soon();
    }
}

impl WorkItem for Wire {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.qp.device().count(Counter::Passes, 1);
        let mut place = this.socket.lock();
        if this.stage() < Stage::Lingering as u32 {
            if let Some(socket) = &*place {
                if !this.is_stopped.load(Acquire) {
                    this.read_again(socket);
                    this.bound_hearing(socket);
                }
                this.write(socket);
                if !this.is_stopped.load(Acquire) {
                    this.bound_close();
                }
            }
            if !this.is_stopped.load(Acquire) || !this.end_all() {
                return;
            }
            let until = time::now_ms().saturating_add(LINGER_MS.into());
            this.linger_until.store(until, Relaxed);
            this.set_stage(Stage::Lingering);
        }
        let is_over = place.as_ref().is_none_or(|socket| this.linger(socket));
        if is_over && this.stage() != Stage::Over as u32 {
            this.end_socket(&mut place);
        }
    }
}

impl Expires for Wire {
    fn expired(this: Arc<Self>) {
        this.read_soon();
    }
}

impl DrainWaiter for Wire {
    fn drained(self: Arc<Self>) {
        self.read_soon();
    }
}
