// SPDX-License-Identifier: GPL-2.0

//! Calls from iw_cm: connect, accept, reject, listen.
//!
//! An identifier keeps one word for the provider. On one that listens it is
//! the reference to the `T::Listener`; on one that a request made it is the
//! [`RequestId`], until accept or reject takes it; on one that connects it is
//! null.

use core::{
    ptr,
    ptr::NonNull,
    slice, //
};

use kernel::{
    error::from_result,
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};

use super::{
    cm::{
        CmId,
        ConnParams,
        RequestId, //
    },
    device::Device,
    qp::{
        self,
        Qp, //
    },
    table::OperationsVTable,
    Operations, //
};
use crate::bindings;

/// Views private data.
///
/// # Safety
///
/// `data` is null or readable for `len` bytes during `'a`.
unsafe fn private_data<'a>(data: *const c_void, len: usize) -> &'a [u8] {
    if data.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: The caller says so.
    unsafe { slice::from_raw_parts(data.cast(), len) }
}

/// Views connection parameters.
///
/// # Safety
///
/// `param` and the data it points at are valid during `'a`.
unsafe fn params<'a>(param: *const bindings::iw_cm_conn_param) -> ConnParams<'a> {
    // SAFETY: The caller says so.
    let param = unsafe { &*param };
    ConnParams {
        ord: param.ord,
        ird: param.ird,
        // SAFETY: The caller says so.
        private_data: unsafe { private_data(param.private_data, param.private_data_len.into()) },
    }
}

/// Takes the number of the request that made the identifier. `EINVAL` if it keeps none.
fn take_request<T: Operations>(id: &CmId<T>) -> Result<RequestId> {
    // SAFETY: The word is readable and writable as long as `id`; nobody else uses it.
    let kept = unsafe { id.provider_data().replace(ptr::null_mut()) };
    RequestId::from_word(kept).ok_or(EINVAL)
}

/// Takes the listener that the identifier keeps. `EINVAL` if it keeps none.
///
/// # Safety
///
/// The identifier keeps null or an `Arc<T::Listener>`, and nobody else takes it meanwhile.
unsafe fn take_listener<T: Operations>(id: &CmId<T>) -> Result<Arc<T::Listener>> {
    // SAFETY: The word is readable and writable as long as `id`; nobody else uses it.
    let kept = unsafe { id.provider_data().replace(ptr::null_mut()) };
    if kept.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: The caller says what it is, and it was taken out just now.
    Ok(unsafe { Arc::from_raw(kept.cast::<T::Listener>()) })
}

impl<T: Operations> OperationsVTable<T> {
    /// # Safety
    ///
    /// `id` is null or an identifier that iw_cm called us with.
    unsafe fn id(id: *mut bindings::iw_cm_id) -> Result<CmId<T>> {
        let id = NonNull::new(id).ok_or(EINVAL)?;
        // SAFETY: iw_cm keeps the identifier during the call, and calls the device it is of.
        Ok(unsafe { CmId::get(id) })
    }

    /// Views what names one side of a connection.
    ///
    /// # Safety
    ///
    /// As for [`Self::id`]; `param` is valid during `'a`, in which iw_cm holds the queue pair that
    /// it names.
    unsafe fn side<'a>(
        id: *mut bindings::iw_cm_id,
        param: *mut bindings::iw_cm_conn_param,
    ) -> Result<(CmId<T>, &'a Qp<T>, ConnParams<'a>)> {
        // SAFETY: The caller says so.
        unsafe {
            Ok((
                Self::id(id)?,
                qp::by_number::<T>((*param).qpn)?,
                params(param),
            ))
        }
    }

    /// C: `ib_device_ops.iw_connect`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; iw_cm holds the queue pair that is named.
    pub(super) unsafe extern "C" fn iw_connect(
        id: *mut bindings::iw_cm_id,
        param: *mut bindings::iw_cm_conn_param,
    ) -> c_int {
        from_result(|| {
            // SAFETY: iw_cm passes its identifier and valid parameters, and holds the queue pair.
            let (id, qp, params) = unsafe { Self::side(id, param) }?;
            // The answer may come, and iw_cm give its reference up, before this returns.
            let _held = qp.hold();
            T::connect(id, qp, &params)?;
            Ok(0)
        })
    }

    /// C: `ib_device_ops.iw_accept`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`]; iw_cm holds the queue pair that is named.
    pub(super) unsafe extern "C" fn iw_accept(
        id: *mut bindings::iw_cm_id,
        param: *mut bindings::iw_cm_conn_param,
    ) -> c_int {
        from_result(|| {
            // SAFETY: iw_cm passes its identifier and valid parameters, and holds the queue pair.
            let (id, qp, params) = unsafe { Self::side(id, param) }?;
            let request = take_request(&id)?;
            T::accept(id, qp, request, &params)?;
            Ok(0)
        })
    }

    /// C: `ib_device_ops.iw_reject`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn iw_reject(
        id: *mut bindings::iw_cm_id,
        data: *const c_void,
        len: u8,
    ) -> c_int {
        from_result(|| {
            // SAFETY: iw_cm passes its identifier and valid data.
            let (id, data) = unsafe { (Self::id(id)?, private_data(data, len.into())) };
            let request = take_request(&id)?;
            T::reject(&id, request, data)?;
            Ok(0)
        })
    }

    /// C: `ib_device_ops.iw_create_listen`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn iw_create_listen(
        id: *mut bindings::iw_cm_id,
        backlog: c_int,
    ) -> c_int {
        from_result(|| {
            // SAFETY: iw_cm passes its identifier, of a device that it keeps during the call.
            let (device, id) = unsafe { (Device::<T>::from_raw((*id).device), Self::id(id)?) };
            let backlog = u32::try_from(backlog).map_err(|_| EINVAL)?;
            let listener = T::create_listen(device, id.clone(), backlog)?;
            // SAFETY: The identifier is new to us, so nobody else uses the word.
            unsafe { *id.provider_data() = Arc::into_raw(listener).cast_mut().cast() };
            Ok(0)
        })
    }

    /// C: `ib_device_ops.iw_destroy_listen`.
    ///
    /// # Safety
    ///
    /// See [`OperationsVTable`].
    pub(super) unsafe extern "C" fn iw_destroy_listen(id: *mut bindings::iw_cm_id) -> c_int {
        from_result(|| {
            // SAFETY: iw_cm passes its identifier.
            let id = unsafe { Self::id(id) }?;
            // SAFETY: `iw_create_listen` stored the listener, and iw_cm ends listening once.
            let listener = unsafe { take_listener(&id) }?;
            T::destroy_listen(listener)?;
            Ok(0)
        })
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_cm_ops)]
mod tests {
    use super::{
        super::{
            cm::CmRequest,
            stub::Stub, //
        },
        *, //
    };
    use core::{
        net::{
            Ipv4Addr,
            SocketAddr,
            SocketAddrV4, //
        },
        num::NonZeroUsize, //
    };

    type Table = OperationsVTable<Stub>;

    /// Counts references in `tos`, which nothing else uses here.
    ///
    /// # Safety
    ///
    /// `id` is valid.
    unsafe extern "C" fn add_ref(id: *mut bindings::iw_cm_id) {
        // SAFETY: The caller says so.
        unsafe { (*id).tos += 1 };
    }

    /// # Safety
    ///
    /// `id` is valid.
    unsafe extern "C" fn rem_ref(id: *mut bindings::iw_cm_id) {
        // SAFETY: The caller says so.
        unsafe { (*id).tos -= 1 };
    }

    /// Does with a request what iw_cm does, on the same identifier; refuses it when mapped.
    ///
    /// # Safety
    ///
    /// `id` and `event` are valid.
    unsafe extern "C" fn handler(
        id: *mut bindings::iw_cm_id,
        event: *mut bindings::iw_cm_event,
    ) -> c_int {
        // SAFETY: The caller says so.
        let (id, event) = unsafe { (&mut *id, &*event) };
        if id.mapped() {
            return ENOMEM.to_errno();
        }
        id.provider_data = event.provider_data;
        0
    }

    fn new_id() -> Result<KBox<bindings::iw_cm_id>> {
        let mut id = KBox::new(bindings::iw_cm_id::default(), GFP_KERNEL)?;
        id.add_ref = Some(add_ref);
        id.rem_ref = Some(rem_ref);
        id.event_handler = Some(handler);
        Ok(id)
    }

    fn request() -> CmRequest<'static> {
        let addr: SocketAddr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9).into();
        CmRequest {
            local: addr,
            remote: addr,
            ird: 1,
            ord: 1,
            private_data: &[1, 2, 3],
        }
    }

    #[test]
    fn listener_is_kept_until_listening_ends() -> Result {
        let mut id = new_id()?;
        // The stand-in provider does not look at its device: room for one will do.
        let mut device = KBox::<Device<Stub>>::new_uninit(GFP_KERNEL)?;
        id.device = device.as_mut_ptr().cast();
        let raw = &raw mut *id;
        // SAFETY: `id` is as iw_cm would pass it.
        unsafe {
            assert_eq!(Table::iw_create_listen(raw, 7), 0);
            assert!(!(*raw).provider_data.is_null());
            assert_eq!(Table::iw_destroy_listen(raw), 0);
            assert!((*raw).provider_data.is_null());
            assert_eq!(Table::iw_destroy_listen(raw), -22);
            assert_eq!(Table::iw_create_listen(raw, -1), -22);
            assert_eq!((*raw).tos, 0);
        }
        Ok(())
    }

    #[test]
    fn request_comes_back_in_reject() -> Result {
        let mut id = new_id()?;
        let raw = &raw mut *id;
        let number = RequestId::new(NonZeroUsize::MIN);
        // SAFETY: `id` is as iw_cm would pass it.
        unsafe {
            let held = Table::id(raw)?;
            assert!(held.connect_request(&request(), number).is_ok());
            assert_eq!(Table::iw_reject(raw, ptr::null(), 0), 0);
            assert_eq!(Table::iw_reject(raw, ptr::null(), 0), -22);
        }
        Ok(())
    }

    #[test]
    fn lost_request_is_reported() -> Result {
        let mut id = new_id()?;
        id.set_mapped(true);
        // SAFETY: `id` is as iw_cm would pass it.
        let held = unsafe { Table::id(&raw mut *id) }?;
        let lost = held.connect_request(&request(), RequestId::new(NonZeroUsize::MIN));
        assert!(lost == Err(ENOMEM));
        drop(held);
        assert_eq!(id.tos, 0);
        Ok(())
    }

    #[test]
    fn unknown_queue_pair_cannot_connect() -> Result {
        let mut id = new_id()?;
        let mut param = bindings::iw_cm_conn_param::default();
        // SAFETY: `id` and `param` are as iw_cm would pass them.
        let result = unsafe { Table::iw_connect(&raw mut *id, &mut param) };
        assert_eq!(result, -22);
        assert_eq!(id.tos, 0);
        Ok(())
    }
}
