// SPDX-License-Identifier: GPL-2.0

//! The addresses of a connection, and what the engine's refusals are called.

use core::net::SocketAddr;

use kernel::sync::Arc;

use super::Source;
use crate::{
    engine::{
        connection::{
            AcceptError,
            ConfirmError,
            ReserveError,
            Route, //
        },
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
            Ok((route.map_err(not_reserved)?, None))
        }
        Source::Shared(endpoint, hold) => {
            let route = endpoint.reservation()?.route(remote);
            Ok((route.map_err(not_reserved)?, Some(hold)))
        }
    }
}

/// The number by which the exchange tells devices apart.
pub(in crate::ndk) fn device(port: &RdmaDevice) -> usize {
    Arc::as_ptr(port.adapter()).addr()
}

pub(in crate::ndk) const fn not_reserved(why: ReserveError) -> NtStatus {
    match why {
        ReserveError::InUse => NtStatus::SHARING_VIOLATION,
        ReserveError::Exists => NtStatus::ADDRESS_ALREADY_EXISTS,
        ReserveError::NoPort => NtStatus::TOO_MANY_ADDRESSES,
        ReserveError::NoMemory => NtStatus::INSUFFICIENT_RESOURCES,
    }
}

pub(super) const fn not_confirmed(why: ConfirmError) -> NtStatus {
    match why {
        ConfirmError::Gone => NtStatus::CONNECTION_ABORTED,
        ConfirmError::TimedOut => NtStatus::IO_TIMEOUT,
        ConfirmError::NotReady => NtStatus::CONNECTION_ACTIVE,
        ConfirmError::NoMemory => NtStatus::INSUFFICIENT_RESOURCES,
    }
}

pub(super) const fn not_accepted(why: AcceptError) -> NtStatus {
    match why {
        AcceptError::Gone => NtStatus::CONNECTION_ABORTED,
        AcceptError::NotReady => NtStatus::CONNECTION_ACTIVE,
        AcceptError::NoMemory => NtStatus::INSUFFICIENT_RESOURCES,
    }
}
