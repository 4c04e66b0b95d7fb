// SPDX-License-Identifier: GPL-2.0
// host-test

//! [`Ahead`]: a look at messages behind one that waits.
//!
//! A message without a receive waits in the stream, and so do all bytes behind it. Two kinds of
//! message are of use before their turn, for requests of this side that wait for them: an
//! acknowledgement, which counts from the start-up, and a Terminate. No byte is taken from the
//! stream, and each message has its turn again later. A message that cannot be is left to its turn.
//!
//! Core-only, as the codecs.

use super::{
    ddp::{
        self,
        Header, //
    },
    mpa,
    rdmap::Opcode,
    terminate, //
};

/// The longest FPDU that is of use.
const MOST: usize = mpa::fpdu_len((ddp::UNTAGGED_LEN + terminate::MAX_LEN) as u16);

/// A message that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The number of messages that the peer has carried out since the start-up.
    Acknowledge(u32),
    Terminate(terminate::Received),
}

/// The place of the next FPDU that was not seen, in bytes from the next byte of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// `None` behind a Terminate or a message that cannot be.
    at: Option<usize>,
}

/// The farthest place of a look, in bytes: behind that, a message has its turn alone.
const FARTHEST: usize = 1 << 20;

impl Ahead {
    /// Begins behind the `rest` of the FPDU that waits.
    pub(crate) const fn new(rest: usize) -> Self {
        Self { at: Some(rest) }
    }

    /// The same look after bytes were taken from the stream. `None` if these are more than the bytes
    /// that it has passed: the next look begins anew.
    pub(crate) fn after(self, taken: usize) -> Option<Self> {
        let at = match self.at {
            Some(at) => Some(at.checked_sub(taken)?),
            None => None,
        };
        Some(Self { at })
    }

    /// Returns the next message of use; `None` if no other is there now, or if `budget` FPDUs were
    /// seen, which is 0 then.
    ///
    /// `peek` fills a slice with the bytes from a place on, and returns how many are there. `crc` is
    /// that of an FPDU's bytes; `None` on a connection without CRCs.
    pub(crate) fn next(
        &mut self,
        mut peek: impl FnMut(usize, &mut [u8]) -> usize,
        crc: Option<impl Fn(&[u8]) -> u32>,
        budget: &mut u32,
    ) -> Option<Seen> {
        let mut room = [0; MOST];
        while let Some(at) = self.at.filter(|at| *at < FARTHEST) {
            if *budget == 0 {
                return None;
            }
            let there = peek(at, &mut room).min(MOST);
            let fpdu = room.get(..there)?;
            let &[high, low, ref segment @ ..] = fpdu else {
                return None;
            };
            let ulpdu = u16::from_be_bytes([high, low]);
            let len = mpa::fpdu_len(ulpdu);
            let begun = Self::begin(ulpdu, segment)?;
            *budget -= 1;
            let Some((opcode, header, header_len)) = begun else {
                self.at = None;
                return None;
            };
            if !matches!(opcode, Opcode::Acknowledge | Opcode::Terminate) || len > MOST {
                self.at = at.checked_add(len);
                continue;
            }
            let fpdu = fpdu.get(..len)?;
            self.at = at.checked_add(len);
            let (body, sent) = fpdu.split_last_chunk::<{ mpa::CRC_LEN }>()?;
            if crc.as_ref().is_some_and(|crc| crc(body) != mpa::crc(*sent)) {
                self.at = None;
                return None;
            }
            let end = mpa::LENGTH_LEN + usize::from(ulpdu);
            let payload = body.get(mpa::LENGTH_LEN + header_len..end)?;
            return match (opcode, header) {
                (Opcode::Acknowledge, Header::Untagged(header)) => {
                    Some(Seen::Acknowledge(header.ulp_word))
                }
                _ => {
                    self.at = None;
                    Some(Seen::Terminate(terminate::Received::decode(payload)))
                }
            };
        }
        None
    }

    /// The kind of the message, its header and the header's length. The outer `None` if the header is
    /// not there yet, the inner one if it cannot be.
    fn begin(ulpdu: u16, segment: &[u8]) -> Option<Option<(Opcode, Header, usize)>> {
        let Ok(len) = Header::len_by(*segment.first()?) else {
            return Some(None);
        };
        if usize::from(ulpdu) < len {
            return Some(None);
        }
        let Ok(header) = Header::decode(segment.get(..len)?) else {
            return Some(None);
        };
        let opcode = Opcode::decode(header.ulp()).ok();
        Some(opcode.map(|opcode| (opcode, header, len)))
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_ahead))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::super::{
        rdmap::{
            Send,
            With, //
        },
        send::{
            Message,
            Sender,
            LEAST_ULPDU, //
        },
        terminate::{
            Cause,
            Terminate, //
        },
    };
    use super::*;

    /// Any function will do.
    fn crc(bytes: &[u8]) -> u32 {
        let add = |sum: u32, byte: &u8| sum.rotate_left(5) ^ u32::from(*byte);
        bytes.iter().fold(7, add)
    }

    struct Stream {
        bytes: [u8; 480],
        len: usize,
        sender: Sender,
    }

    impl Stream {
        fn empty() -> Self {
            Self {
                bytes: [0; 480],
                len: 0,
                sender: Sender::new(true),
            }
        }

        /// A Send of some segments, two acknowledgements around a Write, and a Terminate.
        fn new() -> Self {
            let mut stream = Self::empty();
            let send = Send {
                solicited: false,
                with: With::Nothing,
            };
            let (len, word) = (181, 0);
            stream.put(Message::Send { send, word, len }, &[1; 181]);
            stream.put(Message::Acknowledge { count: 3 }, &[]);
            let (stag, offset, len) = (1, 2, 9);
            stream.put(Message::Write { stag, offset, len }, &[2; 9]);
            stream.put(Message::Acknowledge { count: 5 }, &[]);
            let terminate = Terminate::new(Cause::NoBuffer, None);
            let bytes = terminate.as_bytes();
            let len = bytes.len() as u16;
            stream.put(Message::Terminate { len }, bytes);
            stream
        }

        fn add(&mut self, bytes: &[u8]) {
            self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
            self.len += bytes.len();
        }

        fn put(&mut self, message: Message, payload: &[u8]) {
            let Some(mut segments) = self.sender.begin(message) else {
                return;
            };
            while let Some(head) = segments.next(LEAST_ULPDU) {
                let begin = self.len;
                self.add(head.as_bytes());
                let (from, len) = (head.offset as usize, head.payload as usize);
                self.add(&payload[from..from + len]);
                let pad = mpa::padding(head.ulpdu);
                self.add(&[0; 3][..pad]);
                let crc = crc(&self.bytes[begin..self.len]);
                self.add(&mpa::Trailer::new(head.ulpdu, crc).as_bytes()[pad..]);
            }
        }

        /// The next message among the bytes `from` to `until`.
        fn next(&self, ahead: &mut Ahead, from: usize, until: usize) -> Option<Seen> {
            let peek = |at: usize, to: &mut [u8]| self.peek(from, until, at, to);
            ahead.next(peek, Some(crc), &mut 99)
        }

        /// Fills `to` with the bytes from `at` on among the bytes `from` to `until`.
        fn peek(&self, from: usize, until: usize, at: usize, to: &mut [u8]) -> usize {
            let there = self.bytes[from..until].get(at..).unwrap_or_default();
            let len = there.len().min(to.len());
            to[..len].copy_from_slice(&there[..len]);
            len
        }

        /// The messages among these bytes, four at most.
        fn all(&self, ahead: &mut Ahead, from: usize) -> [Option<Seen>; 4] {
            [(); 4].map(|()| self.next(ahead, from, self.len))
        }
    }

    fn terminate() -> Option<Seen> {
        let terminate = Terminate::new(Cause::NoBuffer, None);
        let received = terminate::Received::decode(terminate.as_bytes());
        Some(Seen::Terminate(received))
    }

    const FIRST: Option<Seen> = Some(Seen::Acknowledge(3));
    const SECOND: Option<Seen> = Some(Seen::Acknowledge(5));

    #[test]
    fn acknowledgements_and_the_terminate_are_seen_once_each() {
        let (stream, mut ahead) = (Stream::new(), Ahead::new(0));
        let want = [FIRST, SECOND, terminate(), None];
        assert_eq!(stream.all(&mut ahead, 0), want);
        assert_eq!(stream.all(&mut ahead, 0), [None; 4]);
    }

    #[test]
    fn a_stream_that_comes_byte_by_byte_shows_the_same() {
        let (stream, mut ahead) = (Stream::new(), Ahead::new(0));
        let (mut seen, mut count) = ([None; 4], 0);
        for until in 0..=stream.len {
            while let Some(message) = stream.next(&mut ahead, 0, until) {
                seen[count] = Some(message);
                count += 1;
            }
        }
        assert_eq!(seen, [FIRST, SECOND, terminate(), None]);
    }

    #[test]
    fn the_look_begins_behind_the_rest_of_what_waits() {
        let stream = Stream::new();
        // The first segment's header is gone.
        let head = mpa::LENGTH_LEN + ddp::UNTAGGED_LEN;
        let ulpdu = u16::from_be_bytes([stream.bytes[0], stream.bytes[1]]);
        let mut ahead = Ahead::new(mpa::fpdu_len(ulpdu) - head);
        let want = [FIRST, SECOND, terminate(), None];
        assert_eq!(stream.all(&mut ahead, head), want);
    }

    #[test]
    fn the_look_goes_on_where_it_was_after_bytes_were_taken() {
        let stream = Stream::new();
        let mut ahead = Ahead::new(0);
        assert_eq!(stream.next(&mut ahead, 0, stream.len), FIRST);
        let place = ahead.at.unwrap_or_default();
        // All that it has passed, or less, may be taken.
        for taken in [0, 1, place] {
            let mut same = ahead.after(taken);
            let next = same
                .as_mut()
                .and_then(|ahead| stream.next(ahead, taken, stream.len));
            assert_eq!(next, SECOND);
        }
        assert_eq!(ahead.after(place + 1), None);
        let end = Ahead { at: None };
        assert_eq!(end.after(7), Some(end));
    }

    #[test]
    fn the_look_ends_with_its_budget_and_goes_on_with_another() {
        let (stream, mut ahead) = (Stream::new(), Ahead::new(0));
        let mut looks = 0;
        let mut seen = [None; 3];
        for seen in &mut seen {
            while seen.is_none() {
                let mut budget = 1;
                let peek = |at: usize, to: &mut [u8]| stream.peek(0, stream.len, at, to);
                *seen = ahead.next(peek, Some(crc), &mut budget);
                assert_eq!(budget, 0);
                looks += 1;
            }
        }
        assert_eq!(seen, [FIRST, SECOND, terminate()]);
        // Two segments and a Write are passed, too.
        assert_eq!(looks, 6);
    }

    #[test]
    fn what_is_too_far_has_its_turn_alone() {
        let (stream, far) = (Stream::new(), Ahead::new(FARTHEST));
        let peek = |at: usize, to: &mut [u8]| stream.peek(0, stream.len, at - FARTHEST, to);
        assert_eq!(far.clone().next(peek, Some(crc), &mut 9), None);
        let mut near = Ahead::new(FARTHEST - 1);
        let peek = |at: usize, to: &mut [u8]| stream.peek(0, stream.len, at - (FARTHEST - 1), to);
        while near.at.is_some_and(|at| at < FARTHEST) {
            assert_eq!(near.next(peek, Some(crc), &mut 1), None);
        }
    }

    #[test]
    fn a_wrong_crc_ends_the_look() {
        let mut stream = Stream::new();
        let last = stream.len - 1;
        stream.bytes[last] ^= 1;
        let mut ahead = Ahead::new(0);
        assert_eq!(stream.all(&mut ahead, 0), [FIRST, SECOND, None, None]);
        stream.bytes[last] ^= 1;
        assert_eq!(stream.all(&mut ahead, 0), [None; 4]);
        assert_eq!(stream.all(&mut Ahead::new(0), 0)[2], terminate());
    }

    #[test]
    fn a_connection_without_crcs_has_none_checked() {
        let mut stream = Stream::new();
        stream.bytes[stream.len - 1] ^= 1;
        let (mut ahead, mut seen) = (Ahead::new(0), None);
        let no_crc: Option<fn(&[u8]) -> u32> = None;
        let peek = |at: usize, to: &mut [u8]| stream.peek(0, stream.len, at, to);
        while let Some(message) = ahead.next(peek, no_crc, &mut 99) {
            seen = Some(message);
        }
        assert_eq!(seen, terminate());
    }

    #[test]
    fn what_cannot_be_ends_the_look() {
        // A length less than that of a header, another version of DDP, and of RDMAP.
        for (at, bytes) in [(0, [0, 3]), (2, [0x03, 0x40]), (2, [0x41, 0x83])] {
            let (mut stream, mut ahead) = (Stream::new(), Ahead::new(0));
            stream.bytes[at..at + 2].copy_from_slice(&bytes);
            assert_eq!(stream.all(&mut ahead, 0), [None; 4]);
            assert_eq!(ahead.at, None);
        }
    }

    #[test]
    fn a_terminate_longer_than_any_has_its_turn_alone() {
        let (mut stream, mut ahead) = (Stream::empty(), Ahead::new(0));
        stream.put(Message::Terminate { len: 4 }, &[0; 4]);
        stream.bytes[..2].copy_from_slice(&2000u16.to_be_bytes());
        assert_eq!(stream.all(&mut ahead, 0), [None; 4]);
        assert_eq!(ahead.at, Some(mpa::fpdu_len(2000)));
    }
}
