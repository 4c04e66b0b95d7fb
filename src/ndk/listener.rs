// SPDX-License-Identifier: GPL-2.0

//! [`Listener`]: an address at which peers ask for connections.

use core::net::{
    IpAddr,
    SocketAddr, //
};

use kernel::sync::atomic::{
    ordering::{
        Acquire,
        Release, //
    },
    AtomicFlag, //
};

use super::{
    call::call_consumer,
    connector::Connector,
    endpoint::reserve,
    prelude::*, //
};
use crate::{
    engine::{
        cm::{
            ConnectRequest,
            Listener as EngineListener,
            ListenerEvents, //
        },
        counters::Counter,
        device::RdmaDevice,
        inject::SiteKind, //
    },
    sys::netdev::NetDev, //
};

/// Takes a connector for each request. Called with softirqs off, also concurrently.
pub(crate) type ConnectUser = KBox<dyn Fn(Ref<Connector>) + Send + Sync>;

enum ListenerState {
    Idle,
    /// A call is pending, perhaps with an address already.
    Busy(Option<SocketAddr>),
    Listening(Arc<EngineListener>, SocketAddr),
}

/// A listener.
#[pin_data]
pub(crate) struct Listener {
    owner: Ref<Adapter>,
    user: Arc<ConnectUser>,
    /// Requests are refused, as without a listener.
    paused: AtomicFlag,
    #[pin]
    state: SpinLockIrq<ListenerState>,
}

impl ObjectType for Listener {
    fn end_sleeps(&self) -> bool {
        matches!(*self.state.lock(), ListenerState::Listening(..))
    }

    fn end(&self) {
        let state = core::mem::replace(&mut *self.state.lock(), ListenerState::Idle);
        if let ListenerState::Listening(listener, _) = state {
            self.owner.cm.unlisten(&listener);
        }
    }
}

impl Listener {
    /// `ControlConnectEvents`: while paused, requests are refused (LSTN-04). Any context.
    pub(crate) fn pause(&self, pause: bool) {
        self.paused.store(pause, Release);
    }

    /// `GetLocalAddress`, with the port that was chosen; `INVALID_DEVICE_STATE` before it listens.
    /// Any context.
    pub(crate) fn address(&self) -> Result<SocketAddr, NtStatus> {
        match &*self.state.lock() {
            ListenerState::Listening(_, at) | ListenerState::Busy(Some(at)) => Ok(*at),
            ListenerState::Idle | ListenerState::Busy(None) => Err(NtStatus::INVALID_DEVICE_STATE),
        }
    }
}

impl Object<Adapter> {
    /// `CreateListener`; completes at once.
    pub(crate) fn create_listener(self: &Arc<Self>, user: ConnectUser) -> Created<Listener> {
        let user = Arc::new(user, GFP_ATOMIC)?;
        let listener = pin_init!(Listener {
            owner: self.clone(),
            user,
            paused: AtomicFlag::new(false),
            state <- new_spinlock_irq!(ListenerState::Idle),
        });
        self.successor(listener, GFP_ATOMIC)
    }
}

impl Object<Listener> {
    /// `Listen`; port 0 stands for any (LSTN-01). `INVALID_DEVICE_REQUEST` if the listener is not
    /// idle.
    pub(crate) fn listen(self: &Arc<Self>, at: SocketAddr, done: DoneFn<NtStatus>) -> Answer {
        let mut state = self.state.lock();
        NtStatus::INVALID_DEVICE_REQUEST.unless(matches!(*state, ListenerState::Idle))?;
        *state = ListenerState::Busy(None);
        drop(state);
        let answer = self.defer(done, move |this| this.end_listen(at));
        if answer.is_err() {
            *self.state.lock() = ListenerState::Idle;
        }
        answer
    }

    fn end_listen(self: &Arc<Self>, at: SocketAddr) -> NtStatus {
        let (state, ended) = match self.begin(at) {
            Ok(listening) => (listening, NtStatus::SUCCESS),
            Err(status) => (ListenerState::Idle, status),
        };
        *self.state.lock() = state;
        ended
    }

    fn begin(self: &Arc<Self>, at: SocketAddr) -> Result<ListenerState, NtStatus> {
        let device = self.owner.device();
        device.may_make(SiteKind::Listener).map_err(no_memory)?;
        let held = reserve(&self.owner, at)?;
        let at = held.addr();
        // Events may come before the call has ended.
        *self.state.lock() = ListenerState::Busy(Some(at));
        let events = KBox::new(ListenEvents(self.clone()), GFP_KERNEL)?;
        Ok(ListenerState::Listening(
            self.owner.cm.listen_on(held, events)?,
            at,
        ))
    }

    /// Gives the consumer a connector for a request. Process context.
    fn request(self: &Arc<Self>, request: Arc<ConnectRequest>) -> Result {
        if self.paused.load(Acquire) {
            return Err(ECONNREFUSED);
        }
        // The listener may be closed at the same time.
        let listener_use = self.try_use().ok_or(ECONNREFUSED)?;
        let connector = self.owner.incoming(listener_use.again(), request)?;
        let user = self.user.clone();
        let task = move || {
            call_consumer(|| (**user)(connector));
            drop(listener_use);
        };
        self.device().host.threads.spawn(GFP_KERNEL, task)
    }
}

/// The listener for the engine, which drops it when the listener ends.
struct ListenEvents(Ref<Listener>);

impl ListenEvents {
    fn device(&self) -> &RdmaDevice {
        self.0.owner.device()
    }
}

impl ListenerEvents for ListenEvents {
    fn request(&self, request: Arc<ConnectRequest>) -> Result {
        self.0.request(request)
    }

    fn device(&self) -> usize {
        self.device().id()
    }

    fn netdev(&self) -> Option<NetDev> {
        self.device().netdev()
    }

    fn has_addr(&self, ip: IpAddr) -> bool {
        self.device().netdev().is_some_and(|n| n.owns_addr(ip))
    }

    fn rejected(&self) {
        self.0.device().count(Counter::Rejects, 1);
    }
}
