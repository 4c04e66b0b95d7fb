// SPDX-License-Identifier: GPL-2.0

//! iWARP: the transport between hosts, over TCP. No device uses it yet.
//!
//! | file        | contents                                                                    |
//! |-------------|-----------------------------------------------------------------------------|
//! | `mpa`       | RFC 5044 and RFC 6581: the start-up, and the framing of the TCP stream      |
//! | `ddp`       | RFC 5041: segments, tagged with memory or numbered in a queue               |
//! | `rdmap`     | RFC 5040 and RFC 7306: the messages                                         |
//! | `terminate` | the end of a connection by a fault, with the codes of all layers            |
//! | `validate`  | the checks of a header against the messages before it                       |
//! | `receive`   | bytes of the stream to messages, resumable at any byte                      |
//! | `send`      | messages to FPDUs                                                           |
//! | `opening`   | the start-up: the frames of both sides, and the terms that they settle      |
//! | `ahead`     | a look at messages behind one that waits                                    |
//! | `wire`      | the transport: sockets, queue pairs, memory                                 |
//! | `carrier`   | connects and listeners, for the connection manager                          |
//!
//! The first four are codecs and import `core` alone. The others but `wire` and `carrier` import
//! the codecs, and `receive` imports `validate`. All but those two allocate nothing, and take bytes
//! of any kind, in any context.
//!
//! Two ends that are both ndk say so in the start-up (the bits `NDK_REQUEST` and `NDK_REPLY` of
//! [`mpa`]). They then also use RFC 7306, and two messages of their own: a Send with immediate data,
//! and the acknowledgement of requests that were carried out.
//!
//! Tests: `iwarp/mpa.rs`.

pub(crate) mod ahead;
pub(crate) mod carrier;
pub(crate) mod ddp;
pub(crate) mod mpa;
pub(crate) mod opening;
pub(crate) mod rdmap;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod terminate;
pub(crate) mod validate;
pub(crate) mod wire;
