// SPDX-License-Identifier: GPL-2.0

//! The imports of nearly every file of this layer, as `kernel::prelude` is for drivers:
//! `use super::prelude::*`.

pub(super) use core::marker::PhantomData;

pub(super) use kernel::{
    prelude::*,
    sync::Arc, //
};

pub(super) use super::{
    device::Device,
    object::{
        IbObject,
        NewObject,
        Object,
        OwnedObject,
        Pd, //
    },
    upcall::UpcallTarget,
    Operations, //
};
pub(super) use crate::{
    bindings,
    sys::unaligned::Unaligned, //
};
