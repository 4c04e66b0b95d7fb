// SPDX-License-Identifier: GPL-2.0

//! The NDK face for C: what `include/ndk/ndk.h` declares.
//!
//! An object of C is the head of a [`Handle`], which refers to the object of the Rust form. Each
//! entry of a dispatch table turns its arguments into those of the Rust form and the answer into a
//! status; nothing is decided here.
//!
//! | file           | whose tables                                   |
//! |----------------|-------------------------------------------------|
//! | [`adapter`]    | adapters; opening and closing them              |
//! | [`pd`]         | protection domains                              |
//! | [`queue`]      | completion queues, shared queues, queue pairs   |
//! | [`memory`]     | regions, windows, logical addresses             |
//! | [`connection`] | connectors                                      |
//! | [`listener`]   | listeners, shared endpoints                     |
//!
//! **Safety.** The consumer keeps the contract of the header: an object that it names is one that
//! it was given and has not closed, or whose close has not completed (CLOS-10); arrays have the
//! length given; callbacks and their contexts may be used from any context until the callback has
//! come, or the object is closed. "By the contract" below means this.

pub(crate) mod adapter;
mod connection;
mod listener;
mod memory;
mod pd;
mod queue;

#[cfg(ndk_kunit)]
pub(crate) mod lam_tests;
#[cfg(ndk_kunit)]
pub(crate) mod oom_tests;
#[cfg(ndk_kunit)]
pub(crate) mod request_tests;
#[cfg(ndk_kunit)]
mod tests;

use core::{
    ffi::c_void,
    mem::{
        offset_of,
        size_of, //
    },
    net::SocketAddr,
    ptr, //
};

use kernel::prelude::*;

use super::{
    adapter::VERSION,
    call::{
        done,
        Call,
        Done, //
    },
    life::{
        ObjectType,
        Ref, //
    },
    pd::Created,
    status::{
        Answer,
        NtStatus,
        Progress, //
    }, //
};
use crate::{
    bindings,
    engine::work::Sge,
    sys::addr, //
};

/// An object as C knows it: which, and by which functions.
///
/// # Safety
///
/// `DISPATCH` points at the table that the header gives objects of type `TYPE`.
unsafe trait Face: ObjectType {
    const TYPE: u32;
    const DISPATCH: *const c_void;
}

/// The head is what C sees; all objects are laid out alike.
#[repr(C)]
struct Handle<T: ObjectType> {
    header: bindings::ndk_object_header,
    dispatch: *const c_void,
    entity: Ref<T>,
    closing: Callback<bindings::ndk_fn_close_completion>,
}

// The layout that C has; `include/ndk/layout.h` says the same to the C compiler.
macro_rules! same_layout {
    ($($object:ident),*) => {
        $(const _: () = {
            assert!(size_of::<bindings::$object>() == 48);
            assert!(offset_of!(bindings::$object, header) == offset_of!(Handle<Dummy>, header));
            assert!(offset_of!(bindings::$object, dispatch) == offset_of!(Handle<Dummy>, dispatch));
        };)*
    };
}

/// Stands for any object where only the layout matters.
// rustc 1.85 does not count an `offset_of!` as a use.
#[allow(dead_code)]
enum Dummy {}

impl ObjectType for Dummy {
    fn end_sleeps(&self) -> bool {
        false
    }

    fn end(&self) {}
}

same_layout!(
    ndk_adapter,
    ndk_pd,
    ndk_cq,
    ndk_qp,
    ndk_srq,
    ndk_mr,
    ndk_mw,
    ndk_connector,
    ndk_listener,
    ndk_shared_endpoint
);

const _: () = {
    assert!(size_of::<bindings::ndk_object_header>() == 40);
    assert!(size_of::<bindings::ndk_sge>() == 16);
    assert!(size_of::<bindings::ndk_result>() == 24);
    assert!(size_of::<bindings::ndk_result_ex>() == 40);
    assert!(size_of::<bindings::ndk_adapter_info>() == 104);
    assert!(size_of::<bindings::ndk_logical_address_mapping>() == 16);
};

/// A function of the consumer's and the context that it is called with.
struct Callback<F> {
    function: F,
    context: *mut c_void,
}

// SAFETY: By the contract the function may be called, with this context, from anywhere.
unsafe impl<F: Send> Send for Callback<F> {}
// SAFETY: As above, and at once from several places.
unsafe impl<F: Sync> Sync for Callback<F> {}

// SAFETY: The tables are constant, the entity and the callback may be sent.
unsafe impl<T: ObjectType> Send for Handle<T> {}

/// The close completion; afterwards the handle goes.
impl<T: ObjectType> Call<()> for Handle<T> {
    fn call(&mut self, (): ()) {
        if let Some(function) = self.closing.function {
            // SAFETY: By the contract.
            unsafe { function(self.closing.context) };
        }
    }
}

/// Memory for a handle, made before there is an object, so that there is no failure after it.
struct Blank<T: ObjectType>(KBox<core::mem::MaybeUninit<Handle<T>>>);

// SAFETY: Memory without content may be sent.
unsafe impl<T: ObjectType> Send for Blank<T> {}

impl<T: Face> Blank<T> {
    fn new() -> Result<Self, NtStatus> {
        let memory = KBox::new_uninit(GFP_ATOMIC);
        Ok(Self(memory.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?))
    }

    /// The object for C, which owns it until it closes it.
    fn fill<C>(self, entity: Ref<T>) -> *mut C {
        let handle = Handle {
            header: bindings::ndk_object_header {
                version: bindings::ndk_version {
                    major: VERSION.major,
                    minor: VERSION.minor,
                },
                object_type: T::TYPE,
                reserved: [0; 4],
            },
            dispatch: T::DISPATCH,
            entity,
            closing: Callback {
                function: None,
                context: ptr::null_mut(),
            },
        };
        KBox::into_raw(KBox::write(self.0, handle)).cast()
    }
}

/// The object behind a pointer of the consumer's, unless it was closed (CLOS-10).
///
/// # Safety
///
/// By the contract `object` is one of this type that the consumer was given, or null; the result
/// is not used beyond the call.
unsafe fn get<'a, T: Face, C>(object: *mut C) -> Option<&'a Ref<T>> {
    // SAFETY: By the contract, and the layout is that of a handle.
    let handle = unsafe { object.cast::<Handle<T>>().as_ref() }?;
    if kernel::warn_on!(handle.header.object_type != T::TYPE) {
        return None;
    }
    Some(&handle.entity)
}

/// What a call with an object that is none gives.
const NO_OBJECT: NtStatus = NtStatus::INVALID_PARAMETER;

/// The value of an answer for C.
fn raw(answer: Answer) -> i32 {
    match answer {
        Ok(Progress::Done(())) => NtStatus::SUCCESS.raw(),
        Ok(Progress::Pending) => NtStatus::PENDING.raw(),
        Err(status) => status.raw(),
    }
}

/// The value of a result for C.
fn raw_result(result: Result<(), NtStatus>) -> i32 {
    result.map_or_else(NtStatus::raw, |()| NtStatus::SUCCESS.raw())
}

/// Creates an object that comes later.
///
/// # Safety
///
/// By the contract `out` may be written, and `completion` is the consumer's.
unsafe fn create_later<T: Face, C>(
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut C,
    create: impl FnOnce(Done<Created<T>>) -> Answer<Ref<T>>,
) -> i32 {
    let begin = || -> Answer<Ref<T>> {
        if completion.is_none() || out.is_null() {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let blank = Blank::<T>::new()?;
        let callback = Callback {
            function: completion,
            context,
        };
        create(done(GFP_ATOMIC, move |created: Created<T>| {
            let callback = callback;
            let (status, object) = match created {
                Ok(entity) => (NtStatus::SUCCESS, blank.fill(entity)),
                Err(status) => (status, ptr::null_mut()),
            };
            if let Some(function) = callback.function {
                // SAFETY: By the contract.
                unsafe { function(callback.context, status.raw(), object) };
            }
        })?)
    };
    match begin() {
        Ok(Progress::Pending) => NtStatus::PENDING.raw(),
        // SAFETY: As required of the caller.
        Ok(Progress::Done(entity)) => unsafe { give(out, entity) },
        Err(status) => status.raw(),
    }
}

/// Creates an object that is there at once.
///
/// # Safety
///
/// By the contract `out` may be written.
unsafe fn create_now<T: Face, C>(out: *mut *mut C, create: impl FnOnce() -> Created<T>) -> i32 {
    if out.is_null() {
        return NtStatus::INVALID_PARAMETER.raw();
    }
    let made = || -> Result<*mut C, NtStatus> {
        let blank = Blank::<T>::new()?;
        Ok(blank.fill(create()?))
    };
    match made() {
        Ok(object) => {
            // SAFETY: As required of the caller, and not null.
            unsafe { *out = object };
            NtStatus::SUCCESS.raw()
        }
        Err(status) => status.raw(),
    }
}

/// Hands an object over that is there; without memory for that it is closed.
///
/// # Safety
///
/// `out` may be written.
unsafe fn give<T: Face, C>(out: *mut *mut C, entity: Ref<T>) -> i32 {
    match Blank::<T>::new() {
        Ok(blank) => {
            // SAFETY: As required of the caller.
            unsafe { *out = blank.fill(entity) };
            NtStatus::SUCCESS.raw()
        }
        Err(status) => {
            entity.close_unseen();
            status.raw()
        }
    }
}

/// A callback of a request; `INVALID_PARAMETER` without one, for the call may pend.
fn request_done(
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> Result<Done<NtStatus>, NtStatus> {
    if completion.is_none() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let callback = Callback {
        function: completion,
        context,
    };
    done(GFP_ATOMIC, move |status: NtStatus| {
        let callback = callback;
        if let Some(function) = callback.function {
            // SAFETY: By the contract.
            unsafe { function(callback.context, status.raw()) };
        }
    })
}

/// `NdkClose*`, of every object but adapters.
///
/// # Safety
///
/// By the contract.
unsafe extern "C" fn close<T: Face>(
    object: *mut bindings::ndk_object_header,
    completion: bindings::ndk_fn_close_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: As required of the caller.
    let Some(entity) = (unsafe { get::<T, _>(object) }) else {
        return NtStatus::SUCCESS.raw();
    };
    let entity = entity.clone();
    // SAFETY: `fill` made it; it was not closed, so it is still the consumer's, who gives it back.
    let mut handle = unsafe { KBox::from_raw(object.cast::<Handle<T>>()) };
    handle.header.object_type = bindings::NDK_OBJECT_TYPE_UNDEFINED;
    handle.closing = Callback {
        function: completion,
        context,
    };
    raw(Ok(entity.close(handle)))
}

/// `NdkQueryExtension`, of every object: there is none (ADPT-06).
///
/// # Safety
///
/// None is needed.
unsafe extern "C" fn query_extension(
    _object: *mut bindings::ndk_object_header,
    _extension: *const bindings::guid_t,
    _interface: *mut *const c_void,
) -> i32 {
    NtStatus::NOT_SUPPORTED.raw()
}

/// The elements of a list; `INVALID_PARAMETER` when there ought to be some and is no list.
///
/// # Safety
///
/// By the contract `sgl` has `count` elements, which stay during the call.
unsafe fn sges<'a>(
    sgl: *const bindings::ndk_sge,
    count: u32,
) -> Result<impl ExactSizeIterator<Item = Sge> + Clone + 'a, NtStatus> {
    // SAFETY: As required of the caller.
    let list: &'a [bindings::ndk_sge] = unsafe { slice(sgl, count)? };
    Ok(list.iter().map(|sge| {
        // SAFETY: Both members of the union are 64 bits, of which every pattern is valid.
        let addr = unsafe { sge.__bindgen_anon_1.logical_address };
        // SAFETY: Who posts an element under the privileged token promises that its memory stays
        // until the request has completed (NDKPI, privileged memory region token).
        unsafe { Sge::new(addr, sge.length, sge.memory_region_token) }
    }))
}

/// An array of the consumer's; empty ones need not be there.
///
/// # Safety
///
/// By the contract `first` is null or has `count` elements, which stay during the call.
unsafe fn slice<'a, T>(first: *const T, count: u32) -> Result<&'a [T], NtStatus> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    // CAST: widening.
    // SAFETY: As required of the caller, and not null.
    Ok(unsafe { core::slice::from_raw_parts(first, count as usize) })
}

/// Bytes of a `sockaddr_in` and of a `sockaddr_in6`.
const LENGTHS: (u32, u32) = (16, 28);

const fn address_length(at: &SocketAddr) -> u32 {
    match at {
        SocketAddr::V4(_) => LENGTHS.0,
        SocketAddr::V6(_) => LENGTHS.1,
    }
}

/// Reads an address; `INVALID_ADDRESS` for one that is neither IPv4 nor IPv6, or cut short.
///
/// # Safety
///
/// By the contract `address` is null or has `length` bytes.
unsafe fn read_address(
    address: *const bindings::sockaddr,
    length: u32,
) -> Result<SocketAddr, NtStatus> {
    // SAFETY: As required of the caller.
    let bytes = unsafe { slice(address.cast::<u8>(), length) };
    let at = addr::from_bytes(bytes.map_err(|_| NtStatus::INVALID_ADDRESS)?);
    let at = at.ok_or(NtStatus::INVALID_ADDRESS)?;
    match length >= address_length(&at) {
        true => Ok(at),
        false => Err(NtStatus::INVALID_ADDRESS),
    }
}

/// Writes an address; a buffer too small learns what is needed.
///
/// # Safety
///
/// By the contract `length` is null or may be changed, and `address` is null or has so many bytes.
unsafe fn write_address(
    at: Result<SocketAddr, NtStatus>,
    address: *mut bindings::sockaddr,
    length: *mut u32,
) -> i32 {
    let at = match at {
        Ok(at) => at,
        Err(status) => return status.raw(),
    };
    // SAFETY: As required of the caller.
    let Some(length) = (unsafe { length.as_mut() }) else {
        return NtStatus::INVALID_PARAMETER.raw();
    };
    let needed = address_length(&at);
    let room = core::mem::replace(length, needed);
    if address.is_null() || room < needed {
        return NtStatus::BUFFER_TOO_SMALL.raw();
    }
    let storage = addr::write(&at);
    // CAST: 16 or 28.
    // SAFETY: There is room for so many bytes, and a storage is larger.
    unsafe {
        ptr::copy_nonoverlapping(
            ptr::from_ref(&storage).cast::<u8>(),
            address.cast::<u8>(),
            needed as usize,
        )
    };
    NtStatus::SUCCESS.raw()
}
