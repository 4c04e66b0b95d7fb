// SPDX-License-Identifier: GPL-2.0

//! Waits for calls that pend, and objects that close themselves.

use core::ops::Deref;

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    kunit::{
        harness::{
            came_in_time,
            wait_until, //
        },
        log::Tally, //
    },
    ndk::{
        call::{
            done,
            DoneFn, //
        },
        life::{
            Object,
            ObjectType,
            Ref, //
        },
        status::{
            Answer,
            NtStatus,
            Progress, //
        }, //
    },
    sys::event::Event, //
};

/// A place for a value; `Unpin` for each `T`.
struct Value<T>(Option<T>);

impl<T> Unpin for Value<T> {}

/// The value of a callback, and the number of its calls.
#[pin_data]
pub(super) struct CallbackValue<T> {
    #[pin]
    value: SpinLockIrq<Value<T>>,
    #[pin]
    event: Event,
    pub(super) calls: Tally,
}

impl<T: Send + 'static> CallbackValue<T> {
    /// A callback value that is not there yet. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                value <- new_spinlock_irq!(Value(None)),
                event <- Event::new(),
                calls: Tally::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// A callback that sets this value.
    pub(super) fn callback(self: &Arc<Self>) -> Result<DoneFn<T>> {
        let slot = self.clone();
        let boxed = done(GFP_KERNEL, move |value: T| slot.put(value));
        boxed.map_err(|_| ENOMEM)
    }

    /// Stores a value, and counts the call.
    pub(super) fn put(&self, value: T) {
        self.calls.hit();
        let mut place = self.value.lock();
        place.0 = Some(value);
        self.event.signal();
    }

    /// Takes the value, if there is one.
    pub(super) fn take(&self) -> Option<T> {
        self.value.lock().0.take()
    }

    /// Waits for the next value; `None` after a timeout.
    pub(super) fn wait(&self) -> Option<T> {
        let mut value = None;
        // The event stays signalled after the first value.
        if came_in_time(&self.event) {
            wait_until(|| {
                value = self.value.lock().0.take();
                value.is_some()
            });
        }
        value
    }
}

impl CallbackValue<NtStatus> {
    /// Waits for the status; an error if none comes, or a status other than `want`.
    pub(super) fn came(&self, want: NtStatus) -> Result {
        match self.wait() {
            Some(status) if status == want => Ok(()),
            Some(status) => Err(log_status(status)),
            None => Err(ETIMEDOUT),
        }
    }
}

/// Makes a call that reports a status, waits for its completion if it pends, and returns the
/// status, also that of an inline refusal.
pub(super) fn request(call: impl FnOnce(DoneFn<NtStatus>) -> Answer) -> Result<NtStatus> {
    let slot = CallbackValue::new()?;
    Ok(match call(slot.callback()?) {
        Ok(Progress::Done) => NtStatus::SUCCESS,
        Ok(Progress::Pending) => slot.wait().ok_or(ETIMEDOUT)?,
        Err(status) => status,
    })
}

/// Makes a call that creates an object, and waits for the object.
pub(super) fn create<T: ObjectType>(
    call: impl FnOnce(DoneFn<Result<Ref<T>, NtStatus>>) -> Answer,
) -> Result<Result<AutoClose<T>, NtStatus>> {
    let slot = CallbackValue::new()?;
    let created = match call(slot.callback()?) {
        Ok(Progress::Done) => return Err(EINVAL),
        Ok(Progress::Pending) => slot.wait().ok_or(ETIMEDOUT)?,
        Err(status) => Err(status),
    };
    Ok(created.map(AutoClose::new))
}

/// Creates an object as [`create`] does; logs a failure and makes it an error.
pub(super) fn made<T: ObjectType>(
    call: impl FnOnce(DoneFn<Result<Ref<T>, NtStatus>>) -> Answer,
) -> Result<AutoClose<T>> {
    create(call)?.map_err(log_status)
}

/// Logs an unexpected status.
pub(super) fn log_status(status: NtStatus) -> Error {
    kunit_note!("failed with status {:x}", status.raw());
    EIO
}

/// An object that its drop closes, unless it was closed before. The drop does not wait for the end
/// of the close: the adapter does, which has to be dropped last.
pub(super) struct AutoClose<T: ObjectType>(Option<Ref<T>>, Ref<T>);

impl<T: ObjectType> AutoClose<T> {
    pub(super) fn new(object: Ref<T>) -> Self {
        Self(Some(object.clone()), object)
    }

    /// Gives the object to the caller, which has to close it; `EINVAL` if it was given before.
    pub(super) fn give_up(&mut self) -> Result<Ref<T>> {
        self.0.take().ok_or(EINVAL)
    }

    /// Another handle of the same object, which does not close the object.
    pub(super) fn lent(&self) -> Self {
        Self(None, self.1.clone())
    }

    /// Closes the object; returns the progress, and the value of the callback.
    pub(super) fn close(&mut self) -> Result<(Progress, Arc<CallbackValue<()>>)> {
        let slot = CallbackValue::new()?;
        let object = self.give_up()?;
        Ok((object.close(slot.callback()?), slot))
    }

    /// Closes the object and waits for the end; false after a timeout.
    pub(super) fn close_and_wait(&mut self) -> Result<bool> {
        Ok(match self.close()? {
            (Progress::Done, _) => true,
            (Progress::Pending, slot) => slot.wait().is_some(),
        })
    }
}

impl<T: ObjectType> Deref for AutoClose<T> {
    type Target = Ref<T>;

    fn deref(&self) -> &Ref<T> {
        &self.1
    }
}

impl<T: ObjectType> Drop for AutoClose<T> {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            close_quietly(&object);
        }
    }
}

/// Closes an object without waiting for the end.
pub(super) fn close_quietly<T: ObjectType>(object: &Arc<Object<T>>) {
    if let Ok(nobody) = done(GFP_KERNEL, |()| ()) {
        object.close(nobody);
    }
}
