// SPDX-License-Identifier: GPL-2.0

//! The next message: an answer, a request of the send queue, or what ends the connection.
//!
//! Tests: `direct/tests/message.rs`.

use super::{
    immediate_of_write,
    Content,
    Outbound,
    Sending,
    Stage,
    Wire,
    MOST_OWN, //
};
use crate::{
    engine::{
        prelude::*,
        qp::{
            local::{
                self,
                Local, //
            },
            Next, //
        }, //
    },
    iwarp::{
        rdmap::{
            Atomic,
            AtomicRequest,
            ReadRequest,
            Send,
            With, //
        },
        send::Message,
        wire::ledger::Answer, //
    },
    rdma::values::{
        token::Token,
        work::{
            RemoteAddr,
            SendFlag,
            SendOp,
            SendWith, //
        }, //
    },
};

pub(super) fn own(bytes: &[u8]) -> [u8; MOST_OWN] {
    let mut room = [0; MOST_OWN];
    for (to, from) in room.iter_mut().zip(bytes) {
        *to = *from;
    }
    room
}

impl Outbound {
    /// Begins the report of what was carried out, if the peer does not know all of it.
    pub(super) fn begin_report(&mut self, wire: &Wire) {
        if !self.terms.extended {
            return;
        }
        let report = wire.ledger.lock().take_report();
        let Some(count) = report.or(self.begins.then_some(0)) else {
            return;
        };
        self.begins = false;
        let message = Message::Acknowledge { count };
        self.aside = self.sender.begin(message).map(|segments| Sending {
            segments,
            len: 0,
            put: 0,
            content: Content::Report,
        });
    }

    /// Begins the next message; returns false if there is none.
    pub(super) fn next(&mut self, wire: &Arc<Wire>) -> bool {
        if self.stage == Stage::Last {
            return self.begin_terminate(wire);
        }
        let mut ledger = wire.ledger.lock();
        let (answer, ends_now) = (ledger.next_answer(), ledger.ends_now());
        drop(ledger);
        if ends_now {
            // The work item runs again for the Terminate.
            wire.qp.peer_gone(wire.id);
            return false;
        }
        match answer.filter(|_| !self.answered) {
            Some(answer) => self.begin_answer(wire, answer),
            None if self.next_request(wire) => true,
            None => answer.is_some_and(|answer| self.begin_answer(wire, answer)),
        }
    }

    fn begin_answer(&mut self, wire: &Arc<Wire>, answer: Answer) -> bool {
        match answer {
            Answer::Read { request, number } => {
                let message = Message::ReadResponse {
                    stag: request.sink_stag,
                    offset: request.sink_offset,
                    len: request.size,
                };
                self.begin(wire, message, Content::Read { request, number })
            }
            Answer::Atomic(response) => {
                let content = Content::Answer(own(&response.encode()));
                self.begin(wire, Message::AtomicResponse, content)
            }
        }
    }

    /// Begins a message. A request that the peer does not know ends with an error.
    pub(super) fn begin(&mut self, wire: &Wire, message: Message, content: Content) -> bool {
        match self.sender.begin(message) {
            Some(segments) => {
                self.sending = Some(Sending {
                    segments,
                    len: message.len(),
                    put: 0,
                    content,
                });
                true
            }
            None => {
                self.complete(wire, Status::LocalOperation);
                false
            }
        }
    }

    /// Begins the Terminate, if there is one to send: nothing follows it.
    fn begin_terminate(&mut self, wire: &Wire) -> bool {
        let Some(terminate) = wire.ledger.lock().take_terminate() else {
            return false;
        };
        let bytes = terminate.as_bytes();
        // CAST: a few bytes.
        let len = bytes.len() as u16;
        self.begin(
            wire,
            Message::Terminate { len },
            Content::Terminate(own(bytes)),
        )
    }

    /// Starts the next request; returns false if none may begin.
    fn next_request(&mut self, wire: &Arc<Wire>) -> bool {
        loop {
            if self.has_request {
                // The request waits for the end of an access.
                if !self.is_drained(wire) {
                    return false;
                }
                continue;
            }
            if wire.qp.start(wire.id, &mut self.wqe) == Next::Nothing {
                return false;
            }
            self.has_request = true;
            if self.begin_request(wire) {
                return true;
            }
            if self.drains.is_some() {
                return false;
            }
        }
    }

    /// Begins the request in `wqe`; returns false if it has no message: it has ended, or waits.
    fn begin_request(&mut self, wire: &Arc<Wire>) -> bool {
        // A peer that is not ndk would get the Write, and not its immediate data.
        let is_unknown = !self.terms.extended && immediate_of_write(&self.wqe).is_some();
        if self.wqe.forbidden || is_unknown {
            self.complete(wire, Status::LocalOperation);
            return false;
        }
        if self.wqe.work.is_local() {
            match local::execute(&wire.qp, &self.wqe.work) {
                Local::Done(status) => self.complete(wire, status),
                Local::Draining(token) | Local::Again(token) => self.drain(wire, token),
            }
            return false;
        }
        let length = self.wqe.length;
        let is_atomic = matches!(
            self.wqe.work,
            SendOp::FetchAdd { .. } | SendOp::CmpSwap { .. }
        );
        if is_atomic && length != 8 {
            self.complete(wire, Status::LocalLength);
            return false;
        }
        if self.wqe.payload(&wire.qp).check(length.into()).is_err() {
            self.complete(wire, Status::LocalAccess);
            return false;
        }
        match self.wqe.work {
            SendOp::Send { with } => self.begin_send(wire, with),
            SendOp::Write { to, .. } => self.begin(
                wire,
                Message::Write {
                    stag: to.token.raw(),
                    offset: to.addr,
                    len: length,
                },
                Content::Request,
            ),
            _ => self.begin_ask(wire),
        }
    }

    fn begin_send(&mut self, wire: &Wire, with: SendWith) -> bool {
        let (with, word) = match with {
            SendWith::Nothing => (With::Nothing, 0),
            SendWith::Imm(data) => (With::Immediate, data.to_be()),
            SendWith::Inv(token) => (With::Invalidate, token.raw()),
        };
        let send = Send {
            solicited: self.wqe.flags.contains(SendFlag::Solicited),
            with,
        };
        let len = self.wqe.length;
        self.begin(wire, Message::Send { send, word, len }, Content::Request)
    }

    /// Begins a request that the peer answers.
    fn begin_ask(&mut self, wire: &Arc<Wire>) -> bool {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let atomic = |at: RemoteAddr, operation| {
            let request = AtomicRequest {
                request: number,
                stag: at.token.raw(),
                offset: at.addr,
                operation,
            };
            (Message::AtomicRequest, own(&request.encode()))
        };
        let (message, bytes) = match self.wqe.work {
            SendOp::FetchAdd { at, add } => atomic(at, Atomic::FetchAdd { add }),
            SendOp::CmpSwap { at, compare, swap } => {
                atomic(at, Atomic::CompareSwap { compare, swap })
            }
            SendOp::Read { from, .. } => {
                let request = ReadRequest {
                    sink_stag: number,
                    sink_offset: 0,
                    size: self.wqe.length,
                    source_stag: from.token.raw(),
                    source_offset: from.addr,
                };
                (Message::ReadRequest, own(&request.encode()))
            }
            _ => return false,
        };
        if !wire.ledger.lock().may_ask() {
            // Not with the limit of reads that `start` keeps to.
            self.complete(wire, Status::LocalOperation);
            return false;
        }
        if !self.begin(wire, message, Content::RequestOwn(bytes)) {
            return false;
        }
        let sent = self.sending.as_ref();
        let message = sent.map_or(0, |sending| sending.segments.number());
        // Before the first byte goes out: the answer finds it.
        self.has_request = !wire.ledger.lock().ask(&mut self.wqe, number, message);
        true
    }

    /// Has the request in `wqe` wait for the last access to what `token` named.
    fn drain(&mut self, wire: &Arc<Wire>, token: Token) {
        self.drains = Some(token);
        if !self.is_drained(wire) {
            wire.qp.device().count(Counter::InvalidationsDelayed, 1);
        }
    }

    /// Ends the request in `wqe`, or carries it out again, if the access that it waits for is over.
    pub(super) fn is_drained(&mut self, wire: &Arc<Wire>) -> bool {
        let Some(token) = self.drains else {
            return false;
        };
        if !wire.qp.device().regions.is_drained(token) {
            wire.look_when_drained(token);
            return false;
        }
        self.drains = None;
        match self.wqe.work {
            SendOp::LocalInv { .. } => self.complete(wire, Status::Success),
            _ => match local::execute(&wire.qp, &self.wqe.work) {
                Local::Done(status) => self.complete(wire, status),
                Local::Draining(token) | Local::Again(token) => {
                    self.drains = Some(token);
                    wire.look_when_drained(token);
                    return false;
                }
            },
        }
        true
    }
}
