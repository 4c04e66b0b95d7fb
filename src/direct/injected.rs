// SPDX-License-Identifier: GPL-2.0

//! [`Injected`]: the effect of faults on one request.
//!
//! Tests: `direct/tests/inject.rs`.

use crate::engine::prelude::*;

/// The effect of faults on a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Injected {
    /// The request that this was drawn for.
    pub(super) seq: Option<u32>,
    /// It begins not before this, in nanoseconds of monotonic time.
    pub(super) begins_at: u64,
    /// The status that it fails with.
    pub(super) status: Option<Status>,
    /// It finds no receive for so many microseconds; 0 is for ever.
    pub(super) rnr: Option<u32>,
    /// It finds one not before this, once it has looked.
    pub(super) ready_at: Option<u64>,
    pub(super) refuse_access: bool,
    pub(super) refuse_invalidation: bool,
    /// A byte of it arrives wrong: which one, by chance.
    pub(super) corrupt: Option<u32>,
    /// It ends so many microseconds late.
    pub(super) late: Option<u32>,
    /// Its receive ends before it is late.
    pub(super) only_own_is_late: bool,
    pub(super) ends_at: Option<u64>,
    pub(super) drop_connection: bool,
}
