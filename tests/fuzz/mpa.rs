// SPDX-License-Identifier: GPL-2.0

// Start-up frames: a frame that is accepted is made again from its meaning, and has the same
// meaning. FPDUs: lengths agree with one another.

use crate::mpa::*;

pub fn run(input: &[u8]) {
    for kind in [Kind::Request, Kind::Reply] {
        start_up(kind, input);
    }
    if let Some(bytes) = input.first_chunk() {
        let enhanced = Enhanced::decode(*bytes);
        assert_eq!(enhanced.encode(), *bytes);
    }
    if let Some(bytes) = input.first_chunk() {
        framing(u16::from_be_bytes(*bytes));
    }
}

fn start_up(kind: Kind, input: &[u8]) {
    let Some(frame) = input.first_chunk::<START_LEN>() else {
        return;
    };
    let decoded = Start::decode(kind, frame);
    // Each first part of a frame with the key may become one, and no other.
    let same = match kind {
        Kind::Request => b"MPA ID Req Frame",
        Kind::Reply => b"MPA ID Rep Frame",
    };
    let same = same.iter().zip(frame).take_while(|(a, b)| a == b).count();
    for len in 0..=START_LEN {
        assert_eq!(Start::may_become(kind, &frame[..len]), len.min(16) <= same);
    }
    assert_eq!(decoded == Err(BadStart::Key), same < 16);
    let Ok(start) = decoded else { return };
    assert!(start.private_data <= MAX_PRIVATE_DATA);
    // All but the bits without a meaning.
    let mut meant = 0xe0 | if kind == Kind::Request { 0x04 } else { 0x02 };
    meant |= if frame[17] == 2 { 0x10 } else { 0 };
    let again = start.encode().unwrap();
    assert_eq!(again[..16], frame[..16]);
    assert_eq!(again[16], frame[16] & meant);
    assert_eq!(again[17..], frame[17..]);
}

fn framing(ulpdu: u16) {
    let len = fpdu_len(ulpdu);
    assert_eq!(len % 4, 0);
    assert!(padding(ulpdu) < 4);
    let trailer = Trailer::new(ulpdu, u32::from(ulpdu) << 7);
    assert_eq!(
        LENGTH_LEN + usize::from(ulpdu) + trailer.as_bytes().len(),
        len
    );
    let sent = trailer.as_bytes().last_chunk().unwrap();
    assert_eq!(crc(*sent), u32::from(ulpdu) << 7);
    let most = max_ulpdu(usize::from(ulpdu));
    assert!(most == 0 || fpdu_len(most) <= usize::from(ulpdu));
}
