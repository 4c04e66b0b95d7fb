// SPDX-License-Identifier: GPL-2.0
// host-test

//! DDP (RFC 5041): the headers of segments, and the order of the messages of an untagged queue.
//!
//! A segment is one ULPDU of MPA. A tagged segment names its place in the peer's memory. An
//! untagged segment belongs to a message of a queue; the receiver chooses the place.

/// Length of the header of a tagged segment, in bytes (RFC 5041, 4.2).
pub(crate) const TAGGED_LEN: usize = 14;

/// Length of the header of an untagged segment, in bytes (RFC 5041, 4.3).
pub(crate) const UNTAGGED_LEN: usize = 18;

const TAGGED: u8 = 0x80;
const LAST: u8 = 0x40;
const VERSION_MASK: u8 = 0x03;
const VERSION: u8 = 1;

/// The header of a tagged segment (RFC 5041, 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tagged {
    /// No segment of the message follows.
    pub(crate) last: bool,
    /// The byte that DDP carries for the layer above.
    pub(crate) ulp: u8,
    /// The token of the memory.
    pub(crate) stag: u32,
    /// The place of the first byte (tagged offset).
    pub(crate) offset: u64,
}

impl Tagged {
    pub(crate) fn encode(&self) -> [u8; TAGGED_LEN] {
        let mut bytes = [0; TAGGED_LEN];
        bytes[0] = TAGGED | VERSION | if self.last { LAST } else { 0 };
        bytes[1] = self.ulp;
        bytes[2..6].copy_from_slice(&self.stag.to_be_bytes());
        bytes[6..].copy_from_slice(&self.offset.to_be_bytes());
        bytes
    }
}

/// The header of an untagged segment (RFC 5041, 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Untagged {
    /// No segment of the message follows.
    pub(crate) last: bool,
    /// The first of the five bytes that DDP carries for the layer above.
    pub(crate) ulp: u8,
    /// The other four, as a number.
    pub(crate) ulp_word: u32,
    /// The queue (QN).
    pub(crate) queue: u32,
    /// The number of the message (MSN).
    pub(crate) message: u32,
    /// The place of the first byte in the message (MO).
    pub(crate) offset: u32,
}

impl Untagged {
    pub(crate) fn encode(&self) -> [u8; UNTAGGED_LEN] {
        let mut bytes = [0; UNTAGGED_LEN];
        bytes[0] = VERSION | if self.last { LAST } else { 0 };
        bytes[1] = self.ulp;
        for (at, word) in [
            (2, self.ulp_word),
            (6, self.queue),
            (10, self.message),
            (14, self.offset),
        ] {
            bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Tagged(Tagged),
    Untagged(Untagged),
}

/// A segment without a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// The version is not 1. Tagged or not is all that is known.
    Version { tagged: bool },
    /// The segment ends before its header does.
    Short,
}

impl Header {
    /// The length of the header whose first byte this is.
    ///
    /// # Errors
    ///
    /// [`BadHeader::Version`], and no other.
    pub(crate) const fn len_by(first: u8) -> Result<usize, BadHeader> {
        let tagged = first & TAGGED != 0;
        if first & VERSION_MASK != VERSION {
            return Err(BadHeader::Version { tagged });
        }
        Ok(if tagged { TAGGED_LEN } else { UNTAGGED_LEN })
    }

    /// Decodes the header at the start of a segment. Reserved bits are not checked (RFC 5041, 4.1).
    pub(crate) fn decode(segment: &[u8]) -> Result<Self, BadHeader> {
        let first = *segment.first().ok_or(BadHeader::Short)?;
        let header = segment
            .get(..Self::len_by(first)?)
            .ok_or(BadHeader::Short)?;
        let (last, ulp) = (first & LAST != 0, header[1]);
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        Ok(if first & TAGGED != 0 {
            Self::Tagged(Tagged {
                last,
                ulp,
                stag: word(2),
                offset: u64::from(word(6)) << 32 | u64::from(word(10)),
            })
        } else {
            Self::Untagged(Untagged {
                last,
                ulp,
                ulp_word: word(2),
                queue: word(6),
                message: word(10),
                offset: word(14),
            })
        })
    }

    /// The byte that DDP carries for the layer above.
    pub(crate) const fn ulp(&self) -> u8 {
        match self {
            Self::Tagged(header) => header.ulp,
            Self::Untagged(header) => header.ulp,
        }
    }
}

/// An untagged segment out of its order (RFC 5041, 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misordered {
    /// The message is not the one under way, or the next.
    Message,
    /// The segment does not begin where the last one of its message has ended.
    Offset,
    /// The message would be longer than 4 GiB.
    TooLong,
}

/// The order of the messages of one untagged queue. TCP loses and reorders nothing, so each segment
/// has one right place (RFC 5041, 5.1 and 5.3). The same rules hold for a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    message: u32,
    offset: u32,
}

impl Order {
    /// Nothing was sent: the first message has number 1 (RFC 5041, 5.3).
    pub(crate) const fn new() -> Self {
        Self {
            message: 1,
            offset: 0,
        }
    }

    /// The number of the message under way, or of the next.
    // Tests and the fuzz targets alone ask.
    #[cfg_attr(not(ndk_kunit), allow(dead_code))]
    pub(crate) const fn message(&self) -> u32 {
        self.message
    }

    /// Bytes of that message so far.
    // Tests and the fuzz targets alone ask.
    #[cfg_attr(not(ndk_kunit), allow(dead_code))]
    pub(crate) const fn offset(&self) -> u32 {
        self.offset
    }

    /// Returns true if a segment with this header and `len` bytes of payload is the next. Changes
    /// nothing.
    pub(crate) fn check(&self, header: &Untagged, len: u32) -> Result<(), Misordered> {
        if header.message != self.message {
            Err(Misordered::Message)
        } else if header.offset != self.offset {
            Err(Misordered::Offset)
        } else if header.offset.checked_add(len).is_none() {
            Err(Misordered::TooLong)
        } else {
            Ok(())
        }
    }

    /// Counts the next segment. A last one ends the message; numbers begin again after 2^32 - 1.
    pub(crate) fn advance(&mut self, len: u32, last: bool) {
        if last {
            self.message = self.message.wrapping_add(1);
            self.offset = 0;
        } else {
            self.offset = self.offset.saturating_add(len);
        }
    }
}

/// Returns true if `len` bytes from `offset` on do not pass the end of the address space (RFC
/// 5041, 8.2: TO wrap).
pub(crate) const fn offset_holds(offset: u64, len: u32) -> bool {
    // CAST: widening.
    len == 0 || offset.checked_add(len as u64 - 1).is_some()
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_ddp))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    const TAGGED_EXAMPLE: Tagged = Tagged {
        last: true,
        ulp: 0x40,
        stag: 0x0102_0304,
        offset: 0x1122_3344_5566_7788,
    };
    const TAGGED_BYTES: [u8; TAGGED_LEN] = [
        0xc1, 0x40, 1, 2, 3, 4, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    ];
    const UNTAGGED_EXAMPLE: Untagged = Untagged {
        last: false,
        ulp: 0x44,
        ulp_word: 0xa1a2_a3a4,
        queue: 1,
        message: 0x0b0c_0d0e,
        offset: 0x1a1b_1c1d,
    };
    const UNTAGGED_BYTES: [u8; UNTAGGED_LEN] = [
        1, 0x44, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0, 1, 0xb, 0xc, 0xd, 0xe, 0x1a, 0x1b, 0x1c, 0x1d,
    ];

    #[test]
    fn headers_have_the_bytes_of_the_rfc() {
        assert_eq!(TAGGED_EXAMPLE.encode(), TAGGED_BYTES);
        assert_eq!(
            Header::decode(&TAGGED_BYTES),
            Ok(Header::Tagged(TAGGED_EXAMPLE))
        );
        assert_eq!(UNTAGGED_EXAMPLE.encode(), UNTAGGED_BYTES);
        assert_eq!(
            Header::decode(&UNTAGGED_BYTES),
            Ok(Header::Untagged(UNTAGGED_EXAMPLE))
        );
        assert_eq!(
            Tagged {
                last: false,
                ..TAGGED_EXAMPLE
            }
            .encode()[0],
            0x81
        );
        assert_eq!(
            Untagged {
                last: true,
                ..UNTAGGED_EXAMPLE
            }
            .encode()[0],
            0x41
        );
    }

    #[test]
    fn the_payload_is_no_part_of_the_header() {
        let mut segment = [0xff; 40];
        segment[..TAGGED_LEN].copy_from_slice(&TAGGED_BYTES);
        assert_eq!(Header::decode(&segment), Ok(Header::Tagged(TAGGED_EXAMPLE)));
    }

    #[test]
    fn a_segment_shorter_than_its_header_is_refused() {
        for len in 0..TAGGED_LEN {
            assert_eq!(Header::decode(&TAGGED_BYTES[..len]), Err(BadHeader::Short));
        }
        for len in 0..UNTAGGED_LEN {
            assert_eq!(
                Header::decode(&UNTAGGED_BYTES[..len]),
                Err(BadHeader::Short)
            );
        }
    }

    #[test]
    fn other_versions_are_refused_before_anything_else() {
        for version in [0, 2, 3] {
            let tagged = Err(BadHeader::Version { tagged: true });
            assert_eq!(Header::decode(&[TAGGED | version]), tagged);
            assert_eq!(
                Header::len_by(TAGGED | LAST | version),
                tagged.map(|_: Header| 0)
            );
            assert_eq!(
                Header::decode(&[version]),
                Err(BadHeader::Version { tagged: false })
            );
        }
    }

    #[test]
    fn reserved_bits_are_not_checked() {
        let mut bytes = TAGGED_BYTES;
        bytes[0] |= 0x3c;
        assert_eq!(Header::decode(&bytes), Ok(Header::Tagged(TAGGED_EXAMPLE)));
    }

    fn segment(message: u32, offset: u32) -> Untagged {
        Untagged {
            message,
            offset,
            ..UNTAGGED_EXAMPLE
        }
    }

    #[test]
    fn segments_come_one_after_the_other() {
        let mut order = Order::new();
        assert_eq!(order.check(&segment(1, 0), 100), Ok(()));
        order.advance(100, false);
        assert_eq!(order.check(&segment(1, 100), 0), Ok(()));
        assert_eq!(order.check(&segment(1, 0), 100), Err(Misordered::Offset));
        assert_eq!(order.check(&segment(1, 101), 1), Err(Misordered::Offset));
        assert_eq!(order.check(&segment(2, 0), 1), Err(Misordered::Message));
        order.advance(5, true);
        assert_eq!(
            order,
            Order {
                message: 2,
                offset: 0
            }
        );
        assert_eq!(order.check(&segment(1, 105), 1), Err(Misordered::Message));
        assert_eq!(order.check(&segment(2, 0), 1), Ok(()));
    }

    #[test]
    fn numbers_begin_again_after_the_last() {
        let mut order = Order {
            message: u32::MAX,
            offset: 0,
        };
        order.advance(0, true);
        assert_eq!(order.message(), 0);
    }

    #[test]
    fn a_message_of_more_than_4_gib_is_refused() {
        let order = Order {
            message: 1,
            offset: u32::MAX - 10,
        };
        assert_eq!(order.check(&segment(1, u32::MAX - 10), 10), Ok(()));
        assert_eq!(
            order.check(&segment(1, u32::MAX - 10), 11),
            Err(Misordered::TooLong)
        );
    }

    #[test]
    fn a_range_may_end_with_the_address_space_and_not_pass_its_end() {
        for (offset, len, holds) in [
            (0, 0, true),
            (u64::MAX, 0, true),
            (u64::MAX, 1, true),
            (u64::MAX, 2, false),
            (u64::MAX - 99, 100, true),
            (u64::MAX - 99, 101, false),
        ] {
            assert_eq!(offset_holds(offset, len), holds);
        }
    }
}
