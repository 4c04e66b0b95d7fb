// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use kernel::sync::rcu;

use super::{
    completion::WcWriter,
    details::Details,
    prelude::*,
    upcall::CqUpcall,
    user::share::{
        Shareable,
        UserData, //
    }, //
};
impl IbObject for bindings::ib_cq {
    type Private = Shareable<bindings::ib_cq>;
}

/// A completion queue with the provider's payload.
pub(crate) type Cq<T> = Object<bindings::ib_cq, <T as Operations>::Cq>;

/// The attributes of a new completion queue. C: `struct ib_cq_init_attr`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CqInit {
    /// The number of entries asked for.
    pub(crate) entries: u32,
    /// The completion vector, below the device's number of vectors.
    pub(crate) comp_vector: u32,
    /// The core polls the queue, from softirq or a work queue: the upcall for a completion only
    /// schedules the poll, and may be made in any context, under any lock. C: `ib_alloc_cq()`.
    pub(crate) polled: bool,
    /// A program makes the queue.
    pub(crate) is_of_program: bool,
}

/// The events that a queue is armed for. C: `enum ib_cq_notify_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notify {
    /// Only solicited completions and errors, not the next of any kind.
    pub(crate) solicited_only: bool,
    /// Report that entries are pending.
    pub(crate) report_missed: bool,
}

impl Notify {
    /// Converts from C. `IB_CQ_NEXT_COMP` prevails over `IB_CQ_SOLICITED`; other flags are ignored.
    pub(super) fn from_c(flags: bindings::ib_cq_notify_flags) -> Self {
        let kind = flags & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK;
        Self {
            solicited_only: kind == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED,
            report_missed: flags & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0,
        }
    }
}

/// The operations of a completion queue.
pub(crate) trait CqOperations<T: Operations>: Sized + Send + Sync + 'static {
    /// Makes a completion queue and returns its number of entries, at least as many as asked for;
    /// `upcall` calls the consumer. A program takes the entries by itself if `data` asks for it.
    fn create(
        device: &Device<T>,
        init: &CqInit,
        upcall: CqUpcall,
        data: &UserData,
    ) -> Result<(Self, u32)>;

    /// Delays the upcall for a satisfied arm until `count` completions or `period_us` microseconds,
    /// the earlier of the two; if either is zero no upcall is delayed. May sleep.
    fn modify(&self, count: u16, period_us: u16) -> Result;

    /// Changes the number of entries, and returns it. Completions may be added and polled during
    /// the change. May sleep. `EINVAL` if the queue holds more entries, or the number is beyond the
    /// limits.
    fn resize(&self, entries: u32, data: &UserData) -> Result<u32>;

    /// Ends the upcalls of a completion queue that no queue pair uses: no upcall runs when this
    /// returns, and none begins. The queue may still be polled and armed.
    fn pre_destroy(&self) {}

    /// Ends a completion queue, after [`CqOperations::pre_destroy`].
    fn destroy(&self) {}

    /// Describes the present state of the queue. May sleep.
    fn describe(&self, _details: &mut Details) -> Result {
        Ok(())
    }

    /// Writes pending completions to `out`, as many as it has room for. Any context.
    fn poll(&self, out: &mut WcWriter<'_>);

    /// Arms the queue. Any context.
    ///
    /// Returns true if entries are pending and `notify.report_missed` is set.
    fn req_notify(&self, notify: Notify) -> bool;
}

/// Initialises `cq`. `EOPNOTSUPP` for flags, of which none is known.
pub(super) fn create<T: Operations>(
    mut cq: NewObject<bindings::ib_cq, T::Cq>,
    attr: &bindings::ib_cq_init_attr,
    data: &UserData,
) -> Result {
    if attr.flags != 0 {
        return Err(EOPNOTSUPP);
    }
    // The core reads this once more when the queue exists, and moderates accordingly. After a
    // change in between (`rdma dev set ... adaptive-moderation`) either two processors may measure
    // this queue at a time, or its upcalls go to the vector's processor without need; no completion
    // is lost.
    // SAFETY: The core sets the device of an object before it asks for its creation.
    let adaptive = unsafe { bindings::ndk_device_uses_dim(cq.device) };
    let polled = match cq.poll_ctx {
        // The core has an array for completions only if it polls the queue.
        _ if cq.wc.is_null() => false,
        bindings::ib_poll_context_IB_POLL_DIRECT => false,
        // With adaptive moderation the core measures after it has armed the queue, without a lock,
        // and relies on the softirqs of one processor.
        bindings::ib_poll_context_IB_POLL_SOFTIRQ => !adaptive,
        _ => true,
    };
    let init = CqInit {
        entries: attr.cqe,
        comp_vector: attr.comp_vector,
        polled,
        is_of_program: !cq.uobject.is_null(),
    };
    // SAFETY: The core sets the device of an object before it asks for its creation.
    let device = unsafe { Device::<T>::from_raw(cq.device) };
    // SAFETY: `pre_destroy_cq` closes it; on an error it is closed below.
    let target = unsafe { UpcallTarget::open(cq.as_raw()) }?;
    let (payload, entries) = T::Cq::create(device, &init, CqUpcall(target.clone()), data)
        .inspect_err(|_| target.close())?;
    // CAST: A number of entries, below `i32::MAX` by the provider's own limit.
    cq.cqe = entries as c_int;
    cq.init(Shareable::new(target, data), payload);
    Ok(())
}

/// Waits for the core's handlers that have ended their poll of a queue and still arm it;
/// `irq_poll_disable()` does not wait for these. They run in softirq, which is a read-side critical
/// section of RCU. May sleep.
pub(super) fn wait_for_handlers<T: Operations>(cq: &Cq<T>) {
    // SAFETY: The core sets both before it asks for the queue's creation, and never after that.
    let (wc, context) = unsafe { ((*cq.as_raw()).wc, (*cq.as_raw()).poll_ctx) };
    if !wc.is_null() && context == bindings::ib_poll_context_IB_POLL_SOFTIRQ {
        rcu::synchronize_rcu();
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_cq)]
mod tests {
    use super::*;

    #[test]
    fn next_completion_covers_solicited_ones() {
        let both = bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK;
        let next = bindings::ib_cq_notify_flags_IB_CQ_NEXT_COMP;
        let solicited = bindings::ib_cq_notify_flags_IB_CQ_SOLICITED;
        let missed = bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS;
        assert!(!Notify::from_c(both).solicited_only);
        assert!(!Notify::from_c(next).solicited_only);
        assert!(Notify::from_c(solicited).solicited_only);
        assert!(!Notify::from_c(solicited).report_missed);
        assert!(Notify::from_c(solicited | missed).report_missed);
    }
}
