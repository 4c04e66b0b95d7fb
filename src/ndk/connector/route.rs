// SPDX-License-Identifier: GPL-2.0

//! The addresses of a connection, and what the engine's refusals are called.

use core::net::SocketAddr;

use super::Source;
use crate::{
    engine::{
        cm::Route,
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
