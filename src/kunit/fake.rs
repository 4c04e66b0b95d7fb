// SPDX-License-Identifier: GPL-2.0

//! [`Fake`]: a transport that does nothing by itself, and [`ManualQp`], an end that it carries.
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
use crate::engine::{
    qp::{
        state::State,
        Next,
        RecvWqe,
        SendWqe,
        Taken, //
    },
    status::Status,
    transport::{
        ConnectionId,
        Transport, //
    },
    work::{
        Completion,
        Operation, //
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
pub(crate) const MESSAGE: Completion = Completion {
    operation: Operation::Receive,
    ..Completion::BLANK
};

/// An end whose transport is the test itself.
pub(crate) struct ManualQp {
    pub(crate) fake: Arc<Fake>,
    pub(crate) wqe: SendWqe,
    receive: RecvWqe,
    /// Requests that began and did not end, for the case that the test ends early.
    begun: KVec<u32>,
    taken: bool,
    pub(crate) end: End,
    // Dropped last.
    _engine_host: EngineHost,
}

impl ManualQp {
    /// A connected end. May sleep.
    pub(crate) fn new(attr: &EndAttr) -> Result<Self> {
        let manual = Self::unconnected(attr)?;
        manual.end.qp.modify(State::Init)?;
        manual.attach()?;
        Ok(manual)
    }

    /// An end in the state `Reset`. May sleep.
    pub(crate) fn unconnected(attr: &EndAttr) -> Result<Self> {
        let engine_host = EngineHost::new(RNR_MS)?;
        let end = engine_host.end(attr)?;
        Ok(Self {
            fake: Fake::new()?,
            wqe: SendWqe::new(&end.qp.caps)?,
            receive: RecvWqe::new(end.qp.caps.receive_sges)?,
            begun: KVec::new(),
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
        if self.end.qp.start(self.fake.id, &mut self.wqe) == Next::Nothing {
            return None;
        }
        // A number that is not kept only makes the clean-up of a failed test hang.
        let _ = self.begun.push(self.wqe.seq, GFP_KERNEL);
        Some(self.wqe.seq)
    }

    /// Starts all that may begin; how many they were.
    pub(crate) fn start_all(&mut self) -> usize {
        let mut count = 0;
        while self.start().is_some() {
            count += 1;
        }
        count
    }

    /// Ends a request.
    pub(crate) fn finish(&mut self, seq: u32, status: Status) {
        self.begun.retain(|s| *s != seq);
        self.end.qp.give_back(&mut self.wqe);
        self.end.qp.complete_by_number(seq, status, 0);
    }

    /// Ends the request that was started last as a success, and starts the next that may begin; its
    /// number, or `None`.
    pub(crate) fn go_on(&mut self) -> Option<u32> {
        let seq = self.wqe.seq;
        self.begun.retain(|s| *s != seq);
        let next = (self.end.qp).complete_and_start(self.fake.id, &mut self.wqe);
        if next == Next::Nothing {
            return None;
        }
        let _ = self.begun.push(self.wqe.seq, GFP_KERNEL);
        Some(self.wqe.seq)
    }

    /// Takes a receive for a message.
    pub(crate) fn take(&mut self) -> Taken {
        let taken = (self.end.qp).take_receive(self.fake.id, &mut self.receive);
        self.taken |= taken == Taken::Ready;
        taken
    }

    /// Finishes the receive that was taken.
    pub(crate) fn arrive(&mut self, completion: Completion) {
        self.taken = false;
        self.end.qp.finish_receive(&mut self.receive, completion);
    }
}

impl Drop for ManualQp {
    fn drop(&mut self) {
        self.end.qp.fail();
        self.end.qp.give_back(&mut self.wqe);
        for seq in &self.begun {
            self.end.qp.complete_by_number(*seq, Status::Flushed, 0);
        }
        if self.taken {
            let status = Status::Flushed;
            self.end
                .qp
                .finish_receive(&mut self.receive, Completion { status, ..MESSAGE });
        }
    }
}
