// SPDX-License-Identifier: GPL-2.0

//! Memory on its own, without queue pairs: tokens, registrations, windows, and the end of access.
//!
//! | file        | contents                                            |
//! |-------------|-----------------------------------------------------|
//! | [`table`]   | slots: allocation, reuse, limits, growth, removal   |
//! | [`access`]  | token, domain, rights and bounds of each access     |
//! | [`staging`] | mapping and registering in the orders consumers use |
//! | [`windows`] | rights, users and end of a window                   |
//! | [`revoke`]  | invalidation by each side, and its refusal          |
//!
//! [`crate::kunit::race`] tests the table from several processors at once.

mod access;
mod revoke;
mod staging;
mod table;
mod windows;

use kernel::prelude::*;

use super::{
    slot::{
        DomainId,
        RegAttr,
        RegisterError, //
    },
    spans::SpanList,
    Denied,
    MemoryTable,
    User, //
};
use crate::{
    rdma::values::{
        access::{
            AccessFlag,
            AccessFlags, //
        },
        token::Token, //
    },
    sys::{
        sge::Sge,
        span::{
            test_part,
            test_span,
            Run,
            Span, //
        }, //
    }, //
};

impl MemoryTable {
    /// Makes the last staged mapping valid under the whole of `token`, as the verbs face does.
    pub(crate) fn register(&self, token: Token, attr: RegAttr) -> Result<(), RegisterError> {
        self.register_staged(token, attr, None)
    }
}

/// The number of bytes that are read or written in one go.
const CHUNK: usize = 256;

/// Memory of a test, touched as a device would: by raw copies, never as a slice.
pub(crate) struct RawBuffer {
    span: Span,
    _bytes: KVVec<u8>,
}

impl RawBuffer {
    /// `len` zero bytes.
    pub(crate) fn new(len: usize) -> Result<Self> {
        let mut bytes = KVVec::from_elem(0u8, len, GFP_KERNEL)?;
        Ok(Self {
            span: test_span(&mut bytes),
            _bytes: bytes,
        })
    }

    /// The whole buffer.
    pub(crate) fn run(&self) -> Run<'_> {
        self.span.run()
    }

    /// The whole buffer, to be registered.
    pub(crate) fn span(&self) -> Span {
        test_part(self.run())
    }

    /// `len` bytes from `at` on, to be registered; `EINVAL` when they are not inside.
    pub(crate) fn part(&self, at: usize, len: usize) -> Result<Span> {
        self.run().slice(at, len).map(test_part).ok_or(EINVAL)
    }

    /// The kernel address of byte `at`.
    pub(crate) fn addr(&self, at: usize) -> u64 {
        // CAST: widening.
        (self.run().addr() + at) as u64
    }

    /// `len` bytes from `at` on, as local memory.
    pub(crate) fn sge(&self, at: usize, len: u32) -> Sge {
        Sge::new(self.addr(at), len, Token::LOCAL_MEMORY)
    }

    /// Sets every byte.
    pub(crate) fn fill(&self, byte: u8) {
        let pattern = [byte; CHUNK];
        let mut at = 0;
        while let Some(rest) = self.run().slice(at, self.span.len() - at) {
            match rest.write(&pattern) {
                Ok(0) | Err(_) => return,
                Ok(n) => at += n,
            }
        }
    }

    /// A test byte that depends on its place.
    pub(crate) fn numbered(at: usize) -> u8 {
        // CAST: the remainder is below 251.
        (at % 251) as u8
    }

    /// The byte at `at`; 0 outside.
    pub(crate) fn get(&self, at: usize) -> u8 {
        let mut byte = [0];
        if let Some(place) = self.run().slice(at, 1) {
            place.read(&mut byte);
        }
        byte[0]
    }

    /// The number of the `len` bytes from `at` on that satisfy `is`.
    pub(crate) fn count(&self, at: usize, len: usize, is: impl Fn(u8) -> bool) -> usize {
        let mut found = 0;
        self.each_chunk(at, len, |chunk| {
            found += chunk.iter().filter(|b| is(**b)).count();
            true
        });
        found
    }

    /// Returns true if the `len` bytes from `at` on are inside and all equal `byte`.
    pub(crate) fn is(&self, at: usize, len: usize, byte: u8) -> bool {
        let pattern = [byte; CHUNK];
        let whole = self.each_chunk(at, len, |chunk| pattern.starts_with(chunk));
        whole && self.run().slice(at, len).is_some()
    }

    /// Passes the bytes to `see` in parts that fit the stack, until it returns false.
    fn each_chunk(&self, at: usize, len: usize, mut see: impl FnMut(&[u8]) -> bool) -> bool {
        let mut chunk = [0u8; CHUNK];
        let mut done = 0;
        while done < len {
            let part = CHUNK.min(len - done);
            let n = match self.run().slice(at + done, part) {
                Some(span) => span.read(&mut chunk),
                None => return true,
            };
            if !see(chunk.get(..n).unwrap_or_default()) {
                return false;
            }
            done += n;
        }
        true
    }
}

/// The domain that owns the objects of the tests, and another.
const OWN: DomainId = 7;
const OTHER: DomainId = 8;

/// A queue pair of the domain, and another.
const QP: u64 = 21;
const OTHER_QP: u64 = 22;

const READ: AccessFlags = AccessFlags::of([AccessFlag::RemoteRead]);
const LOCAL: AccessFlags = AccessFlags::of([AccessFlag::LocalWrite]);
/// The rights of a region that the peer may fill.
const WRITE: AccessFlags = AccessFlags::of([AccessFlag::LocalWrite, AccessFlag::RemoteWrite]);
const ALL: AccessFlags = AccessFlags::from_bits(15);

/// The peer of the queue pair.
const PEER: User = User {
    domain: OWN,
    qp: Some(QP),
};

/// The peer of another queue pair of the domain.
const OTHER_PEER: User = User {
    domain: OWN,
    qp: Some(OTHER_QP),
};

/// The peer of a queue pair of the other domain, with the same number.
const STRANGER: User = User {
    domain: OTHER,
    qp: Some(QP),
};

/// The owner's own requests.
const OWNER: User = User {
    domain: OWN,
    qp: None,
};

/// The address of the first registered byte, as a peer names it.
const BASE: u64 = 0x7000_0000_1003;

fn attr(rights: AccessFlags, base: u64, len: u64) -> RegAttr {
    RegAttr {
        domain: OWN,
        rights,
        base,
        len,
        binding: None,
    }
}

/// The same slot under the key `by` further on.
fn bumped(token: Token, by: u8) -> Token {
    Token::new(token.index(), token.key().wrapping_add(by)).unwrap_or(token)
}

/// A list of the given parts (offset and length) of `buffer`.
fn list(buffer: &RawBuffer, parts: &[(usize, usize)]) -> Result<SpanList> {
    let mut list = SpanList::with_capacity(parts.len())?;
    for (at, len) in parts {
        list.push(buffer.part(*at, *len)?).map_err(|_| ENOSPC)?;
    }
    Ok(list)
}

/// One table and one buffer.
struct Store {
    table: Pin<KBox<MemoryTable>>,
    buffer: RawBuffer,
}

impl Store {
    fn new(len: usize) -> Result<Self> {
        Ok(Self {
            table: KBox::pin_init(MemoryTable::new(), GFP_KERNEL)?,
            buffer: RawBuffer::new(len)?,
        })
    }

    /// Registers the first `len` bytes of the buffer at [`BASE`] until they are removed.
    fn fixed(&self, len: usize, rights: AccessFlags) -> Result<Token> {
        let spans = SpanList::of(self.buffer.part(0, len)?)?;
        // CAST: widening.
        self.table.add_fixed(spans, attr(rights, BASE, len as u64))
    }

    /// A fast-register region of up to `pieces` pieces, without a mapping.
    fn fast(&self, pieces: usize) -> Result<Token> {
        self.table.add_fast(OWN, pieces)
    }

    /// Stages parts of the buffer; returns the number that fit.
    fn stage(&self, token: Token, parts: &[(usize, usize)]) -> Result<usize> {
        stage(&self.table, token, &self.buffer, parts)
    }

    /// Registers the staged mapping at [`BASE`]; returns true on success.
    fn register(&self, token: Token, rights: AccessFlags, len: u64) -> bool {
        self.table.register(token, attr(rights, BASE, len)).is_ok()
    }

    /// A fast-register region of the first `len` bytes, valid at [`BASE`].
    fn registered(&self, len: usize, rights: AccessFlags) -> Result<Token> {
        let token = self.fast(1)?;
        self.stage(token, &[(0, len)])?;
        // CAST: widening.
        match self.register(token, rights, len as u64) {
            true => Ok(token),
            false => Err(EINVAL),
        }
    }

    /// Writes `bytes` at `addr` under `token` as the peer.
    fn put(&self, token: Token, addr: u64, bytes: &[u8]) -> Result<(), Denied> {
        put(&self.table, token, PEER, addr, bytes)
    }

    /// Returns true if the peer may write one byte at [`BASE`] under `token`.
    fn takes(&self, token: Token) -> bool {
        self.table
            .access(token, PEER, AccessFlag::RemoteWrite, BASE, 1)
            .is_ok()
    }

    /// The error of a write of one byte at [`BASE`] under `token` as the peer.
    fn denial(&self, token: Token) -> Option<Denied> {
        let access = self
            .table
            .access(token, PEER, AccessFlag::RemoteWrite, BASE, 1);
        access.err()
    }
}

/// Stages parts of `buffer`; returns the number that fit.
fn stage(
    table: &MemoryTable,
    token: Token,
    buffer: &RawBuffer,
    parts: &[(usize, usize)],
) -> Result<usize> {
    let staged = table.stage(token.index(), |list| {
        let mut taken = 0;
        for (at, len) in parts {
            let part = buffer.part(*at, *len)?;
            if list.push(part).is_err() {
                break;
            }
            taken += 1;
        }
        Ok(taken)
    });
    staged.ok_or(EINVAL)?
}

/// Writes `bytes` at `addr` under `token`, run by run, as a transport does.
fn put(
    table: &MemoryTable,
    token: Token,
    user: User,
    addr: u64,
    bytes: &[u8],
) -> Result<(), Denied> {
    // CAST: widening.
    let len = bytes.len() as u64;
    let access = table.access(token, user, AccessFlag::RemoteWrite, addr, len)?;
    let mut at = 0;
    while at < bytes.len() {
        // CAST: widening.
        let run = access.run(at as u64);
        match run.write(bytes.get(at..).unwrap_or_default()) {
            Ok(0) | Err(_) => return Err(Denied::Bounds),
            Ok(n) => at += n,
        }
    }
    Ok(())
}
