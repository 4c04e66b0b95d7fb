// SPDX-License-Identifier: GPL-2.0

//! The unit tests of the provider: its modules with their tests, in a module that registers no
//! provider.

#![deny(unsafe_code)]
// No device is registered here, so much of the faces is not called.
#![allow(dead_code, unused_imports, unused_macros)]
// A suite is a module `tests` in a file of that name.
#![allow(clippy::module_inception)]

#[expect(unsafe_code)]
mod bindings;
// First: the tests of the other modules use its macros.
#[expect(unsafe_code)]
#[macro_use]
mod sys;

mod direct;
mod engine;
mod iwarp;
#[path = "../kunit/mod.rs"]
mod kunit;
mod ndk;
#[expect(unsafe_code)]
mod rdma;
mod verbs;

use kernel::prelude::*;

module! {
    type: NdkKunit,
    name: "ndk_kunit",
    authors: ["The ndk developers"],
    description: "Unit tests of the software RDMA provider",
    license: "GPL",
}

/// The loaded test module; the suites run when it has come up.
struct NdkKunit;

impl kernel::Module for NdkKunit {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        kunit::mark_slow()?;
        Ok(Self)
    }
}
