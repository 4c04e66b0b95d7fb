// SPDX-License-Identifier: GPL-2.0

//! [`Ledger`]: the requests of a connection that are on their way, and what is due to the peer.
//!
//! Context: any, under the lock of the ledger; only [`Ledger::new`] sleeps.

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

/// The state of the requests of a connection that is being closed, apart from the ledger.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// A request was begun that TCP does not have as a whole.
    pub(super) is_begun: bool,
    /// The request under way waits for an access on this host, and TCP has all before it.
    pub(super) drains: bool,
    /// Bytes that TCP has taken, and the byte after the last one of a request.
    pub(super) taken: u64,
    pub(super) requests_end: u64,
    /// Bytes of answers that came.
    pub(super) placed: u64,
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

/// The request at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blamed {
    /// The oldest Send or Write that was not acknowledged.
    Oldest,
    /// The Send or Write with a message before which so many have gone out since the start-up.
    Message(u32),
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
    /// The messages of the oldest request that left `sent` before its last one.
    begun: u32,
    /// Reads and atomic operations, oldest first.
    asked: KVec<Asked>,
    /// Room for the requests that are asked, and the number of all rooms.
    free: KVec<KBox<SendWqe>>,
    rooms: usize,
    answers: Ring<Answer>,
    /// Messages of the peer that were carried out since the start-up, and the number that the peer
    /// knows.
    carried_out: u32,
    reported: u32,
    /// The end of the connection by a fault of the peer, for the peer.
    terminate: Option<Terminate>,
    /// The Terminate waits until the answers have gone out.
    is_deferred: bool,
    /// The request at fault, and its status.
    blamed: Option<(Blamed, Status)>,
    /// Reads and atomic operations that were answered.
    answered: u32,
    /// The progress that was seen last, and the time until which there may be no other, in milliseconds
    /// of monotonic time.
    waits_until: Option<(Seen, u64)>,
}

/// The progress of requests: numbers that differ after any.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    acknowledged: u32,
    answered: u32,
    taken: u64,
    placed: u64,
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
        begun: 0,
        asked: KVec::new(),
        free: KVec::new(),
        rooms: 0,
        answers: Ring::EMPTY,
        carried_out: 0,
        reported: 0,
        terminate: None,
        is_deferred: false,
        blamed: None,
        answered: 0,
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
            rooms: reads,
            answers: Ring::new(limits.inbound.max(1), NO_ANSWER, GFP_KERNEL)?,
            ..Self::EMPTY
        })
    }

    /// Notes a message that the peer is to acknowledge. There is room for all of a send queue.
    pub(super) fn put_sent(&mut self, sent: Option<Gone>) {
        let _ = self.sent.push(sent);
    }

    /// The oldest request that was not acknowledged, with its status at the end of the connection.
    pub(super) fn take_sent(&mut self) -> Option<(Gone, Status)> {
        while let Some(sent) = self.sent.pop() {
            let last = self.acknowledged;
            self.acknowledged = last.wrapping_add(1);
            if let Some(gone) = sent {
                let before = core::mem::replace(&mut self.begun, 0);
                return Some((gone, self.status_up_to(last, before)));
            }
            self.begun += 1;
        }
        None
    }

    /// The status, at the end of the connection, of the request that comes after all that were sent.
    pub(super) fn status_of_next(&mut self) -> Status {
        self.status_up_to(self.acknowledged, self.begun)
    }

    /// The status of a request whose last message is `last`, with so many before that.
    fn status_up_to(&mut self, last: u32, before: u32) -> Status {
        self.take_blame(|blamed| match blamed {
            Blamed::Oldest => true,
            Blamed::Message(number) => last.wrapping_sub(number) <= before,
            Blamed::Asked(_) => false,
        })
    }

    /// The status, at the end of the connection, of a request that was asked with that message.
    pub(super) fn status_of_asked(&mut self, message: u32) -> Status {
        self.take_blame(|blamed| blamed == Blamed::Asked(message))
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
                self.begun = 0;
                return Ok(Some(sent));
            }
            self.begun += 1;
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
        self.answered = self.answered.wrapping_add(1);
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

    /// The time for which no request has to move, in milliseconds, if each may stand still for `most`;
    /// 0 if that is over, `None` if the one request under way waits for this host. For a connection that
    /// is being closed: it ends with its last request.
    ///
    /// A request moves when it is acknowledged or answered, with bytes of it that TCP takes, and with each
    /// segment of its answer. The bytes before it count as long as none was begun.
    pub(super) fn left_to_wait(&mut self, now: u64, most: u32, progress: Progress) -> Option<u64> {
        let is_out = !self.sent.is_empty() || self.is_asked();
        if progress.drains && !is_out {
            self.waits_until = None;
            return None;
        }
        let seen = Seen {
            acknowledged: self.acknowledged,
            answered: self.answered,
            taken: match is_out || progress.is_begun {
                true => progress.taken.min(progress.requests_end),
                false => progress.taken,
            },
            placed: progress.placed,
        };
        let until = match self.waits_until {
            Some((then, until)) if then == seen => until,
            _ => now.saturating_add(most.into()).saturating_add(1),
        };
        self.waits_until = Some((seen, until));
        Some(until.saturating_sub(now))
    }

    /// Returns true if a read or an atomic operation has no answer.
    fn is_asked(&self) -> bool {
        self.free.len() < self.rooms
    }

    /// Notes that the oldest message has waited for its receive too long. Returns false if there is none,
    /// or only one that has not gone out, behind a read.
    pub(super) fn blame_late(&mut self, is_begun: bool) -> bool {
        let is_late = !self.sent.is_empty() || (is_begun && !self.is_asked());
        if is_late {
            self.blame(Blamed::Message(self.acknowledged), Status::ReceiverNotReady);
        }
        is_late
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

    /// The status of a request; that of the fault, for the first that is asked for and that `is_about`
    /// finds at fault.
    fn take_blame(&mut self, is_about: impl FnOnce(Blamed) -> bool) -> Status {
        match self.blamed.take_if(|(blamed, _)| is_about(*blamed)) {
            Some((_, status)) => status,
            None => Status::Flushed,
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_iwarp_wire_ledger)]
mod tests {
    use super::*;

    use crate::kunit::harness::cases;

    const CAPS: QpCaps = QpCaps {
        send_wr: 8,
        recv_wr: 0,
        send_sge: 1,
        recv_sge: 0,
        read_sge: 1,
        inline_data: 0,
    };

    /// A ledger with room for one read, and these messages: the lengths of their requests.
    fn ledger_of(sent: &[Option<u32>]) -> Result<Ledger> {
        let limits = ReadLimits {
            inbound: 1,
            outbound: 1,
        };
        let mut ledger = Ledger::new(&CAPS, limits)?;
        for message in sent {
            ledger.put_sent(message.map(|length| {
                let mut gone = Gone::BLANK;
                gone.sent.length = length;
                gone
            }));
        }
        Ok(ledger)
    }

    /// The length and the status of the oldest request, at the end of the connection.
    fn oldest(ledger: &mut Ledger) -> Option<(u32, Status)> {
        let (gone, status) = ledger.take_sent()?;
        Some((gone.sent.length, status))
    }

    const LATE: Status = Status::ReceiverNotReady;

    #[test]
    fn the_request_that_is_late_has_that_status_and_no_other() -> Result {
        let mut ledger = ledger_of(&[Some(1), Some(2)])?;
        assert!(ledger.blame_late(false));
        kunit_assert_eq!(oldest(&mut ledger), Some((1, LATE)));
        kunit_assert_eq!(oldest(&mut ledger), Some((2, Status::Flushed)));
        kunit_assert_eq!(oldest(&mut ledger), None);
        kunit_assert_eq!(ledger.status_of_next(), Status::Flushed);
        Ok(())
    }

    #[test]
    fn a_late_request_that_ends_well_leaves_no_blame() -> Result {
        let mut ledger = ledger_of(&[Some(1), Some(2)])?;
        assert!(ledger.blame_late(false));
        let done = ledger.take_acknowledged(1).map_err(|()| EIO)?;
        kunit_assert_eq!(done.map(|gone| gone.sent.length), Some(1));
        kunit_assert_eq!(oldest(&mut ledger), Some((2, Status::Flushed)));
        kunit_assert_eq!(ledger.status_of_next(), Status::Flushed);
        Ok(())
    }

    #[test]
    fn a_request_of_two_messages_is_late_by_either() -> Result {
        for acknowledged in cases([0, 1]) {
            let mut ledger = ledger_of(&[None, Some(1), Some(2)])?;
            let done = ledger.take_acknowledged(acknowledged).map_err(|()| EIO)?;
            assert!(done.is_none());
            assert!(ledger.blame_late(false));
            kunit_assert_eq!(oldest(&mut ledger), Some((1, LATE)));
            kunit_assert_eq!(oldest(&mut ledger), Some((2, Status::Flushed)));
        }
        // The second message has not gone out.
        for acknowledged in cases([0, 1]) {
            let mut ledger = ledger_of(&[None])?;
            let done = ledger.take_acknowledged(acknowledged).map_err(|()| EIO)?;
            assert!(done.is_none());
            assert!(ledger.blame_late(true));
            kunit_assert_eq!(oldest(&mut ledger), None);
            kunit_assert_eq!(ledger.status_of_next(), LATE);
        }
        Ok(())
    }

    #[test]
    fn a_message_that_ends_well_after_the_judgement_leaves_the_blame_to_its_request() -> Result {
        for messages in cases([&[None, Some(1)][..], &[None]]) {
            let mut ledger = ledger_of(messages)?;
            assert!(ledger.blame_late(true));
            let done = ledger.take_acknowledged(1).map_err(|()| EIO)?;
            assert!(done.is_none());
            let last = oldest(&mut ledger).map(|(_, status)| status);
            kunit_assert_eq!(last.unwrap_or_else(|| ledger.status_of_next()), LATE);
        }
        Ok(())
    }

    #[test]
    fn a_request_behind_all_messages_is_late_when_none_is_left() -> Result {
        let mut ledger = ledger_of(&[])?;
        kunit_assert_eq!(ledger.blame_late(false), false);
        assert!(ledger.blame_late(true));
        kunit_assert_eq!(ledger.status_of_next(), LATE);
        kunit_assert_eq!(ledger.status_of_next(), Status::Flushed);
        Ok(())
    }

    #[test]
    fn no_message_is_late_behind_a_read() -> Result {
        let mut ledger = ledger_of(&[])?;
        let mut wqe = KBox::new(SendWqe::new(&CAPS)?, GFP_KERNEL)?;
        assert!(ledger.ask(&mut wqe, 7, 1));
        kunit_assert_eq!(ledger.blame_late(true), false);
        kunit_assert_eq!(ledger.status_of_next(), Status::Flushed);
        kunit_assert_eq!(ledger.status_of_asked(1), Status::Flushed);
        Ok(())
    }

    #[test]
    fn each_kind_of_progress_begins_the_time_anew_and_nothing_else_does() -> Result {
        let mut progress = Progress::default();
        let mut ledger = ledger_of(&[Some(1), Some(2)])?;
        let left = |ledger: &mut Ledger, now, progress| ledger.left_to_wait(now, 99, progress);
        kunit_assert_eq!(left(&mut ledger, 1000, progress), Some(100));
        kunit_assert_eq!(left(&mut ledger, 1060, progress), Some(40));
        kunit_assert_eq!(left(&mut ledger, 1100, progress), Some(0));
        // Bytes of requests, and bytes that are none of theirs.
        (progress.taken, progress.requests_end) = (1, 1);
        kunit_assert_eq!(left(&mut ledger, 1160, progress), Some(100));
        progress.taken = 2;
        kunit_assert_eq!(left(&mut ledger, 1200, progress), Some(60));
        progress.placed = 1;
        kunit_assert_eq!(left(&mut ledger, 1210, progress), Some(100));
        assert!(ledger.take_acknowledged(1).is_ok_and(|gone| gone.is_some()));
        kunit_assert_eq!(left(&mut ledger, 1220, progress), Some(100));
        let mut wqe = KBox::new(SendWqe::new(&CAPS)?, GFP_KERNEL)?;
        assert!(ledger.ask(&mut wqe, 7, 1));
        kunit_assert_eq!(left(&mut ledger, 1250, progress), Some(70));
        let asked = ledger.take_asked().ok_or(EIO)?;
        ledger.put_free(asked.wqe);
        kunit_assert_eq!(left(&mut ledger, 1260, progress), Some(100));
        Ok(())
    }

    #[test]
    fn bytes_before_a_request_count_until_it_begins() -> Result {
        let mut ledger = ledger_of(&[])?;
        let mut progress = Progress {
            taken: 5,
            ..Progress::default()
        };
        kunit_assert_eq!(ledger.left_to_wait(10, 99, progress), Some(100));
        progress.taken = 6;
        kunit_assert_eq!(ledger.left_to_wait(50, 99, progress), Some(100));
        progress.is_begun = true;
        kunit_assert_eq!(ledger.left_to_wait(60, 99, progress), Some(100));
        progress.taken = 7;
        kunit_assert_eq!(ledger.left_to_wait(80, 99, progress), Some(80));
        Ok(())
    }

    #[test]
    fn a_request_that_waits_for_this_host_alone_has_no_end() -> Result {
        let drains = Progress {
            drains: true,
            ..Progress::default()
        };
        let mut ledger = ledger_of(&[])?;
        kunit_assert_eq!(ledger.left_to_wait(10, 99, Progress::default()), Some(100));
        kunit_assert_eq!(ledger.left_to_wait(90, 99, drains), None);
        // The next request has a time of its own.
        kunit_assert_eq!(ledger.left_to_wait(200, 99, Progress::default()), Some(100));
        let mut wqe = KBox::new(SendWqe::new(&CAPS)?, GFP_KERNEL)?;
        assert!(ledger.ask(&mut wqe, 7, 1));
        kunit_assert_eq!(ledger.left_to_wait(240, 99, drains), Some(60));
        Ok(())
    }
}
