// SPDX-License-Identifier: GPL-2.0

//! The calls of iw_cm: connect, accept, reject, listen.
//!
//! An identifier keeps one word for the provider. In a listening identifier
//! this is the reference to the `T::Listener`, or null if the listener takes no
//! requests; in an identifier that a request made it is the [`RequestId`],
//! until accept or reject takes it; in a connecting identifier it is null.

use core::{
    ptr,
    ptr::NonNull,
    slice, //
};

use super::{
    cm::{
        CmId,
        ConnParams,
        RequestId, //
    },
    prelude::*,
    qp::{
        self,
        Qp, //
    }, //
};
use crate::sys::netdev::Net;

/// The operations of a queue pair that iw_cm calls.
pub(crate) trait CmOperations<T: Operations> {
    /// Returns true in a state that the owner alone sets, to connect the queue pair. In any other
    /// state iw_cm finds no queue pair. Any context, also with interrupts off.
    fn may_connect(&self) -> bool;

    /// Starts to connect to the addresses of `id`.
    ///
    /// After `Ok` exactly one [`CmId::connect_reply`] must follow; after an error none. `EINVAL` in
    /// a state in which [`CmOperations::may_connect`] is false.
    fn connect(&self, id: CmId<T>, params: &ConnParams<'_>) -> Result;

    /// Accepts `request`; the events go to `id`.
    ///
    /// After `Ok` exactly one [`CmId::established`] must follow, and one [`CmId::closed`] in the
    /// end; after an error none.
    fn accept(&self, id: CmId<T>, request: RequestId, params: &ConnParams<'_>) -> Result;
}

/// A listening endpoint.
pub(crate) trait ListenerOperations<T: Operations>: Sized + Send + Sync + 'static {
    /// Listens in the network namespace `net` on the local address of `id`, and reports requests by
    /// [`CmId::connect_request`].
    fn create(device: &Device<T>, id: CmId<T>, net: u64, backlog: u32) -> Result<Arc<Self>>;

    /// Ends listening; no request is reported after this.
    fn destroy(self: &Arc<Self>, device: &Device<T>) -> Result;

    /// Refuses `request`, which made `id`, and sends `private_data` to the peer. iw_cm also refuses
    /// a request that its client has not taken: then [`CmId::client`] of `id` is still the
    /// listener's.
    fn reject(id: &CmId<T>, request: RequestId, private_data: &[u8]) -> Result;
}

/// Views private data.
///
/// # Safety
///
/// `data` is null or readable for `len` bytes during `'a`.
pub(super) unsafe fn private_data<'a>(data: *const c_void, len: usize) -> &'a [u8] {
    if data.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: The caller says that the data is there, and it is not null.
    unsafe { slice::from_raw_parts(data.cast(), len) }
}

/// Takes the number of the request that made the identifier. `EINVAL` if it keeps no number.
pub(super) fn take_request<T: Operations>(id: &CmId<T>) -> Result<RequestId> {
    // SAFETY: The word is readable and writable as long as `id`; no other code uses it.
    let kept = unsafe { id.provider_data().replace(ptr::null_mut()) };
    RequestId::from_word(kept).ok_or(EINVAL)
}

/// Takes the listener that the identifier keeps. `EINVAL` if it keeps no listener.
///
/// # Safety
///
/// The identifier keeps null or an `Arc<T::Listener>`, and no other code takes it during the call.
unsafe fn take_listener<T: Operations>(id: &CmId<T>) -> Result<Arc<T::Listener>> {
    // SAFETY: The word is readable and writable as long as `id`; no other code uses it.
    let kept = unsafe { id.provider_data().replace(ptr::null_mut()) };
    if kept.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: The caller says that this is an `Arc<T::Listener>`; it was taken out just now.
    Ok(unsafe { Arc::from_raw(kept.cast::<T::Listener>()) })
}

/// Ends listening. No effect if the listener takes no requests.
///
/// # Safety
///
/// As for [`client`] and [`take_listener`].
pub(super) unsafe fn end_listening<T: Operations>(id: *mut bindings::iw_cm_id) -> Result {
    // SAFETY: The caller says that this is a call of the client.
    if !unsafe { client(id) }?.is_stream {
        return Ok(());
    }
    // SAFETY: As above; iw_cm keeps the device of its identifier during the call.
    let device = unsafe { Device::<T>::from_raw((*id).device) };
    // SAFETY: The caller says that the identifier keeps null or a listener, which no other code
    // takes.
    unsafe { take_listener(&self::id::<T>(id)?) }?.destroy(device)
}

/// Stores the listener in the identifier, for [`take_listener`]. Once for each identifier.
pub(super) fn keep_listener<L>(id: &CmId<impl Operations<Listener = L>>, listener: Arc<L>) {
    // SAFETY: The word is readable and writable as long as `id`, which is new, so no other code
    // uses the word.
    unsafe { *id.provider_data() = Arc::into_raw(listener).cast_mut().cast() };
}

/// Adds a reference to the identifier of a call.
///
/// # Safety
///
/// `id` is null or an identifier that iw_cm called us with.
pub(super) unsafe fn id<T: Operations>(id: *mut bindings::iw_cm_id) -> Result<CmId<T>> {
    let id = NonNull::new(id).ok_or(EINVAL)?;
    // SAFETY: iw_cm keeps the identifier during the call, and calls the device of the identifier.
    Ok(unsafe { CmId::get(id) })
}

/// The consumer, as the rdma_cm identifier behind an iw_cm identifier describes it.
pub(super) struct CmClient<'a> {
    /// The queue pair made with the rdma_cm identifier (`rdma_create_qp()`), or null.
    pub(super) qp: *mut bindings::ib_qp,
    /// The identifier's device.
    pub(super) device: *mut bindings::ib_device,
    /// The identifier's network namespace.
    pub(super) net: Net<'a>,
    /// True in the port space of streams. Each port space has a separate table of ports.
    pub(super) is_stream: bool,
}

impl CmClient<'_> {
    /// Returns true if the client's listener at `id` takes requests, which are all of the space of
    /// streams.
    ///
    /// At a wildcard or a loopback address rdma_cm listens on all devices, and after an error gives
    /// up all of them, or the device that is being added. So a consumer of another space listens
    /// there, too, and gets no requests. At any other address it gets `EPROTONOSUPPORT`.
    pub(super) fn takes_requests<T: Operations>(&self, id: &CmId<T>) -> Result<bool> {
        if self.is_stream {
            return Ok(true);
        }
        let ip = id.local()?.ip();
        match ip.is_unspecified() || ip.is_loopback() {
            true => Ok(false),
            false => Err(EPROTONOSUPPORT),
        }
    }
}

/// Reads the client of `id`. `EINVAL` if it has none.
///
/// # Safety
///
/// `id` is live, and its client, which is rdma_cm, has called iw_cm and waits for it during `'a`.
pub(super) unsafe fn client<'a>(id: *mut bindings::iw_cm_id) -> Result<CmClient<'a>> {
    // SAFETY: The caller says that the identifier is live.
    let client = unsafe { (*id).context }.cast::<bindings::rdma_cm_id>();
    if client.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: The context is a `struct rdma_id_private`, which begins with the `rdma_cm_id` and
    // lives during the call. Its port space does not change. rdma_cm holds a reference to the
    // namespace from `__rdma_create_id()` to `_destroy_id()`, and changes the device only under
    // `handler_mutex`, which it holds in connect and accept; the device of a listening identifier
    // changes no more. `rdma_destroy_qp()` takes another mutex for the queue pair, so its pointer
    // is read once, and compared.
    unsafe {
        Ok(CmClient {
            qp: (&raw const (*client).qp).read_volatile(),
            device: (*client).device,
            net: Net::from_raw((*client).route.addr.dev_addr.net),
            is_stream: (*client).ps == bindings::rdma_ucm_port_space_RDMA_PS_TCP,
        })
    }
}

/// Views the arguments of a connect or accept.
///
/// # Safety
///
/// As for [`id`] and [`client`]; `param` and the data it points at are valid during `'a`, in which
/// iw_cm holds the queue pair that it names.
pub(super) unsafe fn conn_args<'a, T: Operations>(
    id: *mut bindings::iw_cm_id,
    param: *mut bindings::iw_cm_conn_param,
) -> Result<(CmId<T>, &'a Qp<T>, ConnParams<'a>)> {
    // SAFETY: The caller says that this is a call of the client.
    let client = unsafe { client(id) }?;
    // SAFETY: The caller says that the parameters are valid.
    let param = unsafe { &*param };
    let params = ConnParams {
        net: client.net,
        ord: param.ord,
        ird: param.ird,
        // SAFETY: The caller says that the data is valid, too.
        private_data: unsafe { private_data(param.private_data, param.private_data_len.into()) },
    };
    // SAFETY: The caller says that the queue pair is held.
    let qp = unsafe { qp::by_number::<T>(param.qpn) }?;
    // SAFETY: The caller says that the queue pair is held.
    if !unsafe { qp.private().owner().may_connect(qp.as_raw(), &client) } {
        return Err(EINVAL);
    }
    // SAFETY: The caller says that the identifier is valid.
    Ok((unsafe { self::id(id) }?, qp, params))
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_cm_ops)]
mod tests {
    use super::{
        super::{
            cm::CmInfo,
            table::OperationsVTable,
            tests::stub::Stub, //
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

    use crate::{
        kunit::harness::cases,
        sys::addr, //
    };
    use kernel::ffi::c_int;

    const TABLE: &bindings::ib_device_ops = OperationsVTable::<Stub>::table(false);

    /// Counts references in `tos`, which has no other use here.
    ///
    /// # Safety
    ///
    /// `id` is valid.
    unsafe extern "C" fn add_ref(id: *mut bindings::iw_cm_id) {
        // SAFETY: The caller says that the identifier is valid.
        unsafe { (*id).tos += 1 };
    }

    /// # Safety
    ///
    /// `id` is valid.
    unsafe extern "C" fn rem_ref(id: *mut bindings::iw_cm_id) {
        // SAFETY: The caller says that the identifier is valid.
        unsafe { (*id).tos -= 1 };
    }

    /// Treats a request as iw_cm does, but on the same identifier; refuses it if that is mapped.
    ///
    /// # Safety
    ///
    /// `id` and `event` are valid.
    unsafe extern "C" fn handler(
        id: *mut bindings::iw_cm_id,
        event: *mut bindings::iw_cm_event,
    ) -> c_int {
        // SAFETY: The caller says that the identifier is valid.
        let (id, event) = unsafe { (&mut *id, &*event) };
        if id.mapped() {
            return ENOMEM.to_errno();
        }
        id.provider_data = event.provider_data;
        0
    }

    /// An identifier of iw_cm, and that of its client, which must live as long.
    fn new_id() -> Result<(KBox<bindings::iw_cm_id>, KBox<bindings::rdma_cm_id>)> {
        let mut client = KBox::new(pin_init::zeroed::<bindings::rdma_cm_id>(), GFP_KERNEL)?;
        client.ps = bindings::rdma_ucm_port_space_RDMA_PS_TCP;
        let mut id = KBox::new(bindings::iw_cm_id::default(), GFP_KERNEL)?;
        id.context = (&raw mut *client).cast();
        id.add_ref = Some(add_ref);
        id.rem_ref = Some(rem_ref);
        id.event_handler = Some(handler);
        Ok((id, client))
    }

    fn request() -> CmInfo<'static> {
        let addr: SocketAddr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9).into();
        CmInfo {
            local: addr,
            remote: addr,
            ird: 1,
            ord: 1,
            private_data: &[1, 2, 3],
        }
    }

    #[test]
    fn listener_is_kept_until_listening_ends() -> Result {
        let (mut id, _client) = new_id()?;
        // The stand-in provider does not read its device: room for one suffices.
        let mut device = KBox::<Device<Stub>>::new_uninit(GFP_KERNEL)?;
        id.device = device.as_mut_ptr().cast();
        let raw = &raw mut *id;
        // SAFETY: `id` is as iw_cm would pass it.
        unsafe {
            kunit_assert_eq!(TABLE.iw_create_listen.ok_or(EINVAL)?(raw, 7), 0);
            assert!(!(*raw).provider_data.is_null());
            kunit_assert_eq!(TABLE.iw_destroy_listen.ok_or(EINVAL)?(raw), 0);
            assert!((*raw).provider_data.is_null());
            kunit_assert_eq!(TABLE.iw_destroy_listen.ok_or(EINVAL)?(raw), -22);
            kunit_assert_eq!(TABLE.iw_create_listen.ok_or(EINVAL)?(raw, -1), -22);
            kunit_assert_eq!((*raw).tos, 0);
        }
        Ok(())
    }

    #[test]
    fn request_comes_back_in_reject() -> Result {
        let (mut id, _client) = new_id()?;
        let raw = &raw mut *id;
        let number = RequestId::new(NonZeroUsize::MIN);
        // SAFETY: `id` is as iw_cm would pass it.
        unsafe {
            let held = super::id::<Stub>(raw)?;
            assert!(held.connect_request(&request(), number).is_ok());
            kunit_assert_eq!(TABLE.iw_reject.ok_or(EINVAL)?(raw, ptr::null(), 0), 0);
            kunit_assert_eq!(TABLE.iw_reject.ok_or(EINVAL)?(raw, ptr::null(), 0), -22);
        }
        Ok(())
    }

    #[test]
    fn lost_request_is_reported() -> Result {
        let (mut id, _client) = new_id()?;
        id.set_mapped(true);
        // SAFETY: `id` is as iw_cm would pass it.
        let held = unsafe { super::id::<Stub>(&raw mut *id) }?;
        let lost = held.connect_request(&request(), RequestId::new(NonZeroUsize::MIN));
        kunit_assert_eq!(lost, Err(ENOMEM));
        drop(held);
        kunit_assert_eq!(id.tos, 0);
        Ok(())
    }

    #[test]
    fn unknown_queue_pair_cannot_connect() -> Result {
        let (mut id, _client) = new_id()?;
        let mut param = bindings::iw_cm_conn_param::default();
        // SAFETY: `id` and `param` are as iw_cm would pass them.
        let result = unsafe { TABLE.iw_connect.ok_or(EINVAL)?(&raw mut *id, &mut param) };
        kunit_assert_eq!(result, -22);
        kunit_assert_eq!(id.tos, 0);
        Ok(())
    }

    #[test]
    fn a_listener_of_another_port_space_takes_no_requests() -> Result {
        let (mut id, mut client) = new_id()?;
        let mut device = KBox::<Device<Stub>>::new_uninit(GFP_KERNEL)?;
        id.device = device.as_mut_ptr().cast();
        client.ps = bindings::rdma_ucm_port_space_RDMA_PS_UDP;
        let raw = &raw mut *id;
        for (ip, status) in cases([
            (Ipv4Addr::UNSPECIFIED, 0),
            (Ipv4Addr::new(127, 0, 0, 9), 0),
            (Ipv4Addr::new(10, 0, 0, 1), -93),
        ]) {
            // SAFETY: `id` is as iw_cm would pass it.
            unsafe {
                (*raw).local_addr = addr::write(&SocketAddrV4::new(ip, 9).into());
                kunit_assert_eq!(TABLE.iw_create_listen.ok_or(EINVAL)?(raw, 7), status);
                assert!((*raw).provider_data.is_null());
                // iw_cm calls this only where it listens.
                kunit_assert_eq!(TABLE.iw_destroy_listen.ok_or(EINVAL)?(raw), 0);
            }
        }
        Ok(())
    }

    #[test]
    fn who_has_no_client_cannot_listen_or_connect() -> Result {
        let (mut id, _client) = new_id()?;
        id.context = ptr::null_mut();
        let mut device = KBox::<Device<Stub>>::new_uninit(GFP_KERNEL)?;
        id.device = device.as_mut_ptr().cast();
        let mut param = bindings::iw_cm_conn_param::default();
        let raw = &raw mut *id;
        // SAFETY: `id` and `param` are as iw_cm would pass them.
        unsafe {
            kunit_assert_eq!(TABLE.iw_create_listen.ok_or(EINVAL)?(raw, 7), -22);
            kunit_assert_eq!(TABLE.iw_connect.ok_or(EINVAL)?(raw, &mut param), -22);
            kunit_assert_eq!((*raw).tos, 0);
        }
        Ok(())
    }

    #[test]
    fn a_port_mapper_changes_no_address() -> Result {
        let (mut id, _client) = new_id()?;
        let own: SocketAddr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4420).into();
        let other: SocketAddr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7000).into();
        id.local_addr = addr::write(&own);
        id.remote_addr = addr::write(&own);
        id.m_local_addr = addr::write(&other);
        id.m_remote_addr = addr::write(&other);
        id.set_mapped(true);
        // SAFETY: `id` is as iw_cm would pass it.
        let held = unsafe { super::id::<Stub>(&raw mut *id) }?;
        kunit_assert_eq!(held.local()?, own);
        kunit_assert_eq!(held.remote()?, own);
        Ok(())
    }
}
