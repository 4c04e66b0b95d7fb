// SPDX-License-Identifier: GPL-2.0

//! [`Injected`]: the effect of faults on one request.
//!
//! Tests: `direct/tests/inject.rs`.

use crate::engine::prelude::*;

/// The effect of faults on a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Injected {
    /// The request that the effect was drawn for.
    pub(super) seq: Option<u32>,
    /// The earliest time at which the request begins, in nanoseconds of monotonic time.
    pub(super) begins_at: u64,
    /// The status with which the request fails.
    pub(super) status: Option<Status>,
    /// The time for which the request finds no receive, in microseconds; 0 is for ever.
    pub(super) rnr: Option<u32>,
    /// The earliest time at which the request finds a receive, once it has looked.
    pub(super) ready_at: Option<u64>,
    pub(super) refuse_access: bool,
    pub(super) refuse_invalidation: bool,
    /// One byte of the message arrives wrong: this number chooses the byte.
    pub(super) corrupt: Option<u32>,
    /// The delay of the end of the request, in microseconds.
    pub(super) late: Option<u32>,
    /// The receive ends in time; only the request is late.
    pub(super) only_own_is_late: bool,
    pub(super) ends_at: Option<u64>,
    pub(super) drop_connection: bool,
}
