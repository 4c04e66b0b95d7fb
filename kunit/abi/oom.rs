// SPDX-License-Identifier: GPL-2.0

//! A consumer in C, as the tests of calls without memory need it (`kunit/ndk/oom_c.rs`): it
//! makes its calls through the dispatch tables of its objects.
//!
//! **Safety.** The tests keep the contract of the header: they name objects that they have not
//! closed, and keep a [`CallbackLog`] until its callback has come, or its object is closed.

use core::{
    ffi::c_void,
    net::SocketAddr,
    ptr, //
};

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::{
    connection::connect_user,
    entry::address_length,
    Callback, //
};
use crate::{
    bindings,
    kunit::harness::came_in_time,
    ndk::{
        adapter::NdkContext,
        connector::Connector,
        life::Ref,
        status::NtStatus, //
    },
    sys::{
        addr,
        event::Event,
        mdl::Described, //
    }, //
};

/// An object as C has it.
#[derive(Clone, Copy)]
pub(crate) struct ObjectType(*mut bindings::ndk_object_header);

/// The reports of callbacks.
#[pin_data]
pub(crate) struct CallbackLog {
    status: Atomic<i32>,
    object: Atomic<usize>,
    calls: Atomic<u32>,
    #[pin]
    event: Event,
}

impl CallbackLog {
    /// A log without reports. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                status: Atomic::new(NtStatus::SUCCESS.raw()),
                object: Atomic::new(0),
                calls: Atomic::new(0),
                event <- Event::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The number of callbacks.
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// Waits for the callback; returns its status.
    pub(crate) fn wait(&self) -> Result<i32> {
        match came_in_time(&self.event) {
            true => Ok(self.status.load(Relaxed)),
            false => Err(ETIMEDOUT),
        }
    }

    /// The object that the callback brought, if any.
    pub(crate) fn object(&self) -> Option<ObjectType> {
        let object = ptr::with_exposed_provenance_mut(self.object.load(Relaxed));
        (!ptr::eq(object, ptr::null_mut())).then_some(ObjectType(object))
    }

    fn context(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    fn notify(&self, status: i32, object: *mut bindings::ndk_object_header) {
        self.status.store(status, Relaxed);
        self.object.store(object.expose_provenance(), Relaxed);
        self.calls.fetch_add(1, Relaxed);
        self.event.signal();
    }
}

/// # Safety
///
/// `context` is that of a [`CallbackLog`] which is still there.
unsafe fn log_of<'a>(context: *mut c_void) -> &'a CallbackLog {
    // SAFETY: The caller says that `context` is the address of a `CallbackLog` that is still there.
    unsafe { &*context.cast::<CallbackLog>().cast_const() }
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn created(
    context: *mut c_void,
    status: i32,
    object: *mut bindings::ndk_object_header,
) {
    // SAFETY: `context` is from `CallbackLog::context`; the test keeps the log until this callback
    // has come.
    unsafe { log_of(context) }.notify(status, object);
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn ended(context: *mut c_void, status: i32) {
    // SAFETY: `context` is from `CallbackLog::context`; the test keeps the log until this callback
    // has come.
    unsafe { log_of(context) }.notify(status, ptr::null_mut());
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn gone(context: *mut c_void) {
    // SAFETY: `context` is from `CallbackLog::context`; the test keeps the log until the close has
    // completed, which this reports.
    unsafe { log_of(context) }.notify(NtStatus::SUCCESS.raw(), ptr::null_mut());
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn asked(context: *mut c_void, connector: *mut bindings::ndk_connector) {
    // SAFETY: `context` is from `CallbackLog::context`; the test keeps the log until the listener
    // is closed.
    unsafe { log_of(context) }.notify(NtStatus::SUCCESS.raw(), connector.cast());
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn notified(_context: *mut c_void, _status: i32) {}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn disconnected(_context: *mut c_void) {}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn disconnected_ex(_context: *mut c_void, _reason: u32) {}

/// Calls an entry of the table of an object.
macro_rules! entry {
    ($object:expr, $type:ident, $entry:ident $(, $arg:expr)*) => {{
        let object = $object.0.cast::<bindings::$type>();
        // SAFETY: The object is of this type, was given to the test by a create call and is not
        // closed, so its table is there; the arguments point at what outlives the call, and the
        // context at a log that outlives the callback.
        unsafe {
            match (*(*object).dispatch).$entry {
                Some(call) => call(object $(, $arg)*),
                None => NtStatus::NOT_SUPPORTED.raw(),
            }
        }
    }};
}

/// The result of a creation: its status, and the object if the call gave one.
pub(crate) type Given = (i32, Option<ObjectType>);

/// Calls `create` with a place for the object.
fn given<C>(create: impl FnOnce(*mut *mut C) -> i32) -> Given {
    let mut object: *mut C = ptr::null_mut();
    let status = create(&raw mut object);
    (
        status,
        (!object.is_null()).then_some(ObjectType(object.cast())),
    )
}

/// Opens an adapter by its name.
pub(crate) fn open(context: &NdkContext, name: &CStr) -> Given {
    let params = bindings::ndk_open_params {
        name: name.as_char_ptr().cast(),
        local_address: ptr::null(),
        net: ptr::null_mut(),
        version: bindings::ndk_version { major: 1, minor: 2 },
    };
    given(|out| {
        // SAFETY: `params` and `name` outlive the call, its address and namespace are null, and
        // `out` is the variable of `given`.
        let opened = unsafe { super::adapter::open(context, &params, out) };
        opened.map_or_else(NtStatus::raw, |()| NtStatus::SUCCESS.raw())
    })
}

/// Closes an adapter, and waits.
pub(crate) fn close_adapter(adapter: ObjectType) {
    // SAFETY: `adapter` was given by `open`, and each test closes it once.
    unsafe { super::adapter::ndk_face_close(adapter.0.cast(), None, ptr::null_mut()) };
}

/// Closes any other object. All tables begin with this entry.
pub(crate) fn close(object: ObjectType, log: &CallbackLog) -> i32 {
    let pd = object.0.cast::<bindings::ndk_pd>();
    // SAFETY: The object was given to the test and is not closed, so its table is there; all
    // objects and all tables but the adapters' are laid out as those of domains are, so far.
    match unsafe { (*(*pd).dispatch).close } {
        // SAFETY: As above the object is the test's; it is closed once. The log outlives the close.
        Some(call) => unsafe { call(object.0, Some(gone), log.context()) },
        None => NtStatus::NOT_SUPPORTED.raw(),
    }
}

pub(crate) fn create_cq(adapter: ObjectType, depth: u32, log: &CallbackLog) -> Given {
    given(|out| {
        entry!(
            adapter,
            ndk_adapter,
            create_cq,
            depth,
            Some(notified),
            ptr::null_mut(),
            ptr::null(),
            Some(created),
            log.context(),
            out
        )
    })
}

pub(crate) fn create_pd(adapter: ObjectType, log: &CallbackLog) -> Given {
    let context = log.context();
    given(|out| entry!(adapter, ndk_adapter, create_pd, Some(created), context, out))
}

pub(crate) fn create_shared_endpoint(
    adapter: ObjectType,
    at: &SocketAddr,
    log: &CallbackLog,
) -> Given {
    let storage = addr::write(at);
    given(|out| {
        entry!(
            adapter,
            ndk_adapter,
            create_shared_endpoint,
            ptr::from_ref(&storage).cast(),
            address_length(at),
            Some(created),
            log.context(),
            out
        )
    })
}

pub(crate) fn create_connector(adapter: ObjectType, log: &CallbackLog) -> Given {
    let context = log.context();
    given(|out| {
        entry!(
            adapter,
            ndk_adapter,
            create_connector,
            Some(created),
            context,
            out
        )
    })
}

/// `arrivals` is notified of each request.
pub(crate) fn create_listener(
    adapter: ObjectType,
    arrivals: &CallbackLog,
    log: &CallbackLog,
) -> Given {
    given(|out| {
        entry!(
            adapter,
            ndk_adapter,
            create_listener,
            Some(asked),
            arrivals.context(),
            Some(created),
            log.context(),
            out
        )
    })
}

pub(crate) fn create_mr(pd: ObjectType, fast: bool, log: &CallbackLog) -> Given {
    let context = log.context();
    given(|out| entry!(pd, ndk_pd, create_mr, fast, Some(created), context, out))
}

pub(crate) fn create_mw(pd: ObjectType, log: &CallbackLog) -> Given {
    let context = log.context();
    given(|out| entry!(pd, ndk_pd, create_mw, Some(created), context, out))
}

pub(crate) fn create_srq(pd: ObjectType, log: &CallbackLog) -> Given {
    given(|out| {
        entry!(
            pd,
            ndk_pd,
            create_srq,
            16,
            2,
            4,
            Some(notified),
            ptr::null_mut(),
            ptr::null(),
            Some(created),
            log.context(),
            out
        )
    })
}

/// Creates a queue pair, with the shared queue if there is one.
pub(crate) fn create_qp(
    pd: ObjectType,
    cq: ObjectType,
    srq: Option<ObjectType>,
    log: &CallbackLog,
) -> Given {
    let queue = cq.0.cast();
    let (context, none) = (log.context(), ptr::null_mut());
    given(|out| match srq {
        None => entry!(
            pd,
            ndk_pd,
            create_qp,
            queue,
            queue,
            none,
            8,
            8,
            2,
            2,
            16,
            Some(created),
            context,
            out
        ),
        Some(srq) => entry!(
            pd,
            ndk_pd,
            create_qp_with_srq,
            queue,
            queue,
            srq.0.cast(),
            none,
            8,
            2,
            16,
            Some(created),
            context,
            out
        ),
    })
}

pub(crate) fn register(mr: ObjectType, memory: &Described, len: u64, log: &CallbackLog) -> i32 {
    let (mdl, context) = (memory.as_raw(), log.context());
    entry!(mr, ndk_mr, register_mr, mdl, len, 1, Some(ended), context)
}

pub(crate) fn deregister(mr: ObjectType, log: &CallbackLog) -> i32 {
    entry!(mr, ndk_mr, deregister_mr, Some(ended), log.context())
}

pub(crate) fn initialize(mr: ObjectType, pages: u32, log: &CallbackLog) -> i32 {
    let context = log.context();
    entry!(
        mr,
        ndk_mr,
        initialize_fast_register_mr,
        pages,
        true,
        Some(ended),
        context
    )
}

pub(crate) fn resize(cq: ObjectType, depth: u32, log: &CallbackLog) -> i32 {
    entry!(cq, ndk_cq, resize_cq, depth, Some(ended), log.context())
}

pub(crate) fn modify(srq: ObjectType, depth: u32, log: &CallbackLog) -> i32 {
    let context = log.context();
    entry!(srq, ndk_srq, modify_srq, depth, 0, Some(ended), context)
}

pub(crate) fn listen(listener: ObjectType, at: &SocketAddr, log: &CallbackLog) -> i32 {
    let storage = addr::write(at);
    entry!(
        listener,
        ndk_listener,
        listen,
        ptr::from_ref(&storage).cast(),
        address_length(at),
        Some(ended),
        log.context()
    )
}

/// The address of a listener.
pub(crate) fn address(listener: ObjectType) -> Option<SocketAddr> {
    let mut bytes = [0u8; 28];
    let mut length = 28;
    let status = entry!(
        listener,
        ndk_listener,
        get_local_address,
        bytes.as_mut_ptr().cast(),
        &raw mut length
    );
    // CAST: widening; at most 28.
    let filled = bytes.get(..length as usize);
    filled
        .filter(|_| status == NtStatus::SUCCESS.raw())
        .and_then(addr::from_bytes)
}

/// Connects from an address, or from a shared endpoint if there is one; with some private data.
pub(crate) fn connect(
    connector: ObjectType,
    qp: ObjectType,
    shared: Option<ObjectType>,
    (from, to): (&SocketAddr, &SocketAddr),
    log: &CallbackLog,
) -> i32 {
    let (source, destination) = (addr::write(from), addr::write(to));
    let source = ptr::from_ref(&source).cast();
    let destination = ptr::from_ref(&destination).cast();
    let (lengths, data) = ((address_length(from), address_length(to)), [7u8; 40]);
    match shared {
        None => entry!(
            connector,
            ndk_connector,
            connect,
            qp.0.cast(),
            source,
            lengths.0,
            destination,
            lengths.1,
            4,
            4,
            data.as_ptr().cast(),
            40,
            Some(ended),
            log.context()
        ),
        Some(shared) => entry!(
            connector,
            ndk_connector,
            connect_with_shared_endpoint,
            qp.0.cast(),
            shared.0.cast(),
            destination,
            lengths.1,
            4,
            4,
            data.as_ptr().cast(),
            40,
            Some(ended),
            log.context()
        ),
    }
}

/// Accepts, by `accept`, or by `accept_ex` if `ex`.
pub(crate) fn accept(connector: ObjectType, qp: ObjectType, ex: bool, log: &CallbackLog) -> i32 {
    let (qp, data, none) = (qp.0.cast(), [7u8; 40], ptr::null_mut());
    let (bytes, context) = (data.as_ptr().cast(), log.context());
    match ex {
        false => entry!(
            connector,
            ndk_connector,
            accept,
            qp,
            4,
            4,
            bytes,
            40,
            Some(disconnected),
            none,
            Some(ended),
            context
        ),
        true => entry!(
            connector,
            ndk_connector,
            accept_ex,
            qp,
            4,
            4,
            bytes,
            40,
            Some(disconnected_ex),
            none,
            Some(ended),
            context
        ),
    }
}

/// Completes a connect, by `complete_connect`, or by `complete_connect_ex` if `ex`.
pub(crate) fn complete(connector: ObjectType, ex: bool, log: &CallbackLog) -> i32 {
    let (none, context) = (ptr::null_mut(), log.context());
    match ex {
        false => entry!(
            connector,
            ndk_connector,
            complete_connect,
            Some(disconnected),
            none,
            Some(ended),
            context
        ),
        true => entry!(
            connector,
            ndk_connector,
            complete_connect_ex,
            Some(disconnected_ex),
            none,
            Some(ended),
            context
        ),
    }
}

pub(crate) fn disconnect(connector: ObjectType, log: &CallbackLog) -> i32 {
    let context = log.context();
    entry!(connector, ndk_connector, disconnect, Some(ended), context)
}

/// Notifies a consumer in C of a request; `around` makes the call.
pub(crate) fn notify_request(
    arrivals: &CallbackLog,
    connector: Ref<Connector>,
    around: impl FnOnce(&mut dyn FnMut()),
) -> Result {
    let callback: Callback<bindings::ndk_fn_connect_event> = Callback {
        function: Some(asked),
        context: arrivals.context(),
    };
    let user = connect_user(callback).map_err(|_| ENOMEM)?;
    let mut connector = Some(connector);
    around(&mut || {
        if let Some(connector) = connector.take() {
            user(connector);
        }
    });
    Ok(())
}
