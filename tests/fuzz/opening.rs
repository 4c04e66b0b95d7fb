// SPDX-License-Identifier: GPL-2.0

// The start-up: a frame is the same whatever pieces it comes in, and takes no byte behind it; the
// answer to any request is one that the protocol allows, and carries its private data.

use crate::{
    mpa::{BadStart, Kind, MAX_PRIVATE_DATA, START_LEN},
    opening::*,
};

pub fn run(input: &[u8]) {
    let [how, piece, stream @ ..] = input else {
        return;
    };
    let offer = Offer {
        reads: Reads {
            inbound: u32::from(how >> 4),
            outbound: 128,
        },
        crc: how & 1 != 0,
        extended: how & 2 != 0,
    };
    let kind = if how & 4 == 0 {
        Kind::Request
    } else {
        Kind::Reply
    };
    let (frame, used) = fed(kind, stream, usize::from(*piece) + 1);
    let (again, used_again) = fed(kind, stream, usize::MAX);
    match (&frame, &again) {
        (Ok(_), Ok(_)) => assert_eq!(used, used_again),
        (Err(a), Err(b)) => assert_eq!(a, b),
        _ => panic!("pieces matter"),
    }
    let Ok((frame, is_whole)) = frame else { return };
    assert!(used <= START_LEN + MAX_PRIVATE_DATA);
    match kind {
        Kind::Request => request_came(&frame, is_whole, &offer, &stream[..used]),
        Kind::Reply => reply_came(&frame, is_whole, &offer, &stream[..used]),
    }
}

/// The frame of the stream, given so many bytes at a time, and the bytes that it took.
fn fed(kind: Kind, stream: &[u8], piece: usize) -> (Result<(Frame, bool), BadStart>, usize) {
    let (mut frame, mut used) = (Frame::new(kind), 0);
    loop {
        let room = frame.room();
        let len = room.len().min(piece).min(stream.len() - used);
        room[..len].copy_from_slice(&stream[used..used + len]);
        used += len;
        match frame.filled(len) {
            Err(bad) => return (Err(bad), used),
            Ok(true) => return (Ok((frame, true)), used),
            Ok(false) if len == 0 => return (Ok((frame, false)), used),
            Ok(false) => {}
        }
    }
}

fn ends_with(bytes: &[u8], data: &[u8]) -> bool {
    bytes[START_LEN..].ends_with(data)
}

fn request_came(frame: &Frame, is_whole: bool, offer: &Offer, bytes: &[u8]) {
    let read = Request::read(frame, offer);
    assert_eq!(read.is_some(), is_whole);
    let Some((asked, judged)) = read else { return };
    if let Ok(data) = judged {
        assert!(ends_with(bytes, data) && data.len() <= MAX_PEER_DATA);
        let token = [7; TOKEN_LEN];
        let written = asked.accept(offer, &token, b"welcome").unwrap();
        let terms = asked.terms(offer);
        assert!(terms.crc || !offer.crc);
        assert!(offer.extended || !terms.extended);
        let (reply, used) = fed(Kind::Reply, written.as_bytes(), usize::MAX);
        assert_eq!(used, written.as_bytes().len());
        let (reply, _) = reply.ok().unwrap();
        // As a side of this kind reads it, which asked with revision 2.
        let theirs = Offer {
            crc: false,
            extended: terms.extended,
            ..*offer
        };
        match Reply::read(&reply, &theirs) {
            Ok(Reply::Accepted {
                terms: settled,
                token: named,
                private_data,
            }) => {
                assert_eq!(private_data, b"welcome");
                assert_eq!(named, terms.extended.then_some(token));
                assert_eq!(settled.crc, terms.crc);
                let (ours, settled) = (offer.reads, settled.reads.unwrap());
                assert_eq!(settled.inbound, ours.inbound);
                match terms.reads {
                    Some(theirs) => {
                        assert_eq!(settled.outbound, ours.outbound.min(theirs.inbound));
                    }
                    // One of the two was left open.
                    None => assert!(settled.outbound <= ours.outbound),
                }
            }
            Err(Unfit::Revision) => assert!(terms.reads.is_none()),
            other => panic!("{other:?}"),
        }
    }
    let written = asked.reject(offer, b"no").unwrap();
    let (reply, _) = fed(Kind::Reply, written.as_bytes(), 1);
    let (reply, _) = reply.ok().unwrap();
    let rejected = Reply::Rejected {
        private_data: b"no",
    };
    assert_eq!(Reply::read(&reply, offer), Ok(rejected));
}

fn reply_came(frame: &Frame, is_whole: bool, offer: &Offer, bytes: &[u8]) {
    match Reply::read(frame, offer) {
        Ok(Reply::Accepted {
            terms,
            token,
            private_data,
        }) => {
            assert!(is_whole && ends_with(bytes, private_data));
            assert!(private_data.len() <= MAX_PEER_DATA);
            assert!(terms.crc || !offer.crc);
            assert_eq!(terms.extended, token.is_some());
            assert!(offer.extended || !terms.extended);
        }
        Ok(Reply::Rejected { private_data }) => {
            assert!(is_whole && ends_with(bytes, private_data));
            assert!(private_data.len() <= MAX_PEER_DATA);
        }
        Err(unfit) => assert!(is_whole || unfit == Unfit::Short),
    }
}
