// SPDX-License-Identifier: GPL-2.0
// host-test

//! The receiving side of a connection: the bytes of the stream become segments and messages.
//!
//! [`Receiver`] keeps its place between any two bytes. It holds one header and one short payload,
//! and no memory of a consumer: payloads go straight from the stream to the [`Sink`]. It imports
//! `core` and the codecs alone, allocates nothing, and trusts nothing that the peer sends.
//!
//! A payload is placed, and its header judged, before the CRC behind it is known to match: RFC 5044
//! asks for the CRC first, for which a whole FPDU would have to be kept. siw does as this. A message
//! is delivered after the CRC. So a fault of the network can change memory that the peer may write
//! to, and no other, and the connection ends in any case.

use super::{
    ddp::{
        self,
        BadHeader,
        Header, //
    },
    mpa,
    rdmap::{
        self,
        AtomicRequest,
        AtomicResponse,
        Opcode,
        ReadRequest,
        Send, //
    },
    terminate::{
        self,
        Cause,
        Terminate, //
    },
    validate::{
        Place,
        Segment,
        Validator,
        Verdict,
        MAX_COLLECTED, //
    },
};

/// Bytes of the stream that have come, in order.
pub(crate) trait Bytes {
    /// Bytes that are left.
    fn len(&self) -> usize;

    /// Moves the first bytes to `to`, and fills it. There are as many.
    fn take(&mut self, to: &mut [u8]);

    /// CRC32C over the first `len` bytes, as a continuation of `crc`, which is 0 at first; moves
    /// nothing. That of `123456789` is 0xe306_9283.
    fn crc(&self, crc: u32, len: usize) -> u32;
}

/// The queues and the memory behind a [`Receiver`].
///
/// An error ends the connection by the Terminate of that cause.
pub(crate) trait Sink {
    /// The form in which bytes come.
    type Bytes: Bytes;

    /// A segment begins. The sink checks that the whole payload may go to its place, or asks to
    /// wait, as a Send may for its receive: then it is asked again.
    fn begin(&mut self, segment: &Segment) -> Result<Progress, Cause>;

    /// Moves the next `len` bytes of that segment's payload to their place.
    fn place(&mut self, bytes: &mut Self::Bytes, len: usize) -> Result<(), Cause>;

    /// A message is whole, and its CRC matches; that of a Terminate longer than any is not looked at.
    /// The sink may ask to wait: then the message is delivered again.
    fn deliver(&mut self, message: &Message) -> Result<Progress, Cause>;
}

/// The answer of a [`Sink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The next step may follow.
    Done,
    /// The same step is to be repeated later.
    Wait,
}

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Write,
    ReadResponse,
    /// A Send of `len` bytes. `word` is the token or the immediate data that comes with it.
    Send {
        send: Send,
        word: u32,
        len: u32,
    },
    Immediate {
        data: u32,
        solicited: bool,
    },
    /// A read to answer, with the number that a Terminate about it names. A read of no bytes names
    /// no memory.
    ReadRequest {
        request: ReadRequest,
        number: u32,
    },
    /// An atomic operation to carry out.
    AtomicRequest {
        request: AtomicRequest,
        number: u32,
    },
    AtomicResponse(AtomicResponse),
    /// The number of requests that the peer has carried out since the start-up, without those that
    /// have a response.
    Acknowledge {
        count: u32,
    },
    /// The peer ends the connection, and sends no more.
    Terminate(terminate::Received),
}

/// The reason for which [`Receiver::receive`] has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// All bytes are used.
    Empty,
    /// The sink waits. Bytes may be left.
    Waits,
    /// The peer has sent a Terminate, or this side has found a fault before. Bytes are left alone.
    Over,
}

/// Room for the length field, the longest header, and the longest payload that is collected.
const HEAD_LEN: usize = mpa::LENGTH_LEN + ddp::UNTAGGED_LEN + MAX_COLLECTED;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Collects length field and header of DDP.
    Header,
    /// The sink is asked for the place of a payload.
    Begin(Segment),
    /// A payload goes to its place; so many bytes are left.
    Payload {
        segment: Segment,
        left: usize,
    },
    /// Collects so many bytes of a payload that is not placed.
    Collect {
        opcode: Opcode,
        len: usize,
    },
    /// Collects padding and CRC.
    Trailer {
        delivers: Option<Message>,
    },
    /// The sink is offered a message.
    Deliver(Message),
    Over,
}

/// The receiving side of one connection.
pub(crate) struct Receiver {
    state: State,
    head: [u8; HEAD_LEN],
    /// Bytes in `head`.
    have: usize,
    /// Length of the header, once its first byte is known.
    header_len: usize,
    trailer: [u8; 3 + mpa::CRC_LEN],
    /// Bytes in `trailer`.
    trailed: usize,
    /// CRC32C of this FPDU so far; `None` on a connection without CRCs.
    crc: Option<u32>,
    validator: Validator,
}

impl Receiver {
    /// The receiver of a connection whose start-up is complete: with CRCs or without, with a peer
    /// that is ndk or with another.
    pub(crate) const fn new(has_crc: bool, extended: bool) -> Self {
        Self {
            state: State::Header,
            head: [0; HEAD_LEN],
            have: 0,
            header_len: 0,
            trailer: [0; 3 + mpa::CRC_LEN],
            trailed: 0,
            crc: if has_crc { Some(0) } else { None },
            validator: Validator::new(extended),
        }
    }

    /// Takes bytes of the stream, until they are used up, the sink waits, or the stream is over.
    ///
    /// # Errors
    ///
    /// The Terminate to send. The receiver is over then.
    pub(crate) fn receive<S: Sink>(
        &mut self,
        bytes: &mut S::Bytes,
        sink: &mut S,
    ) -> Result<Stopped, Terminate> {
        loop {
            match self.step(bytes, sink) {
                Ok(None) => {}
                Ok(Some(stopped)) => return Ok(stopped),
                Err(cause) => {
                    self.state = State::Over;
                    return Err(self.terminate(cause));
                }
            }
        }
    }

    /// The bytes of the stream that are left of the FPDU under way, if a step of it waits.
    pub(crate) fn rest(&self) -> Option<usize> {
        match self.state {
            State::Begin(segment) => {
                // CAST: it was 16 bits; widening.
                let ulpdu = self.ulpdu() as u16;
                Some(segment.len as usize + mpa::padding(ulpdu) + mpa::CRC_LEN)
            }
            State::Deliver(_) => Some(0),
            _ => None,
        }
    }

    /// Returns true if all bytes so far make whole FPDUs, or a Terminate has come: there a stream may
    /// end. The sink may still have to take the last message.
    #[cfg(any(test, ndk_kunit))]
    pub(crate) fn is_between(&self) -> bool {
        match self.state {
            State::Header => self.have == 0,
            State::Deliver(_) | State::Over => true,
            _ => false,
        }
    }

    /// One step; returns the reason if no other follows.
    fn step<S: Sink>(
        &mut self,
        bytes: &mut S::Bytes,
        sink: &mut S,
    ) -> Result<Option<Stopped>, Cause> {
        match self.state {
            State::Header => self.collect_header(bytes),
            State::Begin(segment) => {
                if sink.begin(&segment)? == Progress::Wait {
                    return Ok(Some(Stopped::Waits));
                }
                // CAST: widening.
                self.state = State::Payload {
                    segment,
                    left: segment.len as usize,
                };
                Ok(None)
            }
            State::Payload { segment, left } => self.place(segment, left, bytes, sink),
            State::Collect { opcode, len } => self.collect_payload(opcode, len, bytes),
            State::Trailer { delivers } => self.collect_trailer(delivers, bytes),
            State::Deliver(message) => {
                if sink.deliver(&message)? == Progress::Wait {
                    return Ok(Some(Stopped::Waits));
                }
                match message {
                    Message::Terminate(_) => self.state = State::Over,
                    _ => self.next_fpdu(),
                }
                Ok(None)
            }
            State::Over => Ok(Some(Stopped::Over)),
        }
    }

    fn next_fpdu(&mut self) {
        self.state = State::Header;
        self.have = 0;
        self.header_len = 0;
        self.trailed = 0;
        self.crc = self.crc.map(|_| 0);
    }

    /// Continues the CRC over the next bytes, which are about to be used.
    fn count<B: Bytes>(&mut self, bytes: &B, len: usize) {
        if let Some(crc) = &mut self.crc {
            *crc = bytes.crc(*crc, len);
        }
    }

    /// Fills `head` up to `want` bytes. Returns true if it has as many.
    fn fill_head<B: Bytes>(&mut self, want: usize, bytes: &mut B) -> bool {
        let len = bytes.len().min(want - self.have);
        self.count(bytes, len);
        bytes.take(&mut self.head[self.have..self.have + len]);
        self.have += len;
        self.have == want
    }

    /// Length of the ULPDU, once the length field is there.
    fn ulpdu(&self) -> usize {
        usize::from(u16::from_be_bytes([self.head[0], self.head[1]]))
    }

    fn collect_header<B: Bytes>(&mut self, bytes: &mut B) -> Result<Option<Stopped>, Cause> {
        if self.header_len == 0 {
            if !self.fill_head(mpa::LENGTH_LEN + 1, bytes) {
                return Ok(Some(Stopped::Empty));
            }
            if self.ulpdu() < ddp::TAGGED_LEN {
                return Err(Cause::Length);
            }
            let len = Header::len_by(self.head[mpa::LENGTH_LEN]).map_err(bad_header)?;
            if self.ulpdu() < len {
                return Err(Cause::Length);
            }
            self.header_len = len;
        }
        if !self.fill_head(mpa::LENGTH_LEN + self.header_len, bytes) {
            return Ok(Some(Stopped::Empty));
        }
        let header = Header::decode(&self.head[mpa::LENGTH_LEN..self.have]).map_err(bad_header)?;
        // CAST: a length of 16 bits, and not less than that of the header.
        let payload = (self.ulpdu() - self.header_len) as u32;
        self.state = match self.validator.check(&header, payload)? {
            Verdict::Placed(segment) => State::Begin(segment),
            Verdict::Collected { opcode, len } => State::Collect { opcode, len },
        };
        Ok(None)
    }

    fn place<S: Sink>(
        &mut self,
        segment: Segment,
        left: usize,
        bytes: &mut S::Bytes,
        sink: &mut S,
    ) -> Result<Option<Stopped>, Cause> {
        if left == 0 {
            self.state = State::Trailer {
                delivers: self.placed(segment),
            };
            return Ok(None);
        }
        let len = bytes.len().min(left);
        if len == 0 {
            return Ok(Some(Stopped::Empty));
        }
        self.count(bytes, len);
        sink.place(bytes, len)?;
        self.state = State::Payload {
            segment,
            left: left - len,
        };
        Ok(None)
    }

    /// The message that this segment ends.
    fn placed(&self, segment: Segment) -> Option<Message> {
        segment.last.then_some(match segment.place {
            Place::Write { .. } => Message::Write,
            Place::ReadResponse { .. } => Message::ReadResponse,
            Place::Send { send, offset } => Message::Send {
                send,
                word: self.word(),
                len: offset + segment.len,
            },
        })
    }

    /// The four bytes that an untagged header has for RDMAP.
    fn word(&self) -> u32 {
        u32::from_be_bytes([self.head[4], self.head[5], self.head[6], self.head[7]])
    }

    /// The message number of an untagged header.
    fn number(&self) -> u32 {
        u32::from_be_bytes([self.head[12], self.head[13], self.head[14], self.head[15]])
    }

    fn collect_payload<B: Bytes>(
        &mut self,
        opcode: Opcode,
        len: usize,
        bytes: &mut B,
    ) -> Result<Option<Stopped>, Cause> {
        if !self.fill_head(mpa::LENGTH_LEN + self.header_len + len, bytes) {
            return Ok(Some(Stopped::Empty));
        }
        let message = self.collected(opcode)?;
        self.state = if self.header_len + len < self.ulpdu() {
            // A Terminate that is longer than any: the rest is of no use.
            State::Deliver(message)
        } else {
            State::Trailer {
                delivers: Some(message),
            }
        };
        Ok(None)
    }

    fn payload(&self) -> &[u8] {
        &self.head[mpa::LENGTH_LEN + self.header_len..self.have]
    }

    /// The message whose payload is in `head`.
    fn collected(&self, opcode: Opcode) -> Result<Message, Cause> {
        let (payload, number) = (self.payload(), self.number());
        let message = match opcode {
            Opcode::ReadRequest => payload.first_chunk().map(|payload| Message::ReadRequest {
                request: ReadRequest::decode(payload),
                number,
            }),
            Opcode::AtomicRequest => payload
                .first_chunk()
                .and_then(AtomicRequest::decode)
                .map(|request| Message::AtomicRequest { request, number }),
            Opcode::AtomicResponse => payload
                .first_chunk()
                .map(AtomicResponse::decode)
                .map(Message::AtomicResponse),
            Opcode::Immediate { solicited } => {
                payload.first_chunk().map(|payload| Message::Immediate {
                    data: rdmap::decode_immediate(payload),
                    solicited,
                })
            }
            Opcode::Acknowledge => Some(Message::Acknowledge { count: self.word() }),
            Opcode::Terminate => Some(Message::Terminate(terminate::Received::decode(payload))),
            Opcode::Write | Opcode::ReadResponse | Opcode::Send(_) => None,
        };
        message.ok_or(Cause::OperationUnspecified)
    }

    fn collect_trailer<B: Bytes>(
        &mut self,
        delivers: Option<Message>,
        bytes: &mut B,
    ) -> Result<Option<Stopped>, Cause> {
        // CAST: it was 16 bits.
        let pad = mpa::padding(self.ulpdu() as u16);
        let left = pad.saturating_sub(self.trailed).min(bytes.len());
        self.count(bytes, left);
        self.fill_trailer(left, bytes);
        // The CRC is no part of what it covers.
        self.fill_trailer((pad + mpa::CRC_LEN - self.trailed).min(bytes.len()), bytes);
        if self.trailed < pad + mpa::CRC_LEN {
            return Ok(Some(Stopped::Empty));
        }
        if let (Some(crc), Some(sent)) = (self.crc, self.trailer[pad..].first_chunk()) {
            if crc != mpa::crc(*sent) {
                return Err(Cause::Crc);
            }
        }
        match delivers {
            Some(message) => self.state = State::Deliver(message),
            None => self.next_fpdu(),
        }
        Ok(None)
    }

    fn fill_trailer<B: Bytes>(&mut self, len: usize, bytes: &mut B) {
        bytes.take(&mut self.trailer[self.trailed..self.trailed + len]);
        self.trailed += len;
    }

    /// The Terminate of a cause that the FPDU under way has.
    fn terminate(&self, cause: Cause) -> Terminate {
        let whole = mpa::LENGTH_LEN + self.header_len;
        if self.header_len == 0 || self.have < whole {
            return Terminate::new(cause, None);
        }
        let is_read = Opcode::decode(self.head[3]) == Ok(Opcode::ReadRequest);
        Terminate::new(
            cause,
            Some(terminate::Segment {
                header: &self.head[mpa::LENGTH_LEN..whole],
                request: self.payload().first_chunk().filter(|_| is_read),
                // CAST: it was 16 bits.
                len: self.ulpdu() as u16,
            }),
        )
    }
}

const fn bad_header(bad: BadHeader) -> Cause {
    match bad {
        BadHeader::Version { tagged: true } => Cause::TaggedVersion,
        BadHeader::Version { tagged: false } => Cause::UntaggedVersion,
        BadHeader::Short => Cause::Length,
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_receive))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::super::{
        ddp::{
            Tagged,
            Untagged, //
        },
        rdmap::{
            Atomic,
            With, //
        },
    };
    use super::*;

    const PLAIN: Send = Send {
        solicited: false,
        with: With::Nothing,
    };
    const INVALIDATE: Send = Send {
        solicited: true,
        with: With::Invalidate,
    };
    const READ: ReadRequest = ReadRequest {
        sink_stag: 1,
        sink_offset: 2,
        size: 3,
        source_stag: 4,
        source_offset: 5,
    };
    const ADD: AtomicRequest = AtomicRequest {
        request: 9,
        stag: 4,
        offset: 8,
        operation: Atomic::FetchAdd { add: 1 },
    };

    /// CRC32C, a bit at a time.
    fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!crc, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 0 {
                    crc >> 1
                } else {
                    crc >> 1 ^ 0x82f6_3b78
                }
            })
        })
    }

    /// Bytes in one piece.
    struct Piece<'a>(&'a [u8]);

    impl Bytes for Piece<'_> {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn take(&mut self, to: &mut [u8]) {
            let (first, rest) = self.0.split_at(to.len());
            to.copy_from_slice(first);
            self.0 = rest;
        }

        fn crc(&self, crc: u32, len: usize) -> u32 {
            crc32c(crc, &self.0[..len])
        }
    }

    /// The stream that a peer sends.
    struct Stream {
        bytes: [u8; 512],
        len: usize,
    }

    impl Stream {
        fn put(&mut self, part: &[u8]) {
            self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }

        /// Adds an FPDU.
        fn fpdu(&mut self, header: &[u8], payload: &[u8]) -> &mut Self {
            let (start, ulpdu) = (self.len, (header.len() + payload.len()) as u16);
            self.put(&ulpdu.to_be_bytes());
            self.put(header);
            self.put(payload);
            let pad = mpa::padding(ulpdu);
            let crc = crc32c(crc32c(0, &self.bytes[start..self.len]), &[0; 3][..pad]);
            self.put(mpa::Trailer::new(ulpdu, crc).as_bytes());
            self
        }

        fn untagged(
            &mut self,
            opcode: Opcode,
            message: u32,
            offset: u32,
            payload: &[u8],
            last: bool,
        ) -> &mut Self {
            let header = Untagged {
                last,
                ulp: opcode.encode(),
                ulp_word: 0x0102_0304,
                queue: opcode.queue().unwrap_or(99),
                message,
                offset,
            };
            self.fpdu(&header.encode(), payload)
        }

        fn tagged(&mut self, opcode: Opcode, offset: u64, payload: &[u8], last: bool) -> &mut Self {
            let header = Tagged {
                last,
                ulp: opcode.encode(),
                stag: 7,
                offset,
            };
            self.fpdu(&header.encode(), payload)
        }

        fn as_bytes(&self) -> &[u8] {
            &self.bytes[..self.len]
        }
    }

    /// The stream of these FPDUs.
    fn stream(fpdus: impl FnOnce(&mut Stream) -> &mut Stream) -> Stream {
        let mut stream = Stream {
            bytes: [0; 512],
            len: 0,
        };
        fpdus(&mut stream);
        stream
    }

    /// One message of each kind; the Sends and the Writes have several segments.
    fn all(stream: &mut Stream) -> &mut Stream {
        stream
            .untagged(Opcode::Send(PLAIN), 1, 0, b"in three ", false)
            .tagged(Opcode::Write, 0x1000, b"abc", false)
            .tagged(Opcode::Write, 0x1003, b"defg", true)
            .untagged(Opcode::Send(PLAIN), 1, 9, b"", false)
            .untagged(Opcode::Send(PLAIN), 1, 9, b"segments", true)
            .untagged(Opcode::Send(INVALIDATE), 2, 0, b"", true)
            .untagged(Opcode::ReadRequest, 1, 0, &READ.encode(), true)
            .tagged(Opcode::ReadResponse, 0, b"answer", true)
            .untagged(Opcode::AtomicRequest, 2, 0, &ADD.encode(), true)
            .untagged(Opcode::AtomicResponse, 1, 0, &[0; 12], true)
            .untagged(
                Opcode::Immediate { solicited: true },
                3,
                0,
                &[9, 8, 7, 6, 0, 0, 0, 0],
                true,
            )
            .untagged(Opcode::Acknowledge, 1, 0, b"", true)
            .untagged(Opcode::Terminate, 1, 0, &[0x01, 0x01, 0, 0], true)
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Event {
        Begin(Segment),
        Deliver(Message),
    }

    /// A sink that keeps a record.
    struct Record<'a> {
        events: [Option<Event>; 24],
        count: usize,
        payload: [u8; 64],
        placed: usize,
        /// Waits before it accepts each step.
        waits: u32,
        waited: u32,
        refuses: Option<Cause>,
        _bytes: core::marker::PhantomData<&'a ()>,
    }

    impl Record<'_> {
        fn new() -> Self {
            Self {
                events: [None; 24],
                count: 0,
                payload: [0; 64],
                placed: 0,
                waits: 0,
                waited: 0,
                refuses: None,
                _bytes: core::marker::PhantomData,
            }
        }

        fn add(&mut self, event: Event) -> Result<Progress, Cause> {
            if let Some(cause) = self.refuses {
                return Err(cause);
            }
            if self.waited < self.waits {
                self.waited += 1;
                return Ok(Progress::Wait);
            }
            self.waited = 0;
            self.events[self.count] = Some(event);
            self.count += 1;
            Ok(Progress::Done)
        }

        fn is_same(&self, other: &Record<'_>) -> bool {
            self.events == other.events
                && self.placed == other.placed
                && self.payload == other.payload
        }
    }

    impl<'a> Sink for Record<'a> {
        type Bytes = Piece<'a>;

        fn begin(&mut self, segment: &Segment) -> Result<Progress, Cause> {
            self.add(Event::Begin(*segment))
        }

        fn place(&mut self, bytes: &mut Piece<'a>, len: usize) -> Result<(), Cause> {
            bytes.take(&mut self.payload[self.placed..self.placed + len]);
            self.placed += len;
            Ok(())
        }

        fn deliver(&mut self, message: &Message) -> Result<Progress, Cause> {
            self.add(Event::Deliver(*message))
        }
    }

    fn begin(place: Place, len: u32, last: bool) -> Event {
        Event::Begin(Segment { place, len, last })
    }

    fn write(offset: u64) -> Place {
        Place::Write { stag: 7, offset }
    }

    fn send(send: Send, offset: u32) -> Place {
        Place::Send { send, offset }
    }

    #[test]
    fn each_message_is_delivered_with_its_payload() {
        let (stream, mut record) = (stream(all), Record::new());
        let mut bytes = Piece(stream.as_bytes());
        assert_eq!(
            Receiver::new(true, true).receive(&mut bytes, &mut record),
            Ok(Stopped::Over)
        );
        assert!(bytes.0.is_empty());
        let expected = [
            begin(send(PLAIN, 0), 9, false),
            begin(write(0x1000), 3, false),
            begin(write(0x1003), 4, true),
            Event::Deliver(Message::Write),
            begin(send(PLAIN, 9), 0, false),
            begin(send(PLAIN, 9), 8, true),
            Event::Deliver(Message::Send {
                send: PLAIN,
                word: 0x0102_0304,
                len: 17,
            }),
            begin(send(INVALIDATE, 0), 0, true),
            Event::Deliver(Message::Send {
                send: INVALIDATE,
                word: 0x0102_0304,
                len: 0,
            }),
            Event::Deliver(Message::ReadRequest {
                request: READ,
                number: 1,
            }),
            begin(Place::ReadResponse { stag: 7, offset: 0 }, 6, true),
            Event::Deliver(Message::ReadResponse),
            Event::Deliver(Message::AtomicRequest {
                request: ADD,
                number: 2,
            }),
            Event::Deliver(Message::AtomicResponse(AtomicResponse {
                request: 0,
                original: 0,
            })),
            Event::Deliver(Message::Immediate {
                data: 0x0908_0706,
                solicited: true,
            }),
            Event::Deliver(Message::Acknowledge { count: 0x0102_0304 }),
            Event::Deliver(Message::Terminate(terminate::Received {
                code: 0x0101,
                about: None,
            })),
        ];
        for (event, expected) in record.events.iter().zip(expected) {
            assert_eq!(*event, Some(expected));
        }
        assert_eq!(record.count, expected.len());
        assert_eq!(
            record.payload[..record.placed],
            *b"in three abcdefgsegmentsanswer"
        );
    }

    #[test]
    fn the_stream_may_be_cut_anywhere() {
        let (stream, mut whole) = (stream(all), Record::new());
        assert_eq!(
            Receiver::new(true, true).receive(&mut Piece(stream.as_bytes()), &mut whole),
            Ok(Stopped::Over)
        );
        for len in 1..48 {
            let (mut receiver, mut record) = (Receiver::new(true, true), Record::new());
            let mut last = Ok(Stopped::Empty);
            for piece in stream.as_bytes().chunks(len) {
                assert_eq!(last, Ok(Stopped::Empty));
                last = receiver.receive(&mut Piece(piece), &mut record);
            }
            assert_eq!(last, Ok(Stopped::Over));
            assert!(record.is_same(&whole));
        }
    }

    #[test]
    fn a_sink_that_waits_is_asked_again_and_no_byte_is_lost() {
        let (stream, mut prompt) = (stream(all), Record::new());
        assert!(Receiver::new(true, true)
            .receive(&mut Piece(stream.as_bytes()), &mut prompt)
            .is_ok());
        let (mut receiver, mut record) = (Receiver::new(true, true), Record::new());
        record.waits = 2;
        let mut bytes = Piece(stream.as_bytes());
        let mut waits = 0;
        while receiver.receive(&mut bytes, &mut record) == Ok(Stopped::Waits) {
            waits += 1;
            // With no byte more, the answer stays.
            if record.waited == 1 {
                assert_eq!(
                    receiver.receive(&mut Piece(&[]), &mut record),
                    Ok(Stopped::Waits)
                );
                waits += 1;
            }
        }
        assert_eq!(waits, 2 * record.count);
        assert!(record.is_same(&prompt));
    }

    #[test]
    fn a_stream_may_end_between_fpdus_only() {
        let stream = stream(|s| s.untagged(Opcode::Send(PLAIN), 1, 0, b"x", true));
        let (mut receiver, mut record) = (Receiver::new(true, false), Record::new());
        assert!(receiver.is_between());
        for byte in stream.as_bytes().chunks(1) {
            assert_eq!(
                receiver.receive(&mut Piece(byte), &mut record),
                Ok(Stopped::Empty)
            );
            assert_eq!(
                receiver.is_between(),
                core::ptr::eq(&byte[0], &stream.bytes[stream.len - 1])
            );
        }
    }

    #[test]
    fn a_message_that_waits_is_whole() {
        let stream = stream(|s| s.untagged(Opcode::ReadRequest, 1, 0, &READ.encode(), true));
        let (mut receiver, mut record) = (Receiver::new(true, false), Record::new());
        record.waits = 1;
        let mut bytes = Piece(stream.as_bytes());
        assert_eq!(
            receiver.receive(&mut bytes, &mut record),
            Ok(Stopped::Waits)
        );
        assert!(receiver.is_between());
        assert_eq!(
            receiver.receive(&mut bytes, &mut record),
            Ok(Stopped::Empty)
        );
        assert_eq!(record.count, 1);
    }

    /// The Terminate that a stream ends with.
    fn fault(stream: &Stream, has_crc: bool, extended: bool) -> Option<Terminate> {
        Receiver::new(has_crc, extended)
            .receive(&mut Piece(stream.as_bytes()), &mut Record::new())
            .err()
    }

    /// Code of the Terminate, and its parts.
    fn code(terminate: Option<Terminate>) -> Option<(u16, u8)> {
        let bytes = terminate?;
        let bytes = bytes.as_bytes();
        Some((u16::from_be_bytes([bytes[0], bytes[1]]), bytes[2]))
    }

    #[test]
    fn faults_end_in_the_terminate_of_the_rfcs() {
        const SEND: Opcode = Opcode::Send(PLAIN);
        type Make = fn(&mut Stream) -> &mut Stream;
        let table: [(Make, Cause, u8); 11] = [
            (|s| s.fpdu(&[0xc2; 14], &[]), Cause::TaggedVersion, 0),
            (|s| s.fpdu(&[0x40; 18], &[]), Cause::UntaggedVersion, 0),
            // Too short for any header, and for this one.
            (|s| s.fpdu(&[0xc1, 0x40], &[]), Cause::Length, 0),
            (|s| s.fpdu(&[0x41; 14], &[]), Cause::Length, 0),
            (|s| s.fpdu(&[], &[]), Cause::Length, 0),
            (|s| s.fpdu(&[0xc1; 14], &[]), Cause::RdmapVersion, 0xc0),
            (|s| s.tagged(SEND, 0, b"", true), Cause::Opcode, 0xc0),
            (
                |s| s.tagged(Opcode::Write, u64::MAX, b"ab", true),
                Cause::TaggedWrap,
                0xc0,
            ),
            (
                |s| s.untagged(SEND, 2, 0, b"", true),
                Cause::MessageRange,
                0xc0,
            ),
            (
                |s| s.untagged(Opcode::ReadRequest, 1, 0, &[0; 29], true),
                Cause::TooLong,
                0xc0,
            ),
            (
                |s| s.untagged(Opcode::AtomicRequest, 1, 0, &[1; 52], true),
                Cause::OperationUnspecified,
                0xc0,
            ),
        ];
        for (make, cause, parts) in table {
            assert_eq!(
                code(fault(&stream(make), true, true)),
                Some((cause.code(), parts))
            );
        }
    }

    #[test]
    fn no_terminate_is_answered_by_one() {
        for len in [0, 3, 4, 52, 53, 200] {
            let stream = stream(|s| s.untagged(Opcode::Terminate, 1, 0, &[0x20; 200][..len], true));
            let mut record = Record::new();
            let stopped =
                Receiver::new(true, false).receive(&mut Piece(stream.as_bytes()), &mut record);
            assert_eq!(stopped, Ok(Stopped::Over));
            let code = if len < 4 {
                Cause::OperationUnspecified.code()
            } else {
                0x2020
            };
            let received = terminate::Received { code, about: None };
            assert_eq!(
                record.events[0],
                Some(Event::Deliver(Message::Terminate(received)))
            );
        }
    }

    #[test]
    fn an_fpdu_of_another_implementation_is_understood() {
        // A Send of four bytes as siw sends it, and its CRC by another program.
        let bytes = [
            0, 22, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, b'p', b'i', b'n',
            b'g', 0xa5, 0x48, 0x7f, 0xa7,
        ];
        let mut record = Record::new();
        assert_eq!(
            Receiver::new(true, false).receive(&mut Piece(&bytes), &mut record),
            Ok(Stopped::Empty)
        );
        assert_eq!(record.payload[..record.placed], *b"ping");
        let message = Message::Send {
            send: PLAIN,
            word: 0,
            len: 4,
        };
        assert_eq!(record.events[1], Some(Event::Deliver(message)));
    }

    #[test]
    fn extensions_are_for_a_peer_that_has_them() {
        let stream = stream(|s| s.untagged(Opcode::Acknowledge, 1, 0, b"", true));
        assert!(fault(&stream, true, true).is_none());
        assert_eq!(
            code(fault(&stream, true, false)),
            Some((Cause::Opcode.code(), 0xc0))
        );
    }

    /// A Send of two bytes, one bit of which was changed on the way.
    fn damaged(at: usize) -> Stream {
        let mut stream = stream(|s| s.untagged(Opcode::Send(PLAIN), 1, 0, b"ab", true));
        stream.bytes[at] ^= 1;
        stream
    }

    #[test]
    fn a_damaged_message_is_not_delivered() {
        for at in 0..28 {
            let (stream, mut record) = (damaged(at), Record::new());
            assert_eq!(stream.len, 28);
            let stopped =
                Receiver::new(true, true).receive(&mut Piece(stream.as_bytes()), &mut record);
            // With another length the receiver may wait for more.
            assert!(stopped.is_err() || at < 2);
            assert!(record
                .events
                .iter()
                .all(|event| !matches!(event, Some(Event::Deliver(_)))));
        }
    }

    #[test]
    fn a_connection_without_crcs_ignores_them() {
        let stream = damaged(27);
        assert_eq!(
            code(fault(&stream, true, true)),
            Some((Cause::Crc.code(), 0))
        );
        assert!(fault(&stream, false, true).is_none());
    }

    #[test]
    fn no_byte_is_used_after_a_fault() {
        let (mut receiver, mut record) = (Receiver::new(true, true), Record::new());
        let damaged = damaged(27);
        assert!(receiver
            .receive(&mut Piece(damaged.as_bytes()), &mut record)
            .is_err());
        let mut more = Piece(b"more");
        assert_eq!(receiver.receive(&mut more, &mut record), Ok(Stopped::Over));
        assert_eq!(more.len(), 4);
    }

    #[test]
    fn the_sink_ends_the_connection_by_its_cause() {
        type Make = fn(&mut Stream) -> &mut Stream;
        let table: [(Make, Cause, u8); 4] = [
            (
                |s| s.tagged(Opcode::Write, 0, b"x", true),
                Cause::TaggedBounds,
                0xc0,
            ),
            (
                |s| s.untagged(Opcode::ReadRequest, 1, 0, &READ.encode(), true),
                Cause::Bounds,
                0xe0,
            ),
            (
                |s| s.untagged(Opcode::Send(INVALIDATE), 1, 0, b"", true),
                Cause::CannotInvalidate,
                0xc0,
            ),
            (
                |s| s.untagged(Opcode::Send(PLAIN), 1, 0, b"", true),
                Cause::LocalCatastrophic,
                0,
            ),
        ];
        for (make, cause, parts) in table {
            let (stream, mut record) = (stream(make), Record::new());
            record.refuses = Some(cause);
            let stopped =
                Receiver::new(true, true).receive(&mut Piece(stream.as_bytes()), &mut record);
            assert_eq!(code(stopped.err()), Some((cause.code(), parts)));
        }
    }
}
