// SPDX-License-Identifier: GPL-2.0

//! The face as a consumer in C has it: through the dispatch tables.
//!
//! | file         | what it is                                                      |
//! |--------------|-----------------------------------------------------------------|
//! | [`consumer`] | callbacks in C, objects of each type                            |
//! | [`tables`]   | tables, headers, output pointers and contexts (GEN)             |
//! | [`lives`]    | how long handles stay (GEN-08, CLOS-07, CLOS-10)                  |
//! | [`facts`]    | what an adapter reports of itself (ADPT), and results (COMP)      |

mod consumer;
mod facts;
mod lives;
mod tables;
