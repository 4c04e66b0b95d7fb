// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.

use super::{
    prelude::*,
    recv::RecvChain,
    upcall::SrqUpcall,
    user::share::{
        Shareable,
        UserData, //
    }, //
};
impl IbObject for bindings::ib_srq {
    type Private = Shareable<bindings::ib_srq>;
}

/// A shared receive queue with the provider's payload.
pub(crate) type Srq<T> = Object<bindings::ib_srq, <T as Operations>::Srq>;

/// Sizes and limit of a shared receive queue. C: `struct ib_srq_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SrqAttributes {
    /// Requests outstanding.
    pub(crate) max_wr: u32,
    /// Scatter entries of a request.
    pub(crate) max_sge: u32,
    /// Below this many requests the limit event is raised, once; zero means never.
    pub(crate) limit: u32,
}

impl SrqAttributes {
    fn from_c(attr: &bindings::ib_srq_attr) -> Self {
        Self {
            max_wr: attr.max_wr,
            max_sge: attr.max_sge,
            limit: attr.srq_limit,
        }
    }

    /// Converts to C.
    pub(super) fn to_c(self) -> bindings::ib_srq_attr {
        bindings::ib_srq_attr {
            max_wr: self.max_wr,
            max_sge: self.max_sge,
            srq_limit: self.limit,
        }
    }
}

/// The changes that `modify_srq` asks for; `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SrqChange {
    /// The new number of requests.
    pub(crate) max_wr: Option<u32>,
    /// The new limit, which arms the event.
    pub(crate) limit: Option<u32>,
}

impl SrqChange {
    /// Converts from C.
    pub(super) fn from_c(attr: &bindings::ib_srq_attr, mask: bindings::ib_srq_attr_mask) -> Self {
        let has = |bit: bindings::ib_srq_attr_mask| mask & bit != 0;
        Self {
            max_wr: has(bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR).then_some(attr.max_wr),
            limit: has(bindings::ib_srq_attr_mask_IB_SRQ_LIMIT).then_some(attr.srq_limit),
        }
    }
}

/// The operations of a shared receive queue.
pub(crate) trait SrqOperations<T: Operations>: Sized + Send + Sync + 'static {
    /// Makes a shared receive queue. [`SrqOperations::query`] then returns the sizes granted, none
    /// smaller than asked for. A program posts without a call if `data` asks for it.
    fn create(
        pd: &Pd<T>,
        wanted: &SrqAttributes,
        upcall: SrqUpcall,
        data: &UserData,
    ) -> Result<Self>;

    /// Changes limit or size.
    fn modify(&self, change: &SrqChange, data: &UserData) -> Result;

    /// Returns sizes and limit.
    fn query(&self) -> SrqAttributes;

    /// Ends a shared receive queue that no queue pair uses. Upcalls end after this.
    fn destroy(&self) {}

    /// Posts to the queue; otherwise like [`post_send`](super::qp::QpOperations::post_send). Any
    /// context.
    fn post_recv(&self, chain: &mut RecvChain<'_>) -> Result;
}

/// Initialises `srq`, and writes the granted sizes to `init`. `EOPNOTSUPP` for types other than the
/// basic one.
pub(super) fn create<T: Operations>(
    srq: NewObject<bindings::ib_srq, T::Srq>,
    init: &mut bindings::ib_srq_init_attr,
    data: &UserData,
) -> Result {
    if init.srq_type != bindings::ib_srq_type_IB_SRQT_BASIC {
        return Err(EOPNOTSUPP);
    }
    // SAFETY: The core sets the domain of an object before it asks for its creation.
    let pd = unsafe { Pd::<T>::from_raw(srq.pd) };
    // SAFETY: `destroy_srq` closes it; on an error it is closed below.
    let target = unsafe { UpcallTarget::open(srq.as_raw()) }?;
    let wanted = SrqAttributes::from_c(&init.attr);
    let payload = T::Srq::create(pd, &wanted, SrqUpcall(target.clone()), data)
        .inspect_err(|_| target.close())?;
    init.attr = payload.query().to_c();
    srq.init(Shareable::new(target, data), payload);
    Ok(())
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_srq)]
mod tests {
    use super::*;

    #[test]
    fn change_holds_only_what_the_mask_names() {
        let attr = SrqAttributes {
            max_wr: 5,
            max_sge: 6,
            limit: 7,
        }
        .to_c();
        let limit = SrqChange::from_c(&attr, bindings::ib_srq_attr_mask_IB_SRQ_LIMIT);
        kunit_assert_eq!(limit.limit, Some(7));
        assert!(limit.max_wr.is_none());
        let size = SrqChange::from_c(&attr, bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR);
        kunit_assert_eq!(size.max_wr, Some(5));
        assert!(size.limit.is_none());
    }
}
