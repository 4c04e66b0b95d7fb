// SPDX-License-Identifier: GPL-2.0

// The sending side: each message goes out in segments that follow one another, fit their room, and
// have the message's length together.

use crate::{ddp::*, mpa, rdmap::*, send::*};

pub fn run(input: &[u8]) {
    let extended = input.len() % 2 == 0;
    let mut sender = Sender::new(extended);
    let mut orders = [Order::new(); 5];
    for bytes in input.chunks_exact(4) {
        let (control, len, room, shift) = (bytes[0], bytes[1], bytes[2], bytes[3]);
        let Ok(opcode) = Opcode::decode(0x40 | control & 0x0f) else {
            continue;
        };
        let message = message(
            opcode,
            u32::from(control) << 8,
            u32::from(len) << (shift % 10),
        );
        match sender.begin(message) {
            Some(segments) => follow(
                segments,
                message,
                u16::from(room) << (shift % 9),
                &mut orders,
            ),
            None => assert!(opcode.is_extension() && !extended),
        }
        assert!(extended || !opcode.is_extension() || orders[3..] == [Order::new(); 2]);
    }
}

/// A message of that kind; one that is placed has `len` bytes.
fn message(opcode: Opcode, word: u32, len: u32) -> Message {
    let (stag, offset) = (!word, u64::from(word) << 16);
    match opcode {
        Opcode::Write => Message::Write { stag, offset, len },
        Opcode::ReadResponse => Message::ReadResponse { stag, offset, len },
        Opcode::Send(send) => Message::Send { send, word, len },
        Opcode::Immediate { solicited } => Message::Immediate { solicited },
        Opcode::ReadRequest => Message::ReadRequest,
        Opcode::AtomicRequest => Message::AtomicRequest,
        Opcode::AtomicResponse => Message::AtomicResponse,
        Opcode::Acknowledge => Message::Acknowledge { count: word },
        Opcode::Terminate => Message::Terminate {
            len: len as u16 % 53,
        },
    }
}

fn follow(mut segments: Segments, message: Message, most: u16, orders: &mut [Order; 5]) {
    let (mut sent, mut count, mut ended) = (0, 0, false);
    while let Some(head) = segments.next(most) {
        assert!(!ended);
        assert!(head.ulpdu <= most.max(LEAST_ULPDU));
        assert_eq!(head.offset, sent);
        let header = &head.as_bytes()[mpa::LENGTH_LEN..];
        assert_eq!(
            usize::from(head.ulpdu),
            header.len() + head.payload as usize
        );
        let decoded = Header::decode(header).unwrap();
        assert_eq!(Opcode::decode(decoded.ulp()), Ok(message.opcode()));
        match (decoded, message) {
            (
                Header::Tagged(header),
                Message::Write { stag, offset, .. } | Message::ReadResponse { stag, offset, .. },
            ) => {
                assert_eq!(
                    (header.stag, header.offset),
                    (stag, offset + u64::from(sent))
                );
                ended = header.last;
            }
            (Header::Untagged(header), message) => {
                let word = match message {
                    Message::Send { word, .. } | Message::Acknowledge { count: word } => word,
                    _ => 0,
                };
                assert_eq!(header.ulp_word, word);
                assert_eq!(Some(header.queue), message.opcode().queue());
                let order = &mut orders[header.queue as usize];
                assert_eq!(order.check(&header, head.payload), Ok(()));
                assert_eq!(segments.number(), order.message());
                order.advance(head.payload, header.last);
                ended = header.last;
            }
            _ => panic!("a header of the wrong kind"),
        }
        sent += head.payload;
        count += 1;
    }
    assert!(ended);
    assert_eq!(sent, message.len());
    // No segment but the last leaves room.
    let header = if message.opcode().queue().is_some() {
        UNTAGGED_LEN
    } else {
        TAGGED_LEN
    };
    let room = u32::from(most.max(LEAST_ULPDU)) - header as u32;
    assert_eq!(count, message.len().div_ceil(room).max(1));
}
