// SPDX-License-Identifier: GPL-2.0
// host-test

//! The Terminate (RFC 5040, 4.8): the last message of a connection that a fault has ended.

/// The cause of a Terminate, by the layer that found it (RFC 5040, 4.8; RFC 5041, 7; RFC 5044, 8;
/// RFC 6581, 10): layer (4 bits), error type (4 bits) and error code (8 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Cause {
    /// RDMAP, local catastrophic error.
    LocalCatastrophic = 0x0000,
    /// RDMAP, remote protection error: the token of a read or atomic request names no memory.
    InvalidStag = 0x0100,
    /// The range is not inside the memory that the token names.
    Bounds = 0x0101,
    /// The memory does not allow the operation.
    AccessRights = 0x0102,
    /// The memory is not for this connection.
    NotAssociated = 0x0103,
    /// The range passes the end of the address space.
    Wrap = 0x0104,
    /// The token may not be invalidated by this connection.
    ProtectedFromInvalidation = 0x0109,
    /// Another error of this kind.
    ProtectionUnspecified = 0x01ff,
    /// RDMAP, remote operation error: the version is not 1.
    RdmapVersion = 0x0205,
    /// The message has no place in the connection.
    Opcode = 0x0206,
    /// The connection cannot go on.
    StreamCatastrophic = 0x0207,
    /// The host cannot go on.
    GlobalCatastrophic = 0x0208,
    /// The token of a Send with Invalidate names nothing that can be invalidated.
    CannotInvalidate = 0x0209,
    /// Another error of this kind.
    OperationUnspecified = 0x02ff,
    /// DDP, local catastrophic error.
    DdpCatastrophic = 0x1000,
    /// DDP, tagged buffer error: the token of a Write or of a read response names no memory.
    TaggedInvalidStag = 0x1100,
    /// The range is not inside the memory that the token names.
    TaggedBounds = 0x1101,
    /// The memory is not for this connection.
    TaggedNotAssociated = 0x1102,
    /// The range passes the end of the address space.
    TaggedWrap = 0x1103,
    /// The version of a tagged segment is not 1.
    TaggedVersion = 0x1104,
    /// DDP, untagged buffer error: there is no such queue.
    InvalidQueue = 0x1201,
    /// No receive is posted for the message.
    NoBuffer = 0x1202,
    /// The message is not the next.
    MessageRange = 0x1203,
    /// The segment does not begin where the last one has ended.
    MessageOffset = 0x1204,
    /// The message is longer than its receive.
    TooLong = 0x1205,
    /// The version of an untagged segment is not 1.
    UntaggedVersion = 0x1206,
    /// MPA: the TCP connection was lost.
    Lost = 0x2001,
    /// A CRC did not match.
    Crc = 0x2002,
    /// A length of MPA cannot be, or a marker is wrong.
    Length = 0x2003,
    /// A start-up frame is not valid.
    StartUp = 0x2004,
    /// MPA, local catastrophic error.
    MpaCatastrophic = 0x2005,
    /// The peer serves fewer reads than are needed.
    TooFewReads = 0x2006,
    /// The peer offers no ready-to-receive indication that this side knows.
    NoReadyBy = 0x2007,
}

/// All causes.
const ALL: [Cause; 33] = [
    Cause::LocalCatastrophic,
    Cause::InvalidStag,
    Cause::Bounds,
    Cause::AccessRights,
    Cause::NotAssociated,
    Cause::Wrap,
    Cause::ProtectedFromInvalidation,
    Cause::ProtectionUnspecified,
    Cause::RdmapVersion,
    Cause::Opcode,
    Cause::StreamCatastrophic,
    Cause::GlobalCatastrophic,
    Cause::CannotInvalidate,
    Cause::OperationUnspecified,
    Cause::DdpCatastrophic,
    Cause::TaggedInvalidStag,
    Cause::TaggedBounds,
    Cause::TaggedNotAssociated,
    Cause::TaggedWrap,
    Cause::TaggedVersion,
    Cause::InvalidQueue,
    Cause::NoBuffer,
    Cause::MessageRange,
    Cause::MessageOffset,
    Cause::TooLong,
    Cause::UntaggedVersion,
    Cause::Lost,
    Cause::Crc,
    Cause::Length,
    Cause::StartUp,
    Cause::MpaCatastrophic,
    Cause::TooFewReads,
    Cause::NoReadyBy,
];

impl Cause {
    /// Layer, error type and error code as a Terminate carries them.
    pub(crate) const fn code(self) -> u16 {
        // CAST: the code is the number of the variant.
        self as u16
    }

    /// The cause of a code; `None` for a code that no document has. A local catastrophic error of
    /// RDMAP may have any number.
    pub(crate) fn from_code(code: u16) -> Option<Self> {
        if code >> 8 == 0 {
            return Some(Self::LocalCatastrophic);
        }
        ALL.into_iter().find(|cause| cause.code() == code)
    }

    /// Returns true if the Terminate repeats the header of DDP. The layout of a segment of another
    /// version is unknown, and a fault of MPA or of the host belongs to no segment.
    const fn has_header(self) -> bool {
        !matches!(
            self,
            Self::LocalCatastrophic
                | Self::DdpCatastrophic
                | Self::StreamCatastrophic
                | Self::GlobalCatastrophic
                | Self::TaggedVersion
                | Self::UntaggedVersion
                | Self::Lost
                | Self::Crc
                | Self::Length
                | Self::StartUp
                | Self::MpaCatastrophic
                | Self::TooFewReads
                | Self::NoReadyBy
        )
    }

    /// Returns true if the Terminate also repeats the payload of a read request: a remote protection
    /// error, whose range that payload names.
    const fn has_request(self) -> bool {
        matches!(
            self,
            Self::InvalidStag
                | Self::Bounds
                | Self::AccessRights
                | Self::NotAssociated
                | Self::Wrap
                | Self::ProtectedFromInvalidation
                | Self::ProtectionUnspecified
        )
    }
}

/// The most that a Terminate carries, in bytes: the control fields, the length of a segment, the
/// header of an untagged segment, the payload of a read request.
pub(crate) const MAX_LEN: usize = CONTROL_LEN + SEGMENT_LEN_LEN + UNTAGGED_LEN + REQUEST_LEN;

const CONTROL_LEN: usize = 4;
const SEGMENT_LEN_LEN: usize = 2;
// Those of DDP and RDMAP: a codec knows no other.
const TAGGED_LEN: usize = 14;
const UNTAGGED_LEN: usize = 18;
const REQUEST_LEN: usize = 28;
const TAGGED: u8 = 0x80;

const HAS_LEN: u8 = 0x80;
const HAS_HEADER: u8 = 0x40;
const HAS_REQUEST: u8 = 0x20;

/// The payload of a Terminate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminate {
    bytes: [u8; MAX_LEN],
    len: usize,
}

/// Returns true if these bytes are a header of DDP, no more and no less.
fn is_whole(header: &[u8]) -> bool {
    header.first().is_some_and(|first| {
        let len = if first & TAGGED != 0 {
            TAGGED_LEN
        } else {
            UNTAGGED_LEN
        };
        header.len() == len
    })
}

/// The segment that a Terminate is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    /// Its header of DDP.
    pub(crate) header: &'a [u8],
    /// Its payload, if that is a read request.
    pub(crate) request: Option<&'a [u8; REQUEST_LEN]>,
    /// Length of header and payload in bytes, as MPA has it.
    pub(crate) len: u16,
}

impl Terminate {
    /// Makes the Terminate of a cause, with the parts of the segment that the cause calls for.
    pub(crate) fn new(cause: Cause, segment: Option<Segment<'_>>) -> Self {
        let mut terminate = Self {
            bytes: [0; MAX_LEN],
            len: 0,
        };
        terminate.put(&cause.code().to_be_bytes());
        terminate.put(&[0, 0]);
        let Some(segment) = segment else {
            return terminate;
        };
        if cause.has_header() && is_whole(segment.header) {
            terminate.bytes[2] = HAS_LEN | HAS_HEADER;
            terminate.put(&segment.len.to_be_bytes());
            terminate.put(segment.header);
            if let (true, Some(request)) = (cause.has_request(), segment.request) {
                terminate.bytes[2] |= HAS_REQUEST;
                terminate.put(request);
            }
        }
        terminate
    }

    fn put(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns true if this is the Terminate of that cause.
    pub(crate) fn is_of(&self, cause: Cause) -> bool {
        self.bytes.starts_with(&cause.code().to_be_bytes())
    }
}

/// The part of a peer's Terminate that this side uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Layer, error type and error code.
    pub(crate) code: u16,
    /// The segment, if the peer tells.
    pub(crate) about: Option<About>,
}

/// The segment that a peer has found at fault, as its header names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Tagged { stag: u32, offset: u64 },
    Untagged { queue: u32, message: u32 },
}

impl Received {
    /// Decodes a Terminate. A part that is not there is left out, and a code that is not there is
    /// that of no error in particular: the connection ends in any case.
    pub(crate) fn decode(payload: &[u8]) -> Self {
        let &[high, low, parts, _, ref rest @ ..] = payload else {
            return Self {
                code: Cause::OperationUnspecified.code(),
                about: None,
            };
        };
        let announced = parts & HAS_LEN != 0 && parts & HAS_HEADER != 0;
        Self {
            code: u16::from_be_bytes([high, low]),
            about: rest
                .get(SEGMENT_LEN_LEN..)
                .filter(|_| announced)
                .and_then(About::decode),
        }
    }
}

impl About {
    fn decode(header: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
        Some(if header.first()? & TAGGED != 0 {
            Self::Tagged {
                stag: word(2)?,
                offset: u64::from(word(6)?) << 32 | u64::from(word(10)?),
            }
        } else {
            Self::Untagged {
                queue: word(6)?,
                message: word(10)?,
            }
        })
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_terminate))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    const UNTAGGED_HEADER: [u8; UNTAGGED_LEN] =
        [0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0];
    const TAGGED_HEADER: [u8; TAGGED_LEN] = [0xc1, 0x40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0x10, 0];
    const REQUEST: [u8; REQUEST_LEN] = [0x55; REQUEST_LEN];

    fn read() -> Segment<'static> {
        Segment {
            header: &UNTAGGED_HEADER,
            request: Some(&REQUEST),
            len: 46,
        }
    }

    fn write() -> Segment<'static> {
        Segment {
            header: &TAGGED_HEADER,
            request: None,
            len: 1014,
        }
    }

    #[test]
    fn each_cause_has_its_own_code() {
        for cause in ALL {
            assert_eq!(Cause::from_code(cause.code()), Some(cause));
        }
        assert_eq!(Cause::from_code(0x00ff), Some(Cause::LocalCatastrophic));
        for code in [
            0x0105, 0x0204, 0x0300, 0x1105, 0x1200, 0x1207, 0x2000, 0x2008, 0x3000, 0xffff,
        ] {
            assert!(Cause::from_code(code).is_none());
        }
    }

    #[test]
    fn a_refused_read_repeats_header_and_request() {
        let terminate = Terminate::new(Cause::Bounds, Some(read()));
        let bytes = terminate.as_bytes();
        assert_eq!(bytes.len(), MAX_LEN);
        assert_eq!(bytes[..6], [0x01, 0x01, 0xe0, 0, 0, 46]);
        assert_eq!(bytes[6..24], UNTAGGED_HEADER);
        assert_eq!(bytes[24..], REQUEST);
    }

    #[test]
    fn a_refused_write_repeats_the_header() {
        let terminate = Terminate::new(Cause::TaggedBounds, Some(write()));
        let bytes = terminate.as_bytes();
        assert_eq!(bytes[..6], [0x11, 0x01, 0xc0, 0, 3, 0xf6]);
        assert_eq!(bytes[6..], TAGGED_HEADER);
    }

    #[test]
    fn other_faults_repeat_no_request() {
        let bytes = Terminate::new(Cause::Opcode, Some(read()));
        assert_eq!(bytes.as_bytes()[2], 0xc0);
        assert_eq!(bytes.as_bytes().len(), 24);
    }

    #[test]
    fn a_fault_of_no_segment_has_the_control_fields_alone() {
        for cause in [
            Cause::Crc,
            Cause::LocalCatastrophic,
            Cause::TaggedVersion,
            Cause::StreamCatastrophic,
        ] {
            let code = cause.code().to_be_bytes();
            assert_eq!(
                Terminate::new(cause, Some(write())).as_bytes(),
                [code[0], code[1], 0, 0]
            );
        }
        assert_eq!(
            Terminate::new(Cause::Bounds, None).as_bytes(),
            [0x01, 0x01, 0, 0]
        );
        let cut = Segment {
            header: &TAGGED_HEADER[..5],
            ..write()
        };
        assert_eq!(
            Terminate::new(Cause::Bounds, Some(cut)).as_bytes(),
            [0x01, 0x01, 0, 0]
        );
    }

    #[test]
    fn the_peer_learns_code_and_segment() {
        let queue_1 = About::Untagged {
            queue: 1,
            message: 9,
        };
        let memory = About::Tagged {
            stag: 0x0102_0304,
            offset: 0x1000,
        };
        for (cause, segment, about) in [
            (Cause::Bounds, Some(read()), Some(queue_1)),
            (Cause::Opcode, Some(read()), Some(queue_1)),
            (Cause::TaggedBounds, Some(write()), Some(memory)),
            (Cause::Crc, Some(write()), None),
            (Cause::Bounds, None, None),
        ] {
            let terminate = Terminate::new(cause, segment);
            let received = Received {
                code: cause.code(),
                about,
            };
            assert_eq!(Received::decode(terminate.as_bytes()), received);
        }
    }

    #[test]
    fn a_cut_terminate_keeps_its_code() {
        let terminate = Terminate::new(Cause::TaggedBounds, Some(write()));
        for len in 0..terminate.as_bytes().len() {
            let received = Received::decode(&terminate.as_bytes()[..len]);
            assert_eq!(received.code, if len < 4 { 0x02ff } else { 0x1101 });
            assert!(received.about.is_none());
        }
    }
}
