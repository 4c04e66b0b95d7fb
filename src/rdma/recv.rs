// SPDX-License-Identifier: GPL-2.0

//! Chains of receive requests, as [`super::work`] has those of sends.
//!
//! C: `struct ib_recv_wr`.

use core::marker::PhantomData;

use kernel::{
    ffi::c_int,
    prelude::*, //
};

use super::work::{
    sges,
    Sge, //
};
use crate::bindings;

/// A request for a receive queue.
pub(crate) struct RecvRequest<'a> {
    /// What the consumer calls it.
    pub(crate) wr_id: u64,
    /// Where the data is to go.
    pub(crate) sges: &'a [Sge],
}

/// A chain of requests for a receive queue.
///
/// # Invariants
///
/// `current` and `next` are null or requests of a chain that is valid during `'a`.
pub(crate) struct RecvChain<'a> {
    current: *const bindings::ib_recv_wr,
    next: *const bindings::ib_recv_wr,
    _chain: PhantomData<&'a bindings::ib_recv_wr>,
}

impl<'a> RecvChain<'a> {
    /// # Safety
    ///
    /// `first` is null or starts a chain of valid requests, which does not change during `'a`.
    #[inline]
    pub(super) unsafe fn new(first: *const bindings::ib_recv_wr) -> Self {
        // INVARIANT: The caller says so.
        Self {
            current: first,
            next: first,
            _chain: PhantomData,
        }
    }

    /// The next request; `None` at the end. `EINVAL` if it is malformed.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<RecvRequest<'a>>> {
        if self.next.is_null() {
            return Ok(None);
        }
        // INVARIANT: `next` is a valid request.
        self.current = self.next;
        // SAFETY: By the invariant the request is valid.
        let wr = unsafe { &*self.current };
        self.next = wr.next;
        Ok(Some(RecvRequest {
            // SAFETY: Both fields of the union are 64 bits without invalid patterns.
            wr_id: unsafe { wr.__bindgen_anon_1.wr_id },
            // SAFETY: The request is valid, so its list has that many entries.
            sges: unsafe { sges(wr.sg_list, wr.num_sge) }?,
        }))
    }

    /// Turns the provider's result into that of the post.
    ///
    /// # Safety
    ///
    /// `bad_wr` is null or writable.
    #[inline]
    pub(super) unsafe fn report(
        &self,
        result: Result,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        let Err(error) = result else { return 0 };
        if !bad_wr.is_null() {
            // SAFETY: The caller says that it is writable.
            unsafe { *bad_wr = self.current };
        }
        error.to_errno()
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_recv)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn empty_chain_has_no_request() {
        // SAFETY: Null is an empty chain.
        let mut chain = unsafe { RecvChain::new(ptr::null()) };
        assert!(matches!(chain.next(), Ok(None)));
    }

    #[test]
    fn first_bad_request_is_reported() {
        let mut bad = bindings::ib_recv_wr {
            num_sge: 1,
            ..Default::default()
        };
        let first = bindings::ib_recv_wr {
            next: &mut bad,
            ..Default::default()
        };
        let mut reported = ptr::null();
        // SAFETY: The requests live as long as the chain.
        let mut chain = unsafe { RecvChain::new(&first) };
        assert!(matches!(chain.next(), Ok(Some(r)) if r.sges.is_empty()));
        let result = chain.next().map(|_| ());
        // SAFETY: `reported` is writable.
        assert_eq!(unsafe { chain.report(result, &mut reported) }, -22);
        assert!(ptr::eq(reported, &bad));
    }
}
