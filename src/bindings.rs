// SPDX-License-Identifier: GPL-2.0

//! C bindings that the kernel crate does not have: RDMA, and the functions of
//! `bindings/shim.c`.
//!
//! The generated file defines the types of `include/rdma/` and borrows every
//! other type from [`kernel::bindings`], which is re-exported here. bindgen's
//! layout asserts stay in it: they prove at compile time that the borrowed
//! types have the size C gives them.
//!
//! Only [`crate::sys`], [`crate::rdma`] and the abi of [`crate::ndk`] may use this module.

#![allow(
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    // A lint of rustc 1.88 and later.
    unknown_lints,
    unnecessary_transmutes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

use kernel::ffi;
use pin_init::{MaybeZeroable, Zeroable};

pub(crate) use kernel::bindings::*;

// SAFETY: `__BindgenBitfieldUnit` is a newtype around its storage.
unsafe impl<Storage: Zeroable> Zeroable for __BindgenBitfieldUnit<Storage> {}

include!(env!("NDK_BINDINGS"));
