// SPDX-License-Identifier: GPL-2.0

//! [`Exchange`]: a socket over which the frames of a start-up go and come.
//!
//! Context: process.
//!
//! Tests: `iwarp/carrier/tests.rs`.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    iwarp::{
        mpa::{
            BadStart,
            Kind, //
        },
        opening::{
            Frame,
            Written, //
        }, //
    },
    sys::tcp::{
        Buffer,
        Events,
        Owned,
        Socket,
        State, //
    }, //
};

/// The end of a start-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The peer's bytes are no frame that is expected.
    Frame(BadStart),
    /// The connection is gone, by that error if there is one.
    Lost(Option<Error>),
}

/// A socket, the frame that comes, and the bytes that go.
pub(super) struct Exchange<E: Events> {
    socket: Owned<E>,
    frame: KBox<Frame>,
    out: Buffer,
}

impl<E: Events> Exchange<E> {
    /// Takes the socket, over which a frame of that kind comes. `ENOMEM`, `EBUSY`.
    pub(super) fn new(socket: Socket, events: Arc<E>, kind: Kind) -> Result<Self> {
        Ok(Self {
            frame: KBox::new(Frame::new(kind), GFP_KERNEL)?,
            socket: Owned::new(socket, events)?,
            out: Buffer::new(),
        })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Puts a frame to send. `ENOMEM`.
    pub(super) fn put(&mut self, written: &Written) -> Result {
        let bytes = written.as_bytes();
        self.out.room(bytes.len())?;
        match self.out.put(bytes) == bytes.len() {
            true => Ok(()),
            false => Err(ENOMEM),
        }
    }

    /// Sends what was put, once the connection is open. The room for a socket's first bytes is there:
    /// `EAGAIN` is a lack of memory.
    pub(super) fn send(&mut self) -> Result<(), Fault> {
        while self.out.len() > 0 {
            let sent = self.socket.send(&mut self.out, false);
            sent.map_err(|e| Fault::Lost(Some(e)))?;
        }
        Ok(())
    }

    /// Reads the peer's frame. Returns true if it is whole; no byte behind it is taken.
    pub(super) fn receive(&mut self) -> Result<bool, Fault> {
        // Looked at before the read: the bytes before the end are read then.
        let state = self.socket.state();
        let frame = &mut self.frame;
        let mut filled = frame.filled(0);
        let read = self.socket.read(|packet| {
            while filled == Ok(false) && packet.len() > 0 {
                let taken = packet.take(frame.room());
                filled = frame.filled(taken);
            }
        });
        match (filled, read, state) {
            (Err(bad), _, _) => Err(Fault::Frame(bad)),
            (Ok(true), _, _) => Ok(true),
            (Ok(false), Err(e), _) => Err(Fault::Lost(Some(e))),
            (Ok(false), Ok(_), State::Closed(e)) => Err(Fault::Lost(e)),
            (Ok(false), Ok(_), State::Ended | State::Listens) => Err(Fault::Lost(None)),
            (Ok(false), Ok(_), State::Opening | State::Open) => Ok(false),
        }
    }

    /// The peer's frame.
    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Gives the socket back, which notifies no one any more, and the peer's frame.
    pub(super) fn into_parts(self) -> (Socket, KBox<Frame>) {
        (self.socket.into_socket(), self.frame)
    }
}
