// SPDX-License-Identifier: GPL-2.0

//! Memory of a queue that a program maps: an offset in the program's device file names the memory,
//! as long as the queue has it. A mapping stays until the program unmaps it, and is useless once
//! the queue no longer has the memory.
//!
//! libhfi1verbs at version 2 of its interface maps each queue that it makes, and no other library
//! knows these devices. A program that makes a queue without room for the offset in the answer gets
//! a queue that is not shared, and uses the commands of uverbs.
//!
//! Process context.
//!
//! Tests: `selftests/verbs.c`.

use core::{
    cell::Cell,
    mem::{
        offset_of,
        ManuallyDrop, //
    },
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    alloc::flags::__GFP_NOWARN,
    error::to_result,
    sync::atomic::{
        Atomic,
        Full, //
    },
    types::Opaque, //
};

use super::super::{
    prelude::*,
    trampoline::FromC, //
};
use crate::sys::shared::{
    SharedCompletions,
    SharedMemory,
    SharedReceives, //
};

/// The size of the offset of a queue's memory, which libhfi1verbs expects behind an answer, and of
/// the address that it passes to have the offset written elsewhere. C: `struct
/// hfi1_create_cq_resp`, `struct hfi1_modify_srq_cmd` and their like.
const OFFSET_SIZE: usize = size_of::<u64>();

/// The part of a program's command that belongs to its library; null for the kernel. C: `struct
/// ib_udata`.
///
/// # Invariants
///
/// `udata` is null, or valid during the call in which it was passed, which this does not outlive.
pub(crate) struct UserData {
    udata: *mut bindings::ib_udata,
    /// The memory of the answered offset.
    mapping: Cell<Option<Mapping>>,
}

impl FromC for UserData {
    type C = *mut bindings::ib_udata;

    unsafe fn from_c(udata: Self::C) -> Self {
        // INVARIANT: The core passes null, or a pointer that is valid during the call.
        Self {
            udata,
            mapping: Cell::new(None),
        }
    }
}

impl UserData {
    /// The data of a call with attributes.
    ///
    /// # Safety
    ///
    /// `attrs` is null or the core's, valid during the call in which the result is used.
    pub(in crate::rdma) unsafe fn of_attributes(attrs: *mut bindings::uverbs_attr_bundle) -> Self {
        // SAFETY: The caller says that `attrs` may be read; the part is null or a field of `attrs`.
        unsafe { Self::from_c(bindings::ndk_udata_of(attrs)) }
    }

    /// Takes the memory of the answered offset, for the object that has the queue.
    pub(in crate::rdma) fn take_mapping(&self) -> Option<Mapping> {
        self.mapping.take()
    }

    /// Memory for the completions of a new queue, if a program asks to share the queue.
    pub(crate) fn completions(&self, entries: u32) -> Result<Option<SharedCompletions>> {
        if !self.has_room() {
            return Ok(None);
        }
        let memory = self.share(SharedCompletions::bytes(entries)?, Self::answer)?;
        SharedCompletions::new(memory, entries).map(Some)
    }

    /// Memory for the receives of a new queue, if a program asks to share the queue.
    pub(crate) fn receives(&self, limit: u32, width: u32) -> Result<Option<SharedReceives>> {
        if !self.has_room() {
            return Ok(None);
        }
        let memory = self.share(SharedReceives::bytes(limit, width)?, Self::answer)?;
        SharedReceives::new(memory, limit, width).map(Some)
    }

    /// New memory for the completions of a shared queue. `EINVAL` if the program asks for none.
    pub(crate) fn new_completions(&self, entries: u32) -> Result<SharedCompletions> {
        self.completions(entries)?.ok_or(EINVAL)
    }

    /// New memory for the receives of a shared queue. `EINVAL` if the program passes no address to
    /// which the offset is written.
    pub(crate) fn new_receives(&self, limit: u32, width: u32) -> Result<SharedReceives> {
        let bytes = SharedReceives::bytes(limit, width)?;
        let memory = self.share(bytes, Self::answer_at_address)?;
        SharedReceives::new(memory, limit, width)
    }

    /// Returns true if the answer has room for an offset.
    fn has_room(&self) -> bool {
        // SAFETY: By the invariant `udata` is valid if it is not null.
        !self.udata.is_null() && unsafe { (*self.udata).outlen } >= OFFSET_SIZE
    }

    /// Makes memory of `bytes` bytes, and answers its offset.
    fn share(
        &self,
        bytes: usize,
        answer: impl FnOnce(&Self, u64) -> Result,
    ) -> Result<Arc<SharedMemory>> {
        if self.udata.is_null() {
            return Err(EINVAL);
        }
        let mapping = Mapping::new(self.udata, bytes)?;
        answer(self, mapping.offset())?;
        let memory = mapping.memory();
        self.mapping.set(Some(mapping));
        Ok(memory)
    }

    fn answer(&self, offset: u64) -> Result {
        // SAFETY: By the invariant `udata` is valid: `share` has seen that it is not null.
        to_result(unsafe { bindings::ndk_udata_answer(self.udata, offset) })
    }

    fn answer_at_address(&self, offset: u64) -> Result {
        // SAFETY: By the invariant `udata` is valid: `share` has seen that it is not null.
        to_result(unsafe { bindings::ndk_udata_answer_there(self.udata, offset) })
    }
}

/// The core's entry of an offset. The last reference to `core` frees the entry: [`free`].
#[repr(C)]
struct MmapEntry {
    core: Opaque<bindings::rdma_user_mmap_entry>,
    memory: Arc<SharedMemory>,
}

const _: () = assert!(offset_of!(MmapEntry, core) == 0);

/// Memory that a program may map, until this is dropped: with the object that has the queue, or in
/// the call that makes the object. Both end before the context of the offset.
///
/// # Invariants
///
/// The core has the entry, and a reference to it belongs to this.
pub(in crate::rdma) struct Mapping(NonNull<MmapEntry>);

// SAFETY: The core locks its operations on an entry; the memory is `Sync`.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Makes zeroed memory of `bytes` bytes, charged to the program of the call with `udata`, which
    /// is valid.
    fn new(udata: *mut bindings::ib_udata, bytes: usize) -> Result<Self> {
        let gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
        let memory = Arc::new(SharedMemory::new(bytes, gfp)?, GFP_KERNEL)?;
        let bytes = memory.len();
        let entry = MmapEntry {
            core: Opaque::zeroed(),
            memory,
        };
        let entry = KBox::into_raw(KBox::new(entry, GFP_KERNEL)?);
        // SAFETY: `UserData::share` passes a `udata` that is valid during the call; the entry is
        // new.
        let inserted = to_result(unsafe { bindings::ndk_share_insert(udata, entry.cast(), bytes) });
        inserted.inspect_err(|_| {
            // SAFETY: The entry came from a box just now, and the core has not taken it.
            drop(unsafe { KBox::from_raw(entry) });
        })?;
        // INVARIANT: The core has taken the entry, with a reference.
        NonNull::new(entry).map(Self).ok_or(EINVAL)
    }

    /// The offset in the program's device file.
    fn offset(&self) -> u64 {
        // SAFETY: By the invariant the entry is live; its offset does not change.
        unsafe { bindings::ndk_share_offset(self.0.as_ptr().cast()) }
    }

    fn memory(&self) -> Arc<SharedMemory> {
        // SAFETY: By the invariant the entry is live as long as this, and its field does not
        // change.
        unsafe { (*self.0.as_ptr()).memory.clone() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: By the invariant the reference belongs to this mapping. The core keeps the
        // context until it has destroyed all objects of the context, and while a call makes one.
        unsafe { bindings::ndk_share_remove(self.0.as_ptr().cast()) };
    }
}

/// The mapping of an object's queue, which a change of its size replaces. Two changes at a time may
/// leave either mapping: the program then does not have the memory of its queue, and the queue
/// keeps its memory.
///
/// # Invariants
///
/// Null, or the entry of a [`Mapping`] that was forgotten for this slot.
pub(in crate::rdma) struct MappingSlot(Atomic<*mut MmapEntry>);

// SAFETY: A `Mapping` may be sent and shared.
unsafe impl Send for MappingSlot {}
// SAFETY: As above.
unsafe impl Sync for MappingSlot {}

impl MappingSlot {
    /// Makes a slot with the mapping of a new queue, if the queue has one.
    pub(in crate::rdma) fn new(mapping: Option<Mapping>) -> Self {
        let slot = Self(Atomic::new(ptr::null_mut()));
        slot.replace(mapping);
        slot
    }

    /// Replaces the mapping, if there is a new one. Process context.
    pub(in crate::rdma) fn set(&self, mapping: Option<Mapping>) {
        if mapping.is_some() {
            self.replace(mapping);
        }
    }

    fn replace(&self, mapping: Option<Mapping>) {
        let new = mapping.map_or(ptr::null_mut(), |mapping| {
            ManuallyDrop::new(mapping).0.as_ptr()
        });
        // INVARIANT: `new` is null or was forgotten just now; `old` becomes a mapping again.
        let old = self.0.xchg(new, Full);
        drop(NonNull::new(old).map(Mapping));
    }
}

impl Drop for MappingSlot {
    fn drop(&mut self) {
        self.replace(None);
    }
}

/// The private data of an object whose queue a program may share.
pub(crate) struct Shareable<C> {
    target: Arc<UpcallTarget<C>>,
    pub(in crate::rdma) mapping: MappingSlot,
}

impl<C> Shareable<C> {
    /// Makes the data of a new object, with the memory of the offset that the program got.
    pub(in crate::rdma) fn new(target: Arc<UpcallTarget<C>>, data: &UserData) -> Self {
        Self {
            target,
            mapping: MappingSlot::new(data.take_mapping()),
        }
    }
}

impl<C> Deref for Shareable<C> {
    type Target = UpcallTarget<C>;

    fn deref(&self) -> &UpcallTarget<C> {
        &self.target
    }
}

/// Frees an entry that is not used any more. C: `ib_device_ops.mmap_free`.
///
/// # Safety
///
/// [`Mapping::new`] made the entry, and the last reference to it was given up.
pub(in crate::rdma) unsafe fn free(entry: *mut bindings::rdma_user_mmap_entry) {
    // SAFETY: The core's part is at its start, and the caller says that it is not used any more.
    drop(unsafe { KBox::from_raw(entry.cast::<MmapEntry>()) });
}

/// Maps the memory of a queue for a program. C: `ib_device_ops.mmap`. `EINVAL` if no queue has the
/// offset and the size.
///
/// # Safety
///
/// The core passes a context and an area of the current program.
pub(in crate::rdma) unsafe fn map(
    context: *mut bindings::ib_ucontext,
    area: *mut bindings::vm_area_struct,
) -> Result {
    // SAFETY: As the caller says.
    let entry = unsafe { bindings::ndk_share_get(context, area) };
    if entry.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: `Mapping::new` made all entries of these devices, and the reference keeps this one,
    // with its memory. The core has found that the area has the size of the memory.
    let mapped = unsafe {
        let memory = &(*entry.cast::<MmapEntry>()).memory;
        bindings::ndk_share_map(area, memory.as_ptr(), memory.len())
    };
    // SAFETY: The reference was taken above.
    unsafe { bindings::ndk_share_put(entry) };
    to_result(mapped)
}
