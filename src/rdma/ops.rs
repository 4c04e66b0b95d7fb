// SPDX-License-Identifier: GPL-2.0

//! [`Operations`]: what a provider implements.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    cm::{
        CmId,
        ConnParams,
        RequestId, //
    },
    completion::WcWriter,
    cq::{
        Cq,
        CqCreated,
        CqInit,
        Notify, //
    },
    device::Device,
    memory::Extents,
    mr::{
        Mr,
        MrCreated,
        MrKind, //
    },
    object::Pd,
    qp::{
        Qp,
        QpCreated,
        QpInit, //
    },
    recv::RecvChain,
    srq::{
        Srq,
        SrqCreated, //
    },
    types::{
        Access,
        DeviceAttributes,
        QpAttributes,
        QpChange,
        SrqAttributes,
        SrqChange, //
    },
    upcall::{
        CqUpcall,
        SrqUpcall, //
    },
    work::SendChain, //
};
use crate::sys::{
    netdev::{
        NetDev,
        NetDevEvent, //
    },
    span::AllMemory, //
};

/// A provider of kernel verbs over iWARP. C: `struct ib_device_ops`.
///
/// The implementing type has no values; the associated types are what stands
/// behind each object. A payload is made by the create operation, moved behind
/// the C object, and dropped after the destroy operation.
///
/// Operations run in process context and may sleep, except where "any context"
/// is said: those may be called with interrupts disabled, and by many
/// processors at once for the same object.
pub(crate) trait Operations: Sized + Send + Sync + 'static {
    /// What `rdma link add ... type` calls this provider.
    const LINK_TYPE: &'static CStr;
    /// Tells this provider's devices from all others; not zero. C: `enum rdma_driver_id`.
    const DRIVER_ID: u32;
    /// Describes the devices, in at most 63 bytes.
    const NODE_DESC: &'static CStr;
    /// What the devices call the version of their firmware, in at most 31 bytes.
    const FIRMWARE: &'static CStr;
    /// The longest message in bytes.
    const MAX_MESSAGE: u32;
    /// The names of the port's counters, at most [`super::MAX_COUNTERS`].
    const COUNTERS: &'static [&'static CStr];

    /// What stands behind a device.
    type Device: Send + Sync + 'static;
    /// What stands behind a protection domain.
    type Pd: Send + Sync + 'static;
    /// What stands behind a completion queue.
    type Cq: Send + Sync + 'static;
    /// What stands behind a queue pair.
    type Qp: Send + Sync + 'static;
    /// What stands behind a shared receive queue.
    type Srq: Send + Sync + 'static;
    /// What stands behind a memory region.
    type Mr: Send + Sync + 'static;
    /// A listening endpoint.
    type Listener: Send + Sync + 'static;

    /// Makes the provider's side of a new device over `netdev`; `rdma link add` waits for it.
    ///
    /// `memory` is for requests that name local addresses under the device's `local_dma_lkey`,
    /// and for nothing else; an address is its own offset.
    fn open_device(name: &CStr, netdev: &NetDev) -> Result<Self::Device>;

    /// Tells what the device can do; the same at every call.
    fn attributes(device: &Device<Self>) -> DeviceAttributes;

    /// Fills `values` with the counters, in the order of [`Operations::COUNTERS`].
    fn read_counters(device: &Device<Self>, values: &mut [u64]);

    /// Hears of the device's network device, under the RTNL lock. The removal that follows
    /// `Unregister` is not the provider's business.
    fn netdev_event(_device: &Device<Self>, _event: NetDevEvent) {}

    /// Makes a protection domain.
    fn alloc_pd(device: &Device<Self>) -> Result<Self::Pd>;

    /// Makes a completion queue; its consumer is called through `upcall`.
    fn create_cq(
        device: &Device<Self>,
        init: &CqInit,
        upcall: CqUpcall,
    ) -> Result<CqCreated<Self::Cq>>;

    /// Lets the upcall for a satisfied arm wait for `count` completions or for `period_us`
    /// microseconds, whichever is first; if either is zero no upcall waits. May sleep.
    fn modify_cq(cq: &Cq<Self>, count: u16, period_us: u16) -> Result;

    /// Ends the upcalls of a completion queue that no queue pair uses: no one runs when this
    /// returns, and none begins. The queue may still be polled and armed.
    fn pre_destroy_cq(_cq: &Cq<Self>) {}

    /// Ends a completion queue, after [`Operations::pre_destroy_cq`].
    fn destroy_cq(_cq: &Cq<Self>) {}

    /// Hands out completions, as far as there are some and room for them. Any context.
    fn poll_cq(cq: &Cq<Self>, out: &mut WcWriter<'_>) -> Result;

    /// Arms the queue. Any context.
    ///
    /// Returns true if entries are pending and `notify.report_missed` asks for that.
    fn req_notify_cq(cq: &Cq<Self>, notify: Notify) -> Result<bool>;

    /// Makes a queue pair of type RC.
    fn create_qp(device: &Device<Self>, init: &QpInit<'_, Self>) -> Result<QpCreated<Self::Qp>>;

    /// Changes state or attributes. Going to the error state works from every state.
    fn modify_qp(qp: &Qp<Self>, change: &QpChange) -> Result;

    /// Tells the present attributes.
    fn query_qp(qp: &Qp<Self>) -> QpAttributes;

    /// Ends a queue pair: everything outstanding is flushed, and a connection gets its last
    /// event. Then references of iw_cm are waited for, and upcalls end.
    fn destroy_qp(qp: &Qp<Self>);

    /// Posts to the send queue until the chain ends. Any context.
    ///
    /// An error concerns the request that `chain` gave last; those before stay posted.
    fn post_send(qp: &Qp<Self>, chain: &mut SendChain<'_, Self>) -> Result;

    /// Posts to the receive queue; otherwise like [`Operations::post_send`]. Any context.
    fn post_recv(qp: &Qp<Self>, chain: &mut RecvChain<'_>) -> Result;

    /// Makes a shared receive queue.
    fn create_srq(
        pd: &Pd<Self>,
        attributes: &SrqAttributes,
        upcall: SrqUpcall,
    ) -> Result<SrqCreated<Self::Srq>>;

    /// Changes limit or size.
    fn modify_srq(srq: &Srq<Self>, change: &SrqChange) -> Result;

    /// Tells sizes and limit.
    fn query_srq(srq: &Srq<Self>) -> SrqAttributes;

    /// Ends a shared receive queue that no queue pair uses. Upcalls end after this.
    fn destroy_srq(_srq: &Srq<Self>) {}

    /// Posts to a shared receive queue; otherwise like [`Operations::post_send`]. Any context.
    fn post_srq_recv(srq: &Srq<Self>, chain: &mut RecvChain<'_>) -> Result;

    /// Makes a region of `memory`, all that the kernel has, with the rights of `access`; an
    /// address is its own offset.
    fn get_dma_mr(pd: &Pd<Self>, access: Access, memory: AllMemory) -> Result<MrCreated<Self::Mr>>;

    /// Makes a region for fast registration of at most `max_entries` pages or ranges.
    fn alloc_mr(pd: &Pd<Self>, kind: MrKind, max_entries: u32) -> Result<MrCreated<Self::Mr>>;

    /// Stages the ranges for the next registration. Any context.
    ///
    /// A registration that is in force stays as it is. `extents` must be taken to its end.
    fn map_mr_sg(mr: &Mr<Self>, extents: &mut Extents<'_>) -> Result;

    /// Ends a region; nothing touches its memory after this.
    fn dereg_mr(_mr: &Mr<Self>) {}

    /// Starts to connect `qp` to the addresses of `id`.
    ///
    /// After `Ok` exactly one [`CmId::connect_reply`] must follow; after an error none.
    fn connect(id: CmId<Self>, qp: &Qp<Self>, params: &ConnParams<'_>) -> Result;

    /// Accepts `request` on `qp`; the events go to `id`.
    ///
    /// After `Ok` exactly one [`CmId::established`] must follow, and [`CmId::closed`] in the
    /// end; after an error none.
    fn accept(id: CmId<Self>, qp: &Qp<Self>, request: RequestId, params: &ConnParams<'_>)
        -> Result;

    /// Refuses `request`, which made `id`, telling the peer `private_data`. iw_cm does so for a
    /// client that has not taken the request, too: then `id` is still the listener's, see
    /// [`CmId::client`].
    fn reject(id: &CmId<Self>, request: RequestId, private_data: &[u8]) -> Result;

    /// Listens on the local address of `id`; requests are notified by [`CmId::connect_request`].
    fn create_listen(
        device: &Device<Self>,
        id: CmId<Self>,
        backlog: u32,
    ) -> Result<Arc<Self::Listener>>;

    /// Ends listening; no request is notified after this.
    fn destroy_listen(listener: Arc<Self::Listener>) -> Result;
}
