// SPDX-License-Identifier: GPL-2.0

//! Memory of tests, which give the promises of consumers themselves.

use kernel::prelude::*;

use crate::{
    bindings,
    sys::{
        mdl::{
            MdlChain,
            Pages,
            PAGE_SIZE, //
        },
        requests::{
            ReceiveList,
            RequestQueue, //
        },
        sge::{
            Context,
            Elements,
            Posted,
            Sge, //
        },
        span::{
            AllMemory,
            Run,
            Span, //
        },
        unaligned::Unaligned, //
    }, //
};

/// The bytes of a test's own array, which the test keeps alive as long as it uses the span.
pub(crate) fn test_span(bytes: &mut [u8]) -> Span {
    // SAFETY: Test code only: the caller keeps the array.
    unsafe { Span::new(bytes.as_mut_ptr() as usize, bytes.len()) }
}

/// All memory, for a test, which names its own arrays only.
pub(crate) fn test_memory() -> AllMemory {
    // SAFETY: Test code only: the tests name live arrays of theirs, or addresses to be refused.
    unsafe { AllMemory::new() }
}

/// A request of a test, which keeps the arrays that the elements name until the request has ended.
pub(crate) const fn test_posted<I: Elements>(context: u64, sges: I) -> Posted<I> {
    // SAFETY: Test code only: the caller keeps the arrays, or the addresses are to be refused.
    unsafe { Posted::new(context, sges) }
}

/// The elements of such a request, taken from its queue.
pub(crate) fn test_list(sges: &[Sge]) -> Result<ReceiveList> {
    // CAST: a list of a test.
    let width = sges.len() as u32;
    let mut queue = RequestQueue::new(1, width, (), GFP_KERNEL)?;
    let mut list = ReceiveList::new(width)?;
    let posted = test_posted(0, sges.iter().copied());
    (queue.post(posted, ()) && queue.take(&mut list))
        .then_some(list)
        .ok_or(EINVAL)
}

/// The context of a test's request that has ended, or never existed.
pub(crate) fn test_context(context: u64) -> Context {
    test_posted(context, [].into_iter()).end()
}

/// A span over a part of a test's array, on the condition of [`test_span`].
pub(crate) fn test_part(run: Run<'_>) -> Span {
    // SAFETY: Test code only: the caller keeps the array.
    unsafe { Span::new(run.addr(), run.len()) }
}

/// Pages that a test names.
pub(crate) fn test_pages(addresses: &[u64]) -> Pages<'_> {
    // SAFETY: Test code only: the pages are those of live arrays, or to be refused.
    unsafe { Pages::new(Unaligned::of_slice(addresses)) }
}

/// Bytes of a test, described by a chain.
pub(crate) struct Described {
    mdls: KVec<bindings::ndk_mdl>,
    pages: KVec<*mut bindings::page>,
}

// SAFETY: The pointers are to pages and to its own arrays, which belong to no thread.
unsafe impl Send for Described {}

impl Described {
    /// Describes the bytes by a chain of one piece.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self> {
        Self::pieces(bytes, &[bytes.len()])
    }

    /// Describes the bytes by a chain of pieces of these lengths, which end with the bytes.
    pub(crate) fn pieces(bytes: &[u8], lengths: &[usize]) -> Result<Self> {
        let mut pages = KVec::new();
        let mut starts = KVec::new();
        let mut at = bytes.as_ptr().addr();
        for len in lengths {
            let offset = at % PAGE_SIZE as usize;
            starts.push((at - offset, offset, *len, pages.len()), GFP_KERNEL)?;
            for page in 0..(offset + len).div_ceil(PAGE_SIZE as usize) {
                let page = at - offset + page * PAGE_SIZE as usize;
                // SAFETY: The function looks up the page of a live array.
                pages.push(unsafe { bindings::ndk_page_of(page as u64) }, GFP_KERNEL)?;
            }
            at += len;
        }
        let mut mdls = KVec::with_capacity(starts.len(), GFP_KERNEL)?;
        for (start, offset, len, first) in &starts {
            let mdl = bindings::ndk_mdl {
                next: core::ptr::null_mut(),
                start_va: core::ptr::without_provenance_mut(*start),
                byte_offset: *offset as u32,
                byte_count: *len as u32,
                pages: pages.as_mut_ptr().wrapping_add(*first),
            };
            mdls.push(mdl, GFP_KERNEL)?;
        }
        for at in 1..mdls.len() {
            let next = &raw mut mdls[at];
            mdls[at - 1].next = next;
        }
        Ok(Self { mdls, pages })
    }

    /// Makes every page of the chain the first one of `bytes`.
    pub(crate) fn describe_again(&mut self, bytes: &[u8]) {
        for page in &mut self.pages {
            // SAFETY: The function looks up the page of a live array.
            *page = unsafe { bindings::ndk_page_of(bytes.as_ptr().addr() as u64) };
        }
    }

    /// Moves the addresses of a piece by `by` bytes, so that it does not follow the piece before.
    pub(crate) fn displace(&mut self, piece: usize, by: usize) {
        if let Some(mdl) = self.mdls.get_mut(piece) {
            mdl.start_va = mdl.start_va.wrapping_byte_add(by);
        }
    }

    /// All fields of the chain, as numbers.
    pub(crate) fn words(&self) -> Result<KVec<usize>> {
        let mut words = KVec::new();
        for mdl in &self.mdls {
            let (next, start) = (mdl.next.addr(), mdl.start_va.addr());
            let (offset, count) = (mdl.byte_offset as usize, mdl.byte_count as usize);
            for word in [next, start, offset, count, mdl.pages.addr()] {
                words.push(word, GFP_KERNEL)?;
            }
        }
        for page in &self.pages {
            words.push(page.addr(), GFP_KERNEL)?;
        }
        Ok(words)
    }

    /// The head of the chain, for calls in C; it stays as long as `self`.
    pub(crate) fn as_raw(&self) -> *mut bindings::ndk_mdl {
        self.mdls.as_ptr().cast_mut()
    }

    /// The chain, which must not outlive `self`.
    pub(crate) fn mdl(&self) -> MdlChain {
        // SAFETY: Test code only: the caller keeps `self` and the bytes.
        unsafe { MdlChain::new(self.mdls.as_ptr()) }
    }
}
