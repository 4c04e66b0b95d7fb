// SPDX-License-Identifier: GPL-2.0

//! Dispatch tables and their entries: the conversion of arguments and answers.

use core::net::SocketAddr;

use super::{
    Face,
    NO_OBJECT, //
};
use crate::{
    bindings,
    ndk::prelude::*,
    rdma::values::token::Token,
    sys::{
        addr,
        sge::{
            Elements,
            Posted,
            Sge, //
        },
        unaligned::{
            Room,
            Unaligned, //
        }, //
    }, //
};

/// Defines the table of an object type, and its entries under their names in the table.
///
/// Entries in brackets are defined elsewhere. The others begin with their kind:
///
/// - `call`: gives its answer when it returns.
/// - `request`: ends in a request completion, which the last argument makes.
/// - `post`: posts the request and flags that the body gives, with the list that the first
///   arguments are.
/// - `address`: writes the address that the body gives.
/// - `create`: makes an object before it returns.
/// - `create_later`: ends in a create completion, which the last argument is.
macro_rules! face {
    (
        $object:ident: $c:ident, $table:ident, $number:ident, [$($other:ident: $by:expr),*]
        $($kind:ident $name:ident($($args:tt)*) $(-> $out:ident)? $body:block)*
    ) => {
        const _: () = {
            static TABLE: bindings::$table = bindings::$table {
                query_extension: Some(super::query_extension),
                $($other: Some($by),)*
                $($name: Some($name),)*
            };

            // SAFETY: The header gives objects of this type this table.
            unsafe impl super::Face for $object {
                type C = bindings::$c;
                const TYPE: u32 = bindings::$number;
                const DISPATCH: *const core::ffi::c_void = (&raw const TABLE).cast();
            }

            $(define!($kind $object, $name($($args)*) $(-> $out)? $body);)*
        };
    };
}

/// Defines an entry of a table; see `face!`.
///
/// # Safety
///
/// The consumer calls an entry by the table of an object, with arguments as the header wants them.
macro_rules! define {
    (call $object:ident,
        $name:ident($this:ident $(, $arg:ident: $ty:ty)*) $(-> $out:ty)? $body:block) => {
        #[allow(clippy::missing_safety_doc, clippy::duplicate_underscore_argument)]
        unsafe extern "C" fn $name(this: *mut <$object as super::Face>::C $(, $arg: $ty)*)
        $(-> $out)? {
            // SAFETY: The consumer names an object of its own, of the type that has this table.
            let object = unsafe { super::get::<$object>(this) };
            super::on(object, |$this| $body)
        }
    };
    (request $object:ident,
        $name:ident($this:ident $(, $arg:ident: $ty:ty)*; $done:ident) $body:block) => {
        define!(call $object, $name(
            $this $(, $arg: $ty)*,
            completion: bindings::ndk_fn_request_completion,
            context: *mut core::ffi::c_void
        ) -> i32 {
            let $done = || super::request_done(completion, context);
            $body
        });
    };
    (post $object:ident,
        $name:ident($this:ident $(, $arg:ident: $ty:ty)*) $body:block) => {
        define!(call $object, $name(
            $this,
            context: *mut core::ffi::c_void,
            sgl: *const bindings::ndk_sge,
            count: u32
            $(, $arg: $ty)*
        ) -> i32 {
            let (request, flags) = $body;
            // SAFETY: `sgl` has `count` elements, whose memory stays until the end of the request.
            unsafe { post($this, context, request, (sgl, count), flags) }
        });
    };
    (address $object:ident, $name:ident($this:ident) $body:block) => {
        define!(call $object, $name(
            $this,
            address: *mut bindings::sockaddr,
            length: *mut u32
        ) -> i32 {
            let at = $body;
            // SAFETY: `length` is null or may be changed; `address` is null or has `*length` bytes.
            unsafe { super::write_address(at, address, length) }
        });
    };
    (create $object:ident,
        $name:ident($this:ident $(, $arg:ident: $ty:ty)*) -> $made:ident $body:block) => {
        define!(call $object, $name(
            $this $(, $arg: $ty)*,
            _completion: bindings::ndk_fn_create_completion,
            _context: *mut core::ffi::c_void,
            out: *mut *mut <$made as super::Face>::C
        ) -> i32 {
            let create = || $body;
            // SAFETY: `out` is the consumer's pointer for the object, null or one that may be
            // written.
            unsafe { super::create_now::<$made>(out, create) }
        });
    };
    (create_later $object:ident,
        $name:ident($this:ident $(, $arg:ident: $ty:ty)*; $done:ident) -> $made:ident $body:block) => {
        define!(call $object, $name(
            $this $(, $arg: $ty)*,
            completion: bindings::ndk_fn_create_completion,
            context: *mut core::ffi::c_void,
            out: *mut *mut <$made as super::Face>::C
        ) -> i32 {
            super::create_later::<$made>(completion, context, out, |$done| $body)
        });
    };
}

/// The answer of an entry, and its form in C.
pub(super) trait Returned {
    type C;

    /// The answer without an object.
    const NO_OBJECT: Self::C;

    fn into_c(self) -> Self::C;
}

impl Returned for () {
    type C = ();
    const NO_OBJECT: () = ();

    fn into_c(self) {}
}

impl Returned for u32 {
    type C = u32;
    const NO_OBJECT: u32 = 0;

    fn into_c(self) -> u32 {
        self
    }
}

impl Returned for Result<(), NtStatus> {
    type C = i32;
    const NO_OBJECT: i32 = NO_OBJECT.raw();

    fn into_c(self) -> i32 {
        self.map_or_else(NtStatus::raw, |()| NtStatus::SUCCESS.raw())
    }
}

impl Returned for Answer {
    type C = i32;
    const NO_OBJECT: i32 = NO_OBJECT.raw();

    fn into_c(self) -> i32 {
        match self {
            Ok(Progress::Done) => NtStatus::SUCCESS.raw(),
            Ok(Progress::Pending) => NtStatus::PENDING.raw(),
            Err(status) => status.raw(),
        }
    }
}

/// Calls `answer` with an object of the consumer; without an object gives `NO_OBJECT`.
pub(super) fn on<T: Face, R: Returned>(
    object: Option<Ref<T>>,
    answer: impl FnOnce(&Ref<T>) -> R,
) -> R::C {
    object.map_or(R::NO_OBJECT, |object| answer(&object).into_c())
}

/// An array of the consumer, of bytes or of [`Unaligned`] elements; an empty one may be null.
///
/// # Safety
///
/// `first` is null or has `count` elements, which stay during the call.
pub(super) unsafe fn slice<'a, T>(first: *const T, count: u32) -> Result<&'a [T], NtStatus> {
    const { assert!(align_of::<T>() == 1) };
    if count == 0 {
        return Ok(&[]);
    }
    NtStatus::INVALID_PARAMETER.when(first.is_null())?;
    // CAST: widening.
    // SAFETY: Not null, so it has `count` elements; every address is aligned for them.
    Ok(unsafe { core::slice::from_raw_parts(first, count as usize) })
}

/// An array that the consumer wants filled, as [`slice`].
///
/// # Safety
///
/// `first` is null or has room for `count` elements, which no other code uses during the call.
pub(super) unsafe fn output_slice<'a, T>(
    first: *mut T,
    count: u32,
) -> Result<Room<'a, T>, NtStatus> {
    NtStatus::INVALID_PARAMETER.when(count > 0 && first.is_null())?;
    // CAST: widening.
    // SAFETY: Not null, or `count` is 0, so there is room for `count` elements.
    Ok(unsafe { Room::new(first, count as usize) })
}

/// Writes a value to a pointer of the consumer, at any alignment; has no effect on null.
///
/// # Safety
///
/// `to` is null or has room for a value, which no other code uses during the call.
pub(super) unsafe fn put<T>(to: *mut T, value: T) {
    // CAST: a flag.
    // SAFETY: There is room for a value, or `to` is null and the count is 0.
    unsafe { Room::new(to, usize::from(!to.is_null())) }.set(value);
}

/// A value of the consumer that may be changed, at any alignment; `None` for null. [`put`] is for
/// places that are only written, and need not have a value.
///
/// # Safety
///
/// `value` is null, or was written, may be changed, and is used by no other code during the call.
pub(super) unsafe fn in_out_value<'a, T>(value: *mut T) -> Option<&'a mut Unaligned<T>> {
    // SAFETY: The caller says that `value` is null or may be changed; no alignment is demanded.
    unsafe { value.cast::<Unaligned<T>>().as_mut() }
}

/// The list of the request that the consumer names `context`.
///
/// # Safety
///
/// The consumer posts that request now, once. Memory that is named by the privileged token stays
/// until the request has completed (NDKPI, privileged memory region token).
pub(super) unsafe fn posted(
    context: *mut c_void,
    list: &[Unaligned<bindings::ndk_sge>],
) -> Posted<impl Elements + '_> {
    let sges = list.iter().map(|sge| {
        let sge = sge.get();
        // SAFETY: Both members of the union are 64 bits, of which every pattern is valid.
        let addr = unsafe { sge.__bindgen_anon_1.logical_address };
        Sge::new(addr, sge.length, Token::from_raw(sge.memory_region_token))
    });
    // SAFETY: The caller keeps to the same contract.
    unsafe { Posted::new(context.addr() as u64, sges) }
}

/// Bytes of a `sockaddr_in`, or of a `sockaddr_in6`.
pub(super) const fn address_length(at: &SocketAddr) -> u32 {
    match at {
        SocketAddr::V4(_) => 16,
        SocketAddr::V6(_) => 28,
    }
}

/// Reads an address; `INVALID_ADDRESS` for one that is neither IPv4 nor IPv6, or cut short.
///
/// # Safety
///
/// `address` is null or has `length` bytes.
pub(super) unsafe fn read_address(
    address: *const bindings::sockaddr,
    length: u32,
) -> Result<SocketAddr, NtStatus> {
    // SAFETY: The caller says that `address` is null or has `length` bytes; they are not used after
    // this call.
    let bytes = unsafe { slice(address.cast::<u8>(), length) };
    let at = bytes.ok().and_then(addr::from_bytes);
    at.filter(|at| length >= address_length(at))
        .ok_or(NtStatus::INVALID_ADDRESS)
}

/// Writes an address, and its length in any case; `BUFFER_TOO_SMALL` without room for the address.
///
/// # Safety
///
/// `length` is null or may be changed, and `address` is null or has `*length` bytes.
pub(super) unsafe fn write_address(
    at: SocketAddr,
    address: *mut bindings::sockaddr,
    length: *mut u32,
) -> Result<(), NtStatus> {
    // SAFETY: The caller says that `length` is null or may be changed.
    let length = unsafe { in_out_value(length) }.ok_or(NtStatus::INVALID_PARAMETER)?;
    let needed = address_length(&at);
    let room = length.replace(needed);
    NtStatus::BUFFER_TOO_SMALL.when(address.is_null() || room < needed)?;
    let storage = addr::write(&at);
    let bytes = core::ptr::from_ref(&storage).cast::<u8>();
    // CAST: 16 or 28.
    // SAFETY: There is room for `needed` bytes, and a storage is larger.
    unsafe { core::ptr::copy_nonoverlapping(bytes, address.cast(), needed as usize) };
    Ok(())
}
