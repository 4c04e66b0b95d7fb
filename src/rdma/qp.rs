// SPDX-License-Identifier: GPL-2.0

//! Queue pairs, and the space of their numbers.
//!
//! iw_cm names queue pairs by number and may look one up on another device
//! than the one it was made on, so all devices of the module share one space.
//! That other device may be another provider's: numbers of queue pairs are
//! taken from where those of other providers are not.

use kernel::{
    error::{
        from_result,
        to_result, //
    },
    ffi::c_int,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};

use super::{
    cq::Cq,
    device::Device,
    object::{
        IbObject,
        Object,
        Pd, //
    },
    recv::RecvChain,
    srq::Srq,
    table::{
        kernel_only,
        OperationsVTable, //
    },
    types::{
        QpCaps,
        QpChange, //
    },
    upcall::{
        QpUpcall,
        UpcallTarget, //
    },
    work::SendChain,
    Operations, //
};
use crate::{
    bindings,
    sys::event::Event, //
};

/// What this layer keeps with a queue pair.
pub(crate) struct Private {
    live: Arc<UpcallTarget<bindings::ib_qp>>,
    cm: Arc<CmRefs>,
    _number: Qpn,
}

impl IbObject for bindings::ib_qp {
    type Private = Private;
}

/// A queue pair with the provider's payload.
pub(crate) type Qp<T> = Object<bindings::ib_qp, <T as Operations>::Qp>;

/// Names a queue pair in its completions; only the consumer can do something with it.
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
struct CmRefs {
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

    fn get(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    fn put(&self) {
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

/// Keeps a queue pair from being destroyed as long as it exists.
pub(super) struct Hold(Arc<CmRefs>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.put();
    }
}

/// A number in the module-wide space, given back on drop.
struct Qpn(u32);

impl Qpn {
    /// Takes a number under which nothing is found yet. Process context.
    ///
    /// `EBUSY` when all are taken.
    fn take() -> Result<Self> {
        let mut number = 0;
        // SAFETY: `number` is writable.
        to_result(unsafe { bindings::ndk_qpn_reserve(&mut number) })?;
        Ok(Self(number))
    }

    /// Lets `qp` be found under a number that was taken. Process context.
    fn publish(number: u32, qp: *mut bindings::ib_qp) {
        // SAFETY: `qp` is stored, not followed.
        unsafe { bindings::ndk_qpn_publish(number, qp.cast()) };
    }

    /// The queue pair of `number`, or null. Any context.
    fn find(number: c_int) -> *mut bindings::ib_qp {
        // CAST: Numbers have 24 bits; a negative one becomes one that is not there.
        // SAFETY: Looks into a table that has its own lock.
        unsafe { bindings::ndk_qpn_find(number as u32).cast() }
    }
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
}

/// A new queue pair.
pub(crate) struct QpCreated<P> {
    /// What stands behind it.
    pub(crate) payload: P,
    /// The sizes granted, none smaller than asked for.
    pub(crate) caps: QpCaps,
}

impl<P> Object<bindings::ib_qp, P> {
    /// Holds the queue pair. Only while somebody else (iw_cm) holds it already.
    pub(super) fn hold(&self) -> Hold {
        let cm = self.extra().cm.clone();
        cm.get();
        Hold(cm)
    }
}

/// Views a queue pair by its number; for calls during which iw_cm holds it.
///
/// # Safety
///
/// During `'a` the queue pair with this number, if there is one, is not destroyed.
pub(super) unsafe fn by_number<'a, T: Operations>(number: u32) -> Result<&'a Qp<T>> {
    // CAST: Numbers have 24 bits.
    let qp = Qpn::find(number as c_int);
    if qp.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: Only initialised queue pairs of `T` are published, and the caller keeps this one.
    Ok(unsafe { Qp::<T>::from_raw(qp) })
}

impl<T: Operations> OperationsVTable<T> {
    /// C: `ib_device_ops.create_qp`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `qp` is a new object of [`Object::SIZE`] bytes.
    pub(super) unsafe extern "C" fn create_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            kernel_only(udata)?;
            // SAFETY: The core passes valid attributes, to be updated.
            let attr = unsafe { &mut *attr };
            if attr.qp_type != bindings::ib_qp_type_IB_QPT_RC || attr.create_flags != 0 {
                return Err(EOPNOTSUPP);
            }
            // SAFETY: `qp` is a new object, as the caller says.
            unsafe { Self::make_qp(qp, attr) }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As for `create_qp`.
    unsafe fn make_qp(qp: *mut bindings::ib_qp, attr: &mut bindings::ib_qp_init_attr) -> Result {
        if attr.send_cq.is_null() || attr.recv_cq.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: `destroy_qp` closes it; on an error it is closed below.
        let live = unsafe { UpcallTarget::open(qp) }?;
        let number = Qpn::take()?;
        let cm = CmRefs::new()?;
        // SAFETY: The core sets device and domain before it asks for creation; domain and queues
        // are live as long as the queue pair uses them.
        let (device, init) = unsafe {
            let init = QpInit::<T> {
                pd: Pd::<T>::from_raw((*qp).pd),
                send_cq: Cq::<T>::from_raw(attr.send_cq),
                recv_cq: Cq::<T>::from_raw(attr.recv_cq),
                srq: (!attr.srq.is_null()).then(|| Srq::<T>::from_raw(attr.srq)),
                caps: QpCaps::from_c(&attr.cap),
                signal_all: attr.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
                qpn: number.0,
                cookie: QpCookie(qp.addr()),
                upcall: QpUpcall(live.clone()),
            };
            (Device::<T>::from_raw((*qp).device), init)
        };
        let created = T::create_qp(device, &init).inspect_err(|_| live.close())?;
        created.caps.fill(&mut attr.cap);
        let qpn = number.0;
        let extra = Private {
            live,
            cm,
            _number: number,
        };
        // SAFETY: The core allocated `qp` in the size of a `Qp<T>`.
        unsafe {
            (*qp).qp_num = qpn;
            Qp::<T>::init(qp, extra, created.payload);
        }
        Qpn::publish(qpn, qp);
        Ok(())
    }

    /// C: `ib_device_ops.destroy_qp`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn destroy_qp(
        qp: *mut bindings::ib_qp,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: The queue pair is live until `clear`.
        let this = unsafe { Qp::<T>::from_raw(qp) };
        T::destroy_qp(this);
        this.extra().cm.finish();
        this.extra().live.close();
        // SAFETY: The core destroys an object once; iw_cm has let go of it.
        unsafe { Qp::<T>::clear(qp) };
        0
    }

    /// C: `ib_device_ops.modify_qp`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn modify_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            kernel_only(udata)?;
            // SAFETY: The caller passes a live queue pair and valid attributes.
            let (this, attr) = unsafe { (Qp::<T>::from_raw(qp), &*attr) };
            T::modify_qp(this, &QpChange::from_c(attr, mask)?)?;
            Ok(0)
        })
    }

    /// C: `ib_device_ops.query_qp`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn query_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        _mask: c_int,
        init: *mut bindings::ib_qp_init_attr,
    ) -> c_int {
        // SAFETY: The caller passes a live queue pair and structures to fill in.
        let (this, attr, init) = unsafe { (Qp::<T>::from_raw(qp), &mut *attr, &mut *init) };
        let now = T::query_qp(this);
        attr.qp_state = now.state.to_c();
        attr.cur_qp_state = attr.qp_state;
        attr.path_mtu = bindings::ib_mtu_IB_MTU_4096;
        // CAST: A set of bits, kept bit by bit.
        attr.qp_access_flags = now.access.bits() as c_int;
        attr.max_rd_atomic = now.max_rd_atomic;
        attr.max_dest_rd_atomic = now.max_dest_rd_atomic;
        attr.port_num = 1;
        now.caps.fill(&mut attr.cap);
        init.cap = attr.cap;
        init.qp_type = bindings::ib_qp_type_IB_QPT_RC;
        init.sq_sig_type = match now.signal_all {
            true => bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
            false => bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
        };
        0
    }

    /// C: `ib_device_ops.post_send`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `wr` starts a chain of valid requests.
    pub(super) unsafe extern "C" fn post_send(
        qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_send_wr,
        bad_wr: *mut *const bindings::ib_send_wr,
    ) -> c_int {
        // SAFETY: The consumer posts to a live queue pair.
        let this = unsafe { Qp::<T>::from_raw(qp) };
        // SAFETY: The consumer passes a chain of valid requests.
        let mut chain = unsafe { SendChain::<T>::new(wr) };
        let result = T::post_send(this, &mut chain);
        // SAFETY: The core passes a place to write to.
        unsafe { chain.report(result, bad_wr) }
    }

    /// C: `ib_device_ops.post_recv`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; `wr` starts a chain of valid requests.
    pub(super) unsafe extern "C" fn post_recv(
        qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: The consumer posts to a live queue pair.
        let this = unsafe { Qp::<T>::from_raw(qp) };
        // SAFETY: The consumer passes a chain of valid requests.
        let mut chain = unsafe { RecvChain::new(wr) };
        let result = T::post_recv(this, &mut chain);
        // SAFETY: The core passes a place to write to.
        unsafe { chain.report(result, bad_wr) }
    }

    /// C: `ib_device_ops.iw_add_ref`. Interrupts are off.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn iw_add_ref(qp: *mut bindings::ib_qp) {
        // SAFETY: iw_cm adds a reference to a live queue pair.
        unsafe { Qp::<T>::from_raw(qp) }.extra().cm.get();
    }

    /// C: `ib_device_ops.iw_rem_ref`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; the reference was added before.
    pub(super) unsafe extern "C" fn iw_rem_ref(qp: *mut bindings::ib_qp) {
        // SAFETY: The reference that is given up here keeps the queue pair until it is.
        let cm = unsafe { Qp::<T>::from_raw(qp) }.extra().cm.clone();
        cm.put();
    }

    /// C: `ib_device_ops.iw_get_qp`. Interrupts are off.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn iw_get_qp(
        _ib: *mut bindings::ib_device,
        number: c_int,
    ) -> *mut bindings::ib_qp {
        Qpn::find(number)
    }
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
        assert!(Qpn::find(number as c_int).is_null());
        Qpn::publish(number, qp);
        assert!(Qpn::find(number as c_int) == qp);
        drop(one);
        assert!(Qpn::find(number as c_int).is_null());
        assert!(Qpn::find(-1).is_null());
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
