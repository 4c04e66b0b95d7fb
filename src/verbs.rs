// SPDX-License-Identifier: GPL-2.0

//! The verbs face: `ib_device_ops` over the engine. Translation only.
//!
//! | file       | translates                                                       |
//! |------------|------------------------------------------------------------------|
//! | [`device`] | identity, limits, counters, the network device                   |
//! | [`memory`] | domains, regions, mappings                                       |
//! | [`cq`]     | polling, arming, moderation; a status to `ib_wc_status`          |
//! | [`qp`]     | queue pairs, work requests                                       |
//! | [`srq`]    | shared receive queues                                            |
//! | [`cm`]     | the calls of `iw_cm`, and its events                             |

mod cm;
mod cq;
mod device;
mod memory;
mod prelude;
mod qp;
mod srq;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::{
        cm::{
            ConnectionManager,
            Listener, //
        },
        counters,
        cq::CompletionQueue,
        device::DeviceList,
        domain::Domain,
        host::Host,
        srq::SharedReceive, //
    },
    rdma::{
        self,
        LinkType,
        Operations, //
    },
    sys::global::Global, //
};

/// The state that all devices of this face share.
pub(crate) struct VerbsContext {
    pub(crate) host: Arc<Host>,
    pub(crate) cm: Arc<ConnectionManager>,
    /// The devices, for all faces to find.
    pub(crate) devices: Arc<DeviceList>,
}

/// Set as long as the provider is registered.
pub(crate) static CONTEXT: Global<VerbsContext> = Global::new();

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
    type Cq = Arc<CompletionQueue>;
    type Qp = qp::Qp;
    type Srq = Arc<SharedReceive>;
    type Mr = memory::Region;
    type Listener = Listener;
}

/// The link type of the provider, by the module parameter. The log has the reason of an error.
pub(crate) fn link_type() -> Result<LinkType> {
    LinkType::wanted::<Verbs>()
}

/// Registers the provider; dropping the result unregisters it, with its devices. May sleep.
pub(crate) fn register(name: LinkType) -> impl PinInit<rdma::LinkRegistration<Verbs>, Error> {
    rdma::LinkRegistration::new(name)
}
