// SPDX-License-Identifier: GPL-2.0

//! [`Outbound`]: the bytes that a connection sends, one FPDU after the other.
//!
//! A message is cut into FPDUs that are each put whole into the [`Buffer`]: header, payload under the
//! guards of the engine, padding and CRC. No guard is held while TCP takes the bytes.
//!
//! Context: process, in the work item of the connection.
//!
//! Tests: `direct/tests/message.rs`.

mod begin;
mod end;

use kernel::sync::atomic::ordering::{
    Acquire,
    Relaxed, //
};

use self::begin::own;
use super::{
    ledger::Gone,
    named::{
        refusal,
        WORD, //
    },
    Begins,
    Terms,
    Wire,
    WireEvents, //
};
use crate::{
    engine::{
        memory::{
            transfer::{
                self,
                Part, //
            },
            Denied, //
        },
        prelude::*,
        qp::QueuePair,
        wq::SendWqe, //
    },
    iwarp::{
        ddp,
        mpa,
        rdmap::{
            self,
            AtomicRequest,
            ReadRequest, //
        },
        send::{
            Message,
            Segments,
            Sender,
            LEAST_ULPDU, //
        }, //
    },
    rdma::values::{
        token::Token,
        work::{
            RemoteAddr,
            SendFlag,
            SendOp, //
        }, //
    },
    sys::{
        ring::Ring,
        tcp::{
            Buffer,
            Owned, //
        }, //
    },
};

/// Bytes that are put before TCP gets them.
const ENOUGH: usize = 32 << 10;

/// Rounds of one run, each of about [`ENOUGH`] bytes.
const ROUNDS: u32 = 16;

/// The longest payload of a message of RDMAP itself.
const MOST_OWN: usize = AtomicRequest::LEN;

/// The reason for which [`Outbound::transmit`] has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Nothing is there to send.
    Idle,
    /// TCP has no room.
    Full,
    /// There is more to do.
    Yield,
    NoMemory,
    /// TCP takes no more.
    Lost,
}

/// The payload of the message under way.
#[derive(Clone, Copy)]
enum Content {
    /// Bytes of the request in `wqe`.
    Request,
    /// The payload of a read request, an atomic request or immediate data, for the request in `wqe`.
    RequestOwn([u8; MOST_OWN]),
    /// Memory that the peer reads.
    Read {
        request: ReadRequest,
        number: u32,
    },
    /// An answer that is no memory.
    Answer([u8; MOST_OWN]),
    /// The number of messages that were carried out; no payload.
    Report,
    Terminate([u8; MOST_OWN]),
}

/// A message on its way.
struct Sending {
    segments: Segments,
    len: u32,
    /// Bytes of payload that were put.
    put: u32,
    content: Content,
}

impl Sending {
    /// Returns true for a message that may go out between the FPDUs of another.
    const fn is_aside(&self) -> bool {
        matches!(self.content, Content::Report)
    }

    const fn is_request(&self) -> bool {
        matches!(self.content, Content::Request | Content::RequestOwn(_))
    }
}

/// The sending side of a connection.
pub(super) struct Outbound {
    buffer: Buffer,
    sender: Sender,
    terms: Terms,
    sending: Option<Sending>,
    /// A message of one FPDU that goes out between those of `sending`.
    aside: Option<Sending>,
    /// The request under way, if it has elements, and room for the next.
    wqe: KBox<SendWqe>,
    /// `wqe` has a request that was started and not ended.
    has_request: bool,
    /// A request on the memory table alone waits for the last access to this token.
    drains: Option<Token>,
    /// Names the next request that is asked.
    next_number: u32,
    /// Bytes that were put since the start-up, and bytes that TCP has taken.
    put: u64,
    taken: u64,
    /// The byte after the last one of a request.
    requests_end: u64,
    /// Requests that end when TCP has taken their bytes, with the last byte of each.
    leaving: Ring<(u64, Gone)>,
    /// The last message was an answer: then a request has its turn.
    answered: bool,
    stage: Stage,
    /// The first FPDU is an acknowledgement of nothing, and has not begun.
    begins: bool,
}

/// The FPDUs that may be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    All,
    /// The queue pair is disconnected.
    None,
    /// All requests have ended: the last report and a Terminate go out.
    Last,
}

impl Outbound {
    /// Nothing was sent. May sleep. `ENOMEM` when there is no memory.
    pub(super) fn new(qp: &QueuePair, terms: Terms) -> Result<Self> {
        Ok(Self {
            buffer: Buffer::new(),
            sender: Sender::new(terms.extended),
            terms,
            sending: None,
            aside: None,
            wqe: KBox::new(SendWqe::new(&qp.caps)?, GFP_KERNEL)?,
            has_request: false,
            drains: None,
            next_number: 1,
            put: 0,
            taken: 0,
            requests_end: 0,
            leaving: Ring::new(qp.caps.send_wr, (0, Gone::BLANK), GFP_KERNEL)?,
            answered: false,
            stage: Stage::All,
            begins: terms.begins == Begins::Here,
        })
    }

    /// Sends as much as TCP takes now, within a bound.
    pub(super) fn transmit(&mut self, wire: &Arc<Wire>, socket: &Owned<WireEvents>) -> Pause {
        for _ in 0..ROUNDS {
            let mut no_memory = false;
            while self.buffer.len() < ENOUGH {
                match self.compose(wire, socket.segment()) {
                    Composed::More | Composed::Message => {}
                    Composed::Nothing | Composed::NoRoom => break,
                    Composed::NoMemory => {
                        no_memory = true;
                        break;
                    }
                }
            }
            if self.buffer.len() == 0 {
                return if no_memory {
                    Pause::NoMemory
                } else {
                    Pause::Idle
                };
            }
            let sent = self.send_all(wire, socket);
            self.end_taken(wire);
            if let Err(pause) = sent {
                return pause;
            }
        }
        Pause::Yield
    }

    /// Gives TCP the bytes of the buffer.
    fn send_all(&mut self, wire: &Wire, socket: &Owned<WireEvents>) -> Result<(), Pause> {
        let mut had_room = false;
        while self.buffer.len() > 0 {
            wire.room.begin();
            let sent = socket.send(&mut self.buffer, false);
            let has_room = wire.room.end();
            match sent {
                Ok(sent) => {
                    // CAST: widening.
                    self.taken += sent as u64;
                    had_room = false;
                }
                // It came during the call. For want of memory it comes each time.
                Err(e) if e == EAGAIN && has_room && !had_room => had_room = true,
                Err(e) if e == EAGAIN && has_room => return Err(Pause::NoMemory),
                Err(e) if e == EAGAIN => return Err(Pause::Full),
                Err(_) => return Err(Pause::Lost),
            }
        }
        Ok(())
    }

    /// Ends the requests whose bytes TCP has.
    fn end_taken(&mut self, wire: &Wire) {
        while let Some((at, gone)) = self.leaving.front().copied() {
            if at > self.taken {
                break;
            }
            self.leaving.leave();
            gone.complete(&wire.qp, Status::Success);
        }
    }

    /// Puts the next FPDU.
    fn compose(&mut self, wire: &Arc<Wire>, emss: usize) -> Composed {
        if wire.is_stopped.load(Relaxed) && self.stage == Stage::All {
            // The message under way goes no further; its request ends with the others.
            self.stage = Stage::None;
        }
        if self.stage == Stage::None || !wire.may_send.load(Acquire) {
            return Composed::Nothing;
        }
        if self.aside.is_none() {
            self.begin_report(wire);
        }
        if self.aside.is_none() && self.sending.is_none() && !self.next(wire) {
            return Composed::Nothing;
        }
        let Some(mut sending) = self.aside.take().or_else(|| self.sending.take()) else {
            return Composed::Nothing;
        };
        let is_aside = sending.is_aside();
        let composed = self.put_fpdu(wire, emss, &mut sending);
        if matches!(
            composed,
            Composed::More | Composed::NoRoom | Composed::NoMemory
        ) {
            match is_aside {
                true => self.aside = Some(sending),
                false => self.sending = Some(sending),
            }
        }
        composed
    }

    /// Puts the next FPDU of a message.
    fn put_fpdu(&mut self, wire: &Arc<Wire>, emss: usize, sending: &mut Sending) -> Composed {
        let most = mpa::max_ulpdu(emss);
        // CAST: a header is a few bytes.
        let left = (sending.len - sending.put).saturating_add(ddp::UNTAGGED_LEN as u32);
        let ulpdu = u16::try_from(left).unwrap_or(most).min(most);
        let Ok(room) = self.buffer.room(mpa::fpdu_len(ulpdu.max(LEAST_ULPDU))) else {
            return Composed::NoMemory;
        };
        if room < mpa::fpdu_len(LEAST_ULPDU) {
            return Composed::NoRoom;
        }
        let Some(head) = sending.segments.next(mpa::max_ulpdu(emss.min(room))) else {
            self.end_message(wire, sending.content);
            return Composed::Message;
        };
        let before = self.buffer.len();
        self.buffer.put(head.as_bytes());
        let until = head.offset + head.payload;
        if let Err(denied) = self.put_payload(wire, sending, (head.offset, until)) {
            self.buffer.take_back(self.buffer.len() - before);
            self.refuse(wire, denied, sending.content);
            return Composed::Message;
        }
        self.put_trailer(head.ulpdu, before);
        // CAST: widening.
        self.put += (self.buffer.len() - before) as u64;
        sending.put = until;
        if sending.is_request() {
            self.requests_end = self.put;
        }
        if until < sending.len {
            return Composed::More;
        }
        self.end_message(wire, sending.content);
        Composed::Message
    }

    fn put_trailer(&mut self, ulpdu: u16, before: usize) {
        let pad = mpa::padding(ulpdu);
        self.buffer.put(&[0; 3][..pad]);
        let crc = match self.terms.crc {
            true => self.buffer.crc32c(0, self.buffer.len() - before),
            false => 0,
        };
        self.buffer
            .put(&mpa::Trailer::new(ulpdu, crc).as_bytes()[pad..]);
    }

    /// Puts bytes `from` to `until` of the message's payload, for which there is room.
    fn put_payload(
        &mut self,
        wire: &Wire,
        sending: &Sending,
        (from, until): (u32, u32),
    ) -> Result<(), Denied> {
        if from == until {
            return Ok(());
        }
        let qp = &wire.qp;
        let buffer = &mut self.buffer;
        let put = |part: Part<'_>| match part {
            Part::Memory(run) => buffer.put_run(run),
            Part::Inline(bytes) => Ok(buffer.put(bytes)),
        };
        let (at, end) = (u64::from(from), u64::from(until));
        let done = match &sending.content {
            Content::Request => transfer::gather(&self.wqe.payload(qp), at, end, put)?,
            Content::Read { request, .. } => {
                let at_memory = RemoteAddr {
                    addr: request.source_offset,
                    token: Token::from_raw(request.source_stag),
                };
                let wanted = AccessFlag::RemoteRead;
                wire.with_named(wanted, at_memory, request.size, |named| {
                    transfer::gather(named, at, end, put)
                })?
            }
            Content::RequestOwn(bytes) | Content::Answer(bytes) | Content::Terminate(bytes) => {
                // CAST: a few bytes.
                let bytes = bytes.get(from as usize..until as usize);
                // CAST: widening.
                at + buffer.put(bytes.unwrap_or_default()) as u64
            }
            Content::Report => at,
        };
        match done == end {
            true => Ok(()),
            false => Err(Denied::Bounds),
        }
    }

    /// Ends a message whose memory may not be used.
    fn refuse(&mut self, wire: &Arc<Wire>, denied: Denied, content: Content) {
        let Content::Read { request, number } = content else {
            return self.complete(wire, Status::LocalAccess);
        };
        // The answers before it have gone out. Nothing else does before the Terminate.
        self.stage = Stage::None;
        if wire.count_refused() {
            wire.end_by(refusal(denied, &request, number), false);
        }
    }

    fn complete(&mut self, wire: &Wire, status: Status) {
        self.has_request = false;
        wire.qp.complete(&mut self.wqe, status);
    }

    /// Goes on after the last FPDU of a message.
    fn end_message(&mut self, wire: &Arc<Wire>, content: Content) {
        match content {
            Content::Report | Content::Terminate(_) => {}
            Content::Answer(_) | Content::Read { .. } => {
                let bytes = match content {
                    Content::Read { request, .. } => request.size,
                    _ => WORD,
                };
                wire.qp.device().count(Counter::BytesOut, bytes.into());
                wire.ledger.lock().answer_was_sent();
                self.answered = true;
            }
            Content::Request | Content::RequestOwn(_) => self.end_request(wire, content),
        }
    }

    fn end_request(&mut self, wire: &Arc<Wire>, content: Content) {
        if let (Content::Request, Some(data)) = (content, immediate_of_write(&self.wqe)) {
            // The peer acknowledges two messages, and the request ends with the second.
            wire.ledger.lock().put_sent(None);
            let bytes = own(&rdmap::encode_immediate(data.to_be()));
            let solicited = self.wqe.flags.contains(SendFlag::Solicited);
            let message = Message::Immediate { solicited };
            self.begin(wire, message, Content::RequestOwn(bytes));
            return;
        }
        self.answered = false;
        // A request that is asked is in the ledger already.
        if !self.has_request {
            return;
        }
        self.has_request = false;
        let gone = Gone::new(&wire.qp, &mut self.wqe);
        match self.terms.extended {
            true => wire.ledger.lock().put_sent(Some(gone)),
            false => {
                // There is room for all of a send queue.
                let _ = self.leaving.push((self.put, gone));
            }
        }
    }
}

/// The result of one step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Composed {
    /// An FPDU, and not the last of its message.
    More,
    /// The end of a message.
    Message,
    Nothing,
    /// The pages are full.
    NoRoom,
    NoMemory,
}

/// The immediate data of a Write, if it has any.
fn immediate_of_write(wqe: &SendWqe) -> Option<u32> {
    match wqe.work {
        SendOp::Write { imm, .. } => imm,
        _ => None,
    }
}
