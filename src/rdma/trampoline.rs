// SPDX-License-Identifier: GPL-2.0

//! From the arguments of a trampoline to safe types, and from its result to C.

use super::prelude::*;
use crate::sys::unaligned::Room;

/// What a trampoline makes of an argument.
pub(super) trait FromC {
    /// What C passes.
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
    ($([$($param:ident)?] $type:ty),*) => {$(
        impl$(<$param>)? FromC for $type {
            type C = Self;

            #[inline]
            unsafe fn from_c(c: Self) -> Self {
                c
            }
        }
    )*};
}

same_in_c!([] u8, [] u16, [] u32, [] u64, [] c_int, [A] *const A, [A] *mut A);

impl<A> FromC for &mut Unaligned<A> {
    type C = *mut A;

    #[inline]
    unsafe fn from_c(c: *mut A) -> Self {
        // SAFETY: The caller passes a valid parameter that nobody else changes during the call.
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
        // SAFETY: A destroy trampoline gets an object that nobody else uses, once.
        unsafe { Self::from_raw(c) }
    }
}

/// What a trampoline makes of a result.
pub(super) trait IntoC {
    /// What C expects.
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

/// Makes the trampolines of the operations, and the table of them.
macro_rules! trampolines {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $from:ty),* $(,)?) -> $into:ty $body:block
    )*) => {
        impl<T: Operations> OperationsVTable<T> {
            $(
                #[doc = concat!("C: `ib_device_ops.", stringify!($name), "`.")]
                $(#[$doc])*
                ///
                /// # Safety
                ///
                /// See [`OperationsVTable`].
                pub(super) unsafe extern "C" fn $name(
                    $($arg: <$from as FromC>::C),*
                ) -> <$into as IntoC>::C {
                    $(
                        // SAFETY: The caller keeps to the contract of `OperationsVTable`.
                        let $arg = unsafe { <$from as FromC>::from_c($arg) };
                    )*
                    #[allow(clippy::redundant_closure_call)]
                    let result = (move || -> $into { $body })();
                    result.into_c()
                }
            )*

            /// The table of devices that serve programs; ib_core copies it into each.
            const USER_TABLE: bindings::ib_device_ops = bindings::ib_device_ops {
                owner: this_module::<crate::LocalModule>().as_ptr(),
                driver_id: user::DRIVER_ID,
                uverbs_abi_ver: user::ABI_VERSION,
                $($name: Some(Self::$name),)*
                size_ib_ucontext: size_of::<bindings::ib_ucontext>(),
                size_ib_pd: Pd::<T>::SIZE,
                size_ib_cq: Cq::<T>::SIZE,
                size_ib_qp: Qp::<T>::SIZE,
                size_ib_srq: Srq::<T>::SIZE,
                ..pin_init::zeroed()
            };

            /// That of all others: without contexts uverbs leaves a device alone.
            const TABLE: bindings::ib_device_ops = bindings::ib_device_ops {
                driver_id: T::DRIVER_ID,
                uverbs_abi_ver: 0,
                alloc_ucontext: None,
                ..Self::USER_TABLE
            };

            /// The table of a device that serves programs, or not.
            pub(super) const fn table(serves_programs: bool) -> &'static bindings::ib_device_ops {
                match serves_programs {
                    true => &Self::USER_TABLE,
                    false => &Self::TABLE,
                }
            }
        }
    };
}
pub(super) use trampolines;
