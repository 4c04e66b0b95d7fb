// SPDX-License-Identifier: GPL-2.0
// host-test

//! RDMAP (RFC 5040, and RFC 7306 for atomics and immediate data): the kinds of messages, and the
//! messages that have a fixed payload.
//!
//! RDMAP has one byte in each header of DDP, and four more in an untagged one. Of RFC 7306, and
//! of the messages of ndk's own, a peer that is not ndk gets none: the start-up shows whether both
//! ends are ndk ([`super`]).

const VERSION: u8 = 0x40;
const VERSION_MASK: u8 = 0xc0;
const OPCODE_MASK: u8 = 0x0f;

/// The untagged queues (RFC 5040, 5.1; RFC 7306, 5 and 6).
pub(crate) mod queue {
    /// Sends, and immediate data.
    pub(crate) const SEND: u32 = 0;
    /// Read requests and atomic requests.
    pub(crate) const READ: u32 = 1;
    /// The Terminate.
    pub(crate) const TERMINATE: u32 = 2;
    /// Atomic responses.
    pub(crate) const ATOMIC_RESPONSE: u32 = 3;
    /// Acknowledgements of ndk.
    pub(crate) const ACKNOWLEDGE: u32 = 4;
    /// The number of queues.
    pub(crate) const COUNT: usize = ACKNOWLEDGE as usize + 1;
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Write,
    ReadRequest,
    ReadResponse,
    Send(Send),
    Terminate,
    /// Immediate data after a Write (RFC 7306, 6).
    Immediate {
        solicited: bool,
    },
    AtomicRequest,
    AtomicResponse,
    /// The number of requests that the sender of the message has carried out, in the four bytes of
    /// the header (ndk's own). The peer completes them.
    Acknowledge,
}

/// The kind of a Send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Send {
    /// The message causes an event at a completion queue that is armed for solicited ones.
    pub(crate) solicited: bool,
    pub(crate) with: With,
}

/// The meaning of the four bytes in the header of a Send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    Nothing,
    /// The token that the receiver invalidates.
    Invalidate,
    /// Immediate data (ndk's own).
    Immediate,
}

/// A message that RDMAP does not know (RFC 5040, 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadControl {
    /// The version is not 1.
    Version,
    /// No message has this opcode.
    Opcode,
}

const fn send(solicited: bool, with: With) -> Opcode {
    Opcode::Send(Send { solicited, with })
}

impl Opcode {
    /// The opcodes 0 to 14, in order (RFC 5040, 4.1; RFC 7306, 4.1). The last three are ndk's own;
    /// no document assigns them.
    const ALL: [Self; 15] = [
        Self::Write,
        Self::ReadRequest,
        Self::ReadResponse,
        send(false, With::Nothing),
        send(false, With::Invalidate),
        send(true, With::Nothing),
        send(true, With::Invalidate),
        Self::Terminate,
        Self::Immediate { solicited: false },
        Self::Immediate { solicited: true },
        Self::AtomicRequest,
        Self::AtomicResponse,
        send(false, With::Immediate),
        send(true, With::Immediate),
        Self::Acknowledge,
    ];

    /// Decodes the control byte. Reserved bits are not checked (RFC 5040, 4.1).
    pub(crate) fn decode(control: u8) -> Result<Self, BadControl> {
        if control & VERSION_MASK != VERSION {
            return Err(BadControl::Version);
        }
        Self::ALL
            .get(usize::from(control & OPCODE_MASK))
            .copied()
            .ok_or(BadControl::Opcode)
    }

    /// The control byte of such a message.
    pub(crate) const fn encode(self) -> u8 {
        VERSION
            | match self {
                Self::Write => 0,
                Self::ReadRequest => 1,
                Self::ReadResponse => 2,
                Self::Send(Send { solicited, with }) => match with {
                    With::Nothing => 3 + 2 * solicited as u8,
                    With::Invalidate => 4 + 2 * solicited as u8,
                    With::Immediate => 12 + solicited as u8,
                },
                Self::Terminate => 7,
                Self::Immediate { solicited } => 8 + solicited as u8,
                Self::AtomicRequest => 10,
                Self::AtomicResponse => 11,
                Self::Acknowledge => 14,
            }
    }

    /// The queue that carries these messages; `None` if they are tagged.
    pub(crate) const fn queue(self) -> Option<u32> {
        match self {
            Self::Write | Self::ReadResponse => None,
            Self::Send(_) | Self::Immediate { .. } => Some(queue::SEND),
            Self::ReadRequest | Self::AtomicRequest => Some(queue::READ),
            Self::Terminate => Some(queue::TERMINATE),
            Self::AtomicResponse => Some(queue::ATOMIC_RESPONSE),
            Self::Acknowledge => Some(queue::ACKNOWLEDGE),
        }
    }

    /// Returns true if RFC 5040 does not have the message: only ndk understands it for sure.
    pub(crate) const fn is_extension(self) -> bool {
        matches!(
            self,
            Self::Immediate { .. }
                | Self::AtomicRequest
                | Self::AtomicResponse
                | Self::Send(Send {
                    with: With::Immediate,
                    ..
                })
                | Self::Acknowledge
        )
    }
}

/// A fixed payload as numbers, one after the other, in network order.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn u32(&mut self) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.bytes[self.at..self.at + 4]);
        self.at += 4;
        u32::from_be_bytes(word)
    }

    fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }
}

/// Puts parts of a fixed payload one after the other. The parts fill it.
fn join<const LEN: usize>(parts: &[&[u8]]) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let mut at = 0;
    for part in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    bytes
}

/// The payload of a read request (RFC 5040, 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    /// The memory of the sender that the response fills.
    pub(crate) sink_stag: u32,
    pub(crate) sink_offset: u64,
    /// Bytes to read.
    pub(crate) size: u32,
    /// The memory of the receiver that is read.
    pub(crate) source_stag: u32,
    pub(crate) source_offset: u64,
}

impl ReadRequest {
    pub(crate) const LEN: usize = 28;

    pub(crate) fn encode(&self) -> [u8; Self::LEN] {
        join(&[
            &self.sink_stag.to_be_bytes(),
            &self.sink_offset.to_be_bytes(),
            &self.size.to_be_bytes(),
            &self.source_stag.to_be_bytes(),
            &self.source_offset.to_be_bytes(),
        ])
    }

    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Self {
        let mut words = Words { bytes, at: 0 };
        Self {
            sink_stag: words.u32(),
            sink_offset: words.u64(),
            size: words.u32(),
            source_stag: words.u32(),
            source_offset: words.u64(),
        }
    }
}

/// An atomic operation on eight bytes (RFC 7306, 5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    /// Adds.
    FetchAdd { add: u64 },
    /// Puts `swap` in place of a value that is equal to `compare`.
    CompareSwap { compare: u64, swap: u64 },
}

/// The payload of an atomic request (RFC 7306, 5.2.1). The masks are those of an operation on the
/// whole value: verbs have no others in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtomicRequest {
    /// The response repeats it.
    pub(crate) request: u32,
    pub(crate) stag: u32,
    pub(crate) offset: u64,
    pub(crate) operation: Atomic,
}

const FETCH_ADD: u32 = 0;
const COMPARE_SWAP: u32 = 2;
const ATOMIC_MASK: u32 = 0x0f;
// The mask of an addition has a bit for each place that carries nothing into the next.
const NO_CARRY_STOPS: u64 = 0;
const WHOLE: u64 = u64::MAX;

impl AtomicRequest {
    pub(crate) const LEN: usize = 52;

    pub(crate) fn encode(&self) -> [u8; Self::LEN] {
        let (code, data, mask, compare, compare_mask) = match self.operation {
            Atomic::FetchAdd { add } => (FETCH_ADD, add, NO_CARRY_STOPS, 0, 0),
            Atomic::CompareSwap { compare, swap } => (COMPARE_SWAP, swap, WHOLE, compare, WHOLE),
        };
        join(&[
            &code.to_be_bytes(),
            &self.request.to_be_bytes(),
            &self.stag.to_be_bytes(),
            &self.offset.to_be_bytes(),
            &data.to_be_bytes(),
            &mask.to_be_bytes(),
            &compare.to_be_bytes(),
            &compare_mask.to_be_bytes(),
        ])
    }

    /// Decodes a request; `None` for an operation that is not served: another code, or a mask.
    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let mut words = Words { bytes, at: 0 };
        let code = words.u32() & ATOMIC_MASK;
        let (request, stag, offset) = (words.u32(), words.u32(), words.u64());
        let (data, mask, compare, compare_mask) =
            (words.u64(), words.u64(), words.u64(), words.u64());
        let operation = match code {
            FETCH_ADD if mask == NO_CARRY_STOPS => Atomic::FetchAdd { add: data },
            COMPARE_SWAP if (mask, compare_mask) == (WHOLE, WHOLE) => Atomic::CompareSwap {
                compare,
                swap: data,
            },
            _ => return None,
        };
        Some(Self {
            request,
            stag,
            offset,
            operation,
        })
    }
}

/// The payload of an atomic response (RFC 7306, 5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtomicResponse {
    /// The number of the request.
    pub(crate) request: u32,
    /// The value before the operation.
    pub(crate) original: u64,
}

impl AtomicResponse {
    pub(crate) const LEN: usize = 12;

    pub(crate) fn encode(&self) -> [u8; Self::LEN] {
        join(&[&self.request.to_be_bytes(), &self.original.to_be_bytes()])
    }

    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Self {
        let mut words = Words { bytes, at: 0 };
        Self {
            request: words.u32(),
            original: words.u64(),
        }
    }
}

/// Length of the payload of an immediate data message, in bytes (RFC 7306, 6.1). Verbs have four
/// bytes: the first ones; the others are zero.
pub(crate) const IMMEDIATE_LEN: usize = 8;

/// Encodes immediate data of the verbs.
pub(crate) fn encode_immediate(data: u32) -> [u8; IMMEDIATE_LEN] {
    join(&[&data.to_be_bytes(), &[0; 4]])
}

/// The part of immediate data that verbs deliver.
pub(crate) const fn decode_immediate(bytes: &[u8; IMMEDIATE_LEN]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_rdmap))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    #[test]
    fn opcodes_have_the_numbers_of_the_rfcs() {
        for (number, opcode) in Opcode::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(opcode.encode()), 0x40 | number);
            assert_eq!(Opcode::decode(opcode.encode()), Ok(opcode));
        }
        assert_eq!(send(true, With::Invalidate).encode(), 0x46);
        assert_eq!(Opcode::AtomicResponse.encode(), 0x4b);
    }

    #[test]
    fn unknown_messages_are_refused_by_name() {
        assert_eq!(Opcode::decode(0x4f), Err(BadControl::Opcode));
        for version in [0x00, 0x80, 0xc0] {
            assert_eq!(Opcode::decode(version | 0x0f), Err(BadControl::Version));
            assert_eq!(Opcode::decode(version), Err(BadControl::Version));
        }
        // Reserved bits do not matter.
        assert_eq!(Opcode::decode(0x70), Ok(Opcode::Write));
    }

    #[test]
    fn messages_go_to_the_queues_of_the_rfcs() {
        for (opcode, queue, extension) in [
            (Opcode::Write, None, false),
            (Opcode::ReadRequest, Some(1), false),
            (Opcode::ReadResponse, None, false),
            (send(false, With::Nothing), Some(0), false),
            (send(true, With::Invalidate), Some(0), false),
            (Opcode::Terminate, Some(2), false),
            (Opcode::Immediate { solicited: false }, Some(0), true),
            (Opcode::AtomicRequest, Some(1), true),
            (Opcode::AtomicResponse, Some(3), true),
            (send(false, With::Immediate), Some(0), true),
            (Opcode::Acknowledge, Some(4), true),
        ] {
            assert_eq!(opcode.queue(), queue);
            assert_eq!(opcode.is_extension(), extension);
        }
    }

    #[test]
    fn a_read_request_has_the_bytes_of_the_rfc() {
        let request = ReadRequest {
            sink_stag: 0x0102_0304,
            sink_offset: 0x1112_1314_1516_1718,
            size: 0x2122_2324,
            source_stag: 0x3132_3334,
            source_offset: 0x4142_4344_4546_4748,
        };
        let bytes = [
            1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24,
            0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
        ];
        assert_eq!(request.encode(), bytes);
        assert_eq!(ReadRequest::decode(&bytes), request);
    }

    const ADD: AtomicRequest = AtomicRequest {
        request: 7,
        stag: 0x0102_0304,
        offset: 0x10,
        operation: Atomic::FetchAdd {
            add: 0x1112_1314_1516_1718,
        },
    };

    #[test]
    fn atomic_requests_have_the_bytes_of_the_rfc() {
        let mut bytes = [0; AtomicRequest::LEN];
        bytes[7] = 7;
        bytes[8..12].copy_from_slice(&[1, 2, 3, 4]);
        bytes[19] = 0x10;
        bytes[20..28].copy_from_slice(&[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        assert_eq!(ADD.encode(), bytes);
        assert_eq!(AtomicRequest::decode(&bytes), Some(ADD));

        let swap = AtomicRequest {
            operation: Atomic::CompareSwap {
                compare: 1,
                swap: 2,
            },
            ..ADD
        };
        bytes[3] = 2;
        bytes[20..28].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 2]);
        bytes[28..36].fill(0xff);
        bytes[43] = 1;
        bytes[44..].fill(0xff);
        assert_eq!(swap.encode(), bytes);
        assert_eq!(AtomicRequest::decode(&bytes), Some(swap));
    }

    #[test]
    fn atomic_requests_with_masks_or_other_codes_are_not_served() {
        // (byte, its value)
        for (at, value) in [(3, 1), (3, 3), (3, 15), (28, 1), (35, 0x80)] {
            let mut bytes = ADD.encode();
            bytes[at] = value;
            assert!(AtomicRequest::decode(&bytes).is_none());
        }
        for at in [28, 35, 44, 51] {
            let mut bytes = AtomicRequest {
                operation: Atomic::CompareSwap {
                    compare: 1,
                    swap: 2,
                },
                ..ADD
            }
            .encode();
            bytes[at] = 0x7f;
            assert!(AtomicRequest::decode(&bytes).is_none());
        }
        // Reserved bits do not matter.
        let mut bytes = ADD.encode();
        bytes[0] = 0xff;
        bytes[3] = 0xf0;
        assert_eq!(AtomicRequest::decode(&bytes), Some(ADD));
    }

    #[test]
    fn responses_and_immediate_data_have_the_bytes_of_the_rfc() {
        let response = AtomicResponse {
            request: 7,
            original: 0x0102_0304_0506_0708,
        };
        let bytes = [0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(response.encode(), bytes);
        assert_eq!(AtomicResponse::decode(&bytes), response);
        assert_eq!(encode_immediate(0x0102_0304), [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(decode_immediate(&[1, 2, 3, 4, 5, 6, 7, 8]), 0x0102_0304);
    }
}
