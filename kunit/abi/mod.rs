// SPDX-License-Identifier: GPL-2.0

//! The face as a consumer in C has it: through the dispatch tables.
//!
//! | file         | contents                                                          |
//! |--------------|-------------------------------------------------------------------|
//! | [`consumer`] | callbacks in C, objects of each type                              |
//! | [`tables`]   | tables, headers, output pointers and contexts (GEN)               |
//! | [`lives`]    | the life of handles (GEN-08, CLOS-07, CLOS-10)                    |
//! | [`facts`]    | facts that an adapter reports of itself (ADPT), results (COMP)    |

mod consumer;
mod facts;
mod lives;
mod tables;
