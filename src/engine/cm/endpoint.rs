// SPDX-License-Identifier: GPL-2.0

//! [`Endpoint`]: one side of a connection; it is notified once that the connection is gone.
//!
//! Tests: `engine/cm/tests.rs`.

use kernel::{
    impl_has_work,
    new_spinlock_irq,
    new_work,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
    workqueue::{
        Work as WorkStruct,
        WorkItem, //
    }, //
};

use super::ConnectionEvents;
use crate::{
    engine::{
        qp::QueuePair,
        transport::LinkOwner, //
    },
    sys::timer::{
        Expires,
        Timer, //
    }, //
};

/// How soon an event is notified again that the consumer's side had no memory for, in milliseconds.
const RETRY_MS: u32 = 20;

#[derive(Clone, Copy)]
enum Stage {
    /// Not reported up yet.
    Opening,
    /// Gone before it was reported up.
    GoneEarly { by_peer: bool },
    /// Reported up.
    Up,
    /// Gone; told, or being notified, or nobody to be notified.
    Gone { by_peer: bool },
}

/// One side of a connection: tells its end once.
#[pin_data]
pub(super) struct Endpoint {
    qp: Arc<QueuePair>,
    events: Arc<dyn ConnectionEvents>,
    #[pin]
    stage: SpinLockIrq<Stage>,
    #[pin]
    work: WorkStruct<Self>,
    #[pin]
    retry: Timer<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Endpoint { self.work }
}

impl Endpoint {
    pub(super) fn new(qp: Arc<QueuePair>, events: Arc<dyn ConnectionEvents>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                qp,
                events,
                stage <- new_spinlock_irq!(Stage::Opening),
                work <- new_work!("ndk_side"),
                retry <- Timer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The queue pair.
    pub(super) fn qp(&self) -> &Arc<QueuePair> {
        &self.qp
    }

    /// Who is notified.
    pub(super) fn events(&self) -> &dyn ConnectionEvents {
        &*self.events
    }

    /// Returns true if the connection is there no more, or never was.
    pub(super) fn is_gone(&self) -> bool {
        let stage = *self.stage.lock();
        matches!(stage, Stage::GoneEarly { .. } | Stage::Gone { .. })
    }

    /// The connection was reported up: its end may be notified from now on.
    pub(super) fn up(self: &Arc<Self>) {
        let mut stage = self.stage.lock();
        let (next, notify) = match *stage {
            Stage::GoneEarly { by_peer } => (Stage::Gone { by_peer }, true),
            Stage::Opening | Stage::Up => (Stage::Up, false),
            Stage::Gone { by_peer } => (Stage::Gone { by_peer }, false),
        };
        *stage = next;
        drop(stage);
        if notify {
            self.tell_later();
        }
    }

    /// The connection never came up: nothing is notified.
    pub(super) fn detach(&self) {
        *self.stage.lock() = Stage::Gone { by_peer: false };
    }

    fn tell_later(self: &Arc<Self>) {
        let _ = self.qp.device().host().softirqs().enqueue(self.clone());
    }
}

impl LinkOwner for Endpoint {
    fn disconnected(self: Arc<Self>, by_peer: bool) {
        let mut stage = self.stage.lock();
        let (next, notify) = match *stage {
            Stage::Opening => (Stage::GoneEarly { by_peer }, false),
            Stage::Up => (Stage::Gone { by_peer }, true),
            Stage::GoneEarly { .. } | Stage::Gone { .. } => (*stage, false),
        };
        *stage = next;
        drop(stage);
        if notify {
            self.tell_later();
        }
    }
}

impl WorkItem for Endpoint {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let by_peer = matches!(*this.stage.lock(), Stage::Gone { by_peer: true });
        if this.events.closed(by_peer).is_err() {
            this.retry.arm(&this, RETRY_MS);
        }
    }
}

impl Expires for Endpoint {
    fn expired(this: Arc<Self>) {
        this.tell_later();
    }
}
