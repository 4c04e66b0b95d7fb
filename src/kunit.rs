// SPDX-License-Identifier: GPL-2.0

//! Suites that see the engine as its faces and transports do.
//!
//! | what they stand on | what it is                                                      |
//! |--------------------|-----------------------------------------------------------------|
//! | [`harness`]        | a host, two connected ends, bounded waits, telling checks       |
//! | [`queues`]         | completion and shared receive queues that record their events   |
//! | [`log`]            | recorders of everything that the engine tells                   |
//! | [`buffer`]         | registered memory with known contents                           |
//! | [`requests`]       | short ways to write requests                                    |
//! | [`errand`]         | something done in another context                               |
//! | [`fake`]           | a transport made of the test's own hands                        |
//! | [`town`]           | listeners, and the two sides of a connection to be              |
//!
//! | suites         | what they prove                                                     |
//! |----------------|---------------------------------------------------------------------|
//! | [`order`]      | the send queue: order, fences, read limits, signals                 |
//! | [`at_once`]    | local requests that are carried out inside the post                 |
//! | [`states`]     | what is taken in which state, and what never is                     |
//! | [`flush`]      | the end of a queue pair, and its next life                          |
//! | [`cq`]         | arms, calls and overflow of completion queues                       |
//! | [`moderation`] | calls that wait for more completions                                |
//! | [`srq`]        | shared receives, the limit and the last of them                     |
//! | [`resize`]     | queues that change their depth                                      |
//! | [`message`]    | what arrives, byte by byte                                          |
//! | [`volume`]     | more than one run carries, both directions, several threads         |
//! | [`rnr`]        | messages that wait for a receive                                    |
//! | [`refuse`]     | memory that a request must not reach                                |
//! | [`invalidate`] | the end of tokens through the queues                                |
//! | [`connect`]    | who is asked, what is agreed on, who is notified what                   |
//! | [`listeners`]  | which listener is notified, and which one after it                      |
//! | [`confirm`]    | connections in two steps, and what ends them in between             |
//! | [`address`]    | local addresses and routes that nobody else has                     |
//! | [`port`]       | devices that faces find, open and have to leave                     |
//! | [`context`]    | fast calls from softirq, timers, with interrupts off                |
//! | [`counting`]   | each counter, and those that must not move                          |
//! | [`memory`]     | regions, windows and the table of them                              |
//! | [`race`]       | revocation against access, on several processors                    |

mod address;
mod at_once;
mod buffer;
mod confirm;
mod connect;
mod connection_fixture;
mod context;
mod counting;
mod cq;
mod fake;
mod flush;
pub(crate) mod harness;
mod invalidate;
mod listeners;
pub(crate) mod log;
mod memory;
mod message;
mod moderation;
pub(crate) mod ndk;
mod order;
mod other_context;
mod port;
mod queues;
mod race;
mod refuse;
mod requests;
mod resize;
mod rnr;
mod srq;
mod states;
mod volume;

use kernel::prelude::*;

use crate::sys::speed;

/// Tests that KUnit knows as slow: what they repeat until the clock has had enough of it other
/// tests do a few times, so that checkers which slow it down see all of it without them.
const SLOW: [(&CStr, &CStr); 7] = [
    (
        c"ndk_address",
        c"when_every_port_is_taken_the_next_one_is_the_one_that_is_given_back",
    ),
    (
        c"ndk_address",
        c"a_port_where_the_device_listens_is_not_given_out",
    ),
    (
        c"ndk_face_connect",
        c"ndk_conn_04_port_0_takes_one_of_the_dynamic_ports_until_none_is_left",
    ),
    (
        c"ndk_face_listen",
        c"ndk_lstn_01_port_0_fails_when_every_port_is_in_use",
    ),
    (
        c"ndk_face_stress",
        c"ndk_arm_14_no_call_is_lost_between_poll_and_arm_in_a_million_rounds",
    ),
    (c"ndk_cq", c"no_call_comes_after_the_close_again_and_again"),
    (
        c"ndk_moderate",
        c"a_close_ends_what_is_held_again_and_again",
    ),
];

/// Tells KUnit of them, while the module comes up.
pub(crate) fn mark_slow() -> Result {
    for (suite, test) in SLOW {
        if let Err(e) = speed::mark_slow(suite, test) {
            pr_err!("no test {:?} in {:?} to mark as slow\n", test, suite);
            return Err(e);
        }
    }
    Ok(())
}
