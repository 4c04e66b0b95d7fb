// SPDX-License-Identifier: GPL-2.0

//! Calling consumers back: completions and events.
//!
//! A provider keeps an upcall handle as long as it likes. Destroying the C
//! object closes the handle: calls that are running are waited for, later
//! ones do nothing. So a consumer is never called after its destroy returned.
//!
//! All calls: softirq or process context, no lock held. The consumer's handler
//! does not sleep, but it may poll and post. Where the core polls a queue itself
//! the handler is the core's, and only schedules that: any context, any lock.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    sys::gate::Gate, //
};

/// The only key; the gate opens once.
const KEY: u8 = 0;

/// The address of a C object.
struct Target<C>(NonNull<C>);

// SAFETY: Only an address; who dereferences it says why that is allowed.
unsafe impl<C> Send for Target<C> {}
// SAFETY: As above.
unsafe impl<C> Sync for Target<C> {}

/// A C object that may be called while the gate is open.
///
/// # Invariants
///
/// While the gate is open or somebody is in it, the target is live.
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
        // An error means that it was closed already, which is as good.
        let _ = self.0.close(None);
        self.0.wait_until_left();
    }

    /// Calls `f` with the target, unless the gate is closed.
    #[inline]
    fn with(&self, f: impl FnOnce(*mut C)) {
        if let Ok(target) = self.0.enter(KEY) {
            f(target.0.as_ptr());
        }
    }
}

/// Calls the consumer of a completion queue.
#[derive(Clone)]
pub(crate) struct CqUpcall(pub(super) Arc<UpcallTarget<bindings::ib_cq>>);

impl CqUpcall {
    /// Says that a completion arrived. C: `ib_cq.comp_handler`.
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

    /// Says that the queue overflowed. C: `IB_EVENT_CQ_ERR`.
    pub(crate) fn error(&self) {
        self.0.with(|cq| {
            // SAFETY: By the invariant of `UpcallTarget` the queue is live.
            let (device, handler, context) =
                unsafe { ((*cq).device, (*cq).event_handler, (*cq).cq_context) };
            let mut event = event(device, bindings::ib_event_type_IB_EVENT_CQ_ERR);
            event.element.cq = cq;
            if let Some(handler) = handler {
                // SAFETY: The consumer's handler wants an event and the context stored with it.
                unsafe { handler(&mut event, context) };
            }
        });
    }
}

/// What may happen to a queue pair. C: `enum ib_event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QpEvent {
    /// It failed for a local reason. C: `IB_EVENT_QP_FATAL`.
    Fatal,
    /// It will take no more from its shared receive queue. C: `IB_EVENT_QP_LAST_WQE_REACHED`.
    LastWqeReached,
}

impl QpEvent {
    fn to_c(self) -> bindings::ib_event_type {
        match self {
            Self::Fatal => bindings::ib_event_type_IB_EVENT_QP_FATAL,
            Self::LastWqeReached => bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED,
        }
    }
}

/// Calls the consumer of a queue pair.
#[derive(Clone)]
pub(crate) struct QpUpcall(pub(super) Arc<UpcallTarget<bindings::ib_qp>>);

impl QpUpcall {
    /// Raises `what`. C: `ib_qp.event_handler`.
    pub(crate) fn event(&self, what: QpEvent) {
        self.0.with(|qp| {
            // SAFETY: By the invariant of `UpcallTarget` the queue pair is live.
            let (device, handler, context) =
                unsafe { ((*qp).device, (*qp).event_handler, (*qp).qp_context) };
            let mut event = event(device, what.to_c());
            event.element.qp = qp;
            if let Some(handler) = handler {
                // SAFETY: The core's handler wants an event and the context stored with it.
                unsafe { handler(&mut event, context) };
            }
        });
    }
}

/// Calls the consumer of a shared receive queue.
#[derive(Clone)]
pub(crate) struct SrqUpcall(pub(super) Arc<UpcallTarget<bindings::ib_srq>>);

impl SrqUpcall {
    /// Says that the requests became fewer than the limit. C: `IB_EVENT_SRQ_LIMIT_REACHED`.
    pub(crate) fn limit_reached(&self) {
        self.raise(bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED);
    }

    fn raise(&self, kind: bindings::ib_event_type) {
        self.0.with(|srq| {
            // SAFETY: By the invariant of `UpcallTarget` the queue is live.
            let (device, handler, context) =
                unsafe { ((*srq).device, (*srq).event_handler, (*srq).srq_context) };
            let mut event = event(device, kind);
            event.element.srq = srq;
            if let Some(handler) = handler {
                // SAFETY: The consumer's handler wants an event and the context stored with it.
                unsafe { handler(&mut event, context) };
            }
        });
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

    /// Counts how often the handler was called, through the context pointer.
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
        assert_eq!(calls.get(), 2);
        Ok(())
    }
}
