// SPDX-License-Identifier: GPL-2.0

//! Calls that end later, waited for; objects that close themselves.

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
            wait_ms,
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

/// A place that is never pinned, whatever it holds.
struct Value<T>(Option<T>);

impl<T> Unpin for Value<T> {}

/// What a callback brought, and how often it came.
#[pin_data]
pub(super) struct Slot<T> {
    #[pin]
    value: SpinLockIrq<Value<T>>,
    #[pin]
    event: Event,
    pub(super) calls: Tally,
}

impl<T: Send + 'static> Slot<T> {
    /// Nothing came yet. May sleep.
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

    /// A callback that brings its value here.
    pub(super) fn callback(self: &Arc<Self>) -> Result<DoneFn<T>> {
        let slot = self.clone();
        let boxed = done(GFP_KERNEL, move |value: T| slot.put(value));
        boxed.map_err(|_| ENOMEM)
    }

    /// Notes a value.
    pub(super) fn put(&self, value: T) {
        self.calls.hit();
        let mut place = self.value.lock();
        place.0 = Some(value);
        self.event.signal();
    }

    /// Takes what is there now.
    pub(super) fn take(&self) -> Option<T> {
        self.value.lock().0.take()
    }

    /// Waits for the next value; `None` when it does not come in time.
    pub(super) fn wait(&self) -> Option<T> {
        let mut value = None;
        // The event stays signalled behind the first value.
        if self.event.wait_timeout(wait_ms()) {
            wait_until(|| {
                value = self.value.lock().0.take();
                value.is_some()
            });
        }
        value
    }
}

impl Slot<NtStatus> {
    /// Waits for the status; an error if none comes, or another one.
    pub(super) fn came(&self, want: NtStatus) -> Result {
        match self.wait() {
            Some(status) if status == want => Ok(()),
            Some(status) => Err(log_status(status)),
            None => Err(ETIMEDOUT),
        }
    }
}

/// Makes a call that reports its end by a status, and waits for that; an inline refusal is one,
/// too.
pub(super) fn request(call: impl FnOnce(DoneFn<NtStatus>) -> Answer) -> Result<NtStatus> {
    let slot = Slot::new()?;
    Ok(match call(slot.callback()?) {
        Ok(Progress::Done) => NtStatus::SUCCESS,
        Ok(Progress::Pending) => slot.wait().ok_or(ETIMEDOUT)?,
        Err(status) => status,
    })
}

/// Makes a call that creates an object, and waits for that.
pub(super) fn create<T: ObjectType>(
    call: impl FnOnce(DoneFn<Result<Ref<T>, NtStatus>>) -> Answer,
) -> Result<Result<Own<T>, NtStatus>> {
    let slot = Slot::new()?;
    let created = match call(slot.callback()?) {
        Ok(Progress::Done) => return Err(EINVAL),
        Ok(Progress::Pending) => slot.wait().ok_or(ETIMEDOUT)?,
        Err(status) => Err(status),
    };
    Ok(created.map(Own::new))
}

/// The same where the object has to come; the status is in the log when it does not.
pub(super) fn made<T: ObjectType>(
    call: impl FnOnce(DoneFn<Result<Ref<T>, NtStatus>>) -> Answer,
) -> Result<Own<T>> {
    create(call)?.map_err(log_status)
}

/// Logs a status that came where none was expected.
pub(super) fn log_status(status: NtStatus) -> Error {
    kunit_note!("failed with status {:x}", status.raw());
    EIO
}

/// An object that is closed when this is dropped, if it was not before. Nobody waits for that but
/// the adapter, which is to be dropped last.
pub(super) struct Own<T: ObjectType>(Option<Ref<T>>, Ref<T>);

impl<T: ObjectType> Own<T> {
    pub(super) fn new(object: Ref<T>) -> Self {
        Self(Some(object.clone()), object)
    }

    /// The object, which is for the caller to close; `EINVAL` when that was done before.
    pub(super) fn give_up(&mut self) -> Result<Ref<T>> {
        self.0.take().ok_or(EINVAL)
    }

    /// The same object for another side, which does not close it.
    pub(super) fn lent(&self) -> Self {
        Self(None, self.1.clone())
    }

    /// Closes the object; what it says, and the slot where the completion comes.
    pub(super) fn close(&mut self) -> Result<(Progress, Arc<Slot<()>>)> {
        let slot = Slot::new()?;
        let object = self.give_up()?;
        Ok((object.close(slot.callback()?), slot))
    }

    /// Closes the object and waits until that is over; false when it takes too long.
    pub(super) fn close_and_wait(&mut self) -> Result<bool> {
        Ok(match self.close()? {
            (Progress::Done, _) => true,
            (Progress::Pending, slot) => slot.wait().is_some(),
        })
    }
}

impl<T: ObjectType> Deref for Own<T> {
    type Target = Ref<T>;

    fn deref(&self) -> &Ref<T> {
        &self.1
    }
}

impl<T: ObjectType> Drop for Own<T> {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            close_quietly(&object);
        }
    }
}

/// Closes an object whose end nobody waits for.
pub(super) fn close_quietly<T: ObjectType>(object: &Arc<Object<T>>) {
    if let Ok(nobody) = done(GFP_KERNEL, |()| ()) {
        object.close(nobody);
    }
}
