// SPDX-License-Identifier: GPL-2.0

//! The posting functions of a queue pair, by the names that NDKPI gives them.

use kernel::prelude::*;

use crate::{
    engine::{
        memory::token::Token,
        work::{
            Remote,
            Sge, //
        }, //
    },
    ndk::{
        life::Ref,
        memory::{
            Mr,
            Mw, //
        },
        qp::{
            FastRegistration,
            Qp,
            Request, //
        },
        status::NtStatus, //
    }, //
};

type Posted = Result<(), NtStatus>;

impl Qp {
    pub(crate) fn send(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        flags: u32,
    ) -> Posted {
        self.post(context, Request::Send, sges, flags)
    }

    pub(crate) fn send_and_invalidate(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        flags: u32,
        token: Token,
    ) -> Posted {
        self.post(context, Request::SendAndInvalidate(token), sges, flags)
    }

    pub(crate) fn write(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        to: Remote,
        flags: u32,
    ) -> Posted {
        self.post(context, Request::Write(to), sges, flags)
    }

    pub(crate) fn read(
        &self,
        context: u64,
        sges: impl ExactSizeIterator<Item = Sge> + Clone,
        from: Remote,
        flags: u32,
    ) -> Posted {
        self.post(context, Request::Read(from), sges, flags)
    }

    fn alone(&self, context: u64, request: Request<'_>, flags: u32) -> Posted {
        self.post(context, request, [].into_iter(), flags)
    }

    pub(crate) fn fast_register(
        &self,
        context: u64,
        mr: &Mr,
        what: &FastRegistration<'_>,
        flags: u32,
    ) -> Posted {
        self.alone(context, Request::Register(mr, what), flags)
    }

    pub(crate) fn bind(
        &self,
        context: u64,
        region: &Ref<Mr>,
        window: &Mw,
        range: (u64, u64),
        flags: u32,
    ) -> Posted {
        self.alone(context, Request::Bind(region, window, range), flags)
    }

    pub(crate) fn invalidate_mr(&self, context: u64, mr: &Mr, flags: u32) -> Posted {
        self.alone(context, Request::InvalidateMr(mr), flags)
    }

    pub(crate) fn invalidate_mw(&self, context: u64, mw: &Mw, flags: u32) -> Posted {
        self.alone(context, Request::InvalidateMw(mw), flags)
    }

    /// An invalidation of what is neither.
    pub(crate) fn invalidate_other(&self, context: u64, flags: u32) -> Posted {
        self.alone(context, Request::Invalid, flags)
    }
}
