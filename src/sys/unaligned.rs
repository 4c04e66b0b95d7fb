// SPDX-License-Identifier: GPL-2.0

//! [`Unaligned`]: a C value at any address.
//!
//! C reads structures of any alignment on the machines that this is for, and consumers rely on
//! that: the structures of iSER's receives are packed. A Rust reference to such a structure is
//! undefined behaviour on any machine. So a consumer's structures are accessed by this type.
//!
//! [`Room`] is for memory that is written only, and may be uninitialised before.

use core::mem::MaybeUninit;

/// A `T` that need not be aligned. It is read and written as a whole, or field by field.
///
/// The compiler refuses references to the inner value.
#[repr(C, packed)]
pub(crate) struct Unaligned<T>(pub(crate) T);

const _: () = {
    assert!(align_of::<Unaligned<u64>>() == 1);
    assert!(size_of::<Unaligned<u64>>() == 8);
};

/// Room for values, at any address. The memory may be uninitialised, so it is not read.
pub(crate) struct Room<'a, T>(&'a mut [MaybeUninit<Unaligned<T>>]);

impl<'a, T> Room<'a, T> {
    /// # Safety
    ///
    /// `first` has room for `count` values, which no other code uses during `'a`; `first` may be
    /// null if `count` is zero.
    pub(crate) unsafe fn new(first: *mut T, count: usize) -> Self {
        if count == 0 {
            return Self(&mut []);
        }
        // SAFETY: The caller says that there is room for `count` values, which no other code uses;
        // `MaybeUninit<Unaligned<T>>` demands neither alignment nor initialisation.
        Self(unsafe { core::slice::from_raw_parts_mut(first.cast(), count) })
    }

    /// The number of values that have room.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes a value to place `at`; false if there is no such place.
    pub(crate) fn put(&mut self, at: usize, value: T) -> bool {
        self.0
            .get_mut(at)
            .map(|place| place.write(Unaligned(value)))
            .is_some()
    }

    /// Writes a value to the first place, if there is one.
    pub(crate) fn set(mut self, value: T) {
        self.put(0, value);
    }

    /// Writes as many of the values as have a place.
    pub(crate) fn put_all(&mut self, values: &[T])
    where
        T: Copy,
    {
        for (place, value) in self.0.iter_mut().zip(values) {
            place.write(Unaligned(*value));
        }
    }

    /// The room of an array, which stays initialised.
    #[cfg(ndk_kunit)]
    pub(crate) fn of(values: &'a mut [T]) -> Self {
        // SAFETY: The array is borrowed for `'a`, and each value is replaced by another one at
        // most.
        unsafe { Self::new(values.as_mut_ptr(), values.len()) }
    }
}

impl<T> Unaligned<T> {
    /// Replaces the value.
    #[inline]
    pub(crate) fn set(&mut self, value: T) {
        // A C value needs no drop.
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

    /// Replaces the value, and returns the old one.
    pub(crate) fn replace(&mut self, value: T) -> T {
        let old = self.get();
        self.set(value);
        old
    }

    /// Changes a copy of the value, and writes the copy back.
    pub(crate) fn update<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.get();
        let result = change(&mut value);
        self.set(value);
        result
    }

    /// Views a slice of aligned values as unaligned ones.
    #[cfg(ndk_kunit)]
    pub(crate) fn of_slice(values: &[T]) -> &[Self] {
        // SAFETY: The same values; `Unaligned<T>` has the size of `T` and demands no alignment.
        unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_unaligned)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    #[test]
    fn values_are_read_and_written_at_every_address() {
        let mut bytes = [0u8; 16];
        for at in cases(0..8) {
            let value = bytes[at..].as_mut_ptr().cast::<Unaligned<u64>>();
            // SAFETY: The array has eight bytes from there on.
            let value = unsafe { &mut *value };
            value.set(0x0102_0304_0506_0708);
            kunit_assert_eq!(value.replace(7), 0x0102_0304_0506_0708);
            kunit_assert_eq!(value.update(|v| core::mem::replace(v, *v + 1)), 7);
            kunit_assert_eq!(value.get(), 8);
            kunit_assert_eq!(bytes[at..at + 8], 8u64.to_ne_bytes());
        }
    }

    #[test]
    fn room_is_written_at_every_address_up_to_its_end() {
        let mut bytes = [0u8; 32];
        for at in cases(0..8) {
            // SAFETY: The array has room for two values from there on.
            let mut room = unsafe { Room::new(bytes[at..].as_mut_ptr().cast::<u64>(), 2) };
            kunit_assert_eq!(room.len(), 2);
            assert!(room.put(1, 7));
            assert!(!room.put(2, 5));
            room.set(6);
            let (first, rest) = bytes[at..].split_at(8);
            kunit_assert_eq!(first, 6u64.to_ne_bytes());
            kunit_assert_eq!(rest[..8], 7u64.to_ne_bytes());
            assert!(rest[8..].iter().all(|byte| *byte == 0));
        }
        // SAFETY: For no values the address may be null.
        let mut none = unsafe { Room::<u64>::new(core::ptr::null_mut(), 0) };
        kunit_assert_eq!(none.len(), 0);
        assert!(!none.put(0, 1));
        none.put_all(&[1]);
        none.set(1);
        let mut values = [0u8; 2];
        Room::of(&mut values).put_all(&[1, 2, 3]);
        kunit_assert_eq!(values, [1, 2]);
        Room::of(&mut values).put_all(&[4]);
        kunit_assert_eq!(values, [4, 2]);
    }
}
