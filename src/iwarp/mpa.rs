// SPDX-License-Identifier: GPL-2.0
// host-test

//! MPA (RFC 5044, and RFC 6581 for the enhanced start-up): start-up frames, and FPDUs.
//!
//! Start-up: the initiator sends a request frame, the responder a reply frame. Either frame is
//! [`START_LEN`] bytes, then the private data. Afterwards the stream consists of FPDUs. An FPDU
//! carries one ULPDU: length, ULPDU, padding to a multiple of four, CRC32C.
//!
//! ndk asks for no markers and makes none. RFC 5044 lets a receiver demand them; a start-up frame
//! that does so is answered as siw answers it, by a refusal.

/// Length of a start-up frame without its private data, in bytes (RFC 5044, 7.1).
pub(crate) const START_LEN: usize = 20;

/// The most private data that a frame may carry, in bytes (RFC 5044, 7.1).
pub(crate) const MAX_PRIVATE_DATA: usize = 512;

/// Length of [`Enhanced`] at the start of the private data, in bytes (RFC 6581, 7).
pub(crate) const ENHANCED_LEN: usize = 4;

/// The largest read limit that [`Enhanced`] can carry (RFC 6581, 7).
pub(crate) const MAX_READ_LIMIT: u16 = NO_READ_LIMIT - 1;

/// The value of a limit that the two consumers settle by themselves (RFC 6581, 7).
const NO_READ_LIMIT: u16 = 0x3fff;

/// Length of the length field before a ULPDU, in bytes (RFC 5044, 4.1).
pub(crate) const LENGTH_LEN: usize = 2;

/// Length of the CRC after the padding, in bytes (RFC 5044, 4.1).
pub(crate) const CRC_LEN: usize = 4;

const KEY_LEN: usize = 16;
const REQUEST_KEY: [u8; KEY_LEN] = *b"MPA ID Req Frame";
const REPLY_KEY: [u8; KEY_LEN] = *b"MPA ID Rep Frame";

const MARKERS: u8 = 0x80;
const CRC: u8 = 0x40;
const REJECT: u8 = 0x20;
const ENHANCED: u8 = 0x10;
// The two bits are reserved in RFC 5044 and RFC 6581. A responder that copies the request's flags
// into its reply, as siw does, sets the request's bit there, and not the reply's.
const NDK_REQUEST: u8 = 0x04;
const NDK_REPLY: u8 = 0x02;

/// The direction of a start-up frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From the initiator of the connection.
    Request,
    /// The responder's answer.
    Reply,
}

impl Kind {
    const fn key(self) -> &'static [u8; KEY_LEN] {
        match self {
            Self::Request => &REQUEST_KEY,
            Self::Reply => &REPLY_KEY,
        }
    }

    const fn ndk(self) -> u8 {
        match self {
            Self::Request => NDK_REQUEST,
            Self::Reply => NDK_REPLY,
        }
    }
}

/// A start-up frame that cannot be accepted (RFC 5044, 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadStart {
    /// The first 16 bytes are not the key of the expected frame.
    Key,
    /// The revision is neither 1 nor 2.
    Revision,
    /// More private data than [`MAX_PRIVATE_DATA`], or not even [`Enhanced`] in a frame that
    /// announces it.
    Length,
}

/// The fixed part of a start-up frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) kind: Kind,
    /// The sender demands markers in what it receives.
    pub(crate) markers: bool,
    /// The sender demands CRCs in both directions.
    pub(crate) crc: bool,
    /// The responder rejects the connection; no meaning in a request.
    pub(crate) rejected: bool,
    /// 1, or 2 of a peer that knows [`Enhanced`] (RFC 6581). A reply repeats it.
    pub(crate) revision: u8,
    /// The private data begins with [`Enhanced`]; not in revision 1.
    pub(crate) enhanced: bool,
    /// The sender is ndk, and offers or accepts the messages that RFC 5040 does not have.
    pub(crate) ndk: bool,
    /// Length of the private data that follows, [`Enhanced`] included, in bytes.
    pub(crate) private_data: usize,
}

impl Start {
    /// Encodes the frame; `None` for one that [`Self::decode`] would refuse.
    pub(crate) fn encode(&self) -> Option<[u8; START_LEN]> {
        let least = if self.enhanced { ENHANCED_LEN } else { 0 };
        if !(least..=MAX_PRIVATE_DATA).contains(&self.private_data)
            || !(1..=2).contains(&self.revision)
            || self.enhanced && self.revision == 1
        {
            return None;
        }
        let mut flags = 0;
        for (set, bit) in [
            (self.markers, MARKERS),
            (self.crc, CRC),
            (self.rejected, REJECT),
            (self.enhanced, ENHANCED),
            (self.ndk, self.kind.ndk()),
        ] {
            flags |= if set { bit } else { 0 };
        }
        // CAST: at most 512.
        let length = (self.private_data as u16).to_be_bytes();
        let mut frame = [0; START_LEN];
        frame[..KEY_LEN].copy_from_slice(self.kind.key());
        frame[KEY_LEN..].copy_from_slice(&[flags, self.revision, length[0], length[1]]);
        Some(frame)
    }

    /// Decodes a frame of the expected kind. Unknown flags are ignored (RFC 5044, 7.1: reserved
    /// bits are not checked).
    pub(crate) fn decode(kind: Kind, frame: &[u8; START_LEN]) -> Result<Self, BadStart> {
        let (key, rest) = frame.split_at(KEY_LEN);
        if key != kind.key() {
            return Err(BadStart::Key);
        }
        let (flags, revision) = (rest[0], rest[1]);
        let private_data = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if !(1..=2).contains(&revision) {
            return Err(BadStart::Revision);
        }
        let enhanced = revision == 2 && flags & ENHANCED != 0;
        if private_data > MAX_PRIVATE_DATA || enhanced && private_data < ENHANCED_LEN {
            return Err(BadStart::Length);
        }
        Ok(Self {
            kind,
            markers: flags & MARKERS != 0,
            crc: flags & CRC != 0,
            rejected: flags & REJECT != 0,
            revision,
            enhanced,
            ndk: flags & kind.ndk() != 0,
            private_data,
        })
    }

    /// Returns true if the first bytes of a frame, at most [`START_LEN`], can still become a frame
    /// of this kind. A receiver need not wait for the rest of a stream that is not MPA.
    pub(crate) fn may_become(kind: Kind, first: &[u8]) -> bool {
        first
            .iter()
            .zip(kind.key())
            .all(|(is, expected)| is == expected)
    }
}

/// The read limits and the first message of a connection (RFC 6581, 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enhanced {
    /// Reads that the sender of the frame serves at a time (IRD); `None` leaves that to the consumers.
    pub(crate) inbound_reads: Option<u16>,
    /// Reads that the sender of the frame will have under way at a time (ORD).
    pub(crate) outbound_reads: Option<u16>,
    /// Both sides may send first: the initiator begins with a ready-to-receive indication.
    pub(crate) peer_to_peer: bool,
    /// The ready-to-receive indication may be a Send, a Write or a Read of no bytes.
    pub(crate) ready_by: ReadyBy,
}

/// Kinds of the ready-to-receive indication (RFC 6581, 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadyBy {
    pub(crate) send: bool,
    pub(crate) write: bool,
    pub(crate) read: bool,
}

const HIGH: u16 = 0x8000;
const LOW: u16 = 0x4000;

fn half(limit: Option<u16>, high: bool, low: bool) -> [u8; 2] {
    let limit = limit.map_or(NO_READ_LIMIT, |limit| limit.min(MAX_READ_LIMIT));
    (limit | if high { HIGH } else { 0 } | if low { LOW } else { 0 }).to_be_bytes()
}

fn limit(half: u16) -> Option<u16> {
    Some(half & NO_READ_LIMIT).filter(|limit| *limit != NO_READ_LIMIT)
}

impl Enhanced {
    /// Encodes the parameters; a limit above [`MAX_READ_LIMIT`] becomes that.
    pub(crate) fn encode(&self) -> [u8; ENHANCED_LEN] {
        let inbound = half(self.inbound_reads, self.peer_to_peer, self.ready_by.send);
        let outbound = half(self.outbound_reads, self.ready_by.write, self.ready_by.read);
        [inbound[0], inbound[1], outbound[0], outbound[1]]
    }

    /// Decodes the parameters; every value has a meaning.
    pub(crate) fn decode(bytes: [u8; ENHANCED_LEN]) -> Self {
        let inbound = u16::from_be_bytes([bytes[0], bytes[1]]);
        let outbound = u16::from_be_bytes([bytes[2], bytes[3]]);
        Self {
            inbound_reads: limit(inbound),
            outbound_reads: limit(outbound),
            peer_to_peer: inbound & HIGH != 0,
            ready_by: ReadyBy {
                send: inbound & LOW != 0,
                write: outbound & HIGH != 0,
                read: outbound & LOW != 0,
            },
        }
    }
}

/// Padding after a ULPDU, in bytes: length field, ULPDU and padding are a multiple of four
/// together (RFC 5044, 4.1).
pub(crate) const fn padding(ulpdu: u16) -> usize {
    // CAST: widening.
    (LENGTH_LEN + ulpdu as usize).wrapping_neg() % 4
}

/// Length of a whole FPDU, in bytes.
pub(crate) const fn fpdu_len(ulpdu: u16) -> usize {
    // CAST: widening.
    LENGTH_LEN + ulpdu as usize + padding(ulpdu) + CRC_LEN
}

/// The largest ULPDU whose FPDU fits `room` bytes (RFC 5044, 4.5: MULPDU, `room` being the EMSS);
/// 0 if none fits.
pub(crate) const fn max_ulpdu(room: usize) -> u16 {
    let whole = room - room % 4;
    let ulpdu = whole.saturating_sub(LENGTH_LEN + CRC_LEN);
    // The length field and no padding make a multiple of four of the largest: 65534.
    if ulpdu > 0xfffe {
        0xfffe
    } else {
        // CAST: just compared.
        ulpdu as u16
    }
}

/// Padding and CRC of an FPDU, as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    bytes: [u8; 3 + CRC_LEN],
    len: usize,
}

impl Trailer {
    /// The trailer after a ULPDU of this length. `crc` is CRC32C over length field, ULPDU and
    /// padding, or 0 where the connection has no CRCs. The CRC is sent as iSCSI sends its digests,
    /// the low byte first (RFC 5044, 4.4).
    pub(crate) fn new(ulpdu: u16, crc: u32) -> Self {
        let pad = padding(ulpdu);
        let mut bytes = [0; 3 + CRC_LEN];
        bytes[pad..pad + CRC_LEN].copy_from_slice(&crc.to_le_bytes());
        Self {
            bytes,
            len: pad + CRC_LEN,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The CRC that an FPDU carries.
pub(crate) const fn crc(bytes: [u8; CRC_LEN]) -> u32 {
    u32::from_le_bytes(bytes)
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_mpa))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    const PLAIN: Start = Start {
        kind: Kind::Request,
        markers: false,
        crc: false,
        rejected: false,
        revision: 1,
        enhanced: false,
        ndk: false,
        private_data: 0,
    };

    const ENHANCED_PLAIN: Start = Start {
        revision: 2,
        enhanced: true,
        private_data: 4,
        ..PLAIN
    };

    fn frame(key: &[u8; KEY_LEN], rest: [u8; 4]) -> [u8; START_LEN] {
        let mut frame = [0; START_LEN];
        frame[..KEY_LEN].copy_from_slice(key);
        frame[KEY_LEN..].copy_from_slice(&rest);
        frame
    }

    #[test]
    fn frames_have_the_bytes_of_the_rfc() {
        let table = [
            (PLAIN, [0, 1, 0, 0]),
            (
                Start {
                    markers: true,
                    ..PLAIN
                },
                [0x80, 1, 0, 0],
            ),
            (
                Start {
                    crc: true,
                    private_data: 300,
                    ..PLAIN
                },
                [0x40, 1, 1, 44],
            ),
            (ENHANCED_PLAIN, [0x10, 2, 0, 4]),
            (Start { ndk: true, ..PLAIN }, [0x04, 1, 0, 0]),
            (
                Start {
                    kind: Kind::Reply,
                    ndk: true,
                    ..PLAIN
                },
                [0x02, 1, 0, 0],
            ),
            (
                Start {
                    kind: Kind::Reply,
                    rejected: true,
                    private_data: 512,
                    ..PLAIN
                },
                [0x20, 1, 2, 0],
            ),
        ];
        for (start, rest) in table {
            let expected = frame(start.kind.key(), rest);
            assert_eq!(start.encode(), Some(expected));
            assert_eq!(Start::decode(start.kind, &expected), Ok(start));
        }
    }

    #[test]
    fn a_frame_that_a_peer_would_refuse_is_not_made() {
        assert!(Start {
            private_data: 513,
            ..PLAIN
        }
        .encode()
        .is_none());
        assert!(Start {
            private_data: usize::MAX,
            ..PLAIN
        }
        .encode()
        .is_none());
        assert!(Start {
            private_data: 3,
            ..ENHANCED_PLAIN
        }
        .encode()
        .is_none());
        for revision in [0, 1, 3] {
            assert!(Start {
                revision,
                ..ENHANCED_PLAIN
            }
            .encode()
            .is_none());
        }
    }

    #[test]
    fn bad_frames_are_refused_by_name() {
        let table = [
            (frame(&REPLY_KEY, [0, 1, 0, 0]), BadStart::Key),
            (frame(b"GET / HTTP/1.1\r\n", [0, 1, 0, 0]), BadStart::Key),
            (frame(&REQUEST_KEY, [0, 0, 0, 0]), BadStart::Revision),
            (frame(&REQUEST_KEY, [0, 3, 0, 0]), BadStart::Revision),
            (frame(&REQUEST_KEY, [0, 1, 2, 1]), BadStart::Length),
            (frame(&REQUEST_KEY, [0, 1, 0xff, 0xff]), BadStart::Length),
            (frame(&REQUEST_KEY, [0x10, 2, 0, 3]), BadStart::Length),
        ];
        for (frame, bad) in table {
            assert_eq!(Start::decode(Kind::Request, &frame), Err(bad));
        }
    }

    #[test]
    fn flags_without_a_meaning_are_ignored() {
        // Reserved bits, GSO_EXP of siw, the reply's bit in a request, and revision 1 that announces
        // what only revision 2 has.
        for flags in [0x01, 0x08, 0x02, 0x10] {
            assert_eq!(
                Start::decode(Kind::Request, &frame(&REQUEST_KEY, [flags, 1, 0, 0])),
                Ok(PLAIN)
            );
        }
        // Revision 2 without the enhanced parameters is an ordinary frame.
        let second = Start {
            revision: 2,
            ..PLAIN
        };
        assert_eq!(
            Start::decode(Kind::Request, &frame(&REQUEST_KEY, [0, 2, 0, 0])),
            Ok(second)
        );
    }

    #[test]
    fn a_reply_that_copies_the_request_is_not_from_ndk() {
        let request = Start { ndk: true, ..PLAIN }.encode();
        let copied = request.map(|request| frame(&REPLY_KEY, [request[16], 1, 0, 0]));
        assert_eq!(
            copied.map(|copied| Start::decode(Kind::Reply, &copied)),
            Some(Ok(Start {
                kind: Kind::Reply,
                ..PLAIN
            }))
        );
    }

    #[test]
    fn the_first_bytes_tell_a_stream_that_is_not_mpa() {
        for len in 0..=KEY_LEN {
            assert!(Start::may_become(Kind::Request, &REQUEST_KEY[..len]));
        }
        assert!(Start::may_become(
            Kind::Request,
            &frame(&REQUEST_KEY, [0xff; 4])
        ));
        assert!(!Start::may_become(Kind::Request, b"G"));
        assert!(!Start::may_become(Kind::Request, &REPLY_KEY));
        assert!(Start::may_become(Kind::Request, &REPLY_KEY[..8]));
    }

    /// Parameters of these limits and bits: peer to peer; ready by a Send, a Write, a Read.
    fn enhanced(
        (inbound_reads, outbound_reads): (Option<u16>, Option<u16>),
        [peer_to_peer, send, write, read]: [bool; 4],
    ) -> Enhanced {
        Enhanced {
            inbound_reads,
            outbound_reads,
            peer_to_peer,
            ready_by: ReadyBy { send, write, read },
        }
    }

    #[test]
    fn enhanced_parameters_have_the_bits_of_the_rfc() {
        let (no, none) = ([false; 4], (Some(0), Some(0)));
        for (limits, bits, bytes) in [
            (none, no, [0, 0, 0, 0]),
            ((Some(0x123), Some(0x3ffe)), no, [1, 0x23, 0x3f, 0xfe]),
            ((None, None), no, [0x3f, 0xff, 0x3f, 0xff]),
            (none, [true, false, false, false], [0x80, 0, 0, 0]),
            (none, [false, true, false, false], [0x40, 0, 0, 0]),
            (none, [false, false, true, false], [0, 0, 0x80, 0]),
            (none, [false, false, false, true], [0, 0, 0x40, 0]),
        ] {
            assert_eq!(enhanced(limits, bits).encode(), bytes);
            assert_eq!(Enhanced::decode(bytes), enhanced(limits, bits));
        }
        for above in [0x3fff, 0x4000, u16::MAX] {
            let limits = (Some(above), Some(0));
            assert_eq!(enhanced(limits, no).encode(), [0x3f, 0xfe, 0, 0]);
        }
    }

    #[test]
    fn an_fpdu_is_a_multiple_of_four() {
        for (ulpdu, pad, len) in [
            (0, 2, 8),
            (1, 1, 8),
            (2, 0, 8),
            (3, 3, 12),
            (14, 0, 20),
            (65535, 3, 65544),
        ] {
            assert_eq!(padding(ulpdu), pad);
            assert_eq!(fpdu_len(ulpdu), len);
        }
    }

    #[test]
    fn the_largest_ulpdu_fits_and_the_next_does_not() {
        for room in 8..4000 {
            let ulpdu = max_ulpdu(room);
            assert!(fpdu_len(ulpdu) <= room);
            assert!(fpdu_len(ulpdu + 1) > room);
        }
        for room in 0..6 {
            assert_eq!(max_ulpdu(room), 0);
        }
        assert_eq!(max_ulpdu(1460), 1454);
        assert_eq!(max_ulpdu(65540), 65534);
        assert_eq!(max_ulpdu(usize::MAX), 65534);
    }

    #[test]
    fn a_trailer_has_the_padding_and_then_the_crc() {
        assert_eq!(Trailer::new(2, 0x0403_0201).as_bytes(), [1, 2, 3, 4]);
        assert_eq!(
            Trailer::new(3, 0x0403_0201).as_bytes(),
            [0, 0, 0, 1, 2, 3, 4]
        );
        assert_eq!(crc([1, 2, 3, 4]), 0x0403_0201);
    }
}
