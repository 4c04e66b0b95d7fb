// SPDX-License-Identifier: GPL-2.0
// host-test

//! What a token lets its holder do, and the check of an address range against a region.

/// A set of access rights. Local read is always granted (IBA 10.6.3.1, NDKPI MR flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Rights(u8);

impl Rights {
    /// Local read only.
    pub(crate) const NONE: Self = Self(0);
    /// The owner may have data placed here: receives, read sinks, atomic results.
    pub(crate) const LOCAL_WRITE: Self = Self(1);
    /// The peer may read.
    pub(crate) const REMOTE_READ: Self = Self(2);
    /// The peer may write.
    pub(crate) const REMOTE_WRITE: Self = Self(4);
    /// The peer may execute atomic operations.
    pub(crate) const REMOTE_ATOMIC: Self = Self(8);

    /// The set as a number, for an atomic word.
    pub(crate) const fn bits(self) -> u32 {
        // CAST: widening.
        self.0 as u32
    }

    /// The set of a number that [`Rights::bits`] gave; other bits are dropped.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        // CAST: four bits are left.
        Self((bits & 0xF) as u8)
    }

    /// Both sets together.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights of a peer in this set.
    pub(crate) const fn remote(self) -> Self {
        Self(self.0 & !Self::LOCAL_WRITE.0)
    }

    /// Returns true if every right of `wanted` is in this set.
    pub(crate) const fn allow(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Remote write and remote atomic change memory and so need local write (IBA 10.6.3.1).
    pub(crate) const fn is_consistent(self) -> bool {
        let writes = Self::REMOTE_WRITE.0 | Self::REMOTE_ATOMIC.0;
        self.0 & writes == 0 || self.0 & Self::LOCAL_WRITE.0 != 0
    }

    /// Returns true if a peer gets anything from this set.
    pub(crate) const fn is_remote(self) -> bool {
        self.remote().0 != 0
    }
}

/// Where `[addr, addr + len)` begins inside a region `[base, base + size)`.
///
/// `None` when it is not wholly inside. Nothing is added to a number that came from outside, so
/// nothing can wrap.
pub(crate) const fn offset_in(base: u64, size: u64, addr: u64, len: u64) -> Option<u64> {
    let Some(offset) = addr.checked_sub(base) else {
        return None;
    };
    let Some(room) = size.checked_sub(offset) else {
        return None;
    };
    if len > room {
        return None;
    }
    Some(offset)
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_engine_memory_rights))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_not_implied_by_another() {
        let r = Rights::LOCAL_WRITE.with(Rights::REMOTE_READ);
        assert!(r.allow(Rights::NONE));
        assert!(r.allow(Rights::REMOTE_READ));
        assert!(!r.allow(Rights::REMOTE_WRITE));
        assert!(!r.allow(Rights::REMOTE_READ.with(Rights::REMOTE_ATOMIC)));
        assert!(r.is_remote() && !Rights::LOCAL_WRITE.is_remote());
    }

    #[test]
    fn remote_write_without_local_write_is_inconsistent() {
        assert!(!Rights::REMOTE_WRITE.is_consistent());
        assert!(!Rights::REMOTE_ATOMIC.is_consistent());
        assert!(Rights::REMOTE_READ.is_consistent());
        assert!(Rights::REMOTE_WRITE
            .with(Rights::LOCAL_WRITE)
            .is_consistent());
    }

    #[test]
    fn bounds_hold_at_both_ends() {
        // (base, size, addr, len) -> offset
        let table = [
            ((100, 50, 100, 50), Some(0)),
            ((100, 50, 100, 51), None),
            ((100, 50, 99, 1), None),
            ((100, 50, 149, 1), Some(49)),
            ((100, 50, 150, 0), Some(50)),
            ((100, 50, 150, 1), None),
            ((100, 50, 151, 0), None),
            ((0, 0, 0, 0), Some(0)),
        ];
        for ((base, size, addr, len), want) in table {
            assert!(offset_in(base, size, addr, len) == want);
        }
    }

    #[test]
    fn a_range_that_wraps_is_outside() {
        assert!(offset_in(0x1000, 0x1000, 0x1800, u64::MAX).is_none());
        assert!(offset_in(0x1000, 0x1000, u64::MAX, 2).is_none());
        assert!(offset_in(u64::MAX - 15, 16, u64::MAX, 1) == Some(15));
        assert!(offset_in(u64::MAX - 15, 16, u64::MAX, 2).is_none());
        assert!(offset_in(0, u64::MAX, 1, u64::MAX).is_none());
    }
}
