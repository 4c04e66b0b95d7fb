// SPDX-License-Identifier: GPL-2.0

//! Suites that see the engine as its faces and transports do.
//!
//! | file          | what it is                                                        |
//! |---------------|-------------------------------------------------------------------|
//! | [`harness`]   | two connected ends, bounded waits, checks that say what they found |
//! | [`queues`]    | completion and shared receive queues that record their events      |
//! | [`town`]      | listeners, and the two sides of a connection to be                |
//! | [`log`]       | recorders of everything that the engine tells                     |
//! | [`buffer`]    | registered memory with known contents                             |
//! | [`requests`]  | short ways to write requests                                      |
//! | [`errand`]    | something done in another context                                 |
//! | [`fake`]      | a transport made of the test's own hands                          |

mod buffer;
mod connect;
mod context;
mod counting;
mod cq;
mod errand;
mod fake;
mod flush;
mod harness;
mod invalidate;
mod log;
mod memory;
mod message;
mod order;
mod queues;
mod race;
mod refuse;
mod requests;
mod rnr;
mod srq;
mod states;
mod town;
mod volume;
