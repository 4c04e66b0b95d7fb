// SPDX-License-Identifier: GPL-2.0

//! Races: the same promises as elsewhere, kept while several processors try to break them.
//!
//! | suite                    | file        | what it holds                                           |
//! |--------------------------|-------------|---------------------------------------------------------|
//! | `ndk_kunit_race_table`   | [`table`]   | no byte moves under a token after its end, table alone  |
//! | `ndk_kunit_race_peers`   | [`peers`]   | the same between queue pairs, for each way to end it    |
//! | `ndk_kunit_race_queues`  | [`queues`]  | each request completes once, no notification is lost    |
//! | `ndk_kunit_race_resize`  | [`resize`]  | nothing is lost or reordered while a depth changes      |
//!
//! Whoever races is a [`race_harness::Threads`]: softirq work that queues itself again on its
//! processor, and threads. The test's own thread plays the owner and judges. A race ends after so
//! many rounds, or earlier when its time is up, and not before it has had a few
//! ([`race_harness::Course`]): a slow machine takes longer for them, and comes to the same verdict.
//!
//! A failed check of the test framework ends the thread without cleaning up. So a race is run to
//! its end in a function, which dismisses its threads, and only its score is judged in the test.

mod peers;
mod queues;
pub(crate) mod race_harness;
mod resize;
mod table;

use crate::rdma::values::access::{
    AccessFlag,
    AccessFlags, //
};

/// What the owner puts into the memory before it lets peers in.
const PUBLIC: u8 = 0x11;
/// What peers write.
const INK: u8 = 0xA5;
/// What no peer may see, nor write over.
const SECRET: u8 = 0xEE;

/// What peers may do with the memory.
const RIGHTS: AccessFlags = AccessFlags::of([
    AccessFlag::LocalWrite,
    AccessFlag::RemoteRead,
    AccessFlag::RemoteWrite,
]);
