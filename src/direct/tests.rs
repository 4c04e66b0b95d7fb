// SPDX-License-Identifier: GPL-2.0

//! What two queue pairs of one host do to each other, through this transport.

mod inject;
mod invalidate;
mod message;
mod programs;
mod refuse;
mod rnr;
mod volume;
