// SPDX-License-Identifier: GPL-2.0

//! Two queue pairs of one host, connected over TCP and the loopback device.

use core::net::{
    Ipv4Addr,
    SocketAddr, //
};

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::harness::wait_until;
use crate::{
    engine::{
        prelude::*,
        qp::QueuePair,
        transport::{
            ConnectionId,
            Peer,
            ReadLimits,
            Transport, //
        }, //
    },
    iwarp::wire::{
        Begins,
        Terms,
        Wire, //
    },
    sys::{
        netdev::{
            Net,
            NetDev, //
        },
        tcp::{
            Socket,
            State, //
        }, //
    },
};

/// Both ends of a connection. End 0 is the first queue pair, end 1 the second.
struct WirePair {
    id: ConnectionId,
    start: Arc<Start>,
    /// The numbers of the queue pairs, and whether they are programs'.
    names: [(u32, bool); 2],
}

impl WirePair {
    fn wire(&self, end: usize) -> &Arc<Wire> {
        // PANIC: `end & 1` is 0 or 1.
        &self.start.wires[end & 1]
    }
}

impl Transport for WirePair {
    fn id(&self) -> ConnectionId {
        self.id
    }

    fn peer(&self, end: usize) -> Option<Peer> {
        let (own, other) = (self.wire(end), self.wire(end ^ 1));
        // PANIC: the index is 0 or 1.
        let (number, is_of_program) = self.names[(end ^ 1) & 1];
        Some(Peer {
            number,
            is_of_program,
            own_wait_since_ms: other.waits_since_ms(),
            peer_wait_since_ms: own.waits_since_ms(),
        })
    }

    fn doorbell(&self, end: usize) {
        self.wire(end).doorbell();
    }

    fn receive_posted(&self, end: usize) {
        self.wire(end).receive_posted();
    }

    fn closing(&self, end: usize) {
        self.wire(end).closing();
    }

    fn stop(&self, end: usize) {
        self.wire(end).stop();
    }
}

impl Drop for WirePair {
    /// Ends a connection that was never attached.
    fn drop(&mut self) {
        self.start.wires.iter().for_each(Wire::stop);
    }
}

/// The start of a connection: each end gets its socket when both queue pairs are attached.
#[pin_data]
struct Start {
    wires: [Arc<Wire>; 2],
    #[pin]
    sockets: Mutex<Option<[Socket; 2]>>,
    #[pin]
    work: Work<Self>,
    _lo: NetDev,
}

impl_has_work! {
    impl HasWork<Self> for Start { self.work }
}

impl WorkItem for Start {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        wait_until(|| this.wires.iter().all(|wire| wire.may_begin()));
        let sockets = this.sockets.lock().take();
        for (wire, socket) in this.wires.iter().zip(sockets.into_iter().flatten()) {
            // After an error the connection ends.
            let _ = wire.begin(socket);
        }
    }
}

/// A connection over the loopback device.
pub(crate) fn sockets() -> Result<(Socket, Socket)> {
    let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let listener = Socket::bound(Net::FIRST, &any, true)?;
    listener.listen(1)?;
    let near = Socket::bound(Net::FIRST, &any, true)?;
    near.connect(&listener.local()?)?;
    let mut far = Err(EAGAIN);
    wait_until(|| {
        far = listener.accept();
        !matches!(far, Err(e) if e == EAGAIN)
    });
    let far = far?;
    match wait_until(|| near.state() == State::Open) {
        true => Ok((near, far)),
        false => Err(ETIMEDOUT),
    }
}

/// Makes the transport between two queue pairs of this host, as
/// [`ConnectFn`](crate::engine::cm::ConnectFn). May sleep.
pub(crate) fn connect(a: &Arc<QueuePair>, b: &Arc<QueuePair>) -> Result<Arc<dyn Transport>> {
    let lo = NetDev::loopback()?;
    let id = a.device().host.next_connection();
    let terms = Terms {
        crc: true,
        extended: true,
        limits: ReadLimits {
            inbound: 128,
            outbound: 128,
        },
        begins: Begins::Here,
    };
    let (near, far) = sockets()?;
    let far_terms = Terms {
        begins: Begins::There,
        ..terms
    };
    let wires = [Wire::new(a, id, terms)?, Wire::new(b, id, far_terms)?];
    let start = Arc::pin_init(
        pin_init!(Start {
            wires,
            sockets <- new_mutex!(Some([near, far])),
            work <- new_work!("ndk_test_wire"),
            _lo: lo,
        }),
        GFP_KERNEL,
    )?;
    let pair = WirePair {
        id,
        start: start.clone(),
        names: [a, b].map(|qp| (qp.params.number, !qp.params.domain.is_trusted())),
    };
    let pair = Arc::new(pair, GFP_KERNEL)?;
    let _ = a.device().host.threads.enqueue(start);
    Ok(pair)
}
