// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.

use super::{
    prelude::*,
    qp::errno, //
};
use crate::{
    engine::{
        looking::ProgramReceives,
        ring::ResizeError,
        srq::SrqEvents, //
    },
    rdma::{
        SrqAttributes,
        SrqChange,
        SrqOperations,
        SrqUpcall,
        UserData, //
    }, //
};

impl SrqEvents for SrqUpcall {
    fn limit_reached(&self) {
        Self::limit_reached(self);
    }
}

impl SrqOperations<Verbs> for Arc<SharedReceive> {
    /// Makes a shared receive queue; sizes above the device's limits are `EINVAL`.
    fn create(
        pd: &Pd<Verbs>,
        wanted: &SrqAttributes,
        upcall: SrqUpcall,
        data: &UserData,
    ) -> Result<Self> {
        let fits = (1..=MAX_REQUESTS).contains(&wanted.max_wr) && wanted.max_sge <= MAX_SGES;
        if !fits || wanted.limit > wanted.max_wr {
            return Err(EINVAL);
        }
        let events = KBox::new(upcall, GFP_KERNEL)?;
        let shared = data.receives(wanted.max_wr, wanted.max_sge)?;
        let srq = SharedReceive::new((**pd).clone(), wanted.max_wr, wanted.max_sge, events)?;
        srq.preset_limit(wanted.limit);
        if let Some(receives) = shared {
            let shared = srq.share_receives(ProgramReceives::new(receives));
            shared.inspect_err(|_| srq.close())?;
        }
        Ok(srq)
    }

    /// Changes the size, then arms the limit. `EINVAL`, without a change, if the limit is above the
    /// size.
    fn modify(&self, change: &SrqChange, data: &UserData) -> Result {
        let depth = change.max_wr.unwrap_or(self.depth());
        if change.limit.is_some_and(|limit| limit > depth) {
            return Err(EINVAL);
        }
        if let Some(depth) = change.max_wr {
            if !(1..=MAX_REQUESTS).contains(&depth) {
                return Err(EINVAL);
            }
            let resized = match self.is_shared() {
                true => self.resize_shared(data.new_receives(depth, self.max_sge)?),
                false => self.resize(depth),
            };
            resized.map_err(|why| match why {
                ResizeError::TooMany => EINVAL,
                ResizeError::NoMemory => ENOMEM,
            })?;
        }
        let limited = change.limit.map_or(Ok(()), |limit| self.set_limit(limit));
        match change.max_wr {
            // The limit fits the new size, unless another call has changed the size since.
            Some(_) => Ok(()),
            None => limited,
        }
    }

    fn query(&self) -> SrqAttributes {
        SrqAttributes {
            max_wr: self.depth(),
            max_sge: self.max_sge,
            limit: self.limit(),
        }
    }

    fn destroy(&self) {
        self.close();
    }

    fn post_recv(&self, chain: &mut RecvChain<'_>) -> Result {
        while let Some(request) = chain.next()? {
            self.post(request.posted).map_err(errno)?;
        }
        Ok(())
    }
}
