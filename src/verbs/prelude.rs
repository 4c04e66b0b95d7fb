// SPDX-License-Identifier: GPL-2.0

//! What most files of this face use: its provider, the words of the engine and of `rdma` that they
//! translate, and the engine's own prelude.

pub(super) use super::{
    Verbs,
    CONTEXT, //
};
pub(super) use crate::{
    engine::{
        domain::Domain,
        limits::*,
        memory::token::Token,
        prelude::*,
        srq::SharedReceive, //
    },
    rdma::{
        Device,
        Pd,
        RecvChain, //
    }, //
};
