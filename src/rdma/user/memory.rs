// SPDX-License-Identifier: GPL-2.0

//! Memory of a program under a region: pinned, so that the pages stay regardless of the program's
//! mappings, and accounted to the program (`RLIMIT_MEMLOCK`).

use core::ptr::NonNull;

use kernel::error::from_err_ptr;

use super::super::{
    memory::SgEntry,
    prelude::*,
    values::access::AccessFlags, //
};
use crate::sys::span::Span;

/// Pinned memory of a program. C: `struct ib_umem`.
///
/// # Invariants
///
/// The pages are pinned, and mapped for a device without DMA, until this is dropped.
pub(crate) struct Umem(NonNull<bindings::ib_umem>);

// SAFETY: The core unpins from any task; all other uses only read.
unsafe impl Send for Umem {}
// SAFETY: The fields that are read do not change.
unsafe impl Sync for Umem {}

/// The access flags that a program may ask for.
const ALLOWED: u32 = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
    | bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
    | bindings::ib_access_flags_IB_ACCESS_REMOTE_READ
    | bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC
    // Large pages make no difference here.
    | bindings::ib_access_flags_IB_ACCESS_HUGETLB
    | bindings::ib_access_flags_IB_ACCESS_OPTIONAL;

/// The access rights that a program asks for. `EOPNOTSUPP` for windows, addresses from zero and
/// paging on demand, which are not supported. `EINVAL` for contradictory rights.
pub(in crate::rdma) fn checked_access(access: c_int) -> Result<AccessFlags> {
    // CAST: A set of bits, kept bit by bit.
    match access as u32 & !ALLOWED {
        0 => AccessFlags::from_c(access).of_region(),
        _ => Err(EOPNOTSUPP),
    }
}

impl Umem {
    /// Pins `[addr, addr + len)` of the current program, for `access` in the flags of C, hints
    /// included. Process context.
    ///
    /// `ENOMEM` above the program's limit, `EFAULT` where the program has no such memory, or no
    /// writable memory if `access` needs that.
    ///
    /// # Safety
    ///
    /// `device` is a live device without DMA.
    pub(in crate::rdma) unsafe fn pin(
        device: *mut bindings::ib_device,
        addr: u64,
        len: u64,
        access: c_int,
    ) -> Result<Self> {
        // SAFETY: The caller says that the device is live; the core checks the rest.
        let umem = from_err_ptr(unsafe { bindings::ndk_umem_get(device, addr, len, access) })?;
        // INVARIANT: The core has pinned and mapped the pages.
        NonNull::new(umem).map(Self).ok_or(EINVAL)
    }

    /// The pieces in order.
    pub(crate) fn pieces(&self) -> UmemPieces<'_> {
        let umem = self.0.as_ptr();
        // SAFETY: By the invariant the memory is live; none of these fields changes.
        let (address, length, next, left) = unsafe {
            let table = &raw const (*umem).sgt_append.sgt;
            (
                (*umem).address,
                (*umem).length,
                (*table).sgl,
                (*table).nents,
            )
        };
        UmemPieces {
            // CAST: An offset in a page.
            skip: (address & (kernel::page::PAGE_SIZE - 1)) as u64,
            // CAST: widening.
            rest: length as u64,
            next,
            left,
            _umem: PhantomData,
        }
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: By the invariant the memory is live, and it is no longer in use.
        unsafe { bindings::ndk_umem_release(self.0.as_ptr()) };
    }
}

/// The pieces of pinned memory, in order; adjacent pieces may come separately.
///
/// # Invariants
///
/// If `left` is not zero, `next` is an entry of the pinned memory's list, with `left` entries from
/// it on.
pub(crate) struct UmemPieces<'a> {
    next: *mut bindings::scatterlist,
    left: u32,
    /// Bytes of the first entry before the memory.
    skip: u64,
    /// Bytes still to come.
    rest: u64,
    _umem: PhantomData<&'a Umem>,
}

impl UmemPieces<'_> {
    /// Returns an upper bound for the number of pieces left.
    pub(crate) fn most(&self) -> usize {
        // CAST: widening.
        self.left as usize
    }
}

impl Iterator for UmemPieces<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        while self.left > 0 && self.rest > 0 {
            // SAFETY: By the invariant there is an entry, and it is mapped.
            let entry = unsafe { SgEntry::read(self.next) };
            // INVARIANT: `next` becomes the entry after, with one entry fewer.
            self.next = entry.next;
            self.left = self.left.saturating_sub(1);
            let skip = self.skip.min(entry.len.into());
            self.skip = self.skip.saturating_sub(skip);
            let len = u64::from(entry.len).saturating_sub(skip).min(self.rest);
            self.rest = self.rest.saturating_sub(len);
            if len > 0 {
                // CAST: Addresses have 64 bits where there is virtual DMA.
                let at = entry.addr.wrapping_add(skip) as usize;
                // SAFETY: The bytes are of the entry's pages, which are pinned until the region is
                // gone: `mr::MapLimit` keeps them.
                return Some(unsafe { Span::new(at, len as usize) });
            }
        }
        None
    }
}
