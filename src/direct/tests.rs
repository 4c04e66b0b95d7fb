// SPDX-License-Identifier: GPL-2.0

//! Tests of two queue pairs of one host over this transport.

mod inject;
mod invalidate;
mod message;
mod programs;
mod refuse;
mod rnr;
mod volume;
