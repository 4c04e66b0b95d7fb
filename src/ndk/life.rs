// SPDX-License-Identifier: GPL-2.0

//! [`Object`]: an NDK object from its creation to the end of its close (NDKPI Object Lifetime
//! Requirements).
//!
//! An object counts its uses: one for its owner, one for each successor, for each request of it
//! that is pending, for each event callback that may run. `close` releases the owner's use. The
//! release of the last use starts the end: the object frees its resources, its close completion is
//! called, and only then its uses of its antecedents are released. So an antecedent's close never
//! completes while a successor's close callback runs (CLOS-06).
//!
//! Context: any, but for the end itself, which runs in process context where it may sleep.

use kernel::{
    alloc::Flags,
    impl_has_work,
    new_work,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        UniqueArc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    call::{
        call_consumer,
        with_planned_faults, //
    },
    prelude::*, //
};
use crate::engine::device::RdmaDevice;

/// The most antecedents that an object has: a queue pair has a domain and three queues.
const ANTECEDENTS: usize = 4;

/// Uses of the antecedents of an object.
pub(super) type Antecedents = [Option<ObjectUse>; ANTECEDENTS];

/// The part of an object that depends on its type, and its end.
pub(crate) trait ObjectType: Send + Sync + Sized + 'static {
    /// Starts the work of a close that cannot wait for [`ObjectType::end`]. Any context.
    fn closing(_this: &Arc<Object<Self>>) {}

    /// Returns true if [`ObjectType::end`] has work to do that may sleep. When not, a close that
    /// finds no other use of the object is over when it returns.
    fn end_sleeps(&self) -> bool {
        true
    }

    /// Frees the resources of an object that has no uses left. Process context if `end_sleeps`.
    /// Called once.
    fn end(&self) {}

    /// Releases the uses of antecedents that came after the creation. Called when the close is over
    /// and reported. Any context.
    fn put_antecedents(&self) {}
}

/// A use of an object, which keeps its close from completing.
pub(crate) struct ObjectUse(Arc<dyn UseCount>);

trait UseCount: Send + Sync {
    fn retain(&self);
    fn release(self: Arc<Self>);
}

impl ObjectUse {
    /// One more use of the same object.
    pub(crate) fn again(&self) -> Self {
        self.0.retain();
        Self(self.0.clone())
    }
}

impl Drop for ObjectUse {
    fn drop(&mut self) {
        self.0.clone().release();
    }
}

/// The progress of an object's close.
struct Closing {
    asked: bool,
    done: Option<DoneFn<()>>,
}

/// An object, its uses, its antecedents and its close.
#[pin_data]
pub(crate) struct Object<T: ObjectType> {
    device: Arc<RdmaDevice>,
    uses: Atomic<u32>,
    #[pin]
    closing: SpinLockIrq<Closing>,
    #[pin]
    antecedents: SpinLockIrq<Antecedents>,
    #[pin]
    work: Work<Self>,
    #[pin]
    object: T,
}

impl_has_work! {
    impl{T: ObjectType} HasWork<Self> for Object<T> { self.work }
}

/// A shared reference to an object. It keeps the memory; an [`ObjectUse`] keeps the object.
pub(crate) type Ref<T> = Arc<Object<T>>;

/// The result of a creation, at once or in its callback.
pub(crate) type Created<T> = Result<Ref<T>, NtStatus>;

impl<T: ObjectType> Object<T> {
    fn init<E>(
        device: Arc<RdmaDevice>,
        antecedents: Antecedents,
        object: impl PinInit<T, E>,
    ) -> impl PinInit<Self, Error>
    where
        Error: From<E>,
    {
        try_pin_init!(Self {
            device,
            uses: Atomic::new(1),
            closing <- new_spinlock_irq!(Closing { asked: false, done: None }),
            antecedents <- new_spinlock_irq!(antecedents),
            work <- new_work!("ndk_object"),
            object <- object,
        }? Error)
    }

    /// A new object with its antecedents. The context is that of `flags`; an error when there is
    /// no memory.
    pub(super) fn new<E>(
        device: &Arc<RdmaDevice>,
        antecedents: Antecedents,
        object: impl PinInit<T, E>,
        flags: Flags,
    ) -> Result<Ref<T>>
    where
        Error: From<E>,
    {
        Arc::pin_init::<Error>(Self::init(device.clone(), antecedents, object), flags)
    }

    /// As [`Object::new`], after `start` has worked on the object; a failure ends the object. May
    /// sleep.
    pub(super) fn start(
        device: &Arc<RdmaDevice>,
        antecedents: Antecedents,
        object: T,
        start: impl FnOnce(&T) -> Result,
    ) -> Created<T> {
        let place = UniqueArc::new_uninit(GFP_KERNEL).map_err(Error::from);
        let made = match place.and_then(|place| start(&object).map(|()| place)) {
            Ok(place) => place.pin_init_with(Self::init(device.clone(), antecedents, object)),
            Err(error) => {
                object.end();
                Err(error)
            }
        };
        made.map(Arc::from).map_err(no_memory)
    }

    /// A new object whose only antecedent is this one. The context is that of `flags`;
    /// `INSUFFICIENT_RESOURCES` when there is no memory.
    pub(super) fn successor<S: ObjectType, E>(
        self: &Arc<Self>,
        object: impl PinInit<S, E>,
        flags: Flags,
    ) -> Created<S>
    where
        Error: From<E>,
    {
        Object::new(&self.device, self.sole_antecedent(), object, flags).map_err(no_memory)
    }

    /// This object as the only antecedent.
    pub(super) fn sole_antecedent(self: &Arc<Self>) -> Antecedents {
        [Some(self.new_use()), None, None, None]
    }

    /// Starts work that may sleep and passes its result to `done`; the object is used until then.
    ///
    /// Any context. `INSUFFICIENT_RESOURCES` without memory: then `done` is not called.
    pub(super) fn defer<R: 'static>(
        self: &Arc<Self>,
        mut done: DoneFn<R>,
        work: impl FnOnce(&Arc<Self>) -> R + Send + 'static,
    ) -> Answer {
        let (this, object_use) = (self.clone(), self.new_use());
        let task = move || {
            let result = with_planned_faults(|| work(&this));
            call_consumer(|| done.call(result));
            drop((done, this));
            // Last: the waiter for the end of this use may be gone for good afterwards.
            drop(object_use);
        };
        let spawned = self.device.host.threads.spawn(GFP_ATOMIC, task);
        spawned.map_err(no_memory)?;
        Ok(Progress::Pending)
    }

    /// The device.
    pub(crate) fn device(&self) -> &Arc<RdmaDevice> {
        &self.device
    }

    /// Takes a use. The caller knows of another one during the call, its own or the owner's.
    pub(crate) fn new_use(self: &Arc<Self>) -> ObjectUse {
        self.uses.fetch_add(1, Relaxed);
        ObjectUse(self.clone())
    }

    /// Takes a use without knowing of another one: `None` once the owner has closed the object.
    pub(crate) fn try_use(self: &Arc<Self>) -> Option<ObjectUse> {
        let closing = self.closing.lock();
        // `close` sets `asked` under this lock before it releases the owner's use.
        (!closing.asked).then(|| self.new_use())
    }

    /// Returns true if the owner has closed the object.
    #[cfg(ndk_kunit)]
    pub(crate) fn is_closed(&self) -> bool {
        self.closing.lock().asked
    }

    /// Closes the object; `done` is called unless this returns [`Progress::Done`]. Any context.
    ///
    /// A second close is a bug of the consumer: it warns and has no effect.
    pub(crate) fn close(self: &Arc<Self>, done: DoneFn<()>) -> Progress {
        let mut closing = self.closing.lock();
        if kernel::warn_on!(closing.asked) {
            drop(closing);
            return Progress::Done;
        }
        closing.asked = true;
        closing.done = Some(done);
        drop(closing);
        T::closing(self);
        if self.uses.fetch_sub(1, Full) != 1 {
            return Progress::Pending;
        }
        if self.object.end_sleeps() {
            self.end_later();
            return Progress::Pending;
        }
        self.object.end();
        let done = self.closing.lock().done.take();
        drop(done);
        self.release_antecedents();
        Progress::Done
    }

    /// Closes an object that its owner never saw. Any context.
    pub(crate) fn close_unseen(self: &Arc<Self>) {
        self.closing.lock().asked = true;
        T::closing(self);
        if self.uses.fetch_sub(1, Full) == 1 {
            self.end_later();
        }
    }

    fn end_later(self: &Arc<Self>) {
        // The item is not queued: the last use is released once.
        let _ = self.device.host.threads.enqueue::<_, 0>(self.clone());
    }

    /// Releases the antecedents.
    fn release_antecedents(&self) {
        self.object.put_antecedents();
        for place in 0..ANTECEDENTS {
            let mut antecedents = self.antecedents.lock();
            let object_use = antecedents.get_mut(place).and_then(Option::take);
            drop(antecedents);
            drop(object_use);
        }
    }
}

impl<T: ObjectType> core::ops::Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: ObjectType> UseCount for Object<T> {
    fn retain(&self) {
        self.uses.fetch_add(1, Relaxed);
    }

    fn release(self: Arc<Self>) {
        if self.uses.fetch_sub(1, Full) == 1 {
            self.end_later();
        }
    }
}

impl<T: ObjectType> WorkItem for Object<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        with_planned_faults(|| this.object.end());
        let done = this.closing.lock().done.take();
        if let Some(mut done) = done {
            call_consumer(|| done.call(()));
        }
        with_planned_faults(|| this.release_antecedents());
    }
}
