// SPDX-License-Identifier: GPL-2.0

//! What the unit tests of this layer have in common.

pub(super) mod stub;
