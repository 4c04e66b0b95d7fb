// SPDX-License-Identifier: GPL-2.0

//! The local addresses of connections: [`SharedEndpoint`], for many of them, and [`Source`].

use core::net::SocketAddr;

use super::prelude::*;
use crate::engine::cm::{
    Reservation,
    Route, //
};

/// A shared endpoint.
#[pin_data]
pub(crate) struct SharedEndpoint {
    owner: Ref<Adapter>,
    at: SocketAddr,
    /// The reservation, until the endpoint and every connector over it are closed.
    #[pin]
    held: SpinLockIrq<Option<Arc<Reservation>>>,
}

impl ObjectType for SharedEndpoint {
    fn end_sleeps(&self) -> bool {
        false
    }

    fn end(&self) {
        let held = self.held.lock().take();
        drop(held);
    }
}

impl Object<Adapter> {
    /// `CreateSharedEndpoint`; port 0 stands for any (SHEP-01).
    pub(crate) fn create_shared_endpoint(
        self: &Arc<Self>,
        at: SocketAddr,
        done: DoneFn<Created<SharedEndpoint>>,
    ) -> Answer {
        self.defer(done, move |this| {
            let held = reserve(this, at)?;
            let endpoint = pin_init!(SharedEndpoint {
                owner: this.clone(),
                at: held.addr(),
                held <- new_spinlock_irq!(Some(held)),
            });
            this.successor(endpoint, GFP_KERNEL)
        })
    }
}

/// Reserves an address of the adapter. May sleep.
pub(super) fn reserve(adapter: &Adapter, at: SocketAddr) -> Result<Arc<Reservation>, NtStatus> {
    let device = &adapter.device;
    let netdev = device.netdev().ok_or(NtStatus::INVALID_ADDRESS)?;
    NtStatus::INVALID_ADDRESS.unless(netdev.owns_addr(at.ip()))?;
    let reserved = adapter.cm.reserve(device.id(), device.net, at);
    Ok(reserved?)
}

impl SharedEndpoint {
    /// `GetLocalAddress`, with the port that was chosen. Any context.
    pub(crate) fn address(&self) -> SocketAddr {
        self.at
    }

    /// Returns the reservation of the address; `CANCELLED` after the end of the endpoint. Any
    /// context.
    pub(super) fn reservation(&self) -> Result<Arc<Reservation>, NtStatus> {
        self.held.lock().clone().ok_or(NtStatus::CANCELLED)
    }
}

/// The local address of a connection to make.
pub(crate) enum Source {
    /// An address of the adapter; port 0 stands for any.
    Address(SocketAddr),
    Shared(Ref<SharedEndpoint>, ObjectUse),
}

impl Source {
    /// The source `endpoint`, with a use of it.
    pub(crate) fn shared(endpoint: &Ref<SharedEndpoint>) -> Self {
        Self::Shared(endpoint.clone(), endpoint.new_use())
    }

    /// Returns true unless the source is an endpoint of another adapter.
    pub(super) fn is_of(&self, adapter: &Ref<Adapter>) -> bool {
        match self {
            Self::Address(_) => true,
            Self::Shared(endpoint, _) => Arc::ptr_eq(&endpoint.owner, adapter),
        }
    }
}

/// Reserves the addresses of a connection; the error says why it cannot begin (CONN-03, CONN-04).
pub(super) fn route(
    adapter: &Adapter,
    source: Source,
    remote: SocketAddr,
) -> Result<(Route, Option<ObjectUse>), NtStatus> {
    let device = &adapter.device;
    let netdev = device.netdev().ok_or(NtStatus::NETWORK_UNREACHABLE)?;
    let local = match &source {
        Source::Address(local) => *local,
        Source::Shared(endpoint, _) => endpoint.address(),
    };
    NtStatus::INVALID_ADDRESS.unless(netdev.owns_addr(local.ip()))?;
    NtStatus::NETWORK_UNREACHABLE.when(!netdev.is_up() || local.is_ipv4() != remote.is_ipv4())?;
    match source {
        Source::Address(local) => {
            let cm = &adapter.cm;
            let route = cm.reserve_pair(device.id(), device.net, local, remote);
            Ok((route?, None))
        }
        Source::Shared(endpoint, endpoint_use) => {
            let route = endpoint.reservation()?.route(remote);
            Ok((route?, Some(endpoint_use)))
        }
    }
}
