// SPDX-License-Identifier: GPL-2.0

//! How a request gets its place in the send queue.
//!
//! Tests: `engine/qp/send/tests.rs`.

use crate::engine::{
    counters::Counter,
    device::RdmaDevice,
    limits::MAX_MESSAGE,
    work::{
        Flags,
        Sge,
        Work, //
    }, //
};

use super::{
    super::PostError,
    Entry,
    SendQueue,
    Stage, //
};

impl SendQueue {
    /// The length of the message, if the request is within the limits and there is room for it.
    #[inline]
    pub(in crate::engine::qp) fn admit(
        &self,
        work: &Work,
        flags: Flags,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<u32, PostError> {
        let length = self.check(work, flags.has(Flags::INLINE), sges)?;
        match self.ring.is_full() {
            true => Err(PostError::Full),
            false => Ok(length),
        }
    }

    /// Queues a request that was admitted; the elements are used up during the call.
    #[inline]
    pub(in crate::engine::qp) fn push(
        &mut self,
        device: &RdmaDevice,
        (context, work, flags, length): (u64, Work, Flags, u32),
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<(), PostError> {
        let place = self.ring.place(self.ring.tail());
        let count = match flags.has(Flags::INLINE) {
            true => self.store_inline(place, sges),
            false => self.store_sges(place, sges),
        };
        let entry = Entry {
            work,
            context,
            flags,
            count,
            length,
            stage: Stage::Posted,
        };
        self.ring.push(entry).map_err(|_| PostError::Full)?;
        match flags.has(Flags::DEFERRED) {
            true => device.count(Counter::Deferred, 1),
            false => self.release(),
        }
        Ok(())
    }

    /// The length of the message, if its elements are within the limits (POST-10, 11, SEND-10, 11).
    fn check(
        &self,
        work: &Work,
        inline: bool,
        sges: impl ExactSizeIterator<Item = Sge>,
    ) -> Result<u32, PostError> {
        let most = if work.is_read() {
            self.max_read_sge
        } else {
            self.max_sge
        };
        if inline && !work.is_outbound() {
            return Err(PostError::Invalid);
        }
        if !inline && sges.len() > most {
            return Err(PostError::TooManySges);
        }
        // OVERFLOW: at most 2^32 elements of less than 2^32 bytes.
        let length: u64 = sges.map(|s| u64::from(s.len())).sum();
        // CAST: widening.
        if inline && length > self.max_inline as u64 {
            return Err(PostError::InlineTooLong);
        }
        match u32::try_from(length) {
            Ok(len) if length <= MAX_MESSAGE => Ok(len),
            _ => Err(PostError::TooLong),
        }
    }

    fn store_sges(&mut self, place: usize, sges: impl ExactSizeIterator<Item = Sge>) -> u32 {
        let from = place * self.width;
        let slots = self.sges.get_mut(from..from + self.width);
        let mut count = 0;
        for (slot, sge) in slots.unwrap_or_default().iter_mut().zip(sges) {
            *slot = sge;
            count += 1;
        }
        count
    }

    /// Takes the bytes up to the first element that cannot be read, and returns their number. A
    /// request that lacks bytes fails in its turn.
    fn store_inline(&mut self, place: usize, sges: impl ExactSizeIterator<Item = Sge>) -> u32 {
        let from = place * self.max_inline;
        let slots = self.inline.get_mut(from..from + self.max_inline);
        let slots = slots.unwrap_or_default();
        let mut at = 0;
        for sge in sges {
            let room = slots.get_mut(at..);
            match room.and_then(|room| sge.read_nofault(room)) {
                Some(taken) => at += taken,
                None => break,
            }
        }
        // CAST: not more than `max_inline`, which came from a u32.
        at as u32
    }
}
