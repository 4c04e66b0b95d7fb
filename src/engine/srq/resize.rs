// SPDX-License-Identifier: GPL-2.0

//! Changing the depth of a shared receive queue while it is used, as NDKPI has it (SRQ-06, SRQ-08).
//!
//! Tests: `engine/srq/tests.rs`.

use super::{
    ReceiveRing,
    ResizeError,
    SharedReceive, //
};
use crate::engine::prelude::*;

impl SharedReceive {
    /// Changes only the number of receives that the queue takes.
    ///
    /// `TooMany` also for a queue that a program shares, which is [resized](Self::resize_shared)
    /// otherwise. Receives may come and go during the call; until the return the smaller of the two
    /// depths may be in force. May sleep.
    pub(crate) fn resize(self: &Arc<Self>, depth: u32) -> Result<(), ResizeError> {
        let _one_at_a_time = self.resizing.lock();
        let ring = ReceiveRing::of_receives(depth, self.max_sge, self.domain.gfp());
        let ring = ring.map_err(|_| ResizeError::NoMemory)?;
        // Rings are freed under no lock but `resizing`, under which a task may sleep.
        let mut inner = self.inner.lock();
        let begun = match inner.shared {
            None => inner.ring.begin(ring),
            Some(_) => Err(ring),
        };
        drop(inner);
        begun.map_err(|_| ResizeError::TooMany)?;
        loop {
            let old = self.inner.lock().ring.step();
            if old.is_some() {
                return Ok(());
            }
        }
    }
}
