// SPDX-License-Identifier: GPL-2.0

//! Provider data behind the objects of ib_core.
//!
//! The core allocates (zeroed) and frees `ib_device`, `ib_pd`, `ib_cq`, `ib_qp` and `ib_srq` in the
//! size that the operations table asks for. An [`Object`] is such an allocation: the C structure
//! first, then this layer's private data, then the provider's payload. Create initialises the
//! latter two ([`NewObject`]), destroy drops them ([`OwnedObject`]).
//!
//! C: `DECLARE_RDMA_OBJ_SIZE`, `INIT_RDMA_OBJ_SIZE`.

use core::{
    mem::{
        offset_of,
        MaybeUninit, //
    },
    ops::{
        Deref,
        DerefMut, //
    }, //
};

use kernel::types::Opaque;

use super::prelude::*;

/// The alignment that any allocation of the core has.
const CORE_ALIGN: usize = 8;

/// A C type with private data of this layer.
pub(crate) trait IbObject {
    /// The private data; dropped with the payload.
    type Private: Send + Sync;
}

impl IbObject for bindings::ib_pd {
    type Private = ();
}

/// A protection domain with the provider's payload.
pub(crate) type Pd<T> = Object<bindings::ib_pd, <T as Operations>::Pd>;

/// C objects that uverbs may make for a program.
pub(super) trait UserObject {
    /// Returns true if a program made the object.
    fn is_of_program(&self) -> bool;
}

macro_rules! of_program {
    ($($type:ident),*) => {$(
        impl<P> UserObject for Object<bindings::$type, P> {
            #[inline]
            fn is_of_program(&self) -> bool {
                // SAFETY: The core sets the pointer before it asks for the object's creation, and
                // does not change it.
                !unsafe { (*self.as_raw()).uobject }.is_null()
            }
        }
    )*};
}

of_program!(ib_qp, ib_srq);

/// The operations of a protection domain.
pub(crate) trait PdOperations<T: Operations>: Sized + Send + Sync + 'static {
    /// Makes a protection domain; an untrusted domain is a program's.
    fn alloc(device: &Device<T>, is_trusted: bool) -> Result<Self>;

    /// Ends a protection domain that has no objects any more. Process context.
    fn dealloc(&self) {}
}

/// A C object `C` with the provider's payload `P`, to which it dereferences.
///
/// # Invariants
///
/// As long as a reference to an `Object` exists, `private` and `payload` are initialised, and the
/// core neither frees nor moves the allocation.
#[repr(C)]
pub(crate) struct Object<C: IbObject, P> {
    core: Opaque<C>,
    private: MaybeUninit<C::Private>,
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

    /// The C object.
    pub(super) fn as_raw(&self) -> *mut C {
        self.core.get()
    }

    /// The private data of this layer.
    pub(super) fn private(&self) -> &C::Private {
        // SAFETY: By the type invariant it is initialised.
        unsafe { self.private.assume_init_ref() }
    }

    /// Views the object with the C part `raw`.
    ///
    /// # Safety
    ///
    /// `raw` is the first field of an `Object<C, P>` on which [`NewObject::init`] was called, and
    /// which is neither cleared nor freed during `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(raw: *mut C) -> &'a Self {
        // SAFETY: The caller says that `raw` is the first field of an initialised object; `core` is
        // at offset zero, as `SIZE` asserts.
        unsafe { &*raw.cast() }
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

/// An object that is being made; dereferences to its C part.
///
/// # Invariants
///
/// The start of [`Object::SIZE`] writable bytes that no other code uses, with an initialised C
/// part.
pub(super) struct NewObject<C, P>(*mut C, PhantomData<P>);

impl<C: IbObject, P> NewObject<C, P> {
    /// # Safety
    ///
    /// `raw` is the start of [`Object::SIZE`] bytes as the invariant says.
    pub(super) unsafe fn from_raw(raw: *mut C) -> Self {
        // INVARIANT: by the safety requirements.
        Self(raw, PhantomData)
    }

    /// The C object.
    pub(super) fn as_raw(&self) -> *mut C {
        self.0
    }

    /// Initialises the parts behind the C object.
    pub(super) fn init(self, private: C::Private, payload: P) {
        let this = self.0.cast::<Object<C, P>>();
        // SAFETY: By the invariant the bytes are writable.
        unsafe {
            (&raw mut (*this).private).write(MaybeUninit::new(private));
            (&raw mut (*this).payload).write(MaybeUninit::new(payload));
        }
    }
}

impl<C, P> Deref for NewObject<C, P> {
    type Target = C;

    fn deref(&self) -> &C {
        // SAFETY: By the invariant the C part is initialised and no other code uses it.
        unsafe { &*self.0 }
    }
}

impl<C, P> DerefMut for NewObject<C, P> {
    fn deref_mut(&mut self) -> &mut C {
        // SAFETY: By the invariant the C part is initialised and no other code uses it.
        unsafe { &mut *self.0 }
    }
}

/// An object in the call that destroys it. Dropping this drops the parts behind the C object, the
/// payload first.
///
/// # Invariants
///
/// The object was initialised, and no other code uses it.
pub(super) struct OwnedObject<C: IbObject, P>(*mut C, PhantomData<P>);

impl<C: IbObject, P> OwnedObject<C, P> {
    /// # Safety
    ///
    /// [`NewObject::init`] was called on `raw`, and no reference to the object is left.
    pub(super) unsafe fn from_raw(raw: *mut C) -> Self {
        // INVARIANT: by the safety requirements.
        Self(raw, PhantomData)
    }
}

impl<C: IbObject, P> Deref for OwnedObject<C, P> {
    type Target = Object<C, P>;

    fn deref(&self) -> &Object<C, P> {
        // SAFETY: By the invariant the object is initialised, and is so until `drop`.
        unsafe { Object::from_raw(self.0) }
    }
}

impl<C: IbObject, P> Drop for OwnedObject<C, P> {
    fn drop(&mut self) {
        let this = self.0.cast::<Object<C, P>>();
        // SAFETY: By the invariant both are initialised, and no other code uses them.
        unsafe {
            (*this).payload.assume_init_drop();
            (*this).private.assume_init_drop();
        }
    }
}
