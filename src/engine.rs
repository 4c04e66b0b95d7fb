// SPDX-License-Identifier: GPL-2.0

//! The engine: NDKPI and verbs semantics in safe Rust, without a wire and without a consumer.
//! `docs/architecture.md` defines its terms.
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
//! - the mutex that serializes resizing of a queue, then the lock of that queue
//! - a transport's own lock, then any of the locks below
//! - receive queue of a queue pair, shared receive queue, link of a queue pair, its send queue,
//!   completion queue
//! - leaves: staging of a region, waiter for its last access, free list of the memory table, timer
//!   of a completion queue
//! - for set-up, in process context: listeners, reserved addresses; list of devices, users of a
//!   device
//!
//! Every spinlock but a transport's own is taken with interrupts off, so every fast call may come
//! from any context: posting, polling, arming, staging a mapping. (`direct` runs with softirqs off,
//! and not where interrupts are off.) Creating and destroying sleeps.
//!
//! **Calls to consumers** are made from softirq work, under no lock (see [`notifier`]); but a call
//! that only schedules the consumer's work, as ib_core's polling, is made where it falls due. The
//! NDK face reports work done in process context from that context, with softirqs off.
//!
//! **Bounded work**: one hold of a lock completes a bounded number of requests. A transport moves a
//! bounded number of bytes per run, and in all its softirq runs on one CPU until a task has run
//! there; beyond either bound it goes on in a thread.
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
