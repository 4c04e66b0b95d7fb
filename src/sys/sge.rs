// SPDX-License-Identifier: GPL-2.0

//! [`Sge`]: one element of a scatter or gather list, as numbers; [`Posted`]: the list that a
//! consumer posts with a request, with the consumer's promise for its memory; and [`Context`]: the
//! consumer's number for the request, once the request has ended.
//!
//! An element names memory and gives no access to it. Only [`super::requests`], which takes posted
//! lists, gives access.

use core::iter::Take;

use crate::{
    bindings,
    rdma::values::token::Token, //
};

#[cfg(ndk_kunit)]
pub(crate) use super::tests::memory::test_posted;

/// A consumer's number for a request that has ended: the memory of the request is not touched any
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context(u64);

impl Context {
    /// The context of no request, to fill empty places.
    pub(crate) const BLANK: Self = Self(0);

    /// The context of a request whose elements are back.
    pub(super) const fn of_ended(context: u64) -> Self {
        Self(context)
    }

    /// The consumer's number.
    #[inline]
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }
}

/// One element of a scatter or gather list: a range of a region, or of the kernel's addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sge {
    addr: u64,
    len: u32,
    token: Token,
}

impl Sge {
    /// An element of no bytes.
    pub(crate) const EMPTY: Self = Self::new(0, 0, Token::LOCAL_MEMORY);

    /// `len` bytes from `addr` on, which the region of `token` knows by that address.
    #[inline]
    pub(crate) const fn new(addr: u64, len: u32, token: Token) -> Self {
        Self { addr, len, token }
    }

    /// The address, as the region of the token counts it; under [`Token::LOCAL_MEMORY`], and for
    /// inline data, an address of the kernel.
    #[inline]
    pub(crate) const fn addr(&self) -> u64 {
        self.addr
    }

    /// The number of bytes.
    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// The token of the memory.
    #[inline]
    pub(crate) const fn token(&self) -> Token {
        self.token
    }

    /// Reads as many bytes into `to` as fit, under any token, and returns their number; `None` if
    /// any of them cannot be read without sleeping. Any context. C: `copy_from_kernel_nofault()`.
    ///
    /// An address that is not mapped, or is no kernel address, is reported and not followed.
    ///
    /// # Safety
    ///
    /// Memory that is mapped there belongs to the party that names it by this element.
    unsafe fn read_nofault(&self, to: &mut [u8]) -> Option<usize> {
        // CAST: widening.
        let len = to.len().min(self.len as usize);
        self.addr.checked_add(u64::from(self.len))?;
        // SAFETY: `to` has room for `len` bytes, and the caller answers for memory that is mapped
        // at the address; the function survives an address that is not mapped.
        let read =
            unsafe { bindings::ndk_read_nofault(to.as_mut_ptr().cast(), self.addr, len as u64) };
        read.then_some(len)
    }
}

/// The elements of a posted list, which can be iterated several times.
pub(crate) trait Elements: ExactSizeIterator<Item = Sge> + Clone {}

impl<I: ExactSizeIterator<Item = Sge> + Clone> Elements for I {}

/// The list of a request as its consumer posts it, and the consumer's context of the request.
///
/// Cannot be copied: a [`RequestQueue`] makes one request of it, or none is made.
///
/// # Invariants
///
/// All memory that an element names under [`Token::LOCAL_MEMORY`] may be read and written, by any
/// processor at any time, until the consumer learns that the request of `context` has ended. For
/// inline data, memory that is mapped at the address of an element, under any token, is the
/// consumer's.
///
/// [`RequestQueue`]: super::requests::RequestQueue
pub(crate) struct Posted<I> {
    context: u64,
    sges: I,
}

impl<I: Elements> Posted<I> {
    /// The list `sges` of the request with the consumer's `context`.
    ///
    /// # Safety
    ///
    /// A consumer posts the request now, once: until the consumer learns of its end, memory that an
    /// element names under [`Token::LOCAL_MEMORY`] must stay valid for reads and writes, by any
    /// processor at any time. Under other tokens all values are fine, except for inline data:
    /// memory that is mapped at such an address must be the consumer's to read during the post.
    #[inline]
    pub(crate) const unsafe fn new(context: u64, sges: I) -> Self {
        // INVARIANT: by the safety requirements.
        Self { context, sges }
    }

    /// The consumer's context of the request.
    #[inline]
    pub(crate) fn context(&self) -> u64 {
        self.context
    }

    /// The elements, as numbers.
    #[inline]
    pub(crate) fn sges(&self) -> I {
        self.sges.clone()
    }

    /// The same list, cut to the first `most` elements.
    #[inline]
    pub(crate) fn take(self, most: usize) -> Posted<Take<I>> {
        // INVARIANT: the invariant holds for fewer elements, too.
        Posted {
            context: self.context,
            sges: self.sges.take(most),
        }
    }

    /// The same list, in which each element whose place `may_name` refuses has the token 0, which
    /// names no memory.
    #[inline]
    pub(crate) fn only(self, may_name: impl Fn(usize) -> bool + Clone) -> Posted<impl Elements> {
        let with_token = move |(at, sge): (usize, Sge)| match may_name(at) {
            true => sge,
            false => Sge {
                token: Token::from_raw(0),
                ..sge
            },
        };
        // INVARIANT: the elements are the same, or not under [`Token::LOCAL_MEMORY`].
        Posted {
            context: self.context,
            sges: self.sges.enumerate().map(with_token),
        }
    }

    /// Reads the bytes up to the first element that cannot be read without sleeping, or to the end
    /// of `to`, and returns their number. Any context; for inline data.
    pub(crate) fn read_inline(&self, to: &mut [u8]) -> usize {
        let mut at = 0;
        for sge in self.sges() {
            let room = to.get_mut(at..);
            // SAFETY: By the type invariant memory that is mapped at the element's address is the
            // consumer's.
            match room.and_then(|room| unsafe { sge.read_nofault(room) }) {
                Some(taken) => at += taken,
                None => break,
            }
        }
        at
    }

    /// Ends the request; its memory was not touched, and will not be.
    #[inline]
    pub(super) fn end(self) -> Context {
        Context::of_ended(self.context)
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_sge)]
mod tests {
    use super::*;
    use kernel::{
        page::PAGE_SIZE,
        prelude::*, //
    };

    use crate::sys::report::cases;

    #[test]
    fn elements_that_are_refused_have_no_token() {
        let list = [
            Sge::new(1, 10, Token::from_raw(7)),
            Sge::new(2, 20, Token::LOCAL_MEMORY),
        ];
        let posted = test_posted(9, list.into_iter()).only(|at| at == 0);
        kunit_assert_eq!(posted.context(), 9);
        kunit_assert_eq!(posted.sges().len(), 2);
        let tokens = [7, 0];
        for ((sge, was), token) in cases(posted.sges().zip(list).zip(tokens)) {
            kunit_assert_eq!(sge.token().raw(), token);
            kunit_assert_eq!(sge.addr(), was.addr());
            kunit_assert_eq!(sge.len(), was.len());
        }
        kunit_assert_eq!(posted.take(1).sges().len(), 1);
    }

    #[test]
    fn reading_an_address_that_cannot_be_read_is_refused() -> Result {
        let mut page = VVec::from_elem(7u8, PAGE_SIZE, GFP_KERNEL)?;
        let end = page.as_mut_ptr() as usize + PAGE_SIZE;
        // A mapped page is followed by an unmapped one.
        for (addr, len, want) in cases([
            (end - 16, 16, Some(16)),
            (end - 8, 8, Some(8)),
            (end - 8, 16, None),
            (end, 1, None),
            (8, 8, None),
            (usize::MAX / 2 + 1, 8, None),
            (8, 0, Some(0)),
        ]) {
            let mut to = [0u8; 16];
            // SAFETY: The page is the test's; the other addresses are not mapped.
            let got =
                unsafe { Sge::new(addr as u64, len, Token::from_raw(0)).read_nofault(&mut to) };
            kunit_assert_eq!(got, want);
            // A refused read may leave any bytes.
            assert!(to.iter().take(want.unwrap_or(0)).all(|b| *b == 7));
        }
        Ok(())
    }
}
