// SPDX-License-Identifier: GPL-2.0

//! A software RDMA provider.

#![deny(unsafe_code)]

#[expect(unsafe_code)]
mod bindings;
#[allow(dead_code, unused_imports, unused_macros)]
#[expect(unsafe_code)]
mod rdma;
mod skeleton;
#[allow(dead_code, unused_imports, unused_macros)]
#[expect(unsafe_code)]
mod sys;

use kernel::prelude::*;

module! {
    type: Ndk,
    name: "ndk",
    authors: ["The ndk developers"],
    description: "Software RDMA provider",
    license: "GPL",
    alias: ["rdma-link-ndk"],
}

/// The loaded module.
struct Ndk {
    _registration: Pin<KBox<rdma::Registration<skeleton::Skeleton>>>,
}

impl kernel::Module for Ndk {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let registration = KBox::pin_init(rdma::Registration::new(), GFP_KERNEL)?;
        Ok(Self {
            _registration: registration,
        })
    }
}
