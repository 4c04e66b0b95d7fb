// SPDX-License-Identifier: GPL-2.0

//! The NDK face: Microsoft's Network Direct Kernel Provider Interface over the engine.
//!
//! This module is the Rust form. [`abi`] gives it to C as dispatch tables (`include/ndk/ndk.h`),
//! and is the only module here that knows C.
//!
//! | file          | contents                                                         |
//! |---------------|------------------------------------------------------------------|
//! | [`prelude`]   | common imports                                                   |
//! | [`status`]    | NTSTATUS values, which calls return                              |
//! | [`life`]      | objects: uses, antecedents, close; work that may sleep           |
//! | [`call`]      | calls back to the consumer                                       |
//! | [`adapter`]   | an open device                                                   |
//! | [`pd`]        | protection domains                                               |
//! | [`cq`], [`srq`], [`qp`] | queues, arms and results; posting                      |
//! | [`memory`]    | regions, windows, logical addresses                              |
//! | [`connector`], [`endpoint`], [`listener`] | connections, and their addresses     |
//!
//! **Context.** Every call but opening and closing an adapter may be made from softirq and with
//! locks held, and does not sleep. Work that has to sleep runs in process context: the call returns
//! [`status::Progress::Pending`], and a callback reports the end. Callbacks come with softirqs off.
//!
//! **Lock order**: locks of this face are leaves, with two exceptions. The state of a region is
//! held, inside the send queue's lock, while the request that changes it is posted. The state of a
//! connector is held while the engine's locks are taken that [`connector`] names.

#[expect(unsafe_code)]
pub(crate) mod abi;
pub(crate) mod adapter;
pub(crate) mod call;
pub(crate) mod connector;
pub(crate) mod cq;
pub(crate) mod endpoint;
pub(crate) mod life;
pub(crate) mod listener;
pub(crate) mod memory;
pub(crate) mod pd;
mod prelude;
pub(crate) mod qp;
pub(crate) mod srq;
pub(crate) mod status;
#[cfg(ndk_kunit)]
#[path = "../kunit/ndk/mod.rs"]
pub(crate) mod tests;

pub(crate) use abi::adapter::CONTEXT;
pub(crate) use adapter::{
    Limits,
    NdkContext, //
};
