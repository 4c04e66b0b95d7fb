// SPDX-License-Identifier: GPL-2.0

//! [`FakeCarrier`], which plays the other hosts, and [`FakeInitiator`], an initiator there.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    connection_fixture::{
        Answer,
        PASSIVE_LIMITS,
        PORT, //
    },
    log::Tally, //
};
use crate::{
    direct,
    engine::{
        cm::{
            Carrier,
            ConnectError,
            ConnectRequest,
            ConnectionGone,
            ConnectionManager,
            Dial,
            Listener,
            RemoteAnswer,
            RemoteInitiator,
            RemoteListener,
            TransportEnd, //
        },
        host::{
            Host,
            Side, //
        },
        qp::QueuePair,
        transport::ReadLimits, //
    },
    rdma::values::status::Status, //
};

/// The end of a dial, before it returns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum DialHabit {
    /// None.
    #[default]
    Waits,
    Fails(Status),
    /// The active side gives the request up.
    IsAbandoned,
    IsAnswered,
    IsRefused,
}

/// The behaviour of a carrier.
#[derive(Default)]
pub(crate) struct CarrierHabits {
    pub(crate) dial: DialHabit,
    /// Takes no connections for listeners.
    pub(crate) listen_fails: bool,
}

/// A queue pair that is to be connected, and its request.
pub(crate) struct Dialed {
    pub(crate) qp: Arc<QueuePair>,
    pub(crate) request: Arc<ConnectRequest>,
}

/// The calls of a carrier.
#[pin_data]
pub(crate) struct FakeCarrier {
    pub(crate) dials: Tally,
    pub(crate) cancels: Tally,
    /// Listeners that it began to take connections for, and those that ended.
    pub(crate) listens: Tally,
    pub(crate) unlistens: Tally,
    habits: CarrierHabits,
    /// The queue pair of another host, which is of this one.
    #[pin]
    far: SpinLockIrq<Option<Arc<QueuePair>>>,
    #[pin]
    dialed: SpinLockIrq<Option<Dialed>>,
}

impl FakeCarrier {
    /// A carrier that was never called. May sleep.
    pub(crate) fn new(habits: CarrierHabits) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                dials: Tally::new(),
                cancels: Tally::new(),
                listens: Tally::new(),
                unlistens: Tally::new(),
                habits,
                far <- new_spinlock_irq!(None),
                dialed <- new_spinlock_irq!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Sets the queue pair of another host, to which `direct` connects.
    pub(crate) fn reach(&self, qp: &Arc<QueuePair>) {
        let old = self.far.lock().replace(qp.clone());
        drop(old);
    }

    /// Takes the last request that was dialed.
    pub(crate) fn dialed(&self) -> Result<Dialed> {
        let dialed = self.dialed.lock().take();
        dialed.ok_or(ENOENT)
    }

    /// Answers a request as a listener of another host that accepts.
    pub(crate) fn answer(&self, dialed: &Dialed) -> Result<Result<(), ConnectionGone>> {
        let far = self.far.lock().clone().ok_or(ENOENT)?;
        let transport = direct::connect(&dialed.qp, &far)?;
        Ok(dialed.request.answered(RemoteAnswer {
            transport: TransportEnd { transport, end: 0 },
            limits: PASSIVE_LIMITS,
            private_data: b"welcome",
        }))
    }
}

/// The carrier for the connection manager.
pub(crate) struct CarrierCalls(pub(crate) Arc<FakeCarrier>);

impl Carrier for CarrierCalls {
    fn dial(
        &self,
        qp: &Arc<QueuePair>,
        request: &Arc<ConnectRequest>,
    ) -> Result<Arc<dyn Dial>, Status> {
        let fake = &self.0;
        let dial = Arc::new(FakeDial(fake.clone()), GFP_KERNEL);
        let dial = dial.map_err(|_| Status::Aborted)?;
        let dialed = || Dialed {
            qp: qp.clone(),
            request: request.clone(),
        };
        if matches!(fake.habits.dial, DialHabit::Waits) {
            let old = fake.dialed.lock().replace(dialed());
            drop(old);
        }
        // A test that sees the number finds the request.
        fake.dials.hit();
        match fake.habits.dial {
            DialHabit::Waits => {}
            DialHabit::Fails(status) => return Err(status),
            DialHabit::IsAbandoned => {
                request.abandon();
            }
            DialHabit::IsAnswered => {
                let answered = fake.answer(&dialed()).map_err(|_| Status::Aborted)?;
                answered.map_err(|ConnectionGone| Status::Aborted)?;
            }
            DialHabit::IsRefused => {
                let refused = request.refused(Status::Refused, b"no");
                refused.map_err(|ConnectionGone| Status::Aborted)?;
            }
        }
        Ok(dial)
    }

    fn listen(
        &self,
        _cm: &Arc<ConnectionManager>,
        listener: &Arc<Listener>,
    ) -> Result<KBox<dyn RemoteListener>> {
        self.0.listens.hit();
        match self.0.habits.listen_fails || listener.at.port() != PORT {
            true => Err(EADDRINUSE),
            false => Ok(KBox::new(FakeRemoteListener(self.0.clone()), GFP_KERNEL)?),
        }
    }
}

struct FakeDial(Arc<FakeCarrier>);

impl Dial for FakeDial {
    fn cancel(&self) {
        self.0.cancels.hit();
        drop(self.0.dialed());
    }
}

struct FakeRemoteListener(Arc<FakeCarrier>);

impl RemoteListener for FakeRemoteListener {}

impl Drop for FakeRemoteListener {
    fn drop(&mut self) {
        self.0.unlistens.hit();
    }
}

/// The end of a carry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CarryHabit {
    Connects,
    Fails(ConnectError),
    /// The other host gives up before the queue pair has its transport.
    GivesUp,
}

/// An initiator of another host. Its queue pair is of this host, and `direct` connects the two.
#[pin_data]
pub(crate) struct FakeInitiator {
    qp: Arc<QueuePair>,
    habit: CarryHabit,
    accepts: Tally,
    refusals: Tally,
    #[pin]
    answer: SpinLockIrq<Option<Answer>>,
    /// Both until the answer.
    #[pin]
    side: SpinLockIrq<Option<Side>>,
    #[pin]
    request: SpinLockIrq<Option<Arc<ConnectRequest>>>,
}

impl FakeInitiator {
    /// An initiator that was not answered. May sleep.
    pub(crate) fn new(qp: &Arc<QueuePair>, habit: CarryHabit) -> Result<Arc<Self>> {
        let side = qp.device().host.add_side();
        Arc::pin_init(
            pin_init!(Self {
                qp: qp.clone(),
                habit,
                accepts: Tally::new(),
                refusals: Tally::new(),
                answer <- new_spinlock_irq!(None),
                side <- new_spinlock_irq!(Some(side)),
                request <- new_spinlock_irq!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Keeps the request of this initiator until the answer.
    pub(crate) fn keep(&self, request: &Arc<ConnectRequest>) {
        let old = self.request.lock().replace(request.clone());
        drop(old);
    }

    /// The last answer.
    pub(crate) fn answer(&self) -> Option<Answer> {
        *self.answer.lock()
    }

    /// The status of the last answer.
    pub(crate) fn status(&self) -> Option<Result<(u32, u32), Status>> {
        self.answer().map(|answer| answer.status)
    }

    /// The numbers of accepts and of refusals.
    pub(crate) fn answers(&self) -> (u32, u32) {
        (self.accepts.get(), self.refusals.get())
    }

    fn note(&self, status: Result<ReadLimits, Status>, data: &[u8]) {
        *self.answer.lock() = Some(Answer::new(status, data));
        let (request, side) = (self.request.lock().take(), self.side.lock().take());
        drop((request, side));
    }
}

impl RemoteInitiator for FakeInitiator {
    fn host(&self) -> &Arc<Host> {
        &self.qp.device().host
    }

    fn carry(
        &self,
        qp: &Arc<QueuePair>,
        _limits: ReadLimits,
        _private_data: &[u8],
    ) -> Result<TransportEnd, ConnectError> {
        match self.habit {
            CarryHabit::Connects => (),
            CarryHabit::Fails(why) => return Err(why),
            CarryHabit::GivesUp => {
                let request = self.request.lock().clone();
                if let Some(request) = request {
                    request.abandon();
                }
            }
        }
        let transport = direct::connect(&self.qp, qp).map_err(|_| ConnectError::NoMemory)?;
        Ok(TransportEnd { transport, end: 1 })
    }

    fn accept(&self, limits: ReadLimits, private_data: &[u8]) {
        self.accepts.hit();
        self.note(Ok(limits), private_data);
    }

    fn refuse(&self, status: Status, private_data: &[u8]) {
        self.refusals.hit();
        self.note(Err(status), private_data);
    }
}
