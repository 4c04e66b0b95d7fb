// SPDX-License-Identifier: GPL-2.0

//! A provider that does nothing, for unit tests of this layer.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::*;
use crate::sys::{
    netdev::NetDev,
    span::AllMemory, //
};

/// Accepts what needs no memory and refuses the rest.
pub(super) struct Stub;

impl Operations for Stub {
    const LINK_TYPE: &'static CStr = c"stub";
    const DRIVER_ID: u32 = 0x73_7475;
    const NODE_DESC: &'static CStr = c"stub";
    const FIRMWARE: &'static CStr = c"1";
    const MAX_MESSAGE: u32 = 1 << 30;
    const COUNTERS: &'static [&'static CStr] = &[c"one", c"two"];

    type Device = ();
    type Pd = ();
    type Cq = ();
    type Qp = ();
    type Srq = ();
    type Mr = ();
    type Listener = u32;

    fn open_device(_name: &CStr, _netdev: &NetDev) -> Result<()> {
        Ok(())
    }

    fn attributes(_device: &Device<Self>) -> DeviceAttributes {
        DeviceAttributes {
            max_qp: 16,
            max_qp_wr: 1024,
            max_cqe: 4096,
            max_cq: 16,
            max_pd: 16,
            max_mr: 16,
            comp_vectors: 1,
            local_dma_lkey: Some(0),
            ..Default::default()
        }
    }

    fn read_counters(_device: &Device<Self>, values: &mut [u64]) {
        values.fill(7);
    }

    fn alloc_pd(_device: &Device<Self>) -> Result<()> {
        Ok(())
    }

    fn create_cq(_: &Device<Self>, init: &CqInit, upcall: CqUpcall) -> Result<CqCreated<()>> {
        drop(upcall);
        Ok(CqCreated {
            payload: (),
            entries: init.entries,
        })
    }

    fn poll_cq(_cq: &Cq<Self>, _out: &mut WcWriter<'_>) -> Result {
        Ok(())
    }

    fn modify_cq(_cq: &Cq<Self>, _count: u16, _period_us: u16) -> Result {
        Ok(())
    }

    fn req_notify_cq(_cq: &Cq<Self>, _notify: Notify) -> Result<bool> {
        Ok(false)
    }

    fn create_qp(_device: &Device<Self>, init: &QpInit<'_, Self>) -> Result<QpCreated<()>> {
        Ok(QpCreated {
            payload: (),
            caps: init.caps,
        })
    }

    fn modify_qp(_qp: &Qp<Self>, _change: &QpChange) -> Result {
        Ok(())
    }

    fn query_qp(_qp: &Qp<Self>) -> QpAttributes {
        QpAttributes {
            state: QpState::Reset,
            caps: QpCaps::default(),
            access: Access::default(),
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            signal_all: false,
        }
    }

    fn destroy_qp(_qp: &Qp<Self>) {}

    fn post_send(_qp: &Qp<Self>, chain: &mut SendChain<'_, Self>) -> Result {
        while let Some(_request) = chain.next()? {}
        Err(ENOTCONN)
    }

    fn post_recv(_qp: &Qp<Self>, chain: &mut RecvChain<'_>) -> Result {
        while let Some(_request) = chain.next()? {}
        Err(ENOTCONN)
    }

    fn create_srq(
        _pd: &Pd<Self>,
        attributes: &SrqAttributes,
        _upcall: SrqUpcall,
    ) -> Result<SrqCreated<()>> {
        Ok(SrqCreated {
            payload: (),
            granted: *attributes,
        })
    }

    fn modify_srq(_srq: &Srq<Self>, _change: &SrqChange) -> Result {
        Ok(())
    }

    fn query_srq(_srq: &Srq<Self>) -> SrqAttributes {
        SrqAttributes::default()
    }

    fn post_srq_recv(_srq: &Srq<Self>, _chain: &mut RecvChain<'_>) -> Result {
        Err(ENOMEM)
    }

    fn get_dma_mr(_pd: &Pd<Self>, _access: Access, _memory: AllMemory) -> Result<MrCreated<()>> {
        Err(EOPNOTSUPP)
    }

    fn alloc_mr(_pd: &Pd<Self>, _kind: MrKind, _max_entries: u32) -> Result<MrCreated<()>> {
        Err(EOPNOTSUPP)
    }

    fn map_mr_sg(_mr: &Mr<Self>, extents: &mut Extents<'_>) -> Result {
        for _extent in extents {}
        Ok(())
    }

    fn connect(_id: CmId<Self>, _qp: &Qp<Self>, _params: &ConnParams<'_>) -> Result {
        Err(EOPNOTSUPP)
    }

    fn accept(
        _id: CmId<Self>,
        _qp: &Qp<Self>,
        _request: RequestId,
        _params: &ConnParams<'_>,
    ) -> Result {
        Err(EOPNOTSUPP)
    }

    fn reject(_id: &CmId<Self>, _request: RequestId, _private_data: &[u8]) -> Result {
        Ok(())
    }

    fn create_listen(_: &Device<Self>, _id: CmId<Self>, backlog: u32) -> Result<Arc<u32>> {
        Ok(Arc::new(backlog, GFP_KERNEL)?)
    }

    fn destroy_listen(listener: Arc<u32>) -> Result {
        match *listener {
            7 => Ok(()),
            _ => Err(EINVAL),
        }
    }
}
