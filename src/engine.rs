// SPDX-License-Identifier: GPL-2.0

//! The engine: NDKPI and verbs semantics in safe Rust, without a wire and without a consumer.
//! `docs/architecture.md` has the words that are its own.
//!
//! ```text
//!   verbs face        NDK face            translate calls to and from the engine
//!        \              /
//!   QueuePair  CompletionQueue  SharedReceive  ConnectionManager  Domain  RdmaDevice
//!        |            MemoryTable (Slot, Gate)
//!   trait Transport                       below a connected queue pair
//!        |
//!    direct                               carries requests between two queue pairs
//! ```
//!
//! **Lock order** (outer first; each line is one chain, and locks of one kind are never nested):
//!
//! - what serializes resizing a queue (a mutex), then the lock of that queue
//! - a transport's own lock, then any of the locks below
//! - receive queue of a queue pair, shared receive queue, link of a queue pair, its send queue,
//!   completion queue
//! - leaves: staging of a region, who waits for its last access, free list of the memory table,
//!   timer of a completion queue
//! - for set-up, in process context: listeners, reserved addresses; list of devices, users of a
//!   device
//!
//! All but a transport's own are taken with interrupts off, so every fast call may come from any
//! context: posting, polling, arming, staging a mapping. (`direct` runs with softirqs off, and not
//! where interrupts are off.) Creating and destroying sleeps.
//!
//! **Calls to consumers** are made from softirq work, under no lock (see [`notifier`]); but a call
//! that only schedules the consumer's work, as ib_core's polling, is made where it falls due. What
//! the NDK face does in process context it reports from there, with softirqs off.
//!
//! **Bounded work**: a hold of a lock completes a bounded number of requests; a transport moves a
//! bounded number of bytes per run and goes on in a thread, as it does when all its runs in softirq
//! on one CPU have moved a certain number before a task has run there.
//!
//! Tests: `kunit/context.rs`.

pub(crate) mod cm;
pub(crate) mod counters;
pub(crate) mod cq;
pub(crate) mod device;
pub(crate) mod domain;
pub(crate) mod host;
pub(crate) mod inject;
pub(crate) mod limits;
pub(crate) mod looking;
pub(crate) mod memory;
pub(crate) mod notifier;
pub(crate) mod prelude;
pub(crate) mod qp;
pub(crate) mod ring;
pub(crate) mod srq;
pub(crate) mod transport;
pub(crate) mod wq;
