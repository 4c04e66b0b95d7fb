// SPDX-License-Identifier: GPL-2.0

//! `ndk.ko`: a software RDMA provider, in Rust.
//!
//! | folder       | contents                                                             |
//! |--------------|----------------------------------------------------------------------|
//! | [`bindings`] | C declarations of RDMA, and C functions for its inlines              |
//! | [`sys`]      | kernel facilities without an abstraction of their own                |
//! | [`rdma`]     | the base of a provider in safe Rust, as `kernel::rdma` would be      |
//! | [`engine`]   | the semantics: queues, memory, states, connections; safe             |
//! | [`direct`]   | the transport between two queue pairs of one host; safe              |
//! | [`iwarp`]    | the transport between hosts, over TCP; safe                          |
//! | [`verbs`]    | the face to the kernel's RDMA consumers; safe                        |
//! | [`ndk`]      | the NDK face, in Rust; its `abi` gives it to C                       |
//!
//! Only this file knows all of them.

#![deny(unsafe_code)]
// No code may bring the kernel down, and a function has to fit on one screen.
#![cfg_attr(
    not(ndk_kunit),
    warn(
        clippy::expect_used,
        clippy::panic,
        clippy::todo,
        clippy::too_many_lines,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

#[expect(unsafe_code)]
mod bindings;
// First: the tests of the other modules use its macros.
#[expect(unsafe_code)]
#[cfg_attr(ndk_kunit, macro_use)]
mod sys;

mod direct;
mod engine;
mod iwarp;
#[cfg(ndk_kunit)]
#[path = "../kunit/mod.rs"]
mod kunit;
mod ndk;
#[expect(unsafe_code)]
mod rdma;
mod verbs;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::engine::{
    cm::{
        ConnectionManager,
        Timeouts, //
    },
    host::Host, //
};
use engine::device::DeviceList;
use iwarp::carrier::TcpCarrier;

module! {
    type: Ndk,
    name: "ndk",
    authors: ["The ndk developers"],
    description: "Software RDMA provider",
    license: "GPL",
    alias: ["rdma-link-ndk"],
    // The parameters are in bindings/export.c: sysfs does not show those of the macro.
}

/// The longest time that a message may wait for a receive, in milliseconds.
const MAX_RNR_TIMEOUT_MS: u32 = 600_000;

/// The loaded module.
struct Ndk {
    registration: Option<Pin<KBox<rdma::LinkRegistration<verbs::Verbs>>>>,
    host: Arc<Host>,
}

impl kernel::Module for Ndk {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let rnr_timeout_ms = sys::param::rnr_timeout_ms();
        if !(1..=MAX_RNR_TIMEOUT_MS).contains(&rnr_timeout_ms) {
            pr_err!(
                "rnr_timeout_ms={} is not within 1 to {}\n",
                rnr_timeout_ms,
                MAX_RNR_TIMEOUT_MS
            );
            return Err(EINVAL);
        }
        let link_type = verbs::link_type()?;
        #[cfg(ndk_kunit)]
        kunit::mark_slow()?;
        let host = Host::new(rnr_timeout_ms)?;
        let devices = DeviceList::new()?;
        let carrier = TcpCarrier::new(&host)?;
        let cm = ConnectionManager::new(direct::connect, Some(carrier), Timeouts::DEFAULT)?;
        let verbs_context = verbs::VerbsContext {
            host: host.clone(),
            cm: cm.clone(),
            devices: devices.clone(),
        };
        let ndk = ndk::NdkContext {
            devices,
            cm,
            limits: ndk::Limits::FULL,
        };
        let verbs = Arc::new(verbs_context, GFP_KERNEL)?;
        let ndk = Arc::new(ndk, GFP_KERNEL)?;
        verbs::CONTEXT.replace(Some(verbs));
        ndk::CONTEXT.replace(Some(ndk));
        // From here on `drop` undoes each step.
        let mut module = Self {
            registration: None,
            host,
        };
        module.registration = Some(KBox::pin_init(verbs::register(link_type), GFP_KERNEL)?);
        Ok(module)
    }
}

impl Drop for Ndk {
    fn drop(&mut self) {
        // The devices first: their consumers need the rest until the devices are gone.
        self.registration = None;
        drop(ndk::CONTEXT.replace(None));
        drop(verbs::CONTEXT.replace(None));
        self.host.quiesce();
    }
}
