// SPDX-License-Identifier: GPL-2.0

//! The words of the verbs as plain values, and the words that NDKPI adds: the one vocabulary of the
//! faces, the engine and the transports.
//!
//! No C declaration is named here: the rest of `rdma` asserts that the numbers are those of the C
//! headers. All code is safe, and all values copy freely, in any context. A value that is not of
//! the verbs says so.

pub(crate) mod access;
pub(crate) mod completion;
pub(crate) mod qp;
pub(crate) mod status;
pub(crate) mod token;
pub(crate) mod wc;
pub(crate) mod work;
