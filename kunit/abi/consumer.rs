// SPDX-License-Identifier: GPL-2.0

//! A consumer in C: callbacks that note what came, and objects of every type.

use core::{
    ffi::c_void,
    mem::size_of,
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

use crate::{
    bindings,
    kunit::{
        harness::came_in_time,
        log::Tally, //
    },
    ndk::{
        abi::adapter::{
            ndk_face_close,
            open, //
        },
        status::NtStatus,
        tests::host::{
            here,
            HostAttr,
            TestHost,
            NAME, //
        }, //
    },
    sys::{
        addr,
        event::Event, //
    }, //
};

pub(super) const SUCCESS: i32 = NtStatus::SUCCESS.raw();
pub(super) const PENDING: i32 = NtStatus::PENDING.raw();

/// The arguments of a callback, and the number of its calls. The callback's context is the address
/// of its `CallbackLog`.
#[pin_data]
pub(super) struct CallbackLog {
    pub(super) calls: Tally,
    status: Atomic<i32>,
    object: Atomic<usize>,
    #[pin]
    event: Event,
}

impl CallbackLog {
    /// May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let log = pin_init!(Self {
            calls: Tally::new(),
            status: Atomic::new(PENDING),
            object: Atomic::new(usize::MAX),
            event <- Event::new(),
        });
        Arc::pin_init(log, GFP_KERNEL)
    }

    pub(super) fn context(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    fn put(&self, status: i32, object: usize) {
        self.status.store(status, Relaxed);
        self.object.store(object, Relaxed);
        self.calls.hit();
        self.event.signal();
    }

    /// Waits for the callback; returns its status and object. `ETIMEDOUT` when it does not come:
    /// the record then stays for ever, since the callback may still come.
    pub(super) fn wait<C>(self: &Arc<Self>) -> Result<(i32, *mut C)> {
        if !came_in_time(&self.event) {
            core::mem::forget(self.clone());
            return Err(ETIMEDOUT);
        }
        let object = self.object.load(Relaxed);
        Ok((
            self.status.load(Relaxed),
            ptr::with_exposed_provenance_mut(object),
        ))
    }
}

/// # Safety
///
/// `context` is that of a `CallbackLog` which is there until the callback has come.
unsafe fn log<'a>(context: *mut c_void) -> &'a CallbackLog {
    // SAFETY: The caller says that `context` is the address of a `CallbackLog` that is still there.
    unsafe { &*context.cast::<CallbackLog>() }
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
pub(super) unsafe extern "C" fn created(
    context: *mut c_void,
    status: i32,
    object: *mut bindings::ndk_object_header,
) {
    // SAFETY: `context` is from `CallbackLog::context`; `create` keeps the `CallbackLog` until this
    // callback has come.
    unsafe { log(context) }.put(status, object.expose_provenance());
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
pub(super) unsafe extern "C" fn requested(context: *mut c_void, status: i32) {
    // SAFETY: `context` is from `CallbackLog::context`; `request` keeps the `CallbackLog` until
    // this callback has come.
    unsafe { log(context) }.put(status, 0);
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
pub(super) unsafe extern "C" fn notified(context: *mut c_void) {
    // SAFETY: `context` is from `CallbackLog::context`; the test keeps the `CallbackLog` until the
    // object is closed.
    unsafe { log(context) }.put(SUCCESS, 0);
}

/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
pub(super) unsafe extern "C" fn asked(
    context: *mut c_void,
    connector: *mut bindings::ndk_connector,
) {
    // SAFETY: `context` is from `CallbackLog::context`; the test keeps the `CallbackLog` until the
    // listener is closed.
    unsafe { log(context) }.put(SUCCESS, connector.expose_provenance());
}

/// The results of a create call.
pub(super) struct Creation<C> {
    /// The status that the call returned.
    pub(super) inline: i32,
    /// The status of the callback if `inline` is `PENDING`, else `inline`.
    pub(super) end: i32,
    /// The callback's object.
    pub(super) called_with: *mut C,
    /// The output pointer, which was `UNTOUCHED` before.
    pub(super) out: *mut C,
    pub(super) log: Arc<CallbackLog>,
}

/// The value of an output pointer before a call.
pub(super) const UNTOUCHED: usize = 0xDEAD_0001;

impl<C> Creation<C> {
    /// The object, if the call is in order and has succeeded (GEN-04).
    pub(super) fn object(&self) -> Result<*mut C> {
        let object = match self.inline {
            PENDING => self.called_with,
            _ => self.out,
        };
        match self.end == SUCCESS && self.is_in_order() {
            true => Ok(object),
            false => Err(EIO),
        }
    }

    /// Returns true if callback and output pointer are as the status says (GEN-04, GEN-05).
    pub(super) fn is_in_order(&self) -> bool {
        let out = self.out.addr();
        let calls = self.log.calls.get();
        let fine = match (self.inline, self.end) {
            (PENDING, end) => {
                let has_object = !self.called_with.is_null();
                out == UNTOUCHED && calls == 1 && has_object == (end == SUCCESS)
            }
            (SUCCESS, _) => out != UNTOUCHED && out != 0 && calls == 0,
            _ => out == UNTOUCHED && calls == 0,
        };
        if !fine {
            kunit_note!(
                "returned {:x}, ended {:x}, out {:x}, {} calls with {:p}",
                self.inline,
                self.end,
                out,
                calls,
                self.called_with
            );
        }
        fine
    }
}

/// Makes a create call and waits for its end.
pub(super) fn create<C>(
    call: impl FnOnce(bindings::ndk_fn_create_completion, *mut c_void, *mut *mut C) -> i32,
) -> Result<Creation<C>> {
    let log = CallbackLog::new()?;
    let mut out = ptr::without_provenance_mut(UNTOUCHED);
    let inline = call(Some(created), log.context(), &raw mut out);
    let (end, called_with) = match inline {
        PENDING => log.wait()?,
        _ => (inline, ptr::null_mut()),
    };
    Ok(Creation {
        inline,
        end,
        called_with,
        out,
        log,
    })
}

/// Makes a call that reports its end by a status, and waits for the end.
pub(super) fn request(
    call: impl FnOnce(bindings::ndk_fn_request_completion, *mut c_void) -> i32,
) -> Result<i32> {
    let log = CallbackLog::new()?;
    match call(Some(requested), log.context()) {
        PENDING => Ok(log.wait::<c_void>()?.0),
        status => Ok(status),
    }
}

/// The head of all objects. All tables but those of adapters begin alike, too.
#[repr(C)]
pub(super) struct Head {
    pub(super) header: bindings::ndk_object_header,
    pub(super) dispatch: *const c_void,
}

/// An object and its table, which stays known when the object's own pointer is overwritten.
pub(super) struct ObjectHandle {
    pub(super) head: *mut Head,
    pub(super) table: *const c_void,
    pub(super) kind: u32,
    pub(super) entries: usize,
}

impl ObjectHandle {
    /// # Safety
    ///
    /// `object` is a live object of type `kind`, with a table of type `D`.
    pub(super) unsafe fn new<C, D>(object: *mut C, kind: u32) -> Self {
        let head = object.cast::<Head>();
        Self {
            head,
            // SAFETY: The caller says that `object` is a live object; each begins with a `Head`.
            table: unsafe { (*head).dispatch },
            kind,
            entries: size_of::<D>() / size_of::<usize>(),
        }
    }

    /// Returns entry `at` of the table; 0 beyond its end.
    pub(super) fn entry(&self, at: usize) -> usize {
        if at >= self.entries {
            return 0;
        }
        // SAFETY: `at` is below the number of entries, and the table lives for ever.
        unsafe { self.table.cast::<usize>().add(at).read() }
    }

    pub(super) fn header(&self) -> *mut bindings::ndk_object_header {
        self.head.cast()
    }

    /// Closes the object by its table and waits for the end; false when that takes too long, or
    /// when the completion is called although the close was over at once.
    pub(super) fn close(&self) -> bool {
        let Ok(log) = CallbackLog::new() else {
            return false;
        };
        if self.kind == bindings::NDK_OBJECT_TYPE_ADAPTER {
            // SAFETY: The object is an adapter, and it is closed once.
            unsafe { ndk_face_close(self.head.cast(), None, ptr::null_mut()) };
            return true;
        }
        // SAFETY: The object is one that was given to this consumer, and it is closed once; its
        // table begins with the entries of `ndk_pd_dispatch`.
        let status = unsafe {
            let table = self.table.cast::<bindings::ndk_pd_dispatch>();
            match (*table).close {
                Some(close) => close(self.header(), Some(notified), log.context()),
                None => return false,
            }
        };
        match status {
            PENDING => log.wait::<c_void>().is_ok() && log.calls.get() == 1,
            status => status == SUCCESS && log.calls.get() == 0,
        }
    }
}

/// An entry of a table, called with what follows.
macro_rules! entry {
    ($table:expr, $entry:ident $(, $arg:expr)* $(,)?) => {{
        // SAFETY: `$table` is that of a live object of the test's; what the arguments point at
        // stays during the call, and what a callback is given until it has come.
        unsafe {
            match (*$table).$entry {
                Some(entry) => entry($($arg),*),
                None => return Err(EFAULT),
            }
        }
    }};
}
pub(super) use entry;

/// The objects of a consumer, one of each type, and a second queue pair.
pub(super) struct Consumer {
    /// Closed in reverse order.
    pub(super) things: KVec<ObjectHandle>,
    pub(super) adapter: *mut bindings::ndk_adapter,
    pub(super) pd: *mut bindings::ndk_pd,
    pub(super) cq: *mut bindings::ndk_cq,
    pub(super) srq: *mut bindings::ndk_srq,
    pub(super) qp: *mut bindings::ndk_qp,
    pub(super) peer: *mut bindings::ndk_qp,
    pub(super) mr: *mut bindings::ndk_mr,
    pub(super) mw: *mut bindings::ndk_mw,
    pub(super) connector: *mut bindings::ndk_connector,
    pub(super) listener: *mut bindings::ndk_listener,
    pub(super) endpoint: *mut bindings::ndk_shared_endpoint,
    /// Incoming connectors.
    pub(super) arrivals: Arc<CallbackLog>,
    /// Calls of the completion queue.
    pub(super) notified: Arc<CallbackLog>,
    // Dropped last.
    pub(super) test_host: TestHost,
}

/// An address as C has it, and its length.
pub(super) fn raw_address(at: SocketAddr) -> (addr::Storage, u32) {
    (addr::write(&at), super::super::entry::address_length(&at))
}

/// Opens an adapter of `test_host`.
pub(super) fn open_adapter(test_host: &TestHost) -> Result<*mut bindings::ndk_adapter> {
    let params = bindings::ndk_open_params {
        name: NAME.as_char_ptr().cast(),
        local_address: ptr::null(),
        net: ptr::null_mut(),
        version: bindings::ndk_version { major: 1, minor: 0 },
    };
    let mut out = ptr::null_mut();
    // SAFETY: `params` and the name outlive the call, its other pointers are null, and `out` may be
    // written.
    let opened = unsafe { open(&test_host.context, &params, &raw mut out) };
    opened.map(|()| out).map_err(|_| EIO)
}

impl Consumer {
    /// May sleep.
    pub(super) fn new() -> Result<Self> {
        Self::with(&HostAttr::PLAIN)
    }

    /// May sleep.
    pub(super) fn with(attr: &HostAttr) -> Result<Self> {
        let mut consumer = Self {
            things: KVec::new(),
            adapter: ptr::null_mut(),
            pd: ptr::null_mut(),
            cq: ptr::null_mut(),
            srq: ptr::null_mut(),
            qp: ptr::null_mut(),
            peer: ptr::null_mut(),
            mr: ptr::null_mut(),
            mw: ptr::null_mut(),
            connector: ptr::null_mut(),
            listener: ptr::null_mut(),
            endpoint: ptr::null_mut(),
            arrivals: CallbackLog::new()?,
            notified: CallbackLog::new()?,
            test_host: TestHost::with(attr)?,
        };
        consumer.of_adapter()?;
        consumer.of_addresses()?;
        consumer.of_domain()?;
        consumer.of_connections()?;
        Ok(consumer)
    }

    /// Adds an object to those that are closed at the end.
    pub(super) fn keep<C, D>(&mut self, object: *mut C, kind: u32) -> Result<*mut C> {
        // SAFETY: The objects of the tests are of the types that they are made as.
        let thing = unsafe { ObjectHandle::new::<C, D>(object, kind) };
        self.things.push(thing, GFP_KERNEL)?;
        Ok(object)
    }

    fn of_adapter(&mut self) -> Result {
        let adapter = open_adapter(&self.test_host)?;
        self.adapter = self.keep::<_, bindings::ndk_adapter_dispatch>(
            adapter,
            bindings::NDK_OBJECT_TYPE_ADAPTER,
        )?;
        // SAFETY: A live adapter.
        let table = unsafe { (*adapter).dispatch };
        let pd = create(|f, c, out| call(|| Ok(entry!(table, create_pd, adapter, f, c, out))))?;
        self.pd =
            self.keep::<_, bindings::ndk_pd_dispatch>(pd.object()?, bindings::NDK_OBJECT_TYPE_PD)?;
        let context = self.notified.context();
        let none = ptr::null();
        let cq = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    table,
                    create_cq,
                    adapter,
                    64,
                    Some(requested),
                    context,
                    none,
                    f,
                    c,
                    out
                ))
            })
        })?;
        self.cq =
            self.keep::<_, bindings::ndk_cq_dispatch>(cq.object()?, bindings::NDK_OBJECT_TYPE_CQ)?;
        Ok(())
    }

    fn of_addresses(&mut self) -> Result {
        let adapter = self.adapter;
        // SAFETY: A live adapter.
        let table = unsafe { (*adapter).dispatch };
        let context = self.arrivals.context();
        let listener = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    table,
                    create_listener,
                    adapter,
                    Some(asked),
                    context,
                    f,
                    c,
                    out
                ))
            })
        })?;
        self.listener = self.keep::<_, bindings::ndk_listener_dispatch>(
            listener.object()?,
            bindings::NDK_OBJECT_TYPE_LISTENER,
        )?;
        let (at, len) = raw_address(here(0));
        let endpoint = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    table,
                    create_shared_endpoint,
                    adapter,
                    (&raw const at).cast(),
                    len,
                    f,
                    c,
                    out
                ))
            })
        })?;
        self.endpoint = self.keep::<_, bindings::ndk_shared_endpoint_dispatch>(
            endpoint.object()?,
            bindings::NDK_OBJECT_TYPE_SHARED_ENDPOINT,
        )?;
        Ok(())
    }

    fn of_domain(&mut self) -> Result {
        let (pd, cq) = (self.pd, self.cq);
        // SAFETY: A live domain.
        let table = unsafe { (*pd).dispatch };
        let mr = create(|f, c, out| call(|| Ok(entry!(table, create_mr, pd, false, f, c, out))))?;
        self.mr =
            self.keep::<_, bindings::ndk_mr_dispatch>(mr.object()?, bindings::NDK_OBJECT_TYPE_MR)?;
        let mw = create(|f, c, out| call(|| Ok(entry!(table, create_mw, pd, f, c, out))))?;
        self.mw =
            self.keep::<_, bindings::ndk_mw_dispatch>(mw.object()?, bindings::NDK_OBJECT_TYPE_MW)?;
        let none = ptr::null_mut();
        let mask = ptr::null();
        let srq = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    table, create_srq, pd, 8, 1, 0, None, none, mask, f, c, out
                ))
            })
        })?;
        self.srq = self
            .keep::<_, bindings::ndk_srq_dispatch>(srq.object()?, bindings::NDK_OBJECT_TYPE_SRQ)?;
        let srq = self.srq;
        let qp = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    table, create_qp, pd, cq, cq, none, 8, 8, 1, 1, 0, f, c, out
                ))
            })
        })?;
        self.qp =
            self.keep::<_, bindings::ndk_qp_dispatch>(qp.object()?, bindings::NDK_OBJECT_TYPE_QP)?;
        let peer = create(|f, c, out| {
            call(|| {
                Ok(entry!(
                    table,
                    create_qp_with_srq,
                    pd,
                    cq,
                    cq,
                    srq,
                    none,
                    8,
                    1,
                    0,
                    f,
                    c,
                    out
                ))
            })
        })?;
        self.peer = self
            .keep::<_, bindings::ndk_qp_dispatch>(peer.object()?, bindings::NDK_OBJECT_TYPE_QP)?;
        Ok(())
    }

    /// Last: a connected connector keeps its queue pairs.
    fn of_connections(&mut self) -> Result {
        let adapter = self.adapter;
        // SAFETY: A live adapter.
        let table = unsafe { (*adapter).dispatch };
        let connector =
            create(|f, c, out| call(|| Ok(entry!(table, create_connector, adapter, f, c, out))))?;
        self.connector = self.keep::<_, bindings::ndk_connector_dispatch>(
            connector.object()?,
            bindings::NDK_OBJECT_TYPE_CONNECTOR,
        )?;
        Ok(())
    }

    /// The table that an object had when it was made.
    pub(super) fn table<C, D>(&self, object: *mut C) -> Result<*const D> {
        let mut things = self.things.iter();
        let thing = things.find(|t| t.head.addr() == object.addr());
        Ok(thing.ok_or(EINVAL)?.table.cast())
    }

    /// Connects the queue pair to its peer through the listener, by the tables that the objects
    /// had when they were made.
    pub(super) fn connect(&mut self) -> Result {
        let listening = self.table::<_, bindings::ndk_listener_dispatch>(self.listener)?;
        let (mut at, mut len) = raw_address(here(0));
        let status = request(|f, c| {
            let at = (&raw const at).cast();
            call(|| Ok(entry!(listening, listen, self.listener, at, len, f, c)))
        })?;
        fine(status)?;
        let address = (&raw mut at).cast::<bindings::sockaddr>();
        fine(entry!(
            listening,
            get_local_address,
            self.listener,
            address,
            &raw mut len
        ))?;
        self.connect_to(address, len)
    }

    fn connect_to(&mut self, address: *mut bindings::sockaddr, len: u32) -> Result {
        let (from, from_len) = raw_address(here(0));
        let table = self.table::<_, bindings::ndk_connector_dispatch>(self.connector)?;
        let (connecting, accepting) = (CallbackLog::new()?, CallbackLog::new()?);
        let (none, nobody) = (ptr::null(), ptr::null_mut());
        let status = entry!(
            table,
            connect,
            self.connector,
            self.qp,
            (&raw const from).cast(),
            from_len,
            address,
            len,
            1,
            1,
            none,
            0,
            Some(requested),
            connecting.context(),
        );
        is(status, PENDING)?;
        let (_, theirs) = self.arrivals.wait::<bindings::ndk_connector>()?;
        let theirs = self.keep::<_, bindings::ndk_connector_dispatch>(
            theirs,
            bindings::NDK_OBJECT_TYPE_CONNECTOR,
        )?;
        let status = entry!(
            table,
            accept,
            theirs,
            self.peer,
            1,
            1,
            none,
            0,
            None,
            nobody,
            Some(requested),
            accepting.context(),
        );
        is(status, PENDING)?;
        fine(connecting.wait::<c_void>()?.0)?;
        let status = request(|f, c| {
            let end = || {
                Ok(entry!(
                    table,
                    complete_connect,
                    self.connector,
                    None,
                    nobody,
                    f,
                    c
                ))
            };
            call(end)
        })?;
        fine(status)?;
        fine(accepting.wait::<c_void>()?.0)
    }
}

/// The status of a call of a table; a negative errno where there is no entry.
pub(super) fn call(call: impl FnOnce() -> Result<i32>) -> i32 {
    call().unwrap_or_else(|e| e.to_errno())
}

/// `EIO` for any other status than success; the status is logged.
pub(super) fn fine(status: i32) -> Result {
    is(status, SUCCESS)
}

/// `EIO` for any other status than `want`; the status is logged.
pub(super) fn is(status: i32, want: i32) -> Result {
    if status == want {
        return Ok(());
    }
    kunit_note!("status {:x} and not {:x}", status, want);
    Err(EIO)
}

impl Drop for Consumer {
    fn drop(&mut self) {
        while let Some(thing) = self.things.pop() {
            if !thing.close() {
                kunit_note!("an object of type {} does not close well", thing.kind);
            }
        }
    }
}
