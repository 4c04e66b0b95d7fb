// SPDX-License-Identifier: GPL-2.0

//! [`SendWqe`]: a request on its way through a transport.
//!
//! Tests: `engine/qp/send/tests.rs`.

use crate::{
    engine::prelude::*,
    rdma::values::{
        qp::QpCaps,
        work::{
            SendFlags,
            SendOp,
            SendWith, //
        }, //
    },
    sys::requests::SendList, //
};

/// A request that was started, with room for its elements.
pub(crate) struct SendWqe {
    pub(crate) seq: u32,
    pub(crate) work: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) length: u32,
    /// A read over a connection that allows none: to be completed as a local error.
    pub(crate) forbidden: bool,
    pub(crate) sges: SendList,
    pub(crate) inline: KVec<u8>,
}

impl SendWqe {
    /// Room for any request of a queue pair with these sizes. May sleep.
    pub(crate) fn new(caps: &QpCaps) -> Result<Self> {
        Ok(Self {
            seq: 0,
            work: SendOp::Send {
                with: SendWith::Nothing,
            },
            flags: SendFlags::empty(),
            length: 0,
            forbidden: false,
            sges: SendList::new(caps.send_sge.max(caps.read_sge))?,
            // CAST: widening.
            inline: KVec::with_capacity(caps.inline_data as usize, GFP_KERNEL)?,
        })
    }

    /// Takes over the bytes that came with the request.
    pub(super) fn load_inline(&mut self, inline: &[u8]) {
        self.inline.clear();
        for byte in inline {
            // The room was made for the most bytes of this queue.
            let _ = self.inline.push_within_capacity(*byte);
        }
    }
}
