// SPDX-License-Identifier: GPL-2.0

//! The engine's tracepoints.
//!
//! Context: any.
//!
//! Tests: `../tests/guest/faults.sh`.

pub(crate) use crate::sys::trace::event;
