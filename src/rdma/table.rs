// SPDX-License-Identifier: GPL-2.0

//! The operations table handed to ib_core.
//!
//! The trampolines are beside the types they serve; here is the list of them.

use core::marker::PhantomData;

use kernel::{
    module::this_module,
    prelude::*, //
};

use super::{
    cq::Cq,
    object::Pd,
    qp::Qp,
    srq::Srq,
    Operations, //
};
use crate::bindings;

/// The trampolines from ib_core into a provider `T`.
///
/// # Safety
///
/// This contract is shared by all trampolines. Their caller is ib_core, or a consumer through the
/// inline functions of `ib_verbs.h`, on a device that was set up with this table. So every
/// `ib_device` that occurs is that of a [`super::Device<T>`] whose state is initialised, every
/// other object was made by the create trampoline of its type and is not destroyed before the
/// call returns, and pointers to parameters are valid during the call.
pub(super) struct OperationsVTable<T: Operations>(PhantomData<T>);

/// Refuses callers from user space. `EOPNOTSUPP`.
pub(super) fn kernel_only(udata: *mut bindings::ib_udata) -> Result {
    match udata.is_null() {
        true => Ok(()),
        false => Err(EOPNOTSUPP),
    }
}

impl<T: Operations> OperationsVTable<T> {
    /// The table; ib_core copies it into each device.
    pub(super) const TABLE: bindings::ib_device_ops = bindings::ib_device_ops {
        owner: this_module::<crate::LocalModule>().as_ptr(),
        driver_id: T::DRIVER_ID,

        query_device: Some(Self::query_device),
        get_dev_fw_str: Some(Self::get_dev_fw_str),
        query_port: Some(Self::query_port),
        query_gid: Some(Self::query_gid),
        query_pkey: Some(Self::query_pkey),
        get_port_immutable: Some(Self::get_port_immutable),
        alloc_hw_port_stats: Some(Self::alloc_hw_port_stats),
        get_hw_stats: Some(Self::get_hw_stats),
        dealloc_driver: Some(Self::dealloc_driver),
        disassociate_ucontext: Some(Self::disassociate_ucontext),

        alloc_pd: Some(Self::alloc_pd),
        dealloc_pd: Some(Self::dealloc_pd),

        create_cq: Some(Self::create_cq),
        modify_cq: Some(Self::modify_cq),
        pre_destroy_cq: Some(Self::pre_destroy_cq),
        post_destroy_cq: Some(Self::post_destroy_cq),
        destroy_cq: Some(Self::destroy_cq),
        poll_cq: Some(Self::poll_cq),
        req_notify_cq: Some(Self::req_notify_cq),

        create_qp: Some(Self::create_qp),
        modify_qp: Some(Self::modify_qp),
        query_qp: Some(Self::query_qp),
        destroy_qp: Some(Self::destroy_qp),
        post_send: Some(Self::post_send),
        post_recv: Some(Self::post_recv),

        create_srq: Some(Self::create_srq),
        modify_srq: Some(Self::modify_srq),
        query_srq: Some(Self::query_srq),
        destroy_srq: Some(Self::destroy_srq),
        post_srq_recv: Some(Self::post_srq_recv),

        get_dma_mr: Some(Self::get_dma_mr),
        alloc_mr: Some(Self::alloc_mr),
        reg_user_mr: Some(Self::reg_user_mr),
        map_mr_sg: Some(Self::map_mr_sg),
        dereg_mr: Some(Self::dereg_mr),

        iw_add_ref: Some(Self::iw_add_ref),
        iw_rem_ref: Some(Self::iw_rem_ref),
        iw_get_qp: Some(Self::iw_get_qp),
        iw_connect: Some(Self::iw_connect),
        iw_accept: Some(Self::iw_accept),
        iw_reject: Some(Self::iw_reject),
        iw_create_listen: Some(Self::iw_create_listen),
        iw_destroy_listen: Some(Self::iw_destroy_listen),

        size_ib_pd: Pd::<T>::SIZE,
        size_ib_cq: Cq::<T>::SIZE,
        size_ib_qp: Qp::<T>::SIZE,
        size_ib_srq: Srq::<T>::SIZE,

        ..pin_init::zeroed()
    };
}
