// SPDX-License-Identifier: GPL-2.0

//! User space: devices whose verbs programs may call, too.
//!
//! rdma-core has no library that takes any provider, so such a device identifies itself as one of
//! `hfi1`, with version 2 of its interface: libhfi1verbs then takes completions and posts receives
//! in memory that it shares with the kernel, and does the rest by the standard commands of uverbs.
//! A device does so only if the module parameter `user_verbs` was set when it was made.
//!
//! | file       | keeps a program from                                                     |
//! |------------|--------------------------------------------------------------------------|
//! | [`memory`] | memory that goes while it is registered                                  |
//! | [`number`] | queue pairs that go while uverbs reads their number out of a completion  |
//! | [`owner`]  | connecting a queue pair that is not its own                              |
//! | [`post`]   | addresses and keys of the kernel in a work request                       |
//! | [`share`]  | the memory of queues that are not its own                                |
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/ib_umem.h`](srctree/include/rdma/ib_umem.h)

pub(super) mod memory;
pub(super) mod number;
pub(super) mod owner;
pub(super) mod post;
pub(super) mod share;

use core::ptr::NonNull;

use kernel::{
    new_mutex,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    }, //
};

use self::number::NumberPool;
use super::prelude::*;
use crate::sys::global::Global;

/// The number by which libhfi1verbs knows its devices.
pub(super) const DRIVER_ID: u32 = bindings::rdma_driver_id_RDMA_DRIVER_HFI1;

/// The version of its interface that shares queues.
pub(super) const ABI_VERSION: u32 = 2;

/// The commands of uverbs that libhfi1verbs uses and that the core allows only to devices that ask
/// for them: most libraries do without.
pub(super) const COMMANDS: u64 = 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POLL_CQ
    | 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_REQ_NOTIFY_CQ
    | 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_SEND
    | 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_RECV
    | 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_SRQ_RECV;

/// The module that owns this driver number.
const OTHER_DRIVER: &CStr = c"hfi1";

/// The module parameter `user_verbs` of `bindings/export.c`, which may change at any time.
#[no_mangle]
#[allow(non_upper_case_globals)]
static ndk_user_verbs: Atomic<bool> = Atomic::new(false);

/// A device, named by its address.
struct Listed(NonNull<bindings::ib_device>);

// SAFETY: Only an address; code that follows it justifies that.
unsafe impl Send for Listed {}

impl Listed {
    /// Sets the driver number. Under the lock of the list.
    fn set_driver_id(&self, driver_id: u32) {
        // SAFETY: A device is forgotten before it goes, so it is live while it is in the list.
        // Readers of the number take no lock, and get the old or the new one.
        unsafe { (&raw mut (*self.0.as_ptr()).ops.driver_id).write_volatile(driver_id) };
    }
}

/// The state for programs, as long as the provider is registered.
#[pin_data]
struct Programs {
    /// The devices that serve programs.
    #[pin]
    devices: Mutex<KVec<Listed>>,
    numbers: Arc<NumberPool>,
}

static PROGRAMS: Global<Programs> = Global::new();

/// Makes the state, before the first device. Process context.
pub(super) fn begin() -> Result {
    let numbers = NumberPool::new()?;
    let programs = Arc::pin_init(
        pin_init!(Programs {
            devices <- new_mutex!(KVec::new()),
            numbers,
        }),
        GFP_KERNEL,
    )?;
    PROGRAMS.replace(Some(programs));
    Ok(())
}

/// Drops the state, after the last device. Process context.
pub(super) fn end() {
    PROGRAMS.replace(None);
}

/// The numbers of programs' queue pairs. Process context.
pub(super) fn numbers() -> Result<Arc<NumberPool>> {
    PROGRAMS.get().map(|p| p.numbers.clone()).ok_or(ENODEV)
}

/// Returns true if a device that is made now serves programs.
///
/// `EBUSY`, with a message in the log, if the driver that owns the number is loaded.
pub(super) fn is_wanted() -> Result<bool> {
    if !ndk_user_verbs.load(Relaxed) {
        return Ok(false);
    }
    // SAFETY: The name is NUL-terminated.
    if unsafe { bindings::ndk_module_is_loaded(OTHER_DRIVER.as_char_ptr()) } {
        pr_err!(
            "user_verbs: the module {} is loaded, whose library programs would use\n",
            OTHER_DRIVER
        );
        return Err(EBUSY);
    }
    Ok(true)
}

/// Remembers a device with a number that is not this provider's own. Process context.
pub(super) fn remember(device: NonNull<bindings::ib_device>) -> Result {
    let programs = PROGRAMS.get().ok_or(ENODEV)?;
    let mut devices = programs.devices.lock();
    Ok(devices.push(Listed(device), GFP_KERNEL)?)
}

/// Forgets a device, if it was remembered, and gives it this provider's own number as [`reclaim`]
/// does: the core finds the device until it is gone, and the end of the module waits for that.
/// Process context.
pub(super) fn forget(device: *mut bindings::ib_device, driver_id: u32) {
    if let Some(programs) = PROGRAMS.get() {
        let mut devices = programs.devices.lock();
        devices.retain(|one| {
            let is_other = one.0.as_ptr() != device;
            if !is_other {
                one.set_driver_id(driver_id);
            }
            is_other
        });
    }
}

/// Gives all devices this provider's own number, so that the core finds them by it, and only them.
/// Process context; not while devices are made.
pub(super) fn reclaim(driver_id: u32) {
    let Some(programs) = PROGRAMS.get() else {
        return;
    };
    for device in programs.devices.lock().iter() {
        device.set_driver_id(driver_id);
    }
}
