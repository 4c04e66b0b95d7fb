// SPDX-License-Identifier: GPL-2.0

//! Tests of the NDK face, by requirement: a test's name carries the id that it proves
//! (`docs/requirements.tsv`), and `scripts/conformance` collects the ids.
//!
//! | fixture                | contents                                                     |
//! |------------------------|--------------------------------------------------------------|
//! | [`host`]               | a host with a device on the loopback, opened by this face    |
//! | [`completion`]         | waits for calls that pend                                    |
//! | [`pair`]               | two connected sides, made by listener and connector          |
//! | [`connect_steps`]      | the steps of a connection, one by one                        |
//! | [`memory`]             | buffers, their descriptor chains and pages                   |
//! | [`connect_sequence`]   | a connection, step by step                                   |
//! | [`requests`]           | the memory and lists of a request of each kind               |
//! | [`posts`]              | the posting functions, by their names                        |
//! | [`fake_transport`]     | a connection whose transport is the test                     |
//! | [`remote`]             | memory that is open to a peer, and the ends of connections   |
//! | [`caller`]             | completion queues whose notifications run a hook             |
//! | [`srq_users`]          | a shared receive queue, its users and their peers            |
//! | [`remote_access`]      | a peer's access by a token; initiator queues that are held   |
//! | [`oom`]                | calls that fail at each of their allocations                 |
//! | [`blocking_callback`]  | callbacks that return when a test releases them              |

mod adapter;
mod arm;
mod bind;
mod blocking_callback;
mod caller;
mod close;
mod close_order;
mod completion;
mod connect;
mod connect_sequence;
mod connect_steps;
mod counts;
mod cqs;
mod defer;
mod disconnect;
mod face;
mod face_memory;
mod face_queues;
mod fake_transport;
mod flush;
mod general;
mod grant;
pub(crate) mod host;
mod invalidate;
mod listen;
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
mod posts;
mod queued;
mod read;
mod receive;
mod region;
mod region_rights;
mod register;
mod remote;
mod remote_access;
mod requests;
mod results;
mod send;
mod send_inline;
mod send_invalidate;
mod send_invalidate_race;
mod send_invalidate_targets;
mod sizes;
mod spi;
mod srq;
mod srq_users;
mod stress;
mod together;
mod window;
mod write;
