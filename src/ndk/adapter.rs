// SPDX-License-Identifier: GPL-2.0

//! [`Adapter`]: one opening of a device through this face.

use core::net::IpAddr;

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

use super::{
    call::done,
    prelude::*, //
};
use crate::{
    engine::{
        cm::ConnectionManager,
        cq::CompletionQueue,
        device::{
            Client,
            ClientUse,
            DeviceList,
            RdmaDevice, //
        },
        limits::{
            MAX_CQ_ENTRIES,
            MAX_INLINE,
            MAX_MESSAGE,
            MAX_PIECES,
            MAX_READS,
            MAX_READ_SGES,
            MAX_REQUESTS,
            MAX_SGES, //
        },
        srq::SharedReceive, //
    },
    sys::{
        event::Event,
        netdev::Net,
        softirq, //
    }, //
};

/// A version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u16,
    pub(crate) minor: u16,
}

/// The version of this face. The entries that NDKPI 2.1 adds are there as well.
pub(crate) const VERSION: Version = Version { major: 1, minor: 2 };

/// The limits of the device, as `QueryAdapterInfo` reports them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a region registered by `RegisterMr`, and of a window.
    pub(crate) registration: u64,
    pub(crate) pages: u32,
    pub(crate) sges: u32,
    pub(crate) read_sges: u32,
    pub(crate) transfer: u32,
    pub(crate) inline: u32,
    pub(crate) reads: u32,
    pub(crate) requests: u32,
    pub(crate) srq: u32,
    pub(crate) cq: u32,
    /// Bytes of private data, as many as the kernel's connection manager carries.
    pub(crate) private_data: u32,
}

impl Limits {
    /// The limits of the engine.
    pub(crate) const FULL: Self = Self {
        registration: 1 << 30,
        pages: MAX_PIECES,
        sges: MAX_SGES,
        read_sges: MAX_READ_SGES,
        // CAST: 2^31.
        transfer: MAX_MESSAGE as u32,
        inline: MAX_INLINE,
        reads: MAX_READS,
        requests: MAX_REQUESTS,
        srq: MAX_REQUESTS,
        cq: MAX_CQ_ENTRIES,
        private_data: 255,
    };
}

/// The state that all adapters of this face share.
pub(crate) struct NdkContext {
    pub(crate) devices: Arc<DeviceList>,
    pub(crate) cm: Arc<ConnectionManager>,
    pub(crate) limits: Limits,
}

/// The choice of a device among those that are seen from a network namespace.
pub(crate) enum OpenBy<'a> {
    /// By the name under which the device is registered now.
    Name(Net<'a>, &'a CStr),
    /// By an address that the device has in the namespace.
    Address(Net<'a>, IpAddr),
    /// By its name, if the device has that address in the namespace.
    Both(Net<'a>, &'a CStr, IpAddr),
}

#[cfg(ndk_kunit)]
impl<'a> OpenBy<'a> {
    /// By its name, in the first namespace.
    pub(crate) const fn first(name: &'a CStr) -> Self {
        Self::Name(Net::FIRST, name)
    }
}

/// An open adapter.
#[pin_data]
pub(crate) struct Adapter {
    pub(super) device: Arc<RdmaDevice>,
    /// The connection manager of its connections.
    pub(super) cm: Arc<ConnectionManager>,
    limits: Limits,
    closed: Arc<Closed>,
    #[pin]
    state: SpinLockIrq<AdapterState>,
}

/// The end of an adapter's close.
#[pin_data]
struct Closed {
    #[pin]
    event: Event,
    /// The callback for an end that no task waits for.
    #[pin]
    callback: SpinLockIrq<Option<DoneFn<()>>>,
}

impl Closed {
    /// The state of an open adapter. May sleep.
    fn new() -> Result<Arc<Self>, NtStatus> {
        let closed = pin_init!(Self {
            event <- Event::new(),
            callback <- new_spinlock_irq!(None),
        });
        Arc::pin_init(closed, GFP_KERNEL).map_err(no_memory)
    }

    /// Reports that the close is over.
    fn report(&self) {
        let late = self.callback.lock().take();
        if let Some(mut late) = late {
            late.call(());
        }
        self.event.signal();
    }
}

/// The use of the device, and the queues that fail when the device goes.
pub(super) struct AdapterState {
    client: Option<ClientUse>,
    is_device_gone: bool,
    pub(super) cqs: Queues<CompletionQueue>,
    pub(super) srqs: Queues<SharedReceive>,
    /// Reports the end of the close. Allocated at the open: a close does not fail.
    waiter: Option<DoneFn<()>>,
}

/// Queues by their addresses.
type Queues<T> = RBTree<usize, Arc<T>>;

/// Selects the queues of one kind.
type QueuesOf<T> = fn(&mut AdapterState) -> &mut Queues<T>;

impl ObjectType for Adapter {
    fn end(&self) {
        let client = self.state.lock().client.take();
        drop(client);
    }
}

/// Opens a device. May sleep.
///
/// `BAD_VERSION` for another major version or a minor above [`VERSION`]'s; `ADAPTER_NOT_FOUND`;
/// `ADAPTER_NOT_READY` while the device goes; `INSUFFICIENT_RESOURCES`.
pub(crate) fn open(context: &NdkContext, which: &OpenBy<'_>, version: Version) -> Created<Adapter> {
    NtStatus::BAD_VERSION.when(version.major != VERSION.major || version.minor > VERSION.minor)?;
    let device = match *which {
        OpenBy::Name(net, name) => context.devices.by_name(net, name),
        OpenBy::Address(net, ip) => context.devices.by_addr(net, ip),
        OpenBy::Both(net, name, ip) => {
            let device = context.devices.by_name(net, name);
            device.filter(|d| d.is_in(net) && d.netdev().is_some_and(|n| n.owns_addr(ip)))
        }
    };
    let device = device.ok_or(NtStatus::ADAPTER_NOT_FOUND)?;
    let closed = Closed::new()?;
    let ended = closed.clone();
    let state = AdapterState {
        client: None,
        is_device_gone: false,
        cqs: RBTree::new(),
        srqs: RBTree::new(),
        waiter: Some(done(GFP_KERNEL, move |()| ended.report())?),
    };
    let used = device.clone();
    let object = pin_init!(Adapter {
        device,
        cm: context.cm.clone(),
        limits: context.limits,
        closed,
        state <- new_spinlock_irq!(state),
    });
    let none = [None, None, None, None];
    let adapter = Object::new(&used, none, object, GFP_KERNEL).map_err(no_memory)?;
    let client = used.open(adapter.clone())?;
    adapter.state.lock().client = Some(client);
    Ok(adapter)
}

impl Client for Object<Adapter> {
    /// Fails every queue, which tells its consumer to close. No queue is made afterwards.
    fn device_gone(&self) {
        let mut state = self.state.lock();
        state.is_device_gone = true;
        let cqs = core::mem::take(&mut state.cqs);
        let srqs = core::mem::take(&mut state.srqs);
        drop(state);
        for srq in srqs.values() {
            srq.break_down();
        }
        for cq in cqs.values() {
            cq.break_down();
        }
    }
}

impl Adapter {
    /// The limits of the device.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// `ADAPTER_NOT_READY` once the device is going. Any context.
    pub(super) fn check_there(&self) -> Result<(), NtStatus> {
        NtStatus::ADAPTER_NOT_READY.when(self.state.lock().is_device_gone)
    }

    /// Adds a queue to those that fail when the device goes. May sleep.
    pub(super) fn add<T>(&self, queues: QueuesOf<T>, queue: &Arc<T>) -> Result {
        let node = RBTreeNode::new(Arc::as_ptr(queue).addr(), queue.clone(), GFP_KERNEL)?;
        let mut state = self.state.lock();
        if state.is_device_gone {
            drop(state);
            return Err(ENODEV);
        }
        // No other queue has that address.
        let _ = queues(&mut state).insert(node);
        Ok(())
    }

    /// Removes a queue from those that fail when the device goes. Any context.
    pub(super) fn remove<T>(&self, queues: QueuesOf<T>, queue: &Arc<T>) {
        let gone = queues(&mut self.state.lock()).remove_node(&Arc::as_ptr(queue).addr());
        drop(gone);
    }
}

impl Object<Adapter> {
    /// Closes the adapter, and returns when every callback of the adapter and of its objects has
    /// returned; only then `late` is dropped, uncalled. True if the adapter is gone.
    ///
    /// May sleep. A call from inside a callback would wait for itself: it warns instead, and the
    /// adapter goes when its last object has; then `late` is called. A second close has no effect,
    /// and does not call `late` either.
    pub(crate) fn close_with(self: &Arc<Self>, late: Option<DoneFn<()>>) -> bool {
        let waiter = self.state.lock().waiter.take();
        let Some(waiter) = waiter else {
            return false;
        };
        if softirq::is_here() {
            kernel::pr_warn_once!("an adapter was closed from inside a callback\n");
            // The close always pends: the end may sleep.
            *self.closed.callback.lock() = late;
            let _ = self.close(waiter);
            return false;
        }
        if matches!(self.close(waiter), Progress::Pending) {
            self.closed.event.wait();
        }
        drop(late);
        true
    }

    /// As [`Object::close_with`], without a callback.
    #[cfg(ndk_kunit)]
    pub(crate) fn close_and_wait(self: &Arc<Self>) {
        self.close_with(None);
    }
}
