// SPDX-License-Identifier: GPL-2.0

//! [`Inbound`]: the bytes that a connection receives, and what they do.
//!
//! Context: softirq, or process context in the work item of the connection: one at a time, by the
//! slot of the receiving side.
//!
//! Tests: `direct/tests/message.rs`.

mod deliver;
mod receive;

use core::marker::PhantomData;

use kernel::sync::atomic::ordering::{
    Acquire,
    Relaxed, //
};

use self::deliver::{
    acknowledged,
    terminated, //
};
use super::{
    ledger::Asked,
    named::tagged,
    Terms,
    Wire, //
};
use crate::{
    engine::{
        memory::transfer::{
            self,
            Payload, //
        },
        prelude::*,
        qp::QueuePair,
        wq::RecvWqe, //
    },
    iwarp::{
        ahead::{
            Ahead,
            Seen, //
        },
        receive::{
            Bytes,
            Message,
            Progress,
            Receiver,
            Sink,
            Stopped, //
        },
        terminate::Cause,
        validate::{
            Place,
            Segment, //
        }, //
    },
    rdma::values::{
        token::Token,
        work::{
            RemoteAddr,
            SendOp, //
        }, //
    },
    sys::{
        span::Run,
        tcp::{
            crc32c,
            Packet, //
        }, //
    }, //
};

/// The bytes of a packet, for a [`Receiver`]; `None` where only a step that waits is tried again.
pub(super) struct PacketBytes<'a, 'b>(Option<&'a mut Packet<'b>>);

impl Bytes for PacketBytes<'_, '_> {
    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |packet| packet.len())
    }

    fn take(&mut self, to: &mut [u8]) {
        if let Some(packet) = &mut self.0 {
            packet.take(to);
        }
    }

    fn crc(&self, crc: u32, len: usize) -> u32 {
        self.0
            .as_ref()
            .map_or(crc, |packet| packet.crc32c(crc, len))
    }
}

/// The reason for which bytes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Nothing,
    Receive,
    /// The last access to what is being invalidated.
    Drain,
}

/// The state of what is being received, beside that of the [`Receiver`].
struct Delivery {
    receive: RecvWqe,
    /// The receive is taken and not finished.
    holds_receive: bool,
    /// The end of the wait for a receive, in milliseconds of monotonic time.
    deadline: Option<u64>,
    /// The place of the segment under way, and the bytes of it that are there.
    place: Option<Place>,
    at: u32,
    len: u32,
    /// The request whose response comes, and the bytes of that.
    asked: Option<Asked>,
    asked_at: u32,
    /// An invalidation that a message has begun, and that waits for the last access.
    drains: Option<Token>,
    /// Bytes of the Write under way, and of the last one, for the completion of its immediate data.
    writing: u32,
    written: u32,
    waits: Wait,
    /// The fault just found is one of a read or atomic request.
    is_about_ask: bool,
    /// This side has ended the connection: a fault just found is none.
    is_gone: bool,
}

/// The receiving side of a connection.
pub(super) struct Inbound {
    receiver: Receiver,
    delivery: Delivery,
    /// The look behind the message that waits.
    ahead: Option<Ahead>,
}

impl Inbound {
    /// Nothing has come. May sleep. `ENOMEM` when there is no memory.
    pub(super) fn new(qp: &QueuePair, terms: Terms) -> Result<Self> {
        Ok(Self {
            receiver: Receiver::new(terms.crc, terms.extended),
            ahead: None,
            delivery: Delivery {
                receive: RecvWqe::new(qp.caps.recv_sge)?,
                holds_receive: false,
                deadline: None,
                place: None,
                at: 0,
                len: 0,
                asked: None,
                asked_at: 0,
                drains: None,
                writing: 0,
                written: 0,
                waits: Wait::Nothing,
                is_about_ask: false,
                is_gone: false,
            },
        })
    }

    /// Returns true if bytes have to wait.
    pub(super) fn waits(&self) -> bool {
        self.delivery.waits != Wait::Nothing
    }

    /// Returns true if bytes have to wait for the end of an access to memory.
    pub(super) fn waits_for_memory(&self) -> bool {
        self.delivery.waits == Wait::Drain
    }

    /// Tries a step again that waits.
    pub(super) fn go_on(&mut self, wire: &Arc<Wire>) {
        if self.waits() {
            self.receive(wire, None);
        }
    }

    /// Takes bytes of a packet, as many as can be used now.
    pub(super) fn take(&mut self, wire: &Arc<Wire>, packet: &mut Packet<'_>) {
        self.receive(wire, Some(packet));
    }

    /// Looks for messages that are of use before their turn, behind the one that waits: at `most`
    /// FPDUs, then the work item goes on. Returns true if it has to.
    pub(super) fn look_ahead(
        &mut self,
        wire: &Arc<Wire>,
        most: u32,
        mut peek: impl FnMut(usize, &mut [u8]) -> usize,
    ) -> bool {
        let (waits, mut budget) = (self.waits(), most);
        let Some(ahead) = self.ahead.as_mut().filter(|_| waits) else {
            return false;
        };
        let crc = wire.terms.crc.then_some(|bytes: &[u8]| crc32c(0, bytes));
        while let Some(seen) = ahead.next(&mut peek, crc, &mut budget) {
            match seen {
                // A count that cannot be is found in its turn.
                Seen::Acknowledge(count) => drop(acknowledged(wire, count)),
                Seen::Terminate(received) => terminated(wire, &received),
            }
        }
        if budget == 0 {
            wire.read_soon();
        }
        budget == 0
    }

    fn receive(&mut self, wire: &Arc<Wire>, packet: Option<&mut Packet<'_>>) {
        self.delivery.waits = Wait::Nothing;
        let mut sink = Delivering {
            wire,
            delivery: &mut self.delivery,
            _bytes: PhantomData,
        };
        let mut bytes = PacketBytes(packet);
        let there = bytes.len();
        // A fault may itself end the connection.
        let was_stopped = wire.is_stopped.load(Acquire);
        match self.receiver.receive(&mut bytes, &mut sink) {
            // A step that waits has said for what.
            Ok(Stopped::Empty | Stopped::Waits) => {}
            Ok(Stopped::Over) => {
                if let Some(packet) = &mut bytes.0 {
                    packet.skip();
                }
            }
            // The connection has ended for another reason.
            Err(_) if self.delivery.is_gone || was_stopped => {}
            Err(terminate) => {
                // Found in the header, and no less an access that is refused.
                if terminate.is_of(Cause::TaggedWrap) {
                    wire.count_refused();
                }
                wire.end_by(terminate, self.delivery.is_about_ask);
            }
        }
        let taken = there - bytes.len();
        self.ahead = self.ahead.take().and_then(|ahead| ahead.after(taken));
        if let Some(rest) = self.receiver.rest().filter(|_| self.waits()) {
            self.ahead.get_or_insert(Ahead::new(rest));
        }
    }

    /// Ends what is under way. Returns false if an invalidation waits for the last access.
    ///
    /// A message whose invalidation has begun is carried out to its end: the token names nothing any
    /// more.
    pub(super) fn end(&mut self, wire: &Arc<Wire>) -> bool {
        if self.delivery.drains.is_some() {
            self.go_on(wire);
        }
        self.delivery.end(wire)
    }
}

/// The place of the bytes, during one call.
struct Delivering<'w, 'a, 'b> {
    wire: &'w Arc<Wire>,
    delivery: &'w mut Delivery,
    _bytes: PhantomData<PacketBytes<'a, 'b>>,
}

impl<'a, 'b> Sink for Delivering<'_, 'a, 'b> {
    type Bytes = PacketBytes<'a, 'b>;

    fn begin(&mut self, segment: &Segment) -> Result<Progress, Cause> {
        self.wire.heard();
        self.delivery.begin(self.wire, segment)
    }

    fn place(&mut self, bytes: &mut Self::Bytes, len: usize) -> Result<(), Cause> {
        match &mut bytes.0 {
            Some(packet) => self.delivery.place(self.wire, packet, len),
            None => Err(Cause::DdpCatastrophic),
        }
    }

    fn deliver(&mut self, message: &Message) -> Result<Progress, Cause> {
        self.wire.heard();
        self.delivery.deliver(self.wire, message)
    }
}

impl Delivery {
    fn begin(&mut self, wire: &Arc<Wire>, segment: &Segment) -> Result<Progress, Cause> {
        match segment.place {
            Place::Write { stag, offset } => self.begin_write(wire, segment, stag, offset)?,
            Place::ReadResponse { stag, offset } => {
                self.begin_response(wire, segment, stag, offset)?
            }
            Place::Send { offset, .. } => {
                if !self.take_receive(wire)? {
                    return Ok(Progress::Wait);
                }
                self.check_length(wire, u64::from(offset) + u64::from(segment.len))?;
            }
        }
        self.place = Some(segment.place);
        self.at = 0;
        self.len = segment.len;
        Ok(Progress::Done)
    }

    fn begin_write(
        &mut self,
        wire: &Wire,
        segment: &Segment,
        stag: u32,
        offset: u64,
    ) -> Result<(), Cause> {
        self.writing = self.writing.saturating_add(segment.len);
        if segment.len == 0 {
            return Ok(());
        }
        let at = remote(stag, offset);
        let checked = wire.check_named(AccessFlag::RemoteWrite, at, segment.len);
        checked.map_err(|denied| self.refuse(wire, tagged(denied)))
    }

    fn begin_response(
        &mut self,
        wire: &Wire,
        segment: &Segment,
        stag: u32,
        offset: u64,
    ) -> Result<(), Cause> {
        self.expect_response(wire);
        let asked = self.asked.as_ref().ok_or(Cause::TaggedInvalidStag)?;
        let is_read = matches!(asked.wqe.work, SendOp::Read { .. });
        // A response of no bytes names no memory.
        if !is_read || (segment.len > 0 && stag != asked.number) {
            return Err(Cause::TaggedInvalidStag);
        }
        let end = u64::from(self.asked_at) + u64::from(segment.len);
        let length = u64::from(asked.wqe.length);
        let follows = segment.len == 0 || offset == u64::from(self.asked_at);
        if !follows || end > length || (segment.last && end != length) {
            return Err(Cause::TaggedBounds);
        }
        Ok(())
    }

    /// Moves the next `len` bytes of the segment to their place.
    fn place(&mut self, wire: &Wire, packet: &mut Packet<'_>, len: usize) -> Result<(), Cause> {
        let Some(place) = self.place else {
            return Err(Cause::DdpCatastrophic);
        };
        // CAST: no more than a segment has.
        let len = len as u32;
        let (from, until) = (u64::from(self.at), u64::from(self.at + len));
        let mut left = len as usize;
        let mut put = |run: Run<'_>| {
            let taken = packet.take_run(run.part(0, left))?;
            left -= taken;
            Ok(taken)
        };
        let moved = match place {
            Place::Write { stag, offset } => {
                let at = remote(stag, offset);
                wire.with_named(AccessFlag::RemoteWrite, at, self.len, |payload| {
                    transfer::scatter(payload, from, until, put)
                })
                .map_err(|denied| self.refuse(wire, tagged(denied)))?
            }
            Place::Send { offset, .. } => {
                let sink = Payload::List(wire.sink(), &self.receive.sges);
                let offset = u64::from(offset);
                let end = transfer::scatter(&sink, offset + from, offset + until, &mut put);
                end.map_or(0, |end| end - offset)
            }
            Place::ReadResponse { .. } => {
                let asked = self.asked.as_ref().ok_or(Cause::TaggedInvalidStag)?;
                let sink = Payload::List(wire.sink(), &asked.wqe.sges);
                let offset = u64::from(self.asked_at);
                let end = transfer::scatter(&sink, offset + from, offset + until, &mut put);
                end.map_or(0, |end| end - offset)
            }
        };
        if moved != until || packet.is_lost() {
            return Err(self.fail_local(wire, place));
        }
        self.at += len;
        self.end_segment(wire);
        Ok(())
    }

    /// Ends the receive or the read whose memory cannot be used.
    fn fail_local(&mut self, wire: &Wire, place: Place) -> Cause {
        match place {
            Place::Send { .. } => {
                self.fail_receive(wire, Status::LocalAccess);
                Cause::LocalCatastrophic
            }
            Place::ReadResponse { .. } => {
                self.end_asked(wire, Some(Status::LocalAccess));
                Cause::StreamCatastrophic
            }
            Place::Write { .. } => Cause::TaggedBounds,
        }
    }

    /// Counts an access of the peer that is refused.
    fn refuse(&mut self, wire: &Wire, cause: Cause) -> Cause {
        self.is_gone = !wire.count_refused();
        cause
    }

    fn end_segment(&mut self, wire: &Wire) {
        if self.at == self.len {
            if let Some(Place::ReadResponse { .. }) = self.place {
                self.asked_at += self.len;
                let placed = wire.placed.load(Relaxed);
                // One context at a time places.
                wire.placed.store(placed + u64::from(self.len), Relaxed);
            }
        }
    }

    /// Takes the request whose response comes next, if there is one.
    fn expect_response(&mut self, wire: &Wire) {
        if self.asked.is_none() {
            self.asked = wire.ledger.lock().take_asked();
            self.asked_at = 0;
        }
    }

    fn end_asked(&mut self, wire: &Wire, status: Option<Status>) {
        if let Some(mut asked) = self.asked.take() {
            wire.end_asked(&mut asked, status);
            wire.ledger.lock().put_free(asked.wqe);
        }
    }

    fn end(&mut self, wire: &Arc<Wire>) -> bool {
        if !self.is_drained(wire) {
            return false;
        }
        if self.holds_receive {
            self.fail_receive(wire, Status::Flushed);
        }
        self.end_asked(wire, None);
        true
    }
}

/// The memory that a Write names.
fn remote(stag: u32, offset: u64) -> RemoteAddr {
    RemoteAddr {
        addr: offset,
        token: Token::from_raw(stag),
    }
}
