// SPDX-License-Identifier: GPL-2.0

// Headers: one that is accepted is made again from its meaning. Order: a stream of segments is
// judged as by a list of the bytes that each message has so far.

use crate::ddp::*;

pub fn run(input: &[u8]) {
    header(input);
    order(input);
    if let Some((offset, rest)) = input.split_first_chunk() {
        if let Some(len) = rest.first_chunk() {
            range(u64::from_be_bytes(*offset), u32::from_be_bytes(*len));
        }
    }
}

fn header(input: &[u8]) {
    let decoded = Header::decode(input);
    assert_eq!(decoded == Err(BadHeader::Short), is_short(input));
    let Ok(header) = decoded else { return };
    let again = match &header {
        Header::Tagged(header) => header.encode().to_vec(),
        Header::Untagged(header) => header.encode().to_vec(),
    };
    // All but the reserved bits.
    assert_eq!(again[0], input[0] & !0x3c);
    assert_eq!(again[1..], input[1..again.len()]);
    assert_eq!(header.ulp(), input[1]);
    assert_eq!(Header::len_by(input[0]), Ok(again.len()));
}

fn is_short(input: &[u8]) -> bool {
    match input.first() {
        None => true,
        Some(first) => Header::len_by(*first).is_ok_and(|len| input.len() < len),
    }
}

/// Four bytes of input are a segment: the step of its number, of its offset, its length, its last.
fn order(input: &[u8]) {
    let mut order = Order::new();
    let (mut message, mut bytes) = (1u32, 0u64);
    for segment in input.chunks_exact(4) {
        let len = u32::from(segment[2]) << (segment[3] & 31);
        let last = segment[3] & 0x80 != 0;
        let header = Untagged {
            last,
            ulp: 0,
            ulp_word: 0,
            queue: 0,
            message: message.wrapping_add(step(segment[0])),
            offset: (bytes as u32).wrapping_add(step(segment[1])),
        };
        let expected = if header.message != message {
            Err(Misordered::Message)
        } else if u64::from(header.offset) != bytes {
            Err(Misordered::Offset)
        } else if bytes + u64::from(len) > u64::from(u32::MAX) {
            Err(Misordered::TooLong)
        } else {
            Ok(())
        };
        assert_eq!(order.check(&header, len), expected);
        if expected.is_ok() {
            order.advance(len, last);
            bytes += u64::from(len);
            if last {
                (message, bytes) = (message.wrapping_add(1), 0);
            }
        }
        assert_eq!(
            (order.message(), u64::from(order.offset())),
            (message, bytes)
        );
    }
}

/// Most segments are the next.
fn step(byte: u8) -> u32 {
    u32::from(byte).saturating_sub(200)
}

fn range(offset: u64, len: u32) {
    let end = u128::from(offset) + u128::from(len);
    assert_eq!(offset_holds(offset, len), len == 0 || end <= 1 << 64);
}
