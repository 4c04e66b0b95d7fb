// SPDX-License-Identifier: GPL-2.0

//! The program around a fuzz target: libFuzzer calls it with bytes of its choice. A panic is a
//! finding. `scripts/fuzz` compiles it once for each target, whose file `NDK_FUZZ_TARGET` names.

#![no_main]
// A target uses some of the codecs.
#![allow(dead_code, unexpected_cfgs)]

#[path = "../../src/iwarp/ddp.rs"]
mod ddp;
#[path = "../../src/iwarp/mpa.rs"]
mod mpa;
#[path = "../../src/iwarp/opening.rs"]
mod opening;
#[path = "../../src/iwarp/rdmap.rs"]
mod rdmap;
#[path = "../../src/iwarp/receive.rs"]
mod receive;
#[path = "../../src/iwarp/send.rs"]
mod send;
#[path = "../../src/iwarp/terminate.rs"]
mod terminate;
#[path = "../../src/iwarp/validate.rs"]
mod validate;

mod target {
    include!(env!("NDK_FUZZ_TARGET"));
}

#[no_mangle]
extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, len: usize) -> i32 {
    let input = if len == 0 {
        &[]
    } else {
        // SAFETY: libFuzzer passes `len` bytes that it leaves alone until this function returns.
        unsafe { core::slice::from_raw_parts(data, len) }
    };
    target::run(input);
    0
}
