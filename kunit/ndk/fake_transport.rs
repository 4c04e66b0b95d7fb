// SPDX-License-Identifier: GPL-2.0

//! [`ManualPair`]: two connected sides whose transport is the test itself.
//!
//! The test carries out the requests: it sees each request that the transport is given, and ends
//! requests in any order, with any status.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    host::{
        HostAttr,
        SIZES, //
    },
    pair::{
        Pair,
        READS, //
    },
    requests::Kind, //
};
use crate::{
    engine::{
        qp::QueuePair,
        transport::Transport, //
    },
    kunit::fake::{
        Fake,
        Started, //
    },
    rdma::values::{
        qp::QpCaps,
        status::Status, //
    }, //
};

/// A transport that carries out no request.
fn idle(_: &Arc<QueuePair>, _: &Arc<QueuePair>) -> Result<Arc<dyn Transport>> {
    Ok(Fake::new()?)
}

/// Two sides; requests of `a` are carried out by the test.
pub(super) struct ManualPair {
    pub(super) started: Started,
    pub(super) pair: Pair,
}

impl ManualPair {
    /// Two connected sides. May sleep.
    pub(super) fn new() -> Result<Self> {
        Self::with(SIZES)
    }

    /// Two connected sides, `a` with these sizes. May sleep.
    pub(super) fn with(sizes: QpCaps) -> Result<Self> {
        let mut manual = Self::unconnected(sizes)?;
        manual.pair.connect(READS, READS)?;
        Ok(manual)
    }

    /// Two sides that are not connected. May sleep.
    pub(super) fn unconnected(sizes: QpCaps) -> Result<Self> {
        let attr = HostAttr {
            connect_fn: idle,
            ..HostAttr::PLAIN
        };
        let pair = Pair::unconnected(&attr, sizes, SIZES)?;
        Ok(Self {
            started: Started::new(pair.a.qp.engine())?,
            pair,
        })
    }

    /// Starts the next request that may begin; returns its number, or `None`.
    pub(super) fn start(&mut self) -> Option<u32> {
        let engine = self.pair.a.qp.engine();
        self.started.start(engine, engine.connection()?)
    }

    /// Starts the next request that may begin; returns true if it is of that kind.
    pub(super) fn starts(&mut self, kind: Kind) -> bool {
        self.start().is_some() && self.started.wqe.work.opcode() == kind.work()
    }

    /// Starts all requests that may begin; returns their number.
    pub(super) fn start_all(&mut self) -> usize {
        let mut count = 0;
        while self.start().is_some() {
            count += 1;
        }
        count
    }

    /// Ends a request.
    pub(super) fn finish(&mut self, seq: u32, status: Status) {
        self.started.finish(self.pair.a.qp.engine(), seq, status);
    }

    /// Starts the next request and ends it with success; false if there is none.
    pub(super) fn serve(&mut self) -> bool {
        let seq = self.start();
        if let Some(seq) = seq {
            self.finish(seq, Status::Success);
        }
        seq.is_some()
    }
}

impl Drop for ManualPair {
    fn drop(&mut self) {
        let engine = self.pair.a.qp.engine();
        engine.fail();
        self.started.flush(engine);
    }
}
