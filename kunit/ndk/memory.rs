// SPDX-License-Identifier: GPL-2.0

//! [`PageBuffer`]: whole pages of a test, with a region over them.

use kernel::prelude::*;

use super::completion::{
    log_status,
    request,
    AutoClose, //
};
use crate::{
    ndk::{
        life::Ref,
        memory::{
            FastRegistration,
            Mr, //
        },
        pd::Pd,
        qp::Qp,
        status::NtStatus, //
    },
    rdma::values::{
        token::Token,
        work::RemoteAddr, //
    },
    sys::{
        mdl::{
            test_pages,
            Described,
            PAGE_SIZE, //
        },
        sge::Sge, //
    }, //
};

/// The size of a page in bytes, as an index.
pub(super) const PAGE: usize = PAGE_SIZE as usize;

/// Whole pages at consecutive addresses.
pub(super) struct PageBuffer {
    /// The region. The order of the fields closes the region before the bytes go.
    pub(super) mr: Option<AutoClose<Mr>>,
    pub(super) bytes: KVec<u8>,
}

impl PageBuffer {
    /// Bytes without a region; `len` is rounded up to a power of two of pages. May sleep.
    pub(super) fn plain(len: usize) -> Result<Self> {
        let len = len.max(PAGE).next_power_of_two();
        Ok(Self {
            mr: None,
            bytes: KVec::from_elem(0, len, GFP_KERNEL)?,
        })
    }

    /// The same bytes with the region `mr`, of any kind.
    pub(super) fn lend(self, mr: AutoClose<Mr>) -> Self {
        Self {
            mr: Some(mr),
            ..self
        }
    }

    /// Bytes with a normal region over all of them. May sleep.
    pub(super) fn registered(pd: &Ref<Pd>, len: usize, flags: u32) -> Result<Self> {
        let mut buffer = Self::plain(len)?;
        let mr = pd
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let status = buffer.register(&mr, flags)?;
        buffer.mr = Some(mr);
        match status {
            NtStatus::SUCCESS => Ok(buffer),
            status => Err(log_status(status)),
        }
    }

    /// Bytes with a normal region at addresses from `base` on, where no memory is. May sleep.
    pub(super) fn displaced(pd: &Ref<Pd>, len: usize, flags: u32, base: u64) -> Result<Self> {
        let mut buffer = Self::plain(len)?;
        let mr = pd
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let mut described = Described::new(&buffer.bytes)?;
        // CAST: 64-bit addresses.
        described.displace(0, base.wrapping_sub(buffer.addr()) as usize);
        // CAST: widening.
        let len = buffer.bytes.len() as u64;
        let status = request(|done| mr.register(described.mdl(), len, flags, done))?;
        buffer.mr = Some(mr);
        match status {
            NtStatus::SUCCESS => Ok(buffer),
            status => Err(log_status(status)),
        }
    }

    /// Bytes with a region that is initialized for fast registration. May sleep.
    pub(super) fn fast(pd: &Ref<Pd>, len: usize, may_be_remote: bool) -> Result<Self> {
        let mut buffer = Self::plain(len)?;
        let mr = pd.create_mr(true).map(AutoClose::new).map_err(log_status)?;
        // CAST: a test's size.
        let pages = (buffer.bytes.len() / PAGE) as u32;
        let status = request(|done| mr.initialize(pages, may_be_remote, done))?;
        buffer.mr = Some(mr);
        match status {
            NtStatus::SUCCESS => Ok(buffer),
            status => Err(log_status(status)),
        }
    }

    /// Registers all of the bytes by `RegisterMr`.
    pub(super) fn register(&self, mr: &Ref<Mr>, flags: u32) -> Result<NtStatus> {
        let described = Described::new(&self.bytes)?;
        // CAST: widening.
        let len = self.bytes.len() as u64;
        request(|done| mr.register(described.mdl(), len, flags, done))
    }

    /// The region; `EINVAL` where there is none.
    pub(super) fn mr(&self) -> Result<&AutoClose<Mr>> {
        self.mr.as_ref().ok_or(EINVAL)
    }

    /// The address of the first byte.
    pub(super) fn addr(&self) -> u64 {
        // CAST: 64-bit addresses.
        self.bytes.as_ptr().addr() as u64
    }

    /// The logical addresses of the pages.
    pub(super) fn pages(&self) -> Result<KVec<u64>> {
        let mut pages = KVec::new();
        for at in 0..self.bytes.len() / PAGE {
            // CAST: widening.
            pages.push(self.addr() + (at * PAGE) as u64, GFP_KERNEL)?;
        }
        Ok(pages)
    }

    /// An element over `len` bytes from `at` on, by the region's local token.
    pub(super) fn sge(&self, at: usize, len: u32) -> Result<Sge> {
        Ok(self.sge_by(self.mr()?.local_token(), at, len))
    }

    /// An element over `len` bytes from `at` on, by that token.
    pub(super) fn sge_by(&self, token: Token, at: usize, len: u32) -> Sge {
        // CAST: widening.
        Sge::new(self.addr() + at as u64, len, token)
    }

    /// The remote address of the bytes from `at` on.
    pub(super) fn remote(&self, at: usize) -> Result<RemoteAddr> {
        Ok(RemoteAddr {
            // CAST: widening.
            addr: self.addr() + at as u64,
            token: self.mr()?.remote_token(),
        })
    }

    /// Posts a fast registration of all of the bytes, at their own addresses.
    pub(super) fn fast_register(
        &self,
        qp: &Ref<Qp>,
        context: u64,
        flags: u32,
    ) -> Result<Result<(), NtStatus>> {
        let pages = self.pages()?;
        let what = FastRegistration {
            pages: test_pages(&pages),
            offset: 0,
            // CAST: widening.
            len: self.bytes.len() as u64,
            base: self.addr(),
        };
        Ok(qp.fast_register(context, self.mr()?, &what, flags))
    }

    /// Fills the bytes with a pattern that begins with `seed`.
    pub(super) fn fill(&mut self, seed: u8) {
        for (at, byte) in self.bytes.iter_mut().enumerate() {
            // CAST: the low byte.
            *byte = seed.wrapping_add(at as u8);
        }
    }

    /// Fills `len` bytes from `at` on with a pattern that begins with `seed`; see
    /// [`PageBuffer::has`].
    pub(super) fn paint(&mut self, seed: u8, at: usize, len: usize) {
        let bytes = self.bytes.get_mut(at..at + len).unwrap_or_default();
        for (i, byte) in bytes.iter_mut().enumerate() {
            // CAST: the low byte.
            *byte = seed.wrapping_add(i as u8);
        }
    }

    /// Returns true if `len` bytes from `at` on are still zero.
    pub(super) fn is_blank(&self, at: usize, len: usize) -> bool {
        let bytes = self.bytes.get(at..at + len).unwrap_or_default();
        bytes.len() == len && bytes.iter().all(|b| *b == 0)
    }

    /// The logical address of one page.
    pub(super) fn page(&self, at: usize) -> u64 {
        // CAST: widening.
        self.addr() + (at * PAGE) as u64
    }

    /// Returns true if `len` bytes from `at` on are those of the pattern that begins with `seed`.
    pub(super) fn has(&self, seed: u8, at: usize, len: usize) -> bool {
        let bytes = self.bytes.get(at..at + len).unwrap_or_default();
        let mut same = bytes.iter().enumerate();
        // CAST: the low byte.
        bytes.len() == len && same.all(|(i, b)| *b == seed.wrapping_add(i as u8))
    }
}
