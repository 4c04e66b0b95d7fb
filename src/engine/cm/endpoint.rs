// SPDX-License-Identifier: GPL-2.0

//! [`Endpoint`]: one side of a connection; it is notified once that the connection is gone.
//!
//! Tests: `engine/cm/tests.rs`.

use super::ConnectionEvents;
use crate::{
    engine::{
        notifier::{
            Notified,
            Notifies, //
        },
        prelude::*,
        qp::QueuePair,
        transport::LinkOwner, //
    },
    sys::timer::{
        Expires,
        Timer, //
    }, //
};

/// How soon an event is reported again that the consumer's side had no memory for, in milliseconds.
const RETRY_MS: u32 = 20;

/// The only event: the connection is gone.
const GONE: u32 = 1;

/// `closed` is due when both are set; each is set once.
#[derive(Default)]
struct EndpointState {
    is_up: bool,
    /// The connection is gone, or never was; `Some(true)` when the peer ended it.
    gone: Option<bool>,
}

/// One side of a connection: reports its end once.
pub(super) type Endpoint = Notified<EndpointInner>;

/// What an [`Endpoint`] is made of.
#[pin_data]
pub(super) struct EndpointInner {
    pub(super) qp: Arc<QueuePair>,
    pub(super) events: Arc<dyn ConnectionEvents>,
    #[pin]
    state: SpinLockIrq<EndpointState>,
    #[pin]
    retry: Timer<Endpoint>,
}

impl Endpoint {
    pub(super) fn new(qp: Arc<QueuePair>, events: Arc<dyn ConnectionEvents>) -> Result<Arc<Self>> {
        Notified::alloc(pin_init!(EndpointInner {
            qp,
            events,
            state <- new_spinlock_irq!(EndpointState::default()),
            retry <- Timer::new(),
        }))
    }

    /// Returns true if the connection is there no more, or never was.
    pub(super) fn is_gone(&self) -> bool {
        self.state.lock().gone.is_some()
    }

    /// The connection was reported up: its end may be reported from now on.
    pub(super) fn up(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.is_up = true;
        let is_due = state.gone.is_some();
        drop(state);
        if is_due {
            self.raise(GONE);
        }
    }

    /// The connection never came up, and [`Endpoint::up`] is not called: nothing is reported.
    pub(super) fn detach(&self) {
        self.state.lock().gone = Some(false);
    }
}

impl LinkOwner for Endpoint {
    fn disconnected(self: Arc<Self>, by_peer: bool) {
        let mut state = self.state.lock();
        let is_due = state.is_up && state.gone.is_none();
        state.gone.get_or_insert(by_peer);
        drop(state);
        if is_due {
            self.raise(GONE);
        }
    }
}

impl Notifies for EndpointInner {
    fn device(&self) -> &RdmaDevice {
        self.qp.device()
    }

    fn call(this: &Arc<Endpoint>, _events: u32) {
        let by_peer = this.state.lock().gone == Some(true);
        if this.events.closed(by_peer).is_err() {
            this.retry.arm(this, RETRY_MS);
        }
    }
}

impl Expires for Endpoint {
    fn expired(this: Arc<Self>) {
        this.raise(GONE);
    }
}
