// SPDX-License-Identifier: GPL-2.0

//! [`TcpCarrier`] connects queue pairs of this host with those of other hosts, by iWARP over TCP.
//!
//! | file       | contents                                                       |
//! |------------|----------------------------------------------------------------|
//! | `exchange` | a socket over which the frames of a start-up go and come       |
//! | `dial`     | a connect to another host, from the TCP connection to the reply |
//! | `port`     | a TCP port that listens, for all listeners at its address      |
//! | `serve`    | a connection of another host, from its first byte to the answer |
//!
//! Lock order: the table of ports, the socket of one, the stage of a connection, the lock of its
//! TCP socket. No stage is held while a request is submitted, answered or abandoned.

mod dial;
mod exchange;
mod port;
mod serve;
#[cfg(ndk_kunit)]
mod tests;

use core::net::{
    IpAddr,
    SocketAddr, //
};

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

use self::{
    dial::{
        DialHandle,
        Dialing, //
    },
    port::{
        Port,
        PortAddr, //
    }, //
};
use crate::{
    engine::{
        cm::{
            Carrier,
            ConnectRequest,
            ConnectionManager,
            Dial,
            Listener,
            RemoteListener, //
        },
        host::Host,
        prelude::*,
        qp::QueuePair,
        transport::ReadLimits, //
    },
    iwarp::opening::{
        Offer,
        Reads, //
    },
    sys::{
        log::{
            self,
            Limit, //
        },
        param,
        tcp::Socket, //
    },
};

/// The most reads that one side of a connection serves, or has outstanding, at once.
pub(crate) const MAX_READS: u32 = 128;

/// The offer of this side from now on, but for the read limits, which are those of a queue pair. Any
/// context.
fn offer() -> Offer {
    Offer {
        reads: Reads {
            inbound: MAX_READS,
            outbound: MAX_READS,
        },
        crc: param::mpa_crc(),
        extended: true,
    }
}

/// The way to other hosts.
pub(crate) struct TcpCarrier {
    host: Arc<Host>,
    ports: Arc<Ports>,
}

impl TcpCarrier {
    /// A carrier without ports. May sleep. `ENOMEM` when there is no memory.
    pub(crate) fn new(host: &Arc<Host>) -> Result<Arc<Self>> {
        let ports = pin_init!(Ports {
            table <- new_mutex!(RBTree::new()),
        });
        let carrier = Self {
            host: host.clone(),
            ports: Arc::pin_init(ports, GFP_KERNEL)?,
        };
        Ok(Arc::new(carrier, GFP_KERNEL)?)
    }

    /// Adds a listener to the port at its address.
    fn listen_at(&self, cm: &Arc<ConnectionManager>, listener: &Arc<Listener>) -> Result<PortUser> {
        let netdev = listener.events.netdev().ok_or(ENODEV)?;
        let net = netdev.hold_net().ok_or(ENETDOWN)?;
        if net.net().cookie() != listener.net {
            return Err(ENODEV);
        }
        let is_wildcard = listener.at.ip().is_unspecified();
        let at = PortAddr {
            net: net.net(),
            addr: listener.at,
            afonly: !listener.events.is_dual(),
            interface: if is_wildcard { netdev.index() } else { 0 },
        };
        let key = Key::new(listener.net, &at);
        self.ports.open(key, || Port::open(cm, &self.host, &at))?;
        Ok(PortUser {
            ports: self.ports.clone(),
            key,
        })
    }

    /// The number of undecided connections, at all ports.
    #[cfg(ndk_kunit)]
    pub(crate) fn undecided(&self) -> usize {
        let table = self.ports.table.lock();
        table.values().map(|entry| entry.port.undecided()).sum()
    }

    /// Bounds the undecided connections of each port.
    #[cfg(ndk_kunit)]
    pub(crate) fn set_most_undecided(&self, most: usize) {
        let table = self.ports.table.lock();
        table.values().for_each(|entry| entry.port.set_most(most));
    }
}

impl Carrier for TcpCarrier {
    fn dial(
        &self,
        qp: &Arc<QueuePair>,
        request: &Arc<ConnectRequest>,
    ) -> Result<Arc<dyn Dial>, Status> {
        let socket = source(qp, request)?;
        let limits = request.params.limits;
        let offer = Offer {
            reads: Reads {
                inbound: limits.inbound,
                outbound: limits.outbound,
            },
            ..offer()
        };
        let dialing = Dialing::begin(qp, request, offer, socket)?;
        let handle = Arc::new(DialHandle(dialing.clone()), GFP_KERNEL);
        let handle = handle.inspect_err(|_| DialHandle(dialing).cancel());
        Ok(handle.map_err(|_| Status::Aborted)?)
    }

    fn listen(
        &self,
        cm: &Arc<ConnectionManager>,
        listener: &Arc<Listener>,
    ) -> Result<KBox<dyn RemoteListener>> {
        let user = self.listen_at(cm, listener);
        if let Err(e) = &user {
            // A device that goes, or is in another network namespace, has no such port to serve.
            if *e != ENODEV && log::allowed(Limit::Program) {
                pr_notice!(
                    "{:?} is served to this host alone: no TCP port there ({})\n",
                    listener.at,
                    e.to_errno()
                );
            }
        }
        Ok(KBox::new(user?, GFP_KERNEL)?)
    }
}

/// A socket at the source address of the request. Another connection to the same destination may be
/// from the same port, then this one is from another.
///
/// Refused if the device is not in the network namespace of the consumer: a connection leaves that
/// namespace over no device.
fn source(qp: &QueuePair, request: &ConnectRequest) -> Result<Socket, Status> {
    let netdev = qp.device().netdev().ok_or(Status::Unreachable)?;
    let net = netdev.hold_net().ok_or(Status::Unreachable)?;
    if net.net().cookie() != request.params.net {
        return Err(Status::Refused);
    }
    let mut local = request.params.local;
    let bound = match Socket::bound(net.net(), &local, true) {
        Err(e) if e == EADDRINUSE => {
            local.set_port(0);
            Socket::bound(net.net(), &local, true)
        }
        result => result,
    };
    bound.map_err(|e| dial::status_of(Some(e)))
}

/// The namespace, the address, its IPv6 scope, the TCP port and the interface of a [`Port`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64, IpAddr, u32, u16, u32);

impl Key {
    fn new(net: u64, at: &PortAddr<'_>) -> Self {
        let scope = match at.addr {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(v6) => v6.scope_id(),
        };
        Self(net, at.addr.ip(), scope, at.addr.port(), at.interface)
    }
}

/// A port, and the number of its listeners.
struct Entry {
    port: Arc<Port>,
    users: usize,
}

/// All ports.
#[pin_data]
struct Ports {
    #[pin]
    table: Mutex<RBTree<Key, Entry>>,
}

impl Ports {
    /// Adds a listener to the port of that key, which `open` makes if there is none.
    fn open(&self, key: Key, open: impl FnOnce() -> Result<Arc<Port>>) -> Result {
        let mut table = self.table.lock();
        if let Some(entry) = table.get_mut(&key) {
            entry.users += 1;
            return Ok(());
        }
        let port = open()?;
        let entry = Entry {
            port: port.clone(),
            users: 1,
        };
        match RBTreeNode::new(key, entry, GFP_KERNEL) {
            Ok(node) => drop(table.insert(node)),
            Err(e) => {
                port.close();
                return Err(e);
            }
        }
        Ok(())
    }

    /// Removes a listener; the last one closes the port.
    fn close(&self, key: &Key) {
        let mut table = self.table.lock();
        let Some(entry) = table.get_mut(key) else {
            return;
        };
        entry.users -= 1;
        if entry.users == 0 {
            // Under the lock: a listener that comes next finds the address free.
            entry.port.close();
            table.remove(key);
        }
    }
}

/// A listener of a port.
struct PortUser {
    ports: Arc<Ports>,
    key: Key,
}

impl RemoteListener for PortUser {}

impl Drop for PortUser {
    fn drop(&mut self) {
        self.ports.close(&self.key);
    }
}

/// The limits of the peer: those that it has named, or as this side offers.
fn settled(reads: Option<Reads>, offer: &Offer) -> ReadLimits {
    let reads = reads.unwrap_or(Reads {
        inbound: offer.reads.outbound,
        outbound: offer.reads.inbound,
    });
    ReadLimits {
        inbound: reads.inbound.min(MAX_READS),
        outbound: reads.outbound.min(MAX_READS),
    }
}
