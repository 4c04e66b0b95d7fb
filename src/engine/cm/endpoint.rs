// SPDX-License-Identifier: GPL-2.0

//! [`Endpoint`]: one side of a connection, which reports the end of the connection once.
//!
//! From attach until that report, the end of the module waits for the side: the queue pair may go
//! first, and work items and a timer may still hold the side.
//!
//! Tests: `engine/cm/tests.rs`.

use kernel::{
    new_work,
    workqueue::Work, //
};

use super::ConnectionEvents;
use crate::{
    engine::{
        host::Side,
        inject,
        notifier::{
            notifies,
            Notifier,
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

/// The delay before an event is reported again if the consumer's side had no memory for it, in
/// milliseconds.
const RETRY_MS: u32 = 20;

/// The only event: the connection is gone.
const GONE: u32 = 1;

/// The state of a side. `closed` is due when `is_up` and `gone` are set. `is_up` stays set, and so
/// does `gone`.
#[derive(Default)]
struct EndpointState {
    is_up: bool,
    /// The connection is gone, or never was; `Some(true)` when the peer ended it.
    gone: Option<bool>,
    /// `closed` was due once: later calls come from the timer.
    was_called: bool,
    /// The answer to the connect of this side got lost, and the side has not given up yet.
    is_unanswered: bool,
    /// Set from attach until the side was notified.
    side: Option<Side>,
}

/// One side of a connection: reports its end once.
#[pin_data]
pub(super) struct Endpoint {
    #[pin]
    notifier: Notifier,
    #[pin]
    work: Work<Self>,
    pub(super) qp: Arc<QueuePair>,
    pub(super) events: Arc<dyn ConnectionEvents>,
    #[pin]
    state: SpinLockIrq<EndpointState>,
    #[pin]
    retry: Timer<Endpoint>,
}

impl Endpoint {
    /// A side that is not attached and not up. May sleep. `ENOMEM` when there is no memory.
    pub(super) fn new(qp: Arc<QueuePair>, events: Arc<dyn ConnectionEvents>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                notifier <- Notifier::new(),
                work <- new_work!("ndk_notify"),
                qp,
                events,
                state <- new_spinlock_irq!(EndpointState::default()),
                retry <- Timer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns true if the connection is gone, or never was.
    pub(super) fn is_gone(&self) -> bool {
        self.state.lock().gone.is_some()
    }

    /// Makes the end of the module wait for the side, which is about to be attached to its queue
    /// pair. Any context.
    pub(super) fn count_side(&self) {
        let side = self.qp.device().host.add_side();
        let old = self.state.lock().side.replace(side);
        drop(old);
    }

    /// Undoes [`Endpoint::count_side`]: no report follows. Any context.
    fn uncount_side(&self) {
        let side = self.state.lock().side.take();
        drop(side);
    }

    /// Notes that the connection was reported up: its end may be reported from now on.
    pub(super) fn up(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.is_up = true;
        let is_due = state.gone.is_some();
        drop(state);
        if is_due {
            self.raise(GONE);
        }
    }

    /// Loses the answer to the connect of this side: the connect fails `ms` milliseconds later, or
    /// when the connection ends before that. Until then the queue pair is connected, as the peer
    /// takes it to be.
    pub(super) fn lose_reply(self: &Arc<Self>, ms: u32) {
        let mut state = self.state.lock();
        state.is_unanswered = true;
        if state.gone.is_some() {
            drop(state);
            self.raise(GONE);
            return;
        }
        // Under the lock: a timer armed after the call would not be cancelled.
        self.retry.arm(self, ms);
    }

    /// Fails the connect, which got no answer.
    fn give_up(&self, gone: Option<bool>) {
        self.retry.cancel();
        self.qp.fail();
        let status = match gone {
            Some(_) => Status::Aborted,
            None => Status::Timeout,
        };
        if self.events.reply(Err(status), &[]).is_err() {
            let lost = fmt!("the answer to its connect was lost");
            self.qp.warn(lost);
        }
    }

    /// Ends the side without a report: the connection never came up, and [`Endpoint::up`] is not
    /// called.
    pub(super) fn detach(&self) {
        self.state.lock().gone = Some(false);
        self.uncount_side();
    }
}

impl LinkOwner for Endpoint {
    fn disconnected(self: Arc<Self>, by_peer: bool) {
        let mut state = self.state.lock();
        let is_due = (state.is_up || state.is_unanswered) && state.gone.is_none();
        state.gone.get_or_insert(by_peer);
        drop(state);
        if is_due {
            self.raise(GONE);
        }
    }
}

notifies!(Endpoint);

impl Notifies for Endpoint {
    fn device(&self) -> &RdmaDevice {
        self.qp.device()
    }

    fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    fn call(this: &Arc<Endpoint>, _events: u32) {
        let mut state = this.state.lock();
        if !state.is_up {
            let (is_unanswered, gone) = (core::mem::take(&mut state.is_unanswered), state.gone);
            drop(state);
            if is_unanswered {
                this.give_up(gone);
                this.uncount_side();
            }
            return;
        }
        let by_peer = state.gone == Some(true);
        let is_first = !core::mem::replace(&mut state.was_called, true);
        drop(state);
        let late = match inject::is_on() && is_first {
            true => this.close_is_late(),
            false => None,
        };
        let again = late.or_else(|| this.events.closed(by_peer).err().map(|_| RETRY_MS));
        match again {
            Some(ms) => this.retry.arm(this, ms),
            None => this.uncount_side(),
        }
    }
}

impl Expires for Endpoint {
    fn expired(this: Arc<Self>) {
        this.raise(GONE);
    }
}
