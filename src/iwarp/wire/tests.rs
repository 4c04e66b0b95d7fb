// SPDX-License-Identifier: GPL-2.0

//! A connection whose other end the test plays, FPDU by FPDU: faults of the peer, and a peer that is
//! not ndk.

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::{
            Acquire,
            Relaxed, //
        },
        Arc, //
    }, //
};

use super::{
    Begins,
    Terms,
    Wire, //
};
use crate::{
    engine::transport::ReadLimits,
    iwarp::{
        ddp::Header,
        mpa,
        rdmap::{
            Opcode,
            ReadRequest,
            Send,
            With, //
        },
        send::{
            Head,
            Message,
            Sender,
            LEAST_ULPDU, //
        },
        terminate::{
            self,
            Cause, //
        }, //
    },
    kunit::{
        harness::{
            wait_until,
            End,
            EndAttr,
            EngineHost,
            RNR_MS, //
        },
        wire::sockets, //
    },
    rdma::values::qp::QpState,
    sys::{
        netdev::NetDev,
        tcp::{
            crc32c,
            Buffer,
            Socket,
            State, //
        }, //
    },
};

/// The bytes that the test keeps: the longest FPDU, and a part of the next.
const ROOM: usize = 1 << 17;

/// A message of the queue pair, which is one FPDU.
struct Came {
    header: Header,
    payload: KVec<u8>,
}

impl Came {
    fn opcode(&self) -> Option<Opcode> {
        Opcode::decode(self.header.ulp()).ok()
    }

    /// The cause, if this is a Terminate.
    fn cause(&self) -> Option<Cause> {
        let is_end = self.opcode() == Some(Opcode::Terminate);
        let code = is_end.then(|| terminate::Received::decode(&self.payload).code);
        code.and_then(Cause::from_code)
    }
}

/// A queue pair, and its peer, which the test plays.
struct Played {
    end: End,
    wire: Arc<Wire>,
    peer: Socket,
    sender: Sender,
    bytes: KVec<u8>,
    have: usize,
    _engine_host: EngineHost,
    _lo: NetDev,
}

impl Played {
    /// A connection with CRCs; `extended`: the peer says that it is ndk.
    fn new(extended: bool) -> Result<Self> {
        Self::beginning(extended, Begins::Any)
    }

    /// The same, with the side that begins.
    fn beginning(extended: bool, begins: Begins) -> Result<Self> {
        let (lo, engine_host) = (NetDev::loopback()?, EngineHost::new(RNR_MS)?);
        let end = engine_host.end(&EndAttr::PLAIN)?;
        let limits = ReadLimits {
            inbound: 4,
            outbound: 4,
        };
        let terms = Terms {
            crc: true,
            extended,
            limits,
            begins,
        };
        let (near, peer) = sockets()?;
        let wire = Wire::new(&end.qp, end.device().host.next_connection(), terms)?;
        end.qp.modify(QpState::Init)?;
        end.attach(wire.link()?, 0)?;
        wire.begin(near)?;
        Ok(Self {
            end,
            wire,
            peer,
            sender: Sender::new(true),
            bytes: KVec::from_elem(0, ROOM, GFP_KERNEL)?,
            have: 0,
            _engine_host: engine_host,
            _lo: lo,
        })
    }

    /// The bytes that TCP has taken from the queue pair.
    fn taken(&self) -> u64 {
        self.wire.outbound.lock().taken()
    }

    /// Sends these bytes.
    fn put(&self, bytes: &[u8]) -> Result {
        let mut buffer = Buffer::new();
        buffer.room(bytes.len())?;
        if buffer.put(bytes) < bytes.len() {
            return Err(ENOSPC);
        }
        let mut failure = Ok(());
        wait_until(|| {
            match self.peer.send(&mut buffer, false) {
                Err(e) if e != EAGAIN => failure = Err(e),
                _ => {}
            }
            buffer.len() == 0 || failure.is_err()
        });
        failure
    }

    /// The FPDU of a short message.
    fn fpdu(&mut self, message: Message, payload: &[u8]) -> Result<KVec<u8>> {
        let mut segments = self.sender.begin(message).ok_or(EINVAL)?;
        let head = segments.next(1024).ok_or(EINVAL)?;
        self.framed(&head, payload)
    }

    /// The FPDU with that header.
    fn framed(&self, head: &Head, payload: &[u8]) -> Result<KVec<u8>> {
        let mut fpdu = KVec::new();
        fpdu.extend_from_slice(head.as_bytes(), GFP_KERNEL)?;
        fpdu.extend_from_slice(payload, GFP_KERNEL)?;
        let pad = mpa::padding(head.ulpdu);
        fpdu.extend_from_slice(&[0; 3][..pad], GFP_KERNEL)?;
        let trailer = mpa::Trailer::new(head.ulpdu, crc32c(0, &fpdu));
        fpdu.extend_from_slice(&trailer.as_bytes()[pad..], GFP_KERNEL)?;
        Ok(fpdu)
    }

    /// Sends a short message.
    fn send(&mut self, message: Message, payload: &[u8]) -> Result {
        let fpdu = self.fpdu(message, payload)?;
        self.put(&fpdu)
    }

    /// Sends a read request.
    fn ask(&mut self, source_stag: u32, size: u32) -> Result {
        let request = ReadRequest {
            sink_stag: 9,
            sink_offset: 0x1_0000_0000,
            size,
            source_stag,
            source_offset: 0,
        };
        self.send(Message::ReadRequest, &request.encode())
    }

    /// The length of the first FPDU, if all of it has come.
    fn whole(&self) -> Option<usize> {
        let len = [*self.bytes.first()?, *self.bytes.get(1)?];
        let len = mpa::fpdu_len(u16::from_be_bytes(len));
        (self.have >= mpa::LENGTH_LEN && len <= self.have).then_some(len)
    }

    /// The next message of the queue pair; waits for it. `None` if its CRC is wrong, or at the end of
    /// the stream.
    fn next(&mut self) -> Result<Option<Came>> {
        wait_until(|| {
            // Looked at before the read: the bytes before the end are read then.
            let is_open = self.peer.state() == State::Open;
            let (bytes, have) = (&mut self.bytes, &mut self.have);
            let read = self.peer.read(|packet| {
                *have += packet.take(&mut bytes[*have..]);
            });
            self.whole().is_some() || !is_open || read.is_err()
        });
        let Some(len) = self.whole() else {
            return Ok(None);
        };
        let fpdu = &self.bytes[..len];
        let ulpdu = usize::from(u16::from_be_bytes([fpdu[0], fpdu[1]]));
        let (body, crc) = fpdu.split_at(len - mpa::CRC_LEN);
        let crc: [u8; mpa::CRC_LEN] = crc.try_into().map_err(|_| EIO)?;
        let segment = &body[mpa::LENGTH_LEN..mpa::LENGTH_LEN + ulpdu];
        let header_len = Header::len_by(segment[0]).map_err(|_| EIO)?;
        let header = Header::decode(&segment[..header_len]).map_err(|_| EIO)?;
        let mut payload = KVec::new();
        payload.extend_from_slice(&segment[header_len..], GFP_KERNEL)?;
        let is_right = mpa::crc(crc) == crc32c(0, body);
        self.bytes.copy_within(len.., 0);
        self.have -= len;
        Ok(is_right.then_some(Came { header, payload }))
    }

    /// Returns true if the queue pair ends its stream, and sends nothing before; waits for that.
    fn ends(&mut self) -> Result<bool> {
        Ok(self.next()?.is_none() && self.have == 0)
    }
}

const PLAIN: Send = Send {
    solicited: false,
    with: With::Nothing,
};

#[kernel::macros::kunit_tests(ndk_iwarp_wire)]
mod tests {
    use super::*;

    use crate::{
        engine::counters::Counter,
        iwarp::{
            ddp,
            rdmap::{
                self,
                AtomicResponse, //
            },
            terminate::{
                Segment,
                Terminate, //
            }, //
        },
        kunit::{
            buffer::{
                ALL,
                BASE, //
            },
            harness::{
                cases,
                flush_work,
                is_early, //
            },
            requests::{
                invalidate,
                read,
                register,
                write,
                write_immediate,
                SEND, //
            }, //
        },
        rdma::values::{
            access::AccessFlag,
            status::Status,
            token::Token,
            work::RemoteAddr, //
        },
        sys::clock::StoppedClock,
    };

    /// A place in memory of the peer.
    const THERE: RemoteAddr = RemoteAddr {
        addr: 0x5000,
        token: Token::from_raw(0x77),
    };

    /// A fault of the peer.
    #[derive(Clone, Copy, Debug)]
    enum Fault {
        Crc,
        Length,
        Version,
        Write,
        Response,
        AtomicResponse,
        Acknowledgement,
        Invalidation,
        Read,
        LongSend,
        SendOutOfTurn,
    }

    impl Fault {
        fn commit(self, played: &mut Played) -> Result {
            let send = |len, word, with| Message::Send {
                send: Send { with, ..PLAIN },
                word,
                len,
            };
            let (stag, offset, len) = (0x1234_5678, 0, 4);
            match self {
                Self::Crc => {
                    let mut fpdu = played.fpdu(send(4, 0, With::Nothing), &[1; 4])?;
                    fpdu[21] ^= 1;
                    played.put(&fpdu)
                }
                Self::Length => played.put(&[0, 3, 0xc1, 0x40, 0, 0, 0, 0]),
                Self::Version => played.put(&[0, 18, 0x42, 0x43, 0, 0, 0, 0]),
                Self::Write => played.send(Message::Write { stag, offset, len }, &[2; 4]),
                Self::Response => played.send(Message::ReadResponse { stag, offset, len }, &[3; 4]),
                Self::AtomicResponse => {
                    let (request, original) = (1, 7);
                    let response = AtomicResponse { request, original };
                    played.send(Message::AtomicResponse, &response.encode())
                }
                Self::Acknowledgement => played.send(Message::Acknowledge { count: 9 }, &[]),
                Self::Invalidation => played.send(send(0, stag, With::Invalidate), &[]),
                Self::Read => played.ask(stag, 4),
                Self::LongSend => played.send(send(65, 0, With::Nothing), &[4; 65]),
                Self::SendOutOfTurn => {
                    // The first is never sent.
                    drop(played.fpdu(send(0, 0, With::Nothing), &[])?);
                    played.send(send(0, 0, With::Nothing), &[])
                }
            }
        }
    }

    #[test]
    fn a_fault_of_the_peer_is_answered_by_the_terminate_of_its_kind() -> Result {
        use Fault::*;
        for (fault, cause) in cases([
            (Crc, Cause::Crc),
            (Length, Cause::Length),
            (Version, Cause::UntaggedVersion),
            (Write, Cause::TaggedInvalidStag),
            (Response, Cause::TaggedInvalidStag),
            (AtomicResponse, Cause::OperationUnspecified),
            (Acknowledgement, Cause::OperationUnspecified),
            (Invalidation, Cause::CannotInvalidate),
            (Read, Cause::InvalidStag),
            (LongSend, Cause::TooLong),
            (SendOutOfTurn, Cause::MessageRange),
        ]) {
            let mut played = Played::new(true)?;
            let sink = played.end.buffer(64)?;
            played.end.receive(1, &[sink.whole()])?;
            fault.commit(&mut played)?;
            let came = played.next()?.ok_or(EIO)?;
            kunit_assert_eq!(came.cause(), Some(cause));
            assert!(played.ends()?);
            assert!(played.end.is_down());
            let status = match fault {
                Invalidation => Status::ReceiveInvalidation,
                LongSend => Status::ReceiveLength,
                _ => Status::Flushed,
            };
            assert!(played.end.receives.next_is(1, status));
            assert!(played.end.receives.stays_empty());
        }
        Ok(())
    }

    #[test]
    fn a_response_that_does_not_fit_ends_the_read_and_the_connection() -> Result {
        // A wrong place, more bytes than were asked for, fewer, and another token.
        let faults = [(4, 8, 0), (0, 12, 0), (0, 4, 0), (0, 8, 1)];
        for (offset, len, other) in cases(faults) {
            let mut played = Played::new(true)?;
            let sink = played.end.buffer(8)?;
            played.end.post(1, read(THERE), &[sink.whole()])?;
            let came = played.next()?.ok_or(EIO)?;
            kunit_assert_eq!(came.opcode(), Some(Opcode::ReadRequest));
            let request: &[u8; ReadRequest::LEN] = came.payload[..].try_into().map_err(|_| EIO)?;
            let request = ReadRequest::decode(request);
            kunit_assert_eq!((request.source_stag, request.size), (0x77, 8));
            let response = Message::ReadResponse {
                stag: request.sink_stag ^ other,
                offset: request.sink_offset + offset,
                len,
            };
            // CAST: a few bytes.
            played.send(response, &[5; 12][..len as usize])?;
            let cause = played.next()?.and_then(|came| came.cause());
            let want = match other {
                0 => Cause::TaggedBounds,
                _ => Cause::TaggedInvalidStag,
            };
            kunit_assert_eq!(cause, Some(want));
            assert!(played.end.sends.next_is(1, Status::Flushed));
            assert!(played.end.is_down());
            assert!(sink.is_blank(0, 8));
        }
        Ok(())
    }

    /// The Terminate that names the untagged message `number` of `queue`.
    fn about(cause: Cause, queue: u32, number: u32) -> Terminate {
        let opcode = match queue {
            rdmap::queue::READ => Opcode::ReadRequest,
            _ => Opcode::Send(PLAIN),
        };
        let header = ddp::Untagged {
            last: true,
            ulp: opcode.encode(),
            ulp_word: 0,
            queue,
            message: number,
            offset: 0,
        };
        let about = Segment {
            header: &header.encode(),
            request: None,
            len: 18,
        };
        Terminate::new(cause, Some(about))
    }

    #[test]
    fn a_terminate_ends_the_request_that_it_names() -> Result {
        use rdmap::queue::{
            READ,
            SEND as SENDS, //
        };
        let statuses = [
            (Cause::InvalidStag, READ, 2, 3, Status::RemoteAccess),
            (Cause::NoBuffer, SENDS, 1, 1, Status::ReceiverNotReady),
            (
                Cause::CannotInvalidate,
                SENDS,
                1,
                1,
                Status::RemoteInvalidRequest,
            ),
            (Cause::GlobalCatastrophic, SENDS, 1, 9, Status::Flushed),
        ];
        for (cause, queue, number, blamed, status) in cases(statuses) {
            let mut played = Played::new(true)?;
            let sink = played.end.buffer(8)?;
            played.end.post(1, SEND, &[])?;
            played.end.post(2, read(THERE), &[sink.whole()])?;
            played.end.post(3, read(THERE), &[sink.whole()])?;
            for _ in 0..3 {
                assert!(played.next()?.is_some());
            }
            let terminate = about(cause, queue, number);
            let bytes = terminate.as_bytes();
            // CAST: a few bytes.
            let len = bytes.len() as u16;
            played.send(Message::Terminate { len }, bytes)?;
            for context in 1..4 {
                let want = match context == blamed {
                    true => status,
                    false => Status::Flushed,
                };
                assert!(played.end.sends.next_is(context, want));
            }
            assert!(played.end.is_down());
            assert!(played.ends()?);
        }
        Ok(())
    }

    #[test]
    fn a_stream_that_ends_inside_of_a_message_ends_the_connection() -> Result {
        // With a FIN, and with a reset.
        for resets in cases([false, true]) {
            let mut played = Played::new(true)?;
            let sink = played.end.buffer(64)?;
            played.end.receive(1, &[sink.whole()])?;
            played.end.post(2, SEND, &[])?;
            let (send, word, len) = (PLAIN, 0, 40);
            let fpdu = played.fpdu(Message::Send { send, word, len }, &[6; 40])?;
            played.put(&fpdu[..30])?;
            let Played { end, peer, .. } = played;
            match resets {
                true => peer.reset_on_drop(),
                false => peer.end()?,
            }
            drop(peer);
            assert!(end.is_down());
            assert!(end.receives.next_is(1, Status::Flushed));
            assert!(end.sends.next_is(2, Status::Flushed));
        }
        Ok(())
    }

    #[test]
    fn a_terminate_comes_behind_all_that_fills_tcp() -> Result {
        // The socket of an end that is over stays until it is read.
        let _clock = StoppedClock::new();
        let mut played = Played::new(true)?;
        let source = played.end.filled(1 << 20, 9)?;
        for context in cases(1..17) {
            played.end.post(context, write(THERE), &[source.whole()])?;
        }
        flush_work(played.end.device());
        played.ask(0x1234_5678, 4)?;
        assert!(played.end.is_down());
        let (mut last, mut bytes) = (None, 0);
        while last.is_none() {
            let came = played.next()?.ok_or(EIO)?;
            last = came.cause();
            bytes += came.payload.len();
        }
        kunit_assert_eq!(last, Some(Cause::InvalidStag));
        // TCP did not take all.
        assert!(bytes < 16 << 20);
        assert!(played.ends()?);
        assert!(played.end.sends.next_are(1..17, Status::Flushed));
        Ok(())
    }

    #[test]
    fn an_end_that_waits_for_an_access_to_memory_finds_no_fault() -> Result {
        let mut played = Played::new(true)?;
        let (memory, sink) = (played.end.fast(64)?, played.end.buffer(64)?);
        let (token, user) = (memory.token(), played.end.qp.peer_user());
        played.end.post(1, register(token, 64, ALL), &[])?;
        assert!(played.end.sends.next_is(1, Status::Success));
        let device = played.end.device().clone();
        let access = (device.regions).access(token, user, AccessFlag::RemoteRead, BASE, 1);
        assert!(access.is_ok());
        played.end.post(2, invalidate(token), &[])?;
        assert!(wait_until(|| played.end.qp.details().sends_outstanding == 1));
        played.end.receive(3, &[sink.whole()])?;
        let (send, word, len) = (PLAIN, 0, 40);
        let fpdu = played.fpdu(Message::Send { send, word, len }, &[6; 40])?;
        played.put(&fpdu[..30])?;
        assert!(wait_until(|| sink.word(0) == u64::from_ne_bytes([6; 8])));
        // The rest of the message comes after the end, which waits for the access.
        played.end.qp.fail();
        played.put(&fpdu[30..])?;
        assert!(played.end.sends.stays_empty());
        drop(access);
        assert!(played.end.sends.next_is(2, Status::Success));
        // The message may have been carried out before.
        assert!(played.end.receives.next().is_some());
        while let Some(came) = played.next()? {
            kunit_assert_eq!(came.opcode(), Some(Opcode::Acknowledge));
        }
        Ok(())
    }

    #[test]
    fn with_another_peer_a_request_ends_when_tcp_has_its_bytes() -> Result {
        let mut played = Played::new(false)?;
        let source = played.end.filled(40, 31)?;
        let to = RemoteAddr {
            addr: 0x9000,
            token: Token::from_raw(0x88),
        };
        played.end.post(1, SEND, &[source.whole()])?;
        played.end.post(2, write(to), &[source.whole()])?;
        assert!(played.end.sends.next_are(1..3, Status::Success));
        let came = played.next()?.ok_or(EIO)?;
        kunit_assert_eq!(came.opcode(), Some(Opcode::Send(PLAIN)));
        let came = played.next()?.ok_or(EIO)?;
        kunit_assert_eq!(came.opcode(), Some(Opcode::Write));
        let want = ddp::Tagged {
            last: true,
            ulp: Opcode::Write.encode(),
            stag: 0x88,
            offset: 0x9000,
        };
        kunit_assert_eq!(came.header, Header::Tagged(want));
        kunit_assert_eq!(came.payload.len(), 40);
        // Nothing of a request goes out that the peer does not know.
        played
            .end
            .post(3, write_immediate(to, 1), &[source.whole()])?;
        assert!(played.end.sends.next_is(3, Status::LocalOperation));
        assert!(played.ends()?);
        assert!(played.end.is_down());
        Ok(())
    }

    #[test]
    fn a_responder_sends_nothing_before_it_hears_the_initiator() -> Result {
        let (send, word, stag, offset, len) = (PLAIN, 0, 1, 0, 0);
        // Each message, and the one that it has the queue pair send beside its own Send; a Send of the
        // peer waits for its receive.
        let messages = [
            (Message::Acknowledge { count: 0 }, None),
            (Message::Send { send, word, len }, None),
            (
                Message::Write { stag, offset, len },
                Some(Opcode::Acknowledge),
            ),
            (Message::ReadRequest, Some(Opcode::ReadResponse)),
        ];
        for (message, other) in cases(messages) {
            let mut played = Played::beginning(true, Begins::There)?;
            played.end.post(1, SEND, &[])?;
            flush_work(played.end.device());
            kunit_assert_eq!(played.taken(), 0);
            match message {
                Message::ReadRequest => played.ask(1, 0)?,
                _ => played.send(message, &[])?,
            }
            let mut came = (false, other.is_none());
            while came != (true, true) {
                let opcode = played.next()?.ok_or(EIO)?.opcode();
                match opcode == Some(Opcode::Send(PLAIN)) {
                    true => came.0 = true,
                    false => {
                        kunit_assert_eq!(opcode, other);
                        came.1 = true;
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn what_is_no_fpdu_ends_the_connection_before_the_responder_says_a_word() -> Result {
        let mut played = Played::beginning(true, Begins::There)?;
        played.end.post(1, SEND, &[])?;
        Fault::Length.commit(&mut played)?;
        assert!(played.ends()?);
        assert!(played.end.is_down());
        assert!(played.end.sends.next_is(1, Status::Flushed));
        Ok(())
    }

    #[test]
    fn a_responder_waits_a_second_for_an_initiator_that_promised_nothing() -> Result {
        let clock = StoppedClock::new();
        let mut played = Played::beginning(false, Begins::Perhaps)?;
        played.end.post(1, SEND, &[])?;
        // The second half begins when the first is over.
        let early = is_early(&clock, 500, || !played.wire.hears_again.load(Acquire));
        kunit_assert_eq!(early, false);
        assert!(wait_until(|| !played.wire.hears_again.load(Acquire)));
        let early = is_early(&clock, 500, || played.taken() > 0);
        kunit_assert_eq!(early, false);
        let came = played.next()?.ok_or(EIO)?;
        kunit_assert_eq!(came.opcode(), Some(Opcode::Send(PLAIN)));
        Ok(())
    }

    #[test]
    fn a_responder_waits_for_what_an_initiator_has_promised() -> Result {
        let clock = StoppedClock::new();
        let mut played = Played::beginning(false, Begins::There)?;
        played.end.post(1, SEND, &[])?;
        for _ in cases(0..4) {
            let early = is_early(&clock, RNR_MS, || played.taken() > 0);
            kunit_assert_eq!(early, false);
        }
        let (stag, offset, len) = (1, 0, 0);
        played.send(Message::Write { stag, offset, len }, &[])?;
        let came = played.next()?.ok_or(EIO)?;
        kunit_assert_eq!(came.opcode(), Some(Opcode::Send(PLAIN)));
        Ok(())
    }

    #[test]
    fn an_initiator_begins_with_an_acknowledgement_of_nothing() -> Result {
        let mut played = Played::beginning(true, Begins::Here)?;
        let came = played.next()?.ok_or(EIO)?;
        kunit_assert_eq!(came.opcode(), Some(Opcode::Acknowledge));
        played.end.post(1, SEND, &[])?;
        let came = played.next()?.ok_or(EIO)?;
        kunit_assert_eq!(came.opcode(), Some(Opcode::Send(PLAIN)));
        played.send(Message::Acknowledge { count: 1 }, &[])?;
        assert!(played.end.sends.next_is(1, Status::Success));
        Ok(())
    }

    #[test]
    fn a_close_waits_for_an_answer_no_longer_than_for_a_receive() -> Result {
        // A peer that is ndk, another, and one that has not begun.
        let peers = [
            (true, Begins::Any),
            (false, Begins::Any),
            (true, Begins::There),
        ];
        for (extended, begins) in cases(peers) {
            let clock = StoppedClock::new();
            let mut played = Played::beginning(extended, begins)?;
            let sink = played.end.buffer(8)?;
            played.end.post(1, read(THERE), &[sink.whole()])?;
            if begins == Begins::Any {
                assert!(played.next()?.is_some());
            }
            played.end.qp.close();
            flush_work(played.end.device());
            let early = is_early(&clock, RNR_MS + 1, || played.end.qp.state() != QpState::Rts);
            kunit_assert_eq!(early, false);
            assert!(played.end.sends.next_is(1, Status::Flushed));
            assert!(played.end.is_down());
            assert!(played.ends()?);
        }
        Ok(())
    }

    #[test]
    fn a_close_ends_when_the_peer_takes_no_more_bytes() -> Result {
        let len = 16 << 20;
        for extended in cases([true, false]) {
            let clock = StoppedClock::new();
            let played = Played::new(extended)?;
            let source = played.end.filled(len, 9)?;
            played.end.post(1, write(THERE), &[source.whole()])?;
            played.end.qp.close();
            assert!(wait_until(|| {
                clock.pass(RNR_MS);
                played.end.qp.state() != QpState::Rts
            }));
            // CAST: widening.
            assert!(played.taken() < len as u64);
            let want = match extended {
                true => Status::ReceiverNotReady,
                false => Status::Flushed,
            };
            assert!(played.end.sends.next_is(1, want));
            assert!(played.end.is_down());
        }
        Ok(())
    }

    #[test]
    fn a_close_does_not_wait_for_a_peer_that_asks_and_does_not_read() -> Result {
        let clock = StoppedClock::new();
        let mut played = Played::new(true)?;
        let memory = played.end.filled(16 << 20, 9)?;
        played.ask(memory.token().raw(), 16 << 20)?;
        assert!(wait_until(|| played.taken() > 0));
        // It has no turn before the answer, which fills TCP.
        played.end.post(1, SEND, &[])?;
        played.end.qp.close();
        assert!(wait_until(|| {
            clock.pass(RNR_MS);
            played.end.qp.state() != QpState::Rts
        }));
        assert!(played.end.sends.next_is(1, Status::Flushed));
        assert!(played.end.is_down());
        Ok(())
    }

    #[test]
    fn a_close_waits_for_an_answer_that_comes() -> Result {
        let clock = StoppedClock::new();
        let mut played = Played::new(true)?;
        // The payload of the shortest FPDU.
        let half = usize::from(LEAST_ULPDU) - ddp::TAGGED_LEN;
        let sink = played.end.buffer(2 * half)?;
        played.end.post(1, read(THERE), &[sink.whole()])?;
        let came = played.next()?.ok_or(EIO)?;
        let request: &[u8; ReadRequest::LEN] = came.payload[..].try_into().map_err(|_| EIO)?;
        let request = ReadRequest::decode(request);
        played.end.qp.close();
        flush_work(played.end.device());
        // The answer comes in two FPDUs, each in time.
        let response = Message::ReadResponse {
            stag: request.sink_stag,
            offset: request.sink_offset,
            len: request.size,
        };
        let mut segments = played.sender.begin(response).ok_or(EINVAL)?;
        for end in cases([half, 2 * half]) {
            let early = is_early(&clock, RNR_MS, || played.end.qp.state() != QpState::Rts);
            kunit_assert_eq!(early, false);
            let head = segments.next(LEAST_ULPDU).ok_or(EINVAL)?;
            let fpdu = played.framed(&head, &[5; 128][..half])?;
            played.put(&fpdu)?;
            // CAST: widening.
            assert!(wait_until(|| played.wire.placed.load(Relaxed) == end as u64));
        }
        assert!(played.end.sends.next_is(1, Status::Success));
        assert!(played.end.is_down());
        Ok(())
    }

    #[test]
    fn what_has_no_bytes_names_no_memory() -> Result {
        let mut played = Played::new(false)?;
        let (stag, offset, len) = (1, 0, 0);
        played.send(Message::Write { stag, offset, len }, &[])?;
        played.ask(1, 0)?;
        let came = played.next()?.ok_or(EIO)?;
        kunit_assert_eq!(came.opcode(), Some(Opcode::ReadResponse));
        kunit_assert_eq!(came.payload.len(), 0);
        kunit_assert_eq!(played.end.counted(Counter::AccessRefused), 0);
        // And the connection goes on.
        let memory = played.end.filled(8, 3)?;
        let request = ReadRequest {
            sink_stag: 9,
            sink_offset: 16,
            size: 8,
            source_stag: memory.token().raw(),
            source_offset: BASE,
        };
        played.send(Message::ReadRequest, &request.encode())?;
        let came = played.next()?.ok_or(EIO)?;
        let want = ddp::Tagged {
            last: true,
            ulp: Opcode::ReadResponse.encode(),
            stag: 9,
            offset: 16,
        };
        kunit_assert_eq!(came.header, Header::Tagged(want));
        kunit_assert_eq!(came.payload.len(), 8);
        Ok(())
    }

    #[test]
    fn a_connection_that_was_never_attached_leaves_nothing() -> Result {
        let (_lo, engine_host) = (NetDev::loopback()?, EngineHost::new(RNR_MS)?);
        let end = engine_host.end(&EndAttr::PLAIN)?;
        let terms = Terms {
            crc: false,
            extended: true,
            limits: ReadLimits::default(),
            begins: Begins::Any,
        };
        for begins in cases([false, true]) {
            let wire = Wire::new(&end.qp, end.device().host.next_connection(), terms)?;
            let link = wire.link()?;
            let (near, peer) = sockets()?;
            if begins {
                wire.begin(near)?;
                drop(link);
            } else {
                // It has ended before its socket came.
                drop(link);
                end.device().host.threads.flush();
                kunit_assert_eq!(wire.begin(near).err(), Some(ECONNABORTED));
            }
            assert!(wait_until(|| peer.state() != State::Open));
        }
        // The end of the host waits for what is left.
        Ok(())
    }
}
