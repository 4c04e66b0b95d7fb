// SPDX-License-Identifier: GPL-2.0

//! Queue pairs, and the space of their numbers.
//!
//! iw_cm names queue pairs by number and may look one up on another device
//! than the one it was made on, so all devices of the module share one space.
//! That other device may be another provider's: numbers of queue pairs are
//! taken from where those of other providers are not.

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

/// What this layer keeps with a queue pair.
pub(crate) struct QpPrivate {
    target: Arc<UpcallTarget<bindings::ib_qp>>,
    /// The references of iw_cm.
    pub(super) cm: Arc<CmRefs>,
    owner: Owner,
    /// The address of the task that has changed it last; 0 before.
    changed_by: Atomic<usize>,
    number: Number,
    /// Of its receives; it goes after the queue pair.
    _mapping: MappingSlot,
}

/// The number of a queue pair, which ends with it.
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

    /// What completions of `qp` point at.
    fn cookie(&self, qp: *mut bindings::ib_qp) -> QpCookie {
        match self {
            Self::Kernel(_) => QpCookie(qp.addr()),
            Self::User(qpn) => qpn.cookie(),
        }
    }
}

impl QpPrivate {
    /// Nobody finds the queue pair by its number any more. Process context.
    pub(super) fn hide(&self) {
        if let Some(qpn) = self.number.qpn() {
            qpn.unpublish();
        }
    }

    /// Remembers that the calling task changes it.
    pub(super) fn note_change(&self) {
        self.changed_by.store(Task::current_raw().addr(), Relaxed);
    }

    /// Returns true if the calling task may have it looked up: the process that it belongs to, and
    /// of the kernel the task that has changed it last, as rdma_cm does just before it has it
    /// connected. Any context that belongs to a task.
    fn may_be_asked_for(&self) -> bool {
        match &self.owner {
            Owner::Kernel => self.changed_by.load(Relaxed) == Task::current_raw().addr(),
            program => program.may_ask(),
        }
    }

    /// Who may connect it.
    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Waits for iw_cm, and ends the upcalls. Process context, after [`QpPrivate::hide`].
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

/// Names a queue pair in its completions; only the consumer can do something with it. For a
/// program's it is that of a stand-in: [`UserQpn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpCookie(usize);

impl QpCookie {
    /// From a number that [`QpCookie::into_raw`] gave.
    #[inline]
    pub(crate) fn from_raw(raw: usize) -> Self {
        Self(raw)
    }

    /// To a number, for those who do not know this type.
    #[inline]
    pub(crate) fn into_raw(self) -> usize {
        self.0
    }

    /// The C pointer. It is handed to consumers and not followed here.
    #[inline]
    pub(super) fn as_raw(self) -> *mut bindings::ib_qp {
        self.0 as *mut bindings::ib_qp
    }
}

/// The references of iw_cm to a queue pair, and one of its owner.
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
    /// Takes a number under which nothing is found yet. Process context.
    ///
    /// `ENOMEM` when all are taken, as for any object of which there are too many, or there is no
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

    /// Lets `qp` be found under the number. Process context.
    fn publish(&self, qp: *mut bindings::ib_qp) {
        // SAFETY: `qp` is stored, not followed.
        unsafe { bindings::ndk_qpn_publish(self.0, qp.cast()) };
    }

    /// Lets nothing be found under the number, and keeps it. Process context.
    pub(super) fn unpublish(&self) {
        // SAFETY: The number was taken, so it has a place in the table.
        unsafe { bindings::ndk_qpn_unpublish(self.0) };
    }
}

/// The queue pair of `number`, or null. Any context.
fn find(number: u32) -> *mut bindings::ib_qp {
    // SAFETY: Looks into a table that has its own lock.
    unsafe { bindings::ndk_qpn_find(number).cast() }
}

/// The queue pair of `number`, with a reference as iw_cm holds them, if it waits to be connected and
/// it is not for another task to ask; else null. Any context that belongs to the asking task.
///
/// iw_cm keeps the reference while it asks the port mapper, before it asks the provider: the end of
/// the queue pair waits as long. The device that iw_cm asks is not the queue pair's where
/// rdma_cm has a device of the listener's namespace accept.
pub(super) fn get<T: Operations>(number: c_int) -> *mut bindings::ib_qp {
    /// # Safety
    ///
    /// `qp` is a queue pair of `T` that was published.
    unsafe extern "C" fn hold<T: Operations>(qp: *mut c_void) -> bool {
        // SAFETY: By the contract; who destroys it unpublishes it first, and then waits for
        // references.
        let qp = unsafe { Qp::<T>::from_raw(qp.cast()) };
        let is_askable = qp.may_connect() && qp.private().may_be_asked_for();
        if is_askable {
            qp.private().cm.get();
        }
        is_askable
    }
    // CAST: Numbers have 24 bits; a negative one becomes one that is not there.
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

/// What a new queue pair is to be. C: `struct ib_qp_init_attr`.
pub(crate) struct QpInit<'a, T: Operations> {
    /// Its protection domain.
    pub(crate) pd: &'a Pd<T>,
    /// Where sends complete.
    pub(crate) send_cq: &'a Cq<T>,
    /// Where receives complete.
    pub(crate) recv_cq: &'a Cq<T>,
    /// Where receives come from, if not from a queue of its own.
    pub(crate) srq: Option<&'a Srq<T>>,
    /// The sizes asked for.
    pub(crate) caps: QpCaps,
    /// Every send completes, whatever its flags say.
    pub(crate) signal_all: bool,
    /// Its number, unique in the module.
    pub(crate) qpn: u32,
    /// What to put into its completions.
    pub(crate) cookie: QpCookie,
    /// Calls its consumer.
    pub(crate) upcall: QpUpcall,
    /// A program posts receives without a call if this asks for it.
    pub(crate) data: &'a UserData,
}

/// What stands behind a queue pair, towards its consumer.
pub(crate) trait QpOperations<T: Operations>: Sized + Send + Sync + 'static {
    /// Makes a queue pair of type RC, and returns the sizes granted, none smaller than asked for.
    fn create(device: &Device<T>, init: &QpInit<'_, T>) -> Result<(Self, QpCaps)>;

    /// Changes state or attributes. Going to the error state works from every state.
    fn modify(&self, change: &QpChange) -> Result;

    /// Returns the present attributes.
    fn query(&self) -> QpAttributes;

    /// Says what the queue pair is doing. May sleep.
    fn describe(&self, _details: &mut Details) -> Result {
        Ok(())
    }

    /// Ends a queue pair: everything outstanding is flushed, and a connection gets its last
    /// event. Then references of iw_cm are waited for, and upcalls end.
    fn destroy(&self);

    /// Posts to the send queue until the chain ends. Any context.
    ///
    /// An error concerns the request that `chain` gave last; those before stay posted.
    fn post_send(&self, chain: &mut SendChain<'_>) -> Result;

    /// Posts to the receive queue; otherwise like [`QpOperations::post_send`]. Any context.
    fn post_recv(&self, chain: &mut RecvChain<'_>) -> Result;
}

impl<P> Object<bindings::ib_qp, P> {
    /// Keeps the queue pair from being destroyed as long as the result exists. Only while somebody
    /// else (iw_cm) does so already.
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

/// Makes what stands behind `qp`, and says in `attr` what was granted. `EINVAL` if a completion
/// queue is missing, `EOPNOTSUPP` for other types than RC, and for flags.
///
/// # Safety
///
/// The domain of `qp` and the queues that `attr` names are null or live ones of `T`, and live as
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
    // SAFETY: It was initialised just now.
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
        // It is nobody else's meanwhile.
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
