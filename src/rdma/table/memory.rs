// SPDX-License-Identifier: GPL-2.0

//! The operations of memory regions, under their names in `struct ib_device_ops`.

use super::OperationsVTable;
use crate::{
    rdma::{
        mr::{
            self,
            Mr,
            MrOperations, //
        },
        prelude::*,
        trampoline::Passed,
        user::{
            memory::{
                checked_access,
                Umem, //
            },
            share::UserData, //
        },
        values::access::AccessFlags, //
    },
    sys::span::AllMemory, //
};

impl<T: Operations> OperationsVTable<T> {
    /// Serves `ib_alloc_pd()` with `IB_PD_UNSAFE_GLOBAL_RKEY`. May sleep.
    pub(super) fn get_dma_mr(pd: &Pd<T>, access: c_int) -> Result<*mut bindings::ib_mr> {
        // SAFETY: The core calls this only for a consumer that asked for a global key, and that
        // answers for the memory that its peers name by it.
        let memory = unsafe { AllMemory::new() };
        mr::create::<T>(mr::MapLimit::NOTHING, || {
            T::Mr::get_dma(pd, AccessFlags::from_c(access), memory)
        })
    }

    /// Serves `ib_alloc_mr()`. May sleep. `EOPNOTSUPP` for kinds other than `IB_MR_TYPE_MEM_REG`
    /// and `IB_MR_TYPE_SG_GAPS`.
    pub(super) fn alloc_mr(
        pd: &Pd<T>,
        kind: bindings::ib_mr_type,
        max_entries: u32,
    ) -> Result<*mut bindings::ib_mr> {
        let limit = mr::MapLimit::from_c(kind, max_entries)?;
        mr::create::<T>(limit, || T::Mr::alloc(pd, max_entries))
    }

    /// Serves `ibv_reg_mr()`: pins memory of the current program until `dereg_mr`. May sleep.
    /// `EOPNOTSUPP` for a DMA handle. Other errors as of [`checked_access`] and [`Umem::pin`].
    pub(super) fn reg_user_mr(
        pd: &Pd<T>,
        start: u64,
        length: u64,
        iova: u64,
        access: c_int,
        dmah: Passed<*mut bindings::ib_dmah>,
        _data: UserData,
    ) -> Result<*mut bindings::ib_mr> {
        if !dmah.get().is_null() {
            return Err(EOPNOTSUPP);
        }
        let rights = checked_access(access)?;
        // SAFETY: The device of a domain is live, and has no DMA.
        let umem = unsafe { Umem::pin((*pd.as_raw()).device, start, length, access) }?;
        mr::create_user::<T>(umem, |pieces| T::Mr::reg_user(pd, rights, iova, pieces))
    }

    /// Serves `ib_map_mr_sg()`: stages a mapping for the next registration, and returns the number
    /// of whole entries taken. Any context.
    pub(super) fn map_mr_sg(
        mr: &Mr<T>,
        list: Passed<*mut bindings::scatterlist>,
        count: c_int,
        offset: Passed<*mut c_uint>,
    ) -> Result<c_int> {
        // SAFETY: The consumer passes a mapped list of `count` entries, whose memory it keeps until
        // the registration ends; `offset` is null or the consumer's.
        unsafe {
            mr::map::<T>(
                mr,
                list.get(),
                count,
                offset.get().cast::<Unaligned<c_uint>>().as_mut(),
            )
        }
    }

    /// Serves `ib_dereg_mr()`: the memory is not accessed after the return. Never fails. May sleep.
    pub(super) fn dereg_mr(mr: OwnedObject<bindings::ib_mr, T::Mr>, _data: UserData) -> Result {
        mr.dereg();
        mr::free(mr);
        Ok(())
    }
}
