// SPDX-License-Identifier: GPL-2.0

//! [`Performance`]: the counters of `NDIS_NDK_PERFORMANCE_COUNTERS` (ADPT-07).
//!
//! They are those of the device, whoever uses it. What is not counted is not in the mask: nothing
//! distinguishes connections that fail from others that end, and bytes travel in no frames here.

use super::adapter::Adapter;
use crate::engine::counters::Counter;

/// Numbers of the counters, which are bits of the mask.
pub(crate) mod number {
    pub(crate) const CONNECT: usize = 0;
    pub(crate) const ACCEPT: usize = 1;
    pub(crate) const CONNECT_FAILURE: usize = 2;
    pub(crate) const CONNECTION_ERROR: usize = 3;
    pub(crate) const ACTIVE_CONNECTION: usize = 4;
    pub(crate) const CQ_ERROR: usize = 25;
    pub(crate) const IN_OCTETS: usize = 26;
    pub(crate) const OUT_OCTETS: usize = 27;
    pub(crate) const IN_FRAMES: usize = 28;
    pub(crate) const OUT_FRAMES: usize = 29;
    /// How many numbers there are, those that mean nothing included.
    pub(crate) const COUNT: usize = 30;
}

/// The counters of a device at one moment, as far as that is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Performance {
    /// Bit `n` is set if the value with number `n` is counted.
    pub(crate) mask: u32,
    pub(crate) values: [u64; number::COUNT],
}

/// What is counted, and by which counter of the engine.
const SOURCES: [(usize, Counter); 6] = [
    (number::CONNECT, Counter::Connects),
    (number::ACCEPT, Counter::Accepts),
    (number::CONNECT_FAILURE, Counter::ConnectFailures),
    (number::CQ_ERROR, Counter::CqOverflows),
    (number::IN_OCTETS, Counter::BytesIn),
    (number::OUT_OCTETS, Counter::BytesOut),
];

impl Adapter {
    /// The counters of the device. Any context.
    pub(crate) fn performance(&self) -> Performance {
        let engine = &self.device;
        // CAST: a variant's number is an index.
        let counted = |counter: Counter| engine.counted(counter as usize);
        let mut now = Performance {
            mask: 1 << number::ACTIVE_CONNECTION,
            values: [0; number::COUNT],
        };
        for (number, counter) in SOURCES {
            now.mask |= 1 << number;
            if let Some(value) = now.values.get_mut(number) {
                *value = counted(counter);
            }
        }
        // Read first: one that ends meanwhile must not count as two that do.
        let ended = counted(Counter::Disconnects);
        let begun = counted(Counter::Connects).wrapping_add(counted(Counter::Accepts));
        if let Some(value) = now.values.get_mut(number::ACTIVE_CONNECTION) {
            *value = begun.saturating_sub(ended);
        }
        now
    }
}
