// SPDX-License-Identifier: GPL-2.0

//! The NDK face, requirement by requirement: the name of each test carries the id that it proves
//! (`docs/requirements.tsv`), and `scripts/conformance` puts them together.
//!
//! | what they stand on | what it is                                                   |
//! |--------------------|--------------------------------------------------------------|
//! | [`site`]           | a host with a device on the loopback, opened by this face    |
//! | [`await_`]         | calls that end later, waited for                             |
//! | [`pair`]           | two connected sides, made by listener and connector          |
//! | [`dial`]           | the steps of a connection, one by one                        |
//! | [`memory`]         | buffers, their descriptor chains and pages                   |
//! | [`steps`]          | a connection, step by step                                   |
//! | [`kit`]            | what it takes to post a request of each kind                 |
//! | [`hand`]           | a connection whose transport is the test                     |
//! | [`remote`]         | memory that is open to a peer, and the ends of connections   |
//! | [`caller`]         | queues whose calls do something                              |
//! | [`crowd`]          | a shared receive queue, its users and their peers            |
//! | [`reach`]          | what a peer gets by a token; queues that are held           |
//! | [`oom`]            | calls that fail at each of their allocations                 |
//! | [`stall`]          | callbacks that do not return before a test says so           |

mod adapter;
mod arm;
mod await_;
mod bind;
mod caller;
mod close;
mod connect;
mod cqs;
mod crowd;
mod defer;
mod dial;
mod disconnect;
mod face;
mod face_memory;
mod face_queues;
mod flush;
mod general;
mod grant;
mod hand;
mod invalidate;
mod kit;
mod listen;
mod lives;
mod logical;
mod memory;
mod moderation;
mod oom;
mod oom_c;
mod oom_connect;
mod oom_create;
mod oom_memory;
mod pair;
mod post;
mod post_checks;
mod post_race;
mod queued;
mod reach;
mod read;
mod receive;
mod region;
mod region_rights;
mod register;
mod remote;
mod results;
mod send;
mod send_inline;
mod send_invalidate;
mod send_invalidate_race;
mod send_invalidate_targets;
pub(crate) mod site;
mod sizes;
mod spi;
mod srq;
mod stall;
mod steps;
mod stress;
mod window;
mod write;
