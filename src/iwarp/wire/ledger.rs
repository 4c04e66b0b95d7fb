// SPDX-License-Identifier: GPL-2.0

//! [`Ledger`]: the requests of a connection that are on their way, and what is due to the peer.
//!
//! Context: any, under the lock of the ledger; only [`Ledger::new`] sleeps.
//!
//! Tests: `direct/tests/message.rs`.

use crate::{
    engine::{
        prelude::*,
        qp::QueuePair,
        transport::ReadLimits,
        wq::{
            SendWqe,
            Sent, //
        }, //
    },
    iwarp::{
        rdmap::{
            AtomicResponse,
            ReadRequest, //
        },
        terminate::Terminate, //
    },
    rdma::values::{
        qp::QpCaps,
        work::SendOp, //
    },
    sys::ring::Ring, //
};

/// A read or an atomic operation that the peer has to answer.
pub(super) struct Asked {
    pub(super) wqe: KBox<SendWqe>,
    /// Names the request in the answer: the token of the sink, or the number of an atomic operation.
    pub(super) number: u32,
    /// The number of the message, which a Terminate names.
    pub(super) message: u32,
}

/// A Send or a Write whose bytes were put.
#[derive(Clone, Copy)]
pub(super) struct Gone {
    sent: Sent,
    counter: Counter,
}

impl Gone {
    /// Fills places that are not used.
    pub(super) const BLANK: Self = Self {
        sent: Sent::BLANK,
        counter: Counter::Sends,
    };

    /// Takes the elements of the request in `wqe` back, which has no more use for them.
    pub(super) fn new(qp: &QueuePair, wqe: &mut SendWqe) -> Self {
        Self {
            counter: match wqe.work {
                SendOp::Write { .. } => Counter::Writes,
                _ => Counter::Sends,
            },
            sent: qp.give_back(wqe),
        }
    }

    /// Ends the request, and counts it if it has succeeded.
    pub(super) fn complete(self, qp: &Arc<QueuePair>, status: Status) {
        if status.is_success() {
            let bytes = u64::from(self.sent.length);
            qp.device()
                .count_each([(self.counter, 1), (Counter::BytesOut, bytes)]);
        }
        qp.complete_sent(self.sent, status);
    }
}

/// An answer that is due to the peer.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// The memory of a read request, which has that number.
    Read {
        request: ReadRequest,
        number: u32,
    },
    Atomic(AtomicResponse),
}

/// The request that a Terminate of the peer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blamed {
    /// The oldest Send or Write that was not acknowledged.
    Oldest,
    /// The read or atomic operation with that message number.
    Asked(u32),
}

/// The requests that are on their way, and what is due to the peer.
pub(super) struct Ledger {
    /// Messages that the peer has not acknowledged, oldest first; `None` for a message that ends no
    /// request.
    sent: Ring<Option<Gone>>,
    /// Their number since the start-up, up to the oldest.
    acknowledged: u32,
    /// Reads and atomic operations, oldest first.
    asked: KVec<Asked>,
    /// Room for the requests that are asked.
    free: KVec<KBox<SendWqe>>,
    answers: Ring<Answer>,
    /// Messages of the peer that were carried out since the start-up, and the number that the peer
    /// knows.
    carried_out: u32,
    reported: u32,
    /// The end of the connection by a fault of the peer, for the peer.
    terminate: Option<Terminate>,
    /// The Terminate waits until the answers have gone out.
    is_deferred: bool,
    /// The fault that the peer has found, and its request.
    blamed: Option<(Blamed, Status)>,
    /// The time until which the message after the first so many may wait for its acknowledgement, in
    /// milliseconds of monotonic time.
    waits_until: Option<(u32, u64)>,
}

/// No answer: fills places that are not used.
const NO_ANSWER: Answer = Answer::Atomic(AtomicResponse {
    request: 0,
    original: 0,
});

impl Ledger {
    /// A ledger without room.
    const EMPTY: Self = Self {
        sent: Ring::EMPTY,
        acknowledged: 0,
        asked: KVec::new(),
        free: KVec::new(),
        answers: Ring::EMPTY,
        carried_out: 0,
        reported: 0,
        terminate: None,
        is_deferred: false,
        blamed: None,
        waits_until: None,
    };

    /// An empty ledger. May sleep. `ENOMEM` when there is no memory.
    pub(super) fn new(caps: &QpCaps, limits: ReadLimits) -> Result<Self> {
        // One more than may be under way: one is ended before its room is back.
        // CAST: widening.
        let reads = limits.outbound as usize + 1;
        let mut free = KVec::with_capacity(reads, GFP_KERNEL)?;
        for _ in 0..reads {
            free.push(KBox::new(SendWqe::new(caps)?, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(Self {
            // A Write with immediate data is two messages.
            sent: Ring::new(caps.send_wr.saturating_mul(2), None, GFP_KERNEL)?,
            asked: KVec::with_capacity(reads, GFP_KERNEL)?,
            free,
            answers: Ring::new(limits.inbound.max(1), NO_ANSWER, GFP_KERNEL)?,
            ..Self::EMPTY
        })
    }

    /// Notes a message that the peer is to acknowledge. There is room for all of a send queue.
    pub(super) fn put_sent(&mut self, sent: Option<Gone>) {
        let _ = self.sent.push(sent);
    }

    /// The oldest request that was not acknowledged.
    pub(super) fn take_sent(&mut self) -> Option<Gone> {
        while let Some(sent) = self.sent.pop() {
            self.acknowledged = self.acknowledged.wrapping_add(1);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// The oldest request that the peer has carried out, if it has carried out `count` messages.
    ///
    /// An error if it names messages that were not sent. An older count has no effect.
    pub(super) fn take_acknowledged(&mut self, count: u32) -> Result<Option<Gone>, ()> {
        loop {
            let new = count.wrapping_sub(self.acknowledged);
            if new > self.sent.len() {
                // CAST: the order of two numbers of a sequence.
                return if (new as i32) < 0 { Ok(None) } else { Err(()) };
            }
            if new == 0 {
                return Ok(None);
            }
            self.acknowledged = self.acknowledged.wrapping_add(1);
            if let Some(Some(sent)) = self.sent.pop() {
                return Ok(Some(sent));
            }
        }
    }

    /// Returns true if another request can be asked.
    pub(super) fn may_ask(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes room for a request that is asked in place of `wqe`, and notes that.
    pub(super) fn ask(&mut self, wqe: &mut KBox<SendWqe>, number: u32, message: u32) -> bool {
        let Some(room) = self.free.pop() else {
            return false;
        };
        let asked = Asked {
            wqe: core::mem::replace(wqe, room),
            number,
            message,
        };
        // There is room for as many as there are.
        self.asked.push_within_capacity(asked).is_ok()
    }

    /// The oldest request that was asked and not answered.
    pub(super) fn take_asked(&mut self) -> Option<Asked> {
        // At most as many as the peer serves at once.
        self.asked.remove(0).ok()
    }

    /// Gives the room of a request back, which has ended.
    pub(super) fn put_free(&mut self, wqe: KBox<SendWqe>) {
        let _ = self.free.push_within_capacity(wqe);
    }

    /// Returns true if the peer may ask for another answer.
    pub(super) fn serves_another(&self, limits: ReadLimits) -> bool {
        self.answers.len() < limits.inbound
    }

    /// Notes an answer that is due, for which there is room.
    pub(super) fn put_answer(&mut self, answer: Answer) {
        let _ = self.answers.push(answer);
    }

    /// The next answer, which stays the next until it was sent.
    pub(super) fn next_answer(&mut self) -> Option<Answer> {
        self.answers.front().copied()
    }

    pub(super) fn answer_was_sent(&mut self) {
        self.answers.leave();
    }

    /// Notes that a message of the peer was carried out.
    pub(super) fn count_carried_out(&mut self) {
        self.carried_out = self.carried_out.wrapping_add(1);
    }

    /// The number of messages that were carried out, if the peer does not know it.
    pub(super) fn take_report(&mut self) -> Option<u32> {
        if self.carried_out == self.reported {
            return None;
        }
        self.reported = self.carried_out;
        Some(self.carried_out)
    }

    /// Notes the Terminate to send; the first stays, unless it waits and the new one does not.
    /// Returns true if the connection ends now, false if answers that are due before come first.
    pub(super) fn put_terminate(&mut self, terminate: Terminate, after_answers: bool) -> bool {
        let waits = after_answers && !self.answers.is_empty();
        match (self.terminate, self.is_deferred) {
            (None, _) => (self.terminate, self.is_deferred) = (Some(terminate), waits),
            // That of an answer that was due comes before that of the request behind.
            (Some(_), true) if !waits => {
                (self.terminate, self.is_deferred) = (Some(terminate), false)
            }
            (Some(_), _) => {}
        }
        !self.is_deferred
    }

    /// Returns true if only a Terminate is left to send, which waited for the answers.
    pub(super) fn ends_now(&self) -> bool {
        self.is_deferred && self.answers.is_empty()
    }

    /// The Terminate to send; not one that waits for answers which were not sent.
    pub(super) fn take_terminate(&mut self) -> Option<Terminate> {
        let waits = self.is_deferred && !self.answers.is_empty();
        self.terminate.take_if(|_| !waits)
    }

    /// The time that the oldest message may still wait for its acknowledgement, in milliseconds, where
    /// each may wait for `most`; `None` if no message waits.
    pub(super) fn left_to_wait(&mut self, now: u64, most: u32) -> Option<u64> {
        if self.sent.is_empty() {
            return None;
        }
        let until = match self.waits_until {
            Some((oldest, until)) if oldest == self.acknowledged => until,
            _ => now.saturating_add(most.into()),
        };
        self.waits_until = Some((self.acknowledged, until));
        Some(until.saturating_sub(now))
    }

    /// Takes the memory out, at the end of the connection: the last reference to the ledger may go
    /// where memory cannot be freed.
    pub(super) fn take_memory(&mut self) -> Self {
        core::mem::replace(self, Self::EMPTY)
    }

    /// Notes the fault that the peer has found. The first stays.
    pub(super) fn blame(&mut self, blamed: Blamed, status: Status) {
        self.blamed.get_or_insert((blamed, status));
    }

    /// The status of the request that the peer has blamed, for the first that is asked about.
    pub(super) fn take_blame(&mut self, request: Blamed) -> Status {
        match self.blamed.take_if(|(blamed, _)| *blamed == request) {
            Some((_, status)) => status,
            None => Status::Flushed,
        }
    }
}
