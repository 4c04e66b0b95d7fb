// SPDX-License-Identifier: GPL-2.0

//! [`trampoline`] turns a function over safe types into one that C calls.
//!
//! [`FromC`] converts each argument to the function's type, [`IntoC`] its result to C's.

use core::mem::MaybeUninit;

use super::prelude::*;
use crate::sys::unaligned::Room;

/// An argument that a trampoline makes.
pub(super) trait FromC {
    /// The type that C passes.
    type C;

    /// Takes the argument over.
    ///
    /// # Safety
    ///
    /// `c` was passed as [`super::table::OperationsVTable`] demands, and the result is not used
    /// when the trampoline has returned.
    unsafe fn from_c(c: Self::C) -> Self;
}

/// Arguments that stay as they are.
macro_rules! same_in_c {
    ($($type:ty),*) => {$(
        impl FromC for $type {
            type C = Self;

            #[inline]
            unsafe fn from_c(c: Self) -> Self {
                c
            }
        }
    )*};
}

same_in_c!(u8, u16, u32, u64, c_int);

/// A pointer that C passed.
///
/// # Invariants
///
/// The pointer is an argument of the operation that has it, with the other arguments of the same
/// call, which [`super::table::OperationsVTable`] describes and which has not returned.
pub(super) struct Passed<P>(P);

impl<P: Copy> Passed<P> {
    /// The pointer.
    pub(super) fn get(&self) -> P {
        self.0
    }
}

/// Pointers that stay as they are.
macro_rules! passed {
    ($($type:ty),*) => {$(
        impl<A> FromC for Passed<$type> {
            type C = $type;

            #[inline]
            unsafe fn from_c(c: $type) -> Self {
                // INVARIANT: The caller says that C passed it, and that the call has not returned.
                Self(c)
            }
        }
    )*};
}

passed!(*const A, *mut A);

impl<A> FromC for &mut Unaligned<A> {
    type C = *mut A;

    #[inline]
    unsafe fn from_c(c: *mut A) -> Self {
        // SAFETY: The caller passes a valid parameter that no other code changes during the call.
        unsafe { &mut *c.cast() }
    }
}

/// A parameter that is written and not read: it may have no value before.
impl<A> FromC for Room<'_, A> {
    type C = *mut A;

    unsafe fn from_c(c: *mut A) -> Self {
        // SAFETY: The caller passes a place for a value, which no other code uses during the call.
        unsafe { Self::new(c, 1) }
    }
}

impl<C: IbObject, P> FromC for &Object<C, P> {
    type C = *mut C;

    #[inline]
    unsafe fn from_c(c: *mut C) -> Self {
        // SAFETY: The caller passes an object that was made and is not destroyed during the call.
        unsafe { Object::from_raw(c) }
    }
}

impl<C: IbObject, P> FromC for NewObject<C, P> {
    type C = *mut C;

    unsafe fn from_c(c: *mut C) -> Self {
        // SAFETY: A create trampoline gets a new object.
        unsafe { Self::from_raw(c) }
    }
}

impl<C: IbObject, P> FromC for OwnedObject<C, P> {
    type C = *mut C;

    unsafe fn from_c(c: *mut C) -> Self {
        // SAFETY: A destroy trampoline gets an object that has no other user, once.
        unsafe { Self::from_raw(c) }
    }
}

/// A result that a trampoline takes.
pub(super) trait IntoC {
    /// The type that C expects.
    type C;

    /// Hands the result over.
    fn into_c(self) -> Self::C;
}

impl IntoC for () {
    type C = ();

    fn into_c(self) {}
}

impl IntoC for Result {
    type C = c_int;

    #[inline]
    fn into_c(self) -> c_int {
        self.map(|()| 0).into_c()
    }
}

impl IntoC for Result<c_int> {
    type C = c_int;

    fn into_c(self) -> c_int {
        self.unwrap_or_else(|error| error.to_errno())
    }
}

impl IntoC for c_int {
    type C = Self;

    #[inline]
    fn into_c(self) -> Self {
        self
    }
}

impl<A> IntoC for *mut A {
    type C = Self;

    fn into_c(self) -> Self {
        self
    }
}

/// A pointer, or an error in its place. C: `ERR_PTR()`.
impl<A> IntoC for Result<*mut A> {
    type C = *mut A;

    fn into_c(self) -> *mut A {
        self.unwrap_or_else(|error| error.to_ptr())
    }
}

/// A function over safe types that C can call with these arguments.
pub(super) trait Trampoline<Args>: Copy + Send + 'static {
    /// The type of the function that C calls.
    type C;

    /// The function that C calls; a value of this type must exist.
    const CALL: Self::C;
}

/// Implements [`Trampoline`] for functions with these arguments.
macro_rules! trampolines {
    ($([$($from:ident $arg:ident),+])*) => {$(
        impl<F, R, $($from),+> Trampoline<($($from,)+)> for F
        where
            F: Fn($($from),+) -> R + Copy + Send + 'static,
            R: IntoC,
            $($from: FromC),+
        {
            type C = unsafe extern "C" fn($($from::C),+) -> R::C;

            const CALL: Self::C = {
                /// # Safety
                ///
                /// See `OperationsVTable`; and a value of `F` exists.
                unsafe extern "C" fn call<F, R, $($from),+>($($arg: $from::C),+) -> R::C
                where
                    F: Fn($($from),+) -> R + Copy + Send + 'static,
                    R: IntoC,
                    $($from: FromC),+
                {
                    const { assert!(size_of::<F>() == 0, "the type alone says what is called") };
                    // SAFETY: The caller says that a value exists, of which any thread may have a
                    // copy at any time; it has no bytes.
                    let function = unsafe { MaybeUninit::<F>::uninit().assume_init() };
                    // SAFETY: The caller keeps to the contract of `OperationsVTable`, and the
                    // function to that of `trampoline`.
                    function($(unsafe { $from::from_c($arg) }),+).into_c()
                }
                call::<F, R, $($from),+>
            };
        }
    )*};
}

trampolines! {
    [A a]
    [A a, B b]
    [A a, B b, D d]
    [A a, B b, D d, E e]
    [A a, B b, D d, E e, G g]
    [A a, B b, D d, E e, G g, H h]
    [A a, B b, D d, E e, G g, H h, I i]
}

/// The function that C calls in place of `function`, for an operations table.
///
/// # Safety
///
/// The result is put in the table for the operation that `function` carries out, which uses its
/// arguments during the call alone.
pub(super) const unsafe fn trampoline<F, Args>(_function: F) -> Option<F::C>
where
    F: Trampoline<Args>,
{
    Some(F::CALL)
}
