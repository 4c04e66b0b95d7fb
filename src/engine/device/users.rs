// SPDX-License-Identifier: GPL-2.0

//! Who uses a device besides the face that made it, until the device goes.
//!
//! ```text
//! open() -> ClientUse ----------------------> dropped
//!              shut(): no open() any more; device_gone() once for each use; returns after the last
//! ```
//!
//! The verbs face shuts a device when its own consumers of the device are gone.
//!
//! Tests: `engine/device/tests.rs`.

use crate::{
    engine::prelude::*,
    sys::event::Event, //
};

/// How long [`RdmaDevice::shut`] waits before it says so in the kernel log, in milliseconds.
const PATIENCE_MS: u32 = 10_000;

/// Of the waits that follow, each of that length, one in so many is said again.
const SAY_EVERY: u32 = 30;

/// A face's user of a device.
pub(crate) trait Client: Send + Sync {
    /// The device goes: the use has to end soon. Called once at most, in process context, under no
    /// lock; the use may be dropped inside. It may still be called, or running, while the use is
    /// dropped elsewhere.
    fn device_gone(&self);
}

/// Why a device could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The device is going.
    Closed,
    /// No memory.
    NoMemory,
}

struct Inner {
    shut: bool,
    /// With whether it was notified that the device goes.
    users: KVec<(Arc<dyn Client>, bool)>,
}

/// The uses of one device.
#[pin_data]
pub(super) struct Users {
    #[pin]
    inner: SpinLockIrq<Inner>,
    /// Happens when the device is shut and has no users.
    #[pin]
    unused: Event,
}

impl Users {
    /// Nobody uses the device.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- new_spinlock_irq!(Inner {
                shut: false,
                users: KVec::new(),
            }),
            unused <- Event::new(),
        })
    }

    /// A user that has not been notified yet that the device goes; now it is.
    fn next_unnotified(&self) -> Option<Arc<dyn Client>> {
        let mut inner = self.inner.lock();
        let (user, notified) = inner.users.iter_mut().find(|(_, notified)| !notified)?;
        *notified = true;
        Some(user.clone())
    }
}

impl RdmaDevice {
    /// Begins a use of the device, which ends when the result is dropped. Any context.
    ///
    /// The use keeps `user` until then: a user that owns its use has to drop it of its own accord,
    /// not when it is dropped itself.
    pub(crate) fn open(self: &Arc<Self>, user: Arc<dyn Client>) -> Result<ClientUse, OpenError> {
        let mut inner = self.users.inner.lock();
        if inner.shut {
            return Err(OpenError::Closed);
        }
        let pushed = inner.users.push((user.clone(), false), GFP_ATOMIC);
        pushed.map_err(|_| OpenError::NoMemory)?;
        drop(inner);
        Ok(ClientUse {
            device: self.clone(),
            user,
        })
    }

    /// Lets go of the network device, refuses new uses, notifies each user once, and returns when
    /// every use has ended. May sleep.
    ///
    /// Requests that nobody has decided on keep a device for longer; the network device may go.
    pub(crate) fn shut(&self) {
        self.put_netdev();
        self.users.inner.lock().shut = true;
        while let Some(user) = self.users.next_unnotified() {
            user.device_gone();
        }
        let mut waits: u32 = 0;
        loop {
            let left = self.users.inner.lock().users.len();
            if left == 0 {
                return;
            }
            if waits % SAY_EVERY == 1 {
                pr_warn!("{}: waits for {} users to close it\n", self.name(), left);
            }
            waits = waits.saturating_add(1);
            self.users.unused.wait_timeout(PATIENCE_MS);
        }
    }
}

/// A face's use of a device; dropping it ends the use. Any context that may drop the user.
pub(crate) struct ClientUse {
    user: Arc<dyn Client>,
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
        let mut all = inner.users.iter();
        let at = all.position(|(user, _)| Arc::ptr_eq(user, &self.user));
        let gone = at.and_then(|at| inner.users.remove(at).ok());
        if inner.shut && inner.users.is_empty() {
            users.unused.signal();
        }
        drop(inner);
        drop(gone);
    }
}
