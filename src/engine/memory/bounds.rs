// SPDX-License-Identifier: GPL-2.0
// host-test

//! The check of an address range against a region.

/// The offset of `[addr, addr + len)` in a region `[base, base + size)`.
///
/// `None` if the range is not wholly inside. The check adds to no number that came from outside, so
/// it cannot wrap.
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

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_engine_memory_bounds))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

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
            assert_eq!(offset_in(base, size, addr, len), want);
        }
    }

    #[test]
    fn a_range_that_wraps_is_outside() {
        assert!(offset_in(0x1000, 0x1000, 0x1800, u64::MAX).is_none());
        assert!(offset_in(0x1000, 0x1000, u64::MAX, 2).is_none());
        assert_eq!(offset_in(u64::MAX - 15, 16, u64::MAX, 1), Some(15));
        assert!(offset_in(u64::MAX - 15, 16, u64::MAX, 2).is_none());
        assert!(offset_in(0, u64::MAX, 1, u64::MAX).is_none());
    }
}
