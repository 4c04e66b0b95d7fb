// SPDX-License-Identifier: GPL-2.0

//! Provider data behind the objects of ib_core.
//!
//! The core allocates (zeroed) and frees `ib_pd`, `ib_cq`, `ib_qp` and `ib_srq`
//! in the size that the operations table asks for. An [`Object`] is such an
//! allocation: the C structure first, then what this layer keeps, then the
//! provider's payload. Create initialises the latter two, destroy drops them.
//!
//! C: `DECLARE_RDMA_OBJ_SIZE`, `INIT_RDMA_OBJ_SIZE`.

use core::{
    mem::{
        align_of,
        offset_of,
        size_of,
        MaybeUninit, //
    },
    ops::Deref, //
};

use kernel::{
    error::from_result,
    ffi::c_int,
    types::Opaque, //
};

use super::{
    device::Device,
    table::{
        kernel_only,
        OperationsVTable, //
    },
    Operations, //
};
use crate::bindings;

/// The alignment that any allocation of the core has.
const CORE_ALIGN: usize = 8;

/// What this layer keeps with each C type.
pub(crate) trait IbObject {
    /// The data; dropped with the payload.
    type Private: Send + Sync;
}

impl IbObject for bindings::ib_pd {
    type Private = ();
}

/// A protection domain with the provider's payload.
pub(crate) type Pd<T> = Object<bindings::ib_pd, <T as Operations>::Pd>;

/// A C object `C` with the provider's payload `P`, to which it dereferences.
///
/// # Invariants
///
/// Wherever a reference to an `Object` exists, `extra` and `payload` are initialised, and the
/// core neither frees nor moves the allocation.
#[repr(C)]
pub(crate) struct Object<C: IbObject, P> {
    core: Opaque<C>,
    extra: MaybeUninit<C::Private>,
    payload: MaybeUninit<P>,
}

// SAFETY: The C part is the core's to lock; the rest is `Send`.
unsafe impl<C: IbObject, P: Send> Send for Object<C, P> {}
// SAFETY: The C part is the core's to lock; the rest is `Sync`.
unsafe impl<C: IbObject, P: Sync> Sync for Object<C, P> {}

impl<C: IbObject, P> Object<C, P> {
    /// The size the core is to allocate.
    pub(super) const SIZE: usize = {
        assert!(offset_of!(Self, core) == 0);
        assert!(align_of::<Self>() <= CORE_ALIGN);
        size_of::<Self>()
    };

    /// What this layer keeps.
    pub(super) fn extra(&self) -> &C::Private {
        // SAFETY: By the type invariant it is initialised.
        unsafe { self.extra.assume_init_ref() }
    }

    /// Views the C object as the whole.
    ///
    /// # Safety
    ///
    /// `raw` is the first field of an `Object<C, P>` on which [`Object::init`] was called, and
    /// which is neither cleared nor freed during `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(raw: *mut C) -> &'a Self {
        // SAFETY: The caller says so; `core` is at offset zero, as `SIZE` asserts.
        unsafe { &*raw.cast() }
    }

    /// Initialises the parts behind the C object.
    ///
    /// # Safety
    ///
    /// `raw` is the start of [`Object::SIZE`] writable bytes whose C part is initialised.
    pub(super) unsafe fn init(raw: *mut C, extra: C::Private, payload: P) {
        let this = raw.cast::<Self>();
        // SAFETY: The caller says that the bytes are writable.
        unsafe {
            (&raw mut (*this).extra).write(MaybeUninit::new(extra));
            (&raw mut (*this).payload).write(MaybeUninit::new(payload));
        }
    }

    /// Drops the parts behind the C object, the payload first.
    ///
    /// # Safety
    ///
    /// [`Object::init`] was called on `raw`, and no reference to the object is left.
    pub(super) unsafe fn clear(raw: *mut C) {
        let this = raw.cast::<Self>();
        // SAFETY: The caller says that both are initialised and that nobody else looks at them.
        unsafe {
            (*this).payload.assume_init_drop();
            (*this).extra.assume_init_drop();
        }
    }
}

impl<C: IbObject, P> Deref for Object<C, P> {
    type Target = P;

    #[inline]
    fn deref(&self) -> &P {
        // SAFETY: By the type invariant it is initialised.
        unsafe { self.payload.assume_init_ref() }
    }
}

impl<T: Operations> OperationsVTable<T> {
    /// C: `ib_device_ops.alloc_pd`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `pd` is a new object of [`Object::SIZE`] bytes.
    pub(super) unsafe extern "C" fn alloc_pd(
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            kernel_only(udata)?;
            // SAFETY: The core sets the device of an object before it asks for its creation.
            let device = unsafe { Device::<T>::from_raw((*pd).device) };
            let payload = T::alloc_pd(device)?;
            // SAFETY: The core allocated `pd` in the size of a `Pd<T>`.
            unsafe { Pd::<T>::init(pd, (), payload) };
            Ok(0)
        })
    }

    /// C: `ib_device_ops.dealloc_pd`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `pd` was made by `alloc_pd`.
    pub(super) unsafe extern "C" fn dealloc_pd(
        pd: *mut bindings::ib_pd,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: The core destroys an object once, when nothing uses it.
        unsafe { Pd::<T>::clear(pd) };
        0
    }
}
