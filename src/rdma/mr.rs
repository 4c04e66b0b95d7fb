// SPDX-License-Identifier: GPL-2.0

//! Memory regions. Unlike the other objects they are allocated here.

use core::mem::MaybeUninit;

use kernel::{
    alloc::KBox,
    error::from_result,
    ffi::{
        c_int,
        c_uint, //
    },
    prelude::*, //
};

use super::{
    memory::{
        Extents,
        Rule, //
    },
    object::{
        IbObject,
        Object,
        Pd, //
    },
    table::OperationsVTable,
    types::Access,
    Operations, //
};
use crate::{
    bindings,
    sys::span::AllMemory, //
};

/// What this layer keeps with a region: how much may be mapped into it.
pub(crate) struct Limit {
    kind: MrKind,
    max_entries: u32,
}

impl IbObject for bindings::ib_mr {
    type Private = Limit;
}

/// A memory region with the provider's payload.
pub(crate) type Mr<T> = Object<bindings::ib_mr, <T as Operations>::Mr>;

/// What may be mapped into a region for fast registration. C: `enum ib_mr_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MrKind {
    /// Whole pages but for the first and last. C: `IB_MR_TYPE_MEM_REG`.
    PageList,
    /// Anything. C: `IB_MR_TYPE_SG_GAPS`.
    SgGaps,
}

impl MrKind {
    fn from_c(kind: bindings::ib_mr_type) -> Result<Self> {
        match kind {
            bindings::ib_mr_type_IB_MR_TYPE_MEM_REG => Ok(Self::PageList),
            bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS => Ok(Self::SgGaps),
            _ => Err(EOPNOTSUPP),
        }
    }
}

/// A new memory region.
pub(crate) struct MrCreated<P> {
    /// What stands behind it.
    pub(crate) payload: P,
    /// The key for local use.
    pub(crate) lkey: u32,
    /// The key for the peer.
    pub(crate) rkey: u32,
}

/// Turns a new region into what C expects: a pointer, or an error in its place.
fn publish<T: Operations>(
    limit: Limit,
    create: impl FnOnce() -> Result<MrCreated<T::Mr>>,
) -> *mut bindings::ib_mr {
    match allocate::<T>(limit, create) {
        Ok(mr) => mr,
        Err(error) => error.to_ptr(),
    }
}

fn allocate<T: Operations>(
    limit: Limit,
    create: impl FnOnce() -> Result<MrCreated<T::Mr>>,
) -> Result<*mut bindings::ib_mr> {
    let _ = Mr::<T>::SIZE;
    // First the memory: what was created is taken back by `dereg_mr` alone.
    let memory = KBox::<Mr<T>>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
    let created = create()?;
    let mr = KBox::into_raw(memory).cast::<bindings::ib_mr>();
    // SAFETY: The memory is writable and zeroed, which an `ib_mr` may be.
    unsafe {
        (*mr).lkey = created.lkey;
        (*mr).rkey = created.rkey;
        Mr::<T>::init(mr, limit, created.payload);
    }
    Ok(mr)
}

impl<T: Operations> OperationsVTable<T> {
    /// C: `ib_device_ops.get_dma_mr`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn get_dma_mr(
        pd: *mut bindings::ib_pd,
        access: c_int,
    ) -> *mut bindings::ib_mr {
        // SAFETY: The core passes a live domain.
        let pd = unsafe { Pd::<T>::from_raw(pd) };
        let limit = Limit {
            kind: MrKind::PageList,
            max_entries: 0,
        };
        // SAFETY: The core calls this for a consumer who asked for a global key alone, and who
        // answers for what his peers name by it.
        let memory = unsafe { AllMemory::new() };
        publish::<T>(limit, || {
            T::get_dma_mr(pd, Access::from_bits(access), memory)
        })
    }

    /// C: `ib_device_ops.alloc_mr`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn alloc_mr(
        pd: *mut bindings::ib_pd,
        kind: bindings::ib_mr_type,
        max_entries: u32,
    ) -> *mut bindings::ib_mr {
        let kind = match MrKind::from_c(kind) {
            Ok(kind) => kind,
            Err(error) => return error.to_ptr(),
        };
        // SAFETY: The core passes a live domain.
        let pd = unsafe { Pd::<T>::from_raw(pd) };
        let limit = Limit { kind, max_entries };
        publish::<T>(limit, || T::alloc_mr(pd, kind, max_entries))
    }

    /// C: `ib_device_ops.reg_user_mr`: mandatory for the core, but not supported.
    ///
    /// # Safety
    ///
    /// None.
    pub(super) unsafe extern "C" fn reg_user_mr(
        _pd: *mut bindings::ib_pd,
        _start: u64,
        _length: u64,
        _virt_addr: u64,
        _access: c_int,
        _dmah: *mut bindings::ib_dmah,
        _udata: *mut bindings::ib_udata,
    ) -> *mut bindings::ib_mr {
        EOPNOTSUPP.to_ptr()
    }

    /// C: `ib_device_ops.map_mr_sg`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `list` has `count` mapped entries.
    pub(super) unsafe extern "C" fn map_mr_sg(
        mr: *mut bindings::ib_mr,
        list: *mut bindings::scatterlist,
        count: c_int,
        offset: *mut c_uint,
    ) -> c_int {
        // SAFETY: The consumer maps into a live region.
        let this = unsafe { Mr::<T>::from_raw(mr) };
        // SAFETY: The core sets the page size before the call.
        let page_size = unsafe { (*mr).page_size };
        // SAFETY: `offset` is null or the consumer's, which is readable.
        let start = unsafe { offset.as_ref() }.copied().unwrap_or(0);
        from_result(|| {
            let rule = Rule::new(this.extra().kind, this.extra().max_entries, page_size)?;
            // SAFETY: The consumer passes a mapped list, whose memory it keeps until the
            // registration ends.
            let mut extents = unsafe { Extents::new(list, count, start, rule) }?;
            let iova = extents.start();
            T::map_mr_sg(this, &mut extents)?;
            let mapped = extents.finish()?;
            // SAFETY: The consumer does not use the region otherwise during the call.
            unsafe {
                (*mr).iova = iova;
                (*mr).length = mapped.length;
            }
            if !offset.is_null() {
                // SAFETY: `offset` is the consumer's, which is writable.
                unsafe { *offset = mapped.offset };
            }
            // CAST: At most `count`.
            Ok(mapped.entries as c_int)
        })
    }

    /// C: `ib_device_ops.dereg_mr`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn dereg_mr(
        mr: *mut bindings::ib_mr,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: The region is live until `clear`.
        T::dereg_mr(unsafe { Mr::<T>::from_raw(mr) });
        // SAFETY: The core destroys a region once, when nothing uses it.
        unsafe { Mr::<T>::clear(mr) };
        // SAFETY: `allocate` made the memory; its content was dropped just now.
        drop(unsafe { KBox::<MaybeUninit<Mr<T>>>::from_raw(mr.cast()) });
        0
    }
}
