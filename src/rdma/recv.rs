// SPDX-License-Identifier: GPL-2.0

//! Chains of receive requests, like those of send requests in [`super::work`].
//!
//! C: `struct ib_recv_wr`.

use super::{
    prelude::*,
    work::{
        posted,
        Sges,
        WorkRequest,
        WrChain, //
    }, //
};
use crate::sys::sge::Posted;

/// A request for a receive queue.
pub(crate) struct RecvRequest<'a> {
    /// The memory that the data goes to, and the consumer's number for the request.
    pub(crate) posted: Posted<Sges<'a>>,
}

impl WorkRequest for bindings::ib_recv_wr {
    #[inline]
    fn next(&self) -> *const Self {
        self.next
    }
}

/// A chain of requests for a receive queue.
pub(crate) type RecvChain<'a> = WrChain<'a, bindings::ib_recv_wr>;

impl<'a> RecvChain<'a> {
    /// The next request; `None` at the end. `EINVAL` if it is malformed.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<RecvRequest<'a>>> {
        let Some(wr) = self.advance() else {
            return Ok(None);
        };
        Ok(Some(RecvRequest {
            // SAFETY: The request is valid, so its list has that many entries; the fields of the
            // union are 64 bits without invalid patterns.
            posted: unsafe { posted(wr.__bindgen_anon_1.wr_id, wr.sg_list, wr.num_sge) }?,
        }))
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_recv)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn empty_chain_has_no_request() {
        let post = |chain: &mut RecvChain<'_>| {
            assert!(matches!(chain.next(), Ok(None)));
            Ok(())
        };
        // SAFETY: Null is an empty chain, and `bad_wr` may be null.
        let posted = unsafe { RecvChain::post(ptr::null(), ptr::null_mut(), post) };
        kunit_assert_eq!(posted, 0);
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
        let post = |chain: &mut RecvChain<'_>| {
            assert!(matches!(chain.next(), Ok(Some(r)) if r.posted.sges().len() == 0));
            chain.next().map(|_| ())
        };
        // SAFETY: The requests live as long as the call, and `reported` is writable.
        let posted = unsafe { RecvChain::post(&first, &mut reported, post) };
        kunit_assert_eq!(posted, -22);
        assert!(ptr::eq(reported, &bad));
    }
}
