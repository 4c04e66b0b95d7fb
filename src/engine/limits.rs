// SPDX-License-Identifier: GPL-2.0

//! The sizes that both faces offer. Each can be reached on its own.
//!
//! Tests: `kunit/ndk/sizes.rs`.

use super::memory::MAX_REGIONS;

/// The most pages or pieces of a fast registration: the cap of SMB Direct.
pub(crate) const MAX_PIECES: u32 = 2048;
/// The most requests in one queue.
pub(crate) const MAX_REQUESTS: u32 = 16384;
/// The most elements of a send, a write or a receive.
pub(crate) const MAX_SGES: u32 = 32;
/// A read has one sink on the wire (RFC 5040 section 5.2), and so everywhere.
pub(crate) const MAX_READ_SGES: u32 = 1;
/// The most bytes that a request carries inline.
pub(crate) const MAX_INLINE: u32 = 512;
/// The most entries of a completion queue.
pub(crate) const MAX_CQ_ENTRIES: u32 = 1 << 20;
/// Reads at once, in either direction of a connection.
pub(crate) const MAX_READS: u32 = 128;
/// The most domains on one device, and the most completion queues, shared receive queues and queue
/// pairs, of all faces together.
pub(crate) const MAX_OBJECTS: u32 = 1 << 16;
/// The most objects of each kind that programs have: the rest is the kernel's.
pub(crate) const MAX_PROGRAM_OBJECTS: u32 = MAX_OBJECTS / 4 * 3;
/// The most regions that programs have on one device: the rest of the table is the kernel's.
// CAST: far below 2^32.
pub(crate) const MAX_PROGRAM_REGIONS: u32 = (MAX_REGIONS / 4 * 3) as u32;
/// The longest message, in bytes: it fits a completion's length and RFC 5040's 32-bit offsets.
pub(crate) const MAX_MESSAGE: u64 = 1 << 31;
