// SPDX-License-Identifier: GPL-2.0

//! [`MrBuffer`]: registered memory with known contents.
//!
//! Byte `i` of pattern `seed` shows its place and its message, so a test sees bytes that are
//! missing, moved or of another message. Bytes that were not written hold [`BLANK`].

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::{
        domain::Domain,
        memory::{
            slot::RegAttr,
            spans::SpanList, //
        }, //
    },
    rdma::values::{
        access::{
            AccessFlag,
            AccessFlags, //
        },
        token::Token,
        work::RemoteAddr, //
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

/// The value of a byte that was not written.
pub(crate) const BLANK: u8 = 0xEE;

/// The address of a region's first byte: not that of the memory, and at no border.
pub(crate) const BASE: u64 = 0x5A5A_0000_1008;

/// All rights.
pub(crate) const ALL: AccessFlags = AccessFlags::of([
    AccessFlag::LocalWrite,
    AccessFlag::RemoteRead,
    AccessFlag::RemoteWrite,
    AccessFlag::RemoteAtomic,
]);

/// Byte `at` of pattern `seed`; never [`BLANK`].
pub(crate) const fn pattern(seed: u8, at: usize) -> u8 {
    // CAST: each of them is cut to a byte on purpose.
    let mixed = (at as u8).wrapping_mul(31) ^ ((at >> 8) as u8).wrapping_mul(7) ^ seed;
    if mixed == BLANK {
        !BLANK
    } else {
        mixed
    }
}

/// Bytes before and behind each buffer that must stay blank.
const EDGE: usize = 64;

/// Memory with a region over it.
pub(crate) struct MrBuffer {
    domain: Arc<Domain>,
    token: Token,
    len: usize,
    /// The memory with its edges.
    all: Span,
    // Only kept: the bytes are accessed through the span.
    _bytes: KVVec<u8>,
}

impl MrBuffer {
    fn new(
        domain: &Arc<Domain>,
        len: usize,
        register: impl FnOnce(Span) -> Result<Token>,
    ) -> Result<Arc<Self>> {
        let mut bytes = KVVec::from_elem(BLANK, len + 2 * EDGE, GFP_KERNEL)?;
        let all = test_span(&mut bytes);
        let span = test_part(all.run().slice(EDGE, len).ok_or(EINVAL)?);
        let buffer = Self {
            domain: domain.clone(),
            token: register(span)?,
            len,
            all,
            _bytes: bytes,
        };
        Ok(Arc::new(buffer, GFP_KERNEL)?)
    }

    /// `len` blank bytes, registered as long as they exist. May sleep.
    pub(crate) fn fixed(
        domain: &Arc<Domain>,
        len: usize,
        rights: AccessFlags,
    ) -> Result<Arc<Self>> {
        Self::new(domain, len, |span| {
            let attr = RegAttr {
                domain: domain.id(),
                rights,
                base: BASE,
                // CAST: widening.
                len: len as u64,
                binding: None,
            };
            domain.device().regions.add_fixed(SpanList::of(span)?, attr)
        })
    }

    /// `len` blank bytes, staged in a fast-register region that is not valid yet. May sleep.
    pub(crate) fn fast(domain: &Arc<Domain>, len: usize) -> Result<Arc<Self>> {
        Self::new(domain, len, |span| {
            let regions = &domain.device().regions;
            let token = regions.add_fast(domain.id(), 1)?;
            let staged = regions.stage(token.index(), |list| list.push(span).is_ok());
            match staged {
                Some(true) => Ok(token),
                Some(false) | None => Err(EINVAL),
            }
        })
    }

    /// The token of the region.
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The memory itself.
    pub(crate) fn run(&self) -> Run<'_> {
        self.all.run().part(EDGE, self.len)
    }

    /// `len` bytes from `at` on, for a list of this side.
    pub(crate) fn sge(&self, at: usize, len: usize) -> Sge {
        // CAST: widening; tests use short buffers.
        Sge::new(BASE + at as u64, len as u32, self.token)
    }

    /// All bytes, for a list of this side.
    pub(crate) fn whole(&self) -> Sge {
        self.sge(0, self.len())
    }

    /// The same bytes as [`MrBuffer::sge`] names, as plain memory.
    pub(crate) fn plain(&self, at: usize, len: usize) -> Sge {
        // CAST: widening; tests use short buffers.
        let addr = self.run().addr() as u64 + at as u64;
        Sge::new(addr, len as u32, Token::LOCAL_MEMORY)
    }

    /// The address and token with which a peer accesses byte `at`.
    pub(crate) fn remote(&self, at: usize) -> RemoteAddr {
        RemoteAddr {
            // CAST: widening.
            addr: BASE + at as u64,
            token: self.token,
        }
    }

    /// Returns true if the bytes next to the buffer are blank.
    pub(crate) fn has_clean_edges(&self) -> bool {
        let mut edge = [0; EDGE];
        [0, EDGE + self.len()].into_iter().all(|at| {
            let run = self.all.run().part(at, EDGE);
            run.read(&mut edge) == EDGE && edge.iter().all(|b| *b == BLANK)
        })
    }

    /// Writes pattern `seed` all over.
    pub(crate) fn fill(&self, seed: u8) {
        self.each_chunk(0, self.len(), |at, chunk, run| {
            for (i, byte) in chunk.iter_mut().enumerate() {
                *byte = pattern(seed, at + i);
            }
            let _ = run.write(chunk);
        });
    }

    /// Blanks all bytes.
    pub(crate) fn clear(&self) {
        self.each_chunk(0, self.len(), |_, chunk, run| {
            chunk.fill(BLANK);
            let _ = run.write(chunk);
        });
    }

    /// Returns true if `[at, at + len)` holds the bytes of pattern `seed` from its byte `from` on.
    pub(crate) fn holds(&self, at: usize, len: usize, seed: u8, from: usize) -> bool {
        self.is_like(at, len, |i| pattern(seed, from + i - at))
    }

    /// Returns true if `[at, at + len)` is blank.
    pub(crate) fn is_blank(&self, at: usize, len: usize) -> bool {
        self.is_like(at, len, |_| BLANK)
    }

    fn is_like(&self, at: usize, len: usize, want: impl Fn(usize) -> u8) -> bool {
        let mut wrong = None;
        self.each_chunk(at, len, |at, chunk, run| {
            run.read(chunk);
            let found = chunk.iter().enumerate().find(|(i, b)| **b != want(at + i));
            wrong = wrong.or(found.map(|(i, b)| (at + i, *b)));
        });
        if let Some((i, byte)) = wrong {
            kunit_note!("byte {} is {:#x} and not {:#x}", i, byte, want(i));
        }
        // A range that is not inside the buffer does not match.
        wrong.is_none() && self.run().slice(at, len).is_some()
    }

    /// Goes over a range in pieces that fit the stack.
    fn each_chunk(&self, at: usize, len: usize, mut visit: impl FnMut(usize, &mut [u8], Run<'_>)) {
        let mut chunk = [0u8; 256];
        let mut done = 0;
        while done < len {
            let part = chunk.len().min(len - done);
            let span = self.run().slice(at + done, part);
            if let (Some(chunk), Some(span)) = (chunk.get_mut(..part), span) {
                visit(at + done, chunk, span);
            }
            done += part;
        }
    }

    /// The word at byte `at`.
    pub(crate) fn word(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        if let Some(span) = self.run().slice(at, 8) {
            span.read(&mut bytes);
        }
        u64::from_ne_bytes(bytes)
    }

    /// Writes the word at byte `at`.
    pub(crate) fn set_word(&self, at: usize, word: u64) {
        if let Some(span) = self.run().slice(at, 8) {
            let _ = span.write(&word.to_ne_bytes());
        }
    }
}

impl Drop for MrBuffer {
    fn drop(&mut self) {
        self.domain.device().regions.remove(self.token.index());
    }
}
