// SPDX-License-Identifier: GPL-2.0

//! [`Port`]: a TCP port that listens, for all listeners at its address.
//!
//! At a wildcard each device has a port of its own, which takes connections that come by its network
//! device alone.
//!
//! Context: process, but for what says any.
//!
//! Tests: `iwarp/carrier/tests.rs`.

use core::net::SocketAddr;

use kernel::{
    impl_has_work,
    new_work,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::serve::Serving;
use crate::{
    engine::{
        cm::ConnectionManager,
        host::Host,
        prelude::*, //
    },
    sys::{
        netdev::Net,
        tcp::{
            Events,
            Owned,
            Socket,
            Stream, //
        },
        timer::{
            Expires,
            Timer, //
        }, //
    },
};

/// The most connections of a port that are not decided; further ones wait with TCP.
const MAX_UNDECIDED: usize = 1024;

/// The connections that wait with TCP.
const BACKLOG: u32 = 1024;

/// The connections that the work item takes before others have their turn.
const AT_ONCE: usize = 64;

/// The time after which a connection that could not be taken is tried again, in milliseconds.
const RETRY_MS: u32 = 10;

/// Connections that are not decided, and the number of the next one.
struct Undecided {
    all: RBTree<u64, Arc<Serving>>,
    count: usize,
    /// Their largest number.
    most: usize,
    is_over: bool,
}

/// A TCP port that listens.
#[pin_data]
pub(super) struct Port {
    cm: Arc<ConnectionManager>,
    host: Arc<Host>,
    net: u64,
    next: Atomic<u64>,
    #[pin]
    socket: Mutex<Option<Owned<PortEvents>>>,
    #[pin]
    undecided: SpinLockIrq<Undecided>,
    #[pin]
    retry: Timer<Self>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Port { self.work }
}

/// The port, as its socket knows it.
struct PortEvents(Arc<Port>);

impl Events for PortEvents {
    fn readable(&self, _stream: &mut Stream<'_>) {}

    fn arrived(&self) {
        self.0.kick();
    }

    fn writable(&self) {}

    fn changed(&self) {}
}

impl Port {
    /// Listens at that address of the namespace; at a wildcard, for connections by the interface of
    /// that number alone. The IPv6 wildcard stands for IPv4, too, unless `afonly`.
    pub(super) fn open(
        cm: &Arc<ConnectionManager>,
        host: &Arc<Host>,
        at: &PortAddr<'_>,
    ) -> Result<Arc<Self>> {
        let socket = Socket::bound_by(at.net, &at.addr, at.afonly, at.interface)?;
        socket.listen(BACKLOG)?;
        let port = Arc::pin_init(
            pin_init!(Self {
                cm: cm.clone(),
                host: host.clone(),
                net: at.net.cookie(),
                next: Atomic::new(1),
                socket <- new_mutex!(None),
                undecided <- new_spinlock_irq!(Undecided {
                    all: RBTree::new(),
                    count: 0,
                    most: MAX_UNDECIDED,
                    is_over: false,
                }),
                retry <- Timer::new(),
                work <- new_work!("ndk_port"),
            }),
            GFP_KERNEL,
        )?;
        let events = Arc::new(PortEvents(port.clone()), GFP_KERNEL)?;
        *port.socket.lock() = Some(Owned::new(socket, events)?);
        // Connections that came before caused no event.
        port.kick();
        Ok(port)
    }

    pub(super) fn cm(&self) -> &Arc<ConnectionManager> {
        &self.cm
    }

    pub(super) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The identity of the network namespace.
    pub(super) fn net(&self) -> u64 {
        self.net
    }

    /// Has the work item take connections. Any context.
    fn kick(self: &Arc<Self>) {
        // An item that is queued already has yet to run.
        let _ = self.host.threads.enqueue(self.clone());
    }

    /// Ends listening. Connections that have not asked yet are closed soon.
    pub(super) fn close(&self) {
        let socket = self.socket.lock().take();
        drop(socket);
        self.retry.cancel();
        let mut undecided = self.undecided.lock();
        undecided.is_over = true;
        drop(undecided);
        let mut from = 0;
        while let Some((number, serving)) = self.first(from) {
            serving.cancel();
            from = number + 1;
        }
    }

    /// The undecided connection with that number, or the next one.
    fn first(&self, from: u64) -> Option<(u64, Arc<Serving>)> {
        let undecided = self.undecided.lock();
        let cursor = undecided.all.cursor_lower_bound(&from)?;
        let (number, serving) = cursor.current();
        Some((*number, serving.clone()))
    }

    /// Forgets a connection, which is decided. Any context.
    pub(super) fn remove(self: &Arc<Self>, number: u64) {
        let mut undecided = self.undecided.lock();
        let gone = undecided.all.remove_node(&number);
        let was_full = undecided.count >= undecided.most;
        undecided.count -= usize::from(gone.is_some());
        drop(undecided);
        if was_full && gone.is_some() {
            self.kick();
        }
    }

    /// The number of undecided connections.
    #[cfg(ndk_kunit)]
    pub(super) fn undecided(&self) -> usize {
        self.undecided.lock().count
    }

    fn is_full(&self) -> bool {
        let undecided = self.undecided.lock();
        undecided.count >= undecided.most
    }

    #[cfg(ndk_kunit)]
    pub(super) fn set_most(&self, most: usize) {
        self.undecided.lock().most = most;
    }

    /// Takes the next connection. `EAGAIN` if there is none, or no room for it; after another error
    /// it may be there still, or was closed.
    fn take(self: &Arc<Self>, socket: &Socket) -> Result {
        if self.is_full() {
            return Err(EAGAIN);
        }
        let incoming = socket.accept()?;
        // OVERFLOW: 2^64 connections.
        let number = self.next.fetch_add(1, Relaxed);
        let serving = Serving::new(self, number, super::offer(), incoming)?;
        let node = RBTreeNode::new(number, serving.clone(), GFP_KERNEL);
        let Ok(node) = node else {
            serving.cancel();
            return Err(ENOMEM);
        };
        let mut undecided = self.undecided.lock();
        undecided.all.insert(node);
        undecided.count += 1;
        let is_over = undecided.is_over;
        drop(undecided);
        match is_over {
            true => serving.cancel(),
            false => serving.begin(),
        }
        if serving.is_over() {
            // It ended before it was among the others.
            self.remove(number);
        }
        Ok(())
    }
}

impl WorkItem for Port {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        #[cfg(ndk_kunit)]
        let _fault = crate::sys::fault::begin_planned();
        let place = this.socket.lock();
        let Some(socket) = place.as_ref() else {
            return;
        };
        for _ in 0..AT_ONCE {
            match this.take(socket) {
                Ok(()) => {}
                Err(e) if e == EAGAIN => return,
                // For want of memory, mostly.
                Err(_) => return this.retry.arm(&this, RETRY_MS),
            }
        }
        drop(place);
        this.kick();
    }
}

impl Expires for Port {
    fn expired(this: Arc<Self>) {
        this.kick();
    }
}

/// The address of a port.
pub(super) struct PortAddr<'a> {
    pub(super) net: Net<'a>,
    pub(super) addr: SocketAddr,
    /// A wildcard of IPv6 does not stand for IPv4.
    pub(super) afonly: bool,
    /// The number of the interface by which connections come; 0 for any.
    pub(super) interface: u32,
}
