// SPDX-License-Identifier: GPL-2.0

//! Races: the promises of the other suites, while several processors try to break them.
//!
//! | suite                   | file       | promise                                               |
//! |-------------------------|------------|-------------------------------------------------------|
//! | `ndk_kunit_race_table`  | [`table`]  | no byte moves under a token after its end, table only |
//! | `ndk_kunit_race_peers`  | [`peers`]  | the same between queue pairs, for each way to end it  |
//! | `ndk_kunit_race_queues` | [`queues`] | each request completes once, no notification is lost  |
//! | `ndk_kunit_race_resize` | [`resize`] | no entry is lost or reordered while a depth changes   |
//!
//! The racers are a [`race_harness::Threads`]: softirq work that queues itself again on its
//! processor, and threads. The test's own thread plays the owner and judges. A race ends after a
//! number of rounds, or earlier when its time is up, but not before a minimum
//! ([`race_harness::Course`]): a slow machine takes longer, and comes to the same verdict.
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

/// The byte that the owner writes before it lets peers in.
const PUBLIC: u8 = 0x11;
/// The byte that peers write.
const INK: u8 = 0xA5;
/// The byte that no peer may see, nor write over.
const SECRET: u8 = 0xEE;

/// The rights of peers.
const RIGHTS: AccessFlags = AccessFlags::of([
    AccessFlag::LocalWrite,
    AccessFlag::RemoteRead,
    AccessFlag::RemoteWrite,
]);
