// SPDX-License-Identifier: GPL-2.0

//! The NDK face: Microsoft's Network Direct Kernel Provider Interface over the engine.
//!
//! This is its Rust form; [`abi`] gives it to C as dispatch tables (`include/ndk/ndk.h`), and
//! nothing else knows C.
//!
//! | file          | what it is                                                       |
//! |---------------|------------------------------------------------------------------|
//! | [`prelude`]   | what nearly every file here imports                              |
//! | [`status`]    | what calls return: NTSTATUS values                               |
//! | [`life`]      | objects: uses, antecedents, close; work that may sleep           |
//! | [`call`]      | calls back to the consumer                                       |
//! | [`adapter`]   | an open device                                                   |
//! | [`pd`]        | protection domains                                               |
//! | [`cq`], [`srq`], [`qp`] | queues, arms and results; posting                      |
//! | [`memory`]    | regions, windows, logical addresses                              |
//! | [`connector`], [`endpoint`], [`listener`] | connections, and their addresses      |
//!
//! **Context.** Every call but opening and closing an adapter may be made from softirq and with
//! locks held, and does not sleep. What has to sleep is done in process context: the call returns
//! [`status::Progress::Pending`], and a callback reports the end. Callbacks come with softirqs off.
//!
//! **Lock order**: locks of this face are leaves, but that the state of a region is held, inside
//! the send queue's lock, while the request that changes it is posted.

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
