// SPDX-License-Identifier: GPL-2.0

//! The imports of most files of this face: its provider, words of the engine and of `rdma`, and the
//! engine's own prelude.

pub(super) use super::{
    Verbs,
    CONTEXT, //
};
pub(super) use crate::{
    engine::{
        domain::Domain,
        limits::*,
        prelude::*,
        srq::SharedReceive, //
    },
    rdma::{
        Device,
        Pd,
        RecvChain, //
    }, //
};
