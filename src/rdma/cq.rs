// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::WcWriter,
    device::Device,
    object::{
        IbObject,
        Object, //
    },
    table::OperationsVTable,
    upcall::{
        CqUpcall,
        UpcallTarget, //
    },
    Operations, //
};
use crate::bindings;

impl IbObject for bindings::ib_cq {
    type Private = Arc<UpcallTarget<bindings::ib_cq>>;
}

/// A completion queue with the provider's payload.
pub(crate) type Cq<T> = Object<bindings::ib_cq, <T as Operations>::Cq>;

/// What a new completion queue is to be. C: `struct ib_cq_init_attr`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CqInit {
    /// Entries asked for.
    pub(crate) entries: u32,
    /// Which completion vector, below the device's number of them.
    pub(crate) comp_vector: u32,
    /// The core polls it, from softirq or a work queue: the upcall for a completion only schedules
    /// that, and may be made in any context, under any lock. C: `ib_alloc_cq()`.
    pub(crate) polled: bool,
}

/// A new completion queue.
pub(crate) struct CqCreated<P> {
    /// What stands behind it.
    pub(crate) payload: P,
    /// Entries granted, at least those asked for.
    pub(crate) entries: u32,
}

/// What to arm a queue for. C: `enum ib_cq_notify_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notify {
    /// Only solicited completions and errors, not the next of any kind.
    pub(crate) solicited_only: bool,
    /// Tell whether entries are pending.
    pub(crate) report_missed: bool,
}

impl Notify {
    fn from_c(flags: bindings::ib_cq_notify_flags) -> Self {
        let kind = flags & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK;
        Self {
            solicited_only: kind == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED,
            report_missed: flags & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0,
        }
    }
}

impl<T: Operations> OperationsVTable<T> {
    /// C: `ib_device_ops.create_cq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `cq` is a new object of [`Object::SIZE`] bytes, `attr` is valid.
    pub(super) unsafe extern "C" fn create_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        attrs: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core passes a valid `attr`.
            let attr = unsafe { &*attr };
            if !attrs.is_null() || attr.flags != 0 {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: The core passes a queue of its own, and has set how it polls it. The first is
            // there if the core polls it at all.
            let (wc, poll) = unsafe { ((*cq).wc, (*cq).poll_ctx) };
            let init = CqInit {
                entries: attr.cqe,
                comp_vector: attr.comp_vector,
                polled: !wc.is_null() && poll != bindings::ib_poll_context_IB_POLL_DIRECT,
            };
            // SAFETY: The core sets the device of an object before it asks for its creation.
            let device = unsafe { Device::<T>::from_raw((*cq).device) };
            // SAFETY: `pre_destroy_cq` closes it; on an error below no handle was kept, or it is
            // closed here.
            let live = unsafe { UpcallTarget::open(cq) }?;
            let created = T::create_cq(device, &init, CqUpcall(live.clone()))
                .inspect_err(|_| live.close())?;
            // CAST: A number of entries, below `i32::MAX` by the provider's own limit.
            // SAFETY: The core allocated `cq` in the size of a `Cq<T>`.
            unsafe {
                (*cq).cqe = created.entries as c_int;
                Cq::<T>::init(cq, live, created.payload);
            }
            Ok(0)
        })
    }

    /// C: `ib_device_ops.modify_cq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `cq` was made by `create_cq`.
    pub(super) unsafe extern "C" fn modify_cq(
        cq: *mut bindings::ib_cq,
        count: u16,
        period_us: u16,
    ) -> c_int {
        // SAFETY: The caller modifies a live queue.
        let this = unsafe { Cq::<T>::from_raw(cq) };
        from_result(|| T::modify_cq(this, count, period_us).map(|()| 0))
    }

    /// C: `ib_device_ops.pre_destroy_cq`. `ib_free_cq()` ends its own polling next, which a call
    /// to the handler would start again.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `cq` was made by `create_cq`.
    pub(super) unsafe extern "C" fn pre_destroy_cq(cq: *mut bindings::ib_cq) -> c_int {
        // SAFETY: The queue is live until `post_destroy_cq`.
        let this = unsafe { Cq::<T>::from_raw(cq) };
        T::pre_destroy_cq(this);
        this.extra().close();
        0
    }

    /// C: `ib_device_ops.post_destroy_cq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `pre_destroy_cq` was called on `cq`, and nobody uses it any more.
    pub(super) unsafe extern "C" fn post_destroy_cq(cq: *mut bindings::ib_cq) {
        // SAFETY: The queue is live until `clear`.
        let this = unsafe { Cq::<T>::from_raw(cq) };
        T::destroy_cq(this);
        // SAFETY: The core destroys an object once, when nothing uses it.
        unsafe { Cq::<T>::clear(cq) };
    }

    /// C: `ib_device_ops.destroy_cq`. Of a queue that the core does not poll.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `cq` was made by `create_cq`.
    pub(super) unsafe extern "C" fn destroy_cq(
        cq: *mut bindings::ib_cq,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: The caller destroys a queue once, when nothing uses it.
        unsafe {
            Self::pre_destroy_cq(cq);
            Self::post_destroy_cq(cq);
        }
        0
    }

    /// C: `ib_device_ops.poll_cq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `wc` has room for `room` entries.
    pub(super) unsafe extern "C" fn poll_cq(
        cq: *mut bindings::ib_cq,
        room: c_int,
        wc: *mut bindings::ib_wc,
    ) -> c_int {
        // SAFETY: The consumer polls a live queue.
        let this = unsafe { Cq::<T>::from_raw(cq) };
        // SAFETY: The consumer says that `wc` has that room.
        let mut out = unsafe { WcWriter::new(wc, room) };
        match T::poll_cq(this, &mut out) {
            Ok(()) => out.written(),
            Err(e) => e.to_errno(),
        }
    }

    /// C: `ib_device_ops.req_notify_cq`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn req_notify_cq(
        cq: *mut bindings::ib_cq,
        flags: bindings::ib_cq_notify_flags,
    ) -> c_int {
        // SAFETY: The consumer arms a live queue.
        let this = unsafe { Cq::<T>::from_raw(cq) };
        match T::req_notify_cq(this, Notify::from_c(flags)) {
            Ok(missed) => c_int::from(missed),
            Err(e) => e.to_errno(),
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_cq)]
mod tests {
    use super::*;

    #[test]
    fn next_completion_covers_solicited_ones() {
        let both = bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK;
        let next = bindings::ib_cq_notify_flags_IB_CQ_NEXT_COMP;
        let solicited = bindings::ib_cq_notify_flags_IB_CQ_SOLICITED;
        let missed = bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS;
        assert!(!Notify::from_c(both).solicited_only);
        assert!(!Notify::from_c(next).solicited_only);
        assert!(Notify::from_c(solicited).solicited_only);
        assert!(!Notify::from_c(solicited).report_missed);
        assert!(Notify::from_c(solicited | missed).report_missed);
    }
}
