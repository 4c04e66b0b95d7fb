// SPDX-License-Identifier: GPL-2.0

//! The words of the verbs as plain values, with what NDKPI needs beyond them: the one vocabulary of
//! the faces, the engine and the transports.
//!
//! Nothing here names a C declaration or another module: `rdma` asserts that the numbers are those
//! of the C headers. All of it is safe, copies freely and is tested on the host, too. Any context.

pub(crate) mod access;
pub(crate) mod qp;
