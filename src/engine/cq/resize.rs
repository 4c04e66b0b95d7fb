// SPDX-License-Identifier: GPL-2.0

//! Changing the depth of a completion queue while it is used, as NDKPI has it (CQ-06 to CQ-08).
//!
//! Tests: `engine/cq/tests.rs`.

use super::{
    CompletionQueue,
    ResizeError,
    Ring, //
};
use crate::{
    engine::{
        device,
        prelude::*, //
    },
    rdma::values::completion::Wc, //
};

impl CompletionQueue {
    /// Changes only the number of entries that the queue takes.
    ///
    /// `TooMany` for a queue that a program shares, which is [resized](Self::resize_shared)
    /// otherwise. Entries may come and go during the call; until it returns, the smaller of the two
    /// depths may be in force. May sleep.
    pub(crate) fn resize(self: &Arc<Self>, depth: u32) -> Result<(), ResizeError> {
        let _one_at_a_time = self.resizing.lock();
        let ring = Ring::new(depth, Wc::BLANK, device::gfp(self.share.is_of_program()))
            .map_err(|_| ResizeError::NoMemory)?;
        // Rings are freed under no lock but the mutex, which may be held asleep.
        let mut inner = self.inner.lock();
        let begun = match inner.shared {
            None => inner.ring.begin(ring),
            Some(_) => Err(ring),
        };
        drop(inner);
        begun.map_err(|_| ResizeError::TooMany)?;
        loop {
            let mut inner = self.inner.lock();
            let old = inner.ring.step();
            // A held call may wait for more entries than fit now.
            match old.is_some() && self.should_notify(&mut inner, false) {
                true => self.notify(inner),
                false => drop(inner),
            }
            if old.is_some() {
                return Ok(());
            }
        }
    }
}
