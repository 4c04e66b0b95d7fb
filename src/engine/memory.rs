// SPDX-License-Identifier: GPL-2.0

//! [`MemoryTable`]: lookup of the memory behind a token, and revocation.
//!
//! [`MemoryTable::access`] turns a token and a range into an [`Access`], which keeps the
//! registration alive. An access lives for one bounded copy. An invalidation closes the gate of the
//! slot, so no new access begins; [`MemoryTable::is_drained`] returns true once the last old access
//! is gone. The completion is written only then, so revocation is exact.
//!
//! Tokens, domain, rights and bounds are checked at each access, so a transfer in progress fails
//! at its next step when its region is invalidated.
//!
//! Context: any, but for making and removing entries, which may sleep. Lock order: `free`, the
//! lock of the list of free slots, is a leaf.

pub(crate) mod bounds;
pub(crate) mod mapping;
mod revoke;
pub(crate) mod slot;
pub(crate) mod spans;
pub(crate) mod staging;
#[cfg(ndk_kunit)]
pub(crate) mod tests;
pub(crate) mod transfer;
pub(crate) mod window;

use kernel::sync::{
    atomic::ordering::Relaxed,
    SetOnce, //
};

use self::{
    bounds::offset_in,
    slot::{
        DomainId,
        Kind,
        QpId,
        RegAttr,
        RegisterError,
        Slot,
        SlotGuard, //
    },
    spans::SpanList, //
};
use super::prelude::*;
pub(crate) use revoke::RevokeError;

use crate::{
    rdma::values::token::Token,
    sys::span::Run, //
};

const CHUNK: usize = 64;
const CHUNKS: usize = 4096;

/// The number of regions and windows that a table holds (index 0 is not given out).
pub(crate) const MAX_REGIONS: usize = CHUNK * CHUNKS - 1;

#[pin_data]
struct Chunk {
    #[pin]
    slots: [Slot; CHUNK],
}

/// The number of bytes by which the table grows.
#[cfg(ndk_kunit)]
pub(crate) const CHUNK_BYTES: usize = size_of::<Chunk>();

/// The free slots: a list of the returned slots, and the slots never used.
struct Free {
    /// The first returned slot, 0 for none; each slot names the next.
    returned: u32,
    next: u32,
}

/// All regions and windows of one device.
#[pin_data]
pub(crate) struct MemoryTable {
    chunks: KVVec<SetOnce<Pin<KVBox<Chunk>>>>,
    #[pin]
    free: SpinLockIrq<Free>,
    /// Held while a chunk is added.
    #[pin]
    growth: Mutex<()>,
}

/// A reason to deny access under a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No registration has the whole token, or it is of another domain or queue pair.
    Token,
    /// The rights do not cover the use.
    Rights,
    /// The range is not wholly inside.
    Bounds,
}

/// The user of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    /// The domain of the queue pair through which the request came.
    pub(crate) domain: DomainId,
    /// That queue pair, for windows; `None` for local use, which windows never grant.
    pub(crate) qp: Option<QpId>,
}

/// The right to touch a range of a registration, until it is dropped.
pub(crate) struct Access<'t> {
    _window: Option<SlotGuard<'t>>,
    region: SlotGuard<'t>,
    offset: u64,
    len: u64,
}

impl Access<'_> {
    /// The contiguous memory from byte `at` of the range on; empty at the end of the range.
    #[cfg(ndk_kunit)]
    pub(crate) fn run(&self, at: u64) -> Run<'_> {
        self.run_near(at, &mut 0)
    }

    /// The contiguous memory from byte `at` on, empty at the end; `hint` is 0 at the start of a
    /// walk.
    #[inline]
    pub(crate) fn run_near(&self, at: u64, hint: &mut usize) -> Run<'_> {
        let Some(left) = self.len.checked_sub(at) else {
            return Run::EMPTY;
        };
        let run = (self.region.spans).run_near(self.offset + at, left, hint);
        run.unwrap_or(Run::EMPTY)
    }

    /// Returns true if both ends of the range are memory. Only a region of all memory is checked; a
    /// copy checks the bytes that it touches.
    ///
    /// A consumer that gives away a key for all memory trusts its peer with its data; but a wrong
    /// address must not bring the host down.
    fn has_memory_at_ends(&self) -> bool {
        let spans = &self.region.spans;
        let is_memory = |offset| spans.run_near(offset, 1, &mut 0).is_some();
        !spans.is_all()
            || self.len == 0
            || (is_memory(self.offset) && is_memory(self.offset + (self.len - 1)))
    }
}

impl MemoryTable {
    /// An empty table. May sleep.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            chunks: empty_chunks()?,
            free <- new_spinlock_irq!(Free { returned: 0, next: 1 }),
            growth <- new_mutex!(()),
        })
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot> {
        // CAST: widening.
        let index = index as usize;
        let chunk = self.chunks.get(index / CHUNK)?.as_ref()?;
        chunk.slots.get(index % CHUNK)
    }

    /// Makes the chunk of an index before its first use. May sleep.
    fn grow(&self, index: u32) -> Result {
        let _alone = self.growth.lock();
        if self.slot(index).is_none() {
            let init = pin_init!(Chunk {
                slots <- pin_init::pin_init_array_from_fn(|_| Slot::new()),
            });
            let chunk = KVBox::pin_init(init, GFP_KERNEL)?;
            // CAST: widening.
            let place = self.chunks.get(index as usize / CHUNK).ok_or(ENOMEM)?;
            place.populate(chunk);
        }
        Ok(())
    }

    /// Takes a free slot. May sleep. `ENOMEM` when all are taken, or there is no memory.
    fn take(&self) -> Result<(u32, &Slot)> {
        loop {
            let mut free = self.free.lock();
            let is_new = free.returned == 0;
            let index = if is_new { free.next } else { free.returned };
            // CAST: widening.
            if index as usize > MAX_REGIONS {
                return Err(ENOMEM);
            }
            if let Some(slot) = self.slot(index) {
                match is_new {
                    true => free.next += 1,
                    false => free.returned = slot.next_free.load(Relaxed),
                }
                return Ok((index, slot));
            }
            drop(free);
            // The index is not taken yet: if memory is short, no index is lost.
            self.grow(index)?;
        }
    }

    /// Puts a taken slot back.
    fn put(&self, index: u32) {
        let mut free = self.free.lock();
        if let Some(slot) = self.slot(index) {
            slot.next_free.store(free.returned, Relaxed);
            free.returned = index;
        }
    }

    /// Takes a slot for `kind`, has `init` prepare it, and returns its first token.
    ///
    /// The key follows the last key of the slot.
    fn assign(
        &self,
        domain: DomainId,
        kind: Kind,
        init: impl FnOnce(&Slot, u8) -> Result,
    ) -> Result<Token> {
        let (index, slot) = self.take()?;
        let key = slot.gate.key().wrapping_add(1);
        slot.assign(domain, kind);
        if let Err(e) = init(slot, key) {
            slot.release();
            self.put(index);
            return Err(e);
        }
        Token::new(index, key).ok_or(ENOMEM)
    }

    /// Makes a fast-register region of up to `pieces` pieces, not valid yet. May sleep.
    pub(crate) fn add_fast(&self, domain: DomainId, pieces: usize) -> Result<Token> {
        self.assign(domain, Kind::Fast, |slot, _| slot.init(pieces))
    }

    /// As [`MemoryTable::add_fast`], but the returned token stays the owner's own, whichever token
    /// a registration has for the peer (FREG-11). May sleep.
    pub(crate) fn add_fast_steady(&self, domain: DomainId, pieces: usize) -> Result<Token> {
        self.assign(domain, Kind::Fast, |slot, key| {
            slot.init(pieces)?;
            slot.set_own_key(key);
            Ok(())
        })
    }

    /// Makes a region that is valid until it is removed. May sleep.
    pub(crate) fn add_fixed(&self, spans: SpanList, attr: RegAttr) -> Result<Token> {
        self.assign(attr.domain, Kind::Fixed, |slot, key| {
            slot.register_fixed(key, spans, attr)
        })
    }

    /// Removes a region or window. Returns when no access is running and none can start.
    ///
    /// May sleep; an access lasts no longer than one bounded copy.
    pub(crate) fn remove(&self, index: u32) {
        let Some(slot) = self.slot(index) else {
            return;
        };
        while !slot.release() {
            slot.gate.wait_until_unused();
        }
        self.put(index);
    }

    /// Makes a staged mapping valid under the whole of `token`: the mapping that came with request
    /// `number`, or, without a number, the last one staged. Any context.
    pub(crate) fn register_staged(
        &self,
        token: Token,
        attr: RegAttr,
        number: Option<u32>,
    ) -> Result<(), RegisterError> {
        match self.slot(token.index()) {
            Some(slot) if slot.is(attr.domain, Kind::Fast) => {
                slot.register(Kind::Fast, token.key(), attr, number)
            }
            Some(_) | None => Err(RegisterError::NotAllowed),
        }
    }

    /// Opens `[addr, addr + len)` to `user` under `token`, if all of the range may be used.
    #[inline]
    pub(crate) fn access(
        &self,
        token: Token,
        user: User,
        wanted: impl Into<AccessFlags>,
        addr: u64,
        len: u64,
    ) -> Result<Access<'_>, Denied> {
        let slot = self.slot(token.index()).ok_or(Denied::Token)?;
        let entry = match user.qp {
            // Only the owner may use its own token.
            None => slot.enter_as_owner(token.key()),
            Some(_) => slot.gate.enter(token.key()),
        };
        let entry = entry.map_err(|_| Denied::Token)?;
        let attr = &entry.attr;
        if attr.domain != user.domain {
            return Err(Denied::Token);
        }
        if !attr.rights.contains_all(wanted.into()) {
            return Err(Denied::Rights);
        }
        let offset = offset_in(attr.base, attr.len, addr, len).ok_or(Denied::Bounds)?;
        let access = match attr.binding {
            None => Access {
                _window: None,
                region: entry,
                offset,
                len,
            },
            Some(binding) => self.access_through_window(entry, binding, user, offset, len)?,
        };
        match access.has_memory_at_ends() {
            true => Ok(access),
            false => Err(Denied::Bounds),
        }
    }
}

/// Empty places for all chunks. May sleep.
fn empty_chunks() -> Result<KVVec<SetOnce<Pin<KVBox<Chunk>>>>> {
    let mut chunks = KVVec::with_capacity(CHUNKS, GFP_KERNEL)?;
    for _ in 0..CHUNKS {
        chunks.push(SetOnce::new(), GFP_KERNEL)?;
    }
    Ok(chunks)
}
