// SPDX-License-Identifier: GPL-2.0

// Control bytes and fixed payloads: one that is accepted is made again from its meaning.

use crate::rdmap::*;

pub fn run(input: &[u8]) {
    if let Some(&control) = input.first() {
        if let Ok(opcode) = Opcode::decode(control) {
            assert_eq!(opcode.encode(), control & !0x30);
            assert!(opcode
                .queue()
                .is_none_or(|queue| queue <= queue::ACKNOWLEDGE));
        }
    }
    if let Some(bytes) = input.first_chunk() {
        assert_eq!(ReadRequest::decode(bytes).encode(), *bytes);
    }
    if let Some(bytes) = input.first_chunk() {
        assert_eq!(AtomicResponse::decode(bytes).encode(), *bytes);
    }
    if let Some(bytes) = input.first_chunk() {
        assert_eq!(encode_immediate(decode_immediate(bytes))[..4], bytes[..4]);
    }
    if let Some(bytes) = input.first_chunk::<{ AtomicRequest::LEN }>() {
        if let Some(request) = AtomicRequest::decode(bytes) {
            let again = request.encode();
            assert_eq!(AtomicRequest::decode(&again), Some(request));
            // All but the reserved bits, and what an addition has no use for.
            let used = if bytes[3] & 0x0f == 0 {
                36
            } else {
                AtomicRequest::LEN
            };
            assert_eq!(again[4..used], bytes[4..used]);
        }
    }
}
