// SPDX-License-Identifier: GPL-2.0

//! The common imports of this face, as `kernel::prelude` has them for drivers:
//! `use super::prelude::*`.

pub(super) use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

pub(super) use super::{
    adapter::Adapter,
    call::DoneFn,
    life::{
        Created,
        Object,
        ObjectType,
        ObjectUse,
        Ref, //
    },
    status::{
        no_memory,
        Answer,
        NtStatus,
        Progress, //
    }, //
};
