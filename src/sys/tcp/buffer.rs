// SPDX-License-Identifier: GPL-2.0

//! Bytes to send, in pages that the network sends without a copy.
//!
//! C header: [`include/linux/gfp.h`](srctree/include/linux/gfp.h)

use core::ptr::NonNull;

use kernel::prelude::*;

use crate::{
    bindings,
    sys::span::{
        CopyFault,
        Run, //
    }, //
};

/// Order of the pages of a buffer: 32 KiB, or one page where that is larger.
// CAST: a few bits.
const ORDER: u32 = 15u32.saturating_sub(kernel::page::PAGE_SHIFT as u32);

/// Pages that this object and the network hold.
///
/// # Invariants
///
/// Owns a reference to pages of `size` bytes, which the kernel maps. Bytes from `free` on are not in
/// use.
struct Pages {
    page: NonNull<bindings::page>,
    size: u32,
    free: u32,
}

impl Pages {
    fn new() -> Result<Self> {
        let mut order = ORDER;
        // SAFETY: The function sets `order` to that of the pages.
        let page = unsafe { bindings::ndk_tcp_pages(&mut order) };
        // INVARIANT: New pages; no byte is in use.
        Ok(Self {
            page: NonNull::new(page).ok_or(ENOMEM)?,
            // CAST: a few pages.
            size: (kernel::page::PAGE_SIZE as u32) << order,
            free: 0,
        })
    }

    /// The address of byte `at`.
    fn address(&self, at: u32) -> u64 {
        // SAFETY: By the invariant.
        unsafe { bindings::ndk_page_address(self.page.as_ptr()) + u64::from(at) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: By the invariant the reference is this object's.
        unsafe { bindings::ndk_tcp_pages_put(self.page.as_ptr()) };
    }
}

// SAFETY: Pages belong to no thread.
unsafe impl Send for Pages {}
// SAFETY: With a shared reference, bytes are only read.
unsafe impl Sync for Pages {}

/// A part of the pages, to send.
pub(super) struct Part {
    pub(super) page: *mut bindings::page,
    pub(super) offset: u32,
    pub(super) len: u32,
}

/// The bytes that one connection is about to send.
///
/// Bytes are put at the end, and sent from the start: [`super::Socket::send`].
///
/// # Invariants
///
/// `sent` is not more than `free` of the pages. The network may read the bytes before `sent` at any
/// time: these do not change. The others belong to this object alone.
pub(crate) struct Buffer {
    pages: Option<Pages>,
    /// First byte that was not sent.
    sent: u32,
}

impl Buffer {
    /// A buffer without pages.
    pub(crate) const fn new() -> Self {
        Self {
            pages: None,
            sent: 0,
        }
    }

    /// Bytes that can be put now. If all bytes of the buffer were sent, this is at least the smaller of
    /// `want` and a page: new pages come where less is free. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn room(&mut self, want: usize) -> Result<usize> {
        // CAST: widening.
        let left = |pages: &Pages| (pages.size - pages.free) as usize;
        match &self.pages {
            Some(pages) if left(pages) >= want || self.sent < pages.free => Ok(left(pages)),
            _ => {
                let pages = Pages::new()?;
                let room = left(&pages);
                self.sent = 0;
                self.pages = Some(pages);
                Ok(room)
            }
        }
    }

    /// Bytes that were put and not sent.
    pub(crate) fn len(&self) -> usize {
        let free = self.pages.as_ref().map_or(0, |pages| pages.free);
        // CAST: widening.
        (free - self.sent) as usize
    }

    /// Puts as many of the bytes as there is room for; returns how many.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> usize {
        // Memory of this buffer does not fault.
        self.fill(bytes.len(), |to| to.write(bytes))
            .unwrap_or_default()
    }

    /// Puts as many bytes of a consumer's memory as there is room for; returns how many.
    pub(crate) fn put_run(&mut self, from: Run<'_>) -> Result<usize, CopyFault> {
        self.fill(from.len(), |to| to.copy_from(from))
    }

    fn fill(
        &mut self,
        len: usize,
        write: impl FnOnce(Run<'_>) -> Result<usize, CopyFault>,
    ) -> Result<usize, CopyFault> {
        let Some(pages) = &mut self.pages else {
            return Ok(0);
        };
        // CAST: widening, and no more than the pages have.
        let len = len.min((pages.size - pages.free) as usize) as u32;
        // SAFETY: The bytes from `free` on are mapped, and belong to this object alone (invariants).
        let run = unsafe { Run::new(pages.address(pages.free), len.into()) };
        let written = write(run.unwrap_or(Run::EMPTY))?;
        // CAST: no more than `len`.
        pages.free += (written as u32).min(len);
        Ok(written)
    }

    /// CRC32C over the last `len` bytes, or all that are there, as a continuation of `crc`.
    pub(crate) fn crc32c(&self, crc: u32, len: usize) -> u32 {
        let Some(pages) = &self.pages else { return crc };
        // CAST: no more than the pages have.
        let len = len.min(pages.free as usize) as u32;
        // CAST: 64-bit kernel addresses.
        let start = pages.address(pages.free - len) as *const core::ffi::c_void;
        // SAFETY: The bytes are mapped, and only this object changes some of them (invariants).
        unsafe { bindings::ndk_tcp_crc32c(start, len, crc) }
    }

    /// Takes the last `len` bytes back, which were not sent.
    pub(crate) fn take_back(&mut self, len: usize) {
        let len = len.min(self.len());
        if let Some(pages) = &mut self.pages {
            // CAST: no more than the pages have.
            // INVARIANT: No more than was put and not sent.
            pages.free -= len as u32;
        }
    }

    /// The bytes to send next.
    pub(super) fn unsent(&self) -> Option<Part> {
        let pages = self.pages.as_ref()?;
        (pages.free > self.sent).then(|| Part {
            page: pages.page.as_ptr(),
            offset: self.sent,
            len: pages.free - self.sent,
        })
    }

    pub(super) fn was_sent(&mut self, len: u32) {
        let free = self.pages.as_ref().map_or(0, |pages| pages.free);
        // INVARIANT: No more than `free`.
        self.sent = self.sent.saturating_add(len).min(free);
    }
}
