// SPDX-License-Identifier: GPL-2.0

//! Queue pairs, and the space of their numbers.
//!
//! iw_cm names queue pairs by number and may look a queue pair up on a device
//! that is not its own, so all devices of the module share one space. That
//! device may be another provider's: the space has only numbers that other
//! providers do not use.

use kernel::{
    error::to_result,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
    task::Task,
    types::ScopeGuard, //
};

use super::{
    cm_ops::CmOperations,
    cq::Cq,
    details::Details,
    prelude::*,
    recv::RecvChain,
    srq::Srq,
    types::{
        QpAttributes,
        QpChange, //
    },
    upcall::QpUpcall,
    user::{
        self,
        number::UserQpn,
        owner::Owner,
        share::{
            MappingSlot,
            UserData, //
        }, //
    },
    values::qp::QpCaps,
    work::SendChain, //
};
use crate::sys::event::Event;

/// The private data of a queue pair.
pub(crate) struct QpPrivate {
    target: Arc<UpcallTarget<bindings::ib_qp>>,
    /// The references of iw_cm.
    pub(super) cm: Arc<CmRefs>,
    owner: Owner,
    /// The address of the task that changed the queue pair last; 0 before the first change.
    changed_by: Atomic<usize>,
    number: Number,
    /// The mapping of the receives; dropped after the queue pair.
    _mapping: MappingSlot,
}

/// The number of a queue pair, given back with the queue pair.
enum Number {
    Kernel(Qpn),
    User(UserQpn),
}

impl Number {
    fn take(owner: &Owner) -> Result<Self> {
        Ok(match owner {
            Owner::Kernel => Self::Kernel(Qpn::take()?),
            Owner::Program(_) => Self::User(UserQpn::take(&user::numbers()?)?),
        })
    }

    fn qpn(&self) -> Option<&Qpn> {
        match self {
            Self::Kernel(qpn) => Some(qpn),
            Self::User(qpn) => qpn.qpn(),
        }
    }

    /// The cookie of `qp` in completions.
    fn cookie(&self, qp: *mut bindings::ib_qp) -> QpCookie {
        match self {
            Self::Kernel(_) => QpCookie(qp.addr()),
            Self::User(qpn) => qpn.cookie(),
        }
    }
}

impl QpPrivate {
    /// Ends the lookup of the queue pair by its number. Process context.
    pub(super) fn unpublish(&self) {
        if let Some(qpn) = self.number.qpn() {
            qpn.unpublish();
        }
    }

    /// Remembers the calling task as the last that changed the queue pair.
    pub(super) fn note_change(&self) {
        self.changed_by.store(Task::current_raw().addr(), Relaxed);
    }

    /// Returns true if the calling task may look the queue pair up: a task of the owning process,
    /// or for a queue pair of the kernel the task that changed it last, as rdma_cm does just before
    /// it connects the queue pair. Any context that belongs to a task.
    fn may_look_up(&self) -> bool {
        match &self.owner {
            Owner::Kernel => self.changed_by.load(Relaxed) == Task::current_raw().addr(),
            program => program.admits_caller(),
        }
    }

    /// The owner, which alone may connect the queue pair.
    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Waits for the references of iw_cm, and ends the upcalls. Process context, after
    /// [`QpPrivate::unpublish`].
    pub(super) fn end(&self) {
        self.cm.finish();
        self.target.close();
    }
}

impl IbObject for bindings::ib_qp {
    type Private = QpPrivate;
}

/// A queue pair with the provider's payload.
pub(crate) type Qp<T> = Object<bindings::ib_qp, <T as Operations>::Qp>;

/// Names a queue pair in its completions, for the consumer alone. For a program it names a
/// stand-in: [`UserQpn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpCookie(usize);

impl QpCookie {
    /// Makes a cookie from a number that [`QpCookie::into_raw`] gave.
    #[inline]
    pub(crate) fn from_raw(raw: usize) -> Self {
        Self(raw)
    }

    /// Returns the number, for code that does not know this type.
    #[inline]
    pub(crate) fn into_raw(self) -> usize {
        self.0
    }

    /// The C pointer, for consumers; it is not followed here.
    #[inline]
    pub(super) fn as_raw(self) -> *mut bindings::ib_qp {
        self.0 as *mut bindings::ib_qp
    }
}

/// The references of iw_cm to a queue pair, and one reference of its owner.
///
/// # Invariants
///
/// `none` is signalled when `count` becomes zero, which it does once.
#[pin_data]
pub(crate) struct CmRefs {
    count: Atomic<u32>,
    #[pin]
    none: Event,
}

impl CmRefs {
    fn new() -> Result<Arc<Self>> {
        let init = pin_init!(Self {
            count: Atomic::new(1),
            none <- Event::new(),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// Adds a reference. Any context.
    pub(super) fn get(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    /// Gives a reference up. Any context.
    pub(super) fn put(&self) {
        if self.count.fetch_sub(1, Full) == 1 {
            // INVARIANT: The count has become zero.
            self.none.signal();
        }
    }

    /// Gives up the owner's reference and waits for the others. Process context.
    fn finish(&self) {
        self.put();
        self.none.wait();
    }
}

/// A number in the module-wide space, given back on drop.
pub(super) struct Qpn(u32);

impl Qpn {
    /// Takes a number that finds no queue pair yet. Process context.
    ///
    /// `ENOMEM` when all numbers are taken, as for every object above its limit, or there is no
    /// memory.
    pub(super) fn take() -> Result<Self> {
        let mut number = 0;
        // SAFETY: `number` is writable.
        to_result(unsafe { bindings::ndk_qpn_reserve(&mut number) }).map_err(|_| ENOMEM)?;
        Ok(Self(number))
    }

    /// The number.
    pub(super) fn number(&self) -> u32 {
        self.0
    }

    /// Publishes `qp` under the number. Process context.
    fn publish(&self, qp: *mut bindings::ib_qp) {
        // SAFETY: `qp` is stored, not followed.
        unsafe { bindings::ndk_qpn_publish(self.0, qp.cast()) };
    }

    /// Ends the lookup by the number, and keeps the number. Process context.
    pub(super) fn unpublish(&self) {
        // SAFETY: The number was taken, so it has a place in the table.
        unsafe { bindings::ndk_qpn_unpublish(self.0) };
    }
}

/// The queue pair of `number`, or null. Any context.
fn find(number: u32) -> *mut bindings::ib_qp {
    // SAFETY: The table has its own lock.
    unsafe { bindings::ndk_qpn_find(number).cast() }
}

/// The queue pair of `number`, with a reference for iw_cm, if the queue pair waits for a connection
/// and the calling task may ask for it; else null. Any context that belongs to the asking task.
///
/// iw_cm keeps the reference while it asks the port mapper, before it asks the provider: the end of
/// the queue pair waits as long. If rdma_cm accepts on a device of the listener's namespace, the
/// device that iw_cm asks is not the queue pair's.
pub(super) fn get<T: Operations>(number: c_int) -> *mut bindings::ib_qp {
    /// # Safety
    ///
    /// `qp` is a queue pair of `T` that was published.
    unsafe extern "C" fn hold<T: Operations>(qp: *mut c_void) -> bool {
        // SAFETY: By the contract; the end of a queue pair unpublishes it first, and then waits for
        // references.
        let qp = unsafe { Qp::<T>::from_raw(qp.cast()) };
        let may_be_found = qp.may_connect() && qp.private().may_look_up();
        if may_be_found {
            qp.private().cm.get();
        }
        may_be_found
    }
    // CAST: Numbers have 24 bits; a negative number becomes one that is not in the table.
    // SAFETY: Only initialised queue pairs of `T` are published, and `hold` is called under the
    // lock that unpublishing takes.
    unsafe { bindings::ndk_qpn_get(number as u32, Some(hold::<T>)).cast() }
}

impl Drop for Qpn {
    fn drop(&mut self) {
        // SAFETY: The number was taken, and is given back once.
        unsafe { bindings::ndk_qpn_free(self.0) };
    }
}

/// The attributes of a new queue pair. C: `struct ib_qp_init_attr`.
pub(crate) struct QpInit<'a, T: Operations> {
    /// Its protection domain.
    pub(crate) pd: &'a Pd<T>,
    /// The completion queue of sends.
    pub(crate) send_cq: &'a Cq<T>,
    /// The completion queue of receives.
    pub(crate) recv_cq: &'a Cq<T>,
    /// The source of receives; `None` for its own queue.
    pub(crate) srq: Option<&'a Srq<T>>,
    /// The sizes asked for.
    pub(crate) caps: QpCaps,
    /// Every send completes, regardless of its flags.
    pub(crate) signal_all: bool,
    /// Its number, unique in the module.
    pub(crate) qpn: u32,
    /// Names the queue pair in its completions.
    pub(crate) cookie: QpCookie,
    /// Calls its consumer.
    pub(crate) upcall: QpUpcall,
    /// The program's part of the command; may ask for receives that are posted without a call.
    pub(crate) data: &'a UserData,
}

/// The operations of a queue pair that its consumer calls.
pub(crate) trait QpOperations<T: Operations>: Sized + Send + Sync + 'static {
    /// Makes a queue pair of type RC, and returns the sizes granted, none smaller than asked for.
    fn create(device: &Device<T>, init: &QpInit<'_, T>) -> Result<(Self, QpCaps)>;

    /// Changes state or attributes. Going to the error state works from every state.
    fn modify(&self, change: &QpChange) -> Result;

    /// Returns the present attributes.
    fn query(&self) -> QpAttributes;

    /// Describes the present state of the queue pair. May sleep.
    fn describe(&self, _details: &mut Details) -> Result {
        Ok(())
    }

    /// Ends a queue pair: flushes all outstanding requests, and reports the last event of a
    /// connection. Then this layer waits for the references of iw_cm, and ends the upcalls.
    fn destroy(&self);

    /// Posts to the send queue until the chain ends. Any context.
    ///
    /// An error concerns the request that `chain` gave last; the requests before it stay posted.
    fn post_send(&self, chain: &mut SendChain<'_>) -> Result;

    /// Posts to the receive queue; otherwise like [`QpOperations::post_send`]. Any context.
    fn post_recv(&self, chain: &mut RecvChain<'_>) -> Result;
}

impl<P> Object<bindings::ib_qp, P> {
    /// Holds the queue pair as long as the result exists. Only while another reference (of iw_cm)
    /// holds the queue pair already.
    pub(super) fn hold(&self) -> ScopeGuard<(), impl FnOnce(())> {
        let cm = self.private().cm.clone();
        cm.get();
        ScopeGuard::new(move || cm.put())
    }
}

/// Views a queue pair by its number; for calls during which iw_cm holds it.
///
/// # Safety
///
/// During `'a` the queue pair with this number, if there is one, is not destroyed.
pub(super) unsafe fn by_number<'a, T: Operations>(number: u32) -> Result<&'a Qp<T>> {
    let qp = find(number);
    if qp.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: Only initialised queue pairs of `T` are published, and the caller keeps this one.
    Ok(unsafe { Qp::<T>::from_raw(qp) })
}

/// Initialises `qp`, and writes the granted sizes to `attr`. `EINVAL` if a completion queue is
/// missing, `EOPNOTSUPP` for types other than RC, and for flags.
///
/// # Safety
///
/// The domain of `qp` and the queues that `attr` names are null or live objects of `T`, and live as
/// long as the queue pair.
pub(super) unsafe fn create<T: Operations>(
    mut qp: NewObject<bindings::ib_qp, T::Qp>,
    attr: &mut bindings::ib_qp_init_attr,
    data: &UserData,
) -> Result {
    if attr.qp_type != bindings::ib_qp_type_IB_QPT_RC || attr.create_flags != 0 {
        return Err(EOPNOTSUPP);
    }
    if attr.send_cq.is_null() || attr.recv_cq.is_null() {
        return Err(EINVAL);
    }
    let owner = Owner::of_caller(!qp.uobject.is_null())?;
    let number = Number::take(&owner)?;
    let qpn = number.qpn().ok_or(EINVAL)?.number();
    let cm = CmRefs::new()?;
    // SAFETY: `destroy_qp` closes it; on an error it is closed below.
    let target = unsafe { UpcallTarget::open(qp.as_raw()) }?;
    // SAFETY: The core sets device and domain before it asks for creation; the caller says that
    // domain and queues live as long as the queue pair uses them.
    let (device, init) = unsafe {
        let init = QpInit::<T> {
            pd: Pd::<T>::from_raw(qp.pd),
            send_cq: Cq::<T>::from_raw(attr.send_cq),
            recv_cq: Cq::<T>::from_raw(attr.recv_cq),
            srq: (!attr.srq.is_null()).then(|| Srq::<T>::from_raw(attr.srq)),
            caps: QpCaps::from_c(&attr.cap),
            signal_all: attr.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
            qpn,
            cookie: number.cookie(qp.as_raw()),
            upcall: QpUpcall(target.clone()),
            data,
        };
        (Device::<T>::from_raw(qp.device), init)
    };
    let (payload, caps) = T::Qp::create(device, &init).inspect_err(|_| target.close())?;
    caps.fill(&mut attr.cap);
    let raw = qp.as_raw();
    qp.qp_num = qpn;
    let private = QpPrivate {
        target,
        cm,
        owner,
        changed_by: Atomic::new(0),
        number,
        _mapping: MappingSlot::new(data.take_mapping()),
    };
    qp.init(private, payload);
    // SAFETY: The queue pair was initialised just now.
    if let Some(qpn) = unsafe { Qp::<T>::from_raw(raw) }.private().number.qpn() {
        qpn.publish(raw);
    }
    Ok(())
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_qp)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_until_given_back() -> Result {
        let qp = 4096 as *mut bindings::ib_qp;
        let one = Qpn::take()?;
        let two = Qpn::take()?;
        let number = one.0;
        assert!(number != two.0);
        // Other providers count up from one; restrack wants 24 bits.
        assert!((1 << 23..1 << 24).contains(&number));
        assert!(find(number).is_null());
        one.publish(qp);
        kunit_assert_eq!(find(number), qp);
        one.unpublish();
        assert!(find(number).is_null());
        // The number is not free yet.
        let three = Qpn::take()?;
        assert!(three.0 != number);
        one.publish(qp);
        drop(one);
        assert!(find(number).is_null());
        assert!(find(u32::MAX).is_null());
        Ok(())
    }

    #[test]
    fn references_of_the_cm_are_waited_for() -> Result {
        let refs = CmRefs::new()?;
        refs.get();
        refs.put();
        assert!(!refs.none.wait_timeout(1));
        refs.finish();
        assert!(refs.none.wait_timeout(1));
        Ok(())
    }
}
