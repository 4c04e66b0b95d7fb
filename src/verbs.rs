// SPDX-License-Identifier: GPL-2.0

//! The verbs face: `ib_device_ops` over the engine. Translation only.
//!
//! | file       | what it translates                                              |
//! |------------|------------------------------------------------------------------|
//! | [`device`] | identity, limits, counters, the network device                   |
//! | [`memory`] | domains, regions, mappings                                       |
//! | [`cq`]     | polling, arming, moderation; a status to `ib_wc_status`          |
//! | [`qp`]     | queue pairs, shared queues, work requests                        |
//! | [`cm`]     | the calls of `iw_cm`, and its events                             |

mod cm;
mod cq;
mod device;
mod memory;
mod qp;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::{
        cm::ConnectionManager,
        counters,
        device::DeviceList,
        domain::Domain,
        host::Host,
        srq::SharedReceive, //
    },
    rdma::{
        self,
        Access,
        CmId,
        ConnParams,
        Cq,
        CqCreated,
        CqInit,
        CqUpcall,
        Device,
        DeviceAttributes,
        Extents,
        Mr,
        MrCreated,
        MrKind,
        Notify,
        Operations,
        Pd,
        Qp,
        QpAttributes,
        QpChange,
        QpCreated,
        QpInit,
        RecvChain,
        RequestId,
        SendChain,
        Srq,
        SrqAttributes,
        SrqChange,
        SrqCreated,
        SrqUpcall,
        WcWriter, //
    },
    sys::{
        global::Global,
        netdev::{
            NetDev,
            NetDevEvent, //
        },
        span::AllMemory, //
    }, //
};

/// What all devices of this face share.
pub(crate) struct Context {
    pub(crate) host: Arc<Host>,
    pub(crate) cm: Arc<ConnectionManager>,
    /// The devices, for all faces to find.
    pub(crate) devices: Arc<DeviceList>,
}

/// Set as long as the provider is registered.
pub(crate) static CONTEXT: Global<Context> = Global::new();

/// The provider.
pub(crate) struct Verbs;

impl Operations for Verbs {
    const LINK_TYPE: &'static CStr = c"ndk";
    /// No number is set aside for providers outside of the kernel tree; this one spells the name.
    const DRIVER_ID: u32 = 0x6e_646b;
    const NODE_DESC: &'static CStr = c"ndk software RDMA";
    const FIRMWARE: &'static CStr = c"1";
    const MAX_MESSAGE: u32 = 1 << 31;
    const COUNTERS: &'static [&'static CStr] = counters::NAMES;

    type Device = device::VerbsDevice;
    type Pd = Arc<Domain>;
    type Cq = cq::Cq;
    type Qp = qp::Qp;
    type Srq = Arc<SharedReceive>;
    type Mr = memory::Region;
    type Listener = cm::Listening;

    fn open_device(name: &CStr, netdev: &NetDev) -> Result<device::VerbsDevice> {
        device::open(name, netdev)
    }

    fn attributes(_device: &Device<Self>) -> DeviceAttributes {
        device::attributes()
    }

    fn read_counters(device: &Device<Self>, values: &mut [u64]) {
        device.read_counters(values);
    }

    fn netdev_event(device: &Device<Self>, event: NetDevEvent) {
        device.netdev_event(event);
    }

    fn alloc_pd(device: &Device<Self>) -> Result<Arc<Domain>> {
        Domain::new(device.device().clone(), GFP_KERNEL)
    }

    fn create_cq(
        device: &Device<Self>,
        init: &CqInit,
        upcall: CqUpcall,
    ) -> Result<CqCreated<cq::Cq>> {
        cq::create(device, init, upcall)
    }

    fn modify_cq(cq: &Cq<Self>, count: u16, period_us: u16) -> Result {
        cq.moderate(count, period_us)
    }

    fn pre_destroy_cq(cq: &Cq<Self>) {
        cq.end_calls();
    }

    fn destroy_cq(cq: &Cq<Self>) {
        cq.close();
    }

    fn poll_cq(cq: &Cq<Self>, out: &mut WcWriter<'_>) -> Result {
        cq.poll(out);
        Ok(())
    }

    fn req_notify_cq(cq: &Cq<Self>, notify: Notify) -> Result<bool> {
        Ok(cq.arm(&notify))
    }

    fn create_qp(device: &Device<Self>, init: &QpInit<'_, Self>) -> Result<QpCreated<qp::Qp>> {
        qp::create(device, init)
    }

    fn modify_qp(qp: &Qp<Self>, change: &QpChange) -> Result {
        qp.modify(change)
    }

    fn query_qp(qp: &Qp<Self>) -> QpAttributes {
        qp.query()
    }

    fn destroy_qp(qp: &Qp<Self>) {
        qp.destroy();
    }

    fn post_send(qp: &Qp<Self>, chain: &mut SendChain<'_, Self>) -> Result {
        qp.post_send(chain)
    }

    fn post_recv(qp: &Qp<Self>, chain: &mut RecvChain<'_>) -> Result {
        qp.post_receive(chain)
    }

    fn create_srq(
        pd: &Pd<Self>,
        attributes: &SrqAttributes,
        upcall: SrqUpcall,
    ) -> Result<SrqCreated<Arc<SharedReceive>>> {
        qp::create_srq(pd, attributes, upcall)
    }

    fn modify_srq(srq: &Srq<Self>, change: &SrqChange) -> Result {
        qp::modify_srq(srq, change)
    }

    fn query_srq(srq: &Srq<Self>) -> SrqAttributes {
        qp::query_srq(srq)
    }

    fn destroy_srq(srq: &Srq<Self>) {
        srq.close();
    }

    fn post_srq_recv(srq: &Srq<Self>, chain: &mut RecvChain<'_>) -> Result {
        qp::post_srq_receive(srq, chain)
    }

    fn get_dma_mr(
        pd: &Pd<Self>,
        access: Access,
        memory: AllMemory,
    ) -> Result<MrCreated<memory::Region>> {
        memory::all(pd, access, memory)
    }

    fn alloc_mr(
        pd: &Pd<Self>,
        kind: MrKind,
        max_entries: u32,
    ) -> Result<MrCreated<memory::Region>> {
        memory::fast(pd, kind, max_entries)
    }

    fn map_mr_sg(mr: &Mr<Self>, extents: &mut Extents<'_>) -> Result {
        mr.map(extents)
    }

    fn dereg_mr(mr: &Mr<Self>) {
        mr.remove();
    }

    fn connect(id: CmId<Self>, qp: &Qp<Self>, params: &ConnParams<'_>) -> Result {
        cm::connect(id, qp, params)
    }

    fn accept(
        id: CmId<Self>,
        qp: &Qp<Self>,
        request: RequestId,
        params: &ConnParams<'_>,
    ) -> Result {
        cm::accept(id, qp, request, params)
    }

    fn reject(id: &CmId<Self>, request: RequestId, private_data: &[u8]) -> Result {
        cm::reject(id, request, private_data)
    }

    fn create_listen(
        device: &Device<Self>,
        id: CmId<Self>,
        _backlog: u32,
    ) -> Result<Arc<cm::Listening>> {
        cm::listen(device, id)
    }

    fn destroy_listen(listening: Arc<cm::Listening>) -> Result {
        listening.end();
        Ok(())
    }
}

/// Registers the provider; dropping the result takes everything down. May sleep.
pub(crate) fn register() -> impl PinInit<rdma::Registration<Verbs>, Error> {
    rdma::Registration::new()
}
