// SPDX-License-Identifier: GPL-2.0

//! The effect of a message whose bytes are in their place.
//!
//! Tests: `direct/tests/message.rs`.

use kernel::sync::atomic::ordering::Acquire;

use super::{
    Asked,
    Delivery,
    Wait,
    Wire, //
};
use crate::{
    engine::{
        memory::{
            transfer::{
                self,
                Payload, //
            },
            Denied, //
        },
        prelude::*,
        qp::local::{
            self,
            Local, //
        }, //
    },
    iwarp::{
        rdmap::{
            self,
            Atomic,
            AtomicRequest,
            AtomicResponse,
            ReadRequest,
            Send,
            With, //
        },
        receive::{
            Message,
            Progress, //
        },
        terminate::{
            self,
            About,
            Cause, //
        },
        wire::{
            ledger::{
                Answer,
                Blamed, //
            },
            named::{
                untagged,
                WORD, //
            },
        }, //
    },
    rdma::values::{
        completion::Wc,
        token::Token,
        wc::WcOpcode,
        work::{
            RemoteAddr,
            SendOp,
            SendWith, //
        }, //
    },
    sys::trace,
};

impl Delivery {
    pub(super) fn deliver(
        &mut self,
        wire: &Arc<Wire>,
        message: &Message,
    ) -> Result<Progress, Cause> {
        match *message {
            Message::Write => {
                self.written = core::mem::take(&mut self.writing);
                let bytes = u64::from(self.written);
                wire.qp.device().count(Counter::BytesIn, bytes);
                self.carried_out(wire);
            }
            Message::Send { send, word, len } => return self.end_send(wire, send, word, len),
            Message::Immediate { data, solicited } => {
                return self.end_immediate(wire, data, solicited)
            }
            Message::ReadResponse => return self.end_read(wire),
            Message::ReadRequest { request, number } => self.read(wire, &request, number)?,
            Message::AtomicRequest { request, .. } => self.atomic(wire, &request)?,
            Message::AtomicResponse(response) => self.end_atomic(wire, &response)?,
            Message::Acknowledge { count } => acknowledged(wire, count)?,
            Message::Terminate(received) => terminated(wire, &received),
        }
        Ok(Progress::Done)
    }

    /// Tells the peer that a request of its was carried out.
    fn carried_out(&self, wire: &Arc<Wire>) {
        wire.ledger.lock().count_carried_out();
        if wire.terms.extended {
            wire.kick();
        }
    }

    /// Notes a fault in a request of the peer that has an answer: the answers before it go out first.
    fn fault_of_ask(&mut self, wire: &Wire, denied: Denied) -> Cause {
        self.is_about_ask = true;
        self.refuse(wire, untagged(denied))
    }

    /// Takes a read request of the peer. Its memory is judged now, and again when it is sent.
    fn read(&mut self, wire: &Arc<Wire>, request: &ReadRequest, number: u32) -> Result<(), Cause> {
        if !wire.ledger.lock().serves_another(wire.terms.limits) {
            return Err(Cause::OperationUnspecified);
        }
        if request.size > 0 {
            let at = RemoteAddr {
                addr: request.source_offset,
                token: Token::from_raw(request.source_stag),
            };
            let checked = wire.check_named(AccessFlag::RemoteRead, at, request.size);
            checked.map_err(|denied| self.fault_of_ask(wire, denied))?;
        }
        let request = *request;
        self.answer(wire, Answer::Read { request, number });
        Ok(())
    }

    fn answer(&self, wire: &Arc<Wire>, answer: Answer) {
        wire.ledger.lock().put_answer(answer);
        wire.kick();
    }

    /// Ends a Send whose bytes are there; begins its invalidation, if any.
    fn end_send(
        &mut self,
        wire: &Arc<Wire>,
        send: Send,
        word: u32,
        len: u32,
    ) -> Result<Progress, Cause> {
        let with = match send.with {
            With::Nothing => SendWith::Nothing,
            With::Immediate => SendWith::Imm(u32::from_be(word)),
            With::Invalidate => {
                let token = Token::from_raw(word);
                if !self.revoke(wire, token)? {
                    return Ok(Progress::Wait);
                }
                SendWith::Inv(token)
            }
        };
        let device = wire.qp.device();
        device.count_each([(Counter::Receives, 1), (Counter::BytesIn, len.into())]);
        let completion = Wc {
            opcode: WcOpcode::Recv,
            byte_len: len,
            with,
            solicited: send.solicited,
            ..Wc::BLANK
        };
        self.finish_receive(wire, completion);
        self.carried_out(wire);
        Ok(Progress::Done)
    }

    /// Ends the validity of `token`, for a message of the peer. Returns false if an access uses it.
    fn revoke(&mut self, wire: &Arc<Wire>, token: Token) -> Result<bool, Cause> {
        let device = wire.qp.device();
        if self.drains.is_none() {
            let revoked = device.regions.revoke_remote(token, wire.qp.peer_user());
            trace::event!(invalidate, {
                let (name, number) = (device.name(), wire.qp.params.number);
                (name, number, token.raw(), true, revoked.is_err())
            });
            if revoked.is_err() {
                device.count(Counter::InvalidationsRefused, 1);
                self.fail_receive(wire, Status::ReceiveInvalidation);
                return Err(Cause::CannotInvalidate);
            }
            device.count(Counter::InvalidationsRemote, 1);
            self.begin_drain(wire, token);
        }
        Ok(self.is_drained(wire))
    }

    fn begin_drain(&mut self, wire: &Wire, token: Token) {
        let device = wire.qp.device();
        self.drains = Some(token);
        if !device.regions.is_drained(token) {
            device.count(Counter::InvalidationsDelayed, 1);
        }
    }

    /// Returns true if no access uses the token that is being invalidated; else the work item looks
    /// again later.
    pub(super) fn is_drained(&mut self, wire: &Arc<Wire>) -> bool {
        let Some(token) = self.drains else {
            return true;
        };
        if wire.qp.device().regions.is_drained(token) {
            self.drains = None;
            return true;
        }
        wire.look_when_drained(token);
        self.waits = Wait::Drain;
        false
    }

    fn end_immediate(
        &mut self,
        wire: &Arc<Wire>,
        data: u32,
        solicited: bool,
    ) -> Result<Progress, Cause> {
        if !self.take_receive(wire)? {
            return Ok(Progress::Wait);
        }
        wire.qp.device().count(Counter::Receives, 1);
        let completion = Wc {
            opcode: WcOpcode::RecvWithImm,
            byte_len: self.written,
            with: SendWith::Imm(u32::from_be(data)),
            solicited,
            ..Wc::BLANK
        };
        self.finish_receive(wire, completion);
        self.carried_out(wire);
        Ok(Progress::Done)
    }

    /// Ends a read whose bytes are there; begins its invalidation, if any.
    fn end_read(&mut self, wire: &Arc<Wire>) -> Result<Progress, Cause> {
        let Some(asked) = &self.asked else {
            return Err(Cause::TaggedInvalidStag);
        };
        let bytes = asked.wqe.length;
        if let SendOp::Read {
            invalidate: Some(token),
            ..
        } = asked.wqe.work
        {
            if self.drains.is_none() {
                match local::invalidate(&wire.qp, token, false) {
                    Local::Draining(token) => self.begin_drain(wire, token),
                    _ => {
                        self.end_asked(wire, Some(Status::LocalOperation));
                        return Err(Cause::StreamCatastrophic);
                    }
                }
            }
            if !self.is_drained(wire) {
                return Ok(Progress::Wait);
            }
        }
        let device = wire.qp.device();
        device.count_each([(Counter::Reads, 1), (Counter::BytesIn, bytes.into())]);
        self.end_asked(wire, Some(Status::Success));
        // A fence may have held requests back.
        wire.kick();
        Ok(Progress::Done)
    }

    /// Carries an atomic operation of the peer out.
    fn atomic(&mut self, wire: &Arc<Wire>, request: &AtomicRequest) -> Result<(), Cause> {
        if !wire.ledger.lock().serves_another(wire.terms.limits) {
            return Err(Cause::OperationUnspecified);
        }
        let at = RemoteAddr {
            addr: request.offset,
            token: Token::from_raw(request.stag),
        };
        let done = wire.with_named(AccessFlag::RemoteAtomic, at, WORD, |payload| {
            transfer::atomic(payload, |word| match request.operation {
                Atomic::FetchAdd { add } => word.fetch_add(add),
                Atomic::CompareSwap { compare, swap } => word.compare_swap(compare, swap),
            })
        });
        let original = match done {
            Ok(Some(original)) => original,
            // The word is not aligned.
            Ok(None) => {
                self.is_about_ask = true;
                return Err(Cause::OperationUnspecified);
            }
            Err(denied) => return Err(self.fault_of_ask(wire, denied)),
        };
        let request = request.request;
        self.answer(wire, Answer::Atomic(AtomicResponse { request, original }));
        Ok(())
    }

    fn end_atomic(&mut self, wire: &Arc<Wire>, response: &AtomicResponse) -> Result<(), Cause> {
        if self.asked.is_some() {
            // The response to a read is not complete.
            return Err(Cause::OperationUnspecified);
        }
        self.expect_response(wire);
        let is_asked = |asked: &&Asked| {
            asked.number == response.request && !matches!(asked.wqe.work, SendOp::Read { .. })
        };
        let asked = self.asked.as_ref().filter(is_asked);
        let asked = asked.ok_or(Cause::OperationUnspecified)?;
        let old = response.original.to_ne_bytes();
        let sink = Payload::List(wire.sink(), &asked.wqe.sges);
        let copied = transfer::copy(&Payload::Inline(&old), &sink, 0, WORD.into());
        if copied.is_err() {
            self.end_asked(wire, Some(Status::LocalAccess));
            return Err(Cause::StreamCatastrophic);
        }
        let device = wire.qp.device();
        device.count_each([(Counter::Atomics, 1), (Counter::BytesIn, WORD.into())]);
        self.end_asked(wire, Some(Status::Success));
        wire.kick();
        Ok(())
    }
}

/// Ends the requests that the peer has carried out.
pub(super) fn acknowledged(wire: &Arc<Wire>, count: u32) -> Result<(), Cause> {
    loop {
        let sent = wire.ledger.lock().take_acknowledged(count);
        match sent {
            Ok(Some(gone)) => gone.complete(&wire.qp, Status::Success),
            Ok(None) => break,
            Err(()) => return Err(Cause::OperationUnspecified),
        }
    }
    if wire.is_closing.load(Acquire) {
        // The wait of the next begins.
        wire.kick();
    }
    Ok(())
}

/// Notes the request that the peer has found at fault, and ends the connection.
pub(super) fn terminated(wire: &Arc<Wire>, received: &terminate::Received) {
    let blamed = match received.about {
        Some(About::Untagged {
            queue: rdmap::queue::READ,
            message,
            ..
        }) => Blamed::Asked(message),
        _ => Blamed::Oldest,
    };
    if let Some(status) = status(received, blamed) {
        wire.ledger.lock().blame(blamed, status);
    }
    wire.qp.peer_gone(wire.id);
}

/// The status of the request that a Terminate is about; `None` for a fault of no request.
fn status(received: &terminate::Received, blamed: Blamed) -> Option<Status> {
    Some(match Cause::from_code(received.code)? {
        Cause::NoBuffer => Status::ReceiverNotReady,
        Cause::InvalidStag
        | Cause::Bounds
        | Cause::AccessRights
        | Cause::NotAssociated
        | Cause::Wrap
        | Cause::ProtectionUnspecified
        | Cause::TaggedInvalidStag
        | Cause::TaggedBounds
        | Cause::TaggedNotAssociated
        | Cause::TaggedWrap => Status::RemoteAccess,
        Cause::TooLong | Cause::CannotInvalidate | Cause::ProtectedFromInvalidation => {
            Status::RemoteInvalidRequest
        }
        Cause::OperationUnspecified if blamed != Blamed::Oldest => Status::RemoteInvalidRequest,
        Cause::StreamCatastrophic
        | Cause::GlobalCatastrophic
        | Cause::Lost
        | Cause::Crc
        | Cause::Length => return None,
        _ => Status::RemoteOperation,
    })
}
