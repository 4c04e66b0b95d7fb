// SPDX-License-Identifier: GPL-2.0
// host-test

//! The start-up of a connection, from the first byte to the first FPDU (RFC 5044, 7; RFC 6581, 9).
//!
//! ```text
//! initiator                                   responder
//!     request frame ------------------------>     the consumer decides
//!     terms         <------------ reply frame     or a rejection: the end
//!     first FPDU    ------------------------>     sends from here on
//! ```
//!
//! Each side reads one frame, of [`MOST`] bytes at most, into a [`Frame`], which is resumable at any
//! byte. [`Offer`] is what this side brings; [`Terms`] is what both have settled.
//!
//! Between two ndk, each says so by a flag that no other implementation sets. The reply begins with a
//! [`Token`] then, by which an initiator of the same kernel finds the responder, and the first FPDU
//! of the initiator is an acknowledgement of nothing, so that the responder may send at once. Another
//! initiator may ask to begin with a Write or a Read of no bytes (peer-to-peer mode).
//!
//! Core-only, as the codecs.

use super::mpa::{
    BadStart,
    Enhanced,
    Kind,
    ReadyBy,
    Start,
    ENHANCED_LEN,
    MAX_PRIVATE_DATA,
    MAX_READ_LIMIT,
    START_LEN, //
};

/// The longest frame, in bytes.
const MOST: usize = START_LEN + MAX_PRIVATE_DATA;

/// The length of a [`Token`], in bytes.
pub(crate) const TOKEN_LEN: usize = 16;

/// Names the accept of a responder that is ndk: random bytes, which another cannot guess.
pub(crate) type Token = [u8; TOKEN_LEN];

/// The most private data of a consumer that a request has room for, in bytes: siw takes no frame with
/// more than 256.
pub(crate) const MAX_REQUEST_DATA: usize = 256 - ENHANCED_LEN;

/// The most private data of a consumer that a reply has room for, in bytes.
pub(crate) const MAX_REPLY_DATA: usize = MAX_REQUEST_DATA - TOKEN_LEN;

/// The most private data of a peer's consumer that a consumer can be given, in bytes: a length is a
/// byte in `struct iw_cm_event`.
pub(crate) const MAX_PEER_DATA: usize = 255;

/// A frame of the peer, as it comes.
pub(crate) struct Frame {
    kind: Kind,
    bytes: [u8; MOST],
    have: usize,
    /// The fixed part, once it is there.
    start: Option<Start>,
}

impl Frame {
    /// No byte has come.
    pub(crate) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            bytes: [0; MOST],
            have: 0,
            start: None,
        }
    }

    /// The length of the frame, as far as it is known, in bytes.
    fn len(&self) -> usize {
        START_LEN + self.start.map_or(0, |start| start.private_data)
    }

    /// The place of the next bytes; empty if the frame is whole.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let len = self.len();
        &mut self.bytes[self.have..len]
    }

    /// Notes that the first `count` bytes of [`Self::room`] are filled. Returns true if the frame is
    /// whole: what follows belongs to the stream of FPDUs.
    ///
    /// # Errors
    ///
    /// The frame cannot become one that is expected; known from the first wrong byte on.
    pub(crate) fn filled(&mut self, count: usize) -> Result<bool, BadStart> {
        self.have = (self.have + count).min(self.len());
        if self.start.is_none() {
            let first = &self.bytes[..self.have];
            if !Start::may_become(self.kind, first) {
                return Err(BadStart::Key);
            }
            if let Some(fixed) = first.first_chunk::<START_LEN>() {
                self.start = Some(Start::decode(self.kind, fixed)?);
            }
        }
        Ok(self.start.is_some() && self.have == self.len())
    }

    /// The fixed part and the private data of a whole frame.
    fn parts(&self) -> Option<(Start, &[u8])> {
        let (start, len) = (self.start?, self.len());
        let data = self.bytes.get(START_LEN..len)?;
        (self.have == len).then_some((start, data))
    }

    /// The read limits and the private data behind them.
    fn enhanced(start: &Start, data: &[u8]) -> (Option<Enhanced>, usize) {
        match data.first_chunk::<ENHANCED_LEN>() {
            Some(bytes) if start.enhanced => (Some(Enhanced::decode(*bytes)), ENHANCED_LEN),
            _ => (None, 0),
        }
    }
}

/// A frame to send.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    bytes: [u8; MOST],
    len: usize,
}

impl Written {
    /// The frame of these parts; `None` if it is too long.
    fn new(start: Start, parts: &[&[u8]]) -> Option<Self> {
        let private_data = parts.iter().map(|part| part.len()).sum();
        let start = Start {
            private_data,
            ..start
        };
        let mut written = Self {
            bytes: [0; MOST],
            len: 0,
        };
        written.put(&start.encode()?)?;
        for part in parts {
            written.put(part)?;
        }
        Some(written)
    }

    fn put(&mut self, part: &[u8]) -> Option<()> {
        let end = self.len.checked_add(part.len())?;
        self.bytes.get_mut(self.len..end)?.copy_from_slice(part);
        self.len = end;
        Some(())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The reads that one side serves, and has outstanding, at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    pub(crate) inbound: u32,
    pub(crate) outbound: u32,
}

impl Reads {
    fn of(enhanced: &Enhanced) -> Option<Self> {
        Some(Self {
            inbound: enhanced.inbound_reads?.into(),
            outbound: enhanced.outbound_reads?.into(),
        })
    }

    fn encode(self, peer_to_peer: bool, ready_by: ReadyBy) -> [u8; ENHANCED_LEN] {
        // CAST: just compared.
        let limit = |limit: u32| Some(limit.min(MAX_READ_LIMIT.into()) as u16);
        let enhanced = Enhanced {
            inbound_reads: limit(self.inbound),
            outbound_reads: limit(self.outbound),
            peer_to_peer,
            ready_by,
        };
        enhanced.encode()
    }
}

/// The wishes of one side for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) reads: Reads,
    /// This side demands CRCs.
    pub(crate) crc: bool,
    /// This side says that it is ndk.
    pub(crate) extended: bool,
}

/// The first FPDU of the initiator, before any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// That of its first request.
    Request,
    /// An acknowledgement of nothing, between two ndk.
    Acknowledge,
    /// A Write of no bytes.
    Write,
    /// A Read of no bytes.
    Read,
}

/// The properties of a connection that both sides have settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) crc: bool,
    /// Both sides are ndk.
    pub(crate) extended: bool,
    /// The limits of the peer, as it names them; `None` if it leaves them to the consumers.
    pub(crate) reads: Option<Reads>,
    pub(crate) first: First,
}

/// A peer that this side cannot connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It demands markers.
    Markers,
    /// Its reply has no CRCs, which this side demands.
    NoCrc,
    /// Its reply is of another revision than the request, or has no read limits.
    Revision,
    /// Its private data is longer than [`MAX_PEER_DATA`].
    LongData,
    /// The frame is not whole, or too short for its kind.
    Short,
}

/// The request frame of this side. `None` for more than [`MAX_REQUEST_DATA`] bytes.
pub(crate) fn request(offer: &Offer, private_data: &[u8]) -> Option<Written> {
    if private_data.len() > MAX_REQUEST_DATA {
        return None;
    }
    let start = Start {
        kind: Kind::Request,
        markers: false,
        crc: offer.crc,
        rejected: false,
        revision: 2,
        enhanced: true,
        ndk: offer.extended,
        private_data: 0,
    };
    let reads = offer.reads.encode(false, ReadyBy::default());
    Written::new(start, &[&reads, private_data])
}

/// The request of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    start: Start,
    enhanced: Option<Enhanced>,
    extended: bool,
}

impl Request {
    /// Judges a whole request frame: the request, and its private data. A peer that is unfit gets the
    /// answer of [`Request::reject`]. `None` if the frame is not whole.
    pub(crate) fn read<'a>(
        frame: &'a Frame,
        offer: &Offer,
    ) -> Option<(Self, Result<&'a [u8], Unfit>)> {
        let (start, data) = frame.parts()?;
        let (enhanced, at) = Frame::enhanced(&start, data);
        let request = Self {
            start,
            enhanced,
            extended: start.ndk && offer.extended && start.enhanced,
        };
        let data = data.get(at..).unwrap_or_default();
        let judged = match start.markers {
            true => Err(Unfit::Markers),
            false if data.len() > MAX_PEER_DATA => Err(Unfit::LongData),
            false => Ok(data),
        };
        Some((request, judged))
    }

    /// The first FPDU that the peer will send.
    fn first(&self) -> First {
        let by = self.enhanced.filter(|enhanced| enhanced.peer_to_peer);
        match by.map(|enhanced| enhanced.ready_by) {
            _ if self.extended => First::Acknowledge,
            // A Send would take a receive of the consumer.
            Some(ReadyBy {
                write: false,
                read: true,
                ..
            }) => First::Read,
            Some(_) => First::Write,
            None => First::Request,
        }
    }

    /// The terms of a connection that this side accepts.
    pub(crate) fn terms(&self, offer: &Offer) -> Terms {
        Terms {
            crc: self.start.crc || offer.crc,
            extended: self.extended,
            reads: self.enhanced.as_ref().and_then(Reads::of),
            first: self.first(),
        }
    }

    /// The reply frame that accepts. `None` for more than [`MAX_REPLY_DATA`] bytes.
    pub(crate) fn accept(
        &self,
        offer: &Offer,
        token: &Token,
        private_data: &[u8],
    ) -> Option<Written> {
        self.reply(offer, false, Some(token), private_data)
    }

    /// The reply frame that rejects. `None` for more than [`MAX_REPLY_DATA`] bytes.
    pub(crate) fn reject(&self, offer: &Offer, private_data: &[u8]) -> Option<Written> {
        self.reply(offer, true, None, private_data)
    }

    fn reply(
        &self,
        offer: &Offer,
        rejected: bool,
        token: Option<&Token>,
        private_data: &[u8],
    ) -> Option<Written> {
        if private_data.len() > MAX_REPLY_DATA {
            return None;
        }
        let start = Start {
            kind: Kind::Reply,
            // Those of the request would be taken for a demand.
            markers: false,
            crc: self.start.crc || offer.crc,
            rejected,
            revision: self.start.revision,
            enhanced: self.enhanced.is_some(),
            ndk: self.extended,
            private_data: 0,
        };
        let first = self.first();
        let ready_by = ReadyBy {
            send: false,
            write: first == First::Write,
            read: first == First::Read,
        };
        let is_peer_to_peer = self.enhanced.is_some_and(|enhanced| enhanced.peer_to_peer);
        let theirs = self.enhanced.and_then(|enhanced| enhanced.inbound_reads);
        let outbound = theirs.map_or(u32::MAX, u32::from);
        let reads = Reads {
            // An initiator may refuse one that wants more than it serves.
            outbound: offer.reads.outbound.min(outbound),
            ..offer.reads
        };
        let reads = reads.encode(is_peer_to_peer, ready_by);
        let reads = self.enhanced.map_or(&[][..], |_| &reads[..]);
        let token = token
            .filter(|_| self.extended)
            .map_or(&[][..], |token| &token[..]);
        Written::new(start, &[reads, token, private_data])
    }
}

/// The reply of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    Accepted {
        terms: Terms,
        /// Present if the peer is ndk.
        token: Option<Token>,
        private_data: &'a [u8],
    },
    Rejected {
        private_data: &'a [u8],
    },
}

impl<'a> Reply<'a> {
    /// Judges a whole reply frame to the request of this `offer`.
    pub(crate) fn read(frame: &'a Frame, offer: &Offer) -> Result<Self, Unfit> {
        let (start, data) = frame.parts().ok_or(Unfit::Short)?;
        let (enhanced, at) = Frame::enhanced(&start, data);
        let data = data.get(at..).unwrap_or_default();
        if start.rejected {
            let private_data = Some(data).filter(|data| data.len() <= MAX_PEER_DATA);
            return Ok(Self::Rejected {
                private_data: private_data.unwrap_or_default(),
            });
        }
        if start.markers {
            return Err(Unfit::Markers);
        }
        if offer.crc && !start.crc {
            return Err(Unfit::NoCrc);
        }
        let Some(enhanced) = enhanced.filter(|_| start.revision == 2) else {
            return Err(Unfit::Revision);
        };
        let extended = offer.extended && start.ndk;
        let (token, private_data) = match data.split_first_chunk::<TOKEN_LEN>() {
            Some((token, rest)) if extended => (Some(*token), rest),
            None if extended => return Err(Unfit::Short),
            _ => (None, data),
        };
        if private_data.len() > MAX_PEER_DATA {
            return Err(Unfit::LongData);
        }
        let terms = Terms {
            crc: start.crc,
            extended,
            reads: Reads::of(&enhanced),
            first: match extended {
                true => First::Acknowledge,
                false => First::Request,
            },
        };
        Ok(Self::Accepted {
            terms,
            token,
            private_data,
        })
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_opening))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    /// A step of a test has no result for the next one. No test panics: they run in the kernel, too.
    #[derive(Debug)]
    struct Stopped;

    impl From<BadStart> for Stopped {
        fn from(_: BadStart) -> Self {
            Self
        }
    }

    const OURS: Offer = Offer {
        reads: Reads {
            inbound: 128,
            outbound: 16,
        },
        crc: true,
        extended: true,
    };
    const THEIRS: Offer = Offer {
        reads: Reads {
            inbound: 4,
            outbound: 8,
        },
        ..OURS
    };
    const TOKEN: Token = *b"sixteen letters.";

    /// The frame that these bytes make, given `most` at a time; the bytes behind it are not taken.
    fn whole(kind: Kind, bytes: &[u8], most: usize) -> Result<Frame, BadStart> {
        let (mut frame, mut at) = (Frame::new(kind), 0);
        loop {
            let room = frame.room();
            let len = room.len().min(most).min(bytes.len() - at);
            room[..len].copy_from_slice(&bytes[at..at + len]);
            at += len;
            if frame.filled(len)? || len == 0 {
                return Ok(frame);
            }
        }
    }

    /// A request of that offer, as the other side reads it.
    fn asked(offer: &Offer, private_data: &[u8]) -> Option<Request> {
        let written = request(offer, private_data)?;
        let frame = whole(Kind::Request, written.as_bytes(), MOST).ok()?;
        let (request, data) = Request::read(&frame, &THEIRS)?;
        (data == Ok(private_data)).then_some(request)
    }

    /// A request frame with these flags and revision, and that private data.
    fn foreign(flags: u8, revision: u8, data: &[u8]) -> Option<Written> {
        let mut written = Written {
            bytes: [0; MOST],
            len: 0,
        };
        // CAST: small numbers.
        let parts: [&[u8]; 3] = [
            b"MPA ID Req Frame",
            &[flags, revision, 0, data.len() as u8],
            data,
        ];
        for part in parts {
            written.put(part)?;
        }
        Some(written)
    }

    fn read_foreign(flags: u8, revision: u8, data: &[u8]) -> Option<Request> {
        let written = foreign(flags, revision, data)?;
        let frame = whole(Kind::Request, written.as_bytes(), MOST).ok()?;
        let (request, data) = Request::read(&frame, &THEIRS)?;
        data.is_ok().then_some(request)
    }

    #[test]
    fn two_ndk_settle_the_same_terms_whatever_pieces_the_frames_come_in() -> Result<(), Stopped> {
        for most in [1, 7, 20, MOST] {
            let written = request(&OURS, b"hello").ok_or(Stopped)?;
            let frame = whole(Kind::Request, written.as_bytes(), most)?;
            let (asked, data) = Request::read(&frame, &THEIRS).ok_or(Stopped)?;
            assert_eq!(data, Ok(&b"hello"[..]));
            let terms = Terms {
                crc: true,
                extended: true,
                reads: Some(OURS.reads),
                first: First::Acknowledge,
            };
            assert_eq!(asked.terms(&THEIRS), terms);
            let written = asked.accept(&THEIRS, &TOKEN, b"welcome").ok_or(Stopped)?;
            let frame = whole(Kind::Reply, written.as_bytes(), most)?;
            let accepted = Reply::Accepted {
                terms: Terms {
                    reads: Some(THEIRS.reads),
                    ..terms
                },
                token: Some(TOKEN),
                private_data: b"welcome",
            };
            assert_eq!(Reply::read(&frame, &OURS), Ok(accepted));
        }
        Ok(())
    }

    #[test]
    fn bytes_behind_a_frame_are_left_to_the_stream() -> Result<(), Stopped> {
        let written = request(&OURS, &[]).ok_or(Stopped)?;
        let mut bytes = [7; 64];
        let len = written.as_bytes().len();
        bytes[..len].copy_from_slice(written.as_bytes());
        let mut frame = whole(Kind::Request, &bytes, 9)?;
        assert_eq!(frame.room(), &[]);
        assert_eq!(frame.have, len);
        Ok(())
    }

    #[test]
    fn a_stream_of_another_kind_is_known_by_its_first_wrong_byte() {
        for (kind, bytes) in [
            (Kind::Request, &b"GET / HTTP/1.1\r\n"[..1]),
            (Kind::Request, &b"MPA ID Rep"[..]),
            (Kind::Reply, &b"MPA ID Req"[..]),
        ] {
            assert_eq!(whole(kind, bytes, 1).err(), Some(BadStart::Key));
        }
        let long = {
            let mut bytes = *b"MPA ID Req Frame\x10\x02\x02\x01";
            let long = whole(Kind::Request, &bytes, MOST).err();
            bytes[18..].copy_from_slice(&[0, 3]);
            assert_eq!(
                whole(Kind::Request, &bytes, MOST).err(),
                Some(BadStart::Length)
            );
            long
        };
        assert_eq!(long, Some(BadStart::Length));
    }

    #[test]
    fn a_side_that_says_nothing_of_ndk_gets_nothing_of_it() -> Result<(), Stopped> {
        for (ours, theirs) in [(true, false), (false, true)] {
            let ours = Offer {
                extended: ours,
                ..OURS
            };
            let theirs = Offer {
                extended: theirs,
                ..THEIRS
            };
            let written = request(&ours, b"hello").ok_or(Stopped)?;
            let frame = whole(Kind::Request, written.as_bytes(), MOST)?;
            let (asked, _) = Request::read(&frame, &theirs).ok_or(Stopped)?;
            assert!(!asked.terms(&theirs).extended);
            let written = asked.accept(&theirs, &TOKEN, b"welcome").ok_or(Stopped)?;
            let frame = whole(Kind::Reply, written.as_bytes(), MOST)?;
            let accepted = Reply::Accepted {
                terms: Terms {
                    crc: true,
                    extended: false,
                    reads: Some(theirs.reads),
                    first: First::Request,
                },
                token: None,
                private_data: b"welcome",
            };
            assert_eq!(Reply::read(&frame, &ours), Ok(accepted));
        }
        Ok(())
    }

    #[test]
    fn a_responder_that_repeats_the_flags_is_not_taken_for_ndk() -> Result<(), Stopped> {
        // The request's frame with another key, as siw does, which sets its own limits then.
        let written = request(&OURS, &[]).ok_or(Stopped)?;
        let mut bytes = [0; START_LEN + ENHANCED_LEN];
        bytes.copy_from_slice(written.as_bytes());
        bytes[..16].copy_from_slice(b"MPA ID Rep Frame");
        let frame = whole(Kind::Reply, &bytes, MOST)?;
        let Ok(Reply::Accepted { terms, token, .. }) = Reply::read(&frame, &OURS) else {
            return Err(Stopped);
        };
        assert!(terms.crc);
        assert!(!terms.extended);
        assert_eq!(token, None);
        assert_eq!(terms.reads, Some(OURS.reads));
        Ok(())
    }

    #[test]
    fn a_rejection_carries_the_words_of_the_consumer() -> Result<(), Stopped> {
        let asked = asked(&OURS, &[]).ok_or(Stopped)?;
        let written = asked.reject(&THEIRS, b"no").ok_or(Stopped)?;
        let frame = whole(Kind::Reply, written.as_bytes(), 3)?;
        let rejected = Reply::Rejected {
            private_data: b"no",
        };
        assert_eq!(Reply::read(&frame, &OURS), Ok(rejected));
        // One without limits.
        let bytes = *b"MPA ID Rep Frame\x20\x02\x00\x00";
        let frame = whole(Kind::Reply, &bytes, MOST)?;
        let rejected = Reply::Rejected { private_data: b"" };
        assert_eq!(Reply::read(&frame, &OURS), Ok(rejected));
        Ok(())
    }

    #[test]
    fn markers_are_refused_by_either_side() -> Result<(), Stopped> {
        let written = foreign(0x80, 1, b"x").ok_or(Stopped)?;
        let frame = whole(Kind::Request, written.as_bytes(), MOST)?;
        let (asked, judged) = Request::read(&frame, &THEIRS).ok_or(Stopped)?;
        assert_eq!(judged, Err(Unfit::Markers));
        let rejection = asked.reject(&THEIRS, &[]).ok_or(Stopped)?;
        assert_eq!(rejection.as_bytes(), b"MPA ID Rep Frame\x60\x01\x00\x00");
        let bytes = *b"MPA ID Rep Frame\xd0\x02\x00\x04\0\0\0\0";
        let frame = whole(Kind::Reply, &bytes, MOST)?;
        assert_eq!(Reply::read(&frame, &OURS), Err(Unfit::Markers));
        Ok(())
    }

    #[test]
    fn crcs_are_there_if_either_side_demands_them() -> Result<(), Stopped> {
        for (asks, has) in [(false, false), (true, false), (false, true)] {
            let (ours, theirs) = (Offer { crc: asks, ..OURS }, Offer { crc: has, ..THEIRS });
            let asked = asked(&ours, &[]).ok_or(Stopped)?;
            assert_eq!(asked.terms(&theirs).crc, asks || has);
            let written = asked.accept(&theirs, &TOKEN, &[]).ok_or(Stopped)?;
            let frame = whole(Kind::Reply, written.as_bytes(), MOST)?;
            let Ok(Reply::Accepted { terms, .. }) = Reply::read(&frame, &ours) else {
                return Err(Stopped);
            };
            assert_eq!(terms.crc, asks || has);
        }
        let bytes = *b"MPA ID Rep Frame\x10\x02\x00\x04\0\0\0\0";
        let frame = whole(Kind::Reply, &bytes, MOST)?;
        assert_eq!(Reply::read(&frame, &OURS), Err(Unfit::NoCrc));
        Ok(())
    }

    #[test]
    fn a_peer_of_revision_1_leaves_the_limits_to_the_consumers() -> Result<(), Stopped> {
        let asked = read_foreign(0, 1, b"data").ok_or(Stopped)?;
        let terms = Terms {
            crc: true,
            extended: false,
            reads: None,
            first: First::Request,
        };
        assert_eq!(asked.terms(&THEIRS), terms);
        let reply = asked.accept(&THEIRS, &TOKEN, b"ok").ok_or(Stopped)?;
        assert_eq!(reply.as_bytes(), b"MPA ID Rep Frame\x40\x01\x00\x02ok");
        // This side asks with limits: a reply without any is none to that.
        for bytes in [
            *b"MPA ID Rep Frame\x40\x01\x00\x00",
            *b"MPA ID Rep Frame\x40\x02\x00\x00",
        ] {
            let frame = whole(Kind::Reply, &bytes, MOST)?;
            assert_eq!(Reply::read(&frame, &OURS), Err(Unfit::Revision));
        }
        Ok(())
    }

    #[test]
    fn a_limit_that_a_peer_leaves_open_leaves_all_open() -> Result<(), Stopped> {
        let asked = read_foreign(0x10, 2, &[0x3f, 0xff, 0, 1]).ok_or(Stopped)?;
        assert_eq!(asked.terms(&THEIRS).reads, None);
        Ok(())
    }

    #[test]
    fn the_first_message_of_a_peer_to_peer_connection_is_one_that_the_peer_knows(
    ) -> Result<(), Stopped> {
        // Of peer-to-peer mode, Send, Write and Read: the first FPDU, and the reply's words for it.
        for (data, first, reply) in [
            ([0x80, 1, 0, 1], First::Write, [0x80, 4, 0x80, 1]),
            ([0xc0, 1, 0, 1], First::Write, [0x80, 4, 0x80, 1]),
            ([0x80, 1, 0x40, 1], First::Read, [0x80, 4, 0x40, 1]),
            ([0x80, 1, 0xc0, 1], First::Write, [0x80, 4, 0x80, 1]),
            ([0, 1, 0xc0, 1], First::Request, [0, 4, 0, 1]),
        ] {
            let asked = read_foreign(0x50, 2, &data).ok_or(Stopped)?;
            assert_eq!(asked.terms(&THEIRS).first, first);
            let written = asked.accept(&THEIRS, &TOKEN, &[]).ok_or(Stopped)?;
            assert_eq!(&written.as_bytes()[START_LEN..], &reply);
        }
        Ok(())
    }

    #[test]
    fn private_data_has_the_room_that_each_peer_takes() -> Result<(), Stopped> {
        let data = [1; MAX_REQUEST_DATA + 1];
        assert!(request(&OURS, &data).is_none());
        let written = request(&OURS, &data[1..]).ok_or(Stopped)?;
        assert_eq!(written.as_bytes().len(), START_LEN + 256);
        let asked = asked(&OURS, &data[1..]).ok_or(Stopped)?;
        assert!(asked
            .accept(&THEIRS, &TOKEN, &data[..MAX_REPLY_DATA + 1])
            .is_none());
        assert!(asked.reject(&THEIRS, &data[..MAX_REPLY_DATA + 1]).is_none());
        let written = asked
            .accept(&THEIRS, &TOKEN, &data[..MAX_REPLY_DATA])
            .ok_or(Stopped)?;
        assert_eq!(written.as_bytes().len(), START_LEN + 256);
        // The longest that a consumer can be given, and the longest frame.
        for (len, judged) in [
            (255, None),
            (256, Some(Unfit::LongData)),
            (512, Some(Unfit::LongData)),
        ] {
            let mut bytes = [0; MOST];
            bytes[..START_LEN].copy_from_slice(b"MPA ID Req Frame\x00\x01\x00\x00");
            // CAST: at most 512.
            bytes[18..START_LEN].copy_from_slice(&(len as u16).to_be_bytes());
            let frame = whole(Kind::Request, &bytes[..START_LEN + len], 100)?;
            let (_, data) = Request::read(&frame, &THEIRS).ok_or(Stopped)?;
            assert_eq!(data.err(), judged);
            bytes[..16].copy_from_slice(b"MPA ID Rep Frame");
            bytes[16..18].copy_from_slice(&[0x20, 2]);
            let frame = whole(Kind::Reply, &bytes[..START_LEN + len], 100)?;
            let Ok(Reply::Rejected { private_data }) = Reply::read(&frame, &OURS) else {
                return Err(Stopped);
            };
            assert_eq!(private_data.len(), if len > 255 { 0 } else { len });
        }
        let mut bytes = [0; START_LEN + ENHANCED_LEN + 256];
        bytes[..START_LEN].copy_from_slice(b"MPA ID Rep Frame\x50\x02\x01\x04");
        let frame = whole(Kind::Reply, &bytes, 100)?;
        assert_eq!(Reply::read(&frame, &OURS), Err(Unfit::LongData));
        Ok(())
    }

    #[test]
    fn a_frame_that_is_not_whole_is_none() -> Result<(), Stopped> {
        let written = request(&OURS, b"hello").ok_or(Stopped)?;
        let bytes = written.as_bytes();
        for len in [0, 1, START_LEN, bytes.len() - 1] {
            let frame = whole(Kind::Request, &bytes[..len], MOST)?;
            assert!(Request::read(&frame, &THEIRS).is_none());
        }
        Ok(())
    }
}
