// SPDX-License-Identifier: GPL-2.0

//! The uses of a device by other faces than the one that made it, until the device goes.
//!
//! ```text
//! open() -> ClientUse ----------------------> dropped
//!              shut(): no open() any more; device_gone() once for each use; returns after the last
//! ```
//!
//! The verbs face shuts a device when its own consumers of the device are gone.
//!
//! Tests: `engine/device/tests.rs`.

use kernel::rbtree::{
    RBTree,
    RBTreeNodeReservation, //
};

use crate::{
    engine::prelude::*,
    sys::event::Event, //
};

/// The time that [`RdmaDevice::shut`] waits before it warns in the kernel log, in milliseconds.
const SHUT_WARN_MS: u32 = 10_000;

/// The number of waits of that length from one warning to the next.
const WAITS_PER_WARNING: u32 = 30;

/// A face's user of a device.
pub(crate) trait Client: Send + Sync {
    /// Reports that the device goes: the use has to end soon. Called once at most, in process
    /// context, under no lock; the use may be dropped inside. The call may still come, or run,
    /// while the use is dropped elsewhere.
    fn device_gone(&self);
}

/// The reason why a device could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The device is going.
    Closed,
    /// No memory.
    NoMemory,
}

struct UserList {
    shut: bool,
    /// By the numbers of their uses.
    users: RBTree<u64, Arc<dyn Client>>,
    /// The number of the next use.
    next: u64,
}

/// The uses of one device.
#[pin_data]
pub(super) struct Users {
    #[pin]
    inner: SpinLockIrq<UserList>,
    /// Signalled when the device is shut and has no users.
    #[pin]
    unused: Event,
}

impl Users {
    /// No users.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- new_spinlock_irq!(UserList {
                shut: false,
                users: RBTree::new(),
                next: 0,
            }),
            unused <- Event::new(),
        })
    }

    /// The first use with that number or a higher one.
    fn first(&self, from: u64) -> Option<(u64, Arc<dyn Client>)> {
        let inner = self.inner.lock();
        let found = inner.users.cursor_lower_bound(&from)?;
        let (number, user) = found.current();
        Some((*number, user.clone()))
    }
}

impl RdmaDevice {
    /// Begins a use of the device, which ends when the result is dropped. May sleep.
    ///
    /// The use keeps `user` until then: a user that owns its use has to drop the use explicitly,
    /// not by its own drop.
    pub(crate) fn open(self: &Arc<Self>, user: Arc<dyn Client>) -> Result<ClientUse, OpenError> {
        let room = RBTreeNodeReservation::new(GFP_KERNEL).map_err(|_| OpenError::NoMemory)?;
        let mut inner = self.users.inner.lock();
        if inner.shut {
            drop(inner);
            return Err(OpenError::Closed);
        }
        let number = inner.next;
        // OVERFLOW: 2^64 uses.
        inner.next = number.wrapping_add(1);
        // The number is new.
        let _ = inner.users.insert(room.into_node(number, user));
        drop(inner);
        Ok(ClientUse {
            device: self.clone(),
            number,
        })
    }

    /// Drops the reference to the network device, refuses new uses, notifies each user once, and
    /// returns when every use has ended. May sleep.
    ///
    /// Undecided connect requests keep a device for longer; the network device may go.
    pub(crate) fn shut(&self) {
        self.put_netdev();
        self.faults.hide();
        self.end_port();
        let was_shut = core::mem::replace(&mut self.users.inner.lock().shut, true);
        // No use begins any more, so the numbers have an end.
        let mut from = 0;
        while let Some((number, user)) = self.users.first(from).filter(|_| !was_shut) {
            user.device_gone();
            from = number + 1;
        }
        let mut waits: u32 = 0;
        while !self.users.inner.lock().users.is_empty() {
            if waits % WAITS_PER_WARNING == 1 {
                pr_warn!("{}: waits for its users to close it\n", self.name());
            }
            waits = waits.saturating_add(1);
            self.users.unused.wait_timeout(SHUT_WARN_MS);
        }
    }
}

/// A face's use of a device; dropping it ends the use. Any context that may drop the user.
pub(crate) struct ClientUse {
    number: u64,
    device: Arc<RdmaDevice>,
}

#[cfg(ndk_kunit)]
impl ClientUse {
    /// The device that is used.
    pub(crate) fn device(&self) -> &Arc<RdmaDevice> {
        &self.device
    }
}

impl Drop for ClientUse {
    fn drop(&mut self) {
        let users = &self.device.users;
        let mut inner = users.inner.lock();
        let gone = inner.users.remove_node(&self.number);
        if inner.shut && inner.users.is_empty() {
            users.unused.signal();
        }
        drop(inner);
        drop(gone);
    }
}
