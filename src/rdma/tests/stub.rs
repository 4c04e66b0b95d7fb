// SPDX-License-Identifier: GPL-2.0

//! A stub provider, for unit tests of this layer.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::super::{
    values::{
        access::AccessFlags,
        qp::{
            QpCaps,
            QpState, //
        }, //
    },
    *, //
};
use crate::sys::{
    netdev::{
        Net,
        NetDev, //
    },
    span::AllMemory, //
};

/// Accepts operations that need no memory and refuses the rest.
pub(in crate::rdma) struct Stub;

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
}

impl DeviceOperations for () {
    fn open(_name: &CStr, _netdev: &NetDev, _net: Net<'_>) -> Result {
        Ok(())
    }

    fn attributes(&self) -> DeviceAttributes {
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

    fn read_counters(&self, values: &mut [u64]) {
        values.fill(7);
    }

    fn set_port(&self, _port: PortUpcall) -> Result {
        Ok(())
    }

    fn named(&self, _name: Option<&CStr>) {}
}

impl PdOperations<Stub> for () {
    fn alloc(_device: &Device<Stub>, _is_trusted: bool) -> Result {
        Ok(())
    }
}

impl CqOperations<Stub> for () {
    fn create(
        _device: &Device<Stub>,
        init: &CqInit,
        _upcall: CqUpcall,
        _data: &UserData,
    ) -> Result<((), u32)> {
        Ok(((), init.entries))
    }

    fn poll(&self, _out: &mut WcWriter<'_>) {}

    fn modify(&self, _count: u16, _period_us: u16) -> Result {
        Ok(())
    }

    fn resize(&self, entries: u32, _data: &UserData) -> Result<u32> {
        Ok(entries)
    }

    fn req_notify(&self, _notify: Notify) -> bool {
        false
    }
}

impl QpOperations<Stub> for () {
    fn create(_device: &Device<Stub>, init: &QpInit<'_, Stub>) -> Result<((), QpCaps)> {
        Ok(((), init.caps))
    }

    fn modify(&self, _change: &QpChange) -> Result {
        Ok(())
    }

    fn query(&self) -> QpAttributes {
        QpAttributes {
            state: QpState::Reset,
            caps: QpCaps::NONE,
            access: AccessFlags::default(),
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            signal_all: false,
        }
    }

    fn destroy(&self) {}

    fn post_send(&self, chain: &mut SendChain<'_>) -> Result {
        while let Some(_request) = chain.next()? {}
        Err(ENOTCONN)
    }

    fn post_recv(&self, chain: &mut RecvChain<'_>) -> Result {
        while let Some(_request) = chain.next()? {}
        Err(ENOTCONN)
    }
}

impl SrqOperations<Stub> for () {
    fn create(
        _pd: &Pd<Stub>,
        _wanted: &SrqAttributes,
        _upcall: SrqUpcall,
        _data: &UserData,
    ) -> Result {
        Ok(())
    }

    fn modify(&self, _change: &SrqChange, _data: &UserData) -> Result {
        Ok(())
    }

    fn query(&self) -> SrqAttributes {
        SrqAttributes::default()
    }

    fn post_recv(&self, _chain: &mut RecvChain<'_>) -> Result {
        Err(ENOMEM)
    }
}

impl MrOperations<Stub> for () {
    fn get_dma(_pd: &Pd<Stub>, _access: AccessFlags, _memory: AllMemory) -> Result<((), u32)> {
        Err(EOPNOTSUPP)
    }

    fn alloc(_pd: &Pd<Stub>, _max_entries: u32) -> Result<((), u32)> {
        Err(EOPNOTSUPP)
    }

    fn reg_user(
        _pd: &Pd<Stub>,
        _access: AccessFlags,
        _iova: u64,
        _pieces: UmemPieces<'_>,
    ) -> Result<((), u32)> {
        Err(EOPNOTSUPP)
    }

    fn map_sg(&self, extents: &mut Extents<'_>) -> Result {
        for _extent in extents {}
        Ok(())
    }
}

impl CmOperations<Stub> for () {
    fn may_connect(&self) -> bool {
        true
    }

    fn connect(&self, _id: CmId<Stub>, _params: &ConnParams<'_>) -> Result {
        Err(EOPNOTSUPP)
    }

    fn accept(&self, _: CmId<Stub>, _: RequestId, _: &ConnParams<'_>) -> Result {
        Err(EOPNOTSUPP)
    }
}

impl ListenerOperations<Stub> for u32 {
    fn create(_: &Device<Stub>, _: CmId<Stub>, _net: u64, backlog: u32) -> Result<Arc<u32>> {
        Ok(Arc::new(backlog, GFP_KERNEL)?)
    }

    fn destroy(self: &Arc<Self>, _: &Device<Stub>) -> Result {
        match **self {
            7 => Ok(()),
            _ => Err(EINVAL),
        }
    }

    fn reject(_id: &CmId<Stub>, _request: RequestId, _private_data: &[u8]) -> Result {
        Ok(())
    }
}
