// SPDX-License-Identifier: GPL-2.0
// host-test

//! The sending side of a connection: a message becomes FPDUs.
//!
//! [`Sender`] numbers the messages of each untagged queue. [`Segments`] makes the head of one FPDU
//! after the other, of the size that fits at that moment, and keeps its place in the message. The
//! caller adds the payload and the trailer ([`mpa::Trailer`]). This file imports `core` and the
//! codecs alone, and allocates nothing.

use super::{
    ddp::{
        self,
        Tagged,
        Untagged, //
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
};

/// The smallest ULPDU that a connection has to carry, in bytes (RFC 5041, 5.1: 128 for the MULPDU).
/// A path with less gets FPDUs that span TCP segments.
pub(crate) const LEAST_ULPDU: u16 = 128;

// A message that the receiver collects has one segment.
const _: () = assert!(LEAST_ULPDU as usize >= ddp::UNTAGGED_LEN + AtomicRequest::LEN);

/// A message to send; `len` is that of its payload in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Write {
        stag: u32,
        offset: u64,
        len: u32,
    },
    ReadResponse {
        stag: u32,
        offset: u64,
        len: u32,
    },
    /// `word` is the token or the immediate data of the Send.
    Send {
        send: Send,
        word: u32,
        len: u32,
    },
    Immediate {
        solicited: bool,
    },
    ReadRequest,
    AtomicRequest,
    AtomicResponse,
    Acknowledge {
        count: u32,
    },
    /// Of 52 bytes at most.
    Terminate {
        len: u16,
    },
}

impl Message {
    /// The kind of the message.
    pub(crate) const fn opcode(&self) -> Opcode {
        match *self {
            Self::Write { .. } => Opcode::Write,
            Self::ReadResponse { .. } => Opcode::ReadResponse,
            Self::Send { send, .. } => Opcode::Send(send),
            Self::Immediate { solicited } => Opcode::Immediate { solicited },
            Self::ReadRequest => Opcode::ReadRequest,
            Self::AtomicRequest => Opcode::AtomicRequest,
            Self::AtomicResponse => Opcode::AtomicResponse,
            Self::Acknowledge { .. } => Opcode::Acknowledge,
            Self::Terminate { .. } => Opcode::Terminate,
        }
    }

    /// Bytes of payload.
    pub(crate) const fn len(&self) -> u32 {
        match *self {
            Self::Write { len, .. } | Self::ReadResponse { len, .. } | Self::Send { len, .. } => {
                len
            }
            // CAST: lengths of a few bytes, and widening.
            Self::Immediate { .. } => rdmap::IMMEDIATE_LEN as u32,
            Self::ReadRequest => ReadRequest::LEN as u32,
            Self::AtomicRequest => AtomicRequest::LEN as u32,
            Self::AtomicResponse => AtomicResponse::LEN as u32,
            Self::Acknowledge { .. } => 0,
            Self::Terminate { len } => len as u32,
        }
    }

    /// The memory of a tagged message.
    const fn memory(&self) -> Option<(u32, u64)> {
        match *self {
            Self::Write { stag, offset, .. } | Self::ReadResponse { stag, offset, .. } => {
                Some((stag, offset))
            }
            _ => None,
        }
    }

    /// The four bytes of RDMAP in an untagged header.
    const fn word(&self) -> u32 {
        match *self {
            Self::Send { word, .. } => word,
            Self::Acknowledge { count } => count,
            _ => 0,
        }
    }
}

/// The numbers of the messages that one side of a connection has sent.
pub(crate) struct Sender {
    next: [u32; rdmap::queue::COUNT],
    /// The peer is ndk.
    extended: bool,
}

impl Sender {
    /// Nothing was sent: the first message of each queue has number 1 (RFC 5041, 5.3). The peer is ndk
    /// or another.
    pub(crate) const fn new(extended: bool) -> Self {
        Self {
            next: [1; rdmap::queue::COUNT],
            extended,
        }
    }

    /// Begins a message, which takes the next number of its queue. The segments of a message go out
    /// before those of the next one. `None` for a message that the peer does not know.
    pub(crate) fn begin(&mut self, message: Message) -> Option<Segments> {
        let opcode = message.opcode();
        if opcode.is_extension() && !self.extended {
            return None;
        }
        let number = opcode.queue().map_or(0, |queue| {
            // CAST: one of a few.
            let next = &mut self.next[queue as usize];
            let number = *next;
            *next = next.wrapping_add(1);
            number
        });
        Some(Segments {
            message,
            number,
            sent: 0,
            done: false,
        })
    }
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    message: Message,
    /// Its number, in an untagged queue.
    number: u32,
    /// Bytes of payload in the segments so far.
    sent: u32,
    done: bool,
}

impl Segments {
    /// The number of the message in its queue.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// The head of the next FPDU, with as much payload as a ULPDU of `most` bytes has room for;
    /// `None` after the last. A message without payload has one FPDU. Less than [`LEAST_ULPDU`] counts
    /// as that.
    pub(crate) fn next(&mut self, most: u16) -> Option<Head> {
        if self.done {
            return None;
        }
        let header_len = match self.message.memory() {
            Some(_) => ddp::TAGGED_LEN,
            None => ddp::UNTAGGED_LEN,
        };
        // CAST: both are 16 bits, and the first is larger.
        let room = (usize::from(most.max(LEAST_ULPDU)) - header_len) as u32;
        let left = self.message.len() - self.sent;
        let (offset, len, last) = (self.sent, left.min(room), left <= room);
        // CAST: no more than `most`.
        let head = Head::new(
            header_len as u16 + len as u16,
            offset,
            len,
            &self.header(last),
        );
        self.sent += len;
        self.done = last;
        Some(head)
    }

    fn header(&self, last: bool) -> Header {
        let ulp = self.message.opcode().encode();
        match (self.message.memory(), self.message.opcode().queue()) {
            (Some((stag, offset)), _) => Header::Tagged(
                Tagged {
                    last,
                    ulp,
                    stag,
                    // A range that wraps was refused at the post.
                    offset: offset.wrapping_add(u64::from(self.sent)),
                }
                .encode(),
            ),
            (None, queue) => Header::Untagged(
                Untagged {
                    last,
                    ulp,
                    ulp_word: self.message.word(),
                    queue: queue.unwrap_or_default(),
                    message: self.number,
                    offset: self.sent,
                }
                .encode(),
            ),
        }
    }
}

enum Header {
    Tagged([u8; ddp::TAGGED_LEN]),
    Untagged([u8; ddp::UNTAGGED_LEN]),
}

/// The bytes before the payload of an FPDU, and the payload's place in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    bytes: [u8; mpa::LENGTH_LEN + ddp::UNTAGGED_LEN],
    len: usize,
    /// Length of header and payload.
    pub(crate) ulpdu: u16,
    /// First byte of payload.
    pub(crate) offset: u32,
    /// Bytes of payload.
    pub(crate) payload: u32,
}

impl Head {
    fn new(ulpdu: u16, offset: u32, payload: u32, header: &Header) -> Self {
        let header: &[u8] = match header {
            Header::Tagged(bytes) => bytes,
            Header::Untagged(bytes) => bytes,
        };
        let mut bytes = [0; mpa::LENGTH_LEN + ddp::UNTAGGED_LEN];
        let len = mpa::LENGTH_LEN + header.len();
        bytes[..mpa::LENGTH_LEN].copy_from_slice(&ulpdu.to_be_bytes());
        bytes[mpa::LENGTH_LEN..len].copy_from_slice(header);
        Self {
            bytes,
            len,
            ulpdu,
            offset,
            payload,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_send))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::super::rdmap::With;
    use super::*;

    const INVALIDATE: Send = Send {
        solicited: false,
        with: With::Invalidate,
    };

    fn send(len: u32) -> Message {
        Message::Send {
            send: INVALIDATE,
            word: 0x0102_0304,
            len,
        }
    }

    fn write(len: u32) -> Message {
        Message::Write {
            stag: 7,
            offset: 0x1000,
            len,
        }
    }

    /// The header of a head, if its parts agree.
    fn header(head: &Head) -> Option<ddp::Header> {
        let header = head.as_bytes().get(mpa::LENGTH_LEN..)?;
        ddp::Header::decode(header)
            .ok()
            .filter(|_| head.as_bytes()[..mpa::LENGTH_LEN] == head.ulpdu.to_be_bytes())
            .filter(|_| usize::from(head.ulpdu) == header.len() + head.payload as usize)
    }

    #[test]
    fn payloads_are_cut_where_the_room_ends() {
        // Length of the payload, and those of its segments; a ULPDU of 218 bytes has room for 200.
        let table: [(u32, &[u32]); 7] = [
            (0, &[0]),
            (1, &[1]),
            (199, &[199]),
            (200, &[200]),
            (201, &[200, 1]),
            (400, &[200, 200]),
            (401, &[200, 200, 1]),
        ];
        for (len, parts) in table {
            let mut segments = Sender::new(false).begin(send(len));
            let mut offset = 0;
            for (at, part) in parts.iter().enumerate() {
                let head = segments.as_mut().and_then(|segments| segments.next(218));
                assert_eq!(
                    head.map(|head| (head.offset, head.payload, head.ulpdu)),
                    Some((offset, *part, *part as u16 + 18))
                );
                assert_eq!(
                    head.and_then(|head| header(&head)),
                    Some(ddp::Header::Untagged(Untagged {
                        last: at + 1 == parts.len(),
                        ulp: Opcode::Send(INVALIDATE).encode(),
                        ulp_word: 0x0102_0304,
                        queue: 0,
                        message: 1,
                        offset,
                    }))
                );
                offset += part;
            }
            assert!(segments.is_some_and(|mut segments| segments.next(218).is_none()));
        }
    }

    #[test]
    fn each_segment_of_a_write_names_its_own_memory() {
        let mut segments = Sender::new(false).begin(write(300));
        // The room may change from one segment to the next.
        for (most, offset, last) in [
            (164, 0x1000, false),
            (128, 0x1096, false),
            (214, 0x1108, true),
        ] {
            let head = segments.as_mut().and_then(|segments| segments.next(most));
            assert_eq!(
                head.and_then(|head| header(&head)),
                Some(ddp::Header::Tagged(Tagged {
                    last,
                    ulp: Opcode::Write.encode(),
                    stag: 7,
                    offset,
                }))
            );
        }
        assert!(segments.is_some_and(|mut segments| segments.next(214).is_none()));
    }

    #[test]
    fn each_queue_counts_its_own_messages() {
        let mut sender = Sender::new(false);
        let mut numbers = [None; 6];
        let messages = [
            send(0),
            write(0),
            send(1),
            Message::ReadRequest,
            send(2),
            Message::ReadRequest,
        ];
        for (number, message) in numbers.iter_mut().zip(messages) {
            *number = sender.begin(message).map(|segments| segments.number());
        }
        assert_eq!(
            [numbers[0], numbers[2], numbers[4]],
            [Some(1), Some(2), Some(3)]
        );
        assert_eq!([numbers[3], numbers[5]], [Some(1), Some(2)]);
        sender.next[0] = u32::MAX;
        for number in [u32::MAX, 0] {
            let segments = sender.begin(send(0));
            assert_eq!(segments.map(|segments| segments.number()), Some(number));
        }
    }

    #[test]
    fn a_message_that_the_peer_does_not_know_does_not_begin() {
        let immediate = Send {
            with: With::Immediate,
            ..INVALIDATE
        };
        for message in [
            Message::Immediate { solicited: true },
            Message::AtomicRequest,
            Message::AtomicResponse,
            Message::Acknowledge { count: 1 },
            Message::Send {
                send: immediate,
                word: 0,
                len: 0,
            },
        ] {
            let mut sender = Sender::new(false);
            assert!(sender.begin(message).is_none());
            assert_eq!(sender.next, [1; rdmap::queue::COUNT]);
            assert!(Sender::new(true).begin(message).is_some());
        }
    }

    #[test]
    fn the_largest_message_ends() {
        let mut segments = Sender::new(false).begin(write(u32::MAX));
        let (mut sum, mut count) = (0u64, 0);
        while let Some(head) = segments
            .as_mut()
            .and_then(|segments| segments.next(u16::MAX))
        {
            sum += u64::from(head.payload);
            count += 1;
        }
        assert_eq!(sum, u64::from(u32::MAX));
        assert_eq!(count, u64::from(u32::MAX).div_ceil(65521));
    }

    #[test]
    fn there_is_room_for_payload_on_any_path() {
        for most in [0, 1, 18, 127, 128] {
            let mut segments = Sender::new(false).begin(send(111));
            for payload in [Some(110), Some(1), None] {
                let head = segments.as_mut().and_then(|segments| segments.next(most));
                assert_eq!(head.map(|head| head.payload), payload);
            }
        }
    }

    #[test]
    fn messages_of_rdmap_have_one_segment() {
        for (message, len) in [
            (Message::ReadRequest, 28),
            (Message::AtomicRequest, 52),
            (Message::AtomicResponse, 12),
            (Message::Immediate { solicited: false }, 8),
            (Message::Acknowledge { count: 9 }, 0),
            (Message::Terminate { len: 52 }, 52),
        ] {
            let mut segments = Sender::new(true).begin(message);
            let head = segments.as_mut().and_then(|segments| segments.next(0));
            assert_eq!(head.map(|head| head.payload), Some(len));
            assert!(segments.is_some_and(|mut segments| segments.next(0).is_none()));
        }
    }
}
