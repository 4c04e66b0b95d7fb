// SPDX-License-Identifier: GPL-2.0
// host-test

//! The checks of a segment's header that need no memory and no queue: versions, opcodes, numbers,
//! offsets and lengths.
//!
//! This file imports `core` and the codecs alone.

use super::{
    ddp::{
        self,
        Header,
        Misordered,
        Order,
        Tagged,
        Untagged, //
    },
    rdmap::{
        self,
        AtomicRequest,
        AtomicResponse,
        BadControl,
        Opcode,
        ReadRequest,
        Send, //
    },
    terminate::{
        self,
        Cause, //
    },
};

/// A segment whose payload goes to memory of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) place: Place,
    /// Bytes of payload.
    pub(crate) len: u32,
    /// No segment of the message follows.
    pub(crate) last: bool,
}

/// The place of a payload. A range of memory does not pass the end of the address space. A message
/// without payload names no memory: its token counts for nothing (RFC 5040, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A Write to this memory.
    Write { stag: u32, offset: u64 },
    /// The response to a read, into this memory.
    ReadResponse { stag: u32, offset: u64 },
    /// This far into the next receive; 0 for the first segment of a message.
    Send { send: Send, offset: u32 },
}

/// The treatment of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Placed(Segment),
    /// The payload is a message of RDMAP itself: so many bytes of it are of use.
    Collected {
        opcode: Opcode,
        len: usize,
    },
}

/// The longest payload that is collected, in bytes.
pub(crate) const MAX_COLLECTED: usize = AtomicRequest::LEN;

const _: () = assert!(terminate::MAX_LEN <= MAX_COLLECTED);

/// The state of the peer's messages, as far as their headers show it.
pub(crate) struct Validator {
    orders: [Order; rdmap::queue::COUNT],
    /// The kinds of the unfinished messages, tagged and untagged: the segments of two messages do
    /// not mix.
    tagged: Option<Opcode>,
    untagged: Option<Opcode>,
    /// The peer is ndk.
    extended: bool,
}

impl Validator {
    /// The state at the start, with a peer that is ndk or with another.
    pub(crate) const fn new(extended: bool) -> Self {
        Self {
            orders: [Order::new(); rdmap::queue::COUNT],
            tagged: None,
            untagged: None,
            extended,
        }
    }

    /// Checks the header of the next segment, which has `len` bytes of payload, and counts it.
    pub(crate) fn check(&mut self, header: &Header, len: u32) -> Result<Verdict, Cause> {
        let opcode = Opcode::decode(header.ulp()).map_err(|bad| match bad {
            BadControl::Version => Cause::RdmapVersion,
            BadControl::Opcode => Cause::Opcode,
        })?;
        if opcode.is_extension() && !self.extended {
            return Err(Cause::Opcode);
        }
        match (header, opcode.queue()) {
            (Header::Tagged(header), None) => self.check_tagged(header, opcode, len),
            (Header::Untagged(header), Some(queue)) => {
                self.check_order(header, queue, len)?;
                match opcode {
                    Opcode::Send(send) => self.check_send(header, send, len),
                    _ => self.check_collected(header, opcode, len),
                }
            }
            _ => Err(Cause::Opcode),
        }
    }

    fn check_tagged(
        &mut self,
        header: &Tagged,
        opcode: Opcode,
        len: u32,
    ) -> Result<Verdict, Cause> {
        if !ddp::offset_holds(header.offset, len) {
            return Err(Cause::TaggedWrap);
        }
        follow(&mut self.tagged, opcode, header.last)?;
        let (stag, offset) = (header.stag, header.offset);
        Ok(Verdict::Placed(Segment {
            place: match opcode {
                Opcode::Write => Place::Write { stag, offset },
                _ => Place::ReadResponse { stag, offset },
            },
            len,
            last: header.last,
        }))
    }

    fn check_order(&mut self, header: &Untagged, queue: u32, len: u32) -> Result<(), Cause> {
        if header.queue != queue {
            return Err(Cause::InvalidQueue);
        }
        // CAST: one of a few.
        let order = self
            .orders
            .get_mut(queue as usize)
            .ok_or(Cause::InvalidQueue)?;
        order
            .check(header, len)
            .map_err(|misordered| match misordered {
                Misordered::Message => Cause::MessageRange,
                Misordered::Offset => Cause::MessageOffset,
                Misordered::TooLong => Cause::TooLong,
            })?;
        order.advance(len, header.last);
        Ok(())
    }

    fn check_send(&mut self, header: &Untagged, send: Send, len: u32) -> Result<Verdict, Cause> {
        follow(&mut self.untagged, Opcode::Send(send), header.last)?;
        Ok(Verdict::Placed(Segment {
            place: Place::Send {
                send,
                offset: header.offset,
            },
            len,
            last: header.last,
        }))
    }

    /// A message that is collected has one segment, and no other length than its own. A Terminate
    /// may have any: the connection ends in any case.
    fn check_collected(
        &self,
        header: &Untagged,
        opcode: Opcode,
        len: u32,
    ) -> Result<Verdict, Cause> {
        let expected = match opcode {
            Opcode::ReadRequest => ReadRequest::LEN,
            Opcode::AtomicRequest => AtomicRequest::LEN,
            Opcode::AtomicResponse => AtomicResponse::LEN,
            Opcode::Immediate { .. } => rdmap::IMMEDIATE_LEN,
            // CAST: widening.
            Opcode::Terminate => terminate::MAX_LEN.min(len as usize),
            _ => 0,
        };
        // CAST: widening.
        let len = len as usize;
        if opcode == Opcode::Terminate {
            return Ok(Verdict::Collected {
                opcode,
                len: expected,
            });
        }
        // Immediate data shares its queue with the Sends.
        if self.untagged.is_some() && opcode.queue() == Some(rdmap::queue::SEND) {
            return Err(Cause::Opcode);
        }
        if len > expected {
            Err(Cause::TooLong)
        } else if len < expected || !header.last {
            Err(Cause::OperationUnspecified)
        } else {
            Ok(Verdict::Collected { opcode, len })
        }
    }
}

/// Checks that a segment is of the unfinished message, if there is one.
fn follow(unfinished: &mut Option<Opcode>, opcode: Opcode, last: bool) -> Result<(), Cause> {
    if unfinished.is_some_and(|other| other != opcode) {
        return Err(Cause::Opcode);
    }
    *unfinished = (!last).then_some(opcode);
    Ok(())
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_iwarp_validate))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::super::rdmap::With;
    use super::*;

    const PLAIN: Send = Send {
        solicited: false,
        with: With::Nothing,
    };
    const INVALIDATE: Send = Send {
        solicited: false,
        with: With::Invalidate,
    };
    const SEND: Opcode = Opcode::Send(PLAIN);
    const IMMEDIATE: Opcode = Opcode::Immediate { solicited: false };

    fn untagged(opcode: Opcode, message: u32, offset: u32, last: bool) -> Header {
        Header::Untagged(Untagged {
            last,
            ulp: opcode.encode(),
            ulp_word: 0,
            queue: opcode.queue().unwrap_or(99),
            message,
            offset,
        })
    }

    fn tagged(opcode: Opcode, offset: u64, last: bool) -> Header {
        Header::Tagged(Tagged {
            last,
            ulp: opcode.encode(),
            stag: 7,
            offset,
        })
    }

    /// The verdict on the last of these segments; the ones before are right.
    fn after<const N: usize>(segments: [(Header, u32); N]) -> Result<Verdict, Cause> {
        let mut validator = Validator::new(true);
        let mut verdict = Err(Cause::Lost);
        for (at, (header, len)) in segments.iter().enumerate() {
            verdict = validator.check(header, *len);
            if verdict.is_err() && at + 1 < N {
                return Err(Cause::Lost);
            }
        }
        verdict
    }

    #[test]
    fn right_segments_have_a_place() {
        let write = Segment {
            place: Place::Write {
                stag: 7,
                offset: 16,
            },
            len: 9,
            last: false,
        };
        assert_eq!(
            after([(tagged(Opcode::Write, 16, false), 9)]),
            Ok(Verdict::Placed(write))
        );
        let response = Segment {
            place: Place::ReadResponse { stag: 7, offset: 0 },
            len: 0,
            last: true,
        };
        assert_eq!(
            after([(tagged(Opcode::ReadResponse, 0, true), 0)]),
            Ok(Verdict::Placed(response))
        );
        let send = Segment {
            place: Place::Send {
                send: PLAIN,
                offset: 9,
            },
            len: 1,
            last: true,
        };
        assert_eq!(
            after([
                (untagged(SEND, 1, 0, false), 9),
                (untagged(SEND, 1, 9, true), 1)
            ]),
            Ok(Verdict::Placed(send))
        );
    }

    #[test]
    fn messages_of_rdmap_are_collected() {
        for (opcode, len) in [
            (Opcode::ReadRequest, 28),
            (Opcode::AtomicRequest, 52),
            (Opcode::AtomicResponse, 12),
            (IMMEDIATE, 8),
            (Opcode::Acknowledge, 0),
        ] {
            let verdict = Verdict::Collected { opcode, len };
            // CAST: as above.
            let len = len as u32;
            assert_eq!(after([(untagged(opcode, 1, 0, true), len)]), Ok(verdict));
            assert_eq!(
                after([(untagged(opcode, 1, 0, true), len + 1)]),
                Err(Cause::TooLong)
            );
            assert_eq!(
                after([(untagged(opcode, 1, 0, false), len)]),
                Err(Cause::OperationUnspecified)
            );
            if let Some(less) = len.checked_sub(1) {
                assert_eq!(
                    after([(untagged(opcode, 1, 0, true), less)]),
                    Err(Cause::OperationUnspecified)
                );
            }
        }
    }

    #[test]
    fn a_terminate_may_have_any_length() {
        for (len, used) in [(0, 0), (4, 4), (52, 52), (53, 52), (65000, 52)] {
            let verdict = Verdict::Collected {
                opcode: Opcode::Terminate,
                len: used,
            };
            assert_eq!(
                after([(untagged(Opcode::Terminate, 1, 0, false), len)]),
                Ok(verdict)
            );
        }
    }

    #[test]
    fn wrong_headers_have_the_causes_of_the_rfcs() {
        for (header, len, cause) in [
            (tagged(SEND, 0, true), 0, Cause::Opcode),
            (tagged(Opcode::Terminate, 0, true), 4, Cause::Opcode),
            (untagged(Opcode::Write, 1, 0, true), 0, Cause::Opcode),
            (tagged(Opcode::Write, u64::MAX, true), 2, Cause::TaggedWrap),
            (
                tagged(Opcode::ReadResponse, u64::MAX - 9, true),
                11,
                Cause::TaggedWrap,
            ),
            (untagged(SEND, 0, 0, true), 0, Cause::MessageRange),
            (untagged(SEND, 2, 0, true), 0, Cause::MessageRange),
            (untagged(SEND, 1, 1, true), 0, Cause::MessageOffset),
            (
                untagged(Opcode::ReadRequest, 2, 0, true),
                28,
                Cause::MessageRange,
            ),
        ] {
            assert_eq!(after([(header, len)]), Err(cause));
        }
        let version = Tagged {
            last: true,
            ulp: 0x80,
            stag: 7,
            offset: 0,
        };
        assert_eq!(
            after([(Header::Tagged(version), 0)]),
            Err(Cause::RdmapVersion)
        );
        let opcode = Tagged {
            ulp: 0x4f,
            ..version
        };
        assert_eq!(after([(Header::Tagged(opcode), 0)]), Err(Cause::Opcode));
    }

    #[test]
    fn each_message_has_its_own_queue() {
        for (opcode, queue) in [
            (SEND, 1),
            (SEND, 5),
            (SEND, u32::MAX),
            (Opcode::ReadRequest, 0),
            (IMMEDIATE, 3),
        ] {
            let header = Untagged {
                last: true,
                ulp: opcode.encode(),
                ulp_word: 0,
                queue,
                message: 1,
                offset: 0,
            };
            assert_eq!(
                after([(Header::Untagged(header), 0)]),
                Err(Cause::InvalidQueue)
            );
        }
    }

    #[test]
    fn the_segments_of_two_messages_do_not_mix() {
        let send = (untagged(SEND, 1, 0, false), 4);
        for second in [
            untagged(Opcode::Send(INVALIDATE), 1, 4, true),
            untagged(IMMEDIATE, 1, 4, true),
        ] {
            assert_eq!(after([send, (second, 8)]), Err(Cause::Opcode));
        }
        let write = (tagged(Opcode::Write, 0, false), 4);
        let response = (tagged(Opcode::ReadResponse, 4, true), 4);
        assert_eq!(after([write, response]), Err(Cause::Opcode));
        // A message that has ended is out of the way, and one of another queue is in no way.
        let end = (tagged(Opcode::Write, 4, true), 4);
        assert!(after([write, end, response]).is_ok());
        assert!(after([
            send,
            write,
            (untagged(Opcode::ReadRequest, 1, 0, true), 28),
            end
        ])
        .is_ok());
    }

    #[test]
    fn the_messages_of_ndk_are_for_ndk() {
        let send = Send {
            with: With::Immediate,
            ..PLAIN
        };
        for (opcode, len) in [
            (IMMEDIATE, 8),
            (Opcode::AtomicRequest, 52),
            (Opcode::AtomicResponse, 12),
            (Opcode::Send(send), 1),
            (Opcode::Acknowledge, 0),
        ] {
            let header = untagged(opcode, 1, 0, true);
            assert!(Validator::new(true).check(&header, len).is_ok());
            assert_eq!(
                Validator::new(false).check(&header, len),
                Err(Cause::Opcode)
            );
        }
    }
}
