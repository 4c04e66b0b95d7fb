// SPDX-License-Identifier: GPL-2.0

//! The attributes of a device's only port, and its counters.

use core::{
    ptr,
    slice, //
};

use super::prelude::*;
use crate::sys::netdev::NetDev;

/// The most counters a provider can have.
pub(crate) const MAX_COUNTERS: usize = 64;

/// The time for which the core may reuse counter values, in milliseconds.
const STATS_LIFESPAN_MS: usize = 10;

/// Bytes of the firmware's version with its terminating zero. C: `IB_FW_VERSION_NAME_MAX`.
pub(super) const FIRMWARE_SIZE: usize = bindings::IB_FW_VERSION_NAME_MAX as usize;

/// The only partition key: the default partition, full member.
pub(super) const PKEY: u16 = 0xffff;

/// The speed that a port reports, independent of the network device: four lanes of 25 Gb/s.
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

/// Writes the attributes that never change; all others are zero.
pub(super) fn describe_immutable(immutable: &mut bindings::ib_port_immutable) {
    immutable.gid_tbl_len = 1;
    immutable.pkey_tbl_len = 1;
    immutable.core_cap_flags = bindings::RDMA_CORE_CAP_PROT_IWARP | bindings::RDMA_CORE_CAP_IW_CM;
}

/// Describes the port over `netdev`; `attr` is zeroed but for the fields that the core filled in.
pub(super) fn describe(
    attr: &mut bindings::ib_port_attr,
    netdev: &NetDev,
    is_down: bool,
    max_message: u32,
) {
    (attr.state, attr.phys_state) = match netdev.is_up() && !is_down {
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

/// The counters of `T`.
struct Counters<T>(PhantomData<T>);

impl<T: Operations> Counters<T> {
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
}

/// Allocates room for the values of the counters; null when there is no memory.
pub(super) fn alloc_stats<T: Operations>() -> *mut bindings::rdma_hw_stats {
    let descriptions: &'static [bindings::rdma_stat_desc; MAX_COUNTERS] =
        &Counters::<T>::DESCRIPTIONS;
    // CAST: At most `MAX_COUNTERS`.
    // SAFETY: The descriptions are static, and the first `T::COUNTERS.len()` have a name.
    unsafe {
        bindings::rdma_alloc_hw_stats_struct(
            descriptions.as_ptr(),
            T::COUNTERS.len() as c_int,
            STATS_LIFESPAN_MS,
        )
    }
}

/// Views the values of the counters.
///
/// # Safety
///
/// `stats` was made by [`alloc_stats`], and no other code uses it during `'a`.
pub(super) unsafe fn stats<'a, T: Operations>(
    stats: *mut bindings::rdma_hw_stats,
) -> &'a mut [u64] {
    // SAFETY: `alloc_stats` asked for that many values; the caller says that no other code uses
    // them.
    unsafe {
        let values = (&raw mut (*stats).value).cast::<u64>();
        slice::from_raw_parts_mut(values, T::COUNTERS.len())
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_port)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    #[test]
    fn mtu_is_rounded_down() {
        for (bytes, expected) in cases([
            (0, bindings::ib_mtu_IB_MTU_256),
            (511, bindings::ib_mtu_IB_MTU_256),
            (512, bindings::ib_mtu_IB_MTU_512),
            (1500, bindings::ib_mtu_IB_MTU_1024),
            (4095, bindings::ib_mtu_IB_MTU_2048),
            (65536, bindings::ib_mtu_IB_MTU_4096),
        ]) {
            kunit_assert_eq!(mtu(bytes), expected);
        }
    }

    #[test]
    fn port_of_a_running_device_is_active() -> Result {
        let mut attr: bindings::ib_port_attr = pin_init::zeroed();
        let lo = NetDev::loopback()?;
        describe(&mut attr, &lo, false, 1 << 30);
        let active = attr.state == bindings::ib_port_state_IB_PORT_ACTIVE;
        kunit_assert_eq!(active, lo.is_up());
        kunit_assert_eq!(attr.pkey_tbl_len, 1);
        describe(&mut attr, &lo, true, 1 << 30);
        kunit_assert_eq!(attr.state, bindings::ib_port_state_IB_PORT_DOWN);
        Ok(())
    }
}
