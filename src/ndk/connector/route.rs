// SPDX-License-Identifier: GPL-2.0

//! The addresses of a connection, and what the engine's refusals are called.

use core::net::SocketAddr;

use kernel::sync::Arc;

use super::Source;
use crate::{
    engine::{
        connection::Route,
        device::RdmaDevice, //
    },
    ndk::{
        endpoint::SharedEndpoint,
        life::{
            ObjectUse,
            Ref, //
        },
        status::NtStatus, //
    }, //
};

impl Source {
    /// An endpoint, which is held from now on.
    pub(crate) fn shared(endpoint: &Ref<SharedEndpoint>) -> Self {
        Self::Shared(endpoint.clone(), endpoint.hold())
    }
}

/// Takes the addresses of a connection, or says why it cannot begin (CONN-03, CONN-04).
pub(super) fn route(
    port: &RdmaDevice,
    source: Source,
    remote: SocketAddr,
) -> Result<(Route, Option<ObjectUse>), NtStatus> {
    let netdev = port.netdev().ok_or(NtStatus::NETWORK_UNREACHABLE)?;
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
            let device = device(port);
            let exchange = port.exchange();
            let route = exchange.reserve_pair(device, port.net(), local, remote);
            Ok((route?, None))
        }
        Source::Shared(endpoint, hold) => {
            let route = endpoint.reservation()?.route(remote);
            Ok((route?, Some(hold)))
        }
    }
}

/// The number by which the exchange tells devices apart.
pub(in crate::ndk) fn device(port: &RdmaDevice) -> usize {
    Arc::as_ptr(port.adapter()).addr()
}
