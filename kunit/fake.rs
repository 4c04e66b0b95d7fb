// SPDX-License-Identifier: GPL-2.0

//! [`Fake`]: a transport that takes no step by itself, and [`ManualQp`], an end that it carries.
//!
//! The test starts requests, ends them in any order and as late as it likes, and plays the
//! messages of a peer. So it sees what an engine over a slow wire would do.

use core::num::NonZero;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::{
    harness::{
        End,
        EndAttr,
        EngineHost,
        RNR_MS, //
    },
    log::Tally, //
};
use crate::{
    engine::{
        qp::{
            Next,
            QueuePair,
            Taken, //
        },
        transport::{
            ConnectionId,
            Transport, //
        },
        wq::{
            RecvWqe,
            SendWqe, //
        }, //
    },
    rdma::values::{
        completion::Wc,
        qp::QpState,
        status::Status,
        wc::WcOpcode, //
    }, //
};

/// A transport that only counts how it is called.
pub(crate) struct Fake {
    pub(crate) id: ConnectionId,
    pub(crate) doorbells: Tally,
    pub(crate) receives: Tally,
    pub(crate) stops: Tally,
}

impl Fake {
    /// A transport that was never called. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        static NEXT: Atomic<u64> = Atomic::new(1);
        let number = NonZero::new(NEXT.fetch_add(1, Relaxed)).ok_or(EINVAL)?;
        let fake = Self {
            id: ConnectionId::new(number),
            doorbells: Tally::new(),
            receives: Tally::new(),
            stops: Tally::new(),
        };
        Ok(Arc::new(fake, GFP_KERNEL)?)
    }
}

impl Transport for Fake {
    fn id(&self) -> ConnectionId {
        self.id
    }

    fn doorbell(&self, _end: usize) {
        self.doorbells.hit();
    }

    fn receive_posted(&self, _end: usize) {
        self.receives.hit();
    }

    fn stop(&self, _end: usize) {
        self.stops.hit();
    }
}

/// A message of a peer that went well.
pub(crate) const MESSAGE: Wc = Wc {
    opcode: WcOpcode::Recv,
    ..Wc::BLANK
};

/// Requests of a queue pair that the test has started and not ended.
pub(crate) struct Started {
    /// The request that was started last, or turned to.
    pub(crate) wqe: SendWqe,
    others: KVec<SendWqe>,
}

impl Started {
    /// No requests so far. May sleep.
    pub(crate) fn new(qp: &QueuePair) -> Result<Self> {
        Ok(Self {
            wqe: SendWqe::new(&qp.caps)?,
            others: KVec::new(),
        })
    }

    /// Starts the next request that may begin; its number, or `None`. May sleep.
    pub(crate) fn start(&mut self, qp: &QueuePair, id: ConnectionId) -> Option<u32> {
        let mut wqe = SendWqe::new(&qp.caps).ok()?;
        if qp.start(id, &mut wqe) == Next::Nothing {
            return None;
        }
        let last = core::mem::replace(&mut self.wqe, wqe);
        if last.sges.is_in_use() {
            // A request that is not kept only makes the clean-up of a failed test hang.
            let _ = self.others.push(last, GFP_KERNEL);
        }
        Some(self.wqe.seq)
    }

    /// Makes a request that was started the present one; returns false if there is none of that
    /// number.
    pub(crate) fn turn_to(&mut self, seq: u32) -> bool {
        let at = self.others.iter().position(|wqe| wqe.seq == seq);
        if let Some(other) = at.and_then(|at| self.others.get_mut(at)) {
            core::mem::swap(&mut self.wqe, other);
        }
        self.wqe.seq == seq && self.wqe.sges.is_in_use()
    }

    /// Ends a request; tries to end one that is not started.
    pub(crate) fn finish(&mut self, qp: &Arc<QueuePair>, seq: u32, status: Status) {
        if self.turn_to(seq) {
            return qp.complete(&mut self.wqe, status);
        }
        if let Ok(mut stray) = SendWqe::new(&qp.caps) {
            stray.seq = seq;
            qp.complete(&mut stray, status);
        }
    }

    /// Ends all requests, for a test that ends early.
    pub(crate) fn flush(&mut self, qp: &Arc<QueuePair>) {
        loop {
            if self.wqe.sges.is_in_use() {
                qp.complete(&mut self.wqe, Status::Flushed);
            }
            match self.others.pop() {
                Some(next) => self.wqe = next,
                None => return,
            }
        }
    }
}

/// An end whose transport is the test itself.
pub(crate) struct ManualQp {
    pub(crate) fake: Arc<Fake>,
    pub(crate) started: Started,
    receive: RecvWqe,
    taken: bool,
    pub(crate) end: End,
    // Dropped last.
    _engine_host: EngineHost,
}

impl ManualQp {
    /// A connected end. May sleep.
    pub(crate) fn new(attr: &EndAttr) -> Result<Self> {
        let manual = Self::unconnected(attr)?;
        manual.end.qp.modify(QpState::Init)?;
        manual.attach()?;
        Ok(manual)
    }

    /// An end in the state `Reset`. May sleep.
    pub(crate) fn unconnected(attr: &EndAttr) -> Result<Self> {
        let engine_host = EngineHost::new(RNR_MS)?;
        let end = engine_host.end(attr)?;
        Ok(Self {
            fake: Fake::new()?,
            started: Started::new(&end.qp)?,
            receive: RecvWqe::new(end.qp.caps.recv_sge)?,
            taken: false,
            end,
            _engine_host: engine_host,
        })
    }

    /// Connects the end to the fake transport.
    pub(crate) fn attach(&self) -> Result {
        self.end.attach(self.fake.clone(), 0)
    }

    /// Starts the next request that may begin; its number, or `None`.
    pub(crate) fn start(&mut self) -> Option<u32> {
        self.started.start(&self.end.qp, self.fake.id)
    }

    /// Starts all requests that may begin; returns their number.
    pub(crate) fn start_all(&mut self) -> usize {
        let mut count = 0;
        while self.start().is_some() {
            count += 1;
        }
        count
    }

    /// Ends a request.
    pub(crate) fn finish(&mut self, seq: u32, status: Status) {
        self.started.finish(&self.end.qp, seq, status);
    }

    /// Ends the request that was started last as a success, and starts the next that may begin; its
    /// number, or `None`.
    pub(crate) fn complete_and_start(&mut self) -> Option<u32> {
        let wqe = &mut self.started.wqe;
        match (self.end.qp).complete_and_start(self.fake.id, wqe) {
            Next::Nothing => None,
            Next::Ready => Some(wqe.seq),
        }
    }

    /// Takes a receive for a message.
    pub(crate) fn take(&mut self) -> Taken {
        let taken = (self.end.qp).take_receive(self.fake.id, &mut self.receive);
        self.taken |= taken == Taken::Ready;
        taken
    }

    /// Finishes the receive that was taken.
    pub(crate) fn arrive(&mut self, completion: Wc) {
        self.taken = false;
        self.end.qp.finish_receive(&mut self.receive, completion);
    }
}

impl Drop for ManualQp {
    fn drop(&mut self) {
        self.end.qp.fail();
        self.started.flush(&self.end.qp);
        if self.taken {
            let status = Status::Flushed;
            self.end
                .qp
                .finish_receive(&mut self.receive, Wc { status, ..MESSAGE });
        }
    }
}
