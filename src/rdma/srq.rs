// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.

use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};

use super::{
    object::{
        IbObject,
        Object,
        Pd, //
    },
    recv::RecvChain,
    table::{
        kernel_only,
        OperationsVTable, //
    },
    types::{
        SrqAttributes,
        SrqChange, //
    },
    upcall::{
        SrqUpcall,
        UpcallTarget, //
    },
    Operations, //
};
use crate::bindings;

impl IbObject for bindings::ib_srq {
    type Private = Arc<UpcallTarget<bindings::ib_srq>>;
}

/// A shared receive queue with the provider's payload.
pub(crate) type Srq<T> = Object<bindings::ib_srq, <T as Operations>::Srq>;

/// A new shared receive queue.
pub(crate) struct SrqCreated<P> {
    /// What stands behind it.
    pub(crate) payload: P,
    /// Sizes granted, none smaller than asked for.
    pub(crate) granted: SrqAttributes,
}

fn from_c(attr: &bindings::ib_srq_attr) -> SrqAttributes {
    SrqAttributes {
        max_wr: attr.max_wr,
        max_sge: attr.max_sge,
        limit: attr.srq_limit,
    }
}

fn to_c(attributes: &SrqAttributes) -> bindings::ib_srq_attr {
    bindings::ib_srq_attr {
        max_wr: attributes.max_wr,
        max_sge: attributes.max_sge,
        srq_limit: attributes.limit,
    }
}

fn change_from_c(attr: &bindings::ib_srq_attr, mask: bindings::ib_srq_attr_mask) -> SrqChange {
    let has = |bit: bindings::ib_srq_attr_mask| mask & bit != 0;
    SrqChange {
        max_wr: has(bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR).then_some(attr.max_wr),
        limit: has(bindings::ib_srq_attr_mask_IB_SRQ_LIMIT).then_some(attr.srq_limit),
    }
}

impl<T: Operations> OperationsVTable<T> {
    /// C: `ib_device_ops.create_srq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `srq` is a new object of [`Object::SIZE`] bytes.
    pub(super) unsafe extern "C" fn create_srq(
        srq: *mut bindings::ib_srq,
        init: *mut bindings::ib_srq_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            kernel_only(udata)?;
            // SAFETY: The core passes valid attributes, to be updated.
            let init = unsafe { &mut *init };
            if init.srq_type != bindings::ib_srq_type_IB_SRQT_BASIC {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: The core sets the domain of an object before it asks for its creation.
            let pd = unsafe { Pd::<T>::from_raw((*srq).pd) };
            // SAFETY: `destroy_srq` closes it; on an error it is closed here.
            let live = unsafe { UpcallTarget::open(srq) }?;
            let created = T::create_srq(pd, &from_c(&init.attr), SrqUpcall(live.clone()))
                .inspect_err(|_| live.close())?;
            init.attr = to_c(&created.granted);
            // SAFETY: The core allocated `srq` in the size of a `Srq<T>`.
            unsafe { Srq::<T>::init(srq, live, created.payload) };
            Ok(0)
        })
    }

    /// C: `ib_device_ops.destroy_srq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn destroy_srq(
        srq: *mut bindings::ib_srq,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: The queue is live until `clear`.
        let this = unsafe { Srq::<T>::from_raw(srq) };
        T::destroy_srq(this);
        this.extra().close();
        // SAFETY: The core destroys an object once, when nothing uses it.
        unsafe { Srq::<T>::clear(srq) };
        0
    }

    /// C: `ib_device_ops.modify_srq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn modify_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
        mask: bindings::ib_srq_attr_mask,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            kernel_only(udata)?;
            // SAFETY: The caller passes a live queue and valid attributes.
            let (this, attr) = unsafe { (Srq::<T>::from_raw(srq), &*attr) };
            T::modify_srq(this, &change_from_c(attr, mask))?;
            Ok(0)
        })
    }

    /// C: `ib_device_ops.query_srq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn query_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
    ) -> c_int {
        // SAFETY: The caller passes a live queue.
        let now = T::query_srq(unsafe { Srq::<T>::from_raw(srq) });
        // SAFETY: The caller passes a structure to fill in.
        unsafe { *attr = to_c(&now) };
        0
    }

    /// C: `ib_device_ops.post_srq_recv`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `wr` starts a chain of valid requests.
    pub(super) unsafe extern "C" fn post_srq_recv(
        srq: *mut bindings::ib_srq,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: The consumer posts to a live queue.
        let this = unsafe { Srq::<T>::from_raw(srq) };
        // SAFETY: The consumer passes a chain of valid requests.
        let mut chain = unsafe { RecvChain::new(wr) };
        let result = T::post_srq_recv(this, &mut chain);
        // SAFETY: The core passes a place to write to.
        unsafe { chain.report(result, bad_wr) }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_srq)]
mod tests {
    use super::*;

    #[test]
    fn change_holds_only_what_the_mask_names() {
        let attr = to_c(&SrqAttributes {
            max_wr: 5,
            max_sge: 6,
            limit: 7,
        });
        let limit = change_from_c(&attr, bindings::ib_srq_attr_mask_IB_SRQ_LIMIT);
        assert!(limit.limit == Some(7) && limit.max_wr.is_none());
        let size = change_from_c(&attr, bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR);
        assert!(size.max_wr == Some(5) && size.limit.is_none());
    }
}
