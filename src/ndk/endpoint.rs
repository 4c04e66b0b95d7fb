// SPDX-License-Identifier: GPL-2.0

//! Where connections begin: [`SharedEndpoint`], one local address for many connections to different
//! destinations, and the addresses of each.

use core::net::SocketAddr;

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    adapter::Adapter,
    call::Done,
    life::{
        Object,
        ObjectType,
        ObjectUse,
        Ref, //
    },
    status::{
        Answer,
        Created,
        NtStatus, //
    }, //
};
use crate::engine::{
    cm::{
        Reservation,
        Route, //
    },
    device::RdmaDevice, //
};

/// A shared endpoint.
#[pin_data]
pub(crate) struct SharedEndpoint {
    at: SocketAddr,
    /// Until the endpoint and every connector over it are closed.
    #[pin]
    held: SpinLockIrq<Option<Arc<Reservation>>>,
}

impl ObjectType for SharedEndpoint {
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
        done: Done<Created<SharedEndpoint>>,
    ) -> Answer<Ref<SharedEndpoint>> {
        self.defer(done, move |this| {
            let held = reserve(this.device(), at)?;
            let endpoint = pin_init!(SharedEndpoint {
                at: held.addr(),
                held <- new_spinlock_irq!(Some(held)),
            });
            this.successor(endpoint, GFP_KERNEL)
        })
    }
}

/// Reserves an address of the device. May sleep.
pub(super) fn reserve(device: &RdmaDevice, at: SocketAddr) -> Result<Arc<Reservation>, NtStatus> {
    let netdev = device.netdev().ok_or(NtStatus::INVALID_ADDRESS)?;
    if !netdev.owns_addr(at.ip()) {
        return Err(NtStatus::INVALID_ADDRESS);
    }
    let reserved = device.cm().reserve(device.id(), device.net(), at);
    Ok(reserved?)
}

impl SharedEndpoint {
    /// `GetLocalAddress`, with the port that was chosen. Any context.
    pub(crate) fn address(&self) -> SocketAddr {
        self.at
    }

    pub(super) fn reservation(&self) -> Result<Arc<Reservation>, NtStatus> {
        self.held.lock().clone().ok_or(NtStatus::CANCELLED)
    }
}

/// The place that a connection starts from.
pub(crate) enum Source {
    /// An address of the adapter; port 0 stands for any.
    Address(SocketAddr),
    Shared(Ref<SharedEndpoint>, ObjectUse),
}

impl Source {
    /// An endpoint, which is held from now on.
    pub(crate) fn shared(endpoint: &Ref<SharedEndpoint>) -> Self {
        Self::Shared(endpoint.clone(), endpoint.hold())
    }
}

/// Takes the addresses of a connection, or says why it cannot begin (CONN-03, CONN-04).
pub(super) fn route(
    device: &RdmaDevice,
    source: Source,
    remote: SocketAddr,
) -> Result<(Route, Option<ObjectUse>), NtStatus> {
    let netdev = device.netdev().ok_or(NtStatus::NETWORK_UNREACHABLE)?;
    let local = match &source {
        Source::Address(local) => *local,
        Source::Shared(endpoint, _) => endpoint.address(),
    };
    if !netdev.owns_addr(local.ip()) {
        return Err(NtStatus::INVALID_ADDRESS);
    }
    if !netdev.is_up() || local.is_ipv4() != remote.is_ipv4() {
        return Err(NtStatus::NETWORK_UNREACHABLE);
    }
    match source {
        Source::Address(local) => {
            let cm = device.cm();
            let route = cm.reserve_pair(device.id(), device.net(), local, remote);
            Ok((route?, None))
        }
        Source::Shared(endpoint, hold) => {
            let route = endpoint.reservation()?.route(remote);
            Ok((route?, Some(hold)))
        }
    }
}
