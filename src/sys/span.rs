// SPDX-License-Identifier: GPL-2.0

//! [`Span`]: memory of a consumer as address and length.
//!
//! A span is never turned into a slice: its owner and other CPUs may read and write the bytes at
//! any time, as a device would. All that is done with it are raw copies and, for RDMA atomics, the
//! kernel's atomic operations.
//!
//! Where the trust comes from: a span is made only where a consumer registers memory
//! ([`Span::new`], [`Span::whole_memory`], both unsafe). The consumer thereby promises, as the
//! verbs ask of it, that the memory stays until the registration or the request that uses it has
//! ended. Everything else only cuts a span into smaller ones, with a bounds check.
//!
//! Context: any; nothing sleeps. A copy takes as long as it has bytes: callers bound them.

use kernel::sync::atomic::ordering::Full;
use kernel::sync::atomic::Atomic;

use crate::bindings;

/// A range of kernel memory that a consumer vouches for.
///
/// # Invariants
///
/// `addr + len` does not wrap, and a consumer has promised that the range may be read and written
/// as long as the registration that the span came from is in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    addr: usize,
    len: usize,
}

impl Span {
    /// The empty span.
    pub(crate) const EMPTY: Self = Self { addr: 0, len: 0 };

    /// The memory `[addr, addr + len)`.
    ///
    /// # Safety
    ///
    /// The range must not wrap and must stay valid for reads and writes, by any CPU at any time,
    /// until the registration or request that names it has ended.
    pub(crate) const unsafe fn new(addr: usize, len: usize) -> Self {
        // INVARIANT: by the safety requirements.
        Self { addr, len }
    }

    /// All memory that the kernel can address; offset and address are the same.
    ///
    /// # Safety
    ///
    /// Whoever cuts ranges from it must have the promise of [`Span::new`] for each of them.
    pub(crate) const unsafe fn whole_memory() -> Self {
        // INVARIANT: by the safety requirements.
        Self {
            addr: 0,
            len: usize::MAX,
        }
    }

    /// The first address.
    pub(crate) const fn addr(&self) -> usize {
        self.addr
    }

    /// The number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `len` bytes from `offset` on; `None` when they are not all inside.
    #[inline]
    pub(crate) const fn slice(&self, offset: usize, len: usize) -> Option<Self> {
        if offset > self.len || len > self.len - offset {
            return None;
        }
        // INVARIANT: a part of a valid span; `addr + offset <= addr + self.len`, which is no wrap.
        Some(Self {
            addr: self.addr + offset,
            len,
        })
    }

    /// Whether `next` begins where this span ends.
    pub(crate) const fn is_followed_by(&self, next: &Self) -> bool {
        self.addr + self.len == next.addr
    }

    /// This span and the one that follows it as one; `None` when `next` begins elsewhere.
    pub(crate) const fn join(&self, next: &Self) -> Option<Self> {
        if !self.is_followed_by(next) {
            return None;
        }
        // INVARIANT: two adjacent valid ranges; `next` does not wrap.
        Some(Self {
            addr: self.addr,
            len: self.len + next.len,
        })
    }

    /// Whether all of it is memory that the kernel maps for good (its direct map). Any context.
    ///
    /// For ranges cut from [`Span::whole_memory`] by somebody who is not trusted with addresses.
    pub(crate) fn is_direct_mapped(&self) -> bool {
        // CAST: widening.
        // SAFETY: The function looks the address up in the memory map and does not follow it.
        unsafe { bindings::ndk_is_direct_mapped(self.addr as u64, self.len as u64) }
    }

    /// Copies as many bytes as the shorter of the two has, and returns their number.
    ///
    /// The two may overlap. What other CPUs write meanwhile may or may not be seen.
    #[inline]
    pub(crate) fn copy_from(&self, from: &Self) -> usize {
        let len = self.len.min(from.len);
        let to_ptr = self.addr as *mut u8;
        let from_ptr = from.addr as *const u8;
        if self.addr.abs_diff(from.addr) >= len {
            // SAFETY: Both ranges are valid for `len` bytes (type invariants) and disjoint.
            unsafe { core::ptr::copy_nonoverlapping(from_ptr, to_ptr, len) };
        } else {
            // SAFETY: Both ranges are valid for `len` bytes (type invariants).
            unsafe { core::ptr::copy(from_ptr, to_ptr, len) };
        }
        len
    }

    /// Writes as many bytes of `from` as fit, and returns their number.
    pub(crate) fn write(&self, from: &[u8]) -> usize {
        let len = self.len.min(from.len());
        // SAFETY: The span is valid for `len` bytes (type invariants); a live slice of ours is
        // not memory of a consumer's.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), self.addr as *mut u8, len) };
        len
    }

    /// Reads as many bytes into `to` as fit, and returns their number.
    pub(crate) fn read(&self, to: &mut [u8]) -> usize {
        let len = self.len.min(to.len());
        // SAFETY: As in `write`.
        unsafe { core::ptr::copy_nonoverlapping(self.addr as *const u8, to.as_mut_ptr(), len) };
        len
    }

    /// The eight aligned bytes of this span as an atomic word; `None` for any other span.
    fn word(&self) -> Option<&Atomic<u64>> {
        let ptr = self.addr as *mut u64;
        if self.len != 8 || !ptr.is_aligned() {
            return None;
        }
        // SAFETY: The span is valid for eight bytes (type invariants) and aligned. Others access
        // it with plain or atomic accesses of the CPU, as they would beside a device.
        Some(unsafe { Atomic::from_ptr(ptr) })
    }

    /// Adds to the word and returns what it was; `None` unless these are eight aligned bytes.
    pub(crate) fn fetch_add(&self, add: u64) -> Option<u64> {
        Some(self.word()?.fetch_add(add, Full))
    }

    /// Replaces the word if it equals `compare`, and returns what it was; `None` unless these are
    /// eight aligned bytes.
    pub(crate) fn compare_swap(&self, compare: u64, swap: u64) -> Option<u64> {
        Some(match self.word()?.cmpxchg(compare, swap, Full) {
            Ok(old) | Err(old) => old,
        })
    }
}

/// The bytes of a test's own array, which the test keeps alive as long as it uses the span.
#[cfg(ndk_kunit)]
pub(crate) fn test_span(bytes: &mut [u8]) -> Span {
    // SAFETY: Test code only: the caller keeps the array.
    unsafe { Span::new(bytes.as_mut_ptr() as usize, bytes.len()) }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_span)]
mod tests {
    use super::test_span as span;
    use super::*;

    #[test]
    fn slices_stay_inside() {
        let mut bytes = [0u8; 16];
        let s = span(&mut bytes);
        assert!(s.slice(0, 16).is_some());
        assert!(s.slice(16, 0).is_some());
        assert!(s.slice(0, 17).is_none());
        assert!(s.slice(17, 0).is_none());
        assert!(s.slice(8, usize::MAX).is_none());
        assert!(s.slice(usize::MAX, 2).is_none());
    }

    #[test]
    fn copies_move_the_shorter_length() {
        let mut a = [1u8, 2, 3, 4, 5];
        let mut b = [0u8; 3];
        let (sa, sb) = (span(&mut a), span(&mut b));
        assert!(sb.copy_from(&sa) == 3);
        assert!(b == [1, 2, 3]);
    }

    #[test]
    fn overlapping_copies_keep_the_source_bytes() {
        let mut a = [1u8, 2, 3, 4, 5, 6, 7, 8];
        let s = span(&mut a);
        let (Some(to), Some(from)) = (s.slice(2, 6), s.slice(0, 6)) else {
            return;
        };
        assert!(to.copy_from(&from) == 6);
        assert!(a == [1, 2, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn adjacent_spans_join_and_others_do_not() {
        let mut a = [0u8; 8];
        let s = span(&mut a);
        let (Some(x), Some(y)) = (s.slice(0, 3), s.slice(3, 5)) else {
            return;
        };
        assert!(x.join(&y).is_some_and(|j| j.len() == 8));
        assert!(y.join(&x).is_none());
    }

    #[test]
    fn addresses_that_are_no_memory_are_told_apart() {
        // SAFETY: The spans are looked up and not used.
        let [null, high] = unsafe { [Span::new(8, 8), Span::new(usize::MAX - 8, 8)] };
        assert!(!null.is_direct_mapped() && !high.is_direct_mapped());
        assert!(Span::EMPTY.is_direct_mapped());
    }

    #[test]
    fn atomics_want_eight_aligned_bytes() {
        let mut words = [5u64, 0];
        // SAFETY: `words` outlives the span.
        let s = unsafe { Span::new(words.as_mut_ptr() as usize, 16) };
        let word = s.slice(0, 8);
        assert!(word.and_then(|w| w.fetch_add(3)) == Some(5));
        assert!(word.and_then(|w| w.compare_swap(8, 100)) == Some(8));
        assert!(word.and_then(|w| w.compare_swap(8, 1)) == Some(100));
        assert!(s.slice(4, 8).and_then(|w| w.fetch_add(1)).is_none());
        assert!(s.fetch_add(1).is_none());
        assert!(words[0] == 100);
    }
}
