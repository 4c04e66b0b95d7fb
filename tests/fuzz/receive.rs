// SPDX-License-Identifier: GPL-2.0

// The receiving side. Any stream has the same result in one piece, in pieces, and with a sink that
// makes it wait. A stream of right messages has their places, payloads and deliveries; one with a
// changed bit delivers those before that bit.

use crate::{ddp::*, mpa, rdmap::*, receive::*, terminate, terminate::Cause, validate::*};

pub fn run(input: &[u8]) {
    let Some((&[control, cut, wait, seed], rest)) = input.split_first_chunk() else {
        return;
    };
    let settings = Settings {
        has_crc: control & 1 != 0,
        extended: control & 2 != 0,
        refuses: control & 4 != 0,
    };
    any_stream(rest, settings, usize::from(cut) + 1, wait);
    let right = Right::of(rest, settings.extended, control & 8 != 0);
    any_stream(&right.stream, settings, usize::from(cut) + 1, wait);
    right.is_understood(settings.extended);
    right.is_noticed(
        settings.extended,
        usize::from(seed) << 8 | usize::from(cut),
        control >> 5,
    );
}

#[derive(Clone, Copy)]
struct Settings {
    has_crc: bool,
    extended: bool,
    refuses: bool,
}

fn any_stream(stream: &[u8], settings: Settings, cut: usize, wait: u8) {
    let mut whole = Record::new(settings.refuses, 0);
    let mut receiver = Receiver::new(settings.has_crc, settings.extended);
    let mut bytes = Piece(stream);
    let end = receiver.receive(&mut bytes, &mut whole);
    assert_ne!(end, Ok(Stopped::Waits));
    assert_eq!(end == Ok(Stopped::Empty), whole.is_open() && end.is_ok());
    assert!(end != Ok(Stopped::Empty) || bytes.0.is_empty());

    let mut pieces = Record::new(settings.refuses, wait % 4);
    let mut receiver = Receiver::new(settings.has_crc, settings.extended);
    let mut last = Ok(Stopped::Empty);
    for piece in stream.chunks(cut) {
        let mut piece = Piece(piece);
        loop {
            last = receiver.receive(&mut piece, &mut pieces);
            if last != Ok(Stopped::Waits) {
                break;
            }
        }
        if last != Ok(Stopped::Empty) {
            break;
        }
    }
    // Nothing comes after the last byte, but for a sink that is asked once more.
    assert_eq!(last, end);
    assert_eq!(
        (pieces.events, pieces.payload),
        (whole.events, whole.payload)
    );
}

/// A stream of right messages, and all that a sink has to see of it.
struct Right {
    stream: Vec<u8>,
    events: Vec<Event>,
    payload: Vec<u8>,
    /// The last byte of each message, in order of the deliveries.
    ends: Vec<usize>,
    numbers: [u32; 5],
    next: u8,
}

impl Right {
    /// Makes messages of the input, three bytes each: kind, length, segment length.
    fn of(input: &[u8], extended: bool, terminates: bool) -> Self {
        let mut right = Self {
            stream: Vec::new(),
            events: Vec::new(),
            payload: Vec::new(),
            ends: Vec::new(),
            numbers: [1; 5],
            next: 0,
        };
        for message in input.chunks_exact(3).take(10) {
            let (kind, len, segment) = (message[0], message[1], message[2]);
            let opcode = Opcode::decode(0x40 | kind & 0x0f).unwrap_or(Opcode::Write);
            if opcode.is_extension() && !extended {
                continue;
            }
            let word = u32::from(kind) * 0x0101_0101;
            match opcode {
                Opcode::Terminate => {}
                Opcode::Write | Opcode::ReadResponse | Opcode::Send(_) => {
                    right.placed(opcode, word, usize::from(len), usize::from(segment));
                }
                _ => right.collected(opcode, word, u64::from(len)),
            }
        }
        if terminates {
            right.terminate();
        }
        right
    }

    /// Adds a message that is placed, in at most four segments. Between those of a Send there may be
    /// a Write.
    fn placed(&mut self, opcode: Opcode, word: u32, len: usize, segment: usize) {
        let most = segment.max(len / 4) + 1;
        let memory = 0x1_0000_0000 + u64::from(word);
        let mut offset = 0;
        loop {
            let part = most.min(len - offset);
            let last = offset + part == len;
            let payload: Vec<u8> = (0..part).map(|_| self.byte()).collect();
            let place = match opcode {
                Opcode::Send(send) => Place::Send {
                    send,
                    offset: offset as u32,
                },
                Opcode::Write => Place::Write {
                    stag: word,
                    offset: memory + offset as u64,
                },
                _ => Place::ReadResponse {
                    stag: word,
                    offset: memory + offset as u64,
                },
            };
            self.events.push(Event::Begin(Segment {
                place,
                len: part as u32,
                last,
            }));
            self.payload.extend(&payload);
            match opcode.queue() {
                None => self.tagged(opcode, word, memory + offset as u64, &payload, last),
                Some(_) => self.untagged(opcode, word, offset as u32, &payload, last),
            }
            offset += part;
            if last {
                break;
            }
            if matches!(opcode, Opcode::Send(_)) && word & 0x80 != 0 {
                self.placed(Opcode::Write, word, 3, 3);
            }
        }
        self.delivers(match opcode {
            Opcode::Send(send) => Message::Send {
                send,
                word,
                len: len as u32,
            },
            Opcode::Write => Message::Write,
            _ => Message::ReadResponse,
        });
    }

    /// Adds a message that is not placed.
    fn collected(&mut self, opcode: Opcode, word: u32, value: u64) {
        let number = opcode
            .queue()
            .map_or(0, |queue| self.numbers[queue as usize]);
        let (message, payload) = match opcode {
            Opcode::ReadRequest => {
                let request = ReadRequest {
                    sink_stag: word,
                    sink_offset: value,
                    size: word,
                    source_stag: !word,
                    source_offset: u64::MAX - value,
                };
                (
                    Message::ReadRequest { request, number },
                    request.encode().to_vec(),
                )
            }
            Opcode::AtomicRequest => {
                let request = AtomicRequest {
                    request: word,
                    stag: !word,
                    offset: 8,
                    operation: Atomic::CompareSwap {
                        compare: value,
                        swap: !value,
                    },
                };
                (
                    Message::AtomicRequest { request, number },
                    request.encode().to_vec(),
                )
            }
            Opcode::AtomicResponse => {
                let response = AtomicResponse {
                    request: word,
                    original: value,
                };
                (
                    Message::AtomicResponse(response),
                    response.encode().to_vec(),
                )
            }
            Opcode::Immediate { solicited } => {
                let message = Message::Immediate {
                    data: word,
                    solicited,
                };
                (message, encode_immediate(word).to_vec())
            }
            _ => (Message::Acknowledge { count: word }, Vec::new()),
        };
        self.untagged(opcode, word, 0, &payload, true);
        self.delivers(message);
    }

    fn terminate(&mut self) {
        let terminate = terminate::Terminate::new(Cause::Crc, None);
        self.untagged(Opcode::Terminate, 0, 0, terminate.as_bytes(), true);
        self.delivers(Message::Terminate(terminate::Received {
            code: Cause::Crc.code(),
            about: None,
        }));
    }

    /// A byte of payload, different from those around it.
    fn byte(&mut self) -> u8 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    fn tagged(&mut self, opcode: Opcode, stag: u32, offset: u64, payload: &[u8], last: bool) {
        let header = Tagged {
            last,
            ulp: opcode.encode(),
            stag,
            offset,
        };
        self.fpdu(&header.encode(), payload);
    }

    fn untagged(&mut self, opcode: Opcode, word: u32, offset: u32, payload: &[u8], last: bool) {
        let queue = opcode.queue().unwrap();
        let number = &mut self.numbers[queue as usize];
        let header = Untagged {
            last,
            ulp: opcode.encode(),
            ulp_word: word,
            queue,
            message: *number,
            offset,
        };
        *number += u32::from(last);
        self.fpdu(&header.encode(), payload);
    }

    fn fpdu(&mut self, header: &[u8], payload: &[u8]) {
        let start = self.stream.len();
        let ulpdu = (header.len() + payload.len()) as u16;
        self.stream.extend(ulpdu.to_be_bytes());
        self.stream.extend(header);
        self.stream.extend(payload);
        let covered = [&self.stream[start..], &[0; 3][..mpa::padding(ulpdu)]].concat();
        self.stream
            .extend(mpa::Trailer::new(ulpdu, crc32c(0, &covered)).as_bytes());
    }

    fn delivers(&mut self, message: Message) {
        self.events.push(Event::Deliver(message));
        self.ends.push(self.stream.len());
    }

    fn is_understood(&self, extended: bool) {
        let mut record = Record::new(false, 0);
        let end = Receiver::new(true, extended).receive(&mut Piece(&self.stream), &mut record);
        assert_eq!(
            end,
            Ok(if record.is_open() {
                Stopped::Empty
            } else {
                Stopped::Over
            })
        );
        assert_eq!(record.events, self.events);
        assert_eq!(record.payload, self.payload);
    }

    fn is_noticed(&self, extended: bool, at: usize, bit: u8) {
        if self.stream.is_empty() {
            return;
        }
        let mut damaged = self.stream.clone();
        let at = at % damaged.len();
        damaged[at] ^= 1 << bit;
        let mut record = Record::new(false, 0);
        let end = Receiver::new(true, extended).receive(&mut Piece(&damaged), &mut record);
        let sound = self.ends.iter().filter(|end| **end <= at).count();
        assert_eq!(record.delivered().count(), sound);
        let expected = self
            .events
            .iter()
            .filter(|event| matches!(event, Event::Deliver(_)));
        assert!(record
            .delivered()
            .zip(expected)
            .all(|(a, b)| Event::Deliver(a) == *b));
        // The receiver has found the damage, or waits for the rest of what a length field says.
        assert!(end.is_err() || end == Ok(Stopped::Empty));
    }
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

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 0 {
                crc >> 1
            } else {
                crc >> 1 ^ 0x82f6_3b78
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |crc, byte| {
        crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)]
    })
}

#[derive(Debug, PartialEq)]
enum Event {
    Begin(Segment),
    Deliver(Message),
}

/// A sink that keeps a record, and checks the order of its calls.
struct Record<'a> {
    events: Vec<Event>,
    payload: Vec<u8>,
    /// Bytes of the segment under way that have no place yet.
    left: usize,
    /// Bytes of the Send under way, and the places of the unfinished messages.
    sent: u32,
    send: Option<Place>,
    tagged: Option<Place>,
    refuses: bool,
    waits: u8,
    waited: u8,
    bytes: core::marker::PhantomData<&'a ()>,
}

impl Record<'_> {
    fn new(refuses: bool, waits: u8) -> Self {
        Self {
            events: Vec::new(),
            payload: Vec::new(),
            left: 0,
            sent: 0,
            send: None,
            tagged: None,
            refuses,
            waits,
            waited: 0,
            bytes: core::marker::PhantomData,
        }
    }

    fn delivered(&self) -> impl Iterator<Item = Message> + '_ {
        self.events.iter().filter_map(|event| match event {
            Event::Deliver(message) => Some(*message),
            Event::Begin(_) => None,
        })
    }

    /// No Terminate has come.
    fn is_open(&self) -> bool {
        !matches!(
            self.events.last(),
            Some(Event::Deliver(Message::Terminate(_)))
        )
    }

    fn waits(&mut self) -> bool {
        self.waited = if self.waited < self.waits {
            self.waited + 1
        } else {
            0
        };
        self.waited > 0
    }
}

impl<'a> Sink for Record<'a> {
    type Bytes = Piece<'a>;

    fn begin(&mut self, segment: &Segment) -> Result<Progress, Cause> {
        if self.waits() {
            return Ok(Progress::Wait);
        }
        assert!(self.is_open() && self.left == 0);
        let unfinished = match segment.place {
            Place::Write { stag, offset } | Place::ReadResponse { stag, offset } => {
                assert!(u128::from(offset) + u128::from(segment.len) <= 1 << 64);
                if self.refuses && stag & 1 == 1 {
                    return Err(Cause::TaggedInvalidStag);
                }
                &mut self.tagged
            }
            Place::Send { offset, .. } => {
                assert_eq!(offset, self.sent);
                self.sent = if segment.last {
                    0
                } else {
                    offset + segment.len
                };
                &mut self.send
            }
        };
        // The segments of two messages do not mix.
        assert!(unfinished.is_none_or(|other| same_kind(other, segment.place)));
        *unfinished = (!segment.last).then_some(segment.place);
        self.left = segment.len as usize;
        self.events.push(Event::Begin(*segment));
        Ok(Progress::Done)
    }

    fn place(&mut self, bytes: &mut Piece<'a>, len: usize) -> Result<(), Cause> {
        assert!(len > 0 && len <= self.left && len <= bytes.len());
        let start = self.payload.len();
        self.payload.resize(start + len, 0);
        bytes.take(&mut self.payload[start..]);
        self.left -= len;
        Ok(())
    }

    fn deliver(&mut self, message: &Message) -> Result<Progress, Cause> {
        if self.waits() {
            return Ok(Progress::Wait);
        }
        assert!(self.is_open() && self.left == 0);
        if self.refuses
            && matches!(message, Message::ReadRequest { request, .. } if request.size & 1 == 1)
        {
            return Err(Cause::Bounds);
        }
        self.events.push(Event::Deliver(*message));
        Ok(Progress::Done)
    }
}

fn same_kind(a: Place, b: Place) -> bool {
    match (a, b) {
        (Place::Send { send: a, .. }, Place::Send { send: b, .. }) => a == b,
        (Place::Write { .. }, Place::Write { .. }) => true,
        (Place::ReadResponse { .. }, Place::ReadResponse { .. }) => true,
        _ => false,
    }
}
