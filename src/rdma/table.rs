// SPDX-License-Identifier: GPL-2.0

//! The operations table handed to ib_core, and the trampolines in it.
//!
//! [`trampoline`] turns an operation, a function over safe types, into one that C calls.

mod cm;
mod memory;
mod queues;

use kernel::module::this_module;

use super::{
    cq::Cq,
    device::{
        copy_text,
        DeviceOperations,
        PORT, //
    },
    object::PdOperations,
    port,
    prelude::*,
    qp::Qp,
    srq::Srq,
    trampoline::{
        trampoline,
        Passed, //
    },
    user::{
        self,
        share::{
            self,
            UserData, //
        }, //
    }, //
};
use crate::sys::unaligned::Room;

/// The trampolines from ib_core into a provider `T`.
///
/// # Safety
///
/// All trampolines share this contract. Their caller is ib_core, or a consumer through the inline
/// functions of `ib_verbs.h`, on a device that was set up with this table. So every object that
/// occurs was made by the create trampoline of its type and is not destroyed before the call
/// returns; a create trampoline gets a new object of `Object::SIZE` bytes whose device or domain is
/// set, and a destroy trampoline an object that has no other user and that it gets once. Pointers
/// to parameters are valid during the call, in which no other code changes the parameters; a
/// consumer's structures need not be aligned. Trampolines alone call the operations, which are
/// visible in this module and below it for that; but an operation may be a part of another one.
pub(super) struct OperationsVTable<T: Operations>(PhantomData<T>);

/// Puts each operation in the place of its name.
macro_rules! operations {
    ($($name:ident)*) => {
        bindings::ib_device_ops {
            // SAFETY: The place is that of the operation of this name, which keeps only the
            // arguments that it owns.
            $($name: unsafe { trampoline(Self::$name) },)*
            ..pin_init::zeroed()
        }
    };
}

impl<T: Operations> OperationsVTable<T> {
    const OPERATIONS: bindings::ib_device_ops = operations! {
        query_device get_dev_fw_str query_port query_gid query_pkey get_port_immutable
        alloc_hw_port_stats get_hw_stats dealloc_driver alloc_ucontext dealloc_ucontext
        disassociate_ucontext mmap mmap_free alloc_pd dealloc_pd create_cq modify_cq
        resize_user_cq pre_destroy_cq post_destroy_cq destroy_cq poll_cq req_notify_cq
        create_qp modify_qp query_qp destroy_qp fill_res_qp_entry fill_res_cq_entry
        post_send post_recv create_srq modify_srq query_srq destroy_srq post_srq_recv
        get_dma_mr alloc_mr reg_user_mr map_mr_sg dereg_mr iw_add_ref iw_rem_ref
        iw_get_qp iw_connect iw_accept iw_reject iw_create_listen iw_destroy_listen
    };

    /// The table of devices that serve programs; ib_core copies it into each.
    const USER_TABLE: bindings::ib_device_ops = bindings::ib_device_ops {
        owner: this_module::<crate::LocalModule>().as_ptr(),
        driver_id: user::DRIVER_ID,
        uverbs_abi_ver: user::ABI_VERSION,
        size_ib_ucontext: size_of::<bindings::ib_ucontext>(),
        size_ib_pd: Pd::<T>::SIZE,
        size_ib_cq: Cq::<T>::SIZE,
        size_ib_qp: Qp::<T>::SIZE,
        size_ib_srq: Srq::<T>::SIZE,
        ..Self::OPERATIONS
    };

    /// The table of all other devices: without contexts uverbs leaves a device alone.
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

/// The operations of devices and domains, under their names in `struct ib_device_ops`.
impl<T: Operations> OperationsVTable<T> {
    fn query_device(
        device: &Device<T>,
        attr: &mut Unaligned<bindings::ib_device_attr>,
        _data: UserData,
    ) -> Result {
        attr.update(|attr| {
            device.attributes().fill(attr);
            attr.sys_image_guid = u64::from_ne_bytes(device.guid());
        });
        Ok(())
    }

    fn get_dev_fw_str(_device: &Device<T>, text: Passed<*mut c_char>) {
        let mut version = [0u8; port::FIRMWARE_SIZE];
        copy_text(&mut version, T::FIRMWARE);
        // SAFETY: The core passes room for `FIRMWARE_SIZE` bytes; any byte is valid as a character.
        unsafe {
            text.get()
                .cast::<[u8; port::FIRMWARE_SIZE]>()
                .write(version)
        };
    }

    fn query_port(
        device: &Device<T>,
        _port: u32,
        attr: &mut Unaligned<bindings::ib_port_attr>,
    ) -> Result {
        let netdev = device.netdev().ok_or(ENODEV)?;
        attr.update(|attr| port::describe(attr, &netdev, device.is_port_down(), T::MAX_MESSAGE));
        Ok(())
    }

    fn query_gid(
        device: &Device<T>,
        _port: u32,
        _index: c_int,
        gid: Room<'_, bindings::ib_gid>,
    ) -> Result {
        gid.set(bindings::ib_gid { raw: device.gid() });
        Ok(())
    }

    fn query_pkey(_device: &Device<T>, _port: u32, index: u16, pkey: Room<'_, u16>) -> Result {
        if index != 0 {
            return Err(EINVAL);
        }
        pkey.set(port::PKEY);
        Ok(())
    }

    fn get_port_immutable(
        _device: &Device<T>,
        _port: u32,
        immutable: &mut Unaligned<bindings::ib_port_immutable>,
    ) -> Result {
        immutable.update(port::describe_immutable);
        Ok(())
    }

    fn alloc_hw_port_stats(_device: &Device<T>, _port: u32) -> *mut bindings::rdma_hw_stats {
        port::alloc_stats::<T>()
    }

    fn get_hw_stats(
        device: &Device<T>,
        stats: Passed<*mut bindings::rdma_hw_stats>,
        port: u32,
        _index: c_int,
    ) -> Result<c_int> {
        if port != PORT {
            return Err(EINVAL);
        }
        // SAFETY: `alloc_hw_port_stats` made the values, and the core holds their lock.
        device.read_counters(unsafe { port::stats::<T>(stats.get()) });
        // CAST: At most `MAX_COUNTERS`.
        Ok(T::COUNTERS.len() as c_int)
    }

    fn dealloc_driver(device: OwnedObject<bindings::ib_device, T::Device>) {
        device.private().end();
        user::forget(device.as_raw(), T::DRIVER_ID);
        drop(device);
        // The flush makes it unlikely that the core frees an entry of the device's GIDs after the
        // table.
        // SAFETY: The core calls this in process context, and not from the queue of that work.
        unsafe { bindings::ndk_gid_work_flush() };
    }

    /// Accepts a context, which has no payload.
    fn alloc_ucontext(_context: Passed<*mut bindings::ib_ucontext>, _data: UserData) -> Result {
        Ok(())
    }

    fn dealloc_ucontext(_context: Passed<*mut bindings::ib_ucontext>) {}

    /// No effect. Its presence lets a device move between network namespaces, and go while programs
    /// have it open.
    fn disassociate_ucontext(_context: Passed<*mut bindings::ib_ucontext>) {}

    fn mmap(
        context: Passed<*mut bindings::ib_ucontext>,
        area: Passed<*mut bindings::vm_area_struct>,
    ) -> Result {
        // SAFETY: The core passes both for a call of the current program.
        unsafe { share::map(context.get(), area.get()) }
    }

    fn mmap_free(entry: Passed<*mut bindings::rdma_user_mmap_entry>) {
        // SAFETY: The core has given the last reference up, and all entries are of one kind.
        unsafe { share::free(entry.get()) };
    }

    fn alloc_pd(pd: NewObject<bindings::ib_pd, T::Pd>, _data: UserData) -> Result {
        // SAFETY: The core sets the device of an object before it asks for its creation.
        let device = unsafe { Device::<T>::from_raw(pd.device) };
        let payload = T::Pd::alloc(device, pd.uobject.is_null())?;
        pd.init((), payload);
        Ok(())
    }

    fn dealloc_pd(pd: OwnedObject<bindings::ib_pd, T::Pd>, _data: UserData) -> Result {
        pd.dealloc();
        drop(pd);
        Ok(())
    }
}
