// SPDX-License-Identifier: GPL-2.0

//! The posting functions of a queue pair, by the names that NDKPI gives them.

use kernel::prelude::*;

use crate::{
    ndk::{
        life::Ref,
        memory::{
            FastRegistration,
            Mr,
            Mw, //
        },
        qp::{
            Qp,
            Request, //
        },
        srq::Srq,
        status::NtStatus, //
    },
    rdma::values::{
        token::Token,
        work::RemoteAddr, //
    },
    sys::sge::{
        test_posted,
        Elements, //
    }, //
};

type Accepted = Result<(), NtStatus>;

impl Srq {
    pub(crate) fn receive(&self, context: u64, sges: impl Elements) -> Accepted {
        self.post_receive(test_posted(context, sges))
    }
}

impl Qp {
    pub(crate) fn receive(&self, context: u64, sges: impl Elements) -> Accepted {
        self.post_receive(test_posted(context, sges))
    }

    pub(crate) fn send(&self, context: u64, sges: impl Elements, flags: u32) -> Accepted {
        self.post(test_posted(context, sges), Request::Send, flags)
    }

    pub(crate) fn send_and_invalidate(
        &self,
        context: u64,
        sges: impl Elements,
        flags: u32,
        token: Token,
    ) -> Accepted {
        self.post(
            test_posted(context, sges),
            Request::SendAndInvalidate(token),
            flags,
        )
    }

    pub(crate) fn write(
        &self,
        context: u64,
        sges: impl Elements,
        to: RemoteAddr,
        flags: u32,
    ) -> Accepted {
        self.post(test_posted(context, sges), Request::Write(to), flags)
    }

    pub(crate) fn read(
        &self,
        context: u64,
        sges: impl Elements,
        from: RemoteAddr,
        flags: u32,
    ) -> Accepted {
        self.post(test_posted(context, sges), Request::Read(from), flags)
    }

    fn post_without_sges(&self, context: u64, request: Request<'_>, flags: u32) -> Accepted {
        self.post(test_posted(context, [].into_iter()), request, flags)
    }

    pub(crate) fn fast_register(
        &self,
        context: u64,
        mr: &Mr,
        what: &FastRegistration<'_>,
        flags: u32,
    ) -> Accepted {
        self.post_without_sges(context, Request::Register(mr, what), flags)
    }

    pub(crate) fn bind(
        &self,
        context: u64,
        region: &Ref<Mr>,
        window: &Mw,
        range: (u64, u64),
        flags: u32,
    ) -> Accepted {
        self.post_without_sges(context, Request::Bind(region, window, range), flags)
    }

    pub(crate) fn invalidate_mr(&self, context: u64, mr: &Mr, flags: u32) -> Accepted {
        self.post_without_sges(context, Request::InvalidateMr(mr), flags)
    }

    pub(crate) fn invalidate_mw(&self, context: u64, mw: &Mw, flags: u32) -> Accepted {
        self.post_without_sges(context, Request::InvalidateMw(mw), flags)
    }

    /// An invalidation of an object that is neither a region nor a window.
    pub(crate) fn invalidate_other(&self, context: u64, flags: u32) -> Accepted {
        self.post_without_sges(context, Request::Invalid, flags)
    }
}
