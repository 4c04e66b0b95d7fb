// SPDX-License-Identifier: GPL-2.0

//! The NDK face for C, as `include/ndk/ndk.h` declares it.
//!
//! An object of C is the head of a [`Handle`], which refers to the object of the Rust form. Each
//! entry of a dispatch table converts its arguments to the Rust form, and the answer to a status;
//! entries make no decisions.
//!
//! | file           | tables                                          |
//! |----------------|-------------------------------------------------|
//! | [`entry`]      | none: how tables are declared, and arguments    |
//! | [`adapter`]    | adapters, protection domains; opening, closing  |
//! | [`queue`]      | completion queues, shared queues, queue pairs   |
//! | [`memory`]     | regions, windows, logical addresses             |
//! | [`connection`] | connectors, listeners, shared endpoints         |
//! | [`numbers`]    | none: the numbers of the header                 |
//!
//! **Safety.** The consumer keeps the contract of the header: it names only objects that it was
//! given, and whose close has not completed (CLOS-10); arrays have the length given and stay during
//! the call; output pointers may be written; arrays, structures and output pointers need not be
//! aligned, but objects are; callbacks and their contexts may be used from any context until the
//! callback has come, or the object is closed.

#[macro_use]
mod entry;

pub(crate) mod adapter;
mod connection;
mod memory;
pub(crate) mod numbers;
mod queue;

#[cfg(ndk_kunit)]
#[path = "../../kunit/abi/lam.rs"]
pub(crate) mod lam_tests;
#[cfg(ndk_kunit)]
#[path = "../../kunit/abi/oom.rs"]
pub(crate) mod oom_tests;
#[cfg(ndk_kunit)]
#[path = "../../kunit/abi/request.rs"]
pub(crate) mod request_tests;
#[cfg(ndk_kunit)]
#[path = "../../kunit/abi/mod.rs"]
mod tests;

use core::{
    mem::offset_of,
    ptr, //
};

use super::{
    adapter::{
        Version,
        VERSION, //
    },
    call::{
        done,
        Call, //
    },
    cq::CqUser,
    prelude::*, //
};
use crate::{
    bindings,
    sys::unaligned::Unaligned, //
};

use entry::{
    in_out_value,
    on,
    output_slice,
    posted,
    put,
    read_address,
    slice,
    write_address,
    Returned, //
};

/// The C form of an object type: its structure, its number and its table.
///
/// # Safety
///
/// `DISPATCH` points at the table that the header gives objects of type `TYPE`; `C` is their
/// structure.
unsafe trait Face: ObjectType {
    type C;
    const TYPE: u32;
    const DISPATCH: *const c_void;
}

/// An object for C, which sees only the head: `header` and `dispatch`. All types have this layout.
#[repr(C)]
struct Handle<T: ObjectType> {
    header: bindings::ndk_object_header,
    dispatch: *const c_void,
    object: Ref<T>,
    closing: Callback<bindings::ndk_fn_close_completion>,
}

// Asserts the layout for C; `include/ndk/layout.h` asserts the same in C.
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

impl ObjectType for Dummy {}

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

/// A function of the consumer, and the context for its calls.
///
/// The consumer gave the two together, for calls from any context; those for events also for
/// several calls at once.
struct Callback<F> {
    function: F,
    context: *mut c_void,
}

// SAFETY: The function may be called, with this context, from anywhere (see the type).
unsafe impl<F: Send> Send for Callback<F> {}
// SAFETY: As above, and at once from several places.
unsafe impl<F: Sync> Sync for Callback<F> {}

impl Callback<Option<unsafe extern "C" fn(*mut c_void)>> {
    /// Calls the consumer, if there is a function.
    fn call(&self) {
        if let Some(function) = self.function {
            // SAFETY: `context` is the one that the consumer gave with `function`.
            unsafe { function(self.context) };
        }
    }
}

impl<A> Callback<Option<unsafe extern "C" fn(*mut c_void, A)>> {
    /// Calls the consumer, if there is a function.
    fn call_with(&self, with: A) {
        if let Some(function) = self.function {
            // SAFETY: `context` is the one that the consumer gave with `function`.
            unsafe { function(self.context, with) };
        }
    }
}

// SAFETY: The tables are constant, the object and the callback may be sent.
unsafe impl<T: ObjectType> Send for Handle<T> {}

/// The close completion; the handle is freed afterwards.
impl<T: ObjectType> Call<()> for Handle<T> {
    fn call(&mut self, (): ()) {
        self.closing.call();
    }
}

/// Memory for a handle, allocated before the object is created, so that no later step fails.
struct Blank<T: ObjectType>(KBox<core::mem::MaybeUninit<Handle<T>>>);

// SAFETY: Memory without content may be sent.
unsafe impl<T: ObjectType> Send for Blank<T> {}

impl<T: Face> Blank<T> {
    fn new() -> Result<Self, NtStatus> {
        Ok(Self(KBox::new_uninit(GFP_ATOMIC)?))
    }

    /// Returns the object for C, which the consumer owns until its close.
    fn fill(self, object: Ref<T>) -> *mut T::C {
        let handle = Handle {
            header: bindings::ndk_object_header {
                version: VERSION.into(),
                object_type: T::TYPE,
                reserved: [0; 4],
            },
            dispatch: T::DISPATCH,
            object,
            closing: Callback {
                function: None,
                context: ptr::null_mut(),
            },
        };
        KBox::into_raw(KBox::write(self.0, handle)).cast()
    }
}

impl From<Version> for bindings::ndk_version {
    fn from(Version { major, minor }: Version) -> Self {
        Self { major, minor }
    }
}

/// The object behind a pointer of the consumer; `None` if the pointer is null or, with a warning,
/// if the object was closed (CLOS-10).
///
/// The call has its own reference: a callback that the call leads to may close the object before
/// the call has returned (GEN-08), which frees the handle.
///
/// # Safety
///
/// `object` is null, or an object of this type that the consumer was given and whose close has not
/// completed.
unsafe fn get<T: Face>(object: *mut T::C) -> Option<Ref<T>> {
    // SAFETY: `fill` made it, so it is the head of a handle, which the close completion frees.
    let handle = unsafe { object.cast::<Handle<T>>().as_ref() }?;
    if kernel::warn_on!(handle.header.object_type != T::TYPE) {
        return None;
    }
    Some(handle.object.clone())
}

/// The status of a call without an object.
const NO_OBJECT: NtStatus = NtStatus::INVALID_PARAMETER;

/// Creates an object that its callback brings; `out`, for objects that are created at once, is not
/// written.
fn create_later<T: Face>(
    completion: bindings::ndk_fn_create_completion,
    context: *mut c_void,
    out: *mut *mut T::C,
    create: impl FnOnce(DoneFn<Created<T>>) -> Answer,
) -> Answer {
    NtStatus::INVALID_PARAMETER.when(completion.is_none() || out.is_null())?;
    let blank = Blank::<T>::new()?;
    let callback = Callback {
        function: completion,
        context,
    };
    create(done(GFP_ATOMIC, move |created: Created<T>| {
        let callback = callback;
        let (status, object) = match created {
            Ok(object) => (NtStatus::SUCCESS, blank.fill(object)),
            Err(status) => (status, ptr::null_mut()),
        };
        if let Some(function) = callback.function {
            // SAFETY: `context` came with the function; the object begins with its header.
            unsafe { function(callback.context, status.raw(), object.cast()) };
        }
    })?)
}

/// Creates an object before the call returns.
///
/// # Safety
///
/// `out` is null or may be written.
unsafe fn create_now<T: Face>(
    out: *mut *mut T::C,
    create: impl FnOnce() -> Created<T>,
) -> Result<(), NtStatus> {
    NtStatus::INVALID_PARAMETER.when(out.is_null())?;
    let blank = Blank::<T>::new()?;
    let object = blank.fill(create()?);
    // SAFETY: Not null, so it may be written.
    unsafe { out.write_unaligned(object) };
    Ok(())
}

/// The callback of a request; `INVALID_PARAMETER` without one: the call may pend.
fn request_done(
    completion: bindings::ndk_fn_request_completion,
    context: *mut c_void,
) -> Result<DoneFn<NtStatus>, NtStatus> {
    NtStatus::INVALID_PARAMETER.when(completion.is_none())?;
    let callback = Callback {
        function: completion,
        context,
    };
    done(GFP_ATOMIC, move |status: NtStatus| {
        callback.call_with(status.raw());
    })
}

/// The function of a consumer that a queue calls with a status.
fn status_user(
    callback: Callback<Option<unsafe extern "C" fn(*mut c_void, i32)>>,
) -> Result<CqUser, NtStatus> {
    let user = move |status: NtStatus| callback.call_with(status.raw());
    Ok(KBox::new(user, GFP_ATOMIC)?)
}

/// Takes back the handle that [`Blank::fill`] made; returns it with its object.
///
/// # Safety
///
/// As for [`get`]; the call closes `object`.
unsafe fn take_back<T: Face>(object: *mut T::C) -> Option<(Ref<T>, KBox<Handle<T>>)> {
    // SAFETY: The caller says that `object` is null, or that `fill` made it for the consumer and
    // its close has not completed.
    let this = unsafe { get::<T>(object) }?;
    // SAFETY: `fill` made the handle; the object was not closed, so the consumer owned the handle
    // until this call.
    let mut handle = unsafe { KBox::from_raw(object.cast::<Handle<T>>()) };
    handle.header.object_type = bindings::NDK_OBJECT_TYPE_UNDEFINED;
    Some((this, handle))
}

/// `NdkClose*` of every object but adapters.
///
/// # Safety
///
/// `object` is as [`get`] wants it.
unsafe extern "C" fn close<T: Face>(
    object: *mut bindings::ndk_object_header,
    completion: bindings::ndk_fn_close_completion,
    context: *mut c_void,
) -> i32 {
    // SAFETY: The consumer names one of its objects, by the header that it begins with; it is
    // closed below.
    let Some((object, mut handle)) = (unsafe { take_back::<T>(object.cast()) }) else {
        return NtStatus::SUCCESS.raw();
    };
    handle.closing = Callback {
        function: completion,
        context,
    };
    Answer::into_c(Ok(object.close(handle)))
}

/// `NdkQueryExtension` of every object: there are no extensions (ADPT-06).
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
