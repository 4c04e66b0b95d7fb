// SPDX-License-Identifier: GPL-2.0

//! Common parts of the unit tests of this layer.

pub(super) mod stub;
