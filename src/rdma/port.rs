// SPDX-License-Identifier: GPL-2.0

//! Queries about a device and its only port, and its counters.

use core::{
    ptr,
    slice, //
};

use kernel::{
    error::from_result,
    ffi::{
        c_char,
        c_int, //
    },
    prelude::*, //
};

use super::{
    device::{
        copy_text,
        Device,
        PORT, //
    },
    table::{
        kernel_only,
        OperationsVTable, //
    },
    Operations, //
};
use crate::{
    bindings,
    sys::netdev::NetDev, //
};

/// The most counters a provider can have.
pub(crate) const MAX_COUNTERS: usize = 64;

/// How long the core may reuse counter values, in milliseconds.
const STATS_LIFESPAN_MS: usize = 10;

/// Bytes of the firmware's version with its terminating zero. C: `IB_FW_VERSION_NAME_MAX`.
const FIRMWARE_SIZE: usize = bindings::IB_FW_VERSION_NAME_MAX as usize;

/// The only partition key: the default partition, full member.
const PKEY: u16 = 0xffff;

/// What a port reports as its speed, whatever lies below: four lanes of 25 Gb/s.
const SPEED: u16 = bindings::ib_port_speed_IB_SPEED_EDR as u16;
const WIDTH: u8 = bindings::ib_port_width_IB_WIDTH_4X as u8;

/// `Disabled` and `LinkUp` of the physical state machine.
const PHYS_DOWN: u8 = bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_DISABLED as u8;
const PHYS_UP: u8 = bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_LINK_UP as u8;

/// The largest InfiniBand MTU that fits into `bytes`. C: `ib_mtu_int_to_enum()`.
fn mtu(bytes: u32) -> bindings::ib_mtu {
    match bytes {
        4096.. => bindings::ib_mtu_IB_MTU_4096,
        2048..4096 => bindings::ib_mtu_IB_MTU_2048,
        1024..2048 => bindings::ib_mtu_IB_MTU_1024,
        512..1024 => bindings::ib_mtu_IB_MTU_512,
        0..512 => bindings::ib_mtu_IB_MTU_256,
    }
}

/// Describes the port over `netdev`; `attr` is zeroed but for what the core filled in.
fn describe(attr: &mut bindings::ib_port_attr, netdev: &NetDev, max_message: u32) {
    (attr.state, attr.phys_state) = match netdev.is_up() {
        true => (bindings::ib_port_state_IB_PORT_ACTIVE, PHYS_UP),
        false => (bindings::ib_port_state_IB_PORT_DOWN, PHYS_DOWN),
    };
    attr.max_mtu = bindings::ib_mtu_IB_MTU_4096;
    attr.active_mtu = mtu(netdev.mtu());
    attr.gid_tbl_len = 1;
    attr.pkey_tbl_len = 1;
    attr.max_msg_sz = max_message;
    attr.active_speed = SPEED;
    attr.active_width = WIDTH;
}

impl<T: Operations> OperationsVTable<T> {
    /// The counters as the core wants them; the first `T::COUNTERS.len()` are in use.
    const DESCRIPTIONS: [bindings::rdma_stat_desc; MAX_COUNTERS] = {
        assert!(T::COUNTERS.len() <= MAX_COUNTERS);
        let mut all = [const {
            bindings::rdma_stat_desc {
                name: ptr::null(),
                flags: 0,
                priv_: ptr::null(),
            }
        }; MAX_COUNTERS];
        let mut i = 0;
        while i < T::COUNTERS.len() {
            all[i].name = kernel::str::as_char_ptr_in_const_context(T::COUNTERS[i]);
            i += 1;
        }
        all
    };

    /// C: `ib_device_ops.query_device`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn query_device(
        ib: *mut bindings::ib_device,
        attr: *mut bindings::ib_device_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            kernel_only(udata)?;
            // SAFETY: The core passes a device of ours.
            let device = unsafe { Device::<T>::from_raw(ib) };
            // SAFETY: The core passes attributes to fill in, which it initialised.
            let attr = unsafe { &mut *attr };
            T::attributes(device).fill(attr);
            attr.sys_image_guid = u64::from_ne_bytes(device.guid());
            Ok(0)
        })
    }

    /// C: `ib_device_ops.get_dev_fw_str`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `text` has room for `IB_FW_VERSION_NAME_MAX` bytes.
    pub(super) unsafe extern "C" fn get_dev_fw_str(
        _ib: *mut bindings::ib_device,
        text: *mut c_char,
    ) {
        // SAFETY: The core passes room for so many bytes; any byte will do as a character.
        let room = unsafe { slice::from_raw_parts_mut(text.cast::<u8>(), FIRMWARE_SIZE) };
        room.fill(0);
        copy_text(room, T::FIRMWARE);
    }

    /// C: `ib_device_ops.query_port`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn query_port(
        ib: *mut bindings::ib_device,
        _port: u32,
        attr: *mut bindings::ib_port_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core passes a device of ours.
            let device = unsafe { Device::<T>::from_raw(ib) };
            let netdev = device.netdev().ok_or(ENODEV)?;
            // SAFETY: The core passes attributes to fill in, which it zeroed.
            describe(unsafe { &mut *attr }, &netdev, T::MAX_MESSAGE);
            Ok(0)
        })
    }

    /// C: `ib_device_ops.query_gid`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn query_gid(
        ib: *mut bindings::ib_device,
        _port: u32,
        _index: c_int,
        gid: *mut bindings::ib_gid,
    ) -> c_int {
        // SAFETY: The core passes a device of ours.
        let device = unsafe { Device::<T>::from_raw(ib) };
        // SAFETY: The core passes an address to fill in.
        unsafe { (*gid).raw = device.gid() };
        0
    }

    /// C: `ib_device_ops.query_pkey`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn query_pkey(
        _ib: *mut bindings::ib_device,
        _port: u32,
        index: u16,
        pkey: *mut u16,
    ) -> c_int {
        if index != 0 {
            return EINVAL.to_errno();
        }
        // SAFETY: The core passes a key to fill in.
        unsafe { *pkey = PKEY };
        0
    }

    /// C: `ib_device_ops.get_port_immutable`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn get_port_immutable(
        _ib: *mut bindings::ib_device,
        _port: u32,
        immutable: *mut bindings::ib_port_immutable,
    ) -> c_int {
        // SAFETY: The core passes a structure to fill in, which it zeroed.
        let immutable = unsafe { &mut *immutable };
        immutable.gid_tbl_len = 1;
        immutable.pkey_tbl_len = 1;
        immutable.core_cap_flags =
            bindings::RDMA_CORE_CAP_PROT_IWARP | bindings::RDMA_CORE_CAP_IW_CM;
        0
    }

    /// C: `ib_device_ops.alloc_hw_port_stats`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn alloc_hw_port_stats(
        _ib: *mut bindings::ib_device,
        _port: u32,
    ) -> *mut bindings::rdma_hw_stats {
        let descriptions: &'static [bindings::rdma_stat_desc; MAX_COUNTERS] = &Self::DESCRIPTIONS;
        // CAST: At most `MAX_COUNTERS`.
        // SAFETY: The descriptions are static, and the first so many have a name.
        unsafe {
            bindings::rdma_alloc_hw_stats_struct(
                descriptions.as_ptr(),
                T::COUNTERS.len() as c_int,
                STATS_LIFESPAN_MS,
            )
        }
    }

    /// C: `ib_device_ops.get_hw_stats`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `stats` was made by `alloc_hw_port_stats`.
    pub(super) unsafe extern "C" fn get_hw_stats(
        ib: *mut bindings::ib_device,
        stats: *mut bindings::rdma_hw_stats,
        port: u32,
        _index: c_int,
    ) -> c_int {
        if port != PORT {
            return EINVAL.to_errno();
        }
        // SAFETY: The core passes a device of ours.
        let device = unsafe { Device::<T>::from_raw(ib) };
        let count = T::COUNTERS.len();
        // SAFETY: `alloc_hw_port_stats` asked for so many values, and the core holds their lock.
        let values =
            unsafe { slice::from_raw_parts_mut((&raw mut (*stats).value).cast::<u64>(), count) };
        T::read_counters(device, values);
        // CAST: At most `MAX_COUNTERS`.
        count as c_int
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_port)]
mod tests {
    use super::*;

    #[test]
    fn mtu_is_rounded_down() {
        for (bytes, expected) in [
            (0, bindings::ib_mtu_IB_MTU_256),
            (511, bindings::ib_mtu_IB_MTU_256),
            (512, bindings::ib_mtu_IB_MTU_512),
            (1500, bindings::ib_mtu_IB_MTU_1024),
            (4095, bindings::ib_mtu_IB_MTU_2048),
            (65536, bindings::ib_mtu_IB_MTU_4096),
        ] {
            assert_eq!(mtu(bytes), expected);
        }
    }

    #[test]
    fn port_of_a_running_device_is_active() -> Result {
        let mut attr: bindings::ib_port_attr = pin_init::zeroed();
        let lo = NetDev::loopback()?;
        describe(&mut attr, &lo, 1 << 30);
        let active = attr.state == bindings::ib_port_state_IB_PORT_ACTIVE;
        assert_eq!(active, lo.is_up());
        assert_eq!(attr.pkey_tbl_len, 1);
        Ok(())
    }
}
