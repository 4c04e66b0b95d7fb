// SPDX-License-Identifier: GPL-2.0

//! The names that most files of the engine and of its transports use, as `kernel::prelude` has
//! those of the kernel.
//!
//! Tests: `kunit/context.rs`.

pub(crate) use kernel::{
    new_mutex,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLockIrq,
        SpinLockIrqGuard, //
    }, //
};

pub(crate) use super::{
    counters::Counter,
    device::RdmaDevice, //
};
pub(crate) use crate::rdma::values::{
    access::{
        AccessFlag,
        AccessFlags, //
    },
    status::Status, //
};
