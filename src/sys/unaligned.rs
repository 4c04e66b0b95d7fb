// SPDX-License-Identifier: GPL-2.0

//! [`Unaligned`]: a value of C's at any address.
//!
//! C reads structures of any alignment on the machines that this is for, and consumers rely on it:
//! those of iSER's receives are packed. A Rust reference to such a structure is undefined
//! behaviour, whatever the machine does. So a consumer's structures are seen as this.

/// A `T` that need not be aligned. It is read and written as a whole, or field by field.
///
/// The compiler refuses references to what is inside.
#[repr(C, packed)]
pub(crate) struct Unaligned<T>(pub(crate) T);

const _: () = {
    assert!(align_of::<Unaligned<u64>>() == 1);
    assert!(size_of::<Unaligned<u64>>() == 8);
};

impl<T> Unaligned<T> {
    /// Puts a value in its place.
    #[inline]
    pub(crate) fn set(&mut self, value: T) {
        // A value of C's owns nothing that would have to be dropped.
        const { assert!(!core::mem::needs_drop::<T>()) };
        self.0 = value;
    }
}

impl<T: Copy> Unaligned<T> {
    /// A copy of the value, as it is now.
    #[inline]
    pub(crate) const fn get(&self) -> T {
        self.0
    }

    /// Puts a value in its place, and gives the one that was there.
    pub(crate) fn replace(&mut self, value: T) -> T {
        let old = self.get();
        self.set(value);
        old
    }

    /// Changes a copy of the value, and then puts that in its place.
    pub(crate) fn update<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.get();
        let result = change(&mut value);
        self.set(value);
        result
    }

    /// A slice of values that are aligned.
    #[cfg(ndk_kunit)]
    pub(crate) fn of_slice(values: &[T]) -> &[Self] {
        // SAFETY: The same values, of which less is demanded.
        unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_unaligned)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_written_at_every_address() {
        let mut bytes = [0u8; 16];
        for at in 0..8 {
            let value = bytes[at..].as_mut_ptr().cast::<Unaligned<u64>>();
            // SAFETY: Eight bytes are there.
            let value = unsafe { &mut *value };
            value.set(0x0102_0304_0506_0708);
            assert!(value.replace(7) == 0x0102_0304_0506_0708);
            assert!(value.update(|v| core::mem::replace(v, *v + 1)) == 7 && value.get() == 8);
            assert!(bytes[at..at + 8] == 8u64.to_ne_bytes());
        }
    }
}
