// SPDX-License-Identifier: GPL-2.0

//! Calling consumers back: completions and events.
//!
//! A provider may keep an upcall handle for any time. Destroying the C object
//! closes the handle, and waits for running calls; later calls have no effect.
//! So a consumer is never called after its destroy returned.
//!
//! All calls: softirq or process context, no lock held. The consumer's handler
//! does not sleep, but it may poll and post. If the core polls a queue, the
//! handler is the core's and only schedules the poll: any context, any lock.

use core::ptr::NonNull;

use super::{
    device::PORT,
    prelude::*, //
};
use crate::sys::{
    gate::Gate,
    netdev::Net, //
};

/// The only key of a gate, which opens once.
const KEY: u8 = 0;

/// The address of a C object.
struct Target<C>(NonNull<C>);

// SAFETY: Only an address; code that dereferences it justifies that.
unsafe impl<C> Send for Target<C> {}
// SAFETY: Only an address, which may be read from any thread.
unsafe impl<C> Sync for Target<C> {}

/// A C object that may be called while the gate is open.
///
/// # Invariants
///
/// While the gate is open or a call is inside, the target is live.
pub(crate) struct UpcallTarget<C>(Gate<Target<C>>);

impl<C> UpcallTarget<C> {
    /// Makes an open gate before `target`.
    ///
    /// # Safety
    ///
    /// [`UpcallTarget::close`] is called before `target` goes.
    pub(super) unsafe fn open(target: *mut C) -> Result<Arc<Self>> {
        let target = NonNull::new(target).ok_or(EINVAL)?;
        // INVARIANT: The caller closes before the target goes.
        let this = Arc::new(Self(Gate::new(Target(target))), GFP_KERNEL)?;
        if let Some(opening) = this.0.begin() {
            opening.open(KEY);
        }
        Ok(this)
    }

    /// Ends all calls and waits for those that run. Process context.
    pub(super) fn close(&self) {
        // An error means that the gate was closed already, which is as good.
        let _ = self.0.close(None);
        self.0.wait_until_unused();
    }

    /// Calls `f` with the target, unless the gate is closed.
    #[inline]
    fn with(&self, f: impl FnOnce(*mut C)) {
        if let Ok(target) = self.0.enter(KEY) {
            f(target.0.as_ptr());
        }
    }
}

/// A C object that has an event handler.
pub(crate) trait EventSource {
    /// The event of that kind, and the handler with its context.
    ///
    /// # Safety
    ///
    /// `this` is live.
    unsafe fn event(
        this: *mut Self,
        kind: bindings::ib_event_type,
    ) -> (bindings::ib_event, EventHandler, *mut c_void);
}

type EventHandler = Option<unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void)>;

macro_rules! event_source {
    ($type:ident, $element:ident, $context:ident) => {
        impl EventSource for bindings::$type {
            unsafe fn event(
                this: *mut Self,
                kind: bindings::ib_event_type,
            ) -> (bindings::ib_event, EventHandler, *mut c_void) {
                // SAFETY: The caller says that the object is live; the core and the consumer set
                // these fields before the object can have an event, and do not change them. Other
                // fields do change, so there is no reference to the whole.
                let fields = unsafe { ((*this).device, (*this).event_handler, (*this).$context) };
                let (device, handler, context) = fields;
                let mut event = event(device, kind);
                event.element.$element = this;
                (event, handler, context)
            }
        }
    };
}

event_source!(ib_cq, cq, cq_context);
event_source!(ib_qp, qp, qp_context);
event_source!(ib_srq, srq, srq_context);

impl<C: EventSource> UpcallTarget<C> {
    /// Calls the event handler, unless the gate is closed.
    fn raise(&self, kind: bindings::ib_event_type) {
        self.with(|target| {
            // SAFETY: By the type invariant the target is live.
            let (mut event, handler, context) = unsafe { C::event(target, kind) };
            if let Some(handler) = handler {
                // SAFETY: The handler wants an event and the context stored with it.
                unsafe { handler(&mut event, context) };
            }
        });
    }
}

/// Calls the consumer of a completion queue.
#[derive(Clone)]
pub(crate) struct CqUpcall(pub(super) Arc<UpcallTarget<bindings::ib_cq>>);

impl CqUpcall {
    /// Reports that a completion arrived. C: `ib_cq.comp_handler`.
    ///
    /// Softirq, no lock held; if the queue is polled by the core, any context.
    #[inline]
    pub(crate) fn completed(&self) {
        self.0.with(|cq| {
            // SAFETY: By the invariant of `UpcallTarget` the queue is live; the core sets the
            // handler before or right after creation and does not change it.
            let handler = unsafe { (&raw const (*cq).comp_handler).read_volatile() };
            if let Some(handler) = handler {
                // SAFETY: The consumer's handler wants its queue and the context stored with it.
                unsafe { handler(cq, (*cq).cq_context) };
            }
        });
    }

    /// Reports that the queue overflowed. C: `IB_EVENT_CQ_ERR`.
    pub(crate) fn error(&self) {
        self.0.raise(bindings::ib_event_type_IB_EVENT_CQ_ERR);
    }
}

/// Calls the consumer of a queue pair.
#[derive(Clone)]
pub(crate) struct QpUpcall(pub(super) Arc<UpcallTarget<bindings::ib_qp>>);

impl QpUpcall {
    /// Reports that the queue pair failed for a local reason. C: `IB_EVENT_QP_FATAL`.
    pub(crate) fn fatal(&self) {
        self.0.raise(bindings::ib_event_type_IB_EVENT_QP_FATAL);
    }

    /// Reports that the queue pair will take no more from its shared receive queue.
    /// C: `IB_EVENT_QP_LAST_WQE_REACHED`.
    pub(crate) fn last_wqe_reached(&self) {
        self.0
            .raise(bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED);
    }
}

/// Calls the consumer of a shared receive queue.
#[derive(Clone)]
pub(crate) struct SrqUpcall(pub(super) Arc<UpcallTarget<bindings::ib_srq>>);

impl SrqUpcall {
    /// Reports that the requests became fewer than the limit. C: `IB_EVENT_SRQ_LIMIT_REACHED`.
    pub(crate) fn limit_reached(&self) {
        self.0
            .raise(bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED);
    }
}

/// Notifies the consumers of a device of its port.
pub(crate) struct PortUpcall(pub(super) Arc<UpcallTarget<bindings::ib_device>>);

impl PortUpcall {
    /// Reports, later, that the port went down or came up. No effect if the device is not
    /// registered. Any context. C: `IB_EVENT_PORT_ERR`, `IB_EVENT_PORT_ACTIVE`.
    pub(crate) fn changed(&self, is_up: bool) {
        let kind = match is_up {
            true => bindings::ib_event_type_IB_EVENT_PORT_ACTIVE,
            false => bindings::ib_event_type_IB_EVENT_PORT_ERR,
        };
        self.0.with(|device| {
            // SAFETY: By the type invariant of the target the device is live.
            if !unsafe { bindings::ndk_device_try_get(device) } {
                return;
            }
            let mut event = event(device, kind);
            event.element.port_num = PORT;
            // SAFETY: The reference just taken keeps the device registered; the core copies the
            // event, and has forgotten it before the device is gone.
            unsafe {
                bindings::ib_dispatch_event(&event);
                bindings::ib_device_put(device);
            }
        });
    }
}

impl PortUpcall {
    /// Returns true if consumers in that namespace may use the device: all may, unless `rdma system
    /// set netns exclusive` is in force and the device is in another namespace. Any context. C:
    /// `rdma_dev_access_netns()`.
    pub(crate) fn is_device_seen_from(&self, net: Net<'_>) -> bool {
        let mut is_seen = false;
        self.0.with(|device| {
            // SAFETY: By the type invariant of the target the device is live; the namespace is kept
            // during the call.
            is_seen = unsafe { bindings::ndk_device_is_seen_from(device, net.as_raw()) };
        });
        is_seen
    }
}

/// An event of `device`, its element not yet set.
pub(super) fn event(
    device: *mut bindings::ib_device,
    kind: bindings::ib_event_type,
) -> bindings::ib_event {
    bindings::ib_event {
        device,
        event: kind,
        ..pin_init::zeroed()
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_upcall)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Counts the calls of the handler, through the context pointer.
    ///
    /// # Safety
    ///
    /// `context` is the address of a `Cell<u32>`.
    unsafe extern "C" fn count(_cq: *mut bindings::ib_cq, context: *mut kernel::ffi::c_void) {
        // SAFETY: The test stores the address of its cell.
        let calls = unsafe { &*context.cast::<Cell<u32>>() };
        calls.set(calls.get() + 1);
    }

    #[test]
    fn closed_upcall_calls_nobody() -> Result {
        let calls = Cell::new(0u32);
        let mut cq = KBox::new(bindings::ib_cq::default(), GFP_KERNEL)?;
        cq.comp_handler = Some(count);
        cq.cq_context = (&raw const calls).cast_mut().cast();
        // SAFETY: Closed below, before `cq` goes.
        let upcall = CqUpcall(unsafe { UpcallTarget::open(&raw mut *cq) }?);
        upcall.completed();
        upcall.clone().completed();
        upcall.error();
        upcall.0.close();
        upcall.completed();
        kunit_assert_eq!(calls.get(), 2);
        Ok(())
    }
}
