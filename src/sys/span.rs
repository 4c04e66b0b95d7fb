// SPDX-License-Identifier: GPL-2.0

//! [`Span`] and [`Run`]: memory of a consumer as address and length.
//!
//! Neither is ever turned into a slice: the owner and other CPUs may read and write the bytes at
//! any time, as a device would. The only accesses are raw copies and, for RDMA atomics, the
//! kernel's atomic operations.
//!
//! Each range begins with a promise of the consumer, which the verbs ask for, and each of the three
//! sources is unsafe to make:
//!
//! - [`Span`]: registered memory, until the registration has ended. A span cannot be copied or cut:
//!   it stays where the registration keeps it, and goes before the registration ends.
//! - [`List`]: memory that a request names, until the request has ended. A list cannot be copied
//!   either, and a request that has one does not end.
//! - [`AllMemory`]: all memory, for peers to name; addresses that the kernel does not map are
//!   refused.
//!
//! Only a [`Run`] accesses the bytes. It borrows one of these sources, so it does not outlive the
//! guard (a gate, a lock) under which the source was found.
//!
//! [`List`]: super::requests::List
//!
//! Context: any; no call sleeps. A copy takes as long as it has bytes: callers bound them.

use core::marker::PhantomData;

use kernel::sync::atomic::{
    ordering::Full,
    Atomic, //
};

use crate::bindings;

#[cfg(ndk_kunit)]
pub(crate) use super::tests::memory::{
    test_memory,
    test_part,
    test_span, //
};

/// A range of kernel memory that a consumer vouches for.
///
/// # Invariants
///
/// `addr + len` does not wrap, and a consumer has promised that the range may be read and written
/// as long as the registration that the span came from is in force.
#[derive(Debug)]
pub(crate) struct Span {
    addr: usize,
    len: usize,
}

impl Span {
    /// The memory `[addr, addr + len)`.
    ///
    /// # Safety
    ///
    /// The range must not wrap and must stay valid for reads and writes, by any CPU at any time,
    /// until the registration that names it has ended.
    pub(crate) const unsafe fn new(addr: usize, len: usize) -> Self {
        // INVARIANT: by the safety requirements.
        Self { addr, len }
    }

    /// The number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The bytes, for accesses as long as the span is borrowed.
    #[inline]
    pub(crate) const fn run(&self) -> Run<'_> {
        // INVARIANT: the range is that of a span that lives at least as long.
        Run {
            addr: self.addr,
            len: self.len,
            may_fault: false,
            owner: PhantomData,
        }
    }

    /// Appends `next` if that begins at the end of this span, and gives it back otherwise.
    pub(crate) fn append(&mut self, next: Self) -> Result<(), Self> {
        if self.addr + self.len != next.addr {
            return Err(next);
        }
        // INVARIANT: two adjacent valid ranges; `next` does not wrap.
        self.len += next.len;
        Ok(())
    }
}

/// All memory that the kernel maps permanently (its direct map), by address.
///
/// Some of it cannot be written (the kernel's text), and some may be out of the map for a while: a
/// copy detects and reports that. (On User Mode Linux no module can do that for a write: there the
/// write is a fault of the kernel.) An address of another structure of the kernel is not detected:
/// with this key a peer reads and writes such structures, as with any RNIC.
///
/// # Invariants
///
/// A consumer has promised to answer for all memory that its peers name there.
#[derive(Debug)]
pub(crate) struct AllMemory(());

impl AllMemory {
    /// All memory.
    ///
    /// # Safety
    ///
    /// A consumer of the kernel must have asked for it (`IB_PD_UNSAFE_GLOBAL_RKEY`): the consumer
    /// answers for all that its peers read and write there, until the registration has ended.
    pub(crate) const unsafe fn new() -> Self {
        // INVARIANT: by the safety requirements.
        Self(())
    }

    /// Bytes from `addr` on, if that is memory: at most `most`, and none beyond the memory map's
    /// step that `addr` is in.
    pub(crate) fn run(&self, addr: u64, most: u64) -> Option<Run<'_>> {
        let left = match most {
            0 => return Some(Run::EMPTY),
            _ => last_mapped_byte(addr)? - addr,
        };
        // INVARIANT: memory of the direct map, where an access may fault; by the type invariant a
        // consumer answers for it. The range ends with the map's step at the latest, so it does not
        // wrap.
        Some(Run {
            // CAST: 64-bit kernel addresses.
            addr: addr as usize,
            // OVERFLOW: `left` is the distance of two bytes of a step, which is far less than 2^64.
            len: most.min(left + 1) as usize,
            may_fault: true,
            owner: PhantomData,
        })
    }
}

/// Bytes of a [`Span`], of a request's list or of [`AllMemory`], while that is borrowed.
///
/// # Invariants
///
/// The range does not wrap, and may be read and written: it lies in the range of a span or of a
/// list that lives for `'a`, or it belongs to the direct map, where an access may fault
/// (`may_fault`), and an `AllMemory` that lives for `'a` vouches for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    addr: usize,
    len: usize,
    may_fault: bool,
    owner: PhantomData<&'a ()>,
}

/// The side of a copy that cannot be accessed, for memory that is named by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyFault {
    Source,
    Sink,
}

impl Run<'_> {
    /// No bytes.
    // INVARIANT: of no bytes, all promises hold.
    pub(crate) const EMPTY: Self = Self {
        addr: 0,
        len: 0,
        may_fault: false,
        owner: PhantomData,
    };

    /// `len` bytes from `addr` on; `None` for a range that wraps.
    ///
    /// # Safety
    ///
    /// If the range does not wrap, it may be read and written, by any processor at any time, as
    /// long as the result exists.
    #[inline]
    pub(super) unsafe fn new(addr: u64, len: u64) -> Option<Self> {
        // CAST: 64-bit kernel addresses.
        let (addr, len) = (addr as usize, len as usize);
        addr.checked_add(len)?;
        // INVARIANT: by the safety requirements, and the range does not wrap.
        Some(Self {
            addr,
            len,
            may_fault: false,
            owner: PhantomData,
        })
    }

    /// The `len` bytes from `offset` on; `None` when they are not all inside.
    #[inline]
    pub(crate) const fn slice(&self, offset: usize, len: usize) -> Option<Self> {
        if offset > self.len || len > self.len - offset {
            return None;
        }
        // INVARIANT: a part of a valid range; `addr + offset <= addr + self.len`, which does not
        // wrap.
        Some(Self {
            addr: self.addr + offset,
            len,
            may_fault: self.may_fault,
            owner: PhantomData,
        })
    }

    /// The bytes from `offset` on, at most `most` of them; none beyond the end.
    #[inline]
    pub(crate) fn part(&self, offset: usize, most: usize) -> Self {
        let left = self.len.saturating_sub(offset);
        self.slice(offset, left.min(most)).unwrap_or(Self::EMPTY)
    }

    /// The number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The address of the bytes; `None` if an access may fault. The bytes may be written as long as
    /// the run exists, and never borrowed.
    pub(super) fn as_mut_ptr(&self) -> Option<*mut u8> {
        (!self.may_fault).then_some(self.addr as *mut u8)
    }

    /// Returns true if there are no bytes.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies as many bytes as the shorter of the two runs has, and returns their number. After a
    /// fault some of them may have been copied.
    ///
    /// The two may overlap. Concurrent writes of other CPUs may or may not be copied.
    #[inline]
    pub(crate) fn copy_from(&self, from: Run<'_>) -> Result<usize, CopyFault> {
        let len = self.len.min(from.len);
        if self.may_fault || from.may_fault {
            // SAFETY: Both ranges are valid for `len` bytes (type invariants), or may fault.
            return unsafe { copy_nofault(self.addr, from.addr, len) };
        }
        // SAFETY: Both ranges are valid for `len` bytes (type invariants).
        unsafe { copy_shared(self.addr as *mut u8, from.addr as *const u8, len) };
        Ok(len)
    }

    /// Writes as many bytes of `from` as fit, and returns their number; as [`Run::copy_from`].
    pub(crate) fn write(&self, from: &[u8]) -> Result<usize, CopyFault> {
        let len = self.len.min(from.len());
        let from = from.as_ptr();
        // SAFETY: The range is valid for `len` bytes (type invariants), or may fault; the slice is
        // valid for `len` bytes, and no other code writes to it while it is borrowed.
        unsafe {
            if self.may_fault {
                return copy_nofault(self.addr, from.expose_provenance(), len);
            }
            copy_shared(self.addr as *mut u8, from, len);
        }
        Ok(len)
    }

    /// Inverts every bit of the first byte, if there is one that cannot fault.
    pub(crate) fn invert_first(&self) {
        if self.len == 0 || self.may_fault {
            return;
        }
        let byte = self.addr as *mut u8;
        // SAFETY: The range is valid for a byte (type invariants).
        unsafe { byte.write_volatile(!byte.read_volatile()) };
    }

    /// The eight aligned bytes as an atomic word; `None` for any other range, and for one that may
    /// fault (no consumer has its peers use atomics on all memory).
    fn word(&self) -> Option<&Atomic<u64>> {
        let ptr = self.addr as *mut u64;
        if self.len != 8 || !ptr.is_aligned() || self.may_fault {
            return None;
        }
        // SAFETY: The range is valid for eight bytes (type invariants) and aligned. Other code
        // accesses it with plain or atomic accesses of the CPU, as it would beside a device.
        Some(unsafe { Atomic::from_ptr(ptr) })
    }

    /// Adds to the word and returns its old value; `None` unless these are eight aligned bytes.
    pub(crate) fn fetch_add(&self, add: u64) -> Option<u64> {
        Some(self.word()?.fetch_add(add, Full))
    }

    /// Replaces the word if it equals `compare`, and returns its old value; `None` unless these are
    /// eight aligned bytes.
    pub(crate) fn compare_swap(&self, compare: u64, swap: u64) -> Option<u64> {
        Some(match self.word()?.cmpxchg(compare, swap, Full) {
            Ok(old) | Err(old) => old,
        })
    }
}

/// Copies `len` bytes, as a device would: other processors may read and write them during the copy.
/// The two ranges may overlap.
///
/// C functions do the copy: a copy by `core` is undefined behaviour when it meets another access.
/// KCSAN takes the copy for marked accesses, and reports a copy that meets a plain access: a plain
/// access claims the memory for itself.
///
/// # Safety
///
/// Until this returns `len` bytes from `from` on may be read, and `len` bytes from `to` on may be
/// written, by any processor at any time. Neither range wraps.
#[inline]
unsafe fn copy_shared(to: *mut u8, from: *const u8, len: usize) {
    #[cfg(CONFIG_KCSAN)]
    // SAFETY: By the safety requirements.
    unsafe {
        bindings::ndk_copy_marked(to.cast(), from.cast(), len)
    };
    #[cfg(not(CONFIG_KCSAN))]
    if to.addr().abs_diff(from.addr()) >= len {
        // SAFETY: By the safety requirements; the two are disjoint.
        unsafe { bindings::memcpy(to.cast(), from.cast(), len) };
    } else {
        // SAFETY: By the safety requirements.
        unsafe { bindings::memmove(to.cast(), from.cast(), len) };
    }
}

/// Copies `len` bytes where an access may fault, and returns `len`. The two ranges may overlap.
///
/// # Safety
///
/// Until this returns `len` bytes from `from` on may be read, and `len` bytes from `to` on may be
/// written, by any processor at any time, or are addresses of the direct map. Neither range wraps.
unsafe fn copy_nofault(to: usize, from: usize, len: usize) -> Result<usize, CopyFault> {
    // CAST: 64-bit kernel addresses.
    // SAFETY: By the safety requirements; the function survives a fault.
    match unsafe { bindings::ndk_copy_nofault(to as u64, from as u64, len) } {
        0 => Ok(len),
        ..0 => Err(CopyFault::Source),
        1.. => Err(CopyFault::Sink),
    }
}

/// The last byte of the memory map's step that `addr` is in; `None` if `addr` is no memory. Any
/// context.
fn last_mapped_byte(addr: u64) -> Option<u64> {
    // SAFETY: The function looks the address up in the memory map and does not follow it.
    let until = unsafe { bindings::ndk_direct_mapped_until(addr) };
    (until != 0).then_some(until)
}

/// Returns true if a range is memory that the kernel maps permanently. Any context.
///
/// The first byte, the last byte and the first byte of each step of the memory map in between are
/// looked up. On x86 memory comes and goes by steps; arm64 can leave out a page inside of a step.
pub(crate) fn is_memory(addr: u64, len: u64) -> bool {
    let Some(beyond) = len.checked_sub(1) else {
        return true;
    };
    let Some(last) = addr.checked_add(beyond) else {
        return false;
    };
    let mut next = addr;
    loop {
        match last_mapped_byte(next) {
            None => return false,
            // OVERFLOW: less than `last`.
            Some(until) if until < last => next = until + 1,
            Some(_) => return next == last || last_mapped_byte(last).is_some(),
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_span)]
mod tests {
    use super::test_span as span;
    use super::*;
    use kernel::prelude::*;

    use crate::sys::report::cases;

    /// Accessors for tests.
    impl Run<'_> {
        /// The first address.
        pub(crate) const fn addr(&self) -> usize {
            self.addr
        }

        /// Reads as many bytes into `to` as fit, and returns their number.
        pub(crate) fn read(&self, to: &mut [u8]) -> usize {
            let len = self.len.min(to.len());
            // SAFETY: The range is valid for `len` bytes (type invariants), and `to` is no memory
            // of a consumer's.
            unsafe { core::ptr::copy_nonoverlapping(self.addr as *const u8, to.as_mut_ptr(), len) };
            len
        }
    }

    #[test]
    fn slices_stay_inside() {
        let mut bytes = [0u8; 16];
        let s = span(&mut bytes);
        let r = s.run();
        assert!(r.slice(0, 16).is_some());
        assert!(r.slice(16, 0).is_some());
        assert!(r.slice(0, 17).is_none());
        assert!(r.slice(17, 0).is_none());
        assert!(r.slice(8, usize::MAX).is_none());
        assert!(r.slice(usize::MAX, 2).is_none());
    }

    #[test]
    fn parts_end_with_the_range() {
        let mut bytes = [0u8; 16];
        let s = span(&mut bytes);
        let r = s.run();
        kunit_assert_eq!(r.part(4, 100).len(), 12);
        kunit_assert_eq!(r.part(4, 3).len(), 3);
        kunit_assert_eq!(r.part(4, 3).addr(), r.addr() + 4);
        assert!(r.part(16, 1).is_empty());
        assert!(r.part(usize::MAX, usize::MAX).is_empty());
    }

    #[test]
    fn copies_move_the_shorter_length() {
        let mut a = [1u8, 2, 3, 4, 5];
        let mut b = [0u8; 3];
        let (sa, sb) = (span(&mut a), span(&mut b));
        kunit_assert_eq!(sb.run().copy_from(sa.run()), Ok(3));
        kunit_assert_eq!(b, [1, 2, 3]);
    }

    #[test]
    fn overlapping_copies_keep_the_source_bytes() {
        let mut a = [1u8, 2, 3, 4, 5, 6, 7, 8];
        let s = span(&mut a);
        let (to, from) = (s.run().part(2, 6), s.run().part(0, 6));
        kunit_assert_eq!(to.copy_from(from), Ok(6));
        kunit_assert_eq!(a, [1, 2, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn adjacent_spans_join_and_others_do_not() {
        let mut a = [0u8; 8];
        let s = span(&mut a);
        let mut x = test_part(s.run().part(0, 3));
        let mut y = test_part(s.run().part(3, 5));
        assert!(y.append(test_part(x.run())).is_err());
        kunit_assert_eq!(y.len(), 5);
        assert!(x.append(y).is_ok());
        kunit_assert_eq!(x.len(), 8);
    }

    #[test]
    fn addresses_that_are_no_memory_are_distinguished() -> Result {
        let memory = test_memory();
        let word = KBox::new(7u64, GFP_KERNEL)?;
        let addr = core::ptr::from_ref(&*word).addr();
        let mut to = [0u8; 8];
        let run = memory.run(addr as u64, 8);
        let found = run.map(|run| (run.addr(), run.read(&mut to)));
        kunit_assert_eq!(found, Some((addr, 8)));
        kunit_assert_eq!(to, 7u64.to_ne_bytes());
        for addr in cases([0, 8, u64::MAX - 8, u64::MAX]) {
            assert!(memory.run(addr, 8).is_none());
        }
        // The run ends with the map's step.
        let most = memory.run(addr as u64, u64::MAX).map(|run| run.len());
        assert!(most >= Some(8));
        assert!(most < Some(1 << 30));
        assert!(memory.run(0, 0).is_some_and(|run| run.is_empty()));
        Ok(())
    }

    #[test]
    fn all_memory_is_copied_byte_by_byte_where_it_overlaps() {
        let memory = test_memory();
        for len in cases([1, 7, 8, 9, 23, 24]) {
            for (to, from) in cases([(0, 5), (5, 0), (3, 3), (0, 30), (30, 0)]) {
                let mut bytes = KVec::new();
                for at in 0u8..64 {
                    let _ = bytes.push(at, GFP_KERNEL);
                }
                let base = bytes.as_ptr().expose_provenance() as u64;
                let at = |from| memory.run(base + from, len);
                let (Some(sink), Some(source)) = (at(to), at(from)) else {
                    return kunit_assert_eq!(bytes.len(), 64);
                };
                kunit_assert_eq!(sink.copy_from(source), Ok(len as usize));
                for (n, byte) in cases((0u64..).zip(&bytes)) {
                    let want = match n.checked_sub(to).filter(|skip| *skip < len) {
                        Some(skip) => from + skip,
                        None => n,
                    };
                    kunit_assert_eq!(u64::from(*byte), want);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_written_is_reported_and_can_be_read() {
        let memory = test_memory();
        // The kernel's text, which is memory and is not written.
        let text = (bindings::memcpy as *const ()).expose_provenance() as u64;
        let Some(text) = memory.run(text, 16) else {
            // On other architectures the text is not in the direct map.
            return assert!(cfg!(not(target_arch = "x86_64")));
        };
        let mut bytes = [0u8; 16];
        let copy = span(&mut bytes);
        kunit_assert_eq!(copy.run().copy_from(text), Ok(16));
        if cfg!(CONFIG_UML) {
            // There a module's faults are the kernel's.
            return assert!(bytes != [0; 16]);
        }
        kunit_assert_eq!(text.copy_from(copy.run()), Err(CopyFault::Sink));
        kunit_assert_eq!(text.write(&[1, 2, 3]), Err(CopyFault::Sink));
        // Atomics are for memory that cannot fault.
        assert!(text.part(0, 8).fetch_add(1).is_none());
        assert!(bytes != [0; 16]);
    }

    #[test]
    fn atomics_want_eight_aligned_bytes() {
        let mut words = [5u64, 0];
        // SAFETY: `words` outlives the span.
        let s = unsafe { Span::new(words.as_mut_ptr() as usize, 16) };
        let word = s.run().part(0, 8);
        kunit_assert_eq!(word.fetch_add(3), Some(5));
        kunit_assert_eq!(word.compare_swap(8, 100), Some(8));
        kunit_assert_eq!(word.compare_swap(8, 1), Some(100));
        assert!(s.run().part(4, 8).fetch_add(1).is_none());
        assert!(s.run().fetch_add(1).is_none());
        kunit_assert_eq!(words[0], 100);
    }
}
