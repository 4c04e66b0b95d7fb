// SPDX-License-Identifier: GPL-2.0

//! Memory regions. Unlike the other objects they are allocated here.

use core::mem::MaybeUninit;

use kernel::alloc::KBox;

use super::{
    memory::{
        Extents,
        MapRule, //
    },
    prelude::*,
    user::memory::{
        Umem,
        UmemPieces, //
    },
    values::access::AccessFlags, //
};
use crate::sys::span::AllMemory;

/// The private data of a region: the limit of its mappings.
pub(crate) struct MapLimit {
    kind: MrKind,
    max_entries: u32,
    /// The memory of a program's region; dropped after the region.
    _umem: Option<Umem>,
}

impl MapLimit {
    /// The limit of a region without mappings.
    pub(super) const NOTHING: Self = Self {
        kind: MrKind::PageList,
        max_entries: 0,
        _umem: None,
    };

    /// Converts from C. `EOPNOTSUPP` for a kind that is not known here.
    pub(super) fn from_c(kind: bindings::ib_mr_type, max_entries: u32) -> Result<Self> {
        let kind = match kind {
            bindings::ib_mr_type_IB_MR_TYPE_MEM_REG => MrKind::PageList,
            bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS => MrKind::SgGaps,
            _ => return Err(EOPNOTSUPP),
        };
        Ok(Self {
            kind,
            max_entries,
            _umem: None,
        })
    }
}

impl IbObject for bindings::ib_mr {
    type Private = MapLimit;
}

/// A memory region with the provider's payload.
pub(crate) type Mr<T> = Object<bindings::ib_mr, <T as Operations>::Mr>;

/// The form of the mappings of a fast-register region. C: `enum ib_mr_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MrKind {
    /// Whole pages but for the first and last. C: `IB_MR_TYPE_MEM_REG`.
    PageList,
    /// Any ranges. C: `IB_MR_TYPE_SG_GAPS`.
    SgGaps,
}

/// The operations of a memory region.
pub(crate) trait MrOperations<T: Operations>: Sized + Send + Sync + 'static {
    /// Makes a region of `memory`, all memory of the kernel, with the rights of `access`; an
    /// address is its own offset. Returns the region's key, for local use and for the peer.
    fn get_dma(pd: &Pd<T>, access: AccessFlags, memory: AllMemory) -> Result<(Self, u32)>;

    /// Makes a region for fast registration of at most `max_entries` pages or ranges, and returns
    /// its key.
    fn alloc(pd: &Pd<T>, max_entries: u32) -> Result<(Self, u32)>;

    /// Makes a region of a program's memory, valid as long as the region exists; its first byte has
    /// the address `iova`. Returns the region's key.
    fn reg_user(
        pd: &Pd<T>,
        access: AccessFlags,
        iova: u64,
        pieces: UmemPieces<'_>,
    ) -> Result<(Self, u32)>;

    /// Stages the ranges for the next registration. Any context.
    ///
    /// A registration in force does not change. `extents` must be taken to its end.
    fn map_sg(&self, extents: &mut Extents<'_>) -> Result;

    /// Ends a region; its memory is not accessed after this.
    fn dereg(&self) {}
}

/// Makes a region with the payload that `make` returns. `ENOMEM` when there is no memory.
pub(super) fn create<T: Operations>(
    limit: MapLimit,
    make: impl FnOnce() -> Result<(T::Mr, u32)>,
) -> Result<*mut bindings::ib_mr> {
    let _ = Mr::<T>::SIZE;
    // First the memory: only `dereg_mr` takes back the payload that `make` creates.
    let memory = KBox::<Mr<T>>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
    let (payload, key) = make()?;
    Ok(place::<T>(memory, limit, payload, key))
}

/// Puts a region into its memory, which is zeroed.
fn place<T: Operations>(
    memory: KBox<MaybeUninit<Mr<T>>>,
    limit: MapLimit,
    payload: T::Mr,
    key: u32,
) -> *mut bindings::ib_mr {
    let raw = KBox::into_raw(memory).cast::<bindings::ib_mr>();
    // SAFETY: The memory is new, writable and zeroed, which an `ib_mr` may be.
    let mut mr = unsafe { NewObject::<_, T::Mr>::from_raw(raw) };
    mr.lkey = key;
    mr.rkey = key;
    mr.init(limit, payload);
    raw
}

/// Makes a region of `umem` with the payload that `make` returns; the memory stays pinned as long
/// as the region exists.
pub(super) fn create_user<T: Operations>(
    umem: Umem,
    make: impl FnOnce(UmemPieces<'_>) -> Result<(T::Mr, u32)>,
) -> Result<*mut bindings::ib_mr> {
    // First the memory, as in `create`.
    let memory = KBox::<Mr<T>>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
    let (payload, key) = make(umem.pieces())?;
    let limit = MapLimit {
        _umem: Some(umem),
        ..MapLimit::NOTHING
    };
    Ok(place::<T>(memory, limit, payload, key))
}

/// Drops the private data and the payload of a region, and frees it.
pub(super) fn free<P>(mr: OwnedObject<bindings::ib_mr, P>) {
    let raw = mr.as_raw();
    drop(mr);
    // SAFETY: `place` took the memory out of such a box; its content was dropped just now.
    drop(unsafe { KBox::<MaybeUninit<Object<bindings::ib_mr, P>>>::from_raw(raw.cast()) });
}

/// Maps `list` into the region, from the offset on, and returns the number of whole entries taken;
/// `offset` becomes that of the end in the entry after them.
///
/// # Safety
///
/// As [`Extents::new`] says of `list` and `count`.
pub(super) unsafe fn map<T: Operations>(
    mr: &Mr<T>,
    list: *mut bindings::scatterlist,
    count: c_int,
    offset: Option<&mut Unaligned<c_uint>>,
) -> Result<c_int> {
    let (raw, limit) = (mr.as_raw(), mr.private());
    // SAFETY: The core sets the page size before the call.
    let rule = MapRule::new(limit.kind, limit.max_entries, unsafe { (*raw).page_size })?;
    let start = offset.as_ref().map_or(0, |offset| offset.get());
    // SAFETY: The caller says that the list has `count` entries, and that the consumer keeps their
    // memory until the registration has ended.
    let mut extents = unsafe { Extents::new(list, count, start, rule) }?;
    let iova = extents.start();
    mr.map_sg(&mut extents)?;
    let mapped = extents.finish()?;
    // SAFETY: The consumer does not use the region otherwise during the call.
    unsafe {
        (*raw).iova = iova;
        (*raw).length = mapped.length;
    }
    if let Some(offset) = offset {
        offset.set(mapped.offset);
    }
    // CAST: At most `count`.
    Ok(mapped.entries as c_int)
}
