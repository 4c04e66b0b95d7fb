// SPDX-License-Identifier: GPL-2.0

// A peer's Terminate has some meaning or none. One of ours, of any cause and segment, tells the
// peer the same.

use crate::terminate::*;

pub fn run(input: &[u8]) {
    let received = Received::decode(input);
    if input.len() < 4 {
        assert_eq!(received.code, Cause::OperationUnspecified.code());
    } else {
        assert_eq!(received.code.to_be_bytes(), input[..2]);
    }
    let Some((code, rest)) = input.split_first_chunk() else {
        return;
    };
    let Some(cause) = Cause::from_code(u16::from_be_bytes(*code)) else {
        return;
    };
    let header = &rest[..rest
        .len()
        .min(if rest.first().is_some_and(|first| first & 0x80 != 0) {
            14
        } else {
            18
        })];
    let segment = Segment {
        header,
        request: rest.last_chunk(),
        len: input.len() as u16,
    };
    let terminate = Terminate::new(cause, Some(segment));
    let bytes = terminate.as_bytes();
    assert!(bytes.len() <= MAX_LEN);
    let received = Received::decode(bytes);
    assert_eq!(received.code, cause.code());
    // Control fields and length, then the whole header and perhaps the request, or nothing.
    let repeated = bytes.get(6..).unwrap_or_default();
    if repeated.is_empty() {
        assert_eq!(received.about, None);
        return;
    }
    assert_eq!(bytes[4..6], (input.len() as u16).to_be_bytes());
    let request = repeated.strip_prefix(header).unwrap();
    assert!(request.is_empty() || rest.ends_with(request) && request.len() == 28);
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
    let about = if header.len() == 14 {
        About::Tagged {
            stag: word(2),
            offset: u64::from(word(6)) << 32 | u64::from(word(10)),
        }
    } else {
        About::Untagged {
            queue: word(6),
            message: word(10),
        }
    };
    assert_eq!(received.about, Some(about));
}
